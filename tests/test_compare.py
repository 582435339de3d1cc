"""Candidates compared: verdict, recommendation, report and plots."""

from __future__ import annotations

import importlib.util
import json
import random
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from geoeval import compare as pipeline
from geoeval.compare import (
    compare,
    exit_code,
    load_comparison,
    read_report,
    report_bytes,
    write_results,
)
from geoeval.errors import BundleError, ConfigError, InputError, LeakageError

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "fixtures" / "compare"
PREFILL = ROOT / "configs" / "compare-prefill.toml"
SCENES = ROOT / "configs" / "compare-scenes.toml"
SCHEMA = json.loads((ROOT / "src" / "geoeval" / "schemas" / "compare.schema.json").read_text())


@pytest.fixture(scope="module")
def go():
    return compare([FIXTURES / "go.jsonl"], load_comparison(PREFILL))


@pytest.fixture(scope="module")
def blocked():
    return compare([FIXTURES / "blocked.jsonl"], load_comparison(PREFILL))


@pytest.fixture(scope="module")
def scenes():
    return compare([FIXTURES / "scenes.jsonl"], load_comparison(SCENES))


def own(tmp_path, text="", gates='[[gate]]\nmetric = "macro_f1"\nat_least = 0.8\n', labels='["a", "b"]'):
    """A small configuration."""
    path = tmp_path / "own.toml"
    path.write_text(
        f'[run]\nname = "own"\n\n[record]\nlabels = {labels}\n{text}\n\n[intervals]\nredraws = 20\n\n{gates}'
    )
    return path


def answers(model, right=1.0, n=20, confidence=0.97, splits=("validation", "test")):
    """Records of one model: two labels in turn, the first of every so many wrong."""
    for split in splits:
        byte = {"train": 0, "validation": 205, "test": 230}[split]
        for i in range(n):
            truth = "ab"[i % 2]
            said = truth if i < right * n else "ba"[i % 2]
            yield {
                "model": model,
                "subjectKey": f"{byte:02x}{i:014x}",
                "split": split,
                "truth": {"label": truth},
                "prediction": {"label": said, "confidence": confidence},
            }


def written(tmp_path, records, name="p.jsonl"):
    path = tmp_path / name
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


def test_the_go_corpus(go):
    assert (go["verdict"], go["recommended"], exit_code(go)) == ("GO", "specialist", 0)
    assert [name for name, model in go["models"].items() if model["cleared"]] == ["specialist"]
    assert go["synthetic"]
    assert go["claim_limits"][0].startswith("synthetic predictions")


def test_the_blocked_corpus(blocked):
    assert (blocked["verdict"], blocked["recommended"], exit_code(blocked)) == ("BLOCKED", None, 3)


def test_the_leaked_corpus_is_refused_whole():
    with pytest.raises(LeakageError, match=r"leaked.jsonl, line 213: subjectKey .* is in validation here and in test"):
        compare([FIXTURES / "leaked.jsonl"], load_comparison(PREFILL))


def test_scenes_know_their_areas(scenes):
    assert (scenes["verdict"], scenes["recommended"]) == ("GO", "forest-net")
    assert scenes["models"]["forest-net"]["estimates"]["coverage"]["interval"]["clusters"] == 30
    assert [row["scope"] for row in scenes["models"]["forest-net"]["gates"]][-1] == "per_class:water"
    assert scenes["same_cases"]


@pytest.mark.parametrize("name", ["go", "blocked", "scenes"])
def test_a_report_follows_its_schema(name, request):
    report = request.getfixturevalue(name)
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(report_bytes(report)))


def test_the_poor_photo_abstains_although_its_answer_is_sure(go):
    for model in go["models"].values():
        assert model["abstentions"]["poor_quality"] == 1
        assert model["validation"]["abstentions"]["poor_quality"] == 1
    assert go["policy"]["name"] == "prefill"


@pytest.mark.parametrize("name", ["go", "blocked", "scenes"])
def test_the_parts_of_a_report_agree(name, request):
    report = request.getfixturevalue(name)
    for model in report["models"].values():
        accepted = sum(model["confusion"].values())
        right = sum(count for pair, count in model["confusion"].items() if len(set(pair.split("->"))) == 1)
        assert model["precision_at_coverage"] == pytest.approx(right / accepted)
        assert model["coverage"] == pytest.approx(accepted / model["test"]["n"])
        assert accepted + sum(model["abstentions"].values()) == model["test"]["n"]
        assert accepted == sum(row["n"] for row in model["ece_bins"])
        assert accepted == sum(row["support"] for row in model["per_class"].values())
        assert accepted == sum(row["predicted"] for row in model["per_class"].values())
        held = [row["f1"] for row in model["per_class"].values() if row["support"]]
        assert model["macro_f1"] == pytest.approx(sum(held) / len(held))
        off = sum(row["n"] * abs(row["confidence"] - row["correct"]) for row in model["ece_bins"] if row["n"])
        assert model["ece"] == pytest.approx(off / accepted)
        for row in model["gates"]:
            if row["scope"] == "overall":
                assert row["value"] == model[row["metric"]] == model["estimates"][row["metric"]]["value"]
        curve = model["risk_coverage"]
        assert curve["accepted"] == sorted(curve["accepted"])
        held = [n for c, n in zip(curve["threshold"], curve["accepted"], strict=True) if c >= model["threshold"]]
        assert held[-1] == accepted


