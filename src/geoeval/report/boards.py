"""Several boards side by side on one page, made from their ``board.json`` alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from geoeval.report.board import SYNTHETIC

_WORDS = {"pass": "GO", "fail": "BLOCKED", "not_evaluable": "NOT DECIDABLE"}


def boards_bytes(boards: Sequence[Mapping[str, Any]]) -> bytes:
    """One HTML page with a column a run, in the order given.

    Parameters
    ----------
    boards
        Contents of ``board.json`` files.

    Returns
    -------
    bytes
        A page that loads nothing from elsewhere.

    Examples
    --------
    >>> board = {"run": "run-1", "status": "pass", "colour": "green", "claim_limits": [], "families": []}
    >>> b"1 run side by side" in boards_bytes([board])
    True
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("boards.html").render(
        runs=[{**board, "text": _WORDS[board["status"]]} for board in boards],
        families=_families(boards),
        synthetic=any(SYNTHETIC in board["claim_limits"] for board in boards),
    )
    return page.encode()


def _families(boards: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    by_run = [{row["family"]: row for row in board["families"]} for board in boards]
    names = sorted({name for rows in by_run for name in rows})
    return [
        {
            "name": name,
            "verdicts": [_verdict(rows.get(name)) for rows in by_run],
            "rows": _rows([rows.get(name) for rows in by_run]),
        }
        for name in names
    ]


def _verdict(row: Mapping[str, Any] | None) -> dict[str, str] | None:
    if row is None:
        return None
    return {"text": _WORDS[row["status"]], "colour": row["colour"], "reasons": ", ".join(row["reasons"])}


def _rows(families: Sequence[Mapping[str, Any] | None]) -> list[dict[str, Any]]:
    figures = [
        {(case["case"], name): given for case in family["cases"] for name, given in case["headline"].items()}
        if family
        else {}
        for family in families
    ]
    keys = list(dict.fromkeys(key for found in figures for key in found))
    return [
        {"case": case, "figure": name, "cells": [_cell(found.get((case, name))) for found in figures]}
        for case, name in keys
    ]


def _cell(given: Mapping[str, Any] | None) -> str:
    if given is None:
        return ""
    if given["value"] is None:
        return f"undefined ({given['reason']})"
    unit = "" if given["unit"] == "1" else f" {given['unit']}"
    span = given["interval"]
    bounds = f" [{span['low']:.4g}, {span['high']:.4g}]" if span else ""
    return f"{given['value']:.4g}{unit}{bounds}, n = {given['support']}"
