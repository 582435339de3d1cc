"""Images for hashing: equal to a plain oracle whatever the windows, flat in memory, damage is refused."""

from __future__ import annotations

import io
import itertools
import math
import struct
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import rasterio
from affine import Affine
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from geoeval.errors import InputError
from geoeval.splits import image_reading
from geoeval.splits.image_reading import block_means, read_image, reduction

PLACE = {"crs": "EPSG:32633", "transform": Affine(2, 0, 500_000, 0, -2, 5_000_000)}


def read_bands(path, *limit):
    image = read_image(path, *limit)
    return image.bands, image.valid


def write(path, bands, **more):
    count, height, width = bands.shape
    shape = {"driver": "GTiff", "count": count, "height": height, "width": width, "dtype": bands.dtype}
    with rasterio.open(path, "w", **{**shape, **PLACE, **more}) as out:
        out.write(bands)
    return path


def oracle(bands, valid, factor):
    """Block means by plain loops: down each column of a block, then across."""
    count, height, width = bands.shape
    shape = (count, math.ceil(height / factor), math.ceil(width / factor))
    means, known = np.zeros(shape), np.zeros(shape, dtype=bool)
    for b, i, j in np.ndindex(shape):
        rows = range(i * factor, min(height, (i + 1) * factor))
        columns = range(j * factor, min(width, (j + 1) * factor))
        total, n = 0.0, 0
        for column in columns:
            down = 0.0
            for row in rows:
                value = float(bands[b, row, column])
                if valid[b, row, column] and math.isfinite(value):
                    down += value
                    n += 1
            total += down
        if n:
            means[b, i, j], known[b, i, j] = total / n, True
    return means, known


def values_of(seed, shape, dtype):
    rng = np.random.default_rng(seed)
    if dtype == "float32":
        out = (rng.normal(size=shape) * 10.0 ** rng.integers(-3, 6, shape)).astype(dtype)
        out[rng.random(shape) < 0.1] = rng.choice([np.nan, np.inf, -np.inf])
        return out
    return rng.integers(0, 40 if dtype == "uint8" else 60_000, shape).astype(dtype)


def small(monkeypatch, most, window=64):
    """Make few pixels count as many, and windows small."""
    monkeypatch.setattr(image_reading, "REDUCED_ABOVE", most)
    monkeypatch.setattr(image_reading, "_WINDOW_VALUES", window)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 10**6),
    bands=st.integers(1, 3),
    height=st.integers(1, 40),
    width=st.integers(1, 40),
    dtype=st.sampled_from(["uint8", "uint16", "int16", "float32"]),
    nodata=st.sampled_from([None, 0, 7]),
    most=st.integers(1, 200),
    window=st.sampled_from([1, 16, 100, 10_000]),
)
def test_reduced_reads_are_equal_to_plain_loops(tmp_path, seed, bands, height, width, dtype, nodata, most, window):
    values = values_of(seed, (bands, height, width), dtype)
    path = write(tmp_path / "a.tif", values, nodata=nodata)
    with pytest.MonkeyPatch.context() as patch:
        small(patch, most, window)
        factor = reduction(width, height)
        got, seen = read_bands(path)
    valid = np.ones(values.shape, dtype=bool) if nodata is None else values != nodata
    if factor == 1:
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, values)
        np.testing.assert_array_equal(seen, valid)
        return
    means, known = oracle(values, valid, factor)
    assert got.tobytes() == means.tobytes()
    np.testing.assert_array_equal(seen, known)


@given(width=st.integers(1, 10**6), height=st.integers(1, 10**5))
def test_the_factor_is_the_least_that_suffices(width, height):
    def left(factor):
        return math.ceil(width / factor) * math.ceil(height / factor)

    factor = reduction(width, height)
    assert left(factor) <= 2**22
    assert factor == 1 or left(factor - 1) > 2**22


def test_tiles_strips_and_windows_give_the_same_bytes(tmp_path, monkeypatch):
    values = values_of(1, (2, 200, 170), "float32")
    layouts = [{"tiled": True, "blockxsize": 16, "blockysize": 32}, {"blockysize": 7}, {"interleave": "pixel"}]
    paths = [write(tmp_path / f"{at}.tif", values, compress="deflate", **more) for at, more in enumerate(layouts)]
    seen = set()
    for path, window, cache in itertools.product(paths, (1, 500, 10**6), (4096, 2**27)):
        small(monkeypatch, 300, window)
        monkeypatch.setattr(image_reading, "_CACHE_BYTES", cache)
        seen.add(tuple(part.tobytes() for part in read_bands(path)))
    assert len(seen) == 1


