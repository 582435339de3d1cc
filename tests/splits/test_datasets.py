"""Windows of training images, once the firewall let them pass."""

from __future__ import annotations

import numpy as np
import pytest

from geoeval.errors import ConfigError, InputError
from geoeval.splits import SplitSettings, build, chip_index, patch_index


@pytest.fixture
def training(world):
    protected = [world.record("p", 0, split="test"), world.record("q", 1, split="train")]
    manifest = build(world.write(protected), SplitSettings(shares={"train": 0.5, "test": 0.5})).manifests["protected"]
    return world, manifest, [world.record("b", 8), world.record("a", 9, split="val")]


def test_chips_cover_the_image_and_edges_are_cut(training):
    """64 x 64 pixels in chips of 40 are two by two, the outer ones 24 pixels."""
    world, manifest, inputs = training
    index = chip_index(inputs, manifest, root=world.root, size=40)
    assert index.sample_id == ("a", "b")
    assert index.split == ("val", "")
    assert index.image == ("processed/a.tif", "processed/b.tif")
    assert index.label[0] == "labels/a.geojson"
    windows = np.stack([index.row, index.column, index.height, index.width], axis=1)[index.sample == 0]
    assert windows.tolist() == [[0, 0, 40, 40], [0, 40, 40, 24], [40, 0, 24, 40], [40, 40, 24, 24]]
    assert len(index) == 8


def test_the_index_does_not_depend_on_the_order_of_inputs(training):
    world, manifest, inputs = training
    one = chip_index(inputs, manifest, root=world.root, size=32, overlap=16)
    two = chip_index(inputs[::-1], manifest, root=world.root, size=32, overlap=16, workers=2)
    assert one.sha256 == two.sha256


def test_a_chip_needs_a_label(training):
    world, manifest, inputs = training
    with pytest.raises(InputError, match="'b': a chip needs a label"):
        chip_index([{**inputs[0], "label": None}], manifest, root=world.root)


def test_patches_are_whole_and_hold_enough_data(training):
    """The upper half of one image is void: of its four patches of 32 pixels the two lower ones stay."""
    import rasterio

    world, manifest, inputs = training
    with rasterio.open(world.root / inputs[0]["raw_image"], "r+") as image:
        image.nodata = 0
        data = image.read(1)
        data[:32] = 0
        image.write(data, 1)
    index = patch_index(inputs, manifest, root=world.root, size=32)
    assert [(int(s), int(r), int(c)) for s, r, c in zip(index.sample, index.row, index.column, strict=True)] == [
        (0, 0, 0),
        (0, 0, 32),
        (0, 32, 0),
        (0, 32, 32),
        (1, 32, 0),
        (1, 32, 32),
    ]
    assert len(patch_index(inputs, manifest, root=world.root, size=32, min_valid=0.0)) == 8


def test_odd_sizes_are_refused(training):
    world, manifest, inputs = training
    with pytest.raises(ConfigError, match="overlap"):
        chip_index(inputs, manifest, root=world.root, size=32, overlap=32)
    with pytest.raises(ConfigError, match="size"):
        patch_index(inputs, manifest, root=world.root, size=0)
