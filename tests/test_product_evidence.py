"""Findings on record: an open one keeps a product gate at fail until newer evidence supersedes it."""

from __future__ import annotations

import itertools
import json
import random
from hashlib import sha256
from pathlib import Path

import pytest

from geoeval.config import parse_config
from geoeval.config.product import PRODUCT_GATES, bound_files, evidence_problems, product_verdicts
from geoeval.config.product_evidence import Evidence, date_span, standing
from geoeval.errors import ConfigError

MISMATCH = ("not_evaluable", "evidence_mismatch")
MISSING = ("not_evaluable", "evidence_missing")
FAIL = ("fail", None)
PASS = ("pass", None)

MARCH, APRIL, MAY, JUNE = "2026-03-01", "2026-04-01", "2026-05-01", "2026-06-01"


class Record:
    """Evidence files of one gate, and what they amount to."""

    def __init__(self, folder, gate="leakage"):
        self.folder = folder
        self.gate = gate
        self.rows = []

    def add(self, dated=..., supersedes=(), **changes):
        """Write a clean file, or one with changes; its checksum."""
        content = {
            "gate": self.gate,
            "decision": "pass",
            "signed_by": "board",
            "evidence": [{"name": "minutes", "sha256": "0" * 64}],
            "open_findings": 0,
            "store": "vault",
            "credentials": "two readers",
            "access_log": "append-only",
            "supersedes": list(supersedes),
            "dated": dated,
            **changes,
        }
        return self.put(json.dumps({key: value for key, value in content.items() if value is not ...}).encode())

    def put(self, data):
        name = f"e{len(self.rows)}.json"
        (self.folder / name).write_bytes(data)
        self.rows.append({"file": name, "sha256": sha256(data).hexdigest()})
        return self.rows[-1]["sha256"]

    def path(self, at):
        return self.folder / self.rows[at]["file"]

    def config(self, **run):
        """The last file is bound, the others are earlier."""
        tables = {
            "run": {"name": "x", **run},
            "case": [{"id": "a", "family": "vector", "reference": "r.gpkg", "prediction": "p.gpkg"}],
            "splits": {
                "development": "d.json",
                "development_sha256": "1" * 64,
                "protected": "p.json",
                "sha256": "0" * 64,
            },
            "product_gates": {self.gate: {**self.rows[-1], "earlier": self.rows[:-1]}},
        }
        return parse_config(tables, self.folder)

    def found(self, **run):
        verdicts = product_verdicts(self.config(**run))
        return next((one.status, one.reason) for one in verdicts if one.metric == self.gate)


@pytest.fixture
def record(tmp_path):
    return Record(tmp_path)


@pytest.mark.parametrize("gate", PRODUCT_GATES)
@pytest.mark.parametrize("finding", [{"decision": "fail"}, {"open_findings": 24}])
def test_a_finding_stands_until_it_is_superseded(tmp_path, gate, finding):
    record = Record(tmp_path, gate)
    old = record.add(MARCH, **finding)
    record.add(APRIL)
    assert record.found() == FAIL
    assert record.found(synthetic=True) == ("not_evaluable", "synthetic_only")
    assert "'e0.json'" in evidence_problems(record.config())[0]
    assert "no newer evidence supersedes it" in evidence_problems(record.config())[0]
    record.rows.pop()
    record.add(APRIL, [old, "f" * 64])
    assert record.found() == PASS
    assert evidence_problems(record.config()) == []


def test_clean_files_on_record_need_nothing(record):
    record.add()
    record.add(JUNE)
    record.add(MARCH)
    assert record.found() == PASS


@pytest.mark.parametrize(
    "changes",
    [
        {"decision": "fail"},
        {"open_findings": 1},
        {"open_findings": -1},
        {"supersedes": []},
        {"supersedes": ["f" * 64]},
        {"dated": ...},
        {"dated": MARCH},
        {"dated": "2026-02-28"},
        {"dated": "2026-03-01T23:59:59"},
        {"signed_by": ""},
        {"evidence": []},
        {"open_findings": ...},
        {"remark": 1},
        {"decision": "maybe"},
    ],
)
def test_what_does_not_supersede_leaves_the_finding_standing(record, changes):
    """Not newer, not clean, not named, or with keys that nobody reads: each leaves it at fail, not at undecided."""
    old = record.add(MARCH, open_findings=24)
    record.add(APRIL, [old])
    assert record.found() == PASS
    record.rows.pop()
    record.add(**{"dated": APRIL, "supersedes": [old], **changes})
    assert record.found() == FAIL


def test_a_finding_without_a_date_cannot_be_superseded(record):
    old = record.add(decision="fail")
    record.add(APRIL, [old])
    assert record.found() == FAIL


