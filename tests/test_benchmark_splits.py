"""The benchmark behind its manifests: whatever is wrong with a split stops the run before an evaluator sees a case."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import geoeval.evaluation
from geoeval.benchmark import benchmark, bundled
from geoeval.config import load_config
from geoeval.errors import ConfigError, InputError, LeakageError
from geoeval.evidence.canonical import canonical_bytes, digest, file_digest
from geoeval.splits import Production, SplitSettings, build, read_manifest
from geoeval.splits.links import empty_label_hash
from geoeval.splits.production import asset_manifest, production_problems
from geoeval.splits.record import ASSETS, CONTRACT, IDENTITIES, MEMBERS
from geoeval.splits.seals import closed_entry

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
development_sha256 = "{development_sha256}"
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


LINEAGE = ("group_id", "source_family", "temporal_family", "acquisition_id", "parent_raster_id")


def record(name, split, place, **fields):
    """A sample on a square of 400 m; places lie 3 km apart, and no two samples share anything."""
    x, y = 500_000.0 + 3000.0 * (place % 6), 5_600_000.0 + 3000.0 * (place // 6)
    return {
        "sample_id": name,
        "task": "vector",
        "split": split,
        **{field: f"{field.partition('_')[0]}-{name}" for field in LINEAGE},
        "native_feature_ids": [f"native-{name}"],
        "object_ids": [f"object-{name}"],
        "bbox": [x, y, x + 400.0, y + 400.0],
        "crs": "EPSG:32631",
        **fields,
    }


def development(**fields):
    return [record("dev-1", "train", -2, **fields), record("dev-2", "val", -4)]


def protected(**splits):
    """The areas as test samples, or in the split that is given for one (``aoi_03="challenge"``)."""
    return [record(name, splits.get(name.replace("-", "_"), "test"), at) for at, name in enumerate(AOIS)]


def rehashed(path, **changes):
    """A manifest that says something else, and names the hash of that."""
    content = {**read_manifest(path).content, **changes}
    sha256 = digest(canonical_bytes(content))
    path.write_bytes(canonical_bytes({**content, "manifest_sha256": sha256}) + b"\n")
    return sha256


class Bench:
    """A folder with a configuration, its data and its manifests."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        for side in ("reference", "prediction"):
            shutil.copy(ROOT / "fixtures" / "vector" / f"{side}.geojson", folder)

    def manifest(self, name, records, *, identities=(*IDENTITIES, *MEMBERS), **more):
        """The manifest of one side alone, so that a leaking pair can be made at all."""
        source = self.folder / f"{name}.jsonl"
        source.write_text("".join(json.dumps(one) + "\n" for one in records))
        roles = {one["split"] for one in records}
        settings = SplitSettings(
            shares={role: 1 / len(roles) for role in roles}, required=(), required_splits=(), identities=identities
        )
        found = build(source, settings, key=KEY, **more).manifests[name]
        (self.folder / f"{name}.json").write_bytes(found.data())
        return found

    def config(self, dev=None, prot=None, *, more='sample_by = "cluster"', sha256=None, synthetic=False, **options):
        other = self.manifest("development", dev or development(), **options)
        bound = self.manifest("protected", prot or protected(), **options)
        return self.bind(other.sha256, sha256 or bound.sha256, more=more, synthetic=synthetic)

    def bind(self, development_sha256, sha256, *, more='sample_by = "cluster"', synthetic=False):
        path = self.folder / "own.toml"
        path.write_text(
            TEXT.format(
                development_sha256=development_sha256, sha256=sha256, more=more, synthetic=str(synthetic).lower()
            )
        )
        return path


def limits_of(found):
    return json.loads((found.folder / "board.json").read_bytes())["claim_limits"]


@pytest.fixture(autouse=True)
def _labels_anywhere(monkeypatch):
    """Labels here are copies of references of other places; that a label lies in its own sample is tested elsewhere."""
    monkeypatch.setattr("geoeval.splits.label_place.meets", lambda shapes, *_: np.ones(len(shapes), dtype=bool))


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
        ({"source_family": " source-aoi-07 "}, "gate identity: fail .*source_family"),
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
    bench.config()
    empty = rehashed(bench.folder / "development.json", samples=[], splits={}, unknown={})
    path = bench.bind(empty, read_manifest(bench.folder / "protected.json").sha256)
    stopped(path, InputError, "holds no sample")


@pytest.mark.parametrize("name", ["development", "protected"])
def test_another_hash_than_the_bound_one_stops_it(bench, stopped, name):
    """The message names the hash that was found, so that it can be held against the one that was published."""
    bench.config()
    found = {side: read_manifest(bench.folder / f"{side}.json").sha256 for side in ("development", "protected")}
    path = bench.bind(*{**found, name: "0" * 64}.values())
    stopped(path, InputError, f"splits.{name}: expected the manifest 0000.*, found {found[name]}; .*built again")


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


@pytest.mark.parametrize(("key", "name"), [("development_sha256", "development"), ("sha256", "protected")])
def test_a_hash_is_not_optional(bench, stopped, key, name):
    """What is missing is named with the hash that the manifest has, and with what that hash has to be."""
    path = bench.config()
    lines = [line for line in path.read_text().splitlines() if not line.startswith(f"{key} ")]
    path.write_text("\n".join(lines))
    found = read_manifest(bench.folder / f"{name}.json").sha256
    stopped(path, ConfigError, f"splits.{key}: is required and missing; {name}.json has the hash {found}: write it")
    (bench.folder / f"{name}.json").unlink()
    stopped(path, ConfigError, f"splits.{key}: is required and missing; give the hash that the manifest got .*No such")


