"""Raw predictions as columns: for layers and drawings, and as GeoParquet where there are too many rows for JSON.

Above :data:`LIMIT` objects a case of ``baseline-raw-predictions.json`` names its tables instead of holding rows: path,
number of rows, and a digest of the logical rows. That digest is the SHA-256 of the rows in sorted order, each as one
line of JSON (a list of the columns in their order, geometry as hexadecimal WKB, strata as text), so that it can be
computed again from any file format.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from geoeval.errors import BundleError
from geoeval.evidence.bundle import Content
from geoeval.evidence.canonical import canonical_bytes, plain
from geoeval.model import ObjectArray, Records

#: Above so many objects a case is written as tables.
LIMIT = 100_000

#: The tables of a case and their columns, in the order of the logical rows.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "references": ("unit", "id", "label", "cluster", "strata", "geometry"),
    "predictions": ("unit", "id", "label", "score", "filtered", "geometry"),
    "matches": ("unit", "reference", "prediction", "similarity"),
}

_NUMBERS = frozenset({"score", "similarity"})
_ROW_GROUP = 65_536

Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class CaseTables:
    """Raw predictions of one case as columns.

    ``strata`` is JSON text of field to value, ``geometry`` holds shapely objects or None, ``filtered`` is True for
    predictions that the operating point left out.
    """

    references: Columns
    predictions: Columns
    matches: Columns

    @property
    def objects(self) -> int:
        """How many objects both sides have."""
        return len(self.references["id"]) + len(self.predictions["id"])

    @property
    def has_geometry(self) -> bool:
        """True where anything that was judged has a shape."""
        judged = ~np.asarray(self.predictions["filtered"], dtype=bool)
        sides = (self.references["geometry"], self.predictions["geometry"][judged])
        return any(shape is not None for side in sides for shape in side.tolist())


def case_tables(records: Records) -> CaseTables:
    """The tables of a case from its records; rows of outcome ``filtered`` are predictions before the filter.

    Examples
    --------
    >>> two = Records.of(2, unit="a", outcome=["tp", "fn"], reference_id=["r", "s"], prediction_id=["p", ""])
    >>> tables = case_tables(two)
    >>> tables.references["id"].tolist(), tables.matches["prediction"].tolist()
    (['r', 's'], ['p'])
    """
    if not len(records):
        return CaseTables(*({name: np.empty(0, dtype=object) for name in names} for names in COLUMNS.values()))
    columns = records.columns
    outcome = columns["outcome"]
    ours = (columns["reference_id"] != "") & np.isin(outcome, ("tp", "fn"))
    theirs = (columns["prediction_id"] != "") & (outcome != "fn")
    matched = outcome == "tp"
    geometry = columns["geometry"]
    return CaseTables(
        {
            "unit": columns["unit"][ours],
            "id": columns["reference_id"][ours],
            "label": columns["reference_label"][ours],
            "cluster": columns["cluster"][ours],
            "strata": _as_objects([strata_text(dict(given)) for given in columns["strata"][ours]]),
            "geometry": columns.get("reference_geometry", geometry)[ours],
        },
        {
            "unit": columns["unit"][theirs],
            "id": columns["prediction_id"][theirs],
            "label": columns["prediction_label"][theirs],
            "score": columns["score"][theirs],
            "filtered": outcome[theirs] == "filtered",
            "geometry": columns.get("prediction_geometry", geometry)[theirs],
        },
        {
            "unit": columns["unit"][matched],
            "reference": columns["reference_id"][matched],
            "prediction": columns["prediction_id"][matched],
            "similarity": columns["similarity"][matched],
        },
    )


def strata_text(strata: Mapping[str, str]) -> str:
    """Field to value as canonical JSON text.

    Examples
    --------
    >>> strata_text({"season": "spring", "region": "north"})
    '{"region":"north","season":"spring"}'
    """
    return canonical_bytes({str(name): str(value) for name, value in strata.items()}).decode()


def table_case(
    case: str,
    family: str,
    tables: CaseTables,
    *,
    configuration: Mapping[str, Any],
    lineage: Mapping[str, Any],
    crs: str | None = None,
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """One case of ``baseline-raw-predictions.json`` that names tables, and the tables by their path.

    Parameters
    ----------
    case, family
        Names.
    tables
        Rows in any order; they are written sorted.
    configuration, lineage
        As for :func:`geoeval.evidence.raw.raw_case`.
    crs
        System of the coordinates; None for image coordinates.

    Returns
    -------
    entry, files
        Time and memory are linear in the number of rows, but for one sort.
    """
    listed: dict[str, dict[str, Any]] = {}
    files: dict[str, bytes] = {}
    for name in COLUMNS:
        columns = cast("Columns", getattr(tables, name))
        lines = logical_rows(name, columns)
        order = np.array(sorted(range(len(lines)), key=lines.__getitem__), dtype=np.int64)
        path = f"raw/{case}-{name}.parquet"
        listed[name] = {"path": path, "rows": len(lines), "sha256_of_rows": _digest(sorted(lines))}
        files[path] = parquet_bytes(name, {key: values[order] for key, values in columns.items()}, crs)
    entry = {
        "case": case,
        "family": family,
        "configuration": plain(configuration, where=f"{case}.configuration"),
        "lineage": plain(lineage, where=f"{case}.lineage"),
        "tables": listed,
    }
    return entry, files


def logical_rows(name: str, columns: Columns) -> list[str]:
    """Every row as one line of JSON, independent of the file format.

    Examples
    --------
    >>> logical_rows("matches", {"unit": ["a"], "reference": ["r"], "prediction": ["p"], "similarity": [0.5]})
    ['["a","r","p",0.5]']
    """
    parts = [_json_values(key, columns[key]) for key in COLUMNS[name]]
    return [json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in zip(*parts, strict=True)]


def _json_values(name: str, values: Any) -> list[Any]:
    if name == "geometry":
        return [None if shape is None else shape.hex().upper() for shape in _wkb(np.asarray(values, dtype=object))]
    if name in _NUMBERS:
        return [None if math.isnan(number) else number for number in np.asarray(values, dtype=np.float64).tolist()]
    if name == "filtered":
        return [bool(value) for value in values]
    return [str(value) for value in values]


def _wkb(shapes: NDArray[Any]) -> list[bytes | None]:
    import shapely

    return cast("list[bytes | None]", shapely.to_wkb(shapes, byte_order=1, include_srid=False).tolist())


def _digest(lines: list[str]) -> str:
    hasher = hashlib.sha256()
    for line in lines:
        hasher.update(line.encode())
        hasher.update(b"\n")
    return hasher.hexdigest()


def parquet_bytes(name: str, columns: Columns, crs: str | None = None) -> bytes:
    """A table as GeoParquet 1.1 (plain Parquet where it has no geometry); equal rows give equal bytes.

    Parameters
    ----------
    name
        Which table of :data:`COLUMNS`.
    columns
        In the order in which rows are written.
    crs
        System of the coordinates; None is written as unknown.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = {key: _arrow(key, columns[key]) for key in COLUMNS[name]}
    table = pa.table(arrays)
    if "geometry" in arrays:
        table = table.replace_schema_metadata({"geo": _geo(columns["geometry"], crs)})
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", row_group_size=_ROW_GROUP)
    return sink.getvalue()


