"""From a path, glob or folder to the files behind it, and which file belongs to which."""

from __future__ import annotations

import difflib
import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geoeval.errors import ConfigError, InputError
from geoeval.model import Finding
from geoeval.readers.columns import listed

#: Endings of files that hold features; other files of a folder (a README, a licence) are passed over.
VECTOR_ENDINGS = frozenset(
    {
        ".gpkg",
        ".geojson",
        ".json",
        ".geojsonl",
        ".shp",
        ".fgb",
        ".parquet",
        ".geoparquet",
        ".csv",
        ".tsv",
        ".zip",
        ".gml",
        ".kml",
    }
)

#: Endings that are no part of a unit's name.
NAME_ENDINGS = VECTOR_ENDINGS | frozenset(
    {
        ".tif",
        ".tiff",
        ".png",
        ".jpg",
        ".jpeg",
        ".jp2",
        ".img",
        ".vrt",
        ".bmp",
        ".npy",
        ".npz",
        ".nc",
        ".xml",
        ".txt",
        ".wkt",
    }
)

_COMPANIONS = (".dbf", ".shx", ".prj", ".cpg")


@dataclass(frozen=True, slots=True)
class Files:
    """The files of one side: one on its own, or several that are told apart by their stem."""

    single: bool
    items: tuple[tuple[str, Any], ...]


def unit_name(text: str) -> str:
    """A file name without folder and ending, which is what names of images and tiles are compared by.

    Examples
    --------
    >>> unit_name("images/OSBS_029.tif")
    'OSBS_029'
    >>> unit_name("tile_1.5")
    'tile_1.5'
    """
    last = text.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    stem, dot, ending = last.rpartition(".")
    return stem if dot and stem and f".{ending.lower()}" in NAME_ENDINGS else last


def is_path(value: Any) -> bool:
    """True for a path, False for a frame or another object."""
    return isinstance(value, str | os.PathLike)


def path_text(path: str | os.PathLike[str], side: str) -> str:
    """A path as text, refused where it is empty or no system could hold a file under that name.

    Examples
    --------
    >>> path_text(Path("a.gpkg"), "reference")
    'a.gpkg'
    """
    text = os.fspath(path)
    if not text.strip():
        raise InputError(f"{side}: expected a path, found {text!r}; name a file, a glob or a folder")
    try:
        Path(text).exists()
    except (OSError, ValueError) as error:
        says = getattr(error, "strerror", None) or error
        raise InputError(f"{side}: {text[:200]!r} is no path: {says}; name a file, a glob or a folder") from error
    return text


def expand(path: Any, side: str) -> Files:
    """The files that a source names, sorted by stem.

    Parameters
    ----------
    path
        A file, folder, glob or frame.
    side
        ``"reference"`` or ``"prediction"``, for messages.

    Raises
    ------
    InputError
        Nothing is there, or two files of one side share a stem.

    Examples
    --------
    >>> import pandas as pd
    >>> expand(pd.DataFrame(), "reference").items[0][0]
    'reference'
    """
    if isinstance(path, list | tuple):
        return _stems([Path(item) for item in path], side, str(side))
    if not is_path(path):
        return Files(single=True, items=((side, path),))
    text = path_text(path, side)
    if Path(text).is_dir():
        found = sorted(
            item for item in Path(text).iterdir() if item.suffix.lower() in VECTOR_ENDINGS and item.is_file()
        )
        if not found:
            raise InputError(
                f"{side}: expected files with features in folder {text!r}, found none; "
                f"known endings are {', '.join(sorted(VECTOR_ENDINGS))}"
            )
        return _stems(found, side, text)
    if not Path(text).exists() and glob.has_magic(text):
        # Sorted, because the order of a listing differs between file systems.
        found = sorted(Path(item) for item in glob.glob(text, recursive=True) if Path(item).is_file())  # noqa: PTH207 the pattern may be absolute
        if not found:
            raise InputError(f"{side}: no file matches {text!r}; look at the folder, or put the pattern in quotes")
        return _stems(found, side, text)
    existing(text, side)
    return Files(single=True, items=((unit_name(text), Path(text)),))


