"""Files of challenge cases, whatever an evaluator is given: a link, a copy, another format, another layer."""

from __future__ import annotations

import json
import shutil

import pytest

from geoeval.errors import InputError, LeakageError
from geoeval.splits import SplitSettings, bind_evaluation, build
from geoeval.splits.evaluation import assert_evaluation_assets, challenge_files, shape_hashes

KEY = b"sixteen bytes of a test key"


class Sealed:
    """One training, one test and one challenge sample with files."""

    def __init__(self, world):
        self.root = world.root
        records = [world.record("p0", 0, split="train"), world.record("p1", 1, split="test")]
        records.append(world.record("p2", 2, split="challenge"))
        settings = SplitSettings(shares={"train": 0.34, "test": 0.33, "challenge": 0.33}, required=())
        result = build(world.write(records), settings, key=KEY)
        self.manifest = result.manifests["protected"]
        self.binding = bind_evaluation(self.manifest, self.manifest.sha256)

    def ask(self, path, key=None):
        assert_evaluation_assets(self.binding, self.manifest, [self.root / path], self.root, key=key)

    def hide(self):
        """The files of the challenge sample lie elsewhere."""
        vault = self.root.parent / "vault"
        for name in ("raw/p2.tif", "processed/p2.tif", "labels/p2.geojson"):
            (vault / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).rename(vault / name)
        return vault


@pytest.fixture
def sealed(world):
    return Sealed(world)


def written_again(source, target, layer=None):
    """The same features in another format."""
    import geopandas as gpd

    frame = gpd.read_file(source)
    frame["note"] = "new"
    frame.iloc[::-1].to_file(target, layer=layer) if layer else frame.to_file(target)


@pytest.mark.parametrize(
    "name", ["raw/p1.tif", "processed/p1.tif", "labels/p1.geojson", "labels/p0.geojson", "none.tif"]
)
@pytest.mark.parametrize("key", [None, KEY])
def test_other_files_pass(sealed, name, key):
    sealed.ask(name, key)


@pytest.mark.parametrize("name", ["raw/p2.tif", "processed/p2.tif", "labels/p2.geojson"])
def test_a_copy_is_known_by_its_bytes(sealed, name):
    shutil.copy(sealed.root / name, sealed.root / "case.bin")
    with pytest.raises(LeakageError, match=r"'case.bin' is a file of the challenge case 'p2', by its bytes"):
        sealed.ask("case.bin")


@pytest.mark.parametrize("name", ["raw/p2.tif", "processed/p2.tif", "labels/p2.geojson"])
def test_with_the_key_a_copy_is_known_of_a_file_that_is_not_at_hand(sealed, name):
    shutil.copy(sealed.hide() / name, sealed.root / "case.bin")
    sealed.ask("case.bin")
    with pytest.raises(LeakageError, match=r"'case.bin' is a file of the challenge case 'p2', by its bytes"):
        sealed.ask("case.bin", KEY)


@pytest.mark.parametrize("target", ["case.geojson", "case.gpkg", "case.shp", "case.fgb"])
def test_a_label_in_another_format_is_known_by_its_shapes(sealed, target):
    written_again(sealed.root / "labels/p2.geojson", sealed.root / target)
    written_again(sealed.root / "labels/p1.geojson", sealed.root / f"other-{target}")
    with pytest.raises(LeakageError, match=f"'{target}' is a file of the challenge case 'p2', by its shapes"):
        sealed.ask(target)
    sealed.hide()
    sealed.ask(target)
    with pytest.raises(LeakageError, match=f"'{target}' is a file of the challenge case 'p2', by its shapes"):
        sealed.ask(target, KEY)
    sealed.ask(f"other-{target}", KEY)


def test_a_label_is_known_in_any_layer_of_a_file(sealed):
    for name in ("p1", "p2"):
        written_again(sealed.root / f"labels/{name}.geojson", sealed.root / "case.gpkg", layer=name)
    assert len(shape_hashes(sealed.root / "case.gpkg")) == 2
    with pytest.raises(LeakageError, match=r"'case.gpkg' is a file of the challenge case 'p2', by its shapes"):
        sealed.ask("case.gpkg")


