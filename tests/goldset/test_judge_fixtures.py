"""The fixtures of replay and judge: the same bytes on every run."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_gold_set_history_and_calibration_set_are_written_again_byte_for_byte(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("make_judge_fixtures", ROOT / "scripts" / "make_judge_fixtures.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "ROOT", tmp_path)
    script.main()
    made = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*.jsonl")}
    assert len(made) == 3
    assert all((ROOT / "fixtures" / name).read_bytes() == content for name, content in made.items())
