"""TEMI: the weighted information of heads and their moving averages."""

import math

import numpy as np
import pytest
import torch

from helpers import oracle
from helpers.recipes import of_system
from propos.methods import settings_of
from propos.methods.temi import weighted_information

RNG = np.random.default_rng(0)
HEADS = RNG.dirichlet(np.full(4, 3.0), size=(4, 8, 3))  # students and teachers of both views: images, heads, clusters
SHARES = RNG.dirichlet(np.ones(4), size=3)


def information(first):
    students, teachers = (first, torch.tensor(HEADS[1])), tuple(torch.tensor(HEADS[2:]))
    return weighted_information(students, teachers, torch.tensor(SHARES), 0.6)


def test_the_information_equals_the_oracle_in_value_and_gradient():
    oracle.check(
        lambda x: information(x).sum(),
        lambda x: oracle.weighted_information((x, HEADS[1]), HEADS[2:], SHARES, 0.6),
        HEADS[0],
    )


def test_the_information_by_hand():
    # One head of two clusters, everything in the first, which holds half of all images: −1 · log(1 / ½).
    sure = torch.tensor([[[1.0, 0.0]]])
    found = weighted_information((sure, sure), (sure, sure), torch.tensor([[0.5, 0.5]]), 0.6)
    assert found.tolist() == pytest.approx([-math.log(2)], abs=1e-6)


def test_no_gradient_reaches_teachers_or_shares():
    students, teachers = (
        tuple(torch.tensor(each, requires_grad=True) for each in pair) for pair in HEADS.reshape(2, 2, 8, 3, 4)
    )
    shares = torch.tensor(SHARES, requires_grad=True)
    weighted_information(students, teachers, shares, 0.6).sum().backward()
    assert [each.grad is None for each in (*students, *teachers, shares)] == [False, False, True, True, True]


def test_temi_has_its_own_settings():
    config = of_system("temi-dino")
    own = settings_of(config)
    assert (own.heads, own.neighbours, config.network.momentum) == (16, 50, 0.996)
    assert own.heads_lr * config.train.batch_size / 256 == pytest.approx(4e-4)
