"""Guesses of columns, and the files behind a path."""

from __future__ import annotations

import pandas as pd
import pytest

from geoeval.errors import ColumnError, InputError
from geoeval.readers.guess import guess, require
from geoeval.readers.sources import expand, pair_files, unit_name


def test_a_column_without_values_is_never_guessed():
    frame = pd.DataFrame({"score": [None, None], "p": [0.1, 0.2], "label": [None, None]})
    assert guess(frame, "score") == "p"
    assert guess(frame, "label") is None


def test_words_are_no_scores_and_fractions_no_labels():
    frame = pd.DataFrame({"confidence": ["high", "low"], "class": [0.5, 0.7]})
    assert guess(frame, "score") is None
    assert guess(frame, "label") is None


def test_the_better_name_wins():
    frame = pd.DataFrame({"type": ["x"], "Label": ["y"], "fid": [1], "ID": [2]})
    assert guess(frame, "label") == "Label"
    assert guess(frame, "id") == "ID"


def test_a_declared_column_that_is_not_there_is_refused():
    with pytest.raises(ColumnError, match=r"a\.csv.*'scoer'.*declared as score.*did you mean 'score'"):
        require(pd.DataFrame({"score": [1]}), "scoer", "score", "a.csv")


@pytest.mark.parametrize(
    ("text", "name"),
    [("OSBS_029.tif", "OSBS_029"), ("a/b/c.PNG", "c"), ("v1.2", "v1.2"), ("c:\\x\\y.jpg", "y"), (".tif", ".tif")],
)
def test_images_are_compared_without_folder_and_ending(text, name):
    assert unit_name(text) == name


def write(folder, *names):
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text("lon,lat\n1,2\n")
    return folder


def test_a_missing_file_suggests_the_nearest(tmp_path):
    write(tmp_path, "barns_test.csv")
    with pytest.raises(InputError, match=r"no such file.*did you mean 'barns_test\.csv'"):
        expand(tmp_path / "barn_test.csv", "reference")
    with pytest.raises(InputError, match="folder is not there"):
        expand(tmp_path / "nowhere" / "a.csv", "reference")


def test_a_file_without_bytes_is_refused(tmp_path):
    (tmp_path / "a.geojson").touch()
    with pytest.raises(InputError, match="0 bytes"):
        expand(tmp_path / "a.geojson", "reference")


def test_folders_and_globs_pair_by_stem(tmp_path):
    left = write(tmp_path / "r", "a.csv", "b.csv", "README.md")
    right = write(tmp_path / "p", "b.csv")
    pairs, findings = pair_files(expand(left, "reference"), expand(str(right / "*.csv"), "prediction"), "refuse")
    assert [(pair.unit, pair.prediction is None) for pair in pairs] == [("a", True), ("b", False)]
    assert [finding.code for finding in findings] == ["prediction-missing"]


def test_a_prediction_file_without_reference_is_refused_or_dropped(tmp_path):
    left, right = write(tmp_path / "r", "a.csv"), write(tmp_path / "p", "a.csv", "z.csv")
    files = expand(left, "reference"), expand(right, "prediction")
    with pytest.raises(InputError, match=r"1 of 2 files.*z"):
        pair_files(*files, "refuse")
    pairs, findings = pair_files(*files, "drop")
    assert [pair.unit for pair in pairs] == ["a"]
    assert findings[0].code == "unknown-unit"


def test_two_files_of_one_stem_are_refused(tmp_path):
    left = write(tmp_path / "r", "a.csv", "a.geojson")
    with pytest.raises(InputError, match="one stem, 'a'"):
        expand(left, "reference")


def test_an_empty_folder_or_glob_is_refused(tmp_path):
    with pytest.raises(InputError, match="found none"):
        expand(tmp_path, "reference")
    with pytest.raises(InputError, match="no file matches"):
        expand(str(tmp_path / "*.gpkg"), "reference")
