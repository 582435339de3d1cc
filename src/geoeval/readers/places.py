"""One metric system for a whole run: predictions to the reference, both to metres; and what lies inside the AOI."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from geoeval.errors import CRSMismatch, InputError
from geoeval.model import Finding, FloatArray, ObjectArray
from geoeval.options import OnMismatch, Source
from geoeval.readers.columns import listed
from geoeval.readers.raw import PIXEL, is_pixel
from geoeval.readers.sides import Side
from geoeval.readers.vector import read_table


def run_crs(sides: Sequence[Side], on_mismatch: OnMismatch) -> tuple[Any, list[Finding]]:
    """The system of the run: that of the first reference file that has geometry, else of the first prediction.

    Returns
    -------
    crs, findings
        A ``pyproj.CRS``, ``"pixel"``, or None where no file has geometry; what will be reprojected.

    Raises
    ------
    CRSMismatch
        Pixel and map coordinates meet, or systems differ and that was not allowed.
    """
    from geoeval.geometry.crs import describe, same_crs

    placed = [side for side in sides if side.geometry is not None]
    tables = [(side, table) for side in placed for table in side.tables if table.crs is not None]
    # A file without features says its CRS in vain: GeoJSON then means longitude and latitude whatever was meant.
    telling = [(side, table) for side, table in tables if len(table)] or tables
    if not telling:
        return None, []
    side, first = telling[0]
    others: dict[str, list[str]] = {}
    for other_side, table in telling[1:]:
        if is_pixel(table.crs) != is_pixel(first.crs):
            px, map_ = (table, first) if is_pixel(table.crs) else (first, table)
            raise CRSMismatch(
                f"{px.name} is in image coordinates and {map_.name} in {describe(map_.crs)}; both sides need one "
                "system: declare crs = 'pixel' for both, or give both on the map"
            )
        if not is_pixel(first.crs) and not same_crs(first.crs, table.crs):
            others.setdefault(f"{other_side.name}: {describe(table.crs)}", []).append(table.name)
    if others and on_mismatch == "refuse":
        said = "; ".join(f"{said} in {listed(names, 3)}" for said, names in others.items())
        raise CRSMismatch(
            f"{side.name}: {describe(first.crs)} in {first.name}, {said}; expected one system. Reproject, or set "
            "on_crs_mismatch = 'reproject'"
        )
    findings = [
        Finding(
            "crs-differs",
            "info",
            tuple(names[:10]),
            f"{said} in {len(names)} file{'s' if len(names) > 1 else ''}, reprojected to {describe(first.crs)} "
            f"of {first.name}",
            "none needed",
        )
        for said, names in others.items()
    ]
    return first.crs, findings


def _by_system(side: Side) -> Iterator[tuple[Any, NDArray[np.int64]]]:
    """The positions of all features in one system, for each system of a side."""
    from geoeval.geometry.crs import same_crs

    systems: list[Any] = []
    code = np.full(len(side.tables), -1, dtype=np.int64)
    for number, table in enumerate(side.tables):
        if table.crs is None or not len(table):
            continue
        known = next((at for at, crs in enumerate(systems) if same_crs(crs, table.crs)), None)
        code[number] = len(systems) if known is None else known
        if known is None:
            systems.append(table.crs)
    of_feature = code[side.file]
    for at, crs in enumerate(systems):
        yield crs, np.flatnonzero(of_feature == at)


def run_extent(sides: Sequence[Side], crs: Any) -> tuple[float, float, float, float]:
    """Bounds of all features of both sides in one system; NaN where there are none."""
    from geoeval.geometry.crs import extent, same_crs, transform

    layers: list[ObjectArray] = []
    for side in sides:
        if side.geometry is None:
            continue
        for own, at in _by_system(side):
            if not len(at):
                continue
            if same_crs(own, crs):
                layers.append(side.geometry[at])
                continue
            # Points over the bounds stand for the features, so that nothing is transformed twice.
            west, south, east, north = extent(own, side.geometry[at])
            x, y = np.meshgrid(np.linspace(west, east, 5), np.linspace(south, north, 5))
            try:
                layers.append(transform(np.asarray(shapely.points(x.ravel(), y.ravel())), own, crs))
            except InputError:
                layers.append(_moved(side, at, own, crs))
    return extent(crs, *layers)


def to_system(side: Side, target: Any) -> Side:
    """Geometries in the target system; polygons that rounding made invalid on the way are mended.

    Raises
    ------
    InputError
        A feature has no place in the target; the message names it.
    """
    from geoeval.geometry.crs import same_crs
    from geoeval.geometry.validity import repair

    if side.geometry is None or is_pixel(target) or not len(side):
        return side
    geometry = side.geometry.copy()
    for own, at in _by_system(side):
        if not len(at) or same_crs(own, target):
            continue
        moved = _moved(side, at, own, target)
        twisted = np.flatnonzero(~shapely.is_valid(moved))
        if len(twisted):
            mended = np.asarray(repair(moved[twisted]), dtype=object)
            whole = ~(shapely.is_missing(mended) | shapely.is_empty(mended))
            moved[twisted[whole]] = mended[whole]
        geometry[at] = moved
    return replace(side, geometry=geometry)


def _moved(side: Side, at: NDArray[np.int64], own: Any, target: Any) -> ObjectArray:
    from geoeval.geometry.crs import transform

    assert side.geometry is not None
    shapes = side.geometry[at]
    try:
        return np.asarray(transform(shapes, own, target), dtype=object)
    except InputError as error:
        for position, shape in zip(at, shapes, strict=True):
            try:
                transform(np.array([shape], dtype=object), own, target)
            except InputError as first:
                raise InputError(f"{side.at(position)}: {str(first).removeprefix('feature 0: ')}") from error
        raise


def system_text(crs: Any) -> str:
    """A system as text that brings it back: its code where it is exactly that one, else WKT.

    Examples
    --------
    >>> import pyproj
    >>> system_text(pyproj.CRS("EPSG:32633"))
    'EPSG:32633'
    """
    code = crs.to_authority(min_confidence=100)
    return ":".join(code) if code is not None else str(crs.to_wkt())


def representative(side: Side) -> tuple[FloatArray, FloatArray]:
    """A point that lies on each geometry, as x and y."""
    points = shapely.point_on_surface(side.geometry)
    return np.asarray(shapely.get_x(points)), np.asarray(shapely.get_y(points))


def inside_aoi(path: str, target: Any, points: Sequence[tuple[FloatArray, FloatArray]]) -> list[NDArray[np.bool_]]:
    """Which representative points lie inside the polygons of a file; its edge belongs to it.

    Parameters
    ----------
    path
        File of polygons.
    target
        The system of the points.
    points
        x and y of each side.

    Raises
    ------
    InputError
        The file holds no polygon.
    """
    from geoeval.geometry.crs import same_crs, transform
    from geoeval.geometry.validity import repair

    table = read_table(Source(path, crs=PIXEL if is_pixel(target) else None))
    shapes = np.asarray([] if table.geometry is None else table.geometry, dtype=object)
    polygons: ObjectArray = (
        shapes[np.isin(shapely.get_type_id(shapes), (3, 6)) & ~shapely.is_empty(shapes)] if len(shapes) else shapes
    )
    if not len(polygons):
        raise InputError(
            f"aoi {table.name}: expected polygons, found {len(shapes)} features of other kinds; give an area"
        )
    polygons = np.asarray(repair(shapely.force_2d(polygons)), dtype=object)
    if not is_pixel(target) and not same_crs(table.crs, target):
        polygons = np.asarray(transform(polygons, table.crs, target), dtype=object)
    area = shapely.union_all(polygons)
    shapely.prepare(area)
    return [np.asarray(shapely.intersects_xy(area, x, y), dtype=bool) for x, y in points]
