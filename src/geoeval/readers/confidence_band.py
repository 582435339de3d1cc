"""The band of a class map that holds how sure it is: declared as ``score = "band:2"``, never guessed.

Nodata        what the file says of that band. A nodata that is declared is one of class codes, and does not count here.
Scale         the file's scale and offset are applied, so that bytes may stand for [0, 1].
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from geoeval.errors import ConfigError
from geoeval.options import Source
from geoeval.readers.raster_header import Header, read_header
from geoeval.readers.raster_layers import Layer

_BAND = re.compile(r"band:([1-9][0-9]*)")


def confidence_band(source: Source) -> int | None:
    """Number of the declared band of confidences, None where none is declared.

    Raises
    ------
    ConfigError
        What is declared is no band, or the band of the classes.

    Examples
    --------
    >>> from geoeval.options import Columns
    >>> confidence_band(Source("map.tif", columns=Columns(score="band:2"))), confidence_band(Source("map.tif"))
    (2, None)
    """
    declared = source.columns.score
    if not declared:
        return None
    found = _BAND.fullmatch(declared)
    if found is None:
        raise ConfigError(f"score = {declared!r}: a raster has bands, not columns; write such as score = 'band:2'.")
    band = int(found[1])
    if band == source.band:
        raise ConfigError(f"score = {declared!r}: that is the band of the classes; name the band of confidences.")
    return band


def confidence_header(source: Source, item: Any) -> Header | None:
    """What the band of confidences of a prediction says about itself, None where none is declared."""
    band = confidence_band(source)
    return None if band is None else read_header(replace(source, band=band, nodata=None), item, "prediction")


def confidence_layer(source: Source, item: Any, classes: Layer) -> Layer | None:
    """The band of confidences, brought to the reference grid cell by cell as its classes are.

    Raises
    ------
    ConfigError
        The classes are majorities of several cells, which have no one confidence.
    """
    header = confidence_header(source, item)
    if header is None:
        return None
    if classes.mode != "window" and classes.resampling == "mode":
        raise ConfigError("align = 'mode': a majority of cells has no confidence of its own; use 'nearest'.")
    return replace(classes, header=header, categorical=False, recode={})
