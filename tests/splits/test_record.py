"""What a sample record must say, and what counts as not said."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest

from geoeval.errors import InputError
from geoeval.splits.blanks import BLANK_WORDS, known, tidy
from geoeval.splits.record import Sample, record_hash, sample_from_json, sample_from_mapping
from geoeval.splits.table import SampleTable


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
    "value", [None, "", " ", "Unknown", "null", "NaN", (), ("",), ("unknown", None), {}, {"a": " "}, ("\u200b", "-")]
)
def test_what_says_nothing_is_not_known(value):
    assert not known(value)


@pytest.mark.parametrize(
    "form", ["{}", " {} ", "({})", "[{}]", "<{}>", "'{}'", "{}.", "{}?", "({}).", "\ufeff{}\u200b"]
)
@pytest.mark.parametrize("word", sorted(BLANK_WORDS))
def test_no_blank_word_says_anything_in_any_form(word, form):
    for spelling in (word, word.upper(), word.title(), word.replace(" ", "\u00a0 ")):
        assert not known(form.format(spelling)), form.format(spelling)


@pytest.mark.parametrize(
    "value",
    [
        "?",
        "???",
        "-",
        "--",
        "- -",
        ".",
        "...",
        "\u2026",
        "_",
        "\u2014",
        "(?)",
        "[]",
        "<NA>",
        "#N/A",
        "n.a.",
        "\u00ad",
        "\u200b",
        "\u2060\ufeff",
        "\u3164",
        "\u2800",
        "\0",
        "\ufe0f",
        "\u202e",
        "\uff2e\uff0f\uff21",
        "No\tData",
    ],
)
def test_marks_and_what_nobody_sees_say_nothing(value):
    assert not known(value)


@pytest.mark.parametrize(
    "value",
    [
        "0",
        "-1",
        "-99",
        "-999.5",
        "999",
        "unknown-7",
        "no-data-3",
        "nab",
        "nano",
        "a.",
        "(a)",
        "NA-12",
        "x_",
        "tbd2",
        "#1",
    ],
)
def test_what_resembles_a_blank_says_something(value):
    assert known(value)


@pytest.mark.parametrize(
    "twin",
    [
        "Gr\u00fcn 1\u200b",
        "\ufeffGr\u00fcn 1",
        "Gr\u00adu\u0308n 1",
        "Gru\u200b\u0308n  1",
        "\u200fGr\u00fcn\u00a01\n",
        "\tGr\u00fcn \r\n 1",
        "\uff27r\u00fcn \uff11",
        "Gr\u00fcn 1\0",
        "Gr\u00fcn\u2009\u20091",
        "Gr\u00fcn \u2460",
    ],
)
def test_look_alikes_become_one_identifier(twin):
    assert tidy(twin) == "Gr\u00fcn 1"
    sample = sample_from_json(line(group_id=twin, object_ids=[twin, "Gr\u00fcn 1"]), "line 1")
    assert (sample.group_id, sample.object_ids) == ("Gr\u00fcn 1", ("Gr\u00fcn 1",))


@pytest.mark.parametrize("other", ["gr\u00fcn 1", "Grun 1", "Gr\u00fcn1", "Gr\u00fcn 2", "Gr\u00fcn-1"])
def test_what_differs_to_the_eye_stays_apart(other):
    assert tidy(other) == other


def test_tidying_twice_changes_nothing():
    everything = [chr(code) for code in range(0x11000) if not 0xD800 <= code < 0xE000]
    for one in everything:
        text = f"a{one}\u0308 {one}b"
        assert tidy(tidy(text)) == tidy(text), ascii(one)


def test_a_table_knows_the_same_words_and_leaves_paths_alone():
    table = SampleTable.of(
        3,
        sample_id=["a\u200b", "b", "c  c"],
        group_id=["\ufeffg", "g", "n.a."],
        raw_image=["raw/e\u0301  1.tif", "raw/\uff41.tif", None],
    )
    assert table.ids(range(3)) == ("a", "b", "c c")
    assert table.codes("group_id").tolist() == [0, 0, -1]
    assert table.text("raw_image", 0) == "raw/e\u0301  1.tif"
    assert table.text("raw_image", 1) == "raw/\uff41.tif"


def test_the_record_hash_ignores_split_and_paths_and_sees_everything_else():
    sample = Sample(sample_id="a", task="t", object_ids=("o",), raw_image="a.tif", raw_image_sha256="0" * 64)
    same = dataclasses.replace(sample, split="test", raw_image="b.tif")
    assert record_hash(sample) == record_hash(same)
    assert record_hash(sample) != record_hash(dataclasses.replace(sample, object_ids=("p",)))
    assert record_hash(sample) != record_hash(dataclasses.replace(sample, sample_id="b"))


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("sample_id", 3, "record 3: sample_id must be text (in JSON within quotes), got 3"),
        ("group_id", 7.5, "group_id must be text (in JSON within quotes), got 7.5"),
        ("object_ids", ["a", 1], "object_ids.1 must be text (in JSON within quotes), got 1"),
        ("strata", {"year": 2024}, "strata.year must be text (in JSON within quotes), got 2024"),
        ("split", 1, "split 1 is no role"),
    ],
)
def test_a_number_in_place_of_a_text_is_refused_in_plain_words(field, value, says):
    with pytest.raises(InputError, match=re.escape(says)):
        sample_from_json(json.dumps({"sample_id": "a", "task": "t", field: value}), "line 1")
