"""Risk against coverage: how well a confidence ranks errors last. AURC, E-AURC and AUGRC, with whole-number weights.

Conventions   observations by descending confidence; inside a block of equal confidences every error is replaced by
              the block's mean, so that the order of rows cannot matter; errors are 0 or 1.
Exactness     AUGRC is a quotient of whole numbers. AURC sums, over blocks that hold errors, differences of harmonic
              numbers from a table of whole numbers: the same bits for every order, and for weights as for repetition.
Undefined     None (in redraws NaN) without observations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
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

#: From so many observations in all redraws on, compiled sums repay the time to load them.
COMPILED = 1 << 25


@lru_cache(maxsize=2)
def _harmonic_table(size: int) -> IntArray:
    """Σ 1/i up to each index (2, size), as whole numbers of 2⁻⁵⁰ and a rest in whole numbers of 2⁻⁸⁰."""
    if size >= 2**31:
        raise OverflowError(f"{size} observations cannot be ranked at once")
    i = np.arange(1, size, dtype=np.int64)
    quotient = (1 << _COARSE) // i
    rest = (((1 << _COARSE) - quotient * i) << _FINE) // i
    out = np.zeros((2, size), dtype=np.int64)
    np.cumsum(quotient, out=out[0, 1:])
    np.cumsum(rest, out=out[1, 1:])
    return out


def _harmonic_between(a: IntArray, b: IntArray, largest: int) -> FloatArray:
    """H_b − H_a, accurate to the last bits even where a and b are close."""
    coarse, fine = _harmonic_table((largest // _PAGE + 1) * _PAGE)
    found = (coarse[b] - coarse[a]) * 2.0**-_COARSE + (fine[b] - fine[a]) * 2.0 ** -(_COARSE + _FINE)
    return np.asarray(found, dtype=np.float64)


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


def _areas(n: int, errors: int, area: float, doubled: int) -> Risk:
    """All areas from n times AURC, and from twice n² times AUGRC."""
    if n == 0:
        return Risk(0, 0, None, None, None, None, None, None)
    first = np.array([n - errors], dtype=np.int64)
    best = (errors - (n - errors) * float(_harmonic_between(first, np.array([n], dtype=np.int64), n)[0])) / n
    least = errors * (errors + 1)
    # Whole numbers say whether the ranking is perfect; roundings must not.
    best = area / n if doubled == least else best
    return Risk(
        n=n,
        errors=errors,
        aurc=area / n,
        aurc_best=best,
        eaurc=max(0.0, area / n - best),
        augrc=doubled / (2 * n * n),
        augrc_best=least / (2 * n * n),
        eaugrc=(doubled - least) / (2 * n * n),
    )


def _risk(size: IntArray, wrong: IntArray) -> Risk:
    """Areas from blocks of equal confidence in descending order: how many observations and errors each holds."""
    end = np.cumsum(size)
    n = int(end[-1]) if len(size) else 0
    held = np.flatnonzero(wrong)
    e, m, b = wrong[held], size[held], end[held]
    a = b - m
    # An error at rank r adds 1/k at every k from r on; in a block the mean over its ranks is taken.
    inside = 1.0 - a / m * _harmonic_between(a, b, n)
    area = math.fsum((e * (_harmonic_between(b, np.full_like(b, n), n) + inside)).tolist())
    return _areas(n, int(e.sum()), area, int(np.sum(e * (2 * n - 2 * a - m + 1))))


def _blocks(score: FloatArray, wrong: IntArray) -> tuple[IntArray, IntArray]:
    """Observations and errors of each block of equal confidences, in descending order.

    A float of at least 0 orders as its bits do, and its sign bit is free for the error: one sort without an index.
    """
    if len(score) and float(score.min()) < 0:
        order = np.argsort(-score)
        flag, start = wrong[order], starts_of_ties(score[order])
    else:
        # Adding 0.0 takes the sign from a minus zero.
        packed = np.sort(((score + 0.0).view(np.uint64) << np.uint64(1)) | wrong.view(np.uint64))[::-1]
        flag, start = (
            (packed & np.uint64(1)).astype(np.int64),
            starts_of_ties((packed >> np.uint64(1)).view(np.float64)),
        )
    if len(start) == len(flag):
        return np.ones(len(flag), dtype=np.int64), flag
    return np.diff(np.append(start, len(flag))), np.add.reduceat(flag, start)


def risk(confidence: Any, error: Any, weights: Any = None) -> Risk:
    """All areas under the risk-coverage curves at once: in [0, 1]; None without observations.

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
    if weights is None:
        return _risk(*_blocks(score, wrong))
    weight = whole_weights(weights, len(score))
    order = np.argsort(-score)
    start = starts_of_ties(score[order])
    if not len(start):
        return _risk(start, start)
    return _risk(np.add.reduceat(weight[order], start), np.add.reduceat((weight * wrong)[order], start))


def aurc(confidence: Any, error: Any, weights: Any = None) -> float | None:
    """Area under the risk-coverage curve: the error rate among the k surest, averaged over k; 0 without errors.

    (1/N) Σ_k R_k, in [0, 1]; None without observations. Geifman and El-Yaniv 2017; ties as in :func:`risk`.

    Examples
    --------
    >>> aurc([0.5, 0.5, 0.5, 0.5], [1, 0, 0, 0])
    0.25
    """
    return risk(confidence, error, weights).aurc


def eaurc(confidence: Any, error: Any, weights: Any = None) -> float | None:
    """What AURC loses against the order with all errors last: exactly 0 for a perfect ranking.

    AURC − AURC of the best order, in [0, 1); None without observations. Geifman, Uziel and El-Yaniv 2019, but the best
    order's area is the discrete one, not their continuous approximation.

    Examples
    --------
    >>> eaurc([0.9, 0.8, 0.1], [0, 0, 1])
    0.0
    """
    return risk(confidence, error, weights).eaurc


