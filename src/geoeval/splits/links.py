"""What links samples: which rows share which value, which images and labels are nearly alike, which boxes are near."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from geoeval.errors import InputError
from geoeval.model import IntArray
from geoeval.splits.blanks import known, tidy
from geoeval.splits.record import IDENTITIES, MEMBERS
from geoeval.splits.settings import SplitSettings
from geoeval.splits.table import Mask, SampleTable, coded, encoded_column

#: Relations by value: name to the fields whose values are pooled. An image that is raw here and processed there is one.
BYTES: dict[str, tuple[str, ...]] = {
    "image_sha256": ("raw_image_sha256", "processed_image_sha256"),
    "label_sha256": ("label_sha256",),
    "record_sha256": ("record_sha256",),
}


class Shared(NamedTuple):
    """Which row holds which value: (pairs,) rows and value numbers, sorted by value then row, and the values' texts.

    Values that several rows hold come first, by their text; the others follow without one.
    """

    row: IntArray
    value: IntArray
    words: list[str]


def shared(table: SampleTable, name: str) -> Shared:
    """Rows and values of one relation by value: an identity, a member field, or one of :data:`BYTES`.

    Examples
    --------
    >>> table = SampleTable.of(2, sample_id=["a", "b"], object_ids=[["x", "unknown"], ["x"]])
    >>> shared(table, "object_ids").row.tolist(), shared(table, "object_ids").words
    ([0, 1], ['x'])
    """
    if name in MEMBERS:
        return Shared(*member_pairs(table, (name,)))
    found = text_pairs(table, BYTES.get(name, (name,)))
    if name in ("label_sha256", "label_geometry_hash"):
        return without(found, empty_labels(table))
    return found


def text_pairs(table: SampleTable, fields: Iterable[str]) -> Shared:
    """Rows and values of some text fields, pooled."""
    import pyarrow as pa

    columns = [table.texts[name] for name in fields if name in table.texts]
    if not columns:
        return Shared(np.zeros(0, np.int64), np.zeros(0, np.int64), [])
    codes, words = encoded_column(pa.concat_arrays(columns))
    rows = np.tile(np.arange(table.n, dtype=np.int64), len(columns))
    return _settled(rows, codes, words)


def member_pairs(table: SampleTable, fields: Iterable[str]) -> Shared:
    """Rows and values of some fields with several identifiers, pooled; blanks left out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = [table.members[name] for name in fields if name in table.members]
    if not columns:
        return Shared(np.zeros(0, np.int64), np.zeros(0, np.int64), [])
    rows = [pc.list_parent_indices(column).to_numpy(zero_copy_only=False) for column in columns]
    codes, words = coded(pa.concat_arrays([pc.list_flatten(column) for column in columns]))
    neat = [tidy(word) if known(word) else None for word in words]
    names = list(dict.fromkeys(word for word in neat if word is not None))
    place = {word: at for at, word in enumerate(names)}
    again = np.array([-1 if word is None else place[word] for word in neat] + [-1], dtype=np.int64)
    return _settled(np.concatenate(rows).astype(np.int64), again[codes], pa.array(names, pa.large_string()))


def _settled(rows: IntArray, codes: IntArray, words: Any) -> Shared:
    """Pairs without blanks and repeats, sorted by value and then by row."""
    keep = codes >= 0
    rows, codes = rows[keep], codes[keep]
    times = np.bincount(codes, minlength=len(words))
    again, once = np.flatnonzero(times > 1), np.flatnonzero(times <= 1)
    texts: list[str] = words.take(again).to_pylist()
    order = sorted(range(len(texts)), key=texts.__getitem__)
    rank = np.empty(len(words), dtype=np.int64)
    rank[again[order]] = np.arange(len(again))
    rank[once] = np.arange(len(again), len(words))
    values = rank[codes]
    by = np.lexsort((rows, values))
    rows, values = rows[by], values[by]
    if len(rows):
        fresh = np.ones(len(rows), dtype=np.bool_)
        fresh[1:] = (np.diff(rows) != 0) | (np.diff(values) != 0)
        rows, values = rows[fresh], values[fresh]
    return Shared(rows, values, [*(texts[at] for at in order), *[""] * len(once)])


def without(found: Shared, rows: IntArray) -> Shared:
    """The pairs of all other rows."""
    keep = ~np.isin(found.row, rows)
    return Shared(found.row[keep], found.value[keep], found.words)


@cache
def empty_label_hash() -> str:
    """The label-geometry hash of a label that holds no feature."""
    from geoeval.splits.labelsets import geometry_hash

    return str(geometry_hash(np.zeros(0, dtype=np.object_)))


def empty_labels(table: SampleTable) -> IntArray:
    """Rows whose label holds no feature: background samples share these bytes by nature, and that links nothing."""
    column = table.texts.get("label_geometry_hash")
    if column is None:
        return np.zeros(0, dtype=np.int64)
    codes, words = coded(column)
    if empty_label_hash() not in words:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(codes == words.index(empty_label_hash())).astype(np.int64)


