"""Which unit each feature belongs to, where a column says so; images are compared without folder and ending."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from geoeval.errors import ColumnError, InputError
from geoeval.model import Finding, ObjectArray
from geoeval.options import OnUnknown
from geoeval.readers.attributes import Remarks
from geoeval.readers.columns import as_text, listed
from geoeval.readers.guess import candidates
from geoeval.readers.raw import is_pixel
from geoeval.readers.sides import Side
from geoeval.readers.sources import NAME_ENDINGS, unit_name


def name_units(reference: Side, prediction: Side, remarks: Remarks) -> tuple[Side, Side, tuple[str, ...]]:
    """Units of two single files: the values of the unit column, or one unit for all.

    A column is guessed only where coordinates are image coordinates, since images have no common ground.

    Returns
    -------
    reference, prediction, units
        Both sides with their units, and the names of all units of the reference.

    Raises
    ------
    ColumnError
        One side names units and the other does not.
    InputError
        A feature names no unit.
    """
    listed_units = [name for table in reference.tables for name in table.units]
    # Without any reference nothing says which units were looked at, so that all predictions belong to the one file.
    columns = _columns(reference, prediction, remarks) if len(reference) or listed_units else None
    if columns is None:
        return reference, prediction, (str(next(iter(reference.unit), "")),) if len(reference) else ()
    texts = [_values(side, column) for side, column in zip((reference, prediction), columns, strict=True)]
    short = _shortener([[*texts[0], *listed_units], [*texts[1]]])
    named = [
        replace(side, unit=_mapped(text, short)) for side, text in zip((reference, prediction), texts, strict=True)
    ]
    units = sorted({short[name] for name in listed_units} | set(named[0].unit))
    return named[0], named[1], tuple(units)


def _columns(reference: Side, prediction: Side, remarks: Remarks) -> tuple[str | None, str | None] | None:
    sides = (reference, prediction)
    if any(side.columns.unit == "" for side in sides):
        return None
    declared = [side.columns.unit for side in sides]
    if declared != [None, None]:
        # One declaration serves both sides where the other side has the column too.
        for mine, other in ((0, 1), (1, 0)):
            if declared[mine] is None and str(declared[other]) in sides[mine].frame.columns:
                declared[mine] = declared[other]
    pixel = any(is_pixel(table.crs) for side in sides for table in side.tables)
    found: list[str | None] = []
    for side, column in zip(sides, declared, strict=True):
        if column is not None:
            side.require(column, "unit")
            found.append(column if column in side.frame.columns else None)
            continue
        own = next((table.unit_column for table in side.tables if table.unit_column), None)
        guesses = candidates(side.frame, "unit") if pixel or declared != [None, None] else []
        found.append(own or (guesses[0] if guesses else None))
    if found == [None, None]:
        return None
    for side, column, beside, wanted in zip(sides, found, sides[::-1], found[::-1], strict=True):
        if column is None and len(side):
            values = set(as_text(beside.frame[wanted])) if wanted is not None else set()
            if len(values) <= 1 and declared == [None, None]:
                return None
            if wanted in side.frame.columns:
                raise ColumnError(
                    f"{beside.label}: column {wanted!r} names {len(values)} units, but in {side.label} it has no "
                    "values; fill it in, or say that there are no units (unit = '')"
                )
            raise ColumnError(
                f"{beside.label}: column {wanted!r} names {len(values)} units, but {side.label} has no such column; "
                f"name the unit column of both sides (here: {listed(side.frame.columns)}), or say that there is none "
                "(unit = '')"
            )
    for side, column, said in zip(sides, found, (s.columns.unit for s in sides), strict=True):
        if column is not None and len(side):
            remarks.column(side, "unit", column, said is not None)
    return found[0], found[1]


def _values(side: Side, column: str | None) -> ObjectArray:
    if column is None or not len(side):
        return np.empty(0, dtype=object)
    text = as_text(side.frame[column])
    null = np.flatnonzero(pd.isna(text))
    if len(null):
        raise InputError(
            f"{side.label}: expected a unit in column {column!r} of every feature, found none in {len(null)} "
            f"({listed(side.places(null, 3))}); fill it in or filter these out"
        )
    return text


def _without_ending(text: str) -> str:
    stem, dot, ending = text.rpartition(".")
    return stem if dot and f".{ending.lower()}" in NAME_ENDINGS else text


def _shortener(sides: Sequence[Sequence[str]]) -> dict[str, str]:
    """Short names, or longer ones where two images of a side would share the short one."""
    known = {str(name) for side in sides for name in side}
    for shorten in (unit_name, _without_ending):
        if all(len({shorten(str(name)) for name in set(side)}) == len(set(side)) for side in sides):
            return {name: shorten(name) for name in known}
    return {name: name for name in known}


def _mapped(text: ObjectArray, table: dict[str, str]) -> ObjectArray:
    out = np.empty(len(text), dtype=object)
    out[:] = [table[value] for value in text]
    return out


def known_only(prediction: Side, units: Sequence[str], on_unknown: OnUnknown, remarks: Remarks) -> Side:
    """Predictions on units that the reference knows.

    Raises
    ------
    InputError
        There are others, and that was not allowed.
    """
    known = set(units)
    foreign = np.array([unit not in known for unit in prediction.unit], dtype=bool)
    if not foreign.any():
        return prediction
    names = sorted(set(prediction.unit[foreign]))
    if on_unknown == "refuse":
        raise InputError(
            f"{prediction.label}: {int(foreign.sum())} predictions lie on {len(names)} units that the reference "
            f"does not know: {listed(names)} (it knows {listed(sorted(known), 5)}); filter them out, or set "
            "on_unknown_unit = 'drop'"
        )
    remarks.findings.append(
        Finding(
            "unknown-unit",
            "major",
            tuple(names[:10]),
            f"{int(foreign.sum())} predictions on {len(names)} units that the reference does not know were dropped",
            "filter them out, or add references",
        )
    )
    return prediction.take(~foreign)
