"""CoNR: images aligned with their neighbours in the batch, by hand and compared with plain loops."""

import math

import numpy as np
import pytest
import torch

from helpers import oracle
from helpers.recipes import of_system
from helpers.staged import opened
from propos.augment import RandomViews
from propos.methods import settings_of, stages_of
from propos.methods.conr import alignment_with, inside_clusters, kept_share, neighbour_alignment, reranked
from propos.methods.seeds import generator
from propos.training.e_step import Partition
from propos.training.m_step import m_step

RNG = np.random.default_rng(0)
PREDICTION, TARGET = RNG.normal(size=(2, 12, 4))
CENTRES = RNG.normal(size=(3, 4))
LABELS = np.array([0, 1, 2, 0, 1, 2, -1, 0, 1, 2, 0, 1])


@pytest.mark.parametrize("share", [0.6, 0.7, 0.9, 1.0])
def test_the_loss_equals_the_oracle_in_value_and_gradient_at_every_share(share):
    kept = oracle.inside_clusters(TARGET, LABELS, CENTRES, share)
    shared = torch.tensor(TARGET), torch.tensor(LABELS), torch.tensor(CENTRES), share, 4
    oracle.check(
        lambda x: neighbour_alignment(x, *shared),
        lambda x: oracle.neighbour_alignment(x, TARGET, oracle.reranked(TARGET, 4, 2), kept),
        PREDICTION,
    )


def test_the_share_rises_each_epoch_until_all_are_kept():
    assert [kept_share(epoch, 50) for epoch in (0, 24, 49, 199)] == pytest.approx([0.804, 0.9, 1.0, 1.0])
    assert kept_share(49, 50) == 1.0  # to the bit: no image is lost to rounding


def test_neighbours_by_hand():
    # Four directions on a circle, at 0°, 10°, 40° and 60°: nearest pairs are the first two and the last two.
    angles = torch.tensor([0.0, 10.0, 40.0, 60.0]).deg2rad()
    keys = torch.stack([angles.cos(), angles.sin()], dim=1)
    assert [sorted(row) for row in reranked(keys, 2, 2).tolist()] == [[0, 1], [0, 1], [2, 3], [2, 3]]


def test_neighbours_in_common_count_more_than_being_near():
    keys = RNG.normal(size=(40, 3))
    found, plain = reranked(torch.tensor(keys), 6, 2), (torch.tensor(keys) @ torch.tensor(keys).T).topk(6).indices
    assert [sorted(row) for row in found.tolist()] == [sorted(row) for row in oracle.reranked(keys, 6, 2)]
    assert not torch.equal(found.sort().values, plain.sort().values)


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
    # Images that are nearer to another cluster than to their own come last.
    assert inside_clusters(keys, torch.tensor([0, 1, 1, 0]), centres, 0.75).tolist() == [True, False, True, True]


def test_the_loss_by_hand():
    # Of two images one is kept: at right angles to its first neighbour (2), along its second (0); four pairs.
    prediction, target = torch.tensor([[0.0, 3.0], [1.0, 0.0]]), torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    neighbours, kept = torch.tensor([[0, 1], [1, 0]]), torch.tensor([True, False])
    assert float(alignment_with(prediction, target, neighbours, kept)) == pytest.approx(2 / 4)


def test_for_images_without_a_cluster_the_loss_and_its_gradient_are_zero():
    first = torch.tensor(PREDICTION, requires_grad=True)
    nobody = torch.full((12,), -1)
    loss = neighbour_alignment(first, torch.tensor(TARGET), nobody, torch.tensor(CENTRES), 1.0, 4)
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert not first.grad.any()


def test_no_gradient_reaches_targets_or_prototypes_through_the_choice_of_neighbours():
    target = torch.tensor(TARGET, requires_grad=True)
    assert not reranked(target, 4, 2).requires_grad
    assert not inside_clusters(target, torch.tensor(LABELS), torch.tensor(CENTRES), 0.5).requires_grad


@pytest.mark.parametrize(("scale", "expected"), [((0.1, 0.9), (0.45, 0.9)), ((0.6, 1.0), (0.6, 1.0))])
def test_its_views_show_more_of_an_image_and_nothing_else_of_them_changes(scale, expected):
    learner, source, state = opened("conr", views__crop_scale=scale)
    state.partition = Partition(torch.arange(200) % 10, torch.eye(10, 16))
    seen = []
    learner.method.online.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0]))
    assert list(m_step(learner, source, torch.arange(64), state)) == ["neighbours"]
    config = learner.config
    views = RandomViews(config.views.model_copy(update={"crop_scale": expected}), config.pixels.mean, config.pixels.std)
    images = torch.from_numpy(source.batch(np.arange(64)))
    for ours, theirs in zip(seen, views(images, generator(learner.seed, "views", 0, 0)), strict=True):
        assert torch.equal(ours, theirs)


def test_conr_has_its_own_settings():
    config = of_system("conr-cifar-10")
    own = settings_of(config)
    assert (own.pretext, config.network.backbone, own.neighbours) == ("byol", "resnet18", 10)
    assert config.train.lr * config.train.batch_size / 256 == pytest.approx(0.1)
    refining = stages_of(config)[1]
    assert refining.train["lr"] == pytest.approx(0.05 * 0.1 * (1 + math.cos(0.75 * math.pi)) / 2, rel=0.03)
