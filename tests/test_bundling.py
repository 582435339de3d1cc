"""Bundles of evaluations: what is bound, what is not, and that all of it follows from the run."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from geoeval.bundling import Scored, commit, inputs_of, options_json, write_result, write_run
from geoeval.estimation import Plan
from geoeval.evaluation import evaluate
from geoeval.evaluators.detection import Detection
from geoeval.evaluators.footprint import Footprint
from geoeval.evaluators.raster import Raster
from geoeval.evidence.shape import load_schema
from geoeval.gates import decide_families, parse_gate
from geoeval.options import Columns, Pairing, Source
from geoeval.recount import recount
from geoeval.summary import Policy
from geoeval.verify import verify

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
PLAN = Plan(redraws=40, ranked_redraws=10)
POLICY = Policy((parse_gate("recall>=0.5", "detection"),), {"region": ("north", "south")}, min_support=10)


def sides(folder):
    return str(folder / "reference.geojson"), str(folder / "prediction.geojson")


@pytest.fixture(scope="module")
def result():
    return evaluate(Detection(), *sides(FIXTURES / "detection"), plan=PLAN, policy=POLICY)


@pytest.fixture(scope="module")
def bundle(result, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    return write_result(result, Detection(), Pairing(), PLAN, POLICY, str(out))


def document(folder, name):
    return json.loads((folder / name).read_bytes())


def test_a_bundle_is_valid_and_counts_up_again(bundle):
    assert verify(bundle).problems == ()
    assert recount(bundle) == []


@pytest.mark.parametrize("name", ["manifest", "metrics", "gates", "board"])
def test_documents_follow_their_schemas(bundle, name):
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator(load_schema(name)).validate(document(bundle, f"{name}.json"))


def test_what_the_manifest_binds(bundle):
    manifest = document(bundle, "manifest.json")
    listed = {entry["path"]: entry for entry in manifest["files"]}
    assert set(listed) >= {
        "metrics.json",
        "gates.json",
        "baseline-raw-predictions.json",
        "failure-gallery.json",
        "ledger/detection.json",
    }
    for name, entry in listed.items():
        assert sha256((bundle / name).read_bytes()).hexdigest() == entry["sha256"]
    inputs = {row["name"]: row["sha256"] for row in manifest["inputs"]["detection"]}
    assert inputs == {
        f"detection/{side}.geojson": sha256((FIXTURES / "detection" / f"{side}.geojson").read_bytes()).hexdigest()
        for side in ("reference", "prediction")
    }
    assert manifest["configuration"]["cases"][0]["options"] == options_json(Detection())
    assert manifest["configuration"]["gates"][0]["id"] == "recall>=0.5"
    assert len(manifest["code"]["sha256"]) == 64
    assert "python" in json.dumps(manifest["runtime"]).lower()


def test_no_release_claim_from_two_files(bundle):
    board = document(bundle, "board.json")
    assert board["run"] == bundle.name
    assert any("no release claim" in text for text in board["claim_limits"])


def test_raw_outcomes_hold_every_object(bundle, result):
    (case,) = document(bundle, "baseline-raw-predictions.json")["cases"]
    text = json.dumps(case)
    assert case["lineage"]["evaluator"] == "detection/1"
    assert len(case["lineage"]["inputs"]) == 2
    for name in ("aoi-01-r00", "aoi-24-r17"):
        assert name in text
    gallery = document(bundle, "failure-gallery.json")["failures"]
    assert len(gallery) == result["fp"].value + result["fn"].value


def test_writing_again_is_success_and_changes_nothing(bundle, result):
    before = {path: path.stat().st_mtime_ns for path in bundle.rglob("*")}
    assert write_result(result, Detection(), Pairing(), PLAN, POLICY, str(bundle.parents[1])) == bundle
    assert {path: path.stat().st_mtime_ns for path in bundle.rglob("*")} == before


def test_the_run_id_follows_what_is_bound(result, bundle, tmp_path):
    """Another gate or another seed is another run; another place of the same files is not."""
    other = Policy((parse_gate("recall>=0.6", "detection"),), POLICY.critical, POLICY.min_support)
    for plan, policy in ((PLAN, other), (replace(PLAN, seed=1), POLICY)):
        again = evaluate(Detection(), *sides(FIXTURES / "detection"), plan=plan, policy=policy)
        assert write_result(again, Detection(), Pairing(), plan, policy, str(tmp_path)).name != bundle.name
    copy = shutil.copytree(FIXTURES / "detection", tmp_path / "elsewhere" / "detection")
    moved = evaluate(Detection(), *sides(copy), plan=PLAN, policy=POLICY)
    assert write_result(moved, Detection(), Pairing(), PLAN, POLICY, str(tmp_path)).name == bundle.name


def test_a_whole_run_of_two_cases(result, tmp_path):
    again = evaluate(Footprint(), *sides(FIXTURES / "footprint"), plan=PLAN)
    cases = {"one": Scored(result, Detection(), FIXTURES), "two": Scored(again, Footprint(), FIXTURES)}
    gates = [parse_gate("recall>=0.5", "detection")]
    verdicts = decide_families(gates, {name: one.result.evaluation for name, one in cases.items()})
    bound = [{"role": "scripts", "name": "run.py", "sha256": "0" * 64, "size": 1}]
    configuration = {"cases": [], "gates": [], "claim_limits": ["none"]}
    folder = write_run(tmp_path, cases, configuration, verdicts, synthetic=True, bound=bound)
    manifest = document(folder, "manifest.json")
    assert manifest["bound"] == bound
    assert manifest["synthetic"] is True
    assert [row["name"] for row in manifest["inputs"]["two"]] == [
        "footprint/prediction.geojson",
        "footprint/reference.geojson",
    ]
    board = document(folder, "board.json")
    assert "synthetic" in json.dumps(board)
    statuses = {verdict.id: verdict.status for verdict in verdicts}
    assert (statuses["one:recall>=0.5"], statuses["two:policy"]) == ("pass", "not_evaluable")


def test_names_of_inputs_tell_nothing_about_the_machine(tmp_path):
    folder = tmp_path / "secret" / "tiles"
    folder.mkdir(parents=True)
    for name in ("a.shp", "a.dbf", "a.shx", "a.prj", "b.tif", "b.tif.aux.xml", "b.txt"):
        (folder / name).write_text(name)
    rows = inputs_of([str(folder / "a.shp"), str(folder / "b.tif"), str(folder / "none.gpkg")])
    names = ["tiles/a.dbf", "tiles/a.prj", "tiles/a.shp", "tiles/a.shx", "tiles/b.tif", "tiles/b.tif.aux.xml"]
    assert [row["name"] for row in rows] == names
    assert rows[0]["sha256"] == sha256(b"a.dbf").hexdigest()
    assert rows[0]["bytes"] == 5
    under = inputs_of([str(folder / "a.shp")], tmp_path / "secret")
    assert {row["name"] for row in under} == set(names[:4])
    outside = inputs_of([str(folder / "b.txt")], tmp_path / "elsewhere")
    assert [row["name"] for row in outside] == ["tiles/b.txt"]


def test_frames_have_no_files(tmp_path):
    import geopandas

    frame = geopandas.read_file(FIXTURES / "detection" / "reference.geojson")
    found = evaluate(Footprint(), frame, frame, plan=PLAN)
    folder = write_result(found, Footprint(), Pairing(), PLAN, Policy(), str(tmp_path))
    assert document(folder, "manifest.json")["inputs"] == {"footprint": []}
    assert verify(folder).valid
    assert recount(folder) == []


def test_how_sources_were_read_is_bound(tmp_path):
    """A filter that drops what was missed anyway makes another run."""
    paths = sides(FIXTURES / "detection")
    names = []
    for where in (None, "region = 'north'"):
        given = {
            "reference": Source(paths[0], where=where, nodata=float("nan")),
            "prediction": Source(paths[1], columns=Columns(score="score")),
        }
        found = evaluate(Detection(), *given.values(), plan=PLAN)
        folder = write_result(found, Detection(), Pairing(), PLAN, Policy(), str(tmp_path), given)
        (case,) = document(folder, "manifest.json")["configuration"]["cases"]
        assert (case["reference"]["path"], case["reference"]["where"]) == ("reference.geojson", where)
        assert (case["reference"]["nodata"], case["prediction"]["columns"]["score"]) == ("nan", "score")
        assert recount(folder) == []
        names.append(folder.name)
    assert len(set(names)) == 2


def test_subgroups_by_file_are_recounted(tmp_path):
    """Strata that are cut at edges, or come from a raster: the bundle names the field, not the place of the file."""
    pattern = [str(FIXTURES / "raster" / side / "aoi-01.tif") for side in ("reference", "prediction")]
    pairing = Pairing(by=(f"truth={pattern[0]}",))
    found = evaluate(Raster(), *pattern, pairing=pairing, plan=PLAN)
    folder = write_result(found, Raster(), pairing, PLAN, Policy(), str(tmp_path))
    assert str(FIXTURES) not in (folder / "manifest.json").read_text()
    assert recount(folder) == []
    boxes = evaluate(Footprint(), *sides(FIXTURES / "footprint"), pairing=Pairing(by=("area:300,500",)), plan=PLAN)
    folder = write_result(boxes, Footprint(), Pairing(by=("area:300,500",)), PLAN, Policy(), str(tmp_path))
    assert recount(folder) == []


def test_options_are_plain_values():
    json.dumps(options_json(Raster(class_names={"1": "water"})), allow_nan=False)
    assert options_json(Footprint(iou=0.7))["iou"] == 0.7
    assert set(options_json(Footprint())) & {"name", "family"} == set()


def test_a_crash_leaves_no_half_bundle(result, tmp_path, monkeypatch):
    from geoeval.errors import BundleError
    from geoeval.evidence import bundle as module

    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "write_file", full)
    with pytest.raises(BundleError, match="nothing was left behind"):
        write_result(result, Detection(), Pairing(), PLAN, POLICY, str(tmp_path))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_the_commit_is_one_or_none():
    found = commit()
    assert found is None or len(found) == 40
