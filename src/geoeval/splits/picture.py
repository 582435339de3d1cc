"""A split as a map: samples by role, buffers around them, offending pairs.

The picture is deterministic: no date, a fixed salt for the names in an SVG, rows in a fixed order.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from geoeval.errors import InputError
from geoeval.model import FloatArray, IntArray, ObjectArray
from geoeval.splits.leak_layers import drawn_boxes
from geoeval.splits.list_check import ListCheck
from geoeval.splits.list_summary import role_order
from geoeval.splits.lists import SplitList

#: Told apart by people who see few colours, too.
COLOURS: Mapping[str, str] = {
    "train": "#4477aa",
    "val": "#66ccee",
    "calibration": "#228833",
    "test": "#ee6677",
    "background-test": "#ccbb44",
    "challenge": "#aa3377",
}
_OTHERS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#994455", "#004488", "#997700")
#: Above this, samples are drawn as points in a bitmap, so that the file stays small.
_MOST_OUTLINES = 20_000
_MOST_BUFFERS = 5_000
_METRES_A_DEGREE = 111_195.0


def split_picture(found: ListCheck, kind: str = "svg", *, buffer_m: float | None = 2000.0) -> bytes:
    """The picture of a split that was checked, as SVG or PNG.

    Parameters
    ----------
    kind
        ``"svg"`` or ``"png"``.
    buffer_m
        Drawn around the samples in offending pairs, or around all where there are few; None draws none.

    Raises
    ------
    InputError
        The list says nothing about places, or another kind of picture is asked for.
    """
    if kind not in ("svg", "png"):
        raise InputError(f"a picture is .svg or .png, got {kind!r}")
    import matplotlib as mpl
    import shapely
    from matplotlib.figure import Figure

    rows, shapes, crs = _drawn(found.given)
    split, names = found.given.table.splits()
    settings: Any = {
        "svg.hashsalt": "geoeval",
        "svg.fonttype": "path",
        "font.family": "DejaVu Sans",
        "path.simplify": False,
    }
    with mpl.rc_context(settings):
        figure = Figure(figsize=(9.0, 7.0), dpi=110, layout="constrained")
        axes = figure.add_subplot()
        legend = []
        colours = _colours(names)
        for name in sorted(names, key=role_order):
            own = np.flatnonzero(split[rows] == names.index(name))
            if len(own):
                legend.append(_draw_split(axes, shapes[own], colours[name], f"{name} ({len(own)})", len(rows)))
        offending = _offending(found, rows)
        seen = [np.asarray(shapely.total_bounds(shapes))]
        # Cells of a grid index and pixels have no metres.
        if buffer_m is not None and crs not in ("", "pixel"):
            around = _buffers(shapes, offending, crs, buffer_m)
            legend += _draw_buffers(axes, around, f"buffer {buffer_m:g} m", whole=len(around) == len(shapes))
            seen += [np.concatenate([ring.min(axis=0), ring.max(axis=0)]) for ring in around]
        legend += _draw_pairs(axes, found, rows, shapes, crs)
        _finish(axes, np.array(seen), crs, legend, found)
        out = io.BytesIO()
        metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {"Software": None}
        figure.savefig(out, format=kind, metadata=metadata)
    return out.getvalue()


def picture_kind(path: Path) -> str:
    """Kind of a picture by its ending.

    Examples
    --------
    >>> picture_kind(Path("map.SVG"))
    'svg'
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("svg", "png"):
        raise InputError(f"{path.name}: a picture is .svg or .png; name it so")
    return kind


def _drawn(given: SplitList) -> tuple[IntArray, ObjectArray, str]:
    """Rows in a split that can be drawn, their outlines, and the system; cells of a grid index where it has one."""
    import shapely

    split, _ = given.table.splits()
    rows = np.flatnonzero(given.table.has_box() & (split >= 0)).astype(np.int64)
    if len(rows):
        shapes, crs = drawn_boxes(given.table, rows, given.shapes)
        return rows, shapes, crs
    if given.grid is None:
        raise InputError("no sample says where it lies, so there is no map to draw; give bounds or a grid index")
    if len(np.unique(given.grid[:, 0])) > 1:
        raise InputError("the index counts in several grids, and a map shows one; leave the other rows out")
    rows = np.flatnonzero(split >= 0).astype(np.int64)
    x, y = given.grid[rows, 1:].T.astype(np.float64)
    return rows, np.asarray(shapely.box(x - 0.5, y - 0.5, x + 0.5, y + 0.5), dtype=np.object_), ""


