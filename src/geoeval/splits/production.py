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
from geoeval.splits.blanks import known
from geoeval.splits.record import ASSETS, CONTRACT, MEMBERS
from geoeval.splits.source import SplitSource, read_source
from geoeval.splits.table import SampleTable

ASSET_SCHEMA = "geoeval/asset-manifest/1"
PROVENANCE_SCHEMA = "geoeval/provenance/1"

#: What every record must say in production, beside its id.
REQUIRED: tuple[str, ...] = (*CONTRACT, *ASSETS, "provenance_sha256")

#: What a provenance record says of its sample, and beside that of where it comes from.
_BOUND = ("sample_id", "raw_image_sha256", "processed_image_sha256", "label_sha256")
_ORIGIN = ("origin", "licence", "acquired")
_PROVENANCE_KEYS = frozenset({"schema", *_BOUND, *_ORIGIN})

_SHOWN = 5


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
    said = {field: table.text(field, row) for field in _BOUND}
    check_provenance(said, asset_path(root, str(table.text("provenance", row)), f"{name}: provenance"), name)


def check_provenance(entry: Mapping[str, Any], path: Path, name: str) -> None:
    """Refuse a provenance record that is not exactly of its schema, or binds something else than its sample says.

    Parameters
    ----------
    entry
        The sample's id and the hashes of its images and its label: a record, or an entry of a manifest.
    path
        The provenance record.
    name
        What to call the sample in a message.

    Raises
    ------
    InputError
        Naming the sample and the field.
    """
    try:
        content: Any = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: provenance {path.name!r} is not JSON ({error})") from error
    if not isinstance(content, dict) or set(content) != _PROVENANCE_KEYS or content["schema"] != PROVENANCE_SCHEMA:
        found = sorted(set(content) ^ _PROVENANCE_KEYS) if isinstance(content, dict) else type(content).__name__
        raise InputError(f"{name}: provenance must be exactly {PROVENANCE_SCHEMA!r}; fields that differ: {found}")
    for field in _BOUND:
        if content[field] != entry.get(field):
            raise InputError(
                f"{name}: provenance {path.name!r} binds {field} {content[field]!r}, the record has "
                f"{entry.get(field)!r}"
            )
    for field in _ORIGIN:
        if not isinstance(content[field], str) or not known(content[field]):
            raise InputError(f"{name}: provenance {path.name!r} must say its {field}, got {content[field]!r}")


def production_problems(content: Mapping[str, Any]) -> list[str]:
    """Where a manifest of mode ``production`` lacks what that mode promises; none where it keeps its promise.

    Spared are the perceptual hash of an image that is listed as flat, and the features of a label that holds none
    (under a seal, nobody can tell). A sealed hash counts as given.

    Parameters
    ----------
    content
        A manifest without its own hash.

    Examples
    --------
    >>> gates = {name: {"status": "pass"} for name in ("identity", "exact_bytes", "near_duplicate", "buffer")}
    >>> content = {"settings": {"required": list(REQUIRED)}, "gates": gates, "flat": [], "samples": []}
    >>> production_problems(content)
    ["gate complete: None; each must be 'pass'"]
    """
    from geoeval.splits.leakage import GATES

    required = content["settings"].get("required", ())
    missing = [name for name in REQUIRED if name not in required]
    out = [f"settings.required leaves out {', '.join(missing)}"] if missing else []
    for gate in dict.fromkeys((*GATES, *content["gates"])):
        status = content["gates"].get(gate, {}).get("status")
        if status != "pass":
            out.append(f"gate {gate}: {status}; each must be 'pass'")
    flat = frozenset(content["flat"])
    open_fields = ((entry["sample_id"], _open_fields(entry, flat)) for entry in content["samples"])
    silent = [(name, fields) for name, fields in open_fields if fields]
    out += [f"sample {name!r} says nothing in {', '.join(fields)}" for name, fields in silent[:_SHOWN]]
    if len(silent) > _SHOWN:
        out.append(f"{len(silent) - _SHOWN} more samples say nothing in a required field")
    return out


def _open_fields(entry: Mapping[str, Any], flat: frozenset[str]) -> list[str]:
    """Required fields in which an entry says nothing although it could."""
    from geoeval.splits.links import empty_label_hash
    from geoeval.splits.seals import is_sealed

    shapes = entry.get("label_geometry_hash")
    spared = {"perceptual_hash"} if entry["sample_id"] in flat else set()
    if shapes == empty_label_hash() or is_sealed(shapes):
        spared |= set(MEMBERS)
    silent = {name for name in REQUIRED if not known(entry.get(name))} - spared
    if not known(entry.get("crs")) or str(entry["crs"]).strip().lower() == "pixel":
        # Bounds without a place on Earth keep no distance.
        silent.add("bbox")
    return [name for name in REQUIRED if name in silent]
