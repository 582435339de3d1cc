"""Polygons against polygons: the figures that footprints and vector layers share.

Hits are one-to-one pairs; figures of shape are means over them, or pooled over them by length. The area of whole layers
(overlaps inside a layer dissolved) is kept for each connected component of overlapping polygons, in the cluster of its
first member, so that it adds over clusters although it does not add over objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import NDArray

from geoeval.cells import Places, Sheet, home, places, ranks
from geoeval.diagnosis import count_errors, error_types
from geoeval.figures import count, defined, mean, missing, object_counts
from geoeval.layers import ObjectPair, Objects
from geoeval.model import Cell, Finding, FloatArray, IntArray, ObjectArray, Proportion, Quantity, Records, Scalar, ratio
from geoeval.options import Assignment
from geoeval.pairing import (
    Candidates,
    Outcomes,
    at_operating_point,
    both_labelled,
    candidates,
    count_outcomes,
    inside,
    labels_count,
    match,
    outcomes,
    records,
    without_scores,
)
from geoeval.stats.tally import PER_UNIT, Tally, Totals, quanta

#: Quanta per square unit: areas of whole countries stay well inside 64 bits.
AREA_PER_UNIT = 10**6
#: Panoptic quality is defined above this overlap, where pairs are unique in layers without overlaps.
PANOPTIC_IOU = 0.5
#: What says something about neighbours, not about a geometry by itself.
NOT_VALIDITY = frozenset({"overlap", "sliver", "outside-aoi", "duplicate-id"})


@dataclass(frozen=True, slots=True)
class PolygonRules:
    """What decides a hit, and the tolerance of boundaries."""

    iou: float = 0.5
    assignment: Assignment = "optimal"
    class_aware: bool | None = None
    score_min: float | None = None
    boundary_tolerance_m: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class PolygonTally:
    """One unit, matched and counted; the sheet may still be added to."""

    sheet: Sheet
    place: Places
    result: Outcomes
    records: Records
    findings: tuple[Finding, ...]


def tally_polygons(unit: str, pair: ObjectPair, rules: PolygonRules, *, kind: str) -> PolygonTally:
    """Match the polygons of one unit and count them in their cells.

    Parameters
    ----------
    unit
        Its name, for messages and records.
    kind
        From :func:`geoeval.pairing.geometry_kind`: ``polygon``, or ``""`` without geometry.
    """
    labelled = labels_count(unit, pair, rules.class_aware)
    assignment, findings = without_scores(unit, pair, rules.assignment)
    active, abstained = at_operating_point(unit, pair, rules.score_min)
    place = places(pair, labelled=both_labelled(pair))
    sheet = Sheet(place.cells)
    found = candidates(pair, kind, floor=0.0, max_distance=0.0)
    matched = match(unit, pair, found, threshold=rules.iou, assignment=assignment, labelled=labelled, active=active)
    result = outcomes(pair, matched, active)
    count_outcomes(sheet, place, result, kind=kind)
    sheet.count("below_score_min", place.prediction[abstained])
    errors = error_types(pair, found, matched, result, threshold=rules.iou, labelled=labelled, active=active)
    count_errors(sheet, place, result, errors)
    _add_panoptic(sheet, place, unit, pair, found, labelled, active)
    _add_shapes(sheet, place, pair, result, rules.boundary_tolerance_m)
    _add_structure(sheet, place, pair, found, active)
    _add_dissolved(sheet, pair, result, active)
    sheet.add(home(pair), _validity(pair))
    return PolygonTally(sheet, place, result, records(unit, pair, place, result, errors), findings)


def polygon_quantities(totals: Totals, unit_of_length: str = "m") -> dict[str, Quantity]:
    """All figures that are read off sums, in print order."""
    tp = totals["tp"]
    of_b, of_a = totals.real("boundary_prediction"), totals.real("boundary_reference")
    in_b, in_a = totals.real("boundary_prediction_within"), totals.real("boundary_reference_within")
    precision, recall = _share(in_b, of_b), _share(in_a, of_a)
    return {
        **object_counts(totals),
        "iou_mean": mean(totals, "iou", "measured"),
        "dice_mean": mean(totals, "dice", "measured"),
        **_area_quantities(totals),
        "boundary_precision": _pooled(in_b, of_b, tp),
        "boundary_recall": _pooled(in_a, of_a, tp),
        "boundary_f1": defined(_harmonic(precision, recall), tp),
        "centroid_distance_mean": mean(totals, "centroid_distance", "measured", unit_of_length),
        "area_error_mean": mean(totals, "area_error", "measured"),
        "area_error_abs_mean": mean(totals, "area_error_abs", "measured"),
        "polis_mean": mean(totals, "polis", "measured", unit_of_length),
        "hausdorff_mean": mean(totals, "hausdorff", "measured", unit_of_length),
        "vertex_ratio_mean": mean(totals, "vertex_ratio", "measured"),
        **_panoptic_quantities(totals),
        "valid_reference": _valid(totals, "reference"),
        "valid_prediction": _valid(totals, "prediction"),
        "split_references": count(totals, "split_references"),
        "merged_references": count(totals, "merged_references"),
    }


def polygon_ranked(totals: Totals, unit_of_length: str = "m") -> dict[str, Quantity]:
    """Median and 95th percentile of the distance between centroids."""
    from geoeval.stats.ranking import quantile_redraws

    rows = totals.rows.get("centroid_distance")
    out: dict[str, Quantity] = {}
    for name, share in (("centroid_distance_median", 0.5), ("centroid_distance_p95", 0.95)):
        if rows is None:
            out[name] = missing(totals, "undefined_ratio", totals["measured"], unit_of_length)
        else:
            out[name] = defined(quantile_redraws(rows, 0, share), totals["measured"], unit_of_length)
    return out


def _add_panoptic(
    sheet: Sheet,
    place: Places,
    unit: str,
    pair: ObjectPair,
    found: Candidates,
    labelled: bool,
    active: NDArray[np.bool_] | None,
) -> None:
    crowd = np.zeros(len(pair.reference), dtype=bool) if pair.reference.ignore is None else pair.reference.ignore
    above = found.take((found.similarity > PANOPTIC_IOU) | crowd[found.reference])
    matched = match(unit, pair, above, threshold=PANOPTIC_IOU, assignment="optimal", labelled=labelled, active=active)
    result = outcomes(pair, matched, active)
    hit = place.reference[result.reference]
    sheet.count("pq_tp", hit)
    sheet.count("pq_fp", place.prediction[result.fp])
    sheet.count("pq_fn", place.reference[result.fn])
    sheet.real("pq_iou", hit, np.round(result.similarity, 9))


def _add_shapes(sheet: Sheet, place: Places, pair: ObjectPair, result: Outcomes, tolerance: float) -> None:
    """Figures of every hit with a geometry on both sides (joined records may have none)."""
    there = ~np.isnan(result.similarity)
    a = pair.reference.geometry[result.reference[there]]
    b = pair.prediction.geometry[result.prediction[there]]
    at, overlap = place.reference[result.reference[there]], np.round(result.similarity[there], 9)
    if not len(a):
        return
    from geoeval.geometry.boundary import boundary_length, boundary_within
    from geoeval.geometry.shape import centroid_distance, hausdorff, polis, vertex_count

    sheet.count("measured", at)
    sheet.real("iou", at, overlap)
    sheet.real("dice", at, np.round(2 * overlap / (1 + overlap), 9))
    distance = np.round(centroid_distance(a, b), 9)
    sheet.real("centroid_distance", at, distance)
    sheet.rows("centroid_distance", at, distance)
    error = np.round(shapely.area(b) / shapely.area(a) - 1, 9)
    sheet.real("area_error", at, error)
    sheet.real("area_error_abs", at, np.abs(error))
    sheet.real("polis", at, np.round(polis(a, b), 9))
    sheet.real("hausdorff", at, np.round(hausdorff(a, b), 9))
    sheet.real("vertex_ratio", at, np.round(vertex_count(b) / vertex_count(a), 9))
    sheet.real("boundary_reference", at, boundary_length(a))
    sheet.real("boundary_prediction", at, boundary_length(b))
    sheet.real("boundary_reference_within", at, boundary_within(a, b, tolerance))
    sheet.real("boundary_prediction_within", at, boundary_within(b, a, tolerance))


def _counted(side: Objects, mask: NDArray[np.bool_] | None, active: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    out = inside(side, mask) & shapely.is_geometry(side.geometry)
    if side.ignore is not None:
        out &= ~side.ignore
    return out if active is None else out & active


def _add_structure(
    sheet: Sheet, place: Places, pair: ObjectPair, found: Candidates, active: NDArray[np.bool_] | None
) -> None:
    """References that several predictions make up, and references that share one prediction; never scored."""
    if not len(found.reference):
        return
    from geoeval.geometry.structure import structure

    use = _counted(pair.reference, pair.reference_inside, None)[found.reference]
    if active is not None:
        use &= active[found.prediction]
    kept = found.take(use)
    area_a = shapely.area(pair.reference.geometry)[kept.reference]
    area_b = shapely.area(pair.prediction.geometry)[kept.prediction]
    shares = structure(
        len(pair.reference),
        len(pair.prediction),
        kept.reference,
        kept.prediction,
        np.round(kept.cover * area_b / area_a, 9),
        kept.cover,
    )
    sheet.count("split_references", place.reference[shares.split_references])
    sheet.count("merged_references", place.reference[shares.merged_references])


def _add_dissolved(sheet: Sheet, pair: ObjectPair, result: Outcomes, active: NDArray[np.bool_] | None) -> None:
    """Areas of both layers dissolved, component by component, in the cluster of the first member."""
    side, other = pair.reference, pair.prediction
    use_a = np.flatnonzero(_counted(side, pair.reference_inside, None))
    keep_b = _counted(other, pair.prediction_inside, active)
    keep_b[result.ignored] = False
    use_b = np.flatnonzero(keep_b)
    if not len(use_a) + len(use_b):
        return
    a, b = side.take(use_a), other.take(use_b)
    # By stable identifier: the first member names the cluster, and unions are made in this order.
    a, b = a.take(np.argsort(ranks(a.id), kind="stable")), b.take(np.argsort(ranks(b.id), kind="stable"))
    component, area = dissolved_components(a.geometry, b.geometry)
    cluster = np.concatenate([_clusters(a), _clusters(b)])
    first = np.unique(component, return_index=True)[1]
    whole = np.rint(area * AREA_PER_UNIT)
    for name in sorted(set(cluster[first].tolist())):
        mine = whole[cluster[first] == name]
        sums = dict(
            zip(
                ("area_reference", "area_prediction", "area_intersection", "area_union"),
                (quanta(column, 1) for column in mine.T),
                strict=True,
            )
        )
        sheet.add(Cell(name), Tally.of(sums, dissolved=len(mine)))


def dissolved_components(reference: ObjectArray, prediction: ObjectArray) -> tuple[IntArray, FloatArray]:
    """Connected components of overlapping polygons, and the areas of each.

    Returns
    -------
    tuple
        Component of every reference, then of every prediction (n,); and (components, 4): area of the dissolved
        references, of the dissolved predictions, of what both cover, of what either covers.

    Examples
    --------
    >>> component, area = dissolved_components(
    ...     np.array([shapely.box(0, 0, 2, 1)]), np.array([shapely.box(1, 0, 3, 1), shapely.box(9, 0, 10, 1)]))
    >>> component.tolist(), area.tolist()
    ([0, 0, 1], [[2.0, 2.0, 1.0, 3.0], [0.0, 1.0, 0.0, 1.0]])
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    from geoeval.geometry.overlap import dissolved_areas, overlaps, self_overlaps

    n = len(reference)
    size = n + len(prediction)
    across = overlaps(reference, prediction)
    within = [self_overlaps(reference), self_overlaps(prediction)]
    i = np.concatenate([across.reference, within[0].reference, within[1].reference + n])
    j = np.concatenate([across.prediction + n, within[0].prediction, within[1].prediction + n])
    graph = coo_array((np.ones(len(i), dtype=np.int8), (i, j)), shape=(size, size))
    components, label = connected_components(graph, directed=False)
    component = label.astype(np.int64)
    area = np.zeros((components, 4))
    np.add.at(area[:, 0], component[:n], shapely.area(reference))
    np.add.at(area[:, 1], component[n:], shapely.area(prediction))
    np.add.at(area[:, 2], component[across.reference], across.area)
    area[:, 3] = area[:, 0] + area[:, 1] - area[:, 2]
    tangled = np.unique(np.concatenate([component[within[0].reference], component[within[1].reference + n]]))
    order = np.argsort(component, kind="stable")
    start = np.searchsorted(component[order], np.arange(components + 1))
    for at in tangled.tolist():
        members = order[start[at] : start[at + 1]]
        area[at] = dissolved_areas(reference[members[members < n]], prediction[members[members >= n] - n])
    return component, area


