"""Hostile sources from the command line: refused with the record named, and no file appears or changes anywhere."""

from __future__ import annotations

import json
import struct
import sys
import zlib

import pytest

from geoeval.evidence.canonical import file_digest
from geoeval.splits.links import empty_label_hash
from geoeval.splits.production import asset_manifest
from geoeval.splits.record import CONTRACT, MEMBERS

#: Fields of one identifier that say where a sample comes from.
ORIGINS = ("group_id", "source_family", "temporal_family", "acquisition_id", "parent_raster_id")
HASHES = ("raw_image_sha256", "processed_image_sha256", "label_sha256", "perceptual_hash", "label_geometry_hash")
SHARES = ("--share", "train=0.5", "--share", "test=0.5")


@pytest.fixture
def run(capsys, monkeypatch):
    """Run ``geoeval`` with these arguments: exit code, stdout, stderr."""
    from geoeval.cli.main import run as geoeval

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["geoeval", *map(str, arguments)])
        capsys.readouterr()
        code = 0
        try:
            geoeval()
        except SystemExit as end:
            code = int(end.code or 0)
        return code, *capsys.readouterr()

    return call


def tree(folder):
    """Every path below a folder, links unfollowed, with the bytes of its files."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")
    }


@pytest.fixture
def refused(run, world, tmp_path):
    """Build from a source that must be refused; gives what is said."""

    def call(source, *says, more=()):
        before = tree(tmp_path)
        code, out, err = run("split", "build", source, "--out", tmp_path / "out", *SHARES, *more)
        assert (code, out) == (2, ""), err
        assert tree(tmp_path) == before
        assert "Traceback" not in err
        for one in says:
            assert one in err
        return err

    return call


def declared(world, name, place, **fields):
    """A record that names no file and declares every field of the contract."""
    return world.record(
        name,
        place,
        files=False,
        raw_image_sha256=f"{place + 1:064x}",
        processed_image_sha256=f"{place + 101:064x}",
        label_sha256=f"{place + 201:064x}",
        perceptual_hash=f"{0x9E3779B97F4A7C15 * (place + 1) % 2**64:016x}",
        label_geometry_hash=f"{place + 301:064x}",
        **fields,
    )


@pytest.fixture
def written(world):
    """A source of three good records and, between them, a bad one."""

    def call(change, *, without=()):
        good = [declared(world, f"s{i}", i) for i in range(3)]
        bad = {**declared(world, "bad", 7), **change}
        for name in without:
            del bad[name]
        return world.write([good[0], bad, *good[1:]])

    return call


def test_the_clean_twin_is_built(run, world, tmp_path):
    source = world.write([declared(world, f"s{i}", i) for i in range(4)])
    code, _, err = run("split", "build", source, "--out", tmp_path / "out", *SHARES)
    assert (code, err) == (0, "")
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == [
        "development.json",
        "protected.json",
        "split.json",
    ]


@pytest.mark.parametrize("field", [one for one in CONTRACT if one != "record_sha256"])
def test_each_field_of_the_contract_is_demanded(refused, written, field):
    err = refused(written({}, without=[field]), "record 'bad'", field)
    assert not any(f"'s{i}'" in err for i in range(3))


def test_the_record_hash_is_computed_and_only_a_wrong_one_is_refused(refused, written):
    refused(written({"record_sha256": "0" * 64}), "record 'bad': record_sha256 expected")


@pytest.mark.parametrize("blank", [None, "", "unknown", " N/A ", "NULL", "\u200b", "n.a.", "(Unknown)", "--", "-9999"])
@pytest.mark.parametrize("field", ["task", *ORIGINS])
def test_a_word_that_says_nothing_fills_no_field(refused, written, field, blank):
    refused(written({field: blank}), "record 'bad'", field)


@pytest.mark.parametrize("blank", [None, [], ["", " "], ["unknown", "NaN"], [None], "unknown", ""])
@pytest.mark.parametrize("field", MEMBERS)
def test_a_list_of_blanks_fills_no_field(refused, written, field, blank):
    refused(written({field: blank}), "record 'bad'", field)


@pytest.mark.parametrize("blank", [None, "", "unknown", " N/A ", "NaN", "0" * 15, "G" * 64, 7])
@pytest.mark.parametrize("field", HASHES)
def test_what_is_no_hash_fills_no_field(refused, written, field, blank):
    refused(written({field: blank}), "record 'bad'", field)


@pytest.mark.parametrize("blank", [None, "", " ", "unknown", "n/a", 7])
def test_a_record_without_an_id_is_named_by_its_line(refused, written, blank):
    refused(written({"sample_id": blank}), "source.jsonl, line 2", "sample_id")


def test_every_bad_record_is_named_up_to_ten(refused, world):
    records = [declared(world, f"s{i:02d}", i, group_id="unknown") for i in range(13)]
    err = refused(world.write(records[::-1]), "13 records say nothing", "… and 3 more records", "--optional FIELD")
    assert [f"record 's{i:02d}': required and unknown: group_id\n" in err for i in range(13)] == [True] * 10 + [
        False
    ] * 3


NAN, INF = float("nan"), float("inf")
BOXES = {
    "not there": (None, "EPSG:32631", "bbox"),
    "NaN": ([0.0, 0.0, NAN, 1.0], "EPSG:32631", "finite"),
    "all NaN": ([NAN] * 4, "EPSG:32631", "finite"),
    "infinite": ([0.0, 0.0, INF, 1.0], "EPSG:32631", "finite"),
    "NaN in words": ([0.0, 0.0, "NaN", 1.0], "EPSG:32631", "bbox"),
    "least x above most x": ([10.0, 0.0, 5.0, 1.0], "EPSG:32631", "min x, min y"),
    "least y above most y": ([0.0, 9.0, 5.0, 1.0], "EPSG:4326", "min x, min y"),
    "three numbers": ([0.0, 0.0, 1.0], "EPSG:32631", "bbox"),
    "beyond the degrees": ([0.0, 0.0, 1.0, 91.0], "EPSG:4326", "outside the degrees"),
    "in pixels": ([0.0, 0.0, 1.0, 1.0], "pixel", "required and unknown: bbox"),
    "unknown system": ([0.0, 0.0, 1.0, 1.0], "EPSG:999999", "EPSG:999999"),
    "no system's name": ([0.0, 0.0, 1.0, 1.0], "somewhere", "somewhere"),
    "no system": ([0.0, 0.0, 1.0, 1.0], None, "needs its crs"),
    "a system that says nothing": ([0.0, 0.0, 1.0, 1.0], " unknown ", "needs its crs"),
}


@pytest.mark.parametrize("kind", BOXES)
def test_bounds_that_are_no_place_are_refused(refused, written, kind):
    bbox, crs, says = BOXES[kind]
    refused(written({"bbox": bbox, "crs": crs}), "record 'bad'", says)


@pytest.mark.parametrize("twin", ["s1", " s1", "s1\n", "\ufeffs1", "s\u200b1", "\uff531"])
def test_an_id_that_stands_twice_is_refused(refused, written, twin):
    refused(written({"sample_id": twin}), "sample_id must be unique", "'s1'")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"sample_id": "bad", "task": "t", "task": "u"}', "record 'bad': field 'task' stands there more than once"),
        ('{"sample_id": "bad", "task": "t", "grup_id": "g"}', "record 'bad': unknown field 'grup_id'"),
        ('{"sample_id": "bad", "task": "t", "open_fixture": true}', "record 'bad': unknown field 'open_fixture'"),
        ('{"sample_id": "bad", "task": "t", "split": "tset"}', "record 'bad': split 'tset' is no role"),
        ('{"sample_id": "bad", "task": "t"', "line 2: is not JSON"),
        ("[" * 100_000, "line 2"),
        ("\x00\xff", "line 2"),
    ],
)
def test_lines_that_are_no_record_are_refused(refused, world, line, says):
    source = world.write([declared(world, "s0", 0)])
    source.write_bytes(source.read_bytes() + line.encode("latin-1") + b"\n")
    refused(source, says)


@pytest.mark.parametrize("blank", [None, NAN])
@pytest.mark.parametrize("field", ["group_id", "object_ids", "label_sha256"])
def test_a_blank_cell_of_a_table_fills_no_field(refused, world, field, blank):
    """NaN is what table libraries leave where a text is missing."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist([{**declared(world, "bad", 7), field: blank}])
    pq.write_table(table, world.root / "source.parquet")
    refused(world.root / "source.parquet", "record 'bad'", field)


