"""DCBoost: the push between the clusters of images whose neighbours agree."""

import numpy as np
import pytest
import torch

from helpers import oracle
from helpers.recipes import lengths, of_system
from propos.methods import stages_of
from propos.methods.dcboost import confident_push, identity_layer


def clouds(seed, noise=0.3, size=24):
    """Return embeddings of three clusters, and labels of which some are -1."""
    draw = np.random.default_rng(seed)
    labels = np.arange(size) % 4 - 1
    return np.eye(5)[labels] + noise * draw.normal(size=(2, size, 5)), labels


@pytest.mark.parametrize(("seed", "clusters"), [(0, None), (1, 3), (2, 40)])
def test_the_push_equals_the_oracle_among_images_that_the_targets_neighbours_confirm(seed, clusters):
    (online, target), labels = clouds(seed)
    confident = np.where(oracle.agreed_on(target, labels, 23), labels, -1)
    assert len(set(confident)) > 2
    oracle.check(
        lambda x: confident_push(x, torch.tensor(target), torch.tensor(labels), clusters),
        lambda x: oracle.confident_push(x, target, confident),
        online,
    )


def test_the_push_by_hand():
    # Two images of each cluster. One pair of prototypes is opposite (distance² 4), the other equal (0): minus the mean.
    online = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    target = torch.tensor([[0.0, 7.0], [0.0, 1.0], [-1.0, 0.0], [-3.0, 0.0]])
    assert float(confident_push(online, target, torch.tensor([0, 0, 1, 1]))) == pytest.approx(-(4 + 0) / 2)


def test_without_clusters_the_push_and_its_gradient_are_zero():
    (online, target), _ = clouds(0)
    online = torch.tensor(online, requires_grad=True)
    loss = confident_push(online, torch.tensor(target), torch.full((24,), -1))
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert torch.equal(online.grad, torch.zeros_like(online))


def test_no_gradient_of_the_push_reaches_the_target():
    (online, target), labels = clouds(0)
    target = torch.tensor(target, requires_grad=True)
    confident_push(torch.tensor(online, requires_grad=True), target, torch.tensor(labels)).backward()
    assert target.grad is None


def test_the_layer_over_features_starts_as_the_identity():
    features = torch.tensor(clouds(0)[0][0], dtype=torch.float32)
    assert torch.equal(identity_layer(5)(features), features)


def test_dcboost_has_its_own_settings():
    config = of_system("dcboost-cifar-10")
    assert lengths(config) == [800, 200]
    assert stages_of(config)[1].train["lr"] == pytest.approx(0.005)
