"""Order statistics of errors: exact while all are kept, within a printed bound from histograms keyed on float bits.

Three parts of a tally carry a distribution:

rows ``error``     every error: exact figures and exact redraws.
bins ``error``     counts keyed on (offset, top 15 bits of the float32 of error − offset), per cluster: what redraws of
                   large rasters are read from.
rows ``refined``   (value, count, half width): the whole histogram on the top 21 bits, half a bin being 1.2e-4 of the
                   recentred error, and exact values (half width 0) wherever a published quantile falls among errors
                   that could be kept. It stands in one cluster of its stratum for all of them, hence serves totals in
                   which every cluster counts once, never redraws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.model import FloatArray, IntArray
from geoeval.stats.tally import RowTotals, Totals

#: Makes the median absolute deviation of a normal distribution its standard deviation.
NMAD_FACTOR = 1.482602218

FINE_BITS = 21
COARSE_BITS = 15

#: An offset is so many 1/4096 of the unit; see :mod:`geoeval.stats.distribution`.
_SHIFTS_PER_UNIT = 4096
_BLOCK = 1024
_FEW = 4096
_TOP32 = float(np.finfo(np.float32).max)


def float_keys(values: NDArray[Any], bits: int) -> IntArray:
    """Top ``bits`` bits of the float32 nearest to each value, as whole numbers in the order of the values.

    Examples
    --------
    >>> keys = float_keys(np.array([-1.0, -0.0, 0.0, 1.0, 1.0001]), 21)
    >>> bool(np.all(np.diff(keys) >= 0)), int(keys[1] == keys[2]), int(keys[3] == keys[4])
    (True, 1, 1)
    """
    # Adding 0 makes one zero of the two.
    single = np.clip(np.asarray(values, dtype=np.float64) + 0.0, -_TOP32, _TOP32).astype(np.float32) + np.float32(0.0)
    raw = single.view(np.uint32)
    ordered = np.where(raw >> 31 != 0, ~raw, raw | np.uint32(0x80000000))
    return (ordered >> np.uint32(32 - bits)).astype(np.int64)


def key_bounds(keys: NDArray[Any], bits: int) -> tuple[FloatArray, FloatArray]:
    """Lowest value of each bin, and of the next.

    Examples
    --------
    >>> low, high = key_bounds(float_keys(np.array([1.0]), 21), 21)
    >>> float(low[0]), float(high[0] - low[0]) * 4096
    (1.0, 1.0)
    """
    return _lowest(np.asarray(keys, dtype=np.int64), bits), _lowest(np.asarray(keys, dtype=np.int64) + 1, bits)


def _lowest(keys: IntArray, bits: int) -> FloatArray:
    ordered = (keys << (32 - bits)).astype(np.uint64).clip(0, 2**32 - 1).astype(np.uint32)
    raw = np.where(ordered >> 31 != 0, ordered & np.uint32(0x7FFFFFFF), ~ordered)
    # Beyond the largest float32 lie the infinities and what is no number; no error gets there.
    out = raw.astype(np.uint32).view(np.float32).astype(np.float64)
    return np.where(np.isfinite(out), out, np.where(ordered >> 31 != 0, _TOP32, -_TOP32))


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Sorted values (n,), how often each counts, and half the width of the bin that it stands for (0: exact)."""

    values: FloatArray
    weights: IntArray
    half: FloatArray

    @staticmethod
    def of(values: NDArray[Any], weights: NDArray[Any] | None = None, half: NDArray[Any] | None = None) -> Sample:
        """Sort values into a sample; each counts once and is exact unless said otherwise.

        Examples
        --------
        >>> Sample.of([3.0, 1.0, 2.0]).quantile(0.5)
        (2.0, 0.0)
        """
        value = np.asarray(values, dtype=np.float64).reshape(-1)
        weight = np.ones(len(value), dtype=np.int64) if weights is None else np.asarray(weights, dtype=np.int64)
        width = np.zeros(len(value)) if half is None else np.asarray(half, dtype=np.float64)
        order = np.lexsort((width, value)) if width.any() else np.argsort(value, kind="stable")
        return Sample(value[order], weight[order], width[order])

    @staticmethod
    def of_keys(keys: NDArray[Any], counts: NDArray[Any], bits: int, shift: NDArray[Any] | int = 0) -> Sample:
        """A histogram as a sample: the middle of each bin, moved by the offset that it was recentred on.

        Examples
        --------
        >>> middle = Sample.of_keys(float_keys([1.0], 21), [5], 21)
        >>> middle.n, middle.quantile(0.5)
        (5, (1.0001220703125, 0.0001220703125))
        """
        low, high = key_bounds(np.asarray(keys), bits)
        offset = np.asarray(shift, dtype=np.float64) / _SHIFTS_PER_UNIT
        return Sample.of((low + high) / 2 + offset, counts, (high - low) / 2)

    @property
    def n(self) -> int:
        """How many observations the sample stands for."""
        return int(self.weights.sum())

    def quantile(self, share: float, *, inside: bool = False) -> tuple[float, float] | None:
        """Quantile (numpy's ``linear``) and how far it may be off; None without observations.

        With ``inside`` observations are taken to lie evenly inside their bin, which is smoother than its middle but
        may be off by the whole width: meant for redraws.

        Examples
        --------
        >>> Sample.of([1.0, 2.0, 3.0, 4.0]).quantile(0.9)
        (3.7, 0.0)
        >>> Sample.of([]).quantile(0.9) is None
        True
        """
        passed = np.cumsum(self.weights)
        n = int(passed[-1]) if len(passed) else 0
        if n == 0:
            return None
        virtual = (n - 1) * share
        rank = min(max(int(np.floor(virtual)), 0), n - 1)
        ranks = np.array([rank, min(rank + 1, n - 1)])
        at = np.searchsorted(passed, ranks, side="right")
        found = self.values[at]
        if inside:
            before = passed[at] - self.weights[at]
            found = found + self.half[at] * (2 * (ranks - before + 0.5) / self.weights[at] - 1)
        bound = 0.0 if inside else max(self._off(int(ranks[i]), float(found[i])) for i in (0, 1))
        return _between(float(found[0]), float(found[1]), virtual - rank), bound

    def _off(self, rank: int, value: float) -> float:
        """How far the observation of a rank may lie from ``value``: bins of distances overlap, so all are looked at."""
        if not self.half.any():
            return 0.0
        return max(value - self._edge(-1, rank), self._edge(1, rank) - value, 0.0)

    def _edge(self, sign: int, rank: int) -> float:
        """The observation of a rank if all lay at the lower (-1) or upper (1) end of their bin."""
        edge = self.values + sign * self.half
        order = np.argsort(edge, kind="stable")
        return float(edge[order][np.searchsorted(np.cumsum(self.weights[order]), rank, side="right")])

    def span(self, share: float) -> tuple[float, float]:
        """Between which values the observations behind a quantile lie for certain; the sample must not be empty.

        Examples
        --------
        >>> Sample.of([1.0, 2.0, 3.0], half=[0.1, 0.2, 0.1]).span(0.5)
        (1.8, 3.1)
        """
        n = self.n
        rank = min(int(np.floor((n - 1) * share)), n - 1)
        return self._edge(-1, rank), self._edge(1, min(rank + 1, n - 1))

    def folded(self, centre: float, off: float = 0.0) -> Sample:
        """Distances from ``centre``, which itself may be off by ``off``.

        Examples
        --------
        >>> Sample.of([1.0, 2.0, 4.0]).folded(2.0).values
        array([0., 1., 2.])
        """
        return Sample.of(np.abs(self.values - centre), self.weights, self.half + off)

    def nmad(self, *, inside: bool = False) -> tuple[float, float] | None:
        """1.482602218 · median of distances from the median, and how far it may be off.

        Examples
        --------
        >>> Sample.of([1.0, 2.0, 4.0]).nmad()
        (1.482602218, 0.0)
        """
        middle = self.quantile(0.5, inside=inside)
        if middle is None:
            return None
        spread = self.folded(middle[0], 0.0 if inside else middle[1]).quantile(0.5, inside=inside)
        assert spread is not None
        return NMAD_FACTOR * spread[0], NMAD_FACTOR * spread[1]


