"""The contrasts of images, clusters and prototypes, and the balance of clusters: by hand and next to plain loops."""

import math

import numpy as np
import pytest
import torch

from helpers import oracle
from propos.losses import cluster_balance, cluster_contrast, info_nce, nt_xent, proto_nce

RNG = np.random.default_rng(0)
FIRST, SECOND = RNG.normal(size=(2, 8, 5))
LABELS = np.array([0, 0, 1, 3, 1, -1, 3, 0])
NEGATIVES = np.stack([oracle.unit(row) for row in RNG.normal(size=(6, 5))])
CENTRES = np.stack([oracle.unit(row) for row in RNG.normal(size=(4, 5))])
PHI = np.array([0.5, 1.0, 1.5, 1.0])
ASSIGNED_FIRST, ASSIGNED_SECOND = RNG.dirichlet(np.ones(4), size=(2, 8))

# A loss of the first argument: ours, the oracle's, and the point at which both are evaluated.
CASES = {
    "NT-Xent": (lambda x: nt_xent(x, torch.tensor(SECOND), 0.5), lambda x: oracle.nt_xent(x, SECOND, 0.5), FIRST),
    "cluster contrast": (
        lambda x: cluster_contrast(x, torch.tensor(ASSIGNED_SECOND), 1.0),
        lambda x: oracle.nt_xent(x.T, ASSIGNED_SECOND.T, 1.0),
        ASSIGNED_FIRST,
    ),
    "cluster balance": (cluster_balance, oracle.cluster_balance, ASSIGNED_FIRST),
    "InfoNCE": (
        lambda x: info_nce(x, torch.tensor(SECOND), torch.tensor(NEGATIVES), 1.0),
        lambda x: oracle.info_nce(x, SECOND, NEGATIVES, 1.0),
        FIRST,
    ),
    "ProtoNCE": (
        lambda x: proto_nce(x, torch.tensor(CENTRES), torch.tensor(PHI), torch.tensor(LABELS)),
        lambda x: oracle.proto_nce(x, LABELS, CENTRES, PHI),
        FIRST,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_loss_equals_the_oracle_in_value_and_gradient(name):
    oracle.check(*CASES[name])


def test_nt_xent_by_hand_for_two_images():
    rows = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    # Every row has one equal partner and two right-angled others: −log(e² / (e² + 2)) at τ = 0.5.
    assert float(nt_xent(rows, rows, 0.5)) == pytest.approx(math.log(1 + 2 * math.exp(-2)))


def test_nt_xent_by_hand_without_negatives_among_alike_images():
    # Three images along the axes, the same in both views: each has four rows of other images as negatives; of the two
    # that are alike, each has the two rows of the third.
    axes = torch.eye(3, dtype=torch.float64)
    alike = torch.tensor([[True, False, True], [False, True, False], [True, False, True]])
    alone, spared = math.log(1 + 4 * math.exp(-1)), math.log(1 + 2 * math.exp(-1))
    assert float(nt_xent(axes, axes, 1.0)) == pytest.approx(alone)
    found = nt_xent(axes, axes, 1.0, alike & ~torch.eye(3, dtype=torch.bool))
    assert float(found) == pytest.approx((2 * spared + alone) / 3)


def test_info_nce_by_hand():
    query = torch.tensor([[3.0, 0.0]])
    # Its key is equal, one negative right-angled and one opposite.
    loss = info_nce(query, query, torch.tensor([[0.0, 1.0], [-1.0, 0.0]]), 1.0)
    assert float(loss) == pytest.approx(math.log(1 + math.exp(-1) + math.exp(-2)))


def test_no_gradient_reaches_the_keys():
    key = torch.tensor(SECOND, requires_grad=True)
    info_nce(torch.tensor(FIRST, requires_grad=True), key, torch.tensor(NEGATIVES), 1.0).backward()
    assert key.grad is None


def test_balance_is_zero_for_equal_shares_and_the_logarithm_for_one_cluster():
    assert float(cluster_balance(torch.full((3, 4), 0.25))) == pytest.approx(0.0, abs=1e-7)
    assert float(cluster_balance(torch.tensor([[1.0, 0.0], [1.0, 0.0]]))) == pytest.approx(math.log(2))


def test_proto_nce_by_hand():
    # One image on its own prototype (cosine 1, φ 0.5) and right-angled to the other.
    loss = proto_nce(torch.tensor([[4.0, 0.0]]), torch.eye(2), torch.tensor([0.5, 1.0]), torch.tensor([0]))
    assert float(loss) == pytest.approx(math.log(1 + math.exp(-2)))


def test_proto_nce_without_any_label_and_its_gradient_are_zero():
    query = torch.tensor(FIRST, requires_grad=True)
    loss = proto_nce(query, torch.tensor(CENTRES), torch.tensor(PHI), torch.full((8,), -1))
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert torch.equal(query.grad, torch.zeros_like(query))
