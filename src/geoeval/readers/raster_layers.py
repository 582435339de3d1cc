"""One band brought to the reference grid, window by window, as it is, by index or warped; and which cells are valid.

Validity is found by comparing values with nodata **in the band's own data type**, not by masked reads, which cost
several times as much. NaN and infinity are never valid; a mask or alpha band is read where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from geoeval.errors import InputError
from geoeval.geometry.lattice import Grid, nearest_index, pixel_map
from geoeval.model import IntArray
from geoeval.readers.raster_header import Header, open_raster, strict_decoding

Window = tuple[int, int, int, int]
Piece = tuple[NDArray[Any], NDArray[np.bool_]]
Reader = Callable[[Window], Piece]
Mode = Literal["window", "index", "warp", "absent"]

#: Transformation error of a warp, in pixels.
WARP_TOLERANCE_PX = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """How one band comes to lie on the reference grid. Holds no open file, so that it can travel to a worker.

    ``recode`` maps old class codes to new ones; ``categorical`` says that values are codes: whole numbers.
    """

    header: Header
    grid: Grid
    mode: Mode
    crs: str = ""
    shift: tuple[int, int] = (0, 0)
    resampling: str = "nearest"
    categorical: bool = True
    recode: Mapping[int, int] = field(default_factory=dict)

    def open(self, stack: ExitStack) -> Reader:
        """Open the file; what is returned reads one window ``(row, column, rows, columns)`` of the reference grid."""
        raw = self._raw(stack)

        def read(window: Window) -> Piece:
            values, valid = raw(window)
            return self._finished(values, valid, window)

        return read

    def _raw(self, stack: ExitStack) -> Reader:
        if self.mode == "absent":
            return _nothing(self.header.dtype)
        if self.header.array is not None:
            return self._moved(_ArrayBand(self.header))
        band = stack.enter_context(_FileBand(self.header))
        return _warped(self, band.dataset, stack) if self.mode == "warp" else self._moved(band)

    def _moved(self, band: _ArrayBand | _FileBand) -> Reader:
        return _windowed(self, band) if self.mode == "window" else _indexed(self, band)

    def _finished(self, values: NDArray[Any], valid: NDArray[np.bool_], window: Window) -> Piece:
        if not self.categorical:
            if self.header.scale != (1.0, 0.0):
                values = values * self.header.scale[0] + self.header.scale[1]
            return values, valid
        if values.dtype.kind == "f":
            values = self._whole(values, valid, window)
        return (recoded(values, self.recode) if self.recode else values), valid

    def _whole(self, values: NDArray[Any], valid: NDArray[np.bool_], window: Window) -> NDArray[Any]:
        clean = np.where(valid, values, 0)
        whole = (clean == np.floor(clean)) & (np.abs(clean) < 2**62)
        if not whole.all():
            row, column = np.argwhere(~whole)[0]
            raise InputError(
                f"{self.header.name}, band {self.header.band}: expected class codes (whole numbers), found "
                f"{float(values[row, column])!r} at row {window[0] + row}, column {window[1] + column} of the "
                "reference grid; evaluate measurements with the elevation family, or declare nodata."
            )
        return clean.astype(np.int64)


def recoded(values: NDArray[Any], recode: Mapping[int, int]) -> NDArray[Any]:
    """Change class codes, all at once, so that 1 → 2 and 2 → 1 swap; the type widens where a new code needs it.

    Examples
    --------
    >>> recoded(np.array([1, 2, 3], dtype=np.uint8), {1: 2, 2: 1})
    array([2, 1, 3], dtype=uint8)
    >>> recoded(np.array([1, 2], dtype=np.uint8), {1: -1}).tolist()
    [-1, 2]
    """
    limits = np.iinfo(values.dtype)
    fits = all(limits.min <= new <= limits.max for new in recode.values())
    out = values.copy() if fits else values.astype(np.int64)
    for old, new in recode.items():
        if limits.min <= old <= limits.max:
            out[values == old] = new
    return out


def nodata_in(dtype: str, nodata: float | None) -> Any:
    """Nodata as a value of the band's own type, None where the type cannot hold it.

    Examples
    --------
    >>> nodata_in("uint8", 255.0), nodata_in("uint8", -9999.0), nodata_in("int16", None)
    (np.uint8(255), None, None)
    >>> nodata_in("float32", -3.3999999521443642e38)
    np.float32(-3.4e+38)
    """
    if nodata is None:
        return None
    kind = np.dtype(dtype)
    if kind.kind == "f":
        with np.errstate(over="ignore"):
            return kind.type(nodata)
    limits = np.iinfo(kind)
    if not np.isfinite(nodata) or nodata != np.floor(nodata) or not limits.min <= nodata <= limits.max:
        return None
    return kind.type(int(nodata))


def valid_cells(values: NDArray[Any], nodata: Any) -> NDArray[np.bool_]:
    """Which cells hold data; ``nodata`` is of the array's own type, or None.

    Examples
    --------
    >>> valid_cells(np.array([1.0, np.nan, -9999.0], dtype=np.float32), np.float32(-9999))
    array([ True, False, False])
    """
    if values.dtype.kind == "f":
        finite = np.isfinite(values)
        return finite if nodata is None else np.asarray(finite & (values != nodata), dtype=bool)
    return np.ones(values.shape, dtype=bool) if nodata is None else np.asarray(values != nodata, dtype=bool)


class _ArrayBand:
    """An array read like a file."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self.nodata = nodata_in(header.dtype, header.nodata)

    def read(self, row: int, column: int, rows: int, columns: int) -> Piece:
        values = self.header.array[row : row + rows, column : column + columns]
        return values, valid_cells(values, self.nodata)


