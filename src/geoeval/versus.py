"""Two predictions against one reference: paired differences from the same redraws of both ledgers.

Conventions   the incumbent is what stands, the candidate is what might replace it; difference = candidate − incumbent;
              positive gains mean that the candidate is better (:func:`geoeval.keys.better` says which way that is).
              Both are scored on the same units and clusters; a cluster where one of them has nothing counts as 0.
Decision      of one declared figure: ``adopt`` where the whole interval of its gain lies above 0, ``block`` where it
              lies below, else ``inconclusive``. Few clusters, or fewer than six that differ, decide nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from geoeval.errors import ConfigError, InputError, nearest_spelling
from geoeval.estimation import Plan
from geoeval.evaluation import Progress, Result, as_source, field_names, run, units_of, with_demanded
from geoeval.evidence.canonical import plain
from geoeval.evidence.shape import evaluation_json
from geoeval.keys import KEYS, PREDICTION_SIDE, RANKED_BY, better
from geoeval.ledger import Evaluator
from geoeval.options import Pairing
from geoeval.pairs import Difference, difference_beside, ledger_differences
from geoeval.readers.unitset import UnitSet
from geoeval.stats.selective import Decision
from geoeval.summary import Policy, signature


@dataclass(frozen=True, slots=True)
class SubgroupDifference:
    """The declared figure in one subgroup. Its interval is not widened for how many subgroups there are."""

    by: Mapping[str, str]
    difference: Difference


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two predictions against one reference.

    ``metric`` is the declared figure, ``decision`` what follows from it; ``worst`` is the subgroup in which the
    candidate gains least of it (or loses most), None without subgroups.
    """

    family: str
    evaluator: str
    signature: str
    confidence: float
    metric: str
    decision: Decision
    differences: Mapping[str, Difference]
    strata: tuple[SubgroupDifference, ...]
    incumbent: Result
    candidate: Result

    @property
    def worst(self) -> SubgroupDifference | None:
        """The subgroup with the least gain of the declared figure."""
        defined = [one for one in self.strata if one.difference.gain is not None]
        return min(defined, key=lambda one: (one.difference.gain, sorted(one.by.items())), default=None)


