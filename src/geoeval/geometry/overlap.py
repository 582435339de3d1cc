"""Which polygons of two layers overlap, by how much, and the area of whole layers.

Areas come from edge pairs in a compiled kernel, without an intersection geometry; they agree with GEOS to rounding.
Valid polygons are assumed (:mod:`geoeval.geometry.validity` repairs). Polygons that share no more than an edge or a
corner do not overlap: an area below what the spacing of floating-point numbers at these coordinates can tell from
touching is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from geoeval.errors import InputError
from geoeval.geometry.packing import Paths, in_threads, pack
from geoeval.model import FloatArray, IntArray, ObjectArray

#: Pairs in one slice of work.
_SLICE = 16_384
#: Decimals of an IoU: last-bit noise must not decide a match.
_DECIMALS = 9
#: Relative excess over what is geometrically possible that rounding may cause.
_EXCESS = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Overlaps:
    """Pairs of overlapping polygons, sorted by (reference, prediction). Every array has one entry a pair.

    Parameters
    ----------
    reference, prediction
        Positions in the two layers.
    area
        Shared area, above 0, never more than either polygon's.
    iou
        Shared area over united area, rounded to 9 decimals.
    reference_area, prediction_area
        Area of the reference and of the prediction of each pair.
    remeasured
        How many pairs the kernel found to share more than is possible, and GEOS measured instead: 0 for valid polygons.
    """

    reference: IntArray
    prediction: IntArray
    area: FloatArray
    iou: FloatArray
    reference_area: FloatArray
    prediction_area: FloatArray
    remeasured: int = 0

    def __len__(self) -> int:
        return len(self.reference)


def areas(geometry: ObjectArray) -> FloatArray:
    """Area of each geometry (n,), in the square of the unit of its coordinates; 0 for lines and points.

    Examples
    --------
    >>> areas(np.array([shapely.box(0, 0, 3, 2), shapely.Point(0, 0)]))
    array([6., 0.])
    """
    return np.asarray(shapely.area(np.asarray(geometry, dtype=np.object_)), dtype=np.float64).reshape(-1)


def overlaps(reference: ObjectArray, prediction: ObjectArray, min_iou: float = 0.0) -> Overlaps:
    """Pairs of polygons that share area, with an IoU of at least ``min_iou``.

    Parameters
    ----------
    reference, prediction
        Valid polygons or multipolygons in one metric system; empty ones overlap nothing.
    min_iou
        In [0, 1]; pairs below it are left out, most of them before anything is measured. Equal counts as at least.

    Raises
    ------
    InputError
        Where a geometry is not a polygon, or an invalid one cannot be measured.

    Examples
    --------
    >>> left = np.array([shapely.box(0, 0, 2, 1), shapely.box(9, 9, 10, 10)])
    >>> right = np.array([shapely.box(2, 0, 3, 1), shapely.box(1, 0, 3, 1)])
    >>> found = overlaps(left, right)
    >>> found.reference, found.prediction, found.area, found.iou
    (array([0]), array([1]), array([1.]), array([0.33333333]))
    """
    if not 0.0 <= min_iou <= 1.0:
        raise ValueError(f"min_iou must lie in [0, 1], got {min_iou!r}; is it a percentage?")
    left, right = _polygons(reference, "reference"), _polygons(prediction, "prediction")
    i, j = _box_pairs(left, right)
    return _measured(left, right, i, j, min_iou)


def self_overlaps(geometry: ObjectArray) -> Overlaps:
    """Pairs of polygons of one layer that share area; ``reference < prediction`` are both positions in the layer.

    Examples
    --------
    >>> layer = np.array([shapely.box(0, 0, 2, 1), shapely.box(2, 0, 3, 1), shapely.box(1, 0, 2, 1)])
    >>> found = self_overlaps(layer)
    >>> found.reference, found.prediction, found.area
    (array([0]), array([2]), array([1.]))
    """
    layer = _polygons(geometry, "layer")
    i, j = _box_pairs(layer, layer)
    return _measured(layer, layer, i[i < j], j[i < j], 0.0)


def dissolved_areas(reference: ObjectArray, prediction: ObjectArray) -> tuple[float, float, float, float]:
    """Area of each layer dissolved, of what both cover, and of what either covers.

    What a layer covers twice counts once. Layers without overlaps inside need no union geometry at all; in others, only
    polygons that overlap are united. The result does not depend on the order of the features.

    Returns
    -------
    tuple[float, float, float, float]
        Reference, prediction, intersection, union.

    Examples
    --------
    >>> twice = np.array([shapely.box(0, 0, 2, 1), shapely.box(1, 0, 3, 1)])
    >>> dissolved_areas(twice, np.array([shapely.box(2, 0, 4, 1)]))
    (3.0, 2.0, 1.0, 4.0)
    """
    left, right = _dissolved(reference, "reference"), _dissolved(prediction, "prediction")
    covered, predicted = math.fsum(areas(left)), math.fsum(areas(right))
    shared = min(math.fsum(overlaps(left, right).area), covered, predicted)
    return covered, predicted, shared, math.fsum((covered, predicted, -shared))


def _polygons(geometry: ObjectArray, side: str) -> ObjectArray:
    layer: NDArray[Any] = np.asarray(geometry, dtype=np.object_).reshape(-1)
    wrong = np.flatnonzero(~np.isin(shapely.get_type_id(layer), (3, 6)) & ~shapely.is_empty(layer))
    wrong = wrong[shapely.get_type_id(layer[wrong]) >= 0]
    if len(wrong):
        raise InputError(
            f"{side}: expected polygons; found {layer[wrong[0]].geom_type} at position {wrong[0]} "
            f"({len(wrong)} in all). Areas need polygons; keep the polygonal part of each geometry, or drop it"
        )
    return layer


def _box_pairs(left: ObjectArray, right: ObjectArray) -> tuple[IntArray, IntArray]:
    """Pairs whose bounding boxes meet, sorted."""
    if len(left) == 0 or len(right) == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    i, j = shapely.STRtree(right).query(left)
    key = np.sort(i.astype(np.int64) * len(right) + j)
    return key // len(right), key % len(right)


def _measured(left: ObjectArray, right: ObjectArray, i: IntArray, j: IntArray, min_iou: float) -> Overlaps:
    a_area, b_area = areas(left), areas(right)
    box, spacing = _shared_boxes(shapely.bounds(left)[i], shapely.bounds(right)[j])
    most = np.minimum(np.minimum(a_area[i], b_area[j]), box[:, 2] * box[:, 3])
    least = round(min_iou, _DECIMALS)
    keep = (most > 0.0) & (_iou(most, a_area[i], b_area[j]) >= least)
    i, j, box, most, spacing = i[keep], j[keep], box[keep], most[keep], spacing[keep]

    blur = 4.0 * spacing * (box[:, 2] + box[:, 3])
    area = _kernel_areas(left, right, i, j, box)
    wrong = np.flatnonzero(~(np.abs(area - most / 2) <= most / 2 + _EXCESS * box[:, 2] * box[:, 3] + blur))
    area[wrong] = _geos_areas(left, right, i[wrong], j[wrong])
    area = np.where(area <= blur, 0.0, np.minimum(area, most))

    iou = _iou(area, a_area[i], b_area[j])
    keep = (area > 0.0) & (iou >= least)
    return Overlaps(i[keep], j[keep], area[keep], iou[keep], a_area[i[keep]], b_area[j[keep]], len(wrong))


def _shared_boxes(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rectangles shared by bounding boxes, as x, y, width, height (0 where they do not overlap), and number spacing."""
    low = np.maximum(a[:, :2], b[:, :2])
    size = np.maximum(np.minimum(a[:, 2:], b[:, 2:]) - low, 0.0)
    furthest: FloatArray = np.max(np.abs(np.concatenate([a, b], axis=1)), axis=1, initial=0.0)
    return np.concatenate([low, size], axis=1), np.asarray(np.spacing(furthest), dtype=np.float64)


