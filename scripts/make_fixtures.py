"""Write the synthetic fixtures again. The bytes do not change: no clock, no host, one seed, numbers rounded.

Twenty-four areas of interest, half of them urban and half rural, half in the north and half in the south, so that every
critical subgroup holds twelve. Each family gets one small folder in which predictions differ from references by planted
errors: misses, inventions, shifted shapes, wrong classes. Split manifests say that these areas are protected test
samples, and that six others, 2.5 km away, are for development; their hashes go into ``configs/benchmark.toml``. Nothing
here measures a product.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1] / "fixtures"
AOIS = [f"aoi-{i:02d}" for i in range(1, 25)]
EPSG = 32631
ORIGIN = (500_000.0, 5_600_000.0)
SIDE = 400.0
SEASONS = ("spring", "summer", "autumn")
BUFFER_M = 2000.0

#: Samples of the development side: one row of areas below those that are evaluated.
DEVELOPMENT = {f"dev-{i:02d}": role for i, role in enumerate(("train",) * 4 + ("val", "calibration"), start=1)}


def strata(index: int) -> dict[str, str]:
    """Region, context and season of one AOI: every pair of region and context occurs six times."""
    return {
        "region": "north" if index < 12 else "south",
        "context": "urban" if index % 2 == 0 else "rural",
        "season": SEASONS[index % 3],
    }


def corner(index: int) -> tuple[float, float]:
    """Lower left corner of an AOI; AOIs lie 3 km apart."""
    return ORIGIN[0] + 3000.0 * (index % 6), ORIGIN[1] + 3000.0 * (index // 6)


def generator(family: str, index: int) -> np.random.Generator:
    """One generator a family and AOI, so that a change in one leaves the others as they are."""
    seed = int.from_bytes(hashlib.sha256(f"{family}/{index}".encode()).digest()[:8], "big")
    return np.random.Generator(np.random.PCG64(seed))


def rectangle(x: float, y: float, width: float, height: float) -> list[list[list[float]]]:
    """A closed ring, rounded to centimetres."""
    left, low, right, top = (round(v, 2) for v in (x, y, x + width, y + height))
    return [[[left, low], [right, low], [right, top], [left, top], [left, low]]]


def write_json(path: Path, value: Any) -> None:
    """Text with sorted keys, one feature a line, and a newline at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(value, dict) and "features" in value:
        head = {key: item for key, item in value.items() if key != "features"}
        lines = ",\n".join(json.dumps(one, sort_keys=True) for one in value["features"])
        body = json.dumps(head, sort_keys=True)[:-1] + ', "features": [\n' + lines + "\n]}\n"
    else:
        body = json.dumps(value, indent=1, sort_keys=True) + "\n"
    path.write_bytes(body.encode())


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Comma-separated text with Unix line ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def write_layer(path: Path, features: list[dict[str, Any]]) -> None:
    """A GeoJSON layer in the projected system of the fixtures."""
    write_json(
        path,
        {
            "type": "FeatureCollection",
            "crs": {"type": "name", "properties": {"name": f"urn:ogc:def:crs:EPSG::{EPSG}"}},
            "features": features,
        },
    )


def feature(shape: str, coordinates: Any, /, **properties: Any) -> dict[str, Any]:
    """One GeoJSON feature."""
    return {"type": "Feature", "properties": properties, "geometry": {"type": shape, "coordinates": coordinates}}


