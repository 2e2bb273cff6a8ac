"""IIC: its loss by hand and compared with plain loops; several heads of both kinds in a step."""

import math

import numpy as np
import pytest
import torch

from helpers import oracle
from helpers.recipes import built, of_system, widths
from helpers.small import CPU, digits, quick_config
from propos.methods.iic import mutual_information
from propos.training.context import BatchContext
from propos.training.e_step import unassigned
from propos.training.learner import build_learner
from propos.training.m_step import m_step
from propos.training.state import first_state

RNG = np.random.default_rng(0)
SECOND = RNG.dirichlet(np.ones(4), size=6)
BATCH = torch.arange(64)


def softmax(point):
    return np.exp(point) / np.exp(point).sum(axis=1, keepdims=True)


def test_information_equals_plain_loops_in_value_and_gradient():
    oracle.check(
        lambda x: mutual_information(x.softmax(dim=1), torch.tensor(SECOND)),
        lambda x: oracle.mutual_information(softmax(x), SECOND),  # of rows that sum to one
        RNG.normal(size=(6, 4)),
    )


def test_information_by_hand():
    # Four images with certainty in two equal clusters, alike in both views: log 2; all in one, or evenly in both: none.
    certain = torch.eye(2).repeat(2, 1)
    assert float(mutual_information(certain, certain)) == pytest.approx(-math.log(2))
    assert float(mutual_information(certain.flip(0), certain)) == pytest.approx(-math.log(2))  # numbers are arbitrary
    for nothing in (torch.tensor([[1.0, 0.0]]).repeat(4, 1), torch.full((4, 2), 0.5)):
        assert float(mutual_information(nothing, nothing)) == pytest.approx(0.0, abs=1e-6)


def test_empty_clusters_leave_the_information_finite():
    first = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], requires_grad=True)
    loss = mutual_information(first, first.detach())
    loss.backward()
    assert float(loss.detach()) == pytest.approx(-math.log(2))
    assert bool(torch.isfinite(first.grad).all())


def test_heads_of_both_kinds_are_averaged_and_those_of_k_clusters_alone_choose():
    source = digits()
    learner = build_learner(quick_config(source, method="iic", heads=3, overclustering=2), source, CPU)
    state, method = first_state(learner), learner.method
    state.partition = unassigned(200, CPU)
    outputs = {"heads": [], "over_heads": []}
    for name, kept in outputs.items():
        getattr(method, name).register_forward_hook(lambda _, __, made, kept=kept: kept.append(made.detach()))
    losses = m_step(learner, source, BATCH, state)
    assert [view.shape for view in outputs["heads"]] == [(64, 3, 10)] * 2
    assert [view.shape for view in outputs["over_heads"]] == [(64, 3, 20)] * 2
    expected = {
        name: [
            oracle.mutual_information(*(view[:, head].double().softmax(dim=1).numpy() for view in views))
            for head in range(3)
        ]
        for name, views in outputs.items()
    }
    assert float(losses["information"]) == pytest.approx(np.mean(expected["heads"]), abs=1e-6)
    assert float(losses["over_information"]) == pytest.approx(np.mean(expected["over_heads"]), abs=1e-6)
    np.testing.assert_allclose(method.heads.memory["losses"], expected["heads"], atol=1e-6)
    method.end_epoch(BatchContext.of(learner, state))
    assert int(method.heads.chosen) == int(np.argmin(expected["heads"]))
    assert int(method.over_heads.chosen) == 0


def test_the_chosen_head_assigns():
    learner = build_learner(quick_config(method="iic", heads=3), digits(), CPU)
    method = learner.method.eval()
    method.heads.chosen.fill_(2)
    features = torch.randn(6, method.online.features, generator=torch.Generator().manual_seed(0))
    expected = method.heads.each[2](method.online.projector(features))
    torch.testing.assert_close(method.assign(features), expected)


def test_iic_has_its_own_settings():
    config = of_system("iic-cifar-10")
    networks, train, views = built(config), config.train, config.views
    assert (widths(networks.heads), widths(networks.over_heads)) == ((10,) * 5, (70,) * 5)
    assert (train.optimiser, train.schedule, train.weight_decay, train.warmup) == ("adam", "constant", 0.0, 0)
    assert train.lr * train.batch_size / 256 == pytest.approx(1e-4)
    assert (views.crop_scale, views.jitter, views.hue, views.grey) == ((0.39, 0.39), 1.0, 0.125, 0.0)
