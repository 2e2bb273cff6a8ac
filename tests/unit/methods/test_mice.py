"""MiCE: the mixture by hand and compared with plain loops, the gate, and the experts of a run."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from helpers import oracle
from helpers.recipes import built, of_system, widths
from helpers.small import CPU, digits, quick_config
from propos.common.errors import InputError
from propos.methods import settings_of
from propos.methods.mice import Simplex, UnitVectors, by_expert, contrastive_experts, own_parts
from propos.networks import BatchNorm
from propos.training import Silent, train
from propos.training.e_step import e_step
from propos.training.embedding import output_batches
from propos.training.learner import build_learner
from propos.training.m_step import m_step
from propos.training.state import first_state

IMAGES, EXPERTS, WIDTH, PLACES = 6, 3, 4, 5
RNG = np.random.default_rng(0)
QUERIES, KEYS = RNG.normal(size=(2, IMAGES, EXPERTS * WIDTH))
GATE = RNG.dirichlet(np.ones(EXPERTS), size=IMAGES)
QUEUE = np.array([oracle.unit(row) for row in RNG.normal(size=(PLACES, EXPERTS * WIDTH))])
PROTOTYPES = np.array([oracle.unit(row) for row in RNG.normal(size=(EXPERTS, EXPERTS * WIDTH))])
FEATURES = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
BATCH = torch.arange(64)


def mixture(queries=QUERIES, gate=GATE):
    rows = (by_expert(torch.as_tensor(each), EXPERTS) for each in (queries, KEYS, QUEUE))
    return contrastive_experts(*rows, own_parts(torch.tensor(PROTOTYPES)), torch.as_tensor(gate), 0.3)


def expected(queries=QUERIES, gate=GATE):
    return oracle.contrastive_experts(*_by_hand(queries, KEYS, QUEUE, PROTOTYPES, EXPERTS), gate, 0.3)


def _by_hand(queries, keys, queue, prototypes, experts):
    """Return the parts of each expert; a cluster's prototype is that of its own expert."""
    queries, keys, queue, centres = (
        each.reshape(len(each), experts, -1) for each in (queries, keys, queue, prototypes)
    )
    own = np.array([oracle.unit(centres[k, k]) for k in range(experts)])
    return queries, keys, np.array([[oracle.unit(each) for each in row] for row in queue]), own


def test_the_mixture_equals_the_oracle_in_value_and_in_the_experts_gradient():
    oracle.check(mixture, expected, QUERIES)


def test_the_mixture_equals_the_oracle_in_the_gates_gradient():
    # The oracle's bound is one of weights that need not sum to 1, as the loss is.
    oracle.check(lambda x: mixture(gate=x), lambda x: expected(gate=x), GATE)


def test_no_gradient_reaches_keys_or_prototypes():
    first, keys, centres = (torch.tensor(each, requires_grad=True) for each in (QUERIES, KEYS, PROTOTYPES))
    rows = [by_expert(each, EXPERTS) for each in (first, keys, torch.tensor(QUEUE))]
    contrastive_experts(*rows, centres[:, :WIDTH], torch.tensor(GATE), 0.3).backward()
    assert first.grad.abs().sum() > 0
    assert keys.grad is None
    assert centres.grad is None


def test_the_mixture_by_hand():
    # Along the first axis lie the first expert's image, key and prototype, along the second its queue: 2 and 0.
    # The second expert's image and prototype lie along the second axis with its queue: 0 and 2.
    along, across = [1.0, 0.0], [0.0, 1.0]
    queries, keys = torch.tensor([[along, across]]), torch.tensor([[along, along]])
    negatives, prototypes = torch.tensor([[across, across]]), torch.tensor([along, across])
    told = math.exp(2) / (math.exp(2) + 1)
    gate = torch.tensor([[0.25, 0.75]])
    found = float(contrastive_experts(queries, keys, negatives, prototypes, gate, 1.0))
    assert found == pytest.approx(-math.log(0.25 * told + 0.75 * (1 - told)))
    # At half the temperature scores are twice as far apart.
    told = math.exp(4) / (math.exp(4) + 1)
    found = float(contrastive_experts(queries, keys, negatives, prototypes, gate, 0.5))
    assert found == pytest.approx(-math.log(0.25 * told + 0.75 * (1 - told)))


