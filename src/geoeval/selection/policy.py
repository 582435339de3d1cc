"""The abstention policy: when an answer must not be offered, and what is said instead.

One file says it; the parser, the corpus check, the report and the consumer all read that file, and none of them holds a
limit of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from geoeval.errors import ConfigError
from geoeval.evidence.canonical import canonical_bytes, digest
from geoeval.selection.settings import METRICS, MORE_IS_BETTER

if TYPE_CHECKING:
    from geoeval.selection.record import Suggestion

AbstentionReason = Literal["no_suggestion", "poor_quality", "low_confidence"]

#: In the order in which they are looked for: a poor quality abstains however confident the answer is.
ABSTENTIONS: tuple[AbstentionReason, ...] = ("no_suggestion", "poor_quality", "low_confidence")


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityRule:
    """``[quality]``: the levels that may be answered on, and the others.

    Parameters
    ----------
    accepted
        Levels that may be answered on. Whatever is not among them abstains.
    refused
        The other levels that are known. A corpus that holds a level of neither list is refused as misspelt.
    required
        True where every record must carry a level.
    """

    accepted: tuple[str, ...]
    refused: tuple[str, ...] = ()
    required: bool = False

    def __post_init__(self) -> None:
        known = [*self.accepted, *self.refused]
        if not self.accepted or any(not one.strip() for one in known) or len(set(known)) < len(known):
            raise ConfigError(
                "quality: needs at least one accepted level, no empty one, and each level once; "
                f"got accepted {list(self.accepted)!r} and refused {list(self.refused)!r}"
            )

    def accepts(self, level: str | None) -> bool:
        """True where a level may be answered on; one that was not said may, unless it is required.

        Examples
        --------
        >>> rule = QualityRule(accepted=("clear",))
        >>> rule.accepts("clear"), rule.accepts("Clear"), rule.accepts(None)
        (True, False, True)
        """
        return not self.required if level is None else level in self.accepted


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalCopy:
    """``[copy]``: what is said instead of an answer, one text a reason."""

    no_suggestion: str
    low_confidence: str
    poor_quality: str

    def __post_init__(self) -> None:
        texts = [self.no_suggestion.strip(), self.low_confidence.strip(), self.poor_quality.strip()]
        if not all(texts) or len(set(texts)) < len(texts):
            raise ConfigError("copy: each reason needs a text of its own, so that a reader can tell them apart")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRule:
    """``[release]``: the limits that a report must have been held to, or to stricter ones, before it releases anything.

    Parameters
    ----------
    at_least
        Metric to limit, for coverage, precision and F1.
    at_most
        Metric to limit, for calibration error and areas under risk curves.

    Examples
    --------
    >>> ReleaseRule(at_least={"macro_f1": 0.8}).limits
    (('macro_f1', 'at_least', 0.8),)
    >>> ReleaseRule(at_least={"ece": 0.05})
    Traceback (most recent call last):
    geoeval.errors.ConfigError: release.at_least: less is better in 'ece'; its limit belongs under release.at_most
    """

    at_least: Mapping[str, float] = field(default_factory=dict)
    at_most: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        from geoeval.errors import nearest_spelling

        for name, direction, limit in self.limits:
            where = f"release.{direction}"
            if name not in METRICS:
                raise ConfigError(f"{where}: unknown metric {name!r}; {nearest_spelling(name, METRICS)}")
            if direction != ("at_least" if name in MORE_IS_BETTER else "at_most"):
                way, other = ("less", "at_most") if direction == "at_least" else ("more", "at_least")
                raise ConfigError(f"{where}: {way} is better in {name!r}; its limit belongs under release.{other}")
            if not 0 <= limit <= 1:
                raise ConfigError(f"{where}.{name}: must lie in [0, 1], got {limit!r}; is it a percentage?")

    @property
    def limits(self) -> tuple[tuple[str, Literal["at_least", "at_most"], float], ...]:
        """Each as metric, direction and limit."""
        out: list[tuple[str, Literal["at_least", "at_most"], float]] = []
        out += [(name, "at_least", limit) for name, limit in sorted(self.at_least.items())]
        out += [(name, "at_most", limit) for name, limit in sorted(self.at_most.items())]
        return tuple(out)


@dataclass(frozen=True, slots=True, kw_only=True)
class AbstentionPolicy:
    """The whole policy file.

    Parameters
    ----------
    confidence_floor
        Least confidence of an answer, inclusive, whatever a threshold says.
    quality
        None where quality plays no part.
    copy
        None where nothing is shown to anybody.
    """

    name: str
    confidence_floor: float = 0.0
    quality: QualityRule | None = None
    copy: RefusalCopy | None = None
    release: ReleaseRule = field(default_factory=ReleaseRule)

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ConfigError("name: must not be empty")
        if not 0 <= self.confidence_floor <= 1:
            raise ConfigError(
                f"confidence_floor: must lie in [0, 1], got {self.confidence_floor!r}; is it a percentage?"
            )

    def described(self) -> dict[str, Any]:
        """The policy as plain values."""
        plain = asdict(self)
        return {name: value for name, value in plain.items() if value is not None}

    @property
    def sha256(self) -> str:
        """Hash of what the policy says, whatever the spelling of its file."""
        return digest(canonical_bytes(self.described(), digits=None))


#: Refuses nothing but a missing suggestion.
OPEN = AbstentionPolicy(name="open")


@dataclass(frozen=True, slots=True)
class Abstention:
    """An answer that is not offered: why, and what is said instead ("" where the policy has no text)."""

    reason: AbstentionReason
    says: str = ""


def abstention(
    suggestion: Suggestion | None,
    quality: str | None = None,
    *,
    policy: AbstentionPolicy | None = None,
    threshold: float | None = None,
) -> Abstention | None:
    """Why a suggestion must not be offered; None where it may be.

    Parameters
    ----------
    suggestion
        None where the candidate offered nothing.
    quality
        Level of what was looked at; None where it was not said.
    policy
        Without one, no quality is refused and no confidence is too low.
    threshold
        Least confidence, inclusive, as selected on validation; the policy's floor holds beside it.

    Examples
    --------
    >>> from geoeval.selection.record import Suggestion
    >>> policy = AbstentionPolicy(name="demo", confidence_floor=0.6, quality=QualityRule(accepted=("clear",)))
    >>> abstention(Suggestion(0, 0.94), "poor", policy=policy).reason
    'poor_quality'
    >>> abstention(Suggestion(0, 0.59), "clear", policy=policy).reason
    'low_confidence'
    >>> abstention(Suggestion(0, 0.6), "clear", policy=policy) is None
    True
    >>> abstention(Suggestion(0, 0.0), "poor") is None, abstention(None).reason
    (True, 'no_suggestion')
    """
    rule = OPEN if policy is None else policy
    reason: AbstentionReason
    if suggestion is None:
        reason = "no_suggestion"
    elif rule.quality is not None and not rule.quality.accepts(quality):
        reason = "poor_quality"
    elif suggestion.confidence >= rule.confidence_floor and suggestion.confidence >= (threshold or 0.0):
        return None
    else:
        reason = "low_confidence"
    return Abstention(reason, "" if rule.copy is None else str(getattr(rule.copy, reason)))


def counted(reasons: Mapping[str, int]) -> dict[str, int]:
    """Every reason with its count, 0 where it did not occur.

    Examples
    --------
    >>> counted({"low_confidence": 2})
    {'no_suggestion': 0, 'poor_quality': 0, 'low_confidence': 2}
    """
    return {reason: int(reasons.get(reason, 0)) for reason in ABSTENTIONS}