@pytest.mark.parametrize(
    "text", ["yesterday", "", "2026-04-31", "2026-4-1", "20260401", "2026-W14-3", " 2026-04-01", None, 20260401, True]
)
@pytest.mark.parametrize("side", [0, 1])
def test_a_date_that_cannot_be_read_decides_nothing(record, text, side):
    dates = [MARCH, APRIL]
    dates[side] = text
    old = record.add(decision="fail", dated=dates[0])
    record.add(supersedes=[old], dated=dates[1])
    assert record.found() == MISMATCH


def test_a_date_that_cannot_be_read_hides_no_finding_that_stands_anyway(record):
    record.add(MARCH, decision="fail")
    record.add("soon")
    assert record.found() == FAIL


@pytest.mark.parametrize(
    ("old", "new", "later"),
    [
        ("2026-03-01", "2026-03-02", True),
        ("2026-03-01", "2026-03-01", False),
        ("2026-03-01", "2026-03-01T12:00", False),
        ("2026-03-01", "2026-03-02T00:00", True),
        ("2026-03-01T12:00", "2026-03-01", False),
        ("2026-03-01T12:00", "2026-03-02", True),
        ("2026-03-01T12:00", "2026-03-01T12:00:01", True),
        ("2026-03-01T12:00:00.1", "2026-03-01 12:00:00.2", True),
        ("2026-03-01T12:00Z", "2026-03-01T12:00", False),
        ("2026-03-01T12:00+02:00", "2026-03-01T10:00:01Z", True),
        ("2026-03-01T12:00+02:00", "2026-03-01T11:30+02:00", False),
        ("2026-03-01T23:30-05:00", "2026-03-02", False),
        ("2026-03-01T23:30-05:00", "2026-03-03", True),
    ],
)
def test_later_means_later_in_time(record, old, new, later):
    found = record.add(old, decision="fail")
    record.add(new, [found])
    assert record.found() == (PASS if later else FAIL)


@pytest.mark.parametrize(
    "text",
    [
        "9999-12-31T23:59-12:00",
        "0001-01-01T00:00+12:00",
        "2026-03-01T24:00",
        "2026-03-01T12:60",
        "2026-03-01T12:00+25:00",
    ],
)
def test_moments_that_do_not_exist_are_none(text):
    assert date_span(text) is None


def test_the_last_day_there_is_can_be_read():
    assert date_span("9999-12-31") is not None


def test_a_chain_holds(record):
    first = record.add(MARCH, decision="fail")
    second = record.add(APRIL, [first], open_findings=3)
    record.add(MAY, [second])
    assert record.found() == PASS


def test_a_chain_with_a_clean_link_needs_no_more(record):
    first = record.add(MARCH, decision="fail")
    record.add(APRIL, [first])
    record.add(MAY)
    assert record.found() == PASS


def test_a_chain_with_an_open_end_does_not_hold(record):
    first = record.add(MARCH, decision="fail")
    record.add(APRIL, [first], open_findings=3)
    record.add(MAY, [first])
    assert record.found() == FAIL
    assert [said for said in evidence_problems(record.config()) if "e0" in said] == []


def test_a_chain_whose_link_is_not_newer_does_not_hold(record):
    first = record.add(MARCH, decision="fail")
    second = record.add(MARCH, [first], decision="fail")
    record.add(MAY, [second])
    assert record.found() == FAIL


def test_every_finding_needs_its_own_end(record):
    first = record.add(MARCH, decision="fail")
    second = record.add(APRIL, open_findings=2)
    record.add(MAY, [second])
    assert record.found() == FAIL
    record.rows.pop()
    record.add(MAY, [second, first])
    assert record.found() == PASS


def test_a_finding_that_is_newer_than_the_evidence_stands(record):
    old = record.add(JUNE, open_findings=1)
    record.add(MAY, [old])
    assert record.found() == FAIL


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda record: record.path(0).unlink(), MISSING),
        (lambda record: record.path(0).write_bytes(record.path(0).read_bytes() + b" "), MISMATCH),
    ],
)
@pytest.mark.parametrize("finding", [{"decision": "fail"}, {}])
def test_a_file_on_record_cannot_vanish(record, spoil, expected, finding):
    """Superseded or clean: what is on record must be there as it was."""
    old = record.add(MARCH, **finding)
    record.add(APRIL, [old])
    assert record.found() == PASS
    spoil(record)
    assert record.found() == expected
    assert record.path(0).name in evidence_problems(record.config())[0]


@pytest.mark.parametrize("data", [b"", b"no json", b"[]", b"24", b'{"gate": "review", "decision": "fail"}', b"{}"])
def test_a_file_on_record_that_is_no_evidence_on_this_gate_decides_nothing(record, data):
    old = record.put(data)
    record.add(APRIL, [old])
    assert record.found() == MISMATCH


