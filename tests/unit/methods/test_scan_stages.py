"""SCAN: losses summed over the heads, one of which is chosen and labels images."""

import numpy as np
import pytest
import torch

from helpers import oracle
from helpers.recipes import lengths, of_system
from helpers.staged import opened
from propos.methods import settings_of
from propos.training.context import BatchContext
from propos.training.m_step import m_step

BATCH = torch.arange(64)


def recorded(learner):
    """Return the probabilities that the heads of a method give from now on, pass by pass."""
    passes = []
    learner.method.heads.register_forward_hook(
        lambda _, __, logits: passes.append(logits.detach().double().softmax(dim=-1).numpy())
    )
    return passes


def test_clustering_is_summed_over_heads_and_the_balance_is_of_the_first_view():
    learner, source, state = opened("scan", heads=3)
    passes = recorded(learner)
    losses = m_step(learner, source, BATCH, state)
    first, second = passes
    agreement = [oracle.neighbour_agreement(first[:, head], second[:, head]) for head in range(3)]
    balance = [5 * oracle.cluster_balance(first[:, head]) for head in range(3)]
    assert float(losses["agreement"]) == pytest.approx(sum(agreement), rel=1e-4)
    assert float(losses["balance"]) == pytest.approx(sum(balance), rel=1e-3)
    learner.method.end_epoch(BatchContext.of(learner, state))
    assert int(learner.method.heads.chosen) == int(np.argmin(np.add(agreement, balance)))


def test_without_a_weight_there_is_no_balance():
    learner, source, state = opened("scan", balance_weight=0.0)
    assert list(m_step(learner, source, BATCH, state)) == ["agreement"]


def test_the_chosen_head_alone_labels_images_and_stays_chosen():
    learner, source, state = opened("scan", 2, heads=3, confidence=0.11)
    learner.method.heads.chosen.fill_(2)
    passes = recorded(learner)
    loss = m_step(learner, source, BATCH, state)["labels"]
    plain, strong = (each[:, 2] for each in passes)
    expected = oracle.self_label(plain, strong, 0.11, by_cluster=True)
    assert expected > 0
    assert float(loss) == pytest.approx(expected, rel=1e-4)
    learner.method.end_epoch(BatchContext.of(learner, state))
    assert int(learner.method.heads.chosen) == 2


def test_scan_has_its_own_settings():
    config = of_system("scan-cifar-10")
    own, train = settings_of(config), config.train
    assert lengths(config) == [500, 200, 100]
    assert own.heads_lr * train.batch_size / 256 == pytest.approx(1e-4)
    assert train.lr * train.batch_size / 256 == pytest.approx(0.4)
    assert config.sections["simclr"]["temperature"] == 0.1
    assert (own.neighbours, own.balance_weight, own.confidence) == (20, 5.0, 0.99)
