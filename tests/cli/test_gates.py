"""Planted defects of gates, through the public face: what is missing, undefined, thin or absent never passes."""

from __future__ import annotations

import json

import pytest

EMPTY = {"type": "FeatureCollection", "features": []}


@pytest.fixture
def none(tmp_path):
    """A layer without features."""
    path = tmp_path / "none.geojson"
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32631"}}
    path.write_text(json.dumps({**EMPTY, "crs": crs}))
    return path


def rows(said, *, code=2):
    """The gates; none of them passes."""
    assert said.code == code
    gates = said.json["gates"]
    assert gates
    assert not [row for row in gates if row["status"] == "pass"]
    return gates


@pytest.mark.parametrize("on", ["", "@value"])
def test_a_metric_that_was_not_computed(evaluate, on):
    """The family has it, these geometries do not."""
    (row,) = rows(evaluate("vector", "--json", f"--gate=completeness>=0.1{on}"))
    assert (row["status"], row["reason"], row["value"]) == ("not_evaluable", "metric_missing", None)


@pytest.mark.parametrize(("metric", "reason"), [("precision", "undefined_ratio"), ("iou_mean", None), ("sq", None)])
def test_a_metric_that_is_undefined(evaluate, none, metric, reason):
    (row,) = rows(evaluate("footprint", "--json", f"--gate={metric}>=0@value", prediction=none))
    assert (row["status"], row["value"]) == ("not_evaluable", None)
    assert row["reason"] is not None
    assert reason in (None, row["reason"])


def test_a_ceiling_on_what_is_undefined(evaluate, none):
    """Nothing was matched, so that the distance of matches is not below any limit."""
    (row,) = rows(evaluate("vector", "--json", "--gate=rmse<=1000@value", prediction=none))
    assert (row["status"], row["value"]) == ("not_evaluable", None)


@pytest.mark.parametrize("family", ["detection", "footprint", "vector", "change"])
def test_zero_rows(evaluate, none, family):
    """Neither reference nor prediction: every ratio is null, counts are 0."""
    said = evaluate(family, "--json", "--gate=recall>=0@value", "--gate=f1>=0", reference=none, prediction=none)
    for row in rows(said):
        assert (row["status"], row["value"]) == ("not_evaluable", None)
    estimates = said.json["estimates"]
    assert [estimates[name]["value"] for name in ("tp", "fp", "fn")] in ([0, 0, 0], [None, None, None])
    assert estimates["recall"]["value"] is None


def test_reference_without_prediction_fails(evaluate, none):
    """Recall 0 is a value: it fails, it is not undefined."""
    (row,) = rows(evaluate("footprint", "--json", "--gate=recall>=0.5", prediction=none), code=3)
    assert (row["status"], row["value"]) == ("fail", 0)


def test_zero_rows_of_findings(evaluate, fixtures, tmp_path):
    header = (fixtures / "validation" / "reference.csv").read_text().splitlines()[0]
    (tmp_path / "none.csv").write_text(header + "\n")
    said = evaluate("validation", "--json", reference=tmp_path / "none.csv", prediction=tmp_path / "none.csv")
    assert {row["id"] for row in rows(said)} == {"no-missed-blocker", "no-missed-critical"}
    said = evaluate("validation", "--json", "--assume-clean", prediction=tmp_path / "none.csv")
    assert {row["status"] for row in rows(said, code=3)} == {"fail"}
    assert said.json["estimates"]["precision"]["value"] is None


def test_a_subgroup_that_nobody_knows(evaluate):
    for row in rows(evaluate("detection", "--json", "--by=region", "--critical=region=atlantis")):
        assert row["reason"] == "critical_subgroup_missing"


def test_a_class_that_nobody_knows(evaluate):
    (row,) = rows(evaluate("detection", "--json", "--gate=recall@castle>=0.1"))
    assert row["scope"] == "per_class:castle"
    assert row["reason"] == "metric_missing"


