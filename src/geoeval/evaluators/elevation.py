"""Elevation: how far heights lie from reference heights.

Conventions   error = prediction − reference, in the declared unit, in float64 before anything is subtracted. Cells and
              points count where both sides have data; ``coverage`` is their share of those where the reference has.
              Payloads: a raster pair (every cell, block by block) or heights at checkpoints.
Quantities    count, coverage (a proportion), bias, median, mae, rmse, std (ddof 1), nmad, le68, le90, le95 (percentiles
              68.27, 90 and 95 of |error|), min, max, skewness (g1), kurtosis (excess, g2).
Exactness     moments are whole-number sums. Quantiles are exact up to 64 MiB of float32 errors for each unit (above
              2 Mi cells to float32's 6e-8 of the recentred error; a subgroup may then still fall in a bin, and is
              marked ``sketch``); beyond, they come from bins of half width 1.2e-4 of the recentred error, are marked
              ``sketch``, and their bounds stand in ``extras``. Redraws of rasters above 2 Mi cells take errors to lie
              evenly inside bins of half width 8e-3 of the recentred error.
Differs       from tools that call P95 − P5, or 1.6449 · RMSE, LE90: these stand in ``extras`` under their own names. A
              comparison of two rasters is a census and is labelled "not a checkpoint test".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from geoeval.layers import Block, Checkpoints, RasterPair
from geoeval.ledger import Tallied
from geoeval.model import UNKNOWN, Cell, Finding, FloatArray, Proportion, Quantity, Records, Scalar, Unit, scalar_value
from geoeval.stats.distribution import PER_UNIT, error_sums, moments
from geoeval.stats.error_cells import BEYOND, KERNEL_CELLS, ErrorCells, Way, way_of
from geoeval.stats.height_extras import elevation_extras, elevation_remarks
from geoeval.stats.sketch import KeptErrors, Sample, coarse_samples, whole_sample
from geoeval.stats.tally import Tally, Totals, quanta, total
from geoeval.stats.units import metres_per

#: Upper edges are open, except that of the last bin; in the declared unit.
DEFAULT_EDGES = (-10.0, -5.0, -2.0, -1.0, -0.5, -0.2, -0.1, 0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)

#: Errors from here on are no errors of a DEM; the highest mountain has 8849 m.
IMPROBABLE_M = 9000.0

#: A first pass for an offset looks at about so many cells.
_PILOT_CELLS = 65_536


@dataclass(frozen=True)
class Elevation:
    """How far heights lie from reference heights.

    Parameters
    ----------
    unit
        Unit of every figure; payloads in another unit are converted.
    edges
        Declared bins of the histogram, ascending.
    pilot
        Offset that errors are recentred on before they are binned; None takes that of the reader, from a first look.
    exact_mib
        Up to so many MiB of float32 errors in a unit, quantiles are exact.
    survey_rmse
        Vertical RMSE of the checkpoint survey itself, in ``unit``; ASPRS edition 2 needs it.
    relative
        Also tally what R² and the mean absolute percentage error need (in ``extras``).

    Examples
    --------
    >>> from geoeval.stats.tally import total, totals_of
    >>> points = Checkpoints(
    ...     *(np.array(column) for column in (["a", "b"], [0.0, 9], [0.0, 9], [10.0, 20], [10.5, 20.5], ["", ""]))
    ... )
    >>> tallied = Elevation().tally(Unit("survey", lambda: points))
    >>> found = Elevation().quantities(totals_of(list(tallied.cells.values())))
    >>> found["bias"].value, found["coverage"].value
    (array([0.5]), array([1.]))
    """

    unit: str = "m"
    edges: tuple[float, ...] = DEFAULT_EDGES
    pilot: float | None = None
    exact_mib: float = 64.0
    survey_rmse: float | None = None
    relative: bool = False
    name: str = "elevation/1"
    family: str = "elevation"

    #: Print order of all keys, those of ``quantities`` and ``ranked`` together.
    KEYS: ClassVar[tuple[str, ...]] = (
        *("count", "coverage", "bias", "median", "mae", "rmse", "std", "nmad", "le68", "le90", "le95"),
        *("min", "max", "skewness", "kurtosis"),
    )

    def __post_init__(self) -> None:
        metres_per(self.unit)
        if len(self.edges) < 2 or any(b <= a for a, b in zip(self.edges, self.edges[1:], strict=False)):
            raise ValueError(f"edges must be at least two ascending numbers, got {self.edges!r}")
        if self.survey_rmse is not None and not (np.isfinite(self.survey_rmse) and self.survey_rmse >= 0):
            raise ValueError(f"survey_rmse must be a length of 0 or more in {self.unit!r}, got {self.survey_rmse!r}")

    def tally(self, unit: Unit[RasterPair] | Unit[Checkpoints]) -> Tallied:
        """Errors of one unit: by spatial block and strata of the cells, or of the points."""
        payload = unit.load()
        if isinstance(payload, Checkpoints):
            return self._tally_points(payload, unit.id)
        return self._tally_raster(payload, unit.id)

    def quantities(self, totals: Totals) -> Mapping[str, Quantity]:
        """What follows from sums."""
        n = _whole(totals["n"])
        figures = moments(totals)
        out: dict[str, Quantity] = {
            "count": Scalar(n.astype(np.float64), n),
            "coverage": Proportion(n, _whole(totals["reference_valid"])),
        }
        for key, value in figures.items():
            unit = "1" if key in ("skewness", "kurtosis") else self.unit
            out[key] = Scalar(value, n, unit=unit, reason=_why_missing(value, n))
        return out

    def ranked(self, totals: Totals) -> Mapping[str, Quantity]:
        """What follows from the distribution: median, nmad, le68, le90, le95, min, max."""
        n = _whole(totals["n"])
        table, sketched = _order_figures(totals)
        low, high = _extremes(totals)
        marks = ("sketch",) if sketched else ()
        out: dict[str, Quantity] = {
            key: Scalar(table[:, i], n, unit=self.unit, reason=_why_missing(table[:, i], n), marks=marks)
            for i, key in enumerate(("median", "nmad", "le68", "le90", "le95"))
        }
        out["min"] = Scalar(low, n, unit=self.unit, reason=_why_missing(low, n))
        out["max"] = Scalar(high, n, unit=self.unit, reason=_why_missing(high, n))
        return out

    def class_quantities(self, totals: Totals) -> Mapping[str, Mapping[str, Quantity]]:  # noqa: ARG002
        """Heights have no classes."""
        return {}

    def extras(self, totals: Totals) -> dict[str, Any]:
        """Everything else about the first total, for JSON: other definitions, standards, histogram, bounds, Q-Q."""
        return elevation_extras(totals, unit=self.unit, edges=self.edges, survey_rmse=self.survey_rmse)

    def remarks(self, totals: Totals) -> tuple[Finding, ...]:
        """Findings on the errors as a whole: census instead of checkpoints, errors that are not normal."""
        return (*self._improbable(totals), *elevation_remarks(totals))

    def _improbable(self, totals: Totals) -> tuple[Finding, ...]:
        """A finding where errors are larger than any mountain: most often a nodata value that nobody declared."""
        reach = [abs(value) for side in _extremes(totals) if (value := scalar_value(side)) is not None]
        if not reach or max(reach) * metres_per(self.unit) < IMPROBABLE_M:
            return ()
        says = f"errors reach {max(reach):.6g} {self.unit}, more than any mountain"
        return (Finding("height-improbable", "major", (), says, "declare the nodata value of the rasters"),)

    def _tally_points(self, points: Checkpoints, unit_id: str) -> Tallied:
        factor = _factor(points.unit, self.unit)
        there, sampled = np.isfinite(points.reference), np.isfinite(points.prediction)
        joint = there & sampled
        error = np.full(len(points.id), np.nan)
        error[joint] = (points.prediction[joint] - points.reference[joint]) * factor
        unbounded = joint & ~(np.abs(error) < BEYOND)
        error[unbounded] = np.nan
        joint &= ~unbounded
        gathered = ErrorCells("rows")
        relative: dict[Cell, list[Tally]] = {}
        cells, which = _point_cells(points)
        for i, cell in enumerate(cells):
            here = which == i
            both = here & joint
            gathered.add(cell, error[both])
            gathered.count(
                cell,
                reference_valid=int(np.count_nonzero(here & there)),
                reference_only=int(np.count_nonzero(here & there & ~sampled)),
                prediction_only=int(np.count_nonzero(here & ~there & sampled)),
                neither=int(np.count_nonzero(here & ~there & ~sampled)),
                not_finite=int(np.count_nonzero(here & unbounded)),
                checkpoints=int(np.count_nonzero(both)),
            )
            if self.relative:
                relative[cell] = [_relative(points.reference[both] * factor, error[both])]
        return Tallied(
            _merged(gathered.tallies(), relative),
            _point_records(points, unit_id, error),
            (*_conversion(points, self.unit), *_not_finite(int(np.count_nonzero(unbounded)), unit_id)),
        )

    def _tally_raster(self, pair: RasterPair, unit_id: str) -> Tallied:
        cells = pair.shape[0] * pair.shape[1]
        way = way_of(cells, self.exact_mib)
        factor = _factor(pair.unit, self.unit)
        gathered = ErrorCells(way, self._offset(pair, way, factor), compiled=cells >= KERNEL_CELLS)
        relative: dict[Cell, list[Tally]] = {}
        for block in pair.blocks():
            for cell, part in _block_cells(block):
                gathered.add_window(cell, *part, factor=factor)
                if self.relative:
                    joint = part[2] & part[3]
                    reference = part[0][joint].astype(np.float64) * factor
                    error = part[1][joint].astype(np.float64) * factor - reference
                    sane = np.abs(error) < BEYOND
                    relative.setdefault(cell, []).append(_relative(reference[sane], error[sane]))
        tallies = _merged(gathered.tallies(), relative)
        lost = sum(tally.sums.get("not_finite", 0) for tally in tallies.values())
        return Tallied(tallies, findings=(*_conversion(pair, self.unit), *_not_finite(lost, unit_id)))

    def _offset(self, pair: RasterPair, way: Way, factor: float) -> float:
        if way == "rows":
            return 0.0
        if self.pilot is not None:
            return self.pilot
        found = pair.notes.get("pilot")
        return float(found) * factor if found is not None else _first_pass(pair, factor)


def _whole(values: NDArray[Any]) -> NDArray[np.int64]:
    return np.asarray(values, dtype=np.int64)


def _why_missing(values: FloatArray, n: NDArray[np.int64]) -> str | None:
    if len(values) == 0 or not np.all(np.isnan(values)):
        return None
    return "no_support" if not np.any(n) else "undefined_ratio"


def _factor(given: str, wanted: str) -> float:
    return 1.0 if given == wanted else metres_per(given) / metres_per(wanted)


def _conversion(payload: RasterPair | Checkpoints, unit: str) -> tuple[Finding, ...]:
    if payload.unit == unit:
        return ()
    says = f"errors in {payload.unit!r} were multiplied by {_factor(payload.unit, unit)!r} to give {unit!r}"
    return (Finding("unit-converted", "info", (), says, "none needed"),)


def _not_finite(count: int, unit_id: str) -> tuple[Finding, ...]:
    if not count:
        return ()
    says = f"{count} heights are valid on both sides but do not differ by less than {BEYOND:g}; they were left out"
    return (Finding("height-not-finite", "major", (unit_id,), says, "declare the nodata value of the band"),)


def _first_pass(pair: RasterPair, factor: float) -> float:
    """Median error of cells on a coarse lattice of the whole grid: the same for every tiling."""
    step = max(1, int(np.sqrt(pair.shape[0] * pair.shape[1] / _PILOT_CELLS)))
    found = []
    for block in pair.blocks():
        part = np.s_[-block.row % step :: step, -block.column % step :: step]
        joint = block.reference_valid[part] & block.prediction_valid[part]
        found.append(block.prediction[part][joint].astype(np.float64) - block.reference[part][joint].astype(np.float64))
    every = np.concatenate(found) if found else np.array([])
    every = every[np.isfinite(every)]
    return float(np.median(every)) * factor if len(every) else 0.0


_Window = tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_], NDArray[np.bool_]]


def _block_cells(block: Block) -> Iterator[tuple[Cell, _Window]]:
    """The block as one window, or one row of cells for each combination of strata in it."""
    window = (block.reference, block.prediction, block.reference_valid, block.prediction_valid)
    if not block.strata:
        yield Cell(block.cluster), window
        return
    names = sorted(block.strata)
    codes = [np.unique(block.strata[name][0], return_inverse=True) for name in names]
    flat = np.zeros(block.reference.size, dtype=np.int64)
    for values, index in codes:
        flat = flat * len(values) + index.reshape(-1)
    for at, combination in enumerate(product(*(values.tolist() for values, _ in codes))):
        chosen = flat == at
        if chosen.any():
            strata = tuple(
                (name, str(block.strata[name][1].get(code, UNKNOWN)))
                for name, code in zip(names, combination, strict=True)
            )
            a, b, c, d = (side.reshape(-1)[chosen][None] for side in window)
            yield Cell(block.cluster, "", strata), (a, b, c, d)


def _point_cells(points: Checkpoints) -> tuple[list[Cell], NDArray[np.int64]]:
    names = sorted(points.strata)
    cells = [
        Cell(str(points.cluster[i]), "", tuple((name, str(points.strata[name][i])) for name in names))
        for i in range(len(points.id))
    ]
    distinct = sorted(set(cells))
    place = {cell: i for i, cell in enumerate(distinct)}
    return distinct, np.array([place[cell] for cell in cells], dtype=np.int64)


def _point_records(points: Checkpoints, unit_id: str, error: FloatArray) -> Records:
    if not len(points.id):
        return Records()
    import shapely

    hit = np.isfinite(error)
    names = sorted(points.strata)
    strata = np.empty(len(points.id), dtype=object)
    strata[:] = [tuple((name, str(points.strata[name][i])) for name in names) for i in range(len(points.id))]
    return Records.of(
        len(points.id),
        unit=unit_id,
        outcome=np.where(hit, "tp", "fn").astype(object),
        error_type=np.where(hit, "", "void").astype(object),
        reference_id=points.id,
        cluster=points.cluster,
        strata=strata,
        geometry=shapely.points(points.x, points.y),
        reference_height=points.reference,
        prediction_height=points.prediction,
        error=error,
    )


def _relative(reference: FloatArray, error: FloatArray) -> Tally:
    """Sums for R² and the mean absolute percentage error."""
    sums = error_sums(reference)
    zero = reference == 0
    share = np.abs(error[~zero]) / np.abs(reference[~zero])
    return Tally.of(
        r1=sums["e1"], r2=sums["e2"], rn=len(reference), ape=quanta(share, PER_UNIT), ape_undefined=int(zero.sum())
    )


def _merged(tallies: dict[Cell, Tally], more: Mapping[Cell, list[Tally]]) -> dict[Cell, Tally]:
    return {cell: total([tally, *more[cell]]) if cell in more else tally for cell, tally in tallies.items()}


def _order_figures(totals: Totals) -> tuple[FloatArray, bool]:
    """Median, nmad, le68, le90, le95 of each total (size, 5), and whether any of it comes from bins."""
    sample = whole_sample(totals) if totals.size == 1 else None
    if sample is not None:
        figures = [_of_sample(sample, inside=False)]
        return np.array([[value for value, _ in row] for row in figures]), any(b > 0 for _, b in figures[0])
    rows = totals.rows.get("error")
    if "error" in totals.bins or rows is None:
        found = [_of_sample(one, inside=True) for one in coarse_samples(totals)]
        table = np.array([[value for value, _ in row] for row in found]).reshape(totals.size, 5)
        return table, "error" in totals.bins
    errors, absolute = KeptErrors.of(rows), KeptErrors.of(rows, absolute=True)
    table = np.empty((totals.size, 5))
    for at in range(totals.size):
        one, other = errors.redraw(at), absolute.redraw(at)
        table[at] = [one.quantile(0.5), one.nmad(), *(other.quantile(share) for share in (0.6827, 0.90, 0.95))]
    return table, False


def _of_sample(sample: Sample, *, inside: bool) -> list[tuple[float, float]]:
    distance = sample.folded(0.0)
    found = [
        sample.quantile(0.5, inside=inside),
        sample.nmad(inside=inside),
        *(distance.quantile(share, inside=inside) for share in (0.6827, 0.90, 0.95)),
    ]
    return [(np.nan, 0.0) if pair is None else pair for pair in found]


def _extremes(totals: Totals) -> tuple[FloatArray, FloatArray]:
    rows = totals.rows.get("extreme")
    if rows is None:
        return np.full(totals.size, np.nan), np.full(totals.size, np.nan)
    counted = rows.multiplicity[:, rows.cluster] > 0
    value = np.broadcast_to(rows.values[:, 0], counted.shape)
    low = np.min(value, axis=1, where=counted, initial=np.inf)
    high = np.max(value, axis=1, where=counted, initial=-np.inf)
    return np.where(np.isfinite(low), low, np.nan), np.where(np.isfinite(high), high, np.nan)
