"""Exit codes: 0 done and every gate passes, 2 refused or not decidable, 3 a gate was evaluated and failed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from geoeval.evidence.bundle import write_bundle
from geoeval.evidence.verify_files import read_listing
from geoeval.verify import Contents, board_bytes, read_contents

PASSES = "recall>=0.5"
FAILS = "recall>=0.999"
UNDECIDED = "completeness>=0.5"

VECTOR_PASSES = 'family = "vector"\nmetric = "recall"\nat_least = 0.5'
VECTOR_FAILS = 'family = "vector"\nmetric = "recall"\nat_least = 0.999'
VECTOR_UNDECIDED = 'family = "vector"\nmetric = "completeness"\nat_least = 0.5'
VALIDATION_PASSES = 'family = "validation"\nmetric = "precision"\nat_least = 0.5'


@pytest.mark.parametrize(
    ("gates", "code"),
    [
        ((), 0),
        ((PASSES,), 0),
        ((PASSES, "precision>=0.5"), 0),
        ((FAILS,), 3),
        ((UNDECIDED,), 2),
        ((PASSES, UNDECIDED), 2),
        ((PASSES, FAILS), 3),
        ((UNDECIDED, FAILS), 3),
        ((FAILS, UNDECIDED), 3),
    ],
)
def test_evaluate(evaluate, gates, code):
    said = evaluate("vector", "--json", *(f"--gate={gate}" for gate in gates))
    assert said.code == code
    assert [row["id"] for row in said.json["gates"]] == list(gates)


def test_a_refusal_wins_over_a_failing_gate(evaluate, tmp_path):
    """3 is for gates that were evaluated: where input is refused, nothing was."""
    said = evaluate("vector", f"--gate={FAILS}", reference=tmp_path / "none.geojson")
    assert said.code == 2
    assert said.out == ""


def test_a_failing_critical_subgroup_blocks_and_an_absent_one_is_not_decidable(evaluate):
    assert evaluate("vector", f"--gate={PASSES}", "--critical=region=north,south").code == 0
    assert evaluate("vector", f"--gate={PASSES}", "--critical=region=north,atlantis").code == 2
    assert evaluate("vector", f"--gate={FAILS}", "--critical=region=north,atlantis").code == 3


def test_validation_brings_its_own_gates(evaluate, fixtures, tmp_path):
    """Nothing is asked for, and a missed critical anomaly blocks all the same."""
    assert evaluate("validation", "--assume-clean").code == 0
    lines = (fixtures / "validation" / "prediction.csv").read_text().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if ",critical," in line)
    (tmp_path / "found.csv").write_text("".join(lines[:at] + lines[at + 1 :]))
    said = evaluate("validation", "--assume-clean", "--json", prediction=tmp_path / "found.csv")
    assert said.code == 3
    assert {row["id"]: row["status"] for row in said.json["gates"]} == {
        "no-missed-blocker": "pass",
        "no-missed-critical": "fail",
    }


@pytest.mark.parametrize(
    ("gates", "alone", "allowed"),
    [
        ((VECTOR_PASSES, VALIDATION_PASSES), 2, 0),
        ((VECTOR_FAILS, VALIDATION_PASSES), 3, 3),
        ((VECTOR_UNDECIDED, VALIDATION_PASSES), 2, 2),
        ((VECTOR_UNDECIDED, VECTOR_FAILS, VALIDATION_PASSES), 3, 3),
        ((VALIDATION_PASSES,), 2, 2),
    ],
    ids=["pass", "fail", "undecided", "both", "no policy for a family"],
)
def test_benchmark(cli, own_benchmark, tmp_path, gates, alone, allowed):
    """The permission is for product gates only: it helps neither a failing gate nor one that cannot be decided."""
    arguments = ("benchmark", "--config", own_benchmark(*gates), "--out", tmp_path / "out")
    assert cli(*arguments).code == alone
    said = cli(*arguments, "--allow-product-blocked", "--json")
    assert (said.code, said.err) == (allowed, "")
    assert len(list((tmp_path / "out" / "runs").iterdir())) == 1


def test_the_permission_changes_no_byte_of_the_evidence(cli, own_benchmark, tmp_path):
    config = own_benchmark(VECTOR_PASSES, VALIDATION_PASSES)
    for name, more in (("a", ()), ("b", ("--allow-product-blocked",))):
        cli("benchmark", "--config", config, "--out", tmp_path / name, *more)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("side", ["fixture", "expected"])
def test_a_harness_that_is_out_of_order_is_not_excused(cli, own_benchmark, tmp_path, side):
    """One point moved away, or one expected figure changed: the permission does not turn that into 0."""
    config = own_benchmark(VECTOR_PASSES, VALIDATION_PASSES)
    folder = config.parents[1] / "fixtures"
    path = folder / "expected.json" if side == "expected" else folder / "vector" / "prediction.geojson"
    data = json.loads(path.read_text())
    if side == "expected":
        data["vector"]["recall"] = 0.5
    else:
        data["features"][0]["geometry"]["coordinates"][0] += 1000.0
    path.write_text(json.dumps(data))
    said = cli("benchmark", "--config", config, "--out", tmp_path / "out", "--allow-product-blocked")
    assert said.code == 2
    assert "contract: vector: recall is" in said.err


def test_a_failing_gate_is_seen_through_a_harness_that_is_out_of_order(cli, own_benchmark, tmp_path):
    config = own_benchmark(VECTOR_FAILS, VALIDATION_PASSES)
    path = config.parents[1] / "fixtures" / "expected.json"
    path.write_text(path.read_text().replace('"recall": 0.', '"recall": 1.'))
    said = cli("benchmark", "--config", config, "--out", tmp_path / "out", "--allow-product-blocked")
    assert said.code == 3
    assert "contract: " in said.err


def test_a_product_without_evidence_is_not_decidable(cli, own_benchmark, tmp_path):
    config = own_benchmark(VECTOR_PASSES, VALIDATION_PASSES, synthetic=False)
    said = cli("benchmark", "--config", config, "--out", tmp_path / "out")
    assert said.code == 2
    assert "evidence_missing" in said.out


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A bundle, written once; tests change copies of it."""
    from pathlib import Path

    from geoeval import Pairing, Plan, Policy, evaluate, parse_gate
    from geoeval.bundling import write_result
    from geoeval.evaluators.vector import Vector

    folder = Path(__file__).resolve().parents[2] / "fixtures" / "vector"
    sources = str(folder / "reference.geojson"), str(folder / "prediction.geojson")
    evaluator, plan, policy = Vector(), Plan(redraws=40, ranked_redraws=10), Policy((parse_gate(PASSES, "vector"),))
    result = evaluate(evaluator, *sources, pairing=Pairing(by=("region",)), plan=plan, policy=policy)
    out = tmp_path_factory.mktemp("written")
    return write_result(result, evaluator, Pairing(by=("region",)), plan, policy, str(out))


