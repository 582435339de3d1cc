"""The squared distance from a segment to the nearest of many others, integrated exactly.

Along a straight segment, the squared distance to one other segment is three parabolas: towards its start, its line
and its end. The nearest of many is the lower envelope of these parabolas, which is built piece by piece and
integrated in closed form.
"""

from __future__ import annotations

import math

import numpy as np

from geoeval.geometry._distance_kernels import SIZE, UX, UY, X0, X1, Y0, Y1, radius_at, reach
from geoeval.geometry._kernel import kernel
from geoeval.model import FloatArray, IntArray

# Columns of a table of pieces: from, to, and c0 + c1 t + c2 t².
_FROM, _TO, _C0, _C1, _C2 = range(5)


@kernel
def _value(c0: float, c1: float, c2: float, t: float) -> float:
    return c0 + t * (c1 + t * c2)


@kernel
def _crossings(c0: float, c1: float, c2: float) -> tuple[float, float]:
    """Real zeros of a parabola in rising order; inf where there are fewer."""
    if c2 == 0.0:
        return (-c0 / c1 if c1 != 0.0 else np.inf), np.inf
    rest = c1 * c1 - 4.0 * c2 * c0
    if rest <= 0.0:
        return np.inf, np.inf
    # The stable form: no difference of nearly equal numbers.
    q = -0.5 * (c1 + math.copysign(math.sqrt(rest), c1))
    one = q / c2
    two = c0 / q if q != 0.0 else np.inf
    return min(one, two), max(one, two)


@kernel
def _is_below(c0: float, c1: float, c2: float, start: float, stop: float) -> bool:
    """Whether a parabola that does not change its sign on [start, stop] is negative there.

    By its integral (Simpson's rule, exact here): a single point may be where it only touches 0.
    """
    middle = _value(c0, c1, c2, 0.5 * (start + stop))
    return bool(_value(c0, c1, c2, start) + 4.0 * middle + _value(c0, c1, c2, stop) < 0.0)


@kernel
def _push(table: FloatArray, n: int, start: float, stop: float, c0: float, c1: float, c2: float) -> int:
    if stop <= start:
        return n
    if n and table[n - 1, _C0] == c0 and table[n - 1, _C1] == c1 and table[n - 1, _C2] == c2:
        table[n - 1, _TO] = stop
        return n
    table[n, _FROM] = start
    table[n, _TO] = stop
    table[n, _C0] = c0
    table[n, _C1] = c1
    table[n, _C2] = c2
    return n + 1


@kernel
def _lower(
    old: FloatArray, n_old: int, new: FloatArray, c: tuple[float, float, float], start: float, stop: float
) -> int:
    """The envelope ``old`` lowered by one parabola on [start, stop], into ``new``; its number of pieces."""
    n = 0
    for k in range(n_old):
        begin, end = old[k, _FROM], old[k, _TO]
        c0, c1, c2 = old[k, _C0], old[k, _C1], old[k, _C2]
        left, right = max(begin, start), min(end, stop)
        if right <= left:
            n = _push(new, n, begin, end, c0, c1, c2)
            continue
        n = _push(new, n, begin, left, c0, c1, c2)
        if c0 == np.inf:
            n = _push(new, n, left, right, c[0], c[1], c[2])
        else:
            one, two = _crossings(c[0] - c0, c[1] - c1, c[2] - c2)
            at = left
            for step in range(3):
                to = right if step == 2 else min(max(one if step == 0 else two, at), right)
                if _is_below(c[0] - c0, c[1] - c1, c[2] - c2, at, to):
                    n = _push(new, n, at, to, c[0], c[1], c[2])
                else:
                    n = _push(new, n, at, to, c0, c1, c2)
                at = max(at, to)
        n = _push(new, n, right, end, c0, c1, c2)
    return n


@kernel
def _parabolas(a: FloatArray, i: int, b: FloatArray, j: int, begin: float, end: float, out: FloatArray) -> int:
    """Squared distance along segment i of ``a`` to segment j of ``b``, as parabolas on parts of [begin, end]."""
    ux, uy, size = b[j, UX], b[j, UY], b[j, SIZE]
    vx, vy = a[i, UX], a[i, UY]
    wx, wy = a[i, X0] - b[j, X0], a[i, Y0] - b[j, Y0]
    if size == 0.0:
        return _push(out, 0, begin, end, wx * wx + wy * wy, 2.0 * (wx * vx + wy * vy), 1.0)
    zx, zy = a[i, X0] - b[j, X1], a[i, Y0] - b[j, Y1]
    along, speed = wx * ux + wy * uy, vx * ux + vy * uy
    off, drift = ux * wy - uy * wx, ux * vy - uy * vx
    if abs(speed) > 0.0:
        enters, leaves = -along / speed, (size - along) / speed
    else:
        enters = -np.inf if along >= 0.0 else np.inf
        leaves = np.inf if along <= size else -np.inf
    if speed >= 0.0:
        one, two = enters, leaves
    else:
        one, two = leaves, enters
    one = min(max(one, begin), end)
    two = min(max(two, one), end)
    # Moving along d, the start comes first and the end last; moving against it, the other way round.
    fx, fy, lx, ly = (wx, wy, zx, zy) if speed >= 0.0 else (zx, zy, wx, wy)
    n = _push(out, 0, begin, one, fx * fx + fy * fy, 2.0 * (fx * vx + fy * vy), 1.0)
    n = _push(out, n, one, two, off * off, 2.0 * off * drift, drift * drift)
    return _push(out, n, two, end, lx * lx + ly * ly, 2.0 * (lx * vx + ly * vy), 1.0)


@kernel
def _integral(table: FloatArray, n: int) -> float:
    """Integral of the squared distance over the part where it is known."""
    squares = 0.0
    for k in range(n):
        if table[k, _C0] < np.inf:
            start, size = table[k, _FROM], table[k, _TO] - table[k, _FROM]
            # From the piece's own start, where the numbers are small.
            c0 = _value(table[k, _C0], table[k, _C1], table[k, _C2], start)
            c1 = table[k, _C1] + 2.0 * table[k, _C2] * start
            squares += max(size * (c0 + size * (c1 / 2.0 + size * table[k, _C2] / 3.0)), 0.0)
    return squares


@kernel
def squares_within_candidates(
    a: FloatArray,
    b: FloatArray,
    first: IntArray,
    candidate: IntArray,
    distance: float,
    out: FloatArray,
    start: int,
    stop: int,
) -> None:
    """Integral along segment i of ``a`` of the squared distance to the nearest candidate, where within ``distance``."""
    table = np.empty((64, 5))
    other = np.empty((64, 5))
    parts = np.empty((3, 5))
    for i in range(start, stop):
        out[i] = 0.0
        if a[i, SIZE] == 0.0:
            continue
        radius = radius_at(distance, a[i, X0], a[i, Y0])
        n = _push(table, 0, 0.0, a[i, SIZE], np.inf, 0.0, 0.0)
        for c in range(first[i], first[i + 1]):
            j = candidate[c]
            begin, end = reach(a, i, b, j, radius)
            if begin >= end:
                continue
            for part in range(_parabolas(a, i, b, j, begin, end, parts)):
                if len(other) < 5 * n + 2:
                    other = np.empty((10 * n + 2, 5))
                curve = (parts[part, _C0], parts[part, _C1], parts[part, _C2])
                n = _lower(table, n, other, curve, parts[part, _FROM], parts[part, _TO])
                table, other = other, table
        out[i] = _integral(table, n)
