"""The documentation is true: links lead somewhere, every metric is explained, commands do what the pages say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from geoeval.cli.main import main
from geoeval.errors import GeoevalError
from geoeval.keys import CLASS_KEYS, KEYS
from geoeval.model import MARKS, REASONS

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
FEW = {"--redraws": "20", "--ranked-redraws": "10"}


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def anchors(page: Path) -> set[str]:
    """Headings as GitHub links to them."""
    found = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in found}


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_link_leads_to_a_file_and_a_heading(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if re.match(r"https?://|mailto:", target):
            continue
        path, _, anchor = target.partition("#")
        other = (page.parent / path).resolve() if path else page
        assert other.is_file(), f"{page_name(page)}: {target} leads nowhere"
        assert not anchor or anchor in anchors(other), f"{page_name(page)}: {target} has no such heading"


def test_every_page_can_be_reached_from_the_readme():
    seen, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        seen.add(page)
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            other = (page.parent / target.partition("#")[0]).resolve()
            if other.suffix == ".md" and other.is_file() and other not in seen:
                waiting.append(other)
    assert {page_name(page) for page in PAGES} <= {page_name(page) for page in seen}


def section(text: str, heading: str) -> str:
    return re.split(r"^## ", text.split(f"\n## {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


@pytest.mark.parametrize("family", KEYS)
def test_every_metric_stands_in_the_index_of_quantities(family):
    text = (ROOT / "docs" / "quantities.md").read_text(encoding="utf-8")
    rows = section(text, family.capitalize())
    if family == "vector":
        rows += section(text, "Footprint")
    missing = [key for key in (*KEYS[family], *CLASS_KEYS.get(family, ())) if f"`{key}`" not in rows]
    assert not missing


def test_every_test_file_that_the_index_names_exists():
    text = (ROOT / "docs" / "quantities.md").read_text(encoding="utf-8")
    for line in re.findall(r"^Tests: .+$", text, re.MULTILINE):
        folder = Path()
        for name in re.findall(r"`([^`]+\.py)`", line):
            folder = Path(name).parent if "/" in name else folder
            assert (ROOT / folder / Path(name).name).is_file(), name


def test_every_mark_and_every_reason_is_explained_and_no_other():
    text = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
    for heading, words in (("Marks", MARKS), ("Reasons", REASONS)):
        assert set(re.findall(r"^\| `(\w+)` \|", section(text, heading), re.MULTILINE)) == words


def commands() -> list[object]:
    """Every ``$ geoeval …`` on the fixtures, with the exit code that the page shows after it (none shown: 0)."""
    found: dict[str, object] = {}
    for page in PAGES:
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            parts = re.split(r"^\$ ", block.replace("\\\n", " "), flags=re.MULTILINE)[1:]
            for at, part in enumerate(parts):
                words = shlex.split(part.partition("\n")[0])
                if words[0] != "geoeval" or "fixtures/" not in part.partition("\n")[0] or not all(map(at_hand, words)):
                    continue
                after = parts[at + 1].split() if at + 1 < len(parts) else []
                code = int(after[2]) if after[:2] == ["echo", "$?"] else 0
                given = tuple(words[1:])
                found.setdefault(" ".join(given), pytest.param(given, code, id=f"{page_name(page)}: {' '.join(given)}"))
    return list(found.values())


def at_hand(word: str) -> bool:
    """False for a file that the reader makes first."""
    return word.startswith("fixtures/") or not re.search(r"\.(csv|tif|gpkg|geojson|toml)$", word)


@pytest.mark.parametrize(("given", "code"), commands())
def test_a_command_of_the_pages_ends_as_shown(given, code, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    words = [str(tmp_path) if before == "--out" else word for before, word in zip(("", *given), given, strict=False)]
    if words[0] == "evaluate":
        words += [part for option, value in FEW.items() if option not in words for part in (option, value)]
    result = CliRunner().invoke(main, words)
    # The program's own entry turns its errors into exit code 2.
    found = 2 if isinstance(result.exception, GeoevalError) else result.exit_code
    assert found == code, result.output


def test_pages_with_commands_were_found():
    assert len(commands()) >= 12