def _between(low: float, high: float, part: float) -> float:
    # As numpy does it, so that the digits agree.
    gap = high - low
    return high - gap * (1 - part) if part >= 0.5 else low + gap * part


def whole_sample(totals: Totals, at: int = 0) -> Sample | None:
    """All errors of one total as a sample: kept ones, and the refined histogram where it speaks for this total.

    None where the total's quantiles must come from its coarse bins (:func:`coarse_samples`): in redraws of large
    rasters.
    """
    values, weights, half = [], [], []
    errors, refined = totals.rows.get("error"), totals.rows.get("refined")
    if errors is not None:
        values.append(errors.values[:, 0])
        weights.append(errors.weights(at))
        half.append(np.zeros(len(errors.values)))
    if refined is not None and np.all(refined.multiplicity[at] == 1):
        values.append(refined.values[:, 0])
        weights.append(refined.values[:, 1].astype(np.int64))
        half.append(refined.values[:, 2])
    if sum(int(part.sum()) for part in weights) != int(totals["n"][at]):
        return None
    if not values:
        return Sample.of(np.array([]))
    return Sample.of(np.concatenate(values), np.concatenate(weights), np.concatenate(half))


def coarse_samples(totals: Totals) -> list[Sample]:
    """Each total as a sample of coarse bins; errors that were kept one by one are binned about 0."""
    keys: list[IntArray] = []
    counts: list[NDArray[Any]] = []
    binned, errors = totals.bins.get("error"), totals.rows.get("error")
    if binned is not None:
        keys.append(binned.keys)
        counts.append(binned.counts)
    if errors is not None:
        key, which = np.unique(float_keys(errors.values[:, 0], COARSE_BITS), return_inverse=True)
        table = np.zeros((errors.multiplicity.shape[1], len(key)), dtype=np.int64)
        np.add.at(table, (errors.cluster, which.reshape(-1)), 1)
        keys.append(np.column_stack([np.zeros_like(key), key]))
        counts.append(errors.multiplicity @ table)
    if not keys:
        return [Sample.of(np.array([])) for _ in range(totals.size)]
    every, table = np.concatenate(keys), np.concatenate(counts, axis=1)
    one = Sample.of_keys(every[:, 1], np.arange(len(every)), COARSE_BITS, every[:, 0])
    return [Sample(one.values, table[at][one.weights], one.half) for at in range(totals.size)]


