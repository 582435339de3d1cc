"""Asset files of a sample: found inside the root only, bounded before they are decoded, hashed from their bytes."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np

from geoeval.errors import InputError
from geoeval.evidence.canonical import canonical_bytes, digest

#: Most values (pixels times bands) that an image may claim to hold.
MAX_VALUES = 2**30

#: Above so many values, an image that claims more bytes than this for each byte of its file is no image. Deflate packs
#: at most 1,032 bytes into one, and pictures are far from that.
_HOLLOW_ABOVE = 2**24
_HOLLOW_RATIO = 2_000

#: Most characters of a path below a root.
_LONGEST = 1024

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
    if (problem := path_problem(path)) is not None:
        raise InputError(f"{where}: {problem}")
    home = Path(os.path.realpath(root))
    found = Path(os.path.realpath(home / path))
    if not found.is_relative_to(home):
        raise InputError(f"{where}: {path!r} is a link that leads out of the root; put the file itself below the root")
    try:
        there = found.is_file()
    except OSError as error:
        raise InputError(f"{where}: {path!r} cannot be looked up ({error.strerror or error})") from error
    if not there:
        raise InputError(f"{where}: expected a file, found none at {path!r}; was it renamed?")
    if found.stat().st_size == 0:
        raise InputError(
            f"{where}: {path!r} holds 0 bytes; fetch it again (a label without objects is an empty FeatureCollection, "
            "or a mask of zeros)"
        )
    return found


def path_problem(path: str) -> str | None:
    """Why a text cannot name a file below a root; None where it can.

    Examples
    --------
    >>> path_problem("raw/a.tif"), path_problem("/etc/hosts")
    (None, "'/etc/hosts' leads out of the root; give a path below it")
    """
    if len(path) > _LONGEST or any(len(part.encode("utf-8", "surrogatepass")) > 255 for part in path.split("/")):
        return f"'{path[:40]}…' is too long to name a file ({len(path):,} characters); give a path below the root"
    if path and path[0] not in "/." and not any(mark in path for mark in ("..", "\\", ":", "\0")):
        return None
    parts = PurePosixPath(path).parts
    climbs = not parts or ".." in parts or PurePosixPath(path).is_absolute()
    if climbs or PureWindowsPath(path).drive or "\\" in path or "\0" in path:
        return f"{path!r} leads out of the root; give a path below it"
    return None


def image_frame(path: Path, where: str, max_values: int = MAX_VALUES) -> Frame:
    """Size and place of an image, read from its header alone.

    Ground control points stand in where there is no transform: the affine transform that fits them best.

    Raises
    ------
    InputError
        It is no image of a known format, holds several pictures, claims more values than ``max_values``, or more than
        its bytes can hold.
    """
    import rasterio
    from rasterio.errors import NotGeoreferencedWarning, RasterioError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotGeoreferencedWarning)
            with rasterio.open(path, driver=_driver(path, where)) as image:
                transform, crs = _georeference(image)
                frame = Frame(int(image.width), int(image.height), int(image.count), transform, crs)
                pages = len(image.subdatasets)
                item = max((_value_bytes(kind) for kind in image.dtypes), default=1)
    except (RasterioError, ValueError) as error:
        raise InputError(f"{where}: {path.name!r} cannot be read as an image: {error}") from error
    if pages:
        raise InputError(
            f"{where}: {path.name!r} holds {pages} pictures, of which only the first would be looked at; "
            "give each picture a file"
        )
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


def _georeference(image: Any) -> tuple[tuple[float, float, float, float, float, float], str]:
    """The transform of an image and its system; of its control points where it has neither."""
    from rasterio.transform import from_gcps

    own, crs = image.transform, image.crs
    points, system = image.gcps
    if own.is_identity and len(points) >= 3 and system:
        own, crs = from_gcps(points), system
    a, b, c, d, e, f = tuple(own)[:6]
    return (a, b, c, d, e, f), crs.to_string() if crs else ""


def _value_bytes(kind: str) -> int:
    # Pairs of 16-bit integers have no type in numpy.
    return 4 if kind == "complex_int16" else np.dtype(kind).itemsize


def is_image(head: bytes) -> bool:
    """True for the first bytes of an image that is read here.

    Examples
    --------
    >>> is_image(b"II*" + bytes(5)), is_image(b'{"type": ')
    (True, False)
    """
    return any(head.startswith(beginning) for beginning, _ in _BEGINNINGS)


def _driver(path: Path, where: str) -> str:
    with path.open("rb") as stream:
        head = stream.read(8)
    for beginning, driver in _BEGINNINGS:
        if head.startswith(beginning):
            return driver
    raise InputError(
        f"{where}: {path.name!r} is no GeoTIFF, PNG, JPEG, JPEG 2000 or WebP; it begins with {head!r}. Convert it"
    )


@cache
def recipe_id() -> str:
    """The name of the recipe of perceptual hashes in use: algorithm, size and versions, as 16 digits of a digest."""
    from geoeval.splits import phash

    return digest(canonical_bytes(phash.RECIPE))[:16]
