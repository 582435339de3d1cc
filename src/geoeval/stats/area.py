"""Accuracy and area from a sample of points, with the standard errors of the design that drew them.

Designs       ``stratified``       simple random within strata; the strata may be the map's classes (Olofsson et al.
                                   2013, 2014) or others (Stehman 2014).
              ``simple_random``    every point equally likely: shares of the sample, strata ignored.
              ``systematic``       a grid of points, treated as simple random: conservative where maps are smooth.
              ``post_stratified``  simple random, then weighted by the mapped areas; the variance is unconditional
                                   (Cochran 1977, 5A.42), since the sample sizes within strata are random.
One formula   every figure is a total, or a ratio R = Y / X of two totals of indicators; the variance of a ratio is that
              of the residual ``y - R x`` divided by X squared. With map classes as strata this is Olofsson's formula.
Undefined     a stratum with one sample has no spread: standard errors are None there, unless the stratum's term is
              exactly 0 (no weight, or a residual that is 0 whatever the reference says). A stratum without a sample
              leaves every figure undefined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from geoeval.model import FloatArray, IntArray

Design = Literal["stratified", "simple_random", "systematic", "post_stratified"]

DESIGNS: tuple[Design, ...] = ("stratified", "simple_random", "systematic", "post_stratified")


@dataclass(frozen=True, slots=True)
class DesignFigure:
    """A design-based figure and its standard error.

    ``standard_error`` is None where the design cannot give one, ``value`` where the figure is undefined; ``reason``
    says why, from :data:`geoeval.model.REASONS`.
    """

    value: float | None
    standard_error: float | None
    reason: str | None = None

    def interval(self, confidence: float = 0.95, most: float = 1.0) -> tuple[float, float, bool] | None:
        """Normal interval clipped to [0, ``most``], and whether it was clipped; None without a standard error.

        Examples
        --------
        >>> low, high, clipped = DesignFigure(0.98, 0.02).interval()
        >>> round(low, 4), high, clipped
        (0.9408, 1.0, True)
        """
        if self.value is None or self.standard_error is None:
            return None
        half = NormalDist().inv_cdf(0.5 + confidence / 2) * self.standard_error
        low, high = self.value - half, self.value + half
        return max(low, 0.0), min(high, most), low < 0.0 or high > most

    def times(self, factor: float) -> DesignFigure:
        """The figure in another unit, such as a share of an area in square metres."""
        return DesignFigure(
            None if self.value is None else self.value * factor,
            None if self.standard_error is None else self.standard_error * factor,
            self.reason,
        )


@dataclass(frozen=True, slots=True)
class MapAccuracy:
    """Accuracy of a map and areas of its classes, as estimated from a sample; classes in the order of the table.

    ``precision`` is user's and ``recall`` producer's accuracy, ``area_share`` the share of each *reference* class,
    ``cells`` the estimated confusion matrix as shares, rows map and columns reference.
    """

    accuracy: DesignFigure
    precision: tuple[DesignFigure, ...]
    recall: tuple[DesignFigure, ...]
    area_share: tuple[DesignFigure, ...]
    cells: tuple[tuple[DesignFigure, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Sample:
    """Counts (strata, map, reference), stratum weights, sizes for the finite correction, and what can occur where."""

    counts: IntArray
    weight: FloatArray
    size: FloatArray | None
    possible: NDArray[np.bool_]
    random_sizes: bool


def design_accuracy(
    counts: NDArray[Any],
    mapped: Sequence[float] | None,
    design: Design,
) -> MapAccuracy:
    """Estimate accuracy and area from a sample matrix, for a design whose strata, if any, are the map's classes.

    Parameters
    ----------
    counts
        Sample counts (c, c), rows map class, columns reference class.
    mapped
        Mapped area of each class, any unit; needed by ``stratified`` and ``post_stratified``.
    design
        How the points were drawn. There is no default: a simple random sample fed to the stratified formula
        would get standard errors of zero that are false.

    Returns
    -------
    MapAccuracy
        Figures with standard errors, in the order of the matrix.

    References
    ----------
    .. [1] Olofsson, P. et al. (2013), Making better use of accuracy data in land change studies, RSE 129, 122-131.
    .. [2] Olofsson, P. et al. (2014), Good practices for estimating area and assessing accuracy of land change,
       RSE 148, 42-57.

    Examples
    --------
    >>> table = np.array([[97, 0, 3], [3, 279, 18], [2, 1, 97]])
    >>> figures = design_accuracy(table, [22353, 1122543, 610228], "stratified")
    >>> round(figures.accuracy.value, 4), round(figures.accuracy.standard_error, 4)
    (0.9444, 0.0112)
    """
    table = np.asarray(counts, dtype=np.int64)
    c = len(table)
    if table.shape != (c, c) or (table < 0).any():
        raise ValueError(f"sample counts must be a square table of whole numbers from 0 on, got shape {table.shape}")
    if design in ("simple_random", "systematic"):
        return _map_accuracy(_Sample(table[None], np.ones(1), None, np.ones((1, c, c), dtype=bool), random_sizes=False))
    if design not in DESIGNS:
        raise ValueError(f"design must be one of {', '.join(DESIGNS)}, got {design!r}")
    weight = _weights(mapped, c)
    by_stratum = np.zeros((c, c, c), dtype=np.int64)
    own = np.arange(c)
    by_stratum[own, own] = table
    possible = np.zeros((c, c, c), dtype=bool)
    possible[own, own] = True
    return _map_accuracy(_Sample(by_stratum, weight, None, possible, random_sizes=design == "post_stratified"))


def ratio_accuracy(counts: NDArray[Any], sizes: Sequence[float]) -> MapAccuracy:
    """Estimate accuracy and area from a stratified sample whose strata are other than the map's classes.

    Parameters
    ----------
    counts
        Sample counts (strata, c, c): for each stratum, rows map class, columns reference class.
    sizes
        Number of units (pixels) in each stratum; the finite population correction uses it.

    References
    ----------
    .. [1] Stehman, S. V. (2014), Estimating area and map accuracy for stratified random sampling when the strata are
       different from the map classes, Int. J. Remote Sensing 35, 4923-4939.

    Examples
    --------
    >>> counts = np.array([[[4, 1], [0, 5]], [[0, 0], [2, 8]]])
    >>> round(ratio_accuracy(counts, [1000, 3000]).accuracy.value, 3)
    0.825
    """
    table = np.asarray(counts, dtype=np.int64)
    size = np.asarray(sizes, dtype=np.float64)
    weight = _weights(sizes, len(table))
    return _map_accuracy(_Sample(table, weight, size, np.ones(table.shape, dtype=bool), random_sizes=False))


def sample_size(weights: Sequence[float], expected_precision: Sequence[float], standard_error: float) -> int:
    """Points needed for a standard error of overall accuracy, strata being map classes (Olofsson et al. 2014, eq. 13).

    ``n = (sum(W_i S_i) / SE)**2`` with ``S_i = sqrt(U_i (1 - U_i))``, rounded up.

    Examples
    --------
    >>> sample_size([0.02, 0.015, 0.32, 0.645], [0.7, 0.6, 0.9, 0.95], 0.01)
    641
    """
    share = _weights(weights, len(weights))
    if len(expected_precision) != len(share) or not all(0 <= u <= 1 for u in expected_precision):
        raise ValueError(f"expected {len(share)} user's accuracies in [0, 1], found {list(expected_precision)!r}")
    spread = np.sqrt([u * (1 - u) for u in expected_precision])
    if not standard_error > 0:
        raise ValueError(f"standard_error must be above 0, got {standard_error!r}")
    return math.ceil(round((float(share @ spread) / standard_error) ** 2, 9))


def simple_sample_size(accuracy: float, half_width: float, confidence: float = 0.95) -> int:
    """Points of a simple random sample for an interval of this half width: ``z**2 p (1 - p) / d**2`` (Cochran 1977).

    Rounded to the nearest whole number, as published tables are.

    Examples
    --------
    >>> simple_sample_size(0.85, 0.04)
    306
    """
    if not 0 <= accuracy <= 1 or not half_width > 0:
        raise ValueError(f"accuracy must lie in [0, 1] and half_width above 0, got {accuracy!r} and {half_width!r}")
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    return round(z**2 * accuracy * (1 - accuracy) / half_width**2)


def _weights(sizes: Sequence[float] | None, strata: int) -> FloatArray:
    if sizes is None or len(sizes) != strata:
        found = "none" if sizes is None else len(sizes)
        raise ValueError(f"expected the size of each of the {strata} strata, found {found}")
    size = np.asarray(sizes, dtype=np.float64)
    if not np.isfinite(size).all() or (size < 0).any() or size.sum() <= 0:
        raise ValueError(f"stratum sizes must be finite, from 0 on and not all 0, got {list(sizes)!r}")
    return np.asarray(size / math.fsum(size), dtype=np.float64)


def _map_accuracy(sample: _Sample) -> MapAccuracy:
    c = sample.counts.shape[1]
    row, column = np.indices((c, c))
    whole = np.ones((c, c))
    agree = (row == column).astype(np.float64)

    def cell(i: int, j: int) -> DesignFigure:
        return _figure(sample, ((row == i) & (column == j)).astype(np.float64), None)

    return MapAccuracy(
        accuracy=_figure(sample, agree * whole, None),
        precision=tuple(_figure(sample, agree * (row == i), (row == i) * whole) for i in range(c)),
        recall=tuple(_figure(sample, agree * (column == j), (column == j) * whole) for j in range(c)),
        area_share=tuple(_figure(sample, (column == j) * whole, None) for j in range(c)),
        cells=tuple(tuple(cell(i, j) for j in range(c)) for i in range(c)),
    )


def _figure(sample: _Sample, y: FloatArray, x: FloatArray | None) -> DesignFigure:
    """The total of indicator ``y`` (c, c), or its ratio to the total of ``x``, with its standard error."""
    drawn = sample.counts.sum(axis=(1, 2))
    if ((drawn == 0) & (sample.weight > 0)).any() or drawn.sum() == 0:
        return DesignFigure(None, None, "no_support")
    means = _stratum_means(sample, drawn)
    top = means(y)
    if x is None:
        return _with_error(sample, drawn, top, y, 1.0)
    bottom = means(x)
    if bottom == 0:
        return DesignFigure(None, None, "undefined_ratio")
    value = 1.0 if top == bottom else top / bottom
    return _with_error(sample, drawn, value, y - value * x, bottom)


def _stratum_means(sample: _Sample, drawn: IntArray) -> Callable[[FloatArray], float]:
    def total(indicator: FloatArray) -> float:
        sums = (sample.counts * indicator).sum(axis=(1, 2))
        return math.fsum(w * s / n for w, s, n in zip(sample.weight, sums, drawn, strict=True) if w > 0)

    return total


def _with_error(sample: _Sample, drawn: IntArray, value: float, residual: FloatArray, scale: float) -> DesignFigure:
    terms: list[float] = []
    n = int(drawn.sum())
    for h, count in enumerate(drawn):
        weight = float(sample.weight[h])
        spread = _spread(sample.counts[h], residual, sample.possible[h], int(count))
        if weight == 0 or spread == 0.0:
            continue
        if spread is None:
            return DesignFigure(value, None, "single_sample_stratum")
        if sample.random_sizes:
            terms.append(weight * spread / n + (1 - weight) * spread / n**2)
        else:
            left = 1.0 if sample.size is None else max(0.0, 1 - count / sample.size[h])
            terms.append(weight**2 * left * spread / count)
    return DesignFigure(value, math.sqrt(math.fsum(terms)) / scale)


def _spread(counts: IntArray, residual: FloatArray, possible: NDArray[np.bool_], n: int) -> float | None:
    """Sample variance of a residual in one stratum; 0.0 where it cannot vary at all, None for a single sample."""
    if np.ptp(residual[possible]) == 0:
        return 0.0
    if n < 2:
        return None
    mean = float((counts * residual).sum()) / n
    return float((counts * (residual - mean) ** 2).sum()) / (n - 1)
