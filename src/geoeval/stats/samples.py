"""Sample points of a map as tallies, and accuracy and area as their design allows.

Labels are text, so every (stratum, map label, reference label) is a sum of its own: it adds over units and clusters
whatever classes each of them holds. The size of a stratum is a sum too, counted once for the whole survey.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from geoeval.model import Estimate, IntArray, Interval
from geoeval.stats.area import Design, DesignFigure, MapAccuracy, design_accuracy, ratio_accuracy
from geoeval.stats.confusion import ConfusionTotals
from geoeval.stats.tally import PER_UNIT, Tally, Totals

_SAMPLE = "sample@"
_MAPPED = "mapped@"


def sample_tally(stratum: Sequence[str], prediction: Sequence[str], reference: Sequence[str]) -> Tally:
    """Count sample points by sampling stratum, map label and reference label.

    Examples
    --------
    >>> sample_tally(["a", "a"], ["a", "a"], ["a", "b"]).sums
    {'sample@["a","a","a"]': 1, 'sample@["a","a","b"]': 1}
    """
    seen = Counter(zip(stratum, prediction, reference, strict=True))
    return Tally.of({_SAMPLE + _key(*names): count for names, count in seen.items()})


def mapped_tally(mapped: Mapping[str, int], unit_area: float, unit: str) -> Tally:
    """Size of each stratum: how many cells, and their area in quanta.

    Examples
    --------
    >>> sorted(mapped_tally({"a": 3}, 100.0, "m2").sums.values())
    [3, 300000000000]
    """
    sums = {}
    for name, cells in mapped.items():
        sums[_MAPPED + _key("cells", name)] = cells
        sums[_MAPPED + _key(unit, name)] = cells * round(unit_area * PER_UNIT)
    return Tally.of(sums)


def _key(*names: str) -> str:
    return json.dumps(names, ensure_ascii=False, separators=(",", ":"))


def is_sample(totals: Totals) -> bool:
    """True where totals come from sample points."""
    return bool(totals.names(_SAMPLE) or totals.names(_MAPPED))


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Sample points of many totals at once: names of the three parts of each sum, and the sums (size, k)."""

    keys: tuple[tuple[str, str, str], ...]
    counts: IntArray

    @property
    def labels(self) -> tuple[str, ...]:
        """Map and reference labels, sorted."""
        return ordered({label for _, prediction, reference in self.keys for label in (prediction, reference)})


def samples(totals: Totals) -> Samples:
    """Read sample points off totals."""
    names = totals.names(_SAMPLE)
    keys = [tuple(json.loads(name)) for name in names]
    counts = [np.asarray(totals[_SAMPLE + name], dtype=np.int64) for name in names]
    table = np.stack(counts, axis=1) if counts else np.zeros((totals.size, 0), dtype=np.int64)
    return Samples(tuple((key[0], key[1], key[2]) for key in keys), table)


def ordered(labels: set[str]) -> tuple[str, ...]:
    """Labels sorted; by value where all are whole numbers.

    Examples
    --------
    >>> ordered({"10", "9"}), ordered({"10", "b", "9"})
    (('9', '10'), ('10', '9', 'b'))
    """
    if all(label.lstrip("-").isdigit() for label in labels):
        return tuple(sorted(labels, key=lambda label: (int(label), label)))
    return tuple(sorted(labels))


