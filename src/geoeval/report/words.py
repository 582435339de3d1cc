"""Numbers and verdicts as people read them."""

from __future__ import annotations

from geoeval.model import Estimate, Verdict

#: Status to the word of a release decision.
DECISIONS = {"pass": "GO", "fail": "BLOCKED", "not_evaluable": "NOT DECIDABLE"}

#: Status of one gate in words.
STATUSES = {"pass": "pass", "fail": "FAIL", "not_evaluable": "not decidable"}

#: Every reason in a sentence that needs no glossary.
REASONS = {
    "no_policy": "no gate was declared",
    "metric_missing": "the metric is missing",
    "no_support": "nothing was there to count",
    "low_support": "too few observations",
    "few_clusters": "too few clusters: the interval is shown, but cannot decide",
    "single_cluster": "one cluster only, so no interval",
    "deff_undefined": "the design effect is undefined",
    "ci_straddles_threshold": "the interval straddles the limit",
    "undefined_ratio": "undefined: nothing to divide by",
    "stale_calibration": "the calibration is out of date",
    "biased_dimension": "the judge is biased on a dimension",
    "sealed_split_opened": "the sealed split was opened",
    "manifest_mismatch": "the manifest does not match",
    "evidence_missing": "the evidence is missing",
    "evidence_mismatch": "the evidence does not match its hash",
    "synthetic_only": "synthetic data cannot decide it",
    "critical_subgroup_missing": "a critical subgroup is missing",
    "not_applicable": "does not apply",
    "no_interval": "there is no interval to hold to the limit",
    "unstable_bootstrap": "too many redraws were undefined",
    "single_sample_stratum": "a stratum has one sample only",
    "no_geometry": "there is no geometry",
    "internal_error": "an internal error",
}

#: Marks beside a value in words.
MARKS = {
    "few_clusters": "few clusters",
    "deff_floor": "design effect from an assumed correlation of 0.1",
    "clipped": "clipped to its range",
    "sketch": "from a compressed distribution",
}

_THIN = "\N{NARROW NO-BREAK SPACE}"
_MINUS = "−"


def figure(value: float | None, digits: int = 4) -> str:
    """A few significant digits with a true minus sign.

    Examples
    --------
    >>> figure(0.912345), figure(-3.0), figure(None)
    ('0.9123', '−3', '')
    """
    if value is None:
        return ""
    text = f"{value:.{digits}g}" if abs(value) < 1000 else f"{value:,.0f}".replace(",", _THIN)
    return text.replace("-", _MINUS)


def number(given: Estimate) -> str:
    """The value of an estimate with its unit; ``undefined`` where there is none."""
    if given.value is None:
        return "undefined"
    unit = "" if given.unit == "1" else f"{_THIN}{given.unit}"
    if given.unit == "1" and float(given.value).is_integer() and given.interval is None:
        return whole(int(given.value))
    return figure(given.value) + unit


def whole(value: int) -> str:
    """A count with thin spaces between thousands."""
    return f"{value:,}".replace(",", _THIN).replace("-", _MINUS)


def bounds(low: float | None, high: float | None) -> str:
    """An interval.

    Examples
    --------
    >>> bounds(0.25, 0.5), bounds(None, 1.0)
    ('[0.25, 0.5]', '')
    """
    return "" if low is None or high is None else f"[{figure(low)}, {figure(high)}]"


def support(given: Estimate) -> str:
    """``k of n`` for proportions, else the number of observations; then the clusters of the interval.

    Examples
    --------
    >>> support(Estimate(0.5, "1", 10, 5, 10))
    '5 of 10'
    """
    top, bottom = given.numerator, given.denominator
    text = whole(int(given.support))
    if top is not None and bottom is not None and float(top).is_integer() and float(bottom).is_integer():
        text = f"{whole(int(top))} of {whole(int(bottom))}"
    if given.interval is not None and given.interval.clusters is not None:
        text += f" in {whole(given.interval.clusters)} clusters"
    return text


def remarks(given: Estimate) -> str:
    """Design effect, marks and reason."""
    parts = []
    if given.interval is not None and given.interval.design_effect is not None:
        parts.append(f"design effect {figure(given.interval.design_effect)}")
    parts.extend(MARKS.get(mark, mark) for mark in given.marks)
    if given.reason:
        parts.append(REASONS.get(given.reason, given.reason))
    return ", ".join(parts)


def limit(given: Verdict) -> str:
    """A limit and what is held to it; empty for gates that hold no number.

    Examples
    --------
    >>> from geoeval.gates import decide, parse_gate
    >>> limit(decide(parse_gate("recall>=0.9"), Estimate(None, "1", 0)))
    '≥ 0.9 on the interval'
    """
    if given.limit is None:
        return ""
    sign = "≥" if given.direction == "at_least" else "≤"
    return f"{sign} {figure(given.limit)} on the {given.on}"


def why(given: Verdict) -> str:
    """Why a verdict is not a pass, and what sample could decide it."""
    text = REASONS.get(given.reason, given.reason) if given.reason else ""
    too_small = given.smallest_n is not None and (given.support is None or given.support < given.smallest_n)
    if given.smallest_n is not None and too_small and given.status == "not_evaluable":
        text += f"{'; ' if text else ''}fewer than {whole(given.smallest_n)} observations can never pass"
    if given.waived_by:
        text += f"{'; ' if text else ''}waived by {given.waived_by}"
    return text


def group(by: dict[str, str]) -> str:
    """A subgroup by its fields.

    Examples
    --------
    >>> group({"region": "north"})
    'region north'
    """
    return ", ".join(f"{name} {value}" for name, value in by.items())
