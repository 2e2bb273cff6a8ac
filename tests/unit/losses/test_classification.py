"""Classification into labels that a method gives its own images: compared with torch and an oracle, and by hand."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from helpers import oracle
from propos.losses import balanced_cross_entropy, self_labelling

RNG = np.random.default_rng(0)
LABELS = torch.tensor([0, 2, 0, -1, 2, 0, -1])
SCORES = RNG.normal(size=(7, 5))
STRONG, PLAIN = RNG.dirichlet(np.full(4, 0.5), size=(2, 8))


def test_balanced_cross_entropy_is_torchs_weighted_by_class():
    scores = torch.tensor(SCORES, requires_grad=True)
    known = LABELS >= 0
    counts = torch.bincount(LABELS[known], minlength=5)
    weights = known.sum() / counts.clamp(min=1).double()
    expected = F.cross_entropy(scores[known], LABELS[known], weight=weights)
    (theirs,) = torch.autograd.grad(expected, scores)
    ours = balanced_cross_entropy(scores.softmax(dim=1), LABELS)
    torch.testing.assert_close(ours, expected)
    torch.testing.assert_close(torch.autograd.grad(ours, scores)[0], theirs)


def test_balanced_cross_entropy_by_hand():
    # Two images of label 0 at probabilities of ½ and ¼, one of label 1 at ¼, one without a label.
    probabilities = torch.tensor([[0.5, 0.5], [0.25, 0.75], [0.75, 0.25], [0.0, 1.0]])
    loss = balanced_cross_entropy(probabilities, torch.tensor([0, 0, 1, -1]))
    assert float(loss) == pytest.approx((1.5 * math.log(2) + 2 * math.log(2)) / 2)


def test_without_labels_the_loss_is_zero_and_a_probability_of_zero_is_finite():
    probabilities = torch.tensor([[1.0, 0.0]], requires_grad=True)
    assert float(balanced_cross_entropy(probabilities, torch.tensor([-1])).detach()) == 0.0
    loss = balanced_cross_entropy(probabilities, torch.tensor([1]))
    loss.backward()
    assert math.isfinite(float(loss.detach()))
    assert bool(torch.isfinite(probabilities.grad).all())


@pytest.mark.parametrize("per_cluster", [False, True])
def test_self_labelling_equals_the_oracle_in_value_and_gradient(per_cluster):
    oracle.check(
        lambda x: self_labelling(torch.tensor(PLAIN), x, 0.6, per_cluster),
        lambda x: oracle.self_label(PLAIN, x, 0.6, by_cluster=per_cluster),
        STRONG,
    )


def test_self_labelling_by_hand():
    plain = torch.tensor([[0.9, 0.1], [0.95, 0.05], [0.1, 0.9], [0.5, 0.5]])
    strong = torch.tensor([[0.5, 0.5], [0.25, 0.75], [0.75, 0.25], [0.0, 1.0]])
    # Cluster 0: the mean of log 2 and log 4; cluster 1: log 4; the last image is not confident.
    assert float(self_labelling(plain, strong, 0.8)) == pytest.approx((1.5 * math.log(2) + 2 * math.log(2)) / 2)


def test_a_cluster_with_fewer_confident_images_has_a_lower_threshold():
    # Above 0.8 cluster 0 has two images, cluster 1 one (from 0.8 · ½ / 1½ on, so both), cluster 2 none (from 0 on).
    plain = torch.tensor(
        [[0.9, 0.1, 0], [0.95, 0, 0.05], [0.1, 0.9, 0], [0.2, 0.6, 0.2], [0.3, 0.2, 0.5], [0.6, 0.4, 0]]
    )
    strong = torch.tensor([0.5, 0.25, 0.25, 1.0, 0.125, 1.0])
    strong = torch.stack([strong[i] * F.one_hot(plain[i].argmax(), 3) for i in range(6)])
    # In halvings: cluster 0 (1 + 2) / 2, its last image is below its own 0.8; cluster 1 (2 + 0) / 2; cluster 2: 3.
    per_cluster = self_labelling(plain, strong, 0.8, threshold_per_cluster=True)
    assert float(per_cluster) == pytest.approx((1.5 + 1 + 3) / 3 * math.log(2))
    assert float(self_labelling(plain, strong, 0.8)) == pytest.approx((1.5 + 2) / 2 * math.log(2))
    # Without any confident image, none is labelled.
    assert float(self_labelling(plain, strong, 0.99, threshold_per_cluster=True)) == 0.0


def test_without_confident_images_the_loss_is_zero_and_plain_views_have_no_gradient():
    plain, strong = (torch.tensor(each, requires_grad=True) for each in (PLAIN, STRONG))
    nothing = self_labelling(plain, strong, 0.9999)
    nothing.backward()
    assert float(nothing.detach()) == 0.0
    assert torch.equal(strong.grad, torch.zeros_like(strong))
    self_labelling(plain, strong, 0.5).backward()
    assert plain.grad is None
