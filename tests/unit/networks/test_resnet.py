import pytest
import torch
from torch import nn

from propos.common.errors import InputError
from propos.networks import backbone, feature_width


# torchvision's published parameter counts less its classifier (513,000; 513,000; 2,049,000).
@pytest.mark.parametrize(
    ("name", "parameters", "features"),
    [("resnet18", 11_176_512, 512), ("resnet34", 21_284_672, 512), ("resnet50", 23_508_032, 2048)],
)
def test_the_networks_are_torchvisions(name, parameters, features):
    network = backbone(name, "imagenet", 3)
    assert sum(parameter.numel() for parameter in network.parameters()) == parameters
    assert network.features == features


def test_keys_follow_torchvisions():
    keys = backbone("resnet18", "imagenet", 3).state_dict()
    assert keys["conv1.weight"].shape == (64, 3, 7, 7)
    assert keys["layer1.0.conv1.weight"].shape == (64, 64, 3, 3)
    assert keys["layer2.0.downsample.0.weight"].shape == (128, 64, 1, 1)
    assert keys["layer2.0.downsample.1.running_mean"].shape == (128,)
    assert keys["layer4.1.bn2.weight"].shape == (512,)
    assert "layer1.0.downsample.0.weight" not in keys
    bottleneck = backbone("resnet50", "imagenet", 3).state_dict()
    assert bottleneck["layer1.0.downsample.0.weight"].shape == (256, 64, 1, 1)
    assert bottleneck["layer3.5.conv3.weight"].shape == (1024, 256, 1, 1)
    assert bottleneck["layer2.0.conv2.weight"].shape == (128, 128, 3, 3)


@pytest.mark.parametrize(("stem", "size", "expected"), [("imagenet", 64, 2), ("small", 32, 4)])
def test_the_small_stem_keeps_32_pixel_images_large(stem, size, expected):
    network = backbone("resnet18", stem, 3).eval()
    seen = []
    network.layer4[-1].register_forward_hook(lambda module, args, output: seen.append(output.shape[-1]))
    with torch.no_grad():
        assert network(torch.zeros(1, 3, size, size)).shape == (1, 512)
    assert seen == [expected]


def test_the_small_network_takes_tiny_grey_images():
    network = backbone("resnet-small", "small", 1).eval()
    with torch.no_grad():
        assert network(torch.rand(2, 1, 8, 8)).shape == (2, network.features)


def test_a_block_adds_its_input_to_what_it_computes():
    network = backbone("resnet18", "small", 3).eval()
    block = network.layer1[0]
    with torch.no_grad():
        block.bn2.weight.zero_()
        images = torch.rand(1, 64, 4, 4)
        assert torch.equal(block(images.clone()), images)


def test_an_unknown_backbone_is_refused():
    with pytest.raises(InputError, match="resnet18"):
        backbone("resnet19", "small", 3)


def test_a_width_scales_every_layer_and_nothing_else():
    usual, narrow = backbone("resnet18", "small", 3), backbone("resnet18", "small", 3, width=0.25)
    for (key, wide), thin in zip(usual.state_dict().items(), narrow.state_dict().values(), strict=True):
        assert all(n in (w, w // 4) for w, n in zip(wide.shape, thin.shape, strict=True)), key
    assert narrow.features == feature_width("resnet18", 0.25) == 128
    # Convolutions, nearly all there is, fall with the square of the width.
    ratio = sum(p.numel() for p in narrow.parameters()) / sum(p.numel() for p in usual.parameters())
    assert ratio == pytest.approx(1 / 16, rel=0.02)


@pytest.mark.parametrize("name", ["resnet18", "resnet50", "resnet-small"])
def test_few_channels_are_thinned_out_before_a_1x1_convolution(name):
    """On CPUs without AVX-512, torch's own with a stride corrupts memory if it has less than 8 channels."""
    for width in (1 / 64, 1 / 16, 1 / 8, 1.0):
        strided = [
            layer
            for layer in backbone(name, "small", 3, width).modules()
            if isinstance(layer, nn.Conv2d) and layer.kernel_size == (1, 1) and layer.stride == (2, 2)
        ]
        assert strided
        assert all((layer.in_channels < 8) == (type(layer) is not nn.Conv2d) for layer in strided)


def test_what_is_thinned_out_is_what_a_stride_leaves_out():
    shortcut = backbone("resnet18", "small", 3, 1 / 16).layer2[0].downsample[0]
    images = torch.randn(2, 4, 7, 9, dtype=torch.float64)
    expected = nn.functional.conv2d(images, shortcut.weight.double(), stride=2)
    assert torch.equal(shortcut.double()(images), expected)
