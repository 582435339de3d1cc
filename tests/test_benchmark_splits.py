"""The benchmark behind its manifests: whatever is wrong with a split stops the run before an evaluator sees a case."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

import geoeval.evaluation
from geoeval.benchmark import benchmark, bundled
from geoeval.config import load_config
from geoeval.errors import ConfigError, InputError, LeakageError
from geoeval.evidence.canonical import canonical_bytes, digest
from geoeval.splits import SplitSettings, build, read_manifest

ROOT = Path(__file__).resolve().parents[1]
AOIS = [f"aoi-{i:02d}" for i in range(1, 25)]
KEY = b"sixteen bytes of a test key"

TEXT = """
[run]
name = "own"
synthetic = {synthetic}

[intervals]
redraws = 40
ranked_redraws = 10

[splits]
development = "development.json"
protected = "protected.json"
sha256 = "{sha256}"

[[case]]
id = "points"
family = "vector"
reference = "reference.geojson"
prediction = "prediction.geojson"
cluster = "aoi"
{more}

[[gate]]
family = "vector"
metric = "recall"
at_least = 0.5
"""


def record(name, split, place, **fields):
    """A sample on a square of 400 m; places lie 5 km apart, and no two samples share anything."""
    x = 500_000.0 + 5000.0 * place
    return {
        "sample_id": name,
        "task": "vector",
        "split": split,
        "group_id": f"group-{name}",
        "source_family": f"source-{name}",
        "bbox": [x, 5_600_000.0, x + 400.0, 5_600_400.0],
        "crs": "EPSG:32631",
        **fields,
    }


def development(**fields):
    return [record("dev-1", "train", -2, **fields), record("dev-2", "val", -4)]


def protected(**splits):
    """The areas as test samples, or in the split that is given for one (``aoi_03="challenge"``)."""
    return [record(name, splits.get(name.replace("-", "_"), "test"), at) for at, name in enumerate(AOIS)]


class Bench:
    """A folder with a configuration, its data and its manifests."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        for side in ("reference", "prediction"):
            shutil.copy(ROOT / "fixtures" / "vector" / f"{side}.geojson", folder)

    def manifest(self, name, records, **more):
        """The manifest of one side alone, so that a leaking pair can be made at all."""
        source = self.folder / f"{name}.jsonl"
        source.write_text("".join(json.dumps(one) + "\n" for one in records))
        roles = {one["split"] for one in records}
        settings = SplitSettings(shares={role: 1 / len(roles) for role in roles}, required_splits=())
        found = build(source, settings, key=KEY, **more).manifests[name]
        (self.folder / f"{name}.json").write_bytes(found.data())
        return found

    def config(self, dev=None, prot=None, *, more='sample_by = "cluster"', sha256=None, synthetic=False, **options):
        self.manifest("development", dev or development(), **options)
        bound = self.manifest("protected", prot or protected(), **options)
        path = self.folder / "own.toml"
        path.write_text(TEXT.format(sha256=sha256 or bound.sha256, more=more, synthetic=str(synthetic).lower()))
        return path


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path / "bench")


@pytest.fixture
def stopped(tmp_path, monkeypatch):
    """Run a configuration that must be refused: no unit is tallied, nothing is written, the command says 2."""

    def refuse(*_):
        raise AssertionError("an evaluator saw a unit")

    def call(path, error, says, **more):
        from geoeval.cli.main import run

        monkeypatch.setattr(geoeval.evaluation, "tally_unit", refuse)
        with pytest.raises(error, match=says):
            benchmark(path, tmp_path / "out", **more)
        if not more:
            monkeypatch.setattr(sys, "argv", ["geoeval", "benchmark", "--config", str(path), "--out", str(tmp_path)])
            with pytest.raises(SystemExit) as end:
                run()
            assert end.value.code == 2
        assert not (tmp_path / "out").exists()
        assert not (tmp_path / "runs").exists()

    return call


def test_a_clean_split_lets_the_cases_through_and_stands_in_the_bundle(bench, tmp_path):
    path = bench.config()
    found = benchmark(path, tmp_path)
    manifest = json.loads((found.folder / "manifest.json").read_bytes())
    told = manifest["splits"]
    assert told["production_accuracy_use_allowed"] is False
    assert told["protected"]["sha256"] == read_manifest(bench.folder / "protected.json").sha256
    assert told["development"]["sha256"] == read_manifest(bench.folder / "development.json").sha256
    assert {told["gates"][name]["status"] for name in ("identity", "buffer", "complete")} == {"pass"}
    assert not told["same_source"]
    board = json.loads((found.folder / "board.json").read_bytes())
    assert "declared split manifests: production_accuracy_use_allowed is false" in board["claim_limits"]
    assert found.cases["points"].result["recall"].support == 480


