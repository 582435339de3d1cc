"""Gates as JUnit XML, so that any build server shows them: a failed gate is a failure, an undecided one an error.

Nothing is ever written as skipped: a gate that could not be decided does not let anything through. A waiver changes no
status; who waived is said in the message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

from geoeval.model import Evaluation, Verdict
from geoeval.report.words import REASONS, bounds, figure, limit, why

#: What XML 1.0 cannot hold.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_bytes(
    run: str,
    evaluations: Mapping[str, Evaluation],
    verdicts: Iterable[Verdict],
    product_gates: Iterable[Verdict] = (),
) -> bytes:
    """The gates of a run as JUnit XML: a suite a case, a test a gate.

    Parameters
    ----------
    run
        The run id.
    evaluations
        By the name of their case; a case without gates is one error.
    verdicts
        Gates on metrics, their ids led by the name of their case.
    product_gates
        Gates on what the product needs beside its metrics; a suite of their own.

    Returns
    -------
    bytes
        UTF-8, without dates or times.

    Examples
    --------
    >>> print(junit_bytes("run-1", {}, []).decode().splitlines()[1])
    <testsuites name="run-1" tests="0" failures="0" errors="0">
    """
    every = list(verdicts)
    suites = [(name, [one for one in every if one.id.startswith(f"{name}:")], True) for name in sorted(evaluations)]
    product = list(product_gates)
    if product:
        suites.append(("product", product, False))
    bodies = [_suite(name, gates, demanded=demanded) for name, gates, demanded in suites]
    totals = [sum(numbers) for numbers in zip(*(counted for _, counted in bodies), strict=True)] or [0, 0, 0]
    head = f"<testsuites name={_quoted(run)} {_counts(totals)}>"
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', head, *(line for body, _ in bodies for line in body)]
    return "\n".join([*lines, "</testsuites>", ""]).encode()


def _suite(name: str, gates: Sequence[Verdict], *, demanded: bool) -> tuple[list[str], tuple[int, int, int]]:
    lines = [line for gate in gates for line in _test(name, gate)]
    failures = sum(gate.status == "fail" for gate in gates)
    errors = sum(gate.status == "not_evaluable" for gate in gates)
    tests = len(gates)
    if demanded and not gates:
        lines, tests, errors = _error(name, "gates", REASONS["no_policy"], "no_policy"), 1, 1
    counted = (tests, failures, errors)
    return [f"  <testsuite name={_quoted(name)} {_counts(counted)}>", *lines, "  </testsuite>"], counted


def _test(suite: str, gate: Verdict) -> list[str]:
    name = gate.id.removeprefix(f"{suite}:")
    if gate.status == "pass":
        return [f"    <testcase classname={_quoted(suite)} name={_quoted(name)}/>"]
    if gate.status == "not_evaluable":
        return _error(suite, name, _message(gate), gate.reason or "not_evaluable")
    return _outcome("failure", suite, name, _message(gate), gate.reason or "limit")


def _error(suite: str, name: str, message: str, kind: str) -> list[str]:
    return _outcome("error", suite, name, message, kind)


def _outcome(element: str, suite: str, name: str, message: str, kind: str) -> list[str]:
    return [
        f"    <testcase classname={_quoted(suite)} name={_quoted(name)}>",
        f"      <{element} type={_quoted(kind)} message={_quoted(message)}>{escape(_clean(message))}</{element}>",
        "    </testcase>",
    ]


def _message(gate: Verdict) -> str:
    value = "undefined" if gate.value is None else f"{figure(gate.value)} {bounds(gate.low, gate.high)}".rstrip()
    parts = [gate.metric if gate.limit is None else f"{gate.metric} is {value}, demanded {limit(gate)}", why(gate)]
    return "; ".join(part for part in parts if part)


def _counts(counted: Sequence[int]) -> str:
    tests, failures, errors = counted
    return f'tests="{tests}" failures="{failures}" errors="{errors}"'


def _quoted(text: str) -> str:
    return quoteattr(_clean(text))


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
