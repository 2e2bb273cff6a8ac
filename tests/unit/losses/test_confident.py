"""Images whose neighbours in the batch share their cluster, and the pull among them."""

import numpy as np
import pytest
import torch

from helpers import oracle
from propos.losses import confident_labels, confident_pull

RNG = np.random.default_rng(0)


def clouds(seed, noise, size=24):
    """Return embeddings of three clusters, and labels of which some are -1."""
    draw = np.random.default_rng(seed)
    labels = np.arange(size) % 4 - 1
    return np.eye(5)[labels] + noise * draw.normal(size=(2, size, 5)), labels


def test_confident_labels_by_hand():
    # On a circle: three of cluster 0 close together, two of cluster 1, and one of cluster 1 among the zeros.
    degrees = np.deg2rad([0, 2, 5, 90, 93, 3])
    points = torch.tensor(np.stack([np.cos(degrees), np.sin(degrees)], axis=1))
    labels = torch.tensor([0, 0, 0, 1, 1, 1])
    # k = 1: images 0, 3 and 4 (the nearest of images 1 and 2 is image 5, of another cluster); k = 2: none.
    assert confident_labels(points, labels, 5).tolist() == [0, -1, -1, 1, 1, -1]


@pytest.mark.parametrize("seed", range(5))
def test_confident_labels_are_the_oracles(seed):
    (points, _), labels = clouds(seed, 0.5)
    expected = np.where(oracle.agreed_on(points, labels, 10), labels, -1)
    assert confident_labels(torch.tensor(points), torch.tensor(labels), 10).tolist() == expected.tolist()
    assert (expected >= 0).any()


@pytest.mark.parametrize(("seed", "clusters"), [(0, None), (1, 3), (2, 40)])
def test_the_pull_equals_the_oracle_among_images_that_the_targets_neighbours_confirm(seed, clusters):
    (online, target), labels = clouds(seed, 0.3)
    confident = np.where(oracle.agreed_on(target, labels, 23), labels, -1)
    assert len(set(confident)) > 2
    oracle.check(
        lambda x: confident_pull(x, torch.tensor(target), torch.tensor(labels), clusters),
        lambda x: oracle.confident_pull(x, target, confident),
        online,
    )


def test_the_pull_by_hand():
    # Two images at right angles, targets alike: ½ · Σ‖·‖² = ½ · (0 + 0 + 2 + 2), over ‖S‖ = √2 and ‖S'‖ = 2.
    online, target = torch.tensor([[3.0, 0.0], [0.0, 2.0]]), torch.tensor([[1.0, 0.0], [5.0, 0.0]])
    assert float(confident_pull(online, target, torch.tensor([4, 4]))) == pytest.approx(2 / (2 * 2**0.5))


def test_without_clusters_the_pull_and_its_gradient_are_zero():
    online = torch.tensor(RNG.normal(size=(8, 5)), requires_grad=True)
    loss = confident_pull(online, torch.tensor(RNG.normal(size=(8, 5))), torch.full((8,), -1))
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert torch.equal(online.grad, torch.zeros_like(online))


def test_no_gradient_of_the_pull_reaches_the_target():
    (online, target), labels = clouds(0, 0.2)
    target = torch.tensor(target, requires_grad=True)
    confident_pull(torch.tensor(online, requires_grad=True), target, torch.tensor(labels)).backward()
    assert target.grad is None
