"""Thresholds, paired redraws, deferral, folds and macro F1."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoeval.errors import ConfigError, InputError, LeakageError
from geoeval.stats import selective
from geoeval.stats.bootstrap import multiplicities
from geoeval.stats.risk import aurc
from geoeval.stats.selective import (
    adoption,
    bootstrap_delta_aurc,
    bootstrap_delta_mean,
    common_cost_range,
    deferral_curve,
    deferral_operating_points,
    deferral_single_arm,
    folds,
    hash_of_ids,
    k_fold_oof,
    macro_f1,
    paired_order,
    refuse_overlap,
    risk_coverage,
    score_at,
    select_threshold,
)

observed = st.lists(st.tuples(st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.9]), st.integers(0, 1)), min_size=1, max_size=25)


def select(confidence, error, floor):
    return select_threshold(confidence, error, floor, split="validation")


def test_the_most_precise_threshold_with_enough_coverage():
    """At 0.6 four of five are accepted, three right; at 0.7 three, two right; 0.8 covers too little."""
    found = select([0.9, 0.8, 0.7, 0.6, 0.5], [0, 0, 1, 0, 1], 0.6)
    assert (found.threshold, found.accepted, found.coverage, found.precision) == (0.6, 4, 0.8, 0.75)


def test_equal_precision_goes_to_the_wider_coverage():
    found = select([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], 0.5)
    assert (found.threshold, found.precision) == (0.7, 2 / 3)
    assert select([0.9, 0.8], [0, 0], 0.1).accepted == 2


@settings(deadline=None)
@given(observed, st.integers(0, 20).map(lambda i: i / 20))
def test_the_selected_threshold_is_the_best_of_all(rows, floor):
    confidence, error = zip(*rows, strict=True)
    candidates = []
    for t in set(confidence):
        accepted = [e for c, e in rows if c >= t]
        if Fraction(len(accepted), len(rows)) >= Fraction(str(floor)):
            candidates.append((Fraction(accepted.count(0), len(accepted)), len(accepted), t))
    assert select(confidence, error, floor).threshold == max(candidates)[2]


@pytest.mark.parametrize("tenths", range(1, 11))
def test_a_coverage_of_exactly_the_declared_decimal_is_enough(tenths):
    """0.1 as a float is more than 1/10; one of ten is enough all the same."""
    confidence = np.arange(10, 0, -1) / 10
    error = np.arange(10) >= tenths
    assert select(confidence, error, tenths / 10).accepted == tenths


def test_nothing_to_select_from_selects_nothing():
    assert select([], [], 0.0) is None


@pytest.mark.parametrize("split", ["test", "train", "", "Validation"])
def test_a_threshold_is_selected_on_validation_only(split):
    with pytest.raises(LeakageError, match="'validation' only"):
        select_threshold([0.9], [0], 0.5, split=split)


@pytest.mark.parametrize("floor", [1.2, -0.1, float("nan")])
def test_a_coverage_floor_outside_the_unit_interval_is_refused(floor):
    with pytest.raises(ConfigError, match=r"\[0, 1\]"):
        select([0.9], [0], floor)


def test_a_threshold_that_accepts_nothing_has_no_precision():
    found = score_at([0.5, 0.4], [0, 1], 0.9)
    assert (found.accepted, found.coverage, found.precision) == (0, 0.0, None)
    assert score_at([0.9], [0], 0.9).accepted == 1
    assert score_at([], [], 0.9).coverage is None


def test_an_overlap_of_splits_is_refused_by_name():
    refuse_overlap(["a"], ["b"])
    with pytest.raises(LeakageError, match=r"clusters must not be in both .* the first is 'b'"):
        refuse_overlap(["a", "b"], ["c", "b"], "clusters")


def test_the_hash_of_ids_is_of_the_set_and_cannot_be_confused():
    assert hash_of_ids(["b", "a", "a"]) == hash_of_ids(["a", "b"])
    assert hash_of_ids(["ab"]) != hash_of_ids(["a", "b"])
    assert hash_of_ids(["1:a"]) != hash_of_ids(["a"])


def test_risk_coverage_takes_probabilities_only():
    assert risk_coverage([0.9, 0.1], [0, 1]).areas.eaurc == 0.0
    assert risk_coverage([], []).reason == "no_support"
    with pytest.raises(InputError, match="percentage"):
        risk_coverage([90.0], [0])


def test_the_curve_by_hand():
    """One right at 0.9; at 0.5 one of two wrong: half an error after two, one after three; then one wrong."""
    found = risk_coverage([0.5, 0.9, 0.1, 0.5], [1, 0, 1, 0])
    assert found.coverage.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert found.selective_risk.tolist() == [0.0, 0.25, 1 / 3, 0.5]
    assert len(risk_coverage([], []).coverage) == len(risk_coverage([], []).selective_risk) == 0


@settings(deadline=None)
@given(observed)
def test_the_curve_is_the_mean_over_orders_and_its_mean_is_the_aurc(rows):
    confidence, error = map(np.array, zip(*rows, strict=True))
    found = risk_coverage(confidence, error)
    assert found.selective_risk.mean() == pytest.approx(found.areas.aurc, abs=1e-12)
    for accepted, correct in zip(found.points.accepted, found.points.correct, strict=True):
        assert found.selective_risk[accepted - 1] == (accepted - correct) / accepted
    mean = np.array([error[confidence == one].mean() for one in np.sort(confidence)[::-1]])
    assert found.selective_risk == pytest.approx(np.cumsum(mean) / np.arange(1, len(rows) + 1))
    assert np.array_equal(risk_coverage(confidence[::-1], error[::-1]).selective_risk, found.selective_risk)


def test_ids_are_paired_by_name_not_by_position():
    assert paired_order(["x", "y", "z"], ["z", "x", "y"]).tolist() == [1, 2, 0]
    with pytest.raises(InputError, match="one side only, the first is 'w'"):
        paired_order(["x", "y"], ["x", "w"])
    with pytest.raises(InputError, match="candidate has 'x' more than once"):
        paired_order(["x", "y"], ["x", "x"])


@pytest.mark.parametrize(
    ("low", "high", "decision"),
    [
        (0.001, 0.2, "adopt"),
        (0.0, 0.2, "inconclusive"),
        (-0.2, 0.0, "inconclusive"),
        (0.0, 0.0, "inconclusive"),
        (-0.2, -0.001, "block"),
        (None, None, "inconclusive"),
        (float("nan"), float("nan"), "inconclusive"),
    ],
)
def test_adoption_needs_the_whole_interval(low, high, decision):
    assert adoption(low, high) == decision


def test_the_observed_difference_is_the_statistic_not_the_mean_of_its_redraws():
    old, new, error = [0.9, 0.8, 0.7, 0.6, 0.5], [0.9, 0.5, 0.7, 0.6, 0.8], [0, 0, 1, 0, 1]
    found = bootstrap_delta_aurc(old, new, error, redraws=400, seed=3)
    assert found.observed == aurc(old, error) - aurc(new, error) == pytest.approx(-13 / 60)
    assert found.bootstrap_mean != found.observed
    assert found.low < found.observed < found.high
    assert found.marks == ("few_clusters",)


def test_a_better_ranking_of_many_is_adopted_and_a_worse_one_blocked():
    generator = np.random.default_rng(7)
    error = generator.integers(0, 2, 300)
    good, poor = np.clip(0.7 - 0.5 * error + 0.1 * generator.random(300), 0, 1), generator.random(300)
    assert bootstrap_delta_aurc(poor, good, error, redraws=200).decision == "adopt"
    assert bootstrap_delta_aurc(good, poor, error, redraws=200).decision == "block"


def test_a_mean_difference_of_redraws_is_the_resampled_mean():
    """Held against drawing rows one by one with the same generator."""
    generator = np.random.default_rng(0)
    old, new = generator.random(30), generator.random(30)
    found = bootstrap_delta_mean(old, new, redraws=500, seed=11)
    drawn = np.random.Generator(np.random.PCG64(11)).integers(0, 30, size=(500, 30))
    order = np.lexsort((new, old))
    naive = (new - old)[order][drawn].mean(axis=1)
    assert found.observed == pytest.approx((new - old).mean())
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(naive, [2.5, 97.5])))
    assert found.bootstrap_mean == pytest.approx(naive.mean())


def test_the_seed_pins_the_redraws():
    """Golden: PCG64, whole numbers drawn, numpy's linear percentiles."""
    found = bootstrap_delta_mean([0.0] * 8, [1, 2, 3, 4, -1, -2, 5, 0], redraws=200, seed=42)
    again = bootstrap_delta_mean([0.0] * 8, [1, 2, 3, 4, -1, -2, 5, 0], redraws=200, seed=42)
    assert found == again
    assert (found.observed, found.low, found.high) == (1.5, -0.25, 3.125)
    assert multiplicities(5, 3, seed=42).tolist() == [[1, 0, 2, 2, 0], [2, 1, 0, 1, 1], [0, 0, 1, 3, 1]]


