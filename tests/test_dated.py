"""Change events from two dated layers a side."""

from __future__ import annotations

import geopandas as gpd
import pytest
from shapely import box

from geoeval.dated import dated_units
from geoeval.errors import ConfigError
from geoeval.evaluation import evaluate
from geoeval.evaluators.change import Change
from geoeval.evaluators.footprint import Footprint
from geoeval.options import Pairing, Source


def layer(*left, crs=32631, **columns):
    """Squares of 10 m, by their left edges."""
    return gpd.GeoDataFrame(columns, geometry=[box(x, 0, x + 10, 10) for x in left], crs=crs)


def test_what_differs_between_the_dates_is_matched_by_kind():
    """Both see 0 go; the reference sees 60 come, the prediction 90: a hit, a miss and an invention."""
    reference = Source(layer(30, 60), before=layer(0, 30))
    prediction = Source(layer(30, 90), before=layer(0, 30))
    found = evaluate(Change(), reference, prediction, pairing=Pairing(cluster="none"))
    assert [found[name].value for name in ("tp", "fp", "fn")] == [1, 1, 1]
    assert found.evaluation.per_class["removed"]["f1"].value == 1.0
    assert found.evaluation.per_class["added"]["f1"].value == 0.0
    assert found.notes["reference events"] == "1 added, 1 removed"


def test_clusters_and_strata_come_from_the_layers():
    reference = Source(layer(30, 60, aoi=["a", "b"]), before=layer(0, 30, aoi=["a", "a"]))
    units = dated_units(reference, reference, Pairing(cluster="aoi"))
    assert sorted(units.units[0].load().reference.cluster) == ["a", "b"]


def test_nothing_changed_is_undefined():
    same = Source(layer(0, 30), before=layer(0, 30))
    found = evaluate(Change(), same, same, pairing=Pairing(cluster="none"))
    assert found["f1"].value is None


def test_both_sides_need_both_dates():
    with pytest.raises(ConfigError, match="--prediction-before"):
        evaluate(Change(), Source(layer(0), before=layer(0)), Source(layer(0)))


def test_other_families_take_one_layer_a_side():
    with pytest.raises(ConfigError, match="footprint takes one layer"):
        evaluate(Footprint(), Source(layer(0), before=layer(0)), Source(layer(0)))
