"""From results to a bundle: the documents, the manifest that binds them, and the files derived from both."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, partial
from os import PathLike
from pathlib import Path, PurePath
from typing import Any, cast

from geoeval.errors import BundleError
from geoeval.evaluation import Result
from geoeval.evidence import tables
from geoeval.evidence.bundle import Content, write_bundle
from geoeval.evidence.canonical import canonical_bytes, code_digest, file_digest, plain
from geoeval.evidence.documents import document_bytes, gates_json, metrics_json
from geoeval.evidence.raw import failure_gallery, gallery_json, ledger_json, raw_case, raw_json
from geoeval.evidence.runtime import runtime
from geoeval.evidence.tables import case_tables, table_case
from geoeval.gates import decide_families
from geoeval.ledger import Evaluator
from geoeval.model import Verdict
from geoeval.options import Pairing, Source
from geoeval.report.layers import VECTOR_FAMILIES
from geoeval.summary import Policy, demanded_gates
from geoeval.verify import (
    GALLERY,
    RAW_PREDICTIONS,
    RENDERERS,
    Contents,
    Renderer,
    contents_of,
    layer_name,
    renderers_of,
)

#: Files that belong to one of these, by suffix.
_SIDECARS = {".shp": (".shx", ".dbf", ".prj", ".cpg"), ".tif": (".aux.xml", ".ovr", ".msk")}


#: Fields of an evaluator that are no options.
_FIXED = ("name", "family")


@dataclass(frozen=True, slots=True)
class Scored:
    """One case: its result, the evaluator that made it, and where its sources lie (for names in the manifest)."""

    result: Result
    evaluator: Evaluator[Any]
    base: Path | None = None


def write_run(
    runs: Path,
    cases: Mapping[str, Scored],
    configuration: Mapping[str, Any],
    verdicts: Sequence[Verdict],
    product_gates: Sequence[Verdict] = (),
    *,
    synthetic: bool = False,
    bound: Iterable[Mapping[str, Any]] = (),
    splits: Mapping[str, Any] | None = None,
) -> Path:
    """Write the bundle of a run.

    Parameters
    ----------
    runs
        Folder of all runs.
    cases
        Scored cases by name.
    configuration
        Resolved, with every default, gates included.
    verdicts, product_gates
        As decided.
    synthetic
        True where nothing may be claimed for a product.
    bound
        Further files that the run depends on, as name and sha256.
    splits
        The manifests that the cases were held to, by hash; None where there are none.

    Returns
    -------
    Path
        Folder of the bundle; running an equal run again gives the same folder with the same bytes.
    """
    evaluations = {name: scored.result.evaluation for name, scored in cases.items()}
    inputs = {name: inputs_of(scored.result.inputs, scored.base) for name, scored in cases.items()}
    manifest = {
        "synthetic": synthetic,
        "configuration": configuration,
        "inputs": inputs,
        "evaluators": {name: scored.evaluator.name for name, scored in cases.items()},
        "code": {"sha256": code_digest(), "commit": commit()},
        "runtime": runtime(),
        "facts": {
            name: {"clustered": one.result.clustered, "reference_only": sorted(one.result.reference_only)}
            for name, one in cases.items()
        },
        "bound": sorted(bound, key=lambda row: str(row["name"])),
        **({} if splits is None else {"splits": splits}),
    }
    raw = {name: _raw(name, scored, inputs[name]) for name, scored in cases.items()}
    files: dict[str, Content] = {
        "metrics.json": document_bytes(metrics_json(evaluations)),
        "gates.json": document_bytes(gates_json(verdicts, product_gates)),
        RAW_PREDICTIONS: document_bytes(raw_json(entry for entry, _ in raw.values())),
        GALLERY: document_bytes(
            gallery_json(
                failure
                for name, scored in cases.items()
                for failure in failure_gallery(name, scored.evaluator.family, scored.result.records)
            )
        ),
        **{
            f"ledger/{name}.json": canonical_bytes(ledger_json(scored.result.ledger.rows), digits=None)
            for name, scored in cases.items()
        },
        **{path: table for _, more in raw.values() for path, table in more.items()},
    }
    derived = [*RENDERERS, *(layer_name(name) for name, scored in cases.items() if _has_layer(scored))]
    return write_bundle(Path(runs), files, manifest, _renderings(derived, manifest, files, Path(runs)))


def _renderings(
    derived: Sequence[str], manifest: Mapping[str, Any], files: Mapping[str, Content], runs: Path
) -> dict[str, Callable[[str], Content]]:
    """Every derived file by how it is rendered once the run id is known, from the bytes that are bound."""

    @cache
    def contents(run: str) -> Contents:
        return contents_of(run, plain(manifest), runs / run, files)

    def rendered(run: str, render: Renderer) -> Content:
        return render(contents(run))

    return {name: partial(rendered, render=render) for name, render in renderers_of(derived).items()}


def _has_layer(scored: Scored) -> bool:
    records = scored.result.records
    return scored.evaluator.family in VECTOR_FAMILIES and case_tables(records).has_geometry


def write_result(
    result: Result,
    evaluator: Evaluator[Any],
    pairing: Pairing,
    plan: Any,
    policy: Policy,
    out: str,
    sources: Mapping[str, Source] | None = None,
) -> Path:
    """Write the bundle of one evaluation below ``out/runs``.

    ``sources`` are the two sides by name; how they were read (filters, recodes, columns) is bound then, too.
    """
    gates = demanded_gates(evaluator, policy)
    configuration = {
        "name": evaluator.family,
        "synthetic": False,
        "claim_limits": ["two files, no protected split: no release claim"],
        "cases": [
            {
                "id": evaluator.family,
                "family": evaluator.family,
                "options": options_json(evaluator),
                **{side: _source_json(source) for side, source in (sources or {}).items()},
                "pairing": {**asdict(pairing), **_file_names(pairing)},
                "critical": {name: list(values) for name, values in policy.critical.items()},
                "min_support": policy.min_support,
            }
        ],
        "intervals": asdict(plan),
        "gates": [asdict(gate) for gate in gates],
    }
    verdicts = decide_families(gates, {evaluator.family: result.evaluation}, {evaluator.family: policy.min_support})
    return write_run(Path(out) / "runs", {evaluator.family: Scored(result, evaluator)}, configuration, verdicts)


def options_json(evaluator: Evaluator[Any]) -> dict[str, Any]:
    """The evaluator's whole configuration as plain values."""
    names = [option.name for option in fields(cast("Any", evaluator)) if option.init and option.name not in _FIXED]
    return {name: _plain(getattr(evaluator, name)) for name in names}


