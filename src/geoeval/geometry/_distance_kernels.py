"""Lengths within a distance, and distances of vertices, from pairs of segments.

The points within distance d of a segment form a capsule, which is convex: a straight segment meets it in one
interval. The union of these intervals over all segments of the other side is exactly the part that is within d.
"""

from __future__ import annotations

import math

import numpy as np

from geoeval.geometry._kernel import kernel
from geoeval.model import FloatArray, IntArray

#: A distance counts as d up to a nanometre, and up to the rounding of the coordinates themselves.
_SLACK = 1e-9
_SPACING = 4.5e-16


@kernel
def _radius(distance: float, x: float, y: float) -> float:
    return distance + _SLACK + _SPACING * (abs(x) + abs(y))


@kernel
def _in_disc(wx: float, wy: float, vx: float, vy: float, radius: float) -> tuple[float, float]:
    """Where w + t v is within ``radius`` of the origin (v is a unit vector); inf, -inf where nowhere."""
    across = wx * vy - wy * vx
    rest = radius * radius - across * across
    if rest < 0.0:
        return np.inf, -np.inf
    half = math.sqrt(rest)
    along = -(wx * vx + wy * vy)
    return along - half, along + half


@kernel
def _in_band(p: float, v: float, low: float, high: float) -> tuple[float, float]:
    """Where low <= p + t v <= high."""
    if v == 0.0:
        if low <= p <= high:
            return -np.inf, np.inf
        return np.inf, -np.inf
    if v > 0.0:
        return (low - p) / v, (high - p) / v
    return (high - p) / v, (low - p) / v


@kernel
def _reach(
    wx: float, wy: float, vx: float, vy: float, length: float, dx: float, dy: float, radius: float
) -> tuple[float, float]:
    """The interval of t in [0, length] in which w + t v is within ``radius`` of the segment from the origin to d."""
    low, high = _in_disc(wx, wy, vx, vy, radius)
    more_low, more_high = _in_disc(wx - dx, wy - dy, vx, vy, radius)
    low, high = min(low, more_low), max(high, more_high)
    size = math.hypot(dx, dy)
    if size > 0.0:
        ux, uy = dx / size, dy / size
        x_low, x_high = _in_band(wx * ux + wy * uy, vx * ux + vy * uy, 0.0, size)
        y_low, y_high = _in_band(ux * wy - uy * wx, ux * vy - uy * vx, -radius, radius)
        x_low, x_high = max(x_low, y_low), min(x_high, y_high)
        if x_low <= x_high:
            low, high = min(low, x_low), max(high, x_high)
    return max(low, 0.0), min(high, length)


@kernel
def _add_interval(low: FloatArray, high: FloatArray, n: int, start: float, stop: float) -> int:
    """Insert an interval into n disjoint sorted ones, joining those that it touches; how many there are then."""
    first = 0
    while first < n and high[first] < start:
        first += 1
    last = first
    while last < n and low[last] <= stop:
        start = min(start, low[last])
        stop = max(stop, high[last])
        last += 1
    if last == first:
        for k in range(n, first, -1):
            low[k] = low[k - 1]
            high[k] = high[k - 1]
        n += 1
    elif last > first + 1:
        gone = last - first - 1
        for k in range(first + 1, n - gone):
            low[k] = low[k + gone]
            high[k] = high[k + gone]
        n -= gone
    low[first] = start
    high[first] = stop
    return n


@kernel
def _union(low: FloatArray, high: FloatArray, n: int) -> float:
    total = 0.0
    for k in range(n):
        total += high[k] - low[k]
    return total


@kernel
def _apart(a: FloatArray, i: int, b: FloatArray, j: int, radius: float) -> bool:
    """Whether the boxes of two segments are further apart than ``radius``."""
    return bool(
        min(a[i, 0], a[i, 2]) - max(b[j, 0], b[j, 2]) > radius
        or min(b[j, 0], b[j, 2]) - max(a[i, 0], a[i, 2]) > radius
        or min(a[i, 1], a[i, 3]) - max(b[j, 1], b[j, 3]) > radius
        or min(b[j, 1], b[j, 3]) - max(a[i, 1], a[i, 3]) > radius
    )


