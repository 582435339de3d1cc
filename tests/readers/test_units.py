"""Two sources become units: systems, columns, clusters, strata, and the rules for what is broken."""

from __future__ import annotations

import pickle

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

from geoeval.errors import ColumnError, ConfigError, CRSMismatch, InputError, UnitMismatch
from geoeval.options import Columns, Pairing, Source
from geoeval.readers.units import object_units

UTM = "EPSG:32633"
X, Y = 500_000.0, 5_500_000.0


def layer(boxes, crs=UTM, **columns):
    """Boxes as (x, y, side), in metres from a place in zone 33."""
    shapes = [
        None if box is None else shapely.box(X + box[0], Y + box[1], X + box[0] + box[2], Y + box[1] + box[2])
        for box in boxes
    ]
    frame = gpd.GeoDataFrame(columns, geometry=gpd.GeoSeries(shapes, crs=UTM), index=range(len(shapes)))
    return frame.to_crs(crs)


def shaped(*wkt, crs="EPSG:32633", **columns):
    return gpd.GeoDataFrame(columns, geometry=gpd.GeoSeries.from_wkt(list(wkt), crs=crs))


TWO = [(0, 0, 10), (30, 0, 10)]


def run(reference, prediction, family="detection", dimension=None, sides=(None, None), **options):
    left = Source(reference, columns=sides[0] or Columns())
    right = Source(prediction, columns=sides[1] or Columns())
    return object_units(left, right, Pairing(**options), family=family, dimension=dimension)


def only(found):
    (unit,) = found.units
    return unit.load()


def codes(found):
    return {finding.code for finding in found.findings}


def test_predictions_go_to_the_system_of_the_reference():
    found = run(layer(TWO), layer(TWO, crs="EPSG:4326"))
    pair = only(found)
    assert "crs-differs" in codes(found)
    assert shapely.hausdorff_distance(pair.reference.geometry, pair.prediction.geometry).max() < 1e-3
    with pytest.raises(CRSMismatch, match=r"EPSG:32633.*EPSG:4326"):
        run(layer(TWO), layer(TWO, crs="EPSG:4326"), on_crs_mismatch="refuse")


def test_degrees_and_web_mercator_are_measured_in_metres():
    for crs in ("EPSG:4326", "EPSG:3857"):
        pair = only(run(layer(TWO, crs=crs), layer(TWO, crs=crs)))
        assert pair.unit_of_length == "m"
        assert np.allclose(shapely.area(pair.reference.geometry), 100.0, rtol=1e-3)


def test_a_layer_on_both_sides_of_the_antimeridian_stays_together():
    frame = pd.DataFrame({"lon": [179.999, -179.999], "lat": [-17.0, -17.0]})
    pair = only(run(frame, frame, family="vector"))
    assert 200 < shapely.distance(*pair.reference.geometry) < 220


def test_pixels_and_map_never_meet():
    pixels = pd.DataFrame({"xmin": [0], "ymin": [0], "xmax": [1], "ymax": [1]})
    with pytest.raises(CRSMismatch, match="image coordinates"):
        object_units(Source(layer(TWO)), Source(pixels, crs="pixel"), family="detection")


def test_a_unit_can_be_sent_to_another_process():
    found = run(layer(TWO, score=[0.1, 0.2]), layer(TWO, score=[0.1, 0.2]))
    unit = pickle.loads(pickle.dumps(found.units[0]))
    assert unit.load().prediction.score.tolist() == [0.1, 0.2]


def test_ids_do_not_depend_on_the_order_of_features():
    frame = layer([*TWO, (60, 0, 10)], label=["a", "b", "c"])
    straight = only(run(frame, frame)).prediction
    turned = only(run(frame.iloc[::-1], frame.iloc[::-1])).prediction
    assert straight.id.tolist() == turned.id[::-1].tolist()
    assert straight.cluster.tolist() == turned.cluster[::-1].tolist()
    assert turned.row.tolist() == [0, 1, 2]


def test_exact_duplicates_are_kept_with_an_id_each():
    frame = layer([TWO[0], TWO[0]])
    assert len(set(only(run(frame, frame)).prediction.id)) == 2


