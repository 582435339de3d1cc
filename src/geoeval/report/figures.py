"""Small figures as SVG text: intervals on a common scale, an interval against its limit, shapes that failed.

Every number is rounded before it is written, so that the same data give the same bytes. Colours come from classes of
the page; every figure stands beside its numbers in text, and is hidden from screen readers where it repeats them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

#: Width of a strip in px, and the margin on either side in which the marks at the ends have room.
WIDTH, MARGIN = 260, 8

_ROW = 22
_PICTURE = 132
_MOST_VERTICES = 300


@dataclass(frozen=True, slots=True)
class Scale:
    """Values to px."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def x(self, value: float) -> str:
        """Position of a value; what lies outside stands at the edge."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return px(MARGIN + share * (WIDTH - 2 * MARGIN))


def px(value: float) -> str:
    """A coordinate with one decimal at most.

    Examples
    --------
    >>> px(1.25), px(3.0), px(-0.01)
    ('1.2', '3', '0')
    """
    text = f"{value:.1f}"
    return "0" if text == "-0.0" else text.removesuffix(".0")


def scale_of(values: Iterable[float | None], *, share: bool = False) -> Scale:
    """A scale with 3 to 6 round ticks that holds all values.

    Parameters
    ----------
    values
        None and what is not finite are left out.
    share
        True keeps the scale inside 0 and 1.

    Examples
    --------
    >>> scale_of([0.82, 0.97], share=True).ticks
    (0.85, 0.9, 0.95)
    """
    known = [value for value in values if value is not None and math.isfinite(value)] or [0.0, 1.0]
    low, high = min(known), max(known)
    pad = (high - low) * 0.06 or abs(high) * 0.1 or 0.5
    low, high = low - pad, high + pad
    if share:
        low, high = max(low, 0.0), min(high, 1.0)
    if not low < high:
        low, high = low - 0.05, high + 0.05
    step = _step((high - low) / 5)
    ticks = tuple(round(i * step, 12) for i in range(math.ceil(low / step), math.floor(high / step) + 1))
    return Scale(low, high, ticks)


def _step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= least * 0.999)


def axis(scale: Scale) -> str:
    """Ticks and their numbers, for the head of a column of strips."""
    marks = [
        f'<path class="tick" d="M{scale.x(tick)} 13v5"/><text x="{scale.x(tick)}" y="10">{_label(tick)}</text>'
        for tick in scale.ticks
    ]
    return _svg(WIDTH, 18, "axis", marks)


def _label(value: float) -> str:
    return f"{value:.6g}".replace("-", "−")


def strip(
    scale: Scale,
    value: float | None,
    low: float | None = None,
    high: float | None = None,
    *,
    overall: float | None = None,
    limit: float | None = None,
    at_least: bool = True,
    tone: str = "plain",
) -> str:
    """One interval as a line with a dot.

    Parameters
    ----------
    scale
        Common to all strips of a column.
    value, low, high
        The figure and its interval; None where there is none.
    overall
        Drawn as a dashed line.
    limit, at_least
        The side of the limit on which a figure would fail is shaded.
    tone
        ``plain``, ``pass``, ``fail`` or ``not_evaluable``; failing dots are squares and undecided ones hollow, so that
        colour is not all that tells them apart.
    """
    middle = _ROW / 2
    marks = [f'<path class="grid" d="M{scale.x(tick)} 0v{_ROW}"/>' for tick in scale.ticks]
    if limit is not None:
        marks.append(_forbidden(scale, limit, at_least=at_least))
    if overall is not None:
        marks.append(f'<path class="overall" d="M{scale.x(overall)} 0v{_ROW}"/>')
    if low is not None and high is not None:
        marks.append(
            f'<path class="whisker {tone}" d="M{scale.x(low)} {px(middle)}H{scale.x(high)}'
            f'M{scale.x(low)} {px(middle - 4)}v8M{scale.x(high)} {px(middle - 4)}v8"/>'
        )
    if value is not None:
        marks.append(_dot(float(scale.x(value)), middle, tone))
    return _svg(WIDTH, _ROW, "strip", marks)


def _forbidden(scale: Scale, limit: float, *, at_least: bool) -> str:
    left, right = (0.0, float(scale.x(limit))) if at_least else (float(scale.x(limit)), float(WIDTH))
    edge = scale.x(limit)
    return (
        f'<rect class="forbidden" x="{px(left)}" y="0" width="{px(right - left)}" height="{_ROW}"/>'
        f'<path class="limit" d="M{edge} 0v{_ROW}"/>'
    )


def _dot(x: float, y: float, tone: str) -> str:
    if tone == "fail":
        return f'<rect class="dot {tone}" x="{px(x - 4)}" y="{px(y - 4)}" width="8" height="8"/>'
    return f'<circle class="dot {tone}" cx="{px(x)}" cy="{px(y)}" r="4.5"/>'


def _svg(width: int, height: int, kind: str, marks: Sequence[str]) -> str:
    return (
        f'<svg class="{kind}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'aria-hidden="true">{"".join(marks)}</svg>'
    )


@dataclass(frozen=True, slots=True)
class View:
    """The window of a drawing: its corner, its side, and whether y points up."""

    x: float
    y: float
    side: float
    up: bool = True

    @property
    def box(self) -> tuple[float, float, float, float]:
        """The window as xmin, ymin, xmax, ymax."""
        return self.x, self.y, self.x + self.side, self.y + self.side

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Position in px."""
        across, along = (x - self.x) / self.side * _PICTURE, (y - self.y) / self.side * _PICTURE
        return across, _PICTURE - along if self.up else along


