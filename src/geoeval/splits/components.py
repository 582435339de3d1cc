"""Which samples must stay together: connected components over every relation at once.

Each relation is a two-sided graph of samples and what they share, so that ten thousand samples of one raster cost ten
thousand edges and not fifty million pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from geoeval.model import IntArray
from geoeval.splits.links import BYTES, box_links, perceptual_links, shared
from geoeval.splits.near import label_links
from geoeval.splits.settings import SplitSettings
from geoeval.splits.table import SampleTable


class Relation(NamedTuple):
    """One relation: (links,) rows, and the number of what each row shares through it."""

    name: str
    row: IntArray
    group: IntArray


@dataclass(frozen=True, slots=True)
class RelationReport:
    """What one relation does to the components.

    Parameters
    ----------
    links
        How many pairs of sample and shared thing it has.
    alone
        Samples in the largest component that this relation makes by itself.
    without
        Samples in the largest component of all other relations together.
    """

    relation: str
    links: int
    alone: int
    without: int


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """Components of a table.

    Parameters
    ----------
    label
        (n,) number of each sample's component; numbers follow the first sample id of each component.
    sizes
        (components,) samples in each.
    relations
        What each relation does, in their order.
    """

    label: IntArray
    sizes: IntArray
    relations: tuple[RelationReport, ...]

    @property
    def largest(self) -> int:
        """Samples in the largest component; 0 where there is no sample."""
        return int(self.sizes.max()) if len(self.sizes) else 0

    @property
    def maker(self) -> str | None:
        """The relation without which the largest component would shrink most; None where no single one matters."""
        if not self.relations:
            return None
        first = min(self.relations, key=lambda one: (one.without, -one.alone))
        if first.without < self.largest:
            return first.relation
        return max(self.relations, key=lambda one: one.alone).relation if self.largest > 1 else None


def relations_of(table: SampleTable, settings: SplitSettings) -> list[Relation]:
    """Every relation that links samples under these settings; in quarantine mode blocks stand in for the distance."""
    out = [Relation(name, *shared(table, name)[:2]) for name in (*settings.identities, *BYTES, "label_geometry_hash")]
    out.append(Relation("perceptual_hash", *perceptual_links(table, settings)))
    out.append(Relation("label_set", *label_links(table, settings)))
    if settings.block is None:
        out.append(Relation("distance", *box_links(table, settings.buffer_m)))
    else:
        out.append(Relation("block", *block_links(table, settings.block)))
    return out


def components(table: SampleTable, settings: SplitSettings) -> Components:
    """Connected components of a table, and what each relation adds to them.

    Examples
    --------
    >>> rasters = ["p", "p", None]
    >>> table = SampleTable.of(3, sample_id=["a", "b", "c"], group_id=["g", None, "h"], parent_raster_id=rasters)
    >>> found = components(table, SplitSettings())
    >>> found.label.tolist(), found.largest, found.maker
    ([0, 0, 1], 2, 'parent_raster_id')
    """
    found = relations_of(table, settings)
    label = joined_label(table.n, found)
    sizes = np.bincount(label).astype(np.int64) if table.n else np.zeros(0, dtype=np.int64)
    reports = []
    linking = [one for one in found if _links_something(one)]
    for one in found:
        if one not in linking:
            reports.append(RelationReport(one.name, len(one.row), min(table.n, 1), int(sizes.max(initial=0))))
            continue
        alone = _largest(joined_label(table.n, [one]))
        without = _largest(joined_label(table.n, [other for other in linking if other is not one]))
        reports.append(RelationReport(one.name, len(one.row), alone, without))
    return Components(label, sizes, tuple(reports))


def _links_something(relation: Relation) -> bool:
    return bool(len(relation.group)) and int(np.bincount(relation.group).max()) > 1


def joined_label(n: int, found: Sequence[Relation]) -> IntArray:
    """(n,) component of each row, numbered by first row."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows, things, offset = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], n
    for one in found:
        if len(one.row):
            rows.append(one.row)
            things.append(one.group + offset)
            offset += int(one.group.max()) + 1
    row, thing = np.concatenate(rows), np.concatenate(things)
    graph = coo_array((np.ones(len(row), dtype=np.int8), (row, thing)), shape=(offset, offset))
    label = np.asarray(connected_components(graph, directed=False)[1][:n], dtype=np.int64)
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.int64)
    number[np.argsort(first, kind="stable")] = np.arange(len(first))
    return number[inverse.reshape(-1)]


def _largest(label: IntArray) -> int:
    return int(np.bincount(label).max()) if len(label) else 0


def block_links(table: SampleTable, side_m: float) -> tuple[IntArray, IntArray]:
    """Rows with a box, and the block that its centre lies in.

    Blocks are bands of latitude, each cut into equal steps of longitude of about ``side_m``; they only have to be
    compact and the same for everybody, because distances are checked afterwards.
    """
    from geoeval.splits.links import boxes_of

    rows = np.flatnonzero(table.has_box()).astype(np.int64)
    if not len(rows):
        return rows, rows
    boxes = boxes_of(table, rows)
    band_m = 111_195.0
    west, width, south, north = boxes.frame.T
    latitude = (south + north) / 2
    longitude = np.mod(west + width / 2 + 180.0, 360.0)
    band = np.floor(np.round((latitude + 90.0) * band_m / side_m, 9)).astype(np.int64)
    middle = np.radians((band + 0.5) * side_m / band_m - 90.0)
    steps = np.maximum(1, np.floor(360.0 * band_m * np.maximum(np.cos(middle), 0.0) / side_m)).astype(np.int64)
    step = np.minimum(np.floor(np.round(longitude / 360.0 * steps, 9)).astype(np.int64), steps - 1)
    _, block = np.unique(np.stack([band, step], axis=1), axis=0, return_inverse=True)
    return rows, block.reshape(-1).astype(np.int64)
