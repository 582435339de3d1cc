"""The firewall: a protected case under any disguise is caught, a clean development input passes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

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
from geoeval.splits.manifest import read_manifest
from geoeval.splits.record import IDENTITIES, MEMBERS

FAR = (700_000.0, 5_600_000.0)
FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "splits"


@pytest.mark.parametrize("workers", [1, 2])
def test_a_clean_development_input_passes(guarded, workers):
    table = guarded.check(guarded.stranger(), guarded.records[3], workers=workers).table
    assert table.ids(range(2)) == ("new", "p3")
    assert "unproven" not in table.notes


def test_the_entries_of_the_development_manifest_pass(guarded, tmp_path):
    table = guarded.check(*guarded.development.samples, protected_root=tmp_path / "not here").table
    assert table.ids(range(table.n)) == ("p3",)


@pytest.mark.parametrize("role", ["test", "background-test", "challenge"])
def test_protected_roles_are_refused(guarded, role):
    guarded.refused(guarded.stranger(split=role), f"its split is {role!r}")


def test_a_file_of_a_protected_case_is_refused(guarded):
    guarded.refused(guarded.stranger(raw_image="raw/p0.tif"), "'raw/p0.tif' is a file of the protected case 'p0'")


def test_a_renamed_file_is_caught_by_its_bytes(guarded):
    shutil.copy(guarded.root / "raw/p0.tif", guarded.root / "raw/harmless.tif")
    record = guarded.placeless(raw_image="raw/harmless.tif", label=None)
    guarded.refused(record, "image_sha256 links it to the protected case 'p0'")


@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symbolic", "hard"])
def test_a_link_is_caught(guarded, link):
    link(guarded.root / "raw/p1.tif", guarded.root / "raw/linked.tif")
    guarded.refused(
        guarded.stranger(raw_image="raw/linked.tif"), "'raw/linked.tif' is a file of the protected case 'p1'"
    )


def test_a_copied_image_with_new_metadata_is_caught_by_its_looks(guarded):
    path = guarded.world.image("processed/tagged.tif", "p0", dtype="uint8", corner=FAR, AUTHOR="somebody else")
    guarded.refused(
        guarded.stranger(processed_image=path, raw_image=None), "perceptual_hash links it to the protected case 'p0'"
    )


@pytest.mark.parametrize("asset", ["raw_image", "processed_image"])
def test_a_copied_file_with_new_metadata_is_caught_by_its_looks(guarded, asset):
    """Another author, and another place that agrees with the box of the record."""
    import rasterio
    from affine import Affine

    source = guarded.root / guarded.records[0][asset]
    copied = guarded.root / "images/copied.tif"
    copied.parent.mkdir()
    shutil.copy(source, copied)
    with rasterio.open(copied, "r+") as image:
        image.update_tags(AUTHOR="somebody else")
        image.transform = Affine(5, 0, FAR[0], 0, -5, FAR[1] + 320)
    assert copied.read_bytes() != source.read_bytes()
    guarded.refused(
        guarded.stranger(**{asset: "images/copied.tif"}), "perceptual_hash links it to the protected case 'p0'"
    )


def reencoded(source, target):
    """TIFF to JPEG to PNG: 8 bits, lossy, without a place."""
    import io

    import rasterio
    from PIL import Image

    with rasterio.open(source) as image:
        data = image.read(1).astype(np.float64)
    data = (255 * (data - data.min()) / np.ptp(data)).astype(np.uint8)
    between = io.BytesIO()
    Image.fromarray(data).save(between, format="JPEG", quality=80)
    Image.open(between).save(target, format="PNG")


@pytest.mark.parametrize("case", ["p0", "p2"], ids=["test", "challenge"])
@pytest.mark.parametrize("other", ["missing", "its own"])
@pytest.mark.parametrize("asset", ["raw_image", "processed_image"])
def test_a_reencoded_image_is_caught_by_its_looks(guarded, asset, other, case):
    """One image of the input is a copy in other bytes; the second one is missing, or is the input's own."""
    record = next(one for one in guarded.records if one["sample_id"] == case)
    reencoded(guarded.root / record[asset], guarded.root / "again.png")
    fields = dict.fromkeys(("raw_image", "processed_image")) if other == "missing" else {}
    guarded.refused(
        guarded.stranger(**{**fields, asset: "again.png"}), f"perceptual_hash links it to the protected case {case!r}"
    )


