"""Splits, merges, tangles, and the kinds of errors."""

from __future__ import annotations

import numpy as np
import pytest

from geoeval.geometry.match import one_to_one
from geoeval.geometry.structure import ERROR_TYPES, error_types, structure


def objects(*values):
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def test_a_reference_cut_in_two_is_split():
    """House 0 is drawn as halves 0 and 1; house 1 as one."""
    found = structure(2, 3, [0, 0, 1], [0, 1, 2], [0.5, 0.5, 1.0], [1.0, 1.0, 1.0])
    assert found.split_references.tolist() == [0]
    assert found.split_predictions.tolist() == [0, 1]
    assert found.merged_references.tolist() == []
    assert found.many_to_many == ()


def test_row_houses_under_one_blob_are_merged():
    """Three houses lie in blob 1; a fourth only by a third of its area."""
    found = structure(4, 2, [0, 1, 2, 3], [1, 1, 1, 1], [1.0, 1.0, 1.0, 0.33], [0.2, 0.2, 0.2, 0.1])
    assert found.merged_references.tolist() == [0, 1, 2]
    assert found.merging_predictions.tolist() == [1]
    assert found.split_references.tolist() == []


def test_a_share_of_exactly_half_counts_despite_rounding_noise():
    half = 0.1 + 0.2 + 0.2 - 1e-12
    assert structure(1, 2, [0, 0], [0, 1], [0.1, 0.1], [half, half]).split_references.tolist() == [0]


def test_a_neighbour_that_only_leans_in_splits_nothing():
    assert structure(1, 2, [0, 0], [0, 1], [0.8, 0.1], [0.9, 0.3]).split_references.tolist() == []


def test_a_tangle_lists_both_sides():
    """Predictions 1 and 2 each cover parts of references 2 and 3; pair (0, 0) is plain."""
    found = structure(4, 3, [0, 2, 3, 3], [0, 1, 1, 2], [1, 0.9, 0.6, 0.4], [1, 0.6, 0.3, 0.9])
    assert [(refs.tolist(), preds.tolist()) for refs, preds in found.many_to_many] == [([2, 3], [1, 2])]
    assert found.merged_references.tolist() == [2, 3]


def test_two_tangles_come_in_the_order_of_their_references():
    i, j = [3, 3, 2, 2, 0, 0, 1, 1], [0, 1, 0, 1, 2, 3, 2, 3]
    found = structure(4, 4, i, j, [0.5] * 8, [0.5] * 8)
    assert [(refs.tolist(), preds.tolist()) for refs, preds in found.many_to_many] == [
        ([0, 1], [2, 3]),
        ([2, 3], [0, 1]),
    ]


def test_no_overlaps_no_structure():
    found = structure(0, 0, [], [], [], [])
    assert found.split_references.tolist() == found.merging_predictions.tolist() == []
    assert found.many_to_many == ()


def kinds(pairs, similarity, n, m, labels=None, ignore=None):
    i, j = pairs
    a, b = (objects(*labels[0]), objects(*labels[1])) if labels else (None, None)
    matching = one_to_one(
        n,
        m,
        i,
        j,
        similarity,
        threshold=0.5,
        assignment="optimal",
        reference_label=a,
        prediction_label=b,
        ignore=ignore,
    )
    return error_types(n, m, i, j, similarity, matching, reference_label=a, prediction_label=b, ignore=ignore)


def test_each_kind_of_error_has_its_name():
    """One scene with a hit and every kind of error; the label of a reference is its own, that of a prediction a claim.

    reference   0 car: hit by prediction 0, and again by 1 (duplicate)
    reference   1 car: prediction 2 at 0.3 (localisation)
    reference   2 bus: prediction 3 says car at 0.8 (class)
    reference   3 bus: prediction 4 says car at 0.2 (both)
    reference   4 car: nothing near (missed); prediction 5 lies at 0.05 (background)
    """
    i, j = [0, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5]
    labels = (["car", "car", "bus", "bus", "car"], ["car"] * 6)
    found = kinds((i, j), [0.9, 0.7, 0.3, 0.8, 0.2, 0.05], 5, 6, labels)
    assert found.prediction.tolist() == ["", "duplicate", "localisation", "class", "both", "background"]
    assert found.reference.tolist() == ["", "localisation", "class", "both", "missed"]
    assert {*found.prediction, *found.reference} - {""} == set(ERROR_TYPES)


def test_a_poor_overlap_with_a_taken_reference_explains_no_other_miss():
    """Prediction 1 leans on reference 0, which has its hit; reference 1 stays missed."""
    found = kinds(([0, 0], [0, 1]), [0.9, 0.3], 2, 2)
    assert found.prediction.tolist() == ["", "localisation"]
    assert found.reference.tolist() == ["", "missed"]


def test_the_threshold_itself_is_a_hit_and_the_background_limit_an_overlap():
    found = kinds(([0, 1], [0, 1]), [0.5, 0.1], 2, 2)
    assert found.prediction.tolist() == ["", "localisation"]


def test_ignored_references_and_absorbed_predictions_have_no_error():
    found = kinds(([0, 1], [0, 1]), [0.9, 0.8], 2, 3, ignore=np.array([False, True]))
    assert found.prediction.tolist() == ["", "", "background"]
    assert found.reference.tolist() == ["", ""]


@pytest.mark.parametrize("n", [0, 2])
def test_a_side_without_objects(n):
    assert kinds(([], []), [], n, 0).reference.tolist() == ["missed"] * n
    assert kinds(([], []), [], 0, n).prediction.tolist() == ["background"] * n
