"""``geoeval split check``: anybody's split held to the leakage gates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from geoeval.cli.split_options import demands, list_options, listed, read_given, write_folder

if TYPE_CHECKING:
    from geoeval.splits.leakage import Witness
    from geoeval.splits.list_check import ListCheck, ListGate
    from geoeval.splits.list_pairs import Facts

#: What a pair of a gate does, for the sentence on who is involved.
_VERBS: Mapping[str, str] = {
    "identity": "share a value with",
    "exact_bytes": "share bytes with",
    "near_duplicate": "nearly equal",
    "buffer": "lie too close to",
    "overlap": "overlap",
    "adjacency": "touch",
}


@click.command(name="check", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("files", nargs=-1, required=True, metavar="FILES…")
@list_options
@click.option("--radius", type=int, help="Bits of perceptual hashes that are near, at most 4.  [default: 4]")
@click.option(
    "--require",
    multiple=True,
    metavar="GATE",
    callback=listed,
    help="A gate that must pass even without evidence for it. Repeatable, or with commas.",
)
@click.option(
    "--require-split",
    multiple=True,
    metavar="ROLE",
    callback=listed,
    help="A role that must be there. Repeatable, or with commas.",
)
@click.option("--pairs", type=click.IntRange(1), default=1000, show_default=True, help="Most pairs that are named.")
@click.option("--first", type=click.IntRange(0), default=5, show_default=True, help="Pairs of a gate that are printed.")
@click.option("--out", type=click.Path(), help="Write pairs.csv, check.json and offending.gpkg into a new folder.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    files: tuple[str, ...],
    radius: int | None,
    require: tuple[str, ...],
    require_split: tuple[str, ...],
    pairs: int,
    first: int,
    out: str | None,
    *,
    as_json: bool,
    **given: Any,
) -> None:
    """Find what leaks between the splits of a list, of files, or of manifests.

    FILES is one file with a split column, or one file per split: its name is the split, or write train=FILE. CSV,
    Parquet, GeoJSON, GeoPackage and other layers; a source of samples (.jsonl); or manifests of a build, by name or as
    the folder that split build wrote.

    Exit codes: 0 every demanded gate passes, 3 a leak was found or the split is incomplete, 2 refused or not decidable.
    A list without bounds cannot decide the distance: --no-buffer declares that none is demanded.
    """
    from geoeval.splits.list_check import check_list

    read = read_given(files, given)
    more: dict[str, Any] = {"require": require, "splits": require_split, "pairs": pairs}
    found = check_list(read, demands(given, read, **more, **({} if radius is None else {"radius": radius})))
    if out is not None:
        _write(found, out)
    _print(found, first, as_json=as_json)
    raise SystemExit(found.exit_code)


def _write(found: ListCheck, out: str) -> None:
    from geoeval.evidence.canonical import canonical_bytes
    from geoeval.splits.leak_layers import check_json, layer_bytes, pairs_csv

    layer = layer_bytes(found)
    files = {"check.json": canonical_bytes(check_json(found)) + b"\n", "pairs.csv": pairs_csv(found)}
    write_folder(out, files if layer is None else {**files, "offending.gpkg": layer})


def _print(found: ListCheck, first: int, *, as_json: bool) -> None:
    from geoeval.cli.show import print_json
    from geoeval.splits.leak_layers import check_json

    if as_json:
        for name, text in found.notes.items():
            click.echo(f"{name}: {text}", err=True)
        print_json(check_json(found))
        return
    for name, text in found.notes.items():
        click.echo(f"{name}: {text}")
    click.echo(f"samples: {', '.join(f'{name} {n}' for name, n in found.samples.items())}")
    for gate in found.gates:
        for line in gate_lines(gate, found.samples, first):
            click.echo(line)
        if gate.result.id == "buffer" and gate.result.reason == "no_geometry":
            click.echo(f"  {_where_from(found)}")
    click.echo(f"split check: {_says(found)}")


def _says(found: ListCheck) -> str:
    """The last word; a split that only lacks something leaks nothing."""
    failed = {gate.result.id for gate in found.gates if gate.demanded and gate.result.status == "fail"}
    if failed == {"complete"}:
        return "INCOMPLETE"
    return {"pass": "no leak found", "fail": "LEAK", "not_evaluable": "not decidable"}[found.status]


def _where_from(found: ListCheck) -> str:
    """How to go on where samples do not say where they lie."""
    given = found.given
    if given.settings is not None or "source" in given.notes:
        return "fill in bbox and crs of every record of the source, or declare with --no-buffer that none is demanded"
    return (
        "say where every sample lies: --bounds with the columns of a box or point, or --grid-index A,B; or declare "
        "with --no-buffer that no distance is demanded"
    )


def gate_lines(gate: ListGate, samples: Mapping[str, int], first: int) -> Iterator[str]:
    """A gate as lines: its verdict and exact count, who is involved, and the first pairs."""
    result = gate.result
    head = f"{result.id}: {result.status}"
    if result.reason:
        head += f" ({result.reason})"
    if result.id == "complete":
        head += "" if not result.count else f", {result.count} found"
    elif result.status != "not_evaluable" or result.count:
        head += f", {result.count} pair{'' if result.count == 1 else 's'}"
    yield head if gate.demanded else f"{head}, not demanded: the list says nothing about it"
    if gate.demanded:
        yield from (f"  {name}: {text}" for name, text in result.notes.items())
        yield from (f"  {n} samples say nothing in {name}" for name, n in result.unknown.items())
    if result.count and gate.facts is not None:
        yield from _facts_lines(result.id, gate.facts, samples)
    elif result.count and result.id != "complete":
        yield "  too many pairs to count who is in them"
    shown = result.witnesses[:first]
    yield from (f"  {pair_line(one)}" for one in shown)
    if len(shown) < result.count and result.id != "complete":
        yield f"  … and {result.count - len(shown)} more pairs"


def _facts_lines(gate: str, facts: Facts, samples: Mapping[str, int]) -> Iterator[str]:
    for name, values in facts.values.items():
        if values:
            yield f"  {values} value{'' if values == 1 else 's'} of {name} in several splits"
    if len(facts.by_splits) > 1:
        yield "  pairs: " + ", ".join(f"{name} {n}" for name, n in facts.by_splits.items())
    for name, others in facts.samples.items():
        for other, n in others.items():
            line = f"  {n} of {samples.get(name, 0)} {name} samples {_VERBS[gate]} {other}"
            inside = (facts.within or {}).get(name, {}).get(other, 0)
            yield line + (f"; {inside} lie wholly within one of its samples" if inside else "")
    if facts.unique is not None:
        sides = ", ".join(f"{n} in {name}" for name, n in facts.unique.values.items())
        yield f"  {facts.unique.pairs} unique pairs of {facts.unique.column} values ({sides})"


def pair_line(one: Witness) -> str:
    """An offending pair as people read it."""
    units = {"metres": "{} m apart", "area_m2": "{} m² shared", "bits": "{} bits apart", "similarity": "similarity {}"}
    said = [text.format(one.evidence[name]) for name, text in units.items() if name in one.evidence]
    if "value" in one.evidence:
        said.append(f"{one.evidence['value']!r}")
    if "cells" in one.evidence:
        said.append("cells " + " and ".join(",".join(map(str, cell)) for cell in one.evidence["cells"]))
    ends = f"{one.first!r} ({one.first_split}) and {one.second!r} ({one.second_split})"
    return f"{ends}: {one.relation}, {', '.join(said)}"
