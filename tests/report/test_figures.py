"""Figures: round ticks, marks where they belong, and text that depends on nothing but the data."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from geoeval.report.figures import MARGIN, WIDTH, Scale, axis, drawing, px, scale_of, strip, view_of

UNIT = Scale(0.0, 1.0, (0.0, 0.5, 1.0))


def marks(svg, kind):
    return [node for node in ET.fromstring(svg).iter() if kind in node.get("class", "").split()]


def test_a_scale_spans_the_strip():
    assert (UNIT.x(0.0), UNIT.x(0.5), UNIT.x(1.0)) == (px(MARGIN), px(WIDTH / 2), px(WIDTH - MARGIN))


def test_what_lies_outside_stands_at_the_edge():
    assert (UNIT.x(-3.0), UNIT.x(7.0)) == (UNIT.x(0.0), UNIT.x(1.0))


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0.0, 1.0], (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        ([-10.0, 30.0], (-10.0, 0.0, 10.0, 20.0, 30.0)),
        ([None, float("nan"), 0.82, 0.97], (0.85, 0.9, 0.95)),
    ],
)
def test_ticks_are_round(values, ticks):
    assert scale_of(values, share=values == [0.0, 1.0]).ticks == ticks


@given(st.lists(st.floats(-1e9, 1e9), max_size=5), st.booleans())
def test_any_values_have_a_scale_with_ticks_inside(values, share):
    scale = scale_of([abs(value) % 1 for value in values] if share else values, share=share)
    assert scale.low < scale.high
    assert len(scale.ticks) <= 8
    assert all(scale.low - 1e-9 <= tick <= scale.high + 1e-9 for tick in scale.ticks) or not scale.ticks


def test_a_strip_shows_value_interval_and_the_forbidden_side():
    svg = strip(UNIT, 0.5, 0.25, 0.75, limit=0.4, at_least=True, tone="pass")
    assert marks(svg, "dot")[0].get("cx") == UNIT.x(0.5)
    assert f"M{UNIT.x(0.25)} " in marks(svg, "whisker")[0].get("d")
    assert marks(svg, "forbidden")[0].get("x") == "0"
    assert float(marks(svg, "forbidden")[0].get("width")) == float(UNIT.x(0.4))
    svg = strip(UNIT, 0.5, limit=0.4, at_least=False)
    assert marks(svg, "forbidden")[0].get("x") == UNIT.x(0.4)
    assert marks(svg, "whisker") == []


def test_failing_is_told_by_shape_and_not_by_colour_alone():
    assert marks(strip(UNIT, 0.5, tone="fail"), "dot")[0].tag == "rect"
    assert marks(strip(UNIT, 0.5, tone="pass"), "dot")[0].tag == "circle"


def test_an_undefined_value_has_no_dot():
    assert marks(strip(UNIT, None, overall=0.5), "dot") == []


def test_an_axis_names_its_ticks():
    texts = [node.text for node in ET.fromstring(axis(Scale(-1.0, 1.0, (-1.0, 0.0, 1.0)))).iter("text")]
    assert texts == ["−1", "0", "1"]


def test_shapes_are_drawn_in_the_window_with_y_up_on_maps_and_down_in_images():
    square = shapely.box(0, 0, 10, 10)
    view = view_of(square)
    assert (view.box, view.at(0, 0)) == ((-5.0, -5.0, 15.0, 15.0), (33.0, 99.0))
    assert view_of(square, up=False).at(0, 0) == (33.0, 33.0)
    svg = drawing(view, [("reference", [square])], "m", "a square")
    assert marks(svg, "reference")[0].get("d").startswith("M99 99L99 33L33 33L33 99")
    assert ET.fromstring(svg).get("aria-label") == "a square"


def test_every_kind_of_shape_can_be_drawn():
    shapes = [
        shapely.Point(1, 1),
        shapely.MultiPoint([(1, 1), (2, 2)]),
        shapely.LineString([(0, 0), (5, 5)]),
        shapely.box(0, 0, 4, 4).difference(shapely.box(1, 1, 2, 2)),
        shapely.GeometryCollection([shapely.Point(0, 0), shapely.MultiPolygon([shapely.box(0, 0, 1, 1)])]),
        shapely.Polygon(),
    ]
    svg = drawing(view_of(shapely.box(0, 0, 10, 10)), [("prediction", shapes)], "px", "all")
    assert len(marks(svg, "prediction")) == 6
    assert [node.get("d").count("Z") for node in marks(svg, "prediction")] == [0, 0, 0, 2, 1, 0]
    assert all("line" in node.get("class") for node in marks(svg, "prediction") if "Z" not in node.get("d"))


def test_a_shape_of_many_vertices_stays_small():
    angle = np.linspace(0, 2 * np.pi, 20_001)[:-1]
    radius = 50 + 3 * np.sin(40 * angle)
    ring = shapely.Polygon(np.c_[radius * np.cos(angle), radius * np.sin(angle)])
    assert len(drawing(view_of(ring), [("reference", [ring])], "m", "a coast")) < 6000


def test_text_from_data_is_escaped():
    svg = drawing(view_of(shapely.Point(0, 0)), [], '"<m>', '<script>"')
    assert "<script>" not in svg
    assert ET.fromstring(svg).get("aria-label") == '<script>"'
