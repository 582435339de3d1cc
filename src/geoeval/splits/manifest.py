"""Manifests: who is in which split, as canonical bytes that name their own hash.

Two sets, hashed apart: development (train, val, calibration) and protected (background-test, test, challenge); a third
lists what was quarantined. Only the hash of the protected manifest is meant to be published. Hashes of challenge
samples would tell anybody who holds an image whether it is in the set, so they stand under HMAC with a key that the
manifest does not contain.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from geoeval.errors import GeoevalError, InputError
from geoeval.evidence.canonical import canonical_bytes, digest
from geoeval.splits.blanks import known
from geoeval.splits.manifest_schema import KEYS, check_content, check_whole
from geoeval.splits.record import DEVELOPMENT, MEMBERS, PROTECTED, QUARANTINE
from geoeval.splits.seals import FEW, closed_entry, looks_text, require_key, seal_of
from geoeval.splits.settings import SplitSettings
from geoeval.splits.table import TEXTS, SampleTable

SCHEMA = "geoeval/split-manifest/1"
SETS: Mapping[str, tuple[str, ...]] = {
    "development": DEVELOPMENT,
    "protected": PROTECTED,
    QUARANTINE: (QUARANTINE,),
}
Mode = Literal["fixture", "declared", "production"]

_HASH = "manifest_sha256"
_MODES = ("fixture", "declared", "production")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest and its hash.

    Parameters
    ----------
    content
        Everything but the hash itself.
    sha256
        SHA-256 of the canonical bytes of ``content``.
    """

    content: Mapping[str, Any]
    sha256: str

    @property
    def samples(self) -> Sequence[Mapping[str, Any]]:
        """The sample entries, sorted by id."""
        entries: Sequence[Mapping[str, Any]] = self.content["samples"]
        return entries

    @property
    def mode(self) -> str:
        """``fixture``, ``declared`` or ``production``."""
        return str(self.content["mode"])

    def data(self) -> bytes:
        """The bytes of the file."""
        return canonical_bytes({**self.content, _HASH: self.sha256}) + b"\n"


def manifest_of(
    set_name: str,
    table: SampleTable,
    *,
    mode: Mode,
    source_sha256: str,
    settings: SplitSettings,
    gates: Mapping[str, Any],
    key: bytes | None = None,
) -> Manifest:
    """The manifest of the samples of one set.

    Parameters
    ----------
    table
        All samples with their splits; those of other sets are left out.
    key
        Seals the hashes of challenge samples, needed where there are any; and the label sketches of all protected
        samples, which are left out without a key.

    Raises
    ------
    ConfigError
        There are challenge samples and no key, or the key has less than 16 bytes.
    """
    from geoeval.splits import phash
    from geoeval.splits.assets import recipe_id

    roles = SETS[set_name]
    column = table.texts["split"].to_pylist()
    rows = [row for row, split in enumerate(column) if split in roles]
    require_key(key, needed=any(column[row] == "challenge" for row in rows))
    drawn = _sketches(table, rows)
    entries = [{**entry_of(table, row), **more} for row, more in zip(rows, drawn, strict=True)]
    if set_name != "development":
        entries = [closed_entry(entry, key) for entry in entries]
    names = {entry["sample_id"] for entry in entries}
    content = {
        "schema": SCHEMA,
        "set": set_name,
        "mode": mode,
        "production_accuracy_use_allowed": mode == "production",
        "source_sha256": source_sha256,
        "settings": settings.described(),
        "perceptual": {
            "recipe": phash.RECIPE,
            "recipe_id": recipe_id(),
            "radius": settings.radius,
            "confirmed_radius": settings.confirmed_radius,
            "confirming_bits": settings.confirming_bits,
        },
        "gates": gates,
        "seal": seal_of(entries, source_sha256, key),
        "splits": {role: sum(entry["split"] == role for entry in entries) for role in roles},
        "unknown": _unknown(entries, settings),
        "flat": sorted(name for name in table.flat if name in names),
        "samples": entries,
    }
    data = canonical_bytes(content)
    return Manifest(json.loads(data), digest(data))


def _sketches(table: SampleTable, rows: Sequence[int]) -> list[dict[str, str]]:
    """The label sketch of each row whose labels were read."""
    if table.labels is None:
        return [{} for _ in rows]
    from geoeval.splits.labelsketch import sketches

    there = [row for row in rows if table.labels[row] is not None]
    drawn = dict(zip(there, sketches([table.labels[row] for row in there]), strict=True))
    return [{"label_sketch": drawn[row] or FEW} if row in drawn else {} for row in rows]


