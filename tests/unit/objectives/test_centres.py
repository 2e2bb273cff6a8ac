"""Centres that are learnt: losses by hand and beside plain loops, and clusters held to a size."""

import math

import numpy as np
import pytest
import torch

from helpers import oracle
from propos.networks import Centres, CentreSets
from propos.objectives import (
    CentreAgreement,
    CentreLearning,
    CentreSet,
    Outputs,
    centre_agreement,
    centre_learning,
)

RNG = np.random.default_rng(0)
FIRST, SECOND = RNG.normal(size=(2, 7, 4))
NOW, BEFORE = (np.array([oracle.unit(row) for row in RNG.normal(size=(5, 4))]) for _ in range(2))
LABELS, EARLIER = np.array([0, 4, 2, 2, 1, 0, 4]), np.array([1, 4, 0, 2, 3, 0, 2])
NOBODY = torch.zeros(7).long()
# A second set, of the first three centres.
FEW, FEW_EARLIER = LABELS % 3, EARLIER % 3


def sets(now):
    places = torch.tensor(LABELS), torch.tensor(EARLIER), torch.tensor(FEW), torch.tensor(FEW_EARLIER)
    before = torch.tensor(BEFORE)
    return CentreSet(now, before, *places[:2]), CentreSet(now[:3], before[:3], *places[2:])


def outputs_of(first, second, now):
    pair = first, second
    return Outputs(pair, pair, pair, centres=sets(now))


def test_agreement_equals_the_oracle_in_value_and_gradient():
    both = [(BEFORE, EARLIER), (BEFORE[:3], FEW_EARLIER)]

    def expected(first):
        # The other view is a constant: what it says is that of FIRST, whatever the gradient is taken at.
        forward = [oracle.centre_agreement(first, SECOND, *each, 0.3, 0.2) for each in both]
        backward = [oracle.centre_agreement(SECOND, FIRST, *each, 0.3, 0.2) for each in both]
        return sum(forward + backward) / 4

    oracle.check(
        lambda x: CentreAgreement(0.3, 0.2)(outputs_of(x, torch.tensor(SECOND), torch.tensor(NOW)), NOBODY),
        expected,
        FIRST,
    )


def test_learning_equals_the_oracle_in_value_and_moves_own_centres_alone():
    now = torch.tensor(NOW, requires_grad=True)
    first, second = torch.tensor(FIRST, requires_grad=True), torch.tensor(SECOND)
    loss = CentreLearning(0.3)(outputs_of(first, second, now), NOBODY)
    loss.backward()
    cases = [(view, centres, labels) for view in (FIRST, SECOND) for centres, labels in ((NOW, LABELS), (NOW[:3], FEW))]
    values = [oracle.centre_learning(*case, 0.3) for case in cases]
    assert float(loss.detach()) == pytest.approx(np.mean(values), abs=1e-9)
    gradient = np.zeros_like(NOW)
    for view, centres, labels in cases:
        gradient[: len(centres)] += oracle.centre_learning_gradient(view, centres, labels, 0.3) / 4
    np.testing.assert_allclose(now.grad.numpy(), gradient, atol=1e-12)
    assert not now.grad[3].any()  # no image is its own
    assert first.grad is None


def test_both_by_hand():
    # Two centres at right angles, an image along the first, temperature 1: softmax e/(1 + e) and 1/(1 + e).
    image, centres, label = torch.tensor([[2.0, 0.0]]), torch.eye(2), torch.tensor([0])
    assert float(centre_learning(image, centres, label, 1.0)) == pytest.approx(math.log(1 + math.exp(-1)))
    # A quarter for the label, the second centre, and three for the other view, which lies between both.
    other = torch.tensor([[1.0, 1.0]])
    expected = math.log(1 + math.e) - (0.25 * 0 + 0.75 * 0.5)
    assert float(centre_agreement(image, other, centres, 1 - label, 1.0, 0.25)) == pytest.approx(expected)


def centres_by_hand():
    centres = Centres(2, CentreSets((2, 4), step=0.1, least=0.9), temperature=0.5)
    with torch.no_grad():
        centres.weight.copy_(torch.tensor([[3.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]))
    return centres


def test_images_belong_to_the_nearest_centre_of_each_set():
    first, second = torch.tensor([[1.0, 0.1], [-1.0, 0.0]]), torch.tensor([[5.0, -0.1], [-0.8, -0.6]])
    centres = centres_by_hand()
    assert centres.nearest(first, second).tolist() == [[0, 0], [1, 2]]
    np.testing.assert_allclose(centres(first).detach()[0] * 0.5, np.array([1.0, 0.1]) / math.hypot(1.0, 0.1), rtol=1e-6)
    torch.testing.assert_close(centres.now()[0].detach(), torch.eye(2))


def test_small_clusters_are_favoured_until_images_come_to_them():
    centres = centres_by_hand()
    # All images in the first clusters: shares of (1, 0) and (1, 0, 0, 0) against 0.45 and 0.225.
    labels = torch.zeros(8, 2).long()
    centres.move_favours(labels)
    torch.testing.assert_close(centres.favours, torch.tensor([0.0, 0.045, 0.0, 0.0225, 0.0225, 0.0225]))
    centres.move_favours(labels)
    torch.testing.assert_close(centres.favours[:2], torch.tensor([0.0, 0.09]))
    # An image just inside the first cluster is put into the second once that is favoured enough: a lead of 0.07.
    near = torch.tensor([[0.74, 0.67]])
    assert centres.nearest(near, near)[0, 0] == 1
    # Now all are in the second: its favour falls by 0.1 · (1 − 0.45), never below 0.
    centres.move_favours(torch.ones(8, 2).long())
    torch.testing.assert_close(centres.favours[:2], torch.tensor([0.045, 0.035]))
    centres.move_favours(torch.ones(8, 2).long())
    torch.testing.assert_close(centres.favours[:2], torch.tensor([0.09, 0.0]))


def test_what_the_centres_were_changes_when_an_epoch_begins_alone():
    centres = centres_by_hand()
    before = centres.before.clone()
    assert not torch.equal(before[0], torch.tensor([1.0, 0.0]))
    centres.begin_epoch()
    torch.testing.assert_close(centres.earlier()[0], torch.eye(2))
    with torch.no_grad():
        centres.weight.zero_()
    torch.testing.assert_close(centres.earlier()[0], torch.eye(2))
