"""Production mode: nothing is believed that the bytes do not say."""

from __future__ import annotations

import json

import numpy as np
import pytest

from geoeval.errors import ConfigError, InputError
from geoeval.evidence.canonical import file_digest
from geoeval.splits import Production, SplitSettings, build, read_source
from geoeval.splits.production import REQUIRED, asset_manifest

SETTINGS = SplitSettings(shares={"train": 0.5, "test": 0.5})


@pytest.fixture
def strict(world):
    """Four samples that prove themselves, their source, and what production mode needs."""
    records = []
    for i in range(4):
        record = world.record(f"s{i}", i)
        for asset in ("raw_image", "processed_image", "label"):
            record[f"{asset}_sha256"] = file_digest(world.root / record[asset])
        records.append(provenance(world, record))
    return records, world


def provenance(world, record, **changes):
    path = f"provenance/{record['sample_id']}.json"
    content = {
        "schema": "geoeval/provenance/1",
        "sample_id": record["sample_id"],
        **{f"{asset}_sha256": record[f"{asset}_sha256"] for asset in ("raw_image", "processed_image", "label")},
        "origin": "synthetic",
        "licence": "CC0-1.0",
        "acquired": "2024-05-01",
        **changes,
    }
    (world.root / "provenance").mkdir(exist_ok=True)
    (world.root / path).write_text(json.dumps(content))
    return {**record, "provenance": path, "provenance_sha256": file_digest(world.root / path)}


def production(world, records):
    paths = [record[asset] for record in records for asset in ("raw_image", "processed_image", "label", "provenance")]
    path = world.root / "assets.json"
    path.write_bytes(asset_manifest(world.root, paths))
    return Production(path, file_digest(path), world.root)


def test_what_proves_itself_may_be_used_for_production(strict):
    records, world = strict
    result = build(world.write(records), SETTINGS, production=production(world, records))
    assert result.report["production_accuracy_use_allowed"] is True
    assert all(one.content["production_accuracy_use_allowed"] for one in result.manifests.values())


def test_production_demands_all_fields_whatever_the_settings_say(strict):
    records, world = strict
    loose = SplitSettings(shares=SETTINGS.shares, required=())
    result = build(world.write(records), loose, production=production(world, records))
    assert set(result.manifests["protected"].content["settings"]["required"]) == set(REQUIRED)
    records[1]["source_family"] = "N/A"
    with pytest.raises(InputError, match="record 's1': required and unknown: source_family"):
        build(world.write(records), loose, production=production(world, records))


@pytest.mark.parametrize("field", ["raw_image", "processed_image", "label", "provenance"])
def test_a_record_without_a_path_fails(strict, field):
    records, world = strict
    proof = production(world, records)
    del records[2][field]
    with pytest.raises(InputError, match=f"record 's2': required and unknown: {field}"):
        build(world.write(records), SETTINGS, production=proof)


def test_a_renamed_record_fails(strict):
    records, world = strict
    proof = production(world, records)
    records[1]["sample_id"] = "another"
    with pytest.raises(InputError, match=r"record 'another': provenance 's1.json' binds sample_id 's1'"):
        build(world.write(records), SETTINGS, production=proof)


def test_a_renamed_file_fails(strict):
    records, world = strict
    proof = production(world, records)
    (world.root / "raw/s1.tif").rename(world.root / "raw/moved.tif")
    with pytest.raises(InputError, match="record 's1': raw_image: expected a file"):
        build(world.write(records), SETTINGS, production=proof)
    records[1]["raw_image"] = "raw/moved.tif"
    with pytest.raises(InputError, match=r"record 's1': raw_image 'raw/moved.tif' is not listed"):
        build(world.write(records), SETTINGS, production=proof)


def test_another_asset_manifest_than_the_bound_one_fails(strict):
    records, world = strict
    proof = production(world, records)
    with pytest.raises(InputError, match=r"assets.json: expected the hash 0000"):
        build(world.write(records), SETTINGS, production=Production(proof.assets, "0" * 64, world.root))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"label_sha256": "0" * 64}, "binds label_sha256"),
        ({"licence": "unknown"}, "must say its licence"),
        ({"note": "more"}, "note"),
    ],
)
def test_a_provenance_record_that_is_not_exact_fails(strict, change, says):
    records, world = strict
    records[0] = provenance(world, records[0], **change)
    with pytest.raises(InputError, match="record 's0'") as caught:
        build(world.write(records), SETTINGS, production=production(world, records))
    assert says in str(caught.value)


def test_production_and_fixture_exclude_each_other(strict):
    records, world = strict
    with pytest.raises(ConfigError, match="exclude"):
        build(world.write(records), SETTINGS, production=production(world, records), open_fixture=True)


def test_a_link_inside_the_root_is_the_file_it_leads_to(world):
    record = world.record("a", 0)
    (world.root / "raw/link.tif").symlink_to(world.root / "raw/a.tif")
    one = read_source(world.write([record])).table
    two = read_source(world.write([{**record, "raw_image": "raw/link.tif"}])).table
    assert one.text("raw_image_sha256", 0) == two.text("raw_image_sha256", 0)


def test_a_flat_image_is_exempt_and_listed(world):
    record = world.record("a", 0)
    flat = np.full((64, 64), 900, dtype=np.uint16)
    import rasterio
    from affine import Affine

    for image in ("raw_image", "processed_image"):
        with rasterio.open(
            world.root / record[image],
            "w",
            driver="GTiff",
            height=64,
            width=64,
            count=1,
            dtype="uint16",
            crs="EPSG:32631",
            transform=Affine(5, 0, 500_000, 0, -5, 5_600_320),
        ) as file:
            file.write(flat, 1)
    table = read_source(world.write([record]), required=("perceptual_hash",)).table
    assert table.flat == ("a",)
    assert not table.hashed[0]
