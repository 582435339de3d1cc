"""Agreement of two raters, its bias, and the verdict that is corrected for the number of dimensions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoeval.errors import ConfigError, InputError
from geoeval.stats.agreement import (
    agreement,
    assess,
    biased_dimensions,
    cohen_kappa,
    mcnemar_exact,
    paired_difference_interval,
)

rated = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), max_size=40)


def raters(both=0, judge_only=0, verifier_only=0, neither=0):
    judge = [1] * both + [1] * judge_only + [0] * verifier_only + [0] * neither
    verifier = [1] * both + [0] * judge_only + [1] * verifier_only + [0] * neither
    return judge, verifier


def test_eight_items_by_hand():
    """Six agreed; both accept four: chance is 1/2, kappa (3/4 − 1/2)/(1/2)."""
    found = agreement(*raters(both=3, judge_only=1, verifier_only=1, neither=3))
    assert (found.n, found.agreed, found.agreement, found.kappa) == (8, 6, 0.75, 0.5)
    assert (found.judge_rate, found.verifier_rate, found.bias, found.p) == (0.5, 0.5, 0.0, 1.0)
    assert (found.low, found.high) == pytest.approx((0.40927543031016883, 0.9285207872478909))


def test_kappa_of_a_published_table():
    """Cohen's (1960) kind of table: 20 and 15 agreed of 50, 5 and 10 not: (0.7 − 0.5)/0.5."""
    assert cohen_kappa(*raters(both=20, judge_only=5, verifier_only=10, neither=15)) == pytest.approx(0.4)


@pytest.mark.parametrize(("judge", "verifier"), [([1, 1], [1, 1]), ([1, 1], [0, 0]), ([], [])])
def test_kappa_of_constant_raters_is_undefined(judge, verifier):
    assert cohen_kappa(judge, verifier) is None


def test_kappa_of_one_constant_rater_is_zero_and_labels_may_be_words():
    assert cohen_kappa([1, 1], [1, 0]) == 0.0
    assert cohen_kappa(["a", "b", "c"], ["a", "b", "c"]) == 1.0


@pytest.mark.parametrize(("b", "c", "p"), [(0, 0, 1.0), (1, 0, 1.0), (0, 6, 2 / 64), (1, 9, 22 / 1024), (5, 5, 1.0)])
def test_mcnemar_counts_the_tail(b, c, p):
    assert mcnemar_exact(b, c) == mcnemar_exact(c, b) == p


@settings(deadline=None)
@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_binomial_test(b, c):
    from scipy.stats import binomtest

    expected = binomtest(b, b + c).pvalue if b + c else 1.0
    assert mcnemar_exact(b, c) == pytest.approx(expected)


def test_mcnemar_of_many_items_does_not_overflow():
    assert mcnemar_exact(3000, 2000) == pytest.approx(0.0, abs=1e-40)


@pytest.mark.parametrize("n", [1, 10, 500])
def test_no_discordant_item_leaves_a_wide_interval(n):
    z2 = 1.959963984540054**2
    assert paired_difference_interval(0, 0, n) == pytest.approx((-z2 / (n + z2), z2 / (n + z2)), abs=1e-12)


@settings(deadline=None)
@given(st.tuples(*[st.integers(0, 30)] * 3))
def test_the_interval_of_the_difference_holds_it_and_mirrors(counts):
    b, c, rest = counts
    n = b + c + rest
    found = paired_difference_interval(b, c, n)
    if n == 0:
        assert found is None
        return
    low, high = found
    assert -1 <= low <= (b - c) / n <= high <= 1
    assert paired_difference_interval(c, b, n) == pytest.approx((-high, -low), abs=1e-12)


def test_the_bounds_are_where_the_score_test_just_rejects():
    """At a bound the restricted likelihood is found by a fine grid, not by the formula."""
    b, c, n = 9, 3, 60
    for bound in paired_difference_interval(b, c, n):
        grid = np.linspace(max(0, -bound), (1 - bound) / 2, 400_001)[1:-1]
        likelihood = b * np.log(grid + bound) + c * np.log(grid) + (n - b - c) * np.log(1 - 2 * grid - bound)
        q = grid[np.argmax(likelihood)]
        statistic = (b - c - n * bound) / math.sqrt(n * (2 * q + bound * (1 - bound)))
        assert abs(statistic) == pytest.approx(1.959963984540054, abs=1e-4)