def test_order_and_files_change_no_byte(tmp_path, go):
    lines = (FIXTURES / "go.jsonl").read_text().splitlines()
    random.Random(3).shuffle(lines)
    parts = []
    for i in range(3):
        path = tmp_path / f"{i}.jsonl"
        path.write_text("\n".join(lines[i::3]) + "\n")
        parts.append(path)
    again = compare(parts[::-1], load_comparison(PREFILL))
    assert report_bytes(again) == report_bytes(go)


def test_the_fixtures_are_those_of_the_script(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("make_compare", ROOT / "scripts" / "make_compare_fixtures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    module.main()
    for path in FIXTURES.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name


def test_the_highest_macro_f1_is_recommended_then_the_precision_then_the_name(tmp_path):
    good = [*answers("b", 0.9), *answers("c", 0.95), *answers("a", 0.95)]
    report = compare([written(tmp_path, good)], load_comparison(own(tmp_path)))
    assert (report["verdict"], report["recommended"]) == ("GO", "a")
    assert report["same_cases"]
    one = compare([written(tmp_path, answers("b", 0.9), "q.jsonl")], load_comparison(own(tmp_path)))
    assert one["recommended"] == "b"


def test_a_candidate_that_cannot_be_decided_is_not_cleared(tmp_path):
    """No validation, no test, nothing offered: blocked, and never refused."""
    for splits in (("test",), ("validation",), ("train",)):
        path = written(tmp_path, answers("m", splits=splits), f"{splits[0]}.jsonl")
        report = compare([path], load_comparison(own(tmp_path)))
        assert (report["verdict"], exit_code(report)) == ("BLOCKED", 3)
        assert report["models"]["m"]["gates"][0]["reason"] == "no_support"
        jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(report_bytes(report)))
    silent = [{**one, "prediction": None} for one in answers("m")]
    report = compare([written(tmp_path, silent, "s.jsonl")], load_comparison(own(tmp_path)))
    assert report["models"]["m"]["threshold"] is None
    assert report["verdict"] == "BLOCKED"
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(report_bytes(report)))


def test_one_undecided_candidate_does_not_stop_another(tmp_path):
    rows = [*answers("good"), *({**one, "prediction": None} for one in answers("silent"))]
    report = compare([written(tmp_path, rows)], load_comparison(own(tmp_path)))
    assert (report["verdict"], report["recommended"]) == ("GO", "good")


def test_no_gate_clears_nobody(tmp_path):
    report = compare([written(tmp_path, answers("m"))], load_comparison(own(tmp_path, gates="")))
    assert report["verdict"] == "BLOCKED"
    assert report["models"]["m"]["gates"][0]["reason"] == "no_policy"


def test_candidates_that_were_asked_differently_are_told(tmp_path):
    rows = [*answers("a"), *answers("b", n=18)]
    assert not compare([written(tmp_path, rows)], load_comparison(own(tmp_path)))["same_cases"]


def test_classes_without_support_are_named(tmp_path):
    labels = '["a", "b", "never", "spurious"]'
    rows = list(answers("m"))
    rows[-1] = {**rows[-1], "prediction": {"label": "spurious", "confidence": 0.97}}
    report = compare([written(tmp_path, rows)], load_comparison(own(tmp_path, labels=labels)))
    model = report["models"]["m"]
    assert [(row["label"], row["predicted"]) for row in model["excluded_classes"]] == [("never", 0), ("spurious", 1)]
    assert model["per_class"]["never"]["f1"] is None
    assert (model["per_class"]["spurious"]["precision"], model["per_class"]["spurious"]["f1"]) == (0.0, 0.0)
    assert model["macro_f1_counting_spurious_as_zero"] < model["macro_f1"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('name = "prefill"', 'name = ""', "run.name"),
        ("labels = [1, 2, 3, 4, 5, 6, 7]", "", "record.labels: is required"),
        ("labels = [1, 2, 3, 4, 5, 6, 7]", "labels = [1.5, 2]", "record.labels"),
        ("labels = [1, 2, 3, 4, 5, 6, 7]", "labels = [true, false]", "record.labels"),
        ("train_below = 205", "train_bellow = 205", "did you mean 'train_below'"),
        ("train_below = 205", "train_below = 240", "validation and test have room"),
        ("min_coverage = 0.50", "min_coverage = 50", "is it a percentage"),
        ("min_coverage = 0.50", 'min_coverage = "0.5"', "min_coverage"),
        ('metric = "ece"', 'metric = "eec"', "did you mean 'ece'"),
        ("at_most = 0.05", "", "exactly one of at_least and at_most"),
        ("at_most = 0.05", "at_most = 0.05\nat_least = 0.1", "exactly one of at_least and at_most"),
        ("at_most = 0.05", "at_most = nan", "gate"),
        ("at_most = 0.05", 'at_most = 0.05\non = "both"', "must be one of"),
        ("at_most = 0.05", 'at_most = 0.05\nlabel = "3"', "no metric 'ece' of a class"),
        ('metric = "ece"', 'metric = "recall"\nlabel = 9', "unknown label '9'"),
        ('metric = "ece"\nat_most = 0.05', 'metric = "macro_f1"\nat_least = 0.80', "occurs more than once"),
        ("abstention-prefill.toml", "none.toml", "none.toml: cannot be read"),
        ("[threshold]", "[treshold]", "did you mean 'threshold'"),
    ],
)
def test_a_configuration_that_cannot_be_understood_is_refused(old, new, says, tmp_path):
    text = PREFILL.read_text()
    assert old in text
    (tmp_path / "abstention-prefill.toml").write_bytes((ROOT / "configs" / "abstention-prefill.toml").read_bytes())
    path = tmp_path / "own.toml"
    path.write_text(text.replace(old, new))
    with pytest.raises(ConfigError, match=says) as refused:
        load_comparison(path)
    assert ".toml: " in str(refused.value)


