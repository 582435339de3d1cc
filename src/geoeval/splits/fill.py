"""Fill values that no mask declares: even parts of an image that reach its edge and are no picture.

A copy that lost its nodata tag keeps its fill. Looked at as it is, it would show the shape of what is missing, which
unrelated tiles of one flight share. A part of one value, in all bands, that is connected to the edge and covers at
least 4 % of the image is therefore without data, tag or no tag; so is what surrounds it within 16 cells and 24/255 of
the range, as JPEG leaves it, and every other cell of that value.

Clipped light  is even, too, but ragged: cells that are not part of an even square of 5 x 5 do not count.
Small parts    up to a tenth of the image, masked or not, hardly change it; such an image is looked at both ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]

#: The least share of an image that an even part covers.
LEAST_FILL = 0.04

#: How far from the fill value, as a share of the range, and how many cells away from it, JPEG leaves its noise.
NOISE_SHARE = 24 / 255
NOISE_REACH = 16

#: Missing parts between these shares may be looked at as well: they do not make an image what it is.
SMALL = (0.02, 0.1)

_SQUARE = 5

#: Hidden values are looked at where they spread by this share of what the shown ones do.
LEAST_SPREAD = 0.1


def find_fill(bands: NDArray[Any], valid: BoolArray | None = None) -> BoolArray | None:
    """Even parts of an image that reach its edge and cover enough of it; None where there are none.

    Parameters
    ----------
    bands
        (bands, rows, columns), any real type.
    valid
        (bands, rows, columns) or (rows, columns), False where a mask has spoken already.

    Examples
    --------
    >>> ground = np.add.outer(np.arange(40), np.arange(40))[None] + 1
    >>> find_fill(ground) is None
    True
    >>> ground[:, :, :10] = 0
    >>> find_fill(ground).mean().item()
    0.25
    """
    rows, columns = bands.shape[1:]
    known: BoolArray | None = None if valid is None else np.asarray(np.broadcast_to(valid, bands.shape).all(axis=0))
    row, column = _edge(rows, columns)
    if known is not None:
        row, column = row[known[row, column]], column[known[row, column]]
    cells = np.zeros((rows, columns), dtype=bool)
    for value in _common(bands[:, row, column].T, LEAST_FILL * (rows + columns)):
        part = _even_part(bands, value, known)
        if part is not None:
            cells |= part
    return cells if cells.any() else None


def _edge(rows: int, columns: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of the outermost cells, each once."""
    row, column = np.arange(rows), np.arange(columns)
    sides = [(np.full(columns, at), column) for at in sorted({0, rows - 1})]
    sides += [(row[1:-1], np.full(max(rows - 2, 0), at)) for at in sorted({0, columns - 1})]
    return np.concatenate([one for one, _ in sides]), np.concatenate([other for _, other in sides])


def _common(edge: NDArray[Any], least: float) -> list[NDArray[Any]]:
    """The two commonest cells of an edge, where there are enough of them."""
    if not len(edge):
        return []
    packed = np.ascontiguousarray(edge).view(np.dtype((np.void, edge.dtype.itemsize * edge.shape[1]))).ravel()
    _, first, count = np.unique(packed, return_index=True, return_counts=True)
    best = np.argsort(-count, kind="stable")[:2]
    return [edge[first[at]] for at in best if count[at] >= least and np.isfinite(edge[first[at]]).all()]


def _even_part(bands: NDArray[Any], value: NDArray[Any], known: BoolArray | None) -> BoolArray | None:
    from scipy import ndimage

    same = (bands == value[:, None, None]).all(axis=0)
    if known is not None:
        same &= known
    if same.mean() < LEAST_FILL:
        return None
    # Beyond the edge there is more of the same.
    padded = np.pad(same, _SQUARE, mode="edge")
    even = ndimage.binary_opening(padded, np.ones((_SQUARE, _SQUARE), dtype=bool))[_SQUARE:-_SQUARE, _SQUARE:-_SQUARE]
    part, _ = ndimage.label(even)
    reached = np.unique(np.concatenate([part[0], part[-1], part[:, 0], part[:, -1]]))
    body = np.isin(part, reached[reached > 0])
    if body.mean() < LEAST_FILL:
        return None
    close = np.ones_like(same) if known is None else known.copy()
    for band, one in zip(bands, value, strict=True):
        shown = band[np.isfinite(band)]
        room = NOISE_SHARE * (float(shown.max()) - float(shown.min()))
        close &= (band >= float(one) - room) & (band <= float(one) + room)
    found: BoolArray = ndimage.binary_dilation(body, iterations=NOISE_REACH, mask=close) | same
    return found


class Hidden:
    """Values of each band that a mask hides and shows: all of them, or those at every n-th row and column."""

    def __init__(self, bands: int, every: int = 1) -> None:
        self.every = every
        self.hidden: list[list[NDArray[Any]]] = [[] for _ in range(bands)]
        self.shown: list[list[NDArray[Any]]] = [[] for _ in range(bands)]

    def see(self, values: NDArray[Any], valid: NDArray[np.bool_], top: int = 0, left: int = 0) -> None:
        """Take in a window that begins at some row and column of the image."""
        down, across = (slice(-at % self.every, None, self.every) for at in (top, left))
        for at, (band, shown) in enumerate(zip(values[:, down, across], valid[:, down, across], strict=True)):
            if not shown.all():
                self.hidden[at].append(band[~shown])
            self.shown[at].append(band[shown])

    @property
    def worth_a_look(self) -> bool:
        """True where a picture is hidden, or so little that it does not matter what it is."""
        hidden, shown = (
            [np.concatenate(part) if part else np.zeros(0) for part in side] for side in (self.hidden, self.shown)
        )
        n = sum(map(len, hidden))
        if not n:
            return False
        share = n / (n + sum(map(len, shown)))
        return SMALL[0] <= share < SMALL[1] or hides_structure(hidden, shown)


def hides_structure(hidden: Sequence[NDArray[Any]], shown: Sequence[NDArray[Any]]) -> bool:
    """True where the values that a mask hides are a picture rather than fill and its noise.

    Their 2nd to 98th percentiles then spread by a tenth of what the shown ones do, or by anything where none is shown.

    Parameters
    ----------
    hidden, shown
        Values of each band that a mask hides and shows.

    Examples
    --------
    >>> seen = np.arange(100.0)
    >>> hides_structure([np.arange(4.0)], [seen]), hides_structure([np.arange(50.0)], [seen])
    (False, True)
    """
    return any(
        (spread := _spread(below)) > 0 and spread >= LEAST_SPREAD * _spread(above)
        for below, above in zip(hidden, shown, strict=True)
    )


def is_mask_like(band: NDArray[Any]) -> bool:
    """True where two values make up half of a band or more, as in masks and smooth edges of masks.

    Examples
    --------
    >>> is_mask_like(np.array([0, 255, 255, 0, 128])), is_mask_like(np.arange(9))
    (True, False)
    """
    _, count = np.unique(band, return_counts=True)
    return bool(2 * np.sort(count)[-2:].sum() >= band.size)


def _spread(values: NDArray[Any]) -> float:
    known = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    if not known.size:
        return 0.0
    low, high = np.percentile(known, [2, 98])
    return float(high - low)
