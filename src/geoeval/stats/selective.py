"""Selective prediction and the comparison of candidates: thresholds, paired redraws; folds, deferral and macro F1.

Conventions   confidence in [0, 1], error 0 or 1; a threshold t accepts c ≥ t; a positive difference means that the
              candidate is better; nothing is chosen on anything but the validation split.
Refused       ids or clusters in both splits, sides that do not match one to one, a missing cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, Literal

import numpy as np

from geoeval.errors import InputError
from geoeval.model import FloatArray, IntArray
from geoeval.stats.bootstrap import percentile_interval
from geoeval.stats.calibration import brier, ece
from geoeval.stats.columns import finite, flags, unit_interval
from geoeval.stats.deferral import (
    DeferralCurve,
    OperatingCurve,
    common_cost_range,
    deferral_curve,
    deferral_operating_points,
    deferral_single_arm,
)
from geoeval.stats.folds import OutOfFold, folds, k_fold_oof
from geoeval.stats.ids import hash_of_ids, paired_order, refuse_overlap
from geoeval.stats.interval import FEW_CLUSTERS, FEW_EFFECTIVE_CLUSTERS, kish_effective
from geoeval.stats.labels import ClassScore, Excluded, MacroF1, macro_f1
from geoeval.stats.risk import (
    COMPILED,
    AttainablePoints,
    RankedErrors,
    Risk,
    attainable_points,
    augrc,
    aurc,
    eaurc,
    risk,
)
from geoeval.stats.risk_curve import risk_curve
from geoeval.stats.thresholds import OperatingPoint, score_at, select_threshold

__all__ = [
    "ClassScore",
    "Decision",
    "DeferralCurve",
    "Excluded",
    "MacroF1",
    "OperatingCurve",
    "OperatingPoint",
    "OutOfFold",
    "PairedDelta",
    "RiskCoverage",
    "adoption",
    "augrc",
    "aurc",
    "bootstrap_delta_aurc",
    "bootstrap_delta_mean",
    "brier",
    "common_cost_range",
    "deferral_curve",
    "deferral_operating_points",
    "deferral_single_arm",
    "eaurc",
    "ece",
    "folds",
    "hash_of_ids",
    "k_fold_oof",
    "macro_f1",
    "paired_order",
    "refuse_overlap",
    "risk_coverage",
    "score_at",
    "select_threshold",
]

Decision = Literal["adopt", "block", "inconclusive"]

_DRAWS_AT_ONCE = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class RiskCoverage:
    """Areas under the risk-coverage curves, the operating points that exist, and the curve: k / N and R_k."""

    areas: Risk
    points: AttainablePoints
    coverage: FloatArray
    selective_risk: FloatArray
    reason: str | None


def risk_coverage(confidence: Any, error: Any) -> RiskCoverage:
    """Risk against coverage of confidences in [0, 1]: R_k, the error rate among the k surest, at coverage k / N.

    Equal confidences share the mean of their errors, so ``selective_risk`` is the mean over all their orders; only
    ``points`` can be had with a threshold. All lie in [0, 1]. Without observations the areas are None (``no_support``)
    and the arrays empty.

    References
    ----------
    .. [1] Geifman and El-Yaniv (2017), Selective classification for deep neural networks. NeurIPS.

    Examples
    --------
    >>> found = risk_coverage([0.9, 0.8, 0.7, 0.7], [0, 0, 1, 0])
    >>> found.points.accepted, found.selective_risk
    (array([1, 2, 4]), array([0.        , 0.        , 0.16666667, 0.25      ]))
    >>> risk_coverage([], []).reason
    'no_support'
    """
    column = unit_interval(confidence, "confidence")
    areas = risk(column, error)
    curve = risk_curve(column, error)
    return RiskCoverage(areas, attainable_points(column, error), *curve, None if areas.n else "no_support")


def adoption(low: float | None, high: float | None) -> Decision:
    """``adopt`` only where the whole interval is above 0, ``block`` only where it is below, else ``inconclusive``.

    Formula: low > 0, high < 0, else. A bound that is None or NaN decides nothing. It is the two-sided test that the
    interval inverts (Efron and Tibshirani 1993, An introduction to the bootstrap).

    Examples
    --------
    >>> adoption(0.01, 0.05), adoption(-0.01, 0.0), adoption(-0.3, -0.1), adoption(None, None)
    ('adopt', 'inconclusive', 'block', 'inconclusive')
    """
    if low is not None and low > 0:
        return "adopt"
    if high is not None and high < 0:
        return "block"
    return "inconclusive"


@dataclass(frozen=True, slots=True)
class PairedDelta:
    """A difference of two candidates on the same observations; positive means that the candidate is better.

    ``observed`` is the statistic on the data; ``bootstrap_mean`` is the mean of its redraws and is not to be taken
    for it. ``undefined`` counts redraws without a value.
    """

    observed: float | None
    bootstrap_mean: float | None
    low: float | None
    high: float | None
    n: int
    clusters: int
    redraws: int
    undefined: int
    decision: Decision
    marks: tuple[str, ...] = ()
    reason: str | None = None


def _clusters(clusters: Sequence[Any] | None, n: int) -> tuple[IntArray, int]:
    if clusters is None:
        return np.arange(n, dtype=np.int64), n
    if len(clusters) != n:
        raise InputError(f"clusters need one entry for each of the {n} observations, got {len(clusters)}")
    blank = [i for i, one in enumerate(clusters) if one is None or one == "" or (isinstance(one, float) and isnan(one))]
    if blank:
        raise InputError(f"every observation needs a cluster, row {blank[0]} has none; it is never one of its own")
    names = {one: i for i, one in enumerate(sorted(set(clusters)))}
    return np.array([names[one] for one in clusters], dtype=np.int64), len(names)


def _draws(clusters: int, redraws: int, seed: int) -> Iterator[IntArray]:
    """Multiplicities of :func:`geoeval.stats.bootstrap.multiplicities`, a bounded number of redraws at a time."""
    generator = np.random.Generator(np.random.PCG64(seed))
    step = max(1, _DRAWS_AT_ONCE // clusters)
    for first in range(0, redraws, step):
        drawn = generator.integers(0, clusters, size=(min(step, redraws - first), clusters))
        out = np.zeros(drawn.shape, dtype=np.int64)
        if clusters * redraws >= COMPILED:
            from geoeval.stats.risk_kernel import count_draws

            count_draws(drawn, out)
        else:
            np.add.at(out, (np.arange(len(drawn))[:, None], drawn), 1)
        yield out


def _paired(
    delta: Callable[[IntArray], FloatArray], cluster: IntArray, clusters: int, redraws: int, seed: int
) -> PairedDelta:
    """Observed delta (every cluster once) and its redraws; ``delta`` maps multiplicities to one value a row."""
    n = len(cluster)
    whole = float(delta(np.ones((1, clusters), dtype=np.int64))[0]) if n else np.nan
    observed = whole if np.isfinite(whole) else None
    few = clusters < FEW_CLUSTERS or kish_effective(np.bincount(cluster, minlength=clusters)) < FEW_EFFECTIVE_CLUSTERS
    marks = ("few_clusters",) if few else ()
    if n < 2 or redraws < 1 or clusters < 2:
        reason = "low_support" if n < 2 else "no_interval" if redraws < 1 else "single_cluster"
        return PairedDelta(observed, None, None, None, n, clusters, 0, 0, "inconclusive", marks, reason)
    values = np.concatenate([delta(drawn) for drawn in _draws(clusters, redraws, seed)])
    defined = values[np.isfinite(values)]
    bounds = percentile_interval(values)
    low, high = bounds if bounds is not None else (None, None)
    return PairedDelta(
        observed=observed,
        bootstrap_mean=float(np.mean(np.sort(defined))) if len(defined) else None,
        low=low,
        high=high,
        n=n,
        clusters=clusters,
        redraws=redraws,
        undefined=len(values) - len(defined),
        decision=adoption(low, high),
        marks=marks,
        reason=None if bounds is not None else "unstable_bootstrap",
    )


def bootstrap_delta_aurc(
    incumbent: Any,
    candidate: Any,
    error: Any,
    candidate_error: Any = None,
    *,
    redraws: int = 2000,
    seed: int = 0,
    clusters: Sequence[Any] | None = None,
) -> PairedDelta:
    """AURC(incumbent) − AURC(candidate) on the same observations, with its paired bootstrap.

    In [−1, 1]; positive where the candidate is better. Both sides take the same multiplicities in each redraw; the
    bounds are the 2.5th and 97.5th percentiles. None without observations; no interval below 2 observations or
    clusters. The order of rows changes no bit: without clusters, rows are drawn in the order of their values.

    Parameters
    ----------
    incumbent, candidate : (n,)
        Confidences of both, observations in one order.
    error : (n,)
        0 or 1; of both, or of the incumbent where ``candidate_error`` is given.
    candidate_error : (n,), optional
        Errors of the candidate, where the two predict differently.
    redraws, seed
        Drawn by PCG64.
    clusters : (n,), optional
        What is drawn as a whole; each observation by itself where it is left out.

    References
    ----------
    .. [1] Efron and Tibshirani (1993), An introduction to the bootstrap. Chapman and Hall.

    Examples
    --------
    >>> found = bootstrap_delta_aurc([0.1, 0.9], [0.9, 0.1], [0, 1], redraws=20, seed=1)
    >>> found.observed, found.decision
    (0.5, 'inconclusive')
    """
    old, new = unit_interval(incumbent, "incumbent"), unit_interval(candidate, "candidate")
    if len(old) != len(new):
        raise InputError(f"both sides must hold the same observations, got {len(old)} and {len(new)}")
    old_error = flags(error, "error", len(old))
    new_error = old_error if candidate_error is None else flags(candidate_error, "candidate_error", len(old))
    cluster, count = _clusters(clusters, len(old))
    if clusters is None:
        order = np.lexsort((new_error, old_error, new, old))
        old, new, old_error, new_error = old[order], new[order], old_error[order], new_error[order]
    sides = (RankedErrors.of(old, old_error, cluster), RankedErrors.of(new, new_error, cluster))
    many = len(old) * redraws >= COMPILED

    def delta(drawn: IntArray) -> FloatArray:
        before, after = (side.redraws(drawn, compiled=many).aurc for side in sides)
        return before - after

    return _paired(delta, cluster, count, redraws, seed)


def bootstrap_delta_mean(
    incumbent: Any,
    candidate: Any,
    *,
    redraws: int = 2000,
    seed: int = 0,
    clusters: Sequence[Any] | None = None,
) -> PairedDelta:
    """Mean of candidate − incumbent on the same observations, with its paired bootstrap.

    Σ(candidate − incumbent) / n, in the units of the two; percentile bounds, undefined cases, order of rows and source
    as in :func:`bootstrap_delta_aurc`.

    Examples
    --------
    >>> bootstrap_delta_mean([0.25, 0.5], [0.5, 0.75], redraws=20).decision
    'adopt'
    """
    old, new = finite(incumbent, "incumbent"), finite(candidate, "candidate")
    if len(old) != len(new):
        raise InputError(f"both sides must hold the same observations, got {len(old)} and {len(new)}")
    cluster, count = _clusters(clusters, len(old))
    if clusters is None:
        order = np.lexsort((new, old))
        old, new = old[order], new[order]
    order = np.lexsort((new - old, cluster))
    sums, sizes = np.zeros(count), np.bincount(cluster, minlength=count)
    np.add.at(sums, cluster[order], (new - old)[order])

    def delta(drawn: IntArray) -> FloatArray:
        # Products summed in a fixed order, not by BLAS: its order of summation depends on the machine.
        size = np.maximum(np.add.reduce(drawn * sizes, axis=1), 1)
        return np.asarray(np.add.reduce(drawn * sums, axis=1) / size, dtype=np.float64)

    return _paired(delta, cluster, count, redraws, seed)
