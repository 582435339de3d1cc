"""One compiled pass over a pair of windows: sums, extremes and both histograms. Import it only where it is used.

The arithmetic is that of :mod:`geoeval.stats.error_cells` step by step, so the results are identical to the last bit.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

#: Errors that are worked on at once: their scratch stays in the innermost cache.
RUN = 1024


@numba.njit(cache=True, nogil=True)
def _add_whole(values: NDArray[np.float64], n: int, sums: NDArray[np.int64], at: int) -> None:
    """Add whole numbers below 2**82, split at 2**40, to the sums ``at`` and ``at + 1``."""
    high, low = np.int64(0), np.int64(0)
    for i in range(n):
        upper = np.floor(values[i] * 2.0**-40)
        high += np.int64(upper)
        low += np.int64(values[i] - upper * 2.0**40)
    sums[at] += high
    sums[at + 1] += low


@numba.njit(cache=True, nogil=True)
def _add_run(
    errors: NDArray[np.float64],
    n: int,
    offset: float,
    scratch: NDArray[np.float64],
    single: NDArray[np.float32],
    fine: NDArray[np.int64],
    coarse: NDArray[np.int64],
    sums: NDArray[np.int64],
) -> None:
    """Add ``n`` errors near the offset to the sums and to both histograms."""
    for i in range(n):
        scratch[i] = np.rint(abs(errors[i]) * 1e12)
    _add_whole(scratch, n, sums, 0)
    for i in range(n):
        scratch[i] = np.rint((errors[i] - offset) * 1e12)
    _add_whole(scratch, n, sums, 2)
    for i in range(n):
        d = errors[i] - offset
        scratch[i] = np.rint((d * d) * 1e18)
    _add_whole(scratch, n, sums, 4)
    for i in range(n):
        d = errors[i] - offset
        scratch[i] = np.rint(((d * d) * d) * 1e15)
    _add_whole(scratch, n, sums, 6)
    for i in range(n):
        d = errors[i] - offset
        scratch[i] = np.rint(((d * d) * (d * d)) * 1e12)
    _add_whole(scratch, n, sums, 8)
    for i in range(n):
        single[i] = np.float32((errors[i] - offset) + 0.0) + np.float32(0.0)
    raw = single.view(np.uint32)
    sign = np.uint32(0x80000000)
    for i in range(n):
        bits = raw[i]
        ordered = bits ^ np.uint32(0xFFFFFFFF) if bits & sign else bits | sign
        fine[ordered >> np.uint32(11)] += 1
        coarse[ordered >> np.uint32(17)] += 1


@numba.njit(cache=True, nogil=True)
def window_errors(
    reference: NDArray[Any],
    prediction: NDArray[Any],
    reference_valid: NDArray[np.bool_],
    prediction_valid: NDArray[np.bool_],
    offset: float,
    factor: float,
    fine: NDArray[np.int64],
    coarse: NDArray[np.int64],
    sums: NDArray[np.int64],
    extremes: NDArray[np.float64],
    far: NDArray[np.float64],
    counts: NDArray[np.int64],
) -> int:
    """Add one window of at most 2**20 cells; returns how many errors were too far from the offset and went to ``far``.

    ``sums`` (10,) are upper and lower parts of the sums of |e|, d, d², d³, d⁴; ``counts`` (5,) are cells that are
    joint, reference only, prediction only, neither, and joint but not finite; ``extremes`` (2,) are the least and the
    greatest error.
    """
    rows, columns = reference.shape
    errors = np.empty(RUN, dtype=np.float64)
    scratch = np.empty(RUN, dtype=np.float64)
    single = np.empty(RUN, dtype=np.float32)
    lowest, highest = extremes[0], extremes[1]
    outside, held = 0, 0
    for row in range(rows):
        for column in range(columns):
            a = reference_valid[row, column]
            b = prediction_valid[row, column]
            if not (a and b):
                counts[1 if a else 2 if b else 3] += 1
                continue
            error = (np.float64(prediction[row, column]) - np.float64(reference[row, column])) * factor
            if not abs(error) < 1e60:
                counts[4] += 1
                continue
            counts[0] += 1
            lowest = min(lowest, error)
            highest = max(highest, error)
            if abs(error - offset) > 512.0 or abs(error) > 1e9:
                far[outside] = error
                outside += 1
                continue
            errors[held] = error
            held += 1
            if held == RUN:
                _add_run(errors, held, offset, scratch, single, fine, coarse, sums)
                held = 0
    _add_run(errors, held, offset, scratch, single, fine, coarse, sums)
    extremes[0] = lowest
    extremes[1] = highest
    return outside


@numba.njit(cache=True, nogil=True)
def drain(counts: NDArray[np.int64], keys: NDArray[np.int64], found: NDArray[np.int64]) -> int:
    """Move the counts that are not 0 to ``keys`` and ``found`` and clear them; returns how many there were."""
    n = 0
    for key in range(len(counts)):
        if counts[key] != 0:
            keys[n] = key
            found[n] = counts[key]
            counts[key] = 0
            n += 1
    return n
