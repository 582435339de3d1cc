"""Candidates among label sets in images, by shared boxes of features. Imported lazily, because it compiles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.geometry._kernel import kernel
from geoeval.model import FloatArray, IntArray
from geoeval.splits._labelset_cover_kernels import (
    ANY,
    COARSE,
    Coarse,
    cover_of,
    picture_of,
    sift,
    touching,
)
from geoeval.splits._labelset_kernels import Asked, Flats, largest_of, may_be_alike, placed, wanted
from geoeval.splits._labelset_key_kernels import (
    Buckets,
    SetArray,
    Table,
    UIntArray,
    key_of,
    met_in_pairs,
    slot_of,
    two_shared,
)

Serial = tuple[int, int]
Out = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
#: Sets by one key; small ones by two keys; bits of a bucket; the keys of all features; most features of a small set;
#: and what it costs to look up two keys, in looks at a set that shares one.
Index = tuple[Table, Buckets, int, UIntArray, int, int]


#: (sets, 4) how many features, what they occupy at least, the group, and the first feature; cells; and coarse cells.
Pictures = tuple[FloatArray, UIntArray, Coarse]


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
    table, buckets, bits, _, most, cost = index
    slots, runs, begin, _ = table
    spans, mixed = room
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
        if most > 0 and 2 * size * (size - 1) * cost < small:
            n = met_in_pairs(buckets, bits, keys, size, b, small, cost, mark, now[1], mixed, new)
        if n < 0:
            n = _met_by_counting(table, spans, size, 0, b, mark, now, -1 - n, new)
    return _met_by_counting(table, spans, size, 1, b, mark, now, n, new)


@kernel
def image_pairs(
    flats: Flats,
    index: Index,
    pictures: Pictures,
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
    facts, cover, coarse = pictures
    near, mass = np.zeros(ANY + 1, dtype=np.uint8), np.zeros(COARSE * COARSE, dtype=np.uint8)
    parts = np.zeros(COARSE * COARSE)
    keys = np.zeros((largest, 2), dtype=np.uint64)
    room = np.zeros((largest, 2, 3), dtype=np.int64), np.zeros(4 * largest + 512, dtype=np.uint64)
    new = np.zeros(len(start) - 1, dtype=np.int32)
    n = 0
    for b in range(rows[0], rows[1]):
        if n + 8 * b > len(out[0]):
            return n, b, serial
        size = start[b + 1] - start[b]
        for turn in range(8):
            for k in range(size):
                at = placed(box, start[b] + k, turn, False)
                span[k, 0], span[k, 1], columns[k] = cover_of(at)
                keys[k, 0], keys[k, 1] = key_of(at, 0), key_of(at, 1)
            visit = span, columns, area[start[b] : start[b + 1]], size, least[b]
            now = serial, serial + size + 1
            serial = now[1]
            met = _met(index, keys, size, b, mark, now, room, new)
            if not met:
                continue
            outside = picture_of(flats, b, turn, near, parts, mass)
            other = size, least[b], group[b]
            for m in range(sift(facts, coarse, (near, mass, outside), other, limits[1], new, met)):
                a = new[m]
                overlaps, rest = touching(facts, cover, a, visit, limits[1], touched)
                if (
                    overlaps
                    and wanted(group, kind, parent, a, b)
                    and may_be_alike(flats, a, b, turn, False, limits, touched, rest)
                    and two_shared(index[3], start[a], start[a + 1], keys, size)
                ):
                    out[0][n], out[1][n], out[2][n] = a, b, turn
                    n += 1
    return n, rows[1], serial
