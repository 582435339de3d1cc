"""Replay a gold set through a runner, and compare two replays.

Conventions   only accepted results are graded; a deferral is no error; cases are told apart by id, so the order of the
              gold set does not matter; the runner never sees what is expected.
Refused       a missing gold set and every malformed line (the tool that this form comes from skipped them), a runner
              that raises or returns what is no result, a file that is there already.
"""

from __future__ import annotations

import contextlib
import secrets
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from geoeval.errors import BundleError, ConfigError, InputError
from geoeval.estimation import BOOTSTRAP_CLUSTERS, BOOTSTRAP_EFFECTIVE
from geoeval.evidence.bundle import write_file
from geoeval.goldset.callables import Named
from geoeval.goldset.cases import Case, gold_hash, graders, read_cases
from geoeval.goldset.document import Replay, read_replay
from geoeval.goldset.journal import Journal, journal_path, open_journal
from geoeval.goldset.outcomes import Outcome, outcome_of
from geoeval.goldset.runner import Result, request_of, result_of
from geoeval.stats.deferral import OperatingCurve, common_cost_range, deferral_operating_points, deferral_single_arm
from geoeval.stats.interval import kish_effective
from geoeval.stats.paired import least_differing
from geoeval.stats.selective import Decision, PairedDelta, bootstrap_delta_mean, paired_order

Metric = Literal["answered_right", "not_wrong", "cheaper"]

#: What each metric gives a case; positive differences are better.
METRICS: dict[str, Callable[[Outcome], float]] = {
    "answered_right": lambda one: float(one.correct is True),
    "not_wrong": lambda one: float(one.correct is not False),
    "cheaper": lambda one: -one.cost,
}

Progress = Callable[[int, int], None]


def replay(
    gold: Path,
    runner: Named,
    *,
    out: Path | None = None,
    resume: bool = False,
    grader: Mapping[str, str] | None = None,
    expert_quality: float = 1.0,
    progress: Progress | None = None,
) -> Replay:
    """Put every case of a gold set through a runner and grade what it accepts.

    Parameters
    ----------
    gold
        JSON Lines, see :mod:`geoeval.goldset.cases`.
    runner
        From :func:`geoeval.goldset.callables.named_callable`.
    out
        Where the replay is written, whole or not at all; its journal lies beside it while the replay runs.
    resume
        Go on with the journal of an interrupted replay: finished cases are not asked again. A finished replay of the
        same gold set and runner is read back.
    grader
        Task to ``label`` or ``grounding``, where the usual choice is not meant.
    expert_quality
        Quality of an expert's answer in [0, 1], for the deferral curves.
    progress
        Called with cases done and cases in all.

    Returns
    -------
    Replay
        The same bytes whether it ran in one go or in ten.

    Raises
    ------
    InputError
        For a malformed gold set, and for a runner that raises or returns no result: the case is named and what was
        finished stays in the journal.
    """
    if not 0 <= expert_quality <= 1:
        raise ConfigError(f"expert_quality must lie in [0, 1], got {expert_quality!r}; is it a percentage?")
    cases = read_cases(gold)
    named = graders(cases, grader)
    bound = {
        "gold_sha256": gold_hash(cases),
        "runner": {"name": runner.name, "sha256": runner.sha256},
        "graders": named,
    }
    if out is not None and out.exists():
        return _finished_before(out, bound, expert_quality, resume=resume)
    journal = open_journal(
        None if out is None else journal_path(out), bound, {case.id for case in cases}, resume=resume
    )
    try:
        _run(cases, runner, journal, progress)
    finally:
        journal.close()
    outcomes = [outcome_of(case, journal.finished[case.id], named[case.task]) for case in cases]
    found = Replay(bound, tuple(sorted(outcomes, key=lambda one: one.id)), expert_quality)
    if out is not None:
        write_whole(out, found.content)
        journal_path(out).unlink(missing_ok=True)
    return found


def _finished_before(out: Path, bound: Mapping[str, Any], expert_quality: float, *, resume: bool) -> Replay:
    if not resume:
        raise InputError(
            f"{out.name}: is there already; give another --out, or --resume to read a finished replay back"
        )
    found = read_replay(out)
    if found.bound != bound or found.expert_quality != expert_quality:
        raise InputError(
            f"{out.name}: is a replay of another gold set, runner or choice of graders; give another --out"
        )
    return found


def _run(cases: Sequence[Case], runner: Named, journal: Journal, progress: Progress | None) -> None:
    for done, case in enumerate(cases):
        if progress is not None:
            progress(done, len(cases))
        if case.id not in journal.finished:
            journal.add(case.id, _asked(case, runner, f"{len(journal.finished)} of {len(cases)} cases are finished"))
    if progress is not None:
        progress(len(cases), len(cases))


