"""What a list of observations must be before anything is ranked, binned or compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from geoeval.errors import InputError
from geoeval.model import FloatArray, IntArray


def _first(wrong: Any, values: Any) -> str:
    at = int(np.flatnonzero(wrong)[0])
    return f"{values[at]!r} in row {at}"


def finite(values: Any, name: str) -> FloatArray:
    """A column of finite numbers (n,); NaN and infinity are refused.

    Examples
    --------
    >>> finite([0.5, 1], "confidence")
    array([0.5, 1. ])
    """
    column = np.asarray(values, dtype=np.float64)
    if column.ndim != 1:
        raise InputError(f"{name} must be one column, got an array of shape {column.shape}")
    wrong = ~np.isfinite(column)
    if wrong.any():
        raise InputError(f"{name} must be finite, got {_first(wrong, column.tolist())}; leave out what was abstained")
    return column


def unit_interval(values: Any, name: str) -> FloatArray:
    """A column of numbers in [0, 1] (n,); anything else is refused.

    Examples
    --------
    >>> unit_interval([0, 1], "confidence")
    array([0., 1.])
    """
    column = finite(values, name)
    wrong = (column < 0) | (column > 1)
    if wrong.any():
        raise InputError(f"{name} must lie in [0, 1], got {_first(wrong, column.tolist())}; is it a percentage?")
    return column


def flags(values: Any, name: str, n: int) -> IntArray:
    """A column of ``n`` zeros and ones, or booleans.

    Examples
    --------
    >>> flags([True, False], "error", 2)
    array([1, 0])
    """
    column = finite(values, name)
    if len(column) != n:
        raise InputError(f"{name} needs one entry for each of the {n} observations, got {len(column)}")
    wrong = (column != 0) & (column != 1)
    if wrong.any():
        raise InputError(f"{name} must be 0 or 1, got {_first(wrong, column.tolist())}")
    return column.astype(np.int64)


def whole_weights(weights: Any, n: int) -> IntArray:
    """How often each of ``n`` observations counts: whole numbers of at least 0, or None for once each.

    Examples
    --------
    >>> whole_weights(None, 2)
    array([1, 1])
    """
    if weights is None:
        return np.ones(n, dtype=np.int64)
    column = finite(weights, "weights")
    if len(column) != n:
        raise InputError(f"weights need one entry for each of the {n} observations, got {len(column)}")
    wrong = (column < 0) | (column != np.floor(column))
    if wrong.any():
        raise InputError(f"weights must be whole numbers of at least 0, got {_first(wrong, column.tolist())}")
    return column.astype(np.int64)


def starts_of_ties(ordered: FloatArray) -> IntArray:
    """Where each block of equal values begins in an ordered column.

    Examples
    --------
    >>> starts_of_ties(np.array([0.9, 0.9, 0.4]))
    array([0, 2])
    """
    if not len(ordered):
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])).astype(np.int64)
