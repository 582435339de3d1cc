"""Outcomes of a replay, added up by task.

Only accepted results are graded. A deferral is no error: it costs coverage, which ``defer_rate`` says. A result that is
neither accepted nor deferred failed; it is counted by itself and is in no accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from geoeval.goldset.cases import Case, GraderName
from geoeval.goldset.grading import grade
from geoeval.goldset.runner import Result
from geoeval.stats.deferral import deferral_curve
from geoeval.stats.interval import clustered_wilson, wilson


@dataclass(frozen=True, slots=True)
class Outcome:
    """One case replayed. ``correct`` is None where nothing was accepted: then nothing was graded."""

    id: str
    task: str
    cluster: str | None
    accepted: bool
    deferred: bool
    correct: bool | None
    cost: float
    margin: float | None
    escalations: int
    output: Any
    ungrounded: tuple[str, ...] = ()


def outcome_of(case: Case, result: Result, grader: GraderName) -> Outcome:
    """Grade a result where it was accepted.

    Examples
    --------
    >>> case = Case("a", "classify", "tile 7", {}, "water", None, "")
    >>> outcome_of(case, Result(accepted=True, output="water"), "label").correct
    True
    >>> outcome_of(case, Result(accepted=False, deferred=True), "label").correct is None
    True
    """
    found = grade(case, result.output, grader) if result.accepted else None
    return Outcome(
        id=case.id,
        task=case.task,
        cluster=case.cluster,
        accepted=result.accepted,
        deferred=result.deferred,
        correct=None if found is None else found.correct,
        cost=result.cost,
        margin=result.margin,
        escalations=result.escalations,
        output=result.output,
        ungrounded=() if found is None else found.ungrounded,
    )


def aggregate(outcomes: Sequence[Outcome], expert_quality: float = 1.0) -> dict[str, Any]:
    """Figures of a list of outcomes.

    ``accuracy_accepted`` is accepted_correct / accepted with Wilson's interval (on the effective number where clusters
    are known; ``wilson_iid`` stands beside it), None where nothing was accepted. ``accuracy_per_1000_cost`` is
    accepted_correct per 1000 units of cost, None where nothing was spent.

    Parameters
    ----------
    outcomes
        Of one task, or of all.
    expert_quality
        Quality of an expert's answer, for the deferral curve.

    Examples
    --------
    >>> right = Outcome("a", "classify", None, True, False, True, 500.0, 0.9, 0, "water")
    >>> asked = Outcome("b", "classify", None, False, True, None, 500.0, 0.1, 0, None)
    >>> found = aggregate([right, asked])
    >>> found["accuracy_accepted"], found["defer_rate"], found["accuracy_per_1000_cost"]
    (1.0, 0.5, 1.0)
    >>> aggregate([asked])["accuracy_accepted"] is None
    True
    """
    n = len(outcomes)
    accepted = [one for one in outcomes if one.accepted]
    correct = sum(one.correct is True for one in accepted)
    deferred = sum(one.deferred for one in outcomes)
    # fsum is exact before its one rounding, so that the order of cases cannot matter.
    cost = math.fsum(one.cost for one in outcomes)
    return {
        "n": n,
        "accepted": len(accepted),
        "accepted_correct": correct,
        "deferred": deferred,
        "failed": n - len(accepted) - deferred,
        **_accuracy(accepted, correct),
        "defer_rate": deferred / n if n else None,
        "cost": cost,
        "accuracy_per_1000_cost": correct * 1000 / cost if cost > 0 else None,
        "escalations": sum(one.escalations for one in outcomes),
        "deferral_curve": _curve(accepted, expert_quality),
    }


def _accuracy(accepted: Sequence[Outcome], correct: int) -> dict[str, Any]:
    n = len(accepted)
    low, high = wilson(correct, n)
    plain = None if low is None or high is None else [low, high]
    out: dict[str, Any] = {
        "accuracy_accepted": correct / n if n else None,
        "interval": plain,
        "reason": None if n else "no_support",
    }
    if not n or accepted[0].cluster is None:
        return out
    names = sorted({one.cluster or "" for one in accepted})
    place = {name: at for at, name in enumerate(names)}
    hits, trials = [0] * len(names), [0] * len(names)
    for one in accepted:
        trials[place[one.cluster or ""]] += 1
        hits[place[one.cluster or ""]] += one.correct is True
    found = clustered_wilson(hits, trials)
    whole = None if found.low is None or found.high is None else [found.low, found.high]
    return {
        **out,
        "interval": whole,
        "reason": found.reason,
        "wilson_iid": plain,
        "clusters": found.clusters,
        "effective_clusters": found.effective_clusters,
        "design_effect": found.design_effect,
        "marks": list(found.marks),
    }


def _curve(accepted: Sequence[Outcome], expert_quality: float) -> dict[str, Any]:
    """Quality of what was accepted, when the least sure of it is handed over as well."""
    told = [one.margin for one in accepted if one.margin is not None]
    if len(told) < len(accepted):
        return {"points": [], "reason": "not_applicable", "without_margin": len(accepted) - len(told)}
    found = deferral_curve(told, [float(one.correct is True) for one in accepted], [expert_quality] * len(accepted))
    return {
        "points": [list(point) for point in found.points],
        "audc": found.audc,
        "peak": found.peak,
        "peak_at": found.peak_at,
        "qnc": found.qnc,
        "random_line_audc": found.random_line_audc,
        "expert_quality": expert_quality,
        "reason": found.reason,
    }


def by_task(outcomes: Sequence[Outcome], expert_quality: float = 1.0) -> dict[str, dict[str, Any]]:
    """:func:`aggregate` for each task, tasks sorted.

    Examples
    --------
    >>> by_task([Outcome("a", "classify", None, True, False, True, 1.0, None, 0, "water")])["classify"]["n"]
    1
    """
    tasks = sorted({one.task for one in outcomes})
    return {task: aggregate([one for one in outcomes if one.task == task], expert_quality) for task in tasks}


def outcome_json(one: Outcome) -> dict[str, Any]:
    """An outcome as it stands in the document of a replay."""
    return {
        "id": one.id,
        "task": one.task,
        "cluster": one.cluster,
        "accepted": one.accepted,
        "deferred": one.deferred,
        "correct": one.correct,
        "cost": one.cost,
        "margin": one.margin,
        "escalations": one.escalations,
        "output": one.output,
        "ungrounded": list(one.ungrounded),
    }


def outcome_from_json(data: Mapping[str, Any]) -> Outcome:
    """The inverse of :func:`outcome_json`."""
    return Outcome(**{**data, "ungrounded": tuple(data["ungrounded"])})
