"""Fill values, palettes, stacked pictures: copies that lost a tag are found, tiles of one shape are not alike."""

from __future__ import annotations

import io

import numpy as np
import pytest
import rasterio
from affine import Affine
from PIL import Image

from geoeval.splits import SplitSettings, image_reading
from geoeval.splits.fill import find_fill, hides_structure, is_mask_like
from geoeval.splits.hamming import Confirmation, hamming_across
from geoeval.splits.phash import MOST_LOOKS, ImageCodes, array_codes, image_codes
from geoeval.splits.stretch import stretched, to_8bit

PLACE = {"crs": "EPSG:32633", "transform": Affine(2, 0, 500_000, 0, -2, 5_000_000)}


def tile(seed, side=256):
    """An 8-bit tile from 20 to 250 with a spectrum as of land (1/f)."""
    generator = np.random.Generator(np.random.PCG64(seed))
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.fftfreq(side)[None])
    frequency[0, 0] = 1
    waves = np.fft.fft2(generator.normal(size=(side, side))) / frequency
    waves[0, 0] = 0
    ground = np.fft.ifft2(waves).real
    return np.round(20 + 230 * (ground - ground.min()) / np.ptp(ground)).astype(np.uint8)


def write(path, bands, *, mask=None, **more):
    bands = bands[None] if bands.ndim == 2 else bands
    shape = dict(zip(("count", "height", "width"), bands.shape, strict=True))
    with (
        rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True),
        rasterio.open(path, "w", driver="GTiff", dtype=bands.dtype, **shape, **PLACE, **more) as out,
    ):
        out.write(bands)
        if mask is not None:
            out.write_mask(mask)
    return path


def across(first, second):
    """Pairs (k, l) of two lists of codes that the gate finds under the default settings."""
    both, held = [*first, *second], SplitSettings()
    looks = np.array([one.looks for one in both])
    codes, confirming = (
        np.array([np.pad(getattr(one, name), (0, 8 * (MOST_LOOKS - one.looks))) for one in both])
        for name in ("codes", "confirming")
    )
    how = Confirmation(confirming, np.ones(len(both), dtype=bool), held.confirmed_radius, held.confirming_bits)
    split = np.repeat([0, 1], [len(first), len(second)])
    found = hamming_across(codes, split, held.radius, looks=looks, confirmation=how, witnesses=10_000)
    live = [not one.flat for one in both]
    at = zip(found.i.tolist(), found.j.tolist(), strict=True)
    return sorted((i, j - len(first)) for i, j in at if live[i] and live[j])


def swath(side, share):
    along = np.arange(side)[None] + 0.3 * np.arange(side)[:, None]
    return along < np.quantile(along, share)


