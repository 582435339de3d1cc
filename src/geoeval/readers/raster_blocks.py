"""Raster pairs block by block: decoded ahead in threads, in a fixed order, cut where clusters meet.

Nothing is ever whole in memory: every layer has its own thread and file handle and runs at most a few windows ahead.
A block never crosses the border of a cluster, so that tallies by cluster cannot depend on the size of windows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from geoeval.geometry.lattice import Grid, cuts, row_areas, windows
from geoeval.layers import Block
from geoeval.model import UNKNOWN, FloatArray, IntArray
from geoeval.readers.raster_header import CACHE_MB, Header
from geoeval.readers.raster_layers import Layer, Piece, Reader, Window

#: Side of windows, and of the fixed tiles of a warp, in pixels: a multiple of 512.
SIDE = 1024

#: Most pixels in a window.
WINDOW_PX = SIDE * SIDE

#: Windows that are decoded ahead of the one in work.
AHEAD = 2

#: Code of cells where a stratum raster has no data.
NO_STRATUM = np.iinfo(np.int64).min

Cut = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Clusters:
    """Spatial blocks of a grid as rectangles of whole pixels.

    ``side`` is their size along x and y in the system's own units, or in pixels where ``in_pixels``; None puts
    everything into one cluster without a name.
    """

    side: tuple[float, float] | None = None
    in_pixels: bool = False
    prefix: str = ""

    def cut(self, grid: Grid) -> tuple[list[Cut], list[Cut]]:
        """Where rows and columns pass from one block to the next."""
        if self.side is None:
            return [(0, grid.rows, 0)], [(0, grid.columns, 0)]
        a, _, c, _, e, f = grid.transform
        x, y = ((0.0, 1.0), (0.0, 1.0)) if self.in_pixels else ((c, a), (f, e))
        return cuts(grid.rows, y[0], y[1], self.side[1]), cuts(grid.columns, x[0], x[1], self.side[0])

    def name(self, column: int, row: int) -> str:
        """Name of a block, as :func:`geoeval.geometry.blocks.block_names` gives it to points."""
        return "" if self.side is None else f"{self.prefix}x{column}y{row}"


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Reads the blocks of one raster pair; calling it again starts from the first.

    Parameters
    ----------
    reference, prediction
        Both sides, brought to the grid of the reference.
    clusters
        How the grid is cut into spatial blocks.
    strata
        Further layers by field; their codes are the values of the field.
    area
        Polygons in the grid's system; cells whose centre lies outside have no data on either side.
    confidence
        How sure the prediction is, brought to the grid as the prediction is.
    window
        Rows and columns of a window; None chooses by the layout of the files. Warps keep their fixed tiles.
    """

    reference: Layer
    prediction: Layer
    clusters: Clusters
    strata: tuple[tuple[str, Layer], ...] = ()
    area: tuple[Any, ...] | None = None
    window: tuple[int, int] | None = None
    confidence: Layer | None = None

    def __call__(self) -> Iterator[Block]:
        """Every block, in the order of windows, then of clusters."""
        grid = self.reference.grid
        rows, columns = self.clusters.cut(grid)
        areas = cell_areas(self.reference.header)
        order = window_order(self, rows, columns)
        layers = [self.reference, self.prediction, *(layer for _, layer in self.strata)]
        layers += [] if self.confidence is None else [self.confidence]
        for window, pieces in ahead(layers, order):
            if self.area is not None:
                inside = _inside(self.area, grid, window)
                pieces[:2] = [(values, valid & inside) for values, valid in pieces[:2]]
            yield from self._cut(window, pieces, rows, columns, areas)

    def _cut(
        self, window: Window, pieces: list[Piece], rows: list[Cut], columns: list[Cut], areas: FloatArray | None
    ) -> Iterator[Block]:
        top, left, height, width = window
        (reference, reference_valid), (prediction, prediction_valid) = pieces[:2]
        strata = {
            name: named_codes(values, valid)
            for (name, _), (values, valid) in zip(self.strata, pieces[2:], strict=False)
        }
        sure = None if self.confidence is None else np.where(pieces[-1][1], pieces[-1][0].astype(np.float64), np.nan)
        for row, row_end, block_row in _within(rows, top, top + height):
            for column, column_end, block_column in _within(columns, left, left + width):
                at = (slice(row - top, row_end - top), slice(column - left, column_end - left))
                yield Block(
                    reference=reference[at],
                    prediction=prediction[at],
                    reference_valid=reference_valid[at],
                    prediction_valid=prediction_valid[at],
                    cluster=self.clusters.name(block_column, block_row),
                    row=row,
                    column=column,
                    area=None if areas is None else areas[row:row_end],
                    strata={name: (codes[at], names) for name, (codes, names) in strata.items()},
                    confidence=None if sure is None else sure[at],
                )


