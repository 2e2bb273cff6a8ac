"""GCC: the contrast on a graph by hand and compared with plain loops; the graph, its weights and how long it lasts."""

import math

import numpy as np
import pytest
import torch

from helpers import oracle
from helpers.recipes import built, lengths, of_system, widths
from helpers.small import CPU, digits, quick_config
from propos.common.errors import InputError
from propos.methods import settings_of, stages_of
from propos.methods.gcc import degrees, drawn_weights, graph_contrast, near_images
from propos.runs import RunFolder
from propos.training import Silent
from propos.training.checkpoint import CheckpointWriter, load_checkpoint
from propos.training.e_step import unassigned
from propos.training.learner import at_stage, build_learner
from propos.training.m_step import m_step
from propos.training.stage_setup import begin_epoch
from propos.training.state import first_state

RNG = np.random.default_rng(0)
FIRST, AGAIN, NEIGHBOUR = RNG.normal(size=(3, 5, 4))
TABLE = np.array([[3, 8, 9], [8, 3, 12], [9, 12, 4], [12, 9, 8], [4, 7, 3]])  # itself, and two that are near
PARTNERS = np.array([9, 8, 12, 8, 7])  # the second image's is itself
WEIGHTS = RNG.uniform(0.3, 1.0, size=(5, 3))
DRAWN = [WEIGHTS[0][2], WEIGHTS[1][0], WEIGHTS[2][1], WEIGHTS[3][2], WEIGHTS[4][1]]
BATCH = torch.arange(64)


def loss_of(first, table=TABLE, weights=WEIGHTS):
    table, weights, partners = torch.tensor(table), torch.tensor(weights), torch.tensor(PARTNERS)
    views = first, torch.tensor(AGAIN), torch.tensor(NEIGHBOUR)
    return graph_contrast(views, near_images(table, partners), drawn_weights(table, weights, partners), 0.5)


def test_the_loss_equals_the_oracle_in_value_and_gradient():
    oracle.check(
        loss_of,
        lambda x: oracle.graph_contrast(x, AGAIN, NEIGHBOUR, TABLE[:, 0], PARTNERS, TABLE, DRAWN, 0.5),
        FIRST,
    )


def test_the_loss_by_hand():
    # Two images at right angles, all views alike, neither near the other: each has the three rows of the other as its
    # rest, at cosines of 0, and itself twice at 1, once with a weight of one half.
    axes = torch.eye(2, dtype=torch.float64)
    near = torch.eye(2, dtype=torch.bool).repeat(1, 3)
    loss = graph_contrast((axes, axes, axes), near, torch.tensor([0.5, 0.5]), 1.0)
    assert float(loss) == pytest.approx(-math.log(1.5 * math.e / 3))


def test_an_image_to_which_all_are_near_takes_no_part():
    everyone = np.unique(np.concatenate([TABLE[:, 0], PARTNERS]))
    widened = np.concatenate([TABLE, np.repeat(TABLE[:, :1], len(everyone), axis=1)], axis=1)
    widened[0, 3:] = everyone
    first = torch.tensor(FIRST, requires_grad=True)
    loss = loss_of(first, widened, np.concatenate([WEIGHTS, np.zeros((5, len(everyone)))], axis=1))
    expected = oracle.graph_contrast(FIRST, AGAIN, NEIGHBOUR, TABLE[:, 0], PARTNERS, widened, DRAWN, 0.5)
    assert float(loss.detach()) == pytest.approx(expected, abs=1e-9)
    loss.backward()
    assert bool(torch.isfinite(first.grad).all())


def test_degrees_by_hand():
    # Edges 0-1, 0-2, 1-2, 3-0, 3-1: with itself 0 and 1 have four images each, 2 and 3 three.
    table = torch.tensor([[0, 1, 2], [1, 0, 2], [2, 0, 1], [3, 0, 1]])
    assert degrees(table).tolist() == [4, 4, 3, 3]


def opened(**settings):
    """Return a learner in the second stage, whose tables are computed."""
    source = digits()
    learner = at_stage(build_learner(quick_config(source, method="gcc", train__epochs=8, **settings), source, CPU), 1)
    state = first_state(learner)
    state.epoch, state.partition = learner.epochs.start, unassigned(200, CPU)
    begin_epoch(learner, source, state)
    return learner, source, state


def test_an_image_comes_first_and_neighbours_of_many_images_weigh_less():
    learner, *_ = opened(neighbours=3)
    table, weights = (learner.method.neighbours[name] for name in ("table", "weights"))
    assert table.shape == weights.shape == (200, 4)
    assert torch.equal(table[:, 0], torch.arange(200))
    edges = {frozenset(pair) for row in table.tolist() for pair in zip(row[:1] * 3, row[1:], strict=True)}
    counts = [1 + sum(image in edge for edge in edges) for image in range(200)]
    expected = [[math.sqrt(3 / counts[image]) for image in row] for row in table.tolist()]
    np.testing.assert_allclose(weights, expected, rtol=1e-6)


