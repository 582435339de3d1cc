"""Why objects were missed or invented, and which class was taken for which: said beside the score, never part of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.layers import ObjectPair
from geoeval.model import FloatArray, IntArray, ObjectArray
from geoeval.objects.cells import Places, Sheet, encode, groups
from geoeval.objects.pairing import BACKGROUND_IOU, Candidates, Outcomes
from geoeval.stats.tally import Totals

_CONFUSION = "confusion@"


def error_types(
    pair: ObjectPair,
    found: Candidates,
    matched: tuple[IntArray, IntArray, FloatArray, IntArray],
    result: Outcomes,
    *,
    threshold: float,
    labelled: bool,
    active: NDArray[np.bool_] | None = None,
) -> tuple[ObjectArray, ObjectArray]:
    """Type of every invention and of every miss of ``result``, in its order.

    Types are ``localisation``, ``class``, ``both``, ``duplicate``, ``background`` and ``missed`` (TIDE).

    Parameters
    ----------
    found
        Candidate pairs of any label.
    matched
        What :func:`geoeval.objects.pairing.match` made of them.
    threshold
        Least similarity of a hit.
    active
        Predictions at the operating point; None means all.
    """
    from geoeval.geometry.match import Matching
    from geoeval.geometry.structure import error_types as types_of

    kept = found if active is None else found.take(active[found.prediction])
    types = types_of(
        len(pair.reference),
        len(pair.prediction),
        kept.reference,
        kept.prediction,
        kept.similarity,
        Matching(*matched),
        threshold=threshold,
        background=min(BACKGROUND_IOU, threshold),
        reference_label=pair.reference.label if labelled else None,
        prediction_label=pair.prediction.label if labelled else None,
        ignore=pair.reference.ignore,
    )
    return types.prediction[result.fp], types.reference[result.fn]


def count_errors(sheet: Sheet, place: Places, result: Outcomes, types: tuple[ObjectArray, ObjectArray]) -> None:
    """Add ``error@<type>`` for every invention and miss to their cells."""
    cell = np.concatenate([place.prediction[result.fp], place.reference[result.fn]])
    _count_each(
        sheet, cell, [f"error@{side}:{one}" for side, of in zip(("fp", "fn"), types, strict=True) for one in of]
    )


def error_counts(totals: Totals) -> dict[str, dict[str, int]]:
    """How many inventions (``fp``) and misses (``fn``) there are of each type."""
    out: dict[str, dict[str, int]] = {"fp": {}, "fn": {}}
    for name in totals.names("error@"):
        side, kind = name.split(":", 1)
        out[side][kind] = int(totals[f"error@{name}"][0])
    return out


def count_confusion(sheet: Sheet, place: Places, pair: ObjectPair, agnostic: Outcomes) -> None:
    """Add predicted × reference label of a matching that ignores labels; an end without a partner is background."""
    ends = zip(
        _ends(pair.prediction.label, agnostic.prediction, agnostic.fp, len(agnostic.fn), first=True),
        _ends(pair.reference.label, agnostic.reference, agnostic.fn, len(agnostic.fp), first=False),
        strict=True,
    )
    cell = np.concatenate(
        [place.reference[agnostic.reference], place.prediction[agnostic.fp], place.reference[agnostic.fn]]
    )
    code, known = encode(ends)
    for which, members in groups(code):
        sheet.count(_CONFUSION + json.dumps(known[which], ensure_ascii=False), cell[members])


def confusion_matrix(totals: Totals) -> Mapping[str, Any] | None:
    """Object confusion matrix: rows are predicted labels, columns reference labels, the last of each background.

    Returns
    -------
    Mapping or None
        ``labels``, ``rows``, ``columns`` and ``matrix``; None where no labels were compared.
    """
    counts = {tuple(json.loads(name)): int(totals[_CONFUSION + name][0]) for name in totals.names(_CONFUSION)}
    if not counts:
        return None
    labels = sorted({one for key in counts for one in key if one is not None})
    ends = [*labels, None]
    return {
        "labels": [*labels, "background"],
        "rows": "prediction",
        "columns": "reference",
        "matrix": [[counts.get((row, column), 0) for column in ends] for row in ends],
    }


def excluded_classes(totals: Totals) -> tuple[Mapping[str, Any], ...]:
    """Classes that only predictions have, and how often they were predicted: no mean over classes counts them."""
    counts = {tuple(json.loads(name)): int(totals[_CONFUSION + name][0]) for name in totals.names(_CONFUSION)}
    known = {reference for _, reference in counts}
    predicted: dict[str, int] = {}
    for (prediction, _), n in sorted(counts.items(), key=str):
        if prediction is not None and prediction not in known and n:
            predicted[prediction] = predicted.get(prediction, 0) + n
    return tuple({"label": label, "predicted": n} for label, n in sorted(predicted.items()))


def _ends(
    label: ObjectArray | None, paired: IntArray, single: IntArray, without: int, *, first: bool
) -> list[str | None]:
    """Labels of one end of all hits, then of all inventions and misses; None where that end is background."""
    blank: list[str | None] = [None] * without
    if label is None:
        return [None] * (len(paired) + len(single)) + blank
    alone = label[single].tolist()
    return [*label[paired].tolist(), *(alone + blank if first else blank + alone)]


def _count_each(sheet: Sheet, cell: IntArray, names: list[str]) -> None:
    code, known = encode(names)
    for which, members in groups(code):
        sheet.count(known[which], cell[members])
