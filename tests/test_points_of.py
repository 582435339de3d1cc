"""Confidence and correctness of class maps and of sample points."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import rasterio
from click.testing import CliRunner
from rasterio.transform import Affine

from geoeval import points_of
from geoeval.cli.evaluate import command
from geoeval.errors import ColumnError, ConfigError, InputError
from geoeval.estimation import Plan
from geoeval.evaluation import evaluate
from geoeval.evaluators.raster import Raster
from geoeval.options import Columns, Pairing, Source
from geoeval.points_of import confidence_points
from geoeval.readers.points import labelled_points
from geoeval.stats.selective import aurc, ece, risk_coverage

UTM = "EPSG:32633"
PLAN = Plan(redraws=20)
BAND = Columns(score="band:2")
CODES = np.array([[1, 1, 2], [2, 2, 1]], dtype=np.uint8)
SURE = np.array([[0.9, 0.8, 0.7], [0.6, 0.5, 0.33339]], dtype=np.float32)


def write(path, *bands, nodata=None, scale=None, cell=10.0):
    place = Affine(cell, 0, 500_000.0, 0, -cell, 5_000_000.0)
    height, width = bands[0].shape
    options = {"height": height, "width": width, "dtype": bands[-1].dtype, "crs": UTM, "nodata": nodata}
    with rasterio.open(path, "w", driver="GTiff", count=len(bands), transform=place, **options) as dataset:
        for i, band in enumerate(bands, start=1):
            dataset.write(band.astype(bands[-1].dtype), i)
        if scale is not None:
            dataset.scales = (1.0, scale)
    return str(path)


def frame(labels, **more):
    """Points at the centres of the cells of CODES, row by row."""
    at = [(row, column) for row in range(2) for column in range(3)][: len(labels)]
    x, y = [500_005.0 + 10 * c for _, c in at], [4_999_995.0 - 10 * r for r, _ in at]
    return pd.DataFrame({"x": x, "y": y, "label": labels, **more})


def points(reference, prediction, **pairing):
    return confidence_points(evaluate(Raster(), reference, prediction, pairing=Pairing(**pairing), plan=PLAN))


def listed(found):
    return found.confidence.round(4).tolist(), found.correct.tolist()


def test_points_against_a_second_table_with_a_guessed_score():
    """a-a and b-b are right; c has no partner and claims nothing."""
    truth = Source(frame(["a", "b", "b", "c"], aoi=["n", "n", "s", "s"]), crs=UTM)
    other = frame(["a", "a", "b"], score=[0.5, 0.9, 0.7])
    for given in (other, other[::-1].reset_index(drop=True)):
        found = points(truth, Source(given, crs=UTM))
        assert listed(found) == ([0.9, 0.7, 0.5], [0, 1, 1])
        assert found.cluster.tolist() == ["n", "s", "n"]
    assert aurc(found.confidence, found.error) == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)


def test_a_missing_score_and_a_score_that_is_none_are_refused():
    truth = Source(frame(["a", "b"]), crs=UTM)
    for scores in ({}, {"score": [0.5, None]}):
        with pytest.raises(InputError, match="raster: predictions need a confidence each, found some without"):
            points(truth, Source(frame(["a", "a"], **scores), crs=UTM), cluster="none")
    with pytest.raises(InputError, match="found some without"):
        points(truth, Source(frame(["a", "a"], p=[0.5, 0.5]), crs=UTM, columns=Columns(score="")), cluster="none")
    with pytest.raises(ColumnError, match="expected numbers in 'sure'"):
        points(truth, Source(frame(["a", "a"], sure=["x", "y"]), crs=UTM, columns=Columns(score="sure")))


def test_sample_points_take_the_confidence_of_their_cell(tmp_path):
    path = write(tmp_path / "map.tif", CODES, SURE)
    truth = Source(frame(["1", "2", "2", "2", "9"]), crs=UTM)
    found = points(truth, Source(path, columns=BAND), cluster="none")
    assert listed(found) == ([0.9, 0.8, 0.7, 0.6, 0.5], [1, 0, 1, 1, 0])
    assert labelled_points(truth, Source(path), Pairing(cluster="none")).units[0].load().score is None
    read = labelled_points(truth, Source(path, columns=BAND), Pairing(cluster="none"))
    assert read.notes["prediction score"] == "band 2"


def test_every_cell_of_a_map_is_a_point(tmp_path):
    """One cell of the reference has no data; confidences are kept to 1e-4."""
    reference = write(tmp_path / "reference.tif", np.array([[1, 2, 2], [2, 1, 0]], dtype=np.uint8), nodata=0)
    prediction = Source(write(tmp_path / "map.tif", CODES, SURE), columns=BAND)
    assert listed(points(reference, prediction)) == ([0.9, 0.8, 0.7, 0.6, 0.5], [1, 0, 1, 1, 0])
    whole = points(write(tmp_path / "whole.tif", CODES), prediction, cluster="grid:10m")
    assert listed(whole) == ([0.9, 0.8, 0.7, 0.6, 0.5, 0.3334], [1] * 6)
    assert len(set(whole.cluster)) == 6


def test_cells_of_equal_confidence_repeat_and_figures_do_not_change(tmp_path):
    generator = np.random.default_rng(3)
    truth, said = generator.integers(1, 4, (2, 60, 70)).astype(np.uint8)
    sure = (generator.integers(0, 11, (60, 70)) / 10).astype(np.float32)
    reference, path = write(tmp_path / "a.tif", truth), write(tmp_path / "b.tif", said, sure)
    pairing = Pairing(cluster="grid:200m")
    result = evaluate(Raster(), reference, Source(path, columns=BAND), pairing=pairing, plan=PLAN)
    plain = evaluate(Raster(), reference, path, pairing=pairing, plan=PLAN)
    assert {k: result[k] for k in ("accuracy", "kappa")} == {k: plain[k] for k in ("accuracy", "kappa")}
    found = confidence_points(result)
    flat, right = sure.astype(float).ravel().round(4), (truth == said).ravel()
    assert ece(found.confidence, found.correct) == ece(flat, right)
    own, whole = risk_coverage(flat, ~right).areas, risk_coverage(found.confidence, found.error).areas
    assert whole == own


def test_bytes_are_scaled_as_the_file_says_and_percentages_are_refused(tmp_path):
    sure = np.array([[100, 80, 70], [60, 50, 0]], dtype=np.uint8)
    reference = write(tmp_path / "reference.tif", CODES)
    scaled = write(tmp_path / "scaled.tif", CODES, sure, scale=0.01)
    assert listed(points(reference, Source(scaled, columns=BAND)))[0] == [1.0, 0.8, 0.7, 0.6, 0.5, 0.0]
    percent = write(tmp_path / "percent.tif", CODES, sure)
    with pytest.raises(InputError, match=r"expected numbers in \[0, 1\], found 0 to 100 near row 0"):
        points(reference, Source(percent, columns=BAND), cluster="none")


def test_arrays_and_other_grids_bring_their_confidence_along(tmp_path):
    """The prediction's cells are twice as large: each counts four times."""
    found = points(Source(CODES), Source(np.stack([CODES.astype(np.float64), SURE]), columns=BAND))
    assert found.confidence[0] == pytest.approx(0.9)
    fine = write(tmp_path / "fine.tif", np.repeat(np.repeat(CODES, 2, 0), 2, 1), cell=5.0)
    coarse = Source(write(tmp_path / "coarse.tif", CODES, SURE), columns=BAND)
    assert listed(points(fine, coarse, align="nearest")) == (
        np.repeat([0.9, 0.8, 0.7, 0.6, 0.5, 0.3334], 4).tolist(),
        [1] * 24,
    )
    with pytest.raises(ConfigError, match="a majority of cells has no confidence"):
        points(fine, coarse, align="mode")


