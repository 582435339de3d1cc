"""A validator held to known anomalies, counted by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoeval.checks.pairs import maximum_pairs
from geoeval.errors import ConfigError, InputError
from geoeval.estimation import Plan, estimate, exact_lower_bound, per_class, stratify
from geoeval.evaluators.validation import Validation, required_gates
from geoeval.gates import decide_all, family_status
from geoeval.layers import FindingPair
from geoeval.ledger import Ledger, tally_unit
from geoeval.model import Estimate, Evaluation, Unit
from geoeval.stats.tally import totals_of

PLAN = Plan(redraws=50, ranked_redraws=10)


def table(rows):
    """Rows of (feature, code, severity[, field[, window]]) in dataset ``d``."""
    padded = [(*row, "", "")[:5] for row in rows]
    columns = dict(zip(("feature", "code", "severity", "field", "window"), zip(*padded, strict=True), strict=False))
    n = len(rows)
    out = {name: np.array([*columns.get(name, ())], dtype=object) for name in ("feature", "code", "severity")}
    out |= {name: np.array([*columns.get(name, ())], dtype=object) for name in ("field", "window")}
    return {**out, "dataset": np.full(n, "d", dtype=object), "id": np.array([f"i{i}" for i in range(n)], dtype=object)}


def pair(known, found, clean=False, **options):
    reference, prediction = table(known), table(found)
    return FindingPair(
        reference=reference,
        prediction=prediction,
        clean=np.full(len(found), clean, dtype=bool),
        cluster=reference["dataset"],
        prediction_cluster=prediction["dataset"],
        **options,
    )


def unit(known, found, **options):
    built = pair(known, found, **options)
    return Unit("d", lambda: built)


def sums(one, evaluator=None):
    tallied = (evaluator or Validation()).tally(one)
    totals = totals_of(list(tallied.cells.values()))
    names = ("tp", "fp", "fn", "unadjudicated", "duplicates", "misclassified")
    return tuple(int(totals[name][0]) for name in names)


def figures(*units, evaluator=None):
    evaluator = evaluator or Validation()
    rows = [row for one in units for row in tally_unit(evaluator, one)[0]]
    ledger = Ledger.of(rows)
    return estimate(evaluator, ledger, PLAN), ledger


A, B = ("f1", "V01", "blocker"), ("f2", "V15", "minor")


@pytest.mark.parametrize(
    ("known", "found", "clean", "expected"),
    [
        ([], [], False, (0, 0, 0, 0, 0, 0)),
        ([A], [], False, (0, 0, 1, 0, 0, 0)),
        ([A, B], [A, B], False, (2, 0, 0, 0, 0, 0)),
        ([], [A], False, (0, 0, 0, 1, 0, 0)),
        ([], [A], True, (0, 1, 0, 0, 0, 0)),
        ([A], [A, A], False, (1, 0, 0, 0, 1, 0)),
        ([A], [A, A], True, (1, 0, 0, 0, 1, 0)),
        ([A, A], [A], False, (1, 0, 1, 0, 0, 0)),
        ([A], [("f1", "V15", "")], False, (0, 0, 1, 0, 0, 1)),
        ([A], [("f1", "V15", ""), ("f1", "V14", "")], False, (0, 0, 1, 1, 0, 1)),
        ([A], [A, ("f1", "V15", "")], False, (1, 0, 0, 1, 0, 0)),
        ([A, B], [("f2", "V01", ""), ("f1", "V15", "")], False, (0, 0, 2, 0, 0, 2)),
        ([("f1", "V01", "blocker"), ("f1", "V15", "minor")], [("f1", "V15", "")], False, (1, 0, 1, 0, 0, 0)),
        ([("", "D01", "major")], [("", "D01", "")], False, (1, 0, 0, 0, 0, 0)),
    ],
)
def test_pairs_are_counted_by_hand(known, found, clean, expected):
    """Order: tp, fp, fn, unadjudicated, duplicates, misclassified."""
    assert sums(unit(known, found, clean=clean)) == expected


def test_fields_and_windows_narrow_a_place_down():
    known = [("f1", "V40", "major", "height"), ("f1", "V40", "major", "name")]
    assert sums(unit(known, [("f1", "V40", "", "name"), ("f1", "V40", "", "date")])) == (1, 0, 1, 1, 0, 0)
    assert sums(unit(known, [("f1", "V40", ""), ("f1", "V40", "", "name")])) == (2, 0, 0, 0, 0, 0)
    raster = [("", "R01", "major", "", "0,0,10,10"), ("", "R01", "major", "", "100,0,110,10")]
    hits = [("", "R01", "", "", "12,0,14,10"), ("", "R01", "", "", "105,5,120,9")]
    assert sums(unit(raster, hits)) == (1, 0, 1, 1, 0, 0)
    assert sums(unit(raster, hits), Validation(window_tolerance_px=2)) == (2, 0, 0, 0, 0, 0)


def test_as_many_pairs_as_possible_and_no_greedy_loss():
    """The finding without a field could take either anomaly; it must leave the named one to the other finding."""
    known = [("f1", "V40", "major", "height"), ("f1", "V40", "major", "name")]
    found = [("f1", "V40", "", ""), ("f1", "V40", "", "height")]
    for order in itertools.permutations(found):
        assert sums(unit(known, list(order)))[0] == 2


@given(st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1, max_size=5))
def test_maximum_pairs_against_every_assignment(allowed):
    left, right = range(len(allowed)), range(5)
    found = maximum_pairs(list(left), list(right), lambda i, j: allowed[i][j])
    best = max(
        sum(allowed[i][j] for i, j in zip(left, chosen, strict=True))
        for chosen in itertools.permutations(right, len(left))
    )
    assert len(found) == best
    assert all(allowed[i][j] for i, j in found)
    assert len({i for i, _ in found}) == len({j for _, j in found}) == len(found)


def test_a_long_chain_needs_no_recursion():
    n = 3000
    pairs = maximum_pairs(list(range(n)), list(range(n)), lambda i, j: j in (i, i + 1) if i else j == 0)
    assert len(pairs) == n


def test_codes_of_other_tools_are_translated():
    evaluator = Validation(aliases={"Self-intersection": "V05"})
    one = unit([("f1", "V05", "critical")], [("f1", "Self-intersection", "")])
    assert sums(one, evaluator)[0] == 1
    assert sums(one)[0] == 0


def test_certified_clean_material_makes_a_false_finding():
    assert sums(unit([], [A]), Validation(clean_datasets=("d",))) == (0, 1, 0, 0, 0, 0)
    assert sums(unit([], [A]), Validation(assume_clean=True)) == (0, 1, 0, 0, 0, 0)


def test_figures_of_one_unit():
    """Eight of ten found, one false on 500 clean features, one missed blocker."""
    known = [(f"f{i}", "V01", "blocker") for i in range(5)] + [(f"g{i}", "V03", "critical") for i in range(5)]
    found = known[1:9]
    clean = unit([], [("h1", "V03", "")], clean=True, clean_features=500)
    found_figures, _ = figures(unit(known, found), Unit("e", clean.load))
    values = {name: one.value for name, one in found_figures.items()}
    assert values["recall"] == 0.8
    assert values["precision"] == 8 / 9
    assert (values["missed_blocker"], values["missed_critical"]) == (1, 1)
    assert found_figures["missed_blocker"].support == 5
    assert values["alarms_per_1000"] == 2.0
    assert list(values) == [
        "tp",
        "fp",
        "fn",
        "precision",
        "recall",
        "f1",
        "missed_blocker",
        "missed_critical",
        "unadjudicated",
        "duplicates",
        "misclassified",
        "alarms_per_1000",
    ]


def test_no_findings_leave_precision_undefined():
    found, _ = figures(unit([A], []))
    assert found["precision"].value is None
    assert found["precision"].reason == "undefined_ratio"
    assert found["recall"].value == 0.0
    assert found["alarms_per_1000"].value is None


def test_the_range_of_precision():
    """Two right, one wrong class, three unknown: 2 of 6 at worst, 5 of 6 at best."""
    known = [A, B, ("f9", "V03", "critical")]
    found = [A, B, ("f9", "V14", ""), *[(f"x{i}", "V15", "") for i in range(3)]]
    _, ledger = figures(unit(known, found))
    extras = Validation().extras(ledger.by_cluster().whole())
    assert extras["precision_range"] == {"low": pytest.approx(2 / 6), "high": pytest.approx(5 / 6)}
    assert extras["macro_recall"] == pytest.approx(2 / 3)


def test_an_untested_code_is_named_and_not_passed():
    evaluator = Validation()
    figures_, ledger = figures(unit([A], [A], planted=("V01", "V02")))
    assert evaluator.extras(ledger.by_cluster().whole())["untested_codes"] == ["V02"]
    classes = per_class(evaluator, ledger, PLAN)
    assert classes["V02"]["recall"].value is None
    assert classes["V01"]["recall"].value == 1.0
    assert figures_["recall"].support == 1


@pytest.mark.parametrize(
    "options",
    [
        {"completed": False},
        {"read": 9, "expected": 10},
        {"expected": 10},
    ],
)
def test_a_validator_that_did_not_finish_is_not_scored(options):
    found, ledger = figures(unit([A, B], [A, B], **options))
    for name in ("recall", "precision", "f1", "missed_blocker", "tp"):
        assert (found[name].value, found[name].reason) == (None, "evidence_missing")
    assert per_class(Validation(), ledger, PLAN)["V01"]["recall"].value is None
    strata = stratify(Validation(), ledger, ["severity"], PLAN)
    assert all(stratum.estimates["recall"].value is None for stratum in strata)
    findings = Validation().tally(unit([A, B], [A, B], **options)).findings
    assert [finding.code for finding in findings] == ["validator-incomplete"]


def test_an_empty_unit_that_did_not_finish_is_seen():
    found, _ = figures(unit([], [], completed=False), Unit("e", lambda: pair([A], [A])))
    assert found["recall"].value is None


def test_reading_all_records_is_finishing():
    found, _ = figures(unit([A], [A], read=10, expected=10))
    assert found["recall"].value == 1.0


def judged(found):
    verdicts, _ = decide_all(required_gates(), Evaluation("validation", "validation/1", "s", found))
    return verdicts


def test_any_missed_blocker_or_critical_anomaly_blocks():
    every = [(f"f{i}", "V01", "blocker") for i in range(99)] + [("g", "V03", "critical")]
    assert family_status(judged(figures(unit(every, every))[0])) == "pass"
    assert family_status(judged(figures(unit(every, every[1:]))[0])) == "fail"
    assert family_status(judged(figures(unit(every, every[:-1]))[0])) == "fail"
    assert family_status(judged(figures(unit(every, every, completed=False))[0])) == "not_evaluable"


def test_where_no_blocker_was_planted_nothing_was_tested():
    assert {verdict.reason for verdict in judged(figures(unit([B], [B]))[0])} == {"no_support"}


def test_missed_anomalies_are_listed():
    findings = Validation().tally(unit([A, ("f2", "V01", "blocker"), B], [])).findings
    assert [(one.code, one.severity, one.where) for one in findings] == [
        ("missed-blocker", "blocker", ("d", "d/f1", "d/f2"))
    ]


@pytest.mark.parametrize(("n", "low"), [(20, 0.86), (59, 0.95), (299, 0.99)])
def test_zero_misses_support_the_published_recall(n, low):
    """Clopper-Pearson, one-sided 95 %: 0.05 ** (1 / n)."""
    assert Validation.exact_recall
    exact = exact_lower_bound(Estimate(1.0, "1", n, n, n))
    assert exact.interval.low == pytest.approx(0.05 ** (1 / n), rel=1e-9)
    assert exact.interval.low >= low


def test_severity_is_a_subgroup_and_code_a_class():
    _, ledger = figures(unit([A, B], [A]))
    assert Validation.own_strata == ("severity",)
    by_severity = {
        stratum.by["severity"]: stratum.estimates["recall"].value
        for stratum in stratify(Validation(), ledger, ["severity"], PLAN)
    }
    assert by_severity == {"blocker": 1.0, "minor": 0.0}
    assert ledger.labels() == ("V01", "V15")


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    codes, fields = ("V01", "V15"), ("", "a", "b")

    def rows(n):
        return [(f"f{rng.integers(4)}", codes[rng.integers(2)], "minor", fields[rng.integers(3)]) for _ in range(n)]

    known, found = rows(25), rows(25)
    tallied = Validation().tally(unit(known, found))
    again = Validation().tally(unit([known[i] for i in rng.permutation(25)], [found[i] for i in rng.permutation(25)]))
    assert dict(tallied.cells) == dict(again.cells)


def test_records_name_what_happened():
    known, found = [A, B, ("f3", "V03", "critical")], [A, A, ("f3", "V15", ""), ("x", "V15", "major")]
    records = Validation().tally(unit(known, found)).records
    rows = sorted(zip(records.columns["outcome"], records.columns["error_type"], strict=True))
    assert rows == [
        ("fn", "misclassified"),
        ("fn", "missed"),
        ("ignored", "duplicate"),
        ("ignored", "unadjudicated"),
        ("tp", ""),
    ]
    assert all(dict(strata)["severity"] for strata in records.columns["strata"])


def test_cells_sum_to_the_whole_over_severities():
    _, ledger = figures(unit([A, B, B], [A, B, ("z", "V15", "")]))
    whole = sum(row.tally.sums.get("findings", 0) for row in ledger.rows)
    assert whole == 3
    assert {row.value_of("severity") for row in ledger.rows} == {"blocker", "minor", "unknown"}


def test_odd_input_is_refused():
    with pytest.raises(InputError, match="severity 'huge'"):
        Validation().tally(unit([("f", "V01", "huge")], []))
    with pytest.raises(InputError, match="is not 'row0,column0,row1,column1'"):
        Validation().tally(unit([("", "R01", "major", "", "1,2,3")], [("", "R01", "", "", "1,2,3,4")]))
    with pytest.raises(ConfigError, match="window_tolerance_px"):
        Validation(window_tolerance_px=-1)
