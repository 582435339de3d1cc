"""Overlap areas against GEOS, against squares that can be counted, and under every change that must not matter."""

from __future__ import annotations

import math

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely import affinity
from shapely.geometry import MultiPolygon, Polygon, box

from geoeval.errors import InputError
from geoeval.geometry import overlap
from geoeval.geometry.overlap import areas, dissolved_areas, overlaps, self_overlaps

UTM = (512_034.1, 5_402_210.8)


def layer(*geometries):
    out = np.empty(len(geometries), dtype=object)
    out[:] = geometries
    return out


def polygonal(geometry):
    """The polygons of a valid geometry as one multipolygon."""
    parts = shapely.get_parts(shapely.make_valid(geometry))
    return MultiPolygon([part for part in parts if part.geom_type == "Polygon"])


@st.composite
def block_polygons(draw):
    """Unions of boxes with small whole coordinates, less other boxes: shared walls, holes, several parts."""
    side = st.integers(0, 7)

    def boxes(most):
        corners = draw(st.lists(st.tuples(side, side, st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=most))
        return shapely.union_all([box(x, y, x + w, y + h) for x, y, w, h in corners])

    return polygonal(boxes(5) - boxes(3))


@st.composite
def star_polygons(draw):
    """Star-shaped rings, down to slivers, half of them with a hole."""
    n = draw(st.integers(3, 25))
    radius = draw(st.lists(st.floats(0.05, 4.0), min_size=n, max_size=n))
    flat = draw(st.sampled_from([1.0, 1.0, 0.01, 1e-4]))
    x, y = draw(st.floats(0, 6)), draw(st.floats(0, 6))
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    ring = np.column_stack([np.cos(angle) * radius, np.sin(angle) * radius * flat])
    turn = draw(st.floats(0, 3.1))
    ring = ring @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    holes = [ring * 0.5] if draw(st.booleans()) else []
    return polygonal(affinity.translate(Polygon(ring, holes), x, y))


polygons = st.one_of(block_polygons(), star_polygons())


def shared_by_geos(a, b):
    return shapely.area(shapely.intersection(a, b))


def total(found):
    return math.fsum(found.area)


@settings(max_examples=300, deadline=None)
@given(a=polygons, b=polygons)
def test_agrees_with_geos_near_the_origin(a, b):
    found = overlaps(layer(a), layer(b))
    extent = max(a.length, b.length, 1.0)
    assert found.remeasured == 0
    assert total(found) == pytest.approx(shared_by_geos(a, b), abs=1e-12 * max(a.area, b.area) + 2e-15 * extent**2)


@settings(max_examples=200, deadline=None)
@given(a=polygons, b=polygons)
def test_agrees_with_geos_in_utm_to_the_spacing_of_coordinates(a, b):
    a, b = (polygonal(affinity.translate(side, *UTM)) for side in (a, b))
    found = overlaps(layer(a), layer(b))
    assert total(found) == pytest.approx(shared_by_geos(a, b), abs=np.spacing(UTM[1]) * (a.length + b.length) + 1e-12)


@settings(max_examples=100, deadline=None)
@given(a=polygons, b=polygons, turn=st.floats(-180, 180), dx=st.floats(-1e4, 1e4), start=st.integers(0, 50))
def test_turning_moving_and_reversing_changes_nothing(a, b, turn, dx, start):
    def moved(geometry):
        return affinity.translate(affinity.rotate(geometry, turn, origin=(0, 0)), dx, -dx)

    def restarted(geometry):
        rings = [np.asarray(ring.coords)[:-1] for part in geometry.geoms for ring in [part.exterior, *part.interiors]]
        rings = iter(np.roll(ring, start, axis=0)[::-1] for ring in rings)
        return MultiPolygon(
            [Polygon(next(rings), [next(rings) for _ in part.interiors]) for part in geometry.geoms][::-1]
        )

    here = total(overlaps(layer(a), layer(b)))
    assert total(overlaps(layer(b), layer(a))) == pytest.approx(here, abs=1e-11)
    assert total(overlaps(layer(restarted(a)), layer(shapely.reverse(b)))) == pytest.approx(here, abs=1e-11)
    assert total(overlaps(layer(moved(a)), layer(moved(b)))) == pytest.approx(here, abs=1e-8)


@settings(max_examples=60, deadline=None)
@given(sides=st.tuples(*[st.lists(polygons, max_size=6)] * 2), seed=st.integers(0, 99))
def test_the_order_of_features_changes_no_bit(sides, seed):
    rng = np.random.default_rng(seed)
    left, right = (layer(*side) for side in sides)
    p, q = rng.permutation(len(left)), rng.permutation(len(right))
    found, other = overlaps(left, right), overlaps(left[p], right[q])
    table = sorted(zip(found.reference, found.prediction, found.area, found.iou, strict=True))
    assert table == sorted(zip(p[other.reference], q[other.prediction], other.area, other.iou, strict=True))
    assert dissolved_areas(left, right) == dissolved_areas(left[p], right[q])


def test_half_a_square():
    """Two 2 x 2 squares, one moved by 1: they share 2, cover 6, so the IoU is a third.

    +---+---+---+
    | A | AB| B |
    +---+---+---+
    """
    found = overlaps(layer(box(0, 0, 2, 2)), layer(box(1, 0, 3, 2)))
    assert found.area.tolist() == [2.0]
    assert found.iou.tolist() == [0.333333333]
    assert (found.reference_area.tolist(), found.prediction_area.tolist()) == ([4.0], [4.0])


@pytest.mark.parametrize("turn", [0.0, 17.0, 45.0])
@pytest.mark.parametrize("origin", [(0.0, 0.0), UTM])
@pytest.mark.parametrize("other", [box(2, 0, 4, 3), box(2, 3, 4, 5), box(-1, -3, 5, 0), box(2, 1, 3, 2)])
def test_polygons_that_only_touch_share_nothing(other, origin, turn):
    """Walls that touch whole, in part, or in a corner: shared area exactly 0, so they are no pair."""
    a, b = (affinity.translate(affinity.rotate(g, turn, origin=(0, 0)), *origin) for g in (box(0, 0, 2, 3), other))
    assert len(overlaps(layer(a), layer(b))) == 0


def test_a_hole_that_the_other_fills_exactly_shares_nothing():
    """A ring around a courtyard, and a building that is the courtyard."""
    ring = box(0, 0, 9, 9) - box(3, 3, 6, 6)
    assert len(overlaps(layer(ring), layer(box(3, 3, 6, 6)))) == 0
    assert overlaps(layer(ring), layer(box(2, 2, 7, 7))).area.tolist() == [16.0]


@pytest.mark.parametrize("origin", [(0.0, 0.0), UTM])
def test_a_layer_against_itself_is_all_ones(origin):
    shape = affinity.translate(box(0, 0, 9, 9) - box(3, 3, 6, 6), *origin)
    found = overlaps(layer(shape), layer(shapely.reverse(shape)))
    assert found.iou.tolist() == [1.0]
    assert found.area[0] <= shape.area


def test_parts_of_a_multipolygon_add_up():
    parts = MultiPolygon([box(0, 0, 1, 1), box(5, 0, 6, 1), box(9, 9, 10, 10)])
    assert overlaps(layer(parts), layer(box(0, 0, 6, 0.5))).area.tolist() == [1.0]


def test_one_huge_polygon_and_a_small_one():
    """A ring of 40,000 vertices around the origin, a unit square inside, one across its edge, one in no man's land."""
    angle = np.linspace(0, 2 * np.pi, 40_000, endpoint=False)
    huge = Polygon(np.column_stack([np.cos(angle), np.sin(angle)]) * 1e5)
    small = layer(box(0, 0, 1, 1), box(1e5 - 1, 0, 1e5 + 1, 1), box(9e4, 9e4, 9e4 + 1, 9e4 + 1))
    found = overlaps(layer(huge), small)
    assert found.prediction.tolist() == [0, 1]
    assert found.area == pytest.approx(shared_by_geos(huge, small[:2]), abs=1e-9)


def test_large_rings_are_swept_to_the_same_area():
    rng = np.random.default_rng(5)

    def blob(n, x):
        angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
        radius = 100 + 20 * np.sin(7 * angle) + rng.uniform(0, 5, n)
        return Polygon(np.column_stack([x + np.cos(angle) * radius, np.sin(angle) * radius]), [])

    a, b = blob(3000, 0), blob(2000, 30)
    assert total(overlaps(layer(a), layer(b))) == pytest.approx(shared_by_geos(a, b), rel=1e-13)


def test_min_iou_keeps_the_pair_that_is_equal_to_it():
    """A third, a half, and a pair whose boxes alone show that it cannot reach a third."""
    left = layer(box(0, 0, 2, 2), box(10, 0, 12, 1), box(20, 0, 30, 10))
    right = layer(box(1, 0, 3, 2), box(10, 0, 11, 1), box(20, 0, 21, 1))
    assert overlaps(left, right, 1 / 3).iou.tolist() == [0.333333333, 0.5]
    assert overlaps(left, right, 0.5).reference.tolist() == [1]
    assert overlaps(left, right).reference.tolist() == [0, 1, 2]


@settings(max_examples=50, deadline=None)
@given(sides=st.tuples(*[st.lists(polygons, max_size=6)] * 2), min_iou=st.floats(0, 1))
def test_the_upper_bound_drops_no_pair_that_reaches_min_iou(sides, min_iou):
    left, right = (layer(*side) for side in sides)
    whole, cut = overlaps(left, right), overlaps(left, right, min_iou)
    keep = whole.iou >= round(min_iou, 9)
    assert cut.reference.tolist() == whole.reference[keep].tolist()
    assert cut.area.tolist() == whole.area[keep].tolist()


@pytest.mark.parametrize("sides", [(0, 0), (0, 2), (2, 0)])
def test_an_empty_side_has_no_pairs(sides):
    left, right = (layer(*[box(0, 0, 1, 1)] * n) for n in sides)
    assert len(overlaps(left, right)) == 0
    assert dissolved_areas(left, right) == (float(sides[0] > 0), float(sides[1] > 0), 0.0, 1.0 if any(sides) else 0.0)


def test_empty_and_missing_geometries_overlap_nothing():
    found = overlaps(layer(Polygon(), None, box(0, 0, 1, 1)), layer(box(0, 0, 1, 1), MultiPolygon()))
    assert (found.reference.tolist(), found.prediction.tolist()) == ([2], [0])


def test_heights_are_left_out():
    assert overlaps(layer(Polygon([(0, 0, 5), (1, 0, 6), (1, 1, 7)])), layer(box(0, 0, 1, 1))).area.tolist() == [0.5]


def test_lines_are_refused_by_name():
    with pytest.raises(InputError, match=r"prediction: expected polygons; found LineString at position 1 \(1 in all\)"):
        overlaps(layer(box(0, 0, 1, 1)), layer(box(0, 0, 1, 1), shapely.LineString([(0, 0), (1, 1)])))


def test_a_percentage_is_refused():
    with pytest.raises(ValueError, match="got 50; is it a percentage"):
        overlaps(layer(), layer(), 50)


def test_an_impossible_area_is_measured_again_by_geos(monkeypatch):
    """The kernel is made to claim twice the area of a square; GEOS then has the word, and the result says so."""
    monkeypatch.setattr(overlap, "_kernel_areas", lambda left, right, i, j, frame: np.full(len(i), 8.0))
    found = overlaps(layer(box(0, 0, 2, 2)), layer(box(1, 0, 3, 2)))
    assert (found.area.tolist(), found.remeasured) == ([2.0], 1)


def test_many_pairs_in_threads_give_the_bits_of_one_thread(monkeypatch):
    rng = np.random.default_rng(3)
    x, y = rng.uniform(0, 200, (2, 3000))
    left = shapely.box(x, y, x + 3, y + 2)
    right = shapely.transform(left, lambda xy: xy @ np.array([[0.9, 0.1], [-0.1, 0.9]]))
    whole = overlaps(left, right)
    monkeypatch.setattr(overlap, "_SLICE", 100)
    assert overlaps(left, right).area.tobytes() == whole.area.tobytes()


def test_self_overlaps_name_each_pair_once():
    found = self_overlaps(layer(box(0, 0, 2, 2), box(1, 1, 3, 3), box(3, 1, 5, 3), box(1, 1, 2, 2)))
    assert list(zip(found.reference, found.prediction, found.area, strict=True)) == [(0, 1, 1), (0, 3, 1), (1, 3, 1)]


def test_dissolved_areas_count_what_is_covered_twice_once():
    """Two references share 1 x 2 of their 3 x 2; one prediction is their lower half, the other only touches.

    +---+---+---+
    | 1 |1+2| 2 |
    +---+---+---+
    """
    reference = layer(box(0, 0, 2, 2), box(1, 0, 3, 2))
    prediction = layer(box(0, 0, 3, 1), box(3, 0, 4, 2))
    assert dissolved_areas(reference, prediction) == (6.0, 5.0, 3.0, 8.0)


@settings(max_examples=60, deadline=None)
@given(sides=st.tuples(*[st.lists(polygons, max_size=5)] * 2))
def test_dissolved_areas_agree_with_the_union_of_everything(sides):
    a, b = (shapely.union_all(side) for side in sides)
    whole = (a.area, b.area, shared_by_geos(a, b), shapely.union(a, b).area)
    assert dissolved_areas(layer(*sides[0]), layer(*sides[1])) == pytest.approx(whole, abs=1e-9)


def test_areas_keep_order_and_give_0_to_what_has_none():
    assert areas(layer(box(0, 0, 2, 3), shapely.Point(0, 0), Polygon())).tolist() == [6.0, 0.0, 0.0]
    assert areas(layer()).shape == (0,)
