"""Write the synthetic gold set, the recorded history and the calibration set again: the bytes do not change.

Invented questions about invented maps; no model produced the answers, and they say nothing about any product.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from geoeval.judging.entries import freeze

ROOT = Path(__file__).resolve().parents[1] / "fixtures"
TOWNS = ("Aldmere", "Brackwell", "Corvane", "Dunholt", "Eastrow", "Fenwick", "Garlow", "Hexley", "Ivers", "Jorvale")
TOWNS_MORE = (*TOWNS, "Kestrel", "Lowmoor")
SIGNS = {
    "water": ("river", "lake", "pond"),
    "forest": ("trees", "canopy", "wood"),
    "built": ("roofs", "streets", "yards"),
    "farmland": ("furrows", "crops", "hedges"),
}
FATES = {"demolished": "urgent", "flooded": "urgent", "extended": "routine", "repainted": "routine"}
LAYERS = {"bridge": ("m", "bridges"), "reservoir": ("ha", "water bodies"), "school": ("pupils", "public buildings")}


def generator(name: str) -> np.random.Generator:
    """One generator a file."""
    return np.random.Generator(np.random.PCG64(sum(name.encode())))


def pick(rng: np.random.Generator, values: Any) -> Any:
    """One of several values."""
    return list(values)[int(rng.integers(len(values)))]


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """JSON Lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())


def gold() -> list[dict[str, Any]]:
    """Twelve towns of two map sheets, eight cases a town: scenes, change kinds, facts of a map, its summary."""
    rng = generator("gold")
    rows: list[dict[str, Any]] = []
    for town in TOWNS_MORE:
        for at in range(3):
            label = pick(rng, SIGNS)
            other = pick(rng, [one for one in SIGNS if one != label])
            signs = list(SIGNS[label])
            # A tile at the edge of two classes shows as many signs of the one as of the other.
            text = f"Tile {at} of {town} shows {signs[0]} and {signs[1]}"
            text += f" beside {SIGNS[other][0]} and {SIGNS[other][1]}." if rng.integers(4) == 0 else f" and {signs[2]}."
            params = {"labels": list(SIGNS)}
            rows.append({"task": "classify", "input": text, "params": params, "expect": label, "cluster": town})
        for at in range(2):
            fate = pick(rng, FATES)
            text = f"Building {at} of {town} was {fate} between the two images."
            if rng.integers(5) == 0:
                other = pick(rng, [one for one in FATES if FATES[one] != FATES[fate]])
                text = f"Building {at} of {town} was {fate}; the annex was {other}."
            params = {"labels": ["urgent", "routine"]}
            rows.append({"task": "triage", "input": text, "params": params, "expect": FATES[fate], "cluster": town})
        for at in range(2):
            about = "about " if rng.integers(5) == 0 else ""
            width = f"{int(rng.integers(3, 40))}.{int(rng.integers(1, 10))}"
            text = f"Reach {at}: a stream named {town}brook is {about}{width} m wide at the weir."
            rows.append({"task": "extract", "input": text, "cluster": town})
        sign = "with a sign " if rng.integers(4) == 0 else ""
        text = f"The bridge {sign}over {town}brook is closed. The ford has {int(rng.integers(1, 9))} dm of water."
        rows.append({"task": "summarize", "input": text, "cluster": town})
    for at, row in enumerate(rows):
        row["cluster"] += " east" if at % 2 else " west"
    return rows


def history(n: int = 120) -> list[dict[str, Any]]:
    """Recorded answers about a map, with what a verifier that holds the map's record says of each."""
    rng = generator("history")
    rows = []
    for at in range(n):
        what = pick(rng, LAYERS)
        unit, layer = LAYERS[what]
        place, value, year = pick(rng, TOWNS), int(rng.integers(10, 900)), int(rng.integers(2015, 2025))
        good = {name: bool(rng.integers(10) < 7) for name in ("place", "number", "unit", "source", "caveat")}
        other = pick(rng, [town for town in TOWNS if town != place])
        answer = f"The {what} of {place if good['place'] else other} has {value if good['number'] else value + 7} "
        answer += (unit if good["unit"] else "in all") + (f", by the layer {layer}" if good["source"] else "")
        answer += f", as of {year}." if good["caveat"] else "."
        record = {"place": place, "value": value, "unit": unit, "layer": layer, "year": year}
        outcome = good["place"] and good["number"] and good["unit"]
        rows.append(
            {
                "task_id": f"map-{at:03d}",
                "episode": {"question": f"How large is the {what} of {place}?", "map": record, "answer": answer},
                "outcome": "pass" if outcome else "fail",
                "dimensions": {name: "pass" if value else "fail" for name, value in good.items()},
            }
        )
    return rows


def main() -> None:
    """Write all files."""
    write(ROOT / "replay" / "gold.jsonl", gold())
    write(ROOT / "judge" / "history.jsonl", history())
    (ROOT / "judge" / "set.jsonl").write_bytes(freeze(ROOT / "judge" / "history.jsonl").content)


if __name__ == "__main__":
    main()
