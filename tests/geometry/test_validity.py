"""Reasons and repairs of geometries, each small enough to draw."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

from geoeval.geometry.validity import REASONS, reasons, repair, slivers

BOW = "POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))"


def layer(*shapes):
    out = np.empty(len(shapes), dtype=object)
    out[:] = [shapely.from_wkt(shape) if isinstance(shape, str) else shape for shape in shapes]
    return out


@pytest.mark.parametrize(
    ("wkt", "reason"),
    [
        ("POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))", ""),
        ("LINESTRING (0 0, 1 1)", ""),
        ("POINT (0 0)", ""),
        (BOW, "self-intersection"),
        ("POLYGON ((0 0, 2 0, 2 2, 4 2, 4 0, 6 0, 6 4, 2 2, 0 4, 0 0))", "ring-self-intersection"),
        ("POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (5 5, 6 5, 6 6, 5 5))", "hole-outside-shell"),
        ("POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 5 1, 5 5, 1 5, 1 1), (2 2, 3 2, 3 3, 2 2))", "nested-holes"),
        ("MULTIPOLYGON (((0 0, 9 0, 9 9, 0 9, 0 0)), ((1 1, 2 1, 2 2, 1 1)))", "nested-shell"),
        ("MULTIPOLYGON (((0 0, 9 0, 9 9, 0 0)), ((9 9, 0 0, 9 0, 9 9)))", "duplicate-ring"),
        ("POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 2 1, 2 2, 1 1), (2 2, 1 1, 2 1, 2 2))", "duplicate-ring"),
        ("POLYGON ((0 0, 5 0, 5 5, 0 5, 0 0), (0 0, 2.5 5, 5 0, 2.5 4, 0 0))", "disconnected-interior"),
        ("LINESTRING (1 1, 1 1)", "too-few-points"),
        ("POLYGON ((0 0, 1 0, 2 0, 0 0))", "zero-area"),
        ("POLYGON ((0 0, 1 0, 0 0, 0 0))", "zero-area"),
        ("POLYGON EMPTY", "empty"),
        ("MULTIPOINT EMPTY", "empty"),
    ],
)
def test_each_defect_has_its_word(wkt, reason):
    assert reasons(layer(wkt)).tolist() == [reason]
    assert reason in ("", *REASONS)


def test_a_bow_tie_whose_lobes_cancel_is_not_without_area():
    assert layer(BOW)[0].area == 0
    assert reasons(layer(BOW)).tolist() == ["self-intersection"]


def test_null_and_coordinates_that_are_no_numbers():
    with np.errstate(invalid="ignore"):
        ring = shapely.polygons([[0, 0], [1, 0], [1, np.inf], [0, 0]])
    shapes = layer(None, shapely.Point(np.nan, 1), shapely.Point(np.inf, 1), ring)
    assert reasons(shapes).tolist() == ["null", *["invalid-coordinate"] * 3]
    assert not slivers(shapes).any()
    mended = repair(shapes)
    assert mended[0] is None
    assert shapely.is_empty(mended[1:]).all()


def test_no_features_no_reasons():
    assert reasons(layer()).tolist() == []
    assert repair(layer()).tolist() == []
    assert slivers(layer()).tolist() == []


def test_a_bow_tie_becomes_its_two_lobes():
    (mended,) = repair(layer(BOW))
    assert mended.geom_type == "MultiPolygon"
    assert mended.area == pytest.approx(2.0)
    assert reasons(layer(mended)).tolist() == [""]


def test_a_spike_goes_and_the_polygon_stays():
    """The square has a whisker from (2, 4) to (2, 5): a line, which is not of its dimension."""
    (mended,) = repair(layer("POLYGON ((0 0, 4 0, 4 4, 2 4, 2 5, 2 4, 0 4, 0 0))"))
    assert mended.geom_type == "Polygon"
    assert mended.area == 16


def test_what_encloses_nothing_is_repaired_to_nothing():
    mended = repair(layer("POLYGON ((0 0, 1 0, 2 0, 0 0))", "LINESTRING (1 1, 1 1)"))
    assert shapely.is_empty(mended).all()
    assert shapely.get_dimensions(mended).tolist() == [2, 1]


def test_valid_shapes_come_back_as_they_are_and_the_input_is_left_alone():
    shapes = layer("POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))", BOW, "POINT (1 1)")
    mended = repair(shapes)
    assert mended[0] is shapes[0]
    assert mended[2] is shapes[2]
    assert not shapes[1].is_valid


def test_a_mixed_collection_keeps_its_highest_dimension():
    (mended,) = repair(layer("GEOMETRYCOLLECTION (POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0)), POINT (1 1))"))
    assert mended.geom_type == "MultiPolygon"
    assert mended.area == pytest.approx(2.0)


def test_slivers_are_narrow_polygons_only():
    shapes = layer(
        shapely.box(0, 0, 10, 10), shapely.box(0, 0, 70, 1), shapely.box(0, 0, 50, 1), "LINESTRING (0 0, 9 0)", None
    )
    assert slivers(shapes).tolist() == [False, True, False, False, False]


@pytest.mark.shared
def test_real_footprints_of_two_annotators_are_valid(shared_data):
    import geopandas

    for name in ("matt-labels", "seamus-labels"):
        shapes = geopandas.read_file(shared_data / "ramp_two_annotators" / f"{name}.geojson").geometry.to_numpy()
        assert set(reasons(shapes)) == {""}