def test_repeated_ids_are_refused_where_declared_and_left_alone_where_guessed():
    frame = layer(TWO, id=["a", "a"])
    with pytest.raises(InputError, match=r"unique id in column 'id'.*share an id: 'a'"):
        run(frame, frame, sides=(Columns(id="id"), None))
    found = run(frame, frame)
    assert "id-not-unique" in codes(found)
    assert "a" not in only(found).reference.id


def test_a_missing_id_is_refused_where_declared():
    frame = layer(TWO, key=["a", None])
    with pytest.raises(InputError, match="none in 1 of 2 features"):
        run(frame, frame, sides=(Columns(id="key"), Columns(id="key")))


def test_empty_and_flat_geometry_is_dropped_and_counted():
    flat = f"POLYGON (({X} {Y}, {X + 1} {Y}, {X + 2} {Y}, {X} {Y}))"
    whole = f"POLYGON (({X} {Y}, {X + 1} {Y}, {X + 2} {Y + 5}, {X} {Y}))"
    found = run(shaped(whole, flat, "POLYGON EMPTY"), layer([TWO[0], None]))
    pair = only(found)
    assert (len(pair.reference), pair.reference.read) == (1, 3)
    assert dict(pair.reference.defects) == {"zero-area": 1, "empty": 1}
    assert dict(pair.prediction.defects) == {"null": 1}
    void = [finding for finding in found.findings if finding.code == "geometry-void"]
    assert "feature 1" in void[0].where[0]
    assert "2 of 3" in void[0].says


BOW = f"POLYGON (({X} {Y}, {X + 2} {Y + 2}, {X + 2} {Y}, {X} {Y + 2}, {X} {Y}))"


def test_invalid_geometry_is_repaired_dropped_or_refused():
    """A bow tie of two triangles with an area of 1 each: never an IoU of 0, always counted."""
    frame = shaped(BOW)
    repaired = run(frame, frame)
    assert only(repaired).reference.geometry[0].area == pytest.approx(2.0)
    assert dict(only(repaired).reference.defects) == {"self-intersection": 1}
    assert "geometry-repaired" in codes(repaired)
    dropped = run(frame, frame, on_invalid="drop")
    assert len(only(dropped).reference) == 0
    assert dict(only(dropped).reference.defects) == {"self-intersection": 1}
    assert "geometry-dropped" in codes(dropped)
    with pytest.raises(InputError, match=r"feature 0: self-intersection.*on_invalid"):
        run(frame, frame, on_invalid="refuse")


def test_an_open_ring_is_an_invalid_geometry():
    frame = pd.DataFrame({"wkt": ["POLYGON ((0 0, 4 0, 4 4))", "POLYGON ((0 0, 1 0))"]})
    found = object_units(Source(frame, crs="pixel"), Source(frame, crs="pixel"), family="footprint")
    pair = only(found)
    assert dict(pair.reference.defects) == {"ring-not-closed": 1, "too-few-points": 1}
    assert shapely.area(pair.reference.geometry).tolist() == [8.0]


@pytest.mark.parametrize(
    ("score", "says"),
    [
        ([0.5, np.nan], "feature 1.*found no value"),
        ([0.5, 1.5], "feature 1.*found 1.5"),
        ([50, 99], "percentage"),
        ([0.1, -0.1], "found -0.1"),
    ],
)
def test_a_score_that_is_none_is_refused(score, says):
    with pytest.raises(InputError, match=says):
        run(layer(TWO), layer(TWO, score=score))


def test_a_family_without_need_of_scores_leaves_a_bad_guess_alone():
    found = run(layer(TWO), layer(TWO, p=[5, 9]), family="footprint")
    assert only(found).prediction.score is None
    with pytest.raises(InputError, match=r"\[0, 1\]"):
        run(layer(TWO), layer(TWO, p=[5, 9]), family="footprint", sides=(None, Columns(score="p")))
    assert only(run(layer(TWO), layer(TWO, p=[5, 9]), sides=(None, Columns(score="")))).prediction.score is None


def test_a_wrong_column_names_its_side_and_the_nearest_one():
    with pytest.raises(ColumnError, match=r"'scoer' \(declared as prediction score\).*did you mean 'score'"):
        run(layer(TWO), layer(TWO, score=[0.1, 0.2]), sides=(None, Columns(score="scoer")))


