import gzip

import numpy as np
import pytest

from helpers.official import idx, mnist
from propos.common.errors import InputError
from propos.data import find_source
from propos.data.published.idx import read_idx


@pytest.mark.parametrize(
    ("name", "folder", "ending"),
    [
        ("mnist", "mnist", ""),
        ("mnist", "MNIST/raw", ".gz"),
        ("fashion-mnist", "fashion-mnist", ".gz"),
        ("fashion-mnist", "FashionMNIST/raw", ""),
    ],
)
def test_idx_files_are_read_from_either_folder_packed_or_not(tmp_path, name, folder, ending):
    images, _ = mnist(tmp_path / folder, ending)
    found = find_source(name, data=tmp_path)
    assert (found.images, found.channels, found.height, found.width) == (8, 1, 28, 28)
    source = found.open(28)
    assert np.array_equal(source.batch(np.arange(8))[:, 0], images)
    assert source.labels[7] == ("7" if name == "mnist" else "Sneaker")
    assert source.statistics is None
    assert np.array_equal(find_source(f"{name}:test", data=tmp_path).open(28).images[..., 0], images[5:])


def test_an_array_is_read_by_its_head(tmp_path):
    (tmp_path / "x").write_bytes(bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6]))
    assert read_idx(tmp_path / "x", 2).tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is not an idx file of bytes in 3 dimensions"),
        (bytes([0, 0, 8, 1, 0, 0, 0, 1, 7]), "is not an idx file of bytes in 3 dimensions"),
        (bytes([0, 0, 13, 3]) + bytes(12), "is not an idx file of bytes in 3 dimensions"),
        (bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 7]), "holds 1 bytes where 2 belong: fetch it again"),
    ],
)
def test_a_file_that_is_no_idx_file_is_named(tmp_path, content, sentence):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        read_idx(tmp_path / "x", 3)


def test_a_packed_file_cut_short_is_named(tmp_path):
    idx(tmp_path / "x.gz", np.zeros((4, 28, 28), np.uint8))
    whole = (tmp_path / "x.gz").read_bytes()
    for content in (whole[:-9], whole[:4], gzip.compress(b"abc")[:-2], b"no gzip file"):
        (tmp_path / "x.gz").write_bytes(content)
        with pytest.raises(InputError, match=r"x\.gz"):
            read_idx(tmp_path / "x.gz", 3)


def test_images_and_labels_must_be_as_many(tmp_path):
    mnist(tmp_path / "mnist")
    idx(tmp_path / "mnist" / "t10k-labels-idx1-ubyte", np.zeros(2, np.uint8))
    with pytest.raises(InputError, match="holds 8 images and 7 labels"):
        find_source("mnist", data=tmp_path).open(28)


@pytest.mark.real_data("fashion-mnist")
def test_real_fashion_mnist_agrees_with_a_plain_reading(data_root):
    found = find_source("fashion-mnist", data=data_root)
    assert found.images == 70_000
    source = found.open(28)
    with gzip.open(data_root / "fashion-mnist" / "train-images-idx3-ubyte.gz") as file:
        first = np.frombuffer(file.read(16 + 784 * 100)[16:], np.uint8).reshape(100, 28, 28)
    with gzip.open(data_root / "fashion-mnist" / "t10k-labels-idx1-ubyte.gz") as file:
        last = file.read()[-1]
    assert np.array_equal(source.batch(np.arange(100))[:, 0], first)
    assert source.labels[0] == "Ankle boot"  # the well-known first image
    assert source.labels[-1] == ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal")[last]
    assert np.unique(source.labels, return_counts=True)[1].tolist() == [7_000] * 10
