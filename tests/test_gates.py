"""Gates: what passes, what fails, and above all what must never pass."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoeval.errors import ConfigError
from geoeval.gates import (
    Waiver,
    apply_waivers,
    check_metrics,
    decide,
    decide_all,
    decide_families,
    exit_code,
    family_status,
    parse_gate,
    smallest_n,
)
from geoeval.model import REASONS, Estimate, Evaluation, Gate, Interval, Stratum


def floor(limit=0.9, **options):
    return Gate("floor", "recall", "at_least", limit, **{"on": "value", **options})


def wilson(low, high, value=0.95, clusters=40, effective=30.0, support=100, marks=()):
    interval = Interval(low, high, 0.95, "wilson_clustered", clusters, effective, 1.0)
    return Estimate(value, "1", support, value * support, support, interval, (low, high), marks)


def bootstrap(low, high, clusters=40, effective=30.0):
    return Estimate(0.9, "1", 100, interval=Interval(low, high, 0.95, "cluster_bootstrap", clusters, effective))


def evaluation(estimates=None, per_class=None, strata=()):
    return Evaluation("footprint", "footprint/1", "s", estimates or {}, per_class or {}, tuple(strata))


def point(value, support=100):
    return Estimate(value, "1", support)


def north(recall, **options):
    return Stratum({"region": "north"}, {"recall": recall}, **options)


@pytest.mark.parametrize("direction", ["at_least", "at_most"])
@pytest.mark.parametrize("on", ["value", "interval"])
@pytest.mark.parametrize(
    ("name", "estimate", "reason"),
    [
        ("missing metric", None, "metric_missing"),
        ("null metric", Estimate(None, "1", 3, reason="undefined_ratio"), "undefined_ratio"),
        ("null metric without a reason", Estimate(None, "1", 3), "undefined_ratio"),
        ("null metric without support", Estimate(None, "1", 0), "no_support"),
        ("not a number", Estimate(math.nan, "1", 3), "undefined_ratio"),
        ("plus infinity", Estimate(math.inf, "1", 3), "undefined_ratio"),
        ("minus infinity", Estimate(-math.inf, "1", 3), "undefined_ratio"),
        ("zero rows", Estimate(1.0, "1", 0), "no_support"),
        ("too little support", Estimate(1.0, "1", 4), "low_support"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_defect_is_never_a_pass(name, estimate, reason, on, direction):
    limit = 0.0 if direction == "at_least" else 1.0
    verdict = decide(Gate("g", "recall", direction, limit, on=on, min_support=5), estimate)
    assert (verdict.status, verdict.reason) == ("not_evaluable", reason), name
    assert verdict.value is None or math.isfinite(verdict.value)


def test_a_limit_that_is_not_a_number_decides_nothing():
    assert decide(floor(math.nan), point(1.0)).status == "not_evaluable"


def test_an_empty_policy_is_not_evaluable():
    verdicts, _ = decide_all([], evaluation({"recall": point(1.0)}), policy_required=True)
    assert [(verdict.status, verdict.reason) for verdict in verdicts] == [("not_evaluable", "no_policy")]
    assert family_status([]) == "not_evaluable"


def test_no_evaluation_at_all_is_not_evaluable():
    assert [verdict.reason for verdict in decide_families([], {})] == ["no_policy"]


def test_a_gate_whose_family_never_ran_is_seen():
    """The declared set is compared with what was done: a gate that never ran is no pass."""
    gates = [replace(floor(), family="footprint"), replace(floor(), id="other", family="raster")]
    verdicts = decide_families(gates, {"a": evaluation({"recall": point(1.0)})})
    assert {verdict.id: verdict.status for verdict in verdicts} == {"a:floor": "pass", "other": "not_evaluable"}


def test_an_unknown_subgroup_is_not_evaluable():
    verdicts, _ = decide_all([floor(scope="per_subgroup", by="region")], evaluation({"recall": point(1.0)}))
    assert [verdict.status for verdict in verdicts] == ["not_evaluable"]


def test_an_unknown_class_is_not_evaluable():
    gates = [floor(scope="per_class", by="car"), floor(scope="per_class")]
    for gate in gates:
        verdicts, _ = decide_all([gate], evaluation({"recall": point(1.0)}))
        assert [verdict.status for verdict in verdicts] == ["not_evaluable"]


@given(st.floats(allow_nan=True, allow_infinity=True), st.floats(-2, 2), st.sampled_from(["at_least", "at_most"]))
def test_pass_means_finite_and_on_the_right_side(value, limit, direction):
    verdict = decide(Gate("g", "m", direction, limit, on="value"), point(value))
    if verdict.status == "pass":
        assert math.isfinite(value)
        assert verdict.value >= float(f"{limit:.11e}") if direction == "at_least" else verdict.value <= limit + 1e-9
    assert verdict.reason is None or verdict.reason in REASONS


def test_limits_are_inclusive_on_the_rounded_value():
    assert decide(floor(0.3), point(0.1 + 0.2)).status == "pass"
    assert decide(floor(0.3), point(0.3 - 1e-15)).status == "pass"
    assert decide(floor(0.3), point(0.3 - 1e-10)).status == "fail"
    assert decide(Gate("g", "rmse", "at_most", 0.3, on="value"), point(0.1 + 0.2)).status == "pass"


@pytest.mark.parametrize(
    ("direction", "low", "high", "status", "reason"),
    [
        ("at_least", 0.9, 0.99, "pass", None),
        ("at_least", 0.8, 0.8999, "fail", None),
        ("at_least", 0.8, 0.9, "not_evaluable", "ci_straddles_threshold"),
        ("at_most", 0.8, 0.9, "pass", None),
        ("at_most", 0.9001, 0.95, "fail", None),
        ("at_most", 0.9, 0.95, "not_evaluable", "ci_straddles_threshold"),
    ],
)
def test_the_whole_interval_is_held_to_the_limit(direction, low, high, status, reason):
    verdict = decide(Gate("g", "recall", direction, 0.9), wilson(low, high))
    assert (verdict.status, verdict.reason) == (status, reason)


def test_without_an_interval_an_interval_gate_decides_nothing():
    gate = Gate("g", "tp", "at_least", 1.0)
    assert decide(gate, point(5.0)).reason == "no_interval"
    assert decide(gate, Estimate(5.0, "1", 5, reason="single_cluster")).reason == "single_cluster"


@pytest.mark.parametrize(
    ("estimate", "reason"),
    [
        (wilson(0.95, 0.99, clusters=10, effective=5.0), None),
        (wilson(0.95, 0.99, clusters=9), "few_clusters"),
        (wilson(0.95, 0.99, effective=4.9), "few_clusters"),
        (wilson(0.95, 0.99, marks=("few_clusters",)), "few_clusters"),
        (wilson(0.95, 0.99, clusters=None, effective=None), None),
        (bootstrap(0.95, 0.99, clusters=20, effective=10.0), None),
        (bootstrap(0.95, 0.99, clusters=19), "few_clusters"),
        (bootstrap(0.95, 0.99, effective=9.9), "few_clusters"),
    ],
)
def test_few_clusters_bind_interval_gates_only(estimate, reason):
    assert decide(Gate("g", "m", "at_least", 0.9), estimate).reason == reason
    assert decide(Gate("g", "m", "at_least", 0.5, on="value"), estimate).status == "pass"


def test_the_smallest_n_is_printed_for_proportions_only():
    """n / (n + 3.8415) reaches 0.9 at n = 34.6: 35 hits of 35 could pass, 34 of 34 could not."""
    gate = Gate("g", "recall", "at_least", 0.9)
    assert decide(gate, wilson(0.8, 0.95)).smallest_n == 35
    z2 = 1.959963984540054**2
    assert 34 / (34 + z2) < 0.9 <= 35 / (35 + z2)
    assert decide(gate, bootstrap(0.8, 0.95)).smallest_n is None
    assert smallest_n(Gate("g", "recall", "at_most", 0.1), wilson(0.0, 0.05)) == 35
    assert smallest_n(Gate("g", "recall", "at_least", 0.9, min_support=50), wilson(0.8, 0.95)) == 50


@pytest.mark.parametrize(("limit", "n"), [(0.86, 20), (0.95, 59), (0.99, 299)])
def test_the_smallest_n_of_an_exact_bound_is_the_published_one(limit, n):
    """Zero misses in n supports recall of at least 0.86 (n = 20), 0.95 (59), 0.99 (299)."""
    exact = Estimate(1.0, "1", n, n, n, Interval(0.05 ** (1 / n), 1.0, 0.95, "clopper_pearson_lower"))
    assert smallest_n(Gate("g", "recall", "at_least", limit), exact) == n
    assert decide(Gate("g", "recall", "at_least", limit), exact).status == "pass"


def test_a_class_that_fails_is_named():
    classes = {"car": {"recall": point(0.95)}, "bus": {"recall": point(0.5)}}
    verdicts, _ = decide_all([floor(scope="per_class")], evaluation(per_class=classes))
    assert [(v.scope, v.status) for v in verdicts] == [("per_class:bus", "fail"), ("per_class:car", "pass")]
    assert family_status(verdicts) == "fail"


def test_one_class_can_be_gated_alone():
    classes = {"car": {"recall": point(0.95)}, "bus": {"recall": point(0.5)}}
    gate = parse_gate("recall@car>=0.9@value")
    verdicts, _ = decide_all([gate], evaluation(per_class=classes))
    assert [v.status for v in verdicts] == ["pass"]


def test_a_good_whole_does_not_hide_a_bad_critical_subgroup():
    good, bad = point(0.95), point(0.5, support=20)
    verdicts, strata = decide_all([floor()], evaluation({"recall": good}, strata=[north(bad, critical=True)]))
    assert [(v.id, v.status) for v in verdicts] == [("floor", "pass"), ("floor[region=north]", "fail")]
    assert strata[0].status == "fail"


@pytest.mark.parametrize(
    ("stratum", "reason"),
    [
        (north(point(None, 0), critical=True, support_reason="critical_subgroup_missing"), "critical_subgroup_missing"),
        (Stratum({"region": "north"}, {}, critical=True), "critical_subgroup_missing"),
        (north(point(1.0, 9), critical=True), "low_support"),
    ],
)
@pytest.mark.parametrize("by", [True, False])
def test_a_critical_subgroup_that_is_absent_or_small_blocks(stratum, reason, by):
    gate = floor(scope="per_subgroup", by="region") if by else floor()
    verdicts, strata = decide_all([gate], evaluation({"recall": point(1.0)}, strata=[stratum]), min_support=10)
    assert reason in [v.reason for v in verdicts if "north" in v.scope]
    assert family_status(verdicts) == "not_evaluable"
    assert (strata[0].status, strata[0].support_reason) == ("not_evaluable", reason)


def test_a_subgroup_is_held_once_to_a_gate():
    gates = [floor(), floor(scope="per_subgroup", by="region")]
    gates[1] = replace(gates[1], id="by-region")
    verdicts, _ = decide_all(gates, evaluation({"recall": point(1.0)}, strata=[north(point(1.0), critical=True)]))
    assert [v.id for v in verdicts] == ["floor", "by-region[region=north]"]


def test_a_subgroup_that_no_gate_names_is_reported_and_not_gated():
    verdicts, strata = decide_all([floor()], evaluation({"recall": point(1.0)}, strata=[north(point(0.1))]))
    assert [v.status for v in verdicts] == ["pass"]
    assert (strata[0].status, strata[0].support_reason) == ("not_evaluable", "no_policy")


def test_deciding_twice_changes_nothing():
    strata = [north(point(1.0, 5), critical=True), Stratum({"region": "south"}, {"recall": point(0.2)})]
    gates = [floor(), replace(floor(scope="per_subgroup", by="region", min_support=50), id="by-region")]
    first, settled = decide_all(gates, evaluation({"recall": point(1.0)}, strata=strata), min_support=3)
    second, again = decide_all(gates, evaluation({"recall": point(1.0)}, strata=settled), min_support=3)
    assert (first, settled) == (second, again)


def test_gates_of_other_families_are_left_out_and_a_gate_counts_once():
    gates = [floor(), floor(), replace(floor(), id="x", family="raster")]
    verdicts, _ = decide_all(gates, evaluation({"recall": point(1.0)}))
    assert [(v.id, v.family) for v in verdicts] == [("floor", "footprint")]


@pytest.mark.parametrize(("values", "code"), [([], 0), ([1.0], 0), ([1.0, None], 2), ([0.1, 1.0], 3), ([0.1, None], 3)])
def test_exit_codes(values, code):
    assert exit_code([decide(floor(), None if value is None else point(value)) for value in values]) == code


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("recall>=0.9", ("recall", "at_least", 0.9, "interval", "overall", None)),
        (" rmse <= 1.5e-1 ", ("rmse", "at_most", 0.15, "interval", "overall", None)),
        ("bias>=-.5@value", ("bias", "at_least", -0.5, "value", "overall", None)),
        ("recall>=0.9 on value", ("recall", "at_least", 0.9, "value", "overall", None)),
        ("recall@small car>=0.8", ("recall", "at_least", 0.8, "interval", "per_class", "small car")),
        ("f1[region]>=0.7@interval", ("f1", "at_least", 0.7, "interval", "per_subgroup", "region")),
    ],
)
def test_gates_can_be_written_as_text(text, expected):
    gate = parse_gate(text)
    assert (gate.metric, gate.direction, gate.limit, gate.on, gate.scope, gate.by) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("recall", "needs '>=' or '<='"),
        ("recall>0.9", "inclusive"),
        ("recall==0.9", "needs '>=' or '<='"),
        ("recall>=90%", "0.9 and not 90 %"),
        ("recall>=nan", "a gate reads"),
        ("recall>=inf", "a gate reads"),
        (">=0.9", "a gate reads"),
        ("recall>=0.9@median", "a gate reads"),
        ("", "needs '>='"),
    ],
)
def test_a_malformed_gate_is_refused_with_an_example(text, says):
    with pytest.raises(ConfigError, match=says) as caught:
        parse_gate(text)
    assert "'recall>=0.9'" in str(caught.value)


def test_an_unknown_metric_is_refused_with_the_nearest_spelling():
    known = {"detection": {"recall", "f1"}, "raster": {"accuracy"}}
    check_metrics([parse_gate("accuracy>=0.5"), parse_gate("f1>=0.5", "detection")], known)
    with pytest.raises(ConfigError, match=r"no metric 'acuracy'; did you mean 'accuracy'\?"):
        check_metrics([parse_gate("acuracy>=0.5", "raster")], known)
    with pytest.raises(ConfigError, match="no family 'rastr'; did you mean 'raster'"):
        check_metrics([parse_gate("accuracy>=0.5", "rastr")], known)


def test_a_waiver_changes_no_status():
    verdicts, _ = decide_all([floor()], evaluation({"recall": point(0.5)}), prefix="case:")
    waived = apply_waivers(verdicts, [Waiver("floor", "new camera", "release board")])
    assert [(v.status, v.waived_by) for v in waived] == [("fail", "release board")]
    assert exit_code(waived) == 3


def test_a_pass_is_never_waived():
    verdicts, _ = decide_all([floor()], evaluation({"recall": point(1.0)}))
    assert apply_waivers(verdicts, [Waiver("floor", "why", "who")]) == verdicts


def test_a_waiver_can_expire():
    verdicts, _ = decide_all([floor()], evaluation({"recall": point(0.5)}))
    waiver = Waiver("floor", "new camera", "release board", date(2026, 3, 31))
    assert apply_waivers(verdicts, [waiver], date(2026, 3, 31))[0].waived_by == "release board"
    assert apply_waivers(verdicts, [waiver], date(2026, 4, 1))[0].waived_by is None
    with pytest.raises(ConfigError, match="day of the decision"):
        apply_waivers(verdicts, [waiver])


@pytest.mark.parametrize(
    ("waiver", "says"),
    [
        (Waiver("flor", "why", "who"), "did you mean 'floor'"),
        (Waiver("floor", " ", "who"), "needs a reason"),
        (Waiver("floor", "why", ""), "needs a reason"),
    ],
)
def test_a_waiver_without_signature_or_gate_is_refused(waiver, says):
    verdicts, _ = decide_all([floor()], evaluation({"recall": point(0.5)}))
    with pytest.raises(ConfigError, match=says):
        apply_waivers(verdicts, [waiver])
