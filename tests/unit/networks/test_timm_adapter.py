"""Networks of timm. Where it does not load, a package of its documented functions stands in for the collection."""

import sys

import pytest
import safetensors.torch
import torch

from propos.common.errors import InputError
from propos.networks.pretrained import build_frozen, find_pretrained, origin_of, read_pretrained
from propos.networks.timm_adapter import _training_data, timm_network

COLLECTION = """
import torch
from torch import nn

def is_model(name):
    return name in ("tiny", "unpooled", "grey")

def list_models():
    return ["grey", "tiny", "unpooled"]

def list_pretrained(pattern):
    return ["tiny.some_in1k", "tiny.lvd142m"] if pattern == "tiny.*" else []

class Tiny(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.conv = nn.Conv2d(1 if name.startswith("grey") else 3, 4, 3)
        self.register_buffer("index", torch.arange(3))
        self.pools = not name.startswith("unpooled")
        size = (1 if name.startswith("grey") else 3, 32, 32)
        tag = name.partition(".")[2] or "some_in1k"
        self.pretrained_cfg = {"tag": tag, "license": "cc-by-nc-4.0", "input_size": size, "crop_pct": 1.0}

    def forward(self, x):
        x = self.conv(x)
        return x.mean((2, 3)) if self.pools else x

def create_model(name, pretrained, num_classes):
    assert num_classes == 0
    if pretrained and name != "tiny.lvd142m":
        raise OSError("cannot reach the hub:\\n  no route")
    torch.manual_seed(0)
    return Tiny(name)
"""
DATA = """
def resolve_model_data_config(model):
    return {**model.pretrained_cfg, "mean": (0.5, 0.5, 0.5), "std": (0.25, 0.25, 0.25), "interpolation": "bicubic"}
"""


@pytest.fixture(autouse=True)
def _anew():
    """Forget what was loaded under timm's name, before and after."""
    kept = loaded()
    yield
    loaded()
    sys.modules.update(kept)


def loaded():
    timm_network.cache_clear()
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "timm"}


def standing_in(monkeypatch, folder, collection=COLLECTION):
    """Have a package of the name timm hold this."""
    (folder / "timm").mkdir()
    (folder / "timm" / "__init__.py").write_text(collection)
    (folder / "timm" / "data.py").write_text(DATA)
    monkeypatch.syspath_prepend(str(folder))


@pytest.fixture
def _collection(monkeypatch, tmp_path):
    standing_in(monkeypatch, tmp_path)


def refusal(name, file=None):
    with pytest.raises(InputError) as caught:
        read_pretrained(name, file)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.usefixtures("_collection")
def test_a_network_brings_its_own_preprocessing_and_what_its_weights_had_seen():
    weights = read_pretrained("timm/tiny.lvd142m")
    network = weights.network
    assert (network.features, network.side, network.crop) == (4, 32, 1.0)
    assert network.pixels == ((0.5,) * 3, (0.25,) * 3)
    assert network.trained_on == "142 million photographs, without labels (LVD-142M)"
    assert network.licence == "cc-by-nc-4.0"
    assert origin_of(network.name, weights.sha256, None) == network
    assert weights.sha256 == read_pretrained("timm/tiny.lvd142m").sha256
    assert build_frozen(weights)(torch.zeros(2, 3, 32, 32)).shape == (2, 4)


@pytest.mark.usefixtures("_collection")
def test_a_file_holds_weights_that_nothing_is_known_of(tmp_path):
    state = read_pretrained("timm/tiny.lvd142m").state
    safetensors.torch.save_file({**state, "fc.weight": torch.zeros(7, 4)}, tmp_path / "model.safetensors")
    weights = read_pretrained("timm/tiny", tmp_path / "model.safetensors")
    assert torch.equal(weights.state["conv.weight"], state["conv.weight"])
    assert torch.equal(weights.state["index"], torch.arange(3))
    assert (weights.network.trained_on, weights.network.licence) == ("unknown", "unknown")


@pytest.mark.usefixtures("_collection")
def test_weights_that_do_not_fit_are_refused_with_the_first_missing_name(tmp_path):
    state = read_pretrained("timm/tiny.lvd142m").state
    state["conv.weights"] = state.pop("conv.weight")
    safetensors.torch.save_file(state, tmp_path / "model.safetensors")
    said = refusal("timm/tiny", tmp_path / "model.safetensors")
    assert "does not fit timm/tiny: 1 of its weights" in said
    assert "the first conv.weight; nearest is conv.weights (4, 3, 3, 3): give weights of timm/tiny" in said


@pytest.mark.usefixtures("_collection")
def test_a_hub_that_cannot_be_reached_is_said_with_what_to_do():
    said = refusal("timm/tiny.some_in1k")
    assert "could not be downloaded (cannot reach the hub: no route)" in said
    assert "download model.safetensors of timm/tiny.some_in1k elsewhere and add --weights FILE" in said


@pytest.mark.usefixtures("_collection")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("timm/tiny.other", "did you mean timm/tiny.some_in1k or timm/tiny.lvd142m?"),
        ("timm/tinny", "did you mean timm/tiny?"),
        ("timm/zzz", "see timm.list_pretrained()"),
        ("timm/unpooled", "has no pooled output: it returns (4, 30, 30) of an image"),
        ("timm/grey", "its inputs are 32×32 with 1 channels"),
    ],
)
def test_what_cannot_be_used_says_why_and_what_could(name, said):
    assert said in refusal(name)


def test_the_extra_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    assert refusal("timm/any").endswith("timm is not installed: pip install 'propos[timm]'")


def test_what_timm_needs_and_does_not_find_is_said(monkeypatch, tmp_path):
    standing_in(monkeypatch, tmp_path, "import no_torchvision_here")
    assert "no_torchvision_here, which timm needs, is not installed: pip install 'propos[timm]'" in refusal("timm/any")


def test_a_torchvision_for_another_torch_is_said(monkeypatch, tmp_path):
    standing_in(monkeypatch, tmp_path, "raise RuntimeError('operator torchvision::nms does not exist')")
    said = refusal("timm/any")
    assert "timm cannot be loaded (operator torchvision::nms does not exist): install the torchvision that" in said


@pytest.mark.parametrize(
    ("tag", "seen"),
    [
        ("augreg_in21k_ft_in1k", ["ImageNet's 1,000", "ImageNet's 21,000"]),
        ("dino", ["without labels"]),
        ("openai", ["captions"]),
        ("mystery", ["timm's tag mystery"]),
        ("", ["unknown"]),
    ],
)
def test_a_tag_says_what_weights_had_seen(tag, seen):
    assert all(each in _training_data(tag) for each in seen)


def test_a_network_of_timm_itself(tmp_path):
    try:
        import timm
    except Exception as error:
        pytest.skip(f"timm does not load here: {type(error).__name__}: {error}")
    model = timm.create_model("test_vit", pretrained=False, num_classes=5).eval()
    safetensors.torch.save_file(model.state_dict(), tmp_path / "model.safetensors")
    weights = read_pretrained("timm/test_vit.r160_in1k", tmp_path / "model.safetensors")
    network = find_pretrained("timm/test_vit.r160_in1k")
    assert (network.side, network.features) == (160, model.num_features)
    assert "ImageNet's 1,000 classes" in network.trained_on
    images = torch.rand(2, 3, 160, 160)
    with torch.no_grad():
        expected = model.forward_head(model.forward_features(images), pre_logits=True)
    assert torch.allclose(build_frozen(weights)(images), expected, atol=1e-5)
    assert "did you mean timm/test_vit.r160_in1k" in refusal("timm/test_vit.in1k")
