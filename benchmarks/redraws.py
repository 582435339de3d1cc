"""Intervals by matrix product, against summing the drawn rows of each redraw, and against scipy.stats.bootstrap.

2000 redraws of 100 clusters for the whole and for 60 subgroups. Prints seconds and ratios; the peers redraw one figure
of the whole only.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.stats import bootstrap

from geoeval.estimation import Plan, estimate, stratify
from geoeval.evaluators.change import Change
from geoeval.ledger import Ledger, Row
from geoeval.model import Cell
from geoeval.stats.tally import Tally

CLUSTERS, SUBGROUPS, REDRAWS = 100, 60, 2000


def ledger() -> Ledger:
    rng = np.random.default_rng(1)
    rows = []
    for cluster in range(CLUSTERS):
        for group in range(SUBGROUPS):
            tp, fp, fn = (int(v) for v in rng.integers(0, 9, size=3))
            cell = Cell(f"c{cluster:03d}", "", (("group", f"g{group:02d}"),))
            rows.append(Row("u", cell, Tally.of(tp=tp, fp=fp, fn=fn)))
    return Ledger.of(rows)


def timed(work):
    start = time.perf_counter()
    out = work()
    return time.perf_counter() - start, out


def main() -> None:
    evaluator, table, plan = Change(), ledger(), Plan(redraws=REDRAWS)
    estimate(evaluator, table, plan)
    whole, _ = timed(lambda: estimate(evaluator, table, plan))
    strata, found = timed(lambda: stratify(evaluator, table, ["group"], plan))
    counts = np.array(
        [
            [
                sum(row.tally.sums.get(name, 0) for row in table.rows if row.cell.cluster == c)
                for name in ("tp", "fp", "fn")
            ]
            for c in (f"c{i:03d}" for i in range(CLUSTERS))
        ]
    )
    rng = np.random.default_rng(0)

    def loop():
        out = []
        for _ in range(REDRAWS):
            tp, fp, fn = counts[rng.integers(0, CLUSTERS, CLUSTERS)].sum(axis=0)
            out.append(2 * tp / (2 * tp + fp + fn))
        return np.percentile(out, [2.5, 97.5])

    def peer():
        def f1(tp, fp, fn, axis=-1):
            a, b, c = tp.sum(axis), fp.sum(axis), fn.sum(axis)
            return 2 * a / (2 * a + b + c)

        return bootstrap(tuple(counts.T), f1, paired=True, n_resamples=REDRAWS, method="percentile", vectorized=True)

    looped, _ = timed(loop)
    peered, _ = timed(peer)
    print(f"all figures of the whole, {REDRAWS} redraws of {CLUSTERS} clusters   {whole:8.3f} s")
    print(f"all figures of {len(found)} subgroups                                {strata:8.3f} s")
    print(f"one figure of the whole, a loop over redraws             {looped:8.3f} s   ratio {looped / whole:.1f}")
    print(f"one figure of the whole, scipy.stats.bootstrap           {peered:8.3f} s   ratio {peered / whole:.1f}")


if __name__ == "__main__":
    main()
