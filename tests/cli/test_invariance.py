"""The order of features, rows and files and the number of workers change no byte of what is printed or written."""

from __future__ import annotations

import csv
import json
import random
import shutil

import pytest

#: Bound files of a bundle that tell nothing about the bytes of the inputs.
FIGURES = ("metrics.json", "gates.json", "failure-gallery.json")


def shuffled(source, target, *, without=(), seed=1):
    """A copy with features or rows in another order, and some columns left out."""
    generator = random.Random(seed)
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.suffix == ".geojson":
        data = json.loads(source.read_text())
        for feature in data["features"]:
            for name in without:
                feature["properties"].pop(name, None)
        if seed:
            generator.shuffle(data["features"])
        target.write_text(json.dumps(data))
        return target
    with source.open(newline="") as file:
        rows = list(csv.DictReader(file))
    if seed:
        generator.shuffle(rows)
    with target.open("w", newline="") as file:
        writer = csv.DictWriter(file, [name for name in rows[0] if name not in without], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return target


def figures(out):
    """What a run wrote about its figures: documents, ledgers, and raw outcomes without the hashes of the inputs."""
    (folder,) = (out / "runs").iterdir()
    files = {name: (folder / name).read_bytes() for name in FIGURES}
    files |= {path.name: path.read_bytes() for path in (folder / "ledger").iterdir()}
    raw = json.loads((folder / "baseline-raw-predictions.json").read_bytes())
    for case in raw["cases"]:
        case["lineage"].pop("inputs")
    return files | {"raw": json.dumps(raw, sort_keys=True)}


OPTIONS = {
    "detection": ("--by=region", "--gate=recall>=0.8"),
    "footprint": ("--by=region",),
    "vector": ("--by=region", "--attribute=surface"),
    "change": ("--by=season", "--date-tolerance=2"),
    "validation": ("--by=region", "--assume-clean"),
}


@pytest.mark.parametrize("without", [(), ("id",)], ids=["ids", "no ids"])
@pytest.mark.parametrize("family", OPTIONS)
def test_order_of_features(evaluate, fixtures, tmp_path, family, without):
    """Without ids, ties are broken by the content of features."""
    ending = "csv" if family == "validation" else "geojson"
    said = []
    for seed in range(3):
        sides = {
            side: shuffled(
                fixtures / family / f"{side}.{ending}",
                tmp_path / str(seed) / f"{side}.{ending}",
                without=without,
                seed=seed,
            )
            for side in ("reference", "prediction")
        }
        out = tmp_path / f"out{seed}"
        found = evaluate(family, "--json", "--out", out, *OPTIONS[family], **sides)
        said.append((found.code, found.out, figures(out)))
    assert said[0][0] in (0, 3)
    assert said[1:] == said[:1] * 2


def test_order_of_features_that_are_alike(evaluate, tmp_path):
    """Twins with equal scores, and predictions that could go either way: the choice is that of their content."""

    def square(x, **properties):
        ring = [[x, 0], [x + 10, 0], [x + 10, 10], [x, 10], [x, 0]]
        shape = {"type": "Polygon", "coordinates": [[[500_000 + a, b] for a, b in ring]]}
        return {"type": "Feature", "properties": properties, "geometry": shape}

    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32631"}}
    reference = [square(x, aoi="a") for x in (0, 4, 8, 100, 100)]
    prediction = [square(x, aoi="a", score=0.5, label="b") for x in (2, 6, 2, 100, 102, 98)]
    said = []
    for seed in range(5):
        sides = {}
        for side, features in (("reference", reference), ("prediction", prediction)):
            sides[side] = tmp_path / str(seed) / f"{side}.geojson"
            sides[side].parent.mkdir(exist_ok=True)
            random.Random(seed).shuffle(features)
            sides[side].write_text(json.dumps({"type": "FeatureCollection", "crs": crs, "features": features}))
        found = [
            evaluate("detection", "--json", "--assignment", rule, **sides)
            for rule in ("score", "similarity", "optimal")
        ]
        said.append([(one.code, one.out) for one in found])
    assert said[1:] == said[:1] * 4


def test_order_of_sample_points(evaluate, fixtures, tmp_path):
    """The CSV rows of a sample, some of them repeated."""
    import rasterio

    tif = fixtures / "raster" / "reference" / "aoi-01.tif"
    with rasterio.open(tif) as file:
        rows = [
            {"x": x, "y": y, "label": int(file.read(1)[row, column])}
            for row in range(0, 30, 3)
            for column in range(0, 30, 4)
            for x, y in [file.xy(row, column)]
        ]
    rows += [{**rows[0], "label": 9}, rows[5]]
    said = []
    for seed in range(3):
        random.Random(seed).shuffle(rows)
        path = tmp_path / f"{seed}" / "sample.csv"
        path.parent.mkdir()
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, ["x", "y", "label"])
            writer.writeheader()
            writer.writerows(rows)
        found = evaluate(
            "raster",
            "--json",
            "--reference-crs=EPSG:32631",
            "--cluster=grid:50m",
            reference=path,
            prediction=fixtures / "raster" / "prediction" / "aoi-01.tif",
        )
        said.append((found.code, found.out))
    assert said[0][0] == 0
    assert said[1:] == said[:1] * 2


@pytest.mark.parametrize("family", ["raster", "elevation", "footprint"])
def test_number_of_workers(evaluate, fixtures, tmp_path, family):
    """Six units in this process and in two: stdout and the whole bundle are the same."""
    sides = {side: tmp_path / "in" / side for side in ("reference", "prediction")}
    for side, folder in sides.items():
        folder.mkdir(parents=True)
        if family != "footprint":
            for at in range(1, 7):
                shutil.copy(fixtures / family / side / f"aoi-{at:02d}.tif", folder)
            continue
        data = json.loads((fixtures / family / f"{side}.geojson").read_text())
        for at in range(1, 7):
            own = [one for one in data["features"] if one["properties"]["aoi"] == f"aoi-{at:02d}"]
            (folder / f"aoi-{at:02d}.geojson").write_text(json.dumps({**data, "features": own}))
    options = ("--unit=m",) if family == "elevation" else ()
    said = []
    for workers in (1, 2):
        out = tmp_path / f"out{workers}"
        found = evaluate(family, "--json", "--workers", workers, "--out", out, *options, **sides)
        files = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
        said.append((found.code, found.out, files))
    assert said[0][0] == 0
    assert said[0] == said[1]


def test_order_of_files(evaluate, fixtures, tmp_path):
    """Files that pair by name in whatever order the folder lists them; another name of both changes only the unit."""
    for side in ("reference", "prediction"):
        for order, names in enumerate((("aoi-01", "aoi-02"), ("aoi-02", "aoi-01"))):
            folder = tmp_path / str(order) / side
            folder.mkdir(parents=True)
            for name in names:
                shutil.copy(fixtures / "elevation" / side / f"{name}.tif", folder)
    said = [
        evaluate(
            "elevation",
            "--json",
            "--unit=m",
            reference=tmp_path / str(order) / "reference",
            prediction=tmp_path / str(order) / "prediction" / "*.tif",
        )
        for order in (0, 1)
    ]
    assert said[0].code == 0
    assert said[0].out == said[1].out


def test_another_seed_moves_intervals_and_no_figure(evaluate):
    one, other = (evaluate("detection", "--json", "--seed", seed).json["estimates"] for seed in (0, 1))
    assert {name: given["value"] for name, given in one.items()} == {
        name: given["value"] for name, given in other.items()
    }
    assert one["f1"]["interval"] != other["f1"]["interval"]
    assert one["recall"] == other["recall"]
