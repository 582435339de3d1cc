"""What ``split check`` and ``split show`` are given: manifests, a source of samples, or anybody's list."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from geoeval.errors import InputError
from geoeval.splits.building import REPORT_SCHEMA
from geoeval.splits.list_part import ListOptions
from geoeval.splits.lists import SplitList, named_files, read_split_list
from geoeval.splits.manifest import SCHEMA, Manifest, read_manifest
from geoeval.splits.record import IDENTITIES, MEMBERS, REVEALING
from geoeval.splits.seals import is_sealed, sealed_value
from geoeval.splits.settings import strictest
from geoeval.splits.table import SampleTable, joined

_SOURCES = (".jsonl", ".ndjson")
_SCHEMAS: Mapping[str, Literal["manifest", "report"]] = {SCHEMA: "manifest", REPORT_SCHEMA: "report"}


def read_inputs(
    arguments: Sequence[str],
    options: ListOptions | None = None,
    *,
    key: bytes | None = None,
    root: Path | None = None,
    open_fixture: bool = False,
) -> SplitList:
    """Manifests, a source of samples (``.jsonl``), or anybody's list: one kind at a time.

    Parameters
    ----------
    arguments
        Files. A folder that a build wrote stands for its manifests; the report beside them is left out, and said.
    key
        Opens the seal of challenge hashes in manifests.
    root
        Folder of the assets; None means the folder of the file.
    open_fixture
        True opens synthetic fixtures. Only code can say so.

    Raises
    ------
    InputError
        Different kinds at once, manifests of different sources, or what the readers refuse.
    """
    paths = [one for _, path in named_files(arguments) for one in _unfolded(path)]
    sorts = [_sort_of(path) for path in paths]
    sources = [path.suffix.lower() in _SOURCES for path in paths]
    if "manifest" in sorts:
        return _of_build(paths, sorts, key, root, open_fixture=open_fixture)
    if any(sources) and len(paths) > 1:
        raise InputError(
            f"{paths[sources.index(True)].name}: a source of samples declares its splits itself; give it alone"
        )
    if "report" in sorts:
        raise InputError(
            f"{paths[sorts.index('report')].name}: is the report of a build, which names no sample; give the manifests "
            "beside it, or their folder"
        )
    if any(sources):
        return _of_source(paths[0], root)
    return read_split_list(arguments, options)


def _unfolded(path: Path) -> list[Path]:
    """The manifests in a folder; anything else stands for itself."""
    inside = sorted(path.glob("*.json")) if path.is_dir() else []
    return [one for one in inside if _sort_of(one) == "manifest"] or [path]


def _sort_of(path: Path) -> Literal["manifest", "report"] | None:
    """What a build wrote. Keys are sorted, so the schema stands far behind; a list never has these."""
    if path.suffix.lower() != ".json" or not path.is_file():
        return None
    data = path.read_bytes()
    if not any(one.encode() in data for one in _SCHEMAS):
        return None
    try:
        content = json.loads(data)
    except ValueError:
        return None
    except RecursionError:
        # Nested beyond reason: the reader of manifests refuses it by name.
        return "manifest"
    schema = content.get("schema") if isinstance(content, dict) else None
    return _SCHEMAS.get(schema) if isinstance(schema, str) else None


def _of_build(
    paths: Sequence[Path], sorts: Sequence[str | None], key: bytes | None, root: Path | None, *, open_fixture: bool
) -> SplitList:
    """The manifests of one build; the report among them is left out, and said."""
    other = next((path for path, sort in zip(paths, sorts, strict=True) if sort is None), None)
    if other is not None:
        raise InputError(
            f"expected manifests only or lists only, got both: {other.name} is no manifest; check them one after the "
            "other"
        )
    held = [path for path, sort in zip(paths, sorts, strict=True) if sort == "manifest"]
    read = [read_manifest(path, open_fixture=open_fixture) for path in held]
    found = _of_manifests(read, held, key, root)
    left = [path.name for path, sort in zip(paths, sorts, strict=True) if sort == "report"]
    if not left:
        return found
    return replace(found, notes={**found.notes, "left out": f"{', '.join(left)}: the report of a build, no manifest"})


def _of_source(path: Path, root: Path | None) -> SplitList:
    from geoeval.splits.source import read_source

    table = read_source(path, root=root, on_invalid="list").table
    return SplitList(table, identities=_identities(table), notes={"source": f"{path.name}: hashes made from its files"})


def _identities(table: SampleTable) -> tuple[str, ...]:
    return tuple(name for name in (*IDENTITIES, *MEMBERS) if name in table.texts or name in table.members)


def _of_manifests(
    manifests: Sequence[Manifest], paths: Sequence[Path], key: bytes | None, root: Path | None
) -> SplitList:
    from geoeval.splits.manifest_table import manifest_table

    first = manifests[0].content
    for one, path in zip(manifests[1:], paths[1:], strict=True):
        if one.content["source_sha256"] != first["source_sha256"] or one.content["settings"] != first["settings"]:
            raise InputError(
                f"{path.name}: was built from another source or under other settings than {paths[0].name}; give the "
                "manifests of one split"
            )
    sealed = any(is_sealed(entry.get(name)) for one in manifests for entry in one.samples for name in REVEALING)
    tables = []
    for one, path in zip(manifests, paths, strict=True):
        table = manifest_table(one, path.parent if root is None else root, key)
        tables.append(_under_seal(table, one, key) if sealed and key is not None else table)
    whole = joined(tables)
    declared = first["settings"]
    settings = strictest([declared], shares=declared["shares"], required_splits=tuple(declared["required_splits"]))
    notes = {
        "manifests": ", ".join(f"{path.name} {one.sha256}" for one, path in zip(manifests, paths, strict=True)),
        "mode": str(first["mode"]),
    }
    return SplitList(
        whole,
        identities=settings.identities,
        notes=notes,
        settings=settings,
        sealed=sealed and key is None,
    )


def _under_seal(table: SampleTable, manifest: Manifest, key: bytes) -> SampleTable:
    """All hashes under the seal of the challenge samples, so that equal bytes are equal again."""
    import pyarrow as pa

    entries = {str(entry["sample_id"]): entry for entry in manifest.samples}
    ids = table.texts["sample_id"].to_pylist()
    texts: dict[str, Any] = dict(table.texts)
    for name in REVEALING:
        values = [_sealed(entries[one].get(name), name, key) for one in ids]
        if any(value is not None for value in values):
            texts[name] = pa.array(values, type=pa.large_string())
    return replace(table, texts=texts)


def _sealed(value: str | None, name: str, key: bytes) -> str | None:
    """The hash under the seal; that of a label without features stays open, because it links nothing."""
    from geoeval.splits.links import empty_label_hash

    if value is None:
        return None
    if name == "label_geometry_hash" and value in (empty_label_hash(), sealed_value(empty_label_hash(), name, key)):
        return empty_label_hash()
    return value if is_sealed(value) else sealed_value(value, name, key)