def test_drawing_in_pieces_changes_no_draw(monkeypatch):
    old, new, error = [0.2, 0.4, 0.6, 0.8, 0.5], [0.9, 0.1, 0.3, 0.7, 0.2], [0, 1, 1, 0, 1]
    whole = bootstrap_delta_aurc(old, new, error, redraws=50, seed=5)
    monkeypatch.setattr(selective, "_DRAWS_AT_ONCE", 15)
    assert bootstrap_delta_aurc(old, new, error, redraws=50, seed=5) == whole
    assert np.array_equal(np.concatenate(list(selective._draws(5, 50, 5))), multiplicities(5, 50, 5))


def test_clusters_are_drawn_whole():
    """Two clusters that disagree: redraws take only three values, −1, 0 and 1."""
    found = bootstrap_delta_mean([0] * 6, [1, 1, 1, -1, -1, -1], redraws=300, clusters=list("aaabbb"))
    assert (found.clusters, found.n, found.low, found.high) == (2, 6, -1.0, 1.0)


def test_the_order_of_rows_changes_no_bit_when_clusters_are_named():
    generator = np.random.default_rng(4)
    old, new = generator.random((2, 40))
    error, names = generator.integers(0, 2, 40), [f"c{i % 7}" for i in range(40)]
    order = generator.permutation(40)
    shuffled = [names[i] for i in order]
    for seed in (0, 1):
        one = bootstrap_delta_aurc(old, new, error, redraws=40, seed=seed, clusters=names)
        other = bootstrap_delta_aurc(old[order], new[order], error[order], redraws=40, seed=seed, clusters=shuffled)
        assert one == other
        one = bootstrap_delta_mean(old, new, redraws=40, seed=seed, clusters=names)
        assert one == bootstrap_delta_mean(old[order], new[order], redraws=40, seed=seed, clusters=shuffled)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(*[st.sampled_from([0.0, 0.1, 0.3, 0.7])] * 2, *[st.integers(0, 1)] * 2), max_size=12), st.data()
)
def test_the_order_of_rows_changes_no_bit_without_clusters(rows, data):
    """Few values, so that many rows are equal in some columns and differ in others."""
    shuffled = data.draw(st.permutations(rows))
    one, other = (np.array(each, dtype=float).reshape(-1, 4).T for each in (rows, shuffled))
    assert bootstrap_delta_aurc(*one, redraws=20) == bootstrap_delta_aurc(*other, redraws=20)
    assert bootstrap_delta_aurc(*one[:3], redraws=20) == bootstrap_delta_aurc(*other[:3], redraws=20)
    assert bootstrap_delta_mean(*one[:2], redraws=20) == bootstrap_delta_mean(*other[:2], redraws=20)


