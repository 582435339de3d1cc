"""Validation: the findings of a validator against known anomalies.

Compared      one-to-one, by canonical code and place (dataset, feature; field and pixel window where both sides name
              one).
Conventions   a second hit on one anomaly is a duplicate, neither right nor wrong; the right place under another code is
              misclassified, and the anomaly counts as missed; an unmatched finding is false only on material certified
              clean, elsewhere it is unadjudicated.
Quantities    counts, precision and recall (proportions), F1, missed blocker and critical anomalies, alarms per 1,000
              clean features; per code as classes, per severity as subgroups.
Differs       from other families: recall carries the exact one-sided Clopper-Pearson lower bound instead of Wilson's
              interval, and two gates are always there: no missed blocker, no missed critical anomaly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from geoeval.checks.pairs import Outcomes, pair_findings
from geoeval.errors import ConfigError, InputError
from geoeval.layers import FindingPair
from geoeval.ledger import Tallied
from geoeval.model import (
    SEVERITIES,
    UNKNOWN,
    Cell,
    Finding,
    Gate,
    IntArray,
    Proportion,
    Quantity,
    Records,
    Scalar,
    Severity,
    Unit,
    ratio,
    scalar_value,
)
from geoeval.stats.tally import Tally, Totals

#: Severities of which no anomaly may be missed.
BLOCKING: tuple[Severity, ...] = ("blocker", "critical")

_SHOWN = 10


def required_gates() -> tuple[Gate, ...]:
    """The gates that this family always has: any missed blocker or critical anomaly fails.

    Without a planted blocker or critical anomaly nothing was tested, so that they are not evaluable.

    Examples
    --------
    >>> [gate.id for gate in required_gates()]
    ['no-missed-blocker', 'no-missed-critical']
    """
    return tuple(
        Gate(f"no-missed-{severity}", f"missed_{severity}", "at_most", 0.0, on="value", family="validation")
        for severity in BLOCKING
    )


@dataclass(frozen=True, slots=True)
class Validation:
    """A validator held to known anomalies: does it find what is wrong, and leave alone what is not.

    Parameters
    ----------
    aliases
        Codes of other tools to canonical codes.
    clean_datasets
        Datasets certified clean: an unmatched finding there is false.
    assume_clean
        With True, everything outside of the known anomalies is certified clean.
    window_tolerance_px
        How far apart two pixel windows may lie and still be one place.
    """

    aliases: Mapping[str, str] = field(default_factory=dict)
    clean_datasets: tuple[str, ...] = ()
    assume_clean: bool = False
    window_tolerance_px: float = 0.0

    #: Recall takes the exact one-sided lower bound.
    exact_recall: ClassVar[bool] = True
    #: Subgroups that are always reported.
    own_strata: ClassVar[tuple[str, ...]] = ("severity",)

    def __post_init__(self) -> None:
        if not self.window_tolerance_px >= 0:
            raise ConfigError(f"window_tolerance_px must be 0 or more pixels, got {self.window_tolerance_px!r}")

    @property
    def name(self) -> str:
        """Evaluator and its number, which goes up when results may change."""
        return "validation/1"

    @property
    def family(self) -> str:
        """Family of the metric contract."""
        return "validation"

    @staticmethod
    def required_gates() -> tuple[Gate, ...]:
        """No missed blocker, no missed critical anomaly."""
        return required_gates()

    def tally(self, unit: Unit[FindingPair]) -> Tallied:
        """Pair findings with anomalies and count them in their cells."""
        pair = unit.load()
        _check_severities(unit.id, pair)
        codes = [self._canonical(side["code"]) for side in (pair.reference, pair.prediction)]
        result = pair_findings(pair.reference, pair.prediction, codes[0], codes[1], self.window_tolerance_px)
        sheet = _Sheet(unit.id, pair, codes[0], codes[1])
        clean = self._clean(pair)
        _count(sheet, result, clean)
        incomplete = not pair.completed or (pair.expected is not None and (pair.read or 0) < pair.expected)
        cells = sheet.cells(self._canonical(np.array(pair.planted, dtype=object)), incomplete=incomplete)
        return Tallied(
            cells,
            _records(unit.id, pair, codes, result, clean),
            (*_missed(unit.id, pair, codes[0], result), *_incomplete(unit.id, pair, incomplete)),
        )

    def quantities(self, totals: Totals) -> Mapping[str, Quantity]:
        """Every key of the family; undefined where a validator did not finish."""
        tp, fp, fn = totals["tp"], totals["fp"], totals["fn"]
        known, claimed, all_findings = tp + fn, tp + fp, totals["findings"]
        return {
            "tp": _count_of(totals, "tp", known),
            "fp": _count_of(totals, "fp", all_findings),
            "fn": _count_of(totals, "fn", known),
            "precision": _proportion(totals, tp, claimed),
            "recall": _proportion(totals, tp, known),
            "f1": _ratio(totals, 2 * tp, 2 * tp + fp + fn, known + fp),
            "missed_blocker": _count_of(totals, "missed_blocker", totals["blocker"]),
            "missed_critical": _count_of(totals, "missed_critical", totals["critical"]),
            "unadjudicated": _count_of(totals, "unadjudicated", all_findings),
            "duplicates": _count_of(totals, "duplicates", all_findings),
            "misclassified": _count_of(totals, "misclassified", known),
            "alarms_per_1000": _ratio(totals, fp, totals["clean_features"], totals["clean_features"], times=1000),
        }

    def ranked(self, totals: Totals) -> Mapping[str, Quantity]:  # noqa: ARG002 - nothing here is sorted
        """Nothing: findings have no order."""
        return {}

    def class_quantities(self, totals: Totals) -> Mapping[str, Mapping[str, Quantity]]:  # noqa: ARG002 - cells carry classes
        """Nothing: cells carry the code."""
        return {}

    def extras(self, totals: Totals) -> dict[str, Any]:
        """Precision with all unadjudicated findings false and all true, mean recall over codes, untested codes."""
        tp, fp, unknown = (int(totals[name][0]) for name in ("tp", "fp", "unadjudicated"))
        wrong = fp + int(totals["misclassified"][0])
        known = {*totals.names("tp@"), *totals.names("fn@")}
        recalls = [float(totals[f"tp@{code}"][0] / totals[f"known@{code}"][0]) for code in sorted(known)]
        return {
            "precision_range": {
                "low": ratio(tp, tp + wrong + unknown),
                "high": ratio(tp + unknown, tp + wrong + unknown),
            },
            "macro_recall": scalar_value(sum(recalls) / len(recalls)) if recalls else None,
            "untested_codes": sorted({*totals.names("seen@")} - known),
        }

    def _canonical(self, codes: NDArray[Any]) -> NDArray[Any]:
        out = np.empty(len(codes), dtype=object)
        out[:] = [self.aliases.get(str(code), str(code)) for code in codes]
        return out

    def _clean(self, pair: FindingPair) -> NDArray[np.bool_]:
        if self.assume_clean:
            return np.ones(len(pair.clean), dtype=bool)
        certified = np.isin(pair.prediction["dataset"].astype(str), list(self.clean_datasets))
        return np.asarray(pair.clean, dtype=bool) | certified


def _check_severities(unit: str, pair: FindingPair) -> None:
    for side, table, allowed in (
        ("reference", pair.reference, SEVERITIES),
        ("prediction", pair.prediction, (*SEVERITIES, "")),
    ):
        for i, severity in enumerate(table["severity"]):
            if severity not in allowed:
                raise InputError(
                    f"unit {unit!r}: {side} {table['id'][i]!r} has severity {severity!r}; expected one of "
                    f"{', '.join(SEVERITIES)}"
                )


class _Sheet:
    """Sums by cell while one unit is counted."""

    def __init__(
        self, unit: str, pair: FindingPair, reference_code: NDArray[Any], prediction_code: NDArray[Any]
    ) -> None:
        self._sums: dict[Cell, dict[str, int]] = {}
        self.code = (reference_code, prediction_code)
        self.severity = pair.reference["severity"]
        self._clean_features = pair.clean_features
        self._reference = [
            Cell(pair.cluster[i], code, _strata(pair.strata, i, self.severity[i]))
            for i, code in enumerate(reference_code)
        ]
        by = {name: pair.prediction.get(f"by:{name}") for name in pair.strata}
        self._prediction = [
            Cell(pair.prediction_cluster[i], code, _strata(by, i, pair.prediction["severity"][i] or UNKNOWN))
            for i, code in enumerate(prediction_code)
        ]
        clusters = sorted({*pair.cluster, *pair.prediction_cluster})
        self._cluster = clusters[0] if clusters else unit

    def at_reference(self, i: int, **counts: int) -> None:
        self._add(self._reference[i], counts)

    def at_prediction(self, i: int, **counts: int) -> None:
        self._add(self._prediction[i], counts)

    def _add(self, cell: Cell, counts: Mapping[str, int]) -> None:
        sums = self._sums.setdefault(cell, {})
        for name, value in counts.items():
            sums[name] = sums.get(name, 0) + value

    def cells(self, planted: Sequence[str] | NDArray[Any], *, incomplete: bool) -> dict[Cell, Tally]:
        """The tallies. A code that was to be tested has a cell even where no anomaly of it was planted."""
        if self._clean_features:
            self._add(Cell(self._cluster), {"clean_features": self._clean_features})
        for code in planted:
            self._add(Cell(self._cluster, str(code)), {f"seen@{code}": 1})
        if incomplete:
            # In every cell, so that no class and no subgroup of an unfinished run looks finished.
            self._sums.setdefault(Cell(self._cluster), {})
            for sums in self._sums.values():
                sums["incomplete"] = 1
        return {cell: Tally.of(sums) for cell, sums in self._sums.items()}


def _strata(values: Mapping[str, Any], i: int, severity: str) -> tuple[tuple[str, str], ...]:
    found = {name: UNKNOWN if column is None else str(column[i]) for name, column in values.items()}
    return tuple(sorted({**found, "severity": severity}.items()))


def _count(sheet: _Sheet, result: Outcomes, clean: NDArray[np.bool_]) -> None:
    reference_code, prediction_code = sheet.code
    hit = {int(i) for i in result.reference}
    for i, code in enumerate(reference_code):
        outcome, severity = ("tp" if i in hit else "fn"), str(sheet.severity[i])
        sums: dict[str, int] = {outcome: 1, f"{outcome}@{code}": 1, f"known@{code}": 1, f"seen@{code}": 1}
        if severity in BLOCKING:
            sums[severity] = 1
            sums[f"missed_{severity}"] = 0 if i in hit else 1
        sheet.at_reference(i, **sums)
    for i in (*result.reference, *result.duplicate_of, *result.misclassified_reference):
        sheet.at_reference(int(i), findings=1)
    for i in result.duplicate_of:
        sheet.at_reference(int(i), duplicates=1)
    for i in result.misclassified_reference:
        sheet.at_reference(int(i), misclassified=1)
    for j in result.unmatched:
        outcome = "fp" if clean[j] else "unadjudicated"
        sheet.at_prediction(int(j), **{outcome: 1, "findings": 1, f"seen@{prediction_code[j]}": 1})


def _records(
    unit: str, pair: FindingPair, codes: Sequence[NDArray[Any]], result: Outcomes, clean: NDArray[np.bool_]
) -> Records:
    """One row a hit, miss, false finding, duplicate or unadjudicated finding."""
    wrong_pairs = zip(result.misclassified_reference, result.misclassified_prediction, strict=True)
    misclassified = {int(i): int(j) for i, j in wrong_pairs}
    hit = {int(i) for i in result.reference}
    rows: list[tuple[str, str, int, int]] = [
        ("tp", "", int(i), int(j)) for i, j in zip(result.reference, result.prediction, strict=True)
    ]
    for i in range(len(codes[0])):
        if i not in hit:
            wrong = misclassified.get(i)
            rows.append(("fn", "missed", i, -1) if wrong is None else ("fn", "misclassified", i, wrong))
    rows += [
        ("ignored", "duplicate", int(i), int(j)) for i, j in zip(result.duplicate_of, result.duplicate, strict=True)
    ]
    rows += [
        ("fp", "background", -1, int(j)) if clean[j] else ("ignored", "unadjudicated", -1, int(j))
        for j in result.unmatched
    ]

    left, right = [row[2] for row in rows], [row[3] for row in rows]

    def column(values: NDArray[Any], at: Sequence[int]) -> list[Any]:
        return ["" if i < 0 else values[i] for i in at]

    return Records.of(
        len(rows),
        unit=unit,
        outcome=[row[0] for row in rows],
        error_type=[row[1] for row in rows],
        reference_id=column(pair.reference["id"], left),
        prediction_id=column(pair.prediction["id"], right),
        reference_label=column(codes[0], left),
        prediction_label=column(codes[1], right),
        cluster=[pair.prediction_cluster[j] if i < 0 else pair.cluster[i] for _, _, i, j in rows],
        strata=_record_strata(pair, rows),
    )


def _record_strata(pair: FindingPair, rows: Sequence[tuple[str, str, int, int]]) -> NDArray[Any]:
    by = {name: pair.prediction.get(f"by:{name}") for name in pair.strata}
    out = np.empty(len(rows), dtype=object)
    for at, (_, _, i, j) in enumerate(rows):
        out[at] = (
            _strata(pair.strata, i, pair.reference["severity"][i])
            if i >= 0
            else _strata(by, j, pair.prediction["severity"][j] or UNKNOWN)
        )
    return out


def _missed(unit: str, pair: FindingPair, codes: NDArray[Any], result: Outcomes) -> list[Finding]:
    """Missed blocker and critical anomalies, code by code."""
    hit = {int(i) for i in result.reference}
    missed: dict[tuple[Severity, str], list[str]] = {}
    for i, code in enumerate(codes):
        severity = pair.reference["severity"][i]
        if severity in BLOCKING and i not in hit:
            place = f"{pair.reference['dataset'][i]}/{pair.reference['feature'][i]}"
            missed.setdefault((severity, str(code)), []).append(place)
    return [
        Finding(
            f"missed-{severity}",
            severity,
            (unit, *sorted(places)[:_SHOWN]),
            f"{len(places)} known anomalies of class {code!r} were not found",
            "mend the validator: a missed blocker or critical anomaly blocks",
        )
        for (severity, code), places in sorted(missed.items())
    ]


def _incomplete(unit: str, pair: FindingPair, incomplete: bool) -> list[Finding]:
    if not incomplete:
        return []
    says = (
        "the validator did not finish"
        if not pair.completed
        else f"the validator read {'an unknown number' if pair.read is None else pair.read} of {pair.expected} records"
    )
    return [Finding("validator-incomplete", "blocker", (unit,), says, "run it again to its end; nothing is scored")]


def _finished(totals: Totals) -> NDArray[np.bool_]:
    return np.asarray(totals["incomplete"] == 0, dtype=bool)


def _reason(totals: Totals) -> str | None:
    return None if np.all(_finished(totals)) else "evidence_missing"


def _count_of(totals: Totals, name: str, n: IntArray) -> Scalar:
    value = np.where(_finished(totals), np.asarray(totals[name], dtype=np.float64), np.nan)
    return Scalar(value, n=n, reason=_reason(totals))


def _proportion(totals: Totals, k: IntArray, n: IntArray) -> Proportion:
    done = _finished(totals)
    return Proportion(np.where(done, k, 0), np.where(done, n, 0), reason=_reason(totals))


def _ratio(totals: Totals, numerator: IntArray, denominator: IntArray, n: IntArray, times: int = 1) -> Scalar:
    done = _finished(totals)
    value = np.full(totals.size, np.nan)
    np.divide(times * np.asarray(numerator, dtype=np.float64), denominator, out=value, where=done & (denominator != 0))
    undefined = "undefined_ratio" if np.all(np.isnan(value)) else None
    return Scalar(
        value,
        n=n,
        numerator=np.asarray(numerator, dtype=np.float64),
        denominator=np.asarray(denominator, dtype=np.float64),
        reason=_reason(totals) or undefined,
    )
