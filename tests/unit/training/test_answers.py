"""Clusters that learn from their own answers, in a run: when these are given, and that the discriminator learns."""

import torch

from helpers.small import CPU, digits, quick_config
from propos.training.corrections import FREE, LEFT_OUT, Corrections
from propos.training.embedding import see_batches
from propos.training.expectation import unassigned
from propos.training.learner import build_learner
from propos.training.maximization import maximization_step
from propos.training.opening import open_stage, refresh
from propos.training.state import first_state

BATCH = torch.arange(64)


def opened(corrections=None):
    source = digits()
    learner = build_learner(quick_config(source, method="dccm", train__epochs=4), source, CPU)
    state = first_state(learner)
    open_stage(learner, source, state, corrections)
    state.partition = unassigned(200, CPU)
    return learner, source, state


def answered(learner, source):
    seen = see_batches(learner.network, "online", source, learner.config, every_head=True)
    return torch.cat([assigned for *_, assigned in seen])


def test_answers_stay_for_an_epoch_and_are_given_anew_before_the_next():
    learner, source, state = opened()
    first = state.prepared["answers"].clone()
    torch.testing.assert_close(first, answered(learner, source))
    maximization_step(learner, source, BATCH, state)
    refresh(learner, source, state)
    assert torch.equal(state.prepared["answers"], first)
    state.epoch = 1
    refresh(learner, source, state)
    torch.testing.assert_close(state.prepared["answers"], answered(learner, source))
    assert not torch.allclose(state.prepared["answers"], first)


def test_the_discriminator_learns_to_tell_places_of_an_image_from_those_of_others():
    learner, source, state = opened()
    before = [parameter.detach().clone() for parameter in learner.network.discriminator.parameters()]
    told = [term.name for term in learner.stage.terms].index("local")
    losses = [float(maximization_step(learner, source, BATCH, state)[told]) for _ in range(30)]
    after = learner.network.discriminator.parameters()
    assert all(not torch.equal(one, other) for one, other in zip(before, after, strict=True))
    assert sum(losses[-5:]) < sum(losses[:5])


def test_images_set_aside_as_junk_have_no_answer():
    kinds = torch.full((200,), FREE)
    kinds[3] = LEFT_OUT
    *_, state = opened(Corrections(kinds, {}, {}))
    assert state.prepared["answers"][3].abs().sum() == 0
    torch.testing.assert_close(state.prepared["answers"][4:].sum(dim=2), torch.ones(196, 1))
