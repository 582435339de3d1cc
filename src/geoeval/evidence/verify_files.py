"""Does a bundle hold exactly what its manifest says? Hashes, names, and nothing beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, cast

from geoeval.errors import BundleError
from geoeval.evidence.bundle import DERIVED, MANIFEST, SCHEMA, check_names, run_id
from geoeval.evidence.canonical import file_digest
from geoeval.evidence.documents import document_of


@dataclass(frozen=True, slots=True)
class Listing:
    """A bundle's own account of itself, as read from its two lists."""

    run: str
    manifest: Mapping[str, Any]
    files: tuple[Mapping[str, Any], ...]
    derived: tuple[str, ...]


def read_listing(bundle: Path) -> Listing:
    """The manifest of a bundle and the run id that follows from its bytes.

    Raises
    ------
    BundleError
        Where there is no folder, no manifest, or one that is not a manifest: unreadable, rather than invalid.
    """
    path = Path(bundle) / MANIFEST
    if not Path(bundle).is_dir():
        raise BundleError(f"{Path(bundle).name}: there is no such bundle; a bundle is a folder runs/<run id>")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BundleError(f"{Path(bundle).name}: {MANIFEST} cannot be read ({error.strerror or error})") from error
    manifest = document_of(data, MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        raise BundleError(f"{Path(bundle).name}: {MANIFEST} is not of schema {SCHEMA!r}")
    files, derived = manifest.get("files"), manifest.get("derived")
    if not _is_entries(files) or not isinstance(derived, list) or not all(isinstance(name, str) for name in derived):
        raise BundleError(f"{Path(bundle).name}: {MANIFEST} has no proper list of files")
    listed = cast("list[Mapping[str, Any]]", files)
    check_names([*(entry["path"] for entry in listed), *derived, MANIFEST, DERIVED])
    return Listing(run_id(data), manifest, tuple(listed), tuple(derived))


def _is_entries(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(entry, dict) and isinstance(entry.get("path"), str) and isinstance(entry.get("sha256"), str)
        for entry in value
    )


def file_problems(bundle: Path) -> list[str]:
    """What is missing, changed, unexpected or misnamed; empty where all is as listed.

    Parameters
    ----------
    bundle
        The folder of a run.

    Returns
    -------
    list of str
        One sentence a problem.

    Raises
    ------
    BundleError
        Where the bundle has no manifest that can be read.
    """
    root = Path(bundle)
    listing = read_listing(root)
    problems = []
    if root.resolve().name != listing.run:
        problems.append(f"the folder is named {root.resolve().name!r}, its manifest hashes to {listing.run!r}")
    problems += _changed(root, listing.files)
    problems += _derived_problems(root, listing)
    expected = {entry["path"] for entry in listing.files} | set(listing.derived) | {MANIFEST, DERIVED}
    problems += list(_unexpected(root, expected))
    return problems


def _changed(root: Path, listed: tuple[Mapping[str, Any], ...]) -> list[str]:
    problems = []
    for entry in listed:
        path = root.joinpath(*PurePosixPath(entry["path"]).parts)
        if path.is_symlink() or not path.is_file():
            problems.append(f"{entry['path']}: missing")
        elif file_digest(path) != entry["sha256"] or path.stat().st_size != entry.get("size"):
            problems.append(f"{entry['path']}: changed, its hash or size is not the listed one")
    return problems


def _derived_problems(root: Path, listing: Listing) -> list[str]:
    path = root / DERIVED
    if path.is_symlink() or not path.is_file():
        return [f"{DERIVED}: missing"]
    try:
        data = document_of(path.read_bytes(), DERIVED)
    except BundleError as error:
        return [str(error)]
    if not isinstance(data, dict) or set(data) != {"run", "files"} or not _is_entries(data["files"]):
        return [f"{DERIVED}: is not a list of derived files"]
    problems = []
    if data["run"] != listing.run:
        problems.append(f"{DERIVED}: belongs to {data['run']!r}, not to {listing.run!r}")
    if [entry["path"] for entry in data["files"]] != sorted(listing.derived):
        problems.append(f"{DERIVED}: does not list the files that the manifest names")
        return problems
    return problems + _changed(root, tuple(data["files"]))


def _unexpected(root: Path, expected: set[str]) -> Iterator[str]:
    folders = {parent.as_posix() for name in expected for parent in PurePosixPath(name).parents}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            yield f"{name}: a link; a bundle holds plain files only"
        elif path.is_dir():
            if name not in folders:
                yield f"{name}/: unexpected folder"
        elif name not in expected:
            yield f"{name}: unexpected file"
