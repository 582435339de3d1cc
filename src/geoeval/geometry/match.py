"""One matcher for every family of objects: candidate pairs in, one-to-one pairs out.

Conventions   admissible pairs first (similarity at or above the threshold, equal labels), then the assignment.
              Similarity is higher for better pairs; for distances both it and the threshold are negative.
              Similarities and scores are compared after rounding to 1e-9, so that last-bit noise decides nothing.
Ties          fall to the lower (reference rank, prediction rank). Ranks order features by stable identifiers; with them
              the order of the input changes no pair.
Ignore        reference regions that are ignored pair with nothing; predictions left over and lying in one are absorbed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoeval.errors import ConfigError, InputError, nearest_spelling
from geoeval.model import FloatArray, IntArray, ObjectArray

_PER_UNIT = 10**9
_LARGEST = 10**9

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Matching:
    """One-to-one pairs, sorted by reference, and the predictions that ignore regions absorbed.

    Parameters
    ----------
    reference, prediction
        (pairs,) positions on either side.
    similarity
        (pairs,) rounded to 1e-9.
    ignored
        Positions of the absorbed predictions, ascending: neither hits nor inventions.
    """

    reference: IntArray
    prediction: IntArray
    similarity: FloatArray
    ignored: IntArray

    def __len__(self) -> int:
        return len(self.reference)


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Candidate pairs that may be taken, with whole-number similarity (``gain``) and the ranks of both ends."""

    reference: IntArray
    prediction: IntArray
    gain: IntArray
    reference_rank: IntArray
    prediction_rank: IntArray
    order: IntArray | None

    def take(self, rows: NDArray[Any]) -> _Pairs:
        return _Pairs(
            self.reference[rows],
            self.prediction[rows],
            self.gain[rows],
            self.reference_rank[rows],
            self.prediction_rank[rows],
            None if self.order is None else self.order[rows],
        )


def one_to_one(
    n_references: int,
    n_predictions: int,
    reference: ArrayLike,
    prediction: ArrayLike,
    similarity: ArrayLike,
    *,
    threshold: float,
    assignment: str,
    score: ArrayLike | None = None,
    reference_label: ObjectArray | None = None,
    prediction_label: ObjectArray | None = None,
    reference_rank: ArrayLike | None = None,
    prediction_rank: ArrayLike | None = None,
    ignore: Mask | None = None,
    ignore_similarity: ArrayLike | None = None,
) -> Matching:
    """Pairs of references and predictions in which each is used at most once.

    Parameters
    ----------
    n_references, n_predictions
        How many objects each side has.
    reference, prediction, similarity
        Candidate pairs: (pairs,) positions and similarity, higher is better. Pairs that are not listed cannot be taken.
    threshold
        Least similarity of a pair; equal is enough.
    assignment
        ``"score"``: predictions by descending score, each takes its best free reference (COCO). ``"similarity"``: pairs
        by descending similarity, taken when both ends are free. ``"optimal"``: most pairs, then most total similarity,
        then the list of (reference rank, prediction rank) that sorts first.
    score
        (predictions,) confidence; needed by ``"score"`` only.
    reference_label, prediction_label
        Where both are given, only equal labels pair.
    reference_rank, prediction_rank
        Whole numbers that order each side by a stable identifier; its position by default.
    ignore
        (references,) True for regions that are not counted. They absorb any number of the predictions that were left
        over; a region without a label (None or ``""``) absorbs every class.
    ignore_similarity
        (pairs,) similarity towards ignored regions, usually intersection over the prediction's area; ``similarity``
        where it is left out.

    Returns
    -------
    Matching
        Sorted by reference.

    Raises
    ------
    InputError
        Where a similarity or score is not a finite number, or a pair names an object that is not there.
    ConfigError
        Where the assignment is unknown or lacks its scores.

    References
    ----------
    .. [1] Lin et al. 2014, Microsoft COCO: common objects in context.
    .. [2] Kuhn 1955, The Hungarian method for the assignment problem.

    Examples
    --------
    Prediction 0 fits reference 0 best, but only so do both references stay unpaired or paired:

    >>> pairs = dict(reference=[0, 0, 1], prediction=[0, 1, 0], similarity=[0.9, 0.6, 0.5])
    >>> one_to_one(2, 2, **pairs, threshold=0.5, assignment="optimal").prediction.tolist()
    [1, 0]
    >>> one_to_one(2, 2, **pairs, threshold=0.5, assignment="similarity").prediction.tolist()
    [0]
    """
    i = _positions(reference, n_references, "reference")
    j = _positions(prediction, n_predictions, "prediction")
    gain = _quanta(similarity, "similarity", len(i))
    if len(i) != len(j):
        raise InputError(f"candidate pairs need equal columns, got {len(i)} references and {len(j)} predictions")
    order = _score_order(assignment, score, n_predictions, prediction_rank)
    least = _quanta([threshold], "threshold", 1)[0]
    fits = gain >= least
    same = _same_label(i, j, reference_label, prediction_label)
    counted = np.ones(len(i), dtype=np.bool_) if ignore is None else ~np.asarray(ignore, dtype=np.bool_)[i]
    pairs = _Pairs(
        i,
        j,
        gain,
        _ranks(reference_rank, n_references, "reference")[i],
        _ranks(prediction_rank, n_predictions, "prediction")[j],
        None if order is None else order[j],
    )
    chosen = _chosen(pairs.take(np.flatnonzero(fits & same & counted)), assignment)
    ignored = np.zeros(0, dtype=np.int64)
    if not counted.all():
        near = gain if ignore_similarity is None else _quanta(ignore_similarity, "ignore_similarity", len(i))
        same |= _unlabelled(i, reference_label)
        ignored = np.setdiff1d(j[~counted & same & (near >= least)], chosen.prediction)
    by_reference = np.argsort(chosen.reference)
    chosen = chosen.take(by_reference)
    return Matching(chosen.reference, chosen.prediction, np.round(chosen.gain / _PER_UNIT, 9), ignored)