@kernel
def lengths_within_pairs(
    a: FloatArray,
    a_start: IntArray,
    a_stop: IntArray,
    b: FloatArray,
    b_start: IntArray,
    distance: float,
    out: FloatArray,
    start: int,
    stop: int,
) -> None:
    """Length of object k of ``a`` within ``distance`` of object k of ``b``, for k = start .. stop - 1, into ``out``.

    ``a`` and ``b`` are segments (n, 4), those of object k at ``a_start[k] .. a_stop[k] - 1`` and
    ``b_start[k] .. b_start[k + 1] - 1``.
    """
    most = 1
    for k in range(start, stop):
        most = max(most, b_start[k + 1] - b_start[k])
    low = np.empty(most)
    high = np.empty(most)
    for k in range(start, stop):
        total = 0.0
        for i in range(a_start[k], a_stop[k]):
            x, y = a[i, 0], a[i, 1]
            length = math.hypot(a[i, 2] - x, a[i, 3] - y)
            if length == 0.0:
                continue
            vx, vy = (a[i, 2] - x) / length, (a[i, 3] - y) / length
            radius = _radius(distance, x, y)
            n = 0
            for j in range(b_start[k], b_start[k + 1]):
                if _apart(a, i, b, j, radius):
                    continue
                begin, end = _reach(
                    x - b[j, 0], y - b[j, 1], vx, vy, length, b[j, 2] - b[j, 0], b[j, 3] - b[j, 1], radius
                )
                if begin < end:
                    n = _add_interval(low, high, n, begin, end)
                    if low[0] <= 0.0 and high[0] >= length:
                        break
            total += _union(low, high, n)
        out[k] = total


@kernel
def lengths_within_candidates(
    a: FloatArray,
    b: FloatArray,
    first: IntArray,
    candidate: IntArray,
    distance: float,
    out: FloatArray,
    start: int,
    stop: int,
) -> None:
    """Length of segment i of ``a`` within ``distance`` of its candidates among the segments ``b``, into ``out``.

    Candidates of segment i are ``candidate[first[i]:first[i + 1]]``.
    """
    most = 1
    for i in range(start, stop):
        most = max(most, first[i + 1] - first[i])
    low = np.empty(most)
    high = np.empty(most)
    for i in range(start, stop):
        x, y = a[i, 0], a[i, 1]
        length = math.hypot(a[i, 2] - x, a[i, 3] - y)
        out[i] = 0.0
        if length == 0.0:
            continue
        vx, vy = (a[i, 2] - x) / length, (a[i, 3] - y) / length
        radius = _radius(distance, x, y)
        n = 0
        for c in range(first[i], first[i + 1]):
            j = candidate[c]
            begin, end = _reach(x - b[j, 0], y - b[j, 1], vx, vy, length, b[j, 2] - b[j, 0], b[j, 3] - b[j, 1], radius)
            if begin < end:
                n = _add_interval(low, high, n, begin, end)
                if low[0] <= 0.0 and high[0] >= length:
                    break
        out[i] = _union(low, high, n)


@kernel
def _square_distance(px: float, py: float, b: FloatArray, j: int) -> float:
    dx, dy = b[j, 2] - b[j, 0], b[j, 3] - b[j, 1]
    wx, wy = px - b[j, 0], py - b[j, 1]
    size = dx * dx + dy * dy
    t = 0.0
    if size > 0.0:
        t = min(max((wx * dx + wy * dy) / size, 0.0), 1.0)
    if t == 1.0:
        # The end vertex itself, so that a shared vertex is at distance 0 to the last bit.
        wx, wy = px - b[j, 2], py - b[j, 3]
    else:
        wx, wy = wx - t * dx, wy - t * dy
    return float(wx * wx + wy * wy)


@kernel
def vertex_distances_pairs(
    a: FloatArray,
    a_start: IntArray,
    a_stop: IntArray,
    b: FloatArray,
    b_start: IntArray,
    total: FloatArray,
    largest: FloatArray,
    start: int,
    stop: int,
) -> None:
    """Distances from the vertices (n, 2) of object k of ``a`` to the segments of object k of ``b``: sum and largest."""
    for k in range(start, stop):
        whole = 0.0
        top = 0.0
        for i in range(a_start[k], a_stop[k]):
            least = np.inf
            for j in range(b_start[k], b_start[k + 1]):
                least = min(least, _square_distance(a[i, 0], a[i, 1], b, j))
            distance = math.sqrt(least)
            whole += distance
            top = max(top, distance)
        total[k] = whole
        largest[k] = top
