"""Twelve significant digits, one zero, no NaN."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoeval.errors import InputError
from geoeval.stats.rounding import round12, round12_or_none


def test_two_correct_libraries_agree_after_rounding():
    assert round12(0.908190131774416) == round12(0.9081901317744162) == 0.908190131774


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1234567.8901234567, 1234567.89012), (1e-300, 1e-300), (123456789012.0, 123456789012.0), (2 / 3, 0.666666666667)],
)
def test_significant_digits_are_counted_not_decimals(value, expected):
    assert round12(value) == expected


def test_there_is_one_zero():
    assert math.copysign(1, round12(-0.0)) == 1


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_undefined_is_refused(value):
    with pytest.raises(InputError, match="finite"):
        round12(value)


def test_none_stays_none():
    assert round12_or_none(None) is None
    assert round12_or_none(1 / 3) == 0.333333333333


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_rounding_twice_changes_nothing_and_the_sign_mirrors(value):
    once = round12(value)
    assert round12(once) == once
    assert round12(-value) == -once
    assert once == pytest.approx(value, rel=1e-11, abs=0)
