"""Which label sets in images may be alike: sets that share boxes of features, in any orientation of the second one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.model import IntArray
from geoeval.splits import _labelset_cover_kernels as cover_kernels
from geoeval.splits import _labelset_image_kernels as image_kernels
from geoeval.splits import _labelset_kernels as kernels
from geoeval.splits import _labelset_key_kernels as key_kernels
from geoeval.splits.labelset_frames import Flat

Pairs = tuple[IntArray, IntArray, IntArray]

#: Room for pairs of sets beside what the sets of one look may add.
_BLOCK = 2**18
_NONE = np.zeros(0, dtype=np.int64)
#: Small sets are found by pairs of keys, at most so many for each feature of all sets, 8 bytes each; and what it costs
#: to look up a pair, in looks at a set that shares one key.
_PAIRS = 32
_PROBE = 24


@dataclass(slots=True, eq=False)
class ImageSearch:
    """Sets that share boxes of features on one of two grids, and the orientation of the second one."""

    flats: kernels.Flats
    asked: kernels.Asked
    limits: tuple[float, float]
    index: image_kernels.Index
    pictures: image_kernels.Pictures
    mark: NDArray[Any]
    out: tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
    serial: int = 0

    @staticmethod
    def of(flat: Flat, flats: kernels.Flats, asked: kernels.Asked, limits: tuple[float, float]) -> ImageSearch:
        """What is needed to search sets in images."""
        n, features = len(flat.start) - 1, len(flat.box)
        mark = np.zeros(n, dtype=np.int32 if 10 * (features + n) < 2**31 else np.int64)
        room = 8 * n + _BLOCK if features else 0
        out = np.zeros(room, np.int32), np.zeros(room, np.int32), np.zeros(room, np.int8)
        pictures = _pictures(flats, asked[0])
        return ImageSearch(flats, asked, limits, _index(flat), pictures, mark, out)

    def pairs(self, at: int, stop: int, most: int) -> tuple[Pairs, int]:
        """Pairs with second sets from ``at``, at least one set and then until there are ``most``."""
        if not len(self.out[0]):
            return (_NONE, _NONE, _NONE), stop
        most = min(most, _BLOCK) + 8 * stop
        room = self.out[0][:most], self.out[1][:most], self.out[2][:most]
        n, stop, self.serial = image_kernels.image_pairs(
            self.flats, self.index, self.pictures, self.asked, (at, stop), self.mark, self.serial, self.limits, room
        )
        a, b, turn = (column[:n].astype(np.int64) for column in room)
        return (a, b, turn), stop


def _pictures(flats: kernels.Flats, group: IntArray) -> image_kernels.Pictures:
    """What is looked at for every set that is met. Made here, because numpy asks for large pages of memory."""
    start, box, _, least, _, _ = flats
    n = len(start) - 1
    # Together, because sets are met in no order: one look at memory in place of four.
    facts = np.column_stack([np.diff(start), least, group, start[:-1]]).astype(np.float64)
    cover = np.zeros((n, 16), dtype=np.uint64)
    cover_kernels.fill_covers(start, box, cover)
    middle, room = np.zeros(len(box), dtype=np.uint16), np.zeros(64 * (n + 1), dtype=np.uint8)
    # A set in one line of memory.
    begin = -room.ctypes.data % 64
    mass = room[begin : begin + 64 * n].reshape(n, 64)
    cover_kernels.fill_coarse(flats, middle, mass)
    return facts, cover, (middle, mass)


def _index(flat: Flat) -> image_kernels.Index:
    """Sets by the keys of their features; small ones by pairs of keys, too."""
    keys = key_kernels.keys_of(flat.box)
    most, n = _most_in_pairs(flat, keys)
    bits = max(n.bit_length() - 1, 1)
    # Made here, because numpy asks for large pages of memory.
    buckets = np.zeros(2**bits + 1, dtype=np.uint32), np.zeros(n, dtype=np.uint64)
    key_kernels.fill_buckets(flat.start, keys, most, bits, buckets)
    return _table(flat, keys, most), buckets, bits, keys, most, _PROBE


def _most_in_pairs(flat: Flat, keys: key_kernels.UIntArray) -> tuple[int, int]:
    """Up to how many features a set is found by pairs of keys, and how many pairs there are.

    A set of k features has 2 k keys, and 2 k (k - 1) pairs. Looking up the pairs pays where more sets share a key than
    it costs.
    """
    if not len(keys):
        return 0, 0
    times = np.unique(keys, return_counts=True)[1]
    sharing = float((times.astype(np.float64) ** 2).sum() / keys.size)
    count = np.bincount(np.diff(flat.start))
    size = np.arange(len(count))
    pairs = np.cumsum(2 * size * (size - 1) * count)
    fits = (pairs <= min(_PAIRS * len(flat.box), 2**32 - 1)) & ((size - 1) * _PROBE < sharing)
    most = int(size[fits].max(initial=0))
    return most, int(pairs[most])


def _table(flat: Flat, keys: key_kernels.UIntArray, most: int) -> key_kernels.Table:
    owner = np.repeat(flat.owner(), 2).astype(np.int32)
    small = np.repeat(np.diff(flat.start) <= most, 2 * np.diff(flat.start))
    order = np.append(np.flatnonzero(small), np.flatnonzero(~small))
    order = order[np.argsort(keys.ravel()[order], kind="stable")]
    ordered = keys.ravel()[order]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(ordered) else _NONE
    slots, runs = key_kernels.slots_of(ordered[first], 2 ** (1 + len(first).bit_length()))
    before = np.append(0, np.cumsum(small[order]))
    last = np.append(first[1:], len(ordered)) if len(first) else _NONE
    begin = np.empty(2 * len(first) + 1, dtype=np.int64)
    begin[0:-1:2], begin[1::2], begin[-1] = first, first + before[last] - before[first], len(ordered)
    return slots, runs, begin, owner[order]
