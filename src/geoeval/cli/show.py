"""Results as tables for people, or as one JSON object; progress on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from geoeval.keys import RANKED_BY
from geoeval.model import Estimate, Evaluation, Finding, Stratum

if TYPE_CHECKING:
    from rich.console import Console

    from geoeval.evaluation import Result

_SHOWN_FINDINGS = 12
_SHOWN_CLASSES = 20
_SHOWN_STRATA = 40


def console(*, stderr: bool = False, markup: bool = False) -> Console:
    """A console that is as wide as the terminal, and wide enough in a pipe.

    Labels and file names are printed as they are: ``[b]`` is no markup and ``:a:`` no picture. Who asks for ``markup``
    escapes them.
    """
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 110
    return Console(stderr=stderr, width=width, highlight=False, markup=markup, emoji=False)


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on stderr where somebody looks at it, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def show_result(result: Result, *, as_json: bool, folder: Path | None = None) -> None:
    """Print a result; guesses and findings go with it. Beside one JSON object, guesses go to stderr."""
    if as_json:
        from geoeval.evidence.shape import evaluation_json

        for name, text in result.notes.items():
            click.echo(f"{name}: {text}", err=True)
        print_json(evaluation_json(result.evaluation))
        if folder is not None:
            sys.stderr.write(f"bundle {folder}\n")
        return
    out = console()
    evaluation = result.evaluation
    for name, text in result.notes.items():
        out.print(f"{name}: {text}", style="dim")
    out.print(estimates_table(f"{evaluation.family}", evaluation.estimates))
    _print_design(out, evaluation)
    _print_classes(out, evaluation)
    _print_strata(out, evaluation)
    _print_excluded(out, evaluation)
    _print_findings(out, evaluation)
    print_gates(out, evaluation)
    out.print(evaluation.signature, style="dim", soft_wrap=True)
    if folder is not None:
        out.print(f"bundle {folder}", soft_wrap=True)


def print_json(value: Mapping[str, Any]) -> None:
    """One object on stdout, sorted, rounded as in evidence, without NaN."""
    from geoeval.evidence.canonical import canonical_bytes

    # A narrow terminal encoding gets escapes that are JSON's own.
    wide = (sys.stdout.encoding or "utf-8").lower().replace("-", "") == "utf8"
    plain = json.loads(canonical_bytes(value))
    text = json.dumps(plain, indent=1, ensure_ascii=not wide, allow_nan=False, sort_keys=True)
    sys.stdout.write(text + "\n")


def number(given: Estimate) -> str:
    """A value as people read it."""
    if given.value is None:
        return "undefined"
    if given.unit == "1" and float(given.value).is_integer() and given.interval is None:
        return f"{int(given.value):,}".replace(",", " ")
    return f"{given.value:.4g}" if abs(given.value) < 1000 else f"{given.value:.1f}"


def bounds(given: Estimate) -> str:
    """An interval as people read it."""
    if given.interval is None:
        return ""
    return f"[{given.interval.low:.4g}, {given.interval.high:.4g}]"


def support(given: Estimate) -> str:
    """``k of n`` for proportions, the number of observations for the rest; in brackets the clusters of the interval."""
    whole = given.numerator is not None and given.denominator is not None
    text = f"{given.support}"
    if whole and float(given.numerator or 0).is_integer() and float(given.denominator or 0).is_integer():
        text = f"{int(given.numerator or 0)} of {int(given.denominator or 0)}"
    if given.interval is not None and given.interval.clusters is not None:
        text += f" ({given.interval.clusters})"
    return text


def remarks(given: Estimate) -> str:
    """Design effect, marks and reasons."""
    parts = []
    if given.interval is not None and given.interval.design_effect is not None:
        parts.append(f"design effect {given.interval.design_effect:.2g}")
    parts.extend(given.marks)
    if given.reason:
        parts.append(given.reason)
    return ", ".join(parts)


def estimates_table(title: str, estimates: Mapping[str, Estimate]) -> Any:
    """A table of figures: value, interval, support, remarks."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in (
        "metric",
        "value",
        "unit",
        "95 % interval" if _all95(estimates) else "interval",
        "support (clusters)",
        "remarks",
    ):
        right = name == "value"
        table.add_column(name, justify="right" if right else "left", overflow="fold", no_wrap=name == "metric")
    for name, given in estimates.items():
        unit = "" if given.unit == "1" else given.unit
        table.add_row(name, number(given), unit, bounds(given), support(given), remarks(given))
    return table


def _all95(estimates: Mapping[str, Estimate]) -> bool:
    return all(one.interval is None or one.interval.confidence == 0.95 for one in estimates.values())


def worst_stratum(family: str, strata: tuple[Stratum, ...]) -> tuple[Stratum, str] | None:
    """The subgroup with the worst leading figure, and the name of that figure; None where none is defined."""
    for name, more_is_better in RANKED_BY[family]:
        valued = [one for one in strata if name in one.estimates and one.estimates[name].value is not None]
        if valued:
            return min(valued, key=lambda one: _rank(one, name, more_is_better)), name
    return None


def _rank(one: Stratum, name: str, more_is_better: bool) -> tuple[float, list[tuple[str, str]]]:
    value = float(one.estimates[name].value or 0.0)
    return (value if more_is_better else -value), sorted(one.by.items())


