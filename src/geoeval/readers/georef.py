"""The coordinate system of a file: what it says, what was declared, and whether the coordinates can be in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import shapely

from geoeval.errors import ConfigError, CRSMismatch, CRSMissing, GeoevalError
from geoeval.options import Source
from geoeval.readers.raw import PIXEL, Raw, is_pixel


def usable_crs(crs: Any) -> Any:
    """A CRS object, None where the file says nothing that can be used (a local system has no place on Earth)."""
    from geoeval.geometry.crs import parse_crs

    if crs is None or (isinstance(crs, str) and not crs.strip()):
        return None
    try:
        return parse_crs(crs)
    except (GeoevalError, ValueError, RuntimeError):
        return None


def settle_crs(raw: Raw, source: Source, name: str) -> Raw:
    """Features with the system that they are in: the file's own, or the declared one where the file names none.

    Parameters
    ----------
    raw
        Features as read.
    source
        Whose ``crs`` is the declaration; ``"pixel"`` means image coordinates.
    name
        File name for messages.

    Raises
    ------
    CRSMissing
        There is geometry, and neither file nor declaration says where it lies; or the degrees cannot be degrees.
    CRSMismatch
        File and declaration disagree.

    Examples
    --------
    >>> import pandas as pd
    >>> raw = Raw(pd.DataFrame({"a": [1]}), np.array([shapely.Point(3, 4)], dtype=object))
    >>> settle_crs(raw, Source("a.csv", crs="pixel"), "a.csv").crs
    'pixel'
    """
    from geoeval.geometry.crs import describe, parse_crs, same_crs

    if raw.geometry is None:
        return replace(raw, crs=None)
    declared: Any = source.crs
    pixel = is_pixel(declared)
    if declared is None:
        if raw.crs is None:
            raise CRSMissing(_missing(raw, name))
        return raw if is_pixel(raw.crs) else _plausible(raw, name)
    if is_pixel(raw.crs):
        if pixel:
            return raw
        raise CRSMismatch(f"{name}: COCO boxes are image coordinates, found crs = {declared!r} declared; drop it")
    if pixel:
        if raw.crs is not None and raw.crs_firm:
            raise CRSMismatch(
                f"{name}: crs = 'pixel' is declared, but the file names {describe(raw.crs)}; drop the declaration, "
                "or take the CRS out of the file"
            )
        return replace(raw, crs=PIXEL, notes=_without_crs(raw))
    try:
        wanted = parse_crs(declared)
    except GeoevalError:
        raise
    except (ValueError, RuntimeError) as error:
        raise ConfigError(f"{name}: crs = {declared!r} is no known system; write EPSG:25832, or 'pixel'") from error
    if raw.crs is not None and raw.crs_firm and not same_crs(raw.crs, wanted):
        raise CRSMismatch(
            f"{name}: declared crs = {describe(wanted)}, but the file names {describe(raw.crs)}; a declaration never "
            "overrules a file: drop it, or mend the file"
        )
    return _plausible(replace(raw, crs=wanted, notes=_without_crs(raw)), name)


def _without_crs(raw: Raw) -> dict[str, str]:
    return {key: value for key, value in raw.notes.items() if key != "crs"}


def _missing(raw: Raw, name: str) -> str:
    hint = ", or crs = 'pixel' for image coordinates" if raw.kind in ("boxes", "wkt", "points") else ""
    return (
        f"{name}: expected a coordinate reference system, found none in the file; declare it, for example "
        f"crs = 'EPSG:25832'{hint}"
    )


def _plausible(raw: Raw, name: str) -> Raw:
    """Refuse degrees that are none: a projected layer that lost its CRS reads as longitude and latitude."""
    if raw.geometry is None or not raw.crs.is_geographic or not len(raw.geometry):
        return raw
    west, south, east, north = shapely.total_bounds(raw.geometry)
    if np.isfinite([west, south, east, north]).all() and (
        west < -360 or east > 360 or south < -90.001 or north > 90.001
    ):
        raise CRSMissing(
            f"{name}: expected degrees in {_short(raw.crs)}, found coordinates from ({west:.6g}, {south:.6g}) to "
            f"({east:.6g}, {north:.6g}); the layer is probably projected: declare its crs"
            + ("" if not raw.crs_firm else ", and mend the one in the file")
        )
    return raw


def _short(crs: Any) -> str:
    from geoeval.geometry.crs import describe

    return str(describe(crs))
