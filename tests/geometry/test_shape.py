"""Shape metrics on squares that can be counted, and against shapely vertex by vertex."""

from __future__ import annotations

import math

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely import affinity
from shapely.geometry import LineString, MultiPolygon, Polygon, box

from geoeval.geometry import shape
from geoeval.geometry.shape import (
    centroid_distance,
    compactness,
    hausdorff,
    orientation_difference,
    polis,
    vertex_count,
)

UTM = (512_034.1, 5_402_210.8)


def layer(*geometries):
    out = np.empty(len(geometries), dtype=object)
    out[:] = geometries
    return out


@st.composite
def polygons(draw):
    """Star-shaped rings, some with a hole, some with a second part."""
    n = draw(st.integers(3, 14))
    radius = np.array(draw(st.lists(st.floats(0.5, 4.0), min_size=n, max_size=n)))
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    ring = np.column_stack([np.cos(angle) * radius, np.sin(angle) * radius])
    whole = Polygon(ring, [ring * 0.5] if draw(st.booleans()) else [])
    whole = affinity.translate(whole, draw(st.floats(0, 4)), draw(st.floats(0, 4)))
    return MultiPolygon([whole, box(20, 20, 21, 21)]) if draw(st.booleans()) else whole


def vertices(polygon):
    rings = shapely.get_rings(shapely.get_parts(polygon))
    return shapely.points(np.concatenate([shapely.get_coordinates(ring)[:-1] for ring in rings]))


def distances(a, b):
    """Slow and obvious: every vertex of a, by itself, to the boundary of b."""
    return [point.distance(b.boundary) for point in vertices(a)]


