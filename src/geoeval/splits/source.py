"""The source of a split: JSON Lines or GeoParquet, one record a sample, hashes recomputed wherever bytes are there."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from geoeval.errors import GeoevalError, InputError
from geoeval.evidence.canonical import canonical_bytes, digest, file_digest
from geoeval.model import ObjectArray
from geoeval.splits.assets import (
    MAX_VALUES,
    Frame,
    asset_path,
    image_frame,
    recipe_id,
)
from geoeval.splits.label_files import read_label
from geoeval.splits.label_place import placed_label
from geoeval.splits.placement import placed
from geoeval.splits.record import Sample, record_hash
from geoeval.splits.required import hopeless_fields, later_fields, refuse_silent, silent_fields
from geoeval.splits.rows import OnInvalid, records
from geoeval.splits.table import Invalid, SampleTable, table_of

if TYPE_CHECKING:
    from geoeval.splits.phash import ImageCodes

_SHOWN = 5


@dataclass(frozen=True, slots=True, eq=False)
class SplitSource:
    """A source that was read whole.

    Parameters
    ----------
    table
        Its samples with their hashes.
    sha256
        Hash of all records and their declared splits, whatever the order of the file.
    root
        Folder of the assets.
    """

    table: SampleTable
    sha256: str
    root: Path


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """A sample whose hashes were recomputed from the bytes at hand.

    ``codes`` holds the perceptual hashes of all its looks, None where no image was read or all are flat.
    """

    sample: Sample
    codes: ImageCodes | None = None
    flat: bool = False
    labels: Any = None


def read_source(
    path: Path,
    *,
    root: Path | None = None,
    workers: int = 1,
    required: Sequence[str] = (),
    on_invalid: OnInvalid = "refuse",
    max_values: int = MAX_VALUES,
) -> SplitSource:
    """Read a source, recompute its hashes, and refuse what does not hold.

    Parameters
    ----------
    path
        ``.jsonl`` (or ``.ndjson``), or ``.parquet`` (a GeoParquet's geometry gives the bounds).
    root
        Folder that asset paths start from; None means the folder of ``path``.
    workers
        Threads that hash and decode. The result does not depend on it.
    required
        Fields that every record must say something in.
    on_invalid
        ``"refuse"`` stops at a record that does not hold; ``"list"`` leaves it out and lists it, for a gate to fail.
    max_values
        Most values that an image may claim.

    Raises
    ------
    InputError
        Naming the record.
    """
    path = Path(path)
    home = path.parent if root is None else Path(root)
    invalid: list[Invalid] = []
    samples = list(records(path, on_invalid, invalid))
    return source_of(
        samples,
        root=home,
        workers=workers,
        required=required,
        on_invalid=on_invalid,
        max_values=max_values,
        invalid=invalid,
        name=path.name,
    )


def source_of(
    samples: Sequence[Sample],
    *,
    root: Path,
    workers: int = 1,
    required: Sequence[str] = (),
    on_invalid: OnInvalid = "refuse",
    max_values: int = MAX_VALUES,
    invalid: Sequence[Invalid] = (),
    name: str = "source",
) -> SplitSource:
    """A source from validated samples; see :func:`read_source`.

    Examples
    --------
    >>> one = source_of([Sample(sample_id="a", task="t"), Sample(sample_id="b", task="t")], root=Path("."))
    >>> two = source_of([Sample(sample_id="b", task="t"), Sample(sample_id="a", task="t")], root=Path("."))
    >>> one.sha256 == two.sha256
    True
    """
    listed = list(invalid)
    if not samples and not listed:
        raise InputError(f"{name}: expected at least one sample, found none")
    _check_golden(samples)
    if on_invalid == "refuse":
        _refuse_twins(samples, name)
        hopeless = [(one.sample_id, hopeless_fields(one, required)) for one in samples]
        refuse_silent(hopeless, name, later_fields(samples, required))

    def settle(sample: Sample) -> Settled | Invalid:
        try:
            done = settled(sample, root, f"{name}, record {sample.sample_id!r}", max_values)
            if on_invalid == "list":
                _require([done], required, name)
        except InputError as error:
            if on_invalid == "refuse":
                raise
            return Invalid(sample.sample_id, str(error))
        return done

    done = list(_mapped(settle, samples, workers))
    listed += [one for one in done if isinstance(one, Invalid)]
    whole = [one for one in done if isinstance(one, Settled)]
    if on_invalid == "refuse":
        _require(whole, required, name)
    table = _table(whole, listed)
    return SplitSource(table, source_hash(table), root)


def source_hash(table: SampleTable) -> str:
    """The hash of all records and the splits they declare, whatever their order."""
    n = table.n
    records = table.texts["record_sha256"].to_pylist() if n and "record_sha256" in table.texts else [None] * n
    splits = table.texts["split"].to_pylist() if "split" in table.texts else [None] * n
    return digest(
        canonical_bytes(sorted([record or "", split or ""] for record, split in zip(records, splits, strict=True)))
    )


def settled(sample: Sample, root: Path, where: str, max_values: int = MAX_VALUES) -> Settled:
    """A sample with its hashes recomputed from bytes and its box held against its images.

    Raises
    ------
    InputError
        A path that does not hold, a declared hash that is not that of the bytes, or a box that does not hold an image.
    """
    found: dict[str, Any] = {}
    frames: dict[str, Frame] = {}
    paths: dict[str, Path] = {}
    for name in ("raw_image", "processed_image", "label", "provenance"):
        asset = getattr(sample, name)
        if asset is None:
            continue
        paths[name] = asset_path(root, asset, f"{where}: {name}")
        if name.endswith("image"):
            frames[name] = image_frame(paths[name], f"{where}: {name}", max_values)
        found[f"{name}_sha256"] = file_digest(paths[name])
    sample = placed(sample, frames, where)
    images = [name for name in ("processed_image", "raw_image") if name in paths]
    codes = _perceptual([(paths[name], f"{where}: {name}") for name in images], max_values) if images else None
    if codes is not None:
        if codes.flat or sample.perceptual_recipe not in (None, recipe_id()):
            # A hash of a flat image, or of another recipe, says nothing here: it is recomputed, never compared.
            sample = dataclasses.replace(sample, perceptual_hash=None, perceptual_recipe=None)
        if not codes.flat:
            found |= {"perceptual_hash": f"{int(codes.codes[0]):016x}", "perceptual_recipe": recipe_id()}
    labels = None
    if "label" in paths:
        frame = frames.get(images[0]) if images else None
        labels, shown = _labels(sample, paths["label"], frame, root, where, max_values)
        found |= shown
    _compare(sample, found, where)
    whole = dataclasses.replace(sample, **found)
    computed = record_hash(whole)
    if sample.record_sha256 not in (None, computed):
        raise InputError(
            f"{where}: record_sha256 expected {sample.record_sha256}, found {computed}; the record was changed after "
            "it was hashed"
        )
    whole = dataclasses.replace(whole, record_sha256=computed)
    flat = codes is not None and codes.flat
    return Settled(whole, None if flat else codes, flat, labels)


def _labels(
    sample: Sample, path: Path, frame: Frame | None, root: Path, where: str, max_values: int
) -> tuple[Any, dict[str, str]]:
    """The label set of a sample, and the hash that it is compared by; neither of a label that cannot be read."""
    label = read_label(path, f"{where}: label", root, max_values)
    value = label.geometry_hash
    if value is None and sample.label_geometry_hash is not None:
        raise InputError(
            f"{where}: label_geometry_hash is declared, but the label {sample.label!r} holds neither geometries nor a "
            "mask that it could be checked against; leave it out, the label is compared by its bytes"
        )
    labels = placed_label(label, frame, sample.bbox, sample.crs, f"{where}: label {sample.label!r}")
    return labels, {} if value is None else {"label_geometry_hash": value}


def _require(done: Iterable[Settled], required: Sequence[str], name: str) -> None:
    """Refuse samples that say nothing in a required field, unless there is nothing that they could say."""
    refuse_silent(((one.sample.sample_id, silent_fields(one.sample, required, flat=one.flat)) for one in done), name)


def _compare(sample: Sample, found: Mapping[str, Any], where: str) -> None:
    for name, value in found.items():
        declared = getattr(sample, name)
        if declared is not None and declared != value:
            raise InputError(
                f"{where}: {name} is declared as {declared}, the bytes give {value}; "
                "the file was changed or the record belongs to another file"
            )


def _perceptual(images: Sequence[tuple[Path, str]], max_values: int) -> ImageCodes:
    """All looks of the images of one sample: what the first one shows leads, and a copy of any is found."""
    from geoeval.splits.phash import image_codes, joined_codes

    found = []
    for path, where in images:
        try:
            found.append(image_codes(path, pixel_limit=max_values))
        except (GeoevalError, OSError, ValueError) as error:
            raise InputError(f"{where}: {path.name!r} cannot be decoded ({error})") from error
    return joined_codes(found)


def _check_golden(samples: Iterable[Sample]) -> None:
    """Prove the recipe on its golden vectors before any image is hashed by it."""
    if any(one.raw_image or one.processed_image for one in samples):
        from geoeval.splits import phash

        phash.check_golden()


def _refuse_twins(samples: Sequence[Sample], name: str) -> None:
    twins = sorted(key for key, times in Counter(one.sample_id for one in samples).items() if times > 1)
    if twins:
        shown = ", ".join(repr(one) for one in twins[:_SHOWN])
        raise InputError(f"{name}: sample_id must be unique; {len(twins)} occur more than once, first {shown}")


def _mapped(work: Callable[[Sample], Any], samples: Sequence[Sample], workers: int) -> Iterator[Any]:
    if workers <= 1:
        yield from map(work, samples)
        return
    import warnings

    from rasterio.errors import NotGeoreferencedWarning

    # Filters of warnings are shared by threads; one that is set around all of them outlives the ones set inside.
    with warnings.catch_warnings(), ThreadPoolExecutor(workers) as pool:
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        yield from pool.map(work, samples)


def _table(done: Sequence[Settled], invalid: Sequence[Invalid]) -> SampleTable:
    samples = [one.sample for one in done]
    return table_of(
        samples,
        **hash_columns([one.codes for one in done], [one.sample.perceptual_hash for one in done]),
        labels=_objects([one.labels for one in done]),
        flat=tuple(sorted(one.sample.sample_id for one in done if one.flat)),
        invalid=tuple(sorted(invalid, key=lambda one: (one.record, one.says))),
    )


def hash_columns(seen: Sequence[ImageCodes | None], declared: Sequence[str | None]) -> dict[str, Any]:
    """Columns of a table for the looks of its samples; a hash that is only declared has no second one.

    Examples
    --------
    >>> columns = hash_columns([None, None], ["00000000000000ff", None])
    >>> columns["perceptual"].tolist(), columns["hashed"].tolist(), columns["confirmed"].tolist()
    ([[255], [0]], [True, False], [False, False])
    """
    n = len(seen)
    looks = np.array([1 if one is None else one.looks for one in seen], dtype=np.int64)
    width = 1 if all(one is None for one in seen) else 8 * int(looks.max(initial=1))
    codes, second = np.zeros((n, width), dtype=np.uint64), np.zeros((n, width), dtype=np.uint64)
    hashed, confirmed = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
    for at, (one, said) in enumerate(zip(seen, declared, strict=True)):
        if one is not None:
            size = len(one.codes)
            codes[at, :size], second[at, :size] = one.codes, one.confirming
            hashed[at] = confirmed[at] = True
        elif said is not None:
            codes[at], hashed[at] = int(said, 16), True
    return {"perceptual": codes, "hashed": hashed, "confirming": second, "confirmed": confirmed, "looks": looks}


def _objects(values: Sequence[Any]) -> ObjectArray | None:
    if all(value is None for value in values):
        return None
    out = np.empty(len(values), dtype=np.object_)
    out[:] = values
    return out
