"""Write the expected figures of the fixtures again; the change is reviewed like code."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from geoeval.benchmark import benchmark, expected_figures

EXPECTED = Path(__file__).resolve().parents[1] / "fixtures" / "expected.json"


def main() -> None:
    """Score the fixtures and keep every figure, rounded to 9 digits."""
    with tempfile.TemporaryDirectory() as folder:
        found = benchmark(None, Path(folder))
    EXPECTED.write_bytes((json.dumps(expected_figures(found.cases), indent=1, sort_keys=True) + "\n").encode())


if __name__ == "__main__":
    main()
