"""Tables without a geometry column of their own: boxes, points or WKT are found by the names of columns."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import shapely

from geoeval.errors import InputError
from geoeval.model import Finding, FloatArray, ObjectArray
from geoeval.options import Columns
from geoeval.readers.columns import as_text, listed, require_numbers
from geoeval.readers.guess import TEXT_NAMES

#: Names of columns with WKT, best first.
WKT_NAMES = (
    "wkt",
    "wkt_pix",
    "wkt_geo",
    "wkt_geom",
    "geometry",
    "geom",
    "the_geom",
    "geometry_wkt",
    "geom_wkt",
    "shape",
)

#: Names of the four columns of a box: left, lower, right, upper by name, in whatever order they stand.
CORNER_NAMES = (
    ("xmin", "ymin", "xmax", "ymax"),
    ("x_min", "y_min", "x_max", "y_max"),
    ("minx", "miny", "maxx", "maxy"),
    ("min_x", "min_y", "max_x", "max_y"),
    ("left", "top", "right", "bottom"),
    ("x1", "y1", "x2", "y2"),
    ("x0", "y0", "x1", "y1"),
)

#: Corner, width and height.
EXTENT_NAMES = (
    ("x", "y", "width", "height"),
    ("x", "y", "w", "h"),
    ("left", "top", "width", "height"),
    ("xmin", "ymin", "width", "height"),
    ("bbox_x", "bbox_y", "bbox_w", "bbox_h"),
)

#: Longitude and latitude, which name their CRS.
LONLAT_NAMES = (("lon", "lat"), ("longitude", "latitude"), ("long", "lat"), ("lng", "lat"), ("lon_dd", "lat_dd"))

#: Coordinates whose CRS must be declared.
XY_NAMES = (
    ("x", "y"),
    ("easting", "northing"),
    ("east", "north"),
    ("x_coord", "y_coord"),
    ("coord_x", "coord_y"),
    ("e", "n"),
)


class Shapes(NamedTuple):
    """Geometries of a table, which kind of columns gave them, and which columns."""

    geometry: ObjectArray | None
    kind: str
    used: tuple[str, ...]
    broken: ObjectArray | None = None


def read_csv(path: Path, columns: Columns | None = None) -> tuple[pd.DataFrame, list[Finding]]:
    """A delimited text file with a header line.

    Columns that look like ids, labels or names of images are read as text, so that ``007`` stays what it is.

    Parameters
    ----------
    path
        The file; comma, semicolon, tab or bar between the fields.
    columns
        Declared columns, which are read as text too.

    Raises
    ------
    InputError
        The text cannot be split into rows and columns.
    """
    encoding, findings = _encoding(path)
    separator = _separator(path, encoding)
    declared = {columns.id, columns.label, columns.unit} if columns is not None else set[str | None]()
    try:
        with path.open(encoding=encoding, newline="") as lines:
            header = next(csv.reader(lines, delimiter=separator), [])
        text = {name: str for name in header if name.strip().lower() in TEXT_NAMES or name in declared}
        _refuse_twins(header, path.name)
        with warnings.catch_warnings():
            # Rows longer than the header would lose their end with no more than a warning.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                path,
                sep=separator,
                encoding=encoding,
                dtype=text,
                skipinitialspace=True,
                low_memory=False,
                index_col=False,
            )
    except (ValueError, OSError, csv.Error, pd.errors.ParserWarning) as error:
        raise InputError(
            f"{str(path)!r}: expected rows and columns of text, found: {_unreadable(error)}; mend the file"
        ) from error
    if path.suffix.lower() == ".txt" and len(frame.columns) < 2:
        raise InputError(
            f"{str(path)!r}: expected rows and columns of text, found text without columns; is it a table?"
        )
    frame.columns = [str(name).strip() for name in frame.columns]
    return frame, findings


def _refuse_twins(header: list[str], name: str) -> None:
    """The reader would call the second of two equal columns something else; columns without a name are left alone."""
    names = [title.strip() for title in header if title.strip()]
    twice = sorted({title for title in names if names.count(title) > 1})
    if twice:
        raise InputError(
            f"{name}: expected columns of different names, found {listed(map(repr, twice))} twice; rename one"
        )


def _encoding(path: Path) -> tuple[str, list[Finding]]:
    with path.open("rb") as stream:
        head = stream.read(1 << 16)
        if b"\0" in head:
            raise InputError(f"{str(path)!r}: expected text, found binary content; is the ending right?")
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for _ in lines:
                pass
    except UnicodeDecodeError as error:
        finding = Finding(
            "encoding-not-utf8",
            "minor",
            (path.name,),
            f"byte {error.start} is not UTF-8; the file was read as Latin-1",
            "write it as UTF-8",
        )
        return "latin-1", [finding]
    return "utf-8-sig", []


def _separator(path: Path, encoding: str) -> str:
    with path.open(encoding=encoding) as lines:
        first = next((line for line in lines if line.strip()), "")
    # The quoted parts may hold commas of WKT, so only what stands outside of quotes counts.
    bare = "".join(first.split('"')[::2])
    return max(",;\t|", key=lambda mark: (bare.count(mark), mark == ","))


def _unreadable(error: Exception) -> str:
    if isinstance(error, pd.errors.ParserWarning):
        return "rows with more fields than the first line, which must name the columns"
    return " ".join(str(error).split())[:200] or type(error).__name__


def shapes(frame: pd.DataFrame, name: str) -> Shapes:
    """Geometries from the columns of a table: WKT first, then boxes, then points.

    Parameters
    ----------
    frame
        The table.
    name
        File name for messages.

    Examples
    --------
    >>> frame = pd.DataFrame({"xmin": [0], "xmax": [2], "ymin": [0], "ymax": [1]})
    >>> shapes(frame, "a.csv").geometry[0].area
    2.0
    >>> shapes(pd.DataFrame({"idx": [1]}), "a.csv").kind
    'table'
    """
    lower: dict[str, str] = {}
    for title in frame.columns:
        lower.setdefault(str(title).lower(), str(title))
    for wanted in WKT_NAMES:
        if wanted in lower and _is_text(frame[lower[wanted]]):
            column = lower[wanted]
            geometry, broken = _from_text(frame[column], f"{name}, column {column!r}")
            return Shapes(geometry, "wkt", (column,), broken)
    for group in CORNER_NAMES:
        if all(part in lower for part in group):
            used = tuple(lower[part] for part in group)
            return Shapes(_boxes(_numbers(frame, used, name), used, name), "boxes", used)
    for group in EXTENT_NAMES:
        if all(part in lower for part in group):
            used = tuple(lower[part] for part in group)
            x, y, width, height = _numbers(frame, used, name)
            return Shapes(_boxes([x, y, x + width, y + height], used, name), "boxes", used)
    for groups, kind in ((LONLAT_NAMES, "lonlat"), (XY_NAMES, "points")):
        for pair in groups:
            if all(part in lower for part in pair):
                used = tuple(lower[part] for part in pair)
                return Shapes(_points(_numbers(frame, used, name)), kind, used)
    return Shapes(None, "table", ())


def _is_text(values: pd.Series[Any]) -> bool:
    return (values.dtype == object or isinstance(values.dtype, pd.StringDtype)) and bool(values.notna().any())


def _numbers(frame: pd.DataFrame, used: tuple[str, ...], name: str) -> list[FloatArray]:
    return [require_numbers(frame[column], f"{name}, column {column!r}") for column in used]


def _from_text(values: pd.Series[Any], where: str) -> tuple[ObjectArray, ObjectArray | None]:
    first = values.dropna().iloc[0]
    if isinstance(first, shapely.Geometry):
        return values.to_numpy(dtype=object), None
    binary = isinstance(first, bytes)
    text = values.where(values.notna(), None).to_numpy(dtype=object) if binary else as_text(values)
    read = shapely.from_wkb if binary or str(first)[:2] in ("00", "01") else shapely.from_wkt
    geometry, broken = build(text, read)
    bad = np.flatnonzero(~pd.isna(text) & shapely.is_missing(geometry))
    if len(bad):
        raise InputError(
            f"{where}: expected WKT such as POLYGON ((0 0, 1 0, 1 1, 0 0)), found {str(text[bad[0]])[:60]!r} "
            f"in feature {bad[0]} ({len(bad)} such features); mend them"
        )
    return geometry, broken


def build(source: ObjectArray, read: Callable[..., Any]) -> tuple[ObjectArray, ObjectArray | None]:
    """Geometries from WKB or WKT, and why some could not be built as written.

    A ring that is not closed or too short is closed, so that the feature can still be judged and repaired.

    Examples
    --------
    >>> geometry, broken = build(np.array(["POLYGON ((0 0, 1 0, 1 1))", "POINT (1 1)"], dtype=object), shapely.from_wkt)
    >>> broken.tolist(), geometry[0].wkt
    (['ring-not-closed', ''], 'POLYGON ((0 0, 1 0, 1 1, 0 0))')
    """
    with np.errstate(invalid="ignore"):
        geometry = np.asarray(read(source, on_invalid="ignore"), dtype=object)
        bad = np.flatnonzero(~pd.isna(source) & shapely.is_missing(geometry))
        if not len(bad):
            return geometry, None
        geometry[bad] = read(source[bad], on_invalid="fix")
    broken = np.full(len(source), "", dtype=object)
    # A closed ring of three positions goes there and back: there were two points only.
    broken[bad] = np.where(shapely.get_num_coordinates(geometry[bad]) <= 3, "too-few-points", "ring-not-closed")
    return geometry, broken


def _boxes(sides: list[FloatArray], used: tuple[str, ...], name: str) -> ObjectArray:
    left, low, right, high = sides
    known = np.isfinite(left) & np.isfinite(low) & np.isfinite(right) & np.isfinite(high)
    bad = np.flatnonzero(known & ((right < left) | (high < low)))
    if len(bad):
        row = int(bad[0])
        raise InputError(
            f"{name}: expected boxes whose far corner lies beyond the near one in columns {', '.join(used)}, found "
            f"({left[row]:g}, {low[row]:g}, {right[row]:g}, {high[row]:g}) in feature {row} "
            f"({len(bad)} such features: {listed(bad)}); are the columns swapped?"
        )
    out = np.full(len(left), None, dtype=object)
    if known.any():
        out[known] = shapely.box(left[known], low[known], right[known], high[known])
    return out


def _points(sides: list[FloatArray]) -> ObjectArray:
    x, y = sides
    known = np.isfinite(x) & np.isfinite(y)
    out = np.full(len(x), None, dtype=object)
    if known.any():
        out[known] = shapely.points(x[known], y[known])
    return out
