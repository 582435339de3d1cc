"""A judge is called on recorded episodes only; what would run one stands behind a counter that must read zero."""

from __future__ import annotations

import contextlib
import copy
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from geoeval.errors import InputError, nearest_spelling
from geoeval.judging.entries import CalibrationSet, Entry, verdict_word

_KEYS = ("outcome", "dimensions", "swapped_outcome")


@dataclass(frozen=True, slots=True)
class RecordedEpisode:
    """What a judge sees: the task, the episode as it was recorded, the rubric's dimensions. Never the verifier."""

    task_id: str
    episode: Any
    dimensions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge says; None where it cannot decide.

    ``swapped`` is its verdict on the same pair in swapped order, for a judge that compares two answers;
    ``asked_swapped`` says that it gave one.
    """

    outcome: bool | None
    dimensions: Mapping[str, bool | None]
    swapped: bool | None = None
    asked_swapped: bool = False


class Judge(Protocol):
    """Any callable that judges a recorded episode.

    It returns a mapping: ``outcome`` and ``dimensions`` (each dimension) with ``pass``, ``fail`` or ``indeterminate``
    (or true, false, null), and optionally ``swapped_outcome``. A judge with a parameter ``executor`` is given the one
    that counts.
    """

    def __call__(self, episode: RecordedEpisode, /) -> Mapping[str, Any]:
        """Judge one episode."""


class Executor(Protocol):
    """What runs a task and records its episode."""

    def run(self, task_id: str) -> Any:
        """Run the agent on a task."""


@dataclass(slots=True)
class CountingExecutor:
    """The boundary behind which agents run: it counts every run, also one that is not carried out.

    Examples
    --------
    >>> executor = CountingExecutor()
    >>> executor.run("t1")
    Traceback (most recent call last):
    geoeval.errors.InputError: task 't1' was about to be run; calibration reads recorded episodes and runs nothing
    >>> executor.runs
    1
    """

    inner: Executor | None = None
    runs: int = field(default=0, init=False)

    def run(self, task_id: str) -> Any:
        """Count, then run where something can."""
        self.runs += 1
        if self.inner is None:
            raise InputError(
                f"task {task_id!r} was about to be run; calibration reads recorded episodes and runs nothing"
            )
        return self.inner.run(task_id)


def verdicts(
    calibration_set: CalibrationSet,
    judge: Callable[..., Any],
    executor: CountingExecutor,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Verdict, ...]:
    """One verdict for each entry, in their order.

    Raises
    ------
    InputError
        Where the judge raises, returns what is no verdict, or has run anything.
    """
    call = _with_executor(judge, executor)
    out = []
    for done, entry in enumerate(calibration_set.entries):
        if progress is not None:
            progress(done, len(calibration_set.entries))
        out.append(_verdict(call, entry, calibration_set.dimensions))
    if executor.runs != 0:
        raise InputError(
            f"calibration must run no episode, the counter at the executor reads {executor.runs}; "
            "judge the recorded episodes as they are"
        )
    return tuple(out)


def _with_executor(judge: Callable[..., Any], executor: CountingExecutor) -> Callable[[RecordedEpisode], Any]:
    try:
        wanted = "executor" in inspect.signature(judge).parameters
    except (TypeError, ValueError):
        wanted = False
    return (lambda episode: judge(episode, executor=executor)) if wanted else judge


def _verdict(call: Callable[[RecordedEpisode], Any], entry: Entry, dimensions: tuple[str, ...]) -> Verdict:
    where = f"judge, entry {entry.id!r} of task {entry.task_id!r}"
    try:
        # What a judge prints must not mix with one JSON object on stdout.
        with contextlib.redirect_stdout(sys.stderr):
            given = call(RecordedEpisode(entry.task_id, copy.deepcopy(entry.episode), dimensions))
    except Exception as error:
        raise InputError(f"{where}: it raised {type(error).__name__}: {error}; nothing was kept") from error
    return verdict_of(given, dimensions, where)


def verdict_of(given: object, dimensions: tuple[str, ...], where: str) -> Verdict:
    """What a judge returned, validated.

    Examples
    --------
    >>> verdict_of({"outcome": "pass", "dimensions": {"tone": "indeterminate"}}, ("tone",), "judge")
    Verdict(outcome=True, dimensions={'tone': None}, swapped=None, asked_swapped=False)
    >>> verdict_of({"outcome": "pass", "dimensions": {}}, ("tone",), "judge")
    Traceback (most recent call last):
    geoeval.errors.InputError: judge: a verdict must judge each dimension ['tone'], got []
    """
    if not isinstance(given, Mapping):
        raise InputError(f"{where}: expected a mapping with 'outcome' and 'dimensions', got {type(given).__name__}")
    for key in given:
        if key not in _KEYS:
            raise InputError(f"{where}: unknown key {key!r} in the verdict; {nearest_spelling(str(key), _KEYS)}")
    if "outcome" not in given or not isinstance(given.get("dimensions"), Mapping):
        raise InputError(f"{where}: expected 'outcome' and an object 'dimensions', got {sorted(given)}")
    judged = given["dimensions"]
    if set(judged) != set(dimensions):
        raise InputError(
            f"{where}: a verdict must judge each dimension {list(dimensions)}, got {sorted(map(str, judged))}"
        )
    asked = "swapped_outcome" in given
    return Verdict(
        outcome=_word(given["outcome"], "outcome", where),
        dimensions={name: _word(judged[name], name, where) for name in dimensions},
        swapped=_word(given["swapped_outcome"], "swapped_outcome", where) if asked else None,
        asked_swapped=asked,
    )


def _word(value: object, name: str, where: str) -> bool | None:
    if value is None or value == "indeterminate":
        return None
    found = verdict_word(value)
    if found is None:
        raise InputError(f"{where}: {name!r} must be 'pass', 'fail' or 'indeterminate', got {value!r}")
    return found
