"""Spatial blocks: the clusters of layers that name none."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from geoeval.errors import ConfigError, InputError
from geoeval.model import ObjectArray

_GRID = re.compile(r"(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>[a-z]*)", re.IGNORECASE)
_PER_UNIT = {"m": 1.0, "km": 1000.0, "px": 1.0}
_BLOCKS = 100


def auto_side(bounds: Sequence[float]) -> float:
    """Side of the blocks where none was declared: about a hundred of them over the bounding box of the reference.

    √(area / 100), rounded down to 1, 2 or 5 × 10ⁿ. Where the box has no area, a tenth of its length; where it is a
    single point or empty (NaN), 1.

    Parameters
    ----------
    bounds
        Least x, least y, most x, most y, in metres or pixels.

    Examples
    --------
    >>> auto_side((0, 0, 3000, 3000))
    200.0
    >>> auto_side((5, 5, 5, 5))
    1.0
    """
    x0, y0, x1, y1 = (float(value) for value in bounds)
    width, height = x1 - x0, y1 - y0
    if math.isnan(width) or math.isnan(height):
        return 1.0
    if not (math.isfinite(width) and math.isfinite(height)) or width < 0 or height < 0:
        raise InputError(f"bounds must be finite and ordered (x0, y0, x1, y1), got {tuple(bounds)!r}")
    side = math.sqrt(width * height / _BLOCKS) or max(width, height) / math.sqrt(_BLOCKS)
    return _one_two_five(side) if side > 0 else 1.0


def _one_two_five(value: float) -> float:
    """Largest 1, 2 or 5 × 10ⁿ that is not above the value."""
    # Twelve digits, so that 99.99999999999999 is 100.
    rounded = float(f"{value:.11e}")
    exponent = math.floor(math.log10(rounded))
    steps = [float(f"{step}e{power}") for power in (exponent - 1, exponent, exponent + 1) for step in (1, 2, 5)]
    return max(step for step in steps if step <= rounded)


def block_names(x: ArrayLike, y: ArrayLike, side: float) -> ObjectArray:
    """Name of the block in which each point lies: ``"x<floor(x/side)>y<floor(y/side)>"``.

    Parameters
    ----------
    x, y
        (points,) coordinates in the unit of ``side``. They are rounded to 1e-6 first, so that a point on an edge does
        not change its block with the last bit.
    side
        Length of a block's side, above 0.

    Examples
    --------
    >>> block_names([0.0, 99.9, -0.5], [0.0, 100.0, 250.0], 100.0).tolist()
    ['x0y0', 'x0y1', 'x-1y2']
    """
    if not (side > 0 and math.isfinite(side)):
        raise ConfigError(f"the side of a block must be above 0 and finite, got {side!r}")
    column = _block(x, side)
    row = _block(y, side)
    cells, inverse = np.unique(np.stack([column, row], axis=1), axis=0, return_inverse=True)
    names = np.empty(len(cells), dtype=np.object_)
    names[:] = [f"x{c}y{r}" for c, r in cells.tolist()]
    return names[inverse.reshape(-1)]


def _block(values: ArrayLike, side: float) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    at = np.floor(np.round(np.asarray(values, dtype=np.float64).reshape(-1), 6) / side)
    if not np.isfinite(at).all():
        wrong = int(np.flatnonzero(~np.isfinite(at))[0])
        raise InputError(f"point {wrong}: a block needs finite coordinates; drop or repair the feature")
    return at.astype(np.int64)


def parse_grid(text: str, unit: str = "m") -> float | None:
    """Side of the blocks that a text such as ``grid:500m`` declares; None for ``grid:auto``.

    Parameters
    ----------
    text
        ``"grid:auto"``, or a length in m, km or px; the leading ``grid:`` may be left out.
    unit
        Unit of the coordinates, ``"m"`` or ``"px"``: a length in the other is refused.

    Raises
    ------
    ConfigError
        Where the text has no unit, an unknown or unfitting one, or is not above 0.

    Examples
    --------
    >>> parse_grid("grid:0.5km")
    500.0
    >>> parse_grid("64px", unit="px")
    64.0
    >>> parse_grid("grid:auto") is None
    True
    """
    body = text.strip().removeprefix("grid:").strip()
    if body.lower() == "auto":
        return None
    example = "'grid:64px' or 'grid:auto'" if unit == "px" else "'grid:500m', 'grid:0.5km' or 'grid:auto'"
    found = _GRID.fullmatch(body)
    if found is None:
        raise ConfigError(f"cluster: cannot read {text!r} as a grid; write {example}")
    given = found["unit"].lower()
    if given not in _PER_UNIT:
        said = f"unit {found['unit']!r} is not known" if given else "the unit is missing"
        raise ConfigError(f"cluster: {text!r}: {said}; write {example}")
    if (given == "px") != (unit == "px"):
        raise ConfigError(f"cluster: {text!r} is in {given}, but the coordinates are in {unit}; write {example}")
    side = float(found["number"]) * _PER_UNIT[given]
    if not side > 0:
        raise ConfigError(f"cluster: {text!r}: the side of a block must be above 0; write {example}")
    return side
