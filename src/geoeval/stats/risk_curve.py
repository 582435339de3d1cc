"""The risk-coverage curve itself: the error rate among the k surest, for every k.

Formula       R_k = (E + e·(k − a) / m) / k: k lies in a block of m equal confidences with e errors, with a observations
              and E errors before it. It is the mean of R_k over all orders inside the block.
Range         [0, 1]; R_N is the error rate of all. The mean over k is AURC.
Undefined     empty arrays without observations.
Source        Geifman and El-Yaniv (2017), Selective classification for deep neural networks. NeurIPS.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from geoeval.model import FloatArray
from geoeval.stats.columns import finite, flags, starts_of_ties


def risk_curve(confidence: Any, error: Any) -> tuple[FloatArray, FloatArray]:
    """Coverage k / N and selective risk R_k for k = 1 … N, equal confidences averaged; any order of rows.

    Parameters
    ----------
    confidence : (n,)
        Finite numbers, higher is surer.
    error : (n,)
        0 or 1.

    Examples
    --------
    >>> coverage, risk = risk_curve([0.9, 0.5, 0.5], [0, 1, 0])
    >>> risk.round(6).tolist()
    [0.0, 0.25, 0.333333]
    """
    score = finite(confidence, "confidence")
    wrong = flags(error, "error", len(score))
    n = len(score)
    order = np.argsort(-score, kind="stable")
    start = starts_of_ties(score[order])
    if not n:
        return np.zeros(0), np.zeros(0)
    size = np.diff(np.append(start, n))
    errors = np.add.reduceat(wrong[order], start)
    before = np.cumsum(errors) - errors
    at = np.repeat(np.arange(len(start)), size)
    k = np.arange(1, n + 1, dtype=np.int64)
    # Whole numbers up to the one division, so that the order inside a block leaves no trace.
    risk = (before[at] * size[at] + errors[at] * (k - start[at])) / (size[at] * k)
    return k / n, np.asarray(risk, dtype=np.float64)
