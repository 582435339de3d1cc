"""The score of one candidate: a threshold chosen on validation, and one look at test.

Compared      accepted labels with the right ones; what was abstained lowers coverage and is counted by reason.
Conventions   one tally a cluster, so that intervals know who belongs together; a threshold t accepts c ≥ t; calibration
              is measured on the accepted, as precision is; nothing of test is looked at before the threshold stands.
Quantities    coverage and precision at coverage (proportions), macro F1, ECE, areas under the risk-coverage curves.
Differs       from a score of all answers: a class whose every case was abstained is named, not counted as 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geoeval.estimation import Plan, estimate, per_class
from geoeval.ledger import Ledger, Tallied, tally_unit
from geoeval.model import (
    Cell,
    Estimate,
    FloatArray,
    Gate,
    IntArray,
    Proportion,
    Quantity,
    Scalar,
    Unit,
    Verdict,
)
from geoeval.selection.policy import ABSTENTIONS, AbstentionPolicy, abstention, counted
from geoeval.selection.record import Record
from geoeval.selection.settings import METRICS, SPLITS, ThresholdRule
from geoeval.stats.calibration import ReliabilityBin, bin_index, ece, ece_of_bins, reliability
from geoeval.stats.classification import f1, macro_f1
from geoeval.stats.confusion import ConfusionTotals, confusion_totals
from geoeval.stats.labels import MacroF1
from geoeval.stats.labels import macro_f1 as macro_f1_of
from geoeval.stats.risk import AttainablePoints, attainable_points, risk_redraws
from geoeval.stats.selective import OperatingPoint, hash_of_ids, refuse_overlap, select_threshold
from geoeval.stats.tally import Bins, Rows, Tally, Totals, quanta

_BINS = 10


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What one candidate answered to some cases, as columns of equal length.

    Parameters
    ----------
    reference, prediction
        Positions of the labels; −1 where nothing was offered.
    confidence
        NaN where nothing was offered.
    reason
        Position of the reason of abstention, −1 where the answer is accepted.
    """

    reference: IntArray
    prediction: IntArray
    confidence: FloatArray
    reason: IntArray

    @staticmethod
    def of(records: Sequence[Record], policy: AbstentionPolicy | None, threshold: float | None) -> Answers:
        """Columns of records, each held to the policy and the threshold."""
        suggestions = [one.suggestion for one in records]
        refused = [abstention(one.suggestion, one.quality, policy=policy, threshold=threshold) for one in records]
        return Answers(
            np.array([one.reference for one in records], dtype=np.int64),
            np.array([-1 if one is None else one.label for one in suggestions], dtype=np.int64),
            np.array([np.nan if one is None else one.confidence for one in suggestions], dtype=np.float64),
            np.array([-1 if one is None else ABSTENTIONS.index(one.reason) for one in refused], dtype=np.int64),
        )

    @property
    def accepted(self) -> Any:
        """True where the answer is accepted (n,)."""
        return self.reason < 0

    @property
    def rankable(self) -> Any:
        """True where only the confidence decides (n,): something was offered, on something good enough to look at."""
        return self.accepted | (self.reason == ABSTENTIONS.index("low_confidence"))

    @property
    def error(self) -> IntArray:
        """1 where the label is not the right one (n,)."""
        return np.asarray(self.reference != self.prediction, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Selective:
    """Selective classification over a closed set of labels."""

    labels: tuple[str, ...]

    @property
    def name(self) -> str:
        """Evaluator and its number, which goes up when results may change."""
        return "compare/1"

    @property
    def family(self) -> str:
        """Name that gates and verdicts carry."""
        return "compare"

    def tally(self, unit: Unit[Answers]) -> Tallied:
        """Count the answers of one cluster."""
        given = unit.load()
        held = given.accepted
        confidence, error = given.confidence[held], given.error[held]
        sums = {"n": len(held), "accepted": int(held.sum()), "correct": int(held.sum()) - int(error.sum())}
        index = bin_index(confidence, _BINS)
        for at in np.unique(index).tolist():
            own = index == at
            sums[f"bin_confidence@{at}"] = quanta(confidence[own])
            sums[f"bin_correct@{at}"] = int((1 - error[own]).sum())
            sums[f"bin_n@{at}"] = int(own.sum())
        pairs = np.column_stack([given.prediction[held], given.reference[held]])
        ranked = given.rankable
        rows = {"offered": Rows.of(given.confidence[ranked], given.error[ranked])}
        return Tallied({Cell(): Tally.of(sums, {"confusion": Bins.of(pairs)}, rows)})

    def quantities(self, totals: Totals) -> Mapping[str, Quantity]:
        """Coverage, precision at coverage, macro F1 and ECE."""
        confusion = confusion_totals(totals)
        table = [
            np.column_stack([np.asarray(totals[f"{name}@{at}"], dtype=np.float64) for at in range(_BINS)])
            for name in ("bin_n", "bin_confidence", "bin_correct")
        ]
        calibration = ece_of_bins(table[0], table[1] / 1e9, table[2])
        return {
            "coverage": Proportion(totals["accepted"], totals["n"]),
            "precision_at_coverage": Proportion(totals["correct"], totals["accepted"]),
            "macro_f1": macro_f1(confusion),
            "ece": Scalar(calibration, totals["accepted"]),
        }

    def ranked(self, totals: Totals) -> Mapping[str, Quantity]:
        """Areas under the risk-coverage curves, over all that only the confidence decides."""
        offered = totals.rows.get("offered")
        if offered is None:
            missing = Scalar(np.full(totals.size, np.nan), np.zeros(totals.size, dtype=np.int64), reason="no_support")
            return dict.fromkeys(("aurc", "eaurc", "augrc"), missing)
        n = np.array([int(offered.weights(at).sum()) for at in range(totals.size)], dtype=np.int64)
        found = risk_redraws(offered, 0, 1)
        return {name: Scalar(getattr(found, name), n) for name in ("aurc", "eaurc", "augrc")}

    def class_quantities(self, totals: Totals) -> Mapping[str, Mapping[str, Quantity]]:
        """Precision, recall and F1 of every label over the accepted."""
        confusion = confusion_totals(totals)
        at = {int(code): i for i, code in enumerate(confusion.codes)}
        return {label: _class_figures(confusion, at.get(code)) for code, label in enumerate(self.labels)}


def _class_figures(confusion: ConfusionTotals, at: int | None) -> dict[str, Quantity]:
    none = np.zeros(confusion.size, dtype=np.int64)
    if at is None:
        blank = Scalar(np.full(confusion.size, np.nan), none, reason="no_support")
        return {"precision": Proportion(none, none), "recall": Proportion(none, none), "f1": blank}
    hit, said, right = (table[:, at] for table in (confusion.agreeing, confusion.predicted, confusion.reference))
    value = np.asarray(f1(confusion).value, dtype=np.float64)[:, at]
    return {"precision": Proportion(hit, said), "recall": Proportion(hit, right), "f1": Scalar(value, right)}


@dataclass(frozen=True, slots=True)
class Scored:
    """One candidate: its threshold, and what that accepts on test.

    ``threshold`` is None where no cut of the validation split reaches the coverage; nothing is scored then, and every
    figure is undefined. It is an :class:`geoeval.gates.Judged`.
    """

    model: str
    records: Mapping[str, int]
    threshold: OperatingPoint | None
    validation_ids_sha256: str
    test_ids_sha256: str
    abstentions: Mapping[str, int]
    validation_abstentions: Mapping[str, int]
    estimates: Mapping[str, Estimate]
    per_class: Mapping[str, Mapping[str, Estimate]]
    macro: MacroF1
    confusion: Mapping[tuple[str, str], int]
    bins: tuple[ReliabilityBin, ...]
    curve: AttainablePoints
    verdicts: tuple[Verdict, ...] = ()

    @property
    def family(self) -> str:
        """Family of its gates."""
        return "compare"

    @property
    def strata(self) -> tuple[Any, ...]:
        """None: candidates are compared over the whole split."""
        return ()

    @property
    def cleared(self) -> bool:
        """True where gates were declared and every one passes."""
        return bool(self.verdicts) and all(one.status == "pass" for one in self.verdicts)


def score(
    model: str,
    records: Sequence[Record],
    *,
    labels: tuple[str, ...],
    rule: ThresholdRule,
    plan: Plan,
    policy: AbstentionPolicy | None = None,
    gates: Sequence[Gate] = (),
) -> Scored:
    """Choose a threshold on validation, then score it on test, once.

    Parameters
    ----------
    model
        Name of the candidate.
    records
        Its records, in any order.
    labels
        All labels as text, in their order.

    Raises
    ------
    LeakageError
        Where validation and test share an id or a cluster.
    """
    from geoeval.gates import decide_all

    ordered = sorted(records, key=lambda one: one.content)
    by_split = {name: [one for one in ordered if one.split == name] for name in SPLITS}
    validation, test = by_split["validation"], by_split["test"]
    refuse_overlap([one.subject for one in validation], [one.subject for one in test], "subjects")
    refuse_overlap(
        [one.cluster for one in validation if one.cluster], [one.cluster for one in test if one.cluster], "clusters"
    )
    chosen, refused = chosen_threshold(validation, rule, policy)
    answers = Answers.of(test, policy, None if chosen is None else chosen.threshold)
    held = answers.accepted if chosen is not None else np.zeros(len(test), dtype=bool)
    found, of_class = _estimates(test, labels, chosen, plan, policy)
    pairs = [(labels[a], labels[b]) for a, b in zip(answers.reference[held], answers.prediction[held], strict=True)]
    macro = macro_f1_of([a for a, _ in pairs], [b for _, b in pairs], labels)
    right = 1 - answers.error[held]
    # Redraws come from rounded sums; the figures themselves are exact.
    if found["ece"].value is not None:
        found["ece"] = replace(found["ece"], value=ece(answers.confidence[held], right))
        found["macro_f1"] = replace(found["macro_f1"], value=macro.value)
    ranked = answers.rankable
    scored = Scored(
        model=model,
        records={name: len(part) for name, part in by_split.items()},
        threshold=chosen,
        validation_ids_sha256=_hash(validation),
        test_ids_sha256=_hash(test),
        abstentions=_reasons(answers) if chosen is not None else counted({}),
        validation_abstentions=refused,
        estimates=found,
        per_class=of_class,
        macro=macro,
        confusion=dict(sorted(Counter(pairs).items())),
        bins=reliability(answers.confidence[held], right),
        curve=attainable_points(answers.confidence[ranked], answers.error[ranked]),
    )
    verdicts, _ = decide_all(gates, scored, policy_required=True, prefix=f"{model}:")
    return replace(scored, verdicts=verdicts)


def _hash(records: Sequence[Record]) -> str:
    return hash_of_ids([f"{one.subject}/{one.id or ''}" for one in records])


def chosen_threshold(
    validation: Sequence[Record], rule: ThresholdRule, policy: AbstentionPolicy | None
) -> tuple[OperatingPoint | None, dict[str, int]]:
    """The threshold of highest precision with enough coverage of all validation records, and what it abstains on.

    A confidence below the policy's floor is no candidate, and what the policy abstains on counts in the coverage.
    """
    answers = Answers.of(validation, policy, None)
    open_to = answers.accepted
    chosen = select_threshold(
        answers.confidence[open_to],
        answers.error[open_to],
        rule.min_coverage,
        split="validation",
        total=len(validation),
    )
    return chosen, _reasons(answers if chosen is None else Answers.of(validation, policy, chosen.threshold))


def _reasons(answers: Answers) -> dict[str, int]:
    return counted({name: int(np.sum(answers.reason == at)) for at, name in enumerate(ABSTENTIONS)})


def _estimates(
    test: Sequence[Record],
    labels: tuple[str, ...],
    chosen: OperatingPoint | None,
    plan: Plan,
    policy: AbstentionPolicy | None,
) -> tuple[dict[str, Estimate], dict[str, dict[str, Estimate]]]:
    """Figures over all labels and label by label; undefined where nothing could be scored."""
    if chosen is None or not test:
        return {name: Estimate(None, "1", 0, reason="no_support") for name in METRICS}, {}
    evaluator = Selective(labels)
    clusters: dict[str, list[Record]] = {}
    for one in test:
        clusters.setdefault(one.cluster, []).append(one)
    rows = []
    for name, part in clusters.items():
        answers = Answers.of(part, policy, chosen.threshold)
        unit = Unit(name, lambda answers=answers: answers, cluster=name)  # type: ignore[misc]
        rows += tally_unit(evaluator, unit)[0]
    ledger = Ledger.of(rows)
    return estimate(evaluator, ledger, plan), per_class(evaluator, ledger, plan)
