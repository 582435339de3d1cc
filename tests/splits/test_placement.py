"""The declared box of a sample against the georeference of its images."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pyproj
import pytest
import rasterio
from affine import Affine
from rasterio.control import GroundControlPoint
from rasterio.errors import NotGeoreferencedWarning
from rasterio.warp import transform_bounds

from geoeval.errors import InputError
from geoeval.splits.assets import image_frame
from geoeval.splits.boxes import from_bounds
from geoeval.splits.placement import placed
from geoeval.splits.record import Sample, checked

NORTH_UP = Affine(10, 0, 500_000, 0, -10, 5_600_000)


def frame(path, crs, transform, *, width=100, height=80):
    """The georeference of a GeoTIFF that was written for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        with rasterio.open(
            path, "w", driver="GTiff", width=width, height=height, count=1, dtype="uint8", crs=crs, transform=transform
        ) as out:
            out.write(np.zeros((1, height, width), dtype=np.uint8))
    return image_frame(path, "record 'a'")


def sample(bbox=None, crs=None):
    return checked(Sample(sample_id="a", task="t", bbox=bbox, crs=crs), "line 1")


def refused(one, image, match, name="raw_image"):
    with pytest.raises(InputError, match=match) as caught:
        placed(one, {name: image}, "s.jsonl, record 'a'")
    assert str(caught.value).startswith(f"s.jsonl, record 'a': {name}")
    return str(caught.value)


def corner_box(image, crs, densify=0):
    """The bounds that people declare: of the corners, or of densified edges."""
    a, b, c, d, e, f = image.transform
    at = [(0, 0), (image.width, 0), (image.width, image.height), (0, image.height)]
    x, y = zip(*[(a * column + b * row + c, d * column + e * row + f) for column, row in at], strict=True)
    if densify:
        return transform_bounds(image.crs, crs, min(x), min(y), max(x), max(y), densify_pts=densify)
    x, y = pyproj.Transformer.from_crs(image.crs, crs, always_xy=True).transform(x, y)
    return (min(x), min(y), max(x), max(y))


@pytest.mark.parametrize(
    "transform",
    [
        NORTH_UP,
        Affine(10, 0, 500_000, 0, 10, 5_600_000),
        Affine(-10, 0, 501_000, 0, -10, 5_600_000),
        Affine.translation(500_000, 5_600_000) @ Affine.rotation(33) @ Affine.scale(10, -10),
        Affine(0, 10, 500_000, 10, 0, 5_600_000),
    ],
    ids=["north up", "south up", "east left", "rotated", "transposed"],
)
@pytest.mark.parametrize("system", ["EPSG:32631", "EPSG:4326", "EPSG:3857", "EPSG:32632", "EPSG:4258"])
def test_the_box_of_an_image_holds_and_one_two_kilometres_away_does_not(tmp_path, transform, system):
    image = frame(tmp_path / "a.tif", "EPSG:32631", transform)
    box = corner_box(image, system)
    one = sample(box, system)
    assert placed(one, {"raw_image": image}, "a") is one
    unit = 2000.0 if abs(box[0]) > 360 else 2000 / 111_320
    for moved in ((unit, 0), (0, unit), (-unit, 0), (0, -unit)):
        wrong = tuple(side + moved[at % 2] for at, side in enumerate(box))
        says = refused(sample(wrong, system), image, "out of the declared bbox")
        assert "buffer between splits rests on it" in says


def test_how_far_out_is_told_in_the_unit_of_the_box(tmp_path):
    image = frame(tmp_path / "a.tif", "EPSG:32631", NORTH_UP)
    says = refused(sample((502_000, 5_599_200, 503_000, 5_600_000), "EPSG:32631"), image, "reaches 1990 metre out")
    assert "[502000, 5599200, 503000, 5600000]" in says
    assert "its corners span [500000, 5599200, 501000, 5600000] in EPSG:32631" in says
    refused(sample((3, 50, 3.1, 50.1), "EPSG:4326"), image, r"reaches 0\.45\d* degree out")
    refused(sample((1_000_000, 1_000_000, 1_100_000, 1_100_000), "EPSG:2263"), image, "US survey foot out")


