"""Label sets: one hash for the same geometries however they are written, and sets that are nearly alike.

Canonical     coordinates on a grid, without repeated or collinear points, single parts unwrapped, normalised, as
              little-endian WKB in two dimensions. Order of features, start of rings, winding, heights and file formats
              then do not count.
Nearly alike  sets of at least 3 features: one-to-one matches at IoU >= 0.5 cover half of the smaller set, or the areas
              that they occupy have a Jaccard index >= 0.4. In the world (whatever the systems), or in one of the eight
              flips and rotations of the image.
Candidates    sets whose footprints meet in the world; in images, sets of which two features share their boxes with two
              different features of the other: all four sides lie in the same cells of a grid of 1/32 of the image, or
              of a second one that is half a cell away, either one for each of the two, in one orientation.
Not found     in images, sets whose occupied areas agree while fewer than two boxes do: one block among specks, or
              fields that one side drew in parts. Copies that lie far apart: of sets of three features, about 1 % are
              missed at a shift of 4 cells of 1024, 5 % at 6 cells, 13 % at 8 cells; of sets of four 0.1, 1 and 4 %; of
              sets of five 0, 0.2 and 1 %.
Points, lines have no area: they are widened by 1/500 of the diagonal of their set.
Dense sets    of more than 256 features the 256 largest are compared.
Boxes         a set that stands as boxes (a sketch in a manifest) is compared box by box, with the boxes of the other
              set in the same steps and limited in the same way. Two full sets are compared by their shapes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely

from geoeval.model import FloatArray, IntArray, ObjectArray
from geoeval.splits.across import Across, split_codes

#: Size of the grid of canonical coordinates, in their own unit: a tenth of a metre in degrees, a micrometre in metres.
GRID = 1e-6

LEAST_FEATURES = 3
MATCH_IOU = 0.5
MATCH_SHARE = 0.5
LEAST_JACCARD = 0.4


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
    boxes
        True where boxes stand for the shapes, and the largest of them for all (:mod:`geoeval.splits.labelsketch`).
    drawn
        With ``boxes``: how many features the world and the image had before the smaller ones were left out.
    """

    world: ObjectArray | None = None
    crs: Any = "EPSG:4326"
    pixels: ObjectArray | None = None
    size: tuple[int, int] | None = None
    boxes: bool = False
    drawn: tuple[int, int] | None = None


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
        Labels of each sample; sets with fewer than 3 features are never alike. Where one of a pair holds boxes in
        place of shapes (``boxes``), the boxes of the 256 largest features of both are compared.
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
    groups = split_codes(split, len(sets))
    from geoeval.splits.labelset_pairs import pairs_across

    return pairs_across(sets, groups, witnesses)


def duplicate_groups(sets: Sequence[LabelSet]) -> IntArray:
    """Connected components of label sets that are nearly alike, numbered from 0 in order of first members.

    Examples
    --------
    >>> boxes = shapely.box([0, 10, 20], 0, [4, 14, 24], 4)
    >>> duplicate_groups([LabelSet(boxes), LabelSet(boxes[:1]), LabelSet(boxes[::-1])]).tolist()
    [0, 1, 0]
    """
    from geoeval.splits.labelset_pairs import groups_of

    return groups_of(sets)


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
