"""COCO JSON: a dataset with images, annotations and categories, or a bare list of results that belongs to one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import shapely

from geoeval.errors import InputError
from geoeval.model import Finding, ObjectArray
from geoeval.readers.columns import listed
from geoeval.readers.raw import PIXEL, Raw, Table

_PLAIN = (str, int, float, bool, type(None))


def is_coco(document: Any) -> bool:
    """True for a COCO dataset or a list of COCO results.

    Examples
    --------
    >>> is_coco([{"image_id": 1, "category_id": 2, "bbox": [0, 0, 1, 1], "score": 0.5}])
    True
    >>> is_coco({"type": "FeatureCollection", "features": []})
    False
    """
    if isinstance(document, dict):
        return "annotations" in document and "images" in document
    return isinstance(document, list) and all(isinstance(item, dict) and "image_id" in item for item in document[:100])


def load(path: Path) -> Any:
    """A JSON document.

    Raises
    ------
    InputError
        The text is no JSON.
    """
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{str(path)!r}: expected JSON, found: {str(error)[:150]}; write the file again") from error


def from_document(document: Any, name: str, beside: Raw | Table | None = None, masks: bool = False) -> Raw:
    """Features of a COCO dataset or result list, in pixels, one unit an image.

    Parameters
    ----------
    document
        The parsed JSON.
    name
        File name for messages.
    beside
        The reference dataset, whose images and categories a result list refers to.
    masks
        True to take segmentations, where there are any, instead of boxes.

    Raises
    ------
    InputError
        A record lacks what it needs.

    Examples
    --------
    >>> dataset = {"images": [{"id": 1, "file_name": "a.jpg"}], "categories": [{"id": 3, "name": "car"}],
    ...            "annotations": [{"id": 7, "image_id": 1, "category_id": 3, "bbox": [0, 0, 2, 1]}]}
    >>> raw = from_document(dataset, "a.json")
    >>> raw.frame[["label", "image"]].values.tolist(), raw.geometry[0].area
    ([['car', 'a.jpg']], 2.0)
    """
    if isinstance(document, dict):
        records: Sequence[Mapping[str, Any]] = document["annotations"]
        images = {int(item["id"]): str(item.get("file_name", item["id"])) for item in document["images"]}
        classes = {int(item["id"]): str(item.get("name", item["id"])) for item in document.get("categories", [])}
    else:
        records = document
        images = dict(beside.images) if beside is not None else {}
        classes = dict(beside.classes) if beside is not None else {}
    for column in ("image_id", "category_id"):
        bad = [row for row, item in enumerate(records) if item.get(column) is None]
        if bad:
            raise InputError(f"{name}: expected {column!r} in every record, found none in record {listed(bad)}; add it")
    image_ids = [int(item["image_id"]) for item in records]
    codes = [int(item["category_id"]) for item in records]
    keys = sorted({key for item in records for key in item} - {"bbox", "segmentation", "image_id", "category_id"})
    plain = {key: [item.get(key) for item in records] for key in keys}
    frame = pd.DataFrame({key: values for key, values in plain.items() if all(isinstance(v, _PLAIN) for v in values)})
    if frame.empty:
        frame = pd.DataFrame(index=range(len(records)))
    frame["label"] = pd.Series([classes.get(code, str(code)) for code in codes], dtype=object)
    frame["image"] = pd.Series([images.get(image, str(image)) for image in image_ids], dtype=object)
    geometry, findings = _geometry(records, name, masks)
    notes = {} if classes or not records else {"categories": "no list of categories; their numbers are the labels"}
    return Raw(
        frame=frame,
        geometry=geometry,
        crs=PIXEL,
        kind="coco",
        unit_column="image",
        units=tuple(images.values()),
        classes=classes,
        images=images,
        notes=notes,
        findings=tuple(findings),
    )


def _geometry(records: Sequence[Mapping[str, Any]], name: str, masks: bool) -> tuple[ObjectArray, list[Finding]]:
    out = np.full(len(records), None, dtype=object)
    boxed = []
    runs = []
    for row, item in enumerate(records):
        outline = item.get("segmentation") if masks or "bbox" not in item else None
        if isinstance(outline, list) and outline:
            out[row] = _polygon(outline, f"{name}, record {row}")
        elif item.get("bbox") is not None:
            boxed.append(row)
            if isinstance(outline, dict):
                runs.append(row)
    if boxed:
        sides = np.array([records[row]["bbox"] for row in boxed], dtype=object)
        if sides.ndim != 2 or sides.shape[1] != 4:
            raise InputError(f"{name}: expected bbox = [x, y, width, height] in every record; mend the others")
        x, y, width, height = sides.astype(np.float64).T
        bad = [boxed[i] for i in np.flatnonzero((width < 0) | (height < 0))]
        if bad:
            raise InputError(
                f"{name}: expected bbox = [x, y, width, height] with width and height of at least 0, found "
                f"a negative one in record {listed(bad)}; are they corners?"
            )
        out[boxed] = shapely.box(x, y, x + width, y + height)
    findings = []
    if runs:
        findings.append(
            Finding(
                "mask-run-length",
                "major",
                (name, *(f"record {row}" for row in runs[:10])),
                f"{len(runs)} run-length masks were replaced by their boxes",
                "give polygons instead of run lengths",
            )
        )
    return out, findings


def _polygon(rings: list[Any], where: str) -> shapely.Geometry:
    """COCO outlines are parts, never holes: several become a multipolygon, merged where they overlap."""
    try:
        parts = [shapely.Polygon(np.asarray(ring, dtype=np.float64).reshape(-1, 2)) for ring in rings]
    except (ValueError, TypeError) as error:
        raise InputError(
            f"{where}: expected segmentation = [[x, y, x, y, x, y, ...], ...], found {str(error)[:80]}; mend it"
        ) from error
    return parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts)
