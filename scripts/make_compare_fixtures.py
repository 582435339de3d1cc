"""Write the synthetic predictions of the comparison again: blocked, go and leaked corpora, and scenes.

The numbers are invented and the keys are fabricated: no model produced them, and they say nothing about any. The bytes
do not change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1] / "fixtures" / "compare"
TYPES = tuple(range(1, 8))
SCENES = ("cropland", "forest", "urban", "water")

#: Subjects of each split, and the first bytes that their keys may have.
SUBJECTS = {"train": (4, range(205)), "validation": (21, range(205, 230)), "test": (28, range(230, 256))}

Record = dict[str, Any]


def generator(name: str) -> np.random.Generator:
    """One generator a model and corpus, so that a change in one leaves the others as they are."""
    return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")))


def subjects() -> Iterator[tuple[str, str]]:
    """Fabricated keys with the split that their first byte gives."""
    for split, (count, firsts) in SUBJECTS.items():
        for number in range(count):
            rest = hashlib.sha256(f"{split}-{number}".encode()).hexdigest()[:14]
            yield f"{firsts[number * len(firsts) // count]:02x}{rest}", split


def photos(model: str, wrong: float, surety: tuple[float, float]) -> Iterator[Record]:
    """Two photos a subject, labels in turn.

    Of every 14, one is answered by nothing and one unsurely. Wrong answers of a good model are unsure ones, those of a
    bad model are as sure as the right ones.
    """
    rng = generator(model)
    for number, (key, split) in enumerate(subject for subject in subjects() for _ in range(2)):
        truth = TYPES[number % 7]
        other = TYPES[(number + 1 + int(rng.integers(5))) % 7]
        sure = round(float(rng.uniform(*surety)), 3)
        missed = float(rng.random()) < wrong
        prediction: dict[str, Any] | None = {"bristolType": other if missed else truth, "confidence": sure}
        if number % 14 == 3:
            prediction = None
        elif number % 14 == 9:
            prediction = {"bristolType": other, "confidence": round(float(rng.uniform(0.3, 0.59)), 3)}
        yield {
            "model": model,
            "subjectKey": key,
            "split": split,
            "truth": {"bristolType": truth},
            "prediction": prediction,
            "quality": ("clear", "usable")[number % 2],
        }


def with_blurred(records: list[Record]) -> list[Record]:
    """Motion blur: a wrong answer of confidence 0.94 on a photo of poor quality, once a model and scored split."""
    out = [dict(record) for record in records]
    for model in sorted({record["model"] for record in out}):
        for split in ("validation", "test"):
            one = next(r for r in out if r["model"] == model and r["split"] == split and r["prediction"] is not None)
            wrong = TYPES[one["truth"]["bristolType"] % 7]
            one |= {"quality": "poor", "prediction": {"bristolType": wrong, "confidence": 0.94}}
    return out


def with_leak(records: list[Record]) -> list[Record]:
    """One subject of the test split that is declared to be in validation as well."""
    out = [dict(record) for record in records]
    one = next(record for record in out if record["split"] == "test")
    return [*out, {**one, "split": "validation"}]


def tiles(model: str, wrong: float, surety: tuple[float, float]) -> Iterator[Record]:
    """Four tiles of each area, one a scene; the key of an area is a hash of its name."""
    rng = generator(f"scenes-{model}")
    taken = {"train": 0, "validation": 0, "test": 0}
    for number in range(400):
        aoi = f"aoi-{number:03d}"
        key = hashlib.sha256(aoi.encode()).hexdigest()[:16]
        byte = int(key[:2], 16)
        split = "train" if byte < 205 else "validation" if byte < 230 else "test"
        taken[split] += 1
        if taken[split] > {"train": 2, "validation": 16, "test": 30}[split]:
            continue
        for at, truth in enumerate(SCENES):
            other = SCENES[(at + 1 + int(rng.integers(3))) % 4]
            unsure = float(rng.random()) < 0.15
            missed = float(rng.random()) < (0.55 if unsure else wrong)
            sure = round(float(rng.uniform(*surety)), 3)
            low = round(float(rng.uniform(0.35, 0.6)), 3)
            yield {
                "model": model,
                "subjectKey": key,
                "split": split,
                "aoi": aoi,
                "tile": f"{aoi}/{at}",
                "truth": {"scene": truth},
                "prediction": {"scene": other if missed else truth, "confidence": low if unsure else sure},
            }


def write(name: str, records: list[Record]) -> None:
    """One record a line."""
    ROOT.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records)
    (ROOT / name).write_bytes(text.encode())


def main() -> None:
    """Write all corpora."""
    old = list(photos("baseline", 0.25, (0.85, 1.0)))
    good = list(photos("specialist", 0.05, (0.93, 1.0)))
    poor = list(photos("specialist-early", 0.18, (0.9, 1.0)))
    write("go.jsonl", with_blurred([*old, *good]))
    write("blocked.jsonl", with_blurred([*old, *poor]))
    write("leaked.jsonl", with_leak(with_blurred([*old, *good])))
    write("scenes.jsonl", [*tiles("forest-net", 0.03, (0.93, 1.0)), *tiles("simple-rules", 0.2, (0.7, 0.95))])


if __name__ == "__main__":
    main()
