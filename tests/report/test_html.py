"""The report says what matters first, escapes what it is given, loads nothing, and is made again from the bundle."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import shapely

from geoeval.bundling import Scored, write_run
from geoeval.estimation import Plan
from geoeval.evaluation import evaluate
from geoeval.evaluators.footprint import Footprint
from geoeval.evidence.raw import failure_gallery
from geoeval.evidence.tables import case_tables
from geoeval.gates import decide, decide_families, parse_gate
from geoeval.model import Estimate, Evaluation, Finding, Gate, Interval, Records, Stratum
from geoeval.options import Pairing
from geoeval.report.gallery import chosen, counts
from geoeval.report.html import Page, page_bytes
from geoeval.report.words import REASONS
from geoeval.summary import Policy
from geoeval.verify import verify

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "footprint"
RUN = "run-0123456789abcdef0123"
PLAN = Plan(redraws=40, ranked_redraws=10)


def point(value, support=50):
    return Estimate(value, "1", support, interval=Interval(0.7, 0.95, 0.95, "cluster_bootstrap", 30, 25.0))


def evaluation(recall=0.9, **more):
    strata = (
        Stratum({"region": "north"}, {"f1": point(0.5), "recall": point(0.5)}, "fail", critical=True),
        Stratum({"region": "south"}, {"f1": point(0.8)}, "not_evaluable", "no_policy"),
    )
    return Evaluation(
        "footprint",
        "footprint/1",
        "footprint/1|iou=0.5",
        {"f1": point(0.85), "recall": point(recall)},
        strata=strata,
        **more,
    )


def verdict(value, name="houses:floor"):
    return decide(Gate(name, "recall", "at_least", 0.8, on="value", family="footprint"), Estimate(value, "1", 50))


def page(evaluations=None, verdicts=(), **options):
    manifest = {"synthetic": False, "configuration": {"name": "autumn", "claim_limits": ["one season"]}}
    manifest |= options.pop("manifest", {})
    return Page(RUN, manifest, {"houses": evaluation()} if evaluations is None else evaluations, verdicts, **options)


def rendered(*given, **options):
    return page_bytes(page(*given, **options)).decode()


def body_text(html):
    inside = html.split("<body>")[1]
    return [line for line in re.sub(r"<[^>]+>", "", inside).splitlines() if line.strip()]


@pytest.mark.parametrize(
    ("value", "word", "hue"), [(0.9, "GO", "green"), (0.1, "BLOCKED", "red"), (None, "NOT DECIDABLE", "grey")]
)
def test_the_decision_stands_first_in_words_and_in_colour(value, word, hue):
    html = rendered(None, (verdict(value),))
    assert f'<span class="badge big {hue}">{word}</span>' in html
    assert f"1 of 1 cases {word} (houses)" in html


def test_a_waived_failure_is_amber_and_says_by_whom():
    html = rendered(None, (replace(verdict(0.1), waived_by="the board"),))
    assert '<span class="badge big amber">BLOCKED, waived</span>' in html
    assert "waived by the board" in html


def test_synthetic_data_say_so_on_the_first_line():
    html = rendered(manifest={"synthetic": True})
    assert body_text(html)[0].startswith("Synthetic data.")
    assert "<title>SYNTHETIC" in html
    assert "Synthetic" not in rendered()


def test_a_gate_stands_with_value_limit_and_reason():
    html = rendered(None, (verdict(0.1), replace(verdict(None, "houses:other"), reason="low_support")))
    assert "≥ 0.8 on the value" in html
    assert '<span class="mark fail">FAIL</span>' in html
    assert REASONS["low_support"] in html


def test_no_gates_are_said():
    bare = decide_families([], {"houses": evaluation()}, {"houses": 5})
    for verdicts in ((), tuple(bare)):
        html = rendered(None, verdicts)
        assert "No gate was declared" in html
        assert "NOT DECIDABLE" in html
        assert "Margin" not in html


def test_the_smallest_sample_is_named_only_where_the_sample_is_smaller():
    undecided = replace(verdict(None), smallest_n=60, reason="low_support")
    assert "fewer than 60 observations can never pass" in rendered(None, (undecided,))
    assert "can never pass" not in rendered(None, (replace(undecided, support=80),))


def test_the_worst_subgroup_stands_with_its_gap():
    assert "<b>region north</b> with 0.5, −0.35 from overall" in rendered()


def test_subgroups_stand_under_the_whole_with_their_gates():
    html = rendered(None, (verdict(0.9),))
    rows = re.findall(r"<tr[^>]*><th scope=\"row\">(.*?)</th>", html.split("Subgroups by f1")[1])
    assert rows[:3] == ["overall", "region north <small>critical</small>", "region south"]
    assert "no gate" in html


def test_nothing_from_the_data_becomes_markup():
    evil = '<script>alert("x")</script>'
    found = evaluation(findings=(Finding(evil, "major", (evil,), evil, evil),))
    html = rendered({evil: found}, manifest={"configuration": {"name": evil, "claim_limits": [evil]}})
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_nothing_is_loaded_from_elsewhere():
    html = rendered(None, (verdict(0.9),))
    assert not re.search(r"(src|href)=\"(?!#)|@import|url\(|https?://|<script|<link", html)


def test_equal_findings_are_counted():
    found = tuple(Finding("crs-unknown", "minor", (f"{i}.tif",), "no system", "declare it") for i in range(5))
    html = rendered({"houses": evaluation(findings=found)})
    assert "0.tif; 1.tif; 2.tif and 2 more" in html
    assert html.count("crs-unknown") == 1


def test_an_undefined_figure_is_said_and_never_a_zero():
    undefined = Estimate(None, "1", 0, reason="undefined_ratio")
    html = rendered({"houses": Evaluation("footprint", "f/1", "s", {"recall": undefined})})
    assert "<b>undefined</b>" in html
    assert REASONS["undefined_ratio"] in html


def test_every_reason_has_words():
    from geoeval.model import MARKS
    from geoeval.model import REASONS as KNOWN
    from geoeval.report import words

    assert set(words.REASONS) == set(KNOWN)
    assert set(words.MARKS) == set(MARKS)


def records(n=30):
    shapes = np.array([shapely.box(i * 10, 0, i * 10 + 5, 5) for i in range(n)], dtype=object)
    return Records.of(
        n,
        unit="a",
        outcome=["fn" if i % 3 else "fp" for i in range(n)],
        error_type=["missed" if i % 3 else "class" for i in range(n)],
        reference_id=[f"r{i}" if i % 3 else "" for i in range(n)],
        prediction_id=["" if i % 3 else f"p{i}" for i in range(n)],
        geometry=shapes,
    )


def test_failures_are_counted_and_some_of_every_kind_are_drawn():
    failures = failure_gallery("houses", "footprint", records())
    assert counts(failures) == [{"kind": "missed", "count": 20}, {"kind": "invented: wrong class", "count": 10}]
    picked = chosen(failures)
    assert [row["outcome"] for row in picked] == ["fn"] * 6 + ["fp"] * 6
    assert chosen(list(reversed(failures))) == picked
    html = rendered(failures=failures, tables={"houses": case_tables(records())})
    assert html.count('class="picture"') == 12
    assert "20 missed, 10 invented: wrong class" in html


def test_failures_without_a_shape_are_listed():
    bare = Records.of(1, unit="a", outcome="fn", error_type="missed", reference_id="r1")
    failures = failure_gallery("houses", "footprint", bare)
    html = rendered(failures=failures, tables={"houses": case_tables(bare)})
    assert "reference r1" in html
    assert 'class="picture"' not in html


def scored_run(runs, **options):
    gates = (parse_gate("recall>=0.8", "footprint"), parse_gate("recall[region]>=0.75", "footprint"))
    result = evaluate(
        Footprint(),
        FIXTURES / "reference.geojson",
        FIXTURES / "prediction.geojson",
        pairing=Pairing(by=("region",), cluster="aoi"),
        plan=PLAN,
        policy=Policy(gates, min_support=5),
    )
    configuration = {
        "name": "houses",
        "cases": [{"id": "houses", "family": "footprint", "by": ["region"], "min_support": 5}],
        "intervals": asdict(PLAN),
        "gates": [asdict(gate) for gate in gates],
    }
    verdicts = decide_families(gates, {"houses": result.evaluation}, {"houses": 5})
    return write_run(runs, {"houses": Scored(result, Footprint())}, configuration, verdicts, **options)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return scored_run(tmp_path_factory.mktemp("runs"), synthetic=True)


def test_a_bundle_holds_report_and_layers_and_is_valid(bundle):
    found = verify(bundle)
    assert found.problems == ()
    assert found.rendered == ("board.json", "layers/houses.gpkg", "report.html")
    assert (bundle / "report.html").stat().st_size < 500_000
    assert bundle.name in (bundle / "report.html").read_text(encoding="utf-8")


def test_the_layers_hold_the_counts_of_the_metrics(bundle):
    import pyogrio

    estimates = json.loads((bundle / "metrics.json").read_bytes())["evaluations"]["houses"]["estimates"]
    path = bundle / "layers" / "houses.gpkg"
    reference = pyogrio.read_dataframe(path, layer="reference")["outcome"].value_counts()
    prediction = pyogrio.read_dataframe(path, layer="prediction")["outcome"].value_counts()
    for name, found in (("tp", reference), ("fn", reference), ("tp", prediction), ("fp", prediction)):
        assert found[name] == estimates[name]["value"]


def test_a_hit_keeps_the_shape_of_its_reference(bundle):
    case = json.loads((bundle / "baseline-raw-predictions.json").read_bytes())["cases"][0]
    match = case["matches"][0]
    ours = next(row for row in case["references"] if row["id"] == match["reference"])
    theirs = next(row for row in case["predictions_after_filter"] if row["id"] == match["prediction"])
    assert ours["geometry"] != theirs["geometry"]
    assert case["lineage"]["crs"].startswith("EPSG:")


@pytest.mark.parametrize("name", ["report.html", "layers/houses.gpkg"])
def test_a_derived_file_that_was_changed_is_found(bundle, tmp_path, name):
    import shutil

    copy = shutil.copytree(bundle, tmp_path / bundle.name)
    data = bytearray((copy / name).read_bytes())
    data[len(data) // 2] ^= 1
    (copy / name).write_bytes(bytes(data))
    assert f"{name}: is not what the bound files render to" in verify(copy).problems


def test_above_the_limit_raw_predictions_are_tables(bundle, tmp_path, monkeypatch):
    monkeypatch.setattr("geoeval.evidence.tables.LIMIT", 100)
    large = scored_run(tmp_path, synthetic=True)
    case = json.loads((large / "baseline-raw-predictions.json").read_bytes())["cases"][0]
    assert sorted(case["tables"]) == ["matches", "predictions", "references"]
    assert case["tables"]["references"]["rows"] == 432
    assert verify(large).problems == ()
    assert scored_run(tmp_path / "again", synthetic=True).name == large.name
    ours, theirs = ((folder / "report.html").read_text(encoding="utf-8") for folder in (bundle, large))
    assert ours.replace(bundle.name, large.name) == theirs


def test_a_table_whose_rows_are_others_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr("geoeval.evidence.tables.LIMIT", 100)
    large = scored_run(tmp_path)
    references = large / "raw" / "houses-references.parquet"
    import pyarrow.parquet as pq

    pq.write_table(pq.read_table(references).slice(1), references)
    problems = verify(large).problems
    assert any("its rows are not those" in problem for problem in problems)


def test_layers_that_another_gdal_laid_out_are_compared_by_their_features(bundle, monkeypatch):
    """Another date stands for another layout: other bytes, the same features."""
    from geoeval import verify as module

    path = bundle / "layers" / "houses.gpkg"
    contents = module.read_contents(bundle, module.read_listing(bundle))
    monkeypatch.setattr("geoeval.report.fixed_date.DATE", "2001-01-01T00:00:00.000Z")
    again = module.layer_renderer("houses")(contents)
    assert again != path.read_bytes()
    other = {"runtime": {"libraries": {"gdal_vector": "1.0.0"}}}
    assert module._same_layers(path, again, other)
    assert not module._same_layers(path, again, contents.manifest)
    fewer = replace(contents, files={"failure-gallery.json": b'{"failures": []}'})
    assert not module._same_layers(path, module.layer_renderer("houses")(fewer), other)


def test_a_report_that_other_code_made_is_told_apart(bundle, monkeypatch):
    monkeypatch.setattr("geoeval.verify.code_digest", lambda: "0" * 64)
    problems = verify(bundle, {"report.html": lambda contents: b"other"}).problems
    assert len(problems) == 1
    assert "was made by other code: verify it with geoeval" in problems[0]
