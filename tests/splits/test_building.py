"""From a source to manifests: order never matters, components stay whole, nothing is written that does not hold."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from geoeval.errors import BundleError, ConfigError, InputError
from geoeval.splits import SplitRefused, SplitSettings, build, read_source, worst, write_manifests
from geoeval.splits.components import components
from geoeval.splits.quarantine import quarantined
from geoeval.splits.record import CONTRACT, ROLES, Sample
from geoeval.splits.source import source_of
from geoeval.splits.table import SampleTable

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "splits"
HALVES = {"train": 0.5, "test": 0.5}
KEY = b"a key of the tests only"


def plain(n, **fields):
    """Samples without files, each on its own place 0.2 degrees from the next."""
    return [
        Sample(
            sample_id=f"s{i:03d}",
            task="detection",
            bbox=(round(5 + 0.2 * (i % 50), 3), 50.0 + i // 50, round(5.001 + 0.2 * (i % 50), 3), 50.001 + i // 50),
            crs="EPSG:4326",
            **{name: value(i) for name, value in fields.items()},
        )
        for i in range(n)
    ]


def loose(shares, **more):
    """Settings for samples that say little beside their place."""
    return SplitSettings(shares=shares, required=(), **more)


def source(samples):
    return source_of(samples, root=Path())


def split_of(result):
    return dict(zip(result.table.ids(range(result.table.n)), result.table.texts["split"].to_pylist(), strict=True))


def test_shuffling_the_source_and_two_workers_change_no_hash(world):
    records = [world.record(f"s{i}", i // 2) for i in range(8)]
    settings = SplitSettings(shares=HALVES)
    one = build(world.write(records), settings)
    random.Random(3).shuffle(records)
    two = build(world.write(records, "shuffled.jsonl"), settings, workers=2)
    assert one.source_sha256 == two.source_sha256
    assert {k: m.sha256 for k, m in one.manifests.items()} == {k: m.sha256 for k, m in two.manifests.items()}
    assert one.report == two.report


def test_jsonl_and_parquet_say_the_same(world):
    import pyarrow as pa
    import pyarrow.parquet as pq

    records = [world.record(f"s{i}", i, files=False) for i in range(4)]
    path = world.root / "source.parquet"
    pq.write_table(pa.Table.from_pylist(records), path)
    assert read_source(path).sha256 == read_source(world.write(records)).sha256


def test_a_geoparquet_gives_bounds_and_system(world):
    import geopandas as gpd
    import shapely

    frame = gpd.GeoDataFrame(
        {"sample_id": ["b", "a"], "task": "t", "strata.region": ["north", None]},
        geometry=[shapely.box(0, 0, 1, 1), shapely.box(5, 5, 6, 7)],
        crs="EPSG:32631",
    )
    frame.to_parquet(world.root / "source.parquet")
    table = read_source(world.root / "source.parquet").table
    assert table.bounds.tolist() == [[5, 5, 6, 7], [0, 0, 1, 1]]
    assert (table.text("crs", 0), table.strata["region"].to_pylist()) == ("EPSG:32631", [None, "north"])


def test_declared_hashes_are_held_to_the_bytes(world):
    record = world.record("a", 0, label_sha256="0" * 64)
    with pytest.raises(InputError, match=r"record 'a': label_sha256 is declared as 0000"):
        read_source(world.write([record]))


def test_a_record_changed_after_hashing_is_refused(world):
    record = world.record("a", 0, files=False, record_sha256="0" * 64)
    with pytest.raises(InputError, match="record 'a': record_sha256 expected 0000"):
        read_source(world.write([record]))


def test_duplicate_ids_are_refused_by_name(world):
    path = world.write([world.record("a", 0, files=False), world.record("a", 1, files=False)])
    with pytest.raises(InputError, match="first 'a'"):
        read_source(path)


def test_listing_instead_of_refusing_keeps_the_rest(world):
    path = world.write([world.record("a", 0, files=False), {"sample_id": "b"}])
    table = read_source(path, on_invalid="list").table
    assert table.ids([0]) == ("a",)
    assert "'task' is required" in table.invalid[0].says


def test_required_fields_refuse_the_unknown(world):
    path = world.write([world.record("a", 0, files=False, group_id="unknown")])
    with pytest.raises(InputError, match="record 'a': required and unknown: group_id"):
        read_source(path, required=("group_id",))


def test_every_record_that_leaves_a_required_field_open_is_named():
    samples = plain(14, group_id=lambda i: "unknown" if i < 12 else "g")
    with pytest.raises(InputError, match="12 records say nothing") as caught:
        source_of(samples[::-1], root=Path(), required=("bbox", "group_id"))
    lines = str(caught.value).splitlines()
    assert lines[1:11] == [f"  record 's{i:03d}': required and unknown: group_id" for i in range(10)]
    assert lines[11] == "  … and 2 more records"
    assert "--optional FIELD" in lines[12]


def test_a_field_that_no_file_can_fill_is_refused_before_any_file_is_opened(world):
    record = world.record("a", 0, group_id="unknown")
    (world.root / record["raw_image"]).write_bytes(b"no image")
    with pytest.raises(InputError, match="record 'a': required and unknown: group_id"):
        read_source(world.write([record]), required=("group_id", "raw_image_sha256"))


def test_what_the_files_fill_is_not_asked_of_the_record(world):
    result = build(world.write([world.record(f"s{i}", i) for i in range(4)]), SplitSettings(shares=HALVES))
    demanded = result.manifests["development"].content["settings"]["required"]
    assert sorted(demanded) == sorted(CONTRACT)


def test_the_order_in_which_fields_are_demanded_changes_no_manifest():
    one, two = (
        build(source(plain(8)), SplitSettings(shares=HALVES, required=fields)).manifests["development"].sha256
        for fields in (("task", "bbox"), ("bbox", "task", "bbox"))
    )
    assert one == two


def test_a_source_that_code_read_is_held_to_the_contract_as_well():
    with pytest.raises(SplitRefused, match="record_invalid") as caught:
        build(source(plain(8)), SplitSettings(shares=HALVES))
    said = str(caught.value)
    for field in CONTRACT:
        open_ = f"{field}: required, and 8 samples say nothing, first 's000', 's001', 's002', 's003', 's004'"
        assert (open_ in said) is (field not in ("task", "bbox", "record_sha256"))
    assert "declare them optional" in said


def test_bounds_in_pixels_are_no_box_on_earth():
    samples = [Sample(sample_id="a", task="t", bbox=(0, 0, 1, 1), crs="pixel")]
    with pytest.raises(InputError, match="record 'a': required and unknown: bbox"):
        source_of(samples, root=Path(), required=("bbox",))


def test_a_stratum_of_the_same_name_fills_no_field():
    samples = plain(8, strata=lambda i: {"group_id": f"g{i}"})
    with pytest.raises(SplitRefused, match="group_id: required, and 8 samples say nothing"):
        build(source(samples), SplitSettings(shares=HALVES, required=("group_id",)))


def test_every_bad_line_is_named(world):
    good = world.record("a", 0, files=False)
    path = world.write([{**good, "sample_id": f"s{i}", "bbox": [0, 1, 1, 0]} for i in range(12)])
    with pytest.raises(InputError, match="record 's0'") as caught:
        read_source(path)
    lines = str(caught.value).splitlines()
    assert [f"line {i + 1}, record 's{i}'" in lines[i] for i in range(10)] == [True] * 10
    assert lines[10:] == ["… and 2 more records"]


def test_components_stay_whole_and_shares_are_near():
    result = build(source(plain(200, group_id=lambda i: f"g{i // 4}")), loose(HALVES))
    by_group = {}
    for name, split in split_of(result).items():
        by_group.setdefault(int(name[1:]) // 4, set()).add(split)
    assert all(len(splits) == 1 for splits in by_group.values())
    assert Counter(split_of(result).values()) == {"train": 100, "test": 100}
    assert not any(one.off for one in result.balance)


def test_strata_are_balanced_each_for_itself():
    samples = plain(120, strata=lambda i: {"region": "north" if i % 3 else "south"})
    result = build(source(samples), loose({"train": 0.75, "test": 0.25}, strata=("region",)))
    got = {(one.split, dict(one.stratum)["region"]): one.got for one in result.balance}
    assert got == {("train", "north"): 60, ("test", "north"): 20, ("train", "south"): 30, ("test", "south"): 10}


def test_what_cannot_be_balanced_is_reported_with_numbers():
    result = build(
        source(plain(10, group_id=lambda i: "big" if i < 8 else f"g{i}")),
        loose(HALVES),
    )
    assert sorted((one.wanted, one.got, one.off) for one in result.balance) == [(5.0, 2, True), (5.0, 8, True)]
    assert (result.giant.samples, result.giant.relation) == (8, "group_id")


def test_background_test_takes_background_only():
    samples = plain(60, strata=lambda i: {"content": "background" if i % 6 == 0 else "objects"})
    shares = {"train": 0.8, "test": 0.1, "background-test": 0.1}
    result = build(source(samples), loose(shares, background=("content", "background")))
    chosen = [name for name, split in split_of(result).items() if split == "background-test"]
    assert chosen
    assert all(int(name[1:]) % 6 == 0 for name in chosen)


def test_a_declared_split_is_kept_and_takes_its_component_along():
    samples = plain(8, group_id=lambda i: f"g{i // 2}", split=lambda i: "test" if i == 5 else None)
    found = split_of(build(source(samples), loose(HALVES)))
    assert (found["s004"], found["s005"]) == ("test", "test")


def test_declared_splits_that_leak_fail_the_build_and_name_the_pair():
    samples = plain(6, group_id=lambda i: f"g{i // 2}", split=lambda i: ("train", "test")[i % 2])
    with pytest.raises(SplitRefused, match=r"'s000' \(train\) and 's001' \(test\): group_id, value g0") as caught:
        build(source(samples), loose(HALVES))
    assert caught.value.gates[0].count == 3


def test_too_few_components_for_the_splits_fail_the_build():
    with pytest.raises(SplitRefused, match="split_missing"):
        build(source(plain(4, group_id=lambda i: "one")), loose(HALVES))


def test_a_small_share_still_gets_a_sample():
    result = build(source(plain(12)), loose({"train": 0.98, "val": 0.01, "test": 0.01}))
    assert set(split_of(result).values()) == {"train", "val", "test"}


def test_a_chain_of_links_is_one_component():
    """a and b share a raster, b and c lie 700 m apart, c and d show one object."""
    table = SampleTable.of(
        5,
        sample_id=list("abcde"),
        parent_raster_id=["p", "p", None, None, "q"],
        object_ids=[["1"], ["2"], ["3"], ["3"], ["4"]],
        bounds=[[x, 50, x + 0.001, 50.001] for x in (5, 5.5, 5.511, 6, 7)],
        crs="EPSG:4326",
    )
    found = components(table, SplitSettings())
    assert found.label.tolist() == [0, 0, 0, 0, 1]
    assert found.maker in ("parent_raster_id", "object_ids", "distance")


def mosaic(n=20):
    """A mosaic of n x n touching tiles of about 1 km: merging holds it together whole."""
    rows, columns = np.divmod(np.arange(n * n), n)
    west, south = np.round(5 + 0.014 * columns, 6), np.round(50 + 0.009 * rows, 6)
    bounds = np.stack([west, south, np.round(west + 0.014, 6), np.round(south + 0.009, 6)], axis=1)
    return [
        Sample(sample_id=f"t{i:04d}", task="t", bbox=tuple(box), crs="EPSG:4326")
        for i, box in enumerate(bounds.tolist())
    ]


def test_a_mosaic_percolates_when_merged_and_the_relation_is_named():
    with pytest.raises(SplitRefused, match="split_missing"):
        build(source(mosaic()), loose(HALVES))
    found = components(source(mosaic()).table, SplitSettings())
    assert (found.largest, found.maker) == (400, "distance")


def test_quarantine_splits_a_mosaic_by_blocks_at_a_price():
    settings = SplitSettings(
        shares={"train": 0.7, "test": 0.3}, buffer_mode="quarantine", buffer_m=500.0, block_m=8000.0, required=()
    )
    result = build(source(mosaic()), settings)
    splits = Counter(split_of(result).values())
    assert worst(result.gates) != "fail"
    assert result.gates[3].status == "pass"
    assert set(result.manifests) == {"development", "protected", "quarantine"}
    assert result.quarantine.cost == {"train": splits["quarantine"]}
    assert len(result.manifests["quarantine"].samples) == splits["quarantine"] < 160


def test_in_quarantine_the_less_protected_side_leaves():
    """Three in a row, each within reach of the next: challenge keeps its place, test leaves, so train may stay."""
    bounds = [[5 + 0.02 * i, 50, 5.001 + 0.02 * i, 50.001] for i in range(3)]
    table = SampleTable.of(3, sample_id=list("abc"), bounds=bounds, crs="EPSG:4326")
    found = quarantined(table, ["challenge", "test", "train"], 2000.0)
    assert found.split == ("challenge", "quarantine", "train")


def test_challenge_needs_a_key_outside_the_fixture():
    samples = source(plain(4))
    settings = loose({"train": 0.5, "challenge": 0.5})
    with pytest.raises(ConfigError, match="need a key"):
        build(samples, settings)
    assert build(samples, settings, key=KEY).report["production_accuracy_use_allowed"] is False


def test_writing_is_whole_or_not_at_all_and_equal_bytes_are_success(tmp_path):
    result = build(source(plain(8)), loose(HALVES))
    paths = write_manifests(result, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "development.json",
        "protected.json",
        "split.json",
    ]
    assert write_manifests(result, tmp_path / "out") == paths
    paths["report"].write_bytes(b"{}")
    with pytest.raises(BundleError, match="something else"):
        write_manifests(result, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_crash_while_writing_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    result = build(source(plain(8)), loose(HALVES))
    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(BundleError, match="No space left on device"):
        write_manifests(result, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_the_report_names_no_sample(tmp_path):
    result = build(source(plain(8)), loose(HALVES))
    text = write_manifests(result, tmp_path / "out")["report"].read_text()
    assert "s00" not in text
    assert json.loads(text)["manifests"]["protected"] == result.manifests["protected"].sha256


def fixture_settings():
    return SplitSettings(
        shares={
            "train": 0.43,
            "val": 0.14,
            "calibration": 0.14,
            "test": 0.14,
            "background-test": 0.05,
            "challenge": 0.10,
        },
        strata=("content",),
        background=("content", "background"),
    )


def test_the_fixture_has_21_samples_over_all_six_roles():
    result = build(FIXTURE / "source.jsonl", fixture_settings(), open_fixture=True)
    splits = Counter(split_of(result).values())
    assert result.table.n == 21
    assert sorted(splits) == sorted(ROLES)
    assert splits["train"] > 7
    assert splits["background-test"] == 1
    assert worst(result.gates) == "pass"
    assert result.report["production_accuracy_use_allowed"] is False


def test_the_fixture_guards_training_and_evaluation():
    from geoeval.errors import LeakageError
    from geoeval.splits import assert_training_inputs_safe, bind_evaluation, read_manifest

    development, protected = (
        read_manifest(FIXTURE / "manifests" / f"{name}.json", open_fixture=True)
        for name in ("development", "protected")
    )
    opened = {"sha256": protected.sha256, "root": FIXTURE, "open_fixture": True}
    passed = assert_training_inputs_safe(development.samples, protected, **opened)
    assert passed.table.n == len(development.samples)
    sealed = [one for one in protected.samples if one["split"] == "challenge"]
    with pytest.raises(LeakageError, match="challenge is sealed"):
        bind_evaluation(protected, protected.sha256, open_fixture=True).require([sealed[0]["sample_id"]])
    record = {"sample_id": "x", "task": "t", "raw_image": sealed[0]["raw_image"]}
    with pytest.raises(LeakageError, match=f"protected case {sealed[0]['sample_id']!r}"):
        assert_training_inputs_safe([record], protected, **opened)


def test_the_fixture_manifests_are_what_the_code_builds(tmp_path):
    from geoeval.splits.manifest import read_manifest

    result = build(FIXTURE / "source.jsonl", fixture_settings(), open_fixture=True)
    there = read_manifest(FIXTURE / "manifests" / "protected.json", open_fixture=True)
    if there.content["perceptual"] != result.manifests["protected"].content["perceptual"]:
        pytest.skip("the fixture's perceptual hashes were made with other versions of the image libraries")
    paths = write_manifests(result, tmp_path / "out")
    for path in paths.values():
        assert path.read_bytes() == (FIXTURE / "manifests" / path.name).read_bytes()
