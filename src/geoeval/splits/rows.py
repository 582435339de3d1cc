"""Records from files, one at a time: JSON Lines and (Geo)Parquet."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from geoeval.errors import InputError
from geoeval.splits.record import Sample, sample_from_json, sample_from_mapping
from geoeval.splits.table import Invalid

OnInvalid = Literal["refuse", "list"]

_SHOWN = 10

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
    shape, crs = _geo_column(file.schema_arrow.metadata or {})
    number = 0
    with file:
        for batch in file.iter_batches(batch_size=20_000):
            rows, bounds = batch.to_pylist(), None
            if shape is not None:
                import shapely

                bounds = shapely.bounds(shapely.from_wkb([row.pop(shape) for row in rows]))
            for at, row in enumerate(rows):
                number += 1
                where = f"{path.name}, row {number}"
                box = None if bounds is None else bounds[at].tolist()
                yield where, partial(_row_sample, row, box, crs, where)


def _geo_column(metadata: Mapping[bytes, bytes]) -> tuple[str | None, str]:
    """The geometry column of a GeoParquet file and its system; without one, no column."""
    if b"geo" not in metadata:
        return None, ""
    import pyproj

    from geoeval.geometry.crs import describe

    try:
        geo = json.loads(metadata[b"geo"])
        column = str(geo["primary_column"])
        crs = geo["columns"][column].get("crs", "OGC:CRS84")
        return column, "" if crs is None else describe(pyproj.CRS.from_user_input(crs))
    except (KeyError, TypeError, ValueError, pyproj.exceptions.CRSError) as error:
        raise InputError(f"the file's GeoParquet metadata cannot be read ({error!r}); write it again") from error


def _row_sample(row: Mapping[str, Any], box: Sequence[float] | None, crs: str, where: str) -> Sample:
    try:
        data = _plain_row(row, box, crs)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{where}: bbox or strata cannot be read ({error!r})") from error
    return sample_from_mapping(data, where)


def _plain_row(row: Mapping[str, Any], box: Sequence[float] | None, crs: str) -> dict[str, Any]:
    """A row of a table as a record: blanks left out, ``strata.x`` columns gathered, bounds from the geometry."""
    out: dict[str, Any] = {}
    strata: dict[str, Any] = {}
    for name, value in row.items():
        if value is None:
            continue
        if name.startswith("strata."):
            strata[name.removeprefix("strata.")] = value
        elif name == "strata":
            strata.update(value)
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