def test_the_gate_learns_the_posterior():
    """The derivative by the gate's logits is its probability minus the posterior of each expert."""
    logits = torch.tensor(np.log(GATE), requires_grad=True)
    rows = [by_expert(torch.tensor(each), EXPERTS) for each in (QUERIES, KEYS, QUEUE)]
    centres = F.normalize(torch.tensor(PROTOTYPES[:, :WIDTH]), dim=1)
    contrastive_experts(*rows, centres, F.softmax(logits, dim=1), 0.3).backward()
    near = rows[0] + centres
    scores = torch.stack([(near * rows[1]).sum(dim=2), *((near * each).sum(dim=2) for each in rows[2])]) / 0.3
    joint = torch.tensor(GATE) * scores.softmax(dim=0)[0]
    posterior = joint / joint.sum(dim=1, keepdim=True)
    torch.testing.assert_close(logits.grad, (torch.tensor(GATE) - posterior) / IMAGES)


def test_a_gate_that_rules_an_expert_out_has_a_finite_loss_and_gradient():
    gate = torch.zeros(IMAGES, EXPERTS, dtype=torch.float64)
    gate[:, 1] = 1.0
    queries = torch.tensor(QUERIES, requires_grad=True)
    loss = mixture(queries, gate)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(queries.grad).all()
    assert not queries.grad.view(IMAGES, EXPERTS, WIDTH)[:, [0, 2]].abs().sum() > 1e-12


def test_a_simplex_compares_with_directions_that_lie_as_far_apart_as_possible():
    layer = Simplex(5, 4)
    # Its outputs for the axes are the directions themselves, a column each.
    directions = layer(torch.eye(5))
    torch.testing.assert_close(directions.norm(dim=0), torch.ones(4))
    cosines = directions.T @ directions
    torch.testing.assert_close(cosines[~torch.eye(4, dtype=bool)], torch.full((12,), -1 / 3))
    assert not list(layer.parameters())


def test_a_simplex_reads_directions_alone():
    read = F.normalize(FEATURES, dim=1)
    expected = [math.sqrt(1.5) * (read[:, k] - read[:, :3].mean(dim=1)) for k in range(3)]
    torch.testing.assert_close(Simplex(5, 3)(FEATURES), torch.stack(expected, dim=1))
    torch.testing.assert_close(Simplex(5, 3)(7 * FEATURES), Simplex(5, 3)(FEATURES))


def test_vectors_side_by_side_are_unit_vectors_each():
    rows = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
    made = UnitVectors(3)(rows)
    for place in (0, 2, 4):
        torch.testing.assert_close(made[:, place : place + 2], F.normalize(rows[:, place : place + 2], dim=1))


def started(**settings):
    """Return a learner with ten experts of 16 outputs, the images, a state after an E-step, and what that found."""
    source = digits()
    learner = build_learner(quick_config(source, method="mice", **settings), source, CPU)
    state = first_state(learner)
    found = e_step(learner, source, 0, None)
    state.partition = found.partition()
    return learner, source, state, found


def probabilities_of_the_gate(learner, source):
    """Return the probabilities that the gate learns with."""
    reads = nn.Sequential(learner.method.online.backbone, learner.method.gate)
    return torch.cat(list(output_batches(reads, CPU, source, learner.config))).softmax(dim=1)


def test_the_gate_is_linear_up_to_its_cosines():
    learner, *_ = started()
    assert [type(layer) for layer in learner.method.gate] == [nn.Linear, BatchNorm, Simplex]
    assert learner.method.gate[0].out_features == 16
    many, *_ = started(clusters=20)
    assert many.method.gate[0].out_features == 20


def test_every_expert_has_an_equal_part_in_an_embedding():
    *_, found = started()
    assert found.embeddings.shape == (200, 160)
    lengths = found.embeddings.view(200, 10, 16).norm(dim=2)
    torch.testing.assert_close(lengths, torch.full_like(lengths, 10**-0.5))


