"""The bundle: a folder that names itself by the hash of its manifest, written whole or not at all.

``manifest.json`` lists every bound file with its hash, and the names of what is derived from them. The run id is the
hash of the manifest, so it cannot stand in a bound file; what carries it (the board, the report, layers) is derived, is
listed with its hashes in ``derived.json``, and is rendered again by whoever verifies the bundle.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from geoeval.errors import BundleError
from geoeval.evidence.canonical import canonical_bytes, digest, file_digest

MANIFEST = "manifest.json"
DERIVED = "derived.json"
SCHEMA = "geoeval/manifest/1"

#: The bytes of a file, or a file that holds them.
Content = bytes | Path

_WINDOWS_NAMES = re.compile(r"^(con|prn|aux|nul|com\d|lpt\d)(\..*)?$", re.IGNORECASE)
_RUN_ID_DIGITS = 20


def run_id(manifest: bytes) -> str:
    """The name of a run: the hash of the bytes of its manifest.

    Examples
    --------
    >>> run_id(b"{}")
    'run-44136fa355b3678a1146'
    """
    return f"run-{digest(manifest)[:_RUN_ID_DIGITS]}"


def write_bundle(
    runs: Path,
    files: Mapping[str, Content],
    manifest: Mapping[str, Any],
    derived: Mapping[str, Callable[[str], Content]] | None = None,
) -> Path:
    """Write ``runs/<run id>/`` whole, or leave nothing behind.

    Parameters
    ----------
    runs
        Folder of all runs; made where it is missing.
    files
        Bound files by their name in the bundle, ``/`` between folders.
    manifest
        What the run id binds beside the files: inputs, code, configuration, runtime. The list of files is added.
    derived
        Files that carry the run id: each is rendered once the id is known.

    Returns
    -------
    Path
        The folder. An equal bundle that is there already is success.

    Raises
    ------
    BundleError
        Where a name is not safe on every system, where the folder holds something else, or where writing fails.
    """
    renderers = derived or {}
    check_names([*files, *renderers, MANIFEST, DERIVED])
    head = manifest_bytes(files, manifest, renderers)
    name = run_id(head)
    rendered = {path: render(name) for path, render in sorted(renderers.items())}
    listing = canonical_bytes({"run": name, "files": entries(rendered)})
    whole: dict[str, Content] = {**files, **rendered, MANIFEST: head, DERIVED: listing}
    target = Path(runs) / name
    if _is_there(target):
        return _same_or_refuse(target, whole)
    partial = Path(runs) / f".partial-{secrets.token_hex(8)}"
    try:
        _write_all(partial, whole)
        partial.rename(target)
    except OSError as error:
        if _is_there(target):
            return _same_or_refuse(target, whole)
        raise BundleError(
            f"{name}: the bundle could not be written ({error.strerror or error}); nothing was left behind"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    _sync_folder(Path(runs))
    return target


def _is_there(target: Path) -> bool:
    """Whether something stands there; nothing can under a name that is too long or in a folder that is closed."""
    try:
        return target.exists()
    except OSError:
        return False


def manifest_bytes(files: Mapping[str, Content], manifest: Mapping[str, Any], derived: Iterable[str]) -> bytes:
    """The bytes of ``manifest.json``: what is given, and every file with its hash and size."""
    taken = {"schema", "files", "derived"} & set(manifest)
    if taken:
        raise BundleError(f"manifest: {', '.join(sorted(taken))} are written here and cannot be given")
    return canonical_bytes({"schema": SCHEMA, **manifest, "files": entries(files), "derived": sorted(derived)})


def entries(files: Mapping[str, Content]) -> list[dict[str, Any]]:
    """Name, hash and size of each file, names sorted."""
    out = []
    for path in sorted(files):
        content = files[path]
        if isinstance(content, Path):
            out.append({"path": path, "sha256": file_digest(content), "size": content.stat().st_size})
        else:
            out.append({"path": path, "sha256": digest(content), "size": len(content)})
    return out


def check_names(names: Iterable[str]) -> None:
    """Refuse names that some system cannot hold, that leave the bundle, or that differ in case alone.

    Raises
    ------
    BundleError
        Naming the file.

    Examples
    --------
    >>> check_names(["metrics.json", "layers/outcomes.gpkg"])
    >>> check_names(["../metrics.json"])
    Traceback (most recent call last):
    geoeval.errors.BundleError: '../metrics.json' is no name for a file of a bundle
    """
    seen: dict[str, str] = {}
    for name in names:
        parts = PurePosixPath(name).parts
        if not parts or name != "/".join(parts) or not all(_safe(part) for part in parts):
            raise BundleError(f"{name!r} is no name for a file of a bundle")
        if name.casefold() in seen:
            raise BundleError(f"{name!r} and {seen[name.casefold()]!r} are one file on some systems")
        seen[name.casefold()] = name


def _safe(part: str) -> bool:
    if part in (".", "..") or part.endswith((".", " ")) or _WINDOWS_NAMES.match(part):
        return False
    return not re.search(r'[<>:"\\|?*\x00-\x1f]', part)


def _write_all(folder: Path, files: Mapping[str, Content]) -> None:
    folder.mkdir(parents=True)
    for name, content in files.items():
        path = folder.joinpath(*PurePosixPath(name).parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, content)
    for inner in sorted({path.parent for path in folder.rglob("*")} | {folder}):
        _sync_folder(inner)


def write_file(path: Path, content: Content) -> None:
    """Write one file and wait until the disk has it."""
    with path.open("xb") as stream:
        if isinstance(content, Path):
            with content.open("rb") as source:
                shutil.copyfileobj(source, stream, 1 << 20)
        else:
            stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _sync_folder(folder: Path) -> None:
    """Wait until the disk has a folder's names; Windows has no such call."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _same_or_refuse(target: Path, files: Mapping[str, Content]) -> Path:
    there = {path.relative_to(target).as_posix() for path in target.rglob("*") if not path.is_dir()}
    differing = sorted(there ^ set(files))
    for entry in entries({name: files[name] for name in files if name in there}):
        path = target.joinpath(*PurePosixPath(entry["path"]).parts)
        if file_digest(path) != entry["sha256"]:
            differing.append(entry["path"])
    if differing:
        names = ", ".join(map(repr, differing[:5]))
        raise BundleError(
            f"{target.name}: a bundle of this name is there already and differs in {names}; "
            "bundles never change: run `geoeval verify` on it and move it away"
        )
    return target
