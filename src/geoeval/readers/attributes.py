"""What the columns of one side mean: ids, labels, scores, flags, kinds, dates, attributes to compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geoeval.errors import ColumnError, InputError, UnitMismatch, nearest_spelling
from geoeval.model import UNKNOWN, Finding, FloatArray, ObjectArray
from geoeval.readers.columns import as_dates, as_numbers, as_text, listed, plain
from geoeval.readers.guess import USUAL, flags
from geoeval.readers.sides import Side

#: As an id column it stands for the position of a feature in its file, unless a column bears the name.
ROW = "row"


@dataclass(slots=True)
class Remarks:
    """Findings and notes that pile up while a run is read."""

    findings: list[Finding] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)

    def column(self, side: Side, role: str, column: str, declared: bool) -> None:
        """Note which column was taken for a role."""
        self.notes[f"{side.name} {role} column"] = f"{column!r} ({'declared' if declared else 'guessed'})"


def scores(side: Side, family: str, remarks: Remarks) -> FloatArray | None:
    """Confidence in [0, 1] of each feature, None where the side has none.

    Raises
    ------
    InputError
        A score is missing or outside [0, 1]. A guessed column is then left alone where the family can do without.
    """
    column, declared = side.column("score")
    if column is None:
        if not declared and family == "detection":
            remarks.findings += _unreadable_scores(side)
        return np.empty(0) if not len(side) and side.columns.score != "" else None
    where = f"{side.label}, column {column!r}"
    values = as_numbers(side.frame[column])
    if values is None:
        raise ColumnError(f"{where}: expected scores as numbers in [0, 1], found text; name another column as score")
    with np.errstate(invalid="ignore"):
        bad = np.flatnonzero(~((values >= 0) & (values <= 1)))
    if len(bad):
        if not declared and family != "detection":
            remarks.notes[f"{side.name} score column"] = f"none ({column!r} holds values outside [0, 1] or nulls)"
            return None
        raise InputError(_bad_score(side, column, values, bad))
    remarks.column(side, "score", column, declared)
    return values


def _unreadable_scores(side: Side) -> list[Finding]:
    """A column that bears the name of a score and holds text: passed over, and said so."""
    named = {name.lower(): name for name in map(str, side.frame.columns)}
    column = next((named[name] for name in USUAL["score"] if name in named), None)
    if column is None or not side.frame[column].notna().any():
        return []
    text = as_text(side.frame[column])
    first = next(i for i, value in enumerate(text) if value is not None and as_numbers([value]) is None)
    return [
        Finding(
            "score-not-numeric",
            "major",
            (side.at(first),),
            f"{side.name}: column {column!r} was not used as score, because it holds texts such as {text[first]!r}",
            "write scores as numbers from 0 to 1 with a decimal point, or name another column as score",
        )
    ]


def _bad_score(side: Side, column: str, values: FloatArray, bad: NDArray[Any]) -> str:
    first = int(bad[0])
    value = "no value" if np.isnan(values[first]) else f"{values[first]:g}"
    present = values[np.isfinite(values)]
    if len(present) and 20 < present.max() <= 100 and present.min() >= 0:
        mend = "is it a percentage? Divide by 100"
    elif np.isnan(values[first]):
        mend = "give every feature a score, filter the others out, or say that there is no score column (score = '')"
    else:
        mend = "scale it to [0, 1], or say that there is no score column (score = '')"
    return (
        f"{side.at(first)}: expected a score in [0, 1] in column {column!r}, found {value} "
        f"({len(bad)} such features of {len(values)}); {mend}"
    )


def labels(side: Side, recode: Mapping[str, str], remarks: Remarks) -> ObjectArray | None:
    """Class label of each feature as str, recoded; None where the side has none."""
    column, declared = side.column("label")
    if column is None:
        if recode and len(side):
            raise ColumnError(
                f"{side.label}: recode needs a label column, found none; name one of {listed(side.frame.columns)}"
            )
        return np.empty(0, dtype=object) if not len(side) and side.columns.label != "" else None
    remarks.column(side, "label", column, declared)
    text = _named(side, "label", column, as_text(side.frame[column]), remarks)
    return recoded(text, recode, side, remarks)


def spelt_apart(role: str, ours: ObjectArray, theirs: ObjectArray) -> list[Finding]:
    """A finding where names that only one side has differ from names of the other in nothing but case.

    Examples
    --------
    >>> spelt_apart("label", np.array(["car", "bus"], dtype=object), np.array(["Car", "bus"], dtype=object))[0].says
    "'car' of the reference and 'Car' of the prediction differ in case only, and cannot pair"
    """
    here, there = {*map(str, ours)}, {*map(str, theirs)}
    folded = {name.casefold(): name for name in sorted(there - here)}
    pairs = [(name, folded[name.casefold()]) for name in sorted(here - there) if name.casefold() in folded]
    return [
        Finding(
            f"{role}-case-differs",
            "minor",
            pair,
            f"{pair[0]!r} of the reference and {pair[1]!r} of the prediction differ in case only, and cannot pair",
            f"recode one side, for example --recode 'prediction:{pair[1]}={pair[0]}'"
            if role == "label"
            else "write them alike",
        )
        for pair in pairs
    ]


def recoded(text: ObjectArray, recode: Mapping[str, str], side: Side, remarks: Remarks) -> ObjectArray:
    """Labels after ``recode``; a code that does not occur is a finding."""
    if not recode:
        return text
    present = {str(value) for value in text}
    absent = sorted(set(map(str, recode)) - present)
    if absent:
        remarks.findings.append(
            Finding(
                "recode-unused",
                "minor",
                tuple(absent[:10]),
                f"{side.name}: recode names labels that do not occur: {listed(absent)}",
                nearest_spelling(absent[0], present),
            )
        )
    table = {str(old): str(new) for old, new in recode.items()}
    out = np.empty(len(text), dtype=object)
    out[:] = [table.get(value, value) for value in text]
    return out


def ignored(side: Side, remarks: Remarks) -> NDArray[np.bool_] | None:
    """Which regions absorb predictions: any of the flags is enough. None where there is no flag."""
    declared = side.columns.ignore
    if declared == "":
        return None
    if declared is not None:
        column, _ = side.column("ignore")
        columns = [column] if column is not None else []
    else:
        wanted = ("ignore", "iscrowd", "is_crowd")
        columns = [
            str(name) for name in side.frame.columns if str(name).lower() in wanted and side.frame[name].notna().any()
        ]
    if not columns:
        return None
    out = np.zeros(len(side), dtype=bool)
    for name in columns:
        out |= np.array(flags(as_text(side.frame[name])), dtype=bool)
    remarks.column(side, "ignore", " or ".join(columns), declared is not None)
    return out


def identities(side: Side, content: tuple[NDArray[Any], ...], remarks: Remarks) -> ObjectArray:
    """A stable id of each feature, unique in its unit: the declared or guessed column, else made of the content.

    Raises
    ------
    InputError
        A declared id is missing or repeats.
    """
    declared = side.columns.id
    if declared == ROW and ROW not in side.frame.columns:
        remarks.notes[f"{side.name} id column"] = "position in the file (declared)"
        return as_text(side.row)
    column, _ = side.column("id")
    if column is not None:
        text = as_text(side.frame[column])
        faulty = _id_faults(side, text)
        if faulty is None:
            remarks.column(side, "id", column, declared is not None)
            return text
        said, at = faulty
        if declared is not None:
            raise InputError(f"{side.label}: expected a unique id in column {column!r}, found {said}; mend the ids")
        remarks.findings.append(
            Finding(
                "id-not-unique",
                "minor",
                side.places(at),
                f"{side.name}: column {column!r} was not used as id: {said}",
                "declare another id column; without one, features are known by their content",
            )
        )
    from geoeval.geometry.identity import content_ids

    geometry = side.geometry if side.geometry is not None else np.full(len(side), None, dtype=object)
    # Two images may hold the same box; the unit tells them apart.
    several = len(side) and bool((side.unit != side.unit[0]).any())
    return np.asarray(content_ids(geometry, *([side.unit] if several else []), *content), dtype=object)


def _id_faults(side: Side, text: ObjectArray) -> tuple[str, NDArray[Any]] | None:
    null = np.flatnonzero(pd.isna(text))
    if len(null):
        return f"none in {len(null)} of {len(text)} features ({listed(side.places(null, 3))})", null
    repeats = pd.DataFrame({"unit": side.unit, "id": text}).duplicated(keep=False).to_numpy(dtype=bool)
    if not repeats.any():
        return None
    names = sorted(set(text[repeats]))
    return f"{int(repeats.sum())} features that share an id: {listed(map(repr, names))}", np.flatnonzero(repeats)


def events(reference: Side, prediction: Side, remarks: Remarks) -> tuple[dict[str, Any], dict[str, Any]]:
    """Kind and date of change events, taken where both sides have them.

    ``date`` is years, or days since 1970-01-01; ``date_raw`` is the text as read and ``date_unit`` is ``"year"`` or
    ``"d"`` in every row.

    Raises
    ------
    ColumnError
        A kind or date is declared on one side, and the other has none.
    UnitMismatch
        One side dates by year and the other by day.
    """
    sides = (reference, prediction)
    out: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for role in ("kind", "date"):
        found = [side.column(role) for side in sides]
        lacking = [side for side, (column, _) in zip(sides, found, strict=True) if column is None and len(side)]
        having = [(side, column) for side, (column, _) in zip(sides, found, strict=True) if column is not None]
        if not having:
            continue
        if lacking:
            side, column = having[0]
            if found[sides.index(side)][1] and getattr(lacking[0].columns, role) != "":
                raise ColumnError(
                    f"{lacking[0].label}: expected a {role} column, as {side.label} has one ({column!r}), found none; "
                    f"name one of {listed(lacking[0].frame.columns)}"
                )
            remarks.notes[f"{role} column"] = f"none ({column!r} stands in the {side.name} only)"
            continue
        for side, fields, (own, declared) in zip(sides, out, found, strict=True):
            values = side.frame[own] if own is not None else pd.Series([], dtype=object)
            if own is not None:
                remarks.column(side, role, own, declared)
            if role == "kind":
                fields.update(_kinds(side, own, values, remarks))
            else:
                fields.update(_dates(values, f"{side.label}, column {own!r}"))
    if all("kind" in part for part in out):
        remarks.findings += spelt_apart("kind", out[0]["kind"], out[1]["kind"])
    _one_date_unit(sides, out, remarks)
    return out


def _kinds(side: Side, column: str | None, values: Any, remarks: Remarks) -> dict[str, Any]:
    return {"kind": _named(side, "kind", column, as_text(values), remarks)}


def _named(side: Side, role: str, column: str | None, text: ObjectArray, remarks: Remarks) -> ObjectArray:
    """Labels or kinds in which nothing is null: what has none is ``unknown``, with a finding."""
    null = np.flatnonzero(pd.isna(text))
    if len(null):
        remarks.findings.append(
            Finding(
                f"{role}-missing",
                "minor",
                side.places(null),
                f"{side.name}: {len(null)} of {len(side)} features have no {role} in {column!r}; taken as {UNKNOWN!r}",
                "give them one, or filter them out",
            )
        )
        text[null] = UNKNOWN
    return text


def _dates(values: Any, where: str) -> dict[str, Any]:
    number, unit = as_dates(values, where)
    return {"date": number, "date_raw": as_text(values), "date_unit": np.full(len(number), unit, dtype=object)}


def _one_date_unit(sides: tuple[Side, Side], fields: tuple[dict[str, Any], dict[str, Any]], remarks: Remarks) -> None:
    units = [{*part["date_unit"]} if "date" in part else set() for part in fields]
    if units[0] and units[1] and units[0] != units[1]:
        said = {"year": "years", "d": "dates"}
        raise UnitMismatch(
            f"expected one way to date events, found {said[units[0].pop()]} in {sides[0].label} and "
            f"{said[units[1].pop()]} in {sides[1].label}; write both as years or both as dates"
        )
    known = units[0] | units[1]
    if known:
        remarks.notes["date unit"] = known.pop()


def compared(side: Side, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """Attributes to compare on matched pairs.

    Raises
    ------
    ColumnError
        The side lacks one.
    """
    for name in names:
        side.require(name, "attribute")
    return {
        name: plain(side.frame[name]) if name in side.frame.columns else np.empty(0, dtype=object) for name in names
    }
