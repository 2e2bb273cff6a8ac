"""An autoencoder that clusters: where its centres begin, what they learn from, and which parts learn when."""

import pytest
import torch
import torch.nn.functional as F

from helpers import oracle
from helpers.small import CPU, digits, quick_config
from propos.training.corrections import FREE, LEFT_OUT, Corrections
from propos.training.embedding import embed, see_batches
from propos.training.e_step import clusters_now, expectation, unassigned
from propos.training.learner import at_stage, build_learner
from propos.training.m_step import m_step
from propos.training.stage_setup import open_stage, refresh
from propos.training.state import first_state

BATCH = torch.arange(64)


def learnt(method, **settings):
    """Return a learner that has taken a few steps of its first stage, its state and the images."""
    source = digits()
    learner = build_learner(quick_config(source, method=method, train__epochs=6, **settings), source, CPU)
    state = first_state(learner)
    open_stage(learner, source, state)
    state.partition = unassigned(200, CPU)
    for _ in range(3):
        m_step(learner, source, BATCH, state)
    return learner, state, source


def opened(method, **settings):
    """Return the same in its second stage, just opened."""
    learner, state, source = learnt(method, **settings)
    learner = at_stage(learner, 1)
    state.epoch = learner.epochs.start
    open_stage(learner, source, state)
    return learner, state, source


def weights(learner, part):
    return {name: tensor.clone() for name, tensor in learner.network.part(part).state_dict().items()}


def moves(learner, part, before):
    return any(
        not torch.equal(tensor, before[name]) for name, tensor in learner.network.part(part).state_dict().items()
    )


@pytest.mark.parametrize("method", ["dec", "idec"])
def test_the_first_stage_learns_to_make_images_again_and_no_clusters(method):
    learner, state, source = learnt(method)
    parts = {part: weights(learner, part) for part in ("backbone", "projector", "decoder", "cluster_head")}
    losses = [float(m_step(learner, source, BATCH, state)[0]) for _ in range(20)]
    assert sum(losses[-5:]) < sum(losses[:5])
    moved = {part for part, before in parts.items() if moves(learner, part, before)}
    assert moved == {"backbone", "projector", "decoder"}


def test_centres_begin_where_k_means_finds_clusters_and_answer_as_it_does():
    learner, state, source = learnt("dec")
    learner = at_stage(learner, 1)
    state.epoch = learner.epochs.start
    found = clusters_now(learner, source, state.epoch, state.partition)
    open_stage(learner, source, state)
    torch.testing.assert_close(learner.network.cluster_head[-1].weight, found.prototypes)
    answer = expectation(learner, source, state.epoch, None)
    assert torch.equal(answer.labels, found.labels)


def test_images_that_take_no_part_count_for_no_clusters_size():
    learner, state, source = opened("dec")
    junk = torch.arange(200) % 4 == 0
    corrections = Corrections(torch.where(junk, LEFT_OUT, FREE), {}, {})
    state.epoch += 1
    refresh(learner, source, state, corrections)
    seen = see_batches(learner.network, "online", source, learner.config)
    said = torch.cat([assigned for *_, assigned in seen])[~junk]
    wanted = torch.from_numpy(oracle.sharpened(said.double().numpy()))
    torch.testing.assert_close(state.prepared["sharpened"][~junk, 0].double(), wanted, rtol=1e-4, atol=1e-6)


def test_a_stage_that_is_open_keeps_its_centres():
    learner, state, source = opened("dec")
    before = learner.network.cluster_head[-1].weight.clone()
    m_step(learner, source, BATCH, state)
    after = learner.network.cluster_head[-1].weight.clone()
    assert not torch.equal(before, after)
    open_stage(learner, source, state)
    assert torch.equal(learner.network.cluster_head[-1].weight, after)


def test_what_is_wanted_is_sharpened_of_all_images_as_they_are_before_each_epoch():
    learner, state, source = opened("idec")
    embeddings = embed(learner.network.online, source, learner.config).double().numpy()
    centres = learner.network.cluster_head[-1].weight.detach().double().numpy()
    said = oracle.student(embeddings, centres, learner.config.contrast.cluster_temperature)
    torch.testing.assert_close(
        state.prepared["sharpened"][:, 0].double(), torch.tensor(oracle.sharpened(said)), rtol=1e-4, atol=1e-6
    )
    before = state.prepared["sharpened"].clone()
    state.epoch += 1
    for _ in range(2):
        m_step(learner, source, BATCH, state)
    assert torch.equal(state.prepared["sharpened"], before)
    refresh(learner, source, state)
    assert not torch.equal(state.prepared["sharpened"], before)


@pytest.mark.parametrize(("method", "learning"), [("dec", False), ("idec", True)])
def test_the_decoder_goes_on_in_idec_alone(method, learning):
    learner, state, source = opened(method)
    before = weights(learner, "decoder")
    losses = m_step(learner, source, BATCH, state)
    assert moves(learner, "decoder", before) is learning
    assert [term.name for term in learner.stage.terms] == ["reconstruction"] * learning + ["sharpening"]
    assert torch.isfinite(losses).all()


def test_the_loss_of_a_step_is_that_of_its_views():
    """By the network's own pass, and the arithmetic of the oracle."""
    learner, state, source = opened("idec")
    made = {}
    handle = learner.network.register_forward_hook(lambda _, __, outputs: made.update(outputs=outputs))
    losses = m_step(learner, source, BATCH, state)
    handle.remove()
    outputs = made["outputs"]
    of_pixels = [
        F.mse_loss(ours.detach(), theirs) for ours, theirs in zip(outputs.reconstructions, outputs.pixels, strict=True)
    ]
    wanted = state.prepared["sharpened"][BATCH, 0].numpy()
    of_clusters = [oracle.sharpening(view.detach().numpy(), wanted) for view in outputs.assignments]
    expected = [float(sum(of_pixels)) / 2, sum(of_clusters) / 2]
    assert losses.tolist() == pytest.approx(expected, rel=1e-4)
