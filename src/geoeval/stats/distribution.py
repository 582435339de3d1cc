"""Error distributions that add: exact moments, and every figure that is read off them.

Conventions   an error is prediction minus reference. A tally holds ``n`` and the whole numbers ``e1`` to ``e4`` (the
              sums of e, e², e³, e⁴ in powers of 1e-12 units) and ``a1`` (the sum of |e|). They are whole numbers of any
              size, so a bias of a kilometre costs a spread of a millimetre no digit.
Quantities    bias, MAE, RMSE, standard deviation (ddof 1), skewness g1 and excess kurtosis g2 (population moments, as
              scipy's defaults); NMAD and percentiles of the error and of its absolute value (numpy's ``linear``).
Differs       from float accumulators: no order, tiling or number of workers can change a digit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.model import FloatArray
from geoeval.stats.sketch import NMAD_FACTOR, Sample
from geoeval.stats.tally import Totals

#: Quanta per unit of an error.
PER_UNIT = 10**12

#: A recentring offset is a whole number of these per unit: exact as a float and as quanta, since 10**12 = 4096 * 5**12.
SHIFTS_PER_UNIT = 4096

#: Recentred errors beyond this are summed by the slower way that has no bound.
NEAR = 512.0

#: At most so many values in one exact pass of split sums.
CHUNK = 2**20

_SHIFT = PER_UNIT // SHIFTS_PER_UNIT
#: What d, d², d³, d⁴ are multiplied by before rounding, and what lifts each to powers of 1e-12.
SCALES = (1e12, 1e18, 1e15, 1e12)
_LIFTS = (1, 10**6, 10**21, 10**36)
_SPLIT = 40

#: Errors whose standard deviation is below so many quanta are all equal: rounding of their squares alone gives as much.
_EQUAL = 20_000


def shift_of(offset: float) -> int:
    """The recentring offset nearest to ``offset``, in 1/4096 of the unit.

    Examples
    --------
    >>> shift_of(1000.0001) / SHIFTS_PER_UNIT
    1000.0
    """
    return round(float(offset) * SHIFTS_PER_UNIT)


def integer_sum(values: NDArray[Any]) -> int:
    """Exact sum of float64 numbers that are whole, of any size.

    Raises
    ------
    ValueError
        Where a value is not finite.

    Examples
    --------
    >>> integer_sum(np.array([1e30, 1.0, -1e30]))
    1
    """
    total = 0
    for start in range(0, len(values), CHUNK):
        part = values[start : start + CHUNK]
        top = float(np.max(np.abs(part)))
        if not np.isfinite(top):
            raise ValueError("a sum was asked of values that are not all finite")
        total += _split_sum(part) if top < 2.0**82 else _exponent_sum(part)
    return total


def _split_sum(values: NDArray[Any]) -> int:
    high = np.floor(values * 2.0**-_SPLIT)
    low = values - high * 2.0**_SPLIT
    return (int(high.astype(np.int64).sum()) << _SPLIT) + int(low.astype(np.int64).sum())


def _exponent_sum(values: NDArray[Any]) -> int:
    mantissa, exponent = np.frexp(values)
    whole = (mantissa * 2.0**53).astype(np.int64)
    total = 0
    for power in np.unique(exponent).tolist():
        part = whole[exponent == power]
        summed = (int((part >> 26).sum()) << 26) + int((part & (2**26 - 1)).sum())
        # Every value is whole, so what a right shift drops is 0.
        total += summed << (power - 53) if power >= 53 else summed >> (53 - power)
    return total


def error_sums(errors: NDArray[Any], shift: int = 0) -> dict[str, int]:
    """The sums that a tally keeps of errors (n,).

    Parameters
    ----------
    errors
        Finite float64, in the declared unit.
    shift
        Recentring offset (:func:`shift_of`), near the bulk of the errors. The sums are of the errors themselves; the
        offset only keeps their powers small while these are still floats.

    Examples
    --------
    >>> error_sums(np.array([0.5, -0.25]))["e1"] / PER_UNIT
    0.25
    >>> one, other = (error_sums(np.array([1000.5, 1000.25]), shift_of(at)) for at in (0.0, 1000.0))
    >>> one["e1"] == other["e1"] == 2000_750_000_000_000
    True
    """
    error = np.asarray(errors, dtype=np.float64).reshape(-1)
    near = error - shift / SHIFTS_PER_UNIT
    square = near * near
    powers = (near, square, square * near, square * square)
    parts = [integer_sum(np.rint(power * scale)) for power, scale in zip(powers, SCALES, strict=True)]
    return raw_sums(len(error), integer_sum(np.rint(np.abs(error) * SCALES[0])), parts, shift)


def raw_sums(n: int, absolute: int, parts: Sequence[int], shift: int) -> dict[str, int]:
    """Sums of powers about 0 from sums of powers about the offset (:data:`SCALES`), by whole-number algebra."""
    d1, d2, d3, d4 = (int(part) * lift for part, lift in zip(parts, _LIFTS, strict=True))
    p = shift * _SHIFT
    return {
        "n": n,
        "a1": absolute,
        "e1": d1 + n * p,
        "e2": d2 + 2 * p * d1 + n * p**2,
        "e3": d3 + 3 * p * d2 + 3 * p**2 * d1 + n * p**3,
        "e4": d4 + 4 * p * d3 + 6 * p**2 * d2 + 4 * p**3 * d1 + n * p**4,
    }


#: What :func:`moments` gives, in this order.
MOMENTS = ("bias", "mae", "rmse", "std", "skewness", "kurtosis")


def moments(totals: Totals) -> dict[str, FloatArray]:
    """Figures of :data:`MOMENTS`, each (size,), NaN where undefined.

    bias = Σe/n; MAE = Σ|e|/n; RMSE = √(Σe²/n); std with ddof 1 (undefined below two errors); skewness g1 = m3/m2^1.5
    and excess kurtosis g2 = m4/m2² − 3 from population moments (undefined where all errors are equal). The differences
    of large sums are taken in whole numbers.

    Examples
    --------
    >>> from geoeval.stats.tally import Tally, totals_of
    >>> found = moments(totals_of([Tally.of(error_sums(np.array([1.0, 3.0])))]))
    >>> found["bias"], found["std"], found["kurtosis"]
    (array([2.]), array([1.41421356]), array([-2.]))
    """
    columns = [totals[name] for name in ("n", "a1", "e1", "e2", "e3", "e4")]
    table = np.full((totals.size, len(MOMENTS)), np.nan)
    for at in range(totals.size):
        table[at] = _figures(*(int(column[at]) for column in columns))
    return {name: table[:, i] for i, name in enumerate(MOMENTS)}


def _figures(n: int, a1: int, s1: int, s2: int, s3: int, s4: int) -> tuple[float, ...]:
    nan = math.nan
    if n == 0:
        return (nan,) * len(MOMENTS)
    bias, mae = s1 / (n * PER_UNIT), a1 / (n * PER_UNIT)
    # The square of each error was rounded once, so errors that are all equal may sum a hair too low.
    rmse = max(math.sqrt(s2 / (n * PER_UNIT**2)) if s2 > 0 else 0.0, abs(bias), mae)
    spread = n * s2 - s1**2
    if spread <= (n * _EQUAL) ** 2:
        spread = 0
    std = math.sqrt(spread / (n * (n - 1) * PER_UNIT**2)) if n > 1 else nan
    if spread == 0:
        return bias, mae, rmse, std, nan, nan
    third = n**2 * s3 - 3 * n * s1 * s2 + 2 * s1**3
    fourth = n**3 * s4 - 4 * n**2 * s1 * s3 + 6 * n * s1**2 * s2 - 3 * s1**4
    return bias, mae, rmse, std, third / spread / math.sqrt(spread), fourth / spread**2 - 3.0


def nmad(errors: NDArray[Any]) -> float | None:
    """Normalised median absolute deviation, 1.482602218 · median |e − median|; None without errors.

    References
    ----------
    .. [1] Höhle, J. and Höhle, M. (2009), Accuracy assessment of digital elevation models by means of robust
       statistical methods, ISPRS Journal of Photogrammetry and Remote Sensing 64.

    Examples
    --------
    >>> round(nmad(np.array([0.02, -0.03, 0.05, 0.01, -0.02, 0.0, 1.5])), 6)
    0.044478
    >>> nmad(np.array([])) is None
    True
    """
    found = Sample.of(errors).nmad()
    return None if found is None else found[0]


def le(errors: NDArray[Any], share: float) -> float | None:
    """Linear error: the empirical quantile of |e| at ``share`` (0.9 for LE90), numpy's ``linear``; None without errors.

    Examples
    --------
    >>> le(np.array([-4.0, 1.0, 2.0, 3.0]), 0.5)
    2.5
    """
    found = Sample.of(errors).folded(0.0).quantile(share)
    return None if found is None else found[0]


def rmse_of(*errors: NDArray[Any]) -> float | None:
    """Root mean square length of errors with one or more components (n,) each; None without errors.

    Examples
    --------
    >>> rmse_of(np.array([3.0]), np.array([4.0]))
    5.0
    """
    columns = [np.asarray(part, dtype=np.float64) for part in errors]
    n = len(columns[0])
    if n == 0:
        return None
    return math.sqrt(sum(error_sums(part)["e2"] for part in columns) / (n * PER_UNIT**2))


__all__ = [
    "CHUNK",
    "MOMENTS",
    "NEAR",
    "NMAD_FACTOR",
    "PER_UNIT",
    "SCALES",
    "SHIFTS_PER_UNIT",
    "error_sums",
    "integer_sum",
    "le",
    "moments",
    "nmad",
    "raw_sums",
    "rmse_of",
    "shift_of",
]