def sample_confusion(totals: Totals) -> tuple[tuple[str, ...], ConfusionTotals]:
    """Confusion of the points as they were drawn, unweighted; codes are positions among the labels.

    Examples
    --------
    >>> from geoeval.stats.tally import totals_of
    >>> labels, confusion = sample_confusion(totals_of([sample_tally(["a", "a"], ["a", "a"], ["a", "b"])]))
    >>> labels, confusion.matrix[0].tolist()
    (('a', 'b'), [[1, 1], [0, 0]])
    """
    found = samples(totals)
    labels = found.labels
    place = {label: at for at, label in enumerate(labels)}
    pairs = sorted({(place[prediction], place[reference]) for _, prediction, reference in found.keys})
    counts = np.zeros((totals.size, len(pairs)), dtype=np.int64)
    for at, (_, prediction, reference) in enumerate(found.keys):
        counts[:, pairs.index((place[prediction], place[reference]))] += found.counts[:, at]
    codes = np.arange(len(labels), dtype=np.int64)
    return labels, ConfusionTotals(codes, np.array(pairs, dtype=np.int64).reshape(-1, 2), counts)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Cells of each stratum, and the whole mapped area with its unit."""

    cells: Mapping[str, int]
    area: float
    unit: str


def sizes(totals: Totals) -> Sizes:
    """Read the sizes of strata off totals (the first of them)."""
    cells: dict[str, int] = {}
    quanta, unit = 0, "m2"
    for name in totals.names(_MAPPED):
        what, stratum = json.loads(name)
        amount = int(totals[_MAPPED + name][0])
        if what == "cells":
            cells[stratum] = amount
        else:
            unit, quanta = what, quanta + amount
    return Sizes(cells, quanta / PER_UNIT, unit)


def design_estimates(totals: Totals, design: Design | None, confidence: float = 0.95) -> dict[str, dict[str, Any]]:
    """Adjusted accuracy and areas with the standard errors of the design.

    Parameters
    ----------
    totals
        Sample points and stratum sizes, one total.
    design
        How the points were drawn; None leaves the adjusted figures out, with the reason ``not_applicable``.
    confidence
        Of the normal intervals.

    Returns
    -------
    dict
        ``estimates`` by key, ``per_class`` by label and key, and the ``standard_errors`` of both, in the same shape.

    Examples
    --------
    >>> from geoeval.stats.tally import totals_of
    >>> tally = sample_tally(["a"] * 5 + ["b"] * 5, ["a"] * 5 + ["b"] * 5, ["a"] * 4 + ["b"] * 6)
    >>> one = totals_of([tally, mapped_tally({"a": 30, "b": 70}, 1.0, "m2")])
    >>> round(design_estimates(one, "stratified")["estimates"]["accuracy_adjusted"].value, 6)
    0.94
    """
    found, size = samples(totals), sizes(totals)
    n = int(found.counts[0].sum()) if found.counts.size else 0
    classes = ordered({*found.labels, *(size.cells if _by_map_class(found) else ())})
    figures = _figures(found, size, classes, design)
    method = f"design:{design}"
    if figures is None:
        missing = Estimate(None, "1", n, reason="not_applicable")
        return {"estimates": {"accuracy_adjusted": missing}, "per_class": {}, "standard_errors": {}}

    def estimate(figure: DesignFigure, support: int, unit: str = "1", most: float = 1.0) -> Estimate:
        return _estimate(figure, support, unit, most, confidence, method)

    per_class: dict[str, dict[str, Estimate]] = {}
    errors: dict[str, dict[str, float | None]] = {}
    for at, label in enumerate(classes):
        share = figures.area_share[at]
        predicted = _count(found, 1, label)
        per_class[label] = {
            "precision_adjusted": estimate(figures.precision[at], predicted),
            "recall_adjusted": estimate(figures.recall[at], _count(found, 2, label)),
            "area": estimate(share.times(size.area), n, size.unit, size.area)
            if size.area > 0
            else Estimate(None, size.unit, n, reason="not_applicable"),
            "area_share": estimate(share, n),
        }
        errors[label] = {
            "precision_adjusted": figures.precision[at].standard_error,
            "recall_adjusted": figures.recall[at].standard_error,
            "area": share.times(size.area).standard_error if size.area > 0 else None,
            "area_share": share.standard_error,
        }
    return {
        "estimates": {"accuracy_adjusted": estimate(figures.accuracy, n)},
        "per_class": per_class,
        "standard_errors": {"accuracy_adjusted": figures.accuracy.standard_error, "per_class": errors},
    }


def _by_map_class(found: Samples) -> bool:
    return all(stratum == prediction for stratum, prediction, _ in found.keys)


def _count(found: Samples, part: int, label: str) -> int:
    return sum(int(count) for key, count in zip(found.keys, found.counts[0], strict=True) if key[part] == label)


def _figures(found: Samples, size: Sizes, classes: tuple[str, ...], design: Design | None) -> MapAccuracy | None:
    """The estimator that fits the design; None where the design, or a size that it needs, is missing."""
    if design is None or not found.keys:
        return None
    place = {label: at for at, label in enumerate(classes)}
    strata = ordered({*size.cells, *(stratum for stratum, _, _ in found.keys)})
    table = np.zeros((len(strata), len(classes), len(classes)), dtype=np.int64)
    for (stratum, prediction, reference), count in zip(found.keys, found.counts[0], strict=True):
        table[strata.index(stratum), place[prediction], place[reference]] += count
    counts = table.sum(axis=0)
    if design in ("simple_random", "systematic"):
        return design_accuracy(counts, None, design)
    if not sum(size.cells.values()):
        return None
    if _by_map_class(found):
        return design_accuracy(counts, [size.cells.get(label, 0) for label in classes], design)
    if design == "post_stratified":
        return None
    return ratio_accuracy(table, [size.cells.get(stratum, 0) for stratum in strata])


def _estimate(figure: DesignFigure, support: int, unit: str, most: float, confidence: float, method: str) -> Estimate:
    found = figure.interval(confidence, most)
    if found is None:
        return Estimate(figure.value, unit, support, reason=figure.reason or "no_interval")
    low, high, clipped = found
    interval = Interval(low, high, confidence, method)
    return Estimate(figure.value, unit, support, interval=interval, marks=("clipped",) if clipped else ())
