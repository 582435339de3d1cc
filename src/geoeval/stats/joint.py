"""How often each pair of codes meets in two arrays: dense tables for close codes, sparse ones for any others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.model import IntArray
from geoeval.stats.tally import Bins

#: Largest dense table of counts, in cells.
_DENSE = 1 << 22

#: From so many pixels on, compiling a kernel costs less than it saves.
COMPILED_PX = 300_000_000


def joint_counts(
    prediction: NDArray[Any], reference: NDArray[Any], valid: NDArray[np.bool_], *, compiled: bool = False
) -> Bins:
    """Count pairs of codes where ``valid``, keyed by (prediction, reference).

    Parameters
    ----------
    prediction, reference
        Whole-number codes of any integer type, one shape; negative and huge ones are codes like others.
    valid
        Where to count.
    compiled
        True to use the compiled kernel for dense tables; the counts are the same.

    Raises
    ------
    ValueError
        A code does not fit into a signed 64-bit integer.

    Examples
    --------
    >>> table = joint_counts(np.array([1, 1, 2]), np.array([1, 2, 9]), np.array([True, True, False]))
    >>> table.keys.tolist(), table.counts.tolist()
    ([[1, 1], [1, 2]], [1, 1])
    """
    whole = bool(valid.all())
    if not whole and not valid.any():
        return Bins.of(np.zeros((0, 2), dtype=np.int64))
    if compiled:
        return _compiled(prediction, reference, valid)
    p = prediction.reshape(-1) if whole else prediction[valid]
    r = reference.reshape(-1) if whole else reference[valid]
    if p.dtype.itemsize == 1 and r.dtype.itemsize == 1:
        return _bytes(p, r)
    (low_p, span_p), (low_r, span_r) = _range(p), _range(r)
    if span_p * span_r <= _DENSE:
        at = (p.astype(np.int64) - low_p) * span_r + (r.astype(np.int64) - low_r)
        return _table(np.bincount(at, minlength=span_p * span_r).reshape(span_p, span_r), low_p, low_r)
    return _sparse(p.astype(np.int64), r.astype(np.int64))


def _bytes(p: NDArray[Any], r: NDArray[Any]) -> Bins:
    at = p.view(np.uint8).astype(np.uint16)
    at <<= 8
    at |= r.view(np.uint8)
    table = np.bincount(at, minlength=1 << 16).reshape(256, 256)
    codes_p = np.arange(256, dtype=np.uint8).view(p.dtype).astype(np.int64)
    codes_r = np.arange(256, dtype=np.uint8).view(r.dtype).astype(np.int64)
    i, j = np.nonzero(table)
    return Bins.of(np.column_stack([codes_p[i], codes_r[j]]), table[i, j])


def _range(codes: NDArray[Any]) -> tuple[int, int]:
    """Smallest code, and how many there are up to the largest."""
    low, high = int(codes.min()), int(codes.max())
    if high >= 2**63:
        raise ValueError(f"class code {high} does not fit into a signed 64-bit integer; recode it")
    return low, high - low + 1


def _table(table: NDArray[Any], low_p: int, low_r: int) -> Bins:
    i, j = np.nonzero(table)
    return Bins.of(np.column_stack([i + low_p, j + low_r]), table[i, j])


def _sparse(p: IntArray, r: IntArray) -> Bins:
    codes_p, i = np.unique(p, return_inverse=True)
    codes_r, j = np.unique(r, return_inverse=True)
    if len(codes_p) * len(codes_r) > _DENSE:
        return Bins.of(np.column_stack([p, r]))
    table = np.bincount(i * len(codes_r) + j, minlength=len(codes_p) * len(codes_r))
    at = np.flatnonzero(table)
    return Bins.of(np.column_stack([codes_p[at // len(codes_r)], codes_r[at % len(codes_r)]]), table[at])


def _compiled(prediction: NDArray[Any], reference: NDArray[Any], valid: NDArray[np.bool_]) -> Bins:
    from geoeval.stats.joint_kernel import joint_table, value_range

    low_p, high_p = (int(value) for value in value_range(prediction, valid))
    low_r, high_r = (int(value) for value in value_range(reference, valid))
    if max(high_p, high_r) >= 2**63:
        raise ValueError(f"class code {max(high_p, high_r)} does not fit into a signed 64-bit integer; recode it")
    span_p, span_r = high_p - low_p + 1, high_r - low_r + 1
    if span_p * span_r > _DENSE:
        return _sparse(prediction[valid].astype(np.int64), reference[valid].astype(np.int64))
    return _table(joint_table(prediction, reference, valid, low_p, low_r, span_p, span_r), low_p, low_r)
