"""Spatial blocks: their side, their names, and how they are declared."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoeval.errors import ConfigError, InputError
from geoeval.geometry.blocks import auto_side, block_names, parse_grid


@pytest.mark.parametrize(
    ("width", "height", "side"),
    [(1000, 1000, 100), (999, 999, 50), (3000, 3000, 200), (70, 70, 5), (0.3, 0.3, 0.02), (1e6, 1e4, 10_000)],
)
def test_the_side_is_a_tenth_rounded_down_to_one_two_five(width, height, side):
    assert auto_side((500_000, 4_000_000, 500_000 + width, 4_000_000 + height)) == pytest.approx(side, rel=1e-12)


def test_boxes_without_area_still_have_a_side():
    assert auto_side((0, 0, 1000, 0)) == 100.0
    assert auto_side((3, 3, 3, 3)) == 1.0
    assert auto_side((np.nan,) * 4) == 1.0


def test_bounds_in_the_wrong_order_are_refused():
    with pytest.raises(InputError, match="finite and ordered"):
        auto_side((10, 0, 0, 10))


@given(st.floats(1e-3, 1e7))
def test_there_are_a_hundred_blocks_or_a_few_times_more(width):
    side = auto_side((0, 0, width, width))
    assert side <= width / 10 * (1 + 1e-9)
    assert side * 2.5 > width / 10 * (1 - 1e-9)


def test_names_floor_towards_minus_infinity():
    assert block_names([-0.1, 0, 499.9, 500], [0, -500, 0, 1], 500).tolist() == ["x-1y0", "x0y-1", "x0y0", "x1y0"]
    assert block_names([], [], 500).tolist() == []


def test_a_point_on_an_edge_does_not_change_its_block_with_the_last_bit():
    assert block_names([500 - 1e-10, 500 + 1e-10], [0, 0], 500).tolist() == ["x1y0", "x1y0"]


def test_a_point_that_is_nowhere_is_refused():
    with pytest.raises(InputError, match="point 1"):
        block_names([0, np.nan], [0, 0], 500)
    with pytest.raises(ConfigError, match="above 0"):
        block_names([0], [0], 0)


@pytest.mark.parametrize(
    ("text", "unit", "side"),
    [
        ("grid:500m", "m", 500.0),
        ("500 m", "m", 500.0),
        ("grid:0.5km", "m", 500.0),
        ("grid:.5KM", "m", 500.0),
        ("64px", "px", 64.0),
        ("grid:auto", "m", None),
        ("auto", "px", None),
    ],
)
def test_grids_are_read(text, unit, side):
    assert parse_grid(text, unit) == side


@pytest.mark.parametrize(
    ("text", "unit", "says"),
    [
        ("grid:500", "m", "the unit is missing; write 'grid:500m'"),
        ("grid:500ft", "m", "unit 'ft' is not known"),
        ("grid:", "m", "cannot read 'grid:' as a grid"),
        ("grid:-5m", "m", "cannot read"),
        ("grid:1e3m", "m", "cannot read"),
        ("grid:0m", "m", "must be above 0"),
        ("grid:64px", "m", "is in px, but the coordinates are in m"),
        ("grid:500m", "px", "write 'grid:64px'"),
    ],
)
def test_what_is_no_grid_is_refused_with_an_example(text, unit, says):
    with pytest.raises(ConfigError, match=says):
        parse_grid(text, unit)
