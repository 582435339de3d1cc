"""Verify a bundle: hash it again, decide its gates again, render its board again.

Valid means: the run id is the hash of the manifest, every listed file is there unchanged, nothing else is there, the
verdicts follow from the metrics by the gates of the bound configuration, and every derived file that can be rendered
comes out the same, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from geoeval.errors import BundleError
from geoeval.evidence.bundle import Content
from geoeval.evidence.canonical import digest, file_digest
from geoeval.evidence.documents import document_bytes, document_of, gates_from_json, metrics_from_json
from geoeval.evidence.verify_files import Listing, file_problems, read_listing
from geoeval.gates import decide_families
from geoeval.model import Evaluation, Gate, Verdict
from geoeval.report.board import board


@dataclass(frozen=True, slots=True)
class Contents:
    """What derived files are rendered from: the run id and the bound documents."""

    run: str
    manifest: Mapping[str, Any]
    evaluations: Mapping[str, Evaluation]
    verdicts: tuple[Verdict, ...]
    product_gates: tuple[Verdict, ...]
    folder: Path

    @property
    def claim_limits(self) -> tuple[str, ...]:
        """Sentences that limit what may be claimed."""
        return tuple(_table(self.manifest, "configuration").get("claim_limits", ()))

    @property
    def synthetic(self) -> bool:
        """True where the inputs are synthetic."""
        return bool(self.manifest.get("synthetic", False))


Renderer = Callable[[Contents], Content]


@dataclass(frozen=True, slots=True)
class Verified:
    """What came of a verification."""

    run: str
    problems: tuple[str, ...]
    files: int
    rendered: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        """True where nothing was found."""
        return not self.problems

    @property
    def exit_code(self) -> Literal[0, 3]:
        """0 valid, 3 invalid; a bundle that cannot be read raises, which is 2."""
        return 0 if self.valid else 3


def board_bytes(contents: Contents) -> bytes:
    """The bytes of ``board.json``, from what the bundle binds."""
    return document_bytes(
        board(
            contents.run,
            contents.evaluations,
            contents.verdicts,
            contents.claim_limits,
            contents.product_gates,
            synthetic=contents.synthetic,
        )
    )


#: Derived files that can always be rendered again.
RENDERERS: Mapping[str, Renderer] = {"board.json": board_bytes}


def verify(bundle: Path, renderers: Mapping[str, Renderer] | None = None) -> Verified:
    """Check a bundle against itself.

    Parameters
    ----------
    bundle
        Folder of a run.
    renderers
        How further derived files are rendered, by name; the board always is.

    Returns
    -------
    Verified
        With one sentence a problem.

    Raises
    ------
    BundleError
        Where the bundle is unreadable: no folder, or no manifest.
    """
    root = Path(bundle)
    listing = read_listing(root)
    problems = file_problems(root)
    known = {**RENDERERS, **(renderers or {})}
    rendered: tuple[str, ...] = ()
    try:
        contents = read_contents(root, listing)
    except BundleError as error:
        problems.append(str(error))
    else:
        problems += gate_problems(contents)
        rendered = tuple(name for name in listing.derived if name in known)
        for name in rendered:
            problems += _rendering_problems(root, name, known[name], contents)
    return Verified(listing.run, tuple(dict.fromkeys(problems)), len(listing.files) + len(listing.derived), rendered)


def read_contents(root: Path, listing: Listing) -> Contents:
    """The bound documents of a bundle.

    Raises
    ------
    BundleError
        Where ``metrics.json`` or ``gates.json`` is not bound, or cannot be read.
    """
    bound = {entry["path"] for entry in listing.files}
    for name in ("metrics.json", "gates.json"):
        if name not in bound:
            raise BundleError(f"{name}: the manifest does not bind it")
    evaluations = metrics_from_json(_document(root, "metrics.json"))
    verdicts, product_gates = gates_from_json(_document(root, "gates.json"))
    return Contents(listing.run, listing.manifest, evaluations, verdicts, product_gates, root)


def _document(root: Path, name: str) -> Any:
    try:
        return document_of((root / name).read_bytes(), name)
    except OSError as error:
        raise BundleError(f"{name}: cannot be read ({error.strerror or error})") from error


def gate_problems(contents: Contents) -> list[str]:
    """Verdicts that do not follow from the metrics by the gates of the bound configuration.

    Waivers are left out of the comparison: they change no status.
    """
    configuration = _table(contents.manifest, "configuration")
    if "gates" not in configuration:
        return ["manifest.json: its configuration declares no gates, so that verdicts cannot be decided again"]
    try:
        gates = gates_of(configuration)
        support = {case["id"]: int(case["min_support"]) for case in configuration["cases"]}
    except (TypeError, KeyError) as error:
        return [f"manifest.json: its gates cannot be read ({error})"]
    again = decide_families(gates, contents.evaluations, support)
    return _disagreements(contents.verdicts, again) + _inner_disagreements(contents, again)


def _disagreements(verdicts: Sequence[Verdict], again: Sequence[Verdict]) -> list[str]:
    stored = {verdict.id: replace(verdict, waived_by=None) for verdict in verdicts}
    expected = {verdict.id: verdict for verdict in again}
    problems = [f"gates.json: {name!r} is missing" for name in sorted(set(expected) - set(stored))]
    problems += [f"gates.json: {name!r} is not declared" for name in sorted(set(stored) - set(expected))]
    for name in sorted(set(stored) & set(expected)):
        if stored[name] != expected[name]:
            problems.append(
                f"gates.json: {name!r} says {stored[name].status!r}, the metrics give {expected[name].status!r}"
                if stored[name].status != expected[name].status
                else f"gates.json: {name!r} does not agree with the metrics"
            )
    return problems


def _inner_disagreements(contents: Contents, again: Sequence[Verdict]) -> list[str]:
    """Verdicts inside ``metrics.json`` that are not those of ``gates.json``; an evaluation may also carry none."""
    expected = {verdict.id: verdict for verdict in again}
    problems = []
    for name, evaluation in sorted(contents.evaluations.items()):
        for verdict in evaluation.gates:
            full = verdict.id if verdict.id.startswith(f"{name}:") else f"{name}:{verdict.id}"
            if expected.get(full) != replace(verdict, id=full, waived_by=None):
                problems.append(f"metrics.json: gate {verdict.id!r} of {name!r} does not agree with the metrics")
    return problems


def gates_of(configuration: Mapping[str, Any]) -> list[Gate]:
    """The gates of a resolved configuration."""
    names = [field.name for field in fields(Gate)]
    return [Gate(**{name: row[name] for name in names}) for row in configuration["gates"]]


def _rendering_problems(root: Path, name: str, render: Renderer, contents: Contents) -> list[str]:
    path = root.joinpath(*PurePosixPath(name).parts)
    if not path.is_file():
        return [f"{name}: missing"]
    content = render(contents)
    expected = file_digest(content) if isinstance(content, Path) else digest(content)
    return [] if file_digest(path) == expected else [f"{name}: is not what the bound files render to"]


def _table(manifest: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = manifest.get(key, {})
    return value if isinstance(value, Mapping) else {}
