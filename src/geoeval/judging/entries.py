"""The calibration set: made from recorded history once, stored, and hashed. What was not recorded is not in it.

History       one recorded episode a line: ``task_id`` (text), ``episode`` (object or text, as it was recorded),
              ``outcome`` (the verifier's, ``pass`` or ``fail``, or true or false), ``dimensions`` (the verifier's,
              rubric dimension to the same, or null where it cannot say).
Set           a first line with schema, hash, dimensions and number, then the entries, sorted. The hash is over the
              entries, so that another way of writing them is the same set, and one changed verdict is another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from geoeval.errors import ConfigError, InputError
from geoeval.evidence.canonical import canonical_bytes, digest
from geoeval.goldset.lines import Line, only_keys, read_lines, text_of

SCHEMA = "geoeval/calibration-set/1"

_WORDS = {"pass": True, "fail": False}


@dataclass(frozen=True, slots=True)
class Entry:
    """A recorded episode and what the verifier says of it, which a judge is held to.

    ``id``: the first 16 hex digits of the hash of task and episode.
    """

    task_id: str
    episode: Any
    outcome: bool
    dimensions: Mapping[str, bool | None]
    id: str = field(init=False)

    def __post_init__(self) -> None:
        content = canonical_bytes({"task_id": self.task_id, "episode": self.episode}, None)
        object.__setattr__(self, "id", digest(content)[:16])

    @property
    def plain(self) -> dict[str, Any]:
        """As it is hashed and written."""
        return {
            "task_id": self.task_id,
            "episode": self.episode,
            "outcome": self.outcome,
            "dimensions": dict(self.dimensions),
        }


@dataclass(frozen=True, slots=True)
class CalibrationSet:
    """Entries sorted by task and id, the rubric's dimensions sorted, and the hash of all entries."""

    entries: tuple[Entry, ...]
    dimensions: tuple[str, ...]
    sha256: str

    @property
    def content(self) -> bytes:
        """The bytes of the file."""
        head = {"schema": SCHEMA, "sha256": self.sha256, "dimensions": list(self.dimensions), "n": len(self.entries)}
        rows = [head, *(entry.plain for entry in self.entries)]
        return b"".join(canonical_bytes(row, None) + b"\n" for row in rows)


def verdict_word(value: object) -> bool | None:
    """``pass`` or true, ``fail`` or false; None for anything else.

    Examples
    --------
    >>> verdict_word("pass"), verdict_word(False), verdict_word(1)
    (True, False, None)
    """
    if isinstance(value, bool):
        return value
    return _WORDS.get(value) if isinstance(value, str) else None


def set_of(entries: Iterable[Entry]) -> CalibrationSet:
    """A set from entries in any order.

    Examples
    --------
    >>> one = Entry("t1", "said", True, {"tone": True})
    >>> two = Entry("t2", "said", True, {"tone": False})
    >>> set_of([one, two]) == set_of([two, one])
    True
    """
    ordered = tuple(sorted(entries, key=lambda one: (one.task_id, one.id)))
    dimensions = tuple(sorted(ordered[0].dimensions)) if ordered else ()
    return CalibrationSet(ordered, dimensions, digest(canonical_bytes([one.plain for one in ordered], None)))


def freeze(history: Path, *, limit: int | None = None, seed: int = 0) -> CalibrationSet:
    """A calibration set from recorded history.

    Parameters
    ----------
    history
        JSON Lines, see the module.
    limit
        Draw so many episodes; None takes all. The draw goes by the hash of seed and entry: it does not depend on the
        order of the history.
    seed
        Of the draw.

    Raises
    ------
    InputError
        For any line that breaks a rule, naming file and line, and for a history with fewer episodes than ``limit``.
    """
    entries = _entries(read_lines(history, "a recorded history"))
    if not entries:
        raise InputError(f"{history.name}: expected a recorded history, found no episodes")
    if limit is not None:
        if limit < 1:
            raise ConfigError(f"limit must be at least 1, got {limit!r}")
        if limit > len(entries):
            raise InputError(f"{history.name}: {limit} episodes were asked for, it records {len(entries)}")
        entries = sorted(entries, key=lambda one: digest(f"{seed}:{one.id}".encode()))[:limit]
    return set_of(entries)


def read_set(path: Path) -> CalibrationSet:
    """A stored calibration set, its hash checked.

    Raises
    ------
    InputError
        For any line that breaks a rule, and where the hash is not that of the entries.
    """
    lines = read_lines(path, "a calibration set")
    if not lines or lines[0].data.get("schema") != SCHEMA:
        raise InputError(f"{path.name}, line 1: expected {SCHEMA!r}; make the set by `geoeval judge freeze`")
    head = lines[0]
    only_keys(head, ("schema", "sha256", "dimensions", "n"))
    found = set_of(_entries(lines[1:]))
    told = (head.data["n"], head.data["dimensions"], head.data["sha256"])
    if told != (len(found.entries), list(found.dimensions), found.sha256):
        raise InputError(
            f"{head.where}: number, dimensions or hash are not those of the entries; the set was changed, "
            "restore it or freeze a new one under another name"
        )
    if not found.entries:
        raise InputError(f"{path.name}: expected a calibration set, found no entries")
    return found


def _entries(lines: Sequence[Line]) -> list[Entry]:
    out: list[Entry] = []
    seen: dict[str, str] = {}
    for line in lines:
        entry = _entry(line)
        if out and set(entry.dimensions) != set(out[0].dimensions):
            differing = sorted(set(entry.dimensions) ^ set(out[0].dimensions))
            raise InputError(
                f"{line.where}: 'dimensions' must be those of {lines[0].where}; {differing} differ, "
                "write null where the verifier cannot say"
            )
        if entry.id in seen:
            raise InputError(f"{line.where}: the episode of {seen[entry.id]} stands here again; keep one")
        seen[entry.id] = line.where
        out.append(entry)
    return out


def _entry(line: Line) -> Entry:
    only_keys(line, ("task_id", "episode", "outcome", "dimensions"))
    episode = line.data["episode"]
    if not isinstance(episode, dict | str) or not (episode.strip() if isinstance(episode, str) else episode):
        raise InputError(f"{line.where}: 'episode' must be an object or text that is not empty, got {episode!r}")
    outcome = verdict_word(line.data["outcome"])
    if outcome is None:
        raise InputError(f"{line.where}: 'outcome' must be 'pass' or 'fail', got {line.data['outcome']!r}")
    given = line.data["dimensions"]
    if not isinstance(given, dict) or not given or not all(name.strip() for name in given):
        raise InputError(f"{line.where}: 'dimensions' must name at least one dimension of the rubric, got {given!r}")
    dimensions: dict[str, bool | None] = {}
    for name, value in sorted(given.items()):
        dimensions[name] = verdict_word(value)
        if dimensions[name] is None and value is not None:
            raise InputError(f"{line.where}: dimension {name!r} must be 'pass', 'fail' or null, got {value!r}")
    return Entry(text_of(line, "task_id"), episode, outcome, dimensions)