def test_the_interval_of_the_difference_covers():
    generator = np.random.default_rng(5)
    drawn = generator.multinomial(60, [0.12, 0.05, 0.83], size=1500)
    held = sum(
        low <= 0.07 <= high for low, high in (paired_difference_interval(b, c, 60) for b, c, _ in drawn.tolist())
    )
    assert 0.935 <= held / 1500 <= 0.975


@settings(deadline=None)
@given(rated, st.randoms())
def test_the_order_of_items_does_not_matter(rows, random):
    shuffled = random.sample(rows, len(rows))
    one, other = (agreement([a for a, _ in some], [b for _, b in some]) for some in (rows, shuffled))
    assert one == other


def test_without_items_nothing_is_said():
    found = agreement([], [])
    assert (found.n, found.agreement, found.kappa, found.p, found.verdict) == (0, None, None, None, "not_evaluable")
    assert found.reason == "no_support"


def test_a_bias_is_named_with_its_direction():
    found = assess(
        {
            "tone": raters(both=40, judge_only=30, neither=30),
            "fact": raters(both=40, verifier_only=30, neither=30),
            "form": raters(both=200, judge_only=2, verifier_only=2, neither=200),
        },
        margin=0.05,
    )
    assert list(found) == ["fact", "form", "tone"]
    assert (found["tone"].verdict, found["tone"].direction) == ("biased", "judge_higher")
    assert (found["fact"].verdict, found["fact"].direction) == ("biased", "judge_lower")
    assert (found["form"].verdict, found["form"].direction) == ("unbiased", None)
    assert biased_dimensions(found) == ("fact", "tone")


def test_few_items_without_any_disagreement_are_not_unbiased():
    """Ten items: the bias may be as large as 0.28 on either side."""
    found = assess({"tone": raters(both=5, neither=5)}, margin=0.1)["tone"]
    assert (found.bias, found.verdict, found.reason) == (0.0, "not_evaluable", "ci_straddles_threshold")


def test_a_significant_bias_below_the_margin_is_not_biased():
    found = assess({"tone": raters(both=500, judge_only=20, neither=480)}, margin=0.05)["tone"]
    assert found.p < 0.001
    assert found.verdict == "unbiased"


def test_the_same_bias_may_drown_among_many_dimensions():
    """p = 0.0225 alone; times 10 it is no flag."""
    one = raters(both=10, judge_only=9, verifier_only=1, neither=10)
    alone = assess({"d0": one}, margin=0.1)["d0"]
    among = assess({f"d{i}": one if i == 0 else raters(both=10, neither=10) for i in range(10)}, margin=0.1)["d0"]
    assert (alone.verdict, among.verdict) == ("biased", "not_evaluable")
    assert among.p_holm == pytest.approx(10 * alone.p)


def test_a_dimension_without_items_is_not_counted_among_the_tests():
    found = assess({"tone": raters(both=10, judge_only=9, verifier_only=1), "none": ([], [])}, margin=0.1)
    assert found["tone"].p_holm == found["tone"].p
    assert (found["none"].p_holm, found["none"].verdict) == (None, "not_evaluable")


def test_what_is_no_rating_is_refused():
    with pytest.raises(InputError, match="judge must be 0 or 1"):
        agreement([2], [1])
    with pytest.raises(InputError, match="verifier needs one entry"):
        agreement([1, 0], [1])
    with pytest.raises(InputError, match="same items"):
        cohen_kappa([1], [1, 0])
    with pytest.raises(InputError, match="at least 0"):
        mcnemar_exact(-1, 2)
    with pytest.raises(InputError, match="at most n"):
        paired_difference_interval(3, 3, 5)
    with pytest.raises(ConfigError, match="margin"):
        assess({}, margin=5)
