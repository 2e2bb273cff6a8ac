import json
import pickle

import numpy as np
import pytest

from helpers.official import cifar_10, cifar_100, python_2_pickle
from propos.common.errors import InputError
from propos.data import find_source


def test_cifar_10_is_train_and_test_with_the_names_of_its_classes(tmp_path):
    rows, labels = cifar_10(tmp_path)
    found = find_source("cifar-10", data=tmp_path)
    assert (found.images, found.channels, found.height, found.width, found.labelled) == (72, 3, 32, 32, True)
    source = found.open(32)
    assert source.name == "cifar-10"
    assert np.array_equal(source.batch(np.arange(72)).reshape(72, 3072), rows)  # channel by channel, row by row
    assert source.labels[:4].tolist() == ["airplane", "automobile", "bird", "cat"]
    assert [labels[number] for number in (6, 9)] == [6, 9]
    assert source.labels[[6, 9]].tolist() == ["frog", "truck"]


@pytest.mark.parametrize(("split", "part"), [("train", slice(0, 60)), ("test", slice(60, 72))])
def test_a_split_is_chosen_by_a_suffix(tmp_path, split, part):
    rows, _ = cifar_10(tmp_path)
    source = find_source(f"cifar-10:{split}", data=tmp_path).open(32)
    assert source.name == f"cifar-10:{split}"
    assert np.array_equal(source.batch(np.arange(len(source))).reshape(-1, 3072), rows[part])


def test_cifar_20_takes_the_superclasses(tmp_path):
    rows, _ = cifar_100(tmp_path)
    source = find_source("cifar-20", data=tmp_path).open(32)
    assert np.array_equal(source.batch(np.array([41]))[0].ravel(), rows[41])
    assert source.labels[:3].tolist() == ["aquatic mammals", "fish", "flowers"]
    assert source.labels[[19, 40]].tolist() == ["vehicles 2", "aquatic mammals"]


@pytest.mark.parametrize(
    ("rows", "lists", "sentence"),
    [
        (np.zeros((2, 30), np.uint8), {b"labels": [0, 1]}, "no images of 32×32 pixels under 'data'"),
        (np.zeros((2, 3072), np.uint8), {b"labels": [0]}, "does not hold a class from 0 to 9 for each image"),
        (np.zeros((2, 3072), np.uint8), {b"labels": [0, 10]}, "does not hold a class from 0 to 9 for each image"),
        (np.zeros((2, 3072), np.uint8), {b"others": [0, 1]}, "under 'labels'"),
    ],
)
def test_a_batch_that_is_not_one_is_named(tmp_path, rows, lists, sentence):
    cifar_10(tmp_path)
    (tmp_path / "cifar-10-batches-py" / "data_batch_2").write_bytes(python_2_pickle(rows, lists))
    with pytest.raises(InputError, match=f"data_batch_2: {sentence}" if "under 'l" not in sentence else sentence):
        find_source("cifar-10", data=tmp_path)


def test_a_missing_batch_is_named_with_where_to_get_it(tmp_path):
    cifar_10(tmp_path)
    (tmp_path / "cifar-10-batches-py" / "data_batch_3").unlink()
    with pytest.raises(InputError, match=r"data_batch_3: get it from https://www\.cs\.toronto\.edu"):
        find_source("cifar-10", data=tmp_path)
    assert find_source("cifar-10:test", data=tmp_path).images == 12


@pytest.mark.real_data("cifar-10-batches-py")
def test_real_cifar_10_agrees_with_a_plain_reading(data_root):
    source = find_source("cifar-10", data=data_root).open(32)
    parts = []
    for name in ("data_batch_1", "data_batch_5", "test_batch"):
        with (data_root / "cifar-10-batches-py" / name).open("rb") as file:
            parts.append(pickle.load(file, encoding="bytes"))
    with (data_root / "cifar-10-batches-py" / "batches.meta").open("rb") as file:
        names = [name.decode() for name in pickle.load(file, encoding="bytes")[b"label_names"]]
    size = len(parts[0][b"data"])
    assert len(source) == 6 * size
    for batch, start in zip(parts, (0, 4 * size, 5 * size), strict=True):
        got = source.batch(np.arange(start, start + size)).reshape(size, 3072)
        assert np.array_equal(got, np.asarray(batch[b"data"]))
        assert source.labels[start : start + size].tolist() == [names[label] for label in batch[b"labels"]]
    assert find_source("cifar-10:train", data=data_root).images == 5 * size


@pytest.mark.real_data("cifar-100-python")
def test_real_cifar_20_agrees_with_a_plain_reading_and_the_published_superclasses(data_root):
    source = find_source("cifar-20:test", data=data_root).open(32)
    with (data_root / "cifar-100-python" / "test").open("rb") as file:
        batch = pickle.load(file, encoding="bytes")
    assert np.array_equal(source.batch(np.arange(len(source))).reshape(-1, 3072), np.asarray(batch[b"data"]))
    facts = data_root.parent / "facts" / "cifar-20.json"
    if facts.exists():
        known = json.loads(facts.read_text())
        coarse = [known["superclass_of_fine_label"][fine] for fine in batch[b"fine_labels"]]
        assert source.labels.tolist() == [known["superclass_names"][label].replace("_", " ") for label in coarse]
