"""The samples of a manifest as a table, so that the gates can hold them against others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from geoeval.evidence.canonical import file_digest
from geoeval.splits.assets import asset_path, image_frame
from geoeval.splits.label_files import read_label
from geoeval.splits.label_place import placed_label
from geoeval.splits.manifest import Manifest
from geoeval.splits.manifest_schema import check_entry
from geoeval.splits.phash import ImageCodes
from geoeval.splits.record import MEMBERS
from geoeval.splits.seals import FEW, is_sealed, looks_from_text, opened_entry, require_the_key, sealed_value
from geoeval.splits.source import hash_columns
from geoeval.splits.table import TEXTS, SampleTable


def manifest_table(manifest: Manifest, root: Path, key: bytes | None = None) -> SampleTable:
    """The samples of a manifest: seals opened where the key opens them.

    Label sets come from the label files where these can be seen below ``root``, and from their sketches elsewhere.
    """
    require_the_key(manifest.content, key)
    entries = [opened_entry(entry, key) for entry in manifest.samples]
    if key is not None:
        for entry in entries:
            check_entry(entry, f"{manifest.content['set']} manifest as the key opens it")
    pairs = zip(manifest.samples, entries, strict=True)
    n = len(entries)
    columns: dict[str, Any] = {name: [entry.get(name) for entry in entries] for name in TEXTS}
    columns |= {name: [list(entry.get(name, ())) for entry in entries] for name in MEMBERS}
    labels = np.empty(n, dtype=np.object_)
    labels[:] = [_labels(entry, opened, root, key) for entry, opened in pairs]
    blank = [np.nan] * 4
    return SampleTable.of(
        n,
        bounds=np.array([entry.get("bbox", blank) for entry in entries], dtype=np.float64).reshape(n, 4),
        labels=labels,
        flat=tuple(manifest.content["flat"]),
        **hash_columns([_looks(entry) for entry in entries], [entry.get("perceptual_hash") for entry in entries]),
        **columns,
    )


def _looks(entry: Mapping[str, Any]) -> ImageCodes | None:
    text = entry.get("perceptual_looks")
    return None if text is None else ImageCodes(*looks_from_text(text), flat=False)


def _labels(entry: Mapping[str, Any], opened: Mapping[str, Any], root: Path, key: bytes | None) -> Any:
    """The label set of a sample; None where neither the file that was hashed nor its sketch is there."""
    where = f"protected case {entry['sample_id']!r}"
    if "label" not in entry or not _is_the_one(root / entry["label"], entry.get("label_sha256"), key):
        return _sketched(opened.get("label_sketch"))
    label = read_label(asset_path(root, entry["label"], where), where, root)
    image = entry.get("processed_image", entry.get("raw_image"))
    seen = image is not None and (root / image).is_file()
    frame = image_frame(asset_path(root, image, where), where) if seen else None
    return placed_label(label, frame, entry.get("bbox"), entry.get("crs"), where, held=False)


def _is_the_one(path: Path, sha256: str | None, key: bytes | None) -> bool:
    """True for a file with the hash of the manifest; under a seal without its key, for any file of the name."""
    if not path.is_file():
        return False
    if sha256 is None or (is_sealed(sha256) and key is None):
        return True
    found = file_digest(path)
    return sha256 == (sealed_value(found, "label_sha256", key) if is_sealed(sha256) and key is not None else found)


def _sketched(text: str | None) -> Any:
    from geoeval.splits.labelsets import LabelSet
    from geoeval.splits.labelsketch import opened

    if text is None:
        return None
    return LabelSet() if text == FEW else opened(text)
