"""Centres that are learnt, in a run: where images are put, what is kept of it, and at which rate centres move."""

import pytest
import torch

from helpers.small import CPU, digits, quick_config
from propos.errors import InputError
from propos.runs import RunFolder
from propos.training import Silent
from propos.training.checkpoint import load_checkpoint, save_checkpoint
from propos.training.estimate import late_state
from propos.training.e_step import unassigned
from propos.training.learner import at_stage, build_learner
from propos.training.m_step import m_step
from propos.training.optimiser import set_rates
from propos.training.state import first_state

BATCH = torch.arange(64)


def started(**settings):
    source = digits()
    learner = build_learner(quick_config(source, method="secu", overclustering__times=2, **settings), source, CPU)
    state = first_state(learner)
    state.partition = unassigned(200, CPU)
    return learner, source, state


def test_a_step_writes_down_where_it_put_its_images_and_favours_what_was_small():
    learner, source, state = started()
    assert state.placed.shape == (200, 2)
    assert (state.placed == -1).all()
    m_step(learner, source, BATCH, state)
    placed, favours = state.placed, learner.network.centres.favours
    assert (placed[64:] == -1).all()
    assert (placed[:64] >= 0).all()
    sizes = torch.bincount(placed[:64, 1], minlength=20)
    few = 0.9 / 20 - sizes / 64
    assert learner.config.balance.weight == 1.0
    torch.testing.assert_close(favours[10:], few.clamp(min=0))


def test_labels_of_the_epoch_before_are_what_images_are_held_to():
    """The same step with other earlier labels has another loss of agreement and the same of centres."""
    losses = []
    for shift in (0, 1):
        learner, source, state = started()
        state.placed = (torch.arange(400).view(200, 2) + shift) % 10
        losses.append(m_step(learner, source, BATCH, state))
    assert losses[0][0] != losses[1][0]
    assert losses[0][1] == losses[1][1]


def test_centres_move_at_a_rate_of_their_own_that_stays():
    learner, _, _ = started(train__epochs=10, train__warmup=2)
    rates = []
    for step in (0, 20, 29):
        set_rates(learner.optimiser, learner.schedule, step)
        rates.append([group["lr"] for group in learner.optimiser.param_groups if group["params"]])
    peak = learner.schedule.peak
    assert [head for _, head in rates] == pytest.approx([6 * peak] * 3)
    assert rates[0][0] < rates[1][0] < peak
    assert rates[2][0] == pytest.approx(0.0, abs=1e-9)
    parameters = [parameter for group in learner.optimiser.param_groups for parameter in group["params"]]
    assert len(parameters) == len(learner.network.trained())
    assert {id(parameter) for parameter in parameters} == {id(parameter) for parameter in learner.network.trained()}


def test_a_stage_that_does_not_learn_the_centres_leaves_them_and_places_nothing():
    source = digits()
    config = quick_config(source, method="dcboost", pretext__method="secu", overclustering__times=2)
    learner = at_stage(build_learner(config, source, CPU), 1)
    state = late_state(learner)
    assert state.placed is None
    before = {name: tensor.clone() for name, tensor in learner.network.centres.state_dict().items()}
    m_step(learner, source, BATCH, state)
    assert all(torch.equal(tensor, before[name]) for name, tensor in learner.network.centres.state_dict().items())


def test_a_checkpoint_keeps_where_images_are_and_refuses_centres_that_are_not_there(tmp_path):
    learner, source, state = started()
    run = RunFolder.create(tmp_path / "run", {"status": "running"}, learner.config)
    m_step(learner, source, BATCH, state)
    state.step, state.opening, state.losses = 0, None, None
    save_checkpoint(run, learner, state)
    _, restored = load_checkpoint(run, started()[0], Silent())
    assert torch.equal(restored.placed, state.placed)
    state.placed[3, 1] = 20
    save_checkpoint(run, learner, state)
    with pytest.raises(InputError, match="are not of 20 clusters"):
        load_checkpoint(run, started()[0], Silent())
