"""Figures from sorted lists: quantiles, average precision, risk against coverage; with whole-number weights.

Conventions   a weight says how often an observation counts; a weighted figure equals that of the list in which each
              observation is repeated, to the last bit, and no order of the rows can change a bit.
Redraws       ``*_redraws`` sort the list once and take one cumulative pass a redraw.
Undefined     None (in redraws NaN).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from geoeval.errors import ConfigError, InputError
from geoeval.model import FloatArray, IntArray
from geoeval.stats.columns import finite, starts_of_ties, whole_weights
from geoeval.stats.risk import (
    AttainablePoints,
    Risk,
    RiskRedraws,
    attainable_points,
    augrc,
    augrc_redraws,
    aurc,
    aurc_redraws,
    eaurc,
    eaurc_redraws,
    risk,
    risk_redraws,
)
from geoeval.stats.tally import RowTotals

__all__ = [
    "RECALL_POINTS",
    "AttainablePoints",
    "Risk",
    "RiskRedraws",
    "ap_redraws",
    "attainable_points",
    "augrc",
    "augrc_redraws",
    "aurc",
    "aurc_redraws",
    "average_precision",
    "average_precision_coco",
    "eaurc",
    "eaurc_redraws",
    "quantile_redraws",
    "risk",
    "risk_redraws",
    "weighted_quantile",
]

#: COCO's 101 recalls. Kept as the floats that pycocotools uses: a recall of 0.35 lies below its 0.35000000000000003.
RECALL_POINTS: FloatArray = np.linspace(0.0, 1.0, 101)


def _share(q: float) -> float:
    if not 0 <= q <= 1:
        raise ConfigError(f"a quantile's share must lie in [0, 1], got {q!r}; is it a percentage?")
    return float(q)


def _quantile(values: FloatArray, upto: IntArray, q: float) -> float:
    """Quantile of ascending values; ``upto`` counts how many observations end at or before each."""
    n = int(upto[-1]) if len(upto) else 0
    if n == 0:
        return math.nan
    place = (n - 1) * q
    below = math.floor(place)
    share = place - below
    a, b = values[np.searchsorted(upto, [below, min(below + 1, n - 1)], side="right")].tolist()
    step = b - a
    # From the nearer end, as numpy does, so that the quantile never decreases in q.
    return float(b - step * (1 - share) if share >= 0.5 else a + step * share)


def weighted_quantile(values: Any, weights: Any, q: float) -> float | None:
    """Quantile (numpy's ``linear``, Hyndman and Fan's type 7) of the values, each repeated as often as it weighs.

    Parameters
    ----------
    values : (n,)
        Finite numbers in any order.
    weights : (n,)
        Whole numbers of at least 0, or None for 1 each.
    q
        Share in [0, 1]: 0.5 for the median.

    Returns
    -------
    float or None
        None where nothing weighs anything.

    Examples
    --------
    >>> weighted_quantile([1.0, 5.0], [3, 1], 0.5)
    1.0
    >>> weighted_quantile([], [], 0.5) is None
    True
    """
    column = finite(values, "values")
    weight = whole_weights(weights, len(column))
    order = np.argsort(column, kind="stable")
    found = _quantile(column[order], np.cumsum(weight[order]), _share(q))
    return None if math.isnan(found) else found


def quantile_redraws(rows: RowTotals, column: int, q: float) -> FloatArray:
    """Quantile of one column in every total (size,), NaN where a total is empty.

    Examples
    --------
    >>> rows = RowTotals(np.array([[1.0], [5.0]]), np.array([0, 1]), np.array([[1, 1], [2, 0], [0, 0]]))
    >>> quantile_redraws(rows, 0, 0.5)
    array([ 3.,  1., nan])
    """
    values, share = finite(rows.values[:, column], "values"), _share(q)
    order = np.argsort(values, kind="stable")
    values, cluster = values[order], rows.cluster[order]
    return np.array([_quantile(values, np.cumsum(one[cluster]), share) for one in rows.multiplicity], dtype=np.float64)


def _interpolated(tp: IntArray, fp: IntArray, n_reference: int) -> float:
    """Mean precision at 101 recalls from cumulative counts at the operating points, by descending score."""
    recall, seen = tp / n_reference, tp + fp
    precision = np.zeros(len(tp))
    np.divide(tp, seen, out=precision, where=seen > 0)
    envelope = np.append(np.maximum.accumulate(precision[::-1])[::-1], 0.0)
    at = np.searchsorted(recall, RECALL_POINTS, side="left")
    return math.fsum(envelope[at].tolist()) / len(RECALL_POINTS)


def _outcomes(values: Any, name: str, n: int) -> IntArray:
    column = finite(values, name)
    if len(column) != n:
        raise InputError(f"{name} needs one entry for each of the {n} predictions, got {len(column)}")
    if bool(np.any((column != 0) & (column != 1))):
        raise InputError(f"{name} must be 0 or 1 for every prediction")
    return column.astype(np.int64)


def _average_precision(score: Any, tp: Any, fp: Any, n_reference: int, weights: Any, *, group: bool) -> float | None:
    column = finite(score, "score")
    hit, miss = _outcomes(tp, "tp", len(column)), _outcomes(fp, "fp", len(column))
    weight = whole_weights(weights, len(column))
    order = np.argsort(-column, kind="stable")
    found, invented = np.cumsum((weight * hit)[order]), np.cumsum((weight * miss)[order])
    total = int(found[-1]) if len(found) else 0
    if n_reference < total:
        raise InputError(f"{total} hits need as many references, got {n_reference}; is one counted twice?")
    if n_reference == 0:
        return None
    if group and len(column):
        last = np.append(starts_of_ties(column[order])[1:], len(column)) - 1
        found, invented = found[last], invented[last]
    return _interpolated(found, invented, n_reference)


def average_precision(score: Any, tp: Any, fp: Any, n_reference: int, weights: Any = None) -> float | None:
    """Average precision as COCO defines it, with one operating point for each distinct score.

    Precision made monotone from the right (envelope), read at the 101 recalls 0, 0.01 … 1 (the first point that
    reaches each), averaged. Between 0 and 1; 0 without predictions; undefined without references. A cut between equal
    scores is not attainable, hence ties are grouped and the order of rows cannot matter.

    Parameters
    ----------
    score : (n,)
        Finite; higher is surer.
    tp, fp : (n,)
        0 or 1; both 0 for a prediction that is to be ignored.
    n_reference
        How many references there were to find, found or not, each counted as often as it weighs.
    weights : (n,), optional
        How often each prediction counts.

    Returns
    -------
    float or None
        None where ``n_reference`` is 0.

    References
    ----------
    .. [1] Lin et al. (2014), Microsoft COCO: Common objects in context. ECCV.

    Examples
    --------
    >>> average_precision([0.9, 0.8, 0.7], [1, 0, 1], [0, 1, 0], n_reference=2)
    0.834983498349835
    >>> average_precision([0.9], [0], [1], n_reference=0) is None
    True
    """
    return _average_precision(score, tp, fp, n_reference, weights, group=True)


def average_precision_coco(score: Any, tp: Any, fp: Any, n_reference: int, weights: Any = None) -> float | None:
    """Average precision with an operating point after every prediction, ties in the order given, as pycocotools.

    Examples
    --------
    >>> tied = ([0.5, 0.5], [1, 0], [0, 1], 1)
    >>> average_precision_coco(*tied), average_precision(*tied)
    (1.0, 0.5)
    """
    return _average_precision(score, tp, fp, n_reference, weights, group=False)


def ap_redraws(rows: RowTotals, score_col: int, tp_col: int, fp_col: int, n_reference: IntArray) -> FloatArray:
    """:func:`average_precision` of every total (size,), NaN where a total has no references.

    Parameters
    ----------
    rows
        One row a prediction.
    score_col, tp_col, fp_col
        Columns of ``rows.values``.
    n_reference : (size,)
        References in each total.

    Examples
    --------
    >>> rows = RowTotals(np.array([[0.1, 0, 1], [0.9, 1, 0]]), np.array([0, 1]), np.array([[1, 1], [2, 0], [0, 2]]))
    >>> ap_redraws(rows, 0, 1, 2, np.array([1, 0, 2]))
    array([ 1., nan,  1.])
    """
    score = finite(rows.values[:, score_col], "score")
    order = np.argsort(-score, kind="stable")
    hit = _outcomes(rows.values[:, tp_col], "tp", len(score))[order]
    miss = _outcomes(rows.values[:, fp_col], "fp", len(score))[order]
    cluster, start = rows.cluster[order], starts_of_ties(score[order])
    out = np.full(len(rows.multiplicity), np.nan)
    for at, (multiplicity, references) in enumerate(zip(rows.multiplicity, n_reference.tolist(), strict=True)):
        if references == 0:
            continue
        if not len(start):
            out[at] = 0.0
            continue
        weight = multiplicity[cluster]
        found = np.cumsum(np.add.reduceat(weight * hit, start))
        out[at] = _interpolated(found, np.cumsum(np.add.reduceat(weight * miss, start)), int(references))
    return out
