"""``geoeval replay``: put a gold set through a runner; compare replays; several replays as one curve."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from geoeval.errors import ConfigError, GeoevalError, InputError

if TYPE_CHECKING:
    from geoeval.goldset.document import Replay
    from geoeval.stats.selective import PairedDelta


class WithDefault(click.Group):
    """A group whose first command may be left out: ``geoeval replay GOLD`` is ``geoeval replay run GOLD``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the first command in where none is named."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """In the order of their definition."""
        return list(self.commands)


_CONTEXT = {"help_option_names": ["-h", "--help"]}


@click.group(name="replay", cls=WithDefault, context_settings=_CONTEXT)
def command() -> None:
    """Replay a curated gold set: geoeval replay GOLD --runner module:callable.

    Only accepted results are graded, and a deferral is no error. Exit codes: 0 done; 2 refused; compare: 3 where the
    candidate is worse, 2 where it cannot be decided.
    """


@command.command(name="run", context_settings=_CONTEXT)
@click.argument("gold", type=click.Path())
@click.option("--runner", required=True, metavar="MODULE:CALLABLE", help="Or FILE.py:CALLABLE.")
@click.option("--out", type=click.Path(dir_okay=False), help="Write the replay as JSON; its journal lies beside it.")
@click.option("--resume", is_flag=True, help="Go on with an interrupted replay; finished cases are not asked again.")
@click.option("--grader", "grader", multiple=True, metavar="TASK=NAME", help="label or grounding, for a task.")
@click.option("--expert-quality", type=float, default=1.0, show_default=True, help="For the deferral curves.")
@click.option("--json", "as_json", is_flag=True, help="Print the replay as one JSON object.")
@click.option("--debug", is_flag=True, help="Show the traceback of a runner that raises.")
def run(
    gold: str,
    runner: str,
    out: str | None,
    grader: tuple[str, ...],
    expert_quality: float,
    *,
    resume: bool,
    as_json: bool,
    debug: bool,
) -> None:
    """Put every case of GOLD (JSON Lines: task, input, params, expect) through a runner."""
    from geoeval.cli.show import print_json, progress_bar
    from geoeval.goldset.callables import named_callable
    from geoeval.replay import replay

    if resume and out is None:
        raise ConfigError("--resume needs --out: the journal of a replay lies beside it.")
    with resume_hint(out), progress_bar("cases") as progress, shown_cause(debug=debug):
        found = replay(
            Path(gold),
            named_callable(runner, "runner"),
            out=Path(out) if out else None,
            resume=resume,
            grader=_pairs(grader),
            expert_quality=expert_quality,
            progress=progress,
        )
    if as_json:
        print_json(found.document)
    else:
        _show(found)


@contextmanager
def resume_hint(out: str | None) -> Iterator[None]:
    """Where somebody stops a replay that keeps a journal, say how to go on with it."""
    try:
        yield
    except (KeyboardInterrupt, click.Abort) as error:
        from geoeval.goldset.journal import journal_path

        if out is None or not journal_path(Path(out)).exists():
            raise
        kept = journal_path(Path(out)).name
        raise InputError(f"interrupted; finished cases are in {kept}, go on with --resume") from error


@contextmanager
def shown_cause(*, debug: bool) -> Iterator[None]:
    """Show the traceback of what a user's own code raised, where it is asked for."""
    try:
        yield
    except GeoevalError as error:
        if debug and error.__cause__ is not None:
            click.echo("".join(traceback.format_exception(error.__cause__)), err=True, nl=False)
        raise


def _pairs(given: tuple[str, ...]) -> dict[str, str]:
    out: dict[str, str] = {}
    for text in given:
        task, sign, name = text.partition("=")
        if not sign or not task or task in out:
            raise ConfigError(f"--grader is TASK=label or TASK=grounding, once for a task; got {text!r}")
        out[task] = name
    return out


def _show(found: Replay) -> None:
    from rich.table import Table

    from geoeval.cli.show import console

    document = found.document
    table = Table(box=None, pad_edge=False)
    for name in (
        "task",
        "n",
        "accepted",
        "correct",
        "deferred",
        "failed",
        "accuracy",
        "95 % interval",
        "cost",
        "per 1000",
    ):
        left = name in ("task", "95 % interval")
        table.add_column(name, justify="left" if left else "right", overflow="fold", no_wrap=name == "95 % interval")
    table.add_column("remarks", overflow="fold")
    for task, row in [*document["tasks"].items(), ("all", document["overall"])]:
        counts = (row[key] for key in ("n", "accepted", "accepted_correct", "deferred", "failed"))
        table.add_row(
            task,
            *map(str, counts),
            _figure(row["accuracy_accepted"]),
            bounds_text(row["interval"]),
            f"{row['cost']:.6g}",
            _figure(row["accuracy_per_1000_cost"]),
            ", ".join([*row.get("marks", []), *([row["reason"]] if row["reason"] else [])]),
        )
    out = console()
    out.print(table)
    lost = sum(len(one.ungrounded) for one in found.outcomes)
    if lost:
        out.print(f"{lost} statements do not stand in their source (--json names them)")
    out.print(f"replay/1|runner={found.bound['runner']['name']}|gold={found.bound['gold_sha256'][:16]}", soft_wrap=True)


