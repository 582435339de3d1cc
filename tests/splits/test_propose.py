"""Proposed splits: compact, buffered, at a price that is named, and the same whatever the order of rows."""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter

import numpy as np
import pyproj
import pytest

from geoeval.errors import ColumnError, ConfigError, InputError
from geoeval.splits.leakage import check
from geoeval.splits.propose import SET_ASIDE, propose
from geoeval.splits.record import QUARANTINE
from geoeval.splits.settings import SplitSettings
from geoeval.splits.table import SampleTable

UTM = "EPSG:32631"


def points(n=600, width=60_000.0, seed=0):
    rng = np.random.default_rng(seed)
    x, y = 500_000 + rng.uniform(0, width, n), 5_600_000 + rng.uniform(0, width, n)
    return np.stack([x, y, x, y], axis=1)


def tiles(n=20, side=1000.0):
    row, column = np.divmod(np.arange(n * n), n)
    x, y = 500_000 + side * column, 5_600_000 + side * row
    return np.stack([x, y, x + side, y + side], axis=1)


def buffer_gate(bounds, split, buffer_m, crs=UTM):
    names = [QUARANTINE if one == SET_ASIDE else one for one in split]
    table = SampleTable.of(len(bounds), sample_id=[f"{i:06d}" for i in range(len(bounds))], bounds=bounds, crs=crs)
    settings = SplitSettings(buffer_m=buffer_m, required_splits=())
    return next(one for one in check(table.with_splits(names), settings) if one.id == "buffer")


@pytest.mark.parametrize("way", [{"side_m": 10_000.0}, {"clusters": 15}, {}])
@pytest.mark.parametrize("bounds", [points(), tiles()], ids=["points", "tiles"])
def test_what_is_proposed_keeps_its_buffer(bounds, way):
    found = propose(bounds, UTM, buffer_m=1000.0, **way)
    assert buffer_gate(bounds, found.split, 1000.0).status == "pass"
    assert {one.id: one.status for one in found.gates}["buffer"] == "pass"
    assert set(found.split) == {"train", "test", SET_ASIDE}


def test_nobody_is_set_aside_without_need():
    """By brute force: a train sample is set aside where a test sample lies within the buffer, and only there."""
    bounds = points(300)
    found = propose(bounds, UTM, buffer_m=2000.0, side_m=15_000.0)
    lon, lat = pyproj.Transformer.from_crs(UTM, "EPSG:4326", always_xy=True).transform(bounds[:, 0], bounds[:, 1])
    geod = pyproj.Geod(ellps="WGS84")
    split = np.array(found.split)
    test = np.flatnonzero(split == "test")
    for at in np.flatnonzero(split != "test"):
        metres = geod.inv(*(np.full(len(test), one[at]) for one in (lon, lat)), lon[test], lat[test])[2].min()
        assert (split[at] == SET_ASIDE) == (metres <= 2000.0)


def test_the_price_adds_up():
    found = propose(points(), UTM, buffer_m=2000.0, shares={"train": 0.6, "validation": 0.2, "test": 0.2})
    left = Counter(found.split)
    assert found.set_aside == left[SET_ASIDE] > 0
    assert set(found.before) == {"train", "val", "test"}
    assert all(found.before[role] - found.cost[role] == left[role] for role in found.before)
    assert sum(found.before.values()) == 600
    # The more protected side stays.
    assert found.cost["test"] == 0
    assert found.cost["train"] >= found.cost["val"]


def test_groups_stay_whole_and_near_the_shares():
    found = propose(points(2000), UTM, buffer_m=0.0, side_m=5000.0)
    roles = {}
    for group, role in zip(found.group, found.split, strict=True):
        roles.setdefault(group, set()).add(role)
    assert {len(one - {SET_ASIDE}) for one in roles.values()} == {1}
    assert found.before["train"] / 2000 == pytest.approx(0.7, abs=0.01)


@pytest.mark.parametrize("way", [{"side_m": 8000.0}, {"clusters": 12}, {}])
def test_the_order_of_rows_does_not_matter(way):
    bounds = np.concatenate([points(300), points(300)[:50]])
    turned = np.random.default_rng(4).permutation(len(bounds))
    one = propose(bounds, UTM, buffer_m=1500.0, **way)
    two = propose(bounds[turned], UTM, buffer_m=1500.0, **way)
    assert [one.split[k] for k in turned] == list(two.split)
    assert [one.group[k] for k in turned] == list(two.group)
    assert one.cost == two.cost


def test_clusters_are_compact():
    """Three clouds 100 km apart are three clusters."""
    clouds = np.concatenate([points(50, 5000.0, seed) + 100_000 * seed for seed in range(3)])
    found = propose(clouds, UTM, buffer_m=2000.0, clusters=3)
    assert [len(set(found.group[a : a + 50])) for a in (0, 50, 100)] == [1, 1, 1]
    assert (len(set(found.group)), found.set_aside) == (3, 0)


