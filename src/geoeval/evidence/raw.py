"""Raw predictions, the failure gallery and the ledger, as documents that anybody can count again.

Geometry is written as hexadecimal WKB (little-endian), so that not a bit is lost. Ids of failures are hashes of what
failed, so that the same failure has the same id in every run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from geoeval.errors import BundleError
from geoeval.evidence.canonical import SAFE_INTEGER, canonical_bytes, digest, plain
from geoeval.model import RECORD_COLUMNS, Cell, Records
from geoeval.stats.tally import Bins, Rows, Tally

RAW = "geoeval/raw-predictions/1"
GALLERY = "geoeval/failure-gallery/1"
LEDGER = "geoeval/ledger/1"

_FAILURES_NOT = ("tp", "ignored", "filtered")


class LedgerRow(Protocol):
    """One line of a ledger: :class:`geoeval.ledger.Row` is one."""

    @property
    def unit(self) -> str:
        """Name of the unit."""

    @property
    def cell(self) -> Cell:
        """Cluster, label and strata."""

    @property
    def tally(self) -> Tally:
        """What the unit left there."""


def raw_case(
    case: str,
    family: str,
    records: Records,
    *,
    configuration: Mapping[str, Any],
    lineage: Mapping[str, Any],
    filtered: Records | None = None,
) -> dict[str, Any]:
    """One case of ``baseline-raw-predictions.json``: references, predictions before and after the filter, matches.

    Parameters
    ----------
    case, family
        Names.
    records
        One row a match, miss or invention. Extra columns ``reference_geometry`` and ``prediction_geometry`` hold the
        shape of either side; without them ``geometry`` stands for the side that a row has.
    configuration
        The evaluator's options, as they were fixed before the run.
    lineage
        Where both sides come from: names and hashes of the inputs, evaluator and signature.
    filtered
        Predictions that the operating point left out before matching.

    Returns
    -------
    dict
        Plain JSON, rows in the order of their ids.
    """
    left_out = Records() if filtered is None else filtered
    after = _predictions(records)
    before = after + _predictions(left_out)
    return {
        "case": case,
        "family": family,
        "configuration": plain(configuration, where=f"{case}.configuration"),
        "lineage": plain(lineage, where=f"{case}.lineage"),
        "references": _in_order(_references(records)),
        "predictions_before_filter": _in_order(before),
        "predictions_after_filter": _in_order(after),
        "matches": _in_order(_matches(records)),
    }


def raw_json(cases: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """``baseline-raw-predictions.json`` of all cases, by their name."""
    return {"schema": RAW, "cases": sorted((dict(case) for case in cases), key=lambda case: str(case["case"]))}


def _in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=canonical_bytes)


def _rows(records: Records) -> Iterable[dict[str, Any]]:
    names = [name for name in records.columns if name in RECORD_COLUMNS or name.endswith("_geometry")]
    columns = [records.columns[name] for name in names]
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))


def _references(records: Records) -> list[dict[str, Any]]:
    return [
        {
            "unit": str(row["unit"]),
            "id": str(row["reference_id"]),
            "label": str(row["reference_label"]),
            "cluster": str(row["cluster"]),
            "strata": _strata(row["strata"]),
            "geometry": wkb(row.get("reference_geometry", row["geometry"])),
        }
        for row in _rows(records)
        if row["reference_id"] != "" and row["outcome"] in ("tp", "fn")
    ]


def _predictions(records: Records) -> list[dict[str, Any]]:
    return [
        {
            "unit": str(row["unit"]),
            "id": str(row["prediction_id"]),
            "label": str(row["prediction_label"]),
            "score": _number(row["score"]),
            "geometry": wkb(row.get("prediction_geometry", row["geometry"])),
        }
        for row in _rows(records)
        if row["prediction_id"] != "" and row["outcome"] != "fn"
    ]


def _matches(records: Records) -> list[dict[str, Any]]:
    return [
        {
            "unit": str(row["unit"]),
            "reference": str(row["reference_id"]),
            "prediction": str(row["prediction_id"]),
            "similarity": _number(row["similarity"]),
        }
        for row in _rows(records)
        if row["outcome"] == "tp"
    ]


def failure_gallery(case: str, family: str, records: Records) -> list[dict[str, Any]]:
    """Every failure of a case with a stable id, its error type, its strata and its geometry.

    Matches and ignored rows are no failures. Two failures that differ in nothing get ids by their count.

    Returns
    -------
    list of dict
        In the order of their ids.
    """
    entries = [_failure(case, family, row) for row in _rows(records) if row["outcome"] not in _FAILURES_NOT]
    seen: dict[str, int] = {}
    out = []
    for entry in _in_order(entries):
        known = {key: entry[key] for key in ("task", "case", "unit", "reference_id", "prediction_id", "error_type")}
        base = digest(canonical_bytes(known))
        seen[base] = seen.get(base, 0) + 1
        text = base if seen[base] == 1 else digest(f"{base}#{seen[base]}".encode())
        out.append({"id": f"f-{text[:20]}", **entry})
    return sorted(out, key=lambda entry: str(entry["id"]))


def gallery_json(failures: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """``failure-gallery.json`` of all cases, by the ids of the failures."""
    return {"schema": GALLERY, "failures": sorted((dict(entry) for entry in failures), key=lambda e: str(e["id"]))}


def _failure(case: str, family: str, row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "task": family,
        "case": case,
        "unit": str(row["unit"]),
        "outcome": str(row["outcome"]),
        "error_type": str(row["error_type"]),
        "reference_id": str(row["reference_id"]),
        "prediction_id": str(row["prediction_id"]),
        "reference_label": str(row["reference_label"]),
        "prediction_label": str(row["prediction_label"]),
        "score": _number(row["score"]),
        "similarity": _number(row["similarity"]),
        "cluster": str(row["cluster"]),
        "strata": _strata(row["strata"]),
        "geometry": wkb(row["geometry"]),
    }


def wkb(geometry: Any) -> str | None:
    """Hexadecimal little-endian WKB of a shape, None where there is none.

    Examples
    --------
    >>> import shapely
    >>> wkb(shapely.Point(0, 0))
    '010100000000000000000000000000000000000000'
    """
    if geometry is None:
        return None
    import shapely

    return str(shapely.to_wkb(geometry, hex=True, byte_order=1, include_srid=False))


def _number(value: Any) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None


def _strata(value: Any) -> dict[str, str]:
    return {str(name): str(text) for name, text in value}


def records_digest(records: Records) -> str:
    """SHA-256 of the logical rows of a record table: the same for every order of rows and every file format.

    Examples
    --------
    >>> two = Records.of(2, unit="a", outcome=["tp", "fp"])
    >>> records_digest(two) == records_digest(two.take(np.array([1, 0])))
    True
    """
    rows = []
    for row in _rows(records):
        entry: dict[str, Any] = {}
        for name, value in row.items():
            if name.endswith("geometry"):
                entry[name] = wkb(value)
            elif name == "strata":
                entry[name] = _strata(value)
            else:
                entry[name] = _number(value) if name in ("similarity", "score") else str(value)
        rows.append(digest(canonical_bytes(entry, digits=None)))
    return digest("\n".join(sorted(rows)).encode())


def ledger_json(rows: Iterable[LedgerRow]) -> dict[str, Any]:
    """A ledger as plain JSON: sums as whole numbers (as text from 2**53 on), bins as keys and counts, rows as numbers.

    Write it with ``canonical_bytes(..., digits=None)``: observations are kept as they were read, so that adding the
    ledger up again gives every estimate to the last digit.
    """
    return {"schema": LEDGER, "rows": [_ledger_row(row) for row in rows]}


def _ledger_row(row: LedgerRow) -> dict[str, Any]:
    return {
        "unit": row.unit,
        "cluster": row.cell.cluster,
        "label": row.cell.label,
        "strata": [[name, value] for name, value in row.cell.strata],
        "sums": {name: _integer(value) for name, value in row.tally.sums.items()},
        "bins": {
            name: {
                "keys": [[_integer(key) for key in keys] for keys in part.keys.tolist()],
                "counts": [_integer(count) for count in part.counts.tolist()],
            }
            for name, part in row.tally.bins.items()
        },
        "rows": {name: part.values.tolist() for name, part in row.tally.rows.items()},
    }


def _integer(value: int) -> int | str:
    return int(value) if abs(value) < SAFE_INTEGER else str(int(value))


def ledger_from_json(data: Any) -> tuple[tuple[str, Cell, Tally], ...]:
    """Unit, cell and tally of every line: the inverse of :func:`ledger_json`.

    Raises
    ------
    BundleError
        Where the document is not a ledger.
    """
    if not isinstance(data, Mapping) or data.get("schema") != LEDGER:
        raise BundleError(f"expected a document of schema {LEDGER!r}")
    try:
        return tuple(_line(row) for row in data["rows"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BundleError(f"the ledger cannot be read: {type(error).__name__}: {error}") from error


def _line(row: Mapping[str, Any]) -> tuple[str, Cell, Tally]:
    strata = tuple((str(name), str(value)) for name, value in row["strata"])
    tally = Tally.of(
        {name: int(value) for name, value in row["sums"].items()},
        {
            name: Bins.of(
                np.array([[int(key) for key in keys] for keys in part["keys"]], dtype=np.int64),
                np.array([int(count) for count in part["counts"]], dtype=np.int64),
            )
            for name, part in row["bins"].items()
        },
        {name: Rows.of(*np.asarray(part, dtype=np.float64).T) for name, part in row["rows"].items()},
    )
    return str(row["unit"]), Cell(str(row["cluster"]), str(row["label"]), strata), tally
