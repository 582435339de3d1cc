"""``geoeval split propose``: spatial blocks or clusters with a buffer, and what the buffer costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from geoeval.errors import ConfigError

if TYPE_CHECKING:
    from geoeval.splits.propose import Proposal
    from geoeval.splits.variogram import Variogram


@click.command(name="propose", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("places", type=click.Path(dir_okay=False), metavar="POINTS|TILES")
@click.option(
    "--buffer",
    "buffer_m",
    type=click.FloatRange(0, 1e6),
    required=True,
    metavar="METRES",
    help="Least distance between samples of different splits.",
)
@click.option(
    "--blocks",
    "side_m",
    type=click.FloatRange(0, min_open=True),
    metavar="METRES",
    help="Side of the blocks.  [default: the largest of 20, 10, 5, 3, 2 buffers that gives 10 blocks]",
)
@click.option("--clusters", type=click.IntRange(min=2), help="So many clusters of near samples instead of blocks.")
@click.option("--shares", default="train=0.7,test=0.3", show_default=True, help="Splits and their shares.")
@click.option("--value", metavar="COLUMN", help="Estimate how far this value resembles its surroundings.")
@click.option("--out", type=click.Path(dir_okay=False), required=True, help="CSV or GeoPackage with a split column.")
@click.option("--column", default="split", show_default=True, help="Name of the split column.")
@click.option("--crs", help="System of the coordinates, where the file names none.")
@click.option("--bounds", metavar="X,Y|MINX,MINY,MAXX,MAXY", help="Columns of the coordinates.  [default: guessed]")
@click.option("--layer", help="Layer of the file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(places: str, out: str, *, as_json: bool, **given: Any) -> None:
    """Propose a split for points or tiles: compact groups with a buffer between the splits.

    Samples that lie within the buffer of a more protected split are set aside ("quarantine" in the split column), and
    the price is printed. Without them, the splits pass the buffer gate. With --value, the range of its
    autocorrelation is printed beside the buffer.

    It knows places only: hold the result to what else must stay together with geoeval split check --group COLUMN.
    """
    from geoeval.splits.propose import described, propose
    from geoeval.splits.propose_files import check_target, read_places, values_of, write_proposal

    names = given["bounds"]
    columns = None if names is None else tuple(name.strip() for name in names.split(","))
    shares = _shares(given["shares"])
    placed = read_places(Path(places), crs=given["crs"], bounds=columns, layer=given["layer"])
    check_target(placed, Path(out), given["column"])
    value = None if given["value"] is None else values_of(placed, given["value"])
    found = propose(
        placed.bounds,
        placed.crs,
        buffer_m=given["buffer_m"],
        side_m=given["side_m"],
        clusters=given["clusters"],
        shares=shares,
    )
    range_found = None
    if value is not None:
        from geoeval.splits.propose import places_of
        from geoeval.splits.variogram import variogram

        range_found = variogram(places_of(placed.bounds, placed.crs), value)
    path = write_proposal(placed, found, Path(out), column=given["column"])
    if as_json:
        from geoeval.cli.show import print_json

        for name, text in placed.notes.items():
            click.echo(f"{name}: {text}", err=True)
        autocorrelation = None if range_found is None else _variogram_json(range_found, given["value"])
        print_json({**described(found), "autocorrelation": autocorrelation})
        return
    _show(found, placed.notes)
    if range_found is not None:
        _show_range(range_found, given["value"], found)
    click.echo(f"written {path.as_posix()}")


def _shares(text: str) -> dict[str, float]:
    """``train=0.7,test=0.3`` as a table."""
    out: dict[str, float] = {}
    for part in text.split(","):
        name, mark, number = (one.strip() for one in part.partition("="))
        try:
            share = float(number)
        except ValueError:
            mark = ""
            share = 0.0
        if not mark or not name or name in out:
            raise ConfigError(f"--shares: expected each split once, such as train=0.7,test=0.3, got {part!r}")
        out[name] = share
    return out


def _show(found: Proposal, notes: Any) -> None:
    from rich.table import Table

    from geoeval.cli.show import console

    out = console()
    for name, text in notes.items():
        out.print(f"{name}: {text}", style="dim", markup=False)
    table = Table(box=None, pad_edge=False)
    for name in ("split", "wanted", "in its groups", "set aside", "left"):
        table.add_column(name, justify="left" if name == "split" else "right")
    n = len(found.split)
    for role, share in found.shares.items():
        before, cost = found.before[role], found.cost[role]
        table.add_row(role, f"{share:.1%}", f"{before} ({before / n:.1%})", str(cost), str(before - cost))
    out.print(table)
    kind = f"{found.groups} clusters" if found.side_m is None else f"{found.groups} blocks of {found.side_m:g} m"
    out.print(f"{n} samples in {kind}", markup=False)
    out.print(
        f"the buffer of {found.buffer_m:g} m costs {found.set_aside} of {n} samples ({found.set_aside / n:.1%})",
        markup=False,
    )
    gates = ", ".join(f"{one.id} {one.status}" for one in found.gates if one.id in ("buffer", "complete"))
    out.print(f"gates: {gates}", markup=False)


def _show_range(found: Variogram, column: str, proposal: Proposal) -> None:
    from geoeval.cli.show import console
    from geoeval.splits.variogram import REASONS

    out = console()
    pairs = int(found.pairs.sum())
    head = f"autocorrelation of {column!r} ({found.points} points, {pairs} pairs): "
    if found.range_m is None:
        text = (
            f"no range found: {REASONS[str(found.reason)]}; the buffer of {proposal.buffer_m:g} m rests on no estimate"
        )
    else:
        short = found.range_m > proposal.buffer_m
        says = (
            "is shorter: samples at its far side still resemble each other" if short else "is at least as long as that"
        )
        text = (
            f"range about {found.range_m:.3g} m ({found.model} model, nugget {found.nugget:.3g}, "
            f"sill {found.sill:.3g}); the buffer of {proposal.buffer_m:g} m {says}"
        )
    out.print(head + text, markup=False, soft_wrap=True)


def _variogram_json(found: Variogram, column: str) -> dict[str, Any]:
    return {
        "column": column,
        "points": found.points,
        "range_m": found.range_m,
        "reason": found.reason,
        "model": found.model,
        "nugget": found.nugget,
        "sill": found.sill,
        "lag_m": found.lag.tolist(),
        "semivariance": found.semivariance.tolist(),
        "pairs": found.pairs.tolist(),
    }
