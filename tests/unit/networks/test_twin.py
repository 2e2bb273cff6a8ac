import pytest
import torch
from torch import nn

from propos.config import NetworkSettings
from propos.networks import Head, Parts, build_network

SETTINGS = NetworkSettings(backbone="resnet-small", hidden=32, dimension=16)
PARTS = Parts(projector=Head((32, 16)), predictor=Head((32, 16)), target="moving average")


@pytest.fixture
def network():
    return build_network(SETTINGS, PARTS, channels=1, seed=0)


def views(seed=0):
    first, second = torch.rand(2, 6, 1, 8, 8, generator=torch.Generator().manual_seed(seed))
    return first, second


def test_the_seed_alone_decides_the_first_weights(network):
    torch.rand(10)
    again, other = build_network(SETTINGS, PARTS, 1, seed=0), build_network(SETTINGS, PARTS, 1, seed=1)
    state = network.state_dict()
    assert all(torch.equal(state[name], value) for name, value in again.state_dict().items())
    assert not torch.equal(state["online.backbone.conv1.weight"], other.online.backbone.conv1.weight)


def test_building_a_network_leaves_the_global_generator_alone():
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    build_network(SETTINGS, PARTS, 1, seed=0)
    assert torch.equal(torch.rand(1), expected)


def test_the_target_starts_as_the_online_network(network):
    for online, target in zip(network.online.parameters(), network.target.parameters(), strict=True):
        assert torch.equal(online, target)
        assert not target.requires_grad


def test_the_target_moves_by_one_minus_the_momentum(network):
    before = [parameter.clone() for parameter in network.target.parameters()]
    with torch.no_grad():
        for parameter in network.online.parameters():
            parameter.add_(1.0)
    network.move_target(0.75)
    for old, new in zip(before, network.target.parameters(), strict=True):
        torch.testing.assert_close(new, old + 0.25)


def test_the_target_moves_as_torchs_lerp_of_each_parameter(network):
    for seed, parameter in enumerate(network.online.parameters()):
        parameter.data.normal_(generator=torch.Generator().manual_seed(seed))
    pairs = zip(network.target.parameters(), network.online.parameters(), strict=True)
    expected = [torch.lerp(target, online.detach(), 1 - 0.996) for target, online in pairs]
    network.move_target(0.996)
    torch.testing.assert_close(list(network.target.parameters()), expected)


def test_the_predictor_starts_small():
    head = Head((4096, 256))
    parts = Parts(projector=head, predictor=head, target="moving average")
    predictor = build_network(NetworkSettings(backbone="resnet-small"), parts, 1, seed=0).predictor
    layers = [layer for layer in predictor if isinstance(layer, nn.Linear)]
    assert [layer.weight.shape for layer in layers] == [(4096, 256), (256, 4096)]
    for layer in layers:
        assert float(layer.weight.detach().std()) == pytest.approx(0.01, rel=0.01)
        assert torch.equal(layer.bias, torch.zeros_like(layer.bias))


def test_a_predictor_may_start_as_torchs_layers_do():
    """Uniform on ± 1/√n, n inputs: SimSiam's."""
    parts = Parts(projector=Head((2048,)), predictor=Head((512, 2048)), predictor_starts_small=False)
    predictor = build_network(NetworkSettings(backbone="resnet-small"), parts, 1, seed=0).predictor
    for layer in (layer for layer in predictor if isinstance(layer, nn.Linear)):
        bound = layer.in_features**-0.5
        assert float(layer.weight.detach().std()) == pytest.approx(bound / 3**0.5, rel=0.01)
        assert float(layer.bias.detach().abs().max()) == pytest.approx(bound, rel=0.05)


def test_noise_reaches_the_predictions_and_nothing_else(network):
    noise = torch.randn(2, 6, 16, generator=torch.Generator().manual_seed(1))
    plain, noisy = network(views(), None).pairs(), network(views(), (noise[0], noise[1])).pairs()
    for name, changes in {"projections": False, "predictions": True, "targets": False}.items():
        for before, after in zip(plain[name], noisy[name], strict=True):
            assert torch.equal(before, after) is not changes


def test_noise_is_added_to_the_raw_projection(network):
    noise = torch.randn(2, 6, 16, generator=torch.Generator().manual_seed(1))
    outputs = network(views(), (noise[0], noise[1]))
    projections, predictions = outputs.projections, outputs.predictions
    torch.testing.assert_close(predictions[1], network.predictor(projections[1] + noise[1]))


def test_no_gradient_reaches_the_target_network(network):
    outputs = network(views(), None)
    predictions, targets = outputs.predictions, outputs.targets
    assert not targets[0].requires_grad
    predictions[0].sum().backward()
    assert network.online.backbone.conv1.weight.grad is not None
    assert network.target.backbone.conv1.weight.grad is None


def test_each_view_has_its_own_batch_statistics(network):
    first, second = views()
    alone = network.online(first)
    beside = network((first, 100 * second), None).projections[0]
    torch.testing.assert_close(beside, alone)


def test_the_target_keeps_running_statistics_of_its_own(network):
    network(views(), None)
    mean = network.target.backbone.bn1.running_mean
    assert not torch.equal(mean, torch.zeros_like(mean))
    network.online.backbone.bn1.running_mean.fill_(7.0)
    network.move_target(0.0)
    assert not torch.equal(network.target.backbone.bn1.running_mean, network.online.backbone.bn1.running_mean)


def test_convolutions_are_channels_last(network):
    for weight in (network.online.backbone.layer2[0].conv1.weight, network.target.backbone.layer2[0].conv1.weight):
        assert weight.is_contiguous(memory_format=torch.channels_last)
        assert not weight.is_contiguous()
