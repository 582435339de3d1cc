"""What stands beside the one-to-one score: objects that were split or merged, and the kind of every error.

Neither changes a score. Where row houses are cut differently on both sides, one-to-one IoU measures the cutting, and
the reader must see it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoeval.geometry.match import Matching
from geoeval.model import FloatArray, IntArray, ObjectArray

#: Kinds of errors, in the order in which they explain a missed reference.
ERROR_TYPES = ("localisation", "class", "both", "duplicate", "background", "missed")

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """One-to-many relations between two layers; all positions ascending.

    Parameters
    ----------
    split_references
        References in each of which at least two predictions lie by at least half of their own area (1:n).
        Two full predictions of one object fulfil this as well; ``duplicate`` among the error types tells them apart.
    split_predictions
        Those predictions: the fragments.
    merged_references
        References that lie by at least half of their own area in a prediction in which another one does too (n:1).
    merging_predictions
        Those predictions.
    many_to_many
        Groups of references and predictions, at least two of each, that are connected by covering at least half of one
        another in either direction (n:m).
    """

    split_references: IntArray
    split_predictions: IntArray
    merged_references: IntArray
    merging_predictions: IntArray
    many_to_many: tuple[tuple[IntArray, IntArray], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ErrorTypes:
    """Kind of error of every object, ``""`` for hits, absorbed predictions and ignored references."""

    reference: ObjectArray
    prediction: ObjectArray


def structure(
    n_references: int,
    n_predictions: int,
    reference: ArrayLike,
    prediction: ArrayLike,
    reference_share: ArrayLike,
    prediction_share: ArrayLike,
    at_least: float = 0.5,
) -> Structure:
    """Splits, merges and tangles of two layers, by shares of area.

    Parameters
    ----------
    n_references, n_predictions
        How many objects each side has.
    reference, prediction
        (pairs,) positions of the objects that overlap.
    reference_share, prediction_share
        (pairs,) intersection over the reference's and over the prediction's area.
    at_least
        Share from which one object counts as lying in the other; equal is enough.

    References
    ----------
    .. [1] Rutzinger, Rottensteiner and Pfeifer 2009, A comparison of evaluation techniques for building extraction from
       airborne laser scanning.

    Examples
    --------
    Prediction 0 covers both halves of a double house:

    >>> found = structure(2, 1, [0, 1], [0, 0], [1.0, 1.0], [0.5, 0.5])
    >>> found.merged_references.tolist(), found.merging_predictions.tolist()
    ([0, 1], [0])
    """
    i = np.asarray(reference, dtype=np.int64).reshape(-1)
    j = np.asarray(prediction, dtype=np.int64).reshape(-1)
    least = np.round(at_least, 9)
    covered = np.round(np.asarray(reference_share, dtype=np.float64).reshape(-1), 9) >= least
    inside = np.round(np.asarray(prediction_share, dtype=np.float64).reshape(-1), 9) >= least
    split_references, split_predictions = _gathered(i[inside], j[inside], n_references)
    merging_predictions, merged_references = _gathered(j[covered], i[covered], n_predictions)
    linked = covered | inside
    return Structure(
        split_references,
        split_predictions,
        merged_references,
        merging_predictions,
        _tangles(i[linked], j[linked], n_references, n_predictions),
    )


def error_types(
    n_references: int,
    n_predictions: int,
    reference: ArrayLike,
    prediction: ArrayLike,
    similarity: ArrayLike,
    matching: Matching,
    *,
    threshold: float = 0.5,
    background: float = 0.1,
    reference_label: ObjectArray | None = None,
    prediction_label: ObjectArray | None = None,
    ignore: Mask | None = None,
) -> ErrorTypes:
    """Kind of every invention and every miss of a matching (TIDE).

    An invention is, by the first that holds: ``localisation`` (best reference of its class in [background, threshold)),
    ``class`` (another class at or above the threshold), ``duplicate`` (its class at or above the threshold, already
    taken), ``both`` (another class in [background, threshold)), ``background`` (nothing at or above that).

    A miss is ``localisation``, ``class`` or ``both`` where an invention overlaps it in that manner, else ``missed``.
    The TIDE toolbox explains a miss only by the invention's single best reference and never by ``both``, so it counts
    a few more as missed; the kinds of inventions agree.

    Parameters
    ----------
    n_references, n_predictions
        How many objects each side has.
    reference, prediction, similarity
        Candidate pairs of any class with a similarity of at least ``background``.
    matching
        What the matcher made of them.
    threshold, background
        Least similarity of a hit, and of an overlap that counts at all.
    reference_label, prediction_label
        Class labels; without them all objects are of one class.
    ignore
        (references,) True for regions that are not counted.

    References
    ----------
    .. [1] Bolya et al. 2020, TIDE: a general toolbox for identifying object detection errors.

    Examples
    --------
    >>> from geoeval.geometry.match import one_to_one
    >>> pairs = [0, 1], [0, 1], [0.9, 0.3]
    >>> kinds = error_types(2, 3, *pairs, one_to_one(2, 3, *pairs, threshold=0.5, assignment="optimal"))
    >>> kinds.prediction.tolist(), kinds.reference.tolist()
    (['', 'localisation', 'background'], ['', 'localisation'])
    """
    i = np.asarray(reference, dtype=np.int64).reshape(-1)
    j = np.asarray(prediction, dtype=np.int64).reshape(-1)
    ignored = np.zeros(n_references, dtype=np.bool_) if ignore is None else np.asarray(ignore, dtype=np.bool_)
    counted = ~ignored[i]
    i, j = i[counted], j[counted]
    near = np.round(np.asarray(similarity, dtype=np.float64).reshape(-1)[counted], 9)
    same = np.ones(len(i), dtype=np.bool_)
    if reference_label is not None and prediction_label is not None:
        same = np.asarray(reference_label[i] == prediction_label[j], dtype=np.bool_).reshape(len(i))
    invention = _left_over(n_predictions, matching.prediction, matching.ignored)
    miss = _left_over(n_references, matching.reference, np.flatnonzero(ignored))

    low, high = np.round(background, 9), np.round(threshold, 9)
    own = _best(j[same], near[same], n_predictions)
    other = _best(j[~same], near[~same], n_predictions)
    kind = np.select(
        [~invention, (own >= low) & (own < high), other >= high, own >= high, other >= low],
        ["", "localisation", "class", "duplicate", "both"],
        "background",
    ).astype(np.object_)

    why = np.full(n_references, "", dtype=np.object_)
    why[miss] = "missed"
    by_invention = invention[j] & miss[i] & (near >= low)
    for name, holds in (
        ("both", ~same & (near < high)),
        ("class", ~same & (near >= high)),
        ("localisation", same & (near < high)),
    ):
        why[i[by_invention & holds]] = name
    return ErrorTypes(reference=why, prediction=kind)


def _gathered(container: IntArray, part: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """Containers with at least two parts, and those parts."""
    several = np.bincount(container, minlength=n) >= 2
    return np.flatnonzero(several).astype(np.int64), np.unique(part[several[container]])


def _tangles(i: IntArray, j: IntArray, n: int, m: int) -> tuple[tuple[IntArray, IntArray], ...]:
    """Connected groups with at least two objects on both sides, by their first reference."""
    contested = (np.bincount(i, minlength=n)[i] > 1) | (np.bincount(j, minlength=m)[j] > 1)
    if not contested.any():
        return ()
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(i), dtype=np.int8), (i, n + j)), shape=(n + m, n + m))
    count, component = connected_components(graph, directed=False)
    left = np.bincount(component[:n], minlength=count)
    right = np.bincount(component[n:], minlength=count)
    wide = np.flatnonzero((left >= 2) & (right >= 2))
    groups = zip(_members(component[:n], wide), _members(component[n:], wide), strict=True) if len(wide) else ()
    return tuple(sorted(groups, key=lambda group: int(group[0][0])))


def _members(component: NDArray[Any], wanted: IntArray) -> list[IntArray]:
    """Positions in each of the wanted components (ascending numbers)."""
    at = np.flatnonzero(np.isin(component, wanted)).astype(np.int64)
    by = at[np.argsort(component[at], kind="stable")]
    return np.split(by, np.searchsorted(component[by], wanted)[1:])


def _best(j: IntArray, near: FloatArray, n: int) -> FloatArray:
    best = np.full(n, -np.inf)
    np.maximum.at(best, j, near)
    return best


def _left_over(n: int, *used: IntArray) -> Mask:
    free = np.ones(n, dtype=np.bool_)
    for at in used:
        free[at] = False
    return free
