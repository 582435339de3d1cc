"""The tables of a run's configuration file, as typed, frozen values with their defaults."""

from __future__ import annotations

from dataclasses import field
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints
from pydantic.dataclasses import dataclass

from geoeval.options import Align, Design, OnInvalid, OnMismatch, OnUnknown

Family = Literal["detection", "footprint", "vector", "change", "raster", "elevation", "validation"]

#: Names become parts of ids and file names.
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=80)]
Text = Annotated[str, StringConstraints(min_length=1)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]

_STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


@dataclass(frozen=True, config=_STRICT)
class RunTable:
    """``[run]``: the name of the run, and what may be claimed from it."""

    name: Name
    synthetic: bool = False
    claim_limits: tuple[Text, ...] = ()


@dataclass(frozen=True, config=_STRICT)
class IntervalsTable:
    """``[intervals]``: how uncertainty is found."""

    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    redraws: Annotated[int, Field(ge=1)] = 2000
    ranked_redraws: Annotated[int, Field(ge=1)] = 500
    seed: Annotated[int, Field(ge=0)] = 0


@dataclass(frozen=True, config=_STRICT)
class ColumnsTable:
    """``columns = {...}``: which column means what; a column that is left out is guessed, ``""`` means none."""

    id: str | None = None
    label: str | None = None
    score: str | None = None
    unit: str | None = None
    ignore: str | None = None
    kind: str | None = None
    date: str | None = None
    value: str | None = None
    stratum: str | None = None


@dataclass(frozen=True, config=_STRICT)
class SourceTable:
    """``reference`` and ``prediction``: a path, or a table with a path and how to read it."""

    path: Text
    before: Text | None = None
    layer: str | None = None
    where: str | None = None
    crs: str | None = None
    band: Annotated[int, Field(ge=1)] = 1
    nodata: Annotated[float, Field(allow_inf_nan=True)] | None = None
    recode: dict[str, str] = field(default_factory=dict)
    unit: str | None = None
    vertical_datum: str | None = None
    columns: ColumnsTable = field(default_factory=ColumnsTable)


@dataclass(frozen=True, config=_STRICT)
class CaseTable:
    """``[[case]]``: two sources, how they become units, and the options of the family's evaluator.

    ``critical`` maps a stratum field to the values that must be there, have ``min_support`` and pass.

    Where the run has ``[splits]``, the names that the case's units or clusters bear (``sample_by``) are ids of
    protected samples, or ``sample_of`` says which sample each name stands for. ``samples`` narrows the case to some.
    """

    id: Name
    family: Family
    reference: SourceTable
    prediction: SourceTable
    options: dict[str, Any] = field(default_factory=dict)
    cluster: Text = "auto"
    by: tuple[Text, ...] = ()
    attributes: tuple[Text, ...] = ()
    aoi: str | None = None
    on_invalid: OnInvalid = "repair"
    on_crs_mismatch: OnMismatch = "reproject"
    on_unknown_unit: OnUnknown = "refuse"
    drop_unmatched_ids: bool = False
    units: str | None = None
    align: Align | None = None
    design: Design | None = None
    unit: str | None = None
    min_support: Annotated[int, Field(ge=0)] = 0
    critical: dict[str, Annotated[tuple[Text, ...], Field(min_length=1)]] = field(default_factory=dict)
    samples: tuple[Text, ...] = ()
    sample_by: Literal["unit", "cluster"] | None = None
    sample_of: dict[str, Text] = field(default_factory=dict)


@dataclass(frozen=True, config=_STRICT)
class SplitsTable:
    """``[splits]``: the manifests that stand between the data and the evaluators.

    ``development_sha256`` and ``sha256`` are the hashes of the development and of the protected manifest that the run
    is bound to. Assets of samples lie below ``root``.
    """

    development: Text
    development_sha256: Sha256
    protected: Text
    sha256: Sha256
    root: Text = "."


@dataclass(frozen=True, config=_STRICT)
class GateTable:
    """``[[gate]]``: a limit on one metric of one family. Exactly one of ``at_least`` and ``at_most`` is given."""

    family: Family
    metric: Text
    id: Name | None = None
    at_least: float | None = None
    at_most: float | None = None
    on: Literal["interval", "value"] = "interval"
    min_support: Annotated[int, Field(ge=0)] = 0
    scope: Literal["overall", "per_class", "per_subgroup"] | None = None
    by: Text | None = None
    label: Text | None = None


@dataclass(frozen=True, config=_STRICT)
class EarlierTable:
    """An entry of ``earlier``: an evidence file on record from before, bound by its checksum."""

    file: Text
    sha256: Sha256


@dataclass(frozen=True, config=_STRICT)
class EvidenceTable:
    """``[product_gates.NAME]``: an evidence file, bound by its checksum.

    ``earlier`` are the evidence files on record before this one. What they found stands until it is superseded.
    """

    file: Text
    sha256: Sha256
    earlier: tuple[EarlierTable, ...] = ()


@dataclass(frozen=True, config=_STRICT)
class ProductGatesTable:
    """``[product_gates]``: what the product needs beside its metrics. What is left out is not evaluable."""

    review: EvidenceTable | None = None
    authority: EvidenceTable | None = None
    leakage: EvidenceTable | None = None
    protected_storage_isolation: EvidenceTable | None = None
    subgroups: EvidenceTable | None = None
    device: EvidenceTable | None = None


@dataclass(frozen=True, config=_STRICT)
class ProjectionTable:
    """``[[projection]]``: the one part of a status file that the run depends on, as a JSON pointer."""

    file: Text
    pointer: Annotated[str, StringConstraints(pattern=r"^(/[^/]*)+$")]


@dataclass(frozen=True, config=_STRICT)
class WaiverTable:
    """``[[waiver]]`` of a separate file: a signed permission to go on in spite of a gate."""

    gate: Text
    reason: Text
    signed_by: Text
    expires: date | None = None


@dataclass(frozen=True, config=_STRICT)
class WaiversTable:
    """A file of waivers."""

    waiver: tuple[WaiverTable, ...]


@dataclass(frozen=True, config=_STRICT)
class CapabilityTable:
    """``[[capability]]``: what the platform does, and the evaluator family that covers it."""

    id: Name
    name: Text
    kind: Literal["learned", "deterministic"]
    family: Family


@dataclass(frozen=True, config=_STRICT)
class OrchestratorTable:
    """``[[orchestrator]]``: what only calls capabilities, and so has no score of its own."""

    id: Name
    name: Text


@dataclass(frozen=True, config=_STRICT)
class CapabilitiesTable:
    """The inventory."""

    capability: Annotated[tuple[CapabilityTable, ...], Field(min_length=1)]
    orchestrator: tuple[OrchestratorTable, ...] = ()


@dataclass(frozen=True, config=_STRICT)
class BenchmarkTable:
    """The whole file."""

    run: RunTable
    case: Annotated[tuple[CaseTable, ...], Field(min_length=1)]
    intervals: IntervalsTable = field(default_factory=IntervalsTable)
    splits: SplitsTable | None = None
    gate: tuple[GateTable, ...] = ()
    product_gates: ProductGatesTable = field(default_factory=ProductGatesTable)
    bind: dict[str, tuple[Text, ...]] = field(default_factory=dict)
    projection: tuple[ProjectionTable, ...] = ()
