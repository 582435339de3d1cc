"""What is installed: a wheel holds the code, the schemas, the configuration and the fixtures, and runs anywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The package as a wheel would install it."""
    builder = pytest.importorskip("hatchling.builders.wheel")
    folder = tmp_path_factory.mktemp("wheel")
    (wheel,) = builder.WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_what_a_wheel_is_told_to_hold():
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())
    target = table["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert target["force-include"] == {"configs": "geoeval/bundled/configs", "fixtures": "geoeval/bundled/fixtures"}
    assert table["project"]["scripts"] == {"geoeval": "geoeval.cli.main:run"}


def test_a_wheel_holds_all_of_it(unpacked):
    home = unpacked / "geoeval"
    held = {path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()}
    for folder, inside in (("src/geoeval", ""), ("configs", "bundled/configs/"), ("fixtures", "bundled/fixtures/")):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert inside + path.relative_to(ROOT / folder).as_posix() in held
    assert not [name for name in held if "__pycache__" in name or name.endswith((".nbi", ".nbc"))]


@pytest.mark.parametrize("arguments", [("--version",), ("benchmark", "--help"), ("evaluate", "--help")])
def test_an_unpacked_wheel_runs(unpacked, tmp_path, arguments):
    done = run(unpacked, tmp_path, *arguments)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_unpacked_wheel_finds_its_own_files(unpacked, tmp_path):
    """The configuration and the fixtures that it brings, read and scored from an empty folder: one small case."""
    code = (
        "import geoeval, json\n"
        "from geoeval.benchmark import bundled\n"
        "from geoeval.config import load_config\n"
        "config = load_config(bundled('configs/benchmark.toml'))\n"
        "case = next(one for one in config.cases if one.id == 'validation')\n"
        "found = geoeval.evaluate(geoeval.Validation(assume_clean=True), case.reference, case.prediction,\n"
        "    plan=geoeval.Plan(redraws=20))\n"
        "print(json.dumps([geoeval.__file__, len(config.cases), found['recall'].value]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], **surroundings(unpacked, tmp_path), check=True)
    home, cases, recall = json.loads(done.stdout)
    assert Path(home).is_relative_to(unpacked)
    assert cases == 7
    assert recall == pytest.approx(118 / 120)


def run(unpacked, folder, *arguments):
    return subprocess.run([sys.executable, "-m", "geoeval", *arguments], **surroundings(unpacked, folder), check=False)


def surroundings(unpacked, folder):
    environment = {**os.environ, "PYTHONPATH": str(unpacked), "PYTHONDONTWRITEBYTECODE": "1"}
    return {"cwd": folder, "env": environment, "capture_output": True, "text": True}
