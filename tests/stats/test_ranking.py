"""Ranked figures: ties, weights, redraws; held against repeated lists, brute force and exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoeval.errors import ConfigError, InputError
from geoeval.stats import ranking
from geoeval.stats.bootstrap import multiplicities
from geoeval.stats.ranking import (
    RECALL_POINTS,
    ap_redraws,
    attainable_points,
    augrc,
    augrc_redraws,
    aurc,
    aurc_redraws,
    average_precision,
    average_precision_coco,
    eaurc,
    eaurc_redraws,
    quantile_redraws,
    risk,
    risk_redraws,
    weighted_quantile,
)
from geoeval.stats.tally import RowTotals

# Few distinct values, so that ties are the rule.
scores = st.sampled_from([0.1, 0.25, 0.3, 0.5, 0.9, 1.0])
scored = st.lists(st.tuples(scores, st.integers(0, 1), st.integers(0, 3)), max_size=25)
reals = st.floats(-1e6, 1e6)


def columns(rows):
    return tuple(np.array(column) for column in zip(*rows, strict=True)) if rows else (np.zeros(0),) * 3


def bags(rows, clusters, redraws=7, seed=5):
    """Rows (score, flag, …) as sorted totals with random clusters, and the multiplicities drawn."""
    generator = np.random.default_rng(seed)
    table = np.array(rows, dtype=float)
    cluster = generator.integers(0, clusters, len(table))
    order = np.lexsort((cluster, *table.T[::-1]))
    return RowTotals(table[order], cluster[order], multiplicities(clusters, redraws, seed))


def repeated(rows: RowTotals, at: int):
    return np.repeat(rows.values, rows.weights(at), axis=0)


def exact_aurc(confidence, error):
    """The definition, in fractions: block means, then the mean of the running means."""
    order = sorted(range(len(confidence)), key=lambda i: -confidence[i])
    ordered = [confidence[i] for i in order]
    mean = {c: Fraction(sum(error[i] for i in order if confidence[i] == c), ordered.count(c)) for c in set(ordered)}
    running, area, general = Fraction(0), Fraction(0), Fraction(0)
    for k, c in enumerate(ordered, start=1):
        running += mean[c]
        area += running / k
        general += running
    n = len(ordered)
    return area / n, general / n**2


@settings(deadline=None)
@given(st.lists(st.tuples(reals, st.integers(0, 3)), max_size=30), st.floats(0, 1))
def test_a_weighted_quantile_is_that_of_the_repeated_list_to_the_last_bit(rows, q):
    values, weights = [v for v, _ in rows], [w for _, w in rows]
    full = np.repeat(values, weights) if rows else np.zeros(0)
    found = weighted_quantile(values, weights, q)
    if len(full) == 0:
        assert found is None
    else:
        assert found == np.quantile(full, q, method="linear")


def test_quantiles_by_hand():
    assert weighted_quantile([3, 1, 2], None, 0.5) == 2
    assert weighted_quantile([1, 2], None, 0.25) == 1.25
    assert weighted_quantile([1, 9], [1, 0], 1.0) == 1


def test_quantile_redraws_equal_the_repeated_lists():
    rows = bags(np.random.default_rng(1).normal(size=(40, 2)).round(1), clusters=6)
    for column in (0, 1):
        found = quantile_redraws(rows, column, 0.9)
        assert found.tolist() == [np.quantile(repeated(rows, b)[:, column], 0.9) for b in range(len(found))]


def test_an_empty_list_has_no_quantile_in_any_redraw():
    rows = RowTotals(np.zeros((0, 1)), np.zeros(0, dtype=np.int64), np.ones((2, 3), dtype=np.int64))
    assert np.isnan(quantile_redraws(rows, 0, 0.5)).tolist() == [True, True]


def test_a_quantile_refuses_what_it_cannot_order():
    with pytest.raises(InputError, match="finite"):
        weighted_quantile([1.0, np.nan], None, 0.5)
    with pytest.raises(InputError, match="whole numbers"):
        weighted_quantile([1.0], [0.5], 0.5)
    with pytest.raises(ConfigError, match="percentage"):
        weighted_quantile([1.0], None, 95)


def test_average_precision_by_hand():
    """Hit, miss, hit of 2: precision 1 up to recall 0.5 (51 points), then 2/3 (50 points)."""
    assert average_precision([0.9, 0.8, 0.7], [1, 0, 1], [0, 1, 0], 2) == pytest.approx((51 + 50 * 2 / 3) / 101)


def test_a_perfect_detector_has_exactly_one_and_a_useless_one_exactly_zero():
    assert average_precision([0.9, 0.8], [1, 1], [0, 0], 2) == 1.0
    assert average_precision([0.9, 0.8], [0, 0], [1, 1], 2) == 0.0
    assert average_precision([], [], [], 2) == 0.0
    assert average_precision([], [], [], 0) is None


def test_half_the_references_cap_the_recall():
    """Recall stops at 1/2: 51 of 101 points."""
    assert average_precision([0.9], [1], [0], 2) == pytest.approx(51 / 101)


def test_equal_scores_are_one_point_whatever_their_order():
    """One hit and one miss at one score: precision 1/2 everywhere, not 1 or 1/2 by luck."""
    for tp in ([1, 0], [0, 1]):
        assert average_precision([0.5, 0.5], tp, [1 - t for t in tp], 1) == 0.5
    assert average_precision_coco([0.5, 0.5], [1, 0], [0, 1], 1) == 1.0
    assert average_precision_coco([0.5, 0.5], [0, 1], [1, 0], 1) == 0.5


def test_an_ignored_prediction_is_neither_hit_nor_invention():
    alone = average_precision([0.9, 0.7], [1, 1], [0, 0], 2)
    assert average_precision([0.95, 0.9, 0.8, 0.7], [0, 1, 0, 1], [0, 0, 0, 0], 2) == alone == 1.0


def brute_force_ap(score, tp, fp, n_reference):
    """At each of 101 recalls, the best precision of any threshold that reaches it."""
    points = []
    for t in sorted(set(score)):
        held = score >= t
        hit, miss = tp[held].sum(), fp[held].sum()
        points.append((hit / n_reference, hit / (hit + miss) if hit + miss else 0.0))
    return sum(max((p for r, p in points if r >= at), default=0.0) for at in RECALL_POINTS) / 101


@settings(deadline=None)
@given(scored, st.integers(0, 5), st.randoms())
def test_average_precision_is_the_brute_force_one_for_every_order_and_as_weights_or_repeats(rows, missed, random):
    score, tp, weight = columns(rows)
    full = [np.repeat(column, weight.astype(int)) for column in (score, tp)]
    references = int(full[1].sum()) + missed
    found = average_precision(score, tp, 1 - tp, references, weight)
    if references == 0:
        assert found is None
        return
    assert found == average_precision(full[0], full[1], 1 - full[1], references)
    assert found == pytest.approx(brute_force_ap(full[0], full[1], 1 - full[1], references), abs=1e-12)
    order = random.sample(range(len(score)), len(score))
    assert found == average_precision(score[order], tp[order], 1 - tp[order], references, weight[order])


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), unique_by=lambda row: row[0], max_size=20))
def test_without_ties_both_protocols_agree(rows):
    score, tp = [s for s, _ in rows], [t for _, t in rows]
    misses = [1 - t for t in tp]
    assert average_precision(score, tp, misses, 20) == average_precision_coco(score, tp, misses, 20)


def test_ap_redraws_equal_the_repeated_lists_and_are_undefined_without_references():
    generator = np.random.default_rng(3)
    tp = generator.integers(0, 2, 60)
    rows = bags(np.column_stack([generator.random(60).round(1), tp, 1 - tp]), clusters=8)
    references = np.array([int(repeated(rows, b)[:, 1].sum()) + 3 for b in range(7)])
    expected = [average_precision(*repeated(rows, b).T, n) for b, n in enumerate(references.tolist())]
    assert ap_redraws(rows, 0, 1, 2, references).tolist() == expected
    references[2] = 0
    assert np.isnan(ap_redraws(rows, 0, 1, 2, references)).tolist() == [b == 2 for b in range(7)]


def test_more_hits_than_references_are_refused():
    with pytest.raises(InputError, match="2 hits need as many references, got 1"):
        average_precision([0.9, 0.8], [1, 1], [0, 0], 1)
    with pytest.raises(InputError, match="0 or 1"):
        average_precision([0.9], [2], [0], 3)
    with pytest.raises(InputError, match="one entry"):
        average_precision([0.9], [1, 0], [0], 3)


@pytest.mark.parametrize(
    ("confidence", "error", "area", "best", "general"),
    [
        ([0.9, 0.8, 0.7, 0.6, 0.5], [0, 0, 0, 1, 1], 0.13, 0.13, 0.12),
        ([0.5] * 4, [1, 0, 0, 0], 0.25, 1 / 16, 5 / 32),
        ([0.9, 0.9, 0.9, 0.4, 0.4], [0, 1, 0, 1, 0], 0.355, 0.13, 0.22),
        ([0.9], [1], 1.0, 1.0, 1.0),
        ([0.9, 0.1], [0, 0], 0.0, 0.0, 0.0),
    ],
)
def test_areas_that_are_simple_fractions(confidence, error, area, best, general):
    found = risk(confidence, error)
    assert found.aurc == pytest.approx(area, abs=1e-15)
    assert found.aurc_best == pytest.approx(best, abs=1e-15)
    assert found.augrc == general
    assert found.eaurc == pytest.approx(area - best, abs=1e-15)


@settings(deadline=None)
@given(st.lists(st.tuples(scores, st.integers(0, 1)), min_size=1, max_size=30))
def test_areas_equal_the_definition_in_fractions(rows):
    confidence, error = [c for c, _ in rows], [e for _, e in rows]
    area, general = exact_aurc(confidence, error)
    found = risk(confidence, error)
    assert found.aurc == pytest.approx(float(area), abs=1e-15)
    assert found.augrc == float(general)
    n, wrong = len(rows), sum(error)
    best, least = exact_aurc(range(n, 0, -1), [0] * (n - wrong) + [1] * wrong)
    assert found.aurc_best == pytest.approx(float(best), abs=1e-15)
    assert (found.augrc_best, found.eaugrc) == (float(least), float(general - least))
    assert (found.eaurc == 0) == (area == best)


@settings(deadline=None)
@given(scored, st.randoms())
def test_areas_are_the_same_bits_for_every_order_and_as_weights_or_repeats(rows, random):
    confidence, error, weight = columns(rows)
    full = [np.repeat(column, weight.astype(int)) for column in (confidence, error)]
    found = risk(confidence, error, weight)
    assert found == risk(*full)
    order = random.sample(range(len(rows)), len(rows))
    assert found == risk(confidence[order], error[order], weight[order])
    assert (found.aurc, found.eaurc, found.augrc) == (aurc(*full), eaurc(*full), augrc(*full))


def test_areas_of_a_long_list_keep_their_digits():
    """One error at each end of 100,000: (H_N + 1/N)/N, and H_N from its known expansion."""
    n = 100_000
    error = np.zeros(n)
    error[[0, -1]] = 1
    harmonic = np.log(n) + np.euler_gamma + 1 / (2 * n) - 1 / (12 * n**2)
    assert aurc(np.arange(n, 0, -1), error) == pytest.approx((harmonic + 1 / n) / n, rel=1e-14)


def test_a_perfect_ranking_loses_nothing_at_any_length():
    for n, wrong in ((7, 3), (1000, 333), (99_999, 12_345)):
        error = np.arange(n) >= n - wrong
        assert eaurc(np.arange(n, 0, -1), error) == 0.0


def test_no_observation_has_no_risk():
    found = risk([], [])
    assert (found.n, found.aurc, found.eaurc, found.augrc) == (0, None, None, None)
    assert risk([0.5], [1], [0]) == found


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_confidence_that_is_not_finite_is_refused(bad):
    with pytest.raises(InputError, match=r"confidence must be finite, got .* in row 1"):
        aurc([0.5, bad], [0, 1])


def test_errors_are_zero_or_one():
    with pytest.raises(InputError, match=r"error must be 0 or 1, got 0\.5 in row 0"):
        aurc([0.5], [0.5])
    with pytest.raises(InputError, match="for each of the 1 observations"):
        aurc([0.5], [0, 1])


def test_risk_redraws_equal_the_repeated_lists():
    generator = np.random.default_rng(9)
    rows = bags(np.column_stack([generator.random(50).round(1), generator.integers(0, 2, 50)]), clusters=9)
    found = risk_redraws(rows, 0, 1)
    for b in range(7):
        alone = risk(*repeated(rows, b).T)
        assert (found.aurc[b], found.eaurc[b], found.augrc[b]) == (alone.aurc, alone.eaurc, alone.augrc)
    assert np.array_equal(found.aurc, aurc_redraws(rows, 0, 1))
    assert np.array_equal(found.eaurc, eaurc_redraws(rows, 0, 1))
    assert np.array_equal(found.augrc, augrc_redraws(rows, 0, 1))


def test_redraws_of_nothing_are_undefined():
    rows = RowTotals(np.zeros((0, 2)), np.zeros(0, dtype=np.int64), np.ones((2, 1), dtype=np.int64))
    assert np.isnan(risk_redraws(rows, 0, 1).aurc).tolist() == [True, True]
    assert ap_redraws(rows, 0, 1, 1, np.array([3, 0]))[0] == 0.0


def test_a_block_of_equal_confidences_cannot_be_cut():
    """Six at 1.0 (one wrong), then 0.8 and 0.7, both wrong."""
    points = attainable_points([1.0] * 6 + [0.8, 0.7], [0, 0, 0, 1, 0, 0, 1, 1])
    assert points.threshold.tolist() == [1.0, 0.8, 0.7]
    assert points.accepted.tolist() == [6, 7, 8]
    assert points.coverage.tolist() == [0.75, 0.875, 1.0]
    assert points.precision == pytest.approx([5 / 6, 5 / 7, 5 / 8])


def test_what_weighs_nothing_is_no_operating_point():
    points = attainable_points([0.9, 0.5], [1, 0], [0, 2])
    assert (points.threshold.tolist(), points.accepted.tolist(), points.n) == ([0.5], [2], 2)
    assert attainable_points([], []).n == 0


def test_everything_that_is_offered_is_there():
    assert all(hasattr(ranking, name) for name in ranking.__all__)
