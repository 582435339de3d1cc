"""Footprints: hand-counted polygons, dissolved areas, the edge table, laws, and two annotators of one town."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import shapely

from geoeval.errors import ConfigError, InputError
from geoeval.evaluators.footprint import Footprint
from geoeval.keys import KEYS
from geoeval.layers import ObjectPair, Objects
from geoeval.ledger import Ledger, tally_unit
from geoeval.model import Proportion, Unit
from geoeval.objects.whole_layers import AREA_PER_UNIT, dissolved_components

ONES = (
    *("precision", "recall", "f1", "iou_mean", "dice_mean", "area_iou", "area_dice", "boundary_precision"),
    *("boundary_recall", "boundary_f1", "vertex_ratio_mean", "sq", "rq", "pq", "valid_reference", "valid_prediction"),
)
ZEROS = (
    *("fp", "fn", "centroid_distance_mean", "centroid_distance_median", "centroid_distance_p95", "area_error_mean"),
    *("area_error_abs_mean", "polis_mean", "hausdorff_mean", "split_references", "merged_references"),
)


def column(values):
    out = np.empty(len(values), dtype=object)
    out[:] = list(values)
    return out


def objects(shapes, *, label=None, score=None, cluster=None, ids=None, ignore=None, strata=None, **more) -> Objects:
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
        **{"read": n, **more},
    )


def box(x, width=10.0, height=10.0, y=0.0):
    return shapely.box(x, y, x + width, y + height)


def unit(reference, prediction, **more) -> Unit[ObjectPair]:
    pair = ObjectPair(reference, prediction, **more)
    return Unit("u", lambda: pair)


def totals_of(evaluator, *units, where=None):
    ledger = Ledger.of(row for one in units for row in tally_unit(evaluator, one)[0])
    return (ledger if where is None else ledger.where(where)).by_cluster().whole()


def quantities(evaluator, *units, where=None):
    totals = totals_of(evaluator, *units, where=where)
    return {**evaluator.quantities(totals), **evaluator.ranked(totals)}


def figures(evaluator, *units, where=None):
    out = {}
    for name, quantity in quantities(evaluator, *units, where=where).items():
        value = np.asarray(quantity.value).reshape(-1)
        assert value.shape == (1,), name
        out[name] = None if np.isnan(value[0]) else float(value[0])
    return out


def random_pair(seed, n=50, clusters=40) -> ObjectPair:
    """Rectangles that overlap inside each layer as well, some shaken, some alone."""
    rng = np.random.default_rng(seed)
    corner = rng.integers(0, 200, size=(n, 2)).astype(float)
    size = rng.integers(6, 25, size=(n, 2)).astype(float)
    shaken = corner + rng.integers(-3, 4, size=corner.shape)
    more = rng.integers(0, 200, size=(n // 4, 2)).astype(float)
    other, other_size = np.concatenate([shaken, more]), np.concatenate([size, size[: n // 4]])

    def rectangles(xy, wh):
        return list(shapely.box(xy[:, 0], xy[:, 1], xy[:, 0] + wh[:, 0], xy[:, 1] + wh[:, 1]))

    return ObjectPair(
        objects(
            rectangles(corner, size),
            cluster=[f"c{int(x // clusters)}" for x in corner[:, 0]],
            strata={"size": ["small" if w < 12 else "large" for w in size[:, 0]]},
        ),
        objects(rectangles(other, other_size), cluster=[f"c{int(x // clusters)}" for x in other[:, 0]]),
    )


def test_figures_of_one_hit_by_hand():
    """A square of 10 m against the same square moved by 1 m: 90 of 110 m², 1 m apart, 20 of 40 m of boundary near."""
    found = figures(Footprint(boundary_tolerance_m=0.5), unit(objects([box(0)]), objects([box(1)])))
    for name in ("iou_mean", "area_iou", "pq", "sq"):
        assert found[name] == pytest.approx(90 / 110, abs=1e-9), name
    for name in ("dice_mean", "area_dice"):
        assert found[name] == pytest.approx(0.9, abs=1e-9), name
    assert found["centroid_distance_mean"] == found["centroid_distance_median"] == found["centroid_distance_p95"] == 1.0
    assert (found["area_error_mean"], found["area_error_abs_mean"], found["vertex_ratio_mean"]) == (0.0, 0.0, 1.0)
    # Two sides of 10 m without their last half metre, and half a metre at either end of the side inside the other.
    expected = (2 * 9.5 + 2 * 0.5) / 40
    assert found["boundary_recall"] == pytest.approx(expected, abs=1e-9)
    assert found["boundary_f1"] == pytest.approx(expected, abs=1e-9)
    assert found["hausdorff_mean"] == pytest.approx(1.0, abs=1e-9)
    # Every second vertex is 1 m from the other boundary, the others lie on it.
    assert found["polis_mean"] == pytest.approx(0.5, abs=1e-9)


def test_area_error_is_prediction_minus_reference_over_reference():
    scene = unit(objects([box(0), box(100)]), objects([box(0, 8.0), box(100, 12.0)]))
    found = figures(Footprint(), scene)
    assert found["area_error_mean"] == pytest.approx(0.0, abs=1e-9)
    assert found["area_error_abs_mean"] == pytest.approx(0.2, abs=1e-9)


def test_vertices_are_counted_without_the_closing_one():
    corner = shapely.Polygon([(0, 0), (10, 0), (10, 10), (9, 10), (9, 9.9), (0, 9.9)])
    assert figures(Footprint(), unit(objects([box(0)]), objects([corner])))["vertex_ratio_mean"] == 6 / 4


def test_boundaries_are_pooled_by_length_over_hits():
    """A perfect pair of 40 m and a pair of 400 m whose boundaries are far apart: 40 of 440 m agree, not one half."""
    big, bigger = box(1000, 100, 100), shapely.box(995, -5, 1105, 105)
    found = figures(Footprint(boundary_tolerance_m=0.1), unit(objects([box(0), big]), objects([box(0), bigger])))
    assert found["boundary_recall"] == pytest.approx(40 / 440, abs=1e-9)
    assert found["boundary_precision"] == pytest.approx(40 / 480, abs=1e-9)


def test_holes_count_as_boundary_and_not_as_area():
    ring = shapely.Polygon(box(0, 30, 30).exterior, [box(10, 10, 10, y=10).exterior.coords])
    found = figures(Footprint(boundary_tolerance_m=0.5), unit(objects([ring]), objects([box(0, 30, 30)])))
    assert found["boundary_recall"] == pytest.approx(120 / 160, abs=1e-9)
    assert found["boundary_precision"] == 1.0
    assert found["iou_mean"] == pytest.approx(8 / 9, abs=1e-9)


def test_layers_that_overlap_themselves_are_dissolved():
    """Two copies of one reference square cover 100 m² once."""
    found = figures(Footprint(), unit(objects([box(0), box(0)]), objects([box(5)])))
    assert found["area_iou"] == pytest.approx(50 / 150, abs=1e-9)
    assert found["area_dice"] == pytest.approx(100 / 200, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_components_add_up_to_the_area_of_whole_layers(seed):
    pair = random_pair(seed)
    a, b = (shapely.union_all(side.geometry) for side in (pair.reference, pair.prediction))
    area = dissolved_components(pair.reference.geometry, pair.prediction.geometry).area
    expected = [a.area, b.area, shapely.intersection(a, b).area, shapely.union(a, b).area]
    assert area.sum(axis=0) == pytest.approx(expected, abs=1e-6)
    totals = totals_of(Footprint(), Unit("u", lambda: pair))
    assert totals.real("area_union", AREA_PER_UNIT)[0] == pytest.approx(expected[3], abs=1e-3)


@pytest.mark.parametrize("side", [1e-2, 3e-4])
def test_dissolved_areas_of_tiny_polygons_are_as_exact_as_those_of_large_ones(side):
    """Boxes in coordinates from 0 to 1 measure 1e-4 and less; half of each prediction lies on its reference."""
    at = np.arange(20) / 20
    reference = [shapely.box(x, 0, x + side, side) for x in at]
    prediction = [shapely.box(x + side / 2, 0, x + 1.5 * side, side) for x in at]
    found = figures(Footprint(), unit(objects(reference), objects(prediction)))
    assert found["area_iou"] == pytest.approx(1 / 3, rel=0.02)
    whole = figures(Footprint(), unit(objects(reference), objects(reference)))
    assert (whole["area_iou"], whole["area_dice"]) == (1.0, 1.0)


def test_dissolved_areas_of_continents_are_exact():
    found = figures(Footprint(), unit(objects([box(0, 3e6, 3e6)]), objects([box(0, 1.5e6, 3e6)])))
    assert (found["area_iou"], found["iou_mean"]) == (0.5, 0.5)


def test_dissolved_areas_are_not_applicable_to_subgroups_of_objects_but_to_those_of_units():
    pair = random_pair(0)
    by_object = quantities(Footprint(), Unit("u", lambda: pair), where=lambda row: row.value_of("size") == "small")
    for name in ("area_iou", "area_dice", "valid_reference"):
        assert by_object[name].reason == "not_applicable"
    by_unit = quantities(
        Footprint(), Unit("u", lambda: pair, strata={"town": "x"}), where=lambda row: row.value_of("town") == "x"
    )
    assert by_unit["area_iou"].value[0] == figures(Footprint(), Unit("u", lambda: pair))["area_iou"]


def test_panoptic_quality_stays_above_one_half_whatever_the_threshold():
    """IoU 8/12 and 5/10: only the first counts for PQ, although both are hits at 0.4 and none at 0.7."""
    scene = unit(objects([box(0), box(100)]), objects([box(2), box(100, 5.0)]))
    for iou in (0.4, 0.7):
        found = figures(Footprint(iou=iou), scene)
        assert found["sq"] == pytest.approx(8 / 12, abs=1e-9)
        assert found["rq"] == 0.5
        assert found["pq"] == pytest.approx(8 / 12 / 2, abs=1e-9)


def test_touching_houses_drawn_as_one_are_merged_references_and_one_cut_in_two_is_split():
    scene = unit(objects([box(0), box(10), box(100)]), objects([box(0, 20.0), box(100, 5.0), box(105, 5.0)]))
    found = figures(Footprint(), scene)
    assert (found["merged_references"], found["split_references"]) == (2, 1)


def test_adjacent_rectangles_do_not_overlap():
    found = figures(Footprint(iou=0.01), unit(objects([box(0)]), objects([box(10)])))
    assert (found["tp"], found["area_iou"]) == (0, 0.0)


def test_validity_is_counted_before_repair():
    found = quantities(
        Footprint(),
        unit(
            objects([box(0)], read=4, defects={"self-intersection": 1, "empty": 1, "sliver": 1}),
            objects([box(0)], read=1),
        ),
    )
    assert isinstance(found["valid_reference"], Proportion)
    assert (int(found["valid_reference"].k[0]), int(found["valid_reference"].n[0])) == (2, 4)
    assert found["valid_prediction"].value[0] == 1.0
    evaluator = Footprint()
    extras = evaluator.extras(totals_of(evaluator, unit(objects([box(0)], read=2, defects={"empty": 1}), objects([]))))
    assert extras["defects"]["reference"] == {"empty": 1}


def test_reference_without_prediction():
    found = figures(Footprint(), unit(objects([box(0)]), objects([])))
    assert [found[name] for name in ("recall", "f1", "area_iou", "rq", "pq")] == [0.0] * 5
    assert [found[name] for name in ("precision", "iou_mean", "boundary_f1", "sq", "polis_mean")] == [None] * 5


def test_prediction_without_reference():
    found = figures(Footprint(), unit(objects([]), objects([box(0)])))
    assert [found[name] for name in ("precision", "f1", "area_iou", "pq")] == [0.0] * 4
    assert (found["recall"], found["boundary_recall"], found["fp"]) == (None, None, 1)


def test_nothing_on_both_sides():
    rows, tallied = tally_unit(Footprint(), unit(objects([]), objects([])))
    assert len(tallied.records) == 0
    found = Footprint().quantities(Ledger.of(rows).by_cluster().whole()) if rows else {}
    assert all(np.isnan(found[name].value[0]) for name in ("precision", "recall", "f1", "area_iou") if found)


def test_a_class_only_among_predictions_is_listed_with_f1_of_zero():
    scene = unit(objects([box(0)], label=["hut"]), objects([box(0), box(50)], label=["hut", "barn"]))
    barn = figures(Footprint(), scene, where=lambda row: row.cell.label == "barn")
    assert (barn["f1"], barn["recall"], figures(Footprint(), scene)["precision"]) == (0.0, None, 0.5)


def test_the_reference_as_its_own_prediction_scores_one():
    """On layers that do not overlap themselves."""
    side = objects([box(20 * i, 5 + i % 7, 6 + i % 5) for i in range(40)], cluster=[f"c{i % 5}" for i in range(40)])
    found = figures(Footprint(), Unit("u", lambda: ObjectPair(side, side)))
    for name in ONES:
        assert found[name] == 1.0, name
    for name in ZEROS:
        assert found[name] == 0.0, name


@pytest.mark.parametrize("seed", range(4))
def test_shuffled_features_change_no_tally(seed):
    pair = random_pair(seed)
    rng = np.random.default_rng(seed + 100)
    mixed = ObjectPair(
        pair.reference.take(rng.permutation(len(pair.reference))),
        pair.prediction.take(rng.permutation(len(pair.prediction))),
    )
    a, b = (Footprint().tally(Unit("u", lambda one=one: one)) for one in (pair, mixed))
    assert a.cells == b.cells


def test_keys_are_those_of_the_contract_and_arrays_have_one_entry_a_total():
    pair = random_pair(2)
    rows, _ = tally_unit(Footprint(), Unit("u", lambda: pair))
    table = Ledger.of(rows).by_cluster()
    drawn = np.zeros((3, len(table.clusters)), dtype=np.int64)
    drawn[0], drawn[1, 0] = 1, len(table.clusters)
    totals = table.totals(drawn)
    found = {**Footprint().quantities(totals), **Footprint().ranked(totals)}
    assert set(found) == set(KEYS["footprint"])
    assert [name for name in KEYS["footprint"] if name in Footprint().quantities(totals)] == list(
        Footprint().quantities(totals)
    )
    assert all(np.shape(quantity.value) == (3,) for quantity in found.values())
    assert all(np.isnan(found[name].value[2]) for name in ("precision", "area_iou", "pq", "polis_mean"))


def test_ignored_regions_and_what_they_absorb_leave_the_areas():
    scene = unit(objects([box(0), box(100, 50.0)], ignore=[False, True]), objects([box(0), box(110)]))
    found = figures(Footprint(), scene)
    assert [found[name] for name in ("tp", "fp", "fn", "area_iou", "pq")] == [1, 0, 0, 1.0, 1.0]


def test_only_objects_inside_the_area_count():
    scene = unit(
        objects([box(0), box(100)]),
        objects([box(0), box(100), box(200)]),
        reference_inside=np.array([True, False]),
        prediction_inside=np.array([True, True, False]),
    )
    found = figures(Footprint(), scene)
    assert (found["tp"], found["fp"], found["fn"], found["pq"]) == (1, 0, 0, 1.0)


def test_scores_decide_who_takes_a_reference_where_declared():
    """By score the worse of two overlapping predictions comes first; optimally the better one is taken."""
    scene = unit(objects([box(0)]), objects([box(2), box(1)], score=[0.9, 0.1]))
    assert figures(Footprint(assignment="score"), scene)["iou_mean"] == pytest.approx(8 / 12, abs=1e-9)
    assert figures(Footprint(), scene)["iou_mean"] == pytest.approx(9 / 11, abs=1e-9)
    assert figures(Footprint(score_min=0.5), scene)["fp"] == 0


def test_lines_and_points_are_refused():
    with pytest.raises(InputError, match="footprints are polygons, found points"):
        Footprint().tally(unit(objects([shapely.Point(0, 0)]), objects([])))
    with pytest.raises(ConfigError, match="is it a percentage"):
        Footprint(iou=50)


def test_areas_of_whole_countries_stay_exact():
    """Squares of 1000 km: 1e12 m² each, thousands of them, beyond 64 bits of millionths."""
    side = objects([box(2e6 * i, 1e6, 1e6) for i in range(12)])
    found = figures(Footprint(), Unit("u", lambda: ObjectPair(side, side)))
    assert (found["area_iou"], found["boundary_f1"]) == (1.0, 1.0)


def test_what_stands_beside_the_figures():
    """One reference turned by 90 degrees is no hit; a hut taken for a barn meets it in the confusion matrix."""
    slab = shapely.box(100, 0, 130, 10)
    evaluator = Footprint()
    extras = evaluator.extras(
        totals_of(
            evaluator,
            unit(
                objects([box(0), slab], label=["hut", "hut"]),
                objects([box(0), slab, box(5)], label=["barn", "hut", "hut"]),
            ),
        )
    )
    assert extras["confusion"]["labels"] == ["barn", "hut", "background"]
    assert extras["confusion"]["matrix"] == [[0, 1, 0], [0, 1, 1], [0, 0, 0]]
    # The predictions at 0 and at 5 overlap.
    assert extras["defects"]["prediction"] == {"overlap": 2}
    assert extras["shape"] == {
        "c_iou_mean": 1.0,
        "compactness_ratio_mean": 1.0,
        "orientation_difference_mean_deg": 0.0,
    }


def test_lengths_of_pixel_layers_are_in_pixels():
    found = quantities(Footprint(), unit(objects([box(0)]), objects([box(1)]), unit_of_length="px"))
    assert (found["hausdorff_mean"].unit, found["centroid_distance_median"].unit) == ("px", "px")
    assert quantities(Footprint(), unit(objects([box(0)]), objects([box(1)])))["hausdorff_mean"].unit == "m"


def test_cells_sum_to_the_whole():
    """Counts, means and areas are those of the same scene in one cluster without strata."""
    pair = random_pair(3)
    plain = ObjectPair(
        replace(pair.reference, cluster=None, strata={}), replace(pair.prediction, cluster=None, strata={})
    )
    assert figures(Footprint(), Unit("u", lambda: pair)) == figures(Footprint(), Unit("u", lambda: plain))


@pytest.mark.shared
def test_two_annotators_of_one_town(shared_data: Path):
    """169 against 162 buildings; another program counted 110 pairs at IoU 0.5, F1 0.664653."""
    from geoeval.options import Source
    from geoeval.readers.units import object_units

    folder = shared_data / "ramp_two_annotators"
    units = object_units(
        Source(str(folder / "matt-labels.geojson")), Source(str(folder / "seamus-labels.geojson")), family="footprint"
    ).units
    found = figures(Footprint(), *units)
    assert (found["tp"], found["fn"], found["fp"]) == (110, 59, 52)
    assert found["f1"] == pytest.approx(0.664653, abs=1e-6)
    assert figures(Footprint(iou=0.3), *units)["tp"] == 127
    assert figures(Footprint(iou=0.7), *units)["tp"] == 79
    mirrored = [replace(one, load=lambda one=one: swapped(one.load())) for one in units]
    back = figures(Footprint(), *mirrored)
    assert (back["tp"], back["f1"], back["pq"]) == (found["tp"], found["f1"], found["pq"])
    assert back["boundary_precision"] == found["boundary_recall"]
    assert back["area_iou"] == found["area_iou"]


def swapped(pair: ObjectPair) -> ObjectPair:
    return ObjectPair(pair.prediction, pair.reference, pair.unit_of_length)
