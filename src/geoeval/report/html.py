"""``report.html``: one page that a release manager reads, with nothing loaded from elsewhere.

The page is made from the bound documents alone, as they stand in the bundle, so that whoever verifies the bundle can
make it again and compare the bytes. It holds no date, no host and no path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geoeval.evidence.tables import CaseTables
from geoeval.gates import family_status
from geoeval.keys import HEADLINE, KEYS, RANKED_BY
from geoeval.model import SEVERITIES, Estimate, Evaluation, Finding, Stratum, Verdict
from geoeval.report import gallery, words
from geoeval.report.board import board, colour, worst_subgroup
from geoeval.report.figures import Scale, axis, scale_of, strip

if TYPE_CHECKING:
    from jinja2 import Template

_MOST_STRATA = 40
_MOST_CLASSES = 60
_MOST_CONFUSED = 20
_MOST_GATES = 60
_MOST_FINDINGS = 40
_SHOWN_PLACES = 3


@dataclass(frozen=True, slots=True)
class Page:
    """All that the page is made from.

    Parameters
    ----------
    run
        The run id.
    manifest
        As it is bound: configuration, code, inputs, runtime.
    evaluations, verdicts, product_gates
        As they stand in ``metrics.json`` and ``gates.json``.
    failures
        Rows of ``failure-gallery.json``.
    tables
        Raw predictions of each case that has any.
    units
        Unit of length of each case, for scale bars.
    """

    run: str
    manifest: Mapping[str, Any]
    evaluations: Mapping[str, Evaluation]
    verdicts: tuple[Verdict, ...]
    product_gates: tuple[Verdict, ...] = ()
    failures: Sequence[Mapping[str, Any]] = ()
    tables: Mapping[str, CaseTables] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)


def page_bytes(page: Page) -> bytes:
    """The bytes of ``report.html``."""
    return (_template().render(_view(page)).rstrip("\n") + "\n").encode()


@cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html")


def _view(page: Page) -> dict[str, Any]:
    configuration = page.manifest.get("configuration", {})
    synthetic = bool(page.manifest.get("synthetic", False))
    limits = tuple(configuration.get("claim_limits", ()))
    whole = board(page.run, page.evaluations, page.verdicts, limits, page.product_gates, synthetic=synthetic)
    cases = [_case(name, page) for name in _order(configuration, page.evaluations)]
    return {
        "title": str(configuration.get("name", "evaluation")),
        "run": page.run,
        "synthetic": synthetic,
        "claim_limits": whole["claim_limits"],
        "verdict": _badge(whole["status"], whole["colour"]),
        "summary": _summary(cases, page.product_gates),
        "cases": cases,
        "product_gates": [_gate(one) for one in page.product_gates],
        "facts": _facts(page.manifest),
        "code": page.manifest.get("code", {}),
    }


def _order(configuration: Mapping[str, Any], evaluations: Mapping[str, Evaluation]) -> list[str]:
    """Cases as they were declared, then any others by name."""
    declared = [str(case["id"]) for case in configuration.get("cases", ()) if case.get("id") in evaluations]
    return [*declared, *sorted(set(evaluations) - set(declared))]


def _badge(status: str, hue: str) -> dict[str, str]:
    text = words.DECISIONS[status]
    return {"text": f"{text}, waived" if hue == "amber" else text, "colour": hue}


def _summary(cases: Sequence[Mapping[str, Any]], product_gates: Sequence[Verdict]) -> str:
    parts = []
    for status, said in words.DECISIONS.items():
        names = [case["name"] for case in cases if case["status"] == status]
        if names:
            parts.append(f"{len(names)} of {len(cases)} cases {said} ({', '.join(names)})")
    for status, said in words.STATUSES.items():
        number = sum(one.status == status for one in product_gates)
        if number:
            parts.append(f"{number} of {len(product_gates)} product gates {said}")
    return "; ".join(parts) + "." if parts else "Nothing was evaluated."


def _case(name: str, page: Page) -> dict[str, Any]:
    evaluation = page.evaluations[name]
    verdicts = [one for one in page.verdicts if one.id.startswith(f"{name}:")]
    # Where no gate was declared, one verdict without a metric says so.
    held = [one for one in verdicts if one.metric]
    failures = [row for row in page.failures if row["case"] == name]
    status = family_status(verdicts)
    tables = page.tables.get(name)
    return {
        "name": name,
        "family": evaluation.family,
        "status": status,
        "badge": _badge(status, colour(verdicts)),
        "signature": evaluation.signature,
        "evaluator": evaluation.evaluator,
        "headline": _figures(evaluation, [key for key in HEADLINE[evaluation.family] if key in evaluation.estimates]),
        "every": _figures(evaluation, _keys(evaluation)),
        "worst": _worst(evaluation),
        "gates": [_gate(one, name) for one in held[:_MOST_GATES]],
        "more_gates": max(len(held) - _MOST_GATES, 0),
        "forests": [_forest(evaluation, key, verdicts) for key in _ranked(evaluation, verdicts)],
        "classes": _classes(evaluation),
        "confusion": _confusion(evaluation.confusion),
        "findings": _findings(evaluation.findings),
        "failure_counts": gallery.counts(failures),
        "failures": len(failures),
        "cards": [] if tables is None else gallery.cards(failures, tables, page.units.get(name, "m")),
    }


def _keys(evaluation: Evaluation) -> list[str]:
    known = [key for key in KEYS[evaluation.family] if key in evaluation.estimates]
    return [*known, *sorted(set(evaluation.estimates) - set(known))]


def _figures(evaluation: Evaluation, keys: Sequence[str]) -> list[dict[str, str]]:
    return [{"metric": key, **_figure(evaluation.estimates[key])} for key in keys]


def _figure(given: Estimate) -> dict[str, str]:
    interval = given.interval
    return {
        "value": words.number(given),
        "bounds": "" if interval is None else words.bounds(interval.low, interval.high),
        "confidence": "" if interval is None else f"{interval.confidence * 100:g} %",
        "support": words.support(given),
        "remarks": words.remarks(given),
    }


def _worst(evaluation: Evaluation) -> dict[str, str] | None:
    found = worst_subgroup(evaluation)
    if found is None:
        return None
    gap = found["gap"]
    return {
        "group": words.group(found["by"]),
        "metric": found["metric"],
        "value": words.figure(found["value"]),
        "gap": "" if gap is None else f"{'+' if gap > 0 else ''}{words.figure(gap, 3)}",
        "support": words.whole(found["support"]),
    }


def _gate(given: Verdict, case: str = "") -> dict[str, Any]:
    known = [one for one in (given.value, given.low, given.high, given.limit) if one is not None]
    held = given.limit is not None
    share = held and all(0.0 <= one <= 1.0 for one in known)
    picture = ""
    if held:
        picture = strip(
            scale_of(known, share=share),
            given.value,
            given.low,
            given.high,
            limit=given.limit,
            at_least=given.direction == "at_least",
            tone=given.status,
        )
    return {
        "metric": given.metric,
        "id": given.id.removeprefix(f"{case}:"),
        "scope": given.scope.replace("per_subgroup:", "").replace("per_class:", "class ").replace("=", " "),
        "value": words.figure(given.value) or "none",
        "bounds": words.bounds(given.low, given.high),
        "support": "" if given.support is None else words.whole(given.support),
        "limit": words.limit(given),
        "status": given.status,
        "word": words.STATUSES[given.status],
        "why": words.why(given),
        "picture": picture,
    }


def _ranked(evaluation: Evaluation, verdicts: Sequence[Verdict]) -> list[str]:
    """Figures whose subgroups are drawn: the leading one, and those that gates hold subgroup by subgroup."""
    if not evaluation.strata:
        return []
    leading = [name for name, _ in RANKED_BY[evaluation.family] if name in evaluation.estimates][:1]
    gated = [one.metric for one in verdicts if one.scope.startswith("per_subgroup") and one.limit is not None]
    return [name for name in dict.fromkeys([*leading, *gated]) if name in evaluation.estimates]


def _forest(evaluation: Evaluation, metric: str, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Every subgroup as one row of dot and interval, on one scale."""
    shown = [one for one in evaluation.strata if metric in one.estimates][:_MOST_STRATA]
    overall = evaluation.estimates[metric]
    every = [overall, *(one.estimates[metric] for one in shown)]
    values = [value for given in every for value in _span(given)]
    share = overall.unit == "1" and all(value is None or 0.0 <= value <= 1.0 for value in values)
    gates = {one.scope.removeprefix("per_subgroup:"): one for one in verdicts if one.metric == metric}
    limits = [one.limit for one in gates.values()]
    scale = scale_of([*values, *limits], share=share)
    rows = [_row("overall", overall, scale, overall.value, gates.get("overall"))]
    for one in shown:
        gate = gates.get(",".join(f"{name}={value}" for name, value in one.by.items()))
        rows.append(_row(words.group(dict(one.by)), one.estimates[metric], scale, overall.value, gate))
        rows[-1] |= {"note": _stratum_note(one), "critical": one.critical}
    return {
        "metric": metric,
        "axis": axis(scale),
        "rows": rows,
        "gated": any(limit is not None for limit in limits),
        "more": len([one for one in evaluation.strata if metric in one.estimates]) - len(shown),
    }


