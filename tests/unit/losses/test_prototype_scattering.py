import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers import oracle
from propos.losses import both_ways, prototype_scattering, symmetric


def batch(seed, size=12, dimension=5, clusters=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(size, dimension)), rng.normal(size=(size, dimension)), rng.integers(clusters, size=size)


def scattering(online, target, labels, temperature=0.5):
    return prototype_scattering(torch.tensor(online), torch.tensor(target), torch.tensor(labels), temperature)


# By hand.


def test_scattering_by_hand_for_two_orthogonal_clusters():
    online = torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.0, 3.0]])
    # Each prototype equals its twin (cosine 1) and is orthogonal to the other: −log(e² / (e² + e⁰)) at τ = 0.5.
    loss = prototype_scattering(online, online, torch.tensor([7, 7, 2]), 0.5)
    assert float(loss) == pytest.approx(math.log(1 + math.exp(-2)))


def test_scattering_by_hand_uses_online_negatives_and_target_positives():
    online = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    target = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    # μ·μ' = 0 and μ_1·μ_2 = 0: log 2. Negatives between online and target would give log(1 + e²).
    assert float(prototype_scattering(online, target, torch.tensor([0, 1]), 0.5)) == pytest.approx(math.log(2))


def test_prototypes_weigh_images_not_their_lengths():
    online = torch.tensor([[100.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    labels = torch.tensor([0, 0, 1])
    # Cluster 0 points along (1, 1) whatever the lengths: opposite to cluster 1.
    assert float(prototype_scattering(online, online, labels, 1.0)) == pytest.approx(math.log(1 + math.exp(-2)))


# Compared with the oracle: value and gradient.

CASES = {
    "ordinary": batch(0),
    "images labelled -1": (*batch(1)[:2], np.array([0, -1, 1, 1, -1, 2, 2, 0, -1, 3, 3, 0])),
    "absent clusters": (*batch(2)[:2], np.array([9, 9, 2, 2, 2, 5, 5, 9, 2, 5, 5, 9])),
    "two clusters of one image": (*batch(3, size=2)[:2], np.array([4, 1])),
    "K far above the batch": (*batch(4)[:2], np.random.default_rng(4).integers(1000, size=12)),
    "higher dimension": batch(5, dimension=64),
}


@pytest.mark.parametrize("case", CASES)
def test_scattering_equals_the_oracle_in_value_and_gradient(case):
    online, target, labels = CASES[case]
    oracle.check(
        lambda x: prototype_scattering(x, torch.tensor(target), torch.tensor(labels), 0.5),
        lambda x: oracle.prototype_scattering(x, target, labels, 0.5),
        online,
    )


# Rows for clusters without an image: K below and above the number of images, and far above.
@pytest.mark.parametrize(("case", "clusters"), [("ordinary", 10), ("absent clusters", 10), ("ordinary", 1000)])
def test_absent_clusters_with_rows_of_their_own_take_no_part(case, clusters):
    online, target, labels = CASES[case]
    labels = np.append(labels[1:], -1)
    oracle.check(
        lambda x: prototype_scattering(x, torch.tensor(target), torch.tensor(labels), 0.5, clusters),
        lambda x: oracle.prototype_scattering(x, target, labels, 0.5),
        online,
    )


@pytest.mark.parametrize("clusters", [None, 6, 1000])
def test_the_scattering_of_two_stacked_pairs_is_the_mean_of_both(clusters):
    (first, target, labels), (second, other, _) = CASES["ordinary"], batch(7)
    labels = torch.tensor(np.append(labels[1:], -1))
    pairs = [
        tuple(torch.tensor(each, requires_grad=True) for each in pair) for pair in ((first, target), (second, other))
    ]
    apart = symmetric(prototype_scattering, *pairs, labels, 0.5, clusters)
    together = prototype_scattering(*both_ways(*pairs), labels, 0.5, clusters)
    torch.testing.assert_close(together, apart)
    for online, _ in pairs:
        gradients = [torch.autograd.grad(loss, online, retain_graph=True)[0] for loss in (together, apart)]
        torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("clusters", [None, 6])
@pytest.mark.parametrize("labels", [[3, 3, 3, 3], [-1, -1, -1, -1], [-1, 2, -1, 2]])
def test_with_fewer_than_two_clusters_loss_and_gradient_are_zero(labels, clusters):
    online = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    loss = prototype_scattering(online, online.detach(), torch.tensor(labels), 0.5, clusters)
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert torch.equal(online.grad, torch.zeros_like(online))


def test_no_gradient_reaches_the_target():
    online, target, labels = batch(7)
    tensor = torch.tensor(target, requires_grad=True)
    loss = prototype_scattering(torch.tensor(online, requires_grad=True), tensor, torch.tensor(labels), 0.5)
    loss.backward()
    assert tensor.grad is None


# By property.

seeds = st.integers(0, 2**32 - 1)


@given(seeds)
def test_permuting_the_batch_changes_nothing(seed):
    online, target, labels = batch(seed)
    order = np.random.default_rng(seed).permutation(len(labels))
    expected = float(scattering(online, target, labels))
    assert float(scattering(online[order], target[order], labels[order])) == pytest.approx(expected, abs=1e-10)


@given(seeds)
def test_relabelling_the_clusters_changes_nothing(seed):
    online, target, labels = batch(seed)
    names = np.random.default_rng(seed).permutation(100)
    expected = float(scattering(online, target, labels))
    assert float(scattering(online, target, names[labels])) == pytest.approx(expected, abs=1e-10)


@given(seeds)
def test_rotating_the_space_changes_nothing(seed):
    online, target, labels = batch(seed)
    rotation, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(5, 5)))
    expected = float(scattering(online, target, labels))
    assert float(scattering(online @ rotation, target @ rotation, labels)) == pytest.approx(expected, abs=1e-10)


@given(seeds)
def test_images_labelled_minus_one_take_no_part(seed):
    online, target, labels = batch(seed)
    ignored = np.concatenate([labels, [-1, -1]])
    more = np.random.default_rng(seed).normal(size=(2, 5))
    with_ignored = scattering(np.concatenate([online, more]), np.concatenate([target, more]), ignored)
    assert float(with_ignored) == pytest.approx(float(scattering(online, target, labels)), abs=1e-10)


@given(seeds)
def test_lengths_of_embeddings_do_not_matter(seed):
    online, target, labels = batch(seed)
    lengths = np.random.default_rng(seed).uniform(0.1, 10, size=(len(labels), 1))
    expected = float(scattering(online, target, labels))
    assert float(scattering(online * lengths, target / lengths, labels)) == pytest.approx(expected, abs=1e-10)