@pytest.mark.parametrize(
    ("n", "redraws", "clusters", "reason"),
    [
        (0, 100, None, "low_support"),
        (1, 100, None, "low_support"),
        (3, 0, None, "no_interval"),
        (3, 9, list("aaa"), "single_cluster"),
    ],
)
def test_too_little_to_redraw_is_inconclusive(n, redraws, clusters, reason):
    found = bootstrap_delta_mean([0.0] * n, [1.0] * n, redraws=redraws, clusters=clusters)
    assert (found.low, found.high, found.bootstrap_mean) == (None, None, None)
    assert (found.decision, found.reason) == ("inconclusive", reason)
    assert bootstrap_delta_aurc([0.5] * n, [0.5] * n, [0] * n, redraws=redraws, clusters=clusters).reason == reason


def test_sides_that_do_not_match_are_refused():
    with pytest.raises(InputError, match="same observations, got 2 and 1"):
        bootstrap_delta_aurc([0.1, 0.2], [0.1], [0, 1])
    with pytest.raises(InputError, match="same observations"):
        bootstrap_delta_mean([0.1, 0.2], [0.1])


@pytest.mark.parametrize("missing", [None, "", float("nan")])
def test_a_missing_cluster_is_refused_never_made_one_of_its_own(missing):
    with pytest.raises(InputError, match="row 1 has none"):
        bootstrap_delta_mean([0, 0], [1, 1], clusters=["a", missing])


