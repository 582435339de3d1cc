"""Intervals of proportions: Wilson's, Wilson's on the effective number of trials, Clopper and Pearson's.

Conventions   two-sided with confidence 0.95 unless said otherwise; no continuity correction unless its name says so;
              bounds lie in [0, 1]; 0 hits give a low of exactly 0.0, and n of n a high of exactly 1.0.
Undefined     None for both bounds: no trials, or (clustered) a single cluster.
Refused       counts that are not whole, negative, or more hits than trials: weights never enter Wilson's formula.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from geoeval.errors import ConfigError, InputError
from geoeval.stats.multiple import bonferroni_z
from geoeval.stats.rounding import round12
from geoeval.stats.spread import Spread, cluster_spread, whole_count

#: Fewer clusters with an error, or with a hit, than this: their spread cannot be estimated.
SPARSE_CLUSTERS = 5

#: The correlation inside clusters that is assumed where it cannot be estimated.
ASSUMED_CORRELATION = 0.1

#: Fewer clusters, or effective clusters, than these cannot decide a gate.
FEW_CLUSTERS = 10
FEW_EFFECTIVE_CLUSTERS = 5.0

Bounds = tuple[float | None, float | None]


@lru_cache(maxsize=64)
def normal_quantile(confidence: float) -> float:
    """Half-width of the two-sided normal interval in standard deviations: 1.959963984540054 for 0.95.

    Examples
    --------
    >>> normal_quantile(0.95)
    1.959963984540054
    """
    from scipy.special import ndtri

    if not 0 < confidence < 1:
        raise ConfigError(f"confidence must lie in (0, 1), got {confidence!r}; is it a percentage?")
    return float(ndtri((1 + confidence) / 2))


@lru_cache(maxsize=1024)
def _t(confidence: float, df: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(df, (1 + confidence) / 2))


def _trials(k: Any, n: Any) -> tuple[int, int]:
    hits, trials = whole_count(k, "k"), whole_count(n, "n")
    if hits > trials:
        raise InputError(f"k must not exceed n, got {hits} of {trials}; are the arguments swapped?")
    return hits, trials


def _bounds(p: float, n: float, z: float) -> tuple[float, float]:
    """Wilson's formula for a share p (exactly 0 or 1 at the ends) of n trials, which need not be whole."""
    squared = z * z
    width = 1 + squared / n
    centre = (p + squared / (2 * n)) / width
    half = z / width * math.sqrt(p * (1 - p) / n + squared / (4 * n * n))
    low = 0.0 if p == 0 else max(0.0, centre - half)
    high = 1.0 if p == 1 else min(1.0, centre + half)
    return low, high


def wilson(k: Any, n: Any, confidence: float = 0.95) -> Bounds:
    """Wilson's score interval of k hits in n independent trials.

    Parameters
    ----------
    k, n
        Whole numbers, ``0 <= k <= n``.
    confidence
        Between 0 and 1.

    Returns
    -------
    tuple
        Low and high; both None where there was no trial.

    Raises
    ------
    InputError
        Where k or n is not whole, negative or not a number, or k exceeds n.

    References
    ----------
    .. [1] Wilson (1927), J. Am. Stat. Assoc. 22, 209-212.
    .. [2] Newcombe (1998), Two-sided confidence intervals for the single proportion. Stat. Med. 17, 857-872.

    Examples
    --------
    >>> low, high = wilson(15, 148)
    >>> round(low, 4), round(high, 4)
    (0.0624, 0.1605)
    >>> wilson(0, 0)
    (None, None)
    """
    hits, trials = _trials(k, n)
    z = normal_quantile(confidence)
    return _bounds(hits / trials, trials, z) if trials else (None, None)


def wilson_continuity(k: Any, n: Any, confidence: float = 0.95) -> Bounds:
    """Wilson's interval with continuity correction: wider, and never the default.

    References
    ----------
    .. [1] Newcombe (1998), Stat. Med. 17, 857-872, method 4.

    Examples
    --------
    >>> low, high = wilson_continuity(1, 29)
    >>> round(low, 4), round(high, 4)
    (0.0018, 0.1963)
    """
    hits, trials = _trials(k, n)
    z = normal_quantile(confidence)
    if not trials:
        return None, None
    p, squared = hits / trials, z * z
    under, over = squared - 2 - 1 / trials, squared + 2 - 1 / trials
    down = z * math.sqrt(under + 4 * p * (trials * (1 - p) + 1)) if hits else 0.0
    up = z * math.sqrt(over + 4 * p * (trials * (1 - p) - 1)) if hits < trials else 0.0
    low = max(0.0, (2 * hits + squared - 1 - down) / (2 * (trials + squared))) if hits else 0.0
    high = min(1.0, (2 * hits + squared + 1 + up) / (2 * (trials + squared))) if hits < trials else 1.0
    return low, high