def _clusters(side: Objects) -> ObjectArray:
    return np.full(len(side), "", dtype=object) if side.cluster is None else side.cluster


def _validity(pair: ObjectPair) -> Tally:
    sums: dict[str, int] = {}
    for name, side in (("reference", pair.reference), ("prediction", pair.prediction)):
        wrong = {reason: n for reason, n in side.defects.items() if reason not in NOT_VALIDITY}
        read = max(side.read, len(side))
        sums[f"read_{name}"] = read
        sums[f"valid_{name}"] = max(0, read - sum(wrong.values()))
        sums.update({f"defect_{name}@{reason}": n for reason, n in wrong.items()})
    return Tally.of(sums)


def defects_of(totals: Totals) -> dict[str, dict[str, int]]:
    """Invalid features by side and reason."""
    return {
        side: {reason: int(totals[f"defect_{side}@{reason}"][0]) for reason in totals.names(f"defect_{side}@")}
        for side in ("reference", "prediction")
    }


def _valid(totals: Totals, side: str) -> Proportion:
    n = totals[f"read_{side}"]
    # Files know how many features they held; subgroups by object do not.
    elsewhere = not np.any(n) and _objects(totals)
    return Proportion(totals[f"valid_{side}"], n, reason="not_applicable" if elsewhere else None)


