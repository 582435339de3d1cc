"""What a unit carries to its evaluator: objects, rasters, points. Arrays only; nothing here opens a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.model import FloatArray, IntArray, ObjectArray


@dataclass(frozen=True, slots=True, eq=False)
class Objects:
    """Features of one side of one unit, in metric x, y (or in pixels where the unit says so).

    All arrays have one entry a feature. Features that were dropped (empty, zero area) are not here; what was wrong with
    them is counted in ``defects``.

    Parameters
    ----------
    geometry
        Shapely geometries, valid, never empty or None (None everywhere where the source has no geometry).
    id
        Stable identifiers as str; never a row number.
    row
        Position of each feature in its file, for messages and layers only.
    label
        Class labels as str, or None where the source has none.
    score
        Confidence in [0, 1], or None where the source has none.
    ignore
        True where a reference region absorbs predictions.
    cluster
        Cluster of each feature as str.
    strata
        Field to one str a feature.
    fields
        Other declared attributes (dates, kinds, attributes to compare), any dtype.
    defects
        Reason (``self-intersection``, ``empty``, ...) to how many features of the source had it, before repair.
    read
        How many features the source held, before anything was dropped.
    source
        File name for messages.
    """

    geometry: ObjectArray
    id: ObjectArray
    row: IntArray
    label: ObjectArray | None = None
    score: FloatArray | None = None
    ignore: NDArray[np.bool_] | None = None
    cluster: ObjectArray | None = None
    strata: Mapping[str, ObjectArray] = field(default_factory=dict)
    fields: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    defects: Mapping[str, int] = field(default_factory=dict)
    read: int = 0
    source: str = ""

    def __len__(self) -> int:
        return len(self.id)

    def take(self, rows: NDArray[Any]) -> Objects:
        """The features at these positions, or where this mask is true."""

        def part(array: NDArray[Any] | None) -> NDArray[Any] | None:
            return None if array is None else array[rows]

        return Objects(
            geometry=self.geometry[rows],
            id=self.id[rows],
            row=self.row[rows],
            label=part(self.label),
            score=part(self.score),
            ignore=part(self.ignore),
            cluster=part(self.cluster),
            strata={name: values[rows] for name, values in self.strata.items()},
            fields={name: values[rows] for name, values in self.fields.items()},
            defects=self.defects,
            read=self.read,
            source=self.source,
        )


@dataclass(frozen=True, slots=True, eq=False)
class ObjectPair:
    """Both sides of one unit in one metric system.

    Parameters
    ----------
    reference, prediction
        The two sides.
    unit_of_length
        ``"m"``, or ``"px"`` for pixel coordinates.
    reference_inside, prediction_inside
        True where the representative point lies inside the declared AOI; None where no AOI was declared. Only objects
        inside are counted; matches may reach across the edge.
    """

    reference: Objects
    prediction: Objects
    unit_of_length: str = "m"
    reference_inside: NDArray[np.bool_] | None = None
    prediction_inside: NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """One window of a raster pair, on the reference grid.

    ``reference`` and ``prediction`` are (rows, columns) in the band's own dtype (recoded where declared); the two
    ``*_valid`` masks are True where that side has data. ``cluster`` is the name of the spatial block.
    ``area`` is the true area of the cells of each row in m² (rows,), on geographic grids, else None.
    ``strata`` maps a field to (rows, columns) integer codes and the names of the codes. ``confidence`` is how sure the
    prediction is (rows, columns), NaN where it does not say, None where no band of it was declared.
    """

    reference: NDArray[Any]
    prediction: NDArray[Any]
    reference_valid: NDArray[np.bool_]
    prediction_valid: NDArray[np.bool_]
    cluster: str
    row: int
    column: int
    area: FloatArray | None = None
    strata: Mapping[str, tuple[IntArray, Mapping[int, str]]] = field(default_factory=dict)
    confidence: FloatArray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RasterPair:
    """Two rasters on one lattice, read block by block.

    ``blocks()`` yields every block in a fixed order. ``cell_m`` is the cell size (x, y) in metres. ``notes`` says what
    the reader found and did (offset, alignment), for the report.
    """

    blocks: Callable[[], Iterator[Block]]
    shape: tuple[int, int]
    cell_m: tuple[float, float]
    unit: str = "1"
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class LabelledPoints:
    """Reference labels at sample points against map labels there: the standard accuracy job.

    ``reference`` and ``prediction`` are str labels, None where that side has none; ``stratum`` is the sampling stratum
    (the map class where none was declared); ``cluster`` and ``strata`` as in :class:`Objects`. ``mapped`` gives, per
    stratum, its size in cells, and ``unit_area`` what one cell is in m², for area estimates. ``score`` is how sure the
    prediction is (points,), NaN where it does not say, None where it never does.
    """

    id: ObjectArray
    x: FloatArray
    y: FloatArray
    reference: ObjectArray
    prediction: ObjectArray
    cluster: ObjectArray
    stratum: ObjectArray | None = None
    strata: Mapping[str, ObjectArray] = field(default_factory=dict)
    mapped: Mapping[str, int] = field(default_factory=dict)
    unit_area: float = 1.0
    area_unit: str = "m2"
    outside: int = 0
    score: FloatArray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoints:
    """Heights at points: reference measured, prediction sampled from the DEM (NaN where it has none), one unit."""

    id: ObjectArray
    x: FloatArray
    y: FloatArray
    reference: FloatArray
    prediction: FloatArray
    cluster: ObjectArray
    strata: Mapping[str, ObjectArray] = field(default_factory=dict)
    unit: str = "m"
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class FindingPair:
    """Known anomalies (reference) against a validator's findings (prediction), as columns.

    Each table has ``id``, ``dataset``, ``feature``, ``code``, ``severity`` as str. ``clean`` says whether an unmatched
    finding lies on material certified clean, one entry a prediction. ``planted`` lists the codes that were planted.
    """

    reference: Mapping[str, ObjectArray]
    prediction: Mapping[str, ObjectArray]
    clean: NDArray[np.bool_]
    cluster: ObjectArray
    prediction_cluster: ObjectArray
    clean_features: int = 0
    planted: tuple[str, ...] = ()
    strata: Mapping[str, ObjectArray] = field(default_factory=dict)
    completed: bool = True
    read: int | None = None
    expected: int | None = None
