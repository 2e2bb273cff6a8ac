"""InstDisc: the proximal term by hand, and a step with the bank."""

import pytest
import torch
import torch.nn.functional as F

from helpers import oracle
from helpers.small import CPU, digits, quick_config
from propos.methods import settings_of
from propos.methods.instdisc import proximal
from propos.runner.recipes import build_recipe
from propos.training.e_step import unassigned
from propos.training.learner import build_learner
from propos.training.m_step import m_step
from propos.training.state import first_state

BATCH = torch.arange(40, 104)


def stepped(**settings):
    """Take one step; return the method, its bank before, the projections, and the losses."""
    source = digits()
    learner = build_learner(quick_config(source, method="instdisc", **settings), source, CPU)
    state = first_state(learner)
    state.partition = unassigned(200, CPU)
    bank, views = learner.method.bank["vectors"].clone(), []
    learner.method.online.register_forward_hook(lambda *passed: views.append(passed[2].detach()))
    return learner.method, bank, views, m_step(learner, source, BATCH, state)


def test_the_proximal_term_by_hand():
    bank = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    embeddings = torch.tensor([[3.0, 4.0], [0.0, 2.0]])  # as units (0.6, 0.8) and (0, 1)
    # (0.6 − 1)² + 0.8² = 0.8, and 0.
    assert float(proximal(embeddings, bank, torch.tensor([0, 1]))) == pytest.approx(0.4)


def test_an_image_is_told_from_all_others_by_one_view():
    _, bank, views, losses = stepped(proximal_weight=0.5)
    (view,) = views
    expected = oracle.instance_softmax(view.double().numpy(), bank.double().numpy(), BATCH.tolist(), 0.07)
    assert float(losses["instances"]) == pytest.approx(expected, rel=1e-5)
    apart = F.normalize(view, dim=1) - bank[BATCH]
    assert float(losses["proximal"]) == pytest.approx(0.5 * float(apart.norm(dim=1).square().mean()), rel=1e-5)


def test_a_step_moves_the_rows_of_its_images_half_way():
    method, bank, (view,), losses = stepped()
    assert list(losses) == ["instances"]
    half = F.normalize((bank[BATCH] + F.normalize(view, dim=1)) / 2, dim=1)
    torch.testing.assert_close(method.bank["vectors"][BATCH], half)
    torch.testing.assert_close(method.bank["vectors"][104:], bank[104:])


def test_instdisc_at_the_papers_scale():
    config = build_recipe("imagenet-1k", "instdisc")
    assert (config.train.batch_size, config.train.lr, config.train.milestones) == (256, 0.03, (0.6, 0.8))
    assert (settings_of(config).temperature, config.network.dimension) == (0.07, 128)
