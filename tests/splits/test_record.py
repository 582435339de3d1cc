"""What a sample record must say, and what counts as not said."""

from __future__ import annotations

import dataclasses
import json

import pytest

from geoeval.errors import InputError
from geoeval.splits.record import Sample, known, record_hash, sample_from_json, sample_from_mapping


def line(**fields):
    return json.dumps({"sample_id": "a", "task": "detection", **fields})


def test_a_record_holds_every_field_of_the_contract():
    sample = sample_from_json(
        line(
            split="test",
            group_id="g",
            source_family="s",
            temporal_family="t",
            acquisition_id="q",
            parent_raster_id="p",
            native_feature_ids=["n2", "n1"],
            object_ids=["o"],
            bbox=[1, 2, 3, 4],
            crs="EPSG:32631",
            raw_image_sha256="0" * 64,
            perceptual_hash="0" * 16,
            strata={"region": "north"},
        ),
        "line 1",
    )
    assert sample.native_feature_ids == ("n1", "n2")
    assert sample.bbox == (1.0, 2.0, 3.0, 4.0)
    assert sample.strata == {"region": "north"}


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"grup_id": "g"}, "did you mean 'group_id'"),
        ({"open_fixture": True}, "unknown field 'open_fixture'"),
        ({"split": "tset"}, "did you mean 'test'"),
        ({"group_id": 7}, "group_id"),
        ({"bbox": [0, 0, float("nan"), 1], "crs": "EPSG:4326"}, "finite"),
        ({"bbox": [0, 1, 1, 0], "crs": "EPSG:4326"}, "min x, min y"),
        ({"bbox": [10, 0, 5, 1], "crs": "EPSG:4326"}, "min x, min y"),
        ({"bbox": [10, 0, 5, 1], "crs": "EPSG:32631"}, "min x, min y"),
        ({"bbox": [0, 0, 1, 1]}, "needs its crs"),
        ({"bbox": [0, 0, 1, 1], "crs": "EPSG:999999"}, "EPSG:999999"),
        ({"bbox": [0, 0, 500_000, 1], "crs": "EPSG:4326"}, "outside the degrees"),
        ({"raw_image_sha256": "ABC"}, "64 hexadecimal digits"),
        ({"task": " unknown "}, "task must say something"),
    ],
)
def test_a_record_that_does_not_hold_is_refused_by_name(fields, says):
    with pytest.raises(InputError, match="record 'a'") as caught:
        sample_from_json(line(**fields), "source.jsonl, line 3")
    assert says in str(caught.value)


def test_a_field_that_stands_twice_is_refused():
    with pytest.raises(InputError, match="record 'a': field 'split' stands there more than once"):
        sample_from_json('{"sample_id": "a", "task": "t", "split": "test", "split": "train"}', "line 1")


def test_a_missing_field_is_named():
    with pytest.raises(InputError, match="'task' is required and missing"):
        sample_from_json('{"sample_id": "a"}', "line 1")


def test_text_nested_beyond_reason_is_refused():
    with pytest.raises(InputError, match="line 9"):
        sample_from_json("[" * 100_000, "line 9")


def test_text_that_is_not_json_is_refused_with_its_line():
    with pytest.raises(InputError, match="line 9: is not JSON"):
        sample_from_json("{", "line 9")


def test_a_box_across_the_antimeridian_may_have_its_west_above_its_east():
    assert sample_from_json(line(bbox=[179, 0, -179, 1], crs="EPSG:4326"), "line 1").bbox == (179.0, 0.0, -179.0, 1.0)


def test_validation_is_an_alias_of_val():
    assert sample_from_mapping({"sample_id": "a", "task": "t", "split": "validation"}, "row 1").split == "val"


@pytest.mark.parametrize(
    "value", [None, "", " ", "Unknown", "null", "NaN", (), ("",), ("unknown", None), {}, {"a": " "}]
)
def test_what_says_nothing_is_not_known(value):
    assert not known(value)


def test_the_record_hash_ignores_split_and_paths_and_sees_everything_else():
    sample = Sample(sample_id="a", task="t", object_ids=("o",), raw_image="a.tif", raw_image_sha256="0" * 64)
    same = dataclasses.replace(sample, split="test", raw_image="b.tif")
    assert record_hash(sample) == record_hash(same)
    assert record_hash(sample) != record_hash(dataclasses.replace(sample, object_ids=("p",)))
    assert record_hash(sample) != record_hash(dataclasses.replace(sample, sample_id="b"))
