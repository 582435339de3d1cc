"""A manifest without a sample is read, shown and checked, and proves nothing to the firewall."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from geoeval.errors import BundleError, InputError
from geoeval.splits import SplitSettings, assert_training_inputs_safe, build, read_manifest, write_manifests
from geoeval.splits.manifest_table import manifest_table
from geoeval.splits.record import Sample
from geoeval.splits.source import source_of


def sample(name, place):
    return Sample(
        sample_id=name,
        task="detection",
        bbox=(5 + place, 50.0, 5.001 + place, 50.001),
        crs="EPSG:4326",
        raw_image_sha256=f"{place + 1:064x}",
        perceptual_hash=f"{0x0123456789ABCDEF * (place + 1):016x}",
    )


@pytest.fixture
def result():
    source = source_of([sample("a", 0), sample("b", 5)], root=Path())
    return build(source, SplitSettings(shares={"train": 1.0}, required=()))


@pytest.fixture
def files(result, tmp_path):
    return write_manifests(result, tmp_path / "out")


@pytest.fixture
def run(capsys, monkeypatch):
    from geoeval.cli.main import run as geoeval

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["geoeval", *map(str, arguments)])
        code = 0
        try:
            geoeval()
        except SystemExit as end:
            code = int(end.code or 0)
        return code, *capsys.readouterr()

    return call


@pytest.mark.parametrize("key", [None, b"a key of the tests only"])
def test_an_empty_manifest_is_an_empty_table(files, tmp_path, key):
    manifest = read_manifest(files["protected"])
    assert manifest.samples == []
    assert manifest_table(manifest, tmp_path, key).n == 0


def test_an_empty_manifest_is_shown(run, files):
    code, out, err = run("split", "show", files["protected"])
    assert (code, err) == (0, "")
    assert "mode: declared" in out


def test_an_empty_manifest_is_checked_beside_the_other(run, files):
    code, out, err = run("split", "check", files["development"], files["protected"])
    assert (code, err) == (2, "")
    assert "samples: train 2" in out
    assert "not decidable" in out


def test_an_empty_manifest_alone_is_no_split(run, files):
    code, out, err = run("split", "check", files["protected"])
    assert (code, err) == (3, "")
    assert "train: this split has no sample" in out


def test_an_empty_protected_manifest_proves_nothing(files, tmp_path):
    manifest = read_manifest(files["protected"])
    with pytest.raises(InputError, match="protected manifest holds no sample, so that nothing can be proven"):
        assert_training_inputs_safe([sample("c", 9)], manifest, sha256=manifest.sha256, root=tmp_path)


def test_manifests_that_cannot_be_written_leave_no_folder(result, tmp_path, monkeypatch):
    from geoeval.splits import building

    def full(path, _):
        if path.name == "split.json":
            raise OSError(28, "No space left on device")
        path.write_bytes(b"x")

    monkeypatch.setattr(building, "write_file", full)
    with pytest.raises(BundleError, match="No space left on device"):
        write_manifests(result, tmp_path / "new" / "parent" / "x")
    assert list(tmp_path.iterdir()) == []
