"""From two layers to hits, misses and inventions: what every object family does first.

Admissible pairs come first (similarity, label), then the assignment; the geometry kernels do the work. Only objects
inside the area of interest are counted, but matches may reach across its edge: an outside reference that is found is no
hit, and the prediction that found it is no invention.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from geoeval.errors import InputError
from geoeval.layers import ObjectPair, Objects
from geoeval.model import Finding, FloatArray, IntArray, ObjectArray, Records
from geoeval.objects.cells import Places, Sheet, ranks
from geoeval.options import Assignment

ASSIGNMENTS: tuple[Assignment, ...] = ("score", "similarity", "optimal", "id")

#: Below this overlap an invention is not the misplaced find of a reference (TIDE's background threshold).
BACKGROUND_IOU = 0.1

_POINT, _LINE, _POLYGON = "point", "line", "polygon"
_KIND = np.array([_POINT, _LINE, _LINE, _POLYGON, _POINT, _LINE, _POLYGON, "collection"], dtype=object)


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Pairs that touch at all: positions, similarity (IoU, or minus the distance), share of the prediction covered."""

    reference: IntArray
    prediction: IntArray
    similarity: FloatArray
    cover: FloatArray

    def take(self, rows: NDArray[Any]) -> Candidates:
        """The pairs at these positions, or where this mask is true."""
        return Candidates(self.reference[rows], self.prediction[rows], self.similarity[rows], self.cover[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """What became of every object that counts: hits (aligned), inventions, misses, absorbed predictions; positions."""

    reference: IntArray
    prediction: IntArray
    similarity: FloatArray
    fp: IntArray
    fn: IntArray
    ignored: IntArray

    def prediction_places(self, place: Places) -> IntArray:
        """The cell of every prediction (n,): of the reference that it found, else its own."""
        out = place.prediction.copy()
        out[self.prediction] = place.reference[self.reference]
        return out


def geometry_kind(unit: str, pair: ObjectPair) -> str:
    """``polygon``, ``line`` or ``point``, or ``""`` where neither side has a geometry.

    Raises
    ------
    InputError
        Where a side mixes kinds, or the sides differ.
    """
    found = {name: sorted(_kinds(side.geometry)) for name, side in _sides(pair)}
    every = sorted({kind for kinds in found.values() for kind in kinds})
    if len(every) > 1 or every == ["collection"]:
        told = "; ".join(f"the {name} has {', '.join(kinds) or 'none'}" for name, kinds in found.items())
        raise InputError(
            f"unit {unit!r}: expected geometries of one kind on both sides, found: {told}. "
            "Split the layers by geometry type, or filter them with `where`."
        )
    return every[0] if every else ""


def labels_count(unit: str, pair: ObjectPair, class_aware: bool | None) -> bool:
    """Whether only equal labels can pair: as declared, else wherever both sides have labels.

    Raises
    ------
    InputError
        Where it is declared and a side has no labels.
    """
    missing = [f"{name} {side.source!r}" for name, side in _sides(pair) if side.label is None and len(side)]
    if class_aware and missing:
        raise InputError(
            f"unit {unit!r}: class_aware = true needs labels on both sides, found none in {' and '.join(missing)}. "
            "Name the label column of each side, or drop class_aware."
        )
    return not missing if class_aware is None else class_aware


def both_labelled(pair: ObjectPair) -> bool:
    """Whether cells can carry class labels; a side without features cannot contradict."""
    sides = [side for _, side in _sides(pair)]
    return all(side.label is not None or not len(side) for side in sides) and any(
        side.label is not None for side in sides
    )


def candidates(pair: ObjectPair, kind: str, *, floor: float, max_distance: float) -> Candidates:
    """All pairs of both sides that could matter.

    Parameters
    ----------
    kind
        From :func:`geometry_kind`: polygons overlap, everything else is near.
    floor
        Least IoU of a pair with an ordinary reference; every overlap with an ignore region is kept.
    max_distance
        Greatest distance of points and lines.
    """
    at = [np.flatnonzero(shapely.is_geometry(side.geometry)) for _, side in _sides(pair)]
    if kind == "" or not len(at[0]) or not len(at[1]):
        none = np.zeros(0, dtype=np.int64)
        return Candidates(none, none, np.zeros(0), np.zeros(0))
    a, b = pair.reference.geometry[at[0]], pair.prediction.geometry[at[1]]
    if kind != _POLYGON:
        from geoeval.geometry.nearby import pairs_within

        i, j, distance = pairs_within(a, b, max_distance)
        near = -np.round(distance, 9)
        return Candidates(at[0][i], at[1][j], near, near)
    from geoeval.geometry.overlap import overlaps

    absorbing = pair.reference.ignore is not None and bool(np.any(pair.reference.ignore))
    found = overlaps(a, b, min_iou=0.0 if absorbing else floor)
    cover = np.round(found.area / found.prediction_area, 9)
    out = Candidates(at[0][found.reference], at[1][found.prediction], found.iou, cover)
    if not absorbing or pair.reference.ignore is None:
        return out
    return out.take(pair.reference.ignore[out.reference] | (out.similarity >= floor))


def match(
    unit: str,
    pair: ObjectPair,
    found: Candidates,
    *,
    threshold: float,
    assignment: Assignment,
    labelled: bool,
    active: NDArray[np.bool_] | None = None,
    by_row: bool = False,
) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
    """One-to-one pairs by the declared rule: references, predictions, similarities, and absorbed predictions.

    Parameters
    ----------
    threshold
        Least similarity, inclusive; for distances minus the greatest distance.
    labelled
        Whether only equal labels can pair.
    active
        Predictions at the operating point; None means all.
    by_row
        Break ties by file order instead of stable identifiers.
    """
    if assignment == "id":
        return _match_by_id(unit, pair, found, labelled=labelled, active=active)
    from geoeval.geometry.match import one_to_one

    kept = found if active is None else found.take(active[found.prediction])
    side, other = pair.reference, pair.prediction
    labelled = labelled and side.label is not None and other.label is not None
    result = one_to_one(
        len(side),
        len(other),
        kept.reference,
        kept.prediction,
        kept.similarity,
        threshold=threshold,
        assignment=assignment,
        score=other.score,
        reference_label=side.label if labelled else None,
        prediction_label=other.label if labelled else None,
        reference_rank=-side.row if by_row else ranks(side.id),
        prediction_rank=other.row if by_row else ranks(other.id),
        ignore=side.ignore,
        ignore_similarity=kept.cover,
    )
    return result.reference, result.prediction, result.similarity, result.ignored


def outcomes(
    pair: ObjectPair,
    matched: tuple[IntArray, IntArray, FloatArray, IntArray],
    active: NDArray[np.bool_] | None = None,
) -> Outcomes:
    """Hits, inventions, misses and absorbed predictions of a matching, as far as they count."""
    reference, prediction, similarity, absorbed = matched
    counted = inside(pair.reference, pair.reference_inside)
    if pair.reference.ignore is not None:
        counted = counted & ~pair.reference.ignore
    within = inside(pair.prediction, pair.prediction_inside)
    free = within.copy() if active is None else within & active
    free[prediction] = False
    free[absorbed] = False
    missed = counted.copy()
    missed[reference] = False
    hit = counted[reference]
    return Outcomes(
        reference[hit],
        prediction[hit],
        similarity[hit],
        np.flatnonzero(free),
        np.flatnonzero(missed),
        absorbed[within[absorbed]],
    )


def inside(side: Objects, mask: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    """Which features lie in the area of interest; all of them where none was declared."""
    return np.ones(len(side), dtype=bool) if mask is None else mask


def count_outcomes(sheet: Sheet, place: Places, found: Outcomes, *, kind: str = "") -> None:
    """Add ``tp``, ``fp``, ``fn`` and ``ignored`` to their cells, and ``kind@...`` for every object behind them."""
    hit, invention, miss = place.reference[found.reference], place.prediction[found.fp], place.reference[found.fn]
    sheet.count("tp", hit)
    sheet.count("fp", invention)
    sheet.count("fn", miss)
    sheet.count("ignored", place.prediction[found.ignored])
    if kind:
        sheet.count(f"kind@{kind}", np.concatenate([hit, invention, miss]))


def records(
    unit: str,
    pair: ObjectPair,
    place: Places,
    found: Outcomes,
    errors: tuple[ObjectArray, ObjectArray] | None = None,
) -> Records:
    """One row per hit, invention, miss and absorbed prediction; ``errors`` types the inventions and the misses."""
    reference = np.concatenate([found.reference, _none(found.fp), found.fn, _none(found.ignored)])
    prediction = np.concatenate([found.prediction, found.fp, _none(found.fn), found.ignored])
    sizes = [len(found.reference), len(found.fp), len(found.fn), len(found.ignored)]
    outcome = np.repeat(np.array(["tp", "fp", "fn", "ignored"], dtype=object), sizes)
    at = np.concatenate(
        [
            place.reference[found.reference],
            place.prediction[found.fp],
            place.reference[found.fn],
            place.prediction[found.ignored],
        ]
    )
    n = len(outcome)
    kind = np.full(n, "", dtype=object)
    if errors is not None:
        kind[sizes[0] : sizes[0] + sizes[1]] = errors[0]
        kind[sizes[0] + sizes[1] : sum(sizes[:3])] = errors[1]
    similarity = np.full(n, np.nan)
    similarity[: sizes[0]] = found.similarity
    ours = _of(pair.reference.geometry, reference, None)
    theirs = _of(pair.prediction.geometry, prediction, None)
    drawn = prediction >= 0
    score = np.full(n, np.nan)
    if pair.prediction.score is not None:
        score[drawn] = pair.prediction.score[prediction[drawn]]
    return Records.of(
        n,
        unit=unit,
        outcome=outcome,
        error_type=kind,
        reference_id=_of(pair.reference.id, reference, ""),
        prediction_id=_of(pair.prediction.id, prediction, ""),
        reference_label=_of(pair.reference.label, reference, ""),
        prediction_label=_of(pair.prediction.label, prediction, ""),
        similarity=similarity,
        score=score,
        cluster=place.clusters(at),
        strata=place.strata(at),
        geometry=np.where(drawn, theirs, ours),
        reference_geometry=ours,
        prediction_geometry=theirs,
    )


def without_scores(unit: str, pair: ObjectPair, assignment: Assignment) -> tuple[Assignment, tuple[Finding, ...]]:
    """Assignment by score falls back to ``optimal`` where predictions have none, and says so."""
    if assignment != "score" or pair.prediction.score is not None:
        return assignment, ()
    if not len(pair.prediction):
        return "optimal", ()
    said = Finding(
        "no-scores",
        "minor",
        # Not the unit: a thousand tiles of one side lack one and the same column.
        (pair.prediction.source or unit,),
        "assignment by score was asked for, and the predictions have no score column; they were assigned optimally",
        "name the score column, or declare assignment = 'optimal'",
    )
    return "optimal", (said,)


def at_operating_point(
    unit: str, pair: ObjectPair, score_min: float | None
) -> tuple[NDArray[np.bool_] | None, IntArray]:
    """Which predictions count at the operating point (None: all), and those that abstain by their score.

    Raises
    ------
    InputError
        Where an operating point is declared and predictions have no score.
    """
    none = np.zeros(0, dtype=np.int64)
    if score_min is None or not len(pair.prediction):
        return None, none
    if pair.prediction.score is None:
        raise InputError(
            f"unit {unit!r}: score_min = {score_min!r} needs a score for every prediction, found none in "
            f"{pair.prediction.source!r}. Name the score column, or drop score_min."
        )
    active = pair.prediction.score >= score_min
    return active, np.flatnonzero(~active & inside(pair.prediction, pair.prediction_inside))


def _match_by_id(
    unit: str, pair: ObjectPair, found: Candidates, *, labelled: bool, active: NDArray[np.bool_] | None
) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
    from geoeval.geometry.match import match_by_id

    for name, side in _sides(pair):
        if len(set(side.id.tolist())) != len(side):
            raise InputError(
                f"unit {unit!r}: assignment = 'id' needs each id once a side, and the {name} {side.source!r} repeats "
                "some. Declare the id column that is unique."
            )
    reference, prediction = match_by_id(pair.reference.id, pair.prediction.id)
    keep = np.ones(len(reference), dtype=bool)
    if labelled and pair.reference.label is not None and pair.prediction.label is not None:
        keep &= np.asarray(pair.reference.label[reference] == pair.prediction.label[prediction], dtype=bool)
    if active is not None:
        keep &= active[prediction]
    reference, prediction = reference[keep], prediction[keep]
    return reference, prediction, similarity_of(pair, found, reference, prediction), np.zeros(0, dtype=np.int64)


def similarity_of(pair: ObjectPair, found: Candidates, reference: IntArray, prediction: IntArray) -> FloatArray:
    """Similarity of given pairs; 0 where they do not touch, NaN where a side has no geometry."""
    width = max(1, len(pair.prediction))
    order = np.argsort(found.reference * width + found.prediction, kind="stable")
    keys = (found.reference * width + found.prediction)[order]
    wanted = reference * width + prediction
    at = np.searchsorted(keys, wanted)
    known = at < len(keys)
    known[known] = keys[at[known]] == wanted[known]
    out = np.zeros(len(reference))
    out[known] = found.similarity[order][at[known]]
    blank = shapely.is_missing(pair.reference.geometry[reference]) | shapely.is_missing(
        pair.prediction.geometry[prediction]
    )
    out[blank] = np.nan
    return out


def _sides(pair: ObjectPair) -> tuple[tuple[str, Objects], tuple[str, Objects]]:
    return (("reference", pair.reference), ("prediction", pair.prediction))


def _kinds(geometry: ObjectArray) -> set[str]:
    code = shapely.get_type_id(geometry)
    return set(_KIND[np.unique(code[code >= 0])].tolist())


def _none(like: IntArray) -> IntArray:
    return np.full(len(like), -1, dtype=np.int64)


def _of(values: NDArray[Any] | None, at: IntArray, blank: Any) -> ObjectArray:
    out = np.full(len(at), blank, dtype=object)
    if values is not None:
        there = at >= 0
        out[there] = values[at[there]]
    return out
