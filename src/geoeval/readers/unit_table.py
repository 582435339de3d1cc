"""A table of units: which cluster and which strata each file or image belongs to."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from geoeval.errors import ColumnError, InputError, nearest_spelling
from geoeval.model import UNKNOWN
from geoeval.options import Pairing
from geoeval.readers.unitset import UnitSet

P = TypeVar("P")

_CLUSTERS = ("aoi", "aoi_id", "group_id", "tile", "scene", "site", "cluster")


def with_unit_table(units: UnitSet[P], pairing: Pairing) -> UnitSet[P]:
    """Give every unit its cluster and strata from ``pairing.units``.

    Raises
    ------
    InputError
        Where a unit is not listed, listed twice, or has no cluster: an unknown cluster is refused, never made up.
    """
    path = str(pairing.units)
    rows = _rows(path)
    header = list(next(iter(rows.values()))) if rows else []
    cluster = _cluster_column(pairing.cluster, header, path)
    fields = [name for name in pairing.by if name in header]
    missing = [unit.id for unit in units.units if unit.id not in rows]
    if missing:
        raise InputError(
            f"{path}: expected a row for every unit, found none for {missing[0]!r} ({len(missing)} missing); "
            f"{nearest_spelling(missing[0], rows)} Add the rows, or leave the table out."
        )
    done = []
    for unit in units.units:
        row = rows[unit.id]
        given = row[cluster].strip() if cluster else None
        if given == "":
            raise InputError(
                f"{path}: unit {unit.id!r} has no {cluster}; fill it in, a cluster that is unknown cannot be made up."
            )
        strata = {**unit.strata, **{name: row[name].strip() or UNKNOWN for name in fields}}
        done.append(replace(unit, cluster=given if cluster else unit.cluster, strata=strata))
    notes = dict(units.notes)
    if cluster:
        # The table has the last word on clusters.
        notes = {name: text for name, text in notes.items() if name not in ("cluster", "clusters")}
    notes["units"] = f"{path} gives {', '.join([*([f'cluster {cluster!r}'] if cluster else []), *fields]) or 'nothing'}"
    return replace(units, units=tuple(done), notes=notes, inputs=(*units.inputs, path))


def _rows(path: str) -> dict[str, Mapping[str, str]]:
    if not Path(path).is_file():
        raise InputError(f"{path}: expected a table of units, found no such file; check the path.")
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not UTF-8; write the table as UTF-8.") from error
    out: dict[str, Mapping[str, str]] = {}
    with io.StringIO(text, newline="") as file:
        reader = csv.DictReader(file)
        if "unit" not in (reader.fieldnames or ()):
            raise ColumnError(f"{path}: expected a column 'unit', found {reader.fieldnames or []}; rename it.")
        for row in reader:
            if row["unit"] in out:
                raise InputError(f"{path}: unit {row['unit']!r} is listed twice; keep one row a unit.")
            out[row["unit"]] = {name: value or "" for name, value in row.items() if name is not None}
    return out


def _cluster_column(declared: str, header: list[str], path: str) -> str | None:
    if declared == "none" or declared.startswith("grid:"):
        return None
    if declared == "auto":
        return next((name for name in _CLUSTERS if name in header), None)
    if declared not in header:
        raise ColumnError(f"{path}: expected cluster column {declared!r}; {nearest_spelling(declared, header)}")
    return declared
