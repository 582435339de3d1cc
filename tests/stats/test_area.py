"""Design-based accuracy and area: identities, undefined cases, and coverage by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from geoeval.stats.area import DesignFigure, design_accuracy, ratio_accuracy, sample_size, simple_sample_size

TABLE = np.array([[97, 0, 3], [3, 279, 18], [2, 1, 97]])
MAPPED = [22353, 1122543, 610228]


def strata_of(table):
    out = np.zeros((len(table), *table.shape), dtype=int)
    out[np.arange(len(table)), np.arange(len(table))] = table
    return out


def test_strata_that_are_map_classes_agree_with_the_ratio_estimator():
    """Stehman 2014 with the map's classes as strata is Olofsson 2014 but for the finite correction."""
    a = design_accuracy(TABLE, MAPPED, "stratified")
    b = ratio_accuracy(strata_of(TABLE), [m * 1e9 for m in MAPPED])
    for x, y in zip(
        (a.accuracy, *a.precision, *a.recall, *a.area_share),
        (b.accuracy, *b.precision, *b.recall, *b.area_share),
        strict=True,
    ):
        assert x.value == pytest.approx(y.value, abs=1e-12)
        assert x.standard_error == pytest.approx(y.standard_error, rel=1e-6)


def test_producers_error_is_olofssons_formula_written_out():
    """V(P_1) of equation 7, term by term."""
    n, size = TABLE.sum(axis=1), np.array(MAPPED, dtype=float)
    share = TABLE / n[:, None]
    column = (size * share[:, 0]).sum()
    p = size[0] * share[0, 0] / column
    own = size[0] ** 2 * (1 - p) ** 2 * share[0, 0] * (1 - share[0, 0]) / (n[0] - 1)
    rest = sum(size[i] ** 2 * share[i, 0] * (1 - share[i, 0]) / (n[i] - 1) for i in (1, 2))
    expected = np.sqrt((own + p**2 * rest) / column**2)
    assert design_accuracy(TABLE, MAPPED, "stratified").recall[0].standard_error == pytest.approx(expected, rel=1e-12)


def test_simple_random_accuracy_is_a_plain_share():
    """8 of 10 right: variance 0.8 * 0.2 / 9."""
    figures = design_accuracy(np.array([[5, 1], [1, 3]]), None, "simple_random")
    assert figures.accuracy.value == 0.8
    assert figures.accuracy.standard_error == pytest.approx(np.sqrt(0.16 / 9))
    assert design_accuracy(np.array([[5, 1], [1, 3]]), None, "systematic") == figures


def test_a_single_sample_in_a_stratum_takes_away_the_error_but_not_the_value():
    """Class 1 was sampled once: its own user's accuracy and the overall one have no spread, class 0's has."""
    figures = design_accuracy(np.array([[8, 2], [0, 1]]), [50, 50], "stratified")
    assert figures.accuracy == DesignFigure(0.9, None, "single_sample_stratum")
    assert figures.precision[1].reason == "single_sample_stratum"
    assert figures.precision[0].standard_error == pytest.approx(np.sqrt(0.16 / 9))


def test_a_single_sample_does_not_matter_where_its_term_is_exactly_0():
    figures = design_accuracy(np.array([[8, 2], [0, 1]]), [50, 0], "stratified")
    assert figures.accuracy.value == 0.8
    assert figures.accuracy.standard_error is not None


def test_a_stratum_without_samples_leaves_nothing_to_say():
    figures = design_accuracy(np.array([[8, 2], [0, 0]]), [50, 50], "stratified")
    assert figures.accuracy == DesignFigure(None, None, "no_support")


def test_a_class_outside_the_reference_has_no_producers_accuracy():
    figures = design_accuracy(np.array([[8, 0], [3, 0]]), [50, 50], "stratified")
    assert figures.recall[1] == DesignFigure(None, None, "undefined_ratio")


def test_intervals_say_when_they_are_clipped():
    assert DesignFigure(0.5, 0.01).interval()[2] is False
    assert DesignFigure(0.01, 0.02).interval() == (0.0, pytest.approx(0.0492, abs=1e-4), True)
    assert DesignFigure(10.0, 1.0).interval(most=100.0)[2] is False
    assert DesignFigure(0.5, None, "single_sample_stratum").interval() is None


@pytest.mark.parametrize(
    ("counts", "mapped", "design", "text"),
    [
        (np.ones((2, 3)), [1, 1], "stratified", "square"),
        (np.ones((2, 2)), None, "stratified", "size of each of the 2 strata, found none"),
        (np.ones((2, 2)), [1], "post_stratified", "2 strata, found 1"),
        (np.ones((2, 2)), [0, 0], "stratified", "not all 0"),
        (np.ones((2, 2)), [1, float("nan")], "stratified", "finite"),
        (np.ones((2, 2)), [1, 1], "random", "must be one of stratified"),
    ],
)
def test_what_cannot_be_estimated_is_refused(counts, mapped, design, text):
    with pytest.raises(ValueError, match=text):
        design_accuracy(counts, mapped, design)


def test_sample_sizes_refuse_nonsense():
    with pytest.raises(ValueError, match="2 user's accuracies"):
        sample_size([0.5, 0.5], [0.9, 90], 0.01)
    with pytest.raises(ValueError, match="standard_error must be above 0"):
        sample_size([0.5, 0.5], [0.9, 0.9], 0)
    with pytest.raises(ValueError, match=r"accuracy must lie in \[0, 1\]"):
        simple_sample_size(85, 0.04)


@pytest.mark.parametrize("design", ["stratified", "simple_random", "post_stratified"])
def test_standard_errors_are_the_spread_over_many_surveys(design):
    """A map of 100,000 cells is sampled 1,500 times; the mean standard error must equal the spread of the estimates."""
    generator = np.random.default_rng(5)
    truth = np.array([[0.17, 0.03], [0.08, 0.72]])
    mapped = truth.sum(axis=1)
    values, errors = [], []
    for _ in range(1500):
        if design == "stratified":
            table = np.array([generator.multinomial(100, row / row.sum()) for row in truth])
        else:
            table = generator.multinomial(200, truth.reshape(-1)).reshape(2, 2)
        figures = design_accuracy(table, mapped, design)
        row = (figures.accuracy, figures.precision[0], figures.recall[0], figures.area_share[0])
        values.append([figure.value for figure in row])
        errors.append([figure.standard_error for figure in row])
    assert np.mean(values, axis=0) == pytest.approx([0.89, 0.85, 0.68, 0.25], abs=0.01)
    assert np.mean(errors, axis=0) == pytest.approx(np.std(values, axis=0), rel=0.08)