def entry_of(table: SampleTable, row: int) -> dict[str, Any]:
    """What a manifest says about one sample: every field that says something."""
    entry: dict[str, Any] = {}
    for name in TEXTS:
        value = table.text(name, row)
        if value is not None:
            entry[name] = value
    for name in MEMBERS:
        if name in table.members:
            entry[name] = sorted(table.members[name][row].as_py() or [])
    if table.hashed[row]:
        entry["perceptual_hash"] = f"{int(table.perceptual[row, 0]):016x}"
    if table.hashed[row] and table.confirmed[row]:
        entry["perceptual_looks"] = looks_text(table.perceptual[row], table.confirming[row], int(table.looks[row]))
    if not np.isnan(table.bounds[row]).any():
        entry["bbox"] = table.bounds[row].tolist()
    strata = {name: column[row].as_py() for name, column in table.strata.items()}
    if any(value is not None for value in strata.values()):
        entry["strata"] = {name: value for name, value in strata.items() if value is not None}
    return entry


def _unknown(entries: Sequence[Mapping[str, Any]], settings: SplitSettings) -> dict[str, list[str]]:
    """Field to the ids of the samples that say nothing in it: these link nothing."""
    out: dict[str, list[str]] = {}
    for name in (*settings.identities, "bbox", "label_sha256", "perceptual_hash"):
        blank = [entry["sample_id"] for entry in entries if not known(entry.get(name))]
        if blank:
            out[name] = blank
    return out


def read_manifest(path: Path, *, sha256: str | None = None, open_fixture: bool = False) -> Manifest:
    """A manifest whose bytes are those that were hashed.

    Parameters
    ----------
    sha256
        The hash that it must have; None takes the one that it names.
    open_fixture
        True opens a synthetic fixture. Nothing in a file can do that.

    Raises
    ------
    InputError
        It cannot be read, was edited after hashing, is another one than demanded, is a fixture, or holds what no build
        writes, whatever hash it names.
    """
    name = Path(path).name
    try:
        data = Path(path).read_bytes()
        content = json.loads(data)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{name}: cannot be read as a split manifest ({error})") from error
    claimed = content.pop(_HASH, None) if isinstance(content, dict) else None
    _require_fields(content, name)
    manifest = Manifest(content, _hashed(content, name))
    if claimed != manifest.sha256 or manifest.data() != data:
        raise InputError(
            f"{name}: names the hash {str(claimed)[:80]}, its content has {manifest.sha256}; it was edited after "
            "hashing. Build it again from its source"
        )
    return checked_manifest(manifest, name, sha256=sha256, open_fixture=open_fixture)


def _require_fields(content: Any, name: str) -> None:
    if not isinstance(content, Mapping) or set(content) != KEYS or content["schema"] != SCHEMA:
        found = sorted(map(str, set(content) ^ KEYS)) if isinstance(content, Mapping) else type(content).__name__
        raise InputError(f"{name}: expected a split manifest {SCHEMA!r}; fields that differ: {found}")


def _hashed(content: Mapping[str, Any], name: str) -> str:
    try:
        return digest(canonical_bytes(content))
    except (GeoevalError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{name}: cannot be read as a split manifest ({error})") from error


def checked_manifest(
    manifest: Manifest, name: str = "manifest", *, sha256: str | None = None, open_fixture: bool = False
) -> Manifest:
    """The manifest, once it is whole, the one that was demanded, and open to its caller.

    Raises
    ------
    InputError
        As :func:`read_manifest`.
    """
    from geoeval.splits.leakage import GATES

    content = manifest.content
    _require_fields(content, name)
    if _hashed(content, name) != manifest.sha256:
        raise InputError(f"{name}: was changed after hashing; its content no longer has the hash {manifest.sha256}")
    if sha256 is not None and not hmac.compare_digest(sha256, manifest.sha256):
        hint = ""
        if hmac.compare_digest(sha256, digest(manifest.data())):
            hint = "; that is the hash of the file, give the manifest_sha256 inside, which the build prints"
        raise InputError(f"{name}: expected the manifest {sha256[:80]}, found {manifest.sha256}{hint}")
    if content["mode"] not in _MODES or content["set"] not in tuple(SETS):
        raise InputError(f"{name}: unknown mode {content['mode']!r} or set {content['set']!r}")
    if content["production_accuracy_use_allowed"] is not (content["mode"] == "production"):
        raise InputError(f"{name}: a {content['mode']} manifest cannot carry this production_accuracy_use_allowed")
    if content["mode"] == "fixture" and not open_fixture:
        raise InputError(f"{name}: is a synthetic fixture; only code that says open_fixture=True may open it")
    check_content(content, name, SETS[content["set"]])
    ids = [entry["sample_id"] for entry in content["samples"]]
    strays = {entry["split"] for entry in content["samples"]} - set(SETS[content["set"]])
    if ids != sorted(set(ids)) or strays:
        raise InputError(f"{name}: ids must be unique and sorted, and splits of this set; strays: {sorted(strays)}")
    if content["mode"] == "production":
        from geoeval.splits.production import production_problems

        if problems := production_problems(content):
            raise InputError(f"{name}: says mode 'production' and does not keep its promise: {'; '.join(problems)}")
    check_whole(content, name, GATES)
    return manifest