def test_a_misspelt_hash_is_named_as_such(bench, stopped):
    path = bench.config()
    path.write_text(path.read_text().replace("development_sha256", "developement_sha256"))
    stopped(path, ConfigError, "did you mean 'development_sha256'")


def test_a_development_manifest_that_was_built_again_is_another_one(bench, stopped):
    """One sample fewer is a whole manifest without a leak, and not the one that was bound."""
    path = bench.config()
    bench.manifest("development", development()[:1])
    stopped(path, InputError, "splits.development: expected the manifest")


@pytest.mark.parametrize("name", [*LINEAGE, "native_feature_ids", "object_ids"])
@pytest.mark.parametrize(("side", "value"), [("development", None), ("protected", "unknown")])
def test_a_sample_of_unknown_lineage_stops_it(bench, stopped, side, name, value):
    """Where nothing is said, a gate has nothing to compare and passes; that proves nothing."""
    sides = {"development": development(), "protected": protected()}
    for one in sides[side][:2]:
        one[name] = value if value is None or name in LINEAGE else [value]
        if value is None:
            del one[name]
    first = {"development": "dev-1", "protected": "aoi-01"}[side]
    path = bench.config(sides["development"], sides["protected"])
    stopped(path, LeakageError, rf"lineage of 2 samples is not known: {name} 2 \(first '{first}'\); fill in")


def test_every_unknown_field_is_named(bench, stopped):
    dev, prot = development(group_id=None, source_family="n/a"), protected()
    prot[2]["group_id"] = " "
    dev[0]["object_ids"] = []
    says = (
        r"lineage of 2 samples is not known: group_id 2 \(first 'aoi-03'\), source_family 1 \(first 'dev-1'\), object"
    )
    stopped(bench.config(dev, prot), LeakageError, says)


def test_a_sample_without_a_box_stops_it(bench, stopped):
    """The gate of the buffer says so before."""
    prot = protected()
    del prot[4]["bbox"]
    stopped(bench.config(prot=prot), LeakageError, r"gate buffer: not_evaluable \(no_geometry\)")


def test_samples_without_features_need_no_names_of_features(bench, tmp_path):
    """An empty label has none, and a sealed challenge sample may keep them to itself."""
    empty = '{"type": "FeatureCollection", "features": []}'
    (bench.folder / "empty.geojson").write_text(empty)
    none = {"native_feature_ids": [], "object_ids": []}
    dev, prot = development(label="empty.geojson", **none), protected()
    prot[5] |= {"label": "empty.geojson", **none}
    prot.append({**record("sealed", "challenge", 40), **none})
    found = benchmark(bench.config(dev, prot), tmp_path)
    assert found.problems == ()


def test_fields_that_are_not_held_apart_are_a_claim_limit(bench, tmp_path):
    held = ("sample_id", "group_id", "source_family", "temporal_family", "parent_raster_id", "object_ids")
    prot = protected()
    for one in prot:
        del one["acquisition_id"], one["native_feature_ids"]
    path = bench.config(prot=prot, identities=held)
    assert "not held apart between splits: acquisition_id, native_feature_ids" in limits_of(benchmark(path, tmp_path))


def test_what_one_manifest_holds_apart_is_asked_of_both(bench, stopped):
    prot = protected()
    for one in prot:
        del one["acquisition_id"]
    bench.config()
    narrow = bench.manifest("protected", prot, identities=tuple(one for one in IDENTITIES if one != "acquisition_id"))
    path = bench.bind(read_manifest(bench.folder / "development.json").sha256, narrow.sha256)
    stopped(path, LeakageError, r"lineage of 24 samples is not known: acquisition_id 24 \(first 'aoi-01'\)")


def test_files_that_were_not_at_hand_are_a_claim_limit(bench, tmp_path):
    prot = protected()
    for one in prot[:3]:
        one["provenance"] = f"{one['sample_id']}.txt"
        (bench.folder / one["provenance"]).write_text(one["sample_id"])
    prot[3]["raw_image_sha256"] = "a" * 64
    path = bench.config(prot=prot)
    (bench.folder / "aoi-02.txt").unlink()
    assert "2 of 4 files of protected cases were not at hand to be hashed" in limits_of(benchmark(path, tmp_path))


def test_a_run_without_manifests_says_so(bench, tmp_path):
    path = bench.config(more="")
    text = path.read_text()
    start, end = text.index("[splits]"), text.index("[[case]]")
    path.write_text(text[:start] + text[end:])
    unbound = "no split manifest is bound: nothing shows that these cases were kept out of training"
    assert limits_of(benchmark(path, tmp_path)) == [unbound]
    path.write_text(path.read_text().replace("synthetic = false", "synthetic = true"))
    assert unbound not in limits_of(benchmark(path, tmp_path))


# -- files of challenge and development samples under other names ------------------------------------------------------


def reexported(source, target, **properties):
    """The same shapes, written again in another order and with other attributes."""
    data = json.loads(source.read_text())
    for one in data["features"]:
        one["properties"] |= properties
    data["features"] = data["features"][::-1]
    target.write_text(json.dumps(data, indent=2))


def sealed_label(bench, split="challenge", **fields):
    """The reference of the case is a copy of the label of another sample."""
    shutil.copy(bench.folder / "reference.geojson", bench.folder / "secret.geojson")
    own = {**record("sealed", split, 40), "label": "secret.geojson", **fields}
    return development(), [*protected(), own]


