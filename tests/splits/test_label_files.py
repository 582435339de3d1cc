"""Labels are told by their content: features, a mask, or bytes that nothing here can read."""

from __future__ import annotations

import gzip
import json
import shutil

import geopandas as gpd
import numpy as np
import pytest
import shapely
from PIL import Image

from geoeval.errors import InputError
from geoeval.splits import SplitSettings, build
from geoeval.splits.building import SplitRefused
from geoeval.splits.label_files import parts_of, read_label
from geoeval.splits.labelsets import geometry_hash
from geoeval.splits.links import empty_label_hash

UTM = "EPSG:32631"
BOXES = list(shapely.box([0, 10, 20], 0, [4, 14, 24], 4))
GOOD = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}


def collection(*features, **more):
    return json.dumps({"type": "FeatureCollection", **more, "features": list(features)})


def feature(geometry, key="geometry"):
    return {"type": "Feature", "properties": {}, key: geometry}


def vector(path, shapes=BOXES, crs=UTM, **more):
    frame = gpd.GeoDataFrame({"n": range(len(shapes))}, geometry=list(shapes), crs=crs)
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".csv":
        path.write_text("wkt\n" + "".join(f'"{one.wkt}"\n' for one in shapes))
    else:
        frame.to_file(path, **more)
    return path


@pytest.mark.parametrize("name", ["a.geojson", "a.gpkg", "a.fgb", "a.parquet", "a.shp", "a.csv", "a.gml", "a.geojsonl"])
def test_every_format_of_features_gives_the_same_shapes(tmp_path, name):
    more = {"driver": "GeoJSONSeq"} if name == "a.geojsonl" else {}
    # Lines are in degrees by their standard.
    found = read_label(vector(tmp_path / name, crs="EPSG:4326" if more else UTM, **more), "a")
    assert (found.kind, found.geometry_hash) == ("features", geometry_hash(BOXES))
    assert found.named == (name not in ("a.csv", "a.geojsonl"))


@pytest.mark.filterwarnings("ignore:'crs' was not provided")
def test_a_file_that_names_no_system_or_a_wrong_one(tmp_path):
    named = {}
    for name in ("a.gpkg", "a.parquet", "a.fgb"):
        named[name] = read_label(vector(tmp_path / name, crs=None), "a").named
    assert not any(named.values())
    (tmp_path / "a.csv").write_text("lon,lat\n3,50\n")
    found = read_label(tmp_path / "a.csv", "a")
    assert (found.crs, found.named) == ("EPSG:4326", True)
    vector(tmp_path / "b.gpkg", [shapely.Point(500_000, 5_600_000)], crs="EPSG:4326")
    with pytest.raises(InputError, match="expected degrees in"):
        read_label(tmp_path / "b.gpkg", "a")


def test_kml_is_read(tmp_path):
    path = vector(tmp_path / "a.kml", crs="EPSG:4326", driver="KML")
    assert read_label(path, "a").geometry_hash == geometry_hash(BOXES)


def test_the_ending_does_not_decide(tmp_path):
    shutil.copy(vector(tmp_path / "a.geojson"), tmp_path / "a.bin")
    assert read_label(tmp_path / "a.bin", "a").geometry_hash == geometry_hash(BOXES)
    Image.fromarray(np.eye(8, dtype=np.uint8)).save(tmp_path / "m.png")
    shutil.copy(tmp_path / "m.png", tmp_path / "m.geojson")
    assert read_label(tmp_path / "m.geojson", "a").kind == "mask"


OPAQUE = {
    "hello.txt": b"hello",
    "yolo.txt": b"0 0.5 0.5 0.1 0.1\n1 0.2 0.3 0.1 0.1\n",
    "voc.xml": b"<annotation><object><name>car</name></object></annotation>",
    "mask.npy": b"\x93NUMPY\x01\x00v\x00",
    "labelme.json": b'{"shapes": [], "imagePath": "a.png"}',
    "classes.csv": b"image,class\na,car\n",
    "a.geojson.gz": gzip.compress(collection(feature(GOOD)).encode()),
    "a.bin": bytes(range(256)),
    "a.vrt": b'<OGRVRTDataSource><OGRVRTLayer name="a"/></OGRVRTDataSource>',
    "b.xml": b'<OGRVRTDataSource><OGRVRTLayer name="a"/></OGRVRTDataSource>',
}