@pytest.fixture
def bundle(written, tmp_path):
    return shutil.copytree(written, tmp_path / written.name)


def test_verify_valid(cli, bundle):
    assert cli("verify", bundle).code == 0
    said = cli("verify", bundle, "--recount", "--json")
    assert (said.code, said.json["valid"], said.json["problems"]) == (0, True, [])
    assert said.json["run"] == bundle.name


@pytest.mark.parametrize("name", ["metrics.json", "gates.json", "board.json", "failure-gallery.json", "derived.json"])
def test_verify_a_changed_byte(cli, bundle, name):
    data = bytearray((bundle / name).read_bytes())
    data[len(data) // 2] ^= 1
    (bundle / name).write_bytes(data)
    said = cli("verify", bundle)
    assert said.code == 3
    assert "INVALID" in said.out


@pytest.mark.parametrize("change", ["file", "folder", "nested", "missing", "missing derived", "missing ledger", "name"])
def test_verify_what_was_added_or_taken_away(cli, bundle, change):
    match change:
        case "file":
            (bundle / "notes.txt").write_bytes(b"")
        case "folder":
            (bundle / "empty").mkdir()
        case "nested":
            (bundle / "ledger" / "more.json").write_bytes(b"{}")
        case "missing":
            (bundle / "metrics.json").unlink()
        case "missing derived":
            (bundle / "board.json").unlink()
        case "missing ledger":
            (bundle / "ledger" / "vector.json").unlink()
        case _:
            bundle = bundle.rename(bundle.with_name("run-0123456789abcdef0123"))
    assert cli("verify", bundle).code == 3


@pytest.mark.parametrize("kind", ["nothing", "file", "no manifest", "no JSON", "other JSON"])
def test_verify_unreadable(cli, bundle, tmp_path, kind):
    match kind:
        case "nothing":
            bundle = tmp_path / "none"
        case "file":
            bundle = bundle / "metrics.json"
        case "no manifest":
            (bundle / "manifest.json").unlink()
        case "no JSON":
            (bundle / "manifest.json").write_bytes(b"\xff{")
        case _:
            (bundle / "manifest.json").write_bytes(b"[]")
    said = cli("verify", bundle)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("BundleError: ")


def test_recount_finds_what_was_forged_with_every_hash_right(cli, bundle, tmp_path):
    """An edited figure in a bundle that is written anew around it: whole by its hashes, wrong by its ledger."""
    listing = read_listing(bundle)
    metrics = json.loads((bundle / "metrics.json").read_bytes())
    metrics["evaluations"]["vector"]["estimates"]["rmse"]["value"] = 0.01
    (bundle / "metrics.json").write_text(json.dumps(metrics))
    old = read_contents(bundle, listing)
    files = {entry["path"]: (bundle / entry["path"]).read_bytes() for entry in listing.files}
    rest = {key: value for key, value in listing.manifest.items() if key not in ("schema", "files", "derived")}

    def board(run):
        return board_bytes(
            Contents(run, old.manifest, old.evaluations, old.verdicts, old.product_gates, old.folder),
        )

    forged = write_bundle(tmp_path / "forged", files, rest, {"board.json": board})
    assert cli("verify", forged).code == 0
    said = cli("verify", forged, "--recount")
    assert said.code == 3
    assert "vector.estimates.rmse.value: says 0.01, the ledger gives" in said.out


def test_the_process_ends_with_the_code(fixtures, tmp_path):
    """Once through a real process: a failing gate, and a refusal without a traceback."""
    folder = fixtures / "vector"
    command = [sys.executable, "-m", "geoeval", "evaluate", "vector", "--redraws=20", "--gate", FAILS]
    sides = ["--reference", str(folder / "reference.geojson"), "--prediction"]
    done = subprocess.run(
        [*command, *sides, str(folder / "prediction.geojson")], capture_output=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 3
    done = subprocess.run([*command, *sides, "none.geojson"], capture_output=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"InputError: ")
    assert list(tmp_path.iterdir()) == []
