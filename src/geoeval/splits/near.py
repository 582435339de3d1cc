"""Label sets that are nearly alike, as links between samples and as pairs across splits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from geoeval.model import IntArray, ObjectArray
from geoeval.splits.across import Across
from geoeval.splits.settings import SplitSettings
from geoeval.splits.table import SampleTable


def labelled_rows(table: SampleTable) -> IntArray:
    """Rows whose label geometries were read, or opened from a sketch."""
    if table.labels is None:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero([one is not None for one in table.labels]).astype(np.int64)


def label_links(table: SampleTable, settings: SplitSettings) -> tuple[IntArray, IntArray]:
    """Rows with label geometries, and their groups of nearly equal label sets."""
    rows = labelled_rows(table)
    if table.labels is None or not len(rows):
        return rows, rows
    from geoeval.splits.labelsets import duplicate_groups

    return rows, duplicate_groups(_sets(table.labels[rows], settings))


def label_across(table: SampleTable, split: IntArray, settings: SplitSettings) -> tuple[IntArray, Across | None]:
    """Rows with label geometries, and pairs of nearly equal sets in different splits; None where no label was read."""
    rows = labelled_rows(table)
    if table.labels is None or not len(rows):
        return rows, None
    from geoeval.splits.labelsets import duplicates_across

    sets = _sets(table.labels[rows], settings)
    return rows, duplicates_across(sets, split[rows], witnesses=settings.witnesses)


def _sets(labels: ObjectArray, settings: SplitSettings) -> list[Any]:
    """The label sets in the frames in which they are to be compared."""
    if settings.labels_in_images:
        return list(labels)
    return [replace(one, pixels=None) for one in labels]
