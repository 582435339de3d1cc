"""Anybody's split read as samples, its gates, and the exact counts of who is involved."""

from __future__ import annotations

import json

import numpy as np
import pytest

from geoeval.errors import ColumnError, GeoevalError, InputError
from geoeval.splits.list_check import Demands, check_list
from geoeval.splits.list_inputs import read_inputs
from geoeval.splits.lists import ListOptions, read_split_list


@pytest.fixture
def write(tmp_path):
    def make(text, name="list.csv"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return make


def gate(found, name):
    return next(one for one in found.gates if one.result.id == name)


def points(*rows):
    return "sample_id,split,lon,lat\n" + "".join(f"{a},{b},{x},{y}\n" for a, b, x, y in rows)


def test_columns_are_guessed_and_the_guesses_are_said(write):
    read = read_split_list([write(points(("a", "train", 5, 50), ("b", "validation", 6, 50)))])
    assert read.table.splits()[1] == ("train", "val")
    assert read.table.text("crs", 0) == "EPSG:4326"
    assert {"split column", "id column", "bounds", "crs"} <= set(read.notes)


def test_text_of_a_csv_stays_text(write):
    """A long id keeps its digits although a row lacks it, and 007 is not 7."""
    text = "id,split,site\na,train,9007199254740993\nb,test,9007199254740992\nc,test,\nd,train,007\ne,test,7\n"
    found = check_list(read_split_list([write(text)]), Demands(buffer_m=None))
    assert gate(found, "identity").result.status == "pass"
    assert gate(found, "identity").result.unknown == {"site": 1}
    assert found.exit_code == 0


def test_the_order_of_rows_does_not_matter(write):
    rows = [(f"s{i}", "train" if i % 2 else "test", 5 + i / 100, 50) for i in range(20)]
    checks = [
        check_list(read_split_list([write(points(*order), name)]), Demands(min_area_m2=0, buffer_m=1000))
        for order, name in ((rows, "a.csv"), (rows[::-1], "b.csv"))
    ]
    first, second = ([(g.result, g.facts) for g in one.gates] for one in checks)
    assert first == second


def test_one_file_for_each_split_is_named_by_stem_or_by_the_caller(write):
    a = write("id,minx,miny,maxx,maxy\na,0,0,10,10\n", "tiles.csv")
    b = write("id,minx,miny,maxx,maxy\nb,5,5,15,15\n", "test.csv")
    read = read_split_list([f"train={a}", b], ListOptions(crs="EPSG:32631"))
    assert read.table.splits()[1] == ("test", "train")
    found = check_list(read, Demands(buffer_m=None, min_area_m2=1))
    assert gate(found, "overlap").result.witnesses[0].evidence == {"area_m2": 25.0}


def test_one_id_in_two_splits_is_a_leak_and_not_a_mistake_of_the_list(write):
    found = check_list(read_split_list([write("id,split\na,train\na,test\n")]), Demands(buffer_m=None))
    assert gate(found, "identity").result.count == 1
    assert found.exit_code == 3


def test_a_group_in_two_folds_is_found_and_its_samples_are_counted(write):
    text = "id,fold,aoi\n" + "".join(
        f"s{i},{fold},{aoi}\n" for i, (fold, aoi) in enumerate(["0A", "0A", "1A", "1B", "2B"])
    )
    found = check_list(read_split_list([write(text)]), Demands(buffer_m=None))
    own = gate(found, "identity")
    assert (own.result.count, own.facts.values["aoi"]) == (3, 2)
    assert own.facts.samples == {"0": {"1": 2}, "1": {"0": 1, "2": 1}, "2": {"1": 1}}
    assert own.result.witnesses[0].relation == "aoi"


def test_a_declared_group_that_says_nothing_cannot_pass(write):
    read = read_split_list([write("id,split,g\na,train,\nb,test,unknown\n")], ListOptions(groups=("g",)))
    assert check_list(read, Demands(buffer_m=None)).exit_code == 2


def test_without_geometry_the_buffer_is_not_decidable(write):
    read = read_split_list([write("id,split\na,train\nb,test\n")])
    found = check_list(read)
    assert gate(found, "buffer").result.reason == "no_geometry"
    assert (found.exit_code, check_list(read, Demands(buffer_m=None)).exit_code) == (2, 0)


def test_nothing_demanded_is_not_a_pass(write):
    read = read_split_list([write("split,colour\ntrain,red\ntest,red\n")], ListOptions(id="none"))
    found = check_list(read, Demands(buffer_m=None, require=("exact_bytes",)))
    assert found.exit_code == 2


def test_hashes_in_a_list_are_compared(write):
    code = "00000000000000ff"
    text = f"id,split,sha256,phash\na,train,{'AB' * 32},{code}\nb,test,{'ab' * 32},00000000000000fe\n"
    found = check_list(read_split_list([write(text)]), Demands(buffer_m=None))
    assert gate(found, "exact_bytes").result.count == 1
    assert gate(found, "near_duplicate").result.witnesses[0].evidence == {"bits": 1}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("id,split\na,train\na,train\n", r"list.csv, row 2: id 'a' stands more than once"),
        ("id,kind\na,train\n", "expected a column that names the split"),
        ("id,split,minx,miny,maxx,maxy,epsg\na,train,0,nan,1,1,32631\n", "row 1: bounds must be finite"),
        ("id,split,minx,miny,maxx,maxy,epsg\na,train,0,,1,1,32631\n", "row 1: bounds must be finite"),
        ("id,split,minx,miny,maxx,maxy,epsg\na,train,0,0,1,1,32631\nb,test,5,0,1,1,32631\n", "record 'b'"),
        ("id,split,minx,miny,maxx,maxy,epsg\na,train,0,0,1,1,99999\n", "row 1: crs: cannot understand"),
        ("id,split,minx,miny,maxx,maxy\na,train,0,0,1,1\n", "declare --crs"),
        ("id,split,minx,miny,maxx,maxy,epsg\na,train,zero,0,1,1,32631\n", "row 1: column 'minx' must hold numbers"),
        ("id,split\n", "found no row"),
        ("id,split\na,\nb,test\n", "row 1: column 'split' names no split"),
        ("id,split\n,train\nb,test\n", "row 1: column 'id' must hold an id"),
        ("id,split,phash\na,train,xyz\n", "16 hexadecimal digits"),
        ("id,split,split\na,train,test\n", "rename one"),
        ("id,split\na,train,extra\n", "expected rows and columns"),
    ],
)
def test_hostile_lists_are_refused_with_the_row_named(write, text, says):
    with pytest.raises(GeoevalError, match=says):
        read_split_list([write(text)])


