"""Features of many label sets in two common frames, as flat arrays: longitude and latitude, and the square image.

Axis-aligned boxes are kept as numbers alone. The features of a set stand one after the other, by their least x.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from geoeval.errors import InputError
from geoeval.model import FloatArray, IntArray, ObjectArray
from geoeval.splits.labelsets import LEAST_FEATURES, LabelSet

Mask = NDArray[np.bool_]

IMAGE = 1024.0

#: How many features a set keeps where boxes stand for it, and the steps of their sides in the image and in degrees.
MOST_BOXES = 256
IMAGE_STEP = 1 / 16
WORLD_STEP = 1e-7

_HALF_TURN = round(180 / WORLD_STEP)
_WIDENED = 1 / 500
_SQUARE = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Flat:
    """All features of all sets in one frame.

    Parameters
    ----------
    start
        (sets + 1,) where the features of each set begin; sets that are too small have none.
    box, area
        (features, 4) least x, least y, most x, most y, and (features,) areas.
    shapes
        (features,) geometries; None where the feature is its box.
    least, total
        (sets,) what the occupied area cannot be less than, and the sum of areas.
    reach
        (sets,) width of the widest box.
    tidy
        (sets,) 1 where no two boxes of the set overlap: areas then add up.
    """

    start: IntArray
    box: FloatArray
    area: FloatArray
    shapes: ObjectArray
    least: FloatArray
    total: FloatArray
    reach: FloatArray
    tidy: IntArray

    def owner(self) -> IntArray:
        """(features,) the set of each feature."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def geometry(self, feature: IntArray) -> ObjectArray:
        """Geometries of some features."""
        out = self.shapes[feature]
        plain = shapely.is_missing(out)
        out[plain] = shapely.box(*self.box[feature[plain]].T)
        return np.asarray(out, dtype=np.object_)


def in_degrees(sets: Sequence[LabelSet]) -> Flat:
    """Features in longitude and latitude, widened where they have no area; none of sets with too few.

    Examples
    --------
    >>> boxes = shapely.box([0, 10, 380], 0, [4, 14, 384], 4)
    >>> in_degrees([LabelSet(boxes), LabelSet(boxes[:2])]).box.tolist()
    [[0.0, 0.0, 4.0, 4.0], [10.0, 0.0, 14.0, 4.0], [20.0, 0.0, 24.0, 4.0]]
    """
    shapes, owner = _present([one.world for one in sets])
    shapes = _transformed(shapes, owner, [one.crs for one in sets])
    shapes, box, area = _with_area(shapes, shapely.bounds(shapes).reshape(-1, 4), owner, _plain(shapes))
    # Every feature in the same turn, whichever way its file crosses 180 degrees.
    turns = -np.floor((box[:, [0, 2]].mean(axis=1) + 180) / 360)
    box[:, [0, 2]] += 360 * turns[:, None]
    for turn in np.unique(turns[turns != 0]).tolist():
        here = (turns == turn) & ~shapely.is_missing(shapes)
        shapes[here] = shifted(shapes[here], int(turn))
    return _flat(len(sets), owner, box, area, shapes)


def in_image(sets: Sequence[LabelSet]) -> Flat:
    """Features in a square image of 1024 cells, widened where they have no area; none of sets with too few.

    Examples
    --------
    >>> boxes = shapely.box([0, 10, 20], 0, [4, 14, 24], 4)
    >>> in_image([LabelSet(pixels=boxes, size=(32, 64))]).box.tolist()[1]
    [160.0, 0.0, 224.0, 128.0]
    """
    shapes, owner = _present([one.pixels for one in sets])
    given = shapely.bounds(shapes).reshape(-1, 4)
    low, span = _extents(given, owner, len(sets))
    for k, one in enumerate(sets):
        if one.size is not None:
            low[k], span[k] = 0.0, (one.size[1], one.size[0])
    span = np.where(span > 0, span, 1.0)
    corner, width = np.tile(low, 2), np.tile(span, 2)
    plain = _plain(shapes)
    rest = shapes[~plain]
    at, feature = shapely.get_coordinates(rest, return_index=True)
    place = owner[~plain][feature]
    shapes[~plain] = shapely.set_coordinates(rest, (at - low[place]) / span[place] * IMAGE)
    box = (given - corner[owner]) / width[owner] * IMAGE
    shapes, box, area = _with_area(shapes, box, owner, plain)
    return _flat(len(sets), owner, box, area, shapes)


