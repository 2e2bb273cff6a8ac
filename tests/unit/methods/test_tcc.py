"""TCC: its losses by hand and against plain loops, and a step with both queues."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from helpers import oracle
from helpers.steps import learner_of, losses_of, step_of
from propos.methods.tcc import cluster_vectors, contrast_of_clusters, divergence_from_uniform, gumbel_softmax

LABELS = torch.arange(200) % 10
RNG = np.random.default_rng(0)


def units(*shape):
    return np.stack([oracle.unit(row) for row in RNG.normal(size=shape)])


def plain_contrast(ours, theirs, earlier, labels, temperature):
    """Sum over the negatives of each cluster one by one."""
    total = 0.0
    for number, own in enumerate(ours):
        others = [theirs[place] for place in range(len(theirs)) if place != number]
        others += [ours[place] for place in range(len(ours)) if place != number]
        others += [row for row, label in zip(earlier, labels, strict=True) if label not in (number, -1)]
        scores = [math.exp(float(own @ other) / temperature) for other in others]
        right = math.exp(float(own @ theirs[number]) / temperature)
        total -= math.log(right / (right + sum(scores)))
    return total / len(ours)


def test_the_contrast_of_clusters_equals_plain_loops_in_value_and_gradient():
    theirs, earlier, labels = units(4, 5), units(6, 5), [0, 3, -1, 2, 0, 1]
    tensors = [torch.tensor(theirs), torch.tensor(earlier), torch.tensor(labels)]
    oracle.check(
        lambda point: contrast_of_clusters(point, *(each.to(point.dtype) for each in tensors[:2]), tensors[2], 0.7),
        lambda point: plain_contrast(point, theirs, earlier, labels, 0.7),
        RNG.normal(size=(4, 5)),
    )


def test_the_contrast_of_clusters_by_hand():
    """Two opposite clusters, no earlier ones: e / (e + 1/e from the twin + 1/e from the own other)."""
    ours = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    none = torch.zeros(3, 2), torch.full((3,), -1)
    expected = math.log(1 + 2 * math.exp(-2))
    assert float(contrast_of_clusters(ours, ours, *none, 1.0)) == pytest.approx(expected)


def test_a_cluster_is_the_weighted_sum_of_its_images():
    embeddings = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    found = cluster_vectors(embeddings, torch.tensor([[0.75, 0.5], [0.25, 0.5]]))
    root = math.sqrt(0.5)
    torch.testing.assert_close(
        found, torch.tensor([[0.75, 0.25], [root, root]]).div(torch.tensor([[0.625**0.5], [1.0]]))
    )


def test_draws_follow_the_probabilities():
    logits = torch.tensor([math.log(0.5), math.log(0.3), math.log(0.2)]).expand(30_000, 3)
    drawn = gumbel_softmax(logits, torch.randn(30_000, 3, generator=torch.Generator().manual_seed(0)), 0.3)
    shares = torch.bincount(drawn.argmax(dim=1)) / 30_000
    torch.testing.assert_close(shares, torch.tensor([0.5, 0.3, 0.2]), atol=0.01, rtol=0)
    torch.testing.assert_close(drawn.sum(dim=1), torch.ones(30_000))


def test_the_divergence_from_equal_shares_by_hand():
    assert float(divergence_from_uniform(torch.full((3, 4), 0.25))) == pytest.approx(0, abs=1e-6)
    assert float(divergence_from_uniform(torch.eye(4))) == pytest.approx(math.log(4))


def test_a_step_contrasts_and_fills_both_queues():
    learner = learner_of("tcc", tcc__queue_size=96, tcc__cluster_batches=2, tcc__instance_weight=0.5, clusters=10)
    method = learner.method
    batch, ctx = step_of(learner, LABELS)
    losses = losses_of(learner, batch, ctx)
    assert list(losses) == ["clusters", "instances", "divergence"]
    a, b = batch.views()
    v = F.normalize(method.online(a), dim=1)
    assert losses["divergence"] == pytest.approx(
        0.5 * float(divergence_from_uniform(method.centres(v).detach().softmax(dim=1))), rel=1e-4
    )
    for action in ctx.later:
        action()
    assert method.keys["images"][:25].tolist() == [*range(24), -1]
    torch.testing.assert_close(method.keys["vectors"][:24], F.normalize(method.target(b), dim=1), rtol=1e-4, atol=1e-5)
    assert method.clusters["images"].tolist() == [*range(10), *[-1] * 10]


def test_the_head_decides_by_the_centres():
    learner = learner_of("tcc", clusters=10)
    method = learner.method
    features = torch.randn(6, method.online.features)
    projections = F.normalize(method.online.projector(features), dim=1)
    torch.testing.assert_close(method.assign(features), projections @ method.centres[0].weight.T)
