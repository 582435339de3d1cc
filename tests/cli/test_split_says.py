"""``geoeval split``: what it says where something is missing, and what it takes for its manifests."""

from __future__ import annotations

import json

import pytest

from geoeval.splits.record import CONTRACT

OPEN = ",".join(one for one in CONTRACT if one not in ("task", "bbox", "record_sha256"))


def source(tmp_path, *, box=True, split=None, samples=10):
    path = tmp_path / "source.jsonl"
    records = []
    for i in range(samples):
        x = 500_000.0 + 20_000.0 * i
        place = {"bbox": [x, 0.0, x + 10, 10.0], "crs": "EPSG:32631"} if box else {}
        records.append({"sample_id": f"s{i}", "task": "t", **place, **({} if split is None else {"split": split})})
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


def build(cli, path, out, *more):
    return cli("split", "build", path, "--out", out, "--share", "train=0.6", "--share", "test=0.4", *more)


@pytest.fixture
def manifests(cli, tmp_path):
    out = tmp_path / "out"
    assert build(cli, source(tmp_path), out, "--optional", OPEN).code == 0
    return out


@pytest.fixture
def folds(tmp_path):
    path = tmp_path / "folds.csv"
    path.write_text("id,fold,aoi,row,column\na,0,x,1,1\nb,1,y,5,5\n")
    return path


def last(said):
    return said.out.splitlines()[-1]


def test_a_source_in_no_split_is_not_decidable(cli, tmp_path):
    said = cli("split", "check", source(tmp_path))
    assert (said.code, last(said)) == (2, "split check: not decidable")
    assert "complete: not_evaluable (evidence_missing)" in said.out
    assert "none of 10 samples is in a split; name the split of each, or let split build choose it" in said.out
    assert "fill in bbox" not in said.out


def test_a_source_some_of_whose_samples_are_in_no_split_is_incomplete(cli, tmp_path):
    path = source(tmp_path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows = [{**one, "split": "train" if i else "test"} for i, one in enumerate(rows[:9])] + rows[9:]
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    said = cli("split", "check", path, "--no-buffer")
    assert said.code == 3
    assert "split: 1 samples are in no split" in said.out
    assert last(said) == "split check: INCOMPLETE"


def test_what_only_lacks_a_split_is_incomplete_and_no_leak(cli, folds):
    said = cli("split", "check", folds, "--no-buffer", "--require-split", "train,test")
    assert (said.code, last(said)) == (3, "split check: INCOMPLETE")
    assert "train: this split has no sample" in said.out
    folds.write_text("id,fold,aoi\na,0,x\nb,1,x\n")
    said = cli("split", "check", folds, "--no-buffer", "--require-split", "test")
    assert (said.code, last(said)) == (3, "split check: LEAK")


def test_show_says_what_is_missing(cli, tmp_path):
    said = cli("split", "show", source(tmp_path))
    assert said.code == 0
    assert "none of 10 samples is in a split" in said.out
    path = source(tmp_path, split="train")
    path.write_text(path.read_text() + '{"sample_id": "odd", "task": "t", "bbox": [1, 2]}\n')
    said = cli("split", "show", path)
    assert "complete: fail (record_invalid), 1 found\n  source.jsonl, line 11: " in said.out


def test_the_folder_of_a_build_stands_for_its_manifests(cli, manifests):
    by_name = cli("split", "check", manifests / "development.json", manifests / "protected.json")
    said = cli("split", "check", manifests)
    assert said == by_name
    assert said.code == 0
    assert cli("split", "show", manifests).code == 0


def test_the_report_among_the_manifests_is_left_out_and_said(cli, manifests):
    said = cli("split", "check", *sorted(manifests.glob("*.json")))
    assert said.code == 0
    assert "left out: split.json: the report of a build, no manifest" in said.out


def test_what_does_not_fit_is_named(cli, manifests, folds, tmp_path):
    said = cli("split", "check", manifests / "split.json")
    assert said.code == 2
    assert "split.json: is the report of a build" in said.err
    said = cli("split", "check", manifests, folds)
    assert said.code == 2
    assert "got both: folds.csv is no manifest" in said.err
    said = cli("split", "check", source(tmp_path), folds)
    assert said.code == 2
    assert "source.jsonl: a source of samples" in said.err
    (tmp_path / "empty").mkdir()
    assert "is a folder; name its files" in cli("split", "check", tmp_path / "empty").err


def test_a_list_without_places_says_how_to_give_them(cli, folds, tmp_path):
    said = cli("split", "check", folds)
    assert said.code == 2
    for option in ("--bounds", "--grid-index A,B", "--no-buffer"):
        assert option in said.out
    said = cli("split", "check", source(tmp_path, box=False, split="train"))
    assert "fill in bbox and crs of every record of the source" in said.out


def test_a_grid_index_in_place_of_the_distance_is_said(cli, folds):
    said = cli("split", "check", folds, "--grid-index", "row,column")
    assert said.code == 0
    assert "buffer: none beside the grid index; distances were not looked at (--buffer METRES demands one)" in said.out
    said = cli("split", "check", folds, "--grid-index", "row,column", "--buffer", 100)
    assert said.code == 2
    assert "none beside" not in said.out


@pytest.mark.parametrize("as_json", [False, True])
def test_build_says_which_gate_a_benchmark_will_miss(cli, tmp_path, as_json):
    more = ["--json"] if as_json else []
    said = build(cli, source(tmp_path, box=False), tmp_path / "a", "--optional", f"{OPEN},bbox", *more)
    assert said.code == 0
    line = "gate buffer could not be decided (no_geometry): a benchmark will refuse this split"
    assert (said.err if as_json else said.out).splitlines()[-1] == line
    assert not as_json or said.json["gates"]
    assert "will refuse" not in build(cli, source(tmp_path), tmp_path / "b", "--optional", OPEN).out


@pytest.mark.parametrize(
    ("arguments", "demanded"),
    [
        (("--require", "bbox,crs"), ["bbox", "crs"]),
        (("--require", "bbox, crs", "--require", "task"), ["task", "bbox", "crs"]),
        (("--optional", OPEN), ["task", "bbox", "record_sha256"]),
        (("--optional", OPEN, "--optional", "bbox,"), ["task", "record_sha256"]),
    ],
)
def test_fields_may_be_named_with_commas(cli, tmp_path, arguments, demanded):
    said = build(cli, source(tmp_path), tmp_path / "out", *arguments)
    assert said.code == 0, said.err
    assert json.loads((tmp_path / "out" / "protected.json").read_bytes())["settings"]["required"] == demanded


def test_identities_that_splits_may_share_are_named_with_commas(cli, tmp_path):
    more = ("--optional", OPEN, "--not-apart", "source_family,temporal_family")
    assert build(cli, source(tmp_path), tmp_path / "out", *more).code == 0
    held = json.loads((tmp_path / "out" / "protected.json").read_bytes())["settings"]["identities"]
    assert not {"source_family", "temporal_family"} & set(held)


def test_a_number_for_an_id_is_refused_in_plain_words(cli, tmp_path):
    path = tmp_path / "source.jsonl"
    path.write_text('{"sample_id": 3, "task": "t"}\n')
    said = cli("split", "check", path, "--no-buffer")
    assert "sample_id must be text (in JSON within quotes), got 3" in said.out
    assert (said.code, last(said)) == (3, "split check: INCOMPLETE")
    said = build(cli, path, tmp_path / "out")
    assert said.code == 2
    assert "line 1, record 3: sample_id must be text (in JSON within quotes), got 3" in said.err
