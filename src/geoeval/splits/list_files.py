"""Columns of anybody's list: CSV, Parquet, GeoJSON, GeoPackage or any other layer, as Arrow columns.

Text of a CSV stays text: an id 007 is not 7, and a long id loses no digit.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from geoeval.errors import ColumnError, GeoevalError, InputError, nearest_spelling
from geoeval.model import FloatArray, ObjectArray

_TABLES = frozenset({".csv", ".tsv", ".txt"})
_COMMA = re.compile(r"[+-]?\d+,\d+")


@dataclass(frozen=True, slots=True, eq=False)
class ListFile:
    """One file as columns.

    Parameters
    ----------
    name
        File name, for messages.
    n
        Rows.
    columns
        Name to Arrow array.
    geometry
        (n,) shapely geometries where the file has them.
    crs
        System of the geometry as text; ``""`` without geometry.
    """

    name: str
    n: int
    columns: Mapping[str, Any]
    geometry: ObjectArray | None = None
    crs: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)

    def require(self, column: str, what: str) -> str:
        """The column's name as it stands in the file; case may differ where that is not ambiguous.

        Raises
        ------
        ColumnError
            There is no such column.
        """
        if column in self.columns:
            return column
        same = [name for name in self.columns if name.lower() == column.lower()]
        if len(same) == 1:
            return same[0]
        raise ColumnError(
            f"{self.name}: expected column {column!r} ({what}), found none of that name; "
            f"{nearest_spelling(column, self.columns)}"
        )

    def first(self, names: Iterable[str]) -> str | None:
        """The first of some usual names that is a column with at least one value; case does not matter."""
        lower = {name.lower(): name for name in reversed(list(self.columns))}
        found = (lower[name] for name in names if name in lower)
        return next((name for name in found if self.columns[name].null_count < self.n), None)

    def text(self, column: str) -> Any:
        """A column as Arrow strings; whole numbers have no ``.0``."""
        return as_strings(self.columns[column])

    def numbers(self, column: str) -> FloatArray:
        """A column as float64.

        Raises
        ------
        InputError
            A value is null, not finite, or no number; its row is named.
        """
        values, null = self.optional_numbers(column)
        bad = np.flatnonzero(null | ~np.isfinite(values))
        if len(bad):
            raise InputError(f"{self.row(bad[0])}: column {column!r} must be a finite number, got nothing of the kind")
        return values

    def optional_numbers(self, column: str) -> tuple[FloatArray, Any]:
        """A column as float64 and where it is null; what is no number is refused with its row."""
        import pyarrow as pa

        array = self.columns[column]
        null = array.is_null().to_numpy(zero_copy_only=False)
        if pa.types.is_integer(array.type) or pa.types.is_floating(array.type) or pa.types.is_decimal(array.type):
            return array.cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy(zero_copy_only=False), null
        return _parsed(self, column, as_strings(array)), null

    def row(self, at: int) -> str:
        """What a message calls a row: rows of data count from 1."""
        return f"{self.name}, row {int(at) + 1}"


def _parsed(file: ListFile, column: str, texts: Any) -> FloatArray:
    import pyarrow as pa

    try:
        return np.asarray(texts.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False), dtype=np.float64)
    except pa.ArrowInvalid:
        out = np.full(file.n, np.nan)
        for at, text in enumerate(texts.to_pylist()):
            try:
                out[at] = np.nan if text is None else float(text)
            except ValueError:
                raise InputError(
                    f"{file.row(at)}: column {column!r} must hold numbers, got {text!r}{_decimal_hint(text)}"
                ) from None
        return out


def _decimal_hint(text: str) -> str:
    """What to do about a comma in the place of the decimal point."""
    return (
        f"; write decimals with a point, {text.strip().replace(',', '.')}"
        if _COMMA.fullmatch(text.strip())
        else "; mend the row"
    )


def as_strings(array: Any) -> Any:
    """An Arrow column as large strings, blanks as null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_dictionary(kind):
        array = array.dictionary_decode()
        kind = array.type
    if pa.types.is_floating(kind):
        import pandas as pd

        from geoeval.readers.columns import as_text

        return pa.array(as_text(pd.Series(array.to_numpy(zero_copy_only=False))), type=pa.large_string())
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        raise ColumnError(f"expected a column of texts or numbers, found {kind}")
    out = pc.utf8_trim_whitespace(array.cast(pa.large_string()))
    return pc.if_else(pc.equal(out, ""), pa.scalar(None, pa.large_string()), out)


