"""Five gates between the splits, each recomputed from the samples and not from what a builder believed.

Counts are exact, whatever is linked to whatever; a pair that shares two values counts once for each. Witnesses are the
first pairs in a fixed order, as many as the settings allow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from geoeval.model import IntArray, Status
from geoeval.splits.across import Across
from geoeval.splits.links import (
    BYTES,
    Shared,
    boxes_of,
    empty_labels,
    few_features,
    near_images,
    recipes,
    shared,
    silent_rows,
)
from geoeval.splits.near import label_across
from geoeval.splits.record import QUARANTINE
from geoeval.splits.settings import SplitSettings
from geoeval.splits.table import Mask, SampleTable, joined

GATES: tuple[str, ...] = ("identity", "exact_bytes", "near_duplicate", "buffer", "complete")

#: How many samples a note of the last gate names.
_FIRST = 5

#: Why a gate failed: one word a gate, and the last gate has two.
FAILURES: Mapping[str, str] = {
    "identity": "shared_identity",
    "exact_bytes": "same_bytes",
    "near_duplicate": "near_duplicate",
    "buffer": "closer_than_buffer",
}


@dataclass(frozen=True, slots=True)
class Witness:
    """An offending pair.

    Parameters
    ----------
    relation
        What links the two: a field, ``perceptual_hash``, ``label_set`` or ``distance``.
    first, second
        Their sample ids, and ``first_split``, ``second_split`` their splits.
    rows
        Where they stand in the table that was checked, for whoever draws them.
    evidence
        The shared value (``value``), or ``bits``, ``similarity`` or ``metres``.
    """

    relation: str
    first: str
    second: str
    first_split: str
    second_split: str
    rows: tuple[int, int]
    evidence: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GateResult:
    """What one gate found.

    Parameters
    ----------
    id
        One of :data:`GATES`.
    reason
        Why it failed (:data:`FAILURES`, ``split_missing``, ``record_invalid``) or could not be decided.
    count
        Offending pairs, exactly; for ``complete``, missing splits and records that could not be validated.
    counts
        The same by relation.
    unknown
        Samples that say nothing in a field: these link nothing and are listed here.
    notes
        What else a reader must know: exempt samples, fields that were left out.
    """

    id: str
    status: Status
    reason: str | None
    count: int
    witnesses: tuple[Witness, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class _Checked:
    """The samples that are in a split, and which."""

    table: SampleTable
    split: IntArray
    names: tuple[str, ...]
    settings: SplitSettings


def check(tables: SampleTable | Sequence[SampleTable], settings: SplitSettings | None = None) -> tuple[GateResult, ...]:
    """Hold splits to the five gates.

    Parameters
    ----------
    tables
        One table with a split column, or several.
    settings
        Buffer, radius, fields, demanded splits; the defaults demand no particular split and no field.

    Returns
    -------
    tuple of GateResult
        One a gate, in the order of :data:`GATES`.

    Examples
    --------
    >>> table = SampleTable.of(2, sample_id=["a", "b"], split=["train", "test"], group_id=["quad-7", "quad-7"])
    >>> [(gate.id, gate.status, gate.reason) for gate in check(table)][:2]
    [('identity', 'fail', 'shared_identity'), ('exact_bytes', 'not_evaluable', 'evidence_missing')]
    """
    held = settings if settings is not None else SplitSettings(required=(), required_splits=())
    whole = tables if isinstance(tables, SampleTable) else joined(tables)
    split, names = whole.splits()
    inside = np.flatnonzero(split >= 0).astype(np.int64)
    seen = _Checked(whole, split, names, held)
    if len(inside) < whole.n:
        seen = _Checked(whole.take(inside), split[inside], names, held)
    gates = (_identity(seen), _exact_bytes(seen), _near_duplicate(seen), _buffer(seen), _complete(whole, held))
    if len(inside) == whole.n:
        return gates
    return tuple(_replaced(gate, inside) for gate in gates)


def worst(gates: Sequence[GateResult]) -> Status:
    """The worst status: a failure, else what could not be decided, else a pass; no gate at all is undecided.

    Examples
    --------
    >>> worst([GateResult("buffer", "not_evaluable", "no_geometry", 0), GateResult("identity", "pass", None, 0)])
    'not_evaluable'
    """
    found = {gate.status for gate in gates}
    if "fail" in found:
        return "fail"
    return "not_evaluable" if "not_evaluable" in found or not found else "pass"


def _replaced(gate: GateResult, rows: IntArray) -> GateResult:
    """The same gate, its witnesses' rows counted in the whole table."""
    moved = tuple(replace(one, rows=(int(rows[one.rows[0]]), int(rows[one.rows[1]]))) for one in gate.witnesses)
    return replace(gate, witnesses=moved)


