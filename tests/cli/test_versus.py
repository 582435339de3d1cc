"""``geoeval evaluate --versus``: a table of differences, one JSON object, exit codes, refusals."""

from __future__ import annotations

import pytest

from geoeval.evidence.shape import load_schema


@pytest.fixture
def paths(fixtures):
    folder = fixtures / "footprint"
    return folder / "reference.geojson", folder / "prediction.geojson"


def test_a_table_of_differences(evaluate, paths):
    said = evaluate("footprint", "--versus", paths[0], "--by=region")
    assert said.code == 0
    assert "footprint: candidate − incumbent" in said.out
    assert "least gain of f1: region=" in said.out
    assert "f1: adopt (gain +0.08146 [" in said.out
    assert "in 24 clusters)" in said.out


def test_itself_is_inconclusive(evaluate, paths):
    said = evaluate("footprint", "--versus", paths[1])
    assert said.code == 0
    assert "f1: inconclusive (no difference in any of 24 clusters)" in said.out


def test_one_json_object(evaluate, paths):
    jsonschema = pytest.importorskip("jsonschema")
    said = evaluate("footprint", "--versus", paths[0], "--json", "--metric=hausdorff_mean")
    data = said.json
    jsonschema.Draft202012Validator(load_schema("versus")).validate(data)
    assert (data["metric"], data["decision"]) == ("hausdorff_mean", "adopt")
    one = data["differences"]["hausdorff_mean"]
    assert one["difference"] == pytest.approx(-one["gain"])
    assert one["gain"] > 0
    assert data["candidate"]["estimates"]["tp"]["value"] == 432
    assert "incumbent: cluster: column 'aoi' (guessed)" in said.err


def test_only_gates_on_the_candidate_set_the_exit_code(evaluate, paths):
    worse = evaluate("footprint", "--versus", paths[1], prediction=paths[0])
    assert "f1: block (gain -0.08146 [" in worse.out
    assert worse.code == 0
    gated = evaluate("footprint", "--versus", paths[1], "--gate=recall>=0.99", prediction=paths[0])
    assert gated.code == 3
    assert evaluate("footprint", "--versus", paths[0], "--gate=recall>=0.9").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--metric=f1",), "give --versus too"),
        (("--versus={}", "--metric=recal"), "did you mean 'recall'"),
        (("--versus={}", "--metric=valid_reference"), "cannot decide between two footprint results"),
        (("--versus={}", "--out=runs"), "without --versus"),
        (("--versus=nowhere.geojson",), "nowhere.geojson"),
    ],
)
def test_what_is_refused(evaluate, paths, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = evaluate("footprint", *(text.format(paths[0]) for text in arguments))
    assert said.code == 2
    assert message in said.err
    assert said.out == ""
    assert list(tmp_path.iterdir()) == []
