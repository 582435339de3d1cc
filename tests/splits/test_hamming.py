"""Hamming neighbours against a loop over all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from geoeval.splits.hamming import Confirmation, accidental_pairs, hamming_across, hamming_groups


def all_distances(codes):
    """(n, n) least distance over the orientations of either side."""
    rows = codes.reshape(len(codes), -1)
    one_way = np.bitwise_count(rows[:, None, :1] ^ rows[None, :, :]).min(axis=2).astype(np.int64)
    return np.minimum(one_way, one_way.T)


def clustered_codes(seed, n, width=1):
    """Random codes, near copies of them and exact copies."""
    generator = np.random.Generator(np.random.PCG64(seed))
    codes = generator.integers(0, 2**64, size=(n, width), dtype=np.uint64)
    for row in range(n // 2, n):
        codes[row] = codes[generator.integers(0, n // 2)]
        for _ in range(generator.integers(0, 11)):
            at = (row, generator.integers(0, width))
            codes[at] ^= np.uint64(1) << np.uint64(generator.integers(0, 64))
    return codes[:, 0] if width == 1 else codes


def same_partition(a, b):
    return len(set(zip(a.tolist(), b.tolist(), strict=True))) == len(set(a.tolist())) == len(set(b.tolist()))


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("radius", [0, 1, 3, 4, 6, 8, 10, 13])
def test_groups_are_the_components_of_all_pairs(radius, width):
    codes = clustered_codes(radius, 250, width)
    i, j = np.nonzero(all_distances(codes) <= radius)
    expected = connected_components(coo_matrix((np.ones(len(i)), (i, j)), shape=(250, 250)), directed=False)[1]
    found = hamming_groups(codes, radius)
    assert same_partition(found, expected)
    assert found[0] == 0
    assert np.all(np.diff(np.unique(found, return_index=True)[1]) > 0)


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("radius", [0, 2, 4, 5, 7, 8, 11])
@pytest.mark.parametrize("witnesses", [0, 5, 10_000])
def test_pairs_across_are_exact_and_ordered(radius, width, witnesses):
    codes = clustered_codes(radius + 50, 200, width)
    codes[150:170] = codes[0]
    split = np.random.Generator(np.random.PCG64(radius)).integers(-1, 3, 200)
    distance = all_distances(codes)
    i, j = np.nonzero(np.triu((distance <= radius) & (split[:, None] != split[None, :]), 1))
    order = np.lexsort((j, i, distance[i, j]))[:witnesses]
    found = hamming_across(codes, split, radius, witnesses=witnesses)
    assert found.count == len(i)
    assert found.i.tolist() == i[order].tolist()
    assert found.j.tolist() == j[order].tolist()
    assert found.distance.tolist() == distance[i, j][order].tolist()


def distances_of_looks(codes, looks, second, known, radius, wide, limit):
    """(n, n) least distance over all near combinations of an image as it is and any entry; 99 where none is near."""
    n = len(codes)
    out = np.full((n, n), 99)
    for a in range(n):
        for b in range(n):
            for p in range(0, 8 * looks[a], 8):
                for q in range(8 * looks[b]):
                    d = int(np.bitwise_count(codes[a, p] ^ codes[b, q]))
                    agree = known[a] and known[b] and int(np.bitwise_count(second[a, p] ^ second[b, q])) <= limit
                    if d <= radius or (d <= wide and agree):
                        out[a, b] = min(out[a, b], d)
    return np.minimum(out, out.T)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("radius", "wide", "limit"), [(4, 8, 12), (2, 10, 3), (4, 4, 0), (0, 6, 24)])
def test_looks_and_second_hashes_against_all_combinations(seed, radius, wide, limit):
    generator = np.random.Generator(np.random.PCG64(seed))
    n, width = 60, 24
    codes = generator.integers(0, 2**64, (n, width), dtype=np.uint64)
    second = generator.integers(0, 2**64, (n, width), dtype=np.uint64)
    looks = generator.integers(1, 4, n)
    for row in range(n // 3, n):
        # A near copy of one entry of an earlier row, in some entry of this one; whole rows are copied at times.
        other, here, there = generator.integers(0, n // 3), generator.integers(0, width), generator.integers(0, width)
        if row % 7 == 0:
            codes[row], second[row], looks[row] = codes[other], second[other], looks[other]
            continue
        codes[row, here], second[row, here] = codes[other, there], second[other, there]
        for values, most in ((codes, 12), (second, 16)):
            for bit in generator.choice(64, generator.integers(0, most), replace=False):
                values[row, here] ^= np.uint64(1) << np.uint64(bit)
    known = generator.random(n) < 0.8
    split = generator.integers(0, 3, n)
    expected = distances_of_looks(codes, looks, second, known, radius, wide, limit)
    how = {"looks": looks, "confirmation": Confirmation(second, known, wide, limit)}
    i, j = np.nonzero(np.triu((expected < 99) & (split[:, None] != split[None, :]), 1))
    found = hamming_across(codes, split, radius, witnesses=10_000, **how)
    order = np.lexsort((j, i, expected[i, j]))
    assert found.count == len(i)
    assert found.i.tolist() == i[order].tolist()
    assert found.j.tolist() == j[order].tolist()
    assert found.distance.tolist() == expected[i, j][order].tolist()
    i, j = np.nonzero(expected < 99)
    groups = connected_components(coo_matrix((np.ones(len(i)), (i, j)), shape=(n, n)), directed=False)[1]
    assert same_partition(hamming_groups(codes, radius, **how), groups)


def test_beyond_the_radius_a_second_hash_has_to_agree():
    codes = np.array([0, 0b111111], dtype=np.uint64)
    split = np.array([0, 1])

    def count(second, known=(True, True)):
        second = np.array(second, dtype=np.uint64)
        return hamming_across(codes, split, 4, confirmation=Confirmation(second, np.array(known), 8, 2)).count

    assert hamming_across(codes, split, 4).count == 0
    assert count([0, 0b11]) == 1
    assert count([0, 0b111]) == 0
    assert count([0, 0], known=(True, False)) == 0


@given(st.lists(st.integers(0, 2**64 - 1), max_size=12), st.integers(0, 15), st.integers(0, 63))
def test_two_codes_are_linked_exactly_within_the_radius(values, radius, bit):
    codes = np.array([*values, *(value ^ (1 << bit) for value in values)], dtype=np.uint64)
    split = np.arange(len(codes))
    expected = int(np.triu(all_distances(codes) <= radius, 1).sum()) if len(codes) else 0
    assert hamming_across(codes, split, radius).count == expected


def test_many_equal_codes_of_one_split_cost_nothing():
    """A hundred thousand constant tiles in train and one in test: 100,000 pairs, found without listing five billion."""
    codes = np.zeros(100_001, dtype=np.uint64)
    split = np.zeros(100_001, dtype=np.int64)
    split[70_000] = 1
    found = hamming_across(codes, split, 4, witnesses=3)
    assert found.count == 100_000
    assert list(zip(found.i.tolist(), found.j.tolist(), strict=True)) == [(0, 70_000), (1, 70_000), (2, 70_000)]


def test_a_flip_is_found_through_either_orientation():
    """The second image equals the third orientation of the first one, and not the other way round."""
    codes = np.arange(16, dtype=np.uint64).reshape(2, 8) * np.uint64(0x9E3779B97F4A7C15)
    codes[1, 0] = codes[0, 3]
    assert hamming_groups(codes, 0).tolist() == [0, 0]
    assert hamming_across(codes, np.array([0, 1]), 0).count == 1


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="unsigned 64-bit integers, got int64"):
        hamming_groups(np.arange(3), 4)
    with pytest.raises(ValueError, match="0 to 15 bits, got 16"):
        hamming_groups(np.arange(3, dtype=np.uint64), 16)
    with pytest.raises(ValueError, match=r"shape \(3,\), got \(2,\)"):
        hamming_across(np.arange(3, dtype=np.uint64), np.arange(2), 4)


def test_columns_come_in_eights():
    with pytest.raises(ValueError, match=r"8 x looks\), got shape \(3, 5\)"):
        hamming_groups(np.zeros((3, 5), dtype=np.uint64), 4)


def test_nothing_has_no_groups():
    empty = np.zeros(0, dtype=np.uint64)
    assert hamming_groups(empty, 4).tolist() == []
    assert hamming_across(empty, np.zeros(0, dtype=np.int64), 4).count == 0


def test_accidents_follow_the_table_and_grow_with_the_square():
    assert [accidental_pairs(10**6, radius) for radius in (4, 6, 8, 10)] == [3.0, 210.0, 6800.0, 142000.0]
    assert accidental_pairs(10**5, 6) == pytest.approx(2.1)
    rising = [accidental_pairs(10**6, radius) for radius in range(16)]
    assert rising == sorted(rising)
    assert accidental_pairs(1, 8) == 0
    assert accidental_pairs(10**6, 8, confirmed=True) == pytest.approx(14.28)
