"""Identifiers made from what a feature is, for layers that bring none: they do not depend on the order of a file."""

from __future__ import annotations

import datetime as dt
import hashlib
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from geoeval.errors import InputError
from geoeval.model import IntArray, ObjectArray

_DIGITS = 16


def content_ids(geometry: ObjectArray, *columns: NDArray[Any]) -> ObjectArray:
    """An identifier for each feature, made from its normalised geometry and then its attributes.

    The same feature gets the same id wherever it stands in a file, whichever vertex its rings begin with and
    whichever way they turn. Features that are alike in everything are told apart by ``#2``, ``#3``; they are
    interchangeable, so it does not matter which gets which.

    Parameters
    ----------
    geometry
        (features,) shapely geometries; None is allowed. Take them as they were read, before any reprojection.
    columns
        (features,) attributes of any dtype. None, NaN and NaT are one blank; whole floats read like integers.

    Returns
    -------
    ObjectArray
        (features,) str of 16 hexadecimal digits of SHA-256.

    Examples
    --------
    >>> square = shapely.box(0, 0, 1, 1)
    >>> ids = content_ids(np.array([square, shapely.reverse(square)], dtype=object), np.array(["a", "b"]))
    >>> ids[0] == content_ids(np.array([shapely.reverse(square)], dtype=object), np.array(["a"]))[0]
    True
    >>> content_ids(np.array([None, None], dtype=object))[1].endswith("#2")
    True
    """
    shapes = np.asarray(geometry, dtype=np.object_).reshape(-1)
    texts = [canonical_texts(column) for column in columns]
    for at, column in enumerate(texts):
        if len(column) != len(shapes):
            raise InputError(f"column {at}: expected {len(shapes)} values, one a feature, got {len(column)}")
    with np.errstate(invalid="ignore"):
        wkb = shapely.to_wkb(shapely.normalize(shapes), byte_order=1, include_srid=False)
    out = np.empty(len(shapes), dtype=np.object_)
    seen: dict[str, int] = {}
    for at, (shape, *fields) in enumerate(zip(wkb, *texts, strict=True)):
        digest = _digest(shape, fields)
        times = seen[digest] = seen.get(digest, 0) + 1
        out[at] = digest if times == 1 else f"{digest}#{times}"
    return out


def content_rank(geometry: ObjectArray, *columns: NDArray[Any]) -> IntArray:
    """Rank of each feature in the order of its :func:`content_ids`: breaks ties the same way whatever the row order.

    Examples
    --------
    >>> points = shapely.points([[0, 0], [1, 0], [2, 0]])
    >>> bool(np.all(content_rank(points)[::-1] == content_rank(points[::-1])))
    True
    """
    return rank_of(content_ids(geometry, *columns))


def rank_of(ids: ObjectArray) -> IntArray:
    """Rank of each identifier in their sorted order; equal ones by position.

    Examples
    --------
    >>> rank_of(np.array(["b", "a", "c"], dtype=object)).tolist()
    [1, 0, 2]
    """
    keys = [str(key) for key in ids]
    rank = np.empty(len(keys), dtype=np.int64)
    rank[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    return rank


def canonical_texts(column: Iterable[Any]) -> list[str]:
    """One text a value, the same for values that mean the same however a reader typed the column.

    Examples
    --------
    >>> canonical_texts(np.array([1.0, np.nan, 2.5]))
    ['1', '', '2.5']
    >>> canonical_texts(np.array([1, None, True, "x"], dtype=object))
    ['1', '', 'true', 'x']
    """
    values = column.tolist() if isinstance(column, np.ndarray) and column.dtype.kind in "biufU" else column
    return [_text(value) for value in values]


def _text(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating):
        number = float(value)
        if math.isnan(number):
            return ""
        return str(int(number)) if number.is_integer() else repr(number)
    if isinstance(value, str):
        return value
    # The blanks of pandas and NumPy are told by their text, so that pandas need not be imported.
    text = value.isoformat() if isinstance(value, dt.date) else str(value)
    return "" if value is None or text in ("<NA>", "NaT") else text


def _digest(shape: bytes | None, fields: list[str]) -> str:
    whole = hashlib.sha256(shape or b"")
    for field in fields:
        data = field.encode("utf-8", "surrogatepass")
        # The length goes first, so that ("ab", "c") and ("a", "bc") differ.
        whole.update(b"|%d:" % len(data))
        whole.update(data)
    return whole.hexdigest()[:_DIGITS]
