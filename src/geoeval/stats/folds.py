"""Out-of-fold scores: every observation is scored by a model that saw neither it nor its cluster.

Raw scores of different folds are on different scales: report them a fold, and pool only ranks within folds or
calibrated values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from geoeval.errors import InputError
from geoeval.model import FloatArray, IntArray

M = TypeVar("M")


@dataclass(frozen=True, slots=True, eq=False)
class OutOfFold:
    """Scores (n,) and the fold that each comes from (n,)."""

    score: FloatArray
    fold: IntArray

    def ranks(self) -> FloatArray:
        """Share of its own fold that each score reaches or exceeds, ties at their mean: these may be pooled."""
        out = np.empty(len(self.score))
        for fold in np.unique(self.fold):
            held = self.fold == fold
            ordered = np.sort(self.score[held])
            below = np.searchsorted(ordered, self.score[held], side="left")
            upto = np.searchsorted(ordered, self.score[held], side="right")
            out[held] = (below + upto + 1) / (2 * len(ordered))
        return out


def folds(n: int, k: int, seed: int, groups: Sequence[Hashable] | None = None) -> IntArray:
    """Fold of each of ``n`` observations (n,); groups stay together, and folds are filled evenly.

    ``k`` is clamped to between 2 and the number of groups (of observations, without groups).

    Examples
    --------
    >>> sorted(folds(4, 2, seed=0).tolist())
    [0, 0, 1, 1]
    >>> assigned = folds(4, 9, seed=0, groups=["a", "a", "b", "b"])
    >>> assigned[0] == assigned[1], assigned[0] == assigned[2]
    (np.True_, np.False_)
    """
    if groups is not None and len(groups) != n:
        raise InputError(f"groups need one entry for each of the {n} observations, got {len(groups)}")
    names: list[Any] = list(range(n)) if groups is None else sorted(set(groups), key=str)
    if len(names) < 2:
        raise InputError(f"folds need at least 2 observations or groups, got {len(names)}")
    index = {name: i for i, name in enumerate(names)}
    member = np.arange(n) if groups is None else np.array([index[one] for one in groups])
    size = np.bincount(member, minlength=len(names))
    shuffled = np.random.Generator(np.random.PCG64(seed)).permutation(len(names))
    filled = [0] * min(max(k, 2), len(names))
    fold = np.zeros(len(names), dtype=np.int64)
    # The largest first, each into the emptiest fold; the shuffle decides between equals.
    for at in shuffled[np.argsort(-size[shuffled], kind="stable")].tolist():
        fold[at] = filled.index(min(filled))
        filled[fold[at]] += int(size[at])
    return np.asarray(fold[member], dtype=np.int64)


def k_fold_oof(
    n: int,
    k: int,
    seed: int,
    fit: Callable[[IntArray], M],
    score: Callable[[M, IntArray], Any],
    groups: Sequence[Hashable] | None = None,
) -> OutOfFold:
    """Scores of each fold by a model that was fitted on the others.

    Parameters
    ----------
    n
        Observations.
    k
        Folds, clamped to between 2 and the number of groups.
    seed
        Of the assignment.
    fit
        Positions of the observations to learn from, to a model.
    score
        Model and positions, to one score each.
    groups : (n,), optional
        Clusters, kept together.

    Examples
    --------
    >>> k_fold_oof(4, 2, 0, fit=len, score=lambda model, rows: [model] * len(rows)).score
    array([2., 2., 2., 2.])
    """
    fold = folds(n, k, seed, groups)
    out = np.empty(n)
    for one in np.unique(fold):
        rows = np.flatnonzero(fold == one)
        out[rows] = score(fit(np.flatnonzero(fold != one)), rows)
    return OutOfFold(out, fold)
