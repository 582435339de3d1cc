"""Where a sample lies: its declared box is held against the georeference of its images.

Checked     the four corners of an image, one pixel inside of its edge, and its centre lie in the declared box. A box of
            transformed corners passes, one of densified edges too, and so does a larger one.
Not seen    an edge that bulges in the system of the box may leave it between two corners: by length² x tan(latitude) /
            (8 x 6,371 km) from metres to degrees, 2 m for 10 km at 45° and 1.8 km for 300 km. A box that is a pixel or
            2 m too small passes, so that rounded boxes do.
Silent      images without a system, or whose transform is the identity, say nothing about a place. So do images that
            carry only rational polynomial coefficients (RPC): where they lie depends on heights. Ground control points
            count, as the affine transform that fits them best.
Filled in   a sample without a box gets that of its images, in their own system.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from geoeval.errors import CRSMissing, GeoevalError, InputError
from geoeval.model import FloatArray
from geoeval.splits.assets import Frame
from geoeval.splits.record import Sample

if TYPE_CHECKING:
    import pyproj

Bounds = tuple[float, float, float, float]

#: What a box may lack: people round degrees to five digits.
_ROUNDED_M = 2.0

_IMAGES = ("processed_image", "raw_image")
_IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """The outer corners of an image, and the points that a box must hold, in its own system."""

    name: str
    text: str
    crs: pyproj.CRS
    corners: FloatArray
    inside: FloatArray


def placed(sample: Sample, frames: Mapping[str, Frame], where: str) -> Sample:
    """The sample, once its box holds its images; with their box where it declares none.

    Parameters
    ----------
    sample
        As declared. A box in pixels (``crs`` is ``"pixel"``) is left alone.
    frames
        By ``"raw_image"`` and ``"processed_image"``. Those without a georeference are passed over.
    where
        Source and record, for messages.

    Returns
    -------
    Sample
        Without a declared box: the bounds of the processed image, else of the raw one, in the image's own system; of
        both where they share a system.

    Raises
    ------
    InputError
        A corner of an image, or its centre, lies outside of the box or has no place in its system.

    Examples
    --------
    >>> frame = Frame(100, 100, 1, (10.0, 0.0, 500_000.0, 0.0, -10.0, 5_600_000.0), "EPSG:32631")
    >>> done = placed(Sample(sample_id="a", task="t"), {"raw_image": frame}, "record 'a'")
    >>> done.bbox, done.crs
    ((500000.0, 5599000.0, 501000.0, 5600000.0), 'EPSG:32631')
    >>> wrong = Sample(sample_id="a", task="t", bbox=(3.0, 50.0, 3.1, 50.1), crs="EPSG:4326")
    >>> placed(wrong, {"raw_image": frame}, "record 'a'")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    geoeval.errors.InputError: record 'a': raw_image reaches 0.451... degree out of the declared bbox ...
    """
    places = [place for name in _IMAGES if name in frames and (place := _place(name, frames[name], where)) is not None]
    if not places or (sample.bbox is not None and (sample.crs or "").strip().lower() == "pixel"):
        return sample
    try:
        if sample.bbox is None:
            bbox, crs = _own_box(places, where)
            sample = dataclasses.replace(sample, bbox=bbox, crs=crs)
        for place in places:
            _check(sample, place, where)
    except InputError:
        raise
    except GeoevalError as error:
        raise InputError(f"{where}: {error}") from error
    return sample


def _place(name: str, frame: Frame, where: str) -> _Place | None:
    """Where an image lies; None where it does not say."""
    if not frame.crs or frame.transform == _IDENTITY:
        return None
    try:
        crs = _system(frame.crs)
    except CRSMissing:
        # A local system has no place on Earth.
        return None
    except GeoevalError as error:
        raise InputError(f"{where}: {name}: {error}") from error
    corners = _on_ground(frame, (0.0, float(frame.width)), (0.0, float(frame.height)))
    inner = _on_ground(frame, _inset(frame.width), _inset(frame.height))
    centre = _on_ground(frame, (frame.width / 2,) * 2, (frame.height / 2,) * 2)[:1]
    if not np.isfinite(corners).all():
        raise InputError(f"{where}: {name} has a transform that is not finite, {frame.transform}; write it again")
    return _Place(name, frame.crs, crs, corners, np.concatenate([centre, inner]))


def _inset(n: int) -> tuple[float, float]:
    return (1.0, n - 1.0) if n >= 3 else (n / 2, n / 2)


def _on_ground(frame: Frame, columns: tuple[float, float], rows: tuple[float, float]) -> FloatArray:
    """(4, 2) the corners of a part of the pixel grid, in the image's own system."""
    a, b, c, d, e, f = frame.transform
    column, row = np.array([columns[0], columns[1], columns[1], columns[0]]), np.repeat(rows, 2)
    return np.stack([a * column + b * row + c, d * column + e * row + f], axis=1)


