"""Pairs of geometries of any type within a distance."""

from __future__ import annotations

import math

import numpy as np
import shapely

from geoeval.model import FloatArray, IntArray, ObjectArray

#: Decimals of a distance: last-bit noise must not decide a match.
_DECIMALS = 9


def pairs_within(
    reference: ObjectArray, prediction: ObjectArray, max_distance: float
) -> tuple[IntArray, IntArray, FloatArray]:
    """All pairs at most ``max_distance`` apart, sorted by (reference, prediction), and how far apart they are.

    The distance is the shortest one between the two geometries, 0 where they touch. A pair at the limit is within it; a
    distance that exceeds the limit by no more than the rounding of the coordinates is returned as the limit.

    Parameters
    ----------
    reference, prediction
        Geometries of any type in one metric system; empty ones and None are near nothing.
    max_distance
        In the unit of the coordinates, 0 or more.

    Returns
    -------
    tuple[IntArray, IntArray, FloatArray]
        Positions in both layers, and the distance, rounded to 9 decimals.

    Examples
    --------
    >>> wells = shapely.points([(0, 0), (10, 0)])
    >>> finds = shapely.points([(3, 4), (10, 5.1)])
    >>> pairs_within(wells, finds, 5.0)
    (array([0]), array([0]), array([5.]))
    """
    if not (math.isfinite(max_distance) and max_distance >= 0.0):
        raise ValueError(f"max_distance must be a finite number of at least 0, got {max_distance!r}")
    left = np.asarray(reference, dtype=np.object_).reshape(-1)
    right = np.asarray(prediction, dtype=np.object_).reshape(-1)
    if len(left) == 0 or len(right) == 0:
        none = np.zeros(0, dtype=np.int64)
        return none, none, np.zeros(0)
    slack = _spacing(left)
    i, j = shapely.STRtree(right).query(left, predicate="dwithin", distance=max_distance + slack)
    key = np.sort(i.astype(np.int64) * len(right) + j)
    i, j = key // len(right), key % len(right)
    distance = np.round(shapely.distance(left[i], right[j]), _DECIMALS)
    keep = distance <= max_distance + slack[i]
    return i[keep], j[keep], np.minimum(distance[keep], max_distance)


def _spacing(geometry: ObjectArray) -> FloatArray:
    """What a distance from each geometry can be off by: half a nanometre, or the spacing of its coordinates."""
    bounds = np.nan_to_num(shapely.bounds(geometry).reshape(-1, 4))
    spacing: FloatArray = 0.5 * 10.0**-_DECIMALS + 2.0 * np.spacing(np.max(np.abs(bounds), axis=1))
    return spacing
