"""The pages on splits are true: every example is read by what reads it, and every snippet runs on the fixture."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner

from geoeval.cli.main import main
from geoeval.evidence.canonical import file_digest
from geoeval.splits import Production, SplitSettings, read_manifest
from geoeval.splits.production import asset_listing, check_provenance
from geoeval.splits.record import FIELDS, ROLES, record_hash, sample_from_json
from geoeval.splits.settings import SHARES

ROOT = Path(__file__).resolve().parents[1]
FORMAT = (ROOT / "docs" / "split-format.md").read_text(encoding="utf-8")
HOWTO = (ROOT / "docs" / "howto" / "splits.md").read_text(encoding="utf-8")
KEY = "a key of the tests only"


def blocks(text, kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def table(text, heading):
    """Cells of the first table below a heading, without its head."""
    part = re.split(rf"^#+ {re.escape(heading)}\n", text, maxsplit=1, flags=re.MULTILINE)[1]
    rows = re.search(r"(^\|.*\n)+", part, re.MULTILINE).group().splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def named(cell):
    return re.findall(r"`([^`]+)`", cell)


SMALLEST, FULL, PROVENANCE, ASSETS = blocks(FORMAT, "json")


def test_the_records_of_the_page_are_records_and_the_full_one_has_every_field():
    assert sample_from_json(SMALLEST, "smallest").sample_id == "g00-s0"
    assert FULL.count("\n") == 1
    sample = sample_from_json(FULL, "full")
    assert list(json.loads(FULL)) == list(FIELDS)
    assert sample.record_sha256 == record_hash(sample)


def test_every_field_stands_in_the_table_with_an_example_that_is_read():
    rows = table(FORMAT, "The source")
    assert [named(row[0])[0] for row in rows] == list(FIELDS)
    for row in rows:
        example = json.loads(named(row[3])[0]) if row[3] else json.loads(FULL)[named(row[0])[0]]
        more = {"crs": "EPSG:32631"} if named(row[0]) == ["bbox"] else {}
        record = {"sample_id": "a", "task": "t", **more, named(row[0])[0]: example}
        assert sample_from_json(json.dumps(record), "example")


def test_what_the_table_says_is_demanded_is_the_contract():
    demanded = {named(row[0])[0] for row in table(FORMAT, "The source") if row[4] in ("yes", "always")}
    assert demanded == {"sample_id", *SplitSettings().required}


def test_roles_and_their_shares_are_the_defaults():
    assert {named(role)[0]: float(share) for role, _, share in table(FORMAT, "Roles")} == dict(SHARES)
    assert set(SHARES) == set(ROLES)


def test_the_configuration_of_the_page_holds_every_key_at_its_default(tmp_path):
    from geoeval.cli.split_build import command, split_settings

    path = tmp_path / "split.toml"
    path.write_text(blocks(FORMAT, "toml")[0], encoding="utf-8")
    given = command.make_context("build", ["source.jsonl", "--out", "out", "--config", str(path)]).params
    example = {"strata": ("content",), "background": ("content", "background")}
    assert split_settings(given["config"], given) == SplitSettings(**example)
    keys = {name for row in table(FORMAT, "The configuration") for name in named(row[0])}
    assert keys == {one.name for one in fields(SplitSettings)} | {"optional"}
    assert all(re.search(rf"^(# )?{key} = ", path.read_text(), re.MULTILINE) for key in keys)


def test_every_option_that_the_page_names_is_one_of_split_build():
    from geoeval.cli.split_build import command

    known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
    for row in table(FORMAT, "The configuration"):
        assert set(re.findall(r"--[a-z-]+", row[2])) <= known


def test_the_provenance_of_the_page_binds_the_record_of_the_page(tmp_path):
    path = tmp_path / "provenance.json"
    path.write_bytes(PROVENANCE.encode())
    check_provenance(json.loads(FULL), path, "record")
    assert file_digest(path) == json.loads(FULL)["provenance_sha256"]


def test_the_asset_manifest_of_the_page_lists_the_files_of_the_record(tmp_path):
    path = tmp_path / "assets.json"
    path.write_bytes(ASSETS.encode())
    listed = asset_listing(Production(path, file_digest(path), tmp_path))
    record = json.loads(FULL)
    named_files = {record[one]: record[f"{one}_sha256"] for one in ("raw_image", "processed_image", "label")}
    assert {name: sha256 for name, (sha256, _) in listed.items()} == {
        **named_files,
        record["provenance"]: record["provenance_sha256"],
    }
    assert listed[record["provenance"]][1] == len(PROVENANCE.encode())


@pytest.fixture
def data(tmp_path, monkeypatch):
    """The files of the fixture below ``data``, beside a key; the working folder is their parent."""
    home = tmp_path / "home"
    shutil.copytree(ROOT / "fixtures" / "splits", home / "data", ignore=shutil.ignore_patterns("manifests"))
    (tmp_path / "split.key").write_text(f"{KEY}\n")
    monkeypatch.chdir(home)
    return home / "data"


def geoeval(*words):
    done = CliRunner().invoke(main, ["split", *map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def built(output, name="protected"):
    return re.search(rf"^{name} manifest: ([0-9a-f]{{64}})", output, re.MULTILINE).group(1)


def test_the_keys_of_a_manifest_stand_on_the_page_and_its_hash_is_not_that_of_the_file(data):
    published = built(geoeval("build", data / "source.jsonl", "--out", "splits", "--key-file", "../split.key"))
    content = json.loads(Path("splits/protected.json").read_bytes())
    keys = {name for row in table(FORMAT, "Manifests") for name in named(row[0])}
    assert keys == set(content)
    assert content["manifest_sha256"] == published != file_digest(Path("splits/protected.json"))
    assert read_manifest(Path("splits/protected.json"), sha256=published).sha256 == published
    assert set(content["seal"]) == {"algorithm", "key_check", "fields"}


def test_the_training_script_of_the_page_reads_every_window(data, capsys):
    published = built(geoeval("build", data / "source.jsonl", "--out", "splits", "--key-file", "../split.key"))
    script = next(one for one in blocks(HOWTO, "python") if "chip_index" in one)
    whole, times = re.subn(r'^PUBLISHED = "[^"]*"', f'PUBLISHED = "{published}"', script, flags=re.MULTILINE)
    assert times == 1
    exec(compile(whole, "splits.md", "exec"), {})
    development = read_manifest(Path("splits/development.json"))
    training = [one["sample_id"] for one in development.samples if one["split"] == "train"]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == training
    assert lines[0].startswith(f"{training[0]} train processed/{training[0]}.tif labels/{training[0]}.geojson (1, 32")


def test_a_proposal_becomes_a_build_as_the_page_says(data):
    rows = [json.loads(line) for line in (data / "source.jsonl").read_text().splitlines()]
    places = [f"{one['sample_id']},{one['group_id']},{','.join(map(str, one['bbox']))},32631\n" for one in rows]
    Path("tiles.csv").write_text("".join(["tile,scene,minx,miny,maxx,maxy,epsg\n", *places]))
    geoeval("propose", "tiles.csv", "--buffer", 500, "--blocks", 5000, "--out", "proposed.csv")
    assert "no leak found" in geoeval("check", "proposed.csv", "--group", "scene", "--buffer", 500)
    script = next(one for one in blocks(HOWTO, "python") if "proposed.csv" in one)
    exec(compile(script, "splits.md", "exec"), {})
    said = geoeval("build", "data/declared.jsonl", "--buffer", 500, "--out", "splits")
    assert "gate complete: pass" in said
    assert "test: " in said


def test_the_asset_manifest_of_the_snippet_builds_a_production_split(data, capsys):
    rows = [json.loads(line) for line in (data / "source.jsonl").read_text().splitlines()]
    (data / "provenance").mkdir()
    for one in rows:
        for asset in ("raw_image", "processed_image", "label"):
            one[f"{asset}_sha256"] = file_digest(data / one[asset])
        said = json.loads(PROVENANCE) | {name: one[name] for name in json.loads(PROVENANCE) if name in one}
        text = json.dumps(said).encode()
        one["provenance"] = f"provenance/{one['sample_id']}.json"
        one["provenance_sha256"] = hashlib.sha256(text).hexdigest()
        (data / one["provenance"]).write_bytes(text)
    (data / "source.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    script = next(one for one in blocks(FORMAT, "python") if "asset_manifest" in one)
    exec(compile(script, "split-format.md", "exec"), {})
    sha256 = capsys.readouterr().out.strip()
    more = ("--assets", "data/assets.json", "--assets-sha256", sha256, "--key-file", "../split.key")
    geoeval("build", "data/source.jsonl", "--out", "splits", *more)
    assert read_manifest(Path("splits/protected.json")).content["production_accuracy_use_allowed"] is True


def test_the_processed_image_may_be_the_raw_file_itself(data):
    rows = [json.loads(line) for line in (data / "source.jsonl").read_text().splitlines()]
    for one in rows:
        one |= {name.replace("raw", "processed"): one[name] for name in ("raw_image", "raw_image_sha256")}
    (data / "same.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    said = geoeval("build", "data/same.jsonl", "--out", "splits", "--key-file", "../split.key")
    assert "gate exact_bytes: pass" in said


def test_geoparquet_holds_the_same_records(data):
    import geopandas as gpd
    import pandas as pd
    from shapely.geometry import box

    from geoeval.splits import read_source

    rows = [json.loads(line) for line in (data / "source.jsonl").read_text().splitlines()]
    frame = pd.DataFrame(
        [{**{k: v for k, v in one.items() if k not in ("bbox", "crs", "strata")}, **flat(one)} for one in rows]
    )
    gpd.GeoDataFrame(frame, geometry=[box(*one["bbox"]) for one in rows], crs="EPSG:32631").to_parquet(
        data / "source.parquet"
    )
    assert read_source(data / "source.parquet").sha256 == read_source(data / "source.jsonl").sha256


def flat(record):
    return {f"strata.{name}": value for name, value in record["strata"].items()}