def compare_two(
    evaluator: Evaluator[Any],
    reference: Any,
    incumbent: Any,
    candidate: Any,
    *,
    metric: str | None = None,
    pairing: Pairing | None = None,
    plan: Plan | None = None,
    policy: Policy | None = None,
    executor: Executor | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> Comparison:
    """Score two predictions against one reference, and their differences with intervals.

    Parameters
    ----------
    evaluator
        Scores both.
    reference, incumbent, candidate
        As for :func:`geoeval.evaluation.evaluate`.
    metric
        The figure that decides; None takes that by which the family ranks subgroups (F1, accuracy, RMSE, recall).
    pairing, plan, executor, workers, progress
        As for :func:`geoeval.evaluation.evaluate`.
    policy
        Gates and critical subgroups, held to the candidate.

    Raises
    ------
    InputError
        The two predictions were not scored on the same units or clusters.
    ConfigError
        ``metric`` is no figure of the family, or neither more nor less of it is better.
    """
    policy = policy or Policy()
    _check_metric(evaluator.family, metric)
    pairing = with_demanded(pairing or Pairing(), evaluator, policy)
    units = [units_of(evaluator, as_source(reference), as_source(side), pairing) for side in (incumbent, candidate)]
    _refuse_other_units(evaluator.family, units[0], units[1])
    plan = replace(plan or Plan(), clustered=(plan or Plan()).clustered and all(one.clustered for one in units))
    results = [
        run(
            evaluator,
            found,
            fields=field_names(pairing.by),
            plan=plan,
            policy=held,
            executor=executor,
            workers=workers,
            progress=_part(progress, at),
        )
        for at, (found, held) in enumerate(zip(units, (replace(policy, gates=()), policy), strict=True))
    ]
    return compare_results(evaluator, results[0], results[1], plan, metric=metric)


def compare_results(
    evaluator: Evaluator[Any],
    incumbent: Result,
    candidate: Result,
    plan: Plan | None = None,
    *,
    metric: str | None = None,
) -> Comparison:
    """The comparison of two results of one evaluator on the same units: no geometry or pixel is looked at again."""
    plan = replace(plan or Plan(), clustered=incumbent.clustered and candidate.clustered)
    _check_metric(evaluator.family, metric)
    ledgers = (incumbent.ledger, candidate.ledger)
    found = ledger_differences(evaluator, *ledgers, plan)
    for name in {*incumbent.estimates, *candidate.estimates} - set(found):
        found[name] = difference_beside(name, incumbent.estimates.get(name), candidate.estimates.get(name))
    found = {name: found[name] for name in dict.fromkeys((*KEYS[evaluator.family], *sorted(found))) if name in found}
    lead = metric or _leading(evaluator.family, found)
    if lead not in found:
        raise ConfigError(f"metric: {lead!r} does not exist for this input; {nearest_spelling(lead, found)}")
    only = incumbent.reference_only | candidate.reference_only
    return Comparison(
        family=evaluator.family,
        evaluator=evaluator.name,
        signature=signature(evaluator, plan),
        confidence=plan.confidence,
        metric=lead,
        decision=found[lead].decision,
        differences=found,
        strata=_subgroups(evaluator, incumbent, candidate, plan, lead, only),
        incumbent=incumbent,
        candidate=candidate,
    )


def versus_json(comparison: Comparison) -> dict[str, Any]:
    """A comparison as plain JSON, numbers rounded to 12 significant digits; both evaluations stand in it whole."""
    worst = comparison.worst
    out = {
        "family": comparison.family,
        "evaluator": comparison.evaluator,
        "signature": comparison.signature,
        "confidence": comparison.confidence,
        "metric": comparison.metric,
        "decision": comparison.decision,
        "differences": {name: asdict(one) for name, one in comparison.differences.items()},
        "strata": [asdict(one) for one in comparison.strata],
        "worst": asdict(worst) if worst is not None else None,
        "incumbent": evaluation_json(comparison.incumbent.evaluation),
        "candidate": evaluation_json(comparison.candidate.evaluation),
    }
    return cast("dict[str, Any]", plain(out, where="versus"))


def _subgroups(
    evaluator: Evaluator[Any], incumbent: Result, candidate: Result, plan: Plan, metric: str, only: frozenset[str]
) -> tuple[SubgroupDifference, ...]:
    """The declared figure in every subgroup that either side has."""
    named = {tuple(sorted(one.by.items())) for side in (incumbent, candidate) for one in side.evaluation.strata}
    out = []
    for by in sorted(named):
        ((field, value),) = by
        ledgers = [
            side.ledger.where(lambda row, field=field, value=value: row.value_of(field) == value)  # type: ignore[misc]
            for side in (incumbent, candidate)
        ]
        found = ledger_differences(evaluator, ledgers[0], ledgers[1], plan, only=metric).get(metric)
        if found is None or (field in only and metric in PREDICTION_SIDE):
            found = Difference("1", None, None, better=better(metric), reason="not_applicable")
        out.append(SubgroupDifference(dict(by), found))
    return tuple(out)


def _check_metric(family: str, metric: str | None) -> None:
    if metric is None:
        return
    known = [name for name in KEYS[family] if better(name) is not None]
    if metric not in known:
        raise ConfigError(
            f"metric: {metric!r} cannot decide between two {family} results; {nearest_spelling(metric, known)}"
        )


def _leading(family: str, found: Mapping[str, Difference]) -> str:
    """The figure that the family ranks subgroups by, the first of these that is there."""
    names = [name for name, _ in RANKED_BY[family]]
    return next((name for name in names if name in found), names[0])


def _refuse_other_units(family: str, incumbent: UnitSet[Any], candidate: UnitSet[Any]) -> None:
    ids = [{unit.id for unit in side.units} for side in (incumbent, candidate)]
    # A dataset with findings and without anomalies is a unit of one side only, and counts as 0 on the other.
    if family != "validation" and ids[0] != ids[1]:
        unit = min(ids[0] ^ ids[1])
        side = "incumbent" if unit in ids[0] else "candidate"
        raise InputError(
            f"both predictions must be scored on the same units; unit {unit!r} is one of the {side} only "
            f"({len(ids[0])} units against {len(ids[1])}). Name files, images or the unit column alike on both."
        )
    notes = [
        [str(side.notes.get(name, "")).replace(" (guessed)", "") for name in ("cluster", "clusters")]
        for side in (incumbent, candidate)
    ]
    if notes[0] != notes[1]:
        said = ["".join(one) for one in notes]
        raise InputError(
            f"both predictions must be scored in the same clusters; the incumbent has {said[0]!r}, the candidate "
            f"{said[1]!r}. Declare them: --cluster COLUMN, or --cluster grid:500m."
        )
    if incumbent.crs != candidate.crs:
        raise InputError(
            f"both predictions must be measured in one coordinate system; the incumbent is in {incumbent.crs!r}, the "
            f"candidate in {candidate.crs!r}. Reproject the reference to a projected system in metres."
        )


def _part(progress: Progress | None, at: int) -> Progress | None:
    """Progress of one of two passes."""
    if progress is None:
        return None
    return lambda done, of: progress(done + at * of, 2 * of)
