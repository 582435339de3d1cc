"""The shape of an evaluation in JSON, and back: what ``--json`` prints and ``metrics.json`` holds. Keys are stable."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any, cast

from geoeval.errors import BundleError
from geoeval.evidence.canonical import plain
from geoeval.model import Estimate, Evaluation, Finding, Interval, Status, Stratum, Verdict

#: Names of the published JSON Schemas.
SCHEMAS = ("board", "evaluation", "gates", "manifest", "metrics", "versus")

_VERDICT_KEYS = (
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
)


def estimate_json(estimate: Estimate) -> dict[str, Any]:
    """One estimate with every key, null where there is nothing.

    Examples
    --------
    >>> estimate_json(Estimate(None, "1", 0, 0, 0, reason="undefined_ratio"))["denominator"]
    0
    """
    interval = estimate.interval
    iid = estimate.interval_iid
    return {
        "value": estimate.value,
        "unit": estimate.unit,
        "support": int(estimate.support),
        "numerator": _whole(estimate.numerator),
        "denominator": _whole(estimate.denominator),
        "interval": None
        if interval is None
        else {
            "low": interval.low,
            "high": interval.high,
            "confidence": interval.confidence,
            "method": interval.method,
            "clusters": interval.clusters,
            "effective_clusters": interval.effective_clusters,
            "design_effect": interval.design_effect,
        },
        "interval_iid": None if iid is None else {"low": iid[0], "high": iid[1]},
        "marks": list(estimate.marks),
        "reason": estimate.reason,
    }


def _whole(number: float | None) -> float | int | None:
    """A whole number as an int: counts are printed without a decimal point."""
    if number is None:
        return None
    whole = float(number).is_integer() and abs(number) < 2**53
    return int(number) if whole else float(number)


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """One row of ``gates``."""
    return {key: getattr(verdict, key) for key in _VERDICT_KEYS}


def evaluation_json(evaluation: Evaluation) -> dict[str, Any]:
    """An evaluation as plain JSON, numbers rounded to 12 significant digits.

    ``excluded_classes``, ``confusion`` and ``details`` stand there only where the family has them.

    Raises
    ------
    BundleError
        For a number that is not finite: an undefined number is None with a reason.
    """
    out: dict[str, Any] = {
        "family": evaluation.family,
        "evaluator": evaluation.evaluator,
        "signature": evaluation.signature,
        "estimates": _estimates_json(evaluation.estimates),
        "per_class": {label: _estimates_json(part) for label, part in evaluation.per_class.items()},
        "strata": [_stratum_json(stratum) for stratum in evaluation.strata],
        "findings": [_finding_json(finding) for finding in evaluation.findings],
        "gates": [verdict_json(verdict) for verdict in evaluation.gates],
    }
    if evaluation.excluded_classes is not None:
        out["excluded_classes"] = [dict(entry) for entry in evaluation.excluded_classes]
    if evaluation.confusion is not None:
        out["confusion"] = dict(evaluation.confusion)
    if evaluation.details:
        out["details"] = dict(evaluation.details)
    return cast("dict[str, Any]", plain(out, where=evaluation.family))


def _estimates_json(estimates: Mapping[str, Estimate]) -> dict[str, Any]:
    return {key: estimate_json(estimate) for key, estimate in estimates.items()}


def _stratum_json(stratum: Stratum) -> dict[str, Any]:
    out: dict[str, Any] = {
        "by": dict(stratum.by),
        "estimates": _estimates_json(stratum.estimates),
        "status": stratum.status,
        "support_reason": stratum.support_reason,
    }
    if stratum.critical:
        out["critical"] = True
    return out


def _finding_json(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "severity": finding.severity,
        "where": list(finding.where),
        "says": finding.says,
        "mend": finding.mend,
    }


def evaluation_from_json(data: Mapping[str, Any]) -> Evaluation:
    """An evaluation from its JSON: the inverse of :func:`evaluation_json`.

    Raises
    ------
    BundleError
        Where a key is missing or has the wrong kind.
    """
    try:
        return Evaluation(
            family=data["family"],
            evaluator=data["evaluator"],
            signature=data["signature"],
            estimates=_estimates(data["estimates"]),
            per_class={label: _estimates(part) for label, part in data["per_class"].items()},
            strata=tuple(_stratum(part) for part in data["strata"]),
            findings=tuple(
                Finding(part["code"], part["severity"], tuple(part["where"]), part["says"], part["mend"])
                for part in data["findings"]
            ),
            gates=tuple(verdict_from_json(part) for part in data["gates"]),
            excluded_classes=tuple(data["excluded_classes"]) if "excluded_classes" in data else None,
            confusion=data.get("confusion"),
            details=data.get("details", {}),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise BundleError(f"this is not an evaluation: {type(error).__name__} at {error}") from error


def verdict_from_json(data: Mapping[str, Any]) -> Verdict:
    """A verdict from its row.

    Raises
    ------
    BundleError
        Where a key is missing.
    """
    try:
        return Verdict(**{key: data[key] for key in _VERDICT_KEYS})
    except KeyError as error:
        raise BundleError(f"a gate row has no {error}") from error


def _estimates(data: Mapping[str, Any]) -> dict[str, Estimate]:
    return {key: _estimate(part) for key, part in data.items()}


def _estimate(data: Mapping[str, Any]) -> Estimate:
    interval, iid = data["interval"], data["interval_iid"]
    return Estimate(
        value=data["value"],
        unit=data["unit"],
        support=data["support"],
        numerator=data["numerator"],
        denominator=data["denominator"],
        interval=None if interval is None else Interval(**interval),
        interval_iid=None if iid is None else (iid["low"], iid["high"]),
        marks=tuple(data["marks"]),
        reason=data["reason"],
    )


def _stratum(data: Mapping[str, Any]) -> Stratum:
    status: Status = data["status"]
    return Stratum(
        by=data["by"],
        estimates=_estimates(data["estimates"]),
        status=status,
        support_reason=data["support_reason"],
        critical=data.get("critical", False),
    )


def load_schema(name: str) -> dict[str, Any]:
    """A published JSON Schema (draft 2020-12), as it is shipped with the package.

    Parameters
    ----------
    name
        One of :data:`SCHEMAS`.

    Examples
    --------
    >>> load_schema("board")["title"]
    'Board'
    """
    if name not in SCHEMAS:
        raise BundleError(f"there is no schema {name!r}; known are {', '.join(SCHEMAS)}")
    text = resources.files("geoeval").joinpath("schemas", f"{name}.schema.json").read_text(encoding="utf-8")
    return cast("dict[str, Any]", json.loads(text))
