"""Raw predictions, gallery and ledger: nothing is lost, nothing depends on the order of rows."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from geoeval.errors import BundleError
from geoeval.evidence.canonical import canonical_bytes
from geoeval.evidence.documents import document_of
from geoeval.evidence.raw import (
    failure_gallery,
    gallery_json,
    ledger_from_json,
    ledger_json,
    raw_case,
    raw_json,
    records_digest,
)
from geoeval.ledger import Ledger, Row
from geoeval.model import Cell, Records
from geoeval.stats.tally import Bins, Rows, Tally


def records():
    """Two hits, one miss, two inventions, one of them twice the same."""
    return Records.of(
        6,
        unit="a",
        outcome=["tp", "tp", "fn", "fp", "fp", "ignored"],
        error_type=["", "", "missed", "background", "background", ""],
        reference_id=["r1", "r2", "r3", "", "", ""],
        prediction_id=["p1", "p2", "", "p4", "", "p6"],
        similarity=[0.9, 0.75, np.nan, np.nan, np.nan, np.nan],
        score=[0.5, 0.25, np.nan, 0.125, 0.125, 0.1],
        strata=[(("region", "north"),)] * 6,
        geometry=[shapely.Point(i + 0.1, 1 / 3) for i in range(6)],
    )


def case(table, **options):
    return raw_case(
        "houses", "footprint", table, configuration={"iou": 0.5}, lineage={"reference": "a.gpkg"}, **options
    )


def test_a_case_holds_references_predictions_and_matches():
    left_out = Records.of(1, unit="a", outcome="filtered", prediction_id="p9", score=[0.01])
    whole = case(records(), filtered=left_out)
    assert [row["id"] for row in whole["references"]] == ["r1", "r2", "r3"]
    assert sorted(row["id"] for row in whole["predictions_after_filter"]) == ["p1", "p2", "p4", "p6"]
    assert sorted(row["id"] for row in whole["predictions_before_filter"]) == ["p1", "p2", "p4", "p6", "p9"]
    assert [(row["reference"], row["prediction"]) for row in whole["matches"]] == [("r1", "p1"), ("r2", "p2")]
    assert whole["configuration"] == {"iou": 0.5}


def test_geometry_loses_no_bit():
    whole = case(records())
    shape = shapely.from_wkb(whole["references"][0]["geometry"])
    assert (shape.x, shape.y) == (0.1, 1 / 3)


def test_each_side_may_have_its_own_shape():
    table = Records.of(
        1,
        unit="a",
        outcome="tp",
        reference_id="r",
        prediction_id="p",
        reference_geometry=np.array([shapely.Point(0, 0)], dtype=object),
        prediction_geometry=np.array([shapely.Point(1, 1)], dtype=object),
    )
    whole = case(table)
    assert whole["references"][0]["geometry"] != whole["predictions_after_filter"][0]["geometry"]


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_changes_no_byte(seed):
    order = np.random.default_rng(seed).permutation(6)
    table, shuffled = records(), records().take(order)
    assert canonical_bytes(case(table)) == canonical_bytes(case(shuffled))
    assert records_digest(table) == records_digest(shuffled)
    gallery = [gallery_json(failure_gallery("houses", "footprint", part)) for part in (table, shuffled)]
    assert canonical_bytes(gallery[0]) == canonical_bytes(gallery[1])


def test_the_gallery_names_failures_only_and_each_once():
    found = failure_gallery("houses", "footprint", records())
    assert sorted(entry["outcome"] for entry in found) == ["fn", "fp", "fp"]
    assert len({entry["id"] for entry in found}) == 3
    assert found[0]["strata"] == {"region": "north"}
    assert all(entry["geometry"] for entry in found)


def test_the_id_of_a_failure_does_not_depend_on_other_failures():
    table = records()
    alone = failure_gallery("houses", "footprint", table.take(np.array([2])))
    assert alone[0]["id"] in {entry["id"] for entry in failure_gallery("houses", "footprint", table)}


def test_failures_that_differ_in_nothing_are_counted():
    twice = Records.of(3, unit="a", outcome="fp", error_type="background")
    assert len({entry["id"] for entry in failure_gallery("c", "detection", twice)}) == 3


def test_no_records_make_empty_documents():
    whole = raw_json([case(Records())])
    assert whole["cases"][0]["matches"] == []
    assert failure_gallery("c", "detection", Records()) == []


def test_a_ledger_comes_back_to_the_last_bit():
    tally = Tally.of(
        {"area": 2**60, "tp": 3, "low": -(2**70)},
        {"confusion": Bins.of(np.array([[1, 2], [1, 2], [3, 1]]))},
        {"ap": Rows.of([0.1 + 0.2, 1 / 3, np.pi], [1, 0, 1])},
    )
    rows = [Row("u", Cell("c1", "car", (("region", "north"),)), tally), Row("v", Cell(), Tally.of(tp=1))]
    ledger = Ledger.of(rows)
    data = document_of(canonical_bytes(ledger_json(ledger.rows), digits=None), "ledger.json")
    assert data["rows"][0]["sums"]["area"] == str(2**60)
    assert data["rows"][0]["sums"]["tp"] == 3
    again = Ledger(tuple(Row(*line) for line in ledger_from_json(data)))
    assert again == ledger


@given(
    st.dictionaries(st.text(min_size=1, max_size=3), st.integers(-(2**80), 2**80), max_size=4),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=5),
)
def test_any_ledger_comes_back(sums, values):
    tally = Tally.of(sums, rows={"x": Rows.of(values)} if values else {})
    data = document_of(canonical_bytes(ledger_json([Row("u", Cell(), tally)]), digits=None), "ledger.json")
    assert ledger_from_json(data) == (("u", Cell(), tally),)


@pytest.mark.parametrize(
    "data", [None, {}, {"schema": "geoeval/ledger/1"}, {"schema": "geoeval/ledger/1", "rows": [{}]}]
)
def test_what_is_no_ledger_is_refused(data):
    with pytest.raises(BundleError, match="ledger"):
        ledger_from_json(data)