def test_an_empty_file_and_a_missing_column_are_refused(write, tmp_path):
    (tmp_path / "none.csv").write_bytes(b"")
    with pytest.raises(InputError, match="0 bytes"):
        read_split_list([str(tmp_path / "none.csv")])
    with pytest.raises(ColumnError, match="did you mean 'split'"):
        read_split_list([write("id,split\na,train\n")], ListOptions(split="splt"))


def test_overlap_across_the_antimeridian_and_across_systems(write):
    """A box over 180° meets its neighbour on the other side; a UTM tile meets the same ground in degrees."""
    text = "id,split,west,south,east,north\na,train,179,0,-179,1\nb,test,-179.5,0,-178,1\nc,test,170,0,171,1\n"
    found = check_list(read_split_list([write(text)]), Demands(buffer_m=None, min_area_m2=1))
    own = gate(found, "overlap")
    assert own.result.count == 1
    assert own.result.witnesses[0].evidence["area_m2"] == pytest.approx(0.5 * 111319.49 * 110574.4, rel=1e-3)
    text = (
        "id,split,minx,miny,maxx,maxy,epsg\na,train,500000,5600000,501000,5601000,32631\n"
        "b,test,2.9,50.0,3.5,51.0,4326\n"
    )
    own = gate(check_list(read_split_list([write(text)]), Demands(buffer_m=None, min_area_m2=1)), "overlap")
    assert own.result.witnesses[0].evidence["area_m2"] == pytest.approx(1e6, rel=2e-3)
    assert own.facts.within == {"train": {"test": 1}}