def test_gates_on_classes(tmp_path):
    gates = '[[gate]]\nmetric = "recall"\nscope = "per_class"\nat_least = 0.5\n'
    report = compare([written(tmp_path, answers("m"))], load_comparison(own(tmp_path, gates=gates)))
    assert [row["scope"] for row in report["models"]["m"]["gates"]] == ["per_class:a", "per_class:b"]
    assert report["verdict"] == "GO"
    gates = '[[gate]]\nmetric = "recall"\nlabel = "c"\nat_least = 0.5\n'
    config = own(tmp_path, gates=gates, labels='["a", "b", "c"]')
    row = compare([written(tmp_path, answers("m"))], load_comparison(config))["models"]["m"]["gates"][0]
    assert row["status"] == "not_evaluable"


def test_results_are_written_whole_and_replaced(tmp_path, go, blocked):
    folder, file = tmp_path / "new" / "results", tmp_path / "alone.json"
    write_results(go, folder=folder, file=file)
    assert sorted(path.name for path in folder.iterdir()) == ["reliability.svg", "report.json", "risk-coverage.svg"]
    assert read_report(file) == go == read_report(folder / "report.json")
    write_results(blocked, folder=folder)
    assert read_report(folder / "report.json") == blocked
    assert len(list(folder.iterdir())) == 3


def test_a_disk_that_fails_leaves_what_was_there(tmp_path, go, blocked, monkeypatch):
    folder = tmp_path / "results"
    write_results(go, folder=folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    from geoeval.evidence import bundle

    real, calls = bundle.write_file, []

    def full(path, content):
        calls.append(path)
        if len(calls) == 3:
            raise OSError(28, "No space left on device")
        real(path, content)

    monkeypatch.setattr(bundle, "write_file", full)
    with pytest.raises(BundleError, match="No space left on device"):
        write_results(blocked, folder=folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_report_that_is_not_there_or_no_json(tmp_path):
    assert read_report(tmp_path / "none.json") is None
    (tmp_path / "bad.json").write_text('{"a": 1')
    with pytest.raises(InputError, match=r"bad\.json: is not JSON"):
        read_report(tmp_path / "bad.json")
    with pytest.raises(BundleError, match="cannot be read"):
        read_report(tmp_path)


@pytest.mark.parametrize("name", ["risk_coverage_svg", "reliability_svg"])
def test_plots_are_the_same_bytes_and_safe(name, go):
    from geoeval.selection import plots

    draw = getattr(plots, name)
    assert draw(go) == draw(json.loads(report_bytes(go)))
    text = draw(go).decode()
    assert "Synthetic predictions" in text
    assert "nan" not in text.lower()
    ET.fromstring(text)
    renamed = {**go, "name": "<script>&", "models": {'<b>"x': go["models"]["specialist"]}}
    ET.fromstring(draw(renamed))
    assert b"<script" not in draw(renamed)


def test_plots_of_nothing_and_of_many(go, tmp_path):
    from geoeval.selection.plots import reliability_svg, risk_coverage_svg

    silent = [{**one, "prediction": None} for one in answers("m")]
    report = compare([written(tmp_path, silent)], load_comparison(own(tmp_path)))
    for draw in (risk_coverage_svg, reliability_svg):
        ET.fromstring(draw(report))
        assert b"Synthetic" not in draw(report)
        many = {**go, "models": {f"m{i:02d}": go["models"]["specialist"] for i in range(20)}}
        assert b"and 8 more" in draw(many)


def test_nothing_of_a_place_stands_in_a_report(go):
    text = report_bytes(go).decode()
    assert "jsonl" not in text
    assert str(ROOT) not in text
    assert pipeline.SYNTHETIC in text
