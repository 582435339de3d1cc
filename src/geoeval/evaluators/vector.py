"""Vector: two layers of polygons, lines or points, and their attributes.

Compared      polygons as footprints are; lines by a buffer around the other layer; points one-to-one by distance.
Conventions   metres; a distance equal to the buffer or to the greatest distance counts as within. Only equal labels are
              compared where both sides have labels. Figures of position are given a match: gross errors beyond
              ``max_distance_m`` are misses and inventions.
Quantities    polygons: those of footprints. Lines: completeness, correctness, quality (ratios of lengths), RMS
              distance. Points: precision and recall (proportions), F1, radial RMSE, CE90 and CE95 (empirical quantiles
              of the radial error), bias per axis. Attributes: agreement per field on matched pairs (proportions).
Differs       from a nearest-neighbour join: each object is used once. CE90 is the empirical 90 % quantile, not 2.146
              times a standard deviation. Lengths within a buffer are exact, where buffer polygons approximate arcs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import shapely
from numpy.typing import NDArray

from geoeval.errors import InputError
from geoeval.layers import ObjectPair, Objects
from geoeval.ledger import Tallied
from geoeval.model import FloatArray, IntArray, ObjectArray, Quantity, Records, Scalar, Unit, ratio_of, scalar_value
from geoeval.objects.attributes import count_agreement, quantities_of_agreement
from geoeval.objects.cells import Places, Sheet, places
from geoeval.objects.declared import check_choice, check_distance, check_share
from geoeval.objects.figures import defined, length_unit, mean, missing, object_counts
from geoeval.objects.pairing import (
    ASSIGNMENTS,
    Outcomes,
    at_operating_point,
    both_labelled,
    candidates,
    count_outcomes,
    geometry_kind,
    inside,
    labels_count,
    match,
    outcomes,
    records,
    without_scores,
)
from geoeval.objects.polygons import PolygonRules, polygon_extras, polygon_quantities, polygon_ranked, tally_polygons
from geoeval.objects.whole_layers import add_validity, defects_of
from geoeval.options import Assignment
from geoeval.stats.tally import Totals

#: Share of a line within the buffer from which its record reads as found.
FOUND_SHARE = 0.5

_LINE_KEYS = ("completeness", "correctness", "quality", "rms_distance")


@dataclass(frozen=True, slots=True)
class Vector:
    """Two vector layers against each other.

    Parameters
    ----------
    geometry
        ``polygon``, ``line`` or ``point``; ``auto`` takes what the layers hold.
    iou
        Least intersection over union of a hit of polygons, inclusive.
    assignment
        ``score``, ``similarity``, ``optimal`` or ``id``, for polygons and points.
    class_aware
        Whether only equal labels are compared; None means wherever both sides have labels.
    score_min
        Operating point: predictions below it abstain. None: all count.
    boundary_tolerance_m
        Distance within which a boundary of a polygon agrees with another.
    buffer_m
        Distance within which a line agrees with the other layer.
    max_distance_m
        Greatest distance of matched points.

    Examples
    --------
    >>> Vector(geometry="lines")
    Traceback (most recent call last):
    geoeval.errors.ConfigError: geometry = 'lines' is not known; did you mean 'line'?
    """

    geometry: Literal["auto", "polygon", "line", "point"] = "auto"
    iou: float = 0.5
    assignment: Assignment = "optimal"
    class_aware: bool | None = None
    score_min: float | None = None
    boundary_tolerance_m: float = 1.0
    buffer_m: float = 5.0
    max_distance_m: float = 5.0

    def __post_init__(self) -> None:
        check_choice("geometry", self.geometry, ("auto", "polygon", "line", "point"))
        check_share("iou", self.iou)
        check_share("score_min", self.score_min, zero=True)
        check_choice("assignment", self.assignment, ASSIGNMENTS)
        for name in ("boundary_tolerance_m", "buffer_m", "max_distance_m"):
            check_distance(name, getattr(self, name))

    @property
    def name(self) -> str:
        """Evaluator and its number, which goes up when results may change."""
        return "vector/1"

    @property
    def family(self) -> str:
        """Family of the metric contract."""
        return "vector"

    def tally(self, unit: Unit[ObjectPair]) -> Tallied:
        """Compare the two layers of one unit and count them in their cells."""
        pair = unit.load()
        found = geometry_kind(unit.id, pair)
        kind = self.geometry if self.geometry != "auto" else found
        if found and found != kind:
            raise InputError(
                f"unit {unit.id!r}: geometry = {self.geometry!r} is declared, and the layers hold {found}s"
            )
        if kind == "line":
            return self._tally_lines(unit.id, pair)
        if kind == "point":
            return self._tally_points(unit.id, pair)
        rules = PolygonRules(self.iou, self.assignment, self.class_aware, self.score_min, self.boundary_tolerance_m)
        done = tally_polygons(unit.id, pair, rules, kind=found)
        unknown = count_agreement(done.sheet, done.place, pair, done.result, unit.id)
        return Tallied(done.sheet.tallies(), done.records, (*done.findings, *unknown))

    def quantities(self, totals: Totals) -> Mapping[str, Quantity]:
        """Figures of the kind of geometry that was compared."""
        kind = self._kind(totals)
        if kind == "line":
            return _line_quantities(totals)
        return _point_quantities(totals) if kind == "point" else polygon_quantities(totals)

    def ranked(self, totals: Totals) -> Mapping[str, Quantity]:
        """Quantiles: of the radial error of points, of the distance between centroids of polygons."""
        kind = self._kind(totals)
        if kind == "line":
            return {}
        if kind == "polygon":
            return polygon_ranked(totals)
        return {"ce90": _radial(totals, 0.9), "ce95": _radial(totals, 0.95)}

    def class_quantities(self, totals: Totals) -> Mapping[str, Mapping[str, Quantity]]:
        """Agreement of every compared attribute on matched pairs."""
        return quantities_of_agreement(totals)

    def extras(self, totals: Totals) -> dict[str, Any]:
        """Error types and defects of polygons; robust figures of points."""
        kind = self._kind(totals)
        if kind == "line":
            return {"defects": defects_of(totals)}
        if kind == "polygon":
            return polygon_extras(totals)
        return {
            "defects": defects_of(totals),
            "radial_median": scalar_value(_radial(totals, 0.5).value),
            "rmse_x": scalar_value(_root(totals, "dx2").value),
            "rmse_y": scalar_value(_root(totals, "dy2").value),
            "median_x": scalar_value(_quantile(totals, 1, 0.5).value),
            "median_y": scalar_value(_quantile(totals, 2, 0.5).value),
        }

    def _kind(self, totals: Totals) -> str:
        if self.geometry != "auto":
            return self.geometry
        if "lines" in totals.sums:
            return "line"
        return "point" if "kind@point" in totals.sums else "polygon"

    def _tally_points(self, unit: str, pair: ObjectPair) -> Tallied:
        labelled = labels_count(unit, pair, self.class_aware)
        assignment, findings = without_scores(unit, pair, self.assignment)
        active, abstained = at_operating_point(unit, pair, self.score_min)
        place = places(pair, labelled=both_labelled(pair))
        sheet = Sheet(place.cells)
        found = candidates(pair, "point", floor=0.0, max_distance=self.max_distance_m)
        matched = match(
            unit,
            pair,
            found,
            threshold=-self.max_distance_m,
            assignment=assignment,
            labelled=labelled,
            active=active,
        )
        result = outcomes(pair, matched, active)
        count_outcomes(sheet, place, result, kind="point")
        sheet.count("below_score_min", place.prediction[abstained])
        _add_offsets(sheet, place, pair, result)
        add_validity(sheet, pair)
        unknown = count_agreement(sheet, place, pair, result, unit)
        return Tallied(sheet.tallies(), records(unit, pair, place, result), (*findings, *unknown))

    def _tally_lines(self, unit: str, pair: ObjectPair) -> Tallied:
        labelled = labels_count(unit, pair, self.class_aware)
        active, abstained = at_operating_point(unit, pair, self.score_min)
        place = places(pair, labelled=both_labelled(pair))
        sheet = Sheet(place.cells)
        sheet.count("below_score_min", place.prediction[abstained])
        if pair.unit_of_length != "m":
            sheet.count(f"unit@{pair.unit_of_length}", place.prediction)
        use_a = inside(pair.reference, pair.reference_inside)
        use_b = inside(pair.prediction, pair.prediction_inside)
        every_b = np.ones(len(use_b), dtype=bool) if active is None else active
        share_a = _add_lines(
            sheet,
            place.reference,
            pair.reference,
            pair.prediction.take(every_b),
            use_a,
            labelled,
            self.buffer_m,
            "reference",
        )
        share_b = _add_lines(
            sheet,
            place.prediction,
            pair.prediction,
            pair.reference,
            use_b & every_b,
            labelled,
            self.buffer_m,
            "prediction",
        )
        add_validity(sheet, pair)
        return Tallied(sheet.tallies(), _line_records(unit, pair, place, share_a, share_b))


def _add_lines(
    sheet: Sheet,
    cell: IntArray,
    side: Objects,
    other: Objects,
    use: NDArray[np.bool_],
    labelled: bool,
    buffer_m: float,
    name: str,
) -> FloatArray:
    """Add lengths of one side, whole and within the buffer of the other: the share within, NaN where not counted."""
    from geoeval.geometry.boundary import lines_rms, lines_within

    length = np.asarray(shapely.length(side.geometry), dtype=np.float64)
    within, squares, along = np.zeros(len(side)), np.zeros(len(side)), np.zeros(len(side))
    for mine, theirs in _classes(side, other, labelled):
        if len(mine) and len(theirs):
            lines, others = side.geometry[mine], other.geometry[theirs]
            within[mine] = lines_within(lines, others, buffer_m)
            if name == "prediction":
                squares[mine], along[mine] = lines_rms(lines, others, buffer_m)
    rows = np.flatnonzero(use)
    sheet.count("lines", cell[rows])
    sheet.count(f"{name}_lines", cell[rows])
    sheet.real(f"{name}_length", cell[rows], length[rows])
    sheet.real(f"{name}_matched", cell[rows], np.minimum(within, length)[rows])
    if name == "prediction":
        sheet.real("square_distance", cell[rows], squares[rows])
        sheet.real("square_length", cell[rows], along[rows])
    share = np.full(len(side), np.nan)
    long = use & (length > 0)
    share[long] = np.round(np.minimum(within, length)[long] / length[long], 9)
    return share


def _classes(side: Objects, other: Objects, labelled: bool) -> list[tuple[IntArray, IntArray]]:
    if not labelled or side.label is None or other.label is None:
        return [(np.arange(len(side)), np.arange(len(other)))]
    return [
        (np.flatnonzero(side.label == label), np.flatnonzero(other.label == label))
        for label in sorted(set(side.label.tolist()))
    ]


def _line_records(unit: str, pair: ObjectPair, place: Places, share_a: FloatArray, share_b: FloatArray) -> Records:
    """One row per reference line, found or missed, and one per predicted line that lies away from all references."""
    a = np.flatnonzero(~np.isnan(share_a))
    b = np.flatnonzero(share_b < FOUND_SHARE)
    blank_a, blank_b = np.full(len(a), "", dtype=object), np.full(len(b), "", dtype=object)
    score = np.full(len(b), np.nan) if pair.prediction.score is None else pair.prediction.score[b]

    def text(values: ObjectArray | None, at: IntArray, blank: ObjectArray) -> ObjectArray:
        return blank if values is None else values[at]

    return Records.of(
        len(a) + len(b),
        unit=unit,
        outcome=np.concatenate(
            [np.where(share_a[a] >= FOUND_SHARE, "tp", "fn").astype(object), np.full(len(b), "fp", dtype=object)]
        ),
        reference_id=np.concatenate([pair.reference.id[a], blank_b]),
        prediction_id=np.concatenate([blank_a, pair.prediction.id[b]]),
        reference_label=np.concatenate([text(pair.reference.label, a, blank_a), blank_b]),
        prediction_label=np.concatenate([blank_a, text(pair.prediction.label, b, blank_b)]),
        similarity=np.concatenate([share_a[a], share_b[b]]),
        score=np.concatenate([np.full(len(a), np.nan), score]),
        cluster=place.clusters(np.concatenate([place.reference[a], place.prediction[b]])),
        strata=place.strata(np.concatenate([place.reference[a], place.prediction[b]])),
        geometry=np.concatenate([pair.reference.geometry[a], pair.prediction.geometry[b]]),
    )


def _line_quantities(totals: Totals) -> dict[str, Quantity]:
    of_a, of_b = totals.real("reference_length"), totals.real("prediction_length")
    in_a, in_b = totals.real("reference_matched"), totals.real("prediction_matched")
    n_a, n_b = totals["reference_lines"], totals["prediction_lines"]
    values = (
        ratio_of(in_a, of_a, n_a),
        ratio_of(in_b, of_b, n_b),
        ratio_of(in_b, of_b + of_a - in_a, n_a + n_b),
        _rms(totals, n_b),
    )
    return dict(zip(_LINE_KEYS, values, strict=True))


def _rms(totals: Totals, n: IntArray) -> Scalar:
    squares = ratio_of(totals.real("square_distance"), totals.real("square_length"), n)
    return defined(np.sqrt(np.asarray(squares.value, dtype=np.float64)), n, length_unit(totals))


def _add_offsets(sheet: Sheet, place: Places, pair: ObjectPair, result: Outcomes) -> None:
    """Prediction minus reference of every hit, per axis and radially."""
    there = ~np.isnan(result.similarity)
    at = place.reference[result.reference[there]]
    a = shapely.centroid(pair.reference.geometry[result.reference[there]])
    b = shapely.centroid(pair.prediction.geometry[result.prediction[there]])
    dx, dy = np.round(shapely.get_x(b) - shapely.get_x(a), 9), np.round(shapely.get_y(b) - shapely.get_y(a), 9)
    sheet.count("measured", at)
    if pair.unit_of_length != "m":
        sheet.count(f"unit@{pair.unit_of_length}", at)
    for name, values in (("dx", dx), ("dy", dy), ("dx2", dx * dx), ("dy2", dy * dy)):
        sheet.real(name, at, values)
    sheet.rows("offset", at, np.round(np.hypot(dx, dy), 9), dx, dy)


def _point_quantities(totals: Totals) -> dict[str, Quantity]:
    return {
        **object_counts(totals),
        "rmse": _root(totals, "dx2", "dy2"),
        "bias_x": mean(totals, "dx", "measured", length_unit(totals)),
        "bias_y": mean(totals, "dy", "measured", length_unit(totals)),
    }


def _root(totals: Totals, *names: str) -> Scalar:
    n = totals["measured"]
    top = np.sum([totals.real(name) for name in names], axis=0)
    squares = ratio_of(top, np.asarray(n, dtype=np.float64), n)
    return defined(np.sqrt(np.asarray(squares.value, dtype=np.float64)), n, length_unit(totals))


def _radial(totals: Totals, share: float) -> Scalar:
    return _quantile(totals, 0, share)


def _quantile(totals: Totals, column: int, share: float) -> Scalar:
    from geoeval.stats.ranking import quantile_redraws

    rows = totals.rows.get("offset")
    if rows is None:
        return missing(totals, "undefined_ratio", totals["measured"], length_unit(totals))
    return defined(quantile_redraws(rows, column, share), totals["measured"], length_unit(totals))
