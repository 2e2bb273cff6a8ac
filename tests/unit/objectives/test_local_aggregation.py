"""Images pulled to those of a bank that share a cluster with them: by hand, and beside plain loops."""

import math

import numpy as np
import pytest
import torch

from helpers import oracle
from propos.objectives import Bank, Grouping, LocalAggregation, Outputs, local_aggregation
from propos.objectives.local_aggregation import shares_a_cluster

RNG = np.random.default_rng(0)
FIRST, SECOND = RNG.normal(size=(2, 4, 3))
ROWS = np.array([oracle.unit(row) for row in RNG.normal(size=(12, 3))])
IMAGES = np.array([2, 7, 0, 11])  # the last is one that is only trained on
CLUSTERINGS = RNG.integers(0, 4, size=(2, 10))  # of ten of the twelve
CLUSTERINGS[:, 7] = -1


def bank():
    return Bank(torch.tensor(ROWS), torch.tensor(IMAGES), tuple(torch.tensor(each) for each in CLUSTERINGS))


@pytest.mark.parametrize("background", [1, 5, 12, 40])
def test_it_equals_the_oracle_in_value_and_gradient(background):
    oracle.check(
        lambda x: local_aggregation(x, bank(), 0.2, background),
        lambda x: oracle.local_aggregation(x, ROWS, IMAGES, CLUSTERINGS, 0.2, background),
        FIRST,
    )


def test_both_views_are_averaged_with_as_many_near_as_some_clusters_hold():
    pair = torch.tensor(FIRST), torch.tensor(SECOND)
    groupings = tuple(Grouping(torch.tensor(each), torch.zeros(4, 3), torch.ones(4)) for each in CLUSTERINGS)
    outputs = Outputs(pair, pair, pair, bank=bank(), groupings=groupings)
    loss = LocalAggregation(0.2, 100, 2)(outputs, torch.zeros(4).long())  # two of four clusters hold half of twelve
    expected = [oracle.local_aggregation(view, ROWS, IMAGES, CLUSTERINGS, 0.2, 6) for view in (FIRST, SECOND)]
    assert float(loss) == pytest.approx(sum(expected) / 2, abs=1e-9)
    aggregation = LocalAggregation(0.07, 4096, 96)
    assert aggregation.background(1_281_167, 30_000) == 4096  # ImageNet: 4,100 in as many clusters
    assert aggregation.background(1797, 300) == 575


def test_it_by_hand():
    # Three rows at cosines 1, 0 and -1, temperature 1; the first two are near, and the second shares a cluster.
    rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    image = torch.tensor([[3.0, 0.0]])
    apart = Bank(rows, torch.tensor([2]), (torch.tensor([0, 1, 1]), torch.tensor([0, 1, 2])))
    assert float(local_aggregation(image, apart, 1.0, 2)) == pytest.approx(math.log(1 + math.e), rel=1e-5)
    assert float(local_aggregation(image, apart, 1.0, 1)) == pytest.approx(-math.log(1e-7), rel=1e-5)  # none is near


def test_a_cluster_shared_in_any_clustering_counts_and_one_owns_ones_own_row():
    clusterings = torch.tensor([0, 0, 1, -1]), torch.tensor([0, 1, 0, -1])
    rows, images = torch.tensor([[0, 1, 2, 3, 4]]).repeat(3, 1), torch.tensor([0, 3, 4])
    assert shares_a_cluster(rows, images, clusterings).int().tolist() == [
        [1, 1, 1, 0, 0],
        [0, 0, 0, 1, 0],  # in no cluster, as the fourth is
        [0, 0, 0, 0, 1],  # past those that are clustered
    ]