def test_labels_are_recoded_and_blanks_named():
    source = Source(layer(TWO, label=[1.0, np.nan]), recode={"1": "house", "7": "barn"})
    found = object_units(source, Source(layer(TWO, label=["shed", "house"])), family="detection")
    assert only(found).reference.label.tolist() == ["house", "unknown"]
    assert {"label-missing", "recode-unused"} <= codes(found)
    assert "labels-disjoint" in codes(run(layer(TWO, label=["a", "a"]), layer(TWO, label=["b", "b"])))


@pytest.mark.parametrize("side", ["reference", "prediction", "both"])
def test_a_side_without_features_is_evaluated(side, tmp_path):
    (tmp_path / "none.geojson").write_text('{"type": "FeatureCollection", "features": []}')
    none, full = tmp_path / "none.geojson", layer(TWO, label=["a", "b"], score=[0.1, 0.2])
    left, right = (none if side in ("reference", "both") else full), (none if side in ("prediction", "both") else full)
    pair = only(run(left, right, cluster="auto", by=("label",)))
    assert len(pair.reference) == (0 if side in ("reference", "both") else 2)
    assert len(pair.prediction) == (0 if side in ("prediction", "both") else 2)
    assert pair.prediction.score is not None
    assert pair.prediction.label is not None


def test_predictions_without_any_reference_belong_to_the_one_unit():
    frame = pd.DataFrame({"image": ["a", "b"], "xmin": [0, 0], "ymin": [0, 0], "xmax": [1, 1], "ymax": [1, 1]})
    source = Source(frame, crs="pixel")
    found = object_units(Source(frame, crs="pixel", where="xmin > 5"), source, family="detection")
    assert len(only(found).prediction) == 2


def test_geometry_of_two_kinds_is_refused_with_counts():
    mixed = shaped("POINT (0 0)", "POLYGON ((0 0, 1 0, 1 1, 0 0))", "POINT (2 2)")
    with pytest.raises(InputError, match=r"2 points, 1 polygon"):
        run(mixed, layer(TWO))
    with pytest.raises(InputError, match="points in"):
        run(layer(TWO), shaped("POINT (0 0)"))
    with pytest.raises(InputError, match="expected polygons, found points"):
        run(shaped("POINT (0 0)"), shaped("POINT (0 0)"), family="footprint")
    assert run(shaped("POINT (0 0)"), shaped("POINT (0 0)")).notes["geometry"] == "point"


def boxes(**columns):
    return pd.DataFrame({"xmin": [0, 0], "ymin": [0, 0], "xmax": [4, 4], "ymax": [4, 4], **columns})


def pixels(left, right, sides=(None, None), **options):
    sources = [
        Source(frame, crs="pixel", columns=columns or Columns())
        for frame, columns in zip((left, right), sides, strict=True)
    ]
    return object_units(*sources, Pairing(**options), family="detection")


def test_images_are_units_compared_by_name():
    found = pixels(boxes(image_path=["x/a.tif", "x/b.tif"]), boxes(plot_name=["b", "b"]))
    pairs = {unit.id: unit.load() for unit in found.units}
    assert [(name, len(pair.reference), len(pair.prediction)) for name, pair in pairs.items()] == [
        ("a", 1, 0),
        ("b", 1, 2),
    ]
    assert pairs["b"].prediction.cluster.tolist() == ["b", "b"]
    assert found.notes["prediction unit column"] == "'plot_name' (guessed)"


def test_images_of_one_name_in_two_folders_stay_two():
    found = pixels(boxes(image=["x/a.tif", "y/a.tif"]), boxes(image=["x/a", "y/a"]))
    assert [unit.id for unit in found.units] == ["x/a", "y/a"]


def test_a_prediction_on_an_unknown_image_is_refused_or_dropped():
    left, right = boxes(image=["a", "b"]), boxes(image=["a", "z"])
    with pytest.raises(InputError, match=r"1 predictions lie on 1 units.*z"):
        pixels(left, right)
    found = pixels(left, right, on_unknown_unit="drop")
    assert "unknown-unit" in codes(found)
    assert sum(len(unit.load().prediction) for unit in found.units) == 1


