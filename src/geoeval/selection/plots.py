"""Two plots of a comparison as SVG files, made from its report alone: risk against coverage, and reliability.

Every number is rounded before it is written and no date is, so that one report gives the same bytes everywhere. Colour
is not all that tells candidates apart: each has a dash of its own, and its name stands in the legend.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from geoeval.report.figures import px

_WIDTH, _HEIGHT = 560, 400
_LEFT, _TOP, _SIDE = 64, 56, 280
_COLOURS = ("#1f5fa8", "#c05a00", "#1a7f4b", "#7b3fa0", "#b3261e", "#56606c")
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "12 4", "1 2")
_MOST = 12

_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#1c2430}.soft{fill:#5b6675}.title{font-size:15px;font-weight:600}"
    ".grid{stroke:#d9dee5;fill:none}.frame{stroke:#5b6675;fill:none}.ideal{stroke:#5b6675;stroke-dasharray:4 4;"
    "fill:none}.curve{fill:none;stroke-width:1.8}.count{fill:#d9dee5}"
)


def risk_coverage_svg(report: Mapping[str, Any]) -> bytes:
    """Error rate of what is accepted against the share that is accepted, on test, for every threshold there is.

    The dot is the threshold that was chosen on validation.
    """
    names = sorted(report["models"])[:_MOST]
    curves = {name: report["models"][name]["risk_coverage"] for name in names}
    top = _nice(max((max(_risks(one), default=0.0) for one in curves.values()), default=0.0))
    marks = [*_axes("coverage: share of the test split that is accepted", "risk: error rate of the accepted", top)]
    for at, name in enumerate(names):
        given = curves[name]
        points = [
            (accepted / given["n"], (accepted - correct) / accepted / top)
            for accepted, correct in zip(given["accepted"], given["correct"], strict=True)
        ]
        marks += _curve(at, points)
        model = report["models"][name]
        coverage, precision = model["coverage"], model["precision_at_coverage"]
        if coverage is not None and precision is not None:
            marks.append(_dot(at, coverage, (1 - precision) / top))
    return _file(report, "Risk against coverage", marks, names)


def reliability_svg(report: Mapping[str, Any]) -> bytes:
    """Share correct against mean confidence of each bin of the accepted, on test; the diagonal is perfect calibration.

    The area of a dot grows with the number of answers in its bin.
    """
    names = sorted(report["models"])[:_MOST]
    marks = [*_axes("mean confidence of the bin", "share correct", 1.0)]
    marks.append(f'<path class="ideal" d="M{_x(0)} {_y(0)}L{_x(1)} {_y(1)}"/>')
    for at, name in enumerate(names):
        bins = [one for one in report["models"][name]["ece_bins"] if one["n"]]
        marks += _curve(at, [(one["confidence"], one["correct"]) for one in bins])
        most = max((one["n"] for one in bins), default=1)
        marks += [_dot(at, one["confidence"], one["correct"], 2 + 4 * (one["n"] / most) ** 0.5) for one in bins]
    return _file(report, "Reliability", marks, names)


def _risks(given: Mapping[str, Any]) -> Iterator[float]:
    for accepted, correct in zip(given["accepted"], given["correct"], strict=True):
        yield (accepted - correct) / accepted


def _nice(most: float) -> float:
    """The end of the axis: the least round number that holds all risks."""
    return next((one for one in (0.05, 0.1, 0.2, 0.3, 0.5, 0.75) if most <= one), 1.0)


def _x(share: float) -> str:
    return px(_LEFT + min(max(share, 0.0), 1.0) * _SIDE)


def _y(share: float) -> str:
    return px(_TOP + (1 - min(max(share, 0.0), 1.0)) * _SIDE)


def _axes(across: str, up: str, top: float) -> Iterator[str]:
    for step in range(6):
        share = step / 5
        yield f'<path class="grid" d="M{_x(share)} {_TOP}v{_SIDE}M{_LEFT} {_y(share)}h{_SIDE}"/>'
        yield f'<text class="soft" text-anchor="middle" x="{_x(share)}" y="{_TOP + _SIDE + 18}">{share:.1f}</text>'
        height = px(float(_y(share)) + 4)
        yield f'<text class="soft" text-anchor="end" x="{_LEFT - 8}" y="{height}">{share * top:.3g}</text>'
    yield f'<rect class="frame" x="{_LEFT}" y="{_TOP}" width="{_SIDE}" height="{_SIDE}"/>'
    yield f'<text text-anchor="middle" x="{_LEFT + _SIDE // 2}" y="{_TOP + _SIDE + 40}">{across}</text>'
    middle = _TOP + _SIDE // 2
    yield f'<text text-anchor="middle" transform="rotate(-90 16 {middle})" x="16" y="{middle}">{up}</text>'


def _curve(at: int, points: Sequence[tuple[float, float]]) -> list[str]:
    # Points that fall on one pixel are drawn once, so that a long list stays a small file.
    places = list(dict.fromkeys(f"{_x(x)} {_y(y)}" for x, y in points))
    if not places:
        return []
    return [f'<path class="curve" {_stroke(at)} d="M{"L".join(places)}"/>']


def _stroke(at: int) -> str:
    dash = _DASHES[at % len(_DASHES)]
    return f'stroke="{_COLOURS[at % len(_COLOURS)]}"' + (f' stroke-dasharray="{dash}"' if dash else "")


def _dot(at: int, x: float, y: float, radius: float = 5.0) -> str:
    colour = _COLOURS[at % len(_COLOURS)]
    return f'<circle cx="{_x(x)}" cy="{_y(y)}" r="{px(radius)}" fill="{colour}" stroke="#fff"/>'


def _file(report: Mapping[str, Any], title: str, marks: Iterable[str], names: Sequence[str]) -> bytes:
    head = f"{title}, test split of {report['name']}"
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(head)}">',
        f"<style>{_STYLE}</style>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        f'<text class="title" x="{_LEFT}" y="24">{escape(head)}</text>',
    ]
    if report["synthetic"]:
        lines.append(f'<text x="{_LEFT}" y="42">Synthetic predictions: they say nothing about a model.</text>')
    lines += marks
    for at, name in enumerate(names):
        y = _TOP + 10 + 20 * at
        x = _LEFT + _SIDE + 20
        shown = name if len(name) <= 24 else name[:23] + "…"
        mark = " ✓" if report["models"][name]["cleared"] else ""
        lines.append(f'<path class="curve" {_stroke(at)} d="M{x} {y}h26"/>')
        lines.append(f'<text x="{x + 32}" y="{y + 4}">{escape(shown)}{mark}</text>')
    more = len(report["models"]) - len(names)
    if more > 0:
        lines.append(
            f'<text class="soft" x="{_LEFT + _SIDE + 20}" y="{_TOP + 14 + 20 * len(names)}">and {more} more</text>'
        )
    return ("\n".join([*lines, "</svg>"]) + "\n").encode()
