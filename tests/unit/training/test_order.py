import pytest
import torch

from propos.config import Config
from propos.training.order import epoch_order
from propos.training.schedule import Schedule


def schedule(images, unlabelled=0, **train):
    config = Config().with_settings({f"train.{key}": value for key, value in {"batch_size": 10, **train}.items()})
    return Schedule(config.train, config.network, images, unlabelled)


def test_unlabelled_images_come_first_in_steps_of_their_own():
    plan = schedule(images=35, unlabelled=47)
    order = epoch_order(0, 0, plan)
    assert plan.steps == len(order) == 3 + 4
    assert (order[:4] >= 35).all()
    assert (order[:4] < 82).all()
    assert (order[4:] < 35).all()
    assert len(order.unique()) == 70
    assert not torch.equal(order, epoch_order(0, 1, plan))


def test_balanced_epochs_see_every_cluster_as_often():
    labels = torch.tensor([0] * 900 + [1] * 90 + [2] * 10)
    plan = schedule(images=1000)
    seen = torch.cat([labels[epoch_order(0, epoch, plan, labels).flatten()] for epoch in range(20)])
    shares = torch.bincount(seen) / len(seen)
    # 20,000 draws of a third: a standard deviation of 0.0033.
    assert shares.tolist() == pytest.approx([1 / 3] * 3, abs=0.02)
    again = epoch_order(0, 3, plan, labels)
    assert torch.equal(again, epoch_order(0, 3, plan, labels))


def test_accumulated_batches_are_of_one_kind():
    plan = schedule(images=45, unlabelled=65, accumulate=2)
    order = epoch_order(0, 0, plan)
    assert order.shape == (2 + 3, 20)
    assert ((order >= 45).all(dim=1) | (order < 45).all(dim=1)).all()
