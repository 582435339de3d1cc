"""Dataset builders that pass the firewall first: an index of chips, and an index of raster patches.

An index names windows; it copies no pixels. Both are sorted by sample and window, so that equal inputs give equal
indexes, and name themselves by a hash.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from geoeval.errors import ConfigError, InputError
from geoeval.evidence.canonical import canonical_bytes, digest
from geoeval.model import FloatArray, IntArray
from geoeval.splits.assets import Frame, asset_path, image_frame
from geoeval.splits.firewall import assert_training_inputs_safe
from geoeval.splits.manifest import Manifest
from geoeval.splits.record import Sample


class Window(NamedTuple):
    """One window of an image: what to read, and where it belongs.

    ``image`` and ``label`` are paths below the root, ``row`` and ``column`` the upper left pixel. ``valid`` is NaN
    where it was not read.
    """

    sample_id: str
    split: str
    image: str
    label: str
    row: int
    column: int
    height: int
    width: int
    valid: float


@dataclass(frozen=True, slots=True, eq=False)
class WindowIndex:
    """Windows of images, one entry a window; a loop over the index gives a :class:`Window` each.

    Parameters
    ----------
    sample_id, split
        (samples,) ids and splits of the samples, ``""`` where none was declared.
    image, label
        (samples,) paths below the root; ``""`` where there is no label.
    sample
        (windows,) which sample a window belongs to.
    row, column
        (windows,) upper left pixel.
    height, width
        (windows,) pixels; windows at an edge may be smaller.
    valid
        (windows,) share of pixels with data; NaN where it was not read.
    protected_sha256
        The protected manifest that the inputs were held against.
    unproven
        What stayed undecided between the two and was accepted; ``""`` where all was decided.

    Examples
    --------
    >>> column = np.array([0, 32])
    >>> same, zero = np.array([32, 32]), np.array([0, 0])
    >>> paths = ("raw/a.tif",), ("labels/a.geojson",)
    >>> index = WindowIndex(("a",), ("train",), *paths, zero, zero, column, same, same, np.ones(2), "0" * 64)
    >>> [(one.image, one.row, one.column, one.width) for one in index]
    [('raw/a.tif', 0, 0, 32), ('raw/a.tif', 0, 32, 32)]
    """

    sample_id: tuple[str, ...]
    split: tuple[str, ...]
    image: tuple[str, ...]
    label: tuple[str, ...]
    sample: IntArray
    row: IntArray
    column: IntArray
    height: IntArray
    width: IntArray
    valid: FloatArray
    protected_sha256: str
    unproven: str = ""

    def __len__(self) -> int:
        return len(self.sample)

    def __iter__(self) -> Iterator[Window]:
        places = np.stack([self.row, self.column, self.height, self.width], axis=1).tolist()
        for at, (row, column, height, width), valid in zip(self.sample.tolist(), places, self.valid, strict=True):
            names = self.sample_id[at], self.split[at], self.image[at], self.label[at]
            yield Window(*names, row, column, height, width, float(valid))

    @property
    def sha256(self) -> str:
        """The hash of the whole index."""
        windows = np.stack([self.sample, self.row, self.column, self.height, self.width], axis=1)
        head = [self.sample_id, self.split, self.image, self.label, self.protected_sha256, self.unproven]
        return digest(canonical_bytes([head, windows]))


def chip_index(
    inputs: Sequence[Sample | Mapping[str, Any]],
    protected_manifest: Manifest,
    *,
    sha256: str,
    root: Path,
    size: int = 512,
    overlap: int = 0,
    **firewall: Any,
) -> WindowIndex:
    """Chips for training a detector or a segmenter, each with its sample's label.

    Windows of the processed image; of the raw one where a sample names no processed image.

    Parameters
    ----------
    inputs, protected_manifest, root
        As for :func:`geoeval.splits.firewall.assert_training_inputs_safe`, which is called first. Samples of all
        development roles pass, ``val`` and ``calibration`` included: choose by ``split`` what to train on.
    sha256
        The published hash of the protected manifest.
    size, overlap
        Side of a chip and what neighbours share, in pixels. Chips at an edge are cut.
    firewall
        Further arguments of the firewall.

    Returns
    -------
    WindowIndex
        ``for window in index`` gives a :class:`Window` each.

    Raises
    ------
    ConfigError
        The size or the overlap makes no sense.
    InputError
        A sample without a label or without an image file.
    LeakageError
        As the firewall, whose other refusals apply too.
    """
    if size < 1:
        raise ConfigError(f"size must be 1 pixel or more, got {size}")
    if not 0 <= overlap < size:
        raise ConfigError(f"overlap must lie in [0, size), got {overlap} of {size} pixels")
    table = assert_training_inputs_safe(inputs, protected_manifest, sha256=sha256, root=root, **firewall).table
    for row in range(table.n):
        if table.text("label", row) is None:
            raise InputError(f"training input {table.text('sample_id', row)!r}: a chip needs a label, found none")
    images = [_image(table, row, ("processed_image", "raw_image")) for row in range(table.n)]
    windows = []
    for sample, path in enumerate(images):
        frame = image_frame(asset_path(root, path, path), path)
        windows += [(sample, *one, np.nan) for one in _grid(frame, size, size - overlap, whole=False)]
    return _index(table, images, windows, protected_manifest)


def patch_index(
    inputs: Sequence[Sample | Mapping[str, Any]],
    protected_manifest: Manifest,
    *,
    sha256: str,
    root: Path,
    size: int = 256,
    min_valid: float = 0.5,
    **firewall: Any,
) -> WindowIndex:
    """Patches for training on rasters: whole windows that hold enough data.

    Windows of the raw image; of the processed one where a sample names no raw image.

    Parameters
    ----------
    inputs, protected_manifest, root
        As for :func:`geoeval.splits.firewall.assert_training_inputs_safe`, which is called first. Samples of all
        development roles pass, ``val`` and ``calibration`` included: choose by ``split`` what to train on.
    sha256
        The published hash of the protected manifest.
    size
        Side of a patch, in pixels; what does not fill a patch at an edge is left out.
    min_valid
        Least share of pixels with data.

    Returns
    -------
    WindowIndex
        ``for window in index`` gives a :class:`Window` each.

    Raises
    ------
    ConfigError
        The size or the share makes no sense.
    InputError
        A sample without an image file.
    LeakageError
        As the firewall, whose other refusals apply too.
    """
    if size < 1 or not 0 <= min_valid <= 1:
        raise ConfigError(f"size must be 1 pixel or more and min_valid lie in [0, 1], got {size} and {min_valid}")
    table = assert_training_inputs_safe(inputs, protected_manifest, sha256=sha256, root=root, **firewall).table
    images = [_image(table, row, ("raw_image", "processed_image")) for row in range(table.n)]
    windows = []
    for sample, path in enumerate(images):
        file = asset_path(root, path, path)
        grid = _grid(image_frame(file, path), size, size, whole=True)
        shares = _valid_shares(file, grid)
        windows += [(sample, *one, share) for one, share in zip(grid, shares, strict=True) if share >= min_valid]
    return _index(table, images, windows, protected_manifest)


def _image(table: Any, row: int, names: Sequence[str]) -> str:
    found = next((path for name in names if (path := table.text(name, row)) is not None), None)
    if found is None:
        raise InputError(f"training input {table.text('sample_id', row)!r}: names no image file, so it has no windows")
    return str(found)


def _grid(frame: Frame, size: int, step: int, *, whole: bool) -> list[tuple[int, int, int, int]]:
    """Row, column, height and width of windows, row by row."""
    out = []
    for row in range(0, frame.height, step):
        for column in range(0, frame.width, step):
            height, width = min(size, frame.height - row), min(size, frame.width - column)
            if not whole or (height == size and width == size):
                out.append((row, column, height, width))
    return out


def _valid_shares(path: Path, grid: Sequence[tuple[int, int, int, int]]) -> list[float]:
    import rasterio
    from rasterio.errors import NotGeoreferencedWarning
    from rasterio.windows import Window as Pixels

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        with rasterio.open(path) as image:
            return [
                round(float((image.dataset_mask(window=Pixels(column, row, width, height)) > 0).mean()), 9)
                for row, column, height, width in grid
            ]


def _index(table: Any, images: Sequence[str], windows: Sequence[Any], manifest: Manifest) -> WindowIndex:
    whole = np.array([one[:5] for one in windows], dtype=np.int64).reshape(-1, 5)
    return WindowIndex(
        sample_id=table.ids(range(table.n)),
        split=tuple(table.text("split", row) or "" for row in range(table.n)),
        image=tuple(images),
        label=tuple(table.text("label", row) or "" for row in range(table.n)),
        sample=whole[:, 0],
        row=whole[:, 1],
        column=whole[:, 2],
        height=whole[:, 3],
        width=whole[:, 4],
        valid=np.array([one[5] for one in windows], dtype=np.float64),
        protected_sha256=manifest.sha256,
        unproven=table.notes.get("unproven", ""),
    )
