"""Categorical rasters: a map of classes against another, pixel by pixel, or against labelled sample points.

Compared      cells that are valid on both sides; four disjoint counts say what was not: joint, reference only,
              prediction only, neither. ``coverage`` is joint / reference-valid.
Conventions   rows of the confusion matrix are the prediction, columns the reference; any whole-number codes, keyed by
              code, 0 and 255 included unless declared nodata. Points carry labels as text.
Quantities    accuracy and coverage (proportions); IoU, F1, kappa, MCC, quantity and allocation disagreement (scalars);
              on geographic grids also the accuracy weighted by the true area of the cells. Accuracy itself is
              unweighted.
Intervals     a wall-to-wall comparison is a census, and neighbouring pixels are no independent trials: spatial blocks
              or files are the clusters that give the interval. Without clusters there is none.
Points        plain figures are shares of the sample. Where a ``design`` is declared, :meth:`Raster.design_estimates`
              gives the adjusted accuracy and the areas with the standard errors of that design.
Confidence    where the prediction has one, rows ``calibration`` (score, correct) of points and ``confidence`` (score to
              1e-4, correct, cells) of maps keep it, for risk-coverage and thresholds; no figure here is made of them.
Differs       from tools that leave 255 out, average absent classes as 0, or treat 0 as background: none of that here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.errors import ConfigError, InputError
from geoeval.layers import Block, LabelledPoints, RasterPair
from geoeval.ledger import Tallied
from geoeval.model import UNKNOWN, Cell, Finding, FloatArray, Proportion, Quantity, Scalar, Unit, ratio_of
from geoeval.options import Design
from geoeval.stats import classification as figures
from geoeval.stats.area import DESIGNS
from geoeval.stats.classification import ConfusionTotals, confusion_totals
from geoeval.stats.joint import COMPILED_PX, joint_counts
from geoeval.stats.samples import design_estimates, is_sample, mapped_tally, sample_confusion, sample_tally
from geoeval.stats.tally import Bins, Rows, Tally, Totals, total

#: Quanta in a square metre of cell area: cells are weighted as whole numbers, so that no order can matter.
AREA_QUANTA = 10**6

#: Steps of a confidence between 0 and 1 by which cells are counted.
CONFIDENCE_QUANTA = 10**4

#: Blocks of a cell that are kept before they are added up.
_KEPT = 64

#: Threads that count, how many handfuls of blocks may wait for them, and about how many pixels such a handful has.
_THREADS = 2
_WAITING = 3
_BATCH_PX = 1 << 19

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Raster:
    """How well a map of classes agrees with a reference map, or with labelled points.

    Parameters
    ----------
    design
        How sample points were drawn: ``stratified``, ``simple_random``, ``systematic`` or ``post_stratified``. Only for
        points; None gives no adjusted figures.
    class_names
        Names to print for class codes, ``{"1": "water"}``; a class named here is listed even where it does not occur.

    Examples
    --------
    >>> from geoeval.stats.tally import totals_of
    >>> block = Block(
    ...     reference=np.array([[1, 1, 2, 2]]),
    ...     prediction=np.array([[1, 2, 2, 2]]),
    ...     reference_valid=np.array([[True, True, True, False]]),
    ...     prediction_valid=np.ones((1, 4), dtype=bool),
    ...     cluster="",
    ...     row=0,
    ...     column=0,
    ... )
    >>> pair = RasterPair(blocks=lambda: iter([block]), shape=(1, 4), cell_m=(10.0, 10.0))
    >>> cells = Raster().tally(Unit("a", lambda: pair, cluster="aoi-1")).cells
    >>> found = Raster().quantities(totals_of(list(cells.values())))
    >>> found["accuracy"].k, found["accuracy"].n, found["coverage"].value
    (array([2]), array([3]), array([1.]))
    """

    design: Design | None = None
    class_names: Mapping[str, str] = field(default_factory=dict)
    name: str = field(default="raster/1", init=False)
    family: str = field(default="raster", init=False)

    def __post_init__(self) -> None:
        if self.design is not None and self.design not in DESIGNS:
            raise ConfigError(f"design must be one of {', '.join(DESIGNS)}, got {self.design!r}.")

    def tally(self, unit: Unit[RasterPair | LabelledPoints]) -> Tallied:
        """Count pairs of classes by cluster and stratum."""
        payload = unit.load()
        if isinstance(payload, LabelledPoints):
            return _tally_points(unit.id, payload)
        return Tallied(_tally_blocks(payload, clustered=unit.cluster is not None))

    def quantities(self, totals: Totals) -> Mapping[str, Quantity]:
        """Figures of the whole, in the order in which they are printed."""
        _, confusion = self._confusion(totals)
        joint = totals["joint"]
        coverage = Proportion(joint, joint + totals["reference_only"])
        out: dict[str, Quantity] = {
            "accuracy": figures.accuracy(confusion),
            "mean_iou": figures.mean_iou(confusion),
            "mean_iou_reference_classes": figures.mean_iou_reference_classes(confusion),
            "macro_f1": figures.macro_f1(confusion),
            "kappa": figures.kappa(confusion),
            "quantity_disagreement": figures.quantity_disagreement(confusion),
            "allocation_disagreement": figures.allocation_disagreement(confusion),
            "coverage": coverage,
            "balanced_accuracy": figures.balanced_accuracy(confusion),
            "mcc": figures.mcc(confusion),
            "frequency_weighted_iou": figures.frequency_weighted_iou(confusion),
            "macro_f1_all_classes": figures.macro_f1_all_classes(confusion),
            "exchange": figures.exchange(confusion),
            "shift": figures.shift(confusion),
        }
        if "joint_area" in totals.sums:
            area = [np.asarray(totals.real(name, AREA_QUANTA)) for name in ("agreeing_area", "joint_area")]
            out["accuracy_area_weighted"] = ratio_of(area[0], area[1], support=joint)
        return {name: _census(quantity) for name, quantity in out.items()} if _unclustered(totals) else out

    def ranked(self, totals: Totals) -> Mapping[str, Quantity]:
        """Nothing is ranked here."""
        del totals
        return {}

    def class_quantities(self, totals: Totals) -> Mapping[str, Mapping[str, Quantity]]:
        """Precision, recall, F1, IoU and how often each class stands on either side, by class."""
        labels, confusion = self._confusion(totals)
        parts: dict[str, Quantity] = {
            "precision": figures.precision(confusion),
            "recall": figures.recall(confusion),
            "f1": figures.f1(confusion),
            "iou": figures.iou(confusion),
            "support": _count(confusion.reference),
            "predicted": _count(confusion.predicted),
        }
        census = _unclustered(totals)
        out: dict[str, dict[str, Quantity]] = {}
        for at, label in enumerate(labels):
            row: dict[str, Quantity] = {name: _column(quantity, at) for name, quantity in parts.items()}
            out[label] = {name: _census(quantity) for name, quantity in row.items()} if census else row
        return out

    def extras(self, totals: Totals) -> dict[str, Any]:
        """Confusion matrix, classes left out of the means over reference classes, and the four counts of cells."""
        labels, confusion = self._confusion(totals)
        reference, predicted = confusion.reference[0], confusion.predicted[0]
        sample = is_sample(totals)
        return {
            "confusion": {
                "axes": ["prediction", "reference"],
                "codes": list(labels) if sample else [_json_code(int(code)) for code in confusion.codes],
                "labels": list(labels),
                "matrix": [[int(count) for count in row] for row in confusion.matrix[0]],
            },
            "excluded_classes": tuple(
                {"label": label, "reason": "no_support", "predicted": int(predicted[at])}
                for at, label in enumerate(labels)
                if reference[at] == 0
            ),
            "counts": {
                name: int(totals[name][0]) for name in ("joint", "reference_only", "prediction_only", "neither")
            },
            "points_outside": int(totals["outside"][0]) if sample else None,
            "kappa_variance": _finite(figures.kappa_variance(confusion)[0]) if sample else None,
        }

    def remarks(self, totals: Totals) -> tuple[Finding, ...]:
        """A finding where the sides have no class in common: one of them is coded otherwise."""
        labels, confusion = self._confusion(totals)
        here, there = confusion.reference[0] > 0, confusion.predicted[0] > 0
        if not here.any() or np.any(here & there):
            return ()
        names = [", ".join(np.array(labels, dtype=object)[side][:5].tolist()) for side in (here, there)]
        says = f"reference ({names[0]}) and prediction ({names[1]}) have no class in common, so nothing can agree"
        return (Finding("labels-disjoint", "major", (), says, "recode one side"),)

    def design_estimates(self, totals: Totals, confidence: float = 0.95) -> dict[str, Any]:
        """Adjusted accuracy and areas of sample points, as finished estimates; empty for wall-to-wall rasters."""
        if not is_sample(totals):
            return {"estimates": {}, "per_class": {}}
        return design_estimates(totals, self.design, confidence)

    def _confusion(self, totals: Totals) -> tuple[tuple[str, ...], ConfusionTotals]:
        """Labels to print, and the confusion; classes that are named but absent are added."""
        if is_sample(totals):
            labels, confusion = sample_confusion(totals)
            return tuple(self.class_names.get(label, label) for label in labels), confusion
        confusion = confusion_totals(totals)
        named = {int(code) for code in self.class_names if code.lstrip("-").isdigit()}
        codes = np.union1d(confusion.codes, np.array(sorted(named), dtype=np.int64))
        pairs = np.searchsorted(codes, confusion.codes)[confusion.pairs] if len(confusion.pairs) else confusion.pairs
        labels = tuple(self.class_names.get(str(code), str(code)) for code in codes.tolist())
        return labels, ConfusionTotals(codes, pairs.astype(np.int64), confusion.counts)


def _json_code(code: int) -> int | str:
    """Codes beyond 2**53 are text in JSON, whose numbers would round them."""
    return code if abs(code) < 2**53 else str(code)


def _unclustered(totals: Totals) -> bool:
    return bool(np.any(totals["unclustered"] != 0))


def _census(quantity: Quantity) -> Quantity:
    """A share of all pixels is no binomial trial: without clusters it is a figure without an interval."""
    return ratio_of(quantity.k, quantity.n) if isinstance(quantity, Proportion) else quantity


def _count(amount: NDArray[np.int64]) -> Scalar:
    return Scalar(amount.astype(np.float64), amount)


def _column(quantity: Quantity, at: int) -> Quantity:
    """One class of a quantity (size, classes)."""
    if isinstance(quantity, Proportion):
        return Proportion(np.asarray(quantity.k)[:, at], np.asarray(quantity.n)[:, at])
    value, n = np.asarray(quantity.value)[:, at], np.asarray(quantity.n)[:, at]
    if quantity.numerator is None:
        return Scalar(value, n)
    return Scalar(
        value, n, quantity.unit, np.asarray(quantity.numerator)[:, at], np.asarray(quantity.denominator)[:, at]
    )


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _tally_blocks(pair: RasterPair, *, clustered: bool) -> dict[Cell, Tally]:
    """Blocks are counted in two threads (numpy lets go of the interpreter); tallies add in any order."""
    compiled = pair.shape[0] * pair.shape[1] > COMPILED_PX
    parts: dict[Cell, list[Tally]] = {}
    waiting: deque[Future[list[tuple[Cell, Tally]]]] = deque()

    def keep(done: list[tuple[Cell, Tally]]) -> None:
        for cell, tally in done:
            kept = parts.setdefault(cell, [])
            kept.append(tally)
            if len(kept) >= _KEPT:
                kept[:] = [total(kept)]

    with ThreadPoolExecutor(_THREADS) as pool:
        for batch in _batches(pair.blocks()):
            waiting.append(pool.submit(_tally_batch, batch, compiled=compiled, clustered=clustered))
            if len(waiting) > _WAITING:
                keep(waiting.popleft().result())
        for future in waiting:
            keep(future.result())
    return {cell: _confidence_rows(total(tallies)) for cell, tallies in parts.items()}


def _confidence_rows(tally: Tally) -> Tally:
    """Counts by confidence as rows (score, correct, cells): redraws multiply bins, and no figure is made of these."""
    bins = dict(tally.bins)
    found = bins.pop("confidence", None)
    if found is None:
        return tally
    rows = Rows.of(found.keys[:, 0] / CONFIDENCE_QUANTA, found.keys[:, 1], found.counts)
    return Tally.of(tally.sums, bins, {**tally.rows, "confidence": rows})


def _batches(blocks: Iterator[Block]) -> Iterator[list[Block]]:
    """Blocks in handfuls of about one window, so that small ones do not cost a hand-over each."""
    batch: list[Block] = []
    for block in blocks:
        batch.append(block)
        if sum(one.reference.size for one in batch) >= _BATCH_PX or len(batch) >= _KEPT:
            yield batch
            batch = []
    if batch:
        yield batch


def _tally_batch(batch: list[Block], *, compiled: bool, clustered: bool) -> list[tuple[Cell, Tally]]:
    return [
        (Cell(block.cluster, "", strata), _tally_place(block, mask, compiled=compiled, clustered=clustered))
        for block in batch
        for strata, mask in _places(block)
    ]


def _places(block: Block) -> Iterator[tuple[tuple[tuple[str, str], ...], Mask | None]]:
    """Every combination of stratum values in a block, and where it lies; None is everywhere."""
    if not block.strata:
        yield (), None
        return
    names = sorted(block.strata)
    codes = np.stack([block.strata[name][0].reshape(-1) for name in names], axis=1)
    found, place = np.unique(codes, axis=0, return_inverse=True)
    place = place.reshape(block.reference.shape)
    for at, key in enumerate(found.tolist()):
        values = (block.strata[name][1].get(code, UNKNOWN) for name, code in zip(names, key, strict=True))
        yield tuple(zip(names, values, strict=True)), place == at


def _tally_place(block: Block, mask: Mask | None, *, compiled: bool, clustered: bool) -> Tally:
    reference, prediction = block.reference_valid, block.prediction_valid
    size = reference.size if mask is None else int(np.count_nonzero(mask))
    if mask is not None:
        reference, prediction = reference & mask, prediction & mask
    joint = reference & prediction
    both = int(np.count_nonzero(joint))
    only_reference = int(np.count_nonzero(reference)) - both
    only_prediction = int(np.count_nonzero(prediction)) - both
    sums = {
        "joint": both,
        "reference_only": only_reference,
        "prediction_only": only_prediction,
        "neither": size - both - only_reference - only_prediction,
        "unclustered": int(not clustered and block.cluster == ""),
    }
    if block.area is not None and both:
        cell = np.rint(block.area * AREA_QUANTA).astype(np.int64).tolist()
        agreeing = joint & (block.reference == block.prediction)
        for name, where in (("joint_area", joint), ("agreeing_area", agreeing)):
            count = np.count_nonzero(where, axis=1).tolist()
            sums[name] = sum(area * times for area, times in zip(cell, count, strict=True))
    bins = {"confusion": joint_counts(block.prediction, block.reference, joint, compiled=compiled)}
    if block.confidence is not None and both:
        bins["confidence"], sums["unscored"] = _confidences(block, block.confidence[joint], joint)
    return Tally.of(sums, bins)


def _confidences(block: Block, score: FloatArray, joint: Mask) -> tuple[Bins, int]:
    """Cells by confidence and whether they agree, and how many have no confidence."""
    right = (block.reference == block.prediction)[joint]
    known = np.isfinite(score)
    score, right = score[known], right[known]
    if len(score) and not 0 <= score.min() <= score.max() <= 1:
        raise InputError(
            f"confidence band: expected numbers in [0, 1], found {float(score.min()):g} to {float(score.max()):g} near "
            f"row {block.row}, column {block.column}; is it a percentage? Declare its scale in the file."
        )
    counts = np.bincount(np.rint(score * CONFIDENCE_QUANTA).astype(np.int64) * 2 + right)
    at = np.flatnonzero(counts)
    return Bins(np.column_stack([at >> 1, at & 1]), counts[at]), int(np.count_nonzero(~known))


def _tally_points(unit: str, points: LabelledPoints) -> Tallied:
    """Points by cluster and stratum value; the sizes of sampling strata are counted once, with the first of them."""
    names = sorted(points.strata)
    rows: dict[Cell, list[int]] = {}
    for at in range(len(points.id)):
        strata = tuple((name, str(points.strata[name][at])) for name in names)
        rows.setdefault(Cell(str(points.cluster[at]), "", strata), []).append(at)
    cells = {cell: _tally_sample(points, np.array(at, dtype=np.int64)) for cell, at in rows.items()}
    first = min(cells, default=Cell())
    whole = mapped_tally(points.mapped, points.unit_area, points.area_unit) + Tally.of(outside=points.outside)
    cells[first] = cells.get(first, Tally()) + whole
    findings = []
    if points.outside:
        says = f"{points.outside} sample points lie outside the map or on cells without data; they are not counted"
        findings.append(Finding("points-outside", "minor", (unit,), says, "leave them out, or map their place"))
    return Tallied(cells, findings=tuple(findings))


def _tally_sample(points: LabelledPoints, at: NDArray[np.int64]) -> Tally:
    reference, prediction = points.reference[at], points.prediction[at]
    has_reference = np.array([label is not None for label in reference], dtype=bool)
    has_prediction = np.array([label is not None for label in prediction], dtype=bool)
    both = has_reference & has_prediction
    stratum = prediction if points.stratum is None else points.stratum[at]
    counts = Tally.of(
        joint=int(both.sum()),
        reference_only=int((has_reference & ~both).sum()),
        prediction_only=int((has_prediction & ~both).sum()),
        neither=int((~has_reference & ~has_prediction).sum()),
    )
    if points.score is not None:
        score = points.score[at]
        scored = both & np.isfinite(score)
        right = [a == b for a, b in zip(reference[scored], prediction[scored], strict=True)]
        counts += Tally.of(
            {"unscored": int((both & ~scored).sum())}, rows={"calibration": Rows.of(score[scored], right)}
        )
    return counts + sample_tally(stratum[both].tolist(), prediction[both].tolist(), reference[both].tolist())
