"""From two dated layers to events: what was added, removed, modified, or stayed as it was."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoeval.layers import ObjectPair, Objects
from geoeval.objects.pairing import candidates, geometry_kind, match

ADDED, REMOVED, MODIFIED, UNCHANGED = "added", "removed", "modified", "unchanged"


def events_from_layers(
    before: Objects, after: Objects, *, iou: float = 0.5, unchanged_iou: float | None = None, unchanged: bool = False
) -> Objects:
    """Events between two layers of polygons, matched one-to-one by overlap.

    Parameters
    ----------
    before, after
        The layers, in one metric system.
    iou
        Least intersection over union of an object with itself at the other date, inclusive.
    unchanged_iou
        Below this overlap a matched object is ``modified``; None knows no modified objects.
    unchanged
        Whether matched objects that did not change are kept, as events of kind ``unchanged``.

    Returns
    -------
    Objects
        With the field ``kind``. A removed object has the shape that it had, every other the shape that it has now; ids
        are those of the layer, with the kind in front.

    Examples
    --------
    >>> import shapely
    >>> def layer(*left):
    ...     shapes = np.array([shapely.box(x, 0, x + 1, 1) for x in left], dtype=object)
    ...     return Objects(shapes, np.array([f"h{x}" for x in left], dtype=object), np.arange(len(left)))
    >>> events_from_layers(layer(0, 5), layer(5, 9)).id.tolist()
    ['removed:h0', 'added:h9']
    """
    pair = ObjectPair(before, after)
    kind = geometry_kind("events", pair)
    found = candidates(pair, kind, floor=iou, max_distance=0.0)
    old, new, similarity, _ = match("events", pair, found, threshold=iou, assignment="optimal", labelled=False)
    gone = np.setdiff1d(np.arange(len(before)), old)
    come = np.setdiff1d(np.arange(len(after)), new)
    changed = similarity < (unchanged_iou if unchanged_iou is not None else -np.inf)
    parts = [_events(before.take(gone), REMOVED), _events(after.take(come), ADDED)]
    if unchanged_iou is not None:
        parts.append(_events(after.take(new[changed]), MODIFIED))
    if unchanged:
        parts.append(_events(after.take(new[~changed]), UNCHANGED))
    return _joined([part for part in parts if len(part)] or parts[:1])


def _events(side: Objects, kind: str) -> Objects:
    ids = np.empty(len(side), dtype=object)
    ids[:] = [f"{kind}:{one}" for one in side.id.tolist()]
    kinds = np.full(len(side), kind, dtype=object)
    return replace(side, id=ids, fields={**side.fields, "kind": kinds})


def _joined(parts: list[Objects]) -> Objects:
    """Several sets of features as one; what only some of them carry is left out."""

    def column(name: str) -> NDArray[Any] | None:
        given = [getattr(part, name) for part in parts]
        return None if any(one is None for one in given) else np.concatenate(given)

    shared = sorted(set.intersection(*[set(part.strata) for part in parts]))
    fields = sorted(set.intersection(*[set(part.fields) for part in parts]))
    first = parts[0]
    return Objects(
        geometry=np.concatenate([part.geometry for part in parts]),
        id=np.concatenate([part.id for part in parts]),
        row=np.concatenate([part.row for part in parts]),
        label=column("label"),
        score=column("score"),
        ignore=column("ignore"),
        cluster=column("cluster"),
        strata={name: np.concatenate([part.strata[name] for part in parts]) for name in shared},
        fields={name: np.concatenate([part.fields[name] for part in parts]) for name in fields},
        defects=first.defects,
        read=sum(len(part) for part in parts),
        source=first.source,
    )
