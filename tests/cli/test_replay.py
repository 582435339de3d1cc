"""``geoeval replay`` as a shell calls it."""

from __future__ import annotations

import json

import pytest

RUNNER = """
import pathlib

def answer(request):
    print("thinking")
    calls = pathlib.Path(__file__).with_name("calls.txt")
    done = calls.read_text().count("x") if calls.exists() else 0
    calls.write_text("x" * (done + 1))
    if done == {breaks_at}:
        raise RuntimeError("the connection was lost")
    return {{"accepted": True, "output": "water", "cost": 10}}
"""


@pytest.fixture
def gold(tmp_path):
    rows = [{"task": "classify", "input": f"tile {at}", "expect": "water"} for at in range(6)]
    path = tmp_path / "gold.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def runner(folder, breaks_at=-1):
    path = folder / "mine.py"
    path.write_text(RUNNER.format(breaks_at=breaks_at))
    return f"{path}:answer"


def test_a_gold_set_is_replayed_and_printed(cli, fixtures, tmp_path):
    out = tmp_path / "eager.json"
    said = cli(
        "replay", fixtures / "replay" / "gold.jsonl", "--runner", f"{fixtures}/replay/assistant.py:eager", "--out", out
    )
    assert said.code == 0
    assert "classify" in said.out
    assert said.err == ""
    data = json.loads(out.read_bytes())
    assert (data["overall"]["n"], data["overall"]["accepted_correct"]) == (96, 88)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["eager.json"]
    assert not list((fixtures / "replay").glob("__pycache__"))


def test_options_may_come_before_the_gold_set_and_json_is_one_object(cli, gold, tmp_path):
    said = cli("replay", "--json", "--runner", runner(tmp_path), gold)
    assert said.code == 0
    assert said.json["overall"]["accepted_correct"] == 6
    assert "thinking" in said.err
    assert str(tmp_path) not in said.out


def test_an_interrupted_replay_is_gone_on_with(cli, gold, tmp_path):
    out = tmp_path / "out.json"
    first = cli("replay", gold, "--runner", runner(tmp_path, breaks_at=4), "--out", out)
    assert first.code == 2
    assert "gold.jsonl, line 5" in first.err
    assert "RuntimeError: the connection was lost" in first.err
    assert "Traceback" not in first.err
    assert not out.exists()
    refused = cli("replay", gold, "--runner", runner(tmp_path, breaks_at=4), "--out", out)
    assert (refused.code, "--resume" in refused.err) == (2, True)
    again = cli("replay", gold, "--runner", runner(tmp_path, breaks_at=4), "--out", out, "--resume")
    assert again.code == 0
    assert (tmp_path / "calls.txt").read_text() == "x" * 7
    assert not out.with_name("out.json.journal").exists()


def test_whoever_stops_a_replay_is_told_how_to_go_on(cli, gold, tmp_path):
    out, stopped = (
        tmp_path / "out.json",
        RUNNER.replace('raise RuntimeError("the connection was lost")', "raise KeyboardInterrupt"),
    )
    (tmp_path / "mine.py").write_text(stopped.format(breaks_at=4))
    named = f"{tmp_path / 'mine.py'}:answer"
    first = cli("replay", gold, "--runner", named, "--out", out)
    assert (first.code, first.out, out.exists()) == (2, "", False)
    assert "interrupted; finished cases are in out.json.journal, go on with --resume" in first.err
    assert "Traceback" not in first.err
    again = cli("replay", gold, "--runner", named, "--out", out, "--resume")
    assert again.code == 0
    assert (tmp_path / "calls.txt").read_text() == "x" * 7
    (tmp_path / "calls.txt").unlink()
    bare = cli("replay", gold, "--runner", named)
    assert (bare.code, bare.out, bare.err.splitlines()[-1][:12]) == (2, "", "Interrupted:")


def test_debug_shows_where_a_runner_broke(cli, gold, tmp_path):
    said = cli("replay", gold, "--runner", runner(tmp_path, breaks_at=0), "--debug")
    assert said.code == 2
    assert "Traceback" in said.err
    assert "mine.py" in said.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--runner", "no_such_module_here:f"], "cannot be imported"),
        (["--runner", "mine"], "module:callable"),
        (["--runner", "json:dumps", "--resume"], "--resume needs --out"),
        (["--runner", "json:dumps", "--grader", "classify"], "--grader is TASK="),
        (["--runner", "json:dumps", "--grader", "x=label"], "no case has the task 'x'"),
        (["--runner", "json:dumps", "--expert-quality", "90"], "is it a percentage"),
        (["--runner", "json:dumps", "--out", "nowhere/out.json"], "cannot be written"),
    ],
)
def test_what_cannot_be_understood_is_refused(cli, gold, arguments, says, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    said = cli("replay", gold, *arguments)
    assert said.code == 2
    assert says in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["gold.jsonl"]


@pytest.mark.parametrize("row", ["", "{", '{"task": "classify"}', '{"task": "", "input": "a"}', '{"tsk": 1}'])
def test_a_malformed_line_is_refused_before_anything_is_asked_or_written(cli, gold, row, tmp_path):
    gold.write_text(gold.read_text() + row + "\n")
    said = cli("replay", gold, "--runner", runner(tmp_path), "--out", tmp_path / "out.json")
    assert said.code == 2
    assert "gold.jsonl, line 7" in said.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gold.jsonl", "mine.py"]


def test_two_replays_are_compared_with_the_adoption_rule_as_exit_code(cli, fixtures, tmp_path):
    gold_set, assistant = fixtures / "replay" / "gold.jsonl", f"{fixtures}/replay/assistant.py"
    for name in ("eager", "careful"):
        cli("replay", gold_set, "--runner", f"{assistant}:{name}", "--out", tmp_path / f"{name}.json")
    sides = (tmp_path / "eager.json", tmp_path / "careful.json")
    blocked = cli("replay", "compare", *sides)
    assert (blocked.code, "block by answered_right" in blocked.out) == (3, True)
    adopted = cli("replay", "compare", *sides, "--metric", "not_wrong", "--json")
    assert (adopted.code, adopted.json["decision"]) == (0, "adopt")
    assert adopted.json["deltas"]["not_wrong"]["clusters"] == 24
    same = cli("replay", "compare", sides[0], sides[0])
    assert (same.code, "inconclusive" in same.out) == (2, True)
    curve = cli("replay", "curve", *sides, "--json")
    assert curve.code == 0
    assert curve.json["points"]["eager"]["quality"] == pytest.approx(88 / 96)
    twice = cli("replay", "curve", sides[0], sides[0])
    assert (twice.code, "another name" in twice.err) == (2, True)
    missing = cli("replay", "compare", sides[0], tmp_path / "none.json")
    assert (missing.code, "none.json" in missing.err) == (2, True)
