"""What is in a file, as a plain nested dictionary, before anybody evaluates anything."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import shapely

from geoeval.errors import GeoevalError, InputError
from geoeval.options import Source
from geoeval.readers.columns import as_text
from geoeval.readers.guess import USUAL, guess
from geoeval.readers.raw import Raw, is_pixel
from geoeval.readers.sources import existing
from geoeval.readers.vector import RASTER_ENDINGS, read_raw

#: Values of a column are listed where there are no more than this.
FEW = 12

#: Longest side of the decimated read that value ranges come from.
DECIMATED = 512

#: A raster of at most so many cells is read in full to see whether it can be.
PROBED_CELLS = 1 << 24


def inspect_file(path: str | Path, layer: str | None = None) -> dict[str, Any]:
    r"""Describe a file of features or a raster.

    Parameters
    ----------
    path
        The file.
    layer
        One layer only; None describes all.

    Returns
    -------
    dict
        ``kind`` (``vector``, ``table``, ``coco`` or ``raster``), ``driver``, and either ``layers`` (name, CRS, count,
        geometry types, bounds, columns, defects, guesses) or the facts of a raster. Ready for JSON: no NaN, no objects.

    Raises
    ------
    InputError
        The file is missing, empty or unreadable.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "points.csv"
    ...     _ = file.write_text("id,lon,lat\na,5,50\n")
    ...     facts = inspect_file(file)
    >>> facts["kind"], facts["layers"][0]["features"], facts["layers"][0]["crs"]["name"], facts["layers"][0]["guesses"]
    ('table', 1, 'EPSG:4326', {'id': 'id'})
    """
    file = existing(path)
    if file.suffix.lower() in RASTER_ENDINGS:
        return _raster(file)
    names = _layer_names(file) if layer is None else [layer]
    if len(names) > 1:
        raws = [(name, read_raw(Source(file, layer=name))) for name in names]
    else:
        raws = [(names[0] if names else file.stem, read_raw(Source(file, layer=layer)))]
    kinds = {raw.kind for _, raw in raws}
    kind = "coco" if "coco" in kinds else "vector" if "vector" in kinds else "table"
    return {
        "path": str(file),
        "bytes": file.stat().st_size,
        "kind": kind,
        "driver": _driver(file, kind),
        "layers": [_layer(name, raw) for name, raw in raws],
        "findings": [finding.says for _, raw in raws for finding in raw.findings],
    }


def _layer_names(file: Path) -> list[str]:
    """Layers of a file that can hold several; for the rest its reader says what is wrong."""
    if file.suffix.lower() not in (".gpkg", ".gml", ".kml", ".gdb", ".sqlite"):
        return []
    import pyogrio

    try:
        with warnings.catch_warnings():
            # What the driver remarks on is said by the reader of the layer.
            warnings.simplefilter("ignore")
            return [str(row[0]) for row in pyogrio.list_layers(file)]
    except (RuntimeError, ValueError, OSError):
        return []


def _driver(file: Path, kind: str) -> str:
    known = {".gpkg": "GPKG", ".geojson": "GeoJSON", ".json": "GeoJSON", ".shp": "ESRI Shapefile", ".fgb": "FlatGeobuf"}
    tables = {
        ".csv": "CSV",
        ".tsv": "CSV",
        ".txt": "CSV",
        ".parquet": "Parquet",
        ".geoparquet": "Parquet",
        ".zip": "zip",
    }
    return "COCO" if kind == "coco" else (known | tables).get(file.suffix.lower(), file.suffix.lower().lstrip("."))


def _layer(name: str, raw: Raw) -> dict[str, Any]:
    roles = {role: guess(raw.frame, role) for role in USUAL}
    facts: dict[str, Any] = {
        "name": name,
        "features": len(raw.frame),
        "crs": _crs(raw.crs),
        "geometry": raw.kind if raw.geometry is not None else None,
        "columns": [_column(raw.frame[column]) for column in raw.frame.columns],
        "guesses": {role: column for role, column in roles.items() if column is not None},
        "notes": dict(raw.notes),
    }
    return facts | _shapes(raw) if raw.geometry is not None else facts


def _shapes(raw: Raw) -> dict[str, Any]:
    from geoeval.geometry.validity import reasons

    geometry = np.asarray(shapely.force_2d(raw.geometry), dtype=object)
    reason = reasons(geometry)
    if raw.broken is not None:
        reason = np.where(raw.broken != "", raw.broken, reason)
    names = np.array([shape.geom_type for shape in geometry if shape is not None], dtype=str)
    types, counts = np.unique(names, return_counts=True)
    slugs, times = np.unique(reason.astype(str), return_counts=True)
    bounds = [_number(value) for value in shapely.total_bounds(geometry)] if len(geometry) else [None] * 4
    return {
        "geometry_types": {str(name): int(count) for name, count in zip(types, counts, strict=True)},
        "bounds": None if None in bounds else bounds,
        "defects": {str(slug): int(count) for slug, count in zip(slugs, times, strict=True) if slug},
        "units": len(raw.units) or None,
    }


def _crs(crs: Any) -> dict[str, Any] | None:
    """Short name and unit of a system."""
    if crs is None:
        return None
    if is_pixel(crs):
        return {"name": "pixel", "unit": "px", "geographic": False}
    from geoeval.geometry.crs import describe

    axes = crs.axis_info
    unit = str(axes[0].unit_name) if axes else None
    return {"name": str(describe(crs)), "unit": unit, "geographic": bool(crs.is_geographic)}


def _column(values: pd.Series[Any]) -> dict[str, Any]:
    text = as_text(values)
    present = text[~pd.isna(text)]
    distinct = sorted(set(present))
    facts: dict[str, Any] = {
        "name": str(values.name),
        "dtype": str(values.dtype),
        "nulls": int(len(text) - len(present)),
        "distinct": len(distinct),
    }
    if len(distinct) <= FEW:
        facts["values"] = [value[:60] for value in distinct]
    if pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_bool_dtype(values.dtype) and len(present):
        facts["range"] = [_number(values.min()), _number(values.max())]
    return facts


def _unless(value: float, usual: float) -> float | None:
    """A value that is worth saying because it is not the usual one."""
    return None if value == usual else float(value)


def _number(value: Any) -> float | None:
    """A float that JSON can hold."""
    number = float(value)
    return number if math.isfinite(number) else None


def _raster(file: Path) -> dict[str, Any]:
    import rasterio
    from rasterio.errors import NotGeoreferencedWarning, RasterioError

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        try:
            with rasterio.open(file) as dataset:
                return _raster_facts(file, dataset)
        except (RasterioError, OSError, ValueError, RuntimeError) as error:
            says = " ".join(str(error).split())[:200]
            raise InputError(
                f"{str(file)!r}: expected a raster, but it cannot be read: {says}; write the file again"
            ) from error


def _raster_facts(file: Path, dataset: Any) -> dict[str, Any]:
    shrink = max(1.0, max(dataset.width, dataset.height) / DECIMATED)
    shape = (max(1, round(dataset.height / shrink)), max(1, round(dataset.width / shrink)))
    _try_pixels(dataset)
    crs, crs_note = _raster_crs(dataset)
    transform = dataset.transform
    return {
        "path": str(file),
        "bytes": file.stat().st_size,
        "kind": "raster",
        "driver": str(dataset.driver),
        "size": {"rows": int(dataset.height), "columns": int(dataset.width)},
        "crs": crs,
        "resolution": [math.hypot(transform.a, transform.d), math.hypot(transform.b, transform.e)],
        "rotated": bool(transform.b != 0 or transform.d != 0),
        "bounds": _corners(transform, dataset.height, dataset.width),
        "block_shape": [int(value) for value in dataset.block_shapes[0]],
        "bands": [_band(dataset, band, shape) for band in range(1, dataset.count + 1)],
        "notes": crs_note,
    }


def _corners(transform: Any, rows: int, columns: int) -> list[float | None]:
    """Bounds of a grid that may be rotated."""
    column, row = np.array([0, columns, 0, columns]), np.array([0, 0, rows, rows])
    x = transform.a * column + transform.b * row + transform.c
    y = transform.d * column + transform.e * row + transform.f
    return [_number(value) for value in (x.min(), y.min(), x.max(), y.max())]


def _try_pixels(dataset: Any) -> None:
    """Read pixels at full resolution: overviews can be whole where the pixels are not.

    All windows of a small raster; the first, middle and last ones of a large one.
    """
    windows = [window for _, window in dataset.block_windows(1)]
    if dataset.width * dataset.height > PROBED_CELLS:
        windows = [windows[0], windows[len(windows) // 2], windows[-1]]
    for window in windows:
        dataset.read(1, window=window)


def _raster_crs(dataset: Any) -> tuple[dict[str, Any] | None, dict[str, str]]:
    from geoeval.geometry.crs import parse_crs

    if dataset.crs is None:
        return None, {}
    try:
        return _crs(parse_crs(dataset.crs.to_wkt())), {}
    except (GeoevalError, RuntimeError, ValueError) as error:
        return None, {"crs": f"not usable: {' '.join(str(error).split())[:150]}"}


def _band(dataset: Any, band: int, shape: tuple[int, int]) -> dict[str, Any]:
    """One band; its range comes from a decimated read, so it is a glimpse and no statistic."""
    values = dataset.read(band, out_shape=shape, masked=True)
    data = values.compressed()
    if data.dtype.kind == "f":
        data = data[np.isfinite(data)]
    nodata = dataset.nodatavals[band - 1]
    real = data.dtype.kind in "iufb"
    return {
        "band": band,
        "dtype": str(dataset.dtypes[band - 1]),
        "scale": _unless(dataset.scales[band - 1], 1.0),
        "offset": _unless(dataset.offsets[band - 1], 0.0),
        "nodata": None if nodata is None else "nan" if math.isnan(nodata) else float(nodata),
        "unit": dataset.units[band - 1] or None,
        "description": dataset.descriptions[band - 1],
        "overviews": [int(factor) for factor in dataset.overviews(band)],
        "glimpse": {
            "cells": int(values.size),
            "valid": len(data),
            "range": [_number(data.min()), _number(data.max())] if len(data) and real else None,
        },
    }
