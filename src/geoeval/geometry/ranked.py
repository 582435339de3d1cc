"""Matching by descending score at many thresholds at once, as average precision asks for it.

For each threshold the best free reference at or above it is taken, else the best reference that is to be ignored; a
crowd region may be taken many times. The matching is done anew for each threshold.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from geoeval.model import FloatArray, IntArray

#: Ten thresholds of intersection over union, 0.50 to 0.95.
THRESHOLDS: FloatArray = np.linspace(0.5, 0.95, 10)


def ranked_matches(
    order: IntArray,
    reference: IntArray,
    prediction: IntArray,
    similarity: FloatArray,
    *,
    rank: IntArray,
    ignored: NDArray[np.bool_],
    crowd: NDArray[np.bool_],
    thresholds: FloatArray = THRESHOLDS,
) -> IntArray:
    """The reference that each prediction takes at each threshold.

    Parameters
    ----------
    order : (n,)
        All predictions, the first to choose first.
    reference, prediction, similarity : (pairs,)
        Candidate pairs. Only admissible ones: equal labels where labels count.
    rank : (references,)
        Of equally similar references the one of highest rank is taken.
    ignored, crowd : (references,)
        References that make neither a hit nor a miss; crowds among them may be taken many times.
    thresholds : (t,)
        Inclusive.

    Returns
    -------
    (t, n) int64
        Position of the reference, -1 where none was taken.

    Examples
    --------
    >>> none = np.array([False])
    >>> ranked_matches(np.array([1, 0]), np.array([0, 0]), np.array([0, 1]), np.array([0.9, 0.6]),
    ...                rank=np.array([0]), ignored=none, crowd=none, thresholds=np.array([0.5, 0.75]))
    array([[-1,  0],
           [ 0, -1]])
    """
    n = len(order)
    position = np.empty(n, dtype=np.int64)
    position[order] = np.arange(n)
    sorting = np.lexsort((rank[reference], ignored[reference], position[prediction]))
    start = np.searchsorted(position[prediction][sorting], np.arange(n + 1))
    return np.asarray(
        _take(
            np.asarray(order, dtype=np.int64),
            start,
            np.asarray(reference, dtype=np.int64)[sorting],
            np.asarray(similarity, dtype=np.float64)[sorting],
            np.asarray(ignored, dtype=np.bool_),
            np.asarray(crowd, dtype=np.bool_),
            # A similarity of exactly 1 must reach a threshold of 1 in spite of rounding.
            np.minimum(np.asarray(thresholds, dtype=np.float64), 1 - 1e-10),
        )
    )


@numba.njit(cache=True, nogil=True)  # type: ignore[misc,untyped-decorator,unused-ignore]
def _take(order: Any, start: Any, reference: Any, similarity: Any, ignored: Any, crowd: Any, thresholds: Any) -> Any:
    out = np.full((len(thresholds), len(order)), -1, dtype=np.int64)
    for t in range(len(thresholds)):
        taken = np.zeros(len(ignored), dtype=np.bool_)
        for at in range(len(order)):
            best = thresholds[t]
            found = -1
            for i in range(start[at], start[at + 1]):
                candidate = reference[i]
                if taken[candidate] and not crowd[candidate]:
                    continue
                if found >= 0 and not ignored[found] and ignored[candidate]:
                    break
                if similarity[i] < best:
                    continue
                best = similarity[i]
                found = candidate
            if found >= 0:
                out[t, order[at]] = found
                taken[found] = True
    return out
