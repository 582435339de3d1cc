"""From two sources of features to units: one metric system, clean geometries, and what every column means.

Everything is read before the first unit is evaluated, so that nothing is scored where something has to be refused; a
unit carries its features with it and can be sent to another process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import shapely
from numpy.typing import NDArray

from geoeval.errors import InputError
from geoeval.layers import ObjectPair, Objects
from geoeval.model import Finding, FloatArray, ObjectArray, Unit
from geoeval.options import Pairing, Source
from geoeval.readers import grouping
from geoeval.readers.attributes import Remarks, compared, events, identities, ignored, labels, scores, spelt_apart
from geoeval.readers.grouping import Clusters
from geoeval.readers.naming import known_only, name_units
from geoeval.readers.places import inside_aoi, representative, run_crs, run_extent, system_text, to_system
from geoeval.readers.raw import PIXEL, Table, is_pixel
from geoeval.readers.sides import Side, clean, defects_by_unit, join, settle_dimension
from geoeval.readers.sources import FilePair, expand, pair_files
from geoeval.readers.unitset import UnitSet
from geoeval.readers.vector import read_table

#: Families whose objects are polygons and nothing else.
_POLYGONS = frozenset({"footprint"})


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """A payload that is in memory already; can be sent to another process."""

    pair: ObjectPair

    def __call__(self) -> ObjectPair:
        """The payload."""
        return self.pair


def object_units(
    reference: Source,
    prediction: Source,
    pairing: Pairing | None = None,
    *,
    family: str,
    dimension: str | None = None,
) -> UnitSet[ObjectPair]:
    """Units of two sources of features.

    Parameters
    ----------
    reference, prediction
        Files, globs, folders or frames. Files pair by stem; two single files pair as they are.
    pairing
        How they become units, clusters and strata.
    family
        ``"detection"``, ``"footprint"``, ``"vector"`` or ``"change"``.
    dimension
        ``"polygon"``, ``"line"`` or ``"point"`` where only these are allowed; None takes what is there. What was found
        stands in the notes under ``"geometry"``.

    Returns
    -------
    UnitSet
        Units sorted by id, with findings, notes, and the files that were read.

    Raises
    ------
    InputError
        Something about the files has to be mended first; the message says what.

    Examples
    --------
    >>> import pandas as pd
    >>> boxes = pd.DataFrame({"xmin": [0, 5], "ymin": [0, 5], "xmax": [2, 9], "ymax": [2, 9]})
    >>> source = Source(boxes, crs="pixel")
    >>> found = object_units(source, source, family="detection")
    >>> pair = found.units[0].load()
    >>> len(pair.reference), pair.unit_of_length
    (2, 'px')
    """
    pairing = pairing if pairing is not None else Pairing()
    remarks = Remarks()
    left, right, units, inputs = _read(reference, prediction, pairing, family, remarks)
    right = known_only(right, units, pairing.on_unknown_unit, remarks)
    kind = settle_dimension((left, right), dimension or ("polygon" if family in _POLYGONS else None), family)
    remarks.notes["geometry"] = kind or "none"
    crs, findings = run_crs((left, right), pairing.on_crs_mismatch)
    remarks.findings += findings
    described = [
        _describe(side, source, family, pairing, remarks) for side, source in ((left, reference), (right, prediction))
    ]
    _need_geometry(described)
    _compare_labels(described, remarks)
    if pairing.drop_unmatched_ids:
        described[1] = _matched_only(described[0], described[1], remarks)
    target = _metric([part.side for part in described], crs, remarks)
    described = [replace(part, side=to_system(part.side, target)) for part in described]
    payloads, clusters, reference_only = _assemble(described, pairing, family, target, remarks)
    return UnitSet(
        units=tuple(
            Unit(id=unit, load=Loaded(payload)) for unit, payload in _split(units, described, payloads, target).items()
        ),
        findings=tuple(remarks.findings),
        notes=dict(remarks.notes),
        inputs=inputs,
        reference_only=reference_only,
        clustered=clusters,
        crs=None if is_pixel(target) else system_text(target),
    )


def _read(
    reference: Source, prediction: Source, pairing: Pairing, family: str, remarks: Remarks
) -> tuple[Side, Side, tuple[str, ...], tuple[str, ...]]:
    left_files, right_files = expand(reference.path, "reference"), expand(prediction.path, "prediction")
    pairs, findings = pair_files(left_files, right_files, pairing.on_unknown_unit)
    remarks.findings += findings
    left: list[tuple[str, Table]] = []
    right: list[tuple[str, Table]] = []
    for pair in pairs:
        ours, theirs = _read_pair(pair, reference, prediction, masks=family != "detection")
        left.append((pair.unit, ours))
        if theirs is not None:
            right.append((pair.unit, theirs))
    for side, tables in (("reference", left), ("prediction", right)):
        for _, table in tables:
            remarks.findings += table.findings
            remarks.notes |= {f"{side} {key}": value for key, value in table.notes.items()}
    sides = join("reference", left, reference.columns), join("prediction", right, prediction.columns)
    if reference.columns.id and prediction.columns.id:
        sides = _bare(sides[0]), _bare(sides[1])
    inputs = [path for _, table in (*left, *right) for path in table.inputs]
    if pairing.aoi is not None:
        inputs.append(str(pairing.aoi))
    units: tuple[str, ...] = tuple(unit for unit, _ in left)
    if left_files.single and right_files.single:
        ours_named, theirs_named, named = name_units(*sides, remarks)
        sides, units = (ours_named, theirs_named), named or units
    return (*sides, units, tuple(dict.fromkeys(inputs)))


def _bare(side: Side) -> Side:
    """A side whose geometries are all null is a table, which can be joined by id."""
    if side.geometry is None or not len(side) or not shapely.is_missing(side.geometry).all():
        return side
    return replace(side, geometry=None)


def _read_pair(pair: FilePair, reference: Source, prediction: Source, masks: bool) -> tuple[Table, Table | None]:
    ours = read_table(replace(reference, path=pair.reference), masks=masks)
    if pair.prediction is None:
        return ours, None
    return ours, read_table(replace(prediction, path=pair.prediction), beside=ours, masks=masks)


@dataclass(frozen=True, slots=True, eq=False)
class _Described:
    """One side with the meaning of its columns; all arrays have one entry a feature of ``side``."""

    side: Side
    read: Side
    id: ObjectArray
    label: ObjectArray | None
    score: FloatArray | None

    def take(self, keep: NDArray[Any]) -> _Described:
        return replace(
            self,
            side=self.side.take(keep),
            id=self.id[keep],
            label=None if self.label is None else self.label[keep],
            score=None if self.score is None else self.score[keep],
        )


def _describe(side: Side, source: Source, family: str, pairing: Pairing, remarks: Remarks) -> _Described:
    checked, kept, findings = clean(side, pairing.on_invalid)
    remarks.findings += findings
    label = labels(kept, source.recode, remarks)
    score = scores(kept, family, remarks) if side.name == "prediction" else None
    content = tuple(part for part in (label, score) if part is not None)
    return _Described(kept, checked, identities(kept, content, remarks), label, score)


def _need_geometry(sides: Sequence[_Described]) -> None:
    """Sides without geometry can only be joined by declared ids."""
    bare = [part.side for part in sides if part.side.geometry is None and len(part.side)]
    if not bare:
        return
    if all(part.side.columns.id for part in sides):
        return
    raise InputError(
        f"{bare[0].label}: expected geometry (a layer, WKT, boxes or points), found columns "
        f"{', '.join(map(repr, list(bare[0].frame.columns)[:15]))}; a table without geometry is joined "
        "by id: declare the id column of both sides and assignment = 'id'"
    )


def _compare_labels(sides: Sequence[_Described], remarks: Remarks) -> None:
    ours, theirs = (part.label for part in sides)
    if (ours is None) != (theirs is None):
        having, lacking = sides if theirs is None else sides[::-1]
        remarks.notes["classes"] = f"not compared ({lacking.side.label} has no label column, {having.side.label} has)"
        return
    if ours is None or theirs is None or not len(ours) or not len(theirs):
        return
    if {*ours} & {*theirs}:
        remarks.findings += spelt_apart("label", ours, theirs)
        return
    remarks.findings.append(
        Finding(
            "labels-disjoint",
            "major",
            tuple(sorted({*ours})[:5] + sorted({*theirs})[:5]),
            "reference and prediction have no label in common, so nothing can match by class",
            "recode one side, or compare without classes (class_aware = false)",
        )
    )


def _matched_only(ours: _Described, theirs: _Described, remarks: Remarks) -> _Described:
    known = set(zip(ours.side.unit, ours.id, strict=True))
    keep = np.array([key in known for key in zip(theirs.side.unit, theirs.id, strict=True)], dtype=bool)
    if not keep.all():
        remarks.findings.append(
            Finding(
                "id-unmatched",
                "info",
                (theirs.side.label,),
                f"{int((~keep).sum())} of {len(keep)} predictions were dropped because the reference lacks their id",
                "none needed: it was declared",
            )
        )
    return theirs.take(keep)


def _metric(sides: Sequence[Side], crs: Any, remarks: Remarks) -> Any:
    """The system to measure in; geometry is in pixels, or there is none, where it is ``"pixel"``."""
    from geoeval.geometry.crs import describe, metric_crs

    if crs is None or is_pixel(crs):
        remarks.notes["crs"] = "image coordinates" if is_pixel(crs) else "none"
        return PIXEL
    target, findings = metric_crs(crs, run_extent(sides, crs))
    remarks.findings += findings
    remarks.notes["crs"] = f"{describe(crs)}, measured in {describe(target)}"
    return target


def _assemble(
    sides: Sequence[_Described], pairing: Pairing, family: str, target: Any, remarks: Remarks
) -> tuple[list[tuple[Objects, NDArray[np.bool_] | None]], bool, frozenset[str]]:
    ours, theirs = sides
    points = [representative(part.side) if part.side.geometry is not None else _nowhere() for part in sides]
    _apart([part.side for part in sides], remarks)
    inside: list[NDArray[np.bool_] | None] = [None, None]
    if pairing.aoi is not None:
        within = inside_aoi(pairing.aoi, target, points)
        inside = [mask if part.side.geometry is not None else None for mask, part in zip(within, sides, strict=True)]
        if not any(mask.any() for mask in inside if mask is not None):
            says = "no feature of either side lies inside the declared area"
            where = (Path(pairing.aoi).name,)
            remarks.findings.append(Finding("aoi-empty", "major", where, says, "check the area and its system"))
    clusters = _clusters(ours, theirs, points, pairing, target, remarks)
    *strata, reference_only = grouping.strata(ours.side, theirs.side, pairing.by, remarks)
    happened = events(ours.side, theirs.side, remarks) if family == "change" else ({}, {})
    out = []
    for number, part in enumerate(sides):
        fields = {**happened[number], **compared(part.side, pairing.attributes), **_measured_by_source(part.side)}
        blank = np.full(len(part.side), None, dtype=object)
        objects = Objects(
            geometry=part.side.geometry if part.side.geometry is not None else blank,
            id=part.id,
            row=part.side.row,
            label=part.label,
            score=part.score,
            ignore=ignored(part.side, remarks) if number == 0 else None,
            cluster=(clusters.reference, clusters.prediction)[number],
            strata=strata[number],
            fields=fields,
            source=part.side.label,
        )
        out.append((objects, inside[number]))
    return out, clusters.clustered, reference_only


def _nowhere() -> tuple[FloatArray, FloatArray]:
    return np.empty(0), np.empty(0)


def _measured_by_source(side: Side) -> dict[str, NDArray[Any]]:
    """COCO ranges of size use the area that the annotation states, which is that of its mask."""
    if any(table.kind != "coco" for table in side.tables) or "area" not in side.frame.columns:
        return {}
    return {"coco_area": side.frame["area"].to_numpy(dtype=np.float64)}


def _apart(sides: Sequence[Side], remarks: Remarks) -> None:
    boxes = [shapely.total_bounds(side.geometry) for side in sides if side.geometry is not None and len(side)]
    if len(boxes) == 2:
        a, b = boxes
        if a[0] > b[2] or b[0] > a[2] or a[1] > b[3] or b[1] > a[3]:
            remarks.findings.append(
                Finding(
                    "extents-apart",
                    "major",
                    tuple(side.label for side in sides),
                    "the extents of reference and prediction do not touch, so nothing can match",
                    "check the CRS of both sides and the order of x and y",
                )
            )


def _clusters(
    ours: _Described,
    theirs: _Described,
    points: Sequence[tuple[FloatArray, FloatArray]],
    pairing: Pairing,
    target: Any,
    remarks: Remarks,
) -> Clusters:
    wanted = pairing.cluster
    if wanted == "none":
        remarks.notes["cluster"] = "none (declared)"
        return Clusters(
            np.full(len(ours.side), "", dtype=object), np.full(len(theirs.side), "", dtype=object), clustered=False
        )
    if wanted not in ("auto", "") and not wanted.startswith("grid:"):
        remarks.notes["cluster"] = f"column {wanted!r} (declared)"
        return grouping.by_column(ours.side, theirs.side, wanted)
    if wanted in ("auto", ""):
        found = grouping.guessed(ours.side, theirs.side, remarks)
        if found is not None:
            return found
        if is_pixel(target) and len({*ours.side.unit, *theirs.side.unit}) > 1:
            remarks.notes["cluster"] = "unit (images have no common ground)"
            return Clusters(ours.side.unit, theirs.side.unit)
        wanted = "grid:auto"
    pixel = any(is_pixel(table.crs) for part in (ours, theirs) for table in part.side.tables)
    grid = grouping.by_grid(ours.side, theirs.side, points, wanted, pixel, remarks)
    return _placed_by_id(ours, theirs, grid)


def _placed_by_id(ours: _Described, theirs: _Described, grid: Clusters) -> Clusters:
    """A side without geometry lies where its partners by id lie."""
    if ours.side.geometry is None and theirs.side.geometry is None:
        return Clusters(ours.id, theirs.id)
    if ours.side.geometry is None:
        return replace(grid, reference=grouping.joined(ours.id, theirs.id, grid.prediction, "unplaced"))
    if theirs.side.geometry is None:
        return replace(grid, prediction=grouping.joined(theirs.id, ours.id, grid.reference, "unplaced"))
    return grid


def _split(
    units: Sequence[str], sides: Sequence[_Described], payloads: Sequence[tuple[Objects, Any]], target: Any
) -> dict[str, ObjectPair]:
    parts = []
    for part, (objects, inside) in zip(sides, payloads, strict=True):
        defects, read = defects_by_unit(part.read)
        codes, names = pd.factorize(part.side.unit)
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=len(names)))
        rows = {str(name): mine for name, mine in zip(names, np.split(order, ends[:-1]), strict=False)}
        parts.append((objects, inside, defects, read, rows))
    out = {}
    for unit in sorted(units):
        pieces = []
        for objects, inside, defects, read, rows in parts:
            mine = rows.get(unit, np.empty(0, dtype=np.int64))
            piece = replace(objects.take(mine), defects=defects.get(unit, {}), read=read.get(unit, 0))
            pieces.append((piece, None if inside is None else inside[mine]))
        (ours, ours_inside), (theirs, theirs_inside) = pieces
        out[unit] = ObjectPair(ours, theirs, "px" if is_pixel(target) else "m", ours_inside, theirs_inside)
    return out
