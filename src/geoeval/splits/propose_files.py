"""Points or tiles from a file, and the same rows with a split column in another file."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from geoeval.errors import BundleError, ColumnError, InputError
from geoeval.model import FloatArray, ObjectArray
from geoeval.report.fixed_date import fixed_date
from geoeval.splits.list_files import ListFile, read_list_file
from geoeval.splits.list_places import places
from geoeval.splits.propose import Proposal

ENDINGS = (".csv", ".gpkg")

#: GDAL writes this date instead of the time of day.
_DATE = "1970-01-01T00:00:00.000Z"


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """The rows of a file and where they lie.

    Parameters
    ----------
    bounds
        (n, 4) least x, least y, most x, most y.
    crs
        (n,) their systems as text.
    notes
        What was guessed.
    """

    file: ListFile
    bounds: FloatArray
    crs: list[str]
    notes: Mapping[str, str]


def read_places(
    path: Path, *, crs: str | None = None, bounds: tuple[str, ...] | None = None, layer: str | None = None
) -> Placed:
    """Points or tiles: a layer, or a table with coordinates, bounds or WKT.

    Parameters
    ----------
    crs
        Declared system, for a table whose rows do not name theirs.
    bounds
        Two or four columns; None is guessed from the usual names.

    Raises
    ------
    InputError
        There is no geometry, or a row has none.
    """
    file = read_list_file(Path(path), layer=layer, crs=crs)
    where = places(file, bounds=bounds, crs=crs)
    if where is None:
        raise InputError(
            f"{file.name}: expected points or tiles, found no geometry and no columns such as x,y, lon,lat or "
            f"minx,miny,maxx,maxy among {', '.join(map(repr, file.columns))}; name them with --bounds"
        )
    blank = np.flatnonzero(np.isnan(where.bounds).any(axis=1))
    if len(blank):
        raise InputError(
            f"{file.row(blank[0])}: has no place ({len(blank)} of {file.n} rows have none); fill it in, or leave the "
            "rows out"
        )
    return Placed(file, where.bounds, where.crs.to_pylist(), {**file.notes, **where.notes})


def values_of(placed: Placed, column: str) -> FloatArray:
    """(n,) a column as numbers, NaN where it is empty.

    Raises
    ------
    ColumnError
        There is no such column.
    InputError
        A value is no number.
    """
    return placed.file.optional_numbers(placed.file.require(column, "value"))[0]


def check_target(placed: Placed, out: Path, column: str) -> None:
    """Refuse a target that cannot be written, before anything is computed.

    Raises
    ------
    InputError
        Its ending is none of :data:`ENDINGS`, or rows of several systems cannot be one layer.
    ColumnError
        The file has a column of that name already.
    """
    if out.suffix.lower() not in ENDINGS:
        raise InputError(f"{out.name}: a proposal is written as {' or '.join(ENDINGS)}, got {out.suffix!r}")
    taken = [name for name in placed.file.columns if name.lower() in (column.lower(), f"{column}_group".lower())]
    if taken:
        raise ColumnError(
            f"{placed.file.name}: has a column {taken[0]!r} already; name another one for the proposal (--column), or "
            "hold the split that is there to the gates: geoeval split check"
        )
    if out.suffix.lower() == ".gpkg" and len(set(placed.crs)) > 1:
        raise InputError(f"{placed.file.name}: its rows are in {len(set(placed.crs))} systems; write a CSV instead")


def write_proposal(placed: Placed, found: Proposal, out: Path, *, column: str = "split") -> Path:
    """The rows of the file in their order, with the split and the group of each.

    Parameters
    ----------
    column
        Name of the split column; that of the groups has ``_group`` behind it.

    Raises
    ------
    InputError
        There is a file of that name with other content.
    BundleError
        It cannot be written; nothing is left behind.
    """
    check_target(placed, out, column)
    added = {column: list(found.split), f"{column}_group": list(found.group)}
    write = _write_csv if out.suffix.lower() == ".csv" else _write_layer
    return _whole(out, lambda path: write(path, placed, added))


def _whole(out: Path, write: Callable[[Path], None]) -> Path:
    partial = out.with_name(f".partial-{secrets.token_hex(8)}{out.suffix}")
    try:
        write(partial)
        if out.exists():
            if out.read_bytes() != partial.read_bytes():
                raise InputError(f"{out.name}: exists already and holds something else; choose another name")
        else:
            partial.rename(out)
    except (OSError, ValueError, RuntimeError) as error:
        raise BundleError(f"{out.name}: cannot be written ({error}); nothing was left behind") from error
    finally:
        partial.unlink(missing_ok=True)
    return out


def _write_csv(path: Path, placed: Placed, added: Mapping[str, list[str]]) -> None:
    import csv

    import shapely

    file = placed.file
    whole: dict[str, list[Any]] = {name: file.text(name).to_pylist() for name in file.columns} | dict(added)
    if file.geometry is not None:
        # The geometry of a layer is in none of its columns.
        taken = {name.lower() for name in whole}
        wkt, system = ("wkt" if "wkt" not in taken else "geometry_wkt", "crs" if "crs" not in taken else "geometry_crs")
        whole |= {wkt: shapely.to_wkt(file.geometry, rounding_precision=9).tolist(), system: placed.crs}
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(whole)
        writer.writerows(zip(*whole.values(), strict=True))


def _write_layer(path: Path, placed: Placed, added: Mapping[str, list[str]]) -> None:
    import geopandas
    import pandas as pd

    file = placed.file
    shapes = file.geometry if file.geometry is not None else _shapes(placed.bounds)
    columns = {name: _column(file, name) for name in file.columns}
    frame = geopandas.GeoDataFrame(pd.DataFrame({**columns, **added}), geometry=shapes, crs=placed.crs[0])
    with fixed_date(_DATE):
        frame.to_file(path, driver="GPKG", layer="split", engine="pyogrio")


def _column(file: ListFile, name: str) -> Any:
    """A column as a layer can hold it: lists and the like become text."""
    import pyarrow as pa

    array = file.columns[name]
    return (file.text(name) if pa.types.is_nested(array.type) else array).to_pandas()


def _shapes(bounds: FloatArray) -> ObjectArray:
    """Points, or rectangles; a box across ±180° in two parts."""
    import shapely

    left, low, right, high = bounds.T
    flat = (left == right) & (low == high)
    if flat.all():
        return np.asarray(shapely.points(left, low), dtype=np.object_)
    out = np.asarray(shapely.box(left, low, right, high), dtype=np.object_)
    for at in np.flatnonzero(left > right):
        parts = [shapely.box(left[at], low[at], 180.0, high[at]), shapely.box(-180.0, low[at], right[at], high[at])]
        out[at] = shapely.MultiPolygon(parts)
    return out
