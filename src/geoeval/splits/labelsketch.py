"""Sketches: a label set as a short text, so that nearly equal sets are found where label files cannot be seen.

What it holds  the axis-aligned boxes of the 256 features with the largest ones, in the square image of 1024 cells
               (steps of 1/16 cell) and in longitude and latitude (steps of 1e-7 degrees), and how many features there
               were. Points and lines are widened first, as for every comparison. A frame in which the set has fewer
               than 3 features stays empty.
Which 256      largest by half octaves of area, then nearest to the middle of the set: the same ones in a shifted,
               turned or mirrored copy, and in any order of features.
Text           base64 of: 1 byte, the number of the form; 2 x 4 bytes, how many features the image and the world had;
               the boxes in the image as 2-byte, then those in the world as 4-byte signed numbers, each least x,
               least y, most x, most y, sorted; all little-endian. At most 8,204 characters.
Comparing      :func:`geoeval.splits.labelsets.duplicates_across` and ``duplicate_groups`` take opened sketches among
               full sets. A pair with a sketch is compared by boxes, so that a full set gives what its own sketch
               would give; a pair of two full sets is compared by its shapes.
Limits         boxes say less than shapes: slanted neighbours whose boxes overlap may pass as alike or be missed. Of
               sets with more than 256 features, the smaller features are not compared.
Privacy        a sketch shows where the labels are. Where that must not be seen, it does not belong in a manifest.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import shapely

from geoeval.errors import InputError
from geoeval.model import FloatArray, ObjectArray
from geoeval.splits.labelset_frames import IMAGE, MOST_BOXES, from_steps, in_degrees, in_image, steps_of
from geoeval.splits.labelsets import LEAST_FEATURES, LabelSet

_FORM = 1
_HEAD = struct.Struct("<BII")
_SIDES = ("<i2", "<i4")
_TURN = 180.0


def sketch(labels: LabelSet) -> str | None:
    """The boxes of a label set as a short text; None where it has fewer than 3 features.

    Parameters
    ----------
    labels
        A label set, in the world, in its image, or both. What was opened from a sketch gives that sketch again.

    Returns
    -------
    str or None
        Base64, the same whatever the order of features.

    Examples
    --------
    >>> boxes = shapely.box([0, 10, 20], 0, [4, 14, 24], 4)
    >>> text = sketch(LabelSet(pixels=boxes, size=(32, 32)))
    >>> text == sketch(LabelSet(pixels=boxes[::-1], size=(32, 32))), text[:20]
    (True, 'AQMAAAAAAAAAAAAAAAAI')
    >>> sketch(LabelSet(pixels=boxes[:2])) is None
    True
    """
    return sketches([labels])[0]


def sketches(sets: Sequence[LabelSet]) -> list[str | None]:
    """The sketches of many label sets: the same as one by one, and many times as fast.

    Examples
    --------
    >>> boxes = shapely.box([0, 10, 20], 0, [4, 14, 24], 4)
    >>> sets = [LabelSet(boxes), LabelSet(boxes[:2]), LabelSet(pixels=boxes)]
    >>> sketches(sets) == [sketch(one) for one in sets]
    True
    """
    out: list[str | None] = []
    frames = steps_of(in_image(sets), world=False), steps_of(in_degrees(sets), world=True)
    for labels, *parts in zip(sets, *frames, strict=True):
        counts = [n for n, _ in parts]
        if not any(counts):
            out.append(None)
            continue
        if labels.boxes and labels.drawn is not None:
            counts = list(labels.drawn[::-1])
        sides = [mine.astype(kind).tobytes() for (_, mine), kind in zip(parts, _SIDES, strict=True)]
        out.append(base64.b64encode(_HEAD.pack(_FORM, *counts) + b"".join(sides)).decode("ascii"))
    return out


def opened(text: str) -> LabelSet:
    """The label set of a sketch: boxes in place of shapes, and marked so.

    Raises
    ------
    InputError
        Where the text is no sketch.

    Examples
    --------
    >>> boxes = shapely.box([0, 10, 20], 0, [4, 14, 24], 4)
    >>> again = opened(sketch(LabelSet(pixels=boxes, size=(32, 32))))
    >>> again.boxes, again.drawn, len(again.pixels), again.pixels[0].bounds
    (True, (0, 3), 3, (0.0, 0.0, 128.0, 128.0))
    >>> opened("AQID")
    Traceback (most recent call last):
    ...
    geoeval.errors.InputError: label sketch 'AQID': 3 bytes are too few; it is cut off or something else
    """
    where = f"label sketch {str(text)[:24]!r}"
    data = _decoded(text, where)
    if len(data) < _HEAD.size:
        raise InputError(f"{where}: {len(data)} bytes are too few; it is cut off or something else")
    form, *counts = _HEAD.unpack_from(data)
    if form != _FORM:
        raise InputError(f"{where}: expected form {_FORM}, found {form}; make the sketch again with this version")
    image, world = counts
    kept = [min(n, MOST_BOXES) for n in counts]
    expected = _HEAD.size + 8 * kept[0] + 16 * kept[1]
    if len(data) != expected:
        raise InputError(
            f"{where}: {image} features in the image and {world} in the world take {expected} bytes, found "
            f"{len(data)}; it is cut off or was changed"
        )
    if not any(counts) or any(0 < n < LEAST_FEATURES for n in counts):
        raise InputError(f"{where}: a frame holds {LEAST_FEATURES} features or more, or none; found {counts}")
    in_pixels = np.frombuffer(data, _SIDES[0], 4 * kept[0], _HEAD.size).reshape(-1, 4)
    on_earth = np.frombuffer(data, _SIDES[1], 4 * kept[1], _HEAD.size + 8 * kept[0]).reshape(-1, 4)
    sides = (from_steps(in_pixels.astype(np.int64), world=False), from_steps(on_earth.astype(np.int64), world=True))
    for box, frame in zip(sides, ("image", "world"), strict=True):
        _check(box, frame, where)
    return LabelSet(
        world=_boxes(sides[1]),
        crs="OGC:CRS84",
        pixels=_boxes(sides[0]),
        size=(int(IMAGE), int(IMAGE)) if image else None,
        boxes=True,
        drawn=(world, image),
    )


def _boxes(box: FloatArray) -> ObjectArray | None:
    return np.asarray(shapely.box(*box.T), dtype=np.object_) if len(box) else None


def _decoded(text: Any, where: str) -> bytes:
    if not isinstance(text, str):
        raise InputError(f"{where}: expected a text of base64, got {type(text).__name__}")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InputError(f"{where}: expected base64, and it is not ({error}); it is cut off or was changed") from error


def _check(box: FloatArray, frame: str, where: str) -> None:
    """Refuse boxes that a sketch cannot hold: without area, out of order, or off the Earth."""
    wrong = (box[:, 2:] <= box[:, :2]).any(axis=1)
    if frame == "world":
        middle = (box[:, 0] + box[:, 2]) / 2
        wrong |= (np.abs(middle) > _TURN) | (np.abs(box[:, [1, 3]]) > 90).any(axis=1)
    if wrong.any():
        raise InputError(
            f"{where}: {int(wrong.sum())} boxes in the {frame} are none, first {box[wrong][0].tolist()}; it was changed"
        )
    order = np.lexsort(box.T[::-1])
    if (order != np.arange(len(box))).any():
        raise InputError(f"{where}: its boxes in the {frame} are not in order; it was changed")
