"""Leakage gates on many samples: equal values, near-equal hashes, and boxes closer than a buffer.

    python benchmarks/splits.py [--n 1000000] [--buffer 2000] [--check 20000]

Samples have 64-bit codes of which one in fifty is a near copy of another, boxes of 0.3 to 3 km in degrees, UTM and
polar stereographic, 5 % at the antimeridian and 5 % within a few degrees of the poles, and six splits. Every gate is
exact. On CHECK samples each gate is held against brute force: the same pairs, or the run fails.
Targets for a million: all gates in 3 minutes and 6 GB on 2 cores.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

SPLITS = 6


def codes_like_images(n: int, generator: np.random.Generator) -> np.ndarray:
    """Random codes; one in fifty is another one with up to 9 bits changed."""
    codes = generator.integers(0, 2**64, n, dtype=np.uint64)
    copies = generator.choice(n, n // 50, replace=False)
    codes[copies] = codes[generator.integers(0, n, len(copies))]
    for _ in range(9):
        changed = copies[generator.random(len(copies)) < 0.5]
        codes[changed] ^= np.uint64(1) << generator.integers(0, 64, len(changed)).astype(np.uint64)
    return codes


def places(n: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Longitudes and latitudes: sparse all over the land's latitudes, 5 % at 180 degrees, 5 % around the poles."""
    spread = np.degrees(np.arcsin(generator.uniform(np.sin(np.radians(-60)), np.sin(np.radians(75)), n)))
    lon, lat = generator.uniform(-180, 180, n), spread
    dateline, polar = np.arange(n) % 20 == 0, np.arange(n) % 20 == 1
    lon[dateline] = (180 + generator.normal(0, 0.5, dateline.sum()) + 180) % 360 - 180
    colatitude = 6 * np.sqrt(generator.uniform(0, 1, polar.sum()))
    lat[polar] = np.where(generator.random(polar.sum()) < 0.5, 90 - colatitude, colatitude - 90)
    return lon, lat


