"""Tables and reports of findings, in every format, with what is guessed and what is refused."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pandas as pd
import pytest

from geoeval.errors import ColumnError, ConfigError, InputError
from geoeval.estimation import Plan
from geoeval.evaluation import evaluate
from geoeval.evaluators.validation import Validation
from geoeval.options import Columns, Pairing, Source
from geoeval.readers.findings import findings_units, read_report

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "validation"

KNOWN = [
    {"dataset": "a.gpkg", "feature": "007", "code": "V01", "severity": "blocker", "region": "north"},
    {"dataset": "b.gpkg", "feature": "1", "code": "V15", "severity": "minor", "region": "south"},
]
FOUND = [
    {"dataset": "a.gpkg", "feature": "007", "code": "V01", "severity": "Blocker", "region": "north"},
    {"dataset": "c.gpkg", "feature": "2", "code": "V15", "severity": "", "region": "south"},
]


def write(folder, name, content):
    path = folder / name
    if name.endswith(".csv"):
        pd.DataFrame(content).to_csv(path, index=False)
    elif name.endswith(".jsonl"):
        path.write_text("\n".join(map(json.dumps, content)) + "\n", encoding="utf-8")
    elif name.endswith(".parquet"):
        pd.DataFrame(content).to_parquet(path)
    else:
        path.write_text(json.dumps(content), encoding="utf-8")
    return str(path)


def sources(folder, known=KNOWN, found=FOUND, ending="json", **columns):
    reference = Source(write(folder, f"known.{ending}", known), columns=Columns(**columns))
    return reference, Source(write(folder, f"found.{ending}", found))


def units(folder, pairing=None, **options):
    return findings_units(*sources(folder, **options), pairing or Pairing())


def column(unit_set, name, side="reference"):
    return [value for unit in unit_set.units for value in getattr(unit.load(), side)[name]]


@pytest.mark.parametrize("ending", ["csv", "json", "jsonl", "parquet"])
def test_every_format_says_the_same(tmp_path, ending):
    found = units(tmp_path, ending=ending)
    assert [unit.id for unit in found.units] == ["a.gpkg", "b.gpkg", "c.gpkg"]
    assert column(found, "feature") == ["007", "1"]
    assert column(found, "severity", "prediction") == ["blocker", ""]
    assert len(found.inputs) == 2
    assert found.notes["cluster"] == "'dataset' (guessed)"
    assert found.clustered


def test_a_data_frame_is_a_table(tmp_path):
    found = findings_units(Source(pd.DataFrame(KNOWN)), Source(pd.DataFrame(FOUND)), Pairing())
    assert column(found, "code") == ["V01", "V15"]
    assert found.inputs == ()


def test_units_travel_to_other_processes(tmp_path):
    found = units(tmp_path)
    again = pickle.loads(pickle.dumps(found.units[0]))
    assert list(again.load().reference["feature"]) == ["007"]


def test_columns_are_guessed_and_the_guess_is_printed(tmp_path):
    known = [{"layer": "a", "fid": 3, "rule": "V01", "Level": "Major"}]
    found = units(tmp_path, known=known, found=[{"layer": "a", "fid": 3, "rule": "V01"}])
    assert column(found, "feature") == ["3"]
    assert found.notes["reference code column"] == "'rule' (guessed)"
    assert found.notes["prediction feature column"] == "'fid' (guessed)"


def test_columns_can_be_declared(tmp_path):
    known = [{"where": "a", "what": "V01", "how bad": "minor", "which": 7.0}]
    found = units(tmp_path, known=known, unit="where", label="what", kind="how bad", id="which")
    assert column(found, "feature") == ["7"]
    with pytest.raises(ColumnError, match="no column 'wat'; did you mean 'what'"):
        units(tmp_path, known=known, unit="where", label="wat", kind="how bad")


@pytest.mark.parametrize(
    ("known", "says"),
    [
        ([{"dataset": "a", "severity": "minor"}], "no column with the code of a finding"),
        ([{"dataset": "a", "code": "V01"}], "no column with the severity"),
        ([{"code": "V01", "severity": "minr"}], "row 1: severity 'minr' is not known; did you mean 'minor'"),
        ([{"code": "V01", "severity": ""}], "row 1: severity ''"),
        ([{"code": None, "severity": "minor"}], "row 1: reference without a code"),
        ([3], "row 1: expected an object"),
        ({"rows": 3}, "expected a list of findings"),
        ({"findings": [], "completed": "yes"}, "'completed' must be true or false, got 'yes'"),
        ({"findings": [], "read": True}, "'read' must be a whole number"),
    ],
)
def test_what_is_no_table_of_findings_is_refused(tmp_path, known, says):
    with pytest.raises(InputError, match=says):
        units(tmp_path, known=known)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.csv", b"code,severity\nV01\n", "line 2: does not have the 2 fields"),
        ("x.csv", b"code,severity\nV01,minor,extra\n", "line 2: does not have the 2 fields"),
        ("x.csv", b"\xff\xfe", "is not UTF-8"),
        ("x.csv", b'code,severity\n"V01,minor\n', "line"),
        ("x.jsonl", b'{"code": 1}\n{oops\n', "line 2: is not JSON"),
        ("x.json", b"{", "is not JSON"),
        ("x.xlsx", b"", "got '.xlsx'"),
    ],
)
def test_broken_files_are_refused_with_their_line(tmp_path, name, content, says):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=says):
        read_report(Source(str(path)))


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_report(Source(str(tmp_path / "none.csv")))
    with pytest.raises(InputError, match="got list"):
        read_report(Source([1]))


def test_text_between_quotes_may_hold_separators_and_line_ends(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b'code;severity;feature\r\nV01;minor;"a;b\nc"\r\n')
    assert read_report(Source(str(path))).rows[0]["feature"] == "a;b\nc"


def test_a_report_says_whether_the_validator_finished(tmp_path):
    known = {"anomalies": KNOWN, "expected": 100, "planted": ["V02", "V01"], "clean_datasets": {"c.gpkg": 500}}
    found = {"findings": FOUND, "completed": False, "read": 99}
    for unit in units(tmp_path, known=known, found=found).units:
        pair = unit.load()
        assert (pair.completed, pair.read, pair.expected, pair.planted) == (False, 99, 100, ("V01", "V02"))
    loaded = {unit.id: unit.load() for unit in units(tmp_path, known=known, found=found).units}
    assert loaded["c.gpkg"].clean.tolist() == [True]
    assert loaded["c.gpkg"].clean_features == 500
    assert loaded["a.gpkg"].clean.tolist() == [False]


def test_a_clean_dataset_without_any_finding_is_a_unit(tmp_path):
    known = {"anomalies": KNOWN, "clean_datasets": ["z.gpkg"], "clean_features": 40}
    found = units(tmp_path, known=known)
    assert found.units[-1].id == "z.gpkg"
    assert found.units[-1].load().clean_features == 40


def test_strata_come_from_both_sides(tmp_path):
    found = units(tmp_path, Pairing(by=("region", "severity")))
    assert [list(unit.load().strata["region"]) for unit in found.units] == [["north"], ["south"], []]
    assert list(found.units[2].load().prediction["by:region"]) == ["south"]
    assert found.reference_only == frozenset()
    bare = [{key: row[key] for key in ("dataset", "feature", "code")} for row in FOUND]
    assert units(tmp_path, Pairing(by=("region",)), found=bare).reference_only == {"region"}
    with pytest.raises(ColumnError, match="no column 'regoin'; did you mean 'region'"):
        units(tmp_path, Pairing(by=("regoin",)))


def test_clusters(tmp_path):
    found = units(tmp_path, Pairing(cluster="region"))
    assert [list(unit.load().cluster) for unit in found.units] == [["north"], ["south"], []]
    assert not units(tmp_path, Pairing(cluster="none")).clustered
    with pytest.raises(ConfigError, match="findings have no coordinates"):
        units(tmp_path, Pairing(cluster="grid:500m"))
    with pytest.raises(ColumnError, match=r"cluster: .* no column 'aio'"):
        units(tmp_path, Pairing(cluster="aio"))
    with pytest.raises(InputError, match="row 2: has no cluster"):
        units(tmp_path, Pairing(cluster="region"), known=[KNOWN[0], {**KNOWN[1], "region": ""}])


def test_ids_are_stable_and_never_row_numbers(tmp_path):
    twice = [KNOWN[0], KNOWN[0], {**KNOWN[0], "field": "name"}]
    ids = column(units(tmp_path, known=twice), "id")
    assert sorted(ids) == ["a.gpkg/007/V01", "a.gpkg/007/V01#2", "a.gpkg/007/V01#3"]
    turned = units(tmp_path, known=twice[::-1])
    by_field = dict(zip(column(turned, "id"), column(turned, "field"), strict=True))
    assert by_field == dict(zip(ids, column(units(tmp_path, known=twice), "field"), strict=True))


@pytest.mark.parametrize("known", [[], KNOWN])
def test_empty_sides_are_said_and_not_refused(tmp_path, known):
    found = units(tmp_path, known=known, found=[])
    assert "findings-empty" in [finding.code for finding in found.findings]


def test_the_fixture_is_counted_as_planted():
    """120 anomalies, two minor ones missed, one finding twice, three where nothing is known."""
    result = evaluate(
        Validation(),
        str(FIXTURES / "reference.csv"),
        str(FIXTURES / "prediction.csv"),
        pairing=Pairing(by=("region",)),
        plan=Plan(redraws=50),
    )
    values = {name: one.value for name, one in result.estimates.items()}
    assert [values[name] for name in ("tp", "fp", "fn")] == [118, 0, 2]
    assert [values[name] for name in ("unadjudicated", "duplicates", "misclassified")] == [3, 1, 0]
    assert (values["missed_blocker"], values["missed_critical"]) == (0, 0)
    assert [verdict.status for verdict in result.evaluation.gates] == ["pass", "pass"]
    assert result.notes["cluster"] == "'aoi' (guessed)"


def test_shuffled_rows_give_the_same_ledger(tmp_path):
    whole = [pd.read_csv(FIXTURES / f"{side}.csv", dtype=str) for side in ("reference", "prediction")]
    plan = Plan(redraws=20)
    first = evaluate(Validation(), whole[0], whole[1], plan=plan)
    turned = [frame.sample(frac=1, random_state=3) for frame in whole]
    again = evaluate(Validation(), turned[0], turned[1], plan=plan)
    assert first.ledger == again.ledger
    assert first.evaluation == again.evaluation
