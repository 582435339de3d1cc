"""``geoeval benchmark``: what it prints says why a gate does not pass."""

from __future__ import annotations

import json

import pytest

from .conftest import FIXTURES

CASE = """[run]
name = "few"
synthetic = true

[intervals]
redraws = 20
ranked_redraws = 10

[[case]]
id = "detection"
family = "detection"
reference = "reference.geojson"
prediction = "prediction.geojson"
cluster = "aoi"
by = ["region"]
"""


def gate(metric, limit, family="detection", **more):
    rest = "".join(f"{name} = {json.dumps(value)}\n" for name, value in more.items())
    return f'\n[[gate]]\nfamily = "{family}"\nmetric = "{metric}"\nat_least = {limit}\n{rest}'


@pytest.fixture
def four_clusters(tmp_path):
    """Boxes of four AOIs only, which is too few to decide anything on an interval."""
    for side in ("reference", "prediction"):
        layer = json.loads((FIXTURES / "detection" / f"{side}.geojson").read_text(encoding="utf-8"))
        kept = sorted({one["properties"]["aoi"] for one in layer["features"]})[:4]
        layer["features"] = [one for one in layer["features"] if one["properties"]["aoi"] in kept]
        (tmp_path / f"{side}.geojson").write_text(json.dumps(layer), encoding="utf-8")

    def table(cli, *gates):
        path = tmp_path / "benchmark.toml"
        path.write_text(CASE + "".join(gates), encoding="utf-8")
        said = cli("benchmark", "--config", path, "--out", tmp_path / "out")
        return said.code, said.out.splitlines()

    return table


HELD = "overall: 0.8889 [0.5853, 0.9784], n = 72"


def test_the_reason_of_a_gate_that_cannot_be_decided_stands_below_the_table(cli, four_clusters):
    region = gate("recall", 0.75, by="region", min_support=2000)
    raster = gate("accuracy", 0.75, family="raster")
    code, lines = four_clusters(cli, gate("recall", 0.8), gate("f1", 0.8), region, raster)
    assert code == 2
    start = lines.index("gates that do not pass")
    recall, f1, north, missing = lines[start + 1 : start + 5]
    assert recall == f"detection: not_evaluable (few_clusters, 4 of 10 clusters): recall ≥ 0.8 on the interval, {HELD}"
    assert f1.startswith("detection: not_evaluable (few_clusters, 4 of 20 clusters): f1 ≥ 0.8 on the interval, overall")
    assert north.startswith(
        "detection: not_evaluable (low_support, 72 of 2000): recall ≥ 0.75 on the interval, per_sub"
    )
    assert missing.startswith("raster: not_evaluable (metric_missing): accuracy ≥ 0.75 on the interval, overall")


def test_few_clusters_of_a_subgroup_are_counted_too(cli, four_clusters):
    _, lines = four_clusters(cli, gate("recall", 0.75, by="region"))
    says = (
        "detection: not_evaluable (few_clusters, 4 of 10 clusters): recall ≥ 0.75 on the interval, per_subgroup:region="
    )
    assert [line for line in lines if line.startswith(says)]


def test_a_gate_that_fails_stands_there_and_one_that_passes_does_not(cli, four_clusters):
    code, lines = four_clusters(cli, gate("recall", 0.99, on="value"), gate("precision", 0.5, on="value"))
    assert code == 3
    assert f"detection: fail: recall ≥ 0.99 on the value, {HELD}" in lines
    assert not [line for line in lines if "precision ≥" in line]


def test_a_family_without_a_policy_is_named(cli, four_clusters):
    _, lines = four_clusters(cli)
    assert "detection: not_evaluable (no_policy), overall" in lines


def test_the_first_of_many_are_shown_and_the_others_counted(cli, four_clusters, monkeypatch):
    monkeypatch.setattr("geoeval.cli.benchmark._SHOWN_GATES", 1)
    _, lines = four_clusters(cli, gate("recall", 0.8), gate("precision", 0.8), gate("f1", 0.8))
    assert "detection: … and 2 more (gates.json has all)" in lines
    assert len([line for line in lines if line.startswith("detection: not_evaluable")]) == 1


def test_without_such_a_gate_nothing_stands_there(cli, four_clusters):
    _, lines = four_clusters(cli, gate("recall", 0.5, on="value"))
    assert "gates that do not pass" not in lines