def limited(flat: Flat) -> Flat:
    """The sets with their largest features only, as many as a sketch keeps: dense sets would cost without end.

    Examples
    --------
    >>> boxes = shapely.box(np.arange(300.0), 0, np.arange(300.0) + 0.5, np.arange(300.0) + 1)
    >>> flat = limited(in_image([LabelSet(pixels=boxes, size=(300, 300))]))
    >>> len(flat.box), float(flat.area.min()) > 40
    (256, True)
    """
    size = np.diff(flat.start)
    if (size <= MOST_BOXES).all():
        return flat
    low, span = _extents(flat.box, flat.owner(), len(size))
    kept = []
    for k in range(len(size)):
        mine = np.arange(flat.start[k], flat.start[k + 1])
        kept.append(mine if size[k] <= MOST_BOXES else mine[_largest(flat.box[mine], low[k], span[k])[:MOST_BOXES]])
    some = np.concatenate(kept)
    return _flat(len(size), flat.owner()[some], flat.box[some], flat.area[some], flat.shapes[some])


def _largest(box: FloatArray, low: FloatArray, span: FloatArray) -> IntArray:
    """Features by half octaves of area, largest first; among those, nearest to the middle of the set first."""
    # Rounded, so that the last bit does not tell apart what is equally large and equally far away.
    octave = np.round(2 * np.log2(np.maximum((box[:, 2:] - box[:, :2]).prod(axis=1), 1e-300)) + 0.25)
    away = (box[:, :2] + box[:, 2:]) / 2 - low - span / 2
    far = np.round(np.hypot(away[:, 0], away[:, 1]) / (np.hypot(*span) or 1.0), 9)
    return np.lexsort((*box.T[::-1], far, -octave)).astype(np.int64)


def steps_of(flat: Flat, *, world: bool) -> Iterator[tuple[int, IntArray]]:
    """Per set, how many features it has, and the boxes of the largest ones as whole steps, in a fixed order.

    Largest by half octaves of area; among those, nearest to the middle of the set. That choice stays the same when a
    set is shifted, turned or mirrored, and however its features are ordered.
    """
    box = flat.box
    step, most = (WORLD_STEP, 2**31 - 1) if world else (IMAGE_STEP, 2**15 - 1)
    low, span = _extents(box, flat.owner(), len(flat.start) - 1)
    steps = np.clip(np.round(box / step), -most, most).astype(np.int64)
    steps[:, :2] = np.minimum(steps[:, :2], most - 1)
    steps[:, 2:] = np.maximum(steps[:, 2:], steps[:, :2] + 1)
    if world:
        # Rounding may have brought a middle up to 180 degrees, which is written as -180.
        around = np.flatnonzero(steps[:, 0] + steps[:, 2] >= 2 * _HALF_TURN)
        steps[around, 0] -= 2 * _HALF_TURN
        steps[around, 2] -= 2 * _HALF_TURN
    for k in range(len(flat.start) - 1):
        here = slice(int(flat.start[k]), int(flat.start[k + 1]))
        mine = steps[here]
        if len(mine) > MOST_BOXES:
            mine = mine[_largest(box[here], low[k], span[k])[:MOST_BOXES]]
        yield int(flat.start[k + 1] - flat.start[k]), mine[np.lexsort(mine.T[::-1])]


