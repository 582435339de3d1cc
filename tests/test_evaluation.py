"""The main job: order, signatures, findings, and the parts that pipelines share."""

from __future__ import annotations

from pathlib import Path

import geopandas as gpd
import numpy as np
import pytest
from shapely import box

from geoeval.errors import ConfigError
from geoeval.estimation import Plan
from geoeval.evaluation import (
    as_source,
    evaluate,
    field_names,
    run,
    sorted_records,
    tally_all,
    units_of,
    with_demanded,
)
from geoeval.evaluators.detection import Detection
from geoeval.evaluators.elevation import Elevation
from geoeval.evaluators.footprint import Footprint
from geoeval.evaluators.validation import Validation
from geoeval.evidence.canonical import canonical_bytes
from geoeval.evidence.shape import evaluation_json
from geoeval.gates import parse_gate
from geoeval.model import Finding, Records
from geoeval.options import Columns, Pairing, Source
from geoeval.summary import Policy, demanded_gates, merged_findings, signature, summarise

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
PLAN = Plan(redraws=40, ranked_redraws=10)


def sides(family, ending=".geojson"):
    return tuple(Source(str(FIXTURES / family / f"{side}{ending}")) for side in ("reference", "prediction"))


def test_evaluate_is_reading_and_running():
    units = units_of(Footprint(), *sides("footprint"), Pairing(by=("region",)))
    one = run(Footprint(), units, fields=("region",), plan=PLAN)
    other = evaluate(Footprint(), *sides("footprint"), pairing=Pairing(by=("region",)), plan=PLAN)
    assert one.evaluation == other.evaluation
    assert len(one.inputs) == 2


def test_everything_follows_from_the_ledger():
    """Summing up again gives the same evaluation, without the data."""
    policy = Policy((parse_gate("recall>=0.5"), parse_gate("f1[region]>=0.5")), {"region": ("north",)}, 10)
    result = evaluate(Detection(), *sides("detection"), pairing=Pairing(by=("region",)), plan=PLAN, policy=policy)
    again = summarise(Detection(), result.ledger, PLAN, policy, fields=("region",), findings=result.evaluation.findings)
    assert canonical_bytes(evaluation_json(again)) == canonical_bytes(evaluation_json(result.evaluation))


def test_subgroups_sum_to_the_whole():
    result = evaluate(Detection(), *sides("detection"), pairing=Pairing(by=("region", "season")), plan=PLAN)
    for field in ("region", "season"):
        parts = [one.estimates for one in result.evaluation.strata if field in one.by]
        for name in ("tp", "fp", "fn"):
            assert sum(part[name].value for part in parts) == result[name].value


def test_classes_sum_to_the_whole():
    result = evaluate(Detection(), *sides("detection"), plan=PLAN)
    for name in ("tp", "fp", "fn"):
        assert sum(one[name].value for one in result.evaluation.per_class.values()) == result[name].value


def test_units_are_tallied_in_the_order_of_their_names():
    pattern = [str(FIXTURES / "elevation" / side / "aoi-0[1-3].tif") for side in ("reference", "prediction")]
    units = units_of(Elevation(unit="m"), *(as_source(text) for text in pattern), Pairing(unit="m"))
    forth, parts = tally_all(Elevation(unit="m"), units.units)
    back, _ = tally_all(Elevation(unit="m"), tuple(reversed(units.units)))
    assert forth.rows == back.rows
    assert len(parts) == 3


def test_progress_is_told():
    pattern = [str(FIXTURES / "raster" / side / "aoi-0[1-3].tif") for side in ("reference", "prediction")]
    from geoeval.evaluators.raster import Raster

    calls = []
    evaluate(Raster(), *pattern, plan=PLAN, progress=lambda *call: calls.append(call))
    assert calls == [(1, 3), (2, 3), (3, 3)]


def test_a_table_of_units_gives_clusters_and_strata():
    from geoeval.evaluators.raster import Raster

    pattern = [str(FIXTURES / "raster" / side / "aoi-*.tif") for side in ("reference", "prediction")]
    pairing = Pairing(cluster="aoi", units=str(FIXTURES / "units.csv"), by=("region",))
    result = evaluate(Raster(), *pattern, pairing=pairing, plan=PLAN)
    assert [one.by for one in result.evaluation.strata] == [{"region": "north"}, {"region": "south"}]
    assert result["accuracy"].interval.clusters == 24


def test_records_are_sorted_by_what_they_are_about():
    table = Records.of(3, unit=["b", "a", "a"], outcome=["tp", "fp", "fn"], prediction_id=["1", "2", ""])
    found = sorted_records(table)
    assert list(found.columns["unit"]) == ["a", "a", "b"]
    assert list(found.columns["outcome"]) == ["fn", "fp", "tp"]
    assert len(sorted_records(Records())) == 0


