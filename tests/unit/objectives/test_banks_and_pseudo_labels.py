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