def test_one_pixel_is_let_pass_and_two_are_not(tmp_path):
    image = frame(tmp_path / "a.tif", "EPSG:32631", NORTH_UP)
    one = sample((500_010, 5_599_210, 500_990, 5_599_990), "EPSG:32631")
    assert placed(one, {"raw_image": image}, "a") is one
    refused(sample((500_020, 5_599_210, 500_990, 5_599_990), "EPSG:32631"), image, "reaches 10 metre")


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (1, 50), (50, 2)])
def test_images_of_a_pixel_or_two_are_held_to_their_middle(tmp_path, size):
    image = frame(tmp_path / "a.tif", "EPSG:32631", NORTH_UP, width=size[0], height=size[1])
    one = sample(corner_box(image, "EPSG:4326"), "EPSG:4326")
    assert placed(one, {"raw_image": image}, "a") is one
    refused(sample((501_000, 5_599_000, 502_000, 5_600_000), "EPSG:32631"), image, "out of the declared bbox")


@pytest.mark.parametrize("densify", [0, 21])
def test_boxes_of_corners_and_of_densified_edges_pass(tmp_path, densify):
    """An image of 100 km, whose edges bulge by 240 m."""
    image = frame(tmp_path / "a.tif", "EPSG:32633", Affine(1000, 0, 400_000, 0, -1000, 6_700_000))
    one = sample(corner_box(image, "EPSG:4326", densify), "EPSG:4326")
    assert placed(one, {"raw_image": image}, "a") is one


@pytest.mark.parametrize("box", [(2.9, 50.4, 3.2, 50.7), (-180, -90, 180, 90), (0, 0, 360, 90), (350, 0, 100, 90)])
def test_a_larger_box_passes(tmp_path, box):
    image = frame(tmp_path / "a.tif", "EPSG:32631", NORTH_UP)
    one = sample(box, "EPSG:4326")
    assert placed(one, {"raw_image": image}, "a") is one


def test_latitude_before_longitude_is_refused_and_named(tmp_path):
    image = frame(tmp_path / "a.tif", "EPSG:32631", NORTH_UP)
    west, south, east, north = corner_box(image, "EPSG:4326")
    refused(sample((south, west, north, east), "EPSG:4326"), image, "x and y of the bbox look swapped")


ACROSS_180 = {
    "degrees beyond 180": ("EPSG:4326", Affine(0.002, 0, 179.9, 0, -0.002, -17)),
    "degrees below -180": ("EPSG:4326", Affine(0.002, 0, -180.1, 0, -0.002, -17)),
    "UTM 60": ("EPSG:32760", Affine(200, 0, 810_000, 0, -200, 8_118_000)),
    "UTM 1": ("EPSG:32701", Affine(200, 0, 170_000, 0, -200, 8_118_000)),
}


@pytest.mark.parametrize("name", ACROSS_180)
@pytest.mark.parametrize("box", [(179.5, -18, -179.5, -16), (179.5, -18, 180.5, -16), (-180.5, -18, -179.5, -16)])
def test_images_across_the_antimeridian(tmp_path, name, box):
    image = frame(tmp_path / "a.tif", *ACROSS_180[name])
    one = sample(box, "EPSG:4326")
    assert placed(one, {"raw_image": image}, "a") is one
    says = refused(sample((179.5, -18, 179.98, -16), "EPSG:4326"), image, "degree out of the declared bbox")
    span = says.split("its corners span [")[1].split(",")
    assert 179 < float(span[0]) < 180
    assert -180 < float(span[2]) < -179


def test_the_world_without_the_image_is_no_box_of_it(tmp_path):
    """Least and most of the longitudes of corners across 180 degrees: all of the world, except the image."""
    image = frame(tmp_path / "a.tif", *ACROSS_180["UTM 60"])
    west, _, east, _ = corner_box(image, "EPSG:4326")
    assert east - west > 350
    refused(sample((west, -18, east, -16), "EPSG:4326"), image, "degree out of the declared bbox")


POLAR = ("EPSG:3413", Affine(1000, 0, -50_000, 0, -1000, 40_000))


def test_an_image_over_the_pole(tmp_path):
    image = frame(tmp_path / "a.tif", *POLAR)
    for box, crs in [((-180, 89, 180, 90), "EPSG:4326"), ((-51_000, -40_000, 51_000, 41_000), "EPSG:3413")]:
        one = sample(box, crs)
        assert placed(one, {"raw_image": image}, "a") is one
    refused(sample(corner_box(image, "EPSG:4326"), "EPSG:4326"), image, "degree out of the declared bbox")


def test_an_image_that_has_no_place_in_the_system_of_its_box(tmp_path):
    """The far side of the Earth, seen from space."""
    image = frame(tmp_path / "a.tif", "EPSG:4326", Affine(0.01, 0, -177, 0, -0.01, -50))
    near = "+proj=ortho +lat_0=50 +lon_0=3 +datum=WGS84"
    refused(
        sample((0, 0, 9, 9), near), image, r"lies at \[-177, -50.8, -176, -50\] in EPSG:4326, which has no place in"
    )


