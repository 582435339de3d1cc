"""Ranked detections: the flags that average precision, calibration and coverage-risk are read from.

Every prediction leaves one row a class: its score, and for each of the ten thresholds of intersection over union
whether it is a hit or an invention there. A row in which both are 0 was absorbed. The flags of one prediction may
stand in several cells, since a hit counts in the cell of the reference that it found, and that can differ from
threshold to threshold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from geoeval.layers import ObjectPair
from geoeval.model import FloatArray, IntArray
from geoeval.objects.cells import Places, Sheet, encode, groups, ranks
from geoeval.objects.pairing import Candidates, inside

#: Column of the score in every row; the hits, then the inventions at each threshold follow.
SCORE = 0


@dataclass(frozen=True, slots=True, eq=False)
class Flags:
    """What each prediction is at each threshold (t, n): a hit on ``taken`` (−1: on none), an invention, or neither."""

    taken: IntArray
    hit: NDArray[np.bool_]
    invention: NDArray[np.bool_]


def score_order(pair: ObjectPair, *, by_row: bool) -> IntArray:
    """Predictions by descending score, ties by stable identifier or by file order (n,).

    Raises
    ------
    ValueError
        Where predictions have no score.
    """
    if pair.prediction.score is None:
        raise ValueError("predictions without scores have no order")
    tie = pair.prediction.row if by_row else ranks(pair.prediction.id)
    score = pair.prediction.score if by_row else np.round(pair.prediction.score, 9)
    return np.lexsort((tie, -score)).astype(np.int64)


def first_of_each_class(pair: ObjectPair, limit: int, *, labelled: bool, by_row: bool) -> NDArray[np.bool_]:
    """The ``limit`` best-scored predictions of each class (of all, where labels do not count), as a mask (n,)."""
    order = score_order(pair, by_row=by_row)
    keep = np.zeros(len(order), dtype=bool)
    label = pair.prediction.label if labelled else None
    code = np.zeros(len(order), dtype=np.int64) if label is None else encode(label[order].tolist())[0]
    for _, members in groups(code):
        keep[order[members[:limit]]] = True
    return keep


def admissible(pair: ObjectPair, found: Candidates, *, labelled: bool) -> Candidates:
    """The candidate pairs of equal label, or all of them where labels do not count."""
    if not labelled or pair.reference.label is None or pair.prediction.label is None:
        return found
    label = pair.reference.label[found.reference]
    same = np.asarray(label == pair.prediction.label[found.prediction], dtype=bool)
    if pair.reference.ignore is not None:
        # A region without a label absorbs every class.
        blank = np.array([one is None or one == "" for one in label.tolist()], dtype=bool)
        same |= pair.reference.ignore[found.reference] & blank
    return found.take(same)


def flags(
    pair: ObjectPair,
    found: Candidates,
    *,
    thresholds: FloatArray,
    kept: NDArray[np.bool_],
    by_row: bool = False,
    area: tuple[FloatArray, FloatArray] | None = None,
    area_range: tuple[float, float] | None = None,
) -> Flags:
    """Match by score at each threshold.

    Parameters
    ----------
    found
        Admissible pairs.
    thresholds : (t,)
        Inclusive least similarities.
    kept : (n,)
        Predictions that take part: those within a declared cap.
    by_row
        Break ties as pycocotools does: predictions by file order, references by the last.
    area, area_range
        Areas of references and predictions, and the range (both ends inclusive) of objects that count; what lies
        outside is neither missed nor invented.
    """
    from geoeval.geometry.ranked import ranked_matches

    side, other = pair.reference, pair.prediction
    crowd = np.zeros(len(side), dtype=bool) if side.ignore is None else side.ignore
    ignored, unwanted = crowd, np.zeros(len(other), dtype=bool)
    if area is not None and area_range is not None:
        low, high = area_range
        ignored = crowd | (area[0] < low) | (area[0] > high)
        unwanted = (area[1] < low) | (area[1] > high)
    order = score_order(pair, by_row=by_row)
    pairs = found.take(kept[found.prediction])
    taken = ranked_matches(
        order,
        pairs.reference,
        pairs.prediction,
        np.where(crowd[pairs.reference], pairs.cover, pairs.similarity),
        rank=side.row if by_row else -ranks(side.id),
        ignored=ignored,
        crowd=crowd,
        thresholds=thresholds,
    )
    free = (taken < 0) & (kept & ~unwanted & inside(other, pair.prediction_inside))[None, :]
    counted = ~ignored & inside(side, pair.reference_inside)
    hit = taken >= 0
    hit[hit] = counted[taken[hit]]
    return Flags(taken, hit, free)


def counted_references(
    pair: ObjectPair, area: FloatArray | None = None, area_range: tuple[float, float] | None = None
) -> IntArray:
    """Positions of the references that make a hit or a miss."""
    counted = inside(pair.reference, pair.reference_inside).copy()
    if pair.reference.ignore is not None:
        counted &= ~pair.reference.ignore
    if area is not None and area_range is not None:
        counted &= (area >= area_range[0]) & (area <= area_range[1])
    return np.flatnonzero(counted)


def add_ranked(
    sheet: Sheet, place: Places, pair: ObjectPair, found: Flags, reference: IntArray, name: str, *, labelled: bool
) -> None:
    """Add the rows ``<name>@<class>`` and the counts ``references<rest of name>@<class>`` to their cells.

    Parameters
    ----------
    reference
        Positions of the references that count.
    name
        ``"ap"``, ``"ap[small]"`` for an area range, or ``"apd"`` for points by distance.
    labelled
        Whether classes are told apart; else all are the one class ``""``.
    """
    score = pair.prediction.score
    if score is None:
        raise ValueError("predictions without scores cannot be ranked")
    count_name = references_name(name)
    for label, members in _by_label(place, place.reference[reference], labelled):
        sheet.count(f"{count_name}@{label}", place.reference[reference][members])
    level, who = np.nonzero(found.hit | found.invention)
    if not len(who):
        return
    cell = place.prediction[who]
    was_hit = found.hit[level, who]
    cell[was_hit] = place.reference[found.taken[level, who][was_hit]]
    key, row = np.unique(who * len(place.cells) + cell, return_inverse=True)
    table = np.zeros((len(key), 1 + 2 * len(found.hit)))
    who_of, cell_of = key // len(place.cells), key % len(place.cells)
    table[:, SCORE] = score[who_of]
    table[row.reshape(-1), np.where(was_hit, 1, 1 + len(found.hit)) + level] = 1.0
    for label, members in _by_label(place, cell_of, labelled):
        sheet.rows(f"{name}@{label}", cell_of[members], *table[members].T)


def add_seen(
    sheet: Sheet, place: Places, pair: ObjectPair, found: Flags, similarity: FloatArray, *, labelled: bool
) -> None:
    """Add ``seen@<class>`` (score, correct, wrong, overlap) of all predictions that are not absorbed.

    Parameters
    ----------
    found
        Flags, of which those at the first threshold are used.
    similarity : (n,)
        Overlap of each prediction with the reference that it takes there; anything where it takes none.
    """
    score = pair.prediction.score
    if score is None:
        raise ValueError("predictions without scores cannot be calibrated")
    hit, who = found.hit[0], np.flatnonzero(found.hit[0] | found.invention[0])
    cell = place.prediction.copy()
    cell[hit] = place.reference[found.taken[0][hit]]
    overlap = np.where(hit, np.round(similarity, 9), 0.0)
    sheet.count("ranked", cell[who])
    for label, members in _by_label(place, cell[who], labelled):
        rows = who[members]
        sheet.rows(f"seen@{label}", cell[rows], score[rows], hit[rows], ~hit[rows], overlap[rows])


def references_name(name: str) -> str:
    """The sum that counts the references of some rows.

    Examples
    --------
    >>> references_name("ap[small]")
    'references[small]'
    """
    return "references" + name.removeprefix("ap")


def _by_label(place: Places, cell: IntArray, labelled: bool) -> list[tuple[str, IntArray]]:
    of_cell, labels = encode(one.label if labelled else "" for one in place.cells)
    return [(labels[which], members) for which, members in groups(of_cell[cell])]