def test_a_mirrored_image_is_caught_by_its_looks(guarded):
    from PIL import Image

    data = (255 * guarded.world.surface("p0")).astype(np.uint8)
    Image.fromarray(np.ascontiguousarray(np.rot90(data[:, ::-1]))).save(guarded.root / "processed/turned.png")
    record = guarded.stranger(processed_image="processed/turned.png", raw_image=None)
    guarded.refused(record, "perceptual_hash links it to the protected case 'p0'")


def test_a_reencoded_challenge_image_is_caught_under_its_seal(guarded):
    path = guarded.world.image("processed/tagged.tif", "p2", dtype="uint8", corner=FAR, AUTHOR="somebody else")
    guarded.refused(
        guarded.stranger(processed_image=path, raw_image=None), "perceptual_hash links it to the protected case 'p2'"
    )


def test_the_bytes_of_a_challenge_case_are_caught_under_its_seal(guarded):
    shutil.copy(guarded.root / "labels/p2.geojson", guarded.root / "labels/harmless.geojson")
    record = guarded.stranger(label="labels/harmless.geojson", bbox=[500_000, 5_600_000, 700_320, 5_600_320])
    guarded.refused(record, "label_sha256 is that of the protected case 'p2'")


def test_a_shifted_label_is_caught_by_its_shapes(guarded):
    """Another image, other ids, another place, other label bytes: only the shapes in the image are alike, 2 m off."""
    path = guarded.world.label("labels/shifted.geojson", "p1", corner=FAR, shift=2.0)
    guarded.refused(guarded.stranger(label=path), "label_set links it to the protected case 'p1'")


@pytest.mark.parametrize("field", [*IDENTITIES, *MEMBERS])
def test_every_identity_and_lineage_field_is_caught(guarded, field):
    guarded.refused(
        guarded.stranger(**{field: guarded.records[2][field]}), f"{field} links it to the protected case 'p2'"
    )


def test_a_changed_id_hides_nothing(guarded):
    error = guarded.refused({**guarded.records[0], "sample_id": "another", "split": "train"}, "group_id links it")
    assert "'raw/p0.tif' is a file of the protected case" in str(error)


def test_a_box_within_the_buffer_is_caught(guarded):
    """1,180 m between the boxes, whether the record declares its own or the images say it."""
    x, y, *_ = guarded.records[0]["bbox"]
    path = guarded.world.image("raw/near.tif", "near", corner=(x + 1500, y))
    record = guarded.stranger(raw_image=path, processed_image=None, label=None, bbox=[x + 1500, y, x + 1820, y + 320])
    guarded.refused(record, "distance links it to the protected case 'p0'")
    guarded.refused({**record, "bbox": None, "crs": None}, "distance links it to the protected case 'p0'")


def test_protected_files_out_of_sight_are_compared_by_their_hashes(guarded, tmp_path):
    root = tmp_path / "training"
    shutil.copytree(guarded.root / "raw", root / "raw")
    with pytest.raises(LeakageError, match="image_sha256 links it to the protected case 'p0'"):
        assert_training_inputs_safe(
            [{"sample_id": "new", "task": "t", "raw_image": "raw/p0.tif"}],
            guarded.manifest,
            sha256=guarded.manifest.sha256,
            root=root,
            protected_root=tmp_path / "not here",
            key=guarded.KEY,
        )


@pytest.mark.parametrize("case", ["p1", "p2"], ids=["background-test", "challenge"])
def test_a_shifted_label_is_caught_by_its_sketch_where_protected_files_are_out_of_sight(guarded, case, tmp_path):
    path = guarded.world.label("labels/shifted.geojson", case, corner=FAR, shift=2.0)
    record = guarded.stranger(label=path)
    guarded.refused(record, f"label_set links it to the protected case {case!r}", protected_root=tmp_path / "not here")


