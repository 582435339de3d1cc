"""Where a label lies: in the world, in the pixels of its image, or both; and whether that is where its sample is.

Held       every part of every feature must meet the box of its sample, so that no label of another sample rides along.
Unnamed    where the file names no system, the first of these that fits: what its format means by silence, if that meets
           the box; the pixels of the image; the system of the box. What fits nowhere is refused.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from geoeval.errors import GeoevalError, InputError
from geoeval.model import FloatArray, ObjectArray
from geoeval.splits.assets import Frame
from geoeval.splits.label_files import Label, parts_of

if TYPE_CHECKING:
    import pyproj

    from geoeval.splits.boxes import Boxes
    from geoeval.splits.labelsets import LabelSet

#: How far from a box, in degrees, a feature still counts as meeting it: about ten metres, for boxes that were rounded.
_ROUNDED = 1e-4

#: How far out of its image, in pixels, a feature may reach.
_EDGE = 1.0

Bounds = tuple[float, float, float, float]
Mask = NDArray[np.bool_]


def placed_label(
    label: Label, frame: Frame | None, bbox: Bounds | None, crs: str | None, where: str, *, held: bool = True
) -> LabelSet | None:
    """The shapes of a label in all frames that can be told; None of an opaque label.

    A mask is a set without shapes: it was seen, and is compared by its values alone.

    Parameters
    ----------
    frame
        The sample's image, if there is one.
    bbox, crs
        The sample's box. One in pixels, or none, says nothing.
    where
        Record and field, for messages.
    held
        False for a sample whose box was held against its label before.

    Raises
    ------
    InputError
        A part does not meet the box of the sample, or the label lies in no system that fits.
    """
    from geoeval.splits.labelsets import LabelSet

    if label.kind == "opaque":
        return None
    if label.shapes is None:
        return LabelSet()
    if not len(label.shapes):
        return placed_labels(label.shapes, label.crs, frame)
    box = None if bbox is None or not crs or crs.strip().lower() == "pixel" else (bbox, crs)
    system = label.crs if label.named else _system(label, frame, box, where)
    if held and system and box is not None:
        parts = parts_of(label.shapes)
        away = ~meets(parts, system, *box, where)
        if away.any():
            raise InputError(_astray(parts[away], len(parts), system, *box, where))
    return placed_labels(label.shapes, system, frame)


def _system(label: Label, frame: Frame | None, box: tuple[Bounds, str] | None, where: str) -> str:
    """The system of features whose file names none; "" for the pixels of the image."""
    import shapely

    assert label.shapes is not None
    if label.crs and (box is None or _met(label.shapes, label.crs, *box, where)):
        return label.crs
    x0, y0, x1, y1 = shapely.total_bounds(label.shapes).tolist()
    if frame is not None and (min(x0, y0) >= -_EDGE and x1 <= frame.width + _EDGE and y1 <= frame.height + _EDGE):
        return ""
    if box is not None and _met(label.shapes, box[1], *box, where):
        return box[1]
    if frame is None and (box is None or not label.crs):
        return label.crs
    if box is None:
        return ""
    raise InputError(
        _astray(label.shapes, len(label.shapes), label.crs, *box, where)
        if label.crs
        else f"{where}: its features span {_shown((x0, y0, x1, y1))} in a system that the file does not name, which "
        f"is neither in the pixels of the image nor at the box {_shown(box[0])} in {box[1]}; name it in the file"
    )


def _met(shapes: ObjectArray, system: str, bbox: Bounds, crs: str, where: str) -> bool:
    """The same for a system that is only tried: what it does not cover is no place in it."""
    try:
        return bool(meets(shapes, system, bbox, crs, where).any())
    except GeoevalError:
        return False


def meets(shapes: ObjectArray, system: str, bbox: Bounds, crs: str, where: str) -> Mask:
    """(shapes,) True for those that meet a box, by their bounds, across systems and the antimeridian.

    Examples
    --------
    >>> import shapely
    >>> shapes = shapely.points([[-179.95, 10.5], [0, 0]])
    >>> meets(shapes, "EPSG:4326", (179.9, 10, -179.9, 11), "EPSG:4326", "record 'a'").tolist()
    [True, False]
    """
    import shapely

    bounds = shapely.bounds(shapes)
    met = np.zeros(len(bounds), dtype=np.bool_)
    if bbox[0] <= bbox[2]:
        met = _overlap(bounds, bbox) if _same(system, crs) else met
        rest = np.flatnonzero(~met)
        met[rest] = _centred(bounds[rest], system, bbox, crs)
    rest = np.flatnonzero(~met)
    if not len(rest):
        return met
    try:
        box, features = _boxes(np.array([bbox]), crs), _boxes(bounds[rest], system)
    except GeoevalError as error:
        raise InputError(f"{where}: {error}") from error
    west, width, south, north = features.frame.T
    (left, span, low, high), pad = box.frame[0], _ROUNDED
    level = (south <= high + pad) & (north >= low - pad)
    east_of, west_of = np.mod(west - left + pad, 360.0), np.mod(left - west + pad, 360.0)
    met[rest] = level & ((east_of <= span + 2 * pad) | (west_of <= width + 2 * pad))
    return met


def _overlap(bounds: FloatArray, box: Bounds) -> Mask:
    x0, y0, x1, y1 = box
    found: Mask = (bounds[:, 0] <= x1) & (bounds[:, 2] >= x0) & (bounds[:, 1] <= y1) & (bounds[:, 3] >= y0)
    return found


def _centred(bounds: FloatArray, system: str, bbox: Bounds, crs: str) -> Mask:
    """True where the middle of a feature's bounds lies in the box: most labels are settled by that, and fast."""
    try:
        x, y = _way(system, crs).transform(bounds[:, [0, 2]].mean(axis=1), bounds[:, [1, 3]].mean(axis=1))
    except GeoevalError:
        return np.zeros(len(bounds), dtype=np.bool_)
    return _overlap(np.stack([x, y, x, y], axis=1), bbox)


