"""Samples as columns: what a million of them cost is what their texts cost, and every gate reads whole columns.

Rows are sorted by sample id, so that nothing downstream depends on the order of a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.errors import InputError, nearest_spelling
from geoeval.model import FloatArray, IntArray, ObjectArray
from geoeval.splits.blanks import known, tidy
from geoeval.splits.record import ALIASES, ASSETS, IDENTITIES, MEMBERS, QUARANTINE, REVEALING, Sample

Mask = NDArray[np.bool_]
Codes = NDArray[np.uint64]

TEXTS: tuple[str, ...] = (*IDENTITIES, "task", "split", "crs", *ASSETS, *REVEALING, "perceptual_recipe")
ORIENTATIONS = 8


@dataclass(frozen=True, slots=True)
class Invalid:
    """A record that could not be used: which, and why."""

    record: str
    says: str


@dataclass(frozen=True, slots=True, eq=False)
class SampleTable:
    """Samples as columns of one length.

    Parameters
    ----------
    n
        Number of samples.
    texts
        Field to Arrow string array, null where a field says nothing. A field that no sample has is left out.
    members
        Field to Arrow array of lists of strings.
    strata
        Declared stratum field to Arrow string array.
    bounds
        (n, 4) least x, least y, most x, most y in the sample's own system; NaN where there is no box.
    perceptual
        (n, 8 x looks) hashes of the eight orientations of each look, upright first; eight equal ones where only the
        upright one is known.
    hashed
        (n,) True where there is a perceptual hash to compare; flat images have none.
    confirming
        Second hashes, of the same shape as ``perceptual``.
    confirmed
        (n,) True where there are second hashes.
    looks
        (n,) looks of each sample: raw and processed image, with and without mask. Columns behind them are not read.
    labels
        (n,) label sets (:class:`geoeval.splits.labelsets.LabelSet`), None where a label was not read; None for all
        where none was.
    flat
        Ids of samples whose image holds too little to be compared.
    invalid
        Records that were left out because they could not be validated.
    """

    n: int
    texts: Mapping[str, Any]
    members: Mapping[str, Any]
    strata: Mapping[str, Any]
    bounds: FloatArray
    perceptual: Codes
    hashed: Mask
    confirming: Codes
    confirmed: Mask
    looks: IntArray
    labels: ObjectArray | None = None
    flat: tuple[str, ...] = ()
    invalid: tuple[Invalid, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.n

    def text(self, name: str, row: int) -> str | None:
        """One value of a text field; None where it says nothing."""
        column = self.texts.get(name)
        return None if column is None else column[int(row)].as_py()

    def ids(self, rows: Iterable[int]) -> tuple[str, ...]:
        """Sample ids of some rows."""
        return tuple(str(self.text("sample_id", row)) for row in rows)

    def codes(self, name: str) -> IntArray:
        """(n,) whole numbers, equal where the field has equal values; -1 where it says nothing."""
        column = self.texts.get(name)
        return coded(column)[0] if column is not None else np.full(self.n, -1, dtype=np.int64)

    def splits(self) -> tuple[IntArray, tuple[str, ...]]:
        """(n,) position of the split among the splits of this table, -1 where there is none; and their names, sorted.

        A sample in quarantine is in no split.
        """
        column = self.texts.get("split")
        if column is None:
            return np.full(self.n, -1, dtype=np.int64), ()
        codes, words = coded(column)
        names = tuple(sorted(set(words) - {QUARANTINE}))
        place = np.array([names.index(word) if word in names else -1 for word in words] + [-1], dtype=np.int64)
        return place[codes], names

    def has_box(self) -> Mask:
        """(n,) True where there is a box with a place on Earth."""
        placed = ~np.isnan(self.bounds).any(axis=1)
        column = self.texts.get("crs")
        if column is None:
            return np.zeros(self.n, dtype=np.bool_)
        codes, words = coded(column)
        earthly = np.array([word.lower() != "pixel" for word in words] + [False], dtype=np.bool_)
        return placed & earthly[codes]

    def take(self, rows: IntArray) -> SampleTable:
        """The samples at these rows, in that order."""
        return replace(
            self,
            n=len(rows),
            texts={name: column.take(rows) for name, column in self.texts.items()},
            members={name: column.take(rows) for name, column in self.members.items()},
            strata={name: column.take(rows) for name, column in self.strata.items()},
            bounds=self.bounds[rows],
            perceptual=self.perceptual[rows],
            hashed=self.hashed[rows],
            confirming=self.confirming[rows],
            confirmed=self.confirmed[rows],
            looks=self.looks[rows],
            labels=None if self.labels is None else self.labels[rows],
        )

    def with_splits(self, splits: Sequence[str | None]) -> SampleTable:
        """The same samples in these splits."""
        return replace(self, texts={**self.texts, "split": _strings(splits)})

    @staticmethod
    def of(
        n: int,
        *,
        bounds: Any = None,
        perceptual: Any = None,
        hashed: Any = None,
        confirming: Any = None,
        confirmed: Any = None,
        looks: Any = None,
        labels: ObjectArray | None = None,
        strata: Mapping[str, Any] | None = None,
        flat: tuple[str, ...] = (),
        invalid: tuple[Invalid, ...] = (),
        notes: Mapping[str, str] | None = None,
        **columns: Any,
    ) -> SampleTable:
        """A table from columns; values that say nothing become null, and rows are sorted by sample id.

        Parameters
        ----------
        columns
            Text fields of :data:`TEXTS` and lists of :data:`MEMBERS`; one text stands for all rows. ``sample_id`` is
            needed.
        perceptual, confirming
            (n,) or (n, 8 x looks) 64-bit hashes.

        Raises
        ------
        InputError
            An unknown column, or bounds that are no box.

        Examples
        --------
        >>> table = SampleTable.of(2, sample_id=["b", "a"], group_id=["g", "unknown"], split=["validation", "train"])
        >>> table.ids([0, 1]), table.codes("group_id").tolist(), table.text("split", 1)
        (('a', 'b'), [-1, 0], 'val')
        """
        for name in columns:
            if name not in TEXTS and name not in MEMBERS:
                raise InputError(f"unknown column {name!r}; {nearest_spelling(name, (*TEXTS, *MEMBERS))}")
        if "sample_id" not in columns:
            raise InputError("a table of samples needs a column 'sample_id'")
        texts = {name: _tidied(name, columns[name], n) for name in TEXTS if columns.get(name) is not None}
        members = {name: _lists(columns[name]) for name in MEMBERS if columns.get(name) is not None}
        codes, has_code = _perceptual(n, perceptual, hashed)
        second, has_second = _perceptual(n, confirming, confirmed)
        second = second if second.shape == codes.shape else np.zeros_like(codes)
        table = SampleTable(
            n=n,
            texts={name: column for name, column in texts.items() if column.null_count < n or name == "sample_id"},
            members=members,
            strata={name: _strings(values) for name, values in sorted((strata or {}).items())},
            bounds=np.full((n, 4), np.nan) if bounds is None else np.asarray(bounds, dtype=np.float64).reshape(n, 4),
            perceptual=codes,
            hashed=has_code,
            confirming=second,
            confirmed=has_second,
            looks=np.ones(n, dtype=np.int64) if looks is None else np.asarray(looks, dtype=np.int64),
            labels=labels,
            flat=flat,
            invalid=invalid,
            notes=notes or {},
        )
        _check_bounds(table)
        return table.take(_order(table))


def coded(column: Any) -> tuple[IntArray, list[str]]:
    """Whole numbers for a column of texts, and the text of each number; -1 for null."""
    codes, words = encoded_column(column)
    return codes, words.to_pylist()


def encoded_column(column: Any) -> tuple[IntArray, Any]:
    """As :func:`coded`, the texts as an Arrow array: a million of them make no Python object."""
    import pyarrow as pa

    encoded = column.dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, encoded.dictionary


def _strings(values: Any) -> Any:
    import pyarrow as pa

    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(values, pa.Array):
        return values.cast(pa.large_string())
    return pa.array(values, type=pa.large_string(), from_pandas=True)


def _tidied(name: str, values: Any, n: int) -> Any:
    """Null where a value says nothing, identifiers tidy (not paths), aliases of roles resolved: once a value."""
    import pyarrow as pa

    column = _strings([values] * n if isinstance(values, str) else values)
    if len(column) != n:
        raise InputError(f"column {name!r}: expected {n} values, one a sample, got {len(column)}")
    codes, words = coded(column)
    clean = str.strip if name in (*ASSETS, "crs") else tidy
    neat: list[str | None] = [clean(word) if known(word) else None for word in words]
    if name == "split":
        # Other people's splits may be folds of any name; a builder's own are checked where its records are read.
        neat = [None if word is None else ALIASES.get(word, word) for word in neat]
    if neat == words:
        return column
    return pa.array([*neat, None], type=pa.large_string()).take(pa.array(np.where(codes < 0, len(neat), codes)))


def _lists(values: Any) -> Any:
    import pyarrow as pa

    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    kind = pa.large_list(pa.large_string())
    return values.cast(kind) if isinstance(values, pa.Array) else pa.array(values, type=kind, from_pandas=True)


def _perceptual(n: int, values: Any, hashed: Any) -> tuple[Codes, Mask]:
    if values is None:
        return np.zeros((n, 1), dtype=np.uint64), np.zeros(n, dtype=np.bool_)
    codes = np.asarray(values, dtype=np.uint64).reshape(n, -1 if n else 1)
    has_code = np.ones(n, dtype=np.bool_) if hashed is None else np.asarray(hashed, dtype=np.bool_)
    return codes, has_code


def _check_bounds(table: SampleTable) -> None:
    """Refuse a box that is half there, upside down, or in a system that nobody knows."""
    from geoeval.geometry.crs import parse_crs

    b = table.bounds
    given = ~np.isnan(b).all(axis=1)
    codes = table.codes("crs")
    geographic = np.zeros(table.n, dtype=np.bool_)
    if "crs" in table.texts:
        words = coded(table.texts["crs"])[1]
        degrees = [word.lower() != "pixel" and bool(parse_crs(word).is_geographic) for word in words]
        geographic = np.array([*degrees, False], dtype=np.bool_)[codes]
    with np.errstate(invalid="ignore"):
        wraps = geographic & (b[:, 0] - b[:, 2] > 180)
        wrong = given & (~np.isfinite(b).all(axis=1) | (b[:, 1] > b[:, 3]) | ((b[:, 0] > b[:, 2]) & ~wraps))
    wrong |= given & (codes < 0)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"record {table.text('sample_id', at)!r}: bounds must be finite [min x, min y, max x, max y] with a crs, "
            f"got {b[at].tolist()} in {table.text('crs', at)!r}"
        )


def _order(table: SampleTable) -> IntArray:
    """Rows by sample id; samples of one id by all that tells them apart."""
    import pyarrow as pa
    import pyarrow.compute as pc

    keys = ["sample_id", *(name for name in table.texts if name != "sample_id")]
    frame = pa.table({name: table.texts[name] for name in keys})
    if len(pc.unique(table.texts["sample_id"])) == table.n:
        keys = ["sample_id"]
    order = pc.sort_indices(frame, sort_keys=[(name, "ascending") for name in keys])
    return np.asarray(order.to_numpy(), dtype=np.int64)


def joined(tables: Sequence[SampleTable]) -> SampleTable:
    """All samples of several tables; two of one id stay two.

    Raises
    ------
    InputError
        Where there is no table.
    """
    import pyarrow as pa

    if not tables:
        raise InputError("no table of samples was given")
    if len(tables) == 1:
        return tables[0]
    width = max(table.perceptual.shape[1] for table in tables)

    def stack(name: str, of: str) -> Any:
        kind = pa.large_list(pa.large_string()) if of == "members" else pa.large_string()
        parts = [getattr(table, of).get(name, pa.nulls(table.n, kind)) for table in tables]
        return pa.concat_arrays([part.cast(kind) for part in parts])

    def names(of: str) -> list[str]:
        return list(dict.fromkeys(name for table in tables for name in getattr(table, of)))

    whole = SampleTable(
        n=sum(table.n for table in tables),
        texts={name: stack(name, "texts") for name in names("texts")},
        members={name: stack(name, "members") for name in names("members")},
        strata={name: stack(name, "strata") for name in names("strata")},
        bounds=np.concatenate([table.bounds for table in tables]),
        perceptual=np.concatenate([_widened(table.perceptual, width) for table in tables]),
        hashed=np.concatenate([table.hashed for table in tables]),
        confirming=np.concatenate([_widened(table.confirming, width) for table in tables]),
        confirmed=np.concatenate([table.confirmed for table in tables]),
        looks=np.concatenate([table.looks for table in tables]),
        labels=_joined_labels(tables),
        flat=tuple(name for table in tables for name in table.flat),
        invalid=tuple(one for table in tables for one in table.invalid),
        notes={name: says for table in tables for name, says in table.notes.items()},
    )
    return whole.take(_order(whole))


def _widened(codes: Codes, width: int) -> Codes:
    """The codes in more columns: one code as eight equal ones, and looks that are not there as zeros."""
    if codes.shape[1] == width:
        return codes
    full = np.repeat(codes, ORIENTATIONS, axis=1) if codes.shape[1] == 1 else codes
    return np.pad(full, ((0, 0), (0, width - full.shape[1])))


def _joined_labels(tables: Sequence[SampleTable]) -> ObjectArray | None:
    if all(table.labels is None for table in tables):
        return None
    parts = [np.full(table.n, None, dtype=np.object_) if table.labels is None else table.labels for table in tables]
    return np.concatenate(parts)


def table_of(samples: Sequence[Sample], **more: Any) -> SampleTable:
    """A table from validated samples; ``more`` goes to :meth:`SampleTable.of`.

    Examples
    --------
    >>> table_of([Sample(sample_id="a", task="detection", object_ids=("b1",))]).members["object_ids"].to_pylist()
    [['b1']]
    """
    n = len(samples)
    fields: dict[str, Any] = {name: [getattr(one, name) for one in samples] for name in (*TEXTS, *MEMBERS)}
    for name in MEMBERS:
        fields[name] = [list(value) for value in fields[name]]
    strata = sorted({name for one in samples for name in one.strata})
    blank = (np.nan,) * 4
    more.setdefault("bounds", np.array([one.bbox or blank for one in samples], dtype=np.float64).reshape(n, 4))
    if "perceptual" not in more:
        codes = [int(one.perceptual_hash, 16) if one.perceptual_hash else 0 for one in samples]
        more["perceptual"] = np.array(codes, dtype=np.uint64)
        more["hashed"] = np.array([one.perceptual_hash is not None for one in samples], dtype=np.bool_)
    return SampleTable.of(
        n, strata={name: [one.strata.get(name) for one in samples] for name in strata}, **more, **fields
    )
