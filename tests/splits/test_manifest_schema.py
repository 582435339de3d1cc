"""A manifest by hand, or edited and hashed again, holds what a build writes; anything else is refused by name."""

from __future__ import annotations

import copy
import json
import sys
import time
from pathlib import Path

import pytest

from geoeval.errors import InputError
from geoeval.evidence.canonical import canonical_bytes, digest
from geoeval.splits import SplitSettings, build, read_manifest, write_manifests
from geoeval.splits.list_inputs import read_inputs
from geoeval.splits.manifest import Manifest, checked_manifest
from geoeval.splits.record import Sample
from geoeval.splits.source import source_of

KEY = b"a key of the tests only"
SHARES = {"train": 0.4, "test": 0.3, "challenge": 0.3}
NESTED = json.loads("[" * 200 + "]" * 200)


def samples():
    return [
        Sample(
            sample_id=f"s{i}",
            task="detection",
            object_ids=(f"o{i}",),
            bbox=(5 + i, 50.0, 5.001 + i, 50.001),
            crs="EPSG:4326",
            raw_image_sha256=f"{i:064x}",
            perceptual_hash=f"{0x0123456789ABCDEF * (i + 1) % 2**64:016x}",
            strata={"region": "north"},
        )
        for i in range(9)
    ]


@pytest.fixture(scope="module")
def built():
    return build(source_of(samples(), root=Path()), SplitSettings(shares=SHARES, required=()), key=KEY)


def hashed(content):
    return Manifest(content, digest(canonical_bytes(content)))


@pytest.fixture
def refused(built, tmp_path):
    """The protected manifest after an edit, hashed again; refused in a file and in code; what is said."""

    def call(edit, name="protected"):
        content = copy.deepcopy(dict(built.manifests[name].content))
        edit(content)
        manifest = hashed(content)
        path = tmp_path / f"{name}.json"
        path.write_bytes(manifest.data())
        with pytest.raises(InputError, match=name) as caught:
            read_manifest(path)
        with pytest.raises(InputError, match=r"^manifest"):
            checked_manifest(manifest)
        return str(caught.value)

    return call


def test_what_a_build_writes_is_taken(built, tmp_path):
    for path in write_manifests(built, tmp_path / "out").values():
        if path.name != "split.json":
            assert read_manifest(path).data() == path.read_bytes()


SETTINGS = {
    "shares": (None, {"train": "much"}, {"train": True}, {"train": 0.5}, {"nobody": 1.0}, []),
    "strata": (None, "region", [1]),
    "background": ("a", ["a"], [1, 2]),
    "buffer_m": (None, "2000", -1, True, 1e301),
    "buffer_mode": (None, 1, "mix"),
    "block_m": ("1", -5),
    "radius": (None, "4", 2.5, 99, True),
    "confirmed_radius": (None, 99),
    "confirming_bits": ([], 99),
    "identities": (None, "group_id", ["nothing"], [1]),
    "required": (None, ["nothing"]),
    "required_splits": (None, ["nothing"], "test"),
}


@pytest.mark.parametrize(("field", "value"), [(name, one) for name, those in SETTINGS.items() for one in those])
def test_settings_of_the_wrong_kind_are_refused(refused, field, value):
    says = refused(lambda content: content["settings"].update({field: value}))
    assert (field if field != "required_splits" else "settings.") in says


@pytest.mark.parametrize("value", [{}, None, [], "x", 1])
@pytest.mark.parametrize("field", ["settings", "perceptual", "gates", "splits", "unknown", "samples", "flat"])
def test_a_field_of_the_wrong_kind_is_refused(refused, field, value):
    if (field, value) in (("unknown", {}), ("flat", [])):
        pytest.skip("holds")
    assert field in refused(lambda content: content.update({field: value})) or field == "samples"