def test_a_copy_of_a_challenge_file_stops_it_by_its_bytes(bench, stopped):
    stopped(
        bench.config(*sealed_label(bench)),
        LeakageError,
        r"'reference\.geojson' is a file of the challenge case 'sealed', by its bytes; challenge is sealed",
    )


def test_a_challenge_label_that_was_written_again_stops_it_by_its_shapes(bench, stopped):
    path = bench.config(*sealed_label(bench))
    reexported(bench.folder / "secret.geojson", bench.folder / "reference.geojson", note="new")
    stopped(path, LeakageError, r"'reference\.geojson' is a file of the challenge case 'sealed', by its shapes")


def test_other_files_than_those_of_challenge_cases_pass(bench, tmp_path):
    """The clean twin: one point of the secret label lies elsewhere."""
    dev, prot = sealed_label(bench)
    text = (bench.folder / "secret.geojson").read_text()
    data = json.loads(text)
    data["features"][0]["geometry"]["coordinates"][0] += 1.0
    (bench.folder / "secret.geojson").write_text(json.dumps(data))
    found = benchmark(bench.config(dev, prot), tmp_path)
    assert not any("challenge" in one for one in limits_of(found))


@pytest.mark.parametrize("how", ["bytes", "shapes"])
def test_with_the_key_challenge_files_are_known_that_are_not_at_hand(bench, stopped, tmp_path, how):
    path = bench.config(*sealed_label(bench))
    if how == "shapes":
        reexported(bench.folder / "secret.geojson", bench.folder / "reference.geojson")
    (bench.folder / "secret.geojson").unlink()
    sealed = "challenge hashes stay sealed: byte copies of challenge files cannot be recognised"
    assert sealed in limits_of(benchmark(path, tmp_path / "no-key"))
    stopped(path, LeakageError, f"is a file of the challenge case 'sealed', by its {how}", key=KEY)


def test_with_the_key_a_clean_case_has_no_limit(bench, tmp_path):
    dev, prot = sealed_label(bench)
    reexported(bench.folder / "secret.geojson", bench.folder / "reference.geojson")
    data = json.loads((bench.folder / "reference.geojson").read_text())
    data["features"][0]["geometry"]["coordinates"][0] += 1.0
    path = bench.config(dev, prot)
    (bench.folder / "secret.geojson").unlink()
    (bench.folder / "reference.geojson").write_text(json.dumps(data))
    found = benchmark(path, tmp_path, key=KEY)
    assert not any("challenge" in one for one in limits_of(found))


def test_the_key_comes_from_a_file(bench, tmp_path):
    from click.testing import CliRunner

    from geoeval.cli.main import main

    path = bench.config(*sealed_label(bench))
    (bench.folder / "secret.geojson").unlink()
    file = tmp_path / "key"
    file.write_bytes(KEY + b"\n")
    asked = ["benchmark", "--config", str(path), "--out", str(tmp_path)]
    said = CliRunner().invoke(main, [*asked, "--key-file", str(file)])
    assert isinstance(said.exception, LeakageError)
    assert "is a file of the challenge case 'sealed', by its bytes" in str(said.exception)
    assert CliRunner().invoke(main, [*asked, "--allow-product-blocked"]).exit_code == 0
    said = CliRunner().invoke(main, [*asked, "--key-file", str(tmp_path / "none")])
    assert isinstance(said.exception, ConfigError)


def test_a_key_that_opens_nothing_is_refused(bench, stopped):
    path = bench.config(*sealed_label(bench))
    stopped(path, InputError, "not the one that sealed this manifest", key=b"another key of sixteen bytes")


def test_empty_labels_of_challenge_and_development_samples_are_alike_by_nature(bench, tmp_path):
    """A case without a reference feature has the bytes of every empty label."""
    empty = '{"type": "FeatureCollection", "features": []}'
    for name in ("secret", "training", "reference"):
        (bench.folder / f"{name}.geojson").write_text(empty)
    prot = [*protected(), record("sealed", "challenge", 40, label="secret.geojson")]
    path = bench.config(development(label="training.geojson"), prot)
    assert benchmark(path, tmp_path, key=KEY).problems == ()


def test_a_development_label_that_was_written_again_stops_it_by_its_shapes(bench, stopped):
    reexported(bench.folder / "reference.geojson", bench.folder / "training.geojson", note="old")
    path = bench.config(development(label="training.geojson"))
    (bench.folder / "training.geojson").unlink()
    stopped(path, LeakageError, r"'reference\.geojson' is a file of the development sample 'dev-1', by its shapes")


# -- features inside their samples -------------------------------------------------------------------------------------


def moved(bench, name, dx=0.0, dy=0.0, **properties):
    """One reference feature somewhere else, or under another name."""
    file = bench.folder / "reference.geojson"
    data = json.loads(file.read_text())
    for one in data["features"]:
        if one["properties"]["id"] == name:
            one["geometry"]["coordinates"][0] += dx
            one["geometry"]["coordinates"][1] += dy
            one["properties"] |= properties
    file.write_text(json.dumps(data))


def test_a_feature_in_the_box_of_another_sample_stops_it(bench, stopped):
    moved(bench, "aoi-01-r03", dx=3000.0)
    says = (
        r"case\[0\] \('points'\): reference features outside of the box of the sample that they claim: 1\n"
        r"  'aoi-01-r03' claims 'aoi-01' and lies in the box of 'aoi-02' \(test\)\n"
    )
    stopped(bench.config(), LeakageError, says)


