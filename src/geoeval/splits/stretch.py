"""Bands of any real type as 8-bit pictures: each stretched from its 2nd to its 98th percentile, the rest its median."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.model import FloatArray

ByteArray = NDArray[np.uint8]

#: Percentiles that become 0 and 255.
STRETCH = (2, 98)


def to_8bit(bands: NDArray[Any], valid: NDArray[np.bool_] | None = None) -> ByteArray:
    """The image that is hashed: bands stretched, averaged, and rounded.

    Parameters
    ----------
    bands
        (bands, rows, columns) or (rows, columns), any real type. Values that are not finite count as without data.
    valid
        (bands, rows, columns) or (rows, columns), False where there are no data.

    Examples
    --------
    >>> to_8bit(np.array([[300, 300, 5400, 5400]], dtype=np.uint16)).tolist()
    [[0, 0, 255, 255]]
    >>> to_8bit(np.full((1, 3), 7)).tolist()
    [[0, 0, 0]]
    """
    return averaged(stretched(bands, valid))


def stretched(bands: NDArray[Any], valid: NDArray[np.bool_] | None = None) -> ByteArray:
    """Each band from 0 to 255 in whole steps; constant bands are 0 throughout. Arguments as for :func:`to_8bit`.

    Examples
    --------
    >>> stretched(np.array([[[5, 5, 9, 9]], [[7, 7, 7, 7]]])).tolist()
    [[[0, 0, 255, 255]], [[0, 0, 0, 0]]]
    """
    stack = np.asarray(bands)
    stack = stack[None] if stack.ndim == 2 else stack
    if stack.ndim != 3 or not stack.size:
        raise ValueError(f"bands must be (bands, rows, columns) with at least one cell, got shape {stack.shape}")
    seen = np.broadcast_to(True, stack.shape) if valid is None else np.broadcast_to(valid, stack.shape)
    out = np.zeros(stack.shape, dtype=np.uint8)
    for at, (band, has_data) in enumerate(zip(stack, seen, strict=True)):
        out[at] = _by_table(band, has_data) if band.dtype in (np.uint8, np.uint16) else _by_value(band, has_data)
    return out


def averaged(bands: ByteArray) -> ByteArray:
    """The mean of 8-bit bands, rounded up from a half.

    Examples
    --------
    >>> averaged(np.array([[[0, 9]], [[1, 9]]], dtype=np.uint8)).tolist()
    [[1, 9]]
    """
    total = bands.sum(axis=0, dtype=np.uint32)
    mean: ByteArray = ((2 * total + len(bands)) // (2 * len(bands))).astype(np.uint8)
    return mean


def _by_table(band: NDArray[Any], has_data: NDArray[np.bool_]) -> ByteArray:
    """As :func:`_by_value`, by counting: small integers are looked up rather than sorted."""
    count = np.bincount(band.ravel() if has_data.all() else band[has_data], minlength=1)
    if not count.any():
        return np.zeros(band.shape, dtype=np.uint8)
    table, middle = _stretch(np.arange(np.iinfo(band.dtype).max + 1, dtype=np.float64), *_counted(count))
    shown: ByteArray = table[band] if has_data.all() else np.where(has_data, table[band], middle)
    return shown


def _counted(count: NDArray[np.intp]) -> tuple[float, float, float, float, float]:
    """Least, 2nd, 50th, 98th percentile (linear between neighbours) and greatest of counted integers."""
    reached = np.cumsum(count)
    present = np.flatnonzero(count)
    found = []
    for share in (STRETCH[0] / 100, 0.5, STRETCH[1] / 100):
        at = share * (int(reached[-1]) - 1)
        below = int(np.floor(at))
        one, two = np.searchsorted(reached, [below, min(below + 1, int(reached[-1]) - 1)], side="right").tolist()
        part = at - below
        found.append(one + (two - one) * part if part < 0.5 else two - (two - one) * (1 - part))
    return float(present[0]), *found, float(present[-1])


def _by_value(band: NDArray[Any], has_data: NDArray[np.bool_]) -> ByteArray:
    values = np.asarray(band, dtype=np.float64)
    seen = has_data & np.isfinite(values)
    if not seen.any():
        return np.zeros(values.shape, dtype=np.uint8)
    known = values[seen]
    low, middle, high = np.percentile(known, [STRETCH[0], 50, STRETCH[1]]).tolist()
    shown, fill = _stretch(np.where(seen, values, middle), known.min(), low, middle, high, known.max())
    picture: ByteArray = np.where(seen, shown, fill)
    return picture


def _stretch(values: FloatArray, least: float, low: float, middle: float, high: float, most: float) -> Any:
    """Values from 0 to 255, and the middle one."""
    if high <= low:
        # A few bright things on an even ground: all there is to see lies beyond the percentiles.
        low, high = least, most
    if high <= low:
        return np.zeros(values.shape, dtype=np.uint8), np.uint8(0)
    both = np.append(values.ravel(), middle)
    both = np.floor(np.clip((both - low) / (high - low), 0, 1) * 255 + 0.5).astype(np.uint8)
    return both[:-1].reshape(values.shape), both[-1]
