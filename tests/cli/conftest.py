"""The command line called in this process, as a shell would: exit code, stdout and stderr."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


class Said(NamedTuple):
    """What a command said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Stdout as one JSON value; NaN and Infinity are no JSON."""

        def refuse(text):
            raise AssertionError(f"{text} in JSON")

        return json.loads(self.out, parse_constant=refuse)


@pytest.fixture
def cli(capsys, monkeypatch) -> Callable[..., Said]:
    """Run ``geoeval`` with these arguments."""
    from geoeval.cli.main import run

    def call(*arguments: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["geoeval", *map(str, arguments)])
        capsys.readouterr()
        code = 0
        try:
            run()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        return Said(code, *capsys.readouterr())

    return call


@pytest.fixture
def evaluate(cli) -> Callable[..., Said]:
    """Run ``geoeval evaluate`` on the fixtures of a family, or on other sources, with few redraws."""

    def call(family: str, *arguments: object, reference: object = None, prediction: object = None) -> Said:
        ending = {"raster": "", "elevation": "", "validation": ".csv"}.get(family, ".geojson")
        folder = FIXTURES / family
        return cli(
            "evaluate",
            family,
            "--reference",
            reference or folder / f"reference{ending}",
            "--prediction",
            prediction or folder / f"prediction{ending}",
            "--redraws=40",
            "--ranked-redraws=10",
            *arguments,
        )

    return call


@pytest.fixture
def fixtures() -> Path:
    """The synthetic fixtures that come with geoeval."""
    return FIXTURES


@pytest.fixture
def own_benchmark(tmp_path) -> Callable[..., Path]:
    """A copy of the fixtures with a small configuration of its own; returns the configuration's path."""

    def build(*gates: str, synthetic: bool = True) -> Path:
        folder = tmp_path / "own"
        (folder / "configs").mkdir(parents=True)
        shutil.copytree(FIXTURES / "vector", folder / "fixtures" / "vector")
        shutil.copytree(FIXTURES / "validation", folder / "fixtures" / "validation")
        figures = json.loads((FIXTURES / "expected.json").read_text())
        own = {name: figures[name] for name in ("vector", "validation")}
        (folder / "fixtures" / "expected.json").write_text(json.dumps(own))
        text = f"""
[run]
name = "own"
synthetic = {str(synthetic).lower()}

[intervals]
redraws = 40
ranked_redraws = 10

[bind]
expected = "../fixtures/expected.json"

{CASES}
"""
        tables = "\n\n".join(f"[[gate]]\n{gate}" for gate in gates)
        (folder / "configs" / "own.toml").write_text(text + tables)
        return folder / "configs" / "own.toml"

    return build


CASES = """
[[case]]
id = "vector"
family = "vector"
reference = "../fixtures/vector/reference.geojson"
prediction = "../fixtures/vector/prediction.geojson"
cluster = "aoi"
attributes = ["surface"]
options = { max_distance_m = 5.0 }

[[case]]
id = "validation"
family = "validation"
reference = "../fixtures/validation/reference.csv"
prediction = "../fixtures/validation/prediction.csv"
cluster = "aoi"
options = { assume_clean = true }
"""
