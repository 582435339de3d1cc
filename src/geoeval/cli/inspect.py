"""``geoeval inspect FILE``: what is in it, and what would be guessed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.tree import Tree

_LINE = 90


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
        if name == "crs" and not value:
            tree.add("crs: none; declare it with --crs")
        if value in (None, "", [], {}, ()):
            continue
        if isinstance(value, Mapping):
            _branch(tree, str(name), value)
        elif isinstance(value, list | tuple) and isinstance(value[0], Mapping):
            branch = tree.add(str(name))
            for at, one in enumerate(value, start=1):
                _branch(branch, str(one.get("name", at)), {key: part for key, part in one.items() if key != "name"})
        else:
            tree.add(f"{name}: {_text(value)}")


def _branch(tree: Tree, head: str, given: Mapping[str, Any]) -> None:
    """One line where everything is plain and short, else a branch."""
    shown = {key: value for key, value in given.items() if value not in (None, "", [], {}, ())}
    line = ", ".join(f"{key} {_text(value)}" for key, value in shown.items())
    nested = any(
        isinstance(value, Mapping) or (isinstance(value, list | tuple) and isinstance(value[0], Mapping))
        for value in shown.values()
    )
    if nested or len(line) > _LINE:
        _grow(tree.add(head), shown)
    else:
        tree.add(f"{head}: {line}" if line else head)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(_text(one) for one in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(one)}" for key, one in value.items())
    return str(value)
