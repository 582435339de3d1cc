"""Calibrate a judge against a verifier, follow it over time, and hold its promotion to the newest result.

Conventions   the verifier is right, the judge is under test; a judge reads recorded episodes and runs nothing; the set
              is stored and hashed, so that two passes use the same entries; the time is an argument.
Gate          refuses unless the newest result of this very judge, on this very set, is fresh and shows *each* dimension
              and the outcome to be unbiased within the margin. One of which nothing can be said is not unbiased.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from geoeval.errors import ConfigError, InputError
from geoeval.judging.entries import CalibrationSet, freeze, read_set
from geoeval.judging.figures import OUTCOME, Calibration, Counts, Identity, figures
from geoeval.judging.history import Recorded, append, newest, read_history, whole_seconds
from geoeval.judging.verdicts import CountingExecutor, verdicts
from geoeval.stats.agreement import Agreement
from geoeval.stats.rounding import round12

__all__ = [
    "Decision",
    "Refusal",
    "append",
    "calibrate",
    "freeze",
    "is_due",
    "newest",
    "promotion_gate",
    "read_history",
    "read_set",
]

#: Bias that matters, where nothing else is declared: 0.1 of the entries.
MARGIN = 0.1

#: Oldest result that a promotion may rest on.
MAX_AGE = timedelta(days=7)

#: Largest share of entries on which a judge may stay undecided: undecided entries could hide a bias.
MAX_INDETERMINATE = 0.05


def calibrate(
    calibration_set: CalibrationSet,
    judge: Callable[..., Any],
    identity: Identity,
    *,
    executor: CountingExecutor | None = None,
    margin: float = MARGIN,
    alpha: float = 0.05,
    progress: Callable[[int, int], None] | None = None,
) -> Calibration:
    """Put every entry's recorded episode before the judge, and hold its verdicts to the verifier's.

    Parameters
    ----------
    calibration_set
        Stored, from :func:`read_set`.
    judge
        See :class:`geoeval.judging.verdicts.Judge`. It never sees the verifier's verdicts.
    identity
        Which judge; a result counts for no other.
    executor
        The boundary at which runs of the agent are counted; None takes one that runs nothing.
    margin
        Bias that matters, in (0, 1), declared before.
    alpha
        Chance of any false "biased" over all dimensions.
    progress
        Called with entries done and entries in all.

    Raises
    ------
    InputError
        Where the judge raises, returns no verdict, or ran anything: the counter must read exactly 0.

    Examples
    --------
    >>> from geoeval.judging.entries import Entry, set_of
    >>> entries = [Entry(f"t{i}", "said", i % 2 == 0, {"tone": i % 2 == 0}) for i in range(40)]
    >>> def strict(episode):
    ...     return {"outcome": "fail", "dimensions": {"tone": "fail"}}
    >>> found = calibrate(set_of(entries), strict, Identity("strict", "none", "1"))
    >>> found.agreement.agreement, found.biased_dimensions, found.executor_runs
    (0.5, {'tone': 'judge_lower'}, 0)
    """
    if not (0 < margin < 1 and 0 < alpha < 1):
        raise ConfigError(f"margin and alpha must lie in (0, 1), got {margin!r} and {alpha!r}; is one a percentage?")
    counter = CountingExecutor() if executor is None else executor
    given = verdicts(calibration_set, judge, counter, progress)
    found = figures(calibration_set, given, identity, executor_runs=counter.runs, margin=margin, alpha=alpha)
    if found.entries != len(calibration_set.entries) or found.executor_runs != 0:
        raise InputError("a pass must use each entry once and run nothing; this one did not")
    return found


def is_due(history: tuple[Recorded, ...], identity: Identity, set_sha256: str, age: timedelta, now: datetime) -> bool:
    """True where no result of this very judge on this very set is at most so old: for a scheduler."""
    last = newest(history, identity)
    if last is None or last.calibration.identity != identity or last.calibration.set_sha256 != set_sha256:
        return True
    return not timedelta(0) <= whole_seconds(now) - last.at <= age


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a promotion is refused: a reason of the closed list, what it says, and the dimension where it is one's.

    The bias of the whole episode stands under the name ``outcome``.

    ``failed``: a limit was evaluated and not met, rather than not decidable.
    """

    reason: str
    says: str
    dimension: str | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a judge may be promoted. ``refusals`` names each reason; empty only where the status is ``pass``."""

    status: Literal["pass", "fail", "not_evaluable"]
    refusals: tuple[Refusal, ...]
    newest: Recorded | None

    @property
    def exit_code(self) -> int:
        """0 may be promoted, 3 a fresh result shows a bias, 2 it cannot be decided."""
        return {"pass": 0, "fail": 3, "not_evaluable": 2}[self.status]


def promotion_gate(
    history: tuple[Recorded, ...],
    identity: Identity,
    set_sha256: str,
    *,
    now: datetime,
    max_age: timedelta = MAX_AGE,
    margin: float = MARGIN,
    alpha: float = 0.05,
    max_indeterminate: float = MAX_INDETERMINATE,
    min_agreement: float | None = None,
) -> Decision:
    """Whether the newest result allows this judge to be promoted. Fails closed.

    Parameters
    ----------
    history
        From :func:`read_history`.
    identity
        The judge as it would be promoted, hashes included.
    set_sha256
        Hash of the calibration set that counts.
    now
        The time.
    max_age
        Oldest result that counts, inclusive.
    margin, alpha
        Verdicts are made again from the counts with these, whatever was declared when the judge was calibrated.
    max_indeterminate
        Largest share of indeterminate verdicts, overall and in each dimension.
    min_agreement
        Least agreement on the outcome, held to the whole interval; None demands none. An unbiased judge may still be
        no better than a coin.

    Returns
    -------
    Decision
        ``pass``; ``fail`` where a result that counts shows a biased dimension or outcome; else ``not_evaluable``, with
        each reason.

    Examples
    --------
    >>> from datetime import UTC
    >>> promotion_gate((), Identity("strict", "none", "1"), "", now=datetime(2026, 1, 1, tzinfo=UTC)).refusals[0].reason
    'evidence_missing'
    """
    if not 0 <= max_indeterminate < 1 or max_age < timedelta(0):
        raise ConfigError(
            f"max_indeterminate must lie in [0, 1) and max_age be at least 0, got {max_indeterminate!r} and {max_age}"
        )
    last = newest(history, identity)
    if last is None:
        return Decision("not_evaluable", (_nothing(history, identity),), None)
    found = last.calibration
    first = [
        *_other(found, identity, set_sha256),
        *_stale(last, whole_seconds(now), max_age),
        *_undecided(found, max_indeterminate),
    ]
    second = [
        refusal
        for name, one in found.assessed(margin, alpha).items()
        if (refusal := _dimension(f"dimension {name!r}", name, one, margin)) is not None
    ]
    of_outcome = _dimension("the outcome", OUTCOME, found.assessed_outcome(margin, alpha), margin)
    second += [] if of_outcome is None else [of_outcome]
    if min_agreement is not None:
        second += _agreement(found.agreement, min_agreement)
    if not found.dimensions:
        first.append(Refusal("no_support", "the result has no dimensions, so nothing was shown"))
    refusals = (*first, *second)
    if not refusals:
        return Decision("pass", (), last)
    failed = any(one.failed for one in second)
    return Decision("fail" if failed and not first else "not_evaluable", refusals, last)


def _nothing(history: tuple[Recorded, ...], identity: Identity) -> Refusal:
    told = " / ".join(identity.tags.values())
    if not history:
        return Refusal("evidence_missing", f"no result exists for {told}; calibrate it first")
    other = " / ".join(history[-1].calibration.identity.tags.values())
    return Refusal("evidence_missing", f"no result exists for {told}, the newest is for {other}; calibrate it first")


def _other(found: Calibration, identity: Identity, set_sha256: str) -> list[Refusal]:
    out = []
    if found.set_sha256 != set_sha256:
        out.append(
            Refusal("manifest_mismatch", "the newest result is on another calibration set; calibrate on this one")
        )
    for what in ("judge", "prompt", "rubric"):
        then, now = (getattr(one, f"{what}_sha256") for one in (found.identity, identity))
        if then != now:
            out.append(
                Refusal(
                    "evidence_mismatch", f"the {what} is not the one that was calibrated (other hash); calibrate again"
                )
            )
    if found.executor_runs != 0:
        out.append(Refusal("evidence_mismatch", f"{found.executor_runs} episodes were run in the pass, expected 0"))
    return out


def _stale(last: Recorded, now: datetime, max_age: timedelta) -> list[Refusal]:
    age = now - last.at
    if age < timedelta(0):
        return [
            Refusal(
                "stale_calibration", f"the newest result is from {last.at.isoformat()}, in the future; check the clock"
            )
        ]
    if age > max_age:
        return [
            Refusal(
                "stale_calibration", f"the newest result is {age} old, at most {max_age} is allowed; calibrate again"
            )
        ]
    return []


def _undecided(found: Calibration, most: float) -> list[Refusal]:
    rows: list[tuple[str | None, Counts]] = [(None, found.overall), *found.dimensions.items()]
    out = []
    for name, counts in rows:
        judged = len(counts.columns[0]) + counts.indeterminate
        if counts.indeterminate > most * judged:
            where = f"dimension {name!r}" if name else "the outcome"
            says = f"{where}: {counts.indeterminate} of {judged} verdicts are indeterminate, more than {most:g} of them"
            out.append(Refusal("low_support", says, name))
    return out


def _agreement(one: Agreement, least: float) -> list[Refusal]:
    if not 0 < least <= 1:
        raise ConfigError(f"min_agreement must lie in (0, 1], got {least!r}; is it a percentage?")
    if one.low is None or one.high is None:
        return [Refusal("no_support", "the outcome: no decided entries")]
    # Decided on the rounded bounds that stand in the history, so that verdict and bytes agree.
    low, high = round12(one.low), round12(one.high)
    if low >= least:
        return []
    says = f"agreement on the outcome [{low:.3f}, {high:.3f}] is not at least {least:g}"
    return [Refusal("ci_straddles_threshold", says, failed=high < least)]


def _dimension(told: str, name: str, one: Agreement, margin: float) -> Refusal | None:
    if one.verdict == "unbiased":
        return None
    if one.verdict == "biased":
        says = f"{told}: biased, {one.direction}: {one.bias:+.3f} of {one.n} entries, margin {margin:g}"
        return Refusal("biased_dimension", says, name, failed=True)
    if one.bias_low is None or one.bias_high is None:
        return Refusal(one.reason or "no_support", f"{told}: no decided entries", name)
    says = (
        f"{told}: neither biased nor unbiased: interval [{one.bias_low:+.3f}, {one.bias_high:+.3f}] "
        f"of {one.n} entries is not within ±{margin:g}; a larger set could decide"
    )
    return Refusal(one.reason or "ci_straddles_threshold", says, name)