@dataclass(frozen=True, slots=True, eq=False)
class KeptErrors:
    """Errors kept one by one, with running counts per block of them and cluster: a redraw costs no pass over them."""

    values: FloatArray
    cluster: IntArray
    running: IntArray
    multiplicity: IntArray

    @staticmethod
    def of(rows: RowTotals, *, absolute: bool = False) -> KeptErrors:
        """Of the only column of ``rows``, or of its absolute values."""
        values, cluster = rows.values[:, 0], rows.cluster
        if absolute:
            values = np.abs(values)
            order = np.argsort(values, kind="stable")
            values, cluster = values[order], cluster[order]
        blocks, clusters = -(-len(values) // _BLOCK), rows.multiplicity.shape[1]
        flat = np.bincount(
            (np.arange(len(values)) // _BLOCK + 1) * clusters + cluster, minlength=(blocks + 1) * clusters
        )
        return KeptErrors(
            values, cluster, np.cumsum(flat.reshape(blocks + 1, clusters), axis=0, dtype=np.int64), rows.multiplicity
        )

    def redraw(self, at: int) -> KeptRedraw:
        """One total, ready to be asked."""
        return KeptRedraw(self, self.running @ self.multiplicity[at], at)


@dataclass(frozen=True, slots=True, eq=False)
class KeptRedraw:
    """One redraw of :class:`KeptErrors`; ``passed`` counts the observations before each block."""

    kept: KeptErrors
    passed: IntArray
    at: int

    def _weights(self, start: int, stop: int) -> IntArray:
        return np.asarray(self.kept.multiplicity[self.at][self.kept.cluster[start:stop]], dtype=np.int64)

    def _order(self, rank: int) -> float:
        block = int(np.searchsorted(self.passed, rank, side="right")) - 1
        start = block * _BLOCK
        inside = self.passed[block] + np.cumsum(self._weights(start, start + _BLOCK))
        return float(self.kept.values[start + int(np.searchsorted(inside, rank, side="right"))])

    def quantile(self, share: float) -> float:
        """Quantile (numpy's ``linear``), NaN where the redraw is empty."""
        n = int(self.passed[-1])
        if n == 0:
            return float("nan")
        virtual = (n - 1) * share
        rank = min(int(np.floor(virtual)), n - 1)
        return _between(self._order(rank), self._order(min(rank + 1, n - 1)), virtual - rank)

    def _before(self, index: int) -> int:
        block = index // _BLOCK
        return int(self.passed[block]) + int(self._weights(block * _BLOCK, index).sum())

    def nmad(self) -> float:
        """As :meth:`Sample.nmad`: the ring of errors about the median is narrowed until few are left to sort."""
        n = int(self.passed[-1])
        if n == 0:
            return float("nan")
        values, middle = self.kept.values, self.quantile(0.5)
        virtual = (n - 1) * 0.5
        rank = int(np.floor(virtual))
        above = min(rank + 1, n - 1)
        inner, outer = 0.0, max(float(values[-1]) - middle, middle - float(values[0]), 0.0)
        # Of the ring inner < |e − middle| <= outer; inside are those nearer, as positions left and right.
        within = self._ring(middle, inner, closed=False)
        ends = (0, len(values))
        for _ in range(64):
            if (within[0] - ends[0]) + (ends[1] - within[1]) <= _FEW:
                break
            radius = (inner + outer) / 2
            cut = self._ring(middle, radius, closed=True)
            count = self._before(cut[1]) - self._before(cut[0])
            if count <= rank:
                inner, within = radius, cut
            elif count > above:
                outer, ends = radius, cut
            else:
                break
        picked = np.r_[ends[0] : within[0], within[1] : ends[1]]
        weights = self.kept.multiplicity[self.at][self.kept.cluster[picked]]
        ring = Sample.of(np.abs(values[picked] - middle), weights)
        before = self._before(within[1]) - self._before(within[0])
        passed = before + np.cumsum(ring.weights)
        low, high = ring.values[np.searchsorted(passed, [rank, above], side="right")]
        return NMAD_FACTOR * _between(float(low), float(high), virtual - rank)

    def _ring(self, middle: float, radius: float, *, closed: bool) -> tuple[int, int]:
        """Positions of the errors within ``radius`` of the middle (``closed``), or strictly nearer."""
        values = self.kept.values
        sides = ("left", "right") if closed else ("right", "left")
        left = int(np.searchsorted(values, middle - radius, side=sides[0]))  # type: ignore[call-overload]
        right = int(np.searchsorted(values, middle + radius, side=sides[1]))  # type: ignore[call-overload]
        return min(left, right), right
