"""What manifests must prove before a case is evaluated, and what may not be claimed of those that ask for little.

Lineage   every sample says something in each field that the splits are held apart by, and has a box on Earth. Without
          that a gate passes because it has nothing to compare.
Limits    fields that are not held apart or were not demanded, no buffer, looks that are hardly compared, and gates
          that could not be decided.
Files     every path lies below the root. In production all four files of every case are there, are those that were
          hashed, and its provenance record binds them. In other modes, files that are there are held to their hashes,
          and the others are counted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from geoeval.errors import InputError, LeakageError
from geoeval.evidence.canonical import file_digest
from geoeval.splits.assets import asset_path, path_problem
from geoeval.splits.leakage import GateResult
from geoeval.splits.links import silent_rows
from geoeval.splits.manifest import Manifest
from geoeval.splits.production import check_provenance
from geoeval.splits.record import ALWAYS, ASSETS, CONTRACT, EVALUATED, IDENTITIES, MEMBERS
from geoeval.splits.settings import SplitSettings
from geoeval.splits.table import SampleTable


def require_lineage(table: SampleTable, identities: Sequence[str]) -> None:
    """Refuse samples of which nobody knows where they come from.

    Spared are the features of a label that holds none, and those of sealed challenge samples.

    Parameters
    ----------
    table
        The samples of both manifests.
    identities
        Fields that the splits are held apart by.

    Raises
    ------
    LeakageError
        Naming each field, how many samples say nothing in it, and the first of them.

    Examples
    --------
    >>> table = SampleTable.of(2, sample_id=["a", "b"], split="test", group_id=["g", "unknown"])
    >>> require_lineage(table, ["group_id"])
    Traceback (most recent call last):
    geoeval.errors.LeakageError: lineage of 2 samples is not known: group_id 1 (first 'b'), bbox 2 (first 'a'); fill in
    what is missing in the source of the split, or say there that splits may share the field (split build --not-apart
    FIELD), and build it again
    """
    silent = silent_rows(table, (*identities, "bbox"))
    sealed = [row for row in range(table.n) if table.text("split", row) == "challenge"]
    for name in MEMBERS:
        if name in silent:
            silent[name] = silent[name][~np.isin(silent[name], sealed)]
    found = {name: rows for name, rows in silent.items() if len(rows)}
    if not found:
        return
    samples = len(np.unique(np.concatenate(list(found.values()))))
    said = ", ".join(f"{name} {len(rows)} (first {table.ids(rows[:1])[0]!r})" for name, rows in found.items())
    raise LeakageError(
        f"lineage of {samples} sample{'' if samples == 1 else 's'} is not known: {said}; fill in what is missing in "
        "the source of the split, or say there that splits may share the field (split build --not-apart FIELD), and "
        "build it again"
    )


def not_held_apart(identities: Iterable[str]) -> tuple[str, ...]:
    """A limit that names the fields that no gate looks at; nothing where all of them are held apart.

    Examples
    --------
    >>> not_held_apart(["sample_id", "group_id", "source_family", "temporal_family", "native_feature_ids"])
    ('not held apart between splits: acquisition_id, parent_raster_id, object_ids',)
    """
    held = set(identities)
    left_out = [name for name in (*IDENTITIES, *MEMBERS) if name not in held]
    return (f"not held apart between splits: {', '.join(left_out)}",) if left_out else ()


def asked_little(held: SplitSettings, declared: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Limits of manifests that ask for little: no buffer, a narrow look, fields that no sample had to fill.

    Parameters
    ----------
    held
        What the manifests are held to between them.
    declared
        The ``settings`` of each.

    Examples
    --------
    >>> own = SplitSettings(buffer_m=0.0, confirmed_radius=4, required=CONTRACT[:-1])
    >>> asked_little(own, [own.described()])[1:]
    ('looks are compared within 4 bits only', 'not demanded of samples: record_sha256')
    """
    limits = []
    if held.buffer_m == 0:
        limits.append("no buffer between splits (buffer_m is 0)")
    if held.confirmed_radius <= held.radius:
        limits.append(f"looks are compared within {held.radius} bits only")
    elif held.radius == 0:
        limits.append(
            f"looks are compared within 0 bits only, and within {held.confirmed_radius} where a second hash confirms"
        )
    demanded = set.intersection(*(set(one["required"]) for one in declared)) | set(ALWAYS)
    open_fields = [name for name in CONTRACT if name not in demanded]
    if open_fields:
        limits.append(f"not demanded of samples: {', '.join(open_fields)}")
    return tuple(limits)


