"""The board: one document that says where each family stands, how sure that is, and what must not be claimed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from geoeval.evidence.canonical import plain, significant
from geoeval.evidence.shape import estimate_json, verdict_json
from geoeval.gates import family_status
from geoeval.keys import HEADLINE, RANKED_BY
from geoeval.model import Estimate, Evaluation, Stratum, Verdict

BOARD = "geoeval/board/1"

Colour = Literal["green", "amber", "red", "grey"]

SYNTHETIC = "synthetic: no product claim"


def board(
    run: str,
    evaluations: Mapping[str, Evaluation],
    verdicts: Sequence[Verdict],
    claim_limits: Sequence[str] = (),
    product_gates: Sequence[Verdict] = (),
    *,
    synthetic: bool = False,
) -> dict[str, Any]:
    """The content of ``board.json``.

    Parameters
    ----------
    run
        The run id.
    evaluations
        Evaluations by the name of their case.
    verdicts
        Verdicts of all families, as in ``gates.json``.
    claim_limits
        Sentences that limit what may be claimed.
    product_gates
        Verdicts on what the product needs beside its metrics.
    synthetic
        True where the inputs are synthetic; the first claim limit then says so.

    Returns
    -------
    dict
        Valid against the schema ``board``. The whole is green only where every family and every product gate passes.
    """
    families = {evaluation.family for evaluation in evaluations.values()} | {verdict.family for verdict in verdicts}
    rows = [
        _family(
            family,
            {name: part for name, part in sorted(evaluations.items()) if part.family == family},
            [verdict for verdict in verdicts if verdict.family == family],
        )
        for family in sorted(families)
    ]
    # A family without a verdict counts as not evaluable, so it must not vanish among those that have some.
    bare = [] if all(row["gates"] for row in rows) else ["not_evaluable"]
    every = [*verdicts, *product_gates]
    status = family_status(every)
    if status == "pass" and bare:
        status = "not_evaluable"
    limits = [SYNTHETIC, *claim_limits] if synthetic else list(claim_limits)
    return cast(
        "dict[str, Any]",
        plain(
            {
                "schema": BOARD,
                "run": run,
                "status": status,
                "colour": "grey" if bare and colour(every) != "red" else colour(every),
                "claim_limits": list(dict.fromkeys(limits)),
                "families": rows,
                "product_gates": [verdict_json(verdict) for verdict in product_gates],
            }
        ),
    )


def colour(verdicts: Sequence[Verdict]) -> Colour:
    """Green where all pass, amber where all that do not pass are waived, red where one fails, else grey.

    Examples
    --------
    >>> colour([])
    'grey'
    """
    open_rows = [verdict for verdict in verdicts if verdict.status != "pass"]
    if not verdicts:
        return "grey"
    if not open_rows:
        return "green"
    unwaived = [verdict for verdict in open_rows if verdict.waived_by is None]
    if not unwaived:
        return "amber"
    return "red" if any(verdict.status == "fail" for verdict in unwaived) else "grey"


def _family(family: str, evaluations: Mapping[str, Evaluation], verdicts: Sequence[Verdict]) -> dict[str, Any]:
    return {
        "family": family,
        "status": family_status(verdicts),
        "colour": colour(verdicts),
        "reasons": sorted({verdict.reason for verdict in verdicts if verdict.reason is not None})
        or _unjudged(verdicts),
        "cases": [_case(name, evaluation) for name, evaluation in evaluations.items()],
        "gates": [verdict_json(verdict) for verdict in verdicts],
    }


def _unjudged(verdicts: Sequence[Verdict]) -> list[str]:
    return [] if verdicts else ["no_policy"]


def _case(name: str, evaluation: Evaluation) -> dict[str, Any]:
    headline = {
        key: estimate_json(evaluation.estimates[key])
        for key in HEADLINE.get(evaluation.family, ())
        if key in evaluation.estimates
    }
    return {
        "case": name,
        "evaluator": evaluation.evaluator,
        "signature": evaluation.signature,
        "support": max((int(part.support) for part in evaluation.estimates.values()), default=0),
        "headline": headline,
        "worst_subgroup": worst_subgroup(evaluation),
    }


def worst_subgroup(evaluation: Evaluation) -> dict[str, Any] | None:
    """The subgroup in which the family's leading figure is worst, and how far that is from the overall figure.

    Subgroups in which the figure is undefined have no place in the ranking; their gates tell. None where there is no
    subgroup to rank.
    """
    for metric, more_is_better in RANKED_BY.get(evaluation.family, ()):
        if metric in evaluation.estimates:
            return _worst(evaluation, metric, more_is_better)
    return None


def _worst(evaluation: Evaluation, metric: str, more_is_better: bool) -> dict[str, Any] | None:
    def rank(entry: tuple[float, Stratum, Estimate]) -> tuple[float, list[tuple[str, str]]]:
        value, stratum, _ = entry
        return (value if more_is_better else -value, sorted(stratum.by.items()))

    found = [
        (value, stratum, stratum.estimates[metric])
        for stratum in evaluation.strata
        if metric in stratum.estimates and (value := _value(stratum.estimates[metric])) is not None
    ]
    if not found:
        return None
    value, stratum, estimate = min(found, key=rank)
    overall = _value(evaluation.estimates[metric])
    return {
        "by": dict(stratum.by),
        "metric": metric,
        "value": value,
        "gap": None if overall is None else value - overall,
        "support": int(estimate.support),
        "status": stratum.status,
    }


def _value(estimate: Estimate) -> float | None:
    """The value as it stands in evidence, so that a board from stored metrics is the same to the last byte."""
    if estimate.value is None or not math.isfinite(estimate.value):
        return None
    return significant(estimate.value)
