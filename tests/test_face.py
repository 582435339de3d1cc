"""The package's face: names, data frames in, one call, results that read well in a failing assertion."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError
from pathlib import Path

import geopandas
import pandas as pd
import pytest
import shapely

import geoeval
from geoeval import (
    Columns,
    Detection,
    Footprint,
    Gate,
    GeoevalError,
    Pairing,
    Plan,
    Policy,
    Result,
    Source,
    Validation,
    Vector,
    evaluate,
    parse_gate,
)
from geoeval.errors import ConfigError, CRSMissing, InputError
from geoeval.evidence.canonical import canonical_bytes
from geoeval.evidence.shape import evaluation_json

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
PLAN = Plan(redraws=40, ranked_redraws=10)


def houses(*boxes, **columns):
    frame = geopandas.GeoDataFrame(columns, geometry=[shapely.box(*box) for box in boxes], crs="EPSG:32631")
    return frame.assign(aoi=[f"a{i % 2}" for i in range(len(frame))])


REFERENCE = houses((0, 0, 10, 10), (20, 0, 30, 10), (40, 0, 50, 10), (60, 0, 70, 10))
PREDICTION = houses((0, 0, 10, 10), (21, 0, 31, 10), (100, 0, 110, 10))


def as_bytes(result):
    return canonical_bytes(evaluation_json(result.evaluation))


def test_every_name_is_there_and_has_a_docstring():
    for name in geoeval.__all__:
        found = getattr(geoeval, name)
        assert name == "__version__" or found.__doc__, name
    assert dir(geoeval) == sorted(geoeval.__all__)
    with pytest.raises(AttributeError, match="'evalute'"):
        geoeval.evalute  # noqa: B018


def test_importing_is_light():
    """No heavy library is loaded, no file read, before something is asked for."""
    heavy = ("geopandas", "pandas", "rasterio", "pyogrio", "scipy", "numba", "matplotlib", "pyarrow", "pydantic")
    code = f"import sys, geoeval; from geoeval import Plan; sys.exit([n for n in {heavy!r} if n in sys.modules] or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_two_frames():
    result = evaluate(Footprint(), REFERENCE, PREDICTION, plan=PLAN)
    assert isinstance(result, Result)
    assert [result[name].value for name in ("tp", "fp", "fn")] == [2, 1, 2]
    assert (result["recall"].numerator, result["recall"].denominator) == (2, 4)
    assert result["f1"].value == pytest.approx(4 / 7)
    assert result["f1"] is result.estimates["f1"]
    assert result["iou_mean"].value == pytest.approx((1 + 9 / 11) / 2, abs=1e-9)
    assert result.inputs == ()
    with pytest.raises(KeyError, match="f2"):
        result["f2"]


def test_what_was_given_is_left_as_it_was():
    before = REFERENCE.copy(), PREDICTION.copy()
    evaluate(Footprint(), REFERENCE, PREDICTION, plan=PLAN)
    pd.testing.assert_frame_equal(REFERENCE, before[0])
    pd.testing.assert_frame_equal(PREDICTION, before[1])


def test_an_index_means_nothing():
    """Frames after filtering and joining have any index; row order does not count either."""
    odd = PREDICTION.set_index(pd.Index([7, 7, -1])).iloc[::-1]
    one, other = (evaluate(Footprint(), REFERENCE, side, plan=PLAN) for side in (PREDICTION, odd))
    assert as_bytes(one) == as_bytes(other)


def test_a_frame_in_degrees_is_measured_in_metres():
    """Two houses of 100 m² each are that also from degrees."""
    there = PREDICTION.to_crs("EPSG:4326")
    found = evaluate(Footprint(), REFERENCE, there, plan=PLAN)
    assert [found[name].value for name in ("tp", "fp", "fn")] == [2, 1, 2]
    assert found["area_error_abs_mean"].value == pytest.approx(0.0, abs=1e-6)
    both = evaluate(Footprint(), REFERENCE.to_crs("EPSG:4326"), there, plan=PLAN)
    assert both["centroid_distance_mean"].unit == "m"
    assert both["centroid_distance_mean"].value == pytest.approx(0.5, abs=0.01)


def test_results_read_well_where_an_assertion_fails():
    result = evaluate(Footprint(), REFERENCE, PREDICTION, plan=PLAN)
    with pytest.raises(AssertionError) as failed:
        assert result["recall"].value >= 0.9, result
    lines = str(failed.value).splitlines()
    assert lines[0].startswith("footprint/1|")
    shown = str(result)
    assert "recall 0.5 [" in shown
    assert "n=4" in shown
    assert "hausdorff_mean" in shown
    assert "nan" not in shown.lower()


def test_undefined_figures_say_why():
    result = evaluate(Footprint(), REFERENCE, PREDICTION[:0], plan=PLAN)
    assert result["precision"].value is None
    assert result["precision"].reason == "undefined_ratio"
    assert "precision undefined n=0 (undefined_ratio)" in str(result)


def test_a_policy_decides():
    gates = (parse_gate("recall>=0.4@value"), Gate("clean", "precision", "at_least", 0.9, on="value"))
    result = evaluate(Footprint(), REFERENCE, PREDICTION, plan=PLAN, policy=Policy(gates))
    assert [(gate.id, gate.status) for gate in result.evaluation.gates] == [
        ("recall>=0.4@value", "pass"),
        ("clean", "fail"),
    ]
    assert {gate.family for gate in result.evaluation.gates} == {"footprint"}


def test_a_gate_of_another_family_is_left_out():
    """Gates of several families may stand in one policy."""
    policy = Policy((parse_gate("rmse<=1", "elevation"),))
    assert evaluate(Footprint(), REFERENCE, PREDICTION, plan=PLAN, policy=policy).evaluation.gates == ()


def test_a_critical_subgroup_is_looked_for_without_being_listed():
    policy = Policy((parse_gate("recall>=0@value"),), {"aoi": ("a0", "a7")})
    result = evaluate(Footprint(), REFERENCE, PREDICTION, plan=PLAN, policy=policy)
    found = {gate.scope: gate.status for gate in result.evaluation.gates}
    assert found["per_subgroup:aoi=a0"] == "pass"
    assert found["per_subgroup:aoi=a7"] == "not_evaluable"


@pytest.mark.parametrize("family", ["footprint", "raster"])
def test_any_executor_gives_the_same(family):
    if family == "raster":
        sides = tuple(str(FIXTURES / family / side / "aoi-0[1-4].tif") for side in ("reference", "prediction"))
        evaluator = geoeval.Raster()
    else:
        sides = REFERENCE.assign(image=["x", "x", "y", "z"]), PREDICTION.assign(image=["x", "x", "z"])
        evaluator = Footprint()
    here = evaluate(evaluator, *sides, plan=PLAN)
    calls = []
    with ThreadPoolExecutor(3) as pool:
        there = evaluate(
            evaluator, *sides, plan=PLAN, executor=pool, progress=lambda done, total: calls.append((done, total))
        )
    assert as_bytes(here) == as_bytes(there)
    assert here.ledger.rows == there.ledger.rows
    assert calls[-1][0] == calls[-1][1] == len(calls)


def test_an_executor_is_not_shut_down():
    with ThreadPoolExecutor(1) as pool:
        evaluate(Footprint(), REFERENCE, PREDICTION, plan=PLAN, executor=pool)
        assert pool.submit(len, "abc").result() == 3


def test_paths_strings_and_sources_are_one():
    paths = [FIXTURES / "detection" / f"{side}.geojson" for side in ("reference", "prediction")]
    kinds = (str, Path, Source)
    found = [as_bytes(evaluate(Detection(), *map(kind, paths), plan=PLAN)) for kind in kinds]
    assert found[1:] == found[:1] * 2
    frames = evaluate(Detection(), *map(geopandas.read_file, paths), plan=PLAN)
    assert {name: one.value for name, one in frames.estimates.items()} == {
        name: one.value for name, one in evaluate(Detection(), *paths, plan=PLAN).estimates.items()
    }


def test_columns_are_named_by_a_source():
    prediction = Source(PREDICTION.assign(p=[0.9, 0.8, 0.1]), columns=Columns(score="p"))
    found = evaluate(Detection(score_min=0.5), REFERENCE, prediction, plan=PLAN)
    assert [found[name].value for name in ("tp", "fp", "fn")] == [2, 0, 2]


def test_tables_of_findings():
    known = pd.DataFrame({"dataset": ["a", "a"], "feature": ["1", "2"], "code": ["V05", "V14"]})
    known["severity"] = ["critical", "major"]
    result = evaluate(Validation(assume_clean=True), known, known[:1], plan=PLAN)
    assert [gate.status for gate in result.evaluation.gates] == ["not_evaluable", "pass"]
    assert result["recall"].value == 0.5


def test_independence_may_be_declared():
    result = evaluate(Footprint(), REFERENCE, PREDICTION, plan=Plan(clustered=False))
    assert result["recall"].interval.method == "wilson"
    assert result["f1"].interval is None
    assert (result["f1"].reason, result.clustered) == ("no_interval", False)
    same = evaluate(Footprint(), REFERENCE, PREDICTION, pairing=Pairing(cluster="none"))
    assert same["recall"] == result["recall"]


def test_evaluators_are_values():
    assert Footprint(iou=0.7) == Footprint(iou=0.7) != Footprint()
    assert len({Vector(), Vector(), Vector(buffer_m=2.0)}) == 2
    with pytest.raises(FrozenInstanceError):
        Footprint().iou = 0.9
    with pytest.raises(ConfigError, match="is it a percentage"):
        Footprint(iou=50)


@pytest.mark.parametrize(
    ("reference", "error"),
    [
        ("none.gpkg", InputError),
        (REFERENCE.set_crs(None, allow_override=True), CRSMissing),
        (REFERENCE.drop(columns="geometry"), InputError),
        (42, GeoevalError),
        (None, GeoevalError),
    ],
    ids=["no file", "no system", "no geometry", "a number", "nothing"],
)
def test_what_cannot_be_used_is_refused(reference, error):
    with pytest.raises(error) as refused:
        evaluate(Footprint(), reference, PREDICTION)
    assert isinstance(refused.value, GeoevalError)
    assert str(refused.value)
