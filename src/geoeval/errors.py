"""Errors that stop a run.

Every message says what was expected, what was found, where (file, feature, field) and what to do next. What is wrong
with *data* is a :class:`geoeval.model.Finding`, which is collected and counted; an error is for what stops the run.

::

    GeoevalError                 exit code 2 on the command line
    ├── ConfigError              a configuration, option or gate that cannot be understood
    │   └── UnknownFigure        a figure that a result does not have
    ├── InputError               a file or table that cannot be used
    │   ├── CRSMissing           no coordinate reference system, and none declared
    │   ├── CRSMismatch          two systems where one was demanded
    │   ├── UnitMismatch         units of length, height or vertical datum that do not agree
    │   ├── GridMismatch         rasters that do not share a lattice
    │   └── ColumnError          a column that is not there, or not of the kind it should be
    ├── LeakageError             a protected case that a training input touches
    └── BundleError              evidence that cannot be read or written
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class GeoevalError(Exception):
    """A run that had to stop; its text is the message for the user."""


class ConfigError(GeoevalError):
    """A configuration, option or gate that cannot be understood."""


class UnknownFigure(ConfigError, KeyError):
    """A figure that a result does not have; a KeyError, too, as for any mapping."""

    def __str__(self) -> str:
        # A KeyError would quote its text.
        return str(self.args[0])


class InputError(GeoevalError):
    """A file or table that cannot be used."""


class CRSMissing(InputError):
    """No coordinate reference system in the file, and none declared."""


class CRSMismatch(InputError):
    """Two coordinate reference systems where one was demanded."""


class UnitMismatch(InputError):
    """Units of length or height, or vertical datums, that do not agree."""


class GridMismatch(InputError):
    """Rasters that do not share one lattice."""


class ColumnError(InputError):
    """A column that is not there, or not of the kind that it should be."""


class LeakageError(GeoevalError):
    """A protected case that a training input touches."""


class BundleError(GeoevalError):
    """Evidence that cannot be read or written."""


def nearest_spelling(word: str, known: Iterable[str]) -> str:
    """Say which known word was probably meant, or list what is known.

    Returns
    -------
    str
        A clause for the end of a message.

    Examples
    --------
    >>> nearest_spelling("tolerence_m", ["tolerance_m", "iou"])
    "did you mean 'tolerance_m'?"
    >>> nearest_spelling("colour", ["iou", "band"])
    "known are 'band', 'iou'"
    >>> nearest_spelling("colour", [])
    'none are known here'
    """
    names = sorted(set(known))
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    if not names:
        return "none are known here"
    return "known are " + ", ".join(repr(name) for name in names[:30])
