"""Instances told from a bank: by hand, and compared with plain loops."""

import math

import numpy as np
import pytest
import torch

from helpers import oracle
from propos.losses import instance_softmax


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def test_it_equals_the_oracle_in_value_and_gradient():
    bank, images = np.array([oracle.unit(row) for row in random(7, 4, seed=1)]), [5, 0, 3]
    oracle.check(
        lambda point: instance_softmax(point, torch.tensor(bank), torch.tensor(images), 0.7),
        lambda point: oracle.instance_softmax(point, bank, images, 0.7),
        random(3, 4),
    )


def test_it_by_hand():
    """Of two images that lie at right angles, each in its own row: log(1 + e^−1); each in the other's: log(1 + e)."""
    bank = torch.eye(2)
    own = instance_softmax(3 * torch.eye(2), bank, torch.tensor([0, 1]), 1.0)
    assert own.item() == pytest.approx(math.log(1 + math.exp(-1)))
    swapped = instance_softmax(torch.eye(2), bank, torch.tensor([1, 0]), 1.0)
    assert swapped.item() == pytest.approx(math.log(1 + math.e))
