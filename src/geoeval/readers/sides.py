"""One side of a run: all its files as one table, its geometries checked and repaired as the policy says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import shapely
from numpy.typing import NDArray

from geoeval.errors import InputError
from geoeval.model import Finding, IntArray, ObjectArray
from geoeval.options import Columns, OnInvalid
from geoeval.readers.columns import SHOWN, listed
from geoeval.readers.guess import guess, require
from geoeval.readers.raw import Table

DIMENSIONS = ("point", "line", "polygon")

#: Dimension by shapely's type number: point, line, ring, polygon, then their multiparts; -1 for collections.
_DIMENSION = np.array([0, 1, 1, 2, 0, 1, 2, -1], dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """All features of one side.

    Parameters
    ----------
    name
        ``"reference"`` or ``"prediction"``.
    frame
        Attributes; the index is 0 to n - 1.
    geometry
        Two-dimensional geometries, each in the CRS of its file; None where the side has none.
    reason
        What is wrong with each geometry as read, ``""`` where nothing is.
    file
        Index of each feature's table in ``tables``.
    row
        Position of each feature in its file.
    unit
        Name of each feature's unit.
    """

    name: str
    tables: tuple[Table, ...]
    frame: pd.DataFrame
    geometry: ObjectArray | None
    reason: ObjectArray
    file: IntArray
    row: IntArray
    unit: ObjectArray
    columns: Columns

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def label(self) -> str:
        """What messages call this side: its file, or how many files it has."""
        names = sorted({table.name for table in self.tables})
        return names[0] if len(names) == 1 else f"{self.name} ({len(names)} files)"

    def at(self, position: int | np.integer[Any]) -> str:
        """Where a feature stands, for messages."""
        return f"{self.tables[int(self.file[position])].name}, feature {int(self.row[position])}"

    def places(self, positions: NDArray[Any], shown: int = SHOWN) -> tuple[str, ...]:
        """Where the first few of these features stand."""
        return tuple(self.at(position) for position in positions[:shown])

    def take(self, keep: NDArray[Any]) -> Side:
        """The features at these positions, or where this mask is true."""
        return replace(
            self,
            frame=self.frame.iloc[np.flatnonzero(keep) if keep.dtype == np.bool_ else keep].reset_index(drop=True),
            geometry=None if self.geometry is None else self.geometry[keep],
            reason=self.reason[keep],
            file=self.file[keep],
            row=self.row[keep],
            unit=self.unit[keep],
        )

    def column(self, role: str, *, guessed: bool = True) -> tuple[str | None, bool]:
        """The column of a role, and whether it was declared; None where there is none."""
        declared = getattr(self.columns, role)
        if declared == "":
            return None, True
        if declared is not None:
            self.require(declared, role)
            return (declared if declared in self.frame.columns else None), True
        return (guess(self.frame, role) if guessed else None), False

    def require(self, column: str, role: str) -> None:
        """Refuse a declared column that some file with features lacks."""
        for table in self.tables:
            if len(table):
                require(table.frame, column, f"{self.name} {role}", table.name)


def join(name: str, tables: Sequence[tuple[str, Table]], columns: Columns) -> Side:
    """All tables of one side as one.

    Parameters
    ----------
    name
        ``"reference"`` or ``"prediction"``.
    tables
        Unit name and table of each file.
    columns
        The declared columns.

    Raises
    ------
    InputError
        Some files have geometry and others have none.
    """
    full = [table for _, table in tables if len(table)]
    with_shapes = [table for table in full if table.geometry is not None]
    if with_shapes and len(with_shapes) < len(full):
        bare = sorted(table.name for table in full if table.geometry is None)
        raise InputError(f"{name}: some files have geometry and others have none: {listed(bare)}; give all or none")
    none_at_all = not full and all(table.geometry is None for _, table in tables)
    frame = pd.concat([table.frame for table in full], ignore_index=True) if len(full) > 1 else None
    if frame is None:
        frame = full[0].frame if full else _empty_frame([table for _, table in tables])
    geometry = np.concatenate([table.geometry for table in with_shapes]) if with_shapes else np.empty(0, dtype=object)
    broken = [table.broken if table.broken is not None else np.full(len(table), "", dtype=object) for table in full]
    counts = [len(table) for _, table in tables]
    units = np.empty(len(tables), dtype=object)
    units[:] = [unit for unit, _ in tables]
    return Side(
        name=name,
        tables=tuple(table for _, table in tables),
        frame=frame,
        geometry=None if none_at_all or (full and not with_shapes) else _flat(geometry),
        reason=np.concatenate(broken) if broken else np.empty(0, dtype=object),
        file=np.repeat(np.arange(len(tables), dtype=np.int64), counts),
        row=np.concatenate([table.row for _, table in tables]) if tables else np.empty(0, dtype=np.int64),
        unit=np.repeat(units, counts),
        columns=columns,
    )


def _flat(geometry: ObjectArray) -> ObjectArray:
    """Without heights; copied only where there are some."""
    high = shapely.has_z(geometry)
    if high.any():
        geometry = geometry.copy()
        geometry[high] = shapely.force_2d(geometry[high])
    return geometry


def _empty_frame(tables: Sequence[Table]) -> pd.DataFrame:
    return tables[0].frame if tables else pd.DataFrame()


def dimension_counts(side: Side) -> dict[str, int]:
    """How many features of each dimension there are, empty ones left out; ``collection`` for mixed geometries."""
    if side.geometry is None:
        return {}
    kinds = shapely.get_type_id(side.geometry[~(shapely.is_missing(side.geometry) | shapely.is_empty(side.geometry))])
    codes, counts = np.unique(_DIMENSION[kinds], return_counts=True)
    names = {-1: "collection", 0: "point", 1: "line", 2: "polygon"}
    return {names[int(code)]: int(count) for code, count in zip(codes, counts, strict=True)}


def _odd_ones(side: Side, found: Mapping[str, int]) -> list[str]:
    """Where the features stand that are not of the most frequent dimension."""
    assert side.geometry is not None
    there = np.flatnonzero(~(shapely.is_missing(side.geometry) | shapely.is_empty(side.geometry)))
    codes = _DIMENSION[shapely.get_type_id(side.geometry[there])]
    plain = {name: count for name, count in found.items() if name != "collection"}
    usual = DIMENSIONS.index(max(plain, key=lambda name: plain[name])) if plain else None
    return [side.at(position) for position in there[codes != usual]]


def settle_dimension(sides: Sequence[Side], wanted: str | None, family: str) -> str | None:
    """The one dimension that all features have, None where there are no features with geometry.

    Raises
    ------
    InputError
        The dimensions differ, inside a side, between the sides, or from what the family needs.
    """
    counts = {side: dimension_counts(side) for side in sides}
    for side, found in counts.items():
        if len(found) > 1 or "collection" in found:
            said = ", ".join(f"{count} {kind}" + ("s" if count != 1 else "") for kind, count in sorted(found.items()))
            raise InputError(
                f"{side.label}: expected geometries of one dimension, found {said} "
                f"({listed(_odd_ones(side, found), 5)}); keep one kind, or split the collections"
            )
    kinds = {kind for found in counts.values() for kind in found}
    if len(kinds) > 1:
        said = ", ".join(f"{next(iter(found))}s in {side.label}" for side, found in counts.items() if found)
        raise InputError(f"{family}: expected one dimension on both sides, found {said}; compare like with like")
    kind = next(iter(kinds), None)
    if kind is not None and wanted is not None and kind != wanted:
        raise InputError(f"{family}: expected {wanted}s, found {kind}s in {sides[0].label}; use another family")
    return kind or wanted


def clean(side: Side, policy: OnInvalid) -> tuple[Side, Side, list[Finding]]:
    """Check every geometry, drop what is empty, and treat what is invalid as the policy says.

    Parameters
    ----------
    side
        Features as read.
    policy
        ``"repair"``, ``"refuse"`` or ``"drop"``.

    Returns
    -------
    checked, kept, findings
        All features with their reasons, those that remain with valid geometry, and what was done.

    Raises
    ------
    InputError
        Something is invalid and the policy is ``"refuse"``.
    """
    from geoeval.geometry.validity import reasons, repair

    if side.geometry is None:
        return side, side, []
    geometry = side.geometry.copy()
    reason = side.reason.copy()
    as_written = np.flatnonzero(reason == "")
    reason[as_written] = reasons(geometry[as_written])
    checked = replace(side, reason=reason)
    findings = []
    void = shapely.is_missing(geometry) | shapely.is_empty(geometry) | (reason == "zero-area")
    invalid = ~void & (reason != "")
    if invalid.any() and policy == "refuse":
        raise InputError(
            f"{side.label}: expected valid geometries, found {int(invalid.sum())} invalid ones of {len(side)}: "
            f"{listed(f'{side.at(i)}: {reason[i]}' for i in np.flatnonzero(invalid))}; repair them, or set "
            "on_invalid = 'repair' or 'drop'"
        )
    if invalid.any() and policy == "repair":
        at = np.flatnonzero(invalid)
        mended = np.asarray(repair(geometry[at]), dtype=object)
        geometry[at] = mended
        lost = at[shapely.is_missing(mended) | shapely.is_empty(mended)]
        void[lost] = True
        done = np.setdiff1d(at, lost)
        findings += _found(
            checked, done, "geometry-repaired", "minor", "were invalid and repaired", "repair them at the source"
        )
    elif invalid.any():
        findings += _found(
            checked, np.flatnonzero(invalid), "geometry-dropped", "major", "were invalid and dropped", "repair them"
        )
        void |= invalid
    gone = np.flatnonzero(void & ~(invalid & (policy == "drop")))
    findings += _found(
        checked, gone, "geometry-void", "major", "had no usable geometry and were dropped", "give them a geometry"
    )
    kept = replace(checked, geometry=geometry).take(~void)
    return checked, kept, findings


def _found(side: Side, at: NDArray[Any], code: str, severity: Any, says: str, mend: str) -> list[Finding]:
    if not len(at):
        return []
    reasons, counts = np.unique(side.reason[at].astype(str), return_counts=True)
    by_reason = ", ".join(f"{count} {reason}" for reason, count in zip(reasons, counts, strict=True))
    return [
        Finding(
            code,
            severity,
            side.places(at),
            f"{side.name}: {len(at)} of {len(side)} features {says} ({by_reason})",
            mend,
        )
    ]


def defects_by_unit(side: Side) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    """For each unit, how many features had which defect, and how many were read."""
    codes, units = pd.factorize(side.unit)
    counts = np.bincount(codes, minlength=len(units))
    read = {str(unit): int(count) for unit, count in zip(units, counts, strict=True)}
    defects: dict[str, dict[str, int]] = {}
    for reason in sorted(set(side.reason) - {""}):
        found = np.bincount(codes[side.reason == reason], minlength=len(units))
        for unit, count in zip(units, found, strict=True):
            if count:
                defects.setdefault(str(unit), {})[str(reason)] = int(count)
    return defects, read
