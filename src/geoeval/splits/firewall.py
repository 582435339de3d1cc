"""The firewall: no protected case in training.

Training inputs are held against the protected manifest with the same gates that hold splits apart, after their hashes
were recomputed from bytes; beside that, files are compared as files, so that another name or a link makes no
difference. What a gate cannot decide is refused like a leak, unless code accepts it by name. This is logical
protection; it does not replace a store that training cannot reach.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from geoeval.errors import ConfigError, InputError, LeakageError
from geoeval.splits.evaluation import file_identities
from geoeval.splits.leakage import GateResult, check
from geoeval.splits.manifest import Manifest, checked_manifest
from geoeval.splits.manifest_table import manifest_table
from geoeval.splits.record import DEVELOPMENT, FIELDS, REVEALING, Sample, sample_from_mapping
from geoeval.splits.seals import FIXTURE_KEY, PADDED, is_sealed, sealed_value
from geoeval.splits.settings import SplitSettings, strictest
from geoeval.splits.source import SplitSource, source_of
from geoeval.splits.table import SampleTable, joined
from geoeval.splits.unproven import believed, checked_unproven, empty_label, require_proof, undecided

_SHOWN = 10
#: What entries of a manifest hold beside the fields of a record.
_DERIVED = frozenset(PADDED) - frozenset(FIELDS)
_FILES = ("raw_image", "processed_image", "label")
_INPUT, _PROTECTED = "training input", "protected"


def assert_training_inputs_safe(
    inputs: Sequence[Sample | Mapping[str, Any]],
    protected_manifest: Manifest,
    *,
    sha256: str,
    root: Path,
    protected_root: Path | None = None,
    key: bytes | None = None,
    unproven: Collection[str] = (),
    open_fixture: bool = False,
    workers: int = 1,
) -> SplitSource:
    """Refuse training inputs that touch a protected case, or that cannot be proven not to.

    Parameters
    ----------
    inputs
        What a training run is about to read: records with paths below ``root``, or entries of a development manifest.
    protected_manifest
        The protected manifest of the split.
    sha256
        The published hash of the protected manifest, from where it was published. The hash that the manifest itself
        names proves nothing: whoever edits a manifest can hash it again.
    root
        Folder of the inputs' files.
    protected_root
        Folder of the protected files, where they can be seen; None means ``root``. Files that are not there are
        compared by what the manifest says.
    key
        Opens the seal of challenge hashes; needed where the manifest has any. The fixture has a public one.
    unproven
        Gates that may stay undecided: ``"identity"``, ``"exact_bytes"``, ``"near_duplicate"``, ``"buffer"``,
        ``"label_set"``. What they found is refused all the same.
    open_fixture
        True opens a synthetic fixture.

    Returns
    -------
    SplitSource
        The inputs, read and hashed. ``table.notes["unproven"]`` says what stayed undecided.

    Raises
    ------
    LeakageError
        Naming each input, the protected case, and what links them.
    InputError
        An input cannot be read, a gate cannot be decided (by gate: which side lacks what), or the manifest is not
        whole or not the published one.
    ConfigError
        The manifest is sealed and there is no key; ``sha256`` is no hash; ``unproven`` names no gate.
    """
    accepted = checked_unproven(unproven)
    root = Path(root)
    if re.fullmatch("[0-9a-f]{64}", str(sha256)) is None:
        raise ConfigError(f"sha256: expected the 64 hexadecimal digits of the protected manifest, got {sha256!r}")
    manifest = checked_manifest(protected_manifest, "protected manifest", sha256=sha256, open_fixture=open_fixture)
    if manifest.content["set"] != "protected":
        raise InputError(f"expected the protected manifest, got the one of set {manifest.content['set']!r}")
    if not manifest.samples:
        raise InputError(
            "the protected manifest holds no sample, so that nothing can be proven about training inputs; build a "
            "split with a share for test"
        )
    if key is None and open_fixture and manifest.mode == "fixture":
        key = FIXTURE_KEY
    if key is None and any(entry["split"] == "challenge" for entry in manifest.samples):
        raise ConfigError("the protected manifest is sealed: without its key, challenge hashes cannot be compared")
    samples = [_sample(one, f"training input {at + 1}") for at, one in enumerate(inputs)]
    _require_something_to_check(samples)
    found = _role_violations(samples)
    if found:
        raise _leak(found)
    home = root if protected_root is None else protected_root
    found = _path_violations(samples, root, manifest, home)
    try:
        source = source_of(samples, root=root, workers=workers, name="training inputs")
    except InputError as error:
        if found:
            raise _leak(found) from error
        raise
    mine, theirs = believed(source.table), manifest_table(manifest, home, key)
    found += _sealed_violations(mine, manifest, key)
    settings = gate_settings(manifest)
    gates = check(joined(_sides(mine, theirs)), settings)
    failed = [gate for gate in gates if gate.status == "fail" and gate.id != "complete"]
    if found or failed:
        raise _leak(found, failed)
    _refuse_mixed_recipes(gates)
    open_points = undecided(mine, theirs, manifest, settings, key)
    require_proof(open_points, accepted)
    if open_points:
        says = "; ".join(f"{one.gate}: {one.says}" for one in open_points)
        source = replace(source, table=replace(source.table, notes={**source.table.notes, "unproven": says}))
    return source


def gate_settings(manifest: Manifest) -> SplitSettings:
    """What a manifest says its splits are held to, as far as gates between two sides need it."""
    declared = manifest.content["settings"]
    return strictest([declared], required=tuple(declared["required"]), witnesses=_SHOWN)


def _leak(found: Sequence[str], failed: Sequence[GateResult] = ()) -> LeakageError:
    """The first links by name, and how many more there are, whatever the number of witnesses."""
    certain = list(dict.fromkeys(found))
    count = len(certain) + sum(gate.count for gate in failed)
    shown = [*certain, *(line for gate in failed for line in _gate_lines(gate))][:_SHOWN]
    more = [f"... and {count - len(shown)} more"] if count > len(shown) else []
    lines = "\n".join(f"  {one}" for one in [*shown, *more])
    return LeakageError(f"training inputs touch protected cases:\n{lines}\nTake them out of the training inputs")


def _sample(given: Sample | Mapping[str, Any], where: str) -> Sample:
    """A validated record; what a manifest derived from its files is not a part of it and is made again from them."""
    if isinstance(given, Sample):
        return given
    if not isinstance(given, Mapping):
        raise InputError(f"{where}: expected a record (a Sample or a mapping of its fields), got {given!r:.80}")
    return sample_from_mapping({name: value for name, value in given.items() if name not in _DERIVED}, where)


def _require_something_to_check(samples: Sequence[Sample]) -> None:
    if not samples:
        raise InputError("training inputs: expected at least one record, found none")
    for one in samples:
        evidence = (one.raw_image, one.processed_image, one.raw_image_sha256, one.processed_image_sha256)
        if not any(evidence):
            raise InputError(
                f"training input {one.sample_id!r}: names no image file and no image hash, so nothing can be checked; "
                "give raw_image or processed_image"
            )


def _role_violations(samples: Iterable[Sample]) -> list[str]:
    return [
        f"{one.sample_id!r}: its split is {one.split!r}; training may read {', '.join(DEVELOPMENT)}"
        for one in samples
        if one.split is not None and one.split not in DEVELOPMENT
    ]


def _path_violations(samples: Iterable[Sample], root: Path, manifest: Manifest, home: Path) -> list[str]:
    """Inputs that are the very file of a protected sample: by another name, a link, or a hard link."""
    protected: dict[Any, str] = {}
    for entry in manifest.samples:
        for asset in _FILES:
            path = home / entry[asset] if asset in entry else None
            if path is not None and path.exists():
                protected |= dict.fromkeys(file_identities(path), entry["sample_id"])
    out = []
    for one in samples:
        for asset in _FILES:
            name = getattr(one, asset)
            path = None if name is None else root / name
            if path is None or not path.exists():
                continue
            other = next((protected[same] for same in file_identities(path) if same in protected), None)
            if other is not None:
                out.append(f"{one.sample_id!r}: {asset} {name!r} is a file of the protected case {other!r}")
    return out


def _sealed_violations(table: SampleTable, manifest: Manifest, key: bytes | None) -> list[str]:
    """Inputs with a hash that stands sealed in the manifest."""
    sealed = {
        entry[name]: entry["sample_id"]
        for entry in manifest.samples
        for name in REVEALING
        if name != "provenance_sha256" and is_sealed(entry.get(name))
        if not (name.startswith("label") and empty_label(entry, key))
    }
    if not sealed or key is None:
        return []
    from geoeval.splits.links import empty_label_hash

    out = []
    for row in range(table.n):
        empty = table.text("label_geometry_hash", row) == empty_label_hash()
        for name in REVEALING:
            value = table.text(name, row)
            if value is None or (empty and name.startswith("label")):
                continue
            other = sealed.get(sealed_value(value, name, key))
            if other is not None:
                out.append(f"{table.text('sample_id', row)!r}: {name} is that of the protected case {other!r}")
    return out


def _sides(inputs: SampleTable, protected: SampleTable) -> list[SampleTable]:
    """The inputs as one split and the protected cases as the other."""
    return [inputs.with_splits([_INPUT] * inputs.n), protected.with_splits([_PROTECTED] * protected.n)]


def _gate_lines(gate: GateResult) -> list[str]:
    out = []
    for one in gate.witnesses:
        mine, other = (one.first, one.second) if one.first_split == _INPUT else (one.second, one.first)
        evidence = ", ".join(f"{name} {value}" for name, value in one.evidence.items())
        out.append(f"{mine!r}: {one.relation} links it to the protected case {other!r} ({evidence})")
    return out


def _refuse_mixed_recipes(gates: Sequence[GateResult]) -> None:
    for gate in gates:
        if gate.reason == "evidence_mismatch":
            raise InputError(
                f"perceptual hashes of the inputs and of the protected manifest come from different recipes: "
                f"{gate.notes.get('recipes')}; build the manifest again with the libraries in use"
            )
