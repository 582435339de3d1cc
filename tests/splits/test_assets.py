"""Asset files: headers that cannot be true, labels that hold no numbers."""

from __future__ import annotations

import json
import struct
import zlib

import geopandas as gpd
import numpy as np
import pytest
import rasterio
import shapely
from affine import Affine
from PIL import Image

from geoeval.errors import InputError
from geoeval.splits.assets import image_frame
from geoeval.splits.label_files import read_label
from geoeval.splits.label_place import placed_labels
from geoeval.splits.labelsets import geometry_hash

SQUARE = [[0, 0], [1, 0], [1, 1], [0, 0]]


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def hollow_png(path, side, packed=b"\0"):
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    packed = zlib.compress(packed)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b""))
    return path


def tiff(path, side, *, dtype="uint8", count=1, fill=None, **more):
    profile = {"driver": "GTiff", "width": side, "height": side, "count": count, "dtype": dtype, "crs": "EPSG:32633"}
    with rasterio.open(path, "w", **profile, transform=Affine(2, 0, 0, 0, -2, 0), **more) as out:
        if fill is not None:
            for top in range(0, side, 512):
                rows = min(512, side - top)
                out.write(np.full((count, rows, side), fill, dtype=dtype), window=((top, top + rows), (0, side)))
    return path


def test_a_header_that_claims_more_than_its_bytes_can_hold_is_refused(tmp_path):
    path = hollow_png(tmp_path / "a.png", 11_000)
    size = path.stat().st_size
    assert size < 80
    with pytest.raises(InputError) as caught:
        image_frame(path, "record 'a': raw_image")
    assert str(caught.value) == (
        "record 'a': raw_image: 'a.png' claims 11000 x 11000 pixels in 1 bands, 121,000,000 values, from "
        f"{size} bytes, {121_000_000 // size:,} to 1; no picture packs to more than 2,000 to 1. Is the file whole?"
    )
    sparse = tiff(tmp_path / "sparse.tif", 8192, sparse_ok=True, tiled=True, compress="deflate")
    with pytest.raises(InputError, match=r"67,108,864 values, .*Is the file whole\?"):
        image_frame(sparse, "a")


def test_bytes_of_a_value_count(tmp_path):
    """2^24 values and a few are looked at; of 8 bytes they claim eight times as much as of one."""
    side = 4100
    path = tiff(tmp_path / "a.tif", side, dtype="float64", sparse_ok=True, blockysize=256)
    path.write_bytes(path.read_bytes() + bytes(side * side * 8 // 2000 - path.stat().st_size - 9))
    with pytest.raises(InputError, match=r"2,000 to 1\. Is the file whole"):
        image_frame(path, "a")
    path.write_bytes(path.read_bytes() + bytes(99))
    assert image_frame(path, "a").width == side


def test_even_images_that_are_whole_pass(tmp_path):
    """Deflate is the best packer of these formats' usual ones: about 1,000 to 1 for one value throughout."""
    assert image_frame(tiff(tmp_path / "a.tif", 5000, fill=7, compress="deflate", zlevel=9), "a").width == 5000
    Image.fromarray(np.full((5000, 5000), 7, dtype=np.uint8)).save(tmp_path / "a.png", compress_level=9)
    assert image_frame(tmp_path / "a.png", "a").width == 5000
    assert image_frame(hollow_png(tmp_path / "small.png", 4096), "a").width == 4096


def test_a_header_above_the_limit_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"1,600,000,000 values, .*at most 1,073,741,824 are decoded"):
        image_frame(tiff(tmp_path / "a.tif", 40_000, sparse_ok=True, tiled=True), "a")
    complex_ = tiff(tmp_path / "b.tif", 8, dtype="complex_int16")
    assert image_frame(complex_, "a").bands == 1


def test_a_tiff_of_several_pages_is_refused(tmp_path):
    """The second page would never be looked at."""
    pages = [Image.fromarray(np.full((8, 9), value, dtype=np.uint8)) for value in (1, 2, 3)]
    pages[0].save(tmp_path / "a.tif", save_all=True, append_images=pages[1:])
    with pytest.raises(InputError, match=r"record 'a': 'a.tif' holds 3 pictures, .*; give each picture a file"):
        image_frame(tmp_path / "a.tif", "record 'a'")


def test_overviews_and_masks_are_no_pages(tmp_path):
    path = tiff(tmp_path / "a.tif", 1024, fill=7, tiled=True)
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True), rasterio.open(path, "r+") as out:
        out.write_mask(np.eye(1024, dtype=bool))
        out.build_overviews([2, 4])
    assert image_frame(path, "a").width == 1024


def geojson(path, *geometries):
    features = [{"type": "Feature", "properties": {}, "geometry": one} for one in geometries]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