def test_the_guard_of_these_tests_sees_an_evaluator(bench, tmp_path, monkeypatch):
    """What must not happen below does happen in a clean run."""
    seen = []
    whole = geoeval.evaluation.tally_unit
    monkeypatch.setattr(geoeval.evaluation, "tally_unit", lambda *given: seen.append(given) or whole(*given))
    benchmark(bench.config(), tmp_path)
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"group_id": "group-aoi-05"}, "gate identity: fail .*'aoi-05' .test. and 'dev-1' .train.: group_id"),
        ({"source_family": " source-aoi-07"}, "gate identity: fail .*source_family"),
        ({"label_sha256": "a" * 64}, "gate exact_bytes: fail .*label_sha256"),
        ({"bbox": [498_000.0, 5_600_000.0, 498_400.0, 5_600_400.0]}, "gate buffer: fail .*distance, metres 1600.6"),
        ({"bbox": [-0.1, 50.0, 0.0, 50.1], "crs": "pixel"}, "gate buffer: not_evaluable .no_geometry"),
    ],
)
def test_a_leaking_development_manifest_stops_it(bench, stopped, fields, says):
    """Each manifest is whole and in order; only both together leak."""
    prot = protected()
    prot[0]["label_sha256"] = "a" * 64
    stopped(bench.config(development(**fields), prot), LeakageError, f"(?s){says}")


def test_a_development_side_without_a_sample_proves_nothing(bench, stopped):
    path = bench.config()
    content = dict(read_manifest(bench.folder / "development.json").content)
    content |= {"samples": [], "splits": {}, "unknown": {}}
    whole = {**content, "manifest_sha256": digest(canonical_bytes(content))}
    (bench.folder / "development.json").write_bytes(canonical_bytes(whole) + b"\n")
    stopped(path, InputError, "holds no sample")


def test_another_hash_than_the_bound_one_stops_it(bench, stopped):
    stopped(bench.config(sha256="0" * 64), InputError, "expected the manifest 0000")


def test_an_edited_manifest_stops_it(bench, stopped):
    path = bench.config()
    file = bench.folder / "protected.json"
    file.write_bytes(file.read_bytes().replace(b'"group-aoi-03"', b'"group-aoi-x3"'))
    stopped(path, InputError, "edited after hashing")


def test_an_edited_development_manifest_stops_it(bench, stopped):
    path = bench.config(development(group_id="group-aoi-05"))
    file = bench.folder / "development.json"
    file.write_bytes(file.read_bytes().replace(b'"group-aoi-05"', b'"group-far-05"'))
    stopped(path, InputError, "edited after hashing")


@pytest.mark.parametrize("swapped", ["development", "protected"])
def test_the_sides_cannot_be_swapped(bench, stopped, swapped):
    path = bench.config()
    other = {"development": "protected", "protected": "development"}[swapped]
    shutil.copy(bench.folder / f"{other}.json", bench.folder / f"{swapped}.json")
    stopped(path, InputError, "expected a development manifest|expected the manifest")


def test_data_of_a_challenge_case_stop_it(bench, stopped):
    """Nothing in the configuration names the case; the data do."""
    path = bench.config(prot=protected(aoi_03="challenge"))
    stopped(path, LeakageError, r"case\[0\] \('points'\): challenge is sealed: .*'aoi-03'")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ('samples = ["aoi-01", "aoi-03"]', "challenge is sealed: .*'aoi-03'"),
        ('sample_of = { "aoi-01" = "aoi-03" }', "challenge is sealed: .*'aoi-03'"),
        ('samples = ["aoi-99"]', "not in the protected manifest .*'aoi-99'"),
        ('samples = ["dev-1"]', "not in the protected manifest .*'dev-1'"),
    ],
)
def test_a_declared_sample_that_is_sealed_or_unknown_stops_it_before_any_data_are_read(bench, stopped, more, says):
    path = bench.config(prot=protected(aoi_03="challenge"), more=more)
    (bench.folder / "reference.geojson").unlink()
    stopped(path, LeakageError, says)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("", "not in the protected manifest .*'reference'"),
        (
            'sample_by = "cluster"\nsamples = ["aoi-01", "aoi-02"]',
            "22 samples that it does not declare, first 'aoi-03'",
        ),
    ],
)
def test_data_that_bear_another_name_stop_it(bench, stopped, more, says):
    """Without a cluster that names the samples, the unit is the whole file, and that is no sample."""
    stopped(bench.config(more=more), LeakageError, says)


