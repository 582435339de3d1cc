"""The published shape: key for key, there and back, valid against the schemas that are shipped."""

from __future__ import annotations

import math
from dataclasses import replace

import jsonschema
import pytest

from geoeval.errors import BundleError
from geoeval.evidence.documents import (
    document_bytes,
    document_of,
    gates_from_json,
    gates_json,
    metrics_from_json,
    metrics_json,
)
from geoeval.evidence.shape import SCHEMAS, evaluation_from_json, evaluation_json, load_schema
from geoeval.gates import decide
from geoeval.model import Estimate, Evaluation, Finding, Gate, Interval, Stratum

RECALL = Estimate(
    8 / 9,
    "1",
    9,
    8.0,
    9.0,
    Interval(0.5, 0.98, 0.95, "wilson_clustered", 12, 10.5, 1.25),
    (0.56, 0.98),
    ("deff_floor",),
)
NOTHING = Estimate(None, "m", 0, reason="no_support")
GATE = Gate("floor", "recall", "at_least", 0.4, family="footprint")


def whole(**more):
    return Evaluation(
        family="footprint",
        evaluator="footprint/1",
        signature="footprint/1|iou=0.5",
        estimates={"recall": RECALL, "polis_mean": NOTHING},
        per_class={"house": {"recall": RECALL}},
        strata=(
            Stratum({"region": "north"}, {"recall": RECALL}, "pass", None, critical=True),
            Stratum({"region": "south"}, {"recall": NOTHING}, "not_evaluable", "low_support"),
        ),
        findings=(Finding("crs-differs", "info", ("b.gpkg", "feature 3"), "reprojected", "none needed"),),
        gates=(decide(GATE, RECALL),),
        **more,
    )


def validator(name):
    schema = load_schema(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_every_key_of_the_contract_is_there():
    shape = evaluation_json(whole())
    assert list(shape) == [
        "family",
        "evaluator",
        "signature",
        "estimates",
        "per_class",
        "strata",
        "findings",
        "gates",
    ]
    estimate = shape["estimates"]["recall"]
    assert estimate == {
        "value": 0.888888888889,
        "unit": "1",
        "support": 9,
        "numerator": 8,
        "denominator": 9,
        "interval": {
            "low": 0.5,
            "high": 0.98,
            "confidence": 0.95,
            "method": "wilson_clustered",
            "clusters": 12,
            "effective_clusters": 10.5,
            "design_effect": 1.25,
        },
        "interval_iid": {"low": 0.56, "high": 0.98},
        "marks": ["deff_floor"],
        "reason": None,
    }
    assert set(shape["strata"][1]) == {"by", "estimates", "status", "support_reason"}
    assert set(shape["findings"][0]) == {"code", "severity", "where", "says", "mend"}
    assert list(shape["gates"][0]) == [
        "id",
        "family",
        "metric",
        "scope",
        "direction",
        "limit",
        "on",
        "min_support",
        "value",
        "low",
        "high",
        "support",
        "clusters",
        "status",
        "reason",
        "smallest_n",
        "waived_by",
    ]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"details": {"shift": {"x": 0.5}}},
        {"confusion": {"codes": [1, 2], "matrix": [[1, 0], [0, 2]]}, "excluded_classes": ({"label": "x"},)},
    ],
)
def test_there_and_back(more):
    shape = evaluation_json(whole(**more))
    validator("evaluation").validate(shape)
    again = evaluation_from_json(shape)
    assert evaluation_json(again) == shape
    assert again.estimates["recall"] == replace(RECALL, value=0.888888888889)
    assert again.strata[0].critical
    assert again.gates == whole().gates
    assert ("details" in shape) == ("details" in more)
    assert ("confusion" in shape) == ("confusion" in more)


def test_a_large_real_number_comes_back_as_one():
    """RFC 8785 writes 2e20 with all its zeros, which another reader takes for a whole number."""
    document = metrics_json({"a": replace(whole(), estimates={"x": Estimate(2e20, "m2", 3)})})
    again = metrics_from_json(document_of(document_bytes(document), "metrics.json"))
    assert metrics_json(again) == document


def test_a_value_that_is_not_finite_never_reaches_json():
    with pytest.raises(BundleError, match=r"estimates\.f1\.value"):
        evaluation_json(replace(whole(), estimates={"f1": Estimate(math.nan, "1", 3)}))


def test_metrics_and_gates_documents():
    metrics = metrics_json({"b": whole(), "a": whole()})
    assert list(metrics["evaluations"]) == ["a", "b"]
    validator("metrics").validate(metrics)
    assert metrics_json(metrics_from_json(metrics)) == metrics
    gates = gates_json([decide(GATE, RECALL), decide(GATE, None)], [])
    validator("gates").validate(gates)
    verdicts, product = gates_from_json(document_of(document_bytes(gates), "gates.json"))
    assert verdicts[1].reason == "metric_missing"
    assert product == ()


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_shipped(name):
    validator(name)
    assert load_schema(name)["$schema"].endswith("2020-12/schema")


def test_the_schema_refuses_an_undefined_number_without_a_reason():
    shape = evaluation_json(whole())
    shape["estimates"]["polis_mean"]["reason"] = None
    with pytest.raises(jsonschema.ValidationError):
        validator("evaluation").validate(shape)
    shape["estimates"]["polis_mean"]["reason"] = "just because"
    with pytest.raises(jsonschema.ValidationError):
        validator("evaluation").validate(shape)


@pytest.mark.parametrize("text", [b'{"a": NaN}', b"[Infinity]", b"{", b"\xff"])
def test_what_is_no_json_is_refused(text):
    with pytest.raises(BundleError, match=r"metrics\.json"):
        document_of(text, "metrics.json")


@pytest.mark.parametrize("data", [{}, [], {"schema": "geoeval/metrics/1"}, {"schema": "other", "evaluations": {}}])
def test_another_document_is_refused(data):
    with pytest.raises(BundleError, match="expected a document"):
        metrics_from_json(data)


def test_a_damaged_evaluation_is_refused():
    shape = evaluation_json(whole())
    del shape["estimates"]["recall"]["interval"]
    with pytest.raises(BundleError, match="not an evaluation"):
        evaluation_from_json(shape)
    with pytest.raises(BundleError, match="no schema"):
        load_schema("bord")
