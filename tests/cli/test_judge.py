"""``geoeval judge`` as a shell calls it; the clock is set by the test."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def clock(monkeypatch):
    """Set the clock of the command line."""
    import geoeval.cli.judge as module

    def set_to(now):
        monkeypatch.setattr(module, "_clock", lambda: now)

    set_to(NOW)
    return set_to


@pytest.fixture
def judge(cli, clock, fixtures, tmp_path):
    """Run a command for one of the judges of the fixtures."""

    def call(command, name="fair", *arguments, tags=("none", "1")):
        model, rubric = tags
        return cli(
            "judge",
            command,
            fixtures / "judge" / "set.jsonl",
            "--judge",
            f"{fixtures}/judge/judges.py:{name}",
            *("--judge-id", name, "--model", model, "--rubric", rubric),
            *("--history", tmp_path / "history.jsonl"),
            *arguments,
        )

    return call


def test_a_set_is_frozen_once(cli, fixtures, tmp_path):
    history, out = fixtures / "judge" / "history.jsonl", tmp_path / "set.jsonl"
    first = cli("judge", "freeze", history, "--out", out)
    assert (first.code, "120 entries" in first.out) == (0, True)
    assert out.read_bytes() == (fixtures / "judge" / "set.jsonl").read_bytes()
    again = cli("judge", "freeze", history, "--out", out)
    assert (again.code, "is there already, with the same" in again.out) == (0, True)
    other = cli("judge", "freeze", history, "--out", out, "--limit", 50)
    assert (other.code, "a set is made once" in other.err) == (2, True)
    assert out.read_bytes() == (fixtures / "judge" / "set.jsonl").read_bytes()


@pytest.mark.parametrize("row", ["", "{", "{}", '{"task_id": "a", "episode": "b", "outcome": 1, "dimensions": {}}'])
def test_a_malformed_history_freezes_nothing(cli, row, fixtures, tmp_path):
    text = (fixtures / "judge" / "history.jsonl").read_text()
    (tmp_path / "h.jsonl").write_text(text + row + "\n")
    said = cli("judge", "freeze", tmp_path / "h.jsonl", "--out", tmp_path / "set.jsonl")
    assert said.code == 2
    assert "h.jsonl, line 121" in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["h.jsonl"]


def test_a_judge_is_calibrated_and_may_be_promoted(judge):
    said = judge("calibrate")
    assert said.code == 0
    assert "biased dimensions: none; 120 recorded episodes, 0 run" in said.out
    assert judge("gate").code == 0
    assert judge("gate").out == "GO\n"


def test_a_biased_judge_is_named_and_blocked(judge):
    said = judge("calibrate", "lenient", "--json")
    assert said.code == 0
    assert said.json["biased_dimensions"] == [{"dimension": "source", "direction": "judge_higher"}]
    assert said.json["executor_runs"] == 0
    gate = judge("gate", "lenient", "--json")
    assert gate.code == 3
    assert [(one["reason"], one["dimension"]) for one in gate.json["refusals"]] == [("biased_dimension", "source")]


def test_the_gate_refuses_what_is_not_decidable(judge, clock, tmp_path):
    assert judge("gate").code == 2
    judge("calibrate")
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("Judge the answer.")
    for arguments, says in (
        (("--prompt", prompt), "the prompt is not the one"),
        (("--margin", "0.01"), "is not within"),
    ):
        said = judge("gate", "fair", *arguments)
        assert (said.code, says in said.out) == (2, True)
    assert judge("gate", "fair", tags=("none", "2")).code == 2
    clock(NOW + timedelta(days=8))
    assert "stale_calibration" in judge("gate").out
    assert judge("gate", "fair", "--max-age", "9d").code == 0


def test_a_scheduler_calibrates_only_when_it_is_due(judge, clock, tmp_path):
    history = tmp_path / "history.jsonl"
    assert judge("calibrate", "fair", "--if-older-than", "7d").code == 0
    first = history.read_bytes()
    clock(NOW + timedelta(days=6))
    said = judge("calibrate", "fair", "--if-older-than", "7d")
    assert (said.code, said.out, "nothing was done" in said.err) == (0, "", True)
    assert history.read_bytes() == first
    clock(NOW + timedelta(days=8))
    assert judge("calibrate", "fair", "--if-older-than", "7d").code == 0
    assert len(history.read_bytes().splitlines()) == 2
    assert history.read_bytes().startswith(first)


def test_equal_passes_differ_in_their_time_only(judge, clock, tmp_path):
    judge("calibrate")
    clock(NOW + timedelta(days=1))
    judge("calibrate")
    one, two = (json.loads(row) for row in (tmp_path / "history.jsonl").read_text().splitlines())
    assert one["calibration"] == two["calibration"]
    assert (one["at"], two["at"]) == ("2026-03-01T12:00:00Z", "2026-03-02T12:00:00Z")


def test_status_says_how_old_the_newest_is_and_draws_the_drift(cli, judge, clock, tmp_path):
    history = ("--history", tmp_path / "history.jsonl")
    assert cli("judge", "status", *history).code == 2
    judge("calibrate", "fair")
    clock(NOW + timedelta(days=1))
    judge("calibrate", "lenient")
    clock(NOW + timedelta(days=3))
    plot, metrics = tmp_path / "drift.svg", tmp_path / "judge.prom"
    said = cli("judge", "status", *history, "--plot", plot, "--openmetrics", metrics)
    assert said.code == 0
    assert "newest of 2 results, 2026-03-02 12:00 UTC, 2 days, 0:00:00 old" in said.out
    assert plot.read_bytes().startswith(b"<svg")
    assert 'judge="lenient",model="none",rubric="1"' in metrics.read_text()
    stale = cli("judge", "status", *history, "--judge-id", "fair", "--max-age", "2d", "--json")
    assert (stale.code, stale.json["stale"], stale.json["results"], stale.json["age_seconds"]) == (2, True, 1, 259200)
    assert cli("judge", "status", *history, "--max-age", "2d").code == 0
    assert cli("judge", "status", *history, "--model", "other").code == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--margin", "10"], "is one a percentage"),
        (["--margin", "nan"], "is one a percentage"),
        (["--if-older-than", "soon"], "an age is"),
        (["--prompt", "nowhere.txt"], "nowhere.txt: no such file"),
        (["--openmetrics", "nowhere/m.prom"], "cannot be written"),
    ],
)
def test_what_cannot_be_understood_is_refused_and_nothing_is_kept(judge, arguments, says, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    said = judge("calibrate", "fair", *arguments)
    assert said.code == 2
    assert says in said.err
    assert not list(tmp_path.iterdir())


def test_a_set_that_was_changed_is_refused(cli, fixtures, tmp_path):
    text = (fixtures / "judge" / "set.jsonl").read_text()
    (tmp_path / "set.jsonl").write_text(text.replace('"outcome":true', '"outcome":false', 1))
    said = cli(
        *("judge", "calibrate", tmp_path / "set.jsonl", "--judge", f"{fixtures}/judge/judges.py:fair"),
        *("--judge-id", "fair", "--model", "none", "--rubric", "1", "--history", tmp_path / "history.jsonl"),
    )
    assert said.code == 2
    assert "set.jsonl, line 1: number, dimensions or hash" in said.err
    assert not (tmp_path / "history.jsonl").exists()


def test_a_judge_that_raises_leaves_the_history_as_it_was(cli, clock, fixtures, tmp_path):
    path = tmp_path / "bad.py"
    path.write_text("def judge(episode):\n    raise KeyError(episode.task_id)\n")
    arguments = (
        *("judge", "calibrate", fixtures / "judge" / "set.jsonl", "--judge", f"{path}:judge"),
        *("--judge-id", "bad", "--model", "none", "--rubric", "1", "--history", tmp_path / "history.jsonl"),
    )
    said = cli(*arguments)
    assert (said.code, "KeyError" in said.err, "Traceback" in said.err) == (2, True, False)
    assert "Traceback" in cli(*arguments, "--debug").err
    assert not (tmp_path / "history.jsonl").exists()
