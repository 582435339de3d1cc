"""Findings of a validator and known anomalies, from tables or reports: one unit a dataset.

A table (CSV, JSON, JSON Lines, Parquet, a data frame) has one row a finding: dataset, feature, code, severity, and
where wanted an id, a field, a pixel window, a cluster and strata. A JSON report may hold the rows under ``findings`` or
``anomalies``, and beside them what the validator says about itself (``completed``, ``read``) or what it is held to
(``expected`` records, ``planted`` codes, ``clean_datasets``, ``clean_features``).
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from geoeval.errors import ColumnError, ConfigError, InputError, nearest_spelling
from geoeval.layers import FindingPair
from geoeval.model import SEVERITIES, UNKNOWN, Finding, ObjectArray, Unit
from geoeval.options import Columns, Pairing, Source, stratum_name
from geoeval.readers.sources import existing, path_text
from geoeval.readers.unitset import UnitSet

#: Usual names of each role, best first; case does not matter.
USUAL: Mapping[str, tuple[str, ...]] = {
    "dataset": ("dataset", "layer", "table", "file", "source", "path"),
    "feature": ("feature", "feature_id", "fid", "featureid", "object_id", "record", "row_id", "locator"),
    "code": ("code", "class", "anomaly", "rule", "check", "type", "category"),
    "severity": ("severity", "level", "priority"),
    "id": ("id", "finding_id", "anomaly_id", "uuid"),
    "field": ("field", "attribute", "column"),
    "window": ("window", "pixel_window"),
}

_FRACTION = re.compile(r"^-?\d+\.0$")

_CLUSTERS = ("aoi", "aoi_id", "group_id", "tile", "scene", "image")

#: Which option of :class:`geoeval.options.Columns` declares which role.
_DECLARED = {"dataset": "unit", "feature": "id", "code": "label", "severity": "kind"}

_ROWS = ("findings", "anomalies", "rows")

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Report:
    """One side as read: rows, and what it says about itself."""

    name: str
    rows: tuple[Row, ...]
    columns: tuple[str, ...]
    about: Mapping[str, Any] = field(default_factory=dict)


def findings_units(reference: Source, prediction: Source, pairing: Pairing) -> UnitSet[FindingPair]:
    """Known anomalies and findings as units, one a dataset.

    Parameters
    ----------
    reference
        The known anomalies. ``Columns.label`` declares the code, ``Columns.id`` the feature, ``Columns.unit`` the
        dataset, ``Columns.kind`` the severity.
    prediction
        The findings. Their severity may be left out; the anomaly's counts.
    pairing
        ``cluster`` is a column, ``auto`` (a column with a usual name, else the dataset) or ``none``; ``by`` names
        columns.

    Returns
    -------
    UnitSet
        Units in the order of their names. A dataset that only one side names is a unit too.

    Raises
    ------
    InputError
        For a row without a code, or with a severity that is not one of the five.
    """
    sides = (read_report(reference), read_report(prediction))
    notes: dict[str, str] = {}
    tables = [
        _table(side, source.columns, label, notes)
        for side, source, label in zip(sides, (reference, prediction), ("reference", "prediction"), strict=True)
    ]
    known, found = tables
    by = tuple(stratum_name(text) for text in pairing.by if text != "severity")
    absent = _add_strata(known, found, sides, by)
    clustered = _add_clusters(known, found, sides, pairing.cluster, notes)
    about = {**sides[1].about, **{key: value for key, value in sides[0].about.items() if key != "completed"}}
    clean = _clean_counts(sides[0])
    names = sorted({*known["dataset"], *found["dataset"], *clean})
    pairs = [(name, _pair(name, known, found, by, about, clean)) for name in names]
    return UnitSet(
        units=tuple(Unit(name or "(no dataset)", partial(_given, pair)) for name, pair in pairs),
        findings=tuple(_remarks(sides, names)),
        notes=notes,
        inputs=tuple(os.fspath(s.path) for s in (reference, prediction) if isinstance(s.path, str | os.PathLike)),
        reference_only=absent,
        clustered=clustered,
    )


def _given(pair: FindingPair) -> FindingPair:
    return pair


def read_report(source: Source) -> Report:
    """The rows of one side, whatever the format.

    Raises
    ------
    InputError
        Where the file cannot be read, or is not a table of findings.
    """
    if not isinstance(source.path, str | os.PathLike):
        return _of_frame(source.path, "table")
    path = Path(path_text(source.path, "findings"))
    if not path.exists():
        existing(path, "findings")
    if not path.is_file():
        raise InputError(f"{path.name!r}: expected a file of findings, found a folder; name one of its files")
    ending = path.suffix.lower()
    if ending in (".parquet", ".pq"):
        import pandas as pd

        try:
            return _of_frame(pd.read_parquet(path), path.name)
        except (ValueError, OSError) as error:
            raise InputError(f"{path.name!r}: expected a Parquet table, but it cannot be read ({error})") from error
    if ending not in (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson"):
        raise InputError(f"{path.name!r}: findings are read from .csv, .json, .jsonl or .parquet, got {ending!r}")
    text = _text(path)
    if ending in (".jsonl", ".ndjson"):
        return _of_rows(
            [_json(line, path.name, n) for n, line in enumerate(text.splitlines(), 1) if line.strip()], path.name
        )
    if ending == ".json":
        return _of_json(_json(text, path.name, None), path.name)
    return _of_csv(text, path.name)


def _text(path: Path) -> str:
    if path.stat().st_size == 0:
        raise InputError(
            f"{path.name!r}: expected findings, found an empty file (0 bytes); where nothing was found, "
            "write the header alone, or an empty list"
        )
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path.name!r}: byte {error.start} is not UTF-8; write it as UTF-8") from error


def _json(text: str, name: str, line: int | None) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        where = f", line {line}" if line is not None else ""
        raise InputError(f"{name!r}{where}: is not JSON ({error})") from error


def _of_csv(text: str, name: str) -> Report:
    header = text.split("\n", 1)[0]
    reader = csv.DictReader(
        io.StringIO(text, newline=""),
        delimiter=max(",;\t|", key=lambda mark: (header.count(mark), mark == ",")),
        strict=True,
    )
    columns = tuple(column.strip() for column in reader.fieldnames or ())
    reader.fieldnames = list(columns)
    rows = []
    try:
        for row in reader:
            if None in row or None in row.values():
                raise InputError(
                    f"{name!r}, line {reader.line_num}: does not have the {len(columns)} fields of the header"
                )
            rows.append(row)
    except csv.Error as error:
        raise InputError(f"{name!r}, line {reader.line_num}: {error}") from error
    return Report(name, tuple(rows), columns)


def _of_json(content: Any, name: str) -> Report:
    if isinstance(content, list):
        return _of_rows(content, name)
    rows = next((content[key] for key in _ROWS if key in content), None) if isinstance(content, dict) else None
    if not isinstance(rows, list):
        raise InputError(
            f"{name!r}: expected a list of findings, or an object with {' or '.join(map(repr, _ROWS[:2]))}"
        )
    about = {key: value for key, value in content.items() if key not in _ROWS}
    report = _of_rows(rows, name)
    return Report(name, report.rows, report.columns, _checked_about(about, name))


def _checked_about(about: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    for key, kinds, said in (
        ("completed", bool, "true or false"),
        ("read", int, "a whole number"),
        ("expected", int, "a whole number"),
        ("planted", list, "a list of codes"),
        ("clean_datasets", list | dict, "a list of datasets, or a table of dataset to number of features"),
        ("clean_features", int, "a whole number"),
    ):
        value = about.get(key)
        if value is not None and (not isinstance(value, kinds) or (kinds is int and isinstance(value, bool))):
            raise InputError(f"{name!r}: {key!r} must be {said}, got {value!r}")
    return about


def _of_rows(rows: Sequence[Any], name: str) -> Report:
    for i, row in enumerate(rows):
        if not isinstance(row, dict):
            raise InputError(f"{name!r}, row {i + 1}: expected an object, got {row!r}")
    return Report(name, tuple(rows), tuple(dict.fromkeys(key for row in rows for key in row)))


def _of_frame(frame: Any, name: str) -> Report:
    if not hasattr(frame, "to_dict") or not hasattr(frame, "columns"):
        raise InputError(f"expected a path or a table of findings, got {type(frame).__name__}")
    whole = frame.astype(object).where(frame.notna(), None)
    return Report(name, tuple(whole.to_dict("records")), tuple(str(column) for column in frame.columns))


def _table(side: Report, columns: Columns, label: str, notes: dict[str, str]) -> dict[str, ObjectArray]:
    """Columns by role, all text; a report without rows has all of them, empty."""
    out: dict[str, ObjectArray] = {}
    for role in USUAL:
        declared = getattr(columns, _DECLARED[role]) if role in _DECLARED else None
        name = _named(side, role, declared, label)
        if name is not None and declared is None and name.lower() != role:
            notes[f"{label} {role} column"] = f"{name!r} (guessed)"
        out[role] = _column(side, name)
    _demand(side, out, label)
    out["id"] = _ids(out)
    return out


def _named(side: Report, role: str, declared: str | None, label: str) -> str | None:
    if declared == "":
        return None
    if declared is not None:
        if declared not in side.columns and side.rows:
            raise ColumnError(
                f"{side.name!r}: {label} has no column {declared!r}; {nearest_spelling(declared, side.columns)}"
            )
        return declared
    lower = {name.lower(): name for name in reversed(side.columns)}
    found = next((lower[name] for name in USUAL[role] if name in lower), None)
    needed = role == "code" or (role == "severity" and label == "reference")
    if found is None and needed and side.rows:
        usual = ", ".join(USUAL[role][:3])
        raise ColumnError(
            f"{side.name!r}: {label} has no column with the {role} of a finding (such as {usual}); "
            f"declare it: columns = {{ {_DECLARED[role]} = ... }}"
        )
    return found


def _column(side: Report, name: str | None) -> ObjectArray:
    out = np.full(len(side.rows), "", dtype=object)
    if name is not None:
        texts = [_as_text(row.get(name)) for row in side.rows]
        # Whole numbers that became fractions because one was missing are the same ids as before.
        fractions = all(_FRACTION.match(text) for text in texts if text) and any(texts)
        out[:] = [text.removesuffix(".0") for text in texts] if fractions else texts
    return out


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return ",".join(_as_text(part) for part in value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _demand(side: Report, table: dict[str, ObjectArray], label: str) -> None:
    table["severity"][:] = [text.lower() for text in table["severity"]]
    for i, (code, severity) in enumerate(zip(table["code"], table["severity"], strict=True)):
        if not code:
            raise InputError(f"{side.name!r}, row {i + 1}: {label} without a code; every finding needs one")
        if severity not in SEVERITIES and (severity or label == "reference"):
            spelling = nearest_spelling(severity, SEVERITIES)
            raise InputError(f"{side.name!r}, row {i + 1}: severity {severity!r} is not known; {spelling}")


def _ids(table: Mapping[str, ObjectArray]) -> ObjectArray:
    """Stable names: the declared id, else dataset, feature and code, numbered where that is not enough."""
    out = np.empty(len(table["code"]), dtype=object)
    seen: dict[str, int] = {}
    keys = [
        str(table["id"][i]) or "/".join(str(table[role][i]) for role in ("dataset", "feature", "code"))
        for i in range(len(out))
    ]
    order = sorted(range(len(out)), key=lambda i: (keys[i], *(str(table[role][i]) for role in sorted(USUAL))))
    for i in order:
        seen[keys[i]] = seen.get(keys[i], 0) + 1
        out[i] = keys[i] if seen[keys[i]] == 1 else f"{keys[i]}#{seen[keys[i]]}"
    return out


def _add_strata(
    known: dict[str, ObjectArray], found: dict[str, ObjectArray], sides: Sequence[Report], by: Iterable[str]
) -> frozenset[str]:
    """Write stratum columns as ``by:NAME``; give the names that findings do not have."""
    absent = set()
    for name in by:
        if sides[0].rows and name not in sides[0].columns:
            raise ColumnError(
                f"by: {sides[0].name!r} has no column {name!r}; {nearest_spelling(name, sides[0].columns)}"
            )
        for side, table in zip(sides, (known, found), strict=True):
            values = _column(side, name if name in side.columns else None)
            values[values == ""] = UNKNOWN
            table[f"by:{name}"] = values
        if sides[1].rows and name not in sides[1].columns:
            absent.add(name)
    return frozenset(absent)


def _add_clusters(
    known: dict[str, ObjectArray],
    found: dict[str, ObjectArray],
    sides: Sequence[Report],
    wanted: str,
    notes: dict[str, str],
) -> bool:
    """Write the column ``cluster`` on both sides; False where independence was declared."""
    if wanted.startswith("grid:"):
        raise ConfigError(f"cluster = {wanted!r}: findings have no coordinates; name a column, or 'none'")
    both = [name for name in sides[0].columns if name in sides[1].columns or not sides[1].rows]
    column = wanted
    if wanted == "auto":
        column = next((name for name in _CLUSTERS if name in both), "dataset")
        notes["cluster"] = f"{column!r} (guessed)"
    if column in ("none", "dataset"):
        for table in (known, found):
            table["cluster"] = table["dataset"]
        return column != "none"
    for side, table in zip(sides, (known, found), strict=True):
        if side.rows and column not in side.columns:
            raise ColumnError(
                f"cluster: {side.name!r} has no column {column!r}; {nearest_spelling(column, side.columns)}"
            )
        table["cluster"] = _column(side, column)
        blank = np.flatnonzero(table["cluster"] == "")
        if len(blank):
            raise InputError(f"{side.name!r}, row {blank[0] + 1}: has no cluster in {column!r}; fill it in")
    return True


def _clean_counts(side: Report) -> dict[str, int]:
    """Datasets certified clean and how many features each holds, 0 where that is not said."""
    clean = side.about.get("clean_datasets") or {}
    if isinstance(clean, list):
        counts = dict.fromkeys(map(str, clean), 0)
        if len(counts) == 1 and side.about.get("clean_features"):
            counts = dict.fromkeys(counts, int(side.about["clean_features"]))
        return counts
    return {str(name): int(n) for name, n in clean.items()}


def _pair(
    name: str,
    known: Mapping[str, ObjectArray],
    found: Mapping[str, ObjectArray],
    by: Sequence[str],
    about: Mapping[str, Any],
    clean: Mapping[str, int],
) -> FindingPair:
    here = [np.asarray(table["dataset"] == name, dtype=bool) for table in (known, found)]
    reference = {role: known[role][here[0]] for role in USUAL}
    prediction = {role: found[role][here[1]] for role in (*USUAL, *(f"by:{text}" for text in by))}
    return FindingPair(
        reference=reference,
        prediction=prediction,
        clean=np.full(int(here[1].sum()), name in clean, dtype=bool),
        cluster=known["cluster"][here[0]],
        prediction_cluster=found["cluster"][here[1]],
        clean_features=clean.get(name, 0),
        planted=tuple(sorted(map(str, about.get("planted") or ()))),
        strata={text: known[f"by:{text}"][here[0]] for text in by},
        completed=about.get("completed") is not False,
        read=about.get("read"),
        expected=about.get("expected"),
    )


def _remarks(sides: Sequence[Report], names: Sequence[str]) -> Iterable[Finding]:
    for side, label in zip(sides, ("known anomalies", "findings"), strict=True):
        if not side.rows:
            yield Finding("findings-empty", "major", (side.name,), f"there are no {label}", "is this the right file?")
    if "" in names:
        yield Finding(
            "dataset-missing",
            "minor",
            tuple(side.name for side in sides),
            "rows without a dataset are one unit",
            "name it",
        )
