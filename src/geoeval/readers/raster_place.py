"""How a raster comes to lie on the grid of another: on one lattice as it is, else as declared, else not at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from geoeval.errors import ConfigError, GridMismatch
from geoeval.geometry.lattice import Fit, difference, fit, pixel_map
from geoeval.model import Finding
from geoeval.options import Align
from geoeval.readers.raster_header import Header
from geoeval.readers.raster_layers import Layer, Mode, nodata_in

_CLASSES: tuple[Align, ...] = ("nearest", "mode")
_HEIGHTS: tuple[Align, ...] = ("nearest", "bilinear")


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A layer on the reference grid, what was done to it in words, and what was noticed."""

    layer: Layer
    alignment: str
    offset: str
    shift_px: tuple[float, float]
    findings: tuple[Finding, ...] = ()


def own(header: Header, *, categorical: bool, recode: Mapping[int, int]) -> Layer:
    """The reference, on its own grid."""
    return Layer(header, header.grid, "window", header.crs, categorical=categorical, recode=recode)


def absent(reference: Header) -> Layer:
    """A prediction that is not there: nothing is valid."""
    return Layer(reference, reference.grid, "absent", reference.crs)


def place(
    reference: Header,
    prediction: Header,
    align: Align | None,
    *,
    side: str = "prediction",
    categorical: bool = True,
    recode: Mapping[int, int] | None = None,
) -> Placed:
    """Bring a raster to the grid of the reference.

    Parameters
    ----------
    reference, prediction
        Headers of both files.
    align
        What to do where the grids differ; None refuses.
    side
        What the second raster is called in messages.
    categorical
        Classes take ``nearest`` or ``mode``, heights ``nearest`` or ``bilinear``: a mean of two classes is no class.
    recode
        Class codes to change, old to new.

    Raises
    ------
    GridMismatch
        The grids do not share a lattice and nothing was declared.
    ConfigError
        The declared alignment does not suit the values.
    """
    allowed = _CLASSES if categorical else _HEIGHTS
    if align is not None and align not in allowed:
        why = "a mean of two classes is a class that nobody mapped" if categorical else "heights have no majority"
        raise ConfigError(f"align = {align!r} does not suit {_kind(categorical)}: {why}; use {' or '.join(allowed)}.")
    if not _same_system(reference, prediction, side):
        found, mode = None, _choice(reference, prediction, align, None, side)
    else:
        found = fit(reference.grid, prediction.grid)
        mode = "window" if found.same else _choice(reference, prediction, align, found, side)
    layer = Layer(
        prediction,
        reference.grid,
        mode,
        reference.crs,
        shift=(found.row, found.column) if found is not None and mode == "window" else (0, 0),
        resampling=align or "nearest",
        categorical=categorical,
        recode=recode or {},
    )
    return Placed(
        layer,
        _alignment(reference, prediction, mode, align),
        _offset(found, mode),
        (0.0, 0.0) if found is None else found.shift,
        _findings(reference, prediction, layer, align, side),
    )


def _kind(categorical: bool) -> str:
    return "classes" if categorical else "heights"


def _same_system(reference: Header, prediction: Header, side: str) -> bool:
    if (reference.kind == "pixel") != (prediction.kind == "pixel"):
        raise GridMismatch(
            f"{_sides(reference, prediction, side)}: one has a coordinate system and the other is in pixels; "
            "give both files a system, or declare crs for the one that has none."
        )
    if reference.crs == prediction.crs:
        return True
    from pyproj import CRS

    from geoeval.geometry.crs import same_crs

    return same_crs(CRS.from_wkt(reference.crs), CRS.from_wkt(prediction.crs))


def _choice(reference: Header, prediction: Header, align: Align | None, found: Fit | None, side: str) -> Mode:
    """Index arithmetic where it is exact, else the warper; refused where nothing was declared."""
    if align is not None:
        if reference.kind == "pixel" and not (align == "nearest" and found is not None and found.straight):
            raise GridMismatch(
                f"{_sides(reference, prediction, side)}: rasters in pixel coordinates can only be aligned by "
                "align = 'nearest', with rows along rows; give both files a coordinate system."
            )
        return "index" if align == "nearest" and found is not None and found.straight else "warp"
    how = (
        difference(reference.grid, prediction.grid)
        if found is not None
        else "their coordinate systems differ, so that there is no shift in pixels to give"
    )
    raise GridMismatch(
        f"{_sides(reference, prediction, side)}: expected one lattice within 0.001 pixel, found two: {how}.\n"
        f"  reference:  {system_name(reference)}, {reference.grid}\n"
        f"  {side + ':':<11} {system_name(prediction)}, {prediction.grid}\n"
        f"Warp the {side} to the reference grid, or declare align = 'nearest'; a shift of one pixel alone can cost 9 "
        "points of accuracy, so find out first which of them is right."
    )


def _sides(reference: Header, prediction: Header, side: str) -> str:
    return f"reference {reference.name} and {side} {prediction.name}"


def system_name(header: Header) -> str:
    """Short name of a raster's coordinate system."""
    if header.kind == "pixel":
        return "pixels"
    from pyproj import CRS

    from geoeval.geometry.crs import describe

    return describe(CRS.from_wkt(header.crs))


def _alignment(reference: Header, prediction: Header, mode: Mode, align: Align | None) -> str:
    if mode == "window":
        return "one lattice"
    if mode == "index":
        return "nearest, by index: " + difference(reference.grid, prediction.grid)
    return f"{align}, warped from {system_name(prediction)} to {system_name(reference)}"


def _offset(found: Fit | None, mode: Mode) -> str:
    if found is None:
        return "not defined: other coordinate system"
    if mode == "window":
        rest = max(abs(found.shift[0]), abs(found.shift[1]))
        return f"row {found.row}, column {found.column}, remainder {rest:.3g} px"
    return f"({found.shift[0]:.6g}, {found.shift[1]:.6g}) px"


def _findings(
    reference: Header, prediction: Header, layer: Layer, align: Align | None, side: str
) -> tuple[Finding, ...]:
    out = list(unfit_nodata(prediction))
    if layer.mode in ("index", "warp"):
        says = f"the {side} was brought to the reference grid: {_alignment(reference, prediction, layer.mode, align)}"
        out.append(Finding("grid-aligned", "info", (prediction.name,), says, "none needed"))
    if layer.mode in ("window", "index") and not _overlap(reference, prediction):
        says = f"{side} and reference {reference.name} share no cell, so nothing can be compared"
        out.append(Finding("no-overlap", "major", (prediction.name,), says, "pair files of one place"))
    return tuple(out)


def unfit_nodata(header: Header) -> list[Finding]:
    """A finding where the declared nodata cannot occur in the band's data type."""
    if header.nodata is None or nodata_in(header.dtype, header.nodata) is not None:
        return []
    says = f"nodata {header.nodata:g} cannot occur in {header.dtype}, so every cell counts as data"
    return [Finding("nodata-impossible", "minor", (header.name,), says, "declare the value that marks missing cells")]


def _overlap(reference: Header, prediction: Header) -> bool:
    a, b, c, d, e, f = pixel_map(prediction.grid, reference.grid)
    grid = prediction.grid
    ends = [(a * x + b * y + c, d * x + e * y + f) for x in (0, grid.columns) for y in (0, grid.rows)]
    columns, rows = [x for x, _ in ends], [y for _, y in ends]
    return (
        max(columns) > 0.5
        and min(columns) < reference.grid.columns - 0.5
        and max(rows) > 0.5
        and min(rows) < reference.grid.rows - 0.5
    )