@pytest.mark.parametrize("field", ["mode", "set", "source_sha256", "seal", "schema", "production_accuracy_use_allowed"])
@pytest.mark.parametrize("value", [None, [], {}, 7, "0" * 63])
def test_a_head_of_the_wrong_kind_is_refused(refused, field, value):
    refused(lambda content: content.update({field: value}))


ENTRY = {
    "sample_id": (5, None, "", "unknown", " s0", "s0\u200b", ["s0"]),
    "split": (5, None, "test", [], "nobody"),
    "task": (5, None, ""),
    "group_id": (5, None, ["a"]),
    "bbox": ("x", None, [1, 2, 3], [1, 2, 3, "4"], [3, 0, 1, 1], [0, 0, 0, 95], [True, 0, 1, 1], [0, 0, 1e301, 1]),
    "crs": (5, "EPSG:999999", "somewhere", "unknown"),
    "raw_image": ("/etc/passwd", "../x", "a/../../x", "C:/x", "a\\b", "", ".", "a\0", 5, "x" * 5000),
    "label": ("/etc/passwd", "../x", None),
    "raw_image_sha256": ("ab", "A" * 64, 5, None, "hmac-sha256:00", "hmac-sha256:" + "0" * 64),
    "perceptual_hash": ("xyz", 5, "0" * 17, "hmac-pad:?", "hmac-pad:AAAA"),
    "perceptual_looks": ("AAAA", "", 5, "?"),
    "label_sketch": ("?", "", 5),
    "object_ids": ("o1", None, [1], {"a": 1}),
    "strata": ("x", {"a": 1}, None, ["a"]),
    "open_fixture": (True,),
}


@pytest.mark.parametrize(("field", "value"), [(name, one) for name, those in ENTRY.items() for one in those])
def test_an_entry_that_does_not_hold_is_refused_by_sample_and_field(refused, field, value):
    says = refused(lambda content: content["samples"][0].update({field: value}), "development")
    # The splits of a set are counted.
    assert (field in says and "sample" in says) or (field == "split" and "splits must count" in says)


@pytest.mark.parametrize("field", ["sample_id", "split", "crs"])
def test_an_entry_without_what_it_needs_is_refused(refused, field):
    assert field in refused(lambda content: content["samples"][0].pop(field))


@pytest.mark.parametrize("entry", [None, 5, "s0", [], NESTED])
def test_what_is_no_entry_is_refused(refused, entry):
    assert "samples[0] must be a table" in refused(lambda content: content["samples"].__setitem__(0, entry))


EDITS = {
    "too few": (lambda own: own["samples"].pop(0), "splits must count the samples"),
    "counts": (lambda own: own["splits"].update(test=99), "splits must count the samples"),
    "counts as text": (lambda own: own["splits"].update(test="3"), "splits must be a table"),
    "flat of nobody": (lambda own: own.update(flat=["nobody"]), "flat must be"),
    "flat of numbers": (lambda own: own.update(flat=[1]), "flat must be"),
    "unknown field": (lambda own: own["unknown"].update(nothing=[]), "unknown.nothing"),
    "unknown of nobody": (lambda own: own["unknown"].update(bbox=["nobody"]), "unknown.bbox"),
    "one gate less": (lambda own: own["gates"].pop("buffer"), "gates must be identity"),
    "one gate more": (lambda own: own["gates"].update(more={"status": "pass"}), "gates must be identity"),
    "gate without status": (lambda own: own["gates"].update(buffer={}), "gates.buffer"),
    "gate of a text": (lambda own: own["gates"].update(buffer="pass"), "gates.buffer"),
    "status of a list": (lambda own: own["gates"]["buffer"].update(status=[]), "gates.buffer"),
    "count of a text": (lambda own: own["gates"]["buffer"].update(count="0"), "gates.buffer"),
    "radius of its own": (lambda own: own["perceptual"].update(radius=1), "perceptual.radius"),
    "recipe of a text": (lambda own: own["perceptual"].update(recipe="x"), "perceptual.recipe"),
    "no seal": (lambda own: own.update(seal=None), "is sealed, and seal does not say so"),
    "a seal of its own": (lambda own: own["seal"].update(more=1), "seal must be null"),
    "a seal of no key": (lambda own: own["seal"].update(key_check="x"), "seal.key_check"),
    "a seal of no split": (lambda own: own["seal"]["fields"].update(train=[]), "seal.fields"),
    "a seal of the task": (lambda own: own["seal"]["fields"].update(test=["task"]), "seal.fields.test"),
    "a seal of a text": (lambda own: own["seal"]["fields"].update(test="task"), "seal.fields"),
}


