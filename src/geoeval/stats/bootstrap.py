"""Redraws of clusters: multiplicities, never ids, from a generator that gives the same bits everywhere."""

from __future__ import annotations

import numpy as np

from geoeval.model import FloatArray, IntArray

#: More undefined replicates than this share, and the interval is not given.
UNSTABLE_SHARE = 0.05


def multiplicities(clusters: int, redraws: int, seed: int) -> IntArray:
    """How often each cluster counts in each redraw (redraws, clusters): whole-cluster draws with replacement.

    Drawn as whole numbers by PCG64, so that no floating-point rounding can differ between machines.

    Examples
    --------
    >>> multiplicities(3, 2, seed=0).sum(axis=1)
    array([3, 3])
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    drawn = generator.integers(0, clusters, size=(redraws, clusters))
    out = np.zeros((redraws, clusters), dtype=np.int64)
    np.add.at(out, (np.arange(redraws)[:, None], drawn), 1)
    return out


def percentile_interval(replicates: FloatArray, confidence: float = 0.95) -> tuple[float, float] | None:
    """Percentiles (numpy's ``linear``) of the defined replicates; None where more than 5 % are undefined (NaN).

    Examples
    --------
    >>> percentile_interval(np.array([3.0, 1, 4, 1, 5, 9, 2, 6, 5, 3]))
    (1.0, 8.325000000000001)
    """
    defined = replicates[np.isfinite(replicates)]
    if len(replicates) == 0 or len(defined) < (1 - UNSTABLE_SHARE) * len(replicates):
        return None
    tail = (1 - confidence) / 2 * 100
    low, high = np.percentile(defined, [tail, 100 - tail], method="linear")
    return float(low), float(high)
