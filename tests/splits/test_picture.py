"""The map of a split: the same bytes every time, with roles, buffers and pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from geoeval.errors import InputError
from geoeval.splits.list_check import Demands, check_list
from geoeval.splits.list_summary import summary
from geoeval.splits.lists import SplitList
from geoeval.splits.picture import picture_kind, split_picture
from geoeval.splits.table import SampleTable


def leaking(crs="EPSG:32631", **more):
    bounds = [[500000, 0, 500010, 10], [500005, 5, 500015, 15], [590000, 0, 590010, 10]]
    if crs == "EPSG:4326":
        bounds = [[5, 50, 5.01, 50.01], [5.005, 50, 5.015, 50.01], [6, 50, 6.01, 50.01]]
    table = SampleTable.of(
        3, sample_id=["a", "b", "c"], split=["train", "test", "fold-7"], bounds=bounds, crs=crs, strata=more
    )
    return check_list(SplitList(table, identities=("sample_id",)), Demands(min_area_m2=1))


@pytest.mark.parametrize("kind", ["svg", "png"])
@pytest.mark.parametrize("crs", ["EPSG:32631", "EPSG:4326"])
def test_the_same_split_gives_the_same_picture(kind, crs):
    assert split_picture(leaking(crs), kind) == split_picture(leaking(crs), kind)


def test_an_svg_carries_no_date():
    assert b"<dc:date>" not in split_picture(leaking())


def test_a_buffer_is_drawn_where_one_is_demanded():
    assert split_picture(leaking(), buffer_m=None) != split_picture(leaking(), buffer_m=2000.0)


@pytest.mark.parametrize("crs", ["EPSG:32631", "EPSG:4326"])
def test_the_frame_holds_the_buffer(crs, monkeypatch):
    """2 km around boxes of 10 m: the frame reaches that far to the south, in metres or in degrees."""
    from matplotlib.axes import Axes

    frames = []
    own = Axes.set_ylim
    monkeypatch.setattr(Axes, "set_ylim", lambda self, *limits: (frames.append(limits), own(self, *limits))[1])
    split_picture(leaking(crs), "png", buffer_m=2000.0)
    split_picture(leaking(crs), "png", buffer_m=None)
    (south, north), (plain_south, plain_north) = frames
    reach = 2000.0 if crs == "EPSG:32631" else 2000.0 / 111_195.0
    assert south <= min(plain_south, (0 if reach > 1 else 50) - reach)
    assert north >= max(plain_north, (15 if reach > 1 else 50.01) + reach * 0.999)


def test_cells_of_a_grid_index_are_drawn_as_cells():
    table = SampleTable.of(2, sample_id=["a", "b"], split=["train", "val"])
    given = SplitList(table, grid=np.array([[0, 1, 1], [0, 2, 2]]))
    assert split_picture(check_list(given, Demands(buffer_m=None)), "png").startswith(b"\x89PNG")


def test_a_list_without_places_has_no_map():
    table = SampleTable.of(2, sample_id=["a", "b"], split=["train", "val"])
    with pytest.raises(InputError, match="no map to draw"):
        split_picture(check_list(SplitList(table)))


def test_another_ending_is_refused():
    with pytest.raises(InputError, match=r"\.svg or \.png"):
        picture_kind(Path("map.pdf"))


def test_ground_is_counted_once_and_area_every_time():
    """Two equal boxes of 100 m² and one beside them."""
    bounds = [[500000, 0, 500010, 10], [500000, 0, 500010, 10], [500020, 0, 500030, 10]]
    table = SampleTable.of(
        3,
        sample_id=["a", "b", "c"],
        split=["train"] * 3,
        bounds=bounds,
        crs="EPSG:32631",
        strata={"kind": ["x", "y", None]},
    )
    found = summary(SplitList(table), ["kind"])[0]
    assert (found.area_km2, found.ground_km2) == (0.0003, 0.0002)
    assert found.strata == {"kind": {"unknown": 1, "x": 1, "y": 1}}
