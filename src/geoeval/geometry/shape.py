"""How alike the shapes of paired objects are: distances between boundaries, centroids, vertex counts, compactness.

Every function of two layers takes aligned pairs ``a[i], b[i]`` in one metric system and gives one number a pair. The
boundary of a polygon is all its rings: those of its holes and of all its parts. A ring's closing vertex is not a
vertex.
"""

from __future__ import annotations

import math

import numpy as np
import shapely

from geoeval.geometry.packing import (
    Paths,
    aligned,
    in_threads,
    pack,
    segments_of,
    starts,
    vertices_of,
)
from geoeval.model import FloatArray, IntArray, ObjectArray

#: Pairs in one slice of work.
_SLICE = 4_096
#: Above this many vertices times segments, a pair of objects goes through an index.
_BRUTE = 1_000_000
#: A rectangle whose sides differ by less than this share has no orientation.
_SQUARE = 1e-9


def polis(a: ObjectArray, b: ObjectArray) -> FloatArray:
    """Mean distance of the vertices of each polygon to the boundary of the other, averaged over both directions (n,).

    ``sum(d(a_j, B)) / (2 q) + sum(d(b_k, A)) / (2 r)`` for the q vertices of A and the r of B, 0 for equal
    boundaries, NaN where one side is empty. The closing vertex is not counted twice. Vertices of holes and of further
    parts count like all others, and the nearest boundary point may lie on any ring. PoLiS ("polygons and line
    segments") in the literature.

    References
    ----------
    .. [1] J. Avbelj, R. Müller, R. Bamler, "A metric for polygon comparison and building extraction evaluation", IEEE
       Geoscience and Remote Sensing Letters 12(1), 2015.

    Examples -------- The vertices of the first lie on the boundary of the second; two of the four of the second are
    off by 1: (0 + 0.5) / 2.

    >>> polis(np.array([shapely.box(0, 0, 4, 4)]), np.array([shapely.box(0, 0, 5, 4)]))
    array([0.25])
    """
    left, right = (pack(side) for side in aligned(a, b))
    there, _ = _vertex_distances(left, right)
    back, _ = _vertex_distances(right, left)
    return 0.5 * (there + back)


def hausdorff(a: ObjectArray, b: ObjectArray) -> FloatArray:
    """Largest distance of a vertex of either boundary to the other boundary (n,); NaN where one side is empty.

    Symmetric, vertex to segment: the larger of ``max(d(a_j, B))`` and ``max(d(b_k, A))``, each distance to the
    nearest point of the other's segments, not only to its vertices. Points inside a segment are not searched, so it
    may fall short of the Hausdorff distance of the point sets where a segment passes between two rings of the other.

    Examples
    --------
    >>> hausdorff(np.array([shapely.box(0, 0, 4, 4)]), np.array([shapely.box(0, 0, 7, 8)]))
    array([5.])
    """
    left, right = (pack(side) for side in aligned(a, b))
    _, there = _vertex_distances(left, right)
    _, back = _vertex_distances(right, left)
    return np.maximum(there, back)


def centroid_distance(a: ObjectArray, b: ObjectArray) -> FloatArray:
    """Distance between the centroids of each pair (n,); NaN where one side is empty.

    Examples
    --------
    >>> centroid_distance(np.array([shapely.box(0, 0, 4, 4)]), np.array([shapely.box(3, 4, 7, 8)]))
    array([5.])
    """
    # Bounds, because they are NaN where a centroid is empty.
    left, right = (shapely.bounds(shapely.centroid(side)).reshape(-1, 4) for side in aligned(a, b))
    return np.asarray(np.hypot(left[:, 0] - right[:, 0], left[:, 1] - right[:, 1]), dtype=np.float64)


def vertex_count(a: ObjectArray) -> IntArray:
    """How many vertices each polygon or line has, all rings and parts together, closing vertices not counted (n,).

    Examples
    --------
    >>> vertex_count(np.array([shapely.box(0, 0, 1, 1), shapely.box(0, 0, 9, 9) - shapely.box(1, 1, 2, 2)]))
    array([4, 8])
    """
    return pack(a).vertices


