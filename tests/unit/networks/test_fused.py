"""Fused convolutions give the features that plain ones give."""

import copy

import pytest
import torch
from torch import nn

from helpers.pretrained import random_weights
from propos.augment import Shapes
from propos.networks import FrozenBackbone, read_pretrained
from propos.networks.efficientnet import LITE_SHAPES, EfficientNetLite, fold_batch_norm
from propos.networks.fine_tuning import trunk_of
from propos.networks.frozen_backbone import FUSED_PART
from propos.networks.fused import FusedConv, fuse


@pytest.fixture(scope="module")
def network():
    """A folded network with batch norms like trained ones, whose features are neither all zero nor all six."""
    torch.manual_seed(0)
    made = EfficientNetLite(LITE_SHAPES["efficientnet-lite0"])
    for name, parameter in made.named_parameters():
        if name.endswith("norm.weight"):
            parameter.data.uniform_(0.5, 2.0)
        elif name.endswith("norm.bias"):
            parameter.data.normal_(std=0.5)
    for module in made.modules():
        if isinstance(module, nn.Module) and hasattr(module, "momentum"):
            module.momentum = 1.0
    with torch.no_grad():
        made.train()(torch.randn(4, 3, 96, 96))
    return fold_batch_norm(made)


# All sides even down to 7 as the default's; odd ones on the way; one parity across, the other down.
@pytest.mark.parametrize("sides", [(224, 224), (130, 130), (65, 65), (64, 97)])
def test_fused_features_are_the_plain_ones(network, sides):
    images = torch.randn(3, 3, *sides, generator=torch.Generator().manual_seed(1))
    fused = fuse(network)
    assert sum(isinstance(part, FusedConv) for part in fused.modules()) == 49
    with torch.inference_mode():
        expected, found = network(images), fused(images)
    assert (found - expected).abs().max() < 1e-4
    assert expected.std() > 0.1


def test_fused_maps_below_the_last_stage_are_the_plain_ones(network):
    images = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    trunk = trunk_of(network, "efficientnet-lite0")
    with torch.inference_mode():
        expected, found = trunk(images), fuse(trunk)(images)
    assert (found - expected).abs().max() < 1e-4
    assert expected.std() > 0.1


def test_other_networks_are_not_fused_and_the_network_itself_stays(network):
    before = copy.deepcopy(network.state_dict())
    assert fuse(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU6())) is None
    fuse(network)
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())


def test_features_do_not_depend_on_the_number_of_threads(tmp_path):
    frozen_backbone = FrozenBackbone(read_pretrained(None, random_weights(tmp_path / "weights.pth")))
    images = torch.randint(0, 256, (11, 3, 64, 64), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    plain = torch.cat([frozen_backbone._plain(frozen_backbone._view(image[None], Shapes())) for image in images])
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(frozen_backbone(images, Shapes()))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(each, found[0]) for each in found)
    assert (found[0] - plain).abs().max() < 1e-4
    assert len(images) % FUSED_PART
