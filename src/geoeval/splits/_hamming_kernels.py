"""Hamming neighbours by buckets of 16 bits. Imported lazily, because it compiles.

The 64 bits are cut into four chunks. With tolerances t that satisfy sum(t + 1) = radius + 1, two codes within the
radius differ by at most t bits in at least one chunk: were every chunk off by more, the codes would be off by more than
the radius.

Rows   (rows, entries) codes: one image in eight orientations takes eight entries, the first of each eight being the
       image as it is; a row of a single entry is an image as it is. Entries of looks that a row does not have are left
       out of ``live``.
Rule   two entries are near within ``sure`` bits, or within ``wide`` bits where the second codes of both are known and
       differ by at most ``limit`` bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.geometry._kernel import kernel
from geoeval.model import FloatArray, IntArray
from geoeval.splits._run_kernels import cross_pairs, offer_members
from geoeval.splits._union_kernels import join

UIntArray = NDArray[np.uint64]
MaskArray = NDArray[np.bool_]


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
def buckets(codes: UIntArray, live: IntArray, k: int) -> tuple[IntArray, UIntArray, IntArray]:
    """Live entries sorted by their chunk: where each bucket starts, the codes, and which entries they are."""
    start = np.zeros(65537, dtype=np.int64)
    for e in live:
        start[chunk_of(codes[e], k) + 1] += 1
    for b in range(65536):
        start[b + 1] += start[b]
    at = start[:-1].copy()
    sorted_codes = np.empty(len(live), dtype=np.uint64)
    entry = np.empty(len(live), dtype=np.int64)
    for e in live:
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
def _near(d: int, second: UIntArray, known: MaskArray, pair: tuple[int, int, int, int], rule: IntArray) -> bool:
    """True where entry p of row a and entry q of row b, d bits apart, are near; ``pair`` is (a, p, b, q)."""
    sure, wide, limit = rule
    if d <= sure:
        return True
    if d > wide:
        return False
    a, p, b, q = pair
    agree: bool = known[a] and known[b] and bits(second[a, p] ^ second[b, q]) <= limit
    return agree


@kernel
def unite(
    codes: UIntArray,
    second: UIntArray,
    known: MaskArray,
    live: IntArray,
    mask: IntArray,
    k: int,
    rule: IntArray,
    parent: IntArray,
) -> None:
    """Join the rows that chunk k brings together."""
    width = codes.shape[1]
    start, sorted_codes, entry = buckets(codes.reshape(-1), live, k)
    for e in entry:
        p = e % width
        if p % 8:
            continue
        a = e // width
        code = codes[a, p]
        home = chunk_of(code, k)
        for m in mask:
            bucket = home ^ m
            for t in range(start[bucket], start[bucket + 1]):
                d = bits(code ^ sorted_codes[t])
                if d > rule[1]:
                    continue
                b, q = entry[t] // width, entry[t] % width
                if (b > a or width > 1) and parent[a] != parent[b] and _near(d, second, known, (a, p, b, q), rule):
                    join(parent, a, b)


@kernel
def row_distance(
    codes: UIntArray, second: UIntArray, known: MaskArray, size: IntArray, a: int, b: int, rule: IntArray
) -> int:
    """Least distance of two rows over all that is near: an entry as it is of one, and any entry of the other."""
    least: int = 65
    for p in range(0, size[a], 8):
        for q in range(size[b]):
            d = bits(codes[a, p] ^ codes[b, q])
            if d < least and _near(d, second, known, (a, p, b, q), rule):
                least = d
    for p in range(0, size[b], 8):
        for q in range(size[a]):
            d = bits(codes[b, p] ^ codes[a, q])
            if d < least and _near(d, second, known, (b, p, a, q), rule):
                least = d
    return least


@kernel
def _is_first(
    codes: UIntArray,
    second: UIntArray,
    known: MaskArray,
    size: IntArray,
    pair: tuple[int, int, int, int],
    rule: IntArray,
) -> bool:
    """True where (a, p, b, q) is the first combination of rows a and b that is near."""
    a, p, b, q = pair
    low, high = min(a, b), max(a, b)
    for i in range(0, size[low], 8):
        for j in range(size[high]):
            if _near(bits(codes[low, i] ^ codes[high, j]), second, known, (low, i, high, j), rule):
                return a == low and i == p and j == q
    for i in range(0, size[high], 8):
        for j in range(size[low]):
            if j % 8 and _near(bits(codes[high, i] ^ codes[low, j]), second, known, (high, i, low, j), rule):
                return a == high and i == p and j == q
    return False


@kernel
def across(
    codes: UIntArray,
    second: UIntArray,
    known: MaskArray,
    row_size: IntArray,
    live: IntArray,
    mask: IntArray,
    k: int,
    rule: IntArray,
    tolerance: IntArray,
    runs: tuple[IntArray, IntArray, IntArray, IntArray, IntArray],
    key: FloatArray,
    pair: IntArray,
    n: int,
) -> tuple[int, int]:
    """Pairs of rows that chunk k is the first to bring together: how many cross splits, and how many are kept.

    ``row_size`` holds the live entries of each row.
    """
    run, first, size, split, member = runs
    width = codes.shape[1]
    start, sorted_codes, entry = buckets(codes.reshape(-1), live, k)
    count = 0
    for e in entry:
        p = e % width
        if p % 8:
            continue
        a = e // width
        code = codes[a, p]
        home = chunk_of(code, k)
        for m in mask:
            bucket = home ^ m
            for t in range(start[bucket], start[bucket + 1]):
                x = code ^ sorted_codes[t]
                d = bits(x)
                if d > rule[1]:
                    continue
                b, q = entry[t] // width, entry[t] % width
                if b == a or (width == 1 and b < a) or _found_before(x, k, tolerance):
                    continue
                if not _near(d, second, known, (a, p, b, q), rule):
                    continue
                if width > 1 and not _is_first(codes, second, known, row_size, (a, p, b, q), rule):
                    continue
                crossing = cross_pairs(run, size, split, a, b)
                if crossing:
                    count += crossing
                    apart = float(row_distance(codes, second, known, row_size, a, b, rule))
                    n = offer_members(run, first, size, split, member, (a, b), apart, key, pair, n)
    return count, n
