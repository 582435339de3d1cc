"""Real data and known cases beside the project: tests that need them skip with a reason where they are absent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A first import of a heavy library inside a test would look like a slow example.
# Where a machine decides, the same examples decide every time; elsewhere new ones are looked for.
settings.register_profile("geoeval", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "geoeval")

_BESIDE = Path(__file__).resolve().parents[1].parent / "shared"


def _folder(variable: str, name: str) -> Path:
    folder = Path(os.environ.get(variable, _BESIDE / name))
    if not folder.is_dir():
        pytest.skip(f"{variable} is not set and no {name} folder stands beside the project")
    return folder


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real references and predictions."""
    return _folder("GEOEVAL_DATA", "data")


@pytest.fixture(scope="session")
def shared_cases() -> Path:
    """Folder of known answers."""
    return _folder("GEOEVAL_CASES", "cases")
