"""Tallies: what one unit leaves behind. They add exactly, in any order, and nothing else is ever done with them.

A tally has three kinds of parts, each exact under addition:

sums    named whole numbers. A real sum is a whole number of quanta (:func:`quanta`), never a float.
bins    named sparse histograms, keyed by one or more integers (a confusion matrix is keyed by two).
rows    named lists of observations, kept sorted: what ranked figures and exact quantiles need.

:class:`Totals` holds many sums of tallies at once (one a redraw, one a cluster, or just the one), as arrays, so that
the same formula gives the value and all its redraws.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.model import FloatArray, IntArray

#: Quanta per unit of a real sum: 1e-9 for ratios and lengths, areas and their like.
PER_UNIT = 10**9

_INT64_SAFE = 2**62
_FLOAT_SAFE = 2**53
#: Below this, a value and its sums split into two limbs of 32 bits and more.
_TWO_LIMBS = 2.0**80
_LIMB = 26
_MASK = (1 << _LIMB) - 1


def quanta(values: NDArray[Any], per_unit: int = PER_UNIT) -> int:
    """Exact sum of the values, each rounded to a whole number of quanta.

    Parameters
    ----------
    values
        Finite numbers, any shape.
    per_unit
        Quanta per unit.

    Returns
    -------
    int
        A Python integer: it cannot overflow and does not depend on order.

    Raises
    ------
    ValueError
        Where a value is not finite.

    Examples
    --------
    >>> quanta(np.array([0.5, 0.25]))
    750000000
    >>> quanta(np.array([]))
    0
    """
    scaled = np.rint(np.asarray(values, dtype=np.float64).reshape(-1) * float(per_unit))
    if scaled.size == 0:
        return 0
    top = float(np.max(np.abs(scaled)))
    if not np.isfinite(top):
        raise ValueError("a sum was asked of values that are not all finite")
    if top * scaled.size < _INT64_SAFE:
        return int(scaled.astype(np.int64).sum())
    if top >= _TWO_LIMBS or scaled.size >= _INT64_SAFE >> 32:
        return sum(int(value) for value in scaled.tolist())
    high = np.floor(scaled / 2.0**32)
    low = scaled - high * 2.0**32
    high_parts = np.array_split(high, max(1, int(top * scaled.size / 2.0**94) + 1))
    total_high = sum(int(part.astype(np.int64).sum()) for part in high_parts)
    return (total_high << 32) + int(low.astype(np.int64).sum())


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """A sparse histogram: distinct integer keys (k, d), sorted, and their counts (k,), none of them 0."""

    keys: IntArray
    counts: IntArray

    @staticmethod
    def of(keys: NDArray[Any], counts: NDArray[Any] | None = None) -> Bins:
        """Tally keys (n,) or (n, d), each counting 1 or its entry of ``counts``.

        Examples
        --------
        >>> Bins.of(np.array([3, 1, 3])).counts
        array([1, 2])
        """
        table = np.asarray(keys, dtype=np.int64)
        table = table[:, None] if table.ndim == 1 else table
        weight = np.ones(len(table), dtype=np.int64) if counts is None else np.asarray(counts, dtype=np.int64)
        if len(table) == 0:
            return Bins(table, weight)
        distinct, index = _distinct(table)
        summed = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(summed, index, weight)
        keep = summed != 0
        return Bins(distinct[keep], summed[keep])

    def __add__(self, other: Bins) -> Bins:
        if not len(self.keys):
            return other
        if not len(other.keys):
            return self
        return Bins.of(np.concatenate([self.keys, other.keys]), np.concatenate([self.counts, other.counts]))

    def __mul__(self, times: int) -> Bins:
        return Bins.of(self.keys, self.counts * times)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Bins) and _same(self.keys, other.keys) and bool(np.array_equal(self.counts, other.counts))
        )

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A bag of observations, one float64 row (n, d) each, sorted by its columns from the first on."""

    values: FloatArray

    @staticmethod
    def of(*columns: Any) -> Rows:
        """Sort columns of equal length into a bag.

        Examples
        --------
        >>> Rows.of([0.9, 0.1], [1, 0]).values.tolist()
        [[0.1, 0.0], [0.9, 1.0]]
        """
        table = np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])
        # -0.0 and 0.0 compare equal but differ in bytes.
        table = table + 0.0
        return Rows(np.ascontiguousarray(table[np.lexsort(table.T[::-1])]))

    def __add__(self, other: Rows) -> Rows:
        if not len(self.values):
            return other
        if not len(other.values):
            return self
        return Rows.of(*np.concatenate([self.values, other.values]).T)

    def __mul__(self, times: int) -> Rows:
        return Rows(np.repeat(self.values, times, axis=0))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and _same(self.values, other.values)

    __hash__ = None  # type: ignore[assignment]