@pytest.fixture
def columns(world):
    """A table of two good records, and what stands in its file after a change."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def call(change):
        table = pa.Table.from_pylist([declared(world, f"s{i}", i) for i in range(2)])
        pq.write_table(change(table), world.root / "source.parquet")
        return world.root / "source.parquet"

    return call


@pytest.mark.parametrize("at", [0, 1, 13])
def test_two_columns_of_one_name_are_refused(refused, columns, at):
    import pyarrow as pa

    source = columns(lambda table: table.add_column(at, "group_id", pa.array(["same", "same"])))
    refused(source, "source.parquet: expected columns of different names, found ['group_id'] more than once")


def cells():
    import datetime as dt
    import decimal

    import pyarrow as pa

    day = dt.date(2020, 1, 1)
    return {
        "date": pa.array([None, day]),
        "timestamp": pa.array([None, dt.datetime(2020, 1, 1, tzinfo=dt.UTC)]),
        "time": pa.array([None, dt.time(1)]),
        "duration": pa.array([None, dt.timedelta(1)]),
        "decimal": pa.array([None, decimal.Decimal("1.5")]),
        "binary": pa.array([None, b"\xff\xfe"]),
        "list of dates": pa.array([None, [day]]),
        "table of dates": pa.array([None, {"a": day}]),
        "dictionary of dates": pa.array([None, day]).dictionary_encode(),
    }


@pytest.mark.parametrize("kind", cells())
@pytest.mark.parametrize("field", ["acquisition_id", "object_ids", "strata", "more"])
def test_a_column_of_another_kind_is_refused_by_name_and_first_record(refused, columns, kind, field):
    def change(table):
        have = table.column_names
        column = cells()[kind]
        return (
            table.set_column(have.index(field), field, column) if field in have else table.append_column(field, column)
        )

    refused(columns(change), "row 2, record 's1'", f"column '{field}' must hold texts", "write it as text")


def test_a_column_of_another_kind_without_a_value_is_a_blank(refused, columns):
    import pyarrow as pa

    blank = pa.nulls(2, pa.date32())
    refused(
        columns(lambda table: table.set_column(table.column_names.index("group_id"), "group_id", blank)),
        "record 's0': required and unknown: group_id",
    )


def test_a_table_that_is_damaged_is_refused(refused, columns):
    source = columns(lambda table: table)
    data = bytearray(source.read_bytes())
    data[8:200] = bytes(192)
    source.write_bytes(data)
    refused(source, "source.parquet: cannot be read as Parquet")


def test_a_stratum_that_stands_twice_is_refused(refused, columns):
    import pyarrow as pa

    pairs = pa.array([[("a", "b"), ("a", "c")], []], pa.map_(pa.string(), pa.string()))
    refused(columns(lambda table: table.append_column("strata", pairs)), "row 1", "'a' stands there more than once")

    def both(table):
        return table.append_column("strata.a", pa.array(["b", "b"])).append_column(
            "strata", pa.array([{"a": None}, {"a": "c"}])
        )

    refused(columns(both), "row 2", "'a' stands there more than once")


@pytest.fixture
def placed(world):
    """A GeoParquet source of two records, after a change of its Arrow table."""
    import geopandas as gpd
    import pyarrow.parquet as pq
    import shapely

    def call(change):
        records = [declared(world, f"s{i}", i) for i in range(2)]
        boxes = [shapely.box(*one.pop("bbox")) for one in records]
        system = {one.pop("crs") for one in records}.pop()
        path = world.root / "source.parquet"
        gpd.GeoDataFrame(records, geometry=boxes, crs=system).to_parquet(path)
        pq.write_table(change(pq.read_table(path)), path)
        return path

    return call


def geo(table, **changes):
    """The table with another description of its geometry column."""
    said = json.loads(table.schema.metadata[b"geo"])
    said["columns"]["geometry"].update(changes)
    return table.replace_schema_metadata({**table.schema.metadata, b"geo": json.dumps(said).encode()})


def test_a_geoparquet_source_is_held_to_the_same(refused, placed, run, tmp_path):
    import datetime as dt

    import pyarrow as pa

    wkb = pa.array([b"xx", b"yy"])
    dates = pa.array([dt.date(2020, 1, 1)] * 2)
    refused(placed(lambda table: table.append_column("group_id", pa.array(["g", "g"]))), "['group_id'] more than once")
    refused(placed(lambda table: table.append_column("geometry", table["geometry"])), "['geometry'] more than once")
    refused(
        placed(lambda table: table.set_column(table.column_names.index("group_id"), "group_id", dates)),
        "row 1, record 's0': column 'group_id' must hold texts",
    )
    refused(placed(lambda table: table.append_column("centre", wkb)), "record 's0': column 'centre'")
    refused(
        placed(lambda table: table.set_column(table.column_names.index("geometry"), "geometry", wkb)),
        "column 'geometry', row 1: expected a geometry as WKB",
    )
    refused(placed(lambda table: table.drop_columns("geometry")), "found no such column")
    refused(placed(lambda table: geo(table, encoding="polygon")), "found the encoding 'polygon'")
    refused(placed(lambda table: geo(table, crs="somewhere")), "GeoParquet metadata cannot be read")
    refused(placed(lambda table: table.replace_schema_metadata({b"geo": b"[]"})), "GeoParquet metadata cannot be read")
    source = placed(lambda table: table)
    assert run("split", "build", source, "--out", tmp_path / "out", *SHARES)[0] == 0


def bomb(path):
    """A PNG of a few hundred bytes that claims 60,000 x 60,000 pixels."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 0, 0, 0, 0)
    body = zlib.compress(bytes(60_001))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b""))


