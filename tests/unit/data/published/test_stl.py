import numpy as np
import pytest

from helpers.official import stl_10
from propos.common.errors import InputError
from propos.data import find_source


def test_stl_10_holds_the_labelled_images_and_brings_the_others(tmp_path):
    images = stl_10(tmp_path)
    found = find_source("stl-10", data=tmp_path)
    assert (found.images, found.channels, found.height, found.width) == (10, 3, 96, 96)
    source = found.open(96)
    assert np.array_equal(source.images, np.concatenate([images["train"], images["test"]]))
    assert source.labels[:7].tolist() == ["airplane", "bird", "car", "cat", "deer", "dog", "airplane"]
    assert source.statistics == ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    assert source.unlabelled.labels is None
    assert len(source.unlabelled) == 5
    batch = source.unlabelled.batch(np.array([4, 0]))
    assert np.array_equal(batch, images["unlabeled"][[4, 0]].transpose(0, 3, 1, 2))


def test_a_byte_is_found_by_image_channel_column_and_row(tmp_path):
    stl_10(tmp_path)
    path = tmp_path / "stl10_binary" / "unlabeled_X.bin"
    content = bytearray(path.read_bytes())
    pixel = find_source("stl-10:unlabelled", data=tmp_path).open(96).images[:][2, 11, 70]
    offset = [((2 * 3 + channel) * 96 + 70) * 96 + 11 for channel in range(3)]  # row 11, column 70
    assert pixel.tolist() == [content[place] for place in offset]


def test_unlabelled_images_are_read_on_demand(tmp_path):
    stl_10(tmp_path)
    path = tmp_path / "stl10_binary" / "unlabeled_X.bin"
    with path.open("r+b") as file:
        file.truncate(100_000 * 96 * 96 * 3)  # the official size, 2.8 GB; the disk holds next to nothing of it
    rest = find_source("stl-10", data=tmp_path).open(96).unlabelled
    assert len(rest) == 100_000
    assert rest.batch(np.array([99_999])).max() == 0
    with path.open("r+b") as file:
        file.truncate(96 * 96 * 3)
    with pytest.raises(OSError, match="was cut short while it was in use; put the whole file back"):
        rest.batch(np.array([99_999]))
    assert rest.batch(np.array([0])).shape == (1, 3, 96, 96)


def test_the_unlabelled_split_alone_has_no_labels(tmp_path):
    stl_10(tmp_path)
    found = find_source("stl-10:unlabelled", data=tmp_path)
    assert (found.images, found.labelled) == (5, False)
    assert found.open(96).labels is None


def test_without_the_unlabelled_file_the_labelled_images_are_still_there(tmp_path):
    stl_10(tmp_path)
    (tmp_path / "stl10_binary" / "unlabeled_X.bin").unlink()
    assert find_source("stl-10:train", data=tmp_path).open(96).unlabelled is None


def test_damaged_files_are_named(tmp_path):
    stl_10(tmp_path)
    folder = tmp_path / "stl10_binary"
    (folder / "test_y.bin").write_bytes(bytes([1, 2, 3, 11]))
    with pytest.raises(InputError, match=r"test_y\.bin: holds classes other than 1 to 10"):
        find_source("stl-10", data=tmp_path)
    (folder / "test_y.bin").write_bytes(bytes([1, 2]))
    with pytest.raises(InputError, match="holds 10 images and 8 labels"):
        find_source("stl-10", data=tmp_path)
    (folder / "train_X.bin").write_bytes(bytes(1000))
    with pytest.raises(InputError, match=r"train_X\.bin: its size is not a multiple of 96×96 images"):
        find_source("stl-10", data=tmp_path)
    (folder / "train_X.bin").unlink()
    with pytest.raises(InputError, match=r"train_X\.bin: get it from https://cs\.stanford\.edu"):
        find_source("stl-10", data=tmp_path)