def test_a_feature_that_bears_the_name_of_another_sample_stops_it(bench, stopped):
    moved(bench, "aoi-01-r03", aoi="aoi-07")
    stopped(bench.config(), LeakageError, r"'aoi-01-r03' claims 'aoi-07' and lies in the box of 'aoi-01' \(test\)")


def test_a_feature_on_the_ground_of_a_training_sample_stops_it(bench, stopped):
    moved(bench, "aoi-05-r00", dy=-3000.0)
    stopped(bench.config(), LeakageError, r"'aoi-05-r00' claims 'aoi-05' and lies in the box of 'dev-1' \(train\)")


def test_features_in_no_sample_stop_it_and_are_counted(bench, stopped):
    for number in range(12):
        moved(bench, f"aoi-02-r{number:02d}", dx=1000.0)
    says = r"(?s)they claim: 12\n.*'aoi-02-r00' claims 'aoi-02' and lies in the box of no sample\n.*\.\.\. and 2 more"
    stopped(bench.config(), LeakageError, says)


def box_in_degrees(one):
    """The same ground in longitude and latitude, a little wider."""
    from pyproj import Transformer

    to_degrees = Transformer.from_crs(one["crs"], "EPSG:4326", always_xy=True)
    return {**one, "bbox": list(to_degrees.transform_bounds(*one["bbox"])), "crs": "EPSG:4326"}


def test_boxes_of_another_system_hold_their_features(bench, stopped, tmp_path):
    prot = [box_in_degrees(one) for one in protected()]
    path = bench.config(prot=prot)
    assert benchmark(path, tmp_path / "clean").problems == ()
    shutil.rmtree(tmp_path / "clean")
    moved(bench, "aoi-01-r03", dx=3000.0)
    stopped(path, LeakageError, r"'aoi-01-r03' claims 'aoi-01' and lies in the box of 'aoi-02' \(test\)")


def test_a_feature_that_touches_its_box_is_inside(bench, tmp_path):
    file = bench.folder / "reference.geojson"
    data = json.loads(file.read_text())
    first = data["features"][0]
    first["geometry"]["coordinates"] = [500_400.0, 5_600_400.0]
    file.write_text(json.dumps(data))
    assert benchmark(bench.config(), tmp_path).problems == ()


def test_a_feature_a_little_beside_its_box_is_not(bench, stopped):
    file = bench.folder / "reference.geojson"
    data = json.loads(file.read_text())
    data["features"][0]["geometry"]["coordinates"] = [500_400.01, 5_600_400.0]
    file.write_text(json.dumps(data))
    stopped(bench.config(), LeakageError, "lies in the box of no sample")


def test_features_in_pixels_are_a_claim_limit(bench, tmp_path):
    for side in ("reference", "prediction"):
        file = bench.folder / f"{side}.geojson"
        data = json.loads(file.read_text())
        del data["crs"]
        file.write_text(json.dumps(data))
    path = bench.config()
    text = path.read_text()
    for side in ("reference", "prediction"):
        text = text.replace(f'{side} = "{side}.geojson"', f'{side} = {{ path = "{side}.geojson", crs = "pixel" }}')
    path.write_text(text)
    says = "features of case points were not held against the boxes of their samples (no coordinates on Earth)"
    assert says in limits_of(benchmark(path, tmp_path))


def test_a_clean_case_on_earth_has_no_such_limit(bench, tmp_path):
    assert not any("no coordinates on Earth" in one for one in limits_of(benchmark(bench.config(), tmp_path)))


RASTERS = """
[[case]]
id = "{family}"
family = "{family}"
reference = "ground/reference"
prediction = "ground/prediction"
cluster = "aoi"
units = "units.csv"
unit = {unit}
"""


@pytest.fixture
def rasters(bench):
    """A second case of rasters, a pair a sample."""

    def build(family):
        shutil.copytree(ROOT / "fixtures" / family, bench.folder / "ground")
        shutil.copy(ROOT / "fixtures" / "units.csv", bench.folder)
        path = bench.config()
        unit = '"m"' if family == "elevation" else ""
        text = RASTERS.format(family=family, unit=unit).replace("unit = \n", "")
        path.write_text(path.read_text().replace("\n[[gate]]", text + "\n[[gate]]", 1))
        return path

    return build


@pytest.mark.parametrize("family", ["raster", "elevation"])
def test_a_raster_on_the_ground_of_another_sample_stops_it(bench, rasters, stopped, tmp_path, family):
    path = rasters(family)
    assert not any(f"case {family}" in one for one in limits_of(benchmark(path, tmp_path / "clean")))
    shutil.rmtree(tmp_path / "clean")
    folder = bench.folder / "ground" / "reference"
    shutil.copy(folder / "aoi-02.tif", folder / "aoi-01.tif")
    shutil.copy(folder.parent / "prediction" / "aoi-02.tif", folder.parent / "prediction" / "aoi-01.tif")
    says = rf"case\[1\] \('{family}'\): .*\n  'aoi-01.tif' claims 'aoi-01' and lies in the box of 'aoi-02' \(test\)"
    stopped(path, LeakageError, says)


POINTS = {
    "raster": ("label", lambda at: "1"),
    "elevation": ("z", lambda at: f"{at}.5"),
}


