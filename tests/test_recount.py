"""Recounting: figures rewritten with every hash made right do not follow from the ledger, and are found."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from geoeval.bundling import Scored, write_run
from geoeval.errors import BundleError
from geoeval.estimation import Plan
from geoeval.evaluation import evaluate
from geoeval.evaluators.validation import Validation
from geoeval.gates import decide_families, parse_gate
from geoeval.options import Pairing
from geoeval.recount import recount
from geoeval.summary import Policy
from geoeval.verify import verify

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "validation"
PLAN = Plan(redraws=40, ranked_redraws=10)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    evaluator = Validation(assume_clean=True)
    gates = (parse_gate("recall>=0.9", "validation"), *evaluator.required_gates())
    policy = Policy(gates, {"region": ("north", "atlantis")}, min_support=20)
    result = evaluate(
        evaluator,
        str(FIXTURES / "reference.csv"),
        str(FIXTURES / "prediction.csv"),
        pairing=Pairing(by=("region",)),
        plan=PLAN,
        policy=policy,
    )
    configuration = {
        "cases": [
            {
                "id": "anomalies",
                "family": "validation",
                "options": {"assume_clean": True},
                "by": ["region"],
                "critical": {name: list(values) for name, values in policy.critical.items()},
                "min_support": 20,
            }
        ],
        "intervals": asdict(PLAN),
        "gates": [asdict(gate) for gate in gates],
    }
    verdicts = decide_families(gates, {"anomalies": result.evaluation}, {"anomalies": 20})
    runs = tmp_path_factory.mktemp("runs")
    return write_run(runs, {"anomalies": Scored(result, evaluator)}, configuration, verdicts)


@pytest.fixture
def forged(bundle, tmp_path):
    """A copy in which a document can be rewritten."""

    def rewrite(name, change):
        copy = tmp_path / bundle.name
        for path in bundle.rglob("*"):
            if path.is_file():
                target = copy / path.relative_to(bundle)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(path.read_bytes())
        data = json.loads((copy / name).read_bytes())
        change(data)
        (copy / name).write_text(json.dumps(data))
        return copy

    return rewrite


def test_a_bundle_counts_up_again(bundle):
    assert verify(bundle).problems == ()
    assert recount(bundle) == []


def test_a_figure_that_was_improved_is_found(forged):
    def improve(data):
        data["evaluations"]["anomalies"]["estimates"]["recall"]["value"] = 0.999

    found = recount(forged("metrics.json", improve))
    assert found == ["anomalies.estimates.recall.value: says 0.999, the ledger gives 0.983333333333"]


def test_an_interval_that_was_narrowed_is_found(forged):
    def narrow(data):
        data["evaluations"]["anomalies"]["estimates"]["f1"]["interval"]["low"] = 0.99

    assert recount(forged("metrics.json", narrow))[0].startswith("anomalies.estimates.f1.interval.low: says 0.99")


def test_a_line_of_the_ledger_that_was_dropped_is_found(forged):
    found = recount(forged("ledger/anomalies.json", lambda data: data["rows"].pop()))
    assert any("anomalies.estimates." in line for line in found)


def test_options_that_were_changed_afterwards_are_found(forged):
    found = recount(forged("manifest.json", lambda data: data["configuration"]["cases"][0]["options"].clear()))
    assert any("signature" in line for line in found)


def test_a_case_that_was_dropped_is_found(forged):
    found = recount(forged("metrics.json", lambda data: data["evaluations"].clear()))
    assert found == ["metrics.json: case 'anomalies' is missing"]


def test_a_configuration_that_cannot_be_followed_is_said(forged):
    def break_it(data):
        data["configuration"]["cases"][0]["options"] = {"asume_clean": True}

    assert "did you mean 'assume_clean'" in recount(forged("manifest.json", break_it))[0]


def test_a_bundle_without_its_ledger_is_unreadable(forged):
    copy = forged("metrics.json", lambda data: None)
    (copy / "ledger" / "anomalies.json").unlink()
    with pytest.raises(BundleError, match=r"ledger/anomalies\.json: cannot be read"):
        recount(copy)
