"""Heights at points against a raster: points in their own system, bilinear sampling between cell centres.

Sides         the points may be the reference (a survey of a DEM) or the prediction; error = prediction − reference.
Sampling      see :mod:`geoeval.readers.height_sampling`; points that the raster does not cover lower the coverage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import shapely
from numpy.typing import NDArray

from geoeval.errors import ColumnError, CRSMismatch, InputError, nearest_spelling
from geoeval.layers import Checkpoints
from geoeval.model import UNKNOWN, Finding, FloatArray, ObjectArray, Unit
from geoeval.options import Pairing, Source
from geoeval.readers.columns import as_numbers, as_text, listed, require_numbers
from geoeval.readers.grouping import cut, parse_by
from geoeval.readers.guess import candidates, guess, require
from geoeval.readers.height_sampling import sample_bilinear, sample_nearest
from geoeval.readers.heights import (
    compared_datums,
    conversions,
    factor,
    height_facts,
    holds_points,
    said,
)
from geoeval.readers.raster import raster_files
from geoeval.readers.raster_header import Header, read_header
from geoeval.readers.raw import PIXEL, Table
from geoeval.readers.sources import unit_name as stem_of
from geoeval.readers.unitset import UnitSet
from geoeval.readers.vector import read_table
from geoeval.stats.units import unit_name

#: Usual names of columns with heights, best first; case does not matter.
HEIGHT_NAMES = ("z", "elevation", "elev", "height", "h", "value", "altitude", "orthometric_height")


@dataclass(frozen=True, slots=True, eq=False)
class LoadedCheckpoints:
    """Heights at points, already read; the raster is sampled in the worker."""

    points: Checkpoints
    headers: tuple[Header, ...]
    reversed: bool
    by_points: float
    by_raster: float
    at: tuple[FloatArray, ...]

    def __call__(self) -> Checkpoints:
        """The points with the heights of both sides."""
        sampled = np.full(len(self.points.id), np.nan)
        for header, place in zip(self.headers, np.reshape(self.at, (len(self.headers), 2, -1)), strict=True):
            open_places = np.isnan(sampled)
            sampled[open_places] = sample_bilinear(header, place[0][open_places], place[1][open_places])
        sampled = sampled * self.by_raster
        given = self.points.reference * self.by_points
        p = self.points
        left, right = (sampled, given) if self.reversed else (given, sampled)
        return Checkpoints(p.id, p.x, p.y, left, right, p.cluster, p.strata, p.unit, p.notes)


def checkpoint_units(reference: Source, prediction: Source, pairing: Pairing) -> UnitSet[Checkpoints]:
    """One unit: heights at points against a raster (several rasters are asked in the order of their names).

    Raises
    ------
    InputError
        Both sides are points, a geometry is no point, or a point has no coordinates.
    ColumnError
        No column of heights was declared or found.
    """
    if holds_points(reference) and holds_points(prediction):
        raise InputError("expected a raster on one side, found points on both; compare points with the vector family.")
    turned = holds_points(prediction)
    point_side, raster_side = ("prediction", "reference") if turned else ("reference", "prediction")
    point_source, raster_source = (prediction, reference) if turned else (reference, prediction)
    headers = [
        read_header(raster_source, item, raster_side) for _, item in raster_files(raster_source.path, raster_side).items
    ]
    table = read_table(point_source)
    notes = dict(table.notes)
    findings = list(table.findings)
    heights, column = _heights(table, point_source, point_side)
    notes["height column"] = column
    x, y, keep = _places(table, point_side, findings)
    at = [_in_system(table, header, pairing, x, y) for header in headers]
    if any(crossed for _, _, crossed in at):
        says = f"the points of {table.name} were transformed to the system of the raster to sample it"
        findings.append(Finding("crs-differs", "info", (table.name,), says, "none needed"))
    if pairing.aoi is not None:
        keep &= _inside(pairing.aoi, table, x, y)
    points_facts = height_facts(point_source, point_side, table.name, None, "", pairing.unit)
    raster_facts = height_facts(
        raster_source, raster_side, headers[0].name, headers[0].unit, headers[0].crs, pairing.unit
    )
    for header in headers[1:]:
        other = height_facts(raster_source, raster_side, header.name, header.unit, header.crs, pairing.unit)
        if (other.unit, other.datum) != (raster_facts.unit, raster_facts.datum):
            raise InputError(
                f"{header.name} and {headers[0].name} differ in unit or vertical datum; evaluate them apart."
            )
    sides = (raster_facts, points_facts) if turned else (points_facts, raster_facts)
    wanted = unit_name(pairing.unit) if pairing.unit else sides[0].unit
    findings += [*compared_datums(*sides), *conversions(sides, wanted)]
    notes.update(said(*sides, wanted))
    rows = np.flatnonzero(keep)
    ids = _ids(table, point_source, x, y, heights, rows, notes)
    rows, ids = rows[order := np.lexsort((heights[rows], y[rows], x[rows], ids.astype(str)))], ids[order]
    cluster, one = _clusters(table, pairing, x, y, rows, notes)
    points = Checkpoints(
        id=ids,
        x=x[rows],
        y=y[rows],
        reference=heights[rows],
        prediction=np.full(len(rows), np.nan),
        cluster=cluster,
        strata=_strata(table, pairing, at[0], headers[0], rows),
        unit=wanted,
        notes={"raster": headers[0].name, "points": table.name, "sampling": "bilinear between cell centres"},
    )
    load = LoadedCheckpoints(
        points,
        tuple(headers),
        turned,
        factor(points_facts, wanted),
        factor(raster_facts, wanted),
        tuple(axis[rows] for place in at for axis in place[:2]),
    )
    name = stem_of(table.name)
    return UnitSet(
        (Unit(name, load, name if one else None),),
        tuple(dict.fromkeys(findings)),
        notes,
        tuple(
            dict.fromkeys(
                [*table.inputs, *(h.path for h in headers if h.path), *([pairing.aoi] if pairing.aoi else [])]
            )
        ),
        clustered=pairing.cluster != "none",
    )


def _heights(table: Table, source: Source, side: str) -> tuple[FloatArray, str]:
    frame = table.frame
    declared = source.columns.value
    if declared:
        require(frame, declared, "value", table.name)
        return require_numbers(frame[declared], f"{table.name}, column {declared!r}"), f"{declared!r}"
    lower = {str(name).lower(): str(name) for name in reversed(list(frame.columns))}
    for name in HEIGHT_NAMES:
        if name in lower and as_numbers(frame[lower[name]]) is not None:
            return require_numbers(frame[lower[name]], table.name), f"{lower[name]!r} (guessed)"
    found = _third_axis(table, source)
    if found is not None:
        return found, "third coordinate of the geometry (guessed)"
    raise ColumnError(
        f"{side}: {table.name}: expected a column of heights ({', '.join(HEIGHT_NAMES[:5])}), found none; name it with "
        f"the column option 'value'; {nearest_spelling('z', map(str, frame.columns))}"
    )


def _third_axis(table: Table, source: Source) -> FloatArray | None:
    """Heights in the geometry of a layer, which are dropped where features are read for comparison on the map."""
    shapes = table.geometry
    if shapes is not None and len(shapes) and bool(np.all(shapely.has_z(shapes))):
        return np.asarray(shapely.get_z(shapes), dtype=np.float64)
    ending = str(source.path).lower().rpartition(".")[2]
    if ending not in ("gpkg", "geojson", "json", "shp", "fgb"):
        return None
    import pyogrio

    raw = pyogrio.raw.read(source.path, layer=source.layer, columns=[])[2]
    whole = shapely.from_wkb(raw[table.row])
    if not len(whole) or not bool(np.all(shapely.has_z(whole[~shapely.is_missing(whole)]))):
        return None
    out = np.full(len(whole), np.nan)
    point = np.asarray(shapely.get_type_id(whole) == 0)
    out[point] = shapely.get_z(whole[point])
    return out


def _places(table: Table, side: str, findings: list[Finding]) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    shapes = table.geometry
    if shapes is None:
        raise InputError(
            f"{side}: {table.name}: expected points (columns x and y, lon and lat, or a geometry), found none; rename "
            "the columns."
        )
    there = ~shapely.is_missing(shapes) & ~shapely.is_empty(shapes)
    other = np.flatnonzero(there & (shapely.get_type_id(shapes) != 0))
    if len(other):
        raise InputError(
            f"{side}: {table.name}: expected points, found {shapes[other[0]].geom_type!r} in feature "
            f"{table.row[other[0]]} ({len(other)} such features); heights are compared at points."
        )
    if not there.all():
        missing = np.flatnonzero(~there)
        says = f"{len(missing)} points have no coordinates and were left out ({listed(table.row[missing])})"
        findings.append(Finding("point-without-place", "major", (table.name,), says, "fill in their coordinates"))
    x, y = np.full(len(shapes), np.nan), np.full(len(shapes), np.nan)
    x[there], y[there] = shapely.get_x(shapes[there]), shapely.get_y(shapes[there])
    return x, y, np.asarray(there, dtype=bool)


def _in_system(
    table: Table, header: Header, pairing: Pairing, x: FloatArray, y: FloatArray
) -> tuple[FloatArray, FloatArray, bool]:
    """Places of the points in the system of a raster, and whether they had to be transformed."""
    if (table.crs == PIXEL) != (header.kind == "pixel"):
        raise CRSMismatch(
            f"{table.name} and {header.name}: one is in pixel coordinates and one in a coordinate system; declare crs "
            "on the side that lacks it."
        )
    if table.crs == PIXEL:
        return x, y, False
    from geoeval.geometry.crs import describe, parse_crs, same_crs, transform

    system = parse_crs(header.crs)
    if same_crs(table.crs, system):
        return x, y, False
    if pairing.on_crs_mismatch == "refuse":
        raise CRSMismatch(
            f"{table.name} is in {describe(table.crs)} and {header.name} in {describe(system)}; transform the points, "
            'or drop on_crs_mismatch = "refuse".'
        )
    there = np.isfinite(x) & np.isfinite(y)
    moved = transform(np.asarray(shapely.points(x[there], y[there]), dtype=object), table.crs, system)
    out_x, out_y = np.full(len(x), np.nan), np.full(len(x), np.nan)
    out_x[there], out_y[there] = shapely.get_x(moved), shapely.get_y(moved)
    return out_x, out_y, True


def _inside(aoi: str, table: Table, x: FloatArray, y: FloatArray) -> NDArray[np.bool_]:
    from geoeval.readers.places import inside_aoi

    return inside_aoi(aoi, table.crs, [(x, y)])[0]


def _ids(
    table: Table,
    source: Source,
    x: FloatArray,
    y: FloatArray,
    z: FloatArray,
    rows: NDArray[Any],
    notes: dict[str, str],
) -> ObjectArray:
    """Declared or usual ids; else the coordinates, which do not depend on the order of the file."""
    declared = source.columns.id
    column = require(table.frame, declared, "id", table.name) if declared else guess(table.frame, "id")
    if column is not None and declared != "":
        text: ObjectArray = as_text(table.frame[column])[rows]
        if not pd.isna(text).any() and len(set(text)) == len(text):
            notes["id column"] = f"{column!r}" if declared else f"{column!r} (guessed)"
            return text
        if declared:
            raise ColumnError(
                f"{table.name}: expected one id a point in column {column!r}, found blanks or repetitions; mend them, "
                "or leave the column out."
            )
    notes["id column"] = "none: points are known by their coordinates"
    out = np.empty(len(rows), dtype=object)
    out[:] = [f"{x[i]:.6f} {y[i]:.6f} {z[i]:.6f}" for i in rows]
    seen: dict[str, int] = {}
    for i, name in enumerate(out):
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            out[i] = f"{name} #{seen[name]}"
    return out


def _clusters(
    table: Table, pairing: Pairing, x: FloatArray, y: FloatArray, rows: NDArray[Any], notes: dict[str, str]
) -> tuple[ObjectArray, bool]:
    """The cluster of each point, and whether the whole unit is one."""
    blank = np.full(len(rows), "", dtype=object)
    if pairing.cluster in ("none", "unit"):
        notes["clusters"] = "none" if pairing.cluster == "none" else "each unit"
        return blank, pairing.cluster == "unit"
    if pairing.cluster == "auto":
        for column in candidates(table.frame, "cluster"):
            text = as_text(table.frame[column])[rows]
            if not pd.isna(text).any() and len(set(text)) > 1:
                notes["clusters"] = f"column {column!r} (guessed)"
                return text, False
    if pairing.cluster == "auto" or pairing.cluster.startswith("grid:"):
        return _blocks(table, pairing, x[rows], y[rows], notes), False
    column = require(table.frame, pairing.cluster, "cluster", table.name)
    text = as_text(table.frame[column])[rows]
    if pd.isna(text).any():
        raise InputError(
            f"{table.name}: {int(pd.isna(text).sum())} points have no value in the cluster column {column!r}; fill it "
            "in, or declare cluster = 'grid:auto'."
        )
    notes["clusters"] = f"column {column!r}"
    return text, False


def _blocks(table: Table, pairing: Pairing, x: FloatArray, y: FloatArray, notes: dict[str, str]) -> ObjectArray:
    from geoeval.geometry.blocks import auto_side, block_names, parse_grid

    if not len(x):
        return np.empty(0, dtype=object)
    unit = "px" if table.crs == PIXEL else "m"
    if table.crs != PIXEL:
        from geoeval.geometry.crs import extent, metric_crs, same_crs, transform

        shapes = np.asarray(shapely.points(x, y), dtype=object)
        metric, _ = metric_crs(table.crs, extent(table.crs, shapes))
        if not same_crs(metric, table.crs):
            shapes = transform(shapes, table.crs, metric)
            x, y = np.asarray(shapely.get_x(shapes)), np.asarray(shapely.get_y(shapes))
    declared = None if pairing.cluster == "auto" else parse_grid(pairing.cluster, unit)
    side = declared or auto_side((float(x.min()), float(y.min()), float(x.max()), float(y.max())))
    notes["clusters"] = f"blocks of {side:g} {unit}" + ("" if declared else " (automatic)")
    names: ObjectArray = block_names(x, y, side)
    return names


def _strata(
    table: Table, pairing: Pairing, at: tuple[FloatArray, FloatArray, bool], header: Header, rows: NDArray[Any]
) -> dict[str, ObjectArray]:
    """Values of stratum fields: columns, cut at edges where declared, or the classes of a raster under the points."""
    out: dict[str, ObjectArray] = {}
    for text in pairing.by:
        name, equals, path = text.partition("=")
        if equals:
            other = read_header(Source(path), path, f"stratum {name}")
            x, y = at[0][rows], at[1][rows]
            if other.crs != header.crs:
                x, y, _ = _between(header, other, x, y)
            out[name] = _classes(sample_nearest(other, x, y))
            continue
        by = parse_by(text)
        require(table.frame, by.name, "stratum", table.name)
        if by.edges:
            out[by.name] = cut(
                require_numbers(table.frame[by.name], f"{table.name}, column {by.name!r}")[rows], by.edges
            )
        else:
            values = as_text(table.frame[by.name])[rows]
            values[pd.isna(values)] = UNKNOWN
            out[by.name] = values
    return out


def _classes(codes: FloatArray) -> ObjectArray:
    out = np.full(len(codes), UNKNOWN, dtype=object)
    known = np.isfinite(codes)
    out[known] = [str(int(code)) if code == np.floor(code) else f"{code:g}" for code in codes[known]]
    return out


def _between(start: Header, end: Header, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, bool]:
    from geoeval.geometry.crs import parse_crs, transform

    there = np.isfinite(x) & np.isfinite(y)
    moved = transform(
        np.asarray(shapely.points(x[there], y[there]), dtype=object), parse_crs(start.crs), parse_crs(end.crs)
    )
    out_x, out_y = np.full(len(x), np.nan), np.full(len(x), np.nan)
    out_x[there], out_y[there] = shapely.get_x(moved), shapely.get_y(moved)
    return out_x, out_y, True
