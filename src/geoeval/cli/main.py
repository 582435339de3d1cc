"""The command ``geoeval``: a thin skin over the pipelines. Exit codes: 0 done, 1 a bug, 2 refused, 3 blocked."""

from __future__ import annotations

import sys
from typing import Any, ClassVar

import click

from geoeval.cli.streams import steady_streams
from geoeval.errors import GeoevalError

_INTERRUPTED = "Interrupted: stopped before the end; nothing was written that is not whole. Call it again."


class LazyGroup(click.Group):
    """Commands are imported when they are called, so that help stays quick."""

    _homes: ClassVar[dict[str, tuple[str, str]]] = {
        "evaluate": ("geoeval.cli.evaluate", "Score a prediction against a reference: two files, no configuration."),
        "benchmark": ("geoeval.cli.benchmark", "Score, gate and bundle every case of a configuration."),
        "compare": ("geoeval.cli.compare", "Compare candidates on held-out predictions; GO or BLOCKED."),
        "split": ("geoeval.cli.split", "Check, show, build and propose splits that do not leak."),
        "replay": ("geoeval.cli.replay", "Put a gold set through a runner; compare replays."),
        "judge": ("geoeval.cli.judge", "Calibrate a judge against a verifier; gate its promotion."),
        "verify": ("geoeval.cli.verify", "Check that a bundle is whole and unchanged."),
        "board": ("geoeval.cli.board", "Show several bundles side by side; JUnit and OpenMetrics exports."),
        "inspect": ("geoeval.cli.inspect", "Say what is in a file, and what would be guessed."),
    }

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Names of the commands, in the order of the help."""
        return list(self._homes)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """The command of this name, imported now."""
        if cmd_name not in self._homes:
            return None
        from importlib import import_module

        found: click.Command = import_module(self._homes[cmd_name][0]).command
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first argument names; an unknown one is refused with the nearest spelling."""
        if args and args[0] not in self._homes and not args[0].startswith("-"):
            from geoeval.errors import nearest_spelling

            ctx.fail(f"unknown command {args[0]!r}; {nearest_spelling(args[0], self._homes)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Call the command; whoever stops it gets a message and exit code 2."""
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, click.Abort) as error:
            # Before click sees it: there it would be exit code 1, which is a bug.
            click.echo(_INTERRUPTED, err=True)
            raise click.exceptions.Exit(2) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._homes.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="geoeval", prog_name="geoeval")
def main() -> None:
    """Say how good a map, a model or a DEM is, and whether it may be released.

    Exit codes: 0 done, and every gate passes; 2 refused, or not decidable; 3 a gate was evaluated and failed; 1 a bug.
    """


def run() -> None:
    """Run the command line; a user's mistake ends in a message, never in a traceback."""
    steady_streams()
    try:
        try:
            main(prog_name="geoeval")
        finally:
            # Now, where a full disk still ends in a message and an exit code.
            sys.stdout.flush()
    except KeyboardInterrupt:
        click.echo(_INTERRUPTED, err=True)
        sys.exit(2)
    except GeoevalError as error:
        click.echo(f"{type(error).__name__}: {error}", err=True)
        sys.exit(2)
    except OSError as error:
        # A full disk, a forbidden folder, a name that is too long: the machine's say, not a bug.
        where = f": {str(error.filename)[:200]!r}" if error.filename is not None else ""
        click.echo(f"OSError: {error.strerror or error}{where}; choose another place, or make room.", err=True)
        sys.exit(2)
    except MemoryError:
        click.echo(
            "MemoryError: the input does not fit; try fewer objects at once (folders of tiles), or --cluster none.",
            err=True,
        )
        sys.exit(2)
