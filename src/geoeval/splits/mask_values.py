"""Masks as values: one hash for the same classes however they are compressed, tiled and typed."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.errors import InputError
from geoeval.splits.image_reading import PIXEL_LIMIT, opened_image

#: Values of a window that is hashed. Another number gives other hashes.
_HASHED_VALUES = 2**21


def values_sha256(path: str | Path, pixel_limit: int = PIXEL_LIMIT) -> str | None:
    """SHA-256 over the decoded values of a mask, whatever its compression, tiles and type; None where all are one.

    Values count as numbers: 1 is 1 as a byte, as a float and as an integer of 64 bits. What its nodata and its alpha
    band hide counts too, as far as bands hold it.

    Raises
    ------
    InputError
        As :func:`geoeval.splits.image_reading.read_image`, and where a file holds several pictures.
    """
    from rasterio.windows import Window

    first, same = None, True
    with opened_image(path, pixel_limit) as (source, bands, _):
        if pages := len(source.subdatasets):
            raise InputError(
                f"{str(path)!r}: holds {pages} pictures, of which only the first would be compared; give each a file"
            )
        found = hashlib.sha256(f"mask|{source.height}|{source.width}|{len(bands)}|".encode())
        side = max(1, math.isqrt(_HASHED_VALUES // len(bands)))
        # Every window is read, so that a damaged file is refused wherever it is damaged. Windows are the same for all
        # images of one size: those that fit the tiles of a file would hash in another order.
        for top in range(0, source.height, side):
            for left in range(0, source.width, side):
                size = min(side, source.width - left), min(side, source.height - top)
                values = source.read(bands, window=Window(left, top, *size))
                first = values.flat[0] if first is None else first
                same = same and bool((values == first).all())
                found.update(_as_numbers(values))
    return None if same else found.hexdigest()


def _as_numbers(values: NDArray[Any]) -> bytes:
    """Values as float64, little-endian; as 64-bit integers where float64 cannot hold them."""
    wide = values.astype("<f8")
    if values.dtype.itemsize == 8 and values.dtype.kind in "iu" and (np.abs(wide) > 2**53).any():
        return values.astype(values.dtype.newbyteorder("<")).tobytes()
    # One zero and one NaN, of the several that there are.
    wide += 0.0
    wide[np.isnan(wide)] = np.nan
    return wide.tobytes()
