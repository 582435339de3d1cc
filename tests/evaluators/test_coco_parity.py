"""On pixel boxes the twelve COCO figures equal pycocotools' to 1e-9: ties, crowds, caps and empty images included."""

from __future__ import annotations

import contextlib
import io
from itertools import pairwise

import numpy as np
import pytest
import shapely

from geoeval.evaluators.detection import Detection
from geoeval.layers import ObjectPair, Objects
from geoeval.ledger import Ledger, tally_unit
from geoeval.model import Unit
from geoeval.objects.coco import FIGURES, coco_summary

pycocotools = pytest.importorskip("pycocotools")


def oracle(images: list[dict]) -> dict[str, float | None]:
    """The same images through pycocotools, its −1 as None."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    labels = sorted({a[1] for image in images for a in (*image["reference"], *image["prediction"])})
    number = {label: i + 1 for i, label in enumerate(labels)}
    annotations, results = [], []
    for at, image in enumerate(images, start=1):
        for box, label, crowd in image["reference"]:
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": at,
                    "category_id": number[label],
                    "bbox": box,
                    "area": box[2] * box[3],
                    "iscrowd": int(crowd),
                }
            )
        for box, label, score in image["prediction"]:
            results.append({"image_id": at, "category_id": number[label], "bbox": box, "score": score})
    with contextlib.redirect_stdout(io.StringIO()):
        reference = COCO()
        reference.dataset = {
            "info": {},
            "images": [{"id": at} for at in range(1, len(images) + 1)],
            "annotations": annotations,
            "categories": [{"id": i, "name": label} for label, i in number.items()],
        }
        reference.createIndex()
        evaluation = COCOeval(reference, reference.loadRes(results) if results else COCO(), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return {name: None if value == -1 else float(value) for name, value in zip(FIGURES, evaluation.stats, strict=True)}


def unit(at: int, image: dict) -> Unit[ObjectPair]:
    """One image as a unit; its name sorts like its number."""

    def side(rows: list, scored: bool) -> Objects:
        n = len(rows)
        corners = np.array([row[0] for row in rows], dtype=float).reshape(-1, 4)
        return Objects(
            geometry=np.asarray(
                shapely.box(corners[:, 0], corners[:, 1], corners[:, 0] + corners[:, 2], corners[:, 1] + corners[:, 3]),
                dtype=object,
            ),
            id=np.array([f"{i:05d}" for i in range(n)], dtype=object),
            row=np.arange(n),
            label=np.array([row[1] for row in rows], dtype=object),
            score=np.array([row[2] for row in rows], dtype=float) if scored else None,
            ignore=None if scored else np.array([row[2] for row in rows], dtype=bool),
            read=n,
        )

    pair = ObjectPair(side(image["reference"], scored=False), side(image["prediction"], scored=True), "px")
    return Unit(f"{at:06d}", lambda: pair, cluster=f"{at:06d}")


def images_of(
    seed: int, *, images: int = 6, classes: str = "abc", crowds: bool = True, ties: bool = True
) -> list[dict]:
    """Random boxes on whole and half pixels, half of the predictions shaken references."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(images):
        reference, prediction = [], []
        for _ in range(int(rng.integers(0, 25))):
            size = rng.integers(4, 140, size=2)
            box = [*rng.integers(0, 200, size=2).tolist(), *size.tolist()]
            reference.append((box, str(rng.choice(list(classes))), bool(crowds and rng.random() < 0.15)))
        for box, label, _ in reference:
            for _ in range(int(rng.integers(0, 4))):
                x, y, w, h = box
                shaken = [x + rng.integers(-4, 5) / 2, y + rng.integers(-4, 5) / 2, w + rng.integers(0, 9) / 2, h]
                score = rng.integers(1, 8) / 8 if ties else rng.random()
                kind = label if rng.random() < 0.8 else str(rng.choice([*classes, "z"]))
                prediction.append(([float(v) for v in shaken], kind, float(score)))
        for _ in range(int(rng.integers(0, 8))):
            box = [*rng.integers(0, 200, size=2).tolist(), *rng.integers(4, 100, size=2).tolist()]
            prediction.append((box, str(rng.choice(list(classes))), float(rng.random())))
        rng.shuffle(prediction)
        out.append({"reference": reference, "prediction": [tuple(row) for row in prediction]})
    return out


