"""Raster grids as arithmetic: do two grids share a lattice, which cell lies where, how large is it. No file is opened.

A transform is the six numbers ``(a, b, c, d, e, f)`` of ``x = a column + b row + c``, ``y = d column + e row + f``.
Differences are measured in pixels of the prediction, so that a tolerance means the same for metres and degrees.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from geoeval.model import FloatArray, IntArray

Transform = tuple[float, float, float, float, float, float]

#: Two grids share a lattice where no cell of one lies further than this from a cell of the other, in pixels.
TOLERANCE_PX = 1e-3


@dataclass(frozen=True, slots=True)
class Grid:
    """Where the cells of a raster lie."""

    transform: Transform
    rows: int
    columns: int

    @property
    def upright(self) -> bool:
        """True where rows and columns run along the axes."""
        return self.transform[1] == 0 and self.transform[3] == 0

    @property
    def cell(self) -> tuple[float, float]:
        """Length of a cell's sides along columns and rows, in the units of the system."""
        a, b, _, d, e, _ = self.transform
        return math.hypot(a, d), math.hypot(b, e)

    def at(self, column: float, row: float) -> tuple[float, float]:
        """x, y of a position in pixels; (0, 0) is the outer corner of the first cell.

        Examples
        --------
        >>> Grid((10.0, 0.0, 500.0, 0.0, -10.0, 900.0), 4, 4).at(1, 2)
        (510.0, 880.0)
        """
        a, b, c, d, e, f = self.transform
        return a * column + b * row + c, d * column + e * row + f

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Smallest x, y and largest x, y of all corners."""
        corners = [self.at(column, row) for column in (0, self.columns) for row in (0, self.rows)]
        xs, ys = zip(*corners, strict=True)
        return min(xs), min(ys), max(xs), max(ys)

    def __str__(self) -> str:
        a, b, c, d, e, f = self.transform
        turned = "" if self.upright else f", rotated (b={b:.9g}, d={d:.9g})"
        return f"{self.rows} x {self.columns} cells of {a:.12g} x {e:.12g} from ({c:.12g}, {f:.12g}){turned}"


def inverse(transform: Transform) -> Transform:
    """The transform from x, y to column, row.

    Examples
    --------
    >>> inverse((2.0, 0.0, 10.0, 0.0, -2.0, 20.0))
    (0.5, 0.0, -5.0, 0.0, -0.5, 10.0)
    """
    a, b, c, d, e, f = transform
    area = a * e - b * d
    if area == 0 or not math.isfinite(area):
        raise ValueError(f"a raster's transform must have cells of some area, got {transform}")
    ra, rb, rd, re = e / area, -b / area, -d / area, a / area
    out = (ra, rb, -(ra * c + rb * f), rd, re, -(rd * c + re * f))
    return tuple(value + 0.0 for value in out)  # type: ignore[return-value]


def pixel_map(reference: Grid, prediction: Grid) -> Transform:
    """The transform from pixels of the reference to pixels of the prediction.

    Examples
    --------
    >>> a = Grid((10.0, 0.0, 0.0, 0.0, -10.0, 100.0), 10, 10)
    >>> b = Grid((20.0, 0.0, 20.0, 0.0, -20.0, 100.0), 5, 5)
    >>> pixel_map(a, b)
    (0.5, 0.0, -1.0, 0.0, 0.5, 0.0)
    """
    # Coordinates relative to the prediction's origin first: the difference of two large eastings is exact, their
    # products with an inverse pixel size are not.
    a, b, c, d, e, f = reference.transform
    pa, pb, pc, pd, pe, pf = prediction.transform
    ia, ib, _, id_, ie, _ = inverse((pa, pb, 0.0, pd, pe, 0.0))
    x, y = c - pc, f - pf
    return (
        ia * a + ib * d + 0.0,
        ia * b + ib * e + 0.0,
        ia * x + ib * y + 0.0,
        id_ * a + ie * d + 0.0,
        id_ * b + ie * e + 0.0,
        id_ * x + ie * y + 0.0,
    )


class Fit(NamedTuple):
    """How a prediction grid lies on a reference grid.

    ``column`` and ``row`` are the position of the reference's first cell in the prediction, rounded to whole cells;
    ``shift`` is the largest remainder over the compared extent, in pixels along columns and rows; ``straight``
    says that rows lie along rows.
    """

    same: bool
    column: int
    row: int
    shift: tuple[float, float]
    straight: bool


def fit(reference: Grid, prediction: Grid, tolerance: float = TOLERANCE_PX) -> Fit:
    """Compare two grids of one coordinate system, in pixels.

    Parameters
    ----------
    reference, prediction
        Two grids; their extents may differ, and what they share is compared.
    tolerance
        How far a cell may lie from its counterpart, in pixels.

    Examples
    --------
    >>> a = Grid((10.0, 0.0, 500.0, 0.0, -10.0, 900.0), 4, 4)
    >>> fit(a, Grid((10.0, 0.0, 480.0, 0.0, -10.0, 900.0), 4, 4))[:3]
    (True, 2, 0)
    >>> fit(a, Grid((10.0, 0.0, 503.0, 0.0, -10.0, 900.0), 4, 4)).shift
    (-0.3, 0.0)
    """
    to_prediction = pixel_map(reference, prediction)
    ma, mb, mc, md, me, mf = to_prediction
    corners = _shared_corners(reference, prediction, to_prediction)
    column0, row0 = corners[0]
    column = round(ma * column0 + mb * row0 + mc - column0)
    row = round(md * column0 + me * row0 + mf - row0)
    rests = [(ma * c + mb * r + mc - c - column, md * c + me * r + mf - r - row) for c, r in corners]
    shift_x = max((rest[0] for rest in rests), key=abs)
    shift_y = max((rest[1] for rest in rests), key=abs)
    straight = abs(mb) * reference.rows <= tolerance and abs(md) * reference.columns <= tolerance
    return Fit(
        same=max(abs(shift_x), abs(shift_y)) <= tolerance,
        column=column,
        row=row,
        shift=(round(shift_x, 9) + 0.0, round(shift_y, 9) + 0.0),
        straight=straight,
    )


def _shared_corners(reference: Grid, prediction: Grid, to_prediction: Transform) -> list[tuple[float, float]]:
    """Corners, in reference pixels, of what both grids cover; of the reference where they share nothing."""
    back = inverse(to_prediction)
    ends = [
        (back[0] * c + back[1] * r + back[2], back[3] * c + back[4] * r + back[5])
        for c in (0, prediction.columns)
        for r in (0, prediction.rows)
    ]
    left, right = max(0.0, min(c for c, _ in ends)), min(float(reference.columns), max(c for c, _ in ends))
    upper, lower = max(0.0, min(r for _, r in ends)), min(float(reference.rows), max(r for _, r in ends))
    if left >= right or upper >= lower:
        left, upper, right, lower = 0.0, 0.0, float(reference.columns), float(reference.rows)
    return [(left, upper), (right, upper), (left, lower), (right, lower)]


def nearest_index(start: int, stop: int, scale: float, offset: float) -> IntArray:
    """Which cell of another axis the centre of each cell falls into: ``floor(scale (i + 1/2) + offset)``.

    A centre on an edge belongs to the cell that begins there; rounding to a millionth of a pixel keeps it so on every
    machine.

    Examples
    --------
    >>> nearest_index(0, 6, 0.5, 0.0)
    array([0, 0, 1, 1, 2, 2])
    """
    centre = np.arange(start, stop, dtype=np.float64) + 0.5
    return np.floor(np.round(scale * centre + offset, 6)).astype(np.int64)


def difference(reference: Grid, prediction: Grid) -> str:
    """Say how two grids of one coordinate system differ, in pixels.

    Examples
    --------
    >>> a = Grid((10.0, 0.0, 500.0, 0.0, -10.0, 900.0), 4, 4)
    >>> difference(a, Grid((10.0, 0.0, 503.0, 0.0, -10.0, 900.0), 4, 4))
    'shifted by (-0.3, 0) pixels'
    >>> difference(a, Grid((5.0, 0.0, 500.0, 0.0, -5.0, 900.0), 8, 8))
    'a reference cell is 2 x 2 prediction cells'
    """
    found = fit(reference, prediction)
    if not found.straight:
        return "their rows do not run in the same direction"
    ma, _, _, _, me, _ = pixel_map(reference, prediction)
    if abs(ma - 1) * reference.columns > 0.5 or abs(me - 1) * reference.rows > 0.5:
        return f"a reference cell is {ma:.9g} x {me:.9g} prediction cells"
    return f"shifted by ({found.shift[0]:.6g}, {found.shift[1]:.6g}) pixels"


class Ellipsoid(NamedTuple):
    """Semi-major axis in metres, and flattening."""

    a: float = 6378137.0
    flattening: float = 1 / 298.257223563


WGS84 = Ellipsoid()


def metres_per_degree(latitude: float, ellipsoid: Ellipsoid = WGS84) -> tuple[float, float]:
    """Length of a degree of longitude and of latitude there, on the ellipsoid.

    Examples
    --------
    >>> [round(length) for length in metres_per_degree(0.0)]
    [111319, 110574]
    """
    e2 = ellipsoid.flattening * (2 - ellipsoid.flattening)
    phi = math.radians(latitude)
    curve = 1 - e2 * math.sin(phi) ** 2
    east = ellipsoid.a * math.cos(phi) / math.sqrt(curve)
    north = ellipsoid.a * (1 - e2) / curve**1.5
    return math.radians(east), math.radians(north)


def row_areas(grid: Grid, ellipsoid: Ellipsoid = WGS84, to_radians: float = math.pi / 180) -> FloatArray:
    """True area of one cell of each row of a geographic grid, in square metres (rows,).

    Exact on the ellipsoid: the zone between two parallels, not cell sides multiplied.

    Parameters
    ----------
    grid
        An upright grid in longitude and latitude.
    ellipsoid
        Of its datum.
    to_radians
        Radians in one unit of the system's axes.

    Examples
    --------
    >>> whole = Grid((360.0, 0.0, -180.0, 0.0, -180.0, 90.0), 1, 1)
    >>> round(float(row_areas(whole)[0]) / 1e12, 4)
    510.0656
    """
    e2 = ellipsoid.flattening * (2 - ellipsoid.flattening)
    edges = grid.transform[5] + grid.transform[4] * np.arange(grid.rows + 1, dtype=np.float64)
    sine = np.sin(np.clip(edges * to_radians, -math.pi / 2, math.pi / 2))
    zone = sine / (1 - e2 * sine**2)
    if e2 > 0:
        e = math.sqrt(e2)
        zone = zone + np.arctanh(e * sine) / e
    else:
        zone = zone + sine
    width = abs(grid.transform[0]) * to_radians
    return np.asarray(ellipsoid.a**2 * (1 - e2) / 2 * width * np.abs(np.diff(zone)), dtype=np.float64)


def cuts(count: int, origin: float, step: float, side: float) -> list[tuple[int, int, int]]:
    """Cut an axis of cells where their centres pass from one block to the next: (start, stop, block number).

    Blocks lie at whole multiples of ``side`` in the system's own coordinates, so that neighbouring rasters share them.

    Examples
    --------
    >>> cuts(6, origin=100.0, step=10.0, side=40.0)
    [(0, 2, 2), (2, 6, 3)]
    >>> cuts(3, origin=0.0, step=-10.0, side=20.0)
    [(0, 2, -1), (2, 3, -2)]
    """
    centre = origin + (np.arange(count, dtype=np.float64) + 0.5) * step
    block = np.floor(np.round(centre / side, 9)).astype(np.int64)
    starts = np.flatnonzero(np.r_[True, block[1:] != block[:-1]]) if count else np.zeros(0, dtype=np.int64)
    stops = np.r_[starts[1:], count]
    return [(int(a), int(b), int(block[a])) for a, b in zip(starts, stops, strict=True)]


def windows(rows: int, columns: int, height: int, width: int) -> list[tuple[int, int, int, int]]:
    """Tiles ``(row, column, rows, columns)`` of a grid, row by row; those at the right and lower edge are smaller.

    Examples
    --------
    >>> windows(3, 5, 2, 4)
    [(0, 0, 2, 4), (0, 4, 2, 1), (2, 0, 1, 4), (2, 4, 1, 1)]
    """
    return [
        (row, column, min(height, rows - row), min(width, columns - column))
        for row in range(0, rows, height)
        for column in range(0, columns, width)
    ]
