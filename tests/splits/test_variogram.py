"""The variogram: ranges that are known come out, and where there is none it says so."""

from __future__ import annotations

import numpy as np
import pytest

from geoeval.splits.variogram import REASONS, exponential, spherical, variogram


def field(seed, length, nugget=0.0, n=3000, width=400_000.0):
    """Places along a line, and a value with an exponential covariance whose practical range is ``length``.

    Each value is the one before, faded by the distance between them, and fresh noise: exactly that covariance.
    """
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0, width, n))
    fade = np.exp(-3 * np.diff(x, prepend=-np.inf) / length)
    value = np.zeros(n)
    for at, noise in enumerate(rng.normal(size=n)):
        value[at] = fade[at] * value[at - 1] + np.sqrt(1 - fade[at] ** 2) * noise
    return np.stack([x, 0 * x], axis=1), value + np.sqrt(nugget) * rng.normal(size=n)


@pytest.mark.parametrize("length", [1500.0, 5000.0, 15_000.0])
def test_a_known_range_comes_out(length):
    """Single fields scatter; the median of seven is within a third of the range that they were made with."""
    found = [variogram(*field(seed, length), pairs=60_000).range_m for seed in range(7)]
    known = [one for one in found if one is not None]
    assert len(known) == 7
    assert all(0.4 * length < one < 2 * length for one in known)
    assert np.median(known) == pytest.approx(length, rel=0.33)


def test_nugget_and_sill_come_out():
    found = [variogram(*field(seed, 10_000.0, nugget=0.5), pairs=60_000) for seed in range(7)]
    assert np.median([one.nugget for one in found]) == pytest.approx(0.5, abs=0.15)
    assert np.median([one.sill for one in found]) == pytest.approx(1.5, abs=0.2)


def test_every_pair_is_counted_where_they_are_few():
    """100 points in a row, lags of 1 m: 99 pairs at 1 m, 98 at 2 m, each with half its squared difference."""
    at = np.stack([np.arange(100.0), np.zeros(100)], axis=1)
    found = variogram(at, np.arange(100.0), lags=49)
    assert found.pairs.sum() == sum(100 - lag for lag in range(1, 50))
    assert found.semivariance[0] == pytest.approx((found.lag[0] ** 2) / 2, rel=0.05)
    assert found.reason == "no_sill"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (lambda at, rng: np.full(len(at), 7.0), "no_variation"),
        (lambda at, rng: rng.normal(size=len(at)), "no_rise"),
        (lambda at, rng: at[:, 0] + rng.normal(size=len(at)), "no_sill"),
        (lambda at, rng: np.where(np.arange(len(at)) < 20, 1.0, np.nan), "too_few_points"),
    ],
)
def test_where_there_is_no_range_it_says_why(value, reason):
    rng = np.random.default_rng(3)
    at = rng.uniform(0, 10_000, (800, 2))
    found = variogram(at, value(at, rng))
    assert (found.range_m, found.reason) == (None, reason)
    assert reason in REASONS


def test_one_place_for_all_is_too_few():
    assert variogram(np.zeros((200, 2)), np.arange(200.0)).reason == "too_few_points"


@pytest.mark.parametrize("pairs", [5_000, 10_000_000])
def test_the_order_of_points_does_not_matter(pairs):
    at, value = field(1, 3000.0, n=600)
    turned = np.random.default_rng(0).permutation(len(at))
    one, two = variogram(at, value, pairs=pairs), variogram(at[turned], value[turned], pairs=pairs)
    assert one.range_m == two.range_m
    assert one.semivariance.tobytes() == two.semivariance.tobytes()


def test_pairs_are_kept_near_the_limit():
    rng = np.random.default_rng(0)
    at = rng.uniform(0, 1e5, (20_000, 2))
    found = variogram(at, np.sin(at[:, 0] / 5000), pairs=50_000)
    assert found.pairs[-4:].sum() < 50_000
    assert 50_000 < found.pairs.sum() < 500_000


def test_voids_are_left_out():
    at, value = field(2, 3000.0, n=400)
    more = np.concatenate([at, at + 1.0]), np.concatenate([value, np.full(400, np.nan)])
    assert variogram(*more).points == 400
    assert variogram(*more).range_m == variogram(at, value).range_m


def test_models_meet_at_their_ends():
    h = np.array([0.0, 50.0, 100.0])
    assert spherical(h, 0.0, 1.0, 100.0).tolist() == [0.0, 0.6875, 1.0]
    assert exponential(h, 0.0, 1.0, 100.0)[2] == pytest.approx(0.950213, abs=1e-6)
