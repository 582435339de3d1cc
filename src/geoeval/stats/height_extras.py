"""What stands beside the figures of elevation: other definitions in use, standards, histogram, bounds, normality.

NSSDA (FGDC-STD-007.3-1998) and ASPRS editions 1 (2014) and 2 (2023) speak of independent checkpoints; a comparison of
two rasters is a census of cells, and their figures are then None, "not_applicable".
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np

from geoeval.model import Finding, scalar_value
from geoeval.stats.distribution import PER_UNIT, moments
from geoeval.stats.error_cells import ABSOLUTE_SHARES, ERROR_SHARES, VALIDITY
from geoeval.stats.sketch import Sample, coarse_samples, whole_sample
from geoeval.stats.tally import Totals

#: Fewer checkpoints than these decide nothing (NSSDA and ASPRS edition 1; ASPRS edition 2).
NSSDA_CHECKPOINTS = 20
ASPRS2_CHECKPOINTS = 30

#: Below this ratio of NMAD to standard deviation, errors are not taken for normal.
NORMAL_RATIO = 0.8

CENSUS = "not a checkpoint test"

_QQ_SHARES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


def _entry(value: float | None, unit: str, reason: str | None = None, bound: float = 0.0) -> dict[str, Any]:
    undefined = value is None or not math.isfinite(value)
    return {
        "value": None if undefined else value,
        "unit": unit,
        "bound": bound,
        "reason": (reason or "no_support") if undefined else None,
    }


def _quantile(sample: Sample, share: float, unit: str, reason: str | None = None) -> dict[str, Any]:
    found = sample.quantile(share) if reason is None else None
    return _entry(None, unit, reason) if found is None else _entry(found[0], unit, None, found[1])


def _sample(totals: Totals) -> Sample:
    whole = whole_sample(totals)
    return coarse_samples(totals)[0] if whole is None else whole


def elevation_extras(
    totals: Totals, *, unit: str, edges: tuple[float, ...], survey_rmse: float | None
) -> dict[str, Any]:
    """Extras of the first total; every figure is ``{"value", "unit", "bound", "reason"}``, ``bound`` 0 where exact."""
    sample, figures = _sample(totals), {name: scalar_value(value) for name, value in moments(totals).items()}
    points, n = int(totals["checkpoints"][0]), int(totals["n"][0])
    distance = sample.folded(0.0)
    middle = sample.quantile(0.5)
    tails = sample.quantile(0.05), sample.quantile(0.95)
    rmse = figures["rmse"]
    out: dict[str, Any] = {
        "test": "checkpoints" if points and points == n else f"census of cells, {CENSUS}" if not points else "mixed",
        "cells": {name: int(totals[name][0]) for name in ("n", *VALIDITY)},
        "quantiles": {
            "error": {f"{share * 100:g}": _quantile(sample, share, unit) for share in ERROR_SHARES},
            "absolute": {f"{share * 100:g}": _quantile(distance, share, unit) for share in ABSOLUTE_SHARES},
        },
        "nmad": _pair(sample.nmad(), unit),
        "le90_gaussian": _entry(None if rmse is None else 1.6449 * rmse, unit),
        "p95_minus_p5": _entry(None, unit)
        if tails[0] is None or tails[1] is None
        else _entry(tails[1][0] - tails[0][0], unit, None, tails[1][1] + tails[0][1]),
        "p90_abs_centred": _entry(None, unit)
        if middle is None
        else _quantile(sample.folded(middle[0], middle[1]), 0.90, unit),
        "histogram": _histogram(sample, edges),
        "qq": _qq(sample, figures),
        "normality": _normality(sample, figures),
        **_standards(distance, rmse, points if points == n else 0, unit, survey_rmse),
    }
    if int(totals["rn"][0]):
        out.update(_relative(totals))
    return out


def _pair(found: tuple[float, float] | None, unit: str) -> dict[str, Any]:
    return _entry(None, unit) if found is None else _entry(found[0], unit, None, found[1])


def _standards(
    distance: Sample, rmse: float | None, points: int, unit: str, survey_rmse: float | None
) -> dict[str, dict[str, Any]]:
    """NSSDA and ASPRS figures; VVA is the one for vegetated points, so give land cover as a stratum."""
    few = _few(points, NSSDA_CHECKPOINTS)
    fewer = _few(points, ASPRS2_CHECKPOINTS) or ("not_applicable" if survey_rmse is None else None)
    combined = None if survey_rmse is None or rmse is None else math.hypot(rmse, survey_rmse)
    return {
        "nssda_95": _entry(None if few or rmse is None else 1.9600 * rmse, unit, few),
        "asprs_ed1_nva": _entry(None if few or rmse is None else 1.96 * rmse, unit, few),
        "asprs_ed1_vva": _quantile(distance, 0.95, unit, few),
        "asprs_ed2_rmse": _entry(None if fewer else combined, unit, fewer),
    }


def _few(points: int, needed: int) -> str | None:
    if points == 0:
        return "not_applicable"
    return "low_support" if points < needed else None


def _histogram(sample: Sample, edges: tuple[float, ...]) -> dict[str, Any]:
    """Counts between declared edges, left-closed, the last bin closed; a bin of a sketch counts where its middle is."""
    place = np.searchsorted(np.asarray(edges), sample.values, side="right")
    place[sample.values == edges[-1]] = len(edges) - 1
    counts = np.bincount(place, weights=sample.weights, minlength=len(edges) + 1).astype(np.int64).tolist()
    return {"edges": list(edges), "below": counts[0], "counts": counts[1:-1], "above": counts[-1]}


def _qq(sample: Sample, figures: dict[str, float | None]) -> list[dict[str, float]]:
    """Quantiles of the errors beside those of a normal distribution with their mean and standard deviation."""
    mean, spread = figures["bias"], figures["std"]
    if mean is None or spread is None:
        return []
    out = []
    for share in _QQ_SHARES:
        found = sample.quantile(share)
        assert found is not None
        out.append(
            {"share": share, "normal": mean + spread * NormalDist().inv_cdf(share), "observed": found[0]},
        )
    return out


def _normality(sample: Sample, figures: dict[str, float | None]) -> dict[str, Any]:
    spread, robust = figures["std"], sample.nmad()
    if spread is None or robust is None or spread == 0:
        return {"nmad_over_std": None, "limit": NORMAL_RATIO, "normal": None}
    share = robust[0] / spread
    return {"nmad_over_std": share, "limit": NORMAL_RATIO, "normal": share >= NORMAL_RATIO}


def _relative(totals: Totals) -> dict[str, dict[str, Any]]:
    """R² = 1 − Σe² / Σ(reference − mean)², and the mean of |e| / |reference|."""
    n, r1, r2, e2 = (int(totals[name][0]) for name in ("rn", "r1", "r2", "e2"))
    spread = n * r2 - r1**2
    undefined = int(totals["ape_undefined"][0])
    return {
        "coefficient_of_determination": _entry(1 - n * e2 / spread if spread > 0 else None, "1", "undefined_ratio"),
        "mean_absolute_percentage_error": _entry(
            None if undefined else int(totals["ape"][0]) / (n * PER_UNIT), "1", "undefined_ratio"
        ),
    }


def elevation_remarks(totals: Totals) -> tuple[Finding, ...]:
    """Findings on the first total: a census, too few checkpoints, errors that are not normal."""
    points, n = int(totals["checkpoints"][0]), int(totals["n"][0])
    found = []
    known = int(totals["reference_valid"][0])
    if known and not n:
        says = f"the reference has {known} heights, and the prediction has none at any of these places"
        found.append(Finding("no-overlap", "major", (), says, "check the coordinate systems and nodata of both sides"))
    if n and not points:
        says = f"two rasters were compared cell by cell ({n} cells): {CENSUS}; NSSDA and ASPRS figures are not given"
        found.append(Finding("heights-census", "info", (), says, "compare with independent checkpoints"))
    elif 0 < points < ASPRS2_CHECKPOINTS:
        says = f"{points} checkpoints; NSSDA asks for {NSSDA_CHECKPOINTS}, ASPRS edition 2 for {ASPRS2_CHECKPOINTS}"
        found.append(Finding("few-checkpoints", "minor", (), says, "survey more checkpoints"))
    figures = {name: scalar_value(value) for name, value in moments(totals).items()}
    normality = _normality(_sample(totals), figures)
    if normality["normal"] is False:
        says = f"NMAD is {normality['nmad_over_std']:.3f} of the standard deviation (below {NORMAL_RATIO})"
        mend = "report nmad and le90 rather than figures that assume normal errors, and look for outliers"
        found.append(Finding("errors-not-normal", "minor", (), says, mend))
    return tuple(found)
