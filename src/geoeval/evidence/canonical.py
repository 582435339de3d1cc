"""Canonical bytes: what is hashed, and how numbers look in evidence.

JSON is RFC 8785. Every real number is first rounded to 12 significant digits, because the last bits of ``exp``, ``log``
and of sums differ by processor; minus zero becomes zero; a number that is not finite is refused.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from geoeval.errors import BundleError

#: Significant digits of a number in evidence.
DIGITS = 12

#: Whole numbers from here on cannot be told apart by every JSON reader.
SAFE_INTEGER = 2**53

_CHUNK = 1 << 20


def significant(value: float, digits: int = DIGITS) -> float:
    """A number rounded to significant digits, without a minus zero.

    Parameters
    ----------
    value
        Any float; what is not finite comes back unchanged.
    digits
        How many digits are kept.

    Examples
    --------
    >>> significant(0.1 + 0.2)
    0.3
    >>> significant(-0.0)
    0.0
    """
    if not math.isfinite(value):
        return value
    return float(f"{value:.{digits - 1}e}") + 0.0


def plain(value: Any, digits: int | None = DIGITS, where: str = "$") -> Any:
    """Only dicts, lists, strings, whole numbers, finite floats, booleans and None; floats are rounded.

    Parameters
    ----------
    value
        Nested mappings and sequences; numpy numbers and arrays are taken too.
    digits
        Significant digits of floats; None keeps them as they are.
    where
        Position, for messages.

    Returns
    -------
    Any
        A structure that any JSON writer accepts.

    Raises
    ------
    BundleError
        For a number that is not finite, a whole number of 2**53 or more, a key that is not text, or another type.

    Examples
    --------
    >>> plain({"recall": 1 / 3, "n": np.int64(3), "by": ("a",)})
    {'recall': 0.333333333333, 'n': 3, 'by': ['a']}
    """
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist(), digits, where)
    if isinstance(value, int):
        if abs(value) >= SAFE_INTEGER:
            raise BundleError(f"{where}: {value} is too large for a JSON number; write it as text")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise BundleError(f"{where}: {value!r} cannot stand in evidence; an undefined number is null with a reason")
        return value + 0.0 if digits is None else significant(value, digits)
    if isinstance(value, Mapping):
        return {_key(key, where): plain(item, digits, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, digits, f"{where}[{i}]") for i, item in enumerate(value)]
    raise BundleError(f"{where}: a {type(value).__name__} cannot be written as JSON")


def _key(key: object, where: str) -> str:
    if not isinstance(key, str):
        raise BundleError(f"{where}: key {key!r} is not text")
    return key


def canonical_bytes(value: Any, digits: int | None = DIGITS) -> bytes:
    """One byte string for one meaning (RFC 8785), numbers rounded.

    Parameters
    ----------
    value
        As for :func:`plain`.
    digits
        Significant digits of floats; None keeps input values such as scores exactly as they were read.

    Examples
    --------
    >>> canonical_bytes({"b": 0.1 + 0.2, "a": -0.0})
    b'{"a":0,"b":0.3}'
    """
    import rfc8785

    try:
        return rfc8785.dumps(plain(value, digits))
    except rfc8785.CanonicalizationError as error:
        raise BundleError(f"evidence cannot be written as canonical JSON: {error}") from error


def digest(data: bytes) -> str:
    """SHA-256 of bytes, as 64 hex digits.

    Examples
    --------
    >>> digest(b"")[:16]
    'e3b0c44298fc1c14'
    """
    return hashlib.sha256(data).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a file, read in pieces.

    Raises
    ------
    BundleError
        Where the file cannot be read.
    """
    hasher = hashlib.sha256()
    try:
        with Path(path).open("rb") as stream:
            while piece := stream.read(_CHUNK):
                hasher.update(piece)
    except OSError as error:
        raise BundleError(f"{Path(path).name}: cannot be read for its hash ({error.strerror or error})") from error
    return hasher.hexdigest()


def tree_digest(folder: Path, suffixes: Iterable[str] = (".py", ".json", ".toml", ".html", ".css", ".typed")) -> str:
    """SHA-256 of the names and contents of the files below a folder.

    Line ends are made equal first, so that a checkout on another system has the same digest. Compiled and hidden files
    do not count.

    Parameters
    ----------
    folder
        Where the package lies.
    suffixes
        Which files count.
    """
    root = Path(folder)
    kinds = tuple(suffixes)
    found: list[tuple[str, str]] = []
    for path in root.rglob("*"):
        parts = path.relative_to(root).parts
        if path.suffix not in kinds or not path.is_file():
            continue
        if any(part == "__pycache__" or part.startswith(".") for part in parts):
            continue
        found.append(("/".join(parts), digest(path.read_bytes().replace(b"\r\n", b"\n"))))
    if not found:
        raise BundleError(f"{root.name}: no code was found to hash")
    return digest(canonical_bytes(sorted(found)))


def code_digest() -> str:
    """The digest of this package's own files."""
    return tree_digest(Path(__file__).resolve().parents[1])
