"""Boxes on the Earth as regions: how far apart they are, and which of them are too close.

Region        a box in degrees lies between two parallels and two meridians (west > east: it crosses ±180°); a box in a
              cylindrical projection is one of these as well; any other is the image of its rectangle in its own system.
Distance      along the geodesic on the WGS 84 ellipsoid, from region to region: 0 where they touch or overlap, whatever
              their systems. Exact to 1 mm + 1e-6 of the distance; edges touch at 0.1 mm.
Too close     at most the limit plus that uncertainty, so that what cannot be decided counts as too close.
Search        a tree of bounding volumes in geocentric coordinates, which has neither poles nor an antimeridian.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyproj

from geoeval.errors import CRSMissing, GeoevalError, InputError
from geoeval.geometry.crs import describe, horizontal, parse_crs
from geoeval.geometry.scale import transformer
from geoeval.model import FloatArray, IntArray
from geoeval.splits.across import Across, first_pairs, split_codes
from geoeval.splits.box_curves import Curves, edge_curves, geocentric

#: Largest limit of a search, in metres.
MOST_DISTANCE_M = 1_000_000.0

_CYLINDRICAL = (
    "Mercator (variant A)",
    "Mercator (variant B)",
    "Popular Visualisation Pseudo Mercator",
    "Equidistant Cylindrical",
    "Equidistant Cylindrical (Spherical)",
    "Lambert Cylindrical Equal Area",
)
_SAME_DATUM_DEG = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Regions on the ellipsoid, one a sample.

    Parameters
    ----------
    frame
        (boxes, 4) west, width, south, north in degrees: the region itself or, in a projection, a frame around it.
    bounds
        (boxes, 4) the bounds as given.
    system
        (boxes,) number of the coordinate system; -1 where the frame is the region.
    orientation
        (boxes,) 0 where the frame is the region; else 1 or -1 as the edges run counter-clockwise or clockwise on the
        Earth, NaN where the box has no area.
    curves
        The four edges of each box.
    """

    frame: FloatArray
    bounds: FloatArray
    system: IntArray
    orientation: FloatArray
    curves: Curves

    def __len__(self) -> int:
        return len(self.frame)


def from_bounds(
    minx: Any, miny: Any, maxx: Any, maxy: Any, crs: Any, *, name: Callable[[int], str] | None = None
) -> Boxes:
    """Boxes from bounds in any coordinate system.

    Parameters
    ----------
    minx, miny, maxx, maxy
        (boxes,) bounds in x, y order: longitude first. In degrees, ``minx > maxx`` means that the box crosses ±180°.
    crs
        One system for all, or a sequence of one a box.
    name
        What to call a box in a message; its row by default.

    Raises
    ------
    InputError
        Where a bound is not finite, a minimum is above its maximum, or a box leaves the area of its system.
    ConfigError, CRSMissing
        Where a system is unknown.

    Examples
    --------
    >>> boxes = from_bounds([179.9, 0], [10, 0], [-179.9, 1], [10.1, 1], "EPSG:4326")
    >>> boxes.frame[0].round(6).tolist()
    [179.9, 0.2, 10.0, 10.1]
    """
    bounds = np.stack([np.asarray(side, dtype=np.float64).reshape(-1) for side in (minx, miny, maxx, maxy)], axis=1)
    called = name or (lambda row: f"row {row}")
    _refuse(~np.isfinite(bounds).all(axis=1), bounds, "bounds must be finite numbers", called)
    _refuse(bounds[:, 1] > bounds[:, 3], bounds, "the least y must not be above the greatest", called)
    systems, system_of = _systems(crs, len(bounds), called)
    frame, orientation = np.zeros((len(bounds), 4)), np.zeros(len(bounds))
    system = np.full(len(bounds), -1, dtype=np.int64)
    parts: list[tuple[IntArray, Curves]] = []
    for number, one in enumerate(systems):
        rows = np.flatnonzero(system_of == number)

        def named(k: int, rows: IntArray = rows, one: pyproj.CRS = one) -> str:
            return f"{called(int(rows[k]))} ({describe(one)})"

        if _is_graticule(one):
            frame[rows] = _graticule_frames(bounds[rows], one, named)
            continue
        place, flat = _place(one), bounds[rows].copy()
        if one.is_geographic:
            flat = _unwrapped(flat, one, named)
            # Longitudes repeat, so bounds of two boxes cannot be compared: to each other they are of different systems.
            system[rows] = len(systems) + rows
        else:
            _refuse(flat[:, 0] > flat[:, 2], flat, "the least x must not be above the greatest", named)
            system[rows] = number
        parts.append((rows, edge_curves(flat, place, named)))
        orientation[rows] = _orientations(flat, place)
    plain = np.flatnonzero(system < 0)
    west, width, south, north = frame[plain].T
    edges = np.stack([west, south, west + width, north], axis=1)
    parts.append((plain, edge_curves(edges, lambda _, x, y: (x, y), lambda k: called(int(plain[k])))))
    curves = _merged(parts, len(bounds))
    for rows, own in parts[:-1]:
        from geoeval.splits._box_kernels import frames

        frame[rows] = frames(own.cubic, own.start)
    return Boxes(frame, bounds, system, orientation, curves)


