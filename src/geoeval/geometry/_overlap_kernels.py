"""Area shared by two polygons, from their edges alone.

The indicator of a polygon is a signed sum of the regions under its edges: those that run above the polygon count +1,
those that run below it -1. Therefore

    area(A and B) = sum over edge pairs of sign_a * sign_b * integral of min(y_a(x), y_b(x)) dx over the shared x-range

for any valid polygons; holes and further parts are just more edges. Edges are first clipped into the rectangle in which
the two bounding boxes overlap, with its lower left corner as origin: what lies below it vanishes, what lies above it
becomes flat, few edges are left, and no digits are lost to large coordinates.
"""

from __future__ import annotations

import numpy as np

from geoeval.geometry._kernel import kernel
from geoeval.model import FloatArray, IntArray

# Rows of a table of clipped pieces (6, pieces).
_LEFT, _RIGHT, _Y_LEFT, _Y_RIGHT, _SLOPE, _SIGN = range(6)

#: Above this many pairs of pieces, both sides are sorted by x and swept.
_SWEEP = 1024


@kernel
def ring_signs(xy: FloatArray, path: IntArray, role: IntArray) -> FloatArray:
    """Factor of each ring that turns shells counterclockwise and holes clockwise, whatever their direction."""
    sign = np.empty(len(path) - 1)
    for p in range(len(path) - 1):
        first, last = path[p], path[p + 1]
        twice = 0.0
        for k in range(first + 1, last - 1):
            twice += (xy[k, 0] - xy[first, 0]) * (xy[k + 1, 1] - xy[first, 1])
            twice -= (xy[k + 1, 0] - xy[first, 0]) * (xy[k, 1] - xy[first, 1])
        sign[p] = role[p] if twice >= 0 else -role[p]
    return sign


@kernel
def _put(piece: FloatArray, n: int, left: float, right: float, y_left: float, y_right: float, sign: float) -> int:
    # Narrower than any coordinate spacing: its area is nothing, and the square of its slope would overflow.
    if right - left < 1e-100:
        return n
    piece[_LEFT, n] = left
    piece[_RIGHT, n] = right
    piece[_Y_LEFT, n] = y_left
    piece[_Y_RIGHT, n] = y_right
    piece[_SLOPE, n] = (y_right - y_left) / (right - left)
    piece[_SIGN, n] = sign
    return n + 1


@kernel
def _put_clipped(
    piece: FloatArray, n: int, x0: float, y0: float, x1: float, y1: float, sign: float, width: float, height: float
) -> int:
    """Clip the edge x0 < x1 into the rectangle: at most one sloping and one flat piece at its top."""
    rise = (y1 - y0) / (x1 - x0)
    left, y_left = x0, y0
    if left < 0.0:
        left, y_left = 0.0, y0 - x0 * rise
    right, y_right = x1, y1
    if right > width:
        right, y_right = width, y1 - (x1 - width) * rise
    if y_left <= 0.0 and y_right <= 0.0:
        return n
    if y_left >= height and y_right >= height:
        return _put(piece, n, left, right, height, height, sign)
    if y_left < 0.0:
        left, y_left = min(max(left - y_left / rise, left), right), 0.0
    elif y_right < 0.0:
        right, y_right = max(min(right - y_right / rise, right), left), 0.0
    if y_left > height:
        at = min(max(left + (height - y_left) / rise, left), right)
        n = _put(piece, n, left, at, height, height, sign)
        left, y_left = at, height
    elif y_right > height:
        at = max(min(right + (height - y_right) / rise, right), left)
        n = _put(piece, n, at, right, height, height, sign)
        right, y_right = at, height
    return _put(piece, n, left, right, y_left, y_right, sign)


@kernel
def _clip(
    xy: FloatArray,
    path: IntArray,
    sign: FloatArray,
    first: int,
    last: int,
    box: tuple[float, float, float, float],
    piece: FloatArray,
) -> int:
    """Clip all edges of the rings first .. last - 1 into ``box`` (x, y, width, height); the number of pieces."""
    x, y, width, height = box
    n = 0
    for p in range(first, last):
        x1 = xy[path[p], 0] - x
        y1 = xy[path[p], 1] - y
        for k in range(path[p] + 1, path[p + 1]):
            x0, y0 = x1, y1
            x1 = xy[k, 0] - x
            y1 = xy[k, 1] - y
            if x0 == x1 or (y0 <= 0.0 and y1 <= 0.0):
                continue
            if x0 < x1:
                # The interior is to the left of the direction of travel: an edge to the right runs below it.
                if x1 > 0.0 and x0 < width:
                    n = _put_clipped(piece, n, x0, y0, x1, y1, -sign[p], width, height)
            elif x0 > 0.0 and x1 < width:
                n = _put_clipped(piece, n, x1, y1, x0, y0, sign[p], width, height)
    return n


