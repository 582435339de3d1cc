"""From sums to quantities: the small figures that the object families share."""

from __future__ import annotations

import numpy as np

from geoeval.model import FloatArray, IntArray, Quantity, Scalar, ratio
from geoeval.stats.counts import Counts, f1, precision, recall
from geoeval.stats.tally import Totals


def object_counts(totals: Totals) -> dict[str, Quantity]:
    """``tp``, ``fp``, ``fn``, precision, recall and F1 of sums, in print order."""
    counts = Counts(totals["tp"], totals["fp"], totals["fn"])
    return {
        "tp": count(totals, "tp", counts),
        "fp": count(totals, "fp", counts),
        "fn": count(totals, "fn", counts),
        "precision": precision(counts),
        "recall": recall(counts),
        "f1": f1(counts),
    }


def count(totals: Totals, name: str, of: Counts | None = None) -> Scalar:
    """A count as a quantity; all that was counted is its support."""
    counts = of or Counts(totals["tp"], totals["fp"], totals["fn"])
    support = np.asarray(counts.tp + counts.fp + counts.fn, dtype=np.int64)
    return Scalar(np.asarray(totals[name], dtype=np.float64), n=support)


def mean(totals: Totals, name: str, over: str = "tp", unit: str = "1", reason: str | None = None) -> Scalar:
    """Mean of a real sum over a count, undefined where the count is 0 or a reason is given."""
    n = totals[over]
    if reason is not None:
        return missing(totals, reason, n, unit)
    value = np.full(totals.size, np.nan)
    np.divide(totals.real(name), np.asarray(n, dtype=np.float64), out=value, where=np.asarray(n != 0, dtype=bool))
    return Scalar(value, n=n, unit=unit, reason="undefined_ratio" if np.all(np.isnan(value)) else None)


def missing(totals: Totals, reason: str, n: IntArray | None = None, unit: str = "1") -> Scalar:
    """A quantity without a value, and why."""
    support = np.zeros(totals.size, dtype=np.int64) if n is None else n
    return Scalar(np.full(totals.size, np.nan), n=support, unit=unit, reason=reason)


def defined(value: FloatArray, n: IntArray, unit: str = "1") -> Scalar:
    """A quantity whose value is NaN where it is undefined."""
    return Scalar(value, n=n, unit=unit, reason="undefined_ratio" if np.all(np.isnan(value)) else None)


def length_unit(totals: Totals) -> str:
    """The unit of lengths: ``m``, or ``px`` where units were in pixel coordinates."""
    others = totals.names("unit@")
    return others[0] if others else "m"


def quotient(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """Quotient of two arrays, NaN where the denominator is 0."""
    return np.asarray(ratio(top, bottom), dtype=np.float64)


def harmonic(a: FloatArray, b: FloatArray) -> FloatArray:
    """Harmonic mean: 0 where both are 0, NaN where either is undefined."""
    return np.where(a + b == 0, 0.0, quotient(2 * a * b, a + b))


def pooled(top: FloatArray, bottom: FloatArray, n: IntArray) -> Scalar:
    """A ratio of real sums with both its parts and a support of its own."""
    value = quotient(top, bottom)
    reason = "undefined_ratio" if np.all(np.isnan(value)) else None
    return Scalar(value, n=n, numerator=top, denominator=bottom, reason=reason)