def test_deferring_the_unsure_helps():
    found = deferral_curve([0.9, 0.8, 0.3, 0.2], [1, 1, 0, 0], [1, 1, 1, 1])
    assert found.points == ((0.0, 0.5), (0.25, 0.75), (0.5, 1.0), (0.75, 1.0), (1.0, 1.0))
    assert (found.audc, found.qnc, found.peak, found.peak_at, found.random_line_audc) == (0.875, 0.5, 1.0, 0.5, 0.75)


def test_equal_confidences_are_deferred_together_in_any_order():
    one = deferral_curve([0.9, 0.5, 0.5, 0.5], [1, 0, 1, 0], [1, 1, 1, 1])
    assert one == deferral_curve([0.5, 0.5, 0.9, 0.5], [1, 0, 1, 0], [1, 1, 1, 1])
    assert one.points == ((0.0, 0.5), (0.75, 1.0), (1.0, 1.0))


def test_a_poor_expert_leaves_the_peak_inside():
    """Deferring one of two is best; the expert alone is matched before anything is deferred."""
    found = deferral_curve([0.9, 0.1], [1, 0], [0, 1])
    assert (found.peak, found.peak_at, found.qnc) == (1.0, 0.5, 0.0)


def test_nothing_to_defer():
    found = deferral_curve([], [], [])
    assert (found.audc, found.peak, found.qnc, found.reason) == (None, None, None, "no_support")
    with pytest.raises(InputError, match="one length"):
        deferral_curve([0.1], [1], [])


def test_with_its_own_range_a_two_point_arm_scores_its_mean_whatever_it_costs():
    """Which is why arms share one range."""
    dear, cheap = [(10, 0.6), (30, 0.9)], [(10, 0.6), (11, 0.9)]
    assert deferral_single_arm(dear).audc == deferral_single_arm(cheap).audc == 0.75
    shared = common_cost_range({"dear": dear, "cheap": cheap})
    assert shared == (10, 30)
    assert deferral_operating_points(cheap, cost_range=shared).qnc == 0.05
    assert deferral_operating_points(dear, cost_range=shared).qnc == 1.0


def test_operating_points_by_hand():
    found = deferral_single_arm([(5, 0.8), (1, 0.5), (2, 0.8)])
    assert found.points == ((0.0, 0.5), (0.25, 0.8), (1.0, 0.8))
    assert found.audc == pytest.approx(0.25 * 0.65 + 0.75 * 0.8)
    assert (found.qnc, found.peak) == (0.25, 0.8)


