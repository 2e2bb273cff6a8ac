"""SeLa: labels compared with the public code's arithmetic, and learning them."""

import math

import numpy as np
import pytest
import torch

from helpers.small import CPU, digits, quick_config
from propos.common.errors import InputError
from propos.methods.sela import equal_labels, label_loss
from propos.runner.recipes import build_recipe
from propos.training.e_step import unassigned
from propos.training.learner import build_learner
from propos.training.m_step import m_step
from propos.training.order import epoch_order
from propos.training.stage_setup import begin_epoch
from propos.training.state import first_state


def as_released(probabilities, sharpness):
    """The public code's loop, in numpy."""
    scores = (probabilities.T**sharpness).astype(np.float64)
    labels, images = scores.shape
    columns = np.ones((images, 1)) / images
    error, count = 1e6, 0
    while error > 0.1:
        rows = (1 / labels) / (scores @ columns)
        new = (1 / images) / (rows.T @ scores).T
        if count % 10 == 0:
            error = np.nansum(np.abs(columns / new - 1))
        columns, count = new, count + 1
    return (scores * columns.T * rows).argmax(axis=0)


@pytest.mark.parametrize("sharpness", [1.0, 5.0])
def test_labels_are_those_of_the_public_code(sharpness):
    logits = torch.randn(60, 6, generator=torch.Generator().manual_seed(0))
    log_probs = logits.log_softmax(dim=1)
    expected = as_released(log_probs.double().exp().numpy(), sharpness)
    assert equal_labels(log_probs, sharpness).tolist() == expected.tolist()


def test_labels_have_equal_shares_where_one_would_take_all_images():
    generator = torch.Generator().manual_seed(1)
    log_probs = (torch.randn(300, 3, generator=generator) + torch.tensor([9.0, 0.0, 0.0])).log_softmax(dim=1)
    assert (log_probs.argmax(dim=1) == 0).all()
    counts = torch.bincount(equal_labels(log_probs, 25.0), minlength=3)
    assert (counts - 100).abs().max() <= 3


def test_the_label_loss_by_hand():
    logits = torch.tensor([[0.0, math.log(3.0)], [math.log(3.0), 0.0], [5.0, 5.0]])
    # Chances of 3/4 and 1/4 at the labels; the last image has none.
    found = label_loss(logits, torch.tensor([1, 1, -1]))
    assert float(found) == pytest.approx(-(math.log(0.75) + math.log(0.25)) / 2)
    assert float(label_loss(logits, torch.full((3,), -1))) == 0


def test_each_head_learns_labels_of_its_own():
    source = digits()
    config = quick_config(source, method="sela", heads=2, overclustering=2)
    learner = build_learner(config, source, CPU)
    state = first_state(learner)
    state.partition = unassigned(200, CPU)
    begin_epoch(learner, source, state)
    tables = learner.method.memory["labels"]
    assert tables.shape == (2, 200)
    assert not torch.equal(tables[0], tables[1])
    for labels in tables:
        assert len(labels.unique()) > 15
    losses = m_step(learner, source, epoch_order(0, 0, learner.schedule)[0], state)
    assert float(losses["labels"]) == pytest.approx(math.log(20), rel=0.3)


def test_more_labels_than_different_images_are_refused():
    source = digits()
    source.images[:] = source.images[torch.arange(200) % 20]
    with pytest.raises(InputError, match=r"sela\.overclustering makes 100 labels: only 20 images differ"):
        build_learner(quick_config(source, method="sela", overclustering=10), source, CPU)


def test_sela_at_the_papers_scale():
    config = build_recipe("imagenet-1k", "sela")
    assert config.sections["sela"] == {"overclustering": 3, "heads": 10}
    assert (config.train.weight_decay, config.train.lr) == (1e-5, 0.05)
