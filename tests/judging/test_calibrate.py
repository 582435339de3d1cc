"""Calibration by simulation: agreement within sampling error, the biased dimension by name, no run of an agent."""

from __future__ import annotations

import contextlib
import math

import pytest

from geoeval.errors import ConfigError, InputError
from geoeval.judge import calibrate
from geoeval.judging.figures import Identity, calibration_from
from geoeval.judging.verdicts import CountingExecutor
from geoeval.stats.interval import wilson

JUDGE = Identity("stub", "none", "rubric-1", "a" * 64, "b" * 64, "c" * 64)


def exact(recorded):
    known = {entry.task_id: entry for entry in recorded.entries}
    return lambda episode: {
        "outcome": known[episode.task_id].outcome,
        "dimensions": dict(known[episode.task_id].dimensions),
    }


def test_a_judge_that_agrees_95_percent_of_the_time_reports_about_that(recorded, stub):
    """Within 3 standard errors of a share of 250: 3·√(0.95·0.05/250) = 0.041; of 1250 verdicts, 0.018."""
    for seed in range(5):
        found = calibrate(recorded, stub(seed), JUDGE)
        assert abs(found.agreement.agreement - 0.95) <= 3 * math.sqrt(0.95 * 0.05 / 250)
        assert abs(found.pooled["agreement"] - 0.95) <= 3 * math.sqrt(0.95 * 0.05 / 1250)
        agreed = found.overall.both_pass + found.overall.both_fail
        assert (found.agreement.low, found.agreement.high) == wilson(agreed, 250)


@pytest.mark.parametrize(("way", "direction"), [({"rejects": 0.27}, "judge_lower"), ({"accepts": 0.4}, "judge_higher")])
@pytest.mark.parametrize("dimension", ["caveat", "unit"])
def test_a_judge_biased_on_one_of_five_is_named_while_the_overall_figure_hardly_moves(
    recorded, stub, way, direction, dimension
):
    for seed in range(5):
        plain = calibrate(recorded, stub(seed), JUDGE)
        found = calibrate(recorded, stub(seed, biased=dimension, **way), JUDGE)
        assert found.biased_dimensions == {dimension: direction}
        assert found.document["biased_dimensions"] == [{"dimension": dimension, "direction": direction}]
        assert abs(found.agreement.agreement - plain.agreement.agreement) < 0.04
        assert abs(found.pooled["agreement"] - plain.pooled["agreement"]) < 0.04


def test_the_pooled_figure_moves_by_under_four_points_for_a_bias_of_eighteen(recorded):
    """A judge that is exact but for 45 of 250 verdicts in one dimension: 18 points there, 3.6 points over all five."""
    honest, seen = exact(recorded), []

    def judge(episode):
        given = honest(episode)
        if given["dimensions"]["source"] and len(seen) < 45:
            seen.append(episode.task_id)
            given["dimensions"]["source"] = False
        return given

    found = calibrate(recorded, judge, JUDGE)
    assert found.pooled["agreement"] == pytest.approx(1 - 0.036)
    assert found.agreement.agreement == 1.0
    assert found.biased_dimensions == {"source": "judge_lower"}
    assert found.assessed()["source"].bias == pytest.approx(-0.18)


def test_a_judge_biased_on_none_names_none(recorded, stub):
    """Over 200 seeds at most 5 % false alarms, with a margin that spares none of them."""
    alarms = sum(bool(calibrate(recorded, stub(seed), JUDGE, margin=0.01).biased_dimensions) for seed in range(200))
    assert alarms <= 10


def test_no_agent_is_run_and_one_that_is_run_is_noticed(recorded):
    class Agent:
        def run(self, task_id):
            return {"answer": "fresh"}

    counter = CountingExecutor(Agent())
    honest = exact(recorded)
    found = calibrate(recorded, honest, JUDGE, executor=counter)
    assert counter.runs == found.executor_runs == 0

    def runs_again(episode, executor):
        executor.run(episode.task_id)
        return honest(episode)

    with pytest.raises(InputError, match="the counter at the executor reads 250"):
        calibrate(recorded, runs_again, JUDGE, executor=counter)

    def hides_it(episode, *, executor):
        with contextlib.suppress(InputError):
            executor.run(episode.task_id)
        return honest(episode)

    with pytest.raises(InputError, match="must run no episode"):
        calibrate(recorded, hides_it, JUDGE)


