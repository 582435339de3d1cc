"""Quarantine: samples that lie too close to a more protected split leave both, and are listed at their price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from geoeval.model import IntArray
from geoeval.splits.links import boxes_of
from geoeval.splits.record import DEVELOPMENT, PROTECTED, QUARANTINE
from geoeval.splits.table import SampleTable

_LEVELS: tuple[str, ...] = (*DEVELOPMENT, *PROTECTED)


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Splits after the violating samples left.

    Parameters
    ----------
    split
        (n,) names of roles, or ``"quarantine"``.
    cost
        Role to how many samples it lost.
    """

    split: tuple[str, ...]
    cost: Mapping[str, int]

    @property
    def size(self) -> int:
        """Samples in quarantine."""
        return sum(self.cost.values())


def quarantined(table: SampleTable, split: Sequence[str], distance_m: float) -> Quarantine:
    """Move the less protected side of every pair that is closer than the buffer into quarantine.

    Roles are taken from the most protected down: whoever lies within reach of a sample that stays leaves.

    Examples
    --------
    >>> bounds = [[5.0, 50.0, 5.001, 50.001], [5.002, 50.0, 5.003, 50.001], [6.0, 50.0, 6.001, 50.001]]
    >>> table = SampleTable.of(3, sample_id=["a", "b", "c"], bounds=bounds, crs="EPSG:4326")
    >>> found = quarantined(table, ["train", "test", "train"], 2000.0)
    >>> found.split, dict(found.cost)
    (('quarantine', 'test', 'train'), {'train': 1})
    """
    rows = np.flatnonzero(table.has_box()).astype(np.int64)
    level = np.array([_LEVELS.index(one) for one in split], dtype=np.int64)
    leaves = np.zeros(table.n, dtype=np.bool_)
    if len(rows):
        first, second = _pairs(table, rows, level, distance_m)
        upper = np.where(level[first] > level[second], first, second)
        lower = np.where(level[first] > level[second], second, first)
        for role in range(len(_LEVELS) - 1, 0, -1):
            # Nothing of this role leaves any more: only more protected samples could have pushed it out.
            pushes = (level[upper] == role) & ~leaves[upper]
            leaves[lower[pushes]] = True
    out = tuple(QUARANTINE if gone else own for gone, own in zip(leaves.tolist(), split, strict=True))
    cost = {role: int((leaves & (level == at)).sum()) for at, role in enumerate(_LEVELS)}
    return Quarantine(out, {role: times for role, times in cost.items() if times})


def _pairs(table: SampleTable, rows: IntArray, level: IntArray, distance_m: float) -> tuple[IntArray, IntArray]:
    """Every pair of rows of different roles within reach; only pairs at the edges of blocks, so that they fit."""
    from geoeval.splits.boxes import within_across

    boxes = boxes_of(table, rows)
    count = within_across(boxes, level[rows], distance_m, witnesses=0).count
    found = within_across(boxes, level[rows], distance_m, witnesses=count)
    return rows[found.i], rows[found.j]
