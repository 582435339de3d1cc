"""Hits, misses and inventions as a GeoPackage, to look at in a GIS beside the imagery.

Layers        ``reference`` and ``prediction``; the column ``outcome`` says ``tp``, ``fn``, ``fp`` or ``ignored``.
Coordinates   those of the evaluation; image coordinates are written without a system.
Bytes         equal rows give equal bytes: rows in a fixed order, and GDAL is told the date that it writes. Another GDAL
              or SQLite may lay out the file differently, so :func:`same_features` compares what is in it.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.errors import BundleError
from geoeval.evidence.tables import CaseTables
from geoeval.report.fixed_date import fixed_date

#: Families whose records are features of a map.
VECTOR_FAMILIES = frozenset({"detection", "footprint", "vector", "change"})


_FIXED = ("outcome", "error_type", "unit", "id", "partner", "label", "partner_label", "cluster")
_NUMBERS = ("similarity", "score")


@dataclass(frozen=True, slots=True)
class Feature:
    """One row of a layer; ``partner`` is the id on the other side of a hit."""

    outcome: str
    error_type: str
    unit: str
    id: str
    partner: str
    label: str
    partner_label: str
    cluster: str
    similarity: float | None
    score: float | None
    strata: Mapping[str, str]
    wkb: bytes


def layer_bytes(
    run: str, case: str, tables: CaseTables, failures: Iterable[Mapping[str, Any]], crs: str | None
) -> bytes:
    """The bytes of ``layers/<case>.gpkg``.

    Parameters
    ----------
    run
        Run id; it stands in the description of both layers.
    case
        Name of the case.
    tables
        Its raw predictions.
    failures
        Its failures, as in ``failure-gallery.json``.
    crs
        System of the coordinates as text; None for image coordinates.
    """
    sides = features(tables, failures)
    with tempfile.TemporaryDirectory() as folder, fixed_date():
        path = Path(folder) / "layer.gpkg"
        for name, rows in sides.items():
            if rows:
                _write(path, name, rows, crs, f"{run}: {case}, {name} features and their outcome")
        if not path.is_file():
            raise BundleError(f"{case}: no feature has a geometry, so there is no layer to write")
        return path.read_bytes()


def features(tables: CaseTables, failures: Iterable[Mapping[str, Any]]) -> dict[str, list[Feature]]:
    """The rows of both layers, in the order in which they are written."""
    failed = list(failures)
    ours = _index(tables.references, "id")
    theirs = _index(tables.predictions, "id")
    hits = [
        (ours.get((unit, reference)), theirs.get((unit, prediction)), similarity)
        for unit, reference, prediction, similarity in zip(
            *(tables.matches[name] for name in ("unit", "reference", "prediction", "similarity")), strict=True
        )
    ]
    reference = [*_reference_hits(tables, hits), *_failed(failed, "fn")]
    prediction = [*_prediction_hits(tables, hits), *_failed(failed, "fp"), *_ignored(tables, hits, failed)]
    return {"reference": sorted(reference, key=_order), "prediction": sorted(prediction, key=_order)}


_Hit = tuple[int | None, int | None, float]


def _index(columns: Mapping[str, NDArray[Any]], name: str) -> dict[tuple[str, str], int]:
    return {(unit, one): at for at, (unit, one) in enumerate(zip(columns["unit"], columns[name], strict=True)) if one}


def _reference_hits(tables: CaseTables, hits: Sequence[_Hit]) -> Iterator[Feature]:
    for i, j, similarity in hits:
        if i is not None and tables.references["geometry"][i] is not None:
            yield _hit(tables, "references", i, "predictions", j, similarity, i, j)


def _prediction_hits(tables: CaseTables, hits: Sequence[_Hit]) -> Iterator[Feature]:
    for i, j, similarity in hits:
        if j is not None and tables.predictions["geometry"][j] is not None:
            yield _hit(tables, "predictions", j, "references", i, similarity, i, j)


def _hit(
    tables: CaseTables,
    side: str,
    at: int,
    other: str,
    partner: int | None,
    similarity: float,
    reference: int | None,
    prediction: int | None,
) -> Feature:
    own, others = getattr(tables, side), getattr(tables, other)
    return Feature(
        outcome="tp",
        error_type="",
        unit=str(own["unit"][at]),
        id=str(own["id"][at]),
        partner="" if partner is None else str(others["id"][partner]),
        label=str(own["label"][at]),
        partner_label="" if partner is None else str(others["label"][partner]),
        cluster="" if reference is None else str(tables.references["cluster"][reference]),
        similarity=_finite(similarity),
        score=None if prediction is None else _finite(tables.predictions["score"][prediction]),
        strata={} if reference is None else json.loads(tables.references["strata"][reference]),
        wkb=_wkb(own["geometry"][at]),
    )


def _failed(failures: Iterable[Mapping[str, Any]], outcome: str) -> Iterator[Feature]:
    own, other = ("reference", "prediction") if outcome == "fn" else ("prediction", "reference")
    for row in failures:
        if row["outcome"] == outcome and row["geometry"] is not None:
            yield Feature(
                outcome=outcome,
                error_type=row["error_type"],
                unit=row["unit"],
                id=row[f"{own}_id"],
                partner=row[f"{other}_id"],
                label=row[f"{own}_label"],
                partner_label=row[f"{other}_label"],
                cluster=row.get("cluster", ""),
                similarity=row["similarity"],
                score=row["score"],
                strata=row["strata"],
                wkb=bytes.fromhex(row["geometry"]),
            )


def _ignored(tables: CaseTables, hits: Sequence[_Hit], failures: Iterable[Mapping[str, Any]]) -> Iterator[Feature]:
    """Predictions that are neither hit nor invention: absorbed by a region that is not judged."""
    judged = {j for _, j, _ in hits}
    invented = {(row["unit"], row["prediction_id"]) for row in failures if row["outcome"] == "fp"}
    columns = tables.predictions
    for at, (unit, one) in enumerate(zip(columns["unit"], columns["id"], strict=True)):
        shape = columns["geometry"][at]
        if at in judged or (unit, one) in invented or shape is None or columns["filtered"][at]:
            continue
        score = _finite(columns["score"][at])
        label = str(columns["label"][at])
        yield Feature("ignored", "", str(unit), str(one), "", label, "", "", None, score, {}, _wkb(shape))


def _order(row: Feature) -> tuple[str, str, str, str, bytes]:
    return row.outcome, row.unit, row.id, row.partner, row.wkb


def _finite(value: Any) -> float | None:
    number = float(value)
    return number if np.isfinite(number) else None


def _wkb(shape: Any) -> bytes:
    import shapely

    return bytes(shapely.to_wkb(shape, byte_order=1, include_srid=False))


def _write(path: Path, layer: str, rows: Sequence[Feature], crs: str | None, description: str) -> None:
    import pyogrio.raw
    import shapely

    names, values = _fields(rows)
    kind, multi = _geometry_type(shapely.get_type_id(shapely.from_wkb([row.wkb for row in rows])))
    geometry = np.empty(len(rows), dtype=object)
    geometry[:] = [row.wkb for row in rows]
    with warnings.catch_warnings():
        # Without a system there is a warning, and image coordinates have none.
        warnings.filterwarnings("ignore", message=".*crs.*was not provided")
        pyogrio.raw.write(
            str(path),
            geometry,
            values,
            names,
            layer=layer,
            driver="GPKG",
            geometry_type=kind,
            promote_to_multi=multi,
            crs=crs,
            layer_options={"DESCRIPTION": description, "IDENTIFIER": layer},
        )


def _fields(rows: Sequence[Feature]) -> tuple[list[str], list[NDArray[Any]]]:
    by = sorted({name for row in rows for name in row.strata})
    names = [*_FIXED, *_NUMBERS, *(f"by_{name}" for name in by)]
    texts = [_objects([getattr(row, name) for row in rows]) for name in _FIXED]
    numbers = [
        np.array([np.nan if (one := getattr(row, name)) is None else one for row in rows], dtype=np.float64)
        for name in _NUMBERS
    ]
    strata = [_objects([row.strata.get(name) for row in rows]) for name in by]
    return names, [*texts, *numbers, *strata]


def _objects(values: list[Any]) -> NDArray[Any]:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


#: Shapely's numbers of simple and of multiple types, by the name that GDAL gives to both.
_KINDS = (({0}, "Point", False), ({0, 4}, "MultiPoint", True), ({1, 2, 5}, "MultiLineString", True))


def _geometry_type(types: NDArray[Any]) -> tuple[str, bool]:
    """The type of a layer that holds all these, and whether single shapes are promoted to it."""
    there = set(np.unique(types).tolist())
    for kinds, name, multi in (*_KINDS, ({3, 6}, "MultiPolygon", True)):
        if there <= kinds:
            return name, multi
    return "Unknown", False


def same_features(one: Path, other: Path) -> bool:
    """True where two GeoPackages hold the same layers with the same features in the same order."""
    import pyogrio
    import pyogrio.raw

    listed = [pyogrio.list_layers(path).tolist() for path in (one, other)]
    if listed[0] != listed[1]:
        return False
    for layer, _ in listed[0]:
        (meta, _, shapes, values), (meta2, _, shapes2, values2) = (
            pyogrio.raw.read(path, layer=layer) for path in (one, other)
        )
        if list(meta["fields"]) != list(meta2["fields"]) or meta["crs"] != meta2["crs"]:
            return False
        if shapes.tolist() != shapes2.tolist():
            return False
        pairs = zip(values, values2, strict=True)
        if not all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs):
            return False
    return True
