"""What an evaluator may see: ids of one exact manifest, and no file of a challenge case."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geoeval.errors import InputError, LeakageError
from geoeval.splits.manifest import Manifest, checked_manifest
from geoeval.splits.record import ASSETS, EVALUATED


@dataclass(frozen=True, slots=True)
class EvaluationBinding:
    """An evaluator's permission: one protected manifest, and the ids it may see.

    Parameters
    ----------
    manifest_sha256
        The manifest that the evaluation is bound to.
    allowed
        Id to split, for ``test`` and ``background-test``.
    sealed
        Ids of challenge samples, which nobody evaluates here.
    """

    manifest_sha256: str
    allowed: Mapping[str, str]
    sealed: frozenset[str]

    def require(self, ids: Iterable[str]) -> tuple[str, ...]:
        """The same ids, sorted, once each may be evaluated.

        Raises
        ------
        LeakageError
            For an id of challenge, or one that is in no split of this manifest.
        """
        wanted = sorted(set(ids))
        opened = [one for one in wanted if one in self.sealed]
        if opened:
            raise LeakageError(
                f"challenge is sealed: {len(opened)} of its cases were asked for, first {opened[0]!r}; "
                f"an evaluator sees {' and '.join(EVALUATED)} only"
            )
        strangers = [one for one in wanted if one not in self.allowed]
        if strangers:
            raise LeakageError(
                f"{len(strangers)} ids are not in the protected manifest {self.manifest_sha256[:16]}, first "
                f"{strangers[0]!r}; evaluate its {' and '.join(EVALUATED)} cases only"
            )
        return tuple(wanted)


def bind_evaluation(manifest: Manifest, sha256: str, *, open_fixture: bool = False) -> EvaluationBinding:
    """Bind an evaluation to the exact protected manifest.

    Raises
    ------
    InputError
        The manifest is not the one with this hash, or not the protected one.
    """
    found = checked_manifest(manifest, "protected manifest", sha256=sha256, open_fixture=open_fixture)
    if found.content["set"] != "protected":
        raise InputError(f"expected the protected manifest, got the one of set {found.content['set']!r}")
    by_id = {str(entry["sample_id"]): str(entry["split"]) for entry in found.samples}
    return EvaluationBinding(
        found.sha256,
        {name: split for name, split in by_id.items() if split in EVALUATED},
        frozenset(name for name, split in by_id.items() if split not in EVALUATED),
    )


def assert_evaluation_assets(binding: EvaluationBinding, manifest: Manifest, paths: Iterable[Path], root: Path) -> None:
    """Refuse files of challenge cases, by whatever name an evaluator was given them.

    Raises
    ------
    LeakageError
        Naming the case.
    """
    closed: dict[Any, str] = {}
    for entry in manifest.samples:
        if entry["sample_id"] in binding.sealed:
            for asset in ASSETS:
                if asset in entry and (root / entry[asset]).exists():
                    closed |= dict.fromkeys(file_identities(root / entry[asset]), entry["sample_id"])
    for path in paths:
        hit = next((closed[one] for one in file_identities(path) if one in closed), None) if path.exists() else None
        if hit is not None:
            raise LeakageError(f"{path.name!r} is a file of the challenge case {hit!r}; challenge is sealed")


def file_identities(path: Path) -> tuple[Any, ...]:
    """A file by its resolved path, and by where it is stored."""
    facts = path.stat()
    stored = ((facts.st_dev, facts.st_ino),) if facts.st_ino else ()
    return (os.path.realpath(path), *stored)