def as_boxes(flat: Flat, *, world: bool) -> Flat:
    """The same sets as a sketch holds them: the boxes of their largest features, in whole steps."""
    parts = [mine for _, mine in steps_of(flat, world=world)]
    owner = np.repeat(np.arange(len(parts)), [len(mine) for mine in parts])
    steps = np.concatenate([np.zeros((0, 4), dtype=np.int64), *parts])
    box = from_steps(steps, world=world)
    area = (box[:, 2:] - box[:, :2]).prod(axis=1)
    return _flat(len(parts), owner, box, area, np.full(len(box), None, dtype=np.object_))


def from_steps(steps: IntArray, *, world: bool) -> FloatArray:
    """Sides of boxes from whole steps."""
    return np.asarray(steps / 1e7 if world else steps * IMAGE_STEP, dtype=np.float64)


def shifted(shapes: ObjectArray, turn: int) -> ObjectArray:
    """Geometries some whole turns of longitude further east."""
    if not turn:
        return shapes
    return np.asarray(shapely.transform(shapes, lambda at: at + np.array([360.0 * turn, 0.0])), dtype=np.object_)


def turned(shapes: ObjectArray, turn: int) -> ObjectArray:
    """Geometries after one of the eight flips and rotations of the image."""

    def way(at: FloatArray) -> FloatArray:
        x, y = (at[:, 1], at[:, 0]) if turn & 4 else (at[:, 0], at[:, 1])
        return np.stack([IMAGE - x if turn & 1 else x, IMAGE - y if turn & 2 else y], axis=1)

    return np.asarray(shapely.transform(shapes, way), dtype=np.object_) if turn else shapes


def _present(columns: Sequence[ObjectArray | None]) -> tuple[ObjectArray, IntArray]:
    """Features that are there, of sets that have enough of them, and the set of each."""
    nothing = np.array([], dtype=np.object_)
    arrays = [nothing if shapes is None else np.asarray(shapes, dtype=np.object_).reshape(-1) for shapes in columns]
    shapes = np.concatenate([nothing, *arrays])
    owner = np.repeat(np.arange(len(arrays)), np.array([len(one) for one in arrays], dtype=np.int64))
    kept = np.isfinite(shapely.bounds(shapes).reshape(-1, 4)).all(axis=1)
    kept &= np.bincount(owner[kept], minlength=len(arrays))[owner] >= LEAST_FEATURES
    shapes, owner = shapes[kept], owner[kept]
    tall = shapely.has_z(shapes)
    shapes[tall] = shapely.force_2d(shapes[tall])
    return shapes, owner


def _transformed(shapes: ObjectArray, owner: IntArray, systems: Sequence[Any]) -> ObjectArray:
    """Features in longitude and latitude: as many in one go as give the same as set by set."""
    from geoeval.geometry.crs import parse_crs, same_crs

    degrees = parse_crs("OGC:CRS84")
    rows = np.unique(owner)
    names: dict[str, int] = {}
    code = np.full(len(systems), -1)
    for k in rows.tolist():
        code[k] = names.setdefault(str(systems[k]), len(names))
    known = {name: parse_crs(systems[int(np.flatnonzero(code == c)[0])]) for name, c in names.items()}
    box = shapely.bounds(shapes).reshape(-1, 4)
    low, high = np.full(len(systems), np.inf), np.full(len(systems), -np.inf)
    np.minimum.at(low, owner, box[:, 0])
    np.maximum.at(high, owner, box[:, 2])
    # Where x runs around the world, what lies on both sides of its zero may be one place or two; a set decides alone.
    side = np.where(low >= 0, 1, np.where(high < 0, -1, 0))
    out = shapes.copy()
    for name, c in names.items():
        if same_crs(known[name], degrees):
            continue
        for way in (-1, 1):
            here = np.flatnonzero((code[owner] == c) & (side[owner] == way))
            out[here] = _in_one_go(shapes[here], owner[here], known[name])
        alone = np.flatnonzero((code[owner] == c) & (side[owner] == 0))
        out[alone] = _set_by_set(shapes[alone], owner[alone], known[name])
    return out


