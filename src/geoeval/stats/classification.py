"""Figures of a confusion matrix: rows are the prediction (the map), columns the reference, classes keyed by code.

Conventions   counts are int64; a class is known by its code, never by its position. A class that is predicted but not
              in the reference has precision 0, recall undefined, F1 0, IoU 0; one that is in the reference but never
              predicted has precision undefined, recall 0, F1 0, IoU 0; one on neither side leaves all means.
Shape         every function answers for all totals at once: arrays (size,) for the whole, (size, classes) by class,
              NaN where undefined.
Not here      intervals. A wall-to-wall comparison is a census: its pixels are no independent trials.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.model import FloatArray, IntArray, Proportion, Scalar, ratio_of
from geoeval.stats.confusion import ConfusionTotals, confusion_totals

__all__ = [
    "ConfusionTotals",
    "accuracy",
    "allocation_disagreement",
    "balanced_accuracy",
    "class_allocation",
    "class_exchange",
    "class_quantity",
    "class_shift",
    "confusion_totals",
    "exchange",
    "f1",
    "frequency_weighted_iou",
    "iou",
    "kappa",
    "kappa_variance",
    "macro_f1",
    "macro_f1_all_classes",
    "mcc",
    "mean_iou",
    "mean_iou_reference_classes",
    "precision",
    "quantity_disagreement",
    "recall",
    "shift",
]


def accuracy(confusion: ConfusionTotals) -> Proportion:
    """Share of the compared pixels on which both sides agree: ``sum(n_ii) / n``. Also overall accuracy.

    Examples
    --------
    >>> accuracy(ConfusionTotals.of(np.array([[3, 1], [0, 4]]))).value
    array([0.875])
    """
    return Proportion(confusion.agreeing.sum(axis=1), confusion.n)


def precision(confusion: ConfusionTotals) -> Proportion:
    """Share of each predicted class that is right: ``n_ii / n_i+`` (size, c). Also user's accuracy.

    Undefined for a class that was never predicted.

    Examples
    --------
    >>> precision(ConfusionTotals.of(np.array([[3, 1], [0, 0]]))).value
    array([[0.75,  nan]])
    """
    return Proportion(confusion.agreeing, confusion.predicted)


def recall(confusion: ConfusionTotals) -> Proportion:
    """Share of each reference class that was found: ``n_jj / n_+j`` (size, c). Also producer's accuracy.

    Undefined for a class that is not in the reference.

    Examples
    --------
    >>> recall(ConfusionTotals.of(np.array([[3, 1], [0, 0]]))).value
    array([[1., 0.]])
    """
    return Proportion(confusion.agreeing, confusion.reference)


def f1(confusion: ConfusionTotals) -> Scalar:
    """Harmonic mean of precision and recall of each class, ``2 n_ii / (n_i+ + n_+i)`` (size, c). Also Dice.

    0 for a class on one side only, undefined for one on neither.

    Examples
    --------
    >>> f1(ConfusionTotals.of(np.array([[3, 1], [0, 4]]))).value.round(4)
    array([[0.8571, 0.8889]])
    """
    both = confusion.predicted + confusion.reference
    return ratio_of(2 * confusion.agreeing, both, support=confusion.reference)


def iou(confusion: ConfusionTotals) -> Scalar:
    """Intersection over union of each class, ``n_ii / (n_i+ + n_+i - n_ii)`` (size, c). Also Jaccard, CSI.

    0 for a class on one side only, undefined for one on neither.

    Examples
    --------
    >>> iou(ConfusionTotals.of(np.array([[3, 1], [0, 4]]))).value
    array([[0.75, 0.8 ]])
    """
    union = confusion.predicted + confusion.reference - confusion.agreeing
    return ratio_of(confusion.agreeing, union, support=confusion.reference)


def _mean_over(values: Any, keep: NDArray[np.bool_], n: IntArray) -> Scalar:
    """Mean over the classes to keep; the numerator is their sum, the denominator how many they are."""
    table = np.where(keep, np.asarray(values, dtype=np.float64), 0.0)
    return ratio_of(table.sum(axis=1), keep.sum(axis=1), support=n)


def mean_iou(confusion: ConfusionTotals) -> Scalar:
    """Mean IoU over the classes that occur on either side; the denominator says how many there are.

    Examples
    --------
    >>> figure = mean_iou(ConfusionTotals.of(np.array([[3, 1, 0], [0, 4, 0], [0, 0, 0]])))
    >>> figure.value, figure.denominator
    (array([0.775]), array([2]))
    """
    return _mean_over(iou(confusion).value, (confusion.predicted + confusion.reference) > 0, confusion.n)


def mean_iou_reference_classes(confusion: ConfusionTotals) -> Scalar:
    """Mean IoU over the classes that occur in the reference; the denominator says how many there are.

    Examples
    --------
    >>> mean_iou_reference_classes(ConfusionTotals.of(np.array([[3, 0], [1, 0]]))).value
    array([0.75])
    """
    return _mean_over(iou(confusion).value, confusion.reference > 0, confusion.n)


def macro_f1(confusion: ConfusionTotals) -> Scalar:
    """Mean F1 over the classes with reference support; a class that is never predicted counts as 0.

    Examples
    --------
    >>> macro_f1(ConfusionTotals.of(np.array([[3, 0], [1, 0]]))).value.round(4)
    array([0.8571])
    """
    return _mean_over(f1(confusion).value, confusion.reference > 0, confusion.n)


def macro_f1_all_classes(confusion: ConfusionTotals) -> Scalar:
    """Mean F1 over the classes on either side, in which a class that the reference does not have counts as 0.

    Examples
    --------
    >>> macro_f1_all_classes(ConfusionTotals.of(np.array([[3, 0], [1, 0]]))).value.round(4)
    array([0.4286])
    """
    return _mean_over(f1(confusion).value, (confusion.predicted + confusion.reference) > 0, confusion.n)


def balanced_accuracy(confusion: ConfusionTotals) -> Scalar:
    """Mean recall over the classes with reference support.

    Examples
    --------
    >>> balanced_accuracy(ConfusionTotals.of(np.array([[3, 1], [0, 4]]))).value
    array([0.9])
    """
    return _mean_over(recall(confusion).value, confusion.reference > 0, confusion.n)


def frequency_weighted_iou(confusion: ConfusionTotals) -> Scalar:
    """IoU of each class weighted by its share of the reference.

    Examples
    --------
    >>> frequency_weighted_iou(ConfusionTotals.of(np.array([[3, 1], [0, 4]]))).value.round(5)
    array([0.78125])
    """
    table = np.nan_to_num(np.asarray(iou(confusion).value, dtype=np.float64))
    return ratio_of((table * confusion.reference).sum(axis=1), confusion.n, support=confusion.n)


def mcc(confusion: ConfusionTotals) -> Scalar:
    """Matthews correlation coefficient of any number of classes (Gorodkin 2004), in [-1, 1].

    Undefined where either side is constant.

    References
    ----------
    .. [1] Gorodkin, J. (2004), Comparing two K-category assignments by a K-category correlation coefficient,
       Computational Biology and Chemistry 28, 367-374.

    Examples
    --------
    >>> mcc(ConfusionTotals.of(np.array([[3, 1], [0, 4]]))).value.round(6)
    array([0.774597])
    >>> mcc(ConfusionTotals.of(np.array([[3, 1], [0, 0]]))).reason
    'undefined_ratio'
    """
    n = confusion.n.astype(np.float64)
    rows, columns = confusion.predicted.astype(np.float64), confusion.reference.astype(np.float64)
    top = confusion.agreeing.sum(axis=1) * n - (rows * columns).sum(axis=1)
    spread = (n**2 - (rows**2).sum(axis=1)) * (n**2 - (columns**2).sum(axis=1))
    constant = (np.max(rows, axis=1, initial=0) == n) | (np.max(columns, axis=1, initial=0) == n)
    return ratio_of(top, np.where(constant, 0.0, np.sqrt(np.maximum(spread, 0.0))), support=confusion.n)


def kappa(confusion: ConfusionTotals) -> Scalar:
    """Cohen's kappa: agreement beyond that of two random maps with the same class shares.

    Discouraged, and given because it is asked for: it follows accuracy almost one to one, its random baseline answers a
    question nobody has about a map, it falls when a class is rare though the map is no worse, and it hides whether maps
    differ in quantity or in place. Quantity and allocation disagreement say more (Pontius & Millones 2011).
    Undefined where both sides are constant and equal.

    Examples
    --------
    >>> kappa(ConfusionTotals.of(np.array([[3, 1], [0, 4]]))).value
    array([0.75])
    """
    observed, expected = _agreements(confusion)
    return ratio_of(observed - expected, 1.0 - expected, support=confusion.n)


def _agreements(confusion: ConfusionTotals) -> tuple[FloatArray, FloatArray]:
    """Observed agreement, and that of two random maps with the same class shares; NaN without pixels."""
    n = np.where(confusion.n > 0, confusion.n, np.nan)
    rows, columns = confusion.predicted / n[:, None], confusion.reference / n[:, None]
    same = (np.max(confusion.predicted, axis=1, initial=0) == n) & (np.max(confusion.reference, axis=1, initial=0) == n)
    expected = (rows * columns).sum(axis=1)
    constant = same & (confusion.agreeing.sum(axis=1) == n)
    return confusion.agreeing.sum(axis=1) / n, np.where(constant, 1.0, expected)


def kappa_variance(confusion: ConfusionTotals) -> FloatArray:
    """Large-sample variance of kappa for independent trials, delta method of Fleiss, Cohen & Everitt 1969 (size,).

    Meaningful for a simple random sample of points, never for the pixels of a census.

    Examples
    --------
    >>> kappa_variance(ConfusionTotals.of(np.array([[3, 1], [0, 4]]))).round(6)
    array([0.05127])
    """
    n = np.where(confusion.n > 0, confusion.n, np.nan)
    rows, columns = confusion.predicted / n[:, None], confusion.reference / n[:, None]
    observed, expected = _agreements(confusion)
    i, j = confusion.pairs.T
    third = (confusion.agreeing / n[:, None] * (rows + columns)).sum(axis=1)
    fourth = (confusion.counts / n[:, None] * (rows[:, j] + columns[:, i]) ** 2).sum(axis=1)
    rest = np.where(expected < 1, 1 - expected, np.nan)
    return np.asarray(
        (
            observed * (1 - observed) / rest**2
            + 2 * (1 - observed) * (2 * observed * expected - third) / rest**3
            + (1 - observed) ** 2 * (fourth - 4 * expected**2) / rest**4
        )
        / n,
        dtype=np.float64,
    )


def class_quantity(confusion: ConfusionTotals) -> Scalar:
    """Disagreement in the amount of each class, ``|n_i+ - n_+i| / n`` (size, c).

    Examples
    --------
    >>> class_quantity(ConfusionTotals.of(np.array([[3, 1], [0, 4]]))).value
    array([[0.125, 0.125]])
    """
    return _of_all(np.abs(confusion.predicted - confusion.reference), confusion)


def class_allocation(confusion: ConfusionTotals) -> Scalar:
    """Disagreement in the place of each class, ``2 min(n_i+, n_+i) - 2 n_ii`` over n (size, c): exchange and shift.

    Examples
    --------
    >>> class_allocation(ConfusionTotals.of(np.array([[3, 1], [1, 3]]))).value
    array([[0.25, 0.25]])
    """
    return _of_all(_allocation(confusion), confusion)


def class_exchange(confusion: ConfusionTotals) -> Scalar:
    """Part of the allocation disagreement of each class in pairs that swap places, ``2 sum_j min(n_ij, n_ji) / n``.

    Examples
    --------
    >>> class_exchange(ConfusionTotals.of(np.array([[3, 1], [1, 3]]))).value
    array([[0.25, 0.25]])
    """
    return _of_all(_exchange(confusion), confusion)


def class_shift(confusion: ConfusionTotals) -> Scalar:
    """Part of the allocation disagreement of each class that is no swap of two classes (size, c).

    Examples
    --------
    >>> class_shift(ConfusionTotals.of(np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]]))).value.round(4)
    array([[0.6667, 0.6667, 0.6667]])
    """
    return _of_all(_allocation(confusion) - _exchange(confusion), confusion)


def quantity_disagreement(confusion: ConfusionTotals) -> Scalar:
    """Disagreement because class totals differ; with allocation it is 1 - accuracy (Pontius & Millones 2011).

    References
    ----------
    .. [1] Pontius, R. G. & Millones, M. (2011), Death to Kappa, Int. J. Remote Sensing 32, 4407-4429.

    Examples
    --------
    >>> quantity_disagreement(ConfusionTotals.of(np.array([[3, 1], [0, 4]]))).value
    array([0.125])
    """
    return _half(np.abs(confusion.predicted - confusion.reference), confusion)


def allocation_disagreement(confusion: ConfusionTotals) -> Scalar:
    """Disagreement because classes lie in other places though their totals could agree: exchange + shift.

    Examples
    --------
    >>> allocation_disagreement(ConfusionTotals.of(np.array([[3, 1], [1, 3]]))).value
    array([0.25])
    """
    return _half(_allocation(confusion), confusion)


def exchange(confusion: ConfusionTotals) -> Scalar:
    """Disagreement in pairs of pixels that swap two classes (Pontius & Santacruz 2014).

    Examples
    --------
    >>> exchange(ConfusionTotals.of(np.array([[3, 1], [1, 3]]))).value
    array([0.25])
    """
    return _half(_exchange(confusion), confusion)


def shift(confusion: ConfusionTotals) -> Scalar:
    """Allocation disagreement that is no swap of two classes (Pontius & Santacruz 2014).

    Examples
    --------
    >>> shift(ConfusionTotals.of(np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]]))).value
    array([1.])
    """
    return _half(_allocation(confusion) - _exchange(confusion), confusion)


def _allocation(confusion: ConfusionTotals) -> IntArray:
    return np.asarray(2 * (np.minimum(confusion.predicted, confusion.reference) - confusion.agreeing), dtype=np.int64)


def _exchange(confusion: ConfusionTotals) -> IntArray:
    """Twice the sum over other classes of ``min(n_ij, n_ji)``, from the occupied cells alone."""
    i, j = confusion.pairs.T
    c = max(len(confusion.codes), 1)
    key, mirrored = i * c + j, j * c + i
    order = np.argsort(key, kind="stable")
    at = np.minimum(np.searchsorted(key[order], mirrored), max(len(key) - 1, 0))
    partner = order[at] if len(key) else at
    swaps = (i != j) & (key[partner] == mirrored) if len(key) else np.zeros(0, dtype=bool)
    both = np.minimum(confusion.counts[:, swaps], confusion.counts[:, partner[swaps]])
    return 2 * confusion.by_class(i[swaps], both)


def _of_all(part: IntArray, confusion: ConfusionTotals) -> Scalar:
    return ratio_of(part, np.broadcast_to(confusion.n[:, None], part.shape), support=confusion.reference)


def _half(part: IntArray, confusion: ConfusionTotals) -> Scalar:
    # Every pixel that disagrees is counted once in its predicted and once in its reference class.
    return ratio_of(part.sum(axis=1) // 2, confusion.n, support=confusion.n)
