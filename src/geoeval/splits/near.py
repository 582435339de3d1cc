"""Label sets that are nearly alike, as links between samples and as pairs across splits."""

from __future__ import annotations

import numpy as np

from geoeval.model import IntArray
from geoeval.splits.across import Across
from geoeval.splits.table import SampleTable


def labelled_rows(table: SampleTable) -> IntArray:
    """Rows whose label geometries were read, or opened from a sketch."""
    if table.labels is None:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero([one is not None for one in table.labels]).astype(np.int64)


def label_links(table: SampleTable) -> tuple[IntArray, IntArray]:
    """Rows with label geometries, and their groups of nearly equal label sets."""
    rows = labelled_rows(table)
    if table.labels is None or not len(rows):
        return rows, rows
    from geoeval.splits.labelsets import duplicate_groups

    return rows, duplicate_groups(list(table.labels[rows]))


def label_across(table: SampleTable, split: IntArray, witnesses: int) -> tuple[IntArray, Across | None]:
    """Rows with label geometries, and pairs of nearly equal sets in different splits; None where no label was read."""
    rows = labelled_rows(table)
    if table.labels is None or not len(rows):
        return rows, None
    from geoeval.splits.labelsets import duplicates_across

    return rows, duplicates_across(list(table.labels[rows]), split[rows], witnesses=witnesses)
