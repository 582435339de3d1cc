"""Closest approach of two boxes on the ellipsoid, by their edges. Imported lazily, because it compiles.

Distances here are straight through the Earth (chords), which order places as geodesics do to a part in 10⁷ up to
100 km. Two pieces are halved until the closest approach of their chords, less what the curves can bulge towards each
other along that line, cannot beat what was found. Only the bulge along the line counts: the common fall of the surface
below the chords does not, so a few halvings give hundredths of a millimetre.
"""

from __future__ import annotations

import math

import numpy as np

from geoeval.geometry._kernel import kernel
from geoeval.model import FloatArray, IntArray

Point = tuple[float, float, float]

#: What a minimum may be off, and below which two edges touch (pieces are within 0.03 mm of their curves), in metres.
_TOLERANCE = 1e-5
TOUCHING = 1e-4

#: Meridian and transverse radii of curvature lie between these, in metres.
LEAST_RADIUS = 6_335_000.0
MOST_RADIUS = 6_400_000.0

#: 1 - e² of WGS 84.
_AXES2 = 0.9933056200098586


@kernel
def at(cubic: FloatArray, p: int, u: float) -> Point:
    return (
        cubic[p, 0, 0] + u * (cubic[p, 1, 0] + u * (cubic[p, 2, 0] + u * cubic[p, 3, 0])),
        cubic[p, 0, 1] + u * (cubic[p, 1, 1] + u * (cubic[p, 2, 1] + u * cubic[p, 3, 1])),
        cubic[p, 0, 2] + u * (cubic[p, 1, 2] + u * (cubic[p, 2, 2] + u * cubic[p, 3, 2])),
    )


@kernel
def _bend(cubic: FloatArray, p: int, u: float) -> Point:
    return (
        2 * cubic[p, 2, 0] + 6 * u * cubic[p, 3, 0],
        2 * cubic[p, 2, 1] + 6 * u * cubic[p, 3, 1],
        2 * cubic[p, 2, 2] + 6 * u * cubic[p, 3, 2],
    )


@kernel
def minus(a: Point, b: Point) -> Point:
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@kernel
def dot(a: Point, b: Point) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def cross(a: Point, b: Point) -> Point:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@kernel
def _clamped(x: float) -> float:
    return min(max(x, 0.0), 1.0)


@kernel
def _chords(p0: Point, p1: Point, q0: Point, q1: Point) -> tuple[float, float]:
    """Where two straight segments come closest, as shares of their lengths."""
    d, e, r = minus(p1, p0), minus(q1, q0), minus(p0, q0)
    a, c, f, g = dot(d, d), dot(d, r), dot(e, e), dot(e, r)
    if a < 1e-18 and f < 1e-18:
        return 0.0, 0.0
    if a < 1e-18:
        return 0.0, _clamped(g / f)
    if f < 1e-18:
        return _clamped(-c / a), 0.0
    b = dot(d, e)
    s = 0.0
    if a * f - b * b > 1e-12 * a * f:
        s = _clamped((b * g - c * f) / (a * f - b * b))
    t = (b * s + g) / f
    if t < 0.0:
        return _clamped(-c / a), 0.0
    if t > 1.0:
        return _clamped((b - c) / a), 1.0
    return s, t


@kernel
def _bulges(cubic: FloatArray, p: int, u0: float, u1: float, n: Point) -> tuple[float, float]:
    """How far a stretch of curve can be from its chord: along a direction, and in all."""
    a, b = _bend(cubic, p, u0), _bend(cubic, p, u1)
    share = (u1 - u0) * (u1 - u0) / 8
    return max(abs(dot(a, n)), abs(dot(b, n))) * share, math.sqrt(max(dot(a, a), dot(b, b))) * share


