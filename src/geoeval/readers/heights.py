"""Heights: in which unit and above what each side stands, and the units that the elevation family evaluates.

Units     what a source declares; else the unit of the band; else the vertical axis of a compound system; else what was
          declared for the pair; else refused. A horizontal unit is no evidence. A declaration that contradicts the file
          is refused. Both sides are brought to the unit of the pair (that of the reference where none was declared).
Datums    compared by name, never transformed: a known difference is refused, an unknown one is reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geoeval.errors import UnitMismatch
from geoeval.layers import Block, Checkpoints, RasterPair
from geoeval.model import Finding, Unit
from geoeval.options import Pairing, Source
from geoeval.readers.raster import ENDINGS, raster_units
from geoeval.readers.raster_blocks import Blocks, settings
from geoeval.readers.sources import is_path
from geoeval.readers.unitset import UnitSet
from geoeval.stats.error_cells import ROWS_CELLS
from geoeval.stats.units import metres_per, unit_name

#: A first look at large rasters reads so many windows along each axis, of so many cells, each inside one tile of 512.
_LOOKS = 3
_LOOK_CELLS = 64

_DATUMS = {
    "northamericanverticaldatum1988": "navd88",
    "nationalgeodeticverticaldatum1929": "ngvd29",
    "egm1996": "egm96",
    "egm96geoid": "egm96",
    "earthgravitationalmodel1996": "egm96",
    "egm2008geoid": "egm2008",
    "egm08": "egm2008",
    "earthgravitationalmodel2008": "egm2008",
    "europeanverticalreferenceframe2007": "evrf2007",
    "europeanverticalreferenceframe2019": "evrf2019",
    "ellipsoidal": "ellipsoid",
    "ellipsoidalheight": "ellipsoid",
    "n2000": "n2000",
    "deutscheshaupthoehennetz2016": "dhhn2016",
    "deutscheshaupthohennetz2016": "dhhn2016",
    "normaalamsterdamspeil": "nap",
    "ordnancedatumnewlyn": "odn",
    "canadiangeodeticverticaldatumof2013": "cgvd2013",
    "canadiangeodeticverticaldatumof1928": "cgvd28",
}


@dataclass(frozen=True, slots=True)
class HeightFacts:
    """What is known of the heights of one side: name, unit and how that is known, vertical datum (None: unknown)."""

    name: str
    unit: str
    known_by: str
    datum: str | None


def elevation_units(
    reference: Source, prediction: Source, pairing: Pairing
) -> UnitSet[RasterPair] | UnitSet[Checkpoints]:
    """Units of the elevation family: two rasters, or a raster and heights at points (on either side).

    Parameters
    ----------
    reference, prediction
        Rasters, or for one of them a table or layer of points with a column of heights.
    pairing
        Unit of the results, clusters, strata, area of interest, alignment.

    Raises
    ------
    UnitMismatch
        A unit is neither declared nor stated in the file, a declaration contradicts the file, or vertical datums are
        known and differ.

    Examples
    --------
    >>> a = np.array([[10.0, 11.0]])
    >>> found = elevation_units(Source(a), Source(a + 1), Pairing(unit="m"))
    >>> found.units[0].load().unit, found.notes["unit"]
    ('m', 'm')
    """
    if holds_points(reference) or holds_points(prediction):
        from geoeval.readers.height_points import checkpoint_units

        return checkpoint_units(reference, prediction, pairing)
    found = raster_units(reference, prediction, pairing, categorical=False)
    units: list[Unit[RasterPair]] = []
    findings = list(found.findings)
    notes = dict(found.notes)
    for unit in found.units:
        pair = unit.load()
        left = height_facts(reference, "reference", *_stated(pair.notes, "reference"), pairing.unit)
        right = left
        if pair.notes["prediction_name"]:
            right = height_facts(prediction, "prediction", *_stated(pair.notes, "prediction"), pairing.unit)
        wanted = unit_name(pairing.unit) if pairing.unit else left.unit
        findings += [*compared_datums(left, right), *conversions((left, right), wanted)]
        notes.update(said(left, right, wanted))
        units.append(replace(unit, load=LoadedHeights(pair, factor(left, wanted), factor(right, wanted), wanted)))
    return UnitSet(
        tuple(units),
        tuple(dict.fromkeys(findings)),
        notes,
        found.inputs,
        found.reference_only,
        found.clustered,
    )


def _stated(notes: Mapping[str, Any], side: str) -> tuple[str, str | None, str]:
    return str(notes[f"{side}_name"]), notes[f"{side}_unit"], str(notes[f"{side}_crs"])


def holds_points(source: Source) -> bool:
    """True where a source is a table or a layer rather than a raster, by its ending.

    Examples
    --------
    >>> holds_points(Source("survey.csv")), holds_points(Source("dem.tif"))
    (True, False)
    """
    if isinstance(source.path, np.ndarray):
        return False
    if not is_path(source.path):
        return True
    from geoeval.readers.sources import VECTOR_ENDINGS

    ending = "." + str(source.path).lower().rpartition(".")[2]
    return ending in VECTOR_ENDINGS - ENDINGS or ending in (".txt", ".tsv")


def height_facts(
    source: Source, side: str, name: str, band_unit: str | None, crs: str, fallback: str | None = None
) -> HeightFacts:
    """Unit and vertical datum of one side.

    Parameters
    ----------
    source
        What was declared.
    side
        ``"reference"`` or ``"prediction"``, for messages.
    name
        File name, for messages.
    band_unit
        Unit that the band names.
    crs
        The file's system as WKT, ``""`` where it has none.
    fallback
        Unit that was declared for the pair; used where nothing else is known.

    Examples
    --------
    >>> height_facts(Source("a.tif", unit="us-ft"), "reference", "a.tif", None, "").unit
    'us-ft'
    """
    axis, vertical = vertical_axis(crs)
    own = unit_name(band_unit) if band_unit else axis
    by = "unit of the band" if band_unit else "vertical axis of its system"
    declared = unit_name(source.unit) if source.unit else None
    if declared and own and declared != own:
        raise UnitMismatch(
            f"{side}: {name}: unit = {declared!r} is declared, but the {by} says {own!r}; a declaration never "
            "overrules a file: drop it, or mend the file."
        )
    unit, known_by = (declared, "declared") if declared else (own, by)
    if unit is None and fallback:
        unit, known_by = unit_name(fallback), "declared for the pair"
    if unit is None:
        raise UnitMismatch(
            f"{side}: {name}: expected a unit of height, found none (the band names none, and the system has no "
            "vertical axis; a horizontal unit is no evidence). Declare it: --unit m (or ft, us-ft)."
        )
    given = source.vertical_datum
    if given and vertical and datum_key(given) != datum_key(vertical):
        raise UnitMismatch(
            f"{side}: {name}: vertical_datum = {given!r} is declared, but the file says {vertical!r}; drop the "
            "declaration, or mend the file."
        )
    return HeightFacts(name, unit, known_by, given or vertical)


def vertical_axis(crs: str) -> tuple[str | None, str | None]:
    """Unit and datum of the vertical part of a system given as WKT; None where it has none.

    Examples
    --------
    >>> from pyproj import CRS
    >>> vertical_axis(CRS("EPSG:26918+6360").to_wkt())
    ('us-ft', 'North American Vertical Datum 1988')
    >>> vertical_axis(CRS("EPSG:2263").to_wkt())
    (None, None)
    """
    if not crs:
        return None, None
    from pyproj import CRS

    whole = CRS.from_wkt(crs)
    for part in whole.sub_crs_list:
        if part.is_vertical and part.axis_info:
            datum = part.datum.name if part.datum is not None else part.name
            return unit_name(part.axis_info[0].unit_name), datum
    if len(whole.axis_info) == 3:
        return unit_name(whole.axis_info[2].unit_name), "ellipsoid"
    return None, None


def datum_key(name: str) -> str:
    """A vertical datum's name in the form in which names are compared.

    Examples
    --------
    >>> datum_key("NAVD88 height") == datum_key("North American Vertical Datum 1988") == datum_key("EPSG:5703")
    True
    >>> datum_key("EGM96") == datum_key("EGM2008")
    False
    """
    if re.fullmatch(r"\s*EPSG:\d+\s*", name, re.IGNORECASE):
        from pyproj import CRS
        from pyproj.exceptions import CRSError

        try:
            known = CRS.from_user_input(name.strip())
        except CRSError:
            known = None
        if known is not None and known.is_vertical and known.datum is not None:
            name = known.datum.name
    plain = re.sub(r"\(.*?\)", "", name.casefold())
    plain = re.sub(r"[^a-z0-9]", "", plain)
    plain = re.sub(r"(?<=.)(height|depth)$", "", plain)
    return _DATUMS.get(plain, plain)


def compared_datums(reference: HeightFacts, prediction: HeightFacts) -> tuple[Finding, ...]:
    """Nothing where both datums are known and equal, a finding where one is unknown.

    Raises
    ------
    UnitMismatch
        Both are known and differ.
    """
    left, right = reference.datum, prediction.datum
    if left is not None and right is not None:
        if datum_key(left) != datum_key(right):
            raise UnitMismatch(
                f"heights above different datums: {reference.name} above {left!r}, {prediction.name} above {right!r}; "
                "transform one of them first (nothing is transformed here)."
            )
        return ()
    unknown = [facts.name for facts in (reference, prediction) if facts.datum is None]
    says = (
        f"the vertical datum of {' and '.join(dict.fromkeys(unknown))} is not known; heights were compared as they are"
    )
    mend = "declare vertical_datum on both sides"
    return (Finding("vertical-datum-unknown", "minor", tuple(dict.fromkeys(unknown)), says, mend),)


def factor(facts: HeightFacts, wanted: str) -> float:
    """What heights of one side are multiplied by to be in the wanted unit; exactly 1 where they are already."""
    return 1.0 if facts.unit == wanted else metres_per(facts.unit) / metres_per(wanted)


def conversions(sides: tuple[HeightFacts, ...], wanted: str) -> list[Finding]:
    """A finding for each side whose heights are converted."""
    return [
        Finding(
            "unit-converted",
            "info",
            (facts.name,),
            f"heights in {facts.unit!r} ({facts.known_by}) were multiplied by {factor(facts, wanted)!r} to give "
            f"{wanted!r}",
            "none needed",
        )
        for facts in sides
        if facts.unit != wanted
    ]


def said(reference: HeightFacts, prediction: HeightFacts, wanted: str) -> dict[str, str]:
    """Units and datums for the user."""
    return {
        "unit": wanted,
        "reference unit": f"{reference.unit} ({reference.known_by})",
        "prediction unit": f"{prediction.unit} ({prediction.known_by})",
        "vertical datum": f"{reference.datum or 'unknown'} against {prediction.datum or 'unknown'}",
    }


@dataclass(frozen=True, slots=True, eq=False)
class ScaledBlocks:
    """Blocks whose heights are brought to one unit."""

    blocks: Any
    reference: float
    prediction: float

    def __call__(self) -> Iterator[Block]:
        """Every block, in float64 where a side is converted."""
        for block in self.blocks():
            yield replace(
                block,
                reference=_scaled(block.reference, self.reference),
                prediction=_scaled(block.prediction, self.prediction),
            )


def _scaled(heights: Any, by: float) -> Any:
    return heights if by == 1.0 else heights.astype(np.float64) * by


def _tile_start(at: int) -> int:
    return at // 512 * 512


@dataclass(frozen=True, slots=True, eq=False)
class LoadedHeights:
    """Loads a pair in one unit; of a large one, a few windows are looked at for an offset to recentre errors on."""

    pair: RasterPair
    reference: float
    prediction: float
    unit: str

    def __call__(self) -> RasterPair:
        """The pair, with the offset in its notes as ``pilot``."""
        notes = dict(self.pair.notes)
        pilot = self._pilot()
        if pilot is not None:
            notes["pilot"] = pilot
        blocks: Any = self.pair.blocks
        if (self.reference, self.prediction) != (1.0, 1.0):
            blocks = ScaledBlocks(blocks, self.reference, self.prediction)
        return replace(self.pair, blocks=blocks, unit=self.unit, notes=notes)

    def _pilot(self) -> float | None:
        """Median error of a few small windows at fixed places, whatever windows the run has; None for small pairs."""
        rows, columns = self.pair.shape
        blocks = self.pair.blocks
        if rows * columns <= ROWS_CELLS or not isinstance(blocks, Blocks):
            return None
        found = []
        with settings(), ExitStack() as stack:
            left, right = blocks.reference.open(stack), blocks.prediction.open(stack)
            for i in range(_LOOKS):
                for j in range(_LOOKS):
                    row, column = (
                        _tile_start((2 * k + 1) * size // (2 * _LOOKS)) for k, size in ((i, rows), (j, columns))
                    )
                    window = (row, column, min(_LOOK_CELLS, rows - row), min(_LOOK_CELLS, columns - column))
                    (a, a_valid), (b, b_valid) = left(window), right(window)
                    joint = a_valid & b_valid
                    found.append(b[joint].astype(np.float64) * self.prediction - a[joint] * self.reference)
        errors = np.concatenate(found)
        return float(np.median(errors)) if len(errors) else None