def _same(a: NDArray[Any], b: NDArray[Any]) -> bool:
    return (len(a) == 0 and len(b) == 0) or bool(np.array_equal(a, b))


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Sums, bins and rows by name. ``a + b == b + a``, ``a + Tally() == a``, ``a * 3 == a + a + a``, to the last bit.

    A name that is missing counts as 0, as no bins, as no rows.

    Examples
    --------
    >>> (Tally.of(tp=2, fn=1) + Tally.of(tp=1)).sums
    {'fn': 1, 'tp': 3}
    >>> Tally.of(tp=2) * 3 == Tally.of(tp=6)
    True
    """

    sums: Mapping[str, int] = field(default_factory=dict)
    bins: Mapping[str, Bins] = field(default_factory=dict)
    rows: Mapping[str, Rows] = field(default_factory=dict)

    @staticmethod
    def of(
        sums: Mapping[str, int] | None = None,
        bins: Mapping[str, Bins] | None = None,
        rows: Mapping[str, Rows] | None = None,
        **counts: int,
    ) -> Tally:
        """A tally without its empty parts, names sorted."""
        whole = {**(sums or {}), **counts}
        return Tally(
            {name: int(whole[name]) for name in sorted(whole) if whole[name] != 0},
            {name: part for name, part in sorted((bins or {}).items()) if len(part.keys)},
            {name: part for name, part in sorted((rows or {}).items()) if len(part.values)},
        )

    def __add__(self, other: Tally) -> Tally:
        return total([self, other])

    def __mul__(self, times: int) -> Tally:
        if times == 0:
            return Tally()
        return Tally(
            {name: value * times for name, value in self.sums.items()},
            {name: part * times for name, part in self.bins.items()},
            {name: part * times for name, part in self.rows.items()},
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Tally)
            and dict(self.sums) == dict(other.sums)
            and dict(self.bins) == dict(other.bins)
            and dict(self.rows) == dict(other.rows)
        )

    __hash__ = None  # type: ignore[assignment]


def total(tallies: Iterable[Tally]) -> Tally:
    """The sum of any number of tallies, in one pass."""
    sums: dict[str, int] = {}
    bins: dict[str, list[Bins]] = {}
    rows: dict[str, list[Rows]] = {}
    for tally in tallies:
        for name, value in tally.sums.items():
            sums[name] = sums.get(name, 0) + value
        for name, part in tally.bins.items():
            bins.setdefault(name, []).append(part)
        for name, bag in tally.rows.items():
            rows.setdefault(name, []).append(bag)
    return Tally.of(
        sums,
        {
            name: parts[0]
            if len(parts) == 1
            else Bins.of(np.concatenate([p.keys for p in parts]), np.concatenate([p.counts for p in parts]))
            for name, parts in bins.items()
        },
        {
            name: parts[0] if len(parts) == 1 else Rows.of(*np.concatenate([p.values for p in parts]).T)
            for name, parts in rows.items()
        },
    )


@dataclass(frozen=True, slots=True, eq=False)
class BinTotals:
    """Keys (k, d) that occur anywhere, and their counts in each total (size, k)."""

    keys: IntArray
    counts: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class RowTotals:
    """All observations (n, d), the cluster of each (n,), and how often each cluster counts in each total (size, C).

    The observations are sorted by their columns; :meth:`weights` gives (n,) whole numbers for one total.
    """

    values: FloatArray
    cluster: IntArray
    multiplicity: IntArray

    def weights(self, at: int) -> IntArray:
        """How often each observation counts in total ``at``."""
        return np.asarray(self.multiplicity[at][self.cluster], dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Totals:
    """``size`` sums of tallies at once. A name that is missing counts as 0.

    Examples
    --------
    >>> one = totals_of([Tally.of(tp=8, fn=2)])
    >>> one["tp"], one["fp"]
    (array([8]), array([0]))
    """

    size: int
    sums: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    bins: Mapping[str, BinTotals] = field(default_factory=dict)
    rows: Mapping[str, RowTotals] = field(default_factory=dict)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Sum ``name`` of each total (size,): int64, or Python integers where these do not fit."""
        found = self.sums.get(name)
        return np.zeros(self.size, dtype=np.int64) if found is None else found

    def real(self, name: str, per_unit: int = PER_UNIT) -> FloatArray:
        """A sum of quanta as a real number, in each total (size,)."""
        return np.asarray(self[name] / per_unit, dtype=np.float64)

    def names(self, prefix: str) -> list[str]:
        """What follows ``prefix`` in the names of all parts, sorted: ``names("tp@")`` lists classes."""
        every = {*self.sums, *self.bins, *self.rows}
        return sorted(name[len(prefix) :] for name in every if name.startswith(prefix))


