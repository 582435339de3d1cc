"""What the firewall could not decide is refused by gate, unless code accepts that by name."""

from __future__ import annotations

import shutil

import pytest

from geoeval.errors import ConfigError, InputError, LeakageError
from geoeval.splits import SplitSettings, assert_training_inputs_safe, build
from geoeval.splits.links import empty_label_hash
from geoeval.splits.record import IDENTITIES, MEMBERS
from geoeval.splits.seals import closed_entry, opened_entry

KEY = b"a key of the tests only"

#: Where the clean input lies.
FAR = (700_000.0, 5_600_000.0)

#: A box that holds it and every protected label, so that a copied label is not refused as one of another place.
EVERYWHERE = {"bbox": [500_000.0, 5_600_000.0, 700_320.0, 5_600_320.0], "crs": "EPSG:32631"}


def test_label_shapes_out_of_sight_are_undecided(guarded, tmp_path):
    more = {"manifest": guarded.without("label_sketch"), "protected_root": tmp_path / "not here"}
    path = guarded.world.label("labels/shifted.geojson", "p1", corner=FAR, shift=2.0)
    says = guarded.undecided(
        "label_set: 3 protected cases have label shapes unseen, first 'p0'", guarded.stranger(label=path), **more
    )
    assert "protected_root" in says
    assert "unproven=('label_set',)" in says
    guarded.check(guarded.stranger(label=None), **more)
    guarded.check(guarded.stranger(), **more, unproven=["label_set"])


def test_two_features_are_too_few_to_be_like_others(guarded, tmp_path):
    more = {"manifest": guarded.without("label_sketch"), "protected_root": tmp_path / "not here"}
    path = guarded.world.label("labels/few.geojson", "few", corner=FAR, features=2)
    guarded.check(guarded.stranger(label=path), **more)


def test_a_label_of_the_input_without_readable_shapes_is_undecided(guarded):
    record = guarded.stranger(label=None, label_geometry_hash="0" * 64)
    guarded.undecided("label_set: 1 training input has a label without readable shapes: 'new'", record)


@pytest.mark.parametrize("hidden", [None, "", "unknown", " N/A "])
@pytest.mark.parametrize("field", [name for name in IDENTITIES if name != "sample_id"])
def test_an_input_that_hides_its_lineage_is_refused(guarded, field, hidden):
    """A copy of p0 that only its lineage would have given away."""
    says = guarded.undecided(f"identity: 1 training input has no {field}: 'new'", guarded.stranger(**{field: hidden}))
    assert "fill the fields in" in says


@pytest.mark.parametrize("hidden", [[], ["unknown"], ["", "none"]])
@pytest.mark.parametrize("field", MEMBERS)
def test_an_input_that_hides_its_features_is_refused(guarded, field, hidden):
    guarded.undecided(f"identity: 1 training input has no {field}: 'new'", guarded.stranger(**{field: hidden}))


def test_a_label_without_features_has_none_to_name(guarded):
    path = guarded.world.label("labels/empty.geojson", "none", features=0)
    guarded.check(guarded.stranger(label=path, native_feature_ids=[], object_ids=[]))


@pytest.mark.parametrize("case", ["p0", "p2"], ids=["test", "challenge"])
def test_the_mere_claim_of_an_empty_label_spares_nothing(guarded, case):
    claim = {"label_geometry_hash": empty_label_hash(), "native_feature_ids": [], "object_ids": []}
    guarded.undecided("no native_feature_ids", guarded.stranger(label=None, **claim))
    (guarded.root / "labels/harmless.bin").write_bytes(bytes(99))
    with pytest.raises(InputError, match="holds neither geometries nor a mask that it could be checked against"):
        guarded.check(guarded.stranger(label="labels/harmless.bin", **claim))
    shutil.copy(guarded.root / f"labels/{case}.geojson", guarded.root / "labels/harmless.bin")
    with pytest.raises(InputError, match=r"label_geometry_hash is declared as .*, the bytes give"):
        guarded.check(guarded.stranger(label="labels/harmless.bin", **claim, **EVERYWHERE))
    with pytest.raises(LeakageError, match=rf"label_sha256 .* the protected case '{case}'"):
        guarded.check(guarded.stranger(label="labels/harmless.bin", **EVERYWHERE))


@pytest.mark.parametrize("role", ["background-test", "challenge"])
def test_equal_empty_labels_are_no_leak(world, role):
    """Both files hold no feature and have the same bytes, under any ending."""
    empty = {"native_feature_ids": [], "object_ids": []}
    world.label("labels/empty.geojson", "none", features=0)
    (world.root / "labels/empty.bin").write_bytes((world.root / "labels/empty.geojson").read_bytes())
    records = [
        world.record("p", 0, split=role, label="labels/empty.geojson", **empty),
        world.record("q", 1, split="train"),
    ]
    settings = SplitSettings(shares={"train": 0.5, role: 0.5})
    manifest = build(world.write(records), settings, key=KEY).manifests["protected"]
    opened = {"sha256": manifest.sha256, "root": world.root, "key": KEY, "protected_root": world.root / "elsewhere"}
    shown = world.record("new", 20, label="labels/empty.geojson", **empty)
    assert_training_inputs_safe([shown], manifest, **opened)
    other = world.record("new", 20, label="labels/empty.bin", **empty)
    assert_training_inputs_safe([other], manifest, **opened)


