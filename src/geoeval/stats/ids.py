"""Ids of splits and of sides: hashed as a set, kept apart, paired by name."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

import numpy as np

from geoeval.errors import InputError, LeakageError
from geoeval.model import IntArray


def hash_of_ids(ids: Sequence[str]) -> str:
    """SHA-256 of a set of ids, whatever their order: recorded beside a threshold.

    Examples
    --------
    >>> hash_of_ids(["b", "a"]) == hash_of_ids(["a", "b"])
    True
    """
    parts = (f"{len(one.encode())}:{one}" for one in sorted(set(ids)))
    return hashlib.sha256("".join(parts).encode()).hexdigest()


def refuse_overlap(validation: Sequence[str], test: Sequence[str], what: str = "ids") -> None:
    """Refuse ids, or clusters, that are in both splits.

    Examples
    --------
    >>> refuse_overlap(["a"], ["b"])
    """
    shared = sorted(set(validation) & set(test))
    if shared:
        raise LeakageError(
            f"{what} must not be in both validation and test; {len(shared)} are, the first is {shared[0]!r}. "
            "Split by cluster"
        )


def paired_order(incumbent: Sequence[str], candidate: Sequence[str]) -> IntArray:
    """Positions of the candidate's ids in the incumbent's order; refused unless ids match one to one.

    Examples
    --------
    >>> paired_order(["a", "b"], ["b", "a"])
    array([1, 0])
    """
    for name, ids in (("incumbent", incumbent), ("candidate", candidate)):
        twice = sorted(one for one, times in Counter(ids).items() if times > 1)
        if twice:
            raise InputError(f"ids must be unique; {name} has {twice[0]!r} more than once")
    place = {one: i for i, one in enumerate(candidate)}
    missing = sorted(set(incumbent) ^ set(place))
    if missing:
        raise InputError(f"ids must match one to one; {len(missing)} are on one side only, the first is {missing[0]!r}")
    return np.array([place[one] for one in incumbent], dtype=np.int64)
