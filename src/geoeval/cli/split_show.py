"""``geoeval split show``: a split in numbers and as a map."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from geoeval.cli.split_options import demands, list_options, read_given
from geoeval.errors import BundleError

if TYPE_CHECKING:
    from geoeval.splits.list_check import ListCheck
    from geoeval.splits.list_summary import RoleSummary

_SHOWN_STRATA = 40


@click.command(name="show", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("files", nargs=-1, required=True, metavar="FILES…")
@list_options
@click.option("--by", multiple=True, metavar="COLUMN", help="Count samples by a column. Repeatable.")
@click.option("--picture", type=click.Path(dir_okay=False), help="Draw the map into this .svg or .png file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(files: tuple[str, ...], by: tuple[str, ...], picture: str | None, *, as_json: bool, **given: Any) -> None:
    """Show samples, ground and strata of each split; FILES as in split check.

    The map shows samples by role, the buffer around them, and the offending pairs that the gates name.

    Exit codes: 0, or 2 where something is refused. A leak is drawn and counted; split check decides.
    """
    from geoeval.splits.list_check import check_list
    from geoeval.splits.list_summary import summary

    read = read_given(files, given, by)
    strata = by or tuple(read.table.strata)
    rows = summary(read, strata)
    held = demands(given, read)
    found = check_list(read, held)
    if picture is not None:
        from geoeval.splits.picture import picture_kind, split_picture

        path = Path(picture)
        _write(path, split_picture(found, picture_kind(path), buffer_m=held.buffer_m))
    _print(rows, found, as_json=as_json)


def _write(path: Path, data: bytes) -> None:
    from geoeval.evidence.bundle import write_file

    try:
        write_file(path, data)
    except OSError as error:
        raise BundleError(f"{path.name}: cannot be written ({error.strerror or error}); check the folder") from error


def _print(rows: tuple[RoleSummary, ...], found: ListCheck, *, as_json: bool) -> None:
    from rich.table import Table

    from geoeval.cli.show import console, print_json

    if as_json:
        gates = {one.result.id: {"status": one.result.status, "count": one.result.count} for one in found.gates}
        for name, text in found.notes.items():
            click.echo(f"{name}: {text}", err=True)
        print_json({"splits": [asdict(one) for one in rows], "gates": gates, "notes": dict(found.notes)})
        return
    for name, text in found.notes.items():
        click.echo(f"{name}: {text}")
    table = Table(box=None, pad_edge=False)
    for name in ("split", "samples", "share", "with place", "area km²", "ground km²"):
        table.add_column(name, justify="left" if name == "split" else "right")
    for one in rows:
        areas = ["" if area is None else f"{area:.3f}" for area in (one.area_km2, one.ground_km2)]
        table.add_row(one.split, str(one.samples), f"{one.share:.1%}", str(one.with_box), *areas)
    out = console()
    out.print(table)
    for column in rows[0].strata if rows else ():
        out.print(_strata(column, rows))
    for gate in (one.result for one in found.gates):
        reason = f" ({gate.reason})" if gate.reason else ""
        click.echo(f"{gate.id}: {gate.status}{reason}, {gate.count} found")
        if gate.id == "complete":
            for name, text in gate.notes.items():
                click.echo(f"  {name}: {text}")


def _strata(column: str, rows: tuple[RoleSummary, ...]) -> Any:
    from rich.table import Table

    table = Table(title=column, title_justify="left", box=None, pad_edge=False)
    table.add_column(column, overflow="fold")
    for one in rows:
        table.add_column(one.split, justify="right")
    values = sorted({value for one in rows for value in one.strata[column]})
    for value in values[:_SHOWN_STRATA]:
        table.add_row(value, *[str(one.strata[column].get(value, 0)) for one in rows])
    if len(values) > _SHOWN_STRATA:
        table.add_row(f"… and {len(values) - _SHOWN_STRATA} more", *[""] * len(rows))
    return table