def _own_box(places: list[_Place], where: str) -> tuple[Bounds, str]:
    """The box of the first image, united with the second where both are in one system; and the name of that system."""
    from geoeval.geometry.crs import same_crs

    first, *others = places
    turn = _turn(first.crs)
    box = _bounds(first.corners)
    for other in others:
        if same_crs(first.crs, other.crs):
            box = _united(box, _bounds(other.corners), turn)
    if turn and (max(abs(box[0]), abs(box[2])) > 1.5 * turn or max(abs(box[1]), abs(box[3])) > turn / 4):
        raise InputError(
            f"{where}: {first.name} says that it lies at {list(box)}, outside the degrees of its system; "
            "correct its georeference or declare the bbox"
        )
    return box, _name_of(first.text)


def _bounds(at: FloatArray) -> Bounds:
    (x0, y0), (x1, y1) = at.min(axis=0).tolist(), at.max(axis=0).tolist()
    return (x0, y0, x1, y1)


def _united(one: Bounds, two: Bounds, turn: float) -> Bounds:
    """The union of two boxes; around the world, the second is moved by whole turns to where the first one lies."""
    shift = turn * round((one[0] + one[2] - two[0] - two[2]) / (2 * turn)) if turn else 0.0
    return (
        min(one[0], two[0] + shift),
        min(one[1], two[1]),
        max(one[2], two[2] + shift),
        max(one[3], two[3]),
    )


@lru_cache(maxsize=1024)
def _name_of(text: str) -> str:
    """A short name that leads back to the system; its definition where none does."""
    from geoeval.geometry.crs import describe, same_crs

    crs = _system(text)
    name = describe(crs)
    try:
        if same_crs(_system(name), crs):
            return name
    except GeoevalError:
        pass
    return str(crs.to_wkt())


@lru_cache(maxsize=1024)
def _system(text: str) -> pyproj.CRS:
    from geoeval.geometry.crs import parse_crs

    return parse_crs(text)


@lru_cache(maxsize=1024)
def _way(start: str, end: str) -> pyproj.Transformer | None:
    """The way from one system to another, found once for all samples; None where both are the same."""
    from geoeval.geometry.crs import same_crs
    from geoeval.geometry.scale import transformer

    one, two = _system(start), _system(end)
    return None if same_crs(one, two) else transformer(one, two)


def _turn(crs: pyproj.CRS) -> float:
    """A whole turn in the unit of longitudes; 0 for a projected system."""
    return 2 * math.pi / float(crs.axis_info[0].unit_conversion_factor) if crs.is_geographic else 0.0


def _check(sample: Sample, place: _Place, where: str) -> None:
    """Refuse a box that does not hold the image."""
    from geoeval.geometry.crs import describe

    assert sample.bbox is not None
    crs, inside, corners = _system(str(sample.crs)), place.inside, place.corners
    way = _way(place.text, str(sample.crs))
    if way is not None:
        both = np.concatenate([inside, corners])
        moved = np.stack(way.transform(both[:, 0], both[:, 1]), axis=1)
        inside, corners = moved[: len(inside)], moved[len(inside) :]
    name = describe(crs)
    if not np.isfinite(inside).all():
        raise InputError(
            f"{where}: {place.name} lies at {_shown(_bounds(place.corners))} in {describe(place.crs)}, which has no "
            f"place in {name}, the system of the declared bbox {_shown(sample.bbox)}; declare the box in a system "
            "that covers the image"
        )
    turn = _turn(crs)
    out = _excess(inside, sample.bbox, turn)
    metre = turn / 40_000_000 if turn else 1 / float(crs.axis_info[0].unit_conversion_factor)
    if out <= _ROUNDED_M * metre:
        return
    x0, y0, x1, y1 = sample.bbox
    swapped = _excess(inside, (y0, x0, y1, x1), turn) <= 0
    raise InputError(
        f"{where}: {place.name} reaches {out:.9g} {crs.axis_info[0].unit_name} out of the declared bbox "
        f"{_shown(sample.bbox)}; its corners span {_shown(_spanned(corners, turn))} in {name}"
        f"{' (x and y of the bbox look swapped)' if swapped else ''}. Declare the box of the image, or a larger one: "
        "the buffer between splits rests on it"
    )


def _excess(at: FloatArray, box: Bounds, turn: float) -> float:
    """How far the farthest of some points lies out of a box, along x or y; longitudes count from its west."""
    x0, y0, x1, y1 = box
    x, y = at.T
    if turn:
        east = np.mod(x - x0, turn)
        width = x1 - x0 + (turn if x0 > x1 else 0.0)
        beyond = np.where(east <= width, 0.0, np.minimum(east - width, turn - east))
    else:
        beyond = np.maximum(x0 - x, x - x1)
    return float(max(beyond.max(), (y0 - y).max(), (y - y1).max(), 0.0))


def _spanned(corners: FloatArray, turn: float) -> Bounds:
    """The box of corners as a record would declare it: in degrees from -180 to 180, west above east across 180."""
    x0, y0, x1, y1 = _bounds(corners)
    if not turn or not np.isfinite(corners).all():
        return (x0, y0, x1, y1)
    x = np.mod(corners[:, 0] - corners[0, 0] + turn / 2, turn) + corners[0, 0] - turn / 2
    west, east = (float(np.mod(side + turn / 2, turn) - turn / 2) for side in (x.min(), x.max()))
    return (west, y0, east, y1)


def _shown(box: Bounds) -> str:
    return "[" + ", ".join(f"{side:.10g}" for side in box) + "]"
