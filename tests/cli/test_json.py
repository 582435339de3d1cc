"""``--json``: one object of the published shape, with the keys of the metric contract, and nothing else on stdout."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from geoeval.evidence.shape import load_schema

MATCHED = "tp fp fn precision recall f1"
POLYGONS = f"""{MATCHED} iou_mean dice_mean area_iou area_dice boundary_precision boundary_recall boundary_f1
    centroid_distance_mean centroid_distance_median centroid_distance_p95 area_error_mean area_error_abs_mean polis_mean
    hausdorff_mean vertex_ratio_mean sq rq pq valid_reference valid_prediction split_references merged_references"""
LINES = "completeness correctness quality rms_distance"
POINTS = f"{MATCHED} rmse ce90 ce95 bias_x bias_y"
HEIGHTS = "count coverage bias median mae rmse std nmad le68 le90 le95 min max skewness kurtosis"
CLASSES = """accuracy mean_iou mean_iou_reference_classes macro_f1 kappa quantity_disagreement allocation_disagreement
    coverage"""
ESTIMATE = {"value", "unit", "support", "numerator", "denominator", "interval", "interval_iid", "marks", "reason"}

#: Figures that are no counts, so that an undefined or an empty one would be seen.
DEFINED = {"detection": ("ap50", "ece", "aurc"), "elevation": ("kurtosis", "le90"), "change": ("worst_kind_f1",)}


def lines(path, shift=0.0):
    features = [
        {
            "type": "Feature",
            "properties": {"aoi": f"a{row}"},
            "geometry": {
                "type": "LineString",
                "coordinates": [[500_000.0, 100.0 * row + shift], [500_000.0 + 40 * (row + 1), 100.0 * row + shift]],
            },
        }
        for row in range(6)
    ]
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32631"}}
    path.write_text(json.dumps({"type": "FeatureCollection", "crs": crs, "features": features}))
    return path


def sampled(tif, out, value, count=60):
    """Points at cell centres of a raster, with the value that is there."""
    import rasterio

    with rasterio.open(tif) as file:
        band = file.read(1)
        good = np.argwhere(band != (file.nodata if file.nodata is not None else -1))
        cells = good[np.linspace(0, len(good) - 1, count).astype(int)]
        rows = [(*file.xy(*cell), band[tuple(cell)].item()) for cell in cells]
    with out.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("x", "y", value))
        writer.writerows(rows)
    return out


@pytest.fixture
def said(request, evaluate, fixtures, tmp_path):
    """One run of each kind, by name."""

    def side(family, name):
        return fixtures / family / name / "aoi-01.tif"

    def run(kind):
        match kind:
            case "polygons":
                both = {name: fixtures / "footprint" / f"{name}.geojson" for name in ("reference", "prediction")}
                return evaluate("vector", "--json", "--by=region", **both)
            case "lines":
                both = {"reference": lines(tmp_path / "r.geojson"), "prediction": lines(tmp_path / "p.geojson", 2.0)}
                return evaluate("vector", "--json", **both)
            case "points":
                return evaluate("vector", "--json", "--attribute=surface", "--by=region", "--gate=recall[region]>=0.5")
            case "classes":
                both = {name: side("raster", name) for name in ("reference", "prediction")}
                return evaluate("raster", "--json", **both)
            case "labels" | "design":
                table = sampled(side("raster", "reference"), tmp_path / "sample.csv", "label")
                design = ("--design=stratified",) if kind == "design" else ()
                options = ("--reference-crs=EPSG:32631", *design)
                return evaluate("raster", "--json", *options, reference=table, prediction=side("raster", "prediction"))
            case "heights":
                both = {name: side("elevation", name) for name in ("reference", "prediction")}
                return evaluate("elevation", "--json", "--unit=m", **both)
            case "checkpoints":
                table = sampled(side("elevation", "reference"), tmp_path / "points.csv", "z")
                options = ("--unit=m", "--reference-crs=EPSG:32631")
                found = side("elevation", "prediction")
                return evaluate("elevation", "--json", *options, reference=table, prediction=found)
            case "validation":
                return evaluate("validation", "--json", "--assume-clean")
            case _:
                return evaluate(kind, "--json", "--by=region", "--by=context", "--critical=region=north")

    return run


KINDS = {
    "detection": ("detection", f"{MATCHED} ap50 ap50_95 iou_mean iou_median ece brier aurc eaurc augrc"),
    "footprint": ("footprint", POLYGONS),
    "polygons": ("vector", POLYGONS),
    "lines": ("vector", LINES),
    "points": ("vector", POINTS),
    "change": ("change", f"{MATCHED} worst_kind_f1 date_bias date_mae date_exact"),
    "classes": ("raster", CLASSES),
    "labels": ("raster", "accuracy mean_iou mean_iou_reference_classes macro_f1 kappa"),
    "design": ("raster", "accuracy accuracy_adjusted mean_iou macro_f1"),
    "heights": ("elevation", HEIGHTS),
    "checkpoints": ("elevation", HEIGHTS),
    "validation": (
        "validation",
        f"{MATCHED} missed_blocker missed_critical unadjudicated duplicates misclassified alarms_per_1000",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_shape_and_keys(said, kind):
    jsonschema = pytest.importorskip("jsonschema")
    found = said(kind)
    assert found.code in (0, 2)
    data = found.json
    jsonschema.Draft202012Validator(load_schema("evaluation")).validate(data)
    family, keys = KINDS[kind]
    assert data["family"] == family
    assert data["evaluator"] == f"{family}/1"
    assert data["signature"].startswith(f"{family}/1|")
    assert set(keys.split()) <= set(data["estimates"])
    assert all(set(one) == ESTIMATE for one in data["estimates"].values())
    undefined = {name: one["reason"] for name, one in data["estimates"].items() if one["value"] is None}
    assert all(undefined.values())
    assert not set(DEFINED.get(family, ())) & set(undefined)


def test_what_stands_beside_estimates(said):
    points = said("points").json
    assert set(points["per_class"]["surface"]) == {"attribute_agreement"}
    assert [one["by"] for one in points["strata"]] == [{"region": "north"}, {"region": "south"}]
    assert {row["scope"] for row in points["gates"]} == {"per_subgroup:region=north", "per_subgroup:region=south"}
    change = said("change").json
    assert set(change["per_class"]) == {"added", "removed"}
    assert set(MATCHED.split()) <= set(change["per_class"]["added"])
    validation = said("validation").json
    assert {one["by"]["severity"] for one in validation["strata"]} >= {"blocker", "critical"}
    assert set(MATCHED.split()) <= set(next(iter(validation["per_class"].values())))


def test_classes_of_a_raster(said):
    found = said("classes").json
    matrix = np.array(found["confusion"]["matrix"])
    assert matrix.dtype == np.int64
    assert matrix.shape == (len(found["confusion"]["labels"]),) * 2
    assert found["excluded_classes"] == []
    for at, label in enumerate(found["confusion"]["labels"]):
        one = found["per_class"][label]
        assert {"precision", "recall", "f1", "iou", "support", "predicted"} <= set(one)
        assert one["support"]["value"] == matrix[:, at].sum()
        assert one["predicted"]["value"] == matrix[at].sum()
        assert one["recall"]["numerator"] == matrix[at, at]
    assert found["estimates"]["accuracy"]["numerator"] == np.trace(matrix)


def test_a_design_gives_areas_with_standard_errors(said):
    found = said("design").json
    assert found["estimates"]["accuracy_adjusted"]["interval"]["method"]
    for one in found["per_class"].values():
        assert {"precision_adjusted", "recall_adjusted", "area", "area_share"} <= set(one)
    shares = [one["area_share"]["value"] for one in found["per_class"].values()]
    assert sum(shares) == pytest.approx(1.0)


def test_a_raster_compared_with_its_own_values_is_without_error(evaluate, fixtures, tmp_path):
    tif = fixtures / "elevation" / "reference" / "aoi-01.tif"
    table = sampled(tif, tmp_path / "points.csv", "z")
    found = evaluate(
        "elevation", "--json", "--unit=m", "--reference-crs=EPSG:32631", reference=table, prediction=tif
    ).json["estimates"]
    assert (found["count"]["value"], found["coverage"]["value"]) == (60, 1.0)
    assert (found["rmse"]["value"], found["rmse"]["unit"]) == (0.0, "m")


def test_guesses_and_the_bundle_go_to_stderr(evaluate, tmp_path):
    said = evaluate("detection", "--json", "--out", tmp_path / "out")
    assert said.out.startswith("{")
    assert said.out.endswith("}\n")
    assert "prediction score column: 'score' (guessed)" in said.err
    assert said.err.splitlines()[-1].startswith("bundle ")
    (folder,) = (tmp_path / "out" / "runs").iterdir()
    stored = json.loads((folder / "metrics.json").read_bytes())["evaluations"]["detection"]
    assert stored["estimates"] == said.json["estimates"]


def test_the_same_figures_as_a_table(evaluate):
    shown = evaluate("detection", "--by=region")
    found = evaluate("detection", "--by=region", "--json").json
    recall = found["estimates"]["recall"]
    assert shown.code == 0
    assert f"{recall['value']:.4g}" in shown.out
    assert f"{recall['numerator']} of {recall['denominator']} (24)" in shown.out
    assert "worst subgroup by f1: region=" in shown.out
    assert found["signature"] in shown.out
    assert shown.err == ""