@pytest.mark.parametrize("kind", EDITS)
def test_what_does_not_fit_is_refused(refused, kind):
    edit, says = EDITS[kind]
    assert says in refused(edit)


def test_challenge_in_the_clear_is_refused(refused):
    def edit(content):
        entry = next(one for one in content["samples"] if one["split"] == "challenge")
        entry["raw_image_sha256"] = "0" * 64

    assert "raw_image_sha256 of a challenge sample must be sealed" in refused(edit)


@pytest.mark.parametrize("field", ["samples", "settings", "flat"])
def test_a_field_less_or_more_in_code_is_refused(built, field):
    content = dict(built.manifests["protected"].content)
    content.pop(field)
    with pytest.raises(InputError, match=rf"fields that differ: \['{field}'\]"):
        checked_manifest(hashed(content))


def test_what_the_key_opens_is_checked_too(built, tmp_path):
    """A padded text that was edited opens to anything."""
    from geoeval.splits.manifest_table import manifest_table
    from geoeval.splits.seals import padded

    content = copy.deepcopy(dict(built.manifests["protected"].content))
    entry = next(one for one in content["samples"] if one["split"] == "challenge")
    owner = f"{entry['sample_id']}|{entry['record_sha256']}"
    entry["perceptual_hash"] = padded("no hash at all", "perceptual_hash", owner, KEY)
    manifest = checked_manifest(hashed(content))
    with pytest.raises(InputError, match=f"sample '{entry['sample_id']}': perceptual_hash must be"):
        manifest_table(manifest, tmp_path, KEY)


@pytest.mark.parametrize("command", ["check", "show"])
def test_the_command_line_refuses_without_a_traceback(built, tmp_path, command, capsys, monkeypatch):
    from geoeval.cli.main import run

    content = {**built.manifests["protected"].content, "settings": {}}
    path = tmp_path / "protected.json"
    path.write_bytes(hashed(content).data())
    monkeypatch.setattr(sys, "argv", ["geoeval", "split", command, str(path)])
    with pytest.raises(SystemExit) as end:
        run()
    err = capsys.readouterr().err
    assert end.value.code == 2
    assert "protected.json: settings" in err
    assert "Traceback" not in err


def test_text_nested_beyond_reason_is_refused(tmp_path):
    path = tmp_path / "protected.json"
    for depth in (400, 900, 5_000, 200_000):
        path.write_text('{"schema": "geoeval/split-manifest/1", "samples": ' + "[" * depth + "]" * depth + "}")
        for read in (read_manifest, lambda one: read_inputs([str(one)])):
            with pytest.raises(InputError, match=r"protected\.json"):
                read(path)


def test_very_many_entries_are_checked_in_seconds(built):
    from geoeval.splits.manifest_schema import check_content

    content = copy.deepcopy(dict(built.manifests["development"].content))
    one = {**content["samples"][0], "raw_image": "raw/a.tif", "label": "labels/a.geojson", "group_id": "g"}
    content["samples"] = [{**one, "sample_id": f"s{at:06d}"} for at in range(20_000)]
    content |= {"splits": {"train": 20_000}, "unknown": {}, "flat": []}
    start = time.perf_counter()
    check_content(content, "development.json", ("train",))
    assert time.perf_counter() - start < 10
