"""Bands of an image for its perceptual hash, in memory that does not grow with the image.

Small images   up to 2^22 pixels are read as they are.
Large images   are reduced while they are read: every block of k x k pixels becomes the mean of its valid, finite
               pixels, with the least whole k that leaves at most 2^22 blocks. Sums are float64 and taken in one order
               (down each column of a block, then across), so that neither window nor machine moves a bit.
Colours        of a palette are looked up before anything else is done; where white is least, values are turned round.
Damage         a file that ends before its image does is refused, whatever its format.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.errors import InputError
from geoeval.model import FloatArray
from geoeval.readers.raster_header import strict_decoding
from geoeval.splits.fill import Hidden

#: Most values (width x height x bands) that are decoded of one image.
PIXEL_LIMIT = 2**30

#: Images of more pixels than this are reduced while they are read.
REDUCED_ABOVE = 2**22

#: Most values that are kept of one image, reduced or not.
KEPT_LIMIT = 2**28

#: Values of a window, and bytes of decoded blocks that GDAL keeps.
_WINDOW_VALUES = 2**23
_CACHE_BYTES = 2**27

#: About how many pixels tell whether a mask hides a picture.
_SAMPLE = 2**18


@dataclass(frozen=True, slots=True, eq=False)
class ImageBands:
    """Bands of an image as its mask shows them, and as they are without it.

    Parameters
    ----------
    bands
        (bands, rows, columns) in the file's own type; where reduced, float64 means of what the mask shows.
    valid
        (bands, rows, columns), False where the mask shows no data.
    unmasked
        (bands, rows, columns), the same bands as if there were no mask, not finite where they hold no number; None
        where the mask hides nothing, or a larger part that is fill, as :func:`geoeval.splits.fill.hides_structure` has
        it.
    alpha
        (alpha bands, rows, columns), bands that say how much of a cell is to be seen.
    """

    bands: NDArray[Any]
    valid: NDArray[np.bool_]
    unmasked: NDArray[Any] | None
    alpha: NDArray[Any]


def read_image(path: str | Path, pixel_limit: int = PIXEL_LIMIT) -> ImageBands:
    """Bands of an image, its alpha band apart, and where they hold data; reduced above 2^22 pixels.

    Its header is read first, so that a small file that would unpack to a huge image is refused before it does.

    Parameters
    ----------
    pixel_limit
        Most values (width x height x bands) to decode.

    Returns
    -------
    ImageBands
        A reduced block holds data where one of its pixels does.

    Raises
    ------
    InputError
        Where the file is missing, empty, not a raster, complex-valued, damaged or above the limit.

    Examples
    --------
    >>> read_image("none.tif")
    Traceback (most recent call last):
    geoeval.errors.InputError: 'none.tif': there is no such file; correct the path or leave the sample out
    """
    with opened_image(path, pixel_limit) as (source, bands, factor):
        alphas = _alphas(source)
        if factor > 1:
            return _reduced(source, bands, alphas, factor)
        show = _Shown(source, bands)
        values, valid = show.read(None)
        hidden = Hidden(len(values))
        hidden.see(values, valid)
        return ImageBands(values, valid, values if hidden.worth_a_look else None, _read(source, alphas, None))


@contextmanager
def opened_image(path: str | Path, pixel_limit: int) -> Iterator[tuple[Any, list[int], int]]:
    """An open image, the numbers of its bands, and by how much it is to be reduced."""
    import rasterio
    from rasterio.errors import RasterioError

    name, file = repr(str(path)), Path(path)
    if not file.is_file():
        raise InputError(f"{name}: there is no such file; correct the path or leave the sample out")
    if not file.stat().st_size:
        raise InputError(f"{name}: the image has 0 bytes; fetch it again or leave the sample out")
    try:
        with (
            _process.settled(),
            strict_decoding(),
            rasterio.open(file) as source,
        ):
            yield source, _checked_bands(source, name, pixel_limit), reduction(source.width, source.height)
    except RasterioError as error:
        raise InputError(f"{name}: cannot be read as an image: {error.__cause__ or error}; is it whole?") from error


def reduction(width: int, height: int) -> int:
    """The least whole side of blocks that leaves at most 2^22 of them.

    Examples
    --------
    >>> reduction(2048, 2048), reduction(2049, 2048), reduction(20_000, 20_000)
    (1, 2, 10)
    """
    factor = max(1, math.isqrt(width * height // REDUCED_ABOVE))
    while math.ceil(width / factor) * math.ceil(height / factor) > REDUCED_ABOVE:
        factor += 1
    return factor


def block_means(values: NDArray[Any], valid: NDArray[np.bool_], factor: int) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Means of the valid, finite pixels of blocks, and where there are any; blocks at the edge may be smaller.

    Parameters
    ----------
    values
        (bands, rows, columns), any real type.
    valid
        (bands, rows, columns), False where there are no data.

    Returns
    -------
    tuple of array
        (bands, rows / factor, columns / factor), rounded up. Means without any valid pixel are 0.

    Examples
    --------
    >>> means, seen = block_means(np.array([[[1.0, 3.0, np.nan]]]), np.ones((1, 1, 3), dtype=bool), 2)
    >>> means.tolist(), seen.tolist()
    ([[[2.0, 0.0]]], [[[True, False]]])
    """
    seen = valid & np.isfinite(values) if values.dtype.kind == "f" else valid
    if seen.all():
        rows, columns = (_sizes(n, factor) for n in values.shape[1:])
        count = np.broadcast_to(rows[:, None] * columns, (len(values), len(rows), len(columns)))
    else:
        values = np.where(seen, values, np.zeros((), dtype=values.dtype))
        count = _block_sums(seen, factor)
    # Sums beyond the range of float64 have no mean; such blocks count as without data.
    with np.errstate(over="ignore", invalid="ignore"):
        means = _block_sums(values, factor) / np.maximum(count, 1)
    known = (count > 0) & np.isfinite(means)
    return np.where(known, means, 0.0), known


