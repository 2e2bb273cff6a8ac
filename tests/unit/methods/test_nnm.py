"""NNM: images matched with their neighbours and nearest images, compared with plain loops and by hand."""

import numpy as np
import pytest
import torch

from helpers import oracle
from propos.methods.nnm import losses_of_pairs, nearest_in_batch, pairs_to_match

RNG = np.random.default_rng(0)
HEADS = RNG.dirichlet(np.ones(4), size=(3, 6, 2))  # images, neighbours and third views: images, heads, clusters
FEATURES = RNG.normal(size=(6, 3)) * [[1], [5], [1], [1], [5], [1]]  # of unlike lengths: not the cosine's neighbours
OF_NEAREST = RNG.dirichlet(np.ones(4), size=(6, 2))


def test_the_nearest_in_the_batch_by_hand():
    # On a line, at 1, 10, 2 and 12: by cosine all would be alike.
    assert nearest_in_batch(torch.tensor([[1.0], [10.0], [2.0], [12.0]])).tolist() == [2, 3, 0, 1]
    assert nearest_in_batch(torch.tensor(FEATURES)).tolist() == oracle.nearest_in_batch(FEATURES)


@pytest.mark.parametrize("with_all", [False, True])
@pytest.mark.parametrize("name", ["agreement", "clusters"])
@pytest.mark.parametrize("head", [0, 1])
def test_each_head_is_matched_with_its_own_probabilities(name, head, with_all):
    loss = {"agreement": oracle.neighbour_agreement, "clusters": oracle.cluster_matching}[name]
    others = HEADS[:, :, 1 - head]

    def ours(image):
        of_heads = [torch.tensor(others[0]), image] if head else [image, torch.tensor(others[0])]
        rest = (torch.tensor(each) for each in HEADS[1:])
        pairs = pairs_to_match(torch.stack(of_heads, dim=1), *rest, nearest_in_batch(torch.tensor(FEATURES)))
        if with_all:
            pairs = torch.cat(pairs), torch.tensor(OF_NEAREST).repeat(4, 1, 1)
        return losses_of_pairs(*pairs)[name][head]

    def theirs(image):
        pairs = oracle.local_pairs(image, HEADS[1, :, head], HEADS[2, :, head], FEATURES)
        return loss(np.concatenate(pairs), np.concatenate([OF_NEAREST[:, head]] * 4)) if with_all else loss(*pairs)

    oracle.check(ours, theirs, HEADS[0, :, head])
