"""Laws of every tally: sums in any order, nothing, and repetition; and that totals are what adding up gives."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from geoeval.stats.counts import Counts
from geoeval.stats.tally import PER_UNIT, Bins, Rows, Tally, clustered, quanta, total, totals_of

MANY = settings(deadline=None)

whole = st.one_of(st.integers(-5, 5), st.integers(-(2**90), 2**90))
names = st.sampled_from(["a", "b", "c"])
reals = st.floats(-1e9, 1e9)

bins = st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 2), st.integers(1, 2**40)), max_size=6).map(
    lambda rows: Bins.of(np.array([row[:2] for row in rows]).reshape(-1, 2), np.array([row[2] for row in rows]))
)
bags = st.lists(st.tuples(st.one_of(st.sampled_from([0.0, -0.0, 0.5]), reals), st.integers(0, 1)), max_size=6).map(
    lambda rows: Rows.of(*np.array(rows, dtype=float).reshape(-1, 2).T)
)
tallies = st.builds(
    Tally.of,
    sums=st.dictionaries(names, whole, max_size=3),
    bins=st.dictionaries(names, bins, max_size=2),
    rows=st.dictionaries(names, bags, max_size=2),
)
counts = st.builds(Counts, *[st.integers(0, 2**70)] * 3)


@dataclass(frozen=True)
class Kind:
    values: Any
    zero: Any


KINDS = {
    "tally": Kind(tallies, Tally()),
    "bins": Kind(bins, Bins.of(np.zeros((0, 2), dtype=np.int64))),
    "rows": Kind(bags, Rows.of(np.zeros(0), np.zeros(0))),
    "counts": Kind(counts, Counts()),
}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())


@every_kind
@MANY
@given(data=st.data())
def test_tallies_add_in_any_order(kind, data):
    a, b, c = (data.draw(kind.values) for _ in range(3))
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)


@every_kind
@MANY
@given(data=st.data())
def test_nothing_added_changes_nothing(kind, data):
    a = data.draw(kind.values)
    assert a + kind.zero == a == kind.zero + a


@every_kind
@MANY
@given(data=st.data())
def test_times_is_repeated_addition(kind, data):
    a, b = data.draw(kind.values), data.draw(kind.values)
    assert a * 0 == kind.zero
    assert a * 1 == a
    assert a * 3 == a + a + a
    assert (a + b) * 2 == a * 2 + b * 2


@every_kind
@MANY
@given(data=st.data())
def test_a_tally_differs_from_itself_with_something_added(kind, data):
    """So that the laws above are not true for want of a difference."""
    a, b = data.draw(kind.values), data.draw(kind.values)
    assert (a + b == a) == (b == kind.zero)


def test_a_bag_tells_no_difference_between_the_zeros():
    assert Rows.of([-0.0]).values.tobytes() == Rows.of([0.0]).values.tobytes()


def test_bins_that_cancel_vanish():
    assert Bins.of(np.array([1, 1]), np.array([2, -2])) == Bins.of(np.zeros((0, 1)))


@MANY
@given(st.lists(tallies, max_size=6), st.randoms())
def test_a_total_is_the_sum_of_its_halves_for_every_cut_and_order(parts, random):
    whole_sum = total(parts)
    shuffled = random.sample(parts, len(parts))
    cut = random.randint(0, len(parts))
    assert whole_sum == total([total(shuffled[:cut]), total(shuffled[cut:])])
    one_by_one = Tally()
    for part in shuffled:
        one_by_one = one_by_one + part
    assert whole_sum == one_by_one


def names_of(parts):
    return {f"c{i}": part for i, part in enumerate(parts)}


def repeated(parts, multiplicity):
    return total([part * int(times) for part, times in zip(parts, multiplicity, strict=True)])


@st.composite
def drawn(draw, kinds=tallies):
    parts = draw(st.lists(kinds, min_size=1, max_size=5))
    shape = (draw(st.integers(1, 4)), len(parts))
    return parts, draw(npst.arrays(np.int64, shape, elements=st.integers(0, 4)))


@MANY
@given(drawn())
def test_totals_of_redraws_are_the_naive_sums_whatever_their_size(case):
    """Sums up to 2**94: float64 below 2**53, limbs of 26 bits above, Python integers where int64 ends."""
    parts, multiplicity = case
    totals = clustered(names_of(parts)).totals(multiplicity)
    for b, times in enumerate(multiplicity):
        naive = repeated(parts, times)
        for name in "abc":
            assert int(totals[name][b]) == naive.sums.get(name, 0)
            if name in totals.bins:
                found = Bins.of(totals.bins[name].keys, totals.bins[name].counts[b])
                assert found == naive.bins.get(name, KINDS["bins"].zero)
            if name in totals.rows:
                held = totals.rows[name]
                bag = Rows.of(*np.repeat(held.values, held.weights(b), axis=0).T)
                assert bag == naive.rows.get(name, KINDS["rows"].zero)


@pytest.mark.parametrize("size", [2**40, 2**52, 2**53, 2**53 + 1, 2**61, 2**62, 2**62 + 1, 2**63, 2**80 + 1, 3**60])
@pytest.mark.parametrize("sign", [1, -1])
def test_totals_are_exact_on_both_sides_of_every_limit(size, sign):
    parts = [Tally.of(a=sign * size, b=1), Tally.of(a=sign * (size - 1)), Tally.of(a=-sign, b=2)]
    multiplicity = np.array([[1, 1, 1], [3, 0, 0], [0, 2, 1], [0, 0, 3]])
    totals = clustered(names_of(parts)).totals(multiplicity)
    expected = [sign * (2 * size - 2), 3 * sign * size, sign * (2 * size - 3), -3 * sign]
    assert [int(value) for value in totals["a"]] == expected
    assert totals["b"].tolist() == [3, 3, 2, 6]


def test_a_large_sum_beside_a_small_one_costs_the_small_one_nothing():
    totals = clustered({"x": Tally.of(big=2**70, small=1)}).totals(np.array([[1], [5]]))
    assert [int(v) for v in totals["small"]] == [1, 5]
    assert totals.real("big", per_unit=2**70).tolist() == [1.0, 5.0]


@MANY
@given(st.lists(tallies, min_size=1, max_size=5), st.randoms())
def test_the_order_of_clusters_changes_no_total(parts, random):
    named = names_of(parts)
    shuffled = dict(random.sample(sorted(named.items()), len(named)))
    one, other = clustered(named).whole(), clustered(shuffled).whole()
    alone = totals_of(parts)
    for name in "abc":
        assert int(one[name][0]) == int(other[name][0]) == int(alone[name][0])
        if name in one.rows:
            assert one.rows[name].values.tobytes() == other.rows[name].values.tobytes()
            assert one.rows[name].cluster.tolist() == other.rows[name].cluster.tolist()


@MANY
@given(st.lists(tallies, min_size=1, max_size=5))
def test_every_cluster_by_itself_sums_to_the_whole(parts):
    table = clustered(names_of(parts))
    each, all_of_them = table.each(), table.whole()
    for name in table.names:
        assert sum(int(value) for value in each[name]) == int(all_of_them[name][0])
    for name, held in each.bins.items():
        assert held.counts.sum(axis=0).tolist() == all_of_them.bins[name].counts[0].tolist()


@MANY
@given(st.lists(reals, max_size=30), st.randoms())
def test_quanta_are_the_exact_sum_of_rounded_values_in_any_order(values, random):
    exact = sum(round(Fraction(float(np.float64(v) * PER_UNIT))) for v in values)
    assert quanta(np.array(values)) == exact
    assert quanta(np.array(random.sample(values, len(values)))) == exact


@MANY
@given(st.lists(st.floats(-1e18, 1e18), max_size=20))
def test_quanta_beyond_int64_are_exact_too(values):
    assert quanta(np.array(values)) == sum(round(Fraction(float(np.float64(v) * PER_UNIT))) for v in values)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_quanta_refuse_what_has_no_sum(bad):
    with pytest.raises(ValueError, match="not all finite"):
        quanta(np.array([1.0, bad]))


def test_quanta_of_two_dimensions_and_of_nothing():
    assert quanta(np.array([[0.1, 0.2], [0.3, 0.4]])) == PER_UNIT
    assert quanta(np.zeros((0, 3))) == 0
