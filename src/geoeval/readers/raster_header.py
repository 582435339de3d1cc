"""What a raster says about itself: grid, coordinate system, data type, nodata, masks. Pixels are not read here."""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from geoeval.errors import ConfigError, CRSMissing, InputError
from geoeval.geometry.lattice import Ellipsoid, Grid
from geoeval.options import Source
from geoeval.readers.sources import existing

#: GDAL's block cache in MB: memory must not grow with the raster.
CACHE_MB = 64

_OPENING = threading.Lock()

Kind = Literal["projected", "geographic", "pixel"]


@dataclass(frozen=True, slots=True, eq=False)
class Header:
    """One band of one raster file, or one array.

    ``crs`` is WKT, ``""`` for pixel coordinates; ``per_unit`` is metres (or radians) in one unit of the axes;
    ``nodata`` is as declared, else as the file says; ``masked`` says that a mask or alpha band tells which cells are
    valid.
    """

    name: str
    path: str
    array: Any
    band: int
    grid: Grid
    crs: str
    kind: Kind
    per_unit: float
    ellipsoid: Ellipsoid
    dtype: str
    nodata: float | None
    masked: bool
    alpha: bool
    block: tuple[int, int]
    scale: tuple[float, float]
    unit: str | None

    @property
    def striped(self) -> bool:
        """True where blocks are as wide as the file."""
        return self.block[1] >= self.grid.columns

    @property
    def cell_m(self) -> tuple[float, float]:
        """Cell size along columns and rows in metres (in pixels where there is no coordinate system)."""
        from geoeval.geometry.lattice import metres_per_degree

        width, height = self.grid.cell
        if self.kind == "geographic":
            degrees = np.degrees(self.per_unit)
            _, south, _, north = self.grid.bounds
            east_m, north_m = metres_per_degree((south + north) / 2 * degrees, self.ellipsoid)
            return float(width * degrees * east_m), float(height * degrees * north_m)
        return width * self.per_unit, height * self.per_unit


def strict_decoding() -> Any:
    """Where truncated files are errors: around the opening of a raster, and around its reading.

    Asked for a whole PNG at once, GDAL would otherwise hand out a truncated one as if it were complete, with arbitrary
    values, and a truncated JPEG as grey.
    """
    import rasterio

    return rasterio.Env(GDAL_PNG_WHOLE_IMAGE_OPTIM="NO", GDAL_ERROR_ON_LIBJPEG_WARNING="YES")


def open_raster(path: str) -> Any:
    """Open a raster file for reading; the caller closes it.

    Raises
    ------
    InputError
        The file is no raster, or damaged.
    """
    import rasterio
    from rasterio.errors import NotGeoreferencedWarning, RasterioError

    try:
        # Filters of warnings belong to the process, so threads take turns.
        with _OPENING, warnings.catch_warnings(), strict_decoding():
            warnings.simplefilter("ignore", NotGeoreferencedWarning)
            return rasterio.open(path)
    except (RasterioError, OSError) as error:
        raise InputError(
            f"{path}: expected a raster, found a file that cannot be opened ({error}); check it with gdalinfo."
        ) from error


def read_header(source: Source, item: Any, side: str) -> Header:
    """Read what a raster says about itself.

    Parameters
    ----------
    source
        How to read this side: band, nodata, declared crs.
    item
        The path of one file, or an array (rows, columns).
    side
        ``"reference"``, ``"prediction"`` or the name of a stratum, for messages.

    Raises
    ------
    InputError
        The file cannot be opened, or has no such band.
    CRSMissing
        It names no coordinate system and none was declared.
    """
    if isinstance(item, np.ndarray):
        return _array_header(source, item, side)
    path = str(existing(Path(item), side))
    with open_raster(path) as dataset:
        return _file_header(source, path, dataset, side)