def _arrow(name: str, values: NDArray[Any]) -> Any:
    import pyarrow as pa

    if name == "geometry":
        return pa.array(_wkb(np.asarray(values, dtype=object)), type=pa.binary())
    if name == "filtered":
        return pa.array(np.asarray(values, dtype=bool).tolist(), type=pa.bool_())
    if name in _NUMBERS:
        return pa.array(np.asarray(values, dtype=np.float64), type=pa.float64(), from_pandas=True)
    return pa.array([str(value) for value in values], type=pa.string())


def _geo(shapes: NDArray[Any], crs: str | None) -> str:
    import pyproj
    import shapely

    present = [shape for shape in shapes.tolist() if shape is not None]
    kinds = sorted({str(shape.geom_type) for shape in present})
    column: dict[str, Any] = {
        "encoding": "WKB",
        "geometry_types": [f"{kind} Z" for kind in kinds] if any(map(shapely.has_z, present)) else kinds,
        "crs": None if crs is None else pyproj.CRS.from_user_input(crs).to_json_dict(),
    }
    return json.dumps({"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}})


def read_case(entry: Mapping[str, Any], content: Callable[[str], Content]) -> CaseTables:
    """The tables of a case, from its entry in ``baseline-raw-predictions.json``.

    Parameters
    ----------
    entry
        With rows, or with the names of its tables.
    content
        Bytes or path of a file of the bundle, by its name.

    Raises
    ------
    BundleError
        Where the entry or a table cannot be read.
    """
    try:
        if "tables" in entry:
            return CaseTables(*(_read_parquet(name, content(entry["tables"][name]["path"])) for name in COLUMNS))
        return CaseTables(
            _from_rows("references", [{**row, "strata": strata_text(row["strata"])} for row in entry["references"]]),
            _from_rows("predictions", [{**row, "filtered": False} for row in entry["predictions_after_filter"]]),
            _from_rows("matches", entry["matches"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise BundleError(
            f"raw predictions of {entry.get('case')!r} cannot be read: {type(error).__name__}: {error}"
        ) from error


def _from_rows(name: str, rows: list[Mapping[str, Any]]) -> dict[str, NDArray[Any]]:
    return {key: _column(key, [row[key] for row in rows]) for key in COLUMNS[name]}


def _column(name: str, values: list[Any]) -> NDArray[Any]:
    if name == "geometry":
        import shapely

        return cast("NDArray[Any]", shapely.from_wkb(_as_objects(values)))
    if name in _NUMBERS:
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    if name == "filtered":
        return np.array(values, dtype=bool)
    return _as_objects(values)


def _as_objects(values: list[Any]) -> ObjectArray:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _read_parquet(name: str, content: Content) -> dict[str, NDArray[Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(content if isinstance(content, Path) else io.BytesIO(content))
    except (OSError, pa.ArrowInvalid) as error:
        raise BundleError(f"{name}: the table cannot be read ({error})") from error
    return {key: _column(key, table.column(key).to_pylist()) for key in COLUMNS[name]}


def table_problems(entry: Mapping[str, Any], content: Callable[[str], Content]) -> list[str]:
    """Tables of a case whose logical rows are not those that its entry promises; none where it holds rows itself."""
    problems = []
    for name, listed in entry.get("tables", {}).items():
        lines = sorted(logical_rows(name, _read_parquet(name, content(listed["path"]))))
        if len(lines) != listed["rows"] or _digest(lines) != listed["sha256_of_rows"]:
            problems.append(f"{listed['path']}: its rows are not those that baseline-raw-predictions.json names")
    return problems
