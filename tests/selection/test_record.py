"""The record of one prediction: every rule of the table, broken in turn."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoeval.errors import ConfigError, InputError, LeakageError
from geoeval.selection import (
    AbstentionPolicy,
    Record,
    RecordShape,
    SplitLimits,
    check_corpus,
    parse_record,
    parse_suggestion,
    read_records,
)
from geoeval.selection.corpus import content_hash
from geoeval.selection.policy import QualityRule
from geoeval.selection.record import json_object

SHAPE = RecordShape(labels=(1, 2, 3, 4, 5, 6, 7), label="bristolType")
POLICY = AbstentionPolicy(name="p", quality=QualityRule(accepted=("clear",), refused=("poor",)))
TEST_KEY = "e6" + 14 * "0"


def line(**changes):
    """A good record with some keys changed; ``...`` takes a key away."""
    whole = {
        "model": "m",
        "subjectKey": TEST_KEY,
        "split": "test",
        "truth": {"bristolType": 4},
        "prediction": {"bristolType": 4, "confidence": 0.97},
    }
    whole |= changes
    return {key: value for key, value in whole.items() if value is not ...}


def said(confidence, label=4):
    return {"bristolType": label, "confidence": confidence}


#: What is wrong, the line as it stands in the file, and what the message names.
BROKEN = [
    ("not JSON", '{"model": "m",', "is not JSON"),
    ("half a line", '"model": "m"}', "is not JSON"),
    ("no object", "[1, 2]", "one JSON object"),
    ("a number", "4", "one JSON object"),
    ("NaN", json.dumps(line(prediction=said(float("nan")))), "NaN is no number in JSON"),
    ("infinity", json.dumps(line(prediction=said(float("inf")))), "Infinity is no number in JSON"),
    ("huge", json.dumps(line(prediction=said("@"))).replace('"@"', "1e999"), r"lie in \[0, 1\], got inf"),
    ("a key twice", json.dumps(line())[:-1] + ', "split": "test"}', "'split' occurs twice"),
    ("too deep", "[" * 100_000, "nested too deeply|is not JSON"),
    ("too many digits", "9" * 5000, "is not JSON"),
    ("no model", line(model=...), "'model' is missing"),
    ("empty model", line(model=""), "model must be a printable text"),
    ("blank model", line(model=" "), "model must be a printable text"),
    ("model of blanks around", line(model="m "), "model must be a printable text"),
    ("model of two lines", line(model="m\nn"), "model must be a printable text"),
    ("model of half a character", line(model="\ud800"), "model must be a printable text"),
    ("model a number", line(model=3), "model must be a printable text"),
    ("no key", line(subjectKey=...), "'subjectKey' is missing"),
    ("short key", line(subjectKey="e6"), "16 hexadecimal digits"),
    ("long key", line(subjectKey=TEST_KEY + "0"), "16 hexadecimal digits"),
    ("key of a name", line(subjectKey="somebody@example"), "16 hexadecimal digits"),
    ("key in upper case", line(subjectKey=TEST_KEY.upper()), "lower case"),
    ("key with a line end", line(subjectKey=TEST_KEY + "\n"), "16 hexadecimal digits"),
    ("key of other digits", line(subjectKey="e6" + 14 * "\u0661"), "16 hexadecimal digits"),
    ("key a number", line(subjectKey=1234567890123456), "16 hexadecimal digits"),
    ("no split", line(split=...), "'split' is missing"),
    ("unknown split", line(split="holdout"), "split must be one of"),
    ("short split", line(split="val"), "split must be one of"),
    ("split a list", line(split=["test"]), "split must be one of"),
    ("no truth", line(truth=...), "'truth' is missing"),
    ("null truth", line(truth=None), "truth: must be an object"),
    ("bare truth", line(truth=4), "truth: must be an object"),
    ("truth of another key", line(truth={"label": 4}), "truth.bristolType: is missing"),
    ("truth with more", line(truth={"bristolType": 4, "by": "x"}), "truth: unknown key 'by'"),
    ("label below", line(truth={"bristolType": 0}), "must be one of"),
    ("label above", line(truth={"bristolType": 8}), "must be one of"),
    ("label not whole", line(truth={"bristolType": 4.5}), "must be one of"),
    ("label a real", line(truth={"bristolType": 4.0}), "must be one of"),
    ("label a text", line(truth={"bristolType": "4"}), "must be one of"),
    ("label true", line(truth={"bristolType": True}), "must be one of"),
    ("label null", line(truth={"bristolType": None}), "must be one of"),
    ("no prediction", line(prediction=...), "'prediction' is missing; it is null where nothing was offered"),
    ("bare prediction", line(prediction=4), "prediction: must be an object"),
    ("empty prediction", line(prediction={}), "prediction.bristolType: is missing"),
    ("predicted label outside", line(prediction=said(0.5, 9)), "prediction.bristolType: must be one of"),
    ("no confidence", line(prediction={"bristolType": 4}), "prediction.confidence: is missing"),
    ("confidence above", line(prediction=said(1.0000001)), r"must lie in \[0, 1\]"),
    ("confidence below", line(prediction=said(-0.1)), r"must lie in \[0, 1\]"),
    ("a percentage", line(prediction=said(97)), "is it a percentage"),
    ("confidence a text", line(prediction=said("0.9")), "confidence: must be a number"),
    ("confidence true", line(prediction=said(True)), "confidence: must be a number"),
    ("confidence null", line(prediction=said(None)), "confidence: must be a number"),
    ("prediction with more", line(prediction={**said(0.5), "top5": []}), "prediction: unknown key 'top5'"),
    ("unknown key", line(predicton=None), "unknown key 'predicton'; did you mean 'prediction'"),
    ("quality without a policy", line(quality="poor"), "no abstention policy says"),
]


def text_of(given):
    return given if isinstance(given, str) else json.dumps(given)


@pytest.mark.parametrize(("given", "says"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_a_broken_line_is_named_with_file_and_line(given, says, tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_text(json.dumps(line()) + "\n\n" + text_of(given) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=says) as refused:
        read_records([path], SHAPE)
    assert str(refused.value).startswith("p.jsonl, line 3: ")


def test_a_line_that_is_not_utf8(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_bytes(json.dumps(line()).encode() + b'\n{"model": "\xff"}\n')
    with pytest.raises(InputError, match=r"p\.jsonl, line 2: is not UTF-8 text"):
        read_records([path], SHAPE)


def test_all_broken_lines_are_named_up_to_ten(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_text("".join(json.dumps(line(model=i)) + "\n" for i in range(13)))
    with pytest.raises(InputError) as refused:
        read_records([path], SHAPE)
    lines = str(refused.value).splitlines()
    assert len(lines) == 11
    assert lines[-1] == "... and 3 more"


@pytest.mark.parametrize("content", ["", "\n\n  \n"])
def test_a_file_without_records_is_refused(content, tmp_path):
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_text(json.dumps(line()))
    bad.write_text(content)
    with pytest.raises(InputError, match=r"bad\.jsonl: expected at least one record"):
        read_records([good, bad], SHAPE)


def test_a_file_that_is_not_there_and_a_folder_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"none\.jsonl: cannot be read"):
        read_records([tmp_path / "none.jsonl"], SHAPE)
    with pytest.raises(InputError, match="cannot be read"):
        read_records([tmp_path], SHAPE)
    with pytest.raises(InputError, match="at least one file"):
        read_records([], SHAPE)


def test_the_same_bytes_twice_are_refused(tmp_path):
    (tmp_path / "a").mkdir()
    one, two = tmp_path / "p.jsonl", tmp_path / "a" / "p.jsonl"
    for path in (one, two):
        path.write_text(json.dumps(line()))
    with pytest.raises(InputError, match="would count twice"):
        read_records([one, two], SHAPE)
    with pytest.raises(InputError, match="would count twice"):
        read_records([one, one], SHAPE)


def test_line_ends_and_a_mark_at_the_front_do_not_matter(tmp_path):
    """Windows writes both."""
    path = tmp_path / "p.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(line()).encode() + b"\r\n" + json.dumps(line()).encode())
    found = read_records([path], SHAPE)
    assert [one.place for one in found] == ["p.jsonl, line 1", "p.jsonl, line 2"]


def test_what_is_right_is_read():
    found = parse_record(line(), SHAPE)
    assert (found.model, found.subject, found.split, found.reference) == ("m", TEST_KEY, "test", 3)
    assert (found.suggestion.label, found.suggestion.confidence) == (3, 0.97)
    assert found.cluster == TEST_KEY
    assert parse_record(line(prediction=None), SHAPE).suggestion is None
    assert parse_record(line(prediction=said(1)), SHAPE).suggestion.confidence == 1.0
    assert str(parse_record(line(prediction=said(-0.0)), SHAPE).suggestion.confidence) == "0.0"


def test_levels_of_quality_come_from_the_policy():
    assert parse_record(line(quality="poor"), SHAPE, policy=POLICY).quality == "poor"
    assert parse_record(line(), SHAPE, policy=POLICY).quality is None
    with pytest.raises(InputError, match="quality must be one of 'clear', 'poor', got 'por'"):
        parse_record(line(quality="por"), SHAPE, policy=POLICY)
    with pytest.raises(InputError, match="quality must be one of"):
        parse_record(line(quality=None), SHAPE, policy=POLICY)
    strict = AbstentionPolicy(name="p", quality=QualityRule(accepted=("clear",), required=True))
    with pytest.raises(InputError, match="'quality' is missing; the policy 'p' requires it"):
        parse_record(line(), SHAPE, policy=strict)


def test_keys_to_pass_over_are_declared():
    shape = RecordShape(labels=(1, 4), label="bristolType", ignore=("photo", "quality"), quality="level")
    assert parse_record(line(photo="x", quality="poor"), shape).quality is None


@pytest.mark.parametrize("value", [None, "", " ", "a\x00", "\udfff", 1.5, True, 10**30, []])
def test_a_cluster_and_an_id_must_say_something(value):
    shape = RecordShape(labels=(1, 4), label="bristolType", cluster="aoi", id="tile")
    good = {"aoi": "a", "tile": 7}
    assert (parse_record(line(**good), shape).cluster, parse_record(line(**good), shape).id) == ("a", "7")
    for key in good:
        with pytest.raises(InputError, match=f"{key} must be a printable text or a whole number"):
            parse_record(line(**{**good, key: value}), shape)
        with pytest.raises(InputError, match=f"'{key}' is missing"):
            parse_record(line(**{**good, key: ...}), shape)


def test_a_confidence_is_kept_as_it_stands_in_evidence():
    """A threshold that was rounded for the report would else miss the very answer it was taken from."""
    assert parse_suggestion(said(0.1234567890123456), SHAPE).confidence == 0.123456789012
    assert parse_suggestion(said(0.9999999999999999), SHAPE).confidence == 1.0


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5), lambda x: st.lists(x, max_size=3)))
def test_whatever_a_model_says_is_read_or_refused(value):
    for given_ in (value, {"bristolType": value, "confidence": 0.5}, {"bristolType": 1, "confidence": value}):
        try:
            found = parse_suggestion(given_, SHAPE)
        except InputError:
            continue
        assert found is None or 0 <= found.confidence <= 1


@given(st.binary(max_size=60))
def test_whatever_stands_in_a_line_is_read_or_refused(text):
    try:
        found = json_object(text, "p")
    except InputError as error:
        found = str(error).removeprefix("p: ")
        assert found != str(error)  # noqa: PT017 - any other error fails the test
    assert isinstance(found, dict | str)


# --- splits


def record(key, split, *, model="m", place="", **more):
    return Record(model, key, split, 0, None, place=place, **{"cluster": key, **more})


@pytest.mark.parametrize(
    ("byte", "split"),
    [("00", "train"), ("cc", "train"), ("cd", "validation"), ("e5", "validation"), ("e6", "test"), ("ff", "test")],
)
def test_the_first_byte_gives_the_split(byte, split):
    """204 is the last of train, 229 the last of validation."""
    key = byte + 14 * "0"
    check_corpus([record(key, split)], SplitLimits())
    for other in {"train", "validation", "test"} - {split}:
        with pytest.raises(LeakageError, match=f"f.jsonl, line 9: split is declared as '{other}'.* gives '{split}'"):
            check_corpus([record(key, other, place="f.jsonl, line 9")], SplitLimits())


def test_the_limits_are_configuration():
    check_corpus([record("7f" + 14 * "0", "validation")], SplitLimits(train_below=100, validation_below=128))


@pytest.mark.parametrize("limits", [(230, 205), (205, 205), (-1, 200), (200, 256), (0, 0)])
def test_limits_that_leave_no_room_are_refused(limits):
    with pytest.raises(ConfigError, match="validation and test have room"):
        SplitLimits(train_below=limits[0], validation_below=limits[1])


def test_one_key_in_two_splits_is_named_with_both_places():
    rows = [record(TEST_KEY, "test", place="a, line 1"), record(TEST_KEY, "train", model="n", place="b, line 2")]
    with pytest.raises(LeakageError, match=r"b, line 2: subjectKey .* is in train here and in test in a, line 1"):
        check_corpus(rows, SplitLimits())


def test_several_records_of_one_key_in_one_split_are_fine():
    check_corpus([record(TEST_KEY, "test")] * 3, SplitLimits())


def test_one_cluster_in_two_splits_is_refused():
    rows = [record(TEST_KEY, "test", cluster="aoi-1"), record(16 * "0", "train", cluster="aoi-1", place="p, line 2")]
    with pytest.raises(LeakageError, match="p, line 2: cluster aoi-1 is in train here and in test"):
        check_corpus(rows, SplitLimits())
    check_corpus([record(TEST_KEY, "test", cluster=""), record(16 * "0", "train", cluster="")], SplitLimits())


def test_a_case_is_answered_once_and_asked_the_same():
    one = record(TEST_KEY, "test", id="7", place="p, line 1")
    check_corpus([one, record(TEST_KEY, "test", id="7", model="n")], SplitLimits())
    with pytest.raises(InputError, match="p, line 2: model 'm' has answered the case '7' in p, line 1 already"):
        check_corpus([one, record(TEST_KEY, "test", id="7", place="p, line 2")], SplitLimits())
    other = Record("n", TEST_KEY, "test", 1, None, id="7", cluster=TEST_KEY, place="p, line 3")
    with pytest.raises(InputError, match="p, line 3: the case '7' has another subject, truth"):
        check_corpus([one, other], SplitLimits())


def test_the_hash_of_the_content_knows_no_order():
    rows = [record(TEST_KEY, "test", place="a"), record(16 * "0", "train", place="b")]
    moved = [record(16 * "0", "train", place="c"), record(TEST_KEY, "test", place="d")]
    assert content_hash(rows) == content_hash(moved) != content_hash(rows[:1])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"labels": (1,)}, "at least two labels"),
        ({"labels": (1, "1")}, "must differ as text"),
        ({"labels": ("a->b", "c")}, "must not be empty or hold"),
        ({"labels": ("", "c")}, "must not be empty or hold"),
        ({"label": "confidence"}, "key of the confidence"),
        ({"label": ""}, "must not be empty"),
        ({"cluster": "split"}, "two meanings"),
        ({"id": "quality"}, "two meanings"),
        ({"ignore": ("truth",)}, "two meanings"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(changes, says):
    with pytest.raises(ConfigError, match=says):
        RecordShape(**{"labels": (1, 2), **changes})