def read_list_file(path: Path, *, layer: str | None = None, crs: str | None = None) -> ListFile:
    """The columns of one file.

    Parameters
    ----------
    layer
        Which layer of a file with several.
    crs
        Declared system of a layer's coordinates, where the file names none.

    Raises
    ------
    InputError
        The file is missing, empty, cannot be read, or has no row.
    """
    from geoeval.readers.sources import existing

    existing(path)
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder; name its files")
    if path.suffix.lower() in _TABLES:
        found = _csv(path)
    elif path.suffix.lower() in (".parquet", ".geoparquet") and not _is_geo(path):
        found = _parquet(path)
    else:
        found = _layer(path, layer, crs)
    if not found.n:
        raise InputError(f"{path.name}: expected at least one sample, found no row")
    return found


def _csv(path: Path) -> ListFile:
    import pyarrow as pa
    import pyarrow.csv as pv

    data = path.read_bytes()
    if b"\0" in data[: 1 << 16]:
        raise InputError(f"{path.name}: expected text, found binary content; is the ending right?")
    notes = {}
    encoding = "utf8"
    try:
        whole = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        notes["encoding"] = f"{path.name}: byte {error.start} is not UTF-8; read as Latin-1"
        encoding, whole = "latin-1", data.decode("latin-1")
    first = next((line for line in whole[: 1 << 16].splitlines() if line.strip()), "")
    bare = "".join(first.split('"')[::2])
    mark = max(",;\t|", key=lambda one: (bare.count(one), one == ","))
    names = [name.strip() for name in next(csv.reader([first], delimiter=mark), [])]
    _refuse_twins(names, path.name)
    try:
        table = pv.read_csv(
            pa.BufferReader(data),
            read_options=pv.ReadOptions(encoding=encoding),
            parse_options=pv.ParseOptions(delimiter=mark, newlines_in_values=True),
            convert_options=pv.ConvertOptions(
                column_types=dict.fromkeys(_raw_names(first, mark), pa.large_string()),
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
                null_values=[""],
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        raise InputError(f"{path.name}: expected rows and columns of text, found: {error}; mend the file") from error
    columns = {name: table.column(at).combine_chunks() for at, name in enumerate(names)}
    return ListFile(path.name, table.num_rows, {name: one for name, one in columns.items() if name}, notes=notes)


def _raw_names(first: str, mark: str) -> list[str]:
    return next(csv.reader([first], delimiter=mark), [])


def _refuse_twins(names: list[str], name: str) -> None:
    twice = sorted({one for one in names if one and names.count(one) > 1})
    if twice:
        raise InputError(f"{name}: expected columns of different names, found {twice} twice; rename one")


def _is_geo(path: Path) -> bool:
    return b"geo" in (_schema(path).metadata or {})


def _schema(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_schema(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path.name}: cannot be read as Parquet ({error})") from error


def _parquet(path: Path) -> ListFile:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    _refuse_twins(list(table.column_names), path.name)
    return ListFile(path.name, table.num_rows, dict(_arrays(table)))


def _arrays(table: Any) -> Iterable[tuple[str, Any]]:
    """Columns of a table; a struct such as ``bbox`` gives ``bbox.xmin`` and so on."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in table.column_names:
        array = table.column(name).combine_chunks()
        if pa.types.is_struct(array.type):
            for part in array.type:
                yield f"{name}.{part.name}", pc.struct_field(array, part.name)
        else:
            yield name, array


def _layer(path: Path, layer: str | None, crs: str | None) -> ListFile:
    import pyarrow as pa

    from geoeval.options import Source
    from geoeval.readers.vector import read_table

    read = read_table(Source(str(path), layer=layer, crs=crs))
    columns = {}
    for name in read.frame.columns:
        try:
            columns[str(name)] = pa.array(read.frame[name], from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            columns[str(name)] = pa.array([None if one is None else str(one) for one in read.frame[name]])
    whole = {name: one.combine_chunks() if isinstance(one, pa.ChunkedArray) else one for name, one in columns.items()}
    system = "" if read.geometry is None else read.crs if isinstance(read.crs, str) else crs_text(read.crs)
    return ListFile(read.name, len(read.frame), whole, read.geometry, system, read.notes)


def crs_text(crs: Any) -> str:
    """A text that gives the same system when it is read: a code where there is one, else WKT.

    Examples
    --------
    >>> import pyproj
    >>> crs_text(pyproj.CRS("EPSG:26918"))
    'EPSG:26918'
    """
    from geoeval.geometry.crs import describe, parse_crs, same_crs

    name = describe(crs)
    try:
        return name if same_crs(parse_crs(name), crs) else str(crs.to_wkt())
    except GeoevalError:
        return str(crs.to_wkt())