@pytest.mark.parametrize("family", ["raster", "elevation"])
def test_points_lie_in_the_samples_that_they_claim(bench, stopped, tmp_path, family):
    column, value = POINTS[family]
    places = [(name, *record(name, "test", at)["bbox"][:2]) for at, name in enumerate(AOIS[:2])]
    folder = ROOT / "fixtures" / family / "prediction"
    shutil.copy(folder / "aoi-01.tif", bench.folder / "map.tif")

    def points(shift):
        rows = [f"{x + 50 * n + shift},{y + 50},{name},{value(n)}" for name, x, y in places for n in range(1, 3)]
        (bench.folder / "points.csv").write_text("\n".join([f"x,y,aoi,{column}", *rows]) + "\n")

    path = bench.config()
    case = f"""
[[case]]
id = "spots"
family = "{family}"
reference = {{ path = "points.csv", crs = "EPSG:32631"{', unit = "m"' if family == "elevation" else ""} }}
prediction = "map.tif"
cluster = "aoi"
sample_by = "cluster"
"""
    path.write_text(path.read_text().replace("\n[[gate]]", case + "\n[[gate]]", 1))
    points(0.0)
    assert not any("spots" in one for one in limits_of(benchmark(path, tmp_path / "clean")))
    shutil.rmtree(tmp_path / "clean")
    points(3000.0)
    says = r"(?s)case\[1\] \('spots'\): .*: 4\n.* claims 'aoi-01' and lies in the box of 'aoi-02' \(test\)\n"
    stopped(path, LeakageError, says)


# -- references outside of challenge and development samples -----------------------------------------------------------


def rewritten(bench, change):
    """Both sides of the case with other features."""
    for side in ("reference", "prediction"):
        file = bench.folder / f"{side}.geojson"
        data = json.loads(file.read_text())
        data["features"] = change(data["features"])
        file.write_text(json.dumps(data))


def with_one_more_point(own, other):
    """Points of one area, each with a further one; all of it bears the name of the first area."""

    def change(features):
        first = next(one for one in features if one["properties"]["aoi"] == own)["geometry"]["coordinates"]
        kept = [one for one in features if one["properties"]["aoi"] != other]
        for one in features:
            if one["properties"]["aoi"] == other:
                both = [first, one["geometry"]["coordinates"]]
                kept.append({**one, "geometry": {"type": "MultiPoint", "coordinates": both}})
                one["properties"]["aoi"] = own
        return kept

    return change


@pytest.mark.parametrize("degrees", [False, True])
def test_features_that_reach_into_a_challenge_sample_stop_it(bench, stopped, degrees):
    """Each has a vertex in the box that it claims."""
    rewritten(bench, with_one_more_point("aoi-01", "aoi-03"))
    prot = protected(aoi_03="challenge")
    path = bench.config(prot=[box_in_degrees(one) for one in prot] if degrees else prot)
    says = (
        r"case\[0\] \('points'\): reference features that reach into the box of a challenge or development sample: 20\n"
        r"  'aoi-03-r00' claims 'aoi-01' and reaches into the box of 'aoi-03' \(challenge\)\n"
    )
    stopped(path, LeakageError, says)


def test_features_that_reach_into_another_test_sample_pass(bench, tmp_path):
    """The clean twin: the same features where the other area is open."""
    rewritten(bench, with_one_more_point("aoi-01", "aoi-03"))
    assert "points" in benchmark(bench.config(), tmp_path).cases


def test_features_that_reach_into_a_development_sample_stop_it(bench, stopped):
    x, y = record("dev-1", "train", -2)["bbox"][:2]

    def change(features):
        own = features[0]["geometry"]["coordinates"]
        features[0]["geometry"] = {"type": "MultiPoint", "coordinates": [own, [x + 1.0, y + 1.0]]}
        return features

    rewritten(bench, change)
    stopped(bench.config(), LeakageError, r": 1\n.* claims 'aoi-01' and reaches into the box of 'dev-1' \(train\)")


@pytest.mark.parametrize(("inside", "refused"), [(0.0, False), (0.01, True)])
def test_touching_a_challenge_sample_is_allowed(bench, stopped, tmp_path, inside, refused):
    x, y = record("aoi-03", "challenge", 2)["bbox"][:2]

    def change(features):
        kept = [one for one in features if one["properties"]["aoi"] != "aoi-03"]
        own = kept[0]["geometry"]["coordinates"]
        kept[0]["geometry"] = {"type": "MultiPoint", "coordinates": [own, [x + inside, y + 50.0]]}
        return kept

    rewritten(bench, change)
    path = bench.config(prot=protected(aoi_03="challenge"))
    if refused:
        stopped(path, LeakageError, "reaches into the box of 'aoi-03'")
    else:
        assert "points" in benchmark(path, tmp_path).cases


ONE_RASTER = """
[[case]]
id = "land"
family = "raster"
reference = "land-reference.tif"
prediction = "land-prediction.tif"
sample_of = { land-reference = "aoi-01" }
"""


def land(bench, bounds, prot=None, crs="EPSG:32631"):
    """A further case: one raster that claims the first area."""
    import rasterio
    from affine import Affine

    west, south, east, north = bounds
    values = np.random.default_rng(0).integers(1, 4, (1, 40, 40)).astype("uint8")
    placed = Affine((east - west) / 40, 0, west, 0, (south - north) / 40, north)
    size = {"width": 40, "height": 40, "count": 1, "dtype": "uint8", "crs": crs, "transform": placed}
    for side in ("reference", "prediction"):
        with rasterio.open(bench.folder / f"land-{side}.tif", "w", driver="GTiff", **size) as file:
            file.write(values)
    if prot is not None:
        closed = {one["sample_id"] for one in prot if one["split"] == "challenge"}
        rewritten(bench, lambda features: [one for one in features if one["properties"]["aoi"] not in closed])
    path = bench.config(prot=prot)
    path.write_text(path.read_text().replace("\n[[gate]]", ONE_RASTER + "\n[[gate]]", 1))
    return path