@kernel
def _refine(
    cubic: FloatArray, p: int, q: int, best: float, enough: float, stack: FloatArray
) -> tuple[float, float, float]:
    """Closest approach of two pieces where it beats ``best``: distance and both parameters."""
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = -1.0, 1.0, -1.0, 1.0
    n, at_u, at_v = 1, 0.0, 0.0
    while n and best > enough:
        n -= 1
        u0, u1, v0, v1 = stack[n, 0], stack[n, 1], stack[n, 2], stack[n, 3]
        p0, p1, q0, q1 = at(cubic, p, u0), at(cubic, p, u1), at(cubic, q, v0), at(cubic, q, v1)
        s, t = _chords(p0, p1, q0, q1)
        w = (
            p0[0] + s * (p1[0] - p0[0]) - q0[0] - t * (q1[0] - q0[0]),
            p0[1] + s * (p1[1] - p0[1]) - q0[1] - t * (q1[1] - q0[1]),
            p0[2] + s * (p1[2] - p0[2]) - q0[2] - t * (q1[2] - q0[2]),
        )
        apart = math.sqrt(dot(w, w))
        u, v = u0 + s * (u1 - u0), v0 + t * (v1 - v0)
        real = minus(at(cubic, p, u), at(cubic, q, v))
        size = math.sqrt(dot(real, real))
        if size < best:
            best, at_u, at_v = size, u, v
        scale = 1.0 / apart if apart > 1e-9 else 0.0
        along_p, all_p = _bulges(cubic, p, u0, u1, (w[0] * scale, w[1] * scale, w[2] * scale))
        along_q, all_q = _bulges(cubic, q, v0, v1, (w[0] * scale, w[1] * scale, w[2] * scale))
        if scale == 0.0:
            along_p, along_q = all_p, all_q
        if apart - along_p - along_q >= best - _TOLERANCE or all_p + all_q < _TOLERANCE / 10 or n + 2 > len(stack):
            continue
        if all_p >= all_q:
            middle = (u0 + u1) / 2
            # The half with the closest chords is looked at first.
            low, high = (n + 1, n) if s < 0.5 else (n, n + 1)
            stack[low, 0], stack[low, 1], stack[low, 2], stack[low, 3] = u0, middle, v0, v1
            stack[high, 0], stack[high, 1], stack[high, 2], stack[high, 3] = middle, u1, v0, v1
        else:
            middle = (v0 + v1) / 2
            low, high = (n + 1, n) if t < 0.5 else (n, n + 1)
            stack[low, 0], stack[low, 1], stack[low, 2], stack[low, 3] = u0, u1, v0, middle
            stack[high, 0], stack[high, 1], stack[high, 2], stack[high, 3] = u0, u1, middle, v1
        n += 2
    return best, at_u, at_v


@kernel
def nearest(
    curves: tuple[FloatArray, FloatArray],
    ranges: tuple[int, int, int, int],
    limit: float,
    enough: float,
    stack: FloatArray,
) -> tuple[float, int, float, int, float]:
    """Closest approach of two chains of pieces: chord, and piece and parameter on either side; inf beyond the limit.

    ``ranges`` are first and end piece of both chains. The search ends early at a chord below ``enough``.
    """
    cubic, radius = curves
    best, p_best, u_best, q_best, v_best = limit, -1, 0.0, -1, 0.0
    for p in range(ranges[0], ranges[1]):
        for q in range(ranges[2], ranges[3]):
            d = minus(at(cubic, p, 0.0), at(cubic, q, 0.0))
            size = math.sqrt(dot(d, d))
            if size < best:
                best, p_best, u_best, q_best, v_best = size, p, 0.0, q, 0.0
    for p in range(ranges[0], ranges[1]):
        for q in range(ranges[2], ranges[3]):
            if best <= enough:
                return best, p_best, u_best, q_best, v_best
            d = minus(at(cubic, p, 0.0), at(cubic, q, 0.0))
            reach = radius[p] + radius[q] + best
            if dot(d, d) >= reach * reach:
                continue
            size, u, v = _refine(cubic, p, q, best, enough, stack)
            if size < best:
                best, p_best, u_best, q_best, v_best = size, p, u, q, v
    if p_best < 0:
        return np.inf, -1, 0.0, -1, 0.0
    return best, p_best, u_best, q_best, v_best