@pytest.mark.parametrize("spoil", ["absent", "changed", "incomplete", "unknown"])
def test_broken_evidence_hides_no_finding_on_record(record, spoil):
    """Else a finding would turn from fail to undecided by spoiling the file that should answer it."""
    old = record.add(MARCH, open_findings=24)
    more = {"incomplete": {"evidence": []}, "unknown": {"remark": ""}}.get(spoil, {})
    record.add(APRIL, [old], **more)
    if spoil == "absent":
        record.path(1).unlink()
    if spoil == "changed":
        record.path(1).write_bytes(b"{}")
    assert record.found() == FAIL


def test_another_broken_file_hides_no_finding_on_record(record):
    record.put(b"no json")
    record.add(MARCH, open_findings=24)
    record.add(APRIL)
    assert record.found() == FAIL


def test_what_is_undecided_on_record_is_settled_by_newer_evidence(record):
    """A file with a misspelt key may hide a finding; what supersedes it answers for it."""
    old = record.add(MARCH, open_finding=24)
    record.add(APRIL)
    assert record.found() == MISMATCH
    record.rows.pop()
    record.add(APRIL, [old])
    assert record.found() == PASS


def test_files_on_record_are_bound(record):
    record.add(MARCH, decision="fail")
    record.add(APRIL)
    record.add(MAY)
    rows = [(row["role"], row["name"], row["sha256"]) for row in bound_files(record.config())]
    assert rows == [
        ("product_gates.leakage", "e2.json", record.rows[2]["sha256"]),
        ("product_gates.leakage.earlier", "e0.json", record.rows[0]["sha256"]),
        ("product_gates.leakage.earlier", "e1.json", record.rows[1]["sha256"]),
    ]
    resolved = record.config().resolved()["product_gates"]["leakage"]
    assert resolved == {**record.rows[2], "earlier": record.rows[:2]}


def test_absolute_paths_do_not_reach_the_bundle(record, tmp_path):
    record.add(MARCH)
    record.rows[0]["file"] = str(tmp_path / "e0.json")
    record.add(APRIL)
    assert record.found() == PASS
    assert record.config().resolved()["product_gates"]["leakage"]["earlier"][0]["file"] == "e0.json"


@pytest.mark.parametrize(
    ("earlier", "says"),
    [
        ([{"file": "a.json"}], r"product_gates\.leakage\.earlier\[0\]\.sha256: is required and missing"),
        ([{"file": "a.json", "sha256": "A" * 64}], r"earlier\[0\]\.sha256: .* does not fit the pattern"),
        ([{"file": "a", "sha256": "0" * 64, "fil": ""}], r"earlier\[0\]: unknown key 'fil'; did you mean 'file'"),
        ({"file": "a.json", "sha256": "0" * 64}, "earlier: must be a list"),
    ],
)
def test_entries_that_are_not_understood_are_refused(tmp_path, earlier, says):
    tables = {
        "run": {"name": "x"},
        "case": [{"id": "a", "family": "vector", "reference": "r.gpkg", "prediction": "p.gpkg"}],
        "product_gates": {"leakage": {"file": "e.json", "sha256": "0" * 64, "earlier": earlier}},
    }
    with pytest.raises(ConfigError, match=says):
        parse_config(tables, Path())


def test_the_order_of_the_record_does_not_matter(record):
    first = record.add(MARCH, decision="fail")
    second = record.add(APRIL, [first], open_findings=3)
    record.add(MAY, [second], decision="fail")
    record.add(MAY, open_findings=1)
    record.add(JUNE, [row["sha256"] for row in record.rows[2:4]])
    *earlier, bound = record.rows
    for rows in itertools.permutations(earlier):
        record.rows = [*rows, bound]
        assert record.found() == PASS


def settled(old, files):
    """By walking, where the record itself walks in rounds."""
    return any(
        old.sha256 in new.supersedes and new.span[0] > old.span[1] and (new.closes or settled(new, files))
        for new in files
    )


def test_the_record_agrees_with_a_walk_over_it():
    rng = random.Random(7)
    seen = set()
    for _ in range(400):
        names = [f"{i:064x}" for i in range(6)]
        files = []
        for name in names:
            clean = rng.random() < 0.4
            files.append(
                Evidence(
                    file=name,
                    sha256=name,
                    status="pass" if clean else "fail",
                    reason=None,
                    said="",
                    known=True,
                    closes=clean,
                    span=date_span(f"2026-03-0{rng.randint(1, 5)}"),
                    supersedes=frozenset(rng.sample(names, rng.randint(0, 3))),
                )
            )
        bound, *earlier = files
        stand = bound.status == "fail" or any(one.status == "fail" and not settled(one, files) for one in earlier)
        assert (standing(bound, earlier).status == "fail") is stand
        seen.add((stand, any(one.status == "fail" for one in earlier)))
    assert seen >= {(True, True), (False, True)}
