"""Footprints: polygons of buildings, or of anything that is a piece of ground, against a reference.

Compared      one-to-one by intersection over union; only equal labels pair where both sides have labels.
Conventions   an overlap equal to the threshold is a match; metres; holes count; nothing is compared vertex by vertex.
Quantities    precision and recall (proportions), F1; overlap, distance, area and shape of the hits; boundary agreement
              pooled over hits by length; area-level IoU of the dissolved layers; panoptic quality above IoU 0.5;
              validity before repair.
Differs       from area-based scores alone: two touching houses drawn as one are one merged object here, and said to be.
              Boundary scores use exact lengths within metres, not pixels of a band tied to the image.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from geoeval.errors import InputError
from geoeval.layers import ObjectPair
from geoeval.ledger import Tallied
from geoeval.model import Quantity, Unit
from geoeval.objects.declared import check_choice, check_distance, check_share
from geoeval.objects.pairing import ASSIGNMENTS, geometry_kind
from geoeval.objects.polygons import PolygonRules, polygon_extras, polygon_quantities, polygon_ranked, tally_polygons
from geoeval.options import Assignment
from geoeval.stats.tally import Totals


@dataclass(frozen=True, slots=True)
class Footprint:
    """Footprints against a reference.

    Parameters
    ----------
    iou
        Least intersection over union of a hit, inclusive.
    assignment
        ``score``, ``similarity``, ``optimal`` or ``id``; without scores, ``score`` falls back to ``optimal`` and says
        so.
    class_aware
        Whether only equal labels pair; None means wherever both sides have labels.
    score_min
        Operating point: predictions below it abstain. None: all count.
    boundary_tolerance_m
        Distance within which a boundary agrees with another.

    Examples
    --------
    >>> Footprint(boundary_tolerance_m=0)
    Traceback (most recent call last):
    geoeval.errors.ConfigError: boundary_tolerance_m must be a positive number, got 0
    """

    iou: float = 0.5
    assignment: Assignment = "optimal"
    class_aware: bool | None = None
    score_min: float | None = None
    boundary_tolerance_m: float = 1.0

    def __post_init__(self) -> None:
        check_share("iou", self.iou)
        check_share("score_min", self.score_min, zero=True)
        check_choice("assignment", self.assignment, ASSIGNMENTS)
        check_distance("boundary_tolerance_m", self.boundary_tolerance_m)

    @property
    def name(self) -> str:
        """Evaluator and its number, which goes up when results may change."""
        return "footprint/1"

    @property
    def family(self) -> str:
        """Family of the metric contract."""
        return "footprint"

    def tally(self, unit: Unit[ObjectPair]) -> Tallied:
        """Match the footprints of one unit and count them in their cells."""
        pair = unit.load()
        kind = geometry_kind(unit.id, pair)
        if kind not in ("polygon", ""):
            raise InputError(f"unit {unit.id!r}: footprints are polygons, found {kind}s; use the vector evaluator")
        rules = PolygonRules(self.iou, self.assignment, self.class_aware, self.score_min, self.boundary_tolerance_m)
        done = tally_polygons(unit.id, pair, rules, kind=kind)
        return Tallied(done.sheet.tallies(), done.records, done.findings)

    def quantities(self, totals: Totals) -> Mapping[str, Quantity]:
        """Counts, means over hits, pooled and dissolved figures, panoptic quality, validity."""
        return polygon_quantities(totals)

    def ranked(self, totals: Totals) -> Mapping[str, Quantity]:
        """Quantiles of the distance between centroids."""
        return polygon_ranked(totals)

    def class_quantities(self, totals: Totals) -> Mapping[str, Mapping[str, Quantity]]:  # noqa: ARG002 - cells carry classes
        """Nothing: cells carry the class."""
        return {}

    def extras(self, totals: Totals) -> dict[str, Any]:
        """Confusion of classes, error types, defects by reason, abstentions, and further shapes of the hits."""
        return polygon_extras(totals)
