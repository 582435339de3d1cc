"""From features to cells: where every hit, miss and invention counts, and the sums of each place.

A hit and a miss count in the reference's cell; an invention in its own. A stratum field that a side does not have reads
``unknown`` there, so that the cells of a unit always sum to its whole.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.layers import ObjectPair, Objects
from geoeval.model import UNKNOWN, Cell, IntArray, ObjectArray
from geoeval.stats.tally import PER_UNIT, Rows, Tally, quanta

_INT64_SAFE = 2**62


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The cells of one unit, and the cell of every feature of both sides as an index into them."""

    cells: tuple[Cell, ...]
    reference: IntArray
    prediction: IntArray

    def strata(self, at: IntArray) -> ObjectArray:
        """Strata of these cells, one tuple of (field, value) each."""
        return _picked([cell.strata for cell in self.cells], at)

    def clusters(self, at: IntArray) -> ObjectArray:
        """Cluster names of these cells."""
        return _picked([cell.cluster for cell in self.cells], at)


def places(pair: ObjectPair, *, labelled: bool) -> Places:
    """The cell of every feature: its cluster, its label where labels count, and its strata.

    Parameters
    ----------
    labelled
        Whether cells carry class labels; only sensible where both sides have them.

    Examples
    --------
    >>> side = Objects(geometry=np.array([None]), id=np.array(["a"]), row=np.array([0]), cluster=np.array(["c"]))
    >>> places(ObjectPair(side, side), labelled=False).cells
    (Cell(cluster='c', label='', strata=()),)
    """
    names = sorted({*pair.reference.strata, *pair.prediction.strata})
    sides = (pair.reference, pair.prediction)
    columns = [_column(sides, [side.cluster for side in sides], "")]
    columns.append(_column(sides, [side.label if labelled else None for side in sides], ""))
    columns.extend(_column(sides, [side.strata.get(name) for side in sides], UNKNOWN) for name in names)
    code, keys = encode(zip(*columns, strict=True))
    cells = tuple(Cell(key[0], key[1], tuple(zip(names, key[2:], strict=True))) for key in keys)
    n = len(pair.reference)
    return Places(cells, code[:n], code[n:])


def encode(values: Iterable[Hashable]) -> tuple[IntArray, list[Any]]:
    """Whole numbers for values, in the order of their first appearance, and the distinct values.

    Examples
    --------
    >>> encode(["b", "a", "b"])
    (array([0, 1, 0]), ['b', 'a'])
    """
    known: dict[Hashable, int] = {}
    codes = [known.setdefault(value, len(known)) for value in values]
    return np.asarray(codes, dtype=np.int64), list(known)


def ranks(values: ObjectArray) -> IntArray:
    """Position of each value among the distinct values in sorted order: what ties are broken by.

    Examples
    --------
    >>> ranks(np.array(["b", "a", "b"], dtype=object))
    array([1, 0, 1])
    """
    code, known = encode(values.tolist())
    position = np.empty(len(known), dtype=np.int64)
    position[sorted(range(len(known)), key=known.__getitem__)] = np.arange(len(known))
    return position[code] if len(known) else code


def home(pair: ObjectPair) -> Cell:
    """The cell for what belongs to the unit and to no object: its first cluster, without label and strata."""
    for side in (pair.reference, pair.prediction):
        if len(side) and side.cluster is not None:
            return Cell(min(_texts(side.cluster, "")))
    return Cell()


@dataclass(slots=True)
class Sheet:
    """Tallies of one unit while they are made: every entry is added to a name, in a cell.

    Examples
    --------
    >>> sheet = Sheet((Cell("north"), Cell("south")))
    >>> sheet.count("tp", np.array([0, 0, 1]))
    >>> sheet.tallies()[Cell("north")].sums
    {'tp': 2}
    """

    cells: tuple[Cell, ...]
    _sums: dict[int, dict[str, int]] = field(default_factory=dict)
    _rows: dict[int, dict[str, Rows]] = field(default_factory=dict)
    _more: dict[Cell, Tally] = field(default_factory=dict)

    def count(self, name: str, at: NDArray[Any], times: NDArray[Any] | None = None) -> None:
        """Add one, or ``times``, for every entry of ``at`` (n,), its cell."""
        found = np.zeros(len(self.cells), dtype=np.int64)
        np.add.at(found, at, 1 if times is None else np.asarray(times, dtype=np.int64))
        for cell in np.flatnonzero(found).tolist():
            self._add(cell, name, int(found[cell]))

    def real(self, name: str, at: NDArray[Any], values: NDArray[Any], per_unit: int = PER_UNIT) -> None:
        """Add real values (n,), each a whole number of quanta, to the cells ``at`` (n,)."""
        scaled = np.rint(np.asarray(values, dtype=np.float64) * float(per_unit))
        if len(scaled) and not float(np.max(np.abs(scaled))) * len(scaled) < _INT64_SAFE:
            for cell in np.unique(at).tolist():
                self._add(cell, name, quanta(np.asarray(values)[at == cell], per_unit))
            return
        self.count(name, at, scaled.astype(np.int64))

    def rows(self, name: str, at: NDArray[Any], *columns: NDArray[Any]) -> None:
        """Keep one observation for every entry of ``at`` (n,), its cell."""
        for cell, members in groups(at):
            kept = Rows.of(*[np.asarray(column)[members] for column in columns])
            mine = self._rows.setdefault(cell, {})
            mine[name] = mine[name] + kept if name in mine else kept

    def add(self, cell: Cell, tally: Tally) -> None:
        """Add a tally to a cell, whether it is one of ``cells`` or not; an empty one leaves no cell."""
        if tally == Tally():
            return
        self._more[cell] = self._more[cell] + tally if cell in self._more else tally

    def tallies(self) -> dict[Cell, Tally]:
        """Everything that was added; cells without an entry are left out."""
        used = sorted({*self._sums, *self._rows})
        out = {self.cells[at]: Tally.of(self._sums.get(at), None, self._rows.get(at)) for at in used}
        for cell, tally in self._more.items():
            out[cell] = out[cell] + tally if cell in out else tally
        return out

    def _add(self, cell: int, name: str, value: int) -> None:
        mine = self._sums.setdefault(cell, {})
        mine[name] = mine.get(name, 0) + value


def groups(at: NDArray[Any]) -> list[tuple[int, IntArray]]:
    """Distinct codes, sorted, and the positions where each stands.

    Examples
    --------
    >>> groups(np.array([1, 0, 1]))
    [(0, array([1])), (1, array([0, 2]))]
    """
    if not len(at):
        return []
    order = np.argsort(at, kind="stable")
    code, start = np.unique(at[order], return_index=True)
    return list(zip(code.tolist(), np.split(order, start[1:]), strict=True))


def _column(sides: tuple[Objects, Objects], given: list[ObjectArray | None], blank: str) -> list[str]:
    out: list[str] = []
    for side, values in zip(sides, given, strict=True):
        out.extend([blank] * len(side) if values is None else _texts(values, blank))
    return out


def _texts(values: ObjectArray, blank: str) -> list[str]:
    return [blank if value is None or value != value else str(value) for value in values.tolist()]  # noqa: PLR0124 - NaN


def _picked(values: list[Any], at: IntArray) -> ObjectArray:
    table = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        table[i] = value
    return table[at]