def match_by_id(reference_id: ObjectArray, prediction_id: ObjectArray) -> tuple[IntArray, IntArray]:
    """Positions of the objects that carry the same id on both sides, sorted by reference.

    Raises
    ------
    InputError
        Where an id stands more than once on one side: the pairs would be arbitrary.

    Examples
    --------
    >>> i, j = match_by_id(np.array(["a", "b"], dtype=object), np.array(["b", "c"], dtype=object))
    >>> i.tolist(), j.tolist()
    ([1], [0])
    """
    at = _unique_ids(reference_id, "reference")
    other = _unique_ids(prediction_id, "prediction")
    both = [(row, other[key]) for key, row in at.items() if key in other]
    pairs = np.array(both, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _unique_ids(ids: ObjectArray, side: str) -> Mapping[object, int]:
    at = {key: row for row, key in enumerate(ids)}
    if len(at) == len(ids):
        return at
    times: dict[object, int] = {}
    for key in ids:
        times[key] = times.get(key, 0) + 1
    repeated = sorted(((str(key), n) for key, n in times.items() if n > 1), key=lambda item: (-item[1], item[0]))
    shown = ", ".join(f"{key!r} {n} times" for key, n in repeated[:5])
    raise InputError(
        f"{side}: each id must stand once, found {shown} ({len(repeated)} ids repeat); "
        "make the ids unique or name another id column"
    )


def _positions(given: ArrayLike, n: int, side: str) -> IntArray:
    at = np.asarray(given, dtype=np.int64).reshape(-1)
    if at.size and (at.min() < 0 or at.max() >= n):
        wrong = int(at[(at < 0) | (at >= n)][0])
        raise InputError(f"a candidate pair names {side} {wrong}, but there are {n}")
    return at


def _quanta(given: ArrayLike, name: str, n: int) -> IntArray:
    values = np.asarray(given, dtype=np.float64).reshape(-1)
    if len(values) != n:
        raise InputError(f"{name}: expected {n} values, got {len(values)}")
    bad = ~(np.abs(values) <= _LARGEST)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise InputError(f"{name} must be a finite number of at most {_LARGEST:g}, got {values[at]} at position {at}")
    return np.rint(values * _PER_UNIT).astype(np.int64)


def _ranks(given: ArrayLike | None, n: int, side: str) -> IntArray:
    if given is None:
        return np.arange(n, dtype=np.int64)
    ranks = np.asarray(given, dtype=np.int64).reshape(-1)
    if len(ranks) != n:
        raise InputError(f"{side}_rank: expected {n} values, got {len(ranks)}")
    return ranks


def _score_order(assignment: str, score: ArrayLike | None, n: int, rank: ArrayLike | None) -> IntArray | None:
    """Position of each prediction in the order of descending score."""
    if assignment not in ("score", "similarity", "optimal"):
        if assignment == "id":
            raise ConfigError("assignment 'id' pairs by key, not by similarity; use match_by_id")
        known = nearest_spelling(assignment, ["score", "similarity", "optimal", "id"])
        raise ConfigError(f"assignment: unknown value {assignment!r}; {known}")
    if assignment != "score":
        return None
    if score is None:
        raise ConfigError("assignment 'score' needs a score for each prediction; use 'optimal' where there are none")
    by = np.lexsort((_ranks(rank, n, "prediction"), -_quanta(score, "score", n)))
    order = np.empty(n, dtype=np.int64)
    order[by] = np.arange(n)
    return order


def _same_label(i: IntArray, j: IntArray, reference: ObjectArray | None, prediction: ObjectArray | None) -> Mask:
    if reference is None or prediction is None:
        return np.ones(len(i), dtype=np.bool_)
    return np.asarray(np.asarray(reference)[i] == np.asarray(prediction)[j], dtype=np.bool_).reshape(len(i))


def _unlabelled(i: IntArray, reference_label: ObjectArray | None) -> Mask:
    if reference_label is None:
        return np.ones(len(i), dtype=np.bool_)
    blank = np.array([label is None or label == "" for label in reference_label], dtype=np.bool_)
    return blank[i]


def _chosen(pairs: _Pairs, assignment: str) -> _Pairs:
    """The pairs that the assignment takes. Pairs without a rival at either end are certain, which is most of them."""
    if not len(pairs.reference):
        return pairs
    rivals = np.bincount(pairs.reference)[pairs.reference] + np.bincount(pairs.prediction)[pairs.prediction]
    alone, contested = np.flatnonzero(rivals == 2), np.flatnonzero(rivals > 2)
    if not len(contested):
        return pairs
    taken = _optimal(pairs.take(contested)) if assignment == "optimal" else _greedy(pairs.take(contested))
    return pairs.take(np.concatenate([alone, contested[taken]]))


def _greedy(pairs: _Pairs) -> IntArray:
    """Pairs in order of precedence, each taken when both its ends are free."""
    if pairs.order is None:
        by = np.lexsort((pairs.prediction_rank, pairs.reference_rank, -pairs.gain))
    else:
        by = np.lexsort((pairs.reference_rank, -pairs.gain, pairs.order))
    free_reference = bytearray(b"\1") * (int(pairs.reference.max()) + 1)
    free_prediction = bytearray(b"\1") * (int(pairs.prediction.max()) + 1)
    taken = []
    for k, i, j in zip(by.tolist(), pairs.reference[by].tolist(), pairs.prediction[by].tolist(), strict=True):
        if free_reference[i] and free_prediction[j]:
            free_reference[i] = free_prediction[j] = 0
            taken.append(k)
    return np.array(taken, dtype=np.int64)


def _optimal(pairs: _Pairs) -> IntArray:
    """Most pairs, then most similarity, in each connected component."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    from geoeval.geometry.assign import optimal

    row, rows = _numbered(pairs.reference, pairs.reference_rank)
    column, columns = _numbered(pairs.prediction, pairs.prediction_rank)
    n = rows + columns
    graph = coo_array((np.ones(len(row), dtype=np.int8), (row, rows + column)), shape=(n, n))
    _, component = connected_components(graph, directed=False)
    # Rows of one component become neighbours and stay in the order of their ranks.
    by_component = np.argsort(component[:rows], kind="stable")
    number = np.empty(rows, dtype=np.int64)
    number[by_component] = np.arange(rows)
    first = np.flatnonzero(np.diff(component[:rows][by_component], prepend=-1))
    by = np.lexsort((column, number[row]))
    edge = optimal(number[row][by], column[by], pairs.gain[by], np.append(first, rows).astype(np.int64), columns)
    return by[edge[edge >= 0]]


def _numbered(position: IntArray, rank: IntArray) -> tuple[IntArray, int]:
    """Number the distinct positions from 0 in the order of their ranks."""
    distinct, at, inverse = np.unique(position, return_index=True, return_inverse=True)
    number = np.empty(len(distinct), dtype=np.int64)
    number[np.lexsort((distinct, rank[at]))] = np.arange(len(distinct))
    return number[inverse.reshape(-1)], len(distinct)
