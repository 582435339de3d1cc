"""Raster pairs: files become units that are read block by block on the grid of the reference.

Conventions   every raster of a pair is brought to the reference grid: on one lattice (within 1e-3 of a pixel, extents
              may differ) as it is, otherwise only as ``align`` declares. Cells that a side does not cover are not valid
              there.
Nodata        what the source declares, else what the file says; optional: where there is none, every code is data.
Clusters      spatial blocks of whole pixels, at whole multiples of their side in the system's own coordinates.
"""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from geoeval.errors import ConfigError, InputError
from geoeval.geometry.blocks import auto_side, parse_grid
from geoeval.geometry.lattice import metres_per_degree
from geoeval.layers import RasterPair
from geoeval.model import Unit
from geoeval.options import Align, Pairing, Source
from geoeval.readers.confidence_band import confidence_band, confidence_layer
from geoeval.readers.raster_blocks import Blocks, Clusters
from geoeval.readers.raster_header import Header, read_header
from geoeval.readers.raster_layers import Layer
from geoeval.readers.raster_place import Placed, absent, own, place, system_name, unfit_nodata
from geoeval.readers.sources import FilePair, Files, existing, is_path, pair_files, path_text, unit_name
from geoeval.readers.unitset import UnitSet

#: Endings of files that hold rasters; other files of a folder are passed over.
ENDINGS = frozenset({".tif", ".tiff", ".vrt", ".img", ".asc", ".jp2", ".png", ".jpg", ".jpeg", ".bil", ".dem", ".hgt"})


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """A loader that has nothing left to read: blocks are read when they are asked for."""

    pair: RasterPair

    def __call__(self) -> RasterPair:
        """The pair."""
        return self.pair


def raster_units(reference: Source, prediction: Source, pairing: Pairing, *, categorical: bool) -> UnitSet[RasterPair]:
    """Pair rasters of two sources; headers are read and compared here, pixels later, in the worker.

    Parameters
    ----------
    reference, prediction
        A file, glob, folder or array each; several files pair by stem.
    pairing
        Clusters, strata (``NAME=FILE`` or ``NAME=FOLDER``, classes on the same ground), alignment, area of interest.
    categorical
        True for classes, False for measurements such as heights.

    Raises
    ------
    GridMismatch
        Grids differ and no alignment was declared.
    InputError
        A file cannot be used.

    Examples
    --------
    >>> a = np.array([[1, 1], [2, 2]])
    >>> found = raster_units(Source(a), Source(a), Pairing(), categorical=True)
    >>> found.units[0].load().shape
    (2, 2)
    """
    files, findings = pair_files(
        raster_files(reference.path, "reference"), raster_files(prediction.path, "prediction"), pairing.on_unknown_unit
    )
    strata = _stratum_files(pairing)
    recodes = (codes_of(reference.recode), codes_of(prediction.recode)) if categorical else ({}, {})
    headers = [read_header(reference, pair.reference, "reference") for pair in files]
    clusters, said = _clusters(files, headers, pairing)
    units, notes, inputs = [], {"clusters": said}, []
    for pair, header, blocks in zip(files, headers, clusters, strict=True):
        placed = _placed(pair, header, prediction, pairing, categorical=categorical, recode=recodes[1])
        layers = _stratum_layers(strata, pair, header, pairing)
        scored = categorical and pair.prediction is not None
        findings += [*unfit_nodata(header), *placed.findings, *(f for _, part in layers for f in part.findings)]
        raster = RasterPair(
            Blocks(
                own(header, categorical=categorical, recode=recodes[0]),
                placed.layer,
                blocks,
                tuple((name, part.layer) for name, part in layers),
                _polygons(pairing.aoi, header),
                confidence=confidence_layer(prediction, pair.prediction, placed.layer) if scored else None,
            ),
            shape=(header.grid.rows, header.grid.columns),
            cell_m=header.cell_m,
            unit="px" if header.kind == "pixel" else "1",
            notes=_facts(header, placed),
        )
        units.append(Unit(pair.unit, Loaded(raster), pair.unit if pairing.cluster == "unit" else None))
        inputs += [h.path for h in (header, placed.layer.header, *(p.layer.header for _, p in layers)) if h.path]
    notes.update(_said(units))
    if categorical and confidence_band(prediction) is not None:
        notes["prediction score"] = f"band {confidence_band(prediction)}"
    if pairing.aoi:
        inputs.append(str(pairing.aoi))
    return UnitSet(
        tuple(units),
        tuple(dict.fromkeys(findings)),
        notes,
        tuple(dict.fromkeys(inputs)),
        clustered=pairing.cluster != "none",
    )