def _objects(totals: Totals) -> bool:
    return bool(np.any(totals["tp"] + totals["fp"] + totals["fn"]))


def _area_quantities(totals: Totals) -> Mapping[str, Scalar]:
    n = totals["dissolved"]
    if not np.any(n) and _objects(totals):
        return {name: missing(totals, "not_applicable") for name in ("area_iou", "area_dice")}
    shared = totals.real("area_intersection", AREA_PER_UNIT)
    either = totals.real("area_union", AREA_PER_UNIT)
    both = totals.real("area_reference", AREA_PER_UNIT) + totals.real("area_prediction", AREA_PER_UNIT)
    return {"area_iou": _pooled(shared, either, n), "area_dice": _pooled(2 * shared, both, n)}


def _panoptic_quantities(totals: Totals) -> Mapping[str, Scalar]:
    tp, fp, fn = (np.asarray(totals[name], dtype=np.float64) for name in ("pq_tp", "pq_fp", "pq_fn"))
    n = totals["pq_tp"] + totals["pq_fp"] + totals["pq_fn"]
    overlap = totals.real("pq_iou", PER_UNIT)
    bottom = tp + (fp + fn) / 2
    return {
        "sq": _pooled(overlap, tp, totals["pq_tp"]),
        "rq": _pooled(tp, bottom, n),
        "pq": _pooled(overlap, bottom, n),
    }


def _share(top: FloatArray, bottom: FloatArray) -> FloatArray:
    return np.asarray(ratio(top, bottom), dtype=np.float64)


def _harmonic(a: FloatArray, b: FloatArray) -> FloatArray:
    """Harmonic mean: 0 where both are 0, NaN where either is undefined."""
    return np.where(a + b == 0, 0.0, _share(2 * a * b, a + b))


def _pooled(top: FloatArray, bottom: FloatArray, n: IntArray) -> Scalar:
    value = _share(top, bottom)
    reason = "undefined_ratio" if np.all(np.isnan(value)) else None
    return Scalar(value, n=n, numerator=top, denominator=bottom, reason=reason)
