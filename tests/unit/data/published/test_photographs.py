import json

import numpy as np
import pytest
from PIL import Image

from helpers.official import devkit, imagenet, photograph, tiny
from propos.common.errors import InputError
from propos.data import CATALOGUE, StreamedSource, find_source
from propos.data.published.imagenet import subset

CLASSES = ("n01440764", "n02102040", "n02979186")


@pytest.fixture(autouse=True)
def _caches(tmp_path, monkeypatch):
    monkeypatch.setenv("PROPOS_CACHE", str(tmp_path / "caches"))


def plain(path, side):
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB").resize((side, side), Image.Resampling.BICUBIC)).transpose(2, 0, 1)


def test_a_subset_takes_its_classes_from_the_official_folders(tmp_path):
    imagenet(tmp_path / "ILSVRC2012", [*subset("imagenet-10"), "n01440764"], train=1)
    found = find_source("imagenet-10", data=tmp_path)
    assert (found.images, found.channels, found.labelled) == (10, 3, True)
    source = found.open(40)
    assert source.name == "imagenet-10"
    assert source.labels.tolist() == list(subset("imagenet-10"))
    assert source.image_names()[0] == "train/n02056570/n02056570_0.JPEG"
    path = tmp_path / "ILSVRC2012" / source.image_names()[3]
    assert np.array_equal(source.batch(np.array([3]))[0], plain(path, 40))
    assert source.statistics == ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


@pytest.mark.parametrize("folder", ["imagenet", "ImageNet", "ILSVRC/Data/CLS-LOC"])
def test_imagenet_is_found_in_the_other_usual_folders(tmp_path, folder):
    imagenet(tmp_path / folder, CLASSES)
    assert find_source("imagenet-1k", data=tmp_path).images == 6


def test_subsets_are_of_the_published_sizes():
    for name in ("imagenet-10", "imagenet-dogs", "imagenet-50", "imagenet-100", "imagenet-200"):
        assert len(set(subset(name))) == len(subset(name)) == CATALOGUE[name].classes
    assert set(subset("imagenet-50")) <= set(subset("imagenet-100")) <= set(subset("imagenet-200"))


def test_a_missing_class_is_named(tmp_path):
    imagenet(tmp_path / "ILSVRC2012", subset("imagenet-10")[1:], train=1)
    with pytest.raises(InputError, match=r"train/n02056570: get it from https://image-net\.org"):
        find_source("imagenet-10", data=tmp_path)


def test_imagenet_1k_is_streamed(tmp_path):
    imagenet(tmp_path / "ILSVRC2012", CLASSES)
    with find_source("imagenet-1k", data=tmp_path).open(40) as source:
        assert isinstance(source, StreamedSource)
        assert source.labels.tolist() == [label for label in CLASSES for _ in range(2)]
        path = tmp_path / "ILSVRC2012" / source.image_names()[5]
        assert np.array_equal(source.batch(np.array([5]))[0], plain(path, 40))
    assert not (tmp_path / "caches").exists()


def test_validation_images_are_taken_from_class_folders(tmp_path):
    imagenet(tmp_path / "ILSVRC2012", CLASSES)
    with find_source("imagenet-1k:val", data=tmp_path).open(40) as source:
        assert source.image_names()[1] == "val/n02102040/ILSVRC2012_val_00000002.JPEG"
        assert source.labels.tolist() == list(CLASSES)
    assert find_source("imagenet-1k:train+val", data=tmp_path).images == 9


@pytest.mark.parametrize("parent", [".", "ILSVRC2012"])
def test_validation_images_in_one_folder_get_their_classes_from_the_devkit(tmp_path, parent):
    for number in (1, 2, 4):
        photograph(tmp_path / "ILSVRC2012" / "val" / f"ILSVRC2012_val_{number:08d}.JPEG", number)
    (tmp_path / "ILSVRC2012" / "train").mkdir()
    with pytest.raises(InputError, match=r"ILSVRC2012_devkit_t12/data/meta\.mat: get it from"):
        find_source("imagenet-1k:val", data=tmp_path)
    devkit(tmp_path / parent, CLASSES, [3, 1, 2, 1])
    with find_source("imagenet-1k:val", data=tmp_path).open(40) as source:
        assert source.image_names()[2] == "val/ILSVRC2012_val_00000004.JPEG"
        assert source.labels.tolist() == ["n02979186", "n01440764", "n01440764"]
    with pytest.raises(InputError, match="there are no images in"):
        find_source("imagenet-10:val", data=tmp_path)


