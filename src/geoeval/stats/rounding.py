"""Numbers as they are published: twelve significant digits, one zero."""

from __future__ import annotations

import math

from geoeval.errors import InputError


def round12(value: float) -> float:
    """The number rounded to 12 significant digits; −0.0 becomes 0.0.

    Two correct libraries differ in the last bits of a result. Rounded values are what evidence holds and what gates
    decide on, so that verdict and bytes agree. Whole numbers below 10¹² do not change.

    Raises
    ------
    InputError
        For NaN and infinity: an undefined number is None, with a reason, and never reaches this function.

    Examples
    --------
    >>> round12(0.908190131774416), round12(0.9081901317744162)
    (0.908190131774, 0.908190131774)
    >>> round12(-0.0)
    0.0
    """
    number = float(value)
    if not math.isfinite(number):
        raise InputError(f"only finite numbers can be published, got {number!r}; an undefined number is None")
    # Adding 0.0 turns -0.0 into 0.0. Formatting rounds the decimal value, not the binary one times a power of ten.
    return float(f"{number:.11e}") + 0.0


def round12_or_none(value: float | None) -> float | None:
    """:func:`round12`, with None for None.

    Examples
    --------
    >>> round12_or_none(None) is None
    True
    """
    return None if value is None else round12(value)