def test_systems_mix_and_the_antimeridian_is_no_border():
    """A train sample at 179.99° E is set aside for a test one at 179.99° W, 2.2 km away."""
    lon = np.concatenate([np.linspace(178.0, 179.99, 60), np.linspace(-179.99, -178.0, 60)])
    bounds = np.stack([lon, 0 * lon, lon, 0 * lon], axis=1)
    found = propose(bounds, ["EPSG:4326"] * 120, buffer_m=5000.0, side_m=25_000.0)
    assert buffer_gate(bounds, found.split, 5000.0, "EPSG:4326").status == "pass"
    mixed = np.concatenate([bounds[:60], points(60)])
    assert len(propose(mixed, ["EPSG:4326"] * 60 + [UTM] * 60, buffer_m=1000.0).split) == 120


@pytest.mark.parametrize(
    ("more", "error", "says"),
    [
        ({"side_m": 1000.0, "clusters": 3}, ConfigError, "exclude each other"),
        ({"side_m": 1e6}, InputError, "1 groups are too few for 2 splits: .*smaller"),
        ({"side_m": 3000.0, "buffer_m": 30_000.0}, InputError, "leaves nothing of train"),
        ({"clusters": 700}, ConfigError, "must lie between 2 and the number of places, 600"),
        ({"shares": {"train": 0.7, "tset": 0.3}}, ConfigError, "did you mean 'test'"),
        ({"shares": {"train": 0.7, "test": 0.7}}, ConfigError, "add up to 1"),
        ({"buffer_m": -1.0}, ConfigError, "buffer_m"),
    ],
)
def test_what_cannot_be_is_refused(more, error, says):
    with pytest.raises(error, match=says):
        propose(points(), UTM, **{"buffer_m": 1000.0, **more})


def test_a_sample_without_a_place_is_refused():
    bounds = points(40)
    bounds[7] = np.nan
    with pytest.raises(InputError, match="1 of 40 without one; first row 8"):
        propose(bounds, UTM, buffer_m=100.0)
    with pytest.raises(InputError, match="40 of 40"):
        propose(points(40), "pixel", buffer_m=100.0)
    with pytest.raises(InputError, match="0 of 0"):
        propose(np.zeros((0, 4)), UTM, buffer_m=100.0)


@pytest.fixture
def cli(capsys, monkeypatch):
    """Run ``geoeval split propose``; returns exit code, stdout and stderr."""
    from geoeval.cli.main import run

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["geoeval", "split", "propose", *map(str, arguments)])
        capsys.readouterr()
        code = 0
        try:
            run()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def listed(tmp_path):
    """A CSV of points with a value that changes over 8 km."""
    bounds = points(900)
    path = tmp_path / "points.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "x", "y", "yield"])
        for at, (x, y, _, _) in enumerate(bounds):
            rows.writerow([f"{at:04d}", x, y, np.sin(x / 4000) + np.cos(y / 4000)])
    return path


def test_the_command_prints_the_price_and_the_range(cli, listed, tmp_path):
    out = tmp_path / "split.csv"
    code, said, _ = cli(listed, "--crs", UTM, "--buffer", 2000, "--value", "yield", "--out", out)
    assert code == 0
    with out.open() as file:
        rows = list(csv.DictReader(file))
    aside = sum(row["split"] == SET_ASIDE for row in rows)
    assert f"the buffer of 2000 m costs {aside} of 900 samples" in said
    assert "buffer pass" in said
    assert "range about" in said
    assert "is shorter" in said
    assert [row["id"] for row in rows] == [f"{at:04d}" for at in range(900)]
    assert len({row["split_group"] for row in rows}) > 1


def test_a_second_run_writes_the_same_bytes_and_another_file_stays(cli, listed, tmp_path):
    for name in ("a.csv", "a.gpkg"):
        again = tmp_path / f"again-{name}"
        common = (listed, "--crs", UTM, "--buffer", 1000, "--blocks", 10_000)
        assert [cli(*common, "--out", target)[0] for target in (tmp_path / name, again, again)] == [0, 0, 0]
        assert (tmp_path / name).read_bytes() == again.read_bytes()
        code, _, err = cli(*common[:-1], 12_000, "--out", again)
        assert (code, "exists already" in err) == (2, True)
        assert (tmp_path / name).read_bytes() == again.read_bytes()
    assert not list(tmp_path.glob(".partial*"))


def test_shuffled_rows_get_the_same_splits(cli, listed, tmp_path):
    lines = listed.read_text().splitlines()
    turned = tmp_path / "turned.csv"
    turned.write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n")
    found = []
    for source in (listed, turned):
        out = tmp_path / f"{source.stem}-out.csv"
        assert cli(source, "--crs", UTM, "--buffer", 1500, "--clusters", 20, "--out", out)[0] == 0
        found.append(sorted(out.read_text().splitlines()))
    assert found[0] == found[1]


