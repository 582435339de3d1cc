"""The main job, written once: two sources become units, units a ledger, the ledger estimates and verdicts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np

from geoeval.errors import ConfigError, UnknownFigure, nearest_spelling
from geoeval.estimation import Plan
from geoeval.ledger import Evaluator, Ledger, Row, Tallied, tally_unit
from geoeval.model import Estimate, Evaluation, Records, Unit
from geoeval.options import Pairing, Source, stratum_name
from geoeval.readers.unitset import UnitSet
from geoeval.summary import Policy, merged_findings, summarise

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Result:
    """What one evaluator found: the evaluation, and the evidence that it was added up from.

    ``notes`` says what was guessed or done while reading; ``inputs`` are the paths that were read; ``crs`` is the
    system of the coordinates of ``records``, None for image coordinates.
    """

    evaluation: Evaluation
    ledger: Ledger
    records: Records
    notes: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    clustered: bool = True
    reference_only: frozenset[str] = frozenset()
    crs: str | None = None

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """Metric name to estimate, over everything."""
        return self.evaluation.estimates

    def __getitem__(self, metric: str) -> Estimate:
        if metric not in self.evaluation.estimates:
            raise UnknownFigure(
                f"{self.evaluation.family} has no figure {metric!r}; "
                f"{nearest_spelling(metric, self.evaluation.estimates)}"
            )
        return self.evaluation.estimates[metric]

    def unmet(self) -> list[str]:
        """Every gate that does not pass, in a sentence: ``assert not result.unmet()`` says what is wrong.

        Empty where no gate was declared.
        """
        return [str(verdict) for verdict in self.evaluation.gates if verdict.status != "pass"]

    def __repr__(self) -> str:
        # What a failing `assert ..., result` shows, and a notebook.
        return str(self)

    def __str__(self) -> str:
        lines = [self.evaluation.signature]
        for name, given in self.evaluation.estimates.items():
            shown = (
                "undefined" if given.value is None else f"{given.value:.6g} {given.unit.replace('1', '', 1)}".rstrip()
            )
            bounds = f" [{given.interval.low:.4g}, {given.interval.high:.4g}]" if given.interval else ""
            why = f" ({given.reason})" if given.reason else ""
            lines.append(f"{name} {shown}{bounds} n={given.support}{why}")
        return "\n".join(lines)


def evaluate(
    evaluator: Evaluator[Any],
    reference: Any,
    prediction: Any,
    *,
    pairing: Pairing | None = None,
    plan: Plan | None = None,
    policy: Policy | None = None,
    executor: Executor | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> Result:
    """Score a prediction against a reference.

    Parameters
    ----------
    evaluator
        One of the seven, for example ``Footprint(iou=0.5)``: its fields are the whole configuration of the score.
    reference, prediction
        Paths, globs, folders, GeoDataFrames, DataFrames or :class:`geoeval.Source`.
    pairing
        How both sides become units, clusters and strata.
    plan
        How intervals are made.
    policy
        Gates and critical subgroups.
    executor
        Any ``concurrent.futures.Executor``, such as that of a Dask client; units are tallied on it.
    workers
        Processes to start where no executor is given.
    progress
        Called with the number of units done and their total.

    Returns
    -------
    Result
        The same, to the last byte, whatever the order of features and the number of workers.

    Raises
    ------
    InputError
        Where a source cannot be used: the message names file, feature and field.
    """
    pairing = with_demanded(pairing or Pairing(), evaluator, policy or Policy())
    units = units_of(evaluator, as_source(reference), as_source(prediction), pairing)
    return run(
        evaluator,
        units,
        fields=field_names(pairing.by),
        plan=plan,
        policy=policy,
        executor=executor,
        workers=workers,
        progress=progress,
    )


def field_names(by: Iterable[str]) -> tuple[str, ...]:
    """Names of stratum fields, without their edges or files.

    Examples
    --------
    >>> field_names(["region", "area:100,500", "slope=slope.tif:5,15", "addr:street"])
    ('region', 'area', 'slope', 'addr:street')
    """
    return tuple(stratum_name(text) for text in by)


def with_demanded(pairing: Pairing, evaluator: Evaluator[Any], policy: Policy) -> Pairing:
    """The pairing that also reads the fields of critical subgroups and of gates on subgroups."""
    known = {*field_names(pairing.by), *getattr(evaluator, "own_strata", ())}
    own = [gate for gate in policy.gates if gate.family in ("", evaluator.family)]
    gated = [gate.by for gate in own if gate.scope == "per_subgroup" and gate.by is not None]
    more = tuple(name for name in dict.fromkeys((*policy.critical, *gated)) if name not in known)
    return replace(pairing, by=(*pairing.by, *more)) if more else pairing


def as_source(given: Any) -> Source:
    """A source as it is, anything else as the path (or table) of one."""
    if isinstance(given, Source):
        return given
    return Source(os.fspath(given) if isinstance(given, os.PathLike) else given)


def units_of(evaluator: Evaluator[Any], reference: Source, prediction: Source, pairing: Pairing) -> UnitSet[Any]:
    """Read two sources into the units of a family; a table of units adds clusters and strata."""
    found = _read_units(evaluator, reference, prediction, pairing)
    if pairing.units is None:
        return found
    from geoeval.readers.unit_table import with_unit_table

    return with_unit_table(found, pairing)


def _read_units(evaluator: Evaluator[Any], reference: Source, prediction: Source, pairing: Pairing) -> UnitSet[Any]:
    family = evaluator.family
    if family == "raster":
        from geoeval.readers.heights import holds_points
        from geoeval.readers.points import labelled_points
        from geoeval.readers.raster import raster_units

        if holds_points(reference):
            return labelled_points(reference, prediction, pairing)
        if pairing.design is not None:
            raise ConfigError(
                f"design = {pairing.design!r} says how sample points were drawn, and the reference is a raster; "
                "leave it out, or give sample points as the reference."
            )
        return raster_units(reference, prediction, pairing, categorical=True)
    if family == "elevation":
        from geoeval.readers.heights import elevation_units

        return elevation_units(reference, prediction, pairing)
    if family == "validation":
        from geoeval.readers.findings import findings_units

        return findings_units(reference, prediction, pairing)
    if reference.before is not None or prediction.before is not None:
        if family != "change":
            raise ConfigError(f"two dated layers make change events; {family} takes one layer a side.")
        from geoeval.dated import dated_units

        return dated_units(reference, prediction, pairing, iou=getattr(evaluator, "iou", 0.5))
    from geoeval.readers.units import object_units

    return object_units(reference, prediction, pairing, family=family)


def run(
    evaluator: Evaluator[Any],
    units: UnitSet[Any],
    *,
    fields: Sequence[str] = (),
    plan: Plan | None = None,
    policy: Policy | None = None,
    executor: Executor | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> Result:
    """Tally units and add up: everything behind reading."""
    plan = replace(plan or Plan(), clustered=(plan or Plan()).clustered and units.clustered)
    policy = policy or Policy()
    ledger, tallied = tally_all(evaluator, units.units, executor=executor, workers=workers, progress=progress)
    records = sorted_records(Records.join([part.records for part in tallied]))
    findings = merged_findings((*units.findings, *(one for part in tallied for one in part.findings)))
    evaluation = summarise(
        evaluator,
        ledger,
        plan,
        policy,
        fields=fields,
        findings=findings,
        reference_only=units.reference_only,
    )
    return Result(
        evaluation,
        ledger,
        records,
        units.notes,
        units.inputs,
        plan.clustered,
        units.reference_only,
        units.crs,
    )


def tally_all(
    evaluator: Evaluator[Any],
    units: Sequence[Unit[Any]],
    *,
    executor: Executor | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> tuple[Ledger, list[Tallied]]:
    """Tally every unit, here, in processes, or on any executor; the result is the same."""
    ordered = sorted(units, key=lambda unit: unit.id)
    rows: list[Row] = []
    tallied: list[Tallied] = []
    with _pool(executor, workers, len(ordered)) as pool:
        work = partial(tally_unit, evaluator)
        results: Iterable[tuple[list[Row], Tallied]] = pool.map(work, ordered) if pool else map(work, ordered)
        for done, (found, part) in enumerate(results, start=1):
            rows.extend(found)
            tallied.append(part)
            if progress:
                progress(done, len(ordered))
    return Ledger.of(rows), tallied


@contextmanager
def _pool(executor: Executor | None, workers: int, units: int) -> Iterator[Executor | None]:
    if executor is not None or workers <= 1 or units <= 1:
        yield executor
        return
    # Spawned, not forked: GDAL and compiled kernels hold threads, and Windows has no other way.
    with ProcessPoolExecutor(min(workers, units), mp_context=get_context("spawn")) as pool:
        yield pool


def sorted_records(records: Records) -> Records:
    """Records in an order that does not depend on the order of features."""
    if not len(records):
        return records
    columns = records.columns
    keys = ("prediction_id", "reference_id", "outcome", "unit")
    order = np.lexsort([np.asarray(columns[name], dtype=str) for name in keys])
    return records.take(order)
