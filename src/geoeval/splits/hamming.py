"""Near-equal 64-bit codes: exact neighbours by Hamming distance among millions.

Equal codes are collapsed first. The rest goes through four tables of 16-bit buckets (multi-index hashing): two codes
within the radius must nearly agree in at least one quarter of their bits, so each code is compared with a few hundred
others, and no pair is missed. Pairs are joined or counted where they are found, never listed.

Orientations  a code may come as eight, one for each flip and rotation of its image (first column: the image as it is).
              The distance of two samples is then the least over the orientations of either one.
Looks         a sample may have several images (raw and processed, with and without its mask): eight columns each.
              The distance is then the least over all of them.
Confirmation  beyond the radius, up to a wider one, a second hash of another kind has to agree, orientation by
              orientation.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.model import IntArray
from geoeval.splits.across import Across, first_pairs, split_codes

UIntArray = NDArray[np.uint64]

#: Pairs of unrelated images (1/f noise) among a million that are within a radius by accident, as measured for pHash.
ACCIDENTAL_PER_MILLION = {4: 3.0, 6: 210.0, 8: 6_800.0, 10: 142_000.0}

#: Of unrelated pairs (1/f noise, 24,000 images) within 12 bits of pHash, the share that is also within 12 bits of the
#: second hash: 8 of 3,793.
ACCIDENTAL_CONFIRMED = 0.0021

_MAX_RADIUS = 15


@dataclass(frozen=True, slots=True, eq=False)
class Confirmation:
    """A second hash that has to agree where the first one is off by more than the radius.

    Parameters
    ----------
    codes
        Second codes, of the same shape as the first ones.
    known
        (samples,) False where a sample has no second code; it is then held to the radius alone.
    radius
        Greatest distance of the first codes where the second ones agree, in bits.
    limit
        Greatest distance of the second codes, in bits.
    """

    codes: UIntArray
    known: NDArray[np.bool_]
    radius: int
    limit: int


def hamming_groups(
    codes: UIntArray, radius: int, *, looks: IntArray | None = None, confirmation: Confirmation | None = None
) -> IntArray:
    """Connected components of codes: two samples are linked where their codes differ by at most ``radius`` bits.

    Parameters
    ----------
    codes
        (samples,) 64-bit codes, or (samples, 8 x looks) in the eight orientations of each look, the image as it is
        first.
    radius
        Greatest distance of a link, in bits, from 0 to 15.
    looks
        (samples,) how many looks each sample has; the columns behind them are not read. None means all.
    confirmation
        Links beyond the radius that a second hash confirms.

    Returns
    -------
    IntArray
        (samples,) number of the component, from 0, in order of first members.

    Examples
    --------
    >>> hamming_groups(np.array([0b0, 0b1111, 0b1, 0b111], dtype=np.uint64), 1).tolist()
    [0, 1, 0, 1]
    >>> hamming_groups(np.array([0, 3, 1], dtype=np.uint64), 1).tolist()
    [0, 0, 0]
    """
    rows = _collapsed(codes, looks, confirmation)
    rule, tolerance = _rule(radius, confirmation)
    if not len(rows.codes):
        return np.zeros(0, dtype=np.int64)
    from geoeval.splits import _hamming_kernels as kernels
    from geoeval.splits._union_kernels import labels

    parent = np.arange(len(rows.codes), dtype=np.int64)
    live = rows.live()
    for k in range(4):
        if tolerance[k] >= 0:
            kernels.unite(rows.codes, rows.second, rows.known, live, _masks(int(tolerance[k])), k, rule, parent)
    return _numbered(labels(parent)[rows.row_of])


def hamming_across(
    codes: UIntArray,
    split: IntArray,
    radius: int,
    *,
    looks: IntArray | None = None,
    confirmation: Confirmation | None = None,
    witnesses: int = 100,
) -> Across:
    """Pairs of samples in different splits whose codes differ by at most ``radius`` bits.

    Parameters
    ----------
    codes, radius, looks, confirmation
        As for :func:`hamming_groups`.
    split
        (samples,) split of each sample, any integers.
    witnesses
        How many pairs to return; the count is exact whatever it is.

    Examples
    --------
    >>> found = hamming_across(np.array([0, 1, 3, 0], dtype=np.uint64), np.array([0, 1, 1, 0]), 1)
    >>> found.count, found.i.tolist(), found.j.tolist(), found.distance.tolist()
    (2, [0, 1], [1, 3], [1.0, 1.0])
    """
    rows = _collapsed(codes, looks, confirmation)
    rule, tolerance = _rule(radius, confirmation)
    groups = split_codes(split, len(rows.row_of))
    key, pair = np.zeros(max(witnesses, 0)), np.zeros((max(witnesses, 0), 2), dtype=np.int64)
    count = kept = 0
    if len(rows.codes):
        from geoeval.splits import _hamming_kernels as kernels

        runs = _runs(rows.row_of, groups, len(rows.codes))
        count, kept = _within_rows(runs, key, pair)
        data = (rows.codes, rows.second, rows.known, rows.size, rows.live())
        for k in range(4):
            if tolerance[k] >= 0:
                mask = _masks(int(tolerance[k]))
                more, kept = kernels.across(*data, mask, k, rule, tolerance, runs, key, pair, kept)
                count += more
    return first_pairs(pair[:kept, 0], pair[:kept, 1], key[:kept], count, witnesses)


def accidental_pairs(n: int, radius: int, *, confirmed: bool = False) -> float:
    """How many pairs of unrelated images one must expect within a radius, among ``n``.

    From a measured table for 64-bit pHash, interpolated in the logarithm and scaled by n². Real hashes are correlated:
    independent bits would give a hundred times less. ``confirmed`` counts those only that a second hash confirms.

    Examples
    --------
    >>> accidental_pairs(1_000_000, 4), accidental_pairs(2_000_000, 8)
    (3.0, 27200.0)
    >>> accidental_pairs(1_000, 4)
    3e-06
    """
    _tolerances(radius)
    known = sorted(ACCIDENTAL_PER_MILLION)
    low = max((r for r in known[:-1] if r <= radius), default=known[0])
    high = known[known.index(low) + 1]
    start, end = (math.log(ACCIDENTAL_PER_MILLION[r]) for r in (low, high))
    if radius == low:
        per_million = ACCIDENTAL_PER_MILLION[low]
    elif radius == high:
        per_million = ACCIDENTAL_PER_MILLION[high]
    else:
        per_million = math.exp(start + (end - start) * (radius - low) / (high - low))
    share = ACCIDENTAL_CONFIRMED if confirmed else 1.0
    return float(min(per_million * share * (n / 1e6) ** 2, n * max(n - 1, 0) / 2))


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Different rows: codes, second codes, whether these are known, live columns, and the row of each sample."""

    codes: UIntArray
    second: UIntArray
    known: NDArray[np.bool_]
    size: IntArray
    row_of: IntArray

    def live(self) -> IntArray:
        """Flat positions of all codes that are there."""
        return np.flatnonzero(np.arange(self.codes.shape[1]) < self.size[:, None]).astype(np.int64)


