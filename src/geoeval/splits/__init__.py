"""Splits: samples, what links them, who goes where, five gates between the splits, and the firewall before training.

Conventions   a sample is one record; a component is all that is linked, and goes to one split whole.
Links         identities, families, acquisitions, parent rasters, objects, exact bytes, near-duplicates, distance. What
              is null, empty or "unknown" links nothing and is listed.
Distances     geodesic, between boxes as regions.
Results       exact counts; witnesses are the first pairs in a fixed order; the order of a file never matters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from geoeval.splits.building import BuildResult, SplitRefused, build, write_manifests
    from geoeval.splits.datasets import chip_index, patch_index
    from geoeval.splits.evaluation import bind_evaluation
    from geoeval.splits.firewall import assert_training_inputs_safe
    from geoeval.splits.leakage import GateResult, check, worst
    from geoeval.splits.manifest import Manifest, read_manifest
    from geoeval.splits.production import Production
    from geoeval.splits.record import Sample
    from geoeval.splits.seals import read_key
    from geoeval.splits.settings import SplitSettings
    from geoeval.splits.source import SplitSource, read_source
    from geoeval.splits.table import SampleTable

#: Where each name lives; loaded when it is first asked for.
_HOMES: dict[str, str] = {
    "BuildResult": "building",
    "GateResult": "leakage",
    "Manifest": "manifest",
    "Production": "production",
    "Sample": "record",
    "SampleTable": "table",
    "SplitRefused": "building",
    "SplitSettings": "settings",
    "SplitSource": "source",
    "assert_training_inputs_safe": "firewall",
    "bind_evaluation": "evaluation",
    "build": "building",
    "check": "leakage",
    "chip_index": "datasets",
    "patch_index": "datasets",
    "read_key": "seals",
    "read_manifest": "manifest",
    "read_source": "source",
    "worst": "leakage",
    "write_manifests": "building",
}

__all__ = [
    "BuildResult",
    "GateResult",
    "Manifest",
    "Production",
    "Sample",
    "SampleTable",
    "SplitRefused",
    "SplitSettings",
    "SplitSource",
    "assert_training_inputs_safe",
    "bind_evaluation",
    "build",
    "check",
    "chip_index",
    "patch_index",
    "read_key",
    "read_manifest",
    "read_source",
    "worst",
    "write_manifests",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'geoeval.splits' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"geoeval.splits.{_HOMES[name]}"), name)
