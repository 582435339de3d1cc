"""Lengths within a distance, against walls that can be counted, buffers, and dense samples."""

from __future__ import annotations

import math

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely import affinity
from shapely.geometry import LineString, MultiLineString, MultiPolygon, Polygon, box

from geoeval.errors import InputError
from geoeval.geometry import boundary
from geoeval.geometry.boundary import boundary_length, boundary_within, lines_rms, lines_within

UTM = (512_034.1, 5_402_210.8)


def layer(*geometries):
    out = np.empty(len(geometries), dtype=object)
    out[:] = geometries
    return out


def within(a, b, distance):
    return float(boundary_within(layer(a), layer(b), distance)[0])


def sampled(line, others, distance, n=20_000):
    """Integral of squared distance over the part within ``distance``, and its length, from n samples a line."""
    at = (np.arange(n) + 0.5) / n * line.length
    apart = shapely.distance(shapely.line_interpolate_point(line, at), others)
    near = apart[apart <= distance]
    return float(np.sum(near**2)) * line.length / n, len(near) * line.length / n


@st.composite
def stars(draw):
    """Star-shaped rings, half of them with a hole."""
    n = draw(st.integers(3, 14))
    radius = np.array(draw(st.lists(st.floats(0.5, 4.0), min_size=n, max_size=n)))
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    ring = np.column_stack([np.cos(angle) * radius, np.sin(angle) * radius])
    centre = [draw(st.floats(0, 4)), draw(st.floats(0, 4))]
    return Polygon(ring + centre, [ring * 0.5 + centre] if draw(st.booleans()) else [])


@st.composite
def paths(draw):
    """Lines with corners on a small grid: parallel, crossing and coincident pieces are common."""
    corner = st.tuples(st.integers(0, 9), st.integers(0, 9))
    corners = draw(st.lists(corner, min_size=2, max_size=6).filter(lambda c: len(set(c)) > 1))
    return LineString(corners)


def test_walls_within_reach_of_a_moved_square():
    """A square of side 4 moved by 2, tolerance 1.

    +---+ . +---+   Of each side wall of A (the horizontal ones), 2 lie on B's walls and 1 more is within 1 of B's
    | A | : | B |   corners; of A's right wall, 1 at each end is within 1 of B's side walls: 2 * 3 + 2 = 8.
    +---+ . +---+
    """
    assert within(box(0, 0, 4, 4), box(2, 0, 6, 4), 1.0) == pytest.approx(8.0, abs=1e-7)


@pytest.mark.parametrize("origin", [(0.0, 0.0), UTM])
@pytest.mark.parametrize("turn", [0.0, 30.0, 77.0])
def test_a_wall_moved_by_exactly_the_tolerance_is_within_it(turn, origin):
    """Moved by 1 along x: all of it within 1 (the limit counts), and not within 0.999."""
    shape = box(0, 0, 4, 4) - box(1, 1, 2, 2)
    moved = affinity.translate(shape, 1.0, 0.0)
    a, b = (affinity.translate(affinity.rotate(g, turn, origin=(0, 0)), *origin) for g in (shape, moved))
    assert within(a, b, 1.0) == boundary_length(layer(a))[0]
    assert within(a, b, 0.999) < 19.0


@pytest.mark.parametrize("distance", [0.0, 0.5, 100.0])
@pytest.mark.parametrize("origin", [(0.0, 0.0), UTM])
def test_identical_boundaries_agree_wholly_whatever_the_direction(distance, origin):
    shape = affinity.translate(MultiPolygon([box(0, 0, 9, 9) - box(3, 3, 6, 6), box(20, 0, 21.1, 1.7)]), *origin)
    assert within(shape, shapely.reverse(shape), distance) == shape.length


def test_boundaries_that_cross_agree_nowhere_at_distance_0():
    assert within(box(0, 0, 4, 4), box(1, -1, 2, 5), 0.0) == pytest.approx(0.0, abs=1e-7)


def test_holes_are_boundary_on_both_sides():
    """A's courtyard (12 long) is B's outline: A's outline is 3 away. From B's side, everything is matched."""
    ring, court = box(0, 0, 9, 9) - box(3, 3, 6, 6), box(3, 3, 6, 6)
    assert within(ring, court, 1.0) == 12.0
    assert within(court, ring, 1.0) == 12.0


def test_nothing_is_near_a_boundary_far_away():
    assert within(box(0, 0, 1, 1), box(50, 50, 51, 51), 5.0) == 0.0
    assert within(box(49, 49, 51, 51), box(0, 0, 100, 100), 5.0) == 0.0