def _collapsed(codes: Any, looks: IntArray | None, confirmation: Confirmation | None) -> _Rows:
    given = np.asarray(codes)
    if given.dtype != np.uint64:
        raise ValueError(
            f"codes must be unsigned 64-bit integers, got {given.dtype}; convert them with .view or .astype"
        )
    if given.ndim == 1:
        given = given.reshape(-1, 1)
    n, width = given.shape if given.ndim == 2 else (0, 0)
    if given.ndim != 2 or (width > 1 and width % 8):
        raise ValueError(f"codes must be (samples,) or (samples, 8 x looks), got shape {given.shape}")
    size = np.full(n, width) if looks is None else np.minimum(np.asarray(looks, dtype=np.int64) * 8, width)
    second = np.zeros_like(given) if confirmation is None else confirmation.codes.reshape(n, width)
    known = np.zeros(n, dtype=np.bool_) if confirmation is None else confirmation.known
    parts = [given, size[:, None].astype(np.uint64)]
    if known.any():
        parts += [np.where(known[:, None], second, np.uint64(0)), known[:, None].astype(np.uint64)]
    first, row_of = _first_rows(np.concatenate(parts, axis=1))
    return _Rows(
        np.ascontiguousarray(given[first]),
        np.ascontiguousarray(second[first]),
        known[first],
        size[first].astype(np.int64),
        row_of,
    )


def _first_rows(table: UIntArray) -> tuple[IntArray, IntArray]:
    """First row of each kind, kinds in the order of their bytes, and the kind of every row."""
    if not table.size:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    packed = np.ascontiguousarray(table).view(np.dtype((np.void, table.shape[1] * 8))).reshape(-1)
    _, first, row_of = np.unique(packed, return_index=True, return_inverse=True)
    return first.astype(np.int64), row_of.reshape(-1).astype(np.int64)


def _rule(radius: int, confirmation: Confirmation | None) -> tuple[IntArray, IntArray]:
    """Bits that are enough, bits that are enough with a second hash, bits of that; and the tolerances of the widest."""
    wide = radius if confirmation is None else max(radius, confirmation.radius)
    _tolerances(radius)
    limit = 0 if confirmation is None else confirmation.limit
    return np.array([radius, wide, limit], dtype=np.int64), _tolerances(wide)


def _tolerances(radius: int) -> IntArray:
    """Bits that each quarter may be off, so that sum(tolerance + 1) is radius + 1; -1 where one is not needed."""
    if not 0 <= radius <= _MAX_RADIUS:
        raise ValueError(f"radius must lie in 0 to {_MAX_RADIUS} bits, got {radius}")
    share, more = divmod(radius + 1, 4)
    return np.array([share + (k < more) - 1 for k in range(4)], dtype=np.int64)


def _masks(tolerance: int) -> IntArray:
    """Every 16-bit number with at most so many bits set."""
    return np.array(
        [
            sum(1 << bit for bit in chosen)
            for size in range(tolerance + 1)
            for chosen in itertools.combinations(range(16), size)
        ],
        dtype=np.int64,
    )


def _runs(row_of: IntArray, split: IntArray, rows: int) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Members by row, split and position: first run of each row; start, size and split of each run; members."""
    member = np.lexsort((split, row_of)).astype(np.int64)
    by_row, by_split = row_of[member], split[member]
    new = np.ones(len(member), dtype=bool)
    new[1:] = (by_row[1:] != by_row[:-1]) | (by_split[1:] != by_split[:-1])
    first = np.flatnonzero(new).astype(np.int64)
    size = np.diff(np.append(first, len(member))).astype(np.int64)
    run = np.searchsorted(by_row[first], np.arange(rows + 1)).astype(np.int64)
    return run, first, size, by_split[first], member


def _within_rows(runs: tuple[IntArray, ...], key: Any, pair: IntArray) -> tuple[int, int]:
    """Pairs of equal codes in different splits."""
    from geoeval.splits import _run_kernels as kernels

    run, first, size, split, member = runs
    count = kept = 0
    for row in np.flatnonzero(np.diff(run) > 1).tolist():
        count += kernels.cross_pairs(run, size, split, row, row)
        kept = kernels.offer_members(run, first, size, split, member, (row, row), 0.0, key, pair, kept)
    return count, kept


def _numbered(groups: IntArray) -> IntArray:
    """Numbers from 0, in order of first appearance."""
    _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse.reshape(-1)]
