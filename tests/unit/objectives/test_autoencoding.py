"""Images made again from their embeddings, and clusters that learn from what they are surest of."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from helpers import oracle
from propos.methods import Seen, Sharpened
from propos.networks import Head, Mlp
from propos.objectives import Outputs, Reconstruction, Sharpening, reconstruction, sharpening

RNG = np.random.default_rng(0)
FIRST, SECOND = RNG.normal(size=(2, 7, 4))
CENTRES = RNG.normal(size=(5, 4))
WANTED = oracle.sharpened(oracle.student(RNG.normal(size=(7, 4)), CENTRES, 0.3))
NOBODY = torch.zeros(7).long()


def head_of(centres, spread):
    head = Mlp(centres.shape[1], Head((len(centres),), prototypes=True, spread=spread)).double()
    head[-1].begin_at(torch.as_tensor(centres))
    return head


def outputs_of(first, second, **more):
    return Outputs((first, second), (first, second), (first, second), **more)


def test_reconstruction_equals_the_oracle_in_value_and_gradient():
    pixels = torch.tensor(RNG.normal(size=(2, 7, 4)))

    def ours(made):
        pairs = {"pixels": pixels.unbind(), "reconstructions": (made, torch.tensor(SECOND))}
        return Reconstruction()(outputs_of(made, made, **pairs), NOBODY)

    def expected(made):
        of_views = zip((made, SECOND), pixels.numpy(), strict=True)
        return sum(oracle.reconstruction(*each) for each in of_views) / 2

    oracle.check(ours, expected, FIRST)


def test_reconstruction_by_hand():
    # Errors of 1 and 3 in the first image, of 0 and 2 in the second: (1 + 9 + 0 + 4) / 4.
    made, pixels = torch.tensor([[1.0, 0.0], [5.0, 2.0]]), torch.tensor([[2.0, 3.0], [5.0, 4.0]])
    assert float(reconstruction(made, pixels)) == pytest.approx(3.5)


def test_sharpening_equals_the_oracle_in_value_and_gradient_through_the_centres_students_t():
    def ours(first, centres):
        said = [F.softmax(head_of(centres, 0.3)(each), dim=1) for each in (first, torch.tensor(SECOND))]
        more = {"assignments": tuple(said), "prepared": {"sharpened": torch.tensor(WANTED)[:, None]}}
        return Sharpening()(outputs_of(first, first, **more), NOBODY)

    def expected(first):
        said = [oracle.student(each, CENTRES, 0.3) for each in (first, SECOND)]
        return sum(oracle.sharpening(each, WANTED) for each in said) / 2

    oracle.check(lambda first: ours(first, CENTRES), expected, FIRST)


def test_centres_learn_by_the_same_gradient():
    head = head_of(CENTRES, 0.3)
    sharpening(F.softmax(head(torch.tensor(FIRST)), dim=1), torch.tensor(WANTED)).backward()
    expected = oracle.finite_difference(lambda c: oracle.sharpening(oracle.student(FIRST, c, 0.3), WANTED), CENTRES)
    np.testing.assert_allclose(head[-1].weight.grad.numpy(), expected, atol=1e-7)


def test_students_t_by_hand():
    # From an image along the first axis centres lie at squared distances of 0, 2 and 4: with a spread of 2, the kernel
    # is 1, 1/2 and 1/3, of 11/6 together.
    head = head_of(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]), 2.0)
    said = F.softmax(head(torch.tensor([[7.0, 0.0]]).double()), dim=1)
    assert said[0].tolist() == pytest.approx([6 / 11, 3 / 11, 2 / 11])
    assert said.argmax() == 0
    # Their lengths say nothing.
    with torch.no_grad():
        head[-1].weight.mul_(3.0)
    assert F.softmax(head(torch.tensor([[7.0, 0.0]]).double()), dim=1)[0].tolist() == pytest.approx(said[0].tolist())


def test_sharpening_by_hand():
    # ln(1/q) where one cluster is wanted; for even odds of which 3/4 is said, (ln(2/3) + ln 2) / 2.
    said, wanted = torch.tensor([[0.25, 0.75], [0.75, 0.25]]), torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    expected = (math.log(4) + (math.log(2 / 3) + math.log(2)) / 2) / 2
    assert float(sharpening(said, wanted)) == pytest.approx(expected)
    assert float(sharpening(said, said)) == pytest.approx(0.0, abs=1e-7)
    assert math.isfinite(sharpening(torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 0.0]])))


def seen(assignments, mine=None):
    rows = torch.zeros(len(assignments), 2)
    return Seen(rows, rows, assignments, 0, mine or slice(0, len(assignments)))


def test_what_is_wanted_by_hand():
    # Sizes of 1.5 and 0.5. The first image: 1/1.5 beside 0, the second 0.25/1.5 beside 0.25/0.5, a quarter of it.
    said = torch.tensor([[1.0, 0.0], [0.5, 0.5]])[:, None]
    torch.testing.assert_close(Sharpened()(seen(said))[:, 0], torch.tensor([[1.0, 0.0], [0.25, 0.75]]))


def test_what_is_wanted_is_of_all_images_and_of_each_head():
    said = np.stack([oracle.student(FIRST, CENTRES, 0.3), oracle.student(SECOND, CENTRES, 0.3)], axis=1)
    expected = np.stack([oracle.sharpened(said[:, head]) for head in range(2)], axis=1)
    found = Sharpened()(seen(torch.tensor(said), slice(2, 5)))
    np.testing.assert_allclose(found.numpy(), expected[2:5], atol=1e-12)


def test_a_cluster_that_nobody_is_put_into_is_wanted_for_nobody():
    said = torch.tensor([[0.5, 0.5, 0.0], [0.9, 0.1, 0.0]])[:, None]
    wanted = Sharpened()(seen(said))[:, 0]
    assert wanted[:, 2].tolist() == [0.0, 0.0]
    torch.testing.assert_close(wanted.sum(dim=1), torch.ones(2))
