"""Evidence of product gates: what one file decides, and which findings on record still stand.

Own       a file decides ``pass`` or ``fail``, or nothing, if it is incomplete or holds what is not understood.
Record    an earlier file that is not clean stands until a later one that is names its checksum in ``supersedes``.
          That one may be an earlier file, too, or one that was superseded itself.
Dates     ``dated`` is an ISO date, or one with a time. A date is the whole day; a time without an offset is UTC.
          Later means: begins after the other has ended. Without a date nothing is later, and nothing is earlier.
Order     a finding that stands comes before what cannot be decided, and that before a pass.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from geoeval.errors import nearest_spelling
from geoeval.evidence.canonical import digest
from geoeval.model import Status

#: What evidence of protected storage names beside the rest.
VAULT = ("store", "credentials", "access_log")

#: Everything that an evidence file may hold. ``note`` is free.
KEYS = ("gate", "decision", "signed_by", "evidence", "open_findings", "dated", "supersedes", "note", *VAULT)

_SHA256 = re.compile("[0-9a-f]{64}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
_TIME = re.compile(rf"{_DATE.pattern}[T ]{_CLOCK}(Z|[+-][0-9]{{2}}:[0-9]{{2}})?")
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an evidence file amounts to by itself.

    Parameters
    ----------
    file, sha256
        As bound.
    status, reason, said
        What it decides, and why it does not pass, in words.
    known
        True where it is the file that was bound, and about the gate. Nothing supersedes another one.
    closes
        True where it passes but for its date, so that it may supersede. On leakage it also says that no finding is
        open.
    span
        First and last moment of its date; None without a date that can be read.
    misdated
        True where it has a date that cannot be read.
    supersedes
        Checksums that it names.
    """

    file: str
    sha256: str
    status: Status
    reason: str | None
    said: str
    known: bool = False
    closes: bool = False
    span: tuple[datetime, datetime] | None = None
    misdated: bool = False
    supersedes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Standing:
    """What the bound evidence and the record amount to together; ``said`` has one sentence a file that holds it up."""

    status: Status
    reason: str | None
    said: tuple[str, ...] = ()


