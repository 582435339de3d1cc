"""Odd but real input: what is not understood is refused or said, and never scored in silence."""

from __future__ import annotations

import contextlib
import sqlite3
import struct

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import rasterio
import shapely
from rasterio.transform import Affine

from geoeval.errors import ColumnError, ConfigError, InputError
from geoeval.evaluation import evaluate
from geoeval.evaluators.detection import Detection
from geoeval.evaluators.elevation import Elevation
from geoeval.evaluators.footprint import Footprint
from geoeval.evaluators.raster import Raster
from geoeval.evaluators.validation import Validation
from geoeval.options import Columns, Pairing, Source
from geoeval.readers.filters import matches
from geoeval.readers.inspect_file import inspect_file
from geoeval.readers.tables import read_csv
from geoeval.readers.units import object_units
from geoeval.readers.vector import read_table

CRS = "EPSG:32633"


def layer(n=3, shapes=None, **columns):
    boxes = [shapely.box(500_000 + 20 * i, 5_000_000, 500_010 + 20 * i, 5_000_010) for i in range(n)]
    return gpd.GeoDataFrame(columns, geometry=shapes or boxes, crs=CRS)


def codes(found):
    return [finding.code for finding in found]


def write_raster(path, values, **more):
    values = np.asarray(values)
    profile = {"driver": "GTiff", "height": values.shape[0], "width": values.shape[1], "count": 1, "crs": CRS}
    transform = more.pop("transform", Affine(10, 0, 500_000, 0, -10, 5_000_000))
    with rasterio.open(path, "w", dtype=values.dtype, transform=transform, **profile, **more) as out:
        out.write(values, 1)
    return str(path)


def units(reference, prediction, family="detection", **more):
    return object_units(Source(reference), Source(prediction), Pairing(**more), family=family)


@pytest.mark.parametrize("texts", [["0,9", "0,8", "0,7"], ["high", "low", "low"]])
def test_a_score_column_of_text_is_not_passed_over_in_silence(texts):
    found = units(layer(), layer(score=texts))
    (said,) = [finding for finding in found.findings if finding.code == "score-not-numeric"]
    assert (said.severity, repr(texts[0]) in said.says) == ("major", True)
    assert "score-not-numeric" not in codes(units(layer(), layer(score=texts), family="footprint").findings)