@pytest.mark.parametrize("gate", ["recall[region]>=0.1", "recall[region]>=0.1@value"])
def test_too_little_support(evaluate, gate):
    said = evaluate("detection", "--json", f"--gate={gate}", "--min-support=300")
    assert {row["reason"] for row in rows(said)} == {"low_support"}
    assert {(one["status"], one["support_reason"]) for one in said.json["strata"]} == {("not_evaluable", "low_support")}


def test_a_critical_subgroup_that_is_absent_blocks_what_would_pass(evaluate):
    said = evaluate("detection", "--json", "--gate=recall>=0.1", "--critical=region=north,south,atlantis")
    assert said.code == 2
    by_scope = {row["scope"]: (row["status"], row["reason"]) for row in said.json["gates"]}
    assert by_scope == {
        "overall": ("pass", None),
        "per_subgroup:region=north": ("pass", None),
        "per_subgroup:region=south": ("pass", None),
        "per_subgroup:region=atlantis": ("not_evaluable", "critical_subgroup_missing"),
    }


def test_a_critical_subgroup_that_is_too_small(evaluate):
    said = evaluate("detection", "--json", "--gate=recall>=0.1", "--critical=region=north", "--min-support=300")
    assert said.code == 2
    assert [row["reason"] for row in said.json["gates"]] == [None, "low_support"]


def test_few_clusters_and_none(evaluate, fixtures, tmp_path):
    """One AOI has no spread; with independence declared there is an interval again."""
    sides = {}
    for side in ("reference", "prediction"):
        data = json.loads((fixtures / "footprint" / f"{side}.geojson").read_text())
        data["features"] = [one for one in data["features"] if one["properties"]["aoi"] == "aoi-01"]
        sides[side] = tmp_path / f"{side}.geojson"
        sides[side].write_text(json.dumps(data))
    (row,) = rows(evaluate("footprint", "--json", "--gate=recall>=0.1", "--cluster=aoi", **sides))
    assert row["reason"] == "single_cluster"
    said = evaluate("footprint", "--json", "--gate=recall>=0.1", "--gate=f1>=0.1", "--cluster=none", **sides)
    assert said.code == 2
    assert [(row["status"], row["reason"]) for row in said.json["gates"]] == [
        ("pass", None),
        ("not_evaluable", "no_interval"),
    ]


def test_an_interval_on_both_sides_of_the_limit(evaluate):
    recall = evaluate("detection", "--json").json["estimates"]["recall"]
    limit = round((recall["interval"]["low"] + recall["value"]) / 2, 6)
    (row,) = rows(evaluate("detection", "--json", f"--gate=recall>={limit}"))
    assert row["reason"] == "ci_straddles_threshold"
    assert 0 < row["smallest_n"] < recall["denominator"]
    assert evaluate("detection", f"--gate=recall>={limit}@value").code == 0


def test_limits_are_inclusive(evaluate):
    recall = evaluate("detection", "--json").json["estimates"]["recall"]
    assert evaluate("detection", f"--gate=recall>={recall['value']}@value").code == 0
    assert evaluate("detection", f"--gate=recall>={recall['value'] + 1e-9}@value").code == 3
    assert evaluate("detection", f"--gate=recall<={recall['value']}@value").code == 0
    assert evaluate("detection", f"--gate=recall>={recall['interval']['low']}").code == 0


def gates_of(folder):
    (bundle,) = (folder / "runs").iterdir()
    return json.loads((bundle / "gates.json").read_bytes())["gates"]


@pytest.mark.parametrize("flag", [(), ("--allow-product-blocked",)])
def test_an_empty_policy(cli, own_benchmark, tmp_path, flag):
    """No gate is declared: nothing was demanded, so nothing is passed."""
    said = cli("benchmark", "--config", own_benchmark(), "--out", tmp_path / "out", *flag)
    assert said.code == 2
    assert "vector" in said.out
    found = {row["id"]: (row["status"], row["reason"]) for row in gates_of(tmp_path / "out")}
    assert found["vector:policy"] == ("not_evaluable", "no_policy")