def test_units_on_one_side_only_are_refused():
    with pytest.raises(ColumnError, match="names 2 units, but"):
        pixels(boxes(image=["a", "b"]), boxes())
    assert len(pixels(boxes(image=["a", "a"]), boxes()).units) == 1
    assert len(pixels(boxes(image=["a", "b"]), boxes(), sides=(Columns(unit=""), None)).units) == 1
    with pytest.raises(InputError, match="expected a unit"):
        pixels(boxes(image=["a", None]), boxes(image=["a", "a"]))


def test_folders_pair_by_stem_and_share_one_system(tmp_path):
    for side in ("r", "p"):
        (tmp_path / side).mkdir()
    for number, name in enumerate(("east", "west")):
        layer([(5000 * number, 0, 10)], crs="EPSG:4326").to_file(tmp_path / "r" / f"{name}.gpkg")
    layer([(0, 0, 10)]).to_file(tmp_path / "p" / "east.geojson")
    found = run(tmp_path / "r", tmp_path / "p")
    assert [(u.id, len(u.load().reference), len(u.load().prediction)) for u in found.units] == [
        ("east", 1, 1),
        ("west", 1, 0),
    ]
    assert "prediction-missing" in codes(found)
    assert len(found.inputs) == 3
    first, second = (unit.load().reference.geometry[0].centroid for unit in found.units)
    assert first.distance(second) == pytest.approx(5000, rel=1e-3)


def test_a_cluster_column_on_both_sides_is_taken():
    frame = layer(TWO, aoi=["n", "s"])
    found = run(frame, frame)
    assert only(found).reference.cluster.tolist() == ["n", "s"]
    assert "guessed" in found.notes["cluster"]
    assert "grid" in run(frame, layer(TWO)).notes["cluster"]
    assert "grid" in run(layer(TWO, aoi=["n", "n"]), frame.iloc[:1]).notes["cluster"]


def test_a_declared_cluster_must_be_on_both_sides_and_never_missing():
    frame = layer(TWO, district=["n", "s"])
    assert only(run(frame, frame, cluster="district")).prediction.cluster.tolist() == ["n", "s"]
    with pytest.raises(ColumnError, match=r"'district' on both sides.*grid:auto"):
        run(frame, layer(TWO), cluster="district")
    for name in ("district", "aoi"):
        holed = layer(TWO, **{name: ["n", None]})
        with pytest.raises(InputError, match="expected a cluster in column"):
            run(holed, holed, cluster="district" if name == "district" else "auto")


def test_grids_and_no_clusters():
    frame = layer(TWO)
    found = run(frame, frame, cluster="grid:20m")
    assert only(found).reference.cluster.tolist() == ["x25000y275000", "x25001y275000"]
    assert found.clustered
    none = run(frame, frame, cluster="none")
    assert not none.clustered
    assert set(only(none).reference.cluster) == {""}
    with pytest.raises(ConfigError, match="grid:64px"):
        run(frame, frame, cluster="grid:64px")


def test_strata_come_from_either_side():
    left = layer(TWO, region=["n", None], size=[50, 500])
    right = layer(TWO, source=["x", "y"], size=[100, np.nan])
    found = run(left, right, by=("region", "source", "size:100,500", "area:50,150"))
    pair = only(found)
    assert pair.reference.strata["region"].tolist() == ["n", "unknown"]
    assert pair.prediction.strata["region"].tolist() == ["unknown", "unknown"]
    assert pair.reference.strata["source"].tolist() == ["unknown", "unknown"]
    assert pair.reference.strata["size"].tolist() == ["<100", ">=500"]
    assert pair.prediction.strata["size"].tolist() == ["100-500", "unknown"]
    assert pair.prediction.strata["area"].tolist() == ["50-150", "50-150"]
    assert found.reference_only == {"region"}
    with pytest.raises(ColumnError, match="did you mean 'region'"):
        run(left, right, by=("regin",))
    with pytest.raises(ConfigError, match="edges that rise"):
        run(left, right, by=("size:500,100",))
    with pytest.raises(ColumnError, match="holds text"):
        run(left, right, by=("source:1,2", "region"))


