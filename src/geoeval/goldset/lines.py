"""JSON Lines, read strictly: every line is one object, and what is wrong with it is said with file and line.

Refused       a missing file, a blank line, text that is not UTF-8 or not JSON, ``NaN``, a key that stands twice, whole
              numbers of 2**53 and more, unknown keys. Nothing is skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geoeval.errors import BundleError, InputError, nearest_spelling
from geoeval.evidence.canonical import canonical_bytes

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Line:
    """One object, where it stands, and the bytes that it was read from (without the end of the line)."""

    where: str
    data: dict[str, Any]
    raw: bytes


def read_lines(path: Path, what: str) -> tuple[Line, ...]:
    """Every line of a file as an object.

    Parameters
    ----------
    path
        A JSON Lines file.
    what
        What it should be, for the message where it is missing.

    Raises
    ------
    InputError
        Naming file and line.
    """
    if not path.is_file():
        raise InputError(f"{path.name}: expected {what} (JSON Lines), found no such file; check the path")
    try:
        whole = path.read_bytes().removeprefix(_BOM)
    except OSError as error:
        raise InputError(f"{path.name}: cannot be read ({error.strerror or error})") from error
    rows = whole.split(b"\n")
    if rows[-1] == b"":
        rows.pop()
    return tuple(parse_line(row.removesuffix(b"\r"), f"{path.name}, line {at}") for at, row in enumerate(rows, start=1))


def parse_line(raw: bytes, where: str) -> Line:
    """One line as an object.

    Examples
    --------
    >>> parse_line(b'{"task": "classify"}', "gold.jsonl, line 1").data
    {'task': 'classify'}
    >>> parse_line(b'{"a": 1, "a": 2}', "gold.jsonl, line 2")
    Traceback (most recent call last):
    geoeval.errors.InputError: gold.jsonl, line 2: key 'a' stands twice in one object; keep one
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, value in pairs:
            if key in out:
                raise InputError(f"{where}: key {key!r} stands twice in one object; keep one")
            out[key] = value
        return out

    def refuse(word: str) -> None:
        raise InputError(f"{where}: {word} is not JSON; leave out what is undefined, or write null")

    if not raw.strip():
        raise InputError(f"{where}: expected one JSON object, found a blank line; remove it")
    try:
        data = json.loads(raw.decode("utf-8"), object_pairs_hook=once, parse_constant=refuse)
        if not isinstance(data, dict):
            raise InputError(f"{where}: expected one JSON object, found {type(data).__name__}")
        canonical_bytes(data, None)
    except (BundleError, ValueError, RecursionError) as error:
        raise InputError(f"{where}: is not one JSON object ({error})") from error
    return Line(where, data, raw)


def only_keys(line: Line, required: Iterable[str], optional: Iterable[str] = ()) -> None:
    """Refuse a line that lacks a key, or has one that is not known.

    Examples
    --------
    >>> only_keys(parse_line(b'{"tsk": "x"}', "gold.jsonl, line 1"), [], ["task"])
    Traceback (most recent call last):
    geoeval.errors.InputError: gold.jsonl, line 1: unknown key 'tsk'; did you mean 'task'?
    """
    needed = tuple(required)
    known = {*needed, *optional}
    for key in line.data:
        if key not in known:
            raise InputError(f"{line.where}: unknown key {key!r}; {nearest_spelling(key, known)}")
    for key in needed:
        if key not in line.data:
            raise InputError(f"{line.where}: expected a key {key!r}, found {sorted(line.data)}")


def text_of(line: Line, key: str) -> str:
    """A text that is not blank.

    Examples
    --------
    >>> text_of(parse_line(b'{"task": 3}', "gold.jsonl, line 1"), "task")
    Traceback (most recent call last):
    geoeval.errors.InputError: gold.jsonl, line 1: 'task' must be text that is not blank, got 3
    """
    value = line.data[key]
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{line.where}: {key!r} must be text that is not blank, got {value!r}")
    return value