def test_a_box_in_turns_of_400(tmp_path):
    """NTF (Paris) counts in grads from Paris."""
    image = frame(tmp_path / "a.tif", "EPSG:32631", NORTH_UP)
    box = corner_box(image, "EPSG:4807")
    one = sample(box, "EPSG:4807")
    assert placed(one, {"raw_image": image}, "a") is one
    refused(sample((box[0] + 1, box[1], box[2] + 1, box[3]), "EPSG:4807"), image, "grad out of")


@pytest.mark.parametrize(
    ("crs", "transform"),
    [
        (None, Affine.identity()),
        (None, NORTH_UP),
        ("EPSG:32631", Affine.identity()),
        ('LOCAL_CS["plan",UNIT["metre",1]]', NORTH_UP),
    ],
)
def test_an_image_without_a_georeference_says_nothing(tmp_path, crs, transform):
    image = frame(tmp_path / "a.tif", crs, transform)
    for one in (sample(), sample((3, 50, 3.1, 50.1), "EPSG:4326")):
        assert placed(one, {"raw_image": image}, "a") is one
    assert placed(sample(), {}, "a") == sample()


def test_a_box_in_pixels_is_left_alone(tmp_path):
    image = frame(tmp_path / "a.tif", "EPSG:32631", NORTH_UP)
    one = sample((0, 0, 100, 80), "pixel")
    assert placed(one, {"raw_image": image}, "a") is one


def test_a_missing_box_is_that_of_the_image(tmp_path):
    image = frame(tmp_path / "a.tif", "EPSG:32631", NORTH_UP)
    for one in (sample(), sample(crs="EPSG:4326"), sample(crs="pixel")):
        done = placed(one, {"raw_image": image}, "a")
        assert (done.bbox, done.crs) == ((500_000, 5_599_200, 501_000, 5_600_000), "EPSG:32631")
        assert placed(done, {"raw_image": image}, "a") is done
        assert dataclasses.replace(done, bbox=None, crs=one.crs) == one
    turned = frame(
        tmp_path / "b.tif", "EPSG:32631", Affine.translation(5e5, 5.6e6) @ Affine.rotation(45) @ Affine.scale(10, 10)
    )
    half = 2**0.5 / 2
    expected = (5e5 - 800 * half, 5.6e6, 5e5 + 1000 * half, 5.6e6 + 1800 * half)
    assert placed(sample(), {"raw_image": turned}, "a").bbox == pytest.approx(expected)


def test_both_images_are_covered(tmp_path):
    raw = frame(tmp_path / "a.tif", "EPSG:32631", NORTH_UP)
    small = frame(tmp_path / "b.tif", "EPSG:32631", Affine(5, 0, 500_100, 0, -5, 5_600_100))
    bare = frame(tmp_path / "c.tif", None, Affine.identity())

    def box(**frames):
        done = placed(sample(), frames, "a")
        return done.bbox, done.crs

    union = ((500_000, 5_599_200, 501_000, 5_600_100), "EPSG:32631")
    assert box(raw_image=raw, processed_image=small) == box(raw_image=small, processed_image=raw) == union
    assert box(raw_image=raw, processed_image=bare) == ((500_000, 5_599_200, 501_000, 5_600_000), "EPSG:32631")
    both = {"raw_image": raw, "processed_image": small}
    one = sample((500_000, 5_599_200, 501_000, 5_600_000), "EPSG:32631")
    with pytest.raises(InputError, match="processed_image reaches 95 metre out"):
        placed(one, both, "a")


def test_the_second_image_in_another_system_is_held_to_the_box_of_the_first(tmp_path):
    large = frame(tmp_path / "a.tif", "EPSG:4326", Affine(0.001, 0, 2.98, 0, -0.001, 50.58))
    inside = frame(tmp_path / "b.tif", "EPSG:32631", NORTH_UP)
    done = placed(sample(), {"processed_image": large, "raw_image": inside}, "a")
    assert (done.bbox, done.crs) == (pytest.approx((2.98, 50.5, 3.08, 50.58)), "EPSG:4326")
    with pytest.raises(InputError, match=r"raw_image reaches [0-9.]+ metre out"):
        placed(sample(), {"processed_image": inside, "raw_image": large}, "a")


