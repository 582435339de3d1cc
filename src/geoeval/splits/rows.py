"""Records from files, one at a time: JSON Lines and (Geo)Parquet."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from geoeval.errors import InputError
from geoeval.splits.record import Sample, sample_from_json, sample_from_mapping
from geoeval.splits.table import Invalid

OnInvalid = Literal["refuse", "list"]

_SHOWN = 10
_BATCH = 20_000

#: Where a record stands, and what reads it.
Row = tuple[str, Callable[[], Sample]]


def records(path: Path, on_invalid: OnInvalid, invalid: list[Invalid]) -> Iterator[Sample]:
    """Validated records of a file, one at a time; what cannot be used is listed, or refused all at once at the end."""
    ending = path.suffix.lower()
    if not path.is_file():
        raise InputError(f"{path.name}: expected a source of samples (.jsonl or .parquet), found no such file")
    if ending in (".jsonl", ".ndjson"):
        rows: Iterator[Row] = _json_rows(path)
    elif ending in (".parquet", ".geoparquet"):
        rows = _parquet_rows(path)
    else:
        raise InputError(f"{path.name}: a source is JSON Lines (.jsonl) or GeoParquet (.parquet), got {ending!r}")
    refused: list[str] = []
    number = 0
    for where, read in rows:
        try:
            yield read()
        except InputError as error:
            if on_invalid == "list":
                invalid.append(Invalid(where, str(error)))
                continue
            number += 1
            if number <= _SHOWN:
                refused.append(str(error))
    if number > _SHOWN:
        refused.append(f"… and {number - _SHOWN} more records")
    if refused:
        raise InputError("\n".join(refused))


def _json_rows(path: Path) -> Iterator[Row]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            text = line.strip().removeprefix(b"\xef\xbb\xbf")
            if text:
                where = f"{path.name}, line {number}"
                yield where, partial(sample_from_json, text, where)


def _parquet_rows(path: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path.name}: cannot be read as Parquet ({error})") from error
    with file:
        shape, crs = _geo_column(file.schema_arrow, path.name)
        _check_columns(file, shape, path.name)
        number = 0
        for rows in _batches(file, path.name):
            bounds = None
            if shape is not None:
                bounds = _bounds([row.pop(shape) for row in rows], f"{path.name}, column {shape!r}", number)
            for at, row in enumerate(rows):
                number += 1
                where = f"{path.name}, row {number}"
                box = None if bounds is None else bounds[at].tolist()
                yield where, partial(_row_sample, row, box, crs, where)


def _batches(file: Any, name: str) -> Iterator[list[dict[str, Any]]]:
    import pyarrow as pa

    batches = file.iter_batches(batch_size=_BATCH)
    while True:
        try:
            batch = next(batches, None)
            rows = None if batch is None else batch.to_pylist()
        except (pa.ArrowException, OSError, ValueError) as error:
            raise InputError(f"{name}: cannot be read as Parquet ({error!s:.200}); fetch or write it again") from error
        if rows is None:
            return
        yield rows


def _check_columns(file: Any, shape: str | None, name: str) -> None:
    """Refuse two columns of one name, and values that are no texts, numbers, or lists or tables of these."""
    import pyarrow as pa

    schema = file.schema_arrow
    twice = sorted({one for one in schema.names if schema.names.count(one) > 1})
    if twice:
        raise InputError(f"{name}: expected columns of different names, found {twice} more than once; rename one")
    for column in schema:
        found = None if column.name == shape else _unfit(column.type)
        if found is None:
            continue
        try:
            row, record, value = _first_value(file, column.name)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise InputError(f"{name}: column {column.name!r} ({column.type}) cannot be read: {error}") from error
        if row is not None:
            raise InputError(
                f"{name}, row {row}{record}: column {column.name!r} must hold texts, numbers or lists of these, got "
                f"{value!r:.80} ({found}); write it as text (in pandas .astype(str)), or leave the column out"
            )


def _unfit(kind: Any) -> str | None:
    """The part of a column's type that no record can hold; None where there is none."""
    import pyarrow as pa

    is_a = pa.types
    if is_a.is_dictionary(kind) or is_a.is_map(kind):
        parts = [kind.value_type] if is_a.is_dictionary(kind) else [kind.key_type, kind.item_type]
    elif is_a.is_struct(kind):
        names = [kind.field(at).name for at in range(kind.num_fields)]
        if len(set(names)) < len(names):
            return f"{kind}: two parts of one name"
        parts = [kind.field(at).type for at in range(kind.num_fields)]
    elif any(one(kind) for one in (is_a.is_list, is_a.is_large_list, is_a.is_fixed_size_list)):
        parts = [kind.value_type]
    else:
        texts = (is_a.is_string, is_a.is_large_string, is_a.is_string_view)
        fits = (*texts, is_a.is_integer, is_a.is_floating, is_a.is_boolean, is_a.is_null)
        return None if any(one(kind) for one in fits) else str(kind)
    return next((found for part in parts if (found := _unfit(part)) is not None), None)


