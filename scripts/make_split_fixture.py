"""Write the synthetic split fixture again: 21 samples over all six roles, their tiny files, and both manifests.

The bytes do not change while the versions of the image libraries do not; the manifests name these versions, because the
bits of a perceptual hash depend on them. Nothing here measures a product.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from geoeval.evidence.canonical import file_digest
from geoeval.splits import SplitSettings, build, write_manifests

ROOT = Path(__file__).resolve().parents[1] / "fixtures" / "splits"
EPSG = 32631
ORIGIN = (500_000.0, 5_600_000.0)
PIXELS, CELL = 32, 5.0
SIDE = PIXELS * CELL
TASKS = ("detection", "footprint", "raster")

#: 9, 3, 3, 3, 1 and 2 of 21 samples.
SETTINGS = SplitSettings(
    shares={
        "train": 0.43,
        "val": 0.14,
        "calibration": 0.14,
        "test": 0.14,
        "background-test": 0.05,
        "challenge": 0.10,
    },
    strata=("content",),
    background=("content", "background"),
    buffer_m=2000.0,
)


def groups() -> list[tuple[str, bool, int]]:
    """Group id, whether it is background, and how many samples it has: nine pairs and three lone backgrounds."""
    return [(f"g{i:02d}", False, 2) for i in range(9)] + [(f"g{i:02d}", True, 1) for i in range(9, 12)]


def generator(name: str) -> np.random.Generator:
    """One generator a sample, so that a change in one leaves the others as they are."""
    return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")))


def corner(group: int, member: int) -> tuple[float, float]:
    """Lower left corner of a sample: groups lie 5 km apart, samples of a group 200 m."""
    return ORIGIN[0] + 5000.0 * (group % 4) + 200.0 * member, ORIGIN[1] + 5000.0 * (group // 4)


def surface(rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """A textured surface between 0 and 1, rounded so that every machine agrees on it."""
    rows, columns = np.mgrid[0:PIXELS, 0:PIXELS] / PIXELS
    out = np.zeros((PIXELS, PIXELS))
    for _ in range(12):
        a, b = rng.integers(-5, 6, size=2)
        out += float(rng.uniform(0.3, 1.0)) * np.cos(2 * np.pi * (a * rows + b * columns) + float(rng.uniform(0, 6)))
    low, high = out.min(), out.max()
    return np.round((out - low) / (high - low), 3)


def write_image(path: Path, data: np.ndarray[Any, Any], x0: float, y0: float) -> None:
    """One band as a GeoTIFF."""
    import rasterio
    from affine import Affine

    path.parent.mkdir(parents=True, exist_ok=True)
    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        height=PIXELS,
        width=PIXELS,
        count=1,
        dtype=data.dtype.name,
        crs=f"EPSG:{EPSG}",
        transform=Affine(CELL, 0, x0, 0, -CELL, y0 + SIDE),
        compress="deflate",
    ) as file:
        file.write(data, 1)


def write_label(path: Path, name: str, x0: float, y0: float, background: bool) -> list[str]:
    """Four squares, or none for a background sample; returns the ids of the objects."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rng, features, ids = generator(f"label/{name}"), [], []
    for number in range(0 if background else 4):
        left = round(x0 + 10 + 75 * (number % 2) + float(rng.uniform(0, 30)), 2)
        low = round(y0 + 10 + 75 * (number // 2) + float(rng.uniform(0, 30)), 2)
        width, height = (round(float(one), 2) for one in rng.uniform(10, 40, size=2))
        ring = [[left, low], [left + width, low], [left + width, low + height], [left, low + height], [left, low]]
        ring = [[round(x, 2), round(y, 2)] for x, y in ring]
        ids.append(f"{name}-o{number}")
        features.append(
            {
                "type": "Feature",
                "properties": {"id": ids[-1]},
                "geometry": {"type": "Polygon", "coordinates": [ring]},
            }
        )
    crs = {"type": "name", "properties": {"name": f"urn:ogc:def:crs:EPSG::{EPSG}"}}
    text = json.dumps({"type": "FeatureCollection", "crs": crs, "features": features}, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")
    return ids


def record(group: int, name: str, member: int, background: bool) -> dict[str, Any]:
    """The files of one sample, and what the source says about it."""
    sample = f"{name}-s{member}"
    x0, y0 = corner(group, member)
    data = surface(generator(f"image/{sample}"))
    raw, processed, label = (
        f"raw/{sample}.tif",
        f"processed/{sample}.tif",
        f"labels/{sample}.geojson",
    )
    write_image(ROOT / raw, (300 + 5000 * data).astype(np.uint16), x0, y0)
    write_image(ROOT / processed, (255 * data).astype(np.uint8), x0, y0)
    ids = write_label(ROOT / label, sample, x0, y0, background)
    return {
        "sample_id": sample,
        "task": TASKS[group % len(TASKS)],
        "group_id": name,
        "source_family": f"survey-{name}",
        "temporal_family": f"season-{name}",
        "acquisition_id": f"flight-{name}",
        "parent_raster_id": f"mosaic-{name}",
        "native_feature_ids": [f"synthetic/{one}" for one in ids],
        "object_ids": ids,
        "bbox": [x0, y0, x0 + SIDE, y0 + SIDE],
        "crs": f"EPSG:{EPSG}",
        "raw_image": raw,
        "raw_image_sha256": file_digest(ROOT / raw),
        "processed_image": processed,
        "processed_image_sha256": file_digest(ROOT / processed),
        "label": label,
        "label_sha256": file_digest(ROOT / label),
        "strata": {"content": "background" if background else "objects"},
    }


def main() -> None:
    """Write everything."""
    shutil.rmtree(ROOT, ignore_errors=True)
    records = [
        record(at, name, member, background)
        for at, (name, background, members) in enumerate(groups())
        for member in range(members)
    ]
    lines = "".join(json.dumps(one, sort_keys=True) + "\n" for one in records)
    (ROOT / "source.jsonl").write_text(lines, encoding="utf-8", newline="\n")
    result = build(ROOT / "source.jsonl", SETTINGS, open_fixture=True)
    write_manifests(result, ROOT / "manifests")
    print(f"{len(records)} samples: {dict(result.report['manifests'])}")


if __name__ == "__main__":
    main()