def _in_one_go(shapes: ObjectArray, owner: IntArray, crs: Any) -> ObjectArray:
    from geoeval.geometry.crs import parse_crs, transform

    try:
        return transform(shapes, crs, parse_crs("OGC:CRS84"))
    except InputError:
        # The message names the feature by its place in its own set.
        return _set_by_set(shapes, owner, crs)


def _set_by_set(shapes: ObjectArray, owner: IntArray, crs: Any) -> ObjectArray:
    from geoeval.geometry.crs import parse_crs, transform

    degrees = parse_crs("OGC:CRS84")
    edges = np.flatnonzero(np.diff(owner)) + 1
    parts = [transform(part, crs, degrees) for part in np.split(shapes, edges)] if len(shapes) else []
    return np.concatenate([shapes[:0], *parts])


def _extents(box: FloatArray, owner: IntArray, n: int) -> tuple[FloatArray, FloatArray]:
    """(sets, 2) lower corner and size of each set; zero where a set has no feature."""
    low, high = np.full((n, 2), np.inf), np.full((n, 2), -np.inf)
    np.minimum.at(low, owner, box[:, :2])
    np.maximum.at(high, owner, box[:, 2:])
    empty = ~np.isfinite(low).all(axis=1)
    low[empty] = high[empty] = 0.0
    return low, high - low


def _plain(shapes: ObjectArray) -> Mask:
    """Which shapes are axis-aligned boxes: four corners, and as large as their bounds."""
    plain = (shapely.get_type_id(shapes) == 3) & (shapely.get_num_coordinates(shapes) == 5)
    box = shapely.bounds(shapes[plain]).reshape(-1, 4)
    whole = (box[:, 2:] - box[:, :2]).prod(axis=1)
    plain[plain] = (whole > 0) & (np.abs(shapely.area(shapes[plain]) - whole) <= _SQUARE * whole)
    return np.asarray(plain, dtype=np.bool_)


def _with_area(
    shapes: ObjectArray, box: FloatArray, owner: IntArray, plain: Mask
) -> tuple[ObjectArray, FloatArray, FloatArray]:
    """Features that have an area, their boxes, and their areas; None for the shapes of plain boxes."""
    out, box = shapes.copy(), box.copy()
    out[plain] = None
    rest = np.flatnonzero(~plain)
    area = (box[:, 2:] - box[:, :2]).prod(axis=1)
    if not len(rest):
        return out, box, area
    span = _extents(box, owner, int(owner.max()) + 1)[1]
    size = np.hypot(span[:, 0], span[:, 1]) * _WIDENED
    size[size == 0] = 1e-6
    broken = rest[~shapely.is_valid(out[rest])]
    out[broken] = shapely.make_valid(out[broken])
    thin = rest[shapely.area(out[rest]) == 0]
    out[thin] = shapely.buffer(out[thin], size[owner[thin]], quad_segs=4)
    area[rest] = shapely.area(out[rest])
    box[rest] = shapely.bounds(out[rest]).reshape(-1, 4)
    return out, box, area


def _flat(n: int, owner: IntArray, box: FloatArray, area: FloatArray, shapes: ObjectArray) -> Flat:
    from geoeval.splits._labelset_kernels import occupied

    order = np.lexsort((box[:, 0], owner))
    owner, box, area = owner[order], np.ascontiguousarray(box[order]), area[order]
    start = np.searchsorted(owner, np.arange(n + 1)).astype(np.int64)
    reach, least, tidy = np.zeros(n), np.zeros(n), np.zeros(n, dtype=np.int64)
    np.maximum.at(reach, owner, box[:, 2] - box[:, 0])
    occupied(start, box, area, least, tidy)
    total = np.bincount(owner, weights=area, minlength=n).astype(np.float64)
    return Flat(start, box, area, shapes[order], least, total, reach, tidy)
