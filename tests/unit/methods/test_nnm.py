"""NNM: images matched with their neighbours and nearest images, compared with plain loops and by hand."""

import numpy as np
import pytest
import torch

from helpers import oracle
from helpers.recipes import lengths, of_system
from helpers.small import same_weights
from helpers.staged import next_epoch, opened
from propos.augment import plain_view
from propos.methods import settings_of
from propos.methods.nnm import losses_of_pairs, nearest_in_batch, pairs_to_match
from propos.training.m_step import m_step

BATCH = torch.arange(64)
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


def test_neighbours_are_the_stages_and_probabilities_those_of_the_network_before_each_epoch():
    learner, source, state = opened("nnm")
    tables = learner.method.tables
    neighbours, nearest = tables["table"].clone(), tables["nearest"].clone()
    assert (neighbours.shape, nearest.shape) == ((200, 21), (200, 3, 10))
    assert torch.equal(neighbours[:, 0], torch.arange(200))
    for _ in range(3):
        m_step(learner, source, BATCH, state)
    assert torch.equal(tables["nearest"], nearest)  # within an epoch they stay
    next_epoch(learner, source, state)
    assert not torch.equal(tables["nearest"], nearest)
    assert torch.equal(tables["table"], neighbours)


def test_all_images_are_matched_from_the_second_epoch_on():
    learner, source, state = opened("nnm")
    local = ["agreement", "clusters", "balance"]
    assert list(m_step(learner, source, BATCH, state)) == local
    next_epoch(learner, source, state)
    assert list(m_step(learner, source, BATCH, state)) == [*local, "all_agreement", "all_clusters"]


@pytest.mark.parametrize("settings", [{}, {"network__joint_views": True, "network__bn_groups": 2}])
def test_recomputed_blocks_give_the_same_bits(settings):
    plain, recomputed = (opened("nnm", train__recompute=each, **settings) for each in (False, True))
    losses = [m_step(learner, source, BATCH, state) for learner, source, state in (plain, recomputed)]
    assert losses[0] == losses[1]
    assert same_weights(plain[0].method, recomputed[0].method)


def test_the_nearest_image_is_that_of_its_features_and_every_heads_probabilities_are_kept():
    learner, source, _ = opened("nnm")
    method, pixels = learner.method.eval(), learner.config.pixels
    with torch.no_grad():
        images = plain_view(torch.from_numpy(source.batch(np.arange(200))), 8, pixels.mean, pixels.std)
        features = method.online.backbone(images)
        probabilities = method.heads(features).softmax(dim=-1)
    cosines = torch.nn.functional.normalize(features, dim=1)
    cosines = (cosines @ cosines.T).fill_diagonal_(-2)
    torch.testing.assert_close(method.tables["nearest"], probabilities[cosines.argmax(dim=1)])


def test_the_third_view_has_its_own_batch_norm():
    learner, source, state = opened("nnm", network__joint_views=True)
    rows = []
    learner.method.online.backbone.register_forward_hook(lambda _, inputs, __: rows.append(len(inputs[0])))
    m_step(learner, source, BATCH, state)
    assert rows == [128, 64]  # both views together, the third by itself


def test_nnm_has_its_own_settings():
    config = of_system("nnm-cifar-10")
    own, train = settings_of(config), config.train
    # 100 epochs in batches of 200 are 25,000 steps, as 257 of 97.
    assert lengths(config) == [500, 257]
    assert own.heads_lr * train.batch_size / 256 == pytest.approx(1e-4)
    assert (own.heads, own.neighbours, own.balance_weight) == (3, 20, 5.0)
    # SimCLR as SCAN's code trains it.
    assert train.lr * train.batch_size / 256 == pytest.approx(0.4)
    assert (train.batch_size, train.epochs, train.warmup, train.weight_decay) == (512, 757, 0, 1e-4)
