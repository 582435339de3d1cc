"""What clusters say about a proportion: its variance and design effect. Exact until the last division."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from geoeval.errors import InputError
from geoeval.model import IntArray


def whole_count(value: Any, name: str) -> int:
    """A count as a Python integer; refused where it is not whole, negative or not a number.

    Examples
    --------
    >>> whole_count(2.0, "k")
    2
    """
    try:
        whole = int(value)
    except (TypeError, ValueError, OverflowError):
        whole = -1
    if whole < 0 or whole != value:
        raise InputError(
            f"{name} must be a whole number of at least 0, got {value!r}; weights are not counts of trials"
        )
    return whole


@dataclass(frozen=True, slots=True)
class Spread:
    """What clusters say about k of n: whole numbers where they are whole, each ratio rounded once.

    ``design_effect`` is None where no variance is to be compared with: p of 0 or 1, or a single cluster.
    """

    hits: int
    trials: int
    clusters: int
    dropped: int
    squares: int
    variance: float | None
    design_effect: float | None
    with_error: int
    with_hit: int


def cluster_spread(k: Any, n: Any) -> Spread:
    """Variance of Σk/Σn over clusters, C/(C−1)·Σ(k − p·n)²/N², and the design effect that it means.

    Parameters
    ----------
    k, n : (clusters,)
        Hits and trials of each cluster, whole numbers. Clusters without trials are dropped and counted.

    Returns
    -------
    Spread
        Independent of the order of the clusters, to the last bit: the sums are exact.

    Examples
    --------
    >>> spread = cluster_spread([1, 2, 3, 4, 5, 6], [6, 6, 6, 6, 6, 6])
    >>> round(spread.variance, 6), round(spread.design_effect, 6)
    (0.016204, 2.4)
    """
    hits, trials = _cluster_counts(k, n)
    held = trials > 0
    dropped = int(np.sum(~held))
    hits, trials = hits[held], trials[held]
    clusters = len(trials)
    K, N = int(np.sum(hits)), int(np.sum(trials))
    squares = int(np.sum(trials**2)) if N < 2**31 else _exact(trials.astype(object) ** 2)
    if 4 * N * N * max(squares, 1) < 2**62:
        deviation = int(np.sum((hits * N - trials * K) ** 2))
    else:
        deviation = _exact((hits.astype(object) * N - trials.astype(object) * K) ** 2)
    several = clusters > 1
    mixed = several and 0 < K < N
    return Spread(
        hits=K,
        trials=N,
        clusters=clusters,
        dropped=dropped,
        squares=squares,
        variance=clusters * deviation / ((clusters - 1) * N**4) if several else None,
        design_effect=clusters * deviation / ((clusters - 1) * N * K * (N - K)) if mixed else None,
        with_error=int(np.sum(hits < trials)),
        with_hit=int(np.sum(hits > 0)),
    )


def _exact(values: Iterable[Any]) -> int:
    return sum(int(value) for value in values)


def _cluster_counts(k: Any, n: Any) -> tuple[IntArray, IntArray]:
    hits, trials = np.asarray(k).reshape(-1), np.asarray(n).reshape(-1)
    if len(hits) != len(trials):
        raise InputError(f"k and n need one entry a cluster each, got {len(hits)} and {len(trials)}")
    for name, values in (("k", hits), ("n", trials)):
        if values.dtype.kind not in "iu":
            for value in values.tolist():
                whole_count(value, name)
    whole_k, whole_n = hits.astype(np.int64), trials.astype(np.int64)
    wrong = np.flatnonzero((whole_k < 0) | (whole_k > whole_n))
    if len(wrong):
        at = int(wrong[0])
        raise InputError(f"cluster {at}: k must lie in [0, n], got {whole_k[at]} of {whole_n[at]}")
    return whole_k, whole_n
