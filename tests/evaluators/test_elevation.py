"""Elevation: what stays the same however rasters are cut, ordered or scaled, and what is said beside the figures."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from geoeval.evaluators import elevation as module
from geoeval.evaluators.elevation import Elevation
from geoeval.layers import Block, Checkpoints, RasterPair
from geoeval.ledger import Ledger, tally_unit
from geoeval.model import Unit
from geoeval.stats.bootstrap import multiplicities


def generator(seed=0):
    return np.random.Generator(np.random.PCG64(seed))


def pair(reference, prediction, valid=None, side=64, strata=None, unit="m", reverse=False, **notes):
    """Two arrays as blocks of ``side`` cells inside spatial blocks of 50 cells."""
    reference, prediction = np.asarray(reference), np.asarray(prediction)
    left, right = valid or (np.ones(reference.shape, dtype=bool),) * 2
    edges = [sorted({*range(0, n, side), *range(0, n, 50), n}) for n in reference.shape]

    def blocks():
        spans = [
            (slice(a, b), slice(c, d))
            for a, b in zip(edges[0], edges[0][1:], strict=False)
            for c, d in zip(edges[1], edges[1][1:], strict=False)
        ]
        for at in reversed(spans) if reverse else spans:
            row, column = at[0].start, at[1].start
            yield Block(
                reference[at],
                prediction[at],
                left[at],
                right[at],
                f"x{column // 50}y{row // 50}",
                row,
                column,
                strata={name: (codes[at], names) for name, (codes, names) in (strata or {}).items()},
            )

    return RasterPair(blocks, reference.shape, (1.0, 1.0), unit, notes)


def survey(reference, prediction, unit="m", **strata):
    n = len(reference)

    def column(values):
        out = np.empty(n, dtype=object)
        out[:] = values
        return out

    return Checkpoints(
        column([f"p{i}" for i in range(n)]),
        np.arange(n, dtype=float),
        np.zeros(n),
        np.asarray(reference, dtype=float),
        np.asarray(prediction, dtype=float),
        column([f"c{i % 4}" for i in range(n)]),
        {name: column(values) for name, values in strata.items()},
        unit,
    )


def ledger(payload, evaluator=None):
    return Ledger.of(tally_unit(evaluator or Elevation(), Unit("u", lambda: payload))[0])


def totals(payload, evaluator=None):
    return ledger(payload, evaluator).by_cluster().whole()


def figures(payload, evaluator=None):
    evaluator = evaluator or Elevation()
    whole = totals(payload, evaluator)
    found = {**evaluator.quantities(whole), **evaluator.ranked(whole)}
    return {key: float(found[key].value[0]) for key in evaluator.KEYS}


def surfaces(shape=(120, 130), bias=0.1, spread=0.3):
    draw = generator(1)
    reference = draw.normal(100, 20, shape)
    prediction = reference + draw.normal(bias, spread, shape)
    return reference.astype(np.float32), prediction.astype(np.float32)


def test_four_cells_by_hand():
    """Errors 1, -1, 3 and one void prediction: bias 1, median 1, coverage three quarters."""
    found = figures(
        pair([[1, 2], [3, 4]], [[2, 1], [6, 0]], (np.ones((2, 2), bool), np.array([[True, True], [True, False]])))
    )
    assert found["count"] == 3
    assert found["coverage"] == 0.75
    assert (found["bias"], found["median"], found["min"], found["max"]) == (1.0, 1.0, -1.0, 3.0)
    assert found["mae"] == pytest.approx(5 / 3)
    assert found["rmse"] == pytest.approx(math.sqrt(11 / 3))
    assert found["nmad"] == pytest.approx(1.482602218 * 2)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int16, np.int64, np.uint32])
def test_integer_rasters_neither_wrap_nor_overflow(kind):
    reference = np.array([[0, 200], [7, 100]], dtype=kind)
    prediction = np.array([[100, 0], [7, 99]], dtype=kind)
    assert figures(pair(reference, prediction)) == figures(pair(reference.astype(float), prediction.astype(float)))
    assert figures(pair(reference, prediction))["min"] == -200


def test_keys_stand_in_print_order_and_agree_with_numpy():
    reference, prediction = surfaces()
    found = figures(pair(reference, prediction))
    errors = (prediction.astype(np.float64) - reference).reshape(-1)
    assert list(found) == (
        [
            "count",
            "coverage",
            "bias",
            "median",
            "mae",
            "rmse",
            "std",
            "nmad",
            "le68",
            "le90",
            "le95",
            "min",
            "max",
            "skewness",
            "kurtosis",
        ]
    )
    assert found["std"] == pytest.approx(errors.std(ddof=1), rel=1e-10)
    for key, share in (("le68", 68.27), ("le90", 90), ("le95", 95)):
        assert found[key] == np.percentile(np.abs(errors), share)
    assert found["median"] == np.median(errors)
    assert (found["min"], found["max"]) == (errors.min(), errors.max())


@pytest.mark.parametrize("exact_mib", [64.0, 0.01])
def test_tiling_and_order_change_no_bit(exact_mib):
    reference, prediction = surfaces()
    evaluator = Elevation(exact_mib=exact_mib)
    ledgers = [
        ledger(pair(reference, prediction, side=side, reverse=reverse, pilot=0.1), evaluator).rows
        for side, reverse in ((64, False), (17, False), (200, True))
    ]
    assert all(rows == ledgers[0] for rows in ledgers)


def test_without_a_first_look_of_the_reader_the_offset_is_found_and_does_not_depend_on_tiles():
    reference, prediction = surfaces(bias=40.0)
    evaluator = Elevation(exact_mib=0.01)
    rows = [ledger(pair(reference, prediction, side=side), evaluator).rows for side in (64, 31)]
    assert rows[0] == rows[1]
    assert evaluator.extras(totals(pair(reference, prediction), evaluator))["nmad"]["bound"] < 1e-3


def test_the_compiled_pass_gives_the_same_bits(monkeypatch):
    reference, prediction = surfaces()
    prediction[3, 4] = 1e6
    prediction[5, 6] = np.inf
    valid = generator(2).random((2, *reference.shape)) > 0.1
    evaluator = Elevation(exact_mib=0.01, pilot=0.1)
    rows = []
    for cells in (2**40, 1):
        monkeypatch.setattr(module, "KERNEL_CELLS", cells)
        rows.append(ledger(pair(reference, prediction, tuple(valid)), evaluator).rows)
    assert rows[0] == rows[1]


def test_a_sketch_is_marked_and_its_bound_is_printed():
    reference, prediction = surfaces()
    exact = figures(pair(reference, prediction))
    evaluator = Elevation(exact_mib=0.01)
    whole = totals(pair(reference, prediction), evaluator)
    ranked = evaluator.ranked(whole)
    assert ranked["le90"].marks == ("sketch",)
    extras = evaluator.extras(whole)
    assert abs(float(ranked["le90"].value[0]) - exact["le90"]) <= extras["quantiles"]["absolute"]["90"]["bound"]
    assert abs(float(ranked["nmad"].value[0]) - exact["nmad"]) <= extras["nmad"]["bound"] + 1e-7
    for key in ("bias", "mae", "rmse", "std", "min", "max"):
        found = {**evaluator.quantities(whole), **ranked}[key]
        assert float(found.value[0]) == pytest.approx(exact[key], rel=1e-9)


def test_a_nodata_border_changes_only_the_coverage():
    reference, prediction = surfaces((60, 60))
    plain = figures(pair(reference, prediction))
    wide = [np.pad(side, 10, constant_values=-9999.0) for side in (reference, prediction)]
    inside = np.zeros(wide[0].shape, dtype=bool)
    inside[10:-10, 10:-10] = True
    bordered = figures(pair(*wide, (np.ones_like(inside), inside)))
    assert bordered.pop("coverage") == pytest.approx(3600 / 6400)
    assert plain.pop("coverage") == 1.0
    assert bordered == plain


def test_feet_are_metres_times_their_factor():
    reference, prediction = (side.astype(np.float64) for side in surfaces((40, 40)))
    metres = figures(pair(reference, prediction))
    feet = figures(pair(reference / 0.3048, prediction / 0.3048, unit="ft"))
    for key, value in metres.items():
        assert feet[key] == pytest.approx(value, rel=1e-6), key
    (finding,) = tally_unit(Elevation(), Unit("u", lambda: pair(reference, prediction, unit="ft")))[1].findings
    assert (finding.code, "0.3048" in finding.says) == ("unit-converted", True)


def test_empty_overlap_is_undefined_not_zero():
    reference, prediction = surfaces((10, 10))
    nothing = np.zeros((10, 10), dtype=bool)
    payload = pair(reference, prediction, (~nothing, nothing))
    evaluator = Elevation()
    whole = totals(payload)
    found = {**evaluator.quantities(whole), **evaluator.ranked(whole)}
    assert found["coverage"].value[0] == 0.0
    assert found["count"].value[0] == 0
    for key in ("bias", "median", "nmad", "le90", "min", "kurtosis"):
        assert math.isnan(found[key].value[0])
        assert found[key].reason == "no_support"
    json.dumps(evaluator.extras(whole), allow_nan=False)


def test_strata_are_cells_and_sum_to_the_whole():
    reference, prediction = surfaces((60, 60))
    cover = np.zeros((60, 60), dtype=np.int64)
    cover[:, 30:] = 7
    slope = np.tile(np.arange(60) % 2, (60, 1))
    payload = pair(
        reference, prediction, strata={"cover": (cover, {0: "bare", 7: "forest"}), "slope": (slope, {0: "low"})}
    )
    rows = ledger(payload)
    assert rows.strata() == {"cover": ("bare", "forest"), "slope": ("low", "unknown")}
    forest = rows.where(lambda row: row.value_of("cover") == "forest").by_cluster().whole()
    errors = (prediction.astype(np.float64) - reference)[:, 30:]
    assert Elevation().ranked(forest)["median"].value[0] == np.median(errors)
    assert Elevation().quantities(rows.by_cluster().whole())["count"].value[0] == 3600


@pytest.mark.parametrize("exact_mib", [64.0, 0.01])
def test_redraws_have_one_value_each_and_scatter_about_the_figure(exact_mib):
    reference, prediction = surfaces((200, 200))
    evaluator = Elevation(exact_mib=exact_mib, pilot=0.0)
    table = ledger(pair(reference, prediction), evaluator).by_cluster()
    drawn = table.totals(multiplicities(len(table.clusters), 40, seed=1))
    whole = table.whole()
    for read in (evaluator.quantities, evaluator.ranked):
        point = read(whole)
        for key, quantity in read(drawn).items():
            values = np.asarray(quantity.value, dtype=float)
            assert values.shape == (40,)
            if key not in ("count", "coverage", "min", "max", "skewness", "kurtosis"):
                assert abs(np.mean(values) - float(point[key].value[0])) < 0.02, key


def test_large_rasters_keep_the_errors_that_published_quantiles_need(monkeypatch):
    """The way between 2 Mi cells and the budget, on a small raster."""
    monkeypatch.setattr("geoeval.stats.error_cells.ROWS_CELLS", 1000)
    reference, prediction = surfaces()
    evaluator = Elevation(pilot=0.0)
    whole = totals(pair(reference, prediction), evaluator)
    assert "error" in whole.bins
    errors = (prediction.astype(np.float64) - reference).reshape(-1)
    ranked = evaluator.ranked(whole)
    assert ranked["le90"].marks == ()
    assert float(ranked["le90"].value[0]) == pytest.approx(np.percentile(np.abs(errors), 90), rel=1e-7)
    assert float(ranked["nmad"].value[0]) == pytest.approx(
        1.482602218 * np.median(np.abs(errors - np.median(errors))), rel=1e-7
    )


def test_checkpoints_without_a_raster_value_lower_the_coverage_and_are_listed():
    points = survey([1.0, 2.0, 3.0, np.nan], [1.5, np.nan, 3.5, 4.0], cover=["a", "a", "b", "b"])
    rows, tallied = tally_unit(Elevation(), Unit("u", lambda: points))
    whole = Ledger.of(rows).by_cluster().whole()
    coverage = Elevation().quantities(whole)["coverage"]
    assert (coverage.k[0], coverage.n[0]) == (2, 3)
    assert tallied.records.columns["outcome"].tolist() == ["tp", "fn", "tp", "fn"]
    assert tallied.records.columns["error_type"].tolist() == ["", "void", "", "void"]
    assert Ledger.of(rows).strata() == {"cover": ("a", "b")}


def test_standards_need_enough_checkpoints_and_a_survey_that_is_known():
    draw = generator(3)
    reference = draw.normal(50, 5, 30)
    points = survey(reference, reference + draw.normal(0, 0.1, 30))
    extras = Elevation(survey_rmse=0.03).extras(totals(points))
    rmse = figures(points)["rmse"]
    assert extras["test"] == "checkpoints"
    assert extras["nssda_95"]["value"] == pytest.approx(1.96 * rmse)
    assert extras["asprs_ed1_nva"]["value"] == pytest.approx(1.96 * rmse)
    assert extras["asprs_ed1_vva"]["value"] == pytest.approx(figures(points)["le95"])
    assert extras["asprs_ed2_rmse"]["value"] == pytest.approx(math.hypot(rmse, 0.03))
    assert Elevation().extras(totals(points))["asprs_ed2_rmse"] == {
        "value": None,
        "unit": "m",
        "bound": 0.0,
        "reason": "not_applicable",
    }
    few = Elevation(survey_rmse=0.03).extras(totals(survey(reference[:25], reference[:25] + 0.1)))
    assert few["nssda_95"]["value"] is not None
    assert (few["asprs_ed2_rmse"]["value"], few["asprs_ed2_rmse"]["reason"]) == (None, "low_support")
    fewer = Elevation().extras(totals(survey(reference[:19], reference[:19])))
    assert fewer["nssda_95"]["reason"] == "low_support"


def test_a_comparison_of_two_rasters_is_no_checkpoint_test():
    reference, prediction = surfaces((30, 30))
    whole = totals(pair(reference, prediction))
    extras = Elevation().extras(whole)
    assert "not a checkpoint test" in extras["test"]
    assert extras["nssda_95"]["reason"] == "not_applicable"
    assert [f.code for f in Elevation().remarks(whole)] == ["heights-census"]


def test_outliers_fail_the_normality_check():
    errors = generator(4).normal(0, 0.02, 400)
    errors[:8] = 3.0
    whole = totals(survey(np.zeros(400), errors))
    assert Elevation().extras(whole)["normality"]["normal"] is False
    assert "errors-not-normal" in [f.code for f in Elevation().remarks(whole)]


def test_other_definitions_have_their_own_names():
    reference, prediction = surfaces((50, 50))
    errors = (prediction.astype(np.float64) - reference).reshape(-1)
    extras = Elevation().extras(totals(pair(reference, prediction)))
    assert extras["le90_gaussian"]["value"] == pytest.approx(1.6449 * math.sqrt(np.mean(errors**2)))
    assert extras["p95_minus_p5"]["value"] == pytest.approx(np.percentile(errors, 95) - np.percentile(errors, 5))
    assert extras["p90_abs_centred"]["value"] == pytest.approx(np.percentile(np.abs(errors - np.median(errors)), 90))


def test_the_histogram_has_declared_edges_and_counts_everything():
    """Edges 0, 1, 2: an error on an edge belongs to the bin above it, on the last edge to the last bin."""
    points = survey(np.zeros(6), [-1.0, 0.0, 0.5, 1.0, 2.0, 2.5])
    evaluator = Elevation(edges=(0.0, 1.0, 2.0))
    found = evaluator.extras(totals(points, evaluator))["histogram"]
    assert found == {"edges": [0.0, 1.0, 2.0], "below": 1, "counts": [2, 2], "above": 1}


def test_undeclared_nodata_of_float64_is_left_out_and_reported():
    reference, prediction = surfaces((10, 10))
    prediction = prediction.astype(np.float64)
    prediction[0, 0] = -1.797e308
    rows, tallied = tally_unit(Elevation(), Unit("u", lambda: pair(reference, prediction)))
    assert [f.code for f in tallied.findings] == ["height-not-finite"]
    coverage = Elevation().quantities(Ledger.of(rows).by_cluster().whole())["coverage"]
    assert (coverage.k[0], coverage.n[0]) == (99, 100)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"edges": (1.0, 0.0)}, "ascending"),
        ({"survey_rmse": -1.0}, "survey_rmse"),
        ({"survey_rmse": math.nan}, "survey_rmse"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(options, says):
    with pytest.raises(ValueError, match=says):
        Elevation(**options)


def test_r2_and_percentage_error_are_tallied_on_request():
    reference, prediction = (side.astype(np.float64) for side in surfaces((40, 40)))
    evaluator = Elevation(relative=True)
    extras = evaluator.extras(totals(pair(reference, prediction), evaluator))
    errors = prediction - reference
    r2 = 1 - np.sum(errors**2) / np.sum((reference - reference.mean()) ** 2)
    assert extras["coefficient_of_determination"]["value"] == pytest.approx(r2, rel=1e-9)
    assert extras["mean_absolute_percentage_error"]["value"] == pytest.approx(
        np.mean(np.abs(errors) / np.abs(reference)), rel=1e-9
    )
