"""The history is appended to and never changed: whatever is changed in it is seen, and named by line."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta

import pytest

from geoeval.errors import ConfigError, InputError
from geoeval.evidence.canonical import canonical_bytes, digest
from geoeval.judge import append, calibrate, read_history
from geoeval.judging.exports import drift_svg, openmetrics_text
from geoeval.judging.figures import Identity
from geoeval.judging.history import parse_age

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def history(tmp_path, recorded, stub):
    """Four weekly results."""
    path = tmp_path / "history.jsonl"
    for week in range(4):
        found = calibrate(recorded, stub(week), Identity('s"t<ub', "none", "1"))
        append(path, found, NOW + timedelta(weeks=week))
    return path


def test_results_are_read_back_in_order_and_appending_changes_nothing_before(history, recorded, stub):
    before = history.read_bytes()
    past = read_history(history)
    assert [one.at for one in past] == [NOW + timedelta(weeks=week) for week in range(4)]
    append(history, calibrate(recorded, stub(9), Identity("stub", "none", "1")), NOW + timedelta(weeks=5))
    assert history.read_bytes().startswith(before)
    assert len(read_history(history)) == 5


def test_no_file_is_no_result(tmp_path):
    assert read_history(tmp_path / "none.jsonl") == ()


def rehashed(row, previous=None):
    data = {key: value for key, value in json.loads(row).items() if key != "sha256"}
    data = data if previous is None else {**data, "previous": previous}
    return canonical_bytes({**data, "sha256": digest(canonical_bytes(data))})


CHANGES = [
    (lambda rows: [rows[0], rows[1].replace(b'"alpha":0.05', b'"alpha":0.06'), *rows[2:]], 2),
    (lambda rows: [rows[0].replace(b"2026-03-01", b"2026-03-02"), *rows[1:]], 1),
    (lambda rows: [rows[0], *rows[2:]], 2),
    (lambda rows: rows[1:], 1),
    (lambda rows: [rows[1], rows[0], *rows[2:]], 1),
    (lambda rows: [*rows[:2], rows[1], *rows[2:]], 3),
    (lambda rows: [rows[0], b"", *rows[1:]], 2),
    (lambda rows: [rows[0], b"{}", *rows[1:]], 2),
    (lambda rows: [rows[0], rows[1].replace(b"{", b"{ ", 1), *rows[2:]], 2),
    (lambda rows: [rehashed(rows[0].replace(b'"alpha":0.05', b'"alpha":0.06')), *rows[1:]], 2),
    (lambda rows: [rehashed(rows[0].replace(b'"entries":250', b'"entries":251')), *rows[1:]], 1),
    (lambda rows: [rehashed(rows[0].replace(b"2026-03-01T12", b"2026-04-01T12")), *rows[1:]], 2),
    (lambda rows: [rehashed(rows[0].replace(b"2026-03-01T12", b"yesterday")), *rows[1:]], 1),
    (lambda rows: [rehashed(rows[0], "1" * 64), *rows[1:]], 1),
]


@pytest.mark.parametrize(("change", "line"), CHANGES)
def test_a_line_that_was_changed_removed_moved_or_added_is_seen(change, line, history):
    rows = history.read_bytes().splitlines()
    history.write_bytes(b"".join(row + b"\n" for row in change(rows)))
    with pytest.raises(InputError, match=rf"history\.jsonl, line {line}"):
        read_history(history)


def test_a_line_that_goes_back_in_time_is_refused_though_its_hashes_are_right(history):
    rows = history.read_bytes().splitlines()
    first = rehashed(rows[0].replace(b"2026-03-01T12", b"2026-12-01T12"))
    second = rehashed(rows[1], json.loads(first)["sha256"])
    history.write_bytes(first + b"\n" + second + b"\n")
    with pytest.raises(InputError, match="line 2: is older than the line before"):
        read_history(history)


def test_a_last_line_that_was_cut_short_is_named(history):
    history.write_bytes(history.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"history\.jsonl, line 4: was cut short"):
        read_history(history)


def test_a_clock_that_went_back_adds_nothing(history, recorded, stub):
    before = history.read_bytes()
    with pytest.raises(InputError, match="check the clock"):
        append(history, calibrate(recorded, stub(9), Identity("stub", "none", "1")), NOW)
    with pytest.raises(ConfigError, match="needs its zone"):
        append(history, calibrate(recorded, stub(9), Identity("stub", "none", "1")), datetime(2027, 1, 1))  # noqa: DTZ001
    assert history.read_bytes() == before


def test_times_stand_in_the_history_only(history):
    past = read_history(history)
    assert "2026" not in json.dumps(past[0].calibration.document)
    assert b"2026" not in openmetrics_text(past[0].calibration)


def test_drift_is_a_plot_of_equal_bytes(history):
    past = read_history(history)
    picture = drift_svg(past)
    assert picture == drift_svg(read_history(history))
    root = ET.fromstring(picture)
    assert sum(one.tag.endswith("circle") for one in root.iter()) == 4 * 6
    texts = [one.text for one in root.iter() if one.tag.endswith("text")]
    assert 's"t<ub · none · 1' in texts
    assert "2026-03-01" in texts
    assert "2026-03-22" in texts
    ET.fromstring(drift_svg(past[:1]))
    with pytest.raises(InputError, match="at least one result"):
        drift_svg(())


def test_metrics_are_exported_with_their_tags(history):
    text = openmetrics_text(read_history(history)[0].calibration).decode()
    assert 'geoeval_judge_agreement{judge="s\\"t<ub",model="none",rubric="1"} 0.9' in text
    assert 'geoeval_judge_bias_high{judge="s\\"t<ub",model="none",rubric="1",dimension="unit"}' in text
    assert text.endswith("# EOF\n")
    assert "None" not in text
    samples = [line.split("{")[0] for line in text.splitlines() if not line.startswith("#")]
    assert all(f"# TYPE {name} gauge" in text for name in samples)
    assert "geoeval_judge_order_inconsistent{" not in text  # the judge gave none, which is not zero


@pytest.mark.parametrize("text", ["7", "d", "-7d", "7 days", "1.5d", "", "99999999999999w"])
def test_an_age_that_is_none_is_refused(text):
    with pytest.raises(ConfigError, match="an age"):
        parse_age(text)
