"""Options that say what the columns of a list mean, shared by the commands on splits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from geoeval.errors import BundleError, ConfigError

if TYPE_CHECKING:
    from geoeval.splits.list_check import Demands
    from geoeval.splits.lists import ListOptions, SplitList

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--split-column", help="Column that names the split or fold; guessed where it is not named."),
    click.option("--id", "id_column", help="Column with the sample's id; 'none' numbers the rows."),
    click.option(
        "--group", "groups", multiple=True, metavar="COLUMN", help="Values that two splits may not share. Repeatable."
    ),
    click.option("--no-group", is_flag=True, help="Guess no group column."),
    click.option("--bounds", metavar="A,B,C,D", help="Columns minx,miny,maxx,maxy, or x,y of a point."),
    click.option("--crs", help="System of bounds that name none, for example EPSG:26918, or pixel."),
    click.option("--grid-index", metavar="A,B", help="Two columns of a grid index: cells that touch are neighbours."),
    click.option("--grid-within", metavar="COLUMN", help="The grid index counts within each value of this column."),
    click.option("--neighbourhood", type=click.Choice(["8", "4"]), default="8", show_default=True),
    click.option("--layer", help="Layer of a file with several."),
    click.option(
        "--buffer", "buffer_m", type=float, metavar="METRES", help="Least distance of boxes.  [default: 2000]"
    ),
    click.option("--no-buffer", is_flag=True, help="Declare that no distance between splits is demanded."),
    click.option("--min-area", type=float, metavar="M2", help="Look for samples that share more ground than this."),
    click.option("--unique", metavar="COLUMN", help="Count pairs of different values of this column, too."),
    click.option("--key-file", type=click.Path(), help="Key that opens sealed challenge hashes of manifests."),
    click.option("--root", type=click.Path(), help="Folder of the assets; that of the file by default."),
)


def listed(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Values of an option that is repeated, or that names several with commas."""
    return tuple(part.strip() for text in values for part in text.split(",") if part.strip())


def list_options(function: F) -> F:
    """Add the options of a list to a command; they arrive as keyword arguments."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def columns(given: Mapping[str, Any], keep: Sequence[str] = ()) -> ListOptions:
    """What the options say about columns."""
    from geoeval.splits.lists import ListOptions

    if given["groups"] and given["no_group"]:
        raise ConfigError("--group and --no-group exclude each other")
    grid = _parts(given["grid_index"], "--grid-index", (2,))
    if given["grid_within"] and grid is None:
        raise ConfigError("--grid-within needs --grid-index A,B")
    wanted = dict.fromkeys([*keep, *([given["unique"]] if given["unique"] else [])])
    return ListOptions(
        split=given["split_column"],
        id=given["id_column"],
        groups=() if given["no_group"] else tuple(given["groups"]) or None,
        bounds=_parts(given["bounds"], "--bounds", (2, 4)),
        crs=given["crs"],
        grid=None if grid is None else (grid[0], grid[1]),
        grid_within=given["grid_within"],
        keep=tuple(wanted),
        layer=given["layer"],
    )


def read_given(files: Sequence[str], given: Mapping[str, Any], keep: Sequence[str] = ()) -> SplitList:
    """The list, manifests or source that a command was given."""
    from geoeval.splits.list_inputs import read_inputs

    root = None if given["root"] is None else Path(given["root"])
    return read_inputs(files, columns(given, keep), key=read_key(given["key_file"]), root=root)


def demands(given: Mapping[str, Any], read: SplitList, **more: Any) -> Demands:
    """What the options demand; manifests say their own buffer and radius."""
    from geoeval.splits.list_check import Demands

    if given["no_buffer"] and given["buffer_m"] is not None:
        raise ConfigError("--buffer and --no-buffer exclude each other")
    if read.settings is not None:
        alike = ("radius", "confirmed_radius", "confirming_bits", "labels_in_images")
        own = {name: getattr(read.settings, name) for name in alike}
        more = {**own, **more, "splits": more.get("splits") or _roles_there(read)}
    return Demands(
        buffer_m=_buffer(given, read),
        min_area_m2=given["min_area"],
        neighbourhood=4 if given["neighbourhood"] == "4" else 8,
        unique=given["unique"],
        **more,
    )


def _buffer(given: Mapping[str, Any], read: SplitList) -> float | None:
    """A grid index stands in for the distance, where none was named."""
    if given["no_buffer"]:
        return None
    if given["buffer_m"] is not None:
        return float(given["buffer_m"])
    if read.settings is not None:
        return read.settings.buffer_m
    return None if read.grid is not None else 2000.0


def _roles_there(read: SplitList) -> tuple[str, ...]:
    return () if read.settings is None else tuple(read.settings.demanded)


def _parts(text: str | None, option: str, lengths: tuple[int, ...]) -> tuple[str, ...] | None:
    if text is None:
        return None
    parts = tuple(part.strip() for part in text.split(",") if part.strip())
    if len(parts) not in lengths:
        raise ConfigError(f"{option}: expected {' or '.join(map(str, lengths))} columns with commas, got {text!r}")
    return parts


def read_key(path: str | None) -> bytes | None:
    """The key in a file; None where none was given."""
    from geoeval.splits.seals import read_key as read

    return None if path is None else read(path)


def write_folder(out: str, files: Mapping[str, bytes]) -> Path:
    """Write a folder whole, or leave nothing behind; one that holds these very bytes is success."""
    from geoeval.evidence.bundle import write_file
    from geoeval.evidence.folders import whole_folder

    target = Path(out)
    if target.exists():
        there = {path.name: path.read_bytes() for path in target.iterdir() if path.is_file()} if target.is_dir() else {}
        if there != dict(files):
            raise BundleError(f"{target.name}: exists already and holds something else; choose another folder")
        return target
    try:
        with whole_folder(target) as folder:
            for name, data in files.items():
                write_file(folder / name, data)
    except OSError as error:
        raise BundleError(f"{target.name}: cannot be written ({error.strerror or error}); nothing was left") from error
    return target
