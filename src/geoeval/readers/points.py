"""Sample points with reference labels, against a class map or against the labels of a second interpreter.

Duplicates    of points at exactly the same place (or of one declared id) one is kept: the labelled one, of several
              labels the first in sorted order, so that row order cannot matter; a finding says how many there were.
Join          two tables join by a declared id, else by their coordinates.
Outside       points that the map does not cover, or where it has no data, are counted, reported, and not compared.
Sizes         a design needs the size of its strata: cells of each map class, counted over the whole map (true areas on
              geographic grids), or of each class of a stratum raster, declared as ``by = "NAME=FILE"``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from geoeval.errors import ColumnError, ConfigError, CRSMismatch, InputError
from geoeval.layers import LabelledPoints
from geoeval.model import UNKNOWN, Finding, FloatArray, IntArray, ObjectArray, Unit
from geoeval.options import Pairing, Source
from geoeval.readers.columns import as_numbers, as_text
from geoeval.readers.confidence_band import confidence_header
from geoeval.readers.grouping import cut, parse_by
from geoeval.readers.guess import candidates, guess, require
from geoeval.readers.point_table import PointTable, inside_area, point_ids, point_shapes, read_points, recoded_labels
from geoeval.readers.point_values import class_sizes, codes_at, numbers_at
from geoeval.readers.raster import ENDINGS
from geoeval.readers.raster_header import Header, read_header
from geoeval.readers.raw import PIXEL
from geoeval.readers.sources import is_path, unit_name
from geoeval.readers.unitset import UnitSet


@dataclass(frozen=True, slots=True, eq=False)
class LoadedPoints:
    """A loader of points that are read already: there are few, and their map is read where they lie."""

    points: LabelledPoints

    def __call__(self) -> LabelledPoints:
        """The points."""
        return self.points


def labelled_points(reference: Source, prediction: Source, pairing: Pairing) -> UnitSet[LabelledPoints]:
    """Read sample points and what the prediction says there.

    Parameters
    ----------
    reference
        A table of points (CSV, vector file or frame) with a label column; ``columns.stratum`` names the sampling
        stratum, where it is not the map class.
    prediction
        A class map, or a second table of points. ``columns.score`` names the column of its confidences (guessed by its
        usual names), or the band of a map: ``"band:2"`` (never guessed).
    pairing
        Clusters, strata (columns, or ``NAME=FILE`` rasters), design, area of interest.

    Raises
    ------
    ColumnError
        There is no label column.
    InputError
        The features are no points, or nothing joins.

    Examples
    --------
    >>> import pandas as pd
    >>> a = pd.DataFrame({"lon": [5.0, 6.0], "lat": [50.0, 51.0], "label": ["crop", "bare"]})
    >>> found = labelled_points(Source(a), Source(a.assign(label="crop")), Pairing(cluster="none"))
    >>> found.units[0].load().prediction.tolist()
    ['crop', 'crop']
    """
    points = inside_area(read_points(reference, "reference"), pairing.aoi)
    names = _named(points.column, points.guessed, "reference label")
    if _is_raster(prediction.path):
        header = read_header(prediction, Path(prediction.path), "prediction")
        sure = confidence_header(prediction, Path(prediction.path))
        score = None if sure is None else numbers_at(sure, *_moved(points, sure))
        names |= {} if sure is None else {"prediction score": f"band {sure.band}"}
        label = recoded_labels(codes_at(header, *_moved(points, header)), prediction.recode)
        outside, findings = int(sum(value is None for value in label)), _distorted(header, pairing)
        inputs: tuple[str, ...] = (header.path,)
        sizes = _sizes(header, prediction.recode) if pairing.design else ({}, 1.0)
        unit = "px" if header.kind == "pixel" else "m2"
    else:
        other = read_points(prediction, "prediction")
        names |= _named(other.column, other.guessed, "prediction label")
        at, joined = _joined(points, other, reference, prediction)
        label, sureness = _taken(other.label, at, None), _scores(other, prediction)
        score = None if sureness is None else _taken(sureness[1], at, np.nan)
        names |= {} if sureness is None else sureness[0]
        outside, sizes, unit = 0, ({}, 1.0), "m2"
        findings, inputs = [*other.findings, *joined], other.table.inputs
    cluster, said = _clusters(points, pairing)
    strata, rasters = _strata(points, pairing)
    stratum, sizes, missing = _stratum(points, reference, label, sizes, rasters, pairing)
    payload = LabelledPoints(
        id=point_ids(points, reference),
        x=points.x,
        y=points.y,
        reference=points.label,
        prediction=label,
        cluster=cluster,
        stratum=stratum,
        strata=strata,
        mapped=sizes[0],
        unit_area=sizes[1],
        area_unit=unit,
        outside=outside,
        score=score,
    )
    name = unit_name(points.table.name)
    return UnitSet(
        (Unit(name, LoadedPoints(payload)),),
        (*points.findings, *findings, *missing),
        {**points.table.notes, **names, "clusters": said, "design": pairing.design or _NO_DESIGN},
        tuple(dict.fromkeys((*points.table.inputs, *inputs, *(header.path for header in rasters.values())))),
        clustered=pairing.cluster != "none",
    )


_NO_DESIGN = "none declared: no adjusted figures"


def _named(column: str, guessed: bool, role: str) -> dict[str, str]:
    return {role: f"{column!r}" + (" (guessed)" if guessed else "")}


def _is_raster(path: Any) -> bool:
    return is_path(path) and Path(path).suffix.lower() in ENDINGS


def _moved(points: PointTable, header: Header) -> tuple[FloatArray, FloatArray]:
    """Coordinates of the points in the system of a map."""
    if (points.table.crs == PIXEL) != (header.kind == "pixel"):
        raise CRSMismatch(
            f"{points.table.name} and {header.name}: one has a coordinate system, the other is in pixels; declare crs."
        )
    if header.kind == "pixel":
        return points.x, points.y
    from pyproj import CRS

    from geoeval.geometry.crs import transform

    moved = transform(point_shapes(points), points.table.crs, CRS.from_wkt(header.crs))
    return shapely.get_x(moved), shapely.get_y(moved)


def _sizes(header: Header, recode: Mapping[str, str]) -> tuple[dict[str, int], float]:
    """Size of every class of a map after recoding."""
    raw, unit_area = class_sizes(header)
    sizes: dict[str, int] = {}
    for code, size in raw.items():
        label = recode.get(code, code)
        sizes[label] = sizes.get(label, 0) + size
    return sizes, unit_area


def _distorted(header: Header, pairing: Pairing) -> list[Finding]:
    """A finding where cells of a projected map do not have the area that they seem to have."""
    if pairing.design is None or header.kind != "projected":
        return []
    from pyproj import CRS

    from geoeval.geometry.crs import metric_crs

    crs = CRS.from_wkt(header.crs)
    found, _ = metric_crs(crs, header.grid.bounds)
    if found == crs or abs(header.per_unit - 1) > 1e-9:
        return []
    says = "the map's projection is off in scale by more than 1 % there, and so are the areas of its classes"
    return [Finding("area-distorted", "major", (header.name,), says, "use an equal-area projection")]


def _joined(
    points: PointTable, other: PointTable, reference: Source, prediction: Source
) -> tuple[IntArray, list[Finding]]:
    """Row of the other table for each point, -1 where it has none."""
    by_id = bool(reference.columns.id and prediction.columns.id)
    if by_id:
        mine, theirs = point_ids(points, reference).tolist(), point_ids(other, prediction).tolist()
    else:
        mine = _places(points.x, points.y)
        theirs = _places(*_in_system_of(other, points))
    known: dict[Any, int] = {key: i for i, key in enumerate(theirs)}
    out = np.array([known.get(key, -1) for key in mine], dtype=np.int64)
    alone = (sum(key not in known for key in mine), len(set(theirs) - set(mine)))
    how = "by id" if by_id else "by coordinates"
    if len(mine) and alone[0] == len(mine):
        raise InputError(
            f"{points.table.name} and {other.table.name}: expected points in common {how}, found none; check the "
            "coordinate systems, or declare the id columns."
        )
    if not any(alone):
        return out, []
    says = f"joined {how}: {alone[0]} reference points have no partner, and {alone[1]} of the prediction are left over"
    return out, [Finding("points-unmatched", "minor", (points.table.name, other.table.name), says, "none needed")]


def _taken(values: NDArray[Any], at: IntArray, missing: Any) -> NDArray[Any]:
    """Values of some rows, ``missing`` where the row is -1."""
    out = np.full(len(at), missing, dtype=values.dtype)
    out[at >= 0] = values[at[at >= 0]]
    return out


def _scores(points: PointTable, source: Source) -> tuple[dict[str, str], FloatArray] | None:
    """What the column of confidences is, and the confidences; None where there is none."""
    declared, name = source.columns.score, points.table.name
    column = guess(points.frame, "score") if declared is None else declared
    if not column or column == points.column:
        return None
    numbers = as_numbers(points.frame[require(points.frame, column, "score", name)])
    if numbers is None:
        raise ColumnError(f"{name}: expected numbers in {column!r} (declared as score), found texts; name another one.")
    return _named(column, declared is None, "prediction score"), np.asarray(numbers, dtype=np.float64)


def _places(x: FloatArray, y: FloatArray) -> list[tuple[float, float]]:
    """Coordinates as keys; a billionth of a unit is no other place."""
    return list(zip(np.round(x, 9).tolist(), np.round(y, 9).tolist(), strict=True))


def _in_system_of(points: PointTable, other: PointTable) -> tuple[FloatArray, FloatArray]:
    a, b = points.table.crs, other.table.crs
    if (a == PIXEL) != (b == PIXEL):
        raise CRSMismatch(f"{points.table.name} and {other.table.name}: only one is in pixels; declare crs for both.")
    if a == PIXEL:
        return points.x, points.y
    from geoeval.geometry.crs import same_crs, transform

    if same_crs(a, b):
        return points.x, points.y
    moved = transform(point_shapes(points), a, b)
    return shapely.get_x(moved), shapely.get_y(moved)


def _clusters(points: PointTable, pairing: Pairing) -> tuple[ObjectArray, str]:
    """Cluster of each point, and what was decided in words."""
    column = pairing.cluster
    if column == "none":
        return np.full(len(points.x), "", dtype=np.object_), "none"
    if column == "auto":
        column = next(iter(candidates(points.frame, "cluster")), "grid:auto")
    if not column.startswith("grid:"):
        if pairing.units is not None:
            return np.full(len(points.x), "", dtype=np.object_), f"column {column!r} of units"
        values = as_text(points.frame[require(points.frame, column, "cluster", points.table.name)])
        blank = [i for i, value in enumerate(values) if value is None]
        if blank:
            raise InputError(
                f"{points.table.name}: {len(blank)} points have no {column}, the first at ({points.x[blank[0]]:.9g}, "
                f"{points.y[blank[0]]:.9g}); an unknown cluster cannot be made up."
            )
        return values, f"column {column!r}"
    return _blocks(points, column)


def _blocks(points: PointTable, text: str) -> tuple[ObjectArray, str]:
    from geoeval.geometry.blocks import auto_side, block_names, parse_grid

    unit = "px" if points.table.crs == PIXEL else "m"
    declared = parse_grid(text, unit=unit)
    x, y = points.x, points.y
    if unit == "m" and len(x):
        from geoeval.geometry.crs import metric_crs, transform

        bounds = (float(x.min()), float(y.min()), float(x.max()), float(y.max()))
        metric, _ = metric_crs(points.table.crs, bounds)
        moved = transform(point_shapes(points), points.table.crs, metric)
        x, y = shapely.get_x(moved), shapely.get_y(moved)
    if not len(x):
        return np.zeros(0, dtype=np.object_), "none: no points"
    side = declared or auto_side((x.min(), y.min(), x.max(), y.max()))
    return block_names(x, y, side), f"blocks of {side:g} {unit}" + ("" if declared else " (automatic)")


def _strata(points: PointTable, pairing: Pairing) -> tuple[dict[str, ObjectArray], dict[str, Header]]:
    """Stratum values of each point by field, and the rasters that gave some of them."""
    out: dict[str, ObjectArray] = {}
    rasters: dict[str, Header] = {}
    for entry in pairing.by:
        name, equals, path = entry.partition("=")
        if equals:
            rasters[name] = read_header(Source(path), path, f"stratum {name}")
            values = codes_at(rasters[name], *_moved(points, rasters[name]))
        else:
            field = parse_by(entry)
            name = field.name
            if name not in points.frame.columns and pairing.units is not None:
                continue
            column = points.frame[require(points.frame, name, "stratum", points.table.name)]
            numbers = as_numbers(column) if field.edges else None
            if field.edges and numbers is None:
                raise ConfigError(f"by = {entry!r}: {points.table.name} holds texts in {name!r}; leave the edges out.")
            values = as_text(column) if numbers is None else cut(numbers, field.edges)
        out[name] = np.array([UNKNOWN if value is None else value for value in values], dtype=np.object_)
    return out, rasters


def _stratum(
    points: PointTable,
    source: Source,
    label: ObjectArray,
    sizes: tuple[dict[str, int], float],
    rasters: Mapping[str, Header],
    pairing: Pairing,
) -> tuple[ObjectArray | None, tuple[dict[str, int], float], list[Finding]]:
    """Sampling stratum of each point (None: the map class), and the sizes of the strata."""
    name = source.columns.stratum
    if name is None or pairing.design not in ("stratified", None):
        return None, sizes, []
    if name in rasters:
        codes = codes_at(rasters[name], *_moved(points, rasters[name]))
        return np.array([UNKNOWN if c is None else c for c in codes], dtype=np.object_), class_sizes(rasters[name]), []
    values = as_text(points.frame[require(points.frame, name, "stratum", points.table.name)])
    stratum = np.array([UNKNOWN if value is None else value for value in values], dtype=np.object_)
    if all(a == b for a, b in zip(stratum, label, strict=True) if b is not None) or pairing.design is None:
        return stratum, sizes, []
    says = f"the strata of column {name!r} are not the classes of the map, and their sizes are not known"
    mend = f"declare the stratum map with by = '{name}=FILE'"
    return stratum, ({}, 1.0), [Finding("stratum-sizes-missing", "major", (points.table.name,), says, mend)]
