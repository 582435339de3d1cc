"""Detection: boxes, polygons or points with scores and labels, against a reference.

Compared      one-to-one, by intersection over union (points: by distance in metres); only equal labels pair where both
              sides have labels.
Conventions   a similarity equal to the threshold is a match; all predictions count unless ``score_min`` is declared;
              AP and calibration match by score, anew at each threshold, and never move the operating point.
Quantities    precision and recall (proportions), F1, AP at 0.50 and over 0.50:0.05:0.95, IoU of hits, calibration of
              the score at IoU 0.5, and the area under the risk-coverage curve.
Differs       from pycocotools: no cap of 100 detections, tied scores make one point of the curve, undefined is null
              instead of −1. ``protocol = "coco"`` restores the cap and the ties inside an image;
              :func:`geoeval.objects.coco.coco_summary` gives the twelve COCO figures to 1e-9.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import shapely
from numpy.typing import NDArray

from geoeval.errors import ConfigError, InputError
from geoeval.layers import ObjectPair
from geoeval.ledger import Tallied
from geoeval.model import Finding, FloatArray, Quantity, Unit
from geoeval.objects.cells import Places, Sheet, places
from geoeval.objects.coco import THRESHOLDS, box_candidates
from geoeval.objects.declared import check_choice, check_distance, check_share
from geoeval.objects.diagnosis import (
    confusion_matrix,
    count_confusion,
    count_errors,
    error_counts,
    error_types,
    excluded_classes,
)
from geoeval.objects.figures import defined, mean, missing, object_counts
from geoeval.objects.flags import (
    add_ranked,
    add_seen,
    admissible,
    counted_references,
    first_of_each_class,
    flags,
)
from geoeval.objects.pairing import (
    ASSIGNMENTS,
    BACKGROUND_IOU,
    Candidates,
    Outcomes,
    at_operating_point,
    both_labelled,
    candidates,
    count_outcomes,
    geometry_kind,
    labels_count,
    match,
    outcomes,
    records,
    similarity_of,
    without_scores,
)
from geoeval.objects.ranked_figures import (
    average_precision_figures,
    average_precision_values,
    confidence_figures,
    coverage_risk_points,
    localisation_aware_ece,
    optimal_lrp,
)
from geoeval.options import Assignment
from geoeval.stats.tally import Totals

#: Detections that pycocotools looks at, per image and class.
COCO_CAP = 100


@dataclass(frozen=True, slots=True)
class Detection:
    """Detections against a reference.

    Parameters
    ----------
    iou
        Least intersection over union of a hit, inclusive.
    assignment
        ``score``, ``similarity``, ``optimal`` or ``id``; without scores, ``score`` falls back to ``optimal`` and says
        so.
    class_aware
        Whether only equal labels pair; None means wherever both sides have labels.
    score_min
        Operating point: predictions below it abstain. None: all count.
    max_detections
        Most predictions per unit and class; None means no cap (under ``protocol = "coco"`` 100).
    area_ranges
        Named ranges (name, least, greatest area), both ends inclusive, for AP by size.
    protocol
        ``geoeval`` or ``coco``.
    max_distance_m
        Greatest distance of a hit, where objects are points.

    Examples
    --------
    >>> Detection(iou=50)
    Traceback (most recent call last):
    geoeval.errors.ConfigError: iou must lie in (0, 1], got 50; is it a percentage?
    """

    iou: float = 0.5
    assignment: Assignment = "score"
    class_aware: bool | None = None
    score_min: float | None = None
    max_detections: int | None = None
    area_ranges: tuple[tuple[str, float, float], ...] = ()
    protocol: Literal["geoeval", "coco"] = "geoeval"
    max_distance_m: float = 5.0

    def __post_init__(self) -> None:
        check_share("iou", self.iou)
        check_share("score_min", self.score_min, zero=True)
        check_choice("assignment", self.assignment, ASSIGNMENTS)
        check_choice("protocol", self.protocol, ("geoeval", "coco"))
        check_distance("max_distance_m", self.max_distance_m)
        if self.max_detections is not None and self.max_detections < 1:
            raise ConfigError(
                f"max_detections must be at least 1, got {self.max_detections!r}; leave it out for no cap"
            )
        for name, low, high in self.area_ranges:
            if not low <= high:
                raise ConfigError(f"area_ranges: {name!r} must run from small to large, got {low!r} to {high!r}")

    @property
    def name(self) -> str:
        """Evaluator and its number, which goes up when results may change."""
        return "detection/1"

    @property
    def family(self) -> str:
        """Family of the metric contract."""
        return "detection"

    def tally(self, unit: Unit[ObjectPair]) -> Tallied:
        """Match the detections of one unit and count them in their cells."""
        pair = _scored_if_empty(unit.load())
        kind = geometry_kind(unit.id, pair)
        if kind == "line":
            raise InputError(
                f"unit {unit.id!r}: detections are boxes, polygons or points, found lines; use the vector evaluator"
            )
        labelled = labels_count(unit.id, pair, self.class_aware)
        assignment, findings = without_scores(unit.id, pair, self.assignment)
        active, abstained = at_operating_point(unit.id, pair, self.score_min)
        kept, capped = self._kept(unit.id, pair, labelled=labelled)
        place = places(pair, labelled=both_labelled(pair))
        sheet = Sheet(place.cells)
        found = self._candidates(pair, kind)
        taking = kept if active is None else kept & active
        threshold = -self.max_distance_m if kind == "point" else self.iou
        matched = match(
            unit.id,
            pair,
            found,
            threshold=threshold,
            assignment=assignment,
            labelled=labelled,
            active=taking,
            by_row=self.protocol == "coco",
        )
        result = outcomes(pair, matched, taking)
        count_outcomes(sheet, place, result, kind="point" if kind == "point" else "")
        sheet.count("below_score_min", place.prediction[abstained])
        sheet.count("above_max_detections", place.prediction[~kept])
        if kind != "point":
            self._add_overlap(sheet, place, result)
        if pair.prediction.score is None:
            at = result.prediction_places(place)
            sheet.count("unscored", at[np.concatenate([result.prediction, result.fp])])
        else:
            self._add_ranked(sheet, place, pair, admissible(pair, found, labelled=labelled), kept, kind, labelled)
        errors = None
        if kind == "polygon":
            errors = error_types(pair, found, matched, result, threshold=self.iou, labelled=labelled, active=taking)
            count_errors(sheet, place, result, errors)
        if both_labelled(pair):
            agnostic = self._agnostic(unit.id, pair, found, threshold, assignment, taking)
            count_confusion(sheet, place, pair, agnostic)
        return Tallied(sheet.tallies(), records(unit.id, pair, place, result, errors), (*findings, *capped))

    def quantities(self, totals: Totals) -> Mapping[str, Quantity]:
        """Counts, precision, recall, F1, and mean IoU of the hits."""
        reason = "not_applicable" if _points(totals) else None
        return {**object_counts(totals), "iou_mean": mean(totals, "iou", reason=reason)}

    def ranked(self, totals: Totals) -> Mapping[str, Quantity]:
        """AP, median IoU, calibration and risk-coverage."""
        from geoeval.stats.ranking import quantile_redraws

        unscored = "not_applicable" if np.any(totals["unscored"]) else None
        unmeasured = "not_applicable" if _points(totals) else None
        out: dict[str, Quantity] = {}
        reason = unmeasured or unscored
        out["ap50"], out["ap50_95"] = (missing(totals, reason),) * 2 if reason else average_precision_figures(totals)
        overlaps = totals.rows.get("iou")
        if overlaps is None:
            out["iou_median"] = missing(totals, unmeasured or "undefined_ratio", totals["tp"])
        else:
            out["iou_median"] = defined(quantile_redraws(overlaps, 0, 0.5), totals["tp"])
        return {**out, **confidence_figures(totals, unscored)}

    def class_quantities(self, totals: Totals) -> Mapping[str, Mapping[str, Quantity]]:  # noqa: ARG002 - cells carry classes
        """Nothing: cells carry the class."""
        return {}

    def extras(self, totals: Totals) -> dict[str, Any]:
        """Object confusion matrix, error types, abstentions, AP by size, and classes without references."""
        out: dict[str, Any] = {}
        confusion = confusion_matrix(totals)
        if confusion is not None:
            out["confusion"] = confusion
            out["excluded_classes"] = excluded_classes(totals)
        out["error_types"] = error_counts(totals)
        out["abstentions"] = {reason: int(totals[reason][0]) for reason in ("below_score_min", "above_max_detections")}
        out["ignored"] = int(totals["ignored"][0])
        if np.any(totals["unscored"]):
            return out
        if _points(totals):
            out["ap_at_max_distance"] = average_precision_values(totals, "apd")["ap50"]
            return out
        if self.area_ranges:
            out["area_ranges"] = {
                name: average_precision_values(totals, f"ap[{name}]") for name, _, _ in self.area_ranges
            }
        out["laece"] = localisation_aware_ece(totals)
        out["optimal_lrp"] = optimal_lrp(totals)
        return out

    def coverage_risk(self, totals: Totals) -> tuple[FloatArray, FloatArray]:
        """Confidence of every detection, descending, and 1 where it is a hit at IoU 0.5, else 0."""
        return coverage_risk_points(totals)

    def _kept(self, unit: str, pair: ObjectPair, *, labelled: bool) -> tuple[NDArray[np.bool_], tuple[Finding, ...]]:
        limit = self.max_detections or (COCO_CAP if self.protocol == "coco" else None)
        every = np.ones(len(pair.prediction), dtype=bool)
        if limit is None:
            return every, ()
        if pair.prediction.score is None:
            if len(every) <= limit:
                return every, ()
            raise InputError(
                f"unit {unit!r}: a cap of {limit} detections needs scores to choose by, found none in "
                f"{pair.prediction.source!r}. Name the score column, or drop max_detections."
            )
        kept = first_of_each_class(pair, limit, labelled=labelled, by_row=self.protocol == "coco")
        cut = int(np.sum(~kept))
        if not cut:
            return kept, ()
        said = Finding(
            "detections-capped",
            "minor",
            (unit,),
            f"the cap of {limit} detections a class and unit cut {cut} of {len(kept)} in all",
            "raise max_detections, or leave it out",
        )
        return kept, (said,)

    def _candidates(self, pair: ObjectPair, kind: str) -> Candidates:
        floor = min(BACKGROUND_IOU, self.iou)
        found = candidates(pair, kind, floor=floor, max_distance=self.max_distance_m)
        return box_candidates(pair, found) if self.protocol == "coco" and kind == "polygon" else found

    def _add_overlap(self, sheet: Sheet, place: Places, result: Outcomes) -> None:
        known = ~np.isnan(result.similarity)
        at, overlap = place.reference[result.reference][known], np.round(result.similarity[known], 9)
        sheet.real("iou", at, overlap)
        sheet.rows("iou", at, overlap)

    def _add_ranked(
        self,
        sheet: Sheet,
        place: Places,
        pair: ObjectPair,
        found: Candidates,
        kept: NDArray[np.bool_],
        kind: str,
        labelled: bool,
    ) -> None:
        thresholds = np.array([-self.max_distance_m]) if kind == "point" else THRESHOLDS
        by_row = self.protocol == "coco"
        of = flags(pair, found, thresholds=thresholds, kept=kept, by_row=by_row)
        name = "apd" if kind == "point" else "ap"
        add_ranked(sheet, place, pair, of, counted_references(pair), name, labelled=labelled)
        overlap = np.zeros(len(pair.prediction))
        if kind != "point":
            took = np.flatnonzero(of.hit[0])
            overlap[took] = similarity_of(pair, found, of.taken[0][took], took)
        add_seen(sheet, place, pair, of, overlap, labelled=labelled)
        if kind == "point" or not self.area_ranges:
            return
        area = (np.asarray(shapely.area(pair.reference.geometry)), np.asarray(shapely.area(pair.prediction.geometry)))
        for label, low, high in self.area_ranges:
            sized = flags(
                pair, found, thresholds=thresholds, kept=kept, by_row=by_row, area=area, area_range=(low, high)
            )
            counted = counted_references(pair, area[0], (low, high))
            add_ranked(sheet, place, pair, sized, counted, f"ap[{label}]", labelled=labelled)

    def _agnostic(
        self,
        unit: str,
        pair: ObjectPair,
        found: Candidates,
        threshold: float,
        assignment: Assignment,
        active: NDArray[np.bool_],
    ) -> Outcomes:
        matched = match(
            unit,
            pair,
            found,
            threshold=threshold,
            assignment=assignment,
            labelled=False,
            active=active,
            by_row=self.protocol == "coco",
        )
        return outcomes(pair, matched, active)


def _scored_if_empty(pair: ObjectPair) -> ObjectPair:
    """No predictions at all lack no scores: AP is 0 there, not undefined."""
    if len(pair.prediction) or pair.prediction.score is not None:
        return pair
    return replace(pair, prediction=replace(pair.prediction, score=np.zeros(0)))


def _points(totals: Totals) -> bool:
    return bool(np.any(totals["kind@point"]))
