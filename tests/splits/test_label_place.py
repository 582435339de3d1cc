"""A label in the world lies where its sample is; one that names no system is put where it fits."""

from __future__ import annotations

import json

import numpy as np
import pytest
import shapely

from geoeval.errors import InputError
from geoeval.splits import SplitSettings, build
from geoeval.splits.assets import Frame
from geoeval.splits.label_files import Label
from geoeval.splits.label_place import meets, placed_label

UTM = "EPSG:32631"
BOX = (500_000.0, 5_600_000.0, 500_320.0, 5_600_320.0)
FRAME = Frame(64, 64, 1, (5.0, 0.0, 500_000.0, 0.0, -5.0, 5_600_320.0), UTM)
WORLD = shapely.box([500_050, 500_100], 5_600_050, [500_080, 500_150], 5_600_090)
PIXELS = shapely.box([10, 20], 46, [16, 30], 54)


def boxes(*bounds):
    return np.array([shapely.box(*one) for one in bounds], dtype=object)


@pytest.mark.parametrize(
    ("shapes", "system", "bbox", "crs", "expected"),
    [
        (WORLD, UTM, BOX, UTM, True),
        (WORLD, UTM, (500_000, 5_601_000, 500_320, 5_601_320), UTM, False),
        (WORLD, UTM, (500_140, 5_600_080, 501_000, 5_601_000), UTM, True),
        (WORLD, UTM, (3.0, 50.55, 3.005, 50.555), "EPSG:4326", True),
        (WORLD, UTM, (3.0, 50.56, 3.005, 50.565), "EPSG:4326", False),
        (boxes((3.001, 50.5521, 3.002, 50.5531)), "OGC:CRS84", BOX, UTM, True),
        (boxes((3.101, 50.5521, 3.102, 50.5531)), "OGC:CRS84", BOX, UTM, False),
        (boxes((-179.95, 0, -179.94, 1)), "EPSG:4326", (179.9, 0, -179.9, 1), "EPSG:4326", True),
        (boxes((180.05, 0, 180.06, 1)), "EPSG:4326", (179.9, 0, -179.9, 1), "EPSG:4326", True),
        (boxes((0, 0, 1, 1)), "EPSG:4326", (179.9, 0, -179.9, 1), "EPSG:4326", False),
        (boxes((-179.99, 0.2, -179.98, 0.3)), "EPSG:4326", (179.9, 0, 180.1, 1), "EPSG:4326", True),
        (boxes((0, 0, 99, 99), (200, 200, 300, 300)), UTM, (120, 120, 180, 180), UTM, False),
    ],
)
def test_a_label_meets_its_box(shapes, system, bbox, crs, expected):
    assert bool(meets(shapes, system, bbox, crs, "a").any()) is expected


def test_every_part_must_meet_the_box():
    """A label of another sample does not ride along with features of its own, nor within one of them."""
    far = shapely.box([0, 1], 0, [1, 2], 1)
    together = shapely.MultiPolygon([WORLD[0], far[0]])
    assert meets(np.concatenate([WORLD, far]), UTM, BOX, UTM, "a").tolist() == [True, True, False, False]
    assert placed_label(Label("features", WORLD, UTM), FRAME, BOX, UTM, "a").world is not None
    for shapes in (np.concatenate([WORLD, far]), np.array([together, WORLD[1]], dtype=object)):
        with pytest.raises(InputError, match=r"a: \d of its \d features do not meet the box of its sample.*Cut labels"):
            placed_label(Label("features", shapes, UTM), FRAME, BOX, UTM, "a")


def test_the_label_of_another_sample_is_refused(world):
    record = world.record("a", 3, split="train")
    settings = SplitSettings(shares={"train": 1.0})
    build(world.write([record]), settings)
    record["label"] = world.label("labels/other.geojson", "other")
    with pytest.raises(InputError) as caught:
        build(world.write([record]), settings)
    says = str(caught.value)
    assert "record 'a': label 'labels/other.geojson': none of its 5 features meets the box of its sample" in says
    assert "in EPSG:32631, the box is [530000, 5600000, 530320, 5600320] in EPSG:32631" in says
    assert "Is it the label of another sample" in says


def test_a_sample_without_a_place_has_no_box_to_meet():
    label = Label("features", WORLD, UTM)
    for bbox, crs in ((None, None), ((0.0, 0.0, 64.0, 64.0), "pixel"), (BOX, UTM)):
        assert placed_label(label, FRAME, bbox, crs, "a").world is not None


@pytest.mark.parametrize(
    ("shapes", "system", "frame", "bbox", "expected"),
    [
        # A table of WKT in the pixels of its image, or in the system of its box.
        (PIXELS, "", FRAME, BOX, ""),
        (WORLD, "", FRAME, BOX, UTM),
        (WORLD, "", None, BOX, UTM),
        (PIXELS, "", None, None, ""),
        # GeoJSON that names no system: in degrees by its standard, in pixels by custom.
        (PIXELS, "OGC:CRS84", FRAME, BOX, ""),
        (boxes((3.001, 50.5521, 3.002, 50.5531)), "OGC:CRS84", FRAME, BOX, "OGC:CRS84"),
        (PIXELS, "OGC:CRS84", FRAME, None, "OGC:CRS84"),
    ],
)
def test_a_label_that_names_no_system_is_put_where_it_fits(shapes, system, frame, bbox, expected):
    label = Label("features", shapes, system, named=False)
    found = placed_label(label, frame, bbox, bbox and UTM, "a")
    assert (found.world is None) == (expected == "")
    assert found.world is None or found.crs == expected
    if frame is not None and expected != "OGC:CRS84":
        np.testing.assert_allclose(shapely.bounds(found.pixels), shapely.bounds(PIXELS), atol=1e-6)


@pytest.mark.parametrize("system", ["", "OGC:CRS84"])
def test_a_label_that_fits_nowhere_is_refused(system):
    label = Label("features", boxes((70, 70, 75, 75)), system, named=False)
    with pytest.raises(InputError, match=r"^record 'a': .*\[70, 70, 75, 75\] in "):
        placed_label(label, FRAME, BOX, UTM, "record 'a'")


def test_pixels_of_geojson_are_found_as_pixels(world):
    """The copy of a label that another sample has in the world."""
    from geoeval.splits.building import SplitRefused

    records = [world.record("a", 0, split="test"), world.record("b", 5, split="train")]
    content = json.loads((world.root / "labels/a.geojson").read_text())
    content.pop("crs")
    for one in content["features"]:
        ring = one["geometry"]["coordinates"][0]
        one["geometry"]["coordinates"] = [[[(x - 500_000) / 5, (5_600_320 - y) / 5] for x, y in ring]]
    (world.root / "labels/pixels.geojson").write_text(json.dumps(content))
    records[1]["label"] = "labels/pixels.geojson"
    with pytest.raises(SplitRefused, match=r"'a' \(test\) and 'b' \(train\): label_set"):
        build(world.write(records), SplitSettings(shares={"train": 0.5, "test": 0.5}))
