"""Options of evaluators, refused where they make no sense: what was expected, what was given."""

from __future__ import annotations

from collections.abc import Iterable

from geoeval.errors import ConfigError, nearest_spelling


def check_share(name: str, value: float | None, *, zero: bool = False) -> None:
    """Refuse an option that should be a share of one.

    Raises
    ------
    ConfigError
        Where it lies outside (0, 1], or outside [0, 1] where zero is allowed.
    """
    if value is None:
        return
    if not (0.0 <= value <= 1.0) or (value == 0.0 and not zero):
        hint = "; is it a percentage?" if value > 1 else ""
        raise ConfigError(f"{name} must lie in {'[' if zero else '('}0, 1], got {value!r}{hint}")


def check_distance(name: str, value: float) -> None:
    """Refuse a distance that is not a positive number.

    Raises
    ------
    ConfigError
        Where it is zero, negative, infinite or NaN.
    """
    if not (0.0 < value < float("inf")):
        raise ConfigError(f"{name} must be a positive number, got {value!r}")


def check_choice(name: str, value: str, known: Iterable[str]) -> None:
    """Refuse a word that is not one of the known ones.

    Raises
    ------
    ConfigError
        With the nearest spelling.
    """
    if value not in known:
        raise ConfigError(f"{name} = {value!r} is not known; {nearest_spelling(value, known)}")
