"""Images aligned with their neighbours in the batch: by hand, and beside plain loops."""

import numpy as np
import pytest
import torch
from propos.objectives import NeighbourAlignment, Outputs, neighbour_alignment
from propos.objectives.reranking import inside_clusters, reranked

from helpers import oracle

RNG = np.random.default_rng(0)
PREDICTIONS, TARGETS = RNG.normal(size=(2, 2, 12, 4))
CENTRES = RNG.normal(size=(3, 4))
LABELS = np.array([0, 1, 2, 0, 1, 2, -1, 0, 1, 2, 0, 1])


def tensors(pair):
    return torch.tensor(pair[0]), torch.tensor(pair[1])


def outputs_of(predictions, epoch):
    targets = tensors(TARGETS)
    return Outputs(targets, predictions, targets, prototypes=torch.tensor(CENTRES), epoch=epoch)


def both_directions(first, share):
    total = 0.0
    for ours, theirs in ((first, TARGETS[1]), (PREDICTIONS[1], TARGETS[0])):
        kept = oracle.inside_clusters(theirs, LABELS, CENTRES, share)
        total += oracle.neighbour_alignment(ours, theirs, oracle.reranked(theirs, 4, 2), kept) / 2
    return total


@pytest.mark.parametrize(("epoch", "share"), [(0, 0.6), (1, 0.7), (3, 0.9), (4, 1.0), (9, 1.0)])
def test_the_loss_equals_the_oracle_in_value_and_gradient_at_every_share(epoch, share):
    objective, second = NeighbourAlignment(4, 2, 0.5, 5), torch.tensor(PREDICTIONS[1])
    oracle.check(
        lambda x: objective(outputs_of((x, second), epoch), torch.tensor(LABELS)),
        lambda x: both_directions(x, share),
        PREDICTIONS[0],
    )


def test_the_share_rises_each_epoch_until_all_are_kept():
    share = NeighbourAlignment(10, 2, 0.8, 50).share
    assert [share(0), share(24), share(49), share(199)] == pytest.approx([0.804, 0.9, 1.0, 1.0])
    assert share(49) == 1.0  # to the bit: no image is lost to rounding


def test_neighbours_by_hand():
    # Four directions on a circle, at 0°, 10°, 40° and 60°: nearest pairs are the first two and the last two.
    angles = torch.tensor([0.0, 10.0, 40.0, 60.0]).deg2rad()
    keys = torch.stack([angles.cos(), angles.sin()], dim=1)
    assert [sorted(row) for row in reranked(keys, 2, 2).tolist()] == [[0, 1], [0, 1], [2, 3], [2, 3]]


def test_neighbours_in_common_count_more_than_being_near():
    keys = RNG.normal(size=(40, 3))
    found, plain = reranked(torch.tensor(keys), 6, 2), (torch.tensor(keys) @ torch.tensor(keys).T).topk(6).indices
    assert [sorted(row) for row in found.tolist()] == [sorted(row) for row in oracle.reranked(keys, 6, 2)]
    assert sorted(found[0].tolist()) != sorted(plain[0].tolist())


def test_a_batch_of_fewer_images_than_neighbours_has_all_of_them():
    assert [sorted(row) for row in reranked(torch.eye(3), 10, 2).tolist()] == [[0, 1, 2]] * 3


def test_images_between_clusters_by_hand():
    # On a quarter of a circle between two prototypes: 45° lies between them, 5° inside the first, 80° in the second.
    angles = torch.tensor([45.0, 5.0, 80.0, 5.0]).deg2rad()
    keys, centres = torch.stack([angles.cos(), angles.sin()], dim=1), torch.eye(2)
    labels = torch.tensor([0, 0, 1, -1])
    assert inside_clusters(keys, labels, centres, 0.5).tolist() == [False, True, True, False]
    assert inside_clusters(keys, labels, centres, 0.25).tolist() == [False, True, False, False]
    assert inside_clusters(keys, labels, centres, 1.0).tolist() == [True, True, True, False]  # -1 is in no cluster
    # What lies nearer to another cluster than to its own comes last.
    assert inside_clusters(keys, torch.tensor([0, 1, 1, 0]), centres, 0.75).tolist() == [True, False, True, True]


def test_the_loss_by_hand():
    # Of two images one is kept: at right angles to its first neighbour (2), along its second (0); four pairs.
    prediction, target = torch.tensor([[0.0, 3.0], [1.0, 0.0]]), torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    neighbours, kept = torch.tensor([[0, 1], [1, 0]]), torch.tensor([True, False])
    assert float(neighbour_alignment(prediction, target, neighbours, kept)) == pytest.approx(2 / 4)


def test_images_without_a_cluster_ask_for_nothing_and_leave_the_gradient_finite():
    first = torch.tensor(PREDICTIONS[0], requires_grad=True)
    loss = NeighbourAlignment(4, 2, 0.5, 5)(outputs_of((first, torch.tensor(PREDICTIONS[1])), 9), torch.full((12,), -1))
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert not first.grad.any()


def test_no_gradient_reaches_targets_or_prototypes_through_who_is_a_neighbour():
    target = torch.tensor(TARGETS[0], requires_grad=True)
    assert not reranked(target, 4, 2).requires_grad
    assert not inside_clusters(target, torch.tensor(LABELS), torch.tensor(CENTRES), 0.5).requires_grad
