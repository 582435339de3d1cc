"""Label sets: one hash for the same geometries however they are written, and sets that are nearly alike.

Canonical     coordinates on a grid, without repeated or collinear points, single parts unwrapped, normalised, as
              little-endian WKB in two dimensions. Order of features, start of rings, winding, heights and file formats
              then do not count.
Nearly alike  sets of at least 3 features: one-to-one matches at IoU >= 0.5 cover half of the smaller set, or the areas
              that they occupy have a Jaccard index >= 0.4. In the world (whatever the systems), or in one of the eight
              flips and rotations of the image.
Candidates    sets whose footprints meet in the world; in images, sets that share boxes of features (one; two from six
              features on) on a grid of 1/32 of the image, or on a second one that is half a cell away.
Points, lines have no area: they are widened by 1/500 of the diagonal of their set.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely

from geoeval.model import FloatArray, IntArray, ObjectArray
from geoeval.splits.across import Across, first_pairs, split_codes

#: Size of the grid of canonical coordinates, in their own unit: a tenth of a metre in degrees, a micrometre in metres.
GRID = 1e-6

LEAST_FEATURES = 3
MATCH_IOU = 0.5
MATCH_SHARE = 0.5
LEAST_JACCARD = 0.4

_IMAGE = 1024.0
_CELL = 32.0
_WIDENED = 1 / 500
#: From this many features on, one shared box may be an accident; two are asked for.
_ENOUGH_FOR_TWO = 6


@dataclass(frozen=True, slots=True, eq=False)
class LabelSet:
    """The labels of one sample, in the world, in its image, or both.

    Parameters
    ----------
    world
        (features,) shapely geometries in ``crs``, or None where the labels have no place on Earth.
    crs
        System of ``world``.
    pixels
        (features,) geometries in columns and rows of the image, or None.
    size
        Rows and columns of the image; where it is not known, the bounds of the set stand for the image.
    """

    world: ObjectArray | None = None
    crs: Any = "EPSG:4326"
    pixels: ObjectArray | None = None
    size: tuple[int, int] | None = None


def canonical_feature(geometry: Any, grid: float = GRID) -> bytes:
    """One geometry as bytes that depend on its shape alone.

    Parameters
    ----------
    geometry
        A shapely geometry.
    grid
        Size of the grid to which coordinates are rounded.

    Examples
    --------
    >>> one = shapely.from_wkt("POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))")
    >>> two = shapely.from_wkt("MULTIPOLYGON Z (((2 2 5, 2 0 5, 1 0 5, 0 0 5, -0 0 5, 0 2.0000000001 5, 2 2 5)))")
    >>> canonical_feature(one) == canonical_feature(two)
    True
    """
    flat = shapely.force_2d(geometry)
    cells = shapely.transform(flat, lambda at: np.round(at / grid) + 0.0)
    clean = shapely.normalize(_cleaned(cells))
    return bytes(shapely.to_wkb(shapely.transform(clean, lambda at: at * grid + 0.0), byte_order=1, output_dimension=2))


def geometry_hash(geometry: Iterable[Any], grid: float = GRID) -> str:
    """SHA-256 over the canonical features of a label set, in any order. None and empty geometries do not count.

    Examples
    --------
    >>> points = shapely.points([[0, 0], [1, 1]])
    >>> geometry_hash(points) == geometry_hash(points[::-1])
    True
    >>> geometry_hash(points) == geometry_hash(points[:1])
    False
    """
    digest = hashlib.sha256()
    kept = (shape for shape in geometry if shape is not None and not shape.is_empty)
    for feature in sorted(canonical_feature(shape, grid) for shape in kept):
        digest.update(len(feature).to_bytes(8, "little"))
        digest.update(feature)
    return digest.hexdigest()


def similarity(one: ObjectArray, other: ObjectArray) -> tuple[float, float]:
    """How alike two label sets in one frame are: share of the smaller set that is matched one to one, and Jaccard.

    Examples
    --------
    >>> boxes = shapely.box([0, 10, 20], 0, [4, 14, 24], 4)
    >>> similarity(boxes, boxes[:2])
    (1.0, 0.666666667)
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import maximum_bipartite_matching

    if not len(one) or not len(other):
        return 0.0, 0.0
    i, j = shapely.STRtree(other).query(one)
    inter = shapely.area(shapely.intersection(one[i], other[j]))
    union = shapely.area(one[i]) + shapely.area(other[j]) - inter
    good = np.round(np.divide(inter, union, out=np.zeros(len(i)), where=union > 0), 9) >= MATCH_IOU
    links = coo_matrix((np.ones(int(good.sum())), (i[good], j[good])), shape=(len(one), len(other))).tocsr()
    matched = int((maximum_bipartite_matching(links) >= 0).sum())
    area_one, area_other = shapely.union_all(one), shapely.union_all(other)
    common = shapely.intersection(area_one, area_other).area
    total = area_one.area + area_other.area - common
    return matched / min(len(one), len(other)), round(float(common / total), 9) if total > 0 else 0.0