def _span(given: Estimate) -> tuple[float | None, float | None, float | None]:
    interval = given.interval
    return given.value, None if interval is None else interval.low, None if interval is None else interval.high


def _stratum_note(one: Stratum) -> str:
    """The subgroup by all its gates; one for which nobody declared any is not undecided, but ungated."""
    if one.support_reason == "no_policy":
        return "no gate"
    parts = [words.STATUSES[one.status]]
    if one.support_reason:
        parts.append(words.REASONS.get(one.support_reason, one.support_reason))
    return ", ".join(parts)


def _row(name: str, given: Estimate, scale: Scale, overall: float | None, gate: Verdict | None) -> dict[str, Any]:
    value, low, high = _span(given)
    picture = strip(
        scale,
        value,
        low,
        high,
        overall=overall,
        limit=None if gate is None else gate.limit,
        at_least=gate is None or gate.direction == "at_least",
        tone="plain" if gate is None else gate.status,
    )
    reason = words.REASONS.get(given.reason, given.reason) if given.reason else ""
    return {"name": name, "picture": picture, **_figure(given), "reason": reason, "note": "", "critical": False}


def _classes(evaluation: Evaluation) -> dict[str, Any] | None:
    if not evaluation.per_class:
        return None
    found = {name for given in evaluation.per_class.values() for name in given}
    names = [name for name in _class_keys(evaluation) if name in found][:8]
    labels = sorted(evaluation.per_class)[:_MOST_CLASSES]
    return {
        "names": names,
        "rows": [
            {
                "label": label,
                "cells": [
                    _figure(evaluation.per_class[label][name]) if name in evaluation.per_class[label] else None
                    for name in names
                ],
            }
            for label in labels
        ],
        "more": len(evaluation.per_class) - len(labels),
    }


