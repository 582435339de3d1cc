"""Sketches of label sets: what they hold, and that nearly equal sets are found through them."""

from __future__ import annotations

import base64
import itertools

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from geoeval.errors import InputError
from geoeval.splits.labelset_frames import as_boxes, in_degrees, in_image
from geoeval.splits.labelsets import LabelSet, duplicate_groups, duplicates_across
from geoeval.splits.labelsketch import opened, sketch

SIZE = 512


def boxes(seed, n=12, size=SIZE):
    generator = np.random.Generator(np.random.PCG64(seed))
    at, span = generator.uniform(0, size - 40, (n, 2)), generator.uniform(10, 40, (n, 2))
    return shapely.box(*at.T, *(at + span).T)


def discs(seed, n=12):
    return shapely.buffer(shapely.centroid(boxes(seed, n)), np.linspace(6, 20, n), quad_segs=3)


def points(seed, n=12):
    return shapely.centroid(boxes(seed, n))


def lines(seed, n=12):
    bounds = shapely.bounds(boxes(seed, n))
    return shapely.linestrings(bounds.reshape(n, 2, 2))


def shifted(shapes, dx, dy=0.0):
    return shapely.transform(shapes, lambda at: at + np.array([dx, dy]))


def mirrored(shapes):
    return shapely.transform(shapes, lambda at: np.array([SIZE, 0]) + at * np.array([-1, 1]))


def transposed(shapes):
    return shapely.transform(shapes, lambda at: at[:, ::-1])


def image(shapes):
    return LabelSet(pixels=shapes, size=(SIZE, SIZE))


def world(shapes, crs="EPSG:32633"):
    return LabelSet(world=shifted(shapes, 500_000, 5_000_000), crs=crs)


def again(labels):
    return opened(sketch(labels))


def alike(one, other):
    return duplicates_across([one, other], np.array([0, 1])).count == 1


COMBINATIONS = list(itertools.product([False, True], repeat=2))


@pytest.mark.parametrize(("first", "second"), COMBINATIONS)
@pytest.mark.parametrize("kind", [boxes, discs, points, lines])
def test_copies_are_found_in_every_combination(kind, first, second):
    def seen(labels, sketched):
        return again(labels) if sketched else labels

    shapes, small = kind(1), 0.2 if kind in (points, lines) else 2.0
    copies = [shapes, shifted(shapes, small, -small), mirrored(shifted(shapes, small)), transposed(shapes)]
    for copy in copies:
        assert alike(seen(image(shapes), first), seen(image(copy), second))
    for copy in copies[:2]:
        assert alike(seen(world(shapes), first), seen(world(copy), second))
    assert not alike(seen(image(shapes), first), seen(image(kind(2)), second))
    assert not alike(seen(world(shapes), first), seen(world(kind(2)), second))


def test_unrelated_sets_stay_apart_through_sketches():
    sets = [again(image(boxes(seed))) if seed % 2 else image(boxes(seed)) for seed in range(40)]
    assert duplicate_groups(sets).tolist() == list(range(40))


@pytest.mark.parametrize("kind", [boxes, discs, points])
def test_a_full_set_gives_what_its_sketch_gives(kind):
    """Distances are the same whether one side or both are sketches."""
    full = [
        image(kind(1)),
        image(shifted(kind(1), 0.3)),
        image(kind(2)),
        image(np.concatenate([kind(1)[:7], kind(3)[7:]])),
    ]
    split = np.array([0, 1, 1, 1])
    wholly = duplicates_across([again(one) for one in full], split)
    partly = duplicates_across([again(full[0]), *full[1:]], split)
    assert wholly.count == partly.count == 2
    assert wholly.distance.tolist() == partly.distance.tolist()
    assert wholly.j.tolist() == partly.j.tolist()


def test_two_full_sets_are_compared_by_their_shapes_beside_sketches():
    """Crossed bars share a box, and hardly any area: boxes say alike, shapes do not."""
    at = shapely.get_coordinates(shapely.centroid(boxes(1)))

    def bars(way):
        return shapely.buffer(shapely.linestrings(np.stack([at - way, at + way], axis=1)), 0.5)

    one, other = image(bars(np.array([12, 12]))), image(bars(np.array([12, -12])))
    sets = [one, other, again(one), again(other)]
    found = duplicates_across(sets, np.arange(4))
    pairs = set(zip(found.i.tolist(), found.j.tolist(), strict=True))
    assert pairs == set(itertools.combinations(range(4), 2)) - {(0, 1)}


def test_both_frames_are_held():
    labels = LabelSet(shifted(boxes(1), 500_000, 5_000_000), "EPSG:32633", boxes(1), (SIZE, SIZE))
    opened_again = again(labels)
    assert (len(opened_again.world), len(opened_again.pixels), opened_again.drawn) == (12, 12, (12, 12))
    assert alike(opened_again, image(mirrored(boxes(1))))
    assert alike(opened_again, world(boxes(1)))
    assert duplicates_across([opened_again, labels], np.array([0, 1])).count == 1


