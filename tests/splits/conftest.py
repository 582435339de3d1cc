"""Small worlds for the tests of splits: files of samples, and records about them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest


class World:
    """A folder with images and labels, and the records that name them."""

    def __init__(self, root: Path):
        self.root = root
        root.mkdir(parents=True, exist_ok=True)

    def surface(self, seed, side=64):
        """A textured surface of a few waves, between 0 and 1."""
        rng = np.random.default_rng(int.from_bytes(hashlib.sha256(str(seed).encode()).digest()[:8], "big"))
        rows, columns = np.mgrid[0:side, 0:side] / side
        out = np.zeros((side, side))
        for _ in range(12):
            a, b = rng.integers(-5, 6, size=2)
            out += rng.uniform(0.3, 1.0) * np.cos(2 * np.pi * (a * rows + b * columns) + rng.uniform(0, 6))
        return (out - out.min()) / np.ptp(out)

    def image(self, path, seed, *, dtype="uint16", corner=(500_000.0, 5_600_000.0), cell=5.0, driver="GTiff", **tags):
        import rasterio
        from affine import Affine

        data = self.surface(seed)
        data = (300 + 5000 * data).astype(np.uint16) if dtype == "uint16" else (255 * data).astype(np.uint8)
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with rasterio.open(
            target,
            "w",
            driver=driver,
            height=data.shape[0],
            width=data.shape[1],
            count=1,
            dtype=data.dtype.name,
            crs="EPSG:32631",
            transform=Affine(cell, 0, corner[0], 0, -cell, corner[1] + cell * data.shape[0]),
        ) as file:
            file.write(data, 1)
            if tags:
                file.update_tags(**tags)
        return path

    def label(self, path, seed, *, corner=(500_000.0, 5_600_000.0), shift=0.0, features=5):
        rng = np.random.default_rng(int.from_bytes(hashlib.sha256(f"label{seed}".encode()).digest()[:8], "big"))
        out = []
        for _ in range(features):
            x, y = corner[0] + rng.uniform(0, 270) + shift, corner[1] + rng.uniform(0, 270)
            w, h = rng.uniform(15, 40, size=2)
            ring = [[x, y], [x + w, y], [x + w, y + h], [x, y + h], [x, y]]
            ring = [[round(a, 2), round(b, 2)] for a, b in ring]
            out.append({"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [ring]}})
        crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32631"}}
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps({"type": "FeatureCollection", "crs": crs, "features": out}))
        return path

    def record(self, name, place, *, files=True, **fields):
        """A record on its own place: every identity differs from every other place's."""
        x, y = 500_000.0 + 10_000.0 * place, 5_600_000.0
        out = {
            "sample_id": name,
            "task": "detection",
            "group_id": f"group-{place}",
            "source_family": f"source-{place}",
            "temporal_family": f"period-{place}",
            "acquisition_id": f"flight-{place}",
            "parent_raster_id": f"raster-{place}",
            "native_feature_ids": [f"native-{name}"],
            "object_ids": [f"object-{name}"],
            "bbox": [x, y, x + 320.0, y + 320.0],
            "crs": "EPSG:32631",
        }
        if files:
            out["raw_image"] = self.image(f"raw/{name}.tif", name, corner=(x, y))
            out["processed_image"] = self.image(f"processed/{name}.tif", name, dtype="uint8", corner=(x, y))
            out["label"] = self.label(f"labels/{name}.geojson", name, corner=(x, y))
        return {**out, **fields}

    def write(self, records, name="source.jsonl"):
        path = self.root / name
        path.write_text("".join(json.dumps(one) + "\n" for one in records))
        return path


@pytest.fixture
def world(tmp_path):
    return World(tmp_path / "world")
