"""Do shapes meet their boxes and keep out of others, whatever the systems, the antimeridian and boxes without area?"""

from __future__ import annotations

import numpy as np
import pyproj
import pytest
import shapely

from geoeval.config.ground import Ground, meets, shares

DEGREES, UTM31, FIJI = "EPSG:4326", "EPSG:32631", "EPSG:32760"


def one(shape, crs, bounds, system):
    shapes = np.array([shape], dtype=object)
    boxes = np.array([bounds], dtype=np.float64)
    return bool(meets(shapes, pyproj.CRS(crs), boxes, np.array([system], dtype=object))[0])


@pytest.mark.parametrize(
    ("shape", "inside"),
    [
        (shapely.box(-5, -5, 5, 5), True),
        (shapely.box(-100, -100, 100, 100), True),
        (shapely.Point(10, 10), True),
        (shapely.Point(10, 10.001), False),
        (shapely.box(10, 0, 12, 4), True),
        (shapely.LineString([(-5, 6), (6, -5)]), True),
        # Its own bounds reach into the box, the line does not.
        (shapely.LineString([(5, 30), (30, 5)]), False),
    ],
)
def test_shapes_and_a_box_of_one_system(shape, inside):
    assert one(shape, UTM31, [0, 0, 10, 10], UTM31) is inside


@pytest.mark.parametrize(
    ("bounds", "x", "inside"),
    [
        ([5, 0, 5, 10], 5, True),
        ([5, 0, 5, 10], 5.01, False),
        ([5, 4, 5, 4], 5, True),
        ([5, 4, 5, 4], 4.99, False),
    ],
)
def test_a_box_may_be_a_line_or_a_point(bounds, x, inside):
    assert one(shapely.Point(x, 4), UTM31, bounds, UTM31) is inside


@pytest.mark.parametrize(
    ("bounds", "inside"),
    [
        ([179.5, -18.0, -179.5, -16.0], True),
        ([179.5, -18.0, 180.5, -16.0], True),
        ([179.0, -18.0, 179.5, -16.0], False),
        ([-179.5, -18.0, -179.0, -16.0], False),
        ([-0.5, -18.0, 0.5, -16.0], False),
    ],
)
def test_a_field_across_the_antimeridian(bounds, inside):
    """40 km wide, half of it beyond 180 degrees."""
    middle = pyproj.Transformer.from_crs(DEGREES, FIJI, always_xy=True).transform(180.0, -17.0)
    field = shapely.Point(middle).buffer(20_000)
    assert one(field, FIJI, bounds, DEGREES) is inside


def test_a_field_on_the_far_side_of_the_earth_does_not_wrap_around_a_box():
    field = shapely.box(179.5, 10, 180.5, 11)
    assert one(field, DEGREES, [-1.0, 10.0, 1.0, 11.0], DEGREES) is False
    assert one(field, DEGREES, [-180.0, 10.0, 180.0, 11.0], DEGREES) is True


def test_what_has_no_place_in_the_system_of_the_box_is_outside():
    """The North Pole has no place in a Mercator projection."""
    assert one(shapely.Point(0.0, 90.0), DEGREES, [-1e6, -1e6, 1e6, 1e6], "EPSG:3857") is False


def test_rounding_on_the_way_from_another_system_moves_nobody_out():
    """Corners of a box in degrees, there and back again."""
    bounds = [4.999123456789, 50.123456789012, 5.123456789012, 50.234567890123]
    there = pyproj.Transformer.from_crs(DEGREES, UTM31, always_xy=True)
    for x in bounds[::2]:
        for y in bounds[1::2]:
            assert one(shapely.Point(*there.transform(x, y)), UTM31, bounds, DEGREES)
    assert not one(shapely.Point(*there.transform(bounds[0] - 1e-6, bounds[1])), UTM31, bounds, DEGREES)


def test_every_shape_is_held_against_its_own_box():
    shapes = np.array([shapely.Point(5.0, 50.0), shapely.Point(5.0, 50.0), shapely.Point(5.0, 50.0)], dtype=object)
    x, y = pyproj.Transformer.from_crs(DEGREES, UTM31, always_xy=True).transform(5.0, 50.0)
    boxes = np.array([[4, 49, 6, 51], [x - 1, y - 1, x + 1, y + 1], [x + 1, y - 1, x + 2, y + 1]], dtype=np.float64)
    systems = np.array([DEGREES, UTM31, UTM31], dtype=object)
    assert meets(shapes, pyproj.CRS(DEGREES), boxes, systems).tolist() == [True, True, False]


@pytest.mark.parametrize("last", [360.0, 180.0])
def test_a_raster_of_the_whole_earth_meets_every_box(last):
    globe = shapely.box(last - 360.0, -90, last, 90)
    for west in (-180.0, -100.0, -1.0, 100.0, 179.0):
        assert one(globe, DEGREES, [west, 10, west + 1, 11], DEGREES)
        assert reaches(globe, DEGREES, [west, 10, west + 1, 11], DEGREES)
    assert reaches(globe, DEGREES, [500_000.0, 5_600_000.0, 500_400.0, 5_600_400.0], UTM31)


def test_a_raster_around_the_pole_is_compared_in_its_own_system():
    polar, there = "EPSG:3413", pyproj.Transformer.from_crs(DEGREES, "EPSG:3413", always_xy=True)
    around = shapely.box(-1e6, -1e6, 1e6, 1e6)
    for lon in (-170.0, -20.0, 75.0, 179.5):
        assert reaches(around, polar, [lon, 85.0, lon + 1.0, 86.0], DEGREES)
        assert not reaches(around, polar, [lon, 60.0, lon + 1.0, 61.0], DEGREES)
        x, y = there.transform(lon + 0.5, 85.5)
        assert reaches(shapely.Point(x, y).buffer(10.0), polar, [lon, 85.0, lon + 1.0, 86.0], DEGREES)


