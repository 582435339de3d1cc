"""Compiled loops behind :mod:`geoeval.stats.joint`; import them lazily."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def value_range(codes: Any, valid: Any) -> Any:
    """Smallest and largest code where ``valid`` (rows, columns), of which one cell at least must be true.

    Examples
    --------
    >>> low, high = value_range(np.array([[4, 1, 9]]), np.array([[True, True, False]]))
    >>> int(low), int(high)
    (1, 4)
    """
    low, high = codes[0, 0], codes[0, 0]
    first = True
    for row in range(codes.shape[0]):
        for column in range(codes.shape[1]):
            if valid[row, column]:
                code = codes[row, column]
                if first or code < low:
                    low = code
                if first or code > high:
                    high = code
                first = False
    return low, high


@numba.njit(cache=True, nogil=True)
def joint_table(prediction: Any, reference: Any, valid: Any, low_p: int, low_r: int, span_p: int, span_r: int) -> Any:
    """Counts (span_p, span_r) of pairs of codes, counted from the lowest of either side.

    Examples
    --------
    >>> a, all_valid = np.array([[1, 2, 2]]), np.ones((1, 3), dtype=np.bool_)
    >>> joint_table(a, a, all_valid, 1, 1, 2, 2).tolist()
    [[1, 0], [0, 2]]
    """
    out = np.zeros((span_p, span_r), dtype=np.int64)
    for row in range(prediction.shape[0]):
        for column in range(prediction.shape[1]):
            if valid[row, column]:
                out[np.int64(prediction[row, column]) - low_p, np.int64(reference[row, column]) - low_r] += 1
    return out
