"""Features from files: GeoPackage, GeoJSON, Shapefile, FlatGeobuf, GeoParquet, COCO, CSV, or a frame in memory.

Nothing is mended here. A CRS is taken from the file; a declared one is used where the file names none. A filter is
applied before anything else looks at the features, so that a column that the filter empties is never guessed.
"""

from __future__ import annotations

import json
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import shapely

from geoeval.errors import GeoevalError, InputError, nearest_spelling
from geoeval.model import Finding, ObjectArray
from geoeval.options import Source
from geoeval.readers import coco, tables
from geoeval.readers.columns import listed
from geoeval.readers.filters import matches
from geoeval.readers.georef import settle_crs, usable_crs
from geoeval.readers.raw import Raw, Table
from geoeval.readers.sources import companions, existing, is_path

TABLE_ENDINGS = frozenset({".csv", ".tsv", ".txt"})
RASTER_ENDINGS = frozenset({".tif", ".tiff", ".vrt", ".jp2", ".img", ".asc", ".png", ".jpg", ".jpeg"})

#: OGC:CRS84 is longitude, latitude on WGS 84: what GeoJSON and GeoParquet mean where they say nothing.
LONLAT = "OGC:CRS84"


def read_table(source: Source, *, beside: Table | None = None, masks: bool = False) -> Table:
    """Features of one file or frame, filtered, with a settled CRS.

    Parameters
    ----------
    source
        One file or frame; folders and globs are expanded by :func:`geoeval.readers.sources.expand`.
    beside
        The reference, which a bare list of COCO results refers to.
    masks
        True to take COCO segmentations instead of boxes.

    Returns
    -------
    Table
        Attributes without geometry, geometries, CRS.

    Raises
    ------
    InputError
        The file is missing, empty, unreadable, or needs a layer to be named.
    CRSMissing
        There is geometry, but no CRS in the file and none declared.
    CRSMismatch
        The declared CRS is not the one that the file names.

    Examples
    --------
    >>> frame = pd.DataFrame({"lon": [5.0, 6.0], "lat": [50.0, 51.0], "kind": ["a", "b"]})
    >>> table = read_table(Source(frame, where="kind = 'b'"))
    >>> len(table), table.row.tolist(), table.geometry[0].wkt
    (1, [1], 'POINT (6 51)')
    """
    name = source_name(source.path)
    raw = read_raw(source, beside=beside, masks=masks)
    raw = settle_crs(raw, source, name)
    keep = np.arange(len(raw.frame), dtype=np.int64)
    findings = list(raw.findings)
    if source.where:
        keep = np.flatnonzero(matches(raw.frame, source.where, name)).astype(np.int64)
        if not len(keep) and len(raw.frame):
            findings.append(
                Finding(
                    "filter-keeps-nothing",
                    "minor",
                    (name,),
                    f"the filter {source.where!r} keeps none of {len(raw.frame)} features",
                    "look at the values of its columns",
                )
            )
    return Table(
        frame=raw.frame.iloc[keep].reset_index(drop=True),
        geometry=None if raw.geometry is None else raw.geometry[keep],
        crs=raw.crs,
        row=keep,
        name=name,
        kind=raw.kind,
        broken=None if raw.broken is None else raw.broken[keep],
        unit_column=raw.unit_column,
        units=raw.units,
        classes=raw.classes,
        images=raw.images,
        notes=raw.notes,
        findings=tuple(findings),
        inputs=raw.inputs,
    )


def source_name(path: Any) -> str:
    """What messages call a source: its file name, or what kind of object it is.

    Examples
    --------
    >>> source_name("data/barns.gpkg"), source_name(pd.DataFrame())
    ('barns.gpkg', 'DataFrame')
    """
    return Path(path).name if is_path(path) else type(path).__name__


