"""The seven families by name: which evaluator scores which, and its options from a table."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from geoeval.config.reading import options_of
from geoeval.errors import ConfigError, nearest_spelling
from geoeval.keys import FAMILIES
from geoeval.ledger import Evaluator

_CLASSES = {family: family.capitalize() for family in FAMILIES}


def evaluator_of(family: str, options: Mapping[str, Any], where: str = "") -> Evaluator[Any]:
    """The evaluator of a family with these options; an unknown option is refused with the nearest spelling.

    Examples
    --------
    >>> evaluator_of("footprint", {"iou": 0.7}).name
    'footprint/1'
    >>> evaluator_of("footprint", {"ioo": 0.7})
    Traceback (most recent call last):
    geoeval.errors.ConfigError: footprint: unknown key 'ioo'; did you mean 'iou'?
    """
    if family not in _CLASSES:
        raise ConfigError(f"unknown family {family!r}; {nearest_spelling(family, FAMILIES)}")
    kind = getattr(import_module(f"geoeval.evaluators.{family}"), _CLASSES[family])
    found: Evaluator[Any] = options_of(kind, options, where or family)
    return found
