"""The benchmark, top to bottom: a configuration becomes cases, cases results, results verdicts, verdicts a bundle."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, Literal

from geoeval.bundling import Scored, write_run
from geoeval.config import Case, Config, load_config, load_waivers
from geoeval.config.families import evaluator_of
from geoeval.config.product import bound_files, evidence_problems, product_verdicts, projections
from geoeval.config.protected import open_split, require_cases, with_limits
from geoeval.errors import InputError
from geoeval.estimation import Plan
from geoeval.evaluation import Result, field_names, run, tally_all, units_of, with_demanded
from geoeval.evidence.canonical import canonical_bytes
from geoeval.evidence.raw import ledger_json
from geoeval.gates import apply_waivers, decide_families, exit_code
from geoeval.ledger import Evaluator, Ledger
from geoeval.model import Verdict
from geoeval.options import Pairing
from geoeval.readers.unitset import UnitSet
from geoeval.summary import Policy


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What a run of the benchmark found.

    ``problems`` are breaches of the harness's own contract; none means that scores can be trusted to be what they say.
    ``evidence_problems`` say which evidence files hold a product gate up, and why.
    """

    name: str
    synthetic: bool
    cases: dict[str, Scored]
    verdicts: tuple[Verdict, ...]
    product_gates: tuple[Verdict, ...]
    problems: tuple[str, ...]
    folder: Path
    evidence_problems: tuple[str, ...] = ()

    def exit_code(self, *, allow_product_blocked: bool = False) -> Literal[0, 2, 3]:
        """0 where all gates pass, 3 where one fails, 2 where it cannot be decided.

        The permission turns product gates that cannot be decided into 0 where the harness itself is in order; it
        never turns a 3, and no gate of a family.
        """
        metric = exit_code(self.verdicts)
        product = exit_code(self.product_gates)
        if 3 in (metric, product):
            return 3
        if self.problems or metric == 2:
            return 2
        return 0 if allow_product_blocked else product


def bundled(name: str) -> Path:
    """A file or folder that comes with geoeval: in the package where it is installed, beside it in a checkout.

    Raises
    ------
    InputError
        Where the installation lacks it.
    """
    package = Path(__file__).resolve().parent
    for root in (package / "bundled", package.parents[1]):
        if (root / name).exists():
            return root / name
    raise InputError(f"{name} does not come with this installation of geoeval; install the package again.")