def lots(rng: np.random.Generator, index: int, count: int) -> list[tuple[float, float, float, float]]:
    """Rectangles that do not touch: one a cell of a 6 × 6 grid."""
    x0, y0 = corner(index)
    cells = rng.permutation(36)[:count]
    out = []
    for cell in sorted(int(c) for c in cells):
        width, height = rng.uniform(14, 34, size=2)
        out.append(
            (x0 + 60 * (cell % 6) + rng.uniform(4, 18), y0 + 60 * (cell // 6) + rng.uniform(4, 18), width, height)
        )
    return out


def objects(family: str, labels: Sequence[str], *, scored: bool) -> None:
    """Detection and footprints: shifted hits, misses and inventions."""
    reference, prediction = [], []
    for index, aoi in enumerate(AOIS):
        rng = generator(family, index)
        where = {"aoi": aoi, **strata(index)}
        miss_rate = 0.10 if where["context"] == "urban" else 0.06
        for number, (x, y, width, height) in enumerate(lots(rng, index, 18)):
            label = labels[int(rng.integers(len(labels)))]
            size = "large" if width * height >= 500 else "small"
            reference.append(
                feature(
                    "Polygon",
                    rectangle(x, y, width, height),
                    id=f"{aoi}-r{number:02d}",
                    label=label,
                    size=size,
                    **where,
                )
            )
            if rng.random() < miss_rate:
                continue
            dx, dy = rng.normal(0, 0.7, size=2)
            grow = rng.normal(1.0, 0.02)
            given = label if rng.random() > 0.04 else labels[int(rng.integers(len(labels)))]
            known = {"score": round(float(rng.beta(8, 2)), 3)} if scored else {}
            prediction.append(
                feature(
                    "Polygon",
                    rectangle(x + dx, y + dy, width * grow, height * grow),
                    id=f"{aoi}-p{number:02d}",
                    label=given,
                    size=size,
                    **known,
                    **where,
                )
            )
        x0, y0 = corner(index)
        for number in range(int(rng.integers(0, 3))):
            known = {"score": round(float(rng.beta(3, 5)), 3)} if scored else {}
            prediction.append(
                feature(
                    "Polygon",
                    rectangle(x0 + 372 + 2 * number, y0 + 40 * number, 12, 9),
                    id=f"{aoi}-x{number:02d}",
                    label=labels[0],
                    size="small",
                    **known,
                    **where,
                )
            )
    write_layer(ROOT / family / "reference.geojson", reference)
    write_layer(ROOT / family / "prediction.geojson", prediction)


def points() -> None:
    """Vector comparison: survey points found again, with one attribute to compare."""
    reference, prediction = [], []
    for index, aoi in enumerate(AOIS):
        rng = generator("vector", index)
        where = {"aoi": aoi, **strata(index)}
        x0, y0 = corner(index)
        for number in range(20):
            x, y = x0 + 80 * (number % 5) + rng.uniform(0, 40), y0 + 80 * (number // 5) + rng.uniform(0, 40)
            surface = ("paved", "gravel", "soil")[int(rng.integers(3))]
            place = [round(float(x), 2), round(float(y), 2)]
            reference.append(feature("Point", place, id=f"{aoi}-r{number:02d}", surface=surface, **where))
            if rng.random() < 0.07:
                continue
            shift = rng.normal(0, 0.8, size=2)
            seen = surface if rng.random() > 0.08 else "soil"
            place = [round(float(x + shift[0] + 0.2), 2), round(float(y + shift[1]), 2)]
            prediction.append(feature("Point", place, id=f"{aoi}-p{number:02d}", surface=seen, **where))
        if rng.random() < 0.6:
            prediction.append(feature("Point", [x0 + 390.0, y0 + 390.0], id=f"{aoi}-x00", surface="paved", **where))
    write_layer(ROOT / "vector" / "reference.geojson", reference)
    write_layer(ROOT / "vector" / "prediction.geojson", prediction)


def changes() -> None:
    """Change events: buildings added and removed, dated by year."""
    reference, prediction = [], []
    for index, aoi in enumerate(AOIS):
        rng = generator("change", index)
        where = {"aoi": aoi, **strata(index)}
        for number, (x, y, width, height) in enumerate(lots(rng, index, 14)):
            kind = "added" if number % 2 == 0 else "removed"
            year = 2015 + int(rng.integers(8))
            shape = rectangle(x, y, width, height)
            reference.append(feature("Polygon", shape, id=f"{aoi}-r{number:02d}", kind=kind, year=year, **where))
            if rng.random() < (0.08 if kind == "added" else 0.12):
                continue
            late = year + (1 if rng.random() < 0.1 else 0)
            moved = rectangle(x + rng.normal(0, 0.5), y + rng.normal(0, 0.5), width, height)
            prediction.append(feature("Polygon", moved, id=f"{aoi}-p{number:02d}", kind=kind, year=late, **where))
        x0, y0 = corner(index)
        if rng.random() < 0.7:
            prediction.append(
                feature(
                    "Polygon", rectangle(x0 + 380, y0 + 380, 10, 10), id=f"{aoi}-x00", kind="added", year=2020, **where
                )
            )
    write_layer(ROOT / "change" / "reference.geojson", reference)
    write_layer(ROOT / "change" / "prediction.geojson", prediction)


def write_raster(path: Path, data: np.ndarray[Any, Any], index: int, cell: float, **more: Any) -> None:
    """One GeoTIFF, compressed, on the lower left corner of its AOI."""
    import rasterio
    from rasterio.transform import from_origin

    path.parent.mkdir(parents=True, exist_ok=True)
    x0, y0 = corner(index)
    profile = {
        "driver": "GTiff",
        "height": data.shape[0],
        "width": data.shape[1],
        "count": 1,
        "dtype": data.dtype.name,
        "crs": f"EPSG:{EPSG}",
        "transform": from_origin(x0, y0 + cell * data.shape[0], cell, cell),
        "compress": "deflate",
        **more,
    }
    with rasterio.open(path, "w", **profile) as file:
        file.write(data, 1)
        if more.get("dtype", data.dtype.name) == "float32":
            file.units = ("metre",)


def smooth(rng: np.random.Generator, side: int, scale: float) -> np.ndarray[Any, Any]:
    """A gentle surface: a few waves, exactly reproducible to the millimetre."""
    rows, columns = np.mgrid[0:side, 0:side] / side
    out = np.zeros((side, side))
    for _ in range(4):
        a, b, phase = rng.uniform(-6, 6), rng.uniform(-6, 6), rng.uniform(0, 6)
        out += scale * np.sin(a * rows + b * columns + phase)
    return np.round(out, 3)


def rasters() -> None:
    """Land cover of three classes, a pair a AOI, with wrong classes at borders and some nodata."""
    side = 48
    for index, aoi in enumerate(AOIS):
        rng = generator("raster", index)
        surface = smooth(rng, side, 1.0)
        reference = (1 + np.digitize(surface, [-0.6, 0.8])).astype(np.uint8)
        noisy = np.round(surface + np.round(rng.normal(0, 0.12, size=surface.shape), 3), 3)
        prediction = (1 + np.digitize(noisy, [-0.6, 0.8])).astype(np.uint8)
        prediction[: int(rng.integers(0, 3)), :] = 0
        write_raster(ROOT / "raster" / "reference" / f"{aoi}.tif", reference, index, 10.0, nodata=0)
        write_raster(ROOT / "raster" / "prediction" / f"{aoi}.tif", prediction, index, 10.0, nodata=0)


def heights() -> None:
    """Terrain heights in metres, a pair a AOI, with noise, a small bias and voids."""
    side = 40
    for index, aoi in enumerate(AOIS):
        rng = generator("elevation", index)
        reference = np.round(60 + smooth(rng, side, 3.0), 3).astype(np.float32)
        error = np.round(rng.normal(0.03, 0.15, size=reference.shape), 3)
        prediction = (reference + error.astype(np.float32)).astype(np.float32)
        prediction[0, : int(rng.integers(0, 6))] = -9999
        write_raster(ROOT / "elevation" / "reference" / f"{aoi}.tif", reference, index, 5.0, nodata=-9999)
        write_raster(ROOT / "elevation" / "prediction" / f"{aoi}.tif", prediction, index, 5.0, nodata=-9999)


def anomalies() -> None:
    """Planted anomalies and the findings of a validator that misses two minor ones and repeats itself once."""
    kinds = (("V05", "critical"), ("V03", "critical"), ("V01", "blocker"), ("V15", "minor"), ("V14", "major"))
    planted, found = [], []
    for index, aoi in enumerate(AOIS):
        rng = generator("validation", index)
        where = list(strata(index).values())
        for number, (code, severity) in enumerate(kinds):
            row = (f"{aoi}-a{number}", aoi, f"f{10 * number + int(rng.integers(10)):02d}", code, severity, aoi, *where)
            planted.append(row)
            if severity == "minor" and index in (3, 16):
                continue
            found.append((f"{aoi}-f{number}", *row[1:]))
        if index == 7:
            found.append((f"{aoi}-f9", *planted[-1][1:]))
        if index % 8 == 5:
            found.append((f"{aoi}-f8", aoi, "f99", "V15", "minor", aoi, *where))
    header = ("id", "dataset", "feature", "code", "severity", "aoi", "region", "context", "season")
    write_csv(ROOT / "validation" / "reference.csv", header, planted)
    write_csv(ROOT / "validation" / "prediction.csv", header, found)


def units() -> None:
    """The table that gives raster units their cluster and strata."""
    rows = [(aoi, aoi, *strata(index).values()) for index, aoi in enumerate(AOIS)]
    write_csv(ROOT / "units.csv", ("unit", "aoi", "region", "context", "season"), rows)


def split_records() -> list[dict[str, Any]]:
    """What the split says about each area: no two share anything."""
    side = 480.0
    areas = [(aoi, "test", index, f"raster/reference/{aoi}.tif") for index, aoi in enumerate(AOIS)]
    for index, (name, role) in enumerate(DEVELOPMENT.items(), start=-len(DEVELOPMENT)):
        label = 1 + np.digitize(smooth(generator("development", index), 48, 1.0), [-0.6, 0.8])
        path = f"protected/labels/{name}.tif"
        write_raster(ROOT / path, label.astype(np.uint8), index, 10.0, nodata=0)
        areas.append((name, role, index, path))
    records = []
    for name, role, index, label in areas:
        x0, y0 = corner(index)
        records.append(
            {
                "sample_id": name,
                "task": "benchmark",
                "split": role,
                "group_id": name,
                "source_family": f"survey-{name}",
                "temporal_family": f"period-{name}",
                "acquisition_id": f"flight-{name}",
                "parent_raster_id": f"mosaic-{name}",
                "native_feature_ids": [f"land-cover/{name}"],
                "object_ids": [f"ground-{name}"],
                "bbox": [x0, y0, x0 + side, y0 + side],
                "crs": f"EPSG:{EPSG}",
                "label": label,
            }
        )
    return records


def splits() -> None:
    """Source and manifests of the split that the benchmark is bound to."""
    from geoeval.evidence.canonical import canonical_bytes, digest
    from geoeval.splits import Manifest, SplitSettings, build, read_source
    from geoeval.splits.record import IDENTITIES, MEMBERS

    folder = ROOT / "protected"
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(one, sort_keys=True) + "\n" for one in split_records())
    (folder / "source.jsonl").write_bytes(lines.encode())
    settings = SplitSettings(
        shares={"train": 0.14, "val": 0.03, "calibration": 0.03, "test": 0.8},
        buffer_m=BUFFER_M,
        required=("task", *IDENTITIES, *MEMBERS, "bbox", "label_sha256"),
    )
    result = build(read_source(folder / "source.jsonl", root=ROOT), settings, open_fixture=True)
    for name in ("development", "protected"):
        # No sample has an image, so that the versions of image libraries bind nothing and would only move the bytes.
        content = dict(result.manifests[name].content)
        content["perceptual"] = {**content["perceptual"], "recipe": {}, "recipe_id": "none"}
        manifest = Manifest(content, digest(canonical_bytes(content)))
        (folder / f"{name}.json").write_bytes(manifest.data())
        bind({"development": "development_sha256", "protected": "sha256"}[name], manifest.sha256)


def bind(key: str, sha256: str) -> None:
    """Write the hash of a manifest into the configuration of the benchmark, where that lies beside the fixtures."""
    path = ROOT.parent / "configs" / "benchmark.toml"
    if path.is_file():
        text = path.read_text(encoding="utf-8")
        path.write_bytes(re.sub(rf'(?m)^{key} = "[0-9a-f]*"', f'{key} = "{sha256}"', text, count=1).encode())


def readme() -> None:
    """List every file with its sha256, but those of the split fixture, which is another script's."""
    files = sorted(
        path
        for path in ROOT.rglob("*")
        if path.is_file()
        and path.name not in ("README.md", "expected.json")
        and path.relative_to(ROOT).parts[0] != "splits"
    )
    lines = [
        "# Fixtures",
        "",
        "Synthetic, written by `scripts/make_fixtures.py`; nothing here is, or is derived from, real data.",
        "",
        "| file | sha256 |",
        "| --- | --- |",
    ]
    for path in files:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        lines.append(f"| {path.relative_to(ROOT).as_posix()} | `{digest}` |")
    (ROOT / "README.md").write_bytes(("\n".join(lines) + "\n").encode())


def main() -> None:
    """Write all families."""
    os.environ["GDAL_PAM_ENABLED"] = "NO"
    objects("detection", ("house", "shed"), scored=True)
    objects("footprint", ("building",), scored=False)
    points()
    changes()
    rasters()
    heights()
    anomalies()
    units()
    splits()
    readme()


if __name__ == "__main__":
    main()
