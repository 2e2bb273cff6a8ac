"""GCC's contrast on a graph: beside plain loops, by hand, and where all are near."""

import math

import numpy as np
import pytest
import torch

from helpers import oracle
from propos.objectives import GraphContrast, Outputs, graph_contrast

RNG = np.random.default_rng(0)
FIRST, AGAIN, NEIGHBOUR = RNG.normal(size=(3, 5, 4))
TABLE = np.array([[3, 8, 9], [8, 3, 12], [9, 12, 4], [12, 9, 8], [4, 7, 3]])  # itself, and two that are near
PARTNERS = np.array([9, 8, 12, 8, 7])  # of which the second image's is itself
WEIGHTS = RNG.uniform(0.3, 1.0, size=(5, 3))
DRAWN = [WEIGHTS[0][2], WEIGHTS[1][0], WEIGHTS[2][1], WEIGHTS[3][2], WEIGHTS[4][1]]
NOBODY = torch.full((5,), -1)


def outputs_of(first, table=TABLE):
    pair = first, torch.tensor(NEIGHBOUR)
    return Outputs(
        *(pair,) * 3,
        again_projections=torch.tensor(AGAIN),
        partners=torch.tensor(PARTNERS),
        prepared={"neighbours": torch.tensor(table), "neighbour weights": torch.tensor(WEIGHTS)},
    )


def test_the_loss_beside_plain_loops():
    oracle.check(
        lambda x: GraphContrast(0.5)(outputs_of(x), NOBODY),
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
    table = TABLE.copy()
    everyone = np.unique(np.concatenate([TABLE[:, 0], PARTNERS]))
    widened = np.concatenate([table, np.repeat(table[:, :1], len(everyone), axis=1)], axis=1)
    widened[0, 3:] = everyone
    weights = np.concatenate([WEIGHTS, np.zeros((5, len(everyone)))], axis=1)
    first = torch.tensor(FIRST, requires_grad=True)
    outputs = outputs_of(first, widened)
    outputs.prepared["neighbour weights"] = torch.tensor(weights)
    loss = GraphContrast(0.5)(outputs, NOBODY)
    expected = oracle.graph_contrast(FIRST, AGAIN, NEIGHBOUR, TABLE[:, 0], PARTNERS, widened, DRAWN, 0.5)
    assert float(loss.detach()) == pytest.approx(expected, abs=1e-9)
    loss.backward()
    assert bool(torch.isfinite(first.grad).all())
