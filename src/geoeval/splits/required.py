"""What every record must say: the fields that it leaves open, and one refusal that names each such record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from geoeval.errors import InputError
from geoeval.splits.label_files import READ
from geoeval.splits.links import empty_label_hash
from geoeval.splits.record import ASSETS, MEMBERS, Sample, missing_fields

SHOWN = 10

#: How to go on, for whoever is refused.
GO_ON = (
    "fill them in (a value such as 'unknown' does not count; hashes come of themselves where a record names its files: "
    "raw_image, processed_image, label), or declare them optional with --optional FIELD (in code: "
    "SplitSettings(required=...)); production mode demands them all"
)

#: How ``label_geometry_hash`` comes about.
_LABELS = (
    f"label_geometry_hash comes of itself of a label that is read here ({READ}); convert labels of other formats, or "
    "declare it optional: then they are compared by their bytes alone"
)

_IMAGES = ("raw_image", "processed_image")

#: Fields that the files of a sample can still fill, or show that there is nothing to fill in.
_FILLED_BY: Mapping[str, tuple[str, ...]] = {
    **{f"{name}_sha256": (name,) for name in ASSETS},
    **dict.fromkeys(("perceptual_hash", "perceptual_recipe", "bbox", "crs"), _IMAGES),
    **dict.fromkeys(("label_geometry_hash", *MEMBERS), ("label",)),
}


def silent_fields(sample: Sample, required: Iterable[str], *, flat: bool = False) -> list[str]:
    """Required fields in which a sample says nothing although it could.

    Parameters
    ----------
    flat
        True for an image that is too flat for a perceptual hash, which spares it.

    Notes
    -----
    Spared are the features of a label that holds none. The values of a mask fill in ``label_geometry_hash``; a label of
    a format that is not read leaves it open. Bounds in pixels are no place on Earth, so they do not count as a box.

    Examples
    --------
    >>> sample = Sample(sample_id="a", task="t", group_id="unknown", label="labels/a.npy")
    >>> silent_fields(sample, ["task", "group_id", "label_geometry_hash"])
    ['group_id', 'label_geometry_hash']
    """
    spared = {"perceptual_hash"} if flat else set()
    if sample.label_geometry_hash == empty_label_hash():
        spared |= set(MEMBERS)
    asked = list(required)
    missing = set(missing_fields(sample, asked)) - spared
    if str(sample.crs).strip().lower() == "pixel":
        missing.add("bbox")
    return [name for name in asked if name in missing]


def hopeless_fields(sample: Sample, required: Iterable[str]) -> list[str]:
    """The silent fields that no file of the sample can fill, known before any file is opened.

    Examples
    --------
    >>> sample = Sample(sample_id="a", task="t", raw_image="raw/a.tif")
    >>> hopeless_fields(sample, ["group_id", "raw_image_sha256", "label_sha256", "record_sha256"])
    ['group_id', 'label_sha256']
    """
    return [
        name
        for name in silent_fields(sample, required)
        if name != "record_sha256" and not any(getattr(sample, asset) for asset in _FILLED_BY.get(name, ()))
    ]


def later_fields(samples: Iterable[Sample], required: Iterable[str]) -> list[str]:
    """Required fields that some sample leaves open, and that only an empty label would spare it.

    Examples
    --------
    >>> later_fields([Sample(sample_id="a", task="t", label="a.geojson")], ["task", "object_ids"])
    ['object_ids']
    """
    asked = [name for name in required if name in MEMBERS]
    open_fields = {name for one in samples for name in silent_fields(one, asked)}
    return [name for name in asked if name in open_fields]


def refuse_silent(found: Iterable[tuple[str, Sequence[str]]], name: str, later: Sequence[str] = ()) -> None:
    """Refuse records that leave required fields open, all at once.

    Parameters
    ----------
    found
        Sample id and its open fields; none where a record says everything.
    name
        The source, for the message.
    later
        Fields that will be asked for once the labels were read.

    Raises
    ------
    InputError
        Naming the first records by id with their fields, how many there are, and how to go on.

    Examples
    --------
    >>> try:
    ...     refuse_silent([("b", ["bbox"]), ("a", ["task", "bbox"]), ("c", [])], "source.jsonl")
    ... except InputError as error:
    ...     print(str(error).rpartition(chr(10))[0])
    source.jsonl: 2 records say nothing in required fields
      record 'a': required and unknown: task, bbox
      record 'b': required and unknown: bbox
    """
    silent = sorted((record, list(fields)) for record, fields in found if fields)
    if not silent:
        return
    lines = [f"  record {record!r}: required and unknown: {', '.join(fields)}" for record, fields in silent[:SHOWN]]
    if len(silent) > SHOWN:
        lines.append(f"  … and {len(silent) - SHOWN} more records")
    if any("label_geometry_hash" in fields for _, fields in silent):
        lines.append(f"  {_LABELS}")
    if later:
        lines.append(f"  and wherever a label holds features, by its record: {', '.join(later)}")
    head = "1 record says" if len(silent) == 1 else f"{len(silent)} records say"
    raise InputError("\n".join([f"{name}: {head} nothing in required fields", *lines, GO_ON]))
