"""How far a value resembles its surroundings: an empirical variogram, a simple model, and the range that it gives.

Semivariance   half the mean squared difference of pairs at about one distance; low where neighbours are alike.
Sill           where the semivariance levels off; the range is the distance at which the model has reached 95 % of it.
Pairs          all of them where they are few; else those of a subset, which is drawn by place and never by value.
Lags           halve again and again from half across the data down to the nearest neighbours, so that a short range is
               seen as well as a long one.
Not found      is said with its reason: too few points, no variation, no rise, or a rise that does not end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from geoeval.model import FloatArray, IntArray

Model = Literal["exponential", "spherical"]

#: Why there is no range, in words.
REASONS: dict[str, str] = {
    "too_few_points": "fewer than 30 points have a value and a place of their own",
    "no_variation": "the value is the same everywhere",
    "no_rise": "near pairs differ as much as distant ones: no autocorrelation at the distances that the points offer",
    "no_sill": "the semivariance still rises at half the width of the data: a trend, or a range beyond it",
    "no_fit": "neither an exponential nor a spherical model fits",
}

_LEAST_POINTS = 30
_LEAST_PAIRS = 30
_SHARE_OF_SILL = 0.95
_PILOT = 2000
_LEAST_LAGS = 5
_HALVINGS = 24
#: How many standard errors the nearest pairs must lie below the sill.
_CLEARLY = 3.0
#: An exponential of range a is 1 - exp(-3h/a): 95 % of its rise at h = a.
_EXPONENT = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class Variogram:
    """An empirical variogram and what was fitted to it.

    Parameters
    ----------
    lag, semivariance, pairs
        (lags,) mean distance in metres, semivariance in squared units of the value, and how many pairs they are of.
    points
        How many points have a place and a value.
    model
        Which model fits better; None where none was fitted.
    nugget, sill
        Semivariance at distance 0 and where it levels off.
    range_m
        Distance at which the model reaches 95 % of the sill; None with a ``reason`` of :data:`REASONS`.
    """

    lag: FloatArray
    semivariance: FloatArray
    pairs: IntArray
    points: int
    model: Model | None = None
    nugget: float | None = None
    sill: float | None = None
    range_m: float | None = None
    reason: str | None = None


def variogram(at: FloatArray, value: FloatArray, *, pairs: int = 100_000, lags: int = 4) -> Variogram:
    """The empirical variogram of a value at some places, and its range.

    Parameters
    ----------
    at
        (points, 2 or 3) coordinates in metres; geocentric ones do for the whole Earth.
    value
        (points,) NaN where there is none.
    pairs
        About how many pairs to look at within each reach.
    lags
        How many distances to tell apart between a reach and its half.

    Returns
    -------
    Variogram
        The same whatever the order of the points.

    Examples
    --------
    >>> x = np.arange(2000.0)
    >>> noise = np.random.default_rng(0).normal(size=2019)
    >>> found = variogram(np.stack([x, 0 * x], axis=1), np.convolve(noise, np.ones(20), "valid"))
    >>> found.model, round(found.range_m)
    ('spherical', 26)
    >>> variogram(np.zeros((2, 2)), np.zeros(2)).reason
    'too_few_points'
    """
    from scipy.spatial import KDTree

    held = np.isfinite(value) & np.isfinite(at).all(axis=1)
    place, known = at[held], value[held]
    order = np.lexsort((known, *place.T[::-1]))
    place, known = place[order], known[order]
    none = np.zeros(0)
    empty = Variogram(none, none, np.zeros(0, dtype=np.int64), len(known))
    if len(np.unique(place, axis=0)) < _LEAST_POINTS:
        return replace(empty, reason="too_few_points")
    if np.ptp(known) == 0:
        return replace(empty, reason="no_variation")
    # Drawn once, by position in the sorted places: a longer subset holds the shorter ones.
    drawn = np.random.Generator(np.random.PCG64(0)).permutation(len(place))
    pilot = KDTree(place[drawn[:_PILOT]])
    reach = float(np.linalg.norm(np.ptp(place, axis=0))) / 2
    bins: list[tuple[FloatArray, FloatArray, IntArray]] = []
    for _ in range(_HALVINGS):
        subset = np.sort(drawn[: _subset_size(pilot, len(place), reach, pairs)])
        found, count = _binned(place[subset], known[subset], reach, lags)
        if count < _LEAST_PAIRS:
            break
        bins.insert(0, found)
        reach /= 2
    if not bins:
        return replace(empty, reason="too_few_points")
    lag, half, times = (np.concatenate([one[part] for one in bins]) for part in range(3))
    return _fitted(Variogram(lag, half, times.astype(np.int64), len(known)))


def _subset_size(pilot: Any, n: int, reach: float, pairs: int) -> int:
    """How many points have about so many pairs within reach."""
    size = int(pilot.n)
    within = (int(pilot.count_neighbors(pilot, reach)) - size) / 2
    expected = max(within, 0.5) * (n / size) ** 2
    return min(n, max(_LEAST_POINTS, int(n * math.sqrt(min(1.0, pairs / expected)))))


def _binned(
    place: FloatArray, value: FloatArray, reach: float, lags: int
) -> tuple[tuple[FloatArray, FloatArray, IntArray], int]:
    """Mean distance, semivariance and pairs by lag between half the reach and the reach, and all pairs within it."""
    from scipy.spatial import KDTree

    pair = KDTree(place).query_pairs(reach, output_type="ndarray")
    distance = np.linalg.norm(place[pair[:, 0]] - place[pair[:, 1]], axis=1)
    half = (value[pair[:, 0]] - value[pair[:, 1]]) ** 2 / 2
    # Sorted, so that sums do not depend on how a tree happens to list its pairs.
    order = np.lexsort((half, distance))
    order = order[np.searchsorted(distance[order], reach / 2, side="right") :]
    distance, half = distance[order], half[order]
    lag = np.minimum(((distance / reach - 0.5) * 2 * lags).astype(np.int64), lags - 1)
    count = np.bincount(lag, minlength=lags)
    enough = count >= _LEAST_PAIRS
    much = np.maximum(count, 1)
    found = (
        (np.bincount(lag, distance, minlength=lags) / much)[enough],
        (np.bincount(lag, half, minlength=lags) / much)[enough],
        count[enough].astype(np.int64),
    )
    return found, len(pair)


def exponential(h: FloatArray, nugget: float, rise: float, length: float) -> FloatArray:
    """A model that comes close to its sill and never reaches it; ``length`` is where 95 % of the rise is done.

    Examples
    --------
    >>> exponential(np.array([0.0, 1e9]), 1.0, 2.0, 100.0).tolist()
    [1.0, 3.0]
    """
    return np.asarray(nugget + rise * (1 - np.exp(-_EXPONENT * h / length)))


def spherical(h: FloatArray, nugget: float, rise: float, length: float) -> FloatArray:
    """A model that reaches its sill at ``length``.

    Examples
    --------
    >>> spherical(np.array([0.0, 100.0, 200.0]), 1.0, 2.0, 100.0).tolist()
    [1.0, 3.0, 3.0]
    """
    part = np.minimum(h / length, 1.0)
    return np.asarray(nugget + rise * (1.5 * part - 0.5 * part**3))


_MODELS: dict[Model, Callable[..., FloatArray]] = {"exponential": exponential, "spherical": spherical}


def _fitted(found: Variogram) -> Variogram:
    """The variogram with the better of two models, and the range or the reason why there is none."""
    if len(found.lag) < _LEAST_LAGS or found.semivariance.max() <= 0:
        return replace(found, reason="no_fit")
    # Pairs that share points tell less than as many apart do.
    free = np.minimum(found.pairs, found.points)
    fits = [(*fit, name) for name in _MODELS for fit in _fits(name, found, free)]
    if not fits:
        return replace(found, reason="no_fit")
    _, (nugget, rise, length), name = min(fits)
    sill = nugget + rise
    known = replace(found, model=name, nugget=nugget, sill=sill)
    if nugget >= _SHARE_OF_SILL * sill:
        return replace(known, reason="no_rise")
    far = _reached(name, nugget, rise, length)
    near = found.lag <= max(far / 2, float(found.lag[0]))
    low = float(np.average(found.semivariance[near], weights=found.pairs[near]))
    top = min(sill, float(found.semivariance.max()))
    if 1 - low / top < _CLEARLY * math.sqrt(2 / min(int(free[near].sum()), found.points)):
        return replace(known, reason="no_rise")
    if far > found.lag[-1]:
        return replace(known, reason="no_sill")
    return replace(known, range_m=far)


def _fits(name: Model, found: Variogram, free: IntArray) -> Iterator[tuple[float, tuple[float, float, float]]]:
    """Weighted squared misses, and nugget, rise and length, from several first lengths."""
    import warnings

    from scipy.optimize import OptimizeWarning, curve_fit

    scale, reach = float(found.semivariance.max()), float(found.lag[-1])
    weight = 1 / np.sqrt(free)
    seen, h = found.semivariance / scale, found.lag / reach
    for first in np.quantile(h, [0.2, 0.5, 0.8]):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", OptimizeWarning)
                given, _ = curve_fit(
                    _MODELS[name],
                    h,
                    seen,
                    p0=(0.1, 0.8, first),
                    sigma=weight,
                    bounds=([0, 0, float(h[0]) / 2], [2, 3, 20]),
                    max_nfev=2000,
                )
        except (RuntimeError, ValueError):
            continue
        miss = float(np.sum(((_MODELS[name](h, *given) - seen) / weight) ** 2))
        nugget, rise, length = (float(one) for one in given)
        yield miss, (nugget * scale, rise * scale, length * reach)


def _reached(name: Model, nugget: float, rise: float, length: float) -> float:
    """Distance at which a model has reached 95 % of its sill."""
    # The share of the rise that is still missing there.
    rest = (1 - _SHARE_OF_SILL) * (nugget + rise) / rise
    if name == "exponential":
        return max(0.0, -length / _EXPONENT * math.log(rest))
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if 1.5 * middle - 0.5 * middle**3 < 1 - rest else (low, middle)
    return high * length