def window_order(blocks: Blocks, rows: list[Cut], columns: list[Cut]) -> list[Window]:
    """The windows to read, in order: those of :func:`window_shape`, or within clusters where these are large.

    Clusters that are cut by windows cost more than tiles that are read in parts, as long as GDAL's cache holds a row of
    tiles of each file.
    """
    grid = blocks.reference.grid
    shape = window_shape(blocks)
    modes = {blocks.reference.mode, blocks.prediction.mode, *(layer.mode for _, layer in blocks.strata)}
    large = min(grid.rows // len(rows), grid.columns // len(columns)) >= SIDE // 2
    held = SIDE * grid.columns * np.dtype(blocks.reference.header.dtype).itemsize <= CACHE_MB * 2**20 // 4
    if shape != (SIDE, SIDE) or blocks.window is not None or not large or not held or not modes <= {"window", "absent"}:
        return windows(grid.rows, grid.columns, *shape)
    return [
        (row + top, column + left, height, width)
        for row, row_end, _ in rows
        for column, column_end, _ in columns
        for top, left, height, width in windows(row_end - row, column_end - column, SIDE, SIDE)
    ]


def window_shape(blocks: Blocks) -> tuple[int, int]:
    """Rows and columns of the windows: full rows where files are striped, else squares of whole tiles.

    Results do not depend on it: warps always use the same fixed tiles, and everything else is read cell by cell.
    """
    layers = [blocks.reference, blocks.prediction, *(layer for _, layer in blocks.strata)]
    grid = blocks.reference.grid
    if any(layer.mode == "warp" for layer in layers):
        return SIDE, SIDE
    if blocks.window is not None:
        return blocks.window
    indexed = [layer for layer in layers if layer.mode == "index"]
    if indexed:
        finest = min(min(layer.header.grid.cell) for layer in indexed)
        side = int(min(1.0, finest / max(grid.cell)) * SIDE)
        return max(side, 1), max(side, 1)
    read = [layer.header for layer in layers if layer.mode == "window"]
    striped = [header.striped and header.grid.columns > SIDE for header in read]
    row_of_tiles = max(
        min(header.block[0], SIDE) * header.grid.columns * np.dtype(header.dtype).itemsize for header in read
    )
    if not any(striped) or (not all(striped) and row_of_tiles > CACHE_MB * 2**20 // 4):
        return SIDE, SIDE
    tallest = max(header.block[0] for header in read)
    rows = max(1, WINDOW_PX // grid.columns)
    return max(rows // tallest * tallest, min(rows, tallest)), grid.columns


def cell_areas(header: Header) -> FloatArray | None:
    """True area of the cells of each row in m², on upright geographic grids; None elsewhere."""
    if header.kind != "geographic" or not header.grid.upright:
        return None
    return row_areas(header.grid, header.ellipsoid, header.per_unit)


def named_codes(values: NDArray[Any], valid: NDArray[np.bool_]) -> tuple[IntArray, dict[int, str]]:
    """Stratum codes, and the names of those that occur; cells without data are ``unknown``."""
    codes = np.where(valid, values.astype(np.int64), NO_STRATUM)
    return codes, {int(code): UNKNOWN if code == NO_STRATUM else str(code) for code in np.unique(codes)}


def _within(parts: list[Cut], start: int, stop: int) -> Iterator[Cut]:
    """The cuts of an axis that reach into ``start..stop``, trimmed to it."""
    first = bisect_right(parts, start, key=lambda part: part[1])
    for a, b, block in parts[first:]:
        if a >= stop:
            return
        yield max(a, start), min(b, stop), block


def _inside(polygons: tuple[Any, ...], grid: Grid, window: Window) -> NDArray[np.bool_]:
    """Cells whose centre lies in one of the polygons (rows, columns)."""
    from rasterio.features import rasterize
    from rasterio.transform import Affine

    shape = window[2:]
    if not polygons:
        return np.zeros(shape, dtype=bool)
    a, b, _, d, e, _ = grid.transform
    x, y = grid.at(window[1], window[0])
    place = Affine(a, b, x, d, e, y)
    burnt = rasterize(polygons, out_shape=shape, transform=place, fill=0, default_value=1, dtype="uint8")
    return np.asarray(burnt != 0, dtype=bool)


def ahead(layers: list[Layer], order: list[Window]) -> Iterator[tuple[Window, list[Piece]]]:
    """Read the windows of several layers in order, each layer in its own thread, a few windows ahead."""
    with ExitStack() as threads:
        lanes = [threads.enter_context(_Lane(layer)) for layer in layers]
        waiting: deque[tuple[Window, list[Future[Piece]]]] = deque()
        for window in order:
            waiting.append((window, [lane.submit(window) for lane in lanes]))
            if len(waiting) > AHEAD:
                yield _arrived(*waiting.popleft())
        while waiting:
            yield _arrived(*waiting.popleft())


def _arrived(window: Window, futures: list[Future[Piece]]) -> tuple[Window, list[Piece]]:
    return window, [future.result() for future in futures]


class _Lane:
    """One thread with one open file. GDAL's handles and settings belong to the thread that made them."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.pool = ThreadPoolExecutor(1)
        self.stack = ExitStack()
        self.read: Reader | None = None
        self.stopped = False

    def __enter__(self) -> Self:
        return self

    def submit(self, window: Window) -> Future[Piece]:
        return self.pool.submit(self._piece, window)

    def _piece(self, window: Window) -> Piece:
        if self.stopped:
            raise CancelledError
        if self.read is None:
            self.stack.enter_context(settings())
            self.read = self.layer.open(self.stack)
        return self.read(window)

    def __exit__(self, *_: object) -> None:
        self.stopped = True
        self.pool.submit(self.stack.close).result()
        self.pool.shutdown()


def settings() -> Any:
    """GDAL with a small block cache: memory must not grow with the raster."""
    import rasterio

    # In bytes: rasterio hands the number on as such, where GDAL's own option would read a small one as megabytes.
    return rasterio.Env(GDAL_CACHEMAX=CACHE_MB * 2**20)
