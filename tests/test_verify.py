"""Verification: what was forged consistently is found by deciding and rendering again."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from geoeval.errors import BundleError
from geoeval.evidence.bundle import run_id, write_bundle
from geoeval.evidence.canonical import canonical_bytes, digest
from geoeval.evidence.documents import document_bytes, gates_json, metrics_json
from geoeval.gates import decide_all, decide_families
from geoeval.model import Estimate, Evaluation, Gate, Stratum
from geoeval.verify import Contents, board_bytes, verify

GATE = Gate("floor", "recall", "at_least", 0.8, on="value", family="footprint")
CONFIGURATION = {
    "gates": [asdict(GATE)],
    "cases": [{"id": "houses", "min_support": 5}],
    "claim_limits": ["one season"],
}


def evaluation(recall=0.9):
    estimates = {"recall": Estimate(recall, "1", 50)}
    strata = (Stratum({"region": "north"}, {"recall": Estimate(0.95, "1", 4)}, critical=True),)
    whole = Evaluation("footprint", "footprint/1", "s", estimates, strata=strata)
    gates, settled = decide_all([GATE], whole, min_support=5)
    return Evaluation("footprint", "footprint/1", "s", estimates, strata=settled, gates=gates)


def contents_of(run, evaluations, verdicts, folder, synthetic=True):
    manifest = {"synthetic": synthetic, "configuration": CONFIGURATION}
    return Contents(run, manifest, evaluations, verdicts, (), folder)


def bundle(runs, evaluations=None, verdicts=None, configuration=None, derived=None):
    evaluations = evaluations or {"houses": evaluation()}
    if verdicts is None:
        verdicts = decide_families([GATE], evaluations, {"houses": 5})
    files = {
        "metrics.json": document_bytes(metrics_json(evaluations)),
        "gates.json": document_bytes(gates_json(verdicts)),
    }
    manifest = {"synthetic": True, "configuration": CONFIGURATION if configuration is None else configuration}
    board = {"board.json": lambda run: board_bytes(contents_of(run, evaluations, verdicts, runs))}
    return write_bundle(runs, files, manifest, board if derived is None else derived)


def rewritten(path, name, content):
    """A forgery in which every hash agrees again: manifest, derived list and name of the folder."""
    (path / name).write_bytes(content)
    manifest = json.loads((path / "manifest.json").read_bytes())
    for entry in manifest["files"]:
        data = (path / entry["path"]).read_bytes()
        entry.update(sha256=digest(data), size=len(data))
    head = canonical_bytes(manifest)
    (path / "manifest.json").write_bytes(head)
    derived = json.loads((path / "derived.json").read_bytes())
    old, derived["run"] = derived["run"], run_id(head)
    for entry in derived["files"]:
        data = (path / entry["path"]).read_bytes().replace(old.encode(), run_id(head).encode())
        (path / entry["path"]).write_bytes(data)
        entry.update(sha256=digest(data), size=len(data))
    (path / "derived.json").write_bytes(canonical_bytes(derived))
    return path.rename(path.with_name(run_id(head)))


def test_a_bundle_is_valid(tmp_path):
    found = verify(bundle(tmp_path))
    assert (found.problems, found.valid, found.exit_code, found.rendered) == ((), True, 0, ("board.json",))


def test_a_changed_byte_is_invalid(tmp_path):
    path = bundle(tmp_path)
    (path / "metrics.json").write_bytes(b"{}")
    found = verify(path)
    assert found.exit_code == 3
    assert any("metrics.json: changed" in problem for problem in found.problems)


def test_an_extra_file_is_invalid(tmp_path):
    path = bundle(tmp_path)
    (path / "readme.txt").write_bytes(b"hello")
    assert verify(path).problems == ("readme.txt: unexpected file",)


def test_a_verdict_forged_with_all_hashes_right_is_found(tmp_path):
    """The failing verdict is rewritten as a pass and every digest made right: deciding again finds it."""
    path = bundle(tmp_path, {"houses": evaluation(0.5)})
    forged = (path / "gates.json").read_bytes().replace(b'"status":"fail"', b'"status":"pass"')
    path = rewritten(path, "gates.json", forged)
    found = verify(path)
    assert "gates.json: 'houses:floor' says 'pass', the metrics give 'fail'" in found.problems
    assert not any("changed" in problem for problem in found.problems)


def test_a_verdict_that_was_dropped_is_found(tmp_path):
    assert "gates.json: 'houses:floor' is missing" in verify(bundle(tmp_path, verdicts=[])).problems


def test_a_verdict_that_nobody_declared_is_found(tmp_path):
    path = bundle(tmp_path, configuration={**CONFIGURATION, "gates": []})
    assert any("'houses:floor' is not declared" in problem for problem in verify(path).problems)


def test_verdicts_inside_the_metrics_are_checked_too(tmp_path):
    path = bundle(tmp_path, {"houses": evaluation(0.5)})
    forged = (path / "metrics.json").read_bytes().replace(b'"status":"fail"', b'"status":"pass"')
    found = verify(rewritten(path, "metrics.json", forged))
    assert any(problem.startswith("metrics.json: gate 'floor'") for problem in found.problems)


def test_a_board_that_flatters_is_found(tmp_path):
    path = bundle(tmp_path, {"houses": evaluation(0.5)})
    forged = (path / "board.json").read_bytes().replace(b'"red"', b'"green"')
    found = verify(rewritten(path, "board.json", forged))
    assert found.problems == ("board.json: is not what the bound files render to",)


def test_further_files_are_rendered_by_whoever_knows_how(tmp_path):
    path = bundle(tmp_path, derived={"atlas.html": lambda run: run.encode()})
    assert verify(path).rendered == ()
    assert verify(path, {"atlas.html": lambda contents: contents.run.encode()}).valid
    assert verify(path, {"atlas.html": lambda contents: b"other"}).problems == (
        "atlas.html: is not what the bound files render to",
    )


def test_a_bundle_without_its_documents_is_invalid(tmp_path):
    path = write_bundle(tmp_path, {"metrics.json": b"{}"}, {"configuration": CONFIGURATION})
    assert "gates.json: the manifest does not bind it" in verify(path).problems
    path = write_bundle(tmp_path, {"metrics.json": b"{}", "gates.json": b"{}"}, {"configuration": CONFIGURATION})
    assert any("expected a document" in problem for problem in verify(path).problems)


@pytest.mark.parametrize("configuration", [{}, {"gates": [{}], "cases": []}, {"gates": []}])
def test_a_bundle_whose_gates_cannot_be_decided_again_is_invalid(tmp_path, configuration):
    path = bundle(tmp_path, configuration=configuration)
    assert any(problem.startswith("manifest.json: its") for problem in verify(path).problems)


def test_what_cannot_be_read_is_an_error_and_not_a_verdict(tmp_path):
    with pytest.raises(BundleError, match="no such bundle"):
        verify(tmp_path / "run-1")