@pytest.mark.parametrize("name", OPAQUE)
def test_other_files_are_opaque(tmp_path, name):
    (tmp_path / name).write_bytes(OPAQUE[name])
    found = read_label(tmp_path / name, "a")
    assert (found.kind, found.shapes, found.geometry_hash) == ("opaque", None, None)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.geojson", b"hello"),
        ("a.geojson", b'{"type": "FeatureCollection", "features": ['),
        ("a.json", b'{"type": "FeatureCollection", "feature": []}'),
        ("a.json", b'{"type": "FeatureCollection", "features": ['),
        ("a.gpkg", b"<OGRVRTDataSource/>"),
        ("a.shp", b"\0\0\x27\x0a" + bytes(96)),
        ("a.kml", b"<OGRVRTDataSource/>"),
        ("a.csv", b"wkt\nPOLYGON ((\n"),
    ],
)
def test_a_file_of_features_that_is_damaged_is_refused(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=f"^record 'a': .*{name}"):
        read_label(tmp_path / name, "record 'a': label")


UNREAD = {
    "unknown type": [feature(GOOD), feature({"type": "Circle", "coordinates": [0, 0]})],
    "another key": [feature(GOOD), feature(GOOD, "geom")],
    "one dimension": [feature(GOOD), feature({"type": "LineString", "coordinates": [[0], [1]]})],
    "null": [feature(GOOD), feature(None)],
    "empty": [feature(GOOD), feature({"type": "Polygon", "coordinates": []})],
}


@pytest.mark.parametrize("kind", UNREAD)
def test_a_feature_without_a_geometry_is_refused_by_its_number(tmp_path, kind):
    path = tmp_path / "l.geojson"
    path.write_text(collection(*UNREAD[kind]))
    with pytest.raises(InputError, match=r"^a: 'l.geojson': feature 2 of 2 has no geometry that can be read .1 such"):
        read_label(path, "a")
    path.write_text(collection(*UNREAD[kind][:1]))
    assert len(read_label(path, "a").shapes) == 1


def test_features_that_a_reader_drops_are_counted(tmp_path):
    path = tmp_path / "l.geojson"
    path.write_text(collection(feature(GOOD), {"type": "FeatureCollection", "features": [feature(GOOD)]}))
    with pytest.raises(InputError, match="lists 2 features, 1 of which can be read"):
        read_label(path, "a")
    lines = [json.dumps(feature(GOOD))] * 2
    path = tmp_path / "l.geojsonl"
    path.write_text("\n".join([*lines, lines[0][:20]]))
    with pytest.raises(InputError, match="lists 3 features, 2 of which can be read"):
        read_label(path, "a")
    path.write_text("\n".join(lines) + "\n\n")
    assert len(read_label(path, "a").shapes) == 2


