"""The sample record: what a source must say about each sample, and what counts as not said.

A value that is null, empty, invisible or a word such as ``"unknown"`` never links two samples: two unknown owners are
not one owner. Such values are listed, and refused where a field is required.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Literal, get_args

from geoeval.errors import GeoevalError, InputError, nearest_spelling
from geoeval.evidence.canonical import canonical_bytes, digest
from geoeval.splits.blanks import known, tidy

Role = Literal["train", "val", "calibration", "test", "background-test", "challenge"]
ROLES: tuple[str, ...] = get_args(Role)

#: From least to most protected; of two samples that are too close, the less protected one leaves.
DEVELOPMENT: tuple[str, ...] = ("train", "val", "calibration")
PROTECTED: tuple[str, ...] = ("background-test", "test", "challenge")
#: What an evaluator may see.
EVALUATED: tuple[str, ...] = ("test", "background-test")
QUARANTINE = "quarantine"

ALIASES: Mapping[str, str] = {"validation": "val"}

#: Fields with one identifier, which two samples of different splits may not share.
IDENTITIES: tuple[str, ...] = (
    "sample_id",
    "group_id",
    "source_family",
    "temporal_family",
    "acquisition_id",
    "parent_raster_id",
)
#: Fields with several identifiers.
MEMBERS: tuple[str, ...] = ("native_feature_ids", "object_ids")

#: Asset fields: a path relative to the root of the source, each beside a hash of the same name.
ASSETS: tuple[str, ...] = ("raw_image", "processed_image", "label", "provenance")

#: Hashes that tell who is in a set.
REVEALING: tuple[str, ...] = (
    "raw_image_sha256",
    "processed_image_sha256",
    "label_sha256",
    "provenance_sha256",
    "label_geometry_hash",
    "record_sha256",
)

#: What no record can be without.
ALWAYS: tuple[str, ...] = ("sample_id", "task")

#: What the contract asks of every sample, beside its id.
CONTRACT: tuple[str, ...] = (
    "task",
    "group_id",
    "source_family",
    "temporal_family",
    "acquisition_id",
    "parent_raster_id",
    "native_feature_ids",
    "object_ids",
    "bbox",
    "raw_image_sha256",
    "processed_image_sha256",
    "label_sha256",
    "perceptual_hash",
    "label_geometry_hash",
    "record_sha256",
)

_HEX = frozenset("0123456789abcdef")

#: Left out of the record hash: the split, itself, where files lie, and bits that move between library versions although
#: the bytes they come from are bound already.
_UNHASHED = frozenset({"split", "record_sha256", "perceptual_hash", "perceptual_recipe", *ASSETS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One sample of a source, as declared or with its hashes recomputed.

    Parameters
    ----------
    sample_id, task
        Always there. The id is unique in a source.
    split
        One of :data:`ROLES`; None leaves the choice to the builder.
    group_id
        Spatial group. The other identities say which source, period, acquisition and parent raster it came from.
    native_feature_ids, object_ids
        Identifiers of the features in their own source, and of the objects they show.
    bbox
        Least x, least y, most x, most y in ``crs``. In degrees, least x may exceed most x across the antimeridian.
    raw_image, processed_image, label, provenance
        Paths below the root of the source, with ``/``.
    perceptual_hash
        16 hexadecimal digits, made by the recipe that ``perceptual_recipe`` names.
    strata
        Further fields to balance by.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid"}

    sample_id: str
    task: str
    split: Role | Literal["validation"] | None = None
    group_id: str | None = None
    source_family: str | None = None
    temporal_family: str | None = None
    acquisition_id: str | None = None
    parent_raster_id: str | None = None
    native_feature_ids: tuple[str, ...] = ()
    object_ids: tuple[str, ...] = ()
    bbox: tuple[float, float, float, float] | None = None
    crs: str | None = None
    raw_image: str | None = None
    raw_image_sha256: str | None = None
    processed_image: str | None = None
    processed_image_sha256: str | None = None
    label: str | None = None
    label_sha256: str | None = None
    provenance: str | None = None
    provenance_sha256: str | None = None
    perceptual_hash: str | None = None
    perceptual_recipe: str | None = None
    label_geometry_hash: str | None = None
    record_sha256: str | None = None
    strata: Mapping[str, str] = field(default_factory=dict)


FIELDS: tuple[str, ...] = tuple(one.name for one in dataclasses.fields(Sample))


@cache
def _reader() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(Sample)


def sample_from_json(line: bytes | str, where: str) -> Sample:
    """A validated sample from one line of JSON.

    Parameters
    ----------
    line
        One JSON object.
    where
        File and line, for messages; the sample's id is added where it can be read.

    Raises
    ------
    InputError
        Naming the record: not JSON, an unknown or missing field, a value of the wrong kind, bounds that are no box.

    Examples
    --------
    >>> sample_from_json('{"sample_id": "a", "task": "detection", "split": "validation"}', "line 1").split
    'val'
    >>> sample_from_json('{"sample_id": "a", "task": "detection", "grup_id": "g"}', "line 1")
    Traceback (most recent call last):
    geoeval.errors.InputError: line 1, record 'a': unknown field 'grup_id'; did you mean 'group_id'?
    """
    from pydantic import ValidationError

    try:
        sample: Sample = _reader().validate_json(line, strict=True)
    except ValidationError as error:
        raise InputError(_complaint(error, _name_in(line, where))) from error
    _refuse_repeats(line, f"{where}, record {sample.sample_id!r}")
    return checked(sample, where)


def _refuse_repeats(line: bytes | str, name: str) -> None:
    """Refuse a field that stands twice: readers differ in which one they take."""
    import json

    def once(pairs: list[tuple[str, Any]]) -> None:
        keys = [key for key, _ in pairs]
        if len(set(keys)) < len(keys):
            twice = next(key for at, key in enumerate(keys) if key in keys[:at])
            raise InputError(f"{name}: field {twice!r} stands there more than once")

    json.loads(line, object_pairs_hook=once)


def sample_from_mapping(data: Mapping[str, Any], where: str) -> Sample:
    """A validated sample from a table row or a mapping; lists may stand for tuples.

    Raises
    ------
    InputError
        As :func:`sample_from_json`.
    """
    import json

    try:
        line = json.dumps(dict(data))
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}: cannot be read as a record ({error})") from error
    return sample_from_json(line, where)


def checked(sample: Sample, where: str) -> Sample:
    """The sample with tidy identifiers, once its bounds and hashes make sense.

    Raises
    ------
    InputError
        Naming the record and field.
    """
    name = f"{where}, record {sample.sample_id!r}"
    for required in ALWAYS:
        if not known(getattr(sample, required)):
            raise InputError(f"{name}: {required} must say something, got {getattr(sample, required)!r}")
    wrong = None if sample.bbox is None else box_problem(sample.bbox, sample.crs)
    if wrong is not None:
        raise InputError(f"{name}: {wrong}")
    for at in REVEALING:
        _check_hex(getattr(sample, at), 64, f"{name}: {at}")
    _check_hex(sample.perceptual_hash, 16, f"{name}: perceptual_hash")
    changes: dict[str, Any] = {}
    for at in IDENTITIES:
        value = getattr(sample, at)
        if value is not None and (neat := tidy(value)) != value:
            changes[at] = neat
    for at in MEMBERS:
        values = getattr(sample, at)
        neat_values = tuple(sorted({tidy(one) for one in values}))
        if neat_values != values:
            changes[at] = neat_values
    if sample.split is not None and sample.split in ALIASES:
        changes["split"] = ALIASES[sample.split]
    return dataclasses.replace(sample, **changes) if changes else sample


def box_problem(bbox: Sequence[float], crs: str | None) -> str | None:
    """Why four numbers are no box in a system; None where they are one.

    Examples
    --------
    >>> box_problem([0, 0, 1, 1], "EPSG:4326") is None
    True
    >>> box_problem([0, 1, 1, 0], "EPSG:4326")
    'bbox must be [min x, min y, max x, max y], got [0, 1, 1, 0]'
    """
    if not all(math.isfinite(one) for one in bbox):
        return f"bbox must hold finite numbers, got {list(bbox)}"
    if not known(crs):
        return f"a bbox needs its crs, for example 'EPSG:4326'; got crs {crs!r}"
    minx, miny, maxx, maxy = bbox
    try:
        geographic = _geographic(str(crs))
    except GeoevalError as error:
        return str(error)
    if geographic and (max(abs(minx), abs(maxx)) > 540 or max(abs(miny), abs(maxy)) > 90):
        return f"bbox {list(bbox)} lies outside the degrees of {crs}"
    # West of a box across 180° may be the greater number: [179, 0, -179, 1] is two degrees wide.
    if miny > maxy or (minx > maxx and not (geographic and minx - maxx > 180)):
        return f"bbox must be [min x, min y, max x, max y], got {list(bbox)}"
    return None


@cache
def _geographic(crs: str) -> bool:
    from geoeval.geometry.crs import parse_crs

    return crs.strip().lower() != "pixel" and bool(parse_crs(crs).is_geographic)


def _check_hex(value: str | None, digits: int, where: str) -> None:
    if value is not None and (len(value) != digits or not set(value) <= _HEX):
        raise InputError(f"{where}: expected {digits} hexadecimal digits in lower case, got {value[:80]!r}")


def _name_in(line: bytes | str, where: str) -> str:
    import json

    try:
        data = json.loads(line)
        return f"{where}, record {data['sample_id']!r}"
    except (ValueError, KeyError, TypeError, RecursionError):
        return where


def _complaint(error: Any, name: str) -> str:
    said: list[str] = []
    for entry in error.errors(include_url=False):
        place = ".".join(str(part) for part in entry["loc"])
        if entry["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
            said.append(f"unknown field {place!r}; {nearest_spelling(place, FIELDS)}")
        elif entry["type"] == "missing":
            said.append(f"field {place!r} is required and missing")
        elif entry["type"] == "json_invalid":
            said.append(f"is not JSON ({entry['msg']})")
        elif place.startswith("split"):
            text = entry["input"]
            hint = nearest_spelling(text, ROLES) if isinstance(text, str) else f"known are {', '.join(ROLES)}"
            said.append(f"split {text!r} is no role; {hint}")
        elif entry["type"] == "string_type":
            said.append(f"{place} must be text (in JSON within quotes), got {entry['input']!r:.80}")
        else:
            said.append(f"{place or 'record'}: {entry['msg'][0].lower()}{entry['msg'][1:]}, got {entry['input']!r:.80}")
    return f"{name}: " + "; ".join(dict.fromkeys(said))


def content(sample: Sample) -> dict[str, Any]:
    """All known fields of a sample, as plain values; None, empty lists and empty tables are left out."""
    out: dict[str, Any] = {}
    for name in FIELDS:
        value = getattr(sample, name)
        if value is None or (isinstance(value, tuple | Mapping) and not value):
            continue
        out[name] = dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, tuple) else value
    return out


def record_hash(sample: Sample) -> str:
    """SHA-256 of the canonical JSON (RFC 8785) of a record, without its split, its paths and this hash.

    Examples
    --------
    >>> a = Sample(sample_id="a", task="detection", split="train")
    >>> record_hash(a) == record_hash(dataclasses.replace(a, split="test"))
    True
    """
    hashed = {name: value for name, value in content(sample).items() if name not in _UNHASHED}
    return digest(canonical_bytes(hashed))


def missing_fields(sample: Sample, required: Iterable[str]) -> list[str]:
    """Which required fields say nothing.

    Examples
    --------
    >>> missing_fields(Sample(sample_id="a", task="t", group_id="unknown"), ["task", "group_id"])
    ['group_id']
    """
    return [name for name in required if not known(getattr(sample, name))]
