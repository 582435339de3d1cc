"""What stands under a key: hashes that would tell who is in a set, and looks and shapes that are read again.

Sealed   a digest under HMAC-SHA-256: it can be compared by whoever has the key, and never read.
Padded   a text under a pad that only the key gives back: it can be read again, because near copies have to be found.
Who      challenge samples say nothing without the key; of all protected samples the shapes of their labels are padded,
         and left out where there is no key, for nobody may learn labels from a manifest.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from geoeval.errors import ConfigError, InputError
from geoeval.splits.record import REVEALING
from geoeval.splits.table import Codes

#: The key of the synthetic fixture. It is public, and seals nothing that needs sealing.
FIXTURE_KEY = b"geoeval synthetic fixture: public, seals nothing"

#: The sketch of a label set with too few features to be like another one.
FEW = "few"

_SEAL = "hmac-sha256:"
_PAD = "hmac-pad:"
_LEAST_KEY = 16

#: Fields that are read again, by whoever has the key, and not only compared.
PADDED: tuple[str, ...] = ("perceptual_hash", "perceptual_looks", "label_sketch")
_SEALED = (*REVEALING, *PADDED)
_SKETCH = ("label_sketch",)


def looks_text(codes: Codes, confirming: Codes, looks: int) -> str:
    """Hashes of all looks of an image as base64: for each look eight first and eight second codes, little-endian."""
    size = 8 * looks
    both = np.stack([np.asarray(part[:size]).reshape(-1, 8) for part in (codes, confirming)], axis=1)
    return base64.b64encode(both.astype("<u8").tobytes()).decode()


def looks_from_text(text: str) -> tuple[Codes, Codes]:
    """First and second codes, eight a look.

    Raises
    ------
    InputError
        The text holds no looks.

    Examples
    --------
    >>> codes = np.arange(8, dtype=np.uint64)
    >>> looks_from_text(looks_text(codes, codes + 1, 1))[1].tolist()
    [1, 2, 3, 4, 5, 6, 7, 8]
    """
    try:
        both = np.frombuffer(base64.b64decode(text, validate=True), dtype="<u8").reshape(-1, 2, 8)
    except ValueError as error:
        raise InputError(f"perceptual_looks: expected 16 codes a look in base64, got {text[:40]!r}") from error
    if not len(both):
        raise InputError("perceptual_looks: expected 16 codes a look in base64, got none")
    first, second = both[:, 0].reshape(-1), both[:, 1].reshape(-1)
    return first.astype(np.uint64), second.astype(np.uint64)


def read_key(path: str | Path) -> bytes:
    """The key in a file, without the end of its line.

    Raises
    ------
    ConfigError
        The file cannot be read.
    """
    try:
        return Path(path).read_bytes().rstrip(b"\r\n")
    except OSError as error:
        raise ConfigError(f"{path}: the key cannot be read ({error.strerror or error})") from error


def require_key(key: bytes | None, *, needed: bool) -> None:
    """Refuse a key that is too short, or none where challenge samples need one.

    Raises
    ------
    ConfigError
        Saying what a key is.
    """
    if (needed and key is None) or (key is not None and len(key) < _LEAST_KEY):
        raise ConfigError(
            f"challenge samples need a key of at least {_LEAST_KEY} bytes to seal their hashes: give a file that holds "
            "one and stays outside of the repository (--key-file, in code `key`), or leave challenge out by shares of "
            "your own (--share)"
        )


def closed_entry(entry: dict[str, Any], key: bytes | None) -> dict[str, Any]:
    """An entry of a set whose labels nobody may learn from its manifest; challenge says nothing at all."""
    if entry["split"] == "challenge" and key is not None:
        return sealed_entry(entry, key, _SEALED)
    if key is not None:
        return sealed_entry(entry, key, _SKETCH)
    return {name: value for name, value in entry.items() if name not in _SKETCH}


def seal_of(entries: Sequence[Mapping[str, Any]], source_sha256: str, key: bytes | None) -> dict[str, Any] | None:
    """Which fields of which splits stand under a key, and by what that key is known; None where none does."""
    fields: dict[str, set[str]] = {}
    for entry in entries:
        for name, value in entry.items():
            if is_sealed(value):
                fields.setdefault(entry["split"], set()).add(name)
    if not fields or key is None:
        return None
    return {
        "algorithm": "HMAC-SHA-256",
        "key_check": _key_check(source_sha256, key),
        "fields": {role: sorted(names) for role, names in sorted(fields.items())},
    }


def require_the_key(content: Mapping[str, Any], key: bytes | None) -> None:
    """Refuse a key that is not the one of a manifest.

    Raises
    ------
    InputError
        It would open nothing, and every comparison would find nothing.
    """
    seal = content["seal"]
    if key is not None and seal is not None:
        found = _key_check(content["source_sha256"], key)
        if not hmac.compare_digest(found, str(seal.get("key_check"))):
            raise InputError("the key is not the one that sealed this manifest; give the key of its build")


def _key_check(source_sha256: str, key: bytes) -> str:
    return hmac.digest(key, f"geoeval/key/1|{source_sha256}".encode(), "sha256").hex()


def sealed_value(value: str, name: str, key: bytes) -> str:
    """A hash under HMAC-SHA-256; raw and processed images share one domain, so that one finds the other.

    Examples
    --------
    >>> a = sealed_value("ab", "raw_image_sha256", b"k" * 16)
    >>> a == sealed_value("ab", "processed_image_sha256", b"k" * 16), a == sealed_value("ab", "label_sha256", b"k" * 16)
    (True, False)
    """
    domain = "image_sha256" if name.endswith("image_sha256") else name
    return _SEAL + hmac.digest(key, f"geoeval/seal/1|{domain}|{value}".encode(), "sha256").hex()


def padded(value: str, name: str, owner: str, key: bytes) -> str:
    """A text under a pad that only the key gives back; padding twice opens it.

    A keyed digest could be compared for equality only, and near-duplicates of a challenge image would pass. The pad
    belongs to the field and its owner, so that it is never used twice.

    Examples
    --------
    >>> one = padded("00ff", "perceptual_hash", "a", b"k" * 16)
    >>> padded(one, "perceptual_hash", "a", b"k" * 16), one == padded("00ff", "label_sketch", "a", b"k" * 16)
    ('00ff', False)
    """
    closed = value.startswith(_PAD)
    try:
        data = base64.b64decode(value.removeprefix(_PAD), validate=True) if closed else value.encode()
    except ValueError as error:
        raise InputError(f"{name} is no sealed text: {value[:60]!r}") from error
    blocks = -(-len(data) // 32)
    parts = (hmac.digest(key, f"geoeval/pad/1|{name}|{at}|{owner}".encode(), "sha256") for at in range(blocks))
    turned = bytes(a ^ b for a, b in zip(data, b"".join(parts), strict=False))
    if not closed:
        return _PAD + base64.b64encode(turned).decode()
    try:
        return turned.decode("ascii")
    except UnicodeDecodeError as error:
        raise InputError(f"the key does not open {name}; is it the one of this manifest?") from error


def sealed_entry(entry: Mapping[str, Any], key: bytes, fields: Sequence[str]) -> dict[str, Any]:
    """An entry some of whose fields tell nothing without the key."""
    out = dict(entry)
    for name in fields:
        if name in out and name in REVEALING:
            out[name] = sealed_value(out[name], name, key)
    for name in fields:
        if name in out and name in PADDED:
            out[name] = padded(out[name], name, _owner(out), key)
    return out


def _owner(entry: Mapping[str, Any]) -> str:
    """What a pad belongs to: the sample and what it held, so that a changed sample never meets its old pad."""
    return f"{entry['sample_id']}|{entry.get('record_sha256')}"


def opened_entry(entry: Mapping[str, Any], key: bytes | None) -> dict[str, Any]:
    """An entry whose padded fields are open; without the key they are left out, as digests under a key always are."""
    out = {name: value for name, value in entry.items() if not is_sealed(value)}
    if key is not None:
        for name in PADDED:
            if is_sealed(entry.get(name)):
                out[name] = padded(entry[name], name, _owner(entry), key)
    return out


def is_sealed(value: object) -> bool:
    """True for a value that only a key opens.

    Examples
    --------
    >>> is_sealed("hmac-sha256:00"), is_sealed("00"), is_sealed(None)
    (True, False, False)
    """
    return isinstance(value, str) and value.startswith((_SEAL, _PAD))