def compactness(a: ObjectArray) -> FloatArray:
    """``4 pi area / perimeter ** 2``: 1 for a disc, less for anything else, NaN without a perimeter (n,).

    The perimeter includes holes. Also called the Polsby-Popper score, isoperimetric quotient, circularity.

    Examples
    --------
    >>> compactness(np.array([shapely.box(0, 0, 1, 1)])).round(6)
    array([0.785398])
    """
    geometry = np.asarray(a, dtype=np.object_).reshape(-1)
    perimeter = shapely.length(geometry)
    out = np.full(len(geometry), np.nan)
    np.divide(4.0 * math.pi * shapely.area(geometry), perimeter * perimeter, out=out, where=perimeter > 0.0)
    return out


def orientation_difference(a: ObjectArray, b: ObjectArray) -> FloatArray:
    """Angle between the long sides of the smallest enclosing rectangles, in degrees from 0 to 90 (n,).

    NaN where the rectangle of either is a square, which has no long side, or has no extent.

    Examples
    --------
    >>> upright, lying, square = shapely.box(0, 0, 1, 3), shapely.box(0, 0, 3, 1), shapely.box(0, 0, 1, 1)
    >>> orientation_difference(np.array([upright, upright]), np.array([lying, square]))
    array([90., nan])
    """
    left, right = (_orientation(side) for side in aligned(a, b))
    turn = np.abs(left - right) % 180.0
    return np.minimum(turn, 180.0 - turn)


def _orientation(geometry: ObjectArray) -> FloatArray:
    """Direction of the long side in degrees, NaN where there is none."""
    out = np.full(len(geometry), np.nan)
    rectangle = shapely.oriented_envelope(geometry)
    real = np.flatnonzero(shapely.get_num_coordinates(rectangle) == 5)
    corners = shapely.get_coordinates(rectangle[real]).reshape(-1, 5, 2)
    sides = np.diff(corners[:, :3], axis=1)
    length = np.hypot(sides[..., 0], sides[..., 1])
    rows = np.arange(len(real))
    longest = sides[rows, np.argmax(length, axis=1)] if len(real) else np.zeros((0, 2))
    angle = np.degrees(np.arctan2(longest[:, 1], longest[:, 0]))
    out[real] = np.where(np.abs(np.diff(length, axis=1)[:, 0]) <= _SQUARE * length.max(axis=1), np.nan, angle)
    return out


def _vertex_distances(a: Paths, b: Paths) -> tuple[FloatArray, FloatArray]:
    """Mean and largest distance from the vertices of a[i] to the boundary of b[i]; NaN where either is empty."""
    from geoeval.geometry._distance_kernels import vertex_distances_pairs

    vertex, vertex_start = vertices_of(a)
    segment, _ = segments_of(b)
    segment_start = starts(b.segments)
    total, largest = np.zeros(len(a)), np.zeros(len(a))
    # Large pairs are left to the index: here they are given no vertices, which costs nothing.
    large = a.vertices * b.segments > _BRUTE
    stop = np.where(large, vertex_start[:-1], vertex_start[1:])

    def work(start: int, end: int) -> None:
        vertex_distances_pairs(vertex, vertex_start, stop, segment, segment_start, total, largest, start, end)

    in_threads(work, len(a), _SLICE)
    for k in np.flatnonzero(large):
        near = _indexed(vertex[vertex_start[k] : vertex_start[k + 1]], segment[segment_start[k] : segment_start[k + 1]])
        total[k], largest[k] = math.fsum(near), near.max()
    undefined = (a.vertices == 0) | (b.segments == 0)
    mean = np.full(len(a), np.nan)
    np.divide(total, a.vertices, out=mean, where=~undefined)
    return mean, np.where(undefined, np.nan, largest)


def _indexed(vertices: FloatArray, segments: FloatArray) -> FloatArray:
    """Distance of each vertex to the nearest segment."""
    lines: ObjectArray = np.asarray(shapely.linestrings(segments[:, :4].reshape(-1, 2, 2)), dtype=np.object_)
    tree = shapely.STRtree(lines)
    _, distance = tree.query_nearest(shapely.points(vertices), all_matches=False, return_distance=True)
    return np.asarray(distance, dtype=np.float64)
