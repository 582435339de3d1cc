"""What a ledger says: estimates, subgroups, verdicts. All of it can be derived again without the data behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast

from geoeval import gates as gating
from geoeval.estimation import Plan, estimate, exact_lower_bound, extras_of, in_order, per_class, stratify
from geoeval.ledger import Evaluator, Ledger
from geoeval.model import SEVERITIES, Estimate, Evaluation, Finding, Gate, Stratum
from geoeval.stats.tally import Totals


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
    estimates, classes, errors = _with_design(evaluator, whole, plan, estimates, classes)
    remarks = getattr(evaluator, "remarks", None)
    findings = merged_findings((*findings, *(remarks(whole) if remarks else ()), *_id_findings(evaluator, whole)))
    extras = {**extras_of(evaluator, whole), **({"standard_errors": errors} if errors else {})}
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
) -> tuple[dict[str, Estimate], dict[str, dict[str, Estimate]], Mapping[str, Any]]:
    """Figures whose error comes from the sampling design, not from clusters; none for most families."""
    design = getattr(evaluator, "design_estimates", None)
    if design is None:
        return estimates, classes, {}
    found = design(whole, plan.confidence)
    merged = {
        label: {**classes.get(label, {}), **found["per_class"].get(label, {})}
        for label in (*classes, *found["per_class"])
    }
    adjusted = in_order(evaluator.family, {**estimates, **found["estimates"]})
    return adjusted, merged, found.get("standard_errors", {})


def _id_findings(evaluator: Evaluator[Any], whole: Totals) -> tuple[Finding, ...]:
    """A finding where pairs are given by key, and no key of either side occurs on the other."""
    if getattr(evaluator, "assignment", None) != "id" or whole["tp"][0] or not (whole["fp"][0] and whole["fn"][0]):
        return ()
    says = f"{whole['fn'][0]} references and {whole['fp'][0]} predictions have no id in common"
    mend = "name the columns that hold the common key (--reference-id, --prediction-id)"
    return (Finding("ids-disjoint", "major", (), says, mend),)


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


def merged_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each finding once, the gravest first."""
    rank = {name: i for i, name in enumerate(SEVERITIES)}
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
        return f"{value:.12g}"
    if isinstance(value, tuple | list):
        return ",".join(_shown(one) for one in value)
    if isinstance(value, Mapping):
        return ",".join(f"{name}:{_shown(one)}" for name, one in sorted(value.items()))
    return str(value)
