"""Assignments of equal shares, beside plain loops and scipy's linear programming."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment

from propos.objectives import sinkhorn


def by_loops(scores, sharpness, turns):
    """Return the same in plain loops: columns to 1/K, rows to 1/B, and rows to 1 at the end."""
    found = np.exp(np.asarray(scores) / sharpness)
    found = found / found.sum()
    for _ in range(turns):
        for column in range(found.shape[1]):
            found[:, column] /= found[:, column].sum() * found.shape[1]
        for row in range(found.shape[0]):
            found[row] /= found[row].sum() * found.shape[0]
    return found * found.shape[0]


def test_it_is_scaling_by_turns():
    scores = np.random.default_rng(0).normal(size=(8, 3))
    for turns in (1, 3, 10):
        ours = sinkhorn(torch.tensor(scores), 0.5, turns)
        np.testing.assert_allclose(ours, by_loops(scores, 0.5, turns), rtol=1e-4)


def test_rows_sum_to_one_and_columns_to_equal_shares():
    scores = torch.randn(12, 4, generator=torch.Generator().manual_seed(1))
    found = sinkhorn(scores, 0.3, 200)
    torch.testing.assert_close(found.sum(dim=1), torch.ones(12))
    torch.testing.assert_close(found.sum(dim=0), torch.full((4,), 3.0), rtol=1e-3, atol=1e-3)


def test_by_hand():
    """Both rows prefer the first column; in equal shares the one that does so more has it."""
    found = sinkhorn(torch.tensor([[1.0, 0.0], [0.5, 0.0]]), 1.0, 500)
    # The products of the diagonals are kept: p² / (1 − p)² = e^(1 − 0.5).
    odds = math.exp(0.25)
    torch.testing.assert_close(found[0, 0], torch.tensor(odds / (1 + odds)), rtol=1e-4, atol=1e-4)


def test_sharp_codes_are_the_best_assignment_and_no_sharpness_overflows():
    scores = np.random.default_rng(2).normal(size=(6, 3))
    found = sinkhorn(torch.tensor(scores), 0.001, 4000)
    assert torch.isfinite(found).all()
    rows, places = linear_sum_assignment(np.repeat(scores, 2, axis=1), maximize=True)  # two places in each column
    assert found.argmax(dim=1).tolist() == (places[np.argsort(rows)] // 2).tolist()


def test_no_gradient_flows():
    assert not sinkhorn(torch.zeros(2, 2, requires_grad=True), 0.1).requires_grad


@pytest.mark.parametrize("turns", [1, 3])
def test_equal_scores_are_shared_equally(turns):
    torch.testing.assert_close(sinkhorn(torch.zeros(5, 4), 0.05, turns), torch.full((5, 4), 0.25))
