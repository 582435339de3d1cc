"""Exact distance of boxes: the closest approach of their edges, measured as a geodesic.

Up to 100 km the places that are closest by a straight line through the Earth are the closest by geodesic as well, to a
part in 10⁷. Beyond, stretches of both edges are halved until none can hold a shorter geodesic than the shortest found.
How far a length can dip below its values at the ends of a stretch follows from its second derivative, at most
``speed² / distance + bend`` on a surface of positive curvature.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyproj
from numpy.typing import NDArray

from geoeval.model import FloatArray, IntArray
from geoeval.splits.box_curves import geocentric, geographic

if TYPE_CHECKING:
    from geoeval.splits.boxes import Boxes

_FAR_M = 100_000.0
_RELATIVE = 3e-7
_MOST_RADIUS = 6_400_000.0


def distance_of(boxes: Boxes, i: IntArray, j: IntArray) -> FloatArray:
    """Geodesic distance in metres between pairs of boxes; 0 where they touch or overlap."""
    from geoeval.splits._box_kernels import closest_of

    frame, curves = boxes.frame, boxes.curves
    shapes = (frame, boxes.bounds, boxes.system, curves.start, boxes.orientation)
    chord, a, b = closest_of(shapes, (curves.cubic, curves.radius), i, j)
    out = np.zeros(len(i))
    along = np.isnan(chord)
    if along.any():
        one, two = frame[i[along]], frame[j[along]]
        above = one[:, 2] > two[:, 3]
        start, end = np.where(above, two[:, 3], one[:, 3]), np.where(above, one[:, 2], two[:, 2])
        out[along] = _length(geocentric(np.zeros(len(start)), start), geocentric(np.zeros(len(end)), end))
    apart = np.flatnonzero(~along & (chord > 0))
    out[apart] = _length(a[apart], b[apart])
    for k in apart[chord[apart] > _FAR_M].tolist():
        out[k] = _far(boxes, int(i[k]), int(j[k]), float(out[k]))
    return out


def _length(a: FloatArray, b: FloatArray) -> FloatArray:
    """Geodesic distances of points on the ellipsoid."""
    lon_a, lat_a = geographic(a)
    lon_b, lat_b = geographic(b)
    return np.asarray(pyproj.Geod(ellps="WGS84").inv(lon_a, lat_a, lon_b, lat_b)[2], dtype=np.float64)


def _far(boxes: Boxes, i: int, j: int, best: float) -> float:
    """Least geodesic between the edges of two boxes that are far apart, no greater than one that was found."""
    cubic, radius = boxes.curves.cubic, boxes.curves.radius
    own, other = _facing(boxes, i, j)
    middle = np.linalg.norm(cubic[own, 0][:, None] - cubic[other, 0][None, :], axis=2)
    chord = np.maximum(middle - radius[own][:, None] - radius[other][None, :], 0)
    # No geodesic is shorter than an arc of the largest radius of curvature over the same chord.
    least = 2 * _MOST_RADIUS * np.arcsin(np.minimum(chord / (2 * _MOST_RADIUS), 1))
    first, second = np.nonzero(least < best)
    p, q = own[first], other[second]
    u, v = np.tile([-1.0, 1.0], (len(p), 1)), np.tile([-1.0, 1.0], (len(q), 1))
    while len(p):
        ends_p, ends_q = _points(cubic, p, u), _points(cubic, q, v)
        corner = np.stack([_length(ends_p[:, s], ends_q[:, t]) for s in (0, 1) for t in (0, 1)])
        lowest = corner.min(axis=0)
        best = min(best, float(lowest.min()))
        speed_p, bend_p = _derivatives(cubic, p, u)
        speed_q, bend_q = _derivatives(cubic, q, v)
        # No place of a stretch is further from one of its ends than half of its length.
        reach = lowest - (speed_p + speed_q) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            dip_p = (speed_p**2 / reach + bend_p) / 8
            dip_q = (speed_q**2 / reach + bend_q) / 8
        near = reach <= 0
        least = np.where(near, 0.0, np.maximum(lowest - dip_p - dip_q, reach))
        kept = least < best * (1 - _RELATIVE)
        first = ((near & (speed_p >= speed_q)) | (~near & (dip_p >= dip_q)))[kept]
        p, q, u, v = _halved(p[kept], q[kept], u[kept], v[kept], first)
    return best


def _facing(boxes: Boxes, i: int, j: int) -> tuple[IntArray, IntArray]:
    """Pieces of the edges that can be closest: of two boxes between meridians only the facing meridians."""
    from geoeval.splits._box_kernels import share_longitude

    frame, start = boxes.frame, boxes.curves.start
    if boxes.orientation[i] == 0 and boxes.orientation[j] == 0 and not share_longitude(frame, i, j):
        east = (frame[j, 0] - frame[i, 0] - frame[i, 1]) % 360 <= (frame[i, 0] - frame[j, 0] - frame[j, 1]) % 360
        e, f = (4 * i + 1, 4 * j + 3) if east else (4 * i + 3, 4 * j + 1)
        return np.arange(start[e], start[e + 1]), np.arange(start[f], start[f + 1])
    return np.arange(start[4 * i], start[4 * i + 4]), np.arange(start[4 * j], start[4 * j + 4])


def _points(cubic: FloatArray, p: IntArray, u: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("pkx,pek->pex", cubic[p], u[..., None] ** np.arange(4)))


def _derivatives(cubic: FloatArray, p: IntArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Greatest first and second derivatives over stretches of curve, times their length and its square."""
    size = u[:, 1] - u[:, 0]
    bend = np.stack([2 * cubic[p, 2] + 6 * u[:, e, None] * cubic[p, 3] for e in (0, 1)])
    most = np.linalg.norm(bend, axis=2).max(axis=0)
    middle = u.mean(axis=1)[:, None]
    slope = cubic[p, 1] + 2 * middle * cubic[p, 2] + 3 * middle**2 * cubic[p, 3]
    return (np.linalg.norm(slope, axis=1) + most * size / 2) * size, most * size**2


def _halved(
    p: IntArray, q: IntArray, u: FloatArray, v: FloatArray, first: NDArray[np.bool_]
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Every pair of stretches twice, each with one half of the first or of the second stretch."""
    u_twice, v_twice = np.concatenate([u, u]), np.concatenate([v, v])
    n = len(p)
    for stretch, which in ((u, first), (v, ~first)):
        twice = u_twice if stretch is u else v_twice
        row = np.flatnonzero(which)
        middle = stretch[row].mean(axis=1)
        twice[row, 1] = middle
        twice[n + row, 0] = middle
    return np.tile(p, 2), np.tile(q, 2), u_twice, v_twice
