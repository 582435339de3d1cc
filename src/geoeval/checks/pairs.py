"""Findings and anomalies brought together: as many one-to-one pairs as there can be, whatever the order of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.errors import InputError
from geoeval.model import IntArray, ObjectArray

Table = Mapping[str, ObjectArray]


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """Positions in both tables.

    Parameters
    ----------
    reference, prediction
        Hits, pair by pair.
    duplicate, duplicate_of
        Findings that hit an anomaly that was hit already, and that anomaly.
    misclassified_reference, misclassified_prediction
        Anomalies that were not found although a finding of another code lies on their place, and that finding.
    unmatched
        All other findings.
    """

    reference: IntArray
    prediction: IntArray
    duplicate: IntArray
    duplicate_of: IntArray
    misclassified_reference: IntArray
    misclassified_prediction: IntArray
    unmatched: IntArray


def pair_findings(
    reference: Table,
    prediction: Table,
    reference_code: NDArray[Any],
    prediction_code: NDArray[Any],
    window_tolerance_px: float = 0.0,
) -> Outcomes:
    """Pair by code and place.

    Parameters
    ----------
    reference, prediction
        Columns ``id``, ``dataset`` and ``feature``; ``field`` and ``window`` (``row0,column0,row1,column1``) may narrow
        a place down, where both sides name one.
    reference_code, prediction_code
        Canonical codes.
    window_tolerance_px
        How far apart windows of one place may lie.
    """
    left = _places(reference, reference_code)
    right = _places(prediction, prediction_code)
    windows = (_windows(reference), _windows(prediction))
    fields = (_column(reference, "field"), _column(prediction, "field"))

    def near(i: int, j: int) -> bool:
        if fields[0][i] and fields[1][j] and fields[0][i] != fields[1][j]:
            return False
        a, b = windows[0][i], windows[1][j]
        return a is None or b is None or _overlap(a, b, window_tolerance_px)

    def same(i: int, j: int) -> bool:
        return bool(reference_code[i] == prediction_code[j]) and near(i, j)

    pairs: list[tuple[int, int]] = []
    duplicates: list[tuple[int, int]] = []
    misclassified: list[tuple[int, int]] = []
    unmatched: list[int] = []
    for place in sorted(right):
        anomalies, findings = left.get(place, []), right[place]
        matched = maximum_pairs(anomalies, findings, same)
        pairs += matched
        used = {j for _, j in matched}
        rest = []
        for j in (j for j in findings if j not in used):
            hit = next((i for i, _ in matched if same(i, j)), None)
            if hit is None:
                rest.append(j)
            else:
                duplicates.append((hit, j))
        found = {i for i, _ in matched}
        wrong = maximum_pairs([i for i in anomalies if i not in found], rest, near)
        misclassified += wrong
        unmatched += [j for j in rest if j not in {k for _, k in wrong}]
    duplicate, duplicate_of = _columns(sorted((j, i) for i, j in duplicates))
    return Outcomes(
        *_columns(sorted(pairs)),
        duplicate,
        duplicate_of,
        *_columns(sorted(misclassified)),
        np.array(sorted(unmatched), dtype=np.int64),
    )


def maximum_pairs(left: Sequence[int], right: Sequence[int], may: Callable[[int, int], bool]) -> list[tuple[int, int]]:
    """As many one-to-one pairs as possible, by augmenting paths, earlier entries first.

    Examples
    --------
    >>> maximum_pairs([0, 1], [0, 1], lambda i, j: (i, j) != (1, 1))
    [(0, 1), (1, 0)]
    """
    options = {i: [j for j in right if may(i, j)] for i in left}
    taken: dict[int, int] = {}
    for start in left:
        _augment(start, options, taken)
    return sorted((i, j) for j, i in taken.items())


def _augment(start: int, options: Mapping[int, Sequence[int]], taken: dict[int, int]) -> None:
    """Find a partner for ``start``, moving others along; breadth first, so that long chains need no recursion."""
    came: dict[int, int] = {}
    queue = [start]
    for i in queue:
        for j in options[i]:
            if j in came:
                continue
            came[j] = i
            if j not in taken:
                _shift(j, start, came, taken)
                return
            queue.append(taken[j])


def _shift(end: int, start: int, came: Mapping[int, int], taken: dict[int, int]) -> None:
    partner_of = {i: j for j, i in taken.items()}
    j: int | None = end
    while j is not None:
        i = came[j]
        taken[j] = i
        j = None if i == start else partner_of[i]


def _places(table: Table, codes: NDArray[Any]) -> dict[tuple[str, str], list[int]]:
    """Rows by place, in an order that does not depend on the order of rows."""
    fields, windows = _column(table, "field"), _column(table, "window")

    def key(i: int) -> tuple[str, ...]:
        return (str(codes[i]), str(fields[i]), str(windows[i]), str(table["id"][i]))

    out: dict[tuple[str, str], list[int]] = {}
    for i in sorted(range(len(codes)), key=key):
        out.setdefault((str(table["dataset"][i]), str(table["feature"][i])), []).append(i)
    return out


def _column(table: Table, name: str) -> ObjectArray:
    """A column that need not be there: blank text where it is not."""
    found = table.get(name)
    return np.full(len(table["id"]), "", dtype=object) if found is None else found


Window = tuple[float, float, float, float]


def _windows(table: Table) -> list[Window | None]:
    return [_window(str(text), str(name)) for text, name in zip(_column(table, "window"), table["id"], strict=True)]


def _window(text: str, name: str) -> Window | None:
    if not text:
        return None
    try:
        row0, column0, row1, column1 = (float(part) for part in text.split(","))
    except ValueError as error:
        raise InputError(f"finding {name!r}: window {text!r} is not 'row0,column0,row1,column1' in pixels") from error
    return row0, column0, row1, column1


def _overlap(a: Window, b: Window, tolerance: float) -> bool:
    rows = max(a[0], b[0]) - min(a[2], b[2])
    columns = max(a[1], b[1]) - min(a[3], b[3])
    return rows <= tolerance and columns <= tolerance


def _columns(pairs: Iterable[tuple[int, int]]) -> tuple[IntArray, IntArray]:
    table = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]
