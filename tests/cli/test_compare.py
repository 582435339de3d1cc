"""``geoeval compare`` as a shell calls it: exit codes, what is printed, what is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures" / "compare"
CONFIG = ROOT / "configs" / "compare-prefill.toml"
POLICY = ROOT / "configs" / "abstention-prefill.toml"


@pytest.mark.parametrize(("name", "code"), [("go", 0), ("blocked", 3)])
def test_the_verdict_is_the_exit_code(cli, name, code, tmp_path):
    said = cli("compare", FIXTURES / f"{name}.jsonl", "--config", CONFIG, "--out", tmp_path / "out")
    assert said.code == code, said.err
    assert said.out.startswith("SYNTHETIC predictions")
    assert said.out.splitlines()[-1].startswith("GO  specialist" if code == 0 else "BLOCKED")
    assert "precision_at_coverage" in said.out
    assert json.loads((tmp_path / "out" / "report.json").read_bytes())["verdict"] == ("GO" if code == 0 else "BLOCKED")


def test_a_leaked_corpus_writes_nothing(cli, tmp_path):
    report, out = tmp_path / "report.json", tmp_path / "out"
    said = cli("compare", FIXTURES / "leaked.jsonl", "--config", CONFIG, "--out", out, "--report", report)
    assert said.code == 2
    assert "LeakageError: leaked.jsonl, line 213" in said.err
    assert said.out == ""
    assert list(tmp_path.iterdir()) == []


def one(**changes):
    whole = {"model": "m", "subjectKey": "e6" + 14 * "0", "split": "test", "truth": {"bristolType": 1}}
    return json.dumps({**whole, "prediction": None, **changes})


@pytest.mark.parametrize(
    "line",
    [
        "{",
        '{"model": "m"}',
        one(truth={"bristolType": 8}),
        one(split="train"),
        one(prediction={"bristolType": 1, "confidence": float("nan")}),
        one(prediction={"bristolType": 1, "confidence": 1.5}),
        one(quality="blurry"),
        one(note="?"),
    ],
)
def test_a_broken_line_is_exit_code_2_and_nothing_is_written(cli, line, tmp_path):
    path, report = tmp_path / "bad.jsonl", tmp_path / "report.json"
    path.write_text((FIXTURES / "go.jsonl").read_text() + line + "\n")
    said = cli("compare", FIXTURES / "blocked.jsonl", path, "--config", CONFIG, "--report", report, "--json")
    assert said.code == 2
    assert "bad.jsonl, line 213: " in said.err
    assert said.out == ""
    assert not report.exists()


def test_many_files_and_json(cli, tmp_path):
    lines = (FIXTURES / "go.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "a.jsonl").write_text("".join(lines[::2]))
    (tmp_path / "b.jsonl").write_text("".join(lines[1::2]))
    whole = cli("compare", FIXTURES / "go.jsonl", "--config", CONFIG, "--json")
    parts = cli("compare", "--json", "--config", CONFIG, tmp_path / "b.jsonl", tmp_path / "a.jsonl")
    assert (whole.code, parts.code) == (0, 0)
    assert whole.out == parts.out
    assert whole.json["recommended"] == "specialist"


@pytest.mark.parametrize(
    "arguments", [(), ("--config", CONFIG), (FIXTURES / "go.jsonl",), (FIXTURES / "go.jsonl", "--config", "none.toml")]
)
def test_a_call_that_lacks_something_is_refused(cli, arguments):
    said = cli("compare", *arguments)
    assert said.code == 2
    assert said.err


def test_a_folder_that_cannot_be_written_is_refused(cli, tmp_path):
    (tmp_path / "file").write_text("")
    said = cli("compare", FIXTURES / "go.jsonl", "--config", CONFIG, "--report", tmp_path / "file" / "report.json")
    assert said.code == 2
    assert "cannot be written" in said.err


def test_help_tells_both_commands(cli):
    said = cli("compare", "--help")
    assert said.code == 0
    assert "--config" in said.out
    assert "receipt REPORT" in said.out
    assert "--policy" in cli("compare", "receipt", "--help").out


@pytest.fixture
def report(cli, tmp_path):
    def make(name):
        path = tmp_path / f"{name}.json"
        cli("compare", FIXTURES / f"{name}.jsonl", "--config", CONFIG, "--report", path)
        return path

    return make


def test_a_receipt_of_go(cli, report):
    said = cli("compare", "receipt", report("go"), "--policy", POLICY)
    assert said.code == 0
    assert said.out.splitlines()[0].startswith("SYNTHETIC predictions")
    assert "GO  specialist" in said.out
    found = cli("compare", "receipt", report("go"), "--json").json
    assert (found["decision"], found["model"], found["synthetic"], found["reasons"]) == ("GO", "specialist", True, [])


def test_a_receipt_of_blocked_names_each_reason(cli, report):
    said = cli("compare", "receipt", report("blocked"), "--policy", POLICY)
    assert said.code == 3
    assert said.out.splitlines()[1] == "BLOCKED"
    assert said.out.count("gate_failed") == 5


def test_a_missing_report_blocks(cli, tmp_path):
    said = cli("compare", "receipt", tmp_path / "none.json")
    assert said.code == 3
    assert "evidence_missing" in said.out


def test_real_predictions_may_be_asked_for(cli, report):
    said = cli("compare", "receipt", report("go"), "--require-real")
    assert said.code == 3
    assert "synthetic_only" in said.out


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"schema": "geoeval/board/1"}', "GO"])
def test_what_is_no_report_is_refused(cli, content, tmp_path):
    path = tmp_path / "report.json"
    path.write_text(content)
    said = cli("compare", "receipt", path)
    assert said.code == 2
    assert "report" in said.err
    assert said.out == ""


def test_a_lax_configuration_cannot_release_what_is_blocked(cli, tmp_path):
    """The verdict of its report is GO; the policy in force asks for more than it was held to."""
    text = CONFIG.read_text().replace("0.80", "0.01").replace("0.90", "0.01").replace("0.05", "0.99")
    (tmp_path / "lax.toml").write_text(text)
    (tmp_path / POLICY.name).write_text(POLICY.read_text())
    path = tmp_path / "report.json"
    assert cli("compare", FIXTURES / "blocked.jsonl", "--config", tmp_path / "lax.toml", "--report", path).code == 0
    said = cli("compare", "receipt", path, "--policy", POLICY)
    assert (said.code, said.out.splitlines()[1]) == (3, "BLOCKED")
    assert said.out.count("the policy 'prefill' asks for") == 3


def test_a_record_without_a_quality_is_refused_under_the_prefill_policy(cli, tmp_path):
    path = tmp_path / "bare.jsonl"
    path.write_text((FIXTURES / "go.jsonl").read_text().replace(',"quality":"clear"', "", 1))
    said = cli("compare", path, "--config", CONFIG)
    assert (said.code, "'quality' is missing" in said.err) == (2, True)
