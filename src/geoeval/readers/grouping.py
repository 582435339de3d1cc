"""Clusters and strata of objects: what belongs together, and what is reported apart."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import shapely
from numpy.typing import NDArray

from geoeval.errors import ColumnError, ConfigError, InputError, nearest_spelling
from geoeval.model import UNKNOWN, Finding, FloatArray, ObjectArray
from geoeval.options import stratum_name
from geoeval.readers.attributes import Remarks
from geoeval.readers.columns import as_numbers, as_text, listed
from geoeval.readers.guess import candidates
from geoeval.readers.sides import Side
from geoeval.readers.sources import unit_name

_EDGES = re.compile(r"^(?P<name>.+?):(?P<edges>\s*-?[\d.]+(?:[eE][+-]?\d+)?(?:\s*,\s*-?[\d.]+(?:[eE][+-]?\d+)?)*)\s*$")

_MEASURED = ("area", "length")

#: More values than this in one stratum field are probably a number that wants edges.
MANY = 50


@dataclass(frozen=True, slots=True)
class By:
    """One stratum field, with the edges at which a numeric one is cut."""

    name: str
    edges: tuple[str, ...] = ()


def parse_by(text: str) -> By:
    """Read ``"area:100,500"`` as a field and its edges.

    Raises
    ------
    ConfigError
        The edges are no numbers or do not rise.

    Examples
    --------
    >>> parse_by("area:100,500")
    By(name='area', edges=('100', '500'))
    >>> parse_by("region")
    By(name='region', edges=())
    """
    found = _EDGES.match(text)
    if found is None:
        return By(text.strip())
    edges = tuple(part.strip() for part in found["edges"].split(","))
    try:
        numbers = [float(edge) for edge in edges]
    except ValueError as error:
        raise ConfigError(f"by = {text!r}: expected edges such as area:100,500, found {found['edges']!r}") from error
    if any(b <= a for a, b in itertools.pairwise(numbers)):
        raise ConfigError(f"by = {text!r}: expected edges that rise, found {found['edges']!r}; sort them")
    return By(found["name"].strip(), edges)


def _refuse_edges(text: str, known: set[str]) -> None:
    """Where what stands before the last colon is a field, it is the edges that cannot be read."""
    name, colon, edges = text.rpartition(":")
    if colon and (name in known or name in _MEASURED):
        raise ConfigError(f"by = {text!r}: expected rising numbers as edges, such as {name}:100,500, found {edges!r}")


def cut(values: FloatArray, edges: Sequence[str]) -> ObjectArray:
    """Names of the ranges that values fall into: lower edge included, upper one not; ``unknown`` for NaN.

    Examples
    --------
    >>> cut(np.array([50.0, 100.0, 500.0, np.nan]), ("100", "500")).tolist()
    ['<100', '100-500', '>=500', 'unknown']
    """
    inner = [f"{low}-{high}" for low, high in itertools.pairwise(edges)]
    names = np.array([f"<{edges[0]}", *inner, f">={edges[-1]}", UNKNOWN], dtype=object)
    at = np.digitize(values, [float(edge) for edge in edges])
    at[np.isnan(values)] = len(names) - 1
    return names[at]


def strata(
    reference: Side, prediction: Side, fields: Sequence[str], remarks: Remarks
) -> tuple[dict[str, ObjectArray], dict[str, ObjectArray], frozenset[str]]:
    """Value of each stratum field for each feature of both sides.

    Parameters
    ----------
    reference, prediction
        Both sides, in the metric system.
    fields
        Columns, with edges where they are cut; ``area`` and ``length`` are measured where no column bears the name.
    remarks
        Takes findings.

    Returns
    -------
    reference, prediction, reference_only
        The values, ``unknown`` where there is none, and the fields that predictions do not have.

    Raises
    ------
    ColumnError
        Neither side has the field, or it is cut and not numeric.
    """
    out: tuple[dict[str, ObjectArray], dict[str, ObjectArray]] = ({}, {})
    reference_only = set()
    for text in fields:
        by = By(text) if text in reference.frame.columns or text in prediction.frame.columns else parse_by(text)
        if by.name != stratum_name(text):
            raise ConfigError(
                f"by = {text!r}: a name with '=', or with ':' before a number, reads as a file or an edge; rename the "
                "column"
            )
        found = [_field(side, by) for side in (reference, prediction)]
        if found[0] is None and found[1] is None:
            known = {str(name) for side in (reference, prediction) for name in side.frame.columns}
            if len(reference) or len(prediction):
                _refuse_edges(by.name, known)
                raise ColumnError(
                    f"by: expected column {by.name!r} in {reference.label} or {prediction.label}, found it in neither; "
                    f"{nearest_spelling(by.name, known)}"
                )
        if found[1] is None and len(prediction):
            reference_only.add(by.name)
        if found[0] is None and len(reference):
            remarks.notes[f"stratum {by.name}"] = "stands on predictions only; references are in 'unknown'"
        for side, values, part in zip((reference, prediction), found, out, strict=True):
            part[by.name] = np.full(len(side), UNKNOWN, dtype=object) if values is None else values
        several = {*out[0][by.name], *out[1][by.name]}
        if len(several) > MANY:
            remarks.findings.append(
                Finding(
                    "strata-many",
                    "minor",
                    (by.name,),
                    f"stratum field {by.name!r} has {len(several)} values",
                    f"cut it at edges, for example {by.name}:100,500",
                )
            )
    return out[0], out[1], frozenset(reference_only)


def _field(side: Side, by: By) -> ObjectArray | None:
    if by.name in side.frame.columns:
        if not by.edges:
            text = as_text(side.frame[by.name])
            text[pd.isna(text)] = UNKNOWN
            return text
        values = as_numbers(side.frame[by.name])
        if values is None:
            raise ColumnError(f"by: {side.label}: column {by.name!r} is cut at {', '.join(by.edges)} but holds text")
        return cut(values, by.edges)
    if by.name not in _MEASURED or side.geometry is None:
        return None
    if not by.edges:
        raise ConfigError(f"by = {by.name!r} is measured, so it needs edges: for example {by.name}:100,500")
    measured = shapely.area(side.geometry) if by.name == "area" else shapely.length(side.geometry)
    return cut(np.round(measured, 6), by.edges)


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """Cluster of each feature on both sides; ``clustered`` is False where none were wanted."""

    reference: ObjectArray
    prediction: ObjectArray
    clustered: bool = True


def by_column(reference: Side, prediction: Side, column: str) -> Clusters:
    """Clusters from a declared column, which both sides must have.

    Raises
    ------
    ColumnError
        A side lacks the column.
    InputError
        A feature has no value in it.
    """
    parts = []
    for side, other in ((reference, prediction), (prediction, reference)):
        lacks = [table.name for table in side.tables if len(table) and column not in table.frame.columns]
        if lacks:
            beside = f", though {other.label} has it" if column in other.frame.columns else ""
            raise ColumnError(
                f"cluster: expected column {column!r} on both sides, found none in {listed(lacks, 3)}{beside}; "
                f"add it there, or declare cluster = 'grid:auto'; "
                f"{nearest_spelling(column, map(str, side.frame.columns))}"
            )
        parts.append(_cluster_text(side, column) if column in side.frame.columns else np.empty(0, dtype=object))
    if len(parts[0]) and len(parts[1]) and not {*parts[0]} & {*parts[1]}:
        # One side may name images with folder and ending, the other without.
        parts = [_names(text) for text in parts]
    return Clusters(parts[0], parts[1])


def _cluster_text(side: Side, column: str) -> ObjectArray:
    text = as_text(side.frame[column])
    null = np.flatnonzero(pd.isna(text))
    if len(null):
        raise InputError(
            f"{side.label}: expected a cluster in column {column!r} of every feature, found none in {len(null)} "
            f"({listed(side.places(null, 3))}); fill it in, or declare cluster = 'grid:auto'"
        )
    return text


def guessed(reference: Side, prediction: Side, remarks: Remarks) -> Clusters | None:
    """Clusters from a column with a usual name that both sides have; None where there is none worth having.

    A column with one value only, or without a common value on both sides, says nothing about what belongs together.
    """
    theirs = candidates(prediction.frame, "cluster") if len(prediction) else None
    for column in candidates(reference.frame, "cluster"):
        match = column if theirs is None else next((name for name in theirs if name.lower() == column.lower()), None)
        if match is None:
            continue
        left = _names(_cluster_text(reference, column))
        right = _names(_cluster_text(prediction, match)) if len(prediction) else np.empty(0, dtype=object)
        if len({*left, *right}) < 2 or (len(right) and not {*left} & {*right}):
            continue
        remarks.notes["cluster"] = f"column {column!r} (guessed)"
        return Clusters(left, right)
    return None


def _names(text: ObjectArray) -> ObjectArray:
    """Names of files without folder and ending, unless that would make two of them one."""
    short = {value: unit_name(value) for value in set(text)}
    if len(set(short.values())) < len(short):
        return text
    out = np.empty(len(text), dtype=object)
    out[:] = [short[value] for value in text]
    return out


def by_grid(
    reference: Side,
    prediction: Side,
    points: Sequence[tuple[FloatArray, FloatArray]],
    text: str,
    pixel: bool,
    remarks: Remarks,
) -> Clusters:
    """Clusters from square blocks over the representative points.

    Images have no common ground, so in pixel coordinates blocks bear the name of their unit.
    """
    from geoeval.geometry.blocks import auto_side, block_names, parse_grid

    unit = "px" if pixel else "m"
    side_length = parse_grid(text, unit)
    where = next((side for side in (reference, prediction) if len(side) and side.geometry is not None), None)
    if side_length is None:
        bounds: Any = shapely.total_bounds(where.geometry) if where is not None else (np.nan,) * 4
        side_length = auto_side(bounds)
    remarks.notes["cluster"] = f"grid of {side_length:g} {unit}"
    parts = []
    several = len({*reference.unit, *prediction.unit}) > 1
    for side, (x, y) in zip((reference, prediction), points, strict=True):
        names = block_names(x, y, side_length) if len(x) else np.empty(0, dtype=object)
        parts.append(_prefixed(side.unit, names) if pixel and several else names)
    return Clusters(parts[0], parts[1])


def _prefixed(unit: ObjectArray, names: ObjectArray) -> ObjectArray:
    out = np.empty(len(names), dtype=object)
    out[:] = [f"{image}/{name}" for image, name in zip(unit, names, strict=True)]
    return out


def joined(own: ObjectArray, other: ObjectArray, values: ObjectArray, blank: str) -> NDArray[Any]:
    """Values of another side brought over by id, ``blank`` where the id is not there.

    Examples
    --------
    >>> joined(np.array(["b", "z"]), np.array(["a", "b"]), np.array(["x0y0", "x1y0"], dtype=object), "none").tolist()
    ['x1y0', 'none']
    """
    table = dict(zip(other, values, strict=True))
    out = np.empty(len(own), dtype=object)
    out[:] = [table.get(item, blank) for item in own]
    return out
