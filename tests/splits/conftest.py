"""Small worlds for the tests of splits: files of samples, and records about them."""

from __future__ import annotations

import copy
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from geoeval.errors import InputError, LeakageError


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


class Guarded:
    """Four samples on four places: p0 is test, p1 background-test, p2 challenge, p3 train."""

    KEY = b"a key of the tests only"

    def __init__(self, world):
        from geoeval.splits import SplitSettings, build

        self.world, self.root = world, world.root
        roles = ("test", "background-test", "challenge", "train")
        self.records = [world.record(f"p{i}", i, split=role) for i, role in enumerate(roles)]
        result = build(world.write(self.records), SplitSettings(shares=dict.fromkeys(roles, 0.25)), key=self.KEY)
        self.manifest = result.manifests["protected"]
        self.development = result.manifests["development"]

    def stranger(self, **fields):
        """A clean development input, far from everything, and what a test changes about it."""
        return {**self.world.record("new", 20, split="train"), **fields}

    def placeless(self, **fields):
        """The same with an image that says nothing about its place, and no box."""
        from PIL import Image

        path = self.root / "processed/placeless.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray((255 * self.world.surface("placeless")).astype(np.uint8)).save(path)
        blank = {"raw_image": None, "processed_image": "processed/placeless.png", "bbox": None, "crs": None}
        return self.stranger(**{**blank, **fields})

    def check(self, *records, **more):
        from geoeval.splits import assert_training_inputs_safe

        manifest = more.pop("manifest", self.manifest)
        opened = {"sha256": manifest.sha256, "root": self.root, "key": self.KEY}
        return assert_training_inputs_safe(records, manifest, **{**opened, **more})

    def rehashed(self, edit):
        """The protected manifest after an edit, with the hash that fits it."""
        from geoeval.evidence.canonical import canonical_bytes, digest
        from geoeval.splits.manifest import Manifest

        content = copy.deepcopy(dict(self.manifest.content))
        edit(content)
        return Manifest(content, digest(canonical_bytes(content)))

    def without(self, *fields, only=None):
        """The protected manifest without what it says in some fields, of all samples or of one."""

        def edit(content):
            for entry in content["samples"]:
                if only in (None, entry["sample_id"]):
                    for name in fields:
                        entry.pop(name, None)

        return self.rehashed(edit)

    def undecided(self, says, *records, **more):
        with pytest.raises(InputError, match="training inputs cannot be proven safe") as caught:
            self.check(*records, **more)
        assert says in str(caught.value), str(caught.value)
        return str(caught.value)

    def refused(self, record, says, **more):
        with pytest.raises(LeakageError) as caught:
            self.check(record, **more)
        lines = str(caught.value).splitlines()
        assert any(says in line for line in lines), lines
        return caught.value


@pytest.fixture
def guarded(world):
    return Guarded(world)
