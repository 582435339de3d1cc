"""COCO datasets and result lists."""

from __future__ import annotations

import json

import pytest

from geoeval.errors import InputError
from geoeval.options import Pairing, Source
from geoeval.readers.units import object_units

DATASET = {
    "images": [{"id": number, "file_name": f"img/{name}.jpg"} for number, name in enumerate("abc")],
    "categories": [{"id": 3, "name": "car"}, {"id": 4, "name": "bus"}],
    "annotations": [
        {"id": 0, "image_id": 0, "category_id": 3, "bbox": [0, 0, 10, 10], "area": 80, "iscrowd": 0,
         "segmentation": [[0, 0, 10, 0, 10, 8, 0, 8]]},
        {"id": 1, "image_id": 0, "category_id": 4, "bbox": [20, 20, 5, 5], "area": 25, "iscrowd": 1,
         "segmentation": {"counts": [1], "size": [1, 1]}},
        {"id": 2, "image_id": 1, "category_id": 4, "bbox": [1, 1, 5, 5], "area": 25, "iscrowd": 0, "ignore": 1},
    ],
}  # fmt: skip
RESULTS = [
    {"image_id": 0, "category_id": 3, "bbox": [0, 0, 10, 9], "score": 0.9},
    {"image_id": 1, "category_id": 9, "bbox": [0, 0, 4, 4], "score": 0.2},
]


def units(tmp_path, dataset=DATASET, results=RESULTS, family="detection", **options):
    (tmp_path / "gt.json").write_text(json.dumps(dataset))
    (tmp_path / "dt.json").write_text(json.dumps(results))
    return object_units(Source(tmp_path / "gt.json"), Source(tmp_path / "dt.json"), Pairing(**options), family=family)


def test_every_image_is_a_unit_even_without_objects(tmp_path):
    found = units(tmp_path)
    pairs = {unit.id: unit.load() for unit in found.units}
    assert [(name, len(pair.reference), len(pair.prediction)) for name, pair in pairs.items()] == [
        ("a", 2, 1),
        ("b", 1, 1),
        ("c", 0, 0),
    ]
    assert pairs["a"].reference.label.tolist() == ["car", "bus"]
    assert pairs["a"].reference.id.tolist() == ["0", "1"]
    assert pairs["a"].reference.cluster.tolist() == ["a", "a"]
    assert pairs["a"].unit_of_length == "px"


def test_either_flag_makes_a_region_ignored(tmp_path):
    pairs = {unit.id: unit.load() for unit in units(tmp_path).units}
    assert pairs["a"].reference.ignore.tolist() == [False, True]
    assert pairs["b"].reference.ignore.tolist() == [True]


def test_a_class_that_the_dataset_lacks_keeps_its_number(tmp_path):
    pairs = {unit.id: unit.load() for unit in units(tmp_path).units}
    assert pairs["b"].prediction.label.tolist() == ["9"]


def test_detection_takes_boxes_and_footprints_take_outlines(tmp_path):
    assert units(tmp_path).units[0].load().reference.geometry[0].area == 100.0
    found = units(tmp_path, family="footprint")
    assert found.units[0].load().reference.geometry[0].area == 80.0
    assert "mask-run-length" in {finding.code for finding in found.findings}


def test_results_may_be_empty(tmp_path):
    found = units(tmp_path, results=[])
    assert [len(unit.load().prediction) for unit in found.units] == [0, 0, 0]
    assert found.units[0].load().prediction.score is not None


def test_an_unknown_image_is_refused(tmp_path):
    stray = [{"image_id": 77, "category_id": 3, "bbox": [0, 0, 1, 1], "score": 0.5}]
    with pytest.raises(InputError, match=r"does not know: 77"):
        units(tmp_path, results=stray)
    found = units(tmp_path, results=stray, on_unknown_unit="drop")
    assert sum(len(unit.load().prediction) for unit in found.units) == 0


def test_a_negative_width_or_a_missing_image_is_refused(tmp_path):
    with pytest.raises(InputError, match="negative one in record 0"):
        units(tmp_path, results=[{"image_id": 0, "category_id": 3, "bbox": [5, 5, -1, 2], "score": 0.5}])
    with pytest.raises(InputError, match=r"'category_id'.*record 0"):
        units(tmp_path, results=[{"image_id": 0, "category_id": None, "bbox": [5, 5, 1, 2], "score": 0.5}])


def test_equal_boxes_on_two_images_have_two_ids(tmp_path):
    box = {"category_id": 3, "bbox": [0, 0, 4, 4], "score": 0.5}
    results = [{"image_id": 0, **box}, {"image_id": 1, **box}]
    ids = [unit.load().prediction.id[0] for unit in units(tmp_path, results=results).units[:2]]
    swapped = [unit.load().prediction.id[0] for unit in units(tmp_path, results=results[::-1]).units[:2]]
    assert ids[0] != ids[1]
    assert ids == swapped
