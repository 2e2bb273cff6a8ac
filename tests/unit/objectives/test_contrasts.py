import math

import numpy as np
import pytest
import torch

from helpers import oracle
from propos.objectives import (
    ClusterBalance,
    ClusterContrast,
    Grouping,
    InfoNce,
    NegativeCosine,
    NtXent,
    Outputs,
    ProtoNce,
    PrototypeAlignment,
    PrototypeScattering,
    PrototypeUniformity,
    Queue,
    cluster_balance,
    cluster_contrast,
    info_nce,
    negative_cosine,
    nt_xent,
    proto_nce,
    prototype_alignment,
    prototype_uniformity,
)

RNG = np.random.default_rng(0)
FIRST, SECOND = RNG.normal(size=(2, 8, 5))
LABELS = np.array([0, 0, 1, 3, 1, -1, 3, 0])
NEGATIVES = np.stack([oracle.unit(row) for row in RNG.normal(size=(6, 5))])
CENTRES = np.stack([oracle.unit(row) for row in RNG.normal(size=(4, 5))])
PHI = np.array([0.5, 1.0, 1.5, 1.0])
SHARES_FIRST, SHARES_SECOND = RNG.dirichlet(np.ones(4), size=(2, 8))


def grouping():
    return Grouping(torch.tensor(LABELS), torch.tensor(CENTRES), torch.tensor(PHI))


# A loss of the first argument: ours, the oracle's, and where to take both.
CASES = {
    "negative cosine": (
        lambda x: negative_cosine(x, torch.tensor(SECOND)),
        lambda x: -np.mean([oracle.cosine(a, b) for a, b in zip(x, SECOND, strict=True)]),
        FIRST,
    ),
    "NT-Xent": (
        lambda x: nt_xent(x, torch.tensor(SECOND), 0.5),
        lambda x: oracle.nt_xent(x, SECOND, 0.5),
        FIRST,
    ),
    "cluster contrast": (
        lambda x: cluster_contrast(x, torch.tensor(SHARES_SECOND), 1.0),
        lambda x: oracle.nt_xent(x.T, SHARES_SECOND.T, 1.0),
        SHARES_FIRST,
    ),
    "cluster balance": (cluster_balance, oracle.cluster_balance, SHARES_FIRST),
    "InfoNCE": (
        lambda x: info_nce(x, torch.tensor(SECOND), torch.tensor(NEGATIVES), 1.0),
        lambda x: oracle.info_nce(x, SECOND, NEGATIVES, 1.0),
        FIRST,
    ),
    "ProtoNCE": (
        lambda x: proto_nce(x, grouping()),
        lambda x: oracle.proto_nce(x, LABELS, CENTRES, PHI),
        FIRST,
    ),
    "prototype alignment": (
        lambda x: prototype_alignment(x, torch.tensor(SECOND), torch.tensor(LABELS), 0.5),
        lambda x: oracle.prototype_alignment(x, SECOND, LABELS, 0.5),
        FIRST,
    ),
    "prototype uniformity": (
        lambda x: prototype_uniformity(x, torch.tensor(LABELS), 0.5),
        lambda x: oracle.prototype_uniformity(x, LABELS, 0.5),
        FIRST,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_loss_equals_the_oracle_in_value_and_gradient(name):
    oracle.check(*CASES[name])


# By hand.


def test_nt_xent_by_hand_for_two_images():
    rows = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    # Every row has one equal partner and two right-angled others: −log(e² / (e² + 2)) at τ = 0.5.
    assert float(nt_xent(rows, rows, 0.5)) == pytest.approx(math.log(1 + 2 * math.exp(-2)))


def test_info_nce_by_hand():
    query = torch.tensor([[3.0, 0.0]])
    # Its key is equal, one negative right-angled and one opposite.
    loss = info_nce(query, query, torch.tensor([[0.0, 1.0], [-1.0, 0.0]]), 1.0)
    assert float(loss) == pytest.approx(math.log(1 + math.exp(-1) + math.exp(-2)))


def test_balance_is_zero_for_equal_shares_and_the_logarithm_for_one_cluster():
    assert float(cluster_balance(torch.full((3, 4), 0.25))) == pytest.approx(0.0, abs=1e-7)
    assert float(cluster_balance(torch.tensor([[1.0, 0.0], [1.0, 0.0]]))) == pytest.approx(math.log(2))


def test_proto_nce_by_hand():
    # One image on its own prototype (cosine 1, φ 0.5) beside one right-angled.
    own = Grouping(torch.tensor([0]), torch.eye(2), torch.tensor([0.5, 1.0]))
    assert float(proto_nce(torch.tensor([[4.0, 0.0]]), own)) == pytest.approx(math.log(1 + math.exp(-2)))


def test_the_alignment_of_prototypes_is_the_papers_reweighted_sum_over_images():
    ours = prototype_alignment(torch.tensor(FIRST), torch.tensor(SECOND), torch.tensor(LABELS), 0.5)
    assert float(ours) == pytest.approx(oracle.reweighted_alignment(FIRST, SECOND, LABELS, 0.5), abs=1e-9)


@pytest.mark.parametrize("labels", [[3, 3, 3], [-1, -1, -1]])
def test_uniformity_of_fewer_than_two_clusters_is_zero(labels):
    online = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), requires_grad=True)
    loss = prototype_uniformity(online, torch.tensor(labels), 0.5)
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert torch.equal(online.grad, torch.zeros_like(online))


