"""What the columns of one file of a list mean: named, or guessed from the usual names, and every guess is said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from geoeval.errors import ColumnError, InputError
from geoeval.model import IntArray
from geoeval.splits.blanks import known, tidy
from geoeval.splits.list_files import ListFile
from geoeval.splits.list_places import Places, places
from geoeval.splits.record import ALIASES, IDENTITIES, MEMBERS, QUARANTINE, REVEALING, ROLES
from geoeval.splits.table import coded

SPLIT_NAMES = ("split", "set", "subset", "partition", "role", "fold", "kfold", "dataset_split")
#: A repeated id of these names is a mistake; of the others it is a file that several rows name.
FIRM_IDS = ("sample_id", "id", "uid", "uuid")
SOFT_IDS = ("item", "image_id", "image", "image_path", "file_name", "filename", "chip", "chip_id", "tile", "tile_id")
GROUP_NAMES = ("aoi", "aoi_id", "group", "site", "site_id", "scene", "scene_id")
HASH_NAMES: Mapping[str, tuple[str, ...]] = {
    **{name: (name,) for name in (*REVEALING, "perceptual_recipe")},
    "raw_image_sha256": ("raw_image_sha256", "image_sha256", "sha256"),
}
_MOST_SPLITS = 100
_ROLES = frozenset({*ROLES, *ALIASES, QUARANTINE})
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """What the columns of a list mean; None is guessed from the usual names.

    Parameters
    ----------
    id
        ``"none"`` numbers the rows.
    groups
        Columns whose values two splits may not share; None guesses, () takes none.
    bounds
        Columns of the bounds (four) or of a point (two).
    grid
        Two columns of a grid index; ``grid_within`` names a column inside whose values it counts.
    keep
        Further columns that a report asks for.
    """

    split: str | None = None
    id: str | None = None
    groups: tuple[str, ...] | None = None
    bounds: tuple[str, ...] | None = None
    crs: str | None = None
    grid: tuple[str, str] | None = None
    grid_within: str | None = None
    keep: tuple[str, ...] = ()
    layer: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One file of a list as columns with a meaning; ``has_ids`` is False where its rows are only numbered."""

    file: ListFile
    split: Any
    ids: Any
    has_ids: bool
    firm: bool
    texts: Mapping[str, Any]
    members: Mapping[str, Any]
    groups: Mapping[str, Any]
    keep: Mapping[str, Any]
    perceptual: Any
    places: Places | None
    grid: IntArray | None
    grid_within: Any
    notes: Mapping[str, str]


def part_of(file: ListFile, whole: str | None, held: ListOptions, *, several: bool) -> Part:
    """What the columns of one file mean; ``whole`` is the split of all of it."""
    import pyarrow as pa

    notes = dict(file.notes)
    given = _split_column(file, held, notes) if whole is None else pa.array([whole] * file.n, type=pa.large_string())
    split = _roles(given, notes)
    ids, has_ids, firm = _ids(file, held, notes, several=several)
    lower = {name.lower(): name for name in reversed(list(file.columns))}
    texts = {name: file.text(lower[name]) for name in IDENTITIES[1:] if name in lower}
    for field_name, names in HASH_NAMES.items():
        column = file.first(names)
        if column is not None:
            texts[field_name] = _lower(file.text(column))
    where = places(file, bounds=held.bounds, crs=held.crs)
    if where is not None:
        notes |= where.notes
    grid = None if held.grid is None else np.stack([_index(file, name) for name in held.grid], axis=1)
    return Part(
        file=file,
        split=split,
        ids=ids,
        has_ids=has_ids,
        firm=firm,
        texts=texts,
        members={name: _members(file, lower[name]) for name in MEMBERS if name in lower},
        groups=_groups(file, held, set(texts), notes),
        keep={name: file.text(file.require(name, "asked for")) for name in held.keep},
        perceptual=_perceptual(file),
        places=where,
        grid=grid,
        grid_within=None
        if held.grid_within is None
        else file.text(file.require(held.grid_within, "where the grid index counts")),
        notes=notes,
    )


def _split_column(file: ListFile, held: ListOptions, notes: dict[str, str]) -> Any:
    if held.split is not None:
        column = file.require(held.split, "split")
    else:
        found = file.first(SPLIT_NAMES)
        if found is None:
            raise ColumnError(
                f"{file.name}: expected a column that names the split, found {', '.join(map(repr, file.columns))}; "
                "name it (--split-column), or give one file per split: train=a.csv test=b.csv"
            )
        column = found
        notes["split column"] = f"{column!r} (guessed)"
    texts = file.text(column)
    codes, words = coded(texts)
    blank = np.array([not known(word) for word in words] + [True], dtype=np.bool_)[codes]
    if blank.any():
        at = np.flatnonzero(blank)
        raise InputError(
            f"{file.row(at[0])}: column {column!r} names no split ({len(at)} such rows); fill it in or leave the "
            "rows out"
        )
    if len(words) > _MOST_SPLITS:
        raise InputError(
            f"{file.name}: column {column!r} has {len(words)} different values; is it the split? Name another column"
        )
    return texts


