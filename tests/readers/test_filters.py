"""Attribute filters: what they keep, and what they refuse."""

from __future__ import annotations

import pandas as pd
import pytest

from geoeval.errors import ColumnError, ConfigError
from geoeval.readers.filters import matches

FRAME = pd.DataFrame(
    {
        "kind": ["barn", "house", None, "o'hara"],
        "year": [2016, 2017, 2018, 2019],
        "area": [10.0, None, 30.0, 40.0],
        "code": ["1", "2", "3", "4"],
        "flag": [True, False, True, False],
        "two words": [1, 2, 3, 4],
    }
)


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("kind = 'barn'", [0]),
        ("kind == 'barn'", [0]),
        ("KIND = 'barn'", [0]),
        ("kind <> 'barn'", [1, 3]),
        ("kind != 'barn'", [1, 3]),
        ("kind = 'o''hara'", [3]),
        ("year >= 2017 AND year < 2019", [1, 2]),
        ("year between 2017 and 2018", [1, 2]),
        ("year not between 2017 and 2018", [0, 3]),
        ("kind in ('barn', 'house')", [0, 1]),
        ("kind NOT IN ('barn', 'house')", [3]),
        ("kind is null", [2]),
        ("kind IS NOT NULL", [0, 1, 3]),
        ("kind LIKE 'h%'", [1]),
        ("kind NOT LIKE 'h%'", [0, 3]),
        ("kind ILIKE 'B_RN'", [0]),
        ("kind LIKE 'B_RN'", []),
        ("(year = 2016 or year = 2019) and not kind = 'barn'", [3]),
        ("NOT (year = 2016 or year = 2019)", [1, 2]),
        ("year = 2016 or year = 2017 and kind = 'barn'", [0]),
        ("area > 5", [0, 2, 3]),
        ("not area > 5", []),
        ("not area > 20", [0]),
        ("area > -1e1", [0, 2, 3]),
        ("code = 3", [2]),
        ("year = '2018'", [2]),
        ("flag = true", [0, 2]),
        ('"two words" >= 3', [2, 3]),
        ("`two words` >= 3", [2, 3]),
        ("2017 < year", [2, 3]),
        ("area > year", []),
        ("kind > 'c'", [1, 3]),
    ],
)
def test_a_filter_keeps_what_it_says(where, kept):
    """Nulls are neither equal nor unequal to anything, as in SQL."""
    assert matches(FRAME, where).nonzero()[0].tolist() == kept


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("kind = 'barn' extra", "expected AND, OR or the end"),
        ("1 < year < 3", "a < b AND b < c"),
        ("kind", "expected a comparison"),
        ("kind = ", "expected a column or a value"),
        ("(kind = 'barn'", r"expected '\)'"),
        ("kind = 'barn", "cannot read"),
        ("kind IN 'barn'", r"expected '\('"),
        ("__import__('os')", "names column '__import__'|expected"),
        ("kind; drop", "cannot read"),
        ("kind like year", "expected a pattern"),
    ],
)
def test_what_is_no_filter_is_refused_with_the_place(where, says):
    with pytest.raises((ConfigError, ColumnError), match=says):
        matches(FRAME, where)


def test_a_wrong_column_is_refused_with_the_nearest_name():
    with pytest.raises(ColumnError, match=r"a\.csv.*'yeer'.*did you mean 'year'"):
        matches(FRAME, "yeer = 2016", "a.csv")


def test_a_text_in_double_quotes_is_explained():
    with pytest.raises(ColumnError, match="single quotes: 'barn'"):
        matches(FRAME, 'kind = "barn"')


def test_text_and_number_are_never_compared_in_silence():
    with pytest.raises(ColumnError, match="holds text"):
        matches(FRAME, "kind > 3")
    with pytest.raises(ColumnError, match="holds numbers"):
        matches(FRAME, "year = 'barn'")


def test_a_column_of_nulls_keeps_nothing():
    frame = pd.DataFrame({"method": [None, None]})
    assert not matches(frame, "method = 'a'").any()
    assert matches(frame, "method is null").all()


def test_names_in_other_scripts_are_read():
    frame = pd.DataFrame({"höhe": [1.0, 2.0]})
    assert matches(frame, "höhe > 1").tolist() == [False, True]
