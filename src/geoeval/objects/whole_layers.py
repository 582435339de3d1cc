"""Whole layers: what both cover with overlaps inside a layer dissolved, and what is wrong with either by itself.

The dissolved area does not add over objects, but over connected components of overlapping polygons it does. Each
component counts in the cluster of its first member, so that the area-level figures can be redrawn by cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import NDArray

from geoeval.layers import ObjectPair, Objects
from geoeval.model import Cell, FloatArray, IntArray, ObjectArray, Proportion, Scalar
from geoeval.objects.cells import Sheet, home, ranks
from geoeval.objects.figures import missing, pooled
from geoeval.objects.pairing import inside
from geoeval.stats.tally import PER_UNIT, Tally, Totals, quanta

#: Quanta per square unit, as fine as those of lengths: boxes in coordinates from 0 to 1 are areas of 1e-4 and less.
AREA_PER_UNIT = PER_UNIT
#: What says something about neighbours or the study, not about a geometry by itself.
NOT_VALIDITY = frozenset({"overlap", "sliver", "outside-aoi", "duplicate-id"})

_AREAS = ("area_reference", "area_prediction", "area_intersection", "area_union")


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """Connected components of overlapping polygons of two layers.

    Parameters
    ----------
    component
        Component of every reference, then of every prediction (n,).
    area
        (components, 4): area of the dissolved references, of the dissolved predictions, of what both cover, of what
        either covers.
    overlapping
        How many references, and how many predictions, share area with another of their own layer.
    """

    component: IntArray
    area: FloatArray
    overlapping: tuple[int, int]


def add_dissolved(sheet: Sheet, pair: ObjectPair, absorbed: IntArray, active: NDArray[np.bool_] | None) -> None:
    """Add the areas of both layers dissolved to the clusters, as ``area_*``, and what overlaps inside a layer.

    Parameters
    ----------
    absorbed
        Predictions that ignored regions absorbed; they and the regions are left out.
    active
        Predictions at the operating point; None means all.
    """
    keep = counted(pair.prediction, pair.prediction_inside, active)
    keep[absorbed] = False
    sides = [pair.reference.take(counted(pair.reference, pair.reference_inside, None)), pair.prediction.take(keep)]
    if not len(sides[0]) + len(sides[1]):
        return
    # By stable identifier: the first member names the cluster, and unions are made in this order.
    a, b = (side.take(np.argsort(ranks(side.id), kind="stable")) for side in sides)
    found = dissolved_components(a.geometry, b.geometry)
    cluster = np.concatenate([_clusters(a), _clusters(b)])
    first = np.unique(found.component, return_index=True)[1]
    whole = np.rint(found.area * AREA_PER_UNIT)
    for name in sorted(set(cluster[first].tolist())):
        mine = whole[cluster[first] == name]
        sums = {key: quanta(part, 1) for key, part in zip(_AREAS, mine.T, strict=True)}
        sheet.add(Cell(name), Tally.of(sums, dissolved=len(mine)))
    _add_neighbours(sheet, pair, a, b, found)


def add_validity(sheet: Sheet, pair: ObjectPair) -> None:
    """Add how many features each side held and how many were valid, by reason, to the home of the unit."""
    sums: dict[str, int] = {}
    for name, side in (("reference", pair.reference), ("prediction", pair.prediction)):
        wrong = {reason: n for reason, n in side.defects.items() if reason not in NOT_VALIDITY}
        read = max(side.read, len(side))
        sums[f"read_{name}"] = read
        sums[f"valid_{name}"] = max(0, read - sum(wrong.values()))
        sums.update({f"defect_{name}@{reason}": n for reason, n in side.defects.items()})
    sheet.add(home(pair), Tally.of(sums))


def counted(side: Objects, mask: NDArray[np.bool_] | None, active: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    """Which features with a geometry count: inside, not ignored, at the operating point."""
    out = inside(side, mask) & shapely.is_geometry(side.geometry)
    if side.ignore is not None:
        out &= ~side.ignore
    return out if active is None else out & active


def area_quantities(totals: Totals) -> Mapping[str, Scalar]:
    """IoU and Dice of the dissolved layers; not applicable to subgroups of objects."""
    n = totals["dissolved"]
    if not np.any(n) and _objects(totals):
        return {name: missing(totals, "not_applicable") for name in ("area_iou", "area_dice")}
    a, b, both, either = (totals.real(name, AREA_PER_UNIT) for name in _AREAS)
    return {"area_iou": pooled(both, either, n), "area_dice": pooled(2 * both, a + b, n)}


def validity_quantities(totals: Totals) -> Mapping[str, Proportion]:
    """Share of the features of each side that were valid as read; not applicable to subgroups of objects."""
    out = {}
    for side in ("reference", "prediction"):
        n = totals[f"read_{side}"]
        elsewhere = not np.any(n) and _objects(totals)
        out[f"valid_{side}"] = Proportion(totals[f"valid_{side}"], n, reason="not_applicable" if elsewhere else None)
    return out


def defects_of(totals: Totals) -> dict[str, dict[str, int]]:
    """Faulty features by side and reason: invalid ones, slivers, and those that overlap a neighbour."""
    return {
        side: {reason: int(totals[f"defect_{side}@{reason}"][0]) for reason in totals.names(f"defect_{side}@")}
        for side in ("reference", "prediction")
    }


def dissolved_components(reference: ObjectArray, prediction: ObjectArray) -> Components:
    """Find the components and measure them; only those in which a layer overlaps itself need a union.

    Examples
    --------
    >>> found = dissolved_components(
    ...     np.array([shapely.box(0, 0, 2, 1)]), np.array([shapely.box(1, 0, 3, 1), shapely.box(9, 0, 10, 1)]))
    >>> found.component.tolist(), found.area.tolist()
    ([0, 0, 1], [[2.0, 2.0, 1.0, 3.0], [0.0, 1.0, 0.0, 1.0]])
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    from geoeval.geometry.overlap import dissolved_areas, overlaps, self_overlaps

    n = len(reference)
    size = n + len(prediction)
    across = overlaps(reference, prediction)
    within = [self_overlaps(reference), self_overlaps(prediction)]
    i = np.concatenate([across.reference, within[0].reference, within[1].reference + n])
    j = np.concatenate([across.prediction + n, within[0].prediction, within[1].prediction + n])
    graph = coo_array((np.ones(len(i), dtype=np.int8), (i, j)), shape=(size, size))
    components, label = connected_components(graph, directed=False)
    component = label.astype(np.int64)
    area = np.zeros((components, 4))
    np.add.at(area[:, 0], component[:n], shapely.area(reference))
    np.add.at(area[:, 1], component[n:], shapely.area(prediction))
    np.add.at(area[:, 2], component[across.reference], across.area)
    area[:, 3] = area[:, 0] + area[:, 1] - area[:, 2]
    tangled = np.unique(np.concatenate([component[within[0].reference], component[within[1].reference + n]]))
    order = np.argsort(component, kind="stable")
    start = np.searchsorted(component[order], np.arange(components + 1))
    for at in tangled.tolist():
        members = order[start[at] : start[at + 1]]
        area[at] = dissolved_areas(reference[members[members < n]], prediction[members[members >= n] - n])
    overlapping = [len(np.unique(np.concatenate([one.reference, one.prediction]))) for one in within]
    return Components(component, area, (overlapping[0], overlapping[1]))


def _add_neighbours(sheet: Sheet, pair: ObjectPair, a: Objects, b: Objects, found: Components) -> None:
    from geoeval.geometry.validity import slivers

    sums = {}
    for name, side, overlapping in (("reference", a, found.overlapping[0]), ("prediction", b, found.overlapping[1])):
        sums[f"defect_{name}@overlap"] = overlapping
        sums[f"defect_{name}@sliver"] = int(np.sum(slivers(side.geometry))) if len(side) else 0
    sheet.add(home(pair), Tally.of(sums))


def _clusters(side: Objects) -> ObjectArray:
    return np.full(len(side), "", dtype=object) if side.cluster is None else side.cluster


def _objects(totals: Totals) -> bool:
    return bool(np.any(totals["tp"] + totals["fp"] + totals["fn"]))
