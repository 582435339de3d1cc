"""Compiled sums behind many redraws of a ranked list; imported only where there is enough to redraw."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

#: A sum of areas is kept exactly, as whole numbers of four limbs: the first in 2⁻¹⁰, each other in 2⁻³² of the last.
LIMBS = 4
FIRST_BITS, LIMB_BITS = 10, 32
_FIRST, _NEXT = 2.0**FIRST_BITS, 2.0**LIMB_BITS


@numba.njit(cache=True, nogil=True)
def risk_sums(
    multiplicity: Any, cluster: Any, error: Any, first: Any, start: Any, stop: Any, tables: Any, units: Any, out: Any
) -> None:
    """For every redraw the exact sum behind AURC, and the whole numbers behind the rest.

    Ranks of all observations are counted in one pass without a branch; harmonic numbers are asked for at errors only.

    Parameters
    ----------
    multiplicity : (size, clusters)
        How often each cluster counts.
    cluster : (n,)
        Of each observation, by descending confidence.
    error : (errors,)
        Positions of the errors.
    first : (blocks + 1,)
        Where the errors of each block of equal confidences begin in ``error``; only blocks with errors are listed.
    start, stop : (blocks,)
        Where each of these blocks begins and ends.
    tables : (2, most + 1)
        Harmonic numbers in two limbs.
    units : (2,)
        What one of each limb is worth.
    out : (size, 3 + LIMBS)
        Takes observations, errors, twice the sum of generalized risks, and the limbs of n times AURC.
    """
    upto = np.zeros(len(cluster) + 1, dtype=np.int32)
    weight = np.empty(multiplicity.shape[1], dtype=np.int32)
    coarse, fine = tables[0], tables[1]
    for b in range(len(multiplicity)):
        for c in range(len(weight)):
            weight[c] = multiplicity[b, c]
        seen = np.int32(0)
        for i in range(len(cluster)):
            seen += weight[cluster[i]]
            upto[i + 1] = seen
        n = np.int64(seen)
        errors = doubled = one = two = three = four = np.int64(0)
        for block in range(len(start)):
            e = np.int64(0)
            for i in range(first[block], first[block + 1]):
                e += weight[cluster[error[i]]]
            if e == 0:
                continue
            begin, end = np.int64(upto[start[block]]), np.int64(upto[stop[block]])
            m = end - begin
            errors += e
            doubled += e * (2 * n - 2 * begin - m + 1)
            inner = (coarse[end] - coarse[begin]) * units[0] + (fine[end] - fine[begin]) * units[1]
            outer = (coarse[n] - coarse[end]) * units[0] + (fine[n] - fine[end]) * units[1]
            left = e * (outer + (1.0 - begin / m * inner)) * _FIRST
            whole = np.int64(left)
            one += whole
            left = (left - whole) * _NEXT
            whole = np.int64(left)
            two += whole
            left = (left - whole) * _NEXT
            whole = np.int64(left)
            three += whole
            four += np.int64((left - whole) * _NEXT)
        out[b, 0], out[b, 1], out[b, 2] = n, errors, doubled
        out[b, 3], out[b, 4], out[b, 5], out[b, 6] = one, two, three, four


@numba.njit(cache=True, nogil=True)
def count_draws(drawn: Any, out: Any) -> None:
    """Count how often each cluster was drawn in each row.

    Examples
    --------
    >>> out = np.zeros((1, 3), dtype=np.int64)
    >>> count_draws(np.array([[0, 2, 2]]), out)
    >>> out
    array([[1, 0, 2]])
    """
    for b in range(len(drawn)):
        for i in range(drawn.shape[1]):
            out[b, drawn[b, i]] += 1
