"""Which system to measure in, and the way there: degrees, feet, Web Mercator, the antimeridian."""

from __future__ import annotations

import math

import numpy as np
import pyproj
import pytest
import shapely

from geoeval.errors import ConfigError, CRSMissing, InputError
from geoeval.geometry.crs import describe, extent, horizontal, metric_crs, parse_crs, same_crs, transform

WGS84 = pyproj.CRS("EPSG:4326")
LOCAL = 'LOCAL_CS["somewhere",UNIT["metre",1]]'
NOWHERE = (math.nan,) * 4


def layer(*shapes):
    out = np.empty(len(shapes), dtype=object)
    out[:] = shapes
    return out


def codes(crs, bounds):
    target, findings = metric_crs(pyproj.CRS(crs), bounds)
    return describe(target), [(finding.code, finding.severity) for finding in findings]


def test_texts_of_every_kind_are_read():
    for given in ("EPSG:26918", 26918, pyproj.CRS(26918).to_wkt("WKT1_ESRI"), pyproj.CRS(26918)):
        assert describe(parse_crs(given)) == "EPSG:26918"


def test_what_names_no_place_is_refused():
    for given in (None, ""):
        with pytest.raises(CRSMissing, match="declare it"):
            parse_crs(given)
    with pytest.raises(CRSMissing, match="'somewhere'"):
        parse_crs(LOCAL)
    with pytest.raises(CRSMissing, match="says nothing about the place"):
        parse_crs("EPSG:5703")
    with pytest.raises(ConfigError, match="image coordinates"):
        parse_crs("pixel")
    with pytest.raises(ConfigError, match="cannot understand 'EPSG:99999999'"):
        parse_crs("EPSG:99999999")


def test_heights_and_bound_transformations_are_left_aside():
    assert describe(parse_crs("EPSG:26918+5703")) == "EPSG:26918"
    assert describe(parse_crs("EPSG:4979")) == "EPSG:4326"
    bound = pyproj.CRS("+proj=utm +zone=33 +ellps=bessel +towgs84=1,2,3 +type=crs")
    assert bound.is_bound
    assert not horizontal(bound).is_bound


def test_the_order_of_axes_makes_no_difference():
    assert same_crs(WGS84, pyproj.CRS("OGC:CRS84"))
    assert same_crs(pyproj.CRS("EPSG:26918"), pyproj.CRS(26918).to_wkt("WKT1_ESRI") and pyproj.CRS("EPSG:26918+5703"))
    assert not same_crs(WGS84, pyproj.CRS("EPSG:4269"))
    assert not same_crs(pyproj.CRS("EPSG:32633"), pyproj.CRS("EPSG:32634"))


def test_esri_wkt_is_the_same_system():
    assert same_crs(pyproj.CRS("EPSG:26918"), pyproj.CRS(pyproj.CRS(26918).to_wkt("WKT1_ESRI")))


def test_a_metric_projection_of_true_scale_is_kept_in_silence():
    assert codes("EPSG:26918", (400_000, 4_200_000, 500_000, 4_300_000)) == ("EPSG:26918", [])
    assert codes("EPSG:27700", (400_000, 200_000, 500_000, 300_000)) == ("EPSG:27700", [])
    assert codes("EPSG:3857", (-10_000, -10_000, 10_000, 10_000)) == ("EPSG:3857", [])


@pytest.mark.parametrize(
    ("crs", "bounds", "target"),
    [
        ("EPSG:4326", (13, 52, 13.5, 52.5), "EPSG:32633"),
        ("EPSG:4326", (13, -30, 13.5, -29), "EPSG:32733"),
        ("EPSG:4326", (179.5, -17, 180.5, -16), "EPSG:32701"),
        ("EPSG:4269", (-75.5, 38, -75, 39), "EPSG:26918"),
        ("EPSG:4326+5773", (5, 50, 6, 51), "EPSG:32631"),
        ("EPSG:4807", (1, 52, 2, 53), "EPSG:32631"),
    ],
)
def test_degrees_become_the_zone_of_their_extent_on_the_same_datum(crs, bounds, target):
    assert codes(crs, bounds) == (target, [("crs-local", "info")])