def undecided(gates: Iterable[GateResult]) -> tuple[str, ...]:
    """A limit for each gate that could not be decided.

    Examples
    --------
    >>> bytes_gate = GateResult("exact_bytes", "not_evaluable", "evidence_missing", 0)
    >>> undecided([GateResult("buffer", "pass", None, 0), bytes_gate])
    ('gate exact_bytes could not be decided: evidence_missing',)
    """
    return tuple(f"gate {one.id} could not be decided: {one.reason}" for one in gates if one.status == "not_evaluable")


def require_paths(protected: Manifest, root: Path) -> None:
    """Refuse a path of a protected case that does not lie below the root; whether a file is there does not matter.

    Raises
    ------
    InputError
        Naming the case and the field.
    """
    for entry in protected.samples:
        for name in ASSETS:
            if name in entry:
                _at_hand(entry, name, root)


def require_assets(protected: Manifest, root: Path, *, production: bool) -> tuple[str, ...]:
    """Refuse a file of a protected case that is not the one that was hashed, and in production one that is not there.

    Parameters
    ----------
    root
        Folder of the files.
    production
        True where figures may be claimed for a product: then every case has to prove itself.

    Returns
    -------
    tuple of str
        What may not be claimed, because files were not at hand.

    Raises
    ------
    InputError
        Naming the case and the file; also where a path does not lie below the root, or leads to no file that holds
        something.
    """
    entries = [entry for entry in protected.samples if entry["split"] in EVALUATED]
    if production:
        for entry in entries:
            _require_proof(entry, root)
        return ()
    files = absent = 0
    for entry in entries:
        for name in ASSETS:
            if name not in entry and f"{name}_sha256" not in entry:
                continue
            files += 1
            path = _at_hand(entry, name, root) if name in entry else None
            if path is None or f"{name}_sha256" not in entry:
                absent += 1
                continue
            _require_hash(entry, name, path)
    return (f"{absent} of {files} files of protected cases were not at hand to be hashed",) if absent else ()


def _at_hand(entry: Mapping[str, Any], name: str, root: Path) -> Path | None:
    """A file of a protected case; None where it is missing below the root."""
    path, where = entry[name], f"protected case {entry['sample_id']!r}: {name}"
    if not isinstance(path, str):
        raise InputError(f"{where}: expected a path below the root, found {path!r:.80}")
    if path_problem(path) is None:
        home, found = os.path.realpath(root), os.path.realpath(root / path)
        if Path(found).is_relative_to(home) and not Path(found).exists():
            return None
    return asset_path(root, path, where)


def _require_proof(entry: Mapping[str, Any], root: Path) -> None:
    where = f"protected case {entry['sample_id']!r}"
    for name in ASSETS:
        _require_hash(entry, name, asset_path(root, entry[name], f"{where}: {name}"))
    check_provenance(entry, root / entry["provenance"], where)


def _require_hash(entry: Mapping[str, Any], name: str, path: Path) -> None:
    found, expected = file_digest(path), entry[f"{name}_sha256"]
    if found != expected:
        raise InputError(
            f"protected case {entry['sample_id']!r}: {name} {entry[name]!r} has the hash {found}, the manifest "
            f"says {expected}; the file was changed after the split was built"
        )
