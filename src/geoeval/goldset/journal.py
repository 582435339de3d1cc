"""The journal of a replay: finished cases, one a line, so that an interrupted replay goes on where it stopped.

The first line binds the gold set, the runner and the graders; a journal of anything else is refused. A last line that
was cut short by a crash is dropped; any other line that cannot be read is refused. ``FILE.journal`` lies beside the
replay and is removed when that is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from geoeval.errors import BundleError, InputError
from geoeval.evidence.canonical import canonical_bytes
from geoeval.goldset.lines import parse_line
from geoeval.goldset.runner import Result, result_of

SCHEMA = "geoeval/replay-journal/1"


def journal_path(out: Path) -> Path:
    """Where the journal of a replay lies.

    Examples
    --------
    >>> journal_path(Path("runs/careful.json")).name
    'careful.json.journal'
    """
    return out.with_name(f"{out.name}.journal")


@dataclass(slots=True)
class Journal:
    """Finished cases by id, and the open file that the next ones go to (None keeps them in memory only)."""

    finished: dict[str, Result]
    stream: BinaryIO | None

    def add(self, case: str, result: Result) -> None:
        """Keep a finished case; it is on its way to the disk before the next one starts."""
        self.finished[case] = result
        if self.stream is not None:
            self.stream.write(canonical_bytes({"id": case, "result": asdict(result)}, None) + b"\n")
            self.stream.flush()

    def close(self) -> None:
        """Close the file, if there is one."""
        if self.stream is not None:
            self.stream.close()
            self.stream = None


def open_journal(path: Path | None, bound: Mapping[str, Any], known: set[str], *, resume: bool) -> Journal:
    """Start a journal, or go on with one.

    Parameters
    ----------
    path
        The journal; None keeps nothing.
    bound
        What the replay is of: hash of the gold set, runner, graders.
    known
        Ids of the cases.
    resume
        Go on with a journal that is there; without it, such a journal is refused.
    """
    if path is None:
        return Journal({}, None)
    head = canonical_bytes({"schema": SCHEMA, **bound}, None) + b"\n"
    try:
        if not path.exists():
            return Journal({}, _started(path, head))
        if not resume:
            raise InputError(f"{path.name}: a replay was interrupted here; go on with --resume, or remove the file")
        whole = path.read_bytes()
        kept = whole[: whole.rfind(b"\n") + 1]
        if not kept:
            path.unlink()
            return Journal({}, _started(path, head))
        if not kept.startswith(head):
            raise InputError(
                f"{path.name}: is of another gold set, runner or choice of graders; finish that replay, or remove it"
            )
        finished = _finished(kept[len(head) :], path.name, known)
        stream = path.open("r+b")
        stream.truncate(len(kept))
        stream.seek(len(kept))
    except OSError as error:
        raise BundleError(f"{path.name}: cannot be written ({error.strerror or error}); check the folder") from error
    return Journal(finished, stream)


def _started(path: Path, head: bytes) -> BinaryIO:
    stream = path.open("xb")
    stream.write(head)
    stream.flush()
    return stream


def _finished(rows: bytes, name: str, known: set[str]) -> dict[str, Result]:
    out: dict[str, Result] = {}
    for at, raw in enumerate(rows.splitlines(), start=2):
        line = parse_line(raw, f"{name}, line {at}")
        case = line.data.get("id")
        if set(line.data) != {"id", "result"} or case not in known or case in out:
            raise InputError(f"{line.where}: expected a case of the gold set that is finished once, got {case!r}")
        out[str(case)] = result_of(line.data["result"], line.where)
    return out
