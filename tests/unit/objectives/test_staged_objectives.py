"""The losses of methods that build on a trained network, beside an independent oracle and by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from propos.objectives import (
    ChosenHead,
    ClusterBalance,
    ConfidentPull,
    ConfidentPush,
    EachHead,
    NeighbourAgreement,
    Outputs,
    SelfLabel,
    WeightedInformation,
    cluster_balance,
    confident_pull,
    confident_push,
    neighbour_agreement,
    self_label,
)
from propos.objectives.confident import agreed_on

from helpers import oracle

RNG = np.random.default_rng(0)
FIRST, SECOND = RNG.normal(size=(2, 8, 5))
LABELS = np.array([0, 0, 1, 3, 1, -1, 3, 0])
SHARES_FIRST, SHARES_SECOND = RNG.dirichlet(np.full(4, 0.5), size=(2, 8))
HEADS = RNG.dirichlet(np.ones(4), size=(4, 8, 3))  # students and teachers of both views: images, heads, clusters
LATELY = RNG.dirichlet(np.ones(4), size=3)


def of_heads(first):
    """Return outputs of several heads, of which the first view's students may be others."""
    nothing = (torch.zeros(8, 2), torch.zeros(8, 2))
    rest = [torch.tensor(view) for view in HEADS[1:]]
    return Outputs(
        *(nothing,) * 3,
        assignments=(first, rest[0]),
        target_assignments=(rest[1], rest[2]),
        shares=torch.tensor(LATELY),
        chosen=torch.tensor(2),
    )


CASES = {
    "pull": (
        lambda x: confident_pull(x, torch.tensor(SECOND), torch.tensor(LABELS)),
        lambda x: oracle.confident_pull(x, SECOND, LABELS),
        FIRST,
    ),
    "push": (
        lambda x: confident_push(x, torch.tensor(SECOND), torch.tensor(LABELS)),
        lambda x: oracle.confident_push(x, SECOND, LABELS),
        FIRST,
    ),
    "agreement": (
        lambda x: neighbour_agreement(x, torch.tensor(SHARES_SECOND)),
        lambda x: oracle.neighbour_agreement(x, SHARES_SECOND),
        SHARES_FIRST,
    ),
    "labels": (
        lambda x: self_label(torch.tensor(SHARES_SECOND), x, 0.6),
        lambda x: oracle.self_label(SHARES_SECOND, x, 0.6),
        SHARES_FIRST,
    ),
    "labels by cluster": (
        lambda x: self_label(torch.tensor(SHARES_SECOND), x, 0.6, by_cluster=True),
        lambda x: oracle.self_label(SHARES_SECOND, x, 0.6, by_cluster=True),
        SHARES_FIRST,
    ),
    "weighted information": (
        lambda x: WeightedInformation(0.6)(of_heads(x), torch.tensor(LABELS)),
        lambda x: oracle.weighted_information((x, HEADS[1]), HEADS[2:], LATELY, 0.6),
        HEADS[0],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_loss_equals_the_oracle_in_value_and_gradient(name):
    oracle.check(*CASES[name])


def test_the_pull_by_hand():
    # Two images at right angles, targets alike: ½ · Σ‖·‖² = ½ · (0 + 0 + 2 + 2), over ‖S‖ = √2 and ‖S'‖ = 2.
    online, target = torch.tensor([[3.0, 0.0], [0.0, 2.0]]), torch.tensor([[1.0, 0.0], [5.0, 0.0]])
    assert float(confident_pull(online, target, torch.tensor([4, 4]))) == pytest.approx(2 / (2 * 2**0.5))


def test_the_push_by_hand():
    # One pair of prototypes is opposite (distance² 4), the other equal (0): minus their mean.
    online, target = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[0.0, 7.0], [-1.0, 0.0]])
    assert float(confident_push(online, target, torch.tensor([0, 1]))) == pytest.approx(-(4 + 0) / 2)