def _asked(case: Case, runner: Named, done: str) -> Result:
    where = f"runner {runner.name!r}, case {case.id!r} ({case.where})"
    try:
        # What a runner prints must not mix with one JSON object on stdout.
        with contextlib.redirect_stdout(sys.stderr):
            given = runner.call(request_of(case))
    except Exception as error:
        raise InputError(
            f"{where}: it raised {type(error).__name__}: {error}; {done}. Mend the runner and call again with --resume"
        ) from error
    return result_of(given, where)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        write_file(partial, content)
        partial.replace(path)
    except OSError as error:
        raise BundleError(f"{path.name}: cannot be written ({error.strerror or error}); check the folder") from error
    finally:
        partial.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two replays of one gold set: paired differences candidate − incumbent, positive where the candidate is better.

    ``decision`` follows from the interval of the declared metric alone; the others stand beside it.
    """

    incumbent: str
    candidate: str
    metric: Metric
    n: int
    deltas: dict[str, PairedDelta]
    seed: int

    @property
    def decision(self) -> Decision:
        """``adopt``, ``block`` or ``inconclusive``."""
        return self.deltas[self.metric].decision

    @property
    def document(self) -> dict[str, Any]:
        """As it is printed."""
        return {
            "schema": "geoeval/replay-comparison/1",
            "incumbent": self.incumbent,
            "candidate": self.candidate,
            "metric": self.metric,
            "decision": self.decision,
            "n": self.n,
            "seed": self.seed,
            "deltas": {name: asdict(delta) for name, delta in self.deltas.items()},
        }


def compare(
    incumbent: Replay,
    candidate: Replay,
    *,
    metric: Metric = "answered_right",
    task: str | None = None,
    clusters: bool | None = None,
    redraws: int = 2000,
    seed: int = 0,
) -> Comparison:
    """Paired bootstrap of two replays of one gold set, and the adoption rule.

    Parameters
    ----------
    incumbent, candidate
        Replays of the same gold set, graded alike.
    metric
        What decides: ``answered_right`` (1 for an accepted and correct answer), ``not_wrong`` (0 for an accepted and
        wrong one: a deferral is no error), ``cheaper`` (minus the cost). Declared before.
    task
        Only its cases.
    clusters
        Draw clusters as a whole; None does where the gold set has them.
    redraws, seed
        Drawn by PCG64.

    Returns
    -------
    Comparison
        ``adopt`` only where the whole interval is above 0, ``block`` only where it is below. Few clusters
        (fewer than 20, or than 10 effective ones), or fewer than 6 that differ, are ``inconclusive``, marked
        ``few_clusters``.
    """
    if metric not in METRICS:
        raise ConfigError(f"metric must be one of {sorted(METRICS)}, got {metric!r}")
    if redraws < 1:
        raise ConfigError(f"redraws must be at least 1, got {redraws!r}")
    for key, words in (("gold_sha256", "gold set"), ("graders", "choice of graders")):
        if incumbent.bound[key] != candidate.bound[key]:
            raise InputError(f"both replays must be of one {words}; replay the candidate on that of the incumbent")
    before, after = ([one for one in side.outcomes if task in (None, one.task)] for side in (incumbent, candidate))
    if not before:
        known = sorted({one.task for one in incumbent.outcomes})
        raise ConfigError(f"no case has the task {task!r}; tasks are {known}")
    after = [after[at] for at in paired_order([one.id for one in before], [one.id for one in after]).tolist()]
    known_clusters = [one.cluster for one in before]
    draw = known_clusters[0] is not None if clusters is None else clusters
    deltas = {
        name: _delta(
            [score(one) for one in before],
            [score(one) for one in after],
            known_clusters if draw else None,
            redraws,
            seed,
        )
        for name, score in METRICS.items()
    }
    return Comparison(
        incumbent=str(incumbent.bound["runner"]["name"]),
        candidate=str(candidate.bound["runner"]["name"]),
        metric=metric,
        n=len(before),
        deltas=deltas,
        seed=seed,
    )


def _delta(
    before: list[float], after: list[float], clusters: Sequence[str | None] | None, redraws: int, seed: int
) -> PairedDelta:
    """One paired difference; few clusters, or few that differ at all, decide nothing, as between two predictions."""
    found = bootstrap_delta_mean(before, after, redraws=redraws, seed=seed, clusters=clusters)
    names = range(len(before)) if clusters is None else clusters
    held = Counter(names)
    differing = {name for name, old, new in zip(names, before, after, strict=True) if old != new}
    few = (
        len(held) < BOOTSTRAP_CLUSTERS
        or kish_effective(np.array(list(held.values()), dtype=np.int64)) < BOOTSTRAP_EFFECTIVE
        or 0 < len(differing) < least_differing()
    )
    if not few:
        return found
    return replace(found, decision="inconclusive", marks=tuple(dict.fromkeys((*found.marks, "few_clusters"))))


def curve(
    replays: Mapping[str, Replay], *, expert_cost: float = 0.0, expert_quality: float = 0.0
) -> tuple[dict[str, tuple[float, float]], OperatingCurve, OperatingCurve]:
    """Several replays of one gold set as operating points: mean cost and quality of a case.

    Quality is the share of cases answered right; a deferred case costs ``expert_cost`` more and is worth
    ``expert_quality``.

    Returns
    -------
    tuple
        The points by name; the curve with costs scaled from 0, comparable between sets of replays of one greatest cost;
        the published form, scaled by its own range.
    """
    hashes = {found.bound["gold_sha256"] for found in replays.values()}
    if len(hashes) != 1:
        raise InputError(
            f"a curve needs replays of one gold set, got {len(hashes)} gold sets in {len(replays)} replays"
        )
    if not (0 <= expert_quality <= 1 and 0 <= expert_cost < 1e300):
        raise ConfigError(
            f"expert_quality must lie in [0, 1] and expert_cost be at least 0, got {expert_quality!r}, {expert_cost!r}"
        )
    points = {}
    for name, found in replays.items():
        whole = found.document["overall"]
        n, deferred = whole["n"], whole["deferred"]
        points[name] = (
            (whole["cost"] + expert_cost * deferred) / n,
            (whole["accepted_correct"] + expert_quality * deferred) / n,
        )
    high = common_cost_range({"all": points.values()})[1]
    return (
        points,
        deferral_operating_points(points.values(), cost_range=(0.0, high)),
        deferral_single_arm(points.values()),
    )