def _figure(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4g}"


def bounds_text(interval: Any) -> str:
    """An interval as people read it."""
    return "" if interval is None or None in interval else f"[{interval[0]:.4g}, {interval[1]:.4g}]"


@command.command(name="compare", context_settings=_CONTEXT)
@click.argument("incumbent", type=click.Path())
@click.argument("candidate", type=click.Path())
@click.option(
    "--metric",
    type=click.Choice(["answered_right", "not_wrong", "cheaper"]),
    default="answered_right",
    show_default=True,
    help="What decides.",
)
@click.option("--task", help="Only the cases of this task.")
@click.option(
    "--clusters/--no-clusters", default=None, help="Draw clusters as a whole.  [default: where there are any]"
)
@click.option("--redraws", type=click.IntRange(min=1), default=2000, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compare(
    incumbent: str,
    candidate: str,
    metric: Any,
    task: str | None,
    redraws: int,
    seed: int,
    *,
    clusters: bool | None,
    as_json: bool,
) -> None:
    """Compare two replays of one gold set: adopt, block or inconclusive.

    Exit codes: 0 adopt, 3 block, 2 inconclusive or refused.
    """
    from geoeval.cli.show import console, print_json
    from geoeval.goldset.document import read_replay
    from geoeval.replay import compare as compared

    found = compared(
        read_replay(Path(incumbent)),
        read_replay(Path(candidate)),
        metric=metric,
        task=task,
        clusters=clusters,
        redraws=redraws,
        seed=seed,
    )
    if as_json:
        print_json(found.document)
    else:
        console().print(_deltas(found.deltas, found.metric))
        console().print(f"{found.candidate} against {found.incumbent}: {found.decision} by {found.metric}")
    raise SystemExit({"adopt": 0, "block": 3, "inconclusive": 2}[found.decision])


def _deltas(deltas: dict[str, PairedDelta], metric: str) -> Any:
    from rich.table import Table

    table = Table(title="candidate − incumbent, a case", title_justify="left", box=None, pad_edge=False)
    for name in ("metric", "difference", "95 % interval", "n (clusters)", "decision", "remarks"):
        table.add_column(name, justify="right" if name == "difference" else "left", overflow="fold")
    for name, delta in deltas.items():
        remarks = [*delta.marks, *([delta.reason] if delta.reason else []), *(["decides"] if name == metric else [])]
        observed = "undefined" if delta.observed is None else f"{delta.observed:+.4g}"
        where = f"{delta.n} ({delta.clusters})"
        table.add_row(name, observed, bounds_text([delta.low, delta.high]), where, delta.decision, ", ".join(remarks))
    return table


@command.command(name="curve", context_settings=_CONTEXT)
@click.argument("replays", nargs=-1, required=True, metavar="REPLAY…", type=click.Path())
@click.option("--expert-cost", type=float, default=0.0, show_default=True, help="Added for each deferred case.")
@click.option("--expert-quality", type=float, default=0.0, show_default=True, help="Worth of a deferred case.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def curve(replays: tuple[str, ...], expert_cost: float, expert_quality: float, *, as_json: bool) -> None:
    """Show several replays of one gold set as operating points of cost and quality."""
    from dataclasses import asdict

    from rich.table import Table

    from geoeval.cli.show import console, print_json
    from geoeval.goldset.document import read_replay
    from geoeval.replay import curve as curve_of

    named = {Path(path).stem: read_replay(Path(path)) for path in replays}
    if len(named) < len(replays):
        raise InputError("replays are told apart by the names of their files; give each another name")
    points, scaled, own = curve_of(named, expert_cost=expert_cost, expert_quality=expert_quality)
    if as_json:
        rows = {name: {"cost": cost, "quality": quality} for name, (cost, quality) in points.items()}
        print_json({"points": rows, "scaled_from_0": asdict(scaled), "own_range": asdict(own)})
        return
    table = Table(box=None, pad_edge=False)
    for name in ("replay", "mean cost", "quality"):
        table.add_column(name, justify="left" if name == "replay" else "right", overflow="fold")
    for name, (cost, quality) in sorted(points.items(), key=lambda one: (one[1], one[0])):
        table.add_row(name, f"{cost:.4g}", f"{quality:.4g}")
    console().print(table)
    console().print(
        f"peak {_figure(scaled.peak)}, AUDC {_figure(own.audc)}, QNC {_figure(own.qnc)} (own range of costs)"
    )
