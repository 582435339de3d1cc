"""The record of one prediction: the one parser of what a candidate said.

``{"model": "a", "subjectKey": "16 hex", "split": "test", "truth": {"label": 4}, "prediction": {"label": 4,
"confidence": 0.97} | null}``. The label's key and the allowed labels come from :class:`RecordShape`. A number that is
not finite, a key that occurs twice and a key that nobody declared are refused: a misspelt key would be silently lost.
A confidence is kept to 12 significant digits, as it stands in evidence, so that a threshold accepts what it was chosen
from.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from geoeval.errors import InputError, nearest_spelling
from geoeval.evidence.canonical import SAFE_INTEGER, significant
from geoeval.selection.policy import AbstentionPolicy
from geoeval.selection.settings import FIXED_KEYS, SPLITS, RecordShape, Split

_KEY = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What a candidate offered: position of its label among the allowed ones, and its confidence in [0, 1]."""

    label: int
    confidence: float


@dataclass(frozen=True, slots=True)
class Record:
    """One prediction.

    ``reference`` is the position of the right label among the allowed ones; ``suggestion`` is None where the candidate
    offered nothing; ``place`` says file and line, for messages only.
    """

    model: str
    subject: str
    split: Split
    reference: int
    suggestion: Suggestion | None
    quality: str | None = None
    cluster: str = ""
    id: str | None = None
    place: str = ""

    @property
    def content(self) -> tuple[Any, ...]:
        """All that is said, without the place: what records are sorted and hashed by."""
        said = self.suggestion
        return (
            self.model,
            self.subject,
            self.split,
            self.id or "",
            self.cluster,
            self.quality or "",
            self.reference,
            -1 if said is None else said.label,
            -1.0 if said is None else said.confidence,
        )

    @property
    def case(self) -> tuple[str, str, int, str]:
        """What was asked, whichever model answered."""
        return (self.subject, self.id or "", self.reference, self.quality or "")