@pytest.mark.parametrize("ending", ["gpkg", "parquet"])
@pytest.mark.parametrize("shape", [None, shapely.Polygon()])
def test_the_same_in_other_formats(tmp_path, ending, shape):
    with pytest.raises(InputError, match="feature 2 of 3 has no geometry that can be read"):
        read_label(vector(tmp_path / f"a.{ending}", [BOXES[0], shape, BOXES[1]]), "a")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.geojson", collection()),
        ("a.json", '{"images": [], "annotations": [], "categories": []}'),
        ("a.csv", "wkt,class\n"),
        ("a.csv", "xmin,ymin,xmax,ymax\n"),
    ],
)
def test_no_feature_at_all_is_an_empty_label(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert read_label(tmp_path / name, "a").geometry_hash == empty_label_hash()


def test_parts_count_one_by_one(tmp_path):
    whole = [shapely.MultiPolygon(BOXES[:2]), shapely.GeometryCollection([shapely.MultiPolygon(BOXES[2:])])]
    found = read_label(vector(tmp_path / "a.gpkg", whole), "a")
    assert len(found.shapes) == 3
    assert found.geometry_hash == geometry_hash(BOXES)
    assert len(parts_of(np.array([shapely.MultiPoint([(0, 0), (1, 1)]), shapely.Point()], dtype=object))) == 2


@pytest.mark.parametrize("ending", [".shx", ".dbf", ".prj"])
def test_a_shapefile_comes_whole_and_from_inside_the_root(tmp_path, ending):
    root = tmp_path / "root"
    root.mkdir()
    path = vector(root / "a.shp")
    beside, away = path.with_suffix(ending), tmp_path / "away"
    assert read_label(path, "a", root).kind == "features"
    beside.rename(away)
    with pytest.raises(InputError, match=f"lacks its {ending}; copy all files of the shapefile"):
        read_label(path, "a", root)
    beside.symlink_to(away)
    with pytest.raises(InputError, match=f"'a{ending}' is a link that leads out of the root"):
        read_label(path, "a", root)


def two(world, **mine):
    """A test sample and a training sample far from it."""
    return [world.record("a", 0, split="test"), {**world.record("b", 5, split="train"), **mine}]


HALVES = SplitSettings(shares={"train": 0.5, "test": 0.5})
OPEN = SplitSettings(
    shares=HALVES.shares, required=tuple(name for name in HALVES.required if name != "label_geometry_hash")
)


def moved(world, number, shift):
    """The label of a sample on the place of another one, with heights of its own as text."""
    found = gpd.read_file(world.root / f"labels/{number}.geojson")
    return [shapely.affinity.translate(one, shift, 1) for one in found.geometry]


@pytest.mark.parametrize("name", ["c.shp", "c.csv", "c.gml", "c.geojson"])
@pytest.mark.parametrize("whole", [False, True], ids=["features", "one feature"])
def test_a_test_label_in_another_format_and_dissolved_is_found(world, name, whole):
    records = two(world)
    shapes = moved(world, "a", 50_002)
    vector(world.root / "labels" / name, [shapely.MultiPolygon(shapes)] if whole else shapes)
    records[1]["label"] = f"labels/{name}"
    with pytest.raises(SplitRefused, match=r"'a' \(test\) and 'b' \(train\): label_set"):
        build(world.write(records), HALVES)
    vector(world.root / "labels" / name, [shapely.affinity.scale(one, 0.2, 0.2) for one in shapes])
    build(world.write(records), HALVES)


@pytest.mark.parametrize("name", ["yolo.txt", "voc.xml", "mask.npy"])
def test_an_opaque_label_needs_a_declaration_and_is_compared_by_its_bytes(world, name):
    (world.root / "labels").mkdir(parents=True)
    for who in "ab":
        (world.root / f"labels/{who}-{name}").write_bytes(OPAQUE[name] + who.encode())
    records = two(world)
    for one in records:
        one["label"] = f"labels/{one['sample_id']}-{name}"
    with pytest.raises(InputError, match="required and unknown: label_geometry_hash") as caught:
        build(world.write(records), HALVES)
    assert "Shapefile" in str(caught.value)
    assert "compared by their bytes alone" in str(caught.value)
    built = build(world.write(records), OPEN)
    assert "label_geometry_hash" not in built.manifests["protected"].samples[0]
    shutil.copy(world.root / records[0]["label"], world.root / records[1]["label"])
    with pytest.raises(SplitRefused, match="label_sha256"):
        build(world.write(records), OPEN)
    records[0]["label_geometry_hash"] = "0" * 64
    with pytest.raises(InputError, match="holds neither geometries nor a mask that it could be checked against"):
        build(world.write(records), OPEN)


def test_a_mask_packed_again_is_found_by_its_values(world):
    records = two(world)
    values = (world.surface("classes") > 0.6).astype(np.uint8)
    for one, level in zip(records, (1, 9), strict=True):
        one["label"] = f"labels/{one['sample_id']}.png"
        Image.fromarray(values).save(world.root / one["label"], compress_level=level)
    assert (world.root / records[0]["label"]).read_bytes() != (world.root / records[1]["label"]).read_bytes()
    with pytest.raises(SplitRefused, match=r"'a' \(test\) and 'b' \(train\): label_geometry_hash"):
        build(world.write(records), HALVES)
    Image.fromarray(values[::-1]).save(world.root / records[1]["label"])
    built = build(world.write(records), HALVES)
    says = "2 label sets are masks or have fewer than 3 features and are compared by equality alone"
    assert next(gate for gate in built.gates if gate.id == "near_duplicate").notes["few_features"] == says
    records[1]["label_geometry_hash"] = read_label(world.root / records[1]["label"], "b").geometry_hash
    build(world.write(records), HALVES)
    records[1]["label_geometry_hash"] = "0" * 64
    with pytest.raises(InputError, match="record 'b': label_geometry_hash is declared as 0000"):
        build(world.write(records), HALVES)


def test_a_training_label_that_cannot_be_read_leaves_the_firewall_undecided(guarded):
    (guarded.root / "labels/yolo.txt").write_bytes(OPAQUE["yolo.txt"])
    record = guarded.stranger(label="labels/yolo.txt")
    guarded.undecided("label_set: 1 training input has a label without readable shapes: 'new'", record)
    guarded.check(record, unproven=["label_set"])


def test_a_training_mask_is_compared_by_its_values(guarded):
    path = guarded.root / "labels/mask.png"
    Image.fromarray(np.eye(64, dtype=np.uint8)).save(path)
    guarded.check(guarded.stranger(label="labels/mask.png"))
