"""Two raters of the same items: agreement, kappa, bias and its direction, dimension by dimension.

Conventions   a rater says 1 or 0 to each item; ``judge`` is the rater under test, ``verifier`` the one that is right.
              b counts what only the judge accepts, c what only the verifier accepts; bias is (b − c)/n.
Verdict       biased: significant after Holm's correction *and* at least the margin. Unbiased: the whole interval of
              the bias lies within the margin. Neither: not evaluable. Nothing is unbiased for want of items.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from geoeval.errors import ConfigError, InputError
from geoeval.stats.columns import flags
from geoeval.stats.interval import normal_quantile, wilson
from geoeval.stats.multiple import holm

Bias = Literal["biased", "unbiased", "not_evaluable"]
Direction = Literal["judge_higher", "judge_lower"]


@dataclass(frozen=True, slots=True)
class Agreement:
    """What two raters say about ``n`` items in one dimension. Figures are None without items."""

    n: int = 0
    agreed: int = 0
    judge_only: int = 0
    verifier_only: int = 0
    judge_rate: float | None = None
    verifier_rate: float | None = None
    agreement: float | None = None
    low: float | None = None
    high: float | None = None
    kappa: float | None = None
    bias: float | None = None
    bias_low: float | None = None
    bias_high: float | None = None
    p: float | None = None
    p_holm: float | None = None
    verdict: Bias = "not_evaluable"
    direction: Direction | None = None
    reason: str | None = None


def cohen_kappa(judge: Any, verifier: Any) -> float | None:
    """Cohen's kappa: agreement beyond chance, between −1 and 1; labels of any kind.

    ``(p_o − p_e) / (1 − p_e)``. None without items, and where both raters are constant: then nothing is measured.

    References
    ----------
    .. [1] Cohen (1960), A coefficient of agreement for nominal scales. Educ. Psychol. Meas. 20, 37-46.

    Examples
    --------
    >>> cohen_kappa([1, 1, 0, 0, 1, 0, 1, 0], [1, 0, 0, 0, 1, 1, 1, 0])
    0.5
    >>> cohen_kappa([1, 1], [1, 1]) is None
    True
    """
    a, b = np.asarray(judge).reshape(-1), np.asarray(verifier).reshape(-1)
    if len(a) != len(b):
        raise InputError(f"both raters must rate the same items, got {len(a)} and {len(b)}")
    labels, index = np.unique(np.concatenate([a, b]), return_inverse=True)
    n = len(a)
    first = np.bincount(index[:n], minlength=len(labels)).tolist()
    second = np.bincount(index[n:], minlength=len(labels)).tolist()
    if n == 0 or (max(first) == n and max(second) == n):
        return None
    agreed = int(np.sum(index[:n] == index[n:]))
    chance = sum(x * y for x, y in zip(first, second, strict=True))
    return float((n * agreed - chance) / (n * n - chance))


def mcnemar_exact(judge_only: int, verifier_only: int) -> float:
    """Exact two-sided p value that the discordant items fall to either side with equal chance; 1 without any.

    References
    ----------
    .. [1] McNemar (1947), Psychometrika 12, 153-157; exact form by the binomial distribution.

    Examples
    --------
    >>> mcnemar_exact(1, 1), mcnemar_exact(0, 5)
    (1.0, 0.0625)
    """
    discordant, least = judge_only + verifier_only, min(judge_only, verifier_only)
    if least < 0:
        raise InputError(f"counts must be at least 0, got {judge_only} and {verifier_only}")
    term, tail = 1, 0
    for i in range(least + 1):
        tail += term
        term = term * (discordant - i) // (i + 1)
    return min(1.0, float(2 * tail / 2**discordant))


def paired_difference_interval(b: int, c: int, n: int, confidence: float = 0.95) -> tuple[float, float] | None:
    """Tango's score interval of (b − c)/n for n paired items with b and c discordant ones; None without items.

    Unlike Wald's it keeps its width where no item is discordant: then its bounds are ± z²/(n + z²).

    References
    ----------
    .. [1] Tango (1998), Equivalence test and confidence interval for the difference in proportions for the
       paired-sample design. Stat. Med. 17, 891-908.

    Examples
    --------
    >>> low, high = paired_difference_interval(0, 0, 50)
    >>> round(low, 4), round(high, 4)
    (-0.0713, 0.0713)
    """
    if min(b, c) < 0 or b + c > n:
        raise InputError(f"discordant counts must be at least 0 and at most n together, got {b}, {c} of {n}")
    if n == 0:
        return None
    upper = _tango_upper(b, c, n, confidence)
    return -_tango_upper(c, b, n, confidence), upper


def _tango_upper(b: int, c: int, n: int, confidence: float) -> float:
    """Largest difference whose score test does not reject, by bisection to the last bits."""
    low, high = (b - c) / n, 1.0
    z = normal_quantile(confidence)
    for _ in range(60):
        middle = (low + high) / 2
        linear = (2 * n - b + c) * middle - b - c
        root = math.sqrt(max(0.0, linear * linear + 8 * n * c * middle * (1 - middle)))
        share = (root - linear) / (4 * n)
        spread = n * (2 * share + middle * (1 - middle))
        if n * middle - (b - c) <= z * math.sqrt(max(spread, 0.0)):
            low = middle
        else:
            high = middle
    return (low + high) / 2


def agreement(judge: Any, verifier: Any, confidence: float = 0.95) -> Agreement:
    """Agreement of two raters in one dimension, without a verdict on bias.

    Parameters
    ----------
    judge, verifier : (n,)
        0 or 1 for each item, items in the same order.
    confidence
        Of both intervals.

    Examples
    --------
    >>> found = agreement([1, 1, 0, 0, 1, 0, 1, 0], [1, 0, 0, 0, 1, 1, 1, 0])
    >>> found.agreement, found.kappa, found.bias, found.p
    (0.75, 0.5, 0.0, 1.0)
    """
    a = flags(judge, "judge", len(np.asarray(judge)))
    b = flags(verifier, "verifier", len(a))
    n = len(a)
    only_a, only_b = int(np.sum((a == 1) & (b == 0))), int(np.sum((a == 0) & (b == 1)))
    agreed = n - only_a - only_b
    if n == 0:
        return Agreement(reason="no_support")
    low, high = wilson(agreed, n, confidence)
    difference = paired_difference_interval(only_a, only_b, n, confidence)
    assert difference is not None
    return Agreement(
        n=n,
        agreed=agreed,
        judge_only=only_a,
        verifier_only=only_b,
        judge_rate=int(a.sum()) / n,
        verifier_rate=int(b.sum()) / n,
        agreement=agreed / n,
        low=low,
        high=high,
        kappa=cohen_kappa(a, b),
        bias=(only_a - only_b) / n,
        bias_low=difference[0],
        bias_high=difference[1],
        p=mcnemar_exact(only_a, only_b),
    )


def assess(
    dimensions: Mapping[str, tuple[Any, Any]], margin: float, *, alpha: float = 0.05, confidence: float = 0.95
) -> dict[str, Agreement]:
    """Agreement in every dimension, with a verdict on bias that is corrected for their number.

    Parameters
    ----------
    dimensions
        Name to (judge, verifier), each (n,) of 0 and 1.
    margin
        Bias that matters, declared before, in (0, 1).
    alpha
        Chance of any false "biased" over all dimensions.
    confidence
        Of the intervals.

    Returns
    -------
    dict
        Dimensions by name, sorted. ``direction`` is named where ``verdict`` is ``biased``.

    Examples
    --------
    >>> found = assess({"tone": ([1] * 20, [1] * 5 + [0] * 15)}, margin=0.1)
    >>> found["tone"].verdict, found["tone"].direction
    ('biased', 'judge_higher')
    """
    if not 0 < margin < 1:
        raise ConfigError(f"margin must lie in (0, 1), got {margin!r}; is it a percentage?")
    found = {name: agreement(*dimensions[name], confidence=confidence) for name in sorted(dimensions)}
    tested = {name: one.p for name, one in found.items() if one.p is not None}
    adjusted = dict(zip(tested, holm(list(tested.values()), alpha).p, strict=True))
    return {name: _judged(one, adjusted.get(name), margin, alpha) for name, one in found.items()}


def _judged(one: Agreement, p: float | None, margin: float, alpha: float) -> Agreement:
    if p is None or one.bias is None or one.bias_low is None or one.bias_high is None:
        return one
    if p <= alpha and abs(one.bias) >= margin:
        return replace(
            one,
            p_holm=p,
            verdict="biased",
            direction="judge_higher" if one.bias > 0 else "judge_lower",
            reason="biased_dimension",
        )
    if -margin <= one.bias_low and one.bias_high <= margin:
        return replace(one, p_holm=p, verdict="unbiased")
    return replace(one, p_holm=p, reason="ci_straddles_threshold")


def biased_dimensions(found: Mapping[str, Agreement]) -> tuple[str, ...]:
    """Names of the dimensions that are biased, sorted.

    Examples
    --------
    >>> biased_dimensions(assess({"tone": ([1] * 20, [0] * 20), "fact": ([1, 0], [1, 0])}, margin=0.1))
    ('tone',)
    """
    return tuple(sorted(name for name, one in found.items() if one.verdict == "biased"))
