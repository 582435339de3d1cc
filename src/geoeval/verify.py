"""Verify a bundle: hash it again, decide its gates again, render its board, report and layers again.

Valid means: the run id is the hash of the manifest, every listed file is there unchanged, nothing else is there, the
verdicts follow from the metrics by the gates of the bound configuration, tables hold the rows that they promise, and
every derived file that can be rendered comes out the same, byte for byte. Layers that another GDAL wrote are compared
feature by feature.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from geoeval.errors import BundleError
from geoeval.evidence.bundle import Content
from geoeval.evidence.canonical import code_digest, digest, file_digest
from geoeval.evidence.documents import document_bytes, document_of, gates_from_json, metrics_from_json
from geoeval.evidence.verify_files import Listing, file_problems, read_listing
from geoeval.gates import decide_families
from geoeval.model import Evaluation, Gate, Verdict
from geoeval.report.board import board

RAW_PREDICTIONS = "baseline-raw-predictions.json"
GALLERY = "failure-gallery.json"


class Documents:
    """Bound files by their name: bytes that are not written yet, or files of a folder. Each is parsed once."""

    def __init__(self, folder: Path, files: Mapping[str, Content] | None = None) -> None:
        self._folder = folder
        self._files = files or {}
        self._parsed: dict[str, Any] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._files or self._path(name).is_file()

    def content(self, name: str) -> Content:
        """Bytes of a file, or where they lie."""
        return self._files[name] if name in self._files else self._path(name)

    def parsed(self, name: str) -> Any:
        """A JSON document.

        Raises
        ------
        BundleError
            Where it cannot be read.
        """
        if name not in self._parsed:
            content = self.content(name)
            try:
                data = content.read_bytes() if isinstance(content, Path) else content
            except OSError as error:
                raise BundleError(f"{name}: cannot be read ({error.strerror or error})") from error
            self._parsed[name] = document_of(data, name)
        return self._parsed[name]

    def rows(self, name: str, key: str) -> list[Mapping[str, Any]]:
        """The rows under a key of a document; none where the bundle lacks it."""
        if name not in self:
            return []
        data = self.parsed(name)
        rows = data.get(key) if isinstance(data, Mapping) else None
        if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
            raise BundleError(f"{name}: expected a list of rows under {key!r}")
        return rows

    def _path(self, name: str) -> Path:
        return self._folder.joinpath(*PurePosixPath(name).parts)


@dataclass(frozen=True, slots=True)
class Contents:
    """What derived files are rendered from: the run id and the bound documents."""

    run: str
    manifest: Mapping[str, Any]
    evaluations: Mapping[str, Evaluation]
    verdicts: tuple[Verdict, ...]
    product_gates: tuple[Verdict, ...]
    folder: Path
    documents: Documents = field(init=False)
    files: Mapping[str, Content] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "documents", Documents(self.folder, self.files))

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


def report_bytes(contents: Contents) -> bytes:
    """The bytes of ``report.html``, from what the bundle binds."""
    from geoeval.evidence.tables import read_case
    from geoeval.report.html import Page, page_bytes

    documents = contents.documents
    cases = documents.rows(RAW_PREDICTIONS, "cases")
    return page_bytes(
        Page(
            run=contents.run,
            manifest=contents.manifest,
            evaluations=contents.evaluations,
            verdicts=contents.verdicts,
            product_gates=contents.product_gates,
            failures=documents.rows(GALLERY, "failures"),
            tables={str(case["case"]): read_case(case, documents.content) for case in cases},
            units={str(case["case"]): "m" if case["lineage"].get("crs") else "px" for case in cases},
        )
    )


def layer_name(case: str) -> str:
    """Where the layers of a case lie in a bundle.

    Examples
    --------
    >>> layer_name("houses")
    'layers/houses.gpkg'
    """
    return f"layers/{case}.gpkg"


def layer_renderer(case: str) -> Renderer:
    """How the layers of a case are rendered from what the bundle binds."""

    def render(contents: Contents) -> bytes:
        from geoeval.evidence.tables import read_case
        from geoeval.report.layers import layer_bytes

        documents = contents.documents
        entry = next((row for row in documents.rows(RAW_PREDICTIONS, "cases") if row.get("case") == case), None)
        if entry is None:
            raise BundleError(f"{layer_name(case)}: {RAW_PREDICTIONS} has no case {case!r}")
        failures = [row for row in documents.rows(GALLERY, "failures") if row.get("case") == case]
        tables = read_case(entry, documents.content)
        return layer_bytes(contents.run, case, tables, failures, entry["lineage"].get("crs"))

    return render


#: Derived files that can always be rendered again; layers are, too, by the name of their case.
RENDERERS: Mapping[str, Renderer] = {"board.json": board_bytes, "report.html": report_bytes}


def renderers_of(derived: Iterable[str]) -> dict[str, Renderer]:
    """The renderer of every derived file that has one.

    Examples
    --------
    >>> sorted(renderers_of(["board.json", "layers/houses.gpkg", "atlas.html"]))
    ['board.json', 'layers/houses.gpkg']
    """
    out = {}
    for name in derived:
        path = PurePosixPath(name)
        if name in RENDERERS:
            out[name] = RENDERERS[name]
        elif path.parts == ("layers", path.name) and path.suffix == ".gpkg":
            out[name] = layer_renderer(path.stem)
    return out


def verify(bundle: Path, renderers: Mapping[str, Renderer] | None = None) -> Verified:
    """Check a bundle against itself.

    Parameters
    ----------
    bundle
        Folder of a run.
    renderers
        How further derived files are rendered, by name; board, report and layers always are.

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
    known = {**renderers_of(listing.derived), **(renderers or {})}
    rendered: tuple[str, ...] = ()
    try:
        contents = read_contents(root, listing)
    except BundleError as error:
        problems.append(str(error))
    else:
        problems += [*gate_problems(contents), *_table_problems(contents)]
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
    return contents_of(listing.run, listing.manifest, root)


