"""Leakage gates on many samples: equal values, near-equal hashes, near-equal label sets, boxes closer than a buffer.

    python benchmarks/splits.py [--n 1000000] [--buffer 2000] [--check 20000] [--labelled 0.1]

Samples have the identities, hashes and boxes of a real source: hashes of eight orientations with second hashes, one in
fifty a near copy of another in some orientation; boxes of 0.3 to 3 km in degrees, UTM and polar stereographic, 5 % at
the antimeridian and 5 % within a few degrees of the poles; a share of samples with label sets of 15 boxes; six splits.
First each search by itself, as a builder (groups) and a gate (across) run it; then what the product runs, whole: the
five gates on a table, and the components of a table. Every search is exact: on CHECK samples each is held against
brute force, and has to find the same pairs, or the run fails.
Targets for a million: all gates in 3 minutes and 6 GB on 2 cores.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

SPLITS = 6
FIELDS = ("group_id", "source_family", "temporal_family", "acquisition_id", "parent_raster_id")
DIGESTS = ("raw_image_sha256", "processed_image_sha256", "label_sha256", "record_sha256")


def hashes_like_images(n: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Random hashes in eight orientations; one in fifty is a turned copy with up to 9 bits changed, and up to 15 in the
    second hash."""
    codes, second = (generator.integers(0, 2**64, (n, 8), dtype=np.uint64) for _ in range(2))
    copies = generator.choice(n, n // 50, replace=False)
    source, turn = generator.integers(0, n, len(copies)), generator.integers(0, 8, len(copies))
    for values, most in ((codes, 9), (second, 15)):
        values[copies, 0] = values[source, turn]
        for _ in range(most):
            changed = copies[generator.random(len(copies)) < 0.5]
            values[changed, 0] ^= np.uint64(1) << generator.integers(0, 64, len(changed)).astype(np.uint64)
    return codes, second


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


def label_sets(n: int, share: float, generator: np.random.Generator) -> np.ndarray | None:
    """Sets of 15 boxes in images of 512 cells for a share of the samples; one in two hundred is a shifted copy."""
    import shapely

    from geoeval.splits.labelsets import LabelSet

    out = np.full(n, None, dtype=object)
    rows = np.sort(generator.choice(n, int(share * n), replace=False))
    if not len(rows):
        return None
    corner, size = generator.uniform(0, 480, (len(rows), 15, 2)), generator.uniform(4, 32, (len(rows), 15, 2))
    copies = np.flatnonzero(generator.random(len(rows)) < 1 / 200)
    source = generator.integers(0, len(rows), len(copies))
    corner[copies], size[copies] = corner[source] + 0.5, size[source]
    low, high = corner.reshape(-1, 2), (corner + size).reshape(-1, 2)
    shapes = shapely.box(*low.T, *high.T).reshape(len(rows), 15)
    for row, one in zip(rows.tolist(), shapes, strict=True):
        out[row] = LabelSet(pixels=one, size=(512, 512))
    return out


def random_texts(n: int, generator: np.random.Generator):
    """SHA-256 as texts, without a Python string each."""
    import pyarrow as pa

    digits = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)[generator.integers(0, 16, (n, 64), dtype=np.uint8)]
    offsets = np.arange(n + 1, dtype=np.int64) * 64
    return pa.LargeStringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(digits)))


def numbered(prefix: str, numbers: np.ndarray):
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(
        pa.scalar(prefix, pa.large_string()),
        pa.array(numbers).cast(pa.large_string()),
        pa.scalar("", pa.large_string()),
    )


def memory_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


class Clock:
    """Prints what each step took."""

    def run(self, name: str, work, note=str):
        start = time.perf_counter()
        found = work()
        self.took = time.perf_counter() - start
        print(f"{name:36s} {self.took:8.2f} s   peak {memory_gb():5.2f} GB   {note(found)}", flush=True)
        return found


def brute_codes(codes, second, split, radius: int, wide: int, limit: int) -> set[tuple[int, int]]:
    """Every pair of splits by the least distance over the orientations of either one."""
    found = set()
    for i in range(len(codes)):
        others = i + 1 + np.flatnonzero(split[i + 1 :] != split[i])
        for one, other in ((codes[i, 0], codes[others]), (codes[i], codes[others, :1])):
            first = np.bitwise_count(one ^ other)
            near = first <= radius
            if wide > radius:
                again = np.bitwise_count(
                    second[i, 0] ^ second[others] if one.ndim == 0 else second[i] ^ second[others, :1]
                )
                near |= (first <= wide) & (again <= limit)
            found |= {(i, j) for j in others[near.any(axis=1)].tolist()}
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


def warmed(settings, buffer: float) -> None:
    """Compiled code is loaded before anything is timed."""
    from geoeval.splits.boxes import from_bounds, mean_neighbours, within_across, within_groups

    small = from_bounds([0, 0.01], [0, 0], [0.001, 0.011], [0.001, 0.001], "EPSG:4326")
    mixed = from_bounds([0, 5e5], [0, 0], [1, 6e5], [1, 1e5], ["EPSG:4326", "EPSG:32631"])
    for one in (small, mixed):
        within_groups(one, buffer)
        within_across(one, np.array([0, 1]), buffer)
    mean_neighbours(small, buffer)
    from geoeval.splits import check
    from geoeval.splits.components import components

    table = made(200, np.random.Generator(np.random.PCG64(1)), 0.5)
    check(table, settings)
    components(table, settings)


