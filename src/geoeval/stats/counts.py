"""Hits, inventions and misses, and the three figures that are made of nothing else.

Every function takes whole numbers, or int64 arrays of one shape (one entry a redraw or a cluster).
"""

from __future__ import annotations

from dataclasses import dataclass

from geoeval.model import IntArray, Proportion, Scalar, ratio_of


@dataclass(frozen=True, slots=True)
class Counts:
    """Hits, inventions and misses of a one-to-one matching. Adds field by field; ``* times`` repeats.

    Examples
    --------
    >>> Counts(tp=2, fp=1) + Counts(tp=1, fn=4) * 2
    Counts(tp=4, fp=1, fn=8)
    """

    tp: int | IntArray = 0
    fp: int | IntArray = 0
    fn: int | IntArray = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.tp + other.tp, self.fp + other.fp, self.fn + other.fn)

    def __mul__(self, times: int) -> Counts:
        return Counts(self.tp * times, self.fp * times, self.fn * times)


def recall(counts: Counts) -> Proportion:
    """Share of the reference objects that the prediction found.

    ``tp / (tp + fn)``: 1 when nothing was missed, 0 when nothing was found, undefined without reference objects.
    Also called completeness (ISO 19157), sensitivity, hit rate, producer's accuracy.

    References
    ----------
    .. [1] ISO 19157-1:2023, Geographic information: Data quality.

    Examples
    --------
    >>> recall(Counts(tp=8, fp=1, fn=2)).value
    0.8
    >>> recall(Counts(tp=0, fp=3, fn=0)).value is None
    True
    """
    return Proportion(counts.tp, counts.tp + counts.fn)


def precision(counts: Counts) -> Proportion:
    """Share of the predicted objects that are in the reference.

    ``tp / (tp + fp)``: 1 when nothing was invented, 0 when everything was, undefined without predictions.
    Also called correctness, positive predictive value, user's accuracy; 1 minus it is the commission rate.

    References
    ----------
    .. [1] ISO 19157-1:2023, Geographic information: Data quality.

    Examples
    --------
    >>> precision(Counts(tp=8, fp=2, fn=1)).value
    0.8
    >>> precision(Counts(tp=0, fp=0, fn=3)).value is None
    True
    """
    return Proportion(counts.tp, counts.tp + counts.fp)


def f1(counts: Counts) -> Scalar:
    """Harmonic mean of recall and precision.

    ``2 tp / (2 tp + fp + fn)``: 1 when both are 1, 0 when nothing was found although there was something on a side,
    undefined when both sides are empty. Not a binomial rate, so it never carries a Wilson interval. Its support is
    the number of outcomes, ``tp + fp + fn``. Also called Dice coefficient, F-score.

    References
    ----------
    .. [1] van Rijsbergen (1979), Information Retrieval, 2nd ed.

    Examples
    --------
    >>> f1(Counts(tp=8, fp=2, fn=2)).value
    0.8
    >>> f1(Counts(tp=0, fp=0, fn=3)).value
    0.0
    >>> f1(Counts()).reason
    'undefined_ratio'
    """
    twice = 2 * counts.tp
    return ratio_of(twice, twice + counts.fp + counts.fn, support=counts.tp + counts.fp + counts.fn)
