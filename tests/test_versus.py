"""Two predictions against one reference: all families, the identity, decisions, refusals; and points of a result."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely

from geoeval import (
    Change,
    Detection,
    Elevation,
    Footprint,
    Pairing,
    Plan,
    Policy,
    Raster,
    Source,
    Unit,
    Validation,
    Vector,
    evaluate,
)
from geoeval.errors import ConfigError, InputError
from geoeval.evidence.canonical import canonical_bytes
from geoeval.gates import parse_gate
from geoeval.keys import CLASS_KEYS, KEYS, better
from geoeval.ledger import Ledger, Row
from geoeval.model import Cell
from geoeval.pairs import common_tables, ledger_differences
from geoeval.points_of import confidence_points
from geoeval.readers.unitset import UnitSet
from geoeval.stats.bootstrap import multiplicities
from geoeval.stats.calibration import ece
from geoeval.stats.selective import risk_coverage, select_threshold
from geoeval.stats.tally import Tally
from geoeval.versus import _refuse_other_units, compare_results, compare_two, versus_json

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
PLAN = Plan(redraws=60, ranked_redraws=20)
UNITS = Pairing(units=str(FIXTURES / "units.csv"), cluster="aoi", by=("region",))
COLUMN = Pairing(cluster="aoi", by=("region",))

CASES = {
    "detection": (Detection(), COLUMN, ".geojson"),
    "footprint": (Footprint(), COLUMN, ".geojson"),
    "vector": (Vector(), COLUMN, ".geojson"),
    "change": (Change(), COLUMN, ".geojson"),
    "raster": (Raster(), UNITS, ""),
    "elevation": (Elevation(), Pairing(units=UNITS.units, cluster="aoi", by=("region",), unit="m"), ""),
    "validation": (Validation(assume_clean=True), COLUMN, ".csv"),
}


@cache
def compared(family, old="prediction", new="prediction", **more):
    evaluator, pairing, ending = CASES[family]
    path = {name: str(FIXTURES / family / f"{name}{ending}") for name in ("reference", "prediction")}
    return compare_two(
        evaluator, path["reference"], path.get(old, old), path.get(new, new), pairing=pairing, plan=PLAN, **more
    )


@pytest.mark.parametrize("family", CASES)
def test_a_prediction_does_not_differ_from_itself(family):
    found = compared(family)
    assert list(found.differences) == list(found.candidate.estimates)
    for name, one in found.differences.items():
        assert one.incumbent == one.candidate == found.candidate[name].value
        if one.candidate is not None:
            assert one.difference == 0.0
            assert (one.low, one.high) in ((0.0, 0.0), (None, None))
        assert one.decision == "inconclusive"
        assert one.reason or one.low is not None
    assert found.decision == "inconclusive"
    assert found.differences[found.metric].differing_clusters == 0


@pytest.mark.parametrize("family", [name for name in CASES if name != "validation"])
def test_the_reference_itself_is_adopted_and_what_it_replaces_is_blocked(family):
    found = compared(family, new="reference")
    lead = found.differences[found.metric]
    assert found.decision == "adopt"
    assert lead.gain_low <= lead.gain <= lead.gain_high
    assert lead.gain_low > 0
    assert {tuple(one.by.items()) for one in found.strata} == {(("region", "north"),), (("region", "south"),)}
    assert found.worst.difference.gain == min(one.difference.gain for one in found.strata)
    back = compared(family, old="reference", new="prediction")
    assert back.decision == "block"
    assert back.differences[found.metric].gain == -lead.gain
    assert back.differences[found.metric].gain_low == pytest.approx(-lead.gain_high)


def test_two_clusters_that_differ_show_nothing():
    found = compared("validation", new="reference")
    one = found.differences["recall"]
    assert (one.differing_clusters, one.decision, one.marks) == (2, "inconclusive", ("few_clusters",))
    assert found.candidate.evaluation.gates


def test_the_same_bytes_every_time():
    one, other = (versus_json(compared.__wrapped__("detection", new="reference")) for _ in range(2))
    assert canonical_bytes(one) == canonical_bytes(other)


@pytest.mark.parametrize("family", CASES)
def test_the_published_shape(family):
    jsonschema = pytest.importorskip("jsonschema")
    from geoeval.evidence.shape import load_schema

    data = versus_json(compared(family, new="reference"))
    jsonschema.Draft202012Validator(load_schema("versus")).validate(data)


def counts(**clusters):
    return Ledger.of(Row("u", Cell(name), Tally.of(tp=tp, fp=fp, fn=fn)) for name, (tp, fp, fn) in clusters.items())


def test_a_cluster_that_one_ledger_lacks_counts_as_nothing():
    """The candidate invents in a cluster of its own: in a redraw that takes it twice, twice."""
    old, new = counts(a=(4, 0, 1), b=(2, 1, 0)), counts(a=(4, 0, 1), b=(2, 1, 0), c=(0, 3, 0))
    (first, second), unlike = common_tables(old, new)
    assert first.clusters == second.clusters == ("a", "b", "c")
    assert unlike == 1
    drawn = np.array([[1, 0, 2]])
    assert (first.totals(drawn)["fp"].tolist(), second.totals(drawn)["fp"].tolist()) == ([0], [6])
    found = ledger_differences(Change(), old, new, PLAN)
    assert (found["fp"].difference, found["fp"].gain) == (3.0, -3.0)
    assert found["recall"].difference == 0.0


def test_intervals_come_from_common_multiplicities():
    """Held against redrawing clusters by hand: recall of both in every redraw, then percentiles of the difference."""
    rng = np.random.default_rng(3)
    names = [f"c{i:02d}" for i in range(30)]
    old = {name: (int(rng.integers(3, 9)), 1, 4) for name in names}
    new = {name: (tp + int(rng.integers(0, 3)), 1, 3) for name, (tp, _, _) in old.items()}
    plan = Plan(redraws=200, seed=5)
    found = ledger_differences(Change(), counts(**old), counts(**new), plan)["recall"]
    drawn = multiplicities(30, 200, 5)
    tables = [np.array([side[name] for name in names]) for side in (old, new)]
    recall = [drawn @ t[:, 0] / (drawn @ (t[:, 0] + t[:, 2])) for t in tables]
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(recall[1] - recall[0], [2.5, 97.5])))
    assert (found.clusters, found.decision) == (30, "adopt")


def test_few_clusters_decide_nothing():
    old = {f"c{i}": (5, 0, 5) for i in range(19)}
    new = dict.fromkeys(old, (9, 0, 1))
    few = ledger_differences(Change(), counts(**old), counts(**new), PLAN)["recall"]
    assert (few.low, few.decision, few.marks) == (pytest.approx(0.4), "inconclusive", ("few_clusters",))
    more = [counts(**side, last=side["c0"]) for side in (old, new)]
    assert ledger_differences(Change(), *more, PLAN)["recall"].decision == "adopt"


def test_without_clusters_there_is_a_difference_and_no_decision():
    evaluator, _, _ = CASES["footprint"]
    path = FIXTURES / "footprint"
    found = compare_two(
        evaluator,
        path / "reference.geojson",
        path / "prediction.geojson",
        path / "reference.geojson",
        pairing=Pairing(cluster="none"),
        plan=PLAN,
    )
    one = found.differences["f1"]
    assert one.difference > 0
    assert (one.low, one.reason, found.decision) == (None, "no_interval", "inconclusive")
    single = ledger_differences(Change(), counts(a=(1, 0, 1)), counts(a=(2, 0, 0)), PLAN)["recall"]
    assert (single.reason, single.decision) == ("single_cluster", "inconclusive")


def test_the_declared_metric_decides():
    found = compared("detection", new="reference", metric="fp")
    assert (found.metric, found.decision, found.differences["fp"].better) == ("fp", "adopt", "less")
    assert {one.difference.better for one in found.strata} == {"less"}


def test_gates_are_held_to_the_candidate():
    found = compared.__wrapped__("footprint", new="reference", policy=Policy((parse_gate("recall>=0.99"),)))
    assert found.incumbent.evaluation.gates == ()
    assert [gate.value for gate in found.candidate.evaluation.gates] == [1.0]


def test_a_metric_that_cannot_decide_is_refused():
    for metric, match in (("recal", "did you mean 'recall'"), ("vertex_ratio_mean", "cannot decide")):
        with pytest.raises(ConfigError, match=match):
            compared("footprint", metric=metric)
    results = compared("vector")
    with pytest.raises(ConfigError, match="does not exist for this input"):
        compare_results(Vector(), results.incumbent, results.candidate, PLAN, metric="quality")


def boxes(n, **columns):
    frame = pd.DataFrame({"xmin": [20 * i for i in range(n)], "ymin": 0, "ymax": 10, **columns})
    return frame.assign(xmax=frame.xmin + 10)


def test_units_that_differ_are_refused_by_name():
    names = [f"im{i}.png" for i in range(4)]
    reference, new = (Source(boxes(4, image=names, **more), crs="pixel") for more in ({}, {"score": 0.5}))
    old = Source(boxes(1, image=["im0.png"], score=0.5), crs="pixel")
    assert compare_two(Detection(), reference, old, new, plan=PLAN).differences["tp"].difference == 3
    foreign = Source(boxes(1, image=["im9.png"], score=0.5), crs="pixel")
    with pytest.raises(InputError, match="im9"):
        compare_two(Detection(), reference, old, foreign, plan=PLAN)


def test_a_unit_of_one_side_only_is_named():
    sides = [UnitSet(tuple(Unit(name, dict) for name in names)) for names in (("im0", "im1"), ("im1",))]
    with pytest.raises(InputError, match="same units; unit 'im0' is one of the incumbent only"):
        _refuse_other_units("detection", *sides)
    with pytest.raises(InputError, match="unit 'im0' is one of the candidate only"):
        _refuse_other_units("raster", *sides[::-1])
    _refuse_other_units("validation", *sides)


def test_clusters_that_differ_are_refused():
    frame = geopandas.read_file(FIXTURES / "footprint" / "prediction.geojson")
    reference = FIXTURES / "footprint" / "reference.geojson"
    with pytest.raises(InputError, match=r"same clusters; the incumbent has \"column 'aoi'\".*grid"):
        compare_two(Footprint(), reference, frame, frame.drop(columns="aoi"), plan=PLAN)


def test_every_figure_knows_which_way_is_better():
    neither = {name for names in KEYS.values() for name in names if better(name) is None}
    assert neither == {"vertex_ratio_mean", "valid_reference", "count", "min", "max", "skewness", "kurtosis"}
    assert better(CLASS_KEYS["raster"][1]) == "more"


@pytest.mark.parametrize("family", ["footprint", "vector", "change"])
def test_points_of_scored_objects(family):
    """Twelve boxes, each found; every third prediction lies elsewhere, and is surest about that."""
    shapes = [shapely.box(50 * i, 0, 50 * i + 10, 10) for i in range(12)]
    moved = [shapely.box(50 * i, 20, 50 * i + 10, 30) if i % 3 == 0 else one for i, one in enumerate(shapes)]
    columns = {"aoi": [f"a{i % 4}" for i in range(12)]}
    reference = geopandas.GeoDataFrame(columns, geometry=shapes, crs="EPSG:32631")
    score = [0.9 if i % 3 == 0 else 0.5 + i / 100 for i in range(12)]
    prediction = geopandas.GeoDataFrame({**columns, "score": score}, geometry=moved, crs="EPSG:32631")
    result = evaluate(CASES[family][0], reference, prediction, plan=PLAN)
    points = confidence_points(result)
    assert len(points) == 12
    assert points.correct.sum() == result["tp"].value == 8
    assert points.error[:4].tolist() == [1] * 4
    assert set(points.cluster) == set(columns["aoi"])
    shuffled = confidence_points(evaluate(CASES[family][0], reference, prediction.iloc[::-1], plan=PLAN))
    for name in ("confidence", "correct", "cluster"):
        assert getattr(points, name).tolist() == getattr(shuffled, name).tolist()
    with pytest.raises(InputError, match="--prediction-score"):
        confidence_points(evaluate(CASES[family][0], reference, prediction.drop(columns="score"), plan=PLAN))


def test_points_of_detections_are_those_of_its_own_figures():
    path = FIXTURES / "detection"
    result = evaluate(Detection(), path / "reference.geojson", path / "prediction.geojson", plan=PLAN)
    points = confidence_points(result)
    areas = risk_coverage(points.confidence, points.error).areas
    assert (areas.aurc, areas.eaurc, areas.augrc) == tuple(result[name].value for name in ("aurc", "eaurc", "augrc"))
    assert ece(points.confidence, points.correct) == result["ece"].value
    own = Detection().coverage_risk(result.ledger.by_cluster().whole())
    assert (points.confidence.tolist(), points.correct.sum()) == (own[0].tolist(), own[1].sum())
    assert select_threshold(points.confidence, points.error, 0.8, split="validation").coverage >= 0.8
    with pytest.raises(InputError, match="found some without"):
        confidence_points(evaluate(Detection(), path / "reference.geojson", path / "reference.geojson", plan=PLAN))


@pytest.mark.parametrize("family", ["raster", "elevation", "validation"])
def test_families_without_confidences_say_so(family):
    with pytest.raises(InputError, match=f"{family}: predictions need a confidence"):
        confidence_points(compared(family).candidate)
