"""The score of a candidate, against a slow and obvious version of each rule."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoeval.errors import LeakageError
from geoeval.estimation import Plan
from geoeval.gates import parse_gate
from geoeval.model import Gate
from geoeval.selection import AbstentionPolicy, Record, Suggestion
from geoeval.selection.policy import QualityRule
from geoeval.selection.scoring import chosen_threshold, score
from geoeval.selection.settings import ThresholdRule
from geoeval.stats.interval import clustered_wilson, wilson

LABELS = ("a", "b", "c")
PLAN = Plan(redraws=40, ranked_redraws=10)
POLICY = AbstentionPolicy(name="p", confidence_floor=0.3, quality=QualityRule(accepted=("good",), refused=("poor",)))


def record(split, truth, said=None, confidence=0.0, quality=None, subject=0, cluster=None):
    key = f"{ {'train': 0, 'validation': 205, 'test': 230}[split]:02x}{subject:014x}"
    answer = None if said is None else Suggestion(said, confidence)
    return Record("m", key, split, truth, answer, quality, key if cluster is None else cluster)


def scored(records, min_coverage=0.5, policy=None, gates=(), plan=PLAN):
    return score(
        "m",
        records,
        labels=LABELS,
        rule=ThresholdRule(min_coverage=min_coverage),
        plan=plan,
        policy=policy,
        gates=gates,
    )


def test_by_hand():
    """Validation: 0.9 right, 0.8 right, 0.7 wrong, nothing. Half of four is two, both right: the threshold is 0.8.

    Test: three accepted (a as a, a as b, b as b), one unsure, one nothing: coverage 3/5, precision 2/3.
    """
    validation = [
        record("validation", 0, 0, 0.9, subject=1),
        record("validation", 1, 1, 0.8, subject=2),
        record("validation", 2, 1, 0.7, subject=3),
        record("validation", 2, subject=4),
    ]
    test = [
        record("test", 0, 0, 0.8, subject=1),
        record("test", 0, 1, 0.9, subject=2),
        record("test", 1, 1, 1.0, subject=3),
        record("test", 2, 2, 0.79, subject=4),
        record("test", 2, subject=5),
    ]
    found = scored(validation + test)
    assert found.threshold.threshold == 0.8
    assert (found.threshold.n, found.threshold.accepted, found.threshold.coverage) == (4, 2, 0.5)
    assert found.estimates["coverage"].value == 3 / 5
    assert found.estimates["precision_at_coverage"].value == 2 / 3
    assert found.confusion == {("a", "a"): 1, ("a", "b"): 1, ("b", "b"): 1}
    # F1 of a: 2·1/(2 + 1), of b: 2·1/(1 + 2); c is in no accepted case.
    assert found.estimates["macro_f1"].value == pytest.approx(2 / 3)
    assert [(row.label, row.predicted) for row in found.macro.excluded] == [("c", 0)]
    assert found.abstentions == {"no_suggestion": 1, "poor_quality": 0, "low_confidence": 1}
    assert found.validation_abstentions == {"no_suggestion": 1, "poor_quality": 0, "low_confidence": 1}
    # One bin of 0.8, one of 0.9 and 1.0: (|0.8 − 1| + |1.9 − 1|) / 3.
    assert found.estimates["ece"].value == pytest.approx((0.2 + 0.9) / 3)
    assert found.per_class["a"]["recall"].value == 0.5
    assert (found.per_class["a"]["precision"].numerator, found.per_class["a"]["precision"].denominator) == (1, 1)
    # The unsure answer is right: of five cases, four can be ranked.
    assert found.curve.n == 4


def test_coverage_is_a_share_of_all_records():
    """Two of five is exactly two fifths, whatever 0.4 is in binary; the three that offered nothing count."""
    rows = [record("validation", 0, 0, 0.9, subject=1), record("validation", 0, 0, 0.8, subject=2)]
    rows += [record("validation", 0, subject=3 + i) for i in range(3)]
    assert chosen_threshold(rows, ThresholdRule(min_coverage=0.4), None)[0].threshold == 0.8
    assert chosen_threshold(rows, ThresholdRule(min_coverage=0.41), None)[0] is None


observation = st.tuples(
    st.integers(0, 2),
    st.one_of(st.none(), st.tuples(st.integers(0, 2), st.sampled_from([0.0, 0.2, 0.3, 0.5, 0.75, 1.0]))),
    st.sampled_from([None, "good", "poor"]),
)


def slow_threshold(rows, min_coverage):
    """Every distinct confidence tried on its own."""
    usable = [
        (one.suggestion.confidence, one.suggestion.label == one.reference)
        for one in rows
        if one.suggestion is not None and one.quality != "poor" and one.suggestion.confidence >= 0.3
    ]
    best = None
    for cut in {confidence for confidence, _ in usable}:
        held = [right for confidence, right in usable if confidence >= cut]
        if Fraction(len(held), len(rows)) >= Fraction(str(min_coverage)):
            found = (Fraction(sum(held), len(held)), len(held), cut)
            best = found if best is None or found > best else best
    return None if best is None else best[2]


@settings(max_examples=60)
@given(st.lists(observation, max_size=12), st.lists(observation, max_size=12), st.sampled_from([0.0, 0.1, 0.5, 1.0]))
def test_against_a_slow_version(validation, test, min_coverage):
    rows = [
        record(split, truth, *(said or ()), quality=quality, subject=i)
        for split, part in (("validation", validation), ("test", test))
        for i, (truth, said, quality) in enumerate(part)
    ]
    found = scored(rows, min_coverage, POLICY)
    cut = slow_threshold([one for one in rows if one.split == "validation"], min_coverage)
    assert (None if found.threshold is None else found.threshold.threshold) == cut
    if cut is None:
        assert {one.value for one in found.estimates.values()} == {None}
        return
    assert cut >= 0.3
    tested = [one for one in rows if one.split == "test"]
    held = [
        (one.reference, one.suggestion.label)
        for one in tested
        if one.suggestion is not None and one.quality != "poor" and one.suggestion.confidence >= cut
    ]
    assert sum(found.abstentions.values()) + len(held) == len(tested)
    assert sum(found.confusion.values()) == len(held)
    assert found.estimates["coverage"].value == (len(held) / len(tested) if tested else None)
    right = sum(a == b for a, b in held)
    assert found.estimates["precision_at_coverage"].value == (right / len(held) if held else None)
    supported = sorted({a for a, _ in held})
    f1 = [
        2 * sum(a == b == c for a, b in held) / (sum(a == c for a, _ in held) + sum(b == c for _, b in held))
        for c in supported
    ]
    expected = sum(f1) / len(f1) if f1 else None
    assert found.estimates["macro_f1"].value == pytest.approx(expected)
    assert {row.label for row in found.macro.excluded} == {LABELS[c] for c in range(3) if c not in supported}


@settings(max_examples=25)
@given(st.lists(observation, min_size=2, max_size=20), st.randoms())
def test_the_order_of_records_changes_nothing(rows, shuffler):
    made = [
        record(("validation", "test")[i % 2], truth, *(said or ()), quality=quality, subject=i % 5)
        for i, (truth, said, quality) in enumerate(rows)
    ]
    moved = list(made)
    shuffler.shuffle(moved)
    one, other = scored(made, 0.1, POLICY), scored(moved, 0.1, POLICY)
    for name in ("threshold", "estimates", "per_class", "confusion", "macro", "bins", "abstentions", "verdicts"):
        assert getattr(one, name) == getattr(other, name), name


def many(seed=1, subjects=30):
    rng = random.Random(seed)
    rows = []
    for split in ("validation", "test"):
        for i in range(subjects * 3):
            truth, confidence = rng.randrange(3), round(rng.random(), 3)
            rows.append(record(split, truth, truth if rng.random() < confidence else 0, confidence, subject=i // 3))
    return rows


def test_intervals_know_the_clusters():
    found = scored(many())
    test = [one for one in many() if one.split == "test"]
    groups = {}
    for one in test:
        k, n = groups.get(one.cluster, (0, 0))
        groups[one.cluster] = (k + (one.suggestion.confidence >= found.threshold.threshold), n + 1)
    spread = clustered_wilson(*zip(*[groups[key] for key in sorted(groups)], strict=True))
    interval = found.estimates["coverage"].interval
    assert (interval.low, interval.high, interval.clusters) == (spread.low, spread.high, 30)
    assert found.estimates["macro_f1"].interval.method == "cluster_bootstrap"
    assert found.estimates["ece"].interval.low <= found.estimates["ece"].value <= found.estimates["ece"].interval.high


def test_declared_independence_gives_plain_intervals_only():
    rows = [record(one.split, one.reference, one.suggestion.label, one.suggestion.confidence, subject=i, cluster="")
            for i, one in enumerate(many())]  # fmt: skip
    found = scored(rows, plan=Plan(clustered=False))
    given_ = found.estimates["coverage"]
    low_high = wilson(int(given_.numerator), int(given_.denominator))
    assert (given_.interval.low, given_.interval.high) == low_high
    assert found.estimates["macro_f1"].interval is None
    assert found.estimates["macro_f1"].reason == "no_interval"


@pytest.mark.parametrize("splits", [("test",), ("validation",), ("train",), ()])
def test_what_cannot_be_scored_is_undefined_and_not_cleared(splits):
    rows = [one for one in many() if one.split in splits]
    found = scored(rows, gates=(parse_gate("macro_f1>=0@value"),))
    assert {(one.value, one.reason) for one in found.estimates.values()} == {(None, "no_support")}
    assert {one.status for one in found.verdicts} == {"not_evaluable"}
    assert not found.cleared


def test_nothing_accepted_on_test_is_no_precision():
    rows = [record("validation", 0, 0, 0.9, subject=1), record("test", 0, 0, 0.1, subject=1)]
    found = scored(rows, gates=(Gate("g", "precision_at_coverage", "at_least", 0.0, on="value"),))
    assert found.estimates["coverage"].value == 0
    assert found.estimates["precision_at_coverage"].value is None
    assert found.verdicts[0].status == "not_evaluable"
    assert not found.cleared


def test_no_gate_clears_nobody():
    found = scored(many())
    assert [one.reason for one in found.verdicts] == ["no_policy"]
    assert not found.cleared


def test_limits_are_inclusive():
    """Precision of exactly 0.9 and a calibration error of exactly 0.05 pass, although 0.85 − 0.9 is not −0.05."""
    validation = [record("validation", 0, 0, 0.85, subject=i) for i in range(10)]
    test = [record("test", 0, 0 if i else 1, 0.85, subject=i) for i in range(10)]
    gates = (
        Gate("p", "precision_at_coverage", "at_least", 0.9, on="value"),
        Gate("e", "ece", "at_most", 0.05, on="value"),
    )
    found = scored(validation + test, gates=gates)
    assert found.estimates["ece"].value != 0.05
    assert [one.status for one in found.verdicts] == ["pass", "pass"]
    tighter = (Gate("e", "ece", "at_most", 0.0499, on="value"),)
    assert scored(validation + test, gates=tighter).verdicts[0].status == "fail"


def test_validation_and_test_share_no_cluster():
    rows = [record("validation", 0, 0, 0.9, subject=1, cluster="x"), record("test", 0, 0, 0.9, subject=2, cluster="x")]
    with pytest.raises(LeakageError, match="clusters must not be in both"):
        scored(rows)


def test_the_threshold_does_not_look_at_test():
    """Whatever stands in test, the threshold and the hash of the validation ids stay."""
    rows = many()
    other = [one for one in rows if one.split == "validation"] + [record("test", 2, 0, 0.99, subject=77)]
    one, two = scored(rows), scored(other)
    assert one.threshold == two.threshold
    assert one.validation_ids_sha256 == two.validation_ids_sha256
    assert one.test_ids_sha256 != two.test_ids_sha256