def _iou(area: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
    united = a + b - area
    iou = np.divide(area, united, out=np.zeros_like(area), where=united > 0.0)
    return np.asarray(np.round(np.minimum(iou, 1.0), _DECIMALS), dtype=np.float64)


def packed_signed(geometry: ObjectArray) -> tuple[Paths, FloatArray]:
    """Polygons as flat arrays, and the factor of each ring that makes its direction irrelevant.

    Examples
    --------
    >>> square = shapely.box(0, 0, 1, 1)
    >>> _, sign = packed_signed(np.array([square, shapely.reverse(square)]))
    >>> sorted(sign.tolist())
    [-1.0, 1.0]
    """
    from geoeval.geometry._overlap_kernels import ring_signs

    paths = pack(geometry)
    return paths, ring_signs(paths.xy, paths.path, paths.role)


def _kernel_areas(left: ObjectArray, right: ObjectArray, i: IntArray, j: IntArray, box: FloatArray) -> FloatArray:
    out = np.zeros(len(i))
    if len(i) == 0:
        return out
    used_i, at_i = np.unique(i, return_inverse=True)
    used_j, at_j = np.unique(j, return_inverse=True)
    shared_into(out, packed_signed(left[used_i]), packed_signed(right[used_j]), at_i, at_j, box)
    return out


def shared_into(
    out: FloatArray,
    left: tuple[Paths, FloatArray],
    right: tuple[Paths, FloatArray],
    i: IntArray,
    j: IntArray,
    box: FloatArray,
) -> None:
    """Area shared by packed polygons ``i[k]`` and ``j[k]``, into ``out[k]``; each pair is measured by one thread.

    ``box`` (pairs, 4) holds x, y, width and height of the rectangle that the bounding boxes of each pair share.

    Examples
    --------
    >>> out, first = np.zeros(1), np.array([0])
    >>> left, right = (packed_signed(np.array([shapely.box(x, 0, x + 2, 1)])) for x in (0, 1))
    >>> shared_into(out, left, right, first, first, np.array([[1.0, 0.0, 1.0, 1.0]]))
    >>> out
    array([1.])
    """
    from geoeval.geometry._overlap_kernels import shared_areas

    (a, a_sign), (b, b_sign) = left, right
    most = 2 * int(max(a.segments.max(initial=0), b.segments.max(initial=0)))
    box = np.ascontiguousarray(box)

    def work(start: int, stop: int) -> None:
        shared_areas(a.xy, a.path, a.owner, a_sign, b.xy, b.path, b.owner, b_sign, i, j, box, most, out, start, stop)

    in_threads(work, len(i), _SLICE)


def _geos_areas(left: ObjectArray, right: ObjectArray, i: IntArray, j: IntArray) -> FloatArray:
    """What GEOS says, where the edges contradict themselves."""
    out = np.zeros(len(i))
    for k, (at, to) in enumerate(zip(i, j, strict=True)):
        try:
            out[k] = shapely.area(shapely.intersection(left[at], right[to]))
        except shapely.GEOSException as error:
            raise InputError(
                f"polygons at positions {at} (reference) and {to} (prediction): expected valid polygons; "
                f"found that their overlap cannot be measured ({error}). Repair them first"
            ) from error
    return out


def _dissolved(geometry: ObjectArray, side: str) -> ObjectArray:
    """The layer with polygons that overlap each other replaced by their union."""
    layer = _polygons(geometry, side)
    found = self_overlaps(layer)
    if len(found) == 0:
        return layer
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(layer)
    links = coo_array((np.ones(len(found)), (found.reference, found.prediction)), shape=(n, n))
    _, group = connected_components(links, directed=False)
    order = np.argsort(group, kind="stable")
    parts = np.split(layer[order], np.flatnonzero(np.diff(group[order])) + 1)
    out: NDArray[Any] = np.empty(len(parts), dtype=np.object_)
    out[:] = [part[0] if len(part) == 1 else _union(part) for part in parts]
    return out


def _union(parts: ObjectArray) -> shapely.Geometry:
    # In the order of their bytes, so that the union's last digits do not depend on the order of the file.
    whole = shapely.normalize(parts)
    return shapely.union_all(whole[np.argsort(shapely.to_wkb(whole), kind="stable")])
