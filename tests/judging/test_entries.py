"""The calibration set: each rule broken in turn is refused with file and line; the stored set is the set."""

from __future__ import annotations

import json
import random

import pytest

from geoeval.errors import ConfigError, InputError
from geoeval.judging.entries import freeze, read_set

GOOD = {
    "task_id": "t",
    "episode": {"answer": "12 m"},
    "outcome": "pass",
    "dimensions": {"unit": "pass", "tone": "fail"},
}


def write(path, *rows):
    path.write_bytes(b"".join((row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in rows))
    return path


def broken(**changes):
    return {key: value for key, value in {**GOOD, "task_id": "u", **changes}.items() if value != "gone"}


BROKEN = [
    (b"", "blank line"),
    (b"{", "is not one JSON object"),
    (b"3", "found int"),
    (broken(task_id="gone"), "expected a key 'task_id'"),
    (broken(episode="gone"), "expected a key 'episode'"),
    (broken(outcome="gone"), "expected a key 'outcome'"),
    (broken(dimensions="gone"), "expected a key 'dimensions'"),
    (broken(task_id=""), "'task_id' must be text"),
    (broken(task_id=3), "'task_id' must be text"),
    (broken(episode={}), "'episode' must be an object or text"),
    (broken(episode=" "), "'episode' must be an object or text"),
    (broken(episode=[1]), "'episode' must be an object or text"),
    (broken(episode=None), "'episode' must be an object or text"),
    (broken(outcome=None), "'outcome' must be 'pass' or 'fail'"),
    (broken(outcome=1), "'outcome' must be 'pass' or 'fail'"),
    (broken(outcome="passed"), "'outcome' must be 'pass' or 'fail'"),
    (broken(dimensions={}), "at least one dimension"),
    (broken(dimensions=["unit"]), "at least one dimension"),
    (broken(dimensions={" ": True}), "at least one dimension"),
    (broken(dimensions={"unit": "pass", "tone": 0}), "dimension 'tone' must be"),
    (broken(dimensions={"unit": "pass"}), "['tone'] differ"),
    (broken(dimensions={"unit": True, "tone": True, "place": True}), "['place'] differ"),
    (broken(task_id="t"), "of h.jsonl, line 1 stands here again"),
    (broken(outcomes=True), "unknown key 'outcomes'; did you mean 'outcome'"),
]


@pytest.mark.parametrize(("row", "says"), BROKEN)
def test_each_rule_broken_is_refused_with_file_and_line(row, says, tmp_path):
    with pytest.raises(InputError, match=r"h\.jsonl, line 2") as caught:
        freeze(write(tmp_path / "h.jsonl", GOOD, row))
    assert says in str(caught.value)


def rows(n=20):
    return [
        {
            "task_id": f"t{at // 2}",
            "episode": f"answer {at}",
            "outcome": at % 2 == 0,
            "dimensions": {"tone": None if at == 3 else at % 3 == 0},
        }
        for at in range(n)
    ]


def test_a_missing_history_is_refused_and_so_is_an_empty_one(tmp_path):
    with pytest.raises(InputError, match="found no such file"):
        freeze(tmp_path / "h.jsonl")
    with pytest.raises(InputError, match="found no episodes"):
        freeze(write(tmp_path / "h.jsonl"))


def test_the_set_does_not_depend_on_the_order_of_the_history_nor_does_a_draw(tmp_path):
    shuffled = rows()
    random.Random(3).shuffle(shuffled)
    one, two = write(tmp_path / "1.jsonl", *rows()), write(tmp_path / "2.jsonl", *shuffled)
    assert freeze(one).content == freeze(two).content
    assert freeze(one, limit=7, seed=1).content == freeze(two, limit=7, seed=1).content
    assert freeze(one, limit=7, seed=1).sha256 != freeze(one, limit=7, seed=2).sha256
    assert len(freeze(one, limit=7).entries) == 7
    with pytest.raises(InputError, match="21 episodes were asked for, it records 20"):
        freeze(one, limit=21)
    with pytest.raises(ConfigError, match="at least 1"):
        freeze(one, limit=0)


def test_what_is_stored_is_read_back(tmp_path):
    made = freeze(write(tmp_path / "h.jsonl", *rows()))
    (tmp_path / "set.jsonl").write_bytes(made.content)
    assert read_set(tmp_path / "set.jsonl") == made


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines[:-1],
        lambda lines: [*lines, lines[-1].replace("t9", "t10")],
        lambda lines: [lines[0], lines[1].replace("true", "false", 1), *lines[2:]],
        lambda lines: [lines[0].replace("tone", "unit"), *lines[1:]],
        lambda lines: [lines[0].replace('"n":20', '"n":21'), *lines[1:]],
        lambda lines: lines[1:],
        lambda lines: lines[:1],
        lambda lines: [],
        lambda lines: [lines[0].replace("set/1", "set/2"), *lines[1:]],
    ],
)
def test_a_set_that_was_changed_is_refused(change, tmp_path):
    lines = freeze(write(tmp_path / "h.jsonl", *rows())).content.decode().splitlines()
    path = tmp_path / "set.jsonl"
    path.write_text("".join(f"{line}\n" for line in change(lines)))
    with pytest.raises(InputError, match=r"set\.jsonl, line 1"):
        read_set(path)


def test_a_set_written_another_way_is_the_same_set(tmp_path):
    made = freeze(write(tmp_path / "h.jsonl", *rows()))
    head, *rest = [json.loads(line) for line in made.content.splitlines()]
    spelled = [json.dumps(dict(reversed(row.items())), indent=None, separators=(", ", " : ")) for row in reversed(rest)]
    (tmp_path / "set.jsonl").write_text("\n".join([json.dumps(head), *spelled]))
    assert read_set(tmp_path / "set.jsonl") == made
