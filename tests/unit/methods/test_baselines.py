"""K-means on pixels and on an untrained network: nothing is trained."""

import numpy as np
import torch

from helpers.small import digits, quick_train, same_weights
from helpers.steps import learner_of
from propos.methods import find_method, stages_of


def test_pixels_are_embedded_as_they_are():
    fitted = quick_train(method="kmeans-pixels")
    pixels = digits().batch(np.arange(200)).reshape(200, -1) / 255.0
    config = fitted.model.config
    pixels = (pixels - config.pixels.mean[0]) / config.pixels.std[0]
    expected = pixels / np.linalg.norm(pixels, axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.embeddings, expected, atol=1e-5)
    assert fitted.model.method.online.dimension == 64
    assert len(fitted.history) == 1


def test_a_random_network_stays_as_it_was_whatever_the_number_of_epochs():
    one, three = (quick_train(method="kmeans-random", train__epochs=epochs) for epochs in (1, 3))
    assert same_weights(one.model.method, three.model.method)
    assert len(three.history) == 1


def test_the_random_network_is_the_one_that_byol_starts_with():
    random, byol = (learner_of(name).method.online.state_dict() for name in ("kmeans-random", "byol"))
    assert random.keys() == byol.keys()
    assert all(torch.equal(weights, byol[name]) for name, weights in random.items())


def test_the_baselines_train_nothing_and_have_no_stages():
    for name in ("kmeans-pixels", "kmeans-random", "kmeans-features"):
        assert not find_method(name).trains
    assert stages_of(learner_of("kmeans-pixels").config) == ()
    assert find_method("kmeans-features").inputs == ("features",)
