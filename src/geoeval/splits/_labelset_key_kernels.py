"""Keys of boxes in images, and of pairs of boxes: which sets share them. Imported lazily, because it compiles.

A box has one key on either grid. Sets are found by one key of theirs, or, for small sets, by two keys at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.geometry._kernel import kernel
from geoeval.model import FloatArray, IntArray
from geoeval.splits._labelset_kernels import placed

UIntArray = NDArray[np.uint64]
SetArray = NDArray[np.int32]
#: Slots with a key and the run of that key (-1 where there is none); where each run begins, and where its sets begin
#: that are not small; and the sets, small ones first, in order.
Table = tuple[UIntArray, SetArray, IntArray, SetArray]
#: Where each bucket of pairs of keys begins, and the pairs: half of their hash, and their set, in order of sets.
Buckets = tuple[NDArray[np.uint32], UIntArray]

CELL = 32.0

_ODD = np.uint64(0x9E3779B97F4A7C15)
_OTHER_ODD = np.uint64(0xC2B2AE3D27D4EB4F)
_LOW = np.uint64(0xFFFFFFFF)


@kernel
def _cell(value: float, grid: int) -> Any:
    return np.uint64((np.int64(np.floor((value + grid * (CELL / 2)) / CELL)) + 16384) & 0x7FFF)


@kernel
def key_of(at: tuple[float, float, float, float], grid: int) -> Any:
    """One number for the cells of the four sides of a box, on either grid."""
    low = _cell(at[0], grid) | (_cell(at[1], grid) << np.uint64(15))
    high = (_cell(at[2], grid) << np.uint64(30)) | (_cell(at[3], grid) << np.uint64(45))
    return low | high | (np.uint64(grid) << np.uint64(60))


@kernel
def keys_of(box: FloatArray) -> UIntArray:
    """(features, 2) the keys of all boxes on both grids."""
    keys = np.empty((len(box), 2), dtype=np.uint64)
    for f in range(len(box)):
        for grid in range(2):
            keys[f, grid] = key_of(placed(box, f, 0, False), grid)
    return keys


@kernel
def slot_of(slots: UIntArray, runs: SetArray, key: Any) -> int:
    """The slot of a key, or the empty one where it would stand."""
    # A product's high bits depend on all bits of the key; the number of slots is a power of 2.
    place = np.int64((key * _ODD) >> np.uint64(16)) & (len(slots) - 1)
    while runs[place] >= 0 and slots[place] != key:
        place = (place + 1) & (len(slots) - 1)
    return int(place)


@kernel
def slots_of(known: UIntArray, n: int) -> tuple[UIntArray, SetArray]:
    """Slots for different keys, at least twice as many."""
    slots, runs = np.zeros(n, dtype=np.uint64), np.full(n, -1, dtype=np.int32)
    for r in range(len(known)):
        place = slot_of(slots, runs, known[r])
        slots[place], runs[place] = known[r], r
    return slots, runs


@kernel
def pair_hash(one: Any, other: Any) -> Any:
    """One number for two keys in any order. Its high bits choose a bucket, its low ones tell pairs apart."""
    low, high = (one, other) if one < other else (other, one)
    mixed = (low * _ODD) ^ ((high + _ODD) * _OTHER_ODD)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * _ODD
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _OTHER_ODD
    return mixed ^ (mixed >> np.uint64(32))


@kernel
def fill_buckets(start: IntArray, keys: UIntArray, most: int, bits: int, buckets: Buckets) -> None:
    """Put all pairs of keys of two features of a set into buckets, for the sets that have up to ``most`` features."""
    begin, pairs = buckets
    drop = np.uint64(64 - bits)
    # Counted first and put in place then. While pairs are put, a bucket's end is where its next pair goes, and where
    # it starts is written one place further on: what is left at the end is where each bucket begins.
    for write in range(2):
        for k in range(len(start) - 1):
            if start[k + 1] - start[k] > most:
                continue
            for e in range(start[k], start[k + 1]):
                for f in range(e + 1, start[k + 1]):
                    for grids in range(4):
                        mixed = pair_hash(keys[e, grids & 1], keys[f, grids >> 1])
                        bucket = np.int64(mixed >> drop) + 1
                        if write:
                            pairs[begin[bucket]] = (mixed << np.uint64(32)) | np.uint64(k)
                        begin[bucket] += np.uint32(1)
        if not write:
            total = 0
            for place in range(len(begin)):
                count = int(begin[place])
                begin[place] = total
                total += count


@kernel
def met_in_pairs(
    buckets: Buckets,
    bits: int,
    keys: UIntArray,
    size: int,
    b: int,
    limit: int,
    cost: int,
    mark: NDArray[Any],
    done: int,
    room: UIntArray,
    new: SetArray,
) -> int:
    """Sets before b that share a pair of keys with it: how many stand in ``new``, or -1 - that where it grew costly."""
    n, m = 0, 0
    for e in range(size - 1):
        for f in range(e + 1, size):
            for grids in range(4):
                room[m] = pair_hash(keys[e, grids & 1], keys[f, grids >> 1])
                m += 1
        if e < size - 2 and m + 4 * size < len(room):
            continue
        n, limit = _looked_up(buckets, bits, room[:m], b, limit - cost * m, mark, done, n, new)
        m = 0
        if limit < 0 and e < size - 2:
            return -1 - n
    return n


@kernel
def _looked_up(
    buckets: Buckets,
    bits: int,
    mixed: UIntArray,
    b: int,
    limit: int,
    mark: NDArray[Any],
    done: int,
    n: int,
    new: SetArray,
) -> tuple[int, int]:
    """Sets before b under some hashes of pairs of keys: how many stand in ``new``, and what is left of the limit."""
    begin, pairs = buckets
    drop = np.uint64(64 - bits)
    # Looks without branches first: many waits for memory then become one. They are used, so that the compiler keeps
    # them; all that this can do is to give up one look sooner.
    ahead = np.uint64(0)
    last = np.uint32(len(pairs) - 1)
    for p in range(len(mixed)):
        ahead ^= np.uint64(begin[np.int64(mixed[p] >> drop)])
    for p in range(len(mixed)):
        at = begin[np.int64(mixed[p] >> drop)]
        ahead ^= pairs[at if at < last else last]
    limit -= int(ahead == _LOW)
    for p in range(len(mixed)):
        bucket = np.int64(mixed[p] >> drop)
        tag = mixed[p] & _LOW
        for t in range(np.int64(begin[bucket]), np.int64(begin[bucket + 1])):
            a = np.int64(pairs[t] & _LOW)
            limit -= 1
            if a >= b:
                break
            if (pairs[t] >> np.uint64(32)) == tag and mark[a] != done:
                mark[a] = done
                new[n] = a
                n += 1
    return n, limit


@kernel
def two_shared(keys: UIntArray, first: int, stop: int, other: UIntArray, size: int) -> bool:
    """Whether two features of one set share keys with two of the other: links of features are more than a star."""
    e0, f0, another_e, another_f = -1, -1, False, False
    for f in range(size):
        for e in range(first, stop):
            if keys[e, 0] == other[f, 0] or keys[e, 1] == other[f, 1]:
                if e0 < 0:
                    e0, f0 = e, f
                another_e = another_e or e != e0
                another_f = another_f or f != f0
                if another_e and another_f:
                    return True
    return False
