"""Manifests name their own hash, open for whom they should, and tell nothing about challenge without the key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from geoeval.errors import ConfigError, InputError
from geoeval.evidence.canonical import canonical_bytes, digest
from geoeval.splits import SplitSettings, build, read_manifest, write_manifests
from geoeval.splits.record import Sample
from geoeval.splits.seals import opened_entry, sealed_value
from geoeval.splits.source import source_of

KEY = b"a key of the tests only"
SHARES = {"train": 0.4, "test": 0.3, "challenge": 0.3}


def samples():
    return [
        Sample(
            sample_id=f"s{i}",
            task="detection",
            bbox=(5 + i, 50.0, 5.001 + i, 50.001),
            crs="EPSG:4326",
            raw_image_sha256=f"{i:064x}",
            label_sha256=f"{i + 100:064x}",
            perceptual_hash=f"{0x0123456789ABCDEF * (i + 1) % 2**64:016x}",
        )
        for i in range(9)
    ]


def built(**more):
    return build(source_of(samples(), root=Path()), SplitSettings(shares=SHARES, required=()), **{"key": KEY, **more})


@pytest.fixture
def protected(tmp_path):
    return write_manifests(built(), tmp_path / "out")["protected"]


def rewritten(path, change):
    content = json.loads(path.read_bytes())
    change(content)
    content["manifest_sha256"] = digest(canonical_bytes({k: v for k, v in content.items() if k != "manifest_sha256"}))
    path.write_bytes(canonical_bytes(content) + b"\n")
    return path


def test_a_manifest_comes_back_as_it_was_written(protected):
    assert read_manifest(protected) == built().manifests["protected"]


def test_sets_hold_their_own_splits_and_nothing_else():
    manifests = built().manifests
    assert {one["split"] for one in manifests["development"].samples} == {"train"}
    assert {one["split"] for one in manifests["protected"].samples} == {"test", "challenge"}
    assert manifests["development"].sha256 != manifests["protected"].sha256


def test_the_recipe_its_versions_and_the_radius_stand_in_the_manifest():
    from geoeval.splits import phash

    said = built().manifests["development"].content["perceptual"]
    assert said["radius"] == 4
    assert said["recipe"] == json.loads(canonical_bytes(phash.RECIPE))


def test_an_edited_manifest_is_refused(protected):
    protected.write_bytes(protected.read_bytes().replace(b'"task":"detection"', b'"task":"detectioN"', 1))
    with pytest.raises(InputError, match="edited after hashing"):
        read_manifest(protected)


def test_bytes_that_are_not_canonical_are_refused(protected):
    protected.write_text(json.dumps(json.loads(protected.read_bytes()), indent=1))
    with pytest.raises(InputError, match="edited after hashing"):
        read_manifest(protected)


def test_an_edited_and_rehashed_manifest_is_not_the_one_that_was_bound(protected):
    sha256 = built().manifests["protected"].sha256
    rewritten(protected, lambda content: content["samples"].pop())
    with pytest.raises(InputError, match="expected the manifest"):
        read_manifest(protected, sha256=sha256)


def test_a_flag_in_the_data_allows_nothing(protected):
    rewritten(protected, lambda content: content.update(production_accuracy_use_allowed=True))
    with pytest.raises(InputError, match="cannot carry"):
        read_manifest(protected)


def test_an_unknown_field_is_refused(protected):
    rewritten(protected, lambda content: content.update(open_fixture=True))
    with pytest.raises(InputError, match="open_fixture"):
        read_manifest(protected)


def test_a_fixture_opens_for_code_only(tmp_path):
    path = write_manifests(built(open_fixture=True), tmp_path / "out")["protected"]
    with pytest.raises(InputError, match="open_fixture=True"):
        read_manifest(path)
    assert read_manifest(path, open_fixture=True).content["production_accuracy_use_allowed"] is False


def test_hashes_of_challenge_stand_under_a_key():
    manifest = built().manifests["protected"]
    text = manifest.data().decode()
    clear = {one.sample_id: one for one in samples()}
    for entry in manifest.samples:
        own = clear[entry["sample_id"]]
        if entry["split"] == "challenge":
            assert own.raw_image_sha256 not in text
            assert own.perceptual_hash not in text
            assert entry["raw_image_sha256"] == sealed_value(own.raw_image_sha256, "raw_image_sha256", KEY)
            assert opened_entry(entry, KEY)["perceptual_hash"] == own.perceptual_hash
            assert "perceptual_hash" not in opened_entry(entry, None)
            assert entry["record_sha256"].startswith("hmac-sha256:")
        else:
            assert entry["raw_image_sha256"] == own.raw_image_sha256
    assert built(key=b"another key of these tests").manifests["protected"].sha256 != manifest.sha256


def test_a_short_key_seals_nothing():
    with pytest.raises(ConfigError, match="at least 16 bytes"):
        built(key=b"short")
