"""Deferral: how quality grows with what is handed to an expert, and what that costs.

Two views. :func:`deferral_curve` hands over the least confident first, at every rate that exists (equal confidences
go together). :func:`deferral_operating_points` takes measured pairs of cost and quality; arms are compared on one
common range of cost, since with its own range a two-point arm scores the mean of its qualities whatever it costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from geoeval.errors import ConfigError, InputError
from geoeval.stats.columns import finite, starts_of_ties

#: A quality this close to the peak has reached it.
PEAK_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class DeferralCurve:
    """Quality over the share that is deferred; figures are None without observations.

    ``audc`` is the area by trapezoid, ``peak`` the best quality and ``peak_at`` the least rate that reaches it, ``qnc``
    the least rate at which the quality is that of the expert alone, ``random_line_audc`` the area when the deferred
    are drawn at random.
    """

    points: tuple[tuple[float, float], ...]
    audc: float | None
    peak: float | None
    peak_at: float | None
    qnc: float | None
    random_line_audc: float | None
    reason: str | None = None


def deferral_curve(confidence: Any, quality_local: Any, quality_expert: Any) -> DeferralCurve:
    """Mean quality when the least confident are deferred, at every attainable rate. Exact fractions throughout.

    q(r) = (Σ expert over the r·N least sure + Σ local over the rest) / N, and its area by trapezoid: in the range of
    the qualities. None without observations (``no_support``). Madras, Pitassi and Zemel 2018, Predict responsibly,
    NeurIPS, for deferral; the areas are plain integrals.

    Parameters
    ----------
    confidence : (n,)
        Finite; higher is surer.
    quality_local, quality_expert : (n,)
        Quality of the own answer and of the expert's, for each observation.

    Examples
    --------
    >>> found = deferral_curve([0.9, 0.8, 0.3, 0.2], [1, 1, 0, 0], [1, 1, 1, 1])
    >>> found.audc, found.qnc, found.random_line_audc
    (0.875, 0.5, 0.75)
    """
    score = finite(confidence, "confidence")
    local, expert = finite(quality_local, "quality_local"), finite(quality_expert, "quality_expert")
    if not len(score) == len(local) == len(expert):
        raise InputError(f"columns must be of one length, got {len(score)}, {len(local)} and {len(expert)}")
    n = len(score)
    if n == 0:
        return DeferralCurve((), None, None, None, None, None, "no_support")
    order = np.argsort(score, kind="stable")
    ends = {*starts_of_ties(score[order])[1:].tolist(), n}
    quality = sum((Fraction(one) for one in local.tolist()), Fraction(0))
    points = [(Fraction(0), quality / n)]
    for deferred, at in enumerate(order.tolist(), start=1):
        quality += Fraction(float(expert[at])) - Fraction(float(local[at]))
        if deferred in ends:
            points.append((Fraction(deferred, n), quality / n))
    alone = points[-1][1]
    peak = max(q for _, q in points)
    return DeferralCurve(
        points=tuple((float(rate), float(q)) for rate, q in points),
        audc=float(_area(points)),
        peak=float(peak),
        peak_at=float(next(rate for rate, q in points if q == peak)),
        qnc=float(next(rate for rate, q in points if q >= alone)),
        random_line_audc=float((points[0][1] + alone) / 2),
    )


def _area(points: Sequence[tuple[Fraction, Fraction]]) -> Fraction:
    return sum(((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(points)), Fraction(0))


@dataclass(frozen=True, slots=True)
class OperatingCurve:
    """Quality over cost, cost scaled to [0, 1].

    ``audc`` is the area over the arm's own points, without extrapolation; ``qnc`` the least cost that reaches the
    peak; ``qnc_expert`` the least cost that reaches the expert's quality, None where none does or none was given.
    """

    points: tuple[tuple[float, float], ...]
    audc: float | None
    peak: float | None
    qnc: float | None
    qnc_expert: float | None
    reason: str | None = None


def _cost_quality(points: Iterable[Sequence[float]]) -> list[tuple[float, float]]:
    out = [(float(cost), float(quality)) for cost, quality in points]
    finite([cost for cost, _ in out], "cost")
    finite([quality for _, quality in out], "quality")
    return sorted(out)


def common_cost_range(arms: Mapping[str, Iterable[Sequence[float]]]) -> tuple[float, float]:
    """Least and greatest cost over all arms: (min, max), in units of cost; refused without any point. Own definition.

    Examples
    --------
    >>> common_cost_range({"a": [(1, 0.5), (5, 0.8)], "b": [(2, 0.6)]})
    (1.0, 5.0)
    """
    costs = [cost for points in arms.values() for cost, _ in _cost_quality(points)]
    if not costs:
        raise InputError("a range of costs needs at least one operating point, got none")
    return min(costs), max(costs)


def deferral_operating_points(
    points: Iterable[Sequence[float]], *, cost_range: tuple[float, float], expert_quality: float | None = None
) -> OperatingCurve:
    """Area, peak and least cost of one arm, cost scaled by a range that all compared arms share.

    Scaled cost (cost − low) / (high − low) in [0, 1]; area Σ Δcost · mean quality of both ends, in the range of the
    qualities. All None without points (``no_support``); no area where all cost the same (``undefined_ratio``). The
    trapezoidal rule; own definition of the common range.

    Parameters
    ----------
    points
        Pairs of cost and quality, in any order.
    cost_range
        What becomes 0 and 1; see :func:`common_cost_range`.
    expert_quality
        Quality of the expert alone.

    Examples
    --------
    >>> found = deferral_operating_points([(1, 0.5), (5, 1.0)], cost_range=(1, 9), expert_quality=0.9)
    >>> found.audc, found.qnc, found.qnc_expert
    (0.375, 0.5, 0.5)
    """
    low, high = cost_range
    if not low <= high:
        raise ConfigError(f"cost_range must rise, got {low!r} to {high!r}")
    pairs = _cost_quality(points)
    if not pairs:
        return OperatingCurve((), None, None, None, None, "no_support")
    if pairs[0][0] < low or pairs[-1][0] > high:
        raise InputError(f"costs must lie in [{low!r}, {high!r}], got {pairs[0][0]!r} to {pairs[-1][0]!r}")
    width = high - low
    scaled = [((cost - low) / width if width else 0.0, quality) for cost, quality in pairs]
    peak = max(quality for _, quality in scaled)
    spread = scaled[-1][0] > scaled[0][0]
    return OperatingCurve(
        points=tuple(scaled),
        audc=float(_area([(Fraction(cost), Fraction(quality)) for cost, quality in scaled])) if spread else None,
        peak=peak,
        qnc=_reached(scaled, peak),
        qnc_expert=None if expert_quality is None else _reached(scaled, expert_quality),
        reason=None if spread else "undefined_ratio",
    )


def _reached(scaled: Sequence[tuple[float, float]], quality: float) -> float | None:
    return next((cost for cost, q in scaled if q >= quality - PEAK_SLACK), None)


def deferral_single_arm(points: Iterable[Sequence[float]]) -> OperatingCurve:
    """The published form: cost scaled by the arm's own range. Not comparable between arms.

    Formula, range and undefined cases as in :func:`deferral_operating_points`, with the arm's own least and greatest
    cost as 0 and 1.

    Examples
    --------
    >>> deferral_single_arm([(10, 0.6), (30, 0.9)]).audc
    0.75
    """
    pairs = _cost_quality(points)
    if not pairs:
        return OperatingCurve((), None, None, None, None, "no_support")
    return deferral_operating_points(pairs, cost_range=(pairs[0][0], pairs[-1][0]))
