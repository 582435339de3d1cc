"""Figures of a calibration: agreement overall and by dimension, bias with direction, what was left undecided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any

from geoeval.errors import ConfigError, InputError
from geoeval.evidence.canonical import canonical_bytes, digest, plain
from geoeval.judging.entries import CalibrationSet
from geoeval.judging.verdicts import Verdict
from geoeval.stats.agreement import Agreement, agreement, assess
from geoeval.stats.interval import clustered_wilson

#: Name of the outcome of the whole episode, where it stands beside the dimensions.
OUTCOME = "outcome"


@dataclass(frozen=True, slots=True)
class Identity:
    """Which judge: three tags by which its metrics are told apart, and the hashes of what it is made of."""

    judge: str
    model: str
    rubric: str
    judge_sha256: str | None = None
    prompt_sha256: str | None = None
    rubric_sha256: str | None = None

    def __post_init__(self) -> None:
        for name, value in self.tags.items():
            if not value.strip():
                raise ConfigError(f"{name} must be text that is not blank, got {value!r}")

    @property
    def tags(self) -> dict[str, str]:
        """Judge, model and version of the rubric."""
        return {"judge": self.judge, "model": self.model, "rubric": self.rubric}


@dataclass(frozen=True, slots=True)
class Counts:
    """How two raters fall on the decided entries of one dimension; ``indeterminate`` were left out by the judge."""

    both_pass: int
    judge_only: int
    verifier_only: int
    both_fail: int
    indeterminate: int

    @property
    def columns(self) -> tuple[list[int], list[int]]:
        """Judge and verifier as columns of 0 and 1."""
        times = (self.both_pass, self.judge_only, self.verifier_only, self.both_fail)
        pairs = [
            pair for pair, count in zip(((1, 1), (1, 0), (0, 1), (0, 0)), times, strict=True) for _ in range(count)
        ]
        return [judge for judge, _ in pairs], [verifier for _, verifier in pairs]


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far a judge agrees with the verifier on a stored set. Holds no time and no path."""

    identity: Identity
    set_sha256: str
    entries: int
    used_sha256: str
    executor_runs: int
    margin: float
    alpha: float
    overall: Counts
    dimensions: Mapping[str, Counts]
    pooled: Mapping[str, Any]
    order_asked: int
    order_inconsistent: int

    @property
    def agreement(self) -> Agreement:
        """On the outcome of the whole episode."""
        return agreement(*self.overall.columns)

    def assessed(self, margin: float | None = None, alpha: float | None = None) -> dict[str, Agreement]:
        """Each dimension with its verdict on bias, Holm-corrected over the dimensions."""
        columns = {name: counts.columns for name, counts in self.dimensions.items()}
        return assess(columns, self.margin if margin is None else margin, alpha=self.alpha if alpha is None else alpha)

    def assessed_outcome(self, margin: float | None = None, alpha: float | None = None) -> Agreement:
        """The outcome of the whole episode, held to the rule of a dimension; a family of one beside the dimensions."""
        used = self.margin if margin is None else margin, self.alpha if alpha is None else alpha
        return assess({OUTCOME: self.overall.columns}, used[0], alpha=used[1])[OUTCOME]

    @property
    def biased_dimensions(self) -> dict[str, str]:
        """Name to direction, ``judge_higher`` or ``judge_lower``."""
        found = self.assessed()
        return {name: str(one.direction) for name, one in found.items() if one.verdict == "biased"}

    @property
    def document(self) -> dict[str, Any]:
        """As it stands in the history and in ``--json``."""
        found = self.assessed()
        whole = {**asdict(self.assessed_outcome()), "indeterminate": self.overall.indeterminate}
        out = {
            "schema": "geoeval/calibration/1",
            "identity": asdict(self.identity),
            "set_sha256": self.set_sha256,
            "entries": self.entries,
            "used_sha256": self.used_sha256,
            "executor_runs": self.executor_runs,
            "margin": self.margin,
            "alpha": self.alpha,
            "counts": {
                "overall": asdict(self.overall),
                "dimensions": {name: asdict(counts) for name, counts in self.dimensions.items()},
            },
            "overall": whole,
            "dimensions": {
                name: {**asdict(one), "indeterminate": self.dimensions[name].indeterminate}
                for name, one in found.items()
            },
            "pooled": dict(self.pooled),
            "biased_dimensions": [
                {"dimension": name, "direction": direction} for name, direction in self.biased_dimensions.items()
            ],
            "order": {"asked": self.order_asked, "inconsistent": self.order_inconsistent},
            "metrics": metrics(self),
        }
        rounded: dict[str, Any] = plain(out)
        return rounded


