"""The gold set: each rule broken in turn is refused with file and line; what is equal has one hash."""

from __future__ import annotations

import json

import pytest

from geoeval.errors import ConfigError, InputError
from geoeval.goldset.cases import gold_hash, graders, read_cases

GOOD = {
    "task": "classify",
    "input": "Tile 3 shows a lake.",
    "params": {"labels": ["water", "built"]},
    "expect": "water",
}


def write(path, *rows):
    path.write_bytes(b"".join((row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in rows))
    return path


def broken(**changes):
    return {key: value for key, value in {**GOOD, "id": "b", **changes}.items() if value != "gone"}


BROKEN = [
    (b"", "blank line"),
    (b"   ", "blank line"),
    (b"{", "is not one JSON object"),
    (b"[]", "found list"),
    (b"\xff\xfe", "is not one JSON object"),
    (b'{"task": "a", "task": "b", "input": "c"}', "stands twice"),
    (b'{"task": "a", "input": "b", "params": {"x": NaN}}', "NaN is not JSON"),
    (b'{"task": "a", "input": "b", "params": {"x": 9007199254740993}}', "too large"),
    (b'{"task": "a", "input": "\\ud800"}', "is not one JSON object"),
    (b'{"task": "a", "input": "b", "params": ' + b'{"x":' * 5000 + b"1" + b"}" * 5000 + b"}", "is not one JSON object"),
    (broken(task="gone"), "expected a key 'task'"),
    (broken(input="gone"), "expected a key 'input'"),
    (broken(task=" "), "'task' must be text"),
    (broken(task=7), "'task' must be text"),
    (broken(input=""), "'input' must be text"),
    (broken(input=None), "'input' must be text"),
    (broken(params=[]), "'params' must be an object"),
    (broken(params={"source": ""}), "'source' must be text"),
    (broken(params={"labels": "water"}), "must list distinct labels"),
    (broken(params={"labels": []}), "must list distinct labels"),
    (broken(params={"labels": ["water", "water"]}), "must list distinct labels"),
    (broken(params={"labels": ["water", 1.5]}), "must list distinct labels"),
    (broken(params={"labels": ["built"]}), "must be one of the labels"),
    (broken(expect=""), "'expect' must be a label"),
    (broken(expect=True), "'expect' must be a label"),
    (broken(expect=["water"]), "'expect' must be a label"),
    (broken(id=""), "'id' must be text"),
    (broken(id="a"), "stands in gold.jsonl, line 1, too"),
    (broken(cluster=""), "'cluster' must be text"),
    (broken(cluster="Aldmere"), "in all cases or in none"),
    (broken(expected="water"), "unknown key 'expected'; did you mean 'expect'"),
]


@pytest.mark.parametrize(("row", "says"), BROKEN)
def test_each_rule_broken_is_refused_with_file_and_line(row, says, tmp_path):
    with pytest.raises(InputError, match=r"gold\.jsonl, line 2") as caught:
        read_cases(write(tmp_path / "gold.jsonl", {**GOOD, "id": "a"}, row))
    assert says in str(caught.value)


def test_a_missing_gold_set_is_refused_and_so_is_an_empty_one(tmp_path):
    with pytest.raises(InputError, match="found no such file"):
        read_cases(tmp_path / "gold.jsonl")
    with pytest.raises(InputError, match="found no cases"):
        read_cases(write(tmp_path / "gold.jsonl"))


def test_the_same_case_twice_needs_ids(tmp_path):
    with pytest.raises(InputError, match=r"line 2: case '[0-9a-f]{16}' stands in gold\.jsonl, line 1"):
        read_cases(write(tmp_path / "gold.jsonl", GOOD, GOOD))


def test_the_hash_does_not_depend_on_order_or_spelling_but_on_every_value(tmp_path):
    one, two = {**GOOD, "id": "a"}, {**GOOD, "id": "b"}
    base = gold_hash(read_cases(write(tmp_path / "1.jsonl", one, two)))
    spelled = json.dumps(dict(reversed(two.items())), indent=None, separators=(" , ", " : ")).encode() + b"\r"
    assert gold_hash(read_cases(write(tmp_path / "2.jsonl", spelled, one))) == base
    assert gold_hash(read_cases(write(tmp_path / "3.jsonl", one, {**two, "expect": "built"}))) != base


def test_usual_tasks_have_their_graders_and_others_go_by_what_they_expect(tmp_path):
    rows = [
        GOOD,
        {"task": "extract", "input": "a", "expect": "ignored"},
        {"task": "grade", "input": "b", "expect": 3},
        {"task": "describe", "input": "c"},
    ]
    cases = read_cases(write(tmp_path / "gold.jsonl", *rows))
    found = graders(cases)
    assert found == {"classify": "label", "extract": "grounding", "grade": "label", "describe": "grounding"}
    assert graders(cases, {"grade": "grounding"})["grade"] == "grounding"
    assert cases[2].expect == "3"


def test_a_label_task_needs_something_to_expect_in_each_case(tmp_path):
    rows = [{"task": "grade", "input": "a", "expect": 3}, {"task": "grade", "input": "b"}]
    cases = read_cases(write(tmp_path / "gold.jsonl", *rows))
    with pytest.raises(InputError, match=r"gold\.jsonl, line 2.*needs 'expect'"):
        graders(cases)
    with pytest.raises(ConfigError, match="no case has the task 'grad'"):
        graders(cases, {"grad": "label"})
    with pytest.raises(ConfigError, match="must be 'label' or 'grounding'"):
        graders(cases, {"grade": "exact"})