def _sizes(n: int, factor: int) -> FloatArray:
    """How many of n pixels fall in each block."""
    sizes = np.full(math.ceil(n / factor), float(factor))
    sizes[-1] = n - factor * (len(sizes) - 1)
    return sizes


def _block_sums(values: NDArray[Any], factor: int) -> FloatArray:
    bands, rows, columns = values.shape
    down = np.zeros((bands, math.ceil(rows / factor), columns))
    for offset in range(min(factor, rows)):
        part = values[:, offset::factor]
        down[:, : part.shape[1]] += part
    across = np.zeros((*down.shape[:2], math.ceil(columns / factor)))
    for offset in range(min(factor, columns)):
        part = down[:, :, offset::factor]
        across[:, :, : part.shape[2]] += part
    return across


def _checked_bands(source: Any, name: str, limit: int) -> list[int]:
    """Numbers of the bands to read, once the header promises nothing that cannot be held."""
    width, height = source.width, source.height
    if width * height * source.count > limit:
        raise InputError(
            f"{name}: {width} x {height} cells in {source.count} bands are more than {limit:,} values; "
            "is it a tile? Raise pixel_limit if it is meant to be that large"
        )
    if any(kind.startswith("complex") for kind in source.dtypes):
        raise InputError(f"{name}: complex values cannot be hashed; give amplitudes")
    alphas = _alphas(source)
    bands = [k for k in range(1, source.count + 1) if k not in alphas]
    if not bands:
        raise InputError(f"{name}: the image has no band beside its mask")
    factor = reduction(width, height)
    kept = math.ceil(width / factor) * math.ceil(height / factor) * _Shown(source, bands).count
    if kept > KEPT_LIMIT:
        raise InputError(
            f"{name}: {len(bands)} bands leave {kept:,} values to be held at once, at most {KEPT_LIMIT:,} are; "
            "give fewer bands or a smaller tile"
        )
    return bands


def _read(source: Any, bands: list[int], window: Any) -> NDArray[Any]:
    found: NDArray[Any] = source.read(bands, window=window) if bands else np.zeros((0, 0, 0), dtype=np.uint8)
    return found


def _alphas(source: Any) -> list[int]:
    return [k for k, role in enumerate(source.colorinterp, start=1) if role.name == "alpha"]