def _first_value(file: Any, column: str) -> tuple[int | None, str, Any]:
    """The first row of a column that holds anything: its number, its record and what it holds."""
    names = [column, *(["sample_id"] if "sample_id" in file.schema_arrow.names and column != "sample_id" else [])]
    number = 0
    for batch in file.iter_batches(batch_size=_BATCH, columns=names):
        there = np.flatnonzero(batch.column(column).is_valid().to_numpy(zero_copy_only=False))
        if len(there):
            at = int(there[0])
            record = f", record {batch.column('sample_id')[at].as_py()!r}" if len(names) > 1 else ""
            return number + at + 1, record, batch.column(column)[at].as_py()
        number += batch.num_rows
    return None, "", None


def _bounds(shapes: Sequence[Any], where: str, start: int) -> Any:
    """(n, 4) bounds of geometries in WKB; what is none is refused with its row."""
    import shapely

    try:
        return shapely.bounds(shapely.from_wkb(shapes))
    except (shapely.errors.ShapelyError, TypeError):
        for at, one in enumerate(shapes):
            try:
                shapely.from_wkb(one)
            except (shapely.errors.ShapelyError, TypeError) as error:
                raise InputError(
                    f"{where}, row {start + at + 1}: expected a geometry as WKB, got {one!r:.60} ({error}); "
                    "write the file again"
                ) from error
        raise


def _geo_column(schema: Any, name: str) -> tuple[str | None, str]:
    """The geometry column of a GeoParquet file and its system; without one, no column."""
    metadata: Mapping[bytes, bytes] = schema.metadata or {}
    if b"geo" not in metadata:
        return None, ""
    import pyproj

    from geoeval.geometry.crs import describe

    try:
        geo = json.loads(metadata[b"geo"])
        column = str(geo["primary_column"])
        said = geo["columns"][column]
        crs = said.get("crs", "OGC:CRS84")
        encoding = said.get("encoding", "WKB")
        system = "" if crs is None else describe(pyproj.CRS.from_user_input(crs))
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError, pyproj.exceptions.CRSError) as error:
        raise InputError(f"{name}: the GeoParquet metadata cannot be read ({error!r:.200}); write it again") from error
    if column not in schema.names or encoding != "WKB":
        raise InputError(
            f"{name}: expected the geometry column {column!r} as WKB, found "
            + (f"the encoding {encoding!r:.40}" if column in schema.names else "no such column")
            + "; write the file again"
        )
    return column, system


def _row_sample(row: Mapping[str, Any], box: Sequence[float] | None, crs: str, where: str) -> Sample:
    try:
        data = _plain_row(row, box, crs)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{where}: bbox or strata cannot be read ({error!r})") from error
    return sample_from_mapping(data, where)


def _add(strata: dict[str, Any], pairs: Iterable[tuple[str, Any]]) -> None:
    """Readers differ in which of two values of one field they take, so that neither is."""
    for name, value in pairs:
        if strata.get(name) is not None and value is not None:
            raise ValueError(f"strata: {name!r} stands there more than once")
        strata[name] = value if value is not None else strata.get(name)


def _plain_row(row: Mapping[str, Any], box: Sequence[float] | None, crs: str) -> dict[str, Any]:
    """A row of a table as a record: blanks left out, ``strata.x`` columns gathered, bounds from the geometry."""
    out: dict[str, Any] = {}
    strata: dict[str, Any] = {}
    for name, value in row.items():
        if value is None:
            continue
        if name.startswith("strata."):
            _add(strata, [(name.removeprefix("strata."), value)])
        elif name == "strata":
            _add(strata, value.items() if isinstance(value, Mapping) else value)
        elif name == "bbox" and isinstance(value, Mapping):
            out[name] = [value[side] for side in ("xmin", "ymin", "xmax", "ymax")]
        else:
            out[name] = value
    if box is not None and "bbox" not in out and not np.isnan(box).any():
        out["bbox"] = list(box)
        out.setdefault("crs", crs)
    elif "bbox" in out and crs:
        out.setdefault("crs", crs)
    if strata:
        out["strata"] = {name: value for name, value in strata.items() if value is not None}
    return out
