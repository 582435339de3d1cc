"""Polygons against polygons: the figures that footprints and vector layers share.

Hits are one-to-one pairs; figures of shape are means over them, or pooled over them by length.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from geoeval.layers import ObjectPair
from geoeval.model import Finding, Quantity, Records, Scalar, scalar_value
from geoeval.objects.cells import Places, Sheet, places
from geoeval.objects.diagnosis import (
    confusion_matrix,
    count_confusion,
    count_errors,
    error_counts,
    error_types,
    excluded_classes,
)
from geoeval.objects.figures import (
    count,
    defined,
    harmonic,
    length_unit,
    mean,
    missing,
    object_counts,
    pooled,
    quotient,
)
from geoeval.objects.pairing import (
    Candidates,
    Outcomes,
    at_operating_point,
    both_labelled,
    candidates,
    count_outcomes,
    labels_count,
    match,
    outcomes,
    records,
    without_scores,
)
from geoeval.objects.whole_layers import (
    add_dissolved,
    add_validity,
    area_quantities,
    counted,
    defects_of,
    validity_quantities,
)
from geoeval.options import Assignment
from geoeval.stats.tally import Totals

#: Panoptic quality is defined above this overlap, where pairs are unique in layers without overlaps.
PANOPTIC_IOU = 0.5


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
        From :func:`geoeval.objects.pairing.geometry_kind`: ``polygon``, or ``""`` without geometry.
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
    add_dissolved(sheet, pair, result.ignored, active)
    add_validity(sheet, pair)
    if both_labelled(pair):
        agnostic = match(unit, pair, found, threshold=rules.iou, assignment=assignment, labelled=False, active=active)
        count_confusion(sheet, place, pair, outcomes(pair, agnostic, active))
    return PolygonTally(sheet, place, result, records(unit, pair, place, result, errors), findings)


def polygon_quantities(totals: Totals) -> dict[str, Quantity]:
    """All figures that are read off sums, in print order."""
    tp, unit_of_length = totals["tp"], length_unit(totals)
    of_b, of_a = totals.real("boundary_prediction"), totals.real("boundary_reference")
    in_b, in_a = totals.real("boundary_prediction_within"), totals.real("boundary_reference_within")
    precision, recall = quotient(in_b, of_b), quotient(in_a, of_a)
    return {
        **object_counts(totals),
        "iou_mean": mean(totals, "iou", "measured"),
        "dice_mean": mean(totals, "dice", "measured"),
        **area_quantities(totals),
        "boundary_precision": pooled(in_b, of_b, tp),
        "boundary_recall": pooled(in_a, of_a, tp),
        "boundary_f1": defined(harmonic(precision, recall), tp),
        "centroid_distance_mean": mean(totals, "centroid_distance", "measured", unit_of_length),
        "area_error_mean": mean(totals, "area_error", "measured"),
        "area_error_abs_mean": mean(totals, "area_error_abs", "measured"),
        "polis_mean": mean(totals, "polis", "measured", unit_of_length),
        "hausdorff_mean": mean(totals, "hausdorff", "measured", unit_of_length),
        "vertex_ratio_mean": mean(totals, "vertex_ratio", "measured"),
        **_panoptic_quantities(totals),
        **validity_quantities(totals),
        "split_references": count(totals, "split_references"),
        "merged_references": count(totals, "merged_references"),
    }


def polygon_ranked(totals: Totals) -> dict[str, Quantity]:
    """Median and 95th percentile of the distance between centroids."""
    from geoeval.stats.ranking import quantile_redraws

    rows, unit_of_length = totals.rows.get("centroid_distance"), length_unit(totals)
    out: dict[str, Quantity] = {}
    for name, share in (("centroid_distance_median", 0.5), ("centroid_distance_p95", 0.95)):
        if rows is None:
            out[name] = missing(totals, "undefined_ratio", totals["measured"], unit_of_length)
        else:
            out[name] = defined(quantile_redraws(rows, 0, share), totals["measured"], unit_of_length)
    return out


def polygon_extras(totals: Totals) -> dict[str, Any]:
    """What stands beside the figures: confusion of classes, types of errors, defects, and further shapes of hits."""
    out: dict[str, Any] = {}
    confusion = confusion_matrix(totals)
    if confusion is not None:
        out["confusion"], out["excluded_classes"] = confusion, excluded_classes(totals)
    out["error_types"] = error_counts(totals)
    out["defects"] = defects_of(totals)
    out["abstentions"] = {"below_score_min": int(totals["below_score_min"][0])}
    out["ignored"] = int(totals["ignored"][0])
    out["shape"] = {
        "c_iou_mean": scalar_value(mean(totals, "c_iou", "measured").value),
        "compactness_ratio_mean": scalar_value(mean(totals, "compactness_ratio", "measured").value),
        "orientation_difference_mean_deg": scalar_value(mean(totals, "orientation_difference", "oriented").value),
    }
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
    from geoeval.geometry.shape import (
        centroid_distance,
        compactness,
        hausdorff,
        orientation_difference,
        polis,
        vertex_count,
    )

    sheet.count("measured", at)
    if pair.unit_of_length != "m":
        sheet.count(f"unit@{pair.unit_of_length}", at)
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
    n_a, n_b = vertex_count(a), vertex_count(b)
    sheet.real("vertex_ratio", at, np.round(n_b / n_a, 9))
    sheet.real("c_iou", at, np.round(overlap * (1 - np.abs(n_a - n_b) / (n_a + n_b)), 9))
    sheet.real("compactness_ratio", at, np.round(compactness(b) / compactness(a), 9))
    turned = orientation_difference(a, b)
    known = ~np.isnan(turned)
    sheet.count("oriented", at[known])
    sheet.real("orientation_difference", at[known], np.round(turned[known], 6))
    sheet.real("boundary_reference", at, boundary_length(a))
    sheet.real("boundary_prediction", at, boundary_length(b))
    sheet.real("boundary_reference_within", at, boundary_within(a, b, tolerance))
    sheet.real("boundary_prediction_within", at, boundary_within(b, a, tolerance))


def _add_structure(
    sheet: Sheet, place: Places, pair: ObjectPair, found: Candidates, active: NDArray[np.bool_] | None
) -> None:
    """References that several predictions make up, and references that share one prediction; never scored."""
    if not len(found.reference):
        return
    from geoeval.geometry.structure import structure

    use = counted(pair.reference, pair.reference_inside, None)[found.reference]
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


def _panoptic_quantities(totals: Totals) -> Mapping[str, Scalar]:
    tp, fp, fn = (np.asarray(totals[name], dtype=np.float64) for name in ("pq_tp", "pq_fp", "pq_fn"))
    n = totals["pq_tp"] + totals["pq_fp"] + totals["pq_fn"]
    overlap = totals.real("pq_iou")
    bottom = tp + (fp + fn) / 2
    return {
        "sq": pooled(overlap, tp, totals["pq_tp"]),
        "rq": pooled(tp, bottom, n),
        "pq": pooled(overlap, bottom, n),
    }
