"""Perceptual hashes of rasters, from a recipe that is versioned and checked.

Recipe        each band is stretched from its 2nd to its 98th percentile to 0..255 (so a 16-bit tile does not clip to a
              constant), cells without data get the median of the band, the bands are averaged, and pHash takes the
              8 x 8 lowest frequencies.
Confirmation  a second hash of the same image (dHash: which cells of a 9 x 8 thumbnail are darker than the next one) has
              to agree where the first one is off by more than the radius.
Masks         values that a mask hides are looked at as well, where they are not all alike: a mask over a copy does not
              make it another image. Such an image has two looks.
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
from geoeval.model import FloatArray
from geoeval.splits.image_reading import PIXEL_LIMIT, REDUCED_ABOVE, read_image

UIntArray = NDArray[np.uint64]
ByteArray = NDArray[np.uint8]

#: Number of the recipe; it goes up whenever a code could change.
RECIPE_VERSION = 1

#: What codes depend on. Codes from two recipes that differ must not be compared.
RECIPE: Mapping[str, Any] = {
    "algorithm": "imagehash.phash",
    "recipe": RECIPE_VERSION,
    "bits": 64,
    "hash_size": 8,
    "highfreq_factor": 4,
    "stretch_percentiles": (2, 98),
    "orientations": 8,
    "confirming": "imagehash.dhash",
    "reduced_above_pixels": REDUCED_ABOVE,
    "looks": "as masked, and without the mask where it hides more than one value",
    "versions": {name: version(name) for name in ("imagehash", "pillow", "numpy", "scipy")},
}

_FLAT_DEVIATION = 4.0
_LEAST_VALID = 0.05
_THUMBNAIL = 32

#: Codes of the golden images, in the eight orientations, and their second codes.
_GOLDEN: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "blobs": (
        (
            0x93936C6C6C727C64,
            0xC63939C639D829CE,
            0xC6C6393939272D39,
            0x936C6C936C8D7893,
            0xC03F3FC63A3BC4C0,
            0x95956A6C6F91916A,
            0x956A6A936E6C9195,
            0xC0C03F393BC6C43F,
        ),
        (
            0xF8F8F8F8F8F8F8F8,
            0xE0E0E0E0E0E0E0E0,
            0xE0E0E0E0E0E0E0E0,
            0xF8F8F8F8F8F8F8F8,
            0xC0C0C0C0C0C0C0C0,
            0xFCFCFCFCFCF8FCF8,
            0xF8FCF8FCFCFCFCFC,
            0xC0C0C0C0C0C0C0C0,
        ),
    ),
    "wedge": (
        (
            0xD57A3D154AA550F8,
            0x80D56AB71F0F2752,
            0x822B6A4A1FF0A7AD,
            0xD7813FE24A5A7207,
            0x85CB65F369B448B4,
            0xD06132592C5E3F5E,
            0xD09E32A62CA1BFE1,
            0x8734670C790BFA4B,
        ),
        (
            0x4A370FC7E1F8FEFF,
            0x0080E0701C071304,
            0x0413071C70E08000,
            0xFFFEF8E1C70F374A,
            0xDD6FF7BFDBEDFEF7,
            0x1080482402100904,
            0x0409100224488010,
            0xF7FEEDDBBFF76FDD,
        ),
    ),
    "fields": (
        (
            0xB307839A1D4AF4EC,
            0xE6ADD6314AE1A156,
            0xE652D6CE4A1EA1A9,
            0xB3F883641FB4F403,
            0xB307839A1D4BF4E8,
            0xE6ADD6314AE1A156,
            0xE652D6CE4A1EA1A9,
            0xB3F883641FB4F403,
        ),
        (
            0xD8D806003E1BD999,
            0x666427837F9FE4E4,
            0xE4E49F7F83276466,
            0x99D91B3E0006D8D8,
            0xD8D806013E1BD999,
            0x646427837B9FE4E4,
            0xE4E49F7B83276464,
            0x99D91B3E0106D8D8,
        ),
    ),
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


def to_8bit(bands: NDArray[Any], valid: NDArray[np.bool_] | None = None) -> ByteArray:
    """The image that is hashed: bands stretched, averaged, and rounded.

    Parameters
    ----------
    bands
        (bands, rows, columns) or (rows, columns), any real type. Values that are not finite count as without data.
    valid
        (bands, rows, columns) or (rows, columns), False where there are no data.

    Examples
    --------
    >>> to_8bit(np.array([[300, 300, 5400, 5400]], dtype=np.uint16)).tolist()
    [[0, 0, 255, 255]]
    >>> to_8bit(np.full((1, 3), 7)).tolist()
    [[0, 0, 0]]
    """
    stack = np.asarray(bands)
    stack = stack[None] if stack.ndim == 2 else stack
    if stack.ndim != 3 or not stack.size:
        raise ValueError(f"bands must be (bands, rows, columns) with at least one cell, got shape {stack.shape}")
    seen = np.ones(stack.shape, dtype=bool) if valid is None else np.broadcast_to(valid, stack.shape)
    total = np.zeros(stack.shape[1:])
    for band, has_data in zip(stack, seen, strict=True):
        total += _stretched(np.asarray(band, dtype=np.float64), has_data)
    return np.floor(total / len(stack) + 0.5).astype(np.uint8)


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
    >>> hidden[:60] = False
    >>> seen, masked = array_codes(ground), array_codes(ground, hidden)
    >>> seen.looks, masked.looks, (masked.codes[8:] == seen.codes).all()
    (1, 2, np.True_)
    """
    unmasked = bands if valid is not None and hides_something(bands, valid) else None
    return _codes_of_looks(bands, valid, unmasked)