def inputs_of(paths: Iterable[str], base: Path | None = None) -> list[dict[str, Any]]:
    """Name, sha256 and size of every input file and its sidecars; names tell nothing about the machine."""
    files: dict[Path, None] = {}
    for text in paths:
        path = Path(text)
        if not path.is_file():
            continue
        files[path] = None
        for suffix in _SIDECARS.get(path.suffix.lower(), ()):
            for other in (path.with_suffix(suffix), Path(str(path) + suffix)):
                if other.is_file():
                    files[other] = None
    rows = [
        {"name": _name(path, base), "sha256": file_digest(path), "bytes": path.stat().st_size} for path in sorted(files)
    ]
    return sorted(
        {(row["name"], row["sha256"]): row for row in rows}.values(), key=lambda row: (row["name"], row["sha256"])
    )


def commit() -> str | None:
    """The commit of the checkout that the package runs from; None for an installed package."""
    git = Path(__file__).resolve().parents[2] / ".git"
    head = git / "HEAD"
    if not head.is_file():
        return None
    text = head.read_text(encoding="utf-8").strip()
    if not text.startswith("ref: "):
        return text
    name = text.removeprefix("ref: ")
    if (git / name).is_file():
        return (git / name).read_text(encoding="utf-8").strip()
    packed = git / "packed-refs"
    lines = packed.read_text(encoding="utf-8").splitlines() if packed.is_file() else []
    return next((line.split()[0] for line in lines if line.endswith(f" {name}")), None)


def _raw(name: str, scored: Scored, inputs: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The case in the raw predictions, and the tables that it names where it has too many objects for rows."""
    evaluation = scored.result.evaluation
    records = scored.result.records
    configuration = options_json(scored.evaluator)
    lineage = {
        "inputs": inputs,
        "evaluator": evaluation.evaluator,
        "signature": evaluation.signature,
        "crs": scored.result.crs,
    }
    columns = case_tables(records)
    if columns.objects > tables.LIMIT:
        crs = scored.result.crs
        return table_case(name, evaluation.family, columns, configuration=configuration, lineage=lineage, crs=crs)
    filtered = records.take(records.columns["outcome"] == "filtered") if len(records) else records
    kept = records.take(records.columns["outcome"] != "filtered") if len(records) else records
    entry = raw_case(name, evaluation.family, kept, configuration=configuration, lineage=lineage, filtered=filtered)
    return entry, {}


def _name(path: Path, base: Path | None) -> str:
    if base is not None:
        try:
            return path.resolve().relative_to(base.resolve()).as_posix()
        except ValueError:
            pass
    return f"{path.parent.name}/{path.name}" if path.parent.name else path.name


def _file_names(pairing: Pairing) -> dict[str, Any]:
    """What of a pairing names files, without their folders."""
    names = {name: Path(given).name if (given := getattr(pairing, name)) else None for name in ("aoi", "units")}
    return {**names, "by": [_field_name(text) for text in pairing.by]}


def _source_json(source: Source) -> dict[str, Any]:
    """A source as JSON can hold it, without its folder; a table in memory has no name."""

    def name(given: Any) -> str | None:
        return PurePath(given).name if isinstance(given, str | PathLike) else None

    nodata = "nan" if source.nodata is not None and math.isnan(source.nodata) else source.nodata
    return {**asdict(replace(source, path=name(source.path), before=name(source.before))), "nodata": nodata}


def _field_name(text: str) -> str:
    name, sign, path = text.partition("=")
    return f"{name}{sign}{Path(path).name if sign else ''}"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, tuple | list | frozenset | set):
        return [_plain(one) for one in (sorted(value) if isinstance(value, frozenset | set) else value)]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Source):
        raise BundleError("an evaluator's options hold a source; sources belong to cases")
    return str(value)
