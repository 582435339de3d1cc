"""Paired differences: a candidate against an incumbent, both from the same redraws of the same clusters.

Conventions   difference = candidate − incumbent, in the figure's own unit; gain = the same, turned so that positive
              means that the candidate is better: incumbent − candidate where less is better, |incumbent| − |candidate|
              where 0 is best.
Exactness     two values that agree to 12 significant digits do not differ: their difference is exactly 0.
Few           an interval of few clusters, or of few clusters that differ at all, decides nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from geoeval.model import FloatArray
from geoeval.stats.bootstrap import percentile_interval
from geoeval.stats.rounding import round12
from geoeval.stats.selective import Decision, adoption

Better = Literal["more", "less", "nearer_zero"]

#: Values closer than this, relative to the larger, are one value in twelve digits.
_SAME = 1e-12


def differences(incumbent: NDArray[np.floating], candidate: NDArray[np.floating]) -> FloatArray:
    """Candidate − incumbent, element by element; exactly 0 where both agree to 12 digits, NaN where one is undefined.

    Examples
    --------
    >>> differences(np.array([0.5, 0.3, np.nan]), np.array([0.75, 0.1 + 0.2, 1.0]))
    array([0.25, 0.  ,  nan])
    """
    old, new = np.asarray(incumbent, dtype=np.float64), np.asarray(candidate, dtype=np.float64)
    apart = new - old
    return np.where(np.abs(apart) <= _SAME * np.maximum(np.abs(old), np.abs(new)), 0.0, apart)


def gains(incumbent: NDArray[np.floating], candidate: NDArray[np.floating], better: Better) -> FloatArray:
    """How much better the candidate is, element by element: positive where it is better.

    Examples
    --------
    >>> old, new = np.array([0.5, -2.0]), np.array([0.25, 1.0])
    >>> gains(old, new, "more"), gains(old, new, "less"), gains(old, new, "nearer_zero")
    (array([-0.25,  3.  ]), array([ 0.25, -3.  ]), array([0.25, 1.  ]))
    """
    if better == "more":
        return differences(incumbent, candidate)
    if better == "less":
        return differences(candidate, incumbent)
    return differences(np.abs(candidate), np.abs(incumbent))


def least_differing(confidence: float = 0.95) -> int:
    """Fewest clusters that must differ before a difference can be shown.

    With d clusters that differ, all in one direction, an exact sign test has a two-sided p of 2⁻⁽ᵈ⁻¹⁾; fewer clusters
    than make that at most 1 − confidence show nothing, whatever their percentiles say.

    Examples
    --------
    >>> least_differing(), least_differing(0.9)
    (6, 5)
    """
    return math.ceil(1 - math.log2(1 - confidence) - 1e-9)


@dataclass(frozen=True, slots=True)
class PairedInterval:
    """Where a difference lies, and what follows.

    ``low`` and ``high`` bound the difference, ``gain_low`` and ``gain_high`` the gain; ``undefined`` counts redraws
    without a value. ``reason`` says why there is no interval.
    """

    low: float | None
    high: float | None
    gain_low: float | None
    gain_high: float | None
    decision: Decision
    redraws: int = 0
    undefined: int = 0
    reason: str | None = None


def paired_interval(
    incumbent: FloatArray, candidate: FloatArray, better: Better | None, confidence: float = 0.95, *, few: bool = False
) -> PairedInterval:
    """Percentiles of the differences of two figures, redraw by redraw.

    Parameters
    ----------
    incumbent, candidate : (redraws,)
        Both figures in the same redraws, NaN where undefined.
    better
        Which way is better; None for a figure that is neither good nor bad, which decides nothing.
    few
        Whether too few clusters stand behind it: then nothing is decided.

    Examples
    --------
    >>> old = np.linspace(0.5, 0.6, 50)
    >>> paired_interval(old, old + 0.1, "more").decision, paired_interval(old, old + 0.1, "less").decision
    ('adopt', 'block')
    >>> paired_interval(old, old, "more").decision
    'inconclusive'
    """
    values = differences(incumbent, candidate)
    undefined = int(np.count_nonzero(~np.isfinite(values)))
    bounds = percentile_interval(values, confidence)
    if bounds is None:
        reason = "unstable_bootstrap" if len(values) else "no_interval"
        return PairedInterval(None, None, None, None, "inconclusive", len(values), undefined, reason)
    of_gain = percentile_interval(gains(incumbent, candidate, better), confidence) if better is not None else None
    low, high = of_gain if of_gain is not None else (None, None)
    decided: Decision = "inconclusive"
    if low is not None and high is not None and not few:
        # Rounded, so that the decision agrees with the published bounds.
        decided = adoption(round12(low), round12(high))
    return PairedInterval(bounds[0], bounds[1], low, high, decided, len(values), undefined)
