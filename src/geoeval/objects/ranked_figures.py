"""Figures of ranked detections: average precision, calibration, and the optimal point by localisation recall precision.

The rows are those that :mod:`geoeval.objects.flags` leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from geoeval.model import FloatArray, IntArray, Quantity, Scalar, scalar_value
from geoeval.objects.figures import defined, missing
from geoeval.objects.flags import SCORE, references_name
from geoeval.stats.tally import RowTotals, Totals

#: Figures that are read from scores and hits.
CONFIDENCE_FIGURES = ("ece", "brier", "aurc", "eaurc", "augrc")

_CORRECT, _WRONG, _OVERLAP = 1, 2, 3
#: Overlap at which a localisation error is complete.
_TAU = 0.5


def average_precision_figures(totals: Totals, name: str = "ap") -> tuple[Scalar, Scalar]:
    """AP at the first threshold and over all of them, each the mean over classes that have references.

    Parameters
    ----------
    name
        ``"ap"``, ``"ap[small]"`` for an area range, or ``"apd"`` for points by distance.
    """
    levels, support = _average_precisions(totals, name)
    return defined(levels[0], support), defined(levels.sum(axis=0) / len(levels), support)


def average_precision_values(totals: Totals, name: str) -> dict[str, float | None]:
    """The same two figures of the first total, as numbers."""
    first, every = average_precision_figures(totals, name)
    return {"ap50": scalar_value(first.value), "ap50_95": scalar_value(every.value)}


def confidence_figures(totals: Totals, reason: str | None = None) -> dict[str, Quantity]:
    """ECE, Brier score, and the areas under the risk-coverage curve, of all classes together."""
    from geoeval.stats.calibration import brier, ece
    from geoeval.stats.ranking import risk_redraws

    seen, n = pooled(totals, "seen@"), totals["ranked"]
    if seen is None or reason is not None:
        return {name: missing(totals, reason or "no_support", n) for name in CONFIDENCE_FIGURES}
    risk = risk_redraws(seen, SCORE, _WRONG)
    values = (_redraws(seen, ece), _redraws(seen, brier), risk.aurc, risk.eaurc, risk.augrc)
    return {name: defined(value, n) for name, value in zip(CONFIDENCE_FIGURES, values, strict=True)}


def coverage_risk_points(totals: Totals) -> tuple[FloatArray, FloatArray]:
    """Confidence of every detection, descending, and 1 where it is a hit at the first threshold, else 0."""
    seen = pooled(totals, "seen@")
    if seen is None:
        return np.zeros(0), np.zeros(0)
    values = np.repeat(seen.values, seen.weights(0), axis=0)
    values = values[np.lexsort((values[:, _CORRECT], -values[:, SCORE]))]
    return values[:, SCORE].copy(), values[:, _CORRECT].copy()


def localisation_aware_ece(totals: Totals, bins: int = 10) -> float | None:
    """LaECE of the first total: calibration against precision times mean overlap, averaged over predicted classes.

    References
    ----------
    .. [1] Oksuz, Joy and Dokania (2023), Towards building self-aware object detectors via reliable uncertainty
       quantification and calibration.
    """
    from geoeval.stats.calibration import bin_index

    found = []
    for label in totals.names("seen@"):
        score, _, overlap, weight = _first_total(totals, label)
        if not weight.sum():
            continue
        at = bin_index(score, bins)
        gap = np.bincount(at, weight * score, bins) - np.bincount(at, weight * overlap, bins)
        found.append(float(np.sum(np.abs(gap)) / weight.sum()))
    return float(np.mean(found)) if found else None


def optimal_lrp(totals: Totals) -> dict[str, Mapping[str, float | None]]:
    """Least localisation recall precision error of each class with references, and the score at which it is reached.

    ``(sum of (1 - IoU) / 0.5 over hits + inventions + misses) / (hits + inventions + misses)`` at each distinct
    score; 0 is perfect, 1 is worst. A diagnostic: it never moves the operating point.

    References
    ----------
    .. [1] Oksuz et al. (2021), One metric to measure them all: localisation recall precision (LRP) for evaluating
       visual detection tasks.
    """
    out: dict[str, Mapping[str, float | None]] = {}
    for label in totals.names("references@"):
        n = int(totals[f"references@{label}"][0])
        if not n:
            continue
        score, correct, overlap, weight = _first_total(totals, label)
        order = np.argsort(-score, kind="stable")
        score, correct, overlap, weight = score[order], correct[order], overlap[order], weight[order]
        last = np.append(score[1:] != score[:-1], True)[: len(score)]
        tp, fp = np.cumsum(weight * correct)[last], np.cumsum(weight * (1 - correct))[last]
        lost = np.cumsum(weight * correct * (1 - overlap) / (1 - _TAU))[last]
        error = (lost + fp + (n - tp)) / (n + fp)
        best = int(np.argmin(error)) if len(error) else -1
        # Accepting nothing has an error of 1.
        useful = best >= 0 and error[best] < 1
        out[label] = {
            "lrp": float(error[best]) if useful else 1.0,
            "score": float(score[last][best]) if useful else None,
        }
    return out


def pooled(totals: Totals, prefix: str) -> RowTotals | None:
    """Rows of all classes together; None where there are none."""
    parts = [rows for name, rows in sorted(totals.rows.items()) if name.startswith(prefix)]
    if len(parts) < 2:
        return parts[0] if parts else None
    values, cluster = np.concatenate([part.values for part in parts]), np.concatenate([part.cluster for part in parts])
    return RowTotals(values, cluster, parts[0].multiplicity)


def _average_precisions(totals: Totals, name: str) -> tuple[FloatArray, IntArray]:
    """AP at each threshold (levels, size), NaN where no class has references, and how many references there are."""
    from geoeval.stats.ranking import ap_redraws

    count_name = references_name(name)
    classes, support = np.zeros(totals.size), np.zeros(totals.size, dtype=np.int64)
    top: dict[int, FloatArray] = {0: np.zeros(totals.size)}
    for label in totals.names(f"{count_name}@"):
        n = totals[f"{count_name}@{label}"]
        support += n
        classes += n > 0
        rows = totals.rows.get(f"{name}@{label}")
        if rows is None:
            continue
        levels = (rows.values.shape[1] - 1) // 2
        for level in range(levels):
            found = ap_redraws(rows, SCORE, 1 + level, 1 + levels + level, n)
            top[level] = top.get(level, np.zeros(totals.size)) + np.nan_to_num(found, nan=0.0)
    value = np.full((len(top), totals.size), np.nan)
    np.divide(np.stack([top[level] for level in sorted(top)]), classes, out=value, where=classes > 0)
    return value, support


def _redraws(rows: RowTotals, figure: Callable[..., float | None]) -> FloatArray:
    """A figure of (confidence, correct, weights) in every total (size,), NaN where it is undefined."""
    confidence, correct = rows.values[:, SCORE], rows.values[:, _CORRECT]
    out = np.full(len(rows.multiplicity), np.nan)
    for at in range(len(out)):
        found = figure(confidence, correct, rows.weights(at))
        out[at] = np.nan if found is None else found
    return out


def _first_total(totals: Totals, label: str) -> tuple[Any, Any, Any, IntArray]:
    rows = totals.rows.get(f"seen@{label}")
    if rows is None:
        none = np.zeros(0)
        return none, none, none, np.zeros(0, dtype=np.int64)
    return rows.values[:, SCORE], rows.values[:, _CORRECT], rows.values[:, _OVERLAP], rows.weights(0)
