"""``geoeval split``: check, show, build and propose splits whose parts do not touch."""

from __future__ import annotations

from typing import ClassVar

import click

from geoeval.cli.main import LazyGroup


class _Split(LazyGroup):
    _homes: ClassVar[dict[str, tuple[str, str]]] = {
        "check": ("geoeval.cli.split_check", "Hold anybody's split to the leakage gates: pairs, reasons, distances."),
        "show": ("geoeval.cli.split_show", "A split in numbers, and as a map with buffers and offending pairs."),
        "build": (
            "geoeval.cli.split_build",
            "Two hashed manifests from one source, or a refusal that names the pairs.",
        ),
        "propose": ("geoeval.cli.split_propose", "Blocks or clusters with a buffer for points or tiles."),
    }


@click.group(name="split", cls=_Split, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Splits for training and testing that do not leak into each other.

    Exit codes: 0 no leak; 3 a leak was found by check; 2 refused, leaking where a split was to be built, or not
    decidable.
    """
