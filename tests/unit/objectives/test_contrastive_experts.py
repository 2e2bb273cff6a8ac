"""A mixture of experts: the loss by hand and beside plain loops, whom it moves, and what the gate learns from it."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from helpers import oracle
from propos.objectives import ContrastiveExperts, Outputs, Queue, contrastive_experts

IMAGES, EXPERTS, WIDTH, PLACES = 6, 3, 4, 5
RNG = np.random.default_rng(0)
FIRST, SECOND, OF_FIRST, OF_SECOND = RNG.normal(size=(4, IMAGES, EXPERTS * WIDTH))
GATE = RNG.dirichlet(np.ones(EXPERTS), size=IMAGES)
QUEUE = np.array([oracle.unit(row) for row in RNG.normal(size=(PLACES, EXPERTS * WIDTH))])
PROTOTYPES = np.array([oracle.unit(row) for row in RNG.normal(size=(EXPERTS, EXPERTS * WIDTH))])
NOBODY = torch.zeros(IMAGES).long()


def outputs_of(first=FIRST, gate=GATE):
    pair = torch.as_tensor(first), torch.tensor(SECOND)
    keys = torch.tensor(OF_FIRST), torch.tensor(OF_SECOND)
    queue = Queue(torch.tensor(QUEUE), torch.zeros(PLACES).long())
    return Outputs(pair, pair, keys, again=torch.as_tensor(gate), queue=queue, prototypes=torch.tensor(PROTOTYPES))


def by_expert(rows):
    return rows.reshape(len(rows), EXPERTS, WIDTH)


def expected(first=FIRST, gate=GATE, temperature=0.3):
    """Both directions, each cluster's prototype that of its own expert."""
    centres = np.array([oracle.unit(by_expert(PROTOTYPES)[k, k]) for k in range(EXPERTS)])
    negatives = np.array([[oracle.unit(each) for each in row] for row in by_expert(QUEUE)])
    directions = [(first, OF_SECOND), (SECOND, OF_FIRST)]
    return np.mean(
        [
            oracle.contrastive_experts(by_expert(query), by_expert(key), negatives, centres, gate, temperature)
            for query, key in directions
        ]
    )


def test_the_mixture_equals_the_oracle_in_value_and_in_the_experts_gradient():
    oracle.check(lambda x: ContrastiveExperts(0.3)(outputs_of(x), NOBODY), expected, FIRST)


def test_the_mixture_equals_the_oracle_in_the_gates_gradient():
    # The oracle's bound is one of shares that need not add up to 1, as the loss is.
    oracle.check(lambda x: ContrastiveExperts(0.3)(outputs_of(gate=x), NOBODY), lambda x: expected(gate=x), GATE)


def test_no_gradient_reaches_keys_or_prototypes():
    first, keys, centres = (torch.tensor(each, requires_grad=True) for each in (FIRST, SECOND, PROTOTYPES))
    rows = [F.normalize(each.unflatten(1, (EXPERTS, WIDTH)), dim=2) for each in (first, keys, torch.tensor(QUEUE))]
    contrastive_experts(*rows, centres[:, :WIDTH], torch.tensor(GATE), 0.3).backward()
    assert first.grad.abs().sum() > 0
    assert keys.grad is None
    assert centres.grad is None


def test_the_mixture_by_hand():
    # Along the first axis lie the first expert's image, key and prototype, along the second its queue: 2 against 0.
    # The second expert's image and prototype lie along the second axis with its queue: 0 against 2.
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
    """The derivative by the gate's logits is what it says less the share that each expert has in telling the image."""
    logits = torch.tensor(np.log(GATE), requires_grad=True)
    rows = [F.normalize(torch.tensor(by_expert(each)), dim=2) for each in (FIRST, SECOND, QUEUE)]
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
    first = torch.tensor(FIRST, requires_grad=True)
    loss = ContrastiveExperts(0.3)(outputs_of(first, gate), NOBODY)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(first.grad).all()
    assert not by_expert(first.grad)[:, [0, 2]].abs().sum() > 1e-12
