"""Perceptual hashes: unrelated 16-bit tiles differ, altered copies are found, bad files are refused."""

from __future__ import annotations

import io

import numpy as np
import pytest
import rasterio
from affine import Affine
from PIL import Image

from geoeval.errors import GeoevalError, InputError
from geoeval.splits import phash
from geoeval.splits.hamming import hamming_across, hamming_groups
from geoeval.splits.phash import array_codes, check_golden, image_codes, is_flat, to_8bit


def tile(seed, side=256, bands=1):
    """A 16-bit tile with values from about 300 to 5400 and a spectrum as of land (1/f)."""
    generator = np.random.Generator(np.random.PCG64(seed))
    y, x = np.fft.fftfreq(side)[:, None], np.fft.fftfreq(side)[None]
    frequency = np.hypot(x, y)
    frequency[0, 0] = 1
    waves = np.fft.fft2(generator.normal(size=(bands, side, side))) / frequency
    waves[:, 0, 0] = 0
    ground = np.fft.ifft2(waves).real
    ground = (ground - ground.min()) / np.ptp(ground)
    return np.round(300 + 5100 * ground).astype(np.uint16)


def nearest(one, other):
    """Least distance over the orientations of the other."""
    return int(np.bitwise_count(one[0] ^ other).min())


def jpeg(image, quality=75):
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "JPEG", quality=quality)
    return np.asarray(Image.open(stream))


def test_unrelated_16_bit_tiles_are_no_duplicates():
    codes = np.array([array_codes(tile(seed)).codes for seed in range(150)])
    assert hamming_groups(codes, 4).tolist() == list(range(150))


def test_a_careless_conversion_would_have_made_them_all_alike():
    """Clipped to 8 bits, every value above 255 is 255."""
    clipped = {int(phash.codes_of(np.clip(tile(seed)[0], 0, 255).astype(np.uint8))[0]) for seed in range(10)}
    assert len(clipped) == 1


ALTERED = {
    "flipped": lambda a: a[..., ::-1],
    "upside down": lambda a: a[..., ::-1, :],
    "turned by 90": lambda a: np.rot90(a, 1, (1, 2)),
    "turned by 180": lambda a: np.rot90(a, 2, (1, 2)),
    "turned by 270": lambda a: np.rot90(a, 3, (1, 2)),
    "transposed": lambda a: a.transpose(0, 2, 1),
    "gain": lambda a: (a * 0.6 + 90).astype(np.uint16),
    "8 bits": lambda a: to_8bit(a)[None],
    "JPEG": lambda a: jpeg(to_8bit(a))[None],
    "flipped JPEG": lambda a: jpeg(to_8bit(a))[None, :, ::-1],
}


@pytest.mark.parametrize("name", ALTERED)
def test_altered_copies_are_found(name):
    first = np.array([array_codes(tile(seed)).codes for seed in range(20)])
    second = np.array([array_codes(ALTERED[name](tile(seed))).codes for seed in range(20)])
    found = hamming_across(np.concatenate([first, second]), np.repeat([0, 1], 20), 4)
    assert found.count == 20
    assert sorted(zip(found.i.tolist(), found.j.tolist(), strict=True)) == [(k, k + 20) for k in range(20)]


def test_a_shift_by_one_pixel_is_found():
    """The window one pixel further; the gate's radius of 4 bits holds nearly all of them."""
    near = 0
    for seed in range(30):
        whole = tile(seed, 260)[:, :257, :257]
        near += nearest(array_codes(whole[:, :256, :256]).codes, array_codes(whole[:, 1:, 1:]).codes) <= 4
    assert near >= 28


def test_cells_without_data_get_the_median():
    plain = tile(3)
    holed, valid = plain.copy(), np.ones(plain.shape, dtype=bool)
    valid[:, 100:104, 90:100] = False
    holed[~valid] = 65535
    assert nearest(array_codes(plain).codes, array_codes(holed, valid).codes) <= 2
    floats = np.where(valid, plain.astype(float), np.nan)
    assert array_codes(floats).codes.tolist() == array_codes(holed, valid).codes.tolist()


