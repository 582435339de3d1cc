"""Spellings of roles and of numbers in anybody's list."""

from __future__ import annotations

import pytest

from geoeval.errors import InputError
from geoeval.splits.lists import read_split_list


@pytest.fixture
def listed(tmp_path):
    def call(text, name="list.csv"):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return str(path)

    return call


def splits(found):
    return found.table.texts["split"].to_pylist()


@pytest.mark.parametrize(
    ("given", "role"),
    [
        ("Train", "train"),
        ("train ", "train"),
        ("TEST", "test"),
        ("Validation", "val"),
        ("Background-Test\u200b", "background-test"),
        ("VAL", "val"),
        ("Quarantine", "quarantine"),
    ],
)
def test_roles_are_known_in_any_case(listed, given, role):
    found = read_split_list([listed(f"id,split,lon,lat\na,{given},1,2\nb,{role},3,4\n")])
    assert splits(found) == [role, role]


def test_it_is_said_which_names_were_read_as_roles(listed):
    found = read_split_list([listed("id,split,lon,lat\na,Train,1,2\nb,train,3,4\nc,TEST,5,6\nd,val,7,8\n")])
    assert splits(found) == ["train", "train", "test", "val"]
    assert found.notes["split names"] == "'TEST' read as 'test', 'Train' read as 'train'"
    plain = read_split_list([listed("id,split,lon,lat\na,train,1,2\nb,test,3,4\n")])
    assert "split names" not in plain.notes


def test_other_names_stay_as_they_are(listed):
    found = read_split_list([listed("id,split,lon,lat\na,Fold A,1,2\nb,fold a,3,4\nc,FOLD,5,6\n")])
    assert splits(found) == ["Fold A", "fold a", "FOLD"]
    assert "split names" not in found.notes


def test_names_of_files_are_folded_too(listed):
    files = [listed("id,lon,lat\na,1,2\n", "Train.csv"), listed("id,lon,lat\nb,3,4\n", "other.csv")]
    found = read_split_list([files[0], f"TEST={files[1]}"])
    assert splits(found) == ["train", "test"]
    assert found.notes["Train.csv: split names"] == "'Train' read as 'train'"


def test_semicolons_part_columns_where_the_header_has_no_comma(listed):
    found = read_split_list([listed("\ufeffid;split;lon;lat\r\na;train;1.5;2\r\nb;test;50;40\r\n")])
    assert found.table.bounds[:, 0].tolist() == [1.5, 50.0]


def test_a_decimal_comma_is_refused_with_what_to_do(listed):
    with pytest.raises(
        InputError, match=r"row 1: column 'lon' must hold numbers, got '1,5'; write decimals with a point"
    ):
        read_split_list([listed("id;split;lon;lat\na;train;1,5;2\nb;test;50;40\n")])


def test_an_id_that_nobody_sees_is_none(listed):
    with pytest.raises(InputError, match="row 2: column 'id' must hold an id"):
        read_split_list([listed("id,split,lon,lat\na,train,1,2\n\u200b,test,3,4\n")])


@pytest.mark.parametrize("blank", ["n.a.", "(unknown)", "-9999", "?", "\u200b"])
def test_groups_that_say_nothing_link_nothing(listed, blank):
    found = read_split_list([listed(f"id,split,site,lon,lat\na,train,{blank},1,2\nb,test,{blank},3,4\n")])
    assert found.groups["site"].null_count == 2
