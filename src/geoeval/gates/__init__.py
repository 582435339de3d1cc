"""Gates: numbers held to declared limits. Whatever is missing, undefined or too thin never passes.

A limit is inclusive and its direction is declared. A verdict is decided on the value as it stands in evidence, rounded
to 12 significant digits, so that the verdict and the bytes agree. A gate ``on = "interval"`` holds the whole interval
to the limit: it passes where all of it is good, fails where all of it is bad, and is not evaluable in between.

A gate's scope names what it is held against: the overall figure, every class (or, where ``by`` is given, the one class
of that name), or every subgroup of the field ``by``. In a verdict the scope reads ``overall``, ``per_class:car`` or
``per_subgroup:region=north``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, Protocol

from geoeval.evidence.canonical import significant
from geoeval.gates.support import BOOTSTRAP_CLUSTERS, WILSON_CLUSTERS, few_clusters, lacking_clusters, smallest_n
from geoeval.gates.text import check_metrics, parse_gate
from geoeval.gates.waivers import Waiver, apply_waivers
from geoeval.keys import SUPPORTED_BY
from geoeval.model import Estimate, Gate, Status, Stratum, Verdict

__all__ = [
    "BOOTSTRAP_CLUSTERS",
    "WILSON_CLUSTERS",
    "Judged",
    "Waiver",
    "apply_waivers",
    "check_metrics",
    "decide",
    "decide_all",
    "decide_families",
    "exit_code",
    "family_status",
    "few_clusters",
    "group_name",
    "lacking_clusters",
    "parse_gate",
    "smallest_n",
]

_RANK: dict[Status, int] = {"pass": 0, "not_evaluable": 1, "fail": 2}


class Judged(Protocol):
    """What :func:`decide_all` reads: an :class:`geoeval.model.Evaluation` is one."""

    @property
    def family(self) -> str:
        """Family of the gates that apply."""

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """Overall figures by metric."""

    @property
    def per_class(self) -> Mapping[str, Mapping[str, Estimate]]:
        """Figures of each class."""

    @property
    def strata(self) -> tuple[Stratum, ...]:
        """Figures of each subgroup."""


def decide(gate: Gate, estimate: Estimate | None, scope: str = "overall", id: str | None = None) -> Verdict:  # noqa: A002
    """Hold one estimate to one limit.

    Parameters
    ----------
    gate
        The limit, its direction, and whether the value or the interval is held to it.
    estimate
        None where the metric was not computed.
    scope
        What the estimate is about, as it shall stand in the verdict.
    id
        Name of the verdict; the gate's own where it is None.

    Returns
    -------
    Verdict
        ``pass`` only on a finite value with enough support; else ``fail``, or ``not_evaluable`` with its reason.

    Examples
    --------
    >>> gate = Gate("floor", "recall", "at_least", 0.9, on="value")
    >>> decide(gate, Estimate(0.9, "1", support=10)).status
    'pass'
    >>> decide(gate, None).reason
    'metric_missing'
    >>> decide(gate, Estimate(float("nan"), "1", support=10)).status
    'not_evaluable'
    """
    status, reason = _decision(gate, estimate)
    interval = estimate.interval if estimate is not None else None
    return Verdict(
        id=gate.id if id is None else id,
        family=gate.family,
        metric=gate.metric,
        scope=scope,
        direction=gate.direction,
        limit=gate.limit,
        on=gate.on,
        min_support=gate.min_support,
        value=_finite(estimate.value) if estimate is not None else None,
        low=_finite(interval.low) if interval is not None else None,
        high=_finite(interval.high) if interval is not None else None,
        support=estimate.support if estimate is not None else None,
        clusters=interval.clusters if interval is not None else None,
        status=status,
        reason=reason,
        smallest_n=smallest_n(gate, estimate),
    )


def _decision(gate: Gate, estimate: Estimate | None) -> tuple[Status, str | None]:
    if estimate is None:
        return "not_evaluable", "metric_missing"
    value = _finite(estimate.value)
    missing = _missing(gate, estimate, value)
    if value is None or missing is not None:
        return "not_evaluable", missing
    if gate.on == "value":
        return ("pass" if _holds(gate, value) else "fail"), None
    return _on_interval(gate, estimate)


def _missing(gate: Gate, estimate: Estimate, value: float | None) -> str | None:
    """Why the estimate cannot be held to anything; None where it can."""
    if not math.isfinite(gate.limit):
        return "no_policy"
    if value is None:
        return estimate.reason or ("no_support" if estimate.support <= 0 else "undefined_ratio")
    if estimate.support <= 0:
        return "no_support"
    return "low_support" if estimate.support < gate.min_support else None


def _on_interval(gate: Gate, estimate: Estimate) -> tuple[Status, str | None]:
    interval = estimate.interval
    low = _finite(interval.low) if interval is not None else None
    high = _finite(interval.high) if interval is not None else None
    if low is None or high is None:
        return "not_evaluable", estimate.reason or "no_interval"
    if few_clusters(estimate):
        return "not_evaluable", "few_clusters"
    near, far = (low, high) if gate.direction == "at_least" else (high, low)
    if _holds(gate, near):
        return "pass", None
    if not _holds(gate, far):
        return "fail", None
    return "not_evaluable", "ci_straddles_threshold"


def _holds(gate: Gate, value: float) -> bool:
    limit = significant(gate.limit)
    return value >= limit if gate.direction == "at_least" else value <= limit


def _finite(value: float | None) -> float | None:
    return significant(float(value)) if value is not None and math.isfinite(value) else None


def decide_all(
    gates: Sequence[Gate],
    evaluation: Judged,
    *,
    min_support: int = 0,
    policy_required: bool = False,
    prefix: str = "",
) -> tuple[tuple[Verdict, ...], tuple[Stratum, ...]]:
    """Hold an evaluation to every gate of its family, class by class and subgroup by subgroup.

    A critical subgroup is held to the gates by its field and, where there are none, to the overall gates. One that is
    absent or too small is a verdict of its own, not evaluable.

    Parameters
    ----------
    gates
        All gates; those of other families are left out, those without a family apply to any.
    evaluation
        The figures.
    min_support
        Fewest observations of a subgroup.
    policy_required
        With True, an empty policy is a verdict of its own: not evaluable, ``no_policy``.
    prefix
        Put before the id of each verdict, where several evaluations stand side by side.

    Returns
    -------
    tuple of Verdict
        In the order of the gates, then the critical subgroups.
    tuple of Stratum
        The subgroups with their status.
    """
    own = list(
        {
            gate.id: replace(gate, family=evaluation.family) for gate in gates if gate.family in ("", evaluation.family)
        }.values()
    )
    verdicts: list[Verdict] = []
    for gate in own:
        verdicts += _expanded(gate, evaluation, min_support)
    for stratum in evaluation.strata:
        if stratum.critical:
            verdicts += _critical(stratum, own, evaluation.family, min_support)
    if policy_required and not own:
        verdicts.append(_row(evaluation.family, "policy", "overall", "no_policy"))
    strata = tuple(_settled(stratum, verdicts, evaluation.family, min_support) for stratum in evaluation.strata)
    return tuple(replace(verdict, id=prefix + verdict.id) for verdict in verdicts), strata


def _expanded(gate: Gate, evaluation: Judged, min_support: int) -> list[Verdict]:
    if gate.scope == "overall":
        return [decide(gate, evaluation.estimates.get(gate.metric))]
    if gate.scope == "per_class":
        labels = sorted(evaluation.per_class) if gate.by is None else [gate.by]
        rows = [
            decide(
                gate, evaluation.per_class.get(label, {}).get(gate.metric), f"per_class:{label}", f"{gate.id}[{label}]"
            )
            for label in labels
        ]
        return rows or [replace(decide(gate, None, "per_class"), reason="no_support")]
    strata = [stratum for stratum in evaluation.strata if gate.by is not None and set(stratum.by) == {gate.by}]
    rows = [_subgroup(gate, stratum, evaluation.family, min_support) for stratum in strata]
    return rows or [replace(decide(gate, None, f"per_subgroup:{gate.by}"), reason="no_support")]


def _subgroup(gate: Gate, stratum: Stratum, family: str, min_support: int) -> Verdict:
    """One gate on one subgroup; a subgroup that is absent or too small is not evaluable, whatever its figures say."""
    name = group_name(stratum.by)
    verdict = decide(gate, stratum.estimates.get(gate.metric), f"per_subgroup:{name}", f"{gate.id}[{name}]")
    reason = _thin(stratum, family, min_support)
    if reason is None or verdict.reason == reason:
        return verdict
    return replace(verdict, status="not_evaluable", reason=reason)


def _thin(stratum: Stratum, family: str, min_support: int) -> str | None:
    """Why a subgroup cannot be judged at all: absent, or below the declared support."""
    names = SUPPORTED_BY.get(family, tuple(stratum.estimates))
    support = max((stratum.estimates[name].support for name in names if name in stratum.estimates), default=0)
    if stratum.support_reason == "critical_subgroup_missing" or (stratum.critical and support <= 0):
        return "critical_subgroup_missing"
    return "low_support" if support < min_support else None


def group_name(by: Mapping[str, str]) -> str:
    """A subgroup as text.

    Examples
    --------
    >>> group_name({"region": "north"})
    'region=north'
    """
    return ",".join(f"{field}={by[field]}" for field in sorted(by))


def _critical(stratum: Stratum, gates: Sequence[Gate], family: str, min_support: int) -> list[Verdict]:
    """Verdicts on one critical subgroup that the gates by its field have not given already."""
    name = group_name(stratum.by)
    if any(gate.scope == "per_subgroup" and {gate.by} == set(stratum.by) for gate in gates):
        return []
    reason = _thin(stratum, family, min_support)
    overall = [gate for gate in gates if gate.scope == "overall"]
    if reason is None and overall:
        return [_subgroup(gate, stratum, family, min_support) for gate in overall]
    row = _row(family, f"critical[{name}]", f"per_subgroup:{name}", reason or "no_policy")
    return [replace(row, min_support=min_support)]


def _settled(stratum: Stratum, verdicts: Iterable[Verdict], family: str, min_support: int) -> Stratum:
    """A subgroup with the worst status of its own verdicts; why it lacks support stands on its own field."""
    scope = f"per_subgroup:{group_name(stratum.by)}"
    own = [verdict for verdict in verdicts if verdict.scope == scope]
    thin = _thin(stratum, family, min_support)
    low = thin or next((row.reason for row in own if row.reason in ("low_support", "no_support")), None)
    if thin is not None or not own:
        return replace(stratum, status="not_evaluable", support_reason=low or "no_policy")
    return replace(stratum, status=family_status(own), support_reason=low)


def _row(family: str, id: str, scope: str, reason: str) -> Verdict:  # noqa: A002
    """A verdict that no number stands behind."""
    return Verdict(
        id=id,
        family=family,
        metric="",
        scope=scope,
        direction="",
        limit=None,
        on="",
        min_support=0,
        value=None,
        low=None,
        high=None,
        support=None,
        clusters=None,
        status="not_evaluable",
        reason=reason,
    )


def decide_families(
    gates: Sequence[Gate],
    evaluations: Mapping[str, Judged],
    min_support: Mapping[str, int] | None = None,
) -> tuple[Verdict, ...]:
    """Verdicts on several evaluations by name: each needs a policy, and each gate needs an evaluation.

    A gate whose family was never evaluated is not evaluable (``metric_missing``), so that a gate that never ran is
    seen. No evaluation at all is ``no_policy``.
    """
    verdicts: list[Verdict] = []
    for name in sorted(evaluations):
        least = (min_support or {}).get(name, 0)
        found, _ = decide_all(gates, evaluations[name], min_support=least, policy_required=True, prefix=f"{name}:")
        verdicts += found
    families = {evaluation.family for evaluation in evaluations.values()}
    verdicts += [decide(gate, None) for gate in gates if gate.family not in families and (gate.family or not families)]
    return tuple(verdicts) or (_row("", "policy", "overall", "no_policy"),)


def family_status(verdicts: Iterable[Verdict]) -> Status:
    """The worst of all verdicts; without any, not evaluable (``no_policy``), never pass.

    Examples
    --------
    >>> family_status([])
    'not_evaluable'
    """
    return max((verdict.status for verdict in verdicts), key=_RANK.__getitem__, default="not_evaluable")


def exit_code(verdicts: Iterable[Verdict]) -> Literal[0, 2, 3]:
    """0 where every gate passes (or none was declared), 3 where one fails, else 2 where one cannot be decided.

    Examples
    --------
    >>> exit_code([])
    0
    """
    statuses = {verdict.status for verdict in verdicts}
    if "fail" in statuses:
        return 3
    return 2 if "not_evaluable" in statuses else 0
