"""``geoeval split``: exit codes, what is printed, what is written, and what is not."""

from __future__ import annotations

import json

import pytest

from geoeval.splits.record import CONTRACT


@pytest.fixture
def tiles(tmp_path):
    path = tmp_path / "tiles.csv"
    path.write_text(
        "id,split,quad,minx,miny,maxx,maxy,epsg\n"
        "a,train,A,500000,0,500010,10,32631\n"
        "b,test,B,500005,5,500015,15,32631\n"
        "c,test,C,590000,0,590010,10,32631\n"
    )
    return path


def test_a_leak_exits_3_and_says_who_is_in_it(cli, tiles):
    said = cli("split", "check", tiles, "--min-area", 1, "--unique", "quad")
    assert said.code == 3
    assert "1 of 2 test samples overlap train" in said.out
    assert "1 unique pairs of quad values" in said.out
    assert "'a' (train) and 'b' (test): overlap, 25.0 m² shared" in said.out


def test_a_clean_list_exits_0(cli, tmp_path):
    path = tmp_path / "clean.csv"
    path.write_text("id,split,lon,lat\na,train,5,50\nb,test,6,50\n")
    assert cli("split", "check", path).code == 0
    assert cli("split", "check", path, "--buffer", 100_000).code == 3


def test_without_geometry_it_is_not_decidable_unless_no_buffer_is_demanded(cli, tmp_path):
    path = tmp_path / "folds.csv"
    path.write_text("id,fold,aoi\na,0,x\nb,1,y\n")
    said = cli("split", "check", path)
    assert said.code == 2
    assert "no_geometry" in said.out
    assert cli("split", "check", path, "--no-buffer").code == 0
    assert cli("split", "check", path, "--no-buffer", "--require", "exact_bytes").code == 2


def test_json_is_one_object_and_guesses_go_to_stderr(cli, tiles):
    said = cli("split", "check", tiles, "--json")
    assert said.json["status"] == "fail"
    assert "guessed" in said.err
    assert said.code == 3


def test_the_folder_is_written_whole_and_twice_the_same(cli, tiles, tmp_path):
    arguments = ("split", "check", tiles, "--min-area", 1, "--out")
    assert cli(*arguments, tmp_path / "a").code == 3
    assert cli(*arguments, tmp_path / "b").code == 3
    names = ["check.json", "offending.gpkg", "pairs.csv"]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == names
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert cli(*arguments, tmp_path / "a").code == 3
    (tmp_path / "a" / "more.txt").write_text("x")
    assert cli(*arguments, tmp_path / "a").code == 2


def test_a_hostile_list_is_refused_and_nothing_is_written(cli, tmp_path):
    path = tmp_path / "twice.csv"
    path.write_text("id,split\na,train\na,train\n")
    said = cli("split", "check", path, "--out", tmp_path / "out")
    assert (said.code, said.out) == (2, "")
    assert "row 2" in said.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--buffer", 10, "--no-buffer"),
        ("--group", "quad", "--no-group"),
        ("--grid-index", "a"),
        ("--grid-within", "quad"),
        ("--require", "bufer"),
        ("--require-split", "tst"),
        ("--buffer", "nan"),
        ("--unique", "nothing"),
    ],
)
def test_options_that_make_no_sense_are_refused(cli, tiles, arguments):
    said = cli("split", "check", tiles, *arguments)
    assert said.code == 2
    assert "Traceback" not in said.err


def test_show_prints_roles_and_draws_a_map(cli, tiles, tmp_path):
    said = cli("split", "show", tiles, "--by", "quad", "--picture", tmp_path / "map.svg")
    assert said.code == 0
    assert "test" in said.out
    assert (tmp_path / "map.svg").read_bytes().startswith(b"<?xml")
    assert cli("split", "show", tiles, "--json").json["splits"][0]["samples"] == 1


def source(tmp_path, *, near=False, role=None, samples=10):
    records = []
    for i in range(samples):
        x = 500_000.0 + (100.0 if near else 20_000.0) * i
        record = {"sample_id": f"s{i}", "task": "t", "bbox": [x, 0.0, x + 10, 10.0], "crs": "EPSG:32631"}
        records.append(record if role is None else {**record, "split": role[i % len(role)]})
    path = tmp_path / "source.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "split.toml"
    path.write_text("[split]\nbuffer_m = 2000\nshares = { train = 0.6, test = 0.4 }\nrequired = ['bbox']\n")
    return path