@dataclass(frozen=True, slots=True, eq=False)
class Clustered:
    """One tally a cluster, as matrices: what redraws are made from.

    ``matrix`` is (clusters, names) int64 or, where these do not fit, Python integers.
    """

    clusters: tuple[str, ...]
    names: tuple[str, ...]
    matrix: NDArray[Any]
    bins: Mapping[str, tuple[IntArray, IntArray]]
    rows: Mapping[str, tuple[FloatArray, IntArray]]

    def totals(self, multiplicity: IntArray, *, rows: bool = True) -> Totals:
        """Sums in which cluster c counts ``multiplicity[b, c]`` times, for each b: one exact matrix product."""
        product = _product(multiplicity, self.matrix)
        return Totals(
            len(multiplicity),
            {name: product[:, i] for i, name in enumerate(self.names)},
            {
                name: BinTotals(keys, np.asarray(_product(multiplicity, table), dtype=np.int64))
                for name, (keys, table) in self.bins.items()
            },
            {name: RowTotals(values, cluster, multiplicity) for name, (values, cluster) in self.rows.items()}
            if rows
            else {},
        )

    def whole(self) -> Totals:
        """The one sum over all clusters."""
        return self.totals(np.ones((1, len(self.clusters)), dtype=np.int64))

    def each(self) -> Totals:
        """Every cluster by itself, without rows."""
        return Totals(
            len(self.clusters),
            {name: self.matrix[:, i] for i, name in enumerate(self.names)},
            {name: BinTotals(keys, table) for name, (keys, table) in self.bins.items()},
        )

    @property
    def width(self) -> int:
        """How many columns a redraw has."""
        return len(self.names) + sum(int(table.shape[1]) for _, table in self.bins.values())


def clustered(tallies: Mapping[str, Tally]) -> Clustered:
    """Lay one tally a cluster out as matrices, clusters in sorted order."""
    clusters = tuple(sorted(tallies))
    names = tuple(sorted({name for tally in tallies.values() for name in tally.sums}))
    table = np.array([[tallies[c].sums.get(name, 0) for name in names] for c in clusters], dtype=object)
    table = table.reshape(len(clusters), len(names))
    fits = all(abs(value) < _INT64_SAFE for value in table.flat)
    matrix: NDArray[Any] = table.astype(np.int64) if fits else table
    return Clustered(clusters, names, matrix, _bin_tables(tallies, clusters), _row_tables(tallies, clusters))