@pytest.mark.parametrize(
    ("east", "says"),
    [
        (506_200.0, r"'land-reference.tif' claims 'aoi-01' and reaches into the box of 'aoi-03' \(challenge\)"),
        (500_900.0, r"less than half .*: 1\n  'land-reference.tif' claims 'aoi-01' and has 44.44% of its area"),
    ],
)
def test_a_raster_of_more_than_its_sample_stops_it(bench, stopped, east, says):
    path = land(bench, (500_000.0, 5_600_000.0, east, 5_600_400.0), protected(aoi_03="challenge"))
    stopped(path, LeakageError, says)


@pytest.mark.parametrize("east", [500_400.0, 500_800.0])
def test_a_raster_that_lies_in_its_sample_by_half_passes(bench, tmp_path, east):
    path = land(bench, (500_000.0, 5_600_000.0, east, 5_600_400.0), protected(aoi_03="challenge"))
    assert "land" in benchmark(path, tmp_path).cases


def test_a_raster_in_degrees_that_covers_a_development_sample_stops_it(bench, stopped):
    from pyproj import Transformer

    to_degrees = Transformer.from_crs("EPSG:32631", "EPSG:4326", always_xy=True)
    bounds = to_degrees.transform_bounds(494_000.0, 5_580_000.0, 520_000.0, 5_600_400.0)
    path = land(bench, bounds, crs="EPSG:4326")
    stopped(path, LeakageError, r"claims 'aoi-01' and reaches into the box of 'dev-1' \(train\), 'dev-2' \(val\)")


# -- manifests that ask for little -------------------------------------------------------------------------------------


def asking(bench, **settings):
    """Manifests that were built with other settings."""
    bench.config()
    own = []
    for name in ("development", "protected"):
        content = read_manifest(bench.folder / f"{name}.json").content
        looks = {one: value for one, value in settings.items() if one in content["perceptual"]}
        changes = {"settings": {**content["settings"], **settings}, "perceptual": {**content["perceptual"], **looks}}
        own.append(rehashed(bench.folder / f"{name}.json", **changes))
    return bench.bind(*own)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"buffer_m": 0.0}, "no buffer between splits (buffer_m is 0)"),
        ({"radius": 0, "confirmed_radius": 0}, "looks are compared within 0 bits only"),
        ({"confirmed_radius": 4}, "looks are compared within 4 bits only"),
        ({"radius": 0}, "looks are compared within 0 bits only, and within 8 where a second hash confirms"),
        ({"required": [*CONTRACT[:-2]]}, "not demanded of samples: label_geometry_hash, record_sha256"),
    ],
)
def test_manifests_that_ask_for_little_are_a_claim_limit(bench, tmp_path, settings, says):
    assert says in limits_of(benchmark(asking(bench, **settings), tmp_path))


def test_manifests_that_ask_for_all_have_no_such_limit(bench, tmp_path):
    found = benchmark(asking(bench, required=list(CONTRACT)), tmp_path)
    assert not any(word in one for one in limits_of(found) for word in ("buffer", "bits", "demanded"))
    told = json.loads((found.folder / "manifest.json").read_bytes())["splits"]
    assert (told["buffer_m"], told["radius"], told["confirmed_radius"]) == (2000.0, 4, 8)


def test_the_stricter_manifest_sets_the_buffer_and_the_laxer_one_what_was_demanded(bench, tmp_path):
    asking(bench, required=list(CONTRACT))
    content = read_manifest(bench.folder / "protected.json").content
    lax = {**content["settings"], "buffer_m": 0.0, "required": list(CONTRACT[:-1])}
    own = rehashed(bench.folder / "protected.json", settings=lax)
    path = bench.bind(read_manifest(bench.folder / "development.json").sha256, own)
    limits = limits_of(benchmark(path, tmp_path))
    assert "not demanded of samples: record_sha256" in limits
    assert not any("no buffer" in one for one in limits)


def test_gates_that_could_not_be_decided_are_a_claim_limit(bench, tmp_path):
    """Records have hashes of their own; manifests without these and without files have nothing to compare."""

    def gates():
        path = bench.bind(*(read_manifest(bench.folder / f"{one}.json").sha256 for one in ("development", "protected")))
        limits = limits_of(benchmark(path, tmp_path / "runs"))
        shutil.rmtree(tmp_path / "runs")
        return [one for one in limits if one.startswith("gate ")]

    bench.config()
    near = "gate near_duplicate could not be decided: evidence_missing"
    assert gates() == [near]
    for name in ("development", "protected"):
        samples = [dict(one) for one in read_manifest(bench.folder / f"{name}.json").samples]
        for one in samples:
            one.pop("record_sha256")
        rehashed(bench.folder / f"{name}.json", samples=samples)
    assert gates() == ["gate exact_bytes could not be decided: evidence_missing", near]


# -- paths below the root ----------------------------------------------------------------------------------------------