OUTSIDE = {
    "path outside the root": ("../outside.tif", "leads out of the root"),
    "path that climbs inside": ("raw/../../outside.tif", "leads out of the root"),
    "absolute path": ("/etc/hosts", "leads out of the root"),
    "drive": ("C:/outside.tif", "leads out of the root"),
    "link out of the root": ("raw/link.tif", "is a link that leads out of the root"),
    "folder that leads out": ("elsewhere/outside.tif", "is a link that leads out of the root"),
    "nothing in it": ("raw/empty.tif", "holds 0 bytes"),
    "not there": ("raw/nowhere.tif", "expected a file"),
    "5,000 characters": ("raw/" + "x" * 5000, "is too long to name a file (5,004 characters)"),
    "5,000 characters in folders": ("xxx/" * 1250 + "a.tif", "is too long to name a file"),
    "a name of 300 bytes": ("raw/" + "\u00e9" * 150, "is too long to name a file"),
    "folder": ("raw", "expected a file"),
}
IMAGES = {
    "decompression bomb": ("raw/bomb.png", "claims 60000 x 60000 pixels"),
    "refers to others": ("raw/other.vrt", "is no GeoTIFF"),
    "broken": ("raw/broken.tif", "cannot be"),
}


@pytest.fixture
def traps(world, tmp_path):
    """A record with files, and traps beside them."""
    record = world.record("bad", 7)
    raw = world.root / "raw"
    (tmp_path / "outside.tif").write_bytes((raw / "bad.tif").read_bytes())
    (raw / "link.tif").symlink_to(tmp_path / "outside.tif")
    (world.root / "elsewhere").symlink_to(tmp_path, target_is_directory=True)
    (raw / "empty.tif").touch()
    (raw / "broken.tif").write_bytes((raw / "bad.tif").read_bytes()[:300])
    (raw / "other.vrt").write_text("<VRTDataset rasterXSize='1' rasterYSize='1'/>")
    bomb(raw / "bomb.png")
    return record


