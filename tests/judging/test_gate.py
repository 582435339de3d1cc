"""The promotion gate refuses in each of the listed cases, and lets a perfect judge on enough entries pass."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from geoeval.errors import ConfigError
from geoeval.judge import append, calibrate, is_due, promotion_gate, read_history
from geoeval.judging.entries import set_of
from geoeval.judging.figures import Identity

JUDGE = Identity("stub", "none", "rubric-1", "a" * 64, "b" * 64, "c" * 64)
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def after(tmp_path, recorded):
    """The history after one calibration, two days ago."""

    def build(judge, entries=recorded, identity=JUDGE, ago=timedelta(days=2)):
        path = tmp_path / "history.jsonl"
        append(path, calibrate(entries, judge, identity), NOW - ago)
        return read_history(path)

    return build


def perfect(recorded):
    known = {entry.task_id: entry for entry in recorded.entries}
    return lambda one: {"outcome": known[one.task_id].outcome, "dimensions": dict(known[one.task_id].dimensions)}


def reasons(found):
    return [one.reason for one in found.refusals]


def test_a_perfect_judge_on_enough_entries_passes(after, recorded):
    found = promotion_gate(after(perfect(recorded)), JUDGE, recorded.sha256, now=NOW)
    assert (found.status, found.refusals, found.exit_code) == ("pass", (), 0)


def test_a_judge_that_agrees_95_percent_of_the_time_passes(after, recorded, stub):
    assert promotion_gate(after(stub(3)), JUDGE, recorded.sha256, now=NOW).status == "pass"


def test_no_result_is_refused(recorded):
    found = promotion_gate((), JUDGE, recorded.sha256, now=NOW)
    assert (found.status, reasons(found), found.exit_code) == ("not_evaluable", ["evidence_missing"], 2)


@pytest.mark.parametrize("tag", ["judge", "model", "rubric"])
def test_a_result_for_another_judge_model_or_rubric_version_is_no_result(after, recorded, tag):
    history = after(perfect(recorded))
    found = promotion_gate(history, replace(JUDGE, **{tag: "other"}), recorded.sha256, now=NOW)
    assert (found.status, reasons(found)) == ("not_evaluable", ["evidence_missing"])
    assert "the newest is for stub / none / rubric-1" in found.refusals[0].says


def test_a_stale_result_is_refused(after, recorded):
    history = after(perfect(recorded), ago=timedelta(days=7))
    assert promotion_gate(history, JUDGE, recorded.sha256, now=NOW).status == "pass"
    found = promotion_gate(history, JUDGE, recorded.sha256, now=NOW + timedelta(seconds=1))
    assert (found.status, reasons(found), found.exit_code) == ("not_evaluable", ["stale_calibration"], 2)


def test_a_result_from_the_future_is_refused(after, recorded):
    history = after(perfect(recorded))
    found = promotion_gate(history, JUDGE, recorded.sha256, now=NOW - timedelta(days=3))
    assert reasons(found) == ["stale_calibration"]


def test_another_set_is_refused(after, recorded):
    found = promotion_gate(after(perfect(recorded)), JUDGE, "0" * 64, now=NOW)
    assert (found.status, reasons(found), found.exit_code) == ("not_evaluable", ["manifest_mismatch"], 2)


@pytest.mark.parametrize("what", ["judge", "prompt", "rubric"])
@pytest.mark.parametrize("now_is", ["d" * 64, None])
def test_another_hash_of_judge_prompt_or_rubric_is_refused(after, recorded, what, now_is):
    changed = replace(JUDGE, **{f"{what}_sha256": now_is})
    found = promotion_gate(after(perfect(recorded)), changed, recorded.sha256, now=NOW)
    assert (found.status, reasons(found), found.exit_code) == ("not_evaluable", ["evidence_mismatch"], 2)
    assert f"the {what} is not the one" in found.refusals[0].says


def test_a_biased_dimension_is_refused_by_name(after, recorded, stub):
    found = promotion_gate(after(stub(3, biased="source", rejects=0.5)), JUDGE, recorded.sha256, now=NOW)
    assert (found.status, reasons(found), found.exit_code) == ("fail", ["biased_dimension"], 3)
    assert found.refusals[0].dimension == "source"
    assert "judge_lower" in found.refusals[0].says


def test_a_judge_that_passes_everything_as_a_whole_is_refused(after, recorded):
    """Each dimension is judged perfectly, and the outcome is always a pass."""
    honest = perfect(recorded)
    history = after(lambda one: {**honest(one), "outcome": "pass"})
    found = promotion_gate(history, JUDGE, recorded.sha256, now=NOW)
    assert (found.status, reasons(found), found.exit_code) == ("fail", ["biased_dimension"], 3)
    assert found.refusals[0].dimension == "outcome"
    assert found.refusals[0].says.startswith("the outcome: biased, judge_higher")
    written = history[-1].calibration.document
    assert (written["overall"]["verdict"], written["overall"]["direction"]) == ("biased", "judge_higher")
    assert written["biased_dimensions"] == []


def test_a_bias_in_a_result_that_does_not_count_decides_nothing(after, recorded, stub):
    history = after(stub(3, biased="source", rejects=0.5))
    found = promotion_gate(history, JUDGE, "0" * 64, now=NOW)
    assert (found.status, reasons(found), found.exit_code) == (
        "not_evaluable",
        ["manifest_mismatch", "biased_dimension"],
        2,
    )


def test_a_dimension_neither_shown_biased_nor_unbiased_is_refused(after, recorded):
    """A perfect judge on 30 entries: the bias may still be z²/(30 + z²) = 0.114, more than 0.1; on 35 it may not."""
    few = set_of(recorded.entries[:30])
    found = promotion_gate(after(perfect(few), few), JUDGE, few.sha256, now=NOW)
    assert (found.status, found.exit_code) == ("not_evaluable", 2)
    assert reasons(found) == ["ci_straddles_threshold"] * 6
    assert [one.dimension for one in found.refusals] == [*recorded.dimensions, "outcome"]


def test_thirty_five_entries_are_enough_for_a_perfect_judge(after, recorded):
    enough = set_of(recorded.entries[:35])
    assert promotion_gate(after(perfect(enough), enough), JUDGE, enough.sha256, now=NOW).status == "pass"


def test_the_margin_is_the_gates_own(after, recorded):
    history = after(perfect(recorded))
    assert promotion_gate(history, JUDGE, recorded.sha256, now=NOW, margin=0.02).status == "pass"
    assert promotion_gate(history, JUDGE, recorded.sha256, now=NOW, margin=0.01).status == "not_evaluable"


def test_a_judge_that_does_not_decide_is_refused(after, recorded):
    honest = perfect(recorded)

    def shy(episode):
        given = honest(episode)
        if not given["dimensions"]["unit"]:
            given["dimensions"]["unit"] = "indeterminate"
        return given

    found = promotion_gate(after(shy), JUDGE, recorded.sha256, now=NOW)
    assert (found.status, reasons(found)) == ("not_evaluable", ["low_support"])
    assert found.refusals[0].dimension == "unit"


def test_a_judge_that_decides_nothing_is_refused(after, recorded):
    empty = {"outcome": None, "dimensions": dict.fromkeys(recorded.dimensions)}
    found = promotion_gate(after(lambda _: empty), JUDGE, recorded.sha256, now=NOW)
    assert found.status == "not_evaluable"
    assert {"low_support", "no_support"} <= set(reasons(found))


def test_a_coin_is_unbiased_and_does_not_agree(after, recorded, stub):
    history = after(stub(5, agrees=0.5))
    wide = promotion_gate(history, JUDGE, recorded.sha256, now=NOW, margin=0.4)
    assert wide.status == "pass"
    found = promotion_gate(history, JUDGE, recorded.sha256, now=NOW, margin=0.4, min_agreement=0.9)
    assert (found.status, reasons(found)) == ("fail", ["ci_straddles_threshold"])


def test_the_newest_result_of_this_judge_counts_whatever_else_was_calibrated(after, recorded, stub):
    after(stub(3, biased="source", rejects=0.5), ago=timedelta(days=3))
    after(perfect(recorded), ago=timedelta(days=2))
    history = after(stub(3, biased="unit", rejects=0.5), identity=replace(JUDGE, judge="other"), ago=timedelta(days=1))
    assert promotion_gate(history, JUDGE, recorded.sha256, now=NOW).status == "pass"


def test_limits_that_are_no_limits_are_refused(recorded):
    with pytest.raises(ConfigError, match="max_indeterminate"):
        promotion_gate((), JUDGE, recorded.sha256, now=NOW, max_indeterminate=5)
    with pytest.raises(ConfigError, match="max_age"):
        promotion_gate((), JUDGE, recorded.sha256, now=NOW, max_age=timedelta(days=-1))


def test_a_pass_is_due_where_no_result_of_this_very_judge_and_set_is_young_enough(after, recorded):
    history = after(perfect(recorded))
    week = timedelta(days=7)
    assert not is_due(history, JUDGE, recorded.sha256, week, NOW)
    assert is_due(history, JUDGE, recorded.sha256, timedelta(days=1), NOW)
    assert is_due(history, JUDGE, "0" * 64, week, NOW)
    assert is_due(history, replace(JUDGE, prompt_sha256=None), recorded.sha256, week, NOW)
    assert is_due((), JUDGE, recorded.sha256, week, NOW)
