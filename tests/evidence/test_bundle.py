"""A bundle names itself, is written whole or not at all, and never changes."""

from __future__ import annotations

import errno
from pathlib import Path

import jsonschema
import pytest

from geoeval.errors import BundleError
from geoeval.evidence import bundle as module
from geoeval.evidence.bundle import check_names, run_id, write_bundle
from geoeval.evidence.documents import document_of
from geoeval.evidence.runtime import runtime
from geoeval.evidence.shape import load_schema
from geoeval.evidence.verify_files import file_problems, read_listing

FILES = {"metrics.json": b"{}", "layers/raw.bin": b"\x00\x01"}
MANIFEST = {"synthetic": True, "configuration": {"iou": 0.5}}
DERIVED = {"board.json": lambda run: b'{"run":"' + run.encode() + b'"}'}


def write(folder, files=FILES, manifest=MANIFEST, derived=DERIVED):
    return write_bundle(folder, files, manifest, derived)


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_the_folder_is_named_by_the_hash_of_its_manifest(tmp_path):
    path = write(tmp_path / "runs")
    manifest = (path / "manifest.json").read_bytes()
    assert path.name == run_id(manifest)
    assert names(path) == ["board.json", "derived.json", "layers/raw.bin", "manifest.json", "metrics.json"]
    content = document_of(manifest, "manifest.json")
    jsonschema.Draft202012Validator(load_schema("manifest")).validate(content)
    assert [entry["path"] for entry in content["files"]] == ["layers/raw.bin", "metrics.json"]
    assert content["derived"] == ["board.json"]
    assert path.name in (path / "board.json").read_text()
    assert file_problems(path) == []


def test_two_equal_runs_give_equal_bytes(tmp_path):
    a, b = write(tmp_path / "a"), write(tmp_path / "b", dict(reversed(FILES.items())))
    assert a.name == b.name
    assert names(a) == names(b)
    assert all((a / name).read_bytes() == (b / name).read_bytes() for name in names(a))


def test_an_equal_bundle_that_is_there_already_is_success(tmp_path):
    path = write(tmp_path)
    assert write(tmp_path) == path
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("damage", ["changed", "missing", "extra"])
def test_a_different_bundle_under_that_name_is_refused(tmp_path, damage):
    path = write(tmp_path)
    if damage == "changed":
        (path / "metrics.json").write_bytes(b"{ }")
    elif damage == "missing":
        (path / "metrics.json").unlink()
    else:
        (path / "extra.txt").write_bytes(b"")
    with pytest.raises(BundleError, match="there already and differs"):
        write(tmp_path)


def test_any_bound_byte_changes_the_name(tmp_path):
    first = write(tmp_path)
    assert write(tmp_path, {**FILES, "metrics.json": b"{ }"}) != first
    assert write(tmp_path, manifest={**MANIFEST, "synthetic": False}) != first
    assert write(tmp_path, derived={}) != first


@pytest.mark.parametrize("at", [0, 1, 2, 4])
def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch, at):
    written = []
    whole = module.write_file

    def failing(path, content):
        if len(written) == at:
            path.write_bytes(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(path)
        whole(path, content)

    monkeypatch.setattr(module, "write_file", failing)
    with pytest.raises(BundleError, match=r"No space left on device\); nothing was left behind"):
        write(tmp_path / "runs")
    assert list((tmp_path / "runs").iterdir()) == []
    monkeypatch.setattr(module, "write_file", whole)
    assert file_problems(write(tmp_path / "runs")) == []


def test_a_crash_leaves_no_bundle_under_its_name(tmp_path, monkeypatch):
    def crash(path, content):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "write_file", crash)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "runs")
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_race_between_two_equal_writers_is_success(tmp_path, monkeypatch):
    """The other writer finishes between the look and the rename: rename fails, and what is there is equal."""
    other = write(tmp_path / "other")
    rename = Path.rename

    def late(self, target):
        rename(other, target)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", late)
    path = write(tmp_path / "runs")
    assert [entry.name for entry in (tmp_path / "runs").iterdir()] == [path.name]
    assert file_problems(path) == []


