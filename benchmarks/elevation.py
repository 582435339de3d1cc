"""Elevation with its full distribution against pure windowed decoding of the same two rasters.

    python benchmarks/elevation.py [SIDE]

Writes two tiled, deflated float32 rasters of SIDE x SIDE cells (default 8000) to a temporary folder, then measures,
each in a process of its own, decoding both files window by window and the family from files to figures. Imports and the
loading of the compiled pass are printed apart as start-up. Targets: ratio at most 1.3, peak memory below 400 MB. The
reader decodes in two threads, so the ratio means something on two idle cores only.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

TARGET_RATIO = 1.3
TARGET_MB = 400


def write(path: Path, side: int, seed: int) -> None:
    """A smooth surface with noise, in tiles of 512, strip by strip."""
    import rasterio

    profile = {
        "driver": "GTiff",
        "width": side,
        "height": side,
        "count": 1,
        "dtype": "float32",
        "crs": "EPSG:32633",
        "transform": rasterio.transform.from_origin(500_000, 5_000_000, 1, 1),
        "nodata": -9999.0,
        "tiled": True,
        "blockxsize": 512,
        "blockysize": 512,
        "compress": "deflate",
        "predictor": 3,
    }
    generator = np.random.Generator(np.random.PCG64(seed))
    column = np.arange(side)
    with rasterio.open(path, "w", **profile) as out:
        for row in range(0, side, 512):
            rows = np.arange(row, min(row + 512, side))
            surface = 200 + 50 * np.sin(rows[:, None] / 700) * np.cos(column[None] / 900)
            heights = (surface + generator.normal(0, 0.2, surface.shape)).astype(np.float32)
            heights[:, :7] = -9999
            out.write(heights, 1, window=rasterio.windows.Window(0, row, side, len(rows)))


def decode(reference: str, prediction: str) -> float:
    """Seconds to read every window of both files, one after the other, and do nothing with it."""
    import rasterio
    from rasterio.windows import Window

    start = time.perf_counter()
    with rasterio.Env(GDAL_CACHEMAX=64 * 2**20), rasterio.open(reference) as a, rasterio.open(prediction) as b:
        for row in range(0, a.height, 1024):
            for column in range(0, a.width, 1024):
                window = Window(column, row, min(1024, a.width - column), min(1024, a.height - row))
                a.read(1, window=window)
                b.read(1, window=window)
    return time.perf_counter() - start


def evaluate(reference: str, prediction: str) -> float:
    """Seconds from files to figures, without start-up."""
    from geoeval.evaluators.elevation import Elevation
    from geoeval.ledger import Ledger, tally_unit
    from geoeval.model import Cell
    from geoeval.options import Pairing, Source
    from geoeval.readers.heights import elevation_units
    from geoeval.stats.error_cells import ErrorCells

    small, valid = np.zeros((2, 4), dtype=np.float32)[:, :2], np.ones((2, 4), dtype=bool)[:, :2]
    ErrorCells("sketch", compiled=True).add_window(Cell(), small, small, valid, valid)
    start = time.perf_counter()
    evaluator = Elevation()
    units = elevation_units(Source(reference), Source(prediction), Pairing(unit="m"))
    totals = Ledger.of(row for unit in units.units for row in tally_unit(evaluator, unit)[0]).by_cluster().whole()
    figures = {**evaluator.quantities(totals), **evaluator.ranked(totals)}
    seconds = time.perf_counter() - start
    print({key: float(figures[key].value[0]) for key in evaluator.KEYS}, file=sys.stderr)
    return seconds


def measured(what: str, reference: str, prediction: str) -> dict[str, float]:
    """Seconds, start-up and peak memory of one job, in a process of its own."""
    start = time.perf_counter()
    run = subprocess.run(
        [sys.executable, __file__, what, reference, prediction], check=True, stdout=subprocess.PIPE, text=True
    )
    found: dict[str, float] = json.loads(run.stdout)
    return {**found, "start-up": time.perf_counter() - start - found["s"]}


def main() -> None:
    if len(sys.argv) == 4:
        seconds = {"decode": decode, "evaluate": evaluate}[sys.argv[1]](*sys.argv[2:])
        print(json.dumps({"s": seconds, "MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
        return
    side = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / name) for name in ("reference.tif", "prediction.tif")]
        for seed, path in enumerate(paths):
            write(Path(path), side, seed)
        pairs = [(measured("decode", *paths), measured("evaluate", *paths)) for _ in range(3)]
    for decoded, evaluated in pairs:
        print(
            f"decode {decoded['s']:.2f} s, evaluate {evaluated['s']:.2f} s, ratio {evaluated['s'] / decoded['s']:.2f}; "
            f"start-up {evaluated['start-up']:.2f} s; peak {evaluated['MB']:.0f} MB"
        )
    ratio = min(run["s"] for _, run in pairs) / min(run["s"] for run, _ in pairs)
    peak = max(run["MB"] for _, run in pairs)
    print(f"best ratio {ratio:.2f} (target {TARGET_RATIO}), peak {peak:.0f} MB (target {TARGET_MB})")


if __name__ == "__main__":
    main()
