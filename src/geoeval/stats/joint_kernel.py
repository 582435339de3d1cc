"""Compiled loops behind :mod:`geoeval.stats.joint`; import them lazily."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def joint_table(prediction: Any, reference: Any, valid: Any, span_p: int, span_r: int) -> Any:
    """Counts (span_p, span_r) of pairs of codes from 0 on, over the valid cells of tables (rows, columns).

    Examples
    --------
    >>> a, everywhere = np.array([[0, 1, 1]]), np.ones((1, 3), dtype=np.bool_)
    >>> joint_table(a, a, everywhere, 2, 2).tolist()
    [[1, 0], [0, 2]]
    """
    # Four tables in turn: along a run of one class, one table would wait for its own last addition.
    out = np.zeros((4, span_p, span_r), dtype=np.int64)
    for row in range(prediction.shape[0]):
        for column in range(prediction.shape[1]):
            if valid[row, column]:
                out[column & 3, prediction[row, column], reference[row, column]] += 1
    return out.sum(axis=0)
