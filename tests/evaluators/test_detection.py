"""Detection: hand-counted scenes, the edge table, laws, and real detections."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import shapely

from geoeval.errors import ConfigError, InputError
from geoeval.evaluators.detection import Detection
from geoeval.keys import KEYS
from geoeval.layers import ObjectPair, Objects
from geoeval.ledger import Ledger, Tallied, tally_unit
from geoeval.model import UNKNOWN, Cell, Unit
from geoeval.stats.tally import total


def column(values):
    out = np.empty(len(values), dtype=object)
    out[:] = list(values)
    return out


def objects(
    shapes, *, label=None, score=None, cluster=None, ids=None, ignore=None, strata=None, fields=None
) -> Objects:
    """Features in the order given; ids say where they stand."""
    n = len(shapes)
    return Objects(
        geometry=column(shapes),
        id=column(ids if ids is not None else [f"{i:04d}" for i in range(n)]),
        row=np.arange(n),
        label=None if label is None else column(label),
        score=None if score is None else np.array(score, dtype=float),
        ignore=None if ignore is None else np.array(ignore, dtype=bool),
        cluster=column(cluster if cluster is not None else ["c"] * n),
        strata={name: column(values) for name, values in (strata or {}).items()},
        fields={name: np.array(values) for name, values in (fields or {}).items()},
        read=n,
        source="layer",
    )


def box(x, width=10.0, y=0.0):
    return shapely.box(x, y, x + width, y + 10)


def unit(reference, prediction, **more) -> Unit[ObjectPair]:
    pair = ObjectPair(reference, prediction, **more)
    return Unit("u", lambda: pair)


def figures(evaluator, *units):
    """Values of all figures as printed: None where undefined."""
    rows = [row for one in units for row in tally_unit(evaluator, one)[0]]
    table = Ledger.of(rows).by_cluster()
    totals = table.whole()
    found = {**evaluator.quantities(totals), **evaluator.ranked(totals)}
    out = {}
    for name, quantity in found.items():
        value = np.asarray(quantity.value).reshape(-1)
        assert value.shape == (1,), name
        out[name] = None if np.isnan(value[0]) else float(value[0])
    return out


def reasons(evaluator, *units):
    rows = [row for one in units for row in tally_unit(evaluator, one)[0]]
    totals = Ledger.of(rows).by_cluster().whole()
    return {name: q.reason for name, q in {**evaluator.quantities(totals), **evaluator.ranked(totals)}.items()}


def whole(tallied: Tallied):
    return total(tallied.cells.values())


def random_pair(seed, *, n=60, labels="ab", ties=True) -> ObjectPair:
    rng = np.random.default_rng(seed)
    corner = rng.integers(0, 120, size=(n, 2))
    shaken = np.concatenate([corner + rng.integers(-3, 4, size=corner.shape), rng.integers(0, 120, size=(n // 3, 2))])
    score = rng.integers(1, 9, size=len(shaken)) / 8 if ties else rng.random(len(shaken))
    return ObjectPair(
        objects(
            [shapely.box(x, y, x + 9, y + 12) for x, y in corner],
            label=rng.choice(list(labels), size=n).tolist(),
            cluster=[f"c{x // 40}" for x, _ in corner],
            ignore=rng.random(n) < 0.1,
            strata={"size": ["small" if y < 60 else "large" for _, y in corner]},
        ),
        objects(
            [shapely.box(x, y, x + 9, y + 12) for x, y in shaken],
            label=rng.choice(list(labels), size=len(shaken)).tolist(),
            score=score,
            cluster=[f"c{x // 40}" for x, _ in shaken],
        ),
    )


def test_one_hit_one_invention_one_miss():
    """References at 0 and 100; predictions on the first (IoU 0.8) and in the empty place at 50."""
    found = figures(Detection(), unit(objects([box(0), box(100)]), objects([box(0, 8.0), box(50)], score=[0.9, 0.4])))
    assert [found[name] for name in ("tp", "fp", "fn", "precision", "recall", "f1")] == [1, 1, 1, 0.5, 0.5, 0.5]
    assert (found["iou_mean"], found["iou_median"]) == (0.8, 0.8)
    # Recall reaches 0.5 at precision 1: 51 of 101 recall points.
    assert found["ap50"] == pytest.approx(51 / 101)
    # The hit holds at the seven thresholds up to 0.80.
    assert found["ap50_95"] == pytest.approx(51 / 101 * 0.7)


def test_calibration_and_risk_read_the_hits_at_one_half():
    """Scores 0.9 (hit) and 0.4 (invention): gaps of 0.1 and 0.4 in two bins of one detection each."""
    found = figures(Detection(), unit(objects([box(0), box(100)]), objects([box(0, 8.0), box(50)], score=[0.9, 0.4])))
    assert found["ece"] == pytest.approx((0.1 + 0.4) / 2)
    assert found["brier"] == pytest.approx((0.01 + 0.16) / 2)
    # The error comes last: risks 0 and 1/2, errors so far 0 and 1.
    assert (found["aurc"], found["eaurc"], found["augrc"]) == (0.25, 0.0, 0.25)


def test_the_operating_point_counts_abstentions_and_leaves_ap_alone():
    scene = unit(objects([box(0), box(100)]), objects([box(0), box(100)], score=[0.9, 0.2]))
    everything, strict = figures(Detection(), scene), figures(Detection(score_min=0.5), scene)
    assert (everything["tp"], strict["tp"], strict["fn"], strict["fp"]) == (2, 1, 1, 0)
    assert everything["ap50"] == strict["ap50"] == 1.0
    tallied = Detection(score_min=0.5).tally(scene)
    assert whole(tallied).sums["below_score_min"] == 1


def test_duplicates_of_one_reference_are_one_hit_and_duplicates():
    tallied = Detection().tally(unit(objects([box(0)]), objects([box(0), box(0, 9.0), box(1)], score=[0.9, 0.8, 0.7])))
    columns = tallied.records.columns
    assert sorted(zip(columns["outcome"], columns["error_type"], strict=True)) == [
        ("fp", "duplicate"),
        ("fp", "duplicate"),
        ("tp", ""),
    ]


def test_error_types_of_tide():
    """A shifted find of 0, a find of 100 under another label, a find of nothing; 200 is not found at all."""
    scene = unit(
        objects([box(0), box(100), box(200)], label=["a", "a", "a"]),
        objects([box(6), box(100), box(300)], label=["a", "b", "a"], score=[0.9, 0.8, 0.7]),
    )
    columns = Detection().tally(scene).records.columns
    kinds = {
        (o, r, p): e
        for o, r, p, e in zip(
            columns["outcome"], columns["reference_id"], columns["prediction_id"], columns["error_type"], strict=True
        )
    }
    assert kinds["fp", "", "0000"] == "localisation"
    assert kinds["fp", "", "0001"] == "class"
    assert kinds["fp", "", "0002"] == "background"
    assert kinds["fn", "0002", ""] == "missed"


def test_labels_that_differ_do_not_pair_but_meet_in_the_confusion_matrix():
    scene = unit(
        objects([box(0), box(100)], label=["car", "ship"]),
        objects([box(0), box(100), box(200)], label=["car", "car", "kite"], score=[0.9, 0.8, 0.7]),
    )
    evaluator = Detection()
    rows, _ = tally_unit(evaluator, scene)
    extras = evaluator.extras(Ledger.of(rows).by_cluster().whole())
    assert figures(evaluator, scene)["tp"] == 1
    assert extras["confusion"]["labels"] == ["car", "kite", "ship", "background"]
    # Rows are predictions: car on car and on ship; kite on background; nothing missed when labels are ignored.
    assert extras["confusion"]["matrix"] == [[1, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert extras["excluded_classes"] == ({"label": "kite", "predicted": 1},)
    assert figures(Detection(class_aware=False), scene)["tp"] == 2


def test_ap_is_the_mean_over_classes_with_references():
    """Class a is found (AP 1), class b is missed (AP 0), class z is only predicted and does not count."""
    scene = unit(
        objects([box(0), box(100)], label=["a", "b"]), objects([box(0), box(300)], label=["a", "z"], score=[0.9, 0.9])
    )
    assert figures(Detection(), scene)["ap50"] == 0.5
    rows, _ = tally_unit(Detection(), scene)
    alone = Ledger.of(rows).where(lambda row: row.cell.label == "z").by_cluster().whole()
    found = {**Detection().quantities(alone), **Detection().ranked(alone)}
    assert (found["f1"].value[0], found["precision"].value[0]) == (0.0, 0.0)
    assert np.isnan(found["ap50"].value[0])
    assert np.isnan(found["recall"].value[0])


@pytest.mark.parametrize("scores", [None, []])
def test_reference_without_prediction(scores):
    found = figures(Detection(), unit(objects([box(0)]), objects([], score=scores)))
    assert (found["recall"], found["f1"], found["ap50"], found["ap50_95"]) == (0.0, 0.0, 0.0, 0.0)
    assert (found["precision"], found["ece"], found["iou_mean"]) == (None, None, None)


def test_prediction_without_reference():
    found = figures(Detection(), unit(objects([]), objects([box(0)], score=[0.5])))
    assert (found["precision"], found["f1"], found["fp"]) == (0.0, 0.0, 1)
    assert (found["recall"], found["ap50"]) == (None, None)
    assert found["brier"] == 0.25


def test_nothing_on_both_sides_is_undefined_and_counts_are_zero():
    rows, tallied = tally_unit(Detection(), unit(objects([]), objects([])))
    assert rows == []
    assert len(tallied.records) == 0


def test_inventions_in_an_empty_unit_count_in_the_pooled_totals():
    full = unit(objects([box(0)], cluster=["a"]), objects([box(0)], score=[0.9], cluster=["a"]))
    empty = replace(unit(objects([]), objects([box(0)], score=[0.9], cluster=["b"])), id="v")
    assert figures(Detection(), full, empty)["precision"] == 0.5


def test_without_scores_ranked_figures_are_not_applicable_and_the_assignment_is_optimal():
    """The optimal assignment finds both; by score nothing could be ordered."""
    scene = unit(objects([box(0), box(4)]), objects([box(2), box(0)]))
    found, why = figures(Detection(iou=0.4), scene), reasons(Detection(iou=0.4), scene)
    assert found["tp"] == 2
    for name in ("ap50", "ap50_95", "ece", "brier", "aurc", "eaurc", "augrc"):
        assert (found[name], why[name]) == (None, "not_applicable")
    assert [finding.code for finding in Detection().tally(scene).findings] == ["no-scores"]


def test_scores_that_are_all_one_do_not_depend_on_order():
    reference = objects([box(0)])
    ap = [
        figures(Detection(), unit(reference, objects([box(a), box(b)], score=[1.0, 1.0])))["ap50"]
        for a, b in ((0, 50), (50, 0))
    ]
    assert ap == [0.5, 0.5]


def test_a_reference_with_id_zero_and_a_perfect_box_scores_one():
    found = figures(Detection(), unit(objects([box(0)], ids=["0"]), objects([box(0)], ids=["0"], score=[1.0])))
    assert (found["ap50_95"], found["recall"], found["iou_mean"]) == (1.0, 1.0, 1.0)


def test_a_similarity_equal_to_the_threshold_is_a_match():
    """10 by 10 against its half: IoU is exactly 0.5."""
    assert figures(Detection(iou=0.5), unit(objects([box(0)]), objects([box(0, 5.0)], score=[1.0])))["tp"] == 1


def test_ignored_regions_absorb_predictions_and_are_not_missed():
    scene = unit(
        objects([box(0), box(100, 50.0)], ignore=[False, True]),
        objects([box(0), box(100), box(120), box(300)], score=[0.9, 0.8, 0.7, 0.6]),
    )
    found = figures(Detection(), scene)
    assert (found["tp"], found["fp"], found["fn"]) == (1, 1, 0)
    assert whole(Detection().tally(scene)).sums["ignored"] == 2
    assert found["ap50"] == 1.0


def test_only_objects_inside_the_area_count_but_matches_cross_its_edge():
    """Reference 0 inside is found by a prediction outside: a hit. Reference 1 outside, found by one inside: neither."""
    scene = unit(
        objects([box(0), box(100)]),
        objects([box(0), box(100), box(200), box(300)], score=[0.9, 0.8, 0.7, 0.6]),
        reference_inside=np.array([True, False]),
        prediction_inside=np.array([False, True, True, False]),
    )
    found = figures(Detection(), scene)
    assert (found["tp"], found["fp"], found["fn"]) == (1, 1, 0)
    assert found["ap50"] == 1.0
    assert whole(Detection().tally(scene)).sums["ranked"] == 2


def test_a_cap_is_applied_by_score_and_said():
    scene = unit(objects([box(0), box(100)]), objects([box(0), box(100)], score=[0.1, 0.9]))
    tallied = Detection(max_detections=1).tally(scene)
    assert whole(tallied).sums["above_max_detections"] == 1
    assert whole(tallied).sums == {**whole(tallied).sums, "tp": 1, "fn": 1}
    said = [finding.says for finding in tallied.findings]
    assert said == ["the cap of 1 detections a class and unit cut 1 of 2 in all"]


def test_there_is_no_cap_of_one_hundred_by_default():
    reference = objects([box(20 * i) for i in range(150)])
    prediction = objects([box(20 * i) for i in range(150)], score=np.linspace(0.1, 0.9, 150))
    assert figures(Detection(), unit(reference, prediction))["ap50"] == 1.0
    assert figures(Detection(protocol="coco"), unit(reference, prediction))["recall"] == pytest.approx(100 / 150)


def test_area_ranges_ignore_objects_of_other_sizes():
    evaluator = Detection(area_ranges=(("small", 0, 100), ("large", 100.5, 1e9)))
    scene = unit(objects([box(0), box(100, 50.0)]), objects([box(0), box(100, 50.0)], score=[0.9, 0.8]))
    missed = unit(objects([box(0), box(100, 50.0)]), objects([box(0)], score=[0.9]))
    for one, large in ((scene, 1.0), (missed, 0.0)):
        rows, _ = tally_unit(evaluator, one)
        extras = evaluator.extras(Ledger.of(rows).by_cluster().whole())
        assert extras["area_ranges"] == {
            "small": {"ap50": 1.0, "ap50_95": 1.0},
            "large": {"ap50": large, "ap50_95": large},
        }


def test_points_pair_within_a_distance_and_have_no_overlap():
    scene = unit(
        objects([shapely.Point(0, 0), shapely.Point(100, 0)]),
        objects([shapely.Point(3, 4), shapely.Point(100, 5.1)], score=[0.9, 0.8]),
    )
    found, why = figures(Detection(max_distance_m=5.0), scene), reasons(Detection(), scene)
    assert (found["tp"], found["fp"], found["fn"]) == (1, 1, 1)
    assert (found["iou_mean"], why["iou_mean"], why["ap50"], why["iou_median"]) == (None, *["not_applicable"] * 3)
    assert found["ece"] == pytest.approx((0.1 + 0.8) / 2)


def test_rotated_boxes_overlap_as_polygons():
    square = shapely.box(-1, -1, 1, 1)
    turned = shapely.Polygon([(0, -(2**0.5)), (2**0.5, 0), (0, 2**0.5), (-(2**0.5), 0)])
    found = figures(Detection(), unit(objects([square]), objects([turned], score=[1.0])))
    octagon = 8 * (2**0.5 - 1)
    assert found["iou_mean"] == pytest.approx(octagon / (8 - octagon), abs=1e-9)


def test_a_hit_counts_in_the_cell_of_the_reference_and_an_invention_in_its_own():
    tallied = Detection().tally(
        unit(
            objects([box(0), box(100)], cluster=["west", "east"], strata={"zone": ["urban", "rural"]}),
            objects([box(0), box(300)], score=[0.9, 0.8], cluster=["east", "east"]),
        )
    )
    assert {
        cell: {k: v for k, v in part.sums.items() if k in ("tp", "fp", "fn")} for cell, part in tallied.cells.items()
    } == {
        Cell("west", "", (("zone", "urban"),)): {"tp": 1},
        Cell("east", "", (("zone", "rural"),)): {"fn": 1},
        Cell("east", "", (("zone", UNKNOWN),)): {"fp": 1},
    }


def test_flags_of_one_prediction_stand_where_each_hit_counts():
    """At 0.5 the first prediction takes the west reference; AP rows there never hold more hits than references."""
    pair = random_pair(4, n=80)
    rows, _ = tally_unit(Detection(), Unit("u", lambda: pair))
    for row in rows:
        for name, bag in row.tally.rows.items():
            if name.startswith("ap@"):
                hits = bag.values[:, 1:11].sum(axis=0)
                assert (hits <= row.tally.sums.get("references@" + name[3:], 0)).all()


@pytest.mark.parametrize(
    "evaluator", [Detection(), Detection(assignment="optimal"), Detection(assignment="similarity")]
)
@pytest.mark.parametrize("seed", range(3))
def test_shuffled_features_change_no_tally(evaluator, seed):
    pair = random_pair(seed)
    rng = np.random.default_rng(seed + 100)
    mixed = ObjectPair(
        pair.reference.take(rng.permutation(len(pair.reference))),
        pair.prediction.take(rng.permutation(len(pair.prediction))),
    )
    a, b = (evaluator.tally(Unit("u", lambda one=one: one)) for one in (pair, mixed))
    assert a.cells == b.cells


@pytest.mark.parametrize("seed", range(3))
def test_hits_by_score_at_one_half_equal_the_first_threshold_of_ap(seed):
    """The operating-point matcher and the ranked one are two programs with one rule."""
    pair = random_pair(seed)
    sums = whole(Detection().tally(Unit("u", lambda: pair)))
    hits = sum(bag.values[:, 1].sum() for name, bag in sums.rows.items() if name.startswith("ap@"))
    inventions = sum(bag.values[:, 11].sum() for name, bag in sums.rows.items() if name.startswith("ap@"))
    assert (hits, inventions) == (sums.sums["tp"], sums.sums["fp"])


@pytest.mark.parametrize("evaluator", [Detection(), Detection(class_aware=False), Detection(max_detections=5)])
@pytest.mark.parametrize("seed", range(3))
def test_every_reference_that_counts_is_a_hit_or_a_miss_and_every_outcome_has_a_record(evaluator, seed):
    pair = random_pair(seed)
    rng = np.random.default_rng(seed)
    seen = [rng.random(len(side)) < 0.7 for side in (pair.reference, pair.prediction)]
    pair = replace(pair, reference_inside=seen[0], prediction_inside=seen[1])
    tallied = evaluator.tally(Unit("u", lambda: pair))
    sums = whole(tallied).sums
    assert sums.get("tp", 0) + sums.get("fn", 0) == int(np.sum(seen[0] & ~pair.reference.ignore))
    assert len(tallied.records) == sum(sums.get(name, 0) for name in ("tp", "fp", "fn", "ignored"))


def test_the_reference_as_its_own_prediction_scores_one():
    pair = random_pair(1)
    keep = pair.reference.take(~pair.reference.ignore)
    side = replace(keep, score=np.ones(len(keep)))
    found = figures(Detection(), Unit("u", lambda: ObjectPair(side, side)))
    for name in ("precision", "recall", "f1", "ap50", "ap50_95", "iou_mean", "iou_median"):
        assert found[name] == 1.0, name
    for name in ("fp", "fn", "ece", "brier", "aurc", "eaurc", "augrc"):
        assert found[name] == 0.0, name


def test_keys_are_those_of_the_contract_and_arrays_have_one_entry_a_total():
    pair = random_pair(2)
    rows, _ = tally_unit(Detection(), Unit("u", lambda: pair))
    table = Ledger.of(rows).by_cluster()
    drawn = np.array([[1, 1, 1, 1], [2, 0, 1, 1], [0, 0, 0, 0]])[:, : len(table.clusters)]
    totals = table.totals(drawn)
    found = {**Detection().quantities(totals), **Detection().ranked(totals)}
    assert set(found) == set(KEYS["detection"])
    assert all(np.shape(quantity.value) == (3,) for quantity in found.values())
    assert all(np.isnan(found[name].value[2]) for name in ("precision", "ap50", "ece", "aurc", "iou_median"))


def test_redraws_equal_a_tally_of_the_repeated_clusters():
    pair = random_pair(6)
    rows, _ = tally_unit(Detection(), Unit("u", lambda: pair))
    ledger = Ledger.of(rows)
    table = ledger.by_cluster()
    drawn = np.zeros((1, len(table.clusters)), dtype=np.int64)
    drawn[0, :2] = 2, 1
    twice = [replace(row, cell=row.cell._replace(cluster=f"again {row.cell.cluster}")) for row in rows]
    chosen = [row for row in rows if row.cell.cluster in table.clusters[:2]]
    chosen += [row for row in twice if row.cell.cluster == f"again {table.clusters[0]}"]
    a, b = table.totals(drawn), Ledger.of(chosen).by_cluster().whole()
    for read in (Detection().quantities, Detection().ranked):
        for name, quantity in read(a).items():
            assert np.asarray(quantity.value)[0] == np.asarray(read(b)[name].value)[0], name


def test_assignment_by_id_only_measures():
    scene = unit(
        objects([box(0), box(100)], ids=["a", "b"]), objects([box(1), box(500)], ids=["a", "b"], score=[0.9, 0.8])
    )
    found = figures(Detection(assignment="id"), scene)
    assert (found["tp"], found["iou_mean"]) == (2, pytest.approx(9 / 11 / 2, abs=1e-9))


def test_coverage_risk_points_are_the_scores_and_their_hits():
    evaluator = Detection()
    rows, _ = tally_unit(evaluator, unit(objects([box(0)]), objects([box(0), box(50)], score=[0.4, 0.9])))
    confidence, correct = evaluator.coverage_risk(Ledger.of(rows).by_cluster().whole())
    assert (confidence.tolist(), correct.tolist()) == ([0.9, 0.4], [0.0, 1.0])


def test_the_optimal_localisation_recall_precision_error_by_hand():
    """Accepting the first (IoU 0.8): 0.4 lost, one miss: 1.4 of 2. Accepting both adds an invention: 2.4 of 3."""
    evaluator = Detection()
    scene = unit(objects([box(0), box(100)]), objects([box(0, 8.0), box(50)], score=[0.9, 0.4]))
    extras = evaluator.extras(Ledger.of(tally_unit(evaluator, scene)[0]).by_cluster().whole())
    assert extras["optimal_lrp"][""] == {"lrp": pytest.approx(0.7), "score": 0.9}
    # Calibration against precision times overlap: |0.9 - 0.8| and |0.4 - 0|, a half each.
    assert extras["laece"] == pytest.approx(0.25)


def test_options_are_refused_with_what_was_expected():
    with pytest.raises(ConfigError, match="did you mean 'score'"):
        Detection(assignment="scores")
    with pytest.raises(ConfigError, match=r"score_min must lie in \[0, 1\], got 50"):
        Detection(score_min=50)
    with pytest.raises(ConfigError, match="max_detections must be at least 1"):
        Detection(max_detections=0)
    with pytest.raises(ConfigError, match="from small to large"):
        Detection(area_ranges=(("odd", 5, 1),))


def test_payloads_that_cannot_be_compared_are_refused():
    with pytest.raises(InputError, match="class_aware = true needs labels on both sides"):
        Detection(class_aware=True).tally(unit(objects([box(0)], label=["a"]), objects([box(0)], score=[1.0])))
    with pytest.raises(InputError, match="the reference has polygon; the prediction has point"):
        Detection().tally(unit(objects([box(0)]), objects([shapely.Point(0, 0)], score=[1.0])))
    with pytest.raises(InputError, match="use the vector evaluator"):
        Detection().tally(unit(objects([shapely.LineString([(0, 0), (1, 0)])]), objects([])))
    with pytest.raises(InputError, match=r"score_min = 0\.5 needs a score"):
        Detection(score_min=0.5).tally(unit(objects([box(0)]), objects([box(0)])))
    with pytest.raises(InputError, match="repeats"):
        Detection(assignment="id").tally(unit(objects([box(0)] * 2, ids=["a", "a"]), objects([box(0)], score=[1.0])))


@pytest.mark.shared
@pytest.mark.parametrize("assignment", ["score", "optimal", "similarity"])
def test_poultry_barns_have_704_hits_whatever_the_assignment(shared_data: Path, assignment):
    """733 barns in EPSG:26918, 2111 predictions in EPSG:4326; a one-to-one matching in another program gave 704."""
    from geoeval.options import Columns, Source
    from geoeval.readers.units import object_units

    folder = shared_data / "poultry_delmarva"
    units = object_units(
        Source(str(folder / "reference_test_barns.geojson")),
        Source(str(folder / "predictions_manet.geojson"), columns=Columns(score="p")),
        family="detection",
    )
    found = figures(Detection(assignment=assignment), *units.units)
    assert (found["tp"], found["tp"] + found["fp"], found["tp"] + found["fn"]) == (704, 2111, 733)


@pytest.mark.shared
@pytest.mark.parametrize(("iou", "hits"), [(0.4, 51), (0.5, 48)])
def test_tree_crowns_of_osbs_029(shared_data: Path, iou, hits):
    """61 reference crowns against 74 boxes in pixels; hits from a maximum matching in another program."""
    import pandas as pd

    folder = shared_data / "deepforest_neon"
    reference = pd.read_csv(folder / "OSBS_029_truth.csv")
    prediction = pd.read_csv(folder / "predictions_5_methods.csv")
    prediction = prediction[(prediction["plot_name"] == "OSBS_029") & (prediction["method"] == "Weinstein_unpublished")]

    def boxes(frame):
        return list(shapely.box(*[frame[name].to_numpy(dtype=float) for name in ("xmin", "ymin", "xmax", "ymax")]))

    scene = unit(objects(boxes(reference)), objects(boxes(prediction), score=prediction["score"].to_numpy(dtype=float)))
    found = figures(Detection(iou=iou, assignment="optimal"), scene)
    assert (found["tp"], found["tp"] + found["fp"], found["tp"] + found["fn"]) == (hits, 74, 61)
