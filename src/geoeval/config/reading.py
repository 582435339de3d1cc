"""A validator's complaints in plain words: where, what was found, what was probably meant."""

from __future__ import annotations

import dataclasses
import json
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from geoeval.errors import ConfigError, nearest_spelling

T = TypeVar("T")

_SHOWN = 10


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file.

    Raises
    ------
    ConfigError
        Where the file cannot be read or is not TOML, with its line.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text (byte {error.start})") from error
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: is not TOML: {error}") from error


def validated(kind: type[T], data: Mapping[str, Any], where: str = "") -> T:
    """A typed value from a table; every complaint at once, each with its position.

    Parameters
    ----------
    kind
        A dataclass.
    data
        The table as read.
    where
        Position of the table, put before each position in a message.

    Raises
    ------
    ConfigError
        With one line a complaint.
    """
    problems = list(_unknown_keys(kind, data, where))
    try:
        # As JSON, because there a list may be a tuple and a table a dataclass while everything else stays strict.
        value = TypeAdapter(kind).validate_json(json.dumps(data, default=str), strict=True)
    except ValidationError as error:
        entries = error.errors(include_url=False, include_context=True)
        problems.extend(_said(entry, where) for entry in entries if not _said_elsewhere(entry, entries))
    else:
        if not problems:
            return value
    shown = list(dict.fromkeys(problems))
    more = [f"... and {len(shown) - _SHOWN} more"] if len(shown) > _SHOWN else []
    raise ConfigError("\n".join(shown[:_SHOWN] + more))


def _said_elsewhere(entry: Any, entries: Sequence[Any]) -> bool:
    """True for unknown keys, which have their own sentence, and for a list that only seems short."""
    if entry["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return True
    place = entry["loc"]
    return entry["type"] == "too_short" and any(
        other["loc"][: len(place)] == place and len(other["loc"]) > len(place) for other in entries
    )


def options_of(kind: type[T], data: Mapping[str, Any], where: str) -> T:
    """An evaluator (or any frozen dataclass) from its table of options.

    Lists become tuples where the field is one. An unknown option is refused with the nearest spelling.

    Raises
    ------
    ConfigError
        Naming the option.

    Examples
    --------
    >>> @dataclasses.dataclass(frozen=True)
    ... class Wells:
    ...     tolerance_m: float = 5.0
    >>> options_of(Wells, {"tolerance_m": 2.5}, "evaluators[0]").tolerance_m
    2.5
    >>> options_of(Wells, {"tolerence_m": 2.5}, "evaluators[0].vector")
    Traceback (most recent call last):
    geoeval.errors.ConfigError: evaluators[0].vector: unknown key 'tolerence_m'; did you mean 'tolerance_m'?
    """
    return validated(kind, data, where)


def _unknown_keys(kind: Any, data: object, where: str) -> typing.Iterator[str]:
    """Keys that the dataclass does not have, at every depth."""
    if isinstance(data, Mapping) and dataclasses.is_dataclass(kind):
        known = {field.name for field in dataclasses.fields(kind) if field.init}
        hints = typing.get_type_hints(kind)
        for key, value in data.items():
            if key not in known:
                yield f"{where + ': ' if where else ''}unknown key {key!r}; {nearest_spelling(str(key), known)}"
            else:
                yield from _unknown_keys(hints[key], value, f"{where}.{key}" if where else str(key))
        return
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        tables = [part for part in arguments if dataclasses.is_dataclass(part)]
        if len(tables) == 1:
            yield from _unknown_keys(tables[0], data, where)
    elif origin in (tuple, list) and isinstance(data, list | tuple) and arguments:
        for i, value in enumerate(data):
            yield from _unknown_keys(arguments[0], value, f"{where}[{i}]")


def position(location: Sequence[int | str], where: str = "") -> str:
    """A position as it is written in messages.

    Examples
    --------
    >>> position(("case", 0, "options", "iou"))
    'case[0].options.iou'
    """
    text = where
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


_PHRASES: Mapping[str, str] = {
    "missing": "is required and missing",
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "dict_type": "must be a table",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dataclass_type": "must be a table",
    "string_too_short": "must not be empty",
}


def _said(entry: Any, where: str) -> str:
    """One complaint of the validator as a sentence."""
    place = position(entry["loc"], where)
    kind, found, context = entry["type"], entry["input"], entry.get("ctx", {})
    if kind == "missing":
        return f"{place}: {_PHRASES[kind]}"
    if kind == "literal_error":
        spelling = ""
        if isinstance(found, str):
            known = [part.strip("'") for part in str(context["expected"]).replace(" or ", ", ").split(", ")]
            near = nearest_spelling(found, known)
            spelling = f"; {near}" if near.startswith("did") else ""
        return f"{place}: must be one of {context['expected']}, got {_shown(found)}{spelling}"
    if kind in _PHRASES:
        return f"{place}: {_PHRASES[kind]}, got {_shown(found)}"
    if kind == "too_short":
        return f"{place}: needs at least {context.get('min_length', 1)} entry"
    if kind == "string_pattern_mismatch":
        return f"{place}: {_shown(found)} does not fit the pattern {context['pattern']}"
    return f"{place}: {entry['msg'][0].lower()}{entry['msg'][1:]}, got {_shown(found)}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
