"""Pairs across splits as they are found: exact counts, who is involved, and the first of them as witnesses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from geoeval.model import FloatArray, IntArray

#: Most pairs of a search that keeps all of them.
MOST_PAIRS = 5_000_000


@dataclass(frozen=True, slots=True)
class UniquePairs:
    """Pairs of different values of a column, each counted once.

    Parameters
    ----------
    values
        Split to how many different values are in a pair.
    """

    column: str
    pairs: int
    values: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Facts:
    """Who is in the offending pairs.

    Parameters
    ----------
    by_splits
        ``"test / train"`` to the number of pairs.
    samples
        Split to other split to the number of distinct samples of the first that are in a pair with the second.
    within
        The same, for samples that lie wholly within one sample of the other split; None where that means nothing.
    values
        Relation to how many different values stand in several splits.
    """

    by_splits: Mapping[str, int] = field(default_factory=dict)
    samples: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    within: Mapping[str, Mapping[str, int]] | None = None
    unique: UniquePairs | None = None
    values: Mapping[str, int] = field(default_factory=dict)


class PairTally:
    """Collects pairs of items in different splits; an item stands for ``size`` samples.

    Examples
    --------
    >>> found = PairTally(np.array([0, 1, 1]), ("test", "train"), keep=1)
    >>> found.add(np.array([0, 0]), np.array([1, 2]), np.array([2.0, 1.0]))
    >>> found.count, found.facts().samples, [(one[0], one[1]) for one in found.first()]
    (2, {'test': {'train': 1}, 'train': {'test': 2}}, [(0, 2)])
    """

    def __init__(
        self,
        split: IntArray,
        names: tuple[str, ...],
        *,
        keep: int,
        size: IntArray | None = None,
        unique: IntArray | None = None,
    ) -> None:
        self.split, self.names, self.keep = split, names, keep
        self.size = np.ones(len(split), dtype=np.int64) if size is None else size
        self.unique = unique
        self.count = 0
        self.touched = np.zeros((len(split), len(names)), dtype=np.bool_)
        self.inside = np.zeros((len(split), len(names)), dtype=np.bool_)
        self._by = np.zeros((len(names), len(names)), dtype=np.int64)
        self._keys = np.zeros((0, 4), dtype=np.int64)
        self._first: tuple[IntArray, IntArray, FloatArray] = (
            np.zeros(0, np.int64),
            np.zeros(0, np.int64),
            np.zeros(0),
        )

    def add(self, i: IntArray, j: IntArray, measure: FloatArray) -> None:
        """Pairs of items; the least ``measure`` is the first to be named."""
        if not len(i):
            return
        a, b = self.split[i], self.split[j]
        weight = self.size[i] * self.size[j]
        self.count += int(weight.sum())
        for one in np.unique(key := np.minimum(a, b) * len(self.names) + np.maximum(a, b)).tolist():
            self._by[divmod(one, len(self.names))] += int(weight[key == one].sum())
        self.touched[i, b] = True
        self.touched[j, a] = True
        if self.unique is not None:
            self._add_unique(self.unique[i], self.unique[j], a, b)
        low, high = np.minimum(i, j), np.maximum(i, j)
        whole = [np.concatenate(pair) for pair in zip(self._first, (low, high, measure), strict=True)]
        order = np.lexsort((whole[1], whole[0], whole[2]))[: self.keep]
        self._first = (whole[0][order], whole[1][order], whole[2][order])

    def _add_unique(self, u: IntArray, v: IntArray, a: IntArray, b: IntArray) -> None:
        there = (u >= 0) & (v >= 0)
        turn = a > b
        rows = [np.where(turn, b, a), np.where(turn, a, b), np.where(turn, v, u), np.where(turn, u, v)]
        keys = np.stack([one[there] for one in rows], axis=1)
        self._keys = np.unique(np.concatenate([self._keys, keys]), axis=0)

    def mark_inside(self, i: IntArray, j: IntArray) -> None:
        """Items ``i`` that lie wholly within the items ``j``."""
        self.inside[i, self.split[j]] = True

    def first(self) -> list[tuple[int, int, float]]:
        """The first pairs, lower item first, and their measures."""
        return list(zip(*(one.tolist() for one in self._first), strict=True))

    def facts(self, *, column: str | None = None, inside: bool = False) -> Facts:
        """What was found."""
        names = self.names
        by = {
            f"{names[a]} / {names[b]}": int(self._by[a, b])
            for a, b in zip(*(one.tolist() for one in np.nonzero(self._by)), strict=True)
        }
        unique = None
        if self.unique is not None and column is not None:
            unique = UniquePairs(column, self._unique_pairs(), self._unique_values())
        return Facts(
            by_splits=by,
            samples=involved(self.touched, self.split, names, self.size),
            within=involved(self.inside, self.split, names, self.size) if inside else None,
            unique=unique,
        )

    def _unique_pairs(self) -> int:
        """Pairs of values whichever way round: a pair that stands in both directions is one."""
        if not len(self._keys):
            return 0
        return len(np.unique(np.sort(self._keys[:, 2:], axis=1), axis=0))

    def _unique_values(self) -> dict[str, int]:
        sides = np.concatenate([self._keys[:, [0, 2]], self._keys[:, [1, 3]]])
        split, times = np.unique(np.unique(sides, axis=0)[:, 0], return_counts=True)
        return {self.names[a]: int(n) for a, n in zip(split.tolist(), times.tolist(), strict=True)}


def involved(touched: Any, split: IntArray, names: tuple[str, ...], size: IntArray) -> dict[str, dict[str, int]]:
    """Split to other split to how many samples of the first are in a pair with the second."""
    out: dict[str, dict[str, int]] = {}
    for a, name in enumerate(names):
        own = split == a
        sums = (touched[own] * size[own, None]).sum(axis=0)
        found = {names[b]: int(n) for b, n in enumerate(sums.tolist()) if n}
        if found:
            out[name] = found
    return out
