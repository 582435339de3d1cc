"""What a manifest may hold, field by field: a hash proves that nothing changed since, and not that it makes sense.

Plain checks, because a manifest may hold very many samples.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from geoeval.errors import GeoevalError, InputError, nearest_spelling
from geoeval.splits.assets import path_problem
from geoeval.splits.blanks import known, tidy
from geoeval.splits.record import ASSETS, IDENTITIES, MEMBERS, REVEALING, box_problem
from geoeval.splits.seals import FEW, PADDED, is_sealed
from geoeval.splits.settings import SplitSettings

#: Every field of a manifest, beside its own hash.
KEYS = frozenset(
    {
        "schema",
        "set",
        "mode",
        "production_accuracy_use_allowed",
        "source_sha256",
        "settings",
        "perceptual",
        "gates",
        "seal",
        "splits",
        "unknown",
        "flat",
        "samples",
    }
)

_HASH = re.compile("[0-9a-f]{64}")
_SEALED_HASH = re.compile("hmac-sha256:[0-9a-f]{64}")
_CODE = re.compile("[0-9a-f]{16}")
_BASE64 = re.compile("[A-Za-z0-9+/]*={0,2}")
_PAD = "hmac-pad:"
_BYTES_A_LOOK = 128
_RADII = ("radius", "confirmed_radius", "confirming_bits")
_STATUS = ("pass", "fail", "not_evaluable")
_UNKNOWN = (*IDENTITIES, *MEMBERS, "bbox", "label_sha256", "perceptual_hash")

#: What is wrong with a value; None where nothing is.
Problem = str | None


def _is_int(value: object) -> bool:
    return type(value) is int


def _is_number(value: object) -> bool:
    """A number that a float can hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)


def _text(value: Any) -> Problem:
    return None if isinstance(value, str) and value else "must be text"


def _id(value: Any) -> Problem:
    if not isinstance(value, str):
        return "must be text"
    return None if known(value) and tidy(value) == value else "must say something, without characters nobody sees"


def _path(value: Any) -> Problem:
    return path_problem(value) if isinstance(value, str) else "must be a path as text"


def _hash(value: Any) -> Problem:
    if isinstance(value, str) and (_HASH.fullmatch(value) or _SEALED_HASH.fullmatch(value)):
        return None
    return "must be 64 hexadecimal digits in lower case, or a sealed hash (hmac-sha256:)"


def _base64(text: str) -> bool:
    return len(text) % 4 == 0 and _BASE64.fullmatch(text) is not None


def _padded(value: str) -> bool:
    return value.startswith(_PAD) and _base64(value.removeprefix(_PAD))


def _perceptual(value: Any) -> Problem:
    if isinstance(value, str) and (_CODE.fullmatch(value) or _padded(value)):
        return None
    return "must be 16 hexadecimal digits in lower case, or under a pad (hmac-pad:)"


def _looks(value: Any) -> Problem:
    if isinstance(value, str) and _padded(value):
        return None
    whole = isinstance(value, str) and value and _base64(value)
    size = len(value) // 4 * 3 - value.count("=") if whole else 0
    return None if size and size % _BYTES_A_LOOK == 0 else f"must be base64 of {_BYTES_A_LOOK} bytes a look"


def _sketch(value: Any) -> Problem:
    if isinstance(value, str) and (value == FEW or _padded(value) or (value and _base64(value))):
        return None
    return "must be a label sketch as base64"


def _members(value: Any) -> Problem:
    return None if _texts(value) else "must be a list of texts"


def _box(value: Any) -> Problem:
    fits = isinstance(value, list | tuple) and len(value) == 4 and all(map(_is_number, value))
    return None if fits else "must be four numbers"


def _strata(value: Any) -> Problem:
    whole = isinstance(value, Mapping) and all(isinstance(one, str) for pair in value.items() for one in pair)
    return None if whole else "must be a table of texts"


_ENTRY: Mapping[str, Callable[[Any], Problem]] = {
    **dict.fromkeys((*IDENTITIES, "task", "split", "crs", "perceptual_recipe"), _text),
    **dict.fromkeys(ASSETS, _path),
    **dict.fromkeys(REVEALING, _hash),
    **dict.fromkeys(MEMBERS, _members),
    "sample_id": _id,
    "perceptual_hash": _perceptual,
    "perceptual_looks": _looks,
    "label_sketch": _sketch,
    "bbox": _box,
    "strata": _strata,
}


