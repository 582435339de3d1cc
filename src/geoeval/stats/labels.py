"""Labels given against labels that are right: F1 a class, and macro F1 that names what it leaves out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from geoeval.errors import InputError
from geoeval.model import ratio


@dataclass(frozen=True, slots=True)
class ClassScore:
    """One class: how often it is right, how often it was said, how often both."""

    label: Hashable
    support: int
    predicted: int
    tp: int

    @property
    def precision(self) -> float | None:
        """Share of what was said that is right; None where it was never said."""
        return None if not self.predicted else self.tp / self.predicted

    @property
    def recall(self) -> float | None:
        """Share of what is right that was said; None without support."""
        return None if not self.support else self.tp / self.support

    @property
    def f1(self) -> float | None:
        """``2 tp / (support + predicted)``: 0 for a class that is never said, None where it occurs on no side."""
        found = ratio(2 * self.tp, self.support + self.predicted)
        return None if found is None else float(found)


@dataclass(frozen=True, slots=True)
class Excluded:
    """A class that macro F1 leaves out, with the number of times that it was predicted."""

    label: Hashable
    predicted: int
    reason: str = "no_support"


@dataclass(frozen=True, slots=True)
class MacroF1:
    """Mean F1 over classes with support; the others are named.

    ``counting_spurious_as_zero`` also counts the classes that were predicted without support, with an F1 of 0.
    """

    value: float | None
    per_class: tuple[ClassScore, ...]
    excluded: tuple[Excluded, ...]
    counting_spurious_as_zero: float | None
    spurious: tuple[Hashable, ...]
    reason: str | None = None


def macro_f1(
    reference: Sequence[Hashable], prediction: Sequence[Hashable], labels: Sequence[Hashable] | None = None
) -> MacroF1:
    """Macro F1 over the classes that the reference holds.

    Parameters
    ----------
    reference, prediction : (n,)
        Labels, observations in one order.
    labels
        The allowed labels, which fix the order; without them all that occur, in order of their text.

    Examples
    --------
    >>> found = macro_f1([0, 1, 0, 3], [0, 1, 2, 2])
    >>> round(found.value, 4), found.excluded, round(found.counting_spurious_as_zero, 4)
    (0.5556, (Excluded(label=2, predicted=2, reason='no_support'),), 0.4167)
    >>> macro_f1([], []).reason
    'no_support'
    """
    if len(reference) != len(prediction):
        raise InputError(f"both sides must label the same observations, got {len(reference)} and {len(prediction)}")
    support, predicted = Counter(reference), Counter(prediction)
    known = sorted({*support, *predicted}, key=str) if labels is None else list(labels)
    strange = sorted({*support, *predicted} - set(known), key=str)
    if strange:
        raise InputError(f"label {strange[0]!r} is not among the allowed ones: {known!r}")
    hits = Counter(a for a, b in zip(reference, prediction, strict=True) if a == b)
    scores = [ClassScore(label, support[label], predicted[label], hits[label]) for label in known]
    held = tuple(one for one in scores if one.support)
    left_out = tuple(Excluded(one.label, one.predicted) for one in scores if not one.support)
    spurious = tuple(one.label for one in left_out if one.predicted)
    total = math.fsum(one.f1 or 0.0 for one in held)
    return MacroF1(
        value=total / len(held) if held else None,
        per_class=held,
        excluded=left_out,
        counting_spurious_as_zero=total / (len(held) + len(spurious)) if held else None,
        spurious=spurious,
        reason=None if held else "no_support",
    )
