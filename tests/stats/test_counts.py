"""Recall, precision and F1 from hits, inventions and misses, as numbers and as arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoeval.model import Proportion, Scalar
from geoeval.stats.counts import Counts, f1, precision, recall

some = st.builds(Counts, *[st.integers(0, 10**6)] * 3)


def test_eight_found_one_invented_two_missed():
    counts = Counts(tp=8, fp=1, fn=2)
    assert (recall(counts).k, recall(counts).n, recall(counts).value) == (8, 10, 0.8)
    assert (precision(counts).k, precision(counts).n) == (8, 9)
    assert f1(counts).value == pytest.approx(16 / 19)
    assert (f1(counts).n, f1(counts).numerator, f1(counts).denominator) == (11, 16, 19)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (Counts(), (None, None, None)),
        (Counts(fn=3), (0.0, None, 0.0)),
        (Counts(fp=3), (None, 0.0, 0.0)),
        (Counts(tp=2), (1.0, 1.0, 1.0)),
    ],
)
def test_the_edge_table(counts, expected):
    """Nothing at all, no predictions, no references, nothing wrong."""
    assert (recall(counts).value, precision(counts).value, f1(counts).value) == expected


def test_only_binomial_rates_are_proportions():
    counts = Counts(1, 1, 1)
    assert isinstance(recall(counts), Proportion)
    assert isinstance(precision(counts), Proportion)
    assert isinstance(f1(counts), Scalar)


def test_arrays_give_nan_where_undefined_and_the_same_numbers_elsewhere():
    tp, fp, fn = np.array([8, 0, 0]), np.array([1, 3, 0]), np.array([2, 0, 0])
    whole = Counts(tp, fp, fn)
    for quantity in (recall, precision, f1):
        values = quantity(whole).value
        for i in range(3):
            alone = quantity(Counts(int(tp[i]), int(fp[i]), int(fn[i]))).value
            assert np.isnan(values[i]) if alone is None else values[i] == alone


@settings(deadline=None)
@given(some)
def test_f1_lies_between_recall_and_precision(counts):
    r, p, f = recall(counts).value, precision(counts).value, f1(counts).value
    if r is not None and p is not None:
        assert min(r, p) - 1e-12 <= f <= max(r, p) + 1e-12