def distance(boxes: Boxes, i: IntArray, j: IntArray) -> FloatArray:
    """Geodesic distance in metres between pairs of boxes; 0 where they touch or overlap.

    Examples
    --------
    >>> boxes = from_bounds([179, -180, 0], [0, 0, 2], [180, -179, 180], [1, 1, 3], "EPSG:4326")
    >>> distance(boxes, np.array([0, 0]), np.array([1, 2])).round(1).tolist()
    [0.0, 110575.1]
    """
    from geoeval.splits.box_distance import distance_of

    return distance_of(boxes, np.asarray(i, dtype=np.int64).reshape(-1), np.asarray(j, dtype=np.int64).reshape(-1))


def too_close_m(distance_m: float) -> float:
    """The limit with the uncertainty of a distance added.

    Examples
    --------
    >>> too_close_m(2000.0)
    2000.003
    """
    if not 0 <= distance_m <= MOST_DISTANCE_M:
        raise ValueError(f"distance_m must lie in 0 to {MOST_DISTANCE_M:g} metres, got {distance_m!r}")
    return distance_m + 1e-3 + 1e-6 * distance_m


def within_groups(boxes: Boxes, distance_m: float) -> IntArray:
    """Connected components of boxes: two are linked where they are at most ``distance_m`` apart.

    Returns
    -------
    IntArray
        (boxes,) number of the component, from 0, in order of first members.

    Examples
    --------
    >>> boxes = from_bounds([0, 5, 0.11], [0, 5, 0], [0.1, 6, 0.2], [0.1, 6, 0.1], "EPSG:4326")
    >>> within_groups(boxes, 2000.0).tolist()
    [0, 1, 0]
    """
    from geoeval.splits import _box_tree_kernels as trees
    from geoeval.splits._union_kernels import join, labels

    limit = too_close_m(distance_m)
    parent = np.arange(len(boxes), dtype=np.int64)
    if len(boxes):
        i, j = trees.unite(_shapes(boxes), _curves(boxes), _tree(boxes), limit, parent)
        for a, b in _confirmed(boxes, i, j, limit)[0]:
            join(parent, a, b)
    return np.asarray(labels(parent), dtype=np.int64)


def within_across(boxes: Boxes, split: IntArray, distance_m: float, *, witnesses: int = 100) -> Across:
    """Pairs of boxes in different splits that are at most ``distance_m`` apart, with distances in metres.

    Parameters
    ----------
    split
        (boxes,) split of each box, any integers.
    witnesses
        How many pairs to return; the count is exact whatever it is.

    Examples
    --------
    >>> boxes = from_bounds([0, 0.05, 0.11], [0, 0, 0], [0.1, 0.2, 0.2], [0.1, 0.1, 0.1], "EPSG:4326")
    >>> found = within_across(boxes, np.array([0, 0, 1]), 2000.0)
    >>> found.count, found.i.tolist(), found.j.tolist(), found.distance.round(1).tolist()
    (2, [1, 0], [2, 2], [0.0, 1113.2])
    """
    from geoeval.splits import _box_tree_kernels as trees

    limit = too_close_m(distance_m)
    group = split_codes(split, len(boxes))
    none = np.zeros(0, dtype=np.int64)
    if not len(boxes) or group.max() == 0:
        return Across(0, none, none, np.zeros(0))
    shapes, curves, tree = _shapes(boxes), _curves(boxes), _tree(boxes)
    wanted = max(witnesses, 0)
    size = 2 * wanted + 64
    while True:
        key, pair = np.zeros(size), np.zeros((size, 2), dtype=np.int64)
        count, kept, i, j = trees.across(shapes, curves, tree, group, limit, key, pair)
        (near, metres) = _confirmed(boxes, i, j, limit)
        a = np.concatenate([pair[:kept, 0], near[:, 0]])
        b = np.concatenate([pair[:kept, 1], near[:, 1]])
        exact = np.concatenate([distance(boxes, pair[:kept, 0], pair[:kept, 1]), metres])
        found = first_pairs(a, b, exact, count + len(near), wanted)
        # Kept are the pairs with the least lower bounds. What was dropped is not nearer than the last one kept.
        last = (key[0], pair[0, 0], pair[0, 1])
        if kept < size or not wanted or (found.distance[-1], found.i[-1], found.j[-1]) <= last:
            return found
        size *= 4


