"""Hamming neighbours by buckets of 16 bits. Imported lazily, because it compiles.

The 64 bits are cut into four chunks. With tolerances t that satisfy sum(t + 1) = radius + 1, two codes within the
radius differ by at most t bits in at least one chunk: were every chunk off by more, the codes would be off by more than
the radius.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.geometry._kernel import kernel
from geoeval.model import FloatArray, IntArray
from geoeval.splits._union_kernels import before, find, join, offer

UIntArray = NDArray[np.uint64]


@kernel
def bits(x: Any) -> Any:
    """How many bits of a 64-bit number are set."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel
def chunk_of(code: Any, k: int) -> int:
    return int((code >> np.uint64(16 * k)) & np.uint64(0xFFFF))


@kernel
def buckets(codes: UIntArray, k: int) -> tuple[IntArray, UIntArray, IntArray]:
    """Entries sorted by their chunk: where each bucket starts, the codes, and which entries they are."""
    start = np.zeros(65537, dtype=np.int64)
    for code in codes:
        start[chunk_of(code, k) + 1] += 1
    for b in range(65536):
        start[b + 1] += start[b]
    at = start[:-1].copy()
    sorted_codes = np.empty_like(codes)
    entry = np.empty(len(codes), dtype=np.int64)
    for e in range(len(codes)):
        place = at[chunk_of(codes[e], k)]
        at[chunk_of(codes[e], k)] += 1
        sorted_codes[place] = codes[e]
        entry[place] = e
    return start, sorted_codes, entry


@kernel
def _found_before(x: Any, k: int, tolerance: IntArray) -> bool:
    """True where an earlier chunk already brought these two codes together."""
    found = False
    for c in range(k):
        found = found or (tolerance[c] >= 0 and bits(np.uint64(chunk_of(x, c))) <= tolerance[c])
    return found


@kernel
def unite(codes: UIntArray, mask: IntArray, k: int, radius: int, parent: IntArray) -> None:
    """Join the rows of ``codes`` (rows, orientations) that chunk k brings together."""
    width = codes.shape[1]
    start, sorted_codes, entry = buckets(codes.reshape(-1), k)
    for e in entry:
        if e % width:
            continue
        a, code = e // width, codes[e // width, 0]
        home = chunk_of(code, k)
        for m in mask:
            bucket = home ^ m
            for t in range(start[bucket], start[bucket + 1]):
                if bits(code ^ sorted_codes[t]) <= radius:
                    b = entry[t] // width
                    if (b > a or width > 1) and parent[a] != parent[b]:
                        join(parent, a, b)


@kernel
def row_distance(codes: UIntArray, a: int, b: int) -> int:
    """Least distance of two rows over the orientations of either one."""
    least: int = bits(codes[a, 0] ^ codes[b, 0])
    for o in range(1, codes.shape[1]):
        least = min(least, bits(codes[a, 0] ^ codes[b, o]), bits(codes[b, 0] ^ codes[a, o]))
    return least


@kernel
def _is_first(codes: UIntArray, a: int, b: int, o: int, radius: int) -> bool:
    """True where (a as it is, b in orientation o) is the first combination of this pair that is within the radius."""
    low, high = min(a, b), max(a, b)
    for q in range(codes.shape[1]):
        if bits(codes[low, 0] ^ codes[high, q]) <= radius:
            return a == low and q == o
    for q in range(1, codes.shape[1]):
        if bits(codes[high, 0] ^ codes[low, q]) <= radius:
            return a == high and q == o
    return False


@kernel
def cross_pairs(run: IntArray, size: IntArray, split: IntArray, a: int, b: int) -> int:
    """How many pairs of members of rows a and b lie in different splits. Runs are sorted by split."""
    same, total_a, total_b = 0, 0, 0
    q = run[b]
    for p in range(run[a], run[a + 1]):
        total_a += size[p]
        while q < run[b + 1] and split[q] < split[p]:
            q += 1
        if q < run[b + 1] and split[q] == split[p]:
            same += size[p] * size[q]
    for q in range(run[b], run[b + 1]):
        total_b += size[q]
    both = total_a * total_b - same
    return both // 2 if a == b else both


@kernel
def offer_members(
    run: IntArray,
    first: IntArray,
    size: IntArray,
    split: IntArray,
    member: IntArray,
    rows: tuple[int, int],
    d: float,
    key: FloatArray,
    pair: IntArray,
    n: int,
) -> int:
    """Offer the pairs of members of two rows; members of a run are sorted, so that most are never looked at."""
    a, b = rows
    for p in range(run[a], run[a + 1]):
        for q in range(run[b], run[b + 1]):
            if split[p] == split[q] or (a == b and q < p):
                continue
            for s in range(first[p], first[p] + size[p]):
                stop = first[q]
                for t in range(first[q], first[q] + size[q]):
                    i, j = min(member[s], member[t]), max(member[s], member[t])
                    if n == len(key) and (n == 0 or not before(d, i, j, key[0], pair[0, 0], pair[0, 1])):
                        break
                    n = offer(key, pair, n, d, i, j)
                    stop = t + 1
                if stop == first[q]:
                    break
    return n


@kernel
def across(
    codes: UIntArray,
    mask: IntArray,
    k: int,
    radius: int,
    tolerance: IntArray,
    runs: tuple[IntArray, IntArray, IntArray, IntArray, IntArray],
    key: FloatArray,
    pair: IntArray,
    n: int,
) -> tuple[int, int]:
    """Pairs of rows that chunk k is the first to bring together: how many cross splits, and how many are kept."""
    run, first, size, split, member = runs
    width = codes.shape[1]
    start, sorted_codes, entry = buckets(codes.reshape(-1), k)
    count = 0
    for e in entry:
        if e % width:
            continue
        a, code = e // width, codes[e // width, 0]
        home = chunk_of(code, k)
        for m in mask:
            bucket = home ^ m
            for t in range(start[bucket], start[bucket + 1]):
                x = code ^ sorted_codes[t]
                if bits(x) > radius:
                    continue
                b = entry[t] // width
                if b == a or (width == 1 and b < a) or _found_before(x, k, tolerance):
                    continue
                if width > 1 and not _is_first(codes, a, b, entry[t] % width, radius):
                    continue
                crossing = cross_pairs(run, size, split, a, b)
                if crossing:
                    count += crossing
                    d = float(row_distance(codes, a, b))
                    n = offer_members(run, first, size, split, member, (a, b), d, key, pair, n)
    return count, n


__all__ = ["across", "cross_pairs", "find", "offer_members", "unite"]