def _stems(paths: Sequence[Path], side: str, whole: str) -> Files:
    by_stem: dict[str, Path] = {}
    for path in paths:
        existing(path, side)
        stem = unit_name(path.name)
        if stem in by_stem:
            raise InputError(
                f"{side}: {by_stem[stem].name!r} and {path.name!r} in {whole!r} have one stem, {stem!r}, "
                "and files pair by stem; keep one of them"
            )
        by_stem[stem] = path
    return Files(single=False, items=tuple(sorted(by_stem.items())))


def existing(path: str | os.PathLike[str], side: str = "") -> Path:
    """The path, refused with the nearest file name where nothing is there or the file has 0 bytes.

    Raises
    ------
    InputError
        The file is missing or empty.
    """
    where = Path(path)
    lead = f"{side}: " if side else ""
    path_text(path, side or "input")
    if where.is_symlink() and not where.exists():
        raise InputError(
            f"{lead}{str(where)!r} is a link to {str(where.readlink())!r}, which is not there; mend the link"
        )
    if not where.exists():
        folder = where.parent
        if not folder.is_dir():
            raise InputError(f"{lead}no such file: {str(where)!r}; its folder is not there either")
        names = [item.name for item in folder.iterdir() if not item.name.startswith(".")]
        close = difflib.get_close_matches(where.name, names, n=1, cutoff=0.6)
        hint = f"did you mean {close[0]!r}?" if close else "no file of its folder has a similar name; check the path"
        raise InputError(f"{lead}no such file: {str(where)!r}; {hint}")
    if where.is_file() and where.stat().st_size == 0:
        raise InputError(
            f"{lead}{str(where)!r} has 0 bytes; write the file again (no features is a file with an empty layer)"
        )
    return where


def companions(path: Path) -> tuple[str, ...]:
    """All files behind one path: a shapefile is several."""
    if path.suffix.lower() != ".shp":
        return (str(path),)
    beside = [path.with_suffix(ending) for ending in _COMPANIONS] + [path.with_suffix(e.upper()) for e in _COMPANIONS]
    return (str(path), *(str(item) for item in beside if item.exists()))


@dataclass(frozen=True, slots=True)
class FilePair:
    """One unit of files: its name and the file of each side, None where that side has none."""

    unit: str
    reference: Any
    prediction: Any


def pair_files(reference: Files, prediction: Files, on_unknown: str) -> tuple[list[FilePair], list[Finding]]:
    """Bring the files of both sides together by stem; two single files always belong together.

    Parameters
    ----------
    reference, prediction
        Files of either side.
    on_unknown
        ``"refuse"`` or ``"drop"``: what to do with prediction files whose stem no reference has.

    Raises
    ------
    InputError
        Prediction files have no reference, and that was not allowed.

    Examples
    --------
    >>> pairs, _ = pair_files(Files(True, (("a", "a.csv"),)), Files(True, (("b", "b.csv"),)), "refuse")
    >>> pairs[0].unit
    'a'
    """
    if reference.single and prediction.single:
        return [FilePair(reference.items[0][0], reference.items[0][1], prediction.items[0][1])], []
    left, right = dict(reference.items), dict(prediction.items)
    unknown = sorted(set(right) - set(left))
    missing = sorted(set(left) - set(right))
    findings = []
    if unknown and on_unknown == "refuse":
        raise InputError(
            f"prediction: {len(unknown)} of {len(right)} files have no reference of the same stem: {listed(unknown)} "
            f"(references are {listed(sorted(left), 5)}); rename them, or set on_unknown_unit = 'drop'"
        )
    if unknown:
        findings.append(
            Finding(
                "unknown-unit",
                "major",
                tuple(unknown[:10]),
                f"{len(unknown)} prediction files without a reference of the same stem were dropped",
                "rename them, or add their references",
            )
        )
    if missing:
        findings.append(
            Finding(
                "prediction-missing",
                "major",
                tuple(missing[:10]),
                f"{len(missing)} of {len(left)} reference files have no prediction file; counted as empty predictions",
                "add the files, or take these references out",
            )
        )
    if not left:
        raise ConfigError("reference: no files")
    return [FilePair(stem, left[stem], right.get(stem)) for stem in sorted(left)], findings
