"""A comparison of two predictions as tables for people, or as one JSON object."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from geoeval.cli.show import console, print_gates, print_json
from geoeval.versus import Comparison, versus_json

if TYPE_CHECKING:
    from geoeval.pairs import Difference

_SHOWN_STRATA = 40
_COLOURS = {"adopt": "green", "block": "red", "inconclusive": "yellow"}


def show_comparison(comparison: Comparison, *, as_json: bool) -> None:
    """Print a comparison; beside one JSON object, guesses go to stderr."""
    sides = {"incumbent": comparison.incumbent, "candidate": comparison.candidate}
    notes = {
        name: {key: text for key, text in side.notes.items() if name == "incumbent" or _new(comparison, key)}
        for name, side in sides.items()
    }
    if as_json:
        for name, said in notes.items():
            for key, text in said.items():
                click.echo(f"{name}: {key}: {text}", err=True)
        print_json(versus_json(comparison))
        return
    out = console()
    for name, said in notes.items():
        for key, text in said.items():
            out.print(f"{name}: {key}: {text}", style="dim", markup=False)
    out.print(_table(comparison))
    if comparison.strata:
        out.print(_subgroups(comparison))
        _print_worst(comparison)
    print_gates(out, comparison.candidate.evaluation)
    lead = comparison.differences[comparison.metric]
    decision = comparison.decision
    out.print(f"{comparison.metric}: {decision}{_because(lead)}", style=_COLOURS[decision], markup=False)
    out.print(comparison.signature, style="dim", soft_wrap=True, markup=False)


def _new(comparison: Comparison, key: str) -> bool:
    """Whether a note on the candidate says anything that was not said of the incumbent."""
    return comparison.candidate.notes.get(key) != comparison.incumbent.notes.get(key)


def _table(comparison: Comparison) -> object:
    from rich.table import Table

    title = f"{comparison.family}: candidate − incumbent"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    level = f"{comparison.confidence * 100:g} % interval"
    for name in ("metric", "incumbent", "candidate", "difference", level, "reads", "remarks"):
        right = name in ("incumbent", "candidate", "difference")
        table.add_column(name, justify="right" if right else "left", overflow="fold", no_wrap=name == "metric")
    for name, one in comparison.differences.items():
        table.add_row(name, number(one.incumbent), number(one.candidate), *_of_difference(one), _reads(one), _says(one))
    return table


def _subgroups(comparison: Comparison) -> object:
    from rich.table import Table

    table = Table(title=f"{comparison.metric} by subgroup", title_justify="left", box=None, pad_edge=False)
    for name in ("subgroup", "incumbent", "candidate", "difference", "interval", "remarks"):
        right = name in ("incumbent", "candidate", "difference")
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for group in comparison.strata[:_SHOWN_STRATA]:
        one = group.difference
        where = ", ".join(f"{field}={value}" for field, value in group.by.items())
        table.add_row(where, number(one.incumbent), number(one.candidate), *_of_difference(one), _says(one))
    return table


def _print_worst(comparison: Comparison) -> None:
    worst = comparison.worst
    if worst is None:
        return
    where = ", ".join(f"{field}={value}" for field, value in worst.by.items())
    one = worst.difference
    text = f"least gain of {comparison.metric}: {where} ({signed(one.difference)}{_bounds(one)})"
    console().print(text, markup=False)


def number(value: float | None) -> str:
    """A value as people read it."""
    if value is None:
        return "undefined"
    if abs(value) < 1000:
        return f"{value:.4g}"
    return f"{value:.0f}" if value.is_integer() else f"{value:.1f}"


def signed(value: float | None) -> str:
    """A difference as people read it: 0 bears no sign.

    Examples
    --------
    >>> signed(0.25), signed(0.0), signed(None)
    ('+0.25', '0', '')
    """
    if value is None:
        return ""
    return f"{value:+.4g}" if value else "0"


def _of_difference(one: Difference) -> tuple[str, str]:
    return signed(one.difference), _bounds(one).strip()


def _bounds(one: Difference) -> str:
    return "" if one.low is None or one.high is None else f" [{signed(one.low)}, {signed(one.high)}]"


def _reads(one: Difference) -> str:
    """What the interval of one figure says, in words."""
    if one.better is None or one.difference is None:
        return ""
    return {"adopt": "better", "block": "worse", "inconclusive": "unclear"}[one.decision]


def _says(one: Difference) -> str:
    return ", ".join([*one.marks, *([one.reason] if one.reason else [])])


def _because(one: Difference) -> str:
    if one.reason:
        return f" ({one.reason})"
    if one.differing_clusters == 0:
        return f" (no difference in any of {one.clusters} clusters)"
    if one.marks:
        return f" ({', '.join(one.marks)}: {one.clusters} clusters, {one.differing_clusters} of them differ)"
    return f" (gain {signed(one.gain)} [{signed(one.gain_low)}, {signed(one.gain_high)}] in {one.clusters} clusters)"
