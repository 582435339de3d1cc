"""Ordinary data: masks without objects, one sensor, splits of their own, fields that nobody knows."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from PIL import Image

from geoeval.errors import ConfigError, InputError, LeakageError
from geoeval.splits import SplitSettings, assert_training_inputs_safe, build, read_key, read_manifest
from geoeval.splits.building import SplitRefused
from geoeval.splits.links import empty_label_hash

KEY = b"a key of the tests only"
HALVES = SplitSettings(shares={"train": 0.5, "test": 0.5})


def mask(world, name, values):
    path = f"labels/{name}.png"
    (world.root / path).parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(values, dtype=np.uint8)).save(world.root / path)
    return path


def masked(world, number, values, **more):
    record = world.record(f"m{number}", number, **more)
    return {**record, "label": mask(world, f"m{number}", values(number))}


def objects(number):
    """A mask with an object of its own."""
    out = np.zeros((64, 64))
    out[number : number + 9, 5:20] = 1
    return out


@pytest.mark.parametrize("value", [0, 1, 255])
def test_masks_without_an_object_have_the_same_bytes_and_link_nothing(world, value):
    records = [
        masked(world, k, lambda _: np.full((64, 64), value), split=role, native_feature_ids=[], object_ids=[])
        for k, role in enumerate(("train", "train", "test", "test"))
    ]
    built = build(world.write(records), HALVES)
    assert {gate.status for gate in built.gates} == {"pass"}
    assert len(built.components.sizes) == 4
    assert {one["label_geometry_hash"] for one in built.manifests["protected"].samples} == {empty_label_hash()}
    far = masked(world, 30, lambda _: np.full((64, 64), value), native_feature_ids=[], object_ids=[])
    protected = built.manifests["protected"]
    assert_training_inputs_safe([far], protected, sha256=protected.sha256, root=world.root)


def test_masks_with_objects_are_compared(world):
    records = [
        masked(world, k, lambda _: objects(3), split=role) for k, role in enumerate(("train", "train", "test", "test"))
    ]
    with pytest.raises(SplitRefused, match=r"exact_bytes: fail .same_bytes., 4 found"):
        build(world.write(records), HALVES)


def test_a_fill_value_next_to_objects_makes_no_empty_mask(world):
    """The mask shows ones alone; below it there are zeros."""
    import rasterio

    record = world.record("a", 0)
    path = world.root / "labels/a.tif"
    profile = {"driver": "GTiff", "width": 64, "height": 64, "count": 1, "dtype": "uint8", "nodata": 0}
    with rasterio.open(path, "w", transform=rasterio.Affine(2, 0, 0, 0, 2, 0), **profile) as out:
        out.write(objects(3).astype(np.uint8), 1)
    built = build(world.write([{**record, "label": "labels/a.tif", "split": "train"}]), SplitSettings())
    assert built.manifests["development"].samples[0]["label_geometry_hash"] != empty_label_hash()


@pytest.mark.parametrize("share", [0.4, 0.9])
def test_a_damaged_mask_is_refused_by_its_record(world, share):
    record = masked(world, 1, lambda _: np.random.default_rng(2).integers(0, 9, (64, 64)), split="train")
    path = world.root / record["label"]
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(InputError, match=r"record 'm1': label: .*cannot be read as an image"):
        build(world.write([record]), SplitSettings())


def test_one_sensor_and_one_year_say_why_nothing_is_left_for_the_other_splits(world):
    records = [world.record(f"p{k}", k, source_family="survey", temporal_family="2024") for k in range(4)]
    with pytest.raises(SplitRefused) as caught:
        build(world.write(records), HALVES)
    says = str(caught.value)
    assert "split_missing" in says
    assert "4 samples hang together in 1 components, the largest of 4" in says
    assert "source_family (4 samples by itself)" in says
    assert "temporal_family (4 samples by itself)" in says


def test_declared_splits_are_the_demanded_ones(world):
    roles = ("train", "train", "train", "test")
    records = [world.record(f"p{k}", k, split=role) for k, role in enumerate(roles)]
    built = build(world.write(records))
    assert built.settings.shares == {"train": 0.75, "test": 0.25}
    assert built.manifests["development"].content["splits"]["train"] == 3
    with pytest.raises(SplitRefused, match="val: this split has no sample"):
        build(world.write(records), SplitSettings(shares={"train": 0.5, "val": 0.25, "test": 0.25}))


def test_a_field_that_nobody_fills_holds_nothing_apart_and_is_named(world):
    records = [world.record(f"p{k}", k, split=role) for k, role in enumerate(("train", "test"))]
    for one in records:
        del one["acquisition_id"]
    required = tuple(name for name in SplitSettings().required if name != "acquisition_id")
    built = build(world.write(records), SplitSettings(required=required))
    assert "acquisition_id" not in built.settings.identities
    assert built.gates[0].notes["left_out"] == "acquisition_id"
    records[0]["acquisition_id"] = "flight-1"
    assert "acquisition_id" in build(world.write(records), SplitSettings(required=required)).settings.identities


def test_challenge_without_a_key_says_both_ways_out(world):
    records = [world.record(f"p{k}", k) for k in range(8)]
    with pytest.raises(ConfigError, match=r"--key-file.*or leave challenge out by shares of your own .--share."):
        build(world.write(records))


def test_fields_of_the_labels_are_named_in_the_first_refusal(world):
    record = world.record("a", 0)
    for name in ("source_family", "object_ids", "native_feature_ids"):
        del record[name]
    with pytest.raises(InputError) as caught:
        build(world.write([record]))
    says = str(caught.value)
    assert "record 'a': required and unknown: source_family" in says
    assert "wherever a label holds features, by its record: native_feature_ids, object_ids" in says


def test_splits_may_share_what_the_settings_leave_out(world):
    records = [world.record(f"p{k}", k, source_family="survey", temporal_family="2024") for k in range(4)]
    held = tuple(name for name in HALVES.identities if name not in ("source_family", "temporal_family"))
    built = build(world.write(records), dataclasses.replace(HALVES, identities=held))
    assert built.gates[0].notes["left_out"] == "source_family, temporal_family"


def test_a_key_file_may_end_with_a_line(world, tmp_path):
    (tmp_path / "key").write_bytes(KEY + b"\r\n")
    assert read_key(tmp_path / "key") == KEY
    with pytest.raises(ConfigError, match="the key cannot be read"):
        read_key(tmp_path / "none")


def test_the_hash_of_the_file_is_told_from_the_hash_of_the_manifest(world, tmp_path):
    from geoeval.evidence.canonical import file_digest
    from geoeval.splits import write_manifests

    records = [world.record(f"p{k}", k, split=role) for k, role in enumerate(("train", "test"))]
    paths = write_manifests(build(world.write(records)), tmp_path / "out")
    with pytest.raises(InputError, match="that is the hash of the file, give the manifest_sha256 inside"):
        read_manifest(paths["protected"], sha256=file_digest(paths["protected"]))
    inside = json.loads(paths["protected"].read_bytes())["manifest_sha256"]
    with pytest.raises(InputError, match=f"expected the manifest {'0' * 64}, found {inside}$"):
        read_manifest(paths["protected"], sha256="0" * 64)


def test_a_leak_stays_a_leak_in_declared_splits(world):
    records = [world.record(f"p{k}", 0, split=role) for k, role in enumerate(("train", "test"))]
    with pytest.raises(LeakageError, match="identity: fail"):
        build(world.write(records))


def test_labels_in_regular_rows_can_be_compared_in_the_world_alone(world):
    """Plots of one plan have the same pixels in every tile."""
    import geopandas
    import shapely

    records = []
    for k, role in enumerate(("train", "test")):
        one = world.record(f"p{k}", k, split=role)
        x, y = one["bbox"][:2]
        column, row = np.meshgrid(np.arange(5) * 60 + 10, np.arange(5) * 60 + 10)
        moved = np.random.default_rng(k).uniform(0, 2, (2, 25))
        plots = shapely.box(
            *(np.array([x, y])[:, None] + [column.ravel(), row.ravel()] + moved),
            *(np.array([x, y])[:, None] + [column.ravel() + 45, row.ravel() + 45] + moved),
        )
        geopandas.GeoDataFrame(geometry=plots, crs="EPSG:32631").to_file(world.root / one["label"])
        records.append(one)
    with pytest.raises(SplitRefused, match="label_set"):
        build(world.write(records))
    alone = SplitSettings(shares={"train": 0.5, "test": 0.5}, labels_in_images=False)
    built = build(world.write(records), alone)
    assert built.manifests["protected"].content["settings"]["labels_in_images"] is False
