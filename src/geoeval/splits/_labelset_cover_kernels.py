"""What two label sets in images can share at most, by coarse pictures of them. Imported lazily, because it compiles.

Cheap bounds first: most sets that share a few boxes have nothing else in common.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.geometry._kernel import kernel
from geoeval.model import FloatArray, IntArray
from geoeval.splits._labelset_kernels import IMAGE, SLACK, Bits, Flats, placed

UIntArray = NDArray[np.uint64]
SetArray = NDArray[np.int32]
Visit = tuple[NDArray[np.uint32], UIntArray, FloatArray, int, float]
#: For each feature the fine cell of its middle; (sets, 64) at most how much of each coarse cell is occupied, in steps.
Coarse = tuple[NDArray[np.uint16], Bits]

#: Fine and coarse cells along a side of the image, and the steps in which a coarse cell's occupied part is counted.
FINE = 64
COARSE = 8
STEP = (IMAGE / COARSE) ** 2 / 255
#: The cell of what says nothing: no limit follows from where its middle is.
ANY = FINE * FINE


@kernel
def cover_of(at: tuple[float, float, float, float]) -> tuple[int, int, Any]:
    """First and last row of a grid of 16 rows and 64 columns that a box touches, and its columns as bits.

    What lies outside the image counts in the cells of its edge: boxes that overlap still share a cell.
    """
    c0 = int(min(max(at[0], 0.0), IMAGE - 1) / (IMAGE / 64))
    c1 = int(min(max(at[2], 0.0), IMAGE - 1) / (IMAGE / 64))
    r0 = int(min(max(at[1], 0.0), IMAGE - 1) / (IMAGE / 16))
    r1 = int(min(max(at[3], 0.0), IMAGE - 1) / (IMAGE / 16))
    every = np.uint64(0xFFFFFFFFFFFFFFFF)
    return r0, r1, (every << np.uint64(c0)) & (every >> np.uint64(63 - c1))


@kernel
def fill_covers(start: IntArray, box: FloatArray, out: UIntArray) -> None:
    """(sets, 16) the cells that the boxes of each set touch."""
    for k in range(len(out)):
        for f in range(start[k], start[k + 1]):
            r0, r1, columns = cover_of(placed(box, f, 0, False))
            for r in range(r0, r1 + 1):
                out[k, r] |= columns


@kernel
def touching(
    facts: FloatArray, cover: UIntArray, a: int, visit: Visit, jaccard: float, touched: Bits
) -> tuple[bool, float]:
    """Which features of b touch cells of a, False if too few to be alike, and the sum of their areas."""
    rows, columns, area, size, least = visit
    met, common = 0, 0.0
    for k in range(size):
        # Three rows whatever the box, then the rare further ones: without branches it is several times as fast.
        r0, r1 = rows[k, 0], rows[k, 1]
        both = cover[a, r0] | cover[a, min(r0 + 1, r1)] | cover[a, min(r0 + 2, r1)]
        for r in range(r0 + 3, r1 + 1):
            both |= cover[a, r]
        touches = (both & columns[k]) != 0
        touched[k] = touches
        met += touches
        common += area[k] * touches
    need = (min(int(facts[a, 0]), size) + 1) // 2
    goal = jaccard / (1 + jaccard) * (facts[a, 1] + least) * (1 - SLACK)
    return met >= need or common >= goal, common


@kernel
def fill_coarse(flats: Flats, middle: NDArray[np.uint16], mass: Bits) -> None:
    """Fine cells of the middles of all boxes, and how much of each coarse cell a set occupies."""
    start, box, area, _, _, _ = flats
    parts = np.empty(COARSE * COARSE)
    for k in range(len(mass)):
        for f in range(start[k], start[k + 1]):
            middle[f] = _middle(box, f, area[f])
        _mass(flats, k, 0, parts, mass[k])


@kernel
def _middle(box: FloatArray, f: int, area: float) -> int:
    """The fine cell that holds the middle of a box.

    Where two shapes have an IoU of 0.5 or more, they share half of either one. If one is its box, half of that box lies
    in the other's box, and with it its middle.
    """
    x0, y0, x1, y1 = placed(box, f, 0, False)
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    plain = area >= (x1 - x0) * (y1 - y0) * (1 - SLACK)
    if not plain or min(x, y) < 0 or max(x, y) >= IMAGE:
        return ANY
    return int(y / (IMAGE / FINE)) * FINE + int(x / (IMAGE / FINE))


@kernel
def _mass(flats: Flats, k: int, turn: int, parts: FloatArray, mass: Bits) -> None:
    """How much of each coarse cell a set occupies at most, in steps; all of it where the set leaves the image."""
    start, box, area, _, _, _ = flats
    side = IMAGE / COARSE
    parts[:] = 0.0
    outside = False
    for f in range(start[k], start[k + 1]):
        x0, y0, x1, y1 = placed(box, f, turn, False)
        if min(x0, y0) < 0 or max(x1, y1) > IMAGE:
            outside = True
            break
        for r in range(int(y0 / side), min(int(y1 / side), COARSE - 1) + 1):
            high = min(y1, (r + 1) * side) - max(y0, r * side)
            for c in range(int(x0 / side), min(int(x1 / side), COARSE - 1) + 1):
                wide = min(x1, (c + 1) * side) - max(x0, c * side)
                parts[r * COARSE + c] += min(high * wide, area[f])
    for cell in range(len(parts)):
        mass[cell] = 255 if outside else min(np.ceil(parts[cell] / STEP * (1 + SLACK)), 255.0)


@kernel
def picture_of(flats: Flats, b: int, turn: int, near: Bits, parts: FloatArray, mass: Bits) -> bool:
    """The fine cells around the boxes of a set as it stands now, and its coarse cells; whether it leaves the image."""
    start, box, _, _, _, _ = flats
    side = IMAGE / FINE
    near[:] = 0
    near[ANY] = 1
    outside = False
    for f in range(start[b], start[b + 1]):
        x0, y0, x1, y1 = placed(box, f, turn, False)
        outside = outside or min(x0, y0) < 0 or max(x1, y1) > IMAGE
        # A little more than the box, because a middle may lie on its edge.
        c0, c1 = max(int((x0 - SLACK) / side), 0), min(int((x1 + SLACK) / side), FINE - 1)
        for r in range(max(int((y0 - SLACK) / side), 0), min(int((y1 + SLACK) / side), FINE - 1) + 1):
            for c in range(c0, c1 + 1):
                near[r * FINE + c] = 1
    _mass(flats, b, turn, parts, mass)
    return outside


@kernel
def sift(
    facts: FloatArray,
    coarse: Coarse,
    picture: tuple[Bits, Bits, bool],
    other: tuple[int, float, int],
    jaccard: float,
    new: SetArray,
    n: int,
) -> int:
    """Of the first sets in ``new``, keep those of which enough features can match, or enough of what they occupy.

    ``other`` is what the facts are of one set: how many features, what it occupies at least, and its group.
    """
    middle, masses = coarse
    near, mass, outside = picture
    size, least, group = other
    share = jaccard / (1 + jaccard) * (1 - SLACK)
    # Looks without branches first: many waits for memory then become one.
    kept, ahead = 0, 0
    for m in range(n):
        a = new[m]
        new[kept] = a
        kept += facts[a, 2] != group
    for m in range(kept):
        # Used below, so that the compiler keeps these looks.
        ahead += masses[new[m], 0] + middle[int(facts[new[m], 3])]
    n, kept = kept, 0 if ahead >= 0 else 1
    for m in range(n):
        a = new[m]
        first, count = int(facts[a, 3]), int(facts[a, 0])
        met = 0
        for e in range(first, first + count):
            met += near[middle[e]]
        good = met >= (min(count, size) + 1) // 2 or outside
        if not good:
            row, common = masses[a], np.uint32(0)
            for cell in range(COARSE * COARSE):
                common += np.uint32(min(row[cell], mass[cell]))
            good = common * STEP >= share * (facts[a, 1] + least)
        if good:
            new[kept] = a
            kept += 1
    return kept
