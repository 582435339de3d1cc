"""What the gates between training inputs and protected cases could not decide.

A gate that finds nothing has proven something only where both sides say what it compares. Here each gate is asked what
was not said, by which side, and whether its caller accepts that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geoeval.errors import ConfigError, InputError, nearest_spelling
from geoeval.model import IntArray
from geoeval.splits.blanks import known, tidy
from geoeval.splits.links import empty_label_hash, empty_labels, few_features, silent_rows
from geoeval.splits.manifest import Manifest
from geoeval.splits.seals import is_sealed, sealed_value
from geoeval.splits.settings import SplitSettings
from geoeval.splits.table import Mask, SampleTable

#: What can stay undecided, and what decides it.
UNPROVEN: Mapping[str, str] = {
    "identity": "fill the fields in; a value such as 'unknown' does not count",
    "exact_bytes": "build the protected manifest from image files or with their hashes",
    "near_duplicate": "give image files, and build the protected manifest again from image files",
    "buffer": "give bbox and crs",
    "label_set": "give label files, and a protected_root with those of the protected cases",
}

_FRAMES: Mapping[str, str] = {"world": "world coordinates", "pixels": "pixels"}
_IMAGES = ("raw_image_sha256", "processed_image_sha256")


@dataclass(frozen=True, slots=True)
class Undecided:
    """Something that a gate could not decide.

    Parameters
    ----------
    gate
        One of :data:`UNPROVEN`.
    says
        Which side lacks what, how often, and the first id.
    """

    gate: str
    says: str


def checked_unproven(names: Collection[str]) -> frozenset[str]:
    """The gates that a caller accepts undecided.

    Raises
    ------
    ConfigError
        A name that is no such gate.

    Examples
    --------
    >>> sorted(checked_unproven(["buffer", "identity"]))
    ['buffer', 'identity']
    >>> checked_unproven(["bufer"])
    Traceback (most recent call last):
    geoeval.errors.ConfigError: unproven: unknown gate 'bufer'; did you mean 'buffer'?
    """
    if isinstance(names, str):
        raise ConfigError(f"unproven: expected a collection of names, got the text {names!r}; give ({names!r},)")
    for name in names:
        if name not in UNPROVEN:
            raise ConfigError(f"unproven: unknown gate {name!r}; {nearest_spelling(str(name), UNPROVEN)}")
    return frozenset(names)


def believed(inputs: SampleTable) -> SampleTable:
    """Training inputs without claims of an empty label that no label file shows.

    An empty label spares a sample from links and from naming its features; a mere claim must not.

    Examples
    --------
    >>> table = SampleTable.of(1, sample_id=["a"], label_geometry_hash=[empty_label_hash()])
    >>> believed(table).text("label_geometry_hash", 0) is None
    True
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = [row for row in empty_labels(inputs).tolist() if inputs.labels is None or inputs.labels[row] is None]
    if not rows:
        return inputs
    claimed = np.zeros(inputs.n, dtype=np.bool_)
    claimed[rows] = True
    column = inputs.texts["label_geometry_hash"]
    shown = pc.if_else(pa.array(claimed), pa.scalar(None, column.type), column)
    return replace(inputs, texts={**inputs.texts, "label_geometry_hash": shown})


def undecided(
    inputs: SampleTable, protected: SampleTable, manifest: Manifest, settings: SplitSettings, key: bytes | None
) -> tuple[Undecided, ...]:
    """All that the gates could not decide, in the order of :data:`UNPROVEN`.

    Parameters
    ----------
    inputs
        Training inputs, read and hashed, as :func:`believed`.
    protected, manifest
        The protected cases as a table, and their manifest, which tells sealed from absent.
    settings
        What the gates held the two sides to; ``identities`` that are also ``required`` must be there.
    key
        Opens the seal of challenge hashes.
    """
    by_id = {tidy(entry["sample_id"]): entry for entry in manifest.samples}
    entries = [by_id[name] for name in protected.ids(range(protected.n))]
    found = [
        *_identity(inputs, settings),
        *_lack("exact_bytes", protected, ~_has_image(entries), "protected case", "no image hash"),
        *_near_duplicate(inputs, protected, entries, settings),
    ]
    if settings.buffer_m > 0:
        found += _lack("buffer", inputs, ~inputs.has_box(), "training input", "no box on Earth")
        found += _lack("buffer", protected, ~protected.has_box(), "protected case", "no box on Earth")
    return (*found, *_label_set(inputs, protected, entries, key))


def require_proof(found: Sequence[Undecided], accepted: Collection[str]) -> None:
    """Refuse what could not be decided and was not accepted.

    Raises
    ------
    InputError
        Naming each gate, what it lacks, and what to do.

    Examples
    --------
    >>> require_proof([Undecided("buffer", "1 training input has no box on Earth: 'a'")], ["buffer"])
    """
    open_gates = list(dict.fromkeys(one.gate for one in found if one.gate not in accepted))
    if not open_gates:
        return
    lines = []
    for gate in open_gates:
        says = "; ".join(one.says for one in found if one.gate == gate)
        lines.append(f"  {gate}: {says}. To decide it, {UNPROVEN[gate]}")
    names = ", ".join(repr(gate) for gate in open_gates)
    raise InputError(
        "training inputs cannot be proven safe:\n"
        + "\n".join(lines)
        + f"\nCode that accepts a gate undecided says so: unproven=({names}{',' if len(open_gates) == 1 else ''})"
    )


