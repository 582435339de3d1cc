"""Pairs of boxes within a limit, by a tree of bounding volumes. Imported lazily, because it compiles.

A straight line through the Earth is never longer than the geodesic, so volumes that are further apart than the limit
hold no pair. Pairs are decided where they are met. Those too near to the limit for a chord to decide are handed back.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from geoeval.geometry._kernel import kernel
from geoeval.model import FloatArray, IntArray
from geoeval.splits._box_kernels import LEAST_RADIUS, MOST_RADIUS, TOUCHING, closest
from geoeval.splits._union_kernels import find, join, offer

Shapes = tuple[FloatArray, FloatArray, IntArray, IntArray, FloatArray]
CurveArrays = tuple[FloatArray, FloatArray]
Tree = tuple[IntArray, FloatArray, IntArray, FloatArray]

_A = 6_378_137.0
_E2 = 0.0066943799901413165
_FAN = 4
_APART, _TOO_CLOSE, _UNDECIDED = 0, 1, 2


@kernel
def _across_axis(lat: float) -> tuple[float, float]:
    """Distance from the axis and height above the equator, of a latitude in degrees."""
    sine, cosine = math.sin(math.radians(lat)), math.cos(math.radians(lat))
    radius = _A / math.sqrt(1 - _E2 * sine * sine)
    return radius * max(cosine, 0.0), radius * (1 - _E2) * sine


@kernel
def _passes(west: float, width: float, lon: float) -> bool:
    return lon - west - 360.0 * math.floor((lon - west) / 360.0) <= width


@kernel
def volumes(frame: FloatArray) -> FloatArray:
    """Least x, y, z and most x, y, z of what lies between parallels and meridians, with a millimetre to spare."""
    out = np.empty((len(frame), 6))
    for box in range(len(frame)):
        west, width, south, north = frame[box]
        r0, z0 = _across_axis(south)
        r1, z1 = _across_axis(north)
        most, least = max(r0, r1), min(r0, r1)
        if south <= 0.0 <= north:
            most = _A
        a, b = math.radians(west), math.radians(west + width)
        c0, c1 = min(math.cos(a), math.cos(b)), max(math.cos(a), math.cos(b))
        s0, s1 = min(math.sin(a), math.sin(b)), max(math.sin(a), math.sin(b))
        c1 = 1.0 if _passes(west, width, 0.0) else c1
        c0 = -1.0 if _passes(west, width, 180.0) else c0
        s1 = 1.0 if _passes(west, width, 90.0) else s1
        s0 = -1.0 if _passes(west, width, -90.0) else s0
        out[box, 0], out[box, 3] = min(c0 * most, c0 * least) - 1e-3, max(c1 * most, c1 * least) + 1e-3
        out[box, 1], out[box, 4] = min(s0 * most, s0 * least) - 1e-3, max(s1 * most, s1 * least) + 1e-3
        out[box, 2], out[box, 5] = z0 - 1e-3, z1 + 1e-3
    return out


@kernel
def codes_along_curve(volume: FloatArray) -> IntArray:
    """Position of each volume's middle along a Morton curve."""
    out = np.empty(len(volume), dtype=np.int64)
    for box in range(len(volume)):
        code = 0
        for axis in range(3):
            middle = (volume[box, axis] + volume[box, axis + 3]) / 2
            cell = int((middle + 6_400_000.0) / 12_800_000.0 * 2_097_151)
            for bit in range(21):
                code |= ((cell >> bit) & 1) << (3 * bit + axis)
        out[box] = code
    return out


