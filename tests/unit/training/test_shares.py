"""What every process draws for the whole batch and takes its slice of, and batches that cannot be cut."""

import pytest
import torch

from helpers.small import CPU, digits, quick_config
from propos.errors import InputError
from propos.networks.norm import BatchGroups
from propos.training.estimate import late_state
from propos.training.learner import build_learner
from propos.training.m_step import m_step


def test_a_share_has_the_views_its_images_have_in_the_whole_batch():
    learner = build_learner(quick_config(), digits(), CPU)
    images = torch.from_numpy(digits().batch(range(20)))
    aspects = torch.linspace(0.5, 2.0, 20)
    whole = learner.views(images, torch.Generator().manual_seed(3), aspects)
    part = slice(7, 13)
    views = learner.views(images[part], torch.Generator().manual_seed(3), aspects, (20, part))
    for some, every in zip(views, whole, strict=True):
        assert torch.equal(some, every[part])


def test_a_batch_is_cut_into_consecutive_groups_by_hand():
    groups = BatchGroups.of(13, 4)
    assert groups.here == groups.whole == (3, 3, 3, 4)
    assert not groups.shared
    assert groups.doubled().here == (6, 6, 6, 8)


@pytest.mark.parametrize(("groups", "refused"), [(32, False), (33, True)])
def test_groups_of_fewer_than_two_images_are_refused(groups, refused):
    if not refused:
        assert quick_config(network__bn_groups=groups).network.bn_groups == groups
        return
    with pytest.raises(
        InputError,
        match=r"network\.bn_groups = 33: batches of 64 images have at most 32 slices of two: set it to 1 \(and",
    ):
        quick_config(network__bn_groups=groups)


def test_one_group_cannot_be_shuffled():
    with pytest.raises(
        InputError, match=r"network\.shuffle_bn = true: one group .* set network\.bn_groups to 2 or more"
    ):
        quick_config(network__shuffle_bn=True)
    assert quick_config(network__shuffle_bn=True, network__bn_groups=2).network.shuffle_bn


def test_shuffling_the_targets_groups_changes_the_targets_alone():
    learner = build_learner(quick_config(network__bn_groups=2), digits(), CPU)
    images = torch.from_numpy(digits().batch(range(20)))
    views = learner.views(images, torch.Generator().manual_seed(3))
    plain = learner.network(views, None)
    order = torch.cat([torch.arange(0, 20, 2), torch.arange(1, 20, 2)])
    mixed = learner.network(views, None, 20, order)
    assert torch.equal(plain.projections[0], mixed.projections[0])
    # The first group of the shuffled batch holds the even images.
    target = build_learner(quick_config(), digits(), CPU).network.target
    with torch.no_grad():
        torch.testing.assert_close(mixed.targets[0][::2], target(views[0][::2]), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(plain.targets[0][:10], target(views[0][:10]), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(plain.targets[0], mixed.targets[0])


def test_four_shuffled_groups_are_the_slices_of_the_batch_in_that_order_and_each_image_has_its_own_target():
    """As four GPUs would: each passes a quarter of the shuffled batch, and what it makes goes back to its place."""
    learner = build_learner(quick_config(network__bn_groups=4, network__shuffle_bn=True), digits(), CPU)
    target = build_learner(quick_config(), digits(), CPU).network.target
    images = torch.from_numpy(digits().batch(range(22)))
    views = learner.views(images, torch.Generator().manual_seed(3))
    order = torch.randperm(22, generator=torch.Generator().manual_seed(4))
    made = learner.network(views, None, 22, order).targets
    for view, targets in zip(views, made, strict=True):
        for quarter in order.split([5, 6, 5, 6]):
            with torch.no_grad():
                alone = target(view[quarter])
            torch.testing.assert_close(targets[quarter], alone, rtol=1e-4, atol=1e-5)


def test_each_step_draws_another_order_of_its_batch():
    learner = build_learner(quick_config(network__bn_groups=4, network__shuffle_bn=True), digits(), CPU)
    orders = []
    learner.network.register_forward_pre_hook(lambda network, given: orders.append(given[3]))
    state = late_state(learner)
    for state.step in range(2):
        m_step(learner, digits(), torch.arange(64), state)
    assert all(torch.equal(order.sort().values, torch.arange(64)) for order in orders)
    assert not torch.equal(orders[0], torch.arange(64))
    assert not torch.equal(orders[0], orders[1])
