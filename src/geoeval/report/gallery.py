"""An excerpt of the failure gallery: counts by error type, and a few failures drawn with what lies around them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.evidence.tables import CaseTables
from geoeval.report.figures import View, drawing, view_of
from geoeval.report.words import figure

#: So many failures of a case are drawn.
SHOWN = 12

#: So many shapes of either side are drawn around a failure.
_AROUND = 24

_OUTCOMES = {"fn": "missed", "fp": "invented"}

#: Error types in words; those that only repeat the outcome are left out.
_ERRORS = {
    "": "",
    "missed": "",
    "background": "",
    "class": "wrong class",
    "localisation": "badly placed",
    "both": "wrong class and badly placed",
}


def counts(failures: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """How many failures there are of each outcome and error type, the most frequent first."""
    found: dict[tuple[str, str], int] = {}
    for row in failures:
        key = (row["outcome"], row["error_type"])
        found[key] = found.get(key, 0) + 1
    ordered = sorted(found.items(), key=lambda entry: (-entry[1], entry[0]))
    return [{"kind": kind_of(*key), "count": count} for key, count in ordered]


def kind_of(outcome: str, error_type: str) -> str:
    """An outcome and its error type in words.

    Examples
    --------
    >>> kind_of("fn", "class"), kind_of("fp", "background")
    ('missed: wrong class', 'invented')
    """
    word, error = _OUTCOMES.get(outcome, outcome), _ERRORS.get(error_type, error_type)
    return f"{word}: {error}" if error else word


def chosen(failures: Sequence[Mapping[str, Any]], most: int = SHOWN) -> list[Mapping[str, Any]]:
    """Some failures of every kind in turn, each kind in the order of its ids.

    Ids are hashes, so that the order is as good as drawn by lot: nobody picked the pretty ones.
    """
    kinds: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in sorted(failures, key=lambda row: str(row["id"])):
        kinds.setdefault((row["outcome"], row["error_type"]), []).append(row)
    turns = [(turn, key, row) for key, rows in kinds.items() for turn, row in enumerate(rows)]
    picked = sorted(turns, key=lambda entry: entry[:2])[:most]
    return [row for _, _, row in sorted(picked, key=lambda entry: (entry[1], entry[0]))]


def cards(failures: Sequence[Mapping[str, Any]], tables: CaseTables, unit: str) -> list[dict[str, Any]]:
    """The failures that are shown, each with its caption and, where it has a shape, its drawing."""
    picked = chosen(failures)
    around = Surroundings(tables) if any(row["geometry"] for row in picked) else None
    return [_card(row, around, unit) for row in picked]


def _card(row: Mapping[str, Any], around: Surroundings | None, unit: str) -> dict[str, Any]:
    kind = kind_of(row["outcome"], row["error_type"])
    side = "reference" if row["outcome"] == "fn" else "prediction"
    label = row[f"{side}_label"]
    return {
        "id": row["id"],
        "kind": kind,
        "name": row[f"{side}_id"] or row["reference_id"] or row["prediction_id"],
        "side": side,
        "label": label,
        "score": figure(row["score"]),
        "strata": ", ".join(row["strata"].values()),
        "picture": None if around is None or not row["geometry"] else _picture(row, side, kind, around, unit),
    }


def _picture(row: Mapping[str, Any], side: str, kind: str, around: Surroundings, unit: str) -> str:
    import shapely

    shape = shapely.from_wkb(row["geometry"])
    view = view_of(shape, up=unit != "px")
    ours, theirs = around.near(row["unit"], view)
    layers = [("reference", ours), ("prediction", theirs), (f"{side} failed", [shape])]
    says = f"{kind}: {side} {row[f'{side}_id']} with {len(ours)} reference and {len(theirs)} predicted shapes near it"
    return drawing(view, layers, unit, says)


class Surroundings:
    """Both sides of a case, to be asked for what lies in a window."""

    def __init__(self, tables: CaseTables) -> None:
        self._sides = [_Side(tables.references), _Side(tables.predictions)]

    def near(self, unit: str, view: View) -> tuple[list[Any], list[Any]]:
        """Shapes of the reference and of the prediction that touch a window, those nearest to its middle first."""
        ours, theirs = (side.near(unit, view) for side in self._sides)
        return ours, theirs


class _Side:
    def __init__(self, columns: Mapping[str, NDArray[Any]]) -> None:
        import shapely

        there = np.array([shape is not None for shape in columns["geometry"].tolist()], dtype=bool)
        self._shapes = columns["geometry"][there]
        self._unit = columns["unit"][there]
        self._id = columns["id"][there]
        self._tree = shapely.STRtree(self._shapes)

    def near(self, unit: str, view: View) -> list[Any]:
        import shapely

        window = shapely.box(*view.box)
        found = [int(at) for at in self._tree.query(window, predicate="intersects") if self._unit[at] == unit]
        middle = window.centroid
        by_distance = sorted(found, key=lambda at: (round(middle.distance(self._shapes[at]), 6), str(self._id[at])))
        return [self._shapes[at] for at in by_distance[:_AROUND]]
