"""Flat arrays for kernels: the coordinates of many polygons or lines, and where each ring and each object begins."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from geoeval.errors import InputError
from geoeval.model import FloatArray, IntArray, ObjectArray

_LINES = (1, 2, 5)
_POLYGONS = (3, 6)
_KINDS = ("Point", "LineString", "LinearRing", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon")


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """Rings of polygons, or parts of lines, of many objects.

    Parameters
    ----------
    xy
        Coordinates (n, 2); rings repeat their first vertex at their end.
    path
        Where each path begins in ``xy`` (paths + 1,).
    owner
        Where each object begins among the paths (objects + 1,).
    role
        1 for a shell, -1 for a hole, 0 for a line (paths,).
    """

    xy: FloatArray
    path: IntArray
    owner: IntArray
    role: IntArray

    def __len__(self) -> int:
        return len(self.owner) - 1

    @property
    def segments(self) -> IntArray:
        """How many segments each object has (objects,)."""
        points = self.path[self.owner]
        return np.asarray(np.diff(points) - np.diff(self.owner), dtype=np.int64)

    @property
    def vertices(self) -> IntArray:
        """How many vertices each object has (objects,), the closing vertex of a ring not counted."""
        rings = starts(np.abs(self.role))
        return np.asarray(np.diff(self.path[self.owner]) - np.diff(rings[self.owner]), dtype=np.int64)


def pack(geometry: ObjectArray) -> Paths:
    """Lay polygons and lines out as flat arrays. Empty geometries become objects without paths; z is left out.

    Raises
    ------
    InputError
        Where a geometry is neither polygon nor line.

    Examples
    --------
    >>> paths = pack(np.array([shapely.box(0, 0, 2, 1), shapely.box(0, 0, 1, 1).buffer(1).boundary]))
    Traceback (most recent call last):
      ...
    geoeval.errors.InputError: expected polygons or lines, not both in one call; found LineString, Polygon
    >>> paths = pack(np.array([shapely.box(0, 0, 2, 1), shapely.box(5, 5, 6, 6)]))
    >>> paths.path, paths.owner, paths.vertices
    (array([ 0,  5, 10]), array([0, 1, 2]), array([4, 4]))
    """
    geometry = np.asarray(geometry, dtype=np.object_).reshape(-1)
    if len(geometry) == 0:
        none = np.zeros(0, dtype=np.int64)
        return Paths(np.zeros((0, 2)), np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), none)
    kinds = np.unique(shapely.get_type_id(geometry))
    if np.all(np.isin(kinds, _POLYGONS)):
        return _packed_polygons(geometry)
    if np.all(np.isin(kinds, _LINES)):
        return _packed_lines(geometry)
    both = bool(np.all(np.isin(kinds, _LINES + _POLYGONS)))
    raise InputError(
        f"expected polygons or lines{', not both in one call' if both else ''}; found "
        + ", ".join(_KINDS[kind] if 0 <= kind < len(_KINDS) else "None or a collection" for kind in kinds)
    )


def _packed_polygons(geometry: ObjectArray) -> Paths:
    """One ring each where there are no holes or further parts (the cheap common case); the others ring by ring."""
    points = np.asarray(shapely.get_num_coordinates(geometry), dtype=np.int64)
    plain = (shapely.get_type_id(geometry) == 3) & (shapely.get_num_interior_rings(geometry) == 0) & (points > 0)
    sizes, roles, counts = _rings(geometry[~plain])
    owned = np.ones(len(geometry), dtype=np.int64)
    owned[~plain] = counts
    owner = starts(owned)
    first = owner[:-1][plain]
    size = np.empty(owner[-1], dtype=np.int64)
    role = np.ones(owner[-1], dtype=np.int64)
    other = np.ones(owner[-1], dtype=bool)
    other[first] = False
    size[first] = points[plain]
    size[other], role[other] = sizes, roles
    xy = np.ascontiguousarray(shapely.get_coordinates(geometry), dtype=np.float64)
    return Paths(xy, starts(size), owner, role)


def _rings(geometry: ObjectArray) -> tuple[IntArray, IntArray, IntArray]:
    """Vertices and role of every ring, and how many rings each object has."""
    none = np.zeros(0, dtype=np.int64)
    if len(geometry) == 0:
        return none, none, none
    kind, _, offsets = shapely.to_ragged_array(geometry, include_z=False)
    ring, polygon = (np.asarray(part, dtype=np.int64) for part in offsets[:2])
    owner = polygon if kind == shapely.GeometryType.POLYGON else polygon[np.asarray(offsets[2], dtype=np.int64)]
    role = np.full(len(ring) - 1, -1, dtype=np.int64)
    role[polygon[:-1][np.diff(polygon) > 0]] = 1
    return np.diff(ring), role, np.diff(owner)


def _packed_lines(geometry: ObjectArray) -> Paths:
    kind, xy, offsets = shapely.to_ragged_array(geometry, include_z=False)
    path = np.asarray(offsets[0], dtype=np.int64)
    single = kind != shapely.GeometryType.MULTILINESTRING
    owner = np.arange(len(path), dtype=np.int64) if single else np.asarray(offsets[1], dtype=np.int64)
    # An empty line is an object without paths, not one with a path of no points.
    filled = np.diff(path) > 0
    owner = starts(filled.astype(np.int64))[owner]
    path = starts(np.diff(path)[filled])
    return Paths(np.ascontiguousarray(xy, dtype=np.float64), path, owner, np.zeros(len(path) - 1, dtype=np.int64))


def segments_of(paths: Paths) -> tuple[FloatArray, IntArray]:
    """Every segment in order (n, 7), and the object that it belongs to (n,).

    A row is x0, y0, x1, y1, the unit vector from the first end to the second (1, 0 where they are one), and the length.

    Examples
    --------
    >>> segments, owner = segments_of(pack(np.array([shapely.LineString([(0, 0), (1, 0), (1, 2)])])))
    >>> segments.tolist(), owner
    ([[0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 2.0, 0.0, 1.0, 2.0]], array([0, 0]))
    """
    inner = np.ones(len(paths.xy), dtype=bool)
    inner[paths.path[1:] - 1] = False
    start = np.flatnonzero(inner)
    segments = np.zeros((len(start), 7))
    segments[:, :2], segments[:, 2:4] = paths.xy[start], paths.xy[start + 1]
    way = segments[:, 2:4] - segments[:, :2]
    size = segments[:, 6] = np.sqrt(way[:, 0] ** 2 + way[:, 1] ** 2)
    segments[:, 4] = 1.0
    np.divide(way, size[:, np.newaxis], out=segments[:, 4:6], where=size[:, np.newaxis] > 0.0)
    return segments, np.repeat(np.arange(len(paths), dtype=np.int64), paths.segments)


def vertices_of(paths: Paths) -> tuple[FloatArray, IntArray]:
    """Every vertex (n, 2), closing vertices left out, and where each object begins among them (objects + 1,).

    Examples
    --------
    >>> vertices_of(pack(np.array([shapely.Polygon([(0, 0), (4, 0), (0, 3)])])))[0].tolist()
    [[0.0, 0.0], [4.0, 0.0], [0.0, 3.0]]
    """
    kept = np.ones(len(paths.xy), dtype=bool)
    kept[paths.path[1:][paths.role != 0] - 1] = False
    return np.ascontiguousarray(paths.xy[kept]), starts(paths.vertices)


def starts(counts: IntArray) -> IntArray:
    """Where each of consecutive groups of these sizes begins, and where the last one ends.

    Examples
    --------
    >>> starts(np.array([2, 0, 3]))
    array([0, 2, 2, 5])
    """
    out = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=out[1:])
    return out


def segment_boxes(segments: FloatArray, margin: float = 0.0) -> ObjectArray:
    """One two-point line a segment whose bounding box is that of the segment, wider by ``margin`` on every side.

    Only the box counts to an index, and such a line is the cheapest geometry that has it.

    Examples
    --------
    >>> segment_boxes(np.array([[0.0, 3.0, 2.0, 1.0]]), 0.5)[0].bounds
    (-0.5, 0.5, 2.5, 3.5)
    """
    low = np.minimum(segments[:, :2], segments[:, 2:4]) - margin
    high = np.maximum(segments[:, :2], segments[:, 2:4]) + margin
    return np.asarray(shapely.linestrings(np.stack([low, high], axis=1)), dtype=np.object_)


def in_threads(work: Callable[[int, int], Any], n: int, slice_size: int) -> None:
    """Call ``work(start, stop)`` over slices of ``range(n)``, on all cores when there is more than one slice.

    The work must release the interpreter lock and write only to its own slice, so the result does not depend on how
    many cores there are. Numba's own ``prange`` is not used: one of its back ends ends the process when two Python
    threads enter it at once.

    Examples
    --------
    >>> out = np.zeros(5)
    >>> in_threads(lambda start, stop: out[start:stop].fill(stop), 5, 2)
    >>> out
    array([2., 2., 4., 4., 5.])
    """
    starts = range(0, n, slice_size)
    if len(starts) <= 1:
        if n:
            work(0, n)
        return
    with ThreadPoolExecutor(max_workers=min(len(starts), _cores())) as pool:
        for done in [pool.submit(work, start, min(start + slice_size, n)) for start in starts]:
            done.result()


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def aligned(a: ObjectArray, b: ObjectArray) -> tuple[ObjectArray, ObjectArray]:
    """Both arrays of geometries, which must be equally long.

    Examples
    --------
    >>> aligned(np.array([shapely.Point(0, 0)]), np.array([]))
    Traceback (most recent call last):
      ...
    ValueError: expected aligned pairs a[i], b[i]; found 1 and 0 geometries
    """
    left: NDArray[Any] = np.asarray(a, dtype=np.object_).reshape(-1)
    right: NDArray[Any] = np.asarray(b, dtype=np.object_).reshape(-1)
    if len(left) != len(right):
        raise ValueError(f"expected aligned pairs a[i], b[i]; found {len(left)} and {len(right)} geometries")
    return left, right
