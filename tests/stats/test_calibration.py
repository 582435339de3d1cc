"""ECE and Brier scores: bin edges, exact sums, refusals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoeval.errors import ConfigError, InputError
from geoeval.stats.calibration import (
    bin_counts,
    bin_edges,
    bin_index,
    brier,
    brier_multiclass,
    ece,
    ece_of_bins,
    reliability,
)

observed = st.lists(
    st.tuples(
        st.one_of(st.floats(0, 1), st.integers(0, 10).map(lambda i: i / 10)), st.integers(0, 1), st.integers(0, 3)
    ),
    max_size=25,
)


def split(rows):
    return ([row[i] for row in rows] for i in range(3))


def test_every_edge_opens_its_bin_and_one_closes_the_last():
    """0.3, 0.6 and 0.7 are where linspace goes wrong; 0.29 is where int(c * 100) would."""
    assert bin_index([i / 10 for i in range(11)]).tolist() == [*range(10), 9]
    assert bin_edges().tolist() == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert np.linspace(0, 1, 11)[3] != 0.3


@pytest.mark.parametrize("edge", [0.1, 0.3, 0.6, 0.7, 0.9])
def test_the_float_below_an_edge_lies_in_the_bin_below(edge):
    below, at = bin_index([np.nextafter(edge, 0), edge])
    assert at == below + 1
    assert int(np.nextafter(0.9, 0) * 10) == 9


def test_six_confidences_in_six_bins():
    """|0.95 − 1| + |0.85 − 1| + |0.75 − 0| + |0.65 − 1| + |0.55 − 0| + |0.45 − 0| = 2.3, over 6."""
    assert ece([0.95, 0.85, 0.75, 0.65, 0.55, 0.45], [1, 1, 0, 1, 0, 0]) == pytest.approx(2.3 / 6)


def test_confidence_one_and_zero_are_counted():
    assert bin_counts([0.0, 1.0, 1.0]).tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 0, 2]
    assert ece([1.0, 0.0], [1, 0]) == 0.0
    assert ece([1.0, 0.0], [0, 1]) == 1.0


@settings(deadline=None)
@given(observed, st.integers(1, 15))
def test_ece_is_the_definition_in_fractions(rows, bins):
    confidence, correct, weight = split(rows)
    n = sum(weight)
    if n == 0:
        assert ece(confidence, correct, weight, bins) is None
        return
    total = Fraction(0)
    for b in range(bins):
        held = [i for i, at in enumerate(bin_index(confidence, bins)) if at == b]
        total += abs(sum((weight[i] * (Fraction(confidence[i]) - correct[i]) for i in held), Fraction(0)))
    assert ece(confidence, correct, weight, bins) == pytest.approx(float(total / n), abs=1e-15)


@settings(deadline=None)
@given(observed, st.randoms())
def test_scores_are_the_same_bits_for_every_order_and_as_weights_or_repeats(rows, random):
    confidence, correct, weight = split(rows)
    full = [
        [value for value, w in zip(column, weight, strict=True) for _ in range(w)] for column in (confidence, correct)
    ]
    shuffled = split(random.sample(rows, len(rows)))
    for score in (ece, brier):
        assert score(confidence, correct, weight) == score(*full)
    assert ece(*shuffled) == ece(confidence, correct, weight)
    assert bin_counts(confidence, weight).tolist() == bin_counts(full[0]).tolist()


@pytest.mark.parametrize("score", [ece, brier])
@pytest.mark.parametrize("bad", [-0.1, 1.0000001, np.nan, np.inf, 50.0])
def test_what_is_no_probability_is_refused(score, bad):
    with pytest.raises(InputError, match="confidence must"):
        score([0.5, bad], [1, 1])


@pytest.mark.parametrize("score", [ece, brier])
def test_correctness_is_zero_or_one_and_of_the_same_length(score):
    assert score([], []) is None
    with pytest.raises(InputError, match="correct must be 0 or 1"):
        score([0.5], [2])
    with pytest.raises(InputError, match="correct needs one entry"):
        score([0.5], [1, 0])


def test_sums_of_bins_give_the_same_ece():
    confidence, correct = np.array([0.95, 0.85, 0.75, 0.15]), np.array([1, 1, 0, 0])
    index = bin_index(confidence)
    count, surety, right = (np.bincount(index, weights, minlength=10) for weights in (np.ones(4), confidence, correct))
    assert ece_of_bins([count, 0 * count], [surety, 0 * surety], [right, 0 * right]) == pytest.approx(
        [ece(confidence, correct), np.nan], nan_ok=True
    )


def test_a_reliability_diagram_leaves_empty_bins_empty():
    bins = reliability([0.75, 0.8], [1, 0], [3, 1])
    assert [one.n for one in bins] == [0, 0, 0, 0, 0, 0, 0, 3, 1, 0]
    assert (bins[7].confidence, bins[7].correct, bins[0].confidence, bins[0].correct) == (0.75, 1.0, None, None)


def test_brier_by_hand():
    """0.01 + 0.04 + 0.49 + 0.36 = 0.90, over 4."""
    assert brier([0.9, 0.2, 0.7, 0.4], [1, 0, 0, 1]) == pytest.approx(0.225, abs=1e-15)
    assert brier([1.0, 0.0], [1, 0]) == 0.0
    assert brier([0.0, 1.0], [1, 0]) == 1.0


def test_the_sum_form_is_twice_the_half_form():
    p, y = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]], [0, 1, 1]
    assert brier_multiclass(p, y, "sum") == pytest.approx(0.94 / 3)
    assert brier_multiclass(p, y, "half") == pytest.approx(0.47 / 3)
    assert brier_multiclass(p, y, "sum", weights=[2, 0, 1]) == pytest.approx((2 * 0.14 + 0.74) / 3)
    assert brier_multiclass(np.zeros((0, 3)), []) is None


@pytest.mark.parametrize(
    ("p", "y", "says"),
    [
        ([[0.5, 0.6]], [0], "sum to 1"),
        ([[1.5, -0.5]], [0], r"\[0, 1\]"),
        ([[0.5, 0.5]], [2], "name one of 2"),
        ([0.5, 0.5], [0], "table"),
    ],
)
def test_tables_that_are_no_probabilities_are_refused(p, y, says):
    with pytest.raises(InputError, match=says):
        brier_multiclass(p, y)


def test_forms_and_bins_are_checked():
    with pytest.raises(ConfigError, match="'sum' or 'half'"):
        brier_multiclass([[1.0, 0.0]], [0], "other")
    with pytest.raises(ConfigError, match="at least 1"):
        ece([0.5], [1], bins=0)
