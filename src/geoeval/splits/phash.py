"""Perceptual hashes of rasters, from a recipe that is versioned and checked.

Recipe        each band is stretched from its 2nd to its 98th percentile to 0..255 (so a 16-bit tile does not clip to a
              constant), cells without data get the median of the band, the bands are averaged, and pHash takes the
              8 x 8 lowest frequencies.
Confirmation  a second hash of the same image (dHash: which cells of a 9 x 8 thumbnail are darker than the next one) has
              to agree where the first one is off by more than the radius.
Fill values   that no mask declares count as without data: :mod:`geoeval.splits.fill`. Without two fifths of its
              cells an image shows what is missing rather than what is there, and counts as flat.
Looks         an image has up to four, each a picture of its own that another image may be a copy of: what the mask
              shows; what it would show without its mask, where that hides a picture or very little; bands that look
              like none of these, in their order; an alpha band that is a picture.
Large images  are reduced by block means while they are read, so that memory does not grow with them.
Orientations  eight codes, one for each flip and rotation; the first is the image as it is. The least of the eight is
              canonical, which serves equality only: near copies may have another least code, so compare all eight.
Flat tiles    hashes of tiles without structure are noise or all alike: :func:`is_flat` finds them, and they are to be
              listed, not linked.
Versions      hash bits move between versions of libraries. Codes are comparable only under an equal :data:`RECIPE`, and
              :func:`check_golden` refuses to work where known images no longer get their known codes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.errors import GeoevalError
from geoeval.splits.fill import LEAST_FILL, SMALL, Hidden, find_fill, is_mask_like
from geoeval.splits.golden import GOLDEN as _GOLDEN
from geoeval.splits.golden import golden_images
from geoeval.splits.image_reading import PIXEL_LIMIT, REDUCED_ABOVE, ImageBands, read_image
from geoeval.splits.stretch import STRETCH, ByteArray, averaged, stretched, to_8bit

UIntArray = NDArray[np.uint64]

#: Number of the recipe; it goes up whenever a code could change.
RECIPE_VERSION = 1

#: Least share of cells with data.
LEAST_VALID = 0.4

#: A band is no look of its own where one before it would find its copies: its first code is within 4 bits, or within 8
#: and the second one within 12.
BAND_ALIKE = (4, 8, 12)

MOST_LOOKS = 4

_FLAT_DEVIATION = 4.0
_THUMBNAIL = 32

#: What codes depend on. Codes from two recipes that differ must not be compared.
RECIPE: Mapping[str, Any] = {
    "algorithm": "imagehash.phash",
    "recipe": RECIPE_VERSION,
    "bits": 64,
    "hash_size": 8,
    "highfreq_factor": 4,
    "stretch_percentiles": STRETCH,
    "orientations": 8,
    "confirming": "imagehash.dhash",
    "reduced_above_pixels": REDUCED_ABOVE,
    "looks": "as masked, unmasked where a picture or little is hidden, bands unlike these, alpha that is a picture",
    "most_looks": MOST_LOOKS,
    "band_alike": BAND_ALIKE,
    "least_fill": LEAST_FILL,
    "least_valid": LEAST_VALID,
    "versions": {name: version(name) for name in ("imagehash", "pillow", "numpy", "scipy")},
}


@dataclass(frozen=True, slots=True, eq=False)
class ImageCodes:
    """The codes of an image, eight for each of its looks, and whether it is too flat for them to mean anything.

    Parameters
    ----------
    codes, confirming
        (8 x looks,) first and second hashes in the eight orientations of each look.
    flat
        True where no look holds enough to be compared; the codes are those of the first look then.
    """

    codes: UIntArray
    confirming: UIntArray
    flat: bool

    @property
    def canonical(self) -> np.uint64:
        """The least of the eight codes of the first look, which serves equality only."""
        return np.uint64(self.codes[:8].min())

    @property
    def looks(self) -> int:
        """How many ways there are to look at the image."""
        return len(self.codes) // 8


def codes_of(image: ByteArray) -> UIntArray:
    """The codes of an 8-bit image in its eight orientations, as 64-bit integers; first that of the image as it is.

    Examples
    --------
    >>> ramp = np.tile(np.arange(64, dtype=np.uint8), (64, 1))
    >>> codes = codes_of(ramp)
    >>> bool(codes[0] == codes_of(np.fliplr(ramp))[2])
    True
    """
    _require_8bit(image)
    return np.array([_phash(turned) for turned in orientations(image)], dtype=np.uint64)


def confirming_codes_of(image: ByteArray) -> UIntArray:
    """The second codes of an 8-bit image in its eight orientations, as :func:`codes_of`.

    Examples
    --------
    >>> ramp = np.tile(np.arange(64, dtype=np.uint8), (64, 1))
    >>> [f"{code:016x}" for code in confirming_codes_of(ramp)[:2].tolist()]
    ['ffffffffffffffff', '0000000000000000']
    """
    _require_8bit(image)
    return np.array([_dhash(turned) for turned in orientations(image)], dtype=np.uint64)


def _require_8bit(image: ByteArray) -> None:
    if image.dtype != np.uint8 or image.ndim != 2:
        raise ValueError(f"image must be 8-bit (rows, columns), got {image.dtype} of shape {image.shape}")


def orientations(image: NDArray[Any]) -> list[NDArray[Any]]:
    """An image turned by 0, 180 degrees and flipped left-right, up-down; then the same four of its transpose.

    Examples
    --------
    >>> [turned.ravel().tolist() for turned in orientations(np.array([[1, 2]]))][:3]
    [[1, 2], [2, 1], [2, 1]]
    """
    return [
        turned for start in (image, image.T) for turned in (start, start[::-1, ::-1], start[:, ::-1], start[::-1, :])
    ]


def is_flat(image: ByteArray) -> bool:
    """True where an 8-bit image has too little structure for its hash to mean anything.

    The deviation of its 32 x 32 thumbnail is then below 4 of 255: constant tiles, and noise that averages out.

    Examples
    --------
    >>> is_flat(np.full((64, 64), 9, dtype=np.uint8))
    True
    >>> is_flat(np.tile(np.arange(64, dtype=np.uint8), (64, 1)))
    False
    """
    from PIL import Image

    small = Image.fromarray(np.ascontiguousarray(image)).resize((_THUMBNAIL, _THUMBNAIL), Image.Resampling.BOX)
    return bool(np.asarray(small, dtype=np.float64).std() < _FLAT_DEVIATION)


def array_codes(bands: NDArray[Any], valid: NDArray[np.bool_] | None = None) -> ImageCodes:
    """Codes of a raster that is in memory; arguments as for :func:`to_8bit`.

    Examples
    --------
    >>> ground = np.add.outer(np.arange(64) ** 2, np.arange(64))
    >>> hidden = np.ones((64, 64), dtype=bool)
    >>> hidden[:30] = False
    >>> seen, masked = array_codes(ground), array_codes(ground, hidden)
    >>> seen.looks, masked.looks, (masked.codes[8:] == seen.codes).all()
    (1, 2, np.True_)
    """
    stack = np.asarray(bands)
    stack = stack[None] if stack.ndim == 2 else stack
    known = np.broadcast_to(True if valid is None else valid, stack.shape)
    hidden = Hidden(len(stack))
    hidden.see(stack, known)
    return _codes_of_looks(ImageBands(stack, known, stack if hidden.worth_a_look else None, stack[:0]))


def _codes_of_looks(image: ImageBands) -> ImageCodes:
    layers, share, looks = _views(image.bands, image.valid)
    if image.unmasked is not None:
        looks += _views(image.unmasked, None)[2]
    if len(layers) > 1:
        looks += _unlike(layers, share, looks)
    if image.alpha.size:
        looks += _unlike(stretched(image.alpha), 1.0, looks)
    found = joined_codes(looks)
    return ImageCodes(found.codes[: 8 * MOST_LOOKS], found.confirming[: 8 * MOST_LOOKS], found.flat)


def _views(bands: NDArray[Any], valid: NDArray[np.bool_] | None) -> tuple[ByteArray, float, list[ImageCodes]]:
    """The stretched bands of what there is to be seen, the share of cells that is, and looks with and without fill."""
    finite = np.isfinite(bands) if bands.dtype.kind == "f" else np.broadcast_to(True, bands.shape)
    seen = finite if valid is None else finite & valid
    # What the mask hides is searched, too, so that a fill value leaves the same cells with its tag and without it.
    cells = find_fill(bands, None if finite.all() else finite)
    rest = seen if cells is None else seen & ~cells
    layers, share = stretched(bands, rest), float(rest.mean())
    looks = [_look(averaged(layers), share)]
    if SMALL[0] <= float(seen.mean()) - share < SMALL[1]:
        looks.append(_look(to_8bit(bands, seen), float(seen.mean())))
    return layers, share, looks


def _unlike(layers: ByteArray, share: float, looks: Sequence[ImageCodes]) -> list[ImageCodes]:
    """Looks of single bands that look like nothing before them."""
    before = [pair for one in looks for pair in zip(one.codes[::8].tolist(), one.confirming[::8].tolist(), strict=True)]
    found: list[ImageCodes] = []
    for band in layers:
        code = _phash(band)
        if any(_alike(band, code, *pair) for pair in before) or is_mask_like(band):
            continue
        look = _look(band, share)
        if not look.flat:
            found.append(look)
            before.append((code, int(look.confirming[0])))
    return found


def _alike(band: ByteArray, code: int, first: int, second: int) -> bool:
    near, far, limit = BAND_ALIKE
    off = (code ^ first).bit_count()
    return off <= near or (off <= far and (_dhash(band) ^ second).bit_count() <= limit)


def _look(image: ByteArray, share: float) -> ImageCodes:
    return ImageCodes(codes_of(image), confirming_codes_of(image), share < LEAST_VALID or is_flat(image))


def joined_codes(images: Sequence[ImageCodes]) -> ImageCodes:
    """All looks of some images of one sample, each once; flat ones only where there are no others."""
    kept = [one for one in images if not one.flat] or list(images[:1])
    pairs = {
        (first.tobytes(), second.tobytes()): (first, second)
        for one in kept
        for first, second in zip(one.codes.reshape(-1, 8), one.confirming.reshape(-1, 8), strict=True)
    }
    firsts, seconds = zip(*pairs.values(), strict=True)
    return ImageCodes(np.concatenate(firsts), np.concatenate(seconds), all(one.flat for one in images))


def image_codes(path: str | Path, *, pixel_limit: int = PIXEL_LIMIT) -> ImageCodes:
    """Codes of an image file, read by :func:`geoeval.splits.image_reading.read_image`.

    Parameters
    ----------
    pixel_limit
        Most values (width x height x bands) to decode.

    Raises
    ------
    InputError
        Where the file is missing, empty, not a raster, complex-valued, damaged or above the limit.
    """
    return _codes_of_looks(read_image(path, pixel_limit))


def check_golden() -> None:
    """Refuse to hash where known images do not get their known codes.

    Raises
    ------
    GeoevalError
        Names the image and the versions in use.
    """
    for name, image in golden_images().items():
        found = array_codes(image)
        known = np.array(_GOLDEN[name], dtype=np.uint64)
        codes = np.stack([found.codes, found.confirming])
        moved = int(np.bitwise_count(codes ^ known).sum()) if codes.shape == known.shape else 64 * codes.size
        if moved:
            raise GeoevalError(
                f"perceptual hash: {moved} bits of the golden image {name!r} differ from recipe {RECIPE_VERSION} under "
                f"{dict(RECIPE['versions'])}; codes made here cannot be compared with others; install tested versions"
            )


def _phash(image: NDArray[Any]) -> int:
    import imagehash
    from PIL import Image

    size, factor = RECIPE["hash_size"], RECIPE["highfreq_factor"]
    return _number(imagehash.phash(Image.fromarray(np.ascontiguousarray(image)), size, factor))


def _dhash(image: NDArray[Any]) -> int:
    import imagehash
    from PIL import Image

    return _number(imagehash.dhash(Image.fromarray(np.ascontiguousarray(image)), RECIPE["hash_size"]))


def _number(found: Any) -> int:
    return int.from_bytes(np.packbits(found.hash.reshape(-1)).tobytes(), "big")