def read_raw(source: Source, *, beside: Table | None = None, masks: bool = False) -> Raw:
    """Features of one file or frame as they stand there, without filter and with whatever CRS the file names.

    Raises
    ------
    InputError
        The file is missing, empty or unreadable.
    """
    if not is_path(source.path):
        return _distinct(_from_frame(source.path), source_name(source.path))
    path = existing(source.path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            raw = _distinct(_read(path, source, beside, masks), path.name)
        except GeoevalError:
            raise
        except Exception as error:
            # Readers raise whatever their format provokes; to the user it is one thing: this file cannot be read.
            raise InputError(_unreadable(path, error)) from error
    remarks = {" ".join(str(item.message).split()) for item in caught}
    findings = tuple(
        Finding("reader-remark", "minor", (path.name,), remark[:300], "look at the file") for remark in sorted(remarks)
    )
    return replace(raw, findings=(*raw.findings, *findings), inputs=companions(path))


def _distinct(raw: Raw, name: str) -> Raw:
    """Refuse two columns of one name: nothing could say which is meant."""
    twice = sorted({str(column) for column in raw.frame.columns[raw.frame.columns.duplicated()]})
    if twice:
        raise InputError(
            f"{name}: expected columns of different names, found {listed(map(repr, twice))} twice; rename one"
        )
    return raw


def _read(path: Path, source: Source, beside: Table | None, masks: bool) -> Raw:
    ending = path.suffix.lower()
    if path.is_dir() and ending != ".gdb":
        raise InputError(f"{str(path)!r} is a folder; name one of its files")
    if ending in RASTER_ENDINGS:
        raise InputError(
            f"{str(path)!r}: expected features, found a raster by its ending; evaluate it with a raster family"
        )
    if ending in TABLE_ENDINGS:
        frame, findings = tables.read_csv(path, source.columns)
        return replace(_from_columns(frame, path.name), findings=tuple(findings))
    if ending in (".parquet", ".geoparquet"):
        return _read_parquet(path)
    if ending in (".json", ".geojson"):
        document = _coco_document(path)
        if document is not None:
            return coco.from_document(document, path.name, beside, masks)
    return _read_layer(_inside_zip(path, source.layer) if ending == ".zip" else str(path), path, source)


def _unreadable(path: Path, error: Exception) -> str:
    says = " ".join(str(error).split())[:300] or type(error).__name__
    mend = "write the file again"
    if "SHAPE_RESTORE_SHX" in says:
        says = "its .shx index is missing"
        mend = "copy all files of the shapefile (.shp, .shx, .dbf, .prj)"
    elif "not recognized" in says:
        says = "no format that is known here"
        mend = "give a GeoPackage, GeoJSON, Shapefile, FlatGeobuf, GeoParquet, COCO JSON or CSV file"
    return f"{str(path)!r}: expected a file with features, but it cannot be read: {says}; {mend}"


def _coco_document(path: Path) -> Any:
    """The parsed JSON where the file is COCO, else None; GeoJSON is told by its beginning without reading it all."""
    with path.open("rb") as stream:
        head = stream.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n")
    if b'"FeatureCollection"' in head or b'"features"' in head or b'"Feature"' in head:
        return None
    if not head.startswith((b"[", b"{")):
        return None
    document = coco.load(path)
    if isinstance(document, list) and not document:
        return document
    return document if coco.is_coco(document) else None


def _inside_zip(path: Path, layer: str | None) -> str:
    if not zipfile.is_zipfile(path):
        raise InputError(f"{str(path)!r}: expected a zip archive, found something else; write it again")
    with zipfile.ZipFile(path) as archive:
        names = [item.filename for item in archive.infolist() if not item.is_dir()]
    members = sorted(
        name for name in names if name.lower().endswith((".shp", ".gpkg", ".geojson", ".json", ".fgb", ".gml", ".kml"))
    )
    if not members:
        raise InputError(
            f"{str(path)!r}: expected a shapefile or another layer in the archive, found "
            f"{listed(names) or 'no file at all'}; pack the layer again"
        )
    if len(members) > 1 and layer is not None:
        chosen = [name for name in members if Path(name).stem == layer]
        if not chosen:
            raise InputError(
                f"{str(path)!r}: no layer {layer!r}; {nearest_spelling(layer, (Path(m).stem for m in members))}"
            )
        members = chosen
    if len(members) > 1:
        raise InputError(
            f"{str(path)!r} holds {len(members)} layers ({listed(Path(m).stem for m in members)}); "
            "name one of them as layer"
        )
    return f"/vsizip/{path.resolve()}/{members[0]}"


def choose_layer(where: str, path: Path, layer: str | None) -> str:
    """The layer to read, refused where the file has several and none was named.

    Raises
    ------
    InputError
        There is no layer, not the named one, or more than one.
    """
    import pyogrio

    names = [str(row[0]) for row in pyogrio.list_layers(where)]
    if not names:
        raise InputError(f"{str(path)!r}: expected a layer, found none; write the file again")
    if layer is not None and layer not in names:
        if where.startswith("/vsizip/") and len(names) == 1:
            return names[0]
        raise InputError(f"{str(path)!r}: no layer {layer!r}; {nearest_spelling(layer, names)}")
    if layer is None and len(names) > 1:
        raise InputError(f"{str(path)!r} holds {len(names)} layers ({listed(names)}); name one of them as layer")
    return layer if layer is not None else names[0]


def _read_layer(where: str, path: Path, source: Source) -> Raw:
    import pyogrio

    layer = choose_layer(where, path, source.layer)
    wants_fid = source.columns.id == "fid"
    meta, arrow = pyogrio.read_arrow(where, layer=layer, return_fids=wants_fid)
    frame = arrow.to_pandas(ignore_metadata=True)
    column = meta.get("geometry_name") or next((n for n in ("wkb_geometry", "geometry") if n in frame.columns), "")
    geometry: ObjectArray | None = None
    broken: ObjectArray | None = None
    findings: tuple[Finding, ...] = ()
    if meta.get("geometry_type") is not None and column in frame.columns:
        geometry, broken, findings = _straight(frame.pop(column).to_numpy(dtype=object), where, layer, path.name)
    if wants_fid:
        frame = frame.rename(columns={"OGC_FID": "fid", "__fid__": "fid"})
    if geometry is None:
        return _from_columns(frame, path.name)
    crs = meta.get("crs")
    firm = path.suffix.lower() not in (".geojson", ".json", ".geojsonl") or _names_crs(path)
    return Raw(frame=frame, geometry=geometry, crs=usable_crs(crs), crs_firm=firm, broken=broken, findings=findings)


def _straight(
    wkb: ObjectArray, where: str, layer: str, name: str
) -> tuple[ObjectArray, ObjectArray | None, tuple[Finding, ...]]:
    """Geometries of a layer; circular arcs come as the chords that GDAL makes of them, with a finding."""
    import pyogrio.raw

    try:
        return *tables.build(wkb, shapely.from_wkb), ()
    except NotImplementedError:
        pass
    chords = pyogrio.raw.read(where, layer=layer, columns=[])[2]
    says = "its curves were read as chords, which differ from the arcs by up to 0.06 % of the radius"
    said = Finding("curves-straightened", "minor", (name,), says, "straighten them yourself to choose the step")
    return *tables.build(np.asarray(chords, dtype=object), shapely.from_wkb), (said,)


def _names_crs(path: Path) -> bool:
    """True where a GeoJSON file has a ``crs`` member; it stands before or after the features."""
    with path.open("rb") as stream:
        head = stream.read(1 << 16)
        stream.seek(max(0, path.stat().st_size - (1 << 16)))
        return b'"crs"' in head or b'"crs"' in stream.read()


def _read_parquet(path: Path) -> Raw:
    import pyarrow.parquet as pq

    arrow = pq.read_table(path)
    about = json.loads((arrow.schema.metadata or {}).get(b"geo", b"null"))
    frame = arrow.to_pandas(ignore_metadata=True)
    if about is None:
        return _from_columns(frame, path.name)
    column = about.get("primary_column", "geometry")
    facts = about.get("columns", {}).get(column, {})
    if facts.get("encoding", "WKB") != "WKB":
        import geopandas as gpd

        layer = gpd.read_parquet(path)
        return _from_frame(layer)
    extra = [name for name in about.get("columns", {}) if name != column and name in frame.columns]
    if column not in frame.columns:
        raise InputError(
            f"{str(path)!r}: expected the geometry column {column!r} that its header names; write it again"
        )
    geometry, broken = tables.build(frame.pop(column).to_numpy(dtype=object), shapely.from_wkb)
    stated = "crs" in facts
    crs = facts["crs"] if stated else LONLAT
    return Raw(
        frame=frame.drop(columns=extra),
        geometry=geometry,
        crs=usable_crs(crs),
        broken=broken,
        notes={} if stated else {"crs": f"{path.name}: none in the file, which by its standard means {LONLAT}"},
    )


def _from_frame(frame: Any) -> Raw:
    if not isinstance(frame, pd.DataFrame):
        raise InputError(
            f"expected a path, GeoDataFrame or DataFrame, found {type(frame).__name__}; "
            "geoeval reads files or frames here"
        )
    active = getattr(frame, "_geometry_column_name", None)
    if active is None or active not in frame.columns:
        plain = pd.DataFrame(frame).reset_index(drop=True)
        plain.columns = [str(name) for name in plain.columns]
        return _from_columns(plain, type(frame).__name__)
    geometry = np.asarray(frame[active], dtype=object)
    crs = usable_crs(frame.crs)
    rest = pd.DataFrame(frame.drop(columns=[active])).reset_index(drop=True)
    rest.columns = [str(name) for name in rest.columns]
    return Raw(frame=rest, geometry=geometry, crs=crs, kind="frame")


def _from_columns(frame: pd.DataFrame, name: str) -> Raw:
    found = tables.shapes(frame, name)
    rest = frame.drop(columns=list(found.used)) if found.kind == "wkt" else frame
    notes = {}
    crs = None
    if found.kind == "lonlat":
        crs = usable_crs("EPSG:4326")
        notes["crs"] = f"{name}: EPSG:4326, longitude and latitude in columns {', '.join(found.used)} (guessed)"
    if found.used:
        notes["geometry columns"] = f"{name}: {', '.join(found.used)}"
    kind = "points" if found.kind == "lonlat" else found.kind
    return Raw(
        frame=rest, geometry=found.geometry, crs=crs, crs_firm=False, kind=kind, broken=found.broken, notes=notes
    )
