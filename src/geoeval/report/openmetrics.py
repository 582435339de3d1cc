"""Estimates and verdicts as an OpenMetrics textfile, for a monitoring system that collects files.

An undefined figure has no line: it is neither zero nor NaN. The verdicts of gates are state sets, in which one state of
``pass``, ``fail`` and ``not_evaluable`` is 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from geoeval.evidence.canonical import significant
from geoeval.model import Estimate, Evaluation, Verdict

_STATES = ("pass", "fail", "not_evaluable")

#: Families of samples: name, type, what it is.
_HEADS = {
    "geoeval_run": ("info", "The run that these figures belong to."),
    "geoeval_estimate": ("gauge", "Value of a figure."),
    "geoeval_interval_low": ("gauge", "Lower bound of the interval of a figure."),
    "geoeval_interval_high": ("gauge", "Upper bound of the interval of a figure."),
    "geoeval_support": ("gauge", "Number of observations behind a figure."),
    "geoeval_gate": ("stateset", "Verdict of a gate."),
    "geoeval_gate_waived": ("gauge", "1 where a verdict is waived; the verdict stays."),
}


def openmetrics_bytes(
    run: str,
    evaluations: Mapping[str, Evaluation],
    verdicts: Iterable[Verdict],
    product_gates: Iterable[Verdict] = (),
) -> bytes:
    """The figures and gates of a run as OpenMetrics text.

    Parameters
    ----------
    run
        The run id.
    evaluations
        By the name of their case; every overall figure becomes samples.
    verdicts, product_gates
        Every gate becomes a state set.

    Returns
    -------
    bytes
        UTF-8, ended by ``# EOF``; no time stamps.

    Examples
    --------
    >>> openmetrics_bytes("run-1", {}, []).decode().splitlines()[2:4]
    ['geoeval_run_info{run="run-1"} 1', '# TYPE geoeval_estimate gauge']
    """
    samples: dict[str, list[str]] = {name: [] for name in _HEADS}
    samples["geoeval_run"].append(_sample("geoeval_run_info", {"run": run}, 1))
    for case in sorted(evaluations):
        evaluation = evaluations[case]
        for metric in sorted(evaluation.estimates):
            given = evaluation.estimates[metric]
            labels = {"case": case, "family": evaluation.family, "metric": metric, "unit": given.unit}
            for name, value in _values(given):
                samples[name].append(_sample(name, labels, value))
    for gate in sorted((*verdicts, *product_gates), key=lambda one: (one.family, one.id)):
        labels = {"family": gate.family, "gate": gate.id}
        for state in _STATES:
            line = _sample("geoeval_gate", {**labels, "geoeval_gate": state}, int(state == gate.status))
            samples["geoeval_gate"].append(line)
        samples["geoeval_gate_waived"].append(_sample("geoeval_gate_waived", labels, int(gate.waived_by is not None)))
    return "\n".join([*_lines(samples), "# EOF", ""]).encode()


def _lines(samples: Mapping[str, list[str]]) -> Iterator[str]:
    for name, (kind, says) in _HEADS.items():
        yield f"# TYPE {name} {kind}"
        yield f"# HELP {name} {says}"
        yield from samples[name]


def _values(given: Estimate) -> Iterator[tuple[str, float]]:
    if given.value is not None:
        yield "geoeval_estimate", given.value
    if given.interval is not None:
        yield "geoeval_interval_low", given.interval.low
        yield "geoeval_interval_high", given.interval.high
    yield "geoeval_support", given.support


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    text = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())
    number = significant(float(value))
    return f"{name}{{{text}}} {int(number) if number.is_integer() and abs(number) < 1e15 else repr(number)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
