"""Change events from two dated layers a side: each side is matched with itself, and what differs becomes an event."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from geoeval.errors import ConfigError, InputError
from geoeval.layers import Objects
from geoeval.model import Finding
from geoeval.objects.events import events_from_layers
from geoeval.options import Columns, Pairing, Source
from geoeval.readers.unitset import UnitSet

if TYPE_CHECKING:
    import geopandas as gpd


def dated_units(reference: Source, prediction: Source, pairing: Pairing, *, iou: float = 0.5) -> UnitSet[Any]:
    """Units of change events that are derived from a layer of each date, on both sides.

    Parameters
    ----------
    reference, prediction
        ``path`` is the later layer, ``before`` the earlier one.
    pairing
        As for any objects; clusters and strata are read off the layers.
    iou
        Least overlap of an object with itself at the other date.

    Raises
    ------
    ConfigError
        Where one side has two layers and the other has not.
    InputError
        Where the layers of a side fall into several units.
    """
    from geoeval.readers.units import object_units

    for name, side in (("reference", reference), ("prediction", prediction)):
        if side.before is None:
            raise ConfigError(f"{name}: expected two dated layers, found one; give --{name}-before, too.")
    derived: list[Source] = []
    inputs: list[str] = []
    findings: list[Finding] = []
    told: dict[str, str] = {}
    for name, side in (("reference", reference), ("prediction", prediction)):
        layers, events, crs = _events(name, side, pairing, iou)
        inputs += layers.inputs
        findings += layers.findings
        told[f"{name} events"] = ", ".join(f"{sum(events['kind'] == kind)} {kind}" for kind in ("added", "removed"))
        columns = Columns(id="id", kind="kind", label="", score="", date="")
        derived.append(Source(events, crs="pixel" if crs is None else None, columns=columns))
    found = object_units(derived[0], derived[1], pairing, family="change")
    return replace(
        found,
        inputs=tuple(dict.fromkeys(inputs)),
        findings=(*findings, *found.findings),
        notes={**told, **found.notes},
    )


def _events(name: str, side: Source, pairing: Pairing, iou: float) -> tuple[UnitSet[Any], gpd.GeoDataFrame, Any]:
    from geoeval.readers.units import object_units

    later, earlier = replace(side, before=None), replace(side, path=side.before, before=None)
    plain = replace(pairing, aoi=None, attributes=())
    layers = object_units(earlier, later, plain, family="footprint")
    if len(layers.units) != 1:
        raise InputError(f"{name}: expected one layer a date, found {len(layers.units)} units; give single files.")
    pair = layers.units[0].load()
    return layers, _frame(events_from_layers(pair.reference, pair.prediction, iou=iou), pairing, layers.crs), layers.crs


def _frame(events: Objects, pairing: Pairing, crs: Any) -> gpd.GeoDataFrame:
    """The events as a table that any reader takes, with the strata and the cluster column of the layers."""
    import geopandas as gpd

    kinds = events.fields["kind"] if len(events) else np.empty(0, dtype=object)
    columns = {"id": events.id, "kind": kinds, **events.strata}
    if (
        pairing.cluster not in ("auto", "none")
        and not pairing.cluster.startswith("grid:")
        and events.cluster is not None
    ):
        columns[pairing.cluster] = events.cluster
    return gpd.GeoDataFrame(columns, geometry=gpd.GeoSeries(list(events.geometry), crs=crs), crs=crs)
