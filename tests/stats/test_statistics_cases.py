"""Known answers: exact rationals, other libraries' values, enumerated bootstraps. Every row, and no unknown family."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rfc8785

from geoeval.errors import GeoevalError
from geoeval.stats import agreement, calibration, interval, multiple, ranking, selective
from geoeval.stats.bootstrap import percentile_interval
from geoeval.stats.rounding import round12
from geoeval.stats.spread import cluster_spread
from geoeval.stats.tally import RowTotals, Tally, clustered

FOLDER = Path(os.environ.get("GEOEVAL_CASES", Path(__file__).resolve().parents[2].parent / "shared" / "cases"))
FILE = FOLDER / "statistics.json"
OWN = Path(__file__).with_name("known_answers.json")

Case = dict[str, Any]


def rows() -> Iterator[Any]:
    if not FILE.is_file():
        why = pytest.mark.skip(reason="GEOEVAL_CASES is not set and no statistics.json stands beside the project")
        yield pytest.param({}, id="absent", marks=why)
        return
    for row in json.loads(FILE.read_text(encoding="utf-8"))["rows"]:
        yield pytest.param(row, id=row["id"])


def wilson95(k: Any, n: Any) -> Case:
    low, high = interval.wilson(k, n)
    return {"point": k / n if n else None, "lo": low, "hi": high, "support": n, "reason": None if n else "no_support"}


def wilson(k: Any, n: Any, level: float) -> Case:
    low, high = interval.wilson(k, n, level)
    return {"lo": low, "hi": high}


def wilson_continuity(k: Any, n: Any) -> Case:
    low, high = interval.wilson_continuity(k, n)
    return {"lo": low, "hi": high}


def clopper_pearson(k: Any, n: Any) -> Case:
    low, high = interval.clopper_pearson(k, n)
    return {"lo": low, "hi": high}


def cluster_variance_of_ratio(k: list[int], n: list[int]) -> Case:
    spread = cluster_spread(k, n)
    variance = spread.variance
    return {
        "point": spread.hits / spread.trials,
        "var": variance,
        "se": None if variance is None else math.sqrt(variance),
    }


def raoscott_wilson(
    k: list[int], n: list[int], df_adjust: bool = True, clamp_deff_at_1: bool = True, icc_floor: float = 0.1
) -> Case:
    spread = cluster_spread(k, n)
    found = interval.clustered_wilson_by(
        k, n, df_adjust=df_adjust, clamp_at_1=clamp_deff_at_1, correlation_floor=icc_floor
    )
    if (df_adjust, clamp_deff_at_1, icc_floor) == (True, True, 0.1):
        assert found == interval.clustered_wilson(k, n)
    return {
        "point": found.value,
        "N": spread.trials,
        "clusters": found.clusters,
        "dropped": found.dropped,
        "var": spread.variance,
        "deff": spread.design_effect,
        "deff_used": found.design_effect,
        "deff_floored": "deff_floor" in found.marks,
        "n_eff": found.n_eff,
        "n_eff_df": found.n_star,
        "lo": found.low,
        "hi": found.high,
        "kish_effective_clusters": interval.kish_effective(n),
        "reason": found.reason,
    }


def aurc_discrete_tie_average(confidence: list[float], error: list[int], rng: str = "") -> Case:
    found = selective.risk_coverage(confidence, error)
    areas = found.areas
    return {
        "aurc": areas.aurc,
        "aurc_optimal_discrete": areas.aurc_best,
        "eaurc_discrete": areas.eaurc,
        "augrc": areas.augrc,
        "augrc_optimal_discrete": areas.augrc_best,
        "eaugrc_discrete": areas.eaugrc,
        "risk": areas.errors / areas.n if areas.n else None,
        "n": areas.n,
        "reason": found.reason,
    }


def ece10(confidence: list[float], correct: list[int]) -> Case:
    return {
        "left_closed": calibration.ece(confidence, correct),
        "hist_left": calibration.bin_counts(confidence).tolist(),
    }


def ece_bin_index(confidence: float) -> Case:
    return {"edge_search": int(calibration.bin_index([confidence])[0]), "int_times_10": int(confidence * 10)}


def brier_binary(p: list[float], y: list[int]) -> Case:
    return {"brier": calibration.brier(p, y)}


def brier_multiclass(p: list[list[float]], y: list[int]) -> Case:
    return {
        "sum_form": calibration.brier_multiclass(p, y, "sum"),
        "half_form": calibration.brier_multiclass(p, y, "half"),
    }


def threshold_selection(val_confidence: list[float], val_error: list[int], coverage_floor: float) -> Case:
    found = selective.select_threshold(val_confidence, val_error, coverage_floor, split="validation")
    names = ("threshold", "accepted", "coverage", "precision")
    return {name: None if found is None else getattr(found, name) for name in names}


def attainable_points(confidence: list[float], error: list[int]) -> Case:
    found = ranking.attainable_points(confidence, error)
    names = ("threshold", "accepted", "coverage", "precision")
    columns = [getattr(found, name).tolist() for name in names]
    return {"points": [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]}


def adopt_rule(lo: float | None, hi: float | None) -> Case:
    return {"decision": selective.adoption(lo, hi)}


def macro_f1(y_true: list[Any], y_pred: list[Any], labels: list[Any]) -> Case:
    found = selective.macro_f1(y_true, y_pred, labels)
    return {
        "per_class": {str(one.label): one.f1 for one in found.per_class},
        "macro_f1": found.value,
        "excluded": [{"label": one.label, "reason": one.reason, "predicted": one.predicted} for one in found.excluded],
        "macro_f1_counting_spurious_as_zero": found.counting_spurious_as_zero,
        "spurious": list(found.spurious),
        "reason": found.reason,
    }


def multiple_tests(p: list[float], alpha: float, method: str) -> Case:
    found = {"holm": multiple.holm, "bonferroni": multiple.bonferroni}[method](p, alpha)
    return {"adjusted": list(found.p), "rejected": sum(found.rejected)}


def simultaneous_wilson(k: int, n: int, subgroups: int, alpha: float) -> Case:
    low, high = interval.simultaneous_wilson(k, n, subgroups, 1 - alpha)
    return {"z": multiple.bonferroni_z(subgroups, alpha), "lo": low, "hi": high}


def deferral(confidence: list[float], quality_local: list[float], quality_expert: list[float]) -> Case:
    found = selective.deferral_curve(confidence, quality_local, quality_expert)
    names = ("audc", "qnc", "peak", "peak_at", "random_line_audc", "reason")
    return {"points": [list(point) for point in found.points], **{name: getattr(found, name) for name in names}}


def deferral_operating_points(cost_quality: list[list[float]]) -> Case:
    found = selective.deferral_single_arm(cost_quality)
    return {name: getattr(found, name) for name in ("audc", "qnc", "peak", "reason")}


def canonical_json(**inputs: str) -> Case:
    if "python" in inputs:
        # The one thing that a literal cannot say.
        value = eval(inputs["python"], {"__builtins__": {}}, {"float": float})
    else:
        value = json.loads(inputs["json"])
    try:
        octets = rfc8785.dumps(value)
    except rfc8785.CanonicalizationError as problem:
        raise GeoevalError("not canonical") from problem
    plain = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    return {
        "utf8_hex": octets.hex(),
        "sha256": hashlib.sha256(octets).hexdigest(),
        "differs_from_json_dumps_sort_keys": octets != plain,
    }


def agree(judge: list[int], verifier: list[int]) -> Case:
    found = agreement.agreement(judge, verifier)
    return {
        "n": found.n,
        "agreement": found.agreement,
        "wilson": [found.low, found.high],
        "cohen_kappa": found.kappa,
        "judge_only": found.judge_only,
        "verifier_only": found.verifier_only,
        "bias": found.bias,
        "mcnemar_exact_p": found.p,
        "reason": found.reason,
    }


def multiplicities(clusters: int) -> np.ndarray:
    """Every draw of ``clusters`` clusters with replacement, as multiplicities."""
    draws = np.array(list(itertools.product(range(clusters), repeat=clusters)))
    return (draws[:, :, None] == np.arange(clusters)).sum(axis=1).astype(np.int64)


def spread_of(values: np.ndarray) -> Case:
    bounds = percentile_interval(values)
    assert bounds is not None
    return {
        "mean": math.fsum(values) / len(values),
        "sd": float(np.std(values)),
        "p2_5": bounds[0],
        "p97_5": bounds[1],
        "n_resamples": len(values),
        "distinct_values": len(np.unique(np.round(values, 12))),
    }


def cluster_bootstrap_exact(k: list[int], n: list[int], statistic: str) -> Case:
    table = clustered({str(i): Tally.of(k=a, n=b) for i, (a, b) in enumerate(zip(k, n, strict=True))})
    totals = table.totals(multiplicities(len(k)))
    return {**spread_of(totals["k"] / totals["n"]), "point": sum(k) / sum(n), "clusters": len(k)}


def paired_bootstrap_exact(
    conf_baseline: list[float],
    conf_candidate: list[float],
    err_baseline: list[int],
    err_candidate: list[int],
    delta: str,
) -> Case:
    each, every = np.arange(len(conf_baseline)), multiplicities(len(conf_baseline))
    before, after = (
        ranking.aurc_redraws(RowTotals(np.column_stack([c, e]), each, every), 0, 1)
        for c, e in ((conf_baseline, err_baseline), (conf_candidate, err_candidate))
    )
    exact = spread_of(before - after)
    drawn = selective.bootstrap_delta_aurc(
        conf_baseline, conf_candidate, err_baseline, err_candidate, redraws=2000, seed=1
    )
    assert drawn.bootstrap_mean == pytest.approx(exact["mean"], abs=4 * exact["sd"] / math.sqrt(2000))
    return {**exact, "point": drawn.observed}


def percentile(x: list[float], q: list[float], method: str) -> Case:
    assert method == "linear"
    low, high = (ranking.weighted_quantile(x, None, share / 100) for share in q)
    if sum(q) == 100:
        assert percentile_interval(np.array(x, dtype=float), (q[1] - q[0]) / 100) == pytest.approx((low, high))
    return {"lo": low, "hi": high}


def float_rounding(scipy: float, statsmodels: float) -> Case:
    assert round12(scipy) == round12(statsmodels)
    return {"equal_bits": scipy == statsmodels, "rounded12": round12(scipy)}


FAMILIES: dict[str, Callable[..., Case]] = {
    "wilson95": wilson95,
    "wilson": wilson,
    "wilson_continuity": wilson_continuity,
    "clopper_pearson": clopper_pearson,
    "cluster_variance_of_ratio": cluster_variance_of_ratio,
    "raoscott_wilson": raoscott_wilson,
    "aurc_discrete_tie_average": aurc_discrete_tie_average,
    "ece10": ece10,
    "ece_bin_index": ece_bin_index,
    "brier_binary": brier_binary,
    "brier_multiclass": brier_multiclass,
    "threshold_selection": threshold_selection,
    "attainable_points": attainable_points,
    "adopt_rule": adopt_rule,
    "macro_f1": macro_f1,
    "multiple_tests": multiple_tests,
    "simultaneous_wilson": simultaneous_wilson,
    "deferral": deferral,
    "deferral_operating_points": deferral_operating_points,
    "canonical_json": canonical_json,
    "agreement": agree,
    "cluster_bootstrap_exact": cluster_bootstrap_exact,
    "paired_bootstrap_exact": paired_bootstrap_exact,
    "percentile": percentile,
    "float_rounding": float_rounding,
}

#: What rows tell of other tools or other definitions: not ours to reproduce.
PEERS = {
    "aurc_discrete_tie_average": {"eaurc_geifman", "aurc_worst_order", "aurc_best_order", "aurc_input_order"},
    "ece10": {"right_closed", "hist_right", "netcal", "mapie", "guo_right_closed_drops_zero"},
    "macro_f1": {"sklearn"},
}


def holds(found: Any, expected: Any, tol: float) -> bool:
    if expected is None or isinstance(expected, bool | str):
        return type(found) is type(expected) and bool(found == expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(holds(a, b, tol) for a, b in zip(found, expected, strict=True))
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(holds(found[name], expected[name], tol) for name in expected)
    return isinstance(found, int | float) and abs(found - expected) <= tol


@pytest.mark.shared
@pytest.mark.parametrize("row", list(rows()))
def test_the_known_answer_is_reproduced(row):
    assert_known(row)


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in json.loads(OWN.read_text("utf-8"))["rows"]])
def test_our_own_known_answer_is_reproduced(row):
    assert_known(row)


def assert_known(row: Case) -> None:
    assert row["family"] in FAMILIES, f"unknown family {row['family']!r}: it is not skipped"
    run, expected = FAMILIES[row["family"]], dict(row["expected"])
    if expected.pop("refused", False):
        with pytest.raises(GeoevalError):
            run(**row["inputs"])
        return
    found = run(**row["inputs"])
    for name in PEERS.get(row["family"], ()):
        expected.pop(name, None)
    assert expected, "a row without an expectation proves nothing"
    for name, value in expected.items():
        assert name in found, f"{name!r} is expected and not computed"
        assert holds(found[name], value, row["tol"]), f"{name}: {found[name]!r} is not {value!r} within {row['tol']}"


def test_a_wrong_value_does_not_hold():
    assert not holds(0.1 + 2e-12, 0.1, 1e-12)
    assert not holds(None, 0.0, 1e-12)
    assert not holds(0.0, None, 1e-12)
    assert not holds([1], [1, 2], 0)
    assert not holds({"a": 1}, {"a": 1, "b": 2}, 0)