def test_a_pair_that_meets_on_both_sides_of_the_antimeridian_is_one(write):
    text = "id,split,west,south,east,north\na,train,170,0,-170,1\nb,test,-180,0,180,1\n"
    found = check_list(read_split_list([write(text)]), Demands(buffer_m=None, min_area_m2=1))
    assert gate(found, "overlap").result.count == 1
    assert gate(found, "overlap").result.witnesses[0].evidence["area_m2"] == pytest.approx(
        20 * 111319.49 * 110574, rel=1e-3
    )


def test_tiles_that_only_touch_do_not_overlap(write):
    text = "id,split,minx,miny,maxx,maxy,epsg\na,train,500000,0,500010,10,32631\nb,test,500010,0,500020,10,32631\n"
    found = check_list(read_split_list([write(text)]), Demands(buffer_m=None, min_area_m2=0))
    assert gate(found, "overlap").result.status == "pass"


def test_a_point_overlaps_the_tile_it_lies_in(write):
    tiles = write("id,minx,miny,maxx,maxy,epsg\na,500000,0,500010,10,32631\n", "train.csv")
    wells = write("id,x,y,epsg\nw,500005,5,32631\nv,500050,5,32631\n", "test.csv")
    found = check_list(read_split_list([tiles, wells]), Demands(buffer_m=None, min_area_m2=1))
    assert gate(found, "overlap").facts.samples["test"] == {"train": 1}


@pytest.mark.parametrize("neighbourhood", [4, 8])
def test_grid_neighbours_agree_with_brute_force(write, neighbourhood):
    rng = np.random.default_rng(5)
    cells = rng.integers(0, 12, size=(120, 2))
    split = rng.choice(["train", "val", "test"], size=120)
    text = "id,split,a,b,zone\n" + "".join(
        f"s{i},{s},{a},{b},{i % 2}\n" for i, (s, (a, b)) in enumerate(zip(split, cells, strict=True))
    )
    read = read_split_list([write(text)], ListOptions(grid=("a", "b"), grid_within="zone"))
    own = gate(check_list(read, Demands(buffer_m=None, neighbourhood=neighbourhood)), "adjacency")
    pairs = set()
    for i in range(120):
        for j in range(i):
            d = np.abs(cells[i] - cells[j])
            near = d.max() <= 1 if neighbourhood == 8 else d.sum() <= 1
            if near and split[i] != split[j] and i % 2 == j % 2:
                pairs.add((i, j))
    assert own.result.count == len(pairs)
    tests = {k for pair in pairs for k in pair if split[k] == "test" and "train" in split[list(pair)]}
    assert own.facts.samples["test"]["train"] == len(tests)


def test_unique_values_are_counted_once_whichever_way_round(write):
    """Two years of two quads: four pairs of images, one pair of quads."""
    rows = [("a1", "train", "A", 0), ("a2", "train", "A", 0), ("b1", "test", "B", 5), ("b2", "test", "B", 5)]
    text = "id,split,quad,minx,miny,maxx,maxy,epsg\n" + "".join(
        f"{i},{s},{q},{500000 + x},0,{500010 + x},10,32631\n" for i, s, q, x in rows
    )
    read = read_split_list([write(text)], ListOptions(keep=("quad",)))
    own = gate(check_list(read, Demands(min_area_m2=1, unique="quad")), "overlap")
    assert (own.result.count, own.facts.unique.pairs, own.facts.unique.values) == (4, 1, {"test": 1, "train": 1})


