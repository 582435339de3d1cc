"""Edges of boxes as smooth curves on the ellipsoid.

An edge of a box is the image of a straight line in the box's own system: a parallel, a meridian, or whatever its
projection makes of it. It is kept as a chain of cubic pieces in geocentric x, y, z (metres), halved until each one is
within 0.03 mm of the true curve. All later work needs no projection, and knows neither poles nor an antimeridian.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from geoeval.errors import InputError
from geoeval.model import FloatArray, IntArray

#: WGS 84.
SEMI_MAJOR = 6_378_137.0
FLATTENING = 1 / 298.257223563
ECCENTRICITY2 = FLATTENING * (2 - FLATTENING)

#: Furthest that a piece may be from the curve that it stands for, in metres.
PIECE_ERROR = 3e-5

#: A jump of a projection that is left as it is, in metres: inverses fall back on another formula at a pole or origin.
JUMP_ERROR = 5e-4

_NODES = np.array([-1.0, -0.5, 0.5, 1.0])
_TO_CUBIC = np.linalg.inv(np.vander(_NODES, increasing=True))
_CHECKS = np.array([0.0, -0.79, 0.79])
_LONG_M = 200_000.0
_MOST_HALVINGS = 14
_CHUNK = 100_000

#: From positions in a box's own system to longitude and latitude: box, x, y -> degrees.
Place = Callable[[IntArray, FloatArray, FloatArray], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """Pieces of the edges of boxes: south, east, north, west, counter-clockwise in each box's own system.

    Parameters
    ----------
    start
        (4 boxes + 1,) first piece of each edge.
    cubic
        (pieces, 4, 3) coefficients of u⁰ to u³ for u in [-1, 1], in metres.
    radius
        (pieces,) radius of a ball around the point at u = 0 that holds the piece.
    """

    start: IntArray
    cubic: FloatArray
    radius: FloatArray


def geocentric(lon: FloatArray, lat: FloatArray) -> FloatArray:
    """Geocentric x, y, z in metres of positions in degrees.

    Examples
    --------
    >>> (geocentric(np.array([0.0, 90.0]), np.array([0.0, 0.0])).round(3) + 0.0).tolist()
    [[6378137.0, 0.0, 0.0], [0.0, 6378137.0, 0.0]]
    """
    at_lon, at_lat = np.radians(lon), np.radians(lat)
    sine, cosine = np.sin(at_lat), np.cos(at_lat)
    across = SEMI_MAJOR / np.sqrt(1 - ECCENTRICITY2 * sine**2)
    return np.stack(
        [across * cosine * np.cos(at_lon), across * cosine * np.sin(at_lon), across * (1 - ECCENTRICITY2) * sine], -1
    )


def geographic(at: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Longitude and latitude in degrees of points that lie on the ellipsoid.

    Examples
    --------
    >>> lon, lat = geographic(geocentric(np.array([-179.5]), np.array([89.0])))
    >>> round(float(lon[0]), 9), round(float(lat[0]), 9)
    (-179.5, 89.0)
    """
    flat = np.hypot(at[..., 0], at[..., 1]) * (1 - ECCENTRICITY2)
    return np.degrees(np.arctan2(at[..., 1], at[..., 0])), np.degrees(np.arctan2(at[..., 2], flat))


def edge_curves(bounds: FloatArray, place: Place, name: Callable[[int], str]) -> Curves:
    """The edges of some boxes of one system.

    Parameters
    ----------
    bounds
        (boxes, 4) least x, least y, most x, most y.
    place
        Longitude and latitude of positions.
    name
        What to call a box in a message.

    Raises
    ------
    InputError
        Where an edge leaves the area in which its projection is defined, or jumps there.
    """
    chunks = [
        _chunk_curves(bounds[first : first + _CHUNK], first, place, name) for first in range(0, len(bounds), _CHUNK)
    ]
    if not chunks:
        return Curves(np.zeros(1, dtype=np.int64), np.zeros((0, 4, 3)), np.zeros(0))
    count = np.concatenate([counts for counts, _ in chunks])
    cubic = np.concatenate([part for _, part in chunks])
    radius = np.linalg.norm(cubic[:, 1:], axis=2).sum(axis=1)
    return Curves(np.concatenate([[0], np.cumsum(count)]).astype(np.int64), cubic, radius)


