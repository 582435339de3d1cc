"""One table of labelled points: which column holds the labels, one row a place, in a fixed order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import shapely

from geoeval.errors import ColumnError, InputError
from geoeval.model import Finding, FloatArray, IntArray, ObjectArray
from geoeval.options import Source
from geoeval.readers.columns import as_text, listed
from geoeval.readers.guess import guess, require
from geoeval.readers.raw import PIXEL, Table
from geoeval.readers.vector import read_table

#: Names of label columns of sample points, besides the usual ones.
_LABELS = ("reference", "ref", "landcover", "land_cover", "lulc", "ref_label", "reference_label", "code")


@dataclass(frozen=True, slots=True, eq=False)
class PointTable:
    """One table of labelled points, without duplicates."""

    table: Table
    frame: pd.DataFrame
    x: FloatArray
    y: FloatArray
    label: ObjectArray
    column: str
    guessed: bool
    findings: tuple[Finding, ...]


def read_points(source: Source, side: str) -> PointTable:
    """Points of one table with their labels; duplicates and shapes that are no points are reported."""
    table = read_table(source)
    if table.geometry is None:
        raise InputError(
            f"{side}: {table.name}: expected points (columns lon and lat, or x and y), found no coordinates."
        )
    there = np.array([shape is not None and not shape.is_empty for shape in table.geometry], dtype=bool)
    kinds = {shape.geom_type for shape in table.geometry[there]}
    if kinds - {"Point"}:
        raise InputError(
            f"{side}: {table.name}: expected points, found {', '.join(sorted(kinds))}; "
            "sample points carry one label each."
        )
    findings = list(table.findings)
    if not there.all():
        says = f"{int((~there).sum())} rows of {len(there)} have no coordinates and were dropped"
        findings.append(Finding("point-without-place", "major", (table.name,), says, "fill them in"))
    frame = table.frame[there].reset_index(drop=True)
    column = source.columns.label
    found = require(frame, column, "label", table.name) if column else _guessed_label(frame)
    if not found and len(frame):
        raise ColumnError(
            f"{side}: {table.name}: expected a column of labels, found {listed(frame.columns)}; "
            "name it with label = '…'."
        )
    label = recoded_labels(as_text(frame[found]) if found else np.empty(0, dtype=object), source.recode)
    at = shapely.get_coordinates(table.geometry[there])
    keep, extra = _distinct(frame, at, label, source, table.name)
    return PointTable(
        table,
        frame.iloc[keep].reset_index(drop=True),
        at[keep, 0],
        at[keep, 1],
        label[keep],
        found or "",
        column is None,
        (*findings, *extra),
    )


def _guessed_label(frame: pd.DataFrame) -> str | None:
    by_name = {str(column).lower(): str(column) for column in frame.columns}
    return guess(frame, "label") or next((by_name[name] for name in _LABELS if name in by_name), None)


def recoded_labels(labels: ObjectArray, recode: Mapping[str, str]) -> ObjectArray:
    """Labels with some of them changed; None stays None.

    Examples
    --------
    >>> recoded_labels(np.array(["1", "2", None], dtype=object), {"1": "water"}).tolist()
    ['water', '2', None]
    """
    out = np.full(len(labels), None, dtype=np.object_)
    out[:] = [recode.get(label, label) if label is not None else None for label in labels]
    return out


def _distinct(
    frame: pd.DataFrame, at: FloatArray, label: ObjectArray, source: Source, name: str
) -> tuple[IntArray, list[Finding]]:
    """Rows to keep, one a place (or id), in a fixed order; and what was left out."""
    if source.columns.id and source.columns.id != "row":
        ids = as_text(frame[require(frame, source.columns.id, "id", name)])
        keys = [(str(value), 0.0) for value in ids]
    else:
        keys = [(float(x), float(y)) for x, y in at]  # type: ignore[misc]
    order = sorted(range(len(keys)), key=lambda i: (keys[i], label[i] is None, label[i] or "", i))
    keep: list[int] = []
    spare: list[int] = []
    differing = set()
    for i in order:
        if keep and keys[keep[-1]] == keys[i]:
            spare.append(i)
            if label[i] != label[keep[-1]]:
                differing.add(keys[i])
        else:
            keep.append(i)
    findings = []
    if spare:
        says = f"{len(spare)} rows of {len(keys)} repeat a point; one of each is kept"
        says += f", though at {len(differing)} of them the labels differ" if differing else ""
        severity = "major" if differing else "minor"
        findings.append(Finding("duplicate-point", severity, (name,), says, "remove the duplicates"))  # type: ignore[arg-type]
    blank = sum(label[i] is None for i in keep)
    if blank:
        says = f"{blank} points have no label and are not compared"
        findings.append(Finding("label-missing", "minor", (name,), says, "fill them in"))
    return np.array(keep, dtype=np.int64), findings


def inside_area(points: PointTable, aoi: str | None) -> PointTable:
    """The points in the area of interest."""
    if aoi is None:
        return points
    area = read_table(Source(aoi, crs=PIXEL if points.table.crs == PIXEL else None))
    if area.geometry is None or not len(area):
        raise InputError(f"{aoi}: expected polygons, found none; an area of interest needs an area.")
    shapes = area.geometry
    if points.table.crs != PIXEL:
        from geoeval.geometry.crs import transform

        shapes = transform(shapes, area.crs, points.table.crs)
    keep = np.asarray(shapely.intersects_xy(shapely.union_all(shapes), points.x, points.y), dtype=bool)
    return replace(
        points,
        frame=points.frame[keep].reset_index(drop=True),
        x=points.x[keep],
        y=points.y[keep],
        label=points.label[keep],
    )


def point_shapes(points: PointTable) -> ObjectArray:
    """The points as shapely geometries."""
    shapes = np.empty(len(points.x), dtype=np.object_)
    shapes[:] = shapely.points(points.x, points.y)
    return shapes


def point_ids(points: PointTable, source: Source) -> ObjectArray:
    """Declared ids, else the place of each point."""
    if source.columns.id and source.columns.id != "row":
        return as_text(points.frame[source.columns.id])
    out = np.empty(len(points.x), dtype=np.object_)
    out[:] = [f"{x:.9g},{y:.9g}" for x, y in zip(points.x, points.y, strict=True)]
    return out
