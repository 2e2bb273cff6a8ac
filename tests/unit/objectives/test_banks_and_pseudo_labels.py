"""Instances told from a bank, features from one another, images by pseudo-labels: by hand, and beside plain loops."""

import math

import numpy as np
import pytest
import torch

from helpers import oracle
from propos.objectives import (
    Bank,
    FeatureDecorrelation,
    Grouping,
    InstanceSoftmax,
    Outputs,
    PseudoLabels,
    feature_decorrelation,
    instance_softmax,
    pseudo_labels,
)


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def test_instances_beside_plain_loops():
    bank, images = np.array([oracle.unit(row) for row in random(7, 4, seed=1)]), [5, 0, 3]
    oracle.check(
        lambda point: instance_softmax(point, torch.tensor(bank), torch.tensor(images), 0.7),
        lambda point: oracle.instance_softmax(point, bank, images, 0.7),
        random(3, 4),
    )


def test_instances_by_hand():
    """Of two images that lie at right angles, each in its place: log(1 + e^−1)."""
    bank = torch.eye(2)
    loss = instance_softmax(3 * torch.eye(2), bank, torch.tensor([0, 1]), 1.0)
    assert loss.item() == pytest.approx(math.log(1 + math.exp(-1)))
    outputs = Outputs(
        (torch.eye(2),) * 2, (torch.eye(2),) * 2, (torch.eye(2),) * 2, bank=Bank(bank, torch.tensor([1, 0]))
    )
    # Each is told to be the other, in both views.
    assert float(InstanceSoftmax(1.0)(outputs, torch.zeros(2).long())) == pytest.approx(math.log(1 + math.e))


def test_decorrelation_beside_plain_loops():
    oracle.check(
        lambda point: feature_decorrelation(point, 2.0),
        lambda point: oracle.feature_decorrelation(point, 2.0),
        random(5, 3),
    )


def test_decorrelation_by_hand():
    """Two features that say the same are confused in half of the cases; two that say nothing of each other less."""
    same = torch.tensor([[1.0, 1.0], [2.0, 2.0], [-1.0, -1.0]])
    assert float(feature_decorrelation(same, 2.0)) == pytest.approx(math.log(2))
    apart = torch.eye(2)
    assert float(feature_decorrelation(apart, 2.0)) == pytest.approx(math.log(1 + math.exp(-0.5)))
    outputs = Outputs((same, apart), (same, apart), (same, apart))
    expected = (math.log(2) + math.log(1 + math.exp(-0.5))) / 2
    assert float(FeatureDecorrelation(2.0)(outputs, torch.zeros(3).long())) == pytest.approx(expected)


def test_pseudo_labels_beside_plain_loops():
    labels = [2, -1, 0, 1]

    def softmax(point):
        return np.exp(point) / np.exp(point).sum(axis=1, keepdims=True)

    oracle.check(
        lambda point: pseudo_labels(point.softmax(dim=1), torch.tensor(labels)),
        lambda point: oracle.pseudo_labels(softmax(point), labels),
        random(4, 3),
    )


def test_pseudo_labels_by_hand_and_images_without_one_take_no_part():
    first, second = torch.tensor([[0.5, 0.5], [0.9, 0.1]]), torch.tensor([[0.25, 0.75], [0.9, 0.1]])
    grouping = Grouping(torch.tensor([0, -1]), torch.eye(2), torch.ones(2))
    made = torch.zeros(2, 2), torch.zeros(2, 2)
    outputs = Outputs(made, made, made, (first, second), groupings=(grouping,))
    # −(log 1/2 + log 1/4) / 2
    assert float(PseudoLabels()(outputs, torch.zeros(2).long())) == pytest.approx(1.5 * math.log(2))
    nobody = Outputs(made, made, made, (first, second))
    assert float(PseudoLabels()(nobody, torch.zeros(2).long())) == 0.0
    assert float(pseudo_labels(first, torch.tensor([-1, -1]))) == 0.0


def test_a_certain_mistake_costs_much_and_is_finite():
    assert 50 < float(pseudo_labels(torch.tensor([[1.0, 0.0]]), torch.tensor([1]))) < math.inf
