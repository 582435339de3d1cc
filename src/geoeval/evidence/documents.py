"""The two documents that a bundle's numbers stand in: ``metrics.json`` and ``gates.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from geoeval.errors import BundleError
from geoeval.evidence.canonical import SAFE_INTEGER, canonical_bytes, plain
from geoeval.evidence.shape import evaluation_from_json, evaluation_json, verdict_from_json, verdict_json
from geoeval.model import Evaluation, Verdict

METRICS = "geoeval/metrics/1"
GATES = "geoeval/gates/1"


def metrics_json(evaluations: Mapping[str, Evaluation]) -> dict[str, Any]:
    """``metrics.json``: every evaluation by the name of its case, names sorted."""
    return {
        "schema": METRICS,
        "evaluations": {name: evaluation_json(evaluations[name]) for name in sorted(evaluations)},
    }


def metrics_from_json(data: Mapping[str, Any]) -> dict[str, Evaluation]:
    """Evaluations by the name of their case: the inverse of :func:`metrics_json`."""
    _must_be(data, METRICS, "evaluations")
    return {name: evaluation_from_json(part) for name, part in data["evaluations"].items()}


def gates_json(verdicts: Sequence[Verdict], product_gates: Sequence[Verdict] = ()) -> dict[str, Any]:
    """``gates.json``: verdicts on the metrics, and on what the product needs beside them."""
    return cast(
        "dict[str, Any]",
        plain(
            {
                "schema": GATES,
                "gates": [verdict_json(verdict) for verdict in verdicts],
                "product_gates": [verdict_json(verdict) for verdict in product_gates],
            }
        ),
    )


def gates_from_json(data: Mapping[str, Any]) -> tuple[tuple[Verdict, ...], tuple[Verdict, ...]]:
    """Verdicts and product verdicts: the inverse of :func:`gates_json`."""
    _must_be(data, GATES, "gates")
    return (
        tuple(verdict_from_json(row) for row in data["gates"]),
        tuple(verdict_from_json(row) for row in data.get("product_gates", ())),
    )


def _must_be(data: object, schema: str, key: str) -> None:
    if not isinstance(data, Mapping) or data.get("schema") != schema or key not in data:
        raise BundleError(f"expected a document {schema!r} with {key!r}")


def _number(text: str) -> int | float:
    number = int(text)
    return number if abs(number) < SAFE_INTEGER else float(number)


def document_bytes(document: Mapping[str, Any]) -> bytes:
    """The bytes of a document, as they stand in a bundle."""
    return canonical_bytes(document)


def document_of(data: bytes, name: str) -> Any:
    """A JSON document from its bytes; ``NaN`` and ``Infinity``, which JSON does not have, are refused.

    A number from 2**53 on was a real number when it was written, since whole numbers of that size are text.
    """

    def refuse(word: str) -> None:
        raise BundleError(f"{name}: {word} is not JSON; an undefined number is null with a reason")

    try:
        return json.loads(data.decode("utf-8"), parse_constant=refuse, parse_int=_number)
    except ValueError as error:
        raise BundleError(f"{name}: is not JSON ({error})") from error