def contents_of(
    run: str, manifest: Mapping[str, Any], folder: Path, files: Mapping[str, Content] | None = None
) -> Contents:
    """What derived files are rendered from.

    Parameters
    ----------
    run, manifest
        The run id and what it is the hash of.
    folder
        Where the bundle lies, or will lie.
    files
        Bound files that are not written yet. Documents are parsed from their bytes in any case, so that what is
        rendered while writing is what is rendered while verifying.
    """
    documents = Documents(folder, files)
    evaluations = metrics_from_json(documents.parsed("metrics.json"))
    verdicts, product_gates = gates_from_json(documents.parsed("gates.json"))
    return Contents(run, manifest, evaluations, verdicts, product_gates, folder, files)


def _table_problems(contents: Contents) -> list[str]:
    from geoeval.evidence.tables import table_problems

    try:
        cases = contents.documents.rows(RAW_PREDICTIONS, "cases")
        return [problem for case in cases for problem in table_problems(case, contents.documents.content)]
    except (BundleError, KeyError, TypeError) as error:
        return [f"{RAW_PREDICTIONS}: its tables cannot be read ({error})"]


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
    try:
        content = render(contents)
    except (BundleError, KeyError, TypeError, ValueError) as error:
        return [f"{name}: cannot be rendered from the bound files ({error})"]
    expected = file_digest(content) if isinstance(content, Path) else digest(content)
    if file_digest(path) == expected or _same_layers(path, content, contents.manifest):
        return []
    return [f"{name}: is not what the bound files render to{_other_code(contents.manifest)}"]


def _same_layers(path: Path, content: Content, manifest: Mapping[str, Any]) -> bool:
    """True where another GDAL laid out the same features differently."""
    if path.suffix != ".gpkg" or isinstance(content, Path):
        return False
    from geoeval.evidence.runtime import runtime
    from geoeval.report.layers import same_features

    then = _table(_table(manifest, "runtime"), "libraries").get("gdal_vector")
    if then in (None, runtime()["libraries"]["gdal_vector"]):
        return False
    with tempfile.TemporaryDirectory() as folder:
        again = Path(folder) / path.name
        again.write_bytes(content)
        return same_features(path, again)


def _other_code(manifest: Mapping[str, Any]) -> str:
    """A hint where the bundle was made by other code, which may render otherwise."""
    made_by = _table(manifest, "code").get("sha256")
    if made_by is None or made_by == code_digest():
        return ""
    version = _table(_table(manifest, "runtime"), "packages").get("geoeval", "another version")
    return f" (it was made by other code: verify it with geoeval {version} as it was then)"


def _table(manifest: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = manifest.get(key, {})
    return value if isinstance(value, Mapping) else {}
