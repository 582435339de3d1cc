"""Categorical rasters end to end: counts, identities, and that tiling, types and workers change nothing."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import rasterio
from hypothesis import given, settings
from hypothesis import strategies as st
from rasterio.transform import Affine

from geoeval.errors import ConfigError
from geoeval.evaluators import raster as module
from geoeval.evaluators.raster import Raster
from geoeval.layers import Block, RasterPair
from geoeval.ledger import Ledger, tally_unit
from geoeval.model import Proportion, Scalar, Unit
from geoeval.options import Columns, Pairing, Source
from geoeval.readers.points import labelled_points
from geoeval.readers.raster import raster_units
from geoeval.stats.tally import totals_of

COUNTS = ("joint", "reference_only", "prediction_only", "neither")


def ledger_of(units, evaluator=None):
    evaluator = evaluator or Raster()
    return Ledger.of(row for unit in units.units for row in tally_unit(evaluator, unit)[0])


def totals(units, evaluator=None):
    return ledger_of(units, evaluator).by_cluster().whole()


def arrays(one, other, pairing=None, **sides):
    return raster_units(
        Source(np.asarray(one), **sides.get("reference", {})),
        Source(np.asarray(other), **sides.get("prediction", {})),
        pairing or Pairing(),
        categorical=True,
    )


def values(quantities):
    return {name: quantity.value for name, quantity in quantities.items()}


def write(path, table, crs="EPSG:32633", cell=10.0, origin=(500_000.0, 5_000_000.0), nodata=None):
    place = Affine(cell, 0, origin[0], 0, -cell, origin[1])
    options = {"height": table.shape[0], "width": table.shape[1], "dtype": table.dtype, "crs": crs, "nodata": nodata}
    with rasterio.open(path, "w", driver="GTiff", count=1, transform=place, **options) as dataset:
        dataset.write(table, 1)
    return str(path)


REFERENCE = [[1, 1, 2, 9], [2, 2, 9, 9]]
PREDICTION = [[1, 2, 2, 1], [2, 9, 9, 9]]


def test_hand_counted():
    """9 is nodata: joint 1-1, 1-2, 2-2, 2-2; reference only 1; prediction only 1; neither 2."""
    found = totals(arrays(REFERENCE, PREDICTION, reference={"nodata": 9}, prediction={"nodata": 9}))
    assert [int(found[name][0]) for name in COUNTS] == [4, 1, 1, 2]
    quantities = Raster().quantities(found)
    assert (quantities["accuracy"].k.tolist(), quantities["accuracy"].n.tolist()) == ([3], [4])
    assert quantities["coverage"].value.tolist() == [0.8]
    extras = Raster().extras(found)
    assert extras["confusion"]["axes"] == ["prediction", "reference"]
    assert extras["confusion"]["codes"] == [1, 2]
    assert extras["confusion"]["matrix"] == [[1, 0], [1, 2]]
    assert json.loads(json.dumps(extras["counts"])) == dict(zip(COUNTS, [4, 1, 1, 2], strict=True))


def test_quantities_stand_in_the_order_of_the_contract():
    found = list(Raster().quantities(totals(arrays(REFERENCE, PREDICTION))))
    assert found[:8] == [
        "accuracy",
        "mean_iou",
        "mean_iou_reference_classes",
        "macro_f1",
        "kappa",
        "quantity_disagreement",
        "allocation_disagreement",
        "coverage",
    ]


def test_classes_without_reference_are_named():
    found = Raster().extras(totals(arrays([[1, 1]], [[1, 3]])))
    assert found["excluded_classes"] == ({"label": "3", "reason": "no_support", "predicted": 1},)


def test_named_classes_are_listed_even_where_they_do_not_occur():
    evaluator = Raster(class_names={"1": "water", "7": "ice"})
    classes = evaluator.class_quantities(totals(arrays([[1, 2]], [[1, 2]])))
    assert list(classes) == ["water", "2", "ice"]
    assert np.isnan(classes["ice"]["iou"].value).all()
    assert classes["water"]["support"].value.tolist() == [1.0]
    assert list(classes["2"]) == ["precision", "recall", "f1", "iou", "support", "predicted"]


def test_a_census_without_clusters_has_no_binomial_trials():
    with_blocks = Raster().quantities(totals(arrays(REFERENCE, PREDICTION)))
    without = Raster().quantities(totals(arrays(REFERENCE, PREDICTION, Pairing(cluster="none"))))
    assert isinstance(with_blocks["accuracy"], Proportion)
    assert isinstance(without["accuracy"], Scalar)
    assert isinstance(without["coverage"], Scalar)
    assert values(without) == values(with_blocks)
    classes = Raster().class_quantities(totals(arrays(REFERENCE, PREDICTION, Pairing(cluster="none"))))
    assert isinstance(classes["1"]["recall"], Scalar)
    each = Raster().quantities(totals(arrays(REFERENCE, PREDICTION, Pairing(cluster="unit"))))
    assert isinstance(each["accuracy"], Proportion)


def test_nothing_in_common_gives_nothing():
    found = totals(arrays([[1, 0]], [[0, 1]], reference={"nodata": 0}, prediction={"nodata": 0}))
    quantities = Raster().quantities(found)
    assert np.isnan(quantities["accuracy"].value).all()
    assert quantities["coverage"].value.tolist() == [0.0]
    assert [int(found[name][0]) for name in COUNTS] == [0, 1, 1, 0]


def test_a_border_of_nodata_changes_only_the_coverage():
    generator = np.random.default_rng(0)
    a, b = generator.integers(1, 4, (2, 12, 12))
    b[:, 9:] = 0
    a_short, b_short = a[:, :9], b[:, :9]
    whole = values(Raster().quantities(totals(arrays(a, b, prediction={"nodata": 0}))))
    part = values(Raster().quantities(totals(arrays(a_short, b_short, prediction={"nodata": 0}))))
    assert whole.pop("coverage") == 0.75
    assert part.pop("coverage") == 1.0
    assert whole == part


def test_255_and_0_are_classes():
    assert Raster().extras(totals(arrays(np.array([[0, 255]], np.uint8), np.array([[0, 0]], np.uint8))))["confusion"][
        "codes"
    ] == [0, 255]


def test_strata_cells_sum_to_the_whole(tmp_path):
    generator = np.random.default_rng(1)
    a, b, zones = generator.integers(0, 3, (3, 30, 30), dtype=np.uint8)
    paths = [write(tmp_path / f"{name}.tif", table) for name, table in zip("ab", (a, b), strict=True)]
    by = write(tmp_path / "z.tif", zones, nodata=0)
    plain = raster_units(Source(paths[0]), Source(paths[1]), Pairing(), categorical=True)
    split = raster_units(Source(paths[0]), Source(paths[1]), Pairing(by=(f"zone={by}",)), categorical=True)
    parts = ledger_of(split)
    assert parts.strata() == {"zone": ("1", "2", "unknown")}
    assert totals_of([row.tally for row in parts.rows]).sums.keys() == totals(plain).sums.keys()
    assert Raster().extras(parts.by_cluster().whole()) == Raster().extras(totals(plain))
    one = Raster().quantities(parts.where(lambda row: row.value_of("zone") == "2").by_cluster().whole())
    assert one["accuracy"].value[0] == pytest.approx((a == b)[zones == 2].mean())


def test_tiling_types_and_the_compiled_kernel_change_nothing(tmp_path, monkeypatch):
    generator = np.random.default_rng(2)
    a, b = generator.integers(0, 6, (2, 70, 90))
    tables = {}
    for kind in ("uint8", "int32", "float32"):
        paths = [write(tmp_path / f"{name}-{kind}.tif", t.astype(kind), nodata=0) for name, t in (("a", a), ("b", b))]
        for window in (None, (13, 90), (70, 7)):
            units = raster_units(Source(paths[0]), Source(paths[1]), Pairing(cluster="grid:170m"), categorical=True)
            pair = units.units[0].load()
            blocks = replace(pair.blocks, window=window)
            unit = Unit("a", lambda pair=pair, blocks=blocks: replace(pair, blocks=blocks))
            tables[kind, window] = Raster().tally(unit).cells
    monkeypatch.setattr(module, "COMPILED_PX", 0)
    tables["compiled"] = Raster().tally(unit).cells
    first = tables["uint8", None]
    assert len(first) > 20
    assert all(cells == first for cells in tables.values())


def scored(unit):
    return Raster().tally(unit).cells


def test_workers_change_nothing(tmp_path):
    generator = np.random.default_rng(3)
    for side in ("r", "p"):
        (tmp_path / side).mkdir()
        for name in ("west", "east"):
            write(tmp_path / side / f"{name}.tif", generator.integers(1, 4, (20, 20), dtype=np.uint8))
    units = raster_units(Source(str(tmp_path / "r")), Source(str(tmp_path / "p")), Pairing(), categorical=True).units
    with ProcessPoolExecutor(2) as pool:
        assert list(pool.map(scored, units)) == [scored(unit) for unit in units]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), classes=st.integers(1, 5))
def test_identities(seed, classes):
    generator = np.random.default_rng(seed)
    a, b = generator.integers(0, classes, (2, 9, 11))
    found = totals(arrays(a, b, reference={"nodata": 0}))
    quantities = values(Raster().quantities(found))
    matrix = np.array(Raster().extras(found)["confusion"]["matrix"])
    assert matrix.sum() == found["joint"][0]
    assert sum(found[name][0] for name in COUNTS) == a.size
    if matrix.sum():
        apart = quantities["quantity_disagreement"] + quantities["allocation_disagreement"]
        assert apart == pytest.approx(1 - quantities["accuracy"])
    turned = Raster().extras(totals(arrays(b, a, prediction={"nodata": 0})))
    assert turned["confusion"]["matrix"] == matrix.T.tolist()


def test_a_map_is_right_about_itself():
    generator = np.random.default_rng(4)
    a = generator.integers(0, 5, (10, 10))
    quantities = values(Raster().quantities(totals(arrays(a, a))))
    for name in ("accuracy", "mean_iou", "macro_f1", "kappa", "mcc", "balanced_accuracy", "coverage"):
        assert quantities[name] == [1.0], name


def test_counts_beyond_32_bits():
    """The same block of 2**20 pixels, 2**12 times, by way of tallies."""
    ones = np.ones((1024, 1024), dtype=np.uint8)
    everywhere = np.ones(ones.shape, dtype=bool)
    block = Block(ones, ones, everywhere, everywhere, "a", 0, 0)
    pair = RasterPair(blocks=lambda: iter([block]), shape=ones.shape, cell_m=(1.0, 1.0))
    tally = next(iter(Raster().tally(Unit("a", lambda: pair)).cells.values()))
    found = Raster().quantities(totals_of([tally * 2**12]))
    assert found["accuracy"].n.tolist() == [2**32]
    assert found["kappa"].reason == "undefined_ratio"


def test_the_weighted_accuracy_counts_true_areas(tmp_path):
    """Two cells, at 0.5 and at 60.5 degrees north; the southern one is right and about twice as large."""
    a = np.array([[1]] * 61, dtype=np.uint8)
    b = np.array([[2]] * 60 + [[1]], dtype=np.uint8)
    a[1:60] = 0
    paths = [write(tmp_path / f"{i}.tif", t, "EPSG:4326", 1.0, (0.0, 61.0), nodata=0) for i, t in enumerate((a, b))]
    units = raster_units(Source(paths[0]), Source(paths[1]), Pairing(cluster="none"), categorical=True)
    quantities = Raster().quantities(totals(units))
    assert quantities["accuracy"].value == [0.5]
    assert quantities["accuracy_area_weighted"].value[0] == pytest.approx(1 / (1 + np.cos(np.radians(60.5))), abs=3e-3)
    projected = totals(arrays([[1]], [[1]]))
    assert "accuracy_area_weighted" not in Raster().quantities(projected)


def test_a_design_that_nobody_knows_is_refused():
    with pytest.raises(ConfigError, match="design must be one of stratified"):
        Raster(design="random")


def test_rasters_have_no_design_estimates():
    assert Raster(design="stratified").design_estimates(totals(arrays([[1]], [[1]]))) == {
        "estimates": {},
        "per_class": {},
    }


def test_points_with_a_design_end_to_end(tmp_path):
    """A map of two classes, 30 and 70 cells; strata are its classes; 4 of 5 and 5 of 5 points agree."""
    table = np.full((10, 10), 2, dtype=np.uint8)
    table[:3] = 1
    path = write(tmp_path / "map.tif", table)
    cells = [(0, c) for c in range(5)] + [(9, c) for c in range(5)]
    labels = ["1"] * 4 + ["2"] * 6
    frame = pd.DataFrame({"x": [500_005.0 + 10 * c for _, c in cells], "y": [4_999_995.0 - 10 * r for r, _ in cells]})
    evaluator = Raster(design="stratified")
    units = labelled_points(
        Source(frame.assign(label=labels), crs="EPSG:32633"), Source(path), Pairing(design="stratified")
    )
    found = totals(units, evaluator)
    assert evaluator.quantities(found)["accuracy"].value.tolist() == [0.9]
    adjusted = evaluator.design_estimates(found)
    assert adjusted["estimates"]["accuracy_adjusted"].value == pytest.approx(0.3 * 0.8 + 0.7)
    assert adjusted["per_class"]["2"]["area"].value == pytest.approx((0.7 + 0.3 * 0.2) * 10_000)
    assert evaluator.extras(found)["confusion"]["codes"] == ["1", "2"]


def test_points_outside_are_reported_and_lower_the_coverage(tmp_path):
    path = write(tmp_path / "map.tif", np.ones((2, 2), dtype=np.uint8))
    frame = pd.DataFrame({"x": [500_005.0, 0.0], "y": [4_999_995.0, 0.0], "label": ["1", "1"]})
    units = labelled_points(Source(frame, crs="EPSG:32633"), Source(path), Pairing(cluster="none"))
    _, tallied = tally_unit(Raster(), units.units[0])
    assert [finding.code for finding in tallied.findings] == ["points-outside"]
    found = totals(units)
    assert Raster().quantities(found)["coverage"].value.tolist() == [0.5]
    assert Raster().quantities(found)["accuracy"].value.tolist() == [1.0]
    assert Raster().extras(found)["points_outside"] == 1


@pytest.mark.shared
def test_a_flood_map_in_another_system_within_its_published_counts(shared_data, shared_cases):
    """Each count within 1e-4 of the joint pixels: the peer warps with another tolerance."""
    row = json.loads((shared_cases / "categorical_gval.json").read_text())["cases"][0]
    units = raster_units(
        Source(str(shared_data / row["benchmark"])),
        Source(str(shared_data / row["candidate"]), recode={"1": "0"}),
        Pairing(align="nearest"),
        categorical=True,
    )
    found = totals(units)
    confusion = Raster().extras(found)["confusion"]
    (tn, fn), (fp, tp) = confusion["matrix"]
    expected, joint = row["expected_metrics"], int(found["joint"][0])
    assert confusion["codes"] == [0, 2]
    for name, count in (("tn", tn), ("fn", fn), ("fp", fp), ("tp", tp)):
        assert abs(count - expected[name]) < 1e-4 * joint, name
    quantities = values(Raster().quantities(found))
    assert quantities["accuracy"][0] == pytest.approx(expected["accuracy"], abs=2e-4)
    assert quantities["mcc"][0] == pytest.approx(expected["matthews_correlation_coefficient"], abs=2e-4)
    assert quantities["balanced_accuracy"][0] == pytest.approx(expected["balanced_accuracy"], abs=2e-4)
    classes = Raster().class_quantities(found)
    assert classes["2"]["iou"].value[0] == pytest.approx(expected["critical_success_index"], abs=2e-4)
    assert classes["2"]["f1"].value[0] == pytest.approx(expected["f_score"], abs=2e-4)


@pytest.mark.shared
def test_small_real_pairs(shared_data):
    """Counts as its description gives them: tp 1977, tn 5939, fp 844, fn 844; nodata 0 on both sides."""
    folder = shared_data / "gval_flood_maps"
    units = raster_units(
        Source(str(folder / "benchmark_categorical_0.tif")),
        Source(str(folder / "candidate_categorical_0.tif")),
        Pairing(),
        categorical=True,
    )
    assert Raster().extras(totals(units))["confusion"]["matrix"] == [[5939, 844], [844, 1977]]
    for band in (1, 2):
        pair = [Source(str(folder / f"{side}_categorical_1.tif"), band=band) for side in ("benchmark", "candidate")]
        assert totals(raster_units(*pair, Pairing(), categorical=True))["joint"][0] > 0


@pytest.mark.shared
def test_a_sample_of_a_real_map_estimates_its_census(shared_data, tmp_path):
    """2000 points in each class; the design's interval holds the area-weighted census figure.

    Class 5 has a single cell in the map, so it is merged with class 4 on both sides.
    """
    folder = shared_data / "gval_flood_maps"
    paths = [str(folder / f"{side}_map_multi_categorical.tif") for side in ("benchmark", "candidate")]
    with rasterio.open(paths[1]) as dataset:
        candidate, place = np.where(dataset.read(1) == 5, 4, dataset.read(1)), dataset.transform
    with rasterio.open(paths[0]) as dataset:
        benchmark, other = dataset.read(1), dataset.transform
    generator = np.random.default_rng(8)
    rows = []
    for code in range(1, 5):
        cells = np.argwhere(candidate == code)
        x, y = place @ (cells[:, 1] + 0.5, cells[:, 0] + 0.5)
        column, row = ~other @ (x, y)
        inside = (column >= 0) & (column < benchmark.shape[1]) & (row >= 0) & (row < benchmark.shape[0])
        label = benchmark[row[inside].astype(int), column[inside].astype(int)]
        x, y, label = x[inside][label != 0], y[inside][label != 0], label[label != 0]
        drawn = generator.choice(len(x), min(2000, len(x)), replace=False)
        rows += [(x[i], y[i], label[i]) for i in drawn]
    frame = pd.DataFrame(rows, columns=["lon", "lat", "label"])
    evaluator = Raster(design="stratified")
    found = totals(
        labelled_points(
            Source(frame, recode={"5": "4"}), Source(paths[1], recode={"5": "4"}), Pairing(design="stratified")
        ),
        evaluator,
    )
    estimate = evaluator.design_estimates(found)["estimates"]["accuracy_adjusted"]
    census = Raster().quantities(
        totals(
            raster_units(
                *(Source(path, recode={"5": "4"}) for path in paths), Pairing(align="nearest"), categorical=True
            )
        )
    )["accuracy_area_weighted"]
    assert estimate.interval.low <= census.value[0] <= estimate.interval.high
    shares = [row["area_share"].value for row in evaluator.design_estimates(found)["per_class"].values()]
    assert sum(shares) == pytest.approx(1.0)


@pytest.mark.shared
def test_two_raters(shared_data):
    folder = shared_data / "sudan_crop_two_raters"
    columns = Columns(label="label")
    units = labelled_points(
        Source(str(folder / "rater_set2.csv"), columns=columns),
        Source(str(folder / "rater_set1.csv"), columns=columns),
        Pairing(),
    )
    found = totals(units)
    assert Raster().extras(found)["confusion"]["matrix"] == [[374, 95], [65, 661]]
    quantities = values(Raster().quantities(found))
    assert quantities["accuracy"][0] == pytest.approx(0.866109, abs=5e-7)
    assert quantities["kappa"][0] == pytest.approx(0.716016, abs=5e-7)
    assert found["joint"][0] == 1195
