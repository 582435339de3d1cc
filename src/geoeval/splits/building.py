"""From a source to manifests: components, assignment, gates, and files that are written whole or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from geoeval.errors import BundleError, ConfigError, LeakageError
from geoeval.evidence.bundle import write_file
from geoeval.evidence.canonical import canonical_bytes
from geoeval.evidence.folders import whole_folder
from geoeval.splits.assign import Assignment, Balance, assign, balance_of, strata_cells, wanted_samples
from geoeval.splits.components import Components, components
from geoeval.splits.leakage import GateResult, check
from geoeval.splits.links import unknown_values
from geoeval.splits.manifest import Manifest, Mode, manifest_of
from geoeval.splits.production import REQUIRED, Production, read_production
from geoeval.splits.quarantine import Quarantine, quarantined
from geoeval.splits.record import QUARANTINE, ROLES
from geoeval.splits.required import GO_ON
from geoeval.splits.seals import FIXTURE_KEY, require_key
from geoeval.splits.settings import SHARES, SplitSettings
from geoeval.splits.source import SplitSource, read_source
from geoeval.splits.table import SampleTable

REPORT_SCHEMA = "geoeval/split-report/1"
REPORT = "split.json"

#: Notes of gates that name no sample.
_NAMELESS = ("accidental_pairs", "buffer_m", "empty_labels", "left_out", "recipes")


class SplitRefused(LeakageError):
    """A split that does not hold; ``gates`` says where."""

    def __init__(self, message: str, gates: tuple[GateResult, ...]) -> None:
        super().__init__(message)
        self.gates = gates


@dataclass(frozen=True, slots=True)
class Giant:
    """A component that is larger than the largest share, and the relation that made it."""

    samples: int
    share: float
    relation: str | None


@dataclass(frozen=True, slots=True, eq=False)
class BuildResult:
    """What was built, before anything is written.

    Parameters
    ----------
    table
        All samples with their splits; ``"quarantine"`` for those that were set aside.
    balance
        Wanted and got by split and stratum, after any quarantine.
    manifests
        ``development``, ``protected`` and, where samples were set aside, ``quarantine``.
    report
        The content of ``split.json``: hashes, components, balance, quarantine, gates; no sample is named in it.
    """

    table: SampleTable
    source_sha256: str
    settings: SplitSettings
    components: Components
    assignment: Assignment
    balance: tuple[Balance, ...]
    quarantine: Quarantine | None
    giant: Giant | None
    gates: tuple[GateResult, ...]
    manifests: Mapping[str, Manifest]
    report: Mapping[str, Any]


def build(
    source: Path | SplitSource,
    settings: SplitSettings | None = None,
    *,
    open_fixture: bool = False,
    production: Production | None = None,
    key: bytes | None = None,
    workers: int = 1,
) -> BuildResult:
    """Build a split and hold it to its gates.

    Parameters
    ----------
    source
        A file, or a source that was read; production mode reads the file itself.
    open_fixture
        True builds a synthetic fixture. Only code can say so; nothing in a source does.
    production
        Asset manifest and root of production mode, which demands every field of the contract and all four files,
        whatever the settings say. Without it and without ``open_fixture``, hashes are still
        recomputed where files are named, and the manifests are not allowed for production accuracy.
    key
        Seals the hashes of challenge samples; the fixture has a public one.
    workers
        Threads that hash and decode; the result does not depend on it.

    Raises
    ------
    SplitRefused
        A gate failed; in production, or could not be decided. Its message names the pairs.
    InputError
        A record does not hold.
    ConfigError
        Two modes at once, or no key for challenge.
    """
    held = settings if settings is not None else SplitSettings()
    if open_fixture and production is not None:
        raise ConfigError("open_fixture and production exclude each other: a synthetic fixture proves no product")
    if production is not None:
        held = replace(held, required=tuple(dict.fromkeys((*REQUIRED, *held.required))))
    mode: Mode = "fixture" if open_fixture else "production" if production is not None else "declared"
    read = _read(source, held, production, workers)
    table = read.table
    held = _fitted(held, table)
    require_key(FIXTURE_KEY if open_fixture and key is None else key, needed="challenge" in held.demanded)
    found = components(table, held)
    assignment = assign(table, found, held, read.sha256)
    kept = quarantined(table, assignment.split, held.buffer_m) if held.buffer_mode == "quarantine" else None
    split = assignment.split if kept is None else kept.split
    whole = table.with_splits(split)
    gates = check(whole, held)
    _refuse(gates, mode, found, table.n)
    cell, cells = strata_cells(table, held.strata)
    balance = balance_of(split, cell, cells, wanted_samples(table, cell, len(cells), held)[0], held.roles)
    seal = FIXTURE_KEY if open_fixture and key is None else key
    manifests = _manifests(whole, read.sha256, held, mode, gates, seal)
    giant = _giant(found, table.n, held)
    return BuildResult(
        table=whole,
        source_sha256=read.sha256,
        settings=held,
        components=found,
        assignment=assignment,
        balance=balance,
        quarantine=kept,
        giant=giant,
        gates=gates,
        manifests=manifests,
        report=_report(whole, read.sha256, mode, found, balance, kept, giant, gates, manifests),
    )


def _read(
    source: Path | SplitSource, settings: SplitSettings, production: Production | None, workers: int
) -> SplitSource:
    if production is None:
        return (
            source
            if isinstance(source, SplitSource)
            else read_source(source, workers=workers, required=settings.required)
        )
    if isinstance(source, SplitSource):
        raise ConfigError("production mode reads its source itself: give the path of the source")
    return read_production(source, production, workers=workers)


def _fitted(settings: SplitSettings, table: SampleTable) -> SplitSettings:
    """The settings as far as the source decides them.

    Where every sample declares its split and no shares were given, the declared splits are the demanded ones. A field
    that may stay open, and in which no sample says anything, holds nothing apart and is named as left out.
    """
    open_fields = unknown_values(table, [name for name in settings.identities if name not in settings.required])
    identities = tuple(name for name in settings.identities if open_fields.get(name, 0) < table.n)
    declared = Counter(table.texts["split"].to_pylist()) if "split" in table.texts else Counter()
    shares = settings.shares
    if dict(shares) == dict(SHARES) and declared and None not in declared and set(declared) <= set(ROLES):
        shares = {role: declared[role] / table.n for role in ROLES if role in declared}
    return replace(settings, identities=identities, shares=shares)


def _refuse(gates: Sequence[GateResult], mode: Mode, found: Components, n: int) -> None:
    bad = [gate for gate in gates if gate.status == "fail" or (mode == "production" and gate.status != "pass")]
    if not bad:
        return
    lines = []
    for gate in bad:
        lines.append(f"gate {gate.id}: {gate.status} ({gate.reason}), {gate.count} found {dict(gate.counts)}")
        lines += [f"  {one}" for one in described(gate, 10)]
        if gate.reason == "split_missing":
            lines.append(f"  {hangs_together(found, n)}; change the shares with --share, or what links the samples")
        if gate.id == "complete" and gate.unknown:
            lines.append(f"  {GO_ON}")
    raise SplitRefused("the split does not hold:\n" + "\n".join(lines), tuple(gates))


def hangs_together(found: Components, n: int) -> str:
    """Why there may be too little to fill every split: how many components there are, and what makes the largest."""
    links = ", ".join(
        f"{one.relation} ({one.alone} samples by itself)"
        for one in sorted(found.relations, key=lambda one: -one.alone)[:3]
        if one.alone > 1
    )
    what = f"; what links most: {links}" if links else ""
    return (
        f"{n} samples hang together in {len(found.sizes)} components, the largest of {found.largest}, and a component "
        f"goes to one split whole{what}"
    )


def described(gate: GateResult, most: int) -> list[str]:
    """The first witnesses of a gate, a line each; for the last gate, its notes, and every field that was left open."""
    lines = []
    for one in gate.witnesses[:most]:
        evidence = ", ".join(f"{name} {value}" for name, value in one.evidence.items())
        lines.append(
            f"{one.first!r} ({one.first_split}) and {one.second!r} ({one.second_split}): {one.relation}, {evidence}"
        )
    if gate.id == "complete":
        rest = [name for name in gate.notes if name not in gate.unknown]
        lines += [f"{name}: {gate.notes[name]}" for name in (*rest[:most], *gate.unknown)]
        if len(rest) > most:
            lines.append(f"… and {len(rest) - most} more")
    return lines


def _giant(found: Components, n: int, settings: SplitSettings) -> Giant | None:
    if n < 2 or found.largest < 2 or found.largest <= max(settings.shares.values()) * n:
        return None
    return Giant(found.largest, round(found.largest / n, 6), found.maker)


def _manifests(
    table: SampleTable,
    source_sha256: str,
    settings: SplitSettings,
    mode: Mode,
    gates: Sequence[GateResult],
    key: bytes | None,
) -> dict[str, Manifest]:
    said = {gate.id: {"status": gate.status, "reason": gate.reason, "count": gate.count} for gate in gates}
    names = ["development", "protected"]
    if QUARANTINE in table.texts["split"].to_pylist():
        names.append(QUARANTINE)
    return {
        name: manifest_of(name, table, mode=mode, source_sha256=source_sha256, settings=settings, gates=said, key=key)
        for name in names
    }


def _report(
    table: SampleTable,
    source_sha256: str,
    mode: Mode,
    found: Components,
    balance: Sequence[Balance],
    kept: Quarantine | None,
    giant: Giant | None,
    gates: Sequence[GateResult],
    manifests: Mapping[str, Manifest],
) -> dict[str, Any]:
    rows = [
        {"split": one.split, "stratum": dict(one.stratum), "wanted": one.wanted, "got": one.got, "off": one.off}
        for one in balance
    ]
    size, times = np.unique(found.sizes, return_counts=True)
    return {
        "schema": REPORT_SCHEMA,
        "mode": mode,
        "production_accuracy_use_allowed": mode == "production",
        # Manifests and a firewall are logical protection; a store that training cannot reach is evidence of its own.
        "protected_storage_isolation": {"status": "not_evaluable", "reason": "evidence_missing"},
        "source_sha256": source_sha256,
        "manifests": {name: one.sha256 for name, one in manifests.items()},
        "samples": table.n,
        "components": {
            "count": len(found.sizes),
            "largest": found.largest,
            "sizes": [[int(a), int(b)] for a, b in zip(size, times, strict=True)],
            "relations": [
                {
                    "relation": one.relation,
                    "links": one.links,
                    "largest_alone": one.alone,
                    "largest_without": one.without,
                }
                for one in found.relations
            ],
            "giant": None
            if giant is None
            else {"samples": giant.samples, "share": giant.share, "relation": giant.relation},
        },
        "balance": rows,
        "quarantine": None
        if kept is None
        else {"samples": kept.size, "share": round(kept.size / max(table.n, 1), 6), "cost": dict(kept.cost)},
        "gates": [
            {
                "id": gate.id,
                "status": gate.status,
                "reason": gate.reason,
                "count": gate.count,
                "counts": dict(gate.counts),
                "unknown": dict(gate.unknown),
                "notes": {name: says for name, says in gate.notes.items() if name in _NAMELESS},
            }
            for gate in gates
        ],
    }


def write_manifests(result: BuildResult, out: Path) -> dict[str, Path]:
    """Write the manifests and the report into a new folder, all of them or none.

    Parameters
    ----------
    out
        The folder. One that holds exactly these bytes already is success.

    Returns
    -------
    dict of str to Path
        ``development``, ``protected``, perhaps ``quarantine``, and ``report``.

    Raises
    ------
    BundleError
        The folder holds something else, or cannot be written; nothing is left behind.
    """
    files = {f"{name}.json": one.data() for name, one in result.manifests.items()}
    files[REPORT] = canonical_bytes(result.report) + b"\n"
    target = Path(out)
    if target.exists():
        there = {path.name: path.read_bytes() for path in target.iterdir() if path.is_file()} if target.is_dir() else {}
        if not target.is_dir() or there != files or len(list(target.iterdir())) != len(files):
            raise BundleError(f"{target.name}: exists already and holds something else; choose another folder")
    else:
        _write(target, files)
    paths = {name: target / f"{name}.json" for name in result.manifests}
    return {**paths, "report": target / REPORT}


def _write(target: Path, files: Mapping[str, bytes]) -> None:
    try:
        with whole_folder(target) as folder:
            for name, data in files.items():
                write_file(folder / name, data)
    except OSError as error:
        raise BundleError(
            f"{target.name}: the manifests could not be written ({error.strerror or error}); nothing was left behind"
        ) from error
