"""Raw predictions as tables: the same rows as in JSON, in the same bytes whatever their order."""

from __future__ import annotations

import io
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import shapely

from geoeval.errors import BundleError
from geoeval.evidence.raw import raw_case
from geoeval.evidence.tables import COLUMNS, case_tables, logical_rows, read_case, table_case, table_problems
from geoeval.model import Records

FACTS = {"configuration": {"iou": 0.5}, "lineage": {"signature": "s"}}


def records():
    """A hit with a shape on either side, a miss, an invention, an ignored and a filtered prediction."""
    shapes = [shapely.Point(0.1, 1 / 3), None, shapely.Point(2, 2), shapely.Point(3, 3), shapely.Point(4, 4)]
    ours = np.array([shapely.Point(0, 0), shapely.Point(1, 1), None, None, None], dtype=object)
    theirs = np.empty(5, dtype=object)
    theirs[:] = shapes
    return Records.of(
        5,
        unit="a",
        outcome=["tp", "fn", "fp", "ignored", "filtered"],
        reference_id=["r1", "r2", "", "", ""],
        prediction_id=["p1", "", "p3", "p4", "p5"],
        reference_label=["house", "hütte", "", "", ""],
        similarity=[0.9, np.nan, np.nan, np.nan, np.nan],
        score=[0.5, np.nan, 0.25, 0.125, 0.01],
        cluster="c",
        strata=[(("season", "spring"), ("region", "north"))] * 5,
        reference_geometry=ours,
        prediction_geometry=theirs,
    )


def split(table):
    filtered = table.columns["outcome"] == "filtered"
    return table.take(~filtered), table.take(filtered)


def test_tables_hold_what_json_holds():
    kept, filtered = split(records())
    as_json = read_case(raw_case("h", "footprint", kept, filtered=filtered, **FACTS), {}.__getitem__)
    entry, files = table_case("h", "footprint", case_tables(records()), crs="EPSG:32633", **FACTS)
    as_tables = read_case(entry, files.__getitem__)
    for name in COLUMNS:
        ours, theirs = getattr(as_json, name), getattr(as_tables, name)
        if name == "predictions":
            kept_rows = ~theirs["filtered"]
            assert int((~kept_rows).sum()) == 1
            theirs = {key: values[kept_rows] for key, values in theirs.items()}
        assert sorted(logical_rows(name, ours)) == sorted(logical_rows(name, theirs))


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_changes_no_byte(seed):
    shuffled = records().take(np.random.default_rng(seed).permutation(5))
    assert table_case("h", "footprint", case_tables(records()), **FACTS) == table_case(
        "h", "footprint", case_tables(shuffled), **FACTS
    )


def test_an_entry_names_path_rows_and_digest():
    entry, files = table_case("h", "footprint", case_tables(records()), **FACTS)
    assert {name: (part["path"], part["rows"]) for name, part in entry["tables"].items()} == {
        "references": ("raw/h-references.parquet", 2),
        "predictions": ("raw/h-predictions.parquet", 4),
        "matches": ("raw/h-matches.parquet", 1),
    }
    assert sorted(files) == sorted(part["path"] for part in entry["tables"].values())
    assert "references" not in entry


def test_a_geoparquet_says_its_system_and_its_types():
    _, files = table_case("h", "footprint", case_tables(records()), crs="EPSG:32633", **FACTS)
    meta = json.loads(pq.read_schema(io.BytesIO(files["raw/h-references.parquet"])).metadata[b"geo"])
    column = meta["columns"]["geometry"]
    assert (meta["version"], column["geometry_types"], column["crs"]["id"]["code"]) == ("1.1.0", ["Point"], 32633)
    _, files = table_case("h", "footprint", case_tables(records()), **FACTS)
    meta = json.loads(pq.read_schema(io.BytesIO(files["raw/h-references.parquet"])).metadata[b"geo"])
    assert meta["columns"]["geometry"]["crs"] is None


def test_a_gis_library_reads_it(tmp_path):
    import geopandas as gpd

    _, files = table_case("h", "footprint", case_tables(records()), crs="EPSG:32633", **FACTS)
    path = tmp_path / "references.parquet"
    path.write_bytes(files["raw/h-references.parquet"])
    frame = gpd.read_parquet(path)
    assert frame.crs.to_epsg() == 32633
    assert frame.set_index("id").geometry["r2"] == shapely.Point(1, 1)


def test_rows_that_are_not_the_promised_ones_are_found():
    entry, files = table_case("h", "footprint", case_tables(records()), **FACTS)
    assert table_problems(entry, files.__getitem__) == []
    _, other = table_case("h", "footprint", case_tables(records().take(np.arange(4))), **FACTS)
    assert table_problems(entry, other.__getitem__) == [
        "raw/h-predictions.parquet: its rows are not those that baseline-raw-predictions.json names"
    ]


def test_no_rows_make_empty_tables():
    entry, files = table_case("h", "footprint", case_tables(Records()), **FACTS)
    found = read_case(entry, files.__getitem__)
    assert (len(found.references["id"]), len(found.matches["unit"]), found.has_geometry) == (0, 0, False)


def test_a_prediction_that_was_filtered_gives_no_shape_to_judge():
    assert case_tables(records()).has_geometry
    assert not case_tables(records().take(np.array([4]))).has_geometry


def test_what_cannot_be_read_is_said():
    with pytest.raises(BundleError, match="raw predictions of 'h' cannot be read"):
        read_case({"case": "h"}, {}.__getitem__)
    entry, _ = table_case("h", "footprint", case_tables(Records()), **FACTS)
    with pytest.raises(BundleError, match="references: the table cannot be read"):
        read_case(entry, lambda _: b"not parquet")