def raster_files(path: Any, side: str) -> Files:
    """The raster files that a source names, sorted by stem; an array stands for itself.

    Raises
    ------
    InputError
        Nothing is there, or two files share a stem.
    """
    if isinstance(path, np.ndarray):
        return Files(single=True, items=((side, path),))
    if not is_path(path):
        raise InputError(f"{side}: expected a raster file, glob, folder or array, found {type(path).__name__}.")
    text = path_text(path, side)
    if Path(text).is_dir():
        return _by_stem([item for item in Path(text).iterdir() if item.suffix.lower() in ENDINGS], side, text)
    if glob.has_magic(text) and not Path(text).exists():
        return _by_stem([Path(item) for item in glob.glob(text, recursive=True)], side, text)  # noqa: PTH207
    existing(text, side)
    return Files(single=True, items=((unit_name(text), Path(text)),))


def _by_stem(paths: Sequence[Path], side: str, whole: str) -> Files:
    if not paths:
        raise InputError(f"{side}: expected raster files in {whole!r}, found none; look at the folder or the pattern.")
    stems = [unit_name(path.name) for path in paths]
    double = sorted({stem for stem in stems if stems.count(stem) > 1})
    if double:
        raise InputError(f"{side}: several files in {whole!r} have the stem {double[0]!r}, and files pair by stem.")
    return Files(single=False, items=tuple(sorted(zip(stems, paths, strict=True))))


def codes_of(recode: Mapping[str, str]) -> dict[int, int]:
    """Class codes from their texts.

    Raises
    ------
    ConfigError
        Where one is no whole number.

    Examples
    --------
    >>> codes_of({"1": "0"})
    {1: 0}
    """
    out = {}
    for old, new in recode.items():
        try:
            out[int(old)] = int(new)
        except ValueError as error:
            raise ConfigError(f"recode {old}={new}: raster classes are whole numbers; write such as 1=0.") from error
    return out


def _placed(
    pair: FilePair, header: Header, source: Source, pairing: Pairing, *, categorical: bool, recode: dict[int, int]
) -> Placed:
    if pair.prediction is None:
        return Placed(absent(header), "no prediction", "not defined: no prediction", (0.0, 0.0))
    other = read_header(source, pair.prediction, "prediction")
    if header.array is not None and other.array is not None and header.grid != other.grid:
        raise InputError(f"arrays must have one shape, found {header.grid} and {other.grid}; cut them to one window.")
    return place(header, other, pairing.align, categorical=categorical, recode=recode)


def _stratum_files(pairing: Pairing) -> dict[str, Files]:
    out = {}
    for entry in pairing.by:
        name, equals, path = entry.partition("=")
        if equals:
            out[name] = raster_files(path, f"stratum {name}")
        elif pairing.units is None:
            raise ConfigError(f"by = {entry!r}: the strata of rasters are rasters too; write {entry}=FILE.")
    return out


def _stratum_layers(
    strata: Mapping[str, Files], pair: FilePair, header: Header, pairing: Pairing
) -> list[tuple[str, Placed]]:
    out = []
    for name, files in strata.items():
        item = files.items[0][1] if files.single else dict(files.items).get(pair.unit)
        if item is None:
            raise InputError(f"stratum {name}: expected a file of the stem {pair.unit!r}, found none; add it.")
        side = f"stratum {name}"
        align: Align | None = "nearest" if pairing.align else None
        out.append((name, place(header, read_header(Source(item), item, side), align, side=side)))
    return out


def _polygons(aoi: str | None, header: Header) -> tuple[Any, ...] | None:
    """Polygons of the area of interest in the system of the raster."""
    if aoi is None:
        return None
    from geoeval.readers.raw import PIXEL
    from geoeval.readers.vector import read_table

    table = read_table(Source(aoi, crs=PIXEL if header.kind == "pixel" else None))
    geometry = [] if table.geometry is None else [g for g in table.geometry if g is not None and g.area > 0]
    if header.kind != "pixel":
        from pyproj import CRS

        from geoeval.geometry.crs import transform

        shapes = np.empty(len(geometry), dtype=np.object_)
        shapes[:] = geometry
        geometry = list(transform(shapes, table.crs, CRS.from_wkt(header.crs)))
    if not geometry:
        raise InputError(f"{aoi}: expected polygons, found none; an area of interest needs an area.")
    return tuple(geometry)


