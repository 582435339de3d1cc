"""Which label sets in images may be alike: sets that share boxes of features, in any orientation of the second one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.model import IntArray
from geoeval.splits import _labelset_image_kernels as image_kernels
from geoeval.splits import _labelset_kernels as kernels
from geoeval.splits import _labelset_key_kernels as key_kernels
from geoeval.splits.labelset_frames import Flat

Pairs = tuple[IntArray, IntArray, IntArray]

#: Room for pairs of sets beside what the sets of one look may add.
_BLOCK = 2**18
_NONE = np.zeros(0, dtype=np.int64)
import os

SMALL = int(os.environ.get("SMALL", "8"))


@dataclass(slots=True, eq=False)
class ImageSearch:
    """Sets that share boxes of features on one of two grids, and the orientation of the second one."""

    flats: kernels.Flats
    asked: kernels.Asked
    limits: tuple[float, float]
    index: image_kernels.Index
    cover: key_kernels.UIntArray
    mark: NDArray[Any]
    out: tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
    serial: int = 0

    @staticmethod
    def of(flat: Flat, flats: kernels.Flats, asked: kernels.Asked, limits: tuple[float, float]) -> ImageSearch:
        n, features = len(flat.start) - 1, len(flat.box)
        mark = np.zeros(n, dtype=np.int32 if 10 * (features + n) < 2**31 else np.int64)
        room = 8 * n + _BLOCK if features else 0
        out = np.zeros(room, np.int32), np.zeros(room, np.int32), np.zeros(room, np.int8)
        return ImageSearch(
            flats, asked, limits, _index(flat), image_kernels.covers_of(flat.start, flat.box), mark, out
        )

    def pairs(self, at: int, stop: int, most: int) -> tuple[Pairs, int]:
        """Pairs with second sets from ``at``, at least one set and then until there are ``most``."""
        if not len(self.out[0]):
            return (_NONE, _NONE, _NONE), stop
        most = min(most, _BLOCK) + 8 * stop
        room = self.out[0][:most], self.out[1][:most], self.out[2][:most]
        n, stop, self.serial = image_kernels.image_pairs(
            self.flats, self.index, self.cover, self.asked, (at, stop), self.mark, self.serial, self.limits, room
        )
        a, b, turn = (column[:n].astype(np.int64) for column in room)
        return (a, b, turn), stop


def _index(flat: Flat) -> image_kernels.Index:
    """Sets by the keys of their features; small ones by pairs of keys, too."""
    keys = key_kernels.keys_of(flat.box)
    size = np.diff(flat.start)
    n = int((2 * size * (size - 1))[size <= SMALL].sum())
    bits = max(n.bit_length() - 1, 1)
    buckets = key_kernels.buckets_of(flat.start, keys, SMALL, bits, n)
    return _table(flat, keys, SMALL), buckets, bits, keys, SMALL


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
