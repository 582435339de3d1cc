"""Columns as plain arrays: text, numbers, dates. Nulls stay nulls."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geoeval.errors import ColumnError, UnitMismatch
from geoeval.model import FloatArray, ObjectArray

_COMMA = re.compile(r"^[-+]?\d+,\d+$")

#: How many rows or names a message lists before it stops.
SHOWN = 10


def as_text(values: Any) -> ObjectArray:
    """A column as str, None where it is null or blank.

    Whole numbers lose their ``.0``, so that a column that became float because of a null still joins with an integer
    one.

    Examples
    --------
    >>> as_text(pd.Series([1.0, np.nan, 12.0])).tolist()
    ['1', None, '12']
    >>> as_text(pd.Series(["007", " ", "b"])).tolist()
    ['007', None, 'b']
    """
    series = pd.Series(values)
    null = series.isna().to_numpy(dtype=bool)
    out = np.full(len(series), None, dtype=object)
    if null.all():
        return out
    present = series[~null]
    if pd.api.types.is_bool_dtype(present.dtype) or pd.api.types.is_integer_dtype(present.dtype):
        texts = present.astype(str).to_numpy(dtype=object)
    elif pd.api.types.is_float_dtype(present.dtype):
        numbers = present.to_numpy(dtype=np.float64)
        whole = bool(np.all(np.isfinite(numbers) & (numbers == np.floor(numbers)) & (np.abs(numbers) < 2**53)))
        texts = (numbers.astype(np.int64) if whole else numbers).astype(str).astype(object)
    elif pd.api.types.is_datetime64_any_dtype(present.dtype):
        texts = _dates_as_text(present)
    else:
        texts = _objects_as_text(present)
    out[~null] = texts
    return out


def _dates_as_text(present: pd.Series[Any]) -> ObjectArray:
    day_only = bool((present == present.dt.normalize()).all())
    form = "%Y-%m-%d" if day_only else "%Y-%m-%dT%H:%M:%S"
    return np.asarray(present.dt.strftime(form), dtype=object)


def _objects_as_text(present: pd.Series[Any]) -> ObjectArray:
    raw = present.to_numpy(dtype=object)
    texts = [
        str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip() for value in raw
    ]
    if all(text.endswith(".0") and text[:-2].lstrip("-").isdigit() for text in texts):
        texts = [text[:-2] for text in texts]
    out = np.empty(len(texts), dtype=object)
    out[:] = [text or None for text in texts]
    return out


def as_numbers(values: Any) -> FloatArray | None:
    """A column as float64, NaN where it is null; None where some value is no number.

    Examples
    --------
    >>> as_numbers(pd.Series(["1", None, "2.5"])).tolist()
    [1.0, nan, 2.5]
    >>> as_numbers(pd.Series(["high", "low"])) is None
    True
    """
    series = pd.Series(values)
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        return None
    if series.dtype == object or isinstance(series.dtype, pd.StringDtype):
        text = pd.Series(as_text(series), dtype=object)
        numbers = pd.to_numeric(text, errors="coerce")
        if bool((numbers.isna() & text.notna()).any()):
            return None
        return numbers.to_numpy(dtype=np.float64)
    try:
        return pd.to_numeric(series).to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        return None


def plain(values: Any) -> NDArray[Any]:
    """A column as an array that needs no pandas: bool, int64, float64, or objects with None for null.

    Examples
    --------
    >>> plain(pd.Series(["a", None])).tolist()
    ['a', None]
    >>> plain(pd.Series([1, 2])).dtype
    dtype('int64')
    """
    series = pd.Series(values)
    if pd.api.types.is_bool_dtype(series.dtype) and not series.isna().any():
        return series.to_numpy(dtype=np.bool_)
    if pd.api.types.is_integer_dtype(series.dtype) and not series.isna().any():
        return series.to_numpy(dtype=np.int64)
    if pd.api.types.is_numeric_dtype(series.dtype) and not pd.api.types.is_bool_dtype(series.dtype):
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        return as_text(series)
    out = series.to_numpy(dtype=object).copy()
    out[series.isna().to_numpy(dtype=bool)] = None
    return out


def as_dates(values: Any, where: str) -> tuple[FloatArray, str]:
    """A column of years or calendar dates as numbers, NaN where it is null, and their unit.

    Numbers and texts such as ``2011`` are years (``"year"``); ``2017-06-11``, ``2017-6`` and ``20170611`` are days
    since 1970-01-01 (``"d"``).

    Parameters
    ----------
    values
        The column.
    where
        File and column, for the message.

    Examples
    --------
    >>> as_dates(pd.Series([2011, 2013]), "a.csv, column 'year'")
    (array([2011., 2013.]), 'year')
    >>> as_dates(pd.Series(["1970-01-03", None]), "a.csv, column 'date'")
    (array([ 2., nan]), 'd')
    """
    series = pd.Series(values)
    numbers = as_numbers(series)
    if numbers is not None:
        eight = np.isnan(numbers) | ((numbers > 1e7) & (numbers < 1e8))
        if not eight.all() or np.isnan(numbers).all():
            return numbers, "year"
        series = pd.Series(as_text(numbers), dtype=object)
        days = pd.to_datetime(series, format="%Y%m%d", errors="coerce")
    elif pd.api.types.is_datetime64_any_dtype(series.dtype):
        days = series.dt.tz_localize(None) if series.dt.tz is not None else series
    else:
        series = pd.Series(as_text(series), dtype=object)
        parts = series.str.extract(r"^(\d{4})-(\d{1,2})(?:-(\d{1,2}))?(?:[T ].*)?$").astype(np.float64)
        parts.columns = ["year", "month", "day"]
        days = pd.to_datetime(parts.fillna({"day": 1}), errors="coerce")
    bad = (days.isna() & series.notna()).to_numpy(dtype=bool)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise UnitMismatch(
            f"{where}: expected years (2011) or dates (2017-06-11), found {series.iloc[row]!r} in feature {row}; "
            "write every date in one of these forms"
        )
    out = days.to_numpy(dtype="datetime64[D]")
    return np.where(np.isnat(out), np.nan, out.astype(np.int64).astype(np.float64)), "d"


def listed(items: Any, shown: int = SHOWN) -> str:
    """The first few of many, joined by commas, and how many more there are.

    Examples
    --------
    >>> listed([1, 2, 3], shown=2)
    '1, 2 and 1 more'
    """
    known = [str(item) for item in items]
    more = len(known) - shown
    return ", ".join(known[:shown]) + (f" and {more} more" if more > 0 else "")


def require_numbers(values: Any, where: str) -> FloatArray:
    """A column as float64, NaN where null; refused where some value is no number."""
    numbers = as_numbers(values)
    if numbers is not None:
        return numbers
    text = pd.Series(as_text(values), dtype=object)
    bad = np.flatnonzero((pd.to_numeric(text, errors="coerce").isna() & text.notna()).to_numpy(dtype=bool))
    row = int(bad[0]) if len(bad) else 0
    value = str(text.iloc[row])
    mend = "write a decimal point, not a comma" if _COMMA.match(value) else "mend the value or name another column"
    raise ColumnError(f"{where}: expected numbers, found {value!r} in feature {row}; {mend}")
