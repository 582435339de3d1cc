"""How often do nominal 95 % intervals hold the truth? Simulated surveys, independent and clustered.

Prints the tables of docs/coverage.md: coverage, and mean width beside it. Objects of one cluster are correlated by a
beta distribution of the clusters' own rates; pairs of models see the same objects. One seed; about a minute.
"""

from __future__ import annotations

if __name__ == "coverage":
    # numba asks for the package of this name, and the folder of a script comes first on the path.
    raise ImportError("this is a benchmark, not the package that measures test coverage")

import sys

import numpy as np

from geoeval.stats.bootstrap import multiplicities
from geoeval.stats.interval import clustered_wilson, wilson
from geoeval.stats.paired import least_differing, paired_interval

SURVEYS, REDRAWS, OBJECTS = 2000, 500, 20


def rates(rng, p, correlation, clusters):
    """Rates of clusters with mean p; the correlation of two objects of one cluster is the one wanted."""
    if correlation == 0:
        return np.full((SURVEYS, clusters), p)
    strength = 1 / correlation - 1
    return rng.beta(p * strength, (1 - p) * strength, size=(SURVEYS, clusters))


def held(low, high, truth):
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    return np.mean((low <= truth) & (truth <= high)), np.mean(high - low)


def percentiles(values):
    """Bounds (surveys,) from redraws (redraws, surveys)."""
    return np.nanpercentile(values, [2.5, 97.5], axis=0)


def show(title, header, rows):
    print(f"\n### {title}\n\n| " + " | ".join(header) + " |\n|" + " --- |" * len(header))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")


def percent(pair):
    return f"{pair[0] * 100:.1f} % ({pair[1]:.3f})"


def independent(rng):
    rows = []
    for n in (20, 50, 200):
        cells = []
        for p in (0.5, 0.9, 0.98):
            bounds = [wilson(int(k), n) for k in rng.binomial(n, p, size=SURVEYS)]
            cells.append(percent(held(*zip(*bounds, strict=True), p)))
        rows.append([n, *cells])
    show("Plain Wilson, independent objects", ["objects", "p = 0.5", "p = 0.9", "p = 0.98"], rows)


def shares(rng):
    rows = []
    for p in (0.9, 0.98):
        for correlation in (0.0, 0.1, 0.3):
            for clusters in (5, 10, 20, 40):
                k = rng.binomial(OBJECTS, rates(rng, p, correlation, clusters))
                n = np.full(clusters, OBJECTS)
                plain = [wilson(int(one), clusters * OBJECTS) for one in k.sum(axis=1)]
                ours = [clustered_wilson(one, n) for one in k]
                drawn = multiplicities(clusters, REDRAWS, 0)
                boot = percentiles(drawn @ k.T / (clusters * OBJECTS))
                rows.append(
                    [
                        p,
                        correlation,
                        clusters,
                        percent(held(*zip(*plain, strict=True), p)),
                        percent(held([one.low for one in ours], [one.high for one in ours], p)),
                        percent(held(*boot, p)),
                    ]
                )
    header = ["p", "correlation", "clusters of 20", "plain Wilson", "clustered Wilson", "cluster bootstrap"]
    show("Shares of clustered objects", header, rows)


def means(rng):
    rows = []
    for correlation in (0.0, 0.3):
        for clusters in (5, 10, 20, 40):
            drawn = multiplicities(clusters, REDRAWS, 0)
            found = rates(rng, 0.9, correlation, clusters)
            tp = rng.binomial(OBJECTS, found)
            fp = rng.poisson(OBJECTS * 0.1, size=tp.shape)
            f1 = 2 * drawn @ tp.T / (drawn @ (tp + fp).T + clusters * OBJECTS)
            truth = 2 * 0.9 / (0.9 + 0.1 + 1)
            effect = np.sqrt(correlation) * rng.standard_normal((SURVEYS, clusters))
            noise = np.sqrt(1 - correlation) * rng.standard_normal((SURVEYS, clusters, OBJECTS)).mean(axis=2)
            mean = drawn @ (effect + noise).T / clusters
            rows.append([correlation, clusters, percent(held(*percentiles(f1), truth)),
                         percent(held(*percentiles(mean), 0.0))])  # fmt: skip
    show(
        "Cluster bootstrap of F1, and of a mean", ["correlation", "clusters of 20", "F1", "mean of normal errors"], rows
    )


def paired(rng):
    """Two models on the same objects; the candidate finds a share of what the incumbent misses, and loses some."""
    rows = []
    for regained, lost, p in ((0.1, 0.1 * 0.1 / 0.9, 0.9), (0.5, 0.02, 0.9), (0.5, 0.5 * 0.02 / 0.98, 0.98)):
        truth = (1 - p) * regained - p * lost
        for correlation in (0.0, 0.3):
            for clusters in (10, 20, 40):
                old = rng.binomial(OBJECTS, rates(rng, p, correlation, clusters))
                new = old - rng.binomial(old, lost) + rng.binomial(OBJECTS - old, regained)
                drawn = multiplicities(clusters, REDRAWS, 0)
                before, after = (drawn @ side.T / (clusters * OBJECTS) for side in (old, new))
                few = (old != new).sum(axis=1) < least_differing()
                found = [
                    paired_interval(before[:, i], after[:, i], "more", few=bool(few[i]) or clusters < 20)
                    for i in range(SURVEYS)
                ]
                decided = [np.mean([one.decision == word for one in found]) for word in ("adopt", "block")]
                rows.append(
                    [
                        p,
                        f"{truth:+.3f}" if abs(truth) > 1e-12 else "0",
                        correlation,
                        clusters,
                        percent(held([one.low for one in found], [one.high for one in found], truth)),
                        *(f"{share * 100:.1f} %" for share in decided),
                    ]
                )
    header = ["p", "true difference", "correlation", "clusters of 20", "coverage", "adopt", "block"]
    show("Paired difference of two models", header, rows)


def main() -> None:
    rng = np.random.default_rng(20)
    print(f"{SURVEYS} surveys a row, {REDRAWS} redraws each; coverage of the nominal 95 % interval (mean width)")
    for table in (independent, shares, means, paired):
        table(rng)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
