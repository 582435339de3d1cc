"""Calibration: does a confidence of 0.8 mean 80 % correct? ECE and Brier scores, with whole-number weights.

Conventions   bin edges are i/bins, correctly rounded; bins are closed on the left, the last one on both sides.
              ``numpy.linspace`` and ``int(c * 10)`` put 0.3, 0.6 or 0.7 into other bins.
Exactness     sums are made of whole numbers of 2⁻⁶⁰: no order of the rows changes a bit, and a weight counts as
              repetition does.
Undefined     None without observations. Refused: NaN, and anything outside [0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from geoeval.errors import ConfigError, InputError
from geoeval.model import FloatArray, IntArray
from geoeval.stats.columns import flags, unit_interval, whole_weights

_LIMB = 30


def bin_edges(bins: int = 10) -> FloatArray:
    """Edges of equally wide bins on [0, 1] (bins + 1,), each the float nearest to i/bins.

    Examples
    --------
    >>> bin_edges()[[3, 6, 7]]
    array([0.3, 0.6, 0.7])
    """
    if bins < 1:
        raise ConfigError(f"bins must be at least 1, got {bins!r}")
    return np.arange(bins + 1) / bins


def bin_index(confidence: Any, bins: int = 10) -> IntArray:
    """Bin of each confidence (n,): 0.0 in the first, 1.0 in the last, an edge in the bin that it opens.

    Examples
    --------
    >>> bin_index([0.0, 0.3, 0.8999999999999999, 1.0])
    array([0, 3, 8, 9])
    """
    column = unit_interval(confidence, "confidence")
    return np.searchsorted(bin_edges(bins)[1:-1], column, side="right").astype(np.int64)


def bin_counts(confidence: Any, weights: Any = None, bins: int = 10) -> IntArray:
    """How many observations each bin holds (bins,): published beside every ECE.

    Examples
    --------
    >>> bin_counts([0.05, 0.95, 1.0])
    array([1, 0, 0, 0, 0, 0, 0, 0, 0, 2])
    """
    index = bin_index(confidence, bins)
    return _whole_sums(index, whole_weights(weights, len(index)), bins)


def _whole_sums(index: IntArray, values: IntArray, bins: int) -> IntArray:
    out = np.zeros(bins, dtype=np.int64)
    np.add.at(out, index, values)
    return out


def _exact_sums(index: IntArray, values: FloatArray, weight: IntArray, bins: int) -> list[int]:
    """Weighted sums of numbers in [0, 1], or up to 2 in absolute value, a bin, in whole numbers of 2⁻⁶⁰."""
    scaled = values * 2.0**_LIMB
    high = np.floor(scaled)
    low = np.rint((scaled - high) * 2.0**_LIMB)
    coarse = _whole_sums(index, weight * high.astype(np.int64), bins)
    fine = _whole_sums(index, weight * low.astype(np.int64), bins)
    return [(int(a) << _LIMB) + int(b) for a, b in zip(coarse, fine, strict=True)]


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """One bin of a reliability diagram; means are None where it is empty."""

    low: float
    high: float
    n: int
    confidence: float | None
    correct: float | None


def reliability(confidence: Any, correct: Any, weights: Any = None, bins: int = 10) -> tuple[ReliabilityBin, ...]:
    """Mean confidence and share correct of each bin: what a reliability diagram draws.

    Examples
    --------
    >>> reliability([0.75, 0.75], [1, 0])[7]
    ReliabilityBin(low=0.7, high=0.8, n=2, confidence=0.75, correct=0.5)
    """
    count, surety, right = _binned(confidence, correct, weights, bins)
    edges = bin_edges(bins).tolist()
    return tuple(
        ReliabilityBin(
            edges[i],
            edges[i + 1],
            count[i],
            surety[i] / (count[i] << 2 * _LIMB) if count[i] else None,
            right[i] / count[i] if count[i] else None,
        )
        for i in range(bins)
    )


def _binned(confidence: Any, correct: Any, weights: Any, bins: int) -> tuple[list[int], list[int], list[int]]:
    column = unit_interval(confidence, "confidence")
    right = flags(correct, "correct", len(column))
    weight = whole_weights(weights, len(column))
    index = bin_index(column, bins)
    return (
        _whole_sums(index, weight, bins).tolist(),
        _exact_sums(index, column, weight, bins),
        _whole_sums(index, weight * right, bins).tolist(),
    )


def ece(confidence: Any, correct: Any, weights: Any = None, bins: int = 10) -> float | None:
    """Expected calibration error: ``Σ n_b/N · |mean confidence − share correct|`` over equally wide bins.

    0 when every bin is right on average, at most 1, undefined without observations. Its value depends on the bins:
    publish :func:`bin_counts` beside it.

    Parameters
    ----------
    confidence : (n,)
        In [0, 1].
    correct : (n,)
        0 or 1.
    weights : (n,), optional
        How often each observation counts.
    bins
        How many bins.

    References
    ----------
    .. [1] Naeini, Cooper and Hauskrecht (2015), Obtaining well calibrated probabilities using Bayesian binning. AAAI.
    .. [2] Guo et al. (2017), On calibration of modern neural networks. ICML (bins closed on the right there).

    Examples
    --------
    >>> ece([0.75, 0.75], [1, 0])
    0.25
    >>> ece([], []) is None
    True
    """
    count, surety, right = _binned(confidence, correct, weights, bins)
    n = sum(count)
    if n == 0:
        return None
    off = sum(abs(a - (b << 2 * _LIMB)) for a, b in zip(surety, right, strict=True))
    return float(off / (n << 2 * _LIMB))


def ece_of_bins(count: Any, confidence: Any, correct: Any) -> FloatArray:
    """ECE from sums a bin, for many totals at once.

    Parameters
    ----------
    count, confidence, correct : (..., bins)
        Observations, sum of their confidences, and how many are correct.

    Returns
    -------
    (...,)
        NaN where there is no observation.

    Examples
    --------
    >>> ece_of_bins([[2, 0], [0, 0]], [[1.5, 0], [0, 0]], [[1, 0], [0, 0]])
    array([0.25,  nan])
    """
    n = np.asarray(count).sum(axis=-1).astype(np.float64)
    off = np.abs(np.asarray(confidence, dtype=np.float64) - np.asarray(correct, dtype=np.float64)).sum(axis=-1)
    out = np.full(n.shape, np.nan)
    np.divide(off, n, out=out, where=n > 0)
    return out


def _mean(values: FloatArray, weight: IntArray) -> float | None:
    n = int(weight.sum())
    total = _exact_sums(np.zeros(len(values), dtype=np.int64), values, weight, 1)[0]
    return total / (n << 2 * _LIMB) if n else None


def brier(confidence: Any, correct: Any, weights: Any = None) -> float | None:
    """Binary Brier score: mean of (confidence − correct)². 0 is perfect, 1 the worst, undefined without observations.

    References
    ----------
    .. [1] Brier (1950), Verification of forecasts expressed in terms of probability. Mon. Weather Rev. 78, 1-3.

    Examples
    --------
    >>> brier([0.5, 0.5, 0.5, 0.5], [1, 0, 1, 1])
    0.25
    """
    column = unit_interval(confidence, "confidence")
    right = flags(correct, "correct", len(column))
    return _mean((column - right) ** 2, whole_weights(weights, len(column)))


def brier_multiclass(p: Any, y: Any, form: Literal["sum", "half"] = "sum", weights: Any = None) -> float | None:
    """Brier score of class probabilities: mean over rows of the squared distance to the class that came true.

    Parameters
    ----------
    p : (n, classes)
        Probabilities in [0, 1]; each row sums to 1 (within 1e-3).
    y : (n,)
        Column of the class that came true.
    form
        ``"sum"`` is Brier's own, in [0, 2]; ``"half"`` is half of it, in [0, 1]. Name the form beside the number.
    weights : (n,), optional
        How often each row counts.

    Examples
    --------
    >>> brier_multiclass([[1.0, 0.0], [1.0, 0.0]], [0, 1])
    1.0
    """
    if form not in ("sum", "half"):
        raise ConfigError(f"form must be 'sum' or 'half', got {form!r}")
    table = np.asarray(p, dtype=np.float64)
    if table.ndim != 2:
        raise InputError(f"p must be a table of rows by classes, got an array of shape {table.shape}")
    unit_interval(table.reshape(-1), "p")
    wrong = np.flatnonzero(np.abs(table.sum(axis=1) - 1) > 1e-3)
    if len(wrong):
        raise InputError(f"p must sum to 1 in every row, got {table[wrong[0]].sum()!r} in row {wrong[0]}")
    label = np.asarray(y)
    if label.shape != (len(table),) or bool(np.any((label < 0) | (label >= table.shape[1]) | (label != label // 1))):
        raise InputError(f"y must name one of {table.shape[1]} columns for each of the {len(table)} rows of p")
    hit = np.zeros_like(table)
    hit[np.arange(len(table)), label.astype(np.int64)] = 1.0
    squares = (table - hit) ** 2
    weight = whole_weights(weights, len(table))
    total = _mean(squares.reshape(-1), np.repeat(weight, table.shape[1]))
    if total is None:
        return None
    return total * int(table.shape[1]) / (1 if form == "sum" else 2)
