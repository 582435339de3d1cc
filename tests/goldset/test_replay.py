"""Replay: what is counted, what goes on after an interruption, and when a candidate is adopted."""

from __future__ import annotations

import json
import math
import random

import pytest

from geoeval.errors import ConfigError, InputError
from geoeval.goldset.callables import Named, named_callable
from geoeval.goldset.document import read_replay
from geoeval.goldset.journal import journal_path
from geoeval.goldset.runner import Result
from geoeval.replay import compare, curve, replay
from geoeval.stats.interval import wilson

LABELS = ("water", "built", "forest")


def gold(path, n=12, clusters=False, seed=None):
    rows = [
        {
            "id": f"c{at:02d}",
            "task": "classify" if at % 3 else "triage",
            "input": f"tile {at}",
            "expect": LABELS[at % 3],
            **({"cluster": f"town {at // 4}"} if clusters else {}),
        }
        for at in range(n)
    ]
    if seed is not None:
        random.Random(seed).shuffle(rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


class Scripted:
    """Answers by the number of the tile, counts its calls, and may break down at one of them."""

    def __init__(self, wrong=(), deferred=(), failed=(), breaks_at=None):
        self.wrong, self.deferred, self.failed, self.breaks_at = set(wrong), set(deferred), set(failed), breaks_at
        self.asked = []

    def __call__(self, request):
        at = int(request.input.split()[1])
        self.asked.append(at)
        if len(self.asked) == self.breaks_at:
            raise RuntimeError("the connection was lost")
        if at in self.deferred:
            return {"deferred": True, "cost": 20, "margin": 0.1}
        if at in self.failed:
            return {"accepted": False, "cost": 1}
        label = "nothing" if at in self.wrong else LABELS[at % 3]
        return Result(accepted=True, output={"label": label}, cost=10.1, margin=1 / (at + 1), escalations=at % 2)


def named(runner, sha="0" * 64):
    return Named("scripted:runner", runner, sha)


def test_only_accepted_results_are_graded_and_a_deferral_is_no_error(tmp_path):
    """12 cases: tile 1 wrong, 3 and 4 deferred, 5 failed; 7 of 8 accepted are right."""
    found = replay(gold(tmp_path / "g.jsonl"), named(Scripted(wrong=[1], deferred=[3, 4], failed=[5])))
    whole = found.document["overall"]
    counts = {key: whole[key] for key in ("n", "accepted", "accepted_correct", "deferred", "failed", "escalations")}
    assert counts == {
        "n": 12,
        "accepted": 9,
        "accepted_correct": 8,
        "deferred": 2,
        "failed": 1,
        "escalations": 4,
    }
    assert whole["accuracy_accepted"] == 8 / 9
    assert whole["interval"] == list(wilson(8, 9))
    assert whole["defer_rate"] == 2 / 12
    assert whole["cost"] == pytest.approx(9 * 10.1 + 2 * 20 + 1)
    assert whole["accuracy_per_1000_cost"] == pytest.approx(8000 / 131.9)
    assert found.document["tasks"]["triage"]["n"] == 4
    assert sum(row["n"] for row in found.document["tasks"].values()) == 12
    assert [one.correct for one in found.outcomes if one.deferred] == [None, None]


def test_nothing_accepted_has_no_accuracy_and_nothing_spent_no_rate(tmp_path):
    found = replay(gold(tmp_path / "g.jsonl"), Named("r", lambda _: {"deferred": True}, ""))
    whole = found.document["overall"]
    assert whole["accuracy_accepted"] is None
    assert whole["interval"] is None
    assert whole["reason"] == "no_support"
    assert whole["accuracy_per_1000_cost"] is None
    assert whole["defer_rate"] == 1.0


def test_clusters_give_the_headline_interval(tmp_path):
    found = replay(gold(tmp_path / "g.jsonl", n=48, clusters=True), named(Scripted(wrong=range(9))))
    whole = found.document["overall"]
    assert whole["wilson_iid"] == list(wilson(39, 48))
    assert whole["clusters"] == 12
    assert whole["interval"][0] < whole["wilson_iid"][0]


def test_the_deferral_curve_hands_over_the_least_sure_first(tmp_path):
    """Margins fall with the tile, the last one is wrong: handing over one of 12 mends it."""
    found = replay(gold(tmp_path / "g.jsonl"), named(Scripted(wrong=[11])))
    whole = found.document["overall"]["deferral_curve"]
    assert whole["points"][:2] == [[0.0, 11 / 12], [1 / 12, 1.0]]
    assert whole["peak_at"] == whole["qnc"] == 1 / 12
    without = replay(gold(tmp_path / "g.jsonl"), Named("r", lambda _: {"accepted": True, "output": "water"}, ""))
    assert without.document["overall"]["deferral_curve"]["without_margin"] == 12


def test_the_runner_never_sees_what_is_expected_and_cannot_change_the_case(tmp_path):
    path = tmp_path / "g.jsonl"
    rows = [{"task": "classify", "input": f"t{i}", "params": {"labels": ["a", "b"]}, "expect": "b"} for i in range(2)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def peek(request):
        assert not hasattr(request, "expect")
        request.params["labels"].clear()
        return {"accepted": True, "output": "b", "cost": 1}

    whole = replay(path, Named("r", peek, "")).document
    assert whole["overall"]["accepted_correct"] == 2
    assert whole["gold_sha256"] == replay(path, Named("r", lambda _: {"deferred": True}, "")).document["gold_sha256"]


def test_the_order_of_the_gold_set_does_not_matter(tmp_path):
    script = {"wrong": [1], "deferred": [3], "failed": [5]}
    contents = {
        replay(gold(tmp_path / f"{seed}.jsonl", seed=seed), named(Scripted(**script))).content for seed in (None, 1, 2)
    }
    assert len(contents) == 1


@pytest.mark.parametrize("breaks_at", [1, 2, 7, 12])
def test_an_interrupted_replay_goes_on_without_asking_twice_and_gives_the_same_bytes(breaks_at, tmp_path):
    path, out = gold(tmp_path / "g.jsonl"), tmp_path / "out.json"
    script = {"wrong": [1], "deferred": [3, 4], "failed": [5]}
    whole = replay(path, named(Scripted(**script)), out=tmp_path / "whole.json")
    first = Scripted(**script, breaks_at=breaks_at)
    with pytest.raises(InputError, match=r"case 'c\d\d' \(g\.jsonl, line \d+\): it raised RuntimeError.*--resume"):
        replay(path, named(first), out=out)
    assert not out.exists()
    second = Scripted(**script)
    again = replay(path, named(second), out=out, resume=True)
    assert sorted([*first.asked[:-1], *second.asked]) == list(range(12))
    assert again.content == whole.content == out.read_bytes() == (tmp_path / "whole.json").read_bytes()
    assert not journal_path(out).exists()


def test_a_replay_that_is_stopped_by_hand_keeps_what_is_finished(tmp_path):
    path, out, stopped = gold(tmp_path / "g.jsonl"), tmp_path / "out.json", Scripted()

    def runner(request):
        if len(stopped.asked) == 5:
            raise KeyboardInterrupt
        return stopped(request)

    with pytest.raises(KeyboardInterrupt):
        replay(path, named(runner), out=out)
    second = Scripted()
    replay(path, named(second), out=out, resume=True)
    assert second.asked == list(range(5, 12))


def test_a_line_of_the_journal_that_was_cut_short_is_asked_again(tmp_path):
    path, out = gold(tmp_path / "g.jsonl"), tmp_path / "out.json"
    with pytest.raises(InputError):
        replay(path, named(Scripted(breaks_at=6)), out=out)
    journal = journal_path(out)
    journal.write_bytes(journal.read_bytes()[:-9])
    second = Scripted()
    replay(path, named(second), out=out, resume=True)
    assert len(second.asked) == 8
    assert out.read_bytes() == replay(path, named(Scripted())).content


def test_a_journal_with_nothing_whole_in_it_starts_again(tmp_path):
    path, out = gold(tmp_path / "g.jsonl"), tmp_path / "out.json"
    journal_path(out).write_bytes(b'{"schema"')
    replay(path, named(Scripted()), out=out, resume=True)
    assert out.read_bytes() == replay(path, named(Scripted())).content


def test_a_journal_is_not_taken_for_another_replay(tmp_path):
    path, out = gold(tmp_path / "g.jsonl"), tmp_path / "out.json"
    with pytest.raises(InputError):
        replay(path, named(Scripted(breaks_at=6)), out=out)
    with pytest.raises(InputError, match="go on with --resume"):
        replay(path, named(Scripted()), out=out)
    with pytest.raises(InputError, match="another gold set, runner"):
        replay(path, named(Scripted(), sha="1" * 64), out=out, resume=True)
    with pytest.raises(InputError, match="another gold set, runner"):
        replay(gold(path, n=11), named(Scripted()), out=out, resume=True)


@pytest.mark.parametrize(
    "row",
    [b'{"id":"c00"}', b'{"id":"zz","result":{"accepted":true}}', b"{", b'{"id":"c00","result":{"accepted":3}}'],
)
def test_a_journal_with_a_line_that_is_wrong_is_refused(row, tmp_path):
    path, out = gold(tmp_path / "g.jsonl"), tmp_path / "out.json"
    with pytest.raises(InputError):
        replay(path, named(Scripted(breaks_at=1)), out=out)
    journal = journal_path(out)
    journal.write_bytes(journal.read_bytes() + row + b"\n")
    with pytest.raises(InputError, match=r"out\.json\.journal, line 2"):
        replay(path, named(Scripted()), out=out, resume=True)


def test_a_finished_replay_is_read_back_with_resume_and_never_written_over(tmp_path):
    path, out = gold(tmp_path / "g.jsonl"), tmp_path / "out.json"
    first = replay(path, named(Scripted()), out=out)
    silent = Scripted()
    with pytest.raises(InputError, match="is there already"):
        replay(path, named(silent), out=out)
    assert replay(path, named(silent), out=out, resume=True).content == first.content
    assert silent.asked == []
    with pytest.raises(InputError, match="another gold set, runner"):
        replay(path, named(silent, sha="1" * 64), out=out, resume=True)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (None, "expected a Result or a mapping"),
        ("water", "expected a Result or a mapping"),
        ({}, "must say 'accepted' or 'deferred'"),
        ({"accepted": 1}, "'accepted' must be true or false"),
        ({"accepted": True, "deferred": True}, "got both"),
        ({"accepted": True, "cost": -1}, "'cost' must be at least 0"),
        ({"accepted": True, "cost": math.nan}, "'cost' must be a finite number"),
        ({"accepted": True, "cost": "1"}, "'cost' must be a finite number"),
        ({"accepted": True, "cost": 10**400}, "'cost' must be a finite number"),
        ({"accepted": True, "margin": math.inf}, "'margin' must be a finite number"),
        ({"accepted": True, "escalations": 0.5}, "'escalations' must be a whole number"),
        ({"accepted": True, "escalations": -1}, "'escalations' must be a whole number"),
        ({"accepted": True, "escalations": True}, "'escalations' must be a whole number"),
        ({"accepted": True, "output": {1: 2}}, "'output' must be plain JSON"),
        ({"accepted": True, "output": math.nan}, "'output' must be plain JSON"),
        ({"accepted": True, "output": object()}, "'output' must be plain JSON"),
        ({"accepted": True, "outputs": 1}, "did you mean 'output'"),
    ],
)
def test_what_is_no_result_is_refused_with_the_case(given, says, tmp_path):
    with pytest.raises(InputError, match=r"case 'c00' \(g\.jsonl, line 1\)") as caught:
        replay(gold(tmp_path / "g.jsonl"), Named("r", lambda _: given, ""), out=tmp_path / "out.json")
    assert says in str(caught.value)
    assert not (tmp_path / "out.json").exists()


