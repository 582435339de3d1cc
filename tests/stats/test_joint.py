"""Joint counts: dense, sparse and compiled ways give what a loop gives."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoeval.stats.joint import joint_counts

KINDS = ["uint8", "int8", "int16", "uint16", "int32", "int64", "uint32"]


def counted(prediction, reference, valid):
    pairs = zip(prediction[valid].tolist(), reference[valid].tolist(), strict=True)
    return sorted(Counter(pairs).items())


def table(bins):
    return sorted((tuple(key), count) for key, count in zip(bins.keys.tolist(), bins.counts.tolist(), strict=True))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    kinds=st.tuples(st.sampled_from(KINDS), st.sampled_from(KINDS)),
    shape=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    spread=st.sampled_from([3, 20, 100]),
    share=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_counts_are_those_of_a_loop(seed, kinds, shape, spread, share):
    generator = np.random.default_rng(seed)
    sides = [generator.integers(0, spread, shape).astype(kind) for kind in kinds]
    sides = [side - spread // 2 if side.dtype.kind == "i" else side for side in sides]
    valid = generator.random(shape) < share
    expected = counted(*sides, valid)
    assert table(joint_counts(*sides, valid)) == expected
    assert table(joint_counts(*sides, valid, compiled=True)) == expected


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("codes", "kind"),
    [
        ([-9999, 1, 2, 10], "int32"),
        ([0, 255, 254, 7], "uint8"),
        ([-128, 127, 0, 1], "int8"),
        ([2**40, -(2**40), 5, 6], "int64"),
        ([0, 5000, 70_000, 12], "int32"),
        ([0, 65_535, 4097, 3], "uint16"),
    ],
)
def test_far_and_negative_codes_are_codes_like_others(codes, kind, compiled):
    generator = np.random.default_rng(0)
    p = generator.choice(np.array(codes, dtype=kind), (31, 17))
    r = generator.choice(np.array(codes, dtype=kind), (31, 17))
    for valid in (np.ones(p.shape, dtype=bool), p != codes[0], generator.random(p.shape) < 0.01):
        assert table(joint_counts(p, r, valid, compiled=compiled)) == counted(p, r, valid)


def test_views_that_are_not_contiguous_are_counted():
    generator = np.random.default_rng(1)
    p, r = generator.integers(0, 9, (2, 50, 60), dtype=np.uint8)
    window = (slice(3, 40), slice(7, 44, 2))
    valid = p[window] != 0
    assert table(joint_counts(p[window], r[window], valid)) == counted(p[window], r[window], valid)


def test_types_make_no_difference():
    generator = np.random.default_rng(2)
    p, r = generator.integers(0, 30, (2, 40, 40))
    valid = p > 2
    first = joint_counts(p, r, valid)
    for kind in KINDS:
        assert joint_counts(p.astype(kind), r.astype("uint8"), valid) == first


def test_a_code_beyond_64_bits_is_refused():
    huge = np.array([[2**63 + 5]], dtype=np.uint64)
    with pytest.raises(ValueError, match="does not fit"):
        joint_counts(huge, huge, np.array([[True]]))
