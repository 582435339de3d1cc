"""The firewall: no protected case in training.

Training inputs are held against the protected manifest with the same gates that hold splits apart, after their hashes
were recomputed from bytes; beside that, files are compared as files, so that another name or a link makes no
difference. This is logical protection; it does not replace a store that training cannot reach.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from geoeval.errors import ConfigError, InputError, LeakageError
from geoeval.splits.assets import asset_path, image_frame, label_shapes, placed_labels
from geoeval.splits.evaluation import file_identities
from geoeval.splits.leakage import check
from geoeval.splits.manifest import FIXTURE_KEY, Manifest, checked_manifest, is_sealed, padded_hash, sealed_value
from geoeval.splits.record import DEVELOPMENT, MEMBERS, REVEALING, Sample, sample_from_mapping
from geoeval.splits.settings import SplitSettings
from geoeval.splits.source import SplitSource, source_of
from geoeval.splits.table import TEXTS, SampleTable, joined

_SHOWN = 10
_INPUT, _PROTECTED = "training input", "protected"


def assert_training_inputs_safe(
    inputs: Sequence[Sample | Mapping[str, Any]],
    protected_manifest: Manifest,
    *,
    root: Path,
    protected_root: Path | None = None,
    key: bytes | None = None,
    open_fixture: bool = False,
    workers: int = 1,
) -> SplitSource:
    """Refuse training inputs that touch a protected case in any way that can be known.

    Parameters
    ----------
    inputs
        What a training run is about to read: records with paths below ``root``.
    protected_manifest
        The protected manifest of the split.
    root
        Folder of the inputs' files.
    protected_root
        Folder of the protected files, where they can be seen; None means ``root``. Files that are not there are
        compared by what the manifest says.
    key
        Opens the seal of challenge hashes; needed where the manifest has any. The fixture has a public one.
    open_fixture
        True opens a synthetic fixture.

    Returns
    -------
    SplitSource
        The inputs, read and hashed.

    Raises
    ------
    LeakageError
        Naming each input, the protected case, and what links them.
    InputError
        An input cannot be read, says too little to be checked, or the manifest is not whole.
    ConfigError
        The manifest is sealed and there is no key.
    """
    manifest = checked_manifest(protected_manifest, "protected manifest", open_fixture=open_fixture)
    if manifest.content["set"] != "protected":
        raise InputError(f"expected the protected manifest, got the one of set {manifest.content['set']!r}")
    if key is None and open_fixture and manifest.mode == "fixture":
        key = FIXTURE_KEY
    if manifest.content["seal"] is not None and key is None:
        raise ConfigError("the protected manifest is sealed: without its key, challenge hashes cannot be compared")
    samples = [
        one if isinstance(one, Sample) else sample_from_mapping(one, f"training input {at + 1}")
        for at, one in enumerate(inputs)
    ]
    _require_something_to_check(samples)
    found = _role_violations(samples)
    if found:
        raise _leak(found)
    source = source_of(samples, root=root, workers=workers, name="training inputs")
    home = root if protected_root is None else protected_root
    found += _path_violations(source.table, root, manifest, home)
    found += _sealed_violations(source.table, manifest, key)
    found += _gate_violations(source.table, protected_table(manifest, home, key), manifest)
    if found:
        raise _leak(found)
    return source


def _leak(found: Sequence[str]) -> LeakageError:
    unique = list(dict.fromkeys(found))
    more = [f"... and {len(unique) - _SHOWN} more"] if len(unique) > _SHOWN else []
    lines = "\n".join(f"  {one}" for one in [*unique[:_SHOWN], *more])
    return LeakageError(f"training inputs touch protected cases:\n{lines}\nTake them out of the training inputs")


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


def _path_violations(table: SampleTable, root: Path, manifest: Manifest, home: Path) -> list[str]:
    """Inputs that are the very file of a protected sample: by another name, a link, or a hard link."""
    protected: dict[Any, str] = {}
    for entry in manifest.samples:
        for asset in ("raw_image", "processed_image", "label"):
            path = home / entry[asset] if asset in entry else None
            if path is not None and path.exists():
                protected |= dict.fromkeys(file_identities(path), entry["sample_id"])
    out = []
    for row in range(table.n):
        for asset in ("raw_image", "processed_image", "label"):
            path_text = table.text(asset, row)
            if path_text is None:
                continue
            other = next((protected[one] for one in file_identities(root / path_text) if one in protected), None)
            if other is not None:
                name = table.text("sample_id", row)
                out.append(f"{name!r}: {asset} {path_text!r} is a file of the protected case {other!r}")
    return out


def _sealed_violations(table: SampleTable, manifest: Manifest, key: bytes | None) -> list[str]:
    """Inputs with a hash that stands sealed in the manifest."""
    sealed = {
        entry[name]: entry["sample_id"]
        for entry in manifest.samples
        for name in REVEALING
        if name != "provenance_sha256" and is_sealed(entry.get(name))
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


def protected_table(manifest: Manifest, root: Path, key: bytes | None) -> SampleTable:
    """The protected samples as a table: seals opened where the key opens them, labels read where they can be seen."""
    entries = manifest.samples
    n = len(entries)
    columns: dict[str, Any] = {
        name: [None if is_sealed(entry.get(name)) else entry.get(name) for entry in entries] for name in TEXTS
    }
    columns |= {name: [list(entry.get(name, ())) for entry in entries] for name in MEMBERS}
    codes = [_opened(entry, key) for entry in entries]
    labels = np.empty(n, dtype=np.object_)
    labels[:] = [_labels(entry, root) for entry in entries]
    blank = [np.nan] * 4
    return SampleTable.of(
        n,
        bounds=np.array([entry.get("bbox", blank) for entry in entries], dtype=np.float64).reshape(n, 4),
        perceptual=np.array([code or 0 for code in codes], dtype=np.uint64),
        hashed=np.array([code is not None for code in codes], dtype=np.bool_),
        labels=labels,
        **columns,
    )


def _opened(entry: Mapping[str, Any], key: bytes | None) -> int | None:
    value = entry.get("perceptual_hash")
    if value is None or (is_sealed(value) and key is None):
        return None
    opened = padded_hash(value, entry["sample_id"], key) if is_sealed(value) and key is not None else value
    return int(opened, 16)


def _labels(entry: Mapping[str, Any], root: Path) -> Any:
    """The label set of a protected case; None where its file cannot be seen."""
    where = f"protected case {entry['sample_id']!r}"
    if "label" not in entry or not (root / entry["label"]).is_file():
        return None
    shapes = label_shapes(asset_path(root, entry["label"], where), where)
    if shapes is None:
        return None
    image = entry.get("processed_image", entry.get("raw_image"))
    seen = image is not None and (root / image).is_file()
    return placed_labels(*shapes, image_frame(asset_path(root, image, where), where) if seen else None)


def _gate_violations(inputs: SampleTable, protected: SampleTable, manifest: Manifest) -> list[str]:
    """What the gates between splits say when the inputs are one split and the protected cases the other."""
    declared = manifest.content["settings"]
    settings = SplitSettings(
        buffer_m=float(declared["buffer_m"]),
        radius=int(declared["radius"]),
        identities=tuple(declared["identities"]),
        required_splits=(),
    )
    sides = [inputs.with_splits([_INPUT] * inputs.n), protected.with_splits([_PROTECTED] * protected.n)]
    out = []
    for gate in check(joined(sides), settings):
        if gate.reason == "evidence_mismatch":
            raise InputError(
                f"perceptual hashes of the inputs and of the protected manifest come from different recipes: "
                f"{gate.notes.get('recipes')}; build the manifest again with the libraries in use"
            )
        if gate.status != "fail":
            continue
        for one in gate.witnesses:
            mine, other = (one.first, one.second) if one.first_split == _INPUT else (one.second, one.first)
            evidence = ", ".join(f"{name} {value}" for name, value in one.evidence.items())
            out.append(f"{mine!r}: {one.relation} links it to the protected case {other!r} ({evidence})")
    return out
