"""Counts of real layers as their publishers state them."""

from __future__ import annotations

import pytest
import shapely

from geoeval.errors import CRSMissing, InputError
from geoeval.options import Columns, Pairing, Source
from geoeval.readers.units import object_units

pytestmark = pytest.mark.shared


def test_barns_of_two_systems(shared_data):
    folder = shared_data / "poultry_delmarva"
    prediction = Source(folder / "predictions_manet.geojson")
    found = object_units(Source(folder / "reference_test_barns.geojson"), prediction, family="detection")
    pair = found.units[0].load()
    assert (len(pair.reference), len(pair.prediction)) == (733, 2111)
    assert found.notes["prediction score column"] == "'p' (guessed)"
    assert found.notes["crs"] == "EPSG:26918, measured in EPSG:26918"
    assert [finding.code for finding in found.findings] == ["crs-differs"]


def test_tree_crowns_in_pixels(shared_data):
    folder = shared_data / "deepforest_neon"
    reference = Source(folder / "OSBS_029_truth.csv", crs="pixel")
    where = "plot_name='OSBS_029' and method='Weinstein_unpublished'"
    prediction = Source(folder / "predictions_5_methods.csv", crs="pixel", where=where)
    (unit,) = object_units(reference, prediction, family="detection").units
    assert (unit.id, len(unit.load().reference), len(unit.load().prediction)) == ("OSBS_029", 61, 74)
    scoreless = Source(prediction.path, crs="pixel", where="plot_name='OSBS_029' and method='Weinstein2019'")
    assert object_units(reference, scoreless, family="detection").units[0].load().prediction.score is None
    with pytest.raises(CRSMissing, match="pixel"):
        object_units(Source(reference.path), prediction, family="detection")
    with pytest.raises(InputError, match="does not know: 2018_SJER"):
        object_units(reference, Source(prediction.path, crs="pixel"), family="detection")


def test_two_annotators(shared_data):
    folder = shared_data / "ramp_two_annotators"
    sources = Source(folder / "matt-labels.geojson"), Source(folder / "seamus-labels.geojson")
    found = object_units(*sources, family="footprint")
    pair = found.units[0].load()
    assert (len(pair.reference), len(pair.prediction)) == (169, 162)
    assert found.notes["crs"] == "EPSG:4326, measured in EPSG:32646"


def test_roads_of_seven_chips_by_folder(shared_data):
    """Lengths in UTM zone 11, as computed by another program."""
    folder = shared_data / "roads_vegas_apls"
    found = object_units(Source(folder / "spacenetroads"), Source(folder / "osm"), family="vector")
    lengths = [
        tuple(round(float(shapely.length(side.geometry).sum()), 1) for side in (pair.reference, pair.prediction))
        for pair in (unit.load() for unit in found.units)
    ]
    assert lengths == [
        (319.5, 309.4),
        (3307.9, 2506.2),
        (2595.9, 2766.3),
        (2403.6, 1962.9),
        (2333.9, 1498.5),
        (3433.4, 2226.0),
        (3269.6, 2032.0),
    ]


def test_construction_years_join_by_id(shared_data):
    folder = shared_data / "barn_construction_dates"
    found = object_units(
        Source(folder / "poultry_barn_labels.csv", columns=Columns(id="idx")),
        Source(folder / "poultry_barns-64-200_predictions.geojson", columns=Columns(id="row")),
        Pairing(drop_unmatched_ids=True),
        family="change",
    )
    pair = found.units[0].load()
    years = dict(zip(pair.prediction.id, pair.prediction.fields["date"], strict=True))
    same = [years[key] == year for key, year in zip(pair.reference.id, pair.reference.fields["date"], strict=True)]
    assert (len(pair.prediction), sum(same)) == (1000, 938)


def test_one_invalid_building(shared_data):
    source = Source(shared_data / "fair_osm_buildings" / "labels.geojson")
    found = object_units(source, source, family="footprint")
    pair = found.units[0].load()
    assert dict(pair.reference.defects) == {"self-intersection": 1}
    assert len(pair.reference) == 206
    assert "feature 107" in found.findings[0].where[0]
