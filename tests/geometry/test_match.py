"""One-to-one matching: hand-drawn traps, brute-force and plain oracles, and laws."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from geoeval.errors import ConfigError, InputError
from geoeval.geometry.match import Matching, match_by_id, one_to_one

ASSIGNMENTS = ["score", "similarity", "optimal"]


def objects(*values: Any) -> np.ndarray:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def match(n: int, m: int, pairs: dict[tuple[int, int], float], assignment: str, **options: Any) -> Matching:
    ends = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
    options = {"threshold": 0.5, **options}
    if assignment == "score":
        options.setdefault("score", np.linspace(0.9, 0.1, m))
    return one_to_one(n, m, ends[:, 0], ends[:, 1], list(pairs.values()), assignment=assignment, **options)


def taken(matching: Matching) -> list[tuple[int, int]]:
    return list(zip(matching.reference.tolist(), matching.prediction.tolist(), strict=True))


@st.composite
def scenes(draw: st.DrawFn) -> tuple[int, int, dict[tuple[int, int], float]]:
    """Up to 5 × 5 objects with few distinct similarities, so that ties are common."""
    n, m = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    ends = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, m - 1)), unique=True, max_size=n * m))
    steps = draw(st.sampled_from([1, 2, 4, 60]))
    return n, m, {pair: draw(st.integers(1, steps)) / steps for pair in ends}


def best_by_trying_all(n: int, pairs: dict[tuple[int, int], float], threshold: float) -> list[tuple[int, int]]:
    """Most pairs, then most similarity, then the list that sorts first."""
    fit = {pair: round(value * 1e9) for pair, value in pairs.items() if value >= threshold}
    best: tuple[int, int, list[tuple[int, int]]] = (0, 0, [])

    def go_on(i: int, used: frozenset[int], chosen: list[tuple[int, int]], total: int) -> None:
        nonlocal best
        if i == n:
            best = min(best, (-len(chosen), -total, chosen))
            return
        go_on(i + 1, used, chosen, total)
        for (a, b), value in fit.items():
            if a == i and b not in used:
                go_on(i + 1, used | {b}, [*chosen, (a, b)], total + value)

    go_on(0, frozenset(), [], 0)
    return best[2]


def by_score(m: int, pairs: dict[tuple[int, int], float], score: list[float]) -> list[tuple[int, int]]:
    free = {i for i, _ in pairs}
    out = []
    for j in sorted(range(m), key=lambda j: (-score[j], j)):
        choice = [(-value, i) for (i, k), value in pairs.items() if k == j and i in free and value >= 0.5]
        if choice:
            _, i = min(choice)
            free.remove(i)
            out.append((i, j))
    return sorted(out)


def by_similarity(pairs: dict[tuple[int, int], float]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for value, i, j in sorted((-value, i, j) for (i, j), value in pairs.items()):
        if -value >= 0.5 and all(i != a and j != b for a, b in out):
            out.append((i, j))
    return sorted(out)


def test_a_worse_pair_may_be_taken_so_that_nobody_is_left_out():
    """Prediction 0 fits both references, prediction 1 only the first: greedy strands reference 1, optimal does not."""
    pairs = {(0, 0): 0.9, (0, 1): 0.6, (1, 0): 0.55}
    assert taken(match(2, 2, pairs, "similarity")) == [(0, 0)]
    assert taken(match(2, 2, pairs, "score")) == [(0, 0)]
    assert taken(match(2, 2, pairs, "optimal")) == [(0, 1), (1, 0)]


def test_a_confident_but_worse_prediction_goes_first_by_score():
    pairs = {(0, 0): 0.9, (0, 1): 0.6}
    assert taken(match(1, 2, pairs, "score", score=[0.3, 0.8])) == [(0, 1)]
    assert taken(match(1, 2, pairs, "similarity")) == [(0, 0)]


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_a_huge_blob_steals_nothing(assignment):
    """Blob 0 covers everything at IoU 0.2; without the threshold first it would take reference 0 from prediction 1."""
    pairs = {(0, 0): 0.2, (1, 0): 0.2, (0, 1): 0.8}
    assert taken(match(2, 2, pairs, assignment)) == [(0, 1)]


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_a_blob_over_row_houses_is_one_hit_at_most(assignment):
    pairs = {(0, 0): 0.5, (1, 0): 0.25, (2, 0): 0.25}
    assert taken(match(3, 1, pairs, assignment)) == [(0, 0)]


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_three_predictions_of_one_reference_are_one_hit(assignment):
    assert taken(match(1, 3, {(0, 0): 0.7, (0, 1): 0.7, (0, 2): 0.7}, assignment)) == [(0, 0)]


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_best_per_side_would_lose_a_pair(assignment):
    """Both references like prediction 0 best; the second still has prediction 1."""
    assert taken(match(2, 2, {(0, 0): 0.9, (1, 0): 0.8, (1, 1): 0.7}, assignment)) == [(0, 0), (1, 1)]


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_position_zero_is_an_object_like_any_other(assignment):
    assert taken(match(1, 1, {(0, 0): 1.0}, assignment)) == [(0, 0)]


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_a_similarity_equal_to_the_threshold_is_a_match_even_after_rounding_noise(assignment):
    assert taken(match(1, 1, {(0, 0): 0.1 + 0.2}, assignment, threshold=0.3)) == [(0, 0)]
    assert taken(match(1, 1, {(0, 0): 1 / 3}, assignment, threshold=1 / 3)) == [(0, 0)]
    assert taken(match(1, 1, {(0, 0): 0.499999}, assignment)) == []


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_distances_match_as_negative_similarities(assignment):
    """Wells at 0 and 6, finds at 3 and 5.5: nearest first would do, and 9 m is too far."""
    pairs = {(0, 0): -3.0, (1, 0): -3.0, (1, 1): -0.5, (0, 1): -5.5, (0, 2): -9.0}
    assert taken(match(2, 3, pairs, assignment, threshold=-5.0)) == [(0, 0), (1, 1)]


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_nothing_on_a_side_gives_no_pairs(assignment):
    assert len(match(0, 0, {}, assignment)) == 0
    assert len(match(3, 0, {}, assignment)) == 0
    assert len(match(0, 2, {}, assignment)) == 0


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_only_equal_labels_pair(assignment):
    labels = {"reference_label": objects("car", "bus"), "prediction_label": objects("bus", "bus")}
    assert taken(match(2, 2, {(0, 0): 0.9, (1, 1): 0.6}, assignment, **labels)) == [(1, 1)]


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_an_ignored_region_absorbs_what_is_left_over_and_never_counts(assignment):
    """Prediction 0 prefers the counted reference; 1 and 2 fall into the region, 3 only touches it."""
    pairs = {(0, 0): 0.6, (1, 0): 0.9, (1, 1): 0.1, (1, 2): 0.1, (1, 3): 0.1}
    found = match(2, 4, pairs, assignment, ignore=np.array([False, True]), ignore_similarity=[0, 1.0, 1.0, 0.5, 0.49])
    assert taken(found) == [(0, 0)]
    assert found.ignored.tolist() == [1, 2]


def test_an_ignored_region_absorbs_its_own_class_and_a_blank_one_absorbs_all():
    options = {"ignore": np.array([True]), "prediction_label": objects("car", "bus")}
    pairs = {(0, 0): 0.9, (0, 1): 0.9}
    assert match(1, 2, pairs, "optimal", reference_label=objects("car"), **options).ignored.tolist() == [0]
    assert match(1, 2, pairs, "optimal", reference_label=objects(""), **options).ignored.tolist() == [0, 1]
    assert match(1, 2, pairs, "optimal", reference_label=objects(None), **options).ignored.tolist() == [0, 1]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused(bad):
    with pytest.raises(InputError, match="similarity must be a finite number"):
        match(1, 1, {(0, 0): bad}, "optimal")
    with pytest.raises(InputError, match=r"score must be a finite number.*position 1"):
        match(1, 2, {(0, 0): 0.9}, "score", score=[0.5, bad])


def test_a_misspelt_assignment_and_missing_scores_are_refused_with_advice():
    with pytest.raises(ConfigError, match="did you mean 'optimal'"):
        match(1, 1, {(0, 0): 0.9}, "optimum")
    with pytest.raises(ConfigError, match="use 'optimal'"):
        one_to_one(1, 1, [0], [0], [0.9], threshold=0.5, assignment="score")
    with pytest.raises(ConfigError, match="match_by_id"):
        match(1, 1, {(0, 0): 0.9}, "id")


def test_a_pair_that_names_nobody_is_refused():
    with pytest.raises(InputError, match="reference 2, but there are 2"):
        match(2, 2, {(2, 0): 0.9}, "optimal")
    with pytest.raises(InputError, match="expected 1 values, got 2"):
        one_to_one(1, 1, [0], [0], [0.9, 0.8], threshold=0.5, assignment="optimal")


@given(scenes())
@settings(max_examples=400, deadline=None)
def test_optimal_agrees_with_trying_everything(scene):
    n, m, pairs = scene
    assert taken(match(n, m, pairs, "optimal")) == best_by_trying_all(n, pairs, 0.5)


@given(scenes(), st.lists(st.sampled_from([0.2, 0.5, 0.8]), min_size=5, max_size=5))
@settings(max_examples=200, deadline=None)
def test_greedy_agrees_with_a_plain_loop(scene, score):
    n, m, pairs = scene
    assert taken(match(n, m, pairs, "score", score=score[:m])) == by_score(m, pairs, score)
    assert taken(match(n, m, pairs, "similarity")) == by_similarity(pairs)


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
@given(scene=scenes(), data=st.data())
@settings(max_examples=100, deadline=None)
def test_order_changes_no_pair(assignment, scene, data):
    """The same objects in another order, with ranks that follow them, make the same pairs."""
    n, m, pairs = scene
    rows, columns = data.draw(st.permutations(range(n))), data.draw(st.permutations(range(m)))
    order = data.draw(st.permutations(list(pairs)))
    score = np.array(data.draw(st.lists(st.sampled_from([0.2, 0.8]), min_size=m, max_size=m)))
    there = np.empty(m)
    there[columns] = score
    ranks = {"reference_rank": np.argsort(rows), "prediction_rank": np.argsort(columns)}
    plain = match(n, m, pairs, assignment, score=score)
    moved = match(n, m, {(rows[i], columns[j]): pairs[i, j] for i, j in order}, assignment, score=there, **ranks)
    back = [(rows.index(i), columns.index(j)) for i, j in taken(moved)]
    assert sorted(back) == taken(plain)


@given(scenes(), st.sampled_from([0.25, 0.5, 0.75]))
@settings(max_examples=100, deadline=None)
def test_each_is_used_once_and_optimal_finds_most(scene, threshold):
    n, m, pairs = scene
    found = {name: match(n, m, pairs, name, threshold=threshold) for name in ASSIGNMENTS}
    for matching in found.values():
        assert len(set(matching.reference.tolist())) == len(matching) == len(set(matching.prediction.tolist()))
        assert all(pairs[pair] >= threshold for pair in taken(matching))
        assert np.all(np.diff(matching.reference) > 0)
    assert len(found["optimal"]) == max(map(len, found.values()))
    assert len(match(n, m, pairs, "optimal", threshold=threshold + 0.1)) <= len(found["optimal"])


@pytest.mark.parametrize("ties", [1, 3, 10**6])
def test_large_components_reach_the_total_of_a_dense_solver(ties):
    rng = np.random.default_rng(1)
    similarity = rng.integers(1, ties + 1, (60, 45)) / ties
    i, j = (end.reshape(-1) for end in np.indices(similarity.shape))
    found = one_to_one(60, 45, i, j, similarity[i, j], threshold=0.0, assignment="optimal")
    rows, columns = linear_sum_assignment(similarity, maximize=True)
    assert len(found) == 45
    assert found.similarity.sum() == pytest.approx(similarity[rows, columns].sum(), abs=1e-6)


def test_a_sparse_scene_takes_less_than_a_second():
    """20,000 references, 30,000 predictions, two candidates for each reference."""
    rng = np.random.default_rng(2)
    i = np.repeat(np.arange(20_000), 2)
    j = rng.integers(0, 30_000, 40_000)
    match(2, 2, {(0, 0): 0.9, (0, 1): 0.6, (1, 0): 0.55}, "optimal")
    for assignment in ASSIGNMENTS:
        start = time.process_time()
        one_to_one(
            20_000,
            30_000,
            i,
            j,
            rng.random(40_000),
            threshold=0.3,
            assignment=assignment,
            score=rng.random(30_000),
        )
        assert time.process_time() - start < 1.0


def test_ids_pair_equal_text_only():
    i, j = match_by_id(objects("a", "0", "c"), objects("c", "x", "0"))
    assert i.tolist() == [1, 2]
    assert j.tolist() == [2, 0]
    i, j = match_by_id(objects(), objects("a"))
    assert len(i) == len(j) == 0


def test_a_repeated_id_is_refused_with_its_count():
    with pytest.raises(InputError, match=r"prediction: each id must stand once, found 'b' 3 times, 'a' 2 times"):
        match_by_id(objects("a"), objects("b", "a", "b", "b", "a"))
