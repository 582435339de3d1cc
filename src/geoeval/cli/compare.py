"""``geoeval compare PREDICTIONS… --config F`` and ``geoeval compare receipt REPORT``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

_SHOWN_CLASSES = 20
_SHOWN_CONFUSED = 20
_FIGURES = ("coverage", "precision_at_coverage", "macro_f1", "ece", "aurc", "eaurc", "augrc")
_NAMES = {"help_option_names": ["-h", "--help"]}


class _Compare(click.Group):
    """A command with files as arguments that has one subcommand of another name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ("-h", "--help")):
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        run = self.commands["run"]
        run.format_help(click.Context(run, info_name=ctx.command_path), formatter)
        with formatter.section("Commands"):
            formatter.write_dl([("receipt REPORT", "Turn a report into one release decision.")])


@click.group(name="compare", cls=_Compare, context_settings=_NAMES)
def command() -> None:
    """Compare candidates on held-out predictions, and say whether one may be released."""


@command.command(name="run", hidden=True, context_settings=_NAMES)
@click.argument("predictions", nargs=-1, required=True, metavar="PREDICTIONS…", type=click.Path())
@click.option("--config", required=True, metavar="FILE", type=click.Path(), help="TOML: labels, splits, gates.")
@click.option("--out", type=click.Path(file_okay=False), help="Folder for report.json and two plots (SVG).")
@click.option("--report", type=click.Path(dir_okay=False), help="Write the report alone to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")
def run(predictions: tuple[str, ...], config: str, out: str | None, report: str | None, *, as_json: bool) -> None:
    """Compare candidates on held-out predictions (JSON Lines), and say whether one may be released.

    One threshold for each candidate is selected on the validation split and scored on the test split once.

    Exit codes: 0 GO, 3 BLOCKED, 2 the input was refused and nothing was written, 1 a bug.
    """
    from geoeval.cli.show import print_json
    from geoeval.compare import compare, exit_code, load_comparison, write_results

    found = compare([Path(path) for path in predictions], load_comparison(Path(config)))
    write_results(found, folder=None if out is None else Path(out), file=None if report is None else Path(report))
    if as_json:
        print_json(found)
    else:
        _show(found)
    sys.exit(exit_code(found))


@command.command(name="receipt", context_settings=_NAMES)
@click.argument("report", type=click.Path())
@click.option("--policy", metavar="FILE", type=click.Path(), help="The abstention policy in force (TOML).")
@click.option("--require-real", is_flag=True, help="Block on a report from synthetic predictions.")
@click.option("--json", "as_json", is_flag=True, help="Print the decision as one JSON object.")
def receipt(report: str, policy: str | None, *, require_real: bool, as_json: bool) -> None:
    """Turn a report into one release decision: GO with its threshold, or BLOCKED with each reason.

    A missing report blocks. Exit codes: 0 GO, 3 BLOCKED, 2 the file is no report, 1 a bug.
    """
    from geoeval.cli.show import print_json
    from geoeval.compare import load_policy, read_report
    from geoeval.selection import evaluate_prefill_gate

    in_force = None if policy is None else load_policy(Path(policy))
    found = evaluate_prefill_gate(read_report(Path(report)), in_force, require_real=require_real)
    if as_json:
        print_json(found.described())
    else:
        if found.synthetic:
            click.echo("SYNTHETIC predictions: this decision says nothing about a model or a product.")
        if found.decision == "GO":
            click.echo(f"GO  {found.model}: answers with a confidence of {found.threshold:g} or more may be offered")
        else:
            click.echo("BLOCKED")
        for one in found.reasons:
            click.echo(f"  {one.code}: {one.says}")
    sys.exit(found.exit_code)


def _show(report: Mapping[str, Any]) -> None:
    from geoeval.cli.show import console

    out = console(markup=True)
    if report["synthetic"]:
        out.print("SYNTHETIC predictions: nothing here says anything about a model or a product.", style="yellow")
    _print_models(out, report)
    for name, model in report["models"].items():
        _print_classes(out, name, model)
        _print_confusion(out, name, model, report["settings"]["labels"])
    _print_gates(out, report)
    for limit in report["claim_limits"]:
        out.print(f"[dim]claim limit: {_plain(limit)}[/dim]")
    if not report["same_cases"]:
        out.print("the candidates did not answer the same test cases; their figures are not strictly comparable")
    verdict = report["verdict"]
    colour = "green" if verdict == "GO" else "red"
    best = "no candidate clears every gate" if report["recommended"] is None else report["recommended"]
    out.print(f"[bold {colour}]{verdict}[/bold {colour}]  {_plain(best)}")


