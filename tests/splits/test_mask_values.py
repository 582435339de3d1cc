"""Masks are compared by their values, whatever their compression, tiles and type."""

from __future__ import annotations

import numpy as np
import pytest
import rasterio
from PIL import Image

from geoeval.errors import InputError
from geoeval.splits.mask_values import values_sha256


def tiff(path, values, **profile):
    values = np.atleast_3d(values.T).T
    bands, rows, columns = values.shape
    size = {"count": bands, "height": rows, "width": columns, "dtype": values.dtype.name}
    with rasterio.open(path, "w", driver="GTiff", **{**size, **profile}) as out:
        out.write(values)
    return path


@pytest.fixture
def classes():
    return np.random.default_rng(4).integers(0, 5, size=(70, 90)).astype(np.uint8)


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
class TestValues:
    @pytest.mark.parametrize(
        "profile",
        [{"compress": "deflate"}, {"tiled": True, "blockxsize": 16, "blockysize": 32}, {"crs": "EPSG:32631"}],
    )
    def test_how_a_mask_is_packed_does_not_count(self, tmp_path, classes, profile):
        plain = values_sha256(tiff(tmp_path / "a.tif", classes))
        assert values_sha256(tiff(tmp_path / "b.tif", classes, **profile)) == plain
        Image.fromarray(classes).save(tmp_path / "a.png")
        assert values_sha256(tmp_path / "a.png") == plain

    @pytest.mark.parametrize("dtype", ["int16", "uint32", "float32", "float64", "int64"])
    def test_the_type_of_a_class_does_not_count(self, tmp_path, classes, dtype):
        plain = values_sha256(tiff(tmp_path / "a.tif", classes))
        assert values_sha256(tiff(tmp_path / "b.tif", classes.astype(dtype))) == plain

    @pytest.mark.parametrize(
        "change", [lambda a: a[::-1], lambda a: a.reshape(90, 70), lambda a: a + (a == 4), lambda a: np.stack([a, a])]
    )
    def test_a_pixel_a_shape_and_a_band_count(self, tmp_path, classes, change):
        plain = values_sha256(tiff(tmp_path / "a.tif", classes))
        assert values_sha256(tiff(tmp_path / "b.tif", np.ascontiguousarray(change(classes)))) not in (plain, None)

    def test_numbers_beyond_float64_stay_apart(self, tmp_path):
        one, other = np.array([[0, 2**60]]), np.array([[0, 2**60 + 1]])
        assert values_sha256(tiff(tmp_path / "a.tif", one)) != values_sha256(tiff(tmp_path / "b.tif", other))

    def test_one_zero_and_one_nan(self, tmp_path):
        nan = np.array([0x7FC00000, 0x7FC00001, 0, 0x80000000], dtype=np.uint32).view(np.float32)[None]
        plain = np.array([[np.nan, np.nan, 0, 0]], dtype=np.float32)
        assert values_sha256(tiff(tmp_path / "a.tif", nan)) == values_sha256(tiff(tmp_path / "b.tif", plain))

    def test_large_masks_are_read_in_windows_that_their_tiles_do_not_move(self, tmp_path):
        values = (np.add.outer(np.arange(1500), np.arange(1600)) % 7).astype(np.uint8)
        one = tiff(tmp_path / "a.tif", values, compress="deflate")
        other = tiff(tmp_path / "b.tif", values, tiled=True, blockxsize=256, blockysize=512)
        assert values_sha256(one) == values_sha256(other) is not None

    @pytest.mark.parametrize("value", [0, 7])
    def test_a_single_value_shows_no_object(self, tmp_path, value):
        assert values_sha256(tiff(tmp_path / "a.tif", np.full((9, 9), value, dtype=np.uint8))) is None

    def test_a_damaged_mask_is_refused(self, tmp_path, classes):
        path = tiff(tmp_path / "a.tif", classes, compress="deflate")
        path.write_bytes(path.read_bytes()[:-900])
        with pytest.raises(InputError, match="cannot be read as an image"):
            values_sha256(path)

    def test_several_pictures_in_one_file_are_refused(self, tmp_path, classes):
        pages = [Image.fromarray(classes), Image.fromarray(classes[::-1])]
        pages[0].save(tmp_path / "a.tif", save_all=True, append_images=pages[1:])
        with pytest.raises(InputError, match="holds 2 pictures, of which only the first would be compared"):
            values_sha256(tmp_path / "a.tif")
