"""Candidates compared on held-out predictions: one threshold each, chosen on validation, scored once on test, gated.

::

    [run]
    name = "scenes"

    [record]
    labels = ["cropland", "forest", "urban", "water"]
    cluster = "aoi"

    [threshold]
    min_coverage = 0.5

    [[gate]]
    metric = "macro_f1"
    at_least = 0.80

The verdict is GO where at least one candidate clears every gate, and BLOCKED otherwise; a candidate that cannot be
decided is not cleared. Nothing is written unless the whole input was accepted and every candidate was scored.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from geoeval.config.reading import read_toml, validated
from geoeval.errors import BundleError, ConfigError
from geoeval.estimation import Plan
from geoeval.evidence.canonical import canonical_bytes, plain, significant
from geoeval.evidence.shape import estimate_json, verdict_json
from geoeval.model import Gate
from geoeval.selection.corpus import check_corpus, content_hash, read_records
from geoeval.selection.policy import AbstentionPolicy
from geoeval.selection.prefill import REPORT
from geoeval.selection.record import Record, json_object
from geoeval.selection.scoring import Scored, score
from geoeval.selection.settings import ARROW, ComparisonSettings

SYNTHETIC = "synthetic predictions: no claim about a model or a product"

#: Files of a folder of results, by name.
REPORT_FILE, RISK_FILE, RELIABILITY_FILE = "report.json", "risk-coverage.svg", "reliability.svg"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison as declared: its settings, its gates, and the abstention policy that it names."""

    settings: ComparisonSettings
    gates: tuple[Gate, ...]
    policy: AbstentionPolicy | None = None


def load_comparison(path: Path) -> Comparison:
    """A comparison from its configuration file and the policy file that it names.

    Raises
    ------
    ConfigError
        Naming file and key.
    """
    path = Path(path)
    data = read_toml(path)
    try:
        settings = validated(ComparisonSettings, data)
        gates = settings.gates()
    except ConfigError as error:
        raise ConfigError(f"{path.name}: {error}") from error
    policy = None if settings.abstention is None else load_policy(path.parent / settings.abstention.policy)
    return Comparison(settings, gates, policy)


def load_policy(path: Path) -> AbstentionPolicy:
    """An abstention policy from its file.

    Raises
    ------
    ConfigError
        Naming file and key.
    """
    path = Path(path)
    try:
        return validated(AbstentionPolicy, read_toml(path))
    except ConfigError as error:
        raise ConfigError(str(error) if str(path) in str(error) else f"{path.name}: {error}") from error


def compare(paths: Sequence[Path], comparison: Comparison) -> dict[str, Any]:
    """Read predictions, score every candidate, decide.

    Parameters
    ----------
    paths
        One or many JSON Lines files; how records are spread over them, and their order, changes nothing.
    comparison
        As declared.

    Returns
    -------
    dict
        The report, as plain values.

    Raises
    ------
    InputError
        Where a record does not hold, with file and line.
    LeakageError
        Where splits leak or cannot be derived again.
    """
    records = read_records([Path(path) for path in paths], comparison.settings.record, comparison.policy)
    return compare_records(records, comparison)


def compare_records(records: Sequence[Record], comparison: Comparison) -> dict[str, Any]:
    """The report of records that were read already; see :func:`compare`."""
    settings = comparison.settings
    check_corpus(records, settings.splits)
    of_model: dict[str, list[Record]] = {}
    for one in records:
        of_model.setdefault(one.model, []).append(one)
    scored = [
        score(
            name,
            of_model[name],
            labels=settings.record.names,
            rule=settings.threshold,
            plan=_plan(settings),
            policy=comparison.policy,
            gates=comparison.gates,
        )
        for name in sorted(of_model)
    ]
    best = recommended(scored)
    claims = ((SYNTHETIC,) if settings.run.synthetic else ()) + settings.run.claim_limits
    report = {
        "schema": REPORT,
        "evaluator": "compare/1",
        "name": settings.run.name,
        "synthetic": settings.run.synthetic,
        "claim_limits": list(dict.fromkeys(claims)),
        "verdict": "BLOCKED" if best is None else "GO",
        "recommended": best,
        "settings": _settings(comparison),
        "policy": None
        if comparison.policy is None
        else {**comparison.policy.described(), "sha256": comparison.policy.sha256},
        "inputs": {"records": len(records), "sha256": content_hash(records)},
        "same_cases": _same_cases(of_model),
        "models": {one.model: _model(one, settings.record.names) for one in scored},
    }
    return cast("dict[str, Any]", plain(report))


def recommended(scored: Sequence[Scored]) -> str | None:
    """The cleared candidate with the highest macro F1, then precision, then the first name; None where none is cleared.

    Examples
    --------
    >>> recommended([]) is None
    True
    """

    def rank(one: Scored) -> tuple[float, float]:
        values = (one.estimates[name].value for name in ("macro_f1", "precision_at_coverage"))
        # As they stand in the report, so that a reader ranks them the same.
        f1, precision = (-1.0 if value is None else significant(value) for value in values)
        return -f1, -precision

    cleared = sorted((one for one in scored if one.cleared), key=lambda one: (*rank(one), one.model))
    return cleared[0].model if cleared else None


def _plan(settings: ComparisonSettings) -> Plan:
    given = settings.intervals
    clustered = settings.record.cluster != "none"
    return Plan(given.confidence, given.redraws, given.ranked_redraws, given.seed, clustered)


