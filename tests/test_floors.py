"""The house: a room imports from lower floors only, and some rooms know nothing of each other."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1] / "src" / "geoeval"

FLOORS = {
    "model": 1,
    "layers": 1,
    "errors": 1,
    "options": 1,
    "keys": 1,
    "stats": 2,
    "geometry": 2,
    "gates": 2,
    "evidence": 2,
    "report": 2,
    "schemas": 2,
    "readers": 3,
    "ledger": 4,
    "estimation": 4,
    "pairs": 4,
    "objects": 4,
    "checks": 4,
    "splits": 4,
    "goldset": 4,
    "judging": 4,
    "selection": 4,
    "evaluators": 5,
    "config": 6,
    "summary": 6,
    "evaluation": 7,
    "dated": 7,
    "versus": 7,
    "points_of": 7,
    "recount": 7,
    "bundling": 7,
    "benchmark": 7,
    "replay": 7,
    "judge": 7,
    "compare": 7,
    "verify": 7,
    "cli": 8,
    "__main__": 9,
}

#: Pairs of rooms that must not meet below the evaluators.
STRANGERS = [
    ("stats", "geometry"),
    ("geometry", "stats"),
    ("report", "stats"),
    ("report", "geometry"),
    ("evidence", "geometry"),
]


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    """Rooms of geoeval that a file imports, wherever in the file; those for type checkers only are left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        id(node)
        for test in ast.walk(tree)
        if isinstance(test, ast.If) and ast.unparse(test.test) == "TYPE_CHECKING"
        for node in ast.walk(test)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "geoeval":
            parts = node.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("geoeval.")}
    return found & set(FLOORS)


MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_room_imports_from_lower_floors_only(path):
    room = room_of(path)
    assert room in FLOORS, f"{room} stands on no floor; add it to the table"
    for other in imports_of(path) - {room}:
        assert FLOORS[other] < FLOORS[room] or (FLOORS[other] == FLOORS[room] and room not in ("evaluators",)), (
            f"{room} (floor {FLOORS[room]}) imports {other} (floor {FLOORS[other]})"
        )
        assert (room, other) not in STRANGERS, f"{room} must not know {other}"


@pytest.mark.parametrize("path", sorted((ROOT / "evaluators").glob("*.py")), ids=lambda path: path.stem)
def test_no_evaluator_imports_another(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    siblings = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    assert not [name for name in siblings if name.startswith("geoeval.evaluators.")]


def test_rooms_of_one_floor_form_no_circle():
    """Between rooms of one floor, who imports whom has no way back."""
    edges: dict[str, set[str]] = {}
    for path in MODULES:
        edges.setdefault(room_of(path), set()).update(imports_of(path) - {room_of(path)})

    def reachable(room: str) -> set[str]:
        seen: set[str] = set()
        queue = list(edges.get(room, ()))
        while queue:
            other = queue.pop()
            if other not in seen:
                seen.add(other)
                queue.extend(edges.get(other, ()))
        return seen

    assert not [room for room in edges if room in reachable(room)]


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


HEAVY = ("numpy", "pandas", "geopandas", "shapely", "rasterio", "pyproj", "scipy", "numba", "matplotlib", "pyarrow")


def test_importing_the_package_loads_no_heavy_library():
    heavy = [*HEAVY, "rich", "pydantic"]
    code = f"import sys, geoeval; print([name for name in {heavy!r} if name in sys.modules])"
    assert run_python(code).strip() == "[]"


def test_help_loads_click_and_nothing_heavy():
    heavy = [*HEAVY, "rich", "pydantic"]
    code = (
        "import sys\nfrom geoeval.cli.main import main\n"
        "try:\n    main(['--help'], standalone_mode=False)\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    assert run_python(code).strip().splitlines()[-1] == "[]"


def test_the_raster_path_loads_neither_geopandas_nor_matplotlib():
    code = (
        "import sys\nimport geoeval.evaluators.raster, geoeval.readers.raster\n"
        "print([n for n in ('geopandas', 'matplotlib') if n in sys.modules])"
    )
    assert run_python(code).strip() == "[]"


def test_every_promised_name_is_there_and_explained():
    import geoeval

    assert set(geoeval.__all__) == {"__version__", *geoeval._HOMES}
    for name in geoeval.__all__:
        found = getattr(geoeval, name)
        assert name == "__version__" or found.__doc__, f"{name} has no docstring"
