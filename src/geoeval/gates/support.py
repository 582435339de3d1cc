"""What must stand behind an estimate before it can decide a gate: clusters, and enough trials."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

from geoeval.evidence.canonical import significant
from geoeval.model import Estimate, Gate

#: Below these an interval is printed but decides nothing: clusters, effective clusters.
WILSON_CLUSTERS = (10, 5.0)
BOOTSTRAP_CLUSTERS = (20, 10.0)


def few_clusters(estimate: Estimate) -> bool:
    """True where too few clusters stand behind an interval for it to decide a gate.

    A proportion needs 10 clusters and 5 effective ones, a bootstrapped figure 20 and 10.
    """
    return "few_clusters" in estimate.marks or bool(lacking_clusters(estimate))


def lacking_clusters(estimate: Estimate) -> str:
    """How far an estimate is from the clusters that it needs; ``""`` where it has them, or is not known to lack any.

    Examples
    --------
    >>> from geoeval.model import Interval
    >>> four = Interval(0.8, 1.0, 0.95, "cluster bootstrap", clusters=4)
    >>> lacking_clusters(Estimate(0.9, "1", support=40, interval=four))
    '4 of 20 clusters'
    """
    interval = estimate.interval
    if interval is None or interval.clusters is None:
        return ""
    clusters, effective = _wanted_clusters(interval.method)
    if interval.clusters < clusters:
        return f"{interval.clusters} of {clusters} clusters"
    if interval.effective_clusters is not None and interval.effective_clusters < effective:
        return f"{interval.effective_clusters:.3g} of {effective:g} effective clusters"
    return ""


def _wanted_clusters(method: str) -> tuple[int, float]:
    return BOOTSTRAP_CLUSTERS if "bootstrap" in method.lower() else WILSON_CLUSTERS


def smallest_n(gate: Gate, estimate: Estimate | None) -> int | None:
    """How many independent trials could pass the gate at best: all hits for a floor, no hit for a ceiling.

    None where the metric is not a proportion, or where no number of trials could pass.

    Examples
    --------
    >>> whole = Estimate(1.0, "1", support=20, interval_iid=(0.8389, 1.0))
    >>> smallest_n(Gate("g", "recall", "at_least", 0.9), whole)
    35
    >>> smallest_n(Gate("g", "recall", "at_least", 1.0), whole) is None
    True
    """
    if estimate is None or not _is_proportion(estimate):
        return None
    limit = significant(gate.limit if gate.direction == "at_least" else 1 - gate.limit)
    floor = max(1, gate.min_support)
    if limit <= 0 or (gate.on == "value" and limit <= 1):
        return floor
    if limit >= 1:
        return None
    interval = estimate.interval
    confidence = interval.confidence if interval is not None else 0.95
    if interval is not None and "clopper" in interval.method.lower():
        miss = 1 - confidence
        return max(floor, _least(lambda n: miss ** (1 / n), limit, math.log(miss) / math.log(limit)))
    z2 = NormalDist().inv_cdf((1 + confidence) / 2) ** 2
    return max(floor, _least(lambda n: n / (n + z2), limit, limit * z2 / (1 - limit)))


def _is_proportion(estimate: Estimate) -> bool:
    method = estimate.interval.method.lower() if estimate.interval is not None else ""
    return estimate.interval_iid is not None or "wilson" in method or "clopper" in method


def _least(bound: Callable[[int], float], limit: float, guess: float) -> int:
    """Smallest n from about ``guess`` on whose bound reaches the limit, decided as a gate decides."""
    n = max(1, math.ceil(guess) - 1)
    while not significant(bound(n)) >= limit:
        n += 1
    return n