def _chunk_curves(
    bounds: FloatArray, first: int, place: Place, name: Callable[[int], str]
) -> tuple[IntArray, FloatArray]:
    """Pieces of each edge, and their cubics in order."""
    x0, y0, x1, y1 = bounds.T
    corner = np.stack([np.stack([x0, x1, x1, x0], 1), np.stack([y0, y0, y1, y1], 1)], 2)
    begin = corner.reshape(-1, 2)
    step = (np.roll(corner, -1, axis=1) - corner).reshape(-1, 2)
    box = np.repeat(np.arange(first, first + len(bounds)), 4)

    def points(edge: IntArray, middle: FloatArray, half: FloatArray, u: FloatArray) -> FloatArray:
        t = (middle[:, None] + half[:, None] * u).reshape(-1)
        many = np.repeat(edge, len(u))
        at = begin[many] + step[many] * t[:, None]
        # The last corner as given, so that neighbours share it to the last bit.
        at = np.where((t == 1.0)[:, None], begin[many] + step[many], at)
        lon, lat = place(np.repeat(box[edge], len(u)), at[:, 0], at[:, 1])
        lost = ~(np.isfinite(lon) & np.isfinite(lat))
        if lost.any():
            bad = many[int(np.flatnonzero(lost)[0])]
            raise InputError(
                f"{name(int(box[bad]))}: the bounds reach outside of the area where their system is defined; "
                "is the declared system the right one?"
            )
        return geocentric(lon, lat).reshape(len(edge), len(u), 3)

    edge = np.arange(len(begin))
    middle, half = np.full(len(edge), 0.5), np.full(len(edge), 0.5)
    done: list[tuple[IntArray, FloatArray, FloatArray]] = []
    for _ in range(_MOST_HALVINGS):
        cubic = np.einsum("kn,enx->ekx", _TO_CUBIC, points(edge, middle, half, _NODES))
        good = _error(cubic, points(edge, middle, half, _CHECKS[:1]), _CHECKS[:1]) <= PIECE_ERROR
        long = np.flatnonzero(good & (np.linalg.norm(cubic[:, 1], axis=1) > _LONG_M / 2))
        if len(long):
            seen = points(edge[long], middle[long], half[long], _CHECKS[1:])
            good[long] = _error(cubic[long], seen, _CHECKS[1:]) <= PIECE_ERROR
        done.append((edge[good], middle[good], cubic[good]))
        edge, middle, half = edge[~good], middle[~good], half[~good] / 2
        edge, middle = np.tile(edge, 2), np.concatenate([middle - half, middle + half])
        half = np.tile(half, 2)
        if not len(edge):
            break
    if len(edge):
        cubic = np.einsum("kn,enx->ekx", _TO_CUBIC, points(edge, middle, half, _NODES))
        jump = _error(cubic, points(edge, middle, half, _CHECKS), _CHECKS) > JUMP_ERROR
        done.append((edge[~jump], middle[~jump], cubic[~jump]))
        edge = edge[jump]
    if len(edge):
        raise InputError(
            f"{name(int(box[edge.min()]))}: an edge jumps in its own system and cannot be followed (an interrupted "
            "projection, or the border between two datum transformations); cut the box there, or give it in EPSG:4326"
        )
    edge, middle = np.concatenate([d[0] for d in done]), np.concatenate([d[1] for d in done])
    order = np.lexsort((middle, edge))
    return np.bincount(edge, minlength=len(begin)), np.concatenate([d[2] for d in done])[order]


def _error(cubic: FloatArray, seen: FloatArray, u: FloatArray) -> FloatArray:
    """Greatest distance of each cubic from points of its curve."""
    fitted = np.einsum("ekx,nk->enx", cubic, np.vander(u, 4, increasing=True))
    worst: FloatArray = np.linalg.norm(fitted - seen, axis=2).max(axis=1)
    return worst