def check_content(content: Mapping[str, Any], name: str, roles: Sequence[str]) -> None:
    """Refuse a manifest whose fields are not of their kind, or do not fit each other.

    Parameters
    ----------
    content
        Everything but its own hash.
    name
        File, for messages.
    roles
        The splits of its set.

    Raises
    ------
    InputError
        Naming the manifest, the sample and the field.
    """
    if not isinstance(content["source_sha256"], str) or not _HASH.fullmatch(content["source_sha256"]):
        _refuse(name, "source_sha256", "must be 64 hexadecimal digits", content["source_sha256"])
    _check_settings(content["settings"], name)
    _check_perceptual(content["perceptual"], content["settings"], name)
    _check_gates(content["gates"], name)
    samples = content["samples"]
    if not isinstance(samples, list | tuple):
        _refuse(name, "samples", "must be a list of samples", samples)
    sealed = _check_seal(content["seal"], name, roles)
    for at, entry in enumerate(samples):
        check_entry(entry, name, at)
        _check_sealed(entry, sealed, name)
    ids = frozenset(entry["sample_id"] for entry in samples)
    _check_counts(content["splits"], Counter(entry["split"] for entry in samples), name)
    if not _texts(content["flat"]) or not ids.issuperset(content["flat"]):
        _refuse(name, "flat", "must be a list of ids of its samples", content["flat"])
    unknown = content["unknown"]
    if not isinstance(unknown, Mapping):
        _refuse(name, "unknown", "must be a table of ids by field", unknown)
    for field, names in unknown.items():
        if field not in _UNKNOWN or not _texts(names) or not ids.issuperset(names):
            _refuse(name, f"unknown.{field}", "must be a known field with ids of its samples", names)


def check_whole(content: Mapping[str, Any], name: str, gates: Sequence[str]) -> None:
    """Refuse a manifest without one of its gates, with another one, or with bounds in no system.

    Raises
    ------
    InputError
        Naming the manifest, the sample and the field.
    """
    found = content["gates"]
    if set(found) != set(gates):
        _refuse(name, "gates", f"must be {', '.join(gates)}", list(found))
    for gate, says in found.items():
        if set(says) != {"status", "reason", "count"}:
            _refuse(name, f"gates.{gate}", "must say status, reason and count", says)
    for entry in content["samples"]:
        if "bbox" in entry and not known(entry.get("crs")):
            _refuse(_place(name, entry), "crs", "must name the system of the bbox", entry.get("crs"))


def check_entry(entry: Any, name: str, at: int = 0) -> None:
    """Refuse an entry of a manifest that says something of no known field, or of the wrong kind.

    Examples
    --------
    >>> check_entry({"sample_id": "a", "split": "test", "bbox": "x"}, "protected.json")
    Traceback (most recent call last):
    geoeval.errors.InputError: protected.json, sample 'a': bbox must be four numbers, got 'x'
    """
    if not isinstance(entry, Mapping):
        _refuse(name, f"samples[{at}]", "must be a table of fields", entry)
    for field in ("sample_id", "split"):
        if field not in entry:
            raise InputError(f"{_place(name, entry, at)}: {field} is required and missing")
    for field, value in entry.items():
        check = _ENTRY.get(field)
        if check is None:
            raise InputError(f"{_place(name, entry, at)}: unknown field {field!r}; {nearest_spelling(field, _ENTRY)}")
        problem = check(value)
        if problem is not None:
            _refuse(_place(name, entry, at), field, problem, value)
    if "crs" in entry:
        problem = box_problem(entry.get("bbox", (0, 0, 0, 0)), entry["crs"])
        if problem is not None:
            raise InputError(f"{_place(name, entry, at)}: {problem}")


def _place(name: str, entry: Mapping[str, Any], at: int = 0) -> str:
    own = entry.get("sample_id")
    return f"{name}, sample {own!r}" if isinstance(own, str) else f"{name}, samples[{at}]"


def _refuse(where: str, field: str, problem: str, value: object) -> NoReturn:
    raise InputError(f"{where}: {field} {problem}, got {value!r:.80}")


