"""Features inside their samples: the reference of a case lies where the manifests say that its samples lie.

Compared      every reference feature, point or raster with the box of the sample that it claims, in the box's own
              system, where that box is a rectangle; they have to meet, and touching is enough. Longitudes are counted
              from the box, so that the antimeridian does not matter.
Not compared  pixel coordinates, tables without geometry, samples without a box on Earth: a claim limit says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from geoeval.config import Case
from geoeval.errors import LeakageError
from geoeval.layers import Checkpoints, LabelledPoints, ObjectPair, RasterPair
from geoeval.model import FloatArray, ObjectArray, Unit
from geoeval.readers.unitset import UnitSet
from geoeval.splits.manifest import Manifest

Mask = NDArray[np.bool_]

_SHOWN = 10
_SHOWN_BOXES = 3

#: Points on each edge of the outline of a raster.
_EDGE = 32

#: Least and most x and y, in the order of a box's corners.
_ACROSS, _ALONG = [0, 1, 1, 0], [0, 0, 1, 1]

#: What rounding on the way from another system may move a coordinate, in degrees and in metres.
_ROUNDING_DEG, _ROUNDING_M = 1e-8, 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class SampleBoxes:
    """Boxes of samples on Earth, one row a sample.

    Parameters
    ----------
    row
        Sample id to its row; samples without a box on Earth are left out.
    split
        The split of each sample.
    bounds
        (samples, 4) least x, least y, most x, most y; in degrees the least x may exceed the most across 180°.
    crs
        The system of each box.
    """

    row: Mapping[str, int]
    split: Sequence[str]
    bounds: FloatArray
    crs: ObjectArray

    def ids(self, rows: Sequence[int]) -> list[str]:
        """What to call some samples in a message."""
        names = list(self.row)
        return [f"{names[row]!r} ({self.split[row]})" for row in rows]


def sample_boxes(manifests: Sequence[Manifest]) -> SampleBoxes:
    """The boxes of all samples of some manifests."""
    placed = [
        entry
        for one in manifests
        for entry in one.samples
        if entry.get("bbox") and str(entry.get("crs", "pixel")).strip().lower() != "pixel"
    ]
    crs = np.empty(len(placed), dtype=np.object_)
    crs[:] = [entry["crs"] for entry in placed]
    return SampleBoxes(
        {str(entry["sample_id"]): at for at, entry in enumerate(placed)},
        [str(entry["split"]) for entry in placed],
        np.array([entry["bbox"] for entry in placed], dtype=np.float64).reshape(-1, 4),
        crs,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Claims:
    """Reference features of one unit: shapes in one system, what they are called, and the sample that each claims."""

    shapes: ObjectArray
    id: ObjectArray
    sample: ObjectArray
    crs: Any


def require_inside(boxes: SampleBoxes, case: Case, units: UnitSet[Any], where: str) -> tuple[str, ...]:
    """Refuse reference features that do not lie in the box of the sample that they claim.

    Parameters
    ----------
    where
        What to call the case in a message.

    Returns
    -------
    tuple of str
        What may not be claimed, because nothing could be compared.

    Raises
    ------
    LeakageError
        Naming the case, the features, the samples that they claim, and where they lie instead.
    """
    whole = True
    strays: list[str] = []
    count = 0
    for unit in units.units:
        claims = _claims(case, units, unit)
        if claims is None:
            whole = False
            continue
        row = np.array([boxes.row.get(name, -1) for name in claims.sample], dtype=np.int64)
        here = np.flatnonzero((row >= 0) & ~(shapely.is_missing(claims.shapes) | shapely.is_empty(claims.shapes)))
        whole &= len(here) == len(row)
        out = here[~meets(claims.shapes[here], claims.crs, boxes.bounds[row[here]], boxes.crs[row[here]])]
        count += len(out)
        strays += [_said(boxes, claims, at) for at in out[: _SHOWN - len(strays)].tolist()]
    if count:
        more = [f"... and {count - len(strays)} more"] if count > len(strays) else []
        lines = "\n".join(f"  {one}" for one in [*strays, *more])
        raise LeakageError(
            f"{where}: reference features outside of the box of the sample that they claim: {count}\n{lines}\n"
            "Give them the name of the sample that they lie in, or take them out"
        )
    if whole:
        return ()
    return (f"features of case {case.id} were not held against the boxes of their samples (no coordinates on Earth)",)


def _said(boxes: SampleBoxes, claims: _Claims, at: int) -> str:
    n = len(boxes.split)
    alone = np.repeat(claims.shapes[at : at + 1], n)
    rows = np.flatnonzero(meets(alone, claims.crs, boxes.bounds, boxes.crs)).tolist()
    names = boxes.ids(rows[:_SHOWN_BOXES])
    more = f" and {len(rows) - len(names)} others" if len(rows) > len(names) else ""
    lies = f"lies in the box of {', '.join(names)}{more}" if rows else "lies in the box of no sample"
    return f"{claims.id[at]!r} claims {claims.sample[at]!r} and {lies}"


def _claims(case: Case, units: UnitSet[Any], unit: Unit[Any]) -> _Claims | None:
    """The reference of a unit; None where it has no coordinates on Earth."""
    payload = unit.load()
    if isinstance(payload, ObjectPair):
        if units.crs is None or payload.unit_of_length != "m":
            return None
        side = payload.reference
        return _Claims(side.geometry, side.id, _claimed(case, unit, side.cluster, len(side)), _parsed(units.crs))
    if isinstance(payload, LabelledPoints | Checkpoints):
        crs = _system_of_points(case)
        if crs is None:
            return None
        shapes = np.asarray(shapely.points(payload.x, payload.y), dtype=np.object_).reshape(-1)
        return _Claims(shapes, payload.id, _claimed(case, unit, payload.cluster, len(shapes)), crs)
    if isinstance(payload, RasterPair):
        return _raster_claims(case, unit)
    return None


def _claimed(case: Case, unit: Unit[Any], cluster: ObjectArray | None, n: int) -> ObjectArray:
    """The sample that each feature claims, through the name that its unit or its cluster bears."""
    one = unit.id if case.sample_by == "unit" else unit.cluster
    names = [one] * n if one is not None else [str(name) for name in (() if cluster is None else cluster)]
    out = np.empty(n, dtype=np.object_)
    out[:] = [case.sample_of.get(name, name) for name in names]
    return out


def _parsed(crs: str) -> Any:
    from geoeval.geometry.crs import parse_crs

    return parse_crs(crs)


def _system_of_points(case: Case) -> Any:
    """The system of a case's points; None for image coordinates."""
    from geoeval.readers.heights import holds_points
    from geoeval.readers.raw import is_pixel
    from geoeval.readers.vector import read_table

    crs = read_table(case.reference if holds_points(case.reference) else case.prediction).crs
    return None if crs is None or is_pixel(crs) else crs


