import zipfile

import numpy as np
import pytest
from PIL import Image

from helpers.awkward import awkward_folder, picture
from propos.data import closing_source, distinct_images, find_source, open_folder, open_streamed, pixel_statistics


@pytest.fixture(autouse=True)
def _caches(tmp_path, monkeypatch):
    monkeypatch.setenv("PROPOS_CACHE", str(tmp_path / "caches"))


def small_set(folder, width, height, channels=1, count=4):
    for number in range(count):
        path = folder / f"class{number % 2}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        picture(width, height, channels, seed=number).save(path)
    return folder


def test_an_awkward_folder_is_read_with_an_exact_list_of_what_is_not(tmp_path):
    awkward = awkward_folder(tmp_path / "photos")
    for _ in range(2):  # built, then from the cache
        source = open_folder(awkward.root, 16)
        assert {skipped.path: skipped.reason for skipped in source.skipped} == awkward.skipped
        assert len(source.skipped) == len(awkward.skipped)
        assert source.image_names() == sorted(awkward.images)
        aspects = [awkward.images[name][0] / awkward.images[name][1] for name in source.image_names()]
        assert source.aspects.tolist() == pytest.approx(aspects)
        assert (len(source), source.channels, source.height, source.width) == (len(awkward.images), 3, 16, 16)
    with open_streamed(awkward.root, 16) as streamed:
        names = list(streamed.image_names())
        everything = streamed.batch(np.arange(len(streamed)))
        good = [names.index(name) for name in source.image_names()]
        assert np.array_equal(everything[good], source.batch(np.arange(len(source))))
        assert {skipped.path: skipped.reason for skipped in streamed.skipped} == awkward.skipped


def test_a_folder_is_a_source(tmp_path):
    source = open_folder(small_set(tmp_path / "photos", 80, 80, 3), 20, workers=0)
    assert (source.name, source.root, source.labels) == ("photos", tmp_path / "photos", None)
    assert (source.black, source.white) == (0.0, 255.0)
    batch = source.batch(np.array([3, 0]))
    assert batch.shape == (2, 3, 20, 20)
    assert batch.flags.c_contiguous
    assert batch.flags.writeable
    with Image.open(tmp_path / "photos" / "class1" / "3.png") as image:
        alone = np.asarray(image.resize((20, 20), Image.Resampling.BICUBIC))
    assert source.image_names()[3] == "class1/3.png"
    assert np.array_equal(batch[0].transpose(1, 2, 0), alone)
    assert distinct_images(source, 10) == 4
    assert len(pixel_statistics(source)[0]) == 3


@pytest.mark.parametrize("keep", ["build", "stream"])
def test_folders_are_labels_below_splits_and_of_images_that_can_be_read(tmp_path, keep):
    for split, image in (("train", "cat/1"), ("train", "dog/2"), ("val", "dog/1"), ("val", "eel/1")):
        path = tmp_path / split / f"{image}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        picture(80, 70, 3).save(path)
    damaged = tmp_path / "train" / "cat" / "2.png"
    damaged.write_bytes(path.read_bytes()[:-2000])
    unopened = find_source(tmp_path, labels="folders")
    assert unopened.folders.splits == ["train", "val"]
    source = unopened.open(20, keep=keep)
    with closing_source(source):
        labels = dict(zip(source.image_names(), source.labels.tolist(), strict=True))
    labels.pop("train/cat/2.png", None)  # a stream learns of it later
    assert labels == {
        "train/cat/1.png": "cat",
        "train/dog/2.png": "dog",
        "val/dog/1.png": "dog",
        "val/eel/1.png": "eel",
    }


def test_small_images_of_one_size_are_used_as_they_are(tmp_path):
    source = open_folder(small_set(tmp_path / "digits", 28, 28), 96, workers=0)
    assert (source.channels, source.height, source.width) == (1, 28, 28)
    assert np.array_equal(source.batch(np.array([0]))[0, 0], np.asarray(picture(28, 28, 1, seed=0)))