def test_a_layer_keeps_its_geometry_and_its_types(cli, tmp_path):
    import geopandas
    import shapely

    frame = geopandas.GeoDataFrame(
        {"tile": range(400), "share": np.arange(400) / 400}, geometry=shapely.box(*tiles().T), crs=UTM
    )
    source = tmp_path / "tiles.gpkg"
    frame.to_file(source)
    assert cli(source, "--buffer", 1500, "--blocks", 5000, "--out", tmp_path / "out.gpkg")[0] == 0
    read = geopandas.read_file(tmp_path / "out.gpkg")
    assert (read["tile"].tolist(), read["share"].tolist()) == (frame["tile"].tolist(), frame["share"].tolist())
    assert read.geometry.geom_equals(frame.geometry).all()
    assert (read.crs, set(read["split"])) == (frame.crs, {"train", "test", SET_ASIDE})
    assert cli(source, "--buffer", 1500, "--blocks", 5000, "--out", tmp_path / "out.csv")[0] == 0
    with (tmp_path / "out.csv").open() as file:
        row = next(csv.DictReader(file))
    assert row["crs"] == UTM
    assert shapely.from_wkt(row["wkt"]).equals(frame.geometry[0])


def test_json_is_one_object(cli, listed, tmp_path):
    code, said, err = cli(
        listed, "--crs", UTM, "--buffer", 500, "--value", "yield", "--out", tmp_path / "a.csv", "--json"
    )
    told = json.loads(said)
    assert (code, told["samples"], told["gates"]["buffer"]["status"]) == (0, 900, "pass")
    assert told["set_aside"] == sum(one["set_aside"] for one in told["splits"].values())
    assert told["autocorrelation"]["column"] == "yield"
    assert "guessed" in err


def test_no_range_is_said(cli, tmp_path):
    path = tmp_path / "few.csv"
    path.write_text("lon,lat,v\n" + "".join(f"{5 + at / 10},50,{at % 3}\n" for at in range(25)))
    code, said, _ = cli(path, "--buffer", 100, "--blocks", 10_000, "--value", "v", "--out", tmp_path / "out.csv")
    assert code == 0
    assert "no range found: fewer than 30 points" in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--shares", "train=0.7"], "add up to 1"),
        (["--shares", "train"], "expected each split once"),
        (["--shares", "train=0.5,train=0.5"], "expected each split once"),
        (["--value", "yeild"], "did you mean 'yield'"),
        (["--column", "id"], "has a column 'id' already"),
        (["--out", "split.shp"], r"written as \.csv or \.gpkg"),
        (["--bounds", "x,z"], "expected column 'z'"),
    ],
)
def test_wrong_input_ends_in_a_message_and_no_file(cli, listed, tmp_path, monkeypatch, arguments, says):
    import re

    monkeypatch.chdir(tmp_path)
    code, _, err = cli(listed, "--crs", UTM, "--buffer", 1000, "--out", "split.csv", *arguments)
    assert code == 2
    assert re.search(says, err), err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["points.csv"]


def test_a_split_that_is_there_is_not_written_over(cli, tmp_path):
    path = tmp_path / "have.csv"
    path.write_text("lon,lat,Split\n" + "".join(f"{5 + at / 10},50,a\n" for at in range(25)))
    code, _, err = cli(path, "--buffer", 100, "--out", tmp_path / "out.csv")
    assert (code, "has a column 'Split' already" in err) == (2, True)


def test_rows_of_several_systems_are_no_layer(tmp_path):
    from geoeval.splits.propose_files import check_target, read_places

    path = tmp_path / "mixed.csv"
    path.write_text("x,y,epsg\n500000,5600000,32631\n500000,5600000,32632\n")
    placed = read_places(path)
    check_target(placed, tmp_path / "out.csv", "split")
    with pytest.raises(InputError, match="2 systems; write a CSV"):
        check_target(placed, tmp_path / "out.gpkg", "split")
    with pytest.raises(ColumnError, match="already"):
        check_target(placed, tmp_path / "out.csv", "EPSG")


@pytest.mark.shared
def test_a_real_list_is_split_again_without_its_leaks(shared_data, cli, tmp_path):
    """The published tiles of the same list leak; a proposal for them does not, and says what that costs."""
    source = shared_data / "split_manifests" / "delmarva_naip_tiles.csv"
    out = tmp_path / "again.csv"
    code, said, _ = cli(source, "--buffer", 2000, "--column", "proposed", "--out", out)
    assert (code, "of 2551 samples" in said) == (0, True)
    with out.open() as file:
        rows = list(csv.DictReader(file))
    bounds = np.array([[float(row[side]) for side in ("minx", "miny", "maxx", "maxy")] for row in rows])
    crs = [f"EPSG:{row['epsg']}" for row in rows]
    assert buffer_gate(bounds, [row["proposed"] for row in rows], 2000.0, crs).status == "pass"
    assert buffer_gate(bounds, [row["split"] for row in rows], 2000.0, crs).status == "fail"
