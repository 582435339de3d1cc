"""Do matched objects say the same? Agreement of attributes, field by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.layers import ObjectPair
from geoeval.model import Finding, Proportion, Quantity
from geoeval.objects.cells import Places, Sheet
from geoeval.objects.pairing import Outcomes
from geoeval.stats.tally import Totals


def count_agreement(sheet: Sheet, place: Places, pair: ObjectPair, result: Outcomes, unit: str) -> tuple[Finding, ...]:
    """Add ``compared@field`` and ``agree@field`` for every hit whose reference has a value.

    Returns
    -------
    tuple
        A finding for every field that only the reference has.
    """
    missing = []
    for name in sorted(pair.reference.fields):
        if name not in pair.prediction.fields:
            missing.append(name)
            continue
        known, same = agreement(
            pair.reference.fields[name][result.reference], pair.prediction.fields[name][result.prediction]
        )
        at = place.reference[result.reference]
        sheet.count(f"compared@{name}", at[known])
        sheet.count(f"agree@{name}", at[known & same])
    return tuple(
        Finding("attribute-missing", "minor", (unit, name), "only the reference has this attribute", "add the column")
        for name in missing
        if len(pair.prediction)
    )


def agreement(reference: NDArray[Any], prediction: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Where the reference has a value, and where the prediction has the same one: numbers as numbers, all else as text.

    Examples
    --------
    >>> known, same = agreement(np.array([1.0, 2.0, np.nan]), np.array(["1", "3", "4"]))
    >>> known.tolist(), same.tolist()
    ([True, True, False], [True, False, False])
    """
    known = np.array([_there(value) for value in reference.tolist()], dtype=bool)
    same = np.array(
        [_same(a, b) for a, b in zip(reference.tolist(), prediction.tolist(), strict=True)],
        dtype=bool,
    )
    return known, known & same


def quantities_of_agreement(totals: Totals) -> Mapping[str, Mapping[str, Quantity]]:
    """Share of the compared pairs that agree, by field."""
    return {
        name: {"attribute_agreement": Proportion(totals[f"agree@{name}"], totals[f"compared@{name}"])}
        for name in totals.names("compared@")
    }


def _there(value: Any) -> bool:
    """Whether there is a value: None, NaN, NaT and blank text are none."""
    return value is not None and value == value and str(value).strip() != ""  # noqa: PLR0124 - NaN differs from itself


def _same(a: Any, b: Any) -> bool:
    if not _there(a) or not _there(b):
        return False
    if str(a).strip() == str(b).strip():
        return True
    if isinstance(a, str) and isinstance(b, str):
        # Two texts are codes: 01 is not 1.
        return False
    try:
        return round(float(a), 9) == round(float(b), 9)
    except (TypeError, ValueError):
        return False