def test_an_alpha_band_is_a_mask_and_no_band(tmp_path, monkeypatch):
    image = values_of(2, (4, 20, 20), "uint8")
    image[3] = np.where(np.arange(20) < 9, 0, 255)
    Image.fromarray(image.transpose(1, 2, 0), "RGBA").save(tmp_path / "a.png")
    small(monkeypatch, 25)
    means, known = read_bands(tmp_path / "a.png")
    expected = oracle(image[:3], np.broadcast_to(image[3] > 0, (3, 20, 20)), 4)
    assert means.tobytes() == expected[0].tobytes()
    np.testing.assert_array_equal(known, expected[1])
    assert not known[:, :, :2].any()


@pytest.mark.parametrize("most", [25, 2**22])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_what_a_mask_hides_is_read_as_if_there_were_none(tmp_path, monkeypatch, dtype, most):
    """Every second pixel is hidden, so that every block is half seen."""
    values = values_of(3, (2, 23, 30), dtype)
    mask = np.indices((23, 30)).sum(axis=0) % 2 == 0
    plain, masked = tmp_path / "plain.tif", tmp_path / "masked.tif"
    write(plain, values)
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        write(masked, values)
        with rasterio.open(masked, "r+") as out:
            out.write_mask(mask)
    small(monkeypatch, most, 100)
    alone, image = read_image(plain), read_image(masked)
    assert alone.unmasked is None
    np.testing.assert_array_equal(
        np.where(np.isfinite(image.unmasked), image.unmasked, -1),
        np.where(alone.valid & np.isfinite(alone.bands), alone.bands, -1),
    )
    if most == 25:
        expected = oracle(values, np.broadcast_to(mask, values.shape), reduction(30, 23))
        assert image.bands.tobytes() == expected[0].tobytes()


@pytest.mark.parametrize("most", [25, 2**22])
def test_a_mask_over_one_fill_value_hides_nothing(tmp_path, monkeypatch, most):
    values = values_of(3, (2, 20, 20), "uint8")
    values[:, :7] = 41
    small(monkeypatch, most)
    image = read_image(write(tmp_path / "a.tif", values, nodata=41))
    assert image.unmasked is None
    assert not image.valid[:, 0].any()


def test_a_block_without_data_is_without_data_and_sums_out_of_range_are_too():
    values = np.full((1, 2, 4), 1e308)
    means, known = block_means(values, np.array([[[1, 1, 0, 0], [1, 1, 0, 0]]], dtype=bool), 2)
    assert (means.tolist(), known.tolist()) == ([[[0.0, 0.0]]], [[[False, False]]])


def test_whole_numbers_beyond_the_type_of_the_file_do_not_wrap():
    values = np.full((1, 16, 16), 255, dtype=np.uint8)
    assert block_means(values, np.ones(values.shape, dtype=bool), 16)[0].tolist() == [[[255.0]]]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of a process is read from /proc")
def test_memory_does_not_grow_with_the_image(tmp_path):
    """400 million pixels; the writer is another process, so that only the reader's peak counts."""
    writer = """
import sys
import numpy as np, rasterio
from affine import Affine
rows, columns = np.arange(1000, dtype=np.uint8)[:, None], (np.arange(20_000) // 70).astype(np.uint8)
data = rows // 5 + columns
with rasterio.open(sys.argv[1], "w", driver="GTiff", width=20_000, height=20_000, count=1, dtype="uint8",
                   compress="deflate", zlevel=1, crs="EPSG:32633", transform=Affine(2, 0, 0, 0, -2, 0)) as out:
    for top in range(0, 20_000, 1000):
        out.write(data, 1, window=((top, top + 1000), (0, 20_000)))
"""
    reader = """
import sys
from pathlib import Path
from geoeval.splits.image_reading import read_image
image = read_image(sys.argv[1])
means, known = image.bands, image.valid
# What getrusage calls the peak counts the process that forked this one, too.
lines = Path("/proc/self/status").read_text().splitlines()
peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
print(*means.shape, known.all(), peak // 1024)
"""
    path = str(tmp_path / "large.tif")
    subprocess.run([sys.executable, "-c", writer, path], check=True)
    done = subprocess.run([sys.executable, "-c", reader, path], check=True, capture_output=True, text=True)
    *found, mebibytes = done.stdout.split()
    assert found == ["1", "2000", "2000", "True"]
    assert int(mebibytes) < 400


