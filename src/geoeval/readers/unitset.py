"""What reading two sources gives: units to evaluate, and what was noticed on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from geoeval.model import Finding, Unit

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class UnitSet(Generic[P]):
    """Units in a fixed order, with findings, guesses and the files that were read.

    ``notes`` are printed to the user (``"score column": "'p' (guessed)"``); ``inputs`` are the paths to
    hash.
    ``crs`` is the system of the payloads' coordinates as text, None for image coordinates.
    ``reference_only`` names stratum fields that predictions do not have: precision is undefined in such strata.
    """

    units: tuple[Unit[P], ...]
    findings: tuple[Finding, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    reference_only: frozenset[str] = frozenset()
    clustered: bool = True
    crs: str | None = None