def test_a_devkit_that_cannot_be_read_is_named(tmp_path):
    photograph(tmp_path / "ILSVRC2012" / "val" / "ILSVRC2012_val_00000001.JPEG")
    devkit(tmp_path, CLASSES, [4])
    data = tmp_path / "ILSVRC2012_devkit_t12" / "data"
    with pytest.raises(InputError, match=r"ground_truth\.txt: contains classes that meta.mat does not have"):
        find_source("imagenet-1k:val", data=tmp_path)
    (data / "meta.mat").write_bytes(b"no such file")
    with pytest.raises(InputError, match=r"meta\.mat: cannot be read"):
        find_source("imagenet-1k:val", data=tmp_path)


def test_tiny_imagenet_is_read_from_its_folders_and_its_annotations(tmp_path):
    folder = tmp_path / "tiny-imagenet-200"
    tiny(folder, CLASSES)
    found = find_source("tiny-imagenet", data=tmp_path)
    assert (found.images, found.height, found.width) == (6, 64, 64)
    source = found.open(256)
    assert source.labels.tolist() == [label for label in CLASSES for _ in range(2)]
    assert np.array_equal(source.batch(np.array([4]))[0], plain(folder / source.image_names()[4], 64))
    val = find_source("tiny-imagenet:val", data=tmp_path).open(64)
    assert val.image_names()[0] == "val/images/val_0.JPEG"
    assert val.labels.tolist() == list(reversed(CLASSES))


@pytest.mark.parametrize("line", ["val_0.JPEG n01440764", "../../x.JPEG\tn01440764", "\tn01440764", ""])
def test_a_line_of_annotations_that_is_none_is_named(tmp_path, line):
    tiny(tmp_path / "tiny-imagenet-200", CLASSES)
    path = tmp_path / "tiny-imagenet-200" / "val" / "val_annotations.txt"
    path.write_text(f"val_0.JPEG\tn01440764\t0\t0\t1\t1\n{line}\n")
    with pytest.raises(InputError, match="line 2 is not a file name and a class"):
        find_source("tiny-imagenet:val", data=tmp_path)


@pytest.mark.real_data("tiny-imagenet-200")
def test_real_tiny_imagenet_agrees_with_a_plain_reading(data_root):
    folder = data_root / "tiny-imagenet-200"
    found = find_source("tiny-imagenet", data=data_root)
    assert found.images == len(list(folder.glob("train/*/images/*.JPEG")))
    val = find_source("tiny-imagenet:val", data=data_root).open(64)
    annotations = dict(
        line.split("\t")[:2] for line in (folder / "val" / "val_annotations.txt").read_text().splitlines()
    )
    assert len(val) == len(annotations)
    assert {
        name.rpartition("/")[2]: label for name, label in zip(val.image_names(), val.labels, strict=True)
    } == annotations
    for position in (0, len(val) - 1):
        assert np.array_equal(val.batch(np.array([position]))[0], plain(folder / val.image_names()[position], 64))
    assert set(np.unique(val.labels)) <= set((folder / "wnids.txt").read_text().split())


@pytest.mark.real_data("imagenette-160")
def test_real_photographs_in_class_folders_are_streamed(data_root, tmp_path):
    (tmp_path / "ILSVRC2012").symlink_to(data_root / "imagenette-160")
    with find_source("imagenet-1k:val", data=tmp_path).open(32) as source:
        assert len(source) == len(list((data_root / "imagenette-160" / "val").glob("*/*.JPEG")))
        assert len(np.unique(source.labels)) == 10
        assert source.batch(np.array([0, len(source) - 1])).shape == (2, 3, 32, 32)


@pytest.mark.real_data
def test_the_class_lists_are_the_published_ones(data_root):
    facts = data_root.parent / "facts" / "imagenet-subsets.json"
    if not facts.exists():
        pytest.skip("no published class lists here")
    for name, classes in json.loads(facts.read_text()).items():
        assert subset(name) == tuple(classes)
