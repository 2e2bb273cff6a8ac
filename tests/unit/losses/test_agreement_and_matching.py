"""Neighbours in the same cluster, and clusters matched one to one: compared with an oracle, and by hand."""

import math

import numpy as np
import pytest
import torch

from helpers import oracle
from propos.losses import cluster_matching, neighbour_agreement

FIRST, SECOND = np.random.default_rng(0).dirichlet(np.ones(4), size=(2, 8))


@pytest.mark.parametrize(
    ("loss", "expected"),
    [(neighbour_agreement, oracle.neighbour_agreement), (cluster_matching, oracle.cluster_matching)],
)
def test_each_loss_equals_the_oracle_in_value_and_gradient(loss, expected):
    oracle.check(lambda x: loss(x, torch.tensor(SECOND)), lambda x: expected(x, SECOND), FIRST)


def test_agreement_by_hand():
    # Probabilities to be in one cluster: ½ · ½ + ½ · ½ = ½, and 1.
    first, second = torch.tensor([[0.5, 0.5], [1.0, 0.0]]), torch.tensor([[0.5, 0.5], [1.0, 0.0]])
    assert float(neighbour_agreement(first, second)) == pytest.approx(math.log(2) / 2)


def test_agreement_of_images_in_different_clusters_is_finite():
    first = torch.tensor([[1.0, 0.0]], requires_grad=True)
    loss = neighbour_agreement(first, torch.tensor([[0.0, 1.0]]))
    loss.backward()
    assert math.isfinite(float(loss.detach()))
    assert bool(torch.isfinite(first.grad).all())


def test_matching_by_hand():
    # Cosines of 1 with itself and 0 with the other: log(1 + e^−1); all the other way round: log(1 + e).
    sure, other = torch.eye(2), torch.eye(2).flip(0)
    assert float(cluster_matching(sure, sure)) == pytest.approx(math.log(1 + math.exp(-1)))
    assert float(cluster_matching(sure, other)) == pytest.approx(math.log(1 + math.e))


def test_empty_clusters_leave_the_matching_finite():
    first = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], requires_grad=True)
    loss = cluster_matching(first, first.detach())
    loss.backward()
    # Of three clusters two match as well as they can, and one is told from nothing.
    assert float(loss.detach()) == pytest.approx((2 * math.log(1 + 2 * math.exp(-1)) + math.log(3)) / 3)
    assert bool(torch.isfinite(first.grad).all())
