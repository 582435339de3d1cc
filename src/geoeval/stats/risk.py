"""Risk against coverage: how well a confidence ranks errors last. AURC, E-AURC and AUGRC, with whole-number weights.

Conventions   observations by descending confidence; inside a block of equal confidences every error is replaced by
              the block's mean, so that the order of rows cannot matter; errors are 0 or 1.
Exactness     AUGRC is a quotient of whole numbers. AURC sums, over blocks that hold errors, differences of harmonic
              numbers from a table of whole numbers: the same bits for every order, and for weights as for repetition.
Undefined     None (in redraws NaN) without observations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from geoeval.model import FloatArray, IntArray
from geoeval.stats.columns import finite, flags, starts_of_ties, whole_weights
from geoeval.stats.tally import RowTotals

_COARSE = 50
_FINE = 30
_PAGE = 1 << 16


@lru_cache(maxsize=2)
def _harmonic_table(size: int) -> tuple[IntArray, IntArray]:
    """Σ 1/i up to each index, as whole numbers of 2⁻⁵⁰ and a rest in whole numbers of 2⁻⁸⁰."""
    if size >= 2**31:
        raise OverflowError(f"{size} observations cannot be ranked at once")
    i = np.arange(1, size, dtype=np.int64)
    quotient = (1 << _COARSE) // i
    rest = (((1 << _COARSE) - quotient * i) << _FINE) // i
    zero = np.zeros(1, dtype=np.int64)
    return np.concatenate([zero, np.cumsum(quotient)]), np.concatenate([zero, np.cumsum(rest)])


def _harmonic_between(a: IntArray, b: IntArray, largest: int) -> FloatArray:
    """H_b − H_a, accurate to the last bits even where a and b are close."""
    coarse, fine = _harmonic_table((largest // _PAGE + 1) * _PAGE)
    return (coarse[b] - coarse[a]) * 2.0**-_COARSE + (fine[b] - fine[a]) * 2.0 ** -(_COARSE + _FINE)


@dataclass(frozen=True, slots=True)
class Risk:
    """Areas under the risk-coverage curves of ``n`` observations with ``errors`` errors; None where n is 0.

    ``aurc_best`` and ``augrc_best`` belong to the order with all errors last; ``eaurc`` and ``eaugrc`` are what the
    ranking loses against it, exactly 0 for a perfect ranking.
    """

    n: int
    errors: int
    aurc: float | None
    aurc_best: float | None
    eaurc: float | None
    augrc: float | None
    augrc_best: float | None
    eaugrc: float | None


def _risk(size: IntArray, wrong: IntArray) -> Risk:
    """Areas from blocks of equal confidence in descending order: how many observations and errors each holds."""
    end = np.cumsum(size)
    n, errors = (int(end[-1]), int(wrong.sum())) if len(size) else (0, 0)
    if n == 0:
        return Risk(0, 0, None, None, None, None, None, None)
    held = wrong > 0
    e, m, b = wrong[held], size[held], end[held]
    a = b - m
    # An error at rank r adds 1/k at every k from r on; in a block the mean over its ranks is taken.
    inside = 1.0 - a / m * _harmonic_between(a, b, n)
    area = math.fsum((e * (_harmonic_between(b, np.full_like(b, n), n) + inside)).tolist()) / n
    first = np.array([n - errors], dtype=np.int64)
    best = (errors - (n - errors) * float(_harmonic_between(first, np.array([n], dtype=np.int64), n)[0])) / n
    doubled = int(np.sum(e * (2 * n - 2 * a - m + 1)))
    least = errors * (errors + 1)
    # Whole numbers say whether the ranking is perfect; roundings must not.
    best = area if doubled == least else best
    return Risk(
        n=n,
        errors=errors,
        aurc=area,
        aurc_best=best,
        eaurc=max(0.0, area - best),
        augrc=doubled / (2 * n * n),
        augrc_best=least / (2 * n * n),
        eaugrc=(doubled - least) / (2 * n * n),
    )


def risk(confidence: Any, error: Any, weights: Any = None) -> Risk:
    """All areas under the risk-coverage curves at once.

    Parameters
    ----------
    confidence : (n,)
        Finite numbers, higher is surer. An abstention has none: leave it out and report the coverage.
    error : (n,)
        1 for an error, 0 for none.
    weights : (n,), optional
        How often each observation counts.

    References
    ----------
    .. [1] Geifman, Uziel and El-Yaniv (2019), Bias-reduced uncertainty estimation for deep neural classifiers. ICLR.
    .. [2] Traub et al. (2024), Overcoming common flaws in the evaluation of selective classification systems. NeurIPS.

    Examples
    --------
    >>> found = risk([0.9, 0.9, 0.9, 0.4, 0.4], [0, 1, 0, 1, 0])
    >>> round(found.aurc, 12), found.augrc
    (0.355, 0.22)
    >>> risk([], []).aurc is None
    True
    """
    score = finite(confidence, "confidence")
    wrong = flags(error, "error", len(score))
    weight = whole_weights(weights, len(score))
    order = np.argsort(-score, kind="stable")
    start = starts_of_ties(score[order])
    if not len(start):
        return _risk(start, start)
    return _risk(np.add.reduceat(weight[order], start), np.add.reduceat((weight * wrong)[order], start))


def aurc(confidence: Any, error: Any, weights: Any = None) -> float | None:
    """Area under the risk-coverage curve: the error rate among the k surest, averaged over k; 0 without errors.

    Examples
    --------
    >>> aurc([0.5, 0.5, 0.5, 0.5], [1, 0, 0, 0])
    0.25
    """
    return risk(confidence, error, weights).aurc


def eaurc(confidence: Any, error: Any, weights: Any = None) -> float | None:
    """What AURC loses against the order with all errors last: exactly 0 for a perfect ranking.

    The best order's area is the discrete one, not Geifman's continuous approximation.

    Examples
    --------
    >>> eaurc([0.9, 0.8, 0.1], [0, 0, 1])
    0.0
    """
    return risk(confidence, error, weights).eaurc


def augrc(confidence: Any, error: Any, weights: Any = None) -> float | None:
    """Area under the generalized risk-coverage curve: errors among the k surest over n, averaged over k.

    Examples
    --------
    >>> augrc([0.5, 0.5, 0.5, 0.5], [1, 0, 0, 0])
    0.15625
    """
    return risk(confidence, error, weights).augrc


@dataclass(frozen=True, slots=True)
class RiskRedraws:
    """One area a redraw (size,), NaN where the redraw is empty."""

    aurc: FloatArray
    eaurc: FloatArray
    augrc: FloatArray


def risk_redraws(rows: RowTotals, score_col: int, error_col: int) -> RiskRedraws:
    """The three areas of every total, in one pass a total over the list sorted once.

    Examples
    --------
    >>> rows = RowTotals(np.array([[0.1, 1.0], [0.9, 0.0]]), np.array([0, 1]), np.array([[1, 1], [2, 0], [0, 0]]))
    >>> risk_redraws(rows, 0, 1).aurc
    array([0.25, 1.  ,  nan])
    """
    score = finite(rows.values[:, score_col], "confidence")
    wrong = flags(rows.values[:, error_col], "error", len(score))
    order = np.argsort(-score, kind="stable")
    start = starts_of_ties(score[order])
    cluster, wrong = rows.cluster[order], wrong[order]
    out = np.full((3, len(rows.multiplicity)), np.nan)
    for at, multiplicity in enumerate(rows.multiplicity if len(start) else ()):
        weight = multiplicity[cluster]
        found = _risk(np.add.reduceat(weight, start), np.add.reduceat(weight * wrong, start))
        if found.n:
            out[:, at] = found.aurc, found.eaurc, found.augrc
    return RiskRedraws(out[0], out[1], out[2])


def aurc_redraws(rows: RowTotals, score_col: int, error_col: int) -> FloatArray:
    """:func:`aurc` of every total (size,)."""
    return risk_redraws(rows, score_col, error_col).aurc


def eaurc_redraws(rows: RowTotals, score_col: int, error_col: int) -> FloatArray:
    """:func:`eaurc` of every total (size,)."""
    return risk_redraws(rows, score_col, error_col).eaurc


def augrc_redraws(rows: RowTotals, score_col: int, error_col: int) -> FloatArray:
    """:func:`augrc` of every total (size,)."""
    return risk_redraws(rows, score_col, error_col).augrc


@dataclass(frozen=True, slots=True, eq=False)
class AttainablePoints:
    """What each distinct confidence, taken as threshold (accept c ≥ t), accepts: arrays by descending threshold."""

    n: int
    threshold: FloatArray
    accepted: IntArray
    correct: IntArray

    @property
    def coverage(self) -> FloatArray:
        """Share of the observations that is accepted."""
        return self.accepted / max(self.n, 1)

    @property
    def precision(self) -> FloatArray:
        """Share of the accepted that is correct."""
        return self.correct / self.accepted


def attainable_points(confidence: Any, error: Any, weights: Any = None) -> AttainablePoints:
    """The operating points that exist: a block of equal confidences cannot be cut.

    Examples
    --------
    >>> points = attainable_points([1.0, 1.0, 0.5], [0, 1, 0])
    >>> points.accepted, points.precision[0]
    (array([2, 3]), np.float64(0.5))
    """
    score = finite(confidence, "confidence")
    wrong = flags(error, "error", len(score))
    weight = whole_weights(weights, len(score))
    score, wrong, weight = score[weight > 0], wrong[weight > 0], weight[weight > 0]
    order = np.argsort(-score, kind="stable")
    start = starts_of_ties(score[order])
    if not len(start):
        return AttainablePoints(0, np.zeros(0), start, start)
    last = np.append(start[1:], len(score)) - 1
    accepted = np.cumsum(weight[order])[last]
    correct = accepted - np.cumsum((weight * wrong)[order])[last]
    return AttainablePoints(int(accepted[-1]), score[order][start], accepted, correct)
