"""Exports for build servers and monitoring: undecided is an error, undefined has no line, nothing breaks the format."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from geoeval.gates import decide
from geoeval.model import Estimate, Evaluation, Gate, Interval
from geoeval.report.junit import junit_bytes
from geoeval.report.openmetrics import openmetrics_bytes

RUN = "run-0123456789abcdef0123"
INTERVAL = Interval(0.25, 0.75, 0.95, "wilson", 10)
EVALUATION = Evaluation(
    "footprint",
    "footprint/1",
    "s",
    {"recall": Estimate(0.5, "1", 10, interval=INTERVAL), "f1": Estimate(None, "1", 0, reason="undefined_ratio")},
)


def verdict(value, name="houses:floor"):
    return decide(Gate(name, "recall", "at_least", 0.8, on="value", family="footprint"), Estimate(value, "1", 50))


def suites(*given, **options):
    return ET.fromstring(junit_bytes(RUN, {"houses": EVALUATION}, *given, **options))


@pytest.mark.parametrize(("value", "children"), [(0.9, []), (0.1, ["failure"]), (None, ["error"])])
def test_a_gate_is_a_test(value, children):
    test = suites([verdict(value)]).find("testsuite/testcase")
    assert (test.get("classname"), test.get("name")) == ("houses", "floor")
    assert [child.tag for child in test] == children


def test_counts_add_up_and_nothing_is_skipped():
    gates = [verdict(0.9), verdict(0.1, "houses:b"), verdict(None, "houses:c")]
    product = [replace(verdict(None, "product:review"), limit=None, metric="review", reason="synthetic_only")]
    root = suites(gates, product)
    assert [root.get(name) for name in ("tests", "failures", "errors")] == ["4", "1", "2"]
    assert [suite.get("name") for suite in root] == ["houses", "product"]
    assert root.findall(".//skipped") == []


def test_a_case_without_gates_is_an_error():
    root = suites([])
    assert root.find(".//error").get("type") == "no_policy"
    assert root.get("errors") == "1"


def test_a_message_says_value_limit_and_waiver():
    given = replace(verdict(0.1), waived_by="the board")
    failure = suites([given]).find(".//failure")
    assert failure.get("message") == "recall is 0.1, demanded ≥ 0.8 on the value; waived by the board"


def test_odd_names_do_not_break_the_xml():
    root = suites([verdict(0.1, 'houses:<a> & "b"\x00')])
    assert root.find(".//testcase").get("name") == '<a> & "b"\N{REPLACEMENT CHARACTER}'


def lines(*given):
    return openmetrics_bytes(RUN, {"houses": EVALUATION}, *given).decode().splitlines()


def test_figures_become_samples():
    found = lines([])
    labels = 'case="houses",family="footprint",metric="recall",unit="1"'
    assert f"geoeval_estimate{{{labels}}} 0.5" in found
    assert f"geoeval_interval_low{{{labels}}} 0.25" in found
    assert f"geoeval_support{{{labels}}} 10" in found
    assert found[-1] == "# EOF"


def test_an_undefined_figure_has_support_and_no_value():
    found = [line for line in lines([]) if 'metric="f1"' in line]
    assert found == ['geoeval_support{case="houses",family="footprint",metric="f1",unit="1"} 0']


def test_a_gate_is_a_state_set():
    found = [line.rsplit(",", 1)[1] for line in lines([verdict(None)]) if line.startswith("geoeval_gate{")]
    assert found == ['geoeval_gate="pass"} 0', 'geoeval_gate="fail"} 0', 'geoeval_gate="not_evaluable"} 1']


def test_a_waiver_changes_no_state():
    found = lines([replace(verdict(0.1), waived_by="the board")])
    assert any(line.endswith('geoeval_gate="fail"} 1') for line in found)
    assert 'geoeval_gate_waived{family="footprint",gate="houses:floor"} 1' in found


def test_label_values_are_escaped():
    found = lines([verdict(0.9, 'a"b\\c\nd')])
    assert 'geoeval_gate_waived{family="footprint",gate="a\\"b\\\\c\\nd"} 0' in found


def test_the_order_of_gates_changes_no_byte():
    gates = [verdict(0.9, "houses:a"), verdict(0.1, "houses:b")]
    assert lines(gates) == lines(gates[::-1])
