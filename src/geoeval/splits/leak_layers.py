"""Offending pairs for a GIS and for tables: boxes and connecting lines as a GeoPackage, rows as CSV, all as JSON.

Layers        ``boxes``, the samples in the pairs that are named; ``lines``, from centre to centre of each pair.
Coordinates   the list's own system where it has one; else longitude and latitude, lines across ±180° in two parts.
Bytes         equal findings give equal bytes: rows in a fixed order, and GDAL is told the date that it writes.
"""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from geoeval.model import FloatArray, IntArray, ObjectArray
from geoeval.report.fixed_date import fixed_date
from geoeval.splits.leakage import Witness
from geoeval.splits.list_check import ListCheck, ListGate
from geoeval.splits.table import SampleTable, coded

SCHEMA = "geoeval/split-check/1"
_LONLAT = "EPSG:4326"
_NUMBERS = ("metres", "area_m2", "bits", "similarity")
_COLUMNS = ("gate", "relation", "first", "first_split", "second", "second_split", *_NUMBERS, "value")


def check_json(found: ListCheck, *, pairs: int | None = None) -> dict[str, Any]:
    """A check as plain values.

    Parameters
    ----------
    pairs
        Most offending pairs of a gate; None gives all that are named.
    """
    return {
        "schema": SCHEMA,
        "status": found.status,
        "samples": dict(found.samples),
        "notes": dict(found.notes),
        "gates": [_gate_json(one, pairs) for one in found.gates],
    }


def _gate_json(gate: ListGate, pairs: int | None) -> dict[str, Any]:
    result, facts = gate.result, gate.facts
    out: dict[str, Any] = {
        "id": result.id,
        "status": result.status,
        "reason": result.reason,
        "demanded": gate.demanded,
        "count": result.count,
        "counts": dict(result.counts),
        "unknown": dict(result.unknown),
        "notes": dict(result.notes),
        "pairs": [_pair(one) for one in result.witnesses[:pairs]],
        "samples": None,
    }
    if facts is not None:
        out["samples"] = {name: dict(other) for name, other in facts.samples.items()}
        out["by_splits"] = dict(facts.by_splits)
        out["values"] = dict(facts.values)
        if facts.within is not None:
            out["within"] = {name: dict(other) for name, other in facts.within.items()}
        if facts.unique is not None:
            out["unique"] = {
                "column": facts.unique.column,
                "pairs": facts.unique.pairs,
                "values": dict(facts.unique.values),
            }
    return out


def _pair(one: Witness) -> dict[str, Any]:
    return {
        "relation": one.relation,
        "first": one.first,
        "first_split": one.first_split,
        "second": one.second,
        "second_split": one.second_split,
        "evidence": dict(one.evidence),
    }


