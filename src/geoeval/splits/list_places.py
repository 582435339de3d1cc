"""Where the samples of a list lie: bounds, points, or the geometry of a layer, and the system that they are in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from geoeval.errors import ConfigError, GeoevalError, InputError
from geoeval.model import FloatArray, ObjectArray
from geoeval.splits.blanks import known
from geoeval.splits.list_files import ListFile, as_strings
from geoeval.splits.table import Mask, coded

#: Names of the four sides of a box: least x, least y, most x, most y.
SIDE_NAMES = (
    ("minx", "miny", "maxx", "maxy"),
    ("min_x", "min_y", "max_x", "max_y"),
    ("xmin", "ymin", "xmax", "ymax"),
    ("x_min", "y_min", "x_max", "y_max"),
    ("bbox.xmin", "bbox.ymin", "bbox.xmax", "bbox.ymax"),
    ("left", "bottom", "right", "top"),
)
#: The same in degrees.
DEGREE_SIDES = (
    ("west", "south", "east", "north"),
    ("min_lon", "min_lat", "max_lon", "max_lat"),
    ("lon_min", "lat_min", "lon_max", "lat_max"),
)
DEGREE_POINTS = (("lon", "lat"), ("longitude", "latitude"), ("long", "lat"), ("lng", "lat"))
POINTS = (("x", "y"), ("easting", "northing"))
WKT = ("wkt", "geometry", "geom", "the_geom", "geometry_wkt")
CRS_NAMES = ("crs", "epsg", "srid", "proj:epsg", "epsg_code")
_LONLAT = "EPSG:4326"


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Bounds of each row, NaN where it has none; the system of each; shapes where they are more than their boxes."""

    bounds: FloatArray
    crs: Any
    shapes: ObjectArray | None
    notes: dict[str, str]


def places(file: ListFile, *, bounds: tuple[str, ...] | None = None, crs: str | None = None) -> Places | None:
    """Where the rows of a file lie; None where nothing says so.

    Parameters
    ----------
    bounds
        Two or four columns by name: x, y or least x, least y, most x, most y.
    crs
        Declared system, for rows whose own one is not named.

    Raises
    ------
    InputError
        Bounds that are half there or not finite, or a system that nobody knows; the row is named.

    Examples
    --------
    >>> import pyarrow as pa
    >>> file = ListFile("a.csv", 1, {name: pa.array(["1"]) for name in ("west", "south", "east", "north")})
    >>> places(file).bounds.tolist(), places(file).crs.to_pylist()
    ([[1.0, 1.0, 1.0, 1.0]], ['EPSG:4326'])
    """
    if file.geometry is not None and bounds is None:
        return _of_layer(file, crs)
    found = _sides(file, bounds)
    wkt = None if bounds is not None or found is not None else file.first(WKT)
    if found is None and wkt is None:
        return None
    notes = {}
    shapes = None
    if found is not None:
        names, degrees = found
        box = _box(file, names)
        if bounds is None:
            notes["bounds"] = f"columns {', '.join(names)} (guessed)"
    else:
        shapes, degrees = _shapes(file, str(wkt)), False
        box = _shape_bounds(shapes, degrees)
        notes["bounds"] = f"column {wkt!r} as WKT (guessed)"
    given = np.asarray(~np.isnan(box).all(axis=1), dtype=np.bool_)
    systems, said = _systems(file, given, crs, degrees=degrees)
    return Places(box, systems, shapes, notes | said)


def _of_layer(file: ListFile, crs: str | None) -> Places:
    import pyarrow as pa
    import shapely

    shapes = np.asarray(shapely.force_2d(file.geometry), dtype=np.object_)
    system = crs if not file.crs and crs else file.crs
    degrees = _is_geographic(system)
    box = _shape_bounds(shapes, degrees)
    texts = pa.array([system] * file.n, type=pa.large_string())
    plain = shapely.area(shapes) < (box[:, 2] - box[:, 0]) * (box[:, 3] - box[:, 1]) * (1 - 1e-12)
    return Places(box, texts, shapes if plain.any() else None, {"geometry": f"of the layer, in {system}"})


def _is_geographic(system: str) -> bool:
    from geoeval.geometry.crs import parse_crs

    return system.strip().lower() != "pixel" and bool(parse_crs(system).is_geographic)


