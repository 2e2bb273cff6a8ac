import pytest
import torch
import torch.nn.functional as F

from propos.networks.efficientnet import LITE_SHAPES, EfficientNetLite, fold_batch_norm, our_name
from propos.networks.pretrained import PRETRAINED, build_frozen, installed, read_pretrained


def pattern(side):
    """Return one image of every grey in each channel, as the published weights expect pixels."""
    ticks = torch.arange(side)
    pixels = (7 * ticks[:, None] + 13 * ticks + 29 * torch.arange(3)[:, None, None]) % 256
    return ((pixels.float() - 127) / 128)[None]


# Outputs of the package efficientnet-lite-pytorch 0.1.0 with the published weights: the five largest features, the
# norm of all 1,280 and their sum.
RECORDED = {
    "efficientnet-lite0": ({1111: 5.58094, 576: 5.35976, 113: 5.18695, 949: 4.93787, 761: 4.416}, 16.91387, 140.4845),
    "efficientnet-lite1": ({1198: 5.26841, 749: 4.46487, 467: 4.44666, 246: 4.09744}, 17.99292, 173.8494),
    "efficientnet-lite2": ({302: 3.78952, 1191: 3.61822, 1028: 3.20867, 864: 3.08908}, 15.56332, 194.6082),
}


@pytest.mark.parametrize("name", RECORDED)
def test_published_weights_give_their_recorded_outputs(name):
    if installed(name) is None:
        pytest.skip(f"the package with the weights of {name} is not installed")
    largest, norm, total = RECORDED[name]
    with torch.no_grad():
        features = build_frozen(read_pretrained(name))(pattern(PRETRAINED[name].side))[0]
    for place, value in largest.items():
        assert features[place].item() == pytest.approx(value, abs=1e-4)
    assert features.norm().item() == pytest.approx(norm, abs=1e-4)
    assert features.double().sum().item() == pytest.approx(total, abs=1e-2)


# Google's counts: 4,652,008, 5,416,680 and 6,092,072 parameters, the classifier's 1,281,000 among them.
@pytest.mark.parametrize(
    ("name", "parameters"),
    [("efficientnet-lite0", 3_371_008), ("efficientnet-lite1", 4_135_680), ("efficientnet-lite2", 4_811_072)],
)
def test_the_networks_have_the_published_sizes(name, parameters):
    network = EfficientNetLite(LITE_SHAPES[name])
    assert sum(parameter.numel() for parameter in network.parameters()) == parameters


def test_odd_padding_lies_right_and_below():
    # TensorFlow's SAME: of 4 pixels by strides of 2, windows of 3 begin at 0 and 2, and the last wants one pixel more.
    conv = EfficientNetLite(LITE_SHAPES["efficientnet-lite0"], channels=1).stem.conv
    image = torch.arange(16.0).reshape(1, 1, 4, 4)
    expected = F.conv2d(F.pad(image, (0, 1, 0, 1)), conv.weight, stride=2)
    assert torch.allclose(conv(image), expected)
    # Of 5 pixels windows begin at -1, 1 and 3: one more on every side.
    image = torch.arange(25.0).reshape(1, 1, 5, 5)
    assert torch.allclose(conv(image), F.conv2d(F.pad(image, (1, 1, 1, 1)), conv.weight, stride=2))


def test_folded_norms_change_nothing_but_time():
    torch.manual_seed(0)
    network = EfficientNetLite(LITE_SHAPES["efficientnet-lite0"])
    for name, buffer in network.named_buffers():
        if name.endswith("running_var"):
            buffer.uniform_(0.5, 2.0)
        elif name.endswith("running_mean"):
            buffer.normal_(std=0.1)
    images = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        before, after = network.eval()(images), fold_batch_norm(network)(images)
    assert torch.allclose(before, after, atol=1e-5)
    assert before.std() > 1e-3
    assert not any("norm" in name for name in fold_batch_norm(network).state_dict())


def test_published_names_are_ours():
    assert our_name("_conv_stem.weight") == "stem.conv.weight"
    assert our_name("_bn1.running_mean") == "head.norm.running_mean"
    assert our_name("_blocks.0._bn1.weight") == "blocks.0.depthwise.norm.weight"
    assert our_name("_blocks.12._expand_conv.weight") == "blocks.12.expand.conv.weight"
    assert our_name("_fc.weight") is None
