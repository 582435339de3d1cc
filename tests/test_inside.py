"""Do shapes meet the boxes of their samples, whatever the systems, the antimeridian and boxes without an area?"""

from __future__ import annotations

import numpy as np
import pyproj
import pytest
import shapely

from geoeval.config.inside import meets

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
