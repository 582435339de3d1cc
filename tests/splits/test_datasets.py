"""Windows of training images, once the firewall let them pass."""

from __future__ import annotations

import numpy as np
import pytest

from geoeval.errors import ConfigError, InputError
from geoeval.splits import SplitSettings, build, chip_index, patch_index

REQUIRED = ("task", "group_id")


@pytest.fixture
def training(world):
    protected = [world.record("p", 0, split="test"), world.record("q", 1, split="train")]
    settings = SplitSettings(shares={"train": 0.5, "test": 0.5}, required=REQUIRED)
    manifest = build(world.write(protected), settings).manifests["protected"]
    return world, manifest, [world.record("b", 8), world.record("a", 9, split="val")]


def test_chips_cover_the_image_and_edges_are_cut(training):
    """64 x 64 pixels in chips of 40 are two by two, the outer ones 24 pixels."""
    world, manifest, inputs = training
    index = chip_index(inputs, manifest, sha256=manifest.sha256, root=world.root, size=40)
    assert index.sample_id == ("a", "b")
    assert index.split == ("val", "")
    assert index.image == ("processed/a.tif", "processed/b.tif")
    assert index.label[0] == "labels/a.geojson"
    windows = np.stack([index.row, index.column, index.height, index.width], axis=1)[index.sample == 0]
    assert windows.tolist() == [[0, 0, 40, 40], [0, 40, 40, 24], [40, 0, 24, 40], [40, 40, 24, 24]]
    assert len(index) == 8


def test_a_loop_over_an_index_gives_windows_with_names(training):
    world, manifest, inputs = training
    index = chip_index(inputs, manifest, sha256=manifest.sha256, root=world.root, size=40)
    windows = list(index)
    assert len(windows) == len(index)
    second = windows[1]
    assert second[:8] == ("a", "val", "processed/a.tif", "labels/a.geojson", 0, 40, 40, 24)
    assert (second.row, second.column, second.height, second.width) == (0, 40, 40, 24)
    assert all(type(one) is int for one in second[4:8])
    assert np.isnan(second.valid)
    patches = list(patch_index(inputs, manifest, sha256=manifest.sha256, root=world.root, size=32))
    assert [one.sample_id for one in patches] == ["a"] * 4 + ["b"] * 4
    assert {one.valid for one in patches} == {1.0}


def test_chips_show_the_raw_image_where_there_is_no_processed_one(training):
    world, manifest, inputs = training
    raw = [{**one, "processed_image": None} for one in inputs]
    index = chip_index(raw, manifest, sha256=manifest.sha256, root=world.root)
    assert index.image == ("raw/a.tif", "raw/b.tif")


@pytest.mark.parametrize("role", ["train", "val", "calibration"])
def test_all_development_roles_pass_as_training_inputs(training, role):
    world, manifest, inputs = training
    index = chip_index([{**inputs[0], "split": role}], manifest, sha256=manifest.sha256, root=world.root)
    assert [one.split for one in index] == [role]


def test_the_index_does_not_depend_on_the_order_of_inputs(training):
    world, manifest, inputs = training
    one = chip_index(inputs, manifest, sha256=manifest.sha256, root=world.root, size=32, overlap=16)
    two = chip_index(inputs[::-1], manifest, sha256=manifest.sha256, root=world.root, size=32, overlap=16, workers=2)
    assert one.sha256 == two.sha256


def test_a_chip_needs_a_label(training):
    world, manifest, inputs = training
    with pytest.raises(InputError, match="'b': a chip needs a label"):
        chip_index([{**inputs[0], "label": None}], manifest, sha256=manifest.sha256, root=world.root)


def test_patches_are_whole_and_hold_enough_data(training):
    """The upper half of one image is void: of its four patches of 32 pixels the two lower ones stay."""
    import rasterio

    world, manifest, inputs = training
    with rasterio.open(world.root / inputs[0]["raw_image"], "r+") as image:
        image.nodata = 0
        data = image.read(1)
        data[:32] = 0
        image.write(data, 1)
    index = patch_index(inputs, manifest, sha256=manifest.sha256, root=world.root, size=32)
    assert [(int(s), int(r), int(c)) for s, r, c in zip(index.sample, index.row, index.column, strict=True)] == [
        (0, 0, 0),
        (0, 0, 32),
        (0, 32, 0),
        (0, 32, 32),
        (1, 32, 0),
        (1, 32, 32),
    ]
    assert len(patch_index(inputs, manifest, sha256=manifest.sha256, root=world.root, size=32, min_valid=0.0)) == 8


def test_odd_sizes_are_refused(training):
    world, manifest, inputs = training
    with pytest.raises(ConfigError, match="overlap"):
        chip_index(inputs, manifest, sha256=manifest.sha256, root=world.root, size=32, overlap=32)
    with pytest.raises(ConfigError, match="size"):
        patch_index(inputs, manifest, sha256=manifest.sha256, root=world.root, size=0)
    with pytest.raises(ConfigError, match=r"^size must be 1 pixel or more, got 0$"):
        chip_index(inputs, manifest, sha256=manifest.sha256, root=world.root, size=0)


@pytest.mark.parametrize("builder", [chip_index, patch_index])
def test_an_index_needs_the_published_hash_of_the_manifest(training, builder):
    world, manifest, inputs = training
    with pytest.raises(TypeError, match="sha256"):
        builder(inputs, manifest, root=world.root)
    with pytest.raises(InputError, match="expected the manifest 0000"):
        builder(inputs, manifest, sha256="0" * 64, root=world.root)


@pytest.mark.parametrize("builder", [chip_index, patch_index])
def test_an_index_says_what_was_not_proven_and_has_another_hash(training, builder):
    import rasterio
    from PIL import Image

    world, manifest, inputs = training
    firewall = {"sha256": manifest.sha256, "root": world.root}
    whole = builder(inputs, manifest, **firewall, size=32)
    with rasterio.open(world.root / inputs[0]["raw_image"]) as image:
        Image.fromarray((image.read(1) // 32).astype(np.uint8)).save(world.root / "placeless.png")
    blank = {"raw_image": None, "processed_image": "placeless.png", "bbox": None, "crs": None}
    partly = [{**inputs[0], **blank}, inputs[1]]
    with pytest.raises(InputError, match="cannot be proven safe"):
        builder(partly, manifest, **firewall, size=32)
    index = builder(partly, manifest, **firewall, size=32, unproven=["buffer"])
    assert whole.unproven == ""
    assert index.unproven == "buffer: 1 training input has no box on Earth: 'b'"
    assert index.sha256 != whole.sha256
