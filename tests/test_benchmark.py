"""The benchmark as a function: cases, problems, product evidence, and files that come with the package."""

from __future__ import annotations

import json
import shutil
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner

import geoeval.benchmark as module
from geoeval.benchmark import benchmark, bundled, expected_figures
from geoeval.cli.main import main
from geoeval.config.product import PRODUCT_GATES
from geoeval.errors import ConfigError, InputError
from geoeval.model import Verdict
from geoeval.recount import recount
from geoeval.splits import SplitSettings, build
from geoeval.splits.record import IDENTITIES, MEMBERS
from geoeval.verify import verify

ROOT = Path(__file__).resolve().parents[1]

TEXT = """
[run]
name = "own"
synthetic = {synthetic}

[intervals]
redraws = 40
ranked_redraws = 10

[[case]]
id = "points"
family = "vector"
reference = "../fixtures/vector/reference.geojson"
prediction = "../fixtures/vector/prediction.geojson"
cluster = "aoi"
by = ["region"]
min_support = 20
critical = {{ region = ["north"] }}

[[gate]]
family = "vector"
metric = "recall"
at_least = 0.5
"""


@pytest.fixture
def own(tmp_path):
    """A configuration with one case, in a folder of its own; more text may be added."""

    def build(more="", *, synthetic=False):
        (tmp_path / "configs").mkdir()
        shutil.copytree(ROOT / "fixtures" / "vector", tmp_path / "fixtures" / "vector")
        path = tmp_path / "configs" / "own.toml"
        path.write_text(TEXT.format(synthetic=str(synthetic).lower()) + more)
        return path

    return build