def duplicates_across(sets: Sequence[LabelSet], split: IntArray, *, witnesses: int = 100) -> Across:
    """Pairs of label sets in different splits that are nearly alike; their distance is 1 minus the similarity.

    Parameters
    ----------
    sets
        Labels of each sample; sets with fewer than 3 features are never alike.
    split
        (samples,) split of each sample, any integers.
    witnesses
        How many pairs to return.

    Examples
    --------
    >>> boxes = shapely.box([0, 10, 20], 0, [4, 14, 24], 4)
    >>> mirrored = shapely.transform(boxes, lambda at: np.array([30, 0]) + at * np.array([-1, 1]))
    >>> sets = [LabelSet(pixels=boxes, size=(9, 30)), LabelSet(pixels=mirrored, size=(9, 30))]
    >>> found = duplicates_across(sets, np.array([0, 1]))
    >>> found.count, found.distance.tolist()
    (1, [0.0])
    """
    group = split_codes(split, len(sets))
    found = [pair for pair in _duplicates(sets, group) if group[pair[0]] != group[pair[1]]]
    i, j = (np.array([pair[side] for pair in found], dtype=np.int64) for side in (0, 1))
    return first_pairs(i, j, np.array([pair[2] for pair in found], dtype=np.float64), len(found), witnesses)


def duplicate_groups(sets: Sequence[LabelSet]) -> IntArray:
    """Connected components of label sets that are nearly alike, numbered from 0 in order of first members.

    Examples
    --------
    >>> boxes = shapely.box([0, 10, 20], 0, [4, 14, 24], 4)
    >>> duplicate_groups([LabelSet(boxes), LabelSet(boxes[:1]), LabelSet(boxes[::-1])]).tolist()
    [0, 1, 0]
    """
    parent = list(range(len(sets)))

    def root(x: int) -> int:
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    for a, b, _ in _duplicates(sets, None):
        low, high = sorted((root(a), root(b)))
        parent[high] = low
    roots = [root(x) for x in range(len(sets))]
    number = {one: k for k, one in enumerate(dict.fromkeys(roots))}
    return np.array([number[one] for one in roots], dtype=np.int64)


def _duplicates(sets: Sequence[LabelSet], group: IntArray | None) -> Iterator[tuple[int, int, float]]:
    """Pairs that are nearly alike in any frame, each once, with the distance of the best frame."""
    best: dict[tuple[int, int], float] = {}

    def look(a: int, b: int, one: ObjectArray, other: ObjectArray) -> None:
        share, jaccard = similarity(one, other)
        if share >= MATCH_SHARE or jaccard >= LEAST_JACCARD:
            apart = round(1 - max(share, jaccard), 9)
            best[a, b] = min(best.get((a, b), 1.0), apart)

    world = [_in_degrees(one) for one in sets]
    for a, b, turn in _world_candidates(world, group):
        look(a, b, world[a], _shifted(world[b], turn))
    image = [_in_image(one) for one in sets]
    for a, b, turn in _image_candidates(image, group):
        look(a, b, image[a], _turned(image[b], turn))
    yield from ((a, b, apart) for (a, b), apart in sorted(best.items()))


