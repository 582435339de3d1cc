"""Change: kinds, dates, the worst kind, events from two layers, and dated barns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import shapely

from geoeval.errors import ConfigError, InputError
from geoeval.evaluators.change import Change
from geoeval.keys import KEYS
from geoeval.layers import ObjectPair, Objects
from geoeval.ledger import Ledger, tally_unit
from geoeval.model import Proportion, Unit
from geoeval.objects.events import events_from_layers


def column(values):
    out = np.empty(len(values), dtype=object)
    out[:] = list(values)
    return out


def events(shapes, *, kind=None, date=None, ids=None, score=None, cluster=None, date_unit="year") -> Objects:
    n = len(shapes)
    fields = {}
    if kind is not None:
        fields["kind"] = column(kind)
    if date is not None:
        fields["date"] = np.array(date)
        fields["date_unit"] = np.full(n, date_unit, dtype=object)
    return Objects(
        geometry=column(shapes),
        id=column(ids if ids is not None else [f"{i:04d}" for i in range(n)]),
        row=np.arange(n),
        score=None if score is None else np.array(score, dtype=float),
        cluster=column(cluster if cluster is not None else ["c"] * n),
        fields=fields,
        read=n,
        source="events",
    )


def box(x, width=10.0):
    return shapely.box(x, 0, x + width, 10)


def unit(reference, prediction, **more) -> Unit[ObjectPair]:
    pair = ObjectPair(reference, prediction, **more)
    return Unit("u", lambda: pair)


def quantities(evaluator, *units, where=None):
    ledger = Ledger.of(row for one in units for row in tally_unit(evaluator, one)[0])
    return evaluator.quantities((ledger if where is None else ledger.where(where)).by_cluster().whole())


def figures(evaluator, *units, where=None):
    out = {}
    for name, quantity in quantities(evaluator, *units, where=where).items():
        value = np.asarray(quantity.value).reshape(-1)
        assert value.shape == (1,), name
        out[name] = None if np.isnan(value[0]) else float(value[0])
    return out


def test_kinds_must_agree_and_the_worst_one_is_not_masked():
    """Nine additions found; the one removal is taken for an addition."""
    shapes = [box(20 * i) for i in range(10)]
    reference = events(shapes, kind=["added"] * 9 + ["removed"])
    prediction = events(shapes, kind=["added"] * 10)
    found = figures(Change(), unit(reference, prediction))
    assert (found["tp"], found["fp"], found["fn"], found["f1"]) == (9, 1, 1, 0.9)
    assert found["worst_kind_f1"] == 0.0
    added = figures(Change(), unit(reference, prediction), where=lambda row: row.cell.label == "added")
    assert (added["tp"], added["fp"], added["fn"]) == (9, 1, 0)
    columns = Change().tally(unit(reference, prediction)).records.columns
    assert sorted(columns["error_type"][columns["outcome"] != "tp"]) == ["class", "class"]


def test_a_kind_that_only_predictions_have_is_listed_and_counts_as_f1_of_0():
    scene = unit(events([box(0)], kind=["added"]), events([box(0), box(50)], kind=["added", "modified"]))
    evaluator = Change()
    assert figures(evaluator, scene)["worst_kind_f1"] == 0.0
    assert figures(evaluator, scene, where=lambda row: row.cell.label == "modified")["f1"] == 0.0
    extras = evaluator.extras(Ledger.of(tally_unit(evaluator, scene)[0]).by_cluster().whole())
    assert extras["excluded_classes"] == ({"label": "modified", "predicted": 1},)


def test_date_errors_are_prediction_minus_reference():
    """Errors of 0, 0, +1 and −3 years."""
    shapes = [box(20 * i) for i in range(4)]
    scene = unit(events(shapes, date=[2011, 2012, 2013, 2014]), events(shapes, date=[2011, 2012, 2014, 2011]))
    found = quantities(Change(), scene)
    assert (found["date_bias"].value[0], found["date_mae"].value[0]) == (-0.5, 1.0)
    assert (found["date_bias"].unit, isinstance(found["date_exact"], Proportion)) == ("year", True)
    assert (int(found["date_exact"].k[0]), int(found["date_exact"].n[0])) == (2, 4)


def test_a_tolerance_in_time_is_inclusive_and_an_unknown_date_meets_none():
    shapes = [box(20 * i) for i in range(3)]
    scene = unit(events(shapes, date=[2011.0, 2012.0, np.nan]), events(shapes, date=[2012.0, 2014.0, 2013.0]))
    for assignment in ("optimal", "id"):
        assert figures(Change(assignment=assignment), scene)["tp"] == 3
        assert figures(Change(assignment=assignment, date_tolerance=1), scene)["tp"] == 1


def test_of_two_events_at_one_place_the_one_in_time_is_taken():
    scene = unit(
        events([box(0), box(0)], date=[2010, 2020]), events([box(0), box(1)], date=[2020, 2010], ids=["a", "b"])
    )
    # By overlap alone the two at 0 pair, whatever their dates.
    assert figures(Change(), scene)["date_exact"] is not None
    assert figures(Change(date_tolerance=0), scene)["tp"] == 2
    assert figures(Change(date_tolerance=0), scene)["date_exact"] == 1.0


def test_calendar_dates_are_compared_in_days():
    days = [np.array(one, dtype="datetime64[D]") for one in (["2020-01-01"], ["2020-02-01"])]
    found = quantities(Change(), unit(events([box(0)], date=days[0]), events([box(0)], date=days[1])))
    assert (found["date_bias"].value[0], found["date_bias"].unit) == (31.0, "d")
    with pytest.raises(InputError, match="expected dates of one kind"):
        Change().tally(unit(events([box(0)], date=days[0]), events([box(0)], date=[2020])))


def test_joined_records_need_no_geometry():
    scene = unit(
        events([None, None], ids=["1", "2"], date=[2011, 2012]),
        events([box(0), box(9)], ids=["1", "3"], date=[2012, 2012]),
    )
    found = figures(Change(assignment="id"), scene)
    assert [found[name] for name in ("tp", "fp", "fn", "date_bias", "date_exact")] == [1, 1, 1, 1.0, 0.0]
    assert np.isnan(Change(assignment="id").tally(scene).records.columns["similarity"]).all()


def test_without_dates_and_kinds_only_places_are_compared():
    scene = unit(events([box(0), box(50)]), events([box(0), box(90)]))
    found = quantities(Change(), scene)
    assert (found["f1"].value[0], found["worst_kind_f1"].value[0]) == (0.5, 0.5)
    assert (found["date_bias"].reason, found["date_exact"].reason) == ("not_applicable", "not_applicable")
    assert {cell.label for cell in Change().tally(scene).cells} == {""}


def test_a_series_without_events_is_undefined_and_inventions_in_it_count():
    assert Change().tally(unit(events([]), events([]))).cells == {}
    found = figures(Change(), unit(events([]), events([box(0)], kind=["added"])))
    assert (found["precision"], found["f1"], found["recall"], found["worst_kind_f1"]) == (0.0, 0.0, None, 0.0)


def test_reference_without_prediction():
    found = figures(Change(), unit(events([box(0)], kind=["added"]), events([])))
    assert (found["recall"], found["f1"], found["worst_kind_f1"], found["precision"]) == (0.0, 0.0, 0.0, None)


def test_events_as_their_own_prediction_score_one():
    side = events(
        [box(20 * i) for i in range(30)],
        kind=["added", "removed", "modified"] * 10,
        date=[2010 + i % 7 for i in range(30)],
        cluster=[f"c{i % 4}" for i in range(30)],
    )
    found = figures(Change(date_tolerance=0), unit(side, side))
    for name in ("precision", "recall", "f1", "worst_kind_f1", "date_exact"):
        assert found[name] == 1.0, name
    assert (found["date_bias"], found["date_mae"]) == (0.0, 0.0)
    assert list(found) == list(KEYS["change"])


@pytest.mark.parametrize("seed", range(3))
def test_shuffled_events_change_no_tally(seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 300, size=60).astype(float)

    def side(shift, n):
        return events(
            [box(v + s) for v, s in zip(x[:n], shift, strict=False)],
            kind=rng.choice(["added", "removed"], size=n).tolist(),
            date=rng.integers(2010, 2014, size=n).astype(float),
            cluster=[f"c{int(v // 60)}" for v in x[:n]],
        )

    pair = ObjectPair(side(np.zeros(60), 60), side(rng.integers(-4, 5, size=50), 50))
    mixed = ObjectPair(pair.reference.take(rng.permutation(60)), pair.prediction.take(rng.permutation(50)))
    for evaluator in (Change(), Change(date_tolerance=1), Change(assignment="id")):
        a, b = (evaluator.tally(Unit("u", lambda one=one: one)) for one in (pair, mixed))
        assert a.cells == b.cells


def test_redraws_have_one_entry_a_total():
    scene = unit(
        events([box(0), box(50)], kind=["added", "removed"], cluster=["a", "b"]),
        events([box(0)], kind=["added"], cluster=["a"]),
    )
    table = Ledger.of(tally_unit(Change(), scene)[0]).by_cluster()
    found = Change().quantities(table.totals(np.array([[1, 1], [2, 0], [0, 2], [0, 0]])))
    assert found["worst_kind_f1"].value[:3].tolist() == [0.0, 1.0, 0.0]
    assert np.isnan(found["worst_kind_f1"].value[3])


def test_options_and_missing_dates_are_refused():
    with pytest.raises(ConfigError, match="date_tolerance must be at least 0"):
        Change(date_tolerance=-1)
    with pytest.raises(InputError, match="needs dates on both sides"):
        Change(date_tolerance=1).tally(unit(events([box(0)]), events([box(0)], date=[2020])))


def test_events_are_derived_from_two_layers():
    """House a stays, b is enlarged, c is gone, d is new."""
    before = events([box(0), box(50), box(100)], ids=["a", "b", "c"])
    after = events([box(0), box(50, 14.0), box(200)], ids=["a", "b", "d"])
    assert sorted(events_from_layers(before, after).id) == ["added:d", "removed:c"]
    more = events_from_layers(before, after, unchanged_iou=0.9, unchanged=True)
    assert sorted(more.id) == ["added:d", "modified:b", "removed:c", "unchanged:a"]
    assert figures(Change(), unit(more, more))["f1"] == 1.0
    assert len(events_from_layers(before, before)) == 0


@pytest.mark.shared
def test_first_years_of_barns(shared_data: Path):
    """1000 dated labels without geometry against 6013 predictions joined by row: 938 years are right."""
    from geoeval.options import Columns, Pairing, Source
    from geoeval.readers.units import object_units

    folder = shared_data / "barn_construction_dates"
    units = object_units(
        Source(str(folder / "poultry_barn_labels.csv"), columns=Columns(id="idx", date="year")),
        Source(str(folder / "poultry_barns-64-200_predictions.geojson"), columns=Columns(id="row", date="first_year")),
        Pairing(drop_unmatched_ids=True),
        family="change",
    ).units
    found = quantities(Change(assignment="id"), *units)
    assert (int(found["date_exact"].k[0]), int(found["date_exact"].n[0])) == (938, 1000)
    assert found["date_mae"].value[0] == pytest.approx(0.151, abs=1e-9)
    assert found["date_bias"].value[0] == pytest.approx(-0.093, abs=1e-9)
    assert (found["tp"].value[0], found["fp"].value[0], found["fn"].value[0]) == (1000, 0, 0)
