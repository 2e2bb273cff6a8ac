"""Networks of the hub, read from folders: their features next to transformers' own, and folders that are refused."""

import json

import numpy as np
import pytest
import safetensors.torch
import torch
from PIL import Image

from helpers.hub import KINDS, hub_folder, own_features
from helpers.quick import quick_cases
from propos.augment import shapes_of
from propos.common.errors import InputError
from propos.data import find_source
from propos.networks import FrozenBackbone, read_pretrained
from propos.networks.pretrained import Origin

SIZES = [(96, 72), (61, 90), (48, 48), (43, 80), (30, 20), (57, 64)]  # some are smaller than the inputs


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("images"), np.random.default_rng(0)
    for number, (width, height) in enumerate(SIZES):
        pixels = rng.integers(0, 256, (height // 4 + 1, width // 4 + 1, 3)).astype(np.uint8)
        Image.fromarray(pixels).resize((width, height), Image.Resampling.BICUBIC).save(folder / f"{number}.png")
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return hub_folder(tmp_path_factory.mktemp("network") / "tiny")


@pytest.mark.parametrize("kind", quick_cases("dinov2", rest=KINDS[1:]))
def test_features_are_those_of_transformers(kind, tmp_path, images):
    folder = hub_folder(tmp_path / "network", kind)
    expected = own_features(folder, kind, [Image.open(file) for file in sorted(images.iterdir())])
    frozen = FrozenBackbone(read_pretrained(f"hub:{folder}"))
    network = frozen.weights.network
    shaped = network.short_side is not None
    unopened = find_source(images)
    source = unopened.open(network.short_side or network.side, 3, lambda *_: None, "stream", shaped)
    everything = np.arange(len(source))
    found = frozen(torch.from_numpy(source.batch(everything)), shapes_of(source, everything))
    assert found.shape == expected.shape == (len(SIZES), network.features)
    large = [number for number, size in enumerate(SIZES) if min(size) >= (network.short_side or 1)]
    assert torch.allclose(found[large], expected[large], atol=1e-5)
    # Enlarged images differ by a level of rounding here and there.
    assert torch.allclose(found, expected, atol=0.02 * float(expected.abs().max()))


def test_the_model_card_gives_training_data_and_licence(folder):
    network = read_pretrained(f"hub:{folder}").network
    assert network.origin == Origin("imaginary/pictures", "apache-2.0")
    assert (network.name, network.title) == ("hub:tiny", "tiny")


def test_the_cache_tells_other_weights_and_another_preprocessing(folder, tmp_path):
    def key(path):
        return FrozenBackbone(read_pretrained(f"hub:{path}")).cache_key(torch.device("cpu"))

    same, other, shifted = (tmp_path / name / "tiny" for name in ("same", "other", "shifted"))
    for path, seed in ((same, 0), (other, 1), (shifted, 0)):
        hub_folder(path, seed=seed)
    processor = json.loads((shifted / "preprocessor_config.json").read_text())
    (shifted / "preprocessor_config.json").write_text(json.dumps({**processor, "image_mean": [0.5, 0.5, 0.5]}))
    assert key(same) == key(folder)
    assert len({key(folder), key(other), key(shifted)}) == 3


def changed(file, **values):
    def change(folder):
        path = folder / file
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))

    return change


def removed(file):
    return lambda folder: (folder / file).unlink()


def pickled(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def truncated(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def with_nan(folder):
    path = folder / "model.safetensors"
    state = safetensors.torch.load_file(path)
    state["layernorm.bias"][0] = float("nan")
    safetensors.torch.save_file(state, path)


def without_a_weight(folder):
    path = folder / "model.safetensors"
    state = safetensors.torch.load_file(path)
    del state["layernorm.bias"]
    safetensors.torch.save_file(state, path)


def huge_file(folder):
    header = json.dumps({"a": {"dtype": "F32", "shape": [2_000_000, 1000], "data_offsets": [0, 8_000_000_000]}})
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header.encode())
        file.truncate(8 + len(header) + 8_000_000_000)  # sparse


PROCESSOR, CONFIG = "preprocessor_config.json", "config.json"


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (removed(CONFIG), "config.json: is missing"),
        (removed(PROCESSOR), "preprocessor_config.json: is missing"),
        (removed("model.safetensors"), "contains no model.safetensors: copy the whole folder"),
        (pickled, "only pickled weights, which could run code and are not read"),
        (truncated, "contains no weights that can be read"),
        (with_nan, "layernorm.bias contains NaN or infinity"),
        (without_a_weight, "1 weights that its config.json describes are missing, the first layernorm.bias"),
        (huge_file, "contains 2.0 billion parameters; networks of up to 1.5 billion can be used"),
        (changed(CONFIG, hidden_size=16), "its weights do not fit its config.json"),
        (changed(CONFIG, num_hidden_layers=10**9), "num_hidden_layers = 1000000000 is out of range"),
        (changed(CONFIG, hidden_size=2**15), "billion parameters"),
        (changed(CONFIG, hidden_size=33), "config.json"),
        (changed(CONFIG, model_type="bert"), "model_type 'bert' is not one whose features are used"),
        (changed(PROCESSOR, size={"longest_edge": 9}), "images are not resized to a square"),
        (changed(PROCESSOR, crop_size={"height": 9999, "width": 9999}), "are not from 1 to 1024"),
        (changed(PROCESSOR, image_std=[0, 1, 1]), "image_std is not above zero"),
        (changed(PROCESSOR, rescale_factor=1 / 128), "rescale_factor is not 1/255"),
    ],
)
def test_folders_that_cannot_be_used_say_why_on_one_line(damage, said, tmp_path):
    folder = hub_folder(tmp_path / "tiny")
    damage(folder)
    with pytest.raises(InputError) as caught:
        read_pretrained(f"hub:{folder}")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_code_that_a_folder_brings_is_not_run(tmp_path):
    folder = hub_folder(tmp_path / "tiny")
    (folder / "modeling.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Mine: pass\n")
    changed(CONFIG, auto_map={"AutoModel": "modeling.Mine", "AutoConfig": "modeling.Mine"})(folder)
    read_pretrained(f"hub:{folder}")
    assert not (tmp_path / "ran").exists()


def test_a_name_that_is_neither_a_folder_nor_a_repository_is_refused():
    with pytest.raises(InputError, match=r"write hub:FOLDER, hub:OWNER/NAME, or one of dinov2-s, "):
        read_pretrained("hub:nothing-here")