class _FileBand:
    """One band of an open file."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self.nodata = nodata_in(header.dtype, header.nodata)

    def __enter__(self) -> Self:
        self.dataset = open_raster(self.header.path)
        return self

    def __exit__(self, *_: object) -> None:
        self.dataset.close()

    def read(self, row: int, column: int, rows: int, columns: int) -> Piece:
        from rasterio.windows import Window as Rectangle

        window = Rectangle(column, row, columns, rows)
        values = _guarded(self.header, lambda: self.dataset.read(self.header.band, window=window), row, column)
        valid = valid_cells(values, self.nodata)
        if self.header.masked:
            mask = _guarded(self.header, lambda: self.dataset.read_masks(self.header.band, window=window), row, column)
            valid &= mask != 0
        return values, valid


def _guarded(header: Header, read: Callable[[], NDArray[Any]], row: int, column: int) -> NDArray[Any]:
    from rasterio.errors import RasterioError

    try:
        with strict_decoding():
            return read()
    except (RasterioError, MemoryError) as error:
        cause = error.__cause__ or error
        raise InputError(
            f"{header.path}: expected readable pixels, found damaged ones in band {header.band} near row {row}, column "
            f"{column} ({cause}); copy or write the file again."
        ) from error


def _nothing(dtype: str) -> Reader:
    def read(window: Window) -> Piece:
        shape = window[2:]
        return np.zeros(shape, dtype=dtype), np.zeros(shape, dtype=bool)

    return read


def _windowed(layer: Layer, band: _ArrayBand | _FileBand) -> Reader:
    """One lattice: windows are moved by whole cells; what lies outside the file is not valid."""
    rows_all, columns_all = layer.header.grid.rows, layer.header.grid.columns
    blank = _nothing(layer.header.dtype)

    def read(window: Window) -> Piece:
        row, column = window[0] + layer.shift[0], window[1] + layer.shift[1]
        top, left = max(row, 0), max(column, 0)
        low, right = min(row + window[2], rows_all), min(column + window[3], columns_all)
        if (top, left, low, right) == (row, column, row + window[2], column + window[3]):
            return band.read(row, column, window[2], window[3])
        values, valid = blank(window)
        if top < low and left < right:
            part, part_valid = band.read(top, left, low - top, right - left)
            place = (slice(top - row, low - row), slice(left - column, right - column))
            values[place], valid[place] = part, part_valid
        return values, valid

    return read


def _indexed(layer: Layer, band: _ArrayBand | _FileBand) -> Reader:
    """Another offset or resolution: the cell into which the centre falls, by arithmetic, no warper."""
    to_file = pixel_map(layer.grid, layer.header.grid)
    blank = _nothing(layer.header.dtype)

    def axis(start: int, count: int, scale: float, offset: float, most: int) -> tuple[IntArray, IntArray]:
        at = nearest_index(start, start + count, scale, offset)
        inside = np.flatnonzero((at >= 0) & (at < most))
        return at[inside], inside

    def read(window: Window) -> Piece:
        row, row_at = axis(window[0], window[2], to_file[4], to_file[5], layer.header.grid.rows)
        column, column_at = axis(window[1], window[3], to_file[0], to_file[2], layer.header.grid.columns)
        values, valid = blank(window)
        if len(row) and len(column):
            top, left = int(row.min()), int(column.min())
            part, part_valid = band.read(top, left, int(row.max()) - top + 1, int(column.max()) - left + 1)
            source, place = np.ix_(row - top, column - left), np.ix_(row_at, column_at)
            values[place], valid[place] = part[source], part_valid[source]
        return values, valid

    return read


def _warped(layer: Layer, dataset: Any, stack: ExitStack) -> Reader:
    """Another system: GDAL's warper, with an alpha band, without which cells outside the file would be valid zeros."""
    from rasterio.crs import CRS
    from rasterio.enums import Resampling
    from rasterio.transform import Affine
    from rasterio.vrt import WarpedVRT
    from rasterio.windows import Window as Rectangle

    header = layer.header
    nodata = nodata_in(header.dtype, header.nodata)
    vrt = stack.enter_context(
        WarpedVRT(
            dataset,
            src_crs=CRS.from_wkt(header.crs),
            src_nodata=None if nodata is None else float(nodata),
            crs=CRS.from_wkt(layer.crs),
            transform=Affine(*layer.grid.transform),
            height=layer.grid.rows,
            width=layer.grid.columns,
            resampling=Resampling[layer.resampling],
            add_alpha=not header.alpha,
            tolerance=WARP_TOLERANCE_PX,
        )
    )

    def read(window: Window) -> Piece:
        rectangle = Rectangle(window[1], window[0], window[3], window[2])
        both = _guarded(header, lambda: vrt.read([header.band, vrt.count], window=rectangle), window[0], window[1])
        values = both[0]
        return values, valid_cells(values, nodata) & (both[1] != 0)

    return read