def totals_of(tallies: Sequence[Tally]) -> Totals:
    """The single sum of some tallies, ready for formulas."""
    return clustered({"": total(tallies)}).whole()


def _bin_tables(tallies: Mapping[str, Tally], clusters: tuple[str, ...]) -> dict[str, tuple[IntArray, IntArray]]:
    out: dict[str, tuple[IntArray, IntArray]] = {}
    for name in sorted({name for tally in tallies.values() for name in tally.bins}):
        parts = [(i, tallies[c].bins[name]) for i, c in enumerate(clusters) if name in tallies[c].bins]
        keys, index = _distinct(np.concatenate([part.keys for _, part in parts]))
        counts = np.zeros((len(clusters), len(keys)), dtype=np.int64)
        at = np.repeat([i for i, _ in parts], [len(part.keys) for _, part in parts])
        counts[at, index] = np.concatenate([part.counts for _, part in parts])
        out[name] = (keys, counts)
    return out


def _distinct(table: IntArray) -> tuple[IntArray, IntArray]:
    """Distinct rows, sorted, and where each row of the table stands among them."""
    order = np.lexsort(table.T[::-1])
    placed = table[order]
    first = np.ones(len(table), dtype=bool)
    first[1:] = np.any(placed[1:] != placed[:-1], axis=1)
    index = np.empty(len(table), dtype=np.int64)
    index[order] = np.cumsum(first) - 1
    return np.ascontiguousarray(placed[first]), index


def _row_tables(tallies: Mapping[str, Tally], clusters: tuple[str, ...]) -> dict[str, tuple[FloatArray, IntArray]]:
    out: dict[str, tuple[FloatArray, IntArray]] = {}
    for name in sorted({name for tally in tallies.values() for name in tally.rows}):
        parts = [(i, tallies[c].rows[name].values) for i, c in enumerate(clusters) if name in tallies[c].rows]
        values = np.concatenate([part for _, part in parts])
        cluster = np.repeat(np.array([i for i, _ in parts], dtype=np.int64), [len(part) for _, part in parts])
        order = np.lexsort((cluster, *values.T[::-1]))
        out[name] = (values[order], cluster[order])
    return out


def _product(multiplicity: IntArray, table: NDArray[Any]) -> NDArray[Any]:
    """``multiplicity @ table`` exactly: in float64 below 2**53 (whatever BLAS or threads), else by limbs of 26 bits."""
    if table.size == 0:
        return np.zeros((len(multiplicity), table.shape[1]), dtype=np.int64)
    most = int(np.max(np.sum(multiplicity, axis=1)))
    top = max(int(np.max(table)), -int(np.min(table)))
    weight = multiplicity.astype(np.float64)
    if most * top < _FLOAT_SAFE:
        return np.rint(weight @ table.astype(np.float64)).astype(np.int64)
    if most * (_MASK + 1) >= _FLOAT_SAFE:
        raise OverflowError(f"a redraw that counts {most} clusters cannot be summed exactly")
    whole = table.astype(object)
    sign = np.where(whole < 0, -1, 1).astype(object)
    rest = whole * sign
    out = np.zeros((len(multiplicity), table.shape[1]), dtype=object)
    shift = 0
    while np.any(rest != 0):
        limb = ((rest & _MASK) * sign).astype(np.float64)
        out = out + (np.rint(weight @ limb).astype(np.int64).astype(object) << shift)
        rest = rest >> _LIMB
        shift += _LIMB
    fits = max((abs(value) for value in out.flat), default=0) < _INT64_SAFE
    return out.astype(np.int64) if fits else out