def _identity(seen: _Checked) -> GateResult:
    from geoeval.splits.record import IDENTITIES, MEMBERS

    left_out = [name for name in (*IDENTITIES, *MEMBERS) if name not in seen.settings.identities]
    notes = {"left_out": ", ".join(left_out)} if left_out else {}
    return _by_value("identity", seen, seen.settings.identities, notes)


def _exact_bytes(seen: _Checked) -> GateResult:
    empty = len(empty_labels(seen.table)) if "label_geometry_hash" in seen.table.texts else 0
    notes = {"empty_labels": f"{empty} labels hold no feature and link nothing"} if empty else {}
    return _by_value("exact_bytes", seen, tuple(BYTES), notes)


def _by_value(gate: str, seen: _Checked, relations: Sequence[str], notes: Mapping[str, str]) -> GateResult:
    counts: dict[str, int] = {}
    unknown: dict[str, int] = {}
    witnesses: list[Witness] = []
    for name in relations:
        found = shared(seen.table, name)
        told = np.zeros(seen.table.n, dtype=np.bool_)
        told[found.row] = True
        blank = int((~told).sum())
        if blank:
            unknown[name] = blank
        if not len(found.row):
            continue
        counts[name] = pairs_across(found, seen.split)
        room = seen.settings.witnesses - len(witnesses)
        if counts[name] and room > 0:
            witnesses += _value_witnesses(name, found, seen, room)
    return _result(gate, seen, counts, witnesses, unknown, notes)


def pairs_across(found: Shared, split: IntArray) -> int:
    """How many pairs of different splits share a value, summed over values.

    Examples
    --------
    >>> found = Shared(np.array([0, 1, 2]), np.array([0, 0, 0]), ["quad-7"])
    >>> pairs_across(found, np.array([0, 0, 1]))
    2
    """
    splits = int(split.max(initial=0)) + 1
    per_value = np.bincount(found.value)
    several = per_value[found.value] > 1
    per_value = per_value[per_value > 1]
    _, per_split = np.unique(found.value[several] * splits + split[found.row[several]], return_counts=True)
    squares = sum(int(one) for one in np.square(per_value.astype(np.int64)))
    return (squares - sum(int(one) for one in np.square(per_split.astype(np.int64)))) // 2