def naming(bench, path, *, split="test", sha256="a" * 64):
    """A protected manifest whose third area names a file."""
    bench.config(prot=protected(aoi_03=split))
    if split == "challenge":
        rewritten(bench, lambda features: [one for one in features if one["properties"]["aoi"] != "aoi-03"])
    samples = [dict(one) for one in read_manifest(bench.folder / "protected.json").samples]
    samples[2] |= {"label": path} if split == "challenge" else {"label": path, "label_sha256": sha256}
    own = rehashed(bench.folder / "protected.json", samples=samples)
    return bench.bind(read_manifest(bench.folder / "development.json").sha256, own)


@pytest.mark.parametrize("split", ["test", "challenge"])
@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "../bench/reference.geojson", "a/../../x", "C:\\x", "a\0b"])
def test_a_path_that_leads_out_of_the_root_stops_it(bench, stopped, path, split):
    stopped(naming(bench, path, split=split), InputError, "leads out of the root|aoi-03.*label")


def test_a_link_that_leads_out_of_the_root_stops_it(bench, stopped):
    (bench.folder.parent / "elsewhere.txt").write_text("secret")
    (bench.folder / "near.txt").symlink_to(bench.folder.parent / "elsewhere.txt")
    stopped(naming(bench, "near.txt"), InputError, "protected case 'aoi-03': label: .*is a link that leads out")


def test_a_missing_file_below_the_root_is_not_at_hand(bench, tmp_path):
    path = naming(bench, "labels/none.geojson")
    assert "1 of 1 files of protected cases were not at hand to be hashed" in limits_of(benchmark(path, tmp_path))


def test_a_file_below_the_root_is_held_to_its_hash(bench, tmp_path):
    """The clean twin: no limit, because the file is there and is the one."""
    (bench.folder / "own.txt").write_text("as it was")
    path = naming(bench, "own.txt", sha256=file_digest(bench.folder / "own.txt"))
    assert not any("at hand" in one for one in limits_of(benchmark(path, tmp_path)))


# -- production --------------------------------------------------------------------------------------------------------


class Proof(Bench):
    """Three areas and two training samples that prove themselves from bytes, in manifests of production."""

    NAMES = (*AOIS[:3], "dev-1", "dev-2")

    def __init__(self, folder):
        super().__init__(folder)
        for side in ("reference", "prediction"):
            file = folder / f"{side}.geojson"
            data = json.loads(file.read_text())
            data["features"] = [one for one in data["features"] if one["properties"]["aoi"] in AOIS[:3]]
            file.write_text(json.dumps(data))
        places = [0, 1, 2, -2, -4]
        splits = ["test", "test", "test", "train", "train"]
        self.records = [self.sample(*one) for one in zip(self.NAMES, splits, places, strict=True)]

    def sample(self, name, split, place):
        one = record(name, split, place)
        x, y = one["bbox"][:2]
        one["raw_image"] = self.image(f"{name}-raw.tif", name, 5000.0, "uint16", (x, y))
        one["processed_image"] = self.image(f"{name}-processed.tif", name, 255.0, "uint8", (x, y))
        ring = [[x, y], [x + 30 + place, y], [x + 30, y + 40], [x, y]]
        geometry = {"type": "Polygon", "coordinates": [ring]}
        crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32631"}}
        label = {"type": "FeatureCollection", "crs": crs, "features": [{"type": "Feature", "properties": {}}]}
        label["features"][0]["geometry"] = geometry
        one["label"] = f"{name}-label.geojson"
        (self.folder / one["label"]).write_text(json.dumps(label))
        hashes = {
            f"{asset}_sha256": file_digest(self.folder / one[asset])
            for asset in ("raw_image", "processed_image", "label")
        }
        one["provenance"] = f"{name}-provenance.json"
        says = {"origin": "survey", "licence": "CC0-1.0", "acquired": "2024-05-01"}
        content = {"schema": "geoeval/provenance/1", "sample_id": name, **hashes, **says}
        (self.folder / one["provenance"]).write_text(json.dumps(content))
        return {**one, **hashes, "provenance_sha256": file_digest(self.folder / one["provenance"])}

    def image(self, name, seed, scale, dtype, corner):
        import rasterio
        from affine import Affine

        rng = np.random.default_rng(int.from_bytes(seed.encode(), "big"))
        rows, columns = np.mgrid[0:64, 0:64] / 64
        waves = [np.cos(2 * np.pi * (a * rows + b * columns + c)) for a, b, c in rng.uniform(-4, 4, size=(9, 3))]
        data = np.sum(waves, axis=0)
        data = (scale * (data - data.min()) / np.ptp(data)).astype(dtype)
        placed = Affine(5.0, 0, corner[0], 0, -5.0, corner[1] + 320.0)
        size = {"height": 64, "width": 64, "count": 1, "dtype": dtype, "crs": "EPSG:32631", "transform": placed}
        with rasterio.open(self.folder / name, "w", driver="GTiff", **size) as file:
            file.write(data, 1)
        return name

    def built(self):
        paths = [one[asset] for one in self.records for asset in ASSETS]
        listing = self.folder / "assets.json"
        listing.write_bytes(asset_manifest(self.folder, paths))
        source = self.folder / "source.jsonl"
        source.write_text("".join(json.dumps(one) + "\n" for one in self.records))
        production = Production(listing, file_digest(listing), self.folder)
        result = build(source, SplitSettings(shares={"train": 0.4, "test": 0.6}), production=production)
        for name, one in result.manifests.items():
            (self.folder / f"{name}.json").write_bytes(one.data())
        return self.bind(*(result.manifests[name].sha256 for name in ("development", "protected")))