class _Shown:
    """Values of an image as they are shown: colours of a palette, and white above black."""

    def __init__(self, source: Any, bands: list[int]) -> None:
        self.source, self.bands = source, bands
        self.white_is_least = source.tags(ns="IMAGE_STRUCTURE").get("MINISWHITE") == "YES"
        self.palette: NDArray[Any] | None = None
        if len(bands) == 1 and source.colorinterp[bands[0] - 1].name == "palette":
            colours = source.colormap(bands[0])
            self.palette = np.zeros((4, max(colours) + 1), dtype=np.uint8)
            self.palette[:, list(colours)] = np.array(list(colours.values())).T

    @property
    def count(self) -> int:
        """How many bands there are to be seen."""
        return len(self.bands) if self.palette is None else 3

    def read(self, window: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Bands and where the mask shows them."""
        values = self.source.read(self.bands, window=window)
        valid = self.source.read_masks(self.bands, window=window) > 0
        if self.palette is not None:
            red, green, blue, opaque = self.palette[:, np.minimum(values[0], self.palette.shape[1] - 1)]
            shown = np.repeat(valid & (opaque > 0)[None], 3, axis=0)
            return np.stack([red, green, blue]), shown
        if self.white_is_least:
            values = ~values if values.dtype.kind in "iu" else -values
        return values, valid


def _reduced(source: Any, bands: list[int], alphas: list[int], factor: int) -> ImageBands:
    from rasterio.windows import Window

    show, wide = _Shown(source, bands), (math.ceil(source.height / factor), math.ceil(source.width / factor))
    means, known = np.zeros((show.count, *wide)), np.zeros((show.count, *wide), dtype=np.bool_)
    alpha, unmasked = np.zeros((len(alphas), *wide)), None
    # An odd step sees both halves of a chequered mask.
    hidden = Hidden(show.count, math.isqrt(source.height * source.width // _SAMPLE) | 1)
    for top, left, rows, columns in _windows(source, show.count, factor):
        window = Window(left, top, columns, rows)
        down, across = (slice(at // factor, math.ceil((at + n) / factor)) for at, n in ((top, rows), (left, columns)))
        values, valid = show.read(window)
        means[:, down, across], known[:, down, across] = block_means(values, valid, factor)
        hidden.see(values, valid, top, left)
        if alphas:
            part = _read(source, alphas, window)
            alpha[:, down, across] = block_means(part, np.ones(part.shape, dtype=np.bool_), factor)[0]
        if unmasked is None and not valid.all():
            unmasked = np.where(known, means, np.nan)
        if unmasked is not None:
            plain, finite = block_means(values, np.ones_like(valid), factor)
            unmasked[:, down, across] = np.where(finite, plain, np.nan)
    return ImageBands(means, known, unmasked if hidden.worth_a_look else None, alpha)


def _windows(source: Any, bands: int, factor: int) -> Iterator[tuple[int, int, int, int]]:
    """Windows of whole blocks (top, left, rows, columns): full rows, unless the tiles of a row overflow the cache."""
    item = max(np.dtype(kind).itemsize for kind in source.dtypes)
    high, wide = source.block_shapes[0]
    columns = _WINDOW_VALUES // (bands * factor)
    if wide < source.width:
        columns = min(columns, _CACHE_BYTES // (2 * high * item * source.count))
    columns = min(max(1, columns // factor) * factor, source.width)
    rows = max(1, _WINDOW_VALUES // (bands * columns * factor)) * factor
    for left in range(0, source.width, columns):
        for top in range(0, source.height, rows):
            yield top, left, min(rows, source.height - top), min(columns, source.width - left)


class _Process:
    """Settings that belong to the process: the first reader makes them, the last one puts back what was there."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.readers = 0
        self.undo = ExitStack()

    @contextmanager
    def settled(self) -> Iterator[None]:
        """Blocks that are never looked at again are not kept, and images without a place pass without a warning."""
        with self.lock:
            if not self.readers:
                self.undo = _settings()
            self.readers += 1
        try:
            yield
        finally:
            with self.lock:
                self.readers -= 1
                if not self.readers:
                    self.undo.close()


def _settings() -> ExitStack:
    from rasterio.env import get_gdal_config, set_gdal_config
    from rasterio.errors import NotGeoreferencedWarning

    undo = ExitStack()
    undo.enter_context(warnings.catch_warnings())
    warnings.simplefilter("ignore", NotGeoreferencedWarning)
    # GDAL would keep decoded blocks in up to 5 % of the machine's memory.
    before = int(get_gdal_config("GDAL_CACHEMAX"))
    undo.callback(set_gdal_config, "GDAL_CACHEMAX", before)
    set_gdal_config("GDAL_CACHEMAX", min(_CACHE_BYTES, before))
    return undo


_process = _Process()
