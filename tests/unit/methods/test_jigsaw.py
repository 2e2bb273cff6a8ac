"""Jigsaw: patches, orders and their classification."""

import math

import pytest
import torch

from helpers.steps import learner_of, losses_of, step_of
from propos.methods.jigsaw import distant_orders, standardised
from propos.methods.patches import Cutter, in_order, uniform

LABELS = torch.arange(200) % 10


def test_patches_are_cut_row_by_row_somewhere_inside_their_cells():
    rows, columns = torch.meshgrid(torch.arange(75.0), torch.arange(75.0), indexing="ij")
    views = torch.stack([rows, columns])[None].expand(5, -1, -1, -1)
    cutter = Cutter(cell=25, patch=21)
    cut = cutter.cut(views, torch.randn(5, 18, generator=torch.Generator().manual_seed(0)))
    assert cut.shape == (5, 9, 2, 21, 21)
    for number in range(9):
        corners = cut[:, number, :, 0, 0]
        for axis, cell in ((0, number // 3), (1, number % 3)):
            assert corners[:, axis].ge(25 * cell).all()
            assert corners[:, axis].le(25 * cell + 4).all()
    assert torch.equal(cut[..., 0, 1:, 0] - cut[..., 0, :-1, 0], torch.ones(5, 9, 20))
    assert len(cut[:, 0, :, 0, 0].unique(dim=0)) > 1


def test_small_images_are_enlarged_until_their_patches_fit_the_backbone():
    cutter = learner_of("jigsaw").method.cutter  # digits of 8 × 8, a backbone that wants 4
    assert cutter.patch >= 4
    cut = cutter.cut(torch.randn(2, 1, 8, 8), torch.zeros(2, 18))
    assert cut.shape == (2, 9, 1, cutter.patch, cutter.patch)


def test_whole_numbers_are_drawn_equally_often():
    drawn = uniform(torch.randn(20_000, generator=torch.Generator().manual_seed(0)), 4)
    assert (torch.bincount(drawn) - 5000).abs().max() < 250
    assert uniform(torch.tensor([-9.0, 0.01, 9.0]), 4).tolist() == [0, 2, 3]


def test_patches_come_in_the_order_of_each_image():
    rows = torch.arange(18).view(2, 9)
    orders = torch.stack([torch.arange(9).flip(0), torch.arange(9)])
    assert in_order(rows, orders).tolist() == [[8, 7, 6, 5, 4, 3, 2, 1, 0], [*range(9, 18)]]


def test_orders_are_far_apart():
    orders = distant_orders(30)
    assert torch.equal(orders.sort(dim=1).values, torch.arange(9).expand(30, -1))
    different = (orders[:, None] != orders).sum(dim=2) + 9 * torch.eye(30)
    assert different.min() >= 7  # of 30 random ones two are equal in four places and more
    assert torch.equal(orders, distant_orders(30))


def test_a_patch_tells_no_brightness():
    patches = torch.tensor([1.0, 3.0, 1.0, 3.0]).view(1, 1, 1, 2, 2)
    torch.testing.assert_close(standardised(patches), standardised(10 * patches + 7))
    assert standardised(patches).flatten().tolist() == [-1, 1, -1, 1]
    assert not standardised(torch.full((1, 1, 1, 2, 2), 5.0)).any()


def test_the_loss_starts_at_a_guess():
    learner = learner_of("jigsaw", jigsaw__permutations=50)
    losses = losses_of(learner, *step_of(learner, LABELS))
    assert losses == {"orders": pytest.approx(math.log(50), rel=0.2)}
