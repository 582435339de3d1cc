"""Confusion matrices: rows are the prediction (the map), columns the reference, classes keyed by code, kept sparse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.model import IntArray
from geoeval.stats.tally import Totals


@dataclass(frozen=True, slots=True, eq=False)
class ConfusionTotals:
    """A view of many confusion matrices at once, kept sparse.

    Parameters
    ----------
    codes
        Class codes of both sides (c,), sorted.
    pairs
        Positions in ``codes`` of (prediction, reference) of each occupied cell (k, 2), sorted.
    counts
        Count of each occupied cell in each total (size, k).
    """

    codes: IntArray
    pairs: IntArray
    counts: IntArray

    @staticmethod
    def of(matrix: NDArray[Any], codes: NDArray[Any] | None = None) -> ConfusionTotals:
        """View a dense matrix (c, c), or several (size, c, c), rows prediction and columns reference.

        Examples
        --------
        >>> ConfusionTotals.of(np.array([[3, 1], [0, 4]])).matrix[0]
        array([[3, 1],
               [0, 4]])
        """
        table = np.asarray(matrix, dtype=np.int64)
        table = table[None] if table.ndim == 2 else table
        size, c, _ = table.shape
        names = np.arange(c, dtype=np.int64) if codes is None else np.asarray(codes, dtype=np.int64)
        grid = np.indices((c, c)).reshape(2, -1).T.astype(np.int64)
        return ConfusionTotals(names, grid, table.reshape(size, c * c))

    @property
    def size(self) -> int:
        """How many matrices there are."""
        return len(self.counts)

    @property
    def matrix(self) -> IntArray:
        """The matrices in full (size, c, c)."""
        c = len(self.codes)
        out = np.zeros((self.size, c, c), dtype=np.int64)
        out[:, self.pairs[:, 0], self.pairs[:, 1]] = self.counts
        return out

    @property
    def n(self) -> IntArray:
        """All that was compared (size,)."""
        return np.asarray(self.counts.sum(axis=1), dtype=np.int64)

    @property
    def agreeing(self) -> IntArray:
        """Diagonal (size, c)."""
        same = self.pairs[:, 0] == self.pairs[:, 1]
        return self.by_class(self.pairs[same, 0], self.counts[:, same])

    @property
    def predicted(self) -> IntArray:
        """Row sums (size, c): how often each class was predicted."""
        return self.by_class(self.pairs[:, 0], self.counts)

    @property
    def reference(self) -> IntArray:
        """Column sums (size, c): how often each class stands in the reference."""
        return self.by_class(self.pairs[:, 1], self.counts)

    def by_class(self, position: IntArray, counts: IntArray) -> IntArray:
        """Sums of counts (size, k) over the cells that stand at each class position (size, c)."""
        out = np.zeros((len(counts), len(self.codes)), dtype=np.int64)
        if len(position):
            order = np.argsort(position, kind="stable")
            groups, start = np.unique(position[order], return_index=True)
            out[:, groups] = np.add.reduceat(counts[:, order], start, axis=1)
        return out


def confusion_totals(totals: Totals, name: str = "confusion") -> ConfusionTotals:
    """Read confusion matrices off totals whose bins ``name`` are keyed by (prediction code, reference code).

    Examples
    --------
    >>> from geoeval.stats.tally import Bins, Tally, totals_of
    >>> bins = Bins.of(np.array([[7, 7], [7, -1], [7, 7]]))
    >>> view = confusion_totals(totals_of([Tally.of(bins={"confusion": bins})]))
    >>> view.codes.tolist(), view.matrix[0].tolist()
    ([-1, 7], [[0, 0], [1, 2]])
    """
    found = totals.bins.get(name)
    if found is None:
        blank = np.zeros((0, 2), dtype=np.int64)
        return ConfusionTotals(np.zeros(0, dtype=np.int64), blank, np.zeros((totals.size, 0), dtype=np.int64))
    codes, position = np.unique(found.keys, return_inverse=True)
    pairs = np.asarray(position, dtype=np.int64).reshape(-1, 2)
    return ConfusionTotals(codes.astype(np.int64), pairs, np.asarray(found.counts, dtype=np.int64))
