"""Heights: units and datums that are declared or refused, and rasters sampled at points."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import rasterio
from pyproj import CRS
from rasterio.transform import Affine

from geoeval.errors import ColumnError, CRSMismatch, CRSMissing, InputError, UnitMismatch
from geoeval.options import Columns, Pairing, Source
from geoeval.readers.height_sampling import sample_bilinear, sample_nearest
from geoeval.readers.heights import elevation_units, height_facts, vertical_axis
from geoeval.readers.raster_header import read_header

PLANE = np.arange(12, dtype=np.float32).reshape(3, 4)


def write_dem(path, heights=PLANE, crs="EPSG:32633", unit=None, nodata=-9999.0, transform=None, scale=None):
    heights = np.asarray(heights)
    profile = {
        "driver": "GTiff",
        "height": heights.shape[0],
        "width": heights.shape[1],
        "count": 1,
        "dtype": heights.dtype,
        "crs": crs,
        "transform": transform or Affine(10, 0, 500_000, 0, -10, 5_000_000),
        "nodata": nodata,
    }
    with rasterio.open(path, "w", **profile) as out:
        out.write(heights, 1)
        if unit:
            out.set_band_unit(1, unit)
        if scale:
            out.scales, out.offsets = (scale[0],), (scale[1],)
    return str(path)


def survey(x, y, z, **columns):
    return pd.DataFrame({"x": x, "y": y, "z": z, **columns})


def only(found):
    (unit,) = found.units
    return unit.load()


def test_a_horizontal_unit_is_no_evidence(tmp_path):
    dem = write_dem(tmp_path / "dem.tif", crs="EPSG:2263")
    with pytest.raises(UnitMismatch, match=r"dem\.tif: expected a unit of height, found none.*--unit m"):
        elevation_units(Source(dem), Source(dem), Pairing())


def test_units_come_from_the_declaration_the_band_or_the_vertical_axis(tmp_path):
    band = write_dem(tmp_path / "band.tif", unit="US survey foot")
    bare = write_dem(tmp_path / "bare.tif")
    for path, kwargs, wanted in (
        (band, {}, "us-ft (unit of the band)"),
        (bare, {"unit": "ft"}, "ft (declared)"),
    ):
        found = elevation_units(Source(path, **kwargs), Source(path, **kwargs), Pairing())
        assert found.notes["reference unit"] == wanted
    axis = height_facts(Source("a.tif"), "reference", "a.tif", None, CRS("EPSG:26918+6360").to_wkt())
    assert (axis.unit, axis.known_by) == ("us-ft", "vertical axis of its system")


def test_a_declaration_never_overrules_a_file(tmp_path):
    dem = write_dem(tmp_path / "dem.tif", unit="ft")
    with pytest.raises(UnitMismatch, match=r"unit = 'm' is declared, but the unit of the band says 'ft'"):
        elevation_units(Source(dem, unit="m"), Source(dem), Pairing())


def test_an_unknown_unit_is_refused_with_the_known_ones(tmp_path):
    dem = write_dem(tmp_path / "dem.tif", unit="kelvin")
    with pytest.raises(UnitMismatch, match=r"'kelvin' is no unit of height.*'us-ft'"):
        elevation_units(Source(dem), Source(dem), Pairing())


def test_feet_become_metres_and_it_is_said(tmp_path):
    feet = write_dem(tmp_path / "feet.tif", PLANE / np.float32(0.3048), unit="ft")
    metres = write_dem(tmp_path / "metres.tif", unit="m")
    found = elevation_units(Source(metres), Source(feet), Pairing())
    pair = only(found)
    (block, *_) = pair.blocks()
    assert pair.unit == "m"
    assert np.abs(block.prediction - block.reference).max() < 1e-5
    (finding,) = [f for f in found.findings if f.code == "unit-converted"]
    assert "multiplied by 0.3048" in finding.says
    assert finding.where == ("feet.tif",)


def test_known_datums_that_differ_are_refused_and_unknown_ones_reported(tmp_path):
    dem = write_dem(tmp_path / "dem.tif", unit="m")
    with pytest.raises(UnitMismatch, match=r"different datums: .*'NAVD88'.*'EGM96'"):
        elevation_units(Source(dem, vertical_datum="NAVD88"), Source(dem, vertical_datum="EGM96"), Pairing())
    codes = [f.code for f in elevation_units(Source(dem, vertical_datum="NAVD88"), Source(dem), Pairing()).findings]
    assert "vertical-datum-unknown" in codes
    same = elevation_units(
        Source(dem, vertical_datum="NAVD88 height"),
        Source(dem, vertical_datum="North American Vertical Datum 1988"),
        Pairing(),
    )
    assert "vertical-datum-unknown" not in [f.code for f in same.findings]


def test_a_declared_datum_that_contradicts_the_file_is_refused(tmp_path):
    dem = write_dem(tmp_path / "dem.tif", crs="EPSG:32633+5703")
    assert vertical_axis(read_header(Source(dem), dem, "reference").crs) == ("m", "North American Vertical Datum 1988")
    with pytest.raises(UnitMismatch, match="vertical_datum = 'EGM2008' is declared, but the file says"):
        elevation_units(Source(dem, vertical_datum="EGM2008"), Source(dem), Pairing())


def test_facts_fall_back_to_the_unit_of_the_pair():
    assert height_facts(Source("a.tif"), "reference", "a.tif", None, "", "ft").known_by == "declared for the pair"


def header_of(array):
    return read_header(Source(array), array, "dem")


def test_a_plane_is_sampled_exactly():
    """Bilinear interpolation of z = 3 column + 7 row gives the plane back at every point between centres."""
    rows, columns = np.mgrid[0:40, 0:30]
    header = header_of((3.0 * columns + 7.0 * rows).astype(np.float64))
    generator = np.random.Generator(np.random.PCG64(5))
    x, y = generator.uniform(0.5, 29.5, 200), generator.uniform(0.5, 39.5, 200)
    assert sample_bilinear(header, x, y) == pytest.approx(3 * (x - 0.5) + 7 * (y - 0.5), abs=1e-6)


def test_sampling_agrees_with_scipy_across_tiles():
    from scipy.interpolate import RegularGridInterpolator

    generator = np.random.Generator(np.random.PCG64(6))
    heights = generator.normal(0, 1, (1100, 700))
    x, y = generator.uniform(0.5, 699.5, 500), generator.uniform(0.5, 1099.5, 500)
    oracle = RegularGridInterpolator((np.arange(1100) + 0.5, np.arange(700) + 0.5), heights)
    assert sample_bilinear(header_of(heights), x, y) == pytest.approx(oracle(np.column_stack([y, x])), abs=1e-7)


def test_void_cells_void_only_the_points_that_ask_them():
    heights = np.array([[1.0, 2.0, np.nan], [3.0, 4.0, 5.0]])
    header = header_of(heights)
    at = {
        "centre beside the void": (1.5, 0.5, 2.0),
        "between two centres of the row below": (2.0, 1.5, 4.5),
        "leaning on the void": (1.75, 0.75, None),
        "rim, half a cell": (0.25, 1.0, None),
        "outside": (-3.0, 1.0, None),
        "no place": (np.nan, 1.0, None),
    }
    found = sample_bilinear(header, *(np.array([v[i] for v in at.values()]) for i in (0, 1)))
    assert [None if np.isnan(value) else value for value in found] == [v[2] for v in at.values()]
    assert sample_nearest(header, np.array([2.9, 1.0]), np.array([0.5, 1.0]))[1] == 4.0


def test_points_are_transformed_to_the_raster(tmp_path):
    from pyproj import Transformer

    dem = write_dem(tmp_path / "dem.tif", unit="m")
    x, y = np.array([500_015.0, 500_021.0]), np.array([4_999_985.0, 4_999_979.0])
    lon, lat = Transformer.from_crs(32633, 4326, always_xy=True).transform(x, y)
    frame = pd.DataFrame({"lon": lon, "lat": lat, "elevation": [5.0, 5.0]})
    points = only(elevation_units(Source(frame, unit="m"), Source(dem), Pairing()))
    assert sorted(points.prediction) == pytest.approx([5.0, 5.0 + 0.6 + 4 * 0.6], abs=1e-5)
    with pytest.raises(CRSMismatch, match=r"EPSG:4326.*EPSG:32633"):
        elevation_units(Source(frame, unit="m"), Source(dem), Pairing(on_crs_mismatch="refuse"))


def test_points_may_stand_on_either_side(tmp_path):
    dem = write_dem(tmp_path / "dem.tif", unit="m")
    points = Source(survey([500_015.0], [4_999_985.0], [7.0]), crs="EPSG:32633", unit="m")
    survey_first = only(elevation_units(points, Source(dem), Pairing()))
    dem_first = only(elevation_units(Source(dem), points, Pairing()))
    assert (survey_first.reference[0], survey_first.prediction[0]) == (7.0, 5.0)
    assert (dem_first.reference[0], dem_first.prediction[0]) == (5.0, 7.0)


def test_scaled_bands_are_sampled_in_their_real_heights(tmp_path):
    dem = write_dem(tmp_path / "dem.tif", np.full((3, 4), 150, dtype=np.int16), unit="m", scale=(0.1, 100.0))
    points = Source(survey([500_015.0], [4_999_985.0], [115.0]), crs="EPSG:32633", unit="m")
    assert only(elevation_units(points, Source(dem), Pairing())).prediction == pytest.approx([115.0])


def test_rows_may_come_in_any_order_and_have_no_id(tmp_path):
    dem = write_dem(tmp_path / "dem.tif", unit="m")
    frame = survey([500_015.0, 500_022.0, 500_015.0], [4_999_985.0] * 3, [1.0, 2.0, 1.0])
    tables = [
        only(elevation_units(Source(frame.iloc[order], crs="EPSG:32633", unit="m"), Source(dem), Pairing()))
        for order in ([0, 1, 2], [2, 0, 1])
    ]
    assert tables[0].id.tolist() == tables[1].id.tolist()
    assert len(set(tables[0].id)) == 3
    assert np.array_equal(tables[0].prediction, tables[1].prediction)


def test_clusters_are_columns_blocks_or_none(tmp_path):
    dem = write_dem(tmp_path / "dem.tif", unit="m")
    frame = survey([500_015.0, 500_025.0], [4_999_985.0] * 2, [1.0, 2.0], aoi=["north", "south"], line=["a", "a"])
    source = Source(frame, crs="EPSG:32633", unit="m")

    def clusters(cluster):
        found = elevation_units(source, Source(dem), Pairing(cluster=cluster))
        return sorted(found.units[0].load().cluster), found.clustered

    assert clusters("auto") == (["north", "south"], True)
    assert clusters("line") == (["a", "a"], True)
    assert clusters("grid:10m") == (["x50001y499998", "x50002y499998"], True)
    assert clusters("none") == (["", ""], False)
    with pytest.raises(ColumnError, match="'plot'"):
        clusters("plot")


def test_strata_are_columns_or_the_classes_under_the_points(tmp_path):
    dem = write_dem(tmp_path / "dem.tif", unit="m")
    cover = write_dem(tmp_path / "cover.tif", np.array([[1, 1, 2, 2]] * 3, dtype=np.uint8), nodata=0)
    frame = survey([500_005.0, 500_035.0], [4_999_985.0] * 2, [1.0, 2.0], slope=[3.0, 25.0])
    points = only(
        elevation_units(
            Source(frame, crs="EPSG:32633", unit="m"), Source(dem), Pairing(by=("slope:10", f"cover={cover}"))
        )
    )
    assert points.strata["slope"].tolist() == ["<10", ">=10"]
    assert points.strata["cover"].tolist() == ["1", "2"]


@pytest.mark.parametrize(
    ("frame", "source", "error", "says"),
    [
        (survey([1.0], [1.0], [1.0]), {}, CRSMissing, "coordinate reference system"),
        (survey([1.0], [1.0], [1.0]).drop(columns="z"), {"crs": "EPSG:32633"}, ColumnError, "column of heights"),
        (survey([1.0], [1.0], ["high"]), {"crs": "EPSG:32633"}, ColumnError, "column of heights"),
        (survey([1.0], [1.0], [1.0]), {"crs": "EPSG:32633", "columns": Columns(value="zz")}, ColumnError, "'zz'"),
        (pd.DataFrame({"z": [1.0]}), {"crs": "EPSG:32633"}, InputError, "expected points"),
        (
            survey([1.0, 2.0], [1.0, 1.0], [1.0, 1.0], no=["a", "a"]),
            {"crs": "EPSG:32633", "columns": Columns(id="no")},
            ColumnError,
            "repetitions",
        ),
    ],
)
def test_bad_tables_are_refused(tmp_path, frame, source, error, says):
    dem = write_dem(tmp_path / "dem.tif", unit="m")
    with pytest.raises(error, match=says):
        elevation_units(Source(frame, unit="m", **source), Source(dem), Pairing())


def test_two_tables_are_for_another_family():
    frame = survey([1.0], [1.0], [1.0])
    with pytest.raises(InputError, match="found points on both"):
        elevation_units(Source(frame), Source(frame), Pairing())


def test_heights_in_the_geometry_of_a_layer_are_found(tmp_path):
    import geopandas as gpd
    import shapely

    dem = write_dem(tmp_path / "dem.tif", unit="m")
    path = tmp_path / "points.gpkg"
    shapes = shapely.points(np.array([[500_015.0, 4_999_985.0, 6.5], [500_025.0, 4_999_985.0, 7.5]]))
    gpd.GeoDataFrame({"name": ["a", "b"]}, geometry=shapes, crs="EPSG:32633").to_file(path)
    found = elevation_units(Source(str(path), unit="m"), Source(dem), Pairing())
    assert sorted(only(found).reference) == [6.5, 7.5]
    assert "geometry" in found.notes["height column"]


def test_points_outside_the_area_of_interest_do_not_count(tmp_path):
    import geopandas as gpd
    import shapely

    dem = write_dem(tmp_path / "dem.tif", unit="m")
    aoi = tmp_path / "aoi.gpkg"
    gpd.GeoDataFrame(geometry=[shapely.box(500_010, 4_999_970, 500_020, 5_000_000)], crs="EPSG:32633").to_file(aoi)
    frame = survey([500_015.0, 500_025.0], [4_999_985.0] * 2, [1.0, 2.0])
    found = elevation_units(Source(frame, crs="EPSG:32633", unit="m"), Source(dem), Pairing(aoi=str(aoi)))
    assert only(found).reference.tolist() == [1.0]


def test_a_first_look_finds_the_offset_of_large_rasters(tmp_path, monkeypatch):
    monkeypatch.setattr("geoeval.readers.heights.ROWS_CELLS", 100)
    heights = np.random.Generator(np.random.PCG64(1)).normal(100, 5, (80, 90)).astype(np.float32)
    low = write_dem(tmp_path / "low.tif", heights, unit="m")
    high = write_dem(tmp_path / "high.tif", heights + np.float32(12.5), unit="m")
    assert only(elevation_units(Source(low), Source(high), Pairing())).notes["pilot"] == pytest.approx(12.5, abs=1e-4)
    void = write_dem(tmp_path / "void.tif", np.full((80, 90), -9999, dtype=np.float32), unit="m")
    assert "pilot" not in only(elevation_units(Source(low), Source(void), Pairing())).notes
