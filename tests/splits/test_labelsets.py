"""Label sets: one hash however they are written, and near-duplicates in the world and in any orientation."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pyproj
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from geoeval.splits.labelsets import (
    LabelSet,
    canonical_feature,
    duplicate_groups,
    duplicates_across,
    geometry_hash,
    similarity,
)


def boxes(seed, n=12, size=512):
    """Boxes of 10 to 40 pixels, anywhere in an image."""
    generator = np.random.Generator(np.random.PCG64(seed))
    at, span = generator.uniform(0, size - 40, (n, 2)), generator.uniform(10, 40, (n, 2))
    return shapely.box(*at.T, *(at + span).T)


def moved(shapes, a=1.0, b=0.0, d=0.0, e=1.0, dx=0.0, dy=0.0):
    return shapely.transform(shapes, lambda at: at @ np.array([[a, d], [b, e]]) + np.array([dx, dy]))


def image(shapes, size=(512, 512)):
    return LabelSet(pixels=shapes, size=size)


ORIENTATIONS = {
    "same": {},
    "turned by 90": {"a": 0, "b": -1, "d": 1, "e": 0, "dx": 512},
    "turned by 180": {"a": -1, "e": -1, "dx": 512, "dy": 512},
    "turned by 270": {"a": 0, "b": 1, "d": -1, "e": 0, "dy": 512},
    "left-right": {"a": -1, "dx": 512},
    "up-down": {"e": -1, "dy": 512},
    "transposed": {"a": 0, "b": 1, "d": 1, "e": 0},
    "anti-transposed": {"a": 0, "b": -1, "d": -1, "e": 0, "dx": 512, "dy": 512},
}


@pytest.mark.parametrize("name", ORIENTATIONS)
@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_copies_in_any_orientation_are_found(name, shift):
    copy = moved(moved(boxes(1), dx=shift, dy=-shift), **ORIENTATIONS[name])
    found = duplicates_across([image(boxes(1)), image(boxes(2)), image(copy)], np.array([0, 1, 1]))
    assert (found.count, found.i.tolist(), found.j.tolist()) == (1, [0], [2])
    assert found.distance[0] == pytest.approx(0, abs=1e-9)
    assert duplicate_groups([image(boxes(1)), image(boxes(2)), image(copy)]).tolist() == [0, 1, 0]


def test_an_image_of_another_size_and_shape_is_found():
    tall = moved(boxes(1), a=0, b=0.5, d=2, e=0)
    found = duplicates_across([image(boxes(1)), image(tall, (1024, 256))], np.array([0, 1]))
    assert found.count == 1


def test_half_of_the_smaller_set_is_enough_and_less_is_not():
    """Of 12 boxes, the 6 smallest come again among others elsewhere; then 5."""
    mine = boxes(1)[np.argsort(shapely.area(boxes(1)))]
    for kept, count in ((6, 1), (5, 0)):
        other = np.concatenate([mine[:kept], boxes(7)[: 12 - kept]])
        share, jaccard = similarity(mine, other)
        assert share == pytest.approx(kept / 12)
        assert jaccard < 0.4
        assert duplicates_across([image(mine), image(other)], np.array([0, 1])).count == count


def test_occupancy_finds_what_was_merged():
    """Nine touching boxes drawn as three blocks: no match at IoU 0.5, but the same area."""
    x, y = np.meshgrid(np.arange(3) * 64.0, np.arange(3) * 64.0)
    parts = shapely.box(x.ravel(), y.ravel(), x.ravel() + 64, y.ravel() + 64)
    blocks = shapely.box(np.arange(3) * 64.0, 0, np.arange(3) * 64.0 + 64, 192)
    assert similarity(parts, blocks) == (0.0, 1.0)


def test_unrelated_sets_are_not_alike():
    sets = [image(boxes(seed)) for seed in range(30)]
    assert duplicate_groups(sets).tolist() == list(range(30))


def test_two_features_are_too_few():
    assert duplicates_across([image(boxes(1, 2)), image(boxes(1, 2))], np.array([0, 1])).count == 0
    assert duplicates_across([image(boxes(1, 3)), image(boxes(1, 3))], np.array([0, 1])).count == 1


def test_pairs_of_one_split_do_not_count():
    assert duplicates_across([image(boxes(1))] * 3, np.array([0, 0, 0])).count == 0
    assert duplicates_across([image(boxes(1))] * 3, np.array([0, 1, 0])).count == 2


def world(shapes, crs):
    return LabelSet(world=shapes, crs=crs)


def test_copies_in_another_system_are_found_in_the_world():
    """The same buildings in UTM and in degrees; and shifted by a third of a building, beside others."""
    utm = moved(boxes(1), dx=500_000, dy=5_000_000)
    way = pyproj.Transformer.from_crs("EPSG:32633", "EPSG:4326", always_xy=True)
    degrees = shapely.transform(utm, lambda at: np.stack(way.transform(*at.T), axis=1))
    sets = [
        world(utm, "EPSG:32633"),
        world(moved(utm, dx=3.0), "EPSG:32633"),
        world(boxes(1), "EPSG:32633"),
        world(degrees, "EPSG:4326"),
    ]
    assert duplicate_groups(sets).tolist() == [0, 0, 1, 0]


def test_the_antimeridian_does_not_hide_a_copy():
    """Boxes from 179.99 to 180.01 degrees east, written beyond 180 and before -180."""
    shapes = moved(boxes(1), a=4e-5, e=4e-5, dx=179.99)
    sets = [world(shapes, "EPSG:4326"), world(moved(shapes, dx=-360), "EPSG:4326")]
    found = duplicates_across(sets, np.array([0, 1]))
    assert found.count == 1
    assert found.distance[0] == pytest.approx(0)


def test_points_and_lines_are_compared_too():
    points = shapely.points(np.random.Generator(np.random.PCG64(1)).uniform(0, 512, (9, 2)))
    others = shapely.points(np.random.Generator(np.random.PCG64(2)).uniform(0, 512, (9, 2)))
    found = duplicates_across([image(points), image(points), image(others)], np.array([0, 1, 1]))
    assert (found.count, found.j.tolist()) == (1, [1])


def test_nothing_is_like_nothing():
    assert duplicates_across([], np.zeros(0, dtype=int)).count == 0
    assert duplicate_groups([LabelSet(), LabelSet(world=np.array([None, shapely.Point()]))]).tolist() == [0, 1]


def plain_degrees(labels):
    """Features in degrees, for the slow search: the widened shapes, each in the turn from -180 to 180."""
    shapes = np.asarray([] if labels.world is None else labels.world, dtype=object)
    if len(shapes) < 3:
        return shapes[:0]
    way = pyproj.Transformer.from_crs(labels.crs, "OGC:CRS84", always_xy=True)
    shapes = with_area(shapely.transform(shapes, lambda at: np.stack(way.transform(*at.T), axis=1)))
    turns = [np.floor((shape.bounds[0] + shape.bounds[2] + 360) / 720) for shape in shapes]
    return np.array([moved(shape, dx=-360 * turn) for shape, turn in zip(shapes, turns, strict=True)], dtype=object)


def plain_image(labels):
    shapes = np.asarray([] if labels.pixels is None else labels.pixels, dtype=object)
    if len(shapes) < 3:
        return shapes[:0]
    x0, y0, x1, y1 = shapely.total_bounds(shapes) if labels.size is None else (0, 0, labels.size[1], labels.size[0])
    scale = np.array([1024 / (x1 - x0), 1024 / (y1 - y0)])
    return with_area(shapely.transform(shapes, lambda at: (at - np.array([x0, y0])) * scale))


def with_area(shapes):
    x0, y0, x1, y1 = shapely.total_bounds(shapes)
    wide = np.hypot(x1 - x0, y1 - y0) / 500
    return np.array([one if one.area else one.buffer(wide, quad_segs=4) for one in shapes], dtype=object)


def orientations(shapes):
    for swap, right, down in itertools.product((0, 1), repeat=3):

        def way(at, swap=swap, right=right, down=down):
            x, y = at.T[::-1] if swap else at.T
            return np.stack([1024 - x if right else x, 1024 - y if down else y], axis=1)

        yield shapely.transform(shapes, way)


def cells(shape, start):
    return tuple(np.floor((np.array(shape.bounds) + start) / 32).astype(int))


def share_boxes(one, other):
    """Two different boxes of one set lie in the cells of two different ones of the other, each on either grid."""
    mine, theirs = (
        [{(start, cells(shape, start)) for start in (0, 16)} for shape in shapes] for shapes in (one, other)
    )
    links = [(i, j) for i, a in enumerate(mine) for j, b in enumerate(theirs) if a & b]
    return any(i != k and j != m for (i, j), (k, m) in itertools.combinations(links, 2))


def plain_distances(sets):
    """Every pair that is nearly alike and its distance: all pairs, all orientations, all turns of longitude."""
    world, image = [plain_degrees(one) for one in sets], [plain_image(one) for one in sets]
    out = {}
    for a, b in itertools.combinations(range(len(sets)), 2):
        frames = [(world[a], moved(world[b], dx=360 * turn)) for turn in (-1, 0, 1)]
        frames += [(image[a], other) for other in orientations(image[b]) if share_boxes(image[a], other)]
        found = [similarity(*frame) for frame in frames]
        passed = [max(share, jaccard) for share, jaccard in found if share >= 0.5 or jaccard >= 0.4]
        if passed:
            out[a, b] = round(1 - max(passed), 9)
    return out


def plain_groups(n, pairs):
    group = list(range(n))
    for a, b in pairs:
        low, high = sorted((group[a], group[b]))
        group = [low if one == high else one for one in group]
    return np.unique(group, return_inverse=True)[1].tolist()


def some_shapes(generator, size):
    """A few boxes, discs, or points and lines."""
    at, span = generator.uniform(0, size * 0.8, (int(generator.integers(2, 14)), 2)), size * 0.2
    span = generator.uniform(size * 0.02, span, at.shape)
    kind = generator.integers(0, 4)
    if kind < 2:
        return shapely.box(*at.T, *(at + span).T)
    if kind == 2:
        return shapely.buffer(shapely.points(at), span[:, 0], quad_segs=3)
    ends = zip(at, at + span, strict=True)
    lines = [shapely.Point(p) if k % 2 else shapely.LineString([p, q]) for k, (p, q) in enumerate(ends)]
    return np.array(lines, dtype=object)


def some_sets(seed, n=24):
    """Sets of which many are copies of earlier ones: thinned, shifted, turned, and in other systems."""
    generator = np.random.Generator(np.random.PCG64(seed))
    known, sets = [], []
    for _ in range(n):
        if known and generator.uniform() < 0.6:
            shapes, size, place = known[generator.integers(len(known))]
            shapes = shapes[generator.uniform(size=len(shapes)) < generator.uniform(0.6, 1.4)]
            turned = list(orientations(moved(shapes, a=1024 / size, e=1024 / size)))[
                generator.choice([0, 0, 0, *range(8)])
            ]
            shapes = moved(turned, a=size / 1024, e=size / 1024, dx=generator.uniform(-1, 1) * size * 0.01)
        else:
            size, place = int(generator.choice([100, 512])), int(generator.integers(2))
            shapes = some_shapes(generator, size)
        known.append((shapes, size, place))
        ways = [
            ("EPSG:3857", {"a": 10, "e": 10, "dx": -300, "dy": -300}),
            ("EPSG:32633", {"a": 10, "e": 10, "dx": 500_000, "dy": 5_000_000}),
            ("EPSG:4326", {"a": 1e-4, "e": 1e-4, "dx": 179.98, "dy": 45}),
            ("EPSG:4269", {"a": 1e-4, "e": 1e-4, "dx": -180.02, "dy": 45}),
        ]
        crs, way = ways[2 * place + generator.integers(2)]
        frames = int(generator.integers(3))
        sets.append(
            LabelSet(
                world=moved(shapes, **way) if frames != 1 else None,
                crs=crs,
                pixels=shapes if frames else None,
                size=(size, size) if generator.uniform() < 0.8 else None,
            )
        )
    return sets


@functools.cache
def some_sets_and_distances(seed):
    return some_sets(seed), plain_distances(some_sets(seed))


@functools.cache
def sets_on_plots_and_distances(seed):
    """Sets of 3 to 9 features."""
    generator = np.random.Generator(np.random.PCG64(seed))
    sets = [image(plots(generator, int(generator.integers(3, 10)))) for _ in range(24)]
    return sets, plain_distances(sets)


def check_against_double_loop(sets, known, seed):
    split = np.random.Generator(np.random.PCG64(seed)).integers(0, 3, len(sets))
    assert len(known) > 3
    assert duplicate_groups(sets).tolist() == plain_groups(len(sets), known)
    crossing = sorted((apart, a, b) for (a, b), apart in known.items() if split[a] != split[b])
    found = duplicates_across(sets, split)
    assert found.count == len(crossing)
    assert list(zip(found.i.tolist(), found.j.tolist(), strict=True)) == [(a, b) for _, a, b in crossing]
    assert found.distance == pytest.approx([apart for apart, _, _ in crossing], abs=2e-9)


#: What a look-up of a pair of keys is said to cost: pairs always, where one is shared, and never.
COSTS = {"pairs": 0, "pairs where it pays": 4, "single keys": 10**9}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cost", COSTS)
def test_the_search_finds_what_a_double_loop_finds(seed, cost, monkeypatch):
    monkeypatch.setattr("geoeval.splits.labelset_image_search._PROBE", COSTS[cost])
    check_against_double_loop(*some_sets_and_distances(seed), seed)


def plots(generator, n):
    """A few boxes on a common raster of plots, so that many sets share one, two or more, some drawn twice."""
    row, column = generator.integers(0, 3, (2, n)) * 160 + 20
    side = generator.choice([60, 100], n) + generator.uniform(-3, 3, n)
    x, y = column + generator.uniform(-8, 8, n), row + generator.uniform(-8, 8, n)
    return shapely.box(x, y, x + side, y + side)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("room", [4, 32])
def test_small_and_large_sets_that_share_boxes_are_found(seed, cost, room, monkeypatch):
    """All sets, or those of the fewest features only, are found by pairs of keys."""
    monkeypatch.setattr("geoeval.splits.labelset_image_search._PROBE", COSTS[cost])
    monkeypatch.setattr("geoeval.splits.labelset_image_search._PAIRS", room)
    check_against_double_loop(*sets_on_plots_and_distances(seed), seed)


def squares(x, y, side):
    x, y = np.broadcast_arrays(np.asarray(x, dtype=float), y)
    return shapely.box(x, y, x + side, y + side)


def test_half_of_the_features_is_enough_where_nothing_else_touches():
    """Six small ones in common, and six large ones on opposite sides."""
    small, large = squares(np.arange(6) * 40, 5, 20), [squares(x, np.arange(6) * 70 + 60, 60) for x in (10, 430)]
    for common, count in ((6, 1), (5, 0)):
        one, other = (np.concatenate([small[:common], part]) for part in large)
        one = np.concatenate([one, squares(np.arange(6 - common) * 40 + 300, 40, 18)])
        other = np.concatenate([other, squares(np.arange(6 - common) * 40 + 320, 80, 18)])
        assert similarity(one, other)[0] == pytest.approx(common / 12)
        assert duplicates_across([image(one), image(other)], np.array([0, 1])).count == count


@pytest.mark.parametrize("frame", [image, lambda shapes: world(moved(shapes, a=1e-4, e=1e-4), "EPSG:4326")])
def test_two_large_features_are_enough_where_the_others_are_small(frame):
    """Two blocks in common that fill nearly all, and six specks on opposite sides."""
    for size, count in ((120, 1), (10, 0)):
        blocks = squares([50, 200], 200, size)
        one, other = (np.concatenate([blocks, squares(np.arange(6) * 60 + 20, y, 10)]) for y in (20, 450))
        share, jaccard = similarity(one, other)
        assert (share, jaccard >= 0.4) == (0.25, bool(count))
        found = duplicates_across([frame(one), frame(other)], np.array([0, 1]))
        assert found.count == count
        assert found.distance == pytest.approx([1 - jaccard] * count, abs=1e-6)


def test_one_shared_box_is_enough_in_the_world_and_not_in_images():
    """One block in common that fills nearly all, and four specks on opposite sides."""
    one, other = (np.concatenate([squares([200], 200, 120), squares(np.arange(4) * 60 + 20, y, 10)]) for y in (20, 450))
    assert similarity(one, other)[1] > 0.9
    assert duplicates_across([image(one), image(other)], np.array([0, 1])).count == 0
    in_world = [world(moved(shapes, a=1e-4, e=1e-4), "EPSG:4326") for shapes in (one, other)]
    assert duplicates_across(in_world, np.array([0, 1])).count == 1


def test_two_boxes_that_share_with_one_and_the_same_do_not_count_twice():
    """A block drawn twice on one side and once on the other is one shared box."""
    one = np.concatenate([squares([200, 201], 200, 120), squares(np.arange(2) * 60 + 20, 20, 10)])
    other = np.concatenate([squares([200], 200, 120), squares(np.arange(4) * 60 + 20, 450, 10)])
    assert similarity(one, other)[1] > 0.9
    for sets in ([one, other], [other, one]):
        assert duplicates_across([image(shapes) for shapes in sets], np.array([0, 1])).count == 0


def test_copies_of_copies_are_counted_one_by_one():
    """Equal sets are collapsed inside; counts, witnesses and their order stay those of single sets."""
    one, near, other = image(boxes(1)), image(moved(boxes(1), dx=2.0)), image(boxes(2))
    backwards = image(boxes(1)[::-1])
    sets = [one, near, other, backwards, near, one, other]
    split = np.array([0, 1, 0, 1, 0, 1, 0])
    known = plain_distances(sets)
    crossing = sorted((apart, a, b) for (a, b), apart in known.items() if split[a] != split[b])
    for witnesses in (0, 1, 3, 100):
        found = duplicates_across(sets, split, witnesses=witnesses)
        assert found.count == len(crossing) == 6
        pairs = list(zip(found.i.tolist(), found.j.tolist(), strict=True))
        assert pairs == [(a, b) for _, a, b in crossing][:witnesses]
    assert duplicate_groups(sets).tolist() == [0, 0, 1, 0, 0, 0, 1]


def test_regular_plots_do_not_pile_up():
    """Every set shares every box with every other, in all orientations: more pairs than one block holds."""
    x, y = (at.ravel() * 128.0 + 14 for at in np.meshgrid(np.arange(4), np.arange(4)))
    generator = np.random.Generator(np.random.PCG64(1))
    sets = [image(moved(shapely.box(x, y, x + 100, y + 100), dx=generator.uniform(-1, 1))) for _ in range(120)]
    assert duplicate_groups(sets).max() == 0
    assert duplicates_across(sets, np.arange(120) % 3, witnesses=2).count == 3 * 40 * 40


def test_one_feature_cannot_match_twice():
    """Both halves of three wholes: each whole matches either half at IoU 0.5, and counts once."""
    x = np.arange(6) * 0.8
    whole = shapely.box(x, 0, x + 0.4, 0.25)
    halves = np.concatenate([shapely.box(x[:3], 0, x[:3] + 0.2, 0.25), shapely.box(x[:3] + 0.2, 0, x[:3] + 0.4, 0.25)])
    found = duplicates_across([world(whole, "EPSG:4326"), world(halves, "EPSG:4326")], np.arange(2))
    assert (found.count, found.distance.tolist()) == (1, [0.5])


def test_labels_without_a_place_are_named_as_in_their_own_set():
    from geoeval.errors import InputError

    lost = np.array([*shapely.points([[0, 0], [1, 1]]), shapely.Point(1e300, 1e300)], dtype=object)
    sets = [world(moved(boxes(1), dx=500_000, dy=5_000_000), "EPSG:32633"), world(lost, "EPSG:32633")]
    with pytest.raises(InputError, match="feature 2:"):
        duplicate_groups(sets)


WKT = "POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0), (2 2, 2 4, 4 4, 4 2, 2 2))"


@pytest.mark.parametrize(
    "same",
    [
        "POLYGON ((10 10, 0 10, 0 0, 10 0, 10 10), (2 2, 4 2, 4 4, 2 4, 2 2))",
        "POLYGON ((0 0, 5 0, 10 0, 10 10, 10 10, 0 10, 0 0), (2 2, 2 3, 2 4, 4 4, 4 2, 2 2))",
        "POLYGON ((5 0, 10 0, 10 10, 0 10, 0 0, 5 0), (2 2, 2 4, 4 4, 4 2, 2 2))",
        "MULTIPOLYGON (((-0.0 0, 10 0, 10 10, 0 10, 0 0), (2 2, 2 4, 4 4, 4 2, 2 2)))",
        "GEOMETRYCOLLECTION (POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0), (2 2, 2 4, 4 4, 4 2, 2 2)))",
        "POLYGON Z ((0 0 1, 10 0 2, 10 10 3, 0 10 4, 0 0 1), (2 2 1, 2 4 1, 4 4 1, 4 2 1, 2 2 1))",
        "POLYGON ((0 0.0000003, 10 0, 10.0000002 10, 0 10, 0 0.0000003), (2 2, 2 4, 4 4, 4 2, 2 2))",
    ],
)
def test_one_shape_has_one_form(same):
    assert canonical_feature(shapely.from_wkt(same)) == canonical_feature(shapely.from_wkt(WKT))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("LINESTRING (0 0, 5 5, 10 10)", "LINESTRING (10 10, 0 0)"),
        ("MULTIPOINT (1 1, 2 2)", "MULTIPOINT (2 2, 1 1)"),
        ("MULTILINESTRING ((0 0, 1 1, 2 2), (5 5, 6 6))", "MULTILINESTRING ((6 6, 5 5), (0 0, 2 2))"),
    ],
)
def test_lines_and_points_have_one_form_too(one, other):
    assert canonical_feature(shapely.from_wkt(one)) == canonical_feature(shapely.from_wkt(other))


@pytest.mark.parametrize(
    "other",
    [
        "POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0))",
        "POLYGON ((0 0, 10 0, 10 10.001, 0 10, 0 0), (2 2, 2 4, 4 4, 4 2, 2 2))",
        "LINESTRING (0 0, 10 0, 10 10, 0 10, 0 0)",
    ],
)
def test_another_shape_has_another_form(other):
    assert canonical_feature(shapely.from_wkt(other)) != canonical_feature(shapely.from_wkt(WKT))


def test_a_spike_and_a_speck_are_kept_as_they_are():
    spike = shapely.from_wkt("LINESTRING (0 0, 10 0, 5 0)")
    assert shapely.from_wkb(canonical_feature(spike)).length == pytest.approx(15)
    assert canonical_feature(shapely.box(0, 0, 1e-9, 1e-9))


@given(st.integers(0, 2**32), st.permutations(range(8)), st.integers(0, 3))
def test_order_start_and_winding_do_not_change_the_hash(seed, order, start):
    shapes = boxes(seed, 8)

    def rolled(shape):
        ring = shapely.get_coordinates(shape)[:-1]
        return shapely.Polygon(np.roll(ring, start, axis=0)[:: 1 if start % 2 else -1])

    assert geometry_hash([rolled(shapes[k]) for k in order]) == geometry_hash([*shapes, None, shapely.Point()])
    assert geometry_hash(shapes[:7]) != geometry_hash(shapes)


def test_dense_sets_are_compared_by_their_largest_features():
    """Three thousand boxes on top of each other would be nine million pairs of features for each pair of sets."""
    generator = np.random.Generator(np.random.PCG64(4))
    corner, size = generator.uniform(0, 400, (3000, 2)), generator.uniform(20, 90, (3000, 2))
    boxes = shapely.box(*corner.T, *(corner + size).T)
    moved = shapely.transform(boxes[::-1], lambda at: at + 0.4)
    other = shapely.box(*generator.uniform(0, 400, (3000, 2)).T, *generator.uniform(410, 500, (3000, 2)).T)
    sets = [LabelSet(pixels=one, size=(512, 512)) for one in (boxes, moved, other[:2000])]
    found = duplicates_across(sets[:2], np.array([0, 1]))
    assert (found.count, found.distance.max() < 0.1) == (1, True)
    assert duplicate_groups(sets[:2]).tolist() == [0, 0]
