"""The gates on a split that somebody made, and for each who is involved, exactly.

Demanded      what the list can be held to: identities where it has any, hashes where it has any, a buffer unless its
              caller says that none is demanded. The rest is reported as not looked at.
Own gates     ``overlap`` (shared ground) and ``adjacency`` (cells of a grid index that touch), beside the five.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from geoeval.errors import ConfigError, nearest_spelling
from geoeval.model import IntArray, Status
from geoeval.splits.leakage import GATES, GateResult, Witness, check, worst
from geoeval.splits.links import BYTES, Shared, boxes_of, shared, text_pairs
from geoeval.splits.list_grid import Neighbourhood, adjacent
from geoeval.splits.list_pairs import MOST_PAIRS, Facts, PairTally, involved
from geoeval.splits.lists import SplitList
from geoeval.splits.record import REVEALING
from geoeval.splits.settings import CONFIRMED_RADIUS, CONFIRMING_BITS, LARGEST_RADIUS, SplitSettings
from geoeval.splits.table import SampleTable, coded

LIST_GATES: tuple[str, ...] = (*GATES, "overlap", "adjacency")


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """What a list is held to.

    Parameters
    ----------
    buffer_m
        Least distance between boxes of different splits; None where none is demanded.
    min_area_m2
        Shared ground above which two samples overlap; None does not look.
    neighbourhood
        4 or 8, for a list with a grid index.
    radius, confirmed_radius, confirming_bits, labels_in_images
        As for :class:`geoeval.splits.settings.SplitSettings`.
    unique
        A column whose different values are counted in pairs.
    require
        Gates that must pass although the list has nothing for them.
    splits
        Roles that must be there.
    pairs
        Most offending pairs that are named; counts are exact whatever it is.
    """

    buffer_m: float | None = 2000.0
    min_area_m2: float | None = None
    neighbourhood: Neighbourhood = 8
    radius: int = LARGEST_RADIUS
    confirmed_radius: int = CONFIRMED_RADIUS
    confirming_bits: int = CONFIRMING_BITS
    labels_in_images: bool = True
    unique: str | None = None
    require: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    pairs: int = 1000

    def __post_init__(self) -> None:
        for name in self.require:
            if name not in LIST_GATES:
                raise ConfigError(f"require: unknown gate {name!r}; {nearest_spelling(name, LIST_GATES)}")
        if self.min_area_m2 is not None and not 0 <= self.min_area_m2 < np.inf:
            raise ConfigError(f"min_area_m2: must be an area of 0 m² or more, got {self.min_area_m2!r}")


@dataclass(frozen=True, slots=True)
class ListGate:
    """A gate on a list: what it found, whether it counts, and who is involved; None where that was not counted."""

    result: GateResult
    demanded: bool
    facts: Facts | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ListCheck:
    """All gates of a list.

    Parameters
    ----------
    status
        The worst of the demanded gates; undecided where none is demanded.
    samples
        Split to its number of samples.
    """

    given: SplitList
    gates: tuple[ListGate, ...]
    samples: Mapping[str, int]
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def status(self) -> Status:
        """The worst of the demanded gates."""
        return worst([one.result for one in self.gates if one.demanded])

    @property
    def exit_code(self) -> int:
        """0 pass, 3 a leak, 2 not decidable."""
        return {"pass": 0, "fail": 3, "not_evaluable": 2}[self.status]


def check_list(given: SplitList, demands: Demands | None = None) -> ListCheck:
    """Hold a list to its gates.

    Examples
    --------
    >>> table = SampleTable.of(2, sample_id=["a", "b"], split=["train", "test"])
    >>> found = check_list(SplitList(table, identities=("sample_id",)))
    >>> found.status, [(one.result.id, one.result.reason) for one in found.gates if one.demanded]
    ('not_evaluable', [('identity', None), ('buffer', 'no_geometry'), ('complete', None)])
    """
    held = demands if demands is not None else Demands()
    table = given.table
    split, names = table.splits()
    unique = None if held.unique is None else coded(given.column(held.unique))[0]
    settings = SplitSettings(
        identities=given.identities,
        buffer_m=0.0 if held.buffer_m is None else held.buffer_m,
        radius=held.radius,
        confirmed_radius=max(held.radius, held.confirmed_radius),
        confirming_bits=held.confirming_bits,
        labels_in_images=held.labels_in_images,
        required=(),
        required_splits=held.splits,
        witnesses=held.pairs,
    )
    # Without a system no row has a box: the search for near boxes costs nothing where nobody demands it.
    plain = table if held.buffer_m is not None else _without_boxes(table)
    five = {gate.id: gate for gate in check(plain, settings)}
    gates = [
        _identity(given, five["identity"], settings),
        _hashes(given, five["exact_bytes"], held),
        _near(given, five["near_duplicate"], held),
    ]
    if held.buffer_m is not None:
        gates.append(_buffer(given, five["buffer"], held, unique))
    if held.min_area_m2 is not None:
        gates.append(_overlap(given, held, unique))
    if given.grid is not None:
        gates.append(_adjacency(given, held, unique))
    gates.append(ListGate(five["complete"], demanded=True))
    gates = [replace(one, demanded=one.demanded or one.result.id in held.require) for one in gates]
    notes = dict(given.notes)
    if held.buffer_m is None:
        notes["buffer"] = (
            "none demanded; distances were not looked at"
            if given.grid is None
            else "none beside the grid index; distances were not looked at (--buffer METRES demands one)"
        )
    samples = {name: int((split == at).sum()) for at, name in enumerate(names)}
    return ListCheck(given, tuple(gates), samples, notes)


def _without_boxes(table: SampleTable) -> SampleTable:
    return replace(table, texts={name: column for name, column in table.texts.items() if name != "crs"})


def _identity(given: SplitList, own: GateResult, settings: SplitSettings) -> ListGate:
    """The identity gate over contract fields and over every further group column."""
    table = given.table
    results = [replace(own, notes={})] if given.identities else []
    relations = [(name, shared(table, name)) for name in given.identities]
    for name, column in given.groups.items():
        single = replace(_without_boxes(table), texts={**_ids_and_splits(table), "group_id": column}, members={})
        gate = check(single, replace(settings, identities=("group_id",)))[0]
        results.append(_renamed(gate, name))
        relations.append((name, text_pairs(single, ("group_id",))))
    whole = _merged(results, settings.witnesses) if results else replace(own, notes={})
    compared = ", ".join(name for name, _ in relations)
    whole = replace(whole, notes={"compared": compared or "no column says what belongs together"})
    return ListGate(whole, demanded=bool(relations), facts=_value_facts(table, relations))


def _ids_and_splits(table: SampleTable) -> dict[str, Any]:
    return {name: table.texts[name] for name in ("sample_id", "split") if name in table.texts}


def _renamed(gate: GateResult, name: str) -> GateResult:
    return replace(
        gate,
        witnesses=tuple(replace(one, relation=name) for one in gate.witnesses),
        counts=dict.fromkeys([name] * len(gate.counts), gate.count),
        unknown=dict.fromkeys([name] * len(gate.unknown), sum(gate.unknown.values())),
    )


def _merged(results: Sequence[GateResult], most: int) -> GateResult:
    counts = {name: n for one in results for name, n in one.counts.items()}
    status = worst(results)
    return replace(
        results[0],
        status=status,
        reason=next((one.reason for one in results if one.status == status), None),
        count=sum(one.count for one in results),
        counts=counts,
        witnesses=tuple(pair for one in results for pair in one.witnesses)[:most],
        unknown={name: n for one in results for name, n in one.unknown.items()},
    )


def _value_facts(table: SampleTable, relations: Sequence[tuple[str, Shared]]) -> Facts:
    """Who shares a value with another split, and how many values stand in several."""
    split, names = table.splits()
    touched = np.zeros((table.n, len(names)), dtype=np.bool_)
    values: dict[str, int] = {}
    for name, found in relations:
        inside = split[found.row] >= 0
        row, value = found.row[inside], found.value[inside]
        there = np.zeros((len(found.words), len(names)), dtype=np.bool_)
        there[value, split[row]] = True
        values[name] = int((there.sum(axis=1) > 1).sum())
        for other in range(len(names)):
            touched[row[there[value, other]], other] = True
    rows = np.flatnonzero(split >= 0)
    touched[rows, split[rows]] = False
    size = np.ones(table.n, dtype=np.int64)
    return Facts(samples=involved(touched, split, names, size), values=values)


def _hashes(given: SplitList, own: GateResult, held: Demands) -> ListGate:
    table = given.table
    relations = [(name, shared(table, name)) for name in BYTES]
    there = any(name in table.texts for name in REVEALING)
    own = _sealed(own) if given.sealed else own
    facts = _value_facts(table, [one for one in relations if len(one[1].row)])
    return ListGate(own, demanded=there or "exact_bytes" in held.require, facts=facts if there else None)


def _sealed(own: GateResult) -> GateResult:
    """What was not compared cannot pass."""
    if own.status == "fail":
        return own
    notes = {**own.notes, "sealed": "hashes of challenge samples are sealed; give the key to compare them"}
    return replace(own, status="not_evaluable", reason="evidence_missing", notes=notes)


def _near(given: SplitList, own: GateResult, held: Demands) -> ListGate:
    table = given.table
    own = _sealed(own) if given.sealed else own
    read = table.labels is not None and any(one is not None for one in table.labels)
    there = bool(table.hashed.any()) or "label_geometry_hash" in table.texts or read
    facts = _named_facts(own, table) if own.count and own.count == len(own.witnesses) else None
    return ListGate(own, demanded=there or "near_duplicate" in held.require, facts=facts)


def _named_facts(
    own: GateResult, table: SampleTable, unique: IntArray | None = None, column: str | None = None
) -> Facts:
    """Who is in the pairs of a gate that names all of them."""
    split, names = table.splits()
    pairs = np.array([one.rows for one in own.witnesses], dtype=np.int64)
    tally = PairTally(split, names, keep=0, unique=unique)
    tally.add(pairs[:, 0], pairs[:, 1], np.zeros(len(pairs)))
    return tally.facts(column=column)


def _buffer(given: SplitList, own: GateResult, held: Demands, unique: IntArray | None) -> ListGate:
    """The buffer gate; its pairs are looked at again where it does not name all of them, and they fit."""
    if own.status == "fail" and own.count == len(own.witnesses):
        return ListGate(own, demanded=True, facts=_named_facts(own, given.table, unique, held.unique))
    if own.status != "fail" or own.count > MOST_PAIRS:
        return ListGate(own, demanded=True)
    from geoeval.splits.boxes import within_across

    table = given.table
    split, names = table.splits()
    rows = np.flatnonzero(table.has_box() & (split >= 0)).astype(np.int64)
    found = within_across(boxes_of(table, rows), split[rows], float(held.buffer_m or 0.0), witnesses=own.count)
    tally = PairTally(split, names, keep=0, unique=unique)
    tally.add(rows[found.i], rows[found.j], found.distance)
    return ListGate(own, demanded=True, facts=tally.facts(column=held.unique))


def _overlap(given: SplitList, held: Demands, unique: IntArray | None) -> ListGate:
    from geoeval.splits.list_overlap import ground, overlapping

    split, names = given.table.splits()
    lacking = int((~given.table.has_box()).sum())
    unknown = {"bbox": lacking} if lacking else {}
    place = ground(given)
    if place is None:
        return ListGate(GateResult("overlap", "not_evaluable", "no_geometry", 0, unknown=unknown), demanded=True)
    area = float(held.min_area_m2 or 0.0)
    found = overlapping(place, split, names, area, keep=held.pairs, unique=unique)
    notes = {"min_area_m2": f"{area:g}", "measured_in": place.system}
    if given.shapes is not None:
        notes["shapes"] = "geometries as given, not their boxes"
    pairs = [_witness(given.table, "overlap", i, j, {"area_m2": round(-measure, 3)}) for i, j, measure in found.first()]
    result = _decided("overlap", "boxes_overlap", found, pairs, names, unknown, notes)
    if result.status == "pass" and lacking:
        result = replace(result, status="not_evaluable", reason="no_geometry")
    return ListGate(result, demanded=True, facts=found.facts(column=held.unique, inside=True))


def _adjacency(given: SplitList, held: Demands, unique: IntArray | None) -> ListGate:
    split, names = given.table.splits()
    grid = np.zeros((0, 3), dtype=np.int64) if given.grid is None else given.grid
    found, first = adjacent(grid, split, names, held.neighbourhood, keep=held.pairs, unique=unique)
    pairs = []
    for i, j, _ in found.first():
        a, b = sorted((int(first[i]), int(first[j])))
        pairs.append(_witness(given.table, "grid_index", a, b, {"cells": [grid[a, 1:].tolist(), grid[b, 1:].tolist()]}))
    notes = {"neighbourhood": f"{held.neighbourhood} cells around, and the cell itself"}
    return ListGate(
        _decided("adjacency", "adjacent_cells", found, pairs, names, {}, notes),
        demanded=True,
        facts=found.facts(column=held.unique),
    )


def _witness(table: SampleTable, relation: str, i: int, j: int, evidence: Mapping[str, Any]) -> Witness:
    first, second = table.ids((i, j))
    splits = (table.text("split", i) or "", table.text("split", j) or "")
    return Witness(relation, first, second, *splits, (i, j), evidence)


def _decided(
    gate: str,
    reason: str,
    found: PairTally,
    pairs: Sequence[Witness],
    names: tuple[str, ...],
    unknown: Mapping[str, int],
    notes: Mapping[str, str],
) -> GateResult:
    relation = "grid_index" if gate == "adjacency" else gate
    counts = {relation: found.count}
    if found.count:
        return GateResult(gate, "fail", reason, found.count, tuple(pairs), counts, unknown, notes)
    if len(names) < 2:
        return GateResult(gate, "not_evaluable", "evidence_missing", 0, (), counts, unknown, notes)
    return GateResult(gate, "pass", None, 0, (), counts, unknown, notes)
