"""Label sets that are nearly alike, among many: candidates by numbers, then the shapes of those that may pass.

Equal sets are collapsed first. The rest is worked through in blocks of second sets, so that memory grows with the
number of sets and features, and never with the number of pairs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely

from geoeval.model import FloatArray, IntArray, ObjectArray
from geoeval.splits import _labelset_kernels as kernels
from geoeval.splits._union_kernels import labels
from geoeval.splits.across import Across, first_pairs
from geoeval.splits.labelset_frames import Flat, Mask, as_boxes, in_degrees, in_image, limited, shifted, turned
from geoeval.splits.labelset_image_search import ImageSearch, Pairs
from geoeval.splits.labelsets import LEAST_JACCARD, MATCH_IOU, MATCH_SHARE, LabelSet

Found = tuple[IntArray, IntArray, FloatArray]


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Features in one frame, and how its geometries are shifted or turned."""

    flat: Flat
    move: Callable[[ObjectArray, int], ObjectArray]
    world: bool


#: Pairs of sets in a block, feature pairs measured in one go, and footprints compared in one go.
_BLOCK = 2**18
_MEASURED = 2**19
_COMPARED = 2**23
_LIMITS = (MATCH_IOU, LEAST_JACCARD)
_NONE = np.zeros(0, dtype=np.int64)


def groups_of(sets: Sequence[LabelSet]) -> IntArray:
    """Connected components of sets that are nearly alike, numbered in order of first members."""
    row_of, first = _collapsed(sets)
    parent = np.arange(len(first), dtype=np.int64)
    for frames, asked in _views([sets[k] for k in first], np.arange(len(first)), parent):
        for found in _blocks(frames, asked):
            for frame, pairs in zip(frames, found, strict=True):
                _join(frame, pairs, parent)
    return labels(parent)[row_of]


def pairs_across(sets: Sequence[LabelSet], split: IntArray, witnesses: int) -> Across:
    """Pairs of sets in different splits that are nearly alike: how many, and the first of them."""
    row_of, first = _collapsed(sets)
    rows = [sets[k] for k in first]
    runs = _runs(row_of, split, len(rows))
    key, pair = np.zeros(max(witnesses, 0)), np.zeros((max(witnesses, 0), 2), dtype=np.int64)
    count = kept = 0
    for a, b, distance in _alike(rows, _row_groups(runs)):
        more, kept = kernels.gather(runs, a, b, distance, key, pair, kept)
        count += more
    return first_pairs(pair[:kept, 0], pair[:kept, 1], key[:kept], count, witnesses)


def _collapsed(sets: Sequence[LabelSet]) -> tuple[IntArray, IntArray]:
    """The row of each set among different ones, and the first set of each row. Sets without features stay apart."""
    known: dict[bytes, int] = {}
    row_of = np.zeros(len(sets), dtype=np.int64)
    first: list[int] = []
    for k, digest in enumerate(_digests(sets)):
        row = known.setdefault(digest or k.to_bytes(8, "little"), len(first))
        if row == len(first):
            first.append(k)
        row_of[k] = row
    return row_of, np.array(first, dtype=np.int64)


def _digests(sets: Sequence[LabelSet]) -> Iterator[bytes]:
    """What a set holds, in any order, as a few bytes; nothing for a set that holds nothing."""
    for at in range(0, len(sets), 2**12):
        some = sets[at : at + 2**12]
        texts = [shape for one in some for part in (one.world, one.pixels) if part is not None for shape in part]
        written = shapely.to_wkb(np.array([*texts, None], dtype=np.object_)).tolist()
        end = 0
        for one in some:
            digest = hashlib.blake2b(f"{one.crs} {one.size} {one.boxes}".encode(), digest_size=16)
            begin = end
            for part in (one.world, one.pixels):
                here, end = end, end + (0 if part is None else len(part))
                digest.update(b"|" + b"".join(sorted(text or b"" for text in written[here:end])))
            yield digest.digest() if end > begin else b""


