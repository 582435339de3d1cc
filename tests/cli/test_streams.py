"""What stands behind standard output has no say in the verdict: pipes, closed streams, full disks, encodings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"

pytestmark = pytest.mark.skipif(os.name == "nt", reason="pipes are tried with a POSIX shell")


def shell(tail, *arguments, **environment):
    """Exit code of geoeval alone, and what came through."""
    words = [sys.executable, "-m", "geoeval", *map(str, arguments)]
    line = " ".join(f"'{word}'" for word in words)
    script = tail.replace("GEOEVAL", line)
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, check=False, env={**os.environ, **environment}, timeout=120
    )


def arguments(*more):
    sides = [FIXTURES / "vector" / f"{side}.geojson" for side in ("reference", "prediction")]
    few = ("--redraws=20", "--ranked-redraws=20")
    return ("evaluate", "vector", "--reference", sides[0], "--prediction", sides[1], *few, *more)


@pytest.mark.parametrize("more", [(), ("--json",)])
@pytest.mark.parametrize("reader", ["GEOEVAL | true", "GEOEVAL | head -1 >/dev/null", "GEOEVAL >&-"])
def test_the_verdict_stays_where_nobody_reads(reader, more):
    """A blocked model piped into ``head`` is still blocked."""
    after = "; exit ${PIPESTATUS[0]}" if "|" in reader else ""
    said = shell(reader + after, *arguments("--gate=recall>=0.999", *more))
    assert said.returncode == 3
    assert b"Traceback" not in said.stderr
    assert b"Exception" not in said.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_full_disk_is_said_and_no_verdict(more):
    said = shell("GEOEVAL >/dev/full", *arguments(*more))
    assert said.returncode == 2
    assert b"OSError: No space left on device" in said.stderr
    assert b"Traceback" not in said.stderr


@pytest.mark.parametrize("stop", ["KeyboardInterrupt", "click.Abort"])
def test_whoever_stops_a_command_gets_a_message_and_exit_code_2(cli, monkeypatch, stop, tmp_path):
    import click

    import geoeval.evaluation as pipeline

    def stopped(*_, **__):
        raise KeyboardInterrupt if stop == "KeyboardInterrupt" else click.Abort

    monkeypatch.setattr(pipeline, "evaluate", stopped)
    said = cli(*arguments("--out", tmp_path / "bundles"))
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("Interrupted: ")
    assert len(said.err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_narrow_encoding_gets_escapes(tmp_path):
    """Also on a console that cannot show a letter; JSON stays JSON."""
    given = json.loads((FIXTURES / "vector" / "reference.geojson").read_text(encoding="utf-8"))
    for at, feature in enumerate(given["features"]):
        feature["properties"]["straße"] = f"建物 {at % 2}"
    path = tmp_path / "größe.geojson"
    path.write_text(json.dumps(given), encoding="utf-8")
    command = ("evaluate", "vector", "--reference", path, "--prediction", path, "--redraws=20", "--by=straße")
    tables = shell("GEOEVAL", *command, PYTHONIOENCODING="ascii")
    assert (tables.returncode, rb"stra\xdfe" in tables.stdout) == (0, True)
    found = shell("GEOEVAL", *command, "--json", PYTHONIOENCODING="ascii")
    assert json.loads(found.stdout.decode("ascii"))["strata"][0]["by"] == {"straße": "建物 0"}


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("", "expected a path, found ''"),
        ("x" * 5000, "is no path: File name too long"),
        ("{folder}/link.gpkg", "is a link to 'nothing.gpkg', which is not there"),
    ],
)
@pytest.mark.parametrize("family", ["footprint", "raster", "validation"])
def test_paths_that_are_none(cli, tmp_path, path, says, family):
    (tmp_path / "link.gpkg").symlink_to("nothing.gpkg")
    path = path.replace("{folder}", str(tmp_path))
    said = cli("evaluate", family, "--reference", path, "--prediction", path)
    assert (said.code, said.out) == (2, "")
    assert says in said.err


def test_a_folder_for_bundles_whose_name_is_too_long(cli, tmp_path):
    said = cli(*arguments("--out", tmp_path / ("x" * 300)))
    assert said.code == 2
    assert "could not be written (File name too long)" in said.err


def test_labels_and_names_are_no_markup(cli, tmp_path):
    """Brackets and colons of the data are printed as they are, and bring no table down."""
    given = json.loads((FIXTURES / "vector" / "reference.geojson").read_text(encoding="utf-8"))
    names = ("[/b]", "[red]x", ":smile:")
    for at, feature in enumerate(given["features"]):
        feature["properties"].update({"label": names[at % 3], "addr:street": names[at % 3]})
    path = tmp_path / "a[1] :a:.geojson"
    path.write_text(json.dumps(given), encoding="utf-8")
    gate = "--gate=recall[addr:street]>=0.5@value"
    said = cli("evaluate", "vector", "--reference", path, "--prediction", path, "--redraws=20", gate)
    assert said.code == 0
    for name in names:
        assert f"addr:street={name}" in said.out
        assert f"\n{name} " in said.out
    described = cli("inspect", path)
    assert (described.code, ":a:" in described.out, "addr:street" in described.out) == (0, True, True)


def test_a_second_count_of_a_broken_bundle_is_a_problem_and_no_refusal(cli, tmp_path):
    assert cli(*arguments("--out", tmp_path)).code == 0
    (bundle,) = (tmp_path / "runs").iterdir()
    assert cli("verify", bundle, "--recount").code == 0
    (bundle / "metrics.json").write_text("{}", encoding="utf-8")
    said = cli("verify", bundle, "--recount")
    assert (said.code, "INVALID" in said.out, "recount: " in said.out) == (3, True, True)
