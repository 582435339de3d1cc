"""The history as a picture of drift, and the newest result as an OpenMetrics textfile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from geoeval.errors import InputError
from geoeval.evidence.canonical import significant
from geoeval.judging.figures import Calibration
from geoeval.judging.history import Recorded
from geoeval.report.figures import px

_WIDTH, _LEFT, _RIGHT = 720, 64, 16
_PANEL, _TOP = 96, 34
_TONES = ("#1b6ca8", "#b3541e", "#3a7d44", "#7b4397", "#8a6d1d", "#555555")
_HELP = {
    "judge_agreement": "Share of the verifier's verdicts that the judge gives, too.",
    "judge_bias": "Share of entries that only the judge accepts, less those that only the verifier accepts.",
    "judge_indeterminate": "Entries on which the judge could not decide.",
    "judge_order_inconsistent": "Pairs on which the judge decides otherwise in swapped order.",
}


@dataclass(frozen=True, slots=True)
class _Panel:
    """One figure over time: its name, its range, its lines at fixed heights, and its points by judge."""

    title: str
    low: float
    high: float
    rules: tuple[float, ...]
    points: tuple[tuple[int, float, float | None, float | None, float | None], ...]


def drift_svg(history: Sequence[Recorded]) -> bytes:
    """Agreement and the bias of each dimension over time, with intervals; one colour for each judge.

    Parameters
    ----------
    history
        Oldest first.

    Returns
    -------
    bytes
        An SVG; equal histories give equal bytes.
    """
    if not history:
        raise InputError("a plot of drift needs at least one result; calibrate first")
    names = sorted({name for one in history for name in one.calibration.dimensions})
    judges = sorted({" · ".join(one.calibration.identity.tags.values()) for one in history})
    panels = [_agreement_panel(history, judges), *(_bias_panel(history, judges, name) for name in names)]
    height = _TOP + 18 * len(judges) + len(panels) * (_PANEL + 30) + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}">',
        '<g font-family="sans-serif" font-size="12" role="img" aria-label="Calibration of judges over time">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="{_LEFT}" y="20" font-size="14">Calibration of judges: {len(history)} results</text>',
    ]
    for at, name in enumerate(judges):
        y = _TOP + 18 * at
        parts.append(f'<rect x="{_LEFT}" y="{y}" width="10" height="10" fill="{_tone(at)}"/>')
        parts.append(f'<text x="{_LEFT + 16}" y="{y + 10}">{escape(name)}</text>')
    top = _TOP + 18 * len(judges) + 20
    for panel in panels:
        parts += _drawn(panel, top, len(judges))
        top += _PANEL + 30
    first, last = (one.at.strftime("%Y-%m-%d") for one in (history[0], history[-1]))
    parts.append(f'<text x="{_LEFT}" y="{top}">{first}</text>')
    parts.append(f'<text x="{_WIDTH - _RIGHT}" y="{top}" text-anchor="end">{last}</text></g></svg>\n')
    return "\n".join(parts).encode()


def _tone(at: int) -> str:
    return _TONES[at % len(_TONES)]


def _times(history: Sequence[Recorded]) -> list[float]:
    """Each result's place in time between 0 and 1; a single one stands in the middle."""
    start, end = history[0].at, history[-1].at
    width = (end - start).total_seconds()
    return [(one.at - start).total_seconds() / width if width else 0.5 for one in history]


def _judge_at(one: Recorded, judges: Sequence[str]) -> int:
    return judges.index(" · ".join(one.calibration.identity.tags.values()))


def _agreement_panel(history: Sequence[Recorded], judges: Sequence[str]) -> _Panel:
    points = []
    for place, one in zip(_times(history), history, strict=True):
        found = one.calibration.agreement
        points.append((_judge_at(one, judges), place, found.agreement, found.low, found.high))
    low = min([0.9, *(bound for *_, bound, _ in points if bound is not None)])
    return _Panel("agreement with the verifier", low, 1.0, (low, 1.0), tuple(points))


def _bias_panel(history: Sequence[Recorded], judges: Sequence[str], name: str) -> _Panel:
    points = []
    margins = set()
    for place, one in zip(_times(history), history, strict=True):
        found = one.calibration.assessed().get(name)
        if found is not None:
            margins.add(one.calibration.margin)
            points.append((_judge_at(one, judges), place, found.bias, found.bias_low, found.bias_high))
    reach = max([max(margins) * 1.2, *(abs(bound) for *_, low, high in points for bound in (low, high) if bound)])
    rules = tuple(sorted({0.0, max(margins), -max(margins)}))
    return _Panel(f"bias in {name} (above 0: the judge accepts more)", -reach, reach, rules, tuple(points))


def _drawn(panel: _Panel, top: float, judges: int) -> Iterator[str]:
    span = panel.high - panel.low or 1.0

    def x(place: float) -> float:
        return _LEFT + 12 + place * (_WIDTH - _LEFT - _RIGHT - 24)

    def y(value: float) -> float:
        return top + _PANEL - (value - panel.low) / span * _PANEL

    yield f'<text x="{_LEFT}" y="{px(top - 6)}">{escape(panel.title)}</text>'
    for rule in panel.rules:
        height = px(y(rule))
        dash = "" if rule in (0.0, 1.0) else ' stroke-dasharray="4 3"'
        yield f'<path d="M{_LEFT} {height}H{_WIDTH - _RIGHT}" stroke="#999"{dash} fill="none"/>'
        yield f'<text x="{_LEFT - 6}" y="{px(y(rule) + 4)}" text-anchor="end">{rule:.2f}</text>'
    for judge in range(judges):
        own = [(place, value, low, high) for at, place, value, low, high in panel.points if at == judge]
        known = [(x(place), y(value)) for place, value, _, _ in own if value is not None]
        for (x0, y0), (x1, y1) in pairwise(known):
            yield f'<path d="M{px(x0)} {px(y0)}L{px(x1)} {px(y1)}" stroke="{_tone(judge)}" fill="none"/>'
        for place, value, low, high in own:
            if value is None or low is None or high is None:
                continue
            yield f'<path d="M{px(x(place))} {px(y(low))}V{px(y(high))}" stroke="{_tone(judge)}" stroke-width="2"/>'
            yield f'<circle cx="{px(x(place))}" cy="{px(y(value))}" r="3.5" fill="{_tone(judge)}"/>'


def openmetrics_text(found: Calibration) -> bytes:
    """The metrics of a result, tagged by judge, model and version of the rubric; an undefined one has no line."""
    rows: dict[str, list[str]] = {name: [] for name in _HELP}
    for metric in found.document["metrics"]:
        labels = dict(metric["tags"])
        bounds = {"value": metric["value"], "low": metric.get("low"), "high": metric.get("high")}
        for bound, value in bounds.items():
            if value is not None:
                suffix = "" if bound == "value" else f"_{bound}"
                rows.setdefault(f"{metric['name']}{suffix}", []).append(
                    _sample(f"{metric['name']}{suffix}", labels, value)
                )
    lines = []
    for name, samples in rows.items():
        base = name.removesuffix("_low").removesuffix("_high")
        bound = "" if base == name else f" {'Lower' if name.endswith('_low') else 'Upper'} bound."
        lines += [f"# TYPE geoeval_{name} gauge", f"# HELP geoeval_{name} {_HELP[base]}{bound}", *samples]
    return "\n".join([*lines, "# EOF", ""]).encode()


def _sample(name: str, labels: dict[str, str], value: float) -> str:
    told = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())
    number = significant(float(value))
    return f"geoeval_{name}{{{told}}} {int(number) if number.is_integer() else repr(number)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