def test_only_what_lies_inside_the_aoi_counts(tmp_path):
    layer([(-5, -5, 20)], crs="EPSG:4326").to_file(tmp_path / "aoi.geojson")
    found = run(layer(TWO), layer(TWO), aoi=str(tmp_path / "aoi.geojson"))
    pair = only(found)
    assert pair.reference_inside.tolist() == [True, False]
    assert len(pair.prediction) == 2
    assert str(tmp_path / "aoi.geojson") in found.inputs
    assert only(run(layer(TWO), layer(TWO))).reference_inside is None
    shaped("POINT (0 0)").to_file(tmp_path / "point.gpkg")
    with pytest.raises(InputError, match="expected polygons"):
        run(layer(TWO), layer(TWO), aoi=str(tmp_path / "point.gpkg"))


def test_attributes_must_be_on_both_sides():
    left, right = layer(TWO, roof=["tin", None], floors=[1, 2]), layer(TWO, roof=["tin", "tile"], floors=[1, 3])
    pair = only(run(left, right, attributes=("roof", "floors"), family="vector"))
    assert pair.reference.fields["roof"].tolist() == ["tin", None]
    assert pair.prediction.fields["floors"].dtype == np.int64
    with pytest.raises(ColumnError, match=r"'roof'.*prediction attribute"):
        run(left, layer(TWO), attributes=("roof",), family="vector")


def test_events_have_kinds_and_dates():
    left = layer(TWO, kind=["added", None], date=["2017-06-11", None])
    right = layer(TWO, change=["added", "removed"], date=["2017-06-12", "2017-06-13"])
    found = run(left, right, family="change")
    pair = only(found)
    assert pair.reference.fields["kind"].tolist() == ["added", "unknown"]
    assert pair.prediction.fields["date"][0] - pair.reference.fields["date"][0] == 1
    assert np.isnan(pair.reference.fields["date"][1])
    assert pair.reference.fields["date_raw"].tolist() == ["2017-06-11", None]
    assert found.notes["date unit"] == "d"


def test_years_and_dates_never_mix_and_a_kind_needs_both_sides():
    with pytest.raises(UnitMismatch, match="years in"):
        run(layer(TWO, year=[2017, 2018]), layer(TWO, date=["2017-06-12", "2017-06-13"]), family="change")
    with pytest.raises(ColumnError, match="expected a kind column"):
        run(layer(TWO, what=["a", "b"]), layer(TWO), family="change", sides=(Columns(kind="what"), None))
    found = run(layer(TWO, kind=["a", "b"]), layer(TWO), family="change")
    assert "kind" not in only(found).reference.fields


def test_a_table_joins_a_layer_by_id():
    labels = pd.DataFrame({"idx": [1, 9], "year": [2011, 2012]})
    sides = (Columns(id="idx"), Columns(id="row"))
    found = run(labels, layer(TWO, year=[2011, 2013]), family="change", sides=sides, drop_unmatched_ids=True)
    pair = only(found)
    assert pair.reference.geometry.tolist() == [None, None]
    assert pair.prediction.id.tolist() == ["1"]
    assert pair.prediction.row.tolist() == [1]
    assert pair.reference.cluster.tolist() == [pair.prediction.cluster[0], "unplaced"]
    assert "id-unmatched" in codes(found)
    void = shaped(None, None, idx=[1, 9], year=[2011, 2012], crs="EPSG:4326")
    again = run(void, layer(TWO, year=[2011, 2013]), family="change", sides=sides)
    assert len(only(again).reference) == 2
    assert "crs-differs" not in codes(again)
    with pytest.raises(InputError, match="joined by id"):
        run(labels, layer(TWO), family="change")


def test_layers_that_never_touch_are_said_to():
    assert "extents-apart" in codes(run(layer(TWO), layer([(5000, 0, 10)])))


def test_a_feature_without_place_in_the_system_is_named():
    """A polygon that is 200° wide could lie on either side of the Earth."""
    wide = shaped("POLYGON ((-100 0, 100 0, 100 10, -100 10, -100 0))", crs="EPSG:4326")
    frame = pd.concat([shaped("POLYGON ((0 0, 1 0, 1 1, 0 0))", crs="EPSG:4326"), wide], ignore_index=True)
    with pytest.raises(InputError, match=r"GeoDataFrame, feature 1: a part is 200"):
        run(frame, frame, family="vector")