@pytest.mark.parametrize("field", ["raw_image", "processed_image", "label", "provenance"])
@pytest.mark.parametrize("kind", OUTSIDE)
def test_a_path_that_does_not_hold_is_refused(refused, world, traps, kind, field):
    path, says = OUTSIDE[kind]
    refused(world.write([declared(world, "s0", 0), {**traps, field: path}]), f"record 'bad': {field}", says)


@pytest.mark.parametrize("field", ["raw_image", "processed_image"])
@pytest.mark.parametrize("kind", IMAGES)
def test_an_image_that_does_not_hold_is_refused(refused, world, traps, kind, field):
    path, says = IMAGES[kind]
    if kind == "broken" and field == "raw_image":
        # Looks are taken from the processed image; without one, the raw image is decoded.
        traps.pop("processed_image")
        traps["processed_image_sha256"] = "0" * 64
    refused(world.write([declared(world, "s0", 0), {**traps, field: path}]), f"record 'bad': {field}", says)


@pytest.mark.parametrize("field", ["raw_image", "processed_image", "label"])
def test_a_record_without_one_of_its_files_is_refused(refused, world, field):
    record = world.record("bad", 7)
    del record[field]
    refused(world.write([declared(world, "s0", 0), record]), f"record 'bad': required and unknown: {field}_sha256")


