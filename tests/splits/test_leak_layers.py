"""Offending pairs as a table, JSON and a GeoPackage of fixed bytes."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from geoeval.splits.leak_layers import check_json, layer_bytes, pairs_csv
from geoeval.splits.list_check import Demands, check_list
from geoeval.splits.lists import SplitList
from geoeval.splits.table import SampleTable


def check_of(bounds, split, crs="EPSG:32631", **demands):
    ids = [f"s{i}" for i in range(len(bounds))]
    table = SampleTable.of(len(bounds), sample_id=ids, split=split, bounds=bounds, crs=crs)
    return check_list(SplitList(table, identities=("sample_id",)), Demands(**demands))


@pytest.fixture
def leaking():
    bounds = [[500000, 0, 500010, 10], [500005, 5, 500015, 15], [590000, 0, 590010, 10]]
    return check_of(bounds, ["train", "test", "test"], min_area_m2=1)


def read_layers(data, path):
    import pyogrio.raw

    path.write_bytes(data)
    return {layer: pyogrio.raw.read(path, layer=layer) for layer in ("boxes", "lines")}


def test_equal_findings_give_equal_bytes(leaking):
    assert layer_bytes(leaking) == layer_bytes(leaking)


def test_the_layers_hold_the_offending_boxes_and_a_line_for_each_pair(leaking, tmp_path):
    import shapely

    found = read_layers(layer_bytes(leaking), tmp_path / "leak.gpkg")
    meta, _, shapes, fields = found["boxes"]
    values = dict(zip(meta["fields"], fields, strict=True))
    assert values["sample_id"].tolist() == ["s0", "s1"]
    assert values["gates"].tolist() == ["buffer, overlap"] * 2
    assert shapely.bounds(shapely.from_wkb(shapes[0])).tolist() == [500000, 0, 500010, 10]
    meta, _, shapes, fields = found["lines"]
    values = dict(zip(meta["fields"], fields, strict=True))
    assert values["gate"].tolist() == ["buffer", "overlap"]
    assert values["metres"][0] == 0
    assert values["area_m2"][1] == 25
    assert shapely.get_coordinates(shapely.from_wkb(shapes[0])).tolist() == [[500005, 5], [500010, 10]]


def test_a_line_across_the_antimeridian_goes_the_short_way(tmp_path):
    import shapely

    found = check_of([[179.99, 0, 179.995, 1], [-179.995, 0, -179.99, 1]], ["train", "test"], "EPSG:4326")
    line = shapely.from_wkb(read_layers(layer_bytes(found), tmp_path / "leak.gpkg")["lines"][2][0])
    assert line.length < 0.05
    assert len(line.geoms) == 2


def test_boxes_of_several_systems_are_drawn_in_degrees(tmp_path):
    bounds = [[500000, 5600000, 501000, 5601000], [3.0, 50.5, 3.01, 50.6]]
    found = check_of(bounds, ["train", "test"], ["EPSG:32631", "EPSG:4326"])
    meta, _, shapes, _ = read_layers(layer_bytes(found), tmp_path / "leak.gpkg")["boxes"]
    assert meta["crs"] == "EPSG:4326"
    assert len(shapes) == 2


def test_without_a_leak_or_without_a_place_there_is_no_layer():
    assert layer_bytes(check_of([[500000, 0, 500010, 10]], ["train"])) is None
    table = SampleTable.of(2, sample_id=["a", "a"], split=["train", "test"])
    assert layer_bytes(check_list(SplitList(table, identities=("sample_id",)))) is None


def test_table_and_json_name_every_pair_with_its_evidence(leaking):
    rows = list(csv.DictReader(io.StringIO(pairs_csv(leaking).decode())))
    assert [(row["gate"], row["first"], row["second"], row["metres"], row["area_m2"]) for row in rows] == [
        ("buffer", "s0", "s1", "0.0", ""),
        ("overlap", "s0", "s1", "", "25.0"),
    ]
    said = check_json(leaking)
    overlap = next(one for one in said["gates"] if one["id"] == "overlap")
    assert said["status"] == "fail"
    assert (overlap["count"], overlap["samples"]) == (1, {"test": {"train": 1}, "train": {"test": 1}})
    assert overlap["pairs"][0]["evidence"] == {"area_m2": 25.0}


def test_counts_stay_exact_where_few_pairs_are_named():
    bounds = np.tile([500000.0, 0.0, 500010.0, 10.0], (20, 1))
    found = check_of(bounds, ["train", "test"] * 10, min_area_m2=1, pairs=3)
    assert [(one.result.id, one.result.count, len(one.result.witnesses)) for one in found.gates if one.facts][1:] == [
        ("buffer", 100, 3),
        ("overlap", 100, 3),
    ]
