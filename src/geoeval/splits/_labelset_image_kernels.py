"""Candidates among label sets in images, by shared boxes of features. Imported lazily, because it compiles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.geometry._kernel import kernel
from geoeval.model import FloatArray, IntArray
from geoeval.splits._labelset_kernels import IMAGE, SLACK, Asked, Bits, Flats, largest_of, may_be_alike, placed, wanted

UIntArray = NDArray[np.uint64]
#: Slots with a key and the run of that key (-1 where there is none), where each run begins, and its sets in order.
Table = tuple[UIntArray, NDArray[np.int32], IntArray, NDArray[np.int32]]
Visit = tuple[NDArray[np.uint32], UIntArray, FloatArray, int, float]
Serial = tuple[int, int, int]
Out = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]

CELL = 32.0
#: From this many features on, one shared box may be an accident; two are asked for.
ENOUGH_FOR_TWO = 6

_MIX = np.uint64(0x9E3779B97F4A7C15)


@kernel
def _cell(value: float, grid: int) -> Any:
    return np.uint64((np.int64(np.floor((value + grid * (CELL / 2)) / CELL)) + 16384) & 0x7FFF)


@kernel
def _key(at: tuple[float, float, float, float], grid: int) -> Any:
    """One number for the cells of the four sides of a box, on either grid."""
    low = _cell(at[0], grid) | (_cell(at[1], grid) << np.uint64(15))
    high = (_cell(at[2], grid) << np.uint64(30)) | (_cell(at[3], grid) << np.uint64(45))
    return low | high | (np.uint64(grid) << np.uint64(60))


@kernel
def keys_of(start: IntArray, box: FloatArray) -> tuple[UIntArray, NDArray[np.int32]]:
    """The keys of all boxes on both grids, and the set of each: twice its number, plus 1 where one box is enough."""
    keys, owner = np.empty(2 * len(box), dtype=np.uint64), np.empty(2 * len(box), dtype=np.int32)
    for k in range(len(start) - 1):
        alone = int(start[k + 1] - start[k] < ENOUGH_FOR_TWO)
        for f in range(start[k], start[k + 1]):
            for grid in range(2):
                keys[2 * f + grid], owner[2 * f + grid] = _key(placed(box, f, 0, False), grid), 2 * k + alone
    return keys, owner


@kernel
def _slot(slots: UIntArray, runs: NDArray[np.int32], key: Any) -> int:
    """The slot of a key, or the empty one where it would stand."""
    # A product's high bits depend on all bits of the key; the number of slots is a power of 2.
    place = np.int64((key * _MIX) >> np.uint64(16)) & (len(slots) - 1)
    while runs[place] >= 0 and slots[place] != key:
        place = (place + 1) & (len(slots) - 1)
    return int(place)


@kernel
def slots_of(known: UIntArray, n: int) -> tuple[UIntArray, NDArray[np.int32]]:
    """Slots for different keys, at least twice as many."""
    slots, runs = np.zeros(n, dtype=np.uint64), np.full(n, -1, dtype=np.int32)
    for r in range(len(known)):
        place = _slot(slots, runs, known[r])
        slots[place], runs[place] = known[r], r
    return slots, runs


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
def _met(
    table: Table, at: tuple[float, float, float, float], b: int, small: bool, mark: NDArray[Any], now: Serial, new: Any
) -> int:
    """Sets before b that share enough boxes with it now that this one is looked at; how many stand in ``new``."""
    slots, runs, begin, owner = table
    began, serial, done = now
    n = 0
    for grid in range(2):
        key = _key(at, grid)
        run = runs[_slot(slots, runs, key)]
        if run < 0:
            continue
        for t in range(begin[run], begin[run + 1]):
            a = owner[t] >> 1
            if a >= b:
                break
            if mark[a] >= serial:
                continue
            if mark[a] <= began and not (small or owner[t] & 1):
                mark[a] = serial
                continue
            mark[a] = done
            new[n] = a
            n += 1
    return n


@kernel
def image_pairs(
    flats: Flats,
    table: Table,
    cover: UIntArray,
    asked: Asked,
    rows: tuple[int, int],
    mark: NDArray[Any],
    serial: int,
    limits: tuple[float, float],
    out: Out,
) -> tuple[int, int, int]:
    """Pairs in images that share boxes of features and may be alike, for the second sets from rows[0] to rows[1].

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
            began, done = serial, serial + size + 1
            for k in range(size):
                span[k, 0], span[k, 1], columns[k] = _cover(placed(box, start[b] + k, turn, False))
            visit = span, columns, area[start[b] : start[b + 1]], size, least[b]
            for f in range(start[b], start[b + 1]):
                serial += 1
                at = placed(box, f, turn, False)
                for m in range(_met(table, at, b, size < ENOUGH_FOR_TWO, mark, (began, serial, done), new)):
                    a = new[m]
                    if facts[a, 2] == group[b]:
                        continue
                    near, rest = _touching(facts, cover, a, visit, limits[1], touched)
                    if (
                        near
                        and wanted(group, kind, parent, a, b)
                        and may_be_alike(flats, a, b, turn, False, limits, touched, rest)
                    ):
                        out[0][n], out[1][n], out[2][n] = a, b, turn
                        n += 1
            serial = done
    return n, rows[1], serial