def _value_witnesses(name: str, found: Shared, seen: _Checked, room: int) -> list[Witness]:
    """The first pairs by value, then by row."""
    out: list[Witness] = []
    splits = len(seen.names)
    key = np.unique(found.value * splits + seen.split[found.row])
    values, times = np.unique(key // splits, return_counts=True)
    for value in values[times > 1].tolist():
        a, b = np.searchsorted(found.value, [value, value + 1])
        for i, j in _row_pairs(found.row[a:b], seen.split):
            out.append(_witness(name, i, j, seen, {"value": found.words[value]}))
            if len(out) == room:
                return out
    return out


def _row_pairs(rows: IntArray, split: IntArray) -> Iterator[tuple[int, int]]:
    where = split[rows]
    for at in range(len(rows)):
        for other in np.flatnonzero(where[at + 1 :] != where[at]).tolist():
            yield int(rows[at]), int(rows[at + 1 + other])


def _witness(name: str, i: int, j: int, seen: _Checked, evidence: Mapping[str, Any]) -> Witness:
    first, second = seen.table.ids((i, j))
    return Witness(
        name, first, second, seen.names[seen.split[i]], seen.names[seen.split[j]], (int(i), int(j)), evidence
    )


def _near_duplicate(seen: _Checked) -> GateResult:
    table, settings = seen.table, seen.settings
    counts: dict[str, int] = {}
    unknown: dict[str, int] = {}
    witnesses: list[Witness] = []
    notes: dict[str, str] = {}
    rows = np.flatnonzero(table.hashed).astype(np.int64)
    if len(rows) < table.n:
        unknown["perceptual_hash"] = table.n - len(rows)
    if table.flat:
        notes["flat_images"] = f"{len(table.flat)} images are too flat to be compared, first {table.flat[0]!r}"
    mixed = recipes(table) if len(recipes(table)) > 1 else []
    if mixed:
        notes["recipes"] = ", ".join(one or "none declared" for one in mixed)
    elif len(rows):
        from geoeval.splits.hamming import hamming_across

        codes, near = near_images(table, rows, settings)
        split = seen.split[rows]
        found = hamming_across(codes, split, settings.radius, witnesses=settings.witnesses, **near)
        counts["perceptual_hash"] = found.count
        notes |= _accidents(table.confirmed[rows], table.looks[rows], settings)
        witnesses += _near_witnesses("perceptual_hash", found, rows, seen, "bits")
    same = shared(table, "label_geometry_hash")
    if len(same.row):
        counts["label_geometry_hash"] = pairs_across(same, seen.split)
        witnesses += _value_witnesses("label_geometry_hash", same, seen, settings.witnesses)
    labelled, alike = label_across(table, seen.split, settings)
    if alike is not None:
        counts["label_set"] = alike.count
        witnesses += _near_witnesses("label_set", alike, labelled, seen, "similarity")
    few = few_features(table)
    few[empty_labels(table)] = False
    if few.any():
        notes["few_features"] = (
            f"{int(few.sum())} label sets are masks or have fewer than 3 features and are compared by equality alone"
        )
    result = _result("near_duplicate", seen, counts, witnesses[: settings.witnesses], unknown, notes)
    return replace(result, status="not_evaluable", reason="evidence_mismatch") if mixed and not result.count else result


def _accidents(confirmed: Mask, looks: IntArray, settings: SplitSettings) -> dict[str, str]:
    """How many pairs of unrelated images to expect, and how far a second hash was there to confirm."""
    from geoeval.splits.hamming import accidental_pairs

    n, unsure = len(looks), int((~confirmed).sum())
    alone, wide = settings.radius, settings.confirmed_radius
    several = f" in {int(looks.sum())} looks" if looks.sum() > n else ""
    expected = f"{accidental_pairs(int(looks.sum()), alone):.3g} expected among {n} unrelated images{several}"
    expected += f" at {alone} bits"
    if confirmed.any() and wide > alone:
        more = accidental_pairs(int(looks[confirmed].sum()), wide, confirmed=True)
        expected += f", {more:.3g} at {wide} bits that a second hash confirms"
    notes = {"accidental_pairs": expected}
    if unsure and wide > alone:
        notes["unconfirmed"] = f"{unsure} images have no second hash and are held to {alone} bits"
    return notes


def _near_witnesses(name: str, found: Across, rows: IntArray, seen: _Checked, unit: str) -> list[Witness]:
    out = []
    for i, j, distance in zip(found.i.tolist(), found.j.tolist(), found.distance.tolist(), strict=True):
        value = int(distance) if unit == "bits" else round(1 - distance if unit == "similarity" else distance, 6)
        out.append(_witness(name, int(rows[i]), int(rows[j]), seen, {unit: value}))
    return out


def _buffer(seen: _Checked) -> GateResult:
    table, settings = seen.table, seen.settings
    rows = np.flatnonzero(table.has_box()).astype(np.int64)
    lacking = table.n - len(rows)
    unknown = {"bbox": lacking} if lacking else {}
    if not len(rows):
        reason = "no_geometry" if table.n else "evidence_missing"
        return GateResult("buffer", "not_evaluable", reason, 0, unknown=unknown)
    from geoeval.splits.boxes import within_across

    boxes = boxes_of(table, rows)
    found = within_across(boxes, seen.split[rows], settings.buffer_m, witnesses=settings.witnesses)
    counts = {"distance": found.count}
    notes = {"buffer_m": f"{settings.buffer_m:g}"}
    witnesses = _near_witnesses("distance", found, rows, seen, "metres")
    result = _result("buffer", seen, counts, witnesses, unknown, notes)
    if result.status == "pass" and lacking:
        return GateResult("buffer", "not_evaluable", "no_geometry", 0, (), counts, unknown, notes)
    return result


def _result(
    gate: str,
    seen: _Checked,
    counts: Mapping[str, int],
    witnesses: Sequence[Witness],
    unknown: Mapping[str, int],
    notes: Mapping[str, str],
) -> GateResult:
    """A failure where anything was found; undecided where there was nothing to compare; else a pass."""
    count = sum(counts.values())
    if count:
        return GateResult(gate, "fail", FAILURES[gate], count, tuple(witnesses), counts, unknown, notes)
    if not counts or len(seen.names) < 2:
        return GateResult(gate, "not_evaluable", "evidence_missing", 0, (), counts, unknown, notes)
    return GateResult(gate, "pass", None, 0, (), counts, unknown, notes)


def _complete(table: SampleTable, settings: SplitSettings) -> GateResult:
    split, names = table.splits()
    missing = [role for role in settings.demanded if role not in names]
    quarantined = 0
    if "split" in table.texts:
        import pyarrow.compute as pc

        quarantined = int(pc.sum(pc.equal(table.texts["split"], QUARANTINE)).as_py() or 0)
    homeless = int((split < 0).sum()) - quarantined
    silent = silent_rows(table, settings.required)
    lacking = {name: len(rows) for name, rows in silent.items()}
    # Samples none of which is in a split are no split that is incomplete, but none at all.
    nowhere = bool(homeless) and not (names or missing or table.invalid or lacking)
    stray = 0 if nowhere else homeless
    counts = {"split_missing": len(missing), "record_invalid": len(table.invalid) + stray + sum(lacking.values())}
    notes = dict.fromkeys(missing, "this split has no sample")
    notes |= {one.record: one.says for one in table.invalid[: settings.witnesses]}
    split_of, id_of = table.splits()[0], table.codes("sample_id")
    twins = table.n - len(np.unique(np.stack([split_of, id_of], axis=1), axis=0))
    if twins:
        notes["sample_id"] = f"{twins} samples have the id of another one of their split"
    if homeless:
        notes["split"] = (
            f"none of {homeless} samples is in a split; name the split of each, or let split build choose it"
            if nowhere
            else f"{homeless} samples are in no split"
        )
    notes |= {name: _said_nothing(table, rows) for name, rows in silent.items()}
    reason = "split_missing" if missing else "record_invalid" if counts["record_invalid"] else None
    status: Status = "fail" if reason else "pass" if names else "not_evaluable"
    return GateResult(
        "complete",
        status,
        reason if names or reason else "evidence_missing",
        sum(counts.values()),
        (),
        counts,
        lacking,
        notes,
    )


def _said_nothing(table: SampleTable, rows: IntArray) -> str:
    """How many samples leave a required field open, and the first of them by id."""
    first = ", ".join(repr(one) for one in table.ids(rows[:_FIRST].tolist()))
    return f"required, and {len(rows)} samples say nothing, first {first}"
