"""The configuration: what is understood, what is refused and where, and what of it reaches the bundle."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest

from geoeval.config import load_capabilities, load_config, load_waivers, options_of, parse_config
from geoeval.config.product import PRODUCT_GATES, bound_files, evidence_problems, product_verdicts, projections
from geoeval.errors import ConfigError
from geoeval.evidence.canonical import canonical_bytes, digest
from geoeval.keys import FAMILIES
from geoeval.verify import gates_of

ROOT = Path(__file__).resolve().parents[1]

TEXT = """
[run]
name = "fixtures"
synthetic = true
claim_limits = ["one season"]

[intervals]
redraws = 200

[[case]]
id = "houses"
family = "footprint"
reference = "data/reference.gpkg"
prediction = { path = "data/prediction.gpkg", columns = { score = "p" }, nodata = nan }
cluster = "aoi"
by = ["region", "size"]
aoi = "data/aoi.geojson"
min_support = 20
critical = { region = ["north", "south"] }
options = { iou = 0.6, boundary_tolerance_m = 1.5 }

[[gate]]
family = "footprint"
metric = "recall"
at_least = 0.9

[[gate]]
id = "by-region"
family = "footprint"
metric = "f1"
at_least = 0
by = "region"
min_support = 50

[[gate]]
family = "footprint"
metric = "polis_mean"
at_most = 2.5
on = "value"
label = "small house"