def same(ours: dict[str, float | None], theirs: dict[str, float | None]) -> None:
    assert list(ours) == list(FIGURES)
    for name in FIGURES:
        if theirs[name] is None:
            assert ours[name] is None, name
        else:
            assert ours[name] == pytest.approx(theirs[name], abs=1e-9), name


@pytest.mark.parametrize("seed", range(8))
def test_the_twelve_figures_equal_pycocotools(seed):
    images = images_of(seed)
    same(coco_summary(unit(at, image) for at, image in enumerate(images, start=1)), oracle(images))


def test_the_cap_of_one_hundred_detections_bites_as_in_pycocotools():
    images = images_of(99, images=2, classes="a")
    rng = np.random.default_rng(5)
    for image in images:
        image["prediction"] += [
            ([*rng.integers(0, 300, size=2).tolist(), 20, 20], "a", float(rng.random())) for _ in range(160)
        ]
    same(coco_summary(unit(at, image) for at, image in enumerate(images, start=1)), oracle(images))


def test_an_image_without_references_and_one_without_predictions_count():
    images = [
        {"reference": [], "prediction": [([0, 0, 10, 10], "a", 0.9)]},
        {"reference": [([0, 0, 10, 10], "a", False)], "prediction": []},
        {"reference": [([0, 0, 50, 50], "a", False)], "prediction": [([0, 0, 50, 50], "a", 0.5)]},
    ]
    same(coco_summary(unit(at, image) for at, image in enumerate(images, start=1)), oracle(images))


def test_a_class_only_among_predictions_is_dropped_and_its_sentinel_is_none():
    images = [{"reference": [], "prediction": [([0, 0, 10, 10], "a", 0.9)]}]
    assert set(coco_summary([unit(1, images[0])]).values()) == {None}


@pytest.mark.parametrize("seed", range(4))
def test_without_ties_and_caps_the_default_protocol_has_the_same_ap(seed):
    """Scores are distinct, and no image holds 100 detections: only the listing of classes differs."""
    images = images_of(seed, ties=False)
    theirs = oracle(images)
    rows = []
    for at, image in enumerate(images, start=1):
        rows.extend(tally_unit(Detection(), unit(at, image))[0])
    found = Detection().ranked(Ledger.of(rows).by_cluster().whole())
    assert found["ap50"].value[0] == pytest.approx(theirs["AP50"], abs=1e-9)
    assert found["ap50_95"].value[0] == pytest.approx(theirs["AP"], abs=1e-9)


def test_tied_scores_are_one_point_by_default_and_pycocotools_order_otherwise():
    """One hit and one invention share a score: COCO's order puts the hit first, and its precision there is 1."""
    image = {
        "reference": [([0, 0, 10, 10], "a", False)],
        "prediction": [([0, 0, 10, 10], "a", 0.5), ([50, 50, 10, 10], "a", 0.5)],
    }
    rows, _ = tally_unit(Detection(), unit(1, image))
    grouped = Detection().ranked(Ledger.of(rows).by_cluster().whole())["ap50"].value[0]
    assert (grouped, coco_summary([unit(1, image)])["AP50"]) == (0.5, pytest.approx(1.0))


def test_scores_are_in_descending_order_in_every_cap():
    images = images_of(3)
    found = coco_summary(unit(at, image) for at, image in enumerate(images, start=1))
    recalls = [found[name] for name in ("AR1", "AR10", "AR100")]
    assert all(a <= b for a, b in pairwise(recalls))
