"""Candidates among label sets in images, by shared boxes of features. Imported lazily, because it compiles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.geometry._kernel import kernel
from geoeval.model import FloatArray, IntArray
from geoeval.splits._labelset_kernels import IMAGE, SLACK, Asked, Bits, Flats, largest_of, may_be_alike, placed, wanted
from geoeval.splits._labelset_key_kernels import (
    PROBE,
    Buckets,
    SetArray,
    Table,
    UIntArray,
    key_of,
    met_in_pairs,
    slot_of,
    two_shared,
)

Visit = tuple[NDArray[np.uint32], UIntArray, FloatArray, int, float]
Serial = tuple[int, int]
Out = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
#: Sets by one key; small ones by two keys; bits of a bucket; the keys of all features; most features of a small set.
Index = tuple[Table, Buckets, int, UIntArray, int]


@kernel
def _cover(at: tuple[float, float, float, float]) -> tuple[int, int, Any]:
    """First and last row of a grid of 16 rows and 64 columns that a box touches, and its columns as bits.

    What lies outside the image counts in the cells of its edge: boxes that overlap still share a cell.
    """
    c0 = int(min(max(at[0], 0.0), IMAGE - 1) / (IMAGE / 64))
    c1 = int(min(max(at[2], 0.0), IMAGE - 1) / (IMAGE / 64))
    r0 = int(min(max(at[1], 0.0), IMAGE - 1) / (IMAGE / 16))
    r1 = int(min(max(at[3], 0.0), IMAGE - 1) / (IMAGE / 16))
    every = np.uint64(0xFFFFFFFFFFFFFFFF)
    return r0, r1, (every << np.uint64(c0)) & (every >> np.uint64(63 - c1))


@kernel
def covers_of(start: IntArray, box: FloatArray) -> UIntArray:
    """(sets, 16) the cells that the boxes of each set touch."""
    out = np.zeros((len(start) - 1, 16), dtype=np.uint64)
    for k in range(len(out)):
        for f in range(start[k], start[k + 1]):
            r0, r1, columns = _cover(placed(box, f, 0, False))
            for r in range(r0, r1 + 1):
                out[k, r] |= columns
    return out


@kernel
def _touching(
    facts: FloatArray, cover: UIntArray, a: int, visit: Visit, jaccard: float, touched: Bits
) -> tuple[bool, float]:
    """Which features of b touch cells of a, False if too few to be alike, and the sum of their areas."""
    rows, columns, area, size, least = visit
    met, common = 0, 0.0
    for k in range(size):
        # Three rows whatever the box, then the rare further ones: without branches it is several times as fast.
        r0, r1 = rows[k, 0], rows[k, 1]
        both = cover[a, r0] | cover[a, min(r0 + 1, r1)] | cover[a, min(r0 + 2, r1)]
        for r in range(r0 + 3, r1 + 1):
            both |= cover[a, r]
        touches = (both & columns[k]) != 0
        touched[k] = touches
        met += touches
        common += area[k] * touches
    need = (min(int(facts[a, 0]), size) + 1) // 2
    goal = jaccard / (1 + jaccard) * (facts[a, 1] + least) * (1 - SLACK)
    return met >= need or common >= goal, common


@kernel
def _met_by_counting(
    table: Table, spans: IntArray, size: int, which: int, b: int, mark: NDArray[Any], now: Serial, n: int, new: SetArray
) -> int:
    """Sets before b, small ones (0) or others (1), of which two features of b share keys; how many are in ``new``."""
    owner = table[3]
    began, done = now
    for f in range(size):
        serial = began + 1 + f
        for grid in range(2):
            for t in range(spans[f, grid, which], spans[f, grid, which + 1]):
                a = owner[t]
                if a >= b:
                    break
                if mark[a] >= serial:
                    continue
                if mark[a] <= began:
                    mark[a] = serial
                    continue
                mark[a] = done
                new[n] = a
                n += 1
    return n


@kernel
def _met(
    index: Index, keys: UIntArray, size: int, b: int, mark: NDArray[Any], now: Serial, room: Any, new: SetArray
) -> int:
    """Sets before b that share at least two boxes with it as it stands now, and few others."""
    table, buckets, bits, _, most = index
    slots, runs, begin, _ = table
    spans, place, tag = room
    small = 0
    for f in range(size):
        for grid in range(2):
            run = runs[slot_of(slots, runs, keys[f, grid])]
            for part in range(3):
                spans[f, grid, part] = begin[2 * run + part] if run >= 0 else 0
            small += spans[f, grid, 1] - spans[f, grid, 0]
    n = 0
    if small > 0:
        n = -1
        if most > 0 and 2 * size * (size - 1) * PROBE < small:
            n = met_in_pairs(buckets, bits, keys, size, b, small, mark, now[1], (place, tag), new)
        if n < 0:
            n = _met_by_counting(table, spans, size, 0, b, mark, now, -1 - n, new)
    return _met_by_counting(table, spans, size, 1, b, mark, now, n, new)


@kernel
def image_pairs(
    flats: Flats,
    index: Index,
    cover: UIntArray,
    asked: Asked,
    rows: tuple[int, int],
    mark: NDArray[Any],
    serial: int,
    limits: tuple[float, float],
    out: Out,
) -> tuple[int, int, int]:
    """Pairs in images that share two boxes of features and may be alike, for the second sets from rows[0] to rows[1].

    ``mark`` holds, for each set, the number of the last feature that met it: that a set was met before, by another
    feature of the same visit, then costs one look.

    Returns
    -------
    tuple of int
        How many pairs stand in ``out``, the first set that was not looked at because ``out`` was full, and the number
        of the last feature.
    """
    start, box, area, least, _, _ = flats
    group, kind, parent = asked
    largest = largest_of(start)
    span, columns = np.zeros((largest, 2), dtype=np.uint32), np.zeros(largest, dtype=np.uint64)
    touched = np.zeros(largest, dtype=np.uint8)
    keys = np.zeros((largest, 2), dtype=np.uint64)
    room = (
        np.zeros((largest, 2, 3), dtype=np.int64),
        np.zeros(4 * largest, dtype=np.int64),
        np.zeros(4 * largest, dtype=np.uint64),
    )
    new = np.zeros(len(start) - 1, dtype=np.int32)
    # Together, because sets are met in no order: one look at memory in place of three.
    facts = np.empty((len(start) - 1, 3))
    for k in range(len(facts)):
        facts[k, 0], facts[k, 1], facts[k, 2] = start[k + 1] - start[k], least[k], group[k]
    n = 0
    for b in range(rows[0], rows[1]):
        if n + 8 * b > len(out[0]):
            return n, b, serial
        size = start[b + 1] - start[b]
        for turn in range(8):
            for k in range(size):
                at = placed(box, start[b] + k, turn, False)
                span[k, 0], span[k, 1], columns[k] = _cover(at)
                keys[k, 0], keys[k, 1] = key_of(at, 0), key_of(at, 1)
            visit = span, columns, area[start[b] : start[b + 1]], size, least[b]
            now = serial, serial + size + 1
            serial = now[1]
            for m in range(_met(index, keys, size, b, mark, now, room, new)):
                a = new[m]
                if facts[a, 2] == group[b]:
                    continue
                near, rest = _touching(facts, cover, a, visit, limits[1], touched)
                if (
                    near
                    and wanted(group, kind, parent, a, b)
                    and may_be_alike(flats, a, b, turn, False, limits, touched, rest)
                    and two_shared(box, index[3], start[a], start[a + 1], keys, size)
                ):
                    out[0][n], out[1][n], out[2][n] = a, b, turn
                    n += 1
    return n, rows[1], serial