def mean_neighbours(boxes: Boxes, distance_m: float, *, sample: int = 20_000) -> float:
    """How many other boxes a box has within ``distance_m``, on average; above about 4, links percolate.

    Parameters
    ----------
    sample
        At most so many boxes are looked at, evenly spread over the Earth; each is compared with all.

    Examples
    --------
    >>> boxes = from_bounds([0, 5, 0.11], [0, 5, 0], [0.1, 6, 0.2], [0.1, 6, 0.1], "EPSG:4326")
    >>> round(mean_neighbours(boxes, 2000.0), 3)
    0.667
    """
    from geoeval.splits import _box_tree_kernels as trees

    limit = too_close_m(distance_m)
    if not len(boxes):
        return 0.0
    chosen = np.linspace(0, len(boxes) - 1, min(sample, len(boxes))).round().astype(np.int64)
    n, i, j = trees.count_neighbours(_shapes(boxes), _curves(boxes), _tree(boxes), chosen, limit)
    return float((n + len(_confirmed(boxes, i, j, limit)[0])) / len(chosen))


def _confirmed(boxes: Boxes, i: IntArray, j: IntArray, limit: float) -> tuple[IntArray, FloatArray]:
    """Pairs near the limit that an exact distance finds too close, and these distances."""
    metres = distance(boxes, i, j)
    near = metres <= limit
    return np.stack([i[near], j[near]], axis=1), metres[near]


def _shapes(boxes: Boxes) -> tuple[FloatArray, FloatArray, IntArray, IntArray, FloatArray]:
    return boxes.frame, boxes.bounds, boxes.system, boxes.curves.start, boxes.orientation


def _curves(boxes: Boxes) -> tuple[FloatArray, FloatArray]:
    return boxes.curves.cubic, boxes.curves.radius


def _tree(boxes: Boxes) -> tuple[IntArray, FloatArray, IntArray, FloatArray]:
    """Boxes along a space-filling curve, their bounding volumes in that order, and a tree over these."""
    from geoeval.splits import _box_tree_kernels as trees

    volume = trees.volumes(boxes.frame)
    order = np.lexsort((*boxes.bounds.T, trees.codes_along_curve(volume))).astype(np.int64)
    start, node = trees.tree_over(volume[order])
    return order, volume[order], start, node


def _refuse(bad: Any, bounds: FloatArray, what: str, name: Callable[[int], str]) -> None:
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"{name(row)}: {what}, got (minx, miny, maxx, maxy) = {tuple(bounds[row].tolist())}; "
            f"{int(bad.sum())} boxes in all; correct the bounds or leave the sample out"
        )


def _systems(crs: Any, n: int, name: Callable[[int], str]) -> tuple[list[pyproj.CRS], IntArray]:
    """Different systems, and the number of each box's system."""
    if isinstance(crs, (str, int, pyproj.CRS)) or crs is None:
        texts: Sequence[Any] = [crs]
        number = np.zeros(n, dtype=np.int64)
    else:
        given = list(crs)
        if len(given) != n:
            raise ValueError(f"crs must be one system or one a box ({n}), got {len(given)}")
        known: dict[Any, int] = {}
        number = np.array([known.setdefault(text, len(known)) for text in given], dtype=np.int64)
        texts = list(known)
    systems = []
    for k, text in enumerate(texts):
        if not (number == k).any():
            continue
        try:
            if isinstance(text, float) and not text.is_integer():
                raise CRSMissing("no coordinate reference system; declare it, for example 'EPSG:32633'")
            systems.append(horizontal(parse_crs(int(text) if isinstance(text, float) else text)))
        except GeoevalError as error:
            raise type(error)(f"{name(int(np.flatnonzero(number == k)[0]))}: {error}") from error
    return systems, number


