"""The nouns: units, quantities, estimates, findings, verdicts. No arithmetic beyond a ratio, no files, no geometry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
ObjectArray = NDArray[np.object_]

Severity = Literal["blocker", "critical", "major", "minor", "info"]
Status = Literal["pass", "fail", "not_evaluable"]

SEVERITIES: tuple[Severity, ...] = ("blocker", "critical", "major", "minor", "info")

#: Why a number or a verdict is missing. A closed list: other words are refused.
REASONS = frozenset(
    {
        "no_policy",
        "metric_missing",
        "no_support",
        "low_support",
        "few_clusters",
        "single_cluster",
        "deff_undefined",
        "ci_straddles_threshold",
        "undefined_ratio",
        "stale_calibration",
        "biased_dimension",
        "sealed_split_opened",
        "manifest_mismatch",
        "evidence_missing",
        "evidence_mismatch",
        "synthetic_only",
        "critical_subgroup_missing",
        "not_applicable",
        "no_interval",
        "unstable_bootstrap",
        "single_sample_stratum",
        "no_geometry",
        "internal_error",
    }
)

#: Remarks beside a value that is there.
MARKS = frozenset({"few_clusters", "deff_floor", "clipped", "sketch"})

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Proportion:
    """``k`` of ``n`` countable trials: the one kind of quantity that may carry a Wilson interval.

    Parameters
    ----------
    k, n
        Whole numbers with ``0 <= k <= n``, or int64 arrays of one shape, one entry a redraw or a cluster.

    Examples
    --------
    >>> Proportion(8, 10).value
    0.8
    >>> Proportion(0, 0).value is None
    True
    """

    k: int | IntArray
    n: int | IntArray
    unit: str = "1"
    reason: str | None = None

    @property
    def value(self) -> float | FloatArray | None:
        """``k / n``; None (in arrays NaN) where there was no trial."""
        return ratio(self.k, self.n)


@dataclass(frozen=True, slots=True)
class Scalar:
    """Any other figure: F1, an areal IoU, a mean, a quantile.

    Parameters
    ----------
    value
        The figure, None where undefined; or a float64 array, NaN where undefined.
    n
        Support: how many observations stand behind it.
    unit
        ``"1"`` for pure numbers, else a unit symbol such as ``"m"`` or ``"m2"``.
    numerator, denominator
        Both parts, where the figure is a ratio.
    reason
        Why ``value`` is None, from :data:`REASONS`.
    """

    value: float | FloatArray | None
    n: int | IntArray
    unit: str = "1"
    numerator: float | FloatArray | None = None
    denominator: float | FloatArray | None = None
    reason: str | None = None
    marks: tuple[str, ...] = ()


Quantity = Proportion | Scalar


def ratio(numerator: Any, denominator: Any) -> float | FloatArray | None:
    """Quotient of two numbers or arrays; None (in arrays NaN) where the denominator is 0.

    Examples
    --------
    >>> ratio(1, 4)
    0.25
    >>> ratio(1, 0) is None
    True
    >>> ratio(np.array([1, 1]), np.array([4, 0]))
    array([0.25,  nan])
    """
    if np.ndim(numerator) == 0 and np.ndim(denominator) == 0:
        return None if denominator == 0 else float(numerator / denominator)
    top = np.asarray(numerator, dtype=np.float64)
    bottom = np.asarray(denominator, dtype=np.float64)
    shape = np.broadcast_shapes(top.shape, bottom.shape)
    out = np.full(shape, np.nan)
    np.divide(top, bottom, out=out, where=np.broadcast_to(bottom != 0, shape))
    return out


def ratio_of(
    numerator: Any,
    denominator: Any,
    support: int | IntArray | None = None,
    unit: str = "1",
) -> Scalar:
    """A ratio as a :class:`Scalar`, with both its parts.

    Examples
    --------
    >>> ratio_of(16, 20).value
    0.8
    >>> ratio_of(0, 0).reason
    'undefined_ratio'
    """
    value = ratio(numerator, denominator)
    undefined = value is None or bool(np.ndim(value) and np.all(np.isnan(value)))
    return Scalar(
        value,
        n=support if support is not None else denominator,
        unit=unit,
        numerator=numerator,
        denominator=denominator,
        reason="undefined_ratio" if undefined else None,
    )


@dataclass(frozen=True, slots=True)
class Interval:
    """Where the value lies, how that was found, and how many clusters stand behind it."""

    low: float
    high: float
    confidence: float
    method: str
    clusters: int | None = None
    effective_clusters: float | None = None
    design_effect: float | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its uncertainty and its support.

    ``value`` is None where the number is undefined; ``reason`` then says why (from :data:`REASONS`). ``reason`` may
    also stand beside a value, where the *interval* could not be given.
    """

    value: float | None
    unit: str
    support: int
    numerator: float | None = None
    denominator: float | None = None
    interval: Interval | None = None
    interval_iid: tuple[float, float] | None = None
    marks: tuple[str, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong with the data, or something that was done about it: code, severity, where, what, what next.

    Examples
    --------
    >>> Finding("crs-differs", "info", ("b.gpkg",), "EPSG:4326 became EPSG:26918", "none needed").severity
    'info'
    """

    code: str
    severity: Severity
    where: tuple[str, ...]
    says: str
    mend: str = ""


class Cell(NamedTuple):
    """Where a tally belongs inside its unit: cluster, class label, strata; ``""`` and ``()`` where there are none."""

    cluster: str = ""
    label: str = ""
    strata: tuple[tuple[str, str], ...] = ()


P = TypeVar("P")
P_contra = TypeVar("P_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Unit(Generic[P]):
    """What was sampled: a scene, an AOI, a raster, a checkpoint set.

    Parameters
    ----------
    id
        Stable name, unique in a run.
    load
        Reads the payload; called in the worker, so that reading happens where the work is.
    cluster
        The cluster of the whole unit; None where its payload names clusters itself.
    strata
        Field to value, for the whole unit.
    """

    id: str
    load: Callable[[], P]
    cluster: str | None = None
    strata: Mapping[str, str] = field(default_factory=dict)


#: Columns that every record table has, in this order; geometry is a shapely object or None.
RECORD_COLUMNS = (
    "unit",
    "outcome",
    "error_type",
    "reference_id",
    "prediction_id",
    "reference_label",
    "prediction_label",
    "similarity",
    "score",
    "cluster",
    "strata",
    "geometry",
)


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """One row per match, miss, invention or other failure, as columns of equal length.

    ``outcome`` is ``tp``, ``fp``, ``fn`` or ``ignored``; ids, labels, cluster and error type are str, ``""`` where
    there is none; ``similarity`` and ``score`` are float64, NaN where there is none; ``strata`` holds tuples of (field,
    value); ``geometry`` holds the shape to draw, in the coordinates of the evaluation.
    """

    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    @staticmethod
    def of(n: int, **columns: Any) -> Records:
        """A table of ``n`` rows; a column that is left out is filled with its blank.

        Examples
        --------
        >>> len(Records.of(2, outcome="fp", score=[0.5, 0.25]))
        2
        """
        out: dict[str, NDArray[Any]] = {}
        for name in RECORD_COLUMNS:
            blank: Any = np.nan if name in ("similarity", "score") else None if name == "geometry" else ""
            given = columns.pop(name, () if name == "strata" else blank)
            kind = np.float64 if name in ("similarity", "score") else np.object_
            column = np.empty(n, dtype=kind)
            if isinstance(given, np.ndarray | list) and len(given) == n:
                column[:] = given
            else:
                for i in range(n):
                    column[i] = given
            out[name] = column
        for name, given in columns.items():
            out[name] = np.asarray(given)
        return Records(out)

    @staticmethod
    def join(tables: list[Records]) -> Records:
        """All rows of several tables, in their order."""
        full = [table for table in tables if len(table)]
        if not full:
            return Records()
        names = list(full[0].columns)
        return Records({name: np.concatenate([table.columns[name] for table in full]) for name in names})

    def take(self, rows: NDArray[Any]) -> Records:
        """The rows at these positions, or where this mask is true."""
        return Records({name: column[rows] for name, column in self.columns.items()})


@dataclass(frozen=True, slots=True)
class Gate:
    """A declared limit on one metric.

    ``scope`` is ``overall``, ``per_class`` or ``per_subgroup``; ``by`` names the stratum field of the latter.
    ``direction`` is ``at_least`` or ``at_most``, always declared, never guessed. ``on`` is ``interval`` or ``value``.
    """

    id: str
    metric: str
    direction: Literal["at_least", "at_most"]
    limit: float
    on: Literal["interval", "value"] = "interval"
    min_support: int = 0
    scope: Literal["overall", "per_class", "per_subgroup"] = "overall"
    by: str | None = None
    family: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A number held to a limit: one row of ``gates.json``."""

    id: str
    family: str
    metric: str
    scope: str
    direction: str
    limit: float | None
    on: str
    min_support: int
    value: float | None
    low: float | None
    high: float | None
    support: int | None
    clusters: int | None
    status: Status
    reason: str | None = None
    smallest_n: int | None = None
    waived_by: str | None = None

    def __str__(self) -> str:
        sign = {"at_least": "≥", "at_most": "≤"}.get(self.direction, "")
        limit = "" if self.limit is None else f" {sign} {self.limit:g} on the {self.on}"
        value = "undefined" if self.value is None else f"{self.value:.4g}"
        span = "" if self.low is None or self.high is None else f" [{self.low:.4g}, {self.high:.4g}]"
        why = f" ({self.reason})" if self.reason else ""
        return f"{self.status}{why}: {self.metric}{limit}, {self.scope}: {value}{span}, n = {self.support or 0}"


@dataclass(frozen=True, slots=True)
class Stratum:
    """The whole metric set of one subgroup. ``by`` maps field to value."""

    by: Mapping[str, str]
    estimates: Mapping[str, Estimate]
    status: Status = "pass"
    support_reason: str | None = None
    critical: bool = False


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All that one evaluator says about one pair of sources: what ``--json`` prints and ``metrics.json`` holds."""

    family: str
    evaluator: str
    signature: str
    estimates: Mapping[str, Estimate]
    per_class: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    strata: tuple[Stratum, ...] = ()
    findings: tuple[Finding, ...] = ()
    gates: tuple[Verdict, ...] = ()
    excluded_classes: tuple[Mapping[str, Any], ...] | None = None
    confusion: Mapping[str, Any] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


class Sums(Protocol):
    """What :meth:`Evaluator.quantities` reads; see :class:`geoeval.stats.tally.Totals`."""

    size: int


def scalar_value(value: float | FloatArray | None, at: int = 0) -> float | None:
    """Entry ``at`` of a value that may be an array, as a float; None where it is undefined.

    Examples
    --------
    >>> scalar_value(np.array([np.nan, 2.0]), 1)
    2.0
    >>> scalar_value(np.array([np.nan, 2.0])) is None
    True
    """
    if value is None:
        return None
    number = float(np.asarray(value).reshape(-1)[at]) if np.ndim(value) else float(cast("float", value))
    return number if np.isfinite(number) else None