def test_fields_that_the_manifest_does_not_require_may_be_silent(guarded):
    def edit(content):
        content["settings"]["required"].remove("group_id")

    guarded.check(guarded.stranger(group_id=None), manifest=guarded.rehashed(edit))


def test_all_silent_fields_are_listed_with_their_numbers(guarded):
    records = [guarded.stranger(group_id=None), guarded.world.record("more", 30, group_id=None, source_family="none")]
    says = guarded.undecided("2 training inputs have no group_id, first 'more'", *records)
    assert "1 training input has no source_family: 'more'" in says


def test_an_input_without_a_box_is_refused_where_there_is_a_buffer(guarded):
    record = guarded.placeless()
    says = guarded.undecided("buffer: 1 training input has no box on Earth: 'new'", record)
    assert "give bbox and crs" in says
    guarded.undecided("no box on Earth", {**record, "bbox": [0, 0, 64, 64], "crs": "pixel"})

    def edit(content):
        content["settings"]["buffer_m"] = 0

    guarded.check(record, manifest=guarded.rehashed(edit))


def test_a_protected_case_without_a_box_leaves_the_buffer_undecided(guarded):
    manifest = guarded.without("bbox", only="p1")
    guarded.undecided("buffer: 1 protected case has no box on Earth: 'p1'", guarded.stranger(), manifest=manifest)


def test_a_protected_case_without_image_hashes_is_undecided(guarded):
    manifest = guarded.without("raw_image_sha256", "processed_image_sha256", only="p0")
    says = guarded.undecided(
        "exact_bytes: 1 protected case has no image hash: 'p0'", guarded.stranger(), manifest=manifest
    )
    assert "near_duplicate" not in says


def test_images_without_a_perceptual_hash_are_undecided(guarded):
    looks = ("perceptual_hash", "perceptual_looks")
    manifest = guarded.without(*looks, only="p0")
    guarded.undecided(
        "near_duplicate: 1 protected case has no perceptual hash: 'p0'", guarded.stranger(), manifest=manifest
    )
    seen_once = guarded.stranger(raw_image=None, processed_image=None, raw_image_sha256="0" * 64)
    guarded.undecided("near_duplicate: 1 training input has no perceptual hash: 'new'", seen_once)

    def flat(content):
        content["flat"] = ["p0"]
        entry = content["samples"][0]
        for name in looks:
            entry.pop(name, None)

    guarded.check(guarded.stranger(), manifest=guarded.rehashed(flat))


def test_a_flat_image_is_spared(guarded):
    from PIL import Image

    Image.new("L", (64, 64), 90).save(guarded.root / "flat.png")
    guarded.check(guarded.stranger(raw_image=None, processed_image="flat.png"))


@pytest.mark.parametrize("unproven", [(), ("near_duplicate",)])
def test_hashes_of_another_recipe_are_refused_whatever_is_accepted(guarded, unproven):
    def edit(content):
        for entry in content["samples"]:
            entry["perceptual_recipe"] = "0123456789abcdef"

    manifest = guarded.rehashed(edit)
    with pytest.raises(InputError, match="different recipes"):
        guarded.check(guarded.stranger(), manifest=manifest, unproven=unproven)
    with pytest.raises(LeakageError, match="group_id links it"):
        guarded.check(guarded.stranger(group_id="group-0"), manifest=manifest, unproven=unproven)


def test_what_is_accepted_undecided_is_noted_and_what_is_found_is_refused(guarded):
    record = guarded.placeless(group_id=None)
    guarded.undecided("unproven=('identity', 'buffer')", record)
    guarded.undecided("unproven=('buffer',)", record, unproven=["identity"])
    passed = guarded.check(record, unproven={"identity", "buffer"})
    assert passed.table.notes["unproven"] == (
        "identity: 1 training input has no group_id: 'new'; buffer: 1 training input has no box on Earth: 'new'"
    )
    every = ("identity", "exact_bytes", "near_duplicate", "buffer", "label_set")
    guarded.refused(
        guarded.stranger(source_family="source-2"), "source_family links it to the protected case 'p2'", unproven=every
    )


@pytest.mark.parametrize(
    ("names", "says"), [(["bufer"], "did you mean 'buffer'"), ("buffer", r"\('buffer',\)"), ([3], "unknown gate 3")]
)
def test_gates_that_do_not_exist_cannot_be_accepted(guarded, names, says):
    with pytest.raises(ConfigError, match=says):
        guarded.check(guarded.stranger(), unproven=names)


def test_labels_that_share_no_frame_are_undecided(guarded):
    """A label in the world whose image has no place, and protected labels that have no place on Earth."""
    box = {"bbox": [700_000, 5_600_000, 700_320, 5_600_320], "crs": "EPSG:32631"}
    record = guarded.placeless(**box)
    guarded.check(record, manifest=guarded.without("label"))

    def edit(content):
        from geoeval.splits.labelsketch import opened, sketch

        entry = content["samples"][0]
        entry.pop("label")
        seen = opened(opened_entry(entry, KEY)["label_sketch"])
        drawn = {**entry, "label_sketch": sketch(type(seen)(pixels=seen.pixels, size=seen.size))}
        entry["label_sketch"] = closed_entry(drawn, KEY)["label_sketch"]

    says = guarded.undecided("label_set: 1 training input has", record, manifest=guarded.rehashed(edit))
    assert "label shapes in world coordinates only, where protected ones are in pixels: 'new'" in says
