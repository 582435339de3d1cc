"""One meaning, one byte string, one hash; and nothing that is no number."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoeval.errors import BundleError
from geoeval.evidence.canonical import (
    canonical_bytes,
    code_digest,
    digest,
    file_digest,
    plain,
    significant,
    tree_digest,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": 1, "a": 2}, b'{"a":2,"b":1}'),
        ({"x": -0.0}, b'{"x":0}'),
        ({"x": 1 / 3}, b'{"x":0.333333333333}'),
        ({"x": 2.0, "n": np.int64(3), "f": np.float64(0.5)}, b'{"f":0.5,"n":3,"x":2}'),
        ([True, None, "é", (1,)], '[true,null,"é",[1]]'.encode()),
        (np.array([[1, 2]]), b"[[1,2]]"),
        (1e21, b"1e+21"),
    ],
)
def test_bytes_are_canonical(value, expected):
    assert canonical_bytes(value) == expected


def test_last_bits_do_not_reach_a_hash():
    assert canonical_bytes(0.1 + 0.2) == canonical_bytes(0.3)
    assert canonical_bytes(0.1 + 0.2, digits=None) != canonical_bytes(0.3, digits=None)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan")])
def test_what_is_not_finite_is_refused_with_its_place(value):
    with pytest.raises(BundleError, match=r"\$\.a\[1\].*null with a reason"):
        canonical_bytes({"a": [0, value]})


@pytest.mark.parametrize("value", [{1: 2}, {"a": {1, 2}}, 2**53, object(), b"bytes"])
def test_what_is_not_json_is_refused(value):
    with pytest.raises(BundleError):
        plain(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_rounding_is_done_once(value):
    once = significant(value)
    assert significant(once) == once
    assert math.copysign(1, once) == 1 or once != 0
    assert once == pytest.approx(value, rel=1e-11, abs=0)
    assert float(json.loads(canonical_bytes(value))) == once


def test_there_is_no_minus_zero():
    for value in (-0.0, -1e-320 * 1e-20):
        assert math.copysign(1, significant(value)) == 1
        assert math.copysign(1, plain(value, digits=None)) == 1


def test_digests_of_files_and_folders(tmp_path):
    (tmp_path / "a.py").write_bytes(b"x = 1\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.py").write_bytes(b"y = 2\n")
    assert file_digest(tmp_path / "a.py") == digest(b"x = 1\n")
    first = tree_digest(tmp_path)
    (tmp_path / "a.py").write_bytes(b"x = 1\r\n")
    (tmp_path / "sub" / "__pycache__").mkdir()
    (tmp_path / "sub" / "__pycache__" / "b.py").write_bytes(b"compiled")
    assert tree_digest(tmp_path) == first
    (tmp_path / "sub" / "b.py").rename(tmp_path / "b.py")
    assert tree_digest(tmp_path) != first
    with pytest.raises(BundleError, match=r"missing\.py"):
        file_digest(tmp_path / "missing.py")
    with pytest.raises(BundleError, match="no code"):
        tree_digest(tmp_path / "sub")


def test_the_package_has_a_digest():
    assert code_digest() == code_digest()