def test_an_arm_that_never_reaches_the_expert_says_so():
    found = deferral_operating_points([(1, 0.5), (2, 0.6)], cost_range=(1, 2), expert_quality=0.9)
    assert (found.qnc_expert, found.qnc) == (None, 1.0)


def test_a_single_operating_point_has_no_area():
    found = deferral_single_arm([(3, 0.7)])
    assert (found.audc, found.peak, found.reason) == (None, 0.7, "undefined_ratio")
    assert deferral_single_arm([]).reason == "no_support"
    with pytest.raises(InputError, match="costs must lie in"):
        deferral_operating_points([(3, 0.7)], cost_range=(0, 1))
    with pytest.raises(ConfigError, match="must rise"):
        deferral_operating_points([(3, 0.7)], cost_range=(1, 0))
    with pytest.raises(InputError, match="finite"):
        deferral_single_arm([(3, float("nan"))])


def test_a_class_without_support_is_named_and_one_never_said_scores_zero():
    found = macro_f1([0, 1, 0, 3], [0, 1, 2, 2], labels=[0, 1, 2, 3])
    assert found.value == pytest.approx((2 / 3 + 1 + 0) / 3)
    assert [(one.label, one.predicted, one.reason) for one in found.excluded] == [(2, 2, "no_support")]
    assert found.counting_spurious_as_zero == pytest.approx((2 / 3 + 1 + 0) / 4)
    assert found.spurious == (2,)
    never = {one.label: one for one in found.per_class}[3]
    assert (never.f1, never.recall, never.precision) == (0.0, 0.0, None)


def test_a_declared_class_that_occurs_nowhere_is_excluded_and_not_spurious():
    found = macro_f1(["a"], ["a"], labels=["a", "b"])
    assert (found.value, found.spurious, found.counting_spurious_as_zero) == (1.0, (), 1.0)
    assert [one.label for one in found.excluded] == ["b"]


def test_labels_that_nobody_allowed_are_refused():
    with pytest.raises(InputError, match="label 'c' is not among"):
        macro_f1(["a"], ["c"], labels=["a", "b"])
    with pytest.raises(InputError, match="got 1 and 0"):
        macro_f1(["a"], [])
    assert macro_f1([], []).value is None


@settings(deadline=None)
@given(st.integers(2, 40), st.integers(-3, 50), st.integers(0, 5))
def test_folds_are_even_and_as_many_as_possible(n, k, seed):
    fold = folds(n, k, seed)
    size = np.bincount(fold)
    assert len(size) == min(max(k, 2), n)
    assert size.max() - size.min() <= 1


@settings(deadline=None)
@given(st.lists(st.sampled_from("abcdefg"), min_size=2, max_size=40), st.integers(2, 9))
def test_clusters_stay_in_one_fold(groups, k):
    if len(set(groups)) < 2:
        with pytest.raises(InputError, match="at least 2"):
            folds(len(groups), k, 0, groups)
        return
    fold = folds(len(groups), k, 0, groups)
    home = {name: {int(fold[i]) for i, one in enumerate(groups) if one == name} for name in set(groups)}
    assert all(len(at) == 1 for at in home.values())
    assert len({min(at) for at in home.values()}) == min(k, len(home))


def test_no_observation_is_scored_by_a_model_that_saw_it():
    found = k_fold_oof(10, 3, 1, fit=set, score=lambda seen, rows: [float(row in seen) for row in rows])
    assert found.score.tolist() == [0.0] * 10


def test_pooled_ranks_are_within_folds():
    """The second fold's scores are a hundred times as large, and rank the same."""
    found = selective.OutOfFold(np.array([1.0, 2, 2, 100, 200, 200]), np.array([0, 0, 0, 1, 1, 1]))
    assert found.ranks() == pytest.approx([1 / 3, 5 / 6, 5 / 6] * 2)


def test_everything_that_is_offered_is_there():
    assert all(hasattr(selective, name) for name in selective.__all__)
