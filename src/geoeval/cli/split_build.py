"""``geoeval split build``: two hashed manifests from one source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from geoeval.cli.split_options import listed, read_key
from geoeval.errors import ConfigError, nearest_spelling

if TYPE_CHECKING:
    from geoeval.splits.building import BuildResult
    from geoeval.splits.settings import SplitSettings

_SHOWN_OFF = 20


@click.command(name="build", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("source", type=click.Path())
@click.option("--out", required=True, type=click.Path(), help="New folder for the manifests and split.json.")
@click.option("--config", type=click.Path(), help="TOML file with the settings, at its top or in a table [split].")
@click.option(
    "--share", "shares", multiple=True, metavar="ROLE=SHARE", help="Share of a role. Repeatable; adds up to 1."
)
@click.option("--stratum", "strata", multiple=True, metavar="FIELD", help="Balance by a stratum field. Repeatable.")
@click.option("--background", metavar="FIELD=VALUE", help="What marks background samples.")
@click.option("--buffer", "buffer_m", type=float, metavar="METRES", help="Least distance between splits.")
@click.option(
    "--buffer-mode", type=click.Choice(["merge", "quarantine"]), help="Link what is too close, or set it aside."
)
@click.option("--radius", type=int, help="Bits of perceptual hashes that count as a near-duplicate, at most 4.")
@click.option("--confirmed-radius", type=int, help="Bits that count where a second hash agrees.")
@click.option(
    "--labels-in-images/--no-labels-in-images",
    default=None,
    help="Compare label sets in pixels too, not only in the world.  [default: labels-in-images]",
)
@click.option(
    "--require",
    "required",
    multiple=True,
    metavar="FIELD",
    callback=listed,
    help="Field that every record must fill, in place of all fields of the contract. Repeatable, or with commas.",
)
@click.option(
    "--optional",
    multiple=True,
    metavar="FIELD",
    callback=listed,
    help="Field that a record may leave open: taken off what is demanded. Repeatable, or with commas.",
)
@click.option(
    "--not-apart",
    multiple=True,
    metavar="FIELD",
    callback=listed,
    help="Identity that splits may share; named in the manifests as left out. Repeatable, or with commas.",
)
@click.option("--key-file", type=click.Path(), help="Key that seals the hashes of challenge samples.")
@click.option("--root", type=click.Path(), help="Folder of the assets; that of the source by default.")
@click.option("--assets", type=click.Path(), help="Strict asset manifest: production mode.")
@click.option("--assets-sha256", help="The hash that the asset manifest must have.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print split.json.")
def command(
    source: str,
    out: str,
    config: str | None,
    key_file: str | None,
    root: str | None,
    assets: str | None,
    assets_sha256: str | None,
    workers: int,
    *,
    as_json: bool,
    **given: Any,
) -> None:
    """Build development and protected manifests from SOURCE (.jsonl or GeoParquet), and hold them to every gate.

    Exit codes: 0 written; 2 refused, with the leaking pairs or the record named and nothing written.
    """
    from geoeval.splits.building import build, write_manifests

    if assets is not None and (given["required"] or given["optional"]):
        raise ConfigError("--assets demands every field of the contract; leave --require and --optional out")
    settings = split_settings(config, given)
    more: dict[str, Any] = {"key": read_key(key_file), "workers": workers}
    if assets is not None:
        from geoeval.splits.production import Production

        if assets_sha256 is None:
            raise ConfigError("--assets needs --assets-sha256, the hash that was published for it")
        home = Path(source).parent if root is None else Path(root)
        result = build(Path(source), settings, production=Production(Path(assets), assets_sha256, home), **more)
    elif root is not None:
        from geoeval.splits.source import read_source

        read = read_source(Path(source), root=Path(root), workers=workers, required=settings.required)
        result = build(read, settings, **more)
    else:
        result = build(Path(source), settings, **more)
    write_manifests(result, Path(out))
    if as_json:
        from geoeval.cli.show import print_json

        print_json(result.report)
    else:
        _print(result)
    for line in _undecided(result):
        click.echo(line, err=as_json)


def split_settings(config: str | None, given: Mapping[str, Any]) -> SplitSettings:
    """Settings from a file, overruled by what was given on the command line.

    Raises
    ------
    ConfigError
        Naming the key or option.
    """
    from geoeval.config.reading import read_toml, validated
    from geoeval.splits.settings import SplitSettings

    data: dict[str, Any] = {}
    where = ""
    if config is not None:
        data = read_toml(Path(config))
        where = Path(config).name
        if set(data) == {"split"} and isinstance(data["split"], dict):
            data, where = data["split"], f"{where}: split"
    if given["shares"]:
        data["shares"] = dict(_share(text) for text in given["shares"])
    if given["background"]:
        name, mark, value = given["background"].partition("=")
        if not mark or not name or not value:
            raise ConfigError(f"--background: expected FIELD=VALUE, got {given['background']!r}")
        data["background"] = [name, value]
    for name in ("strata", "required"):
        if given[name]:
            data[name] = list(given[name])
    for name in ("buffer_m", "buffer_mode", "radius", "confirmed_radius", "labels_in_images"):
        if given[name] is not None:
            data[name] = given[name]
    if given["not_apart"]:
        data["identities"] = _apart(data.get("identities"), given["not_apart"])
    left_open = _fields(data.pop("optional", []), f"{where}.optional")
    settings = validated(SplitSettings, data, where)
    if given["required"]:
        # A list on the command line replaces what the file says about it, what may stay open included.
        left_open = []
    _check_optional(left_open, settings.required, data.get("required", ()), f"{where}.optional")
    _check_optional(given["optional"], settings.required, given["required"], "--optional")
    left_open = [*left_open, *given["optional"]]
    return replace(settings, required=tuple(name for name in settings.required if name not in left_open))


def _apart(declared: Any, shared: Sequence[str]) -> list[str]:
    """The identities that splits are held apart by, without those that they may share."""
    from geoeval.splits.record import IDENTITIES, MEMBERS

    held = [*IDENTITIES, *MEMBERS] if declared is None else _fields(declared, "identities")
    for name in shared:
        if name not in held or name == "sample_id":
            known = [one for one in held if one != "sample_id"]
            raise ConfigError(
                f"--not-apart: {name!r} is no identity that can be shared; {nearest_spelling(name, known)}"
            )
    return [name for name in held if name not in shared]


def _fields(value: Any, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ConfigError(f"{where}: expected a list of fields, got {value!r}")
    return value


def _check_optional(optional: Sequence[str], demanded: Sequence[str], named: Sequence[str], where: str) -> None:
    """Refuse to leave open what cannot be, what was named as required in the same place, or what nobody demands."""
    from geoeval.splits.record import ALWAYS

    for name in optional:
        if name in ALWAYS:
            raise ConfigError(f"{where}: {name!r} cannot be left open; every record has one")
        if name in named:
            raise ConfigError(f"{where}: {name!r} is required, too; name it in one of the two")
        if name not in demanded:
            raise ConfigError(f"{where}: {name!r} is no field that is demanded; {nearest_spelling(name, demanded)}")


def _share(text: str) -> tuple[str, float]:
    from geoeval.splits.record import ALIASES, ROLES

    name, _, value = text.partition("=")
    role = ALIASES.get(name.strip(), name.strip())
    if role not in ROLES:
        raise ConfigError(f"--share: unknown role {role!r}; {nearest_spelling(role, ROLES)}")
    try:
        return role, float(value)
    except ValueError:
        raise ConfigError(f"--share: expected {role}=0.6, got {text!r}") from None


def _print(result: BuildResult) -> None:
    for name, one in result.manifests.items():
        click.echo(f"{name} manifest: {one.sha256}, {len(one.samples)} samples")
    click.echo(f"source: {result.source_sha256}")
    wanted: dict[str, float] = {}
    got: dict[str, int] = {}
    for row in result.balance:
        wanted[row.split] = wanted.get(row.split, 0.0) + row.wanted
        got[row.split] = got.get(row.split, 0) + row.got
    n = max(result.table.n, 1)
    for role, number in got.items():
        click.echo(f"  {role}: {number} samples ({number / n:.1%}), wanted {wanted[role]:.1f} ({wanted[role] / n:.1%})")
    off = [row for row in result.balance if row.off]
    for row in off[:_SHOWN_OFF]:
        stratum = ", ".join(f"{name}={value}" for name, value in row.stratum)
        click.echo(f"  off by {row.got - row.wanted:+.1f}: {row.split} in {stratum} has {row.got}")
    if len(off) > _SHOWN_OFF:
        click.echo(f"  … and {len(off) - _SHOWN_OFF} more strata that are off (split.json has all)")
    _print_components(result)
    for gate in result.gates:
        reason = f" ({gate.reason})" if gate.reason else ""
        click.echo(f"gate {gate.id}: {gate.status}{reason}")


def _undecided(result: BuildResult) -> Iterator[str]:
    """A line for each gate that a benchmark wants passed and that could not be decided."""
    from geoeval.config.protected import PROVEN

    for gate in result.gates:
        if gate.id in PROVEN and gate.status == "not_evaluable":
            yield f"gate {gate.id} could not be decided ({gate.reason}): a benchmark will refuse this split"


def _print_components(result: BuildResult) -> None:
    sizes = result.report["components"]["sizes"]
    largest = ", ".join(f"{times} of {size}" for size, times in reversed(sizes[-5:]))
    click.echo(f"components: {len(result.components.sizes)}, largest first: {largest} samples")
    if result.giant is not None:
        giant = result.giant
        click.echo(
            f"giant component: {giant.samples} samples ({giant.share:.1%}) hang together, more than the largest "
            f"share; the relation that makes it: {giant.relation or 'several'}"
        )
    if result.quarantine is not None:
        cost = ", ".join(f"{role} {number}" for role, number in result.quarantine.cost.items()) or "nothing"
        click.echo(f"quarantine: {result.quarantine.size} samples set aside ({cost})")