@pytest.mark.parametrize("loss", [confident_pull, confident_push])
def test_without_clusters_nothing_is_asked_for(loss):
    online = torch.tensor(FIRST, requires_grad=True)
    value = loss(online, torch.tensor(SECOND), torch.full((8,), -1))
    value.backward()
    assert float(value.detach()) == 0.0
    assert torch.equal(online.grad, torch.zeros_like(online))


@pytest.mark.parametrize("loss", [confident_pull, confident_push])
def test_no_gradient_reaches_the_target(loss):
    target = torch.tensor(SECOND, requires_grad=True)
    loss(torch.tensor(FIRST, requires_grad=True), target, torch.tensor(LABELS)).backward()
    assert target.grad is None


def test_the_images_that_are_relied_on_by_hand():
    # On a circle: three of cluster 0 close together, two of cluster 1, and one of cluster 1 among the zeros.
    degrees = np.deg2rad([0, 2, 5, 90, 93, 3])
    points = torch.tensor(np.stack([np.cos(degrees), np.sin(degrees)], axis=1))
    labels = torch.tensor([0, 0, 0, 1, 1, 1])
    # k = 1: images 0, 3 and 4 (image 1's nearest is 5, of another cluster; so is image 2's); k = 2: none.
    assert agreed_on(points, labels, 5).tolist() == [True, False, False, True, True, False]


@pytest.mark.parametrize("seed", range(5))
def test_the_images_that_are_relied_on_are_the_oracles(seed):
    draw = np.random.default_rng(seed)
    labels = draw.integers(-1, 3, size=24)
    points = np.eye(5)[labels] + 0.5 * draw.normal(size=(24, 5))
    found = agreed_on(torch.tensor(points), torch.tensor(labels), 10)
    expected = oracle.agreed_on(points, labels, 10)
    assert found.tolist() == expected
    assert any(expected)


def test_the_modules_rely_on_the_targets_neighbours_in_each_direction():
    draw = np.random.default_rng(2)
    labels = draw.integers(0, 3, size=24)
    projections, targets = np.eye(5)[labels] + 0.6 * draw.normal(size=(2, 2, 24, 5))
    outputs = Outputs(*(tuple(map(torch.tensor, pair)) for pair in (projections, projections, targets)))
    for module, loss in ((ConfidentPull(9), oracle.confident_pull), (ConfidentPush(9), oracle.confident_push)):
        expected = 0.0
        for online, target in ((projections[0], targets[1]), (projections[1], targets[0])):
            relied = np.where(oracle.agreed_on(target, labels, 9), labels, -1)
            expected += loss(online, target, relied) / 2
        assert float(module(outputs, torch.tensor(labels))) == pytest.approx(expected, abs=1e-9)


def test_agreement_by_hand():
    # Chances to be together: ½ · ½ + ½ · ½ = ½, and 1.
    first, second = torch.tensor([[0.5, 0.5], [1.0, 0.0]]), torch.tensor([[0.5, 0.5], [1.0, 0.0]])
    assert float(neighbour_agreement(first, second)) == pytest.approx(math.log(2) / 2)


def test_agreement_of_what_cannot_be_together_is_finite():
    first = torch.tensor([[1.0, 0.0]], requires_grad=True)
    loss = neighbour_agreement(first, torch.tensor([[0.0, 1.0]]))
    loss.backward()
    assert math.isfinite(float(loss.detach()))
    assert bool(torch.isfinite(first.grad).all())


def test_self_labelling_by_hand():
    plain = torch.tensor([[0.9, 0.1], [0.95, 0.05], [0.1, 0.9], [0.5, 0.5]])
    strong = torch.tensor([[0.5, 0.5], [0.25, 0.75], [0.75, 0.25], [0.0, 1.0]])
    # Cluster 0: the mean of log 2 and log 4; cluster 1: log 4; the last image is not sure.
    assert float(self_label(plain, strong, 0.8)) == pytest.approx((1.5 * math.log(2) + 2 * math.log(2)) / 2)


