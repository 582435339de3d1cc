"""A split in numbers: samples, ground and strata of each role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from geoeval.splits.lists import SplitList
from geoeval.splits.record import ROLES
from geoeval.splits.table import coded

#: Above this the ground is not dissolved: it would take minutes.
_MOST_DISSOLVED = 200_000


@dataclass(frozen=True, slots=True)
class RoleSummary:
    """What one split holds.

    Parameters
    ----------
    area_km2
        Sum of the areas of its samples; None without geometry.
    ground_km2
        Ground that they cover, counted once; None without geometry or above 200 000 samples.
    strata
        Column to value to number of samples.
    """

    split: str
    samples: int
    share: float
    with_box: int
    area_km2: float | None
    ground_km2: float | None
    strata: Mapping[str, Mapping[str, int]]


def summary(given: SplitList, by: Sequence[str] = ()) -> tuple[RoleSummary, ...]:
    """A row for each split, roles in their usual order, other names after them.

    Examples
    --------
    >>> from geoeval.splits.table import SampleTable
    >>> table = SampleTable.of(3, sample_id=["a", "b", "c"], split=["train", "test", "train"])
    >>> [(one.split, one.samples, one.area_km2) for one in summary(SplitList(table))]
    [('train', 2, None), ('test', 1, None)]
    """
    table = given.table
    split, names = table.splits()
    areas = _areas(given)
    placed = table.has_box()
    columns = {name: coded(given.column(name)) for name in by}
    out = []
    for name in sorted(names, key=role_order):
        own = split == names.index(name)
        strata = {}
        for column, (codes, words) in columns.items():
            times = np.bincount(codes[own] + 1, minlength=len(words) + 1)
            strata[column] = {w: int(n) for w, n in zip(["unknown", *words], times.tolist(), strict=True) if n}
        out.append(
            RoleSummary(
                split=name,
                samples=int(own.sum()),
                share=round(float(own.mean()), 6),
                with_box=int((own & placed).sum()),
                area_km2=areas.get(name, (None, None))[0],
                ground_km2=areas.get(name, (None, None))[1],
                strata={column: dict(sorted(values.items())) for column, values in strata.items()},
            )
        )
    return tuple(out)


def role_order(name: str) -> tuple[int, str]:
    """Sorts roles as they are usually named, and other names after them."""
    return (ROLES.index(name) if name in ROLES else len(ROLES), name)


def _areas(given: SplitList) -> dict[str, tuple[float, float | None]]:
    import shapely

    from geoeval.splits.list_overlap import ground

    place = ground(given)
    if place is None:
        return {}
    split, names = given.table.splits()
    out: dict[str, tuple[float, float | None]] = {}
    first = place.again == 0
    for at, name in enumerate(names):
        own = place.shapes[first & (split[place.rows] == at)]
        if len(own):
            whole = None
            if len(own) <= _MOST_DISSOLVED:
                whole = round(float(shapely.area(shapely.union_all(own))) / 1e6, 6)
            out[name] = (round(float(shapely.area(own).sum()) / 1e6, 6), whole)
    return out