def augrc(confidence: Any, error: Any, weights: Any = None) -> float | None:
    """Area under the generalized risk-coverage curve: errors among the k surest over n, averaged over k.

    (1/N) Σ_k (k/N) R_k: in [0, 1] (at most (N + 1) / 2N); None without observations. Traub et al. 2024.

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


@dataclass(frozen=True, slots=True, eq=False)
class RankedErrors:
    """Observations by descending confidence, sorted once: what any number of redraws are read from.

    Parameters
    ----------
    cluster : (n,)
        What is drawn as a whole: a column of the multiplicities.
    wrong : (n,)
        1 for an error.
    start : (blocks,)
        Where each block of equal confidences begins.
    """

    cluster: IntArray
    wrong: IntArray
    start: IntArray

    @staticmethod
    def of(confidence: Any, error: Any, cluster: Any) -> RankedErrors:
        """Sort a list.

        Examples
        --------
        >>> ranked = RankedErrors.of([0.1, 0.9], [1, 0], [0, 1])
        >>> ranked.redraws(np.array([[1, 1], [2, 0], [0, 0]])).aurc
        array([0.25, 1.  ,  nan])
        """
        score = finite(confidence, "confidence")
        wrong = flags(error, "error", len(score))
        order = np.argsort(-score, kind="stable")
        which = np.asarray(cluster, dtype=np.int64)
        return RankedErrors(which[order], wrong[order], starts_of_ties(score[order]))

    def redraws(self, multiplicity: IntArray, *, compiled: bool | None = None) -> RiskRedraws:
        """The three areas of every redraw, in one pass over the sorted list; only errors ask for harmonic numbers.

        Parameters
        ----------
        multiplicity : (size, clusters)
            How often each cluster counts in each redraw.
        compiled
            Whether to sum in a compiled loop, which gives the same bits; None where there is enough to sum.
        """
        many = len(multiplicity) * len(self.wrong) >= COMPILED if compiled is None else compiled
        found = (self._compiled if many else self._each)(multiplicity) if len(self.start) else []
        out = np.full((3, len(multiplicity)), np.nan)
        for at, one in enumerate(found):
            if one.n:
                out[:, at] = one.aurc, one.eaurc, one.augrc
        return RiskRedraws(out[0], out[1], out[2])

    def _each(self, multiplicity: IntArray) -> Iterator[Risk]:
        for one in multiplicity:
            weight = one[self.cluster]
            yield _risk(np.add.reduceat(weight, self.start), np.add.reduceat(weight * self.wrong, self.start))

    def _compiled(self, multiplicity: IntArray) -> Iterator[Risk]:
        from geoeval.stats.risk_kernel import FIRST_BITS, LIMB_BITS, LIMBS, risk_sums

        sizes = np.bincount(self.cluster, minlength=multiplicity.shape[1])
        most = int((multiplicity @ sizes).max())
        error = np.flatnonzero(self.wrong)
        block, first = np.unique(np.searchsorted(self.start, error, side="right") - 1, return_index=True)
        out = np.zeros((len(multiplicity), 3 + LIMBS), dtype=np.int64)
        risk_sums(
            np.ascontiguousarray(multiplicity),
            self.cluster.astype(np.int32),
            error.astype(np.int32),
            np.append(first, len(error)).astype(np.int32),
            self.start[block].astype(np.int32),
            np.append(self.start, len(self.wrong))[block + 1].astype(np.int32),
            _harmonic_table((most // _PAGE + 1) * _PAGE),
            np.array([2.0**-_COARSE, 2.0 ** -(_COARSE + _FINE)]),
            out,
        )
        scale = 1 << (FIRST_BITS + (LIMBS - 1) * LIMB_BITS)
        for n, errors, doubled, *limbs in out.tolist():
            exact = 0
            for limb in limbs:
                exact = (exact << LIMB_BITS) + limb
            yield _areas(n, errors, exact / scale, doubled)


def risk_redraws(rows: RowTotals, score_col: int, error_col: int) -> RiskRedraws:
    """The three areas of every total, in one pass a total over the list sorted once; NaN where a total is empty.

    Formulas, ranges and sources as in :func:`aurc`, :func:`eaurc` and :func:`augrc`.

    Examples
    --------
    >>> rows = RowTotals(np.array([[0.1, 1.0], [0.9, 0.0]]), np.array([0, 1]), np.array([[1, 1], [2, 0], [0, 0]]))
    >>> risk_redraws(rows, 0, 1).aurc
    array([0.25, 1.  ,  nan])
    """
    ranked = RankedErrors.of(rows.values[:, score_col], rows.values[:, error_col], rows.cluster)
    return ranked.redraws(rows.multiplicity)


def aurc_redraws(rows: RowTotals, score_col: int, error_col: int) -> FloatArray:
    """:func:`aurc` of every total (size,): same formula, range and source; NaN where a total is empty."""
    return risk_redraws(rows, score_col, error_col).aurc


def eaurc_redraws(rows: RowTotals, score_col: int, error_col: int) -> FloatArray:
    """:func:`eaurc` of every total (size,): same formula, range and source; NaN where a total is empty."""
    return risk_redraws(rows, score_col, error_col).eaurc


def augrc_redraws(rows: RowTotals, score_col: int, error_col: int) -> FloatArray:
    """:func:`augrc` of every total (size,): same formula, range and source; NaN where a total is empty."""
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

    Coverage accepted / N in (0, 1], precision correct / accepted in [0, 1]; no points without observations. Geifman and
    El-Yaniv 2017, at distinct thresholds only.

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
