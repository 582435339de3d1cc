"""Estimates from ledgers, by hand, on a toy evaluator with known counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from geoeval.estimation import Plan, estimate, exact_lower_bound, per_class, stratify
from geoeval.ledger import Ledger, Row
from geoeval.model import Cell, Proportion, Quantity, Scalar, Unit, ratio_of
from geoeval.stats.tally import Rows, Tally, Totals


@dataclass(frozen=True, slots=True)
class Toy:
    """Counts hits and misses; its one ranked figure is the mean of a list."""

    name: str = "toy/1"
    family: str = "detection"

    def tally(self, unit: Unit[None]) -> None:
        raise AssertionError("estimates never look at a unit again")

    def quantities(self, totals: Totals) -> Mapping[str, Quantity]:
        tp, fp, fn = totals["tp"], totals["fp"], totals["fn"]
        return {
            "tp": Scalar(tp.astype(float), n=tp),
            "precision": Proportion(tp, tp + fp),
            "recall": Proportion(tp, tp + fn),
            "f1": ratio_of(2 * tp, 2 * tp + fp + fn),
        }

    def ranked(self, totals: Totals) -> Mapping[str, Quantity]:
        if "iou" not in totals.rows:
            return {"iou_median": Scalar(np.full(totals.size, np.nan), n=np.zeros(totals.size, dtype=np.int64))}
        rows = totals.rows["iou"]
        weights = [rows.weights(b) for b in range(totals.size)]
        means = [float(rows.values[:, 0] @ w / w.sum()) if w.sum() else np.nan for w in weights]
        return {"iou_median": Scalar(np.array(means), n=np.array([w.sum() for w in weights]))}

    def class_quantities(self, totals: Totals) -> Mapping[str, Mapping[str, Quantity]]:
        return {}


def ledger(*counts: tuple[int, int, int], field: str = "region") -> Ledger:
    """One cluster a triple of hits, inventions and misses; the first half lies in the north."""
    rows = []
    for i, (tp, fp, fn) in enumerate(counts):
        where = "north" if i < len(counts) / 2 else "south"
        cell = Cell(f"c{i:02d}", "car" if i % 2 else "bus", ((field, where),))
        rows.append(
            Row(
                f"u{i:02d}",
                cell,
                Tally.of(rows={"iou": Rows.of([0.5 + i / 100] * tp)} if tp else {}, tp=tp, fp=fp, fn=fn),
            )
        )
    return Ledger.of(rows)


def test_the_value_is_the_ratio_of_sums_not_the_mean_of_ratios():
    """1 of 1 and 1 of 9 give 2 of 10."""
    found = estimate(Toy(), ledger((1, 0, 0), (1, 0, 8)))
    assert found["recall"].value == pytest.approx(0.2)
    assert (found["recall"].numerator, found["recall"].denominator) == (2, 10)


def test_a_proportion_has_wilson_and_f1_never_does():
    found = estimate(Toy(), ledger(*[(8, 1, 2)] * 30))
    assert found["recall"].interval.method == "wilson_clustered"
    assert found["recall"].interval_iid is not None
    assert found["f1"].interval.method == "cluster_bootstrap"
    assert found["f1"].interval_iid is None


def test_counts_carry_no_interval_and_no_complaint():
    found = estimate(Toy(), ledger(*[(8, 1, 2)] * 30))
    assert found["tp"].interval is None
    assert found["tp"].reason is None


def test_nothing_at_all_is_undefined_with_a_reason():
    found = estimate(Toy(), Ledger())
    assert found["recall"].value is None
    assert found["recall"].reason == "undefined_ratio"
    assert (found["recall"].numerator, found["recall"].denominator) == (0, 0)


def test_one_cluster_has_no_spread():
    found = estimate(Toy(), ledger((8, 1, 2)))
    assert found["recall"].interval is None
    assert found["recall"].reason == "single_cluster"
    assert found["f1"].reason == "single_cluster"
    assert found["recall"].interval_iid is not None


def test_declared_independence_gives_the_plain_interval_only():
    found = estimate(Toy(), ledger((8, 1, 2), (7, 0, 3)), Plan(clustered=False))
    assert found["recall"].interval.method == "wilson"
    assert found["recall"].interval.clusters is None
    assert found["f1"].interval is None
    assert found["f1"].reason == "no_interval"


def test_few_clusters_are_marked():
    found = estimate(Toy(), ledger(*[(8, 1, 2)] * 6))
    assert "few_clusters" in found["recall"].marks
    assert "few_clusters" in found["f1"].marks


def test_the_order_of_rows_does_not_matter():
    rows = ledger(*[(i % 5 + 1, i % 3, i % 4) for i in range(24)]).rows
    assert estimate(Toy(), Ledger.of(reversed(rows))) == estimate(Toy(), Ledger.of(rows))


def test_ranked_figures_are_redrawn_too():
    found = estimate(Toy(), ledger(*[(3, 1, 1)] * 24))
    assert found["iou_median"].value == pytest.approx(0.5 + np.mean(range(24)) / 100)
    low, high = found["iou_median"].interval.low, found["iou_median"].interval.high
    assert low < found["iou_median"].value < high


def test_classes_are_the_rows_with_their_label():
    found = per_class(Toy(), ledger((1, 0, 0), (0, 0, 4)))
    assert found["bus"]["recall"].value == 1.0
    assert found["car"]["recall"].value == 0.0


def test_subgroups_come_from_the_same_ledger():
    found = stratify(Toy(), ledger((1, 0, 0), (0, 0, 4)), ["region"])
    assert [(one.by["region"], one.estimates["recall"].value) for one in found] == [("north", 1.0), ("south", 0.0)]


def test_a_critical_subgroup_that_is_absent_is_listed():
    found = stratify(Toy(), ledger((1, 0, 0), (0, 0, 4)), [], critical={"region": ["east", "north"]})
    assert {one.by["region"]: one.support_reason for one in found}["east"] == "critical_subgroup_missing"


def test_a_small_subgroup_says_so():
    found = stratify(Toy(), ledger((1, 0, 0), (0, 0, 4)), ["region"], min_support=3)
    assert {one.by["region"]: one.support_reason for one in found} == {"north": "low_support", "south": "no_policy"}


def test_precision_is_undefined_where_only_references_know_the_stratum():
    found = stratify(Toy(), ledger((1, 1, 0), (2, 0, 4)), ["region"], reference_only=frozenset({"region"}))
    assert found[0].estimates["precision"].value is None
    assert found[0].estimates["precision"].reason == "not_applicable"
    assert found[0].estimates["recall"].value == 1.0


def test_recall_of_a_validator_gets_the_exact_bound():
    """Zero misses in 59 support a recall of 0.95."""
    found = exact_lower_bound(estimate(Toy(), ledger((59, 0, 0)), Plan(clustered=False))["recall"])
    assert found.interval.low == pytest.approx(0.95, abs=0.0005)
    assert found.interval.high == 1.0


def test_a_ranked_figure_rests_only_on_clusters_that_hold_observations():
    """Thirty clusters, four of which have a hit: the median rests on four, and says so."""
    found = estimate(Toy(), ledger(*[(5, 0, 1)] * 4, *[(0, 1, 1)] * 26))
    assert found["iou_median"].interval.clusters == 4
    assert "few_clusters" in found["iou_median"].marks
    even = estimate(Toy(), ledger(*[(5, 0, 1)] * 30))
    assert even["iou_median"].interval.clusters == 30
    assert "few_clusters" not in even["iou_median"].marks


def test_a_ranked_figure_in_one_large_cluster_has_few_effective_ones():
    found = estimate(Toy(), ledger((400, 0, 0), *[(1, 0, 0)] * 29))
    assert found["iou_median"].interval.effective_clusters < 2
    assert "few_clusters" in found["iou_median"].marks