def _raster_claims(case: Case, unit: Unit[Any]) -> _Claims | None:
    """The outline of the reference raster as one feature, with points along its edges."""
    from geoeval.readers.raster import raster_files
    from geoeval.readers.raster_header import read_header

    files = dict(raster_files(case.reference.path, "reference").items)
    item = files.get(unit.id, next(iter(files.values())))
    header = read_header(case.reference, item, "reference")
    if header.kind == "pixel":
        return None
    rows, columns = header.grid.rows, header.grid.columns
    corners = [(0, 0), (columns, 0), (columns, rows), (0, rows), (0, 0)]
    at = np.concatenate([np.linspace(a, b, _EDGE, endpoint=False) for a, b in pairwise(corners)])
    shape = np.array([shapely.Polygon([header.grid.at(x, y) for x, y in at.tolist()])], dtype=np.object_)
    return _Claims(shape, np.array([header.name], dtype=np.object_), _claimed(case, unit, None, 1), _parsed(header.crs))


def meets(shapes: ObjectArray, crs: Any, bounds: FloatArray, systems: ObjectArray) -> Mask:
    """Which shapes meet their boxes; what has no place in the system of its box does not.

    Parameters
    ----------
    shapes
        (n,) shapely geometries in ``crs``.
    bounds
        (n, 4) the box of each shape, in the system of that box.
    systems
        (n,) these systems.

    Examples
    --------
    >>> import pyproj
    >>> points = shapely.points([[-179.9, 10.5], [0.0, 10.5]])
    >>> box = np.array([[179.5, 10.0, -179.5, 11.0]] * 2)
    >>> meets(points, pyproj.CRS("EPSG:4326"), box, np.array(["EPSG:4326"] * 2, dtype=object)).tolist()
    [True, False]
    """
    out = np.zeros(len(shapes), dtype=np.bool_)
    for system in dict.fromkeys(systems.tolist()):
        rows = np.flatnonzero(systems == system)
        out[rows] = _meets_in(shapes[rows], crs, bounds[rows], _parsed(system))
    return out


def _meets_in(shapes: ObjectArray, crs: Any, bounds: FloatArray, system: Any) -> Mask:
    from geoeval.geometry.crs import horizontal, same_crs
    from geoeval.geometry.scale import transformer

    flat = np.array(shapely.force_2d(shapes), dtype=np.object_)
    at, owner = shapely.get_coordinates(flat, return_index=True)
    slack = 0.0
    if not same_crs(crs, system):
        at = np.stack(transformer(horizontal(crs), horizontal(system)).transform(at[:, 0], at[:, 1]), axis=1)
        slack = _ROUNDING_DEG if system.is_geographic else _ROUNDING_M
    lost = np.zeros(len(flat), dtype=np.bool_)
    np.logical_or.at(lost, owner, ~np.isfinite(at).all(axis=1))
    at[lost[owner]] = 0.0
    west, south, east, north = bounds.T
    if system.is_geographic:
        turn = 2 * np.pi / float(horizontal(system).axis_info[0].unit_conversion_factor)
        east = np.where(west > east, east + turn, east)
        middle = ((west + east) / 2)[owner]
        at[:, 0] -= turn * np.round((at[:, 0] - middle) / turn)
    moved = shapely.set_coordinates(flat, at)
    if system.is_geographic:
        # A shape on the far side of the Earth falls apart where longitudes are counted from the box.
        x0, _, x1, _ = np.reshape(shapely.bounds(moved), (-1, 4)).T
        lost |= (x1 - x0 > turn / 2) & (east - west < turn / 2)
    x, y = np.stack([west - slack, east + slack], axis=1), np.stack([south - slack, north + slack], axis=1)
    # The hull of a box without an area is the line or the point that it is.
    boxes = shapely.convex_hull(shapely.linestrings(np.stack([x[:, _ACROSS], y[:, _ALONG]], axis=2)))
    return np.asarray(shapely.intersects(moved, boxes), dtype=np.bool_) & ~lost