def _shape_bounds(shapes: ObjectArray, degrees: bool) -> FloatArray:
    """Bounds of shapes; in degrees, a shape in two parts on both sides of ±180° gets a box across it."""
    import shapely

    box = np.asarray(shapely.bounds(shapes), dtype=np.float64).reshape(-1, 4)
    if degrees:
        for at in np.flatnonzero(box[:, 2] - box[:, 0] > 180):
            x = shapely.get_coordinates(shapes[at])[:, 0]
            turned = np.where(x < 0, x + 360, x)
            if np.ptp(turned) < np.ptp(x):
                box[at, 0], box[at, 2] = turned.min(), turned.max() - 360
    return box


def _sides(file: ListFile, bounds: tuple[str, ...] | None) -> tuple[tuple[str, ...], bool] | None:
    """The columns of the sides, and whether their names say degrees."""
    lower = {name.lower(): name for name in reversed(list(file.columns))}
    if bounds is not None:
        if len(bounds) not in (2, 4):
            raise ConfigError(f"bounds: expected 4 columns (minx,miny,maxx,maxy) or 2 (x,y), got {list(bounds)}")
        names = tuple(file.require(name, "bounds") for name in bounds)
        low = tuple(name.lower() for name in names)
        return names, low in DEGREE_SIDES or low in DEGREE_POINTS
    for groups, degrees in ((SIDE_NAMES, False), (DEGREE_SIDES, True), (DEGREE_POINTS, True), (POINTS, False)):
        for group in groups:
            if all(name in lower for name in group):
                return tuple(lower[name] for name in group), degrees
    return None


def _box(file: ListFile, names: tuple[str, ...]) -> FloatArray:
    """(n, 4) bounds; a row that leaves all of them empty has no box, anything else must be finite."""
    read = [file.optional_numbers(name) for name in names]
    values = np.stack([one for one, _ in read], axis=1)
    null = np.stack([blank for _, blank in read], axis=1)
    bad = ~null.all(axis=1) & ~np.isfinite(values).all(axis=1)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"{file.row(at)}: bounds must be finite numbers in {', '.join(names)}, got {values[at].tolist()} "
            f"({int(bad.sum())} such rows); fill them in, or leave all of them empty"
        )
    return values if len(names) == 4 else np.concatenate([values, values], axis=1)


def _shapes(file: ListFile, column: str) -> ObjectArray:
    import shapely

    texts = np.array(file.text(column).to_pylist(), dtype=np.object_)
    shapes = shapely.from_wkt(texts, on_invalid="ignore")
    bad = np.array([text is not None for text in texts]) & shapely.is_missing(shapes)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise InputError(f"{file.row(at)}: column {column!r} must hold WKT, got {str(texts[at])[:60]!r}")
    return np.asarray(shapely.force_2d(shapes), dtype=np.object_)


def _systems(file: ListFile, given: Mask, crs: str | None, *, degrees: bool) -> tuple[Any, dict[str, str]]:
    """System of each row as text; every row with bounds has one that is known."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = file.first(CRS_NAMES)
    notes = {}
    if column is None:
        system = crs if crs is not None else _LONLAT if degrees else None
        if system is None and given.any():
            raise InputError(
                f"{file.name}: there are bounds, but no column crs or epsg says where they lie; declare --crs, for "
                "example --crs EPSG:26918 (or --crs pixel)"
            )
        if crs is None and degrees:
            notes["crs"] = f"{_LONLAT} (guessed from the names of the columns)"
        out = pa.array([system] * file.n, type=pa.large_string())
    else:
        codes, words = coded(as_strings(file.columns[column]))
        neat = [_system(word) for word in words]
        out = pa.array([*neat, crs], type=pa.large_string()).take(pa.array(np.where(codes < 0, len(neat), codes)))
        notes["crs"] = f"column {column!r} (guessed)"
    lacking = given & out.is_null().to_numpy(zero_copy_only=False)
    if lacking.any():
        raise InputError(f"{file.row(np.flatnonzero(lacking)[0])}: there are bounds, but no system; declare --crs")
    for word in pc.unique(out.filter(pa.array(given))).to_pylist():
        _refuse_unknown(file, out, word, given)
    return out, notes


def _system(word: str) -> str | None:
    text = word.strip().removesuffix(".0")
    return None if not known(text) or text == "0" else f"EPSG:{text}" if text.isdigit() else text


def _refuse_unknown(file: ListFile, systems: Any, word: str, given: Mask) -> None:
    import pyarrow.compute as pc

    from geoeval.geometry.crs import parse_crs

    if word.lower() == "pixel":
        return
    try:
        parse_crs(word)
    except (GeoevalError, ValueError, RuntimeError) as error:
        at = np.flatnonzero(pc.equal(systems, word).fill_null(False).to_numpy(zero_copy_only=False) & given)[0]
        raise InputError(f"{file.row(at)}: {error}") from error