def test_build_writes_manifests_that_check_passes(cli, tmp_path, config):
    out = tmp_path / "out"
    said = cli("split", "build", source(tmp_path), "--config", config, "--out", out)
    assert said.code == 0
    assert "train: 6 samples (60.0%), wanted 6.0" in said.out
    assert sorted(path.name for path in out.iterdir()) == ["development.json", "protected.json", "split.json"]
    assert cli("split", "check", out / "development.json", out / "protected.json").code == 0
    assert cli("split", "show", out / "development.json", out / "protected.json").code == 0


def test_build_refuses_declared_splits_that_leak_and_names_the_pairs(cli, tmp_path, config):
    path = source(tmp_path, near=True, role=["train", "test"])
    said = cli("split", "build", path, "--config", config, "--out", tmp_path / "out")
    assert said.code == 2
    assert "'s0'" in said.err
    assert "metres" in said.err
    assert not (tmp_path / "out").exists()
    assert cli("split", "check", path).code == 3


def test_build_reports_a_giant_component(cli, tmp_path, config):
    said = cli("split", "build", source(tmp_path, near=True), "--config", config, "--out", tmp_path / "out")
    assert said.code == 2
    said = cli(
        "split",
        "build",
        source(tmp_path, near=True),
        "--share",
        "train=1",
        "--share",
        "test=0",
        "--require",
        "bbox",
        "--out",
        tmp_path / "o",
    )
    assert said.code == 0
    assert "components: 1" in said.out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("buffer = 2000\n", "unknown key 'buffer'"),
        ("[split]\nshares = { trian = 1.0 }\n", "trian"),
        ("buffer_m = \n", "TOML"),
        ("required = ['bbx']\n", "unknown field 'bbx'; did you mean 'bbox'?"),
        ("optional = ['grup_id']\n", "'grup_id' is no field that is demanded; did you mean 'group_id'?"),
        ("optional = 'bbox'\n", "expected a list of fields, got 'bbox'"),
        ("required = ['bbox']\noptional = ['bbox']\n", "'bbox' is required, too"),
        ("[split]\noptional = ['task']\n", "bad.toml: split.optional: 'task' cannot be left open"),
    ],
)
def test_build_refuses_a_bad_configuration(cli, tmp_path, text, says):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    said = cli("split", "build", source(tmp_path), "--config", path, "--out", tmp_path / "out")
    assert said.code == 2
    assert says in said.err


#: Fields of the contract that the samples of these tests leave open.
OPEN = [one for one in CONTRACT if one not in ("task", "bbox", "record_sha256")]


def options(name, fields):
    return [part for one in fields for part in (name, one)]


def demanded(out):
    return json.loads((out / "development.json").read_bytes())["settings"]["required"]


@pytest.fixture
def bare(tmp_path):
    path = tmp_path / "bare.toml"
    path.write_text("shares = { train = 0.6, test = 0.4 }\n")
    return path


def test_build_demands_the_contract_and_names_every_record_and_how_to_go_on(cli, tmp_path, bare):
    said = cli("split", "build", source(tmp_path, samples=13), "--config", bare, "--out", tmp_path / "out")
    assert said.code == 2
    assert "source.jsonl: 13 records say nothing in required fields" in said.err
    named = [f"record 's{i}': required and unknown: {', '.join(OPEN)}" in said.err for i in range(13)]
    assert sum(named) == 10
    assert "… and 3 more records" in said.err
    assert "declare them optional with --optional FIELD" in said.err
    assert not (tmp_path / "out").exists()


def test_build_takes_fields_off_what_is_demanded_and_the_manifest_says_so(cli, tmp_path, bare):
    arguments = ("split", "build", source(tmp_path), "--config", bare, "--out")
    assert cli(*arguments, tmp_path / "out", *options("--optional", OPEN)).code == 0
    assert demanded(tmp_path / "out") == ["task", "bbox", "record_sha256"]
    said = cli(*arguments, tmp_path / "less", *options("--optional", OPEN[1:]))
    assert said.code == 2
    assert f"record 's0': required and unknown: {OPEN[0]}\n" in said.err


