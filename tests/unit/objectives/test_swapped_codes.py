"""SwAV's loss beside plain loops, its codes by hand, and what a queue adds to them."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from helpers import oracle
from propos.objectives import Outputs, Queue, SwappedCodes, swapped_codes
from propos.objectives.swapped_codes import codes_of

RNG = np.random.default_rng(0)
FIRST, SECOND = RNG.normal(size=(2, 6, 3))
PROTOTYPES = np.array([oracle.unit(row) for row in RNG.normal(size=(4, 3))])
CODES, ASSIGNED = RNG.dirichlet(np.ones(4), size=(2, 6))
EARLIER = np.array([oracle.unit(row) for row in RNG.normal(size=(5, 3))])
NOBODY = torch.full((6,), -1)


def queue(embeddings):
    return Queue(torch.tensor(embeddings), torch.full((len(embeddings),), -1))


def test_the_loss_beside_plain_loops():
    oracle.check(
        lambda x: swapped_codes(torch.tensor(CODES), x), lambda x: oracle.soft_cross_entropy(CODES, x), ASSIGNED
    )


def test_the_loss_by_hand():
    # A sure code at a chance of ¼, and one of two halves at chances of ½ each.
    codes = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    assigned = torch.tensor([[0.25, 0.75], [0.5, 0.5]])
    assert float(swapped_codes(codes, assigned)) == pytest.approx((math.log(4) + math.log(2)) / 2)


def test_what_is_impossible_is_finite():
    assigned = torch.tensor([[1.0, 0.0]], requires_grad=True)
    loss = swapped_codes(torch.tensor([[0.0, 1.0]]), assigned)
    loss.backward()
    assert math.isfinite(float(loss.detach()))
    assert bool(torch.isfinite(assigned.grad).all())


def test_codes_are_those_of_the_authors_arithmetic():
    found = codes_of(torch.tensor(FIRST), torch.tensor(PROTOTYPES), None, 0.5, 3)
    np.testing.assert_allclose(found, oracle.codes(FIRST, PROTOTYPES, 0.5, 3), atol=1e-6)


def test_codes_share_the_batch_out_evenly_where_the_nearest_prototype_would_take_all():
    # Four images nearest to the first of two prototypes, at 5, 10, 30 and 40 degrees; the other stands at 90.
    degrees = np.deg2rad([5, 10, 30, 40])
    images = torch.tensor(np.stack([np.cos(degrees), np.sin(degrees)], axis=1))
    codes = codes_of(images, torch.eye(2, dtype=torch.float64), None, 0.05, 100)
    assert codes.argmax(dim=1).tolist() == [0, 0, 1, 1]
    torch.testing.assert_close(codes.sum(dim=0), torch.tensor([2.0, 2.0]), atol=0.01, rtol=0)


def test_a_full_queue_makes_the_batch_larger_and_one_that_is_not_full_says_nothing():
    prototypes = torch.tensor(PROTOTYPES)
    alone = codes_of(torch.tensor(FIRST), prototypes, None, 0.5, 3)
    with_queue = codes_of(torch.tensor(FIRST), prototypes, queue(EARLIER), 0.5, 3)
    expected = oracle.codes(np.concatenate([EARLIER, FIRST]), PROTOTYPES, 0.5, 3)[5:]
    np.testing.assert_allclose(with_queue, expected, atol=1e-6)
    filling = EARLIER.copy()
    filling[-1] = 0
    assert torch.equal(codes_of(torch.tensor(FIRST), prototypes, queue(filling), 0.5, 3), alone)
    assert not torch.allclose(with_queue, alone)


def test_each_view_is_predicted_from_the_other():
    projections = torch.tensor(FIRST, requires_grad=True), torch.tensor(SECOND)
    shares = [F.softmax(view @ torch.tensor(PROTOTYPES).T, dim=1) for view in projections]
    outputs = Outputs(*(projections,) * 3, assignments=tuple(shares), head_prototypes=torch.tensor(PROTOTYPES))
    loss = SwappedCodes(0.5, 3)(outputs, NOBODY)
    codes = [oracle.codes(view, PROTOTYPES, 0.5, 3) for view in (FIRST, SECOND)]
    first, second = (view.detach().numpy() for view in shares)
    expected = (oracle.soft_cross_entropy(codes[0], second) + oracle.soft_cross_entropy(codes[1], first)) / 2
    assert float(loss.detach()) == pytest.approx(expected, abs=1e-6)
    # The codes are targets: the first view learns from the second's alone.
    (gradient,) = torch.autograd.grad(loss, projections[0], retain_graph=True)
    (as_target,) = torch.autograd.grad(swapped_codes(torch.tensor(codes[1]), shares[0]) / 2, projections[0])
    torch.testing.assert_close(gradient, as_target, atol=1e-6, rtol=0)