def test_a_prototype_is_the_direction_of_its_experts_outputs_for_its_clusters_images():
    """And of a cluster without images, of all images, weighted by the gate."""
    learner, source, _, found = started()
    seen, own = by_expert(found.embeddings, 10), own_parts(found.prototypes)
    present = found.labels.unique().tolist()
    assert 1 < len(present) < 10
    said = F.normalize(probabilities_of_the_gate(learner, source) ** 10, p=1, dim=1)  # as it decides
    for k in range(10):
        weights = (found.labels == k).float() if k in present else said[:, k]
        torch.testing.assert_close(own[k], F.normalize((weights[:, None] * seen[:, k]).sum(dim=0), dim=0))


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_the_gates_confidence_is_measured_as_that_of_k_means(temperature):
    """Softmax of the cosines over 0.1: softmax of the cosines, to the power of ten; whatever the gate learns with."""
    learner, source, _, found = started(gate_temperature=temperature)
    probabilities = probabilities_of_the_gate(learner, source)
    assert probabilities.max() < 0.25
    confidence = F.normalize(probabilities**10, p=1, dim=1).max(dim=1).values
    torch.testing.assert_close(found.confidence, confidence, rtol=1e-4, atol=1e-5)
    assert found.confidence.max() > 0.5


def test_prototypes_are_found_before_the_first_epoch_where_a_number_was_once_suggested():
    source = digits()
    config = quick_config(source, method="mice", clusters=10, suggest__range=(2, 20), train__epochs=2)
    assert config.clusters == 10
    fitted = train(config, source, CPU, Silent())
    assert len(fitted.history) == 3


def test_the_queue_keeps_the_outputs_of_every_expert_of_the_target_for_both_views():
    learner, source, state, _ = started(queue_size=200)
    queue = learner.method.queue
    before = queue["vectors"].clone()
    torch.testing.assert_close(before.norm(dim=1), torch.ones(200))
    m_step(learner, source, BATCH, state)
    assert queue["vectors"].shape == (200, 160)
    assert (queue["images"][:128] == BATCH.repeat(2)).all()
    assert not torch.equal(queue["vectors"][:128], before[:128])
    assert torch.equal(queue["vectors"][128:], before[128:])


def test_the_gate_reads_a_view_of_its_own_and_directions_are_averaged():
    learner, source, state, found = started(temperature=0.3, gate_temperature=0.5)
    views, queries, keys, gates, method = [], [], [], [], learner.method
    queue = method.queue["vectors"].double().numpy().copy()
    method.online.backbone.register_forward_pre_hook(lambda _, given: views.append(given[0].clone()))
    for module, outputs in ((method.online.projector, queries), (method.target, keys), (method.gate, gates)):
        module.register_forward_hook(lambda *passed, to=outputs: to.append(passed[2].detach().double().numpy()))
    loss = m_step(learner, source, BATCH, state)["experts"]
    assert len({tuple(view.flatten().tolist()) for view in views}) == len(views) == 3
    gate = F.softmax(torch.tensor(gates[-1]) / 0.5, dim=1).numpy()
    prototypes = found.prototypes.double().numpy()
    directions = [(queries[0], keys[1]), (queries[1], keys[0])]
    values = [oracle.contrastive_experts(*_by_hand(*both, queue, prototypes, 10), gate, 0.3) for both in directions]
    assert float(loss) == pytest.approx(np.mean(values), rel=1e-4)


def test_a_queue_without_places_is_refused():
    with pytest.raises(InputError, match=r"mice\.queue_size = 0: .* greater than or equal to 1"):
        quick_config(method="mice", queue_size=0)


def test_mice_has_its_own_settings():
    config = of_system("mice-cifar-10")
    networks, own, train, views = built(config), settings_of(config), config.train, config.views
    assert (widths(networks.online.projector), networks.experts) == ((10 * 128,), 10)
    assert (widths(networks.gate)[0], own.gate_temperature) == (128, 1.0)
    assert (own.temperature, config.network.momentum, own.queue_size) == (1.0, 0.999, 16384)
    assert train.lr * train.batch_size / 256 == pytest.approx(1.0)
    assert (train.batch_size, train.epochs, train.warmup, train.weight_decay) == (256, 1000, 10, 1e-4)
    assert [share * train.epochs for share in train.milestones] == pytest.approx([480, 640, 800])
    assert (train.schedule, config.network.backbone, config.network.bn_groups) == ("steps", "resnet34", 1)
    assert (views.crop_scale, views.flip, views.jitter, views.hue, views.grey) == ((0.2, 1.0), 0.5, 1.0, 0.4, 0.2)
    assert (views.brightness, views.contrast, views.saturation) == (0.4, 0.4, 0.4)
