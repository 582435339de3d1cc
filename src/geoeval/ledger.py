"""The ledger: one tally per unit and cell. A score is the sum of some of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from geoeval.model import Cell, Finding, Quantity, Records, Unit
from geoeval.stats.tally import Clustered, Tally, Totals, clustered, total

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Tallied:
    """What an evaluator leaves of one unit: cells add, records never do, findings are listed.

    The cells of a unit sum to its whole.
    """

    cells: Mapping[Cell, Tally]
    records: Records = field(default_factory=Records)
    findings: tuple[Finding, ...] = ()


class Evaluator(Protocol[P]):
    """A frozen dataclass whose fields are its whole configuration.

    ``name`` carries a number that goes up when results may change; ``family`` is one of the seven.
    """

    @property
    def name(self) -> str:
        """Such as ``detection/1``."""

    @property
    def family(self) -> str:
        """Such as ``detection``."""

    def tally(self, unit: Unit[P]) -> Tallied:
        """The costly half: sees one unit."""

    def quantities(self, totals: Totals) -> Mapping[str, Quantity]:
        """The cheap half: sees only sums, as arrays with one entry a total."""

    def ranked(self, totals: Totals) -> Mapping[str, Quantity]:
        """Figures from sorted lists of observations, as arrays with one entry a total."""

    def class_quantities(self, totals: Totals) -> Mapping[str, Mapping[str, Quantity]]:
        """Per-class figures that cells do not carry; empty where cells carry the class."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a ledger."""

    unit: str
    cell: Cell
    tally: Tally

    @property
    def key(self) -> tuple[str, Cell]:
        """What a line is sorted and merged by."""
        return (self.unit, self.cell)

    def value_of(self, by: str) -> str | None:
        """The value of a stratum field, None where this line does not have it."""
        return dict(self.cell.strata).get(by)


@dataclass(frozen=True, slots=True)
class Ledger:
    """Rows in a fixed order, each key once; ledgers join by ``+`` in any order."""

    rows: tuple[Row, ...] = ()

    @staticmethod
    def of(rows: Iterable[Row]) -> Ledger:
        """Sort rows and merge those of one key."""
        merged: dict[tuple[str, Cell], list[Tally]] = {}
        for row in rows:
            merged.setdefault(row.key, []).append(row.tally)
        return Ledger(
            tuple(
                Row(unit, cell, parts[0] if len(parts) == 1 else total(parts))
                for (unit, cell), parts in sorted(merged.items(), key=lambda item: item[0])
            )
        )

    def __add__(self, other: Ledger) -> Ledger:
        return Ledger.of((*self.rows, *other.rows))

    def where(self, keep: Callable[[Row], bool]) -> Ledger:
        """The rows for which ``keep`` is true."""
        return Ledger(tuple(row for row in self.rows if keep(row)))

    def labels(self) -> tuple[str, ...]:
        """Class labels that occur, sorted, without the blank."""
        return tuple(sorted({row.cell.label for row in self.rows} - {""}))

    def strata(self) -> dict[str, tuple[str, ...]]:
        """Stratum fields and their values, sorted."""
        found: dict[str, set[str]] = {}
        for row in self.rows:
            for name, value in row.cell.strata:
                found.setdefault(name, set()).add(value)
        return {name: tuple(sorted(values)) for name, values in sorted(found.items())}

    def by_cluster(self) -> Clustered:
        """One tally a cluster, as matrices."""
        parts: dict[str, list[Tally]] = {}
        for row in self.rows:
            parts.setdefault(row.cell.cluster, []).append(row.tally)
        return clustered({name: total(tallies) for name, tallies in parts.items()})


def tally_unit(evaluator: Evaluator[P], unit: Unit[P]) -> tuple[list[Row], Tallied]:
    """Run one evaluator on one unit; the unit's own cluster and strata are written into every cell."""
    tallied = evaluator.tally(unit)
    rows = []
    for cell, part in tallied.cells.items():
        strata = tuple(sorted({**dict(cell.strata), **unit.strata}.items()))
        rows.append(
            Row(unit.id, Cell(unit.cluster if unit.cluster is not None else cell.cluster, cell.label, strata), part)
        )
    return rows, tallied
