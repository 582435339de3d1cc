"""The firewall: a protected case under any disguise is caught, a clean development input passes."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest

from geoeval.errors import ConfigError, InputError, LeakageError
from geoeval.splits import (
    SplitSettings,
    assert_training_inputs_safe,
    bind_evaluation,
    build,
    chip_index,
    patch_index,
)
from geoeval.splits.evaluation import assert_evaluation_assets

KEY = b"a key of the tests only"
SHARES = {"train": 0.25, "test": 0.25, "background-test": 0.25, "challenge": 0.25}


class Guarded:
    """Four samples on four places: p0 is test, p1 background-test, p2 challenge, p3 train."""

    def __init__(self, world):
        self.world, self.root = world, world.root
        roles = ("test", "background-test", "challenge", "train")
        self.records = [world.record(f"p{i}", i, split=role) for i, role in enumerate(roles)]
        result = build(world.write(self.records), SplitSettings(shares=SHARES), key=KEY)
        self.manifest = result.manifests["protected"]
        self.development = result.manifests["development"]

    def stranger(self, **fields):
        """A clean development input, far from everything, and what a test changes about it."""
        return {**self.world.record("new", 20, split="train"), **fields}

    def check(self, *records, **more):
        return assert_training_inputs_safe(records, self.manifest, **{"root": self.root, "key": KEY, **more})

    def refused(self, record, says):
        with pytest.raises(LeakageError) as caught:
            self.check(record)
        lines = str(caught.value).splitlines()
        assert any(says in line for line in lines), lines
        return caught.value


@pytest.fixture
def guarded(world):
    return Guarded(world)


def test_a_clean_development_input_passes(guarded):
    table = guarded.check(guarded.stranger(), guarded.records[3]).table
    assert table.ids(range(2)) == ("new", "p3")


@pytest.mark.parametrize("role", ["test", "background-test", "challenge"])
def test_protected_roles_are_refused(guarded, role):
    guarded.refused(guarded.stranger(split=role), f"its split is {role!r}")


def test_a_file_of_a_protected_case_is_refused(guarded):
    guarded.refused(guarded.stranger(raw_image="raw/p0.tif"), "'raw/p0.tif' is a file of the protected case 'p0'")


def test_a_renamed_file_is_caught_by_its_bytes(guarded):
    shutil.copy(guarded.root / "raw/p0.tif", guarded.root / "raw/harmless.tif")
    guarded.refused(guarded.stranger(raw_image="raw/harmless.tif"), "image_sha256 links it to the protected case 'p0'")


@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symbolic", "hard"])
def test_a_link_is_caught(guarded, link):
    link(guarded.root / "raw/p1.tif", guarded.root / "raw/linked.tif")
    guarded.refused(
        guarded.stranger(raw_image="raw/linked.tif"), "'raw/linked.tif' is a file of the protected case 'p1'"
    )


def test_a_copied_image_with_new_metadata_is_caught_by_its_looks(guarded):
    path = guarded.world.image("processed/tagged.tif", "p0", dtype="uint8", AUTHOR="somebody else")
    guarded.refused(
        guarded.stranger(processed_image=path, raw_image=None), "perceptual_hash links it to the protected case 'p0'"
    )


def test_a_reencoded_image_is_caught_by_its_looks(guarded):
    path = guarded.root / "processed/again.jpg"
    from PIL import Image

    Image.fromarray((255 * guarded.world.surface("p0")).astype(np.uint8)).save(path, quality=80)
    record = guarded.stranger(processed_image="processed/again.jpg", raw_image=None)
    guarded.refused(record, "perceptual_hash links it to the protected case 'p0'")


def test_a_mirrored_image_is_caught_by_its_looks(guarded):
    from PIL import Image

    data = (255 * guarded.world.surface("p0")).astype(np.uint8)
    Image.fromarray(np.ascontiguousarray(np.rot90(data[:, ::-1]))).save(guarded.root / "processed/turned.png")
    record = guarded.stranger(processed_image="processed/turned.png", raw_image=None)
    guarded.refused(record, "perceptual_hash links it to the protected case 'p0'")


def test_a_reencoded_challenge_image_is_caught_under_its_seal(guarded):
    path = guarded.world.image("processed/tagged.tif", "p2", dtype="uint8", AUTHOR="somebody else")
    guarded.refused(
        guarded.stranger(processed_image=path, raw_image=None), "perceptual_hash links it to the protected case 'p2'"
    )


def test_the_bytes_of_a_challenge_case_are_caught_under_its_seal(guarded):
    shutil.copy(guarded.root / "labels/p2.geojson", guarded.root / "labels/harmless.geojson")
    guarded.refused(
        guarded.stranger(label="labels/harmless.geojson"), "label_sha256 is that of the protected case 'p2'"
    )


def test_a_shifted_label_is_caught_by_its_shapes(guarded):
    """Another image, other ids, another box, other label bytes: only the shapes are still in place, 2 m off."""
    path = guarded.world.label("labels/shifted.geojson", "p1", corner=(510_000.0, 5_600_000.0), shift=2.0)
    guarded.refused(guarded.stranger(label=path), "label_set links it to the protected case 'p1'")


@pytest.mark.parametrize(
    "field",
    [
        "sample_id",
        "group_id",
        "source_family",
        "temporal_family",
        "acquisition_id",
        "parent_raster_id",
        "native_feature_ids",
        "object_ids",
    ],
)
def test_every_identity_and_lineage_field_is_caught(guarded, field):
    guarded.refused(
        guarded.stranger(**{field: guarded.records[2][field]}), f"{field} links it to the protected case 'p2'"
    )


def test_a_changed_id_hides_nothing(guarded):
    error = guarded.refused({**guarded.records[0], "sample_id": "another", "split": "train"}, "group_id links it")
    assert "'raw/p0.tif' is a file of the protected case" in str(error)


def test_a_box_within_the_buffer_is_caught(guarded):
    x, y, *_ = guarded.records[0]["bbox"]
    guarded.refused(guarded.stranger(bbox=[x + 1500, y, x + 1600, y + 100]), "distance links it")


def test_protected_files_out_of_sight_are_compared_by_their_hashes(guarded, tmp_path):
    root = tmp_path / "training"
    shutil.copytree(guarded.root / "raw", root / "raw")
    with pytest.raises(LeakageError, match="image_sha256 links it to the protected case 'p0'"):
        assert_training_inputs_safe(
            [{"sample_id": "new", "task": "t", "raw_image": "raw/p0.tif"}],
            guarded.manifest,
            root=root,
            protected_root=tmp_path / "not here",
            key=KEY,
        )


def test_a_record_that_names_nothing_to_check_is_refused(guarded):
    with pytest.raises(InputError, match="nothing can be checked"):
        guarded.check({"sample_id": "new", "task": "t"})
    with pytest.raises(InputError, match="at least one"):
        guarded.check()


def test_a_sealed_manifest_needs_its_key(guarded):
    with pytest.raises(ConfigError, match="sealed"):
        guarded.check(guarded.stranger(), key=None)


def test_the_development_manifest_guards_nothing(guarded):
    with pytest.raises(InputError, match="'development'"):
        assert_training_inputs_safe([guarded.stranger()], guarded.development, root=guarded.root)


@pytest.mark.parametrize("builder", [chip_index, patch_index])
def test_both_dataset_builders_ask_the_firewall(guarded, builder):
    with pytest.raises(LeakageError, match="protected case 'p0'"):
        builder([guarded.stranger(raw_image="raw/p0.tif")], guarded.manifest, root=guarded.root, key=KEY)


def test_an_evaluation_sees_test_and_background_test_only(guarded):
    binding = bind_evaluation(guarded.manifest, guarded.manifest.sha256)
    assert binding.require(["p1", "p0", "p1"]) == ("p0", "p1")
    with pytest.raises(LeakageError, match=r"challenge is sealed: 1 .* first 'p2'"):
        binding.require(["p0", "p2"])
    with pytest.raises(LeakageError, match="not in the protected manifest"):
        binding.require(["p3"])


def test_an_evaluation_is_bound_to_the_exact_manifest(guarded):
    with pytest.raises(InputError, match="expected the manifest 0000"):
        bind_evaluation(guarded.manifest, "0" * 64)
    with pytest.raises(InputError, match="'development'"):
        bind_evaluation(guarded.development, guarded.development.sha256)


def test_files_of_challenge_are_refused_to_an_evaluator_by_any_name(guarded):
    binding = bind_evaluation(guarded.manifest, guarded.manifest.sha256)
    (guarded.root / "case.tif").symlink_to(guarded.root / "raw/p2.tif")
    assert_evaluation_assets(binding, guarded.manifest, [guarded.root / "raw/p0.tif"], guarded.root)
    with pytest.raises(LeakageError, match=r"'case.tif' is a file of the challenge case 'p2'"):
        assert_evaluation_assets(binding, guarded.manifest, [guarded.root / "case.tif"], guarded.root)
