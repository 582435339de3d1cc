"""Two ledgers of one evaluator, cluster by cluster: the differences of their figures in common redraws.

Multiplicities are drawn once, over the union of both ledgers' clusters, and multiply the tallies of both. A cluster
that one ledger lacks counts as 0 there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.estimation import BOOTSTRAP_CLUSTERS, BOOTSTRAP_EFFECTIVE, Plan
from geoeval.keys import better
from geoeval.ledger import Evaluator, Ledger
from geoeval.model import Estimate, FloatArray, IntArray, Proportion, Quantity, scalar_value
from geoeval.stats.bootstrap import multiplicities
from geoeval.stats.interval import kish_effective
from geoeval.stats.paired import differences, gains, least_differing, paired_interval
from geoeval.stats.selective import Decision
from geoeval.stats.tally import Clustered, Tally, clustered, total

#: Figures that no redraw can bound.
EXTREMES = frozenset({"min", "max"})

#: Numbers in one chunk of redraws.
_CHUNK = 4_000_000


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure of both sides.

    ``difference`` is candidate − incumbent, bounded by ``low`` and ``high``; ``gain`` is positive where the candidate
    is better, bounded by ``gain_low`` and ``gain_high``, and None for a figure that is neither good nor bad.
    ``differing_clusters`` counts the clusters in which the two sides differ. ``reason`` says what is missing and why.
    """

    unit: str
    incumbent: float | None
    candidate: float | None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    better: str | None = None
    clusters: int | None = None
    effective_clusters: float | None = None
    differing_clusters: int | None = None
    decision: Decision = "inconclusive"
    marks: tuple[str, ...] = ()
    reason: str | None = None


def ledger_differences(
    evaluator: Evaluator[Any], incumbent: Ledger, candidate: Ledger, plan: Plan, *, only: str | None = None
) -> dict[str, Difference]:
    """Differences of all figures that ledgers give, or of one, from multiplicities over the union of clusters."""
    sides, unlike = common_tables(incumbent, candidate)
    out: dict[str, Difference] = {}
    for ranked in (False, True):
        read = evaluator.ranked if ranked else evaluator.quantities
        whole = [dict(read(table.whole())) for table in sides]
        names = [name for name in whole[0] if name in whole[1] and only in (None, name)]
        redrawn: list[dict[str, FloatArray]] = [{}, {}]
        if names and plan.clustered and len(sides[0].clusters) > 1:
            times = plan.ranked_redraws if ranked else plan.redraws
            drawn = multiplicities(len(sides[0].clusters), times, plan.seed)
            redrawn = [_redrawn(evaluator, table, drawn, ranked=ranked) for table in sides]
        each = [{} if ranked else dict(evaluator.quantities(table.each())) for table in sides]
        for name in names:
            clusters = _clusters_of(each[0].get(name), each[1].get(name), len(sides[0].clusters), unlike)
            pair = (whole[0][name], whole[1][name])
            out[name] = _difference(name, pair, (redrawn[0].get(name), redrawn[1].get(name)), clusters, plan)
    return out


def common_tables(incumbent: Ledger, candidate: Ledger) -> tuple[tuple[Clustered, Clustered], int]:
    """Both ledgers by cluster over the union of their clusters, and in how many clusters they differ at all."""
    parts: tuple[dict[str, list[Tally]], dict[str, list[Tally]]] = ({}, {})
    for ledger, mine, other in zip((incumbent, candidate), parts, parts[::-1], strict=True):
        for row in ledger.rows:
            mine.setdefault(row.cell.cluster, []).append(row.tally)
            other.setdefault(row.cell.cluster, [])
    sums = [{name: total(tallies) for name, tallies in mine.items()} for mine in parts]
    unlike = sum(sums[0][name] != sums[1][name] for name in sums[0])
    return (clustered(sums[0]), clustered(sums[1])), unlike


@dataclass(frozen=True, slots=True)
class _Clusters:
    """How many clusters stand behind a figure, how evenly, and in how many the sides differ."""

    all: int
    held: int
    effective: float
    differing: int


