"""Files of features: formats, layers, systems."""

from __future__ import annotations

import json
import zipfile

import geopandas as gpd
import pandas as pd
import pytest
import shapely

from geoeval.errors import ColumnError, CRSMismatch, CRSMissing, InputError
from geoeval.options import Columns, Source
from geoeval.readers.vector import read_table


def barns(crs="EPSG:25832"):
    shapes = [shapely.box(0, 0, 2, 2), shapely.box(5, 5, 7, 8)]
    return gpd.GeoDataFrame({"name": ["a", "b"], "year": [2016, 2017]}, geometry=shapes, crs=crs)


@pytest.mark.parametrize("ending", ["gpkg", "geojson", "shp", "fgb", "parquet"])
def test_formats_say_the_same(tmp_path, ending):
    path = tmp_path / f"barns.{ending}"
    barns().to_parquet(path) if ending == "parquet" else barns().to_file(path)
    table = read_table(Source(path, where="year = 2017"))
    assert table.geometry[0].area == 6.0
    assert table.frame["name"].tolist() == ["b"]
    # FlatGeobuf sorts features in space when it is written.
    assert table.row.tolist() == ([0] if ending == "fgb" else [1])
    assert table.crs.to_epsg() == 25832
    assert str(path) in table.inputs


def test_a_shapefile_is_several_files(tmp_path):
    barns().to_file(tmp_path / "barns.shp")
    endings = {name.rsplit(".", 1)[1] for name in read_table(Source(tmp_path / "barns.shp")).inputs}
    assert {"shp", "shx", "dbf", "prj"} <= endings


def test_a_zipped_shapefile_is_read(tmp_path):
    barns().to_file(tmp_path / "barns.shp")
    with zipfile.ZipFile(tmp_path / "barns.zip", "w") as archive:
        for path in tmp_path.glob("barns.*"):
            if path.suffix != ".zip":
                archive.write(path, f"inner/{path.name}")
    assert len(read_table(Source(tmp_path / "barns.zip"))) == 2


def test_an_archive_without_layer_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("readme.txt", "nothing")
    with pytest.raises(InputError, match=r"found readme\.txt"):
        read_table(Source(tmp_path / "a.zip"))


def test_several_layers_need_a_name(tmp_path):
    path = tmp_path / "a.gpkg"
    barns().to_file(path, layer="old")
    barns().iloc[:1].to_file(path, layer="new")
    with pytest.raises(InputError, match=r"2 layers \(old, new\)"):
        read_table(Source(path))
    assert len(read_table(Source(path, layer="new"))) == 1
    with pytest.raises(InputError, match="did you mean 'new'"):
        read_table(Source(path, layer="news"))


def test_a_file_that_is_no_layer_is_refused(tmp_path):
    for name, content in (("a.geojson", '{"type": "Feat'), ("a.gpkg", "nothing"), ("a.parquet", "x"), ("a.md", "# x")):
        (tmp_path / name).write_text(content)
        with pytest.raises(InputError, match=r"cannot be read|expected JSON"):
            read_table(Source(tmp_path / name))


def test_a_raster_is_refused_as_features(tmp_path):
    (tmp_path / "a.tif").write_text("x")
    with pytest.raises(InputError, match="raster"):
        read_table(Source(tmp_path / "a.tif"))


def test_a_declaration_never_overrules_a_file(tmp_path):
    barns().to_file(tmp_path / "a.gpkg")
    assert read_table(Source(tmp_path / "a.gpkg", crs="EPSG:25832")).crs.to_epsg() == 25832
    with pytest.raises(CRSMismatch, match=r"EPSG:4326.*EPSG:25832"):
        read_table(Source(tmp_path / "a.gpkg", crs="EPSG:4326"))
    with pytest.raises(CRSMismatch, match="pixel"):
        read_table(Source(tmp_path / "a.gpkg", crs="pixel"))


def test_a_missing_system_is_refused_unless_declared():
    frame = barns(crs=None)
    with pytest.raises(CRSMissing, match="GeoDataFrame"):
        read_table(Source(frame))
    assert read_table(Source(frame, crs="EPSG:32633")).crs.to_epsg() == 32633
    assert read_table(Source(frame, crs="pixel")).crs == "pixel"


def geojson(path, coordinates, crs=None):
    document = {
        "type": "FeatureCollection",
        "features": [
            {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [coordinates]}}
        ],
    }
    if crs:
        document["crs"] = {"type": "name", "properties": {"name": crs}}
    path.write_text(json.dumps(document))
    return path


def test_geojson_that_names_no_system_may_be_in_pixels(tmp_path):
    path = geojson(tmp_path / "a.geojson", [[0, 0], [900, 0], [900, 800], [0, 0]])
    assert read_table(Source(path, crs="pixel")).crs == "pixel"
    with pytest.raises(CRSMissing, match=r"expected degrees.*\(900, 800\)"):
        read_table(Source(path))


def test_geoparquet_without_system_is_longitude_and_latitude(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    about = {"version": "1.0.0", "primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB"}}}
    table = pa.table({"geometry": [shapely.Point(5, 50).wkb]}).replace_schema_metadata({"geo": json.dumps(about)})
    pq.write_table(table, tmp_path / "a.parquet")
    read = read_table(Source(tmp_path / "a.parquet"))
    assert read.crs.is_geographic
    assert "OGC:CRS84" in read.notes["crs"]


def test_an_open_ring_in_a_file_is_no_crash_and_no_warning(tmp_path):
    path = geojson(tmp_path / "a.geojson", [[0, 0], [1, 0], [1, 1], [0, 1]])
    table = read_table(Source(path))
    assert table.broken.tolist() == ["ring-not-closed"]
    assert [finding.code for finding in table.findings] == ["reader-remark"]


def test_an_empty_collection_has_no_features(tmp_path):
    (tmp_path / "a.geojson").write_text('{"type": "FeatureCollection", "features": []}')
    assert len(read_table(Source(tmp_path / "a.geojson"))) == 0


def test_a_filter_that_keeps_nothing_is_a_finding():
    table = read_table(Source(barns(), where="year = 1900"))
    assert len(table) == 0
    assert [finding.code for finding in table.findings] == ["filter-keeps-nothing"]
    with pytest.raises(ColumnError, match="did you mean 'year'"):
        read_table(Source(barns(), where="yaer = 1900"))


def test_the_fid_of_a_geopackage_can_be_the_id(tmp_path):
    barns().to_file(tmp_path / "a.gpkg")
    table = read_table(Source(tmp_path / "a.gpkg", columns=Columns(id="fid")))
    assert table.frame["fid"].tolist() == [1, 2]


def test_what_is_neither_path_nor_frame_is_refused():
    with pytest.raises(InputError, match="found int"):
        read_table(Source(3))
    assert read_table(Source(pd.DataFrame({"lon": [1], "lat": [2]}))).name == "DataFrame"


def test_two_columns_of_one_name_are_refused():
    frame = pd.DataFrame([[1, 2, 3, 4]], columns=["lon", "lat", "kind", "kind"])
    with pytest.raises(InputError, match="'kind' twice"):
        read_table(Source(frame))


def test_names_of_columns_are_texts():
    frame = gpd.GeoDataFrame({2016: [1]}, geometry=[shapely.Point(0, 0)], crs=25832)
    assert read_table(Source(frame, where='"2016" = 1')).frame.columns.tolist() == ["2016"]