def test_the_cache_of_gdal_is_put_back(tmp_path):
    from rasterio.env import get_gdal_config

    with rasterio.Env():
        before = get_gdal_config("GDAL_CACHEMAX")
        path = write(tmp_path / "a.tif", values_of(1, (1, 9, 9), "uint8"))
        read_bands(path)
        (tmp_path / "text.tif").write_text("no image")
        with pytest.raises(InputError):
            read_bands(tmp_path / "text.tif")
        assert get_gdal_config("GDAL_CACHEMAX") == before


def encoded(image, kind, **options):
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, kind, **options)
    return stream.getvalue()


@pytest.mark.parametrize("most", [2**22, 1000])
@pytest.mark.parametrize("kept", [0.3, 0.6, 0.95])
@pytest.mark.parametrize("kind", ["png", "jpg", "progressive", "webp", "jp2", "strips", "deflate", "tiles"])
def test_a_truncated_image_is_refused(tmp_path, monkeypatch, kind, kept, most):
    image = values_of(5, (200, 200, 3), "uint8")
    path = tmp_path / "a.img"
    if kind in ("strips", "deflate", "tiles"):
        more = {"strips": {}, "deflate": {"compress": "deflate"}, "tiles": {"tiled": True, "blockxsize": 64}}[kind]
        write(path, image.transpose(2, 0, 1), **more, **({"blockysize": 64} if kind == "tiles" else {}))
        whole = path.read_bytes()
    else:
        names = {"png": "PNG", "jpg": "JPEG", "progressive": "JPEG", "webp": "WEBP", "jp2": "JPEG2000"}
        more = {"progressive": {"progressive": True}, "webp": {"lossless": True}}.get(kind, {})
        whole = encoded(image, names[kind], **more)
    path.write_bytes(whole)
    small(monkeypatch, most, 2**16)
    assert read_bands(path)[1].all()
    path.write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(InputError, match=r"cannot be read as an image: .*is it whole\?"):
        read_bands(path)


def test_threads_refuse_what_is_truncated_and_put_the_cache_back(tmp_path):
    """GDAL's settings are held by thread or by process; a reader in a thread must not depend on which."""
    from rasterio.env import get_gdal_config

    before = get_gdal_config("GDAL_CACHEMAX")
    whole = encoded(values_of(5, (200, 200, 3), "uint8"), "PNG")
    (tmp_path / "whole.png").write_bytes(whole)
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])

    def read(name):
        try:
            return read_bands(tmp_path / name)[0].shape
        except InputError:
            return "refused"

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(read, ["whole.png", "cut.png"] * 20))
    assert found == [(3, 200, 200), "refused"] * 20
    assert get_gdal_config("GDAL_CACHEMAX") == before


def test_a_png_whose_rows_run_out_is_refused(tmp_path):
    """Its chunks are complete and their sums right; the rows packed in them are fewer than the header says."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 11_000, 11_000, 8, 0, 0, 0, 0))
    path = tmp_path / "hollow.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(9))) + chunk(b"IEND", b""))
    assert path.stat().st_size < 90
    with pytest.raises(InputError, match="Not enough image data"):
        read_bands(path)


def test_headers_are_held_to_limits_before_anything_is_decoded(tmp_path):
    path = write(tmp_path / "a.tif", values_of(1, (3, 20, 10), "uint8"))
    with pytest.raises(InputError, match="10 x 20 cells in 3 bands are more than 599 values"):
        read_bands(path, 599)
    assert read_bands(path, 600)[0].shape == (3, 20, 10)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(image_reading, "KEPT_LIMIT", 599)
        with pytest.raises(InputError, match="3 bands leave 600 values to be held at once"):
            read_bands(path)
    write(tmp_path / "complex.tif", np.zeros((1, 4, 4), dtype=np.complex64))
    with pytest.raises(InputError, match="complex values cannot be hashed"):
        read_bands(tmp_path / "complex.tif")
    (tmp_path / "empty.tif").touch()
    with pytest.raises(InputError, match="0 bytes"):
        read_bands(tmp_path / "empty.tif")
    with pytest.raises(InputError, match="no such file"):
        read_bands(tmp_path / "none.tif")