def test_geojson_and_parquet_give_what_csv_gives(write, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    ring = [[5, 50], [5.1, 50], [5.1, 50.1], [5, 50.1], [5, 50]]
    feature = {"type": "Feature", "properties": {"id": "a", "split": "train"}}
    layer = {
        "type": "FeatureCollection",
        "features": [{**feature, "geometry": {"type": "Polygon", "coordinates": [ring]}}],
    }
    read = read_split_list([write(json.dumps(layer), "a.geojson")])
    bbox = [{"xmin": 5.0, "ymin": 50.0, "xmax": 5.1, "ymax": 50.1}]
    pq.write_table(pa.table({"id": ["a"], "split": ["train"], "bbox": bbox}), tmp_path / "a.parquet")
    other = read_split_list([str(tmp_path / "a.parquet")], ListOptions(crs="EPSG:4326"))
    assert read.table.bounds.tolist() == other.table.bounds.tolist() == [[5.0, 50.0, 5.1, 50.1]]


def test_manifests_are_checked_with_the_key_and_are_not_decidable_without(world):
    from geoeval.splits.building import build, write_manifests
    from geoeval.splits.settings import SplitSettings

    source = world.write([world.record(f"s{i}", i, files=False, raw_image_sha256=f"{i:064x}") for i in range(6)])
    shares = {"train": 0.5, "test": 0.3, "challenge": 0.2}
    result = build(source, SplitSettings(shares=shares, required=()), key=b"k" * 16)
    paths = write_manifests(result, world.root / "out")
    files = [str(paths["development"]), str(paths["protected"])]
    demands = Demands(splits=("train", "test", "challenge"))
    assert check_list(read_inputs(files, key=b"k" * 16), demands).exit_code == 0
    assert check_list(read_inputs(files), demands).exit_code == 2
    edited = world.root / "edited.json"
    edited.write_bytes(paths["protected"].read_bytes().replace(b'"test"', b'"train"', 1))
    with pytest.raises(InputError, match="edited after"):
        read_inputs([files[0], str(edited)])


@pytest.mark.shared
def test_delmarva_has_42_overlapping_quad_pairs_and_95_test_images(shared_data):
    path = str(shared_data / "split_manifests" / "delmarva_naip_tiles.csv")
    read = read_split_list([path], ListOptions(groups=("quad",), keep=("quad",)))
    found = check_list(read, Demands(min_area_m2=1.0, unique="quad", buffer_m=None))
    own = gate(found, "overlap")
    assert own.facts.unique.pairs == 42
    assert own.facts.unique.values == {"test": 14, "train": 16}
    assert own.facts.samples["test"] == {"train": 95}
    assert gate(found, "identity").result.status == "pass"


@pytest.mark.shared
@pytest.mark.parametrize(("neighbourhood", "touching"), [(8, 536), (4, 431)])
def test_hls_validation_chips_touch_training_chips(shared_data, neighbourhood, touching):
    path = str(shared_data / "split_manifests" / "hls_crop_chips.csv")
    read = read_split_list([path], ListOptions(grid=("a", "b")))
    own = gate(check_list(read, Demands(buffer_m=None, neighbourhood=neighbourhood)), "adjacency")
    assert own.facts.samples["val"] == {"train": touching}


@pytest.mark.shared
def test_spacenet7_has_no_aoi_in_two_folds_and_no_geometry(shared_data):
    found = check_list(read_split_list([str(shared_data / "split_manifests" / "spacenet7_folds.csv")]))
    assert gate(found, "identity").result.status == "pass"
    assert "aoi" in gate(found, "identity").result.counts
    buffer = gate(found, "buffer").result
    assert (buffer.status, buffer.reason, found.exit_code) == ("not_evaluable", "no_geometry", 2)


@pytest.mark.shared
def test_48_poultry_test_barns_intersect_train_tiles_and_46_lie_within(shared_data):
    folder = shared_data / "poultry_delmarva"
    files = [f"test={folder / 'reference_test_barns.geojson'}", f"train={folder / 'tiles_train.geojson'}"]
    own = gate(check_list(read_split_list(files), Demands(buffer_m=None, min_area_m2=1)), "overlap")
    assert (own.facts.samples["test"], own.facts.within) == ({"train": 48}, {"test": {"train": 46}})
