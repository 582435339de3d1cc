"""Asset files of a sample: found inside the root only, bounded before they are decoded, hashed from their bytes."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

import numpy as np

from geoeval.errors import GeoevalError, InputError
from geoeval.evidence.canonical import canonical_bytes, digest
from geoeval.model import ObjectArray

if TYPE_CHECKING:
    from geoeval.splits.labelsets import LabelSet

#: Most values (pixels times bands) that an image may claim to hold.
MAX_VALUES = 2**28

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
        It is no image of a known format, or claims more values than ``max_values``.
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
    except (RasterioError, ValueError) as error:
        raise InputError(f"{where}: {path.name!r} cannot be read as an image: {error}") from error
    values = frame.width * frame.height * frame.bands
    if values > max_values:
        raise InputError(
            f"{where}: {path.name!r} claims {frame.width} x {frame.height} pixels in {frame.bands} bands, "
            f"{values:,} values, from {path.stat().st_size:,} bytes; at most {max_values:,} are decoded. Tile it"
        )
    return frame


def label_shapes(path: Path, where: str) -> tuple[ObjectArray, str] | None:
    """Geometries of a label file and their system; None where it is no vector file (a mask, for example).

    Raises
    ------
    InputError
        A vector file that cannot be read.
    """
    if not is_vector(path.name):
        return None
    from geoeval.geometry.crs import describe
    from geoeval.options import Source
    from geoeval.readers.vector import read_table

    try:
        table = read_table(Source(str(path)))
    except GeoevalError as error:
        raise InputError(f"{where}: {error}") from error
    if table.geometry is None:
        return None
    shapes = np.asarray(table.geometry, dtype=np.object_)
    return shapes[[shape is not None for shape in shapes]], describe(table.crs) if table.crs else ""


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