@kernel
def tree_over(volume: FloatArray) -> tuple[IntArray, FloatArray]:
    """Volumes around each four, around each four of these, and so on: first node of each level, and all nodes."""
    sizes = [(len(volume) + _FAN - 1) // _FAN]
    while sizes[-1] > 1:
        sizes.append((sizes[-1] + _FAN - 1) // _FAN)
    start = np.zeros(len(sizes) + 1, dtype=np.int64)
    for level in range(len(sizes)):
        start[level + 1] = start[level] + sizes[level]
    node = np.empty((start[-1], 6))
    for level in range(len(sizes)):
        below = volume if level == 0 else node[start[level - 1] : start[level]]
        for k in range(sizes[level]):
            to = start[level] + k
            node[to] = below[_FAN * k]
            for child in range(_FAN * k + 1, min(_FAN * k + _FAN, len(below))):
                for axis in range(3):
                    node[to, axis] = min(node[to, axis], below[child, axis])
                    node[to, axis + 3] = max(node[to, axis + 3], below[child, axis + 3])
    return start, node


@kernel
def _gap2(a: FloatArray, i: int, b: FloatArray, j: int) -> float:
    """Square of the distance between two volumes."""
    total = 0.0
    for axis in range(3):
        gap = max(a[i, axis] - b[j, axis + 3], b[j, axis] - a[i, axis + 3], 0.0)
        total += gap * gap
    return total


@kernel
def candidates(tree: Tree, me: int, after: int, limit: float, stack: IntArray, found: IntArray) -> tuple[int, IntArray]:
    """Positions beyond ``after`` whose volumes are within the limit of that of ``me``."""
    order, volume, start, node = tree
    levels, n = len(start) - 1, 0
    stack[0, 0], stack[0, 1] = levels - 1, 0
    top = 1
    span = 1
    while top:
        top -= 1
        level, k = stack[top, 0], stack[top, 1]
        span = _FAN ** (level + 1)
        if (k + 1) * span - 1 <= after or _gap2(volume, me, node, start[level] + k) > limit * limit:
            continue
        if level:
            below = start[level] - start[level - 1]
            for child in range(_FAN * k, min(_FAN * k + _FAN, below)):
                stack[top, 0], stack[top, 1] = level - 1, child
                top += 1
            continue
        for other in range(max(_FAN * k, after + 1), min(_FAN * k + _FAN, len(order))):
            if _gap2(volume, me, volume, other) <= limit * limit:
                if n == len(found):
                    longer = np.empty(2 * n, dtype=np.int64)
                    longer[:n] = found
                    found = longer
                found[n] = other
                n += 1
    return n, found


@kernel
def _bounded(chord: float) -> tuple[float, float]:
    """Between which lengths the geodesic over a chord lies."""
    if chord == 0.0:
        return 0.0, 0.0
    if math.isinf(chord):
        return np.inf, np.inf
    low, high = max(chord - 2 * TOUCHING, 0.0), chord + 2 * TOUCHING
    if high > 1.9 * LEAST_RADIUS:
        return low, np.inf
    return (
        max(2 * MOST_RADIUS * math.asin(low / (2 * MOST_RADIUS)) - 1e-9 * low, 0.0),
        2 * LEAST_RADIUS * math.asin(high / (2 * LEAST_RADIUS)) + 1e-9 * high,
    )


@kernel
def _meridian(lat: float) -> float:
    """Length of the meridian from the equator, to a hundredth of a millimetre."""
    n = 0.0016792203863837047
    n2 = n * n
    phi = math.radians(lat)
    series = (
        (1 + n2 / 4 + n2 * n2 / 64) * phi
        - 1.5 * (n - n2 * n / 8) * math.sin(2 * phi)
        + 15 / 16 * (n2 - n2 * n2 / 4) * math.sin(4 * phi)
        - 35 / 48 * n2 * n * math.sin(6 * phi)
        + 315 / 512 * n2 * n2 * math.sin(8 * phi)
    )
    return _A / (1 + n) * series


@kernel
def decide(
    shapes: Shapes, curves: CurveArrays, i: int, j: int, limit: float, enough: float, stack: FloatArray
) -> tuple[int, float]:
    """Whether two boxes are too close, and the least that their distance can be."""
    frame = shapes[0]
    gap = max(frame[i, 2] - frame[j, 3], frame[j, 2] - frame[i, 3], 0.0)
    if math.radians(gap) * LEAST_RADIUS > limit + 1.0:
        return _APART, np.inf
    gap, chord, _, _, _, _ = closest(shapes, curves, i, j, limit + 1e-2, enough, stack)
    if math.isnan(chord):
        if frame[i, 2] > frame[j, 3]:
            length = _meridian(frame[i, 2]) - _meridian(frame[j, 3])
        else:
            length = _meridian(frame[j, 2]) - _meridian(frame[i, 3])
        low, high = max(length - TOUCHING, 0.0), length + TOUCHING
    else:
        low, high = _bounded(chord)
    if high <= limit:
        return _TOO_CLOSE, low
    if low > limit:
        return _APART, low
    return _UNDECIDED, low


@kernel
def unite(shapes: Shapes, curves: CurveArrays, tree: Tree, limit: float, parent: IntArray) -> tuple[IntArray, IntArray]:
    """Join boxes that are too close; pairs that a chord cannot decide are handed back."""
    order = tree[0]
    stack, nodes, found = np.empty((256, 4)), np.empty((256, 2), dtype=np.int64), np.empty(1024, dtype=np.int64)
    left = [(0, 0) for _ in range(0)]
    # A chord so much below the limit needs no closer look.
    enough = 0.99 * limit - 1e-2
    for me in range(len(order)):
        n, found = candidates(tree, me, me, limit, nodes, found)
        for k in range(n):
            i, j = order[me], order[found[k]]
            if find(parent, i) == find(parent, j):
                continue
            verdict, _ = decide(shapes, curves, i, j, limit, enough, stack)
            if verdict == _TOO_CLOSE:
                join(parent, i, j)
            elif verdict == _UNDECIDED:
                left.append((min(i, j), max(i, j)))
    return _arrays(left)


@kernel
def _arrays(pairs: Any) -> tuple[IntArray, IntArray]:
    i, j = np.empty(len(pairs), dtype=np.int64), np.empty(len(pairs), dtype=np.int64)
    for k in range(len(pairs)):
        i[k], j[k] = pairs[k]
    return i, j


@kernel
def across(
    shapes: Shapes,
    curves: CurveArrays,
    tree: Tree,
    split: IntArray,
    limit: float,
    key: FloatArray,
    pair: IntArray,
) -> tuple[int, int, IntArray, IntArray]:
    """Pairs of different splits that are too close: how many, how many are kept, and those left undecided."""
    order = tree[0]
    stack, nodes, found = np.empty((256, 4)), np.empty((256, 2), dtype=np.int64), np.empty(1024, dtype=np.int64)
    left = [(0, 0) for _ in range(0)]
    count = kept = 0
    for me in range(len(order)):
        n, found = candidates(tree, me, me, limit, nodes, found)
        for k in range(n):
            i, j = min(order[me], order[found[k]]), max(order[me], order[found[k]])
            if split[i] == split[j]:
                continue
            verdict, low = decide(shapes, curves, i, j, limit, 0.0, stack)
            if verdict == _TOO_CLOSE:
                count += 1
                kept = offer(key, pair, kept, low, i, j)
            elif verdict == _UNDECIDED:
                left.append((i, j))
    i_left, j_left = _arrays(left)
    return count, kept, i_left, j_left


@kernel
def count_neighbours(
    shapes: Shapes, curves: CurveArrays, tree: Tree, chosen: IntArray, limit: float
) -> tuple[int, IntArray, IntArray]:
    """How many others are too close to the chosen boxes (positions along the curve), and pairs left undecided."""
    order = tree[0]
    stack, nodes, found = np.empty((256, 4)), np.empty((256, 2), dtype=np.int64), np.empty(1024, dtype=np.int64)
    left = [(0, 0) for _ in range(0)]
    count = 0
    for me in chosen:
        n, found = candidates(tree, me, -1, limit, nodes, found)
        for k in range(n):
            if found[k] == me:
                continue
            i, j = order[me], order[found[k]]
            verdict, _ = decide(shapes, curves, i, j, limit, 0.99 * limit - 1e-2, stack)
            if verdict == _TOO_CLOSE:
                count += 1
            elif verdict == _UNDECIDED:
                left.append((i, j))
    i_left, j_left = _arrays(left)
    return count, i_left, j_left
