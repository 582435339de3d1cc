"""Boxes on the ellipsoid against a dense search over both edges, and searches against all pairs."""

from __future__ import annotations

import functools
import math

import numpy as np
import pyproj
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from geoeval.errors import ConfigError, CRSMissing, InputError
from geoeval.splits.boxes import distance, from_bounds, mean_neighbours, too_close_m, within_across, within_groups

GEOD = pyproj.Geod(ellps="WGS84")
WORLD = pyproj.CRS("OGC:CRS84")


@functools.cache
def to_world(crs):
    return pyproj.Transformer.from_crs(pyproj.CRS(crs), WORLD, always_xy=True)


@functools.cache
def is_geographic(crs):
    return pyproj.CRS(crs).is_geographic


def edges(bounds, crs, t):
    """(4, len(t)) longitudes and latitudes along the four edges."""
    x0, y0, x1, y1 = bounds
    if is_geographic(crs) and x0 > x1:
        x1 += 360
    begin = np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])
    step = np.roll(begin, -1, axis=0) - begin
    at = begin[:, None] + step[:, None] * t[..., None]
    return to_world(crs).transform(at[..., 0], at[..., 1])


def holds(bounds, crs, lon, lat):
    """True where a position lies in a box."""
    x0, y0, x1, y1 = bounds
    if is_geographic(crs):
        x, y = pyproj.Transformer.from_crs(WORLD, pyproj.CRS(crs), always_xy=True).transform(lon, lat)
        width = (x1 - x0) % 360 if x0 > x1 else x1 - x0
        return (y >= y0) & (y <= y1) & ((x - x0) % 360 <= width)
    way = to_world(crs)
    x, y = way.transform(lon, lat, direction="INVERSE")
    inside = np.isfinite(x) & np.isfinite(y) & (x >= x0) & (x <= x1) & (y >= y0) & (y <= y1)
    back_lon, back_lat = way.transform(np.where(inside, x, x0), np.where(inside, y, y0))
    return inside & (GEOD.inv(lon, lat, back_lon, back_lat)[2] < 1)


def zoomed(a, b, s, t, half):
    """Least distance near parameters s, t of one edge of each side, in ever smaller windows."""
    (bounds_a, crs_a, edge_a), (bounds_b, crs_b, edge_b) = a, b
    offset = np.linspace(-1, 1, 9)
    p, q = (axis.reshape(-1) for axis in np.meshgrid(np.arange(9), np.arange(9), indexing="ij"))
    best, shrink = math.inf, 1.0
    while shrink > 1e-8:
        u, v = (np.clip(x + shrink * h * offset, 0, 1) for x, h in zip((s, t), half, strict=True))
        lon_a, lat_a = (axis[edge_a] for axis in edges(bounds_a, crs_a, np.tile(u, (4, 1))))
        lon_b, lat_b = (axis[edge_b] for axis in edges(bounds_b, crs_b, np.tile(v, (4, 1))))
        metres = GEOD.inv(lon_a[p], lat_a[p], lon_b[q], lat_b[q])[2]
        k = int(np.argmin(metres))
        best, s, t, shrink = min(best, metres[k]), u[p[k]], v[q[k]], shrink * 0.55
    return best


