"""A discriminator in a run: it learns to tell, and what is asked of plain images is asked in the step."""

import math

import torch

from helpers.small import CPU, digits, quick_config
from propos.training.e_step import unassigned
from propos.training.learner import build_learner
from propos.training.m_step import m_step
from propos.training.state import first_state

BATCH = torch.arange(64)


def started(**settings):
    source = digits()
    learner = build_learner(quick_config(source, method="dccm", **settings), source, CPU)
    state = first_state(learner)
    state.partition = unassigned(200, CPU)
    return learner, source, state


def test_it_learns_to_tell_places_of_an_image_and_of_those_like_it_from_those_of_others():
    learner, source, state = started(train__lr=0.02, train__epochs=4)
    told = [term.name for term in learner.stage.terms].index("local")
    before = [parameter.detach().clone() for parameter in learner.network.discriminator.parameters()]
    losses = [float(m_step(learner, source, BATCH, state)[told]) for _ in range(60)]
    after = learner.network.discriminator.parameters()
    assert all(not torch.equal(one, other) for one, other in zip(before, after, strict=True))
    # Who tells nothing, and scores all alike, is left with 2 log 2.
    assert sum(losses[-5:]) / 5 < 2 * math.log(2) - 0.02


def test_plain_images_are_answered_by_the_batchs_statistics_from_the_first_step_on():
    """Those that batch norm has gathered say nothing yet, and a network would be sure of one cluster for all."""
    learner, source, state = started(network__backbone="resnet34")
    seen = []
    learner.network.register_forward_hook(lambda _, given, made: seen.append(made))
    m_step(learner, source, BATCH, state)
    (outputs,) = seen
    assert outputs.again.shape == (64, 10)
    assert outputs.again.max() < 0.9
    assert len(outputs.again.argmax(dim=1).unique()) >= 8
