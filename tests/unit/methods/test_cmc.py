"""CMC: how an image is split, and a step with both banks."""

import pytest
import torch
import torch.nn.functional as F

from helpers import oracle
from helpers.steps import learner_of, losses_of, step_of
from propos.methods.cmc import TwoNetworks

LABELS = torch.arange(200) % 10


def test_brightness_and_colours_by_hand():
    pixels = torch.tensor([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]).T[None, :, :, None]  # white, red, blue
    brightness, colours = TwoNetworks(torch.nn.Identity(), torch.nn.Identity()).split(pixels)
    torch.testing.assert_close(brightness[0, 0, :, 0], torch.tensor([1.0, 0.299, 0.114]))
    expected = torch.tensor([[0.0, -0.450, 1.333], [0.0, -1.333, 0.217]])
    torch.testing.assert_close(colours[0, :, :, 0], expected, atol=1e-6, rtol=0)


def test_both_networks_see_a_grey_image():
    grey = torch.randn(2, 1, 4, 4)
    assert all(half is grey for half in TwoNetworks(torch.nn.Identity(), torch.nn.Identity()).split(grey))


def test_each_half_is_told_from_all_images_by_the_other_halfs_bank():
    learner = learner_of("cmc")
    method = learner.method
    banks = [method.of_brightness["vectors"].clone(), method.of_colours["vectors"].clone()]
    made = []
    method.online.register_forward_hook(lambda _, __, output: made.append(output.detach()))
    batch, ctx = step_of(learner, LABELS)
    losses = losses_of(learner, batch, ctx)
    (z,) = made
    brightness, colours = z.chunk(2, dim=1)
    for name, own, bank in (("brightness", brightness, banks[1]), ("colours", colours, banks[0])):
        expected = oracle.instance_softmax(own.double().numpy(), bank.double().numpy(), list(range(24)), 0.07)
        assert losses[name] == pytest.approx(expected, rel=1e-4)
    for action in ctx.later:
        action()
    half = F.normalize((banks[0][:24] + brightness) / 2, dim=1)
    torch.testing.assert_close(method.of_brightness["vectors"][:24], half)


def test_an_embedding_has_both_halves_each_of_length_one():
    learner = learner_of("cmc")
    assert learner.method.online.dimension == 32  # two of 16
    z = learner.method.online(torch.randn(3, 1, 8, 8))
    torch.testing.assert_close(z.unflatten(1, (2, 16)).norm(dim=2), torch.ones(3, 2))
