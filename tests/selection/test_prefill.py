"""A report becomes one decision, and whatever is not plainly GO blocks."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import jsonschema
import pytest

from geoeval.compare import compare, load_comparison, load_policy
from geoeval.errors import InputError
from geoeval.model import REASONS
from geoeval.selection import AbstentionPolicy, evaluate_prefill_gate
from geoeval.selection.recounted import contradictions

ROOT = Path(__file__).resolve().parents[2]
POLICY = load_policy(ROOT / "configs" / "abstention-prefill.toml")
SCHEMA = json.loads((ROOT / "src" / "geoeval" / "schemas" / "compare-receipt.schema.json").read_text())


@pytest.fixture(scope="module")
def reports():
    comparison = load_comparison(ROOT / "configs" / "compare-prefill.toml")
    return {name: compare([ROOT / "fixtures" / "compare" / f"{name}.jsonl"], comparison) for name in ("go", "blocked")}


@pytest.fixture
def go(reports):
    return copy.deepcopy(reports["go"])


def codes(found):
    jsonschema.Draft202012Validator(SCHEMA).validate(found.described())
    assert {one.code for one in found.reasons} <= REASONS | {"gate_failed"}
    return [one.code for one in found.reasons]


def test_go_carries_the_threshold_of_validation(go):
    found = evaluate_prefill_gate(go, POLICY)
    assert (found.decision, found.model, found.reasons, found.exit_code) == ("GO", "specialist", (), 0)
    assert found.threshold == go["models"]["specialist"]["threshold"]
    assert found.synthetic
    assert codes(found) == []


def test_a_missing_report_blocks():
    found = evaluate_prefill_gate(None)
    assert (found.decision, found.model, found.threshold, found.exit_code) == ("BLOCKED", None, None, 3)
    assert codes(found) == ["evidence_missing"]


def test_blocked_names_each_reason_of_each_model(reports):
    found = evaluate_prefill_gate(reports["blocked"], POLICY)
    assert found.exit_code == 3
    failed = [
        (name, row["metric"])
        for name, model in reports["blocked"]["models"].items()
        for row in model["gates"]
        if row["status"] == "fail"
    ]
    assert [(one.model, one.gate.split(":")[1].split(">")[0].split("<")[0]) for one in found.reasons] == failed
    assert set(codes(found)) == {"gate_failed"}
    assert found.synthetic


def test_synthetic_predictions_block_where_real_ones_are_asked_for(go):
    assert codes(evaluate_prefill_gate(go, require_real=True)) == ["synthetic_only"]


def test_another_policy_blocks(go):
    other = AbstentionPolicy(name="other")
    found = evaluate_prefill_gate(go, other)
    assert codes(found) == ["evidence_mismatch"]
    assert "made under the policy 'prefill'" in found.reasons[0].says
    go["policy"] = None
    assert codes(evaluate_prefill_gate(go, POLICY)) == ["evidence_mismatch"]
    assert evaluate_prefill_gate(go).decision == "GO"


def specialist(report):
    return report["models"]["specialist"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda r: r.update(recommended="nobody"), "evidence_mismatch"),
        (lambda r: r.update(recommended=None), "evidence_mismatch"),
        (lambda r: r.update(recommended="baseline"), "gate_failed"),
        (lambda r: r.update(models={}), "evidence_mismatch"),
        (lambda r: r.update(verdict="BLOCKED", models={}), "no_support"),
        (lambda r: r.update(verdict="BLOCKED", models={"specialist": specialist(r)}), "evidence_mismatch"),
        (lambda r: specialist(r).update(threshold=None), "no_support"),
        (lambda r: specialist(r).update(threshold=1.5), "evidence_mismatch"),
        (lambda r: specialist(r).update(threshold=float("nan")), "evidence_mismatch"),
        (lambda r: specialist(r).update(threshold="0.9"), "evidence_mismatch"),
        (lambda r: specialist(r).update(threshold=0.2), "evidence_mismatch"),
        (lambda r: specialist(r).update(gates=[]), "no_policy"),
        (lambda r: specialist(r)["gates"].pop(), "metric_missing"),
        (lambda r: specialist(r)["gates"][0].update(value=0.1), "evidence_mismatch"),
        (lambda r: specialist(r)["gates"][0].update(value=None), "evidence_mismatch"),
        (lambda r: specialist(r)["gates"][0].update(value=float("nan")), "evidence_mismatch"),
        (lambda r: specialist(r)["gates"][0].update(limit=float("nan")), "evidence_mismatch"),
        (lambda r: specialist(r)["gates"][0].update(limit=None), "evidence_mismatch"),
        (lambda r: specialist(r)["gates"][0].update(on="interval", low=0.79), "evidence_mismatch"),
        (lambda r: specialist(r)["gates"][2].update(value=0.051), "evidence_mismatch"),
        (lambda r: specialist(r)["gates"][0].update(status="fail"), "gate_failed"),
        (lambda r: specialist(r)["gates"][0].update(limit=0.79), "evidence_mismatch"),
        (lambda r: specialist(r)["gates"][2].update(limit=0.06), "evidence_mismatch"),
        (lambda r: specialist(r)["gates"][0].update(direction="at_most", limit=1.0), "evidence_mismatch"),
        (lambda r: specialist(r)["gates"][0].update(status="not_evaluable", reason="low_support"), "low_support"),
        (lambda r: specialist(r)["gates"][0].update(status="not_evaluable", reason=None), "internal_error"),
    ],
)
def test_a_report_that_contradicts_itself_blocks(go, change, code):
    change(go)
    found = evaluate_prefill_gate(go, POLICY)
    assert found.decision == "BLOCKED"
    assert (found.model, found.threshold) == (None, None)
    assert code in codes(found)


EDITS = {
    "a headline": lambda m: m.update(macro_f1=0.99),
    "a headline and its estimate": lambda m: (m.update(ece=0.001), m["estimates"]["ece"].update(value=0.001)),
    "an estimate": lambda m: m["estimates"]["coverage"].update(value=0.9),
    "the value of a gate": lambda m: m["gates"][1].update(value=0.999),
    "the interval of a gate": lambda m: m["gates"][1].update(low=0.95),
    "a higher threshold": lambda m: m.update(threshold=0.95),
    "a lower threshold": lambda m: m.update(threshold=0.3),
    "a point of the curve": lambda m: m["risk_coverage"]["correct"].__setitem__(31, 47),
    "a wrong cell": lambda m: m["confusion"].pop("5->7"),
    "a cell that is no count": lambda m: m["confusion"].update({"5->7": 1.0}),
    "a class swapped": lambda m: m["confusion"].update({"1->1": 7, "2->2": 8, "5->7": 1}),
    "the abstentions": lambda m: m["abstentions"].update(no_suggestion=0),
    "the bins": lambda m: m["ece_bins"][9].update(n=46),
    "precision on validation": lambda m: m["validation"].update(precision=1.0),
    "no curve": lambda m: m.pop("risk_coverage"),
    "no estimates": lambda m: m.update(estimates=None),
    "no records": lambda m: m.update(test={"n": 0}),
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("policy", [POLICY, None])
def test_a_report_that_was_edited_blocks(go, edit, policy):
    EDITS[edit](specialist(go))
    found = evaluate_prefill_gate(go, policy)
    assert found.exit_code == 3
    assert set(codes(found)) == {"evidence_mismatch"}


def test_all_that_is_consistent_is_believed(reports):
    """Also of models that are not recommended: nothing that is written contradicts itself."""
    for report in reports.values():
        for model in report["models"].values():
            assert contradictions(model) == ()


@pytest.mark.parametrize(
    ("old", "new", "gate"),
    [
        ("at_least = 0.80", "at_least = 0.10", "macro_f1"),
        ("at_least = 0.90", "at_least = 0.10", "precision_at_coverage"),
        ("at_most = 0.05", "at_most = 0.90", "ece"),
    ],
)
def test_a_report_that_was_held_to_worthless_limits_blocks(tmp_path, old, new, gate):
    text = (ROOT / "configs" / "compare-prefill.toml").read_text()
    (tmp_path / "abstention-prefill.toml").write_text((ROOT / "configs" / "abstention-prefill.toml").read_text())
    (tmp_path / "lax.toml").write_text(text.replace(old, new))
    go = ROOT / "fixtures" / "compare" / "go.jsonl"
    report = compare([go], load_comparison(tmp_path / "lax.toml"))
    assert report["verdict"] == "GO"
    found = evaluate_prefill_gate(report, POLICY)
    assert (found.exit_code, codes(found)) == (3, ["evidence_mismatch"])
    assert f"was held to {gate} " in found.reasons[0].says
    assert "asks for" in found.reasons[0].says
    assert evaluate_prefill_gate(report).decision == "GO"
    (tmp_path / "strict.toml").write_text(text.replace("at_least = 0.80", "at_least = 0.85"))
    strict = compare([go], load_comparison(tmp_path / "strict.toml"))
    assert evaluate_prefill_gate(strict, POLICY).decision == "GO"


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r.clear(),
        lambda r: r.update(schema="geoeval/board/1"),
        lambda r: r.pop("verdict"),
        lambda r: r.update(verdict="go"),
        lambda r: r.update(synthetic="no"),
        lambda r: r.pop("policy"),
        lambda r: r.update(policy={"name": "prefill"}),
        lambda r: r.update(recommended=["specialist"]),
        lambda r: r.update(models=[]),
        lambda r: r["models"].update(specialist="good"),
        lambda r: specialist(r).pop("threshold"),
        lambda r: specialist(r).update(gates=None),
        lambda r: specialist(r).update(gates=["passed"]),
        lambda r: specialist(r)["gates"][0].pop("limit"),
        lambda r: specialist(r)["gates"][0].update(status="PASS"),
        lambda r: specialist(r)["gates"][0].update(direction="up"),
    ],
)
def test_what_is_no_report_is_refused(go, change):
    change(go)
    with pytest.raises(InputError, match="report"):
        evaluate_prefill_gate(go, POLICY)


@pytest.mark.parametrize("report", [[], "GO", 1, True])
def test_other_things_are_no_report(report):
    with pytest.raises(InputError, match="is it a report of geoeval compare"):
        evaluate_prefill_gate(report)
