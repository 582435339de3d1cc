"""``geoeval judge``: freeze a calibration set, calibrate a judge on it, follow it, gate its promotion."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from geoeval.errors import BundleError, InputError

if TYPE_CHECKING:
    from geoeval.goldset.callables import Named
    from geoeval.judging.figures import Calibration, Identity

_CONTEXT = {"help_option_names": ["-h", "--help"]}
_AT = "%Y-%m-%d %H:%M UTC"


def _clock() -> datetime:
    return datetime.now(tz=UTC)


@click.group(name="judge", context_settings=_CONTEXT)
def command() -> None:
    """Calibrate a judge against a verifier on recorded episodes; nothing is run again.

    Exit codes: 0 done; 2 refused, or not decidable; gate: 3 where a bias is shown.
    """


def _identity_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--rubric-file", type=click.Path(dir_okay=False), help="The rubric; its hash is bound."),
        click.option("--prompt", type=click.Path(dir_okay=False), help="The judge's prompt; its hash is bound."),
        click.option("--rubric", required=True, metavar="VERSION", help="Version of the rubric; tags the metrics."),
        click.option("--model", required=True, help="Model behind the judge; tags the metrics."),
        click.option("--judge-id", required=True, help="Name of the judge; tags the metrics."),
        click.option("--judge", "judge", required=True, metavar="MODULE:CALLABLE", help="Or FILE.py:CALLABLE."),
    ):
        function = option(function)
    return function


def _identity(
    named: Named, judge_id: str, model: str, rubric: str, prompt: str | None, rubric_file: str | None
) -> Identity:
    from geoeval.judging.figures import Identity

    return Identity(judge_id, model, rubric, named.sha256, _hash_of(prompt), _hash_of(rubric_file))


def _hash_of(path: str | None) -> str | None:
    from geoeval.evidence.canonical import file_digest

    if path is None:
        return None
    if not Path(path).is_file():
        raise InputError(f"{Path(path).name}: no such file; check the path")
    return file_digest(Path(path))


@command.command(name="freeze", context_settings=_CONTEXT)
@click.argument("history", type=click.Path())
@click.option(
    "--out", required=True, type=click.Path(dir_okay=False), help="The set; made once and never written over."
)
@click.option("--limit", type=click.IntRange(min=1), help="Draw so many episodes.  [default: all]")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the draw.")
def freeze(history: str, out: str, limit: int | None, seed: int) -> None:
    """Make a calibration set from recorded HISTORY (JSON Lines: task_id, episode, outcome, dimensions)."""
    from geoeval.judging.entries import freeze as frozen
    from geoeval.replay import write_whole

    found = frozen(Path(history), limit=limit, seed=seed)
    target = Path(out)
    if target.exists():
        if target.is_file() and target.read_bytes() == found.content:
            click.echo(f"{target.name}: is there already, with the same {len(found.entries)} entries")
            return
        raise InputError(f"{target.name}: is there already and differs; a set is made once, give another --out")
    write_whole(target, found.content)
    click.echo(
        f"{target.name}: {len(found.entries)} entries, dimensions {', '.join(found.dimensions)}, set {found.sha256}"
    )


@command.command(name="calibrate", context_settings=_CONTEXT)
@click.argument("calibration_set", metavar="SET", type=click.Path())
@_identity_options
@click.option("--history", required=True, type=click.Path(dir_okay=False), help="Results are appended here.")
@click.option("--if-older-than", "age", metavar="AGE", help="Do nothing where a result is at most so old: 7d, 12h.")
@click.option("--margin", type=float, default=0.1, show_default=True, help="Bias that matters, declared before.")
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Chance of any false bias.")
@click.option("--openmetrics", type=click.Path(dir_okay=False), help="Write the metrics as an OpenMetrics textfile.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--debug", is_flag=True, help="Show the traceback of a judge that raises.")
def calibrate(
    calibration_set: str,
    judge: str,
    judge_id: str,
    model: str,
    rubric: str,
    prompt: str | None,
    rubric_file: str | None,
    history: str,
    age: str | None,
    margin: float,
    alpha: float,
    openmetrics: str | None,
    *,
    as_json: bool,
    debug: bool,
) -> None:
    """Put every recorded episode of SET before the judge and hold it to the verifier."""
    from geoeval.cli.replay import shown_cause
    from geoeval.cli.show import print_json, progress_bar
    from geoeval.goldset.callables import named_callable
    from geoeval.judge import append, is_due, read_history, read_set
    from geoeval.judge import calibrate as calibrated
    from geoeval.judging.history import parse_age

    entries, past = read_set(Path(calibration_set)), read_history(Path(history))
    named = named_callable(judge, "judge")
    identity = _identity(named, judge_id, model, rubric, prompt, rubric_file)
    if age is not None and not is_due(past, identity, entries.sha256, parse_age(age), _clock()):
        click.echo(f"a result is at most {age} old; nothing was done", err=True)
        return
    with progress_bar("entries") as progress, shown_cause(debug=debug):
        found = calibrated(entries, named.call, identity, margin=margin, alpha=alpha, progress=progress)
    _export(found, openmetrics)
    append(Path(history), found, _clock())
    if as_json:
        print_json(found.document)
    else:
        _show(found)


@command.command(name="status", context_settings=_CONTEXT)
@click.option("--history", required=True, type=click.Path(dir_okay=False))
@click.option("--judge-id", help="Only this judge.")
@click.option("--model", help="Only this model.")
@click.option("--rubric", metavar="VERSION", help="Only this version of the rubric.")
@click.option("--max-age", metavar="AGE", help="Exit 2 where the newest result is older: 7d, 12h.")
@click.option("--plot", type=click.Path(dir_okay=False), help="Write the drift over time as SVG.")
@click.option("--openmetrics", type=click.Path(dir_okay=False), help="Write the newest metrics as a textfile.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def status(
    history: str,
    judge_id: str | None,
    model: str | None,
    rubric: str | None,
    max_age: str | None,
    plot: str | None,
    openmetrics: str | None,
    *,
    as_json: bool,
) -> None:
    """Say how the newest calibration stands, how old it is, and draw the drift over time.

    Exit codes: 0; 2 where there is no result, or it is older than --max-age.
    """
    from geoeval.cli.show import print_json
    from geoeval.judge import read_history
    from geoeval.judging.exports import drift_svg
    from geoeval.judging.history import parse_age, whole_seconds

    wanted = {"judge": judge_id, "model": model, "rubric": rubric}
    past = tuple(
        one
        for one in read_history(Path(history))
        if all(value in (None, one.calibration.identity.tags[name]) for name, value in wanted.items())
    )
    if not past:
        raise InputError(f"{Path(history).name}: no result exists (evidence_missing); calibrate first")
    last, age = past[-1], whole_seconds(_clock()) - past[-1].at
    stale = max_age is not None and not 0 <= age.total_seconds() <= parse_age(max_age).total_seconds()
    if plot:
        _write(plot, drift_svg(past))
    _export(last.calibration, openmetrics)
    if as_json:
        told = {
            "at": last.at.isoformat(),
            "age_seconds": int(age.total_seconds()),
            "stale": stale,
            "results": len(past),
        }
        print_json({**told, "calibration": last.calibration.document})
    else:
        _show(last.calibration)
        word = " (stale_calibration)" if stale else ""
        click.echo(f"newest of {len(past)} results, {last.at.strftime(_AT)}, {age} old{word}")
    raise SystemExit(2 if stale else 0)


@command.command(name="gate", context_settings=_CONTEXT)
@click.argument("calibration_set", metavar="SET", type=click.Path())
@_identity_options
@click.option("--history", required=True, type=click.Path(dir_okay=False))
@click.option("--max-age", metavar="AGE", default="7d", show_default=True)
@click.option("--margin", type=float, default=0.1, show_default=True, help="Bias that matters.")
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Chance of any false bias.")
@click.option("--max-indeterminate", type=float, default=0.05, show_default=True, help="Share of undecided verdicts.")
@click.option("--min-agreement", type=float, help="Least agreement on the outcome, held to the whole interval.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def gate(
    calibration_set: str,
    judge: str,
    judge_id: str,
    model: str,
    rubric: str,
    prompt: str | None,
    rubric_file: str | None,
    history: str,
    max_age: str,
    margin: float,
    alpha: float,
    max_indeterminate: float,
    min_agreement: float | None,
    *,
    as_json: bool,
) -> None:
    """May this judge be promoted? Each reason against it is named; nothing is calibrated here.

    Exit codes: 0 yes, 3 a bias is shown, 2 not decidable: no result, stale, another set, judge, prompt or rubric.
    """
    from geoeval.cli.show import print_json
    from geoeval.goldset.callables import named_callable
    from geoeval.judge import promotion_gate, read_history, read_set
    from geoeval.judging.history import parse_age

    entries = read_set(Path(calibration_set))
    identity = _identity(named_callable(judge, "judge"), judge_id, model, rubric, prompt, rubric_file)
    found = promotion_gate(
        read_history(Path(history)),
        identity,
        entries.sha256,
        now=_clock(),
        max_age=parse_age(max_age),
        margin=margin,
        alpha=alpha,
        max_indeterminate=max_indeterminate,
        min_agreement=min_agreement,
    )
    if as_json:
        rows = [{"reason": one.reason, "dimension": one.dimension, "says": one.says} for one in found.refusals]
        print_json({"status": found.status, "refusals": rows})
    else:
        for one in found.refusals:
            click.echo(f"{one.reason}: {one.says}")
        click.echo({"pass": "GO", "fail": "BLOCKED", "not_evaluable": "not decidable"}[found.status])
    raise SystemExit(found.exit_code)


def _export(found: Calibration, openmetrics: str | None) -> None:
    from geoeval.judging.exports import openmetrics_text

    if openmetrics:
        _write(openmetrics, openmetrics_text(found))


def _write(path: str, content: bytes) -> None:
    from geoeval.replay import write_whole

    if Path(path).is_dir():
        raise BundleError(f"{Path(path).name}: is a folder; give the name of a file")
    write_whole(Path(path), content)


def _show(found: Calibration) -> None:
    from rich.table import Table

    from geoeval.cli.show import console

    out = console()
    table = Table(title=" · ".join(found.identity.tags.values()), title_justify="left", box=None, pad_edge=False)
    for name in (
        "dimension",
        "agreement",
        "95 % interval",
        "n",
        "undecided",
        "bias",
        "interval",
        "p (Holm)",
        "verdict",
    ):
        left = name in ("dimension", "verdict", "95 % interval", "interval")
        table.add_column(name, justify="left" if left else "right", overflow="fold")
    document = found.document
    for name, row in [("(outcome)", document["overall"]), *document["dimensions"].items()]:
        table.add_row(name, *_cells(row), _verdict(row))
    out.print(table)
    pooled, order = document["pooled"], document["order"]
    if pooled["agreement"] is not None:
        out.print(f"all dimensions together: {pooled['agreement']:.4g} of {pooled['n']} verdicts")
    if order["asked"]:
        out.print(f"order: {order['inconsistent']} of {order['asked']} verdicts change in swapped order")
    named = ", ".join(f"{one['dimension']} ({one['direction']})" for one in document["biased_dimensions"])
    out.print(f"biased dimensions: {named or 'none'}; {found.entries} recorded episodes, {found.executor_runs} run")


def _cells(row: dict[str, Any]) -> list[str]:
    def told(value: float | None, form: str) -> str:
        return "undefined" if value is None else format(value, form)

    def both(low: float | None, high: float | None, form: str) -> str:
        return "" if low is None or high is None else f"[{low:{form}}, {high:{form}}]"

    return [
        told(row["agreement"], ".4g"),
        both(row["low"], row["high"], ".4g"),
        str(row["n"]),
        str(row["indeterminate"]),
        told(row["bias"], "+.3f"),
        both(row["bias_low"], row["bias_high"], "+.3f"),
        "" if row["p_holm"] is None else f"{row['p_holm']:.3g}",
    ]


def _verdict(row: dict[str, Any]) -> str:
    return f"{row['verdict']}, {row['direction']}" if row["direction"] else str(row["verdict"])