def test_the_union_of_two_boxes_on_both_sides_of_180_is_narrow(tmp_path):
    east = frame(tmp_path / "a.tif", *ACROSS_180["degrees beyond 180"])
    west = frame(tmp_path / "b.tif", *ACROSS_180["degrees below -180"])
    done = placed(sample(), {"processed_image": east, "raw_image": west}, "a")
    assert done.bbox == pytest.approx((179.9, -17.16, 180.1, -17))
    assert checked(done, "line 1") == done
    assert len(from_bounds(*done.bbox, done.crs)) == 1


def test_a_system_without_a_code_is_named_so_that_it_can_be_read_again(tmp_path):
    image = frame(tmp_path / "a.tif", "+proj=laea +lat_0=50 +lon_0=4 +datum=WGS84", Affine(10, 0, 200, 0, -10, -100))
    done = placed(sample(), {"raw_image": image}, "a")
    assert checked(done, "line 1") == done
    assert placed(done, {"raw_image": image}, "a") is done
    frame_of_box = from_bounds(*done.bbox, done.crs).frame[0]
    assert frame_of_box[0] == pytest.approx(4.0, abs=0.01)


def test_metres_that_call_themselves_degrees_are_refused(tmp_path):
    image = frame(tmp_path / "a.tif", "EPSG:4326", NORTH_UP)
    refused(sample(), image, "outside the degrees of its system")


@pytest.mark.shared
def test_real_images_hold_their_boxes(shared_data):
    paths = sorted([*shared_data.glob("deepforest_neon/*.tif"), *shared_data.glob("gval_flood_maps/*_0.tif")])
    assert paths
    for path in paths:
        image = image_frame(path, path.name)
        box = placed(sample(), {"raw_image": image}, path.name)
        assert box.bbox is not None
        for densify in (0, 21):
            one = sample(corner_box(image, "EPSG:4326", densify), "EPSG:4326")
            assert placed(one, {"raw_image": image}, path.name) is one
            moved = (one.bbox[0] + 0.02, one.bbox[1], one.bbox[2] + 0.02, one.bbox[3])
            refused(sample(moved, "EPSG:4326"), image, "degree out of the declared bbox")


def test_degrees_rounded_to_five_digits_hold_a_sharp_image(tmp_path):
    """Pixels of 30 cm are sharper than the box is written."""
    image = frame(tmp_path / "a.tif", "EPSG:32631", Affine(0.3, 0, 500_123.4, 0, -0.3, 5_600_123.4))
    box = corner_box(image, "EPSG:4326", 0)
    rounded = sample(tuple(round(side, 5) for side in box), "EPSG:4326")
    assert placed(rounded, {"raw_image": image}, "a") is rounded
    refused(sample((box[0] + 4e-5, *box[1:]), "EPSG:4326"), image, "degree out of the declared bbox")


def with_points(path, transform, crs="EPSG:32631", at=((0, 0), (0, 100), (80, 0), (80, 100))):
    """An image that is placed by ground control points alone."""
    points = []
    for row, column in at:
        x, y = transform @ (column, row)
        points.append(GroundControlPoint(row=row, col=column, x=x, y=y))
    shape = {"width": 100, "height": 80, "count": 1, "dtype": "uint8"}
    with rasterio.open(path, "w", driver="GTiff", gcps=points, crs=crs, **shape) as out:
        out.write(np.zeros((1, 80, 100), dtype=np.uint8))
    return image_frame(path, "record 'a'")


@pytest.mark.parametrize("turned", [0, 33])
def test_control_points_place_an_image_as_its_transform_does(tmp_path, turned):
    transform = Affine.translation(500_000, 5_600_000) @ Affine.rotation(turned) @ Affine.scale(10, -10)
    image = with_points(tmp_path / "g.tif", transform)
    assert image.crs == "EPSG:32631"
    assert image.transform == pytest.approx(tuple(transform)[:6])
    box = corner_box(image, "EPSG:4326")
    assert placed(sample(box, "EPSG:4326"), {"raw_image": image}, "a").bbox == box
    refused(sample((box[0] + 0.02, box[1], box[2] + 0.02, box[3]), "EPSG:4326"), image, "out of the declared bbox")
    assert placed(sample(), {"raw_image": image}, "a").crs == "EPSG:32631"


def test_two_control_points_place_nothing(tmp_path):
    image = with_points(tmp_path / "g.tif", NORTH_UP, at=((0, 0), (80, 100)))
    assert placed(sample(), {"raw_image": image}, "a").bbox is None
