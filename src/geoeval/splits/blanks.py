"""What says nothing, and identifiers as they read.

A value that is null, empty, invisible or a word such as ``"unknown"`` is no value anywhere in a split.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

#: Words that say nothing, in lower case; brackets around them and marks at their end make no difference.
BLANK_WORDS = frozenset(
    {
        "-999",
        "-9999",
        "#n/a",
        "missing",
        "n.a",
        "n/a",
        "na",
        "nan",
        "nat",
        "nil",
        "no data",
        "nodata",
        "none",
        "not applicable",
        "not available",
        "null",
        "tba",
        "tbd",
        "undefined",
        "undetermined",
        "unknown",
        "unspecified",
    }
)
_BRACKETS = "()[]{}<>\"'"
_ENDS = ".,;:!?"
#: Marks that stand for nothing where there is nothing else.
_DASHES = frozenset(" -\u2010\u2011\u2012\u2013\u2014\u2015\u2212._?")

#: Characters that show nothing although they are no format characters: joiners, fillers, selectors of variants.
_IGNORABLE = frozenset(
    chr(code)
    for first, last in (
        (0x034F, 0x034F),
        (0x115F, 0x1160),
        (0x17B4, 0x17B5),
        (0x180B, 0x180F),
        (0x2065, 0x2065),
        (0x2800, 0x2800),
        (0x3164, 0x3164),
        (0xFE00, 0xFE0F),
        (0xFFA0, 0xFFA0),
        (0xFFF0, 0xFFF8),
        (0xE0000, 0xE0FFF),
    )
    for code in range(first, last + 1)
)


def known(value: object) -> bool:
    r"""True for a value that says something; null, empty, what nobody can see, and words such as ``"unknown"`` do not.

    Case, brackets and a mark at the end make no difference: ``"(Unknown)"`` and ``"unknown."`` say nothing, nor do
    ``"n.a."``, ``"<NA>"``, ``"?"``, ``"--"`` or ``"-9999"``. All words are in :data:`BLANK_WORDS`.

    Examples
    --------
    >>> known("quad-7"), known(None), known(" Unknown "), known(()), known(("", "a"))
    (True, False, False, False, True)
    >>> known("\u200b"), known("(unknown)"), known("n.a."), known("-"), known("-9"), known("unknown-7")
    (False, False, False, False, True, True)
    """
    if value is None:
        return False
    if isinstance(value, str):
        return not _blank(tidy(value).casefold())
    if isinstance(value, list | tuple):
        return any(known(one) for one in value)
    if isinstance(value, Mapping):
        return any(known(one) for one in value.values())
    return True


def _blank(word: str) -> bool:
    word = word.strip(_BRACKETS + " ")
    return word.rstrip(_ENDS).strip(_BRACKETS + " ") in BLANK_WORDS or not set(word) - _DASHES


def tidy(value: str) -> str:
    r"""An identifier as it reads, so that look-alikes that differ in bytes only link.

    Compatible forms become one (NFKC), characters that show nothing go (zero-width and control characters, marks of
    byte order or direction, soft hyphens), white space inside becomes one space, and that around goes. Case stays, and
    so do letters of different scripts that look alike.

    Examples
    --------
    >>> tidy(" Zu\u0308rich ") == "Z\u00fcrich"
    True
    >>> tidy("\ufeffgroup\u200b-0"), tidy("north\u00a0  3\n"), tidy("\uff47roup-0"), tidy("A a")
    ('group-0', 'north 3', 'group-0', 'A a')
    """
    if not (value.isascii() and value.isprintable()):
        value = _seen(unicodedata.normalize("NFKC", _seen(value)))
        value = unicodedata.normalize("NFKC", value)
    return " ".join(value.split())


def _seen(value: str) -> str:
    """The text without characters that show nothing; white space stays."""
    return "".join(
        one
        for one in value
        if not (unicodedata.category(one) in ("Cf", "Cc") and not one.isspace()) and one not in _IGNORABLE
    )
