"""The gold set: one case a line, validated strictly; nothing is skipped.

===========  ===================================================================================================
``task``     text that is not blank; cases are reported by it
``input``    text that is not blank: what the runner is asked, and the source of what it extracts
``params``   object, optional; ``source`` (text) replaces ``input`` as the source, ``labels`` lists what is allowed
``expect``   label (text or whole number); needed where the grader is ``label``
``id``       text, optional; else the first 16 hex digits of the hash of task, input and params
``cluster``  text, optional, but in all cases or in none: what belongs together (a town, a map sheet)
===========  ===================================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from geoeval.errors import ConfigError, InputError
from geoeval.evidence.canonical import canonical_bytes, digest
from geoeval.goldset.lines import Line, only_keys, read_lines, text_of

GraderName = Literal["label", "grounding"]

#: Graders of the usual tasks; of any other task, ``label`` where all cases expect something, ``grounding`` where none.
USUAL: Mapping[str, GraderName] = {
    "classify": "label",
    "triage": "label",
    "extract": "grounding",
    "summarize": "grounding",
}


@dataclass(frozen=True, slots=True)
class Case:
    """One case with a defined condition of success. ``where`` is its place in the file, for messages."""

    id: str
    task: str
    input: str
    params: Mapping[str, Any]
    expect: str | None
    cluster: str | None
    where: str

    @property
    def source(self) -> str:
        """The text in which extracted statements must be found."""
        return str(self.params.get("source", self.input))


def label_text(value: object) -> str | None:
    """A label as text: text without blanks around it, or a whole number; None for anything else.

    Examples
    --------
    >>> label_text(" water "), label_text(3), label_text(True)
    ('water', '3', None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return str(value)
    return (value.strip() or None) if isinstance(value, str) else None


def read_cases(path: Path) -> tuple[Case, ...]:
    """All cases of a gold set, in the order of the file.

    Raises
    ------
    InputError
        For a missing file, a file without cases, and any line that breaks a rule, naming file and line.
    """
    lines = read_lines(path, "a gold set")
    if not lines:
        raise InputError(f"{path.name}: expected a gold set, found no cases; add one a line")
    cases: list[Case] = []
    seen: dict[str, str] = {}
    for line in lines:
        case = _case(line)
        if case.id in seen:
            raise InputError(f"{case.where}: case {case.id!r} stands in {seen[case.id]}, too; give each its own 'id'")
        if (case.cluster is None) != (cases[0].cluster is None if cases else case.cluster is None):
            raise InputError(f"{case.where}: 'cluster' must stand in all cases or in none; {cases[0].where} differs")
        seen[case.id] = case.where
        cases.append(case)
    return tuple(cases)


def _case(line: Line) -> Case:
    only_keys(line, ("task", "input"), ("params", "expect", "id", "cluster"))
    data = line.data
    task, asked = text_of(line, "task"), text_of(line, "input")
    params = data.get("params", {})
    if not isinstance(params, dict):
        raise InputError(f"{line.where}: 'params' must be an object, got {params!r}")
    if "source" in params and not (isinstance(params["source"], str) and params["source"].strip()):
        raise InputError(f"{line.where}: params 'source' must be text that is not blank, got {params['source']!r}")
    expect = _expect(line)
    _check_labels(line, params, expect)
    own = text_of(line, "id") if "id" in data else None
    cluster = text_of(line, "cluster") if "cluster" in data else None
    content = digest(canonical_bytes({"task": task, "input": asked, "params": params}, None))
    return Case(own or content[:16], task, asked, params, expect, cluster, line.where)


def _expect(line: Line) -> str | None:
    given = line.data.get("expect")
    if given is None:
        return None
    label = label_text(given)
    if label is None:
        raise InputError(
            f"{line.where}: 'expect' must be a label (text that is not blank, or a whole number), got {given!r}"
        )
    return label


def _check_labels(line: Line, params: Mapping[str, Any], expect: str | None) -> None:
    if "labels" not in params:
        return
    given = params["labels"]
    labels = [label_text(one) for one in given] if isinstance(given, list) else []
    if not labels or None in labels or len(set(labels)) != len(labels):
        raise InputError(f"{line.where}: params 'labels' must list distinct labels, got {given!r}")
    if expect is not None and expect not in labels:
        raise InputError(f"{line.where}: 'expect' must be one of the labels {given!r}, got {expect!r}")


def gold_hash(cases: Sequence[Case]) -> str:
    """SHA-256 of what the cases hold, whatever their order and the way they are written.

    Examples
    --------
    >>> gold_hash([])[:16]
    '4f53cda18c2baa0c'
    """
    rows = [
        {
            "id": case.id,
            "task": case.task,
            "input": case.input,
            "params": case.params,
            "expect": case.expect,
            "cluster": case.cluster,
        }
        for case in sorted(cases, key=lambda one: one.id)
    ]
    return digest(canonical_bytes(rows, None))


def graders(cases: Sequence[Case], declared: Mapping[str, str] | None = None) -> dict[str, GraderName]:
    """Which grader each task has, tasks sorted.

    Parameters
    ----------
    cases
        The gold set.
    declared
        Task to ``label`` or ``grounding``; wins over :data:`USUAL` and over what the cases expect.

    Raises
    ------
    InputError
        For a case without ``expect`` whose grader is ``label``, and for a task where some cases expect something.
    """
    chosen = dict(declared or {})
    tasks = sorted({case.task for case in cases})
    unknown = sorted(set(chosen) - set(tasks))
    if unknown:
        raise ConfigError(f"grader: no case has the task {unknown[0]!r}; tasks are {tasks}")
    out: dict[str, GraderName] = {}
    for task in tasks:
        own = [case for case in cases if case.task == task]
        without = [case for case in own if case.expect is None]
        name = chosen.get(task) or USUAL.get(task) or ("grounding" if len(without) == len(own) else "label")
        if name == "grounding":
            out[task] = "grounding"
            continue
        if name != "label":
            raise ConfigError(f"grader of {task!r} must be 'label' or 'grounding', got {name!r}")
        if without:
            raise InputError(f"{without[0].where}: task {task!r} is graded by label, so each case needs 'expect'")
        out[task] = "label"
    return out
