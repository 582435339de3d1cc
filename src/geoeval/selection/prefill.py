"""The consumer's side: a report of a comparison becomes one decision, GO with a threshold, or blocked with each reason.

Fail closed: a missing report blocks, and so does a report that contradicts itself, that was made under another policy,
or that was not held to the limits that the policy asks for. What is no report at all is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from geoeval.errors import InputError
from geoeval.evidence.canonical import significant
from geoeval.selection.policy import AbstentionPolicy
from geoeval.selection.recounted import contradictions

#: Schema of the reports that this reads.
REPORT = "geoeval/comparison/1"

#: Schema of a decision.
RECEIPT = "geoeval/prefill-receipt/1"


@dataclass(frozen=True, slots=True)
class Blocked:
    """One reason: ``gate_failed`` or a word of :data:`geoeval.model.REASONS`, what it is about, and a sentence."""

    code: str
    model: str | None
    gate: str | None
    says: str


@dataclass(frozen=True, slots=True)
class PrefillDecision:
    """Whether answers may be offered, by which model, and from which confidence on.

    ``model`` and ``threshold`` are None unless the decision is GO.
    """

    decision: Literal["GO", "BLOCKED"]
    model: str | None
    threshold: float | None
    reasons: tuple[Blocked, ...]
    synthetic: bool = False

    @property
    def exit_code(self) -> Literal[0, 3]:
        """0 for GO, 3 for BLOCKED."""
        return 0 if self.decision == "GO" else 3

    def described(self) -> dict[str, Any]:
        """The decision as plain values."""
        return {
            "schema": RECEIPT,
            "decision": self.decision,
            "model": self.model,
            "threshold": self.threshold,
            "synthetic": self.synthetic,
            "reasons": [
                {"code": one.code, "model": one.model, "gate": one.gate, "says": one.says} for one in self.reasons
            ],
        }


def evaluate_prefill_gate(
    report: Mapping[str, Any] | None, policy: AbstentionPolicy | None = None, *, require_real: bool = False
) -> PrefillDecision:
    """One release decision from the report of a comparison.

    Parameters
    ----------
    report
        As written by ``geoeval compare``; None where there is none, which blocks.
    policy
        The policy in force. The report must have been made under this very policy, and must have been held to limits
        at least as strict as it asks for. None leaves both out.
    require_real
        True blocks on a report from synthetic predictions.

    Returns
    -------
    PrefillDecision
        GO only where a model is recommended that clears every one of its gates, with the threshold that was selected on
        validation and scored on test.

    Raises
    ------
    InputError
        Where ``report`` is something else than a report.

    Examples
    --------
    >>> found = evaluate_prefill_gate(None)
    >>> found.decision, found.reasons[0].code, found.exit_code
    ('BLOCKED', 'evidence_missing', 3)
    """
    if report is None:
        says = "there is no report; run `geoeval compare` on held-out predictions first"
        return PrefillDecision("BLOCKED", None, None, (Blocked("evidence_missing", None, None, says),))
    _check(report)
    reasons = [*_of_report(report, policy, require_real=require_real), *_of_models(report, policy)]
    synthetic = bool(report["synthetic"])
    if reasons or report["verdict"] != "GO":
        if not reasons:
            reasons = [Blocked("evidence_mismatch", None, None, "the verdict is BLOCKED although a model clears")]
        return PrefillDecision("BLOCKED", None, None, tuple(reasons), synthetic)
    name = report["recommended"]
    return PrefillDecision("GO", name, float(report["models"][name]["threshold"]), (), synthetic)


def _of_report(report: Mapping[str, Any], policy: AbstentionPolicy | None, *, require_real: bool) -> Iterator[Blocked]:
    """Reasons that hold for any model."""
    if require_real and report["synthetic"]:
        yield Blocked("synthetic_only", None, None, "the predictions are synthetic; they say nothing about a model")
    made_under = report["policy"]["sha256"] if report["policy"] is not None else None
    if policy is not None and made_under != policy.sha256:
        under = "no policy" if made_under is None else f"the policy {report['policy'].get('name')!r}, another one"
        says = f"the report was made under {under}; run `geoeval compare` under {policy.name!r}"
        yield Blocked("evidence_mismatch", None, None, says)
    if report["verdict"] == "GO" and report["recommended"] not in report["models"]:
        yield Blocked("evidence_mismatch", None, None, "the verdict is GO, and no model of the report is recommended")


def _of_models(report: Mapping[str, Any], policy: AbstentionPolicy | None) -> Iterator[Blocked]:
    """Reasons against the recommended model, or, where none is, against each."""
    name = report["recommended"]
    if report["verdict"] == "GO":
        if name in report["models"]:
            yield from _of_model(name, report["models"][name], policy)
        return
    if not report["models"]:
        yield Blocked("no_support", None, None, "the report holds no model")
    for model in sorted(report["models"]):
        yield from _of_model(model, report["models"][model], policy)


def _of_model(name: str, model: Mapping[str, Any], policy: AbstentionPolicy | None) -> Iterator[Blocked]:
    threshold = model["threshold"]
    if threshold is None:
        says = "no threshold reaches the coverage that is asked for on the validation split"
        yield Blocked("no_support", name, None, f"{name}: {says}")
    elif not _number(threshold) or not 0 <= threshold <= 1:
        yield Blocked("evidence_mismatch", name, None, f"{name}: {threshold!r} is no threshold in [0, 1]")
    elif policy is not None and threshold < significant(policy.confidence_floor):
        yield Blocked("evidence_mismatch", name, None, f"{name}: the threshold {threshold!r} is below the floor")
    if _number(threshold):
        for says in contradictions(model):
            yield Blocked("evidence_mismatch", name, None, f"{name}: {says}")
    if not model["gates"]:
        yield Blocked("no_policy", name, None, f"{name}: was held to no gate")
    if policy is not None:
        yield from _of_limits(name, model["gates"], policy)
    for gate in model["gates"]:
        yield from _of_gate(name, gate)


def _of_limits(name: str, gates: Iterable[Mapping[str, Any]], policy: AbstentionPolicy) -> Iterator[Blocked]:
    """Limits of the policy to which a model was not held, or only to weaker ones."""
    for metric, direction, asked in policy.release.limits:
        own = [gate for gate in gates if gate["metric"] == metric and gate["scope"] == "overall"]
        if not own:
            yield Blocked("metric_missing", name, metric, f"{name}: was not held to a gate on {metric}")
            continue
        limit = significant(asked)
        held = [gate["limit"] for gate in own if gate["direction"] == direction and _number(gate["limit"])]
        if not any(one >= limit if direction == "at_least" else one <= limit for one in held):
            sign = "≥" if direction == "at_least" else "≤"
            found = " and ".join(f"{sign} {one}" for one in held) or f"no limit {sign}"
            says = f"{name}: was held to {metric} {found}, the policy {policy.name!r} asks for {sign} {limit:g}"
            yield Blocked("evidence_mismatch", name, own[0]["id"], says)


def _of_gate(name: str, gate: Mapping[str, Any]) -> Iterator[Blocked]:
    """Why a gate does not pass; a pass is believed only where its own numbers say so."""
    metric, limit, status = gate["metric"], gate["limit"], gate["status"]
    sign = "≥" if gate["direction"] == "at_least" else "≤"
    scope = "" if gate["scope"] == "overall" else f" of {str(gate['scope']).removeprefix('per_class:')}"
    needs = f"{metric}{scope} must be {sign} {limit}" if metric else "a gate must be declared"
    if status == "pass":
        held = gate["value"]
        if gate["on"] == "interval":
            held = gate["low"] if gate["direction"] == "at_least" else gate["high"]
        if not (_number(held) and _number(limit) and (held >= limit if sign == "≥" else held <= limit)):
            yield Blocked("evidence_mismatch", name, gate["id"], f"{name}: {needs}, passed with {held!r}")
    elif status == "fail":
        yield Blocked("gate_failed", name, gate["id"], f"{name}: {needs}, found {gate['value']}")
    else:
        reason = str(gate["reason"] or "internal_error")
        yield Blocked(reason, name, gate["id"], f"{name}: {needs}, could not be decided ({reason})")


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_GATE_KEYS = ("id", "metric", "scope", "direction", "limit", "on", "value", "low", "high", "status", "reason")


def _check(report: object) -> None:
    """Refuse what is no report."""
    if not isinstance(report, Mapping) or report.get("schema") != REPORT:
        found = report.get("schema") if isinstance(report, Mapping) else type(report).__name__
        raise InputError(f"report: expected the schema {REPORT!r}, found {found!r}; is it a report of geoeval compare?")
    models = report.get("models")
    problems = [key for key in ("verdict", "recommended", "synthetic", "policy", "models") if key not in report]
    if report.get("verdict") not in ("GO", "BLOCKED"):
        problems.append("verdict")
    if not isinstance(report.get("synthetic"), bool):
        problems.append("synthetic")
    policy = report.get("policy")
    if policy is not None and not (isinstance(policy, Mapping) and isinstance(policy.get("sha256"), str)):
        problems.append("policy")
    if not isinstance(report.get("recommended"), str | None):
        problems.append("recommended")
    if not isinstance(models, Mapping):
        problems.append("models")
    else:
        problems += [f"models.{name}" for name, model in models.items() if not _is_model(model)]
    if problems:
        raise InputError(f"report: cannot be used, look at {', '.join(dict.fromkeys(problems))}")


def _is_model(model: object) -> bool:
    if not isinstance(model, Mapping) or "threshold" not in model or not isinstance(model.get("gates"), list):
        return False
    return all(
        isinstance(gate, Mapping)
        and all(key in gate for key in _GATE_KEYS)
        and gate["status"] in ("pass", "fail", "not_evaluable")
        and gate["direction"] in ("at_least", "at_most", "")
        for gate in model["gates"]
    )
