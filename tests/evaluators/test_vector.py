"""Vector: lines by buffer, points by distance, attributes of matched pairs, polygons as footprints are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import shapely

from geoeval.errors import ConfigError, InputError
from geoeval.evaluators.footprint import Footprint
from geoeval.evaluators.vector import Vector
from geoeval.keys import KEYS
from geoeval.layers import ObjectPair, Objects
from geoeval.ledger import Ledger, tally_unit
from geoeval.model import Cell, Proportion, Unit
from geoeval.objects.attributes import agreement

LINES = ("completeness", "correctness", "quality", "rms_distance")
POINTS = ("tp", "fp", "fn", "precision", "recall", "f1", "rmse", "ce90", "ce95", "bias_x", "bias_y")


def column(values):
    out = np.empty(len(values), dtype=object)
    out[:] = list(values)
    return out


def objects(shapes, *, label=None, score=None, cluster=None, ids=None, fields=None) -> Objects:
    n = len(shapes)
    return Objects(
        geometry=column(shapes),
        id=column(ids if ids is not None else [f"{i:04d}" for i in range(n)]),
        row=np.arange(n),
        label=None if label is None else column(label),
        score=None if score is None else np.array(score, dtype=float),
        cluster=column(cluster if cluster is not None else ["c"] * n),
        fields={name: np.array(values) for name, values in (fields or {}).items()},
        read=n,
        source="layer",
    )


def line(*xy):
    return shapely.LineString(xy)


def points(*xy, **more):
    return objects([shapely.Point(*one) for one in xy], **more)


def unit(reference, prediction, **more) -> Unit[ObjectPair]:
    pair = ObjectPair(reference, prediction, **more)
    return Unit("u", lambda: pair)


def totals_of(evaluator, *units, where=None):
    ledger = Ledger.of(row for one in units for row in tally_unit(evaluator, one)[0])
    return (ledger if where is None else ledger.where(where)).by_cluster().whole()


def figures(evaluator, *units, where=None):
    totals = totals_of(evaluator, *units, where=where)
    out = {}
    for name, quantity in {**evaluator.quantities(totals), **evaluator.ranked(totals)}.items():
        value = np.asarray(quantity.value).reshape(-1)
        assert value.shape == (1,), name
        out[name] = None if np.isnan(value[0]) else float(value[0])
    return out


def test_lines_by_buffer():
    """A road of 100 m; 60 m of it drawn 3 m aside, and 40 m drawn elsewhere."""
    scene = unit(objects([line((0, 0), (100, 0))]), objects([line((0, 3), (60, 3)), line((0, 500), (40, 500))]))
    found = figures(Vector(buffer_m=5.0), scene)
    # The buffer's round end reaches 4 m further along the reference.
    assert found["completeness"] == pytest.approx(0.64, abs=1e-6)
    assert found["correctness"] == pytest.approx(0.6, abs=1e-6)
    assert found["quality"] == pytest.approx(60 / (100 + 36), abs=1e-6)
    assert found["rms_distance"] == pytest.approx(3.0, abs=1e-6)
    assert tuple(found) == LINES


def test_lines_leave_a_record_each():
    scene = unit(objects([line((0, 0), (100, 0))]), objects([line((0, 3), (40, 3)), line((0, 500), (40, 500))]))
    columns = Vector().tally(scene).records.columns
    assert list(zip(columns["outcome"], columns["reference_id"], columns["prediction_id"], strict=True)) == [
        ("fn", "0000", ""),
        ("fp", "", "0001"),
    ]


def test_lengths_of_lines_are_pooled_over_units():
    near = unit(objects([line((0, 0), (300, 0))]), objects([line((0, 0), (300, 0))]))
    far = replace(unit(objects([line((0, 0), (100, 0))]), objects([line((0, 50), (100, 50))])), id="v")
    found = figures(Vector(), near, far)
    assert (found["completeness"], found["correctness"]) == (0.75, 0.75)


def test_lines_on_one_side_only():
    missing = figures(Vector(), unit(objects([line((0, 0), (9, 0))]), objects([])))
    assert (missing["completeness"], missing["correctness"], missing["quality"]) == (0.0, None, 0.0)
    invented = figures(Vector(), unit(objects([]), objects([line((0, 0), (9, 0))])))
    assert (invented["completeness"], invented["correctness"], invented["rms_distance"]) == (None, 0.0, None)


def test_lines_of_other_classes_do_not_count_where_both_sides_have_labels():
    scene = unit(objects([line((0, 0), (9, 0))], label=["road"]), objects([line((0, 0), (9, 0))], label=["rail"]))
    assert figures(Vector(), scene)["completeness"] == 0.0
    assert figures(Vector(class_aware=False), scene)["completeness"] == 1.0


def test_a_line_counts_in_its_own_cell():
    scene = unit(objects([line((0, 0), (9, 0))], cluster=["west"]), objects([line((0, 1), (9, 1))], cluster=["east"]))
    cells = Vector().tally(scene).cells
    assert cells[Cell("west")].sums["reference_matched"] == 9 * 10**9
    assert cells[Cell("east")].sums["prediction_matched"] == 9 * 10**9


def test_points_by_hand():
    """Two hits, off by (3, 4) and (0, 1); one gross error 50 m off is a miss and an invention."""
    scene = unit(points((0, 0), (100, 0), (200, 0)), points((3, 4), (100, 1), (250, 0)))
    found = figures(Vector(), scene)
    assert [found[name] for name in ("tp", "fp", "fn")] == [2, 1, 1]
    assert found["rmse"] == pytest.approx(((25 + 1) / 2) ** 0.5)
    assert (found["bias_x"], found["bias_y"]) == (1.5, 2.5)
    assert found["ce90"] == pytest.approx(np.quantile([1, 5], 0.9))
    assert found["ce95"] == pytest.approx(np.quantile([1, 5], 0.95))
    assert set(found) == set(POINTS)
    evaluator = Vector()
    extras = evaluator.extras(totals_of(evaluator, scene))
    assert (extras["radial_median"], extras["median_x"]) == (3.0, 1.5)
    assert extras["rmse_y"] == pytest.approx((17 / 2) ** 0.5)


def test_points_are_assigned_so_that_most_find_a_partner():
    """Nearest first would pair 3 with 2 and leave 0 without: 4 is then 4 m from nothing."""
    assert figures(Vector(), unit(points((0, 0), (3, 0)), points((2, 0), (7, 0))))["tp"] == 2


def test_admissible_pairs_come_first():
    """One pair is far off: the other two are hits, where an assignment without a cut finds none."""
    scene = unit(points((0, 0), (10, 0), (20, 0)), points((10, 0), (20, 0), (30, 0)))
    found = figures(Vector(max_distance_m=5.0), scene)
    assert (found["precision"], found["recall"]) == (pytest.approx(2 / 3), pytest.approx(2 / 3))


def test_a_distance_equal_to_the_limit_is_a_match():
    assert figures(Vector(max_distance_m=5.0), unit(points((0, 0)), points((3, 4))))["tp"] == 1


def test_points_on_one_side_only():
    missing = figures(Vector(), unit(points((0, 0)), points()))
    assert (missing["recall"], missing["f1"], missing["precision"], missing["rmse"]) == (0.0, 0.0, None, None)
    invented = figures(Vector(), unit(points(), points((0, 0))))
    assert (invented["precision"], invented["recall"], invented["ce90"]) == (0.0, None, None)


def test_polygons_are_compared_as_footprints_are():
    shapes = [shapely.box(20 * i, 0, 20 * i + 10, 10) for i in range(5)]
    moved = [shapely.box(20 * i + i, 0, 20 * i + 10 + i, 10) for i in range(5)]
    scene = unit(objects(shapes), objects(moved))
    assert figures(Vector(), scene) == figures(Footprint(), scene)


def test_nothing_at_all_prints_the_polygon_set():
    assert Vector().tally(unit(objects([]), objects([]))).cells == {}
    totals = totals_of(Vector(geometry="line"), unit(objects([line((0, 0), (1, 0))]), objects([])))
    assert tuple(Vector(geometry="line").quantities(totals)) == LINES
    assert set(Vector().quantities(replace(totals, sums={}))) <= set(KEYS["vector"])


def test_attributes_are_compared_on_matched_pairs():
    """Height agrees on one of two known; the name on both, as text; the third pair has no height in the reference."""
    scene = unit(
        points((0, 0), (50, 0), (99, 0), fields={"height": [1.0, 2.0, np.nan], "name": ["a", "b", "c"]}),
        points((0, 0), (50, 0), (99, 0), fields={"height": ["1", "3", "9"], "name": ["a", "b", "c"]}),
    )
    evaluator = Vector()
    found = evaluator.class_quantities(totals_of(evaluator, scene))
    assert set(found) == {"height", "name"}
    height = found["height"]["attribute_agreement"]
    assert isinstance(height, Proportion)
    assert (int(height.k[0]), int(height.n[0])) == (1, 2)
    assert found["name"]["attribute_agreement"].value[0] == 1.0


def test_an_attribute_that_predictions_lack_is_a_finding():
    scene = unit(points((0, 0), fields={"height": [1.0]}), points((0, 0)))
    tallied = Vector().tally(scene)
    assert [(one.code, one.where) for one in tallied.findings] == [("attribute-missing", ("u", "height"))]


def test_codes_are_texts_and_numbers_are_numbers():
    known, same = agreement(column(["01", 1, 1.0, None, " "]), column(["1", "1", 1, "x", "x"]))
    assert (known.tolist(), same.tolist()) == ([True] * 3 + [False] * 2, [False, True, True, False, False])


@pytest.mark.parametrize(
    "side",
    [
        points(*[(20.0 * i, 7.0 * (i % 5)) for i in range(30)], fields={"code": [f"k{i % 3}" for i in range(30)]}),
        objects([line((20 * i, 0), (20 * i + 15, 9), (20 * i + 18, 30)) for i in range(20)]),
    ],
)
def test_the_reference_as_its_own_prediction_scores_one(side):
    evaluator = Vector()
    found = figures(evaluator, unit(side, side))
    for name in ("precision", "recall", "f1", "completeness", "correctness", "quality"):
        assert found.get(name, 1.0) == 1.0, name
    for name in ("fp", "fn", "rmse", "ce90", "ce95", "bias_x", "bias_y", "rms_distance"):
        assert found.get(name, 0.0) == 0.0, name
    for agreed in evaluator.class_quantities(totals_of(evaluator, unit(side, side))).values():
        assert agreed["attribute_agreement"].value[0] == 1.0


@pytest.mark.parametrize("kind", ["point", "line"])
def test_shuffled_features_change_no_tally(kind):
    rng = np.random.default_rng(7)
    xy = rng.uniform(0, 200, size=(40, 2))
    moved = xy[:35] + rng.normal(0, 3, size=(35, 2))

    def side(given):
        if kind == "point":
            return points(*given, cluster=[f"c{int(x // 50)}" for x, _ in given])
        return objects(
            [line((x, y), (x + 10, y + 5), (x + 12, y + 20)) for x, y in given],
            cluster=[f"c{int(x // 50)}" for x, _ in given],
        )

    pair = ObjectPair(side(xy), side(moved))
    mixed = ObjectPair(pair.reference.take(rng.permutation(40)), pair.prediction.take(rng.permutation(35)))
    a, b = (Vector().tally(Unit("u", lambda one=one: one)) for one in (pair, mixed))
    assert a.cells == b.cells


def test_redraws_have_one_entry_a_total():
    scene = unit(points((0, 0), (50, 0), cluster=["a", "b"]), points((1, 0), (53, 0), cluster=["a", "b"]))
    evaluator = Vector()
    table = Ledger.of(tally_unit(evaluator, scene)[0]).by_cluster()
    totals = table.totals(np.array([[1, 1], [2, 0], [0, 0]]))
    found = {**evaluator.quantities(totals), **evaluator.ranked(totals)}
    assert found["rmse"].value[:2].tolist() == pytest.approx([5**0.5, 1.0])
    assert np.isnan(found["ce90"].value[2])
    assert all(np.shape(quantity.value) == (3,) for quantity in found.values())


def test_a_declared_kind_must_be_what_the_layers_hold():
    with pytest.raises(InputError, match="geometry = 'line' is declared, and the layers hold points"):
        Vector(geometry="line").tally(unit(points((0, 0)), points()))
    with pytest.raises(InputError, match="expected geometries of one kind"):
        Vector().tally(unit(points((0, 0)), objects([line((0, 0), (1, 0))])))
    with pytest.raises(ConfigError, match="buffer_m must be a positive number, got -1"):
        Vector(buffer_m=-1)


@pytest.mark.shared
def test_roads_of_two_sources_agree_on_their_lengths(shared_data: Path):
    """Seven chips of Las Vegas: published lengths in UTM, to the decimetre that is printed."""
    from geoeval.options import Source
    from geoeval.readers.units import object_units

    folder = shared_data / "roads_vegas_apls"
    files = sorted((folder / "osm").glob("*.geojson"))
    assert files
    units = object_units(Source(str(folder / "osm")), Source(str(folder / "osm")), family="vector").units
    found = figures(Vector(), *units)
    assert (found["completeness"], found["correctness"], found["quality"]) == (1.0, 1.0, 1.0)
    totals = totals_of(Vector(), *units)
    expected = 309.4 + 2506.2 + 2766.3 + 1962.9 + 1498.5 + 2226.0 + 2032.0
    assert totals.real("reference_length")[0] == pytest.approx(expected, abs=0.5)
