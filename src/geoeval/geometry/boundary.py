"""How much of a boundary or line lies within a distance of another. Exact: no buffer, no sampling.

Boundaries of polygons are all their rings, holes included. A distance equal to the limit counts as within; equal is
meant up to a nanometre and the rounding of the coordinates, so that a wall moved by exactly the tolerance is within
it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import shapely

from geoeval.geometry.packing import aligned, in_threads, pack, segment_boxes, segments_of, starts
from geoeval.model import FloatArray, IntArray, ObjectArray

#: Pairs, or segments, in one slice of work.
_SLICE = 4_096
#: Segments whose candidates are held in memory at once.
_CHUNK = 65_536
#: Above this many pairs of segments, a pair of objects goes through an index.
_BRUTE = 250_000
#: Relative difference between two sums of the same lengths.
_ROUNDING = 1e-12


def boundary_length(geometry: ObjectArray) -> FloatArray:
    """Length of the boundary of each polygon, holes included, or of each line (n,).

    Examples
    --------
    >>> boundary_length(np.array([shapely.box(0, 0, 3, 1)]))
    array([8.])
    """
    return np.asarray(shapely.length(np.asarray(geometry, dtype=np.object_)), dtype=np.float64).reshape(-1)


def boundary_within(a: ObjectArray, b: ObjectArray, distance: float) -> FloatArray:
    """Length of the boundary of ``a[i]`` that lies within ``distance`` of the boundary of ``b[i]`` (n,).

    Parameters
    ----------
    a, b
        Aligned pairs of polygons (or lines) in one metric system.
    distance
        In the unit of the coordinates, 0 or more; inclusive.

    Returns
    -------
    FloatArray
        Between 0 and ``boundary_length(a)``; exactly that where everything is within.

    Examples
    --------
    A square and its copy moved by 2: with 1 to spare, the near walls and 1 of each side wall are within.

    >>> square = np.array([shapely.box(0, 0, 4, 4)])
    >>> moved = np.array([shapely.box(2, 0, 6, 4)])
    >>> boundary_within(square, moved, 1.0)
    array([8.])
    >>> boundary_within(square, moved, 2.0)
    array([16.])
    """
    left, right = aligned(a, b)
    distance = _checked(distance)
    from geoeval.geometry._distance_kernels import lengths_within_pairs

    (one, _), (two, _) = segments_of(left_paths := pack(left)), segments_of(right_paths := pack(right))
    one_start, two_start = starts(left_paths.segments), starts(right_paths.segments)
    out = np.zeros(len(left))
    # Large pairs are left to the index: here they are given no segments, which costs nothing.
    large = left_paths.segments * right_paths.segments > _BRUTE
    one_stop = np.where(large, one_start[:-1], one_start[1:])

    def work(start: int, stop: int) -> None:
        lengths_within_pairs(one, one_start, one_stop, two, two_start, distance, out, start, stop)

    in_threads(work, len(left), _SLICE)
    for k in np.flatnonzero(large):
        part = one[one_start[k] : one_start[k + 1]]
        out[k] = math.fsum(_within(part, two[two_start[k] : two_start[k + 1]], distance, squares=False)[0])
    return _snapped(out, boundary_length(left))


def lines_within(lines: ObjectArray, others: ObjectArray, distance: float) -> FloatArray:
    """Length of each line that lies within ``distance`` of any of the others (n,).

    Both layers may hold lines, multilines or polygons (their boundaries); an index finds what is near, so the cost
    grows with the number of neighbours, not with the product of the layers.

    Examples
    --------
    Two prolonged others cover a line of 10 but for the 2 between their discs of radius 1.

    >>> line = np.array([shapely.LineString([(0, 0), (10, 0)])])
    >>> others = np.array([shapely.LineString([(-5, 0), (3, 0)]), shapely.LineString([(7, 0), (20, 0)])])
    >>> lines_within(line, others, 1.0).round(6)
    array([8.])
    """
    length, _ = _along(lines, others, distance, squares=False)
    return length


def lines_rms(lines: ObjectArray, others: ObjectArray, distance: float) -> tuple[FloatArray, FloatArray]:
    """Squared distance to the nearest of the others, integrated along the matched part of each line, and its length.

    The matched part is what :func:`lines_within` measures. The integral is exact (to rounding): along a straight
    segment, the squared distance to the nearest other segment is piecewise a parabola, and each piece is integrated
    in closed form. The root of ``sum(integral) / sum(length)`` is the RMS distance of Heipke et al. (1997), without
    sampling.

    Returns
    -------
    tuple[FloatArray, FloatArray]
        Integral of squared distance in cubic units (n,), and matched length (n,).

    Examples
    --------
    A line that diverges from another: the distance grows from 0 to 3 over the first 5, and 5 * 3**2 / 3 = 15.

    >>> line = np.array([shapely.LineString([(0, 0), (8, 6)])])
    >>> squares, length = lines_rms(line, np.array([shapely.LineString([(0, 0), (99, 0)])]), 3.0)
    >>> squares.round(6), length.round(6)
    (array([15.]), array([5.]))
    """
    length, squares = _along(lines, others, distance, squares=True)
    return squares, length


def _along(lines: ObjectArray, others: ObjectArray, distance: float, *, squares: bool) -> tuple[FloatArray, FloatArray]:
    one, owner = segments_of(paths := pack(lines))
    two, _ = segments_of(pack(others))
    lengths, integrals = _within(one, two, _checked(distance), squares=squares)
    # bincount adds one after the other, so a line's sum does not depend on other lines.
    length, square = (
        np.bincount(owner, weights=values, minlength=len(paths)).astype(np.float64) for values in (lengths, integrals)
    )
    return _snapped(length, boundary_length(lines)), square


def _within(one: FloatArray, two: FloatArray, distance: float, *, squares: bool) -> tuple[FloatArray, FloatArray]:
    """For each segment: its length within ``distance`` of any other and, if asked for, the integral of squares."""
    from geoeval.geometry._distance_kernels import lengths_within_candidates
    from geoeval.geometry._envelope_kernels import squares_within_candidates

    length, integral = np.zeros(len(one)), np.zeros(len(one))
    # In the order of their coordinates, so that the order of the file cannot change a last digit.
    two = np.ascontiguousarray(two[np.lexsort(two.T[::-1])])
    for start, first, candidate in _candidates(one, two, distance):
        part = one[start : start + len(first) - 1]
        length_part, integral_part = length[start : start + len(part)], integral[start : start + len(part)]

        def work(
            k: int,
            to: int,
            part: FloatArray = part,
            first: IntArray = first,
            candidate: IntArray = candidate,
            length: FloatArray = length_part,
            integral: FloatArray = integral_part,
        ) -> None:
            lengths_within_candidates(part, two, first, candidate, distance, length, k, to)
            if squares:
                squares_within_candidates(part, two, first, candidate, distance, integral, k, to)

        in_threads(work, len(part), _SLICE)
    return length, integral


def _candidates(one: FloatArray, two: FloatArray, distance: float) -> Iterator[tuple[int, IntArray, IntArray]]:
    """Chunks of segments: where the chunk begins, and the segments ``two`` near each of its members."""
    if len(one) == 0 or len(two) == 0:
        return
    tree = shapely.STRtree(segment_boxes(two))
    # A micrometre more, so that the index never decides what is exactly at the limit.
    margin = distance + 1e-6
    for start in range(0, len(one), _CHUNK):
        boxes = segment_boxes(one[start : start + _CHUNK], margin)
        i, j = tree.query(boxes)
        key = np.sort(i.astype(np.int64) * len(two) + j)
        yield start, starts(np.bincount(key // len(two), minlength=len(boxes))), key % len(two)


def _snapped(part: FloatArray, whole: FloatArray) -> FloatArray:
    """The part, but the whole where the two differ by rounding only: full agreement is exactly 1."""
    return np.where(part >= whole * (1.0 - _ROUNDING), whole, part)


def _checked(distance: float) -> float:
    if not (math.isfinite(distance) and distance >= 0.0):
        raise ValueError(f"distance must be a finite number of at least 0, got {distance!r}")
    return float(distance)