@kernel
def is_inside(cubic: FloatArray, p: int, u: float, orientation: float, other: Point) -> bool:
    """True where ``other`` lies on the inner side of the point of an edge that is closest to it.

    From there a point inside is straight ahead of the edge. Seen from a corner, a point outside is never ahead of
    either edge.
    """
    here = at(cubic, p, u)
    slope = (
        cubic[p, 1, 0] + u * (2 * cubic[p, 2, 0] + 3 * u * cubic[p, 3, 0]),
        cubic[p, 1, 1] + u * (2 * cubic[p, 2, 1] + 3 * u * cubic[p, 3, 1]),
        cubic[p, 1, 2] + u * (2 * cubic[p, 2, 2] + 3 * u * cubic[p, 3, 2]),
    )
    up = (here[0] * _AXES2, here[1] * _AXES2, here[2])
    inward, ahead = cross(up, slope), minus(other, here)
    lift = dot(ahead, up) / dot(up, up)
    level = (ahead[0] - lift * up[0], ahead[1] - lift * up[1], ahead[2] - lift * up[2])
    size = math.sqrt(dot(inward, inward) * dot(level, level))
    return bool(size > 0.0 and orientation * dot(inward, level) > 0.9 * size)


@kernel
def _turn(x: float) -> float:
    """Degrees from 0 to 360."""
    return x - 360.0 * math.floor(x / 360.0)


@kernel
def share_longitude(frame: FloatArray, i: int, j: int) -> bool:
    """True where two ranges of longitude (west, width in columns 0 and 1) meet."""
    return bool(_turn(frame[j, 0] - frame[i, 0]) <= frame[i, 1] or _turn(frame[i, 0] - frame[j, 0]) <= frame[j, 1])


@kernel
def _holds(frame: FloatArray, i: int, place: Point) -> bool:
    """True where a point lies in box i, which is bounded by parallels and meridians."""
    lat = math.degrees(math.atan2(place[2], math.sqrt(place[0] * place[0] + place[1] * place[1]) * _AXES2))
    if lat < frame[i, 2] or lat > frame[i, 3]:
        return False
    lon = math.degrees(math.atan2(place[1], place[0]))
    return bool(frame[i, 1] >= 360.0 or _turn(lon - frame[i, 0]) <= frame[i, 1])


@kernel
def closest(
    shapes: tuple[FloatArray, FloatArray, IntArray, IntArray, FloatArray],
    curves: tuple[FloatArray, FloatArray],
    i: int,
    j: int,
    limit: float,
    enough: float,
    stack: FloatArray,
) -> tuple[float, float, int, float, int, float]:
    """Closest approach of boxes i and j: gap in latitude, chord, and piece and parameter on either side.

    The chord is 0 where they touch and inf beyond the limit. Where both are bounded by parallels and meridians and
    share a longitude, the way is along a meridian: the chord is then NaN, and the gap in latitude (degrees) is all.
    """
    frame, bounds, system, start, orientation = shapes
    plain_i, plain_j = orientation[i] == 0.0, orientation[j] == 0.0
    together = share_longitude(frame, i, j)
    gap = max(frame[i, 2] - frame[j, 3], frame[j, 2] - frame[i, 3], 0.0)
    if plain_i and plain_j:
        if together:
            return gap, 0.0 if gap == 0.0 else np.nan, -1, 0.0, -1, 0.0
        east = _turn(frame[j, 0] - frame[i, 0] - frame[i, 1]) <= _turn(frame[i, 0] - frame[j, 0] - frame[j, 1])
        # Whatever the latitudes, a smaller difference of longitude is nearer: only the facing meridians count.
        e, f = (4 * i + 1, 4 * j + 3) if east else (4 * i + 3, 4 * j + 1)
        ranges = (start[e], start[e + 1], start[f], start[f + 1])
        chord, p, u, q, v = nearest(curves, ranges, limit, max(enough, TOUCHING), stack)
        return gap, 0.0 if chord <= TOUCHING else chord, p, u, q, v
    if (
        system[i] == system[j]
        and bounds[i, 0] <= bounds[j, 2]
        and bounds[j, 0] <= bounds[i, 2]
        and bounds[i, 1] <= bounds[j, 3]
        and bounds[j, 1] <= bounds[i, 3]
    ):
        return gap, 0.0, -1, 0.0, -1, 0.0
    nested = together and gap == 0.0 and system[i] != system[j]
    ranges = (start[4 * i], start[4 * i + 4], start[4 * j], start[4 * j + 4])
    far = np.inf if nested else limit
    chord, p, u, q, v = nearest(curves, ranges, far, max(enough, TOUCHING), stack)
    if chord <= TOUCHING:
        return gap, 0.0, p, u, q, v
    if nested and chord > enough:
        a, b = at(curves[0], p, u), at(curves[0], q, v)
        in_j = _holds(frame, j, a) if plain_j else is_inside(curves[0], q, v, orientation[j], a)
        in_i = _holds(frame, i, b) if plain_i else is_inside(curves[0], p, u, orientation[i], b)
        if in_i or in_j:
            return gap, 0.0, p, u, q, v
    return gap, chord if chord <= limit else np.inf, p, u, q, v