def _file_header(source: Source, path: str, dataset: Any, side: str) -> Header:
    from rasterio.enums import MaskFlags

    band = source.band
    if not 1 <= band <= dataset.count:
        raise InputError(
            f"{side}: {path}: expected band {band}, found {dataset.count} bands; choose one with band = 1."
        )
    dtype = dataset.dtypes[band - 1]
    if np.dtype(dtype).kind == "c":
        raise InputError(f"{side}: {path}: band {band} holds complex numbers; choose another band.")
    grid = Grid(tuple(dataset.transform[:6]), dataset.height, dataset.width)
    if grid.transform[0] * grid.transform[4] == grid.transform[1] * grid.transform[3]:
        raise InputError(f"{side}: {path}: the cells have no area (transform {grid.transform}); write it again.")
    crs, kind, per_unit, ellipsoid = _system(source, dataset.crs.to_wkt() if dataset.crs else "", path, side)
    flags = dataset.mask_flag_enums[band - 1]
    scale = (float(dataset.scales[band - 1]), float(dataset.offsets[band - 1]))
    return Header(
        name=Path(path).name,
        path=path,
        array=None,
        band=band,
        grid=grid,
        crs=crs,
        kind=kind,
        per_unit=per_unit,
        ellipsoid=ellipsoid,
        dtype=dtype,
        nodata=source.nodata if source.nodata is not None else dataset.nodatavals[band - 1],
        masked=MaskFlags.per_dataset in flags or MaskFlags.alpha in flags,
        alpha=MaskFlags.alpha in flags,
        block=tuple(dataset.block_shapes[band - 1]),
        scale=scale,
        unit=dataset.units[band - 1] or None,
    )


def _array_header(source: Source, array: Any, side: str) -> Header:
    table = array[source.band - 1] if array.ndim == 3 and 1 <= source.band <= len(array) else array
    if table.ndim != 2 or table.dtype.kind not in "biuf":
        raise InputError(
            f"{side}: expected an array (rows, columns) of numbers, found shape {array.shape} of {array.dtype}."
        )
    if source.crs not in (None, "pixel"):
        raise ConfigError(f"{side}: an array has no grid, so crs = {source.crs!r} cannot be used; leave it out.")
    table = table.astype(np.uint8) if table.dtype.kind == "b" else table
    return Header(
        name=side,
        path="",
        array=table,
        band=1,
        grid=Grid((1.0, 0.0, 0.0, 0.0, 1.0, 0.0), *table.shape),
        crs="",
        kind="pixel",
        per_unit=1.0,
        ellipsoid=Ellipsoid(),
        dtype=str(table.dtype),
        nodata=source.nodata,
        masked=False,
        alpha=False,
        block=(1, table.shape[1]),
        scale=(1.0, 0.0),
        unit=None,
    )


def _system(source: Source, wkt: str, path: str, side: str) -> tuple[str, Kind, float, Ellipsoid]:
    """The coordinate system as WKT, its kind, metres or radians per unit, and its ellipsoid."""
    from pyproj import CRS
    from pyproj.exceptions import CRSError

    from geoeval.geometry.crs import parse_crs

    system = None
    if wkt:
        try:
            system = CRS.from_wkt(wkt)
        except CRSError:
            system = None
    if system is None or _local(system):
        if source.crs == "pixel":
            return "", "pixel", 1.0, Ellipsoid()
        if source.crs is None:
            found = "a local one that lies nowhere on Earth" if system is not None else "none"
            raise CRSMissing(
                f"{side}: {path}: expected a coordinate reference system, found {found}; declare it with "
                "crs = 'EPSG:…' (or crs = 'pixel' to compare pixel by pixel)."
            )
        system = parse_crs(source.crs)
    horizontal = next((part for part in system.sub_crs_list if not part.is_vertical), system)
    per_unit = float(horizontal.axis_info[0].unit_conversion_factor) if horizontal.axis_info else 1.0
    ball = horizontal.ellipsoid
    flattening = 0.0 if ball is None or not ball.inverse_flattening else 1 / ball.inverse_flattening
    ellipsoid = Ellipsoid(ball.semi_major_metre if ball else Ellipsoid().a, flattening)
    return system.to_wkt(), "geographic" if horizontal.is_geographic else "projected", per_unit, ellipsoid


def _local(system: Any) -> bool:
    return bool(system.is_engineering) or system.type_name == "Engineering CRS"
