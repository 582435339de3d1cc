"""``geoeval inspect FILE``: what is in it, and what would be guessed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.tree import Tree


@click.command(name="inspect", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(file: str, *, as_json: bool) -> None:
    """Say what is in a file: coordinate system, units, counts, nodata, columns, and what would be guessed."""
    from rich.tree import Tree

    from geoeval.cli.show import console, print_json
    from geoeval.readers.inspect_file import inspect_file

    found = inspect_file(file)
    if as_json:
        print_json(found)
        return
    tree = Tree(file)
    _grow(tree, found)
    console().print(tree, markup=False)


def _grow(tree: Tree, given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        if isinstance(value, Mapping):
            if value:
                _grow(tree.add(str(name)), value)
        elif isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
            branch = tree.add(str(name))
            for one in value:
                head = str(one.get("name", "")) or "·"
                rest = ", ".join(f"{k} {v}" for k, v in one.items() if k != "name" and v not in (None, "", [], {}))
                branch.add(f"{head}: {rest}" if rest else head)
        elif isinstance(value, list | tuple):
            tree.add(f"{name}: {', '.join(str(one) for one in value)}")
        else:
            tree.add(f"{name}: {value}")