def brute_distance(bounds_a, crs_a, bounds_b, crs_b):
    """Dense search over the edges, then windows around the best places of each two; 0 where one box holds the other.

    Places lie closer towards the corners, because an edge of a degree may end at a pole in front of a box of a metre.
    """
    near_0 = np.logspace(-8, 0, 500)
    t = np.tile(np.sort(np.concatenate([np.linspace(0, 1, 500), near_0, 1 - near_0])), (4, 1))
    if (
        holds(bounds_b, crs_b, *edges(bounds_a, crs_a, t)).any()
        or holds(bounds_a, crs_a, *edges(bounds_b, crs_b, t)).any()
    ):
        return 0.0
    near_0 = 10.0 ** np.arange(-8, -1)
    one = np.sort(np.concatenate([np.linspace(0, 1, 19), near_0, 1 - near_0]))
    n, t = len(one), np.tile(one, (4, 1))
    lon_a, lat_a = edges(bounds_a, crs_a, t)
    lon_b, lat_b = edges(bounds_b, crs_b, t)
    gap = np.diff(one)
    around = np.maximum(np.append(gap, 0), np.append(0, gap))
    step_a, step_b = (
        np.array([np.append(d, 0) for d in GEOD.inv(lon[:, :-1], lat[:, :-1], lon[:, 1:], lat[:, 1:])[2]])
        for lon, lat in ((lon_a, lat_a), (lon_b, lat_b))
    )
    step_a, step_b = (np.maximum(step, np.roll(step, 1, axis=1)) for step in (step_a, step_b))
    p, q = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    starts = []
    for e in range(4):
        for f in range(4):
            metres = np.asarray(GEOD.inv(lon_a[e, p], lat_a[e, p], lon_b[f, q], lat_b[f, q])[2])
            least = metres - step_a[e][:, None] - step_b[f][None, :]
            for block in np.ndindex(4, 4):
                part = tuple(slice(8 * k, 8 * k + 9) for k in block)
                k = np.unravel_index(np.argmin(metres[part]), metres[part].shape)
                at = (part[0].start + k[0], part[1].start + k[1])
                half = (3 * around[at[0]], 3 * around[at[1]])
                starts.append((metres[at], least[part].min(), (e, f), (one[at[0]], one[at[1]]), half))
    starts.sort()
    best = starts[0][0]
    for _, bound, (e, f), (s, u), half in starts:
        if bound <= best and best > 1e-4:
            best = min(best, zoomed((bounds_a, crs_a, e), (bounds_b, crs_b, f), s, u, half))
    return best