def _check_settings(settings: Any, name: str) -> None:
    """The settings as :meth:`SplitSettings.described` writes them, within the limits of the settings themselves."""
    kinds: Mapping[str, Callable[[Any], bool]] = {
        "shares": lambda one: isinstance(one, Mapping) and all(map(_is_number, one.values())),
        "strata": _texts,
        "background": lambda one: one is None or (_texts(one) and len(one) == 2),
        "buffer_m": _is_number,
        "buffer_mode": lambda one: isinstance(one, str),
        "block_m": lambda one: one is None or _is_number(one),
        **dict.fromkeys(_RADII, _is_int),
        "labels_in_images": lambda one: isinstance(one, bool),
        "identities": _texts,
        "required": _texts,
        "required_splits": _texts,
    }
    if not isinstance(settings, Mapping):
        _refuse(name, "settings", "must be a table", settings)
    if set(settings) != set(kinds):
        differ = sorted(map(str, set(settings) ^ set(kinds)))
        raise InputError(f"{name}: settings: fields that differ: {differ}; build it again from its source")
    for field, fits in kinds.items():
        if not fits(settings[field]):
            _refuse(name, f"settings.{field}", "is of the wrong kind", settings[field])
    try:
        plain: dict[str, Any] = {at: tuple(one) if isinstance(one, list) else one for at, one in settings.items()}
        SplitSettings(**plain)
    except GeoevalError as error:
        raise InputError(f"{name}: settings.{error}") from error


def _check_perceptual(said: Any, settings: Mapping[str, Any], name: str) -> None:
    fields = {"recipe", "recipe_id", *_RADII}
    if not isinstance(said, Mapping) or set(said) != fields:
        _refuse(name, "perceptual", f"must be a table of {', '.join(sorted(fields))}", said)
    if not isinstance(said["recipe"], Mapping) or _text(said["recipe_id"]) is not None:
        _refuse(name, "perceptual.recipe", "must be a table, and recipe_id text", said["recipe_id"])
    for field in _RADII:
        if not _is_int(said[field]) or said[field] != settings[field]:
            _refuse(name, f"perceptual.{field}", f"must be that of the settings, {settings[field]}", said[field])


def _check_gates(gates: Any, name: str) -> None:
    """Kinds only; whether all are there, and pass, is asked afterwards."""
    if not isinstance(gates, Mapping):
        _refuse(name, "gates", "must be a table by gate", gates)
    for gate, says in gates.items():
        fits = isinstance(says, Mapping) and set(says) <= {"status", "reason", "count"}
        if not fits or says.get("status") not in _STATUS:
            _refuse(name, f"gates.{gate}", f"must say a status of {', '.join(_STATUS)}", says)
        reason, count = says.get("reason"), says.get("count", 0)
        if not (reason is None or isinstance(reason, str)) or not _is_int(count) or count < 0:
            _refuse(name, f"gates.{gate}", "must say its reason as text or null, and its count", says)


def _check_seal(seal: Any, name: str, roles: Sequence[str]) -> Mapping[str, frozenset[str]]:
    """Split to the fields that stand under a key."""
    if seal is None:
        return {}
    fields = {"algorithm", "key_check", "fields"}
    if not isinstance(seal, Mapping) or set(seal) != fields or seal["algorithm"] != "HMAC-SHA-256":
        _refuse(name, "seal", "must be null, or HMAC-SHA-256 with key_check and fields", seal)
    if not isinstance(seal["key_check"], str) or not _HASH.fullmatch(seal["key_check"]):
        _refuse(name, "seal.key_check", "must be 64 hexadecimal digits", seal["key_check"])
    said = seal["fields"]
    if not isinstance(said, Mapping) or not set(said) <= set(roles) or not all(map(_texts, said.values())):
        _refuse(name, "seal.fields", "must be lists of fields by split of this set", said)
    for role, names in said.items():
        if not set(names) <= {*REVEALING, *PADDED}:
            _refuse(name, f"seal.fields.{role}", "must name fields that can be sealed", names)
    return {role: frozenset(names) for role, names in said.items()}


def _check_sealed(entry: Mapping[str, Any], sealed: Mapping[str, frozenset[str]], name: str) -> None:
    """What is sealed is said to be, and challenge says nothing in the clear."""
    said = sealed.get(entry["split"], frozenset())
    for field in (*REVEALING, *PADDED):
        if field not in entry:
            continue
        closed = is_sealed(entry[field])
        if closed and field not in said:
            _refuse(_place(name, entry), field, "is sealed, and seal does not say so", entry[field])
        if entry["split"] == "challenge" and not closed:
            _refuse(_place(name, entry), field, "of a challenge sample must be sealed", entry[field])


def _check_counts(splits: Any, found: Counter[str], name: str) -> None:
    if not isinstance(splits, Mapping) or not all(map(_is_int, splits.values())):
        _refuse(name, "splits", "must be a table of numbers of samples by split", splits)
    if {role: n for role, n in splits.items() if n} != dict(found):
        _refuse(name, "splits", f"must count the samples, {dict(sorted(found.items()))}", dict(splits))
