"""The history of calibrations: one result a line, appended and never changed, each line chained to the one before.

A line holds ``at`` (UTC, whole seconds), ``previous`` (the hash of the line before; of nothing, 64 zeros),
``calibration`` and ``sha256``, the hash of the line without it. Whatever is changed, removed or put in between is seen
when the history is read; what is cut off at the end is not. Times live here only.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from geoeval.errors import BundleError, ConfigError, InputError
from geoeval.evidence.canonical import canonical_bytes, digest
from geoeval.goldset.lines import Line, only_keys, read_lines
from geoeval.judging.figures import Calibration, Identity, calibration_from

NOTHING = "0" * 64

_AT = "%Y-%m-%dT%H:%M:%SZ"
_AGE = re.compile(r"(\d+)([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True, slots=True)
class Recorded:
    """A result and when it was recorded."""

    at: datetime
    calibration: Calibration
    sha256: str


def parse_age(text: str) -> timedelta:
    """An age such as ``7d``, ``12h``, ``30m``, ``2w``.

    Examples
    --------
    >>> parse_age("7d").days
    7
    >>> parse_age("7")
    Traceback (most recent call last):
    geoeval.errors.ConfigError: an age is a whole number and one of s, m, h, d, w, such as 7d; got '7'
    """
    found = _AGE.fullmatch(text.strip())
    if not found:
        raise ConfigError(f"an age is a whole number and one of s, m, h, d, w, such as 7d; got {text!r}")
    try:
        return timedelta(**{_UNITS[found.group(2)]: int(found.group(1))})
    except OverflowError as error:
        raise ConfigError(f"an age of {text!r} is longer than any history") from error


def whole_seconds(now: datetime) -> datetime:
    """A time in UTC, cut to whole seconds; one without a zone is refused.

    Examples
    --------
    >>> whole_seconds(datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)).isoformat()
    '2026-01-02T03:04:05+00:00'
    """
    if now.tzinfo is None:
        raise ConfigError(f"a time needs its zone, got {now.isoformat()!r}; give it in UTC")
    return now.astimezone(UTC).replace(microsecond=0)


def read_history(path: Path) -> tuple[Recorded, ...]:
    """All results, oldest first; none where there is no file yet.

    Raises
    ------
    InputError
        Where a line is malformed or does not follow from the one before, naming file and line.
    """
    if not path.exists():
        return ()
    if path.is_file() and (whole := path.read_bytes()) and not whole.endswith(b"\n"):
        last = whole.count(b"\n") + 1
        raise InputError(f"{path.name}, line {last}: was cut short; remove that line, the results before it are whole")
    out: list[Recorded] = []
    for line in read_lines(path, "a history of calibrations"):
        out.append(_recorded(line, out[-1] if out else None))
    return tuple(out)


def _recorded(line: Line, before: Recorded | None) -> Recorded:
    only_keys(line, ("at", "previous", "calibration", "sha256"))
    data: dict[str, Any] = dict(line.data)
    told = data.pop("sha256")
    if digest(canonical_bytes(data)) != told or canonical_bytes(line.data) != line.raw:
        raise InputError(f"{line.where}: was changed: its hash is not that of what it holds; restore the history")
    if data["previous"] != (before.sha256 if before else NOTHING):
        raise InputError(f"{line.where}: does not follow from the line before; a line was removed, added or moved")
    try:
        at = datetime.strptime(str(data["at"]), _AT).replace(tzinfo=UTC)
    except ValueError as error:
        raise InputError(
            f"{line.where}: 'at' must be a time such as 2026-01-31T12:00:00Z, got {data['at']!r}"
        ) from error
    if before is not None and at < before.at:
        raise InputError(f"{line.where}: is older than the line before; results are appended in order of time")
    if not isinstance(data["calibration"], dict):
        raise InputError(f"{line.where}: 'calibration' must be an object")
    return Recorded(at, calibration_from(data["calibration"], line.where), told)


def append(path: Path, found: Calibration, now: datetime) -> Recorded:
    """Add a result at the end.

    Raises
    ------
    InputError
        Where the history is not whole, holds a result from after ``now``, or was added to meanwhile.
    """
    before = read_history(path)
    size = path.stat().st_size if path.exists() else 0
    at = whole_seconds(now)
    if before and at < before[-1].at:
        raise InputError(
            f"{path.name}: the newest result is from {before[-1].at.strftime(_AT)}, after {at.strftime(_AT)}; "
            "check the clock"
        )
    row = {
        "at": at.strftime(_AT),
        "previous": before[-1].sha256 if before else NOTHING,
        "calibration": found.document,
    }
    told = digest(canonical_bytes(row))
    try:
        with path.open("ab") as stream:
            if stream.tell() != size:
                raise InputError(f"{path.name}: somebody added a result meanwhile; calibrate again")
            stream.write(canonical_bytes({**row, "sha256": told}) + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise BundleError(f"{path.name}: cannot be written ({error.strerror or error}); check the folder") from error
    return Recorded(at, found, told)


def newest(history: tuple[Recorded, ...], identity: Identity | None = None) -> Recorded | None:
    """The newest result, of one judge, model and version of the rubric where an identity is given."""
    own = [one for one in history if identity is None or one.calibration.identity.tags == identity.tags]
    return own[-1] if own else None