def _lack(gate: str, table: SampleTable, rows: Mask | IntArray, side: str, what: str) -> list[Undecided]:
    """One entry where any row lacks something: ``2 training inputs have no box on Earth, first 'a'``."""
    at = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
    if not len(at):
        return []
    first = repr(table.text("sample_id", int(at[0])))
    if len(at) == 1:
        return [Undecided(gate, f"1 {side} has {what}: {first}")]
    return [Undecided(gate, f"{len(at)} {side}s have {what}, first {first}")]


def _identity(inputs: SampleTable, settings: SplitSettings) -> list[Undecided]:
    """Fields that are held apart and required, beside the id, which always is."""
    fields = tuple(dict.fromkeys(("sample_id", *(name for name in settings.identities if name in settings.required))))
    out: list[Undecided] = []
    for name, rows in silent_rows(inputs, fields).items():
        out += _lack("identity", inputs, rows, "training input", f"no {name}")
    return out


def _has_image(entries: Sequence[Mapping[str, Any]]) -> Mask:
    """(n,) True where a protected case has an image hash, in clear or sealed."""
    return np.array([any(known(entry.get(name)) for name in _IMAGES) for entry in entries], dtype=np.bool_)


def _near_duplicate(
    inputs: SampleTable, protected: SampleTable, entries: Sequence[Mapping[str, Any]], settings: SplitSettings
) -> list[Undecided]:
    """Images that were not compared by their looks, or less widely than declared, and hashes of an unknown recipe."""
    out: list[Undecided] = []
    sides = (
        (inputs, "training input", np.ones(inputs.n, dtype=np.bool_)),
        (protected, "protected case", _has_image(entries)),
    )
    for table, side, pictured in sides:
        flat = np.isin(np.array(table.ids(range(table.n)), dtype=np.str_), np.array(table.flat, dtype=np.str_))
        nameless = table.hashed & (table.codes("perceptual_recipe") < 0)
        out += _lack("near_duplicate", table, pictured & ~table.hashed & ~flat, side, "no perceptual hash")
        out += _lack("near_duplicate", table, nameless, side, "a perceptual hash of no named recipe")
        if settings.confirmed_radius > settings.radius:
            alone = table.hashed & ~table.confirmed
            out += _lack("near_duplicate", table, alone, side, "no second perceptual hash")
    return out


def _label_set(
    inputs: SampleTable, protected: SampleTable, entries: Sequence[Mapping[str, Any]], key: bytes | None
) -> list[Undecided]:
    """Labels that were not compared: shapes that are not at hand, or no frame that both sides have.

    Masks and sets that are known to be too small to be alike need no proof: they are compared by equality.
    """
    mine = np.array([_labelled(inputs, row) for row in range(inputs.n)], dtype=np.bool_) & ~few_features(inputs)
    theirs = ~few_features(protected) & np.array(
        [known(entry.get("label_geometry_hash")) and not empty_label(entry, key) for entry in entries], dtype=np.bool_
    )
    if not mine.any() or not theirs.any():
        return []
    out = _lack(
        "label_set", inputs, mine & ~_framed(inputs, "any"), "training input", "a label without readable shapes"
    )
    out += _lack("label_set", protected, theirs & ~_framed(protected, "any"), "protected case", "label shapes unseen")
    for frame, other in (("world", "pixels"), ("pixels", "world")):
        if (theirs & _framed(protected, other) & ~_framed(protected, frame)).any():
            only = mine & _framed(inputs, frame) & ~_framed(inputs, other)
            what = f"label shapes in {_FRAMES[frame]} only, where protected ones are in {_FRAMES[other]}"
            out += _lack("label_set", inputs, only, "training input", what)
    return out


def _labelled(inputs: SampleTable, row: int) -> bool:
    """True for an input whose label holds something, as far as one can tell."""
    shapes = inputs.text("label_geometry_hash", row)
    return inputs.text("label", row) is not None if shapes is None else shapes != empty_label_hash()


def _framed(table: SampleTable, frame: str) -> Mask:
    """(n,) True where a label set is at hand, in a frame or in any."""
    if table.labels is None:
        return np.zeros(table.n, dtype=np.bool_)
    return np.array(
        [one is not None and (frame == "any" or getattr(one, frame) is not None) for one in table.labels],
        dtype=np.bool_,
    )


def empty_label(entry: Mapping[str, Any], key: bytes | None) -> bool:
    """True for a protected case whose label is known to hold no feature; the seal is compared with that of none.

    Examples
    --------
    >>> empty_label({}, None), empty_label({"label_geometry_hash": empty_label_hash()}, None)
    (False, True)
    >>> sealed = sealed_value(empty_label_hash(), "label_geometry_hash", b"k" * 16)
    >>> empty_label({"label_geometry_hash": sealed}, b"k" * 16), empty_label({"label_geometry_hash": sealed}, None)
    (True, False)
    """
    value, empty = entry.get("label_geometry_hash"), empty_label_hash()
    if is_sealed(value):
        return key is not None and value == sealed_value(empty, "label_geometry_hash", key)
    return bool(value == empty)
