"""IFND: which negatives are left out, and the contrast with the rest."""

import math

import numpy as np
import pytest
import torch

from helpers import oracle
from helpers.small import digits
from helpers.steps import arrays, learner_of, losses_of, step_of
from propos.losses import info_nce
from propos.methods.ifnd import contrast_without, most_confident, share_a_label
from propos.training.e_step import e_step, embedded_images

LABELS = torch.arange(200) % 10
RNG = np.random.default_rng(0)


def test_images_with_a_label_in_common_are_no_negatives():
    clusterings = torch.tensor([[0, 0, 1, -1, 2], [3, 4, 4, -1, -1]])
    found = share_a_label(torch.tensor([0, 1, 3]), torch.tensor([0, 1, 2, 3, 4, -1]), clusterings)
    assert found.int().tolist() == [
        [1, 1, 0, 0, 0, 0],  # 0 has 1's label in the first clustering
        [1, 1, 1, 0, 0, 0],  # 1 has 2's in the second
        [0, 0, 0, 1, 0, 0],  # without a label there is the image itself alone
    ]


def test_the_most_confident_images_are_labelled_first():
    confidence = torch.tensor([5, 9, 7, 9, 1])
    assert most_confident(confidence, 0.0).tolist() == [False] * 5
    assert most_confident(confidence, 0.6).tolist() == [False, True, True, True, False]
    assert most_confident(confidence, 1.0).all()


def test_without_exclusions_it_is_infonce():
    q, k = (torch.tensor(RNG.normal(size=(3, 4))) for _ in range(2))
    negatives = torch.nn.functional.normalize(torch.tensor(RNG.normal(size=(6, 4))), dim=1)
    none = torch.zeros(3, 6, dtype=torch.bool)
    torch.testing.assert_close(contrast_without(q, k, negatives, none, 0.2), info_nce(q, k, negatives, 0.2))


def test_excluded_negatives_are_not_in_the_sum():
    q = torch.tensor([[1.0, 0.0]])
    negatives = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    found = contrast_without(q, q, negatives, torch.tensor([[True, False]]), 1.0)
    assert float(found) == pytest.approx(math.log(1 + math.exp(-2)))
    assert float(contrast_without(q, q, negatives, torch.tensor([[True, True]]), 1.0)) == 0


def test_more_images_have_labels_from_epoch_to_epoch():
    learner = learner_of("ifnd", ifnd__clusters=(5, 20))
    found = e_step(learner, digits(), 0, None)
    labels = learner.method.memory["labels"]
    assert (labels == -1).all()
    for epoch, count in ((1, 50), (2, 100), (3, 150)):  # of four epochs and 200 images
        _, ctx = step_of(learner, found.labels, epoch)
        learner.method.after_clustering(embedded_images(learner, found, epoch, None), ctx)
        assert (learner.method.memory["labels"] >= 0).sum(dim=1).tolist() == [count, count]


def test_a_step_contrasts_with_the_queue():
    learner = learner_of("ifnd", ifnd__clusters=(5, 8), ifnd__queue_size=96)
    method = learner.method
    batch, ctx = step_of(learner, LABELS)
    a, b = batch.views()
    q, k, negatives = arrays(method.online(a), method.target(b), method.queue["vectors"])
    assert losses_of(learner, batch, ctx)["contrast"] == pytest.approx(oracle.info_nce(q, k, negatives, 0.2), rel=1e-4)