def _plain(text: object) -> str:
    """Text from outside, in which brackets are no markup."""
    from rich.markup import escape

    return escape(str(text))


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4g}"


def _print_models(out: Console, report: Mapping[str, Any]) -> None:
    from rich.table import Table

    for name, model in report["models"].items():
        table = Table(title=_plain(name), title_justify="left", box=None, pad_edge=False)
        for column in ("figure", "value", "interval", "support", "remarks"):
            table.add_column(column, justify="right" if column == "value" else "left", overflow="fold")
        for figure in _FIGURES:
            given = model["estimates"][figure]
            span = given["interval"]
            bounds = "" if span is None else f"[{span['low']:.4g}, {span['high']:.4g}]"
            parts = given["numerator"], given["denominator"]
            whole = all(isinstance(part, int) for part in parts)
            support = f"{parts[0]} of {parts[1]}" if whole else str(given["support"])
            if span is not None and span["clusters"] is not None:
                support += f" ({span['clusters']})"
            remarks = ", ".join([*given["marks"], *([given["reason"]] if given["reason"] else [])])
            table.add_row(figure, _number(given["value"]), _plain(bounds), support, remarks)
        out.print(table)
        chosen = model["validation"]
        if model["threshold"] is None:
            asked = report["settings"]["min_coverage"]
            out.print(f"no threshold: no cut of {chosen['n']} validation records reaches a coverage of {asked:g}")
            continue
        out.print(
            f"threshold {model['threshold']:g}, from validation: coverage {_number(chosen['coverage'])}, "
            f"precision {_number(chosen['precision'])}, {chosen['accepted']} of {chosen['n']}"
        )
        said = ", ".join(f"{reason} {count}" for reason, count in model["abstentions"].items())
        out.print(f"abstained on test: {said}")


def _print_classes(out: Console, name: str, model: Mapping[str, Any]) -> None:
    from rich.table import Table

    table = Table(title=f"{_plain(name)}: per class", title_justify="left", box=None, pad_edge=False)
    for column in ("class", "precision", "recall", "f1", "support", "predicted"):
        table.add_column(column, justify="left" if column == "class" else "right", overflow="fold")
    for label, row in list(model["per_class"].items())[:_SHOWN_CLASSES]:
        values = [_number(row[figure]) for figure in ("precision", "recall", "f1")]
        table.add_row(_plain(label), *values, str(row["support"]), str(row["predicted"]))
    out.print(table)
    if len(model["per_class"]) > _SHOWN_CLASSES:
        out.print(f"… and {len(model['per_class']) - _SHOWN_CLASSES} more classes (--json has all)")
    for row in model["excluded_classes"][:_SHOWN_CLASSES]:
        label = _plain(row["label"])
        out.print(f"excluded class {label}: {row['reason']} among the accepted, predicted {row['predicted']} times")


def _print_confusion(out: Console, name: str, model: Mapping[str, Any], labels: list[str]) -> None:
    if not model["confusion"] or len(labels) > _SHOWN_CONFUSED:
        return
    from rich.table import Table

    out.print(f"{_plain(name)}: confusion of the accepted, rows truth, columns prediction", style="italic")
    table = Table(box=None, pad_edge=False)
    table.add_column("", overflow="fold")
    for label in labels:
        table.add_column(_plain(label), justify="right", overflow="fold")
    for label in labels:
        counts = [str(model["confusion"].get(f"{label}->{other}", 0)) for other in labels]
        table.add_row(_plain(label), *counts)
    out.print(table)


def _print_gates(out: Console, report: Mapping[str, Any]) -> None:
    from rich.table import Table

    table = Table(title="gates", title_justify="left", box=None, pad_edge=False)
    for column in ("candidate", "gate", "limit", "on", "value", "status", "reason"):
        table.add_column(column, overflow="fold")
    colours = {"pass": "green", "fail": "red", "not_evaluable": "yellow"}
    for name, model in report["models"].items():
        for row in model["gates"]:
            sign = "≥" if row["direction"] == "at_least" else "≤"
            limit = "" if row["limit"] is None else f"{sign} {row['limit']:g}"
            value = "" if row["value"] is None else f"{row['value']:.4g}"
            status = f"[{colours[row['status']]}]{row['status']}[/{colours[row['status']]}]"
            label = row["scope"].removeprefix("per_class:")
            gate = row["metric"] if row["scope"] == "overall" else f"{row['metric']} of {label}"
            table.add_row(_plain(name), _plain(gate), limit, row["on"], value, status, row["reason"] or "")
    out.print(table)