def _confusion(given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The matrix with its labels, where it is one that fits on a page."""
    if given is None or not {"labels", "matrix"} <= set(given) or not 2 <= len(given["labels"]) <= _MOST_CONFUSED:
        return None
    matrix = [[words.whole(int(count)) for count in row] for row in given["matrix"]]
    rows, columns = given.get("axes", ("prediction", "reference"))
    return {"rows": rows, "columns": columns, "labels": list(given["labels"]), "matrix": matrix}


def _class_keys(evaluation: Evaluation) -> list[str]:
    from geoeval.keys import CLASS_KEYS

    return list(dict.fromkeys([*CLASS_KEYS.get(evaluation.family, ()), *KEYS[evaluation.family]]))


def _findings(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Findings of one code together, the gravest first."""
    kinds: dict[tuple[int, str], list[Finding]] = {}
    for one in findings:
        kinds.setdefault((SEVERITIES.index(one.severity), one.code), []).append(one)
    out = []
    for (_, code), group in sorted(kinds.items(), key=lambda entry: entry[0])[:_MOST_FINDINGS]:
        places = list(dict.fromkeys(", ".join(one.where) for one in group))
        more = f" and {len(places) - _SHOWN_PLACES} more" if len(places) > _SHOWN_PLACES else ""
        out.append(
            {
                "severity": group[0].severity,
                "code": code,
                "count": len(group),
                "says": group[0].says,
                "mend": group[0].mend,
                "where": "; ".join(places[:_SHOWN_PLACES]) + more,
            }
        )
    return out


def _facts(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    runtime = manifest.get("runtime", {})
    packages = runtime.get("packages", {})
    inputs = sum(len(rows) for rows in manifest.get("inputs", {}).values())
    out = [("inputs", f"{inputs} files bound by SHA-256")]
    if packages:
        out.append(("geoeval", str(packages.get("geoeval", "unknown"))))
        out.append(("python", f"{runtime.get('python')} on {runtime.get('system')} {runtime.get('machine')}"))
    return out