def box_near(lon, lat, kind, width_m, height_m):
    """Bounds and system of a box of one kind with a corner at a place."""
    if kind == "degrees":
        dy = height_m / 111_000
        dx = min(width_m / 111_000 / max(math.cos(math.radians(lat)), 1e-3), 359)
        south = max(min(lat, 90 - dy), -90)
        east = lon + dx
        return (lon, south, east - 360 if east > 180 else east, min(south + dy, 90)), "EPSG:4326"
    if kind == "NAD27":
        width_m = min(width_m, 111_000 * 170 * math.cos(math.radians(lat)))
        return box_near(lon, lat, "degrees", width_m, height_m)[0], "EPSG:4267"
    if kind == "mercator" and abs(lat) < 80:
        crs = "EPSG:3857"
    elif kind == "utm" and -80 < lat < 84:
        zone = min(int((lon + 180) // 6) + 1, 60)
        crs = f"EPSG:{(32600 if lat >= 0 else 32700) + zone}"
    elif lat > 55:
        crs = "EPSG:3413"
    elif lat < -55:
        crs = "EPSG:3031"
    else:
        crs = f"+proj=laea +lat_0={round(lat)} +lon_0={round(lon)} +datum=WGS84 +type=crs"
    x, y = to_world(crs).transform(lon, lat, direction="INVERSE")
    if crs == "EPSG:3857":
        x = min(x, 20037508.0 - width_m)
    return (x, y, x + width_m, y + height_m), crs


KINDS = st.sampled_from(["degrees", "utm", "mercator", "other", "NAD27"])
SIZES = st.floats(0, 5.2).map(lambda power: 10**power)
LATITUDES = st.one_of(
    st.floats(-90, 90), st.floats(89.5, 90), st.floats(-90, -89.5), st.just(90.0), st.just(-90.0), st.just(0.0)
)
LONGITUDES = st.one_of(st.floats(-180, 180), st.floats(179, 180), st.floats(-180, -179), st.just(-180.0))


@st.composite
def pairs_of_boxes(draw):
    lon, lat = draw(LONGITUDES), draw(LATITUDES)
    one = box_near(lon, lat, draw(KINDS), draw(SIZES), draw(SIZES))
    if draw(st.booleans()):
        away, azimuth = 10 ** draw(st.floats(0, 6)), draw(st.floats(0, 360))
        lon, lat, _ = GEOD.fwd(lon, lat, azimuth, away)
    else:
        lon, lat = draw(LONGITUDES), draw(LATITUDES)
    return one, box_near(lon, lat, draw(KINDS), draw(SIZES), draw(SIZES))


@settings(max_examples=50)
@given(pairs_of_boxes())
def test_distance_agrees_with_a_dense_search_anywhere(boxes):
    (bounds_a, crs_a), (bounds_b, crs_b) = boxes
    try:
        both = from_bounds(*np.array([bounds_a, bounds_b]).T, [crs_a, crs_b])
    except InputError as error:
        # NAD27 is shifted by other parameters on the other side of some borders.
        assume("border between two datum transformations" not in str(error))
        raise
    here, there = distance(both, [0, 1], [1, 0])
    expected = brute_distance(bounds_a, crs_a, bounds_b, crs_b)
    assert here == pytest.approx(expected, rel=1e-6, abs=1e-3)
    assert there == pytest.approx(here, rel=1e-6, abs=1e-3)


def degrees(*bounds):
    return from_bounds(*np.array(bounds, dtype=float).T, "EPSG:4326")


def test_boxes_on_either_side_of_the_antimeridian():
    """One ends at 179.99° E, the other begins at 179.99° W: 0.02° of the equator apart."""
    boxes = degrees((179, -1, 179.99, 1), (-179.99, -1, -179, 1), (179.5, 0, -179.5, 0.5))
    expected = GEOD.inv(179.99, 1, -179.99, 1)[2]
    assert distance(boxes, [0, 0, 1], [1, 2, 2]) == pytest.approx([expected, 0, 0], abs=1e-3)


def test_boxes_across_the_pole():
    """Opposite meridians, both 0.01° from the pole."""
    boxes = degrees((0, 80, 1, 89.99), (180, 80, 181, 89.99), (-180, 89.995, 180, 90))
    over = 2 * GEOD.inv(0, 89.99, 0, 90)[2]
    assert distance(boxes, [0], [1]) == pytest.approx([over], rel=1e-3)
    assert distance(boxes, [0], [2])[0] == pytest.approx(GEOD.inv(0, 89.99, 0, 89.995)[2], abs=1e-3)


def test_a_box_around_the_pole_holds_what_lies_there():
    boxes = from_bounds(
        [-1e6, 10, -180], [-1e6, 89.9, 89.99], [1e6, 11, 180], [1e6, 89.95, 90], ["EPSG:3413", *["EPSG:4326"] * 2]
    )
    assert distance(boxes, [0, 2], [1, 0]).tolist() == [0, 0]
    assert boxes.frame[0, 1] == 360
    assert boxes.frame[0, 3] == 90


def test_the_nearest_places_may_lie_inside_of_the_edges():
    """A wide box and a narrow one above its middle: corners are 500 km off, edges 11 km."""
    boxes = degrees((0, 0, 10, 1), (5, 1.1, 5.1, 1.2))
    assert distance(boxes, [0], [1]) == pytest.approx([GEOD.inv(0, 1, 0, 1.1)[2]], abs=1e-3)


def test_a_small_box_within_a_large_one_of_another_system():
    boxes = from_bounds(
        [200_000, 14.9], [5_000_000, 46], [800_000, 15.1], [6_000_000, 46.1], ["EPSG:32633", "EPSG:4326"]
    )
    assert distance(boxes, [0, 1], [1, 0]).tolist() == [0, 0]


def test_edges_longer_than_a_great_distance():
    """Edges of 200 km that are 138 km away from a small box."""
    small = (1653212.796904617, 6491942.100395998, 1653620.4996714706, 6496933.402633863)
    tall = (-6788.549208508903, 36643.49284289528, -5782.269800380146, 243203.03502514033)
    laea = "+proj=laea +lat_0=48 +lon_0=13 +datum=WGS84 +type=crs"
    boxes = from_bounds(*np.array([small, tall]).T, ["EPSG:3857", laea])
    assert distance(boxes, [0], [1]) == pytest.approx([brute_distance(small, "EPSG:3857", tall, laea)], rel=1e-6)


def test_neighbours_of_one_grid_touch():
    x = np.arange(4) * 5000.0 + 300_000
    boxes = from_bounds(x, np.full(4, 5e6), x + 5000, np.full(4, 5e6 + 5000), "EPSG:32633")
    assert distance(boxes, [0, 1, 0], [1, 2, 2]) == pytest.approx([0, 0, 5000], rel=1e-3)


def test_a_whole_world_in_a_cylindrical_projection_is_full_circle():
    world = 20037508.342789244
    boxes = from_bounds([-world, 179], [-1e6, 0], [world, 180], [1e6, 1], ["EPSG:3857", "EPSG:4326"])
    assert boxes.frame[0, 1] == pytest.approx(360)
    assert distance(boxes, [0], [1]).tolist() == [0]


def test_a_point_and_a_line_are_boxes_too():
    boxes = from_bounds(
        [0, 500_000, 500_000], [0, 0, 1000], [0, 500_000, 501_000], [0, 0, 1000], ["EPSG:4326", *["EPSG:32631"] * 2]
    )
    assert distance(boxes, [0, 1], [1, 2]) == pytest.approx([GEOD.inv(0, 0, 3, 0)[2], 1000], rel=1e-3)
    assert distance(boxes, [1], [1]).tolist() == [0]


def mixed_boxes(seed, n, clusters=6):
    """Boxes of all kinds in a few clusters: at the antimeridian, at both poles, at a zone border, and elsewhere."""
    generator = np.random.Generator(np.random.PCG64(seed))
    centres = [(180.0, 65.0), (30.0, 90.0), (100.0, -90.0), (18.0, 47.0), (-70.0, 5.0), (0.0, 51.0)][:clusters]
    bounds, systems = [], []
    for k in range(n):
        lon, lat = centres[k % len(centres)]
        lon, lat, _ = GEOD.fwd(lon, lat, generator.uniform(0, 360), 12_000 * math.sqrt(generator.uniform()))
        kind = ["degrees", "utm", "other", "mercator"][generator.integers(4)]
        box, crs = box_near(lon, lat, kind, 10 ** generator.uniform(1, 3.3), 10 ** generator.uniform(1, 3.3))
        bounds.append(box)
        systems.append(crs)
    return from_bounds(*np.array(bounds).T, systems)


@functools.cache
def mixed_pairs():
    """Boxes, and the distance of every two of them; those of different clusters are never close."""
    boxes = mixed_boxes(3, 300)
    i, j = np.triu_indices(300, 1)
    middle = boxes.curves.cubic[boxes.curves.start[:-1:4], 0]
    near = np.linalg.norm(middle[i] - middle[j], axis=1) < 50_000
    return boxes, i[near], j[near], distance(boxes, i[near], j[near])


@pytest.mark.parametrize("limit", [0.0, 150.0, 2000.0])
def test_groups_and_pairs_are_those_of_all_pairs(limit):
    boxes, i, j, metres = mixed_pairs()
    close = metres <= too_close_m(limit)
    i, j, metres = i[close], j[close], metres[close]
    n = len(boxes)
    expected = connected_components(coo_matrix((np.ones(len(i)), (i, j)), shape=(n, n)), directed=False)[1]
    found = within_groups(boxes, limit)
    assert (
        len(set(zip(found.tolist(), expected.tolist(), strict=True))) == len(set(found.tolist())) == expected.max() + 1
    )
    split = np.random.Generator(np.random.PCG64(1)).integers(0, 3, n)
    crossing = split[i] != split[j]
    for witnesses in (0, 7, 100_000):
        order = np.lexsort((j[crossing], i[crossing], metres[crossing]))[:witnesses]
        across = within_across(boxes, split, limit, witnesses=witnesses)
        assert across.count == crossing.sum()
        assert across.i.tolist() == i[crossing][order].tolist()
        assert across.j.tolist() == j[crossing][order].tolist()
        assert across.distance == pytest.approx(metres[crossing][order], abs=1e-9)
    assert mean_neighbours(boxes, limit) == pytest.approx(2 * len(i) / n)


def test_pairs_at_the_limit_count_and_those_beyond_do_not():
    """Two points on the equator, 2000 m apart to a tenth of a millimetre, and 5 cm further."""
    step = 2000 / (math.pi / 180 * 6378137)
    boxes = degrees((0, 0, 0, 0), (step, 0, step, 0), (-step - 4.5e-7, 0, -step - 4.5e-7, 0))
    found = within_across(boxes, np.array([0, 1, 1]), 2000.0)
    assert (found.count, found.i.tolist(), found.j.tolist()) == (1, [0], [1])
    assert found.distance == pytest.approx([2000], abs=1e-3)


def test_order_of_the_boxes_does_not_matter():
    boxes = [(k * 0.03, 10.0, k * 0.03 + 0.012, 10.01) for k in range(40)]
    order = np.random.Generator(np.random.PCG64(5)).permutation(40)
    straight, shuffled = (
        within_groups(degrees(*boxes), 1990.0),
        within_groups(degrees(*[boxes[k] for k in order]), 1990.0),
    )
    assert len(set(zip(straight[order].tolist(), shuffled.tolist(), strict=True))) == len(set(straight.tolist()))


def test_one_split_has_no_pairs_across():
    boxes = degrees((0, 0, 1, 1), (0, 0, 1, 1))
    assert within_across(boxes, np.array([4, 4]), 2000.0).count == 0
    assert within_groups(boxes, 2000.0).tolist() == [0, 0]


def test_nothing_is_near_nothing():
    none = from_bounds([], [], [], [], "EPSG:4326")
    assert within_groups(none, 10.0).tolist() == []
    assert within_across(none, np.zeros(0, dtype=int), 10.0).count == 0
    assert mean_neighbours(none, 10.0) == 0


@pytest.mark.parametrize(
    ("bounds", "crs", "says"),
    [
        ((0, math.nan, 1, 1), "EPSG:4326", "row 1: bounds must be finite"),
        ((0, 2, 1, 1), "EPSG:4326", "row 1: the least y must not be above"),
        ((5, 0, 1, 1), "EPSG:32633", r"row 1 \(EPSG:32633\): the least x must not be above"),
        ((0, 0, 1, 91), "EPSG:4326", r"row 1 \(EPSG:4326\): latitudes must lie in"),
        ((500, 0, 501, 1), "EPSG:4326", "row 1.*longitudes must lie in"),
        ((-181, 0, 181, 1), "EPSG:4326", "row 1.*not be wider than the world"),
        ((0, 0, 190, 1), "EPSG:4267", "row 1.*not be wider than half a circle"),
        ((1e9, 1e9, 2e9, 2e9), "EPSG:3035", "row 1.*outside of the area"),
    ],
)
def test_bad_boxes_are_refused_by_row(bounds, crs, says):
    sides = np.array([(0.0, 0.0, 1.0, 1.0), bounds]).T
    with pytest.raises(InputError, match=says):
        from_bounds(*sides, crs)


def test_unknown_systems_are_refused_by_row():
    sides = np.array([(0.0, 0.0, 1.0, 1.0)] * 2).T
    with pytest.raises(ConfigError, match="row 1: crs: cannot understand 'EPSG:999999'"):
        from_bounds(*sides, ["EPSG:4326", "EPSG:999999"])
    with pytest.raises(CRSMissing, match="row 1: no coordinate reference system"):
        from_bounds(*sides, ["EPSG:4326", None])
    with pytest.raises(ValueError, match=r"one a box \(2\), got 3"):
        from_bounds(*sides, ["EPSG:4326"] * 3)
    with pytest.raises(ValueError, match="must lie in 0 to 1e"):
        within_groups(degrees((0, 0, 1, 1)), -1.0)


@pytest.mark.parametrize(("crs", "x", "y"), [("EPSG:3035", 4_321_000, 3_210_000), ("EPSG:3413", 0, 0)])
def test_corners_at_the_origin_of_a_projection_can_be_followed(crs, x, y):
    """The inverse of the projection falls back on another formula there, a fraction of a millimetre away."""
    side = 1000.0
    around = [(x + i * side, y + j * side) for i in (-2, 0, 1) for j in (-2, 0, 1)]
    low = np.array(around)
    boxes = from_bounds(*low.T, *(low + side).T, crs)
    found = within_across(boxes, np.arange(len(boxes)), 900.0)
    square = np.array([max(abs(a[0] - b[0]), abs(a[1] - b[1])) for a in around for b in around]).reshape(9, 9)
    assert found.count == int((np.triu(square, 1) == side).sum())