@lru_cache(maxsize=1024)
def _way(one: str, other: str) -> pyproj.Transformer:
    from geoeval.geometry.crs import parse_crs
    from geoeval.geometry.scale import transformer

    return transformer(parse_crs(one), parse_crs(other))


def _boxes(bounds: FloatArray, crs: str) -> Boxes:
    from geoeval.splits.boxes import from_bounds

    minx, miny, maxx, maxy = bounds.T
    return from_bounds(minx, miny, maxx, maxy, crs)


@lru_cache(maxsize=1024)
def _same(one: str, other: str) -> bool:
    from geoeval.geometry.crs import parse_crs, same_crs

    return one == other or same_crs(parse_crs(one), parse_crs(other))


def _astray(away: ObjectArray, n: int, system: str, bbox: Bounds, crs: str, where: str) -> str:
    import shapely

    count = f"none of its {n}" if len(away) == n else f"{len(away)} of its {n}"
    return (
        f"{where}: {count} features {'meets' if len(away) == n else 'do not meet'} the box of its sample; they span "
        f"{_shown(shapely.total_bounds(away).tolist())} in {system}, the box is {_shown(bbox)} in {crs}. Is it the "
        "label of another sample, or is its system not the one that it names? Cut labels of larger areas to the sample"
    )


def _shown(box: Bounds) -> str:
    return "[" + ", ".join(f"{side:.10g}" for side in box) + "]"


def placed_labels(shapes: ObjectArray, crs: str, frame: Frame | None) -> LabelSet:
    """Label geometries, part by part, in the world and in the pixels of their image where that can be told.

    Labels without a system count as pixels already.
    """
    import shapely
    from affine import Affine

    from geoeval.geometry.crs import parse_crs, same_crs, transform
    from geoeval.splits.labelsets import LabelSet

    size = None if frame is None else (frame.height, frame.width)
    shapes = parts_of(shapes)
    if not crs:
        return LabelSet(pixels=shapes, size=size)
    if frame is None or not frame.crs or not len(shapes):
        return LabelSet(shapes, crs)
    here, there = parse_crs(crs), parse_crs(frame.crs)
    moved = shapes if same_crs(here, there) else transform(shapes, here, there)
    a, b, c, d, e, f = tuple(~Affine(*frame.transform))[:6]
    pixels = shapely.transform(moved, lambda at: at @ np.array([[a, d], [b, e]]) + np.array([c, f]))
    return LabelSet(shapes, crs, np.asarray(pixels, dtype=np.object_), size)
