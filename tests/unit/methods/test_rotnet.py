"""RotNet: the turns classified, by hand and in a step."""

import math

import pytest
import torch

from helpers.steps import learner_of, losses_of, step_of
from propos.methods.rotnet import turn_classification

LABELS = torch.arange(200) % 10


def test_the_loss_by_hand():
    sure = [100.0 * torch.eye(4)[[turns]] for turns in range(4)]
    assert float(turn_classification(*sure)) == pytest.approx(0)
    assert float(turn_classification(*(torch.zeros(2, 4) for _ in range(4)))) == pytest.approx(math.log(4))
    # Two turns are taken for each other, at odds of e : 1.
    odds = [torch.eye(4)[[turn]] * 100.0 for turn in (0, 1)] + [torch.tensor([[0.0, 0.0, 50.0, 51.0]])] * 2
    expected = (math.log(1 + math.e) + math.log(1 + 1 / math.e)) / 4
    assert float(turn_classification(*odds)) == pytest.approx(expected, rel=1e-5)


def test_every_image_is_seen_turned_to_all_four_sides():
    learner = learner_of("rotnet", network__joint_views=True)
    seen = []
    learner.method.online.backbone.register_forward_pre_hook(lambda _, images: seen.append(images[0]))
    batch, ctx = step_of(learner, LABELS)
    losses = losses_of(learner, batch, ctx)
    assert list(losses) == ["rotations"]
    (images,) = seen  # one pass, so that batch norm's statistics tell no turn
    view = batch.view("random")
    of_image = images[:4] if torch.equal(images[0], view[0]) and not torch.equal(images[1], view[1]) else images[::24]
    turned = [view[0], view[0].flip(2).transpose(1, 2), view[0].flip(1, 2), view[0].transpose(1, 2).flip(2)]
    for expected in turned:
        assert any(torch.equal(each, expected) for each in of_image)
    assert len(images) == 4 * 24


def test_colours_are_left_as_they_are():
    views = learner_of("rotnet").config.views
    assert (views.jitter, views.grey, views.rotation) == (0, 0, 0)