def benchmark(
    config: Path | None = None,
    out: Path | None = None,
    *,
    waivers: Path | None = None,
    today: date | None = None,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
    open_fixture: bool = False,
    key: bytes | None = None,
) -> Benchmark:
    """Score every case of a configuration, decide all gates and write the bundle.

    Where the configuration has ``[splits]``, the leakage gates run first and every case is held to the protected
    manifest; no evaluator is started before all of that holds.

    Parameters
    ----------
    config
        TOML file; None takes the one that comes with geoeval, over its synthetic fixtures.
    out
        Folder below which ``runs/<run id>`` is written; None is the current folder.
    waivers
        TOML file of signed waivers: no status changes, the board turns amber.
    today
        Day of the decision, which waivers that expire need.
    workers
        Processes for cases of several units.
    progress
        Called with the number of cases done and their total.
    open_fixture
        True opens split manifests of a synthetic fixture, in a synthetic run only. The configuration that comes with
        geoeval needs no permission. Nothing in a file can give it.
    key
        Opens the seals of challenge samples in the protected manifest, so that copies of their files are recognised.

    Returns
    -------
    Benchmark
        Results, verdicts and the folder of the bundle.

    Raises
    ------
    ConfigError
        Before anything is read, where the configuration is not understood.
    InputError
        Where a source or a split manifest cannot be used; nothing is written then.
    LeakageError
        Where the splits leak, the lineage of a sample is not known, or a case is not one of ``test`` and
        ``background-test`` by its names, its files and its place; nothing is written then.
    """
    settings = load_config(config or bundled("configs/benchmark.toml"))
    evaluators = [
        evaluator_of(case.family, case.options, f"case[{at}].options") for at, case in enumerate(settings.cases)
    ]
    opened = open_split(settings, open_fixture=settings.synthetic and (open_fixture or config is None), key=key)
    prepared = [
        _prepared(settings, case, evaluator) for case, evaluator in zip(settings.cases, evaluators, strict=True)
    ]
    if opened is not None:
        prepared = [replace(one, units=one.read()) for one in prepared]
        opened = require_cases(opened, settings.cases, [one.read() for one in prepared])
    plan = plan_of(settings)
    scored: dict[str, Scored] = {}
    problems: list[str] = []
    for done, one in enumerate(prepared, start=1):
        units = one.read()
        result = run(one.evaluator, units, fields=one.fields, plan=plan, policy=one.policy, workers=workers)
        if settings.synthetic:
            problems += _repeat_problems(one.case.id, one.evaluator, units, result)
        scored[one.case.id] = Scored(result, one.evaluator, settings.base)
        if progress:
            progress(done, len(settings.cases))
    problems += expected_problems(settings, scored)
    evaluations = {name: one.result.evaluation for name, one in scored.items()}
    verdicts = decide_families(settings.gates, evaluations, {case.id: case.min_support for case in settings.cases})
    product = product_verdicts(settings)
    if waivers is not None:
        waived = apply_waivers((*verdicts, *product), load_waivers(waivers), today)
        verdicts, product = waived[: len(verdicts)], waived[len(verdicts) :]
    configuration = with_limits(settings.resolved(), opened)
    folder = write_run(
        (out or Path()) / "runs",
        scored,
        configuration,
        verdicts,
        product,
        synthetic=settings.synthetic,
        bound=(*bound_files(settings), *projections(settings)),
        splits=None if opened is None else opened.facts(),
    )
    return Benchmark(
        settings.name,
        settings.synthetic,
        scored,
        verdicts,
        product,
        tuple(problems),
        folder,
        tuple(evidence_problems(settings)),
    )


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A case that is ready to be read; ``units`` holds what was read already."""

    case: Case
    evaluator: Evaluator[Any]
    policy: Policy
    pairing: Pairing
    units: UnitSet[Any] | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        return field_names(self.pairing.by)

    def read(self) -> UnitSet[Any]:
        if self.units is not None:
            return self.units
        return units_of(self.evaluator, self.case.reference, self.case.prediction, self.pairing)


def _prepared(settings: Config, case: Case, evaluator: Evaluator[Any]) -> _Prepared:
    policy = Policy(settings.gates, case.critical, case.min_support)
    return _Prepared(case, evaluator, policy, with_demanded(case.pairing, evaluator, policy))


def plan_of(settings: Config) -> Plan:
    """The intervals of a configuration."""
    return Plan(
        confidence=settings.intervals.confidence,
        redraws=settings.intervals.redraws,
        ranked_redraws=settings.intervals.ranked_redraws,
        seed=settings.intervals.seed,
    )


def expected_problems(settings: Config, scored: dict[str, Scored]) -> list[str]:
    """Where figures differ from those of the files bound as ``expected``; nothing where none is bound."""
    problems = []
    for file in settings.table.bind.get("expected", ()):
        expected = json.loads(settings.path(file).read_text(encoding="utf-8"))
        problems += [f"{name}: expected, but there is no such case" for name in expected if name not in scored]
        problems += [
            f"{name}: {metric} is {found}, expected {value}"
            for name, figures in expected.items()
            if name in scored
            for metric, value in figures.items()
            if (found := _rounded(scored[name].result, metric)) != value
        ]
    return problems


def expected_figures(scored: dict[str, Scored]) -> dict[str, dict[str, float | None]]:
    """Every figure of every case, rounded to 9 digits: what ``fixtures/expected.json`` holds."""
    return {
        name: {metric: _rounded(one.result, metric) for metric in one.result.estimates} for name, one in scored.items()
    }


def _rounded(result: Result, metric: str) -> float | None:
    value = result.estimates[metric].value if metric in result.estimates else None
    return None if value is None else float(f"{value:.9g}")


def _repeat_problems(name: str, evaluator: Evaluator[Any], units: UnitSet[Any], result: Result) -> list[str]:
    """Tally the units again, last first: the ledger must be the same to the last byte."""
    again, _ = tally_all(evaluator, tuple(reversed(units.units)))
    same = _ledger_bytes(result.ledger) == _ledger_bytes(again)
    return [] if same else [f"{name}: two tallies of the same units differ"]


def _ledger_bytes(ledger: Ledger) -> bytes:
    return canonical_bytes(ledger_json(ledger.rows), digits=None)
