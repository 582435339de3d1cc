"""What an evaluator may see: ids of one exact manifest, and no file of a challenge case."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from geoeval.errors import CRSMissing, GeoevalError, InputError, LeakageError
from geoeval.evidence.canonical import file_digest
from geoeval.model import ObjectArray
from geoeval.splits.assets import is_image
from geoeval.splits.manifest import Manifest, checked_manifest
from geoeval.splits.record import ASSETS, EVALUATED
from geoeval.splits.seals import is_sealed, sealed_value

#: Hashes of bytes that an entry may hold.
_BYTES = tuple(f"{name}_sha256" for name in ASSETS)


@dataclass(frozen=True, slots=True)
class EvaluationBinding:
    """An evaluator's permission: one protected manifest, and the ids it may see.

    Parameters
    ----------
    manifest_sha256
        The manifest that the evaluation is bound to.
    allowed
        Id to split, for ``test`` and ``background-test``.
    sealed
        Ids of challenge samples, which nobody evaluates here.
    """

    manifest_sha256: str
    allowed: Mapping[str, str]
    sealed: frozenset[str]

    def require(self, ids: Iterable[str]) -> tuple[str, ...]:
        """The same ids, sorted, once each may be evaluated.

        Raises
        ------
        LeakageError
            For an id of challenge, or one that is in no split of this manifest.
        """
        wanted = sorted(set(ids))
        opened = [one for one in wanted if one in self.sealed]
        if opened:
            raise LeakageError(
                f"challenge is sealed: {len(opened)} of its cases were asked for, first {opened[0]!r}; "
                f"an evaluator sees {' and '.join(EVALUATED)} only"
            )
        strangers = [one for one in wanted if one not in self.allowed]
        if strangers:
            raise LeakageError(
                f"{len(strangers)} ids are not in the protected manifest {self.manifest_sha256[:16]}, first "
                f"{strangers[0]!r}; evaluate its {' and '.join(EVALUATED)} cases only"
            )
        return tuple(wanted)


def bind_evaluation(manifest: Manifest, sha256: str, *, open_fixture: bool = False) -> EvaluationBinding:
    """Bind an evaluation to the exact protected manifest.

    Raises
    ------
    InputError
        The manifest is not the one with this hash, or not the protected one.
    """
    found = checked_manifest(manifest, "protected manifest", sha256=sha256, open_fixture=open_fixture)
    if found.content["set"] != "protected":
        raise InputError(f"expected the protected manifest, got the one of set {found.content['set']!r}")
    by_id = {str(entry["sample_id"]): str(entry["split"]) for entry in found.samples}
    return EvaluationBinding(
        found.sha256,
        {name: split for name, split in by_id.items() if split in EVALUATED},
        frozenset(name for name, split in by_id.items() if split not in EVALUATED),
    )


def assert_evaluation_assets(
    binding: EvaluationBinding,
    manifest: Manifest,
    paths: Iterable[Path],
    root: Path,
    *,
    key: bytes | None = None,
) -> None:
    """Refuse files of challenge cases, whatever an evaluator was given: another name, a copy, or another format.

    Parameters
    ----------
    paths
        What an evaluator is about to read.
    root
        Folder of the challenge files, as far as they are at hand.
    key
        Opens the seal of challenge hashes, so that files are recognised that are not at hand.

    Raises
    ------
    LeakageError
        Naming the case.
    InputError
        The key does not open this manifest.
    """
    closed = challenge_files(binding, manifest, root, key=key)
    for path in paths:
        closed.refuse(path)


@dataclass(frozen=True, slots=True)
class ClosedFiles:
    """Files of challenge cases by place, bytes and shapes or mask values, each with the id of its case.

    Parameters
    ----------
    places
        Resolved paths, and where files are stored.
    digests, shapes
        SHA-256 of files that are at hand, and the label-geometry hashes of their labels.
    sealed
        Field and sealed value, as the manifest has them.
    key
        What turns a hash into its sealed value; None compares nothing with ``sealed``.
    unseen
        How many sealed hashes belong to files that are not at hand.
    """

    places: Mapping[Any, str]
    digests: Mapping[str, str]
    shapes: Mapping[str, str]
    sealed: Mapping[tuple[str, str], str]
    key: bytes | None
    unseen: int

    @property
    def claim_limits(self) -> tuple[str, ...]:
        """What cannot be recognised."""
        if self.unseen and self.key is None:
            return ("challenge hashes stay sealed: byte copies of challenge files cannot be recognised",)
        return ()

    def refuse(self, path: Path) -> None:
        """Refuse one file that belongs to a challenge case; a file that is not there says nothing.

        Raises
        ------
        LeakageError
            Naming the case, and by what the file was recognised.
        """
        if not path.exists():
            return
        hit = next((self.places[one] for one in file_identities(path) if one in self.places), None)
        if hit is not None:
            raise LeakageError(f"{path.name!r} is a file of the challenge case {hit!r}; challenge is sealed")
        for how, case in self._recognised(path):
            raise LeakageError(
                f"{path.name!r} is a file of the challenge case {case!r}, by its {how}; challenge is sealed"
            )

    def _recognised(self, path: Path) -> Iterator[tuple[str, str]]:
        from geoeval.splits.links import empty_label_hash

        keyed = bool(self.sealed) and self.key is not None
        if not path.is_file() or not (keyed or self.digests):
            return
        shapes = shape_hashes(path) if keyed or self.shapes else ()
        # Labels without a feature are alike by nature, in their bytes too.
        empty = shapes == (empty_label_hash(),)
        fields = [name for name in _BYTES if not (empty and name == "label_sha256")]
        yield from self._hits("bytes", file_digest(path), fields, self.digests)
        if empty:
            return
        for value in shapes:
            yield from self._hits("shapes", value, ("label_geometry_hash",), self.shapes)

    def _hits(self, how: str, value: str, fields: Iterable[str], seen: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        if value in seen:
            yield how, seen[value]
        if self.key is None:
            return
        for name in fields:
            case = self.sealed.get((_domain(name), sealed_value(value, name, self.key)))
            if case is not None:
                yield how, case


def challenge_files(
    binding: EvaluationBinding, manifest: Manifest, root: Path, *, key: bytes | None = None
) -> ClosedFiles:
    """What is known of the files of challenge cases; see :func:`assert_evaluation_assets`.

    Raises
    ------
    InputError
        The key seals none of the files at hand as the manifest has them.
    """
    places: dict[Any, str] = {}
    digests: dict[str, str] = {}
    shapes: dict[str, str] = {}
    sealed: dict[tuple[str, str], str] = {}
    unseen, opened = 0, set()
    for entry in manifest.samples:
        case = str(entry["sample_id"])
        if case not in binding.sealed:
            continue
        for name in (*_BYTES, "label_geometry_hash"):
            if is_sealed(entry.get(name)):
                sealed[_domain(name), entry[name]] = case
        for asset in ASSETS:
            path, name = root / entry[asset] if asset in entry else None, f"{asset}_sha256"
            if path is None or not path.exists():
                unseen += is_sealed(entry.get(name))
                continue
            places |= dict.fromkeys(file_identities(path), case)
            if path.is_file():
                found = _shown(path, asset)
                digests |= dict.fromkeys(found[:1], case)
                shapes |= dict.fromkeys(found[1:], case)
                if key is not None and is_sealed(entry.get(name)):
                    opened.add(sealed_value(file_digest(path), name, key) == entry[name])
    if opened == {False}:
        raise InputError(
            "the key does not open the hashes of the challenge files at hand; is it the one of this manifest, and are "
            "these its files?"
        )
    return ClosedFiles(places, digests, shapes, sealed, key, unseen)


def _domain(name: str) -> str:
    """Raw and processed images are sealed alike."""
    return "image_sha256" if name.endswith("image_sha256") else name


def _shown(path: Path, asset: str) -> tuple[str, ...]:
    """SHA-256 of a challenge file, then the geometry hashes of a label; nothing of a label without a feature."""
    from geoeval.splits.links import empty_label_hash

    shapes = shape_hashes(path) if asset == "label" else ()
    return () if shapes == (empty_label_hash(),) else (file_digest(path), *shapes)


def shape_hashes(path: Path) -> tuple[str, ...]:
    """What a label file is compared by beside its bytes: the hash of each layer's shapes, or of a mask's values.

    None where it holds no geometry that can be read, and is no image that can be decoded.

    Examples
    --------
    >>> shape_hashes(Path("a.tif"))
    ()
    """
    from geoeval.readers.sources import VECTOR_ENDINGS
    from geoeval.splits.label_files import parts_of
    from geoeval.splits.labelsets import geometry_hash

    if not path.is_file():
        return ()
    with path.open("rb") as stream:
        head = stream.read(8)
    if is_image(head):
        return _mask_hashes(path)
    if path.suffix.lower() not in VECTOR_ENDINGS:
        return ()
    shapes = (_layer_shapes(path, layer) for layer in _layers(path))
    return tuple(dict.fromkeys(geometry_hash(parts_of(_finite(one))) for one in shapes if one is not None))


def _mask_hashes(path: Path) -> tuple[str, ...]:
    from geoeval.splits.label_files import read_label

    try:
        found = read_label(path, "label").geometry_hash
    except InputError:
        return ()
    return () if found is None else (found,)


def _finite(shapes: ObjectArray) -> ObjectArray:
    """Shapes whose coordinates are numbers; the reader of the case judges the others."""
    import shapely

    at, owner = shapely.get_coordinates(shapes, return_index=True)
    return np.delete(shapes, np.unique(owner[~np.isfinite(at).all(axis=1)]))


def _layer_shapes(path: Path, layer: str | None) -> ObjectArray | None:
    """Geometries of one layer; None where there are none, or none that can be read."""
    from geoeval.options import Source
    from geoeval.readers.vector import read_table

    for crs in (None, "pixel"):
        try:
            return read_table(Source(str(path), layer=layer, crs=crs)).geometry
        except CRSMissing:
            continue
        except GeoevalError:
            return None
    return None


def _layers(path: Path) -> list[str | None]:
    """Layers of a file that can hold several; None stands for the only one."""
    if path.suffix.lower() not in (".gpkg", ".kml", ".gml"):
        return [None]
    import pyogrio

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [str(row[0]) for row in pyogrio.list_layers(path)]
    except (RuntimeError, ValueError, OSError):
        return [None]


def file_identities(path: Path) -> tuple[Any, ...]:
    """A file by its resolved path, and by where it is stored."""
    facts = path.stat()
    stored = ((facts.st_dev, facts.st_ino),) if facts.st_ino else ()
    return (os.path.realpath(path), *stored)