@kernel
def closest_of(
    shapes: tuple[FloatArray, FloatArray, IntArray, IntArray, FloatArray],
    curves: tuple[FloatArray, FloatArray],
    i: IntArray,
    j: IntArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Closest approach of many pairs of boxes: chord, and (pairs, 3) both points; NaN where it is along a meridian."""
    stack = np.empty((256, 4))
    chord, a, b = np.zeros(len(i)), np.full((len(i), 3), np.nan), np.full((len(i), 3), np.nan)
    for k in range(len(i)):
        _, chord[k], p, u, q, v = closest(shapes, curves, i[k], j[k], np.inf, 0.0, stack)
        if p >= 0:
            a[k, 0], a[k, 1], a[k, 2] = at(curves[0], p, u)
            b[k, 0], b[k, 1], b[k, 2] = at(curves[0], q, v)
    return chord, a, b


@kernel
def frames(cubic: FloatArray, start: IntArray) -> FloatArray:
    """West, width in longitude, south and north in degrees around boxes that are given by their edges alone."""
    n = (len(start) - 1) // 4
    out = np.empty((n, 4))
    for box in range(n):
        south, north, west, east, lon = np.inf, -np.inf, np.inf, -np.inf, np.nan
        first_lon, polar = 0.0, False
        for p in range(start[4 * box], start[4 * box + 4]):
            slack = _bulges(cubic, p, -1.0, 1.0, (0.0, 0.0, 0.0))[1] / 2 + 1e-3
            size = math.sqrt(cubic[p, 1, 0] ** 2 + cubic[p, 1, 1] ** 2 + cubic[p, 1, 2] ** 2)
            for s in range(5):
                x, y, z = at(cubic, p, -1.0 + 0.5 * s)
                away = math.sqrt(x * x + y * y)
                polar = polar or away <= size + 10 * slack
                lat = math.degrees(math.atan2(z, away * _AXES2))
                pad = math.degrees(slack / LEAST_RADIUS)
                south, north = min(south, lat - pad), max(north, lat + pad)
                here = math.degrees(math.atan2(y, x))
                if math.isnan(lon):
                    lon = first_lon = here
                else:
                    lon += _turn(here - lon + 180.0) - 180.0
                pad = math.degrees(slack / max(away - size, slack))
                west, east = min(west, lon - pad), max(east, lon + pad)
        if polar or abs(lon - first_lon) > 180.0 or east - west >= 360.0:
            west, east = -180.0, 180.0
            if polar or abs(lon - first_lon) > 180.0:
                south, north = (south, 90.0) if south + north > 0 else (-90.0, north)
        out[box, 0], out[box, 1], out[box, 2], out[box, 3] = west, east - west, max(south, -90.0), min(north, 90.0)
    return out
