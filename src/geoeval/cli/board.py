"""``geoeval board RUN…``: several bundles side by side, and exports for machines that watch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from geoeval.errors import BundleError, ConfigError


@click.command(name="board", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("runs", nargs=-1, required=True, metavar="RUN…", type=click.Path())
@click.option("--out", type=click.Path(dir_okay=False), help="Write one HTML page.")
@click.option("--junit", type=click.Path(dir_okay=False), help="Write JUnit XML; gates not decided are errors.")
@click.option("--openmetrics", type=click.Path(dir_okay=False), help="Write an OpenMetrics textfile.")
@click.option("--json", "as_json", is_flag=True, help="Print the boards as one JSON object.")
def command(
    runs: tuple[str, ...], out: str | None, junit: str | None, openmetrics: str | None, *, as_json: bool
) -> None:
    """Show where each family of one or several bundles stands.

    Each bundle is verified first; one that is not valid is refused. Exit codes: 0, or 2 where a bundle is refused.
    """
    from geoeval.cli.show import print_json
    from geoeval.report.boards import boards_bytes

    boards = [_verified(Path(run)) for run in runs]
    if len(runs) > 1 and (junit or openmetrics):
        raise ConfigError("--junit and --openmetrics export one run; give one RUN, or call the command for each.")
    if out:
        _write(out, boards_bytes(boards))
    if junit or openmetrics:
        _export(Path(runs[0]), junit, openmetrics)
    if as_json:
        print_json({"boards": boards})
    else:
        _show(boards)


def _verified(bundle: Path) -> dict[str, Any]:
    from geoeval.verify import verify

    found = verify(bundle)
    if not found.valid:
        raise BundleError(f"{bundle.name}: not valid ({found.problems[0]}); see geoeval verify {bundle.name}")
    board: dict[str, Any] = json.loads((bundle / "board.json").read_bytes())
    return board


def _export(bundle: Path, junit: str | None, openmetrics: str | None) -> None:
    from geoeval.evidence.verify_files import read_listing
    from geoeval.report.junit import junit_bytes
    from geoeval.report.openmetrics import openmetrics_bytes
    from geoeval.verify import read_contents

    contents = read_contents(bundle, read_listing(bundle))
    parts = (contents.run, contents.evaluations, contents.verdicts, contents.product_gates)
    if junit:
        _write(junit, junit_bytes(*parts))
    if openmetrics:
        _write(openmetrics, openmetrics_bytes(*parts))


def _write(path: str, content: bytes) -> None:
    from geoeval.evidence.bundle import write_file

    try:
        write_file(Path(path), content)
    except OSError as error:
        raise BundleError(f"{path}: cannot be written ({error.strerror or error}); check the folder.") from error


def _show(boards: list[dict[str, Any]]) -> None:
    from rich.table import Table

    from geoeval.cli.show import console

    table = Table(box=None, pad_edge=False)
    table.add_column("family")
    for board in boards:
        table.add_column(board["run"], overflow="fold")
    names = sorted({row["family"] for board in boards for row in board["families"]})
    for name in names:
        cells = [{row["family"]: row["status"] for row in board["families"]}.get(name, "") for board in boards]
        table.add_row(name, *cells)
    table.add_row("all", *[board["status"] for board in boards])
    console().print(table)