def test_cells_without_a_confidence_are_refused_and_so_are_too_many(tmp_path, monkeypatch):
    reference = write(tmp_path / "reference.tif", CODES)
    holes = np.where(SURE > 0.85, np.nan, SURE).astype(np.float32)
    with pytest.raises(InputError, match="found some without"):
        points(reference, Source(write(tmp_path / "holes.tif", CODES, holes), columns=BAND))
    monkeypatch.setattr(points_of, "MOST_CELLS", 5)
    with pytest.raises(InputError, match=r"at most 5 cells with a confidence, found 6; draw sample points"):
        points(reference, Source(write(tmp_path / "map.tif", CODES, SURE), columns=BAND))


@pytest.mark.parametrize(
    ("score", "says"), [("p", "a raster has bands"), ("band:0", "has bands"), ("band:1", "of the classes")]
)
def test_a_confidence_band_is_another_band(tmp_path, score, says):
    path = write(tmp_path / "map.tif", CODES, SURE)
    with pytest.raises(ConfigError, match=says):
        points(path, Source(path, columns=Columns(score=score)))
    with pytest.raises(InputError, match="expected band 3, found 2 bands"):
        points(path, Source(path, columns=Columns(score="band:3")))


def test_the_command_line_takes_the_band(tmp_path):
    path = write(tmp_path / "map.tif", CODES, SURE)
    done = CliRunner().invoke(
        command,
        ["raster", "--reference", path, "--prediction", path, "--prediction-score", "band:2", "--json"],
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)