def _place(crs: pyproj.CRS) -> Callable[[IntArray, FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    way = transformer(crs, pyproj.CRS("OGC:CRS84"))

    def place(_: IntArray, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        lon, lat = way.transform(x, y)
        return lon, lat

    return place


def _is_graticule(crs: pyproj.CRS) -> bool:
    """True where x alone gives the longitude and y alone the latitude, on a datum that counts as WGS 84."""
    if not crs.is_geographic:
        operation = crs.coordinate_operation
        return operation is not None and operation.method_name in _CYLINDRICAL and _keeps_datum(crs.geodetic_crs)
    return not crs.is_derived and _keeps_datum(crs)


def _keeps_datum(crs: pyproj.CRS | None) -> bool:
    """True for plain degrees that mean the same place in WGS 84."""
    if crs is None or crs.prime_meridian is None or crs.prime_meridian.longitude != 0:
        return False
    lon, lat = np.meshgrid(np.array([-120.0, -60.0, 10.0, 100.0, 150.0]), np.array([-40.0, 5.0, 50.0, 70.0]))
    to_lon, to_lat = transformer(crs, pyproj.CRS("OGC:CRS84")).transform(lon, lat)
    return bool(np.allclose(to_lon, lon, 0, _SAME_DATUM_DEG) and np.allclose(to_lat, lat, 0, _SAME_DATUM_DEG))


def _graticule_frames(bounds: FloatArray, crs: pyproj.CRS, name: Callable[[int], str]) -> FloatArray:
    """West, width, south, north in degrees of boxes between parallels and meridians."""
    if crs.is_geographic:
        west, south, east, north = bounds.T
        _refuse((np.abs(bounds[:, [0, 2]]) > 360).any(axis=1), bounds, "longitudes must lie in [-360, 360]", name)
        width = np.where(west > east, east - west + 360.0, east - west)
    else:
        _refuse(bounds[:, 0] > bounds[:, 2], bounds, "the least x must not be above the greatest", name)
        way = transformer(crs, pyproj.CRS("OGC:CRS84"))
        middle = (bounds[:, 0] + bounds[:, 2]) / 2
        west, south = way.transform(bounds[:, 0], bounds[:, 1])
        east, north = way.transform(bounds[:, 2], bounds[:, 3])
        half, _ = way.transform(middle, bounds[:, 1])
        finite = np.isfinite(np.stack([west, south, east, north, half])).all(axis=0)
        _refuse(~finite, bounds, "the bounds reach outside of the area where their system is defined", name)
        width = (half - west) % 360.0 + (east - half) % 360.0
    _refuse((width < 0) | (width > 360 + 1e-9), bounds, "a box must not be wider than the world", name)
    _refuse(~((south >= -90) & (north <= 90)), bounds, "latitudes must lie in [-90, 90] (are x and y swapped?)", name)
    return np.stack([west, np.minimum(width, 360.0), south, north], axis=1)


def _unwrapped(bounds: FloatArray, crs: pyproj.CRS, name: Callable[[int], str]) -> FloatArray:
    """Bounds in degrees of another datum, with the east beyond the west where a box crosses the turn of longitudes."""
    circle = 2 * np.pi / crs.axis_info[0].unit_conversion_factor
    out = bounds.copy()
    out[:, 2] += np.where(bounds[:, 0] > bounds[:, 2], circle, 0.0)
    width = out[:, 2] - out[:, 0]
    what = "a box on another datum than WGS 84 must not be wider than half a circle (give it in EPSG:4326)"
    _refuse((width < 0) | (width > circle / 2), bounds, what, name)
    _refuse((np.abs(bounds[:, [1, 3]]) > circle / 4).any(axis=1), bounds, "latitudes must lie in [-90, 90]", name)
    return out


def _orientations(
    bounds: FloatArray, place: Callable[[IntArray, FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
) -> FloatArray:
    """1 where a box's own axes turn counter-clockwise on the Earth, -1 where clockwise, NaN where it has no area."""
    x0, y0, x1, y1 = bounds.T
    rows = np.arange(len(bounds))
    x, y = x0 + (x1 - x0) * 0.45, y0 + (y1 - y0) * 0.45
    here, right, above = (
        geocentric(*place(rows, px, py)) for px, py in ((x, y), (x + (x1 - x0) * 0.01, y), (x, y + (y1 - y0) * 0.01))
    )
    sign: FloatArray = np.sign(np.einsum("ij,ij->i", np.cross(right - here, above - here), here))
    return np.where((x1 > x0) & (y1 > y0), sign, np.nan)


def _merged(parts: list[tuple[IntArray, Curves]], n: int) -> Curves:
    """Curves of all boxes in their order."""
    count = np.zeros((n, 4), dtype=np.int64)
    for rows, own in parts:
        count[rows] = np.diff(own.start).reshape(-1, 4)
    start = np.concatenate([[0], np.cumsum(count.reshape(-1))]).astype(np.int64)
    cubic, radius = np.zeros((int(start[-1]), 4, 3)), np.zeros(int(start[-1]))
    for rows, own in parts:
        size = count[rows].sum(axis=1)
        to = np.repeat(start[4 * rows] - own.start[:-1:4], size) + np.arange(len(own.radius))
        cubic[to], radius[to] = own.cubic, own.radius
    return Curves(start, cubic, radius)