def test_without_any_label_prototypes_and_groupings_ask_for_nothing():
    first, nobody = torch.tensor(FIRST, requires_grad=True), torch.full((8,), -1)
    total = prototype_alignment(first, torch.tensor(SECOND), nobody, 0.5)
    total = total + proto_nce(first, Grouping(nobody, torch.tensor(CENTRES), torch.tensor(PHI)))
    total.backward()
    assert float(total.detach()) == 0.0
    assert torch.equal(first.grad, torch.zeros_like(first))


def test_no_gradient_reaches_targets_and_keys():
    for loss in (
        lambda x: negative_cosine(torch.tensor(FIRST, requires_grad=True), x),
        lambda x: info_nce(torch.tensor(FIRST, requires_grad=True), x, torch.tensor(NEGATIVES), 1.0),
        lambda x: prototype_alignment(torch.tensor(FIRST, requires_grad=True), x, torch.tensor(LABELS), 0.5),
    ):
        target = torch.tensor(SECOND, requires_grad=True)
        loss(target).backward()
        assert target.grad is None


# The modules: which tensors they pick, and how they put the directions together.


def pair(seed):
    draw = np.random.default_rng(seed).normal(size=(2, 8, 5))
    return draw, (torch.tensor(draw[0]), torch.tensor(draw[1]))


PROJECTED, PROJECTIONS = pair(1)
PREDICTED, PREDICTIONS = pair(2)
TARGETED, TARGETS = pair(3)
QUEUED = np.concatenate([NEGATIVES, np.zeros((2, 5))])
QUEUE_LABELS = np.array([0, 1, 1, 2, 3, 2, -1, -1])


def outputs(**more):
    return Outputs(PROJECTIONS, PREDICTIONS, TARGETS, **more)


def mean_of_directions(loss, ours, theirs):
    return (loss(ours[0], theirs[1]) + loss(ours[1], theirs[0])) / 2


def test_the_modules_pick_their_tensors():
    labels = torch.tensor(LABELS)
    shares = (torch.tensor(SHARES_FIRST), torch.tensor(SHARES_SECOND))
    expected = {
        NegativeCosine(): mean_of_directions(
            lambda p, t: -np.mean([oracle.cosine(a, b) for a, b in zip(p, t, strict=True)]), PREDICTED, TARGETED
        ),
        NtXent(0.5): oracle.nt_xent(*PROJECTED, 0.5),
        ClusterContrast(1.0): oracle.nt_xent(SHARES_FIRST.T, SHARES_SECOND.T, 1.0),
        ClusterBalance(): oracle.cluster_balance(SHARES_FIRST) + oracle.cluster_balance(SHARES_SECOND),
        PrototypeAlignment(0.5): mean_of_directions(
            lambda p, t: oracle.prototype_alignment(p, t, LABELS, 0.5), PREDICTED, TARGETED
        ),
        PrototypeUniformity(0.5): np.mean([oracle.prototype_uniformity(view, LABELS, 0.5) for view in PROJECTED]),
    }
    for objective, value in expected.items():
        found = objective(outputs(assignments=shares), labels)
        assert float(found) == pytest.approx(value, abs=1e-9), type(objective).__name__


def test_mocos_directions_are_summed():
    queue = Queue(torch.tensor(NEGATIVES), torch.full((6,), -1))
    both = 2 * mean_of_directions(lambda q, k: oracle.info_nce(q, k, NEGATIVES, 1.0), PROJECTED, TARGETED)
    assert float(InfoNce(1.0)(outputs(queue=queue), torch.tensor(LABELS))) == pytest.approx(both, abs=1e-9)


def test_pcls_directions_are_summed_and_its_clusterings_averaged():
    labels = np.array([2, 2, 0, 1, 1, 0, -1, 2])
    other = Grouping(torch.tensor(labels), torch.tensor(CENTRES[:3]), torch.tensor(PHI[:3]))
    sums = [sum(oracle.proto_nce(v, LABELS, CENTRES, PHI) for v in PROJECTED)]
    sums.append(sum(oracle.proto_nce(v, labels, CENTRES[:3], PHI[:3]) for v in PROJECTED))
    found = ProtoNce()(outputs(groupings=(grouping(), other)), torch.tensor(LABELS))
    assert float(found) == pytest.approx(np.mean(sums), abs=1e-9)


def test_the_queue_joins_both_prototypes_and_brings_clusters_of_its_own():
    """Cluster 2 is in the queue alone; entries that no image filled take no part."""
    queue = Queue(torch.tensor(QUEUED), torch.tensor(QUEUE_LABELS))
    labels = np.concatenate([LABELS, QUEUE_LABELS[:6]])

    def joined(views):
        return [np.concatenate([view, NEGATIVES]) for view in views]

    expected = mean_of_directions(
        lambda o, t: oracle.prototype_scattering(o, t, labels, 0.5), joined(PROJECTED), joined(TARGETED)
    )
    found = PrototypeScattering(0.5)(outputs(queue=queue), torch.tensor(LABELS))
    assert float(found) == pytest.approx(expected, abs=1e-9)
    uniform = np.mean([oracle.prototype_uniformity(view, labels, 0.5) for view in joined(PROJECTED)])
    found = PrototypeUniformity(0.5)(outputs(queue=queue), torch.tensor(LABELS))
    assert float(found) == pytest.approx(uniform, abs=1e-9)


def test_an_unfilled_queue_changes_nothing():
    queue = Queue(torch.zeros(4, 5, dtype=torch.float64), torch.full((4,), -1))
    with_queue = PrototypeScattering(0.5)(outputs(queue=queue), torch.tensor(LABELS))
    without = PrototypeScattering(0.5)(outputs(), torch.tensor(LABELS))
    torch.testing.assert_close(with_queue, without)
