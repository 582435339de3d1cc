"""A split for people who have points or tiles and nothing else: compact groups, and a buffer between the splits.

Groups     blocks of one side, or clusters of near samples; each goes to one split whole, near the wanted shares.
Buffer     samples within its reach of a more protected split are set aside, and that price is named.
Check      what is proposed is held to the buffer gate before anybody sees it.
Order      rows are sorted by place first: the same samples in another order get the same splits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from geoeval.errors import ConfigError, InputError, LeakageError
from geoeval.evidence.canonical import digest
from geoeval.model import FloatArray, IntArray, ObjectArray
from geoeval.splits.assign import assign
from geoeval.splits.box_curves import geocentric
from geoeval.splits.boxes import too_close_m
from geoeval.splits.components import Components, block_links
from geoeval.splits.leakage import GateResult, check
from geoeval.splits.links import boxes_of
from geoeval.splits.quarantine import quarantined
from geoeval.splits.record import ALIASES, DEVELOPMENT, PROTECTED, QUARANTINE
from geoeval.splits.settings import SplitSettings
from geoeval.splits.table import SampleTable

#: What stands in the split column of a sample that was set aside.
SET_ASIDE = QUARANTINE
SHARES: Mapping[str, float] = {"train": 0.7, "test": 0.3}

#: Sides of blocks that are tried where none was given, in buffers; the first with enough blocks is taken.
_SIDES = (20.0, 10.0, 5.0, 3.0, 2.0)
_LEAST_BLOCKS = 10
_ROUNDS = 100


@dataclass(frozen=True, slots=True)
class Proposal:
    """Splits with a buffer between them, in the order of the rows that were given.

    Parameters
    ----------
    split
        (n,) role of each sample, or :data:`SET_ASIDE`.
    group
        (n,) name of the block or cluster of each sample.
    groups
        How many blocks or clusters there are.
    side_m
        Side of the blocks; None for clusters.
    before, cost
        Role to its samples before any was set aside, and how many were.
    gates
        What the gates say about the proposal; ``buffer`` passes.
    """

    split: tuple[str, ...]
    group: tuple[str, ...]
    groups: int
    side_m: float | None
    shares: Mapping[str, float]
    buffer_m: float
    before: Mapping[str, int]
    cost: Mapping[str, int]
    gates: tuple[GateResult, ...]

    @property
    def set_aside(self) -> int:
        """How many samples the buffer costs."""
        return sum(self.cost.values())


def propose(
    bounds: FloatArray,
    crs: str | Sequence[str],
    *,
    buffer_m: float,
    side_m: float | None = None,
    clusters: int | None = None,
    shares: Mapping[str, float] | None = None,
) -> Proposal:
    """Propose a split.

    Parameters
    ----------
    bounds
        (n, 4) least x, least y, most x, most y of each sample; a point is a box of no size.
    crs
        Their system, or one a sample.
    buffer_m
        Least distance between samples of different splits, geodesic.
    side_m
        Side of the blocks. Without it and without ``clusters``, the largest of 20, 10, 5, 3 and 2 buffers that gives
        at least 10 blocks.
    clusters
        How many clusters of near samples to make instead of blocks.
    shares
        Role to share, adding up to 1.

    Raises
    ------
    ConfigError
        Settings that exclude each other, or do not hold.
    InputError
        A sample has no place, or there are too few groups for the splits.

    Examples
    --------
    >>> x = np.arange(5.0, 6.0, 0.01)
    >>> found = propose(np.stack([x, 0 * x, x, 0 * x], axis=1), "EPSG:4326", buffer_m=1500.0, side_m=11_200.0)
    >>> sorted(set(found.split)), found.groups, dict(found.before), found.set_aside
    (['quarantine', 'test', 'train'], 11, {'train': 70, 'test': 30}, 6)
    """
    if side_m is not None and clusters is not None:
        raise ConfigError("blocks and clusters exclude each other; give one of them")
    given = {ALIASES.get(role, role): share for role, share in (shares or SHARES).items()}
    settings = SplitSettings(
        shares=given, buffer_m=buffer_m, buffer_mode="quarantine", block_m=side_m, required=(), required_splits=()
    )
    box = np.asarray(bounds, dtype=np.float64).reshape(-1, 4)
    systems = np.full(len(box), crs, dtype=np.object_) if isinstance(crs, str) else np.array(crs, dtype=np.object_)
    order = _order(box, systems)
    table = _table(box[order], systems[order])
    at = centres(table)
    if clusters is not None:
        label, side = _clusters(at, clusters), None
    else:
        label, side = _blocks(table, at, settings)
    roles, before, cost = _with_buffer(table, at, label, settings)
    gates = check(table.with_splits(roles), settings)
    _require_buffer(gates)
    back = np.argsort(order, kind="stable")
    word = "cluster" if side is None else "block"
    return Proposal(
        split=tuple(roles[k] for k in back),
        group=tuple(f"{word}-{label[k] + 1}" for k in back),
        groups=int(label.max()) + 1,
        side_m=side,
        shares={role: given[role] for role in settings.roles},
        buffer_m=buffer_m,
        before=before,
        cost=cost,
        gates=gates,
    )


def _order(box: FloatArray, systems: ObjectArray) -> IntArray:
    """Rows by place; a row without one is refused."""
    bad = ~np.isfinite(box).all(axis=1) | np.array([not one or one == "pixel" for one in systems], dtype=np.bool_)
    if not len(box) or bad.any():
        first = f"; first row {int(np.flatnonzero(bad)[0]) + 1}" if len(box) else ""
        raise InputError(
            f"expected samples with a place on Earth, found {int(bad.sum())} of {len(box)} without one{first}; "
            "leave them out, or declare the system of their coordinates"
        )
    names = {name: at for at, name in enumerate(sorted(set(systems.tolist())))}
    number = np.array([names[one] for one in systems], dtype=np.int64)
    return np.lexsort((number, *box.T[::-1])).astype(np.int64)


def _table(box: FloatArray, systems: ObjectArray) -> SampleTable:
    names = [f"sample {at:09d}" for at in range(len(box))]
    return SampleTable.of(len(box), sample_id=names, bounds=box, crs=systems.tolist())


def centres(table: SampleTable) -> FloatArray:
    """(n, 3) geocentric positions of the centres of all boxes, in metres."""
    west, width, south, north = boxes_of(table, np.arange(table.n, dtype=np.int64)).frame.T
    # A micrometre, so that the last bit of a projection cannot move a sample from one group to another.
    return np.asarray(np.round(geocentric(west + width / 2, (south + north) / 2), 6))


def places_of(bounds: FloatArray, crs: Sequence[str]) -> FloatArray:
    """(n, 3) geocentric centres of samples in their own order; see :func:`centres`.

    Examples
    --------
    >>> places_of(np.array([[0.0, 0.0, 0.0, 0.0]]), ["EPSG:4326"]).tolist()
    [[6378137.0, 0.0, 0.0]]
    """
    return centres(_table(np.asarray(bounds, dtype=np.float64), np.array(crs, dtype=np.object_)))


def _blocks(table: SampleTable, at: FloatArray, settings: SplitSettings) -> tuple[IntArray, float]:
    if settings.block_m is not None:
        sides: tuple[float, ...] = (settings.block_m,)
    elif settings.buffer_m > 0:
        sides = tuple(times * settings.buffer_m for times in _SIDES)
    else:
        sides = (float(f"{max(float(np.linalg.norm(np.ptp(at, axis=0))) / 14, 1.0):.1g}"),)
    for side in sides:
        label = block_links(table, side)[1]
        if label.max() + 1 >= max(_LEAST_BLOCKS, 2 * len(settings.roles)):
            break
    return label, side


def _clusters(at: FloatArray, k: int) -> IntArray:
    """(n,) cluster of each sample: k-means from well spread first centres, numbered by first sample."""
    from scipy.spatial import KDTree

    places = len(np.unique(at, axis=0))
    if not 2 <= k <= places:
        raise ConfigError(f"clusters: must lie between 2 and the number of places, {places}, got {k}")
    middle = _spread(at, k)
    label = np.zeros(len(at), dtype=np.int64)
    for _ in range(_ROUNDS):
        fresh = np.asarray(KDTree(middle).query(at)[1], dtype=np.int64)
        if (fresh == label).all():
            break
        label = fresh
        count = np.bincount(label, minlength=k)
        sums = np.stack([np.bincount(label, axis, minlength=k) for axis in at.T], axis=1)
        # Rounded, so that a tie between two centres falls the same way everywhere. An empty cluster keeps its centre.
        middle = np.where(count[:, None] > 0, np.round(sums / np.maximum(count, 1)[:, None], 6), middle)
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.int64)
    number[np.argsort(first, kind="stable")] = np.arange(len(first))
    return number[inverse.reshape(-1)]


def _spread(at: FloatArray, k: int) -> FloatArray:
    """First centres: each next one is drawn by its squared distance from those that there are (k-means++)."""
    draw = np.random.Generator(np.random.PCG64(0))
    chosen = [int(draw.random() * len(at))]
    nearest = np.full(len(at), np.inf)
    while len(chosen) < k:
        nearest = np.minimum(nearest, np.round(((at - at[chosen[-1]]) ** 2).sum(axis=1), 3))
        mass = np.cumsum(nearest)
        chosen.append(min(int(np.searchsorted(mass, draw.random() * mass[-1], side="right")), len(at) - 1))
    return at[chosen]


def _with_buffer(
    table: SampleTable, at: FloatArray, label: IntArray, settings: SplitSettings
) -> tuple[list[str], dict[str, int], dict[str, int]]:
    """Roles with the samples in the buffer set aside, and how many samples each role had and lost."""
    groups = Components(label, np.bincount(label).astype(np.int64), ())
    seed = digest(at.astype("<f8").tobytes())
    assigned = assign(table, groups, settings, seed)
    if assigned.empty:
        raise InputError(
            f"{len(groups.sizes)} groups are too few for {len(settings.roles)} splits: {', '.join(assigned.empty)} "
            "would be empty; make the blocks smaller, or the clusters more"
        )
    held = _set_aside(table, at, assigned.split, settings.buffer_m)
    before = {role: assigned.split.count(role) for role in settings.roles}
    cost = {role: before[role] - held.count(role) for role in settings.roles}
    gone = [role for role in settings.roles if cost[role] == before[role]]
    if gone:
        raise InputError(
            f"a buffer of {settings.buffer_m:g} m leaves nothing of {', '.join(gone)} "
            f"({sum(cost.values())} of {table.n} samples would be set aside); make it smaller, or the blocks larger"
        )
    return held, before, cost


def _set_aside(table: SampleTable, at: FloatArray, split: Sequence[str], buffer_m: float) -> list[str]:
    """Roles, with the less protected side of every pair within the buffer set aside."""
    flat = (table.bounds[:, 0] == table.bounds[:, 2]) & (table.bounds[:, 1] == table.bounds[:, 3])
    if not flat.all():
        return list(quarantined(table, split, buffer_m).split)
    from scipy.spatial import KDTree

    # Between points a chord is never longer than the geodesic, so whoever is too close is found; no pair is listed.
    levels = (*DEVELOPMENT, *PROTECTED)
    level = np.array([levels.index(one) for one in split], dtype=np.int64)
    stays = np.ones(len(level), dtype=np.bool_)
    limit = math.nextafter(too_close_m(buffer_m) + 1e-5, math.inf)
    for role in range(len(levels) - 1, 0, -1):
        own, lower = np.flatnonzero(stays & (level == role)), np.flatnonzero(stays & (level < role))
        if len(own) and len(lower):
            near = KDTree(at[own]).query(at[lower], distance_upper_bound=limit)[0]
            stays[lower[np.isfinite(near)]] = False
    return [one if stay else SET_ASIDE for one, stay in zip(split, stays.tolist(), strict=True)]


def _require_buffer(gates: Sequence[GateResult]) -> None:
    gate = next(one for one in gates if one.id == "buffer")
    if gate.status != "pass":
        raise LeakageError(
            f"the proposal does not pass its own buffer gate: {gate.status} ({gate.reason}), {gate.count} pairs; "
            "please report this with the list of samples"
        )


def described(found: Proposal) -> dict[str, Any]:
    """The proposal as plain values, without its rows."""
    n = len(found.split)
    return {
        "samples": n,
        "groups": found.groups,
        "side_m": found.side_m,
        "buffer_m": found.buffer_m,
        "set_aside": found.set_aside,
        "set_aside_share": round(found.set_aside / n, 6),
        "splits": {
            role: {
                "wanted_share": share,
                "before": found.before[role],
                "set_aside": found.cost[role],
                "samples": found.before[role] - found.cost[role],
            }
            for role, share in found.shares.items()
        },
        "gates": {one.id: {"status": one.status, "reason": one.reason, "count": one.count} for one in found.gates},
    }
