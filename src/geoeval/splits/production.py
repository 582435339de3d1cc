"""Production mode: nothing is believed that the bytes do not say.

A strict asset manifest lists every file of the source with its size and hash. Every sample names four files (raw image,
processed image, label, provenance), and its provenance record binds its id to the hashes of the other three.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geoeval.errors import InputError
from geoeval.evidence.canonical import canonical_bytes, digest
from geoeval.splits.assets import asset_path
from geoeval.splits.record import ASSETS, CONTRACT, known
from geoeval.splits.source import SplitSource, read_source
from geoeval.splits.table import SampleTable

ASSET_SCHEMA = "geoeval/asset-manifest/1"
PROVENANCE_SCHEMA = "geoeval/provenance/1"

#: What every record must say in production, beside its id.
REQUIRED: tuple[str, ...] = (*CONTRACT, *ASSETS, "provenance_sha256")

_PROVENANCE_KEYS = frozenset(
    {
        "schema",
        "sample_id",
        "raw_image_sha256",
        "processed_image_sha256",
        "label_sha256",
        "origin",
        "licence",
        "acquired",
    }
)


@dataclass(frozen=True, slots=True)
class Production:
    """What production mode needs beside the source.

    Parameters
    ----------
    assets
        The strict asset manifest.
    assets_sha256
        The hash that its bytes must have, known from elsewhere.
    root
        Folder of all assets.
    """

    assets: Path
    assets_sha256: str
    root: Path


def read_production(path: Path, production: Production, *, workers: int = 1) -> SplitSource:
    """A source in which every record proves itself from bytes.

    Raises
    ------
    InputError
        Naming the record: a missing path or field, a file that the asset manifest does not list or that differs from
        it, or a provenance record that binds something else.
    """
    listed = asset_listing(production)
    source = read_source(path, root=production.root, workers=workers, required=REQUIRED)
    for row in range(source.table.n):
        _prove(source.table, row, production.root, listed)
    return source


def asset_listing(production: Production) -> Mapping[str, tuple[str, int]]:
    """Path to hash and size, from the strict asset manifest.

    Raises
    ------
    InputError
        The manifest is not the one that was bound, or is not exactly of its schema.
    """
    name = production.assets.name
    try:
        data = production.assets.read_bytes()
        content = json.loads(data)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{name}: cannot be read as an asset manifest ({error})") from error
    if digest(data) != production.assets_sha256:
        raise InputError(f"{name}: expected the hash {production.assets_sha256[:80]}, found {digest(data)}")
    if not isinstance(content, dict) or set(content) != {"schema", "assets"} or content["schema"] != ASSET_SCHEMA:
        raise InputError(f"{name}: expected exactly the fields 'schema' ({ASSET_SCHEMA!r}) and 'assets'")
    out: dict[str, tuple[str, int]] = {}
    for at, entry in enumerate(content["assets"]):
        if not isinstance(entry, dict) or set(entry) != {"path", "sha256", "size"}:
            raise InputError(f"{name}: assets[{at}] must hold exactly 'path', 'sha256' and 'size'")
        if entry["path"] in out:
            raise InputError(f"{name}: assets[{at}] lists {entry['path']!r} again")
        out[entry["path"]] = (entry["sha256"], entry["size"])
    return out


def asset_manifest(root: Path, paths: list[str]) -> bytes:
    """The bytes of a strict asset manifest for some files below a root."""
    from geoeval.evidence.canonical import file_digest

    entries = [
        {"path": path, "sha256": file_digest(root / path), "size": (root / path).stat().st_size}
        for path in sorted(set(paths))
    ]
    return canonical_bytes({"schema": ASSET_SCHEMA, "assets": entries})


def _prove(table: SampleTable, row: int, root: Path, listed: Mapping[str, tuple[str, int]]) -> None:
    name = f"record {table.text('sample_id', row)!r}"
    for asset in ASSETS:
        path, sha256 = str(table.text(asset, row)), table.text(f"{asset}_sha256", row)
        if path not in listed:
            raise InputError(f"{name}: {asset} {path!r} is not listed in the asset manifest; was it renamed?")
        size = asset_path(root, path, f"{name}: {asset}").stat().st_size
        if listed[path] != (sha256, size):
            raise InputError(
                f"{name}: {asset} {path!r} has {size} bytes and hash {sha256}; the asset manifest says "
                f"{listed[path][1]} bytes and {listed[path][0]}"
            )
    _check_provenance(table, row, asset_path(root, str(table.text("provenance", row)), f"{name}: provenance"), name)


def _check_provenance(table: SampleTable, row: int, path: Path, name: str) -> None:
    try:
        content: Any = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: provenance {path.name!r} is not JSON ({error})") from error
    if not isinstance(content, dict) or set(content) != _PROVENANCE_KEYS or content["schema"] != PROVENANCE_SCHEMA:
        found = sorted(set(content) ^ _PROVENANCE_KEYS) if isinstance(content, dict) else type(content).__name__
        raise InputError(f"{name}: provenance must be exactly {PROVENANCE_SCHEMA!r}; fields that differ: {found}")
    for field in ("sample_id", "raw_image_sha256", "processed_image_sha256", "label_sha256"):
        if content[field] != table.text(field, row):
            raise InputError(
                f"{name}: provenance {path.name!r} binds {field} {content[field]!r}, the record has "
                f"{table.text(field, row)!r}"
            )
    for field in ("origin", "licence", "acquired"):
        if not isinstance(content[field], str) or not known(content[field]):
            raise InputError(f"{name}: provenance {path.name!r} must say its {field}, got {content[field]!r}")