GOOD = {"type": "Polygon", "coordinates": [SQUARE]}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize(
    "shape",
    [
        lambda v: {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, v], [0, 0]]]},
        lambda v: {"type": "Polygon", "coordinates": [SQUARE, [[0.2, 0.1], [0.3, 0.1], [v, 0.2], [0.2, 0.1]]]},
        lambda v: {"type": "MultiPolygon", "coordinates": [[SQUARE], [[[2, 2], [3, 2], [3, v], [2, 2]]]]},
        lambda v: {"type": "LineString", "coordinates": [[0, 0], [v, 1]]},
        lambda v: {"type": "Point", "coordinates": [1, v]},
        lambda v: {"type": "GeometryCollection", "geometries": [GOOD, {"type": "Point", "coordinates": [v, 0]}]},
    ],
    ids=["shell", "hole", "part", "line", "point", "collection"],
)
def test_geojson_without_numbers_is_refused_by_record_and_position(tmp_path, shape, value):
    path = geojson(tmp_path / "l.geojson", GOOD, None, shape(value), GOOD, shape(value))
    with pytest.raises(InputError, match=r"^record 'a': label: 'l.geojson': feature 3 of 5 has a coordinate") as caught:
        read_label(path, "record 'a': label")
    assert "2 such features" in str(caught.value)


@pytest.mark.parametrize("ending", ["gpkg", "parquet", "fgb"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_other_formats_without_numbers_are_refused_too(tmp_path, ending, value):
    with np.errstate(invalid="ignore"):
        bad = shapely.linestrings([[0, 0], [1, 0], [1, value]])
    frame = gpd.GeoDataFrame({"n": [1, 2]}, geometry=[shapely.linestrings([[0, 0], [1, 1]]), bad], crs="EPSG:32633")
    path = tmp_path / f"l.{ending}"
    if ending == "parquet":
        frame.to_parquet(path)
    else:
        # An index of extents would choke on the coordinate before it is in the file.
        frame.to_file(path, SPATIAL_INDEX="NO")
    with pytest.raises(InputError, match="feature 2 of 2 has a coordinate that is no finite number"):
        read_label(path, "record 'a': label")


def test_heights_without_numbers_stay_allowed(tmp_path):
    path = tmp_path / "l.parquet"
    shapes = [shapely.box(0, 0, 1, 1), shapely.points([1, 2, np.nan]), shapely.Point(1e9, -1e300)]
    gpd.GeoDataFrame({"n": range(3)}, geometry=shapes, crs="EPSG:32633").to_parquet(path)
    found = read_label(path, "a")
    assert (len(found.shapes), found.crs, found.named) == (3, "EPSG:32633", True)
    assert found.geometry_hash == geometry_hash(shapes)


@pytest.mark.parametrize("place", [[None, 1], [1, None], [1, 2, None], ["1", 2], [[1, 2], 3]])
def test_geojson_coordinates_that_are_no_numbers_do_not_vanish(tmp_path, place):
    """Its reader gives out a missing or an empty geometry for them."""
    path = geojson(tmp_path / "l.geojson", GOOD, {"type": "Point", "coordinates": place})
    with pytest.raises(InputError, match=r"^a: .*feature 2 of 2 has a coordinate that is no finite number|cannot be"):
        read_label(path, "a")


def test_text_about_infinity_in_properties_is_no_coordinate(tmp_path):
    path = geojson(tmp_path / "l.geojson", GOOD)
    path.write_text(path.read_text().replace('"properties": {}', '"properties": {"n": NaN, "of": "Nancy, infinite"}'))
    assert len(read_label(path, "a").shapes) == 1


def coco(path, *annotations):
    data = {"images": [{"id": 1, "width": 9, "height": 9, "file_name": "a.tif"}], "categories": []}
    listed = [{"id": at, "image_id": 1, "category_id": 1, **one} for at, one in enumerate(annotations)]
    path.write_text(json.dumps({**data, "annotations": listed}))
    return path


def test_coco_labels_are_in_pixels(tmp_path):
    label = read_label(coco(tmp_path / "l.json", {"bbox": [1, 2, 3, 4]}), "a")
    assert (label.shapes[0].bounds, label.crs, label.named) == ((1, 2, 4, 6), "", True)
    assert placed_labels(label.shapes, label.crs, None).pixels[0] is label.shapes[0]


@pytest.mark.parametrize(
    ("one", "says"),
    [
        ({"bbox": [0, 0, float("nan"), 3]}, "annotation 2 of 2 has no box or outline of finite numbers"),
        ({"bbox": [0, 0, float("inf"), 3]}, "feature 2 of 2 has a coordinate"),
        ({"segmentation": [[0, 0, 1, 0, float("nan"), 1]]}, "feature 2 of 2 has a coordinate"),
        ({}, "annotation 2 of 2 has no box"),
    ],
)
def test_coco_without_numbers_is_refused(tmp_path, one, says):
    path = coco(tmp_path / "l.json", {"bbox": [1, 2, 3, 4]}, one)
    with pytest.raises(InputError, match=f"^record 'a': label: 'l.json': {says}"):
        read_label(path, "record 'a': label")
