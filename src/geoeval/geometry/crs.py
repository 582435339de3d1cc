"""Coordinate reference systems: which one to measure in, and the way there.

Conventions   coordinates are x, y (longitude before latitude) whatever a system's own axis order; heights are dropped.
Measuring     never in degrees, never in feet, and never where a metre of the map is off by more than 1 %.
Antimeridian  a layer on both sides of 180° is recentred; a line or polygon wider than 180° is refused, unless it
              crosses 180° with a jump of sign and is then narrower than 90°.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyproj
import shapely
from pyproj.exceptions import CRSError

from geoeval.errors import ConfigError, CRSMissing, InputError
from geoeval.geometry.scale import scale_error, scale_error_over_degrees, transformer
from geoeval.model import Finding, FloatArray, ObjectArray

Bounds = tuple[float, float, float, float]

#: Largest error of scale in which lengths are still measured as they are.
SCALE_TOLERANCE = 0.01
_GROSS_SCALE_ERROR = 0.1
_AROUND_THE_WORLD = ("Mercator (variant A)", "Popular Visualisation Pseudo Mercator")
_UTM_WIDTH = 6.0
_UTM_SOUTH, _UTM_NORTH = -80.0, 84.0


def parse_crs(text_or_crs: Any) -> pyproj.CRS:
    """A coordinate reference system from a code, WKT, PROJ text, PROJJSON or an object that carries one of these.

    ``"pixel"`` is not a system and is refused here: callers that allow image coordinates look for it first.

    Raises
    ------
    ConfigError
        Where the text cannot be understood.
    CRSMissing
        Where nothing was given, or a system without a place on Earth (LOCAL_CS, engineering or vertical only).

    Examples
    --------
    >>> describe(parse_crs("EPSG:26918"))
    'EPSG:26918'
    """
    if text_or_crs is None or text_or_crs == "":
        raise CRSMissing(
            "no coordinate reference system; declare it, for example crs = 'EPSG:32633', "
            "or crs = 'pixel' for image coordinates"
        )
    if isinstance(text_or_crs, str) and text_or_crs.strip().lower() == "pixel":
        raise ConfigError(
            "crs 'pixel' means image coordinates and cannot be projected; both sides must then be in pixels"
        )
    try:
        crs = pyproj.CRS.from_user_input(text_or_crs)
    except CRSError as error:
        raise ConfigError(
            f"crs: cannot understand {str(text_or_crs)[:120]!r}; write a code such as 'EPSG:4326', WKT, or 'pixel'"
        ) from error
    return horizontal(crs)


def horizontal(crs: pyproj.CRS) -> pyproj.CRS:
    """The horizontal part of a system: without heights, and without a bound transformation.

    Examples
    --------
    >>> describe(horizontal(pyproj.CRS("EPSG:26918+5703")))
    'EPSG:26918'
    """
    flat = crs
    while flat.is_compound or flat.is_bound:
        inner = flat.sub_crs_list[0] if flat.is_compound else flat.source_crs
        assert inner is not None
        flat = inner
    if (flat.is_geographic or flat.is_projected) and len(flat.axis_info) == 3:
        flat = flat.to_2d()
    if flat.is_geographic or flat.is_projected:
        return flat
    raise CRSMissing(
        f"the system {flat.name!r} ({flat.type_name}) says nothing about the place on Earth; "
        "declare a geographic or projected one, or crs = 'pixel'"
    )


def same_crs(a: pyproj.CRS, b: pyproj.CRS) -> bool:
    """True where both systems give a place the same x, y: the order of axes, names and heights do not count.

    Examples
    --------
    >>> same_crs(pyproj.CRS("OGC:CRS84"), pyproj.CRS("EPSG:4326"))
    True
    >>> same_crs(pyproj.CRS("EPSG:4269"), pyproj.CRS("EPSG:4326"))
    False
    """
    one, two = horizontal(a), horizontal(b)
    if one.equals(two, ignore_axis_order=True):
        return True
    code = one.to_authority()
    return code is not None and code == two.to_authority()


def describe(crs: pyproj.CRS) -> str:
    """A short name: the authority's code where there is one, else the system's own name.

    Examples
    --------
    >>> describe(pyproj.CRS("+proj=utm +zone=18 +datum=NAD83"))
    'EPSG:26918'
    """
    code = crs.to_authority()
    return ":".join(code) if code is not None else str(crs.name)


def extent(crs: pyproj.CRS, *layers: ObjectArray) -> Bounds:
    """Common bounds of layers in one system, recentred where they lie on both sides of the antimeridian.

    In degrees the greatest x may then exceed 180 (in a Mercator projection, half the world's width).

    Returns
    -------
    tuple of float
        Least x, least y, most x, most y; NaN where no layer has coordinates.

    Examples
    --------
    >>> fiji = shapely.points([[179.5, -17.0], [-179.5, -16.0]])
    >>> extent(pyproj.CRS("EPSG:4326"), fiji)
    (179.5, -17.0, 180.5, -16.0)
    """
    at = np.concatenate([shapely.get_coordinates(layer) for layer in layers] or [np.zeros((0, 2))])
    at = at[np.isfinite(at).all(axis=1)]
    if not len(at):
        return (math.nan, math.nan, math.nan, math.nan)
    x = _recentred(at[:, 0], _period(crs))
    return (float(x.min()), float(at[:, 1].min()), float(x.max()), float(at[:, 1].max()))


def metric_crs(crs: pyproj.CRS, bounds: Sequence[float]) -> tuple[pyproj.CRS, list[Finding]]:
    """The system in which to measure features of ``crs`` within ``bounds``, and what to tell the user about it.

    A projection in metres whose scale is within 1 % over the bounds is kept; one in feet gets metres. Else a local
    one on the same datum: UTM where the extent is at most 6° wide and lies between 80° S and 84° N, else the azimuthal
    equal-area projection centred on the extent. Where that is no better (very large extents), the given one stays.

    Parameters
    ----------
    crs
        System of the coordinates.
    bounds
        Least x, least y, most x, most y, as :func:`extent` gives them; NaN where there are no features.

    Examples
    --------
    >>> crs, findings = metric_crs(pyproj.CRS("EPSG:4326"), (13.0, 52.0, 13.5, 52.5))
    >>> describe(crs), [finding.severity for finding in findings]
    ('EPSG:32633', ['info'])
    """
    given = horizontal(crs)
    where = (describe(given),)
    if given.is_geographic:
        box = _degrees(given, bounds)
        local = _local(given, box)
        return local, [
            _measured_in(where, "its coordinates are geographic", local, scale_error_over_degrees(local, box), "info")
        ]
    metres = _in_metres(given)
    findings = []
    factor = _unit_factor(given)
    if metres is not given:
        says = f"its axes are in {given.axis_info[0].unit_name}; measured in the same projection with metres"
        findings.append(Finding("crs-units-converted", "info", where, says, "none needed"))
    if not np.isfinite(np.asarray(bounds, dtype=np.float64)).all():
        return metres, findings
    error = scale_error(metres, _scaled(bounds, factor))
    if error <= SCALE_TOLERANCE:
        return metres, findings
    box = _degrees(given, bounds)
    local = _local(given, box)
    local_error = scale_error_over_degrees(local, box)
    off = "it is not defined over the whole extent" if math.isinf(error) else f"its scale is off by {error:.1%} there"
    if local_error >= error:
        says = f"{off}, and no local projection does better over so large an extent; lengths carry that error"
        findings.append(Finding("crs-scale", _weight(error), where, says, "evaluate smaller areas one by one"))
        return metres, findings
    return local, [_measured_in(where, off, local, local_error, "minor")]


def transform(geometry: ObjectArray, source: pyproj.CRS, target: pyproj.CRS) -> ObjectArray:
    """Geometries in another system, in x, y order. Heights are dropped; None stays None.

    Parameters
    ----------
    geometry
        (features,) shapely geometries or None. Coordinates that are not finite stay so, for the validity check to find.

    Raises
    ------
    InputError
        Where a coordinate has no place in the target, or a line or polygon is wider than 180°; names the feature.
    CRSMismatch
        Where no transformation exists between both systems.

    Examples
    --------
    >>> moved = transform(shapely.points([[15.0, 0.0]]), pyproj.CRS("EPSG:4326"), pyproj.CRS("EPSG:32633"))
    >>> [round(value, 3) + 0.0 for value in (moved[0].x, moved[0].y)]
    [500000.0, 0.0]
    """
    shapes = np.array(np.asarray(geometry, dtype=np.object_).reshape(-1), dtype=np.object_)
    start, end = horizontal(source), horizontal(target)
    if same_crs(start, end):
        return np.asarray(shapely.force_2d(shapes), dtype=np.object_)
    period = _period(start)
    _refuse_wide(shapes, period, describe(start))
    at, feature = shapely.get_coordinates(shapes, return_index=True)
    if not len(at):
        return shapes
    x, y = transformer(start, end).transform(_recentred(at[:, 0], period), at[:, 1])
    lost = np.isfinite(at).all(axis=1) & ~(np.isfinite(x) & np.isfinite(y))
    if lost.any():
        first = int(np.flatnonzero(lost)[0])
        raise InputError(
            f"feature {int(feature[first])}: ({at[first, 0]:g}, {at[first, 1]:g}) in {describe(start)} has no place in "
            f"{describe(end)} ({len(np.unique(feature[lost]))} features in all); is the declared system the right one?"
        )
    return np.asarray(shapely.set_coordinates(shapely.force_2d(shapes), np.stack([x, y], axis=1)), dtype=np.object_)


def _period(crs: pyproj.CRS) -> float | None:
    """Width of the world in the unit of x, where x runs around it; None for other projections."""
    flat = horizontal(crs)
    if flat.is_geographic:
        return 2 * math.pi / flat.axis_info[0].unit_conversion_factor
    operation, ellipsoid = flat.coordinate_operation, flat.ellipsoid
    if operation is None or ellipsoid is None or operation.method_name not in _AROUND_THE_WORLD:
        return None
    factor = [float(p.value) for p in operation.params if p.name.startswith("Scale factor")] or [1.0]
    return 2 * math.pi * ellipsoid.semi_major_metre * factor[0] / _unit_factor(flat)


def _recentred(x: FloatArray, period: float | None) -> FloatArray:
    """Longitudes with the western ones moved east by a full turn, where that makes them narrower."""
    if period is None or not len(x):
        return x
    moved = np.where(x < 0, x + period, x)
    finite = np.isfinite(x)
    if not finite.any() or np.ptp(moved[finite]) >= np.ptp(x[finite]):
        return x
    return moved


def _refuse_wide(shapes: ObjectArray, period: float | None, name: str) -> None:
    """Refuse parts wider than half the world, unless they clearly cross the antimeridian with a jump of sign.

    Between 180° and 270° either side could be meant; a box around the whole world would shrink to nothing.
    """
    if period is None:
        return
    parts, owner = shapely.get_parts(shapes, return_index=True)
    x0, _, x1, _ = np.reshape(shapely.bounds(parts), (-1, 4)).T
    for at in np.flatnonzero(x1 - x0 > period / 2).tolist():
        other = float(np.ptp(_recentred(shapely.get_coordinates(parts[at])[:, 0], period)))
        if other == 0 or other > period / 4:
            raise InputError(
                f"feature {int(owner[at])}: a part is {360 * (x1[at] - x0[at]) / period:.1f}° wide in {name}; at most "
                "180° can be read without doubt about the side that is meant; cut it, or check the order of x and y"
            )


def _unit_factor(crs: pyproj.CRS) -> float:
    """Metres in the unit of a projection's axes."""
    return float(crs.axis_info[0].unit_conversion_factor)


def _scaled(bounds: Sequence[float], factor: float) -> Bounds:
    x0, y0, x1, y1 = (float(value) * factor for value in bounds)
    return (x0, y0, x1, y1)


def _in_metres(crs: pyproj.CRS) -> pyproj.CRS:
    """The same projection with metre axes; the system itself where it has them."""
    if abs(_unit_factor(crs) - 1.0) < 1e-12:
        return crs
    parts = crs.to_json_dict()
    for axis in parts["coordinate_system"]["axis"]:
        axis["unit"] = "metre"
    for key in ("id", "ids", "scope", "area", "bbox", "usages", "remarks"):
        parts.pop(key, None)
    parts["name"] = f"{crs.name} in metres"
    return pyproj.CRS.from_json_dict(parts)


def _degrees(crs: pyproj.CRS, bounds: Sequence[float]) -> Bounds:
    """Bounds in degrees from Greenwich; NaN bounds become a point at 0, 0."""
    x0, y0, x1, y1 = (float(value) for value in bounds)
    if not all(math.isfinite(value) for value in (x0, y0, x1, y1)):
        return (0.0, 0.0, 0.0, 0.0)
    if _plain_degrees(crs):
        return (x0, y0, x1, y1)
    x, y = (axis.reshape(-1) for axis in np.meshgrid(np.linspace(x0, x1, 5), np.linspace(y0, y1, 5)))
    lon, lat = transformer(crs, pyproj.CRS("OGC:CRS84")).transform(x, y)
    seen = np.isfinite(lon) & np.isfinite(lat)
    if not seen.any():
        raise InputError(
            f"bounds {(x0, y0, x1, y1)} lie outside of {describe(crs)}; is the declared system the right one?"
        )
    lon = _recentred(lon[seen], 360.0)
    return (float(lon.min()), float(lat[seen].min()), float(lon.max()), float(lat[seen].max()))


def _plain_degrees(crs: pyproj.CRS) -> bool:
    return (
        crs.is_geographic
        and not crs.is_derived
        and crs.prime_meridian is not None
        and crs.prime_meridian.longitude == 0
        and abs(_unit_factor(crs) - math.pi / 180) < 1e-12
    )


def _local(crs: pyproj.CRS, box: Bounds) -> pyproj.CRS:
    """A projection in metres for an extent in degrees, on the datum of ``crs`` where that counts from Greenwich."""
    from pyproj.crs import ProjectedCRS
    from pyproj.crs.coordinate_operation import LambertAzimuthalEqualAreaConversion, UTMConversion

    west, south, east, north = box
    if not (-90 <= south <= north <= 90):
        raise InputError(
            f"latitudes must lie in [-90, 90], got {south:g} to {north:g} in {describe(crs)}; are x and y swapped, "
            "or is the declared system the wrong one?"
        )
    base = crs if crs.is_geographic else crs.geodetic_crs
    if base is None or not _plain_degrees(base):
        base = pyproj.CRS("EPSG:4326")
    middle = (west + east) / 2
    lon = (middle + 180) % 360 - 180
    lat = (south + north) / 2
    if east - west <= _UTM_WIDTH and south >= _UTM_SOUTH and north <= _UTM_NORTH:
        zone = min(int((lon + 180) // 6) + 1, 60)
        if same_crs(base, pyproj.CRS("EPSG:4326")):
            return pyproj.CRS.from_epsg((32600 if lat >= 0 else 32700) + zone)
        hemisphere = "N" if lat >= 0 else "S"
        return ProjectedCRS(
            UTMConversion(str(zone), hemisphere), name=f"UTM zone {zone}{hemisphere} on {base.name}", geodetic_crs=base
        )
    # Whole hundredths of a degree: the name then says all there is to know.
    lat, lon = round(lat, 2), round(lon, 2)
    return ProjectedCRS(
        LambertAzimuthalEqualAreaConversion(lat, lon),
        name=f"azimuthal equal-area around {lat:g} N {lon:g} E on {base.name}",
        geodetic_crs=base,
    )


def _weight(error: float) -> Any:
    return "major" if error > _GROSS_SCALE_ERROR else "minor"


def _measured_in(where: tuple[str, ...], why: str, local: pyproj.CRS, error: float, severity: Any) -> Finding:
    says = f"{why}; measured in {describe(local)}"
    if error > SCALE_TOLERANCE:
        off = "beyond measure" if math.isinf(error) else f"by up to {error:.1%}"
        return Finding(
            "crs-local",
            _weight(error),
            where,
            f"{says}, whose scale is off {off} over so large an extent (areas are true)",
            "evaluate smaller areas one by one",
        )
    return Finding("crs-local", severity, where, says, "none needed; give both layers in a metric system to choose it")
