"""TURTLE: a linear model learns the labels of another, and the labels change so that it errs less."""

import math

import numpy as np
import pytest
import torch

from helpers.recipes import of_system
from propos.methods import settings_of
from propos.methods.turtle import WeightNorm, learn_labels, learner_error

RNG = np.random.default_rng(0)
FEATURES = torch.tensor(RNG.normal(size=(9, 4)), dtype=torch.float32)
LABELS = torch.tensor(RNG.dirichlet(np.ones(3), size=9), dtype=torch.float32)


def test_the_labels_are_learnt_as_torchs_own_optimiser_learns_them():
    linear = torch.nn.Linear(4, 3)
    torch.nn.init.zeros_(linear.weight)
    torch.nn.init.zeros_(linear.bias)
    adam = torch.optim.Adam(linear.parameters(), lr=0.05)
    for _ in range(10):
        adam.zero_grad()
        torch.nn.functional.cross_entropy(linear(FEATURES), LABELS).backward()
        adam.step()
    found = learn_labels(FEATURES, LABELS, 10, 0.05)
    expected = torch.cat([linear.weight.detach().T, linear.bias.detach()[None]])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def test_one_step_by_hand():
    # The first step of Adam is the sign of the gradient times the rate: towards the label.
    found = learn_labels(torch.tensor([[2.0]]), torch.tensor([[1.0, 0.0]]), 1, 0.1)
    assert found.flatten().tolist() == pytest.approx([0.1, -0.1, 0.1, -0.1], abs=1e-6)


def test_the_layer_equals_torchs_weight_norm():
    layer = WeightNorm(4, 3)
    linear = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(4, 3))
    with torch.no_grad():
        linear.parametrizations.weight.original1.copy_(layer.direction)
        linear.parametrizations.weight.original0.copy_(3 * layer.length[:, None])
        linear.bias.copy_(layer.bias)
        layer.length.mul_(3)
    torch.testing.assert_close(layer(FEATURES), linear(FEATURES))


def test_even_labels_of_features_that_say_nothing_err_by_their_entropy():
    assert float(learner_error(torch.zeros(6, 2), torch.full((6, 4), 0.25), 5, 0.1)) == pytest.approx(math.log(4))


def test_turtle_has_its_own_settings():
    config = of_system("turtle-dinov2")
    own = settings_of(config)
    assert (own.entropy_weight, own.inner_steps, own.inner_lr) == (10.0, 10, 1e-3)
    assert own.heads_lr * config.train.batch_size / 256 == pytest.approx(1e-3)