@settings(max_examples=100, deadline=None)
@given(a=polygons(), b=polygons())
def test_polis_and_hausdorff_agree_with_every_vertex_measured(a, b):
    there, back = distances(a, b), distances(b, a)
    expected = 0.5 * (sum(there) / len(there) + sum(back) / len(back))
    assert polis(layer(a), layer(b)) == pytest.approx([expected], abs=1e-12)
    assert hausdorff(layer(a), layer(b)) == pytest.approx([max(there + back)], abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(a=polygons(), b=polygons(), turn=st.floats(-180, 180))
def test_sides_directions_and_motions_do_not_matter(a, b, turn):
    def moved(geometry):
        return affinity.translate(affinity.rotate(geometry, turn, origin=(0, 0)), *UTM)

    for metric in (polis, hausdorff, centroid_distance):
        here = metric(layer(a), layer(b))
        assert metric(layer(b), layer(a)) == pytest.approx(here, abs=1e-12)
        assert metric(layer(shapely.normalize(shapely.reverse(a))), layer(b)) == pytest.approx(here, abs=1e-12)
        assert metric(layer(moved(a)), layer(moved(b))) == pytest.approx(here, abs=1e-8)


def test_polis_does_not_count_the_closing_vertex():
    """A 4 x 4 square and one widened to 5.

    +----+-+   The four vertices of A lie on B's boundary; two of the four of B are 1 from A: (0 + 2/4) / 2 = 0.25.
    |  A |B|   With the closing vertex at (5, 0) counted twice, it would be (0 + 3/5) / 2.
    +----+-+
    """
    wide = Polygon([(5, 0), (5, 4), (0, 4), (0, 0)])
    assert polis(layer(box(0, 0, 4, 4)), layer(wide)).tolist() == [0.25]


def test_holes_and_further_parts_have_vertices():
    """Against a square with a courtyard in its middle: the 4 of 8 vertices of the courtyard are 1 from A's boundary."""
    court = box(0, 0, 4, 4) - box(1, 1, 3, 3)
    assert polis(layer(box(0, 0, 4, 4)), layer(court)) == pytest.approx([0.5 * 4 / 8])
    assert hausdorff(layer(box(0, 0, 4, 4)), layer(court)).tolist() == [1.0]


def test_hausdorff_is_measured_to_segments_not_to_vertices():
    """(5, 1) is 1 above a wall of 10, though its nearest vertex is 5.1 away."""
    notched = Polygon([(0, 0), (10, 0), (10, -5), (0, -5)])
    wedge = Polygon([(0, 0), (5, 1), (10, 0), (10, -5), (0, -5)])
    assert hausdorff(layer(notched), layer(wedge)).tolist() == [1.0]


def test_identical_polygons_are_at_distance_0_to_the_last_bit():
    a = affinity.translate(affinity.rotate(box(0, 0, 9, 9) - box(3, 3, 6, 6), 17), *UTM)
    both = layer(a), layer(shapely.reverse(a))
    assert (polis(*both).tolist(), hausdorff(*both).tolist()) == ([0], [0])
    assert centroid_distance(*both) == pytest.approx([0], abs=1e-8)


def test_lines_can_be_compared_too():
    a, b = layer(LineString([(0, 0), (9, 0)])), layer(LineString([(0, 2), (9, 2)]))
    assert hausdorff(a, b).tolist() == [2.0]


def test_large_rings_through_an_index_give_the_same_distances(monkeypatch):
    angle = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    a = layer(Polygon(ring * 50), box(0, 0, 1, 1), Polygon(ring * 30))
    b = layer(Polygon(ring * (50 + 3 * np.sin(5 * angle))[:, None]), box(0, 0, 2, 1), Polygon(ring * 31))
    direct = polis(a, b), hausdorff(a, b)
    monkeypatch.setattr(shape, "_BRUTE", 10_000)
    assert polis(a, b) == pytest.approx(direct[0], rel=1e-12)
    assert hausdorff(a, b) == pytest.approx(direct[1], rel=1e-12)


def test_an_empty_side_has_no_distance():
    both = layer(Polygon(), box(0, 0, 1, 1)), layer(box(0, 0, 1, 1), box(0, 0, 1, 1))
    for metric in (polis, hausdorff):
        assert np.isnan(metric(*both)).tolist() == [True, False]
        assert np.isnan(metric(*both[::-1])).tolist() == [True, False]
    assert np.isnan(centroid_distance(*both)).tolist() == [True, False]
    assert polis(layer(), layer()).shape == (0,)


def test_pairs_must_be_aligned():
    with pytest.raises(ValueError, match=r"expected aligned pairs a\[i\], b\[i\]; found 1 and 2 geometries"):
        polis(layer(box(0, 0, 1, 1)), layer(box(0, 0, 1, 1), box(0, 0, 1, 1)))


def test_vertices_of_all_rings_and_parts_count_once():
    triangle = Polygon([(0, 0), (1, 0), (0, 1)])
    many = MultiPolygon([box(0, 0, 9, 9) - box(3, 3, 6, 6), box(20, 20, 21, 21)])
    assert vertex_count(layer(triangle, many, Polygon(), box(0, 0, 1, 1))).tolist() == [3, 12, 0, 4]
    assert vertex_count(layer(LineString([(0, 0), (1, 0), (2, 1)]))).tolist() == [3]


def test_a_disc_is_compact_and_a_strip_is_not():
    """A strip of 1 x 99 has a perimeter of 200: 4 pi 99 / 40000."""
    disc = shapely.Point(0, 0).buffer(1, quad_segs=256)
    strip = box(0, 0, 1, 99)
    expected = [1.0, 4 * math.pi * 99 / 40_000]
    assert compactness(layer(disc, strip)) == pytest.approx(expected, rel=1e-5)
    assert np.isnan(compactness(layer(Polygon()))).tolist() == [True]


@pytest.mark.parametrize(("turn", "expected"), [(0, 0), (30, 30), (90, 90), (100, 80), (180, 0), (-10, 10)])
def test_orientation_is_the_angle_between_long_sides(turn, expected):
    long = box(0, 0, 9, 2)
    found = orientation_difference(layer(long), layer(affinity.rotate(long, turn)))
    assert found == pytest.approx([expected], abs=1e-6)


def test_a_square_has_no_orientation():
    square = affinity.rotate(box(0, 0, 2, 2), 20)
    found = orientation_difference(layer(square, box(0, 0, 3, 1), Polygon()), layer(*[box(0, 0, 3, 1)] * 3))
    assert np.isnan(found).tolist() == [True, False, True]
