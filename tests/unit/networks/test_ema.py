"""Moving averages of modules, and the encoders they are of."""

import copy

import pytest
import torch
from torch import nn

from helpers.small import digits, quick_config
from propos.methods import build_method
from propos.networks import BatchNorm, EmaCopy, Mlp, initialise_small


@pytest.fixture
def propos():
    return build_method(quick_config(), channels=1)


def views(seed=0):
    return torch.rand(2, 6, 1, 8, 8, generator=torch.Generator().manual_seed(seed))


def test_the_seed_alone_decides_the_first_weights(propos):
    torch.rand(10)
    again, other = build_method(quick_config(), 1), build_method(quick_config(seed=1), 1)
    state = propos.state_dict()
    assert all(torch.equal(state[name], value) for name, value in again.state_dict().items())
    assert not torch.equal(state["online.backbone.conv1.weight"], other.online.backbone.conv1.weight)


def test_building_a_method_leaves_the_global_generator_alone():
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    build_method(quick_config(), 1)
    assert torch.equal(torch.rand(1), expected)


def test_the_target_starts_as_the_online_network(propos):
    for online, target in zip(propos.online.parameters(), propos.target.parameters(), strict=True):
        assert torch.equal(online, target)
        assert not target.requires_grad


def test_the_target_moves_by_one_minus_the_momentum(propos):
    before = [parameter.clone() for parameter in propos.target.parameters()]
    with torch.no_grad():
        for parameter in propos.online.parameters():
            parameter.add_(1.0)
    propos.target.move(0.75)
    for old, new in zip(before, propos.target.parameters(), strict=True):
        torch.testing.assert_close(new, old + 0.25)


def test_the_target_moves_as_torchs_lerp_of_each_parameter(propos):
    for seed, parameter in enumerate(propos.online.parameters()):
        parameter.data.normal_(generator=torch.Generator().manual_seed(seed))
    pairs = zip(propos.target.parameters(), propos.online.parameters(), strict=True)
    expected = [torch.lerp(target, online.detach(), 1 - 0.996) for target, online in pairs]
    propos.target.move(0.996)
    torch.testing.assert_close(list(propos.target.parameters()), expected)


def test_what_is_frozen_does_not_move_and_has_its_mode():
    source = nn.Sequential(nn.Linear(2, 2), BatchNorm(2))
    ema = EmaCopy(source)
    source[0].requires_grad_(False)
    before = copy.deepcopy(ema.module.state_dict())
    with torch.no_grad():
        for parameter in source.parameters():
            parameter.add_(1.0)
    source[0].eval()
    ema.match_modes()
    ema.move(0.5)
    assert [module.training for module in ema.module] == [False, True]
    assert torch.equal(ema.module[0].weight, before["0.weight"])
    torch.testing.assert_close(ema.module[1].weight, before["1.weight"] + 0.5)
    ema.reset()
    assert torch.equal(ema.module[0].weight, source[0].weight)


def test_a_small_start_is_normal_of_a_hundredth():
    predictor = Mlp(256, 4096, 256)
    initialise_small(predictor)
    layers = [layer for layer in predictor if isinstance(layer, nn.Linear)]
    assert [layer.weight.shape for layer in layers] == [(4096, 256), (256, 4096)]
    for layer in layers:
        assert float(layer.weight.detach().std()) == pytest.approx(0.01, rel=0.01)
        assert torch.equal(layer.bias, torch.zeros_like(layer.bias))


def test_no_gradient_reaches_the_target_network(propos):
    first, _ = views()
    assert not propos.target(first).requires_grad
    propos.predictor(propos.online(first)).sum().backward()
    assert propos.online.backbone.conv1.weight.grad is not None
    assert propos.target.module.backbone.conv1.weight.grad is None


def test_the_target_keeps_running_statistics_of_its_own(propos):
    propos.target(views()[0])
    norm = propos.target.module.backbone.bn1
    assert not torch.equal(norm.running_mean, torch.zeros_like(norm.running_mean))
    propos.online.backbone.bn1.running_mean.fill_(7.0)
    propos.target.move(0.0)
    assert not torch.equal(norm.running_mean, propos.online.backbone.bn1.running_mean)


def test_convolutions_are_channels_last(propos):
    for encoder in (propos.online, propos.target.module):
        weight = encoder.backbone.layer2[0].conv1.weight
        assert weight.is_contiguous(memory_format=torch.channels_last)
        assert not weight.is_contiguous()


def test_embeddings_are_as_wide_as_the_projectors_last_layer(propos):
    assert propos.online.dimension == 16
    assert build_method(quick_config(method="kmeans-pixels"), 1).embedder.dimension == digits().images[0].size
