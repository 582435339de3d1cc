"""The configuration of a run: one TOML file becomes frozen values. What is not understood is refused, with its place.

::

    [run]
    name = "fixtures"
    synthetic = true

    [[case]]
    id = "buildings"
    family = "footprint"
    reference = "fixtures/footprint/reference.geojson"
    prediction = { path = "fixtures/footprint/prediction.geojson", columns = { score = "p" } }
    cluster = "aoi"
    by = ["region"]
    min_support = 20
    critical = { region = ["north"] }
    options = { iou = 0.5, boundary_tolerance_m = 1.0 }

    [[gate]]
    family = "footprint"
    metric = "recall"
    at_least = 0.8

    [product_gates.review]
    file = "evidence/review.json"
    sha256 = "..."
    earlier = [{ file = "evidence/review-1.json", sha256 = "..." }]

    [splits]
    development = "splits/development.json"
    development_sha256 = "..."
    protected = "splits/protected.json"
    sha256 = "..."

Paths are relative to the file. A gate's direction is always given (``at_least`` or ``at_most``). ``by = "region"``
holds every subgroup of a field to it, ``label = "car"`` one class, ``scope = "per_class"`` each class. ``critical``
names the subgroups that must be there, have ``min_support`` observations and pass. With ``[splits]``, every case is
held against the manifests before an evaluator sees it; see :mod:`geoeval.config.protected`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path, PurePath
from typing import Any, Literal

from geoeval.config.reading import options_of, read_toml, validated
from geoeval.config.tables import (
    BenchmarkTable,
    CapabilitiesTable,
    CapabilityTable,
    CaseTable,
    GateTable,
    IntervalsTable,
    ProductGatesTable,
    ProjectionTable,
    SourceTable,
    SplitsTable,
    WaiversTable,
)
from geoeval.errors import ConfigError, InputError
from geoeval.gates import Waiver, check_metrics
from geoeval.keys import FAMILIES, known_metrics
from geoeval.model import Gate
from geoeval.options import Columns, Pairing, Source

__all__ = [
    "Case",
    "Config",
    "load_capabilities",
    "load_config",
    "load_waivers",
    "options_of",
    "parse_config",
]

Scope = Literal["overall", "per_class", "per_subgroup"]

#: Entries of ``[splits]`` that are paths.
_PATHS = ("development", "protected", "root")

_PAIRING = tuple(field.name for field in fields(Pairing))


@dataclass(frozen=True, slots=True)
class Case:
    """One pair of sources, how to bring them together, and what the family's evaluator is told."""

    id: str
    family: str
    reference: Source
    prediction: Source
    pairing: Pairing
    options: Mapping[str, Any]
    min_support: int = 0
    critical: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    samples: tuple[str, ...] = ()
    sample_by: Literal["unit", "cluster"] = "unit"
    sample_of: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Config:
    """A whole run as declared. ``base`` is the folder that paths are relative to."""

    table: BenchmarkTable
    cases: tuple[Case, ...]
    gates: tuple[Gate, ...]
    base: Path

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.table.run.name

    @property
    def synthetic(self) -> bool:
        """True where the inputs are synthetic, so that nothing may be claimed for a product."""
        return self.table.run.synthetic

    @property
    def claim_limits(self) -> tuple[str, ...]:
        """Sentences that limit what may be claimed."""
        return self.table.run.claim_limits

    @property
    def intervals(self) -> IntervalsTable:
        """Confidence, redraws and seed."""
        return self.table.intervals

    @property
    def product_gates(self) -> ProductGatesTable:
        """Evidence files by product gate."""
        return self.table.product_gates

    @property
    def projections(self) -> tuple[ProjectionTable, ...]:
        """Parts of status files that the run depends on."""
        return self.table.projection

    def path(self, name: str) -> Path:
        """A path of the file, from its own folder."""
        return self.base / name

    def resolved(self) -> dict[str, Any]:
        """The configuration with every default, for the bundle.

        Relative paths stand as written; of an absolute one, which would tell about the machine, only its name stands.
        """
        whole = asdict(self.table)
        run = whole.pop("run")
        cases = [
            {
                **case,
                "reference": _portable_source(case["reference"]),
                "prediction": _portable_source(case["prediction"]),
            }
            for case in whole.pop("case")
        ]
        for case in cases:
            case["aoi"] = _portable(case["aoi"])
            case["units"] = _portable(case["units"])
            case["by"] = [_portable_field(text) for text in case["by"]]
        del whole["gate"]
        product = {
            name: None if row is None else {**_portable_file(row), "earlier": [*map(_portable_file, row["earlier"])]}
            for name, row in whole.pop("product_gates").items()
        }
        bind = {name: [_portable(path) for path in paths] for name, paths in whole.pop("bind").items()}
        projection = [_portable_file(row) for row in whole.pop("projection")]
        splits = whole.pop("splits")
        return {
            "name": run["name"],
            "synthetic": run["synthetic"],
            "claim_limits": list(run["claim_limits"]),
            "cases": cases,
            "gates": [asdict(gate) for gate in self.gates],
            "product_gates": product,
            "bind": bind,
            "projection": projection,
            "splits": splits if splits is None else {**splits, **{name: _portable(splits[name]) for name in _PATHS}},
            **whole,
        }