def reaches(shape, crs, bounds, system):
    ground = Ground(np.array([bounds], dtype=np.float64), np.array([system], dtype=object))
    shape_of, _ = ground.reached(np.array([shape], dtype=object), pyproj.CRS(crs))
    return len(shape_of) == 1


@pytest.mark.parametrize(
    ("shape", "inside"),
    [
        (shapely.Point(5, 5), True),
        (shapely.Point(10, 5), False),
        (shapely.Point(np.nextafter(10, 0), 5), True),
        (shapely.MultiPoint([(50, 50), (5, 5)]), True),
        (shapely.MultiPoint([(50, 50), (10, 5)]), False),
        (shapely.LineString([(10, -5), (10, 15)]), False),
        (shapely.LineString([(10, -5), (9.99, 15)]), True),
        (shapely.box(10, 0, 20, 10), False),
        (shapely.box(9.99, 0, 20, 10), True),
        (shapely.box(-50, -50, 50, 50), True),
        (shapely.box(-50, -50, 50, 50) - shapely.box(0, 0, 10, 10), False),
        (shapely.GeometryCollection([shapely.Point(50, 50), shapely.LineString([(5, 5), (6, 6)])]), True),
        (shapely.Polygon([(0, 0), (10, 10), (10, 0), (0, 10)]), True),
    ],
)
def test_touching_is_not_reaching_into_a_box(shape, inside):
    assert reaches(shape, UTM31, [0, 0, 10, 10], UTM31) is inside


@pytest.mark.parametrize(("bounds", "inside"), [([5, 0, 5, 10], True), ([5, 4, 5, 4], True), ([6, 4, 6, 4], False)])
def test_a_box_without_an_area_is_reached_by_what_meets_it(bounds, inside):
    assert reaches(shapely.Point(5, 4), UTM31, bounds, UTM31) is inside
    assert reaches(shapely.box(4, 3, 5.5, 5), UTM31, bounds, UTM31) is inside


@pytest.mark.parametrize(
    ("bounds", "inside"),
    [
        ([179.5, -18.0, -179.5, -16.0], True),
        ([179.5, -18.0, 180.5, -16.0], True),
        ([179.95, -18.0, 179.99, -16.0], True),
        ([-179.99, -18.0, -179.95, -16.0], True),
        ([179.0, -18.0, 179.5, -16.0], False),
        ([-0.5, -18.0, 0.5, -16.0], False),
    ],
)
def test_a_field_across_the_antimeridian_reaches_into_boxes_on_both_sides(bounds, inside):
    middle = pyproj.Transformer.from_crs(DEGREES, FIJI, always_xy=True).transform(180.0, -17.0)
    assert reaches(shapely.Point(middle).buffer(20_000), FIJI, bounds, DEGREES) is inside


def test_rounding_on_the_way_from_another_system_lets_nobody_reach_in():
    """The corners of a box in degrees touch it; a metre further in they do not."""
    bounds = [4.999123456789, 50.123456789012, 5.123456789012, 50.234567890123]
    there = pyproj.Transformer.from_crs(DEGREES, UTM31, always_xy=True)
    for x in bounds[::2]:
        for y in bounds[1::2]:
            assert not reaches(shapely.Point(*there.transform(x, y)), UTM31, bounds, DEGREES)
    assert reaches(shapely.Point(*there.transform(bounds[0] + 1e-5, bounds[1] + 1e-5)), UTM31, bounds, DEGREES)


def test_every_pair_is_found_among_boxes_of_several_systems():
    x, y = pyproj.Transformer.from_crs(DEGREES, UTM31, always_xy=True).transform(5.0, 50.0)
    boxes = np.array([[4, 49, 6, 51], [x - 1, y - 1, x + 1, y + 1], [0, 0, 1, 1], [4.9, 49, 5.1, 51]], dtype=np.float64)
    ground = Ground(boxes, np.array([DEGREES, UTM31, UTM31, DEGREES], dtype=object))
    shapes = np.array([shapely.Point(-5.0, 50.0), shapely.Point(5.0, 50.0), shapely.Point(5.5, 50.0)], dtype=object)
    shape, box = ground.reached(shapes, pyproj.CRS(DEGREES))
    assert list(zip(shape.tolist(), box.tolist(), strict=True)) == [(1, 0), (1, 1), (1, 3), (2, 0)]
    assert [
        len(side) for side in Ground(boxes[:0], np.array([], dtype=object)).reached(shapes, pyproj.CRS(DEGREES))
    ] == [
        0,
        0,
    ]


def test_shares_of_shapes_across_systems_and_the_antimeridian():
    there = pyproj.Transformer.from_crs(DEGREES, FIJI, always_xy=True)
    field = shapely.box(*there.transform(179.9, -17.1), *there.transform(180.1, -16.9))
    shapes = np.array([field, field, shapely.Point(*there.transform(180.0, -17.0))], dtype=object)
    boxes = np.array([[179.0, -18.0, 180.0, -16.0], [179.0, -18.0, -179.0, -16.0], [179, -18, -179, -16]])
    found = shares(shapes, pyproj.CRS(FIJI), boxes, np.array([DEGREES] * 3, dtype=object))
    assert found.tolist() == pytest.approx([0.5, 1.0, 0.0], abs=2e-3)
