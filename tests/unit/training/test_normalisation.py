import pytest

from helpers.official import cifar_10, cifar_100
from propos.config import Config
from propos.data import find_source, pixel_statistics
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