def _runs(row_of: IntArray, split: IntArray, n: int) -> kernels.Runs:
    """Members by row and split: first run of each row, and of each run its first member, size and split; members."""
    member = np.lexsort((np.arange(len(row_of)), split, row_of)).astype(np.int64)
    row, group = row_of[member], split[member]
    edge = np.flatnonzero((np.diff(row, prepend=-1) != 0) | (np.diff(group, prepend=-1) != 0)).astype(np.int64)
    size = np.diff(np.append(edge, len(member))).astype(np.int64)
    run = np.searchsorted(row[edge], np.arange(n + 1)).astype(np.int64)
    return run, edge, size, group[edge].astype(np.int64), member


def _row_groups(runs: kernels.Runs) -> IntArray:
    """Equal where two rows have all their members in one and the same split: nobody asks about such pairs."""
    run, split = runs[0], runs[3]
    several = np.diff(run) > 1
    return np.where(several, -1 - np.arange(len(several)), split[run[:-1]]).astype(np.int64)


def _alike(rows: Sequence[LabelSet], group: IntArray) -> Iterator[Found]:
    """Pairs of rows that are nearly alike in any frame, each once, with the distance of the best frame."""
    for frames, asked in _views(rows, group, _NONE):
        # A row may stand for several sets, in several splits.
        some = (np.diff(frames[0].flat.start) > 0) | (np.diff(frames[1].flat.start) > 0)
        alone = np.flatnonzero(some & (asked[1] == 1)).astype(np.int64)
        yield alone, alone, np.zeros(len(alone))
        for found in _blocks(frames, asked):
            parts = [_measured(frame, pairs, full=True) for frame, pairs in zip(frames, found, strict=True)]
            a, b, apart = (np.concatenate([part[k] for part in parts]) for k in range(3))
            order = np.lexsort((apart, a, b))
            a, b, apart = a[order], b[order], apart[order]
            first = np.flatnonzero((np.diff(a, prepend=-1) != 0) | (np.diff(b, prepend=-1) != 0))
            yield a[first], b[first], apart[first]


def _join(frame: Frame, pairs: Pairs, parent: IntArray) -> None:
    """Join the sets that are nearly alike; what is joined already is not measured.

    Few pairs of any two components first, then twice as many each time.
    """
    take = 1
    while True:
        one, other = kernels.roots(parent, pairs[0]), kernels.roots(parent, pairs[1])
        apart = one != other
        if not apart.any():
            return
        pairs = _some(pairs, apart)
        low, high = np.minimum(one, other)[apart], np.maximum(one, other)[apart]
        order = np.lexsort((high, low))
        low, high = low[order], high[order]
        first = np.flatnonzero((np.diff(low, prepend=-1) != 0) | (np.diff(high, prepend=-1) != 0))
        rank = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
        now = np.zeros(len(order), dtype=np.bool_)
        now[order] = rank < take
        a, b, _ = _measured(frame, _some(pairs, now), full=False)
        kernels.join_all(parent, a, b)
        pairs, take = _some(pairs, ~now), 2 * take


def _some(pairs: Pairs, kept: Mask) -> Pairs:
    return pairs[0][kept], pairs[1][kept], pairs[2][kept]


def _views(
    rows: Sequence[LabelSet], group: IntArray, parent: IntArray
) -> Iterator[tuple[tuple[Frame, Frame], kernels.Asked]]:
    """Both frames of the sets, and what is asked: first all by their shapes, then pairs with a sketch by boxes."""
    sketched = np.array([one.boxes for one in rows], dtype=np.int64)
    whole = [LabelSet() if one.boxes else one for one in rows]
    every = np.ones_like(sketched)
    world, image = limited(in_degrees(whole)), limited(in_image(whole))
    yield (Frame(world, shifted, True), Frame(image, turned, False)), (group, every, parent)
    if sketched.any():
        world, image = as_boxes(in_degrees(rows), world=True), as_boxes(in_image(rows), world=False)
        yield (Frame(world, shifted, True), Frame(image, turned, False)), (group, sketched, parent)