def finished(folder, name, **script):
    out = folder / f"{name}.json"
    return replay(gold(folder / "g.jsonl", n=48), named(Scripted(**script)), out=out)


def test_a_candidate_is_adopted_only_where_the_whole_interval_is_above_zero(tmp_path):
    old = finished(tmp_path, "old", wrong=range(12))
    better = finished(tmp_path, "better", wrong=range(2))
    same = finished(tmp_path, "same", wrong=range(1, 13))
    assert compare(old, better).decision == "adopt"
    assert compare(better, old).decision == "block"
    assert compare(old, same).decision == "inconclusive"
    assert compare(old, better).deltas["answered_right"].observed == pytest.approx(10 / 48)
    assert compare(old, better).document == compare(old, better).document


@pytest.mark.parametrize(
    ("n", "wrong", "decision"), [(48, 6, "adopt"), (48, 5, "inconclusive"), (20, 20, "adopt"), (19, 19, "inconclusive")]
)
def test_few_cases_or_few_that_differ_decide_nothing(tmp_path, n, wrong, decision):
    """As between two predictions: at least 20 clusters, 6 of which differ."""
    sides = [replay(gold(tmp_path / "g.jsonl", n=n), named(Scripted(wrong=bad))) for bad in (range(wrong), ())]
    found = compare(*sides)
    assert found.decision == decision
    assert ("few_clusters" in found.deltas["answered_right"].marks) == (decision == "inconclusive")
    assert found.deltas["answered_right"].low > 0


