"""How far a value resembles its surroundings: an empirical variogram, a simple model, and the range that it gives.

Semivariance   half the mean squared difference of pairs at about one distance; low where neighbours are alike.
Sill           where the semivariance levels off; the range is the distance at which the model has reached 95 % of it.
Pairs          all of them where they are few; else those of a subset, which is drawn by place and never by value.
Scale          the first try reaches half across the data; it shrinks until the rise is seen in more than a lag or two.
Not found      is said with its reason: too few points, no variation, no rise, or a rise that does not end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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
_ZOOMS = 16
_SEEN_LAGS = 3
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


def variogram(at: FloatArray, value: FloatArray, *, pairs: int = 500_000, lags: int = 15) -> Variogram:
    """The empirical variogram of a value at some places, and its range.

    Parameters
    ----------
    at
        (points, 2 or 3) coordinates in metres; geocentric ones do for the whole Earth.
    value
        (points,) NaN where there is none.
    pairs
        About how many pairs to look at.
    lags
        How many distances to tell apart.

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
    ('spherical', 23)
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
    seen: Variogram | None = None
    for _ in range(_ZOOMS):
        subset = np.sort(drawn[: _subset_size(pilot, len(place), reach, pairs)])
        found = _fitted(_binned(place[subset], known[subset], reach, lags, len(known)), reach)
        if seen is not None and (len(found.lag) < lags // 2 or (found.range_m is None and seen.range_m is not None)):
            return seen
        if seen is not None and found.reason == "no_sill":
            # It rises up to here, and at the first lag of the wider view it had risen already.
            return replace(seen, range_m=float(seen.lag[0]), reason=None)
        seen = found
        if found.reason == "no_sill" or (found.range_m or 0.0) >= _SEEN_LAGS * reach / lags:
            break
        reach /= 2
    return empty if seen is None else seen


def _subset_size(pilot: Any, n: int, reach: float, pairs: int) -> int:
    """How many points have about so many pairs within reach."""
    size = int(pilot.n)
    within = (int(pilot.count_neighbors(pilot, reach)) - size) / 2
    expected = max(within, 0.5) * (n / size) ** 2
    return min(n, max(_LEAST_POINTS, int(n * math.sqrt(min(1.0, pairs / expected)))))


def _binned(place: FloatArray, value: FloatArray, reach: float, lags: int, points: int) -> Variogram:
    """Mean distance and semivariance of pairs by lag; lags with fewer than 30 pairs are left out."""
    from scipy.spatial import KDTree

    pair = KDTree(place).query_pairs(reach, output_type="ndarray")
    distance = np.linalg.norm(place[pair[:, 0]] - place[pair[:, 1]], axis=1)
    half = (value[pair[:, 0]] - value[pair[:, 1]]) ** 2 / 2
    # Sorted, so that sums do not depend on how a tree happens to list its pairs.
    order = np.lexsort((half, distance))
    distance, half = distance[order], half[order]
    lag = np.minimum((distance / reach * lags).astype(np.int64), lags - 1)
    count = np.bincount(lag, minlength=lags)
    enough = count >= _LEAST_PAIRS
    much = np.maximum(count, 1)
    return Variogram(
        (np.bincount(lag, distance, minlength=lags) / much)[enough],
        (np.bincount(lag, half, minlength=lags) / much)[enough],
        count[enough].astype(np.int64),
        points,
    )


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


def _fitted(found: Variogram, reach: float) -> Variogram:
    """The variogram with the better of two models, and the range or the reason why there is none."""
    if len(found.lag) < 4:
        return replace(found, reason="no_fit")
    fits = [(miss, name, given) for name in _MODELS if (fit := _fit(name, found, reach)) for miss, given in [fit]]
    if not fits:
        return replace(found, reason="no_fit")
    _, name, (nugget, rise, length) = min(fits)
    sill = nugget + rise
    known = replace(found, model=name, nugget=nugget, sill=sill)
    # Pairs that share points tell less than as many apart do.
    free = min(int(found.pairs[0]), found.points)
    below = 1 - float(found.semivariance[0]) / min(sill, float(found.semivariance.max()))
    if nugget >= _SHARE_OF_SILL * sill or below < _CLEARLY * math.sqrt(2 / free):
        return replace(known, reason="no_rise")
    far = _reached(name, nugget, rise, length)
    if far > found.lag[-1]:
        return replace(known, reason="no_sill")
    return replace(known, range_m=far)


def _fit(name: Model, found: Variogram, reach: float) -> tuple[float, tuple[float, float, float]] | None:
    """Weighted squared misses, and nugget, rise and length; None where the search does not end."""
    import warnings

    from scipy.optimize import OptimizeWarning, curve_fit

    scale = float(found.semivariance.max())
    if scale <= 0:
        return None
    weight = 1 / np.sqrt(found.pairs)
    seen, h = found.semivariance / scale, found.lag / reach
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OptimizeWarning)
            given, _ = curve_fit(
                _MODELS[name],
                h,
                seen,
                p0=(0.1, 0.8, 0.3),
                sigma=weight,
                bounds=([0, 0, 1e-3], [2, 3, 20]),
                max_nfev=2000,
            )
    except (RuntimeError, ValueError):
        return None
    miss = float(np.sum(((_MODELS[name](h, *given) - seen) / weight) ** 2))
    nugget, rise, length = (float(one) for one in given)
    return miss, (nugget * scale, rise * scale, length * reach)


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
