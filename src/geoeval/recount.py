"""Recount a bundle: every estimate, subgroup and verdict again from its ledgers, without the data behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from geoeval.config.families import evaluator_of
from geoeval.errors import BundleError, ConfigError
from geoeval.estimation import Plan
from geoeval.evaluation import field_names, with_demanded
from geoeval.evidence.documents import document_of, metrics_from_json
from geoeval.evidence.raw import ledger_from_json
from geoeval.evidence.shape import evaluation_json
from geoeval.evidence.verify_files import read_listing
from geoeval.ledger import Ledger, Row
from geoeval.model import Evaluation
from geoeval.options import Pairing
from geoeval.summary import Policy, summarise
from geoeval.verify import gates_of

_SHOWN = 20


def recount(bundle: Path) -> list[str]:
    """What in ``metrics.json`` does not follow from the ledgers by the bound configuration.

    Findings are taken as they stand: they tell about files, not about sums. Hashes are the business of
    :func:`geoeval.verify.verify`.

    Parameters
    ----------
    bundle
        Folder of a run.

    Returns
    -------
    list of str
        One sentence a difference, naming the case and the figure.

    Raises
    ------
    BundleError
        Where the bundle cannot be read.
    """
    root = Path(bundle)
    listing = read_listing(root)
    configuration = listing.manifest.get("configuration", {})
    facts = listing.manifest.get("facts", {})
    stored = metrics_from_json(document_of(_bytes(root, "metrics.json"), "metrics.json"))
    cases = {case["id"]: case for case in configuration.get("cases", ())}
    problems = [f"metrics.json: {name!r} is no case of the configuration" for name in sorted(set(stored) - set(cases))]
    problems += [f"metrics.json: case {name!r} is missing" for name in sorted(set(cases) - set(stored))]
    for name in sorted(set(stored) & set(cases)):
        data = document_of(_bytes(root, f"ledger/{name}.json"), f"ledger/{name}.json")
        ledger = Ledger.of(Row(*line) for line in ledger_from_json(data))
        try:
            again = _again(configuration, cases[name], facts.get(name, {}), ledger, stored[name])
        except (ConfigError, KeyError, TypeError, ValueError) as error:
            problems.append(f"{name}: cannot be counted again ({error})")
            continue
        problems += _differences(name, evaluation_json(stored[name]), evaluation_json(again))
    return problems


def _bytes(root: Path, name: str) -> bytes:
    try:
        return (root / name).read_bytes()
    except OSError as error:
        raise BundleError(f"{name}: cannot be read ({error.strerror or error})") from error


def _again(
    configuration: Mapping[str, Any],
    case: Mapping[str, Any],
    facts: Mapping[str, Any],
    ledger: Ledger,
    stored: Evaluation,
) -> Evaluation:
    intervals = {
        option.name: configuration["intervals"][option.name]
        for option in fields(Plan)
        if option.name in configuration["intervals"]
    }
    clustered = facts.get("clustered", "independent" not in stored.signature.split("|"))
    by = case.get("by", case.get("pairing", {}).get("by", ()))
    policy = Policy(
        tuple(gates_of(configuration)),
        {name: tuple(values) for name, values in case.get("critical", {}).items()},
        int(case.get("min_support", 0)),
    )
    evaluator = evaluator_of(case["family"], case.get("options", {}))
    return summarise(
        evaluator,
        ledger,
        replace(Plan(**intervals), clustered=bool(clustered)),
        policy,
        fields=field_names(with_demanded(Pairing(by=tuple(by)), evaluator, policy).by),
        findings=stored.findings,
        reference_only=frozenset(facts.get("reference_only", ())),
    )


def _differences(name: str, stored: Any, again: Any) -> list[str]:
    found = list(_walk(f"{name}", stored, again))
    more = [f"{name}: and {len(found) - _SHOWN} more figures"] if len(found) > _SHOWN else []
    return found[:_SHOWN] + more


def _walk(where: str, stored: Any, again: Any) -> list[str]:
    """Every place at which two JSON structures differ."""
    if isinstance(stored, Mapping) and isinstance(again, Mapping):
        out = []
        for key in sorted(set(stored) | set(again)):
            if key not in stored or key not in again:
                out.append(f"{where}.{key}: stands on one side only")
            else:
                out += _walk(f"{where}.{key}", stored[key], again[key])
        return out
    if isinstance(stored, list) and isinstance(again, list) and len(stored) == len(again):
        return [
            line for i, pair in enumerate(zip(stored, again, strict=True)) for line in _walk(f"{where}[{i}]", *pair)
        ]
    return [] if stored == again else [f"{where}: says {stored!r}, the ledger gives {again!r}"]