def test_findings_stand_once_the_gravest_first():
    one = Finding("b-code", "info", ("x",), "says")
    other = Finding("a-code", "critical", ("x",), "says")
    assert merged_findings([one, other, one]) == (other, one)


def test_a_signature_tells_apart_what_is_not_comparable():
    base = signature(Footprint(), Plan())
    assert base == signature(Footprint(), Plan())
    others = [
        signature(Footprint(iou=0.6), Plan()),
        signature(Footprint(), Plan(redraws=10)),
        signature(Footprint(), Plan(seed=1)),
        signature(Footprint(), Plan(confidence=0.9)),
        signature(Footprint(), Plan(clustered=False)),
        signature(Detection(), Plan()),
    ]
    assert len({base, *others}) == len(others) + 1
    assert "iou=0.6" in others[0]
    assert "wilson90" in others[3]


def test_gates_that_a_family_demands_itself():
    own = demanded_gates(Validation(), Policy())
    assert [gate.id for gate in own] == ["no-missed-blocker", "no-missed-critical"]
    assert demanded_gates(Validation(), Policy(own)) == own
    assert demanded_gates(Footprint(), Policy()) == ()


def test_fields_that_a_policy_asks_for_are_read():
    policy = Policy((parse_gate("f1[season]>=0.5", "footprint"),), {"region": ("north",), "area": ("<100",)})
    pairing = Pairing(by=("area:100,500",))
    assert with_demanded(pairing, Footprint(), policy).by == ("area:100,500", "region", "season")
    assert with_demanded(pairing, Footprint(), Policy()) is pairing
    assert with_demanded(pairing, Detection(), Policy((parse_gate("f1[season]>=0.5", "footprint"),))) is pairing
    assert with_demanded(Pairing(), Validation(), Policy((), {"severity": ("blocker",)})).by == ()


def test_names_of_fields():
    assert field_names(("region", "area:1,2", "slope=a/slope.tif:5")) == ("region", "area", "slope")


def test_a_critical_severity_needs_no_column():
    policy = Policy((), {"severity": ("blocker", "critical")})
    result = evaluate(Validation(assume_clean=True), *sides("validation", ".csv"), plan=PLAN, policy=policy)
    assert {one.by["severity"] for one in result.evaluation.strata if one.critical} == {"blocker", "critical"}


@pytest.mark.parametrize("clustered", [True, False])
def test_clustering_is_off_where_either_side_says_so(clustered):
    pairing = Pairing(cluster="aoi" if clustered else "none")
    result = evaluate(Footprint(), *sides("footprint"), pairing=pairing, plan=PLAN)
    assert result.clustered is clustered
    assert ("independent" in result.evaluation.signature) is not clustered
    assert result["recall"].interval.method == ("wilson_clustered" if clustered else "wilson")


def test_no_figure_is_not_finite():
    for family, evaluator in (("detection", Detection()), ("footprint", Footprint())):
        result = evaluate(evaluator, *sides(family), plan=PLAN)
        for one in result.estimates.values():
            assert one.value is None or np.isfinite(one.value)


def test_ids_that_have_nothing_in_common_are_said():
    """Keys of two systems: nothing pairs, and a finding says why."""
    side = gpd.GeoDataFrame({"key": ["a", "b"]}, geometry=[box(0, 0, 9, 9), box(20, 0, 29, 9)], crs=32631)
    keyed = [Source(frame, columns=Columns(id="key")) for frame in (side, side.assign(key=["x", "y"]))]
    result = evaluate(Footprint(assignment="id"), *keyed, pairing=Pairing(cluster="none"))
    assert [one.code for one in result.evaluation.findings] == ["ids-disjoint"]


def test_an_unknown_figure_is_refused_with_the_nearest_spelling():
    side = gpd.GeoDataFrame(geometry=[box(0, 0, 9, 9)], crs=32631)
    result = evaluate(Footprint(), side, side, pairing=Pairing(cluster="none"))
    with pytest.raises(ConfigError, match="did you mean 'recall'"):
        result["recal"]


def test_unmet_gates_say_what_is_wrong():
    side = gpd.GeoDataFrame(geometry=[box(0, 0, 9, 9)], crs=32631)
    policy = Policy(gates=(parse_gate("recall>=0.9@value"), parse_gate("precision>=0.9")))
    result = evaluate(Footprint(), side, side.iloc[:0], pairing=Pairing(cluster="none"), policy=policy)
    assert result.unmet() == [
        "fail: recall ≥ 0.9 on the value, overall: 0 [0, 0.7935], n = 1",
        "not_evaluable (undefined_ratio): precision ≥ 0.9 on the interval, overall: undefined, n = 0",
    ]
