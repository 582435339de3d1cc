"""A folder is written whole, and a failure takes away what was made for it and nothing else."""

from __future__ import annotations

import pytest

from geoeval.evidence.folders import whole_folder


def test_a_folder_takes_its_name_when_it_is_whole(tmp_path):
    with whole_folder(tmp_path / "new" / "parent" / "x") as folder:
        (folder / "a").write_text("a")
        assert not (tmp_path / "new" / "parent" / "x").exists()
    assert [one.name for one in (tmp_path / "new" / "parent").iterdir()] == ["x"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failure_leaves_no_folder_that_was_made_for_it(tmp_path, error):
    (tmp_path / "there").mkdir()

    def fails():
        with whole_folder(tmp_path / "there" / "new" / "parent" / "x") as folder:
            (folder / "a").write_text("a")
            raise error

    with pytest.raises(error):
        fails()
    assert [one.name for one in tmp_path.rglob("*")] == ["there"]


def test_what_others_put_there_in_the_meantime_stays(tmp_path):
    def fails():
        with whole_folder(tmp_path / "new" / "parent" / "x"):
            (tmp_path / "new" / "other").write_text("b")
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        fails()
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["new", "other"]


def test_a_folder_below_a_file_is_refused_and_nothing_is_left(tmp_path):
    (tmp_path / "file").write_text("a")
    with pytest.raises(OSError, match="file"), whole_folder(tmp_path / "file" / "x"):
        pytest.fail("there is nothing to write into")
    assert [one.name for one in tmp_path.rglob("*")] == ["file"]
