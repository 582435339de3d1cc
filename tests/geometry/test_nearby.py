"""Pairs within a distance: the limit counts, order does not, and every geometry type takes part."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from geoeval.geometry.nearby import pairs_within

places = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=15)


def points(*xy):
    return shapely.points(np.array(xy, dtype=float).reshape(-1, 2))


def test_a_pair_at_the_limit_is_within_it():
    """3-4-5: exactly 5 away. The other is 5.000001 away."""
    i, j, distance = pairs_within(points((0, 0)), points((3, 4), (3, 4.0000013)), 5.0)
    assert (i.tolist(), j.tolist(), distance.tolist()) == ([0], [0], [5.0])


@pytest.mark.parametrize("k", range(20))
def test_rounding_of_utm_coordinates_pushes_no_pair_over_the_limit(k):
    """Coordinates with centimetres cannot be held exactly near 5,400,000; the pair is 5 m apart all the same."""
    y = 5_402_210.01 + 0.07 * k
    i, _, distance = pairs_within(points((512_034.13, y)), points((512_037.13, round(y + 4.0, 2))), 5.0)
    assert len(i) == 1
    assert distance[0] <= 5.0


def test_pairs_are_sorted_by_both_positions():
    i, j, distance = pairs_within(points((1, 0), (0, 0)), points((2, 0), (0, 0), (1, 0)), 1.0)
    assert list(zip(i, j, distance, strict=True)) == [(0, 0, 1), (0, 1, 1), (0, 2, 0), (1, 1, 0), (1, 2, 1)]


@settings(max_examples=50, deadline=None)
@given(left=places, right=places, limit=st.integers(0, 6))
def test_agrees_with_every_pair_measured(left, right, limit):
    i, j, distance = pairs_within(points(*left), points(*right), limit)
    expected = [
        (m, n, round(float(np.hypot(a - c, b - d)), 9))
        for m, (a, b) in enumerate(left)
        for n, (c, d) in enumerate(right)
        if (a - c) ** 2 + (b - d) ** 2 <= limit**2
    ]
    assert list(zip(i, j, distance, strict=True)) == expected


def test_any_geometry_type_takes_part():
    """A line passes 1 beside the square, a point lies in it, an empty one and None are nowhere."""
    left = np.array([shapely.box(0, 0, 2, 2), shapely.Point(), None], dtype=object)
    right = np.array([shapely.LineString([(3, -9), (3, 9)]), shapely.Point(1, 1), shapely.Point(9, 9)], dtype=object)
    i, j, distance = pairs_within(left, right, 1.0)
    assert list(zip(i, j, distance, strict=True)) == [(0, 0, 1.0), (0, 1, 0.0)]


def test_empty_sides_have_no_pairs():
    for left, right in [(points(), points()), (points((0, 0)), points()), (points(), points((0, 0)))]:
        assert [len(part) for part in pairs_within(left, right, 1.0)] == [0, 0, 0]


@pytest.mark.parametrize("limit", [-1.0, float("nan"), float("inf")])
def test_a_distance_that_is_none_is_refused(limit):
    with pytest.raises(ValueError, match="max_distance must be a finite number of at least 0"):
        pairs_within(points(), points(), limit)