def test_a_graph_lasts_for_some_epochs_and_is_then_that_of_the_present_network():
    learner, source, state = opened()
    for _ in range(3):
        m_step(learner, source, BATCH, state)
    before = learner.method.neighbours["table"].clone()
    for since in (1, 4, 6):
        state.epoch = learner.epochs.start + since
        begin_epoch(learner, source, state)
        assert torch.equal(learner.method.neighbours["table"], before)
    state.epoch = learner.epochs.start + 5
    begin_epoch(learner, source, state)
    assert not torch.equal(learner.method.neighbours["table"], before)
    assert torch.equal(learner.method.neighbours.host(), learner.method.neighbours["table"])


def test_a_checkpoint_keeps_the_graph_and_refuses_one_of_another_shape(tmp_path):
    learner, _, state = opened()
    run = RunFolder.create(tmp_path / "run", {"status": "running"}, learner.config)
    checkpoints = CheckpointWriter(run)
    checkpoints.save(learner, state)
    checkpoints.wait()
    restored, _ = load_checkpoint(run, opened()[0], Silent())
    assert torch.equal(restored.method.neighbours["weights"], learner.method.neighbours["weights"])
    learner.method.neighbours["weights"] = learner.method.neighbours["weights"][:, 1:]
    checkpoints.save(learner, state)
    checkpoints.close()
    with pytest.raises(InputError, match=r"neighbours\.weights: is float32 \(200, 5\), not float32 \(200, 6\)"):
        load_checkpoint(run, opened()[0], Silent())


def test_a_third_view_passes_through_the_projector_but_not_the_head():
    learner, source, state = opened(balance_weight=0.5)
    views, projections, logits, method = [], [], [], learner.method
    method.online.backbone.register_forward_pre_hook(lambda _, given: views.append(given[0].clone()))
    method.online.projector.register_forward_hook(lambda *passed: projections.append(passed[2].detach()))
    method.head.register_forward_hook(lambda *passed: logits.append(passed[2].detach()))
    losses = m_step(learner, source, BATCH, state)
    assert len({tuple(view.flatten().tolist()) for view in views}) == len(views) == len(projections) == 3
    p, q = (each.softmax(dim=1).double().numpy() for each in logits)
    assert list(losses) == ["contrast", "clusters", "balance"]
    assert float(losses["clusters"]) == pytest.approx(oracle.cluster_matching(p, q), rel=1e-5)
    assert float(losses["balance"]) == pytest.approx(0.5 * oracle.cluster_balance(p), rel=1e-4, abs=1e-6)


def test_the_first_stage_trains_the_encoder_alone_at_a_constant_rate():
    source = digits()
    learner = build_learner(quick_config(source, method="gcc", train__epochs=40), source, CPU)
    assert (learner.stage.name, learner.epochs) == ("contrast", range(2))
    assert learner.schedule.settings.schedule == "constant"
    assert not any(parameter.requires_grad for parameter in learner.method.head.parameters())
    state = first_state(learner)
    state.partition = unassigned(200, CPU)
    views = []
    learner.method.online.register_forward_hook(lambda *passed: views.append(passed[2].detach().double().numpy()))
    losses = m_step(learner, source, BATCH, state)
    assert list(losses) == ["contrast"]
    assert float(losses["contrast"]) == pytest.approx(2 * oracle.nt_xent(*views, 0.1), rel=1e-4)


def test_another_method_can_build_on_both_stages():
    source = digits()
    config = quick_config(source, method="dcboost", pretext="gcc", train__epochs=8)
    learner = at_stage(build_learner(config, source, CPU), 1)
    state = first_state(learner)
    state.epoch, state.partition = learner.epochs.start, unassigned(200, CPU)
    begin_epoch(learner, source, state)
    assert [stage.name for stage in learner.stages[:2]] == ["pretext: gcc contrast", "pretext: gcc graph"]
    assert list(m_step(learner, source, BATCH, state)) == ["contrast", "clusters", "balance"]


def test_gcc_has_its_own_settings():
    config = of_system("gcc-cifar-10")
    networks, own, train, views = built(config), settings_of(config), config.train, config.views
    assert lengths(config) == [50, 950]
    assert (widths(networks.online.projector)[-1], widths(networks.head)) == (128, (10,))
    assert (train.optimiser, train.lr, train.batch_size, train.weight_decay) == ("sgd", 0.4, 256, 1e-4)
    assert [stage.train for stage in stages_of(config)] == [{"schedule": "constant", "warmup": 0}, {"warmup": 0}]
    assert (own.temperature, own.neighbours, config.network.backbone) == (0.1, 5, "resnet18")
    assert own.balance_weight == 2.0
    assert (views.crop_scale, views.jitter, views.hue, views.grey, views.blur) == (
        (0.2, 1.0), 0.8, 0.1, 0.2, (0.0, 0.0),
    )  # fmt: skip
