"""Published confusion matrices and sample-based estimates, reproduced to their printed digits."""

from __future__ import annotations

import json
import os
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

from geoeval.stats import classification as figures
from geoeval.stats.area import design_accuracy, ratio_accuracy, simple_sample_size
from geoeval.stats.classification import ConfusionTotals

FOLDER = Path(os.environ.get("GEOEVAL_CASES", Path(__file__).resolve().parents[2] / ".." / "shared" / "cases"))

#: Kinds of the same file that are about heights; their own tests hold them.
HEIGHTS = {"continuous_MAD", "vertical", "vertical_identity"}

pytestmark = pytest.mark.shared


def read(name: str):
    path = FOLDER / name
    return json.loads(path.read_text()) if path.is_file() else None


def parameters(name: str, rows):
    if rows is None:
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"GEOEVAL_CASES has no {name}"))]
    return [pytest.param(row, id=key) for key, row in rows]


def close(found, expected, places=9):
    """Equal to the digits that are printed; null is NaN or None."""
    found = np.array(found, dtype=float).reshape(-1)
    expected = np.array(expected, dtype=float).reshape(-1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.51 * 10.0**-places, equal_nan=True)


def of(estimates, what):
    return [getattr(figure, what) for figure in estimates]


def check_confusion(case):
    matrix, expected = np.array(case["counts"]), case["expected"]
    confusion = ConfusionTotals.of(matrix)
    answers = {
        "n": confusion.n,
        "OA": figures.accuracy(confusion).value,
        "rowwise_UA_precision": figures.precision(confusion).value,
        "colwise_PA_recall": figures.recall(confusion).value,
        "F1": figures.f1(confusion).value,
        "IoU": figures.iou(confusion).value,
        "mIoU_present": figures.mean_iou(confusion).value,
        "macroF1_present": figures.macro_f1_all_classes(confusion).value,
        "kappa": figures.kappa(confusion).value,
        "kappa_var_delta": figures.kappa_variance(confusion),
        "kappa_Z": figures.kappa(confusion).value / np.sqrt(figures.kappa_variance(confusion)),
        "quantity": figures.quantity_disagreement(confusion).value,
        "allocation": figures.allocation_disagreement(confusion).value,
        "exchange": figures.exchange(confusion).value,
        "shift": figures.shift(confusion).value,
        "category_quantity": figures.class_quantity(confusion).value,
        "category_exchange": figures.class_exchange(confusion).value,
        "category_shift": figures.class_shift(confusion).value,
    }
    for key, value in expected.items():
        close(answers[key], value)


def check_olofsson(case):
    expected = case["expected"]
    found = design_accuracy(np.array(case["counts_rows_map_cols_ref"]), case["map_area"], "stratified")
    area = [figure.times(sum(case["map_area"])) for figure in found.area_share]
    z = NormalDist().inv_cdf(0.975)
    answers = {
        "p": ([[cell.value for cell in row] for row in found.cells], 9),
        "OA": (found.accuracy.value, 9),
        "UA": (of(found.precision, "value"), 9),
        "PA": (of(found.recall, "value"), 9),
        "area": (of(found.area_share, "value"), 9),
        "SEoa": (found.accuracy.standard_error, 9),
        "SEua": (of(found.precision, "standard_error"), 9),
        "SEpa": (of(found.recall, "standard_error"), 9),
        "SEa": (of(found.area_share, "standard_error"), 9),
        "area_abs": (of(area, "value"), 2),
        "area_abs_SE": (of(area, "standard_error"), 8),
        "hw95_OA": (z * found.accuracy.standard_error, 9),
        "hw95_UA": (z * np.array(of(found.precision, "standard_error")), 9),
        "hw95_PA": (z * np.array(of(found.recall, "standard_error")), 9),
        "hw95_area_abs": (z * np.array(of(area, "standard_error")), 8),
    }
    for key, value in expected.items():
        close(answers[key][0], value, answers[key][1])


def stehman(strata, mapped, reference, sizes):
    classes = sorted(set(mapped) | set(reference))
    names = sorted(sizes)
    counts = np.zeros((len(names), len(classes), len(classes)), dtype=int)
    for h, i, j in zip(strata, mapped, reference, strict=True):
        counts[names.index(h), classes.index(i), classes.index(j)] += 1
    return classes, ratio_accuracy(counts, [sizes[name] for name in names])


