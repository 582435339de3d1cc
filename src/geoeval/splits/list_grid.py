"""Neighbours on a grid index: chips whose cells touch, in different splits."""

from __future__ import annotations

from typing import Literal

import numpy as np

from geoeval.errors import ConfigError
from geoeval.model import IntArray
from geoeval.splits.list_pairs import PairTally

Neighbourhood = Literal[4, 8]

#: Half of the neighbours; the other half is the same pairs seen from the other side. (0, 0) is the cell itself.
_HALF: dict[int, tuple[tuple[int, int], ...]] = {
    4: ((0, 0), (0, 1), (1, 0)),
    8: ((0, 0), (0, 1), (1, 0), (1, 1), (1, -1)),
}
_MOST = 50_000_000


def adjacent(
    grid: IntArray,
    split: IntArray,
    names: tuple[str, ...],
    neighbourhood: Neighbourhood,
    *,
    keep: int,
    unique: IntArray | None = None,
) -> tuple[PairTally, IntArray]:
    """Pairs of samples in different splits whose cells are the same or touch.

    Parameters
    ----------
    grid
        (n, 3) number of the grid, and two indices.
    neighbourhood
        4 for cells that share an edge, 8 for those that share a corner, too.

    Returns
    -------
    tuple
        The tally, whose items are groups of samples of one cell, split and value; and the first sample of each group.

    Examples
    --------
    >>> grid = np.array([[0, 0, 0], [0, 1, 1], [0, 5, 5]])
    >>> found, _ = adjacent(grid, np.array([0, 1, 1]), ("test", "train"), 8, keep=5)
    >>> found.count, adjacent(grid, np.array([0, 1, 1]), ("test", "train"), 4, keep=5)[0].count
    (1, 0)
    """
    low = grid.min(axis=0) if len(grid) else np.zeros(3, dtype=np.int64)
    span = [int(one) for one in (grid.max(axis=0) - low + 3)] if len(grid) else [1, 1, 1]
    if span[0] * span[1] * span[2] > 2**62:
        raise ConfigError(f"grid index: {span[1] - 2} x {span[2] - 2} cells are too many; are these grid indices?")
    moved = grid - low
    cell = (moved[:, 0] * span[1] + moved[:, 1] + 1) * span[2] + moved[:, 2] + 1
    value = np.zeros(len(grid), dtype=np.int64) if unique is None else unique
    groups, first, size = np.unique(
        np.stack([cell, split, value], axis=1), axis=0, return_index=True, return_counts=True
    )
    found = PairTally(
        groups[:, 1], names, keep=keep, size=size.astype(np.int64), unique=None if unique is None else groups[:, 2]
    )
    for da, db in _HALF[neighbourhood]:
        i, j = _joined(groups[:, 0], da * span[2] + db)
        if da == db == 0:
            i, j = i[i < j], j[i < j]
        cross = groups[i, 1] != groups[j, 1]
        i, j = i[cross], j[cross]
        found.add(i, j, np.full(len(i), float(abs(da) + abs(db))))
    return found, first.astype(np.int64)


def _joined(cell: IntArray, step: int) -> tuple[IntArray, IntArray]:
    """Pairs of groups where the second lies a step further; cells are sorted."""
    start, end = np.searchsorted(cell, cell + step, "left"), np.searchsorted(cell, cell + step, "right")
    times = end - start
    if int(times.sum()) > _MOST:
        raise ConfigError(f"grid index: {int(times.sum())} pairs of one cell and value are too many to list")
    i = np.repeat(np.arange(len(cell)), times)
    j = np.arange(len(i)) - np.repeat(np.cumsum(times) - times, times) + np.repeat(start, times)
    return i.astype(np.int64), j.astype(np.int64)
