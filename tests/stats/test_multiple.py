"""Corrections for many tests."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoeval.errors import ConfigError, InputError
from geoeval.stats.multiple import bonferroni, bonferroni_z, holm

p_values = st.lists(st.floats(0, 1), max_size=12)


def test_holm_by_hand():
    """Sorted 0.01, 0.02, 0.03, 0.04 times 4, 3, 2, 1: 0.04, 0.06, 0.06, then held up by the one before."""
    found = holm([0.04, 0.01, 0.03, 0.02])
    assert found.p == pytest.approx((0.06, 0.04, 0.06, 0.06))
    assert found.rejected == (False, True, False, False)


@settings(deadline=None)
@given(p_values)
def test_holm_is_never_blunter_than_bonferroni_and_never_sharper_than_the_raw_value(p):
    for raw, stepped, flat in zip(p, holm(p).p, bonferroni(p).p, strict=True):
        assert raw <= stepped <= flat <= 1


@settings(deadline=None)
@given(p_values, st.randoms())
def test_the_order_of_the_tests_does_not_matter(p, random):
    order = random.sample(range(len(p)), len(p))
    assert holm([p[i] for i in order]).p == tuple(holm(p).p[i] for i in order)


@pytest.mark.parametrize("p", [[float("nan")], [-0.1], [1.1]])
@pytest.mark.parametrize("correction", [holm, bonferroni])
def test_what_is_no_p_value_is_refused(correction, p):
    with pytest.raises(InputError, match=r"\[0, 1\]"):
        correction(p)


def test_alpha_and_families_are_checked():
    with pytest.raises(ConfigError, match="percentage"):
        holm([0.1], alpha=5)
    with pytest.raises(ConfigError, match="at least 1"):
        bonferroni_z(0)
    assert bonferroni_z(20) > bonferroni_z(2) > bonferroni_z(1) == pytest.approx(1.9599639845400545)
