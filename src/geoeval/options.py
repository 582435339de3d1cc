"""How to read two sources and bring them together: plain values, hashed into every run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Assignment = Literal["score", "similarity", "optimal", "id"]
OnInvalid = Literal["repair", "refuse", "drop"]
OnMismatch = Literal["reproject", "refuse"]
OnUnknown = Literal["refuse", "drop"]
Align = Literal["nearest", "mode", "bilinear"]
Design = Literal["stratified", "simple_random", "systematic", "post_stratified"]

#: Numbers behind the last colon of a stratum field: the edges at which it is cut.
_EDGES = re.compile(r":\s*[-+.\d][-+.\deE,\s]*$")


@dataclass(frozen=True, slots=True)
class Columns:
    """Which column means what. None is guessed from the usual names, and the guess is printed; ``""`` means none."""

    id: str | None = None
    label: str | None = None
    score: str | None = None
    unit: str | None = None
    ignore: str | None = None
    kind: str | None = None
    date: str | None = None
    value: str | None = None
    stratum: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """One side as given: a path, glob, folder, GeoDataFrame or array, and how to read it.

    ``before`` is the layer of the earlier date, where change events are to be derived from two layers. ``recode`` maps
    old to new class codes or labels, as text. ``unit`` is the unit of heights; ``crs`` a declared system (``"pixel"``
    for image coordinates), used where the file names none.
    """

    path: Any
    before: Any = None
    layer: str | None = None
    where: str | None = None
    crs: str | None = None
    band: int = 1
    nodata: float | None = None
    recode: Mapping[str, str] = field(default_factory=dict)
    unit: str | None = None
    vertical_datum: str | None = None
    columns: Columns = field(default_factory=Columns)


@dataclass(frozen=True, slots=True)
class Pairing:
    """How the two sides become units, clusters and strata.

    Parameters
    ----------
    cluster
        ``"auto"`` (a column with one of the usual names, else ``grid:auto``), a column name, ``"grid:500m"``,
        ``"grid:auto"``, or ``"none"``.
    by
        Stratum fields: columns of the sources, for rasters ``NAME=FILE``.
    attributes
        Columns to compare on matched pairs.
    aoi
        File of polygons; only objects whose representative point lies inside count.
    units
        CSV with a column ``unit``, a column named by ``cluster`` (or one of the usual names) and strata: what each unit
        (file, image) belongs to.
    align
        How a prediction raster on another grid is brought to the reference grid; None refuses.
    """

    cluster: str = "auto"
    by: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    aoi: str | None = None
    on_invalid: OnInvalid = "repair"
    on_crs_mismatch: OnMismatch = "reproject"
    on_unknown_unit: OnUnknown = "refuse"
    drop_unmatched_ids: bool = False
    units: str | None = None
    align: Align | None = None
    design: Design | None = None
    unit: str | None = None


def stratum_name(text: str) -> str:
    """Name of a stratum field, without its edges and its file; a colon may be part of it.

    Examples
    --------
    >>> [stratum_name(text) for text in ("region", "area:100,500", "slope=slope.tif:5,15", "addr:street")]
    ['region', 'area', 'slope', 'addr:street']
    """
    return _EDGES.sub("", text).partition("=")[0].strip()
