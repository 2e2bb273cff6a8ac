"""Cluster heads: directions, several of them and the chosen one, their moving averages, a settled first view."""

import pytest
import torch
import torch.nn.functional as F

from helpers.small import CPU, digits, quick_config
from propos.config import NetworkSettings
from propos.networks import Head, Heads, Mlp, Parts, build_network
from propos.training.e_step import expectation
from propos.training.learner import at_stage, build_learner
from propos.training.m_step import m_step
from propos.training.order import epoch_order
from propos.training.progress import Silent
from propos.training.recorder import Recorder
from propos.training.stage_setup import open_stage
from propos.training.state import first_state

FEATURES = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
SETTINGS = NetworkSettings(backbone="resnet-small", hidden=8, dimension=4)


def network(**parts):
    head = Head((4,), norm=False)
    return build_network(SETTINGS, Parts(projector=head, cluster_head=Head((3,)), **parts), 1, seed=0)


def test_a_head_of_directions_is_a_cosine_times_a_gain_over_a_temperature():
    head = Mlp(5, Head((7, 4, 3), norm=False, smooth=True, directions=True, temperature=0.1))
    with torch.no_grad():
        head[-1].gain.copy_(torch.tensor([1.0, 2.0, 3.0]))
        hidden = head[2](F.gelu(head[0](FEATURES)))  # nothing bends what is compared
        expected = torch.stack([F.cosine_similarity(hidden, row[None]) for row in head[-1].weight], dim=1)
        torch.testing.assert_close(head(FEATURES), expected * torch.tensor([10.0, 20.0, 30.0]))


def test_several_heads_differ_and_the_chosen_one_answers():
    heads = Heads(5, Head((3,)), 4)
    said = heads(FEATURES)
    assert said.shape == (6, 4, 3)
    assert len({tuple(each.flatten().tolist()) for each in said.unbind(dim=1)}) == 4
    heads.chosen.fill_(2)
    assert torch.equal(heads.answer(FEATURES), said[:, 2])
    assert "chosen" in heads.state_dict()


def test_the_lowest_loss_chooses_for_heads_and_their_averages():
    twin = network(heads=3, head_target=True)
    twin.choose_head(torch.tensor([0.3, 0.1, 0.2]))
    assert (int(twin.cluster_head.chosen), int(twin.target_head.chosen)) == (1, 1)
    assert twin.answering_head is twin.target_head


def test_a_heads_target_is_its_moving_average():
    twin = network(head_target=True)
    before = twin.target_head[0].weight.clone()
    assert torch.equal(before, twin.cluster_head[0].weight)
    with torch.no_grad():
        twin.cluster_head[0].weight.add_(1.0)
    twin.move_target(0.9)
    torch.testing.assert_close(twin.target_head[0].weight, before + 0.1)
    assert not twin.target_head[0].weight.requires_grad


def test_shares_move_a_tenth_towards_those_of_both_views():
    twin = network(head_target=True)
    first, second = torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([[0.0, 1.0, 0.0]])
    found = twin.move_shares((first, second))
    torch.testing.assert_close(found, torch.tensor([[0.9 / 3 + 0.05, 0.9 / 3 + 0.05, 0.9 / 3]]))
    torch.testing.assert_close(twin.shares, found)


def test_a_settled_first_view_passes_as_for_a_prediction():
    twin = network()
    views = torch.rand(2, 6, 1, 8, 8, generator=torch.Generator().manual_seed(1)).unbind()
    twin.begin_step()
    twin(views, None)  # so that the running statistics are not their first
    before = {name: tensor.clone() for name, tensor in twin.state_dict().items()}
    with torch.no_grad():
        expected = F.softmax(twin.eval().cluster_head(twin.online.backbone(views[0])), dim=1)
    twin.begin_step()
    passed = twin(views, None, settled=True)
    torch.testing.assert_close(passed.assignments[0], expected)
    assert not passed.assignments[0].requires_grad
    assert passed.assignments[1].requires_grad
    assert twin.training
    settled = {name: buffer.clone() for name, buffer in twin.named_buffers()}
    twin.load_state_dict(before)
    twin.begin_step()
    twin.online(views[1])  # the second view alone moved them
    for name, buffer in twin.named_buffers():
        torch.testing.assert_close(settled[name], buffer)


