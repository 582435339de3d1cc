"""What a search for forbidden neighbours found: how many pairs exactly, and the nearest of them as witnesses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geoeval.model import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Across:
    """Pairs of samples that lie in different splits although they are too near to each other.

    Parameters
    ----------
    count
        Exact number of such pairs, each counted once.
    i, j
        (witnesses,) positions of the first of them, with ``i < j``, ordered by distance, then ``i``, then ``j``.
    distance
        (witnesses,) how near: bits, metres, or 1 minus a similarity, whatever the search measures.
    """

    count: int
    i: IntArray
    j: IntArray
    distance: FloatArray


def first_pairs(i: IntArray, j: IntArray, distance: FloatArray, count: int, witnesses: int) -> Across:
    """The first of some pairs, ordered by distance, then by position.

    Examples
    --------
    >>> found = first_pairs(np.array([3, 0]), np.array([1, 2]), np.array([0.5, 0.5]), count=2, witnesses=1)
    >>> found.i.tolist(), found.j.tolist()
    ([0], [2])
    """
    low = np.minimum(i, j).astype(np.int64)
    high = np.maximum(i, j).astype(np.int64)
    order = np.lexsort((high, low, distance))[: max(witnesses, 0)]
    return Across(int(count), low[order], high[order], np.asarray(distance, dtype=np.float64)[order])


def split_codes(split: IntArray, n: int) -> IntArray:
    """Small integers for the splits of ``n`` samples.

    Examples
    --------
    >>> split_codes(np.array([7, 7, -1]), 3).tolist()
    [1, 1, 0]
    """
    given = np.asarray(split)
    if given.shape != (n,):
        raise ValueError(f"split must have one entry a sample, shape ({n},), got {given.shape}")
    return np.unique(given, return_inverse=True)[1].astype(np.int64)