def json_object(text: bytes, where: str) -> dict[str, Any]:
    """A line as one JSON object: UTF-8, no key twice, no NaN.

    Raises
    ------
    InputError
        Naming the place.

    Examples
    --------
    >>> json_object(b'{"a": NaN}', "p.jsonl, line 3")
    Traceback (most recent call last):
    geoeval.errors.InputError: p.jsonl, line 3: is not JSON: NaN is no number in JSON
    """
    try:
        found = json.loads(text.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: is not UTF-8 text (byte {error.start} of the line)") from error
    except RecursionError as error:
        raise InputError(f"{where}: is nested too deeply to be a record") from error
    except ValueError as error:
        raise InputError(f"{where}: is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise InputError(f"{where}: expected one JSON object, found {_shown(found)}")
    return found


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in pairs:
        if key in out:
            raise ValueError(f"the key {key!r} occurs twice")
        out[key] = value
    return out


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number in JSON")


def parse_record(
    data: Mapping[str, Any], shape: RecordShape, where: str = "record", policy: AbstentionPolicy | None = None
) -> Record:
    """A record from its JSON.

    Parameters
    ----------
    shape
        Keys and labels.
    where
        File and line, put before each message.
    policy
        Without one, a record may carry no quality, because nobody says which levels are accepted.

    Raises
    ------
    InputError
        Naming the place and the key.

    Examples
    --------
    >>> shape = RecordShape(labels=(1, 2, 3), label="bristolType")
    >>> line = {"model": "m", "subjectKey": "e6" + 14 * "0", "split": "test", "truth": {"bristolType": 2}}
    >>> found = parse_record({**line, "prediction": {"bristolType": 3, "confidence": 0.5}}, shape)
    >>> found.reference, found.suggestion
    (1, Suggestion(label=2, confidence=0.5))
    >>> parse_record(line, shape, "p.jsonl, line 7")
    Traceback (most recent call last):
    geoeval.errors.InputError: p.jsonl, line 7: 'prediction' is missing; it is null where nothing was offered
    """
    _check_keys(data, shape, where, policy)
    model, key, split = data["model"], data["subjectKey"], data["split"]
    if not isinstance(model, str) or not model or model != model.strip() or not model.isprintable():
        raise InputError(f"{where}: model must be a printable text without blanks around it, got {_shown(model)}")
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise InputError(f"{where}: subjectKey must be 16 hexadecimal digits in lower case, got {_shown(key)}")
    if not isinstance(split, str) or split not in SPLITS:
        raise InputError(f"{where}: split must be one of {', '.join(map(repr, SPLITS))}, got {_shown(split)}")
    truth = _table(data["truth"], {shape.label}, f"{where}: truth")
    return Record(
        model=model,
        subject=key,
        split=split,
        reference=_label(truth[shape.label], shape, f"{where}: truth.{shape.label}"),
        suggestion=parse_suggestion(data["prediction"], shape, f"{where}: prediction"),
        quality=_quality(data, shape, where, policy),
        cluster=_cluster(data, shape, where),
        id=None if shape.id is None else _name(data, shape.id, where),
        place=where,
    )


def parse_suggestion(value: Any, shape: RecordShape, where: str = "prediction") -> Suggestion | None:
    """What a candidate said, as it stands in a record or arrives live; None where it offered nothing.

    Nothing is refused here for being too unsure: that is the policy's part, see
    :func:`geoeval.selection.policy.abstention`.

    Raises
    ------
    InputError
        Where the answer is not one of the allowed labels with a confidence in [0, 1].

    Examples
    --------
    >>> shape = RecordShape(labels=("forest", "water"))
    >>> parse_suggestion({"label": "water", "confidence": 0.0}, shape)
    Suggestion(label=1, confidence=0.0)
    >>> parse_suggestion({"label": "water", "confidence": 97}, shape)
    Traceback (most recent call last):
    geoeval.errors.InputError: prediction.confidence: must lie in [0, 1], got 97; is it a percentage?
    """
    if value is None:
        return None
    table = _table(value, {shape.label, "confidence"}, where)
    found = table["confidence"]
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise InputError(f"{where}.confidence: must be a number, got {_shown(found)}")
    if not (math.isfinite(found) and 0 <= found <= 1):
        raise InputError(f"{where}.confidence: must lie in [0, 1], got {_shown(found)}; is it a percentage?")
    return Suggestion(_label(table[shape.label], shape, f"{where}.{shape.label}"), significant(float(found)))


def _check_keys(data: Mapping[str, Any], shape: RecordShape, where: str, policy: AbstentionPolicy | None) -> None:
    needed = {*FIXED_KEYS}
    if shape.cluster not in ("subjectKey", "none"):
        needed.add(shape.cluster)
    if shape.id is not None:
        needed.add(shape.id)
    for key in sorted(needed - set(data)):
        hint = "; it is null where nothing was offered" if key == "prediction" else ""
        raise InputError(f"{where}: {key!r} is missing{hint}")
    known = {*needed, *shape.ignore}
    levels = policy is not None and policy.quality is not None
    for key in sorted(set(data) - known - ({shape.quality} if levels else set())):
        if key == shape.quality:
            raise InputError(
                f"{where}: carries {key!r}, and no abstention policy says which levels are accepted; name one under "
                f"[abstention], or list {key!r} under ignore"
            )
        raise InputError(f"{where}: unknown key {key!r}; {nearest_spelling(key, known)}, or list it under ignore")


def _table(value: Any, keys: set[str], where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{where}: must be an object with {', '.join(map(repr, sorted(keys)))}, got {_shown(value)}")
    for key in sorted(keys - set(value)):
        raise InputError(f"{where}.{key}: is missing")
    for key in sorted(set(value) - keys):
        raise InputError(f"{where}: unknown key {key!r}; {nearest_spelling(key, keys)}")
    return value


def _label(value: Any, shape: RecordShape, where: str) -> int:
    for at, label in enumerate(shape.labels):
        # True equals 1 and 4.0 equals 4, but neither is a label.
        if type(value) is type(label) and value == label:
            return at
    raise InputError(f"{where}: must be one of {list(shape.labels)!r}, got {_shown(value)}")


def _quality(data: Mapping[str, Any], shape: RecordShape, where: str, policy: AbstentionPolicy | None) -> str | None:
    if policy is None or policy.quality is None:
        return None
    rule = policy.quality
    if shape.quality not in data:
        if rule.required:
            raise InputError(f"{where}: {shape.quality!r} is missing; the policy {policy.name!r} requires it")
        return None
    value, known = data[shape.quality], [*rule.accepted, *rule.refused]
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{where}: {shape.quality} must be one of {', '.join(map(repr, known))}, got {_shown(value)}")
    return value


def _cluster(data: Mapping[str, Any], shape: RecordShape, where: str) -> str:
    if shape.cluster == "none":
        return ""
    return str(data["subjectKey"]) if shape.cluster == "subjectKey" else _name(data, shape.cluster, where)


def _name(data: Mapping[str, Any], key: str, where: str) -> str:
    value = data[key]
    if isinstance(value, str) and value.strip() and value.isprintable():
        return value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < SAFE_INTEGER:
        return str(value)
    raise InputError(f"{where}: {key} must be a printable text or a whole number, got {_shown(value)}")


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."
