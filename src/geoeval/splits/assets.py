"""Asset files of a sample: found inside the root only, bounded before they are decoded, hashed from their bytes."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

import numpy as np

from geoeval.errors import GeoevalError, InputError
from geoeval.evidence.canonical import canonical_bytes, digest
from geoeval.model import ObjectArray

if TYPE_CHECKING:
    from geoeval.splits.labelsets import LabelSet

#: Most values (pixels times bands) that an image may claim to hold.
MAX_VALUES = 2**30

#: Above so many values, an image that claims more bytes than this for each byte of its file is no image. Deflate packs
#: at most 1,032 bytes into one, and pictures are far from that.
_HOLLOW_ABOVE = 2**24
_HOLLOW_RATIO = 2_000

#: Formats that hold their own bytes, by how they begin. Formats that refer to other files (VRT, for example) could lead
#: out of the root and are not read.
_BEGINNINGS: tuple[tuple[bytes, str], ...] = (
    (b"II*\0", "GTiff"),
    (b"MM\0*", "GTiff"),
    (b"II+\0", "GTiff"),
    (b"MM\0+", "GTiff"),
    (b"\x89PNG\r\n", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"\0\0\0\x0cjP  ", "JP2OpenJPEG"),
    (b"RIFF", "WEBP"),
)

_NO_NUMBER = re.compile(rb"[\[,\s-](nan|inf)", re.IGNORECASE)

LABEL_ENDINGS = frozenset({".geojson", ".json", ".gpkg", ".fgb", ".parquet"})


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Where an image lies: size, affine transform of pixels, and system ("" where it has none)."""

    width: int
    height: int
    bands: int
    transform: tuple[float, float, float, float, float, float]
    crs: str


def asset_path(root: Path, path: str, where: str) -> Path:
    """The file that a record names, with links followed; it lies inside the root and holds something.

    Parameters
    ----------
    root
        Folder that holds every asset of the source.
    path
        Path below it, with ``/``.
    where
        Record and field, for messages.

    Raises
    ------
    InputError
        The path is absolute or climbs, the file is missing or empty, or a link leads out of the root.

    Examples
    --------
    >>> asset_path(Path("."), "../other/a.tif", "record 'a': raw_image")
    Traceback (most recent call last):
    geoeval.errors.InputError: record 'a': raw_image: '../other/a.tif' leads out of the root; give a path below it
    """
    parts = PurePosixPath(path).parts
    climbs = not parts or ".." in parts or PurePosixPath(path).is_absolute()
    if climbs or PureWindowsPath(path).drive or "\\" in path or "\0" in path:
        raise InputError(f"{where}: {path!r} leads out of the root; give a path below it")
    home = Path(os.path.realpath(root))
    found = Path(os.path.realpath(home / path))
    if not found.is_relative_to(home):
        raise InputError(f"{where}: {path!r} is a link that leads out of the root; put the file itself below the root")
    if not found.is_file():
        raise InputError(f"{where}: expected a file, found none at {path!r}; was it renamed?")
    if found.stat().st_size == 0:
        raise InputError(f"{where}: {path!r} holds 0 bytes; fetch it again")
    return found


def image_frame(path: Path, where: str, max_values: int = MAX_VALUES) -> Frame:
    """Size and place of an image, read from its header alone.

    Raises
    ------
    InputError
        It is no image of a known format, claims more values than ``max_values``, or more than its bytes can hold.
    """
    import rasterio
    from rasterio.errors import NotGeoreferencedWarning, RasterioError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotGeoreferencedWarning)
            with rasterio.open(path, driver=_driver(path, where)) as image:
                frame = Frame(
                    width=int(image.width),
                    height=int(image.height),
                    bands=int(image.count),
                    transform=tuple(image.transform)[:6],
                    crs=image.crs.to_string() if image.crs else "",
                )
                item = max((_value_bytes(kind) for kind in image.dtypes), default=1)
    except (RasterioError, ValueError) as error:
        raise InputError(f"{where}: {path.name!r} cannot be read as an image: {error}") from error
    values, size = frame.width * frame.height * frame.bands, path.stat().st_size
    claim = (
        f"{where}: {path.name!r} claims {frame.width} x {frame.height} pixels in {frame.bands} bands, "
        f"{values:,} values, from {size:,} bytes"
    )
    if values > max_values:
        raise InputError(f"{claim}; at most {max_values:,} are decoded. Tile it")
    if values > _HOLLOW_ABOVE and values * item > _HOLLOW_RATIO * size:
        raise InputError(
            f"{claim}, {values * item // size:,} to 1; no picture packs to more than {_HOLLOW_RATIO:,} to 1. "
            "Is the file whole?"
        )
    return frame


def label_shapes(path: Path, where: str) -> tuple[ObjectArray, str] | None:
    """Geometries of a label file and their system; None where it is no vector file (a mask, for example).

    Raises
    ------
    InputError
        A vector file that cannot be read, or a feature with a coordinate that is no finite number; named by its
        position, counted from 1.
    """
    if not is_vector(path.name):
        return None
    from geoeval.geometry.crs import describe
    from geoeval.options import Source
    from geoeval.readers.raw import is_pixel
    from geoeval.readers.vector import read_table

    try:
        table = read_table(Source(str(path)))
    except GeoevalError as error:
        raise InputError(f"{where}: {error}") from error
    if table.geometry is None:
        return None
    shapes = np.asarray(table.geometry, dtype=np.object_)
    _refuse_infinite(shapes, f"{where}: {path.name!r}")
    if table.kind == "vector" and path.suffix.lower() in (".geojson", ".json"):
        _refuse_unread(path, shapes, f"{where}: {path.name!r}")
    if table.kind == "coco" and (missing := [at for at, shape in enumerate(shapes, start=1) if shape is None]):
        raise InputError(
            f"{where}: {path.name!r}: annotation {missing[0]} of {len(shapes)} has no box or outline of finite numbers "
            f"({len(missing)} such annotations); leave it out or write it again"
        )
    crs = "" if table.crs is None or is_pixel(table.crs) else describe(table.crs)
    return shapes[[shape is not None for shape in shapes]], crs


