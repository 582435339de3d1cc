"""All looks of a sample: its raw and its processed image, with and without their masks, also through manifests."""

from __future__ import annotations

import dataclasses
import json
import shutil

import numpy as np
import pytest
import rasterio
from PIL import Image

from geoeval.errors import InputError, LeakageError
from geoeval.splits import SplitSettings, build, check
from geoeval.splits.manifest_table import manifest_table
from geoeval.splits.seals import looks_from_text, looks_text, opened_entry, padded
from geoeval.splits.table import joined

KEY = b"a key of the tests only"
SHARES = {"train": 0.5, "test": 0.25, "challenge": 0.25}
SETTINGS = SplitSettings(shares=SHARES, required=())


def near(gates):
    gate = next(one for one in gates if one.id == "near_duplicate")
    return gate.counts.get("perceptual_hash"), [(one.first, one.second) for one in gate.witnesses]


def as_png(world, source, target, turn=lambda a: a):
    """A file with other bytes and no place that shows the same."""
    with rasterio.open(world.root / source) as image:
        data = image.read(1)
    data = np.round(255.0 * (data - data.min()) / np.ptp(data)).astype(np.uint8)
    Image.fromarray(np.ascontiguousarray(turn(data))).save(world.root / target)
    return target


@pytest.fixture
def records(world):
    """Three samples on three places; raw and processed images show different things."""
    out = []
    for at, role in enumerate(("train", "test", "challenge")):
        one = world.record(f"s{at}", at, split=role)
        world.image(
            f"processed/s{at}.tif", f"other {at}", dtype="uint8", corner=(500_000.0 + 10_000.0 * at, 5_600_000.0)
        )
        out.append(one)
    return out


def test_raw_and_processed_image_are_both_looked_at(world, records):
    built = build(world.write(records), SETTINGS, key=KEY)
    assert built.table.looks.tolist() == [2, 2, 2]
    assert built.table.confirmed.all()


@pytest.mark.parametrize("mine", ["raw_image", "processed_image"])
@pytest.mark.parametrize("theirs", ["raw", "processed"])
def test_a_copy_of_either_image_is_found_in_either_place(world, records, mine, theirs):
    """The other image of the sample is left as it is, so that only one of its looks is a copy."""
    records[0][mine] = as_png(world, f"{theirs}/s1.tif", "raw/copy.png")
    with pytest.raises(LeakageError, match=r"'s0' .train. and 's1' .test.: perceptual_hash"):
        build(world.write(records), SETTINGS, key=KEY)


def test_one_pair_of_samples_counts_once_whatever_its_images(world, records):
    for name in ("raw", "processed"):
        records[0][f"{name}_image"] = as_png(world, f"{name}/s1.tif", f"{name}/copy.png")
    with pytest.raises(LeakageError) as caught:
        build(world.write(records), SETTINGS, key=KEY)
    assert near(caught.value.gates) == (1, [("s0", "s1")])


def test_a_mask_over_most_of_a_copy_does_not_hide_it(world, records):
    with rasterio.open(world.root / "raw/s1.tif") as image:
        data, profile = image.read(1), image.profile
    mask = np.zeros(data.shape, dtype=bool)
    mask[:8] = True
    with (
        rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True),
        rasterio.open(world.root / "raw/hidden.tif", "w", **profile) as out,
    ):
        out.write(data // 2, 1)
        out.write_mask(mask)
    shutil.move(world.root / "raw/hidden.tif", world.root / "raw/s0.tif")
    with rasterio.open(world.root / "raw/s0.tif", "r+") as out:
        out.transform = rasterio.Affine(5.0, 0, 500_000.0, 0, -5.0, 5_600_320.0)
    with pytest.raises(LeakageError, match=r"'s0' .train. and 's1' .test.: perceptual_hash"):
        build(world.write(records), SETTINGS, key=KEY)


@pytest.mark.parametrize("turn", [np.fliplr, np.flipud, np.rot90, lambda a: np.rot90(a, 3), np.transpose])
def test_two_manifests_find_a_turned_copy_without_any_file(world, records, tmp_path, turn):
    """Each is clean by itself; both keep enough to be held against each other."""
    first = build(world.write(records), SETTINGS, key=KEY)
    other = [{**one, "sample_id": f"t{at}"} for at, one in enumerate(records)]
    for at, one in enumerate(other):
        world_place = world.record(f"t{at}", 10 + at, split=one["split"])
        one |= {name: world_place[name] for name in world_place if name != "sample_id"}
    other[0]["raw_image"] = as_png(world, "raw/s1.tif", "raw/turned.png", turn)
    second = build(world.write(other), SETTINGS, key=KEY)
    tables = [manifest_table(one, tmp_path) for one in (first.manifests["protected"], second.manifests["development"])]
    assert near(check(joined(tables), dataclasses.replace(SETTINGS, required_splits=()))) == (1, [("s1", "t0")])


def test_looks_of_challenge_open_with_the_key_only(world, records, tmp_path):
    manifest = build(world.write(records), SETTINGS, key=KEY).manifests["protected"]
    entry = next(one for one in manifest.samples if one["split"] == "challenge")
    assert entry["perceptual_looks"].startswith("hmac-pad:")
    assert "perceptual_looks" not in opened_entry(entry, None)
    codes, second = looks_from_text(opened_entry(entry, KEY)["perceptual_looks"])
    assert len(codes) == len(second) == 16
    assert f"{int(codes[0]):016x}" == opened_entry(entry, KEY)["perceptual_hash"]
    assert manifest_table(manifest, tmp_path).hashed.tolist() == [True, False]
    assert manifest_table(manifest, tmp_path, KEY).hashed.tolist() == [True, True]
    with pytest.raises(InputError, match=r"does not open|expected 16 codes"):
        looks_from_text(opened_entry(entry, b"another key of the tests")["perceptual_looks"])


def test_a_pad_is_never_used_twice(world, records):
    """The same sample with other content gets another pad."""
    one = padded("0" * 64, "label_sketch", "a|hmac-sha256:00", KEY)
    assert one != padded("0" * 64, "label_sketch", "a|hmac-sha256:01", KEY)
    assert one != padded("0" * 64, "perceptual_looks", "a|hmac-sha256:00", KEY)


@pytest.mark.parametrize("text", ["", "AAAA", "no base64!", "A" * 171])
def test_a_text_that_holds_no_looks_is_refused(text):
    with pytest.raises(InputError, match="expected 16 codes a look"):
        looks_from_text(text)


def test_looks_survive_their_text():
    codes = np.arange(16, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    first, second = looks_from_text(looks_text(codes, ~codes, 2))
    assert first.tolist() == codes.tolist()
    assert second.tolist() == (~codes).tolist()


def test_the_radius_ends_where_accidents_begin():
    from geoeval.errors import ConfigError

    with pytest.raises(ConfigError, match=r"radius: must lie in \[0, 4\].*Set confirmed_radius"):
        SplitSettings(radius=5)
    with pytest.raises(ConfigError, match="confirmed_radius"):
        SplitSettings(radius=4, confirmed_radius=3)
    assert json.dumps(SplitSettings(confirmed_radius=10).described()["confirmed_radius"]) == "10"


def test_hashes_that_are_only_declared_are_held_to_the_radius_alone():
    from geoeval.splits import SampleTable

    codes = np.array([0, 0b111111], dtype=np.uint64)
    table = SampleTable.of(2, sample_id=["a", "b"], split=["train", "test"], perceptual=codes, perceptual_recipe="r")
    gate = check(table)[2]
    assert gate.status == "pass"
    assert gate.notes["unconfirmed"] == "2 images have no second hash and are held to 4 bits"
