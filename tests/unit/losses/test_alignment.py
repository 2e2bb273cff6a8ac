import numpy as np
import pytest
import torch

from helpers import oracle
from propos.losses import alignment, both_ways, symmetric

RNG = np.random.default_rng(0)
FIRST, SECOND, THIRD, FOURTH = RNG.normal(size=(4, 12, 5))


def test_alignment_by_hand():
    prediction = torch.tensor([[2.0, 0.0], [0.0, 3.0], [1.0, 0.0]])
    target = torch.tensor([[5.0, 0.0], [1.0, 0.0], [-4.0, 0.0]])
    # Same, right-angled and opposite directions: 0, 2 and 4.
    assert float(alignment(prediction, target)) == pytest.approx(2.0)


def test_alignment_equals_the_oracle_in_value_and_gradient():
    oracle.check(lambda x: alignment(x, torch.tensor(SECOND)), lambda x: oracle.alignment(x, SECOND), FIRST)


def test_rotating_the_space_does_not_change_the_alignment():
    rotation, _ = np.linalg.qr(RNG.normal(size=(5, 5)))
    rotated = alignment(torch.tensor(FIRST @ rotation), torch.tensor(SECOND @ rotation))
    assert float(rotated) == pytest.approx(oracle.alignment(FIRST, SECOND), abs=1e-10)


def test_a_symmetric_loss_is_the_mean_of_both_directions():
    a, b, ta, tb = map(torch.tensor, (FIRST, SECOND, THIRD, FOURTH))
    expected = (oracle.alignment(FIRST, FOURTH) + oracle.alignment(SECOND, THIRD)) / 2
    assert float(symmetric(alignment, (a, tb), (b, ta))) == pytest.approx(expected)


def test_the_alignment_of_two_stacked_pairs_is_the_mean_of_both():
    a, b, ta, tb = map(torch.tensor, (FIRST, SECOND, THIRD, FOURTH))
    expected = (oracle.alignment(FIRST, FOURTH) + oracle.alignment(SECOND, THIRD)) / 2
    assert float(alignment(*both_ways((a, tb), (b, ta)))) == pytest.approx(expected)


def test_a_symmetric_loss_passes_further_arguments_to_both_directions():
    one = torch.ones(())
    assert float(symmetric(lambda x, y, scale: scale * (x + y), (one, one), (one, 2 * one), 10.0)) == 25.0
