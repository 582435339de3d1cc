"""How often each pair of codes meets in two arrays: dense tables for close codes, sparse ones for any others."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from geoeval.model import IntArray
from geoeval.stats.tally import Bins

#: Largest dense table of counts, in cells.
_DENSE = 1 << 22

#: Fewer values than this are counted one by one.
_FEW = 1 << 15

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
        True to use the compiled kernel where codes are close; the counts are the same.

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
    n = int(np.count_nonzero(valid))
    if n == 0:
        return Bins.of(np.zeros((0, 2), dtype=np.int64))
    void = valid.size - n
    small_p, small_r = _small(prediction), _small(reference)
    if void and (small_p is None or small_r is None or small_p.span * small_r.span > 255):
        # Nodata may lie far from the classes: where a cell does not count, any code of a class will do.
        small_p, small_r = _small(prediction * valid), _small(reference * valid)
    if small_p is not None and small_r is not None:
        return _compiled(small_p, small_r, valid) if compiled else _of_bytes(small_p, small_r, valid, void)
    p = prediction[valid]
    r = reference[valid]
    (low_p, span_p), (low_r, span_r) = _range(p), _range(r)
    if span_p * span_r <= _DENSE:
        at = (p.astype(np.int64) - low_p) * span_r + (r.astype(np.int64) - low_r)
        return _table(np.bincount(at, minlength=span_p * span_r).reshape(span_p, span_r), low_p, low_r)
    return _sparse(p.astype(np.int64), r.astype(np.int64))


class _Small(NamedTuple):
    """Codes as bytes above the lowest of them."""

    codes: NDArray[np.uint8]
    low: int
    span: int


def _small(codes: NDArray[Any]) -> _Small | None:
    """Codes that lie within 256 of each other, None where they do not."""
    low, high = int(codes.min()), int(codes.max())
    if high - low > 255 or high >= 2**63:
        return None
    lifted = codes if low == 0 else codes - codes.dtype.type(low)
    return _Small(lifted.astype(np.uint8, copy=False), low, high - low + 1)


def _of_bytes(p: _Small, r: _Small, valid: NDArray[np.bool_], void: int) -> Bins:
    if p.span * r.span <= (256 if void == 0 else 255):
        at = p.codes * np.uint8(r.span % 256)
        at += r.codes
        if void:
            # 255 is no pair of codes here, and is left out of the table.
            at |= np.subtract(valid.view(np.uint8), np.uint8(1))
        table = _byte_counts(at.reshape(-1))[: p.span * r.span].reshape(p.span, r.span)
        return _table(table, p.low, r.low)
    wide = p.codes.astype(np.uint16)
    wide <<= 8
    wide |= r.codes
    counts = np.bincount(wide.reshape(-1), minlength=1 << 16)
    if void:
        counts -= np.bincount(wide[~valid], minlength=1 << 16)
    at_least_one = np.flatnonzero(counts)
    keys = np.column_stack([(at_least_one >> 8) + p.low, (at_least_one & 255) + r.low])
    return Bins(keys, counts[at_least_one])


def _byte_counts(values: NDArray[np.uint8]) -> IntArray:
    """How often each byte occurs (256,); two at a time, since runs of one class would stall a plain loop."""
    if len(values) < _FEW:
        return np.bincount(values, minlength=256)
    even = len(values) // 2 * 2
    pairs = np.bincount(values[:even].view(np.uint16), minlength=1 << 16).reshape(256, 256)
    out = pairs.sum(axis=0) + pairs.sum(axis=1)
    if even < len(values):
        out[values[-1]] += 1
    return np.asarray(out, dtype=np.int64)


def _range(codes: NDArray[Any]) -> tuple[int, int]:
    """Smallest code, and how many there are up to the largest."""
    low, high = int(codes.min()), int(codes.max())
    if high >= 2**63:
        raise ValueError(f"class code {high} does not fit into a signed 64-bit integer; recode it")
    return low, high - low + 1


def _table(table: NDArray[Any], low_p: int, low_r: int) -> Bins:
    # Row by row is the order of bins already.
    i, j = np.nonzero(table)
    return Bins(np.column_stack([i + low_p, j + low_r]), table[i, j].astype(np.int64))


def _sparse(p: IntArray, r: IntArray) -> Bins:
    codes_p, i = np.unique(p, return_inverse=True)
    codes_r, j = np.unique(r, return_inverse=True)
    if len(codes_p) * len(codes_r) > _DENSE:
        return Bins.of(np.column_stack([p, r]))
    table = np.bincount(i * len(codes_r) + j, minlength=len(codes_p) * len(codes_r))
    at = np.flatnonzero(table)
    return Bins.of(np.column_stack([codes_p[at // len(codes_r)], codes_r[at % len(codes_r)]]), table[at])


def _compiled(p: _Small, r: _Small, valid: NDArray[np.bool_]) -> Bins:
    from geoeval.stats.joint_kernel import joint_table

    shape = (-1, valid.shape[-1])
    table = joint_table(p.codes.reshape(shape), r.codes.reshape(shape), valid.reshape(shape), p.span, r.span)
    return _table(table, p.low, r.low)