def test_wide_and_polar_extents_become_equal_area():
    for bounds in ((5, 84.2, 6, 84.6), (0, 50, 7, 51)):
        target, findings = metric_crs(WGS84, bounds)
        assert "azimuthal equal-area" in describe(target)
        assert target.axis_info[0].unit_name == "metre"
        assert findings[0].severity == "info"


def test_a_continent_says_how_far_its_lengths_are_off():
    _, (finding,) = metric_crs(WGS84, (-10, 35, 30, 60))
    assert finding.severity == "minor"
    assert "1.3%" in finding.says
    _, (finding,) = metric_crs(WGS84, (-180, -85, 180, 85))
    assert finding.severity == "major"


def test_web_mercator_far_north_is_left_with_a_finding():
    """At 52° N a metre of the map is 1 / 1.62 m."""
    target, (finding,) = metric_crs(pyproj.CRS("EPSG:3857"), (1.45e6, 6.8e6, 1.46e6, 6.81e6))
    assert describe(target) == "EPSG:32633"
    assert (finding.code, finding.severity) == ("crs-local", "minor")
    assert "62.7%" in finding.says


def test_where_no_local_projection_is_better_the_given_one_stays():
    target, (finding,) = metric_crs(pyproj.CRS("EPSG:5070"), (-2.3e6, 3e5, 2.2e6, 3.1e6))
    assert describe(target) == "EPSG:5070"
    assert finding.code == "crs-scale"


def test_feet_become_metres_in_the_same_projection():
    """The US survey foot is 1200/3937 m."""
    feet = pyproj.CRS("EPSG:2263")
    target, (finding,) = metric_crs(feet, (9.1e5, 1.2e5, 1.06e6, 2.7e5))
    assert (finding.code, finding.severity) == ("crs-units-converted", "info")
    assert "US survey foot" in finding.says
    (moved,) = transform(layer(shapely.box(980_000, 200_000, 981_000, 200_500)), feet, target)
    assert moved.area == pytest.approx(1000 * 500 * (1200 / 3937) ** 2, rel=1e-9)


def test_a_layer_without_features_has_a_system_too():
    assert metric_crs(WGS84, NOWHERE)[0].axis_info[0].unit_name == "metre"
    assert codes("EPSG:3857", NOWHERE) == ("EPSG:3857", [])


def test_swapped_coordinates_are_refused():
    with pytest.raises(InputError, match="are x and y swapped"):
        metric_crs(WGS84, (52, 113, 52.5, 113.5))


def test_areas_agree_with_the_ellipsoid():
    box = shapely.box(13.0, 52.0, 13.001, 52.001)
    target, _ = metric_crs(WGS84, box.bounds)
    (moved,) = transform(layer(box), WGS84, target)
    true, _ = pyproj.Geod(ellps="WGS84").geometry_area_perimeter(box)
    assert moved.area == pytest.approx(abs(true), rel=0.002)


def test_two_layers_on_either_side_of_the_antimeridian_share_narrow_bounds():
    west, east = layer(shapely.Point(179.5, -17)), layer(shapely.Point(-179.5, -16))
    assert extent(WGS84, west, east) == (179.5, -17.0, 180.5, -16.0)
    assert extent(WGS84, layer(shapely.Point(-1, 0), shapely.Point(2, 0))) == (-1.0, 0.0, 2.0, 0.0)
    assert all(math.isnan(value) for value in extent(WGS84, layer()))
    mercator = pyproj.CRS("EPSG:3857")
    x0, _, x1, _ = extent(mercator, transform(np.concatenate([west, east]), WGS84, mercator))
    assert x1 - x0 == pytest.approx(6378137 * math.pi / 180)