def _clusters_of(old: Quantity | None, new: Quantity | None, clusters: int, unlike: int) -> _Clusters:
    if old is None or new is None:
        return _Clusters(clusters, clusters, float(clusters), unlike)
    size = np.maximum(_counts(old, clusters), _counts(new, clusters))
    parts = zip(_parts(old, clusters), _parts(new, clusters), strict=True)
    apart = np.zeros(clusters, dtype=bool)
    for a, b in parts:
        apart |= ~((a == b) | (np.isnan(a) & np.isnan(b)))
    held = int(np.count_nonzero(size))
    return _Clusters(clusters, held, kish_effective(size) if held else 0.0, int(np.count_nonzero(apart)))


def _counts(quantity: Quantity, clusters: int) -> IntArray:
    return np.broadcast_to(np.asarray(quantity.n, dtype=np.int64), (clusters,))


def _parts(quantity: Quantity, clusters: int) -> tuple[FloatArray, FloatArray]:
    """What a cluster gives to a figure: hits or value, and how many trials."""
    value = quantity.k if isinstance(quantity, Proportion) else quantity.value
    return _array(value, clusters), _counts(quantity, clusters).astype(np.float64)


def _array(value: Any, size: int) -> FloatArray:
    if value is None:
        return np.full(size, np.nan)
    return np.broadcast_to(np.asarray(value, dtype=np.float64), (size,))


def _redrawn(evaluator: Evaluator[Any], table: Clustered, drawn: IntArray, *, ranked: bool) -> dict[str, FloatArray]:
    """Every figure in every redraw (redraws,), shares too, NaN where undefined."""
    read = evaluator.ranked if ranked else evaluator.quantities
    step = len(drawn) if ranked else max(1, _CHUNK // max(1, table.width))
    parts: dict[str, list[NDArray[np.float64]]] = {}
    for start in range(0, len(drawn), step):
        chunk = drawn[start : start + step]
        for name, quantity in read(table.totals(chunk, rows=ranked)).items():
            parts.setdefault(name, []).append(_array(quantity.value, len(chunk)))
    return {name: np.concatenate(found) for name, found in parts.items()}


def _difference(
    name: str,
    whole: tuple[Quantity, Quantity],
    redrawn: tuple[FloatArray | None, FloatArray | None],
    clusters: _Clusters,
    plan: Plan,
) -> Difference:
    old, new = (scalar_value(quantity.value) for quantity in whole)
    unit = whole[1].unit if whole[0].unit == "1" else whole[0].unit
    if old is None or new is None:
        missing = whole[0] if old is None else whole[1]
        return Difference(unit, old, new, better=better(name), reason=missing.reason or "undefined_ratio")
    way = better(name)
    a, b = np.array([old]), np.array([new])
    apart = float(differences(a, b)[0])
    gain = float(gains(a, b, way)[0]) if way else None
    few = (
        clusters.held < BOOTSTRAP_CLUSTERS
        or clusters.effective < BOOTSTRAP_EFFECTIVE
        or 0 < clusters.differing < least_differing(plan.confidence)
    )
    if redrawn[0] is None or redrawn[1] is None or name in EXTREMES:
        single = plan.clustered and clusters.all < 2
        reason = "single_cluster" if single else "no_interval"
        return Difference(unit, old, new, apart, gain=gain, better=way, reason=reason)
    found = paired_interval(redrawn[0], redrawn[1], way, plan.confidence, few=few)
    marks = ("few_clusters",) if few and found.low is not None else ()
    return Difference(
        unit=unit,
        incumbent=old,
        candidate=new,
        difference=apart,
        low=found.low,
        high=found.high,
        gain=gain,
        gain_low=found.gain_low,
        gain_high=found.gain_high,
        better=way,
        clusters=clusters.held,
        effective_clusters=clusters.effective,
        differing_clusters=clusters.differing,
        decision=found.decision,
        marks=marks,
        reason=found.reason,
    )


def difference_beside(name: str, old: Estimate | None, new: Estimate | None) -> Difference:
    """A figure that does not follow from redraws, or that one side does not have: values without an interval."""
    unit = next(one.unit for one in (old, new) if one is not None)
    if old is None or new is None:
        return Difference(
            unit, old.value if old else None, new.value if new else None, better=better(name), reason="not_applicable"
        )
    if old.value is None or new.value is None:
        reason = (old if old.value is None else new).reason
        return Difference(unit, old.value, new.value, better=better(name), reason=reason)
    a, b, way = np.array([old.value]), np.array([new.value]), better(name)
    gain = float(gains(a, b, way)[0]) if way else None
    apart = float(differences(a, b)[0])
    return Difference(unit, old.value, new.value, apart, gain=gain, better=way, reason="no_interval")