def test_small_images_that_are_not_square_are_squashed_to_their_longer_side(tmp_path):
    source = open_folder(small_set(tmp_path / "wide", 64, 48), 96, workers=0)
    assert (source.height, source.width) == (64, 64)
    assert source.aspects.tolist() == [64 / 48] * 4


def test_images_of_several_sizes_get_the_requested_side(tmp_path):
    small_set(tmp_path / "mixed", 28, 28)
    picture(30, 28, 1).save(tmp_path / "mixed" / "z.png")
    assert open_folder(tmp_path / "mixed", 96, workers=0).width == 96


def test_channels_can_be_requested(tmp_path):
    grey = small_set(tmp_path / "grey", 28, 28)
    assert open_folder(grey, 28, channels=3, workers=0).channels == 3
    colour = small_set(tmp_path / "colour", 28, 28, channels=3)
    assert open_folder(colour, 28, channels=1, workers=0).channels == 1


def test_labels_come_from_a_csv_that_names_all(tmp_path):
    small_set(tmp_path, 10, 10)
    rows = ["image,label", "class1/1.png,cat", "class0/0.png,dog"]
    (tmp_path / "list.csv").write_text("\n".join(rows))
    assert open_folder(tmp_path / "list.csv", 10, workers=0).labels.tolist() == ["cat", "dog"]
    (tmp_path / "list.csv").write_text("\n".join([*rows, "class0/2.png,"]))
    assert open_folder(tmp_path / "list.csv", 10, workers=0).labels is None


def test_a_zip_gives_the_same_images_as_its_folder(tmp_path):
    folder = small_set(tmp_path / "photos", 70, 60, 3)
    with zipfile.ZipFile(tmp_path / "photos.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*.png")):
            archive.write(path, path.relative_to(folder))
    source, zipped = open_folder(folder, 16, workers=0), open_folder(tmp_path / "photos.zip", 16, workers=1)
    assert np.array_equal(source.images[:], zipped.images[:])
    assert zipped.image_names() == source.image_names()


def test_a_changed_zip_is_noticed(tmp_path):
    def write(seed):
        picture(70, 60, seed=seed).save(tmp_path / "a.bmp")
        with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
            archive.write(tmp_path / "a.bmp", "a.bmp")
        return open_folder(tmp_path / "photos.zip", 16, workers=0).images[:]

    assert not np.array_equal(write(1), write(2))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_streamed_source_gives_what_the_cache_gives(tmp_path, workers):
    folder = small_set(tmp_path / "photos", 80, 70, 3, count=9)
    cached = open_folder(folder, 20, workers=0)
    with open_streamed(folder, 20, workers=workers) as streamed:
        orders = [np.array(order) for order in ([3, 1, 8], [0], [5, 5, 2, 7], [6, 4])]
        streamed.prefetch(orders * 3)  # more than are kept waiting
        for order in orders:
            assert np.array_equal(streamed.batch(order), cached.batch(order))
        streamed.prefetch([orders[1], orders[2]])
        assert np.array_equal(streamed.batch(orders[0]), cached.batch(orders[0]))
        assert streamed.aspects.tolist() == cached.aspects.tolist()


def test_a_streamed_source_that_is_forgotten_stops_its_workers(tmp_path):
    streamed = open_streamed(small_set(tmp_path / "photos", 80, 70), 20, workers=1)
    streamed.batch(np.array([0]))
    (worker,) = streamed._pool._running
    del streamed
    assert worker.process.poll() is not None


@pytest.mark.parametrize("streamed", [False, True])
def test_one_missing_label_is_said_to_cost_the_others(tmp_path, streamed):
    for name in ("a", "b"):
        picture(20, 20).save(tmp_path / f"{name}.png")
    (tmp_path / "list.csv").write_text("image,label\na.png,cat\nb.png,\n")
    opening = open_streamed if streamed else open_folder
    source = opening(tmp_path / "list.csv", 8, workers=0)
    assert source.labels is None
    assert source.notes == ["1 of 2 images have no label, the first b.png: no labels are used; give every image one"]
    (tmp_path / "list.csv").write_text("image,label\na.png,\nb.png,\n")
    assert opening(tmp_path / "list.csv", 8, workers=0).notes == []