@pytest.mark.parametrize(("setting", "value"), [("identities", []), ("buffer_m", 0), ("required", []), ("radius", 0)])
def test_a_weakened_manifest_that_was_hashed_again_is_refused(guarded, setting, value):
    """It is whole by the hash that it names, and would let the input pass."""

    def edit(content):
        content["settings"][setting] = value

    weak = guarded.rehashed(edit)
    with pytest.raises(InputError, match=f"expected the manifest {guarded.manifest.sha256}"):
        guarded.check(guarded.stranger(), manifest=weak, sha256=guarded.manifest.sha256)


@pytest.mark.parametrize("sha256", [None, "", "abc", b"0" * 64, "0" * 63 + "g", "0" * 64 + "\n"])
def test_something_that_is_no_hash_binds_nothing(guarded, sha256):
    with pytest.raises(ConfigError, match="sha256: expected the 64 hexadecimal digits"):
        guarded.check(guarded.stranger(), sha256=sha256)


def test_a_fixture_opens_only_to_code_that_says_so():
    manifest = read_manifest(FIXTURE / "manifests" / "protected.json", open_fixture=True)
    record = {"sample_id": "new", "task": "t", "raw_image": "raw/new.tif"}
    with pytest.raises(InputError, match="synthetic fixture"):
        assert_training_inputs_safe([record], manifest, sha256=manifest.sha256, root=FIXTURE)


def test_links_beyond_the_first_ten_are_counted_exactly(world):
    """One input shares its group with 150 protected cases and its source with 30 of them."""
    numbers = range(150)
    records = [
        {"sample_id": f"p{i:03}", "task": "t", "split": "test", "group_id": "quad", "source_family": f"s{i % 5}"}
        for i in numbers
    ]
    records = [{**one, "raw_image_sha256": f"{i:064x}"} for i, one in zip(numbers, records, strict=True)]
    records.append({"sample_id": "q", "task": "t", "split": "train", "group_id": "away", "source_family": "far"})
    settings = SplitSettings(shares={"train": 0.5, "test": 0.5}, required=("task", "group_id"))
    manifest = build(world.write(records), settings).manifests["protected"]
    record = {"sample_id": "new", "task": "t", "group_id": "quad", "source_family": "s2", "raw_image_sha256": "f" * 64}
    with pytest.raises(LeakageError) as caught:
        assert_training_inputs_safe([record], manifest, sha256=manifest.sha256, root=world.root)
    lines = str(caught.value).splitlines()
    assert len([line for line in lines if "links it to the protected case" in line]) == 10
    assert "  ... and 170 more" in lines


def test_a_record_that_names_nothing_to_check_is_refused(guarded):
    with pytest.raises(InputError, match="nothing can be checked"):
        guarded.check({"sample_id": "new", "task": "t"})
    with pytest.raises(InputError, match="at least one"):
        guarded.check()


def test_a_sealed_manifest_needs_its_key(guarded):
    with pytest.raises(ConfigError, match="sealed"):
        guarded.check(guarded.stranger(), key=None)


def test_another_key_opens_nothing_in_silence(guarded):
    with pytest.raises((ConfigError, InputError), match="key"):
        guarded.check(guarded.stranger(), key=b"another key of the tests")


def test_the_development_manifest_guards_nothing(guarded):
    with pytest.raises(InputError, match="'development'"):
        guarded.check(guarded.stranger(), manifest=guarded.development)


@pytest.mark.parametrize("builder", [chip_index, patch_index])
def test_both_dataset_builders_ask_the_firewall(guarded, builder):
    with pytest.raises(LeakageError, match="protected case 'p0'"):
        builder(
            [guarded.stranger(raw_image="raw/p0.tif")],
            guarded.manifest,
            sha256=guarded.manifest.sha256,
            root=guarded.root,
            key=guarded.KEY,
        )


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


@pytest.mark.parametrize("given", ["raw/p0.tif", 7, None])
def test_what_is_no_record_is_refused_by_its_number(guarded, given):
    with pytest.raises(InputError, match=r"training input 2: expected a record .a Sample or a mapping of its fields."):
        guarded.check(guarded.stranger(), given)


def test_the_root_may_be_a_text(guarded):
    assert guarded.check(guarded.stranger(), root=str(guarded.root)).table.n == 1