@pytest.fixture
def proof(tmp_path):
    return Proof(tmp_path / "proof")


def test_manifests_of_production_leave_nothing_to_limit(proof, tmp_path):
    found = benchmark(proof.built(), tmp_path)
    told = json.loads((found.folder / "manifest.json").read_bytes())["splits"]
    assert told["production_accuracy_use_allowed"] is True
    assert {one["status"] for one in told["gates"].values()} == {"pass"}
    assert limits_of(found) == []


@pytest.mark.parametrize("asset", ASSETS)
def test_in_production_every_file_of_a_case_is_there(proof, stopped, asset):
    path = proof.built()
    (proof.folder / proof.records[1][asset]).unlink()
    stopped(path, InputError, f"protected case 'aoi-02': {asset}: expected a file, found none")


@pytest.mark.parametrize("asset", ASSETS)
def test_in_production_every_file_of_a_case_is_the_one_that_was_hashed(proof, stopped, asset):
    path = proof.built()
    file = proof.folder / proof.records[2][asset]
    file.write_bytes(file.read_bytes() + b" ")
    stopped(path, InputError, f"protected case 'aoi-03': {asset} .* has the hash")


def test_files_of_training_samples_need_not_be_there(proof, tmp_path):
    path = proof.built()
    for one in proof.records[3:]:
        for asset in ASSETS:
            (proof.folder / one[asset]).unlink()
    assert limits_of(benchmark(path, tmp_path)) == []


def test_in_production_provenance_is_proven_again(proof, stopped):
    """The manifest binds a record that binds another label: by hand, everything fits but this."""
    proof.built()
    one = proof.records[0]
    file = proof.folder / one["provenance"]
    file.write_text(json.dumps({**json.loads(file.read_text()), "label_sha256": "0" * 64}))
    samples = [dict(entry) for entry in read_manifest(proof.folder / "protected.json").samples]
    samples[0]["provenance_sha256"] = file_digest(file)
    own = rehashed(proof.folder / "protected.json", samples=samples)
    path = proof.bind(read_manifest(proof.folder / "development.json").sha256, own)
    stopped(path, InputError, "protected case 'aoi-01': provenance 'aoi-01-provenance.json' binds label_sha256 '0000")


def without(name):
    def change(content):
        return {"samples": [{key: value for key, value in one.items() if key != name} for one in content["samples"]]}

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda own: {"settings": {**own["settings"], "required": ["task"]}},
            "settings.required leaves out group_id, ",
        ),
        (lambda own: {"gates": {}}, "gate identity: None; each must be 'pass'; gate exact_bytes: None"),
        (
            lambda own: {"gates": {**own["gates"], "buffer": {"status": "not_evaluable", "reason": None, "count": 0}}},
            "gate buffer: not_evaluable; each must be 'pass'$",
        ),
        (lambda own: {"gates": {**own["gates"], "more": {"status": "fail"}}}, "gate more: fail"),
        (without("provenance"), "sample 'aoi-01' says nothing in provenance; sample 'aoi-02'"),
        (without("perceptual_hash"), "sample 'aoi-01' says nothing in perceptual_hash"),
        (without("label_geometry_hash"), "sample 'aoi-01' says nothing in label_geometry_hash"),
        (without("object_ids"), "sample 'aoi-01' says nothing in object_ids"),
        (without("crs"), "sample 'aoi-01' says nothing in bbox"),
    ],
)
def test_a_manifest_that_only_says_production_is_refused(proof, stopped, change, says):
    proof.built()
    for name in ("protected", "development"):
        content = read_manifest(proof.folder / f"{name}.json").content
        if name == "protected":
            rehashed(proof.folder / "protected.json", **change(content))
    named = json.loads((proof.folder / "protected.json").read_bytes())["manifest_sha256"]
    path = proof.bind(read_manifest(proof.folder / "development.json").sha256, named)
    stopped(path, InputError, f"protected.json: says mode 'production' and does not keep its promise: .*{says}")


def test_a_declared_manifest_that_calls_itself_production_is_refused(bench, stopped):
    bench.config()
    changes = {"mode": "production", "production_accuracy_use_allowed": True}
    own = [rehashed(bench.folder / f"{name}.json", **changes) for name in ("development", "protected")]
    stopped(bench.bind(*own), InputError, "development.json: says mode 'production' and does not keep its promise")


def test_what_a_sample_cannot_say_is_no_broken_promise(proof):
    """A flat image has no perceptual hash, and an empty label no features; a mask says its values."""
    proof.built()
    content = dict(read_manifest(proof.folder / "protected.json").content)
    flat, mask, empty = (dict(one) for one in content["samples"])
    del flat["perceptual_hash"]
    mask["label"] = "mask.tif"
    empty |= {"label_geometry_hash": empty_label_hash(), "native_feature_ids": [], "object_ids": []}
    sealed = {**closed_entry({**empty, "split": "challenge"}, KEY), "sample_id": "sealed", "split": "challenge"}
    content |= {"samples": [flat, mask, empty, sealed]}
    assert production_problems({**content, "flat": [flat["sample_id"]]}) == []
    assert production_problems(content) == ["sample 'aoi-01' says nothing in perceptual_hash"]
    del mask["label_geometry_hash"]
    says = production_problems({**content, "flat": [flat["sample_id"]]})
    assert says == [f"sample {mask['sample_id']!r} says nothing in label_geometry_hash"]
