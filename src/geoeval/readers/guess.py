"""Which column means what, where nobody said so: usual names, in a fixed order, never a column without values."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from geoeval.errors import ColumnError, nearest_spelling
from geoeval.readers.columns import as_numbers

#: Usual names of each role, best first; case does not matter.
USUAL: dict[str, tuple[str, ...]] = {
    "id": ("id", "fid", "objectid", "object_id", "feature_id", "featureid", "osm_id", "uuid", "uid"),
    "label": (
        "label",
        "class",
        "category",
        "class_name",
        "classname",
        "category_name",
        "label_name",
        "class_id",
        "type",
    ),
    "score": ("score", "scores", "confidence", "conf", "prob", "probability", "p"),
    "unit": (
        "image_path",
        "image",
        "image_id",
        "imageid",
        "image_name",
        "file_name",
        "filename",
        "plot_name",
        "tile",
        "tile_id",
        "chip",
        "chip_id",
    ),
    "cluster": (
        "aoi",
        "aoi_id",
        "group_id",
        "group",
        "tile",
        "tile_id",
        "scene",
        "scene_id",
        "image",
        "image_id",
        "imageid",
        "image_path",
        "image_name",
        "file_name",
        "filename",
        "plot_name",
        "chip",
        "chip_id",
    ),
    "ignore": ("ignore", "iscrowd", "is_crowd"),
    "kind": ("kind", "change", "change_type", "event", "event_type"),
    "date": (
        "date",
        "year",
        "first_year",
        "construction_year",
        "year_built",
        "change_year",
        "event_date",
        "change_date",
        "first_date",
        "acquisition_date",
    ),
}

#: Names that a CSV is read as text for, so that an id 007 stays what it is.
TEXT_NAMES = frozenset(name for role in ("id", "label", "unit", "cluster") for name in USUAL[role])

#: Flags are read as text or numbers; these words mean yes.
_YES = frozenset({"1", "1.0", "true", "t", "yes", "y"})


def candidates(frame: pd.DataFrame, role: str) -> list[str]:
    """Columns with a usual name for a role and at least one value, best first.

    Examples
    --------
    >>> candidates(pd.DataFrame({"Type": ["a"], "label": [None], "class": ["b"]}), "label")
    ['class', 'Type']
    """
    by_name: dict[str, str] = {}
    for column in frame.columns:
        by_name.setdefault(str(column).lower(), str(column))
    found = [by_name[name] for name in USUAL[role] if name in by_name]
    return [column for column in found if frame[column].notna().any() and _fits(frame[column], role)]


def _fits(values: pd.Series[str], role: str) -> bool:
    """Scores are numbers; a label is never a column of fractions."""
    if role == "score":
        return as_numbers(values) is not None
    if role == "label" and pd.api.types.is_float_dtype(values.dtype):
        present = values.dropna()
        return bool((present == present.round()).all())
    return True


def guess(frame: pd.DataFrame, role: str) -> str | None:
    """The column that most probably has a role, None where no usual name is there.

    Examples
    --------
    >>> guess(pd.DataFrame({"p": [0.5], "fid": [1]}), "score")
    'p'
    >>> guess(pd.DataFrame({"p": [None]}), "score") is None
    True
    """
    found = candidates(frame, role)
    return found[0] if found else None


def require(frame: pd.DataFrame, column: str, role: str, where: str) -> str:
    """A declared column, refused where it is not there.

    Parameters
    ----------
    frame
        The attribute table.
    column
        The declared name.
    role
        What it was declared for, for the message.
    where
        File name for the message.

    Raises
    ------
    ColumnError
        The column is not there.

    Examples
    --------
    >>> require(pd.DataFrame({"score": [0.5]}), "score", "score", "a.csv")
    'score'
    """
    if column not in frame.columns:
        raise ColumnError(
            f"{where}: expected column {column!r} (declared as {role}), found none of that name; "
            f"{nearest_spelling(column, map(str, frame.columns))}"
        )
    return column


def flags(values: Iterable[str | None]) -> list[bool]:
    """Texts as yes or no; null is no.

    Examples
    --------
    >>> flags(["1", "0", None, "True"])
    [True, False, False, True]
    """
    return [value is not None and value.lower() in _YES for value in values]
