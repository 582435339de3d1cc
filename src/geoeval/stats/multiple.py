"""Many tests at once: Holm's correction for flags, Bonferroni's for families of intervals.

Gates that must all clear need no correction; flags ("this subgroup differs") do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from geoeval.errors import ConfigError, InputError
from geoeval.model import FloatArray


@dataclass(frozen=True, slots=True)
class Adjusted:
    """Adjusted p values in the order given, and which of them are at most ``alpha``."""

    p: tuple[float, ...]
    rejected: tuple[bool, ...]


def _p_values(p: Sequence[float]) -> FloatArray:
    values = np.asarray(p, dtype=np.float64).reshape(-1)
    if not bool(np.all((values >= 0) & (values <= 1))):
        raise InputError(f"p values must lie in [0, 1], got {list(p)!r}; leave out what was not tested")
    return values


def _alpha(alpha: float) -> float:
    if not 0 < alpha < 1:
        raise ConfigError(f"alpha must lie in (0, 1), got {alpha!r}; is it a percentage?")
    return alpha


def holm(p: Sequence[float], alpha: float = 0.05) -> Adjusted:
    """Holm's step-down correction: at most ``alpha`` is the chance of any false flag, whatever the dependence.

    References
    ----------
    .. [1] Holm (1979), A simple sequentially rejective multiple test procedure. Scand. J. Statist. 6, 65-70.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    Adjusted(p=(0.03, 0.06, 0.06), rejected=(True, False, False))
    >>> holm([])
    Adjusted(p=(), rejected=())
    """
    values, limit = _p_values(p), _alpha(alpha)
    order = np.argsort(values, kind="stable")
    stepped = np.minimum(np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)), 1.0)
    out = np.empty_like(values)
    out[order] = stepped
    return Adjusted(tuple(out.tolist()), tuple((out <= limit).tolist()))


def bonferroni(p: Sequence[float], alpha: float = 0.05) -> Adjusted:
    """Bonferroni's correction: every p value times their number, at most 1. Never sharper than :func:`holm`.

    Examples
    --------
    >>> bonferroni([0.01, 0.04]).p
    (0.02, 0.08)
    """
    values, limit = _p_values(p), _alpha(alpha)
    out = np.minimum(values * len(values), 1.0)
    return Adjusted(tuple(out.tolist()), tuple((out <= limit).tolist()))


def bonferroni_z(tests: int, alpha: float = 0.05) -> float:
    """Normal quantile with which ``tests`` two-sided intervals hold together with confidence 1 − alpha.

    Examples
    --------
    >>> round(bonferroni_z(1), 6), round(bonferroni_z(10), 6)
    (1.959964, 2.807034)
    """
    from scipy.special import ndtri

    if tests < 1:
        raise ConfigError(f"a family has at least 1 member, got {tests!r}")
    return float(-ndtri(_alpha(alpha) / 2 / tests))