def test_a_file_without_geometry_has_no_shapes(sealed):
    (sealed.root / "units.csv").write_text("unit,aoi\na,b\n")
    (sealed.root / "broken.geojson").write_text("{")
    (sealed.root / "pixels.csv").write_text("xmin,ymin,xmax,ymax\n0,0,2,2\n")
    assert shape_hashes(sealed.root / "units.csv") == ()
    assert shape_hashes(sealed.root / "broken.geojson") == ()
    assert len(shape_hashes(sealed.root / "pixels.csv")) == 1


def test_a_point_without_a_place_hides_nothing(sealed):
    points = "lon,lat\n5.0,50.0\n6.0,51.0\n"
    (sealed.root / "a.csv").write_text(points)
    (sealed.root / "b.csv").write_text(points + "nan,50.0\n")
    (sealed.root / "c.csv").write_text(points + "inf,50.0\n")
    assert len({shape_hashes(sealed.root / name) for name in ("a.csv", "b.csv", "c.csv")}) == 1


def test_what_stays_sealed_is_said(sealed):
    assert challenge_files(sealed.binding, sealed.manifest, sealed.root).claim_limits == ()
    sealed.hide()
    limit = ("challenge hashes stay sealed: byte copies of challenge files cannot be recognised",)
    assert challenge_files(sealed.binding, sealed.manifest, sealed.root).claim_limits == limit
    assert challenge_files(sealed.binding, sealed.manifest, sealed.root, key=KEY).claim_limits == ()


def test_a_key_that_opens_nothing_is_refused(sealed):
    with pytest.raises(InputError, match="does not open the hashes of the challenge files"):
        sealed.ask("raw/p1.tif", b"another key of sixteen bytes")


def test_a_label_without_a_feature_belongs_to_nobody(world):
    empty = json.dumps({"type": "FeatureCollection", "features": []})
    (world.root / "empty.geojson").write_text(empty)
    record = world.record
    world.record = lambda name, place, **more: {**record(name, place, **more), "label": "empty.geojson"}
    sealed = Sealed(world)
    (world.root / "case.geojson").write_text(empty)
    sealed.ask("case.geojson")
    sealed.ask("case.geojson", KEY)


@pytest.mark.parametrize("key", [None, KEY])
def test_a_mask_packed_again_is_known_by_its_values(world, key):
    """A raster that stands as the reference of an evaluation; its twin shows other values."""
    from PIL import Image

    def mask(name, seed, **more):
        values = (world.surface(seed) > 0.6).astype("uint8")
        Image.fromarray(values).save(world.root / name, **more)
        return name

    record = world.record
    world.record = lambda name, place, **more: {**record(name, place, **more), "label": mask(f"m-{name}.png", name)}
    sealed = Sealed(world)
    sealed.ask(mask("other.tif", "other"))
    mask("case.tif", "p2", compression="tiff_lzw")
    if key is not None:
        (world.root / "m-p2.png").unlink()
    with pytest.raises(LeakageError, match=r"'case.tif' is a file of the challenge case 'p2', by its shapes"):
        sealed.ask("case.tif", key)


def test_a_flat_image_is_known_by_its_bytes_although_it_looks_like_an_empty_mask(world):
    from PIL import Image

    record = world.record

    def flat(name, place, **more):
        path = world.root / f"flat-{name}.png"
        Image.new("L", (64, 64), 10 + place).save(path)
        return {**record(name, place, **more), "processed_image": path.name}

    world.record = flat
    sealed = Sealed(world)
    shutil.copy(world.root / "flat-p2.png", world.root / "case.png")
    for key in (None, KEY):
        with pytest.raises(LeakageError, match="by its bytes"):
            sealed.ask("case.png", key)
    sealed.ask("flat-p1.png", KEY)
