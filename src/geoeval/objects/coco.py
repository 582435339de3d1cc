"""The twelve figures of the COCO box evaluation, as pycocotools computes them.

Ties, caps, area ranges, sentinels and the order of images are pycocotools' own; only its −1 comes out as None. Where
the default protocol differs (no cap of 100, tied scores grouped, classes without references listed) it does so on
purpose.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import shapely
from numpy.typing import NDArray

from geoeval.layers import ObjectPair
from geoeval.model import FloatArray, IntArray, ObjectArray, Unit
from geoeval.objects.flags import admissible, counted_references, first_of_each_class, flags, score_order
from geoeval.objects.pairing import Candidates, candidates, geometry_kind
from geoeval.stats.ranking import average_precision_coco

#: Area ranges in px², both ends inclusive.
AREA_RANGES: tuple[tuple[str, float, float], ...] = (
    ("all", 0.0, 1e10),
    ("small", 0.0, 32.0**2),
    ("medium", 32.0**2, 96.0**2),
    ("large", 96.0**2, 1e10),
)
CAPS = (1, 10, 100)
THRESHOLDS: FloatArray = np.linspace(0.5, 0.95, 10)

FIGURES = ("AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl")


@dataclass(slots=True, eq=False)
class _Class:
    """Flags of one class and area range, image by image, and how many references count."""

    references: int = 0
    score: list[FloatArray] = field(default_factory=list)
    position: list[IntArray] = field(default_factory=list)
    hit: list[NDArray[np.bool_]] = field(default_factory=list)
    invention: list[NDArray[np.bool_]] = field(default_factory=list)


def coco_summary(units: Iterable[Unit[ObjectPair]]) -> dict[str, float | None]:
    """AP, AP50, AP75, AP by size, AR at 1, 10 and 100 detections, AR by size; None where no class has references.

    Units are images, in the order of the reference's image ids; features are in file order (``Objects.row``), and
    references with ``ignore`` are crowds. Boxes are measured from their bounds, other polygons by their overlap.

    Parameters
    ----------
    units
        Payloads with scored predictions; labels are the categories.

    Returns
    -------
    dict
        The twelve names of :data:`FIGURES`, in pycocotools' order.

    References
    ----------
    .. [1] Lin et al. (2014), Microsoft COCO: common objects in context.

    Examples
    --------
    >>> from geoeval.layers import Objects
    >>> box = np.array([shapely.box(0, 0, 10, 10)])
    >>> side = Objects(box, np.array(["a"]), np.array([0]), np.array(["tree"]), np.array([0.9]))
    >>> coco_summary([Unit("image", lambda: ObjectPair(side, side))])["AP"]
    1.0
    """
    found: dict[tuple[str, str], _Class] = {}
    for unit in units:
        pair = unit.load()
        _add_image(unit.id, _canonical(pair), found)
    labels = sorted({label for label, name in found if name == "all"})
    precision = {
        name: _stacked([_precision(found[label, name]) for label in labels if found[label, name].references])
        for name, _, _ in AREA_RANGES
    }
    recall = {
        (name, cap): _stacked([_recall(found[label, name], cap) for label in labels if found[label, name].references])
        for name, _, _ in AREA_RANGES
        for cap in CAPS
    }
    whole = precision["all"]
    values = (
        _mean(whole),
        _mean(whole[:, 0]),
        _mean(whole[:, 5]),
        *[_mean(precision[name]) for name in ("small", "medium", "large")],
        *[_mean(recall["all", cap]) for cap in CAPS],
        *[_mean(recall[name, CAPS[-1]]) for name in ("small", "medium", "large")],
    )
    return dict(zip(FIGURES, values, strict=True))


def box_candidates(pair: ObjectPair, found: Candidates) -> Candidates:
    """Similarities of axis-aligned boxes in pycocotools' own arithmetic; other shapes keep theirs."""
    sides = (pair.reference.geometry, pair.prediction.geometry)
    if not len(found.reference) or not all(_boxes(side) for side in sides):
        return found
    a, b = (shapely.bounds(side) for side in sides)
    a, b = a[found.reference], b[found.prediction]
    width = np.minimum(a[:, 2], b[:, 2]) - np.maximum(a[:, 0], b[:, 0])
    height = np.minimum(a[:, 3], b[:, 3]) - np.maximum(a[:, 1], b[:, 1])
    shared = np.maximum(width, 0) * np.maximum(height, 0)
    of_a, of_b = ((side[:, 2] - side[:, 0]) * (side[:, 3] - side[:, 1]) for side in (a, b))
    return Candidates(found.reference, found.prediction, shared / (of_a + of_b - shared), shared / of_b)


