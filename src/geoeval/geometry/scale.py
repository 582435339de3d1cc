"""How far a length in a projection is from the length on the ellipsoid."""

from __future__ import annotations

import math

import numpy as np
import pyproj
from pyproj.exceptions import ProjError

from geoeval.errors import CRSMismatch
from geoeval.model import FloatArray

Bounds = tuple[float, float, float, float]

_STEP_M = 100.0


def transformer(start: pyproj.CRS, end: pyproj.CRS) -> pyproj.Transformer:
    """The way from one system to another, in x, y order.

    Raises
    ------
    CRSMismatch
        Where there is none.
    """
    try:
        return pyproj.Transformer.from_crs(start, end, always_xy=True)
    except ProjError as error:
        raise CRSMismatch(f"there is no transformation from {start.name!r} to {end.name!r}: {error}") from error


def scale_error(crs: pyproj.CRS, bounds: Bounds) -> float:
    """Largest relative error of a length over an extent, in a projection with metres.

    Looked at in four directions at the corners, the middles of the edges and the centre; infinite where the projection
    is not defined at one of them.

    Examples
    --------
    >>> round(scale_error(pyproj.CRS("EPSG:3857"), (0, 6_800_000, 10_000, 6_810_000)), 2)
    0.63
    """
    return _error_at(crs, *_grid(bounds))


def scale_error_over_degrees(crs: pyproj.CRS, box: Bounds) -> float:
    """The same over an extent in degrees: west, south, east, north.

    Examples
    --------
    >>> scale_error_over_degrees(pyproj.CRS("EPSG:32633"), (14, 50, 16, 51)) < 0.0005
    True
    """
    return _error_at(crs, *transformer(pyproj.CRS("OGC:CRS84"), crs).transform(*_grid(box)))


def _grid(bounds: Bounds) -> tuple[FloatArray, FloatArray]:
    x, y = np.meshgrid(np.linspace(bounds[0], bounds[2], 3), np.linspace(bounds[1], bounds[3], 3))
    return x.reshape(-1), y.reshape(-1)


def _error_at(crs: pyproj.CRS, x: FloatArray, y: FloatArray) -> float:
    # Short steps measured against the ellipsoid: unlike published scale factors, this holds for every projection.
    base, geod = crs.geodetic_crs, crs.get_geod()
    if base is None or geod is None:
        return math.inf
    angle = np.arange(4) * np.pi / 4
    dx, dy = _STEP_M / 2 * np.cos(angle), _STEP_M / 2 * np.sin(angle)
    back = transformer(crs, base)
    to_degrees = math.degrees(base.axis_info[0].unit_conversion_factor)
    ends: list[FloatArray] = []
    for sign in (-1, 1):
        lon, lat = back.transform((x[:, None] + sign * dx).reshape(-1), (y[:, None] + sign * dy).reshape(-1))
        ends += [np.asarray(lon) * to_degrees, np.asarray(lat) * to_degrees]
    if not all(np.isfinite(end).all() for end in ends):
        return math.inf
    true = np.asarray(geod.inv(ends[0], ends[1], ends[2], ends[3])[2], dtype=np.float64)
    return float(np.max(np.abs(_STEP_M / true - 1))) if true.min() > 0 else math.inf
