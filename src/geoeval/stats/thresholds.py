"""The threshold that accepts enough at the highest precision, chosen on validation; and what it accepts elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from geoeval.errors import ConfigError, InputError, LeakageError
from geoeval.stats.columns import flags, unit_interval
from geoeval.stats.risk import attainable_points


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """What a threshold accepts. ``precision`` is None where it accepts nothing: a gate on it is then blocked."""

    threshold: float
    n: int
    accepted: int
    correct: int
    coverage: float | None
    precision: float | None


def _point(threshold: float, n: int, accepted: int, correct: int) -> OperatingPoint:
    return OperatingPoint(
        threshold, n, accepted, correct, accepted / n if n else None, correct / accepted if accepted else None
    )


def select_threshold(
    confidence: Any, error: Any, min_coverage: float, *, split: str, total: int | None = None
) -> OperatingPoint | None:
    """The threshold of highest precision among those with enough coverage; ties go to the wider coverage.

    argmax over t of correct(c ≥ t) / accepted(c ≥ t), where accepted / total ≥ ``min_coverage`` [1]_. Candidates are
    the distinct confidences; coverage and precision are compared as exact fractions, the floor as the decimal number
    that was declared.

    Parameters
    ----------
    confidence : (n,)
        In [0, 1].
    error : (n,)
        0 or 1.
    min_coverage
        In [0, 1].
    split
        Name of the split that the observations are from; only ``"validation"`` is accepted.
    total
        How many cases the split holds, where some have no confidence because they were abstained: coverage is a share
        of these. All are observations where it is left out.

    Returns
    -------
    OperatingPoint or None
        None without observations, and where no threshold reaches the coverage.

    Raises
    ------
    LeakageError
        For any split but validation.

    References
    ----------
    .. [1] Geifman and El-Yaniv (2017), Selective classification for deep neural networks. NeurIPS.

    Examples
    --------
    >>> select_threshold([0.9, 0.8, 0.7, 0.6, 0.5], [0, 0, 1, 0, 1], 0.6, split="validation").threshold
    0.6
    >>> select_threshold([], [], 0.6, split="validation") is None
    True
    >>> select_threshold([0.9, 0.8, 0.7], [0, 0, 1], 0.5, split="validation", total=6).threshold
    0.7
    """
    if split != "validation":
        raise LeakageError(f"a threshold may be selected on the split 'validation' only, got {split!r}")
    if not 0 <= min_coverage <= 1:
        raise ConfigError(f"min_coverage must lie in [0, 1], got {min_coverage!r}; is it a percentage?")
    points = attainable_points(unit_interval(confidence, "confidence"), error)
    n = points.n if total is None else total
    if n < points.n:
        raise InputError(f"total must count all observations, got {n} for {points.n} of them")
    floor = Fraction(repr(float(min_coverage)))
    best: tuple[Fraction, int, int] | None = None
    for i, (accepted, correct) in enumerate(zip(points.accepted.tolist(), points.correct.tolist(), strict=True)):
        if Fraction(accepted, n) >= floor:
            found = (Fraction(correct, accepted), accepted, i)
            best = found if best is None or found > best else best
    if best is None:
        return None
    at = best[2]
    return _point(float(points.threshold[at]), n, int(points.accepted[at]), int(points.correct[at]))


def score_at(confidence: Any, error: Any, threshold: float) -> OperatingPoint:
    """What a threshold accepts on another split: to be asked once, on test.

    Coverage is accepted / N, precision correct / accepted, both in [0, 1]; None where N or accepted is 0. Plain
    counting (El-Yaniv and Wiener 2010, On the foundations of noise-free selective classification. JMLR).

    Examples
    --------
    >>> score_at([0.9, 0.2], [0, 1], 0.5).precision
    1.0
    >>> score_at([0.1, 0.2], [0, 1], 0.5).precision is None
    True
    """
    column = unit_interval(confidence, "confidence")
    wrong = flags(error, "error", len(column))
    held = column >= threshold
    accepted = int(held.sum())
    return _point(float(threshold), len(column), accepted, accepted - int(wrong[held].sum()))
