"""Reading raster pairs: validity, lattices, alignment, blocks; and what is refused, with its message."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import rasterio
import rasterio.warp
from rasterio.enums import ColorInterp
from rasterio.transform import Affine

from geoeval.errors import ConfigError, CRSMissing, GridMismatch, InputError
from geoeval.options import Pairing, Source
from geoeval.readers.raster import raster_units
from geoeval.readers.raster_blocks import Blocks, settings

UTM = "EPSG:32633"


def write(path, values, *, crs=UTM, origin=(500_000.0, 5_000_000.0), cell=10.0, nodata=None, transform=None, **more):
    """A raster of one band, or of several."""
    table = np.atleast_3d(np.asarray(values).T).T
    place = transform or Affine(cell, 0, origin[0], 0, -cell, origin[1])
    options = {"driver": "GTiff", "height": table.shape[1], "width": table.shape[2], "count": len(table)}
    options |= {"dtype": table.dtype, "crs": crs, "transform": place, "nodata": nodata}
    with rasterio.open(path, "w", **(options | more)) as dataset:
        dataset.write(table)
    return str(path)


def read(one, other, pairing=None, *, categorical=True, window=None, **options):
    """Both sides put together again from their blocks."""
    units = raster_units(
        Source(one, **options.get("reference", {})),
        Source(other, **options.get("prediction", {})),
        pairing or Pairing(),
        categorical=categorical,
    )
    return whole(units.units[0].load(), window)


def whole(pair, window=None):
    blocks = pair.blocks
    if window is not None:
        blocks = Blocks(blocks.reference, blocks.prediction, blocks.clusters, blocks.strata, blocks.area, window)
    out = {}
    for block in blocks():
        for name in ("reference", "prediction", "reference_valid", "prediction_valid"):
            part = getattr(block, name)
            kind = bool if name.endswith("valid") else object
            table = out.setdefault(
                name, np.full(pair.shape, None, dtype=object) if kind is object else np.zeros(pair.shape, bool)
            )
            table[block.row : block.row + part.shape[0], block.column : block.column + part.shape[1]] = part
        names = out.setdefault("cluster", np.full(pair.shape, None, dtype=object))
        rows, columns = block.reference.shape
        assert (names[block.row : block.row + rows, block.column : block.column + columns] == None).all()  # noqa: E711
        names[block.row : block.row + rows, block.column : block.column + columns] = block.cluster
    return out


def valid(found, side="prediction"):
    return found[f"{side}_valid"].astype(int).tolist()


def test_nodata_is_compared_in_the_bands_own_type(tmp_path):
    """-3.4e38 as text is another number in float64 than in float32."""
    a = write(tmp_path / "a.tif", np.array([[1, -3.4e38]], dtype=np.float32), nodata=float(np.float32(-3.4e38)))
    b = write(tmp_path / "b.tif", np.array([[1, 0.1]], dtype=np.float32))
    assert valid(read(a, b, prediction={"nodata": 0.1}, categorical=False)) == [[1, 0]]
    assert valid(read(a, b, categorical=False), "reference") == [[1, 0]]


def test_without_nodata_every_code_is_data(tmp_path):
    a = write(tmp_path / "a.tif", np.array([[0, 255]], dtype=np.uint8))
    assert valid(read(a, a)) == [[1, 1]]


def test_nodata_that_the_type_cannot_hold_hides_nothing_and_is_reported(tmp_path):
    a = write(tmp_path / "a.tif", np.array([[0, 255]], dtype=np.uint8))
    units = raster_units(Source(a), Source(a, nodata=-9999), Pairing(), categorical=True)
    assert whole(units.units[0].load())["prediction_valid"].all()
    assert [finding.code for finding in units.findings] == ["nodata-impossible"]


def test_nan_and_infinity_are_never_data(tmp_path):
    a = write(tmp_path / "a.tif", np.array([[np.nan, np.inf, 2]], dtype=np.float32))
    assert valid(read(a, a, categorical=False)) == [[0, 0, 1]]


def test_a_mask_band_and_an_alpha_band_tell_what_is_valid(tmp_path):
    values = np.array([[1, 2, 3]], dtype=np.uint8)
    masked = write(tmp_path / "m.tif", values)
    with rasterio.open(masked, "r+") as dataset:
        dataset.write_mask(np.array([[255, 0, 255]], dtype=np.uint8))
    alpha = tmp_path / "alpha.tif"
    write(alpha, np.stack([values, np.array([[0, 255, 255]], dtype=np.uint8)]))
    with rasterio.open(alpha, "r+") as dataset:
        dataset.colorinterp = (ColorInterp.gray, ColorInterp.alpha)
    found = read(masked, str(alpha))
    assert valid(found, "reference") == [[1, 0, 1]]
    assert valid(found) == [[0, 1, 1]]


def test_codes_are_recoded_all_at_once_and_after_nodata(tmp_path):
    """1 and 2 swap; 9 becomes a code that bytes cannot hold; 0 is nodata and stays so."""
    a = write(tmp_path / "a.tif", np.array([[0, 1, 2, 9]], dtype=np.uint8), nodata=0)
    found = read(a, a, prediction={"recode": {"1": "2", "2": "1", "9": "-5", "0": "1"}})
    assert found["prediction"][0].tolist()[1:] == [2, 1, -5]
    assert valid(found) == [[0, 1, 1, 1]]
    with pytest.raises(ConfigError, match="recode water=1: raster classes are whole numbers"):
        read(a, a, prediction={"recode": {"water": "1"}})


def test_fractions_are_no_classes(tmp_path):
    a = write(tmp_path / "a.tif", np.array([[1, 2.5]], dtype=np.float32))
    with pytest.raises(InputError, match=r"a.tif, band 1: expected class codes .* found 2.5 at row 0, column 1"):
        read(a, a)


def test_extents_may_differ_on_one_lattice(tmp_path):
    """The prediction covers the right half, and reaches beyond."""
    a = write(tmp_path / "a.tif", np.arange(8, dtype=np.int16).reshape(2, 4))
    b = write(tmp_path / "b.tif", np.arange(6, dtype=np.int16).reshape(2, 3), origin=(500_020.0, 5_000_000.0))
    found = read(a, b)
    assert valid(found) == [[0, 0, 1, 1], [0, 0, 1, 1]]
    assert found["prediction"][:, 2:].tolist() == [[0, 1], [3, 4]]


def test_rasters_of_two_places_are_compared_and_reported(tmp_path):
    a = write(tmp_path / "a.tif", np.ones((2, 2), dtype=np.uint8))
    b = write(tmp_path / "b.tif", np.ones((2, 2), dtype=np.uint8), origin=(600_000.0, 5_000_000.0))
    units = raster_units(Source(a), Source(b), Pairing(), categorical=True)
    assert [finding.code for finding in units.findings] == ["no-overlap"]
    assert not whole(units.units[0].load())["prediction_valid"].any()


def test_a_tenth_of_a_pixel_is_refused_with_the_shift(tmp_path):
    a = write(tmp_path / "a.tif", np.ones((2, 2), dtype=np.uint8))
    b = write(tmp_path / "b.tif", np.ones((2, 2), dtype=np.uint8), origin=(500_001.0, 5_000_000.0))
    with pytest.raises(GridMismatch, match=r"shifted by \(-0.1, 0\) pixels") as caught:
        read(a, b)
    assert "EPSG:32633, 2 x 2 cells of 10 x -10 from (500001, 5000000)" in str(caught.value)
    assert "align = 'nearest'" in str(caught.value)


def test_other_coordinate_systems_are_refused_by_name(tmp_path):
    a = write(tmp_path / "a.tif", np.ones((2, 2), dtype=np.uint8))
    b = write(tmp_path / "b.tif", np.ones((2, 2), dtype=np.uint8), crs="EPSG:32634")
    with pytest.raises(GridMismatch, match="EPSG:32634"):
        read(a, b)


def test_nearest_maps_another_resolution_by_index(tmp_path):
    """Cells of 4 m under cells of 10 m: centres at 5 and 15 m fall into cells 1 and 3."""
    a = write(tmp_path / "a.tif", np.zeros((2, 3), dtype=np.int16))
    b = write(tmp_path / "b.tif", np.arange(36, dtype=np.int16).reshape(6, 6), cell=4.0)
    found = read(a, b, Pairing(align="nearest"))
    assert found["prediction"][:, :2].tolist() == [[7, 9], [19, 21]]
    assert valid(found) == [[1, 1, 0], [1, 1, 0]]
    again = read(a, b, Pairing(align="nearest"), window=(1, 1))
    assert (again["prediction"] == found["prediction"]).all()


def test_nearest_turns_a_south_up_raster(tmp_path):
    values = np.array([[1, 2], [3, 4]], dtype=np.uint8)
    a = write(tmp_path / "a.tif", values)
    b = write(tmp_path / "b.tif", values[::-1], transform=Affine(10, 0, 500_000, 0, 10, 4_999_980))
    assert read(a, b, Pairing(align="nearest"))["prediction"].tolist() == values.tolist()


def test_a_warp_leaves_nothing_valid_outside_the_source(tmp_path):
    """Without an alpha band the cells around the source would come back as class 0."""
    a = write(tmp_path / "a.tif", np.zeros((40, 40), dtype=np.uint8))
    with rasterio.open(a) as dataset:
        west, south, _, _ = rasterio.warp.transform_bounds(UTM, "EPSG:4326", *dataset.bounds)
    degree = 10 / 111_000
    b = write(
        tmp_path / "b.tif", np.ones((15, 15), dtype=np.uint8), crs="EPSG:4326",
        transform=Affine(degree, 0, west + 10 * degree, 0, -degree, south + 30 * degree),
    )  # fmt: skip
    found = read(a, b, Pairing(align="nearest"))
    share = found["prediction_valid"].mean()
    assert 0.05 < share < 0.25
    assert (found["prediction"][found["prediction_valid"]] == 1).all()


def test_classes_are_never_averaged_and_heights_have_no_majority(tmp_path):
    a = write(tmp_path / "a.tif", np.ones((2, 2), dtype=np.uint8))
    with pytest.raises(ConfigError, match="a mean of two classes"):
        read(a, a, Pairing(align="bilinear"))
    with pytest.raises(ConfigError, match="heights have no majority"):
        read(a, a, Pairing(align="mode"), categorical=False)


def test_mode_takes_the_majority_of_a_finer_prediction(tmp_path):
    fine = np.array([[1, 1, 2, 2], [1, 3, 2, 2], [5, 5, 5, 5], [5, 5, 5, 6]], dtype=np.uint8)
    a = write(tmp_path / "a.tif", np.ones((2, 2), dtype=np.uint8))
    b = write(tmp_path / "b.tif", fine, cell=5.0)
    assert read(a, b, Pairing(align="mode"))["prediction"].tolist() == [[1, 2], [5, 5]]


def test_a_missing_system_is_refused_unless_declared(tmp_path):
    a = write(tmp_path / "a.tif", np.ones((2, 2), dtype=np.uint8), crs=None)
    with pytest.raises(CRSMissing, match=r"reference: .*a.tif: expected a coordinate reference system, found none"):
        read(a, a)
    both = {"reference": {"crs": UTM}, "prediction": {"crs": UTM}}
    assert read(a, a, **both)["reference_valid"].all()
    units = raster_units(Source(a, crs="pixel"), Source(a, crs="pixel"), Pairing(), categorical=True)
    assert units.units[0].load().unit == "px"
    b = write(tmp_path / "b.tif", np.ones((2, 2), dtype=np.uint8))
    with pytest.raises(GridMismatch, match="the other is in pixels"):
        read(a, b, reference={"crs": "pixel"})


def test_scale_and_offset_of_a_band_are_applied_to_measurements(tmp_path):
    a = write(tmp_path / "a.tif", np.array([[10, 20]], dtype=np.int16))
    with rasterio.open(a, "r+") as dataset:
        dataset.scales, dataset.offsets = (0.5,), (100.0,)
    assert read(a, a, categorical=False)["reference"].tolist() == [[105.0, 110.0]]


@pytest.mark.parametrize("cluster", ["grid:35m", "grid:auto", "grid:3px", "none"])
@pytest.mark.parametrize("tiled", [True, False])
def test_windows_change_nothing(tmp_path, cluster, tiled):
    generator = np.random.default_rng(3)
    layout = {"tiled": True, "blockxsize": 16, "blockysize": 16} if tiled else {"blockysize": 2}
    a = write(tmp_path / "a.tif", generator.integers(0, 5, (40, 50), dtype=np.uint8), nodata=0, **layout)
    b = write(
        tmp_path / "b.tif",
        generator.integers(0, 5, (40, 50), dtype=np.int32),
        origin=(500_030.0, 5_000_050.0),
        nodata=1,
    )
    first = read(a, b, Pairing(cluster=cluster))
    for window in ((7, 11), (1, 50), (40, 3)):
        again = read(a, b, Pairing(cluster=cluster), window=window)
        for name, table in first.items():
            assert (again[name] == table).all(), name


def test_clusters_are_those_of_the_cell_centres(tmp_path):
    """Blocks of 20 m from multiples of 20 m; x begins at 500,010."""
    a = write(tmp_path / "a.tif", np.ones((2, 3), dtype=np.uint8), origin=(500_010.0, 5_000_000.0))
    names = read(a, a, Pairing(cluster="grid:20m"))["cluster"]
    assert names.tolist() == [["x25000y249999", "x25001y249999", "x25001y249999"]] * 2


def test_neighbouring_files_share_blocks_and_pair_by_name(tmp_path):
    for side in ("r", "p"):
        (tmp_path / side).mkdir()
        write(tmp_path / side / "west.tif", np.ones((4, 3), dtype=np.uint8))
        write(tmp_path / side / "east.tif", np.ones((4, 3), dtype=np.uint8), origin=(500_030.0, 5_000_000.0))
        (tmp_path / side / "README.md").write_text("not a raster")
    units = raster_units(
        Source(str(tmp_path / "r")),
        Source(str(tmp_path / "p" / "*.tif")),
        Pairing(cluster="grid:40m"),
        categorical=True,
    )
    assert [unit.id for unit in units.units] == ["east", "west"]
    east, west = (set(whole(unit.load())["cluster"].reshape(-1)) for unit in units.units)
    assert east & west == {"x12500y124999"}


def test_a_prediction_without_reference_is_refused_and_a_missing_one_is_all_void(tmp_path):
    for side, name in (("r", "a"), ("r", "b"), ("p", "a")):
        (tmp_path / side).mkdir(exist_ok=True)
        write(tmp_path / side / f"{name}.tif", np.ones((2, 2), dtype=np.uint8))
    units = raster_units(Source(str(tmp_path / "r")), Source(str(tmp_path / "p")), Pairing(), categorical=True)
    assert not whole(units.units[1].load())["prediction_valid"].any()
    with pytest.raises(InputError, match="no reference of the same stem"):
        raster_units(Source(str(tmp_path / "p")), Source(str(tmp_path / "r")), Pairing(), categorical=True)


def test_strata_come_from_rasters_and_void_is_unknown(tmp_path):
    a = write(tmp_path / "a.tif", np.ones((1, 3), dtype=np.uint8))
    zones = write(tmp_path / "z.tif", np.array([[7, 8, 0]], dtype=np.uint8), nodata=0)
    units = raster_units(Source(a), Source(a), Pairing(by=(f"zone={zones}",)), categorical=True)
    named = [
        names[int(code)]
        for block in units.units[0].load().blocks()
        for codes, names in block.strata.values()
        for code in codes.reshape(-1)
    ]
    assert named == ["7", "8", "unknown"]
    assert zones in units.inputs
    with pytest.raises(ConfigError, match="write zone=FILE"):
        read(a, a, Pairing(by=("zone",)))


def test_only_cells_inside_the_area_of_interest_count(tmp_path):
    a = write(tmp_path / "a.tif", np.ones((2, 4), dtype=np.uint8))
    import geopandas as gpd
    from shapely.geometry import box

    place = tmp_path / "aoi.gpkg"
    gpd.GeoDataFrame(geometry=[box(500_000, 4_999_980, 500_020, 5_000_000)], crs=UTM).to_file(place)
    found = read(a, a, Pairing(aoi=str(place)))
    assert valid(found) == valid(found, "reference") == [[1, 1, 0, 0], [1, 1, 0, 0]]


def test_pairs_travel_to_other_processes(tmp_path):
    a = write(tmp_path / "a.tif", np.arange(6, dtype=np.uint8).reshape(2, 3))
    units = raster_units(Source(a), Source(a), Pairing(), categorical=True)
    again = pickle.loads(pickle.dumps(units.units[0]))
    assert (whole(again.load())["reference"] == whole(units.units[0].load())["reference"]).all()


def test_arrays_are_pixels(tmp_path):
    a = np.array([[1, 2], [3, 4]])
    assert read(a, a)["reference"].tolist() == a.tolist()
    with pytest.raises(InputError, match="arrays must have one shape"):
        read(a, a[:1])
    with pytest.raises(InputError, match="expected an array"):
        read(np.array(["x"]), a)


def test_what_cannot_be_read_is_refused(tmp_path):
    a = write(tmp_path / "a.tif", np.ones((2, 2), dtype=np.uint8))
    text = tmp_path / "b.tif"
    text.write_text("no raster")
    with pytest.raises(InputError, match=r"b\.tif: expected a raster"):
        read(a, str(text))
    with pytest.raises(InputError, match="expected band 2, found 1 bands"):
        read(a, a, prediction={"band": 2})
    with pytest.raises(InputError, match="no such file"):
        read(a, str(tmp_path / "c.tif"))
    with pytest.raises(ConfigError, match="rasters have no columns"):
        read(a, a, Pairing(cluster="district"))


def test_blocks_can_be_left_before_their_end(tmp_path):
    a = write(tmp_path / "a.tif", np.ones((64, 64), dtype=np.uint8))
    units = raster_units(Source(a), Source(a), Pairing(cluster="grid:4px"), categorical=True)
    blocks = units.units[0].load().blocks()
    next(blocks)
    blocks.close()


@pytest.mark.shared
def test_damaged_pixels_stop_the_run_with_the_file_and_the_place(shared_data):
    path = str(shared_data / "corrupt_and_odd_files" / "corrupt.tif")
    with pytest.raises(InputError, match=r"corrupt.tif: expected readable pixels, found damaged ones in band 1"):
        read(path, path)


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
@pytest.mark.parametrize("driver", ["PNG", "JPEG", "GTiff"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_truncated_file_of_any_format_is_refused(tmp_path, driver, share):
    """GDAL would hand out a truncated PNG as if it were whole, with arbitrary values."""
    path = tmp_path / f"a.{driver.lower()}"
    values = np.random.Generator(np.random.PCG64(3)).integers(0, 255, (1, 300, 300), dtype=np.uint8)
    with rasterio.open(path, "w", driver=driver, width=300, height=300, count=1, dtype="uint8") as file:
        file.write(values)
    data = path.read_bytes()
    pixels = {"reference": {"crs": "pixel"}, "prediction": {"crs": "pixel"}}
    assert read(str(path), str(path), **pixels)["reference_valid"].all()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(InputError, match=r"cannot be opened|found damaged ones in band 1"):
        read(str(path), str(path), **pixels)


@pytest.mark.shared
def test_odd_files_are_read_or_refused(shared_data):
    odd = shared_data / "corrupt_and_odd_files"
    assert not read(str(odd / "all-nodata.tif"), str(odd / "all-nodata.tif"))["reference_valid"].any()
    with pytest.raises(CRSMissing, match="found none"):
        read(str(odd / "float_nan.tif"), str(odd / "float_nan.tif"))
    with pytest.raises(CRSMissing, match="lies nowhere on Earth"):
        read(str(odd / "whitebox_dem_local_cs.tif"), str(odd / "whitebox_dem_local_cs.tif"), categorical=False)
    pixels = {"reference": {"crs": "pixel"}, "prediction": {"crs": "pixel"}}
    assert read(str(odd / "rotated.tif"), str(odd / "rotated.tif"), **pixels)["reference_valid"].all()
    assert read(str(odd / "test_esri_wkt.tif"), str(odd / "test_esri_wkt.tif"))["reference_valid"].all()
    a, b = (str(odd / f"float_raster_with_{name}.tif") for name in ("extra_nodata", "nodata"))
    assert read(a, b, Pairing(align="nearest"), categorical=False)["prediction_valid"].any()
    with pytest.raises(GridMismatch, match=r"shifted by|prediction cells"):
        read(a, b, categorical=False)


def test_windows_inside_large_clusters_give_the_same_cells(tmp_path):
    """Clusters of 600 px in tiles of 512: windows follow the clusters."""
    generator = np.random.default_rng(5)
    values = generator.integers(0, 250, (1300, 1250), dtype=np.uint8)
    a = write(tmp_path / "a.tif", values, tiled=True, blockxsize=512, blockysize=512)
    units = raster_units(Source(a), Source(a), Pairing(cluster="grid:6000m"), categorical=True)
    blocks = units.units[0].load().blocks
    found = list(blocks())
    assert len(found) == len({(block.row, block.column) for block in found})
    assert sum(block.reference.size for block in found) == values.size
    assert all(
        (values[b.row : b.row + len(b.reference)][:, b.column :][:, : b.reference.shape[1]] == b.reference).all()
        for b in found
    )
    names = {block.cluster for block in found}
    again = list(Blocks(blocks.reference, blocks.prediction, blocks.clusters, window=(1024, 1024))())
    assert {block.cluster for block in again} == names
    size = {name: sum(b.reference.size for b in found if b.cluster == name) for name in names}
    assert size == {name: sum(b.reference.size for b in again if b.cluster == name) for name in names}


def test_the_block_cache_is_64_megabytes():
    """A bare 64 would be taken as bytes, and every tile would be decoded several times."""
    from rasterio._env import get_gdal_config

    with settings():
        assert get_gdal_config("GDAL_CACHEMAX") == 64 * 2**20
