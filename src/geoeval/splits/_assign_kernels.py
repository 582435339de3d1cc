"""Kernels of the assignment: components into roles, one at a time, then moved while that helps."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from geoeval.model import FloatArray, IntArray

# Two choices that differ by less than this are equal; the earlier role then wins on every machine.
_EQUAL = 1e-9


@numba.njit(cache=True, nogil=True)
def _price(
    one: int,
    role: int,
    start: IntArray,
    cell: IntArray,
    count: IntArray,
    wanted: FloatArray,
    got: FloatArray,
    total: FloatArray,
    held: FloatArray,
) -> float:
    """How much the squared misses, relative to what is wanted, grow when a component joins a role."""
    size, price = 0.0, 0.0
    for at in range(start[one], start[one + 1]):
        n, w = float(count[at]), wanted[role, cell[at]]
        price += (2 * n * (got[role, cell[at]] - w) + n * n) / max(w, 1e-9)
        size += n
    whole: float = (2 * size * (held[role] - total[role]) + size * size) / max(total[role], 1e-9)
    return price + whole


@numba.njit(cache=True, nogil=True)
def _put(
    one: int,
    role: int,
    sign: int,
    start: IntArray,
    cell: IntArray,
    count: IntArray,
    got: FloatArray,
    held: FloatArray,
) -> None:
    for at in range(start[one], start[one + 1]):
        got[role, cell[at]] += sign * count[at]
        held[role] += sign * count[at]


@numba.njit(cache=True, nogil=True)
def fill(
    order: IntArray,
    start: IntArray,
    cell: IntArray,
    count: IntArray,
    wanted: FloatArray,
    pin: IntArray,
    allowed: NDArray[np.bool_],
    passes: int,
) -> IntArray:
    """Role of each component: in this order, each to the cheapest role; then moved while that is cheaper.

    Parameters
    ----------
    start, cell, count
        Component ``i`` holds ``count[k]`` samples of stratum ``cell[k]``, ``k`` from ``start[i]`` to ``start[i + 1]``.
    wanted
        (roles, strata) samples.
    pin
        (components,) the role that a component must go to; -1 where it is free.
    allowed
        (components, roles) where it may go.
    passes
        Most rounds of moving.
    """
    roles = len(wanted)
    total = wanted.sum(axis=1)
    got, held = np.zeros_like(wanted), np.zeros(roles)
    chosen = np.full(len(start) - 1, -1, dtype=np.int64)
    for _ in range(passes + 1):
        moved = False
        for one in order:
            was = chosen[one]
            if was >= 0 and pin[one] >= 0:
                continue
            if was >= 0:
                _put(one, was, -1, start, cell, count, got, held)
            best, least = pin[one], 0.0
            if best < 0 and was >= 0:
                best, least = was, _price(one, was, start, cell, count, wanted, got, total, held)
            if pin[one] < 0:
                for role in range(roles):
                    if not allowed[one, role]:
                        continue
                    price = _price(one, role, start, cell, count, wanted, got, total, held)
                    if best < 0 or price < least - _EQUAL:
                        best, least = role, price
            _put(one, best, 1, start, cell, count, got, held)
            chosen[one] = best
            moved = moved or best != was
        if not moved:
            break
    return chosen
