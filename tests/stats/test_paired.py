"""Paired differences: their sign, their zeros, and what they decide."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoeval.stats.paired import differences, gains, least_differing, paired_interval
from geoeval.stats.risk import RankedErrors, risk
from geoeval.stats.risk_kernel import count_draws

numbers = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20).map(np.array)


@given(numbers)
def test_a_figure_does_not_differ_from_itself(values):
    assert (differences(values, values) == 0).all()
    for better in ("more", "less", "nearer_zero"):
        assert (gains(values, values, better) == 0).all()


@given(numbers, st.randoms())
def test_a_swap_of_sides_swaps_the_sign(values, random):
    other = values * random.uniform(0.5, 2.0)
    for better in ("more", "less", "nearer_zero"):
        assert np.array_equal(gains(values, other, better), -gains(other, values, better))


def test_the_last_bits_make_no_difference():
    assert differences(np.array([0.3]), np.array([0.1 + 0.2])).tolist() == [0.0]
    assert differences(np.array([1.0]), np.array([1.0 + 1e-9]))[0] > 0


def test_a_bias_that_crosses_zero_may_gain_or_lose():
    assert gains(np.array([0.5, 0.5]), np.array([-0.25, -0.75]), "nearer_zero").tolist() == [0.25, -0.25]


@pytest.mark.parametrize(("confidence", "clusters"), [(0.9, 5), (0.95, 6), (0.99, 8)])
def test_fewer_clusters_could_not_pass_a_sign_test(confidence, clusters):
    assert least_differing(confidence) == clusters
    assert 2 * 0.5**clusters <= 1 - confidence < 2 * 0.5 ** (clusters - 1)


def test_what_an_interval_decides():
    old = np.linspace(0.4, 0.6, 101)
    assert paired_interval(old, old + 0.01, "more").decision == "adopt"
    assert paired_interval(old, old - 0.01, "more").decision == "block"
    assert paired_interval(old, old - 0.01, "less").decision == "adopt"
    assert paired_interval(old, old + 0.01, None).decision == "inconclusive"
    assert paired_interval(old, 1 - old, "more").decision == "inconclusive"
    few = paired_interval(old, old + 0.01, "more", few=True)
    assert (few.decision, few.low) == ("inconclusive", pytest.approx(0.01))


def test_redraws_without_a_value_are_counted_and_too_many_give_nothing():
    old = np.linspace(0.4, 0.6, 100)
    new = old + 0.1
    new[:5] = np.nan
    found = paired_interval(old, new, "more")
    assert (found.undefined, found.decision, found.reason) == (5, "adopt", None)
    new[5] = np.nan
    found = paired_interval(old, new, "more")
    assert (found.low, found.gain_low, found.decision, found.reason) == (None,) * 2 + (
        "inconclusive",
        "unstable_bootstrap",
    )


@pytest.mark.parametrize("digits", [1, 6])
@pytest.mark.parametrize("clusters", [7, 400])
def test_compiled_redraws_have_the_bits_of_plain_ones(digits, clusters):
    """Ties and none, clusters drawn several times, and a redraw that draws nothing."""
    rng = np.random.default_rng(clusters + digits)
    score, error = rng.random(400).round(digits), rng.integers(0, 2, 400)
    cluster = rng.integers(0, clusters, 400)
    drawn = np.vstack([rng.integers(0, 4, size=(30, clusters)), np.zeros((1, clusters), dtype=np.int64)])
    ranked = RankedErrors.of(score, error, cluster)
    plain, compiled = (ranked.redraws(drawn, compiled=which) for which in (False, True))
    for name in ("aurc", "eaurc", "augrc"):
        assert getattr(plain, name).tobytes() == getattr(compiled, name).tobytes()
    at = np.repeat(np.arange(400), drawn[3][cluster])
    assert compiled.aurc[3] == risk(score[at], error[at]).aurc


def test_compiled_redraws_without_any_error():
    ranked = RankedErrors.of([0.5, 0.7], [0, 0], [0, 1])
    found = ranked.redraws(np.array([[1, 1], [0, 2]]), compiled=True)
    assert found.aurc.tolist() == found.augrc.tolist() == found.eaurc.tolist() == [0.0, 0.0]


def test_confidences_below_zero_and_minus_zero_rank_as_numbers():
    assert risk([-1.0, 2.0, 0.5], [1, 0, 0]).eaurc == 0.0
    assert risk([0.0, -0.0, 1.0], [1, 0, 0]) == risk([0.0, 0.0, 1.0], [0, 1, 0])


def test_draws_are_counted():
    drawn = np.random.default_rng(0).integers(0, 5, size=(3, 50))
    out = np.zeros((3, 5), dtype=np.int64)
    count_draws(drawn, out)
    assert np.array_equal(out, [np.bincount(row, minlength=5) for row in drawn])
