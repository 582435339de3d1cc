"""Wrong input of every kind: one message that fits on a screen, exit code 2, and nothing written."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

CRS = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32631"}}


@pytest.fixture
def refused(evaluate, cli, tmp_path):
    """Run, and hold what came of it to the rules for refusals; returns the message."""

    def check(said, out=tmp_path / "out"):
        assert said.code == 2, said.out + said.err
        assert said.out == ""
        assert "Traceback" not in said.err
        assert 0 < len(said.err.splitlines()) < 25
        assert len(said.err) < 2000
        assert not out.exists()
        return said.err

    def run(family, *arguments, **sides):
        return check(evaluate(family, "--out", tmp_path / "out", *arguments, **sides))

    run.check = check
    return run


@pytest.fixture
def changed(fixtures, tmp_path):
    """A GeoJSON of the fixtures with something wrong; returns its path."""

    def change(family, side, wrong):
        data = json.loads((fixtures / family / f"{side}.geojson").read_text())
        wrong(data)
        path = tmp_path / f"{side}.geojson"
        path.write_text(json.dumps(data))
        return path

    return change


def raster(path, values, *, crs="EPSG:32631", cell=1.0, origin=(500_000.0, 5_600_000.0), units=None):
    import rasterio
    from rasterio.transform import Affine

    place = Affine(cell, 0, origin[0], 0, -cell, origin[1])
    shape = {"height": values.shape[0], "width": values.shape[1], "dtype": values.dtype, "count": 1}
    with rasterio.open(path, "w", driver="GTiff", crs=crs, transform=place, **shape) as file:
        file.write(values, 1)
        if units:
            file.units = (units,)
    return path


def test_a_missing_file(refused, fixtures):
    said = refused("detection", reference=fixtures / "detection" / "referense.geojson")
    assert "no such file" in said
    assert "did you mean 'reference.geojson'?" in said


def test_a_pattern_without_files(refused, fixtures):
    assert "*.gpkg" in refused("raster", reference=fixtures / "raster" / "reference" / "*.gpkg")


def test_no_crs(refused, tmp_path):
    (tmp_path / "boxes.csv").write_text("image,xmin,ymin,xmax,ymax,score\na,0,0,1,1,0.5\n")
    said = refused("detection", reference=tmp_path / "boxes.csv", prediction=tmp_path / "boxes.csv")
    assert said.startswith("CRSMissing: ")
    assert "pixel" in said


def test_a_system_that_does_not_exist(refused):
    assert "EPSG:99999999" in refused("detection", "--crs=EPSG:99999999")


@pytest.mark.parametrize(
    ("option", "wrong", "near"),
    [
        ("--score", "scroe", "score"),
        ("--prediction-score", "scroe", "score"),
        ("--reference-label", "lable", "label"),
        ("--attribute", "contxt", "context"),
        ("--cluster", "aoii", "aoi"),
    ],
)
def test_a_wrong_column(refused, option, wrong, near):
    said = refused("detection", f"{option}={wrong}")
    assert said.startswith("ColumnError: ")
    assert repr(wrong) in said
    assert f"did you mean {near!r}?" in said


@pytest.mark.parametrize("option", ["--by=regoin", "--critical=regoin=north", "--gate=recall[regoin]>=0.5"])
def test_a_wrong_stratum(refused, option):
    assert "did you mean 'region'?" in refused("detection", option)


def test_a_wrong_cluster_column(refused):
    said = refused("detection", "--cluster=aoii")
    assert "'aoii'" in said
    assert "grid:auto" in said


@pytest.mark.parametrize(("score", "shown"), [(None, "no value"), (1.7, "1.7"), (-0.1, "-0.1"), ("high", "text")])
def test_a_wrong_score(refused, changed, score, shown):
    def wrong(data):
        data["features"][3]["properties"]["score"] = score

    said = refused("detection", "--score=score", prediction=changed("detection", "prediction", wrong))
    assert "prediction.geojson" in said
    assert "'score'" in said
    assert shown in said.lower()


def test_a_score_of_nan(refused, tmp_path):
    (tmp_path / "boxes.csv").write_text("image,xmin,ymin,xmax,ymax,score\na,0,0,1,1,0.5\na,2,2,3,3,nan\n")
    said = refused("detection", "--crs=pixel", reference=tmp_path / "boxes.csv", prediction=tmp_path / "boxes.csv")
    assert "boxes.csv" in said
    assert "'score'" in said


def test_an_invalid_geometry_under_refuse(refused, changed):
    def wrong(data):
        ring = data["features"][5]["geometry"]["coordinates"][0]
        ring[1], ring[2] = ring[2], ring[1]

    path = changed("footprint", "reference", wrong)
    said = refused("footprint", "--on-invalid=refuse", reference=path)
    assert "reference.geojson" in said
    assert "aoi-01-r05" in said or "5" in said
    assert "self-intersection" in said


def test_an_invalid_geometry_is_else_mended_and_told(evaluate, changed):
    def wrong(data):
        ring = data["features"][5]["geometry"]["coordinates"][0]
        ring[1], ring[2] = ring[2], ring[1]

    found = evaluate("footprint", "--json", reference=changed("footprint", "reference", wrong))
    assert found.code == 0
    assert found.json["estimates"]["valid_reference"]["numerator"] == 431
    assert any("self-intersection" in one["says"] for one in found.json["findings"])


def test_different_systems_under_refuse(refused, tmp_path, fixtures):
    import geopandas

    moved = geopandas.read_file(fixtures / "footprint" / "prediction.geojson").to_crs("EPSG:4326")
    moved.to_file(tmp_path / "moved.gpkg")
    said = refused("footprint", "--on-crs-mismatch=refuse", prediction=tmp_path / "moved.gpkg")
    assert said.startswith("CRSMismatch: ")
    assert "EPSG:4326" in said
    assert "EPSG:32631" in said


@pytest.mark.parametrize(
    "other",
    [{"cell": 2.0}, {"origin": (500_000.4, 5_600_000.0)}, {"crs": "EPSG:32632"}],
    ids=["cell size", "offset", "system"],
)
def test_different_grids(refused, tmp_path, other):
    values = np.ones((20, 20), np.uint8)
    one, two = raster(tmp_path / "a.tif", values), raster(tmp_path / "b.tif", values, **other)
    said = refused("raster", reference=one, prediction=two)
    assert said.startswith(("GridMismatch: ", "CRSMismatch: "))
    assert "align" in said


def test_rasters_that_do_not_touch_have_no_figures(evaluate, tmp_path):
    """No refusal: nothing is there to compare, which a finding says, and no gate passes."""
    values = np.ones((20, 20), np.uint8)
    sides = raster(tmp_path / "a.tif", values), raster(tmp_path / "b.tif", values, origin=(600_000.0, 5_600_000.0))
    said = evaluate("raster", "--json", "--gate=accuracy>=0@value", reference=sides[0], prediction=sides[1])
    assert said.code == 2
    assert said.json["estimates"]["accuracy"]["value"] is None
    assert said.json["findings"][0]["code"] == "no-overlap"


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("a.geojson", "detection"),
        ("a.gpkg", "footprint"),
        ("a.csv", "detection"),
        ("a.tif", "raster"),
        ("a.csv", "validation"),
        ("a.json", "validation"),
    ],
)
def test_a_file_of_0_bytes(refused, tmp_path, name, family):
    (tmp_path / name).write_bytes(b"")
    said = refused(family, reference=tmp_path / name, prediction=tmp_path / name)
    assert name in said
    assert "empty" in said or "0 bytes" in said


@pytest.mark.parametrize(
    ("name", "family"), [("a.parquet", "validation"), ("a.parquet", "vector"), ("a.tif", "raster")]
)
def test_bytes_of_another_kind(refused, tmp_path, name, family):
    (tmp_path / name).write_bytes(b"hello, world")
    assert name in refused(family, reference=tmp_path / name, prediction=tmp_path / name)


def test_text_that_is_no_layer(refused, tmp_path):
    (tmp_path / "a.geojson").write_text('{"type": "FeatureCollection", "features": [')
    assert "a.geojson" in refused("detection", reference=tmp_path / "a.geojson")


def test_a_declared_id_with_repeats(refused):
    said = refused("detection", "--reference-id=label")
    assert "unique id in column 'label'" in said


def test_a_guessed_id_with_repeats_is_left_out(evaluate, changed):
    def wrong(data):
        data["features"][1]["properties"]["id"] = data["features"][0]["properties"]["id"]

    found = evaluate("detection", "--json", reference=changed("detection", "reference", wrong))
    assert found.code == 0
    assert any("id" in one["code"] for one in found.json["findings"])


@pytest.mark.parametrize("family", ["raster", "elevation"])
def test_a_raster_that_breaks_off(refused, tmp_path, family):
    """The header can be read and the cells cannot."""
    values = np.random.default_rng(0).integers(0, 9, (400, 400)).astype(np.uint8 if family == "raster" else np.float32)
    whole = raster(tmp_path / "whole.tif", values)
    (tmp_path / "broken.tif").write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    unit = ("--unit=m",) if family == "elevation" else ()
    said = refused(family, *unit, reference=whole, prediction=tmp_path / "broken.tif")
    assert "broken.tif" in said


@pytest.mark.shared
def test_a_corrupt_raster(refused, shared_data):
    path = shared_data / "corrupt_and_odd_files" / "corrupt.tif"
    assert "corrupt.tif" in refused("raster", reference=path, prediction=path)


def test_heights_without_a_unit(refused, tmp_path):
    path = raster(tmp_path / "a.tif", np.ones((9, 9), np.float32))
    said = refused("elevation", reference=path, prediction=path)
    assert said.startswith("UnitMismatch: ")
    assert "unit" in said


def test_units_that_contradict(refused, tmp_path):
    one = raster(tmp_path / "a.tif", np.ones((9, 9), np.float32), units="metre")
    said = refused("elevation", "--unit=ft", reference=one, prediction=one)
    assert said.startswith("UnitMismatch: ")


def test_an_unknown_unit(refused, fixtures):
    assert "'parsec'" in refused("elevation", "--unit=parsec")


def test_an_unknown_family(refused, cli, fixtures):
    said = refused.check(cli("evaluate", "detecton", "--reference=a", "--prediction=b"))
    assert "unknown family 'detecton'; did you mean 'detection'?" in said


def test_an_unknown_command(refused, cli):
    assert "did you mean 'evaluate'?" in refused.check(cli("evalute"))


def test_a_missing_or_an_unknown_option(refused, cli):
    assert "--prediction" in refused.check(cli("evaluate", "detection", "--reference=a"))
    assert "--iuo" in refused.check(cli("evaluate", "detection", "--reference=a", "--prediction=b", "--iuo=0.5"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--gate=recal>=0.9",), "did you mean 'recall'?"),
        (("--gate=le90<=1",), "has no metric 'le90'"),
        (("--gate=recall>0.9",), "limits are inclusive"),
        (("--gate=recall=0.9",), "'>=' or '<='"),
        (("--gate=recall>=90%",), "0.9 and not 90 %"),
        (("--gate=recall",), "a gate reads"),
        (("--gate=recall>=nan",), "a gate reads"),
        (("--gate=",), "a gate reads"),
        (("--buffer=3",), "--buffer is an option of vector, not of detection"),
        (("--unit=m",), "--unit is an option of elevation"),
        (("--design=stratified",), "--design is an option of raster"),
        (("--date-tolerance=1",), "option of change"),
        (("--assume-clean",), "option of validation"),
        (("--recode=1=2",), "SIDE:FROM=TO"),
        (("--recode=predictions:1=2",), "SIDE:FROM=TO"),
        (("--recode=prediction:1",), "SIDE:FROM=TO"),
        (("--cluster=grid:five",), "grid:five"),
        (("--cluster=grid:5parsec",), "'parsec'"),
        (("--cluster=grid:-5m",), "grid:"),
        (("--cluster=grid:0m",), "grid:"),
        (("--assignment=best",), "'optimal'"),
        (("--assignment=optimum",), "'optimal'"),
        (("--on-invalid=fix",), "'repair'"),
        (("--on-invalid=repare",), "did you mean 'repair'?"),
        (("--on-unknown-unit=keep",), "--on-unknown-unit"),
        (("--on-crs-mismatch=warp",), "--on-crs-mismatch"),
        (("--iou=50",), "is it a percentage?"),
        (("--iou=0",), "(0, 1]"),
        (("--iou=-0.5",), "(0, 1]"),
        (("--iou=nan",), "(0, 1]"),
        (("--iou=half",), "--iou"),
        (("--score-min=30",), "is it a percentage?"),
        (("--max-distance=-1",), "positive"),
        (("--max-distance=nan",), "positive"),
        (("--protocol=voc",), "'coco'"),
        (("--critical=region",), "FIELD=VALUE"),
        (("--where=scoer>0.5",), "scoer"),
        (("--where=score >",), "score >"),
        (("--redraws=0",), "--redraws"),
        (("--workers=0",), "--workers"),
        (("--confidence=95",), "--confidence"),
        (("--units=none.csv",), "none.csv"),
        (("--aoi=none.gpkg",), "none.gpkg"),
    ],
)
def test_options(refused, arguments, says):
    assert says in refused("detection", *arguments)


@pytest.mark.parametrize(
    ("family", "arguments", "says"),
    [
        ("raster", ("--iou=0.5",), "--iou is an option of"),
        ("raster", ("--align=cubic",), "--align"),
        ("raster", ("--design=stratfied",), "did you mean 'stratified'?"),
        ("raster", ("--band=3",), "band"),
        ("raster", ("--design=stratified",), "sample points"),
        ("raster", ("--recode=prediction:a=b",), "whole numbers"),
        ("raster", ("--by=region",), "region=FILE"),
        ("raster", ("--cluster=nothing",), "nothing"),
        ("elevation", ("--unit=m", "--band=7"), "band"),
        ("elevation", ("--unit=m", "--gate=rms<=1"), "did you mean 'rmse'?"),
        ("vector", ("--buffer=0",), "buffer"),
        ("vector", ("--attribute=surfaces",), "did you mean 'surface'?"),
        ("footprint", ("--boundary-tolerance=-1",), "boundary_tolerance"),
        ("footprint", ("--layer=nothing",), "nothing"),
        ("change", ("--kind=knid",), "did you mean 'kind'?"),
        ("change", ("--date=yaer",), "did you mean 'year'?"),
        ("change", ("--date-tolerance=-1",), "date_tolerance"),
        ("validation", ("--label=cod",), "did you mean 'code'?"),
        ("validation", ("--by=regoin",), "did you mean 'region'?"),
    ],
)
def test_options_of_other_families(refused, family, arguments, says):
    assert says in refused(family, *arguments)


def test_a_table_of_units_that_lacks_one(refused, tmp_path, fixtures):
    lines = (fixtures / "units.csv").read_text().splitlines(keepends=True)
    (tmp_path / "units.csv").write_text("".join(lines[:-1]))
    said = refused("raster", "--units", tmp_path / "units.csv", "--cluster=aoi")
    assert "aoi-24" in said


@pytest.mark.parametrize("content", [b"", b"name,aoi\naoi-01,a\n", b"unit,aoi\naoi-01,\xff\n"])
def test_a_table_of_units_that_is_none(refused, tmp_path, content):
    (tmp_path / "units.csv").write_bytes(content)
    assert "units.csv" in refused("raster", "--units", tmp_path / "units.csv")


def test_files_that_do_not_pair(refused, tmp_path, fixtures):
    for side, names in (("reference", ("aoi-01", "aoi-02")), ("prediction", ("aoi-01", "aoi-03"))):
        (tmp_path / side).mkdir()
        for name in names:
            shutil.copy(fixtures / "raster" / side / f"{name}.tif", tmp_path / side)
    said = refused("raster", reference=tmp_path / "reference", prediction=tmp_path / "prediction")
    assert "aoi-03" in said or "aoi-02" in said


def test_a_finding_of_unknown_severity(refused, tmp_path):
    (tmp_path / "known.csv").write_text("dataset,feature,code,severity\na,1,V05,grave\n")
    assert "'grave'" in refused("validation", reference=tmp_path / "known.csv")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('cluster = "aoi"', 'cluser = "aoi"', "case[0]: unknown key 'cluser'; did you mean 'cluster'?"),
        ("max_distance_m", "max_distance", "unknown key 'max_distance'; did you mean 'max_distance_m'?"),
        ("[run]", "[rum]", "unknown key 'rum'; did you mean 'run'?"),
        ('family = "vector"', 'family = "vectors"', "'vector'"),
        ("redraws = 40", 'redraws = "40"', "redraws"),
        ("redraws = 40", "redraws = 0", "redraws"),
        ('id = "validation"', 'id = "vector"', "there already"),
        ("reference.geojson", "referense.geojson", "did you mean 'reference.geojson'?"),
        ("[run]", "[run", "own.toml"),
        ("synthetic = true", 'synthetic = "yes"', "must be true or false"),
        ("at_least = 0.5", "at_last = 0.5", "unknown key 'at_last'; did you mean 'at_least'?"),
        ("at_least = 0.5", "", "no direction is guessed"),
        ('metric = "recall"', 'metric = "recal"', "did you mean 'recall'?"),
        ('attributes = ["surface"]', 'attributes = ["surfaces"]', "did you mean 'surface'?"),
    ],
)
def test_configurations(refused, cli, own_benchmark, tmp_path, old, new, says):
    path = own_benchmark('family = "vector"\nmetric = "recall"\nat_least = 0.5')
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    said = refused.check(cli("benchmark", "--config", path, "--out", tmp_path / "out", "--allow-product-blocked"))
    assert says in said


def test_a_configuration_that_is_not_there(refused, cli, tmp_path):
    assert "none.toml" in refused.check(cli("benchmark", "--config", tmp_path / "none.toml"))


def test_a_bound_file_that_is_not_there(refused, cli, own_benchmark, tmp_path):
    path = own_benchmark()
    path.write_text(path.read_text().replace("[bind]", '[bind]\nscripts = ["none.py"]'))
    said = refused.check(cli("benchmark", "--config", path, "--out", tmp_path / "out"))
    assert "bind.scripts" in said


def test_inspect(refused, cli, tmp_path):
    assert "no such file" in refused.check(cli("inspect", tmp_path / "none.gpkg"))
    (tmp_path / "a.geojson").write_bytes(b"")
    assert "a.geojson" in refused.check(cli("inspect", tmp_path / "a.geojson"))
