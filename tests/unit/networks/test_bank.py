"""The bank of an embedding of every image."""

import numpy as np
import torch

from propos.networks import Bank


def test_it_starts_with_random_unit_vectors():
    banks = [Bank(200, 16, 0.5, torch.Generator().manual_seed(seed))["vectors"] for seed in (0, 0, 1)]
    torch.testing.assert_close(banks[0].norm(dim=1), torch.ones(200))
    assert torch.equal(banks[0], banks[1])
    assert not torch.equal(banks[0], banks[2])


def test_a_row_moves_by_one_minus_the_momentum_and_stays_a_unit_vector():
    bank = Bank(3, 2, 0.25, torch.Generator().manual_seed(0))
    bank["vectors"].copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]))
    before = bank["vectors"].clone()
    bank.move(torch.tensor([1]), torch.tensor([[1.0, 0.0]]))
    # 0.25 (0, 1) + 0.75 (1, 0), whose length is √0.625.
    np.testing.assert_allclose(bank["vectors"][1], np.array([0.75, 0.25]) / np.sqrt(0.625), rtol=1e-6)
    assert torch.equal(bank["vectors"][[0, 2]], before[[0, 2]])