def _in_degrees(labels: LabelSet) -> ObjectArray:
    """Features in longitude and latitude, widened where they have no area; none where there are too few."""
    from geoeval.geometry.crs import parse_crs, transform

    shapes = _present(labels.world)
    if len(shapes) < LEAST_FEATURES:
        return shapes[:0]
    placed = _with_area(transform(shapes, parse_crs(labels.crs), parse_crs("OGC:CRS84")))
    # Every feature in the same turn, whichever way its file crosses 180 degrees.
    turns = np.floor((shapely.bounds(placed)[:, [0, 2]].mean(axis=1) + 180) / 360)
    for turn in np.unique(turns[turns != 0]).tolist():
        placed[turns == turn] = _shifted(placed[turns == turn], -int(turn))
    return placed


def _in_image(labels: LabelSet) -> ObjectArray:
    """Features in a square image of 1024 cells, widened where they have no area; none where there are too few."""
    shapes = _present(labels.pixels)
    if len(shapes) < LEAST_FEATURES:
        return shapes[:0]
    if labels.size is not None:
        low, span = np.zeros(2), np.array([labels.size[1], labels.size[0]], dtype=np.float64)
    else:
        bounds = shapely.total_bounds(shapes)
        low, span = bounds[:2], bounds[2:] - bounds[:2]
    span = np.where(span > 0, span, 1.0)
    return _with_area(_moved(shapes, lambda at: (at - low) / span * _IMAGE))


def _present(shapes: ObjectArray | None) -> ObjectArray:
    given = np.array([], dtype=np.object_) if shapes is None else np.asarray(shapes, dtype=np.object_)
    return np.asarray(shapely.force_2d(given[~(shapely.is_missing(given) | shapely.is_empty(given))]), dtype=np.object_)


def _with_area(shapes: ObjectArray) -> ObjectArray:
    x0, y0, x1, y1 = shapely.total_bounds(shapes)
    size = float(np.hypot(x1 - x0, y1 - y0)) * _WIDENED or 1e-6
    out = shapes.copy()
    broken = ~shapely.is_valid(out)
    out[broken] = shapely.make_valid(out[broken])
    thin = shapely.area(out) == 0
    out[thin] = shapely.buffer(out[thin], size, quad_segs=4)
    return out


def _moved(shapes: ObjectArray, way: Any) -> ObjectArray:
    return np.asarray(shapely.transform(shapes, way), dtype=np.object_)


def _world_candidates(world: list[ObjectArray], group: IntArray | None) -> Iterator[tuple[int, int, int]]:
    """Pairs of sets whose footprints meet, and the whole turns of longitude that bring the second to the first."""
    rows = np.array([k for k, one in enumerate(world) if len(one)], dtype=np.int64)
    if not len(rows):
        return
    footprint = shapely.box(*np.array([shapely.total_bounds(world[k]) for k in rows]).T)
    tree = shapely.STRtree(footprint)
    for turn in (-1, 0, 1):
        j, i = tree.query(_shifted(footprint, turn), predicate="intersects")
        a, b = rows[i], rows[j]
        kept = (a < b) if group is None else (a < b) & (group[a] != group[b])
        yield from sorted((one, other, turn) for one, other in zip(a[kept].tolist(), b[kept].tolist(), strict=True))


def _shifted(shapes: ObjectArray, turn: int) -> ObjectArray:
    return _moved(shapes, lambda at: at + np.array([360.0 * turn, 0.0])) if turn else shapes


def _image_candidates(image: list[ObjectArray], group: IntArray | None) -> Iterator[tuple[int, int, int]]:
    """Pairs of sets, and the orientation of the second one, that share boxes of features on one of two grids."""
    size = np.array([len(one) for one in image], dtype=np.int64)
    if not size.sum():
        return
    owner = np.repeat(np.arange(len(image)), size)
    bounds = shapely.bounds(np.concatenate(image))
    straight = _keys(bounds)
    order = np.argsort(straight, axis=0, kind="stable")
    for turn in range(8):
        shared: dict[tuple[int, int], set[int]] = {}
        turned = _keys(_turned_bounds(bounds, turn))
        for grid in (0, 1):
            known = straight[order[:, grid], grid]
            first = np.searchsorted(known, turned[:, grid], "left")
            count = np.searchsorted(known, turned[:, grid], "right") - first
            f = np.repeat(np.arange(len(owner)), count)
            within = np.arange(len(f)) - np.repeat(np.cumsum(count) - count, count)
            e = order[np.repeat(first, count) + within, grid]
            kept = owner[e] < owner[f]
            if group is not None:
                kept &= group[owner[e]] != group[owner[f]]
            for a, b, feature in zip(owner[e[kept]].tolist(), owner[f[kept]].tolist(), f[kept].tolist(), strict=True):
                shared.setdefault((a, b), set()).add(feature)
        for (a, b), features in sorted(shared.items()):
            if len(features) >= (2 if min(size[a], size[b]) >= _ENOUGH_FOR_TWO else 1):
                yield a, b, turn