def _clusters(files: Sequence[FilePair], headers: Sequence[Header], pairing: Pairing) -> tuple[list[Clusters], str]:
    """Spatial blocks of every unit, and what was decided in words."""
    text = "grid:auto" if pairing.cluster == "auto" else pairing.cluster
    if not text.startswith("grid:"):
        if text not in ("none", "unit") and pairing.units is None:
            raise ConfigError(
                f"cluster = {text!r}: rasters have no columns; use 'grid:500m', 'grid:64px', 'grid:auto', 'unit' (each "
                "pair of files is one), 'none', or name a column of a table of units."
            )
        return [Clusters() for _ in files], {"none": "none", "unit": "each unit"}.get(text, f"column {text!r} of units")
    together = _one_system(headers) and not text.endswith("px")
    if together:
        one, side = _blocks(text, headers, "")
        return [one for _ in files], side
    each = [
        _blocks(text, [header], f"{pair.unit}:" if len(files) > 1 else "")
        for pair, header in zip(files, headers, strict=True)
    ]
    return [one for one, _ in each], each[0][1]


def _one_system(headers: Sequence[Header]) -> bool:
    first = headers[0]
    return all(h.crs == first.crs and h.kind != "pixel" and h.grid.upright for h in headers)


def _blocks(text: str, headers: Sequence[Header], prefix: str) -> tuple[Clusters, str]:
    first = headers[0]
    in_pixels = first.kind == "pixel" or text.endswith("px") or not first.grid.upright
    pixels = first.kind == "pixel" or text.endswith("px")
    declared = parse_grid(text, unit="px" if pixels else "m")
    if in_pixels:
        scale = (1.0, 1.0) if pixels else first.cell_m
        extent = (first.grid.columns * scale[0], first.grid.rows * scale[1])
        cell = (1.0, 1.0)
    else:
        scale, extent = _metres(headers)
        cell = first.grid.cell
    side = declared or auto_side((0.0, 0.0, *extent))
    per_axis = (side / scale[0], side / scale[1])
    # A block is a rectangle of whole cells, so it cannot be smaller than one.
    own_side = (max(per_axis[0], cell[0]), max(per_axis[1], cell[1]))
    said = f"blocks of {side:g} {'px' if pixels else 'm'}" + ("" if declared else " (automatic)")
    return Clusters(own_side, in_pixels, prefix), said


def _metres(headers: Sequence[Header]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Metres in one unit of either axis, and the size of the common bounding box in metres."""
    boxes = np.array([header.grid.bounds for header in headers])
    west, south = boxes[:, :2].min(axis=0)
    east, north = boxes[:, 2:].max(axis=0)
    first = headers[0]
    scale = (first.per_unit, first.per_unit)
    if first.kind == "geographic":
        degrees = float(np.degrees(first.per_unit))
        along, up = metres_per_degree((south + north) / 2 * degrees, first.ellipsoid)
        scale = (along * degrees, up * degrees)
    return scale, (float((east - west) * scale[0]), float((north - south) * scale[1]))


def _facts(header: Header, placed: Placed) -> dict[str, Any]:
    """What an evaluator may need to know of the files, without opening them."""
    other: Layer = placed.layer
    there = other.mode != "absent"
    return {
        "alignment": placed.alignment,
        "offset": placed.offset,
        "shift_px": placed.shift_px,
        "grid": str(header.grid),
        "crs": system_name(header),
        "reference_name": header.name,
        "prediction_name": other.header.name if there else "",
        "reference_crs": header.crs,
        "prediction_crs": other.header.crs if there else "",
        "reference_unit": header.unit,
        "prediction_unit": other.header.unit if there else None,
    }


def _said(units: Sequence[Unit[RasterPair]]) -> dict[str, str]:
    """Grid, offset and alignment for the user; where units differ, those of the first and how many others there are."""
    out = {}
    for key in ("grid", "crs", "alignment", "offset"):
        values = list(dict.fromkeys(str(unit.load().notes[key]) for unit in units))
        out[key] = values[0] + (f" (and {len(values) - 1} others)" if len(values) > 1 else "")
    return out