def test_a_set_across_the_antimeridian_is_one_set():
    east = shapely.transform(boxes(1), lambda at: at * 4e-5 + np.array([179.99, 10]))
    sets = [LabelSet(east), LabelSet(shifted(east, -360)), again(LabelSet(east)), again(LabelSet(shifted(east, -360)))]
    assert duplicate_groups(sets).tolist() == [0, 0, 0, 0]


@given(st.integers(0, 2**32), st.permutations(range(12)))
@settings(deadline=None)
def test_order_does_not_change_a_sketch_and_opening_gives_it_again(seed, order):
    labels = LabelSet(shifted(boxes(seed), 500_000, 5_000_000), "EPSG:32633", boxes(seed), (SIZE, SIZE))
    text = sketch(labels)
    other = LabelSet(labels.world[order], labels.crs, labels.pixels[order], labels.size)
    assert sketch(other) == text
    assert sketch(opened(text)) == text


def test_steps_are_fine_enough():
    labels = LabelSet(shifted(boxes(1), 500_000, 5_000_000), "EPSG:32633", boxes(1), (SIZE, SIZE))
    for frame, step in ((in_image, 1 / 16), (in_degrees, 1e-7)):
        exact, rounded = frame([labels]).box, frame([again(labels)]).box
        assert np.abs(exact - rounded).max() <= step / 2 * (1 + 1e-6)


MANY = 700


def plots(dx=0.0):
    """More boxes than a sketch holds, all of one size."""
    x, y = (at.ravel()[:MANY] * 18.0 + 10 for at in np.meshgrid(np.arange(27), np.arange(27)))
    return shapely.box(x + dx, y, x + dx + 12, y + 12)


@pytest.mark.parametrize("change", [lambda s: s, lambda s: shifted(s, 1.0), mirrored, transposed])
def test_of_many_equal_features_the_same_ones_are_kept(change):
    whole = image(plots())
    kept = again(whole)
    assert (len(kept.pixels), kept.drawn) == (256, (0, MANY))
    assert len(sketch(whole)) < 8_204
    assert alike(kept, image(change(plots())))
    assert alike(kept, again(image(change(plots()))))


def test_the_largest_are_kept():
    large = boxes(1, 256)
    small = shapely.buffer(points(2, 300), 0.5, cap_style="square")
    generator = np.random.Generator(np.random.PCG64(3))
    shapes = generator.permutation(np.concatenate([large, small]))
    assert again(image(shapes)).pixels.tolist() == again(image(large)).pixels.tolist()
    assert len(as_boxes(in_image([image(shapes)]), world=False).box) == 256


def test_too_few_features_have_no_sketch():
    assert sketch(LabelSet()) is None
    assert sketch(image(boxes(1, 2))) is None
    assert sketch(LabelSet(world=boxes(1, 2), crs="EPSG:32633", pixels=boxes(1, 2))) is None
    empty = np.array([None, shapely.Point(), *boxes(1, 2)], dtype=object)
    assert sketch(image(empty)) is None
    assert sketch(image(np.array([*empty, *boxes(2, 1)], dtype=object))) is not None


def test_features_far_outside_the_image_do_not_break_a_sketch():
    shapes = np.array([*boxes(1), shapely.box(-1e6, -1e6, -1e5, 1e7)], dtype=object)
    text = sketch(image(shapes))
    assert sketch(opened(text)) == text


def packed(n_image, n_world, image_boxes=(), world_boxes=(), form=1):
    data = bytes([form]) + np.array([n_image, n_world], "<u4").tobytes()
    data += np.array(image_boxes, "<i2").tobytes() + np.array(world_boxes, "<i4").tobytes()
    return base64.b64encode(data).decode()


THREE = [[0, 0, 5, 5], [10, 0, 15, 5], [20, 0, 25, 5]]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "too few"),
        ("AAAA", "too few"),
        ("not base64!", "base64"),
        ("ä", "base64"),
        (None, "got NoneType"),
        (packed(3, 0, THREE, form=9), "expected form 1, found 9"),
        (packed(3, 0, THREE[:2]), "cut off"),
        (packed(3, 0, [*THREE, THREE[0]]), "cut off"),
        (packed(3, 0, THREE)[:-4], "cut off"),
        (packed(2**32 - 1, 0, THREE), "cut off"),
        (packed(0, 0), "features or more"),
        (packed(2, 0, THREE[:2]), "features or more"),
        (packed(3, 0, THREE[::-1]), "not in order"),
        (packed(3, 0, [*THREE[:2], [20, 0, 20, 5]]), "are none"),
        (packed(0, 3, (), [*THREE[:2], [20, 0, 25, 2_000_000_000]]), "are none"),
        (packed(0, 3, (), [*THREE[:2], [2_000_000_000, 0, 2_100_000_000, 5]]), "are none"),
    ],
)
def test_what_is_no_sketch_is_refused(text, says):
    with pytest.raises(InputError, match=f"label sketch .*{says}"):
        opened(text)


def test_what_is_one_is_read():
    assert opened(packed(3, 3, THREE, THREE)).boxes
    assert opened(packed(3, 0, THREE)).world is None
    assert opened(packed(0, 3, (), THREE)).pixels is None