def _colours(names: tuple[str, ...]) -> dict[str, str]:
    free = iter([*_OTHERS] * (len(names) // len(_OTHERS) + 1))
    if any(name in COLOURS for name in names):
        free = iter([*_OTHERS[6:]] * (len(names) + 1))
    return {name: COLOURS.get(name) or next(free) for name in sorted(names, key=role_order)}


def _draw_split(axes: Any, shapes: ObjectArray, colour: str, label: str, drawn: int) -> Any:
    import shapely
    from matplotlib.collections import PolyCollection
    from matplotlib.lines import Line2D

    box = shapely.bounds(shapes)
    flat = (box[:, 2] == box[:, 0]) & (box[:, 3] == box[:, 1])
    if drawn > _MOST_OUTLINES or flat.all():
        middle = (box[:, :2] + box[:, 2:]) / 2
        size = 8.0 if drawn <= _MOST_OUTLINES else 1.0
        axes.scatter(
            middle[:, 0], middle[:, 1], s=size, c=colour, linewidths=0, rasterized=drawn > _MOST_OUTLINES, zorder=2
        )
    else:
        rings = _rings(shapes)
        axes.add_collection(
            PolyCollection(rings, facecolors=colour + "40", edgecolors=colour, linewidths=0.6, zorder=2),
            autolim=False,
        )
    return Line2D([], [], marker="s", linestyle="", color=colour, label=label)


def _rings(shapes: ObjectArray) -> list[FloatArray]:
    import shapely

    parts = shapely.get_parts(shapes)
    solid = parts[shapely.get_type_id(parts) == 3]
    return [np.asarray(shapely.get_coordinates(one)) for one in shapely.get_exterior_ring(solid)]


def _offending(found: ListCheck, rows: IntArray) -> IntArray:
    pairs = [one.rows for gate in found.gates for one in gate.result.witnesses]
    bad = np.unique(np.array(pairs, dtype=np.int64)) if pairs else np.zeros(0, dtype=np.int64)
    return np.flatnonzero(np.isin(rows, bad)).astype(np.int64)


def _buffers(shapes: ObjectArray, offending: IntArray, crs: str, buffer_m: float) -> list[FloatArray]:
    """Outlines at the distance of the buffer; in degrees a circle becomes an ellipse of the same metres."""
    import shapely

    from geoeval.geometry.crs import parse_crs

    which = np.arange(len(shapes)) if len(shapes) <= _MOST_BUFFERS else offending[:_MOST_BUFFERS]
    if not len(which):
        return []
    system = parse_crs(crs)
    own = np.asarray(shapely.box(*shapely.bounds(shapes[which]).T), dtype=np.object_)
    if system.is_geographic:
        middle = shapely.bounds(own)[:, [1, 3]].mean(axis=1)
        wide = buffer_m / (_METRES_A_DEGREE * np.maximum(np.cos(np.radians(middle)), 1e-3))
        high = buffer_m / _METRES_A_DEGREE
        return [_ellipse(one, float(x), high) for one, x in zip(own, wide, strict=True)]
    size = buffer_m / float(system.axis_info[0].unit_conversion_factor)
    return _rings(np.asarray(shapely.buffer(own, size, quad_segs=6), dtype=np.object_))


def _draw_buffers(axes: Any, rings: Sequence[FloatArray], label: str, *, whole: bool) -> list[Any]:
    from matplotlib.collections import PolyCollection
    from matplotlib.lines import Line2D

    if not rings:
        return []
    axes.add_collection(
        PolyCollection(rings, facecolors="none", edgecolors="#888888", linewidths=0.4, linestyles="dashed", zorder=1),
        autolim=False,
    )
    label += "" if whole else " (offending samples)"
    return [Line2D([], [], color="#888888", linestyle="dashed", linewidth=0.8, label=label)]


def _ellipse(box: Any, wide: float, high: float) -> FloatArray:
    import shapely

    squeezed = shapely.transform(box, lambda xy: xy / [wide, high])
    return np.asarray(shapely.get_coordinates(shapely.buffer(squeezed, 1.0, quad_segs=6)) * [wide, high])


def _draw_pairs(axes: Any, found: ListCheck, rows: IntArray, shapes: ObjectArray, crs: str) -> list[Any]:
    import shapely
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    at = {row: k for k, row in enumerate(rows.tolist())}
    box = shapely.bounds(shapes)
    middle = (box[:, :2] + box[:, 2:]) / 2
    ends = sorted(
        {
            (at[one.rows[0]], at[one.rows[1]])
            for gate in found.gates
            for one in gate.result.witnesses
            if one.rows[0] in at and one.rows[1] in at
        }
    )
    # A line the long way round the world would cross the whole map.
    lines = [middle[list(pair)] for pair in ends]
    short = [line for line in lines if crs in ("", "pixel") or abs(line[0, 0] - line[1, 0]) <= 180 or not _degrees(crs)]
    if not short:
        return []
    axes.add_collection(LineCollection(short, colors="black", linewidths=0.9, zorder=3), autolim=False)
    return [Line2D([], [], color="black", linewidth=0.9, label=f"offending pairs ({len(ends)} drawn)")]


def _degrees(crs: str) -> bool:
    from geoeval.geometry.crs import parse_crs

    return bool(parse_crs(crs).is_geographic)


def _finish(axes: Any, seen: FloatArray, crs: str, legend: list[Any], found: ListCheck) -> None:
    """Frame, axes, title and legend; ``seen`` holds the bounds of all that must lie within the frame."""
    west, south = (float(one) for one in seen[:, :2].min(axis=0))
    east, north = (float(one) for one in seen[:, 2:].max(axis=0))
    margin = 0.03 * max(east - west, north - south) or 1.0
    axes.set_xlim(west - margin, east + margin)
    axes.set_ylim(south - margin, north + margin)
    degrees = bool(crs) and _degrees(crs)
    middle = np.cos(np.radians(np.clip((south + north) / 2, -85, 85)))
    axes.set_aspect(1.0 / middle if degrees else "equal")
    axes.set_xlabel("longitude" if degrees else "x" if crs else "first index")
    axes.set_ylabel("latitude" if degrees else "y" if crs else "second index")
    axes.ticklabel_format(useOffset=False, style="plain")
    axes.locator_params(axis="x", nbins=4)
    pairs = sum(gate.result.count for gate in found.gates if gate.result.id != "complete")
    name = crs if len(crs) <= 40 else "a system of its own"
    axes.set_title(f"{pairs} offending pairs" + (f" · {name}" if crs else ""), fontsize=10)
    axes.legend(handles=legend, loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=8, frameon=False)
