"""SwAV: its loss and codes by hand and compared with plain loops; equal shares, the queue, and prototypes in steps."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.optimize import linear_sum_assignment

from helpers import oracle
from helpers.recipes import built, of_system, widths
from helpers.small import CPU, digits, quick_config
from propos.methods import settings_of
from propos.methods.swav import balanced_codes, code_prediction, sinkhorn
from propos.training.e_step import e_step
from propos.training.learner import build_learner
from propos.training.m_step import m_step
from propos.training.order import epoch_order
from propos.training.state import first_state

RNG = np.random.default_rng(0)
FIRST, SECOND = RNG.normal(size=(2, 6, 3))
PROTOTYPES = np.array([oracle.unit(row) for row in RNG.normal(size=(4, 3))])
CODES, ASSIGNED = RNG.dirichlet(np.ones(4), size=(2, 6))
EARLIER = np.array([oracle.unit(row) for row in RNG.normal(size=(5, 3))])


def codes_of(embeddings, prototypes=PROTOTYPES, earlier=None, epsilon=0.5, iterations=3):
    embeddings, prototypes = torch.as_tensor(embeddings), torch.as_tensor(prototypes)
    cosines = F.normalize(embeddings, dim=1) @ prototypes.T
    return balanced_codes(cosines, prototypes, None if earlier is None else torch.tensor(earlier), epsilon, iterations)


def test_the_loss_equals_plain_loops_in_value_and_gradient():
    oracle.check(
        lambda x: code_prediction(torch.tensor(CODES), x), lambda x: oracle.soft_cross_entropy(CODES, x), ASSIGNED
    )


def test_the_loss_by_hand():
    # A certain code at a probability of ¼, and one of two halves at probabilities of ½ each.
    codes = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    assigned = torch.tensor([[0.25, 0.75], [0.5, 0.5]])
    assert float(code_prediction(codes, assigned)) == pytest.approx((math.log(4) + math.log(2)) / 2)


def test_a_code_of_probability_zero_has_a_finite_loss_and_gradient():
    assigned = torch.tensor([[1.0, 0.0]], requires_grad=True)
    loss = code_prediction(torch.tensor([[0.0, 1.0]]), assigned)
    loss.backward()
    assert math.isfinite(float(loss.detach()))
    assert bool(torch.isfinite(assigned.grad).all())


def test_codes_are_those_of_the_authors_arithmetic():
    np.testing.assert_allclose(codes_of(FIRST), oracle.codes(FIRST, PROTOTYPES, 0.5, 3), atol=1e-6)


def test_codes_share_the_batch_evenly_where_the_nearest_prototype_would_take_all():
    # Four images nearest to the first of two prototypes, at 5, 10, 30 and 40 degrees; the other stands at 90.
    degrees = np.deg2rad([5, 10, 30, 40])
    images = np.stack([np.cos(degrees), np.sin(degrees)], axis=1)
    codes = codes_of(images, np.eye(2), epsilon=0.05, iterations=100)
    assert codes.argmax(dim=1).tolist() == [0, 0, 1, 1]
    torch.testing.assert_close(codes.sum(dim=0), torch.tensor([2.0, 2.0]), atol=0.01, rtol=0)


def test_a_full_queue_makes_the_batch_larger_and_one_that_is_not_full_has_no_effect():
    alone, with_queue = codes_of(FIRST), codes_of(FIRST, earlier=EARLIER)
    expected = oracle.codes(np.concatenate([EARLIER, FIRST]), PROTOTYPES, 0.5, 3)[5:]
    np.testing.assert_allclose(with_queue, expected, atol=1e-6)
    filling = EARLIER.copy()
    filling[-1] = 0
    assert torch.equal(codes_of(FIRST, earlier=filling), alone)
    assert not torch.allclose(with_queue, alone)


def scaled_in_alternation(scores, epsilon, iterations):
    """Return the same in plain loops: columns to 1/K, rows to 1/B, and rows to 1 at the end."""
    found = np.exp(np.asarray(scores) / epsilon)
    found = found / found.sum()
    for _ in range(iterations):
        for column in range(found.shape[1]):
            found[:, column] /= found[:, column].sum() * found.shape[1]
        for row in range(found.shape[0]):
            found[row] /= found[row].sum() * found.shape[0]
    return found * found.shape[0]


def test_sinkhorn_scales_in_alternation():
    scores = np.random.default_rng(0).normal(size=(8, 3))
    for iterations in (1, 3, 10):
        ours = sinkhorn(torch.tensor(scores), 0.5, iterations)
        np.testing.assert_allclose(ours, scaled_in_alternation(scores, 0.5, iterations), rtol=1e-4)


def test_rows_sum_to_one_and_columns_to_equal_shares():
    scores = torch.randn(12, 4, generator=torch.Generator().manual_seed(1))
    found = sinkhorn(scores, 0.3, 200)
    torch.testing.assert_close(found.sum(dim=1), torch.ones(12))
    torch.testing.assert_close(found.sum(dim=0), torch.full((4,), 3.0), rtol=1e-3, atol=1e-3)


def test_sinkhorn_by_hand():
    """Both rows prefer the first column; in equal shares the one that prefers it more has it."""
    found = sinkhorn(torch.tensor([[1.0, 0.0], [0.5, 0.0]]), 1.0, 500)
    # The products of the diagonals are kept: p² / (1 − p)² = e^(1 − 0.5).
    odds = math.exp(0.25)
    torch.testing.assert_close(found[0, 0], torch.tensor(odds / (1 + odds)), rtol=1e-4, atol=1e-4)


def test_a_small_epsilon_gives_the_best_assignment_and_does_not_overflow():
    scores = np.random.default_rng(2).normal(size=(6, 3))
    found = sinkhorn(torch.tensor(scores), 0.001, 4000)
    assert torch.isfinite(found).all()
    rows, places = linear_sum_assignment(np.repeat(scores, 2, axis=1), maximize=True)  # two places in each column
    assert found.argmax(dim=1).tolist() == (places[np.argsort(rows)] // 2).tolist()


def test_no_gradient_flows_through_sinkhorn():
    assert not sinkhorn(torch.zeros(2, 2, requires_grad=True), 0.1).requires_grad


@pytest.mark.parametrize("iterations", [1, 3])
def test_equal_scores_are_shared_equally(iterations):
    torch.testing.assert_close(sinkhorn(torch.zeros(5, 4), 0.05, iterations), torch.full((5, 4), 0.25))


def started(**settings):
    """Return a learner after an E-step, its state and the images."""
    source = digits()
    learner = build_learner(quick_config(source, method="swav", **settings), source, CPU)
    state = first_state(learner)
    state.partition = e_step(learner, source, 0, None).partition()
    return learner, state, source


def test_each_view_is_predicted_from_the_others_codes_which_are_targets():
    learner, state, source = started(overclustering=1)
    state.epoch = 1  # the prototypes are trained
    method, projections, gradients = learner.method, [], {}
    method.online.register_forward_hook(lambda _, __, made: projections.append(made))
    learner.optimiser.register_step_pre_hook(
        lambda *_: gradients.update(prototypes=method.prototypes.weight.grad.clone())
    )
    prototypes = method.prototypes.weight.detach().clone().requires_grad_()
    losses = m_step(learner, source, epoch_order(0, 0, learner.schedule)[0], state)
    views = [projection.detach() for projection in projections]
    units = F.normalize(prototypes, dim=1)
    assigned = [(F.normalize(view, dim=1) @ units.T / 0.1).softmax(dim=1) for view in views]
    codes = [oracle.codes(view.double().numpy(), prototypes.detach().double().numpy(), 0.05, 3) for view in views]
    pairs = list(zip(codes, reversed(assigned), strict=True))
    expected = sum(oracle.soft_cross_entropy(code, view.detach().numpy()) for code, view in pairs) / 2
    assert float(losses["codes"]) == pytest.approx(expected, rel=1e-4)
    # The codes are targets: the gradient is that of the predictions alone.
    (sum(code_prediction(torch.tensor(code).float(), view) for code, view in pairs) / 2).backward()
    torch.testing.assert_close(gradients["prototypes"], prototypes.grad, rtol=1e-3, atol=1e-5)


def test_prototypes_have_length_one_at_the_start_of_every_step():
    learner, state, source = started()
    with torch.no_grad():
        learner.method.prototypes.weight.mul_(7.0)
    lengths = []
    learner.method.prototypes.register_forward_pre_hook(
        lambda layer, _: lengths.append(layer.weight.detach().norm(dim=1))
    )
    m_step(learner, source, epoch_order(0, 0, learner.schedule)[0], state)
    torch.testing.assert_close(lengths[0], torch.ones(100))


def test_prototypes_are_trained_from_the_second_epoch_on():
    learner, state, source = started(queue_size=32)
    prototypes, backbone = learner.method.prototypes, learner.method.online.backbone
    moved = []
    for epoch in (0, 1):
        state.epoch = epoch
        before = [part.clone() for part in (prototypes.vectors(), next(backbone.parameters()))]
        for positions in epoch_order(0, epoch, learner.schedule):
            m_step(learner, source, positions, state)
        after = prototypes.vectors(), next(backbone.parameters())
        moved.append([not torch.allclose(a, b, atol=1e-6) for a, b in zip(before, after, strict=True)])
    assert moved == [[False, True], [True, True]]


def test_prototypes_gather_no_momentum_before_they_are_trained():
    learner, state, source = started()
    for positions in epoch_order(0, 0, learner.schedule):
        m_step(learner, source, positions, state)
    momentum = learner.optimiser.state.get(learner.method.prototypes.weight, {})
    assert momentum.get("momentum_buffer") is None
    trained = next(learner.method.online.backbone.parameters())
    assert learner.optimiser.state[trained]["momentum_buffer"].any()


def test_a_step_pushes_both_views_of_its_images_into_the_queue():
    learner, state, source = started(queue_size=150)
    method, projections = learner.method, []
    method.online.register_forward_hook(lambda _, __, made: projections.append(made.detach()))
    positions = epoch_order(0, 0, learner.schedule)[0]
    m_step(learner, source, positions, state)
    torch.testing.assert_close(method.queue["vectors"][:128], F.normalize(torch.cat(projections), dim=1))
    assert method.queue["images"].tolist() == [*positions.tolist(), *positions.tolist(), *[-1] * 22]
    assert not method.queue["vectors"][128:].any()


def test_there_is_no_queue_by_default():
    learner, *_ = started()
    assert learner.method.queue is None


def test_swav_has_its_own_settings():
    config = of_system("swav-imagenet-1k", 1000)
    networks, own, train, views = built(config), settings_of(config), config.train, config.views
    assert widths(networks.online.projector) == (2048, 128)
    assert networks.prototypes(torch.zeros(2, 128)).shape == (2, 3000)
    assert (own.temperature, own.queue_size) == (0.1, 0)
    assert (train.optimiser, train.batch_size, train.epochs, train.warmup) == ("lars", 4096, 400, 10)
    assert train.lr * train.batch_size / 256 == pytest.approx(4.8)
    assert (train.weight_decay, train.decay_norms, train.schedule) == (1e-6, True, "cosine")
    assert (config.network.bn_groups, config.network.backbone) == (1, "resnet50")
    assert (views.size, views.crop_scale, views.blur, views.grey) == (224, (0.08, 1.0), (0.5, 0.5), 0.2)
    assert (views.brightness, views.contrast, views.saturation, views.hue, views.jitter) == (0.8, 0.8, 0.8, 0.2, 0.8)