def boxes_around(lon: np.ndarray, lat: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Bounds and systems: half in degrees, the others in the UTM zone or polar system of their place."""
    import pyproj

    n = len(lon)
    width, height = generator.uniform(300, 3000, (2, n))
    dy = height / 111_000
    dx = np.minimum(width / 111_000 / np.maximum(np.cos(np.radians(lat)), 1e-3), 350)
    south = np.clip(lat, -90, 90 - dy)
    bounds = np.stack([lon, south, (lon + dx + 180) % 360 - 180, south + dy], 1)
    system = np.full(n, "EPSG:4326", dtype=object)
    zone = np.minimum((lon + 180) // 6 + 1, 60).astype(int)
    code = np.where(lat >= 0, 32600, 32700) + zone
    code = np.where(lat > 83, 3413, np.where(lat < -79, 3031, code))
    projected = generator.random(n) < 0.5
    for one in np.unique(code[projected]).tolist():
        rows = np.flatnonzero(projected & (code == one))
        x, y = pyproj.Transformer.from_crs("EPSG:4326", one, always_xy=True).transform(lon[rows], lat[rows])
        bounds[rows] = np.stack([x, y, x + width[rows], y + height[rows]], 1)
        system[rows] = f"EPSG:{one}"
    return bounds, system


def memory_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


class Clock:
    """Prints what each gate took, and adds it up."""

    def __init__(self) -> None:
        self.total = 0.0
        self.took: dict[str, float] = {}

    def run(self, name: str, work, note=str):
        start = time.perf_counter()
        found = work()
        took = time.perf_counter() - start
        self.total += took
        self.took[name] = took
        print(f"{name:32s} {took:8.2f} s   peak {memory_gb():5.2f} GB   {note(found)}", flush=True)
        return found


def linked_by_value(values: np.ndarray, split: np.ndarray) -> int:
    """How many values touch several splits."""
    _, group = np.unique(values, return_inverse=True)
    pairs = np.unique(group * SPLITS + split)
    return int((np.bincount(pairs // SPLITS) > 1).sum())


def brute_codes(codes: np.ndarray, split: np.ndarray, radius: int) -> set[tuple[int, int]]:
    found = set()
    for i in range(len(codes)):
        near = np.flatnonzero((np.bitwise_count(codes[i] ^ codes[i + 1 :]) <= radius) & (split[i + 1 :] != split[i]))
        found |= {(i, i + 1 + j) for j in near.tolist()}
    return found


def brute_boxes(boxes, split: np.ndarray, limit: float, diagonal: float) -> set[tuple[int, int]]:
    """Every pair by its exact distance, but for those whose edges are out of reach by a straight line."""
    from geoeval.splits.boxes import distance

    middle = boxes.curves.cubic[boxes.curves.start[:-1:4], 0]
    found = set()
    for i in range(len(boxes)):
        others = (
            i
            + 1
            + np.flatnonzero(
                (np.linalg.norm(middle[i + 1 :] - middle[i], axis=1) <= limit + 2 * diagonal)
                & (split[i + 1 :] != split[i])
            )
        )
        if len(others):
            near = distance(boxes, np.full(len(others), i), others) <= limit
            found |= {(i, j) for j in others[near].tolist()}
    return found


def as_set(across) -> set[tuple[int, int]]:
    assert across.count == len(across.i)
    return set(zip(across.i.tolist(), across.j.tolist(), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--buffer", type=float, default=2000.0)
    parser.add_argument("--check", type=int, default=20_000)
    options = parser.parse_args()
    from geoeval.splits.boxes import from_bounds, mean_neighbours, too_close_m, within_across, within_groups
    from geoeval.splits.hamming import accidental_pairs, hamming_across, hamming_groups

    generator = np.random.Generator(np.random.PCG64(11))
    n, buffer = options.n, options.buffer
    codes, split = codes_like_images(n, generator), generator.integers(0, SPLITS, n)
    bounds, system = boxes_around(*places(n, generator), generator)
    family = generator.integers(0, n // 3 + 1, n)
    small = from_bounds([0, 0.01], [0, 0], [0.001, 0.011], [0.001, 0.001], "EPSG:4326")
    mixed = from_bounds([0, 5e5], [0, 0], [1, 6e5], [1, 1e5], ["EPSG:4326", "EPSG:32631"])
    for warm in (small, mixed):
        within_groups(warm, buffer)
        within_across(warm, np.array([0, 1]), buffer)
    mean_neighbours(small, buffer)
    hamming_groups(codes[:100], 4)
    hamming_across(codes[:100], split[:100], 4)
    print(f"{n} samples, {buffer:g} m, start {memory_gb():.2f} GB (compiled code is loaded)")

    clock = Clock()
    clock.run("identity and hash links", lambda: linked_by_value(family, split), lambda k: f"{k} values across")
    for radius in (4, 8):
        says = f"about {accidental_pairs(n, radius):.3g} accidental pairs among real images"
        clock.run(
            f"hamming groups, radius {radius}",
            lambda r=radius: hamming_groups(codes, r),
            lambda g: f"{g.max() + 1} groups",
        )
        clock.run(
            f"hamming across, radius {radius}",
            lambda r=radius: hamming_across(codes, split, r),
            lambda a, s=says: f"{a.count} pairs; {s}",
        )
    boxes = clock.run(
        "boxes from bounds", lambda: from_bounds(*bounds.T, system), lambda b: f"{len(b.curves.radius)} curves"
    )
    clock.run("buffer groups", lambda: within_groups(boxes, buffer), lambda g: f"{g.max() + 1} groups")
    clock.run("buffer across", lambda: within_across(boxes, split, buffer), lambda a: f"{a.count} pairs")
    clock.run("mean neighbours", lambda: mean_neighbours(boxes, buffer), lambda m: f"{m:.2f}")
    print(f"{'all gates':32s} {clock.total:8.2f} s   peak {memory_gb():5.2f} GB   target 180 s, 6 GB")

    m = min(options.check, n)
    # Samples around a place on the antimeridian and around the north pole, so that many of them are neighbours.
    middle = boxes.curves.cubic[boxes.curves.start[:-1:4], 0]
    order = [np.argsort(np.linalg.norm(middle - place, axis=1)) for place in ([-6.2e6, 0, 1e6], [0, 0, 6.36e6])]
    few = np.unique(np.concatenate([order[0][: m // 2], order[1][: m - m // 2]]))
    # Samples with a near code first.
    group = hamming_groups(codes, 8)
    alike = np.argsort(-np.bincount(group)[group], kind="stable")[:m]
    part = from_bounds(*bounds[few].T, system[few])
    checks = [
        (
            f"hamming, radius {r}",
            lambda r=r: as_set(hamming_across(codes[alike], split[alike], r, witnesses=10**7)),
            lambda r=r: brute_codes(codes[alike], split[alike], r),
        )
        for r in (4, 8)
    ]
    checks.append(
        (
            "buffer",
            lambda: as_set(within_across(part, split[few], buffer, witnesses=10**7)),
            lambda: brute_boxes(part, split[few], too_close_m(buffer), 4500.0),
        )
    )
    for name, fast, slow in checks:
        start = time.perf_counter()
        found = fast()
        middle = time.perf_counter()
        expected = slow()
        end = time.perf_counter()
        assert found == expected, f"{name}: {len(found)} pairs found, {len(expected)} by brute force"
        print(
            f"{name:32s} {len(found):6d} pairs as by brute force, {(end - middle) / (middle - start):.0f} times as fast"
        )


if __name__ == "__main__":
    main()
