"""Figures of a confusion matrix: hand-counted, published, and their laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from geoeval.stats import classification as figures
from geoeval.stats.classification import ConfusionTotals, confusion_totals
from geoeval.stats.tally import Bins, Tally, Totals, clustered, totals_of

matrices = st.integers(1, 5).flatmap(lambda c: arrays(np.int64, (c, c), elements=st.integers(0, 60)))

WHOLE = [
    figures.mean_iou,
    figures.mean_iou_reference_classes,
    figures.macro_f1,
    figures.macro_f1_all_classes,
    figures.balanced_accuracy,
    figures.frequency_weighted_iou,
    figures.mcc,
    figures.kappa,
    figures.quantity_disagreement,
    figures.allocation_disagreement,
    figures.exchange,
    figures.shift,
    figures.accuracy,
]
EACH = [figures.precision, figures.recall, figures.f1, figures.iou]


def view(matrix, codes=None):
    return ConfusionTotals.of(np.array(matrix), None if codes is None else np.array(codes))


def sparse(matrix, codes):
    table = np.array(matrix)
    keys = np.array([(p, r) for p in codes for r in codes])
    return confusion_totals(totals_of([Tally.of(bins={"confusion": Bins.of(keys, table.reshape(-1))})]))


def same(a, b):
    np.testing.assert_allclose(np.asarray(a, float), np.asarray(b, float), rtol=1e-12, atol=1e-12, equal_nan=True)


def test_a_class_absent_on_both_sides_is_null_and_leaves_the_means():
    """Two classes, all right; the third is nowhere."""
    confusion = view([[5, 0, 0], [0, 5, 0], [0, 0, 0]])
    assert all(np.isnan(figure(confusion).value[0, 2]) for figure in EACH)
    assert figures.mean_iou(confusion).value == 1.0
    assert figures.mean_iou(confusion).denominator == 2


def test_a_class_that_is_only_predicted_has_precision_0_and_no_recall():
    confusion = view([[5, 0], [2, 0]])
    assert [float(figure(confusion).value[0, 1]) for figure in (figures.precision, figures.f1, figures.iou)] == [
        0,
        0,
        0,
    ]
    assert np.isnan(figures.recall(confusion).value[0, 1])


def test_a_class_that_is_never_predicted_has_recall_0_and_no_precision():
    confusion = view([[5, 2], [0, 0]])
    assert [float(figure(confusion).value[0, 1]) for figure in (figures.recall, figures.f1, figures.iou)] == [0, 0, 0]
    assert np.isnan(figures.precision(confusion).value[0, 1])


def test_spurious_classes_leave_macro_f1_but_not_the_figure_beside_it():
    """F1 of class 0 is 2*4/(4+5) = 8/9; class 1 is predicted once and is not in the reference."""
    confusion = view([[4, 0], [1, 0]])
    same(figures.macro_f1(confusion).value, [8 / 9])
    same(figures.macro_f1_all_classes(confusion).value, [4 / 9])
    same(figures.mean_iou(confusion).value, [0.4])
    same(figures.mean_iou_reference_classes(confusion).value, [0.8])


def test_nothing_compared_gives_nothing():
    confusion = confusion_totals(Totals(1))
    assert confusion.codes.size == 0
    for figure in WHOLE:
        assert np.isnan(figure(confusion).value).all()
    assert np.isnan(figures.kappa_variance(confusion)).all()


def test_kappa_is_undefined_only_where_both_sides_are_one_class():
    assert figures.kappa(view([[7, 0], [0, 0]])).reason == "undefined_ratio"
    assert figures.kappa(view([[7, 3], [0, 0]])).value == 0.0


def test_negative_and_huge_codes_are_classes_like_others():
    confusion = sparse([[3, 1], [0, 4]], [-9999, 2**40])
    assert confusion.codes.tolist() == [-9999, 2**40]
    assert confusion.matrix[0].tolist() == [[3, 1], [0, 4]]


def test_counts_beyond_32_bits_stay_exact():
    big = 2**33 + 1
    accuracy = figures.accuracy(view([[big, 1], [0, big]]))
    assert accuracy.k.tolist() == [2 * big]
    assert accuracy.n.tolist() == [2 * big + 1]
    same(figures.kappa(view([[big, 0], [0, big]])).value, [1.0])


def test_every_redraw_equals_its_own_matrix():
    a = Tally.of(bins={"confusion": Bins.of(np.array([[1, 1], [1, 2], [3, 1]]), np.array([5, 2, 1]))})
    b = Tally.of(bins={"confusion": Bins.of(np.array([[2, 2], [2, 1]]), np.array([9, 4]))})
    draws = np.array([[2, 0], [1, 1], [0, 2]])
    many = confusion_totals(clustered({"a": a, "b": b}).totals(draws))
    for at, (times_a, times_b) in enumerate(draws):
        one = ConfusionTotals.of((many.matrix[at]), many.codes)
        assert (
            one.matrix[0]
            == (
                times_a * np.array([[5, 2, 0], [0, 0, 0], [1, 0, 0]])
                + times_b * np.array([[0, 0, 0], [4, 9, 0], [0, 0, 0]])
            )
        ).all()
        for figure in WHOLE:
            same(figure(many).value[at], figure(one).value[0])


@pytest.mark.parametrize("figure", WHOLE)
@settings(deadline=None)
@given(matrix=matrices, seed=st.integers(0, 99))
def test_relabelling_changes_nothing(figure, matrix, seed):
    order = np.random.default_rng(seed).permutation(len(matrix))
    same(figure(view(matrix)).value, figure(view(matrix[np.ix_(order, order)])).value)
    codes = [7 * i - 11 for i in range(len(matrix))]
    same(figure(view(matrix)).value, figure(sparse(matrix, codes)).value)


@settings(deadline=None)
@given(matrix=matrices)
def test_quantity_and_allocation_are_all_of_the_disagreement(matrix):
    confusion = view(matrix)
    parts = figures.quantity_disagreement(confusion).value + figures.allocation_disagreement(confusion).value
    same(parts, 1 - np.asarray(figures.accuracy(confusion).value))
    same(
        figures.allocation_disagreement(confusion).value,
        figures.exchange(confusion).value + figures.shift(confusion).value,
    )
    assert not (np.asarray(figures.class_shift(confusion).value) < 0).any()


@settings(deadline=None)
@given(matrix=matrices)
def test_exchange_equals_a_loop_over_pairs_of_classes(matrix):
    c = len(matrix)
    swaps = sum(min(matrix[i, j], matrix[j, i]) for i in range(c) for j in range(c) if i != j)
    assert figures.exchange(view(matrix)).numerator == swaps


@settings(deadline=None)
@given(matrix=matrices)
def test_transposing_swaps_users_and_producers(matrix):
    same(figures.precision(view(matrix)).value, figures.recall(view(matrix.T)).value)
    for figure in (figures.kappa, figures.mcc, figures.accuracy, figures.mean_iou, figures.exchange):
        same(figure(view(matrix)).value, figure(view(matrix.T)).value)


def test_mcc_of_two_classes_is_the_textbook_formula():
    """TP 6, TN 3, FP 1, FN 2: (18 - 2) / sqrt(7 * 8 * 4 * 5)."""
    same(figures.mcc(view([[3, 2], [1, 6]])).value, [16 / np.sqrt(7 * 8 * 4 * 5)])
