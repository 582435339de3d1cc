"""Product gates and bound files: what a release needs beside its metrics, read from files and held to their checksums.

An evidence file is a JSON object with ``gate`` (the name), ``decision`` (``pass`` or ``fail``), ``signed_by`` and
``evidence`` (a list of ``{"name", "sha256"}``: what the decision rests on). Evidence of protected storage also names
``store``, ``credentials`` and ``access_log``. Evidence on leakage with ``open_findings`` above 0 fails whatever it
decides.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from geoeval.config import Config
from geoeval.config.tables import EvidenceTable, ProductGatesTable
from geoeval.errors import ConfigError
from geoeval.evidence.canonical import canonical_bytes, digest, file_digest
from geoeval.model import Status, Verdict

#: The product gates, in the order of the configuration.
PRODUCT_GATES = tuple(field.name for field in fields(ProductGatesTable))

_VAULT = ("store", "credentials", "access_log")


def product_verdicts(config: Config) -> tuple[Verdict, ...]:
    """One verdict a product gate. A gate passes only on an evidence file with the declared checksum that says so.

    From synthetic data no product gate can be decided (``synthetic_only``), whatever evidence is given.
    """
    return tuple(_verdict(name, getattr(config.product_gates, name), config) for name in PRODUCT_GATES)


def _verdict(name: str, bound: EvidenceTable | None, config: Config) -> Verdict:
    status, reason = _decision(name, bound, config)
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
        status=status,
        reason=reason,
    )


def _decision(name: str, bound: EvidenceTable | None, config: Config) -> tuple[Status, str | None]:
    if config.synthetic:
        return "not_evaluable", "synthetic_only"
    if bound is None:
        return "not_evaluable", "evidence_missing"
    path = config.path(bound.file)
    if not path.is_file():
        return "not_evaluable", "evidence_missing"
    data = path.read_bytes()
    if digest(data) != bound.sha256:
        return "not_evaluable", "evidence_mismatch"
    try:
        content = json.loads(data)
    except ValueError:
        return "not_evaluable", "evidence_mismatch"
    return _evidence_decision(name, content)


def _evidence_decision(name: str, content: Any) -> tuple[Status, str | None]:
    """What an evidence file with the right checksum amounts to."""
    if not isinstance(content, Mapping) or content.get("gate") != name:
        return "not_evaluable", "evidence_mismatch"
    if content.get("decision") == "fail" or (name == "leakage" and content.get("open_findings", 0) != 0):
        return "fail", None
    signed = isinstance(content.get("signed_by"), str) and bool(content["signed_by"].strip())
    vault = name != "protected_storage_isolation" or all(
        isinstance(content.get(key), str) and content[key].strip() for key in _VAULT
    )
    if content.get("decision") != "pass" or not signed or not vault or not _rests_on(content.get("evidence")):
        return "not_evaluable", "evidence_missing"
    return "pass", None


def _rests_on(evidence: object) -> bool:
    """True where a decision names at least one piece of evidence, each with a checksum."""
    return (
        isinstance(evidence, list)
        and len(evidence) > 0
        and all(
            isinstance(entry, Mapping)
            and isinstance(entry.get("name"), str)
            and re.fullmatch("[0-9a-f]{64}", str(entry.get("sha256"))) is not None
            for entry in evidence
        )
    )


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
        if entry is not None and config.path(entry.file).is_file():
            wanted.append((f"product_gates.{gate}", entry.file))
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
    """Why product gates could not be decided, one sentence each, for the report."""
    words = {
        "synthetic_only": "the data are synthetic",
        "evidence_missing": "no complete evidence file is bound",
        "evidence_mismatch": "the evidence file is not the one that was bound, or not about this gate",
    }
    return [
        f"{verdict.metric}: {words.get(str(verdict.reason), verdict.reason)}"
        for verdict in product_verdicts(config)
        if verdict.status == "not_evaluable"
    ]
