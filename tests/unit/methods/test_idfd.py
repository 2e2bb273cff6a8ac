"""IDFD: features told from one another by hand and compared with plain loops, and a step with the bank."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from helpers import oracle
from helpers.recipes import of_system
from helpers.small import CPU, digits, quick_config
from propos.methods import settings_of
from propos.methods.idfd import feature_decorrelation
from propos.training.e_step import unassigned
from propos.training.learner import build_learner
from propos.training.m_step import m_step
from propos.training.state import first_state

BATCH = torch.arange(40, 104)


def stepped(**settings):
    """Take one step; return the method, its bank before, the projections of both views, and the losses."""
    source = digits()
    learner = build_learner(quick_config(source, method="idfd", **settings), source, CPU)
    state = first_state(learner)
    state.partition = unassigned(200, CPU)
    bank, views = learner.method.bank["vectors"].clone(), []
    learner.method.online.register_forward_hook(lambda *passed: views.append(passed[2].detach()))
    return learner.method, bank, views, m_step(learner, source, BATCH, state)


def test_decorrelation_equals_the_oracle_in_value_and_gradient():
    oracle.check(
        lambda point: feature_decorrelation(point, 2.0),
        lambda point: oracle.feature_decorrelation(point, 2.0),
        np.random.default_rng(0).normal(size=(5, 3)),
    )


def test_decorrelation_by_hand():
    """Two equal features are confused in half of the cases; two that are independent less often."""
    same = torch.tensor([[1.0, 1.0], [2.0, 2.0], [-1.0, -1.0]])
    assert float(feature_decorrelation(same, 2.0)) == pytest.approx(math.log(2))
    assert float(feature_decorrelation(torch.eye(2), 2.0)) == pytest.approx(math.log(1 + math.exp(-0.5)))


def test_both_losses_are_means_over_both_views():
    _, bank, views, losses = stepped(decorrelation_weight=0.5)
    views, bank = [view.double().numpy() for view in views], bank.double().numpy()
    instances = np.mean([oracle.instance_softmax(view, bank, BATCH.tolist(), 1.0) for view in views])
    decorrelation = np.mean([oracle.feature_decorrelation(view, 2.0) for view in views])
    assert list(losses) == ["instances", "decorrelation"]
    assert float(losses["instances"]) == pytest.approx(instances, rel=1e-5)
    assert float(losses["decorrelation"]) == pytest.approx(0.5 * decorrelation, rel=1e-5)


def test_a_weight_of_zero_leaves_decorrelation_out():
    *_, losses = stepped(decorrelation_weight=0.0)
    assert list(losses) == ["instances"]


def test_a_step_moves_its_images_rows_towards_the_mean_of_both_views_and_no_others():
    method, before, (first, second), _ = stepped(bank_momentum=0.25)
    after = method.bank["vectors"]
    torch.testing.assert_close(before.norm(dim=1), torch.ones(200))
    mean = F.normalize(F.normalize(first, dim=1) + F.normalize(second, dim=1), dim=1)
    torch.testing.assert_close(after[BATCH], F.normalize(0.25 * before[BATCH] + 0.75 * mean, dim=1))
    assert (after != before).any(dim=1).nonzero()[:, 0].tolist() == BATCH.tolist()


def test_idfd_has_its_own_settings():
    config = of_system("idfd-cifar-10")
    own, train, views = settings_of(config), config.train, config.views
    assert train.lr * train.batch_size / 256 == pytest.approx(0.03)
    assert [share * train.epochs for share in train.milestones] == pytest.approx([600, 950, 1300, 1650])
    assert (train.weight_decay, train.warmup, train.schedule) == (5e-4, 0, "steps")
    assert (own.bank_momentum, own.temperature, own.decorrelation_temperature) == (0.5, 1.0, 2.0)
    assert (views.crop_scale, views.flip, views.jitter, views.hue, views.grey) == ((0.2, 1.0), 0.0, 1.0, 0.0, 0.2)
