"""Waivers: signed permissions to go on in spite of a gate. They change no status."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date

from geoeval.errors import ConfigError, nearest_spelling
from geoeval.model import Verdict


@dataclass(frozen=True, slots=True)
class Waiver:
    """A signed permission to go on in spite of a gate. It changes no status.

    ``gate`` is the id of a gate, or of one verdict. ``expires`` is the last day on which the waiver holds.
    """

    gate: str
    reason: str
    signed_by: str
    expires: date | None = None


def apply_waivers(
    verdicts: Sequence[Verdict], waivers: Iterable[Waiver], today: date | None = None
) -> tuple[Verdict, ...]:
    """Verdicts with ``waived_by`` set where a waiver covers them. No status changes, and a pass is never waived.

    Parameters
    ----------
    verdicts
        As decided.
    waivers
        Signed permissions. Each must name a gate that exists.
    today
        Day of the decision; a waiver that expires needs it.

    Raises
    ------
    ConfigError
        For a waiver of an unknown gate, one without a signature or a reason, or one that expires where no day is given.
    """
    signed: dict[str, str] = {}
    names = {verdict.id for verdict in verdicts} | {_gate_of(verdict.id) for verdict in verdicts}
    for waiver in waivers:
        if not waiver.signed_by.strip() or not waiver.reason.strip():
            raise ConfigError(f"waiver of {waiver.gate!r}: it needs a reason and a signature (signed_by)")
        if waiver.gate not in names:
            raise ConfigError(f"waiver of {waiver.gate!r}: no such gate; {nearest_spelling(waiver.gate, names)}")
        if waiver.expires is not None and today is None:
            raise ConfigError(
                f"waiver of {waiver.gate!r} expires on {waiver.expires}: the day of the decision is needed"
            )
        if waiver.expires is None or (today is not None and today <= waiver.expires):
            signed[waiver.gate] = waiver.signed_by
    return tuple(
        verdict
        if verdict.status == "pass"
        else replace(verdict, waived_by=signed.get(verdict.id, signed.get(_gate_of(verdict.id))))
        for verdict in verdicts
    )


def _gate_of(id: str) -> str:  # noqa: A002
    """The gate behind the id of a verdict: without the evaluation before it and the class or subgroup after it."""
    return id.partition("[")[0].rpartition(":")[2]
