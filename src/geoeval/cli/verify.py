"""``geoeval verify``: is a bundle whole and unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import click

from geoeval.errors import BundleError


@click.command(name="verify", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("bundle", type=click.Path())
@click.option("--recount", is_flag=True, help="Derive every estimate and verdict again from the ledger, too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(bundle: str, *, recount: bool, as_json: bool) -> None:
    """Hash a bundle again, decide its gates again, render its board, report and layers again.

    Exit codes: 0 valid, 3 invalid, 2 unreadable.
    """
    from geoeval.cli.show import print_json
    from geoeval.verify import verify

    found = verify(Path(bundle))
    if recount:
        from geoeval.recount import recount as count_again

        found = replace(found, problems=(*found.problems, *_counted(count_again, Path(bundle), found.valid)))
    if as_json:
        print_json({"run": found.run, "valid": found.valid, "problems": list(found.problems), "files": found.files})
    else:
        for problem in found.problems:
            click.echo(problem)
        click.echo(f"{found.run}: {'valid' if found.valid else 'INVALID'}, {found.files} files")
    raise SystemExit(found.exit_code)


def _counted(count_again: Callable[[Path], Iterable[str]], bundle: Path, valid: bool) -> tuple[str, ...]:
    """Problems of the second count; where a bundle is known to be invalid, that it cannot be counted is one more."""
    try:
        return tuple(count_again(bundle))
    except BundleError as error:
        if valid:
            raise
        return (f"recount: {error}",)