def test_flat_tiles_are_told_apart():
    generator = np.random.Generator(np.random.PCG64(1))
    assert array_codes(np.full((3, 64, 64), 1200, dtype=np.uint16)).flat
    assert array_codes(generator.normal(1000, 3, (1, 1024, 1024))).flat
    assert not array_codes(tile(1)).flat
    lone = np.zeros((64, 64), dtype=bool)
    lone[0, :20] = True
    assert array_codes(tile(1, 64), lone).flat
    assert is_flat(np.zeros((5, 7), dtype=np.uint8))


def test_the_least_of_the_eight_codes_is_canonical():
    """Without noise, all eight orientations share it."""
    seen = {int(array_codes(turned).canonical) for turned in phash.orientations(tile(5)[0])}
    assert len(seen) == 1


def test_golden_codes_hold_and_a_moved_bit_is_refused(monkeypatch):
    check_golden()
    moved = {name: (codes[0] ^ 8, *codes[1:]) for name, codes in phash._GOLDEN.items()}
    monkeypatch.setattr(phash, "_GOLDEN", moved)
    with pytest.raises(GeoevalError, match=r"1 bits of the golden image 'blobs'.*imagehash"):
        check_golden()


def test_the_recipe_names_what_codes_depend_on():
    assert set(phash.RECIPE["versions"]) == {"imagehash", "pillow", "numpy", "scipy"}


def write(path, bands, **more):
    profile = {"driver": "GTiff", "count": len(bands), "height": bands.shape[1], "width": bands.shape[2]}
    transform = Affine(10, 0, 500_000, 0, -10, 5_000_000)
    with rasterio.open(path, "w", dtype=bands.dtype, crs="EPSG:32633", transform=transform, **profile, **more) as out:
        out.write(bands)


def test_a_file_gives_the_codes_of_its_array(tmp_path):
    bands = tile(4, 128, 3)
    bands[:, :2, :2] = 0
    write(tmp_path / "a.tif", bands, nodata=0)
    assert image_codes(tmp_path / "a.tif").codes.tolist() == array_codes(bands, bands != 0).codes.tolist()
    image = to_8bit(tile(4, 128))
    Image.fromarray(image).save(tmp_path / "a.png")
    assert image_codes(tmp_path / "a.png").codes.tolist() == array_codes(image).codes.tolist()


def test_bad_files_are_refused(tmp_path):
    (tmp_path / "empty.tif").touch()
    with pytest.raises(InputError, match="0 bytes"):
        image_codes(tmp_path / "empty.tif")
    (tmp_path / "text.tif").write_text("no image")
    with pytest.raises(InputError, match="cannot be read as an image"):
        image_codes(tmp_path / "text.tif")
    with pytest.raises(InputError, match="no such file"):
        image_codes(tmp_path / "none.tif")
    write(tmp_path / "cut.tif", tile(1, 256))
    whole = (tmp_path / "cut.tif").read_bytes()
    (tmp_path / "cut.tif").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="cannot be read as an image"):
        image_codes(tmp_path / "cut.tif")


def test_a_small_file_that_unpacks_to_a_huge_image_is_refused_unread(tmp_path):
    with rasterio.open(
        tmp_path / "bomb.tif",
        "w",
        driver="GTiff",
        width=60_000,
        height=60_000,
        count=1,
        dtype="uint8",
        compress="deflate",
        sparse_ok=True,
        tiled=True,
        crs="EPSG:32633",
        transform=Affine(2, 0, 0, 0, -2, 0),
    ):
        pass
    with pytest.raises(InputError, match="60000 x 60000 cells in 1 bands are more than 100,000,000"):
        image_codes(tmp_path / "bomb.tif")


def test_wrong_arrays_are_refused():
    with pytest.raises(ValueError, match="at least one cell"):
        to_8bit(np.zeros((0, 5)))
    with pytest.raises(ValueError, match="8-bit"):
        phash.codes_of(tile(1)[0])
