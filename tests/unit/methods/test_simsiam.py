import numpy as np
import pytest
import torch

from helpers import oracle
from propos.methods.simsiam import negative_cosine

FIRST, SECOND = np.random.default_rng(0).normal(size=(2, 8, 5))


def test_the_negative_cosine_equals_the_oracle_in_value_and_gradient():
    oracle.check(
        lambda x: negative_cosine(x, torch.tensor(SECOND)),
        lambda x: -np.mean([oracle.cosine(a, b) for a, b in zip(x, SECOND, strict=True)]),
        FIRST,
    )


def test_the_negative_cosine_by_hand():
    # Equal, right-angled and opposite directions: −1, 0 and 1.
    prediction = torch.tensor([[2.0, 0.0], [0.0, 3.0], [1.0, 0.0], [1.0, 0.0]])
    target = torch.tensor([[5.0, 0.0], [1.0, 0.0], [-4.0, 0.0], [1.0, 0.0]])
    assert float(negative_cosine(prediction, target)) == pytest.approx(-0.25)


def test_no_gradient_reaches_the_target():
    target = torch.tensor(SECOND, requires_grad=True)
    negative_cosine(torch.tensor(FIRST, requires_grad=True), target).backward()
    assert target.grad is None
