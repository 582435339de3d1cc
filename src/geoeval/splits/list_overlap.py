"""Samples of different splits that share ground: by their geometries where there are any, else by their boxes.

Areas         true areas in m²: in the list's own projection where its scale is within 1 %, else in a cylindrical
              equal-area projection of the world, in which a box in degrees stays a box.
Points        a point or line has no area: it overlaps what it lies in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from geoeval.errors import InputError
from geoeval.model import FloatArray, IntArray, ObjectArray
from geoeval.splits.list_pairs import PairTally
from geoeval.splits.lists import SplitList
from geoeval.splits.table import coded

_EQUAL_AREA = "EPSG:6933"
_CHUNK = 20_000
#: Parts of an edge that is straight in its own system and bent in the common one.
_PARTS = 32


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """Shapes of some rows of a list in one plane of metres.

    Parameters
    ----------
    rows
        (shapes,) row of each; a shape across ±180° stands there a second time, a world's width away.
    again
        (shapes,) True for the second one.
    system
        What the areas were measured in.
    """

    rows: IntArray
    shapes: ObjectArray
    again: IntArray
    system: str


def ground(given: SplitList) -> Ground | None:
    """Shapes of a list in metres; None where no row has a place on Earth.

    Raises
    ------
    InputError
        A shape around a pole, in a list that has no system in common.
    """
    import shapely

    table = given.table
    rows = np.flatnonzero(table.has_box()).astype(np.int64)
    if not len(rows):
        return None
    codes, words = coded(table.texts["crs"].take(rows))
    own = _own_system(table.bounds[rows], words)
    shapes = _shapes(given, rows)
    if own is not None:
        factor, name = own
        moved = shapes if factor == 1.0 else shapely.transform(shapes, lambda xy: xy * factor)
        return Ground(rows, moved, np.zeros(len(rows), dtype=np.int64), name)
    return _worldwide(given, rows, shapes, codes, words)


def _own_system(bounds: FloatArray, words: list[str]) -> tuple[float, str] | None:
    """Metres in its unit, and the name, of the one projection that all rows have, if lengths hold there."""
    from geoeval.geometry.crs import describe, metric_crs, parse_crs

    systems = {describe(parse_crs(word)) for word in words}
    crs = parse_crs(words[0])
    if len(systems) > 1 or crs.is_geographic:
        return None
    extent = (*bounds[:, :2].min(axis=0).tolist(), *bounds[:, 2:].max(axis=0).tolist())
    chosen, _ = metric_crs(crs, extent)
    factor = float(crs.axis_info[0].unit_conversion_factor)
    name = describe(crs)
    if abs(factor - 1.0) < 1e-12:
        return (1.0, name) if describe(chosen) == name else None
    return (factor, f"{name} in metres") if chosen.name == f"{crs.name} in metres" else None


def _shapes(given: SplitList, rows: IntArray) -> ObjectArray:
    import shapely

    if given.shapes is not None:
        return np.asarray(given.shapes[rows], dtype=np.object_)
    box = given.table.bounds[rows].copy()
    across = box[:, 0] > box[:, 2]
    box[across, 2] += 360.0
    return np.asarray(shapely.box(*box.T), dtype=np.object_)


def _worldwide(given: SplitList, rows: IntArray, shapes: ObjectArray, codes: IntArray, words: list[str]) -> Ground:
    import shapely

    degrees = np.empty(len(rows), dtype=np.object_)
    for code, word in enumerate(words):
        own = codes == code
        degrees[own] = in_degrees(shapes[own], word)
    box = shapely.bounds(degrees)
    for at in np.flatnonzero((box[:, 2] - box[:, 0] > 180) | ~np.isfinite(box).all(axis=1)).tolist():
        if given.shapes is None and _is_degrees(words[codes[at]]):
            continue
        degrees[at] = shapely.transform(degrees[at], _turned)
        west, _, east, _ = shapely.bounds(degrees[at])
        if not east - west <= 180:
            raise InputError(
                f"record {given.table.text('sample_id', int(rows[at]))!r}: its shape goes around a pole or half the "
                "world, or leaves its system, so its area has no place beside the others; give all samples in one "
                "projected system"
            )
    box = shapely.bounds(degrees)
    over, under = np.flatnonzero(box[:, 2] > 180), np.flatnonzero(box[:, 0] < -180)
    copies = [shapely.transform(degrees[over], _shifted(-360.0)), shapely.transform(degrees[under], _shifted(360.0))]
    whole = np.concatenate([degrees, *copies])
    again = np.r_[np.zeros(len(rows)), np.ones(len(over) + len(under))].astype(np.int64)
    place = np.r_[rows, rows[over], rows[under]].astype(np.int64)
    return Ground(place, _equal_area(whole), again, f"{_EQUAL_AREA} (true areas)")


def _shifted(degrees: float) -> Callable[[FloatArray], FloatArray]:
    return lambda xy: np.stack([xy[:, 0] + degrees, xy[:, 1]], axis=1)


def _turned(xy: FloatArray) -> FloatArray:
    """Western longitudes a turn further east."""
    return np.stack([np.where(xy[:, 0] < 0, xy[:, 0] + 360, xy[:, 0]), xy[:, 1]], axis=1)


def _is_degrees(word: str) -> bool:
    from geoeval.geometry.crs import parse_crs

    return bool(parse_crs(word).is_geographic)


def in_degrees(shapes: ObjectArray, word: str) -> ObjectArray:
    """Shapes as longitude and latitude; edges of another system are bent, so they get more points."""
    import pyproj
    import shapely

    from geoeval.geometry.crs import parse_crs, same_crs
    from geoeval.geometry.scale import transformer

    crs, target = parse_crs(word), pyproj.CRS("OGC:CRS84")
    if same_crs(crs, target):
        return shapes
    way = transformer(crs, target)
    box = shapely.bounds(shapes)
    longest = np.maximum(box[:, 2] - box[:, 0], box[:, 3] - box[:, 1])
    dense = shapely.segmentize(shapes, np.maximum(longest / _PARTS, 1e-9))

    def move(xy: FloatArray) -> FloatArray:
        return np.stack(way.transform(xy[:, 0], xy[:, 1]), axis=1)

    return np.asarray(shapely.transform(dense, move), dtype=np.object_)


def _equal_area(shapes: ObjectArray) -> ObjectArray:
    import pyproj
    import shapely

    from geoeval.geometry.scale import transformer

    way = transformer(pyproj.CRS("OGC:CRS84"), pyproj.CRS(_EQUAL_AREA))
    edge = way.transform(180.0, 0.0)[0] / 180.0

    def move(xy: FloatArray) -> FloatArray:
        # x is longitude times a constant, also beyond ±180°, where the projection itself would turn back.
        return np.stack([xy[:, 0] * edge, way.transform(np.zeros(len(xy)), xy[:, 1])[1]], axis=1)

    return np.asarray(shapely.transform(shapes, move), dtype=np.object_)


def overlapping(
    place: Ground,
    split: IntArray,
    names: tuple[str, ...],
    min_area_m2: float,
    *,
    keep: int,
    unique: IntArray | None = None,
) -> PairTally:
    """Pairs of samples in different splits that share more than an area; the largest come first.

    Parameters
    ----------
    split
        (n,) split of every row of the list.
    """
    import shapely

    found = PairTally(split, names, keep=keep, unique=unique)
    of = split[place.rows]
    for own in range(len(names)):
        there, later = np.flatnonzero(of == own), np.flatnonzero(of > own)
        if not len(there) or not len(later):
            continue
        tree = shapely.STRtree(place.shapes[there])
        # A shape and its copy stay together, so that their areas can be added.
        later = later[np.argsort(place.rows[later], kind="stable")]
        cuts = np.flatnonzero(np.diff(place.rows[later])) + 1
        for chunk in np.split(later, cuts[_CHUNK - 1 :: _CHUNK]):
            a, b = tree.query(place.shapes[chunk], predicate="intersects")
            _add(found, place, chunk[a], there[b], min_area_m2)
    return found


def _add(found: PairTally, place: Ground, a: IntArray, b: IntArray, min_area_m2: float) -> None:
    import shapely

    once = place.again[a] + place.again[b] < 2
    a, b = a[once], b[once]
    one, other = place.shapes[a], place.shapes[b]
    key, at = np.unique(np.stack([place.rows[a], place.rows[b]], axis=1), axis=0, return_inverse=True)
    at = at.reshape(-1)
    areas = shapely.area(shapely.intersection(one, other))
    shared: FloatArray = np.round(np.bincount(at, weights=areas, minlength=len(key)), 6).astype(np.float64)
    flat = np.zeros(len(key), dtype=np.bool_)
    flat[at] = (shapely.area(one) == 0) | (shapely.area(other) == 0)
    keep = flat | (shared > min_area_m2)
    found.add(key[keep, 0], key[keep, 1], -shared[keep])
    for first, second, side in ((one, other, 0), (other, one, 1)):
        inside = shapely.covered_by(first, second) & keep[at]
        found.mark_inside(key[at[inside], side], key[at[inside], 1 - side])