def test_a_gate_whose_family_never_ran(cli, own_benchmark, tmp_path):
    gate = 'metric = "recall"\nat_least = 0.1\nfamily = '
    config = own_benchmark(*(f'{gate}"{family}"' for family in ("vector", "validation", "detection")))
    said = cli("benchmark", "--config", config, "--out", tmp_path / "out", "--allow-product-blocked")
    assert said.code == 2
    found = {row["id"]: (row["status"], row["reason"]) for row in gates_of(tmp_path / "out")}
    assert found["detection-recall"] == ("not_evaluable", "metric_missing")
    assert found["vector:vector-recall"] == ("pass", None)


@pytest.mark.parametrize(
    ("gate", "reason"),
    [
        ('metric = "completeness"\nat_least = 0.1', "metric_missing"),
        ('metric = "recall"\nat_least = 0.1\nmin_support = 100000', "low_support"),
        ('metric = "recall"\nat_least = 0.1\nby = "planet"', None),
        ('metric = "recall"\nat_least = 0.1\nlabel = "castle"', "metric_missing"),
        ('metric = "recall"\nat_least = 0.1\nscope = "per_class"', None),
        ('metric = "recall"\nat_least = nan', None),
    ],
)
def test_defects_in_a_configuration(cli, own_benchmark, tmp_path, gate, reason):
    config = own_benchmark(f'family = "vector"\n{gate}', 'family = "validation"\nmetric = "recall"\nat_least = 0.1')
    said = cli("benchmark", "--config", config, "--out", tmp_path / "out", "--allow-product-blocked")
    assert said.code == 2
    if "nan" in gate or "planet" in gate:
        assert said.out == ""
        assert not (tmp_path / "out").exists()
        return
    own = [row for row in gates_of(tmp_path / "out") if row["id"].startswith("vector:")]
    assert own
    assert {row["status"] for row in own} == {"not_evaluable"}
    assert reason in (None, *(row["reason"] for row in own))


def test_a_critical_subgroup_of_a_configuration(cli, own_benchmark, tmp_path):
    gates = [f'family = "{family}"\nmetric = "recall"\nat_least = 0.1' for family in ("vector", "validation")]
    config = own_benchmark(*gates)
    text = config.read_text().replace('attributes = ["surface"]', 'critical = { region = ["north", "atlantis"] }', 1)
    config.write_text(text)
    said = cli("benchmark", "--config", config, "--out", tmp_path / "out", "--allow-product-blocked")
    assert said.code == 2
    found = {row["scope"]: row for row in gates_of(tmp_path / "out") if row["id"].startswith("vector:")}
    assert found["per_subgroup:region=north"]["status"] == "pass"
    assert found["per_subgroup:region=atlantis"]["reason"] == "critical_subgroup_missing"
    (bundle,) = (tmp_path / "out" / "runs").iterdir()
    assert cli("verify", "--recount", bundle).code == 0


def test_a_gate_by_a_field_that_the_case_does_not_list(cli, own_benchmark, tmp_path):
    """The gate is reason enough to look; the bundle counts up again all the same."""
    tail = 'metric = "recall"\nat_least = 0.1'
    config = own_benchmark(f'family = "vector"\nby = "region"\n{tail}', f'family = "validation"\n{tail}')
    said = cli("benchmark", "--config", config, "--out", tmp_path / "out", "--allow-product-blocked")
    assert said.code == 0
    scopes = {row["scope"] for row in gates_of(tmp_path / "out") if row["id"].startswith("vector:")}
    assert scopes == {"per_subgroup:region=north", "per_subgroup:region=south"}
    (bundle,) = (tmp_path / "out" / "runs").iterdir()
    said = cli("verify", "--recount", bundle)
    assert said.code == 0, said.out
