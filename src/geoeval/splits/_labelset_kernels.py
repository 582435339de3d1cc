"""Candidates among label sets, by numbers alone. Imported lazily, because it compiles.

The features of all sets lie one after the other in flat arrays, set by set, and by their least x within a set:
``start`` (sets + 1,) where a set begins, ``box`` (features, 4), ``area`` (features,), and per set ``least``, which its
occupied area cannot be less than, ``reach``, the width of its widest box, and ``total``, the sum of its areas.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.geometry._kernel import kernel
from geoeval.model import FloatArray, IntArray
from geoeval.splits._run_kernels import cross_pairs, offer_members
from geoeval.splits._union_kernels import find, join

Flats = tuple[IntArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]
Runs = tuple[IntArray, IntArray, IntArray, IntArray, IntArray]
Bits = NDArray[np.uint8]
Asked = tuple[IntArray, IntArray, IntArray]

IMAGE = 1024.0

#: Bounds may be off by roundings; what is this close to a limit is measured exactly.
SLACK = 1e-6


@kernel
def placed(box: FloatArray, f: int, turn: int, world: bool) -> tuple[float, float, float, float]:
    """A box after whole turns of longitude, or after one of the eight flips and rotations of the image."""
    x0, y0, x1, y1 = box[f, 0], box[f, 1], box[f, 2], box[f, 3]
    if world:
        return x0 + 360.0 * turn, y0, x1 + 360.0 * turn, y1
    if turn & 4:
        x0, y0, x1, y1 = y0, x0, y1, x1
    if turn & 1:
        x0, x1 = IMAGE - x1, IMAGE - x0
    if turn & 2:
        y0, y1 = IMAGE - y1, IMAGE - y0
    return x0, y0, x1, y1


@kernel
def occupied(start: IntArray, box: FloatArray, area: FloatArray, least: FloatArray, tidy: IntArray) -> None:
    """What the occupied area of each set cannot be less than, and whether no two of its boxes overlap."""
    for k in range(len(start) - 1):
        total, most, shared = 0.0, 0.0, 0.0
        for f in range(start[k], start[k + 1]):
            total += area[f]
            most = max(most, area[f])
        for f in range(start[k], start[k + 1]):
            if total - shared < most:
                break
            for e in range(f + 1, start[k + 1]):
                if box[e, 0] >= box[f, 2]:
                    break
                high = min(box[e, 3], box[f, 3]) - max(box[e, 1], box[f, 1])
                if high > 0:
                    both = high * (min(box[e, 2], box[f, 2]) - box[e, 0])
                    shared += min(both, area[e], area[f])
        least[k] = max(most, total - shared)
        tidy[k] = shared == 0.0


@kernel
def _first_within(box: FloatArray, low: int, high: int, x: float) -> int:
    """First feature of a set whose least x is not below x."""
    while low < high:
        middle = (low + high) // 2
        if box[middle, 0] < x:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def may_be_alike(
    flats: Flats, a: int, b: int, turn: int, world: bool, limits: tuple[float, float], touched: Bits, rest: float
) -> bool:
    """False only where neither half of the smaller set can match, nor the occupied areas agree.

    Two shapes share no more than their boxes do, and no more than the smaller one has. This bounds their IoU, and in
    sum what the occupied areas share. Only the ``touched`` features of b are looked at; their areas have the sum
    ``rest``.
    """
    iou, jaccard = limits
    start, box, area, least, reach, _ = flats
    first, stop = start[a], start[a + 1]
    need = (min(stop - first, start[b + 1] - start[b]) + 1) // 2
    goal = jaccard / (1 + jaccard) * (least[a] + least[b]) * (1 - SLACK)
    common, met, left = 0.0, 0, 0
    for k in range(start[b + 1] - start[b]):
        left += touched[k]
    for f in range(start[b], start[b + 1]):
        if not touched[f - start[b]]:
            continue
        if common + rest < goal and met + left < need:
            return False
        left -= 1
        x0, y0, x1, y1 = placed(box, f, turn, world)
        part, good = 0.0, False
        for e in range(_first_within(box, first, stop, x0 - reach[a]), stop):
            if box[e, 0] >= x1:
                break
            wide = min(x1, box[e, 2]) - max(x0, box[e, 0])
            high = min(y1, box[e, 3]) - max(y0, box[e, 1])
            if wide > 0 and high > 0:
                both = min(wide * high, area[e], area[f])
                part += both
                good = good or both >= iou * (1 - SLACK) * (area[e] + area[f] - both)
        common += min(part, area[f])
        rest -= area[f]
        met += good
        if met >= need or common >= goal:
            return True
    return False


@kernel
def wanted(group: IntArray, kind: IntArray, parent: IntArray, a: int, b: int) -> bool:
    """False for pairs that nobody asks about: of one group, of two full sets among sketches, or joined already."""
    if group[a] == group[b] or kind[a] + kind[b] == 0:
        return False
    return len(parent) == 0 or find(parent, a) != find(parent, b)


@kernel
def world_kept(
    flats: Flats,
    asked: Asked,
    a: IntArray,
    b: IntArray,
    turn: int,
    limits: tuple[float, float],
) -> Any:
    """Which pairs of sets in the world are wanted and may be alike."""
    kept = np.zeros(len(a), dtype=np.bool_)
    touched = np.ones(largest_of(flats[0]), dtype=np.uint8)
    for p in range(len(a)):
        kept[p] = (
            a[p] < b[p]
            and wanted(asked[0], asked[1], asked[2], a[p], b[p])
            and may_be_alike(flats, a[p], b[p], turn, True, limits, touched, flats[5][b[p]])
        )
    return kept


@kernel
def largest_of(start: IntArray) -> int:
    most = 0
    for k in range(len(start) - 1):
        most = max(most, start[k + 1] - start[k])
    return most


@kernel
def overlap_counts(
    start: IntArray, box: FloatArray, reach: FloatArray, pairs: tuple[IntArray, IntArray, IntArray], world: bool
) -> IntArray:
    """How many boxes of features overlap in each pair of sets."""
    count = np.zeros(len(pairs[0]), dtype=np.int64)
    for p in range(len(count)):
        a, b = pairs[0][p], pairs[1][p]
        for f in range(start[b], start[b + 1]):
            x0, y0, x1, y1 = placed(box, f, pairs[2][p], world)
            for e in range(_first_within(box, start[a], start[a + 1], x0 - reach[a]), start[a + 1]):
                if box[e, 0] >= x1:
                    break
                count[p] += box[e, 2] > x0 and box[e, 1] < y1 and box[e, 3] > y0
    return count


@kernel
def overlaps(
    start: IntArray,
    box: FloatArray,
    reach: FloatArray,
    pairs: tuple[IntArray, IntArray, IntArray],
    world: bool,
    n: int,
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Features whose boxes overlap: position of the pair, feature of either set, and the area that the boxes share."""
    pair, one, other = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    shared = np.empty(n, dtype=np.float64)
    k = 0
    for p in range(len(pairs[0])):
        a, b = pairs[0][p], pairs[1][p]
        for f in range(start[b], start[b + 1]):
            x0, y0, x1, y1 = placed(box, f, pairs[2][p], world)
            for e in range(_first_within(box, start[a], start[a + 1], x0 - reach[a]), start[a + 1]):
                if box[e, 0] >= x1:
                    break
                if box[e, 2] > x0 and box[e, 1] < y1 and box[e, 3] > y0:
                    wide = min(x1, box[e, 2]) - max(x0, box[e, 0])
                    high = min(y1, box[e, 3]) - max(y0, box[e, 1])
                    pair[k], one[k], other[k], shared[k] = p, e, f, wide * high
                    k += 1
    return pair, one, other, shared


@kernel
def roots(parent: IntArray, rows: IntArray) -> IntArray:
    """The first member of the component of each row."""
    out = np.empty(len(rows), dtype=np.int64)
    for k in range(len(rows)):
        out[k] = find(parent, rows[k])
    return out


@kernel
def join_all(parent: IntArray, a: IntArray, b: IntArray) -> None:
    for p in range(len(a)):
        join(parent, a[p], b[p])


@kernel
def gather(
    runs: Runs, a: IntArray, b: IntArray, distance: FloatArray, key: FloatArray, pair: IntArray, n: int
) -> tuple[int, int]:
    """Count the members of rows that are alike and lie in different splits, and keep the first of them."""
    run, first, size, split, member = runs
    count = 0
    for p in range(len(a)):
        more = cross_pairs(run, size, split, a[p], b[p])
        if more:
            count += more
            n = offer_members(run, first, size, split, member, (a[p], b[p]), distance[p], key, pair, n)
    return count, n