def test_a_polygon_across_the_antimeridian_has_its_true_area_however_it_is_written():
    """Half a degree on both sides of 180°: with a jump of sign, beyond 180°, and cut in two parts."""
    jump = shapely.Polygon([(179.5, -17), (-179.5, -17), (-179.5, -16), (179.5, -16)])
    beyond = shapely.box(179.5, -17, 180.5, -16)
    cut = shapely.MultiPolygon([shapely.box(179.5, -17, 180, -16), shapely.box(-180, -17, -179.5, -16)])
    plain = shapely.box(176.5, -17, 177.5, -16)
    shapes = layer(jump, beyond, cut)
    target, _ = metric_crs(WGS84, extent(WGS84, shapes))
    areas = [shape.area for shape in transform(shapes, WGS84, target)]
    there, _ = metric_crs(WGS84, plain.bounds)
    (other,) = transform(layer(plain), WGS84, there)
    assert areas == pytest.approx([areas[0]] * 3, rel=1e-4)
    assert areas[0] == pytest.approx(other.area, rel=0.004)


def test_a_polygon_wider_than_half_the_world_is_refused():
    with pytest.raises(InputError, match=r"feature 1: a part is 200.0° wide"):
        transform(layer(shapely.Point(0, 0), shapely.box(-100, 0, 100, 10)), WGS84, pyproj.CRS("EPSG:6933"))


def test_a_box_around_the_world_does_not_shrink_to_nothing():
    with pytest.raises(InputError, match=r"feature 0: a part is 360.0° wide"):
        transform(layer(shapely.box(-180, -80, 180, 80)), WGS84, pyproj.CRS("EPSG:6933"))


def test_a_country_with_islands_all_over_the_world_is_not():
    parts = [shapely.box(x, 0, x + 1, 1) for x in (-178, 2, 165)]
    (moved,) = transform(layer(shapely.MultiPolygon(parts)), WGS84, pyproj.CRS("EPSG:6933"))
    assert len(moved.geoms) == 3


def test_a_coordinate_without_a_place_names_its_feature():
    shapes = layer(shapely.Point(0, 0), None, shapely.Point(0, 95))
    with pytest.raises(InputError, match=r"feature 2: \(0, 95\) in EPSG:4326 has no place in EPSG:3395"):
        transform(shapes, WGS84, pyproj.CRS("EPSG:3395"))


def test_none_and_numbers_that_are_none_pass_for_the_validity_check_to_find():
    shapes = layer(None, shapely.Point(np.nan, 1), shapely.Point())
    moved = transform(shapes, WGS84, pyproj.CRS("EPSG:32633"))
    assert moved[0] is None
    assert moved[2].is_empty
    assert len(transform(layer(), WGS84, pyproj.CRS("EPSG:32633"))) == 0


def test_heights_are_dropped_and_the_input_is_left_alone():
    shapes = layer(shapely.Point(15, 0, 99))
    for target in (WGS84, pyproj.CRS("EPSG:32633")):
        (moved,) = transform(shapes, WGS84, target)
        assert not moved.has_z
    assert shapes[0].has_z


def test_there_and_back_is_where_one_was():
    rng = np.random.default_rng(5)
    points = shapely.points(rng.uniform([12, 48], [16, 54], (100, 2)))
    target, _ = metric_crs(WGS84, extent(WGS84, points))
    back = transform(transform(points, WGS84, target), target, WGS84)
    assert np.max(shapely.distance(points, back)) < 1e-9


@pytest.mark.shared
def test_barns_in_utm_and_in_degrees_lie_on_one_another(shared_data):
    import geopandas

    folder = shared_data / "poultry_delmarva"
    reference = geopandas.read_file(folder / "reference_test_barns.geojson")
    predictions = geopandas.read_file(folder / "predictions_manet.geojson")
    crs = parse_crs(reference.crs)
    assert metric_crs(crs, extent(crs, reference.geometry.to_numpy())) == (crs, [])
    moved = transform(predictions.geometry.to_numpy(), parse_crs(predictions.crs), crs)
    tree = shapely.STRtree(moved)
    found = np.unique(tree.query(reference.geometry.to_numpy(), predicate="intersects")[0])
    assert len(found) > 0.97 * len(reference)
