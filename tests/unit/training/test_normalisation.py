import tracemalloc

import numpy as np
import pytest

from helpers.official import cifar_10, cifar_100
from propos.config import Config
from propos.data import find_source, pixel_statistics
from propos.data.arrays import ArraySource
from propos.training import prepare


@pytest.mark.parametrize(
    ("name", "mean"), [("cifar-10", (0.4914, 0.4822, 0.4465)), ("cifar-20", (0.5071, 0.4867, 0.4408))]
)
def test_pixels_are_normalised_by_the_official_numbers(tmp_path, name, mean):
    cifar_10(tmp_path)
    cifar_100(tmp_path)
    source = find_source(name, data=tmp_path).open(32)
    assert prepare(Config(), source).pixels.mean == mean
    assert pixel_statistics(source)[0] != pytest.approx(mean, abs=1e-3)
    own = Config().with_settings({"pixels.mean": [0.5] * 3, "pixels.std": [0.5] * 3})
    assert prepare(own, source).pixels.mean == (0.5, 0.5, 0.5)


def test_statistics_of_pixels_are_exact_and_take_little_memory():
    images = np.random.default_rng(0).integers(0, 256, (600, 64, 64, 3), np.uint8)
    source = ArraySource(images, None, "noise")
    tracemalloc.start()
    mean, std = pixel_statistics(source)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(mean, images.mean(axis=(0, 1, 2)) / 255, rtol=1e-12)
    np.testing.assert_allclose(std, images.std(axis=(0, 1, 2)) / 255, rtol=1e-9)
    assert peak < 3 * images.nbytes  # a float64 copy alone would be eight times the images