def named(classes, found, key):
    what, *where = key.split()
    at = [classes.index(name) for name in where]
    if what == "OA":
        return found.accuracy
    if what == "p":
        return found.cells[at[0]][at[1]]
    return {"UA": found.precision, "PA": found.recall, "area": found.area_share}[what][at[0]]


def check_stehman(case):
    classes, found = stehman(case["strata"], case["map"], case["ref"], case["N_strata"])
    for key, (value, error) in case["expected"].items():
        figure = named(classes, found, key)
        close([figure.value, figure.standard_error], [value, error])


CHECKS = {
    "confusion_matrix": check_confusion,
    "olofsson_stratified": check_olofsson,
    "stehman_ratio": check_stehman,
}

TABLES = read("rasters_and_elevation.json")
MINE = None if TABLES is None else [(key, row) for key, row in TABLES.items() if row["kind"] not in HEIGHTS]


@pytest.mark.parametrize("case", parameters("rasters_and_elevation.json", MINE))
def test_published_tables(case):
    assert case["kind"] in CHECKS, f"unknown kind {case['kind']!r}: add a check for it"
    CHECKS[case["kind"]](case)


def check_area_olofsson(case):
    found = design_accuracy(np.array(case["matrix_rows_map_cols_ref"]), case["map_pixels"], "stratified")
    expected, total = case["computed_here"], sum(case["map_pixels"])
    close(found.accuracy.value, expected["OA"], 6)
    close(found.accuracy.standard_error, expected["se_OA"], 6)
    for key, row in (("UA", found.precision), ("PA", found.recall), ("area_prop", found.area_share)):
        close(of(row, "value"), expected[key], 6)
        close(of(row, "standard_error"), expected[f"se_{key}"], 6)
    close(found.area_share[0].value * total, expected["area_class1"], 1)
    close(found.area_share[0].standard_error * total, expected["se_area_class1"], 1)


def check_area_stehman(case):
    classes, found = stehman(case["strata"], case["map"], case["reference"], case["stratum_sizes"])
    for key, row in case["computed_here"].items():
        figure = named(classes, found, key.replace("cell_", "p_").replace("_", " "))
        close([figure.value, figure.standard_error], [row["value"], row["se"]], 6)
    for key, value in case["expected_published_rounded"].items():
        error = key.startswith("se_")
        figure = named(classes, found, key.removeprefix("se_").replace("cell_", "p_").replace("_", " "))
        close(figure.standard_error if error else figure.value, value, 3)


def check_area_matrix(case):
    """Rows of other tools: the estimator's own figures, and of the peer's those that are called hard expectations."""
    found = design_accuracy(np.array(case["matrix_rows_map_cols_ref"]), case["map_area_m2"], case["estimator"])
    area = [figure.times(sum(case["map_area_m2"])) for figure in found.area_share]
    answers = {
        "OA": (found.accuracy.value, 5),
        "se_OA": (found.accuracy.standard_error, 5),
        "UA": (of(found.precision, "value"), 5),
        "se_UA": (of(found.precision, "standard_error"), 5),
        "PA": (of(found.recall, "value"), 5),
        "se_PA": (of(found.recall, "standard_error"), 5),
        "area": (of(area, "value"), 2),
        "se_area": (of(area, "standard_error"), 2),
    }
    for key, value in case["olofsson_formula_here"].items():
        close(answers[key][0], value, answers[key][1])
    for key in case["hard_expectations"].split(","):
        value = case["expected"].get(key, case["expected"].get(f"{key}_m2"))
        close(answers[key][0], value, answers[key][1])


def check_area_sample_size(case):
    given = case["inputs"]
    found = simple_sample_size(given["overall_accuracy"], given["half_width"], given["confidence"])
    assert found == case["expected"]["n"]


def area_check(case):
    """The shape of a row says what it is; a shape that is not known fails."""
    if "stratum_sizes" in case:
        return check_area_stehman
    if "olofsson_formula_here" in case:
        return check_area_matrix
    if "map_pixels" in case:
        return check_area_olofsson
    if "half_width" in case.get("inputs", {}):
        return check_area_sample_size
    pytest.fail(f"unknown shape of case {case.get('id')!r}: {sorted(case)}")
    return None


AREAS = read("area_estimation.json")


@pytest.mark.parametrize(
    "case", parameters("area_estimation.json", AREAS and [(row["id"], row) for row in AREAS["cases"]])
)
def test_sample_based_estimates(case):
    area_check(case)(case)
