"""What ``inspect`` says about a file."""

from __future__ import annotations

import json

import geopandas as gpd
import numpy as np
import pytest
import shapely

from geoeval.errors import InputError
from geoeval.readers.inspect_file import inspect_file


def test_layers_columns_and_guesses(tmp_path):
    bow = shapely.from_wkt("POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))")
    frame = gpd.GeoDataFrame(
        {"label": ["a", None], "p": [0.5, 0.25]}, geometry=[shapely.box(0, 0, 1, 1), bow], crs=25832
    )
    frame.to_file(tmp_path / "a.gpkg", layer="one")
    frame.iloc[:1].to_file(tmp_path / "a.gpkg", layer="two")
    facts = inspect_file(tmp_path / "a.gpkg")
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    first, second = facts["layers"]
    assert (facts["kind"], facts["driver"], first["name"], second["features"]) == ("vector", "GPKG", "one", 1)
    assert first["crs"] == {"name": "EPSG:25832", "unit": "metre", "geographic": False}
    assert first["geometry_types"] == {"Polygon": 2}
    assert first["bounds"] == [0.0, 0.0, 2.0, 2.0]
    assert first["defects"] == {"self-intersection": 1}
    assert first["guesses"] == {"label": "label", "score": "p"}
    label = first["columns"][0]
    assert (label["name"], label["nulls"], label["distinct"], label["values"]) == ("label", 1, 1, ["a"])


def test_a_raster(tmp_path):
    import rasterio

    data = np.array([[1.5, -9999.0], [3.0, np.nan]], dtype="float32")
    profile = {"driver": "GTiff", "width": 2, "height": 2, "count": 1, "dtype": "float32", "nodata": -9999.0}
    with rasterio.open(
        tmp_path / "a.tif", "w", crs="EPSG:25832", transform=rasterio.Affine(10, 0, 0, 0, -10, 20), **profile
    ) as out:
        out.write(data, 1)
        out.set_band_unit(1, "m")
    facts = inspect_file(tmp_path / "a.tif")
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert facts["resolution"] == [10.0, 10.0]
    assert facts["bounds"] == [0.0, 0.0, 20.0, 20.0]
    (band,) = facts["bands"]
    assert (band["nodata"], band["unit"], band["glimpse"]["range"]) == (-9999.0, "m", [1.5, 3.0])


def test_what_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "a.tif").write_text("no raster")
    with pytest.raises(InputError, match="expected a raster"):
        inspect_file(tmp_path / "a.tif")
    with pytest.raises(InputError, match="no such file"):
        inspect_file(tmp_path / "b.tif")
    (tmp_path / "a.gpkg").write_text("no layer")
    with pytest.raises(InputError, match="cannot be read"):
        inspect_file(tmp_path / "a.gpkg")


@pytest.mark.shared
def test_every_real_file_is_described_or_refused(shared_data):
    """Never another error than InputError, and never for a file that its README calls readable."""
    refused = set()
    for path in sorted(shared_data.rglob("*")):
        if path.is_dir():
            continue
        try:
            json.dumps(inspect_file(path), allow_nan=False)
        except InputError:
            refused.add(path.name)
    broken = {"corrupt.tif", "latin1.shp", "latin1.dbf", "empty_zipfile.zip"}
    assert broken <= refused
    assert all(name.endswith(("md", "txt")) for name in refused - broken)
