"""Identifiers from content: the same whatever the order, the start of a ring or the type of a column."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest
import shapely

from geoeval.errors import InputError
from geoeval.geometry.identity import canonical_texts, content_ids, content_rank, rank_of


def layer(*shapes):
    out = np.empty(len(shapes), dtype=object)
    out[:] = shapes
    return out


def test_shuffling_moves_the_ids_with_their_features():
    rng = np.random.default_rng(3)
    corner = rng.integers(0, 100, (50, 2)).astype(float)
    shapes = shapely.box(corner[:, 0], corner[:, 1], corner[:, 0] + 1, corner[:, 1] + 1)
    name = rng.integers(0, 5, 50)
    order = rng.permutation(50)
    assert content_ids(shapes[order], name[order]).tolist() == content_ids(shapes, name)[order].tolist()


def test_start_and_direction_of_a_ring_do_not_count():
    one = shapely.from_wkt("POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))")
    two = shapely.from_wkt("POLYGON ((4 4, 4 0, 0 0, 0 4, 4 4))")
    ids = content_ids(layer(one, two))
    assert ids[1] == f"{ids[0]}#2"


def test_three_alike_are_told_apart():
    ids = content_ids(layer(*[shapely.Point(1, 2)] * 3))
    assert [text.partition("#")[2] for text in ids] == ["", "2", "3"]
    assert sorted(content_rank(layer(*[shapely.Point(1, 2)] * 3)).tolist()) == [0, 1, 2]


def test_attributes_tell_equal_shapes_apart_and_do_not_run_together():
    point = shapely.Point(0, 0)
    ids = content_ids(layer(point, point), np.array(["ab", "a"], dtype=object), np.array(["c", "bc"], dtype=object))
    assert ids[0] != ids[1]
    assert "#" not in "".join(ids)


def test_missing_shapes_and_no_features_have_ids_too():
    assert len(content_ids(layer(None, shapely.Point())).tolist()) == 2
    assert content_ids(layer()).tolist() == []
    assert content_rank(layer()).tolist() == []


def test_values_read_the_same_however_a_reader_typed_them():
    assert canonical_texts(np.array([1, 2])) == canonical_texts(np.array([1.0, 2.0])) == ["1", "2"]
    assert canonical_texts(pd.Series([1, None], dtype="Int64")) == canonical_texts(np.array([1, np.nan])) == ["1", ""]
    blanks = np.array([None, np.nan, pd.NA, pd.NaT], dtype=object)
    assert canonical_texts(blanks) == [""] * 4
    assert canonical_texts(np.array([True, False])) == ["true", "false"]
    assert canonical_texts(np.array([np.inf, -0.0, 0.1])) == ["inf", "0", "0.1"]
    days = layer(dt.date(2020, 1, 2), pd.Timestamp(2020, 1, 2))
    assert canonical_texts(days) == ["2020-01-02", "2020-01-02T00:00:00"]


def test_a_known_feature_keeps_its_id():
    """Pinned: records of earlier runs name features by it."""
    ids = content_ids(layer(shapely.box(0, 0, 1, 1)), np.array(["barn"], dtype=object))
    assert ids.tolist() == ["d28a62e2e341f264"]


def test_a_column_of_another_length_is_refused():
    with pytest.raises(InputError, match="column 0: expected 1 values"):
        content_ids(layer(shapely.Point(0, 0)), np.array([1, 2]))


def test_ranks_follow_the_text():
    assert rank_of(layer("b", "a", "10", "2")).tolist() == [3, 2, 0, 1]