def test_two_cases_in_two_clusters_decide_nothing(tmp_path):
    path = tmp_path / "g.jsonl"
    rows = [{"task": "classify", "input": f"t{at}", "expect": "a", "cluster": f"c{at}"} for at in range(2)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    sides = [
        replay(path, Named(said, lambda _, said=said: {"accepted": True, "output": said, "cost": 1}, ""))
        for said in ("b", "a")
    ]
    assert compare(*sides).decision == compare(*sides[::-1]).decision == "inconclusive"


def test_deferring_what_was_wrong_helps_errors_and_not_answers(tmp_path):
    old = finished(tmp_path, "old", wrong=range(12))
    shy = finished(tmp_path, "shy", deferred=range(12))
    found = compare(old, shy, metric="not_wrong")
    assert found.decision == "adopt"
    assert found.deltas["answered_right"].observed == 0.0
    assert found.deltas["answered_right"].decision == "inconclusive"
    assert found.deltas["cheaper"].decision == "block"


def test_clusters_are_drawn_as_a_whole_where_the_gold_set_has_them(tmp_path):
    sides = [
        replay(gold(tmp_path / "g.jsonl", n=48, clusters=True), named(Scripted(wrong=wrong)))
        for wrong in (range(12), ())
    ]
    found = compare(*sides).deltas["answered_right"]
    assert (found.clusters, found.decision, found.marks) == (12, "inconclusive", ("few_clusters",))
    assert compare(*sides, clusters=False).deltas["answered_right"].clusters == 48
    plain = [finished(tmp_path, str(at), wrong=wrong) for at, wrong in enumerate((range(12), ()))]
    with pytest.raises(InputError, match="needs a cluster"):
        compare(*plain, clusters=True)


def test_replays_of_two_gold_sets_are_not_compared(tmp_path):
    one = finished(tmp_path, "one")
    other = replay(gold(tmp_path / "g.jsonl", n=47), named(Scripted()))
    with pytest.raises(InputError, match="one gold set"):
        compare(one, other)
    with pytest.raises(InputError, match="one gold set"):
        curve({"a": one, "b": other})
    with pytest.raises(ConfigError, match="no case has the task 'x'"):
        compare(one, one, task="x")
    assert compare(one, one, task="triage").n == 16


def test_several_replays_are_operating_points_of_one_curve(tmp_path):
    """Twelve deferred at cost 20 with an expert of cost 100 and quality 1: (36·10.1 + 12·120)/48."""
    replays = {"eager": finished(tmp_path, "a", wrong=range(12)), "shy": finished(tmp_path, "b", deferred=range(12))}
    points, scaled, own = curve(replays, expert_cost=100, expert_quality=1)
    assert points["eager"] == (pytest.approx(10.1), 0.75)
    assert points["shy"] == (pytest.approx((36 * 10.1 + 12 * 120) / 48), 1.0)
    assert own.audc == pytest.approx(0.875)
    assert own.qnc == 1.0
    assert scaled.peak == 1.0


def test_a_document_that_was_changed_by_hand_is_refused(tmp_path):
    finished(tmp_path, "old", wrong=range(12))
    path = tmp_path / "old.json"
    data = json.loads(path.read_bytes())
    assert read_replay(path).content == path.read_bytes()
    for change in (
        lambda d: d["overall"].update(accepted_correct=48),
        lambda d: d["outcomes"][0].update(correct=True),
        lambda d: d["outcomes"][0].update(correct=None),
        lambda d: d["outcomes"].pop(),
        lambda d: d["outcomes"][0].update(cost="1"),
        lambda d: d["outcomes"][0].pop("cost"),
        lambda d: d.update(schema="geoeval/replay/2"),
        lambda d: d.update(more=1),
    ):
        changed = json.loads(json.dumps(data))
        change(changed)
        path.write_text(json.dumps(changed))
        with pytest.raises(InputError, match=r"old\.json"):
            read_replay(path)
    path.write_text("{")
    with pytest.raises(InputError, match="not JSON"):
        read_replay(path)


def test_a_document_is_read_back_whatever_the_digits_of_its_numbers(tmp_path):
    """Margins that differ in their last bits only must not part when the figures are derived again."""
    path = gold(tmp_path / "g.jsonl", n=30)

    def noisy(request):
        at = int(request.input.split()[1])
        return {"accepted": True, "output": "water", "cost": math.pi * at, "margin": 0.1 + at * 1e-14}

    found = replay(path, Named("r", noisy, ""), out=tmp_path / "out.json")
    assert read_replay(tmp_path / "out.json").content == found.content


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("assistant", "expected module:callable"),
        (":answer", "expected module:callable"),
        ("assistant:", "expected module:callable"),
        ("no_such_module_here:answer", "cannot be imported"),
        ("nowhere.py:answer", "no such file"),
        ("json:dump_s", "did you mean"),
        ("json:__name__", "expected a callable"),
        ("sys:exit", "no file"),
    ],
)
def test_a_callable_that_cannot_be_had_is_refused(text, says):
    with pytest.raises(ConfigError, match=says):
        named_callable(text, "runner")


def test_a_callable_of_a_file_leaves_no_compiled_file_and_may_be_a_class(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("class Runner:\n    def __call__(self, request):\n        return {'deferred': True}\n")
    found = named_callable(f"{path}:Runner", "runner")
    assert found.name == "mine:Runner"
    assert found.call(None) == {"deferred": True}
    assert [one.name for one in tmp_path.iterdir()] == ["mine.py"]
    path.write_text("raise ValueError('broken')\n")
    with pytest.raises(ConfigError, match="ValueError: broken"):
        named_callable(f"{path}:Runner", "runner")
