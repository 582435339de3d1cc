"""Confidence and correctness of every prediction of a result: what risk-coverage, calibration and thresholds take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geoeval.errors import InputError
from geoeval.evaluation import Result
from geoeval.model import FloatArray, IntArray, ObjectArray

#: Columns of the rows that detections leave for calibration.
_SEEN, _SCORE, _CORRECT = "seen@", 0, 1

#: Rows that maps leave: of sample points (score, correct), of whole maps (score, correct, cells).
_SAMPLED, _MAPPED, _CELLS = "calibration", "confidence", 2

#: Most cells of a map that are written out as points.
MOST_CELLS = 5_000_000


@dataclass(frozen=True, slots=True, eq=False)
class ConfidencePoints:
    """One row a prediction, the surest first: its confidence, 1 where it is right, and its cluster.

    In the order in which these stand, whatever the order of features; ``cluster`` is ``""`` where there are none.
    """

    confidence: FloatArray
    correct: IntArray
    cluster: ObjectArray

    def __len__(self) -> int:
        return len(self.confidence)

    @property
    def error(self) -> IntArray:
        """1 where the prediction is wrong."""
        return 1 - self.correct


def confidence_points(result: Result) -> ConfidencePoints:
    """The points of a result whose predictions bear scores.

    Detections are matched by score at IoU 0.5 (points: by distance), as for ``ece`` and ``aurc``; other families as
    they were paired: a hit is right, an invention wrong. What was ignored, filtered or below an operating point is
    left out: it was not claimed. Sample points are right where both labels agree; so are the cells of a map with a
    declared confidence band (``score = "band:2"``), one point a cell, confidences rounded to 1e-4.

    Raises
    ------
    InputError
        Where predictions have no scores: heights, findings, lines, or objects, points and maps without a score column
        or band. Where a map has more than 5 million cells.

    Examples
    --------
    >>> import geopandas, shapely
    >>> from geoeval.evaluation import evaluate
    >>> from geoeval.evaluators.detection import Detection
    >>> from geoeval.stats.selective import risk_coverage
    >>> boxes = [shapely.box(20 * i, 0, 20 * i + 10, 10) for i in range(3)]
    >>> reference = geopandas.GeoDataFrame(geometry=boxes[:2], crs="EPSG:32631")
    >>> prediction = geopandas.GeoDataFrame({"score": [0.9, 0.8, 0.3]}, geometry=boxes, crs="EPSG:32631")
    >>> points = confidence_points(evaluate(Detection(), reference, prediction))
    >>> points.confidence, points.correct
    (array([0.9, 0.8, 0.3]), array([1, 1, 0]))
    >>> risk_coverage(points.confidence, points.error).areas.eaurc
    0.0
    """
    if result.evaluation.family == "detection":
        return _of_ledger(result)
    if result.evaluation.family == "raster":
        return _of_maps(result)
    return _of_records(result)


def _of_ledger(result: Result) -> ConfidencePoints:
    table = result.ledger.by_cluster()
    if any("unscored" in row.tally.sums for row in result.ledger.rows):
        raise _without("detection")
    parts = [part for name, part in sorted(table.rows.items()) if name.startswith(_SEEN)]
    if not parts:
        return _sorted(np.zeros(0), np.zeros(0), np.zeros(0, dtype=object))
    values = np.concatenate([rows for rows, _ in parts])
    names = np.array(table.clusters, dtype=object)
    return _sorted(values[:, _SCORE], values[:, _CORRECT], names[np.concatenate([cluster for _, cluster in parts])])


def _of_maps(result: Result) -> ConfidencePoints:
    table = result.ledger.by_cluster()
    names = np.array(table.clusters, dtype=object)
    known = [table.rows[name] for name in (_SAMPLED, _MAPPED) if name in table.rows]
    if not known or any("unscored" in row.tally.sums for row in result.ledger.rows):
        raise _without("raster")
    values, cluster = known[0]
    if _MAPPED in table.rows:
        cells = values[:, _CELLS].astype(np.int64)
        if cells.sum() > MOST_CELLS:
            raise InputError(
                f"raster: expected at most {MOST_CELLS} cells with a confidence, found {int(cells.sum())}; draw sample "
                "points as the reference, or an area of interest."
            )
        values, cluster = np.repeat(values, cells, axis=0), np.repeat(cluster, cells)
    return _sorted(values[:, _SCORE], values[:, _CORRECT], names[cluster])


def _of_records(result: Result) -> ConfidencePoints:
    family, records = result.evaluation.family, result.records
    if family in ("elevation", "validation"):
        raise _without(family)
    if not len(records):
        return _sorted(np.zeros(0), np.zeros(0), np.zeros(0, dtype=object))
    outcome = records.columns["outcome"].astype(str)
    claimed = records.take((outcome == "tp") | (outcome == "fp"))
    score = np.asarray(claimed.columns["score"], dtype=np.float64)
    if np.isnan(score).any():
        raise _without(family)
    right = (claimed.columns["outcome"].astype(str) == "tp").astype(np.float64)
    return _sorted(score, right, claimed.columns["cluster"])


def _without(family: str) -> InputError:
    return InputError(
        f"{family}: predictions need a confidence each, found some without. Name the score column of the prediction "
        "(--prediction-score; the band of a map as band:2); heights, findings and lines have none."
    )


def _sorted(confidence: FloatArray, correct: FloatArray, cluster: ObjectArray) -> ConfidencePoints:
    order = np.lexsort((cluster.astype(str), correct, -confidence))
    return ConfidencePoints(confidence[order], correct[order].astype(np.int64), cluster[order])
