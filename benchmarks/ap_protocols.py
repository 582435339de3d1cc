"""By how much the default AP and that of COCO differ on the same detections.

Three ways to score each input: the default protocol, ``protocol = "coco"`` (cap of 100 a class and image, file order
breaks ties inside an image), and the twelve COCO figures themselves (``coco_summary``, which the tests hold to
pycocotools within 1e-9). Prints a Markdown table of AP50 and AP50-95, and the widest difference over the seeds.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import shapely

from geoeval import Columns, Detection, Pairing, Plan, Source, run
from geoeval.evaluation import units_of
from geoeval.layers import ObjectPair, Objects
from geoeval.model import Unit
from geoeval.objects.coco import coco_summary
from geoeval.readers.unitset import UnitSet

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "detection"
SEEDS = range(10)
SCENES = (
    ("20 images of 40 boxes, scores all different", 20, 40, None),
    ("20 images of 40 boxes, scores to 2 decimals", 20, 40, 2),
    ("20 images of 40 boxes, scores to 1 decimal", 20, 40, 1),
    ("20 images of 40 boxes, one score for all", 20, 40, 0),
    ("4 images of 200 boxes, scores all different", 4, 200, None),
    ("4 images of 200 boxes, scores to 1 decimal", 4, 200, 1),
    ("1 image of 800 boxes, scores all different", 1, 800, None),
)


def image(name: str, boxes: int, decimals: int | None, rng: np.random.Generator) -> Unit[ObjectPair]:
    """One class: 85 % of the references are found with some jitter, 25 % of the predictions are inventions."""
    corner = rng.uniform(0, 4000, size=(boxes, 2))
    size = rng.uniform(20, 60, size=(boxes, 2))
    found = rng.random(boxes) < 0.85
    moved = corner[found] + rng.normal(0, 3, size=(found.sum(), 2))
    wrong = int(found.sum() / 3)
    at = np.concatenate([moved, rng.uniform(5000, 9000, size=(wrong, 2))])
    extent = np.concatenate([size[found], rng.uniform(20, 60, size=(wrong, 2))])
    score = np.concatenate([rng.beta(5, 2, size=found.sum()), rng.beta(2, 3, size=wrong)])
    score = np.full(len(score), 0.5) if decimals == 0 else score if decimals is None else np.round(score, decimals)
    order = rng.permutation(len(at))
    pair = ObjectPair(side(corner, size), side(at[order], extent[order], score[order]), "px")
    return Unit(name, lambda: pair, cluster=name)


def side(corner: np.ndarray, size: np.ndarray, score: np.ndarray | None = None) -> Objects:
    n = len(corner)
    return Objects(
        geometry=np.asarray(shapely.box(*corner.T, *(corner + size).T), dtype=object),
        id=np.array([f"{i:05d}" for i in range(n)], dtype=object),
        row=np.arange(n),
        label=np.full(n, "box", dtype=object),
        score=score,
        read=n,
    )


def both_figures(units: UnitSet[ObjectPair]) -> tuple[float, ...]:
    """AP50 and AP50-95 by each of the three ways."""
    out: list[float] = []
    for evaluator in (Detection(), Detection(protocol="coco")):
        found = run(evaluator, units, plan=Plan(redraws=1, ranked_redraws=1, clustered=False))
        out += [float(found["ap50"].value or 0), float(found["ap50_95"].value or 0)]
    summary = coco_summary(units.units)
    return (*out, float(summary["AP50"] or 0), float(summary["AP"] or 0))


def fixture(unit_column: str | None) -> UnitSet[ObjectPair]:
    columns = Columns(unit=unit_column)
    sources = [Source(FIXTURES / f"{name}.geojson", columns=columns) for name in ("reference", "prediction")]
    return units_of(Detection(), *sources, Pairing())


def row(name: str, found: list[tuple[float, ...]]) -> str:
    table = np.array(found)
    mean = table.mean(axis=0)
    widest = [np.abs(table[:, i] - table[:, 4 + i]).max() for i in (0, 1)]
    cells = [f"{mean[0]:.4f} / {mean[1]:.4f}", f"{mean[2]:.4f} / {mean[3]:.4f}", f"{mean[4]:.4f} / {mean[5]:.4f}"]
    return f"| {name} | {' | '.join(cells)} | {widest[0]:.4f} / {widest[1]:.4f} |"


def main() -> None:
    print('| input | default | `protocol = "coco"` | COCO figures | widest difference, default to COCO |')
    print("| --- | --- | --- | --- | --- |")
    print(row("bundled fixture, one image of 429 detections", [both_figures(fixture(None))]))
    print(row("bundled fixture, an image for each AOI", [both_figures(fixture("aoi"))]))
    for name, images, boxes, decimals in SCENES:
        found = []
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            units = tuple(image(f"{at:04d}", boxes, decimals, rng) for at in range(images))
            found.append(both_figures(UnitSet(units, clustered=False)))
        print(row(name, found))


if __name__ == "__main__":
    main()
