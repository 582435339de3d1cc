"""The main job, written once: two sources become units, units a ledger, the ledger estimates and verdicts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial
from multiprocessing import get_context
from typing import Any, cast

import numpy as np

from geoeval import gates as gating
from geoeval.errors import ConfigError
from geoeval.estimation import Plan, estimate, exact_lower_bound, extras_of, in_order, per_class, stratify
from geoeval.ledger import Evaluator, Ledger, Row, Tallied, tally_unit
from geoeval.model import Estimate, Evaluation, Finding, Gate, Records, Stratum, Unit
from geoeval.options import Pairing, Source
from geoeval.readers.unitset import UnitSet
from geoeval.stats.tally import Totals

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Policy:
    """What is demanded of a result: gates, and subgroups that must be there.

    Parameters
    ----------
    gates
        Limits; every one is decided.
    critical
        Stratum field to the values that must be present, large enough, and pass the gates by that field (or, where
        there are none, the overall gates).
    min_support
        Fewest observations of a subgroup.
    """

    gates: tuple[Gate, ...] = ()
    critical: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    min_support: int = 0


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
        return self.evaluation.estimates[metric]

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
    >>> field_names(["region", "area:100,500", "slope=slope.tif:5,15"])
    ('region', 'area', 'slope')
    """
    return tuple(text.split(":")[0].split("=")[0] for text in by)


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


def summarise(
    evaluator: Evaluator[Any],
    ledger: Ledger,
    plan: Plan,
    policy: Policy,
    *,
    fields: Sequence[str] = (),
    findings: tuple[Finding, ...] = (),
    reference_only: frozenset[str] = frozenset(),
) -> Evaluation:
    """Estimates, subgroups and verdicts of a ledger: all that can be derived again without the data."""
    estimates = estimate(evaluator, ledger, plan)
    strata = stratify(
        evaluator,
        ledger,
        (*getattr(evaluator, "own_strata", ()), *fields),
        plan,
        critical=policy.critical,
        min_support=policy.min_support,
        reference_only=reference_only,
    )
    classes = per_class(evaluator, ledger, plan)
    if getattr(evaluator, "exact_recall", False):
        estimates, classes, strata = _with_exact_recall(estimates, classes, strata, plan)
    whole = ledger.by_cluster().whole()
    estimates, classes = _with_design(evaluator, whole, plan, estimates, classes)
    remarks = getattr(evaluator, "remarks", None)
    findings = merged_findings((*findings, *(remarks(whole) if remarks else ())))
    extras = extras_of(evaluator, whole)
    evaluation = Evaluation(
        family=evaluator.family,
        evaluator=evaluator.name,
        signature=signature(evaluator, plan),
        estimates=estimates,
        per_class=classes,
        strata=strata,
        findings=findings,
        excluded_classes=extras.pop("excluded_classes", None),
        confusion=extras.pop("confusion", None),
        details=extras,
    )
    demanded = demanded_gates(evaluator, policy)
    if not demanded and not policy.critical:
        return evaluation
    verdicts, decided = gating.decide_all(demanded, evaluation, min_support=policy.min_support)
    return replace(evaluation, gates=verdicts, strata=decided)


def _with_design(
    evaluator: Evaluator[Any],
    whole: Totals,
    plan: Plan,
    estimates: dict[str, Estimate],
    classes: dict[str, dict[str, Estimate]],
) -> tuple[dict[str, Estimate], dict[str, dict[str, Estimate]]]:
    """Figures whose error comes from the sampling design, not from clusters; none for most families."""
    design = getattr(evaluator, "design_estimates", None)
    if design is None:
        return estimates, classes
    found = design(whole, plan.confidence)
    merged = {
        label: {**classes.get(label, {}), **found["per_class"].get(label, {})}
        for label in (*classes, *found["per_class"])
    }
    return in_order(evaluator.family, {**estimates, **found["estimates"]}), merged


def demanded_gates(evaluator: Evaluator[Any], policy: Policy) -> tuple[Gate, ...]:
    """The declared gates, and those that the evaluator demands itself (no missed blocker or critical anomaly)."""
    required = getattr(evaluator, "required_gates", None)
    own = tuple(required()) if required is not None else ()
    declared = {gate.id for gate in policy.gates}
    return (*policy.gates, *(gate for gate in own if gate.id not in declared))


def _with_exact_recall(
    estimates: Mapping[str, Estimate],
    classes: Mapping[str, Mapping[str, Estimate]],
    strata: tuple[Stratum, ...],
    plan: Plan,
) -> tuple[dict[str, Estimate], dict[str, dict[str, Estimate]], tuple[Stratum, ...]]:
    def exact(given: Mapping[str, Estimate]) -> dict[str, Estimate]:
        return {
            name: exact_lower_bound(one, plan.confidence) if name == "recall" else one for name, one in given.items()
        }

    return (
        exact(estimates),
        {label: exact(given) for label, given in classes.items()},
        tuple(replace(one, estimates=exact(one.estimates)) for one in strata),
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


def merged_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each finding once, the gravest first."""
    rank = {name: i for i, name in enumerate(("blocker", "critical", "major", "minor", "info"))}
    return tuple(sorted(set(findings), key=lambda one: (rank[one.severity], one.code, one.where, one.says)))


def signature(evaluator: Evaluator[Any], plan: Plan) -> str:
    """Evaluator, its whole configuration, the interval and the version: what makes two numbers comparable.

    Examples
    --------
    >>> from geoeval.evaluators.footprint import Footprint
    >>> signature(Footprint(iou=0.7), Plan()).split("|")[0]
    'footprint/1'
    """
    parts = [evaluator.name]
    options = [option.name for option in fields(cast("Any", evaluator)) if option.name not in ("name", "family")]
    parts.extend(f"{name}={_shown(getattr(evaluator, name))}" for name in options)
    level = f"{plan.confidence * 100:g}"
    parts.append(f"wilson{level}")
    parts.append(f"redraws={plan.redraws},{plan.ranked_redraws}|seed={plan.seed}" if plan.clustered else "independent")
    from geoeval import __version__

    parts.append(f"geoeval={__version__}")
    return "|".join(parts)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple | list):
        return ",".join(_shown(one) for one in value)
    if isinstance(value, Mapping):
        return ",".join(f"{name}:{_shown(one)}" for name, one in sorted(value.items()))
    return str(value)