def _settings(comparison: Comparison) -> dict[str, Any]:
    """Everything that a number depends on, defaults included."""
    given = comparison.settings
    return {
        "label": given.record.label,
        "labels": list(given.record.names),
        "cluster": given.record.cluster,
        "train_below": given.splits.train_below,
        "validation_below": given.splits.validation_below,
        "min_coverage": given.threshold.min_coverage,
        "confidence": given.intervals.confidence,
        "redraws": given.intervals.redraws,
        "ranked_redraws": given.intervals.ranked_redraws,
        "seed": given.intervals.seed,
        "gates": [
            {"id": one.id, "metric": one.metric, "direction": one.direction, "limit": one.limit, "on": one.on}
            for one in comparison.gates
        ],
    }


def _same_cases(of_model: Mapping[str, Sequence[Record]]) -> bool:
    """True where every candidate answered the same cases of the test split."""
    asked = [Counter(one.case for one in part if one.split == "test") for part in of_model.values()]
    return all(one == asked[0] for one in asked)


def _model(one: Scored, labels: Sequence[str]) -> dict[str, Any]:
    """One candidate as it stands in the report."""
    chosen = one.threshold
    values = {name: given.value for name, given in one.estimates.items()}
    return {
        "cleared": one.cleared,
        "records": dict(one.records),
        "threshold": None if chosen is None else chosen.threshold,
        "validation": {
            "n": one.records["validation"],
            "accepted": None if chosen is None else chosen.accepted,
            "correct": None if chosen is None else chosen.correct,
            "coverage": None if chosen is None else chosen.coverage,
            "precision": None if chosen is None else chosen.precision,
            "abstentions": dict(one.validation_abstentions),
            "ids_sha256": one.validation_ids_sha256,
        },
        "test": {"n": one.records["test"], "ids_sha256": one.test_ids_sha256},
        "abstentions": None if chosen is None else dict(one.abstentions),
        **{name: values[name] for name in ("coverage", "precision_at_coverage", "macro_f1", "ece")},
        "macro_f1_counting_spurious_as_zero": one.macro.counting_spurious_as_zero,
        "excluded_classes": [
            {"label": str(row.label), "predicted": row.predicted, "reason": row.reason} for row in one.macro.excluded
        ],
        "per_class": _per_class(one, labels),
        "confusion": {f"{a}{ARROW}{b}": count for (a, b), count in one.confusion.items()},
        "ece_bins": [
            {"low": row.low, "high": row.high, "n": row.n, "confidence": row.confidence, "correct": row.correct}
            for row in one.bins
        ],
        "risk_coverage": {
            "n": one.records["test"],
            "threshold": one.curve.threshold,
            "accepted": one.curve.accepted,
            "correct": one.curve.correct,
        },
        "estimates": {name: estimate_json(given) for name, given in one.estimates.items()},
        "gates": [verdict_json(row) for row in one.verdicts],
    }


def _per_class(one: Scored, labels: Sequence[str]) -> dict[str, Any]:
    """Figures of every label, those without support included, each with its counts and intervals."""
    held = {str(row.label): row for row in one.macro.per_class}
    spurious = {str(row.label): row.predicted for row in one.macro.excluded}
    out = {}
    for label in labels:
        row = held.get(label)
        predicted = spurious.get(label, 0) if row is None else row.predicted
        out[label] = {
            "support": 0 if row is None else row.support,
            "predicted": predicted,
            "precision": row.precision if row is not None else 0.0 if predicted else None,
            "recall": None if row is None else row.recall,
            "f1": row.f1 if row is not None else 0.0 if predicted else None,
            "estimates": {name: estimate_json(given) for name, given in one.per_class.get(label, {}).items()},
        }
    return out


def exit_code(report: Mapping[str, Any]) -> Literal[0, 3]:
    """0 for GO, 3 for BLOCKED; what could not be scored at all was refused before there was a report."""
    return 0 if report["verdict"] == "GO" else 3


def report_bytes(report: Mapping[str, Any]) -> bytes:
    """The bytes of the report file: canonical JSON, the same for the same records."""
    return canonical_bytes(report) + b"\n"


def write_results(report: Mapping[str, Any], *, folder: Path | None = None, file: Path | None = None) -> None:
    """Write a report whole or not at all; what is there already is replaced.

    Parameters
    ----------
    report
        As :func:`compare` gives it.
    folder
        Takes the report and its two plots.
    file
        Takes the report alone.

    Raises
    ------
    BundleError
        Where the disk does not take it; what was there before stays.
    """
    from geoeval.selection.plots import reliability_svg, risk_coverage_svg

    content: dict[Path, bytes] = {}
    if folder is not None:
        content[Path(folder) / RISK_FILE] = risk_coverage_svg(report)
        content[Path(folder) / RELIABILITY_FILE] = reliability_svg(report)
        content[Path(folder) / REPORT_FILE] = report_bytes(report)
    if file is not None:
        content[Path(file)] = report_bytes(report)
    _write(content)


def _write(files: Mapping[Path, bytes]) -> None:
    """Put files in place only after every one of them is safely on the disk beside its place."""
    from geoeval.evidence.bundle import write_file

    mark = secrets.token_hex(8)
    partial = {path: path.with_name(f".{path.name}.{mark}.partial") for path in files}
    try:
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(partial[path], content)
        for path, beside in partial.items():
            beside.replace(path)
    except OSError as error:
        name = error.filename or next(iter(files))
        raise BundleError(f"{name}: cannot be written ({error.strerror or error}); check the folder.") from error
    finally:
        for beside in partial.values():
            with suppress(OSError):
                beside.unlink()


def read_report(path: Path) -> dict[str, Any] | None:
    """A report file; None where there is none, which blocks whoever asks.

    Raises
    ------
    InputError
        Where the file is no JSON object.
    BundleError
        Where it is there and cannot be read.
    """
    path = Path(path)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BundleError(f"{path.name}: cannot be read ({error.strerror or error})") from error
    return json_object(content, path.name)
