import numpy as np
import pytest

from helpers.official import cifar_10
from propos.common.errors import InputError
from propos.data import CATALOGUE, find_source
from propos.data.published.long_tail import class_sizes, long_tail


def test_sizes_fall_evenly_on_a_log_scale_to_a_tenth():
    assert class_sizes(1000, 2) == [1000, 100]
    assert class_sizes(1000, 3) == [1000, 316, 100]  # 1000 / √10 = 316.2
    assert class_sizes(500, 4) == [500, 232, 107, 50]  # 500 / ∛10 = 232.08, / ∛100 = 107.7


@pytest.mark.parametrize(
    ("name", "largest", "classes", "total"), [("cifar-10-lt", 5000, 10, 20_431), ("cifar-20-lt", 2500, 20, 19_954)]
)
def test_the_official_sets_have_the_published_number_of_images(name, largest, classes, total):
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(classes), largest))
    kept = long_tail(labels, classes)
    assert len(kept) == total == CATALOGUE[name].images
    assert np.bincount(labels[kept]).tolist() == class_sizes(largest, classes)


def test_the_first_images_of_each_class_stay_in_their_order():
    labels = np.array([1, 0, 1, 0, 1, 0, 1, 0, 1, 0] * 2)  # ten of each: the tail keeps one
    assert long_tail(labels, 2).tolist() == [0, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19]


def test_a_class_with_fewer_images_than_its_share_keeps_them_all():
    labels = np.array([0] * 100 + [1] * 3 + [2] * 50)
    assert np.bincount(labels[long_tail(labels, 3)]).tolist() == [100, 3, 10]


def test_a_long_tailed_set_is_made_of_the_training_images(tmp_path):
    rows, labels = cifar_10(tmp_path, per_batch=20)  # ten of each class in training
    source = find_source("cifar-10-lt", data=tmp_path).open(32)
    kept = long_tail(np.array(labels[:100]), 10)
    assert class_sizes(10, 10) == [10, 7, 5, 4, 3, 2, 2, 1, 1, 1]
    assert len(source) == 36
    assert np.array_equal(source.batch(np.arange(36)).reshape(36, 3072), rows[kept])
    with pytest.raises(InputError, match="cifar-10-lt has no split test: choose from train"):
        find_source("cifar-10-lt:test", data=tmp_path)
