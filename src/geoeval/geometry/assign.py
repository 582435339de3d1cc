"""Exact optimal assignment of sparse components, in whole numbers: the kernel behind ``match.one_to_one``.

Rows and columns come ordered by rank. Within each component the number of pairs is maximal, then the sum of gains, and
among equal optima the list of pairs (row, column) that sorts first is taken. Costs and potentials are int64, so no
rounding decides a tie and the result does not depend on the order of the input or on the machine.

Method        successive shortest paths with potentials (the Hungarian method, on a sparse graph); every row may stay
              unpaired at cost 0. Then, over the tight edges, each row in turn moves to its first possible column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.geometry._kernel import kernel
from geoeval.model import IntArray

_FAR = 2**62
# Distances along a path telescope to a few times the largest cost, which must stay far from the end of int64.
_LARGEST_COST = 2**58
_UNSEEN, _SEEN, _DONE = 0, 1, 2
_IDLE = -2

Array = NDArray[Any]


def optimal(rows: IntArray, columns: IntArray, gain: IntArray, first_row: IntArray, n_columns: int) -> IntArray:
    """Edges of the optimal assignment, one entry a row, -1 where a row stays unpaired.

    Parameters
    ----------
    rows, columns, gain
        Edges sorted by (row, column). Rows are numbered so that those of one component are consecutive.
    first_row
        (components + 1,) first row of each component, then the number of rows.
    n_columns
        Number of columns.

    Returns
    -------
    IntArray
        (rows,) index of the edge taken.

    Examples
    --------
    >>> edge = optimal(np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([9, 5, 4]), np.array([0, 2]), 2)
    >>> edge.tolist()
    [1, 2]
    """
    n_rows = int(first_row[-1])
    start = np.searchsorted(rows, np.arange(n_rows + 1)).astype(np.int64)
    taken: IntArray = np.full(n_rows, -1, dtype=np.int64)
    _assign(rows, columns, gain, start, first_row, n_columns, taken)
    return taken


@kernel
def _assign(
    row: Array, col: Array, gain: Array, start: Array, first_row: Array, n_columns: int, taken: Array
) -> None:  # pragma: no cover
    u = np.zeros(len(start) - 1, np.int64)
    v = np.zeros(n_columns, np.int64)
    holder = np.full(n_columns, -1, np.int64)
    dist = np.zeros(n_columns, np.int64)
    via = np.full(n_columns, -1, np.int64)
    state = np.zeros(n_columns, np.int8)
    heap = np.zeros(n_columns + 1, np.int64)
    place = np.zeros(n_columns, np.int64)
    done = np.zeros(n_columns, np.int64)
    cost = np.zeros(len(row), np.int64)
    for k in range(len(first_row) - 1):
        low, high = first_row[k], first_row[k + 1]
        _set_costs(gain, cost, start[low], start[high], high - low)
        for current in range(low, high):
            _insert(current, row, col, cost, start, u, v, taken, holder, dist, via, state, heap, place, done)
        _canonical(low, high, row, col, cost, start, u, v, taken, holder, via, state, heap)


@kernel
def _set_costs(gain: Array, cost: Array, low: int, high: int, n_rows: int) -> None:  # pragma: no cover
    least, most = gain[low], gain[low]
    for e in range(low, high):
        least = min(least, gain[e])
        most = max(most, gain[e])
    shift = 0
    # One more pair must outweigh any gain in similarity: count first, quality second.
    while (most - least) >> shift >= _LARGEST_COST // (n_rows + 1):
        shift += 1
    pair = n_rows * ((most - least) >> shift) + 1
    for e in range(low, high):
        cost[e] = -pair - ((gain[e] - least) >> shift)


@kernel
def _rise(heap: Array, place: Array, dist: Array, k: int) -> None:  # pragma: no cover
    c = heap[k]
    while k > 0:
        above = (k - 1) // 2
        if dist[heap[above]] <= dist[c]:
            break
        heap[k] = heap[above]
        place[heap[k]] = k
        k = above
    heap[k] = c
    place[c] = k


@kernel
def _sink(heap: Array, place: Array, dist: Array, n: int) -> None:  # pragma: no cover
    c = heap[0]
    k = 0
    while 2 * k + 1 < n:
        below = 2 * k + 1
        if below + 1 < n and dist[heap[below + 1]] < dist[heap[below]]:
            below += 1
        if dist[heap[below]] >= dist[c]:
            break
        heap[k] = heap[below]
        place[heap[k]] = k
        k = below
    heap[k] = c
    place[c] = k


@kernel
def _insert(
    current: int,
    row: Array,
    col: Array,
    cost: Array,
    start: Array,
    u: Array,
    v: Array,
    taken: Array,
    holder: Array,
    dist: Array,
    via: Array,
    state: Array,
    heap: Array,
    place: Array,
    done: Array,
) -> None:  # pragma: no cover
    n_heap, n_done, low, r = 0, 0, 0, current
    out, out_row, end = _FAR, current, -1
    while True:
        if low - u[r] < out:
            out, out_row = low - u[r], r
        for e in range(start[r], start[r + 1]):
            c = col[e]
            d = low + cost[e] - u[r] - v[c]
            if state[c] == _DONE or (state[c] == _SEEN and d >= dist[c]):
                continue
            if state[c] == _UNSEEN:
                state[c] = _SEEN
                heap[n_heap] = c
                place[c] = n_heap
                n_heap += 1
            dist[c], via[c] = d, e
            _rise(heap, place, dist, place[c])
        if n_heap == 0 or out <= dist[heap[0]]:
            low = out
            break
        c = heap[0]
        n_heap -= 1
        heap[0] = heap[n_heap]
        place[heap[0]] = 0
        _sink(heap, place, dist, n_heap)
        state[c] = _DONE
        done[n_done] = c
        n_done += 1
        low = dist[c]
        if holder[c] < 0:
            end = c
            break
        r = holder[c]
    u[current] += low
    for k in range(n_done):
        c = done[k]
        state[c] = _UNSEEN
        if c != end:
            u[holder[c]] += low - dist[c]
            v[c] -= low - dist[c]
    for k in range(n_heap):
        state[heap[k]] = _UNSEEN
    _augment(current, end, out_row, row, col, taken, holder, via)


@kernel
def _augment(
    current: int, end: int, out_row: int, row: Array, col: Array, taken: Array, holder: Array, via: Array
) -> None:  # pragma: no cover
    c = end
    if end < 0:
        if out_row == current:
            return
        c = col[taken[out_row]]
        taken[out_row] = -1
    while True:
        e = via[c]
        r = row[e]
        before = taken[r]
        taken[r] = e
        holder[c] = r
        if r == current:
            return
        c = col[before]


@kernel
def _canonical(
    low: int,
    high: int,
    row: Array,
    col: Array,
    cost: Array,
    start: Array,
    u: Array,
    v: Array,
    taken: Array,
    holder: Array,
    via: Array,
    state: Array,
    queue: Array,
) -> None:  # pragma: no cover
    """Give each row in turn the first column that some optimum gives it, keeping what earlier rows have."""
    for r in range(low, high):
        stop = taken[r] if taken[r] >= 0 else start[r + 1]
        for e in range(start[r], stop):
            if cost[e] - u[r] - v[col[e]] == 0 and _exchange(
                r, e, low, high, row, col, cost, start, u, v, taken, holder, via, state, queue
            ):
                break


@kernel
def _exchange(
    r: int,
    wanted: int,
    low: int,
    high: int,
    row: Array,
    col: Array,
    cost: Array,
    start: Array,
    u: Array,
    v: Array,
    taken: Array,
    holder: Array,
    via: Array,
    state: Array,
    queue: Array,
) -> bool:  # pragma: no cover
    """Try to give row ``r`` the edge ``wanted`` by moving later rows along tight edges.

    ``pool`` stands for being unpaired: a row may enter it where its potential is 0, a column where its own is 0.
    """
    pool = len(v)
    target = col[taken[r]] if taken[r] >= 0 else pool
    first = col[wanted]
    queue[0] = first
    state[first] = _SEEN
    n, k, pool_from, found = 1, 0, -1, False
    while k < n and not found:
        node = queue[k]
        k += 1
        h = holder[node] if node != pool else -1
        if node != pool and 0 <= h <= r:
            continue
        leaves = node != pool and (h < 0 or u[h] == 0)
        if leaves and pool_from < 0:
            pool_from = node
            queue[n] = pool
            n += 1
            found = target == pool
        lower, upper = (h, h + 1) if node != pool else (r + 1, high)
        for i in range(max(lower, low), upper):
            if node == pool and taken[i] >= 0:
                continue
            for e in range(start[i], start[i + 1]):
                c = col[e]
                if state[c] == _UNSEEN and cost[e] - u[i] - v[c] == 0:
                    state[c], via[c] = _SEEN, e
                    queue[n] = c
                    n += 1
                    found = found or c == target
        if node == pool:
            for e in range(start[low], start[high]):
                c = col[e]
                if state[c] == _UNSEEN and v[c] == 0 and holder[c] >= 0:
                    state[c], via[c] = _SEEN, _IDLE
                    queue[n] = c
                    n += 1
                    found = found or c == target
    for i in range(n):
        if queue[i] != pool:
            state[queue[i]] = _UNSEEN
    if found:
        _move(first, target, pool, pool_from, row, col, taken, holder, via)
        taken[r] = wanted
        holder[first] = r
    return found


@kernel
def _move(
    first: int, target: int, pool: int, pool_from: int, row: Array, col: Array, taken: Array, holder: Array, via: Array
) -> None:  # pragma: no cover
    node = target
    while node != first:
        if node == pool:
            node = pool_from
            if holder[node] >= 0:
                taken[holder[node]] = -1
        elif via[node] == _IDLE:
            holder[node] = -1
            node = pool
        else:
            e = via[node]
            h = row[e]
            before = col[taken[h]] if taken[h] >= 0 else pool
            taken[h] = e
            holder[node] = h
            node = before
