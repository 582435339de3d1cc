"""Boundary within a tolerance, and PoLiS, of building pairs: kernels against buffer + intersection in shapely.

Run ``python benchmarks/boundary.py --pairs 20000``. Compilation (once a machine, then cached) is left out.
"""

from __future__ import annotations

import argparse

import numpy as np
import shapely
from overlap import best, building_pairs, table

from geoeval.geometry.boundary import boundary_within, lines_rms, lines_within
from geoeval.geometry.shape import polis


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--tolerance", type=float, default=1.0)
    given = parser.parse_args()
    a, b = building_pairs(given.pairs)
    tolerance = given.tolerance
    edges_a, edges_b = shapely.boundary(a), shapely.boundary(b)
    for measure in (boundary_within, lines_within, lines_rms):
        measure(a[:10], b[:10], tolerance)
    polis(a[:10], b[:10])

    def buffered() -> np.ndarray:
        return shapely.length(shapely.intersection(edges_a, shapely.buffer(edges_b, tolerance, quad_segs=16)))

    geos = best(buffered, 1)
    rows = [
        ("GEOS buffer (16 a quarter) + intersection", geos),
        ("boundary_within, aligned pairs", best(lambda: boundary_within(a, b, tolerance), 3)),
        ("lines_within, any of the others", best(lambda: lines_within(a, b, tolerance), 3)),
        ("lines_rms, any of the others", best(lambda: lines_rms(a, b, tolerance), 3)),
        ("polis, aligned pairs", best(lambda: polis(a, b), 3)),
    ]
    print(f"{given.pairs} building pairs, tolerance {tolerance} m; compilation excluded")
    table(rows, given.pairs)
    exact, inner = boundary_within(a, b, tolerance), buffered()
    print(f"exact minus buffered length: {np.min(exact - inner):.1e} to {np.max(exact - inner):.1e} m")


if __name__ == "__main__":
    main()
