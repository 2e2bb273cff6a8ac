"""LFSS: its losses by hand and compared with plain loops, and which images are stable."""

import numpy as np
import pytest
import torch

from helpers import oracle
from helpers.recipes import of_system
from helpers.staged import next_epoch, opened
from propos.methods import settings_of, stages_of
from propos.methods.lfss import contrast_with_before, least_stable, prototype_contrast
from propos.training.e_step import Partition
from propos.training.m_step import m_step

RNG = np.random.default_rng(0)
ONLINE, OTHER = RNG.normal(size=(2, 9, 4))
LABELS = np.array([0, 1, 3, 0, 1, -1, 3, 0, 1])  # cluster 2 is absent


def contrast_by_loops(online, before):
    losses = []
    for i in range(len(online)):
        others = [np.exp(oracle.cosine(online[i], before[j]) / 0.5) for j in range(len(online)) if j != i]
        losses.append(np.log(np.sum(others)) - oracle.cosine(online[i], before[i]) / 0.5)
    return np.mean(losses)


def prototypes_by_loops(online, target):
    present = [k for k in range(4) if (k == LABELS).any()]
    ours, twins = ([rows[k == LABELS].sum(axis=0) for k in present] for rows in (online, target))
    return oracle.nt_xent(np.array(ours), np.array(twins), 0.5)


def test_the_contrast_with_the_epoch_before_equals_plain_loops():
    oracle.check(
        lambda x: contrast_with_before(x, torch.tensor(OTHER), 0.5), lambda x: contrast_by_loops(x, OTHER), ONLINE
    )


def test_the_contrast_of_prototypes_equals_plain_loops():
    shared = torch.tensor(OTHER), torch.tensor(LABELS), 0.5
    for clusters in (None, 4, 20):
        oracle.check(
            lambda x, clusters=clusters: prototype_contrast(x, *shared, clusters),
            lambda x: prototypes_by_loops(x, OTHER),
            ONLINE,
        )


@pytest.mark.parametrize("labels", [[-1] * 9, [2] * 9])
def test_without_two_clusters_the_loss_and_its_gradient_are_zero(labels):
    online = torch.tensor(ONLINE, requires_grad=True)
    loss = prototype_contrast(online, torch.tensor(OTHER), torch.tensor(labels), 0.5, 4)
    loss.backward()
    assert float(loss.detach()) == pytest.approx(0.0, abs=1e-12)
    assert online.grad.abs().max() < 1e-9


def test_no_gradient_reaches_targets():
    target = torch.tensor(OTHER, requires_grad=True)
    assert not contrast_with_before(torch.tensor(ONLINE), target, 0.5).requires_grad
    assert not prototype_contrast(torch.tensor(ONLINE), target, torch.tensor(LABELS), 0.5).requires_grad


def test_the_least_stable_images_by_hand():
    cosines = torch.tensor([0.9, 0.2, 0.8, 0.5, 0.7])
    assert least_stable(cosines, 0.6).tolist() == [False, True, False, True, False]  # those below the third smallest
    assert not least_stable(cosines, 0.1).any()  # less than one image
    assert not least_stable(torch.ones(10), 0.5).any()


def test_images_that_moved_since_the_epoch_before_are_left_out_of_prototypes():
    learner, source, state = opened("lfss", 0, lfss__prototypes_start=1, lfss__unstable=0.25, network__momentum=0.5)
    method = learner.method
    assert not method.memory["unstable"].any()
    state.partition = Partition(torch.arange(200) % 10, torch.eye(10, 16))
    for _ in range(3):
        m_step(learner, source, torch.arange(64), state)
    before = [p.clone() for p in method.previous.parameters()]
    assert all(map(torch.equal, before, method.previous.parameters()))  # the same during an epoch
    next_epoch(learner, source, state)
    assert 40 <= int(method.memory["unstable"].sum()) <= 49  # a quarter of 200, but for ties
    assert all(map(torch.equal, method.target.module.parameters(), method.previous.module.parameters()))
    losses = m_step(learner, source, torch.arange(64), state)
    assert list(losses) == ["alignment", "stability", "prototypes"]
    method.memory["unstable"].fill_(True)
    assert float(m_step(learner, source, torch.arange(64), state)["prototypes"]) == 0.0


def test_lfss_has_its_own_settings():
    config = of_system("lfss-cifar-10")
    own, train = settings_of(config), config.train
    assert (own.unstable, own.stability_weight, own.prototypes_start) == (0.1, 0.1, 0)
    assert (train.batch_size, train.epochs, train.warmup, train.schedule) == (256, 1000, 10, "cosine-of-all")
    assert config.network.backbone == "resnet18"
    assert stages_of(config)[0].first_clusters == 0
