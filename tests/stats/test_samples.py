"""Sample points as tallies, and the estimates that their design allows."""

from __future__ import annotations

import numpy as np
import pytest

from geoeval.stats.area import design_accuracy
from geoeval.stats.samples import (
    design_estimates,
    is_sample,
    mapped_tally,
    ordered,
    sample_confusion,
    sample_tally,
    sizes,
)
from geoeval.stats.tally import Tally, totals_of

TABLE = np.array([[97, 0, 3], [3, 279, 18], [2, 1, 97]])
NAMES = ["1", "2", "10"]
MAPPED = dict(zip(NAMES, [22353, 1122543, 610228], strict=True))


def survey(table=TABLE, names=NAMES, stratum=None):
    rows = [(names[i], names[j]) for i, row in enumerate(table) for j, n in enumerate(row) for _ in range(n)]
    predicted, reference = zip(*rows, strict=True)
    return sample_tally(stratum or predicted, predicted, reference)


def test_points_of_several_clusters_add_up_to_the_survey():
    one = survey()
    parts = [sample_tally(["1"], ["1"], ["1"])] * 3
    whole = totals_of([one, *parts])
    labels, confusion = sample_confusion(whole)
    assert labels == ("1", "2", "10")
    assert confusion.matrix[0].tolist() == [[100, 0, 3], [3, 279, 18], [2, 1, 97]]


def test_stratified_figures_are_those_of_the_estimator():
    totals = totals_of([survey(), mapped_tally(MAPPED, 900.0, "m2")])
    found = design_estimates(totals, "stratified")
    figures = design_accuracy(TABLE, list(MAPPED.values()), "stratified")
    accuracy = found["estimates"]["accuracy_adjusted"]
    assert accuracy.value == figures.accuracy.value
    assert accuracy.interval.high == pytest.approx(accuracy.value + 1.959964 * figures.accuracy.standard_error)
    assert accuracy.interval.method == "design:stratified"
    area = found["per_class"]["1"]["area"]
    assert (area.unit, round(area.value)) == ("m2", round(45112.4 * 900))
    assert list(found["per_class"]) == NAMES


def test_a_mapped_class_without_samples_leaves_the_design_without_figures():
    totals = totals_of([survey(), mapped_tally({**MAPPED, "11": 5}, 1.0, "m2")])
    assert design_estimates(totals, "stratified")["estimates"]["accuracy_adjusted"].reason == "no_support"


def test_without_design_there_are_no_adjusted_figures():
    found = design_estimates(totals_of([survey(), mapped_tally(MAPPED, 1.0, "m2")]), None)
    assert found["estimates"]["accuracy_adjusted"].reason == "not_applicable"
    assert found["per_class"] == {}


def test_stratified_without_sizes_is_not_applicable_but_simple_random_is():
    totals = totals_of([survey()])
    assert design_estimates(totals, "stratified")["estimates"]["accuracy_adjusted"].reason == "not_applicable"
    found = design_estimates(totals, "simple_random")
    assert found["estimates"]["accuracy_adjusted"].value == pytest.approx(473 / 500)
    assert found["per_class"]["1"]["area"].reason == "not_applicable"
    assert found["per_class"]["1"]["area_share"].value == pytest.approx(102 / 500)


def test_strata_other_than_map_classes_take_the_ratio_estimator():
    strata = "AAAAAAAAAABBBBBBBBBBCCCCCCCCCCDDDDDDDDDD"
    mapped = "AAAAAAABBBABBBBBBBBBBBCCCCCCBBDDDDDDDDDD"
    reference = "AAAAACBABCABBBBBAABBCCCCCDDBBADDDDDDDCCB"
    size = {"A": 40000, "B": 30000, "C": 20000, "D": 10000}
    totals = totals_of([sample_tally(list(strata), list(mapped), list(reference)), mapped_tally(size, 1.0, "m2")])
    found = design_estimates(totals, "stratified")
    assert found["estimates"]["accuracy_adjusted"].value == pytest.approx(0.63)
    assert found["per_class"]["A"]["area"].value == pytest.approx(35000)
    assert found["per_class"]["B"]["recall_adjusted"].value == pytest.approx(0.794118, abs=1e-6)
    assert design_estimates(totals, "post_stratified")["estimates"]["accuracy_adjusted"].reason == "not_applicable"


def test_intervals_that_reach_beyond_the_possible_are_clipped_and_marked():
    totals = totals_of([survey(np.array([[7, 1], [0, 2]]), ["0", "37"]), mapped_tally({"0": 77, "37": 1}, 1.0, "m2")])
    found = design_estimates(totals, "stratified")
    assert found["estimates"]["accuracy_adjusted"].marks == ("clipped",)
    assert found["estimates"]["accuracy_adjusted"].interval.high == 1.0


def test_sizes_are_exact_beyond_64_bits():
    size = sizes(totals_of([mapped_tally({"a": 10**15, "b": 2}, 900.0, "m2")]))
    assert size.cells == {"a": 10**15, "b": 2}
    assert size.area == pytest.approx(9e17)


def test_names_sort_by_value_where_all_are_numbers():
    assert ordered({"-1", "10", "9"}) == ("-1", "9", "10")
    assert ordered({"b", "a"}) == ("a", "b")
    assert not is_sample(totals_of([Tally.of(joint=3)]))