def _boxes(geometry: ObjectArray) -> bool:
    bounds = shapely.bounds(geometry)
    area = (bounds[:, 2] - bounds[:, 0]) * (bounds[:, 3] - bounds[:, 1])
    return bool(np.all(shapely.get_num_coordinates(geometry) == 5) and np.allclose(shapely.area(geometry), area))


def _areas(geometry: ObjectArray) -> FloatArray:
    if not _boxes(geometry):
        return np.asarray(shapely.area(geometry), dtype=np.float64)
    bounds = shapely.bounds(geometry)
    return np.asarray((bounds[:, 2] - bounds[:, 0]) * (bounds[:, 3] - bounds[:, 1]), dtype=np.float64)


def _canonical(pair: ObjectPair) -> ObjectPair:
    """Both sides in file order, since that decides ties here."""
    order = [np.argsort(side.row, kind="stable") for side in (pair.reference, pair.prediction)]
    return ObjectPair(pair.reference.take(order[0]), pair.prediction.take(order[1]), pair.unit_of_length)


def _add_image(unit: str, pair: ObjectPair, found: dict[tuple[str, str], _Class]) -> None:
    side, other = pair.reference, pair.prediction
    labels = [np.full(len(one), "", dtype=object) if one.label is None else one.label for one in (side, other)]
    labelled = side.label is not None and other.label is not None
    kind = geometry_kind(unit, pair)
    pairs = candidates(pair, kind, floor=0.0, max_distance=0.0)
    pairs = box_candidates(pair, admissible(pair, pairs, labelled=labelled))
    area = (_areas(side.geometry), _areas(other.geometry))
    if other.score is None:
        score, order, kept = np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
    else:
        score, order = other.score, score_order(pair, by_row=True)
        kept = first_of_each_class(pair, CAPS[-1], labelled=labelled, by_row=True)
    for name, low, high in AREA_RANGES:
        counted = labels[0][counted_references(pair, area[0], (low, high))]
        for label in sorted({*labels[0].tolist(), *labels[1].tolist()}):
            found.setdefault((label, name), _Class()).references += int(np.sum(counted == label))
        if not len(order):
            continue
        of = flags(
            pair,
            pairs,
            thresholds=THRESHOLDS,
            kept=kept,
            by_row=True,
            area=area,
            area_range=(low, high),
        )
        ranked = order[kept[order]]
        for label in sorted(set(labels[1].tolist())):
            members = ranked[labels[1][ranked] == label]
            mine = found[label, name]
            mine.score.append(score[members])
            mine.position.append(np.arange(len(members)))
            mine.hit.append(of.hit[:, members])
            mine.invention.append(of.invention[:, members])


def _pooled(given: _Class, cap: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    if not given.score:
        none = np.zeros((len(THRESHOLDS), 0), dtype=bool)
        return none, none
    within = np.concatenate(given.position) < cap
    order = np.argsort(-np.concatenate(given.score)[within], kind="stable")
    hit = np.concatenate(given.hit, axis=1)[:, within]
    invention = np.concatenate(given.invention, axis=1)[:, within]
    return hit[:, order], invention[:, order]


def _recall(given: _Class, cap: int) -> FloatArray:
    hit, _ = _pooled(given, cap)
    return np.asarray(hit.sum(axis=1) / given.references, dtype=np.float64)


def _precision(given: _Class) -> FloatArray:
    """Average precision at each threshold (t,)."""
    hit, invention = _pooled(given, CAPS[-1])
    falling = -np.arange(hit.shape[1], dtype=np.float64)
    found = [average_precision_coco(falling, hit[t], invention[t], given.references) for t in range(len(THRESHOLDS))]
    return np.array([np.nan if one is None else one for one in found])


def _stacked(rows: list[FloatArray]) -> FloatArray:
    return np.stack(rows) if rows else np.zeros((0, len(THRESHOLDS)))


def _mean(values: FloatArray) -> float | None:
    return float(np.mean(values)) if values.size else None
