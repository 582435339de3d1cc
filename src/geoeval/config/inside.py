"""Features inside their samples: the reference of a case lies where the manifests say that its samples lie.

Own box       every reference feature, point or raster meets the box of the sample that it claims; touching is enough.
Rasters       at least half of the area of a raster lies in that box: a raster is read as a whole.
Other boxes   no part of a reference lies in the box of a challenge or development sample, whatever it claims; touching
              an edge is allowed. Boxes are no secret, so that this needs no key.
Not compared  pixel coordinates, tables without geometry, samples without a box on Earth: a claim limit says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import shapely

from geoeval.config import Case
from geoeval.config.ground import Ground, meets, parsed, shares
from geoeval.errors import LeakageError
from geoeval.layers import Checkpoints, LabelledPoints, ObjectPair, RasterPair
from geoeval.model import FloatArray, IntArray, ObjectArray, Unit
from geoeval.readers.unitset import UnitSet
from geoeval.splits.manifest import Manifest
from geoeval.splits.record import EVALUATED

_SHOWN = 10
_SHOWN_BOXES = 3

#: Points on each edge of the outline of a raster.
_EDGE = 32

#: Least part of the area of a raster that lies in the box of its sample.
_LEAST_SHARE = 0.5


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
    raster: bool = False


class _Strays:
    """What lies where it must not: all of it counted, the first of it named."""

    def __init__(self) -> None:
        self.count = 0
        self.named: list[str] = []

    def add(self, at: IntArray, said: Callable[[int], str]) -> None:
        self.count += len(at)
        self.named += [said(one) for one in at[: _SHOWN - len(self.named)].tolist()]

    def refuse(self, what: str, advice: str) -> None:
        if not self.count:
            return
        more = [f"... and {self.count - len(self.named)} more"] if self.count > len(self.named) else []
        lines = "\n".join(f"  {one}" for one in [*self.named, *more])
        raise LeakageError(f"{what}: {self.count}\n{lines}\n{advice}")


def require_inside(boxes: SampleBoxes, case: Case, units: UnitSet[Any], where: str) -> tuple[str, ...]:
    """Refuse a reference that does not lie in the boxes of the samples that it claims, or reaches into a closed one.

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
        Naming the case, the features, the samples that they claim, and where they lie instead; or the challenge and
        development samples that they reach into; or the rasters of which less than half lies in their sample.
    """
    whole = True
    outside, within, loose = _Strays(), _Strays(), _Strays()
    closed = np.flatnonzero([split not in EVALUATED for split in boxes.split])
    ground = Ground(boxes.bounds[closed], boxes.crs[closed])
    for unit in units.units:
        claims = _claims(case, units, unit)
        if claims is None:
            whole = False
            continue
        row = np.array([boxes.row.get(name, -1) for name in claims.sample], dtype=np.int64)
        there = np.flatnonzero(~(shapely.is_missing(claims.shapes) | shapely.is_empty(claims.shapes)))
        here = there[row[there] >= 0]
        whole &= len(here) == len(row)
        own = claims.shapes[here], claims.crs, boxes.bounds[row[here]], boxes.crs[row[here]]
        outside.add(here[~meets(*own)], partial(_lies, boxes, claims))
        reaching, reached = ground.reached(claims.shapes[there], claims.crs)
        said = partial(_reaches, boxes, claims, there[reaching], closed[reached])
        within.add(np.unique(there[reaching]), said)
        if claims.raster:
            share = dict(zip(here.tolist(), shares(*own).tolist(), strict=True))
            loose.add(here[[share[at] < _LEAST_SHARE for at in here.tolist()]], partial(_covers, claims, share))
    outside.refuse(
        f"{where}: reference features outside of the box of the sample that they claim",
        "Give them the name of the sample that they lie in, or take them out",
    )
    within.refuse(
        f"{where}: reference features that reach into the box of a challenge or development sample",
        "Cut them to the sample that they claim, or take them out",
    )
    loose.refuse(
        f"{where}: reference rasters of which less than half lies in the box of the sample that they claim",
        "Cut each raster to its sample",
    )
    if whole:
        return ()
    return (f"features of case {case.id} were not held against the boxes of their samples (no coordinates on Earth)",)


def _lies(boxes: SampleBoxes, claims: _Claims, at: int) -> str:
    alone = np.repeat(claims.shapes[at : at + 1], len(boxes.split))
    rows = np.flatnonzero(meets(alone, claims.crs, boxes.bounds, boxes.crs))
    lies = f"lies in the box of {_listed(boxes, rows)}" if len(rows) else "lies in the box of no sample"
    return f"{claims.id[at]!r} claims {claims.sample[at]!r} and {lies}"


def _reaches(boxes: SampleBoxes, claims: _Claims, reaching: IntArray, reached: IntArray, at: int) -> str:
    rows = reached[reaching == at]
    return f"{claims.id[at]!r} claims {claims.sample[at]!r} and reaches into the box of {_listed(boxes, rows)}"


def _covers(claims: _Claims, share: Mapping[int, float], at: int) -> str:
    return f"{claims.id[at]!r} claims {claims.sample[at]!r} and has {share[at]:.2%} of its area in that box"


def _listed(boxes: SampleBoxes, rows: IntArray) -> str:
    names = boxes.ids(rows[:_SHOWN_BOXES].tolist())
    more = f" and {len(rows) - len(names)} others" if len(rows) > len(names) else ""
    return f"{', '.join(names)}{more}"


def _claims(case: Case, units: UnitSet[Any], unit: Unit[Any]) -> _Claims | None:
    """The reference of a unit; None where it has no coordinates on Earth."""
    payload = unit.load()
    if isinstance(payload, ObjectPair):
        if units.crs is None or payload.unit_of_length != "m":
            return None
        side = payload.reference
        return _Claims(side.geometry, side.id, _claimed(case, unit, side.cluster, len(side)), parsed(units.crs))
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
    name = np.array([header.name], dtype=np.object_)
    return _Claims(shape, name, _claimed(case, unit, None, 1), parsed(header.crs), raster=True)