def _print_design(out: Console, evaluation: Evaluation) -> None:
    """Adjusted figures with the standard errors of the sampling design."""
    errors = evaluation.details.get("standard_errors")
    if not errors:
        return
    from rich.table import Table

    table = Table(title="by the sampling design", title_justify="left", box=None, pad_edge=False)
    for name in ("class", "figure", "value", "standard error", "interval", "remarks"):
        table.add_column(name, justify="right" if name in ("value", "standard error") else "left", overflow="fold")
    rows = [("", "accuracy_adjusted", evaluation.estimates["accuracy_adjusted"], errors["accuracy_adjusted"])]
    for label, named in errors["per_class"].items():
        rows += [(label, name, evaluation.per_class[label][name], error) for name, error in named.items()]
    for label, name, given, error in rows:
        unit = "" if given.unit == "1" else f" {given.unit}"
        shown = "" if error is None else f"{error:.4g}{unit}"
        table.add_row(label, name, number(given) + unit, shown, bounds(given), remarks(given))
    out.print(table)


def _print_classes(out: Console, evaluation: Evaluation) -> None:
    if not evaluation.per_class:
        return
    from rich.table import Table

    names = list(dict.fromkeys(name for given in evaluation.per_class.values() for name in given))[:8]
    table = Table(title="per class", title_justify="left", box=None, pad_edge=False)
    table.add_column("class", overflow="fold")
    for name in names:
        table.add_column(name, justify="right")
    for label, given in list(evaluation.per_class.items())[:_SHOWN_CLASSES]:
        table.add_row(label, *[number(given[name]) if name in given else "" for name in names])
    out.print(table)
    if len(evaluation.per_class) > _SHOWN_CLASSES:
        out.print(f"… and {len(evaluation.per_class) - _SHOWN_CLASSES} more classes (--json has all)")


def _print_strata(out: Console, evaluation: Evaluation) -> None:
    if not evaluation.strata:
        return
    from rich.table import Table

    worst = worst_stratum(evaluation.family, evaluation.strata)
    shown = [name for name, _ in RANKED_BY[evaluation.family] if name in evaluation.estimates]
    lead = worst[1] if worst else (shown[0] if shown else "")
    table = Table(title="subgroups", title_justify="left", box=None, pad_edge=False)
    for name in ("subgroup", lead, "interval", "support", "status", "remarks"):
        table.add_column(name, justify="right" if name == lead else "left", overflow="fold")
    for one in evaluation.strata[:_SHOWN_STRATA]:
        given = one.estimates.get(lead, Estimate(None, "1", 0))
        name = ", ".join(f"{field}={value}" for field, value in one.by.items())
        mark = "critical" if one.critical else ""
        table.add_row(name, number(given), bounds(given), support(given), one.status, one.support_reason or mark)
    out.print(table)
    if worst:
        where = ", ".join(f"{field}={value}" for field, value in worst[0].by.items())
        value, overall = worst[0].estimates[worst[1]].value, evaluation.estimates[worst[1]].value
        gap = "" if overall is None or value is None else f", {value - overall:+.4g} from overall"
        out.print(f"worst subgroup by {worst[1]}: {where} ({number(worst[0].estimates[worst[1]])}{gap})")


def _print_excluded(out: Console, evaluation: Evaluation) -> None:
    for one in evaluation.excluded_classes or ():
        out.print(
            f"excluded class {one['label']}: {one.get('reason', 'no_support')}, predicted {one['predicted']} times"
        )


def _print_findings(out: Console, evaluation: Evaluation) -> None:
    kinds: dict[tuple[str, str], list[Finding]] = {}
    for one in evaluation.findings:
        kinds.setdefault((one.severity, one.code), []).append(one)
    for (_, code), found in list(kinds.items())[:_SHOWN_FINDINGS]:
        one = found[0]
        mend = f" → {one.mend}" if one.mend else ""
        head = ": ".join(part for part in (one.severity, one.code, ", ".join(one.where)) if part)
        out.print(f"{head}: {one.says}{mend}", markup=False)
        if len(found) > 1:
            out.print(f"… and {len(found) - 1} more of {code} (--json has all)", markup=False)
    if len(kinds) > _SHOWN_FINDINGS:
        out.print(f"… and {len(kinds) - _SHOWN_FINDINGS} more kinds of findings (--json has all)")


def print_gates(out: Console, evaluation: Evaluation) -> None:
    """A table of verdicts, where there are any."""
    if not evaluation.gates:
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(title="gates", title_justify="left", box=None, pad_edge=False)
    for name in ("gate", "scope", "limit", "on", "value", "interval", "status", "reason"):
        table.add_column(name, overflow="fold")
    colours = {"pass": "green", "fail": "red", "not_evaluable": "yellow"}
    for one in evaluation.gates:
        sign = "≥" if one.direction == "at_least" else "≤"
        limit = "" if one.limit is None else f"{sign} {one.limit:g}"
        low_high = "" if one.low is None or one.high is None else f"[{one.low:.4g}, {one.high:.4g}]"
        value = "" if one.value is None else f"{one.value:.4g}"
        reason = one.reason or ""
        if one.smallest_n is not None and one.status == "not_evaluable":
            reason += f" (at least {one.smallest_n} could pass)"
        status = Text(one.status, style=colours[one.status])
        table.add_row(one.metric, one.scope, limit, one.on, value, low_high, status, reason)
    out.print(table)
