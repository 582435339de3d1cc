"""Disjoint sets, and a bounded list of the smallest pairs. Imported lazily, because it compiles."""

from __future__ import annotations

import numpy as np

from geoeval.geometry._kernel import kernel
from geoeval.model import FloatArray, IntArray


@kernel
def find(parent: IntArray, x: int) -> int:
    while parent[x] != x:
        parent[x] = parent[parent[x]]
        x = parent[x]
    return x


@kernel
def join(parent: IntArray, x: int, y: int) -> None:
    """Join two sets; the smaller index becomes the root, so that the result does not depend on the order of joins."""
    x, y = find(parent, x), find(parent, y)
    if x < y:
        parent[y] = x
    elif y < x:
        parent[x] = y


@kernel
def labels(parent: IntArray) -> IntArray:
    """Numbers of the sets, from 0, in order of their first members."""
    out = np.empty(len(parent), dtype=np.int64)
    n = 0
    for x in range(len(parent)):
        root = find(parent, x)
        if root == x:
            out[x] = n
            n += 1
        else:
            out[x] = out[root]
    return out


@kernel
def before(d: float, i: int, j: int, e: float, k: int, m: int) -> bool:
    """True where (d, i, j) comes before (e, k, m)."""
    if d != e:
        return d < e
    if i != k:
        return i < k
    return j < m


@kernel
def offer(key: FloatArray, pair: IntArray, n: int, d: float, i: int, j: int) -> int:
    """Put a pair into a heap that keeps the smallest ones, greatest on top; how many it holds then."""
    size = len(key)
    if n < size:
        at = n
        while at > 0:
            above = (at - 1) // 2
            if not before(key[above], pair[above, 0], pair[above, 1], d, i, j):
                break
            key[at], pair[at, 0], pair[at, 1] = key[above], pair[above, 0], pair[above, 1]
            at = above
        key[at], pair[at, 0], pair[at, 1] = d, i, j
        return n + 1
    if size == 0 or not before(d, i, j, key[0], pair[0, 0], pair[0, 1]):
        return n
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        other = below + 1
        if other < size and before(
            key[below], pair[below, 0], pair[below, 1], key[other], pair[other, 0], pair[other, 1]
        ):
            below = other
        if not before(d, i, j, key[below], pair[below, 0], pair[below, 1]):
            break
        key[at], pair[at, 0], pair[at, 1] = key[below], pair[below, 0], pair[below, 1]
        at = below
    key[at], pair[at, 0], pair[at, 1] = d, i, j
    return n
