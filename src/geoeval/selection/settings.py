"""What a comparison is told: the shape of its records, the limits of its splits, its threshold rule and its gates."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from geoeval.errors import ConfigError
from geoeval.model import Gate

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")

#: Keys that every record has.
FIXED_KEYS = ("model", "subjectKey", "split", "truth", "prediction")

#: What a gate may hold, over all classes and class by class.
METRICS = ("coverage", "precision_at_coverage", "macro_f1", "ece", "aurc", "eaurc", "augrc")
CLASS_METRICS = ("precision", "recall", "f1")

#: Those of :data:`METRICS` in which more is better; in the others less is.
MORE_IS_BETTER = ("coverage", "precision_at_coverage", "macro_f1")

#: Between the two labels of a cell of the confusion table.
ARROW = "->"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNames:
    """``[run]``: the name of the comparison, and what may be claimed from it."""

    name: str
    synthetic: bool = False
    claim_limits: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ConfigError("run.name: must not be empty")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordShape:
    """``[record]``: which keys a record has, and which labels are allowed.

    Parameters
    ----------
    labels
        All labels, whole numbers or texts; a label of another kind, 4.0 for 4, is another label.
    label
        Key of the label in ``truth`` and in ``prediction``.
    quality
        Key of the quality level of what was looked at; read where an abstention policy is declared.
    cluster
        Key of what belongs together, ``subjectKey`` or a key of the record, which then every record needs; ``none``
        declares independence.
    id
        Key of the id of a case, unique in a model; None where cases have none.
    ignore
        Further keys that a record may have; they are not read.
    """

    labels: tuple[int | str, ...]
    label: str = "label"
    quality: str = "quality"
    cluster: str = "subjectKey"
    id: str | None = None
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        texts = [str(one) for one in self.labels]
        twice = sorted(text for text, times in Counter(texts).items() if times > 1)
        if len(texts) < 2:
            raise ConfigError(f"record.labels: needs at least two labels, got {list(self.labels)!r}")
        if twice:
            raise ConfigError(f"record.labels: must differ as text, {twice[0]!r} occurs more than once")
        for text in texts:
            if not text.strip() or ARROW in text:
                raise ConfigError(f"record.labels: {text!r} must not be empty or hold {ARROW!r}")
        keys = [self.quality, *([self.id] if self.id is not None else []), *self.ignore]
        if self.cluster not in ("subjectKey", "none", self.id):
            keys.append(self.cluster)
        for key in (self.label, *keys):
            if not key.strip():
                raise ConfigError("record: the name of a key must not be empty")
        for key, times in Counter([*FIXED_KEYS, *keys]).items():
            if times > 1:
                raise ConfigError(f"record: the key {key!r} cannot have two meanings")
        if self.label == "confidence":
            raise ConfigError("record.label: 'confidence' is the key of the confidence; name the key of the label")

    @property
    def names(self) -> tuple[str, ...]:
        """The labels as text, in their declared order."""
        return tuple(str(one) for one in self.labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitLimits:
    """``[splits]``: the first byte of a subject's key says its split.

    Examples
    --------
    >>> limits = SplitLimits()
    >>> limits.split_of("cc" + 14 * "0"), limits.split_of("cd" + 14 * "0"), limits.split_of("e6" + 14 * "0")
    ('train', 'validation', 'test')
    """

    train_below: int = 205
    validation_below: int = 230

    def __post_init__(self) -> None:
        if not 0 <= self.train_below < self.validation_below <= 255:
            raise ConfigError(
                "splits: 0 <= train_below < validation_below <= 255 must hold, so that validation and test have room; "
                f"got {self.train_below} and {self.validation_below}"
            )

    def split_of(self, key: str) -> Split:
        """The split of a subject."""
        byte = int(key[:2], 16)
        return "train" if byte < self.train_below else "validation" if byte < self.validation_below else "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdRule:
    """``[threshold]``: how much of the validation split a threshold must accept at least."""

    min_coverage: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.min_coverage <= 1:
            raise ConfigError(
                f"threshold.min_coverage: must lie in [0, 1], got {self.min_coverage!r}; is it a percentage?"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalRule:
    """``[intervals]``: how uncertainty is found."""

    confidence: float = 0.95
    redraws: int = 2000
    ranked_redraws: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0.5 < self.confidence < 1:
            raise ConfigError(f"intervals.confidence: must lie in (0.5, 1), got {self.confidence!r}")
        if min(self.redraws, self.ranked_redraws) < 1 or self.seed < 0:
            raise ConfigError("intervals: redraws and ranked_redraws must be at least 1, and seed at least 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFile:
    """``[abstention]``: the file of the abstention policy, relative to the configuration."""

    policy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRule:
    """``[[gate]]``: an inclusive limit on a metric, for every candidate.

    Exactly one of ``at_least`` and ``at_most`` is given. ``label`` holds one class; ``scope = "per_class"`` without it
    holds each class.
    """

    metric: str
    id: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    on: Literal["value", "interval"] = "value"
    min_support: int = 0
    scope: Literal["overall", "per_class"] | None = None
    label: str | int | None = None

    def gate(self, labels: Sequence[str]) -> Gate:
        """The gate.

        Raises
        ------
        ConfigError
            For no or two limits, and for a metric or a label that does not exist.

        Examples
        --------
        >>> GateRule(metric="macro_f1", at_least=0.8).gate(["1", "2"]).id
        'macro_f1>=0.8'
        >>> GateRule(metric="macro_f2", at_least=0.8).gate(["1", "2"])
        Traceback (most recent call last):
        geoeval.errors.ConfigError: gate: there is no metric 'macro_f2' over all classes; did you mean 'macro_f1'?
        """
        from geoeval.errors import nearest_spelling

        limits = [one for one in (self.at_least, self.at_most) if one is not None]
        if len(limits) != 1 or not math.isfinite(limits[0]):
            raise ConfigError(f"gate on {self.metric!r}: needs exactly one of at_least and at_most, a finite number")
        if self.min_support < 0:
            raise ConfigError(f"gate on {self.metric!r}: min_support must be at least 0, got {self.min_support}")
        of_class = self.label is not None or self.scope == "per_class"
        if self.label is not None and self.scope == "overall":
            raise ConfigError(f"gate on {self.metric!r}: a gate on one label is no gate over all classes")
        known = CLASS_METRICS if of_class else METRICS
        if self.metric not in known:
            of = "of a class" if of_class else "over all classes"
            raise ConfigError(f"gate: there is no metric {self.metric!r} {of}; {nearest_spelling(self.metric, known)}")
        label = None if self.label is None else str(self.label)
        if label is not None and label not in labels:
            raise ConfigError(f"gate on {self.metric!r}: unknown label {label!r}; {nearest_spelling(label, labels)}")
        sign = ">=" if self.at_least is not None else "<="
        of = f"@{label}" if label is not None else "[class]" if of_class else ""
        return Gate(
            id=self.id or f"{self.metric}{of}{sign}{limits[0]:g}",
            metric=self.metric,
            direction="at_least" if self.at_least is not None else "at_most",
            limit=limits[0],
            on=self.on,
            min_support=self.min_support,
            scope="per_class" if of_class else "overall",
            by=label,
            family="compare",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonSettings:
    """The whole configuration file of a comparison."""

    run: RunNames
    record: RecordShape
    splits: SplitLimits = field(default_factory=SplitLimits)
    threshold: ThresholdRule = field(default_factory=ThresholdRule)
    abstention: PolicyFile | None = None
    intervals: IntervalRule = field(default_factory=IntervalRule)
    gate: tuple[GateRule, ...] = ()

    def gates(self) -> tuple[Gate, ...]:
        """All gates, each id once."""
        found = tuple(one.gate(self.record.names) for one in self.gate)
        twice = sorted(name for name, times in Counter(one.id for one in found).items() if times > 1)
        if twice:
            raise ConfigError(f"gate: the id {twice[0]!r} occurs more than once; give each gate an id of its own")
        return found