def test_two_passes_use_the_same_entries_in_the_same_order(recorded):
    honest, passes = exact(recorded), ([], [])
    results = []
    for seen in passes:

        def judge(episode, seen=seen):
            seen.append((episode.task_id, episode.episode["answer"]))
            episode.episode.clear()  # what a judge does to its copy stays with it
            return honest(episode)

        results.append(calibrate(recorded, judge, JUDGE))
    assert passes[0] == passes[1]
    assert len(passes[0]) == len(recorded.entries)
    assert results[0].document == results[1].document
    assert results[0].used_sha256 == results[1].used_sha256


def test_a_judge_never_sees_the_verifier(recorded):
    honest = exact(recorded)

    def judge(episode):
        assert {name for name in dir(episode) if not name.startswith("_")} == {"task_id", "episode", "dimensions"}
        return honest(episode)

    calibrate(recorded, judge, JUDGE)


def test_undecided_verdicts_and_swapped_orders_are_counted(recorded):
    honest = exact(recorded)
    asked = []

    def judge(episode):
        given = honest(episode)
        asked.append(episode)
        if len(asked) <= 10:
            given["dimensions"]["unit"] = "indeterminate"
        if len(asked) <= 4:
            given["outcome"] = None
        if len(asked) > 200:
            given["swapped_outcome"] = given["outcome"] if len(asked) > 207 else not given["outcome"]
        return given

    found = calibrate(recorded, judge, JUDGE)
    assert (found.overall.indeterminate, found.dimensions["unit"].indeterminate) == (4, 10)
    assert (found.agreement.n, found.assessed()["unit"].n) == (246, 240)
    assert (found.order_asked, found.order_inconsistent) == (50, 7)
    assert found.agreement.agreement == 1.0


def test_every_metric_bears_judge_model_and_rubric(recorded, stub):
    found = calibrate(recorded, stub(1), JUDGE).document
    assert {metric["name"] for metric in found["metrics"]} == {
        "judge_agreement",
        "judge_bias",
        "judge_indeterminate",
        "judge_order_inconsistent",
    }
    for metric in found["metrics"]:
        assert {"judge": "stub", "model": "none", "rubric": "rubric-1"}.items() <= metric["tags"].items()
    assert {metric["tags"].get("dimension") for metric in found["metrics"]} == {None, *recorded.dimensions}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (None, "expected a mapping"),
        (True, "expected a mapping"),
        ({"outcome": True}, "an object 'dimensions'"),
        ({"dimensions": {}}, "expected 'outcome'"),
        ({"outcome": True, "dimensions": {"unit": True}}, "must judge each dimension"),
        ({"outcome": 1, "dimensions": "all"}, "'outcome' must be 'pass'"),
        ({"outcome": "maybe", "dimensions": "all"}, "'outcome' must be 'pass'"),
        ({"outcome": True, "dimensions": "all", "swapped": True}, "did you mean 'swapped_outcome'"),
        ({"outcome": True, "dimensions": "all", "swapped_outcome": 3}, "'swapped_outcome' must be"),
    ],
)
def test_what_is_no_verdict_is_refused_with_the_entry(recorded, given, says):
    if isinstance(given, dict) and given.get("dimensions") == "all":
        given = {**given, "dimensions": dict.fromkeys(recorded.dimensions, True)}
    with pytest.raises(InputError, match=r"entry '[0-9a-f]{16}' of task 'map-000'") as caught:
        calibrate(recorded, lambda _: given, JUDGE)
    assert says in str(caught.value)


def test_a_judge_that_raises_is_refused_with_the_entry(recorded):
    with pytest.raises(InputError, match=r"task 'map-000': it raised ZeroDivisionError"):
        calibrate(recorded, lambda _: 1 / 0, JUDGE)
    with pytest.raises(ConfigError, match="is one a percentage"):
        calibrate(recorded, lambda _: 1 / 0, JUDGE, margin=10)


def test_a_result_is_read_back_and_a_changed_one_is_refused(recorded, stub):
    found = calibrate(recorded, stub(2), JUDGE)
    assert calibration_from(found.document, "h, line 1").document == found.document
    for key, value in (("entries", 9), ("overall", {}), ("biased_dimensions", [{"dimension": "unit"}]), ("order", {})):
        with pytest.raises(InputError, match="h, line 1"):
            calibration_from({**found.document, key: value}, "h, line 1")
