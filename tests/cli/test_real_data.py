"""Real references and predictions: figures that publishers state, or that another program computed."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

pytestmark = pytest.mark.shared


def values(said, *names):
    assert said.code == 0, said.err
    return [said.json["estimates"][name]["value"] for name in names]


@pytest.mark.parametrize("assignment", ["score", "optimal", "similarity"])
def test_barns(evaluate, shared_data, assignment):
    """704 of 733 barns, whatever the assignment; published precision counts duplicates as hits, this one does not."""
    folder = shared_data / "poultry_delmarva"
    sides = {"reference": folder / "reference_test_barns.geojson", "prediction": folder / "predictions_manet.geojson"}
    said = evaluate("detection", "--json", "--assignment", assignment, "--cluster=grid:50km", **sides)
    assert values(said, "tp", "fp", "fn") == [704, 1407, 29]
    assert values(said, "precision", "recall") == pytest.approx([0.333491, 0.960437], abs=1e-6)


@pytest.mark.parametrize(
    ("method", "iou", "hits"),
    [("Weinstein_unpublished", 0.5, 48), ("Weinstein_unpublished", 0.4, 51), ("Weinstein2019", 0.5, 37)],
)
def test_tree_crowns_in_pixels(evaluate, shared_data, method, iou, hits):
    folder = shared_data / "deepforest_neon"
    said = evaluate(
        "detection",
        "--json",
        "--crs=pixel",
        f"--iou={iou}",
        "--prediction-where",
        f"plot_name = 'OSBS_029' AND method = '{method}'",
        reference=folder / "OSBS_029_truth.csv",
        prediction=folder / "predictions_5_methods.csv",
    )
    assert values(said, "tp", "fn") == [hits, 61 - hits]


@pytest.mark.parametrize("family", ["footprint", "vector"])
@pytest.mark.parametrize(("iou", "f1"), [(0.3, 0.767372), (0.5, 0.664653), (0.7, 0.477341)])
def test_two_annotators(evaluate, shared_data, family, iou, f1):
    folder = shared_data / "ramp_two_annotators"
    sides = {"reference": folder / "matt-labels.geojson", "prediction": folder / "seamus-labels.geojson"}
    said = evaluate(family, "--json", f"--iou={iou}", **sides)
    assert values(said, "f1") == pytest.approx([f1], abs=1e-6)
    assert said.json["estimates"]["f1"]["interval"]["method"] == "cluster_bootstrap"


def test_roads_by_folder(evaluate, shared_data, shared_cases):
    """Seven chips that pair by name; total lengths are those that another program measured."""
    cases = json.loads((shared_cases / "events_and_roads.json").read_text())["cases"]
    lengths = next(one for one in cases if "lengths" in one["id"])["computed_here_m_in_EPSG_32611"]
    folder = shared_data / "roads_vegas_apls"
    said = evaluate("vector", "--json", reference=folder / "spacenetroads", prediction=folder / "osm")
    completeness, correctness = (said.json["estimates"][name] for name in ("completeness", "correctness"))
    assert said.code == 0
    assert completeness["denominator"] == pytest.approx(sum(lengths["spacenetroads"].values()), abs=0.5)
    assert correctness["denominator"] == pytest.approx(sum(lengths["osm"].values()), abs=0.5)
    assert 0.70 < completeness["value"] < 0.80 < 0.95 < correctness["value"] < 1.0
    tp, predicted = correctness["numerator"], correctness["denominator"]
    missed = completeness["denominator"] - completeness["numerator"]
    assert values(said, "quality")[0] == pytest.approx(tp / (predicted + missed), abs=1e-9)
    assert completeness["unit"] == "1"
    assert values(said, "rms_distance")[0] < 5.0


def test_construction_years(evaluate, shared_data):
    folder = shared_data / "barn_construction_dates"
    said = evaluate(
        "change",
        "--json",
        "--assignment=id",
        "--prediction-id=row",
        "--reference-id=idx",
        "--drop-unmatched-ids",
        reference=folder / "poultry_barn_labels.csv",
        prediction=folder / "poultry_barns-64-200_predictions.geojson",
    )
    assert values(said, "tp", "fp", "fn") == [1000, 0, 0]
    assert values(said, "date_exact", "date_mae", "date_bias") == pytest.approx([0.938, 0.151, -0.093])
    exact = said.json["estimates"]["date_exact"]
    assert (exact["numerator"], exact["denominator"]) == (938, 1000)


def test_flood_map_of_two_classes(evaluate, shared_data, shared_cases):
    """Every count within 1e-4 of the joint pixels of the published table."""
    cases = json.loads((shared_cases / "categorical_gval.json").read_text())["cases"]
    expected = next(one for one in cases if one["id"] == "two_class_flood")["expected_metrics"]
    folder = shared_data / "gval_flood_maps"
    said = evaluate(
        "raster",
        "--json",
        "--align=nearest",
        "--recode=prediction:1=0",
        reference=folder / "benchmark_map_two_class_categorical.tif",
        prediction=folder / "candidate_map_two_class_categorical.tif",
    )
    assert said.code == 0
    assert said.json["confusion"]["labels"] == ["0", "2"]
    (tn, fn), (fp, tp) = said.json["confusion"]["matrix"]
    tolerance = 1e-4 * (tn + fn + fp + tp)
    found = {"tn": tn, "fn": fn, "fp": fp, "tp": tp}
    assert {name: abs(count - expected[name]) <= tolerance for name, count in found.items()} == dict.fromkeys(
        found, True
    )
    assert values(said, "accuracy")[0] == pytest.approx(expected["accuracy"], abs=2e-4)
    flooded = {name: one["value"] for name, one in said.json["per_class"]["2"].items()}
    assert flooded["f1"] == pytest.approx(expected["f_score"], abs=2e-4)
    assert flooded["iou"] == pytest.approx(expected["critical_success_index"], abs=2e-4)


def test_two_lidar_surveys_of_one_place(evaluate, shared_data, shared_cases):
    cases = json.loads((shared_cases / "elevation_and_position.json").read_text())["cases"]
    expected = next(one for one in cases if one["id"] == "fortbragg_dod_published")["computed_here"][0]
    folder = shared_data / "fortbragg_dem_change"
    sides = {"reference": folder / "elevation_2012.tif", "prediction": folder / "elevation_2016.tif"}
    said = evaluate("elevation", "--json", "--unit=m", **sides)
    names = {
        "mean": "bias",
        "std": "std",
        "rmse": "rmse",
        "median": "median",
        "nmad": "nmad",
        "min": "min",
        "max": "max",
    }
    assert values(said, "count") == [expected["cells"]]
    assert values(said, *names.values()) == pytest.approx([expected[name] for name in names], abs=2e-6)
    assert {one["code"] for one in said.json["findings"]} >= {"heights-census"}


@pytest.mark.parametrize("year", [2004, 2012, 2016])
def test_lidar_points_on_a_raster(evaluate, shared_data, shared_cases, year):
    cases = json.loads((shared_cases / "elevation_and_position.json").read_text())["cases"]
    points = next(one for one in cases if one["id"] == "fortbragg_lidar_checkpoints")["computed_here"]
    expected = points[f"elevation_{year}"]
    folder = shared_data / "fortbragg_dem_change"
    said = evaluate(
        "elevation",
        "--json",
        "--unit=m",
        "--reference-crs=EPSG:3358",
        reference=folder / "lidar_ground_points_2004_sample500.csv",
        prediction=folder / f"elevation_{year}.tif",
    )
    names = {"mean": "bias", "median": "median", "rmse": "rmse", "mae": "mae", "p95_abs": "le95", "min": "min"}
    assert values(said, "count") == [500]
    assert values(said, *names.values()) == pytest.approx([expected[name] for name in names], abs=1e-4)


def test_two_raters(evaluate, shared_data):
    folder = shared_data / "sudan_crop_two_raters"
    sides = {"reference": folder / "rater_set1.csv", "prediction": folder / "rater_set2.csv"}
    said = evaluate("raster", "--json", **sides)
    assert values(said, "accuracy", "kappa") == pytest.approx([0.866109, 0.716016], abs=1e-6)
    assert said.json["confusion"]["matrix"] == [[374, 65], [95, 661]]
    assert any(one["code"] == "duplicate-point" for one in said.json["findings"])


def test_a_stratified_sample_of_a_flood_map(evaluate, shared_data, tmp_path):
    """Fifty cells of each mapped class, labelled from the benchmark; the six cells of class 5 go to its neighbour.

    Not recoded, class 5 is a stratum that was never visited, so that nothing can be said about the whole map.
    """
    import rasterio
    from pyproj import Transformer

    folder = shared_data / "gval_flood_maps"
    with rasterio.open(folder / "candidate_map_multi_categorical.tif") as mapped:
        codes, place, system = mapped.read(1), mapped.transform, mapped.crs
    generator = np.random.Generator(np.random.PCG64(11))
    cells = []
    for code in range(1, 5):
        inside = np.flatnonzero(codes == code)
        cells += [divmod(int(at), codes.shape[1]) for at in generator.choice(inside, 50, replace=False)]
    rows, columns = np.array(cells).T
    x = place.c + place.a * (columns + 0.5)
    y = place.f + place.e * (rows + 0.5)
    with rasterio.open(folder / "benchmark_map_multi_categorical.tif") as truth:
        there = Transformer.from_crs(system, truth.crs, always_xy=True).transform(x, y)
        labels = [int(value[0]) for value in truth.sample(zip(*there, strict=True))]
        nodata = truth.nodata
    sample = tmp_path / "sample.csv"
    with sample.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("lon", "lat", "label"))
        writer.writerows((a, b, label) for a, b, label in zip(x, y, labels, strict=True) if label != nodata)
    prediction = folder / "candidate_map_multi_categorical.tif"
    unvisited = evaluate("raster", "--json", "--design=stratified", reference=sample, prediction=prediction)
    assert unvisited.json["estimates"]["accuracy_adjusted"]["reason"] == "no_support"
    recode = "--recode=prediction:5=4"
    said = evaluate("raster", "--json", "--design=stratified", recode, reference=sample, prediction=prediction)
    assert said.code == 0
    estimates, classes = said.json["estimates"], said.json["per_class"]
    adjusted = estimates["accuracy_adjusted"]
    assert adjusted["interval"]["low"] < adjusted["value"] < adjusted["interval"]["high"]
    assert adjusted["value"] != pytest.approx(estimates["accuracy"]["value"], abs=1e-3)
    shares = [one["area_share"] for one in classes.values()]
    assert sum(one["value"] for one in shares) == pytest.approx(1.0)
    assert {one["area"]["unit"] for one in classes.values()} == {"m2"}
    seen = {label: one["area"] for label, one in classes.items() if one["support"]["value"]}
    assert set(seen) == {"3", "4", "5"}
    assert all(one["interval"]["high"] > one["value"] > one["interval"]["low"] > 0 for one in seen.values())
    areas = sum(one["area"]["value"] for one in classes.values())
    middle = place.f + place.e * codes.shape[0] / 2
    cell = 111_320.0**2 * np.cos(np.radians(middle)) * -place.a * place.e
    assert areas == pytest.approx(np.count_nonzero((codes >= 1) & (codes <= 5)) * cell, rel=0.01)
    bare = evaluate("raster", "--json", recode, reference=sample, prediction=prediction)
    assert bare.json["estimates"]["accuracy_adjusted"]["reason"] == "not_applicable"


#: What the folder's own description says is wrong with its files.
KNOWN = {
    "corrupt.tif": [("unreadable", "blocker")],
    "latin1.shp": [("unreadable", "blocker")],
    "empty_zipfile.zip": [("unreadable", "blocker")],
    "corrupt_too_long.shp": [("crs-missing", "critical")],
    "float_nan.tif": [("crs-missing", "critical")],
    "rotated.tif": [("crs-missing", "critical"), ("rotated", "major")],
    "whitebox_dem_local_cs.tif": [("crs-missing", "critical")],
    "all-nodata.tif": [("no-data", "critical")],
    "momepy_broken_network.gpkg": [("mixed-crs", "major")],
    "geoparquet/data-polygon-encoding_wkb.parquet": [("null-geometry", "critical"), ("empty-geometry", "critical")],
    "geoparquet/data-point-encoding_wkb.parquet": [("null-geometry", "critical"), ("empty-geometry", "critical")],
}
CLEAN = ("test_esri_wkt.tif", "float_raster_with_nodata.tif", "fiona_issue627.geojson")


def inspected(path):
    """Findings of ``inspect`` on one file, as (code, severity)."""
    from geoeval.errors import InputError
    from geoeval.readers.inspect_file import inspect_file

    try:
        facts = inspect_file(path)
    except InputError:
        return [("unreadable", "blocker")]
    if facts["kind"] == "raster":
        tests = {
            ("crs-missing", "critical"): facts["crs"] is None,
            ("rotated", "major"): facts["rotated"],
            ("no-data", "critical"): all(band["glimpse"]["valid"] == 0 for band in facts["bands"]),
        }
        return [found for found, holds in tests.items() if holds]
    layers = facts["layers"]
    tests = {
        ("crs-missing", "critical"): any(layer["crs"] is None for layer in layers),
        ("mixed-crs", "major"): len({str(layer["crs"]) for layer in layers}) > 1,
        ("null-geometry", "critical"): any(layer["defects"].get("null") for layer in layers),
        ("empty-geometry", "critical"): any(layer["defects"].get("empty") for layer in layers),
    }
    return [found for found, holds in tests.items() if holds]


def table(path, findings):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("dataset", "code", "severity"))
        writer.writerows((name, *one) for name, found in findings.items() for one in found)
    return path


def test_the_inspection_of_odd_files_as_a_validator(evaluate, shared_data, tmp_path):
    """Every known fault is found; without its report on one file the gates on missed ones fail."""
    folder = shared_data / "corrupt_and_odd_files"
    found = {name: inspected(folder / name) for name in (*KNOWN, *CLEAN)}
    reference = table(tmp_path / "known.csv", KNOWN)
    said = evaluate(
        "validation", "--json", "--assume-clean", reference=reference, prediction=table(tmp_path / "all.csv", found)
    )
    anomalies = sum(map(len, KNOWN.values()))
    assert values(said, "tp", "fp", "fn", "missed_blocker", "missed_critical") == [anomalies, 0, 0, 0, 0]
    recall = said.json["estimates"]["recall"]
    assert recall["interval"]["method"] == "clopper_pearson_lower"
    assert recall["interval"]["low"] == pytest.approx(0.05 ** (1 / anomalies))
    assert set(said.json["per_class"]) == {code for rows in KNOWN.values() for code, _ in rows}
    del found["corrupt.tif"]
    said = evaluate(
        "validation", "--json", "--assume-clean", reference=reference, prediction=table(tmp_path / "less.csv", found)
    )
    assert said.code == 3
    assert said.json["estimates"]["missed_blocker"]["value"] == 1