def _roles(texts: Any, notes: dict[str, str]) -> Any:
    """The splits, roles in their own spelling: ``Train`` and ``TEST`` are train and test, and it is said.

    Splits of other names stay as they are.
    """
    import pyarrow as pa

    codes, words = coded(texts)
    usual = [tidy(word).casefold() for word in words]
    read = [lower if lower in _ROLES else word for lower, word in zip(usual, words, strict=True)]
    changed = {word: role for word, role in zip(words, read, strict=True) if word != role}
    if not changed:
        return texts
    notes["split names"] = ", ".join(f"{word!r} read as {role!r}" for word, role in sorted(changed.items()))
    return pa.array(read, type=pa.large_string()).take(pa.array(codes))


def _ids(file: ListFile, held: ListOptions, notes: dict[str, str], *, several: bool) -> tuple[Any, bool, bool]:
    """Ids as Arrow strings; whether a column gives them, and whether a repeated one is a mistake."""
    import pyarrow as pa

    column: str | None = None
    firm = False
    if held.id is not None and held.id != "none":
        column, firm = file.require(held.id, "id"), True
    elif held.id is None:
        column = file.first((*FIRM_IDS, *SOFT_IDS))
        firm = column is not None and column.lower() in FIRM_IDS
        if column is not None:
            notes["id column"] = f"{column!r} (guessed)"
    if column is None:
        lead = f"{Path(file.name).stem} row " if several else "row "
        notes["id column"] = "none: rows are numbered"
        return pa.array([f"{lead}{at + 1}" for at in range(file.n)], type=pa.large_string()), False, False
    texts = file.text(column)
    codes, words = coded(texts)
    blank = np.array([not known(word) for word in words] + [True], dtype=np.bool_)[codes]
    if blank.any():
        raise InputError(f"{file.row(np.flatnonzero(blank)[0])}: column {column!r} must hold an id, got nothing")
    return texts, True, firm


def _lower(texts: Any) -> Any:
    import pyarrow.compute as pc

    return pc.utf8_lower(texts)


def _index(file: ListFile, name: str) -> IntArray:
    values = file.numbers(file.require(name, "grid index"))
    bad = np.flatnonzero((values != np.floor(values)) | (np.abs(values) > 2**53))
    if len(bad):
        raise InputError(f"{file.row(bad[0])}: a grid index is a whole number, got {values[bad[0]]} in {name!r}")
    return values.astype(np.int64)


def _members(file: ListFile, column: str) -> Any:
    """Lists of identifiers: a list column, or texts parted by semicolons."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = pa.large_list(pa.large_string())
    array = file.columns[column]
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        return array.cast(kind)
    return pc.split_pattern(file.text(column).fill_null(""), ";").cast(kind)


def _groups(file: ListFile, held: ListOptions, have: set[str], notes: dict[str, str]) -> dict[str, Any]:
    if held.groups is not None:
        names = [file.require(name, "group") for name in held.groups]
    else:
        found = file.first(GROUP_NAMES)
        names = [] if found is None else [found]
        if found is not None:
            notes["group column"] = f"{found!r} (guessed)"
    return {name: neat(file.text(name)) for name in names if name not in have}


def neat(texts: Any) -> Any:
    """Identifiers tidy, and null where they say nothing: once a distinct value."""
    import pyarrow as pa

    codes, words = coded(texts)
    clean = [tidy(word) if known(word) else None for word in words]
    return pa.array([*clean, None], type=pa.large_string()).take(pa.array(np.where(codes < 0, len(clean), codes)))


def _perceptual(file: ListFile) -> Any:
    column = file.first(("perceptual_hash", "phash"))
    if column is None:
        return None
    codes, words = coded(_lower(file.text(column)))
    for at, word in enumerate(words):
        if len(word) != 16 or not set(word) <= _HEX:
            row = np.flatnonzero(codes == at)[0]
            raise InputError(f"{file.row(row)}: column {column!r} must hold 16 hexadecimal digits, got {word[:40]!r}")
    values = np.array([int(word, 16) for word in words] + [0], dtype=np.uint64)
    return values[codes], codes >= 0