def few_features(table: SampleTable) -> Mask:
    """(n,) True where a label was read and has too few features to be nearly like another one; a mask has none.

    Such labels are compared by ``label_geometry_hash`` alone.
    """
    from geoeval.splits.labelsets import LEAST_FEATURES

    if table.labels is None:
        return np.zeros(table.n, dtype=np.bool_)
    sizes = [
        LEAST_FEATURES if one is None else max(len(part) if part is not None else 0 for part in (one.world, one.pixels))
        for one in table.labels
    ]
    return np.array(sizes, dtype=np.int64) < LEAST_FEATURES


def recipes(table: SampleTable) -> list[str]:
    """The recipes behind the perceptual hashes of a table; "" where a hash does not say."""
    column = table.texts.get("perceptual_recipe")
    if not table.hashed.any():
        return []
    if column is None:
        return [""]
    codes, words = coded(column.take(np.flatnonzero(table.hashed)))
    return sorted({words[code] if code >= 0 else "" for code in np.unique(codes).tolist()})


def require_one_recipe(table: SampleTable) -> None:
    """Refuse perceptual hashes of several recipes: their bits do not compare.

    Raises
    ------
    InputError
        Naming the recipes.
    """
    found = recipes(table)
    if len(found) > 1:
        named = ", ".join(repr(one) if one else "none declared" for one in found)
        raise InputError(
            f"perceptual hashes come from {len(found)} recipes ({named}); bits of different recipes or library "
            "versions do not compare. Give image paths, so that all are recomputed"
        )


def perceptual_links(table: SampleTable, settings: SplitSettings) -> tuple[IntArray, IntArray]:
    """Rows with a perceptual hash, and their groups of near-duplicate images in any orientation."""
    from geoeval.splits.hamming import hamming_groups

    rows = np.flatnonzero(table.hashed).astype(np.int64)
    if not len(rows):
        return rows, rows
    require_one_recipe(table)
    codes, near = near_images(table, rows, settings)
    return rows, hamming_groups(codes, settings.radius, **near)


def near_images(table: SampleTable, rows: IntArray, settings: SplitSettings) -> tuple[Any, dict[str, Any]]:
    """The codes of some rows, and what else decides whether two of them are near."""
    from geoeval.splits.hamming import Confirmation

    second = Confirmation(
        table.confirming[rows], table.confirmed[rows], settings.confirmed_radius, settings.confirming_bits
    )
    return table.perceptual[rows], {"looks": table.looks[rows], "confirmation": second}


def box_links(table: SampleTable, distance_m: float) -> tuple[IntArray, IntArray]:
    """Rows with a box, and their groups of boxes nearer than a distance."""
    from geoeval.splits.boxes import within_groups

    rows = np.flatnonzero(table.has_box()).astype(np.int64)
    if not len(rows):
        return rows, rows
    return rows, np.asarray(within_groups(boxes_of(table, rows), distance_m), dtype=np.int64)


def boxes_of(table: SampleTable, rows: IntArray) -> Any:
    """The boxes of some rows in degrees."""
    from geoeval.splits.boxes import from_bounds

    b = table.bounds[rows]
    codes, words = coded(table.texts["crs"].take(rows))
    systems = words[0] if len(words) == 1 else np.array(words, dtype=np.object_)[codes]

    def name(row: int) -> str:
        return f"record {table.text('sample_id', int(rows[row]))!r}"

    return from_bounds(b[:, 0], b[:, 1], b[:, 2], b[:, 3], systems, name=name)


def unknown_values(table: SampleTable, fields: Sequence[str] = (*IDENTITIES, *MEMBERS)) -> dict[str, int]:
    """How many samples say nothing in a field although they could; fields that all samples fill are left out.

    Spared are the features of a label that holds none, and the perceptual hash of a flat image.

    Examples
    --------
    >>> unknown_values(SampleTable.of(2, sample_id=["a", "b"], group_id=["g", ""]), ["sample_id", "group_id"])
    {'group_id': 1}
    """
    return {name: len(rows) for name, rows in silent_rows(table, fields).items()}


def silent_rows(table: SampleTable, fields: Sequence[str]) -> dict[str, IntArray]:
    """Field to the rows that say nothing in it although they could; see :func:`unknown_values`.

    Examples
    --------
    >>> silent_rows(SampleTable.of(2, sample_id=["a", "b"], group_id=["g", ""]), ["group_id"])["group_id"].tolist()
    [1]
    """
    rows = {name: np.flatnonzero(~_said(table, name)).astype(np.int64) for name in fields}
    return {name: found for name, found in rows.items() if len(found)}


def _said(table: SampleTable, name: str) -> Mask:
    """(n,) True where a field says something, or has nothing to say."""
    said = np.zeros(table.n, dtype=np.bool_)
    if name in MEMBERS:
        said[member_pairs(table, (name,)).row] = True
        said[empty_labels(table)] = True
    elif name == "bbox":
        said = table.has_box()
    elif name == "perceptual_hash":
        said = table.hashed | np.isin(table.codes("sample_id"), _codes_of(table, table.flat))
    elif name == "strata":
        for column in table.strata.values():
            said |= coded(column)[0] >= 0
    else:
        said = table.codes(name) >= 0
    return said


def _codes_of(table: SampleTable, ids: Sequence[str]) -> IntArray:
    words = coded(table.texts["sample_id"])[1]
    wanted = set(ids)
    return np.array([at for at, word in enumerate(words) if word in wanted], dtype=np.int64)