def _codes_of_looks(bands: NDArray[Any], valid: NDArray[np.bool_] | None, unmasked: NDArray[Any] | None) -> ImageCodes:
    looks = [_look(to_8bit(bands, valid), 1.0 if valid is None else float(np.mean(valid)))]
    if unmasked is not None:
        looks.append(_look(to_8bit(unmasked), 1.0))
    return joined_codes(looks)


def _look(image: ByteArray, share: float) -> ImageCodes:
    return ImageCodes(codes_of(image), confirming_codes_of(image), share < _LEAST_VALID or is_flat(image))


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


def hides_something(bands: NDArray[Any], valid: NDArray[np.bool_]) -> bool:
    """True where a mask hides values that are not all alike, as fill values would be."""
    stack = np.asarray(bands)
    stack = stack[None] if stack.ndim == 2 else stack
    for band, has_data in zip(stack, np.broadcast_to(valid, stack.shape), strict=True):
        hidden = band[~has_data]
        hidden = hidden[np.isfinite(hidden)]
        if hidden.size and hidden.min() != hidden.max():
            return True
    return False


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
    image = read_image(path, pixel_limit)
    return _codes_of_looks(image.bands, image.valid, image.unmasked)


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
        moved = int(np.bitwise_count(np.stack([found.codes, found.confirming]) ^ known).sum())
        if moved:
            raise GeoevalError(
                f"perceptual hash: {moved} bits of the golden image {name!r} differ from recipe {RECIPE_VERSION} under "
                f"{dict(RECIPE['versions'])}; codes made here cannot be compared with others; install tested versions"
            )


def golden_images() -> dict[str, NDArray[np.uint16]]:
    """Images made by integer arithmetic alone, the same on every machine."""
    row, column = np.mgrid[0:96, 0:96].astype(np.int64)
    blobs = 20_000_000 // (400 + (row - 30) ** 2 + 2 * (column - 60) ** 2)
    wedge = np.where(row * 3 > column * 2 + 40, 2600, 300) + (row * column) // 9
    fields = 300 + 5100 * (((row // 17) * 7 + (column // 23) * 5 + (row // 17) * (column // 23) * 3) % 11) // 11
    return {
        "blobs": blobs.astype(np.uint16),
        "wedge": wedge.astype(np.uint16),
        "fields": np.stack([fields, fields.T + row]).astype(np.uint16),
    }


def _stretched(band: FloatArray, has_data: NDArray[np.bool_]) -> FloatArray:
    """One band from 0 to 255 in whole steps; constant bands are 0 throughout."""
    seen = has_data & np.isfinite(band)
    if not seen.any():
        return np.zeros(band.shape)
    low, middle, high = np.percentile(band[seen], [2, 50, 98])
    if high <= low:
        # A few bright things on an even ground: all there is to see lies beyond the percentiles.
        low, high = band[seen].min(), band[seen].max()
    if high <= low:
        return np.zeros(band.shape)
    filled = np.where(seen, band, middle)
    stretched: FloatArray = np.floor(np.clip((filled - low) / (high - low), 0, 1) * 255 + 0.5)
    return stretched


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