HOW = {
    "tif": lambda path, image: write(path, image.transpose(2, 0, 1)),
    "png": lambda path, image: Image.fromarray(image).save(path, "PNG"),
    "jpeg 90": lambda path, image: Image.fromarray(image).save(path, "JPEG", quality=90),
    "jpeg 75": lambda path, image: Image.fromarray(image).save(path, "JPEG", quality=75),
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("share", [0.05, 0.1, 0.3, 0.5])
def test_a_copy_that_lost_its_nodata_tag_is_found(tmp_path, how, share):
    """Every copy, and no other tile, although all lack the same part."""
    tagged, plain = [], []
    for seed in range(12):
        shown = np.where(swath(256, share), 0, tile(seed))
        image = np.stack([shown, shown // 2 + 40 * (shown > 0), shown]).astype(np.uint8)
        tagged.append(image_codes(write(tmp_path / "a.tif", image, nodata=0)))
        HOW[how](tmp_path / "copy", image.transpose(1, 2, 0))
        plain.append(image_codes(tmp_path / "copy"))
    assert across(tagged, plain) == [(k, k) for k in range(12)]


def shapes(side):
    row, column = np.mgrid[0:side, 0:side] - (side - 1) / 2
    return {
        "half": column + row / 1000,
        "diagonal": row + column + row / 1000,
        "circle": -np.hypot(row, column),
        "frame": -np.maximum(abs(row), abs(column)) + row / 10_000,
    }


@pytest.mark.parametrize("shape", shapes(8))
@pytest.mark.parametrize("how", ["tagged", "plain", "jpeg below a mask"])
@pytest.mark.parametrize("share", [0.45, 0.2])
def test_unrelated_tiles_that_lack_the_same_part_are_not_alike(tmp_path, shape, how, share):
    order = shapes(128)[shape]
    valid = order > np.quantile(order, 1 - share)
    codes = []
    for seed in range(30):
        shown = np.where(valid, tile(seed, 128), 0).astype(np.uint8)
        if how == "jpeg below a mask":
            more = {"compress": "jpeg", "photometric": "YCBCR", "mask": valid}
            codes.append(image_codes(write(tmp_path / "a.tif", np.stack([shown] * 3), **more)))
        else:
            codes.append(array_codes(shown, valid if how == "tagged" else None))
    assert across(codes[:15], codes[15:]) == []
    assert all(one.flat for one in codes) == (share < 0.4)


def test_fill_is_even_reaches_the_edge_and_is_large():
    ground = tile(1)[None]
    assert find_fill(ground) is None
    for at, found in ((slice(0, 20), 0.078), (slice(0, 5), None), (slice(100, 130), None)):
        holed = ground.copy()
        holed[:, at, 0 if at.start else slice(None)] = 7
        if at.start:
            holed[:, at, 100:200] = 7
        cells = find_fill(holed)
        assert (None if cells is None else round(float(cells.mean()), 3)) == found
    # Two collars of different values.
    holed = ground.copy()
    holed[:, :30], holed[:, :, :30] = 0, 255
    assert find_fill(holed)[0, 200]
    assert find_fill(holed)[200, 0]


def test_what_differs_in_one_band_is_no_fill():
    ground = np.stack([tile(1), np.zeros((256, 256), dtype=np.uint8)])
    assert find_fill(ground) is None
    assert find_fill(ground[1:]).all()


def test_hidden_noise_is_no_picture_and_hidden_light_is():
    seen = [np.arange(200)]
    assert not hides_structure([np.arange(5)], seen)
    assert hides_structure([np.arange(50)], seen)
    assert hides_structure([np.arange(2)], [np.zeros(0)])
    assert not hides_structure([np.array([np.nan, np.inf])], seen)
    assert is_mask_like(np.repeat([0, 255], 9))
    assert not is_mask_like(tile(1))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_counting_stretches_as_sorting_does(dtype, share):
    rng = np.random.default_rng(3)
    for most in (1, 2, 9, 200, np.iinfo(dtype).max):
        band = rng.integers(0, most, (1, 17, 23)).astype(dtype)
        valid = rng.random(band.shape) < share
        assert stretched(band, valid).tolist() == stretched(band.astype(float), valid).tolist()


@pytest.mark.parametrize("ending", ["png", "tif"])
def test_a_permuted_palette_is_the_picture_it_shows(tmp_path, ending):
    grey = tile(3, 128)
    order = np.random.default_rng(0).permutation(256).astype(np.uint8)
    image = Image.fromarray(order[grey], mode="P")
    image.putpalette(np.repeat(np.argsort(order).astype(np.uint8), 3).tolist())
    image.save(tmp_path / f"p.{ending}")
    found = image_codes(tmp_path / f"p.{ending}")
    assert found.codes.tolist() == array_codes(grey).codes.tolist()


def test_colours_of_a_palette_are_averaged_rather_than_their_numbers(tmp_path, monkeypatch):
    grey = tile(3, 128)
    order = np.random.default_rng(0).permutation(256).astype(np.uint8)
    image = Image.fromarray(order[grey], mode="P")
    image.putpalette(np.repeat(np.argsort(order).astype(np.uint8), 3).tolist())
    image.save(tmp_path / "p.png")
    monkeypatch.setattr(image_reading, "REDUCED_ABOVE", 1024)
    read = image_reading.read_image(tmp_path / "p.png")
    expected = grey.reshape(32, 4, 32, 4).mean(axis=(1, 3))
    assert read.bands.tolist() == [expected.tolist()] * 3


def test_a_colour_that_cannot_be_seen_is_without_data(tmp_path):
    image = Image.fromarray(tile(3, 64)).convert("P")
    image.save(tmp_path / "p.png", transparency=bytes([255] * 100 + [0] * 20 + [255] * 136))
    read = image_reading.read_image(tmp_path / "p.png")
    shown = np.asarray(image)
    assert read.valid.tolist() == [((shown < 100) | (shown >= 120)).tolist()] * 3


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_white_that_is_least_is_turned_round(tmp_path, dtype):
    grey = tile(4, 128)
    white = (grey.astype(np.int64) * -1 + 255).astype(dtype)
    found = image_codes(write(tmp_path / "w.tif", white, photometric="MINISWHITE"))
    assert np.bitwise_count(found.codes[0] ^ array_codes(grey).codes[0]) <= 2


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_picture_that_is_one_band_of_several_is_found(at):
    for n in (2, 3):
        bands = np.stack([tile(100 + n * k, 128) for k in range(n)])
        bands[at % n] = tile(7, 128)
        assert across([array_codes(tile(7, 128))], [array_codes(bands)]) == [(0, 0)]


def test_a_copy_of_one_band_of_a_colour_image_is_found():
    own = [np.stack([0.6 * tile(10 * k) + 0.4 * tile(10 * k + j) for j in range(1, 4)]) for k in range(20)]
    whole = [array_codes(one.astype(np.uint8)) for one in own]
    for band in range(3):
        alone = [array_codes(one[band].astype(np.uint8)) for one in own]
        assert across(whole, alone) == [(k, k) for k in range(20)]


def test_looks_end_at_four_and_bands_that_look_alike_are_one():
    assert array_codes(np.stack([tile(k, 64) for k in range(9)])).looks == MOST_LOOKS
    assert array_codes(np.stack([tile(1, 64)] * 3)).looks == 1
    mask = np.where(swath(64, 0.4), 0, 255).astype(np.uint8)
    assert array_codes(np.stack([tile(1, 64), tile(1, 64), tile(1, 64), mask])).looks == 1


@pytest.mark.parametrize("most", [1024, 2**22])
def test_alpha_that_is_a_picture_is_looked_at(tmp_path, monkeypatch, most):
    monkeypatch.setattr(image_reading, "REDUCED_ABOVE", most)
    decoy, copy = tile(1, 128), tile(2, 128)
    found = image_codes(write(tmp_path / "a.tif", np.stack([decoy, copy]), photometric="MINISBLACK", alpha="YES"))
    assert across([found], [array_codes(decoy), array_codes(copy)]) == [(0, 0), (0, 1)]
    mask = np.where(swath(128, 0.4), 0, 255).astype(np.uint8)
    plain = image_codes(write(tmp_path / "m.tif", np.stack([decoy, mask]), photometric="MINISBLACK", alpha="YES"))
    assert isinstance(plain, ImageCodes)
    assert across([plain], [array_codes(mask)]) == []


def test_a_black_frame_over_a_copy_is_seen_through():
    framed = []
    for k in range(12):
        image = np.zeros((256, 256), dtype=np.uint8)
        image[4:-4, 4:-4] = tile(k)[4:-4, 4:-4]
        framed.append(array_codes(image))
    assert across([array_codes(tile(k)) for k in range(12)], framed) == [(k, k) for k in range(12)]


def test_jpeg_of_a_whole_picture_has_no_fill():
    stream = io.BytesIO()
    Image.fromarray(to_8bit(tile(5))).save(stream, "JPEG", quality=50)
    assert find_fill(np.asarray(Image.open(stream))[None]) is None