def _keys(bounds: FloatArray) -> IntArray:
    """(features, 2) one number for the cells of the four sides of a feature's box, on either grid."""
    columns = []
    for start in (0.0, _CELL / 2):
        cell = (np.floor((bounds + start) / _CELL).astype(np.int64) + 2**14) & 0x7FFF
        columns.append(cell[:, 0] | cell[:, 1] << 15 | cell[:, 2] << 30 | cell[:, 3] << 45)
    return np.stack(columns, axis=1)


def _turn_of(at: FloatArray, turn: int) -> FloatArray:
    """Places of the image after one of its eight flips and rotations."""
    x, y = (at[:, 1], at[:, 0]) if turn & 4 else (at[:, 0], at[:, 1])
    return np.stack([_IMAGE - x if turn & 1 else x, _IMAGE - y if turn & 2 else y], axis=1)


def _turned(shapes: ObjectArray, turn: int) -> ObjectArray:
    return _moved(shapes, lambda at: _turn_of(at, turn))


def _turned_bounds(bounds: FloatArray, turn: int) -> FloatArray:
    a, b = _turn_of(bounds[:, :2], turn), _turn_of(bounds[:, 2:], turn)
    return np.concatenate([np.minimum(a, b), np.maximum(a, b)], axis=1)


def _cleaned(geometry: Any) -> Any:
    """A geometry on whole numbers without repeated and collinear points, and without a wrapper around a single part."""
    parts = [part for part in shapely.get_parts(geometry) if not part.is_empty]
    if geometry.geom_type.startswith(("Multi", "GeometryCollection")):
        if len(parts) == 1:
            return _cleaned(parts[0])
        cleaned = [_cleaned(part) for part in parts]
        return type(geometry)(cleaned) if len({part.geom_type for part in cleaned}) <= 1 else geometry
    if geometry.geom_type == "Polygon" and not geometry.is_empty:
        rings = [
            _straightened(shapely.get_coordinates(ring), closed=True)
            for ring in (geometry.exterior, *geometry.interiors)
        ]
        return geometry if any(len(ring) < 4 for ring in rings) else shapely.Polygon(rings[0], rings[1:])
    if geometry.geom_type == "LineString" and not geometry.is_empty:
        line = _straightened(shapely.get_coordinates(geometry), closed=False)
        return geometry if len(line) < 2 else shapely.LineString(line)
    return geometry


def _straightened(at: FloatArray, *, closed: bool) -> FloatArray:
    """Points of a line or ring without those that lie on the way from the one before to the one after."""
    points = [at[0], *(at[k] for k in range(1, len(at)) if (at[k] != at[k - 1]).any())]
    exact = [(int(x), int(y)) for x, y in points]
    if closed and len(exact) > 1 and exact[0] == exact[-1]:
        exact.pop()
    again = True
    while again and len(exact) > 2:
        n = len(exact)
        kept: list[tuple[int, int]] = []
        for k, here in enumerate(exact):
            before, after = kept[-1] if kept else exact[k - 1], exact[(k + 1) % n]
            inner = closed or 0 < k < n - 1
            if not (inner and _on_the_way(before, here, after)):
                kept.append(here)
        again, exact = len(kept) < n, kept
    if closed:
        exact.append(exact[0])
    return np.array(exact, dtype=np.float64)


def _on_the_way(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> bool:
    ux, uy, vx, vy = b[0] - a[0], b[1] - a[1], c[0] - b[0], c[1] - b[1]
    return ux * vy == uy * vx and ux * vx + uy * vy >= 0