def _refuse_infinite(shapes: ObjectArray, name: str) -> None:
    """Refuse coordinates that are no finite numbers: overlaps and distances with them are silently nothing.

    Heights do not count, and empty geometries have no coordinates.
    """
    import shapely

    at, feature = shapely.get_coordinates(shapes, return_index=True)
    _refuse_features(np.unique(feature[~np.isfinite(at).all(axis=1)]).tolist(), len(shapes), name)


def _refuse_unread(path: Path, shapes: ObjectArray, name: str) -> None:
    """Refuse GeoJSON whose coordinates are no numbers, and which its reader therefore takes for empty or missing."""
    import json

    import shapely

    data = path.read_bytes()
    if not (shapely.is_missing(shapes) | shapely.is_empty(shapes)).any() and not _NO_NUMBER.search(data):
        return
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        # One feature a line, for example; its reader has judged it.
        return
    features = document.get("features", [document]) if isinstance(document, dict) else []
    shown = [one.get("geometry", one) if isinstance(one, dict) else None for one in features]
    _refuse_features([at for at, one in enumerate(shown) if not _in_numbers(one)], len(features), name)


def _in_numbers(geometry: Any) -> bool:
    if not isinstance(geometry, dict):
        return True
    if isinstance(parts := geometry.get("geometries"), list):
        return all(_in_numbers(part) for part in parts)
    return _finite(geometry.get("coordinates"))


def _finite(coordinates: Any) -> bool:
    """True for nested lists of positions: numbers, of which the first two are finite."""
    if not isinstance(coordinates, list) or not coordinates:
        return True
    if all(isinstance(one, list) for one in coordinates):
        return all(_finite(one) for one in coordinates)
    return all(isinstance(one, int | float) for one in coordinates) and all(map(math.isfinite, coordinates[:2]))


def _refuse_features(bad: Sequence[int], n: int, name: str) -> None:
    if bad:
        raise InputError(
            f"{name}: feature {bad[0] + 1} of {n} has a coordinate that is no finite number "
            f"({len(bad)} such features); leave it out or write it again"
        )


def _value_bytes(kind: str) -> int:
    # Pairs of 16-bit integers have no type in numpy.
    return 4 if kind == "complex_int16" else np.dtype(kind).itemsize


def is_empty_mask(path: Path, where: str, max_values: int = MAX_VALUES) -> bool:
    """True for a mask that shows no object: an image of a single value. False for what is no image.

    Raises
    ------
    InputError
        An image that is damaged or claims too much.
    """
    from geoeval.splits.image_reading import holds_one_value

    with path.open("rb") as stream:
        head = stream.read(8)
    if not any(head.startswith(beginning) for beginning, _ in _BEGINNINGS):
        return False
    try:
        return holds_one_value(path, max_values)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def _driver(path: Path, where: str) -> str:
    with path.open("rb") as stream:
        head = stream.read(8)
    for beginning, driver in _BEGINNINGS:
        if head.startswith(beginning):
            return driver
    raise InputError(
        f"{where}: {path.name!r} is no GeoTIFF, PNG, JPEG, JPEG 2000 or WebP; it begins with {head!r}. Convert it"
    )


def is_vector(path: str) -> bool:
    """True for a label file that holds geometries.

    Examples
    --------
    >>> is_vector("labels/a.geojson"), is_vector("labels/a.tif")
    (True, False)
    """
    return PurePosixPath(path).suffix.lower() in LABEL_ENDINGS


def placed_labels(shapes: ObjectArray, crs: str, frame: Frame | None) -> LabelSet:
    """Label geometries in the world, and in the pixels of their image where that can be told.

    Labels without a system count as pixels already.
    """
    import shapely
    from affine import Affine

    from geoeval.geometry.crs import parse_crs, same_crs, transform
    from geoeval.splits.labelsets import LabelSet

    size = None if frame is None else (frame.height, frame.width)
    if not crs:
        return LabelSet(pixels=shapes, size=size)
    if frame is None or not frame.crs or not len(shapes):
        return LabelSet(shapes, crs)
    here, there = parse_crs(crs), parse_crs(frame.crs)
    moved = shapes if same_crs(here, there) else transform(shapes, here, there)
    a, b, c, d, e, f = tuple(~Affine(*frame.transform))[:6]
    pixels = shapely.transform(moved, lambda at: at @ np.array([[a, d], [b, e]]) + np.array([c, f]))
    return LabelSet(shapes, crs, np.asarray(pixels, dtype=np.object_), size)


@cache
def recipe_id() -> str:
    """The name of the recipe of perceptual hashes in use: algorithm, size and versions, as 16 digits of a digest."""
    from geoeval.splits import phash

    return digest(canonical_bytes(phash.RECIPE))[:16]
