"""What every process draws for the whole batch and takes its slice of, and batches that cannot be cut."""

import pytest
import torch

from helpers.small import CPU, digits, quick_config, two_views
from propos.augment import RandomViews
from propos.common.errors import InputError
from propos.methods.seeds import generator
from propos.networks.grouped_norm import BatchGroups
from propos.training.context import BatchContext
from propos.training.learner import build_learner
from propos.training.state import first_state


def test_a_share_has_the_views_its_images_have_in_the_whole_batch():
    learner = build_learner(quick_config(), digits(), CPU)
    images = torch.from_numpy(digits().batch(range(20)))
    aspects = torch.linspace(0.5, 2.0, 20)
    pixels, part = learner.config.pixels, slice(7, 13)
    views = RandomViews(learner.config.views, pixels.mean, pixels.std)
    whole = views(images, torch.Generator().manual_seed(3), aspects)
    share = views(images[part], torch.Generator().manual_seed(3), aspects, (20, part))
    for some, every in zip(share, whole, strict=True):
        assert torch.equal(some, every[part])


def test_a_batch_is_cut_into_consecutive_groups_by_hand():
    groups = BatchGroups.of(13, 4)
    assert groups.of_processes == ((3, 3, 3, 4),)
    assert groups.here == (3, 3, 3, 4)
    assert not groups.shared
    assert groups.joined(2).here == (6, 6, 6, 8)
    assert groups.concatenated(2).here == (3, 3, 3, 4, 3, 3, 3, 4)


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


def context(size, **settings):
    """Return a learner and the context of a batch of so many images."""
    learner = build_learner(quick_config(**settings), digits(), CPU)
    learner.method.train()
    return learner, BatchContext.of(learner, first_state(learner), size)


def target_alone():
    """Return a target network whose batch norm has one group."""
    return build_learner(quick_config(), digits(), CPU).method.target.train()


def test_shuffling_the_targets_groups_changes_the_targets_alone():
    learner, ctx = context(20, network__bn_groups=2, network__shuffle_bn=True)
    views = two_views(learner, range(20), (3, 0))
    order = torch.randperm(20, generator=generator(learner.seed, "shuffle", 0, 0))
    plain, mixed = ctx.encode(learner.method.target, *views), ctx.encode(learner.method.target, *views, shuffled=True)
    # The first group of the shuffled batch holds the first ten images of the order.
    target = target_alone()
    first = order[:10]
    torch.testing.assert_close(mixed[0][first], target(views[0][first]), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(plain[0][:10], target(views[0][:10]), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(plain[0], mixed[0])


def test_four_shuffled_groups_are_the_slices_of_the_batch_in_that_order_and_each_image_has_its_own_target():
    """As four GPUs would: each passes a quarter of the shuffled batch, and the outputs go back to their places."""
    learner, ctx = context(22, network__bn_groups=4, network__shuffle_bn=True)
    target = target_alone()
    views = two_views(learner, range(22), (3, 0))
    order = torch.randperm(22, generator=generator(learner.seed, "shuffle", 0, 0))
    for view, targets in zip(views, ctx.encode(learner.method.target, *views, shuffled=True), strict=True):
        for quarter in order.split([5, 6, 5, 6]):
            torch.testing.assert_close(targets[quarter], target(view[quarter]), rtol=1e-4, atol=1e-5)


def test_each_step_draws_another_order_of_its_batch():
    learner, _ = context(64, network__bn_groups=4, network__shuffle_bn=True)
    view = two_views(learner, range(64), (3, 0))[0]
    targets = [
        BatchContext.of(learner, first_state(learner), 64, (step, 0)).encode(
            learner.method.target, view, shuffled=True
        )[0]
        for step in (0, 0, 1)
    ]
    assert torch.equal(targets[0], targets[1])
    assert not torch.allclose(targets[0], targets[2])