def test_build_takes_another_list_of_demanded_fields(cli, tmp_path, bare):
    arguments = ("split", "build", source(tmp_path), "--config", bare, "--out")
    assert cli(*arguments, tmp_path / "out", "--require", "bbox", "--require", "crs").code == 0
    assert demanded(tmp_path / "out") == ["bbox", "crs"]
    assert cli(*arguments, tmp_path / "less", "--require", "bbox", "--require", "group_id").code == 2


def test_the_command_line_takes_more_off_and_replaces_the_list_of_the_file(cli, tmp_path, bare):
    text = bare.read_text()
    arguments = ("split", "build", source(tmp_path), "--config", bare, "--out")
    bare.write_text(f"{text}optional = {OPEN[:-1]}\n")
    assert cli(*arguments, tmp_path / "a").code == 2
    assert cli(*arguments, tmp_path / "b", "--optional", OPEN[-1]).code == 0
    assert cli(*arguments, tmp_path / "c", "--require", "bbox").code == 0
    assert demanded(tmp_path / "c") == ["bbox"]
    bare.write_text(f"{text}required = ['bbox', 'group_id']\n")
    assert cli(*arguments, tmp_path / "d").code == 2
    assert cli(*arguments, tmp_path / "e", "--optional", "group_id").code == 0
    assert demanded(tmp_path / "e") == ["bbox"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--require", "grup_id"), "unknown field 'grup_id'; did you mean 'group_id'?"),
        (("--optional", "grup_id"), "'grup_id' is no field that is demanded; did you mean 'group_id'?"),
        (("--optional", "raw_image"), "'raw_image' is no field that is demanded; did you mean 'raw_image_sha256'?"),
        (("--require", "bbox", "--optional", "bbox"), "--optional: 'bbox' is required, too"),
        (("--optional", "task"), "'task' cannot be left open"),
        (("--optional", "sample_id"), "'sample_id' cannot be left open"),
        (("--assets", "assets.json", "--optional", "bbox"), "--assets demands every field"),
    ],
)
def test_build_refuses_fields_that_make_no_sense(cli, tmp_path, bare, arguments, says):
    said = cli("split", "build", source(tmp_path), "--config", bare, "--out", tmp_path / "out", *arguments)
    assert said.code == 2
    assert says in said.err
    assert not (tmp_path / "out").exists()


def test_build_refuses_an_unknown_role(cli, tmp_path, config):
    said = cli("split", "build", source(tmp_path, role=["tst"]), "--config", config, "--out", tmp_path / "out")
    assert said.code == 2
    assert "'tst' is no role" in said.err
    assert cli("split", "build", source(tmp_path), "--share", "tst=1", "--out", tmp_path / "out").code == 2


@pytest.mark.shared
def test_delmarva_from_the_command_line(cli, shared_data):
    path = shared_data / "split_manifests" / "delmarva_naip_tiles.csv"
    said = cli("split", "check", path, "--min-area", 1, "--unique", "quad", "--no-buffer")
    assert said.code == 3
    assert "95 of 568 test samples overlap train" in said.out
    assert "42 unique pairs of quad values (14 in test, 16 in train)" in said.out


def test_splits_may_share_what_the_command_line_says(cli, tmp_path):
    """One sensor and one year: without the option every sample hangs together."""
    source = tmp_path / "source.jsonl"
    shared = {"task": "t", "source_family": "survey", "crs": "EPSG:32631"}
    rows = [
        {**shared, "sample_id": f"s{k}", "bbox": [500_000 + 9000 * k, 0, 500_100 + 9000 * k, 100]} for k in range(4)
    ]
    source.write_text("".join(json.dumps(one) + "\n" for one in rows))
    wanted = ["split", "build", source, "--require", "bbox", "--share", "train=0.5", "--share", "test=0.5"]
    said = cli(*wanted, "--out", tmp_path / "no")
    assert said.code == 2
    assert "4 samples hang together in 1 components" in said.err
    assert "source_family (4 samples by itself)" in said.err
    said = cli(*wanted, "--not-apart", "source_family", "--out", tmp_path / "out")
    assert said.code == 0, said.err
    held = json.loads((tmp_path / "out" / "protected.json").read_text())["settings"]["identities"]
    assert "source_family" not in held
    for wrong in ("source_famly", "sample_id"):
        said = cli(*wanted, "--not-apart", wrong, "--out", tmp_path / "no")
        assert said.code == 2
        assert f"--not-apart: {wrong!r} is no identity that can be shared" in said.err
    assert not (tmp_path / "no").exists()
