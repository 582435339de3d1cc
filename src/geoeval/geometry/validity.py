"""What is wrong with a geometry, in one word, and its repair.

Validity is that of OGC Simple Features as GEOS checks it. A ring that is not closed cannot be held as a geometry at
all: readers report it (``ring-not-closed``) while they read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from geoeval.model import ObjectArray

Mask = NDArray[np.bool_]

#: Compactness (4πA/P²) below which a polygon is a sliver; a rectangle of 1 × 60 has 0.05, a square 0.79.
SLIVER_COMPACTNESS = 0.05

#: First words of what GEOS says, and our word for it. The longer text stands first where one begins another.
_REASONS = (
    ("ring self-intersection", "ring-self-intersection"),
    ("self-intersection", "self-intersection"),
    ("hole lies outside shell", "hole-outside-shell"),
    ("holes are nested", "nested-holes"),
    ("nested shells", "nested-shell"),
    ("nested holes", "nested-holes"),
    ("duplicate rings", "duplicate-ring"),
    ("too few points", "too-few-points"),
    ("invalid coordinate", "invalid-coordinate"),
    ("interior is disconnected", "disconnected-interior"),
    ("ring is not closed", "ring-not-closed"),
    ("ring not closed", "ring-not-closed"),
)

#: Every word that :func:`reasons` may give.
REASONS = ("null", "empty", "zero-area", *dict.fromkeys(slug for _, slug in _REASONS), "invalid")


def reasons(geometry: ObjectArray) -> ObjectArray:
    """Why each geometry cannot be measured as it is; ``""`` where it can.

    ``null`` (None), ``empty``, ``zero-area`` (a polygon that encloses nothing, even once repaired), else what GEOS
    finds first, as a word of :data:`REASONS`.

    Parameters
    ----------
    geometry
        (features,) shapely geometries or None.

    Examples
    --------
    >>> bow = shapely.from_wkt("POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))")
    >>> flat = shapely.from_wkt("POLYGON ((0 0, 1 0, 2 0, 0 0))")
    >>> reasons(np.array([shapely.box(0, 0, 1, 1), bow, flat, None], dtype=object)).tolist()
    ['', 'self-intersection', 'zero-area', 'null']
    """
    shapes = np.asarray(geometry, dtype=np.object_).reshape(-1)
    out = np.full(len(shapes), "", dtype=np.object_)
    missing = shapely.is_missing(shapes)
    empty = shapely.is_empty(shapes) & ~missing
    invalid = ~shapely.is_valid(shapes) & ~missing & ~empty
    out[invalid] = [_slug(text) for text in shapely.is_valid_reason(shapes[invalid])]
    for at in np.flatnonzero(out == "self-intersection").tolist():
        if _repeats_a_ring(shapes[at]):
            out[at] = "duplicate-ring"
    flat = (shapely.get_dimensions(shapes) == 2) & ~missing & ~empty & (out != "invalid-coordinate")
    with np.errstate(invalid="ignore", over="ignore"):
        flat &= shapely.area(shapes) == 0
    # The lobes of a bow tie may cancel; only what encloses nothing after repair has no area.
    none = np.flatnonzero(flat)
    out[none[shapely.area(repair(shapes[none])) == 0]] = "zero-area"
    out[empty] = "empty"
    out[missing] = "null"
    return out


def _repeats_a_ring(shape: Any) -> bool:
    """Whether two rings are the same line; GEOS reports that as a self-intersection."""
    if shapely.get_dimensions(shape) != 2:
        return False
    rings = shapely.get_rings([part for part in _parts(shape) if shapely.get_dimensions(part) == 2])
    return len(rings) > 1 and len(set(shapely.to_wkb(shapely.normalize(shapely.force_2d(rings))))) < len(rings)


def _slug(text: str) -> str:
    said = text.lower()
    return next((slug for start, slug in _REASONS if said.startswith(start)), "invalid")


def repair(geometry: ObjectArray) -> ObjectArray:
    """Valid geometries of the same dimension: GEOS's ``make_valid``, of which only the fitting parts are kept.

    Of a polygon's repair the polygons are kept, of a line's the lines, of a point's the points; stray lines and
    points go. A geometry of which nothing is left, or whose coordinates are not finite, becomes empty. Valid geometries
    and None come back as they are.

    Parameters
    ----------
    geometry
        (features,) shapely geometries or None.

    Examples
    --------
    >>> bow = shapely.from_wkt("POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))")
    >>> [round(shape.area, 6) for shape in repair(np.array([bow], dtype=object))]
    [2.0]
    """
    out = np.array(np.asarray(geometry, dtype=np.object_).reshape(-1), dtype=np.object_)
    for at in np.flatnonzero(~shapely.is_valid(out) & ~shapely.is_missing(out)).tolist():
        shape = out[at]
        dimension = int(shapely.get_dimensions(shape))
        if not np.isfinite(shapely.get_coordinates(shape)).all():
            out[at] = _collected([], dimension)
            continue
        parts = [part for part in _parts(shapely.make_valid(shape)) if shapely.get_dimensions(part) == dimension]
        out[at] = _collected(parts, dimension)
    return out


def slivers(geometry: ObjectArray, compactness: float = SLIVER_COMPACTNESS) -> Mask:
    """True for polygons so narrow that they are probably leftovers of an overlay.

    A ring-shaped polygon also has a long boundary; holes count towards the perimeter.

    Examples
    --------
    >>> slivers(np.array([shapely.box(0, 0, 1, 1), shapely.box(0, 0, 100, 1)], dtype=object)).tolist()
    [False, True]
    """
    shapes = np.asarray(geometry, dtype=np.object_).reshape(-1)
    with np.errstate(invalid="ignore", over="ignore"):
        area, perimeter = np.asarray(shapely.area(shapes)), np.asarray(shapely.length(shapes))
        narrow = np.asarray(4 * np.pi * area < compactness * perimeter**2, dtype=np.bool_)
    measurable = (shapely.get_dimensions(shapes) == 2) & (area > 0) & np.isfinite(perimeter)
    return np.asarray(measurable & narrow, dtype=np.bool_)


def _parts(shape: Any) -> list[Any]:
    """Single geometries of a collection, however deep."""
    if not hasattr(shape, "geoms"):
        return [shape]
    return [leaf for part in shape.geoms for leaf in _parts(part) if not leaf.is_empty]


def _collected(parts: list[Any], dimension: int) -> Any:
    if len(parts) == 1:
        return parts[0]
    kinds: tuple[Any, ...] = (shapely.MultiPoint, shapely.MultiLineString, shapely.MultiPolygon)
    many = kinds[max(dimension, 0)](parts)
    return many if many.is_valid else shapely.unary_union(parts)