def view_of(shape: Any, *, up: bool = True, least: float = 10.0) -> View:
    """A square window around a shape, with as much room again around it.

    Parameters
    ----------
    shape
        Any geometry.
    up
        False for image coordinates.
    least
        Smallest side, for points.
    """
    xmin, ymin, xmax, ymax = (float(part) for part in shape.bounds)
    side = max(2.0 * max(xmax - xmin, ymax - ymin), least)
    return View((xmin + xmax - side) / 2, (ymin + ymax - side) / 2, side, up)


def drawing(view: View, layers: Iterable[tuple[str, Iterable[Any]]], unit: str, says: str) -> str:
    """Shapes in a window, with a scale bar.

    Parameters
    ----------
    view
        The window; what lies outside is cut off.
    layers
        Class of the page to shapes, drawn in this order: ``reference``, ``prediction``, with ``failed`` added for the
        shape that the drawing is about.
    unit
        Of lengths, for the scale bar.
    says
        What a screen reader says.
    """
    from html import escape

    marks = [f'<path class="{escape(kind)}" d="{path}"/>' for kind, path in _paths(view, layers)]
    length = _step(view.side / 6)
    bar = length / view.side * _PICTURE
    marks.append(
        f'<path class="bar-line" d="M6 {_PICTURE - 6}h{px(bar)}"/>'
        f'<text class="bar-text" x="6" y="{_PICTURE - 10}">{_label(length)} {escape(unit)}</text>'
    )
    return (
        f'<svg class="picture" viewBox="0 0 {_PICTURE} {_PICTURE}" width="{_PICTURE}" height="{_PICTURE}" role="img" '
        f'aria-label="{escape(says)}">{"".join(marks)}</svg>'
    )


def _paths(view: View, layers: Iterable[tuple[str, Iterable[Any]]]) -> Iterator[tuple[str, str]]:
    for kind, shapes in layers:
        for shape in shapes:
            parts = [part for part in _parts(_simpler(shape, view)) if not part.is_empty]
            areas = "".join(_path(view, part) for part in parts if part.geom_type == "Polygon")
            lines = "".join(_path(view, part) for part in parts if part.geom_type != "Polygon")
            # A line must not be filled as if it were closed.
            yield from ((name, path) for name, path in ((kind, areas), (f"{kind} line", lines)) if path)


def _simpler(shape: Any, view: View) -> Any:
    """A shape without vertices that nobody could see at this size."""
    import shapely

    if shapely.get_num_coordinates(shape) <= 24:
        return shape
    fine = view.side / _PICTURE / 4
    out = shapely.simplify(shape, fine)
    while shapely.get_num_coordinates(out) > _MOST_VERTICES and fine < view.side:
        fine *= 2
        out = shapely.simplify(shape, fine)
    return out


def _parts(shape: Any) -> Iterator[Any]:
    import shapely

    for part in shapely.get_parts(shape).tolist():
        if part.geom_type.startswith(("Multi", "GeometryC")):
            yield from _parts(part)
        else:
            yield part


def _path(view: View, part: Any) -> str:
    if part.geom_type == "Point":
        x, y = view.at(part.x, part.y)
        return f"M{px(x - 4)} {px(y)}h8M{px(x)} {px(y - 4)}v8"
    if part.geom_type == "Polygon":
        return "".join(_line(view, ring.coords) + "Z" for ring in (part.exterior, *part.interiors))
    return _line(view, part.coords)


def _line(view: View, coordinates: Iterable[Sequence[float]]) -> str:
    text = [f"{px(x)} {px(y)}" for x, y in (view.at(float(xy[0]), float(xy[1])) for xy in coordinates)]
    return "M" + "L".join(text)
