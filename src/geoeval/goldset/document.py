"""The document of a replay: read back, with everything in it derived again from its outcomes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geoeval.errors import BundleError, InputError
from geoeval.evidence.canonical import canonical_bytes
from geoeval.evidence.documents import document_of
from geoeval.goldset.outcomes import Outcome, aggregate, by_task, outcome_from_json, outcome_json

SCHEMA = "geoeval/replay/1"

_HEAD = {"schema", "gold_sha256", "runner", "graders", "expert_quality", "tasks", "overall", "outcomes"}
_KINDS: dict[str, tuple[type, ...]] = {
    "id": (str,),
    "task": (str,),
    "cluster": (str, type(None)),
    "accepted": (bool,),
    "deferred": (bool,),
    "correct": (bool, type(None)),
    "cost": (int, float),
    "margin": (int, float, type(None)),
    "escalations": (int,),
    "output": (object,),
    "ungrounded": (list,),
}


@dataclass(frozen=True, slots=True)
class Replay:
    """A finished replay. ``bound`` says of what: gold set, runner, graders; outcomes are sorted by id."""

    bound: dict[str, Any]
    outcomes: tuple[Outcome, ...]
    expert_quality: float = 1.0

    @property
    def document(self) -> dict[str, Any]:
        """Everything, as it is written."""
        return {
            "schema": SCHEMA,
            **self.bound,
            "expert_quality": self.expert_quality,
            "tasks": by_task(self.outcomes, self.expert_quality),
            "overall": aggregate(self.outcomes, self.expert_quality),
            "outcomes": [outcome_json(one) for one in self.outcomes],
        }

    @property
    def content(self) -> bytes:
        """The bytes of the document: equal replays have equal bytes."""
        return canonical_bytes(self.document)


def read_replay(path: Path) -> Replay:
    """A replay from its file.

    Raises
    ------
    InputError
        Where the file is not a replay, or its figures are not those of its outcomes.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path.name}: expected a replay, cannot be read ({error.strerror or error})") from error
    try:
        data = document_of(content, path.name)
    except BundleError as error:
        raise InputError(str(error)) from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA or set(data) != _HEAD:
        raise InputError(f"{path.name}: expected a document {SCHEMA!r}, written by `geoeval replay GOLD --out FILE`")
    if not isinstance(data["outcomes"], list):
        raise InputError(f"{path.name}: 'outcomes' must be a list")
    for at, row in enumerate(data["outcomes"]):
        _check(row, f"{path.name}, outcomes[{at}]")
    bound = {key: data[key] for key in ("gold_sha256", "runner", "graders")}
    found = Replay(bound, tuple(outcome_from_json(row) for row in data["outcomes"]), data["expert_quality"])
    # Compared as values, not as bytes, so that a document that was printed with --json is as good.
    if json.loads(found.content) != json.loads(canonical_bytes(data)):
        raise InputError(f"{path.name}: its figures are not those of its outcomes; it was changed, replay again")
    return found


def _check(row: Any, where: str) -> None:
    if not isinstance(row, dict) or set(row) != set(_KINDS):
        raise InputError(f"{where}: expected exactly the keys {sorted(_KINDS)}")
    for key, kinds in _KINDS.items():
        value = row[key]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds and object not in kinds):
            raise InputError(f"{where}: {key!r} must be {' or '.join(one.__name__ for one in kinds)}, got {value!r}")
    if (row["correct"] is None) == row["accepted"] or (row["accepted"] and row["deferred"]):
        raise InputError(f"{where}: 'correct' must be null exactly where nothing was accepted")
    if row["cost"] < 0 or row["escalations"] < 0:
        raise InputError(f"{where}: 'cost' and 'escalations' must be at least 0")
