"""Intervals of proportions: published values, the rules for few clusters, refusals, and coverage by simulation."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoeval.errors import ConfigError, InputError
from geoeval.stats.interval import (
    clopper_pearson,
    clustered_wilson,
    clustered_wilson_by,
    kish_effective,
    normal_quantile,
    simultaneous_wilson,
    smallest_n,
    wilson,
    wilson_continuity,
)
from geoeval.stats.rounding import round12
from geoeval.stats.spread import cluster_spread


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_reproduces_the_table_of_newcombe_1998(k, n, low, high):
    """Table I, method 3, of Stat. Med. 17, 857-872."""
    assert wilson(k, n) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [(81, 263, 0.2535, 0.3682), (15, 148, 0.0598, 0.1644), (0, 20, 0.0, 0.2005), (1, 29, 0.0018, 0.1963)],
)
def test_the_continuity_correction_reproduces_newcombe_and_is_wider(k, n, low, high):
    """Table I, method 4."""
    assert wilson_continuity(k, n) == pytest.approx((low, high), abs=5e-5)
    assert wilson_continuity(k, n)[1] > wilson(k, n)[1]


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [(81, 263, 0.2527, 0.3676), (15, 148, 0.0578, 0.1617), (0, 20, 0.0, 0.1684), (1, 29, 0.0009, 0.1776)],
)
def test_the_exact_interval_reproduces_newcombe(k, n, low, high):
    """Table I, method 5."""
    assert clopper_pearson(k, n) == pytest.approx((low, high), abs=5e-5)


def test_all_of_38_found_has_a_high_of_exactly_one():
    low, high = wilson(38, 38)
    assert (round12(low), high) == (0.908190131774, 1.0)


def test_none_of_77_found_has_a_low_of_exactly_zero():
    low, high = wilson(0, 77)
    assert (low, round12(high)) == (0.0, 0.0475184252824)


@settings(deadline=None)
@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 0.999))
def test_wilson_holds_the_share_stays_in_bounds_and_mirrors(kn, confidence):
    k, n = kn
    low, high = wilson(k, n, confidence)
    assert 0.0 <= low <= k / n <= high <= 1.0
    mirrored = wilson(n - k, n, confidence)
    assert (1 - mirrored[1], 1 - mirrored[0]) == pytest.approx((low, high), abs=1e-12)
    assert (low == 0.0) == (k == 0)
    assert (high == 1.0) == (k == n)


@pytest.mark.parametrize("interval", [wilson, wilson_continuity, clopper_pearson])
def test_no_trials_have_no_interval(interval):
    assert interval(0, 0) == (None, None)


@pytest.mark.parametrize("interval", [wilson, wilson_continuity, clopper_pearson])
@pytest.mark.parametrize(("k", "n"), [(2.5, 10), (-1, 10), (11, 10), (np.nan, 10), (3, np.inf), ("3", 10), (None, 1)])
def test_counts_that_are_no_counts_are_refused(interval, k, n):
    with pytest.raises(InputError, match=r"whole number|must not exceed"):
        interval(k, n)


def test_a_percentage_is_no_confidence():
    with pytest.raises(ConfigError, match="is it a percentage"):
        wilson(1, 2, 95)


def test_a_single_subgroup_needs_no_widening():
    assert simultaneous_wilson(90, 100, 1) == pytest.approx(wilson(90, 100), abs=1e-12)
    assert simultaneous_wilson(90, 100, 10)[0] < simultaneous_wilson(90, 100, 2)[0] < wilson(90, 100)[0]
    assert simultaneous_wilson(0, 0, 3) == (None, None)


def test_the_one_sided_bound_is_the_share_that_would_rarely_give_as_many_hits():
    """With 22 of 22, p**22 = 0.05 at the bound."""
    low, high = clopper_pearson(22, 22, side="low")
    assert low**22 == pytest.approx(0.05)
    assert high == 1.0
    assert clopper_pearson(0, 22, side="low") == (0.0, 1.0)
    with pytest.raises(ConfigError, match="side"):
        clopper_pearson(1, 2, side="both")


def test_six_clusters_by_hand():
    """k = 1…6 of 6 each: p = 21/36, residuals −2.5…2.5, Σ² = 17.5, v = 6/5·17.5/36² = 7/432."""
    spread = cluster_spread([1, 2, 3, 4, 5, 6], [6] * 6)
    assert spread.variance == float(Fraction(7, 432))
    assert spread.design_effect == pytest.approx(2.4)
    assert (spread.with_error, spread.with_hit) == (5, 6)


def test_equal_clusters_are_worth_no_more_than_independent_trials():
    """No spread at all: the design effect is held at 1, and the t quantile still widens the interval."""
    found = clustered_wilson([5] * 5, [10] * 5)
    assert (found.design_effect, found.n_eff, found.marks) == (1.0, 50.0, ("few_clusters",))
    assert found.low == pytest.approx(0.31725788465246874)
    assert found.n_star == pytest.approx(24.91655546239372)


def test_a_perfect_score_in_three_clusters_assumes_a_correlation():
    """Σn²/N = 150/20 = 7.5, so the design effect is 1 + 6.5·0.1."""
    found = clustered_wilson([10, 5, 5], [10, 5, 5])
    assert found.design_effect == pytest.approx(1.65)
    assert found.marks == ("deff_floor", "few_clusters")
    assert (found.low, found.high) == (pytest.approx(0.3956779789986306), 1.0)


def test_errors_in_five_clusters_need_no_assumption():
    few, enough = ([29] * errors + [30] * (20 - errors) for errors in (4, 5))
    assert clustered_wilson(few, [30] * 20).marks == ("deff_floor",)
    assert clustered_wilson(enough, [30] * 20).marks == ()
    hits = [1] * 4 + [0] * 16
    assert clustered_wilson(hits, [30] * 20).marks == ("deff_floor",)


def test_a_spread_above_the_floor_stands_as_it_was_estimated():
    found = clustered_wilson([0, 0, 20, 20, 20, 20, 20, 20, 20, 20], [20] * 10)
    assert found.design_effect > 1 + 19 * 0.1
    assert found.marks == ()


def test_without_the_floor_a_perfect_score_has_no_design_effect():
    found = clustered_wilson_by([10, 5], [10, 5], correlation_floor=0.0)
    assert (found.value, found.low, found.high, found.reason) == (1.0, None, None, "deff_undefined")


def test_one_cluster_has_a_value_and_no_interval():
    found = clustered_wilson([8, 0], [10, 0])
    assert (found.value, found.low, found.high) == (0.8, None, None)
    assert (found.clusters, found.dropped, found.reason) == (1, 1, "single_cluster")


@pytest.mark.parametrize("n", [[], [0, 0]])
def test_no_trials_in_any_cluster(n):
    found = clustered_wilson(n, n)
    assert (found.value, found.low, found.clusters, found.reason) == (None, None, 0, "no_support")


def test_empty_clusters_are_dropped_and_counted():
    with_empty, without = clustered_wilson([8, 0, 5], [10, 0, 10]), clustered_wilson([8, 5], [10, 10])
    assert with_empty.dropped == 1
    assert (with_empty.low, with_empty.high, with_empty.clusters) == (without.low, without.high, 2)


def test_a_giant_cluster_makes_few_effective_ones():
    found = clustered_wilson([150] + [8] * 19, [200] + [10] * 19)
    assert found.clusters == 20
    assert found.effective_clusters < 5
    assert found.marks == ("few_clusters",)


@pytest.mark.parametrize(("k", "n"), [([1.5], [2]), ([3], [2]), ([-1], [2]), ([1], [np.nan]), ([1, 1], [2])])
def test_clusters_that_hold_no_counts_are_refused(k, n):
    with pytest.raises(InputError):
        clustered_wilson(k, n)


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=2, max_size=30),
    st.randoms(),
)
def test_the_order_of_clusters_changes_no_bit(pairs, random):
    shuffled = random.sample(pairs, len(pairs))
    one, other = (clustered_wilson(*np.array(some).T) for some in (pairs, shuffled))
    assert one == other
    assert one.low <= one.value <= one.high
    assert one.design_effect >= 1


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 10**7).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=2, max_size=6)
)
def test_the_spread_of_large_clusters_is_exact(pairs):
    """Beyond 2**62 too: held against fractions."""
    k, n = zip(*pairs, strict=True)
    p, N, C = Fraction(sum(k), sum(n)), sum(n), len(n)
    v = Fraction(C, C - 1) * sum((a - p * b) ** 2 for a, b in pairs) / N**2
    spread = cluster_spread(k, n)
    assert spread.variance == float(v)
    assert spread.squares == sum(b * b for b in n)
    if 0 < p < 1:
        assert spread.design_effect == float(v / (p * (1 - p) / N))


def test_kish_counts_even_clusters_fully():
    assert kish_effective([7] * 12) == 12
    assert kish_effective([]) == 0.0
    assert kish_effective(np.array([200, 5, 5, 5, 5, 5])) == pytest.approx(1.2616822429906542)


@pytest.mark.parametrize("limit", [0.5, 0.8, 0.9, 0.95, 0.99])
def test_the_smallest_n_passes_and_one_less_does_not(limit):
    n = smallest_n(limit, "at_least")
    assert wilson(n, n)[0] >= limit > wilson(n - 1, n - 1)[0]
    m = smallest_n(round(1 - limit, 2), "at_most")
    assert m == n


def test_limits_that_nothing_or_anything_clears():
    assert smallest_n(1.0, "at_least") is None
    assert smallest_n(0.0, "at_most") is None
    assert smallest_n(0.0, "at_least") == smallest_n(1.0, "at_most") == 1
    with pytest.raises(ConfigError, match="direction"):
        smallest_n(0.5, "up")
    with pytest.raises(ConfigError, match="finite"):
        smallest_n(float("nan"), "at_least")


def test_z_is_the_normal_quantile():
    assert normal_quantile(0.95) == pytest.approx(1.959963984540054, abs=1e-15)


def surveys(seed, correlation, clusters=10, size=20, p=0.9, times=2000):
    """Hits (times, clusters) of surveys whose clusters share a beta-distributed rate: a known correlation inside."""
    generator = np.random.default_rng(seed)
    if correlation == 0:
        return generator.binomial(size, p, (times, clusters))
    strength = 1 / correlation - 1
    rates = generator.beta(p * strength, (1 - p) * strength, (times, clusters))
    return generator.binomial(size, rates)


def coverage(hits, size, p, interval):
    held = 0
    for row in hits:
        low, high = interval(row, np.full(len(row), size))
        held += low <= p <= high
    return held / len(hits)


def clustered_bounds(k, n):
    found = clustered_wilson(k, n)
    return found.low, found.high


def plain_bounds(k, n):
    return wilson(int(k.sum()), int(n.sum()))


def test_the_clustered_interval_covers_where_clusters_are_correlated_and_the_plain_one_does_not():
    """10 clusters of 20, correlation 0.3, p 0.9: the plain interval holds the truth about half the time."""
    hits = surveys(seed=1, correlation=0.3)
    assert 0.86 <= coverage(hits, 20, 0.9, clustered_bounds) <= 0.96
    assert 0.40 <= coverage(hits, 20, 0.9, plain_bounds) <= 0.62


def test_the_clustered_interval_covers_where_objects_are_independent():
    """Never narrower than it should be; the t quantile and the clamp make it a little wide."""
    hits = surveys(seed=2, correlation=0)
    assert 0.945 <= coverage(hits, 20, 0.9, clustered_bounds) <= 0.995
    assert 0.93 <= coverage(hits, 20, 0.9, plain_bounds) <= 0.97


def test_the_floor_lifts_coverage_near_a_perfect_score():
    """5 clusters of 20, correlation 0.1, p 0.98: most surveys show errors in fewer than 5 clusters."""
    hits = surveys(seed=3, correlation=0.1, clusters=5, p=0.98)

    def unfloored(k, n):
        found = clustered_wilson_by(k, n, correlation_floor=0.0)
        return (found.low, found.high) if found.reason is None else plain_bounds(k, n)

    with_floor = coverage(hits, 20, 0.98, clustered_bounds)
    assert with_floor >= 0.93
    assert with_floor >= coverage(hits, 20, 0.98, unfloored)