@settings(max_examples=100, deadline=None)
@given(a=stars(), b=stars(), distance=st.floats(0.05, 3.0))
def test_the_exact_length_lies_between_two_buffers(a, b, distance):
    """A buffer with flat facets is a little too small; one larger by the facets' sagitta is a little too large."""
    exact = within(a, b, distance)
    few = a.boundary.intersection(b.boundary.buffer(distance, quad_segs=64)).length
    many = a.boundary.intersection(b.boundary.buffer(distance / math.cos(math.pi / 256) + 1e-7, quad_segs=64)).length
    assert few - 1e-6 <= exact <= many + 1e-6


@settings(max_examples=40, deadline=None)
@given(a=stars(), b=stars(), distance=st.floats(0.05, 3.0), turn=st.floats(-180, 180), start=st.integers(0, 9))
def test_turning_moving_reversing_and_restarting_change_nothing(a, b, distance, turn, start):
    ring = np.roll(np.asarray(a.exterior.coords)[:-1], start, axis=0)
    restarted = Polygon(ring, a.interiors)
    here = within(a, b, distance)
    assert within(shapely.reverse(restarted), shapely.reverse(b), distance) == pytest.approx(here, abs=1e-6)
    a, b = (affinity.translate(affinity.rotate(g, turn, origin=(0, 0)), 1e4, -1e4) for g in (a, b))
    assert within(a, b, distance) == pytest.approx(here, abs=1e-4)


def test_large_rings_through_an_index_give_the_length_of_the_direct_way(monkeypatch):
    angle = np.linspace(0, 2 * np.pi, 300, endpoint=False)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    a, b = Polygon(ring * 50), Polygon(ring * (50 + 3 * np.sin(5 * angle))[:, None])
    small = box(0, 0, 1, 1)
    direct = boundary_within(layer(small, a, small), layer(small, b, a), 1.5)
    monkeypatch.setattr(boundary, "_BRUTE", 10_000)
    assert boundary_within(layer(small, a, small), layer(small, b, a), 1.5) == pytest.approx(direct, rel=1e-12)


def test_each_pair_is_measured_by_itself():
    rng = np.random.default_rng(2)
    a = layer(*[box(0, 0, *rng.uniform(1, 5, 2)) for _ in range(50)])
    b = layer(*[box(0, 0, *rng.uniform(1, 5, 2)) for _ in range(50)])
    order = rng.permutation(50)
    assert boundary_within(a[order], b[order], 0.7).tobytes() == boundary_within(a, b, 0.7)[order].tobytes()


def test_a_line_is_matched_by_any_of_the_others_once():
    """Two overlapping others cover 0 to 7 of a line of 10; with the half disc at the end, 7 + 1.

    ==========      line
    -----           others, 0.5 beside it
       ----
    """
    line = layer(LineString([(0, 0), (10, 0)]))
    others = layer(LineString([(0, 0.5), (5, 0.5)]), LineString([(3, -0.5), (7, -0.5)]))
    assert lines_within(line, others, 1.0)[0] == pytest.approx(7 + math.sqrt(0.75))
    assert lines_within(line, others, 0.5)[0] == pytest.approx(7.0, abs=1e-4)
    assert lines_within(line, others, 0.4)[0] == 0.0


def test_multilines_and_their_parts_are_the_same():
    parts = [LineString([(0, 0), (5, 1)]), LineString([(7, 7), (8, 3)])]
    others = layer(LineString([(0, 1), (9, 2)]), LineString([(9, 9), (8, 2)]))
    whole, halves = lines_rms(layer(MultiLineString(parts)), others, 1.5), lines_rms(layer(*parts), others, 1.5)
    assert (whole[0][0], whole[1][0]) == pytest.approx((halves[0].sum(), halves[1].sum()))
    joined = lines_rms(layer(*parts), layer(MultiLineString(list(others))), 1.5)
    assert [part.tobytes() for part in joined] == [part.tobytes() for part in halves]


def test_the_rms_distance_of_a_parallel_line_is_its_distance():
    """10 long, all of it 2 beside a longer line: the integral is 10 * 2**2."""
    squares, length = lines_rms(layer(LineString([(0, 2), (10, 2)])), layer(LineString([(-9, 0), (19, 0)])), 5.0)
    assert (squares[0], length[0]) == pytest.approx((40.0, 10.0))


