"""The split of a run: manifests that are held to their gates, and cases that are held to the manifests.

Order     first the manifests (whole, the very one that was bound, no leak), then the declared samples, then the names
          that the data themselves bear and the files that were read. An evaluator is started after all of that only.
Refused   challenge samples, samples that are in no manifest, data that bear another name, files of development samples.
Limits    names and files are compared; where the features of a case lie is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geoeval.config import Case, Config
from geoeval.config.tables import SplitsTable
from geoeval.errors import ConfigError, InputError, LeakageError
from geoeval.evidence.canonical import file_digest
from geoeval.model import Unit
from geoeval.readers.unitset import UnitSet
from geoeval.splits.building import described
from geoeval.splits.evaluation import EvaluationBinding, assert_evaluation_assets, bind_evaluation
from geoeval.splits.firewall import protected_table
from geoeval.splits.leakage import GateResult, check
from geoeval.splits.manifest import FIXTURE_KEY, Manifest, read_manifest
from geoeval.splits.record import ASSETS, EVALUATED
from geoeval.splits.settings import SplitSettings
from geoeval.splits.table import joined

#: Gates that must pass; the others must not fail, and in production all must pass.
PROVEN = ("identity", "buffer", "complete")

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class OpenSplit:
    """Manifests whose gates hold, and the permission that comes of them.

    Parameters
    ----------
    binding
        The exact protected manifest, and the ids that may be evaluated.
    gates
        What the gates found between the samples of both manifests.
    root
        Folder of the samples' assets.
    """

    development: Manifest
    protected: Manifest
    binding: EvaluationBinding
    gates: tuple[GateResult, ...]
    root: Path

    @property
    def production(self) -> bool:
        """True where both manifests allow figures of accuracy for a product."""
        both = (self.development, self.protected)
        return all(one.content["production_accuracy_use_allowed"] is True for one in both)

    @property
    def claim_limits(self) -> tuple[str, ...]:
        """What may not be claimed because of the manifests."""
        if self.production:
            return ()
        modes = " and ".join(dict.fromkeys((self.development.mode, self.protected.mode)))
        return (f"{modes} split manifests: production_accuracy_use_allowed is false",)

    def facts(self) -> dict[str, Any]:
        """What the bundle says about the split: hashes and gates, and no sample."""
        return {
            "production_accuracy_use_allowed": self.production,
            "same_source": self.development.content["source_sha256"] == self.protected.content["source_sha256"],
            **{
                name: {"sha256": one.sha256, "mode": one.mode, "samples": len(one.samples)}
                for name, one in (("development", self.development), ("protected", self.protected))
            },
            "gates": {one.id: {"status": one.status, "reason": one.reason, "count": one.count} for one in self.gates},
        }


def open_split(config: Config, *, open_fixture: bool = False) -> OpenSplit | None:
    """Read both manifests of a configuration, hold them to the gates and bind the evaluation to the protected one.

    Parameters
    ----------
    open_fixture
        True opens manifests of a synthetic fixture. Only code can say so; nothing in a file does.

    Returns
    -------
    OpenSplit or None
        None where the configuration has no ``[splits]``.

    Raises
    ------
    InputError
        A manifest is unreadable, edited, of another hash, or a fixture; or an asset is not what was hashed.
    LeakageError
        A gate fails, or cannot be decided where it must pass; the message names the pairs. Or a declared sample is
        sealed or unknown.
    """
    table = config.table.splits
    if table is None:
        return None
    development = _development(config, table, open_fixture=open_fixture)
    protected = read_manifest(config.path(table.protected), sha256=table.sha256, open_fixture=open_fixture)
    binding = bind_evaluation(protected, table.sha256, open_fixture=open_fixture)
    root = config.path(table.root)
    key = FIXTURE_KEY if open_fixture and protected.mode == "fixture" else None
    tables = [protected_table(one, root, key) for one in (development, protected)]
    gates = check(joined(tables), _strictest([development, protected]))
    opened = OpenSplit(development, protected, binding, gates, root)
    _refuse(gates, production=opened.production)
    _check_assets(protected, root)
    for i, case in enumerate(config.cases):
        _require(binding, {*case.samples, *case.sample_of.values()}, f"case[{i}] ({case.id!r})")
    return opened


def _development(config: Config, table: SplitsTable, *, open_fixture: bool) -> Manifest:
    found = read_manifest(config.path(table.development), open_fixture=open_fixture)
    if found.content["set"] != "development":
        raise InputError(f"splits.development: expected a development manifest, got set {found.content['set']!r}")
    if not found.samples:
        raise InputError("splits.development: the manifest holds no sample, so that no leak could be found")
    return found


def _strictest(manifests: Sequence[Manifest]) -> SplitSettings:
    """The larger buffer and radius of both, and every identity that either holds apart."""
    declared = [one.content["settings"] for one in manifests]
    return SplitSettings(
        buffer_m=max(float(one["buffer_m"]) for one in declared),
        radius=max(int(one["radius"]) for one in declared),
        identities=tuple(dict.fromkeys(name for one in declared for name in one["identities"])),
        required_splits=(),
    )


def _refuse(gates: Sequence[GateResult], *, production: bool) -> None:
    bad = [one for one in gates if one.status == "fail" or (one.status != "pass" and (production or one.id in PROVEN))]
    if not bad:
        return
    lines = []
    for one in bad:
        lines.append(f"  gate {one.id}: {one.status} ({one.reason}), {one.count} found")
        lines += [f"    {said}" for said in described(one, _SHOWN)]
    raise LeakageError(
        "the splits do not hold, so that no case is evaluated:\n" + "\n".join(lines) + "\nBuild the split again"
    )


def _check_assets(protected: Manifest, root: Path) -> None:
    """Refuse a file of a protected case that is not the one that was hashed; files that are not there say nothing."""
    for entry in protected.samples:
        for name in ASSETS:
            path, expected = root / entry.get(name, ""), entry.get(f"{name}_sha256")
            if entry["split"] not in EVALUATED or expected is None or not path.is_file():
                continue
            found = file_digest(path)
            if found != expected:
                raise InputError(
                    f"protected case {entry['sample_id']!r}: {name} {entry[name]!r} has the hash {found}, the manifest "
                    f"says {expected}; the file was changed after the split was built"
                )


def _require(binding: EvaluationBinding, ids: Iterable[str], where: str) -> None:
    try:
        binding.require(ids)
    except LeakageError as error:
        raise LeakageError(f"{where}: {error}") from error


def require_cases(opened: OpenSplit, cases: Sequence[Case], read: Sequence[UnitSet[Any]]) -> None:
    """Hold what was read to the manifests: the names that the data bear, and the files that they came from.

    Parameters
    ----------
    cases, read
        The cases, and the units of each.

    Raises
    ------
    LeakageError
        Data of a sample that is sealed, in no split, or not declared for the case; a file of the development side or
        of a challenge case.
    ConfigError
        The units of a case have no clusters that could be sample ids.
    """
    closed = dict(_development_hashes(opened.development))
    for i, (case, units) in enumerate(zip(cases, read, strict=True)):
        where = f"case[{i}] ({case.id!r})"
        names = set().union(*(_names(unit, case, where) for unit in units.units))
        found = {case.sample_of.get(name, name) for name in names}
        _require(opened.binding, found, where)
        strays = sorted(found - set(case.samples)) if case.samples else []
        if strays:
            raise LeakageError(
                f"{where}: its data hold {len(strays)} samples that it does not declare, first {strays[0]!r}; list "
                "them under 'samples', or take them out of the data"
            )
        paths = [Path(text) for text in units.inputs]
        assert_evaluation_assets(opened.binding, opened.protected, paths, opened.root)
        for path in paths:
            owner = closed.get(file_digest(path)) if path.is_file() else None
            if owner is not None:
                raise LeakageError(
                    f"{where}: {path.name!r} is a file of the development sample {owner!r}, by its bytes"
                )


def _development_hashes(development: Manifest) -> Iterator[tuple[str, str]]:
    """Hashes of the development side's files, and whose they are; labels without a feature are alike by nature."""
    from geoeval.splits.links import empty_label_hash

    for entry in development.samples:
        for name in ("raw_image", "processed_image", "label"):
            value = entry.get(f"{name}_sha256")
            if value is not None and not (name == "label" and entry.get("label_geometry_hash") == empty_label_hash()):
                yield value, entry["sample_id"]


def _names(unit: Unit[Any], case: Case, where: str) -> set[str]:
    """What a unit's data call the samples that they belong to."""
    if case.sample_by == "unit":
        return {unit.id}
    if unit.cluster is not None:
        return {unit.cluster}
    payload = unit.load()
    sides = [getattr(payload, side, None) for side in ("reference", "prediction")]
    owners = [payload, *(side for side in sides if hasattr(side, "cluster"))]
    columns = [getattr(owner, name, None) for owner in owners for name in ("cluster", "prediction_cluster")]
    known = [column for column in columns if column is not None]
    if not known:
        raise ConfigError(
            f"{where}.sample_by: unit {unit.id!r} has no clusters of its own (blocks are no samples); use 'unit', or a "
            "table of units with the column of the cluster"
        )
    return {str(name) for column in known for name in column}


def with_limits(configuration: Mapping[str, Any], opened: OpenSplit | None) -> dict[str, Any]:
    """A resolved configuration with what the manifests forbid to claim.

    Examples
    --------
    >>> with_limits({"claim_limits": ["one season"]}, None)
    {'claim_limits': ['one season']}
    """
    more = () if opened is None else opened.claim_limits
    return {**configuration, "claim_limits": [*configuration["claim_limits"], *more]}
