"""Anybody's split as a table of samples: one file with a split column, one file per split, or manifests.

Columns       found by their usual names, and every guess is said; or named by the caller.
Splits        of any name: roles, folds, names of files. ``validation`` is ``val``.
Order         rows are sorted by sample id; nothing depends on the order of a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from geoeval.errors import ColumnError, ConfigError, InputError
from geoeval.model import IntArray, ObjectArray
from geoeval.splits.list_files import read_list_file
from geoeval.splits.list_part import ListOptions, Part, neat, part_of
from geoeval.splits.list_places import Places
from geoeval.splits.record import IDENTITIES, MEMBERS, QUARANTINE
from geoeval.splits.settings import SplitSettings
from geoeval.splits.table import SampleTable, coded

__all__ = ["ListOptions", "SplitList", "named_files", "read_split_list"]


@dataclass(frozen=True, slots=True, eq=False)
class SplitList:
    """A split that somebody made.

    Parameters
    ----------
    table
        Its samples.
    identities
        Contract fields that it has and two splits may not share.
    groups
        Further columns that two splits may not share, as Arrow strings in the order of the table.
    columns
        Columns that were asked for, likewise.
    grid
        (n, 3) number of the grid, and the two indices; None without a grid index.
    shapes
        (n,) geometries where they are more than their boxes.
    settings
        What manifests say that their split was held to.
    sealed
        True where hashes of challenge samples are there but cannot be compared.
    """

    table: SampleTable
    identities: tuple[str, ...] = ()
    groups: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, Any] = field(default_factory=dict)
    grid: IntArray | None = None
    shapes: ObjectArray | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    settings: SplitSettings | None = None
    sealed: bool = False

    def column(self, name: str) -> Any:
        """A column as Arrow strings.

        Raises
        ------
        ColumnError
            There is none of that name.
        """
        for home in (self.columns, self.groups, self.table.strata, self.table.texts):
            if name in home:
                return home[name]
        raise ColumnError(f"no column {name!r} in this list")


def named_files(arguments: Sequence[str]) -> list[tuple[str | None, Path]]:
    """Files as they were given: ``train=tiles.csv`` names the split of a whole file.

    Examples
    --------
    >>> [(name, path.name) for name, path in named_files(["train=a.csv", "b.csv"])]
    [('train', 'a.csv'), (None, 'b.csv')]
    """
    out: list[tuple[str | None, Path]] = []
    for text in arguments:
        name, mark, path = text.partition("=")
        if mark and name and path and not Path(text).exists():
            out.append((name.strip(), Path(path)))
        else:
            out.append((None, Path(text)))
    return out


def read_split_list(arguments: Sequence[str], options: ListOptions | None = None) -> SplitList:
    """Anybody's split.

    Parameters
    ----------
    arguments
        One file with a split column, or one file per split: its stem is the split, or ``NAME=FILE``.

    Raises
    ------
    InputError
        Naming the record or row: a repeated id, no split, bounds that are no box, a system that nobody knows.
    ColumnError
        A column that was named, or a split column, is not there.
    """
    held = options if options is not None else ListOptions()
    files = named_files(arguments)
    if not files:
        raise InputError("no file was given")
    alone = len(files) == 1 and files[0][0] is None
    parts = []
    for name, path in files:
        file = read_list_file(path, layer=held.layer, crs=held.crs)
        whole = name if name is not None else None if alone or held.split is not None else path.stem
        parts.append(part_of(file, whole, held, several=len(files) > 1))
    return _together(parts)


def _together(parts: Sequence[Part]) -> SplitList:
    """One table of all files; whatever goes with a row moves with it."""
    n = sum(part.file.n for part in parts)
    texts = _columns([part.texts for part in parts], parts)
    notes: dict[str, str] = {}
    for part in parts:
        lead = f"{part.file.name}: " if len(parts) > 1 else ""
        notes |= {f"{lead}{name}": text for name, text in part.notes.items()}
    bounds = np.concatenate([np.full((p.file.n, 4), np.nan) if p.places is None else p.places.bounds for p in parts])
    crs = _concat([None if part.places is None else part.places.crs for part in parts], parts)
    codes, hashed = _hashes(parts)
    table = SampleTable.of(
        n,
        bounds=bounds,
        perceptual=codes,
        hashed=hashed,
        # Whatever stands here moves with its row, so that it gives the order of the table afterwards.
        labels=np.arange(n).astype(np.object_),
        sample_id=_concat([part.ids for part in parts], parts),
        split=_concat([part.split for part in parts], parts),
        **({} if crs.null_count == n else {"crs": crs}),
        **texts,
        **_members_of(parts),
    )
    order = np.asarray(table.labels, dtype=np.int64)
    table = replace(table, labels=None)
    _refuse_repeats(table, order, parts, notes)
    groups = _columns([part.groups for part in parts], parts)
    keep = _columns([part.keep for part in parts], parts)
    here = [name for name in (*IDENTITIES[1:], *MEMBERS) if name in table.texts or name in table.members]
    return SplitList(
        table=table,
        identities=(*(["sample_id"] if any(part.has_ids for part in parts) else []), *here),
        groups={name: column.take(order) for name, column in groups.items()},
        columns={name: column.take(order) for name, column in keep.items()},
        grid=_grid(parts, order),
        shapes=_all_shapes(parts, order),
        notes=notes,
    )


def _concat(arrays: Sequence[Any], parts: Sequence[Part]) -> Any:
    import pyarrow as pa

    kind = pa.large_string()
    return pa.concat_arrays(
        [pa.nulls(p.file.n, kind) if a is None else a.cast(kind) for a, p in zip(arrays, parts, strict=True)]
    )


def _columns(given: Sequence[Mapping[str, Any]], parts: Sequence[Part]) -> dict[str, Any]:
    names = dict.fromkeys(name for one in given for name in one)
    return {name: _concat([one.get(name) for one in given], parts) for name in names}


def _members_of(parts: Sequence[Part]) -> dict[str, Any]:
    import pyarrow as pa

    kind = pa.large_list(pa.large_string())
    names = dict.fromkeys(name for part in parts for name in part.members)
    return {
        name: pa.concat_arrays([part.members.get(name, pa.nulls(part.file.n, kind)) for part in parts])
        for name in names
    }


def _hashes(parts: Sequence[Part]) -> tuple[Any, Any]:
    if all(part.perceptual is None for part in parts):
        return None, None
    blank = [(np.zeros(p.file.n, np.uint64), np.zeros(p.file.n, np.bool_)) for p in parts]
    pairs = [part.perceptual or none for part, none in zip(parts, blank, strict=True)]
    return np.concatenate([a for a, _ in pairs]), np.concatenate([b for _, b in pairs])


def _grid(parts: Sequence[Part], order: IntArray) -> IntArray | None:
    if any(part.grid is None for part in parts):
        return None
    index = np.concatenate([part.grid for part in parts if part.grid is not None])[order]
    within = np.zeros(len(index), dtype=np.int64)
    if any(part.grid_within is not None for part in parts):
        within = coded(neat(_concat([part.grid_within for part in parts], parts)).take(order))[0]
        if (within < 0).any():
            raise ConfigError("grid_within: some rows do not say in which grid their index counts; fill them in")
    return np.concatenate([within[:, None], index], axis=1)


def _all_shapes(parts: Sequence[Part], order: IntArray) -> ObjectArray | None:
    if all(part.places is None or part.places.shapes is None for part in parts):
        return None
    out = [
        _boxes(p.places, p.file.n) if p.places is None or p.places.shapes is None else p.places.shapes for p in parts
    ]
    return np.concatenate(out)[order]


def _boxes(where: Places | None, n: int) -> ObjectArray:
    import shapely

    out = np.full(n, None, dtype=np.object_)
    if where is not None:
        there = ~np.isnan(where.bounds).any(axis=1)
        out[there] = shapely.box(*where.bounds[there].T)
    return out


def _refuse_repeats(table: SampleTable, order: IntArray, parts: Sequence[Part], notes: dict[str, str]) -> None:
    """Refuse an id twice in one split where the column is an id; say so where it only looked like one."""
    split, names = table.splits()
    keys = np.stack([table.codes("sample_id"), split], axis=1)
    _, first, inverse, times = np.unique(keys, axis=0, return_index=True, return_inverse=True, return_counts=True)
    again = times[inverse.reshape(-1)] > 1
    again[first] = False
    if not again.any():
        return
    starts = np.cumsum([0] + [part.file.n for part in parts])
    for row in np.flatnonzero(again).tolist():
        own = int(np.searchsorted(starts, order[row], side="right")) - 1
        part = parts[own]
        if part.firm:
            where = names[split[row]] if split[row] >= 0 else QUARANTINE
            raise InputError(
                f"{part.file.row(order[row] - starts[own])}: id {table.text('sample_id', row)!r} stands more than once "
                f"in split {where!r} ({int(again.sum())} rows too many in all); ids are unique: mend them, or name "
                "another column (--id COLUMN, --id none)"
            )
    notes["repeated ids"] = f"{int(again.sum())} rows have the id of another row of their split; each row is a sample"