def test_numbers_with_a_decimal_comma_are_named_as_such(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("xmin;ymin;xmax;ymax\n0;0;10,5;10\n", encoding="utf-8")
    with pytest.raises(ColumnError, match=r"'10,5' in feature 0; write a decimal point, not a comma"):
        object_units(Source(path, crs="pixel"), Source(path, crs="pixel"), family="detection")


def test_a_csv_with_two_columns_of_one_name_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("xmin,ymin,xmax,ymax, xmin,,\n0,0,10,10,3,,\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"found 'xmin' twice; rename one"):
        read_csv(path)
    path.write_text("xmin,ymin,,\n0,0,,\n", encoding="utf-8")
    assert len(read_csv(path)[0]) == 1


def test_a_csv_whose_rows_are_longer_than_its_header_is_refused_in_plain_words(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("# made by a tool\nxmin,ymin\n0,0\n", encoding="utf-8")
    with pytest.raises(InputError, match="rows with more fields than the first line"):
        read_csv(path)


def test_kinds_and_labels_that_are_missing_or_differ_in_case_are_said():
    reference = layer(kind=["added", "removed", "removed"])
    found = units(reference, layer(kind=["Added", None, "removed"]), family="change")
    said = {finding.code: finding for finding in found.findings}
    assert said["kind-missing"].where == ("GeoDataFrame, feature 1",)
    assert said["kind-case-differs"].where == ("added", "Added")
    labels = units(layer(label=["car", "bus", "bus"]), layer(label=["Car", "bus", "bus"]))
    (differs,) = [finding for finding in labels.findings if finding.code == "label-case-differs"]
    assert differs.mend == "recode one side, for example --recode 'prediction:Car=car'"


def test_labels_on_one_side_only_are_noted():
    found = units(layer(label=["a", "b", "b"]), layer(score=[0.5, 0.6, 0.7]))
    assert found.notes["classes"] == "not compared (GeoDataFrame has no label column, GeoDataFrame has)"


def test_features_of_another_dimension_are_named():
    shapes = [shapely.box(0, 0, 1, 1), shapely.Point(0, 0), shapely.box(2, 0, 3, 1)]
    with pytest.raises(InputError, match=r"found 1 point, 2 polygons \(GeoDataFrame, feature 1\)"):
        units(layer(shapes=shapes, a=[1, 2, 3]), layer(a=[1, 2, 3]), family="vector")
    collection = shapely.GeometryCollection([shapely.box(0, 0, 1, 1), shapely.Point(0, 0)])
    with pytest.raises(InputError, match=r"found 1 collection \(GeoDataFrame, feature 0\)"):
        units(layer(shapes=[collection], a=[1]), layer(a=[1, 2, 3]), family="vector")


@pytest.mark.parametrize("text", ["size:a", "size:", "size:nan", "area:big"])
def test_edges_that_are_no_numbers_are_blamed_rather_than_the_column(text):
    with pytest.raises(ConfigError, match="expected rising numbers as edges"):
        units(layer(3, size=[1, 2, 3]), layer(3, size=[1, 2, 3]), family="footprint", by=(text,))


def test_a_unit_column_without_values_is_not_called_missing(tmp_path):
    both = {"xmin": [0, 0], "ymin": [0, 0], "xmax": [5, 5], "ymax": [5, 5]}
    one, two = pd.DataFrame({"image": ["a", "b"], **both}), pd.DataFrame({"image": [None, None], **both})
    with pytest.raises(ColumnError, match="column 'image' names 2 units, but in DataFrame it has no values"):
        object_units(Source(one, crs="pixel"), Source(two, crs="pixel"), family="detection")


def test_a_thousand_tiles_without_scores_are_one_finding():
    tiles = {"tile": ["a", "b", "c"]}
    found = evaluate(Detection(), layer(**tiles), layer(**tiles), pairing=Pairing(cluster="tile"))
    assert codes(found.evaluation.findings).count("no-scores") == 1


def test_a_filter_of_a_thousand_parentheses_is_refused():
    with pytest.raises(ConfigError, match="nested too deeply"):
        matches(pd.DataFrame({"a": [1]}), "(" * 5000 + "a = 1" + ")" * 5000)


@pytest.mark.parametrize("x", [[], [400_000.0]])
def test_checkpoints_that_are_none_or_all_outside_give_no_figures(tmp_path, x):
    dem = write_raster(tmp_path / "dem.tif", np.ones((3, 3), dtype=np.float32))
    points = gpd.GeoDataFrame({"z": [5.0] * len(x)}, geometry=gpd.points_from_xy(x, [5_000_000.0] * len(x)), crs=CRS)
    source = Source(points, unit="m", columns=Columns(value="z"))
    found = evaluate(Elevation(), source, Source(dem, unit="m"))
    assert (found["count"].value, found["rmse"].value, found["rmse"].reason) == (0, None, "no_support")
    assert ("no-overlap" in codes(found.evaluation.findings)) == bool(x)


def test_classes_that_are_coded_otherwise_on_each_side_are_said(tmp_path):
    one = write_raster(tmp_path / "one.tif", np.array([[1, 2], [2, 1]], dtype=np.uint8))
    ten = write_raster(tmp_path / "ten.tif", np.array([[10, 20], [20, 10]], dtype=np.uint8))
    assert codes(evaluate(Raster(), one, ten).evaluation.findings) == ["labels-disjoint"]
    assert codes(evaluate(Raster(), one, one).evaluation.findings) == []


def test_sample_points_may_be_none(tmp_path):
    one = write_raster(tmp_path / "one.tif", np.array([[1, 2], [2, 1]], dtype=np.uint8))
    points = gpd.GeoDataFrame({"label": []}, geometry=gpd.points_from_xy([], []), crs=CRS)
    found = evaluate(Raster(), points, one)
    assert (found["accuracy"].value, found["accuracy"].denominator) == (None, 0)


def test_codes_beyond_the_numbers_of_json_are_text(tmp_path):
    high = write_raster(tmp_path / "high.tif", np.array([[2**60, 2**60 + 1]], dtype=np.int64))
    confusion = evaluate(Raster(), high, high).evaluation.confusion
    assert confusion is not None
    assert confusion["codes"] == [str(2**60), str(2**60 + 1)]


def test_inspect_says_scale_offset_and_the_true_size_of_turned_cells(tmp_path):
    turned = Affine(8, -3, 500_000, -6, -4, 5_000_000)
    path = write_raster(tmp_path / "turned.tif", np.ones((3, 3), dtype=np.int16), transform=turned)
    with rasterio.open(path, "r+") as out:
        out.scales, out.offsets = (0.1,), (-100.0,)
    found = inspect_file(path)
    assert found["resolution"] == pytest.approx([10, 5])
    assert (found["bands"][0]["scale"], found["bands"][0]["offset"]) == (0.1, -100.0)


def test_a_colon_in_a_name_is_no_edge():
    """Half of the keys of OpenStreetMap have one."""
    streets = layer(4, **{"addr:street": ["a", "a", "b", "b"], "n:1": [1, 2, 3, 4]})
    found = evaluate(Footprint(), streets, streets, pairing=Pairing(by=("addr:street", "n:1:3"), cluster="none"))
    assert [one.by for one in found.evaluation.strata] == [
        {"addr:street": "a"},
        {"addr:street": "b"},
        {"n:1": "<3"},
        {"n:1": ">=3"},
    ]
    with pytest.raises(ConfigError, match="reads as a file or an edge; rename the column"):
        evaluate(Footprint(), streets, streets, pairing=Pairing(by=("n:1",)))


def test_curves_are_read_as_chords_and_said(tmp_path):
    """A circle of 5 m as GeoPackage keeps it: GDAL's chords enclose 0.1 % less."""
    path = tmp_path / "curve.gpkg"
    layer(1, a=[1]).to_file(path)
    at = [(500_000, 5), (500_005, 10), (500_010, 5), (500_005, 0), (500_000, 5)]
    arcs = struct.pack("<BIIBII", 1, 10, 1, 1, 8, len(at)) + b"".join(struct.pack("<dd", *point) for point in at)
    with contextlib.closing(sqlite3.connect(path)) as file:
        for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            file.execute(f'DROP TRIGGER "{name}"')
        file.execute("UPDATE curve SET geom = ?", (b"GP\x00\x01" + struct.pack("<i", 32633) + arcs,))
        file.execute("UPDATE gpkg_geometry_columns SET geometry_type_name = 'CURVEPOLYGON'")
        file.commit()
    table = read_table(Source(path))
    assert table.geometry is not None
    assert table.geometry[0].area == pytest.approx(25 * np.pi, rel=1e-3)
    assert "curves-straightened" in codes(table.findings)
    assert inspect_file(path)["layers"][0]["features"] == 1


def test_ids_of_findings_that_became_fractions_still_join(tmp_path):
    known, found = tmp_path / "known.csv", tmp_path / "found.csv"
    known.write_text("dataset,feature,code,severity\na,1,dup,major\na,2,null,major\n", encoding="utf-8")
    found.write_text("dataset,feature,code\na,1.0,dup\na,2.0,null\n", encoding="utf-8")
    assert evaluate(Validation(), str(known), str(found))["tp"].value == 2
