"""``geoeval board``: verified bundles side by side, and what machines read."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from geoeval.cli.board import command
from geoeval.cli.evaluate import command as evaluate
from geoeval.errors import BundleError, ConfigError


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """The bundle of two small layers with one gate that passes and one that cannot be decided."""
    folder = tmp_path_factory.mktemp("board")
    sides = [
        "--reference",
        "fixtures/footprint/reference.geojson",
        "--prediction",
        "fixtures/footprint/prediction.geojson",
    ]
    gates = ["--gate", "recall>=0.5", "--gate", "precision>=0.935"]
    options = ["--redraws", "20", "--ranked-redraws", "10", "--out", str(folder)]
    done = CliRunner().invoke(evaluate, ["footprint", *sides, *gates, *options])
    assert done.exit_code == 2, done.output
    return next((folder / "runs").iterdir())


def run(*arguments: object):
    return CliRunner().invoke(command, [str(one) for one in arguments], catch_exceptions=False)


def test_two_runs_stand_side_by_side(bundle, tmp_path):
    page = tmp_path / "board.html"
    assert run(bundle, bundle, "--out", page).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert "2 runs side by side" in text
    assert text.count("NOT DECIDABLE") >= 2
    assert "http" not in text.replace("http-equiv", "")


def test_a_gate_that_was_not_decided_is_an_error_never_skipped(bundle, tmp_path):
    report = tmp_path / "junit.xml"
    assert run(bundle, "--junit", report, "--openmetrics", tmp_path / "metrics.txt").exit_code == 0
    root = ET.parse(report).getroot()
    assert root.get("errors") == "1"
    assert not root.findall(".//skipped")
    assert (tmp_path / "metrics.txt").read_text(encoding="utf-8").endswith("# EOF\n")


def test_json_holds_every_board(bundle):
    found = json.loads(run(bundle, "--json").stdout)
    assert [one["status"] for one in found["boards"]] == ["not_evaluable"]


def test_exports_are_of_one_run(bundle, tmp_path):
    with pytest.raises(ConfigError, match="give one RUN"):
        run(bundle, bundle, "--junit", tmp_path / "j.xml")


def test_a_bundle_that_was_edited_is_refused(bundle, tmp_path):
    import shutil

    copy = tmp_path / bundle.name
    shutil.copytree(bundle, copy)
    (copy / "metrics.json").write_bytes((copy / "metrics.json").read_bytes().replace(b"389", b"399"))
    with pytest.raises(BundleError, match="not valid"):
        run(copy)
