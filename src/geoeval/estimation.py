"""From a ledger to estimates: the value from the sum, the interval from the spread over clusters.

Proportions carry Wilson's interval on the effective number of trials; every other figure carries percentiles of a
whole-cluster bootstrap, whose redraws are multiplicities times tallies. Geometry and pixels are never looked at again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from geoeval.keys import KEYS, OVER_CLASSES, PREDICTION_SIDE, SUPPORTED_BY, WITHOUT_INTERVAL
from geoeval.ledger import Evaluator, Ledger
from geoeval.model import Estimate, FloatArray, IntArray, Interval, Proportion, Quantity, Scalar, Stratum, scalar_value
from geoeval.stats.bootstrap import multiplicities, percentile_interval
from geoeval.stats.interval import clopper_pearson, clustered_wilson, kish_effective, wilson
from geoeval.stats.tally import Clustered, Totals

#: Fewer clusters than these, and a bootstrap interval is printed but cannot decide a gate.
BOOTSTRAP_CLUSTERS = 20
BOOTSTRAP_EFFECTIVE = 10.0

#: Numbers in one chunk of redraws; bounds memory whatever the width of a tally.
_CHUNK = 4_000_000


@dataclass(frozen=True, slots=True)
class Plan:
    """How intervals are made; fixed before the run.

    Parameters
    ----------
    confidence
        Nominal confidence of all intervals.
    redraws, ranked_redraws
        Bootstrap redraws, for additive figures and for figures from sorted lists.
    seed
        Of PCG64.
    clustered
        False declares independence: only plain Wilson intervals are given then.
    """

    confidence: float = 0.95
    redraws: int = 2000
    ranked_redraws: int = 500
    seed: int = 0
    clustered: bool = True


def estimate(
    evaluator: Evaluator[Any],
    ledger: Ledger,
    plan: Plan | None = None,
    *,
    ranked_intervals: bool = True,
    reference_only: bool = False,
) -> dict[str, Estimate]:
    """All figures of one evaluator over some rows of its ledger.

    Parameters
    ----------
    evaluator
        Reads quantities off sums.
    ledger
        The rows to sum: all of them, or those of a subgroup.
    plan
        How intervals are made.
    ranked_intervals
        Whether figures from sorted lists get intervals too; they cost a pass a redraw.
    reference_only
        The rows are a stratum that predictions do not know: figures of the prediction side are undefined there.

    Returns
    -------
    dict
        Metric name to estimate, in print order.
    """
    plan = plan or Plan()
    table = ledger.by_cluster()
    found = _estimates(evaluator, table, plan, ranked_intervals=ranked_intervals)
    if reference_only:
        found = {name: _undefined(given) if name in PREDICTION_SIDE else given for name, given in found.items()}
    return in_order(evaluator.family, found)


def per_class(
    evaluator: Evaluator[Any], ledger: Ledger, plan: Plan | None = None, *, ranked_intervals: bool = False
) -> dict[str, dict[str, Estimate]]:
    """The figures of every class: of the rows that carry its label, and those that the evaluator derives itself."""
    plan = plan or Plan()
    out: dict[str, dict[str, Estimate]] = {}
    for label in ledger.labels():
        rows = ledger.where(lambda row, label=label: row.cell.label == label)  # type: ignore[misc]
        found = estimate(evaluator, rows, plan, ranked_intervals=ranked_intervals)
        out[label] = {name: given for name, given in found.items() if name not in OVER_CLASSES}
    table = ledger.by_cluster()
    whole = evaluator.class_quantities(table.whole())
    if not whole:
        return out
    each = evaluator.class_quantities(table.each())
    redrawn = _redrawn_classes(evaluator, table, plan)
    for label, quantities in whole.items():
        spread = redrawn.get(label, {})
        out.setdefault(label, {}).update(
            {
                name: _one(name, quantity, each[label][name], spread.get(name), table, plan)
                for name, quantity in quantities.items()
            }
        )
    return out


def stratify(
    evaluator: Evaluator[Any],
    ledger: Ledger,
    fields: Iterable[str],
    plan: Plan | None = None,
    *,
    critical: Mapping[str, Iterable[str]] | None = None,
    min_support: int = 0,
    reference_only: frozenset[str] = frozenset(),
) -> tuple[Stratum, ...]:
    """The whole metric set of every value of every declared field, from the same ledger.

    A subgroup below ``min_support`` is ``not_evaluable`` with ``low_support``; a declared critical subgroup that does
    not occur is listed with ``critical_subgroup_missing``. Whether a subgroup *passes* is decided by gates, so a
    subgroup here starts as ``not_evaluable`` with ``no_policy``.

    Parameters
    ----------
    critical
        Field to the values that must be there.
    """
    plan = plan or Plan()
    declared = {name: tuple(values) for name, values in (critical or {}).items()}
    present = ledger.strata()
    out: list[Stratum] = []
    for name in dict.fromkeys((*fields, *declared)):
        for value in sorted({*present.get(name, ()), *declared.get(name, ())}):
            rows = ledger.where(lambda row, name=name, value=value: row.value_of(name) == value)  # type: ignore[misc]
            is_critical = value in declared.get(name, ())
            found = estimate(evaluator, rows, plan, ranked_intervals=is_critical, reference_only=name in reference_only)
            reason = "no_policy"
            if not rows.rows:
                reason = "critical_subgroup_missing"
            elif support_of(evaluator.family, found) < min_support:
                reason = "low_support"
            out.append(Stratum({name: value}, found, "not_evaluable", reason, is_critical))
    return tuple(out)


def support_of(family: str, estimates: Mapping[str, Estimate]) -> int:
    """How many observations stand behind a subgroup: references, pixels or checkpoints."""
    return max((estimates[name].support for name in SUPPORTED_BY[family] if name in estimates), default=0)


def in_order(family: str, estimates: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """Estimates in the order of the metric contract, others behind."""
    known = [name for name in KEYS.get(family, ()) if name in estimates]
    return {name: estimates[name] for name in dict.fromkeys((*known, *estimates))}


def redraw(
    evaluator: Evaluator[Any], table: Clustered, drawn: IntArray, *, ranked: bool = False
) -> dict[str, FloatArray]:
    """Values of all figures in each redraw: metric name to (redraws,), NaN where undefined."""
    read = evaluator.ranked if ranked else evaluator.quantities
    step = len(drawn) if ranked else max(1, _CHUNK // max(1, table.width))
    parts: dict[str, list[FloatArray]] = {}
    for start in range(0, len(drawn), step):
        for name, quantity in read(table.totals(drawn[start : start + step], rows=ranked)).items():
            if isinstance(quantity, Scalar):
                size = len(drawn[start : start + step])
                parts.setdefault(name, []).append(_array(quantity, size))
    return {name: np.concatenate(found) for name, found in parts.items()}


def _array(quantity: Quantity, size: int) -> FloatArray:
    value = quantity.value
    if value is None:
        return np.full(size, np.nan)
    return np.broadcast_to(np.asarray(value, dtype=np.float64), (size,))


@lru_cache(maxsize=64)
def _drawn(clusters: int, redraws: int, seed: int) -> IntArray:
    return multiplicities(clusters, redraws, seed)


def _estimates(
    evaluator: Evaluator[Any], table: Clustered, plan: Plan, *, ranked_intervals: bool
) -> dict[str, Estimate]:
    whole = table.whole()
    each = evaluator.quantities(table.each())
    bootstrap = plan.clustered and len(table.clusters) > 1
    spread: dict[str, FloatArray] = {}
    if bootstrap:
        spread = redraw(evaluator, table, _drawn(len(table.clusters), plan.redraws, plan.seed))
    out = {
        name: _one(name, quantity, each.get(name), spread.get(name), table, plan)
        for name, quantity in evaluator.quantities(whole).items()
    }
    ranked = evaluator.ranked(whole)
    alone: Mapping[str, Quantity] = {}
    if ranked and bootstrap and ranked_intervals:
        drawn = _drawn(len(table.clusters), plan.ranked_redraws, plan.seed)
        spread = redraw(evaluator, table, drawn, ranked=True)
        # Every cluster by itself: how many observations it holds decides how many clusters an interval rests on.
        alone = evaluator.ranked(table.totals(np.eye(len(table.clusters), dtype=np.int64)))
    for name, quantity in ranked.items():
        out[name] = _one(name, quantity, alone.get(name), spread.get(name), table, plan)
    return out


def _redrawn_classes(evaluator: Evaluator[Any], table: Clustered, plan: Plan) -> dict[str, dict[str, FloatArray]]:
    if not plan.clustered or len(table.clusters) < 2:
        return {}
    drawn = _drawn(len(table.clusters), plan.redraws, plan.seed)
    step = max(1, _CHUNK // max(1, table.width))
    parts: dict[str, dict[str, list[FloatArray]]] = {}
    for start in range(0, len(drawn), step):
        chunk = drawn[start : start + step]
        for label, quantities in evaluator.class_quantities(table.totals(chunk, rows=False)).items():
            for name, quantity in quantities.items():
                if isinstance(quantity, Scalar):
                    parts.setdefault(label, {}).setdefault(name, []).append(_array(quantity, len(chunk)))
    return {label: {name: np.concatenate(found) for name, found in named.items()} for label, named in parts.items()}


def _one(
    name: str,
    quantity: Quantity,
    each: Quantity | None,
    replicates: FloatArray | None,
    table: Clustered,
    plan: Plan,
) -> Estimate:
    if isinstance(quantity, Proportion):
        return _proportion(quantity, each, plan)
    return _scalar(name, quantity, each, replicates, table, plan)


def _proportion(quantity: Proportion, each: Quantity | None, plan: Plan) -> Estimate:
    k, n = _whole(quantity.k), _whole(quantity.n)
    value = None if n == 0 else k / n
    if value is None:
        return Estimate(None, quantity.unit, 0, 0, 0, reason=quantity.reason or "undefined_ratio")
    low, high = wilson(k, n, plan.confidence)
    iid = (low, high) if low is not None and high is not None else None
    if not plan.clustered:
        plain = Interval(iid[0], iid[1], plan.confidence, "wilson") if iid else None
        return Estimate(value, quantity.unit, n, k, n, plain, iid)
    if not isinstance(each, Proportion):
        return Estimate(value, quantity.unit, n, k, n, None, iid, reason="no_interval")
    spread = clustered_wilson(np.asarray(each.k, dtype=np.int64), np.asarray(each.n, dtype=np.int64), plan.confidence)
    if spread.low is None or spread.high is None:
        return Estimate(value, quantity.unit, n, k, n, None, iid, reason=spread.reason or "no_interval")
    interval = Interval(
        spread.low,
        spread.high,
        plan.confidence,
        "wilson_clustered",
        spread.clusters,
        spread.effective_clusters,
        spread.design_effect,
    )
    return Estimate(value, quantity.unit, n, k, n, interval, iid, tuple(spread.marks))


def _scalar(
    name: str,
    quantity: Scalar,
    each: Quantity | None,
    replicates: FloatArray | None,
    table: Clustered,
    plan: Plan,
) -> Estimate:
    value = scalar_value(quantity.value)
    parts = (scalar_value(quantity.numerator), scalar_value(quantity.denominator))
    support = _whole(quantity.n)
    if value is None:
        reason = quantity.reason or ("undefined_ratio" if support else "no_support")
        return Estimate(None, quantity.unit, support, *parts, reason=reason)
    marks = tuple(quantity.marks)
    if name in WITHOUT_INTERVAL:
        return Estimate(value, quantity.unit, support, *parts, marks=marks)
    found = percentile_interval(replicates, plan.confidence) if replicates is not None else None
    if found is None:
        reason = _why_no_interval(replicates, table, plan)
        return Estimate(value, quantity.unit, support, *parts, marks=marks, reason=reason)
    sizes = np.ones(len(table.clusters), dtype=np.int64)
    if isinstance(each, Scalar) and np.ndim(each.n):
        sizes = np.asarray(each.n, dtype=np.int64)
    clusters = int(np.count_nonzero(sizes))
    effective = kish_effective(sizes) if clusters else 0.0
    if clusters < BOOTSTRAP_CLUSTERS or effective < BOOTSTRAP_EFFECTIVE:
        marks = (*marks, "few_clusters")
    interval = Interval(*found, plan.confidence, "cluster_bootstrap", clusters, effective)
    return Estimate(value, quantity.unit, support, *parts, interval, None, marks)


def _why_no_interval(replicates: FloatArray | None, table: Clustered, plan: Plan) -> str:
    if plan.clustered and len(table.clusters) < 2:
        return "single_cluster"
    return "no_interval" if replicates is None else "unstable_bootstrap"


def exact_lower_bound(given: Estimate, confidence: float = 0.95) -> Estimate:
    """A proportion with the one-sided Clopper-Pearson lower bound in place of its interval: recall of a validator.

    Raises
    ------
    ValueError
        Where the estimate is not k of n.
    """
    if given.value is None:
        return given
    if given.numerator is None or given.denominator is None:
        raise ValueError("an exact bound needs the count of trials and of successes")
    k, n = int(given.numerator), int(given.denominator)
    low, _ = clopper_pearson(k, n, confidence, side="low")
    interval = Interval(low or 0.0, 1.0, confidence, "clopper_pearson_lower")
    return Estimate(given.value, given.unit, given.support, k, n, interval, given.interval_iid, ())


def _undefined(given: Estimate) -> Estimate:
    return Estimate(None, given.unit, given.support, reason="not_applicable")


def _whole(value: Any) -> int:
    return int(np.asarray(value).reshape(-1)[0])


def extras_of(evaluator: Evaluator[Any], whole: Totals) -> dict[str, Any]:
    """What an evaluator adds beside its estimates (confusion matrix, excluded classes); empty for most."""
    extras = getattr(evaluator, "extras", None)
    return dict(extras(whole)) if extras is not None else {}
