"""Units of height and the factors between them. The international foot and the US survey foot are two units."""

from __future__ import annotations

from geoeval.errors import UnitMismatch, nearest_spelling

#: Metres in one of each unit.
METRES: dict[str, float] = {
    "m": 1.0,
    "cm": 0.01,
    "mm": 0.001,
    "km": 1000.0,
    "ft": 0.3048,
    "us-ft": 1200 / 3937,
}

_ALIASES = {
    "metre": "m",
    "metres": "m",
    "meter": "m",
    "meters": "m",
    "centimetre": "cm",
    "centimeter": "cm",
    "centimetres": "cm",
    "centimeters": "cm",
    "millimetre": "mm",
    "millimeter": "mm",
    "millimetres": "mm",
    "millimeters": "mm",
    "kilometre": "km",
    "kilometer": "km",
    "foot": "ft",
    "feet": "ft",
    "international foot": "ft",
    "foot (international)": "ft",
    "foot_intl": "ft",
    "us survey foot": "us-ft",
    "us survey feet": "us-ft",
    "us-survey-foot": "us-ft",
    "us foot": "us-ft",
    "us_survey_foot": "us-ft",
    "foot_us": "us-ft",
    "us_ft": "us-ft",
    "usft": "us-ft",
    "survey foot": "us-ft",
    "ftus": "us-ft",
    "foot us": "us-ft",
}


def unit_name(text: str) -> str:
    """The short name of a unit of height.

    Raises
    ------
    UnitMismatch
        Where the unit is not known.

    Examples
    --------
    >>> unit_name("metre"), unit_name("US survey foot"), unit_name("Foot")
    ('m', 'us-ft', 'ft')
    """
    plain = " ".join(text.strip().casefold().split())
    known = plain if plain in METRES else _ALIASES.get(plain)
    if known is None:
        raise UnitMismatch(
            f"{text!r} is no unit of height; {nearest_spelling(plain, METRES)}. Units are "
            + ", ".join(repr(name) for name in METRES)
        )
    return known


def metres_per(unit: str) -> float:
    """Metres in one unit.

    Examples
    --------
    >>> metres_per("ft")
    0.3048
    >>> metres_per("us-ft") > metres_per("ft")
    True
    """
    return METRES[unit_name(unit)]
