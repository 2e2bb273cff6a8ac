"""SPICE: labels of prototypes, labels that neighbours share, and images with several labels."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from helpers import oracle
from helpers.recipes import built, lengths, of_system, widths
from helpers.staged import next_epoch, opened
from propos.clustering import nearest_neighbours
from propos.methods import settings_of, stages_of
from propos.methods.spice import agreed_labels, prototype_labels, several_labels
from propos.training.m_step import m_step

RNG = np.random.default_rng(0)
PROBABILITIES = torch.tensor(RNG.normal(size=(7, 5))).softmax(dim=1).numpy()
SEVERAL = RNG.random(size=(7, 5)) < 0.4  # some images have several labels
SEVERAL[2] = False  # and one has none

# Six images: three along the first axis, two along the second, one between both.
AROUND = F.normalize(torch.tensor([[2.0, 0.0], [1.0, 0.1], [1.0, -0.2], [0.0, 1.0], [0.1, 3.0], [1.0, 1.0]]), dim=1)


def test_several_labels_compared_with_plain_loops():
    assert SEVERAL.sum(axis=1).max() > 1
    oracle.check(
        lambda x: several_labels(x[:, None], torch.tensor(SEVERAL)[:, None])[0],
        lambda x: oracle.several_labels(x, SEVERAL),
        PROBABILITIES,
    )


def test_several_labels_by_hand():
    # A confident image has odds of e at its label; one with both labels has the loss of ½ at each.
    sure, torn, nobody = [1.0, 0.0], [0.5, 0.5], [0.1, 0.9]
    labels = torch.tensor([[True, False], [True, True], [False, False]])[:, None]
    expected = (math.log(1 + math.exp(-1)) + 2 * math.log(2)) / 3
    assert several_labels(torch.tensor([sure, torn, nobody])[:, None], labels).tolist() == pytest.approx([expected])
    assert several_labels(torch.tensor([sure])[:, None], labels[2:]).tolist() == [0.0]


def test_each_head_has_several_labels_of_its_own():
    probabilities = torch.tensor(RNG.normal(size=(7, 2, 5))).softmax(dim=2)
    labels = torch.stack([torch.tensor(SEVERAL), ~torch.tensor(SEVERAL)], dim=1)
    expected = [oracle.several_labels(probabilities[:, head].numpy(), labels[:, head].numpy()) for head in (0, 1)]
    np.testing.assert_allclose(several_labels(probabilities, labels).numpy(), expected)


def test_labels_of_prototypes_by_hand():
    # The first head is most confident of image 0 in its first cluster and of image 3 in its second: each labels three
    # images (half of six), the nearest to it. The second is most confident of image 5 in both clusters.
    first, second = torch.tensor([[0.9, 0.7, 0.6, 0.1, 0.2, 0.4], [0.5, 0.5, 0.5, 0.5, 0.5, 0.6]])
    of_first, of_second = (torch.stack([each, 1 - each], dim=1) for each in (first, second))
    of_second[5, 1] = 0.7
    labels = prototype_labels(AROUND, of_first, 1 / 3)
    assert labels.T.int().tolist() == [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]
    assert prototype_labels(AROUND, of_second, 1 / 3).T.int().tolist() == [[0, 1, 0, 0, 1, 1]] * 2
    # Two confident images each: the mean of images 0 and 1, or of 3 and 4.
    assert torch.equal(prototype_labels(AROUND, of_first, 2 / 3), labels)


def test_prototypes_of_more_clusters_than_images_have_an_image_each():
    labels = prototype_labels(AROUND, torch.eye(6, 40), 0.5)
    assert torch.equal(labels[:, :6], torch.eye(6).bool())
    assert labels.sum(dim=0).unique().tolist() == [1]


def test_labels_that_neighbours_share_by_hand():
    # Images 0, 1, 2 and 5 are in the first cluster, image 2 not confidently. Nearest to 5 are 1 and 4, to 3 and 4 each
    # other and 5, to 0, 1 and 2 each other.
    first = torch.tensor([0.9, 0.9, 0.6, 0.1, 0.2, 0.9])
    probabilities = torch.stack([first, 1 - first], dim=1)

    def labels(count, share, threshold, rows=slice(0, 6)):
        near = nearest_neighbours(AROUND, min(count, 6) - 1, rows)
        return agreed_labels(probabilities, near, rows, share, threshold).tolist()

    assert labels(3, 1.0, 0.7) == [0, 0, -1, -1, -1, -1]
    assert labels(3, 0.6, 0.7) == [0, 0, -1, 1, 1, 0]
    assert labels(2, 1.0, 0.85) == [0, 0, -1, 1, -1, 0]
    assert labels(100, 0.1, 0.0) == [0, 0, 0, 1, 1, 0]  # more than there are: all
    assert labels(3, 1.0, 0.7, slice(1, 4)) == [0, -1, -1]


def test_labels_of_prototypes_follow_the_heads_while_the_network_is_frozen():
    learner, source, state = opened("spice", heads=3)
    before = learner.method.tables["prototype_labels"].clone()
    assert before.shape == (200, 3, 10)
    assert before.sum(dim=0).unique().tolist() == [20]
    backbone = {name: tensor.clone() for name, tensor in learner.method.online.backbone.state_dict().items()}
    for _ in range(3):
        m_step(learner, source, torch.arange(64), state)
    assert torch.equal(learner.method.tables["prototype_labels"], before)
    next_epoch(learner, source, state)
    assert not torch.equal(learner.method.tables["prototype_labels"], before)
    now = learner.method.online.backbone.state_dict()
    assert all(torch.equal(now[name], tensor) for name, tensor in backbone.items())


def test_spice_has_its_own_settings():
    config = of_system("spice-cifar-10")
    own, moco, train = settings_of(config), config.sections["moco"], config.train
    assert lengths(config) == [1000, 240, 480]
    assert (own.pretext, config.network.backbone, own.heads) == ("moco", "resnet18", 10)
    assert train.lr * train.batch_size / 256 == pytest.approx(0.015)
    assert (train.batch_size, train.warmup, train.weight_decay, train.schedule) == (128, 0, 1e-4, "cosine")
    assert (moco["temperature"], config.network.momentum, moco["queue_size"]) == (0.2, 0.999, 12800)
    heads, network = stages_of(config)[1:]
    assert (heads.train["optimiser"], heads.train["weight_decay"]) == ("adam", 0.0)
    assert heads.train["lr"] * train.batch_size / 256 == pytest.approx(0.005)
    networks = built(config)
    assert widths(networks.heads) == (networks.online.features, 10) * 10
    assert network.train["lr"] * train.batch_size / 256 == pytest.approx(0.03)
    assert (network.train["weight_decay"], network.train["decay_norms"]) == (5e-4, False)
    assert (own.neighbours, own.confidence) == (100, 0.99)
