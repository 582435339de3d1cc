"""A report's figures of one model, counted again from what stands beside them: a report that was edited shows.

Counted       coverage and precision from the confusion table, macro F1 from it too, ECE from its bins.
Held          the threshold to its point of the risk-coverage curve, every gate to the figure that it judges.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from geoeval.evidence.canonical import significant
from geoeval.selection.settings import ARROW

#: Figures that stand at the head of a model.
HEADLINES = ("coverage", "precision_at_coverage", "macro_f1", "ece")

#: Figures are written with 12 digits; what is counted again from them agrees to fewer.
_SAME = 1e-9


def contradictions(model: Mapping[str, Any]) -> tuple[str, ...]:
    """Where the figures of one model of a report do not follow from each other, each as a sentence.

    Parameters
    ----------
    model
        As it stands in the report, with a threshold. Parts that are missing, or of another kind, are a contradiction.

    Examples
    --------
    >>> contradictions({"threshold": 0.5, "gates": []})
    ("its figures cannot be counted again (KeyError: 'confusion')",)
    """
    try:
        return (*_counts(model), *_figures(model), *_gates(model))
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        return (f"its figures cannot be counted again ({type(error).__name__}: {error})",)


def _counts(model: Mapping[str, Any]) -> Iterator[str]:
    """Accepted and correct: of the table, of the curve at the threshold, of the abstentions and of the bins."""
    accepted, correct = _accepted(model)
    curve, threshold = model["risk_coverage"], model["threshold"]
    # The curve goes from the greatest confidence down; a threshold accepts every point at or above it.
    held = sum(point >= threshold for point in curve["threshold"])
    at = (curve["accepted"][held - 1], curve["correct"][held - 1]) if held else (0, 0)
    if at != (accepted, correct):
        yield (
            f"the threshold {threshold!r} accepts {at[0]} with {at[1]} correct by risk_coverage, "
            f"the confusion table holds {accepted} with {correct} correct"
        )
    n = model["test"]["n"]
    if not n == curve["n"] == model["records"]["test"] == accepted + sum(model["abstentions"].values()):
        yield f"{n} test records are not the {accepted} accepted and the abstained"
    if sum(row["n"] for row in model["ece_bins"]) != accepted:
        yield f"the bins of the calibration do not hold the {accepted} accepted"
    truths, predicted = _sides(model["confusion"])
    for label, row in model["per_class"].items():
        if (row["support"], row["predicted"]) != (truths[label], predicted[label]):
            yield f"class {label} has other counts than the confusion table"
    chosen = model["validation"]
    shares = ("coverage", chosen["accepted"], chosen["n"]), ("precision", chosen["correct"], chosen["accepted"])
    for name, part, whole in shares:
        if not _same(chosen[name], part / whole if whole else None):
            yield f"{name} {chosen[name]!r} on validation is not {part} of {whole}"


def _figures(model: Mapping[str, Any]) -> Iterator[str]:
    """The headlines: each its estimate, and what the counts give."""
    accepted, correct = _accepted(model)
    n = model["test"]["n"]
    again = {
        "coverage": accepted / n if n else None,
        "precision_at_coverage": correct / accepted if accepted else None,
        "macro_f1": _macro_f1(model["confusion"]),
        "ece": _ece(model["ece_bins"], accepted),
    }
    for name in HEADLINES:
        value, estimate = model[name], model["estimates"][name]["value"]
        if not _same(value, estimate):
            yield f"{name} is {value!r}, its estimate {estimate!r}"
        if not _same(value, again[name]):
            yield f"{name} is {value!r}, its counts give {again[name]!r}"


def _gates(model: Mapping[str, Any]) -> Iterator[str]:
    """Every gate that was decided judges the figure that stands in the report, and its interval."""
    for gate in model["gates"]:
        if gate["status"] == "not_evaluable":
            continue
        figures = model["estimates"]
        if gate["scope"] != "overall":
            figures = model["per_class"][str(gate["scope"]).removeprefix("per_class:")]["estimates"]
        found = figures[gate["metric"]]
        span = found["interval"] or {"low": None, "high": None}
        for part, value in (("value", found["value"]), ("low", span["low"]), ("high", span["high"])):
            if not _same(gate[part], value):
                yield f"the gate {gate['id']} judges the {part} {gate[part]!r}, the report has {value!r}"


def _accepted(model: Mapping[str, Any]) -> tuple[int, int]:
    cells = {tuple(cell.split(ARROW)): count for cell, count in model["confusion"].items()}
    if any(not isinstance(count, int) or count < 0 for count in cells.values()):
        raise ValueError("a cell of the confusion table is no count")
    return sum(cells.values()), sum(count for (truth, predicted), count in cells.items() if truth == predicted)


def _sides(confusion: Mapping[str, int]) -> tuple[Counter[str], Counter[str]]:
    """How often each label is the truth, and how often it is predicted."""
    truths: Counter[str] = Counter()
    predicted: Counter[str] = Counter()
    for cell, count in confusion.items():
        truth, said = cell.split(ARROW)
        truths[truth] += count
        predicted[said] += count
    return truths, predicted


def _macro_f1(confusion: Mapping[str, int]) -> float | None:
    """Over the classes that are the truth of something accepted."""
    truths, predicted = _sides(confusion)
    if not truths:
        return None
    f1 = [2 * confusion.get(f"{one}{ARROW}{one}", 0) / (truths[one] + predicted[one]) for one in truths]
    return math.fsum(f1) / len(f1)


def _ece(bins: list[Mapping[str, Any]], accepted: int) -> float | None:
    if not accepted:
        return None
    return math.fsum(row["n"] * abs(row["confidence"] - row["correct"]) for row in bins if row["n"]) / accepted


def _same(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return bool(math.isclose(significant(one), significant(other), rel_tol=0.0, abs_tol=_SAME))
