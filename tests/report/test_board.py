"""The board: worst status wins, colours never flatter, and what it says is valid against its schema."""

from __future__ import annotations

from dataclasses import replace

import jsonschema
import pytest

from geoeval.evidence.documents import metrics_from_json, metrics_json
from geoeval.evidence.shape import load_schema
from geoeval.gates import decide
from geoeval.model import Estimate, Evaluation, Gate, Interval, Stratum
from geoeval.report.board import board, colour, worst_subgroup

RUN = "run-0123456789abcdef0123"


def point(value, support=50):
    return Estimate(value, "1", support, interval=Interval(0.0, 1.0, 0.95, "cluster_bootstrap", 30, 25.0))


def stratum(name, value):
    return Stratum({"region": name}, {"f1": point(value), "rmse": point(value)})


def footprint(value=0.9, strata=(), family="footprint"):
    return Evaluation(
        family, f"{family}/1", "signature", {"f1": point(value), "rmse": point(value)}, strata=tuple(strata)
    )


def verdict(value, family="footprint"):
    return decide(Gate("floor", "f1", "at_least", 0.8, on="value", family=family), Estimate(value, "1", 50))


PASS, FAIL, OPEN = verdict(0.9), verdict(0.1), verdict(None)


def shown(evaluations, verdicts, **options):
    out = board(RUN, evaluations, verdicts, **options)
    jsonschema.Draft202012Validator(load_schema("board")).validate(out)
    return out


def test_a_board_of_one_family():
    out = shown({"houses": footprint(0.9, [stratum("north", 0.5), stratum("south", 0.8)])}, [PASS])
    family = out["families"][0]
    assert (out["status"], out["colour"], family["status"], family["colour"]) == ("pass", "green", "pass", "green")
    case = family["cases"][0]
    assert case["headline"]["f1"]["interval"]["clusters"] == 30
    assert case["worst_subgroup"]["by"] == {"region": "north"}
    assert case["worst_subgroup"]["gap"] == -0.4
    assert case["support"] == 50


def test_synthetic_data_say_so_first():
    out = shown({"houses": footprint()}, [PASS], claim_limits=["one season"], synthetic=True)
    assert out["claim_limits"] == ["synthetic: no product claim", "one season"]


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], "grey"),
        ([PASS], "green"),
        ([PASS, OPEN], "grey"),
        ([PASS, FAIL, OPEN], "red"),
        ([PASS, replace(FAIL, waived_by="board")], "amber"),
        ([replace(FAIL, waived_by="board"), OPEN], "grey"),
        ([replace(OPEN, waived_by="board"), FAIL], "red"),
    ],
)
def test_colours(verdicts, expected):
    assert colour(verdicts) == expected


def test_a_family_without_a_verdict_is_not_evaluable_and_holds_the_whole_back():
    out = shown({"houses": footprint(), "heights": footprint(family="elevation")}, [PASS])
    assert [(row["family"], row["status"], row["reasons"]) for row in out["families"]] == [
        ("elevation", "not_evaluable", ["no_policy"]),
        ("footprint", "pass", []),
    ]
    assert (out["status"], out["colour"]) == ("not_evaluable", "grey")


def test_product_gates_hold_the_whole_back():
    product = replace(OPEN, id="product:review", family="product", reason="synthetic_only")
    out = shown({"houses": footprint()}, [PASS], product_gates=[product])
    assert (out["status"], out["families"][0]["status"]) == ("not_evaluable", "pass")


def test_no_evaluation_at_all_is_not_evaluable():
    assert shown({}, [])["status"] == "not_evaluable"


def test_the_worst_subgroup_of_an_error_is_the_largest():
    found = worst_subgroup(footprint(0.5, [stratum("a", 0.4), stratum("b", 0.7)], family="elevation"))
    assert (found["by"], found["metric"]) == ({"region": "b"}, "rmse")
    assert found["gap"] == pytest.approx(0.2)


def test_undefined_subgroups_have_no_rank():
    undefined = Stratum({"region": "x"}, {"f1": Estimate(None, "1", 0, reason="no_support")})
    assert worst_subgroup(footprint(0.5, [undefined])) is None
    assert worst_subgroup(footprint(0.5, [undefined, stratum("y", 0.9)]))["by"] == {"region": "y"}
    assert worst_subgroup(footprint()) is None


def test_a_board_of_stored_metrics_is_the_same():
    """The gap is the difference of the values as stored: 1/3 - 2/3 of rounded numbers is not that of raw ones."""
    raw = {"a": footprint(2 / 3, [stratum("north", 1 / 7)])}
    assert board(RUN, raw, [PASS]) == board(RUN, metrics_from_json(metrics_json(raw)), [PASS])


def test_equal_subgroups_are_ranked_by_name():
    found = worst_subgroup(footprint(0.5, [stratum("b", 0.4), stratum("a", 0.4)]))
    assert found["by"] == {"region": "a"}
