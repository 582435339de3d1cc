"""Lengths within a distance, and distances of vertices, from pairs of segments.

The points within distance d of a segment form a capsule, which is convex: a straight segment meets it in one
interval. The union of these intervals over all segments of the other side is exactly the part that is within d.
"""

from __future__ import annotations

import math

import numpy as np

from geoeval.geometry._kernel import kernel
from geoeval.model import FloatArray, IntArray

# Columns of a table of segments: both ends, unit vector from the first to the second (1, 0 where they are one), length.
X0, Y0, X1, Y1, UX, UY, SIZE = range(7)

#: A distance counts as d up to a nanometre, and up to the rounding of the coordinates themselves.
_SLACK = 1e-9
_SPACING = 4.5e-16


@kernel
def radius_at(distance: float, x: float, y: float) -> float:
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
def reach(a: FloatArray, i: int, b: FloatArray, j: int, radius: float) -> tuple[float, float]:
    """The interval, along segment i of ``a`` from its start, that is within ``radius`` of segment j of ``b``.

    Everything is seen from segment j: its start is the origin and its direction the first axis. The interval is empty
    where its end is not above its start.
    """
    ux, uy, size = b[j, UX], b[j, UY], b[j, SIZE]
    vx, vy, length = a[i, UX], a[i, UY], a[i, SIZE]
    wx, wy = a[i, X0] - b[j, X0], a[i, Y0] - b[j, Y0]
    along, off = wx * ux + wy * uy, ux * wy - uy * wx
    speed, drift = vx * ux + vy * uy, ux * vy - uy * vx
    along_end, off_end = along + length * speed, off + length * drift
    if (
        min(off, off_end) > radius
        or max(off, off_end) < -radius
        or max(along, along_end) < -radius
        or min(along, along_end) > size + radius
    ):
        return 0.0, 0.0
    low, high = _in_band(along, speed, 0.0, size)
    band_low, band_high = _in_band(off, drift, -radius, radius)
    low, high = max(low, band_low), min(high, band_high)
    if low > high:
        low, high = np.inf, -np.inf
    elif low <= 0.0 and high >= length:
        return 0.0, length
    start_low, start_high = _in_disc(along, off, speed, drift, radius)
    end_low, end_high = _in_disc(along - size, off, speed, drift, radius)
    low, high = min(low, start_low, end_low), max(high, start_high, end_high)
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

    ``a`` and ``b`` are segments (n, 7), those of object k at ``a_start[k] .. a_stop[k] - 1`` and
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
            length = a[i, SIZE]
            if length == 0.0:
                continue
            radius = radius_at(distance, a[i, X0], a[i, Y0])
            n = 0
            for j in range(b_start[k], b_start[k + 1]):
                begin, end = reach(a, i, b, j, radius)
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
        length = a[i, SIZE]
        out[i] = 0.0
        if length == 0.0:
            continue
        radius = radius_at(distance, a[i, X0], a[i, Y0])
        n = 0
        for c in range(first[i], first[i + 1]):
            j = candidate[c]
            begin, end = reach(a, i, b, j, radius)
            if begin < end:
                n = _add_interval(low, high, n, begin, end)
                if low[0] <= 0.0 and high[0] >= length:
                    break
        out[i] = _union(low, high, n)


@kernel
def _square_distance(px: float, py: float, b: FloatArray, j: int) -> float:
    dx, dy = b[j, X1] - b[j, X0], b[j, Y1] - b[j, Y0]
    wx, wy = px - b[j, X0], py - b[j, Y0]
    size = dx * dx + dy * dy
    t = 0.0
    if size > 0.0:
        t = min(max((wx * dx + wy * dy) / size, 0.0), 1.0)
    if t == 1.0:
        # The end vertex itself, so that a shared vertex is at distance 0 to the last bit.
        wx, wy = px - b[j, X1], py - b[j, Y1]
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
