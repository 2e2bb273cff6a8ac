"""The model classes of transformers whose features are used, and how a network is built from its description.

Only these classes are built, by code of the installed package; nothing that a repository contains is run.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from propos.common.errors import InputError, shown
from propos.config.description import Description
from propos.networks.pretrained import Origin, Pretrained

EXTRA = "pip install 'propos[hub]'"
LARGEST = 1.5e9  # parameters: six gigabytes of memory
LARGEST_NUMBER = 2**16  # of layers, widths and sides in a configuration


class Kind(NamedTuple):
    """A model class, and which of its outputs are an image's features."""

    model: str
    config: str
    output: str  # "first" is the first token of the last layer


KINDS = {
    "dinov2": Kind("Dinov2Model", "Dinov2Config", "pooler_output"),
    "dinov2_with_registers": Kind("Dinov2WithRegistersModel", "Dinov2WithRegistersConfig", "pooler_output"),
    "dinov3_vit": Kind("DINOv3ViTModel", "DINOv3ViTConfig", "pooler_output"),
    "clip_vision_model": Kind("CLIPVisionModelWithProjection", "CLIPVisionConfig", "image_embeds"),
    "siglip_vision_model": Kind("SiglipVisionModel", "SiglipVisionConfig", "pooler_output"),
    "vit": Kind("ViTModel", "ViTConfig", "first"),
}


class HubNetwork(nn.Module):
    """A model of transformers, from normalised squares to one vector of features an image."""

    def __init__(self, model: nn.Module, output: str) -> None:
        super().__init__()
        self.model, self.output = model, output

    def forward(self, images: Float[Tensor, "B 3 S S"]) -> Float[Tensor, "B F"]:
        """Return the features of images."""
        made = self.model(pixel_values=images)
        features: Tensor = made.last_hidden_state[:, 0] if self.output == "first" else getattr(made, self.output)
        return features


@cache
def hub_network(name: str, description: str) -> Pretrained:
    """Return the network that a description tells of."""
    told = Description.from_json(description, name)
    kind = KINDS[told.kind]
    config = _config(kind.config, told.architecture, name)
    with torch.device("meta"):
        model = _class(kind.model, name)(config)
    parameters = sum(each.numel() for each in model.parameters())
    if parameters > LARGEST:
        raise InputError(
            f"--start {name}: has {parameters / 1e9:.1f} billion parameters; networks of up to "
            f"{LARGEST / 1e9:.1f} billion can be used: choose a smaller one"
        )
    build, seen = partial(_built, told, name), told.preparation
    return Pretrained(
        name,
        build,
        _width(build, seen.side),
        seen.side,
        (seen.mean, seen.std),
        lambda published: published,
        crop=None if seen.short is None else seen.side / seen.short,
        resample=seen.resample,
        origin=Origin(told.trained_on, told.licence),
        description=description,
        load=partial(_loaded, told, name),
    )


def _built(told: Description, name: str) -> nn.Module:
    kind = KINDS[told.kind]
    return HubNetwork(_class(kind.model, name)(_config(kind.config, told.architecture, name)), kind.output)


def _loaded(told: Description, name: str, state: Mapping[str, Tensor]) -> nn.Module:
    kind = KINDS[told.kind]
    return HubNetwork(load_model(kind.model, kind.config, told.architecture, name, state), kind.output)


def load_model(
    model_class: str, config_class: str, architecture: Mapping[str, Any], name: str, state: Mapping[str, Tensor]
) -> nn.Module:
    """Build a model with weights under their published names, which transformers may call otherwise."""
    with _quietly():
        config = _config(config_class, architecture, name)
        try:
            model, report = _class(model_class, name).from_pretrained(
                None, config=config, state_dict=dict(state), dtype=torch.float32, output_loading_info=True
            )
        except Exception as error:  # any error of the loader: weights of another shape are one
            words = shown(" ".join(str(error).split()) or type(error).__name__, quoted=False)
            raise InputError(f"{name}: its weights do not fit its config.json: {words[:300]}") from None
    missing = sorted(report["missing_keys"])
    if missing:
        raise InputError(
            f"{name}: {len(missing)} weights that its config.json describes are missing, the first "
            f"{shown(missing[0], quoted=False)}: download model.safetensors and config.json again"
        )
    built: nn.Module = model
    return built


def _width(build: partial[nn.Module], side: int) -> int:
    with torch.device("meta"), torch.inference_mode():
        made: Tensor = build()(torch.zeros(1, 3, side, side))
    return made.shape[1]


def _config(config_class: str, architecture: Mapping[str, Any], name: str) -> Any:
    """Return the configuration of a model: plain values of keys that its class has, and nothing else of the file."""
    kind = _class(config_class, name)
    common = _class("PretrainedConfig", name)().to_dict()
    own = kind().to_dict().keys() - common.keys()
    chosen = {key: value for key, value in architecture.items() if key in own and _is_plain(value)}
    large = [key for key, value in chosen.items() if isinstance(value, int | float) and abs(value) > LARGEST_NUMBER]
    if large:
        raise InputError(f"--start {name}: config.json: {large[0]} = {chosen[large[0]]} is out of range")
    try:
        with _quietly():
            return kind(**chosen)
    except Exception as error:  # any error of the checks of transformers
        words = shown(" ".join(str(error).split()), quoted=False)
        raise InputError(f"--start {name}: config.json: {words[:300]}") from None


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float | bool)


def _class(named: str, name: str) -> Any:
    """Return a class of transformers, which is imported only when a network of the hub is named."""
    try:
        return getattr(importlib.import_module("transformers"), named)
    except ModuleNotFoundError as error:
        raise InputError(f"--start {name}: {error.name} is not installed: {EXTRA}") from None


@contextmanager
def _quietly() -> Iterator[None]:
    """Have transformers print nothing: what it finds wrong is raised here, in one line."""
    logging = importlib.import_module("transformers.utils.logging")
    before, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()
