"""The split of a run: manifests that are held to their gates, and cases that are held to the manifests.

Order     first the manifests (whole, the very ones that were bound, no leak, lineage known, files as they were hashed),
          then the declared samples, then the names that the data themselves bear, the files that were read, and where
          the references lie. An evaluator is started after all of that only.
Refused   challenge samples, samples that are in no manifest, data that bear another name or lie elsewhere, files of
          development and challenge samples, by their bytes or by their shapes.
Limits    what could not be compared stands among the claim limits of the bundle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from geoeval.config import Case, Config
from geoeval.config.inside import SampleBoxes, require_inside, sample_boxes
from geoeval.config.proven import (
    asked_little,
    not_held_apart,
    require_assets,
    require_lineage,
    require_paths,
    undecided,
)
from geoeval.config.tables import SplitsTable
from geoeval.errors import ConfigError, InputError, LeakageError
from geoeval.evidence.canonical import file_digest
from geoeval.model import Unit
from geoeval.readers.unitset import UnitSet
from geoeval.splits.building import described
from geoeval.splits.evaluation import ClosedFiles, EvaluationBinding, bind_evaluation, challenge_files, shape_hashes
from geoeval.splits.leakage import GateResult, check
from geoeval.splits.manifest import Manifest, read_manifest
from geoeval.splits.manifest_table import manifest_table
from geoeval.splits.seals import FIXTURE_KEY
from geoeval.splits.settings import SplitSettings, strictest
from geoeval.splits.table import joined

#: Gates that must pass; the others must not fail, and in production all must pass. One that is undecided is a limit.
PROVEN = ("identity", "buffer", "complete")

#: A run that is not bound to any split. Figures of synthetic data claim nothing anyway.
NO_SPLIT = "no split manifest is bound: nothing shows that these cases were kept out of training"

_SHOWN = 10

#: For whoever did not say what names the samples.
_BY_CLUSTER = (
    '. The names are those of units (files); where a column of the data names the samples, say cluster = "COLUMN" and '
    'sample_by = "cluster", and where a file belongs to another name, sample_of = { FILE = "SAMPLE" }'
)


@dataclass(frozen=True, slots=True)
class OpenSplit:
    """Manifests whose gates hold, and the permission that comes of them.

    Parameters
    ----------
    binding
        The exact protected manifest, and the ids that may be evaluated.
    held
        What both manifests are held to.
    gates
        What the gates found between the samples of both manifests.
    closed
        What is known of the files of challenge cases.
    boxes
        Where the samples of both manifests lie.
    unproven
        What may not be claimed because something could not be compared.
    """

    development: Manifest
    protected: Manifest
    binding: EvaluationBinding
    held: SplitSettings
    gates: tuple[GateResult, ...]
    closed: ClosedFiles
    boxes: SampleBoxes
    unproven: tuple[str, ...] = ()

    @property
    def production(self) -> bool:
        """True where both manifests allow figures of accuracy for a product."""
        both = (self.development, self.protected)
        return all(one.content["production_accuracy_use_allowed"] is True for one in both)

    @property
    def claim_limits(self) -> tuple[str, ...]:
        """What may not be claimed because of the manifests, or of what could not be held against them."""
        if self.production:
            return self.unproven
        modes = " and ".join(dict.fromkeys((self.development.mode, self.protected.mode)))
        return (f"{modes} split manifests: production_accuracy_use_allowed is false", *self.unproven)

    def facts(self) -> dict[str, Any]:
        """What the bundle says about the split: hashes, limits and gates, and no sample."""
        return {
            "production_accuracy_use_allowed": self.production,
            "same_source": self.development.content["source_sha256"] == self.protected.content["source_sha256"],
            **{
                name: {"sha256": one.sha256, "mode": one.mode, "samples": len(one.samples)}
                for name, one in (("development", self.development), ("protected", self.protected))
            },
            "buffer_m": self.held.buffer_m,
            "radius": self.held.radius,
            "confirmed_radius": self.held.confirmed_radius,
            "gates": {one.id: {"status": one.status, "reason": one.reason, "count": one.count} for one in self.gates},
        }


def open_split(config: Config, *, open_fixture: bool = False, key: bytes | None = None) -> OpenSplit | None:
    """Read both manifests of a configuration, hold them to the gates and bind the evaluation to the protected one.

    Parameters
    ----------
    open_fixture
        True opens manifests of a synthetic fixture. Only code can say so; nothing in a file does.
    key
        Opens the seals of challenge samples, so that their looks and their files can be compared; the fixture has a
        public one.

    Returns
    -------
    OpenSplit or None
        None where the configuration has no ``[splits]``.

    Raises
    ------
    InputError
        A manifest is unreadable, edited, of another hash, or a fixture, or the key does not open it; or an asset is
        not what was hashed, does not lie below the root, or, in production, is not there.
    LeakageError
        A gate fails, or cannot be decided where it must pass; the message names the pairs. Or the lineage of a sample
        is not known. Or a declared sample is sealed or unknown.
    """
    table = config.table.splits
    if table is None:
        return None
    development = _development(config, table, open_fixture=open_fixture)
    protected = _bound(config, table, "protected", table.sha256, open_fixture=open_fixture)
    binding = bind_evaluation(protected, table.sha256, open_fixture=open_fixture)
    root = config.path(table.root)
    if key is None and open_fixture and protected.mode == "fixture":
        key = FIXTURE_KEY
    require_paths(protected, root)
    both = (development, protected)
    declared = [one.content["settings"] for one in both]
    samples, held = joined([manifest_table(one, root, key) for one in both]), strictest(declared)
    gates = check(samples, held)
    closed = challenge_files(binding, protected, root, key=key)
    opened = OpenSplit(development, protected, binding, held, gates, closed, sample_boxes(both))
    _refuse(gates, production=opened.production)
    require_lineage(samples, held.identities)
    absent = require_assets(protected, root, production=opened.production)
    for i, case in enumerate(config.cases):
        _require(binding, {*case.samples, *case.sample_of.values()}, f"case[{i}] ({case.id!r})")
    weak = (*not_held_apart(held.identities), *asked_little(held, declared), *undecided(gates))
    return replace(opened, unproven=(*weak, *absent, *closed.claim_limits))


def _development(config: Config, table: SplitsTable, *, open_fixture: bool) -> Manifest:
    found = _bound(config, table, "development", table.development_sha256, open_fixture=open_fixture)
    if found.content["set"] != "development":
        raise InputError(f"splits.development: expected a development manifest, got set {found.content['set']!r}")
    if not found.samples:
        raise InputError("splits.development: the manifest holds no sample, so that no leak could be found")
    return found


def _bound(config: Config, table: SplitsTable, name: str, sha256: str, *, open_fixture: bool) -> Manifest:
    """A manifest that is the very one that the configuration names by its hash."""
    found = read_manifest(config.path(getattr(table, name)), open_fixture=open_fixture)
    if found.sha256 != sha256:
        raise InputError(
            f"splits.{name}: expected the manifest {sha256}, found {found.sha256}; give the manifest that the run is "
            "bound to or, where the split was built again, the hash that was found"
        )
    return found


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


def _require(binding: EvaluationBinding, ids: Iterable[str], where: str, hint: str = "") -> None:
    try:
        binding.require(ids)
    except LeakageError as error:
        raise LeakageError(f"{where}: {error}{hint}") from error


def require_cases(opened: OpenSplit, cases: Sequence[Case], read: Sequence[UnitSet[Any]]) -> OpenSplit:
    """Hold what was read to the manifests: the names that the data bear, where they lie, and the files they came from.

    Parameters
    ----------
    cases, read
        The cases, and the units of each.

    Returns
    -------
    OpenSplit
        The same, with what could not be compared among its claim limits.

    Raises
    ------
    LeakageError
        Data of a sample that is sealed, in no split, or not declared for the case; features that lie outside of the
        sample that they claim; a file of the development side or of a challenge case.
    ConfigError
        The units of a case have no clusters that could be sample ids.
    """
    limits: list[str] = []
    known = _DevelopmentFiles(opened.development)
    for i, (case, units) in enumerate(zip(cases, read, strict=True)):
        where = f"case[{i}] ({case.id!r})"
        names = set().union(*(_names(unit, case, where) for unit in units.units))
        found = {case.sample_of.get(name, name) for name in names}
        _require(opened.binding, found, where, _BY_CLUSTER if names == {unit.id for unit in units.units} else "")
        strays = sorted(found - set(case.samples)) if case.samples else []
        if strays:
            raise LeakageError(
                f"{where}: its data hold {len(strays)} samples that it does not declare, first {strays[0]!r}; list "
                "them under 'samples', or take them out of the data"
            )
        for path in map(Path, units.inputs):
            opened.closed.refuse(path)
            known.refuse(path, where)
        limits += require_inside(opened.boxes, case, units, where)
    return replace(opened, unproven=(*opened.unproven, *limits))


class _DevelopmentFiles:
    """Files of development samples by bytes and by shapes; labels without a feature are alike by nature."""

    def __init__(self, development: Manifest) -> None:
        self.digests = dict(_development_hashes(development, ("raw_image", "processed_image", "label"), "_sha256"))
        self.shapes = dict(_development_hashes(development, ("label",), "_geometry_hash"))

    def refuse(self, path: Path, where: str) -> None:
        """Refuse a file of a development sample."""
        if not path.is_file():
            return
        owner = self.digests.get(file_digest(path)) if self.digests else None
        how = "bytes"
        if owner is None and self.shapes:
            owner = next((self.shapes[one] for one in shape_hashes(path) if one in self.shapes), None)
            how = "shapes"
        if owner is not None:
            raise LeakageError(f"{where}: {path.name!r} is a file of the development sample {owner!r}, by its {how}")


def _development_hashes(development: Manifest, assets: Iterable[str], ending: str) -> Iterator[tuple[str, str]]:
    from geoeval.splits.links import empty_label_hash

    for entry in development.samples:
        for name in assets:
            value = entry.get(f"{name}{ending}")
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
    """A resolved configuration with what its splits, or the lack of them, forbid to claim.

    Examples
    --------
    >>> with_limits({"claim_limits": ["one season"], "synthetic": True}, None)["claim_limits"]
    ['one season']
    >>> with_limits({"claim_limits": [], "synthetic": False}, None)["claim_limits"] == [NO_SPLIT]
    True
    """
    unbound = () if configuration["synthetic"] else (NO_SPLIT,)
    more = unbound if opened is None else opened.claim_limits
    return {**configuration, "claim_limits": [*configuration["claim_limits"], *more]}
