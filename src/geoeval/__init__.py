"""geoeval scores maps, models and DEMs, and says whether they may be released.

Seven evaluators (:class:`Detection`, :class:`Footprint`, :class:`Vector`, :class:`Change`, :class:`Raster`,
:class:`Elevation`, :class:`Validation`) score a prediction against a reference through :func:`evaluate`, with intervals
that know clusters, subgroups, and gates that fail closed. Importing this package reads no file; heavy libraries load
when they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "evaluate": "geoeval.evaluation",
    "run": "geoeval.evaluation",
    "compare_two": "geoeval.versus",
    "confidence_points": "geoeval.points_of",
    "Policy": "geoeval.summary",
    "Result": "geoeval.evaluation",
    "estimate": "geoeval.estimation",
    "stratify": "geoeval.estimation",
    "Plan": "geoeval.estimation",
    "decide": "geoeval.gates",
    "parse_gate": "geoeval.gates",
    "one_to_one": "geoeval.geometry.match",
    "wilson": "geoeval.stats.interval",
    "Ledger": "geoeval.ledger",
    "Tallied": "geoeval.ledger",
    "Tally": "geoeval.stats.tally",
    "Source": "geoeval.options",
    "Columns": "geoeval.options",
    "Pairing": "geoeval.options",
    "Cell": "geoeval.model",
    "Estimate": "geoeval.model",
    "Evaluation": "geoeval.model",
    "Finding": "geoeval.model",
    "Gate": "geoeval.model",
    "Interval": "geoeval.model",
    "Proportion": "geoeval.model",
    "Records": "geoeval.model",
    "Scalar": "geoeval.model",
    "Stratum": "geoeval.model",
    "Unit": "geoeval.model",
    "Verdict": "geoeval.model",
    "GeoevalError": "geoeval.errors",
    "Change": "geoeval.evaluators.change",
    "Detection": "geoeval.evaluators.detection",
    "Elevation": "geoeval.evaluators.elevation",
    "Footprint": "geoeval.evaluators.footprint",
    "Raster": "geoeval.evaluators.raster",
    "Validation": "geoeval.evaluators.validation",
    "Vector": "geoeval.evaluators.vector",
}

__all__ = [
    "Cell",
    "Change",
    "Columns",
    "Detection",
    "Elevation",
    "Estimate",
    "Evaluation",
    "Finding",
    "Footprint",
    "Gate",
    "GeoevalError",
    "Interval",
    "Ledger",
    "Pairing",
    "Plan",
    "Policy",
    "Proportion",
    "Raster",
    "Records",
    "Result",
    "Scalar",
    "Source",
    "Stratum",
    "Tallied",
    "Tally",
    "Unit",
    "Validation",
    "Vector",
    "Verdict",
    "__version__",
    "compare_two",
    "confidence_points",
    "decide",
    "estimate",
    "evaluate",
    "one_to_one",
    "parse_gate",
    "run",
    "stratify",
    "wilson",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'geoeval' has no attribute {name!r}")
    found = getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from geoeval.errors import GeoevalError
    from geoeval.estimation import Plan, estimate, stratify
    from geoeval.evaluation import Result, evaluate, run
    from geoeval.evaluators.change import Change
    from geoeval.evaluators.detection import Detection
    from geoeval.evaluators.elevation import Elevation
    from geoeval.evaluators.footprint import Footprint
    from geoeval.evaluators.raster import Raster
    from geoeval.evaluators.validation import Validation
    from geoeval.evaluators.vector import Vector
    from geoeval.gates import decide, parse_gate
    from geoeval.geometry.match import one_to_one
    from geoeval.ledger import Ledger, Tallied
    from geoeval.model import (
        Cell,
        Estimate,
        Evaluation,
        Finding,
        Gate,
        Interval,
        Proportion,
        Records,
        Scalar,
        Stratum,
        Unit,
        Verdict,
    )
    from geoeval.options import Columns, Pairing, Source
    from geoeval.points_of import confidence_points
    from geoeval.stats.interval import wilson
    from geoeval.stats.tally import Tally
    from geoeval.summary import Policy
    from geoeval.versus import compare_two
