"""Pairs of members of two rows of equal samples, counted and offered as witnesses. Imported lazily: it compiles.

Members stand by row and split: ``run`` gives the first run of each row, ``first``, ``size`` and ``split`` the first
member, the size and the split of each run, ``member`` the samples.
"""

from __future__ import annotations

from geoeval.geometry._kernel import kernel
from geoeval.model import FloatArray, IntArray
from geoeval.splits._union_kernels import before, offer


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
