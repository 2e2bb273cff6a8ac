import pytest
import torch
import torch.nn.functional as F

from helpers.pretrained import random_weights
from propos.augment import Shapes
from propos.common.errors import InputError
from propos.config import Config, NetworkSettings, StartSettings
from propos.methods import build_method
from propos.networks import FrozenBackbone, Tuned, Tuning, find_pretrained, read_pretrained, trunk_features
from propos.networks.pretrained import PRETRAINED, build_frozen
from propos.training.learner import freeze

LITE = "efficientnet-lite0"
SETTINGS = NetworkSettings(backbone="whitened", components=6)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return read_pretrained(None, random_weights(tmp_path_factory.mktemp("tuned") / "weights.pth"))


@pytest.fixture(scope="module")
def images():
    return torch.randint(0, 256, (3, 3, 256, 256), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)


def tuned(weights, learns="last", keeps_norms=True):
    made = Tuned(Tuning(find_pretrained(LITE), learns, keeps_norms), 6)
    made.load_pretrained(weights)
    return made


def test_the_frozen_part_and_the_last_stage_are_the_network(weights, images):
    whole, below = FrozenBackbone(weights), FrozenBackbone(weights, below_last=True)
    maps = below(images, Shapes())
    assert maps.shape == (3, 192 * 7 * 7)
    assert below.features == maps.shape[1]
    with torch.no_grad():
        features = tuned(weights).eval().top(maps.clone())
    torch.testing.assert_close(features, whole(images, Shapes()), atol=1e-4, rtol=1e-4)
    assert features.std() > 0


def test_all_of_the_network_learns_from_images_in_grey_too(weights):
    view = torch.rand(2, 1, 64, 64, generator=torch.Generator().manual_seed(0))
    everything = tuned(weights, "all").eval()
    with torch.no_grad():
        expected = everything.whitening(build_frozen(weights)(view.expand(-1, 3, -1, -1)))
        torch.testing.assert_close(everything(view), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ["efficientnet-lite0", "efficientnet-lite1", "efficientnet-lite2"])
def test_the_number_of_maps_is_known_without_an_image(name):
    network = PRETRAINED[name]
    with torch.device("meta"):
        built = network.build().eval()
        x = built.blocks[:-1](F.relu6(built.stem(torch.zeros(1, 3, network.side, network.side))))
    assert trunk_features(network) == x[0].numel()


@pytest.mark.parametrize("keeps", [True, False])
def test_batch_norms_keep_their_statistics_or_learn_them(weights, keeps):
    made = tuned(weights, keeps_norms=keeps).train()
    before = {name: buffer.clone() for name, buffer in made.named_buffers() if "running" in name}
    made(torch.rand(4, 192 * 49, generator=torch.Generator().manual_seed(0)))
    same = [torch.equal(buffer, before[name]) for name, buffer in made.named_buffers() if name in before]
    assert len(same) == 8  # mean and variance of three convolutions of the block and of the one after it
    assert all(same) if keeps else not any(same)


def test_what_was_fitted_to_the_features_is_no_part_of_what_learns():
    start = StartSettings(network=LITE, learns="last")
    method = build_method(Config(network=SETTINGS, start=start, clusters=2), channels=192 * 49)
    freeze(method, ("online.backbone",))
    rows = torch.rand(4, 192 * 49, generator=torch.Generator().manual_seed(0))
    assert method.online(rows).shape == (4, 6)
    learns = {name for name, parameter in method.named_parameters() if parameter.requires_grad}
    assert {name.rpartition(".")[0] for name in learns} == {
        f"online.backbone.top.{part}.{kind}"
        for part in ("block.expand", "block.depthwise", "block.project", "head")
        for kind in ("conv", "norm")
    }


def test_of_another_network_all_has_to_learn():
    with pytest.raises(InputError, match=r"set start\.learns=all"):
        Tuned(Tuning(find_pretrained("resnet18"), "last", True), 6)
    assert Tuned(Tuning(find_pretrained("resnet18"), "all", True), 6).eval()(torch.zeros(1, 3, 64, 64)).shape == (1, 6)
