"""Overlap areas of building pairs: the edge-pair kernel against ``shapely.area(shapely.intersection(a, b))``.

Run ``python benchmarks/overlap.py --pairs 200000``. Buildings have 4 to 12 vertices; each prediction is its reference
moved, turned and rescaled, and one in three has another plan. Compilation (once a machine, then cached) is left out.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import shapely

from geoeval.geometry.overlap import overlaps, packed_signed, shared_into
from geoeval.model import FloatArray, ObjectArray

PLANS = (
    [(0, 0), (1, 0), (1, 1), (0, 1)],
    [(0, 0), (1, 0), (1, 0.6), (0.5, 0.6), (0.5, 1), (0, 1)],
    [(0, 0), (1, 0), (1, 0.5), (0.7, 0.5), (0.7, 1), (0.3, 1), (0.3, 0.5), (0, 0.5)],
    [(0, 0), (1, 0), (1, 1), (0.7, 1), (0.7, 0.4), (0.3, 0.4), (0.3, 1), (0, 1)],
    [(0, 0), (0.8, 0), (0.8, 0.3), (1, 0.3), (1, 1), (0.4, 1), (0.4, 0.8), (0.2, 0.8), (0.2, 0.5), (0, 0.5)],
    [(0.3, 0), (0.7, 0), (0.7, 0.3), (1, 0.3), (1, 0.7), (0.7, 0.7),
     (0.7, 1), (0.3, 1), (0.3, 0.7), (0, 0.7), (0, 0.3), (0.3, 0.3)],
)  # fmt: skip


def buildings(plan: np.ndarray[Any, Any], centre: FloatArray, size: FloatArray, angle: FloatArray) -> ObjectArray:
    """Polygons with the given plans, about their centres."""
    corners = [np.asarray(PLANS[p], dtype=np.float64) - 0.5 for p in plan]
    at = np.repeat(np.arange(len(plan)), [len(c) for c in corners])
    xy = np.concatenate(corners) * size[at]
    cos, sin = np.cos(angle)[at], np.sin(angle)[at]
    turned = np.column_stack([xy[:, 0] * cos - xy[:, 1] * sin, xy[:, 0] * sin + xy[:, 1] * cos]) + centre[at]
    return np.asarray(shapely.polygons(shapely.linearrings(turned, indices=at)), dtype=np.object_)


def building_pairs(n: int, seed: int = 0) -> tuple[ObjectArray, ObjectArray]:
    """Two layers in UTM-like coordinates whose i-th buildings overlap."""
    rng = np.random.default_rng(seed)
    side = int(np.ceil(np.sqrt(n)))
    grid = np.column_stack([np.arange(n) % side, np.arange(n) // side]) * 30.0
    centre = grid + np.array([500_000.0, 5_400_000.0])
    plan = rng.integers(0, len(PLANS), n)
    size = rng.uniform(6.0, 18.0, (n, 2))
    angle = rng.uniform(0.0, np.pi, n)
    reference = buildings(plan, centre, size, angle)
    other = np.where(rng.random(n) < 1 / 3, rng.integers(0, len(PLANS), n), plan)
    prediction = buildings(
        other, centre + rng.normal(0, 1.0, (n, 2)), size * rng.uniform(0.9, 1.1, (n, 2)), angle + rng.normal(0, 0.05, n)
    )
    return reference, prediction


def best(work: Callable[[], Any], times: int) -> tuple[float, float]:
    """Least wall time and least processor time of all threads, in seconds."""
    wall, busy = [], []
    for _ in range(times):
        start, spent = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - start)
        busy.append(time.process_time() - spent)
    return min(wall), min(busy)


def table(rows: list[tuple[str, tuple[float, float]]], pairs: int) -> None:
    """Print the rows; the first is what the others are compared with."""
    print(f"{'':44}{'wall s':>9}{'us a pair':>11}{'ratio':>8}{'cpu s':>9}{'ratio':>8}")
    first = rows[0][1]
    for name, (wall, busy) in rows:
        ratio, busy_ratio = first[0] / wall, first[1] / max(busy, 1e-9)
        print(f"{name:44}{wall:9.3f}{wall / pairs * 1e6:11.3f}{ratio:8.1f}{busy:9.3f}{busy_ratio:8.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()

    a, b = building_pairs(given.pairs)
    low = np.maximum(shapely.bounds(a)[:, :2], shapely.bounds(b)[:, :2])
    size = np.maximum(np.minimum(shapely.bounds(a)[:, 2:], shapely.bounds(b)[:, 2:]) - low, 0.0)
    box = np.concatenate([low, size], axis=1)
    pair = np.arange(len(a), dtype=np.int64)
    area = np.zeros(len(a))
    left, right = packed_signed(a), packed_signed(b)
    shared_into(area, left, right, pair, pair, box)
    overlaps(a[:10], b[:10])

    geos = best(lambda: shapely.area(shapely.intersection(a, b)), 1)
    packed = best(lambda: (packed_signed(a), packed_signed(b)), given.repeats)
    kernel = best(lambda: shared_into(area, left, right, pair, pair, box), given.repeats)
    whole = best(lambda: overlaps(a, b), given.repeats)
    difference = float(np.max(np.abs(area - shapely.area(shapely.intersection(a, b)))))

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(
        f"{len(a)} building pairs, 4 to 12 vertices, {cores} threads; compilation excluded; "
        f"best of {given.repeats} (GEOS: 1)"
    )
    table(
        [
            ("GEOS intersection + area", geos),
            ("packing both layers", packed),
            ("kernel alone", kernel),
            ("packing + kernel", (packed[0] + kernel[0], packed[1] + kernel[1])),
            ("overlaps(): index, packing, kernel", whole),
        ],
        len(a),
    )
    print(f"largest difference of areas: {difference:.1e} m2")


if __name__ == "__main__":
    main()