def simultaneous_wilson(k: Any, n: Any, subgroups: int, confidence: float = 0.95) -> Bounds:
    """Wilson's interval, widened so that the intervals of all ``subgroups`` hold together (Bonferroni).

    Examples
    --------
    >>> low, high = simultaneous_wilson(90, 100, subgroups=10)
    >>> round(low, 4), round(high, 4)
    (0.7846, 0.957)
    """
    hits, trials = _trials(k, n)
    normal_quantile(confidence)
    z = bonferroni_z(subgroups, 1 - confidence)
    return _bounds(hits / trials, trials, z) if trials else (None, None)


def clopper_pearson(k: Any, n: Any, confidence: float = 0.95, side: Literal["two", "low"] = "two") -> Bounds:
    """Exact interval: covers at least as often as it says, for any n.

    Parameters
    ----------
    k, n
        Whole numbers, ``0 <= k <= n``.
    confidence
        Between 0 and 1.
    side
        ``"two"`` for both bounds, ``"low"`` for the one-sided lower bound (its high is 1.0).

    References
    ----------
    .. [1] Clopper and Pearson (1934), Biometrika 26, 404-413.

    Examples
    --------
    >>> low, high = clopper_pearson(7, 50)
    >>> round(low, 4), round(high, 4)
    (0.0582, 0.2674)
    >>> round(clopper_pearson(59, 59, side="low")[0], 3)
    0.95
    """
    from scipy.special import betaincinv

    hits, trials = _trials(k, n)
    normal_quantile(confidence)
    if side not in ("two", "low"):
        raise ConfigError(f"side must be 'two' or 'low', got {side!r}")
    if not trials:
        return None, None
    tail = (1 - confidence) / (2 if side == "two" else 1)
    low = float(betaincinv(hits, trials - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, trials - hits, 1 - tail)) if side == "two" and hits < trials else 1.0
    return low, high


def kish_effective(n: Any) -> float:
    """How many clusters of equal size would weigh as evenly as these: (Σn)² / Σn². No trials: 0.

    References
    ----------
    .. [1] Kish (1965), Survey Sampling.

    Examples
    --------
    >>> kish_effective([10, 10, 10]), round(kish_effective([200, 5, 5, 5, 5, 5]), 2)
    (3.0, 1.26)
    """
    size = [whole_count(value, "n") for value in np.asarray(n).tolist()]
    squares = sum(value * value for value in size)
    return sum(size) ** 2 / squares if squares else 0.0


@dataclass(frozen=True, slots=True)
class ClusteredWilson:
    """A proportion with the interval that its clusters allow.

    ``n_eff`` is the number of independent trials worth as much, before the adjustment for few clusters (``n_star``
    after it). ``design_effect`` is the one that was used. ``marks`` may hold ``deff_floor`` and ``few_clusters``;
    ``reason`` says why there is no interval.
    """

    value: float | None
    low: float | None
    high: float | None
    clusters: int
    effective_clusters: float
    design_effect: float | None
    n_eff: float | None
    marks: tuple[str, ...] = ()
    reason: str | None = None
    n_star: float | None = None
    dropped: int = 0


def clustered_wilson(k: Any, n: Any, confidence: float = 0.95) -> ClusteredWilson:
    """Wilson's interval on the effective number of trials: the headline interval wherever clusters are known.

    The spread over clusters gives a design effect of at least 1; the trials divided by it, scaled by (z/t)² with
    C − 1 degrees of freedom [1]_, enter Wilson's formula. Where fewer than 5 clusters hold an error, or fewer than 5
    hold a hit, the spread cannot be estimated, and the design effect is at least what a correlation of 0.1 inside
    clusters would give (``deff_floor``, where that is what counts). Fewer than 10 clusters, or fewer than 5
    effective ones, are marked ``few_clusters``.

    Parameters
    ----------
    k, n : (clusters,)
        Hits and trials of each cluster, whole numbers. Clusters without trials are dropped and counted.
    confidence
        Between 0 and 1.

    Returns
    -------
    ClusteredWilson
        Without interval for a single cluster (``single_cluster``) and without trials (``no_support``).

    References
    ----------
    .. [1] Korn and Graubard (1998), Confidence intervals for proportions with small expected number of positive
       counts estimated from survey data. Survey Methodology 24, 193-201.

    Examples
    --------
    >>> found = clustered_wilson([45, 3, 18, 1, 7], [50, 5, 20, 10, 8])
    >>> round(found.design_effect, 2), found.marks
    (6.72, ('few_clusters',))
    >>> clustered_wilson([10] * 12, [10] * 12).marks
    ('deff_floor',)
    >>> clustered_wilson([8], [10]).reason
    'single_cluster'
    """
    return clustered_wilson_by(k, n, confidence)


