"""``geoeval benchmark``: every case of a configuration, gated and bundled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from geoeval.benchmark import Benchmark
    from geoeval.model import Verdict

#: Gates of a family that are named where they do not pass.
_SHOWN_GATES = 8


@click.command(name="benchmark", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--config", type=click.Path(dir_okay=False), help="TOML file.  [default: the one that comes with geoeval]"
)
@click.option("--out", type=click.Path(file_okay=False), default=".", show_default=True, help="Bundles go to OUT/runs.")
@click.option("--waivers", type=click.Path(dir_okay=False), help="TOML file of signed waivers; no status changes.")
@click.option("--key-file", type=click.Path(), help="Key that opens sealed challenge hashes of the protected manifest.")
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True)
@click.option(
    "--allow-product-blocked",
    is_flag=True,
    help="Exit 0 although product gates cannot be decided, where the harness itself is in order.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the board as one JSON object.")
def command(
    config: str | None,
    out: str,
    waivers: str | None,
    key_file: str | None,
    workers: int,
    *,
    allow_product_blocked: bool,
    as_json: bool,
) -> None:
    """Score, gate and bundle every case of a configuration.

    Without --config, the synthetic fixtures that come with geoeval: that proves the harness, not a product, so the exit
    code is 2 unless --allow-product-blocked is given.
    """
    from geoeval.benchmark import benchmark
    from geoeval.cli.show import print_json, progress_bar
    from geoeval.cli.split_options import read_key

    with progress_bar("cases") as progress:
        found = benchmark(
            Path(config) if config else None,
            Path(out),
            waivers=Path(waivers) if waivers else None,
            today=datetime.now(tz=UTC).date(),
            workers=workers,
            progress=progress,
            key=read_key(key_file),
        )
    if as_json:
        import json

        print_json(json.loads((found.folder / "board.json").read_bytes()))
    else:
        _show(found)
    for problem in found.evidence_problems:
        click.echo(f"product gate {problem}", err=True)
    for problem in found.problems:
        click.echo(f"contract: {problem}", err=True)
    raise SystemExit(found.exit_code(allow_product_blocked=allow_product_blocked))


def _show(found: Benchmark) -> None:
    from geoeval.cli.show import console

    out = console()
    if found.synthetic:
        out.print("synthetic data: this proves the harness, not a product", style="bold")
    out.print(_families(found))
    unmet = list(_not_passed(found))
    if unmet:
        out.print("gates that do not pass", style="italic")
    for line in unmet:
        out.print(line, markup=False, soft_wrap=True)
    out.print(_product(found))
    from geoeval.gates import exit_code

    words = {0: "GO", 2: "not decidable", 3: "BLOCKED"}
    out.print(f"families {words[exit_code(found.verdicts)]}, product {words[exit_code(found.product_gates)]}")
    out.print(f"bundle {found.folder.as_posix()}", soft_wrap=True)


def _families(found: Benchmark) -> Any:
    from rich.table import Table
    from rich.text import Text

    from geoeval.cli.show import bounds, number, support, worst_stratum
    from geoeval.gates import family_status
    from geoeval.keys import HEADLINE

    table = Table(title=found.name, title_justify="left", box=None, pad_edge=False)
    for name in ("family", "status", "metric", "value", "95 % interval", "support (clusters)", "worst subgroup"):
        table.add_column(name, justify="right" if name == "value" else "left", overflow="fold")
    colours = {"pass": "green", "fail": "red", "not_evaluable": "yellow"}
    for case, scored in found.cases.items():
        evaluation = scored.result.evaluation
        status = family_status([one for one in found.verdicts if one.id.startswith(f"{case}:")])
        worst = worst_stratum(evaluation.family, evaluation.strata)
        shown = [name for name in HEADLINE[evaluation.family] if name in evaluation.estimates]
        for at, name in enumerate(shown):
            given = evaluation.estimates[name]
            where = ""
            if worst and worst[1] == name:
                by = ", ".join(f"{key}={value}" for key, value in worst[0].by.items())
                where = f"{by}: {number(worst[0].estimates[name])}"
            elif worst and at == 0 and worst[1] not in shown:
                by = ", ".join(f"{key}={value}" for key, value in worst[0].by.items())
                where = f"{by}: {worst[1]} {number(worst[0].estimates[worst[1]])}"
            head = (case, Text(status, style=colours[status])) if at == 0 else ("", "")
            unit = "" if given.unit == "1" else f" {given.unit}"
            table.add_row(*head, name, number(given) + unit, bounds(given), support(given), where)
    return table


def _not_passed(found: Benchmark) -> Iterator[str]:
    """A line for each gate of a family that does not pass: its status, why, and the figure that was held to it."""
    for case in dict.fromkeys(_case_of(found, one) for one in found.verdicts):
        own = [one for one in found.verdicts if _case_of(found, one) == case and one.status != "pass"]
        for one in own[:_SHOWN_GATES]:
            why = _why(found, case, one)
            says = replace(one, reason=why) if one.metric else f"{one.status} ({why}), {one.scope}"
            yield f"{case}: {says}" if case else str(says)
        if len(own) > _SHOWN_GATES:
            yield f"{case}: … and {len(own) - _SHOWN_GATES} more (gates.json has all)"


def _case_of(found: Benchmark, verdict: Verdict) -> str:
    """The case that a verdict is about; the family of a gate that was never held to any."""
    case = verdict.id.partition(":")[0]
    return case if case in found.cases else verdict.family


def _why(found: Benchmark, case: str, verdict: Verdict) -> str | None:
    """The reason of a verdict, with the numbers that it rests on where they are few."""
    from geoeval.gates import group_name, lacking_clusters

    reason = verdict.reason
    if reason == "low_support":
        return f"{reason}, {verdict.support or 0} of {verdict.min_support}"
    if reason != "few_clusters" or case not in found.cases:
        return reason
    evaluation = found.cases[case].result.evaluation
    kind, _, name = verdict.scope.partition(":")
    figures = {"overall": evaluation.estimates, "per_class": evaluation.per_class.get(name, {})}.get(kind)
    if figures is None:
        figures = next((one.estimates for one in evaluation.strata if group_name(one.by) == name), {})
    lacking = lacking_clusters(figures[verdict.metric]) if verdict.metric in figures else ""
    return f"{reason}, {lacking}" if lacking else reason


def _product(found: Benchmark) -> Any:
    from rich.table import Table

    table = Table(title="product gates", title_justify="left", box=None, pad_edge=False)
    for name in ("gate", "status", "reason"):
        table.add_column(name)
    for one in found.product_gates:
        table.add_row(one.metric, one.status, one.reason or "")
    return table
