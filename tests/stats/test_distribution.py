"""Error distributions: moments that lose no digit, quantiles that are exact or bounded."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoeval.model import Cell
from geoeval.stats.bootstrap import multiplicities
from geoeval.stats.distribution import (
    error_sums,
    integer_sum,
    le,
    moments,
    nmad,
    rmse_of,
    shift_of,
)
from geoeval.stats.error_cells import ErrorCells, way_of
from geoeval.stats.sketch import (
    COARSE_BITS,
    FINE_BITS,
    KeptErrors,
    Sample,
    coarse_samples,
    float_keys,
    key_bounds,
    whole_sample,
)
from geoeval.stats.tally import Rows, Tally, clustered, total, totals_of
from geoeval.stats.units import metres_per

lengths = st.floats(-2000, 2000, allow_nan=False)


def figures(errors, at=0.0):
    return {k: v[0] for k, v in moments(totals_of([Tally.of(error_sums(np.asarray(errors), shift_of(at)))])).items()}


def normal(n, mean=0.0, spread=1.0, seed=0):
    return np.random.Generator(np.random.PCG64(seed)).normal(mean, spread, n)


def test_three_errors_by_hand():
    """Errors -1, 0, 4: mean 1, mean size 5/3, mean square 17/3, variance ((-2)² + 1 + 9) / 2 = 7."""
    found = figures([-1.0, 0.0, 4.0])
    assert found["bias"] == 1.0
    assert found["mae"] == pytest.approx(5 / 3, abs=1e-12)
    assert found["rmse"] == pytest.approx(math.sqrt(17 / 3), abs=1e-12)
    assert found["std"] == pytest.approx(math.sqrt(7), abs=1e-12)


def test_a_kilometre_of_bias_leaves_a_millimetre_of_spread_whole():
    """Exact fractions of the same float64 errors are the oracle."""
    errors = normal(5000, 1000.0, 1e-3)
    whole = [Fraction(float(e)) for e in errors]
    mean = sum(whole) / len(whole)
    variance = float(sum((e - mean) ** 2 for e in whole) / (len(whole) - 1))
    for at in (1000.0, 999.75):
        assert figures(errors, at)["std"] == pytest.approx(math.sqrt(variance), rel=1e-9)


def test_moments_agree_with_scipy():
    from scipy import stats

    errors = normal(3001, 0.3, 0.7) ** 3
    found = figures(errors, 0.3)
    assert found["skewness"] == pytest.approx(stats.skew(errors), rel=1e-9)
    assert found["kurtosis"] == pytest.approx(stats.kurtosis(errors), rel=1e-9)
    assert found["std"] == pytest.approx(errors.std(ddof=1), rel=1e-12)


@pytest.mark.parametrize("huge", [-9999.0, 3.4e38, -1e15])
def test_undeclared_nodata_overflows_nothing(huge):
    errors = np.array([0.5, huge])
    found = figures(errors)
    assert found["bias"] == pytest.approx(errors.mean(), rel=1e-12)
    assert found["rmse"] == pytest.approx(math.sqrt(float(np.mean(errors.astype(np.longdouble) ** 2))), rel=1e-9)
    assert math.isfinite(found["kurtosis"])


def test_nothing_is_undefined_not_zero():
    found = {k: v[0] for k, v in moments(totals_of([Tally()])).items()}
    assert all(math.isnan(value) for value in found.values())
    assert nmad(np.array([])) is None
    assert le(np.array([]), 0.9) is None
    assert rmse_of(np.array([])) is None


def test_one_error_has_no_spread_and_equal_errors_no_shape():
    assert math.isnan(figures([2.0])["std"])
    equal = figures([2.0, 2.0, 2.0])
    assert equal["std"] == 0.0
    assert math.isnan(equal["skewness"])
    assert math.isnan(equal["kurtosis"])


@given(st.lists(lengths, min_size=1, max_size=40))
def test_rmse_is_never_below_bias_or_mae(errors):
    found = figures(errors)
    assert found["rmse"] >= abs(found["bias"])
    assert found["rmse"] >= found["mae"]
    assert found["mae"] >= 0


@given(st.lists(lengths, min_size=1, max_size=30), st.integers(0, 30), st.randoms())
def test_order_and_cutting_change_no_bit(errors, at, random):
    shuffled = list(errors)
    random.shuffle(shuffled)
    parts = [Tally.of(error_sums(np.array(part))) for part in (shuffled[:at], shuffled[at:])]
    assert total(parts) == Tally.of(error_sums(np.array(errors)))


@given(st.lists(st.integers(-(2**40), 2**40), max_size=30), st.integers(0, 40))
def test_integer_sum_is_exact_at_any_size(values, power):
    scaled = [float(v) * 2.0**power for v in values]
    assert integer_sum(np.array(scaled)) == sum(int(v) for v in scaled)


def test_integer_sum_refuses_what_is_no_number():
    with pytest.raises(ValueError, match="not all finite"):
        integer_sum(np.array([np.nan]))


def test_metres_to_feet_scales_every_figure():
    errors = normal(500, 0.2, 0.3)
    feet = errors / metres_per("ft")
    metre, foot = figures(errors), figures(feet)
    for key in ("bias", "mae", "rmse", "std"):
        assert foot[key] * 0.3048 == pytest.approx(metre[key], rel=1e-10)
    assert foot["skewness"] == pytest.approx(metre["skewness"], rel=1e-8)
    assert nmad(feet) * 0.3048 == pytest.approx(nmad(errors), rel=1e-12)


@given(st.lists(st.tuples(lengths, st.integers(0, 4)), min_size=1, max_size=30), st.floats(0, 1))
def test_weighted_quantiles_are_those_of_the_repeated_list(pairs, share):
    values, weights = np.array([v for v, _ in pairs]), np.array([w for _, w in pairs])
    found = Sample.of(values, weights).quantile(share)
    repeated = np.repeat(values, weights)
    if not len(repeated):
        assert found is None
    else:
        assert found == (pytest.approx(np.quantile(repeated, share), abs=1e-9), 0.0)


@given(st.lists(st.floats(-1e30, 1e30, allow_subnormal=True), min_size=1, max_size=50))
def test_keys_keep_the_order_and_bins_hold_their_values(values):
    array = np.sort(np.array(values).astype(np.float32).astype(np.float64))
    for bits in (FINE_BITS, COARSE_BITS):
        keys = float_keys(array, bits)
        low, high = key_bounds(keys, bits)
        assert np.all(np.diff(keys) >= 0)
        assert np.all((low <= array) & (array <= high))


def test_half_a_fine_bin_is_at_most_the_declared_share_of_the_error():
    values = np.concatenate([np.geomspace(1e-6, 1e4, 5001), -np.geomspace(1e-6, 1e4, 5001)])
    low, high = key_bounds(float_keys(values, FINE_BITS), FINE_BITS)
    assert np.max((high - low) / 2 / np.abs(values)) <= 1.23e-4


def gathered(errors, way, offset, cluster):
    cells = ErrorCells(way, offset)
    for name in np.unique(cluster):
        for part in np.array_split(errors[cluster == name], 3):
            cells.add(Cell(str(name)), part)
    return clustered({cell.cluster: tally for cell, tally in cells.tallies().items()})


@pytest.mark.parametrize("offset", [0.0, 50.25])
def test_a_sketch_stays_within_the_bound_that_it_prints(offset):
    errors = normal(40_000, 50.0, 0.01)
    cluster = np.arange(len(errors)) % 7
    sample = whole_sample(gathered(errors, "sketch", offset, cluster).whole())
    for share in (0.05, 0.5, 0.6827, 0.9, 0.95, 0.99):
        value, bound = sample.quantile(share)
        assert abs(value - np.quantile(errors, share)) <= bound + 1e-9
        value, bound = sample.folded(0.0).quantile(share)
        assert abs(value - np.quantile(np.abs(errors), share)) <= bound + 1e-9
    value, bound = sample.nmad()
    assert abs(value - nmad(errors)) <= bound + 1e-9
    if offset:
        # Half a bin of 1.2e-4 of what is left after recentring: thousandths of a millimetre.
        assert bound < 1e-4


def test_kept_errors_make_published_quantiles_exact():
    errors = normal(30_000, 0.1, 0.2).astype(np.float32).astype(np.float64)
    cluster = np.arange(len(errors)) % 5
    sample = whole_sample(gathered(errors, "exact", 0.0, cluster).whole())
    assert sample.quantile(0.5) == (pytest.approx(np.median(errors), abs=1e-12), 0.0)
    assert sample.nmad() == (pytest.approx(nmad(errors), abs=1e-12), 0.0)
    for share in (0.6827, 0.9, 0.95):
        assert sample.folded(0.0).quantile(share) == (pytest.approx(np.quantile(np.abs(errors), share)), 0.0)
    assert len(sample.values) < len(errors)


def test_the_three_ways_have_one_set_of_sums():
    errors = normal(10_000, 0.1, 0.2)
    cluster = np.arange(len(errors)) % 4
    sums = [dict(gathered(errors, way, 0.1, cluster).whole().sums) for way in ("exact", "sketch")]
    assert all(np.array_equal(sums[0][name], sums[1][name]) for name in sums[0])
    rows = moments(gathered(errors, "rows", 0.0, cluster).whole())
    binned = moments(gathered(errors, "sketch", 0.1, cluster).whole())
    assert all(rows[name][0] == pytest.approx(binned[name][0], rel=1e-9, abs=1e-12) for name in rows)


def test_redraws_of_kept_errors_are_those_of_the_repeated_list():
    errors = normal(20_000, 0.0, 1.0) ** 3
    cluster = np.sort(np.arange(len(errors)) % 11)
    table = clustered({str(c): Tally.of(rows={"error": Rows.of(errors[cluster == c])}) for c in range(11)})
    totals = table.totals(multiplicities(11, 12, seed=3))
    rows = totals.rows["error"]
    kept, absolute = KeptErrors.of(rows), KeptErrors.of(rows, absolute=True)
    for at in range(12):
        repeated = np.repeat(rows.values[:, 0], rows.weights(at))
        assert kept.redraw(at).quantile(0.5) == pytest.approx(np.median(repeated), abs=1e-12)
        assert kept.redraw(at).nmad() == pytest.approx(nmad(repeated), abs=1e-12)
        assert absolute.redraw(at).quantile(0.9) == pytest.approx(np.quantile(np.abs(repeated), 0.9), abs=1e-12)


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 2)), min_size=1, max_size=25))
def test_redraws_survive_ties_and_clusters_that_are_not_drawn(pairs):
    values, cluster = np.array([v for v, _ in pairs], dtype=float), [str(c) for _, c in pairs]
    table = clustered(
        {name: Tally.of(rows={"error": Rows.of(values[np.array(cluster) == name])}) for name in set(cluster)}
    )
    totals = table.totals(multiplicities(len(table.clusters), 5, seed=1))
    rows = totals.rows["error"]
    kept = KeptErrors.of(rows)
    for at in range(5):
        repeated = np.repeat(rows.values[:, 0], rows.weights(at))
        assert kept.redraw(at).nmad() == pytest.approx(nmad(repeated))


def test_redraws_of_large_rasters_never_read_the_histogram_of_the_whole():
    """Clusters of one size and one of them drawn once: the count alone would not tell a redraw from the whole."""
    errors = np.concatenate([np.full(100, -1.0), np.full(100, 0.0), np.full(100, 1.0)]) + normal(300, 0.0, 1e-3)
    table = gathered(errors, "sketch", 0.0, np.repeat([0, 1, 2], 100))
    redraw = table.totals(np.array([[1, 0, 2]]))
    assert whole_sample(redraw) is None
    assert coarse_samples(redraw)[0].quantile(0.5, inside=True)[0] == pytest.approx(1.0, abs=0.02)


def test_sizes_choose_the_way_and_nothing_else_does():
    assert [way_of(n, 64) for n in (0, 2**21, 2**21 + 1, 2**24, 2**24 + 1)] == [
        "rows",
        "rows",
        "exact",
        "exact",
        "sketch",
    ]


def test_two_components_make_one_length():
    assert rmse_of(np.array([3.0, 0.0]), np.array([4.0, 0.0])) == pytest.approx(math.sqrt(12.5))


def test_kept_and_binned_units_add_up_to_one_distribution():
    kept, binned = normal(3000, 0.0, 1.0, seed=1), normal(5000, 0.5, 1.0, seed=2)
    parts = {}
    for name, errors, way in (("a", kept, "rows"), ("b", binned, "sketch")):
        cells = ErrorCells(way, 0.5)
        cells.add(Cell(name), errors)
        parts[name] = next(iter(cells.tallies().values()))
    table = clustered(parts)
    every = np.concatenate([kept, binned])
    value, bound = whole_sample(table.whole()).quantile(0.9)
    assert abs(value - np.quantile(every, 0.9)) <= bound + 1e-9
    (coarse,) = coarse_samples(table.totals(np.array([[2, 1]])))
    repeated = np.concatenate([kept, kept, binned])
    assert coarse.n == len(repeated)
    assert coarse.quantile(0.9, inside=True)[0] == pytest.approx(np.quantile(repeated, 0.9), rel=0.02)


@pytest.mark.parametrize("way", ["rows", "exact", "sketch"])
def test_errors_beyond_float32_are_summed_and_binned_all_the_same(way):
    cells = ErrorCells(way)
    cells.add(Cell("a"), np.array([1e50, -1.0, 0.0]))
    whole = clustered({"a": next(iter(cells.tallies().values()))}).whole()
    assert moments(whole)["bias"][0] == pytest.approx(1e50 / 3)
    assert whole_sample(whole).n == 3