def test_large_files_are_copied_from_where_they_lie(tmp_path):
    source = tmp_path / "layer.gpkg"
    source.write_bytes(b"x" * 3_000_000)
    path = write(tmp_path / "runs", {"layers/a.gpkg": source})
    assert (path / "layers" / "a.gpkg").read_bytes() == source.read_bytes()
    assert file_problems(path) == []


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/etc/x",
        "../x",
        "a/../b",
        "a//b",
        "./a",
        "a\\b",
        "c:x",
        "nul",
        "COM1.txt",
        "a/aux.json",
        "a.",
        "a ",
        "a\nb",
        "a?b",
    ],
)
def test_names_that_some_system_cannot_hold_are_refused(tmp_path, name):
    with pytest.raises(BundleError, match="is no name"):
        write(tmp_path, {name: b""})


def test_names_that_differ_in_case_alone_are_refused(tmp_path):
    with pytest.raises(BundleError, match="one file on some systems"):
        check_names(["a.json", "A.json"])
    with pytest.raises(BundleError, match="one file on some systems"):
        write(tmp_path, {"Manifest.json": b""})


def test_what_is_written_here_cannot_be_given(tmp_path):
    with pytest.raises(BundleError, match="cannot be given"):
        write(tmp_path, manifest={"files": []})


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda p: (p / "metrics.json").write_bytes(b"[]"), "metrics.json: changed"),
        (lambda p: (p / "metrics.json").unlink(), "metrics.json: missing"),
        (lambda p: (p / "board.json").write_bytes(b"{}"), "board.json: changed"),
        (lambda p: (p / "board.json").unlink(), "board.json: missing"),
        (lambda p: (p / "derived.json").unlink(), "derived.json: missing"),
        (lambda p: (p / "derived.json").write_bytes(b"[]"), "derived.json: is not a list"),
        (lambda p: (p / "derived.json").write_bytes(b'{"run":"run-0","files":[]}'), "belongs to 'run-0'"),
        (lambda p: (p / "derived.json").write_bytes(b"nonsense"), "derived.json: is not JSON"),
        (lambda p: (p / "note.txt").write_bytes(b""), "note.txt: unexpected file"),
        (lambda p: (p / "layers" / "x").write_bytes(b""), "layers/x: unexpected file"),
        (lambda p: (p / "empty").mkdir(), "empty/: unexpected folder"),
        (lambda p: (p / "link").symlink_to(p / "metrics.json"), "link: a link"),
        (lambda p: (p / "manifest.json").write_bytes((p / "manifest.json").read_bytes() + b"\n"), "hashes to"),
    ],
)
def test_whatever_is_done_to_a_bundle_is_seen(tmp_path, damage, says):
    path = write(tmp_path)
    damage(path)
    assert any(says in problem for problem in file_problems(path)), file_problems(path)


def test_a_file_replaced_by_a_link_is_seen(tmp_path):
    path = write(tmp_path)
    copy = tmp_path / "copy"
    (path / "metrics.json").rename(copy)
    (path / "metrics.json").symlink_to(copy)
    assert "metrics.json: missing" in file_problems(path)


def test_a_renamed_bundle_is_seen(tmp_path):
    path = write(tmp_path).rename(tmp_path / "run-00000000000000000000")
    assert any("the folder is named" in problem for problem in file_problems(path))


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"schema":"geoeval/manifest/1"}', b'{"schema":"geoeval/manifest/1","files":[1]}']
)
def test_a_manifest_that_is_none_is_unreadable(tmp_path, content):
    path = write(tmp_path)
    (path / "manifest.json").write_bytes(content)
    with pytest.raises(BundleError, match=r"manifest\.json"):
        read_listing(path)


def test_no_bundle_at_all_is_unreadable(tmp_path):
    with pytest.raises(BundleError, match="no such bundle"):
        file_problems(tmp_path / "run-1")
    (tmp_path / "run-1").mkdir()
    with pytest.raises(BundleError, match="cannot be read"):
        file_problems(tmp_path / "run-1")


def test_a_manifest_cannot_point_outside(tmp_path):
    path = write(tmp_path)
    text = (path / "manifest.json").read_text().replace("metrics.json", "../metrics.json")
    (path / "manifest.json").write_text(text)
    with pytest.raises(BundleError, match="no name for a file"):
        read_listing(path)


def test_runtime_facts_name_no_host_no_path_and_no_time():
    facts = runtime()
    assert facts == runtime()
    assert facts["packages"]["numpy"] != "unknown"
    assert "/" not in str(facts)
    assert set(facts) == {
        "python",
        "implementation",
        "byte_order",
        "system",
        "machine",
        "packages",
        "libraries",
    }