def test_data_in_no_sample_stop_it(bench, stopped):
    path = bench.config()
    file = bench.folder / "prediction.geojson"
    file.write_text(file.read_text().replace('"aoi": "aoi-24"', '"aoi": "dev-1"', 1))
    stopped(path, LeakageError, "1 ids are not in the protected manifest .*'dev-1'")


def test_other_names_can_be_mapped(bench, tmp_path):
    names = ", ".join(f'"{name}" = "{name.upper()}"' for name in AOIS)
    prot = [{**one, "sample_id": one["sample_id"].upper()} for one in protected()]
    path = bench.config(prot=prot, more=f'sample_by = "cluster"\nsample_of = {{ {names} }}')
    assert benchmark(path, tmp_path).problems == ()


def test_a_file_of_the_development_side_stops_it_by_its_bytes(bench, stopped):
    label = bench.folder / "training.geojson"
    shutil.copy(bench.folder / "reference.geojson", label)
    dev = [record("dev-1", "train", -2, label="training.geojson"), record("dev-2", "val", -4)]
    path = bench.config(dev)
    label.unlink()
    stopped(path, LeakageError, r"'reference\.geojson' is a file of the development sample 'dev-1'")


def test_a_file_of_a_challenge_case_stops_it_under_any_link(bench, stopped):
    """The data bear the names of test samples; the file is the label of a challenge case."""
    records = [*protected(), {**record("sealed", "challenge", 40), "label": "reference.geojson"}]
    path = bench.config(prot=records)
    (bench.folder / "again.geojson").symlink_to(bench.folder / "reference.geojson")
    path.write_text(path.read_text().replace('reference = "reference', 'reference = "again'))
    stopped(path, LeakageError, "is a file of the challenge case 'sealed'")


def test_a_protected_file_that_changed_stops_it(bench, stopped):
    (bench.folder / "label.txt").write_text("as it was")
    records = protected()
    records[4]["provenance"] = "label.txt"
    path = bench.config(prot=records)
    (bench.folder / "label.txt").write_text("as it is")
    stopped(path, InputError, r"protected case 'aoi-05': provenance 'label\.txt' has the hash")


@pytest.mark.parametrize(("synthetic", "given"), [(True, False), (False, True)])
def test_a_fixture_opens_by_code_in_a_synthetic_run_only(bench, stopped, synthetic, given):
    path = bench.config(synthetic=synthetic, open_fixture=True)
    stopped(path, InputError, "is a synthetic fixture", **({"open_fixture": True} if given else {}))


def test_code_opens_a_fixture(bench, tmp_path):
    found = benchmark(bench.config(synthetic=True, open_fixture=True), tmp_path, open_fixture=True)
    told = json.loads((found.folder / "manifest.json").read_bytes())["splits"]
    assert (told["protected"]["mode"], told["production_accuracy_use_allowed"]) == ("fixture", False)
    assert {one.reason for one in found.product_gates} == {"synthetic_only"}


def test_a_copy_of_the_bundled_configuration_does_not_open_the_fixture(tmp_path, stopped):
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    shutil.copytree(ROOT / "fixtures", tmp_path / "fixtures")
    stopped(tmp_path / "configs" / "benchmark.toml", InputError, "is a synthetic fixture")


def test_the_bundled_configuration_is_bound_to_the_bundled_manifest():
    settings = load_config(bundled("configs/benchmark.toml"))
    splits = settings.table.splits
    bound = read_manifest(settings.path(splits.protected), sha256=splits.sha256, open_fixture=True)
    assert [one["sample_id"] for one in bound.samples] == AOIS
    other = read_manifest(settings.path(splits.development), open_fixture=True)
    assert bound.content["source_sha256"] == other.content["source_sha256"]


@pytest.mark.parametrize("key", ['samples = ["a"]', 'sample_by = "unit"', 'sample_of = { a = "b" }'])
def test_samples_need_manifests(bench, stopped, key):
    path = bench.config(more=key)
    text = path.read_text()
    start, end = text.index("[splits]"), text.index("[[case]]")
    path.write_text(text[:start] + text[end:])
    stopped(path, ConfigError, r"case\[0\]\.samples?(_by|_of)?: needs \[splits\]")


def test_a_hash_is_not_optional(bench, stopped):
    path = bench.config()
    path.write_text("\n".join(line for line in path.read_text().splitlines() if not line.startswith("sha256")))
    stopped(path, ConfigError, "splits.sha256: is required and missing")