def _portable(path: str | None) -> str | None:
    if path is None:
        return None
    pure = PurePath(path)
    return pure.name if pure.is_absolute() or pure.drive else path.replace("\\", "/")


def _portable_file(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "file": _portable(row["file"])}


def _portable_field(text: str) -> str:
    name, sign, path = text.partition("=")
    return f"{name}{sign}{_portable(path) if sign else ''}"


def _portable_source(source: Mapping[str, Any]) -> dict[str, Any]:
    """The source as JSON can hold it: a nodata of NaN is text there."""
    nodata = source["nodata"]
    not_finite = nodata is not None and nodata != nodata  # noqa: PLR0124
    named = {name: _portable(source[name]) for name in ("path", "before")}
    return {**source, **named, "nodata": "nan" if not_finite else nodata}


def load_config(path: Path) -> Config:
    """Read and check a configuration file.

    Raises
    ------
    ConfigError
        For anything that is not understood: unknown keys with the nearest spelling, wrong kinds, gates without a
        direction or on a metric that the family does not have.
    """
    return parse_config(read_toml(Path(path)), Path(path).resolve().parent)


def parse_config(data: Mapping[str, Any], base: Path) -> Config:
    """A configuration from its tables.

    Examples
    --------
    >>> side = {"reference": "a.gpkg", "prediction": "b.gpkg"}
    >>> run = {"name": "wells"}
    >>> parse_config({"run": run, "case": [{"id": "w", "family": "vector", "cluser": "aoi", **side}]}, Path("."))
    Traceback (most recent call last):
    geoeval.errors.ConfigError: case[0]: unknown key 'cluser'; did you mean 'cluster'?
    """
    _require_bound(data.get("splits"), base)
    table = validated(BenchmarkTable, _spelled_out(data))
    cases = tuple(_case(row, base) for row in table.case)
    _check_samples(table)
    _once([case.id for case in cases], "case", "id")
    gates = tuple(_gate(row, i) for i, row in enumerate(table.gate))
    _once([gate.id for gate in gates], "gate", "id")
    check_metrics(gates, {family: known_metrics(family) for family in FAMILIES})
    return Config(table, cases, _with_required(gates, cases), base)


def _require_bound(splits: Any, base: Path) -> None:
    """Refuse a split manifest that is bound by no hash, and say which one it has; other faults are found later."""
    if not isinstance(splits, Mapping) or not set(splits) <= {one.name for one in fields(SplitsTable)}:
        return
    for key, name in (("development_sha256", "development"), ("sha256", "protected")):
        if key not in splits and isinstance(splits.get(name), str):
            raise ConfigError(f"splits.{key}: is required and missing; {_hash_there(base / splits[name])}")


def _hash_there(path: Path) -> str:
    from geoeval.splits.manifest import read_manifest

    try:
        found = read_manifest(path, open_fixture=True).sha256
    except InputError as error:
        return f"give the hash that the manifest got when it was built ({error})"
    return f"{path.name} has the hash {found}: write it there, once it is the one that the split's builder named"


def _spelled_out(data: Mapping[str, Any]) -> dict[str, Any]:
    """Short forms written out: a source that is a path, a binding that is one file."""
    out = dict(data)
    if isinstance(out.get("case"), list):
        out["case"] = [_case_spelled_out(case) for case in out["case"]]
    if isinstance(out.get("bind"), dict):
        out["bind"] = {name: [paths] if isinstance(paths, str) else paths for name, paths in out["bind"].items()}
    return out


def _case_spelled_out(case: Any) -> Any:
    if not isinstance(case, dict):
        return case
    sides = {side: {"path": case[side]} for side in ("reference", "prediction") if isinstance(case.get(side), str)}
    return {**case, **sides}


