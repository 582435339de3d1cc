"""Values of a raster at points: bilinear between cell centres, or of the cell in which a point lies.

A point takes the mean of the four cells around it, weighted by nearness to their centres. A cell without weight is not
asked (on a centre, only that cell counts); where one that is asked has no data, neither has the point. Rasters are read
by small windows, so memory does not grow with them.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.model import FloatArray
from geoeval.readers.raster_blocks import settings
from geoeval.readers.raster_header import Header
from geoeval.readers.raster_place import own

_TILE = 512


def sample_bilinear(header: Header, x: FloatArray, y: FloatArray) -> FloatArray:
    """Heights of a raster at points (n,) in its own system, NaN where it has none there.

    Examples
    --------
    >>> from geoeval.options import Source
    >>> from geoeval.readers.raster_header import read_header
    >>> header = read_header(Source(np.array([[0.0, 2.0], [4.0, 6.0]])), np.array([[0.0, 2.0], [4.0, 6.0]]), "dem")
    >>> sample_bilinear(header, np.array([0.5, 1.0, 0.25]), np.array([0.5, 1.0, 0.5]))
    array([ 0.,  3., nan])
    """
    column, row = _cell_places(header, x, y)
    # Rounded, so that a centre stays a centre whatever the last bits of coordinates of millions of metres.
    column, row = np.round(column - 0.5, 9), np.round(row - 0.5, 9)
    left, top = np.floor(column), np.floor(row)
    across, down = column - left, row - top
    out = np.full(len(x), np.nan)
    known = np.isfinite(column) & np.isfinite(row)
    known &= (left >= -1) & (top >= -1) & (left < header.grid.columns) & (top < header.grid.rows)
    for chosen, values, at_row, at_column in _windows(header, top, left, known, 2):
        weights = _corner_weights(across[chosen], down[chosen])
        total = np.zeros(len(chosen))
        for i, j, weight in weights:
            value = values[at_row + i, at_column + j]
            total += np.where(weight > 0, weight * value, 0.0)
        out[chosen] = total
    return out


def sample_nearest(header: Header, x: FloatArray, y: FloatArray) -> FloatArray:
    """Values of the cells in which points (n,) lie, NaN where there is no data."""
    column, row = (np.floor(np.round(axis, 9)) for axis in _cell_places(header, x, y))
    out = np.full(len(x), np.nan)
    known = np.isfinite(column) & np.isfinite(row) & (column >= 0) & (row >= 0)
    known &= (column < header.grid.columns) & (row < header.grid.rows)
    for chosen, values, at_row, at_column in _windows(header, row, column, known, 1):
        out[chosen] = values[at_row, at_column]
    return out


def _cell_places(header: Header, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Columns and rows of points, counted from the outer corner of the first cell."""
    a, b, c, d, e, f = header.grid.transform
    area = a * e - b * d
    # From the corner first: the difference of two large eastings is exact, a product with one is not.
    east, north = x - c, y - f
    return (e * east - b * north) / area, (a * north - d * east) / area


def _corner_weights(across: FloatArray, down: FloatArray) -> list[tuple[int, int, FloatArray]]:
    return [
        (0, 0, (1 - down) * (1 - across)),
        (0, 1, (1 - down) * across),
        (1, 0, down * (1 - across)),
        (1, 1, down * across),
    ]


def _windows(header: Header, top: FloatArray, left: FloatArray, known: NDArray[np.bool_], size: int) -> Any:
    """Points tile by tile: which, the values of their tile (NaN where void), and where in it their first cell is."""
    at = np.flatnonzero(known)
    if not len(at):
        return
    rows, columns = top[at].astype(np.int64), left[at].astype(np.int64)
    tiles = np.stack([rows // _TILE, columns // _TILE], axis=1)
    names, which = np.unique(tiles, axis=0, return_inverse=True)
    order = np.argsort(which.reshape(-1), kind="stable")
    ends = np.cumsum(np.bincount(which.reshape(-1), minlength=len(names))).tolist()
    with settings(), ExitStack() as stack:
        read = own(header, categorical=False, recode={}).open(stack)
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            part = order[start:end]
            row, column = int(rows[part].min()), int(columns[part].min())
            height, width = int(rows[part].max()) - row + size, int(columns[part].max()) - column + size
            values, valid = read((row, column, height, width))
            yield at[part], np.where(valid, values.astype(np.float64), np.nan), rows[part] - row, columns[part] - column