def read_evidence(gate: str, file: str, sha256: str, path: Path) -> Evidence:
    """What one file decides about a gate.

    Parameters
    ----------
    gate
        Name of the product gate.
    file, sha256
        The file as the configuration names it, and the checksum that it is bound by.
    path
        Where it lies.
    """
    try:
        data = path.read_bytes()
    except (OSError, ValueError):
        return Evidence(file, sha256, "not_evaluable", "evidence_missing", "is not there, or cannot be read")
    if digest(data) != sha256:
        return Evidence(file, sha256, "not_evaluable", "evidence_mismatch", "is not the file that was bound")
    try:
        content = json.loads(data, object_pairs_hook=_once, parse_constant=_refused)
    except (ValueError, RecursionError):
        return Evidence(file, sha256, "not_evaluable", "evidence_mismatch", "is not JSON, or has a key twice")
    if not isinstance(content, Mapping) or content.get("gate") != gate:
        return Evidence(file, sha256, "not_evaluable", "evidence_mismatch", "is not about this gate")
    return _weighed(file, sha256, content)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are there once: of two, no reader could say which counts."""
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a key is there twice")
    return out


def _refused(text: str) -> float:
    raise ValueError(f"{text} is no JSON number")


def _weighed(file: str, sha256: str, content: Mapping[str, Any]) -> Evidence:
    """The file that was bound, about the gate: what it decides."""
    dated = content.get("dated")
    span = None if dated is None else date_span(dated)
    misdated = "dated" in content and span is None
    named = content.get("supersedes", [])
    listed = isinstance(named, list) and all(isinstance(one, str) and _SHA256.fullmatch(one) for one in named)
    status, reason, said = _decided(content, listed=listed)
    closes = status == "pass" and (content["gate"] != "leakage" or "open_findings" in content)
    if misdated and status != "fail":
        status, reason, said = "not_evaluable", "evidence_mismatch", f"has no ISO date in dated: {_shown(dated)}"
    supersedes = frozenset(named) if listed else frozenset()
    return Evidence(file, sha256, status, reason, said, True, closes, span, misdated, supersedes)


def _decided(content: Mapping[str, Any], *, listed: bool) -> tuple[Status, str | None, str]:
    """Status, reason and words, but for the date."""
    if content.get("decision") == "fail":
        return "fail", None, "decides fail"
    count = content.get("open_findings", 0)
    if type(count) is not int or count != 0:
        return "fail", None, f"has open_findings {_shown(count)}"
    unknown = [key for key in content if key not in KEYS]
    if unknown:
        said = f"has the unknown key {_shown(unknown[0])}; {nearest_spelling(unknown[0], KEYS)}"
        return "not_evaluable", "evidence_mismatch", said
    if not listed:
        return "not_evaluable", "evidence_mismatch", "has in supersedes what is no list of checksums"
    required = ("signed_by", *(VAULT if content["gate"] == "protected_storage_isolation" else ()))
    missing = [key for key in required if not _is_text(content.get(key))]
    if content.get("decision") != "pass":
        missing.insert(0, "decision")
    if not _rests_on(content.get("evidence")):
        missing.append("evidence")
    if missing:
        return "not_evaluable", "evidence_missing", f"is incomplete: {', '.join(missing)}"
    return "pass", None, ""


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _rests_on(evidence: object) -> bool:
    """True where a decision names at least one piece of evidence, each with a checksum."""
    return (
        isinstance(evidence, list)
        and len(evidence) > 0
        and all(
            isinstance(entry, Mapping)
            and _is_text(entry.get("name"))
            and isinstance(entry.get("sha256"), str)
            and _SHA256.fullmatch(entry["sha256"]) is not None
            for entry in evidence
        )
    )


def _shown(value: object) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a table"
    text = repr(value) if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def date_span(text: object) -> tuple[datetime, datetime] | None:
    """First and last moment of an ISO date, with or without a time; None for anything else.

    Examples
    --------
    >>> first, last = date_span("2026-03-31")
    >>> (first.isoformat(), last.isoformat())
    ('2026-03-31T00:00:00+00:00', '2026-03-31T23:59:59.999999+00:00')
    >>> date_span("2026-03-31T12:00:00+02:00")[0].isoformat()
    '2026-03-31T10:00:00+00:00'
    >>> date_span("2026-02-30") is date_span("yesterday") is date_span(20260331) is None
    True
    """
    if not isinstance(text, str):
        return None
    whole_day = _DATE.fullmatch(text) is not None
    if not whole_day and _TIME.fullmatch(text) is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment, moment + timedelta(days=1, microseconds=-1) if whole_day else moment


def standing(bound: Evidence, earlier: Sequence[Evidence]) -> Standing:
    """What the bound evidence and the earlier files on record amount to.

    Parameters
    ----------
    bound
        The evidence that the gate rests on now.
    earlier
        What was on record before.

    Returns
    -------
    Standing
        ``fail`` where a finding stands, ``not_evaluable`` where something on record cannot be read or decided.

    Examples
    --------
    >>> import hashlib
    >>> march, april = date_span("2026-03-01"), date_span("2026-04-01")
    >>> old = Evidence("old.json", "a" * 64, "fail", None, "decides fail", known=True, span=march)
    >>> new = Evidence("new.json", "b" * 64, "pass", None, "", known=True, closes=True, span=april)
    >>> standing(new, [old])
    Standing(status='fail', reason=None, said=("'old.json' decides fail, and no newer evidence supersedes it",))
    >>> from dataclasses import replace
    >>> standing(replace(new, supersedes=frozenset({"a" * 64})), [old]).status
    'pass'
    """
    every = (bound, *earlier)
    gone = _superseded(every, misdated=False)
    # Would be superseded, were it not for a date that nobody can read: that decides nothing.
    unclear = _superseded(every, misdated=True) - gone
    rows: list[tuple[Status, str | None, str]] = [(bound.status, bound.reason, f"{bound.file!r} {bound.said}")]
    for one in earlier:
        if one.known and one.sha256 in gone:
            continue
        if one.known and one.sha256 in unclear:
            said = f"{one.file!r} {one.said}, and a date that cannot be read decides whether it is superseded"
            rows.append(("not_evaluable", "evidence_mismatch", said))
        else:
            more = ", and no newer evidence supersedes it" if one.known else ""
            rows.append((one.status, one.reason, f"{one.file!r} {one.said}{more}"))
    for status in ("fail", "not_evaluable"):
        held = [row for row in rows if row[0] == status]
        if held:
            return Standing(held[0][0], held[0][1], tuple(row[2] for row in held))
    return Standing("pass", None)


def _superseded(every: Iterable[Evidence], *, misdated: bool) -> frozenset[str]:
    """Checksums of files that a later file settles, one step after the other."""
    files = [one for one in every if one.known]
    gone: frozenset[str] = frozenset()
    while True:
        more = frozenset(
            old.sha256
            for old in files
            for new in files
            if old.sha256 in new.supersedes
            and (new.closes or new.sha256 in gone)
            and _later(new, old, misdated=misdated)
        )
        if more <= gone:
            return gone
        gone |= more


def _later(new: Evidence, old: Evidence, *, misdated: bool) -> bool:
    """True where a file is newer than another; with ``misdated`` also where a date cannot be read."""
    if new.span is None or old.span is None:
        return misdated and (new.misdated or old.misdated)
    return new.span[0] > old.span[1]
