"""Product gates and bound files: what a release needs beside its metrics, read from files and held to their checksums.

An evidence file is a JSON object with ``gate`` (the name), ``decision`` (``pass`` or ``fail``), ``signed_by`` and
``evidence`` (a list of ``{"name", "sha256"}``: what the decision rests on). Evidence of protected storage also names
``store``, ``credentials`` and ``access_log``. With ``open_findings`` other than 0 it fails whatever it decides.

What an ``earlier`` file found stands until newer evidence supersedes it; see :mod:`geoeval.config.product_evidence`.
Leakage passes only in a run that has ``[splits]``, the manifests that the evidence speaks of.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from geoeval.config import Config
from geoeval.config.product_evidence import Standing, read_evidence, standing
from geoeval.config.tables import ProductGatesTable
from geoeval.errors import ConfigError
from geoeval.evidence.canonical import canonical_bytes, digest, file_digest
from geoeval.model import Verdict

#: The product gates, in the order of the configuration.
PRODUCT_GATES = tuple(field.name for field in fields(ProductGatesTable))

_SYNTHETIC = Standing("not_evaluable", "synthetic_only")
_UNBOUND = Standing("not_evaluable", "evidence_missing")
_NO_SPLITS = Standing("not_evaluable", "evidence_missing", ("there are no [splits] that the evidence could speak of",))


def product_verdicts(config: Config) -> tuple[Verdict, ...]:
    """One verdict a product gate. A gate passes only on an evidence file with the declared checksum that says so.

    From synthetic data no product gate can be decided (``synthetic_only``), whatever evidence is given.
    """
    return tuple(_verdict(name, _standing(name, config)) for name in PRODUCT_GATES)


def _verdict(name: str, found: Standing) -> Verdict:
    return Verdict(
        id=f"product:{name}",
        family="product",
        metric=name,
        scope="product",
        direction="",
        limit=None,
        on="",
        min_support=0,
        value=None,
        low=None,
        high=None,
        support=None,
        clusters=None,
        status=found.status,
        reason=found.reason,
    )


def _standing(name: str, config: Config) -> Standing:
    if config.synthetic:
        return _SYNTHETIC
    table = getattr(config.product_gates, name)
    if table is None:
        return _UNBOUND
    bound, *earlier = (
        read_evidence(name, row.file, row.sha256, config.path(row.file)) for row in (table, *table.earlier)
    )
    found = standing(bound, earlier)
    if name == "leakage" and found.status == "pass" and config.table.splits is None:
        return _NO_SPLITS
    return found


def bound_files(config: Config) -> list[dict[str, Any]]:
    """Files that the run declares as bound (``[bind]``) or rests on as product evidence, with their hashes.

    Raises
    ------
    ConfigError
        Where a bound file is missing.
    """
    wanted = [(role, name) for role, names in sorted(config.table.bind.items()) for name in names]
    for gate in PRODUCT_GATES:
        entry = getattr(config.product_gates, gate)
        files = [] if entry is None else [(f"product_gates.{gate}", entry.file)]
        files += [] if entry is None else [(f"product_gates.{gate}.earlier", row.file) for row in entry.earlier]
        wanted += [(role, name) for role, name in files if config.path(name).is_file()]
    out = []
    for role, name in wanted:
        path = config.path(name)
        if not path.is_file():
            raise ConfigError(f"bind.{role}: there is no file {name!r} beside the configuration")
        out.append({"role": role, "name": path.name, "sha256": file_digest(path), "size": path.stat().st_size})
    return out


def projections(config: Config) -> list[dict[str, Any]]:
    """The declared parts of status files, hashed by themselves: what else stands in such a file binds nothing.

    Raises
    ------
    ConfigError
        Where the file is missing or has no such part.
    """
    return [
        {
            "name": Path(row.file).name,
            "pointer": row.pointer,
            "sha256": digest(canonical_bytes(_pointed(config.path(row.file), row.pointer, f"projection[{i}]"))),
        }
        for i, row in enumerate(config.projections)
    ]


def _pointed(path: Path, pointer: str, where: str) -> Any:
    """The part of a JSON file that an RFC 6901 pointer names."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{where}: {path.name} is not readable JSON ({error})") from error
    for raw in pointer.split("/")[1:]:
        key = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise ConfigError(f"{where}: {path.name} has nothing at {pointer!r}; {key!r} is not there")
    return value


def evidence_problems(config: Config) -> list[str]:
    """Why product gates do not pass in spite of their evidence: one sentence a file that holds a gate up.

    Gates without evidence have nothing to say beyond their reason; on synthetic data no gate has.
    """
    return [f"{name}: {said}" for name in PRODUCT_GATES for said in _standing(name, config).said]