def test_each_heads_loss_stands_behind_the_terms_and_the_epochs_mean_chooses():
    source = digits()
    config = quick_config(source, method="scan", heads__count=3)
    learner = at_stage(build_learner(config, source, CPU), 1)
    state = first_state(learner)
    open_stage(learner, source, state)
    state.epoch = learner.epochs.start
    recorder = Recorder(learner, state, None, Silent(), lambda: False)
    recorder.open_epoch(expectation(learner, source, state.epoch, None), None)
    kept = []
    for positions in epoch_order(0, state.epoch, learner.schedule):
        losses = m_step(learner, source, positions, state)
        agreement, balance, *of_heads = losses.tolist()
        assert sum(of_heads) == pytest.approx(agreement + 5 * balance, rel=1e-5)
        kept.append(of_heads)
        recorder.after_step(losses)
    recorder.close_epoch()
    means = torch.tensor(kept).mean(dim=0)
    assert int(learner.network.cluster_head.chosen) == int(means.argmin())


def test_a_head_of_prototypes_is_a_cosine_over_a_temperature_whatever_their_lengths():
    head = Mlp(5, Head((3,), prototypes=True, temperature=0.1))
    with torch.no_grad():
        torch.testing.assert_close(head[0].weight.norm(dim=1), torch.ones(3))
        said = head(FEATURES)
        head[0].weight.mul_(torch.tensor([[2.0], [3.0], [0.5]]))
        expected = torch.stack([F.cosine_similarity(FEATURES, row[None]) for row in head[0].weight], dim=1)
    torch.testing.assert_close(said, 10 * expected)
    torch.testing.assert_close(head(FEATURES), said)


def test_prototypes_begin_every_step_at_length_one_and_outputs_have_them():
    parts = Parts(projector=Head((4,)), cluster_head=Head((3,), prototypes=True), cluster_head_reads="projections")
    twin = build_network(SETTINGS, parts, 1, seed=0)
    before = twin.cluster_head[0].weight.detach().clone()
    with torch.no_grad():
        twin.cluster_head[0].weight.mul_(7.0)
    twin.begin_step()
    torch.testing.assert_close(twin.cluster_head[0].weight, before)
    views = torch.randn(2, 6, 1, 8, 8, generator=torch.Generator().manual_seed(1)).unbind()
    outputs = twin(views, None)
    torch.testing.assert_close(outputs.head_prototypes, before)
    assert not outputs.head_prototypes.requires_grad
    cosines = F.normalize(outputs.projections[1], dim=1) @ before.T
    torch.testing.assert_close(outputs.assignments[1], cosines.softmax(dim=1))


def test_a_part_that_learns_late_stands_still_in_the_first_epoch():
    source = digits()
    learner = build_learner(quick_config(source, method="swav", queue__size=32), source, CPU)
    state = first_state(learner)
    state.partition = expectation(learner, source, 0, None).partition()
    head, backbone = learner.network.cluster_head[0], learner.network.online.backbone
    moved = []
    for epoch in (0, 1):
        state.epoch = epoch
        before = [part.clone() for part in (head.weight, next(backbone.parameters()))]
        for positions in epoch_order(0, epoch, learner.schedule):
            m_step(learner, source, positions, state)
        learner.network.begin_step()
        after = head.weight, next(backbone.parameters())
        moved.append([not torch.allclose(a, b, atol=1e-6) for a, b in zip(before, after, strict=True)])
    assert moved == [[False, True], [True, True]]
