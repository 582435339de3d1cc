"""Layers for a GIS: every object once, on its side, with its outcome; equal rows give equal bytes."""

from __future__ import annotations

import time

import numpy as np
import pyogrio
import pytest
import shapely

from geoeval.errors import BundleError
from geoeval.evidence.raw import failure_gallery
from geoeval.evidence.tables import case_tables
from geoeval.model import Records
from geoeval.report.layers import features, layer_bytes, same_features

RUN = "run-0123456789abcdef0123"


def box(x, size=1.0):
    return shapely.box(x, 0, x + size, 1)


def records(similarity=0.5):
    """Reference boxes at 0 (hit) and 10 (missed), predictions at 0.5 (hit), 20 (invented) and 30 (ignored)."""
    ours, theirs = np.empty(4, dtype=object), np.empty(4, dtype=object)
    ours[:] = [box(0), box(10), None, None]
    theirs[:] = [box(0.5), None, box(20), shapely.MultiPolygon([box(30), box(32)])]
    return Records.of(
        4,
        unit="a",
        outcome=["tp", "fn", "fp", "ignored"],
        error_type=["", "missed", "background", ""],
        reference_id=["r1", "r2", "", ""],
        prediction_id=["p1", "", "p2", "p3"],
        reference_label=["house", "shed", "", ""],
        similarity=[similarity, np.nan, np.nan, np.nan],
        score=[0.75, np.nan, 0.25, 0.125],
        cluster="c",
        strata=[(("region", "north"),)] * 4,
        geometry=np.array([box(0.5), box(10), box(20), None], dtype=object),
        reference_geometry=ours,
        prediction_geometry=theirs,
    )


def parts(table):
    return case_tables(table), failure_gallery("houses", "footprint", table)


def written(path, table, crs="EPSG:32633"):
    path.write_bytes(layer_bytes(RUN, "houses", *parts(table), crs))
    return path


def test_every_object_stands_once_on_its_side():
    sides = features(*parts(records()))
    assert [(row.outcome, row.id, row.partner) for row in sides["reference"]] == [("fn", "r2", ""), ("tp", "r1", "p1")]
    assert [(row.outcome, row.id, row.partner) for row in sides["prediction"]] == [
        ("fp", "p2", ""),
        ("ignored", "p3", ""),
        ("tp", "p1", "r1"),
    ]
    hit, miss = sides["reference"][1], sides["reference"][0]
    assert (hit.similarity, hit.score, hit.cluster, hit.strata) == (0.5, 0.75, "c", {"region": "north"})
    assert (miss.error_type, miss.label, miss.similarity) == ("missed", "shed", None)


def test_either_side_keeps_its_own_shape(tmp_path):
    path = written(tmp_path / "a.gpkg", records())
    frame = pyogrio.read_dataframe(path, layer="reference").set_index("id")
    assert frame.geometry["r1"].equals(box(0))
    assert frame.crs.to_epsg() == 32633
    frame = pyogrio.read_dataframe(path, layer="prediction").set_index("id")
    assert frame.geometry["p1"].equals(box(0.5))
    assert frame.loc["p1", "by_region"] == "north"
    assert np.isnan(frame.loc["p2", "similarity"])


def test_two_writes_at_different_times_are_equal_to_the_last_byte():
    first = layer_bytes(RUN, "houses", *parts(records()), "EPSG:32633")
    time.sleep(1.1)
    shuffled = records().take(np.array([2, 0, 3, 1]))
    assert layer_bytes(RUN, "houses", *parts(shuffled), "EPSG:32633") == first
    assert RUN.encode() in first


def test_the_date_of_gdal_is_put_back():
    layer_bytes(RUN, "houses", *parts(records()), None)
    assert pyogrio.get_gdal_config_option("OGR_CURRENT_DATE") is None


def test_image_coordinates_have_no_system(tmp_path):
    path = written(tmp_path / "a.gpkg", records(), crs=None)
    assert pyogrio.read_info(path, layer="reference")["crs"] in (None, "")


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([shapely.Point(0, 0)], "Point"),
        ([shapely.LineString([(0, 0), (1, 1)])], "MultiLineString"),
        ([shapely.box(0, 0, 1, 1)], "MultiPolygon"),
        ([shapely.box(0, 0, 1, 1), shapely.Point(0, 0)], "Unknown"),
    ],
)
def test_a_layer_has_the_type_of_its_shapes(tmp_path, shapes, expected):
    table = Records.of(
        len(shapes), unit="a", outcome="fn", reference_id=[str(i) for i in range(len(shapes))], geometry=shapes
    )
    path = written(tmp_path / "a.gpkg", table)
    assert pyogrio.list_layers(path).tolist() == [["reference", expected]]


def test_same_features_compares_what_is_inside(tmp_path):
    one = written(tmp_path / "a.gpkg", records())
    assert same_features(one, written(tmp_path / "b.gpkg", records()))
    assert not same_features(one, written(tmp_path / "c.gpkg", records(similarity=0.6)))
    assert not same_features(one, written(tmp_path / "d.gpkg", records().take(np.array([0, 2]))))
    assert not same_features(one, written(tmp_path / "e.gpkg", records(), crs="EPSG:32634"))
    assert not same_features(one, written(tmp_path / "f.gpkg", records().take(np.array([1]))))


def test_without_a_shape_there_is_no_layer():
    with pytest.raises(BundleError, match="houses: no feature has a geometry"):
        layer_bytes(RUN, "houses", *parts(Records()), None)
