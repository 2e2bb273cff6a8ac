"""PIRL: the noise contrast by hand and against plain loops, and a step with the bank."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from helpers import oracle
from helpers.steps import learner_of, losses_of, step_of
from propos.methods.pirl import noise_contrast

LABELS = torch.arange(200) % 10
RNG = np.random.default_rng(0)


def plain_loops(embeddings, bank, images, temperature):
    """Sum the logarithms one by one."""
    total = 0.0
    for embedding, own in zip(embeddings, images, strict=True):
        scores = [math.exp(float(oracle.unit(embedding) @ row) / temperature) for row in bank]
        for place, score in enumerate(scores):
            share = score / sum(scores)
            total -= math.log(share if place == own else 1 - share)
    return total / len(embeddings)


def test_it_equals_the_oracle_in_value_and_gradient():
    bank, images = np.stack([oracle.unit(row) for row in RNG.normal(size=(7, 4))]), [2, 0, 6]
    oracle.check(
        lambda point: noise_contrast(point, torch.tensor(bank, dtype=point.dtype), torch.tensor(images), 0.3),
        lambda point: plain_loops(point, bank, images, 0.3),
        RNG.normal(size=(3, 4)),
    )


def test_it_by_hand():
    """Of two images, at odds of e² : 1: −log h − log(1 − h') with h = 1 − h' = e² / (e² + 1)."""
    bank = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    expected = 2 * math.log(1 + math.exp(-2))
    assert float(noise_contrast(torch.tensor([[5.0, 0.0]]), bank, torch.tensor([0]), 1.0)) == pytest.approx(expected)


def test_a_certain_image_has_a_finite_loss():
    bank = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    assert math.isfinite(float(noise_contrast(torch.tensor([[-1.0, 0.0]]), bank, torch.tensor([0]), 0.01)))


def test_both_terms_contrast_the_remembered_embedding():
    learner = learner_of("pirl", pirl__patches_share=0.25)
    method, bank = learner.method, learner.method.bank["vectors"].clone()
    made = {}
    for name, module in (("images", method.online), ("patches", method.together)):
        module.register_forward_hook(lambda _, __, output, name=name: made.update({name: output.detach()}))
    batch, ctx = step_of(learner, LABELS)
    losses = losses_of(learner, batch, ctx)
    for name, share in (("images", 0.75), ("patches", 0.25)):
        expected = plain_loops(made[name].double().numpy(), bank.double().numpy(), range(24), 0.07)
        assert losses[name] == pytest.approx(share * expected, rel=1e-4)
    for action in ctx.later:
        action()
    half = F.normalize((bank[:24] + F.normalize(made["images"], dim=1)) / 2, dim=1)
    torch.testing.assert_close(method.bank["vectors"][:24], half)


def test_the_order_of_the_patches_changes_from_image_to_image():
    learner = learner_of("pirl")
    seen = []
    learner.method.together.register_forward_pre_hook(lambda _, given: seen.append(given[0].detach()))
    cut = []
    learner.method.patch.register_forward_hook(lambda _, __, output: cut.append(output.detach()))
    losses_of(learner, *step_of(learner, LABELS))
    assert torch.equal(seen[0], torch.cat(cut, dim=1))
    assert len(cut) == 9


def test_a_step_has_a_backward_pass_through_both_networks():
    """The backbone passes twice in a step, and batch norm moves its statistics in between."""
    learner = learner_of("pirl")
    losses = learner.method.losses(*step_of(learner, LABELS))
    sum(losses.values()).backward()
    assert all(each.grad is not None for each in learner.method.online.parameters())
