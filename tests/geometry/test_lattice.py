"""Grids as arithmetic: lattices, shifts, index mapping, true areas, blocks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoeval.geometry.blocks import block_names
from geoeval.geometry.lattice import (
    Grid,
    cuts,
    difference,
    fit,
    inverse,
    metres_per_degree,
    nearest_index,
    pixel_map,
    row_areas,
    windows,
)

UTM = Grid((10.0, 0.0, 400_000.0, 0.0, -10.0, 5_000_000.0), 300, 200)


def moved(grid: Grid, columns: float, rows: float) -> Grid:
    a, b, c, d, e, f = grid.transform
    return Grid((a, b, c + a * columns, d, e, f + e * rows), grid.rows, grid.columns)


def test_a_grid_moved_by_whole_cells_shares_the_lattice():
    found = fit(UTM, moved(UTM, 7, -3))
    assert (found.same, found.column, found.row) == (True, -7, 3)


@pytest.mark.parametrize(("shift", "same"), [(0.0009, True), (-0.0009, True), (0.0011, False), (0.1, False)])
def test_the_tolerance_is_a_thousandth_of_a_pixel(shift, same):
    assert fit(UTM, moved(UTM, shift, 0)).same is same


def test_a_tiny_difference_in_degrees_is_a_tiny_difference_in_pixels():
    """1e-9 degrees of 1e-4 is 1e-5 of a pixel."""
    degrees = Grid((1e-4, 0.0, -97.76, 0.0, -1e-4, 30.1), 4000, 6000)
    a, b, c, d, e, f = degrees.transform
    assert fit(degrees, Grid((a, b, c + 1e-9, d, e, f), 4000, 6000)).same


def test_a_resolution_that_drifts_over_the_extent_is_another_lattice():
    """Each cell is 1e-4 larger: after 200 columns it lies 0.02 off."""
    wider = Grid((10.001, 0.0, 400_000.0, 0.0, -10.0, 5_000_000.0), 300, 200)
    assert not fit(UTM, wider).same
    assert difference(UTM, wider) == "shifted by (-0.019998, 0) pixels"


def test_the_shift_is_told_in_pixels():
    assert difference(UTM, moved(UTM, 0.25, -0.1)) == "shifted by (-0.25, 0.1) pixels"


def test_a_south_up_grid_is_no_lattice_of_a_north_up_one():
    flipped = Grid((10.0, 0.0, 400_000.0, 0.0, 10.0, 4_997_000.0), 300, 200)
    assert not fit(UTM, flipped).same
    assert "-1 prediction cells" in difference(UTM, flipped)


def test_rotated_grids_share_a_lattice_when_they_are_rotated_alike():
    turned = Grid((8.0, 6.0, 100.0, 6.0, -8.0, 200.0), 15, 10)
    x, y = turned.at(2, 3)
    found = fit(turned, Grid((8.0, 6.0, x, 6.0, -8.0, y), 15, 10))
    assert (found.same, found.column, found.row) == (True, -2, -3)
    assert not fit(UTM, turned).straight
    assert difference(UTM, turned) == "their rows do not run in the same direction"


def test_grids_that_share_nothing_are_still_compared():
    found = fit(UTM, moved(UTM, 1000, 0))
    assert (found.same, found.column) == (True, -1000)


@settings(deadline=None)
@given(
    c=st.integers(-50, 50),
    r=st.integers(-50, 50),
    turned=st.sampled_from([(10.0, 0.0, 0.0, -10.0), (3.0, 4.0, 4.0, -3.0), (2.0, 0.0, 0.0, 5.0)]),
)
def test_the_inverse_undoes_the_transform(c, r, turned):
    a, b, d, e = turned
    grid = Grid((a, b, 123.0, d, e, -77.0), 5, 5)
    ia, ib, ic, id_, ie, if_ = inverse(grid.transform)
    x, y = grid.at(c, r)
    assert (ia * x + ib * y + ic, id_ * x + ie * y + if_) == pytest.approx((c, r), abs=1e-9)


def test_a_transform_without_area_is_refused():
    with pytest.raises(ValueError, match="cells of some area"):
        inverse((0.0, 0.0, 1.0, 0.0, 0.0, 1.0))


def test_nearest_takes_the_cell_that_holds_the_centre():
    """Cells of 10 m over cells of 4 m: centres 5, 15, 25 lie in cells 1, 3, 6."""
    fine = Grid((4.0, 0.0, 0.0, 0.0, -4.0, 0.0), 10, 10)
    coarse = Grid((10.0, 0.0, 0.0, 0.0, -10.0, 0.0), 3, 3)
    a, _, c, *_ = pixel_map(coarse, fine)
    assert nearest_index(0, 3, a, c).tolist() == [1, 3, 6]
    assert nearest_index(1, 3, a, c).tolist() == [3, 6]


def test_true_areas_of_all_rows_are_the_area_of_the_ellipsoid():
    world = Grid((1.0, 0.0, -180.0, 0.0, -1.0, 90.0), 180, 360)
    assert 360 * math.fsum(row_areas(world)) == pytest.approx(510_065_621_724_088.44, rel=1e-12)


def test_a_cell_is_as_large_as_its_sides_say_where_cells_are_small():
    cell = Grid((1e-4, 0.0, -97.0, 0.0, -1e-4, 30.0), 1, 1)
    east, north = metres_per_degree(30.0)
    assert row_areas(cell)[0] == pytest.approx(east * north * 1e-8, rel=1e-5)


def test_true_areas_do_not_depend_on_which_way_is_up():
    down = Grid((1.0, 0.0, 0.0, 0.0, -1.0, 60.0), 3, 1)
    up = Grid((1.0, 0.0, 0.0, 0.0, 1.0, 57.0), 3, 1)
    assert row_areas(down) == pytest.approx(row_areas(up)[::-1])


@settings(deadline=None)
@given(
    count=st.integers(1, 60),
    origin=st.integers(-500, 500),
    step=st.sampled_from([10.0, -10.0, 3.0, -0.5]),
    side=st.sampled_from([1.0, 7.0, 50.0, 1000.0]),
)
def test_blocks_of_pixels_are_the_blocks_of_their_centres(count, origin, step, side):
    found = cuts(count, float(origin), step, side)
    assert [part[0] for part in found[1:]] == [part[1] for part in found[:-1]]
    assert (found[0][0], found[-1][1]) == (0, count)
    names = block_names(origin + (np.arange(count) + 0.5) * step, np.zeros(count), side)
    assert [f"x{block}y0" for start, stop, block in found for _ in range(start, stop)] == names.tolist()


@settings(deadline=None)
@given(rows=st.integers(1, 40), columns=st.integers(1, 40), height=st.integers(1, 20), width=st.integers(1, 20))
def test_windows_cover_every_cell_once(rows, columns, height, width):
    seen = np.zeros((rows, columns), dtype=int)
    for row, column, tall, wide in windows(rows, columns, height, width):
        seen[row : row + tall, column : column + wide] += 1
    assert (seen == 1).all()