def test_the_nearest_of_two_others_counts():
    """From one line at 0 to another at 4: the distance rises to 2 in the middle and falls again: 4 * (2**2 / 3)."""
    others = layer(LineString([(0, -9), (0, 9)]), LineString([(4, -9), (4, 9)]))
    squares, length = lines_rms(layer(LineString([(0, 0), (4, 0)])), others, 3.0)
    assert (squares[0], length[0]) == pytest.approx((16 / 3, 4.0))


@settings(max_examples=80, deadline=None)
@given(line=paths(), others=st.lists(paths(), min_size=1, max_size=6), distance=st.sampled_from([0.3, 0.9, 1.7, 4.2]))
def test_lengths_and_squares_agree_with_dense_samples(line, others, distance):
    squares, length = lines_rms(layer(line), layer(*others), distance)
    expected_squares, expected_length = sampled(line, shapely.union_all(others), distance)
    assert length[0] == pytest.approx(expected_length, abs=4e-3 * max(1.0, line.length))
    assert squares[0] == pytest.approx(expected_squares, abs=4e-3 * max(1.0, line.length) * (1 + distance**2))
    assert lines_within(layer(line), layer(*others), distance)[0] == length[0]
    assert squares[0] <= length[0] * distance**2 * (1 + 1e-6) + 1e-6


@settings(max_examples=40, deadline=None)
@given(lines=st.lists(paths(), max_size=6), others=st.lists(paths(), max_size=8), seed=st.integers(0, 99))
def test_the_order_of_lines_and_others_changes_no_bit(lines, others, seed):
    rng = np.random.default_rng(seed)
    p, q = rng.permutation(len(lines)), rng.permutation(len(others))
    squares, length = lines_rms(layer(*lines), layer(*others), 1.3)
    more_squares, more_length = lines_rms(layer(*lines)[p], layer(*others)[q], 1.3)
    assert (more_squares.tobytes(), more_length.tobytes()) == (squares[p].tobytes(), length[p].tobytes())


def test_chunks_and_threads_change_no_bit(monkeypatch):
    rng = np.random.default_rng(4)
    lines = layer(*[LineString(rng.uniform(0, 50, (20, 2))) for _ in range(40)])
    others = layer(*[LineString(rng.uniform(0, 50, (20, 2))) for _ in range(40)])
    whole = lines_rms(lines, others, 2.0)
    monkeypatch.setattr(boundary, "_CHUNK", 70)
    monkeypatch.setattr(boundary, "_SLICE", 16)
    assert [part.tobytes() for part in lines_rms(lines, others, 2.0)] == [part.tobytes() for part in whole]


@pytest.mark.parametrize("origin", [(0.0, 0.0), UTM])
def test_a_layer_of_lines_against_itself_is_matched_wholly_at_rms_0(origin):
    rng = np.random.default_rng(6)
    lines = layer(*[LineString(rng.uniform(0, 50, (9, 2)) + origin) for _ in range(9)])
    squares, length = lines_rms(lines, lines[::-1], 3.0)
    assert length.tolist() == boundary_length(lines).tolist()
    assert squares == pytest.approx(0.0, abs=1e-9)


def test_empty_sides_have_no_length():
    line = layer(LineString([(0, 0), (1, 0)]))
    assert lines_within(line, layer(), 1.0).tolist() == [0.0]
    assert [part.shape for part in lines_rms(layer(), line, 1.0)] == [(0,), (0,)]
    assert boundary_within(layer(), layer(), 1.0).shape == (0,)
    assert boundary_within(layer(Polygon()), layer(box(0, 0, 1, 1)), 1.0).tolist() == [0.0]
    assert lines_within(layer(LineString()), line, 1.0).tolist() == [0.0]


def test_a_line_that_repeats_a_vertex_is_measured_once():
    line = layer(LineString([(0, 0), (1, 0), (1, 0), (2, 0)]))
    others = layer(LineString([(0, 1), (0, 1), (2, 1)]))
    assert lines_within(line, others, 1.0).tolist() == [2.0]
    assert lines_rms(line, others, 1.0)[0] == pytest.approx([2.0])


def test_points_are_refused_by_name():
    with pytest.raises(InputError, match="expected polygons or lines; found Point"):
        lines_within(layer(shapely.Point(0, 0)), layer(), 1.0)


@pytest.mark.parametrize("distance", [-1.0, float("nan")])
def test_a_distance_below_0_is_refused(distance):
    with pytest.raises(ValueError, match="distance must be a finite number of at least 0"):
        boundary_within(layer(), layer(), distance)