def _blocks(frames: tuple[Frame, Frame], asked: kernels.Asked) -> Iterator[tuple[Pairs, Pairs]]:
    """Pairs that may be alike in the world and in images, some second sets at a time."""
    world, image = frames[0].flat, frames[1].flat
    n = len(world.start) - 1
    in_world = _WorldSearch.of(world, asked)
    in_pictures = ImageSearch.of(image, _flats(image), asked, _LIMITS)
    at, most, wide = 0, 2**12, 2**8
    while at < n:
        one, stop = in_world.pairs(at, min(at + wide, n), most)
        two, stop = in_pictures.pairs(at, stop, most)
        yield _some(one, one[1] < stop), two
        # Small blocks first: what they join need not be looked at again. Narrow ones where pairs are many.
        wide = 2 * wide if stop == at + wide else max(1, stop - at)
        at, most = stop, min(2 * most, _BLOCK)


def _flats(flat: Flat) -> kernels.Flats:
    return flat.start, flat.box, flat.area, flat.least, flat.reach, flat.total


@dataclass(frozen=True, slots=True, eq=False)
class _WorldSearch:
    """Sets whose footprints meet, and the whole turns of longitude that bring the second to the first."""

    flat: Flat
    asked: kernels.Asked
    rows: IntArray
    footprint: FloatArray
    tree: shapely.STRtree

    @staticmethod
    def of(flat: Flat, asked: kernels.Asked) -> _WorldSearch:
        rows = np.flatnonzero(np.diff(flat.start)).astype(np.int64)
        first = flat.start[rows]
        low = np.minimum.reduceat(flat.box[:, :2], first) if len(rows) else np.zeros((0, 2))
        high = np.maximum.reduceat(flat.box[:, 2:], first) if len(rows) else np.zeros((0, 2))
        footprint = np.hstack([low, high])
        return _WorldSearch(flat, asked, rows, footprint, shapely.STRtree(shapely.box(*footprint.T)))

    def pairs(self, at: int, stop: int, most: int) -> tuple[Pairs, int]:
        """Pairs with second sets from ``at``, until there are ``most``; and the first set that was not looked at."""
        k, end = (int(np.searchsorted(self.rows, edge)) for edge in (at, stop))
        parts: list[Pairs] = [(_NONE, _NONE, _NONE)]
        step = max(1, _COMPARED // max(len(self.rows), 1))
        n = 0
        while k < end and n < most:
            here = np.arange(k, min(k + step, end))
            for turn in (-1, 0, 1):
                part = self._turn(here, turn)
                parts.append(part)
                n += len(part[0])
            k += len(here)
        a, b, turn_of = (np.concatenate([part[c] for part in parts]) for c in range(3))
        return (a, b, turn_of), int(self.rows[k]) if k < end else stop

    def _turn(self, here: IntArray, turn: int) -> Pairs:
        moved = self.footprint[here] + np.array([360.0 * turn, 0.0, 360.0 * turn, 0.0])
        if turn:
            near = (moved[:, 0] <= self.footprint[:, 2].max()) & (moved[:, 2] >= self.footprint[:, 0].min())
            here, moved = here[near], moved[near]
        if not len(here):
            return _NONE, _NONE, _NONE
        j, i = self.tree.query(shapely.box(*moved.T))
        a, b = self.rows[i], self.rows[here[j]]
        kept = kernels.world_kept(_flats(self.flat), self.asked, a, b, turn, _LIMITS)
        return a[kept], b[kept], np.full(int(kept.sum()), turn, dtype=np.int64)


def _measured(frame: Frame, pairs: Pairs, *, full: bool) -> Found:
    """Which pairs are nearly alike, and how far apart they are; without ``full``, distances may be too great."""
    flat = frame.flat
    count = kernels.overlap_counts(flat.start, flat.box, flat.reach, pairs, frame.world)
    parts: list[Found] = [(_NONE, _NONE, np.zeros(0))]
    chunk = np.cumsum(count) // _MEASURED
    for one in np.unique(chunk).tolist():
        here = chunk == one
        parts.append(_measured_chunk(frame, _some(pairs, here), int(count[here].sum()), full=full))
    a, b, apart = (np.concatenate([part[c] for part in parts]) for c in range(3))
    return a, b, apart


def _measured_chunk(frame: Frame, pairs: Pairs, n: int, *, full: bool) -> Found:
    (a, b, turn), flat = pairs, frame.flat
    pair, e, f, shared = kernels.overlaps(flat.start, flat.box, flat.reach, pairs, frame.world, n)
    solid = ~(shapely.is_missing(flat.shapes[e]) & shapely.is_missing(flat.shapes[f]))
    if solid.any():
        shared[solid] = _shared(frame, e[solid], f[solid], turn[pair[solid]])
    union = flat.area[e] + flat.area[f] - shared
    iou = np.divide(shared, union, out=np.zeros(len(shared)), where=union > 0)
    good = np.round(iou, 9) >= MATCH_IOU
    smaller = np.minimum(flat.start[a + 1] - flat.start[a], flat.start[b + 1] - flat.start[b])
    share = _matched(pair[good], e[good], f[good], len(a)) / smaller
    jaccard = np.zeros(len(a))
    open_ = share < (1.0 if full else MATCH_SHARE)
    tidy = open_ & (flat.tidy[a] == 1) & (flat.tidy[b] == 1)
    common = np.bincount(pair, weights=shared, minlength=len(a))
    total = flat.total[a] + flat.total[b] - common
    jaccard[tidy] = np.round(np.divide(common, total, out=np.zeros(len(a)), where=total > 0)[tidy], 9)
    _occupancy(frame, pairs, open_ & ~tidy, jaccard)
    alike = (share >= MATCH_SHARE) | (jaccard >= LEAST_JACCARD)
    return a[alike], b[alike], np.round(1 - np.maximum(share, jaccard), 9)[alike]


def _shared(frame: Frame, e: IntArray, f: IntArray, turn: IntArray) -> FloatArray:
    """Area that pairs of features share, the second one moved."""
    other = frame.flat.geometry(f)
    for one in np.unique(turn).tolist():
        here = turn == one
        other[here] = frame.move(other[here], one)
    return np.asarray(shapely.area(shapely.intersection(frame.flat.geometry(e), other)), dtype=np.float64)


def _matched(pair: IntArray, e: IntArray, f: IntArray, n: int) -> IntArray:
    """(pairs,) greatest number of features that match one to one, for all pairs of sets at once."""
    one, i, times_i = np.unique(pair * (int(e.max(initial=0)) + 1) + e, return_inverse=True, return_counts=True)
    _, j, times_j = np.unique(pair * (int(f.max(initial=0)) + 1) + f, return_inverse=True, return_counts=True)
    out = np.bincount(pair, minlength=n).astype(np.int64)
    if len(one) == len(pair) == len(times_j):
        return out
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import maximum_bipartite_matching

    # Where every feature has one partner, counting is enough.
    unclear = np.zeros(n, dtype=np.bool_)
    unclear[pair[(times_i[i] > 1) | (times_j[j] > 1)]] = True
    open_ = unclear[pair]
    _, i = np.unique(i[open_], return_inverse=True)
    _, j = np.unique(j[open_], return_inverse=True)
    owner = np.zeros(int(i.max()) + 1, dtype=np.int64)
    owner[i] = pair[open_]
    links = coo_matrix((np.ones(len(i), dtype=np.int8), (i, j))).tocsr()
    taken = maximum_bipartite_matching(links, perm_type="column") >= 0
    out[unclear] = np.bincount(owner[taken], minlength=n)[unclear]
    return out


def _occupancy(frame: Frame, pairs: Pairs, wanted: Mask, jaccard: FloatArray) -> None:
    """Jaccard index of the occupied areas, where features of a set may overlap."""
    flat = frame.flat
    known: dict[int, Any] = {}

    def occupied(k: int) -> Any:
        if k not in known:
            known[k] = shapely.union_all(flat.geometry(np.arange(flat.start[k], flat.start[k + 1])))
        return known[k]

    for p in np.flatnonzero(wanted).tolist():
        one = occupied(int(pairs[0][p]))
        other = frame.move(np.array([occupied(int(pairs[1][p]))], dtype=np.object_), int(pairs[2][p]))[0]
        common = shapely.intersection(one, other).area
        total = one.area + other.area - common
        jaccard[p] = round(float(common / total), 9) if total > 0 else 0.0
