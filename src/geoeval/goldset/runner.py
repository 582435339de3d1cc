"""What is asked of a runner, and what it returns. The expected answer is never shown to it."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from geoeval.errors import BundleError, InputError, nearest_spelling
from geoeval.evidence.canonical import canonical_bytes, significant
from geoeval.goldset.cases import Case

#: Costs and margins from here on are taken for mistakes; NaN fails the same comparison.
_LARGEST = 1e300

_KEYS = ("accepted", "deferred", "output", "cost", "margin", "escalations")


@dataclass(frozen=True, slots=True)
class Request:
    """What a runner is asked."""

    task: str
    input: str
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """What a runner returned.

    ``accepted``: it stands behind ``output``. ``deferred``: it handed the case to an expert. Neither: it failed, which
    is counted by itself. ``cost`` is in any one unit (tokens, seconds), ``margin`` how sure it was (None: it does not
    say), ``escalations`` how often a stronger model was asked.
    """

    accepted: bool
    deferred: bool = False
    output: Any = None
    cost: float = 0.0
    margin: float | None = None
    escalations: int = 0


class Runner(Protocol):
    """Any callable that answers a request with a :class:`Result`, or with a mapping of its fields."""

    def __call__(self, request: Request, /) -> Result | Mapping[str, Any]:
        """Answer one request."""


def request_of(case: Case) -> Request:
    """The request of a case: its own copy, without what is expected.

    Examples
    --------
    >>> request_of(Case("a", "classify", "tile 7", {}, "water", None, ""))
    Request(task='classify', input='tile 7', params={})
    """
    return Request(case.task, case.input, copy.deepcopy(dict(case.params)))


def result_of(given: object, where: str) -> Result:
    """What a runner returned, validated and as it is read back from a journal.

    Examples
    --------
    >>> result_of({"deferred": True, "cost": 12}, "case 'a'")
    Result(accepted=False, deferred=True, output=None, cost=12.0, margin=None, escalations=0)
    >>> result_of({"accepted": True, "deferred": True}, "case 'a'")
    Traceback (most recent call last):
    geoeval.errors.InputError: case 'a': a result is accepted or deferred, got both
    """
    data = asdict(given) if isinstance(given, Result) else given
    if not isinstance(data, Mapping):
        raise InputError(f"{where}: expected a Result or a mapping of its fields, got {type(data).__name__}")
    for key in data:
        if key not in _KEYS:
            raise InputError(f"{where}: unknown key {key!r} in the result; {nearest_spelling(str(key), _KEYS)}")
    if not {"accepted", "deferred"} & set(data):
        raise InputError(f"{where}: a result must say 'accepted' or 'deferred', got {sorted(data)}")
    accepted, deferred = (_flag(data.get(key, False), key, where) for key in ("accepted", "deferred"))
    if accepted and deferred:
        raise InputError(f"{where}: a result is accepted or deferred, got both")
    margin, escalations = data.get("margin"), data.get("escalations", 0)
    if isinstance(escalations, bool) or not isinstance(escalations, int) or escalations < 0:
        raise InputError(f"{where}: 'escalations' must be a whole number of at least 0, got {escalations!r}")
    cost = _finite(data.get("cost", 0.0), "cost", where)
    if cost < 0:
        raise InputError(f"{where}: 'cost' must be at least 0, got {cost!r}")
    try:
        output = json.loads(canonical_bytes(data.get("output"), None))
    except (BundleError, RecursionError, ValueError) as error:
        raise InputError(f"{where}: 'output' must be plain JSON ({error})") from error
    return Result(
        accepted, deferred, output, cost, None if margin is None else _finite(margin, "margin", where), escalations
    )


def _flag(value: object, key: str, where: str) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"{where}: {key!r} must be true or false, got {value!r}")
    return value


def _finite(value: object, key: str, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_LARGEST < value < _LARGEST:
        raise InputError(f"{where}: {key!r} must be a finite number, got {value!r}")
    # As evidence holds it, so that figures read off the document are those of the run.
    return significant(float(value))