def _once(names: list[str], table: str, key: str) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            first = f"{table}[{names.index(name)}]"
            raise ConfigError(f"{table}[{i}].{key}: {name!r} is there already as {first}; give each its own {key}")


def _check_samples(table: BenchmarkTable) -> None:
    """Refuse sample ids where there is no manifest that they could be in."""
    for i, row in enumerate(table.case):
        given = [name for name in ("samples", "sample_by", "sample_of") if getattr(row, name)]
        if given and table.splits is None:
            raise ConfigError(f"case[{i}].{given[0]}: needs [splits], the manifests that samples are in; there is none")


def _case(row: CaseTable, base: Path) -> Case:
    return Case(
        id=row.id,
        family=row.family,
        reference=_source(row.reference, base),
        prediction=_source(row.prediction, base),
        pairing=Pairing(
            **{
                **{name: getattr(row, name) for name in _PAIRING},
                "aoi": _under(row.aoi, base),
                "units": _under(row.units, base),
            }
        ),
        options=row.options,
        min_support=row.min_support,
        critical=row.critical,
        samples=row.samples,
        sample_by=row.sample_by or "unit",
        sample_of=row.sample_of,
    )


def _under(path: str | None, base: Path) -> str | None:
    return None if path is None else str(base / path)


def _source(row: SourceTable, base: Path) -> Source:
    given = {field.name: getattr(row, field.name) for field in fields(Source)}
    columns = Columns(**asdict(row.columns))
    return Source(**{**given, "path": str(base / row.path), "before": _under(row.before, base), "columns": columns})


def _gate(row: GateTable, at: int) -> Gate:
    where = f"gate[{at}]"
    limits = [(name, limit) for name in ("at_least", "at_most") if (limit := getattr(row, name)) is not None]
    if len(limits) != 1:
        found = "both" if limits else "neither"
        raise ConfigError(
            f"{where}: needs exactly one of 'at_least' and 'at_most', got {found}; no direction is guessed"
        )
    if row.by is not None and row.label is not None:
        raise ConfigError(f"{where}: 'by' is for subgroups and 'label' for one class; give one of them")
    implied: Scope | None = "per_class" if row.label is not None else "per_subgroup" if row.by is not None else None
    scope: Scope = row.scope or implied or "overall"
    if implied is not None and scope != implied:
        raise ConfigError(f"{where}: scope {scope!r} does not go with 'by' or 'label'; {implied!r} would")
    if scope == "per_subgroup" and row.by is None:
        raise ConfigError(f"{where}: scope 'per_subgroup' needs 'by', the field of the subgroups")
    end = {"overall": "", "per_class": f"-{row.label or 'per-class'}", "per_subgroup": f"-by-{row.by}"}[scope]
    return Gate(
        id=row.id or re.sub(r"[^A-Za-z0-9_.-]+", "-", f"{row.family}-{row.metric}{end}"),
        metric=row.metric,
        direction="at_least" if limits[0][0] == "at_least" else "at_most",
        limit=limits[0][1],
        on=row.on,
        min_support=row.min_support,
        scope=scope,
        by=row.label or row.by,
        family=row.family,
    )


def _with_required(gates: tuple[Gate, ...], cases: tuple[Case, ...]) -> tuple[Gate, ...]:
    """The declared gates and those that a family always has: no missed blocker or critical anomaly."""
    if all(case.family != "validation" for case in cases):
        return gates
    from geoeval.evaluators.validation import required_gates

    declared = {gate.id for gate in gates}
    return (*gates, *(gate for gate in required_gates() if gate.id not in declared))


def load_waivers(path: Path) -> tuple[Waiver, ...]:
    """Waivers from their own file: ``[[waiver]]`` with ``gate``, ``reason``, ``signed_by`` and, if wanted, ``expires``.

    Raises
    ------
    ConfigError
        Where something is missing or not understood.
    """
    table = validated(WaiversTable, read_toml(Path(path)))
    return tuple(Waiver(row.gate, row.reason, row.signed_by, row.expires) for row in table.waiver)


def load_capabilities(path: Path) -> CapabilitiesTable:
    """The inventory of platform capabilities, each id once.

    Covering a family makes no claim for each capability in it; an orchestrator has no score of its own.
    """
    table = validated(CapabilitiesTable, read_toml(Path(path)))
    rows: tuple[CapabilityTable, ...] = table.capability
    _once([row.id for row in rows] + [row.id for row in table.orchestrator], "capability", "id")
    return table