def test_a_cluster_that_is_less_sure_than_others_labels_its_images_too():
    # Above 0.8 cluster 0 has two images, cluster 1 one (from 0.8 · ½ / 1½ on, so both), cluster 2 none (from 0 on).
    plain = torch.tensor(
        [[0.9, 0.1, 0], [0.95, 0, 0.05], [0.1, 0.9, 0], [0.2, 0.6, 0.2], [0.3, 0.2, 0.5], [0.6, 0.4, 0]]
    )
    strong = torch.tensor([0.5, 0.25, 0.25, 1.0, 0.125, 1.0])
    strong = torch.stack([strong[i] * F.one_hot(plain[i].argmax(), 3) for i in range(6)])
    # In halvings: cluster 0 (1 + 2) / 2, its last image is below its own 0.8; cluster 1 (2 + 0) / 2; cluster 2: 3.
    assert float(self_label(plain, strong, 0.8, by_cluster=True)) == pytest.approx((1.5 + 1 + 3) / 3 * math.log(2))
    alone = self_label(plain, strong, 0.8)
    assert float(alone) == pytest.approx((1.5 + 2) / 2 * math.log(2))
    assert float(self_label(plain, strong, 0.99, by_cluster=True)) == 0.0  # where nobody is, none is labelled


def test_where_nobody_is_sure_nothing_is_asked_for_and_plain_views_have_no_gradient():
    plain, strong = (torch.tensor(shares, requires_grad=True) for shares in (SHARES_FIRST, SHARES_SECOND))
    nothing = self_label(plain, strong, 0.9999)
    nothing.backward()
    assert float(nothing.detach()) == 0.0
    assert torch.equal(strong.grad, torch.zeros_like(strong))
    self_label(plain, strong, 0.5).backward()
    assert plain.grad is None


def test_weighted_information_by_hand():
    # One head of two clusters, all sure of the first, which holds half of all images: −1 · log(1 / ½).
    sure = torch.tensor([[[1.0, 0.0]]])
    nothing = (torch.zeros(1, 2), torch.zeros(1, 2))
    outputs = Outputs(*(nothing,) * 3, assignments=(sure, sure), target_assignments=(sure, sure))
    outputs = replace(outputs, shares=torch.tensor([[0.5, 0.5]]))
    found = WeightedInformation(0.6)(outputs, torch.tensor([0]))
    assert float(found) == pytest.approx(-math.log(2), abs=1e-6)


def test_an_objective_of_each_head_is_summed_and_that_of_the_chosen_one_is_its_own():
    outputs, labels = of_heads(torch.tensor(HEADS[0])), torch.tensor(LABELS)
    each = EachHead(NeighbourAgreement())
    expected = [oracle.neighbour_agreement(HEADS[0][:, h], HEADS[1][:, h]) for h in range(3)]
    np.testing.assert_allclose(each.by_head(outputs, labels).numpy(), expected, atol=1e-9)
    assert float(each(outputs, labels)) == pytest.approx(sum(expected), abs=1e-9)
    assert float(ChosenHead(NeighbourAgreement())(outputs, labels)) == pytest.approx(expected[2], abs=1e-9)
    of_one = ChosenHead(SelfLabel(0.4))(outputs, labels)
    assert float(of_one) == pytest.approx(oracle.self_label(HEADS[0][:, 2], HEADS[1][:, 2], 0.4), abs=1e-9)


def test_the_balance_may_be_that_of_the_first_view_alone():
    outputs = of_heads(torch.tensor(HEADS[0])).of_heads()[1]
    found = ClusterBalance(first_alone=True)(outputs, torch.tensor(LABELS))
    assert float(found) == pytest.approx(float(cluster_balance(torch.tensor(HEADS[0][:, 1]))), abs=1e-12)
