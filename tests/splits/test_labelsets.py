"""Label sets: one hash however they are written, and near-duplicates in the world and in any orientation."""

from __future__ import annotations

import numpy as np
import pyproj
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from geoeval.splits.labelsets import (
    LabelSet,
    canonical_feature,
    duplicate_groups,
    duplicates_across,
    geometry_hash,
    similarity,
)


def boxes(seed, n=12, size=512):
    """Boxes of 10 to 40 pixels, anywhere in an image."""
    generator = np.random.Generator(np.random.PCG64(seed))
    at, span = generator.uniform(0, size - 40, (n, 2)), generator.uniform(10, 40, (n, 2))
    return shapely.box(*at.T, *(at + span).T)


def moved(shapes, a=1.0, b=0.0, d=0.0, e=1.0, dx=0.0, dy=0.0):
    return shapely.transform(shapes, lambda at: at @ np.array([[a, d], [b, e]]) + np.array([dx, dy]))


def image(shapes, size=(512, 512)):
    return LabelSet(pixels=shapes, size=size)


ORIENTATIONS = {
    "same": {},
    "turned by 90": {"a": 0, "b": -1, "d": 1, "e": 0, "dx": 512},
    "turned by 180": {"a": -1, "e": -1, "dx": 512, "dy": 512},
    "turned by 270": {"a": 0, "b": 1, "d": -1, "e": 0, "dy": 512},
    "left-right": {"a": -1, "dx": 512},
    "up-down": {"e": -1, "dy": 512},
    "transposed": {"a": 0, "b": 1, "d": 1, "e": 0},
    "anti-transposed": {"a": 0, "b": -1, "d": -1, "e": 0, "dx": 512, "dy": 512},
}


@pytest.mark.parametrize("name", ORIENTATIONS)
@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_copies_in_any_orientation_are_found(name, shift):
    copy = moved(moved(boxes(1), dx=shift, dy=-shift), **ORIENTATIONS[name])
    found = duplicates_across([image(boxes(1)), image(boxes(2)), image(copy)], np.array([0, 1, 1]))
    assert (found.count, found.i.tolist(), found.j.tolist()) == (1, [0], [2])
    assert found.distance[0] == pytest.approx(0, abs=1e-9)
    assert duplicate_groups([image(boxes(1)), image(boxes(2)), image(copy)]).tolist() == [0, 1, 0]


def test_an_image_of_another_size_and_shape_is_found():
    tall = moved(boxes(1), a=0, b=0.5, d=2, e=0)
    found = duplicates_across([image(boxes(1)), image(tall, (1024, 256))], np.array([0, 1]))
    assert found.count == 1


def test_half_of_the_smaller_set_is_enough_and_less_is_not():
    """Of 12 boxes, the 6 smallest come again among others elsewhere; then 5."""
    mine = boxes(1)[np.argsort(shapely.area(boxes(1)))]
    for kept, count in ((6, 1), (5, 0)):
        other = np.concatenate([mine[:kept], boxes(7)[: 12 - kept]])
        share, jaccard = similarity(mine, other)
        assert share == pytest.approx(kept / 12)
        assert jaccard < 0.4
        assert duplicates_across([image(mine), image(other)], np.array([0, 1])).count == count


def test_occupancy_finds_what_was_merged():
    """Nine touching boxes drawn as three blocks: no match at IoU 0.5, but the same area."""
    x, y = np.meshgrid(np.arange(3) * 64.0, np.arange(3) * 64.0)
    parts = shapely.box(x.ravel(), y.ravel(), x.ravel() + 64, y.ravel() + 64)
    blocks = shapely.box(np.arange(3) * 64.0, 0, np.arange(3) * 64.0 + 64, 192)
    assert similarity(parts, blocks) == (0.0, 1.0)


def test_unrelated_sets_are_not_alike():
    sets = [image(boxes(seed)) for seed in range(30)]
    assert duplicate_groups(sets).tolist() == list(range(30))


def test_two_features_are_too_few():
    assert duplicates_across([image(boxes(1, 2)), image(boxes(1, 2))], np.array([0, 1])).count == 0
    assert duplicates_across([image(boxes(1, 3)), image(boxes(1, 3))], np.array([0, 1])).count == 1


def test_pairs_of_one_split_do_not_count():
    assert duplicates_across([image(boxes(1))] * 3, np.array([0, 0, 0])).count == 0
    assert duplicates_across([image(boxes(1))] * 3, np.array([0, 1, 0])).count == 2


def world(shapes, crs):
    return LabelSet(world=shapes, crs=crs)


def test_copies_in_another_system_are_found_in_the_world():
    """The same buildings in UTM and in degrees; and shifted by a third of a building, beside others."""
    utm = moved(boxes(1), dx=500_000, dy=5_000_000)
    way = pyproj.Transformer.from_crs("EPSG:32633", "EPSG:4326", always_xy=True)
    degrees = shapely.transform(utm, lambda at: np.stack(way.transform(*at.T), axis=1))
    sets = [
        world(utm, "EPSG:32633"),
        world(moved(utm, dx=3.0), "EPSG:32633"),
        world(boxes(1), "EPSG:32633"),
        world(degrees, "EPSG:4326"),
    ]
    assert duplicate_groups(sets).tolist() == [0, 0, 1, 0]


