"""Which shapes meet which boxes on Earth, whatever their systems and wherever longitudes are cut.

Meeting       a shape is compared with a box in the system of the box, where the box is a rectangle. A shape that has no
              place there, falls apart at the antimeridian or around a pole, or is so large that its edges bend on the
              way, is compared in its own system.
Reaching      a shape reaches into a box where it meets the inside; what only touches an edge does not. A box without an
              area is all edge, and is reached by what meets it.
Rounding      on the way between systems a coordinate moves a little: an own box is that much wider, and a box that must
              not be reached into is that much narrower.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from geoeval.model import FloatArray, IntArray, ObjectArray

Mask = NDArray[np.bool_]

#: What rounding on the way from another system may move a coordinate, in degrees and in metres.
_ROUNDING_DEG, _ROUNDING_M = 1e-8, 1e-3

#: What counting a longitude from elsewhere may move it.
_ROUNDING_TURN = 1e-12

#: Extent above which the edges of a shape may bend in another system, in degrees and in metres.
_LARGE_DEG, _LARGE_M = 1.0, 100_000.0

#: Least and most x and y, in the order of a box's corners.
_ACROSS, _ALONG = [0, 1, 1, 0], [0, 0, 1, 1]

#: Points on each edge of a box in another system.
_EDGE = 16


def meets(shapes: ObjectArray, crs: Any, bounds: FloatArray, systems: ObjectArray) -> Mask:
    """Which shapes meet their boxes, edges included; what has no place in either system does not.

    Parameters
    ----------
    shapes
        (n,) shapely geometries in ``crs``.
    bounds
        (n, 4) the box of each shape, in the system of that box.
    systems
        (n,) these systems.

    Examples
    --------
    >>> import pyproj
    >>> points = shapely.points([[-179.9, 10.5], [0.0, 10.5]])
    >>> box = np.array([[179.5, 10.0, -179.5, 11.0]] * 2)
    >>> meets(points, pyproj.CRS("EPSG:4326"), box, np.array(["EPSG:4326"] * 2, dtype=object)).tolist()
    [True, False]
    """
    out = np.zeros(len(shapes), dtype=np.bool_)
    for _, rows, shape, box in _side_by_side(shapes, crs, bounds, systems):
        out[rows] |= shapely.intersects(shape, box)
    return out


def shares(shapes: ObjectArray, crs: Any, bounds: FloatArray, systems: ObjectArray) -> FloatArray:
    """Which part of the area of each shape lies in its box; 0 where a shape has no area.

    Parameters
    ----------
    shapes, crs, bounds, systems
        As for :func:`meets`.

    Examples
    --------
    >>> import pyproj
    >>> field, box = np.array([shapely.box(0, 0, 10, 10)]), np.array([[4.0, 0.0, 50.0, 10.0]])
    >>> shares(field, pyproj.CRS("EPSG:32631"), box, np.array(["EPSG:32631"], dtype=object)).tolist()
    [0.6]
    """
    out = np.zeros((2, len(shapes)))
    for way, rows, shape, box in _side_by_side(shapes, crs, bounds, systems):
        whole = shapely.area(shape)
        part = shapely.area(shapely.intersection(shapely.make_valid(shape), shapely.make_valid(box)))
        out[way, rows] += np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)
    return np.asarray(np.round(out.max(axis=0), 9))


class Ground:
    """Boxes that shapes may not reach into.

    Parameters
    ----------
    bounds
        (n, 4) the boxes, each in its own system.
    systems
        (n,) these systems.

    Examples
    --------
    >>> import pyproj
    >>> ground = Ground(np.array([[0.0, 0.0, 10.0, 10.0]]), np.array(["EPSG:32631"], dtype=object))
    >>> shapes = np.array([shapely.Point(5, 5), shapely.Point(10, 5), shapely.MultiPoint([(5, 5), (99, 99)])])
    >>> shape, box = ground.reached(shapes, pyproj.CRS("EPSG:32631"))
    >>> shape.tolist(), box.tolist()
    ([0, 2], [0, 0])
    """

    def __init__(self, bounds: FloatArray, systems: ObjectArray) -> None:
        self._groups = [
            (text, np.flatnonzero(systems == text), bounds[systems == text]) for text in dict.fromkeys(systems.tolist())
        ]
        self._trees: dict[tuple[Any, float], Any] = {}

    def reached(self, shapes: ObjectArray, crs: Any) -> tuple[IntArray, IntArray]:
        """Pairs of a shape and a box that it reaches into, in order."""
        none = np.zeros(0, dtype=np.int64)
        pairs = [(none, none)]
        for text, rows, bounds in self._groups:
            system = parsed(text)
            slack = _slack(crs, system)
            moved, lost = _brought(shapes, crs, system)
            here = np.flatnonzero(~lost)
            if (text, slack) not in self._trees:
                self._trees[text, slack] = shapely.STRtree(_rectangles(_inner(bounds, system, slack)))
            found = _hits(moved[here], self._trees[text, slack], _turn(system))
            pairs += [(here[at], rows[box]) for at, box in found]
            again = lost | _large(shapes, crs, system)
            if again.any():
                pairs += [(at, rows[box]) for at, box in _hits_at_home(shapes, again, crs, bounds, system, slack)]
        found_pairs = np.stack([np.concatenate(side) for side in zip(*pairs, strict=True)], axis=1)
        both = np.unique(found_pairs, axis=0)
        return both[:, 0], both[:, 1]


@cache
def parsed(crs: str) -> Any:
    """The horizontal part of a system that a manifest or a file names."""
    from geoeval.geometry.crs import parse_crs

    return parse_crs(crs)


def _side_by_side(
    shapes: ObjectArray, crs: Any, bounds: FloatArray, systems: ObjectArray
) -> Iterator[tuple[int, IntArray, ObjectArray, ObjectArray]]:
    """Rows, their shapes and their boxes as shapes of one system: that of the box (0) or that of the shape (1).

    In degrees, a row comes once for each way to count longitudes.
    """
    for text in dict.fromkeys(systems.tolist()):
        rows, system = np.flatnonzero(systems == text), parsed(text)
        wide = _outer(bounds[rows], system, _slack(crs, system))
        moved, lost = _brought(shapes[rows], crs, system)
        for shift in _shifts(_turn(system)):
            yield 0, rows[~lost], moved[~lost], _rectangles(wide[~lost] + np.array([shift, 0.0, shift, 0.0]))
        again = lost | _large(shapes[rows], crs, system)
        if again.any():
            own, nowhere = _brought(shapes[rows[again]], crs, crs)
            outline, gone = _brought(_outlines(wide[again]), system, crs)
            both = ~(nowhere | gone)
            for shift in _shifts(_turn(crs)):
                yield 1, rows[again][both], own[both], _shifted(outline[both], shift)


def _hits(shapes: ObjectArray, tree: Any, turn: float) -> Iterator[tuple[IntArray, IntArray]]:
    """Pairs of a shape and a member of a tree that meet, whichever way longitudes are counted."""
    if not len(shapes) or not len(tree):
        return
    edges = np.reshape(shapely.bounds(tree.geometries), (-1, 4))
    least, most = np.nanmin(edges[:, 0]), np.nanmax(edges[:, 2])
    own = np.reshape(shapely.bounds(shapes), (-1, 4))
    for shift in _shifts(turn):
        near = np.flatnonzero((own[:, 2] + shift >= least) & (own[:, 0] + shift <= most))
        if len(near):
            at, member = tree.query(_shifted(shapes[near], shift), predicate="intersects")
            yield near[at], member


def _hits_at_home(
    shapes: ObjectArray, again: Mask, crs: Any, bounds: FloatArray, system: Any, slack: float
) -> Iterator[tuple[IntArray, IntArray]]:
    """As :func:`_hits`, in the system of the shapes, for those that the system of the boxes does not do justice."""
    away = np.flatnonzero(again)
    own, nowhere = _brought(shapes[away], crs, crs)
    away, own = away[~nowhere], own[~nowhere]
    inside = _inner(bounds, system, slack)
    near = _near(own, crs, inside, system)
    outline, gone = _brought(_outlines(inside[near]), system, crs)
    for at, box in _hits(own, shapely.STRtree(outline[~gone]), _turn(crs)):
        yield away[at], near[~gone][box]


def _near(shapes: ObjectArray, crs: Any, bounds: FloatArray, system: Any) -> IntArray:
    """Boxes that could meet some shapes, by their corners; edges may bend by no more than the box is wide."""
    if crs.is_geographic or not len(shapes):
        return np.arange(len(bounds))
    corners, gone = _brought(_rectangles(bounds), system, crs)
    edges = np.reshape(shapely.bounds(corners), (-1, 4))
    width = (edges[:, 2:] - edges[:, :2]).max(axis=1, keepdims=True, initial=0.0)
    around = shapely.total_bounds(shapes)
    apart = (edges[:, :2] - width > around[2:]).any(axis=1) | (edges[:, 2:] + width < around[:2]).any(axis=1)
    large = _large(_rectangles(bounds), system, crs)
    return np.flatnonzero(large | ~(gone | apart))


def _brought(shapes: ObjectArray, crs: Any, system: Any) -> tuple[ObjectArray, Mask]:
    """Shapes in another system, in degrees with their middle within half a turn of 0°; and those that get lost."""
    from geoeval.geometry.crs import horizontal, same_crs
    from geoeval.geometry.scale import transformer

    flat = np.array(shapely.force_2d(shapes), dtype=np.object_).reshape(-1)
    at, owner = shapely.get_coordinates(flat, return_index=True)
    same, turn = same_crs(crs, system), _turn(system)
    if not same:
        at = np.stack(transformer(horizontal(crs), horizontal(system)).transform(at[:, 0], at[:, 1]), axis=1)
    lost = np.zeros(len(flat), dtype=np.bool_)
    lost[owner[~np.isfinite(at).all(axis=1)]] = True
    at[lost[owner]] = 0.0
    if turn and len(at):
        if not same:
            # Counted from the first vertex; what then still jumps is too wide, or goes around a pole.
            first = at[np.searchsorted(owner, owner), 0]
            at[:, 0] -= turn * np.round((at[:, 0] - first) / turn)
            jumps = (np.abs(np.diff(at[:, 0])) > turn / 2) & (np.diff(owner) == 0)
            lost[owner[1:][jumps]] = True
        starts = np.flatnonzero(np.diff(owner, prepend=-1))
        middle = np.zeros(len(flat))
        ends = np.minimum.reduceat(at[:, 0], starts), np.maximum.reduceat(at[:, 0], starts)
        middle[owner[starts]] = (ends[0] + ends[1]) / 2
        at[:, 0] -= turn * np.round(middle / turn)[owner]
    return np.asarray(shapely.set_coordinates(flat, at), dtype=np.object_), lost


def _large(shapes: ObjectArray, crs: Any, system: Any) -> Mask:
    """Shapes of another system that are too large to be brought over by their vertices alone."""
    from geoeval.geometry.crs import same_crs

    if same_crs(crs, system):
        return np.zeros(len(shapes), dtype=np.bool_)
    edges = np.reshape(shapely.bounds(shapes), (-1, 4))
    least = _LARGE_DEG if crs.is_geographic else _LARGE_M
    return np.asarray((edges[:, 2:] - edges[:, :2]).max(axis=1, initial=0.0) > least)


def _turn(system: Any) -> float:
    """A whole turn in the unit of the longitudes of a system; 0 where it has none."""
    if not system.is_geographic:
        return 0.0
    from geoeval.geometry.crs import horizontal

    return 2 * np.pi / float(horizontal(system).axis_info[0].unit_conversion_factor)


def _shifts(turn: float) -> tuple[float, ...]:
    return (-turn, 0.0, turn) if turn else (0.0,)


def _shifted(shapes: ObjectArray, shift: float) -> ObjectArray:
    if not shift:
        return shapes
    at = shapely.get_coordinates(shapes)
    at[:, 0] += shift
    return np.asarray(shapely.set_coordinates(shapes.copy(), at), dtype=np.object_)


def _slack(crs: Any, system: Any) -> float:
    from geoeval.geometry.crs import same_crs

    if not same_crs(crs, system):
        return _ROUNDING_DEG if system.is_geographic else _ROUNDING_M
    return _ROUNDING_TURN if system.is_geographic else 0.0


def _unwound(bounds: FloatArray, system: Any) -> FloatArray:
    """Bounds whose least x is below the most, in degrees with their middle within half a turn of 0°."""
    out, turn = bounds.copy(), _turn(system)
    if turn:
        out[:, 2] += np.where(out[:, 0] > out[:, 2], turn, 0.0)
        out[:, [0, 2]] -= turn * np.round((out[:, [0]] + out[:, [2]]) / 2 / turn)
    return out


def _outer(bounds: FloatArray, system: Any, slack: float) -> FloatArray:
    return np.asarray(_unwound(bounds, system) + np.array([-slack, -slack, slack, slack]))


def _inner(bounds: FloatArray, system: Any, slack: float) -> FloatArray:
    """The inside of boxes; a side that rounding would swallow stays, as wide as rounding."""
    out = _unwound(bounds, system)
    least, most = out[:, :2], out[:, 2:]
    thin, middle = most - least <= 2 * slack, (least + most) / 2
    inside = np.nextafter(least + slack, np.inf), np.nextafter(most - slack, -np.inf)
    return np.hstack([np.where(thin, middle - slack, inside[0]), np.where(thin, middle + slack, inside[1])])


def _rectangles(bounds: FloatArray) -> ObjectArray:
    """Boxes as shapes; the hull of a box without an area is the line or the point that it is."""
    lines = shapely.linestrings(np.stack([bounds[:, 0::2][:, _ACROSS], bounds[:, 1::2][:, _ALONG]], axis=2))
    return np.asarray(shapely.convex_hull(lines), dtype=np.object_).reshape(-1)


def _outlines(bounds: FloatArray) -> ObjectArray:
    """Boxes as shapes with points along their edges, so that the edges may bend."""
    corners = np.stack([bounds[:, 0::2][:, _ACROSS], bounds[:, 1::2][:, _ALONG]], axis=2)
    part = np.arange(_EDGE)[:, np.newaxis] / _EDGE
    following = np.roll(corners, -1, axis=1)
    at = corners[:, :, np.newaxis] * (1 - part) + following[:, :, np.newaxis] * part
    ring = at.reshape(len(bounds), 4 * _EDGE, 2)
    return np.asarray(shapely.polygons(np.concatenate([ring, ring[:, :1]], axis=1)), dtype=np.object_).reshape(-1)
