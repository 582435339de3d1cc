"""Sample points against a map and against a second interpreter."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import rasterio
from rasterio.transform import Affine

from geoeval.errors import ColumnError, CRSMismatch, InputError
from geoeval.options import Columns, Pairing, Source
from geoeval.readers.points import labelled_points

UTM = "EPSG:32633"
NONE = Pairing(cluster="none")


def write(path, values, crs=UTM, nodata=None, cell=10.0, origin=(500_000.0, 5_000_000.0)):
    place = Affine(cell, 0, origin[0], 0, -cell, origin[1])
    options = {"height": values.shape[0], "width": values.shape[1], "dtype": values.dtype, "crs": crs, "nodata": nodata}
    with rasterio.open(path, "w", driver="GTiff", count=1, transform=place, **options) as dataset:
        dataset.write(values, 1)
    return str(path)


def table(cells, labels, **more):
    """Points at the centres of cells (row, column) of the map above."""
    x = [500_005.0 + 10 * column for _, column in cells]
    y = [4_999_995.0 - 10 * row for row, _ in cells]
    return pd.DataFrame({"x": x, "y": y, "label": labels, **more})


def read(reference, prediction, pairing=NONE, **columns):
    found = labelled_points(Source(reference, crs=UTM, columns=Columns(**columns)), Source(prediction), pairing)
    return found, found.units[0].load()


def test_points_take_the_class_of_their_cell(tmp_path):
    values = np.arange(12, dtype=np.int16).reshape(3, 4)
    _, points = read(table([(0, 0), (2, 3), (1, 2)], ["0", "11", "9"]), write(tmp_path / "map.tif", values))
    assert sorted(zip(points.reference, points.prediction, strict=True)) == [("0", "0"), ("11", "11"), ("9", "6")]


def test_points_outside_or_on_nodata_are_counted_and_not_compared(tmp_path):
    """One beyond the edge, one on nodata, one inside."""
    values = np.array([[1, 0]], dtype=np.uint8)
    _, points = read(table([(0, 0), (0, 1), (0, 5)], ["1", "1", "1"]), write(tmp_path / "map.tif", values, nodata=0))
    assert points.outside == 2
    assert sorted(points.prediction, key=str) == ["1", None, None]


def test_codes_get_the_names_that_a_recode_gives(tmp_path):
    path = write(tmp_path / "map.tif", np.array([[1, 2]], dtype=np.uint8))
    found = labelled_points(
        Source(table([(0, 0), (0, 1)], ["water", "land"]), crs=UTM),
        Source(path, recode={"1": "water", "2": "land"}),
        Pairing(cluster="none", design="stratified"),
    )
    points = found.units[0].load()
    assert points.prediction.tolist() == points.reference.tolist()
    assert points.mapped == {"water": 1, "land": 1}
    assert points.unit_area == 100.0


def test_sizes_are_counted_only_where_a_design_asks_for_them(tmp_path):
    values = np.array([[1, 1, 2], [0, 2, 2]], dtype=np.uint8)
    path = write(tmp_path / "map.tif", values, nodata=0)
    assert read(table([(0, 0)], ["1"]), path)[1].mapped == {}
    assert read(table([(0, 0)], ["1"]), path, Pairing(cluster="none", design="stratified"))[1].mapped == {
        "1": 2,
        "2": 3,
    }


def test_sizes_on_geographic_grids_are_true_areas(tmp_path):
    path = write(tmp_path / "map.tif", np.array([[1], [2]], dtype=np.uint8), "EPSG:4326", cell=1.0, origin=(10.0, 61.0))
    frame = pd.DataFrame({"lon": [10.5], "lat": [60.5], "label": ["1"]})
    found = labelled_points(Source(frame), Source(path), Pairing(cluster="none", design="post_stratified"))
    points = found.units[0].load()
    area = {name: size * points.unit_area for name, size in points.mapped.items()}
    assert area["2"] / area["1"] == pytest.approx(np.cos(np.radians(59.5)) / np.cos(np.radians(60.5)), rel=1e-3)
    assert area["1"] == pytest.approx(6.12e9, rel=0.01)


def test_points_in_another_system_are_moved_to_the_map(tmp_path):
    path = write(tmp_path / "map.tif", np.arange(9, dtype=np.uint8).reshape(3, 3))
    import shapely
    from pyproj import CRS

    from geoeval.geometry.crs import transform

    moved = transform(np.array([shapely.Point(500_025.0, 4_999_985.0)], dtype=object), CRS(UTM), CRS("EPSG:4326"))
    frame = pd.DataFrame({"lon": shapely.get_x(moved), "lat": shapely.get_y(moved), "label": ["x"]})
    points = labelled_points(Source(frame), Source(path), NONE).units[0].load()
    assert points.prediction.tolist() == ["5"]


def test_one_of_each_duplicate_is_kept_whatever_the_order():
    frame = table([(0, 0), (0, 0), (1, 1)], ["b", "a", "c"])
    for given in (frame, frame[::-1].reset_index(drop=True)):
        found = two(given, given.assign(label="z").drop_duplicates(["x", "y"]))
        points = found.units[0].load()
        assert points.reference.tolist().count("a") == 1
        assert "b" not in points.reference.tolist()
        first = found.findings[0]
        assert (first.code, first.severity) == ("duplicate-point", "major")
        assert first.says == "1 rows of 3 repeat a point; one of each is kept, though at 1 of them the labels differ"


def two(reference, prediction, **options):
    ids = Columns(id=options.get("id"))
    return labelled_points(
        Source(reference, crs=UTM, columns=ids), Source(prediction, crs=UTM, columns=ids), options.get("pairing", NONE)
    )


def test_two_tables_join_by_place_or_by_id():
    a = table([(0, 0), (1, 1), (2, 2)], ["a", "b", "c"], plot=["1", "2", "3"])
    b = table([(1, 1), (0, 0), (9, 9)], ["b", "x", "y"], plot=["2", "1", "7"])
    found = two(a, b)
    points = found.units[0].load()
    assert dict(zip(points.reference, points.prediction, strict=True)) == {"a": "x", "b": "b", "c": None}
    assert found.findings[0].says == (
        "joined by coordinates: 1 reference points have no partner, and 1 of the prediction are left over"
    )
    shifted = b.assign(x=b.x + 3.0)
    assert two(a, shifted, id="plot").units[0].load().prediction.tolist() == ["x", "b", None]
    with pytest.raises(InputError, match="expected points in common by coordinates, found none"):
        two(a, shifted)


def test_strata_and_clusters_come_from_columns_and_rasters(tmp_path):
    path = write(tmp_path / "map.tif", np.ones((2, 2), dtype=np.uint8))
    zones = write(tmp_path / "zones.tif", np.array([[5, 6], [7, 8]], dtype=np.uint8))
    frame = table([(0, 0), (1, 1)], ["1", "1"], aoi=["n", "s"], slope=[3.0, 30.0])
    pairing = Pairing(by=("slope:10", f"zone={zones}"))
    found, points = read(frame, path, pairing)
    assert points.cluster.tolist() == ["n", "s"] or points.cluster.tolist() == ["s", "n"]
    assert found.notes["clusters"] == "column 'aoi'"
    assert sorted(points.strata["zone"]) == ["5", "8"]
    assert len(set(points.strata["slope"])) == 2
    blank = frame.assign(aoi=["n", None])
    with pytest.raises(InputError, match="1 points have no aoi"):
        read(blank, path, Pairing(cluster="aoi"))


def test_strata_that_are_not_map_classes_need_their_sizes(tmp_path):
    path = write(tmp_path / "map.tif", np.array([[1, 2], [2, 2]], dtype=np.uint8))
    old = write(tmp_path / "old.tif", np.array([[7, 7], [8, 9]], dtype=np.uint8))
    frame = table([(0, 0), (1, 0)], ["1", "2"], zone=["7", "8"])
    found, points = read(frame, path, Pairing(cluster="none", design="stratified"), stratum="zone")
    assert points.mapped == {}
    assert found.findings[-1].code == "stratum-sizes-missing"
    pairing = Pairing(cluster="none", design="stratified", by=(f"zone={old}",))
    _, points = read(frame, path, pairing, stratum="zone")
    assert points.mapped == {"7": 2, "8": 1, "9": 1}
    assert sorted(points.stratum) == ["7", "8"]


def test_points_without_coordinates_labels_or_system_are_refused(tmp_path):
    path = write(tmp_path / "map.tif", np.ones((2, 2), dtype=np.uint8))
    with pytest.raises(InputError, match="found no coordinates"):
        read(pd.DataFrame({"label": ["a"]}), path)
    with pytest.raises(ColumnError, match="expected a column of labels"):
        read(pd.DataFrame({"x": [1.0], "y": [2.0], "height": [0.25]}), path)
    with pytest.raises(CRSMismatch, match="the other is in pixels"):
        labelled_points(Source(table([(0, 0)], ["1"]), crs="pixel"), Source(path), NONE)


def test_only_points_inside_the_area_of_interest_count(tmp_path):
    import geopandas as gpd
    from shapely.geometry import box

    area = tmp_path / "aoi.gpkg"
    gpd.GeoDataFrame(geometry=[box(500_000, 4_999_980, 500_010, 5_000_000)], crs=UTM).to_file(area)
    path = write(tmp_path / "map.tif", np.ones((2, 2), dtype=np.uint8))
    _, points = read(table([(0, 0), (0, 1)], ["1", "1"]), path, Pairing(cluster="none", aoi=str(area)))
    assert len(points.id) == 1


def test_large_maps_are_sampled_tile_by_tile(tmp_path):
    generator = np.random.default_rng(4)
    values = generator.integers(0, 200, (1500, 2100), dtype=np.uint8)
    path = write(tmp_path / "map.tif", values)
    cells = list(zip(generator.integers(0, 1500, 300).tolist(), generator.integers(0, 2100, 300).tolist(), strict=True))
    cells = sorted(set(cells))
    _, points = read(table(cells, [str(values[cell]) for cell in cells]), path)
    assert points.prediction.tolist() == points.reference.tolist()


@pytest.mark.shared
def test_two_raters_of_a_dirty_survey(shared_data):
    """Duplicates 1 and 11, one empty label; the counts are those that its description gives."""
    folder = shared_data / "sudan_crop_two_raters"
    found = labelled_points(
        Source(str(folder / "rater_set2.csv")), Source(str(folder / "rater_set1.csv")), Pairing(cluster="none")
    )
    points = found.units[0].load()
    both = pd.crosstab(pd.Series(points.prediction), pd.Series(points.reference))
    assert both.loc[["Crop", "Non-crop"], ["Crop", "Non-crop"]].to_numpy().tolist() == [[374, 95], [65, 661]]
    said = [finding.says for finding in found.findings]
    assert "11 rows of 1207 repeat a point; one of each is kept" in said
    assert "1 rows of 1197 repeat a point; one of each is kept" in said
    assert "1 points have no label and are not compared" in said