def made(n: int, generator: np.random.Generator, labelled: float):
    """A table of samples with everything that a gate reads."""
    from geoeval.splits import SampleTable

    codes, second = hashes_like_images(n, generator)
    bounds, system = boxes_around(*places(n, generator), generator)
    lineage = {name: numbered(f"{name}-", np.arange(n) // 3 + n * at) for at, name in enumerate(FIELDS)}
    digests = {name: random_texts(n, generator) for name in DIGESTS}
    roles = np.array(["train", "val", "calibration", "test", "background-test", "challenge"], dtype=object)
    split = roles[generator.permutation(n // 3 + 1)[np.arange(n) // 3] % SPLITS]
    return SampleTable.of(
        n,
        sample_id=numbered("s", np.arange(n) + 10**9),
        split=split,
        bounds=bounds,
        crs=system,
        perceptual=codes,
        confirming=second,
        perceptual_recipe="made",
        labels=label_sets(n, labelled, generator),
        **lineage,
        **digests,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--buffer", type=float, default=2000.0)
    parser.add_argument("--check", type=int, default=20_000)
    parser.add_argument("--labelled", type=float, default=0.1)
    options = parser.parse_args()
    from geoeval.splits import SplitSettings, check
    from geoeval.splits.boxes import from_bounds, too_close_m, within_across, within_groups
    from geoeval.splits.components import components
    from geoeval.splits.hamming import Confirmation, accidental_pairs, hamming_across, hamming_groups
    from geoeval.splits.near import label_across, label_links

    n, buffer = options.n, options.buffer
    settings = SplitSettings(buffer_m=buffer, required=(), required_splits=())
    warmed(settings, buffer)
    table = made(n, np.random.Generator(np.random.PCG64(11)), options.labelled)
    split, codes, second = table.splits()[0], table.perceptual, table.confirming
    known = np.ones(n, dtype=bool)
    limit = settings.confirming_bits
    print(f"{n} samples, {buffer:g} m, start {memory_gb():.2f} GB (compiled code is loaded, the table is made)")

    clock = Clock()
    ways = {"4": None, "4, 8 confirmed": Confirmation(second, known, 8, limit)}
    for name, how in ways.items():
        expected = accidental_pairs(n, 4) + (0 if how is None else accidental_pairs(n, 8, confirmed=True))
        says = f"about {expected:.3g} accidental pairs among real images"
        clock.run(
            f"hamming groups, radius {name}",
            lambda h=how: hamming_groups(codes, 4, confirmation=h),
            lambda g: f"{g.max() + 1} groups",
        )
        clock.run(
            f"hamming across, radius {name}",
            lambda h=how: hamming_across(codes, split, 4, confirmation=h),
            lambda a, s=says: f"{a.count} pairs; {s}",
        )
    bounds, system = table.bounds, np.array(table.texts["crs"].to_pylist(), dtype=object)
    boxes = clock.run(
        "boxes from bounds", lambda: from_bounds(*bounds.T, system), lambda b: f"{len(b.curves.radius)} curves"
    )
    clock.run("buffer groups", lambda: within_groups(boxes, buffer), lambda g: f"{g.max() + 1} groups")
    clock.run("buffer across", lambda: within_across(boxes, split, buffer), lambda a: f"{a.count} pairs")
    clock.run("label set groups", lambda: label_links(table, settings), lambda g: f"{len(g[0])} sets")
    clock.run(
        "label sets across", lambda: label_across(table, split, settings), lambda a: f"{a[1] and a[1].count} pairs"
    )
    clock.run("check: all five gates", lambda: check(table, settings), told)
    print(f"{'':36s} target 180 s, 6 GB")
    clock.run("components: every link of a build", lambda: components(table, settings), lambda c: f"{len(c.sizes)}")

    m = min(options.check, n)
    # Samples around a place on the antimeridian and around the north pole, so that many of them are neighbours.
    middle = boxes.curves.cubic[boxes.curves.start[:-1:4], 0]
    order = [np.argsort(np.linalg.norm(middle - place, axis=1)) for place in ([-6.2e6, 0, 1e6], [0, 0, 6.36e6])]
    few = np.unique(np.concatenate([order[0][: m // 2], order[1][: m - m // 2]]))
    # Samples with a near code first.
    group = hamming_groups(codes, 8)
    alike = np.argsort(-np.bincount(group)[group], kind="stable")[:m]
    part = from_bounds(*bounds[few].T, system[few])
    few_codes, few_second, few_split = codes[alike], second[alike], split[alike]
    near = Confirmation(few_second, known[:m], 8, limit)
    many = {"witnesses": 10**7}
    checks = [
        (
            f"hamming, radius {name}",
            lambda r=radius, h=how: as_set(hamming_across(few_codes, few_split, r, confirmation=h, **many)),
            lambda r=radius, w=wide: brute_codes(few_codes, few_second, few_split, r, w, limit),
        )
        for name, radius, wide, how in (("4", 4, 4, None), ("8", 8, 8, None), ("4, 8 confirmed", 4, 8, near))
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
            f"{name:36s} {len(found):6d} pairs as by brute force, {(end - middle) / (middle - start):.0f} times as fast"
        )


def told(gates) -> str:
    return ", ".join(f"{one.id} {one.status} {one.count}" for one in gates)


if __name__ == "__main__":
    main()
