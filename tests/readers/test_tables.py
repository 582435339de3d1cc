"""Delimited text and frames: geometry by the names of columns, ids that stay what they are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import shapely

from geoeval.errors import CRSMissing, InputError
from geoeval.options import Columns, Source
from geoeval.readers.columns import as_dates, as_numbers, as_text
from geoeval.readers.tables import read_csv, shapes
from geoeval.readers.vector import read_table


def write(folder, name, text, encoding="utf-8"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(
    "text",
    [
        "xmin,ymin,xmax,ymax\n1,2,4,6\n",
        "image,xmin,xmax,ymin,ymax,label\na,1,4,2,6,0\n",
        "ymax,xmax,ymin,xmin\n6,4,2,1\n",
        "x,y,width,height\n1,2,3,4\n",
        "left,top,width,height\n1,2,3,4\n",
        "left,top,right,bottom\n1,2,4,6\n",
        "x1,y1,x2,y2\n1,2,4,6\n",
        "XMIN;YMIN;XMAX;YMAX\n1;2;4;6\n",
        "minx\tminy\tmaxx\tmaxy\n1\t2\t4\t6\n",
    ],
)
def test_boxes_are_read_by_name_whatever_their_order(tmp_path, text):
    """The box from (1, 2) to (4, 6) in nine ways to write it."""
    table = read_table(Source(write(tmp_path, "a.csv", text), crs="pixel"))
    assert table.geometry[0].bounds == (1.0, 2.0, 4.0, 6.0)


def test_a_box_that_ends_before_it_begins_is_refused():
    frame = pd.DataFrame({"xmin": [0, 5], "ymin": [0, 0], "xmax": [2, 1], "ymax": [2, 2]})
    with pytest.raises(InputError, match=r"xmin, ymin, xmax, ymax.*\(5, 0, 1, 2\) in feature 1"):
        shapes(frame, "a.csv")


def test_a_box_without_a_number_is_refused_and_one_without_value_has_no_geometry():
    with pytest.raises(InputError, match=r"column 'xmin'.*found 'left' in feature 1"):
        shapes(pd.DataFrame({"xmin": ["1", "left"], "ymin": [0, 0], "xmax": [2, 2], "ymax": [2, 2]}), "a.csv")
    found = shapes(pd.DataFrame({"xmin": [1, np.nan], "ymin": [0, 0], "xmax": [2, 2], "ymax": [2, 2]}), "a.csv")
    assert found.geometry[1] is None


def test_longitude_and_latitude_name_their_system(tmp_path):
    table = read_table(Source(write(tmp_path, "a.csv", "Longitude,Latitude\n5,50\n")))
    assert table.crs.to_epsg() == 4326
    assert "guessed" in table.notes["crs"]


@pytest.mark.parametrize("names", ["x,y", "easting,northing", "Northing,Easting"])
def test_other_coordinates_need_a_declared_system(tmp_path, names):
    path = write(tmp_path, "a.csv", f"{names}\n5,50\n")
    with pytest.raises(CRSMissing, match=r"a\.csv.*declare it"):
        read_table(Source(path))
    table = read_table(Source(path, crs="EPSG:25832"))
    assert table.geometry[0].x == (50 if names.startswith("N") else 5)


@pytest.mark.parametrize("name", ["wkt", "WKT_Pix", "geometry", "geom"])
def test_wkt_columns_are_found(tmp_path, name):
    table = read_table(Source(write(tmp_path, "a.csv", f'id,{name}\n1,"LINESTRING (0 0, 3 4)"\n2,\n'), crs="pixel"))
    assert table.geometry[0].length == 5.0
    assert table.geometry[1] is None
    assert list(table.frame.columns) == ["id"]


def test_wkt_that_is_none_is_refused_with_its_feature(tmp_path):
    path = write(tmp_path, "a.csv", 'wkt\n"POINT (1 1)"\n"nonsense"\n')
    with pytest.raises(InputError, match=r"column 'wkt'.*'nonsense' in feature 1"):
        read_table(Source(path, crs="pixel"))


def test_an_open_ring_is_kept_and_named(tmp_path):
    path = write(tmp_path, "a.csv", 'wkt\n"POLYGON ((0 0, 1 0, 1 1, 0 1))"\n"POLYGON ((0 0, 1 0))"\n')
    table = read_table(Source(path, crs="pixel"))
    assert table.broken.tolist() == ["ring-not-closed", "too-few-points"]
    assert table.geometry[0].area == 1.0


def test_ids_keep_their_zeros(tmp_path):
    frame, _ = read_csv(write(tmp_path, "a.csv", "id,my_key,n\n007,042,3\n"), Columns(id="my_key"))
    assert frame.iloc[0].tolist() == ["007", "042", 3]


def test_latin1_is_read_with_a_finding(tmp_path):
    table = read_table(Source(write(tmp_path, "a.csv", "name,lon,lat\nMünchen,11,48\n", "latin-1")))
    assert table.frame["name"][0] == "München"
    assert [finding.code for finding in table.findings] == ["encoding-not-utf8"]


def test_rows_longer_than_the_header_are_refused(tmp_path):
    with pytest.raises(InputError, match="expected rows and columns"):
        read_csv(write(tmp_path, "a.csv", "a,b\n1,2,3\n4,5,6\n"))


def test_binary_content_is_no_table(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"\x00\x01\x02")
    with pytest.raises(InputError, match="binary"):
        read_csv(path)


def test_a_table_without_geometry_is_still_a_table(tmp_path):
    table = read_table(Source(write(tmp_path, "a.csv", "idx,year\n3,2011\n")))
    assert table.geometry is None
    assert table.crs is None


def test_shapely_objects_in_a_frame_are_taken_as_they_are():
    frame = pd.DataFrame({"geometry": [shapely.Point(1, 2), None]})
    assert shapes(frame, "frame").geometry[0].x == 1.0


def test_text_of_numbers_dates_and_flags():
    assert as_text(pd.Series([1, 2])).tolist() == ["1", "2"]
    assert as_text(pd.Series([0.5, 1.0])).tolist() == ["0.5", "1.0"]
    assert as_text(pd.Series(["1.0", "12.0", None])).tolist() == ["1", "12", None]
    assert as_text(pd.to_datetime(pd.Series(["2017-06-11", None]))).tolist() == ["2017-06-11", None]
    assert as_text(pd.Series([True, False])).tolist() == ["True", "False"]
    assert as_numbers(pd.to_datetime(pd.Series(["2017-06-11"]))) is None


def test_dates_are_years_or_days():
    assert as_dates(pd.Series(["2011", "2013"]), "a")[1] == "year"
    days, unit = as_dates(pd.Series([20170611, 20170612]), "a")
    assert unit == "d"
    assert days[1] - days[0] == 1
    assert as_dates(pd.Series(["2017-6-11"]), "a")[0][0] == days[0]
    assert as_dates(pd.to_datetime(pd.Series(["2017-06-11T10:00"])), "a")[0][0] == days[0]
    with pytest.raises(InputError, match="'June' in feature 1"):
        as_dates(pd.Series(["2017-06-11", "June"]), "a")
