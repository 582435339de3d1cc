"""The fixtures and their figures: the same bytes on every run and every machine."""

from __future__ import annotations

import importlib.util
import json
import re
import warnings
from hashlib import sha256
from pathlib import Path

import pytest

from geoeval.benchmark import benchmark, expected_figures
from geoeval.recount import recount
from geoeval.verify import verify

ROOT = Path(__file__).resolve().parents[2]


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The benchmark that comes with geoeval, run once."""
    return benchmark(None, tmp_path_factory.mktemp("first"))


def test_every_figure_is_the_expected_one(found):
    expected = json.loads((ROOT / "fixtures" / "expected.json").read_text())
    assert expected_figures(found.cases) == expected
    assert found.problems == ()


def test_families_pass_and_the_product_is_not_decidable(found):
    assert {verdict.status for verdict in found.verdicts} == {"pass"}
    assert {(verdict.status, verdict.reason) for verdict in found.product_gates} == {
        ("not_evaluable", "synthetic_only")
    }
    assert (found.exit_code(), found.exit_code(allow_product_blocked=True)) == (2, 0)
    assert set(found.cases) == {"detection", "footprint", "vector", "change", "raster", "elevation", "validation"}


def test_expected_figures_are_told_apart_from_undefined_ones(found):
    """A figure that is undefined is expected to be so; none of the headlines is."""
    expected = json.loads((ROOT / "fixtures" / "expected.json").read_text())
    undefined = {f"{case}.{name}" for case, row in expected.items() for name, value in row.items() if value is None}
    assert len(undefined) <= 2, undefined


def test_a_second_run_gives_the_same_bytes(found, tmp_path):
    again = benchmark(None, tmp_path)
    assert again.folder.name == found.folder.name
    assert files(again.folder) == files(found.folder)


def test_verifying_and_recounting_change_nothing(found):
    before = files(found.folder)
    assert verify(found.folder).problems == ()
    assert recount(found.folder) == []
    assert files(found.folder) == before


def test_no_bundle_tells_about_the_machine(found):
    """No absolute path, no clock, no host, no random name."""
    texts = {name: data.decode() for name, data in files(found.folder).items() if name.endswith((".json", ".html"))}
    assert {"metrics.json", "board.json"} <= set(texts)
    for name, text in texts.items():
        assert str(ROOT) not in text, name
        assert str(found.folder.parent) not in text, name
        assert name.endswith(".html") or not re.search(r'"(/|[A-Za-z]:\\\\)[^"]*"', text), name
        assert not re.search(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d", text), name
        assert "NaN" not in text, name


def test_fixtures_are_written_again_byte_for_byte(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("make_fixtures", ROOT / "scripts" / "make_fixtures.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setenv("GDAL_PAM_ENABLED", "NO")
    with warnings.catch_warnings():
        # rasterio multiplies affine transforms in a way that affine wants to do without one day.
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        script.main()
    made = files(tmp_path)
    listed = made.pop("README.md").decode().splitlines()
    there = files(ROOT / "fixtures")
    assert sorted(made) == sorted(name for name in there if of_families(name))
    assert [name for name in made if made[name] != there[name]] == []
    assert set(listed) <= set(there["README.md"].decode().splitlines())


OTHERS = ("splits", "compare", "replay", "judge")


def of_families(name):
    """Other scripts write the folders of ``OTHERS``; expected figures are nobody's input."""
    return name not in ("README.md", "expected.json") and name.split("/")[0] not in OTHERS


def test_the_list_of_fixtures_is_right():
    rows = re.findall(r"^\| (\S+) \| `([0-9a-f]{64})` \|$", (ROOT / "fixtures" / "README.md").read_text(), re.MULTILINE)
    assert {name for name in files(ROOT / "fixtures") if of_families(name)} <= {name for name, _ in rows}
    assert all(sha256((ROOT / "fixtures" / name).read_bytes()).hexdigest() == digest for name, digest in rows)