[bind]
scripts = ["run.py"]
golden_qa = "golden.json"
"""


def case(**options):
    return {"id": "a", "family": "vector", "reference": "r.gpkg", "prediction": "p.gpkg", **options}


def parsed(*, gate=(), base=Path(), run=None, **options):
    return parse_config({"run": {"name": "x", **(run or {})}, "case": [case(**options)], "gate": list(gate)}, base)


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "run.toml"
    path.write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    return load_config(path)


def test_a_file_becomes_sources_pairing_and_gates(config, tmp_path):
    only = config.cases[0]
    assert config.name == "fixtures"
    assert config.synthetic
    assert config.claim_limits == ("one season",)
    assert only.reference.path == str(tmp_path / "data" / "reference.gpkg")
    assert only.prediction.columns.score == "p"
    assert only.pairing.cluster == "aoi"
    assert only.pairing.by == ("region", "size")
    assert only.pairing.aoi == str(tmp_path / "data" / "aoi.geojson")
    assert only.options == {"iou": 0.6, "boundary_tolerance_m": 1.5}
    assert only.critical == {"region": ("north", "south")}
    assert only.min_support == 20
    assert (config.intervals.redraws, config.intervals.ranked_redraws) == (200, 500)
    shown = [(g.id, g.direction, g.limit, g.on, g.scope, g.by, g.min_support) for g in config.gates]
    assert shown == [
        ("footprint-recall", "at_least", 0.9, "interval", "overall", None, 0),
        ("by-region", "at_least", 0.0, "interval", "per_subgroup", "region", 50),
        ("footprint-polis_mean-small-house", "at_most", 2.5, "value", "per_class", "small house", 0),
    ]


def test_what_reaches_the_bundle_has_every_default_and_no_place_of_this_machine(config, tmp_path):
    resolved = config.resolved()
    text = canonical_bytes(resolved).decode()
    assert str(tmp_path) not in text
    assert resolved["cases"][0]["on_invalid"] == "repair"
    assert resolved["cases"][0]["prediction"]["nodata"] == "nan"
    assert resolved["intervals"]["seed"] == 0
    assert gates_of(json.loads(text)) == list(config.gates)
    absolute = parsed(reference=str(tmp_path / "r.gpkg"), by=[f"slope={tmp_path / 's.tif'}"], base=tmp_path).resolved()
    assert absolute["cases"][0]["reference"]["path"] == "r.gpkg"
    assert absolute["cases"][0]["by"] == ["slope=s.tif"]
    canonical_bytes(absolute)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"clustr": "aoi"}, r"^case\[0\]: unknown key 'clustr'; did you mean 'cluster'\?$"),
        ({"reference": {"path": "a", "bnd": 2}}, r"^case\[0\]\.reference: unknown key 'bnd'; did you mean 'band'\?$"),
        (
            {"prediction": {"path": "a", "columns": {"scor": "p"}}},
            r"^case\[0\]\.prediction\.columns: unknown key 'scor'; did you mean 'score'\?$",
        ),
        ({"family": "rastr"}, r"^case\[0\]\.family: must be one of .*, got 'rastr'; did you mean 'raster'\?$"),
        ({"family": 3}, r"^case\[0\]\.family: must be one of .*, got 3$"),
        ({"min_support": "10"}, r"^case\[0\]\.min_support: must be a whole number, got '10'$"),
        ({"min_support": 1.5}, r"^case\[0\]\.min_support: must be a whole number, got 1\.5$"),
        ({"min_support": -1}, r"^case\[0\]\.min_support: .*greater than or equal to 0, got -1$"),
        ({"by": "region"}, r"^case\[0\]\.by: must be a list, got 'region'$"),
        ({"by": ["", "x"]}, r"^case\[0\]\.by\[0\]: must not be empty, got ''$"),
        ({"drop_unmatched_ids": "yes"}, r"must be true or false"),
        ({"reference": 3}, r"^case\[0\]\.reference: must be a table, got 3$"),
        ({"id": "a b"}, r"^case\[0\]\.id: 'a b' does not fit the pattern"),
        ({"critical": {"region": []}}, r"^case\[0\]\.critical\.region: needs at least 1 entry$"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_place(options, says):
    with pytest.raises(ConfigError, match=says):
        parsed(**options)


def test_every_complaint_is_made_at_once():
    with pytest.raises(ConfigError) as caught:
        parse_config({"rn": {}, "case": [{"id": "a"}]}, Path())
    lines = str(caught.value).splitlines()
    assert lines[0] == "unknown key 'rn'; did you mean 'run'?"
    assert "run: is required and missing" in lines
    assert "case[0].family: is required and missing" in lines
    assert not any("at least" in line for line in lines)


GATE = {"family": "vector", "metric": "recall"}


@pytest.mark.parametrize(
    ("gates", "says"),
    [
        ([GATE], r"gate\[0\]: needs exactly one of 'at_least' and 'at_most', got neither; no direction is guessed"),
        ([{**GATE, "at_least": 0.1, "at_most": 0.2}], "got both"),
        ([{**GATE, "at_least": 0.1, "by": "a", "label": "b"}], "give one of them"),
        ([{**GATE, "at_least": 0.1, "by": "a", "scope": "overall"}], "'per_subgroup' would"),
        ([{**GATE, "at_least": 0.1, "scope": "per_subgroup"}], "needs 'by'"),
        ([{**GATE, "at_least": 0.1}] * 2, r"gate\[1\]\.id: 'vector-recall' is there already as gate\[0\]"),
        ([{**GATE, "metric": "recal", "at_least": 0.1}], "no metric 'recal'; did you mean 'recall'"),
        ([{**GATE, "at_least": float("nan")}], r"gate\[0\]\.at_least: .*finite"),
        ([{**GATE, "at_least": "0.1"}], "must be a number, got '0.1'"),
        ([{**GATE, "at_lest": 0.1}], r"gate\[0\]: unknown key 'at_lest'; did you mean 'at_least'"),
        ([{**GATE, "at_least": 0.1, "on": "point"}], "must be one of 'interval' or 'value'"),
    ],
)
def test_gates_are_refused_when_they_are_declared(gates, says):
    with pytest.raises(ConfigError, match=says):
        parsed(gate=gates)


def test_two_cases_of_one_name_are_refused():
    with pytest.raises(ConfigError, match=r"case\[1\]\.id: 'a' is there already"):
        parse_config({"run": {"name": "x"}, "case": [case(), case()]}, Path())


def test_a_run_without_cases_is_refused():
    with pytest.raises(ConfigError, match="case: needs at least 1 entry"):
        parse_config({"run": {"name": "x"}, "case": []}, Path())


def test_validation_always_has_its_two_gates():
    config = parsed(family="validation")
    assert [(gate.metric, gate.limit, gate.on) for gate in config.gates] == [
        ("missed_blocker", 0.0, "value"),
        ("missed_critical", 0.0, "value"),
    ]


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"[run\n", r"run\.toml: is not TOML: .*line 1"), (b"\xff", "is not UTF-8"), (None, "cannot be read")],
)
def test_an_unreadable_file_is_refused(tmp_path, content, says):
    path = tmp_path / "run.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=says):
        load_config(path)


@dataclass(frozen=True)
class Wells:
    tolerance_m: float = 5.0
    ranges: tuple[tuple[str, float, float], ...] = ()


def test_options_of_an_evaluator():
    assert options_of(Wells, {"tolerance_m": 2, "ranges": [["a", 0, 1.5]]}, "x").ranges == (("a", 0.0, 1.5),)
    with pytest.raises(
        ConfigError, match=r"^case\[0\]\.options: unknown key 'tolerence_m'; did you mean 'tolerance_m'"
    ):
        options_of(Wells, {"tolerence_m": 2}, "case[0].options")
    with pytest.raises(ConfigError, match=r"^case\[0\]\.options\.tolerance_m: must be a number, got 'two'"):
        options_of(Wells, {"tolerance_m": "two"}, "case[0].options")


def test_waivers_are_read_from_their_own_file(tmp_path):
    path = tmp_path / "waivers.toml"
    path.write_text('[[waiver]]\ngate = "floor"\nreason = "new camera"\nsigned_by = "board"\nexpires = 2026-03-31\n')
    assert load_waivers(path)[0].expires == date(2026, 3, 31)
    path.write_text('[[waiver]]\ngate = "floor"\nreason = "new camera"\n')
    with pytest.raises(ConfigError, match=r"waiver\[0\]\.signed_by: is required and missing"):
        load_waivers(path)


def test_the_inventory_names_fifteen_capabilities_and_scores_no_orchestrator():
    inventory = load_capabilities(ROOT / "configs" / "capabilities.toml")
    assert len(inventory.capability) == 15
    assert {row.family for row in inventory.capability} == set(FAMILIES)
    assert [row.id for row in inventory.orchestrator] == ["geo-assistant"]
    assert {row.kind for row in inventory.capability} == {"learned", "deterministic"}


def evidence(gate, **more):
    decided = {"gate": gate, "decision": "pass", "signed_by": "board"}
    return {**decided, "evidence": [{"name": "minutes", "sha256": "0" * 64}], **more}


VAULT = {"store": "vault-a", "credentials": "two readers", "access_log": "append-only"}


MANIFESTS = {"development": "development.json", "protected": "protected.json"}
SPLITS = {"splits": {**MANIFESTS, "development_sha256": "1" * 64, "sha256": "0" * 64}}


def with_evidence(tmp_path, name, content, *, synthetic=False, sha256=None, write=True, splits=SPLITS):
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    if write:
        (tmp_path / "e.json").write_bytes(data)
    tables = {
        "run": {"name": "x", "synthetic": synthetic},
        "case": [case()],
        "product_gates": {name: {"file": "e.json", "sha256": sha256 or digest(data)}},
        **splits,
    }
    config = parse_config(tables, tmp_path)
    return {verdict.metric: (verdict.status, verdict.reason) for verdict in product_verdicts(config)}[name], config


@pytest.mark.parametrize("name", PRODUCT_GATES)
def test_a_product_gate_passes_on_bound_evidence_only(tmp_path, name):
    content = evidence(name, **VAULT)
    assert with_evidence(tmp_path, name, content)[0] == ("pass", None)
    assert with_evidence(tmp_path, name, content, sha256="0" * 64)[0] == ("not_evaluable", "evidence_mismatch")
    assert with_evidence(tmp_path, name, content, synthetic=True)[0] == ("not_evaluable", "synthetic_only")
    (tmp_path / "e.json").unlink()
    assert with_evidence(tmp_path, name, content, write=False)[0] == ("not_evaluable", "evidence_missing")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (evidence("review", decision="fail"), ("fail", None)),
        (evidence("review", decision="green"), ("not_evaluable", "evidence_missing")),
        (evidence("review", signed_by=""), ("not_evaluable", "evidence_missing")),
        (evidence("review", evidence=[]), ("not_evaluable", "evidence_missing")),
        (evidence("review", evidence=[{"name": "a", "sha256": "1"}]), ("not_evaluable", "evidence_missing")),
        (evidence("review", evidence=[{"name": "a", "sha256": "A" * 64}]), ("not_evaluable", "evidence_missing")),
        (
            evidence("review", evidence=[{"name": "a", "sha256": "1" * 64 + "\n"}]),
            ("not_evaluable", "evidence_missing"),
        ),
        (evidence("review", evidence=[{"name": "a", "sha256": int("1" * 64)}]), ("not_evaluable", "evidence_missing")),
        (evidence("review", evidence=[{"name": " ", "sha256": "1" * 64}]), ("not_evaluable", "evidence_missing")),
        (evidence("review", evidence=[{"name": "a"}]), ("not_evaluable", "evidence_missing")),
        (evidence("review", evidence=["a"]), ("not_evaluable", "evidence_missing")),
        (evidence("review", evidence={"name": "a", "sha256": "1" * 64}), ("not_evaluable", "evidence_missing")),
        (evidence("review", decision=True), ("not_evaluable", "evidence_missing")),
        (evidence("review", decision="PASS"), ("not_evaluable", "evidence_missing")),
        (evidence("review", decision=["fail"]), ("not_evaluable", "evidence_missing")),
        (evidence("review", signed_by=["board"]), ("not_evaluable", "evidence_missing")),
        ({"gate": "review"}, ("not_evaluable", "evidence_missing")),
        ({"status": "pass"}, ("not_evaluable", "evidence_mismatch")),
        (evidence("leakage"), ("not_evaluable", "evidence_mismatch")),
        (["review"], ("not_evaluable", "evidence_mismatch")),
        (b"no json", ("not_evaluable", "evidence_mismatch")),
        (b"\xff", ("not_evaluable", "evidence_mismatch")),
        (b"[" * 100_000, ("not_evaluable", "evidence_mismatch")),
    ],
)
def test_incomplete_evidence_is_no_evidence(tmp_path, content, expected):
    assert with_evidence(tmp_path, "review", content)[0] == expected


def test_a_vault_is_named_with_its_store_credentials_and_log(tmp_path):
    for key in VAULT:
        partial = {name: text for name, text in VAULT.items() if name != key}
        content = evidence("protected_storage_isolation", **partial)
        found, _ = with_evidence(tmp_path, "protected_storage_isolation", content)
        assert found == ("not_evaluable", "evidence_missing")


def test_open_leakage_findings_keep_blocking(tmp_path):
    assert with_evidence(tmp_path, "leakage", evidence("leakage", open_findings=24))[0] == ("fail", None)
    assert with_evidence(tmp_path, "leakage", evidence("leakage", open_findings=0))[0] == ("pass", None)


@pytest.mark.parametrize("name", PRODUCT_GATES)
@pytest.mark.parametrize("count", [1, -1, True, False, "0", "", 0.0, 0.5, 1e400, None, [], {}])
def test_only_the_whole_number_0_says_that_nothing_is_open(tmp_path, name, count):
    data = json.dumps(evidence(name, **VAULT, open_findings=count)).replace("Infinity", "1e400").encode()
    found, config = with_evidence(tmp_path, name, data)
    assert found == ("fail", None)
    assert "'e.json' has open_findings" in evidence_problems(config)[0]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ('"open_finding": 24', "unknown key 'open_finding'; did you mean 'open_findings'?"),
        ('"Decision": "fail"', "unknown key 'Decision'; did you mean 'decision'?"),
        ('"decision": "fail"', "is not JSON, or has a key twice"),
        ('"open_findings": 24, "open_findings": 0', "is not JSON, or has a key twice"),
        ('"note": {"a": 1, "a": 2}', "is not JSON, or has a key twice"),
        ('"open_findings": NaN', "is not JSON, or has a key twice"),
        ('"note": -Infinity', "is not JSON, or has a key twice"),
        ('"supersedes": "' + "a" * 64 + '"', "has in supersedes what is no list of checksums"),
        ('"supersedes": ["' + "A" * 64 + '"]', "has in supersedes what is no list of checksums"),
        ('"supersedes": [1]', "has in supersedes what is no list of checksums"),
        ('"supersedes": null', "has in supersedes what is no list of checksums"),
        ('"dated": null', "has no ISO date in dated: null"),
        ('"dated": 20260331', "has no ISO date in dated: 20260331"),
        ('"dated": "31 March"', "has no ISO date in dated: '31 March'"),
        ('"dated": ["2026-03-31"]', "has no ISO date in dated: a list"),
    ],
)
def test_evidence_with_what_is_not_understood_decides_nothing(tmp_path, more, says):
    data = (json.dumps(evidence("leakage"))[:-1] + f", {more}}}").encode()
    found, config = with_evidence(tmp_path, "leakage", data)
    assert found == ("not_evaluable", "evidence_mismatch")
    assert says in evidence_problems(config)[0]


def test_a_note_is_free(tmp_path):
    content = evidence("review", note={"anything": [1, None]}, dated="2026-03-31", supersedes=["a" * 64])
    assert with_evidence(tmp_path, "review", content)[0] == ("pass", None)


def test_leakage_passes_only_where_there_are_manifests_that_the_evidence_speaks_of(tmp_path):
    content = evidence("leakage", open_findings=0)
    found, config = with_evidence(tmp_path, "leakage", content, splits={})
    assert found == ("not_evaluable", "evidence_missing")
    assert evidence_problems(config) == ["leakage: there are no [splits] that the evidence could speak of"]
    assert with_evidence(tmp_path, "leakage", evidence("leakage", open_findings=1), splits={})[0] == ("fail", None)
    assert with_evidence(tmp_path, "review", evidence("review"), splits={})[0] == ("pass", None)


def test_without_evidence_every_product_gate_is_open():
    config = parsed()
    assert {verdict.reason for verdict in product_verdicts(config)} == {"evidence_missing"}
    assert evidence_problems(config) == []


def test_an_unknown_product_gate_is_refused():
    tables = {"run": {"name": "x"}, "case": [case()], "product_gates": {"reveiw": {}}}
    with pytest.raises(ConfigError, match="unknown key 'reveiw'; did you mean 'review'"):
        parse_config(tables, Path())


def test_bound_files_are_hashed(config, tmp_path):
    (tmp_path / "run.py").write_bytes(b"1")
    with pytest.raises(ConfigError, match=r"bind\.golden_qa: there is no file 'golden\.json'"):
        bound_files(config)
    (tmp_path / "golden.json").write_bytes(b"{}")
    assert [(row["role"], row["name"], row["sha256"]) for row in bound_files(config)] == [
        ("golden_qa", "golden.json", digest(b"{}")),
        ("scripts", "run.py", digest(b"1")),
    ]


def test_only_the_projection_of_a_status_file_counts(tmp_path):
    tables = {
        "run": {"name": "x"},
        "case": [case()],
        "projection": [{"file": "status.json", "pointer": "/runtime/active_model"}],
    }
    config = parse_config(tables, tmp_path)
    status = {"generated_at": "today", "runtime": {"active_model": {"id": 3}}}
    (tmp_path / "status.json").write_text(json.dumps(status))
    first = projections(config)
    (tmp_path / "status.json").write_text(json.dumps({**status, "generated_at": "tomorrow"}))
    assert projections(config) == first
    (tmp_path / "status.json").write_text(json.dumps({"runtime": {"active_model": {"id": 4}}}))
    assert projections(config) != first
    (tmp_path / "status.json").write_text("{}")
    with pytest.raises(ConfigError, match="has nothing at '/runtime/active_model'"):
        projections(config)
