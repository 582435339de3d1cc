"""Errors of one unit, gathered cell by cell in bounded memory, and the tallies that they become.

Three ways, chosen by the size of the unit alone (never by its tiling):

``rows``    up to 2 Mi values: every error is kept in its tally.
``exact``   up to the budget (64 MiB as float32): histograms, and the errors are kept until the end, so that the exact
            ones can replace the bins in which a published quantile falls.
``sketch``  beyond: histograms only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from geoeval.model import Cell, FloatArray, IntArray
from geoeval.stats.distribution import CHUNK, NEAR, SHIFTS_PER_UNIT, error_sums, integer_sum, raw_sums, shift_of
from geoeval.stats.sketch import COARSE_BITS, FINE_BITS, Sample, float_keys
from geoeval.stats.tally import Bins, Rows, Tally

Way = Literal["rows", "exact", "sketch"]

#: Up to here every error is kept in its tally.
ROWS_CELLS = 2**21

#: An error this large is no height, and its fourth power no float64: it is left out and reported.
BEYOND = 1e60

#: From here on the compiled pass saves more than it costs to load.
KERNEL_CELLS = 2**25

#: Errors that are worked on at once without the compiled pass: their scratch stays in the processor's cache.
_SLICE = 2**16

_TOP = float(np.finfo(np.float32).max)

#: So many histograms of windows are kept apart before they are merged.
_MERGE_AFTER = 16

#: Shares whose quantiles are published, of the error and of its absolute value.
ERROR_SHARES = (0.05, 0.5, 0.6827, 0.90, 0.95, 0.99)
ABSOLUTE_SHARES = (0.5, 0.6827, 0.90, 0.95, 0.99)
CENTRED_SHARES = (0.5, 0.90)

Strata = tuple[tuple[str, str], ...]


def way_of(cells: int, exact_mib: float) -> Way:
    """How the errors of a unit of so many cells are gathered.

    Examples
    --------
    >>> way_of(1_000_000, 64), way_of(4096**2, 64), way_of(4097**2, 64), way_of(1_000_000, 1)
    ('rows', 'exact', 'sketch', 'sketch')
    """
    if cells * 4 > exact_mib * 2**20:
        return "sketch"
    return "rows" if cells <= ROWS_CELLS else "exact"


@dataclass(slots=True)
class _Cell:
    """What streams into one cell."""

    counts: dict[str, int] = field(default_factory=dict)
    sums: dict[str, int] = field(default_factory=dict)
    coarse: list[tuple[IntArray, IntArray]] = field(default_factory=list)
    extremes: FloatArray = field(default_factory=lambda: np.array([np.inf, -np.inf]))
    kept: list[FloatArray] = field(default_factory=list)

    def add(self, sums: Mapping[str, int]) -> None:
        for name, value in sums.items():
            self.sums[name] = self.sums.get(name, 0) + value

    def add_bins(self, keys: IntArray, counts: IntArray) -> None:
        self.coarse.append((keys, counts))
        if len(self.coarse) >= _MERGE_AFTER:
            self.coarse = [self.bins()]

    def bins(self) -> tuple[IntArray, IntArray]:
        """Distinct keys, sorted, and their counts."""
        if not self.coarse:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        found, which = np.unique(np.concatenate([keys for keys, _ in self.coarse]), return_inverse=True)
        table = np.zeros(len(found), dtype=np.int64)
        np.add.at(table, which.reshape(-1), np.concatenate([counts for _, counts in self.coarse]))
        return found, table


@dataclass(slots=True)
class ErrorCells:
    """Gathers the errors of one unit; :meth:`tallies` ends it.

    Parameters
    ----------
    way
        From :func:`way_of`.
    offset
        Near the bulk of the errors: bins are finest about it. Not used by ``rows``.
    compiled
        Whether windows without strata go through the compiled pass (the results are identical).
    """

    way: Way
    offset: float = 0.0
    compiled: bool = False
    _cells: dict[Cell, _Cell] = field(default_factory=dict)
    _fine: dict[Strata, IntArray] = field(default_factory=dict)
    _single: dict[Strata, list[NDArray[np.float32]]] = field(default_factory=dict)
    _shift: int = field(init=False)
    _scratch: tuple[IntArray, ...] | None = None

    def __post_init__(self) -> None:
        self._shift = shift_of(self.offset)

    def _cell(self, cell: Cell) -> _Cell:
        return self._cells.setdefault(cell, _Cell())

    def count(self, cell: Cell, **counts: int) -> None:
        """Add to named counts of a cell."""
        held = self._cell(cell).counts
        for name, value in counts.items():
            held[name] = held.get(name, 0) + int(value)

    def _histogram(self, cell: Cell) -> IntArray:
        if cell.strata not in self._fine:
            self._fine[cell.strata] = np.zeros(2**FINE_BITS, dtype=np.int64)
        return self._fine[cell.strata]

    def add(self, cell: Cell, errors: FloatArray) -> None:
        """Add finite errors (n,) to a cell."""
        if not len(errors):
            self._cell(cell)
            return
        held = self._cell(cell)
        self.count(cell, n=len(errors))
        if self.way == "rows":
            held.kept.append(errors)
            return
        held.extremes[0] = min(held.extremes[0], errors.min())
        held.extremes[1] = max(held.extremes[1], errors.max())
        coarse = np.zeros(2**COARSE_BITS, dtype=np.int64)
        for start in range(0, len(errors), _SLICE):
            self._add_slice(cell, errors[start : start + _SLICE], coarse)
        keys = np.flatnonzero(coarse)
        held.add_bins(keys, coarse[keys])

    def _add_slice(self, cell: Cell, errors: FloatArray, coarse: IntArray) -> None:
        sums = error_sums(errors, self._shift)
        sums.pop("n")
        self._cell(cell).add(sums)
        near = np.clip(errors - self._shift / SHIFTS_PER_UNIT, -_TOP, _TOP).astype(np.float32)
        keys = float_keys(near, FINE_BITS)
        np.add.at(self._histogram(cell), keys, 1)
        coarse += np.bincount(keys >> (FINE_BITS - COARSE_BITS), minlength=len(coarse))
        if self.way == "exact":
            self._single.setdefault(cell.strata, []).append(near)

    def add_window(
        self,
        cell: Cell,
        reference: NDArray[Any],
        prediction: NDArray[Any],
        reference_valid: NDArray[np.bool_],
        prediction_valid: NDArray[np.bool_],
        factor: float = 1.0,
    ) -> None:
        """Add a window (rows, columns) that lies in one cell, with its counts of validity."""
        if not (self.compiled and self.way == "sketch"):
            joint = reference_valid & prediction_valid
            error = (prediction[joint].astype(np.float64) - reference[joint].astype(np.float64)) * factor
            finite = np.abs(error) < BEYOND
            unbounded = len(error) - int(np.count_nonzero(finite))
            self.add(cell, error if not unbounded else error[finite])
            both, left, right = (int(np.count_nonzero(a)) for a in (joint, reference_valid, prediction_valid))
            self._count_validity(cell, joint.size, both, left, right, unbounded)
            return
        step = max(1, CHUNK // max(1, reference.shape[1]))
        for start in range(0, len(reference), step):
            part = slice(start, start + step)
            self._compiled(
                cell, reference[part], prediction[part], reference_valid[part], prediction_valid[part], factor
            )

    def _count_validity(self, cell: Cell, cells: int, joint: int, left: int, right: int, unbounded: int) -> None:
        self.count(
            cell,
            reference_valid=left,
            reference_only=left - joint,
            prediction_only=right - joint,
            neither=cells - left - right + joint,
            not_finite=unbounded,
        )

    def _compiled(
        self,
        cell: Cell,
        reference: NDArray[Any],
        prediction: NDArray[Any],
        reference_valid: NDArray[np.bool_],
        prediction_valid: NDArray[np.bool_],
        factor: float,
    ) -> None:
        from geoeval.stats.error_kernel import drain, window_errors

        fine, held = self._histogram(cell), self._cell(cell)
        if self._scratch is None:
            self._scratch = tuple(np.zeros(2**COARSE_BITS, dtype=np.int64) for _ in range(3))
        coarse, key, found = self._scratch
        far = np.empty(reference.size)
        sums, counts = np.zeros(10, dtype=np.int64), np.zeros(5, dtype=np.int64)
        offset = self._shift / SHIFTS_PER_UNIT
        outside = window_errors(
            reference,
            prediction,
            reference_valid,
            prediction_valid,
            offset,
            factor,
            fine,
            coarse,
            sums,
            held.extremes,
            far,
            counts,
        )
        filled = drain(coarse, key, found)
        held.add_bins(key[:filled].copy(), found[:filled].copy())
        both, left, right, neither, unbounded = counts.tolist()
        absolute, *parts = [(int(sums[2 * i]) << 40) + int(sums[2 * i + 1]) for i in range(5)]
        added = raw_sums(both - outside, absolute, parts, self._shift)
        added.pop("n")
        held.add(added)
        self.count(
            cell,
            n=both - outside,
            reference_valid=both + left + unbounded,
            reference_only=left,
            prediction_only=right,
            neither=neither,
            not_finite=unbounded,
        )
        if outside:
            self.add(cell, far[:outside].copy())

    def tallies(self) -> dict[Cell, Tally]:
        """One tally a cell; the cells sum to the whole."""
        return self._row_tallies() if self.way == "rows" else self._binned_tallies()

    def _row_tallies(self) -> dict[Cell, Tally]:
        errors = {cell: _joined(held.kept) for cell, held in self._cells.items()}
        every = _joined(list(errors.values()))
        # The median of all: it depends on the errors, not on how they came.
        shift = shift_of(float(np.median(every))) if len(every) else 0
        out = {}
        for cell, held in self._cells.items():
            sums = error_sums(errors[cell], shift)
            sums.update(held.counts)
            out[cell] = Tally.of(sums, rows={"error": Rows.of(errors[cell]), "extreme": _ends(errors[cell])})
        return out

    def _binned_tallies(self) -> dict[Cell, Tally]:
        bearers: dict[Strata, Cell] = {}
        for cell in sorted(self._cells):
            bearers.setdefault(cell.strata, cell)
        refined = self._refined()
        out = {}
        for cell, held in self._cells.items():
            rows = {}
            if bearers[cell.strata] == cell and cell.strata in refined:
                one = refined[cell.strata]
                rows["refined"] = Rows.of(one.values, one.weights, one.half)
            if held.extremes[0] <= held.extremes[1]:
                rows["extreme"] = _ends(held.extremes)
            bins = {}
            key, counted = held.bins()
            if len(key):
                bins["error"] = Bins.of(np.column_stack([np.full_like(key, self._shift), key]), counted)
            out[cell] = Tally.of({**held.sums, **held.counts}, bins, rows)
        return out

    def _refined(self) -> dict[Strata, Sample]:
        """The histogram of each group of strata, exact errors in place of the bins that a published quantile needs."""
        samples, keys = {}, {}
        for strata, fine in self._fine.items():
            keys[strata] = np.flatnonzero(fine)
            samples[strata] = Sample.of_keys(keys[strata], fine[keys[strata]], FINE_BITS, self._shift)
        if self.way == "sketch":
            return samples
        wanted = _wanted(self._fine, self._single, self._shift)
        for strata, sample in samples.items():
            near = _joined([part[wanted[float_keys(part, FINE_BITS)]] for part in self._single.get(strata, [])])
            exact, counts = np.unique(near.astype(np.float64), return_counts=True)
            # Bins are in the order of their values, and so are the parts of the sample.
            rest = ~wanted[keys[strata]]
            samples[strata] = Sample.of(
                np.concatenate([sample.values[rest], exact + self._shift / SHIFTS_PER_UNIT]),
                np.concatenate([sample.weights[rest], counts]),
                np.concatenate([sample.half[rest], np.zeros(len(exact))]),
            )
        return samples


def _joined(parts: list[Any]) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.array([])


def _ends(errors: NDArray[Any]) -> Rows:
    return Rows.of([np.min(errors), np.max(errors)] if len(errors) else [])


def _groups(strata: Iterable[Strata]) -> list[tuple[Strata, ...]]:
    """The whole, and the members of each value of each field."""
    every = sorted(strata)
    pairs = sorted({pair for one in every for pair in one})
    return [tuple(every), *(tuple(one for one in every if pair in one) for pair in pairs), *((one,) for one in every)]


def _wanted(
    fine: Mapping[Strata, IntArray], single: Mapping[Strata, list[NDArray[np.float32]]], shift: int
) -> NDArray[np.bool_]:
    """True for the bins (2**21) in which a published quantile of any group may fall."""
    offset = shift / SHIFTS_PER_UNIT
    wanted = np.zeros(2**FINE_BITS, dtype=bool)
    for members in dict.fromkeys(_groups(fine)):
        counts = np.sum([fine[one] for one in members], axis=0)
        keys = np.flatnonzero(counts)
        if not len(keys):
            continue
        sample = Sample.of_keys(keys, counts[keys], FINE_BITS)
        spans = [sample.span(share) for share in ERROR_SHARES]
        middle = _exact_median(sample, [part for one in members for part in single.get(one, [])])
        for centre, shares in ((-offset, ABSOLUTE_SHARES), (middle, CENTRED_SHARES)):
            ring = sample.folded(centre)
            for low, high in (ring.span(share) for share in shares):
                spans += [(centre - high, centre - low), (centre + low, centre + high)]
        for ends in spans:
            first, last = float_keys(np.array(ends), FINE_BITS)
            wanted[first : last + 1] = True
    return wanted


def _exact_median(sample: Sample, parts: list[NDArray[np.float32]]) -> float:
    low, high = sample.span(0.5)
    n = sample.n
    inside = np.sort(np.concatenate([part[(part >= low) & (part <= high)] for part in parts]).astype(np.float64))
    before = sum(int(np.count_nonzero(part < low)) for part in parts)
    return float((inside[(n - 1) // 2 - before] + inside[n // 2 - before]) / 2)


#: Sums of a tally that are not errors but cells.
VALIDITY = ("reference_valid", "reference_only", "prediction_only", "neither", "not_finite")

__all__ = [
    "ABSOLUTE_SHARES",
    "BEYOND",
    "CENTRED_SHARES",
    "ERROR_SHARES",
    "KERNEL_CELLS",
    "NEAR",
    "ROWS_CELLS",
    "VALIDITY",
    "ErrorCells",
    "Way",
    "integer_sum",
    "way_of",
]