@pytest.fixture
def behind_splits(own, tmp_path):
    """The same configuration, held to two manifests: the areas of the case are test samples."""
    folder = tmp_path / "configs"

    def manifest(name, split, samples):
        records = [
            {
                "sample_id": sample,
                "task": "vector",
                "split": split,
                **{name: f"{name}-{sample}" for name in IDENTITIES if name != "sample_id"},
                **{name: [f"{name}-{sample}"] for name in MEMBERS},
                "bbox": [x - 50.0, y - 50.0, x + 400.0, y + 350.0],
                "crs": "EPSG:32631",
            }
            for sample, x, y in samples
        ]
        source = folder / f"{name}.jsonl"
        source.write_text("".join(json.dumps(one) + "\n" for one in records))
        built = build(source, SplitSettings(shares={split: 1.0}, required=("group_id",), required_splits=())).manifests[
            name
        ]
        (folder / f"{name}.json").write_bytes(built.data())
        return built.sha256

    def build_all():
        path = own()
        other = manifest("development", "train", [("dev", 400_000.0, 5_600_000.0)])
        areas = [(f"aoi-{i + 1:02d}", 500_000.0 + i % 6 * 3000.0, 5_600_000.0 + i // 6 * 3000.0) for i in range(24)]
        bound = manifest("protected", "test", areas)
        text = path.read_text().replace('cluster = "aoi"', 'cluster = "aoi"\nsample_by = "cluster"')
        text += f'\n[splits]\ndevelopment = "development.json"\ndevelopment_sha256 = "{other}"\n'
        text += f'protected = "protected.json"\nsha256 = "{bound}"\n'
        path.write_text(text)
        return path

    return build_all


def evidence(folder, *, skip=(), **changes):
    """An evidence file for every product gate, and the tables that bind them."""
    text = ""
    for name in PRODUCT_GATES:
        if name in skip:
            continue
        content = {
            "gate": name,
            "decision": "pass",
            "signed_by": "board of review",
            "evidence": [{"name": "minutes.pdf", "sha256": "a" * 64}],
            "store": "vault",
            "credentials": "read only",
            "access_log": "immutable",
            **changes.get(name, {}),
        }
        path = folder / "configs" / f"{name}.json"
        path.write_text(json.dumps(content))
        text += f'\n[product_gates.{name}]\nfile = "{path.name}"\nsha256 = "{sha256(path.read_bytes()).hexdigest()}"\n'
    return text


def test_a_release_goes_where_everything_is_there(behind_splits, tmp_path):
    path = behind_splits()
    path.write_text(path.read_text() + evidence(tmp_path))
    found = benchmark(path, tmp_path)
    assert {one.status for one in (*found.verdicts, *found.product_gates)} == {"pass"}
    assert (found.exit_code(), found.problems, found.synthetic) == (0, (), False)
    assert verify(found.folder).problems == ()
    assert recount(found.folder) == []
    assert found.evidence_problems == ()


def test_leakage_does_not_pass_without_manifests_whatever_the_evidence_says(own, tmp_path):
    path = own()
    path.write_text(path.read_text() + evidence(tmp_path))
    found = benchmark(path, tmp_path)
    assert {one.metric: (one.status, one.reason) for one in found.product_gates if one.status != "pass"} == {
        "leakage": ("not_evaluable", "evidence_missing")
    }
    assert (found.exit_code(), found.exit_code(allow_product_blocked=True)) == (2, 0)


def test_a_finding_on_record_blocks_until_it_is_superseded_and_stands_in_the_bundle(behind_splits, tmp_path):
    path = behind_splits()
    text = path.read_text()
    old = tmp_path / "configs" / "pairs.json"
    old.write_text(json.dumps({"gate": "leakage", "decision": "fail", "open_findings": 24, "dated": "2026-03-01"}))
    checksum = sha256(old.read_bytes()).hexdigest()
    entry = f'\n[[product_gates.leakage.earlier]]\nfile = "pairs.json"\nsha256 = "{checksum}"\n'
    path.write_text(text + evidence(tmp_path) + entry)
    found = benchmark(path, tmp_path)
    assert (found.exit_code(), found.exit_code(allow_product_blocked=True)) == (3, 3)
    says = "leakage: 'pairs.json' decides fail, and no newer evidence supersedes it"
    assert found.evidence_problems == (says,)
    said = CliRunner().invoke(main, ["benchmark", "--config", str(path), "--out", str(tmp_path)])
    assert (said.exit_code, f"product gate {says}" in said.stderr.splitlines()) == (3, True)
    newer = {"open_findings": 0, "dated": "2026-04-01", "supersedes": [checksum]}
    path.write_text(text + evidence(tmp_path, leakage=newer) + entry)
    found = benchmark(path, tmp_path)
    assert found.exit_code() == 0
    manifest = json.loads((found.folder / "manifest.json").read_bytes())
    bound = {row.get("role"): row for row in manifest["bound"]}["product_gates.leakage.earlier"]
    assert (bound["name"], bound["sha256"]) == ("pairs.json", checksum)
    assert manifest["configuration"]["product_gates"]["leakage"]["earlier"] == [
        {"file": "pairs.json", "sha256": checksum}
    ]
    assert verify(found.folder).problems == ()
    old.unlink()
    found = benchmark(path, tmp_path)
    assert found.exit_code() == 2
    assert verify(found.folder).problems == ()


def test_missing_evidence_is_excused_by_the_permission_and_failing_is_not(own, tmp_path):
    path = own()
    text = path.read_text()
    path.write_text(text + evidence(tmp_path, skip=("device",)))
    found = benchmark(path, tmp_path)
    assert (found.exit_code(), found.exit_code(allow_product_blocked=True)) == (2, 0)
    path.write_text(text + evidence(tmp_path, review={"decision": "fail"}))
    found = benchmark(path, tmp_path)
    assert (found.exit_code(), found.exit_code(allow_product_blocked=True)) == (3, 3)
    path.write_text(text + evidence(tmp_path, leakage={"open_findings": 2}))
    assert benchmark(path, tmp_path).exit_code(allow_product_blocked=True) == 3


def test_evidence_that_was_changed_afterwards_decides_nothing(behind_splits, tmp_path):
    path = behind_splits()
    path.write_text(path.read_text() + evidence(tmp_path))
    file = tmp_path / "configs" / "review.json"
    file.write_text(file.read_text() + " ")
    found = benchmark(path, tmp_path)
    assert {one.metric: one.reason for one in found.product_gates if one.status != "pass"} == {
        "review": "evidence_mismatch"
    }
    assert found.exit_code() == 2


def test_evidence_counts_for_nothing_on_synthetic_data(own, tmp_path):
    path = own(synthetic=True)
    path.write_text(path.read_text() + evidence(tmp_path))
    assert {one.reason for one in benchmark(path, tmp_path).product_gates} == {"synthetic_only"}


@pytest.mark.parametrize("allow", [True, False])
@pytest.mark.parametrize(
    ("family", "product", "problems", "code", "allowed"),
    [
        ("pass", "pass", (), 0, 0),
        ("pass", "not_evaluable", (), 2, 0),
        ("pass", "fail", (), 3, 3),
        ("not_evaluable", "pass", (), 2, 2),
        ("not_evaluable", "fail", (), 3, 3),
        ("fail", "not_evaluable", (), 3, 3),
        ("fail", "pass", ("broken",), 3, 3),
        ("pass", "pass", ("broken",), 2, 2),
        ("pass", "not_evaluable", ("broken",), 2, 2),
    ],
)
def test_the_table_of_exit_codes(family, product, problems, code, allowed, allow):
    def verdict(status):
        return Verdict("a", "f", "m", "overall", "", None, "", 0, None, None, None, None, None, status)

    found = module.Benchmark("n", False, {}, (verdict(family),), (verdict(product),), problems, Path())
    assert found.exit_code(allow_product_blocked=allow) == (allowed if allow else code)


def test_nothing_at_all_is_not_go():
    """No verdict on the families: a run without cases cannot be written, but its code would be 2."""
    from geoeval.gates import decide_families

    found = module.Benchmark("n", True, {}, decide_families((), {}), (), (), Path())
    assert found.exit_code(allow_product_blocked=True) == 2


def test_a_tally_that_depends_on_order_is_a_problem(own, tmp_path, monkeypatch):
    """Every ledger is made twice, the second time from units in the reverse order."""
    whole = module.tally_all

    def forgetful(evaluator, units, **more):
        ledger, parts = whole(evaluator, units, **more)
        return type(ledger).of(ledger.rows[:-1]), parts

    monkeypatch.setattr(module, "tally_all", forgetful)
    found = benchmark(own(synthetic=True), tmp_path)
    assert found.problems == ("points: two tallies of the same units differ",)
    assert found.exit_code(allow_product_blocked=True) == 2


def test_expected_figures_that_are_bound_must_come_out(own, tmp_path):
    path = own(synthetic=True)
    first = benchmark(path, tmp_path)
    figures = expected_figures(first.cases)
    path.write_text(path.read_text() + '\n[bind]\nexpected = "../fixtures/expected.json"\n')
    assert figures["points"]["recall"] == float(f"{first.cases['points'].result['recall'].value:.9g}")
    file = tmp_path / "fixtures" / "expected.json"
    file.write_text(json.dumps(figures))
    assert benchmark(path, tmp_path).problems == ()
    figures["points"]["rmse"] += 0.001
    figures["points"]["f2"] = 0.5
    file.write_text(json.dumps(figures))
    found = benchmark(path, tmp_path)
    problems = found.problems
    assert len(problems) == 2
    assert found.exit_code(allow_product_blocked=True) == 2
    assert any("points: f2 is None, expected 0.5" in one for one in problems)
    file.write_text(json.dumps({"lines": {"recall": 1.0}}))
    assert benchmark(path, tmp_path).problems == ("lines: expected, but there is no such case",)


def test_a_refused_source_writes_nothing(own, tmp_path):
    path = own()
    (tmp_path / "fixtures" / "vector" / "prediction.geojson").write_bytes(b"")
    with pytest.raises(InputError, match=r"prediction\.geojson"):
        benchmark(path, tmp_path)
    assert not (tmp_path / "runs").exists()


def test_a_wrong_option_is_refused_before_anything_is_read(own, tmp_path):
    path = own()
    path.write_text(path.read_text().replace("min_support = 20", "min_support = 20\noptions = { bufer_m = 2.0 }"))
    shutil.rmtree(tmp_path / "fixtures")
    with pytest.raises(ConfigError, match="did you mean 'buffer_m'"):
        benchmark(path, tmp_path)


def test_progress_is_told(own, tmp_path):
    calls = []
    benchmark(own(), tmp_path, progress=lambda *call: calls.append(call))
    assert calls == [(1, 1)]


@pytest.mark.parametrize("place", ["checkout", "installed"])
def test_bundled_files_are_found_in_both_layouts(tmp_path, monkeypatch, place):
    package = tmp_path / "src" / "geoeval"
    root = tmp_path if place == "checkout" else package / "bundled"
    (root / "configs").mkdir(parents=True)
    package.mkdir(parents=True, exist_ok=True)
    (root / "configs" / "benchmark.toml").write_text("")
    monkeypatch.setattr(module, "__file__", str(package / "benchmark.py"))
    assert bundled("configs/benchmark.toml") == root / "configs" / "benchmark.toml"
    with pytest.raises(InputError, match="does not come with this installation"):
        bundled("fixtures")
