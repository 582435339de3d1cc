"""Selective prediction: areas of a long list against a plain loop, and paired redraws of AURC against sorting again.

1. AURC and AUGRC of 1,000,000 points with tied confidences, against sorting tuples and looping in Python.
2. The paired bootstrap of the difference of AURC, 2,000 redraws of 100,000 observations, against drawing the rows of
   each redraw, sorting them and averaging ties in numpy. The draws are the same, and so must be every difference.
3. The same with 200 clusters drawn whole.

Prints seconds and ratios, and ends with exit code 1 where a limit is missed: 10 times, 4 times, equal to 1e-12.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from geoeval.stats import selective
from geoeval.stats.risk import risk

POINTS, OBSERVATIONS, REDRAWS, CLUSTERS = 1_000_000, 100_000, 2000, 200


def timed(work, times=1):
    best, out = np.inf, None
    for _ in range(times):
        start = time.perf_counter()
        out = work()
        best = min(best, time.perf_counter() - start)
    return best, out


def loop(confidence, error):
    """AURC and AUGRC as anybody would write them."""
    rows = sorted(zip(confidence, error, strict=True), key=lambda row: -row[0])
    n, at, wrong, area, general = len(rows), 0, 0.0, 0.0, 0.0
    while at < n:
        end = at
        while end < n and rows[end][0] == rows[at][0]:
            end += 1
        mean = sum(row[1] for row in rows[at:end]) / (end - at)
        for k in range(at, end):
            wrong += mean
            area += wrong / (k + 1)
            general += wrong
        at = end
    return area / n, general / n / n


def sorted_again(confidence, error):
    """AURC of one redraw: sort, average ties, accumulate."""
    order = np.argsort(-confidence)
    c, e = confidence[order], error[order]
    start = np.flatnonzero(np.concatenate([[True], c[1:] != c[:-1]]))
    size = np.diff(np.append(start, len(c)))
    risks = np.cumsum(np.repeat(np.add.reduceat(e, start) / size, size)) / np.arange(1, len(c) + 1)
    return risks.mean()


def values_of(work):
    """What a bootstrap returns, and the difference of every redraw behind it."""
    kept = []
    plain = selective.percentile_interval

    def spy(values, *more):
        kept.append(values)
        return plain(values, *more)

    selective.percentile_interval = spy
    try:
        seconds, found = timed(work)
    finally:
        selective.percentile_interval = plain
    return seconds, found, kept[0]


def paired(old, new, error, clusters):
    names = np.arange(len(old)) if clusters is None else clusters
    count = len(np.unique(names))
    rows = [np.flatnonzero(names == c) for c in range(count)] if clusters is not None else None
    generator = np.random.Generator(np.random.PCG64(0))

    def again():
        out = np.empty(REDRAWS)
        for b in range(REDRAWS):
            drawn = generator.integers(0, count, size=count)
            at = drawn if rows is None else np.concatenate([rows[c] for c in drawn])
            out[b] = sorted_again(old[at], error[at]) - sorted_again(new[at], error[at])
        return out

    given = None if clusters is None else clusters.tolist()
    seconds, found, values = values_of(
        lambda: selective.bootstrap_delta_aurc(old, new, error, redraws=REDRAWS, seed=0, clusters=given)
    )
    slow, expected = timed(again)
    return seconds, slow, float(np.max(np.abs(values - expected))), found


def main() -> None:
    rng = np.random.default_rng(1)
    error = (rng.random(POINTS) < 0.2).astype(np.int64)
    confidence = np.clip(0.7 - 0.3 * error + 0.2 * rng.standard_normal(POINTS), 0, 1).round(6)
    quick, found = timed(lambda: risk(confidence, error), times=3)
    slow, (area, general) = timed(lambda: loop(confidence.tolist(), error.tolist()))
    apart = max(abs(found.aurc - area), abs(found.augrc - general))
    shuffled = rng.permutation(POINTS)
    same = risk(confidence[shuffled], error[shuffled]) == found
    print(f"AURC and AUGRC of {POINTS:,} points       {quick:8.3f} s, a loop {slow:8.3f} s   ratio {slow / quick:.1f}")
    print(f"    apart by {apart:.1e}; shuffled, every bit is {'the same' if same else 'NOT the same'}")
    good = slow / quick >= 10 and apart < 1e-12 and same

    error = error[:OBSERVATIONS]
    old, new = (
        np.clip(0.7 - drop * error + 0.2 * rng.standard_normal(OBSERVATIONS), 0, 1).round(4) for drop in (0.3, 0.31)
    )
    warm = rng.integers(0, 2, 1000)
    selective.COMPILED, plain = 0, selective.COMPILED
    selective.bootstrap_delta_aurc(warm / 2, 1 - warm / 2, warm, redraws=10)
    selective.COMPILED = plain
    for clusters in (None, rng.integers(0, CLUSTERS, OBSERVATIONS)):
        quick, slow, apart, delta = paired(old, new, error, clusters)
        what = "observations" if clusters is None else f"{CLUSTERS} clusters"
        print(f"paired difference of AURC, {REDRAWS} redraws of {what} (N = {OBSERVATIONS:,})")
        print(f"    {quick:8.3f} s, sorting again {slow:8.3f} s   ratio {slow / quick:.1f}; apart by {apart:.1e}")
        print(f"    difference {delta.observed:.6f} [{delta.low:.6f}, {delta.high:.6f}]: {delta.decision}")
        good = good and slow / quick >= 4 and apart < 1e-12
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
