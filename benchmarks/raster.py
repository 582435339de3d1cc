"""How near to pure decoding the categorical path is: time as a ratio, and peak resident memory.

A pair of 10,000 x 10,000 maps is written to a temporary folder; decoding both files window by window and evaluating
them are timed in the same run, each in a process of its own.

Run ``python benchmarks/raster.py [side]``.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIDE = 10_000
MOST_RATIO = 2.0
MOST_MB = 400


def write_pair(folder: Path, side: int) -> tuple[Path, Path]:
    """Two maps of ten classes in ragged patches that differ along borders and in speckle; tiled and compressed."""
    import numpy as np
    import rasterio
    from rasterio.transform import Affine
    from rasterio.windows import Window

    generator = np.random.default_rng(1)
    coarse = generator.integers(1, 11, (side // 20 + 2, side // 20 + 2), dtype=np.uint8)
    options = {"driver": "GTiff", "height": side, "width": side, "count": 1, "dtype": "uint8", "crs": "EPSG:32633"}
    options |= {"transform": Affine(10, 0, 5e5, 0, -10, 5e6), "nodata": 0, "tiled": True, "compress": "deflate"}
    paths = folder / "reference.tif", folder / "prediction.tif"
    for shift, path in zip((0, 3), paths, strict=True):
        with rasterio.open(path, "w", blockxsize=512, blockysize=512, **options) as dataset:
            for row in range(0, side, 512):
                rows = min(512, side - row)
                ragged = generator.integers(0, 4, (rows, side), dtype=np.int32)
                r = (np.arange(row, row + rows)[:, None] + ragged + shift) // 20
                c = (np.arange(side) + ragged[:, ::-1] + shift) // 20
                values = coarse[r, c]
                speckle = generator.random(values.shape) < 0.02
                values[speckle] = generator.integers(0, 11, int(speckle.sum()), dtype=np.uint8)
                dataset.write(values, 1, window=Window(0, row, side, rows))
    return paths


def decode(paths: list[str]) -> dict[str, float]:
    """Read every window of both files, one after the other, and do nothing with them."""
    import rasterio
    from rasterio.windows import Window

    start = time.perf_counter()
    with rasterio.Env(GDAL_CACHEMAX=64 * 2**20), rasterio.open(paths[0]) as a, rasterio.open(paths[1]) as b:
        for row in range(0, a.height, 1024):
            for column in range(0, a.width, 1024):
                window = Window(column, row, min(1024, a.width - column), min(1024, a.height - row))
                a.read(1, window=window)
                b.read(1, window=window)
    return {"seconds": time.perf_counter() - start}


def score(paths: list[str]) -> dict[str, float]:
    """Evaluate the pair; imports are not timed, but their memory counts."""
    import rasterio  # noqa: F401

    import geoeval.geometry.crs  # noqa: F401
    from geoeval.evaluators.raster import Raster
    from geoeval.ledger import Ledger, tally_unit
    from geoeval.options import Pairing, Source
    from geoeval.readers.raster import raster_units

    start = time.perf_counter()
    units = raster_units(Source(paths[0]), Source(paths[1]), Pairing(), categorical=True)
    ledger = Ledger.of(row for unit in units.units for row in tally_unit(Raster(), unit)[0])
    accuracy = Raster().quantities(ledger.by_cluster().whole())["accuracy"]
    return {
        "seconds": time.perf_counter() - start,
        "accuracy": float(accuracy.value[0]),
        "clusters": len(ledger.by_cluster().clusters),
        "foreign": len({"geopandas", "matplotlib"} & set(sys.modules)),
    }


def main() -> int:
    """Write, decode, score, and hold the figures to their limits."""
    if len(sys.argv) > 2:
        found = {"decode": decode, "score": score}[sys.argv[1]](sys.argv[2:])
        found["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(found))
        return 0
    side = int(sys.argv[1]) if len(sys.argv) > 1 else SIDE
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(path) for path in write_pair(Path(folder), side)]
        runs: dict[str, list[dict[str, float]]] = {"decode": [], "score": []}
        for _ in range(3):
            for what, results in runs.items():
                command = [sys.executable, __file__, what, *paths]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                results.append(json.loads(done.stdout))
    best = {what: min(results, key=lambda one: one["seconds"]) for what, results in runs.items()}
    ratio = best["score"]["seconds"] / best["decode"]["seconds"]
    peak = max(one["peak_mb"] for one in runs["score"])
    print(f"{side} x {side}: decoding {best['decode']['seconds']:.2f} s, evaluation {best['score']['seconds']:.2f} s")
    print(f"ratio {ratio:.2f} (at most {MOST_RATIO}), peak {peak:.0f} MB (at most {MOST_MB})")
    print(f"accuracy {best['score']['accuracy']:.6f} over {best['score']['clusters']} clusters")
    return int(ratio > MOST_RATIO or peak > MOST_MB or best["score"]["foreign"] > 0)


if __name__ == "__main__":
    raise SystemExit(main())