def test_the_antimeridian_does_not_hide_a_copy():
    """Boxes from 179.99 to 180.01 degrees east, written beyond 180 and before -180."""
    shapes = moved(boxes(1), a=4e-5, e=4e-5, dx=179.99)
    sets = [world(shapes, "EPSG:4326"), world(moved(shapes, dx=-360), "EPSG:4326")]
    found = duplicates_across(sets, np.array([0, 1]))
    assert found.count == 1
    assert found.distance[0] == pytest.approx(0)


def test_points_and_lines_are_compared_too():
    points = shapely.points(np.random.Generator(np.random.PCG64(1)).uniform(0, 512, (9, 2)))
    others = shapely.points(np.random.Generator(np.random.PCG64(2)).uniform(0, 512, (9, 2)))
    found = duplicates_across([image(points), image(points), image(others)], np.array([0, 1, 1]))
    assert (found.count, found.j.tolist()) == (1, [1])


def test_nothing_is_like_nothing():
    assert duplicates_across([], np.zeros(0, dtype=int)).count == 0
    assert duplicate_groups([LabelSet(), LabelSet(world=np.array([None, shapely.Point()]))]).tolist() == [0, 1]


WKT = "POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0), (2 2, 2 4, 4 4, 4 2, 2 2))"


@pytest.mark.parametrize(
    "same",
    [
        "POLYGON ((10 10, 0 10, 0 0, 10 0, 10 10), (2 2, 4 2, 4 4, 2 4, 2 2))",
        "POLYGON ((0 0, 5 0, 10 0, 10 10, 10 10, 0 10, 0 0), (2 2, 2 3, 2 4, 4 4, 4 2, 2 2))",
        "POLYGON ((5 0, 10 0, 10 10, 0 10, 0 0, 5 0), (2 2, 2 4, 4 4, 4 2, 2 2))",
        "MULTIPOLYGON (((-0.0 0, 10 0, 10 10, 0 10, 0 0), (2 2, 2 4, 4 4, 4 2, 2 2)))",
        "GEOMETRYCOLLECTION (POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0), (2 2, 2 4, 4 4, 4 2, 2 2)))",
        "POLYGON Z ((0 0 1, 10 0 2, 10 10 3, 0 10 4, 0 0 1), (2 2 1, 2 4 1, 4 4 1, 4 2 1, 2 2 1))",
        "POLYGON ((0 0.0000003, 10 0, 10.0000002 10, 0 10, 0 0.0000003), (2 2, 2 4, 4 4, 4 2, 2 2))",
    ],
)
def test_one_shape_has_one_form(same):
    assert canonical_feature(shapely.from_wkt(same)) == canonical_feature(shapely.from_wkt(WKT))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("LINESTRING (0 0, 5 5, 10 10)", "LINESTRING (10 10, 0 0)"),
        ("MULTIPOINT (1 1, 2 2)", "MULTIPOINT (2 2, 1 1)"),
        ("MULTILINESTRING ((0 0, 1 1, 2 2), (5 5, 6 6))", "MULTILINESTRING ((6 6, 5 5), (0 0, 2 2))"),
    ],
)
def test_lines_and_points_have_one_form_too(one, other):
    assert canonical_feature(shapely.from_wkt(one)) == canonical_feature(shapely.from_wkt(other))


@pytest.mark.parametrize(
    "other",
    [
        "POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0))",
        "POLYGON ((0 0, 10 0, 10 10.001, 0 10, 0 0), (2 2, 2 4, 4 4, 4 2, 2 2))",
        "LINESTRING (0 0, 10 0, 10 10, 0 10, 0 0)",
    ],
)
def test_another_shape_has_another_form(other):
    assert canonical_feature(shapely.from_wkt(other)) != canonical_feature(shapely.from_wkt(WKT))


def test_a_spike_and_a_speck_are_kept_as_they_are():
    spike = shapely.from_wkt("LINESTRING (0 0, 10 0, 5 0)")
    assert shapely.from_wkb(canonical_feature(spike)).length == pytest.approx(15)
    assert canonical_feature(shapely.box(0, 0, 1e-9, 1e-9))


@given(st.integers(0, 2**32), st.permutations(range(8)), st.integers(0, 3))
def test_order_start_and_winding_do_not_change_the_hash(seed, order, start):
    shapes = boxes(seed, 8)

    def rolled(shape):
        ring = shapely.get_coordinates(shape)[:-1]
        return shapely.Polygon(np.roll(ring, start, axis=0)[:: 1 if start % 2 else -1])

    assert geometry_hash([rolled(shapes[k]) for k in order]) == geometry_hash([*shapes, None, shapely.Point()])
    assert geometry_hash(shapes[:7]) != geometry_hash(shapes)