def figures(
    calibration_set: CalibrationSet,
    given: Sequence[Verdict],
    identity: Identity,
    *,
    executor_runs: int,
    margin: float = 0.1,
    alpha: float = 0.05,
) -> Calibration:
    """Hold verdicts to the verifier's, entry by entry.

    An indeterminate verdict is counted and is in no agreement; nor is a dimension of which the verifier cannot say.
    """
    pairs = list(zip(calibration_set.entries, given, strict=True))
    dimensions = {
        name: _counts([(said.dimensions[name], entry.dimensions[name]) for entry, said in pairs])
        for name in calibration_set.dimensions
    }
    both = [said for said in given if said.asked_swapped]
    return Calibration(
        identity=identity,
        set_sha256=calibration_set.sha256,
        entries=len(pairs),
        used_sha256=digest(canonical_bytes([entry.id for entry, _ in pairs])),
        executor_runs=executor_runs,
        margin=margin,
        alpha=alpha,
        overall=_counts([(said.outcome, entry.outcome) for entry, said in pairs]),
        dimensions=dimensions,
        pooled=_pooled(calibration_set, given),
        order_asked=len(both),
        order_inconsistent=sum(said.swapped is not said.outcome for said in both),
    )


def _counts(pairs: Sequence[tuple[bool | None, bool | None]]) -> Counts:
    known = [(judge, verifier) for judge, verifier in pairs if verifier is not None]
    return Counts(
        both_pass=known.count((True, True)),
        judge_only=known.count((True, False)),
        verifier_only=known.count((False, True)),
        both_fail=known.count((False, False)),
        indeterminate=sum(judge is None for judge, _ in known),
    )


def _pooled(calibration_set: CalibrationSet, given: Sequence[Verdict]) -> dict[str, Any]:
    """Agreement over all dimensions together; the verdicts on one task hang together, so tasks are its clusters."""
    tasks = sorted({entry.task_id for entry in calibration_set.entries})
    place = {task: at for at, task in enumerate(tasks)}
    agreed, judged = [0] * len(tasks), [0] * len(tasks)
    for entry, said in zip(calibration_set.entries, given, strict=True):
        for name in calibration_set.dimensions:
            if entry.dimensions[name] is not None and said.dimensions[name] is not None:
                judged[place[entry.task_id]] += 1
                agreed[place[entry.task_id]] += said.dimensions[name] is entry.dimensions[name]
    found = clustered_wilson(agreed, judged)
    return {
        "n": sum(judged),
        "agreed": sum(agreed),
        "agreement": found.value,
        "low": found.low,
        "high": found.high,
        "tasks": found.clusters,
        "design_effect": found.design_effect,
        "marks": list(found.marks),
        "reason": found.reason,
    }


def metrics(found: Calibration) -> list[dict[str, Any]]:
    """Agreement, bias and counts, each tagged by judge, model and version of the rubric."""
    tags = found.identity.tags
    out = []
    rows = [("", found.agreement, found.overall), *_rows(found)]
    for name, one, counts in rows:
        own = {**tags, **({"dimension": name} if name else {})}
        values = {"agreement": (one.agreement, one.low, one.high), "bias": (one.bias, one.bias_low, one.bias_high)}
        for metric, (value, low, high) in values.items():
            out.append({"name": f"judge_{metric}", "tags": own, "value": value, "low": low, "high": high, "n": one.n})
        out.append({"name": "judge_indeterminate", "tags": own, "value": counts.indeterminate, "n": found.entries})
    inconsistent = found.order_inconsistent if found.order_asked else None
    out.append({"name": "judge_order_inconsistent", "tags": tags, "value": inconsistent, "n": found.order_asked})
    return out


def _rows(found: Calibration) -> list[tuple[str, Agreement, Counts]]:
    return [(name, one, found.dimensions[name]) for name, one in found.assessed().items()]


def calibration_from(data: Mapping[str, Any], where: str) -> Calibration:
    """The inverse of :attr:`Calibration.document`; refused where its figures are not those of its counts."""
    try:
        found = Calibration(
            identity=Identity(**data["identity"]),
            set_sha256=data["set_sha256"],
            entries=data["entries"],
            used_sha256=data["used_sha256"],
            executor_runs=data["executor_runs"],
            margin=data["margin"],
            alpha=data["alpha"],
            overall=Counts(**data["counts"]["overall"]),
            dimensions={name: Counts(**counts) for name, counts in sorted(data["counts"]["dimensions"].items())},
            pooled=data["pooled"],
            order_asked=data["order"]["asked"],
            order_inconsistent=data["order"]["inconsistent"],
        )
        same = canonical_bytes(found.document) == canonical_bytes(data)
    except (AttributeError, KeyError, TypeError, ValueError, ConfigError, InputError) as error:
        raise InputError(f"{where}: is no calibration result ({error!r})") from error
    if not same or not _adds_up(found):
        raise InputError(f"{where}: its figures are not those of its counts; it was changed")
    return found


def _adds_up(found: Calibration) -> bool:
    """Every count a whole number of at least 0, no dimension with more verdicts than entries."""
    rows = [astuple(counts) for counts in (found.overall, *found.dimensions.values())]
    whole = all(isinstance(one, int) and one >= 0 for row in rows for one in row)
    return whole and sum(rows[0]) == found.entries and all(sum(row) <= found.entries for row in rows[1:])
