"""Change: events with a kind, a place and perhaps a date, against reference events.

Compared      one-to-one; a pair needs equal kind, spatial similarity (points: within a distance), and where a
              tolerance is declared, dates that lie within it. With ``assignment = "id"`` events are joined by key and
              geometry is only measured.
Conventions   date error = prediction minus reference, in years or days as the dates are; a tolerance is inclusive; an
              event without a date cannot meet a declared tolerance; without a kind all events are of one kind,
              ``change``.
Quantities    precision and recall (proportions), F1, overall and per kind; the F1 of the worst kind that the reference
              has; bias, mean absolute error and exact share (proportion) of the dates of matched pairs.
Differs       from accuracies over a whole time series: places where nothing ever changed are no events, and a series
              without events scores null, not 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.errors import ConfigError, InputError
from geoeval.layers import ObjectPair, Objects
from geoeval.ledger import Tallied
from geoeval.model import FloatArray, IntArray, Proportion, Quantity, Scalar, Unit
from geoeval.objects.cells import Places, Sheet, encode, groups, places
from geoeval.objects.declared import check_choice, check_distance, check_share
from geoeval.objects.diagnosis import count_errors, error_counts, error_types
from geoeval.objects.figures import mean, missing, object_counts
from geoeval.objects.pairing import (
    ASSIGNMENTS,
    BACKGROUND_IOU,
    Candidates,
    Outcomes,
    at_operating_point,
    candidates,
    count_outcomes,
    geometry_kind,
    match,
    outcomes,
    records,
    without_scores,
)
from geoeval.options import Assignment
from geoeval.stats.counts import Counts, f1
from geoeval.stats.tally import Totals

#: The kind of all events where no kinds are declared.
CHANGE = "change"


@dataclass(frozen=True, slots=True)
class Change:
    """Events against reference events, with their dates.

    Parameters
    ----------
    iou
        Least intersection over union of a pair of polygons, inclusive.
    assignment
        ``score``, ``similarity``, ``optimal`` or ``id``.
    date_tolerance
        Greatest difference of the dates of a pair, in their own unit, inclusive; None sets no temporal condition.
    score_min
        Operating point: predictions below it abstain. None: all count.
    max_distance_m
        Greatest distance of a pair, where events are points or lines.

    Examples
    --------
    >>> Change(date_tolerance=-1)
    Traceback (most recent call last):
    geoeval.errors.ConfigError: date_tolerance must be at least 0, got -1
    """

    iou: float = 0.5
    assignment: Assignment = "optimal"
    date_tolerance: float | None = None
    score_min: float | None = None
    max_distance_m: float = 5.0

    def __post_init__(self) -> None:
        check_share("iou", self.iou)
        check_share("score_min", self.score_min, zero=True)
        check_choice("assignment", self.assignment, ASSIGNMENTS)
        check_distance("max_distance_m", self.max_distance_m)
        if self.date_tolerance is not None and not self.date_tolerance >= 0:
            raise ConfigError(f"date_tolerance must be at least 0, got {self.date_tolerance!r}")

    @property
    def name(self) -> str:
        """Evaluator and its number, which goes up when results may change."""
        return "change/1"

    @property
    def family(self) -> str:
        """Family of the metric contract."""
        return "change"

    def tally(self, unit: Unit[ObjectPair]) -> Tallied:
        """Match the events of one unit and count them in their cells."""
        pair, has_kinds = _with_kinds(unit.load())
        geometry = geometry_kind(unit.id, pair)
        dates = _dates(unit.id, pair)
        if self.date_tolerance is not None and dates is None and len(pair.reference) and len(pair.prediction):
            raise InputError(
                f"unit {unit.id!r}: date_tolerance = {self.date_tolerance!r} needs dates on both sides, found none in "
                f"{pair.reference.source!r} or {pair.prediction.source!r}. Name the date column of each side."
            )
        assignment, findings = without_scores(unit.id, pair, self.assignment)
        active, abstained = at_operating_point(unit.id, pair, self.score_min)
        place = places(pair, labelled=has_kinds)
        sheet = Sheet(place.cells)
        floor = 0.0 if assignment == "id" else min(BACKGROUND_IOU, self.iou)
        found = candidates(pair, geometry, floor=floor, max_distance=self.max_distance_m)
        threshold = self.iou if geometry in ("polygon", "") else -self.max_distance_m
        matched = match(
            unit.id,
            pair,
            found if assignment == "id" else self._in_time(found, pair, dates),
            threshold=threshold,
            assignment=assignment,
            labelled=True,
            active=active,
        )
        if assignment == "id" and self.date_tolerance is not None and dates is not None:
            keep = _near(dates, matched[0], matched[1], self.date_tolerance)
            matched = (matched[0][keep], matched[1][keep], matched[2][keep], matched[3])
        result = outcomes(pair, matched, active)
        count_outcomes(sheet, place, result)
        sheet.count("below_score_min", place.prediction[abstained])
        _count_kinds(sheet, place, pair, result)
        if dates is not None:
            _add_dates(sheet, place, result, dates)
        errors = None
        if geometry == "polygon":
            errors = error_types(pair, found, matched, result, threshold=self.iou, labelled=True, active=active)
            count_errors(sheet, place, result, errors)
        return Tallied(sheet.tallies(), records(unit.id, pair, place, result, errors), findings)

    def quantities(self, totals: Totals) -> Mapping[str, Quantity]:
        """Counts, precision, recall and F1, the worst kind, and the error of dates."""
        units = totals.names("date_unit@")
        unit = units[0] if len(units) == 1 else "1"
        if not units:
            none = {name: missing(totals, "not_applicable") for name in ("date_bias", "date_mae")}
            exact = Proportion(totals["date_exact"], totals["dated"], reason="not_applicable")
            return {**object_counts(totals), "worst_kind_f1": _worst(totals), **none, "date_exact": exact}
        return {
            **object_counts(totals),
            "worst_kind_f1": _worst(totals),
            "date_bias": mean(totals, "date_error", "dated", unit),
            "date_mae": mean(totals, "date_error_abs", "dated", unit),
            "date_exact": Proportion(totals["date_exact"], totals["dated"]),
        }

    def ranked(self, totals: Totals) -> Mapping[str, Quantity]:  # noqa: ARG002 - every figure is a sum
        """Nothing: every figure is read off sums."""
        return {}

    def class_quantities(self, totals: Totals) -> Mapping[str, Mapping[str, Quantity]]:  # noqa: ARG002 - cells carry kinds
        """Nothing: cells carry the kind."""
        return {}

    def extras(self, totals: Totals) -> dict[str, Any]:
        """Error types, and kinds that only predictions have."""
        kinds = sorted({*totals.names("tp@"), *totals.names("fp@"), *totals.names("fn@")})
        only = [kind for kind in kinds if not np.any(totals[f"tp@{kind}"] + totals[f"fn@{kind}"])]
        return {
            "error_types": error_counts(totals),
            "excluded_classes": tuple({"label": kind, "predicted": int(totals[f"fp@{kind}"][0])} for kind in only),
            "abstentions": {"below_score_min": int(totals["below_score_min"][0])},
            "ignored": int(totals["ignored"][0]),
        }

    def _in_time(self, found: Candidates, pair: ObjectPair, dates: _Dates | None) -> Candidates:
        if self.date_tolerance is None or dates is None:
            return found
        near = _near(dates, found.reference, found.prediction, self.date_tolerance)
        if pair.reference.ignore is not None:
            near |= pair.reference.ignore[found.reference]
        return found.take(near)


@dataclass(frozen=True, slots=True, eq=False)
class _Dates:
    """Dates of both sides as numbers, NaN where there is none, and their unit."""

    reference: FloatArray
    prediction: FloatArray
    unit: str


def _with_kinds(pair: ObjectPair) -> tuple[ObjectPair, bool]:
    """The pair with kinds as labels, and whether kinds were declared."""
    sides = (pair.reference, pair.prediction)
    has = any("kind" in side.fields for side in sides) and all("kind" in side.fields or not len(side) for side in sides)
    of = [_kinds(side, has) for side in sides]
    return replace(pair, reference=of[0], prediction=of[1]), has


def _kinds(side: Objects, has: bool) -> Objects:
    kinds = np.full(len(side), CHANGE, dtype=object)
    if has and len(side):
        kinds[:] = [str(kind) for kind in side.fields["kind"].tolist()]
    return replace(side, label=kinds)


def _dates(unit: str, pair: ObjectPair) -> _Dates | None:
    """Dates of both sides: years as they are, calendar dates as days since 1970.

    Raises
    ------
    InputError
        Where one side dates by year and the other by day.
    """
    sides = (pair.reference, pair.prediction)
    if not all("date" in side.fields for side in sides):
        return None
    known = [_as_numbers(side) for side in sides]
    units = sorted({which for values, which in known if len(values)})
    if len(units) > 1:
        raise InputError(
            f"unit {unit!r}: expected dates of one kind, found {known[0][1]!r} in {pair.reference.source!r} and "
            f"{known[1][1]!r} in {pair.prediction.source!r}. Give both as years or both as dates."
        )
    return _Dates(known[0][0], known[1][0], units[0] if units else "year")


def _as_numbers(side: Objects) -> tuple[FloatArray, str]:
    values = side.fields["date"]
    if values.dtype.kind == "M":
        days = (values - np.datetime64(0, "D")) / np.timedelta64(1, "D")
        return np.asarray(days, dtype=np.float64), "d"
    unit = side.fields.get("date_unit")
    return np.asarray(values, dtype=np.float64), str(unit[0]) if unit is not None and len(unit) else "year"


def _near(dates: _Dates, reference: IntArray, prediction: IntArray, tolerance: float) -> NDArray[np.bool_]:
    """Pairs whose dates lie within the tolerance; an unknown date lies nowhere."""
    apart = np.abs(np.round(dates.prediction[prediction] - dates.reference[reference], 9))
    return np.asarray(apart <= tolerance, dtype=bool)


def _count_kinds(sheet: Sheet, place: Places, pair: ObjectPair, result: Outcomes) -> None:
    """Add ``tp@kind``, ``fp@kind`` and ``fn@kind``, for figures over all kinds."""
    for name, side, cell, at in (
        ("tp", pair.reference, place.reference, result.reference),
        ("fp", pair.prediction, place.prediction, result.fp),
        ("fn", pair.reference, place.reference, result.fn),
    ):
        if side.label is None:
            continue
        code, kinds = encode(side.label[at].tolist())
        for which, members in groups(code):
            sheet.count(f"{name}@{kinds[which]}", cell[at[members]])


def _add_dates(sheet: Sheet, place: Places, result: Outcomes, dates: _Dates) -> None:
    """Add the error of every pair with a date on both sides: prediction minus reference."""
    error = np.round(dates.prediction[result.prediction] - dates.reference[result.reference], 9)
    known = ~np.isnan(error)
    at, error = place.reference[result.reference][known], error[known]
    sheet.count("dated", at)
    sheet.count(f"date_unit@{dates.unit}", at)
    sheet.real("date_error", at, error)
    sheet.real("date_error_abs", at, np.abs(error))
    sheet.count("date_exact", at[error == 0])


def _worst(totals: Totals) -> Scalar:
    """F1 of the kind that has the lowest, in every total; one that only predictions have counts as 0."""
    worst = np.full(totals.size, np.nan)
    n = np.zeros(totals.size, dtype=np.int64)
    for kind in sorted({*totals.names("tp@"), *totals.names("fp@"), *totals.names("fn@")}):
        counts = Counts(totals[f"tp@{kind}"], totals[f"fp@{kind}"], totals[f"fn@{kind}"])
        worst = np.fmin(worst, np.asarray(f1(counts).value, dtype=np.float64))
        n = n + np.asarray(counts.tp + counts.fp + counts.fn)
    return Scalar(worst, n=n, reason="undefined_ratio" if np.all(np.isnan(worst)) else None)
