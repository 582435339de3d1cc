"""What a file gives before anything is done to it, and after its CRS and filter are settled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from geoeval.model import Finding, IntArray, ObjectArray

#: Stands in place of a CRS where coordinates are image coordinates.
PIXEL = "pixel"


def is_pixel(crs: Any) -> bool:
    """True for image coordinates. A CRS object is never compared with a text: it would look the text up as a name.

    Examples
    --------
    >>> is_pixel("pixel"), is_pixel(None)
    (True, False)
    """
    return isinstance(crs, str) and crs.strip().lower() == PIXEL


@dataclass(frozen=True, slots=True, eq=False)
class Raw:
    """Features of one file as they stand in it.

    Parameters
    ----------
    frame
        Attributes, one row a feature, numbered 0 to n - 1.
    geometry
        Shapely geometries, None where a feature has none; None as a whole where the file has no geometry.
    crs
        What the file says, None where it says nothing.
    crs_firm
        False where ``crs`` is only what the format or the column names suggest, so that a declared one may replace it.
    kind
        ``"vector"``, ``"boxes"``, ``"points"``, ``"wkt"``, ``"coco"``, ``"table"``, ``"frame"``.
    broken
        Why a geometry could not be built as written (its ring is not closed, it has too few points), ``""`` where it
        could; ``geometry`` then holds what closing the ring gives.
    unit_column
        Column that names the image of each feature, where the format says so.
    units
        All images that the file knows, also those without features.
    classes
        Names of the classes by their code, where the format lists them.
    """

    frame: pd.DataFrame
    geometry: ObjectArray | None
    crs: Any = None
    crs_firm: bool = True
    kind: str = "vector"
    broken: ObjectArray | None = None
    unit_column: str | None = None
    units: tuple[str, ...] = ()
    classes: Mapping[int, str] = field(default_factory=dict)
    images: Mapping[int, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Features of one file after its filter, with a settled CRS.

    ``crs`` is a ``pyproj.CRS``, ``"pixel"``, or None where there is no geometry. ``row`` is the position of each
    feature in its file. ``name`` is the file name for messages. The rest is as in :class:`Raw`.
    """

    frame: pd.DataFrame
    geometry: ObjectArray | None
    crs: Any
    row: IntArray
    name: str
    kind: str = "vector"
    broken: ObjectArray | None = None
    unit_column: str | None = None
    units: tuple[str, ...] = ()
    classes: Mapping[int, str] = field(default_factory=dict)
    images: Mapping[int, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    inputs: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.frame)
