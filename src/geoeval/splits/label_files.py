"""Label files: features, a mask image, or bytes that nothing here can read.

Features  GeoJSON (one document or a line a feature), GeoPackage, Shapefile, FlatGeobuf, GeoParquet, KML, GML, COCO, and
          tables with WKT, boxes or points. Parts of several-part features count one by one, so that a set that was
          dissolved into one feature stays what it is. A feature without a geometry that can be read is refused: a label
          is empty only where its file holds no feature.
Masks     GeoTIFF, PNG, JPEG, JPEG 2000, WebP: told by their first bytes and decoded. Their values are hashed, so that
          equal masks are equal whatever their compression. A mask of a single value is an empty label.
Opaque    any other file: compared by its bytes alone, and only where ``label_geometry_hash`` is optional.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from geoeval.errors import CRSMissing, GeoevalError, InputError
from geoeval.model import ObjectArray
from geoeval.splits.assets import MAX_VALUES, is_image

#: What is read, for messages.
READ = (
    "GeoJSON, GeoPackage, Shapefile, FlatGeobuf, GeoParquet, KML, GML, COCO, CSV with WKT or boxes; or a mask as "
    "GeoTIFF, PNG, JPEG, JPEG 2000 or WebP"
)

#: Endings of files that hold features and nothing else; what cannot be read under them is damaged.
_FEATURES_ONLY = frozenset(
    {".geojson", ".geojsonl", ".gpkg", ".fgb", ".parquet", ".geoparquet", ".shp", ".kml", ".gml", ".csv", ".tsv"}
)
_TABLES = frozenset({".csv", ".tsv", ".txt"})

#: Files that go with one of these endings; a link on them must not lead out either.
_NEEDED = (".shx", ".dbf", ".prj")
_BESIDE = (*_NEEDED, ".cpg", ".qix", ".sbn", ".gfs", ".xsd", ".gpkg-wal")

#: First bytes of formats that hold their own features; others (an OGR VRT, for example) could lead out of the root.
_BINARY = (b"SQLite format 3\0", b"fgb", b"\0\0\x27\x0a", b"PAR1", b"PK\x03\x04")
_MARKUP = re.compile(rb"<(\w+:)?(kml|FeatureCollection)\b")

_NO_NUMBER = re.compile(rb"[\[,\s-](nan|inf)", re.IGNORECASE)
_GEOJSON = ("FeatureCollection", "Feature")
_SHAPES = ("Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon", "GeometryCollection")


@dataclass(frozen=True, slots=True, eq=False)
class Label:
    """What a label file shows.

    Parameters
    ----------
    kind
        ``"features"``, ``"mask"`` or ``"opaque"``.
    shapes
        Single-part geometries; None of an opaque label and of a mask that shows objects.
    crs
        Their system; "" for pixels, and where nothing says.
    named
        False where the file names no system: ``crs`` is then at most what its format means by silence.
    values_sha256
        Of a mask that shows objects: the hash of its values.
    """

    kind: Literal["features", "mask", "opaque"]
    shapes: ObjectArray | None = None
    crs: str = ""
    named: bool = True
    values_sha256: str | None = None

    @property
    def geometry_hash(self) -> str | None:
        """What the label is compared by beside its bytes: its shapes, or the values of a mask; None if opaque."""
        if self.shapes is None:
            return self.values_sha256
        from geoeval.splits.labelsets import geometry_hash

        return str(geometry_hash(self.shapes))


def read_label(path: Path, where: str, root: Path | None = None, max_values: int = MAX_VALUES) -> Label:
    """What a label file shows, told by its content.

    Parameters
    ----------
    path
        The file, found inside ``root``.
    where
        Record and field, for messages.
    root
        Folder that links of files beside it must not lead out of; None follows them.
    max_values
        Most values that a mask may claim.

    Raises
    ------
    InputError
        A damaged file, a feature without a geometry that can be read or with a coordinate that is no finite number
        (named by its position, counted from 1), or a shapefile without its other files.
    """
    with path.open("rb") as stream:
        head = stream.read(4096)
    if is_image(head):
        return _mask(path, where, max_values)
    ending = path.suffix.lower()
    name = f"{where}: {path.name!r}"
    if not _self_contained(head, ending):
        if ending in _FEATURES_ONLY:
            raise InputError(f"{name} does not begin like a {ending} file, but with {head[:12]!r}; write it again")
        return Label("opaque")
    _require_companions(path, ending, root, name)
    documents = _documents(path, head)
    try:
        table, named = _table(path, documents)
    except GeoevalError as error:
        if ending in _FEATURES_ONLY or _is_geojson(documents) or (ending == ".json" and not documents):
            raise InputError(f"{where}: {error}") from error
        return Label("opaque")
    if table.geometry is None:
        return _shapeless(table, ending, name)
    return _features(table, named, documents, path, name)


def _mask(path: Path, where: str, max_values: int) -> Label:
    from geoeval.splits.mask_values import values_sha256

    try:
        found = values_sha256(path, max_values)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    if found is None:
        # A mask without any object, as background has; like a label without a feature it links nothing.
        return Label("mask", np.zeros(0, dtype=np.object_))
    return Label("mask", values_sha256=found)


def _self_contained(head: bytes, ending: str) -> bool:
    if head.startswith(_BINARY):
        return True
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n\x1e")
    if text.startswith(b"<"):
        return _MARKUP.search(text) is not None
    return text.startswith((b"{", b"[")) or ending in _TABLES


def _require_companions(path: Path, ending: str, root: Path | None, name: str) -> None:
    """Refuse a shapefile that is not whole, and a link from beside a label to outside of the root."""
    beside = {one: [path.with_suffix(text) for text in (one, one.upper())] for one in _BESIDE}
    if ending == ".shp":
        missing = [one for one in _NEEDED if not any(file.is_file() for file in beside[one])]
        if missing:
            raise InputError(f"{name} lacks its {', '.join(missing)}; copy all files of the shapefile")
    if root is None:
        return
    home = Path(os.path.realpath(root))
    for file in (file for files in beside.values() for file in files):
        if file.is_symlink() and not Path(os.path.realpath(file)).is_relative_to(home):
            raise InputError(f"{name}: {file.name!r} is a link that leads out of the root; put the file itself there")


def _table(path: Path, documents: Sequence[Any]) -> tuple[Any, bool]:
    """The features of a file, and whether it names their system. What lies nowhere is read as if in pixels."""
    from geoeval.options import Source
    from geoeval.readers.vector import read_table

    silent = _is_geojson(documents) and not any(isinstance(one, dict) and one.get("crs") for one in documents)
    try:
        table = read_table(Source(str(path)))
    except CRSMissing as missing:
        try:
            return read_table(Source(str(path), crs="pixel")), False
        except GeoevalError:
            # The file names degrees that cannot be degrees.
            raise missing from None
    # A note tells of a system that a format means by silence; names of columns say that they hold degrees.
    return table, not silent and (table.kind != "vector" or "crs" not in table.notes)


def _shapeless(table: Any, ending: str, name: str) -> Label:
    """What a file without any geometry is: an empty table of shapes, a table of something else, or refused."""
    from geoeval.readers.tables import WKT_NAMES

    if not len(table) and any(str(one).lower() in WKT_NAMES for one in table.frame.columns):
        return Label("features", np.zeros(0, dtype=np.object_), named=False)
    if ending in _TABLES:
        return Label("opaque")
    if not len(table):
        raise InputError(f"{name} holds no layer of features; write it again")
    raise InputError(_unread([0], len(table), name))


def _features(table: Any, named: bool, documents: Sequence[Any], path: Path, name: str) -> Label:
    import shapely

    from geoeval.geometry.crs import describe
    from geoeval.readers.raw import is_pixel

    shapes = np.asarray(table.geometry, dtype=np.object_)
    _refuse_infinite(shapes, name)
    void = shapely.is_missing(shapes) | shapely.is_empty(shapes)
    if table.kind == "coco":
        if void.any():
            raise InputError(
                f"{name}: annotation {np.flatnonzero(void)[0] + 1} of {len(shapes)} has no box or outline of finite "
                f"numbers ({int(void.sum())} such annotations); leave it out or write it again"
            )
    elif _is_geojson(documents):
        listed = _listed(documents)
        if void.any() or _NO_NUMBER.search(path.read_bytes()):
            # Its reader takes what is no number for an empty or a missing geometry.
            shown = [one.get("geometry", one) if isinstance(one, dict) else None for one in listed]
            _refuse_features([at for at, one in enumerate(shown) if not _in_numbers(one)], len(listed), name)
        if len(listed) != len(shapes):
            raise InputError(f"{name} lists {len(listed)} features, {len(shapes)} of which can be read; write it again")
    if void.any():
        raise InputError(_unread(np.flatnonzero(void).tolist(), len(shapes), name))
    pixel = table.crs is None or is_pixel(table.crs)
    return Label("features", parts_of(shapes), "" if pixel else describe(table.crs), named or table.kind == "coco")


def parts_of(shapes: ObjectArray) -> ObjectArray:
    """Geometries with each part on its own; empty ones and None fall away.

    Examples
    --------
    >>> import shapely
    >>> pair = shapely.from_wkt("GEOMETRYCOLLECTION (MULTIPOINT (0 0, 1 1), LINESTRING (0 0, 1 1))")
    >>> [one.geom_type for one in parts_of(np.array([pair, None], dtype=object))]
    ['Point', 'Point', 'LineString']
    """
    import shapely

    out = shapes
    while (shapely.get_type_id(out) >= shapely.GeometryType.MULTIPOINT).any():
        out = shapely.get_parts(out)
    return np.asarray(out[~(shapely.is_missing(out) | shapely.is_empty(out))], dtype=np.object_)


def _documents(path: Path, head: bytes) -> list[Any]:
    """The JSON documents of a file: one, or one a line; none of what is no JSON."""
    if not head.lstrip(b"\xef\xbb\xbf \t\r\n\x1e").startswith((b"{", b"[")):
        return []
    data = path.read_bytes()
    try:
        return [json.loads(data)]
    except (ValueError, RecursionError):
        pass
    lines = [line for line in re.split(rb"\x1e" if b"\x1e" in data else rb"[\r\n]+", data) if line.strip()]
    out: list[Any] = []
    for line in lines:
        try:
            out.append(json.loads(line))
        except (ValueError, RecursionError):
            # A line that its reader would pass over in silence still counts as a feature.
            out.append(None)
    return out if any(one is not None for one in out) else []


def _is_geojson(documents: Sequence[Any]) -> bool:
    return any(isinstance(one, dict) and one.get("type") in (*_GEOJSON, *_SHAPES) for one in documents)


def _listed(documents: Sequence[Any]) -> list[Any]:
    """The features that GeoJSON documents list."""
    out: list[Any] = []
    for one in documents:
        found = one.get("features") if isinstance(one, dict) else None
        out += found if isinstance(found, list) else [one]
    return out


def _refuse_infinite(shapes: ObjectArray, name: str) -> None:
    """Refuse coordinates that are no finite numbers: overlaps and distances with them are silently nothing.

    Heights do not count, and empty geometries have no coordinates.
    """
    import shapely

    at, feature = shapely.get_coordinates(shapes, return_index=True)
    _refuse_features(np.unique(feature[~np.isfinite(at).all(axis=1)]).tolist(), len(shapes), name)


def _in_numbers(geometry: Any) -> bool:
    if not isinstance(geometry, dict):
        return True
    if isinstance(parts := geometry.get("geometries"), list):
        return all(_in_numbers(part) for part in parts)
    return _finite(geometry.get("coordinates"))


def _finite(coordinates: Any) -> bool:
    """True for nested lists of positions: numbers, of which the first two are finite."""
    if not isinstance(coordinates, list) or not coordinates:
        return True
    if all(isinstance(one, list) for one in coordinates):
        return all(_finite(one) for one in coordinates)
    return all(isinstance(one, int | float) for one in coordinates) and all(map(math.isfinite, coordinates[:2]))


def _refuse_features(bad: Sequence[int], n: int, name: str) -> None:
    if bad:
        raise InputError(
            f"{name}: feature {bad[0] + 1} of {n} has a coordinate that is no finite number "
            f"({len(bad)} such features); leave it out or write it again"
        )


def _unread(bad: Sequence[int], n: int, name: str) -> str:
    return (
        f"{name}: feature {bad[0] + 1} of {n} has no geometry that can be read ({len(bad)} such features); "
        "leave it out or write it again"
    )
