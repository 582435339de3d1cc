"""Known answers of heights and positions: published volumes and reports, other tools' outputs, exact identities."""

from __future__ import annotations

import csv
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
import rasterio

from geoeval.evaluators.elevation import Elevation
from geoeval.ledger import Ledger, tally_unit
from geoeval.options import Pairing, Source
from geoeval.readers.heights import elevation_units
from geoeval.stats.distribution import error_sums, le, moments, nmad, rmse_of
from geoeval.stats.sketch import Sample
from geoeval.stats.tally import Tally, totals_of

CASES = Path(os.environ.get("GEOEVAL_CASES", Path(__file__).resolve().parents[2].parent / "shared" / "cases"))

#: Kinds of rasters_and_elevation.json that the tests of the categorical family cover.
CATEGORICAL = {"olofsson_stratified", "stehman_ratio", "confusion_matrix"}

pytestmark = pytest.mark.shared


def rows(name):
    path = CASES / name
    if not path.is_file():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"no {name} under GEOEVAL_CASES ({CASES})"))]
    found = json.loads(path.read_text(encoding="utf-8"))
    listed = found["cases"] if "cases" in found else [{"id": key, **case} for key, case in found.items()]
    return [pytest.param(case, id=case["id"]) for case in listed]


def figures(reference, prediction, pairing, evaluator=None):
    evaluator = evaluator or Elevation()
    units = elevation_units(reference, prediction, pairing).units
    whole = Ledger.of(row for unit in units for row in tally_unit(evaluator, unit)[0]).by_cluster().whole()
    found = {**evaluator.quantities(whole), **evaluator.ranked(whole)}
    return {key: float(found[key].value[0]) for key in evaluator.KEYS}, evaluator.extras(whole)


def array_moments(errors):
    found = moments(totals_of([Tally.of(error_sums(np.asarray(errors)))]))
    return {key: float(value[0]) for key, value in found.items()}


def dem_change(case, data):
    for row in case["computed_here"]:
        earlier, later = (str(data / case[key]) for key in ("earlier", "later"))
        aoi = None if row["mask"] == "full" else str(data / case["mask"].split(" (")[0])
        found, _ = figures(Source(earlier), Source(later), Pairing(unit="m", aoi=aoi))
        assert found["count"] == row["cells"]
        for key, name in (
            ("bias", "mean"),
            ("rmse", "rmse"),
            ("median", "median"),
            ("nmad", "nmad"),
            ("min", "min"),
            ("max", "max"),
        ):
            assert found[key] == pytest.approx(row[name], abs=6e-7), (row["mask"], key)
        # The case divides by n, std here by n - 1.
        assert found["std"] * math.sqrt((row["cells"] - 1) / row["cells"]) == pytest.approx(row["std"], abs=6e-7)
        # The net volume is the bias times the area.
        area_m2 = found["count"] * case["cell_area_m2"]
        if row["threshold_m"] == 0:
            assert found["bias"] * area_m2 == pytest.approx(row["net_m3"], abs=1e-5)
        published = case["expected_published"]
        if aoi:
            assert (found["min"], found["max"]) == (
                pytest.approx(published["min"], abs=6e-7),
                pytest.approx(published["max"], abs=6e-7),
            )
            assert found["bias"] * area_m2 == pytest.approx(published["net_m3"], rel=1e-3)


def errors_by_scipy(dataset, path):
    from scipy.ndimage import map_coordinates

    x, y, z = np.loadtxt(path, delimiter=",", skiprows=1, usecols=(1, 2, 3)).T
    place = dataset.transform
    columns, rows_ = (x - place.c) / place.a, (y - place.f) / place.e
    heights = dataset.read(1).astype(np.float64)
    return map_coordinates(heights, [rows_ - 0.5, columns - 0.5], order=1) - z


def checkpoints(case, data):
    """The case was not worked in float64 (its minima are those of float32), hence 1e-5, and 5e-5 for nmad."""
    path = data / case["checkpoints"]
    for name, row in case["computed_here"].items():
        dem = path.parent / f"{name}.tif"
        with rasterio.open(dem) as dataset:
            survey = Source(str(path), crs=dataset.crs.to_wkt(), unit="m")
            errors = errors_by_scipy(dataset, path)
        found, extras = figures(survey, Source(str(dem), unit="m"), Pairing())
        assert found["rmse"] == pytest.approx(np.sqrt(np.mean(errors**2)), abs=1e-9)
        assert found["nmad"] == pytest.approx(nmad(errors), abs=1e-9)
        assert found["count"] == row["n"]
        assert extras["test"] == "checkpoints"
        for key, theirs in (
            ("bias", "mean"),
            ("median", "median"),
            ("rmse", "rmse"),
            ("mae", "mae"),
            ("nmad", "nmad"),
            ("le95", "p95_abs"),
            ("min", "min"),
            ("max", "max"),
        ):
            assert found[key] == pytest.approx(row[theirs], abs=5e-5 if key == "nmad" else 1e-5), (name, key)


