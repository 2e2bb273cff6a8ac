"""Clusters matched with clusters, or telling of them, images with their nearest: by hand, and beside plain loops."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from propos.objectives import (
    ClusterBalance,
    ClusterMatching,
    EachHead,
    NearestInBatch,
    NearestOfAll,
    NeighbourAgreement,
    Outputs,
    cluster_matching,
)
from propos.objectives.nearest import nearest_in_batch

from helpers import oracle

RNG = np.random.default_rng(0)
IMAGE, NEIGHBOUR, AGAIN = RNG.dirichlet(np.ones(4), size=(3, 6))
FEATURES = RNG.normal(size=(6, 3)) * [[1], [5], [1], [1], [5], [1]]  # of unlike lengths: not the cosine's neighbours
ANSWERS = RNG.dirichlet(np.ones(4), size=(6, 2))  # of two heads
NOBODY = torch.zeros(6).long()


def outputs_of(image):
    nothing = (torch.zeros(6, 2), torch.zeros(6, 2))
    return Outputs(
        *(nothing,) * 3,
        assignments=(image, torch.tensor(NEIGHBOUR)),
        again=torch.tensor(AGAIN),
        features=(torch.tensor(FEATURES), torch.tensor(FEATURES)),
        head=1,
        prepared={"nearest answers": torch.tensor(ANSWERS)},
    )


def locally(loss, image):
    return loss(*oracle.local_pairs(image, NEIGHBOUR, AGAIN, FEATURES))


def overall(loss, image):
    ours = np.concatenate(oracle.local_pairs(image, NEIGHBOUR, AGAIN, FEATURES))
    return loss(ours, np.concatenate([ANSWERS[:, 1]] * 4))


CASES = {
    "matching": (
        lambda x: cluster_matching(x, torch.tensor(NEIGHBOUR)),
        lambda x: oracle.cluster_matching(x, NEIGHBOUR),
    ),
    "agreement with the batch": (
        lambda x: NearestInBatch(NeighbourAgreement())(outputs_of(x), NOBODY),
        lambda x: locally(oracle.neighbour_agreement, x),
    ),
    "matching with the batch": (
        lambda x: NearestInBatch(ClusterMatching())(outputs_of(x), NOBODY),
        lambda x: locally(oracle.cluster_matching, x),
    ),
    "balance of both views of an image": (
        lambda x: NearestInBatch(ClusterBalance(first_alone=True))(outputs_of(x), NOBODY),
        lambda x: oracle.cluster_balance([*x, *AGAIN]),
    ),
    "agreement with all images": (
        lambda x: NearestOfAll(NeighbourAgreement())(outputs_of(x), NOBODY),
        lambda x: overall(oracle.neighbour_agreement, x),
    ),
    "matching with all images": (
        lambda x: NearestOfAll(ClusterMatching())(outputs_of(x), NOBODY),
        lambda x: overall(oracle.cluster_matching, x),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_loss_equals_the_oracle_in_value_and_gradient(name):
    oracle.check(*CASES[name], IMAGE)


def test_matching_by_hand():
    # Cosines of 1 with itself and 0 with the other: log(1 + e^−1); all the other way round: log(1 + e).
    sure, other = torch.eye(2), torch.eye(2).flip(0)
    assert float(cluster_matching(sure, sure)) == pytest.approx(math.log(1 + math.exp(-1)))
    assert float(cluster_matching(sure, other)) == pytest.approx(math.log(1 + math.e))


def test_clusters_that_no_image_is_in_leave_the_matching_finite():
    first = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], requires_grad=True)
    loss = cluster_matching(first, first.detach())
    loss.backward()
    # Of three clusters two match as well as they can, and one is told from nothing.
    assert float(loss.detach()) == pytest.approx((2 * math.log(1 + 2 * math.exp(-1)) + math.log(3)) / 3)
    assert bool(torch.isfinite(first.grad).all())


def test_the_nearest_in_the_batch_by_hand():
    # On a line, at 1, 10, 2 and 12: by cosine all would be alike.
    assert nearest_in_batch(torch.tensor([[1.0], [10.0], [2.0], [12.0]])).tolist() == [2, 3, 0, 1]
    assert nearest_in_batch(torch.tensor(FEATURES)).tolist() == oracle.nearest_in_batch(FEATURES)


def test_every_head_is_matched_with_its_own_answers():
    heads = [torch.tensor(RNG.dirichlet(np.ones(4), size=(6, 2))) for _ in range(3)]
    several = replace(outputs_of(heads[0]), assignments=(heads[0], heads[1]), again=heads[2])
    found = EachHead(NearestOfAll(NeighbourAgreement())).by_head(several, NOBODY)
    for head in range(2):
        image, neighbour, again = (each[:, head].numpy() for each in heads)
        ours = np.concatenate(oracle.local_pairs(image, neighbour, again, FEATURES))
        expected = oracle.neighbour_agreement(ours, np.concatenate([ANSWERS[:, head]] * 4))
        assert float(found[head]) == pytest.approx(expected, abs=1e-9)
