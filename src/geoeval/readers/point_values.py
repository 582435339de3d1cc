"""What a map says at points, codes or numbers, and how large its classes are: windows in turn, never all of it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.geometry.lattice import inverse, windows
from geoeval.model import FloatArray, IntArray, ObjectArray
from geoeval.readers.raster_blocks import SIDE, ahead, cell_areas, settings
from geoeval.readers.raster_header import Header
from geoeval.readers.raster_layers import Layer
from geoeval.stats.joint import joint_counts

#: Quanta in a square metre, in which areas of geographic cells are added up.
AREA_QUANTA = 10**6


def codes_at(header: Header, x: FloatArray, y: FloatArray) -> ObjectArray:
    """Class code of the cell that each point lies in, as text; None outside the map and where it has no data.

    Parameters
    ----------
    header
        The map.
    x, y
        (points,) coordinates in the map's own system.
    """
    values, valid = _cells_at(Layer(header, header.grid, "window", header.crs), x, y)
    out = np.full(len(x), None, dtype=np.object_)
    out[valid] = [str(code) for code in values[valid].tolist()]
    return out


def numbers_at(header: Header, x: FloatArray, y: FloatArray) -> FloatArray:
    """Value of the cell that each point lies in, scaled as the file says; NaN outside and where there is no data.

    Parameters
    ----------
    header
        The band.
    x, y
        (points,) coordinates in its own system.
    """
    values, valid = _cells_at(Layer(header, header.grid, "window", header.crs, categorical=False), x, y)
    return np.where(valid, values, np.nan)


def _cells_at(layer: Layer, x: FloatArray, y: FloatArray) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Value and validity of the cell of each point, in the type that the layer reads."""
    header = layer.header
    a, b, c, d, e, f = inverse(header.grid.transform)
    # A billionth of a pixel, so that a point on the corner of a cell does not change cells with the last bit.
    column = np.floor(np.round(a * x + b * y + c, 9)).astype(np.int64)
    row = np.floor(np.round(d * x + e * y + f, 9)).astype(np.int64)
    inside = (row >= 0) & (row < header.grid.rows) & (column >= 0) & (column < header.grid.columns)
    out: NDArray[Any] = np.zeros(len(x), dtype=np.int64 if layer.categorical else np.float64)
    there = np.zeros(len(x), dtype=bool)
    at = np.flatnonzero(inside)
    tile = row[at] // SIDE * (header.grid.columns // SIDE + 1) + column[at] // SIDE
    order = at[np.argsort(tile, kind="stable")]
    borders = np.flatnonzero(np.diff(np.sort(tile))) + 1
    with ExitStack() as stack:
        stack.enter_context(settings())
        read = layer.open(stack)
        for part in np.split(order, borders):
            if not len(part):
                continue
            top, left = int(row[part].min()), int(column[part].min())
            window = (top, left, int(row[part].max()) - top + 1, int(column[part].max()) - left + 1)
            values, valid = read(window)
            cell = (row[part] - top, column[part] - left)
            out[part], there[part] = values[cell].astype(out.dtype), valid[cell]
    return out, there


def class_sizes(header: Header) -> tuple[dict[str, int], float]:
    """Size of every class of a map by code, and what one of these units is in m² (or in pixels).

    Cells on a projected grid; on a geographic one, true areas in millionths of a square metre, since cells differ.
    """
    areas = cell_areas(header)
    quanta = None if areas is None else np.rint(areas * AREA_QUANTA).astype(np.int64)
    grid = header.grid
    width = SIDE if not header.striped else grid.columns
    height = max(1, SIDE * SIDE // width)
    sizes: dict[int, int] = {}
    layer = Layer(header, grid, "window", header.crs)
    for window, pieces in ahead([layer], windows(grid.rows, grid.columns, height, width)):
        values, valid = pieces[0]
        rows = np.broadcast_to(_rows(window[2], quanta is not None)[:, None], values.shape)
        found = joint_counts(values, rows, valid)
        for (code, row), count in zip(found.keys.tolist(), found.counts.tolist(), strict=True):
            weight = 1 if quanta is None else int(quanta[window[0] + row])
            sizes[code] = sizes.get(code, 0) + weight * count
    cell = header.cell_m
    unit_area = cell[0] * cell[1] if quanta is None else 1.0 / AREA_QUANTA
    return {str(code): sizes[code] for code in sorted(sizes)}, unit_area


def _rows(count: int, apart: bool) -> IntArray:
    """Row numbers where rows must be told apart, else zeros."""
    return np.arange(count, dtype=np.int64) if apart else np.zeros(count, dtype=np.int64)