def test_a_mask_cannot_claim_to_hold_no_feature(refused, world):
    record = world.record("bad", 7, object_ids=[])
    record["label"], record["label_geometry_hash"] = record["raw_image"], empty_label_hash()
    refused(world.write([record]), "record 'bad'")


@pytest.mark.parametrize("field", ["raw_image_sha256", "label_sha256", "label_geometry_hash", "perceptual_hash"])
def test_a_hash_that_is_not_that_of_the_bytes_is_refused(refused, world, field):
    record = world.record("bad", 7)
    record[field] = "0" * (16 if field == "perceptual_hash" else 64)
    refused(world.write([record]), f"record 'bad': {field} is declared as 0000")


def test_another_root_is_held_to_the_same(refused, world, traps, tmp_path):
    source = tmp_path / "source.jsonl"
    source.write_text(json.dumps({**traps, "raw_image": "raw/link.tif"}) + "\n")
    refused(source, "record 'bad': raw_image", "leads out of the root", more=("--root", world.root))
    source.write_text(json.dumps({**traps, "group_id": "unknown"}) + "\n")
    refused(source, "record 'bad': required and unknown: group_id", more=("--root", world.root))


def test_production_refuses_an_asset_manifest_that_was_edited(refused, world):
    record = world.record("bad", 7)
    assets = world.root / "assets.json"
    assets.write_bytes(asset_manifest(world.root, [record["raw_image"]]))
    sha256 = file_digest(assets)
    assets.write_bytes(assets.read_bytes().replace(b'"size":', b'"size":1'))
    more = ("--assets", assets, "--assets-sha256", sha256)
    provenance = {"provenance": record["label"]}
    refused(world.write([{**record, **provenance}]), "assets.json: expected the hash", more=more)
    # Without a provenance record, the record itself is refused.
    refused(world.write([record]), more=more)


@pytest.mark.parametrize("command", ["check", "show"])
def test_a_manifest_that_was_edited_after_hashing_is_refused(run, world, tmp_path, command):
    source = world.write([declared(world, f"s{i}", i) for i in range(4)])
    assert run("split", "build", source, "--out", tmp_path / "out", *SHARES)[0] == 0
    path = tmp_path / "out" / "protected.json"
    path.write_bytes(path.read_bytes().replace(b'"task":"detection"', b'"task":"detectioN"', 1))
    before = tree(tmp_path)
    more = ("--out", tmp_path / "checked") if command == "check" else ("--picture", tmp_path / "map.svg")
    code, out, err = run("split", command, tmp_path / "out" / "development.json", path, *more)
    assert (code, out) == (2, "")
    assert "protected.json" in err
    assert "edited after hashing" in err
    assert tree(tmp_path) == before
