"""Each gate fails for exactly its reason, and its clean twin passes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoeval.splits.leakage import GATES, check, pairs_across, worst
from geoeval.splits.links import shared
from geoeval.splits.record import IDENTITIES
from geoeval.splits.settings import SplitSettings
from geoeval.splits.table import Invalid, SampleTable, joined

SETTINGS = SplitSettings(required=(), required_splits=("train", "test"))


def table(n=4, **changes):
    """Samples 10 km apart, half in train and half in test, alike in nothing."""
    west = 5.0 + 0.2 * np.arange(n)
    columns = {
        "sample_id": [f"s{i}" for i in range(n)],
        "split": ["train" if i < n // 2 else "test" for i in range(n)],
        **{name: [f"{name}-{i}" for i in range(n)] for name in IDENTITIES[1:]},
        "native_feature_ids": [[f"n{i}"] for i in range(n)],
        "object_ids": [[f"o{i}"] for i in range(n)],
        **{
            name: [f"{k}{i:063x}" for i in range(n)]
            for k, name in enumerate(("raw_image_sha256", "processed_image_sha256", "label_sha256", "record_sha256"))
        },
        "perceptual": np.array([0x0123456789ABCDEF * (i + 1) % 2**64 for i in range(n)], dtype=np.uint64),
        "bounds": np.stack([west, np.full(n, 50.0), west + 0.001, np.full(n, 50.001)], axis=1),
        "crs": "EPSG:4326",
    }
    return SampleTable.of(n, **{**columns, **changes})


def statuses(found):
    return {gate.id: gate.status for gate in found}


def test_the_clean_twin_passes_every_gate():
    found = check(table(), SETTINGS)
    assert [gate.id for gate in found] == list(GATES)
    assert statuses(found) == dict.fromkeys(GATES, "pass")
    assert worst(found) == "pass"


@pytest.mark.parametrize("field", IDENTITIES[1:])
def test_a_shared_identity_fails_the_first_gate_alone(field):
    found = check(table(**{field: ["a", "b", "c", "b"]}), SETTINGS)
    gate = found[0]
    assert statuses(found) == {**dict.fromkeys(GATES, "pass"), "identity": "fail"}
    assert (gate.reason, gate.count, gate.counts[field]) == ("shared_identity", 1, 1)
    one = gate.witnesses[0]
    assert (one.relation, one.first, one.second, one.evidence) == (field, "s1", "s3", {"value": "b"})
    assert (one.first_split, one.second_split) == ("train", "test")


@pytest.mark.parametrize("field", ["native_feature_ids", "object_ids"])
def test_a_shared_object_fails_the_first_gate_alone(field):
    found = check(table(**{field: [["x", "y"], ["z"], ["y"], ["unknown", ""]]}), SETTINGS)
    assert statuses(found) == {**dict.fromkeys(GATES, "pass"), "identity": "fail"}
    assert found[0].counts[field] == 1
    assert found[0].unknown[field] == 1


def test_one_id_in_two_splits_is_a_leak():
    found = check([table(), table(n=2, sample_id=["s0", "t"], split="test", bounds=None, crs=None)], SETTINGS)
    assert found[0].counts["sample_id"] == 1


@pytest.mark.parametrize(
    ("field", "relation"),
    [
        ("raw_image_sha256", "image_sha256"),
        ("processed_image_sha256", "image_sha256"),
        ("label_sha256", "label_sha256"),
        ("record_sha256", "record_sha256"),
    ],
)
def test_equal_bytes_fail_the_second_gate_alone(field, relation):
    found = check(table(**{field: ["a" * 64, "b" * 64, "a" * 64, "c" * 64]}), SETTINGS)
    assert statuses(found) == {**dict.fromkeys(GATES, "pass"), "exact_bytes": "fail"}
    assert (found[1].reason, found[1].counts[relation]) == ("same_bytes", 1)


def test_a_raw_image_here_that_is_a_processed_image_there_is_the_same_image():
    changed = table(
        raw_image_sha256=["a" * 64, "b" * 64, "c" * 64, "d" * 64],
        processed_image_sha256=["e" * 64, "f" * 64, "0" * 64, "b" * 64],
    )
    assert check(changed, SETTINGS)[1].counts["image_sha256"] == 1


def test_a_perceptual_near_duplicate_fails_the_third_gate_alone():
    codes = np.array([0, 2**63 - 1, 0b1111, 0xFFFFFFFF00000000], dtype=np.uint64)
    found = check(table(perceptual=codes), SETTINGS)
    assert statuses(found) == {**dict.fromkeys(GATES, "pass"), "near_duplicate": "fail"}
    assert found[2].counts == {"perceptual_hash": 1}
    assert found[2].witnesses[0].evidence == {"bits": 4}
    assert check(table(perceptual=codes), SplitSettings(required_splits=(), radius=3))[2].status == "pass"


def test_a_flipped_image_is_found_by_its_orientations():
    codes = np.array([[1 << (4 * (i + 1)), *range(10**6 * i, 10**6 * i + 7)] for i in range(1, 5)], dtype=np.uint64)
    codes = (codes * np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
    codes[3, 5] = codes[0, 0]
    assert check(table(perceptual=codes), SETTINGS)[2].count == 1


def test_equal_label_geometry_in_other_bytes_fails_the_third_gate_alone():
    found = check(table(label_geometry_hash=["a" * 64, "b" * 64, "a" * 64, "c" * 64]), SETTINGS)
    assert statuses(found) == {**dict.fromkeys(GATES, "pass"), "near_duplicate": "fail"}
    assert found[2].counts["label_geometry_hash"] == 1
    assert check(table(label_geometry_hash=[64 * one for one in "abcd"]), SETTINGS)[2].status == "pass"


@pytest.mark.parametrize(("shift", "count"), [(1.0, 1), (8.0, 0)])
def test_label_sets_that_are_nearly_alike_fail_the_third_gate_alone(shift, count):
    """Five squares of 10 m: moved by 1 m they have an IoU of 9/11 with themselves, moved by 8 m one of 1/9."""
    import shapely

    from geoeval.splits.labelsets import LabelSet

    x = 500_000.0 + np.array([0.0, 40.0, 90.0, 150.0, 220.0])
    sets = np.empty(4, dtype=np.object_)
    for at, (moved, spread) in enumerate(((0.0, 0.0), (5e4, 9.0), (shift, 0.0), (9e4, 30.0))):
        left = x + moved + spread * np.arange(5)
        sets[at] = LabelSet(shapely.box(left, 5_600_000.0, left + 10, 5_600_010.0), "EPSG:32631")
    found = check(table(labels=sets), SETTINGS)
    assert found[2].counts["label_set"] == count
    assert found[2].status == ("fail" if count else "pass")
    assert {gate.status for gate in (*found[:2], *found[3:])} == {"pass"}
    if count:
        one = found[2].witnesses[0]
        assert (one.relation, one.first, one.second) == ("label_set", "s0", "s2")
        assert one.evidence["similarity"] == pytest.approx(1.0)


def test_hashes_of_two_recipes_are_not_compared():
    found = check(table(perceptual_recipe=["a", "a", "b", "b"]), SETTINGS)[2]
    assert (found.status, found.reason) == ("not_evaluable", "evidence_mismatch")
    labels = ["a" * 64, "b" * 64, "a" * 64, "c" * 64]
    found = check(table(perceptual_recipe=["a", "a", "b", "b"], label_geometry_hash=labels), SETTINGS)[2]
    assert (found.status, found.count) == ("fail", 1)


def test_boxes_closer_than_the_buffer_fail_the_fourth_gate_alone():
    near = np.array([[5, 50, 5.01, 50.01], [6, 50, 6.01, 50.01], [5.03, 50, 5.04, 50.01], [7, 50, 7.01, 50.01]])
    found = check(table(bounds=near), SETTINGS)
    assert statuses(found) == {**dict.fromkeys(GATES, "pass"), "buffer": "fail"}
    assert (found[3].reason, found[3].count) == ("closer_than_buffer", 1)
    assert found[3].witnesses[0].evidence["metres"] == pytest.approx(1434, abs=1)
    assert check(table(bounds=near), SplitSettings(buffer_m=1400.0, required_splits=()))[3].status == "pass"


def test_without_geometry_the_buffer_gate_cannot_be_decided():
    found = check(table(bounds=None, crs=None), SETTINGS)
    assert (found[3].status, found[3].reason) == ("not_evaluable", "no_geometry")
    assert statuses(found)["identity"] == "pass"


def test_one_sample_without_geometry_leaves_the_buffer_gate_undecided():
    bounds = table().bounds.copy()
    bounds[2] = np.nan
    found = check(table(bounds=bounds), SETTINGS)[3]
    assert (found.status, found.reason, found.unknown) == ("not_evaluable", "no_geometry", {"bbox": 1})


def test_pixels_are_no_place_on_earth():
    assert check(table(crs="pixel"), SETTINGS)[3].reason == "no_geometry"


def test_a_missing_split_fails_the_last_gate_alone():
    found = check(table(), SplitSettings(required=(), required_splits=("train", "test", "challenge")))
    assert statuses(found) == {**dict.fromkeys(GATES, "pass"), "complete": "fail"}
    assert (found[4].reason, found[4].count) == ("split_missing", 1)
    assert "challenge" in found[4].notes


def test_a_record_that_could_not_be_validated_fails_the_last_gate_alone():
    found = check(table(invalid=(Invalid("line 9", "bbox must hold finite numbers"),)), SETTINGS)
    assert statuses(found) == {**dict.fromkeys(GATES, "pass"), "complete": "fail"}
    assert (found[4].reason, found[4].notes["line 9"]) == ("record_invalid", "bbox must hold finite numbers")


def test_a_required_field_refuses_the_unknown():
    settings = SplitSettings(required_splits=(), required=("group_id",))
    found = check(table(group_id=["a", "unknown", "b", "c"]), settings)
    assert (found[4].status, found[4].reason) == ("fail", "record_invalid")
    assert found[0].unknown == {"group_id": 1}


def test_a_background_sample_has_no_objects_to_name():
    from geoeval.splits.links import empty_label_hash

    objects = [["a"], ["b"], [], ["c"]]
    hashes = ["a" * 64, "b" * 64, empty_label_hash(), "c" * 64]
    settings = SplitSettings(required_splits=(), required=("object_ids",))
    assert check(table(object_ids=objects, label_geometry_hash=hashes), settings)[4].status == "pass"
    assert check(table(object_ids=objects), settings)[4].reason == "record_invalid"


@pytest.mark.parametrize("blank", [None, "", "unknown", " Unknown "])
def test_what_says_nothing_never_links_and_is_listed(blank):
    found = check(table(group_id=[blank] * 4), SETTINGS)
    assert (found[0].status, found[0].unknown) == ("pass", {"group_id": 4})


def test_an_id_that_repeats_within_its_split_is_said_and_is_no_leak():
    found = check(table(sample_id=["a", "a", "b", "c"]), SETTINGS)
    assert worst(found) == "pass"
    assert found[4].notes["sample_id"].startswith("1 samples")


def test_one_split_alone_proves_nothing():
    found = check(table(split="train"))
    assert [gate.status for gate in found[:4]] == ["not_evaluable"] * 4


FREE = SplitSettings(required=(), required_splits=())


@pytest.mark.parametrize("split", [None, "", "quarantine"])
def test_samples_none_of_which_is_in_a_split_decide_nothing(split):
    found = check(table(split=[split] * 4), FREE)
    assert {(gate.status, gate.reason, gate.count) for gate in found} == {("not_evaluable", "evidence_missing", 0)}
    assert ("none of 4 samples" in found[4].notes.get("split", "")) is (split != "quarantine")


def test_a_demanded_split_or_a_bad_record_fails_even_where_no_sample_is_in_a_split():
    nowhere = table(split=[None] * 4)
    demanding = SplitSettings(required=(), required_splits=("test",))
    assert (check(nowhere, demanding)[4].status, check(nowhere, demanding)[4].reason) == ("fail", "split_missing")
    bad = table(split=[None] * 4, invalid=(Invalid("line 9", "bbox must hold finite numbers"),))
    assert (check(bad, FREE)[4].status, check(bad, FREE)[4].reason) == ("fail", "record_invalid")


def test_one_sample_in_no_split_is_a_record_that_does_not_hold():
    found = check(table(split=["train", None, "test", "test"]), SETTINGS)[4]
    assert (found.status, found.reason, found.count) == ("fail", "record_invalid", 1)
    assert found.notes["split"] == "1 samples are in no split"


def test_quarantined_samples_are_in_no_split():
    found = check(table(group_id=["a", "b", "a", "c"], split=["quarantine", "train", "test", "test"]), SETTINGS)
    assert worst(found) == "pass"


def test_rows_of_witnesses_count_in_the_whole_table():
    found = check(table(group_id=["q", "a", "b", "a"], split=["quarantine", "train", "test", "test"]), SETTINGS)
    assert found[0].witnesses[0].rows == (1, 3)


def test_counts_stay_exact_where_witnesses_are_capped():
    n = 60
    big = table(n=n, group_id=["one"] * n)
    found = check(big, SplitSettings(required_splits=(), witnesses=7))[0]
    assert (found.count, len(found.witnesses)) == (30 * 30, 7)
    assert [one.rows for one in found.witnesses] == sorted(one.rows for one in found.witnesses)


def test_the_order_of_rows_changes_nothing():
    one = table(group_id=["a", "b", "a", "b"])
    two = joined([one.take(np.array([3, 1])), one.take(np.array([2, 0]))])
    assert check(one, SETTINGS) == check(two, SETTINGS)


def test_empty_labels_are_alike_by_nature():
    from geoeval.splits.links import empty_label_hash

    empty = empty_label_hash()
    found = check(table(label_sha256=["e" * 64] * 4, label_geometry_hash=[empty] * 4), SETTINGS)
    assert worst(found) == "pass"
    assert "4 labels" in found[1].notes["empty_labels"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sets(st.sampled_from("wxyz"))), min_size=2, max_size=12))
def test_pair_counts_agree_with_counting_by_hand(samples):
    n = len(samples)
    one = SampleTable.of(
        n,
        sample_id=[f"{i:02d}" for i in range(n)],
        split=[split for split, _ in samples],
        object_ids=[sorted(objects) for _, objects in samples],
    )
    expected = sum(len(a[1] & b[1]) for a, b in itertools.combinations(samples, 2) if a[0] != b[0])
    assert pairs_across(shared(one, "object_ids"), one.splits()[0]) == expected
