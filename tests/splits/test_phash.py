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
from geoeval.splits.hamming import Confirmation, hamming_across, hamming_groups
from geoeval.splits.phash import array_codes, check_golden, image_codes, is_flat, to_8bit
from geoeval.splits.settings import SplitSettings


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


def found_across(first, second, settings=None):
    """The pairs (k, l) of two lists of codes that the gate finds under the default settings."""
    held = settings or SplitSettings()
    both = [*first, *second]
    codes, confirming = (np.array([getattr(one, name) for one in both]) for name in ("codes", "confirming"))
    known = np.ones(len(both), dtype=bool)
    how = Confirmation(confirming, known, held.confirmed_radius, held.confirming_bits)
    split = np.repeat([0, 1], [len(first), len(second)])
    found = hamming_across(codes, split, held.radius, confirmation=how, witnesses=10_000)
    return sorted(zip(found.i.tolist(), (found.j - len(first)).tolist(), strict=True))


@pytest.mark.parametrize("side", [128, 256])
@pytest.mark.parametrize(("down", "right"), [(0, 1), (1, 0), (1, 1), (1, -1)])
def test_a_shift_by_one_pixel_is_found(side, down, right):
    """The window one pixel further, straight and diagonally: every copy, and no other tile."""
    first, second = [], []
    for seed in range(60):
        whole = tile(seed, side + 4)[0]
        first.append(array_codes(whole[1 : side + 1, 1 : side + 1]))
        second.append(array_codes(whole[1 + down : side + 1 + down, 1 + right : side + 1 + right]))
    assert found_across(first, second) == [(k, k) for k in range(60)]


@pytest.mark.parametrize("share", [0.02, 0.05, 0.1])
def test_gain_that_clips_the_brightest_cells_is_found(share):
    tiles = [tile(seed, 128)[0] for seed in range(60)]
    clipped = [np.minimum(one * 1.8, np.quantile(one, 1 - share) * 1.8).astype(np.uint16) for one in tiles]
    assert found_across([array_codes(a) for a in tiles], [array_codes(a) for a in clipped]) == [
        (k, k) for k in range(60)
    ]


def test_a_mask_does_not_hide_a_copy():
    """The values are still there below the mask; the second look sees them, however much is masked."""
    plain = tile(8, 128)
    for rows in (20, 64, 100, 126):
        valid = np.ones((128, 128), dtype=bool)
        valid[:rows] = False
        masked = array_codes(plain, valid)
        assert not masked.flat
        assert min(nearest(array_codes(plain).codes, masked.codes[8 * k :]) for k in range(masked.looks)) == 0


def test_fill_values_below_a_mask_are_no_image():
    """Tiles that share the shape of their missing part, and one fill value, do not look alike by it."""
    valid = np.tri(128, dtype=bool)
    filled = [np.where(valid, tile(seed, 128), 0) for seed in range(40)]
    codes = [array_codes(one, valid) for one in filled]
    assert {one.looks for one in codes} == {1}
    assert found_across(codes[:20], codes[20:]) == []


def test_looks_of_several_images_are_joined_once_each():
    one, other = array_codes(tile(1, 64)), array_codes(tile(2, 64))
    flat = array_codes(np.full((64, 64), 7, dtype=np.uint16))
    both = phash.joined_codes([one, other, one, flat])
    assert both.looks == 2
    assert both.codes.tolist() == [*one.codes.tolist(), *other.codes.tolist()]
    assert both.confirming.tolist() == [*one.confirming.tolist(), *other.confirming.tolist()]
    assert not both.flat
    assert phash.joined_codes([flat, flat]).flat


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
    assert array_codes(np.where(lone, tile(1, 64), 0), lone).flat
    assert is_flat(np.zeros((5, 7), dtype=np.uint8))


def test_the_least_of_the_eight_codes_is_canonical():
    """Without noise, all eight orientations share it."""
    seen = {int(array_codes(turned).canonical) for turned in phash.orientations(tile(5)[0])}
    assert len(seen) == 1


def test_golden_codes_hold_and_a_moved_bit_is_refused(monkeypatch):
    check_golden()
    for at in (0, 1):
        moved = {}
        for name, pair in phash._GOLDEN.items():
            both = [list(codes) for codes in pair]
            both[at][3] ^= 8
            moved[name] = both
        with monkeypatch.context() as patch:
            patch.setattr(phash, "_GOLDEN", moved)
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
    with pytest.raises(InputError, match="60000 x 60000 cells in 1 bands are more than 1,073,741,824"):
        image_codes(tmp_path / "bomb.tif")


def test_wrong_arrays_are_refused():
    with pytest.raises(ValueError, match="at least one cell"):
        to_8bit(np.zeros((0, 5)))
    with pytest.raises(ValueError, match="8-bit"):
        phash.codes_of(tile(1)[0])