@kernel
def _shared(a: FloatArray, i: int, b: FloatArray, start: int, stop: int, term: FloatArray) -> float:
    """Signed integral of the lower of piece i of ``a`` and each piece start .. stop - 1 of ``b``, where both are.

    The lower of two numbers is half their sum less half their distance; the distance of two straight lines that cross
    integrates to two triangles. Without branches, so that several pieces are done at once; summed in order.
    """
    a_left, a_right, a_slope = a[_LEFT, i], a[_RIGHT, i], a[_SLOPE, i]
    a_first, a_last = a[_Y_LEFT, i], a[_Y_RIGHT, i]
    for j in range(start, stop):
        left = a_left if a_left > b[_LEFT, j] else b[_LEFT, j]
        right = a_right if a_right < b[_RIGHT, j] else b[_RIGHT, j]
        width = right - left
        width = width if width > 0.0 else 0.0
        y0 = a_first + (left - a_left) * a_slope
        y1 = a_last - (a_right - right) * a_slope
        z0 = b[_Y_LEFT, j] + (left - b[_LEFT, j]) * b[_SLOPE, j]
        z1 = b[_Y_RIGHT, j] - (b[_RIGHT, j] - right) * b[_SLOPE, j]
        d0, d1 = y0 - z0, y1 - z1
        span = abs(d0) + abs(d1)
        crossed = (d0 * d0 + d1 * d1) / (span if span > 0.0 else 1.0)
        apart = abs(d0 + d1) if d0 * d1 >= 0.0 else crossed
        term[j] = width * (y0 + y1 + z0 + z1 - apart) * b[_SIGN, j]
    total = 0.0
    for j in range(start, stop):
        total += term[j]
    return float(0.25 * total * a[_SIGN, i])


@kernel
def _sum_all(a: FloatArray, n_a: int, b: FloatArray, n_b: int, term: FloatArray) -> float:
    total = 0.0
    for i in range(n_a):
        total += _shared(a, i, b, 0, n_b, term)
    return total


@kernel
def _sort_by_left(piece: FloatArray, n: int) -> None:
    """Sort n pieces in place by where they begin (Shell's sort: numpy's would double the time of compilation)."""
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    held = np.empty(6)
    while gap > 0:
        for k in range(gap, n):
            for row in range(6):
                held[row] = piece[row, k]
            at = k
            while at >= gap and piece[_LEFT, at - gap] > held[_LEFT]:
                for row in range(6):
                    piece[row, at] = piece[row, at - gap]
                at -= gap
            for row in range(6):
                piece[row, at] = held[row]
        gap //= 3


@kernel
def _sum_swept(a: FloatArray, n_a: int, b: FloatArray, n_b: int, term: FloatArray) -> float:
    """As :func:`_sum_all`, meeting only pieces whose x-ranges can overlap."""
    _sort_by_left(a, n_a)
    _sort_by_left(b, n_b)
    furthest = np.empty(n_b)
    reach = -1.0
    for j in range(n_b):
        reach = max(reach, b[_RIGHT, j])
        furthest[j] = reach
    total = 0.0
    start = 0
    for i in range(n_a):
        while start < n_b and furthest[start] <= a[_LEFT, i]:
            start += 1
        stop = start
        while stop < n_b and b[_LEFT, stop] < a[_RIGHT, i]:
            stop += 1
        total += _shared(a, i, b, start, stop, term)
    return total


@kernel
def shared_areas(
    a_xy: FloatArray,
    a_path: IntArray,
    a_owner: IntArray,
    a_sign: FloatArray,
    b_xy: FloatArray,
    b_path: IntArray,
    b_owner: IntArray,
    b_sign: FloatArray,
    pair_a: IntArray,
    pair_b: IntArray,
    box: FloatArray,
    most: int,
    out: FloatArray,
    start: int,
    stop: int,
) -> None:
    """Area shared by each pair start .. stop - 1, into ``out``.

    ``box`` (pairs, 4) is the rectangle shared by the bounding boxes: x, y, width, height. ``most`` is the largest
    number of pieces that an object can leave (two an edge).
    """
    a = np.empty((6, most))
    b = np.empty((6, most))
    term = np.empty(most)
    for k in range(start, stop):
        i, j = pair_a[k], pair_b[k]
        frame = (box[k, 0], box[k, 1], box[k, 2], box[k, 3])
        n_a = _clip(a_xy, a_path, a_sign, a_owner[i], a_owner[i + 1], frame, a)
        if n_a == 0:
            out[k] = 0.0
            continue
        n_b = _clip(b_xy, b_path, b_sign, b_owner[j], b_owner[j + 1], frame, b)
        out[k] = _sum_all(a, n_a, b, n_b, term) if n_a * n_b <= _SWEEP else _sum_swept(a, n_a, b, n_b, term)