def gnss(case, data):
    path, point = case["reference"].split(" row ")
    with (data / case["measured"].split(" (")[0]).open(encoding="utf-8") as lines:
        measured = list(csv.DictReader(lines))
    with (data / path).open(encoding="utf-8") as lines:
        known = next(row for row in csv.DictReader(lines) if row["Reference Point Number"] == point)
    north, east, height = (
        np.array([float(row[a]) for row in measured]) - float(known[b])
        for a, b in (("Northing", "Northing"), ("Easting", "Easting"), ("Elev", "Elevation"))
    )
    expected, here = case["expected"], case["computed_here"]
    assert len(north) == expected["n"]
    assert rmse_of(north, east) == pytest.approx(here["with_outliers"]["horizontal_rmse"], abs=6e-8)
    assert rmse_of(height) == pytest.approx(here["with_outliers"]["vertical_rmse"], abs=6e-8)
    out = (np.abs(north) > 0.1) | (np.abs(east) > 0.1) | (np.abs(height) > 0.2)
    assert [int(measured[i]["Point Number"]) for i in np.flatnonzero(out)] == expected["outlier_point_numbers"]
    north, east, height = north[~out], east[~out], height[~out]
    assert rmse_of(north, east) == pytest.approx(here["horizontal_rmse_accuracy"], abs=6e-8)
    assert rmse_of(height) == pytest.approx(here["vertical_rmse_accuracy"], abs=6e-8)
    assert 2 * rmse_of(height) == pytest.approx(expected["vertical_2drmse"], abs=6e-4)
    for errors, key, digits in (
        (north, "std_north", 6e-5),
        (east, "std_east", 6e-5),
        (height, "std_height", 6e-5),
    ):
        assert array_moments(errors)["std"] == pytest.approx(expected[key], abs=digits)
    middle = Sample.of(height).quantile(0.5)
    assert middle is not None
    assert middle[0] + float(known["Elevation"]) == pytest.approx(expected["median_height"], abs=6e-4)


#: What a case holds tells its shape; a case of no known shape fails.
SHAPES = {"earlier": dem_change, "checkpoints": checkpoints, "measured": gnss}


@pytest.mark.parametrize("case", rows("elevation_and_position.json"))
def test_elevation_and_position(case, shared_data):
    (shape,) = SHAPES.keys() & case.keys()
    SHAPES[shape](case, shared_data)


def absolute_deviation(case):
    """Total MAE, and how much of it stands in the bias of the whole, in strata, and in elements."""
    one, other, strata = (
        np.array(case[key], dtype=float).reshape(-1) for key in ("grid1", "grid2", "strata_0_is_nodata")
    )
    error, strata = (other - one)[strata != 0], strata[strata != 0]
    whole = array_moments(error)
    parts = [(array_moments(error[strata == s]), np.mean(strata == s)) for s in np.unique(strata)]
    quantity = abs(whole["bias"])
    between = sum(share * abs(part["bias"]) for part, share in parts) - quantity
    assert quantity == pytest.approx(case["expected"]["quantity"])
    assert between == pytest.approx(case["expected"]["strata"])
    assert whole["mae"] - between - quantity == pytest.approx(case["expected"]["element"])
    assert whole["mae"] == pytest.approx(case["expected"]["total_MAE"])


def vertical(case):
    errors, expected = np.array(case["dz"]), case["expected"]
    found = array_moments(errors)
    for key in ("rmse", "mae", "bias"):
        assert found[key] == pytest.approx(expected[key], abs=1e-11)
    assert Sample.of(errors).quantile(0.5) == (pytest.approx(expected["median"]), 0.0)
    assert nmad(errors) == pytest.approx(expected["nmad"], abs=6e-7)
    assert le(errors, 0.90) == pytest.approx(expected["le90_linear_pct"])
    assert le(errors, 0.95) == pytest.approx(expected["p95_linear"])


def vertical_identity(case):
    """RMSE² = bias² + std² (n - 1) / n, on errors made to have the published mean and standard deviation."""
    n, mean, std = case["n"], case["mean"], case["std_ddof1"]
    errors = np.linspace(-1.0, 1.0, n)
    errors = mean + (errors - errors.mean()) / errors.std(ddof=1) * std
    found = array_moments(errors)
    assert found["bias"] == pytest.approx(mean, abs=1e-11)
    assert found["std"] == pytest.approx(std, abs=1e-11)
    # The published errors are float32.
    assert found["rmse"] == pytest.approx(case["expected"]["rmse"], rel=1e-8)
    assert 1.96 * found["rmse"] == pytest.approx(case["expected"]["nssda_95"], rel=1e-8)


KINDS = {"continuous_MAD": absolute_deviation, "vertical": vertical, "vertical_identity": vertical_identity}


@pytest.mark.parametrize("case", rows("rasters_and_elevation.json"))
def test_rasters_and_elevation(case):
    if case["kind"] in CATEGORICAL:
        return
    KINDS[case["kind"]](case)


def continuous(case):
    return case is not None and "mean_absolute_percentage_error" in case.get("expected", {})


@pytest.mark.parametrize("case", [p for p in rows("categorical_gval.json") if p.marks or continuous(p.values[0])])
def test_continuous_rasters(case, shared_data):
    band = case.get("band", 1)
    found, extras = figures(
        Source(str(shared_data / case["benchmark"]), band=band, unit="m"),
        Source(str(shared_data / case["candidate"]), band=band, unit="m"),
        Pairing(),
        Elevation(relative=True),
    )
    expected = case["expected"]
    assert found["mae"] == pytest.approx(expected["mean_absolute_error"], abs=6e-7)
    for key in ("coefficient_of_determination", "mean_absolute_percentage_error"):
        assert extras[key]["value"] == pytest.approx(expected[key], abs=6e-7)