def clustered_wilson_by(
    k: Any,
    n: Any,
    confidence: float = 0.95,
    *,
    df_adjust: bool = True,
    clamp_at_1: bool = True,
    correlation_floor: float = ASSUMED_CORRELATION,
) -> ClusteredWilson:
    """:func:`clustered_wilson` with its three rules as switches, to be held against other definitions.

    Examples
    --------
    >>> found = clustered_wilson_by([8, 5, 9, 2], [10, 10, 10, 10], df_adjust=False, correlation_floor=0.0)
    >>> round(found.low, 4), round(found.high, 4)
    (0.308, 0.8349)
    """
    z = normal_quantile(confidence)
    spread = cluster_spread(k, n)
    N, C = spread.trials, spread.clusters
    kish = N * N / spread.squares if N else 0.0
    value = spread.hits / N if N else None
    few = ("few_clusters",) if C < FEW_CLUSTERS or kish < FEW_EFFECTIVE_CLUSTERS else ()
    deff, floored = _used_design_effect(spread, clamp_at_1, correlation_floor)
    if value is None or C == 1 or deff is None:
        reason = "no_support" if value is None else "single_cluster" if C == 1 else "deff_undefined"
        return ClusteredWilson(value, None, None, C, kish, None, None, few if N else (), reason, dropped=spread.dropped)
    n_eff = N / deff
    n_star = n_eff * (z / _t(confidence, C - 1)) ** 2 if df_adjust else n_eff
    low, high = _bounds(value, n_star, z)
    marks = (("deff_floor",) if floored else ()) + few
    return ClusteredWilson(value, low, high, C, kish, deff, n_eff, marks, None, n_star, spread.dropped)


def _used_design_effect(spread: Spread, clamp_at_1: bool, correlation_floor: float) -> tuple[float | None, bool]:
    """The design effect to divide by (None where there is none), and whether the assumed correlation set it."""
    deff = spread.design_effect
    if deff is not None and clamp_at_1:
        deff = max(1.0, deff)
    sparse = min(spread.with_error, spread.with_hit) < SPARSE_CLUSTERS
    if sparse and correlation_floor > 0 and spread.clusters > 1:
        floor = 1 + (spread.squares / spread.trials - 1) * correlation_floor
        if deff is None or floor > deff:
            return floor, True
    return (deff or None), False


def smallest_n(limit: float, direction: Literal["at_least", "at_most"], confidence: float = 0.95) -> int | None:
    """Fewest trials with which a perfect result could clear a limit by its interval; None where none could.

    Decided on rounded bounds, as gates are.

    Examples
    --------
    >>> smallest_n(0.9, "at_least"), smallest_n(0.05, "at_most")
    (35, 73)
    >>> smallest_n(1.0, "at_least") is None
    True
    """
    if direction not in ("at_least", "at_most"):
        raise ConfigError(f"direction must be 'at_least' or 'at_most', got {direction!r}")
    if not math.isfinite(limit):
        raise ConfigError(f"limit must be a finite number, got {limit!r}")
    miss = 1 - limit if direction == "at_least" else limit
    if miss <= 0:
        return None
    if miss >= 1:
        return 1
    guess = max(1, math.ceil(normal_quantile(confidence) ** 2 * (1 - miss) / miss))

    def clears(n: int) -> bool:
        low, high = wilson(n if direction == "at_least" else 0, n, confidence)
        assert low is not None
        assert high is not None
        return round12(low) >= limit if direction == "at_least" else round12(high) <= limit

    while guess > 1 and clears(guess - 1):
        guess -= 1
    while not clears(guess):
        guess += 1
    return guess