def pairs_csv(found: ListCheck) -> bytes:
    """Every named pair as a row; empty where a kind of evidence does not apply."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(_COLUMNS)
    for gate, one in _pairs(found):
        numbers = [one.evidence.get(name, "") for name in _NUMBERS]
        ends = (one.first, one.first_split, one.second, one.second_split)
        rows.writerow((gate, one.relation, *ends, *numbers, _value(one.evidence)))
    return text.getvalue().encode()


def _value(evidence: Mapping[str, Any]) -> str:
    if "cells" in evidence:
        return " / ".join(",".join(str(part) for part in cell) for cell in evidence["cells"])
    return str(evidence.get("value", ""))


def _pairs(found: ListCheck) -> Iterator[tuple[str, Witness]]:
    for gate in found.gates:
        for one in gate.result.witnesses:
            yield gate.result.id, one


def layer_bytes(found: ListCheck) -> bytes | None:
    """The GeoPackage of the named pairs; None where none of them has a place."""
    table = found.given.table
    placed = table.has_box()
    pairs = [(gate, one) for gate, one in _pairs(found) if placed[list(one.rows)].all()]
    if not pairs:
        return None
    rows = np.unique(np.array([one.rows for _, one in pairs], dtype=np.int64))
    boxes, crs = drawn_boxes(table, rows, found.given.shapes)
    centre = dict(zip(rows.tolist(), _centres(boxes), strict=True))
    wraps = crs == _LONLAT
    lines = np.empty(len(pairs), dtype=np.object_)
    lines[:] = [_line(centre[one.rows[0]], centre[one.rows[1]], wraps=wraps) for _, one in pairs]
    with tempfile.TemporaryDirectory() as folder, fixed_date():
        path = Path(folder) / "offending.gpkg"
        _write(path, "boxes", boxes, _box_fields(table, rows, pairs), crs, "MultiPolygon")
        _write(path, "lines", lines, _line_fields(pairs), crs, "MultiLineString")
        return path.read_bytes()


def drawn_boxes(table: SampleTable, rows: IntArray, shapes: ObjectArray | None = None) -> tuple[ObjectArray, str]:
    """Outlines of some rows in one system, and that system: their own where they have one, else degrees."""
    import shapely

    codes, words = coded(table.texts["crs"].take(rows))
    box = table.bounds[rows].copy()
    box[box[:, 0] > box[:, 2], 2] += 360.0
    out = np.asarray(shapely.box(*box.T), dtype=np.object_)
    if shapes is not None:
        polygonal = shapely.get_dimensions(shapes[rows]) == 2
        out[polygonal] = shapes[rows][polygonal]
    if len(words) == 1:
        return out, words[0]
    from geoeval.splits.list_overlap import in_degrees

    for code, word in enumerate(words):
        out[codes == code] = in_degrees(out[codes == code], word)
    return out, _LONLAT


def _centres(boxes: ObjectArray) -> FloatArray:
    import shapely

    box = shapely.bounds(boxes)
    return np.asarray((box[:, :2] + box[:, 2:]) / 2, dtype=np.float64)


def _line(a: FloatArray, b: FloatArray, *, wraps: bool) -> Any:
    """From centre to centre; in degrees the short way round, in two parts where that crosses ±180°."""
    import shapely

    if not wraps or abs(a[0] - b[0]) <= 180:
        return shapely.MultiLineString([[a, b]])
    turn = np.array([360.0 if a[0] > b[0] else -360.0, 0.0])
    return shapely.MultiLineString([[a, b + turn], [a - turn, b]])


def _box_fields(table: SampleTable, rows: IntArray, pairs: Sequence[tuple[str, Witness]]) -> dict[str, Any]:
    gates: dict[int, set[str]] = {}
    times: dict[int, int] = {}
    for gate, one in pairs:
        for row in one.rows:
            gates.setdefault(row, set()).add(gate)
            times[row] = times.get(row, 0) + 1
    return {
        "sample_id": _objects([table.text("sample_id", row) for row in rows.tolist()]),
        "split": _objects([table.text("split", row) for row in rows.tolist()]),
        "gates": _objects([", ".join(sorted(gates[row])) for row in rows.tolist()]),
        "pairs": np.array([times[row] for row in rows.tolist()], dtype=np.int64),
    }


def _line_fields(pairs: Sequence[tuple[str, Witness]]) -> dict[str, Any]:
    texts = {
        name: _objects([getattr(one, name) for _, one in pairs])
        for name in ("relation", "first", "first_split", "second", "second_split")
    }
    numbers = {
        name: np.array([one.evidence.get(name, np.nan) for _, one in pairs], dtype=np.float64) for name in _NUMBERS
    }
    value = _objects([_value(one.evidence) or None for _, one in pairs])
    return {"gate": _objects([gate for gate, _ in pairs]), **texts, **numbers, "value": value}


def _objects(values: list[Any]) -> ObjectArray:
    out = np.empty(len(values), dtype=np.object_)
    out[:] = values
    return out


def _write(path: Path, layer: str, shapes: ObjectArray, fields: Mapping[str, Any], crs: str, kind: str) -> None:
    import pyogrio.raw
    import shapely

    pyogrio.raw.write(
        str(path),
        np.asarray(shapely.to_wkb(shapes, byte_order=1, include_srid=False), dtype=np.object_),
        list(fields.values()),
        list(fields),
        layer=layer,
        driver="GPKG",
        geometry_type=kind,
        promote_to_multi=True,
        crs=crs,
        layer_options={"DESCRIPTION": f"split check: {layer} of offending pairs", "IDENTIFIER": layer},
    )
